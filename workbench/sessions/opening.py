"""Beginning of a project, and the way back to its file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.classifiers import sees_pixels, title_of
from workbench.classifiers.protocols import NO_GUESS, supports_mean
from workbench.documents.checking import checked, plain
from workbench.documents.projects import ProjectSettings, QuestionSettings
from workbench.errors import InputError
from workbench.guesses import classes_in, columns_of, likely_columns, sources_of_columns
from workbench.pools import compare_fingerprints, load_pool, seen_as_pixels
from workbench.pools.loading import is_named, settled
from workbench.pools.neighbours.twins import Twins, twins_of
from workbench.pools.pool import Pool
from workbench.sessions.drawing import ASKED_AMONG
from workbench.sessions.fitted_model import MANY, check_policy
from workbench.sessions.guessing import checked_sources, takes_guess
from workbench.sessions.instruction_texts import begun_with
from workbench.sessions.learner import Learner
from workbench.sessions.measure import ENOUGH
from workbench.sessions.open_session import without_truth
from workbench.sessions.questions import Question, columns_in, is_column, several, with_columns
from workbench.sessions.reopening import pack
from workbench.sessions.spec import MEASURED, with_choice
from workbench.sessions.taxonomy import class_names
from workbench.store import LABEL, ONE_CLASS, Event, NewQuestion, ProjectRecord, Store
from workbench.store.events import SOURCE
from workbench.store.pool_files import keep_upload


def project_settings(settings: Mapping[str, Any]) -> ProjectSettings:
    """Settings of a new project, checked.

    Args:
        settings: name -> value; None stands for the default.

    Raises:
        InputError: a setting that there is not, or a value outside its limits.
    """
    values = {name: value for name, value in plain(settings).items() if value is not None}
    model = checked(ProjectSettings, values, "The project", wrong="cannot be made", part="setting")
    return model.model_copy(update=values)  # names of code stay marked as typed, or as read from a file


def create_project(
    pool: Pool | Any,
    settings: ProjectSettings,
    *,
    source: str | None,
    pool_options: Mapping[str, Any],
    owner: str,
    store: Store,
) -> tuple[ProjectRecord, Pool, dict[str, list[tuple[int, str]]]]:
    """Store a new project; the arguments are those of `Session.create`.

    Returns:
        The project, its pool, and the answers that columns hold: name of a question -> (item, class) pairs.
    """
    arguments, entries = _questions_given(settings.questions)
    columns = columns_in(arguments)
    classes, guess, name = settings.classes, settings.guess, settings.name
    if arguments and classes is not None:
        raise InputError("The classes are those of the questions: give each question its own.")
    first = entries[0] if entries and not is_column(arguments[0]) else Question(LABEL, kind=ONE_CLASS)
    if entries:
        classes = first.classes or None
        settings = settings.model_copy(
            update={
                "classifier": first.classifier or settings.classifier,
                "policy": first.policy or settings.policy,
                "options": first.options or settings.options,
            }
        )
    classifier, seed = settings.classifier, settings.seed
    if not isinstance(pool, Pool):
        pool, place, pool_options, guess = _brought(pool, pool_options, classifier, classes, guess, columns)
        source = source or place
    loaded = pool
    if source is None and loaded.held is not None:
        source, pool_options = _kept(loaded, name)
    answers: dict[str, list[tuple[int, str]]] = {}
    if columns:
        expanded, answers = with_columns(arguments, loaded)
        entries = several(expanded)
        first = entries[0]
        classes = first.classes or None
    reference = {"name": source or loaded.name, "options": settled(pool_options, loaded)}
    copies = twins_of(loaded) if settings.twins else None
    loaded = _split(loaded, copies, seed, settings.test_fraction)
    check_policy(settings.policy, classifier)
    if classes is None:
        # where nobody named classes and a guess does, they are those
        classes = loaded.classes or _classes_guessed(guess or (), loaded)
    if entries:
        _check_answered(first, loaded)
    names = class_names(classes)
    options = with_choice(classifier, settings.options)
    guesses = _checked_guesses(guess, Learner(loaded, classifier, options, seed=seed, classes=names), names)
    stored: dict[str, Any] = {
        **{setting: getattr(settings, setting) for setting in QuestionSettings.model_fields},
        "options": options,
        "begun": len(loaded),
        **_measuring(loaded, settings),
        **({"asked_among": ASKED_AMONG} if loaded.trainable.size > MANY else {}),
        **({"guesses": guesses} if guesses else {}),
        **({} if copies is None else {"twins": copies.document()}),
    }
    record = store.create_project(
        name or loaded.name,
        reference,
        stored,
        loaded.fingerprints,
        loaded.feature_map.to_json(),
        _first_events(first, names, loaded, str(reference["name"])),
        loaded.items.ids,
        owner,
        first.name,
        first.kind,
        [further_question(question, loaded, stored) for question in entries[1:]],
    )
    return record, loaded, answers


def _questions_given(questions: Sequence[Any] | None) -> tuple[list[Any], list[Question]]:
    """All of them, and those that are no column of the file."""
    if isinstance(questions, str):
        return [questions], several(questions)
    arguments = list(questions or ())
    return arguments, several([argument for argument in arguments if not is_column(argument)])


def _split(pool: Pool, copies: Twins | None, seed: int, test_fraction: float) -> Pool:
    """Items to measure on are kept apart where their classes are known, and no copy of one is learnt from."""
    # found once: also of a pool made by hand, and for the questions whose pool knows no classes
    groups = np.arange(len(pool)) if copies is None else copies.first
    pool = replace(pool, grouping=lambda _: groups)
    if pool.has_truth and pool.test is None and _measurable(pool, test_fraction):
        return pool.split(seed, test_fraction)
    return pool


def _checked_guesses(
    guess: Sequence[str | Mapping[str, Any]] | None, learner: Learner, names: Sequence[str]
) -> list[dict[str, Any]]:
    """The sources that fits start from, of a classifier that takes them."""
    guesses = checked_sources(guess or (), learner.pool, names)
    if guesses and not supports_mean(learner.estimator(0)):
        raise InputError(NO_GUESS.format(title_of(learner.classifier)))
    return guesses


def _check_answered(first: Question, pool: Pool) -> None:
    """Meaning of a pool's known classes: answers to the first question."""
    if pool.has_truth and first.classes and not set(first.classes) & set(pool.classes):
        raise InputError(
            f"The pool knows the answers to its first question: {', '.join(pool.classes[:5])}. Let a "
            "question with these classes, or with none, come first."
        )


def _measuring(pool: Pool, settings: ProjectSettings) -> dict[str, Any]:
    """Settings that say what the error is measured on: a test split, or a share of the questions."""
    if pool.test is None:
        return {"test": None} | ({} if settings.evaluation_share else {"early_share": 0.0})
    shares = {"evaluation_share": 0.0, "early_share": 0.0, "test": pack(pool.test, len(pool))}
    return shares | ({"measured": MEASURED} if pool.test.test.size > MEASURED else {})


def _first_events(question: Question, names: Sequence[str], pool: Pool, reference: str) -> list[Event]:
    """First events of a project's log: its question, its classes, and labels that came with the pool."""
    events = _in_words(question)
    events += [replace(Event.class_added(c), annotator=SOURCE) for c in names]
    if pool.truth is not None and (pool.truth < 0).any() and pool.has_truth:
        # Rows that come with a class need not be asked about: the person labels the others.
        labelled_items = pool.trainable[pool.truth[pool.trainable] >= 0]
        labels = [(int(i), pool.classes[pool.truth[i]]) for i in labelled_items]
        events.append(replace(Event.imported(labels, "the pool's own column"), annotator=SOURCE))
    if not is_named(reference):
        events += [replace(event, annotator=SOURCE) for event in begun_with(reference)]
    return events


def further_question(question: Question, pool: Pool, settings: Mapping[str, Any]) -> NewQuestion:
    """A question beside the first one of a project, as it is stored.

    Args:
        question: checked.
        pool: of the project.
        settings: of the first question, which this one takes its own from where it says nothing.

    Raises:
        InputError: no classes, or a model that cannot be used with them.
    """
    if not question.classes:
        raise InputError(f"The question {question.name!r} has no classes: name some, or make it yes / no.")
    classifier = question.classifier or str(settings["classifier"])
    same = classifier == settings["classifier"] and not question.options
    options = dict(settings["options"]) if same else dict(with_choice(classifier, question.options))
    policy = question.policy or str(settings["policy"])
    check_policy(policy, classifier)
    seed = int(settings["seed"])
    Learner(without_truth(pool), classifier, options, seed=seed, classes=tuple(question.classes))
    # what the first one is measured on, or begins with, says nothing about this one; copies are the pool's
    names = {*QuestionSettings.model_fields, "begun", "asked_among"}
    own_settings = {name: value for name, value in settings.items() if name in names}
    own_settings |= {"classifier": classifier, "options": options, "policy": policy, "test": None}
    if settings.get("test") is not None:
        shares = {"evaluation_share", "early_share"}
        own_settings |= QuestionSettings().model_dump(include=shares)
    events = [replace(Event.class_added(c), annotator=SOURCE) for c in question.classes]
    events = _in_words(question) + events
    return NewQuestion(question.name, question.kind, own_settings, tuple(events))


def _in_words(question: Question) -> list[Event]:
    words = " ".join(question.words.split())
    return [replace(Event.question_changed(words), annotator=SOURCE)] if words else []


def _brought(
    source: Any,
    options: Mapping[str, Any],
    classifier: str,
    classes: Sequence[str] | None,
    guess: Sequence[str | Mapping[str, Any]] | None,
    columns: Sequence[str] = (),
) -> tuple[Pool, str | None, Mapping[str, Any], Sequence[str | Mapping[str, Any]]]:
    """Pool that a person named or holds, opened as the app opens it.

    Returns:
        The pool, its name, options of `load_pool`, and the guesses: those said, else those that columns make
        whose names say so. Columns of guesses, and those that answer questions, are no features.
    """
    if isinstance(source, bytes):
        raise InputError("A project finds its file again: give the path of one, or a DataFrame.")
    pool_options, source_name = dict(options), None
    if isinstance(source, str | Path):
        source = source_name = _place_of(source)
        pool_options = seen_as_pixels(source_name, options) if sees_pixels(classifier) else pool_options
    pool = load_pool(source, **pool_options)
    if pool.uses is None:
        return pool, source_name, pool_options, guess or ()
    uses = _not_the_class(pool, classes)
    if uses:
        pool, pool_options = _with_uses(pool, source, pool_options, uses)
    assert pool.uses is not None
    names = [name for name, use in pool.uses.items() if use["use"] != "class"]
    decided_columns = {name for name, use in pool.uses.items() if not use.get("guessed")}
    if guess is None:
        candidates = [name for name in names if name not in decided_columns and name not in columns]
        likely = likely_columns(candidates, classes or pool.classes) if takes_guess(classifier) else []
        guess = sources_of_columns(likely)
    sources = [
        guess_source if isinstance(guess_source, str) else str(guess_source.get("source"))
        for guess_source in guess
    ]
    out = {
        name: {"use": "leave out"}
        for guess_source in sources
        for name in columns_of(guess_source, names)
        if name not in decided_columns and pool.uses[name]["use"] != "leave out"
    }
    out |= {name: {"use": "leave out"} for name in columns if name in pool.uses}
    if out:
        pool, pool_options = _with_uses(pool, source, pool_options, out)
    return pool, source_name, pool_options, guess


def _with_uses(
    pool: Pool, source: Any, options: Mapping[str, Any], uses: Mapping[str, Mapping[str, str]]
) -> tuple[Pool, dict[str, Any]]:
    """The pool read again with other uses of some columns, and the options it was read with."""
    current_options = settled(options if pool.held is None else pool.held.options, pool)
    new_options = {**current_options, "columns": {**current_options["columns"], **uses}}
    return load_pool(source, **new_options), new_options


def _not_the_class(pool: Pool, classes: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """The use as a feature of a column that was guessed to hold the classes and holds none of those named."""
    uses = (pool.uses or {}).items()
    of_class = next((name for name, use in uses if use["use"] == "class" and use.get("guessed")), None)
    if of_class is None or not classes or not pool.classes or set(classes) & set(pool.classes):
        return {}
    try:
        numbers = bool(np.isfinite([float(name) for name in pool.classes]).all())
    except ValueError:
        numbers = False
    return {
        of_class: {"use": "number", "empty": "median"} if numbers else {"use": "category", "empty": "own"}
    }


def _place_of(source: str | Path) -> str:
    """A name as it is; of a file or a folder the whole path, as the app may run in another folder.

    Raises:
        InputError: neither; says what there is.
    """
    if isinstance(source, str) and is_named(source):
        return source
    place = Path(source).expanduser() if str(source).strip() else None
    if place is None or not place.exists():
        load_pool(source)
    assert place is not None
    return str(place.resolve())


def _classes_guessed(guess: Sequence[str | Mapping[str, Any]], pool: Pool) -> Sequence[str]:
    """The classes of the first guess that names any."""
    sources = [source for source in guess if isinstance(source, str)]
    return next((names for source in sources if (names := classes_in(source, pool))), ())


def _kept(pool: Pool, name: str | None) -> tuple[str, dict[str, Any]]:
    """Store what a pool in memory was made of, so that its project opens again, also in the app."""
    origin = pool.held
    assert origin is not None
    path = keep_upload(f"{name or origin.stem}{origin.ending}", origin.data)
    return str(path), {key: value for key, value in origin.options.items() if key != "name"}


def _measurable(pool: Pool, fraction: float) -> bool:
    """True if a test split of the known items would be large enough to tell anything.

    Of a table with a few labels all are for learning; the error is measured on questions drawn for it.
    """
    assert pool.truth is not None
    n_known = int((pool.truth >= 0).sum())
    return n_known == len(pool) or fraction * n_known >= ENOUGH


def relocate(project_id: str, path: str | Path, *, store: Store | None = None) -> ProjectRecord:
    """Point a project at the new place of its pool's file.

    Args:
        project_id: of the project.
        path: of the file or folder now; or of the folder in which a file of the same name lies.
        store: the default database unless given.

    Returns:
        The project as it is stored now.

    Raises:
        InputError: no such project or file, or one whose items are not the project's.
    """
    store = store or Store.open()
    record = store.project(project_id)
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"There is no file {str(path)!r}.")
    inside = place / Path(record.pool["name"]).name
    name = str((inside if inside.is_file() else place).resolve())
    loaded = load_pool(name, **record.pool.get("options", {}))
    compare_fingerprints(record.fingerprints, loaded.fingerprints, name=name)
    store.update_project(
        project_id,
        pool=dict(record.pool) | {"name": name},
        fingerprints=loaded.fingerprints,
        item_ids=loaded.items.ids,
    )
    return store.project(project_id)
