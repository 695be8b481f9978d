"""Items that a person cannot tell apart: what is found, what is not, and how it is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.neighbours import twins
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.neighbours.twins import Twins, thumbnail, twins_from, twins_of

TEXTS = [
    "My card has not arrived yet, although I ordered it two weeks ago.",
    "my card has NOT arrived yet, although I ordered it two weeks ago!",
    "My card has not arrived yet, although I ordered it two weeks ago, please help.",
    "My card has arrived.",
    "Do you accept cash?",
    "Don't you accept cash?",
    "The invoice number 4711 of last week has been paid twice by mistake.",
    "The invoice number 4712 of last week has been paid twice by mistake.",
    *(f"Question {word} about something else, the {word} one of many." for word in "abcdefghijklmno"),
]


def _groups(found: Twins) -> list[tuple[int, ...]]:
    return found.groups


def test_texts_that_share_most_of_their_letters_are_twins_and_short_ones_that_differ_are_not() -> None:
    pool = load_pool(TEXTS)
    assert pool.kind == "text"
    assert _groups(twins_of(pool))[0] == (0, 1, 2)
    assert not {3, 4, 5, 6, 7} & set(twins_of(pool).spread(range(8)))


def test_texts_of_one_form_are_different_items() -> None:
    found = twins_of(load_pool([f"Please tell me about the {'very ' * k}long form." for k in range(1, 40)]))
    assert found.n_items == 0 and "No two items" in found.say()


def test_rows_are_compared_as_they_are_shown_whatever_numbers_them(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    rows = [
        "row,age,job,kind",
        "1,30,nurse,a",
        "2,30, Nurse ,b",
        "3,41,cook,b",
        "4,30,cook,a",
        "5,41,pilot,b",
    ]
    place.write_text("\n".join(rows) + "\n", encoding="utf-8")
    pool = load_pool(place, target="kind", id_column="row", text="one-hot")
    assert _groups(twins_of(pool)) == [(0, 1)]  # the label is not looked at


def test_a_feature_in_which_all_rows_differ_numbers_nothing() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 9, 60), np.zeros(60)])
    assert twins_of(load_pool(X)).n_items == 0


def test_a_table_of_few_values_has_equal_rows_and_no_twins() -> None:
    X = np.random.default_rng(0).integers(0, 2, (80, 2)).astype(float)
    found = twins_of(load_pool(X))
    assert found.n_items == 0


def test_pictures_that_were_saved_again_or_at_another_size_are_twins() -> None:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:48, 0:48] / 48
    turns, starts = rng.uniform(1, 9, (2, 40, 1, 1)), rng.uniform(0, 6, (2, 40, 1, 1))
    photos = 127 + 60 * np.sin(turns[0] * x + starts[0]) + 60 * np.cos(turns[1] * y + starts[1])
    photos = photos.astype(np.uint8)
    noisy = np.clip(photos[0] + rng.normal(0, 4, (48, 48)), 0, 255).astype(np.uint8)
    whole, small = thumbnail(photos[1]), thumbnail(photos[1][:, ::2])
    assert np.linalg.norm(whole - small) < 0.1 * np.linalg.norm(whole - whole.mean())
    pool = load_pool(np.concatenate([photos, noisy[None], photos[5:6]]))
    assert pool.kind == "image"
    assert _groups(twins_of(pool)) == [(0, 40), (5, 41)]


def test_a_pool_of_copies_is_one_group_and_its_split_stands() -> None:
    pool = load_pool(np.zeros((12, 8, 8), dtype=np.uint8))
    found = twins_of(pool)
    assert _groups(found) == [tuple(range(12))]
    assert found.document()["sizes"] == [12]


def test_groups_are_never_on_both_sides_of_a_split_and_every_class_can_be_asked_about() -> None:
    digits = load_pool("digits")
    copied = np.random.default_rng(0).choice(len(digits), 200, replace=False)
    first = np.arange(len(digits))
    first[copied[100:]] = np.minimum(copied[:100], copied[100:])
    first[copied[:100]] = np.minimum(copied[:100], copied[100:])
    pool = replace(digits, test=None, grouping=lambda pool: first).split(0, 0.2)
    assert pool.test is not None and pool.truth is not None
    sides = np.zeros(len(pool), dtype=int)
    sides[pool.test.test] = 1
    assert (sides == sides[first]).all()
    assert abs(pool.test.test.size / len(pool) - 0.2) < 0.03
    assert set(pool.truth[pool.test.train]) == set(range(10))
    alone = replace(digits, test=None, grouping=None).split(0, 0.2)
    unmoved = replace(digits, test=None, grouping=lambda pool: np.arange(len(digits))).split(0, 0.2)
    assert alone.test is not None and unmoved.test is not None
    np.testing.assert_array_equal(alone.test.test, unmoved.test.test)


def test_what_is_kept_is_what_was_found() -> None:
    first = np.arange(50)
    first[[7, 9, 30]] = 3
    first[[11, 49]] = 10
    found = Twins(first)
    again = twins_from(found.document(), 53)
    assert (
        _groups(again) == [(3, 7, 9, 30), (10, 11, 49)] and again.of(9) == (3, 7, 30) and again.of(52) == ()
    )
    assert twins_from(None, 4).n_items == 0
    for wrong in (
        {**found.document(), "n": 99},
        {**found.document(), "items": "AAAA"},
        {**found.document(), "sizes": [2, 2]},
        {"n": 50},
    ):
        with pytest.raises(InputError, match="near-copies cannot be read"):
            twins_from(wrong, 53)


def test_photos_are_compared_along_the_graph_that_models_lean_on(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(2).integers(0, 255, (80, 16, 16)).astype(np.uint8)
    pool = load_pool(images)
    assert pool.common_scale and pool.test is None
    every = np.arange(len(pool))
    some = twins._graph_of(pool, every[:-1])  # without one of its items the graph is another
    assert len(some.rows) == len(pool) - 1
    with monkeypatch.context() as patched:
        patched.setattr(Neighbourhood, "too_few", "not looked for")
        searched = twins._graph_of(pool, every)
    with monkeypatch.context() as patched:
        patched.setattr(twins, "nearest", None)  # no search of its own
        shared = twins._graph_of(pool, every)
    assert np.array_equal(shared.rows, Neighbourhood(pool).graph.rows)
    assert np.array_equal(shared.rows, searched.rows)
    ratio = shared.distances / searched.distances  # of another scale, which does not count
    assert np.allclose(ratio, ratio[0, 0], rtol=1e-4)
