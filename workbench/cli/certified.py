"""`workbench finish`, `verify` and `audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from workbench.cli.operands import (
    IdColumn,
    OfQuestion,
    Project,
    Read,
    Replace,
    files_kept,
    parse_settings,
    project_named,
)
from workbench.errors import InputError
from workbench.shares import in_percent

if TYPE_CHECKING:
    from workbench.certificates import Certificate
    from workbench.exchange.auditing import Audit
    from workbench.sessions import Session
    from workbench.sessions.finish_state import FinishState


def verify_file(
    certificate: Annotated[Path, Argument(help="The certificate's JSON.")],
    labels: Annotated[Path, Argument(help="The labels it came with: a table with id, label, source.")],
    column: Annotated[str, Option("--column", help="Column of the labels.")] = "label",
    id: IdColumn = "id",
) -> None:
    """Recompute a certificate from it and the labels alone; exit code 0 where it holds, 1 where not."""
    from workbench.certificates import verify
    from workbench.exchange.auditing import read_certificate, read_finished

    verdict = verify(read_certificate(certificate), read_finished(labels, label=column, id=id))
    print(verdict.text())
    if not verdict.holds:
        raise Exit(1)


def audit_file(
    file: Annotated[Path, Argument(help="A table with a column of somebody's labels.")],
    column: Annotated[str, Option("--column", help="That column.")],
    error: Annotated[float, Option(help="Share of wrong labels one can live with.")] = 0.05,
    confidence: Annotated[float, Option(help="Of all attempts at this file together.")] = 0.95,
    id: IdColumn = "id",
    checks: Annotated[
        Path | None,
        Option(
            metavar="LIST",
            help="Write the next checks to this CSV, to be filled in; give the command again to read it.",
        ),
    ] = None,
    count: Annotated[int, Option(min=1, help="Checks a list has.")] = 100,
    truth: Annotated[
        str | None, Option(metavar="COLUMN", help="Answer from this column: a simulation.")
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Certificate and labels go here; beside FILE.")
    ] = None,
    per_class: Annotated[bool, Option("--per-class", help="Precision and recall of each class.")] = False,
    record: Annotated[
        Path | None, Option(metavar="FILE", help="The audit is kept here; in FILE.audit.json.")
    ] = None,
    read: Read = None,
) -> None:
    """Check a finished column at random, and certify how many labels are wrong at most; exit 1 where not.

    Without --checks or --truth, questions are asked here, one at a time.
    """
    from workbench.exchange.auditing import Audit, write_finished

    hidden = () if truth is None else (truth,)
    audit = Audit(
        file,
        column,
        error,
        confidence,
        id=id,
        kept=record,
        hidden=hidden,
        per_class=per_class,
        read=parse_settings(read, "--read"),
    )
    if truth is not None:
        _simulate(audit, truth)
    elif checks is not None:
        if checks.exists():
            print(f"{audit.read_list(checks)} new answers in {checks}.")
    else:
        _ask_here(audit)
    certificate = audit.certificate()
    print(certificate.sentence)
    if per_class:
        print(classes_text(certificate))
    if certificate.holds:
        for path in write_finished(
            audit, certificate, out or file.parent, protected=files_kept(file, record)
        ):
            print(path)
        return
    _say_next(audit, checks, count, [file, record])
    if checks is None or audit.hopeless:
        raise Exit(1)


def classes_text(certificate: Certificate) -> str:
    """Precision and recall of each class, a line each.

    Args:
        certificate: that states them.
    """
    if not certificate.classes:
        return "Nothing is certified yet, so nothing is said of its classes."
    lines = ["Of each class, all together, precision and recall:"]
    for bounds in certificate.classes:
        intervals = [
            "too few checks" if few else f"{in_percent(low)} to {in_percent(high)}"
            for few, (low, high) in zip(bounds.too_few, (bounds.precision, bounds.recall), strict=True)
        ]
        lines.append(
            f"  {bounds.name}: {intervals[0]}, {intervals[1]}  "
            f"({bounds.size:,} labels, {bounds.checks:,} checks)"
        )
    return "\n".join(lines)


def _simulate(audit: Audit, truth: str) -> None:
    while not audit.decided:
        item = audit.open(1)[0]
        audit.answer(item, audit.truth(truth, item), save=False)
    audit.save()


def _say_next(audit: Audit, checks: Path | None, count: int, inputs: list[Path | None]) -> None:
    n_checks, wrong, bound, to_go = audit.progress()
    if audit.hopeless:
        print(
            f"{wrong} of {n_checks} were called wrong, at most {in_percent(bound)} of all: more checks will "
            "not do. Mend the worst labels (with the column as a guess, Review lists what is likely wrong), "
            "then audit again."
        )
    elif to_go is not None:
        print(f"About {to_go:,} checks to go.")
    if checks is not None and audit.open(1):
        from workbench.writing import chosen_file

        # a list that is there was read above
        with chosen_file(checks, protected=files_kept(*inputs), replace=True) as file:
            file.write(audit.list_of_checks(count).encode())
        print(f"{checks} has the next checks: fill in the column answer (? where one cannot tell).")


def _ask_here(audit: Audit) -> None:
    if not sys.stdin.isatty():
        raise InputError("Nobody is here to ask. Give --checks LIST for a list to fill in, or a terminal.")
    names = audit.classes
    print("Answer without looking up the label. Enter a number or a name; ? cannot tell, q stops.")
    print("  ".join(f"{n} {name}" for n, name in enumerate(names, 1)))
    while not audit.decided:
        n_checks, wrong, bound, to_go = audit.progress()
        forecast = "" if to_go is None else f"; about {to_go} to go"
        print(f"\n{n_checks} checks, {wrong} wrong, at most {in_percent(bound)}{forecast}")
        item = audit.open(1)[0]
        for name, value in audit.shown(item).items():
            print(f"  {name}: {value}")
        answer = input("class: ").strip()
        if answer == "q":
            return
        if answer.isdecimal() and answer not in names and 1 <= int(answer) <= len(names):
            answer = names[int(answer) - 1]
        if answer and (answer in (*names, "?") or _is_meant(answer)):
            audit.answer(item, answer)


def _is_meant(answer: str) -> bool:
    return input(f"{answer} is a new class; take it? y/n: ").strip() == "y"


def finish_project(
    project: Project,
    error: Annotated[float, Option(help="Share of the machine's labels that may be wrong.")] = 0.05,
    confidence: Annotated[float, Option(help="Of the certificate.")] = 0.95,
    of: Annotated[str, Option(help="Whose labels: model, or column:NAME.")] = "model",
    start: Annotated[
        bool, Option("--start", help="Freeze what the machine would label, and begin the checks.")
    ] = False,
    forecast: Annotated[bool, Option("--forecast", help="Say what it is likely to cost.")] = False,
    next: Annotated[bool, Option("--next", help="Show the next check.")] = False,
    answer: Annotated[
        str | None,
        Option(metavar="CHECK=CLASS", help="Answer a check; a class of ? says that nobody can tell."),
    ] = None,
    certificate: Annotated[
        Path | None, Option(metavar="FILE", help="Write the certificate: .json or .html.")
    ] = None,
    per_class: Annotated[
        bool, Option("--per-class", help="Certify precision and recall of each class, too.")
    ] = False,
    person: Annotated[str | None, Option(help="Who answers; your login name unless given.")] = None,
    question: OfQuestion = None,
    replace: Replace = False,
) -> None:
    """Check at random what the machine would label, and write what it is worth; alone: the checks so far."""
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
        promised = in_percent(now.promise.error)
        return f"{counts}: {now.size:,} certified at {promised}. --certificate FILE writes it."
    if now.phase == "void":
        return now.why
    if now.phase == "failed":
        more = f" Label {now.advice:,} more where it is unsure and check again." if now.advice else ""
        promised, estimate = in_percent(now.promise.error), in_percent(now.estimate)
        return f"{counts}: not at {promised}, the estimate is {estimate}.{more}"
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
