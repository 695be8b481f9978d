"""The commands: each reads its options and calls one function of the package."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli import certified, finishing, reading
from workbench.cli.commands import access, here, labelling, models, projects, runs

app = typer.Typer(
    name="workbench",
    help="Label less and see why.",
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Label less and see why. Without a command: start the app on this machine."""
    if version:
        from workbench import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        here.serve_app()


for group in (here, runs, models, projects, labelling, access, certified, reading, finishing):
    group.add_to(app)
