"""`workbench help`: a page of the documentation in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("help")(help_page)


def help_page(
    page: Annotated[
        str | None, typer.Argument(help="Such as teams or recipes/texts; the list without it.")
    ] = None,
) -> None:
    """Print a page of help, or the list of them; the app has the same under Help."""
    from workbench.app.words import help

    if page is not None:
        found = help.read(page)
        typer.echo(f"# {found.title}\n\n{found.text}")
        return
    for group, pages in help.pages().items():
        typer.echo(f"{group}:")
        for one in pages:
            typer.echo(f"  {one.name:<24} {one.title}")
