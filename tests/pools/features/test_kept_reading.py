"""Files are read again as they were once: maps of grown pools, caches with one writer, images of files."""

import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workbench.errors import InputError
from workbench.pools import encoders, feature_map_from_json, load_pool, read_rows
from workbench.pools.features import cache
from workbench.pools.features.cache import WorkCache, cached_features, saved_map
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.loading import with_saved_map
from workbench.writing import write_whole


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path / "features"))
    monkeypatch.setattr(cache, "WORTH", 10)
    return tmp_path / "features"


def reopened(document, *source, **options):
    """A pool as a project opens it, by the map that was saved."""
    with saved_map(document):
        pool = load_pool(*source, **options)
    return with_saved_map(pool, document)


# Grown pools -------------------------------------------------------------------------------------------


def test_a_table_that_grew_keeps_its_features(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i},{'' if i in (3, 20) else i * 1.5},{'uvw'[i % 3]}" for i in range(30)]
    path.write_text("id,x,c\n" + "\n".join(rows) + "\n")
    pool = load_pool(path, columns="auto")
    document = json.loads(json.dumps(pool.feature_map.to_json()))
    path.write_text(path.read_text() + "".join(f"{30 + i},1000,{'uz'[i % 2]}\n" for i in range(40)))
    again = reopened(document, path, columns=pool.uses)
    np.testing.assert_array_equal(again.features[:30], pool.features)
    assert again.feature_map.to_json() == document and again.features.shape == (70, pool.n_features)
    assert again.features[31, -3:].tolist() == [0, 0, 0], "a new category is none of those known"
    assert (
        "20 new cells of 'c' hold what the project never met and count as none of its categories."
        in again.notes
    )


def test_an_array_that_grew_keeps_its_medians(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    X[3, 0] = np.nan
    np.savez(tmp_path / "a.npz", X=X)
    pool = load_pool(tmp_path / "a.npz", missing="impute")
    np.savez(tmp_path / "a.npz", X=np.vstack([X, np.full((30, 2), 900.0)]))
    again = reopened(pool.feature_map.to_json(), tmp_path / "a.npz", missing="impute")
    np.testing.assert_array_equal(again.features[:20], pool.features)


def test_vectors_that_grew_keep_their_centre(tmp_path, kept):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 7)).astype(np.float32)
    texts = [
        f"a question about {w} number {i}" for i, w in zip(range(60), ["cards", "phones"] * 30, strict=True)
    ]

    def write(n):
        np.savez(tmp_path / "v.npz", ids=np.array([str(i) for i in range(n)]), vectors=vectors[:n])
        return ("text\n" + "\n".join(texts[:n])).encode()

    for features in (f"embeddings:{tmp_path / 'v.npz'}", f"pieces+embeddings:{tmp_path / 'v.npz'}"):
        given = {"file_name": "t.csv", "text_column": "text", "features": features}
        pool = load_pool(write(30), **given)
        again = reopened(pool.feature_map.to_json(), write(60), **given)
        np.testing.assert_allclose(again.features[:30], pool.features, atol=1e-6)
        assert load_pool(write(60), **given).feature_map.to_json() != pool.feature_map.to_json()


# Caches ------------------------------------------------------------------------------------------------


def test_two_that_do_the_same_work_at_once_both_get_it(tmp_path):
    place, begun, gone_on, out = tmp_path / "w.part", threading.Event(), threading.Event(), {}

    def work(name):
        def make(start, stop):
            if name == "a" and start == 200:
                begun.set()
                assert gone_on.wait(600)
            if name == "b" and start == 400:
                gone_on.set()
            return np.arange(start, stop, dtype=np.float32)[:, None] + 1

        out[name] = np.array(WorkCache(place).rows("rows", 1000, make, 100, "Rows"))

    threads = [threading.Thread(target=work, args=name) for name in "ab"]
    threads[0].start()
    assert begun.wait(600)
    threads[1].start()
    for thread in threads:
        thread.join(600)
    for name in "ab":
        assert out[name][:, 0].tolist() == list(range(1, 1001)), name


def test_one_learns_and_the_other_waits_for_it(kept):
    learning, waiting, n_learnt, out = threading.Event(), threading.Event(), [], []

    def learn(work):
        n_learnt.append(1)
        learning.set()
        assert waiting.wait(600)
        return VectorFeatureMap("v", np.zeros(2, np.float32)), np.ones((20, 2), np.float32)

    words = np.arange(20, dtype=np.uint64)

    def told(*_):
        waiting.set()

    def one():
        from workbench import progress

        with progress.watched(told):
            out.append(cached_features("vectors", words, "same", learn)[1])

    threads = [threading.Thread(target=one) for _ in range(2)]
    threads[0].start()
    assert learning.wait(600)
    threads[1].start()
    for thread in threads:
        thread.join(600)
    assert len(n_learnt) == 1 and all(np.asarray(found).tolist() == [[1, 1]] * 20 for found in out)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no fallocate")
def test_a_full_disk_costs_the_cache_alone(kept, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    rows = WorkCache(kept / "w.part").rows("v", 20, lambda a, b: np.ones((b - a, 8)), 5, "Rows")
    assert not isinstance(rows, np.memmap) and rows.sum() == 160 and list((kept / "w.part").iterdir()) == []
    monkeypatch.setattr(np, "save", full)
    made = VectorFeatureMap("v", np.zeros(2, np.float32)), np.ones((20, 2), np.float32)
    cached_features("vectors", np.arange(20, dtype=np.uint64), "x", lambda work: made)
    assert not [path for path in kept.iterdir() if path.name.startswith("new-")]


def lengths_as_encoder(monkeypatch, factor):
    """An encoder in place of every other: how long a text is, times the one number of `factor`."""

    def opened(features, kind):
        return lambda items: np.array([[len(str(i)) * factor[0], 1.0, factor[0]] for i in items], np.float32)

    for module in ("named_features", "features.vectors"):
        monkeypatch.setattr(f"workbench.pools.{module}.open_encoder", opened)


def test_a_map_that_was_kept_under_another_column_reads_that_of_the_table(kept, monkeypatch):
    lengths_as_encoder(monkeypatch, [1.0])
    data = ("Kommentar\n" + "\n".join("x" * (i + 1) for i in range(20))).encode()
    options = {"file_name": "t.csv", "text_column": "Kommentar", "features": "wordllama"}
    document = load_pool(data, **options).feature_map.to_json()
    assert document["column"] == "Kommentar"
    pool = reopened(document | {"column": "text"}, data, **options)
    rows = read_rows(data, file_name="t.csv")
    np.testing.assert_array_equal(pool.feature_map.transform(rows), pool.features)


def test_features_are_kept_by_what_the_encoder_is(kept, monkeypatch):
    now = [1.0]
    lengths_as_encoder(monkeypatch, now)
    data = ("text\n" + "\n".join("x" * (i + 1) for i in range(20))).encode()
    given = {"file_name": "t.csv", "text_column": "text"}
    first = load_pool(data, features="wordllama", **given)
    assert load_pool(data, features="wordllama", **given).feature_map.to_json() == first.feature_map.to_json()
    now[0] = 50.0  # another version of it, under the same name
    other = load_pool(data, features="wordllama", **given)
    assert other.feature_map.to_json() != first.feature_map.to_json()
    with pytest.raises(InputError, match="is another one than these features were made by"):
        first.feature_map.transform(["a text"])
    with pytest.raises(InputError, match="is another one than these features were made by"):
        reopened(first.feature_map.to_json(), data, features="wordllama", **given)


def test_an_encoder_in_a_file_is_its_bytes(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"one")
    one = encoders.weights_of(str(tmp_path / "m.onnx"), "image", None)
    (tmp_path / "m.onnx").write_bytes(b"two")
    assert one != encoders.weights_of(str(tmp_path / "m.onnx"), "image", None)


def test_names_are_cut_by_bytes(tmp_path):
    write_whole(tmp_path / ("\u753b" * 80 + ".json"), b"x")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"x"]


# Images of files ---------------------------------------------------------------------------------------


def images_in(place, paths, size=(16, 16), **more):
    rng = np.random.default_rng(len(paths))
    for path in paths:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).save(place / path, **more)
    return place


@pytest.mark.parametrize("options", [{}, {"resize": 8}, {"mode": "grey"}, {"resize": (6, 9), "mode": "grey"}])
def test_a_folder_is_scored_as_it_was_opened(tmp_path, options):
    images_in(tmp_path, ["a/1.png", "a/2.png", "b/1.png", "b/2.png"])
    turned = Image.Exif()
    turned[0x0112] = 6
    images_in(tmp_path, ["a/3.png", "b/3.png"], exif=turned)
    pool = load_pool(tmp_path, features="pixels", **options)
    np.testing.assert_array_equal(pool.feature_map.transform(read_rows(tmp_path)), pool.features)
    saved = type(pool.feature_map).from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    np.testing.assert_array_equal(saved.transform(read_rows(tmp_path)), pool.features)


SPLIT = [f"{s}/{c}/{i}.png" for s in ("train", "test") for c in ("cat", "dog") for i in range(3)]


@pytest.mark.parametrize("features", ["pixels", "shapes"])
def test_folders_called_train_and_test_are_the_split(tmp_path, features):
    pool = load_pool(images_in(tmp_path, [*SPLIT, ".ipynb_checkpoints/x.png"]), features=features)
    assert pool.classes == ("cat", "dog") and len(pool) == 12 and pool.test.given
    assert all(pool.items.ids[i].startswith("test/") for i in pool.test.test) and len(pool.test.test) == 6
    assert [pool.classes[code] in path for code, path in zip(pool.truth, pool.items.ids, strict=True)] == [
        True
    ] * 12
    assert any("'.ipynb_checkpoints/x.png'" in note for note in pool.notes)


@pytest.mark.parametrize(
    ("paths", "classes", "note"),
    [
        (["x/cat/1", "x/cat/2", "x/dog/1", "y/cat/1", "y/dog/1"], ("cat", "dog"), "which all hold the same"),
        (["x/cat/1", "x/dog/1", "y/bird/1", "y/bird/2"], ("x", "y"), ""),
        (["train/1/a", "train/1/b", "val/2/a", "val/1/a"], ("1", "2"), "are splits, taken together"),
        (["cat/1", "cat/2", "dog/1", "3"], ("cat", "dog"), "Folders are classes; 1 of 4 images lie in none"),
        (["cat/1", "dog/1", "dog/2", *"345678"], ("cat", "dog"), "6 of 9 images lie in none"),
        (
            ["cat/1", "dog/1", "dog/2", *"3456789"],
            (),
            "not taken for classes, since 7 of 10 images lie in none",
        ),
    ],
)
def test_which_folders_are_classes(tmp_path, paths, classes, note):
    pool = load_pool(images_in(tmp_path, [f"{path}.png" for path in paths]))
    assert pool.classes == classes and pool.test is None
    if classes == ("cat", "dog") and "lie in none" in note:
        inside = ["/" in path for path in pool.items.ids]
        assert [code >= 0 for code in pool.truth] == inside
    assert not note or any(note in one for one in pool.notes)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (np.arange(256, dtype=np.int32), np.arange(256)),
        (np.linspace(0, 1, 256, dtype=np.float32), np.arange(256)),
        (np.arange(256, dtype=np.float32), np.arange(256)),
        ((np.arange(256) * 16).astype(np.uint16), np.arange(256)),
        ((np.arange(256) * 256).astype(np.uint16), np.arange(256)),
    ],
)
def test_images_of_more_bits_keep_their_range(tmp_path, values, shown):
    for i in range(2):
        Image.fromarray(values.reshape(16, 16)).save(tmp_path / f"{i}.tiff")
    pool = load_pool(tmp_path)
    assert pool.items.show(0).image.ravel().tolist() == shown.tolist()


@pytest.mark.parametrize("features", ["pixels", "shapes"])
def test_images_of_more_bits_have_one_white_a_pool(tmp_path, features):
    rng = np.random.default_rng(0)
    for i in range(10):
        values = rng.integers(0, 206, (16, 16)).astype(np.uint16)
        values[0, 0] = (200, 5_000)[i in (3, 7)]  # one hot pixel
        Image.fromarray(values).save(tmp_path / f"{i}.png")
    pool = load_pool(tmp_path, features=features)
    shown = [pool.items.show(i).image for i in range(10)]
    assert [int(image[0, 0]) for image in shown] == [200, 200, 200, 255, 200, 200, 200, 255, 200, 200]
    assert all(90 < image.mean() < 115 for image in shown)
    (note,) = [note for note in pool.notes if "more than 8 bits" in note]
    assert "255 is white" in note and "'3.png', '7.png'" in note
    # a picture that comes later, and is brighter altogether, is seen as the pool's are
    later = tmp_path / "later"
    later.mkdir()
    for i in range(2):
        Image.fromarray(np.full((16, 16), (100, 3_000)[i], np.uint16)).save(later / f"{i}.png")
    made = feature_map_from_json(pool.feature_map.to_json())
    same = np.stack([np.full((16, 16), grey, np.uint8) for grey in (100, 255)])
    rows = read_rows(later)
    np.testing.assert_allclose(made.transform(rows), made.transform(same), atol=1e-6)
    assert "1 file has pixels brighter than the pool's white" in rows.attrs["notes"][0]
    assert "'1.png'" in rows.attrs["notes"][0] and read_rows(later).attrs == {"notes": ()}


@pytest.mark.parametrize("features", ["pixels", "shapes"])
def test_a_pool_that_grows_keeps_its_white(tmp_path, features):
    for i in range(4):
        Image.fromarray(np.arange(256, dtype=np.uint16).reshape(16, 16) * (i + 1) * 3).save(
            tmp_path / f"{i}.png"
        )
    pool = load_pool(tmp_path, features=features)
    Image.fromarray(np.full((16, 16), 60_000, np.uint16)).save(tmp_path / "9.png")
    with saved_map(pool.feature_map.to_json()):
        grown = load_pool(tmp_path, features=features)
    assert grown.feature_map.brightest == pool.feature_map.brightest == 4_095
    np.testing.assert_allclose(grown.features[:4], pool.features, atol=1e-6)
    assert any("4,095 is white; brighter pixels of '9.png' are white, too" in note for note in grown.notes)


def test_one_bright_picture_keeps_the_range_of_the_others(tmp_path):
    for i in range(3):
        values = np.arange(256, dtype=np.uint16).reshape(16, 16) * (1, 1, 16)[i]
        Image.fromarray(values).save(tmp_path / f"{i}.png")
    pool = load_pool(tmp_path)
    assert pool.items.show(0).image.ravel().tolist() == (np.arange(256) >> 4).tolist()
    assert pool.items.show(2).image.ravel().tolist() == list(range(256))


def test_images_that_cannot_be_shown_are_refused(tmp_path):
    Image.fromarray(np.full((16, 16), -3, np.int32)).save(tmp_path / "1.tiff")
    Image.fromarray(np.full((16, 16), 3, np.int32)).save(tmp_path / "2.tiff")
    with pytest.raises(InputError, match="has pixels from -3 to -3"):
        load_pool(tmp_path)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_transparent_grey_is_white_and_the_rest_grey(tmp_path, bits):
    values = (np.arange(256) * (1 if bits == 8 else 256)).astype(np.uint8 if bits == 8 else np.uint16)
    for i in range(2):
        Image.fromarray(values.reshape(16, 16)).save(tmp_path / f"{i}.png", transparency=int(values[100]))
    image = load_pool(tmp_path).items.show(0).image
    assert image.shape == (16, 16) and image.ravel()[100] == 255
    assert image.ravel()[:100].tolist() == list(range(100))


@pytest.mark.parametrize("features", ["pixels", "shapes"])
def test_further_pages_are_said_to_be_left_out(tmp_path, features):
    pages = [Image.new("RGB", (16, 16), (80 * k, 0, 0)) for k in range(3)]
    pages[0].save(tmp_path / "1.tiff", save_all=True, append_images=pages[1:])
    images_in(tmp_path, ["2.tiff", "3.tiff"])
    pool = load_pool(tmp_path, features=features)
    assert any("1 file of several pages or frames: its first one is the item" in note for note in pool.notes)


# Arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8])
def test_labels_that_are_names_or_codes_are_read_by_one_rule(kind):
    def classes_of(y, classes):
        np.savez(stream := io.BytesIO(), X=np.eye(len(y)), y=np.array(y), classes=np.array(classes))
        pool = load_pool(stream.getvalue(), file_name="a.npz")
        return [pool.classes[code] if code >= 0 else None for code in pool.truth]

    for y in ([1, 2] * 4, [1, 2] * 3 + [1, -1]):
        if not (kind is np.uint8 and -1 in y):
            with pytest.raises(InputError, match="The labels 1, 2 are names of classes and could be codes"):
                classes_of(np.array(y, kind), ["1", "2", "3"])
    assert classes_of(np.array([1, 2, 3, 1], kind), ["1", "2", "3"]) == ["1", "2", "3", "1"]
    assert classes_of(np.array([0, 1, 1, 0], kind), ["0", "1"]) == ["0", "1", "1", "0"]
    assert classes_of(np.array([0, 1, 1, 0], kind), ["x", "y"]) == ["x", "y", "y", "x"]
    if kind is not np.uint8:
        assert classes_of(np.array([1, 2, 3, -1], kind), ["1", "2", "3"]) == ["1", "2", "3", None]


def test_a_given_split_survives_rows_left_out():
    X = np.random.default_rng(0).random((20, 3))
    X[3, 1] = np.nan
    arrays = {"x_train": X, "y_train": np.arange(20) % 2, "x_test": X[:2] + 5, "y_test": np.array([0, 1])}
    np.savez(stream := io.BytesIO(), **arrays)
    pool = load_pool(stream.getvalue(), file_name="a.npz", missing="drop")
    assert (
        pool.test.given
        and pool.test.test.tolist() == [19, 20]
        and pool.test.train.tolist() == list(range(19))
    )
    assert (pool.features[pool.test.test] > 5).all() and pool.items.ids[19] == "20"


def test_texts_of_bytes_and_names_met_twice():
    cells = {"y": np.array([b"cat", b"dog"] * 2), "classes": np.array([b"cat", b"dog"])}
    ids = np.array([b"i%d" % i for i in range(4)])
    np.savez(
        stream := io.BytesIO(),
        X=np.eye(4),
        ids=ids,
        feature_names=np.array([b"u", b"v", b"w", b"x"]),
        **cells,
    )
    pool = load_pool(stream.getvalue(), file_name="a.npz")
    assert pool.classes == ("cat", "dog") and list(pool.items.ids) == ["i0", "i1", "i2", "i3"]
    assert list(pool.items.show(0).row) == ["u", "v", "w", "x"]
    np.savez(stream := io.BytesIO(), X=np.eye(4), feature_names=np.array(["u", "u", "v", "w"]))
    with pytest.raises(InputError, match="more than one column called 'u'"):
        load_pool(stream.getvalue(), file_name="a.npz")
