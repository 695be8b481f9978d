"""Pools that come with scikit-learn, loaded only when asked for (its import costs a second)."""

from typing import Any

import numpy as np

from workbench.pools.building import number_pool
from workbench.pools.features.numbers import NumberMap
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.items import ImageItems, RowNumbers
from workbench.pools.pool import Pool


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
