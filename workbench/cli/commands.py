"""The commands: each reads its options and calls one function of the package."""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Exit, Option

from workbench.cli import access, certified, labelling, machine, models, projects, runs
from workbench.cli.doctor import doctor

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
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Label less and see why. Without a command: start the app on this machine."""
    if version:
        from workbench import __version__

        print(__version__)
        raise Exit
    if context.invoked_subcommand is None:
        machine.serve_app()


COMMANDS: dict[str, Callable[..., None]] = {
    "app": machine.serve_app,
    "pools": machine.pools,
    "classifiers": machine.classifiers,
    "policies": machine.policies,
    "doctor": doctor,
    "run": runs.run,
    "compare": runs.compare,
    "reproduce": runs.reproduce,
    "predict": models.predict,
    "score": models.score,
    "new": projects.new_project,
    "open": projects.open_project,
    "projects": projects.projects,
    "import": projects.import_project,
    "export": projects.export_project,
    "relocate": projects.relocate,
    "delete": projects.delete_project,
    "backup": projects.backup,
    "restore": projects.restore,
    "questions": labelling.questions,
    "instructions": labelling.instructions,
    "guess": labelling.guess,
    "people": labelling.people,
    "access": access.access,
    "key": access.program_keys,
    "log": access.audit_log,
    "verify": certified.verify_file,
    "audit": certified.audit_file,
    "help": machine.help_page,
    "finish": certified.finish_project,
}
"""Name on the command line -> function, in the order of `workbench --help`."""
for name, command in COMMANDS.items():
    app.command(name)(command)
