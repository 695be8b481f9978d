"""`workbench predict` and `score`: predictions of a saved model for other rows, and the rows to ask about."""

from __future__ import annotations

import sys
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from workbench.cli.operands import (
    Model,
    OutTable,
    PoolSet,
    Read,
    Replace,
    Seed,
    TrustCode,
    check_out,
    deliver,
    feature_sets,
    parse_settings,
    typed,
)
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.exchange.models import SavedModel

_BESIDE = 10  # classes up to which probabilities stand beside the prediction


def predict(
    file: Annotated[Path, Argument(help="CSV, Parquet, NPY or NPZ with the columns of the pool.")],
    model: Model,
    out: OutTable = None,
    probabilities: Annotated[bool, Option("--probabilities", help="Add a column for each class.")] = False,
    read: Read = None,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """Classes of new rows by a saved model."""
    from workbench.csv_writing import csv_text

    typed(trust_code=trust_code)
    check_out(out, file, model, replace=replace)
    saved, options = _model(model, read)
    chances_path = out if probabilities and len(saved.classes) > _BESIDE else None
    if chances_path is not None:
        chances_path = chances_path.with_name(f"{chances_path.stem}-probabilities.csv")
        check_out(chances_path, file, model, replace=replace)
    raw_rows, names = _rows_and_ids(file, saved, options)
    features = saved.features(raw_rows)
    mean, notes = saved.mean(raw_rows, features)
    for note in (*getattr(raw_rows, "attrs", {}).get("notes", ()), *notes):
        print(note, file=sys.stderr)
    P = saved.probabilities(features, mean)
    ids = [[]] * len(P) if names is None else [[name] for name in names]
    id_column = [] if names is None else ["id"]
    chances = [[round(p, 6) for p in row] for row in P.tolist()] if probabilities else [[]] * len(P)
    of_class = [f"p({name})" for name in saved.classes] if probabilities else []
    if chances_path is not None:
        table = csv_text(["row", *id_column, *of_class], ([i, *ids[i], *p] for i, p in enumerate(chances)))
        deliver(table, chances_path, file, model, replace=replace)
        chances, of_class = [[]] * len(P), []
    best = P.argmax(axis=1).tolist()
    rows = [
        [i, saved.classes[code], round(float(P[i, code]), 6), *ids[i], *chances[i]]
        for i, code in enumerate(best)
    ]
    columns = ["row", "prediction", "confidence", *id_column, *of_class]
    deliver(csv_text(columns, rows), out, file, model, replace=replace)
    if out is not None:
        print(f"{len(rows)} rows, {saved.name} fitted on {saved.n_labelled} labels of {saved.pool}: {out}")
    if chances_path is not None:
        print(f"{len(saved.classes)} probabilities a row: {chances_path}")


def _model(folder: Path, read: list[str] | None) -> tuple[SavedModel, dict[str, Any]]:
    """A saved model as it takes rows that are read so, and the options of reading."""
    from workbench.exchange.models import load_model
    from workbench.pools.features.table import TableFeatureMap

    saved, options = load_model(folder), parse_settings(read, "--read")
    if options.get("decimal") and isinstance(saved.feature_map, TableFeatureMap):
        saved = changed(saved, feature_map=saved.feature_map.written_with(str(options["decimal"])))
    return saved, options


def _rows_and_ids(file: Path, saved: SavedModel, options: dict[str, Any]) -> tuple[Any, list[str] | None]:
    """The rows of a file and the ids that a pool of it has, so that predictions can be a guess."""
    from workbench.pools import load_pool, read_rows
    from workbench.pools.cells import plain_text
    from workbench.pools.features.numbers import ImageFeatureMap
    from workbench.pools.features.shapes import ShapesFeatureMap
    from workbench.pools.images.photos import PhotoItems

    rows = read_rows(file, like=saved.reading, **options)
    if not hasattr(rows, "columns"):
        return rows, list(rows.paths) if hasattr(rows, "paths") else None
    if isinstance(saved.feature_map, ImageFeatureMap | ShapesFeatureMap):
        pool = load_pool(file, **options)
        if not isinstance(pool.items, PhotoItems):
            raise InputError(f"The model learnt from pictures, and no column of {file} names some.")
        return pool.items.photos, list(pool.items.ids)
    has_ids = saved.id_column in rows.columns
    ids = rows[saved.id_column].map(plain_text) if has_ids else map(str, range(len(rows)))
    return rows, list(ids)


def score(
    pool: Annotated[str, Option(help="A name, a file, or a folder of Parquet files.")],
    model: Model,
    policy: Annotated[str, Option(help="A name or package.module:function.")] = "margin",
    top: Annotated[int, Option(help="How many items to print.")] = 100,
    pool_set: PoolSet = None,
    read: Read = None,
    seed: Seed = 0,
    scheduler: Annotated[str | None, Option(help="Address of a Dask scheduler.")] = None,
    out: OutTable = None,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """The items of a pool most worth asking about, best first."""
    from workbench.csv_writing import csv_text
    from workbench.policies.scan import score_pool

    options = parse_settings(pool_set, "--pool-set")
    typed(policy, feature_sets(options), trust_code=trust_code)
    check_out(out, pool, model, replace=replace)
    saved, of_reading = _model(model, read)
    if saved.guesses is not None:
        print("The items are scored without the guess that the model began with.", file=sys.stderr)
    source, feature_map = _source(pool, saved, options)
    labelled = _labelled_by(model, pool)
    ranking = score_pool(
        source,
        saved.estimator,
        policy,
        top,
        scheduler=scheduler,
        seed=seed,
        exclude=labelled,
        feature_map=feature_map,
        read={**saved.reading, **of_reading},
    )
    rows = enumerate(
        zip(ranking.indices.tolist(), ranking.where, ranking.utilities.tolist(), strict=True), start=1
    )
    table = csv_text(("rank", "row", "where", "utility"), ((rank, *row) for rank, row in rows))
    deliver(table, out, pool, model, replace=replace)
    for warning in ranking.warnings:
        print(warning, file=sys.stderr)
    if out is not None:
        without = f" ({len(labelled)} labelled ones left out)" if len(labelled) else ""
        print(
            f"{ranking.n_scored:,} rows scored by {policy}{without}; the best {len(ranking.indices)} in {out}"
        )


def _source(pool: str, saved: SavedModel, options: dict[str, Any]) -> tuple[Any, Any]:
    """Rows to score: a pool with a name, or a file through the model's own feature map."""
    from workbench.pools import load_pool, seen_as_pixels
    from workbench.pools.features.numbers import ImageFeatureMap
    from workbench.pools.loading import is_named

    if is_named(pool):
        if Path(pool).exists():
            print(f"{pool} is the pool of that name; ./{pool} is what lies here.", file=sys.stderr)
        pixels = isinstance(saved.feature_map, ImageFeatureMap)
        named_pool = load_pool(pool, **(seen_as_pixels(pool, options) if pixels else options))
        return changed(named_pool, features=saved.as_seen(named_pool.features)), None
    if not pool.strip() or not Path(pool).expanduser().exists():
        return load_pool(pool), None  # raises, and says what there is
    if options:
        raise InputError("--pool-set is for pools with a name; how a file is read is said with --read.")
    return pool, saved.seen_map


def _labelled_by(model: Path, pool: str) -> list[int]:
    """Items the run behind the model has labels of, where it ran on this very pool."""
    from workbench.exchange.bundles import labelled_items

    trained_on, items = labelled_items(model)
    same = trained_on == pool or (trained_on and Path(trained_on).resolve() == Path(pool).resolve())
    return items if same else []
