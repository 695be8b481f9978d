"""`workbench questions`, `instructions`, `guess` and `people`: of a project that people label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from workbench.cli.operands import (
    OfQuestion,
    Project,
    Read,
    Replace,
    answers_in,
    files_kept,
    pairs,
    print_table,
    project_named,
    question_given,
    session_of,
)
from workbench.errors import InputError
from workbench.shares import in_percent

if TYPE_CHECKING:
    from workbench.sessions import Session


def questions(
    project: Project,
    add: Annotated[
        list[str] | None,
        Option(metavar="NAME[=CLASS,CLASS]", help="Ask one more, by yes or no unless it has classes."),
    ] = None,
    rename: Annotated[list[str] | None, Option(metavar="NAME=NAME", help="Call one otherwise.")] = None,
    archive: Annotated[
        list[str] | None, Option(metavar="NAME", help="Ask one no more; its answers stay.")
    ] = None,
    take_back: Annotated[
        list[str] | None, Option(metavar="NAME", help="Ask one again that was archived.")
    ] = None,
) -> None:
    """The questions that a project asks about each item, and changes to them."""
    session = session_of(project)
    for text in add or ():
        session.questions.add(question_given(text))
    for name, to in pairs(rename, "--rename").items():
        session.questions.rename(name, to)
    for name in archive or ():
        session.questions.archive(name)
    for name in take_back or ():
        session.questions.archive(name, on=False)
    rows = [
        (
            question.question,
            question.kind,
            ", ".join(session.question(question.id).classes[:8]),
            session.store.n_labelled(question),
            "archived" if question.aside else "asked",
            question.id,
        )
        for question in session.questions.every
    ]
    print_table(("question", "kind", "classes", "labels", "", "id"), rows)


def instructions(
    project: Project,
    source: Annotated[
        Path | None,
        Option("--from", metavar="FILE", help="Write them: Markdown, or another tool's file."),
    ] = None,
    version: Annotated[int | None, Option(help="Print an earlier version.")] = None,
    example: Annotated[
        list[str] | None,
        Option(metavar="CLASS=ID", help="Show this item as an example of the class."),
    ] = None,
    out: Annotated[Path | None, Option(help="Write text and pictures to this folder.")] = None,
    replace: Replace = False,
) -> None:
    """Instructions of a project: print them, write them, pick examples of classes."""
    from workbench.exchange.instructions import instruction_files
    from workbench.pools.instructions import read_instructions
    from workbench.sessions import Session
    from workbench.sessions.people import labelled_here
    from workbench.store import fold
    from workbench.writing import check_place, chosen_file

    examples = pairs(example, "--example")
    record, store = project_named(project)
    if source is not None or examples:
        session = Session.open(record.id, store=store)
        if source is not None:
            content = read_instructions(str(source))
            session.instructions.write(content.text, content.pictures)
        places = {str(key): item for item, key in enumerate(session.pool.items.ids)} if examples else {}
        for name, key in examples.items():
            if key not in places:
                raise InputError(f"Pool {session.pool.name!r} has no item {key!r}.")
            session.instructions.pick(places[key], name)
    state = fold(store.events(record.id))
    versions = state.instructions
    if version is not None and not 1 <= version <= len(versions):
        raise InputError(f"There is no version {version}; there are {len(versions)}.")
    number = len(versions) if version is None else version
    if not number or not (entry := versions[number - 1]).text:
        print(f"{record.name}: no instructions. Write them with --from FILE, or on the Label page.")
        return
    if out is not None:
        files = instruction_files(state, number)
        for path in files:
            check_place(out / path, protected=files_kept(source), replace=replace)
        for path, data in files.items():
            with chosen_file(out / path, protected=files_kept(source), replace=replace) as file:
                file.write(data)
        print(f"{record.name}: version {number} of the instructions in {out}")
        return
    print(f"{record.name}: version {number} of {len(versions)}, by {entry.annotator}, {entry.time[:16]}")
    if people := labelled_here(state):
        n = sum(state.version_read(person) >= len(versions) for person in people)
        print(f"{n} of {len(people)} who labelled have read the last version.")
    print(f"\n{entry.text}")


def guess(
    project: Project,
    add: Annotated[
        list[str] | None,
        Option(metavar="SOURCE", help="Begin with names, column:NAME, columns:p_* or llm:MODEL@ADDRESS too."),
    ] = None,
    off: Annotated[list[str] | None, Option(metavar="SOURCE", help="Use this one no more.")] = None,
    file: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="Predictions of another tool: id and prediction, maybe confidence.",
        ),
    ] = None,
    model: Annotated[Path | None, Option(help="A bundle whose model predicts this pool.")] = None,
    named: Annotated[
        list[str] | None,
        Option("--class", metavar="NAME=CLASS", help="What a name in --from stands for."),
    ] = None,
    read: Read = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what --from would do or llm: would send, and stop.")
    ] = False,
    question: OfQuestion = None,
) -> None:
    """Guesses of a project and their weights; add or switch off a source."""
    from shlex import quote as quoted

    from workbench.exchange.imports import plan_predictions
    from workbench.exchange.predictions import predictions_of
    from workbench.sessions.guessing import takes_guess, weight_words
    from workbench.sessions.people import picked_words

    renames = pairs(named, "--class")
    session = session_of(project, question)
    if file is not None:
        answer_file = answers_in(file, read)
        plan = plan_predictions(answer_file.content(), answer_file.name, session)
        print(f"{session.project.name}: {plan.words()}")
        for name, entry in plan.alike.items():
            if name not in renames:
                print(f"Class {name!r} may be {entry!r}: --class {quoted(f'{name}={entry}')}")
        if dry_run:
            return
        session.guesses.add(f"file:{file.name}", plan.said, renames)
    if model is not None:
        session.guesses.add(f"model:{model.resolve().name}", predictions_of(model, session.pool))
    models = [source for source in add or () if source.startswith("llm:")]
    add = [source for source in add or () if source not in models]
    if _ask_models(session, models, dry_run):
        return
    entries = list(session.settings.get("guesses") or ())
    sources = {str(entry["source"]) for entry in entries}
    for source in off or ():
        if source not in sources:
            raise InputError(
                f"The project does not begin with {source!r}. It has: {', '.join(sources) or 'none'}."
            )
    if add or off:
        guesses = [{**entry, "on": False} if entry["source"] in (off or ()) else entry for entry in entries]
        session.guesses.change([*guesses, *(entry for entry in add if entry not in sources)])
    n = 0 if session.model is None else session.model.n_labelled
    takes = takes_guess(session.settings["classifier"])
    rows = [
        (
            entry.source,
            "on" if entry.on else "off",
            "-" if entry.weight is None else f"{entry.weight:.2f}",
            weight_words(entry.weight, n, entry.on and takes),
            "-"
            if entry.agreement is None
            else f"{entry.agreement.right} of {entry.agreement.n}"
            f"{picked_words(entry.n_drawn, entry.agreement.n)}",
            "; ".join(entry.notes),
        )
        for entry in session.guesses.report()
    ]
    print_table(("source", "used", "weight", "trust", "right on labels", "notes"), rows)


def _ask_models(session: Session, sources: Sequence[str], dry_run: bool) -> bool:
    """Ask language models about the items, or say what would be sent; true where that is all."""
    from workbench.cli.runs import steps
    from workbench.exchange import language_model

    for source in sources:
        server = language_model.server_of(source, any_address=True)
        questions = language_model.questions_about(session)
        print(questions.words())
        if not dry_run:
            with steps(quiet=False) as report:
                answers = language_model.ask(server, questions, report)
            session.guesses.add(source, answers)
            language_model.forget(server)
    return dry_run and bool(sources)


def people(
    project: Project,
) -> None:
    """Agreement of the people of a project, and each person's own figures."""
    from workbench.sessions.people import people_report, shown_people
    from workbench.store import fold

    record, store = project_named(project)
    events = list(store.events(record.id))
    state = fold(events)
    report = people_report(state, events)
    print(report.words)
    if report.n_consensus:
        print(
            f"Consensus of {report.n_consensus:,} items: {report.n_other:,} not the majority's, "
            f"{report.n_open:,} too unsure to learn from; first guesses of the model count "
            f"{report.weight:.2f}."
        )
    if not report.people:
        return
    print_table(
        ("person", "labels", "shared", "agrees", "between", "takes for another", "seconds", "over time"),
        [
            (
                name,
                f"{figures.n_labels:,}",
                f"{figures.n_shared:,}",
                in_percent(figures.agreement, 0) if figures.n_shared else "-",
                f"{in_percent(figures.low, 0)} and {in_percent(figures.high, 0)}"
                if figures.n_shared
                else "-",
                "; ".join(f"{a} for {b} ({n})" for a, b, n in figures.confusions) or "-",
                "-" if math.isnan(figures.seconds) else f"{figures.seconds:.1f}",
                "-"
                if figures.drift is None
                else f"{in_percent(figures.drift[0], 0)}, then {in_percent(figures.drift[1], 0)}",
            )
            for name, figures in shown_people(report, bool(state.model.get("names_hidden")), record.id)
        ],
    )
