"""Opening known data sets: scikit-learn's, from a data folder, or through those who publish them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError, install_command
from workbench.pools.building import number_pool
from workbench.pools.datasets.catalogue import (
    GROUPS,
    CatalogueEntry,
    cache_folder,
    catalogue,
    find_entry,
    find_file,
)
from workbench.pools.features.numbers import NumberMap, check_finite
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.formats import call_with_options, format_of
from workbench.pools.formats.files import MAX_CELLS, File
from workbench.pools.labels import codes_of
from workbench.pools.pool import ImageItems, Pool, RowNumbers
from workbench.pools.python_objects import held_file
from workbench.reading import reading


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
        return partial(load_libsvm, name)
    if group == "openml":
        return partial(load_openml, name)
    entry = find_entry(group, name)
    if entry is None and group != "pmlb":
        names = [candidate.name for candidate in catalogue() if candidate.group == group]
        raise InputError(
            f"There is no {group} set called {name!r}.{_hint(name, names)} Known: {', '.join(names)}."
        )
    if group == "pmlb":
        return partial(load_pmlb, name)
    assert entry is not None
    loaders: dict[str, Callable[..., Pool]] = {
        "raetsch": load_raetsch,
        "large": load_large,
        "images": load_images,
    }
    return partial(loaders[group], entry)


def _hint(name: str, names: Sequence[str]) -> str:
    """A question that names the closest of some names; "" where none is close."""
    close = get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


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
            raise InputError(
                f"There is no pmlb set called {name!r} in the catalogue.{_hint(name, names)} "
                + _how_pmlb(name)
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
        f"Install the package pmlb ({install_command('pmlb')}) and it is downloaded when asked for, "
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
    from workbench.pools.formats.npy_files import NpzFile

    path = _needed(entry)
    archive = NpzFile(File.of(path))
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


def load_images(entry: CatalogueEntry, *, features: str = "shapes") -> Pool:
    """A set of images with its own training and test part.

    Args:
        entry: of the catalogue.
        features: "shapes" (minutes for 60,000 images) or "pixels".

    Returns:
        The pool; its test split is the source's own.

    Raises:
        InputError: not there; says how to get it.
    """
    from workbench.pools.formats.arrays import load

    path = _needed(entry)
    pool = load(
        File.of(path),
        name=entry.name,
        classes=_IMAGE_CLASSES[entry.name],
        features=features,
        max_cells=2 * MAX_CELLS,  # their sizes are known
    )
    return replace(pool, title=_IMAGE_TITLES[entry.name], notes=(*pool.notes, *_check(path, entry)))


_CLOTHES = (
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
)
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IMAGE_CLASSES: dict[str, tuple[str, ...]] = {
    "mnist": tuple("0123456789"),
    "fashion_mnist": _CLOTHES,
    "cifar10_jpeg": _THINGS,
}
_IMAGE_TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10_jpeg": "CIFAR-10 (JPEG)"}


def load_openml(name: str, *, target: str | None = None, version: int | None = None, **options: Any) -> Pool:
    """A set of OpenML, through the `openml` package or scikit-learn's reader.

    Args:
        name: of the set, maybe with "@version".
        target: column of the classes; None takes the set's own.
        version: of the set; None takes the latest active one.
        options: those of `workbench.pools.tables.options.TableOptions`.

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
    target = target or own_target
    if not target or (target not in frame.columns and "," in target):
        raise InputError(
            f"openml:{name} names no single target column; say which with target=. "
            f"It has: {', '.join(map(str, frame.columns))}."
        )
    source = held_file(frame, None, {"name": name, **options, "target": target})
    file = File.of(source.data, f"{source.stem}{source.ending}")
    pool = call_with_options(format_of(file).reader.load, f"Pool openml:{name}", dict(source.options), file)
    return replace(pool, title=f"openml:{name}")


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


def load_libsvm(file: str, **options: Any) -> Pool:
    """A LIBSVM file of a data folder, or at a path.

    Args:
        file: its name or path.
        options: those of `workbench.pools.formats.arrays.load_libsvm`.

    Returns:
        The pool.

    Raises:
        InputError: no such file, or as the format's loader.
    """
    from workbench.pools.formats.arrays import load_libsvm as load

    return call_with_options(load, f"Pool 'libsvm:{file}'", options, File.of(find_file(file) or file))


def _numeric_file(path: Path, name: str, label: str, entry: CatalogueEntry | None) -> Pool:
    import pandas as pd

    with reading(str(path), "a file of this kind", "Remove it, and get it again."):
        # one published file (schizo) has a second "target", which is the feature "target.1"
        frame = pd.read_csv(path, sep="\t", float_precision="round_trip")
    if "target" not in frame:
        raise InputError(f"{path} has no column 'target'; it is not a file of this kind.")
    if not isinstance(frame.index, pd.RangeIndex) or frame["target"].isna().any():
        raise InputError(f"{path} has lines of more or fewer cells than names. Remove it, and get it again.")
    y = frame.pop("target").to_numpy()
    for column in frame.select_dtypes(exclude=["number", "bool"]):
        raise InputError(f"{path}, column {column!r} is not all numbers.")
    X = frame.to_numpy(dtype=np.float64)
    return _pool_of(name, X, y, tuple(frame.columns), label, _check(path, entry))


def _pool_of(
    name: str, X: Array, y: Array, names: tuple[str, ...], label: str, notes: tuple[str, ...]
) -> Pool:
    check_finite(X, names)
    truth, classes = codes_of(np.asarray(y), None, label, minus_one=False)
    return number_pool(name, X, truth, classes, names, title=label, notes=notes)


def _needed(entry: CatalogueEntry) -> Path:
    path = entry.path
    if path is None:
        where = f" Then put it at {cache_folder() / entry.file}, or point WORKBENCH_DATA at its folder."
        raise InputError(
            f"The set {entry.full_name} is not on this machine. {entry.how}{where if entry.file else ''}"
        )
    return path


READ: dict[str, str] = {}
"""Files of known sets that this process has read, below their data folder, and the SHA-256 of each."""


def same_files(files: Mapping[str, str]) -> bool:
    """Tell whether files of known sets are those that were read before.

    Args:
        files: as in `READ`.
    """
    places = {file: find_file(file) for file in files}
    return all(place is not None and _sha256(place) == files[file] for file, place in places.items())


def _check(path: Path, entry: CatalogueEntry | None) -> tuple[str, ...]:
    if entry is not None:
        READ[entry.file] = _sha256(path)
    if entry is None or not entry.sha256 or _sha256(path) == entry.sha256:
        return ()
    return (f"{path.name} is not the version the catalogue knows; figures may differ from those published.",)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def digits() -> Pool:
    """1,797 handwritten digits of 8 x 8 pixels; features are the pixels over 16."""
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    images = np.asarray(bunch.images)
    names = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    feature_map = NumberMap(names, 1.0 / 16.0)
    return Pool(
        name="digits",
        kind="image",
        features=feature_map.transform(images),
        classes=tuple(str(i) for i in range(10)),
        truth=np.asarray(bunch.target, dtype=np.int64),
        items=ImageItems(RowNumbers(len(images)), images, white=16.0),
        feature_map=feature_map,
        fingerprints=fingerprint_rows(images.astype(np.float64)),
        title="Handwritten digits",
        description="1,797 digits of 8 x 8 pixels, written by 43 people.",
        common_scale=True,
    )


def wine() -> Pool:
    """178 Italian wines by 13 chemical measurements; three growers."""
    from sklearn.datasets import load_wine

    return _table(
        "wine",
        load_wine(),
        ("grower 1", "grower 2", "grower 3"),
        "Wine",
        "178 wines by 13 chemical measurements; which of three growers made it?",
    )


def iris() -> Pool:
    """150 irises by four lengths; three species."""
    from sklearn.datasets import load_iris

    return _table(
        "iris",
        load_iris(),
        ("setosa", "versicolor", "virginica"),
        "Iris",
        "150 flowers by the lengths and widths of their leaves; three species.",
    )


def breast_cancer() -> Pool:
    """569 breast tumours by 30 measurements of cell nuclei; malignant or benign."""
    from sklearn.datasets import load_breast_cancer

    return _table(
        "breast-cancer",
        load_breast_cancer(),
        ("malignant", "benign"),
        "Breast cancer",
        "569 tumours by 30 measurements of their cell nuclei; malignant or benign?",
    )


def _table(name: str, bunch: Any, classes: tuple[str, ...], title: str, description: str) -> Pool:
    names = tuple(str(column) for column in bunch.feature_names)
    X = np.ascontiguousarray(bunch.data, dtype=np.float64)
    return number_pool(name, X, bunch.target, classes, names, title=title, description=description)
