"""Features learnt in pieces: told how far, stopped and gone on with, grown with their pool."""

import json

import numpy as np
import pytest

from tests.pools.features.test_shapes import bars, photos
from tests.pools.images.test_images import zipped
from workbench import progress
from workbench.errors import Cancelled, InputError
from workbench.pools import load_pool
from workbench.pools.building import image_pool
from workbench.pools.features import cache, shapes
from workbench.pools.features.cache import WorkCache, saved_map
from workbench.pools.features.pieces import PiecesFeatureMap


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A cache of its own that keeps small pools too, piece by piece."""
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    monkeypatch.setattr(cache, "WORTH", 10)
    monkeypatch.setattr(cache, "_FLUSH", -1.0)
    return tmp_path


def stopping(after):
    """A watcher that cancels at the n-th report whose message says so."""
    seen = []

    def report(fraction, message):
        seen.append((fraction, message))
        if after in message:
            raise Cancelled

    return report, seen


def test_stages_count_as_parts_of_the_whole():
    said = []
    with progress.watched(lambda fraction, message: said.append((round(fraction, 3), message))):
        progress.tell(0.0, "begin")
        with progress.part(0.2, 0.6):
            progress.tell(0.5, "middle")
            with progress.part(0.5, 1.0):
                progress.tell(2.0, "end of it")
        progress.tell(1.0, "end")
    progress.tell(0.5, "nobody watches")
    assert said == [(0.0, "begin"), (0.4, "middle"), (0.6, "end of it"), (1.0, "end")]


def test_a_stop_leaves_nothing_half_and_the_rest_is_all_that_is_left_to_do(kept, monkeypatch):
    images, done = bars(60), []
    monkeypatch.setattr(shapes, "_CHUNK", 16)
    hog = shapes._hog
    monkeypatch.setattr(shapes, "_hog", lambda copies: done.append(len(copies)) or hog(copies))
    report, seen = stopping("48 of 60")
    with pytest.raises(Cancelled), progress.watched(report):
        image_pool("bars", images, None, (), features="shapes")
    assert sum(done) == 48 and [f for f, _ in seen] == sorted(f for f, _ in seen)
    assert not list(kept.glob("*[!.part]/map.npy")), "no features stand where they are looked for"
    monkeypatch.setattr(shapes, "_patches", None)  # learnt before the stop
    pool = image_pool("bars", images, None, (), features="shapes")
    assert sum(done) == 60
    assert [place.suffix for place in kept.iterdir()] == [""], "what was put down on the way is gone"
    monkeypatch.undo()
    monkeypatch.setattr(cache, "WORTH", 10**9)
    monkeypatch.setattr(shapes, "_CHUNK", 16)
    whole = image_pool("bars", images, None, (), features="shapes")
    np.testing.assert_allclose(pool.features, whole.features, atol=1e-5)


def test_what_was_put_down_of_something_else_or_is_damaged_is_made_again(kept):
    made = []

    def make(start, stop):
        made.append(start)
        return np.full((stop - start, 3), start, np.float32)

    place = kept / "work.part"
    report, _ = stopping("4 of 6")
    with pytest.raises(Cancelled), progress.watched(report):
        WorkCache(place).rows("rows", 6, make, 2, "Rows")
    assert made == [0, 2]
    (place / "rows.json").write_text("[")
    found = WorkCache(place).rows("rows", 6, make, 2, "Rows")
    assert made == [0, 2, 0, 2, 4] and found[:, 0].tolist() == [0, 0, 2, 2, 4, 4]
    wider = WorkCache(place).rows("rows", 6, lambda a, b: np.ones((b - a, 5)), 2, "Rows")
    assert wider.shape == (6, 3), "they were all there"
    assert WorkCache(place).rows("rows", 8, lambda a, b: np.ones((b - a, 5)), 2, "Rows").shape == (8, 5)
    nowhere = WorkCache(place / "rows.json" / "x")  # no folder can be made here
    assert nowhere.rows("rows", 2, make, 2, "Rows").shape == (2, 3)


def test_files_without_a_byte_as_after_a_power_cut_are_made_again(kept):
    pool = image_pool("bars", bars(60), None, (), features="shapes")
    files = sorted(kept.glob("*/*.npy"))
    assert [file.name for file in files] == ["features.npy", "map.npy", "words.npy"]
    for file in files:
        file.write_bytes(b"")
        with saved_map(json.loads(json.dumps(pool.feature_map.to_json()))):
            again = image_pool("bars", bars(60), None, (), features="shapes")
        np.testing.assert_array_equal(again.features, pool.features)
    work = WorkCache(kept / "work.part")
    work.once("parts", lambda: {"a": np.ones(2)})
    work.rows("rows", 2, lambda a, b: np.ones((b - a, 3)), 2, "Rows")
    for file in (kept / "work.part").rglob("*.npy"):
        file.write_bytes(b"")
    assert work.once("parts", lambda: {"a": np.zeros(2)})["a"].tolist() == [0, 0]
    assert not work.rows("rows", 2, lambda a, b: np.zeros((b - a, 3)), 2, "Rows").any()


def texts(n):
    return "question\n" + "\n".join(
        f"my {w} number {i} is late" for i, w in zip(range(n), ["card", "phone"] * n, strict=False)
    )


def test_a_pool_that_grew_costs_only_its_new_items(kept, monkeypatch):
    given = {"file_name": "q.csv", "text_column": "question"}
    pool = load_pool(texts(40).encode(), **given)
    transform, seen = PiecesFeatureMap.transform, []
    monkeypatch.setattr(
        PiecesFeatureMap, "transform", lambda self, rows: seen.append(len(rows)) or transform(self, rows)
    )
    monkeypatch.setattr(PiecesFeatureMap, "of", None)  # nothing is learnt anew
    document = json.loads(json.dumps(pool.feature_map.to_json()))
    with saved_map(document):
        again = load_pool(texts(40).encode(), **given)
        assert seen == [] and again.feature_map.to_json() == document
        grown = load_pool(texts(46).encode(), **given)
        assert seen == [6]
        twice = load_pool(texts(46).encode(), **given)
        assert seen == [6]
    np.testing.assert_array_equal(grown.features[:40], pool.features)
    np.testing.assert_array_equal(grown.features, twice.features)
    np.testing.assert_allclose(np.linalg.norm(grown.features[40:], axis=1), 1.0, atol=1e-5)
    with pytest.raises(InputError, match="not callable"):  # without the saved map another one is learnt
        load_pool(texts(46).encode(), **given)


def test_photos_are_told_while_they_are_read_and_copies_may_lie_on_disk(monkeypatch):
    from workbench.pools.images import photos as reading

    whole = load_pool(zipped(photos(12)), file_name="bars.zip", features="shapes")
    monkeypatch.setattr(reading, "_COPIES_BYTES", 100)
    monkeypatch.setattr(reading, "_TOLD", 3)
    said = []
    with progress.watched(lambda fraction, message: said.append((fraction, message))):
        pool = load_pool(zipped(photos(12)), file_name="bars.zip", features="shapes")
    np.testing.assert_array_equal(pool.features, whole.features)
    assert "Reading the photos: 3 of 12" in [message for _, message in said]
    assert [fraction for fraction, _ in said] == sorted(fraction for fraction, _ in said)
