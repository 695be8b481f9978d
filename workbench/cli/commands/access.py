"""Who and what may open a project, and what was done with it."""

from __future__ import annotations

from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("access")(access)
    app.command("key")(program_keys)
    app.command("log")(audit_log)


def access(
    project: Annotated[str, typer.Argument(help="Id or name of a project.")],
    access: Annotated[str | None, typer.Argument(help="private, shared or open.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is to be; somebody who has logged in.")] = None,
    people: Annotated[
        list[str] | None, typer.Option("--with", help="Somebody it is shared with; again for more.")
    ] = None,
) -> None:
    """Show or change whose a project is and who may open it."""
    from workbench.cli.people import show_or_change

    show_or_change(project, access, owner, people or ())


def program_keys(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    person: Annotated[str | None, typer.Option(help="Make a key that stands for this person.")] = None,
    purpose: Annotated[str, typer.Option("--for", help="What the key is for, in a few words.")] = "",
    revoke: Annotated[str | None, typer.Option(metavar="ID", help="This key opens nothing any more.")] = None,
) -> None:
    """Keys with which programs label and ask over HTTP."""
    from workbench.cli.programs import change_keys

    change_keys(project, person, purpose, revoke)


def audit_log(
    project: Annotated[
        str | None, typer.Argument(help="Id or name, also of one that was deleted; all unless given.")
    ] = None,
    count: Annotated[int, typer.Option(help="So many of the last entries.")] = 100,
) -> None:
    """Who opened, exported, shared, deleted and uploaded what, and when; newest first."""
    from workbench.cli.people import print_audit

    print_audit(project, count)
