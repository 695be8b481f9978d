"""`workbench verify` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("verify")(verify_file)


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
    from workbench.exchange.finished import read_certificate, read_finished

    verdict = verify(read_certificate(certificate), read_finished(labels, label=column, id=id))
    print(verdict.text())
    if not verdict.holds:
        raise typer.Exit(1)
