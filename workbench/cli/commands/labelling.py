"""Commands for a project's questions, people, instructions and guesses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.commands.options import OfQuestion, Replace


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("questions")(questions_command)
    app.command("instructions")(instructions_command)
    app.command("guess")(guess_command)
    app.command("people")(people)


def questions_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=CLASS,CLASS]", help="Ask one more, by yes or no unless it has classes."),
    ] = None,
    rename: Annotated[list[str] | None, typer.Option(metavar="NAME=NAME", help="Call one otherwise.")] = None,
    archive: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Ask one no more; its answers stay.")
    ] = None,
    take_back: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Ask one again that was archived.")
    ] = None,
) -> None:
    """The questions that a project asks about each item, and changes to them."""
    from workbench.cli.labels import change_questions

    change_questions(project, add or (), rename or (), archive or (), take_back or ())


def instructions_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Write them: Markdown, or another tool's file."),
    ] = None,
    version: Annotated[int | None, typer.Option(help="Print an earlier version.")] = None,
    example: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=ID", help="Show this item as an example of the class."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write text and pictures to this folder.")] = None,
    replace: Replace = False,
) -> None:
    """Instructions of a project: print them, write them, pick examples of classes."""
    from workbench.cli.instructions import show_or_write
    from workbench.cli.values import parse_settings

    picked = {name: str(value) for name, value in parse_settings(example or [], "--example").items()}
    show_or_write(project, source=source, version=version, examples=picked, out=out, replace=replace)


def guess_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Begin with names, column:NAME, columns:p_* too."),
    ] = None,
    off: Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="Use this one no more.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Predictions of another tool: id and prediction, maybe confidence.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A bundle whose model predicts this pool.")] = None,
    named: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME=CLASS", help="What a name in --file stands for."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what --file would do, and stop.")] = False,
    question: OfQuestion = None,
) -> None:
    """Guesses of a project and their weights; add or switch off a source."""
    from workbench.cli.labels import change_guesses
    from workbench.cli.values import parse_settings

    called = {name: str(value) for name, value in parse_settings(named or [], "--class").items()}
    change_guesses(
        project,
        add=add or (),
        off=off or (),
        file=file,
        model=model,
        named=called,
        dry_run=dry_run,
        question=question,
    )


def people(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
) -> None:
    """Agreement of the people of a project, and each person's own figures."""
    from workbench.cli.crowd import print_people

    print_people(project)
