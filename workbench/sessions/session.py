"""One person or oracle working on a project: ask, tell, undo, refit."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.documents.checking import with_settings
from workbench.documents.projects import ProjectSettings
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.registry import Entry, trust_typed
from workbench.sessions.asking import LEASE_SECONDS
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.execution import Execution, operation_of
from workbench.sessions.finishing import Checks
from workbench.sessions.fitted_model import check_policy
from workbench.sessions.guess_sources import GuessSources
from workbench.sessions.instructions import InstructionSheet
from workbench.sessions.items import Items
from workbench.sessions.learner import Learner
from workbench.sessions.notebooks import session_html, session_words
from workbench.sessions.open_session import Family, OpenSession
from workbench.sessions.opening import create_project, project_settings
from workbench.sessions.operations import Acknowledgement, Operation, given_id, made_id
from workbench.sessions.part import Classes, Log, Part, Team
from workbench.sessions.predictions import Predictions
from workbench.sessions.question_names import QuestionNames
from workbench.sessions.queue import Queue
from workbench.sessions.reopening import open_pool
from workbench.sessions.rounds import Round
from workbench.sessions.spec import with_choice
from workbench.store import Ask, Event, ProjectRecord, ProjectState, Store

if TYPE_CHECKING:
    import pandas as pd

# Formats stand a floor higher and are found by name, as a classifier or a policy is.
_FILE = Entry("file", "workbench.exchange.exporting:export_to", "The project as a file")
_SHOWN = ("label", "status", "person", "time")


class Session(OpenSession):
    """A project opened by one annotator.

    Safe to use from several threads; several sessions of one project, in one process or in many,
    see each other's events. Nothing here blocks on a fit but `refit` itself: call that in a
    background thread whenever `stale` is true; `ask` meanwhile serves from the queue of the last fit.

    Build with `Session.create` or `Session.open`; `as_annotator` gives the session of somebody else on
    the same open project.

    Attributes:
        annotator: whose events this session records.
        fits: the models of the question: that of each round, and what it was made with.
    """

    # --- opening ------------------------------------------------------------------------------

    @classmethod
    @with_settings(ProjectSettings)
    def create(
        cls,
        pool: Pool | Any,
        *,
        source: str | None = None,
        target: str | None = None,
        pool_options: Mapping[str, Any] | None = None,
        owner: str = "",
        annotator: str | None = None,
        store: Store | None = None,
        **settings: Any,
    ) -> Session:
        """Start a project.

        Args:
            pool: a name, a file or a folder; or a DataFrame, an array, a list of texts or of paths, of which
                the project keeps a copy under the home folder. What is left open about columns and features
                is guessed as on the Data page. Or a Pool: one of what Python held is kept likewise, another
                is loaded again by its name, with `target` and `pool_options`.
            source: what `pool` was loaded from, where that is not its name.
            target: the column that holds the classes, for files.
            pool_options: further options of `load_pool`.
            owner: key of the person it belongs to, who alone may open it at first; open to all without.
            annotator: the user's login name unless given.
            store: the default database unless given.
            settings: as `workbench.documents.projects.ProjectSettings` has them; None leaves one as it is.

        Raises:
            InputError: a pool, classifier, option or policy that cannot be used, or no such setting.
        """
        store = store or Store.open()
        own_settings = project_settings(settings)
        record, loaded, answers = create_project(
            pool,
            own_settings,
            source=source,
            pool_options=dict(pool_options or {}) | ({} if target is None else {"target": target}),
            owner=owner,
            store=store,
        )
        trust_typed(own_settings.classifier, own_settings.policy, own_settings.options)
        session = cls._first(store, record, loaded, annotator)
        session._take_columns(answers)
        return session

    @classmethod
    def _first(cls, store: Store, record: ProjectRecord, pool: Pool, annotator: str | None) -> Session:
        family = Family(store, record, pool)
        return cls(family, family.first, annotator or _login())

    def _take_columns(self, answers: Mapping[str, Sequence[tuple[int, str]]]) -> None:
        """Take over what columns of the table answer, of all questions as one."""
        operation = made_id()

        def work() -> None:
            for name, pairs in answers.items():
                self.question(name).items.import_labels(pairs, self.pool.name, operation=operation)

        if answers:
            self.log.together(work, whole=True)

    @classmethod
    def open(
        cls,
        project: str,
        *,
        question: str | None = None,
        pool: Pool | None = None,
        annotator: str | None = None,
        store: Store | None = None,
    ) -> Session:
        """Go on with a project.

        Args:
            project: its id, or its name where no other is called so; or the id of one of its questions.
            question: the name of one; the first that is asked unless given.
            pool: the pool, where it is at hand; else it is loaded again as it was when the project
                was made.
            annotator: the user's login name unless given.
            store: the default database unless given.

        Raises:
            InputError: no such project, or several; or items of the pool were changed, removed or moved since
                (the message names them; nothing of the project is lost). Appended rows are taken in.
        """
        store = store or Store.open()
        question_record = store.named(project, question)
        record, loaded = open_pool(store, question_record.family, pool)
        first = cls._first(store, record, loaded, annotator)
        return first if question_record.id == first.id else first.question(question_record.id)

    # --- what it is about ---------------------------------------------------------------------

    @property
    def classes(self) -> Classes:
        """Names of the project's classes; positions are the codes."""
        return Classes(self.state.classes, self)

    @property
    def questions(self) -> QuestionNames[Self]:
        """Names of the questions that are asked, in their order."""
        return QuestionNames((q.question for q in self._family.listed() if not q.aside), self)

    @property
    def items(self) -> Items:
        """Items of the pool, and acts about those of one's own choosing."""
        return Items(self)

    @property
    def queue(self) -> Queue:
        """Questions to this annotator, and what is left to ask."""
        return Queue(self)

    @property
    def predictions(self) -> Predictions:
        """Predictions of the newest fit, and what they are worth."""
        return Predictions(self)

    @property
    def log(self) -> Log:
        """Everything that was done in the project."""
        return Log(self)

    @property
    def people(self) -> Team:
        """People who label the project."""
        return Team(self)

    @property
    def checks(self) -> Checks:
        """Checks of frozen labels, and the certificate that they earn."""
        return Checks(self)

    @property
    def guesses(self) -> GuessSources:
        """Guesses of the items before any label."""
        return GuessSources(self)

    @property
    def instructions(self) -> InstructionSheet:
        """Instructions for people who label, and examples of the classes."""
        return InstructionSheet(self)

    # --- the model ----------------------------------------------------------------------------

    def change_model(
        self,
        *,
        classifier: str | None = None,
        options: Mapping[str, Any] | None = None,
        policy: str | None = None,
    ) -> Event | None:
        """Go on with another classifier or policy; the project is stale until the next refit.

        Args:
            classifier: a registry name or "package.module:Class"; the present one unless given.
            options: of the classifier; the present ones where the classifier stays, else none.
            policy: a registry name or "package.module:function"; the present one unless given.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: a classifier, option or policy that cannot be used here.
        """

        def event_of(state: ProjectState, settings: Mapping[str, Any]) -> Event | None:
            # What the project's record names stays marked: only what is given here is vouched for.
            name, chooses = classifier or settings["classifier"], policy or settings["policy"]
            same = name == settings["classifier"]
            new_options = (
                dict(settings["options"]) if options is None and same else with_choice(name, options or {})
            )
            if same and new_options == dict(settings["options"]) and chooses == settings["policy"]:
                return None
            check_policy(chooses, name)
            Learner(self.pool, name, new_options, seed=int(settings["seed"]), classes=state.classes)
            trust_typed(classifier or "", policy or "", dict(options or {}))
            return Event.model_changed(classifier=name, options=new_options, policy=chooses)

        return Part(self)._change_settings(event_of)

    def refit(self, callback: FitCallback | None = None) -> Round | None:
        """Fit the model on the labels as they are now, score the pool and publish the result.

        Meant for a background thread. Works on a snapshot; what is told meanwhile is for the next
        refit. A second call at the same time waits for the first.

        Args:
            callback: (fraction, objective) -> True to stop the fit early.

        Returns:
            The round, or None when there are no labels of two classes yet and no guess. Its number is the
            next one at the moment it is stored, also when another program stored one during the fit.
        """
        return self.fits.refit(self.annotator, callback)

    # --- asking and answering -----------------------------------------------------------------

    def ask(self, k: int = 1, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """Questions for this annotator, best first.

        Items whose answer they took back come first, then questions of theirs that are still open (so
        a reload or a second tab shows the same item), then items that were set aside and asked for
        anew, then new ones. Never waits for a fit.

        Args:
            k: how many.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            At most k asks, recorded; fewer, or none, when little is left.
        """
        return [ask for item in self.queue.of([self], k, lease) for ask in item.asks.values()]

    def tell(
        self,
        ask: ItemAsk | Ask | str,
        event: Event | str | Mapping[str, Any],
        *,
        operation: str | None = None,
    ) -> bool:
        """Answer a question, or several about one item at once; durable before it returns.

        Args:
            ask: from `ask` or `queue.items`, or the id of a question.
            event: as of one question: a class name, or an event; or of several: name of a question -> class,
                True or False of a yes / no question, None for "cannot tell", or an event. To an item of
                `queue.items` also `Event.skip()`, `Event.flag(...)` and `Event.note(...)`, about it.
            operation: an id of the caller's: told again it is True, and nothing is repeated.

        Returns:
            True when all of it was recorded, or is what stands already. False when a question was answered
            before, or somebody else was asked: what is said of the others is recorded all the same.

        Raises:
            InputError: no such question or class, or an event that answers nothing.
        """
        request, questions = operation_of(self, ask, event, given_id(operation))
        acknowledgement = Execution(self).do(request, questions)
        return acknowledgement.status == "saved" and not acknowledgement.why

    def apply(self, operations: Sequence[Operation]) -> list[Acknowledgement]:
        """Carry out what an annotator did, in one transaction; durable before it returns.

        A skip, a flag and a note are about the item, whichever question is open; an undo takes back in all
        questions what was said at once.

        Args:
            operations: in the order in which they were done.

        Returns:
            One acknowledgement each, in the same order. One that fails leaves the others as they are.
        """
        return Execution(self).apply(operations)

    def undo(self, of: int | None = None) -> Event | None:
        """Take back the annotator's own last event, in all questions where it was said of several.

        Args:
            of: id of the event to take back, in whichever question; nothing happens when that is not of
                their last act any more, so that an undo sent twice takes one.

        Returns:
            What was taken back, or None.
        """
        if of is None:
            return Part(self)._do("undo").about
        states = self._project.log.states().values()
        tops = (state.undoable.get(self.annotator) for state in states)
        act = next((top.act for top in tops if top is not None and top.id == of), None)
        return None if act is None else Part(self)._do("undo", takes=act).about

    def redo(self) -> Event | None:
        """Put back what the annotator's last undo took; returns it, or None when there is nothing."""
        return Part(self)._do("redo").about

    # --- outputs ------------------------------------------------------------------------------

    @property
    def labels(self) -> pd.DataFrame:
        """The labelled items: id, their own columns, label, status, person and time; indexed by item."""
        table = self.items.to_pandas(what="labels")
        columns = list(table.columns[: table.columns.get_loc("label")])
        return table[columns + list(_SHOWN)]

    def export(self, format: str, path: str | Path, what: str = "labels", *, replace: bool = False) -> int:
        """Write the labels as a file, or the project as a bundle.

        Args:
            format: "csv", "parquet", "jsonl", "npz", "label-studio", "huggingface", "folders", "coco",
                "bundle", a folder with the project's whole history, "model", a folder for `load_model`,
                or "predictor", the model as a folder that needs NumPy alone.
            path: of the file or folder; folders above it are made.
            what: "labels", "everything", "predictions" or "history".
            replace: write over another file that is there; a file of a project's pool is never written.

        Returns:
            How many rows were written; of a folder, labels.

        Raises:
            InputError: no such format, one that cannot hold this pool, or a place that cannot be written or
                where something is.
        """
        return int(_FILE.load()(self, format, Path(path), what, replace=replace))

    def __repr__(self) -> str:
        return f"<{session_words(self)}>"

    def _repr_html_(self) -> str:
        return session_html(self)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"
