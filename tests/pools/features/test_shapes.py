import io
import json

import numpy as np
import pytest
from PIL import Image

from tests.pools.images.test_images import png, zipped
from workbench.errors import InputError
from workbench.pools import feature_map_from_json, load_pool, read_rows
from workbench.pools.building import image_pool
from workbench.pools.features import cache
from workbench.pools.features.shapes import ShapesFeatureMap

BARS = 40


def bars(n=BARS, side=24, seed=0):
    """Images of upright (even) and level (odd) bars at random places, with noise."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, side, side), dtype=np.uint8)
    for i, image in enumerate(images):
        at = int(rng.integers(4, side - 6))
        place = (slice(None), slice(at, at + 3)) if i % 2 == 0 else (slice(at, at + 3), slice(None))
        image[place] = 230
    return images


def jpeg(array) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, "JPEG")
    return stream.getvalue()


def photos(n=BARS) -> dict[str, bytes]:
    """Bars at many sizes, grey and in colour, PNG and JPEG."""
    files = {}
    for i, image in enumerate(bars(n)):
        size = (20 + 3 * (i % 17), 24 + 5 * (i % 7))
        shown = np.asarray(Image.fromarray(image).resize(size))
        if i % 3 == 0:
            shown = np.stack([shown] * 3, axis=2)
        folder = "level" if i % 2 else "upright"
        files[f"{folder}/{i:02}.{'jpg' if i % 4 else 'png'}"] = jpeg(shown) if i % 4 else png(shown)
    return files


@pytest.fixture(scope="module")
def pool():
    return load_pool(zipped(photos()), file_name="bars.zip", features="shapes")


def test_shapes_tell_apart_what_pixels_do_not():
    images, truth = bars(120), np.arange(120) % 2
    found = {}
    for features in ("shapes", "pixels"):
        X = image_pool("bars", images, truth, ("upright", "level"), features=features).features
        centres = np.stack([X[:60][truth[:60] == k].mean(axis=0) for k in (0, 1)])
        found[features] = np.mean((X[60:] @ centres.T).argmax(axis=1) != truth[60:])
    assert found["shapes"] <= 0.05 < found["pixels"]


def test_mixed_sizes_and_modes_are_shown_as_they_are(pool):
    assert pool.classes == ("level", "upright") and len(pool) == BARS and pool.common_scale
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1, rtol=1e-5)
    assert pool.image_shape is None, "its features are no pixels"
    shapes = {pool.items.show(i).image.shape for i in range(BARS)}
    assert len({shape[:2] for shape in shapes}) > 10 and {len(shape) for shape in shapes} == {2, 3}
    at = list(pool.items.ids).index("upright/04.png")
    np.testing.assert_array_equal(
        pool.items.show(at).image, np.asarray(Image.open(io.BytesIO(photos()["upright/04.png"])))
    )
    assert any("shapes" in note for note in pool.notes)


def test_a_photo_stands_as_its_camera_was_held(tmp_path):
    """A phone writes what its sensor saw and, beside it, which side was up."""
    lying = np.zeros((20, 30, 3), dtype=np.uint8)
    lying[:, :10] = 250  # left in the file: up once it is turned to the right
    for i in range(4):
        about = Image.Exif()
        about[0x0112] = 6 if i == 0 else 1
        Image.fromarray(lying).save(tmp_path / f"{i}.png", exif=about)
    made = load_pool(str(tmp_path), features="shapes")
    turned = made.items.show(0).image
    assert turned.shape == (30, 20, 3) and made.items.show(1).image.shape == (20, 30, 3)
    assert turned[:10].min() == 250 and turned[10:].max() == 0
    assert made.items.photos.brought(side=15)[0].shape == (15, 10, 3)
    assert made.items.photos.size(0) == (30, 20)  # as it lies in its file
    assert not np.array_equal(made.features[0], made.features[1])


def test_the_map_replays_on_new_images_and_through_json(pool):
    again = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    rows = read_rows(zipped(photos()), file_name="again.zip")
    np.testing.assert_allclose(again.transform(rows), pool.features, atol=1e-6)
    np.testing.assert_array_equal(again.transform(rows), pool.feature_map.transform(rows))
    held = [rows[i] for i in range(4)]  # images of any sizes in a list
    np.testing.assert_array_equal(np.round(again.transform(held), 1).shape, (4, pool.n_features))
    with pytest.raises(InputError, match="An image must be numbers"):
        again.transform([np.zeros((5, 5, 2))])
    with pytest.raises(InputError, match="not finite"):
        again.transform([np.full((20, 20), np.nan)])
    document = pool.feature_map.to_json()
    with pytest.raises(InputError, match="damaged"):
        feature_map_from_json(document | {"canvas": [12, 13]})


def test_arrays_of_one_size_give_the_same_map_twice():
    images = bars()
    one, two = (image_pool("bars", images, None, (), features="shapes") for _ in range(2))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_allclose(one.feature_map.transform(images), one.features, atol=1e-6)
    np.testing.assert_allclose(
        one.feature_map.transform(images.reshape(len(images), -1)), one.features, atol=1e-6
    )
    with pytest.raises(InputError, match="Rows of 7 values"):
        one.feature_map.transform(np.zeros((2, 7)))


def test_a_damaged_photo_is_left_out_and_named():
    files = {**photos(12), "level/bad.jpg": photos()["level/01.jpg"][:200]}
    with pytest.raises(InputError, match=r"level/bad\.jpg"):
        load_pool(zipped(files), file_name="p.zip", features="shapes", corrupt="error")
    pool = load_pool(zipped(files), file_name="p.zip", features="shapes")
    assert len(pool) == 12 and any("level/bad.jpg" in note for note in pool.notes)


def test_small_images_keep_their_pixels_and_sizes_are_for_pixels():
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    pool = image_pool("small", images, None, (), features="shapes")
    assert pool.image_shape == (8, 8) and any("below 12 pixels" in note for note in pool.notes)
    files = {f"{i}.png": png(image) for i, image in enumerate(images)}
    assert load_pool(zipped(files), file_name="s.zip", features="shapes").image_shape == (8, 8)
    with pytest.raises(InputError, match="resize= and mode= are for features of pixels"):
        load_pool(zipped(photos(4)), file_name="p.zip", features="shapes", resize=8)
    with pytest.raises(InputError, match="'shapes'"):
        load_pool(zipped(photos(4)), file_name="p.zip", features="shape")


def test_photos_are_known_by_their_files():
    files = photos(8)
    pool, same = (load_pool(zipped(files), file_name="bars.zip", features="shapes") for _ in range(2))
    np.testing.assert_array_equal(same.fingerprints, pool.fingerprints)
    files["level/01.jpg"] = files["level/03.jpg"]
    changed = load_pool(zipped(files), file_name="bars.zip", features="shapes")
    assert (changed.fingerprints != pool.fingerprints).sum() == 1


def test_learnt_features_are_read_again_and_damaged_ones_learnt_again(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    monkeypatch.setattr(cache, "WORTH", 10)
    images = bars()
    first = image_pool("bars", images, None, (), features="shapes")
    learn = ShapesFeatureMap.learn
    monkeypatch.setattr(ShapesFeatureMap, "learn", None)
    again = image_pool("bars", images, None, (), features="shapes")
    np.testing.assert_array_equal(again.features, first.features)
    assert again.feature_map.to_json() == first.feature_map.to_json()
    with pytest.raises(TypeError):
        image_pool("bars", images[:-1], None, (), features="shapes")  # another pool
    monkeypatch.setattr(ShapesFeatureMap, "learn", learn)
    (kept,) = tmp_path.iterdir()
    (kept / "features.npy").write_bytes(b"damaged")
    np.testing.assert_array_equal(
        image_pool("bars", images, None, (), features="shapes").features, first.features
    )
    monkeypatch.setattr(cache, "MAX_BYTES", 0)
    image_pool("bars", images[1:], None, (), features="shapes")
    assert not list(tmp_path.iterdir()), "what does not fit is removed"
