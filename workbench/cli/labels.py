"""`workbench predict`, `score`, `export`, `import` and `features`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.exchange import SavedModel
    from workbench.sessions import Session
    from workbench.store import ProjectSummary, Store


def predict_file(
    file: Path, model: Path, out: Path | None, probabilities: bool, *, replace: bool = False
) -> None:
    """Classes of the rows of a file, as CSV."""
    from workbench.exchange import load_model
    from workbench.exchange.files import csv_text
    from workbench.pools import read_rows
    from workbench.pools.cells import plain_text

    check_out(out, file, model, replace=replace)
    saved = load_model(model)
    given = read_rows(file)
    features = saved.features(given)
    mean, notes = saved.mean(given, features)
    for note in (*getattr(given, "attrs", {}).get("notes", ()), *notes):
        print(note, file=sys.stderr)
    P = saved.probabilities(features, mean)
    ids: list[list[object]] = [[] for _ in P]
    if hasattr(given, "columns"):  # as the pool has them, so that predictions can be a guess
        named = saved.id_column in given.columns
        ids = [[id] for id in (given[saved.id_column].map(plain_text) if named else range(len(P)))]
    columns = ["row", "prediction", "confidence", *(["id"] if any(ids) else [])]
    if probabilities:
        columns += [f"p({name})" for name in saved.classes]
    rows: list[list[object]] = []
    for i, (id, p) in enumerate(zip(ids, P.tolist(), strict=True)):
        code = max(range(len(p)), key=p.__getitem__)
        rows.append(
            [i, saved.classes[code], round(p[code], 6), *id]
            + ([round(x, 6) for x in p] if probabilities else [])
        )
    _deliver(csv_text(columns, rows), out, file, model, replace=replace)
    if out is not None:
        print(f"{len(rows)} rows, {saved.name} fitted on {saved.n_labelled} labels of {saved.pool}: {out}")


def score_file(
    pool: str,
    model: Path,
    policy: str,
    top: int,
    *,
    options: dict[str, Any],
    seed: int,
    scheduler: str | None,
    out: Path | None,
    replace: bool = False,
) -> None:
    """The best items of a pool by a policy, as CSV; items the run has labelled are left out."""
    from workbench.exchange import load_model
    from workbench.exchange.files import csv_text
    from workbench.policies.scan import score_pool

    check_out(out, pool, model, replace=replace)
    saved = load_model(model)
    if saved.guesses is not None:
        print("The items are scored without the guess that the model began with.", file=sys.stderr)
    source, feature_map = _source(pool, saved, options)
    labelled = _labelled_by(model, pool)
    found = score_pool(
        source,
        saved.estimator,
        policy,
        top,
        scheduler=scheduler,
        seed=seed,
        exclude=labelled,
        feature_map=feature_map,
    )
    rows = enumerate(zip(found.indices.tolist(), found.where, found.utilities.tolist(), strict=True), start=1)
    table = csv_text(("rank", "row", "where", "utility"), ((rank, *row) for rank, row in rows))
    _deliver(table, out, pool, model, replace=replace)
    for warning in found.warnings:
        print(warning, file=sys.stderr)
    if out is not None:
        without = f" ({len(labelled)} labelled ones left out)" if len(labelled) else ""
        print(f"{found.n_scored:,} rows scored by {policy}{without}; the best {len(found.indices)} in {out}")


def _source(pool: str, saved: SavedModel, options: dict[str, Any]) -> tuple[Any, Any]:
    """Rows to score: a pool with a name, or a file through the model's own feature map."""
    from workbench.pools import load_pool, seen_as_pixels
    from workbench.pools.features.pixels import ImageFeatureMap
    from workbench.pools.loading import is_named

    if is_named(pool):
        if Path(pool).exists():
            print(f"{pool} is the pool of that name; ./{pool} is what lies here.", file=sys.stderr)
        pixels = isinstance(saved.feature_map, ImageFeatureMap)
        found = load_pool(pool, **(seen_as_pixels(pool, options) if pixels else options))
        return replace(found, features=saved.as_seen(found.features)), None
    if not pool.strip() or not Path(pool).expanduser().exists():
        return load_pool(pool), None  # raises, and says what there is
    if options:
        raise InputError("--pool-set is for pools with a name; a file is read as the model knows it.")
    return pool, saved.seen_map


def _labelled_by(model: Path, pool: str) -> list[int]:
    """Items the run behind the model has labels of, where it ran on this very pool."""
    from workbench.exchange import labelled_items

    trained_on, items = labelled_items(model)
    same = trained_on == pool or (trained_on and Path(trained_on).resolve() == Path(pool).resolve())
    return items if same else []


def export_file(
    project: str,
    format: str,
    out: Path | None,
    what: str = "labels",
    question: str | None = None,
    *,
    replace: bool = False,
) -> None:
    """A project's labelled set, its bundle, or its model for NumPy alone."""
    from workbench.cli.audit import done
    from workbench.exchange import (
        FORMATS,
        StoredLabels,
        export_labels,
    )
    from workbench.exchange.exporting import BUNDLE, PREDICTOR, export_to
    from workbench.exchange.labels import NEED_POOL
    from workbench.sessions import Session

    if format not in (BUNDLE, PREDICTOR):  # these are folders, and refuse what is there themselves
        check_out(out, replace=replace)
    record, store = project_named(project, question)
    session: Any
    try:
        session = Session.open(record.id, store=store)
    except InputError as error:
        if format in (BUNDLE, PREDICTOR, *NEED_POOL):
            raise
        session = StoredLabels.of(record.id, store)
        print(
            f"{error}\nWhat is exported are the labels alone, without the items' own columns.\n"
            f"If the file has moved: workbench relocate {record.id} FILE",
            file=sys.stderr,
        )
    n_labelled = session.state.n_labelled
    done(store, "exported", record, format if format in (BUNDLE, PREDICTOR) else f"{what}, {format}")
    if out is None:
        if format in (BUNDLE, PREDICTOR):
            raise InputError(f"A {format} is a folder: say where with --out FOLDER.")
        if FORMATS.get(format, "") in (".xlsx", ".parquet", ".npz", ".zip"):
            raise InputError(f"{format} is no text: say where it goes with --out FILE{FORMATS[format]}.")
        sys.stdout.write(export_labels(session, format, what).decode("utf-8"))
        return
    n = export_to(session, format, out, what, replace=replace, store=store)
    if format in (BUNDLE, PREDICTOR):
        print(f"{record.name}: {n if format == PREDICTOR else n_labelled} labels, {format} in {out}")
        return
    rows = "" if what == "labels" else f" among {n:,} rows"
    print(f"{record.name}: {n_labelled} labels{rows} in {out}")


def start_project(pool: str, pool_options: dict[str, Any], **settings: Any) -> None:
    """A project on a pool, for people to label.

    Args:
        pool: a name, a file or a folder.
        pool_options: of `load_pool`.
        settings: of `Session.create`.
    """
    from workbench.cli.runs import say_notes
    from workbench.sessions import Session

    made = Session.create(pool, pool_options=pool_options, **settings)
    say_notes(made.pool)
    with_classes = f", {len(made.classes)} classes" if made.classes else ""
    print(f"{made.project.name}: {len(made.pool):,} items{with_classes}, project {made.id}")
    if made.twins.n_groups:
        print(made.twins.say())
    begun = [str(one["source"]) for one in made.settings.get("guesses") or ()]
    if begun:
        print(
            f"It begins with a guess: {', '.join(begun)} (workbench guess {made.id} shows what it is worth)."
        )


def open_file(
    bundle: Path, pool: Path | None, name: str | None, pool_options: Mapping[str, Any] | None = None
) -> None:
    """A project's bundle as a project."""
    from workbench.exchange import open_bundle

    made = open_bundle(bundle, pool=pool, pool_options=pool_options, name=name)
    print(f"{made.name}: {made.n_labelled} labels, project {made.id}")


def relocate_project(project: str, file: Path) -> None:
    """Point a project at the new place of its pool's file."""
    from workbench.sessions import Session

    record, store = project_named(project)
    moved = Session.relocate(record.id, file, store=store)
    print(f"{moved.name}: its pool is {moved.pool['name']}")


def import_file(
    project: str,
    file: Path,
    format: str | None,
    *,
    dry_run: bool = False,
    leave_out: bool = False,
    question: str | None = None,
    add_questions: bool = False,
) -> None:
    """Labels of a file into a project, or what that would do."""
    from workbench.exchange import plan_import
    from workbench.exchange.imports import format_of
    from workbench.exchange.instructions import take_instructions
    from workbench.exchange.questions import answers_several
    from workbench.pools.formats.files import File

    session = _open(project, question)
    data = File.of(file).content()
    form = format or format_of(file, data)
    if question is None and answers_several(data, session, form):
        _import_answers(session, file, data, form, dry_run, leave_out, add_questions)
        return
    plan = plan_import(data, session, form)
    if dry_run:
        print(f"{session.project.name}: {plan.words()}")
        for name, one in plan.alike.items():
            print(f"Class {name!r} may be {one!r}.")
        for item, (now, then) in list(plan.differ.items())[:20]:
            print(f"Item {session.pool.items.ids[item]}: {now} now, {then} in the file")
        if plan.unknown:
            print("Unknown: " + ", ".join(plan.unknown[:20]))
        return
    if plan.unknown and not leave_out:
        first = ", ".join(plan.unknown[:5])
        raise InputError(
            f"The pool has no item {first}. Nothing was imported; --leave-out goes on without such rows."
        )
    labels = plan.labels(leave_out_unknown=leave_out)
    if take_instructions(session, data, form):
        print(f"The file's instructions were taken over: workbench instructions {session.id} prints them.")
    before = session.state.n_labelled
    session.import_labels(labels, file.name)
    state = session.state
    print(
        f"{session.project.name}: {len(labels)} labels read, "
        f"{state.n_labelled - before} items newly labelled, {state.n_labelled} in all"
    )
    if plan.undecided:
        print(f"{plan.undecided:,} of them undecided, as people in the file differ: see History, Agreement")


def _import_answers(
    session: Session, file: Path, data: bytes, form: str, dry_run: bool, leave_out: bool, add: bool
) -> None:
    """Answers to several questions, of which the file has a column each or a list of names."""
    from workbench.exchange.questions import read_answers, take_answers

    answers = read_answers(data, session, form)
    if answers.strange and add and not dry_run:
        for name in answers.strange:
            session.add_question(name)
        answers = read_answers(data, session, form)
    if dry_run:
        print(f"{session.project.name}: {answers.words()}")
        if answers.strange:
            print("No yes / no question is called: " + ", ".join(answers.strange[:20]))
        return
    if answers.unknown and not leave_out:
        raise InputError(
            f"The pool has no item {', '.join(answers.unknown[:5])}. Nothing was imported; --leave-out goes "
            "on without such rows."
        )
    taken = take_answers(session, answers, file.name)
    print(f"{session.project.name}: newly labelled {', '.join(f'{n:,} {name}' for name, n in taken.items())}")


def change_questions(
    project: str,
    add: Sequence[str] = (),
    rename: Sequence[str] = (),
    archive: Sequence[str] = (),
    take_back: Sequence[str] = (),
) -> None:
    """Change which questions a project asks, and print them."""
    from workbench.cli.values import print_table

    session = _open(project)
    for given in add:
        session.add_question(question_given(given))
    for pair in rename:
        name, _, to = pair.partition("=")
        session.rename_question(name, to)
    for name in archive:
        session.archive_question(name)
    for name in take_back:
        session.archive_question(name, on=False)
    rows = [
        (
            one.question,
            one.kind,
            ", ".join(session.question(one.id).classes[:8]),
            session.store.n_labelled(one),
            "archived" if one.aside else "asked",
            one.id,
        )
        for one in session.every_question
    ]
    print_table(("question", "kind", "classes", "labels", "", "id"), rows)


def question_given(text: str) -> tuple[str, list[str]] | str:
    """NAME, a yes / no question, or NAME=CLASS,CLASS,..."""
    name, found, classes = text.partition("=")
    return (name, [one.strip() for one in classes.split(",") if one.strip()]) if found else name


def change_guesses(
    project: str,
    *,
    add: Sequence[str],
    off: Sequence[str],
    file: Path | None,
    model: Path | None,
    named: Mapping[str, str] | None = None,
    dry_run: bool = False,
    question: str | None = None,
) -> None:
    """Change a project's guesses where something is given, and print what each is worth."""
    from shlex import quote as quoted

    from workbench.cli.values import print_table
    from workbench.exchange import plan_predictions, predictions_of
    from workbench.pools.formats.files import File
    from workbench.sessions.guessing import takes_guess, weight_words
    from workbench.sessions.people import picked_words

    session = _open(project, question)
    if file is not None:
        plan = plan_predictions(File.of(file).content(), file.name, session)
        print(f"{session.project.name}: {plan.words()}")
        for name, one in plan.alike.items():
            if name not in (named or {}):
                print(f"Class {name!r} may be {one!r}: --class {quoted(f'{name}={one}')}")
        if dry_run:
            return
        session.add_guess(f"file:{file.name}", plan.said, named)
    if model is not None:
        session.add_guess(f"model:{model.resolve().name}", predictions_of(model, session.pool))
    now = list(session.settings.get("guesses") or ())
    known = {str(one["source"]) for one in now}
    for source in off:
        if source not in known:
            raise InputError(
                f"The project does not begin with {source!r}. It has: {', '.join(known) or 'none'}."
            )
    if add or off:
        kept = [{**one, "on": False} if one["source"] in off else one for one in now]
        session.change_guesses([*kept, *(one for one in add if one not in known)])
    n = 0 if session.model is None else session.model.n_labelled
    takes = takes_guess(session.settings["classifier"])
    rows = [
        (
            one.source,
            "on" if one.on else "off",
            "-" if one.weight is None else f"{one.weight:.2f}",
            weight_words(one.weight, n, one.on and takes),
            "-"
            if one.agreement is None
            else f"{one.agreement.right} of {one.agreement.n}{picked_words(one.n_drawn, one.agreement.n)}",
            "; ".join(one.notes),
        )
        for one in session.guess_report()
    ]
    print_table(("source", "used", "weight", "trust", "right on labels", "notes"), rows)


def _open(project: str, question: str | None = None) -> Session:
    from workbench.sessions import Session

    record, store = project_named(project, question)
    return Session.open(record.id, store=store)


def project_named(project: str, question: str | None = None) -> tuple[ProjectSummary, Store]:
    """The project with this id, or the only one with this name; by one of its questions where it is named."""
    from workbench.store import Store

    store = Store.open()
    return store.named(project, question), store


def files_kept(*inputs: Path | str | None) -> Iterator[Path | str | None]:
    """Paths that a command never writes: what it reads, and what the projects here need."""
    from workbench.store import Store
    from workbench.store.needed_files import files_in_use

    yield from inputs
    yield from files_in_use(Store.open())


def check_out(out: Path | None, *inputs: Path | str | None, replace: bool) -> None:
    """Refuse the place of a command's result before the work is done.

    Args:
        out: given by --out; None prints.
        inputs: files and folders that the command reads.
        replace: whether --replace was given.

    Raises:
        InputError: as `check_place`.
    """
    from workbench.writing import check_place

    if out is not None:
        check_place(out, protected=files_kept(*inputs), replace=replace)


def _deliver(text: str, out: Path | None, *inputs: Path | str, replace: bool) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    from workbench.writing import chosen_file

    with chosen_file(out, protected=files_kept(*inputs), replace=replace) as file:
        file.write(text.encode())
