"""`workbench predict` and `score`: what a saved model says of other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.commands.options import PoolSet, Replace, TrustCode


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("predict")(predict)
    app.command("score")(score)


def predict(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet, NPY or NPZ with the columns of the pool.")],
    model: Annotated[Path, typer.Option(help="A run's bundle, or its model folder.")],
    out: Annotated[Path | None, typer.Option(help="CSV to write; printed unless given.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """Classes of new rows by a saved model."""
    from workbench.cli.labels import predict_file
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    predict_file(file, model, out, probabilities, replace=replace)


def score(
    pool: Annotated[str, typer.Option(help="A name, a file, or a folder of Parquet files.")],
    model: Annotated[Path, typer.Option(help="A run's bundle, or its model folder.")],
    policy: Annotated[str, typer.Option(help="A name or package.module:function.")] = "margin",
    top: Annotated[int, typer.Option(help="How many items to print.")] = 100,
    pool_set: PoolSet = None,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write; printed unless given.")] = None,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """The items of a pool most worth asking about, best first."""
    from workbench.cli.labels import score_file
    from workbench.cli.values import feature_sets, parse_settings, typed

    options = parse_settings(pool_set or [], "--pool-set")
    typed(policy, feature_sets(options), trust_code=trust_code)
    score_file(
        pool,
        model,
        policy,
        top,
        options=options,
        seed=seed,
        scheduler=scheduler,
        out=out,
        replace=replace,
    )
