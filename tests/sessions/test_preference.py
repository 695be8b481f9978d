"""Which features the labels prefer, and what the model sees of an item."""

from dataclasses import replace

import numpy as np
import pytest

from tests.pools.test_images import zipped
from tests.pools.test_shapes import bars, photos
from workbench.errors import Cancelled, InputError
from workbench.pools import load_pool
from workbench.pools.building import image_pool
from workbench.pools.model_input import model_input_of
from workbench.sessions import preference
from workbench.sessions.preference import name_of, prefer

WORDS = {"a": ("cards", "lost"), "b": ("phones", "ring"), "c": ("rates", "rise")}


@pytest.fixture(scope="module")
def pool():
    truth = np.arange(90) % 2
    return image_pool("bars", bars(90, 28), truth, ("upright", "level"), features="pixels")


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    lines = ["question,what"]
    for i in range(60):
        name = "abc"[i % 3]
        lines.append(f"my {rng.choice(WORDS[name])} and {rng.choice(WORDS[name])} number{i % 7},{name}")
    return load_pool(
        "\n".join(lines).encode(),
        file_name="q.csv",
        text_column="question",
        target="what",
        text_features="pieces",
    )


def labels_of(pool, n):
    return {int(i): int(pool.truth[i]) for i in np.random.default_rng(1).permutation(len(pool))[:n]}


def test_the_labels_prefer_the_features_that_tell_the_classes_apart(pool):
    said = []
    found = prefer(
        pool, labels_of(pool, 40), 2, sets=["shapes"], report=lambda fraction, words: said.append(fraction)
    )
    assert [(one.features, one.in_use) for one in found.scores] == [("shapes", False), ("pixels", True)]
    assert found.best.features == "shapes" and found.best.error <= found.scores[1].error
    assert str(found) == ", ".join(f"{o.features} {o.error:.2f}" for o in found.scores)
    assert said == sorted(said) and said[-1] == 1.0 and found.n_labels == 40 and found.n_items == 90


def test_a_set_that_cannot_be_made_says_why_and_the_others_are_scored(pool, monkeypatch):
    found = prefer(pool, labels_of(pool, 24), 2, sets=["wordllama"])
    assert found.best.features == "pixels" and "reads texts" in found.scores[-1].problem
    with pytest.raises(InputError, match="at least 20 labels of two classes; there are 10 of 2"):
        prefer(pool, labels_of(pool, 10), 2)
    with pytest.raises(InputError, match="rows of a table"):
        prefer(load_pool("iris"), {i: i % 2 for i in range(30)}, 3)

    def stop(fraction, words):
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        prefer(pool, labels_of(pool, 24), 2, sets=["shapes"], report=stop)


def test_texts_have_pieces_and_topics_and_few_items_do_for_many(texts, monkeypatch):
    monkeypatch.setattr(preference, "MOST_ITEMS", 45)
    found = prefer(texts, labels_of(texts, 30), 3, sets=["topics"])
    assert {one.features for one in found.scores} == {"pieces", "topics"} and found.n_items == 45
    assert all(one.error < 0.4 and not one.problem for one in found.scores)
    assert name_of(texts.feature_map) == "pieces"


def test_what_the_model_sees_of_a_photo_is_its_small_copy():
    pool = load_pool(zipped(photos(12)), file_name="bars.zip", features="shapes")
    seen = model_input_of(pool, 0)
    assert seen.image.dtype == np.uint8 and seen.image.shape == (32, 32, 3)
    assert "32 x 32 pixels in colour" in seen.words
    # of the bar that is shown there is as much light in the copy
    assert abs(float(seen.image.mean()) - float(pool.items.show(0).image.mean())) < 30


def test_what_the_model_sees_of_a_text_are_the_terms_that_count(texts):
    item = next(i for i in range(60) if "lost" in texts.items.texts[i])
    terms = model_input_of(texts, item).terms
    weights = [weight for _, weight in terms]
    assert weights == sorted(weights, reverse=True) and weights[0] == 1.0
    assert any("lost" in term for term, _ in terms) and not any("ring" in term for term, _ in terms)
    empty = replace(texts, items=replace(texts.items, texts=["zzzz qqqq"]))
    assert model_input_of(empty, 0).terms == () and "Nothing" in model_input_of(empty, 0).words
    assert model_input_of(load_pool("iris"), 0) is None


def test_pixels_are_seen_as_they_are(pool):
    np.testing.assert_array_equal(model_input_of(pool, 3).image, pool.items.show(3).image)
