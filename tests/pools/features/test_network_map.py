import json

import numpy as np
import pytest

from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.exchange.models import load_model, save_model
from workbench.pools import feature_map_from_json, load_pool, with_network
from workbench.pools.building import image_pool
from workbench.pools.features.network import NetworkFeatureMap


@pytest.fixture(scope="module")
def digits():
    return load_pool("digits").split(0)


@pytest.fixture(scope="module")
def network(digits):
    rows = digits.test.train[:200]
    made = make_classifier("softmax-net", input_shape=(8, 8), min_steps=60, epochs=1, random_state=0)
    return made.fit(digits.features[rows], np.asarray(digits.truth)[rows])


@pytest.fixture(scope="module")
def replayed(network, digits):
    return network.feature_map(digits)


def test_it_is_the_networks_own_features_without_tensorflow(network, digits, replayed):
    found = replayed.transform(digits.items.images[:50])
    np.testing.assert_allclose(found, network.network_features(digits.features[:50]), atol=1e-4)
    assert found.dtype == np.float32 and len(replayed.columns) == found.shape[1] == 64


@pytest.mark.slow  # alone: each network's features are the same again from its file
@pytest.mark.parametrize("name", ["middle", "papers-mnist", "papers-cifar10"])
def test_every_network_for_images_can_be_replayed(name):
    rng = np.random.default_rng(0)
    shape = (17, 14, 3)
    pool = image_pool(
        "p", rng.integers(0, 256, size=(24, *shape), dtype=np.uint8), np.arange(24) % 2, ("a", "b")
    )
    made = make_classifier(
        "softmax-net", network=name, input_shape=shape, min_steps=1, epochs=1, random_state=0
    )
    made.fit(pool.features, pool.truth)
    found = made.feature_map(pool).transform(pool.items.images)
    np.testing.assert_allclose(found, made.network_features(pool.features), atol=1e-3)


def test_it_survives_json_to_the_last_bit(replayed, digits, tmp_path):
    again = feature_map_from_json(json.loads(json.dumps(replayed.to_json())))
    images = digits.items.images[:9]
    np.testing.assert_array_equal(again.transform(images), replayed.transform(images))
    replayed.save(tmp_path / "net.json")
    np.testing.assert_array_equal(
        NetworkFeatureMap.read(tmp_path / "net.json").transform(images), again.transform(images)
    )


def test_it_is_written_over_no_other_file(replayed, tmp_path):
    pool, place = tmp_path / "pool.csv", tmp_path / "net.json"
    pool.write_text("id,text\n1,a\n")
    replayed.save(place)
    for path, replace, why in ((place, False, "is there already"), (pool, True, "not a saved feature map")):
        with pytest.raises(InputError, match=why):
            replayed.save(path, replace=replace)
    replayed.save(place, replace=True)
    assert NetworkFeatureMap.read(place).columns == replayed.columns and pool.read_text() == "id,text\n1,a\n"


def test_a_pool_takes_the_networks_features_and_keeps_its_items(replayed, digits):
    pool = with_network(digits, replayed)
    assert pool.n_features == 64 and pool.common_scale and pool.image_shape is None
    assert "trained network" in pool.notes[-1]
    np.testing.assert_array_equal(pool.fingerprints, digits.fingerprints)
    # three rows and 1,797 take other kernels, which may differ in the last bits
    some = pool.feature_map.transform(pool.items.images[:3])
    np.testing.assert_allclose(some, pool.features[:3], atol=1e-5)


def test_images_are_opened_with_the_features_of_a_file(tmp_path):
    rng = np.random.default_rng(1)
    images, y = rng.integers(0, 256, size=(40, 9, 9), dtype=np.uint8), np.arange(40) % 2
    np.savez(tmp_path / "images.npz", X=images, y=y)
    pixels = load_pool(tmp_path / "images.npz")
    made = make_classifier("softmax-net", input_shape=(9, 9), min_steps=1, epochs=1, random_state=0)
    made.fit(pixels.features, pixels.truth).feature_map(pixels).save(tmp_path / "net.json")
    pool = load_pool(tmp_path / "images.npz", features=str(tmp_path / "net.json"))
    np.testing.assert_allclose(pool.features, made.network_features(pixels.features), atol=1e-4)


def test_what_cannot_be_a_networks_features_says_why(network, replayed, digits, tmp_path):
    with pytest.raises(InputError, match="holds no images"):
        with_network(load_pool("wine"), replayed)
    other = image_pool("p", np.zeros((4, 5, 5), np.uint8), np.arange(4) % 2, ("a", "b"))
    with pytest.raises(InputError, match=r"made for images of shape \[8, 8\]"):
        with_network(other, replayed)
    with pytest.raises(InputError, match=r"reads \[8, 8, 1\]"):
        network.feature_map(other)
    with pytest.raises(InputError, match="There is no file"):
        NetworkFeatureMap.read(tmp_path / "none.json")
    for text in ("{", "[1]", '{"kind": "network"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match="not a saved feature map"):
            NetworkFeatureMap.read(tmp_path / "bad.json")
    (tmp_path / "pixels.json").write_text(json.dumps(replayed.pixels.to_json()))
    with pytest.raises(InputError, match="kind 'image'"):
        NetworkFeatureMap.read(tmp_path / "pixels.json")
    with pytest.raises(InputError, match="8 x 8"):
        replayed.transform(np.zeros((2, 7, 7)))


def test_a_run_saves_it_and_new_images_pass_through_it(replayed, digits, tmp_path):
    pool = with_network(digits, replayed)
    items = pool.test.train[:80]
    model = make_classifier("large-margin").fit(pool.features[items], np.asarray(pool.truth)[items])
    save_model(
        tmp_path / "model",
        model.get_state(),
        classifier="large-margin",
        options={},
        classes=pool.classes,
        feature_map=pool.feature_map,
        n_labelled=80,
        pool="digits",
    )
    restored, some = load_model(tmp_path / "model"), pool.test.test[:20]
    found = restored.estimator.predict_proba(restored.features(digits.items.images[some]))
    np.testing.assert_allclose(found, model.predict_proba(pool.features[some]), atol=1e-6)
