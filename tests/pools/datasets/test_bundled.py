import subprocess
import sys

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.pools import POOLS, feature_map_from_json, load_pool, read_rows
from workbench.pools.datasets.generators import THREE_CENTRES, three_gaussians_probabilities


@pytest.mark.parametrize("name", ["digits", "wine", "iris", "breast-cancer", "three-gaussians"])
def test_bundled_pools_are_what_the_registry_says(name):
    pool, entry = load_pool(name), POOLS[name]
    assert (len(pool), pool.n_features, len(pool.classes)) == (
        entry.n_items,
        entry.n_features,
        entry.n_classes,
    )
    assert pool.kind == entry.kind
    assert np.isfinite(pool.features).all()
    assert set(np.unique(pool.truth)) == set(range(len(pool.classes)))
    assert len(pool.items) == len(pool.items.ids) == len(pool.fingerprints) == len(pool)
    assert pool.fingerprint == load_pool(name).fingerprint
    assert pool.items.show(len(pool) - 1).kind == pool.kind


def test_the_names_of_the_package_are_those_of_its_modules():
    from workbench import pools
    from workbench.pools.loading import load_pool as opened

    assert pools.load_pool is opened and pools.present_sets() is not None
    names: dict[str, object] = {}
    exec("from workbench.pools import *", names)
    assert names["load_pool"] is opened and {"load_pool", "Pool", "POOLS"} <= {*dir(pools)} & {*names}
    assert "lazy" not in names
    with pytest.raises(AttributeError, match=r"'workbench\.pools' has no attribute 'load_pol'"):
        pools.load_pol  # noqa: B018
    with pytest.raises(ImportError, match="load_pol"):
        from workbench.pools import load_pol  # noqa: F401


def test_digits_are_images_with_one_scale_for_all_pixels():
    pool = load_pool("digits")
    assert pool.common_scale and pool.features.max() == 1.0 and pool.features.min() == 0.0
    shown = pool.items.show(0).image
    assert shown.shape == (8, 8) and shown.dtype == np.uint8
    np.testing.assert_array_equal(shown.ravel(), np.rint(pool.features[0] * 255))


def test_feature_map_replays_through_json():
    pool = load_pool("digits")
    again = feature_map_from_json(pool.feature_map.to_json())
    raw = np.rint(pool.features[:5] * 16).reshape(5, 8, 8)
    np.testing.assert_array_equal(again.transform(raw), pool.features[:5])
    with pytest.raises(InputError, match="63 columns"):
        again.transform(raw.reshape(5, 64)[:, :63])


def test_numbers_are_read_from_the_texts_of_a_csv():
    pool = load_pool("iris")
    header = ",".join(pool.feature_map.columns)
    rows = read_rows(f"{header},extra\n1,2,3,4.5,x\n5,6,7,8,x\n".encode(), file_name="new.csv")
    np.testing.assert_array_equal(pool.feature_map.transform(rows), [[1, 2, 3, 4.5], [5, 6, 7, 8]])
    rows.iloc[1, 2] = "soon"
    with pytest.raises(InputError, match=r"Row 2, column 'petal length \(cm\)' holds 'soon'"):
        pool.feature_map.transform(rows)
    with pytest.raises(InputError, match="lack the column"):
        pool.feature_map.transform(rows.iloc[:, 1:])


def test_unknown_names_and_options_say_what_there_is():
    with pytest.raises(InputError, match="Did you mean 'digits'"):
        load_pool("digit")
    with pytest.raises(InputError, match=r"no option 'noize'.*noise"):
        load_pool("three-gaussians", noize=1)
    with pytest.raises(InputError, match="has none"):
        load_pool("iris", noise=1)


@pytest.mark.parametrize(
    ("name", "option", "value", "kind"),
    [
        ("three-gaussians", "noise", "nan", "number"),
        ("three-gaussians", "noise", float("nan"), "finite number"),
        ("three-gaussians", "noise", float("inf"), "finite number"),
        ("three-gaussians", "noise", True, "number"),
        ("three-gaussians", "n_items", "many", "integer"),
        ("overlapping", "n_items", 99.5, "integer"),
        ("overlapping", "n_classes", [3], "integer"),
        ("overlapping", "overlap", "inf", "number"),
        ("poker", "seed", float("nan"), "integer"),
        ("rows.csv", "max_cells", "nan", "integer"),
        ("rows.csv", "max_bytes", [1], "integer"),
        ("rows.csv", "delimiter", 3, "string"),
        ("rows.csv", "encoding", 3, "string"),
        ("rows.npy", "max_bytes", "nan", "integer"),
    ],
)
def test_an_option_of_another_kind_is_refused_in_a_sentence(name, option, value, kind, tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((8, 2)))
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 8)
    source = str(tmp_path / name) if "." in name else name
    with pytest.raises(InputError, match=rf"cannot be read so: '{option}' is .*: input should be a.* {kind}"):
        load_pool(source, **{option: value})


def test_three_gaussians_probabilities_are_those_of_the_generator():
    pool = load_pool("three-gaussians", n_items=200_000, noise=0.5, seed=3)
    p = three_gaussians_probabilities(pool.features, 0.5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    # exact probabilities predict their own error and log loss
    error = np.mean(p.argmax(axis=1) != pool.truth)
    nll = -np.log(p[np.arange(len(pool)), pool.truth]).mean()
    assert abs(error - np.mean(1 - p.max(axis=1))) < 0.005
    assert abs(nll + (p * np.log(p)).sum(axis=1).mean()) < 0.005
    # and lie within the sampling error of 2,000 points (0.011, 0.014) of the figures known for such a draw
    assert abs(error - 0.380) < 0.022 and abs(nll - 0.839) < 0.03


def test_three_gaussians_options():
    a, b = load_pool("three-gaussians", seed=1), load_pool("three-gaussians", seed=2)
    assert not np.array_equal(a.features, b.features)
    side = np.linalg.norm(THREE_CENTRES - np.roll(THREE_CENTRES, 1, axis=0), axis=1)
    np.testing.assert_allclose(side, 1.0)
    assert a.plane
    bare = load_pool("three-gaussians", noise=0, n_items=10)
    assert len(np.unique(bare.features.round(12), axis=0)) == 3
    np.testing.assert_array_equal(three_gaussians_probabilities(bare.features, 0).argmax(axis=1), bare.truth)
    with pytest.raises(InputError, match="noise"):
        load_pool("three-gaussians", noise=-1)


def test_split_depends_on_the_seed_alone_and_is_stratified():
    pool = load_pool("digits")
    one, two = pool.split(4), pool.split(4)
    np.testing.assert_array_equal(one.test.test, two.test.test)
    assert not np.array_equal(one.test.test, pool.split(5).test.test)
    assert np.intersect1d(one.trainable, one.test.test).size == 0
    assert one.trainable.size + one.test.test.size == len(pool)
    counts, held = np.bincount(pool.truth), np.bincount(pool.truth[one.test.test])
    np.testing.assert_array_equal(held, np.rint(counts * 0.2))


def test_importing_pools_and_metrics_stays_cheap():
    script = (
        "import sys, workbench.pools, workbench.metrics\n"
        "bad = {'sklearn', 'pandas', 'scipy', 'pyarrow', 'PIL', 'tensorflow'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
