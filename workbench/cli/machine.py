"""`workbench app`, and what there is on this machine: pools, classifiers, policies, help."""

import inspect
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from workbench.cli.operands import TrustCode, print_table, typed


def serve_app(
    address: Annotated[str, Option(help="Interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on.")] = 8501,
    browser: Annotated[bool, Option(help="Open a browser window.")] = True,
    max_upload_mb: Annotated[int | None, Option(help="Largest upload, in megabytes.")] = None,
    share: Annotated[
        bool, Option("--share", help="Listen on another address although there is no log-in.")
    ] = False,
    host_name: Annotated[
        list[str] | None,
        Option("--host-name", help="A further name people reach it by, such as a proxy's."),
    ] = None,
    log_in: Annotated[
        Path | None,
        Option("--log-in", help="How people log in: a file (workbench help teams)."),
    ] = None,
    base_path: Annotated[
        str, Option("--base-path", help="Path of the address below which it answers: /wb.")
    ] = "",
    trust_code: TrustCode = False,
) -> None:
    """Start the app and serve it until stopped."""
    from workbench.app.server import serve

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
    name: Annotated[str | None, Argument(help="Tell all about this one.")] = None,
    known: Annotated[bool, Option("--known", help="Also data sets known by name.")] = False,
) -> None:
    """List the pools there are."""
    if name is not None:
        _describe_pool(name)
        return
    from workbench.pools import POOLS

    rows: list[tuple[object, ...]] = [
        (p.name, p.kind, f"{p.n_items:,}", p.n_features, p.n_classes, p.summary) for p in POOLS.values()
    ]
    if known:
        from workbench.pools.datasets.catalogue import catalogue

        rows += [
            (
                e.full_name,
                "image" if e.group == "images" else "table",
                f"{e.n_items:,}",
                e.n_features,
                e.n_classes,
                f"here: {e.path}" if e.path else e.how,
            )
            for e in catalogue()
        ]
    print_table(("name", "kind", "items", "features", "classes", "what"), rows)


def _describe_pool(name: str) -> None:
    """One pool as it loads."""
    import numpy as np

    from workbench.pools import load_pool

    pool = load_pool(name)
    counts = "unknown"
    if pool.truth is not None and pool.has_truth:
        sizes = np.bincount(pool.truth[pool.truth >= 0], minlength=len(pool.classes))
        counts = ", ".join(f"{c} {n:,}" for c, n in zip(pool.classes, sizes.tolist(), strict=True))
    rows = [
        ("name", pool.name),
        ("title", pool.title),
        ("what", pool.description),
        ("kind", pool.kind),
        ("items", f"{len(pool):,}"),
        ("features", f"{pool.n_features:,}"),
        ("classes", counts),
        ("fingerprint", pool.fingerprint),
    ]
    print_table(("field", "value"), [(k, v) for k, v in rows if v])


def classifiers(
    name: Annotated[str | None, Argument(help="Tell its options.")] = None,
) -> None:
    """List the classifiers there are."""
    typed(name)
    if name is not None:
        _describe_classifier(name)
        return
    from workbench.classifiers import CLASSIFIERS

    rows = []
    for e in CLASSIFIERS.values():
        limits = [
            text
            for text, is_limited in (("two classes", e.binary_only), ("images", e.image_only))
            if is_limited
        ]
        uncertainty = "latents" if e.has_latent else "probabilities"
        rows.append((e.name, uncertainty, ", ".join(limits), e.cost, e.summary))
    print_table(("name", "gives", "only for", "cost of a fit", "what"), rows)


def _describe_classifier(name: str) -> None:
    """The options of a classifier, for --set."""
    from workbench.classifiers import CLASSIFIERS
    from workbench.registry import load_own

    entry = None if ":" in name else CLASSIFIERS[name]
    target = load_own(name, "classifier", "fit", "predict_proba") if entry is None else entry.load()
    fixed = {} if entry is None else entry.options
    if entry is not None:
        print(f"{entry.title}. {entry.summary} Source: {entry.source}.")
    parameters = inspect.signature(target).parameters.values()
    rows = [(p.name, "required" if p.default is p.empty else repr(p.default)) for p in parameters]
    print_table(("option", "default"), [row for row in rows if row[0] not in fixed])


def policies() -> None:
    """List the policies and batch selectors there are."""
    from workbench.policies import POLICIES

    rows = [(e.name, e.kind, ", ".join(sorted(e.needs)), e.summary, e.warning) for e in POLICIES.values()]
    print_table(("name", "kind", "needs", "what", "mind"), rows)


def help_page(
    page: Annotated[str | None, Argument(help="Such as teams or recipes/texts; the list without it.")] = None,
) -> None:
    """Print a page of help, or the list of them; the app has the same under Help."""
    from workbench.app.words import help

    if page is not None:
        content = help.read(page)
        typer.echo(f"# {content.title}\n\n{content.text}")
        return
    for group, pages in help.pages().items():
        typer.echo(f"{group}:")
        for entry in pages:
            typer.echo(f"  {entry.name:<24} {entry.title}")
