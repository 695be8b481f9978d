"""Known data sets by name: what they are, where they lie, and how to get those that are missing.

Files are looked for in the folder named by `WORKBENCH_DATA`, in `../shared/datasets` beside the
repository, and in the cache folder, in this order. Downloads go through the packages of those who
publish the data, into the first of these folders.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import workbench
from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.features import NumberMap, check_finite
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.items import ArrayItems, RowNumbers
from workbench.pools.pool import Pool

GROUPS = ("pmlb", "raetsch", "large", "images")
"""Groups of the catalogue; "pmlb:letter" names a set. "openml:NAME" and "libsvm:FILE" need no entry."""


@dataclass(frozen=True)
class CatalogueEntry:
    """One known data set.

    Attributes:
        group: "pmlb", "raetsch", "large" or "images".
        name: in its group.
        file: path below a data folder.
        n_items: N.
        n_features: D.
        n_classes: C.
        n_bytes: of the file.
        sha256: of the file.
        paper68: whether it is one of the 68 sets of the large-margin GP papers.
        paper_name: what the papers call it.
        source: where the file comes from.
        how: how to get it.
    """

    group: str
    name: str
    file: str
    n_items: int
    n_features: int
    n_classes: int
    n_bytes: int
    sha256: str
    paper68: bool
    paper_name: str
    source: str
    how: str

    @property
    def full_name(self) -> str:
        """What `load_pool` takes, such as "pmlb:letter"."""
        return f"{self.group}:{self.name}"

    @property
    def path(self) -> Path | None:
        """Where its file lies, or None when it is not there."""
        return find_file(self.file)


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """All known data sets, by group and name."""
    with bundled_file("catalogue.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            CatalogueEntry(
                group=row["group"],
                name=row["name"],
                file=row["file"],
                n_items=int(row["n_items"]),
                n_features=int(row["n_features"]),
                n_classes=int(row["n_classes"]),
                n_bytes=int(row["bytes"] or 0),
                sha256=row["sha256"],
                paper68=row["paper68"] == "yes",
                paper_name=row["paper_name"],
                source=row["source"],
                how=row["how"],
            )
            for row in csv.DictReader(file)
        )


def bundled_file(name: str) -> Path:
    """A file of data/, which lies beside the package in the repository and inside it in a wheel.

    Args:
        name: of the file.

    Returns:
        Its path.

    Raises:
        InputError: the installation is incomplete.
    """
    package = Path(workbench.__file__).parent
    for folder in (package.parent / "data", package / "bundled"):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"The file {name!r} that belongs to this program is missing; install it again.")


EXAMPLES = {"leaves.csv": "tree", "parcels.csv": None}
"""Bundled example files -> their target column."""


def data_folders() -> list[Path]:
    """Folders in which data sets are looked for, first come first served; all of them exist."""
    package = Path(workbench.__file__).parent
    candidates = [package.parent.parent / "shared" / "datasets", cache_folder()]
    given = os.environ.get("WORKBENCH_DATA")
    if given:
        candidates.insert(0, Path(given).expanduser())
    return [folder for folder in candidates if folder.is_dir()]


def cache_folder() -> Path:
    """Where downloads go: `WORKBENCH_DATA` when it is set, else the user's cache folder."""
    given = os.environ.get("WORKBENCH_DATA")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("workbench")) / "datasets"


def find_file(file: str) -> Path | None:
    """The first data folder's copy of a file, or None.

    Args:
        file: path below a data folder.
    """
    for folder in data_folders():
        if file and (folder / file).is_file():
            return folder / file
    return None


def find_entry(group: str, name: str) -> CatalogueEntry | None:
    """The catalogue's entry, by today's name or by the papers' ("-" and "_" are alike)."""
    wanted = _folded(name)
    for entry in catalogue():
        if entry.group == group and wanted in (_folded(entry.name), _folded(entry.paper_name)):
            return entry
    return None


def _folded(name: str) -> str:
    return name.replace("-", "_").lower()


def load_known(source: str) -> Callable[..., Pool] | None:
    """The loader behind "group:name".

    Args:
        source: as a person wrote it.

    Returns:
        A function of the set's options, or None when the prefix is no known group.

    Raises:
        InputError: the group has no such set.
    """
    group, colon, name = source.partition(":")
    if not colon or group not in (*GROUPS, "openml", "libsvm"):
        return None
    if not name:
        raise InputError(f"Name a data set after {source!r}, for example pmlb:letter.")
    if group == "libsvm":
        return _bind(load_libsvm, name)
    if group == "openml":
        return _bind(load_openml, name)
    entry = find_entry(group, name)
    if entry is None and group != "pmlb":
        names = [other.name for other in catalogue() if other.group == group]
        close = get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"There is no {group} set called {name!r}.{hint} Known: {', '.join(names)}.")
    if group == "pmlb":
        return _bind(load_pmlb, name)
    assert entry is not None
    loaders: dict[str, Callable[..., Pool]] = {
        "raetsch": load_raetsch,
        "large": load_large,
        "images": load_images,
    }
    return _bind(loaders[group], entry)


def _bind(function: Callable[..., Pool], first: Any) -> Callable[..., Pool]:
    from functools import partial

    return partial(function, first)


def load_pmlb(name: str) -> Pool:
    """A set of the Penn Machine Learning Benchmark, from a data folder or through the `pmlb` package.

    Args:
        name: of the set.

    Returns:
        The pool; all columns are numbers.

    Raises:
        InputError: not there and not to be had; says how to get it.
    """
    entry = find_entry("pmlb", name)
    canonical = entry.name if entry else name
    path = find_file(f"pmlb/{canonical}/{canonical}.tsv.gz")
    if path is None:
        path = _fetch_pmlb(canonical, known=entry is not None)
    return _numeric_file(path, canonical, f"pmlb:{canonical}", entry)


def _fetch_pmlb(name: str, known: bool) -> Path:
    folder = cache_folder() / "pmlb"
    if find_spec("pmlb") is None:
        if not known:
            names = [entry.name for entry in catalogue() if entry.group == "pmlb"]
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"There is no pmlb set called {name!r} in the catalogue.{hint} " + _how_pmlb(name)
            )
        raise InputError(f"The set pmlb:{name} is not on this machine. " + _how_pmlb(name))
    import pmlb  # type: ignore[import-not-found, unused-ignore]

    folder.mkdir(parents=True, exist_ok=True)
    try:
        pmlb.fetch_data(name, local_cache_dir=str(folder))
    except ValueError as error:
        raise InputError(f"The pmlb package knows no set called {name!r}: {error}") from error
    except OSError as error:
        raise InputError(f"Could not download pmlb:{name}: {error}. " + _how_pmlb(name)) from error
    path = folder / name / f"{name}.tsv.gz"
    if not path.is_file():
        raise InputError(f"The pmlb package did not leave {path} behind. " + _how_pmlb(name))
    return path


def _how_pmlb(name: str) -> str:
    target = cache_folder() / "pmlb" / name / f"{name}.tsv.gz"
    return (
        "Install the extra (pip install 'workbench-labels[pmlb]') and it is downloaded when asked for, "
        f"or put the file at {target}, or point WORKBENCH_DATA at a folder that has it."
    )


def load_large(entry: CatalogueEntry) -> Pool:
    """A larger set kept as tab-separated numbers.

    Args:
        entry: of the catalogue.

    Returns:
        The pool.

    Raises:
        InputError: not there; says how to get it.
    """
    return _numeric_file(_needed(entry), entry.name, entry.full_name, entry)


def load_raetsch(entry: CatalogueEntry, *, full: bool = False) -> Pool:
    """A set of Rätsch's binary benchmark.

    Args:
        entry: of the catalogue.
        full: the set before the Bayesian SVM paper's authors removed repeated rows, where there is one.

    Returns:
        The pool; classes are -1 and 1.

    Raises:
        InputError: not there; says how to get it.
    """
    from workbench.pools.arrays import NpzFile

    path = _needed(entry)
    archive = NpzFile(path, path.name)
    notes = _check(path, entry)
    if full and "X_full" not in archive:
        raise InputError(f"{entry.full_name} has no full version; leave full out.")
    suffix = "_full" if full or "X" not in archive else ""
    if suffix and not full:
        notes = (*notes, "Only the full version, with repeated rows, is known of this set.")
    X, y = archive[f"X{suffix}"], archive[f"y{suffix}"]
    names = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    name = entry.name + ("-full" if full else "")
    return _pool_of(name, np.asarray(X, dtype=np.float64), y, names, entry.full_name, notes)


def load_images(entry: CatalogueEntry, *, features: str = "pixels", n_components: int = 50) -> Pool:
    """A set of images with its own training and test part.

    Args:
        entry: of the catalogue.
        features: "pixels" or "pca".
        n_components: of "pca".

    Returns:
        The pool; its test split is the source's own.

    Raises:
        InputError: not there; says how to get it.
    """
    from dataclasses import replace

    from workbench.pools.arrays import load_arrays

    path = _needed(entry)
    pool = load_arrays(
        path,
        name=entry.name,
        classes=_IMAGE_CLASSES[entry.name],
        features=features,
        n_components=n_components,
    )
    return replace(pool, title=_IMAGE_TITLES[entry.name], notes=(*pool.notes, *_check(path, entry)))


_IMAGE_CLASSES: dict[str, tuple[str, ...]] = {
    "mnist": tuple(str(i) for i in range(10)),
    "fashion_mnist": (
        "T-shirt",
        "trousers",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    "cifar10_jpeg": (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
}
_IMAGE_TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10_jpeg": "CIFAR-10 (JPEG)"}


def load_openml(name: str, *, target: str | None = None, version: int | None = None, **options: Any) -> Pool:
    """A set of OpenML, through the `openml` package or scikit-learn's reader.

    Args:
        name: of the set, maybe with "@version".
        target: column of the classes; None takes the set's own.
        version: of the set; None takes the latest active one.
        options: those of `workbench.pools.tables.TableOptions`.

    Returns:
        The pool.

    Raises:
        InputError: not to be had, or a table that needs a decision.
    """
    name, at, tail = name.partition("@")
    if at:
        if not tail.isdigit():
            raise InputError(f"After @ stands the version, a number; got {tail!r}.")
        version = int(tail)
    folder = cache_folder() / "openml"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        frame, own_target = (_from_openml if find_spec("openml") else _from_sklearn)(name, version, folder)
    except InputError:
        raise
    except Exception as error:  # both packages raise what their HTTP libraries raise
        raise InputError(
            f"Could not get openml:{name}: {error}. Check the name and the connection; "
            f"sets once fetched are kept in {folder} and then need none."
        ) from error
    from workbench.pools.tables import load_frame

    target = target or own_target
    if not target or (target not in frame.columns and "," in target):
        raise InputError(
            f"openml:{name} names no single target column; say which with target=. "
            f"It has: {', '.join(map(str, frame.columns))}."
        )
    return load_frame(frame, f"openml:{name}", target=target, **{"name": name, **options})


def _from_openml(name: str, version: int | None, folder: Path) -> tuple[Any, str]:
    import openml  # type: ignore[import-not-found, unused-ignore]

    openml.config.set_root_cache_directory(str(folder))
    dataset = openml.datasets.get_dataset(name, version=version or "latest", download_data=True)
    frame, _, _, _ = dataset.get_data(dataset_format="dataframe")
    return frame, dataset.default_target_attribute or ""


def _from_sklearn(name: str, version: int | None, folder: Path) -> tuple[Any, str]:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(name, version=version or "active", data_home=str(folder), as_frame=True)
    return bunch.frame, ",".join(bunch.target_names)


def load_libsvm(
    source: str | Path | bytes,
    *,
    file_name: str | None = None,
    name: str | None = None,
    n_features: int | None = None,
    max_bytes: int | None = None,
    max_cells: int | None = None,
) -> Pool:
    """A file in the format of LIBSVM and SVMlight: "label index:value ..." a line.

    Args:
        source: path (also .gz or .bz2), or an upload's bytes.
        file_name: name of an upload.
        name: of the pool.
        n_features: D, when the file's last columns may all be zero.
        max_bytes: most bytes of the file.
        max_cells: most rows x columns once laid out.

    Returns:
        The pool.

    Raises:
        InputError: no such file, not that format, several labels a line, or too large.
    """
    import io

    from sklearn.datasets import load_svmlight_file

    from workbench.pools.readers import MAX_BYTES, MAX_CELLS, check_cells, check_size
    from workbench.pools.tables import source_name

    label = source_name(source, file_name)
    if not isinstance(source, bytes):
        path = find_file(str(source)) or Path(source)
        if not path.is_file():
            raise InputError(f"There is no file {str(source)!r}.")
        check_size(label, path.stat().st_size, max_bytes or MAX_BYTES)
        stream: Any = str(path)
    else:
        check_size(label, len(source), max_bytes or MAX_BYTES)
        stream = io.BytesIO(source)
    try:
        sparse, y = load_svmlight_file(stream, n_features=n_features)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        raise InputError(
            f'{label} is not in the LIBSVM format ("label index:value ..." a line): {error}'
        ) from error
    check_cells(label, sparse.shape[0], sparse.shape[1], max_cells or MAX_CELLS)
    if sparse.shape[0] < 2 or sparse.shape[1] == 0:
        raise InputError(
            f"{label} holds {sparse.shape[0]} item(s) of {sparse.shape[1]} features; too little."
        )
    names = tuple(f"x{i + 1}" for i in range(sparse.shape[1]))
    return _pool_of(name or label.split(".")[0], np.asarray(sparse.todense()), y, names, label, ())


def _numeric_file(path: Path, name: str, label: str, entry: CatalogueEntry | None) -> Pool:
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        table = pc.read_csv(str(path), parse_options=pc.ParseOptions(delimiter="\t"))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}. Remove it, and get it again.") from error
    if "target" not in table.column_names:
        raise InputError(f"{path} has no column 'target'; it is not a file of this kind.")
    # one published file (schizo) has a second "target": like pandas, the pmlb package reads it as a feature
    label_column = table.column_names.index("target")
    others = [i for i in range(table.num_columns) if i != label_column]
    names = tuple(
        column if column != "target" else "target.1" for column in (table.column_names[i] for i in others)
    )
    X = np.empty((table.num_rows, len(names)))
    for at, i in enumerate(others):
        try:
            X[:, at] = table.column(i).cast(pa.float64()).to_numpy()
        except pa.ArrowException as error:
            raise InputError(f"{path}, column {names[at]!r} is not all numbers: {error}") from error
    y = table.column(label_column).to_numpy()
    return _pool_of(name, X, y, names, label, _check(path, entry))


def _pool_of(
    name: str, X: Array, y: Array, names: tuple[str, ...], label: str, notes: tuple[str, ...]
) -> Pool:
    from workbench.pools.arrays import codes_of

    check_finite(X, names)
    truth, classes = codes_of(np.asarray(y), None, label)
    return Pool(
        name=name,
        kind="table",
        features=X,
        classes=classes,
        truth=truth,
        items=ArrayItems(RowNumbers(len(X)), X, names),
        feature_map=NumberMap(names),
        fingerprints=fingerprint_rows(X),
        title=label,
        description=f"{len(X):,} items, {X.shape[1]:,} features, {len(classes)} classes.",
        plane=X.shape[1] == 2,
        notes=notes,
    )


def _needed(entry: CatalogueEntry) -> Path:
    path = entry.path
    if path is None:
        where = f" Then put it at {cache_folder() / entry.file}, or point WORKBENCH_DATA at its folder."
        raise InputError(
            f"The set {entry.full_name} is not on this machine. {entry.how}{where if entry.file else ''}"
        )
    return path


def _check(path: Path, entry: CatalogueEntry | None) -> tuple[str, ...]:
    if entry is None or not entry.sha256 or _sha256(path) == entry.sha256:
        return ()
    return (f"{path.name} is not the version the catalogue knows; figures may differ from those published.",)


def _sha256(path: Path) -> str:
    digest = sha256()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
