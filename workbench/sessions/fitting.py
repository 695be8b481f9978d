"""Fit, measure, query: one turn of the loop, and the fits of a person's project."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints, items_and_codes
from workbench.classifiers import CLASSIFIERS
from workbench.errors import InputError
from workbench.policies import query
from workbench.policies.belief import Query
from workbench.progress import FitCallback
from workbench.registry import from_file
from workbench.sessions.asking import Questions
from workbench.sessions.drawing import QUERY, drawn, generator, query_among, scored_in_time, without
from workbench.sessions.fitted_model import LARGE_BYTES, FittedModel, Scored, asking_policy
from workbench.sessions.guessing import Guesses
from workbench.sessions.learner import Learner
from workbench.sessions.measure import held_out, measured_items, metrics_of, signs_of
from workbench.sessions.people import training_of
from workbench.sessions.project import OpenQuestion
from workbench.sessions.published import Made, Published
from workbench.sessions.rounds import Round
from workbench.sessions.sharing import SHARED_FROM, Beside, Common, led_by
from workbench.sessions.smoothing import NeighbourhoodBuild
from workbench.store import Event, ProjectState, fold
from workbench.store.database_errors import retried
from workbench.store.events import SOURCE
from workbench.work.memory import give_back

QUEUE = 10
_OF_NO_LOOK = {
    "twin",
    "imported",
    "confirmed",
    "map",
}  # roles of labels that nobody gave to the item by itself
_ROUNDS_BETWEEN = 50  # fits after which free memory goes back to the system

# Of the arrays stored with a fit; another number is another version's.
STATE_FORMAT = 1
_OURS = "session."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Turn:
    """Results of fit, measure, query.

    Attributes:
        model: the fitted one.
        figures: of a `Round`: n_test, error, nll, ...
        answer: of the policy; None where nothing is left to ask.
        seconds: wall time of "fit", "score" and "query".
    """

    model: FittedModel
    figures: Mapping[str, Any]
    answer: Query | None
    seconds: Mapping[str, float]


def fit_measure_query(
    learner: Learner,
    items: Ints,
    codes: Ints,
    *,
    number: int,
    previous: Mapping[str, Array] | None,
    held_out: tuple[Ints, Ints],
    probabilities: Callable[[FittedModel, Ints], Floats],
    ask: Callable[[FittedModel], Query | None],
    callback: FitCallback | None = None,
    beside: Beside | None = None,
    among: Ints | None = None,
    in_time: Callable[[FittedModel], FittedModel] = lambda model: model,
) -> Turn:
    """One turn of the loop, for an oracle and for people alike.

    Args:
        learner: of the pool.
        items: [n] labelled items.
        codes: [n] their class codes.
        number: of the round.
        previous: the last round's state to start from, or None.
        held_out: items [m] to measure on and their codes [m].
        probabilities: of the held-out items by the fitted model.
        ask: what is to be asked next; None where nothing is.
        callback: (fraction, objective) -> True to stop the fit early.
        beside: as in `Learner.fit`.
        among: items [m] that questions are chosen among; None for all that are open.
        in_time: limits a fitted model to the items that it scores in time.
    """
    model = learner.fit(items, codes, number=number, previous=previous, callback=callback, beside=beside)
    model = model if among is None else replace(model, among=among)  # nothing is computed from it yet
    began = perf_counter()
    model = in_time(model)
    rows, truth = (array[np.isin(held_out[0], model.in_time(held_out[0]))] for array in held_out)
    figures = metrics_of(truth, probabilities(model, rows) if rows.size else np.empty((0, 0)))
    scored = perf_counter()
    answer = ask(model)
    seconds = {"fit": model.seconds, "score": scored - began, "query": perf_counter() - scored}
    return Turn(model, figures, answer, seconds)


class Fits:
    """The fits of one project: the published one, and how another is made.

    Args:
        project: as this process has it open.
        questions: says which items can still be asked about.
        common: what the fits of the project's questions over this pool have in common.
        beside: the newest fits in this process of the yes / no questions that are asked beside this one, None
            for one that has none; empty where it is no such question.

    Attributes:
        project: as given.
        questions: as given.
        problem: why the last stored fit could not be taken up; "" where it could.
        guesses: what is known of the pool before any label.
        making: of the pool's graph of neighbours; of a small pool it is made within a fit.
    """

    def __init__(
        self,
        project: OpenQuestion,
        questions: Questions,
        common: Common,
        beside: Callable[[], Sequence[Published | None]],
    ) -> None:
        self.project = project
        self.questions = questions
        self.guesses = Guesses(project.pool)
        self._tried = -1
        self._epoch = project.log.epoch
        self._elsewhere = 0
        self._unsaved: tuple[Round, Published, ProjectState, str] | None = None
        self._restoring = threading.Lock()
        self._refitting = threading.Lock()
        self._learner: tuple[Any, Learner] | None = None
        self._common = common
        self._beside = beside
        self.making: NeighbourhoodBuild = common.making(int(project.record.settings["begun"]))
        split = project.pool.test
        self._test = frozenset() if split is None else frozenset(split.test.tolist())
        self._learnt: tuple[tuple[Any, ...], Mapping[int, int]] | None = None
        self._apart: tuple[tuple[Published, Any], bool] | None = None
        self.problem = ""

    def published(self, state: ProjectState | None = None) -> Published | None:
        """The newest fit, also one of another process; None before the first. Within a snapshot one."""
        state = self.project.state() if state is None else state
        newest = int(state.rounds[-1]["number"]) if state.rounds else -1
        log = self.project.log
        fit = log.fit(self.project.id)
        # others wait for this transaction; or whoever has another one made takes it up
        waits = log.is_writing or self._elsewhere
        if self._epoch == log.epoch and (waits or newest <= _number_of(fit)):
            return self._in_use(fit, state)  # without waiting for whoever takes up another
        with self._restoring:
            if self._epoch != log.epoch:  # what was fitted to another log
                self._take_up(None)
                self._tried, self._epoch, self._unsaved = -1, log.epoch, None
            if newest > max(self._tried, _number_of(self.present)):
                self._restore()
                self._tried = newest  # not where the database was out of reach: it is looked at again
            fit = self.present
            self._take_up(fit)
        return self._in_use(fit, state)

    def _in_use(self, fit: Published | None, state: ProjectState) -> Published | None:
        if fit is not None and len(state.trained_classes) < 2 and not self._chosen(state)["guess"]:
            return None  # what it started from was switched off, and labels alone make no model yet
        return fit

    @property
    def present(self) -> Published | None:
        """The newest fit that was taken up so far; never reads a stored one, so it takes no time."""
        return self.project.log.fits.get(self.project.id)

    def _take_up(self, fit: Published | None) -> None:
        self.project.log.take_up(self.project.id, fit)

    @property
    def fitted_with(self) -> Mapping[str, Any]:
        """Classifier, options and policy of the published fit; the present settings before the first."""
        published = self.published()
        return self.project.settings() if published is None else published.chosen

    def held_out(self) -> tuple[Ints, Ints]:
        """Items to measure on and their codes among the classes of `model`; never trained on.

        A merge or a new class since the fit changes none of the codes; items of classes that the model does
        not know are left out until it does. Before the first fit they are the project's codes.
        """
        project, state = self.project, self.project.state()
        return held_out(project.pool, state, project.record.settings, self.published(state))

    def is_stale(self) -> bool:
        """True if a refit would see labels, classes or settings that the published model has not seen."""
        state = self.project.state()
        inputs = self._chosen(state)
        published = self.published(state)
        if published is not None:
            return not published.is_of(state, inputs) or self._is_apart(state, published)
        if inputs["guess"] and not self.guesses.known_to_be_empty(inputs["guess"], state.classes):
            return True
        return self._names_two(state)

    def _names_two(self, state: ProjectState) -> bool:
        """True if labels that may be learnt from name two classes; the consensus of a fit may say less."""
        if len(state.trained_classes) < 2:
            return False
        exclusions = self._test | frozenset(self.project.twins.spread(state.evaluation))
        codes = (code for item, code in state.training.items() if item not in exclusions)
        first = next(codes, -1)
        return any(code != first for code in codes)

    def _is_apart(self, state: ProjectState, published: Published) -> bool:
        """Tell whether the model has learnt from a copy of an item that is measured on by now."""
        key, known = (published, state.evaluation), self._apart
        if known is None or any(a is not b for a, b in zip(known[0], key, strict=True)):
            copies = self.project.twins.spread(state.evaluation)
            known = self._apart = key, any(item in published.training for item in copies)
        return known[1]

    @contextmanager
    def made_elsewhere(self) -> Iterator[None]:
        """Within the block a fit is made by another process, and nobody but `take_up` takes it up."""
        with self._refitting:
            self._elsewhere += 1
            try:
                yield
            finally:
                self._elsewhere -= 1

    def take_up(self, made: Made, ready: Callable[[FittedModel], None] | None = None) -> bool:
        """Publish the stored fit that another process has made a moment ago.

        Args:
            made: its round, and what was computed of it there.
            ready: called with the model before anybody sees it.

        Returns:
            Whether it is another one than was published before.

        Raises:
            InputError: it cannot be read.
        """
        number = made.number
        with self._restoring:
            present = self.present
            if _number_of(present) >= number:
                return False
            self._restore(made, ready)
            self._tried = max(self._tried, number)
            if self.present is present:
                raise InputError(self.problem or f"Round {number} is not stored any more.")
            if number % _ROUNDS_BETWEEN == 0:
                give_back()
            return True

    def refit(self, annotator: str, callback: FitCallback | None = None) -> Round | None:
        """See `Session.refit`."""
        with self._refitting:
            if (unsaved := self._unsaved) is not None:
                # a fit that the database had no room or no time for: it is saved first, not made again
                stored_round = self._publish(*unsaved)
                self._unsaved = None
                if not self.is_stale():
                    return stored_round
            project = self.project
            state = project.state()
            training = self._training(state)
            inputs = self._chosen(state)
            learner = self._learner_of(inputs, state.classes)
            # a guess will do until there are labels of two classes
            if len(set(training.values())) < 2 and learner.mean is None:
                return None
            items, codes = items_and_codes(training)
            before = self.published(state)
            number = int(state.rounds[-1]["number"]) + 1 if state.rounds else 0
            warm = None
            if before is not None and before.keys == state.keys:
                same = ("classifier", "options", "guess")
                warm = before.model.state if all(before.chosen[k] == inputs[k] for k in same) else None
            sample = self._looked_at()
            measured = held_out(project.pool, state, project.record.settings)
            turn = fit_measure_query(
                learner,
                items,
                codes,
                number=number,
                previous=warm,
                held_out=measured,
                probabilities=lambda model, rows: (
                    # Pages show the whole pool, which a large one does not do at every fit.
                    model.probabilities_at(rows) if sample is not None else model.probabilities_kept(rows)
                ),
                ask=lambda model: self._query(model, state, inputs["policy"]),
                callback=callback,
                beside=self._led_by(training, inputs, before),
                among=self._among(state, number),
                in_time=lambda model: self._in_time(model, state, inputs["classifier"], measured[0]),
            )
            if turn.model.scored is not None:
                sample = turn.model.scored.items
            old = {} if before is None else before.training
            new = [i for i in training if i not in old]
            finished = Round(
                number=number,
                n_labelled=turn.model.n_labelled,
                queried=np.asarray(new, dtype=np.int64),
                labels=np.asarray([training[i] for i in new], dtype=np.int64),
                utilities=np.full(len(new), np.nan),
                seconds=turn.seconds,
                neighbours=turn.model.smoothing.strength,
                state=turn.model.state,
                signs=signs_of(turn.model, None if before is None else before.model, sample),
                **turn.figures,
            )
            queue: Ints = np.empty(0, dtype=np.int64)
            utilities: Floats = np.full(len(project.pool), np.nan)
            if turn.answer is not None:
                queue, utilities = turn.answer.indices, turn.answer.utilities
            unsaved = self._unsaved = (
                finished,
                Published(
                    turn.model, training, state.keys, inputs, queue, utilities, state.merged, state.learnable
                ),
                state,
                annotator,
            )
            stored_round = self._publish(*unsaved)
            self._unsaved = None
            return stored_round

    def model_at(self, number: int, state: Mapping[str, Array] | None = None) -> FittedModel:
        """The model of an earlier round.

        As it was, for the last round; earlier ones are fitted again on the labels they had, from
        cold, which may differ from what was shown then in the last digits.

        Args:
            number: of the round.
            state: of its model, where another process has fitted it again.

        Raises:
            InputError: there is no such round.
        """
        project, record = self.project, self._record(number)
        items, codes = self._training_of(record)
        learner = self._learner_of(self._chosen_in(record), tuple(record["classes"]))
        if state is not None:
            return learner.model(state, number, items, codes)
        snapshot = project.store.rounds.state(project.id, number)
        if snapshot is not None:
            model = self._stored(learner, snapshot[1], number, items, codes)
            if model is not None:
                return model
        return learner.fit(items, codes, number=int(record.get("stream", number)))

    def made_with(self, number: int) -> Mapping[str, Any]:
        """Classifier, options and policy of the fit of a round, which may have been changed since.

        Raises:
            InputError: there is no such round.
        """
        return self._chosen_in(self._record(number))

    # --- inside -------------------------------------------------------------------------------

    def _record(self, number: int) -> Mapping[str, Any]:
        project = self.project
        record = project.store.rounds.get(project.id, number)
        if record is None:
            raise InputError(f"Project {project.record.name!r} has no round {number}.")
        return record

    def _led_by(
        self, training: Mapping[int, int], inputs: Mapping[str, Any], previous: Published | None
    ) -> Beside | None:
        """Model that chooses the geometry, where there are enough yes / no questions to share one."""
        siblings = self._beside()
        if not training or len(siblings) + 1 < SHARED_FROM:
            return None
        return led_by(training, inputs, previous, siblings)

    def _training(self, state: ProjectState) -> Mapping[int, int]:
        """Labels that a model may learn from, and where several answered their consensus.

        Nothing of the test split, which may come with files of labels: they stay labels and are measured on
        by the pool's own truth. No copy of an item that is measured on; and of other copies one.
        """
        key, known = (state.training, state.votes, state.evaluation), self._learnt
        if known is None or any(a is not b for a, b in zip(known[0], key, strict=True)):
            known = self._learnt = key, self._learnable(state)
        return known[1]

    def _learnable(self, state: ProjectState) -> Mapping[int, int]:
        learnt, twins = training_of(state), self.project.twins
        exclusions = self._test | frozenset(twins.spread(state.evaluation))
        if not exclusions.isdisjoint(learnt):
            learnt = {item: code for item, code in learnt.items() if item not in exclusions}

        def is_persons(item: int) -> bool:
            vote = state.standing[item]
            return vote.annotator != SOURCE and vote.role not in _OF_NO_LOOK

        return twins.once(learnt, is_persons)

    @property
    def scores_all(self) -> bool:
        """True if a fit gives the class probabilities of every item of the pool."""
        return self._looked_at() is None

    def _looked_at(self) -> Ints | None:
        """Items whose predictions tell how a fit goes; None for all of them, as in all but large pools."""
        settings, pool = self.project.record.settings, self.project.pool
        limit = int(settings.get("measured", 0)) or int(settings.get("asked_among", 0))
        return measured_items(np.arange(len(pool)), self.questions.seed, limit) if limit else None

    def _chosen(self, state: ProjectState) -> dict[str, Any]:
        settings = self.project.settings(state)
        inputs = {name: settings[name] for name in ("classifier", "options", "policy")}
        return inputs | {"guess": self.guesses.chosen(settings, state)}

    def _chosen_in(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs of a round."""
        where = f"Project {self.project.record.name!r}"
        names = ("classifier", "options", "policy")
        inputs = {name: from_file(record[name], where) for name in names}
        return inputs | {"guess": dict(record.get("guess") or {})}

    def _learner_of(
        self, inputs: Mapping[str, Any], classes: tuple[str, ...], checked: bool = False
    ) -> Learner:
        key, known = (inputs["classifier"], inputs["options"], classes, inputs["guess"]), self._learner
        if known is None or known[0] != key:
            self.guesses.remember(self.project.settings())
            learner = Learner(
                self.project.pool,
                inputs["classifier"],
                inputs["options"],
                seed=self.questions.seed,
                classes=classes,
                cached=LARGE_BYTES,
                mean=self.guesses.mean(inputs["guess"], classes),
                making=self.making,
                common=self._common,
                checked=checked,
            )
            known = self._learner = key, learner
        return known[1]

    def _among(self, state: ProjectState, number: int) -> Ints | None:
        """The items that questions are chosen among in a round."""
        limit = int(self.project.record.settings.get("asked_among", 0))
        return drawn(self.questions.askable(state), self.questions.seed, number, limit)

    def _in_time(
        self, model: FittedModel, state: ProjectState, classifier: Any, measured: Ints
    ) -> FittedModel:
        """The model, limited to the items it scores in the time of an answer where nobody knows its speed."""
        if classifier in CLASSIFIERS.own:
            return model
        open_items = self.questions.askable(state) if model.among is None else model.among
        scored = scored_in_time(model, self.questions.seed, open_items, measured)
        if scored is None:
            return model
        return replace(model, scored=scored, among=np.intersect1d(open_items, scored.items))

    def _query(self, model: FittedModel, state: ProjectState, policy: str) -> Query | None:
        askable = self.questions.askable(state)
        if not askable.size:
            return None
        closed = without(self.project.pool.trainable, askable, len(self.project.pool))
        rng = generator(self.questions.seed, model.number, QUERY)
        policy = asking_policy(model, policy).policy
        k = min(QUEUE, askable.size)
        # what other questions ask comes between, so the queue of one need not be spread over the pool
        selector = "top" if model.beside else "auto"
        return query_among(model, model.among, closed, lambda belief: query(policy, belief, k, rng, selector))

    @retried
    def _publish(self, finished: Round, published: Published, state: ProjectState, annotator: str) -> Round:
        """Store a fit with all it was made from, and make it the published one.

        The training set is that of the events up to the last one the fit saw, which never change; so a
        round stands for itself, whatever else was stored meanwhile.
        """
        items, codes = published.model.items, published.model.codes
        utilities = published.utilities[published.queue].tolist()
        record = finished.to_json() | {
            "classes": list(state.classes),
            "keys": list(state.keys),
            "merged": dict(state.merged),
            **{name: published.chosen[name] for name in ("classifier", "options", "policy")},
            **({"guess": published.chosen["guess"]} if published.chosen["guess"] else {}),
            "stream": finished.number,
            "n_items": len(self.project.pool),
            "events": state.last_event,
            "training": _digest(items, codes),
            "votes": published.learnable,
            "queue": published.queue.tolist(),
            "queue_utilities": [None if np.isnan(u) else u for u in utilities],
        }
        assert finished.state is not None
        arrays = dict(finished.state) | {
            f"{_OURS}format": np.asarray(STATE_FORMAT),
            f"{_OURS}items": items,
            f"{_OURS}codes": codes,
        }
        if published.model.among is not None:
            arrays[f"{_OURS}among"] = published.model.among
        if published.model.scored is not None:
            arrays |= zip((f"{_OURS}scored", f"{_OURS}scores"), published.model.scored, strict=True)
        with self.project.recording() as transaction:
            number = transaction.add_round(record, arrays)
            names = ("n_labelled", "n_items", "n_test", "error", "nll", "brier", "ece")
            event = Event.round({"number": number, **{name: record[name] for name in names}})
            transaction.add(replace(event, annotator=annotator))
        if number != finished.number:
            # Another program stored a round while this one was fitted.
            finished = replace(finished, number=number)
            published = replace(published, model=replace(published.model, number=number))
        _ = published.ranked  # before anybody asks
        with self._restoring:
            if _number_of(self.present) < number:
                self._take_up(published)
                self._tried, self.problem = number, ""
        if number % _ROUNDS_BETWEEN == 0:
            give_back()
        return finished

    def _restore(
        self,
        fit: Made | None = None,
        ready: Callable[[FittedModel], None] | None = None,
    ) -> None:
        """Take up the newest stored fit, so that nobody waits after a restart.

        What cannot be restored leaves the project as it is, and stale. `fit` says what was computed of all
        items of a round; stored are the utilities of its queue.
        """
        project = self.project
        snapshot = project.store.rounds.state(project.id)
        if snapshot is None or _number_of(self.present) >= snapshot[0]:
            return
        number, arrays = snapshot
        record = project.store.rounds.get(project.id, number)
        assert record is not None
        project.log.check_length(int(record.get("n_items", 0)))
        is_scored = fit is not None and fit.number == number and fit.probabilities is not None
        try:
            items, codes = self._training_of(record, arrays)
            inputs = self._chosen_in(record)
            # what another process has scored it has made: an import of a hundred megabytes less
            learner = self._learner_of(inputs, tuple(record["classes"]), is_scored)
        except InputError as error:
            self.problem = str(error)
            return
        if fit is not None and (fit.number != number or fit.utilities.shape != (len(project.pool),)):
            fit = None  # of another round, or of a pool that has grown meanwhile
        model = self._stored(learner, arrays, number, items, codes, fit)
        if model is None:
            return
        queue = np.asarray(record["queue"], dtype=np.int64)
        utilities = np.full(len(project.pool), np.nan)
        queue_utilities = [np.nan if u is None else u for u in record["queue_utilities"]]
        utilities[queue] = np.asarray(queue_utilities, dtype=np.float64)
        if fit is not None:
            utilities = fit.utilities
        training = dict(zip(items.tolist(), codes.tolist(), strict=True))
        self.problem = ""
        if ready is not None:
            ready(model)
        keys, merged = tuple(record["keys"]), record.get("merged", {})
        votes = str(record.get("votes", ""))
        published = Published(model, training, keys, inputs, queue, utilities, merged, votes)
        _ = published.ranked  # before anybody asks
        self._take_up(published)

    def _stored(
        self,
        learner: Learner,
        arrays: Mapping[str, Array],
        number: int,
        items: Ints,
        codes: Ints,
        fit: Made | None = None,
    ) -> FittedModel | None:
        """The model of a stored state; None, with the reason in `problem`, where it cannot be read.

        That a state is another version's is said by its number alone. Any other failure is a fault of
        this program or of the disk: it is logged in full, and the fit is made again.
        """
        if arrays.get(f"{_OURS}format") != STATE_FORMAT:
            self.problem = "The last fit was stored by another version of the program."
            return None
        try:
            is_shared = len(self._beside()) + 1 >= SHARED_FROM
            predictions = (None, None) if fit is None else (fit.probabilities, fit.explained)
            model = learner.model(_theirs(arrays), number, items, codes, is_shared, *predictions)
            among, places, scores = (arrays.get(f"{_OURS}{name}") for name in ("among", "scored", "scores"))
            scored = None if places is None or scores is None else Scored(places, scores)
            return model if among is None else replace(model, among=np.asarray(among), scored=scored)
        except Exception as error:
            self.problem = f"The last fit cannot be read: {type(error).__name__}: {error}"
            _log.exception("Round %d of project %s cannot be restored", number, self.project.id)
            return None

    def _training_of(
        self, record: Mapping[str, Any], arrays: Mapping[str, Array] | None = None
    ) -> tuple[Ints, Ints]:
        """The training set of a round: items [n] and codes [n]."""
        if arrays is not None and f"{_OURS}items" in arrays:
            return np.asarray(arrays[f"{_OURS}items"]), np.asarray(arrays[f"{_OURS}codes"])
        project = self.project
        last = int(record["events"])
        state = fold(e for e in project.events() if e.id <= last)
        training = self._learnable(state)
        items, codes = items_and_codes(training)
        if _digest(items, codes) != record["training"]:
            raise InputError(f"The labels of round {record['number']} are not those it was fitted on.")
        return items, codes


def _number_of(fit: Published | None) -> int:
    """Number of a fit's round; -1 of none."""
    return -1 if fit is None else fit.model.number


def _digest(items: Ints, codes: Ints) -> str:
    pairs = np.ascontiguousarray(np.stack([items, codes]), dtype="<i8")
    return sha256(pairs.tobytes()).hexdigest()[:32]


def _theirs(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The classifier's own part of a stored state."""
    return {name: value for name, value in arrays.items() if not name.startswith(_OURS)}
