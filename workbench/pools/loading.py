"""One function that opens every kind of pool, and the registry of pools with a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.pools.pool import Kind, Pool
from workbench.registry import Entry, Registry


@dataclass(frozen=True)
class PoolEntry(Entry):
    """A pool that is known by name.

    Attributes:
        kind: what its items are.
        n_items: N (of the default options).
        n_features: D.
        n_classes: C.
    """

    kind: Kind = "table"
    n_items: int = 0
    n_features: int = 0
    n_classes: int = 0


POOLS: Registry[PoolEntry] = Registry(
    "pool",
    [
        PoolEntry(
            "digits",
            "workbench.pools.bundled:digits",
            "Handwritten digits",
            "1,797 digits of 8 x 8 pixels: the one to start with.",
            kind="image",
            n_items=1797,
            n_features=64,
            n_classes=10,
        ),
        PoolEntry(
            "wine",
            "workbench.pools.bundled:wine",
            "Wine",
            "178 wines by 13 chemical measurements, three growers.",
            n_items=178,
            n_features=13,
            n_classes=3,
        ),
        PoolEntry(
            "iris",
            "workbench.pools.bundled:iris",
            "Iris",
            "150 flowers by four lengths, three species.",
            n_items=150,
            n_features=4,
            n_classes=3,
        ),
        PoolEntry(
            "breast-cancer",
            "workbench.pools.bundled:breast_cancer",
            "Breast cancer",
            "569 tumours by 30 measurements, malignant or benign.",
            n_items=569,
            n_features=30,
            n_classes=2,
        ),
        PoolEntry(
            "three-gaussians",
            "workbench.pools.generators:three_gaussians",
            "Three Gaussians",
            "Points in the plane with as much overlap as you like; the best possible answer is known.",
            n_items=2500,
            n_features=2,
            n_classes=3,
        ),
        PoolEntry(
            "overlapping",
            "workbench.pools.generators:overlapping",
            "Overlapping classes",
            "20,000 points of four Gaussian classes in ten dimensions; the best possible answer is known.",
            n_items=20_000,
            n_features=10,
            n_classes=4,
        ),
        PoolEntry(
            "poker",
            "workbench.pools.generators:poker",
            "Poker hands",
            "1,025,010 dealt hands of five cards; an exact rule names each one.",
            n_items=1_025_010,
            n_features=10,
            n_classes=10,
        ),
    ],
)


def load_pool(source: str | Path | bytes, *, file_name: str | None = None, **options: Any) -> Pool:
    """Open a pool.

    Args:
        source: a name in `POOLS`; "pmlb:NAME", "raetsch:NAME", "large:NAME", "images:NAME",
            "openml:NAME" or "libsvm:FILE"; the path of a CSV, Parquet, NPZ, NPY, LIBSVM, idx or zip
            file or of a folder of images; or an upload's bytes.
        file_name: name of an upload; its ending says what it is.
        options: what that kind of pool takes: "noise" for three-gaussians, "target" and the others of
            `workbench.pools.tables.TableOptions` for tables, "features" for images, ...

    Returns:
        The pool, without a test split unless the source has its own (see `Pool.split`).

    Raises:
        InputError: no such pool, an option it does not have, or a source that cannot be used as it
            is; the message says what to do.
    """
    if isinstance(source, bytes):
        return _load_file(source, file_name or "the upload", file_name, options)
    if isinstance(source, str) and source in POOLS:
        entry = POOLS[source]
        return call_with_options(entry.load(), f"Pool {source!r}", {**entry.options, **options})
    text = str(source)
    if isinstance(source, str):
        from workbench.pools.catalogue import load_known

        known = load_known(source)
        if known is not None:
            return call_with_options(known, f"Pool {source!r}", options)
    path = Path(source).expanduser()
    if path.exists():
        return _load_file(path, path.name, file_name, options)
    if any(mark in text for mark in "/\\.") or isinstance(source, Path):
        raise InputError(f"There is no file {text!r}. Check the path, or name a pool: {', '.join(POOLS)}.")
    POOLS[text]  # raises, and says what there is
    raise AssertionError


_TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq")
_LIBSVM_ENDINGS = (".libsvm", ".svm", ".svmlight")


def _load_file(source: Path | bytes, name: str, file_name: str | None, options: dict[str, Any]) -> Pool:
    lower = name.lower().removesuffix(".gz").removesuffix(".bz2")
    what = f"A file like {name!r}"
    given = {"file_name": file_name, **options}
    folder = isinstance(source, Path) and source.is_dir()
    if folder and any(source.glob("*images-idx3-ubyte*")):  # type: ignore[union-attr]
        lower = "images-idx3-ubyte"
    if "idx3-ubyte" in lower or lower.endswith((".idx", ".idx3")):
        from workbench.pools.images import load_idx

        return call_with_options(load_idx, what, given, source)
    if folder and any(source.glob("*.parquet")):  # type: ignore[union-attr]
        lower = ".parquet"
    if lower.endswith(_TABLE_ENDINGS):
        from workbench.pools.tables import load_table

        return load_table(source, **given)
    if lower.endswith((".npy", ".npz")):
        from workbench.pools.arrays import load_arrays

        return call_with_options(load_arrays, what, given, source)
    if lower.endswith(_LIBSVM_ENDINGS):
        from workbench.pools.catalogue import load_libsvm

        return call_with_options(load_libsvm, what, given, source)
    if folder or lower.endswith(".zip"):
        from workbench.pools.images import load_image_folder

        return call_with_options(load_image_folder, what, given, source)
    if lower.endswith((".xlsx", ".xls", ".ods")):
        raise InputError(f"{name} is a spreadsheet. Save the sheet as CSV and open that.")
    raise InputError(
        f"The ending of {name!r} says nothing known. Files may be CSV, TSV, Parquet, NPZ, NPY, "
        "LIBSVM (.svm), idx, or a zip of images."
    )


def call_with_options(
    function: Callable[..., Pool], what: str, options: dict[str, Any], *positional: Any
) -> Pool:
    """Call a loader, refusing options it does not have.

    Args:
        function: the loader.
        what: "Pool 'digits'", for the message.
        options: keyword arguments.
        positional: arguments before them.

    Returns:
        What the loader returns.

    Raises:
        InputError: an option the loader does not have; the message lists those it has.
    """
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return function(*positional, **options)  # it checks them itself
    known = [
        name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    unknown = [name for name in options if name not in known]
    if unknown:
        told = [name for name in known if name != "file_name"]
        has = f"It has: {', '.join(told)}." if told else "It has none."
        raise InputError(f"{what} has no option {unknown[0]!r}. {has}")
    return function(*positional, **options)
