"""The commands: each reads its options and calls one function of the package."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Exit, Option
from typer.core import TyperGroup

from workbench.cli import access, certified, labelling, machine, models, projects, runs
from workbench.cli.doctor import doctor

COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Begin here": {
        "app": machine.serve_app,
        "help": machine.help_page,
        "doctor": doctor,
    },
    "A project that people label": {
        "new": projects.new_project,
        "projects": projects.projects,
        "import": projects.import_project,
        "guess": labelling.guess,
        "questions": labelling.questions,
        "instructions": labelling.instructions,
        "people": labelling.people,
        "finish": certified.finish_project,
        "export": projects.export_project,
        "open": projects.open_project,
        "relocate": projects.relocate,
        "delete": projects.delete_project,
    },
    "Labels made elsewhere": {
        "audit": certified.audit_file,
        "verify": certified.verify_file,
    },
    "Experiments and models": {
        "run": runs.run,
        "compare": runs.compare,
        "reproduce": runs.reproduce,
        "predict": models.predict,
        "score": models.score,
        "pools": machine.pools,
        "classifiers": machine.classifiers,
        "policies": machine.policies,
    },
    "A server, and what it keeps": {
        "access": access.access,
        "key": access.program_keys,
        "log": access.audit_log,
        "backup": projects.backup,
        "restore": projects.restore,
    },
}
"""Title of a group -> name on the command line -> function, in the order of `workbench --help`."""


class GroupedCommands(TyperGroup):
    """The commands by the titles of `COMMANDS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write them, in columns that begin at one place."""
        width = max(map(len, self.commands))
        for title, group in COMMANDS.items():
            rows = [
                (name, self.commands[name].get_short_help_str(formatter.width - width - 6)) for name in group
            ]
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


app = typer.Typer(
    cls=GroupedCommands,
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
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Label less and see why. Without a command: start the app on this machine."""
    if version:
        from workbench import __version__

        print(__version__)
        raise Exit
    if context.invoked_subcommand is None:
        machine.serve_app()


for group in COMMANDS.values():
    for name, command in group.items():
        app.command(name)(command)
