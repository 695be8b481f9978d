"""`workbench app`, and what there is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.commands.options import TrustCode


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("app")(serve_app)
    app.command("pools")(pools)
    app.command("classifiers")(classifiers)
    app.command("policies")(policies)
    app.command("doctor")(doctor)


def serve_app(
    address: Annotated[str, typer.Option(help="Interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    max_upload_mb: Annotated[int | None, typer.Option(help="Largest upload, in megabytes.")] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Listen on another address although there is no log-in.")
    ] = False,
    host_name: Annotated[
        list[str] | None,
        typer.Option("--host-name", help="A further name people reach it by, such as a proxy's."),
    ] = None,
    log_in: Annotated[
        Path | None,
        typer.Option("--log-in", help="How people log in: a file (workbench help teams)."),
    ] = None,
    base_path: Annotated[
        str, typer.Option("--base-path", help="Path of the address below which it answers: /wb.")
    ] = "",
    trust_code: TrustCode = False,
) -> None:
    """Start the app and serve it until stopped."""
    from workbench.app.server import serve
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    serve(
        address,
        port,
        open_browser=browser,
        max_upload_mb=max_upload_mb,
        share=share,
        host_names=host_name or (),
        secrets=log_in,
        base_path=base_path,
    )


def pools(
    name: Annotated[str | None, typer.Argument(help="Tell all about this one.")] = None,
    known: Annotated[bool, typer.Option("--known", help="Also data sets known by name.")] = False,
) -> None:
    """List the pools there are."""
    from workbench.cli.lists import describe_pool, list_pools

    list_pools(known) if name is None else describe_pool(name)


def classifiers(
    name: Annotated[str | None, typer.Argument(help="Tell its options.")] = None,
) -> None:
    """List the classifiers there are."""
    from workbench.cli.lists import describe_classifier, list_classifiers
    from workbench.cli.values import typed

    typed(name)
    list_classifiers() if name is None else describe_classifier(name)


def policies() -> None:
    """List the policies and batch selectors there are."""
    from workbench.cli.lists import list_policies

    list_policies()


def doctor() -> None:
    """Check this installation: versions, folders, browser, threads, one tiny fit."""
    from workbench.cli.doctor import examine

    if not examine():
        raise typer.Exit(1)
