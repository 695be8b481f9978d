"""`workbench verify` and `audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.operands import files_kept
from workbench.cli.options import Read
from workbench.cli.values import parse_settings
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.certificates import Certificate
    from workbench.exchange.auditing import Audit


def verify_file(
    certificate: Annotated[Path, typer.Argument(help="The certificate's JSON.")],
    labels: Annotated[Path, typer.Argument(help="The labels it came with: a table with id, label, source.")],
    column: Annotated[str, typer.Option("--column", help="Column of the labels.")] = "label",
    id: Annotated[
        str, typer.Option("--id", help="Column of the ids; without it rows count from 1 on.")
    ] = "id",
) -> None:
    """Recompute a certificate from it and the labels alone; exit code 0 where it holds, 1 where not."""
    from workbench.certificates import verify
    from workbench.exchange.finished_sets import read_certificate, read_finished

    verdict = verify(read_certificate(certificate), read_finished(labels, label=column, id=id))
    print(verdict.text())
    if not verdict.holds:
        raise typer.Exit(1)


def audit_file(
    file: Annotated[Path, typer.Argument(help="A table with a column of somebody's labels.")],
    column: Annotated[str, typer.Option("--column", help="That column.")],
    error: Annotated[float, typer.Option(help="Share of wrong labels one can live with.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Of all attempts at this file together.")] = 0.95,
    id: Annotated[
        str, typer.Option("--id", help="Column of the ids; without it rows count from 1 on.")
    ] = "id",
    checks: Annotated[
        Path | None,
        typer.Option(
            metavar="LIST",
            help="Write the next checks to this CSV, to be filled in; give the command again to read it.",
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Checks a list has.")] = 100,
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Answer from this column: a simulation.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Certificate and labels go here; beside FILE.")
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Precision and recall of each class.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The audit is kept here; in FILE.audit.json.")
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
        read=parse_settings(read or [], "--read"),
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
    _say_next(audit, checks, max(1, count), [file, record])
    if checks is None or audit.hopeless:
        raise typer.Exit(1)


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
            "too few checks" if few else f"{low:.1%} to {high:.1%}"
            for few, (low, high) in zip(bounds.too_few, (bounds.precision, bounds.recall), strict=True)
        ]
        lines.append(
            f"  {bounds.name}: {intervals[0]}, {intervals[1]}  "
            f"({bounds.labels:,} labels, {bounds.checks:,} checks)"
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
            f"{wrong} of {n_checks} were called wrong, at most {bound:.1%} of all: more checks will not do. "
            "Mend the worst labels (with the column as a guess, Review lists what is likely wrong), "
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
        print(f"\n{n_checks} checks, {wrong} wrong, at most {bound:.1%}{forecast}")
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
