"""`workbench new`, `open`, `projects` and what moves a whole project or its labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from workbench.cli.operands import (
    Guess,
    OfQuestion,
    PoolSet,
    Project,
    Read,
    Replace,
    Set,
    Target,
    TrustCode,
    answers_in,
    check_out,
    done,
    feature_sets,
    parse_settings,
    parse_value,
    print_table,
    project_named,
    question_given,
    say_notes,
    session_of,
    typed,
    with_options,
    without_guesses,
)
from workbench.documents.projects import ProjectSettings
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.exchange.imports import ImportPlan, Votes
    from workbench.sessions import Session


@with_options(ProjectSettings)
def new_project(
    pool: Annotated[str, Argument(help="A name (see `workbench pools`), a file or a folder.")],
    target: Target = None,
    pool_set: PoolSet = None,
    classes: Annotated[
        list[str] | None,
        Option("--class", metavar="NAME", help="A class to start with; again for more."),
    ] = None,
    questions: Annotated[
        list[str] | None,
        Option(
            "--ask",
            metavar="NAME[=CLASS,CLASS]",
            help="A question, by yes or no unless it has classes; column:NAME for one that a column answers; "
            "again for more.",
        ),
    ] = None,
    options: Set = None,
    overlap: Annotated[str, Option(metavar="SHARE|worth")] = "0",
    guess: Guess = None,
    votes: Annotated[
        str | None,
        Option(
            metavar="item=COLUMN,person=COLUMN,class=COLUMN",
            help="Of a table with a row for each answer of a person to an item.",
        ),
    ] = None,
    twins: Annotated[
        bool, Option("--copies/--all", help="Ask about copies once, or about every item.")
    ] = True,
    **settings: Any,
) -> None:
    """Start a project that people label in the app."""
    from workbench.sessions import Session

    of_classifier = parse_settings(options)
    of_pool = parse_settings(pool_set, "--pool-set") | ({"target": target} if target else {})
    of_pool = without_guesses(pool, of_pool, guess)
    typed(settings["classifier"], settings["policy"], of_classifier, feature_sets(of_pool))
    of_pool, answers, left_out = _votes(pool, votes, of_pool) if votes else (of_pool, {}, "")
    session = Session.create(
        pool,
        pool_options=of_pool,
        classes=classes,
        questions=[question_given(text) for text in questions] if questions else None,
        options=of_classifier,
        overlap=parse_value(overlap),
        guess=None if guess is None else tuple(guess),
        twins=twins,
        **settings,
    )
    say_notes(session.pool)
    if left_out:
        print(left_out, file=sys.stderr)
    if answers:
        from workbench.exchange.imports import take_votes

        print(f"{take_votes(session, answers, Path(pool).name)}: workbench people {session.id}")
    with_classes = f", {len(session.classes)} classes" if session.classes else ""
    print(f"{session.project.name}: {len(session.pool):,} items{with_classes}, project {session.id}")
    if session.items.twins.n_groups:
        print(session.items.twins.say())
    sources = [str(entry["source"]) for entry in session.settings.get("guesses") or ()]
    if sources:
        print(
            f"It begins with a guess: {', '.join(sources)} "
            f"(workbench guess {session.id} shows what it is worth)."
        )


def _votes(pool: str, argument: str, options: dict[str, Any]) -> tuple[dict[str, Any], Votes, str]:
    """Options and answers of a table of votes, and what of it is left out."""
    from workbench.exchange.imports import table_of_votes

    columns = dict(pair.strip().partition("=")[::2] for pair in argument.split(","))
    if set(columns) != {"item", "person", "class"}:
        raise InputError(f"--votes takes item=COLUMN,person=COLUMN,class=COLUMN; got {argument!r}.")
    return table_of_votes(pool, columns["item"], columns["person"], columns["class"], options)


def open_project(
    bundle: Annotated[Path, Argument(help="A project's bundle: a folder or a zip.")],
    pool: Annotated[
        Path | None, Option(metavar="FILE", help="Where its pool lies here, unless the bundle has it.")
    ] = None,
    pool_set: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="What the bundle lacks: folder=PLACE (of pictures), features=embeddings:FILE, fetch=true.",
        ),
    ] = None,
    name: Annotated[str | None, Option(help="Of the project; the bundle's unless given.")] = None,
) -> None:
    """Make a project of the bundle of one, with all its history."""
    from workbench.exchange.projects import open_bundle

    options = parse_settings(pool_set, "--pool-set")
    record = open_bundle(bundle, pool=pool, pool_options=options, name=name)
    print(f"{record.name}: {record.n_labelled} labels, project {record.id}")


def projects() -> None:
    """List the projects in the database."""
    from workbench.store import Store

    store = Store.open()
    rows = []
    for p in store.projects():
        questions = [question for question in store.questions(p.id) if not question.aside]
        labels = ", ".join(f"{store.n_labelled(question)}" for question in questions)
        rows.append((p.id, p.name, p.pool["name"], len(questions), labels, p.created[:16], p.changed[:16]))
    print_table(("id", "name", "pool", "questions", "labels", "made", "changed"), rows)


def import_project(
    project: Project,
    file: Annotated[Path, Argument(help="Labels: columns id (or item) and label.")],
    format: Annotated[
        str | None, Option(help="csv, xlsx, parquet, jsonl, npz, label-studio, huggingface, coco.")
    ] = None,
    read: Read = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what it would do; change nothing.")] = False,
    yes: Annotated[
        bool, Option("--yes", help="Go on where labels change or classes are new, without asking.")
    ] = False,
    leave_out: Annotated[
        bool, Option("--leave-out", help="Go on without rows whose item the pool does not have.")
    ] = False,
    label: Annotated[str | None, Option(metavar="COLUMN", help="Of the labels, in a table.")] = None,
    question: OfQuestion = None,
    add_questions: Annotated[
        bool,
        Option("--add-questions", help="Names listed as tags that are no yes / no question become one."),
    ] = False,
) -> None:
    """Take labels made elsewhere into a project."""
    from workbench.exchange.answers import format_of
    from workbench.exchange.imports import plan_import, take_import
    from workbench.exchange.questions import plan_of_file

    session = session_of(project, question)
    answer_file = answers_in(file, read)
    data = answer_file.content()
    form = format or format_of(answer_file.name, data)
    plan = (plan_of_file if question is None else plan_import)(data, session, form, label or "")
    if plan.several:
        _import_answers(session, plan, file, data, form, dry_run, leave_out, add_questions, yes)
        return
    for note in plan.notes:
        print(note, file=sys.stderr)
    if dry_run or plan.differ or plan.classes:
        print(f"{session.project.name}: {plan.words()}")
        for name, class_name in plan.alike.items():
            print(f"Class {name!r} may be {class_name!r}.")
        for (_, item), (old_label, new_label) in list(plan.differ.items())[:20]:
            print(f"Item {session.pool.items.ids[item]}: {old_label} now, {new_label} in the file")
    if dry_run:
        if plan.unknown:
            print("Unknown: " + ", ".join(plan.unknown[:20]))
        return
    _check_known(plan.unknown, leave_out)
    if (plan.differ or (plan.classes and session.classes)) and not yes:
        _confirmed("Take them in?", "Labels would change, or classes are new. Nothing was imported")
    plan.chosen(leave_out_unknown=leave_out)  # or says why not, before anything is taken over
    _take_instructions(session, data, form)
    before = session.state.n_labelled
    take_import(session, plan, file.name, leave_out_unknown=leave_out)
    state = session.state
    print(
        f"{session.project.name}: {sum(plan.counts.values())} labels read, "
        f"{state.n_labelled - before} items newly labelled, {state.n_labelled} in all"
    )
    if plan.undecided:
        print(f"{plan.undecided:,} of them undecided, as people in the file differ: see History, Agreement")


def _confirmed(question: str, refusal: str) -> None:
    """Ask whether to go on; where nobody can answer, the refusal says that --yes does."""
    if not sys.stdin.isatty():
        raise InputError(f"{refusal}; --yes goes on.")
    typer.confirm(question, abort=True)


def _take_instructions(session: Session, data: bytes, form: str) -> None:
    """Begin with what a file of labels says of how to label, and say so."""
    from workbench.exchange.instructions import take_instructions

    if take_instructions(session, data, form):
        print(f"The file's instructions were taken over: workbench instructions {session.id} prints them.")


def _check_known(unknown: Sequence[str], leave_out: bool) -> None:
    """Refuse rows of items that the pool does not have, unless they are to be left out."""
    if unknown and not leave_out:
        raise InputError(
            f"The pool has no item {', '.join(unknown[:5])}. Nothing was imported; --leave-out goes on "
            "without such rows."
        )


def _import_answers(
    session: Session,
    plan: ImportPlan,
    file: Path,
    data: bytes,
    form: str,
    dry_run: bool,
    leave_out: bool,
    add: bool,
    yes: bool,
) -> None:
    """Answers to several questions, of which the file has a column each or a list of names."""
    from workbench.exchange.imports import take_import
    from workbench.exchange.questions import read_answers

    if n_changed := plan.changed:
        labels = "label" if n_changed == 1 else "labels"
        print(f"{session.project.name}: {n_changed:,} {labels} of the file: another than now, or a new class")
    if n_changed and not dry_run and not yes:
        _confirmed("Take them in?", "Labels would change, or classes are new. Nothing was imported")
    if plan.strange and add and not dry_run:
        for name in plan.strange:
            session.questions.add(name)
        plan = read_answers(data, session, form)
    if dry_run:
        print(f"{session.project.name}: {plan.words()}")
        if plan.strange:
            print("No yes / no question is called: " + ", ".join(plan.strange[:20]))
        return
    _check_known(plan.unknown, leave_out)
    _take_instructions(session, data, form)
    before = {name: session.question(name).state.n_labelled for name in plan.counts}
    take_import(session, plan, file.name, leave_out_unknown=leave_out)
    counts = [f"{session.question(name).state.n_labelled - n:,} {name}" for name, n in before.items()]
    print(f"{session.project.name}: newly labelled {', '.join(counts)}")


def export_project(
    project: Project,
    format: Annotated[
        str,
        Option(
            help="csv, csv-bom, xlsx, parquet, jsonl, npz, label-studio, huggingface, folders, coco, bundle "
            "or predictor."
        ),
    ] = "csv",
    what: Annotated[
        str,
        Option(
            help="labels, id-and-label, everything, predictions for the rest too, finished, or questions: "
            "all in one file (questions-predictions: with what is predicted)."
        ),
    ] = "labels",
    out: Annotated[Path | None, Option(help="File to write; texts are printed unless given.")] = None,
    question: OfQuestion = None,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """The labelled set of a project, its whole record (bundle), or its model for NumPy alone (predictor)."""
    from workbench.exchange.exporting import BUNDLE, PREDICTOR, export_to
    from workbench.exchange.labels import FORMATS, NEED_POOL, export_labels
    from workbench.exchange.questions import PREDICTED
    from workbench.exchange.rows import StoredLabels
    from workbench.sessions import Session

    typed(trust_code=trust_code)
    is_folder = format in (BUNDLE, PREDICTOR)
    if is_folder:
        if what != "labels":
            raise InputError(f"A {format} holds all that there is: leave --what out.")
    else:  # those are folders, and refuse what is there themselves
        check_out(out, replace=replace)
    record, store = project_named(project, question)
    session: Any
    try:
        session = Session.open(record.id, store=store)
    except InputError as error:
        if is_folder or format in NEED_POOL:
            raise
        session = StoredLabels.of(record.id, store)
        print(
            f"{error}\nWhat is exported are the labels alone, without the items' own columns.",
            file=sys.stderr,
        )
    n_labelled = session.state.n_labelled
    # the last fit does not know the labels that were imported
    if what == PREDICTED and isinstance(session, Session):
        session.questions.refit()
    elif (what == "predictions" or format == PREDICTOR) and getattr(session, "stale", False):
        session.refit()
    done(store, "exported", record, format if is_folder else f"{what}, {format}")
    if out is None:
        if is_folder:
            raise InputError(f"A {format} is a folder: say where with --out FOLDER.")
        if FORMATS.get(format, "") in (".xlsx", ".parquet", ".npz", ".zip"):
            raise InputError(f"{format} is no text: say where it goes with --out FILE{FORMATS[format]}.")
        sys.stdout.write(export_labels(session, format, what).decode("utf-8"))
        return
    n = export_to(session, format, out, what, replace=replace, store=store)
    if is_folder:
        print(f"{record.name}: {n if format == PREDICTOR else n_labelled} labels, {format} in {out}")
        return
    rows = "" if what == "labels" else f" among {n:,} rows"
    print(f"{record.name}: {n_labelled} labels{rows} in {out}")


def relocate(
    project: Project,
    file: Annotated[Path, Argument(help="Where the file or folder of its pool lies now.")],
) -> None:
    """Point a project at the new place of its pool, after checking that it is the same."""
    from workbench.sessions import opening

    record, store = project_named(project)
    new_record = opening.relocate(record.id, file, store=store)
    print(f"{new_record.name}: its pool is {new_record.pool['name']}")


def delete_project(
    project: Project, yes: Annotated[bool, Option("--yes", help="Without asking.")] = False
) -> None:
    """Delete a project with all its labels, for good; export them first."""
    from workbench.store.processes import is_served

    record, store = project_named(project)
    if is_served():
        raise InputError(
            "The app is running, and somebody may be labelling. Delete it there, or stop the app."
        )
    questions = store.questions(record.id)  # those put aside go, too
    n_labelled = sum(map(store.n_labelled, questions))
    if not yes:
        of = f" of all its {len(questions)} questions" if questions[1:] else ""
        _confirmed(f"Delete {record.name} with {n_labelled:,} labels{of} for good?", "Nothing was deleted")
    store.delete_project(record.id)
    done(store, "deleted", record, f"{n_labelled:,} labels")
    print(f"{record.name}: deleted, with {n_labelled:,} labels")


def backup(
    file: Annotated[Path, Argument(help="To write; must not be there yet.")],
) -> None:
    """A consistent copy of the database and of uploaded files, also while people label."""
    from workbench.store import Store

    n_files = Store.open().backup(file)
    print(f"All projects, runs and studies, and {n_files} uploaded file(s): {file}")


def restore(
    file: Annotated[Path, Argument(help="A copy that `workbench backup` wrote.")],
    replace: Annotated[
        bool, Option("--replace", help="Also where there are projects; they are put aside first.")
    ] = False,
) -> None:
    """Put a copy in the place of the database."""
    from workbench.store import Store

    aside = Store.open().restore(file, replace=replace)
    print(f"Restored {file}." + (f" What was there before: {aside}" if aside is not None else ""))
