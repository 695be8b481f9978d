"""`workbench finish`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.options import Project, Replace
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.finish_state import FinishState


def finish_project(
    project: Project,
    error: Annotated[float, typer.Option(help="Share of the machine's labels that may be wrong.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Of the certificate.")] = 0.95,
    of: Annotated[str, typer.Option(help="Whose labels: model, or column:NAME.")] = "model",
    start: Annotated[
        bool, typer.Option("--start", help="Freeze what the machine would label, and begin the checks.")
    ] = False,
    forecast: Annotated[bool, typer.Option("--forecast", help="Say what it is likely to cost.")] = False,
    next: Annotated[bool, typer.Option("--next", help="Show the next check.")] = False,
    answer: Annotated[
        str | None,
        typer.Option(metavar="CHECK=CLASS", help="Answer a check; a class of ? says that nobody can tell."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the certificate: .json or .html.")
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Certify precision and recall of each class, too.")
    ] = False,
    person: Annotated[str | None, typer.Option(help="Who answers; your login name unless given.")] = None,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a project that asks several.")
    ] = None,
    replace: Replace = False,
) -> None:
    """Check at random what the machine would label, and write what it is worth; alone: the checks so far."""
    from workbench.cli.operands import project_named
    from workbench.sessions import Session

    acts = {"start": start, "forecast": forecast, "next": next, "answer": answer, "certificate": certificate}
    flags = [f"--{name}" for name, value in acts.items() if value]
    if len(flags) > 1:
        raise InputError(f"One thing at a time: give {flags[0]} or {flags[1]}.")
    record, store = project_named(project, question)
    session = Session.open(record.id, annotator=person, store=store)
    if forecast:
        _forecast(session, error, confidence, of)
    elif certificate is not None:
        _write(session, certificate, replace)
    elif answer is not None:
        _answer(session, answer)
    elif next:
        _show(session)
    elif not start:
        print(said(_state(session)))
    else:
        state = session.checks.start(error, confidence, of=of, per_class=per_class)
        print(f"Attempt {state.promise.attempt}: {state.frozen.size:,} labels are frozen. {said(state)}")


def _forecast(session: Session, error: float, confidence: float, of: str) -> None:
    from workbench.sessions.finish_state import census_words, is_census

    forecast = session.checks.forecast(error, confidence, of)
    print(forecast.sentence())
    if is_census(forecast.size, forecast.error, forecast.confidence):
        print(census_words(forecast.size, forecast.error, forecast.confidence))


def said(now: FinishState) -> str:
    """State of the checks, in a line."""
    counts = f"{now.checks:,} checks, {now.wrong:,} called wrong; {now.promise.words('them', now.bound)}"
    looks = now.second_looks
    if looks.made:
        counts += f"; {looks.disagreed:,} of {looks.made:,} second looks disagreed"
    if now.phase == "certified":
        return f"{counts}: {now.size:,} certified at {now.promise.error:.1%}. --certificate FILE writes it."
    if now.phase == "void":
        return now.why
    if now.phase == "failed":
        more = f" Label {now.advice:,} more where it is unsure and check again." if now.advice else ""
        return f"{counts}: not at {now.promise.error:.1%}, the estimate is {now.estimate:.1%}.{more}"
    return f"{counts}; {now.to_go_words}. --next shows the next check."


def _state(session: Session) -> FinishState:
    state = session.checks.state()
    if state is None:
        raise InputError(
            "No checks were started. --start freezes the labels and begins; --forecast tells the cost."
        )
    return state


def _show(session: Session) -> None:
    state = _state(session)
    ask = session.checks.next() if state.phase == "checking" else None
    if ask is None:
        print(said(state))
        return
    content, hidden = session.pool.items.show(ask.item), session.checks.hidden_columns()
    row = {name: value for name, value in (content.row or {}).items() if str(name) not in hidden}
    text = content.text or ", ".join(f"{name}: {value}" for name, value in row.items())
    print(f"{ask.id} {session.pool.items.ids[ask.item]} {text}".rstrip())
    print(f"Classes: {', '.join(session.classes)}. Answer with --answer {ask.id}=CLASS")


def _answer(session: Session, answer: str) -> None:
    ask, _, label = answer.partition("=")
    if not ask or not label:
        raise InputError("An answer is CHECK=CLASS, as --next shows it; a class of ? says nobody can tell.")
    if not session.checks.answer(ask, None if label == "?" else label):
        raise InputError(f"Check {ask} was answered before, or somebody else has it on screen.")
    print(said(_state(session)))


def _write(session: Session, file: Path, replace: bool) -> None:
    from workbench.cli.certified import classes_text
    from workbench.cli.operands import files_kept
    from workbench.writing import chosen_file

    certificate = session.checks.certificate()
    if certificate is None:
        raise InputError(f"Nothing is certified yet: {said(_state(session))}")
    text = certificate.to_html() if file.suffix.lower() in (".html", ".htm") else certificate.to_json()
    with chosen_file(file, protected=files_kept(), replace=replace) as out:
        out.write(text.encode())
    print(certificate.sentence)
    if certificate.class_sizes:
        print(classes_text(certificate))
