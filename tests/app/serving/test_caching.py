"""Values that are computed once: of what they are, how long they are kept, how much room they take."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.app.serving import caching
from workbench.app.serving.caching import computed
from workbench.arrays import Array

MADE: list[object] = []


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    MADE.clear()
    monkeypatch.setattr(caching, "_SHELVES", (caching._Shelf(), caching._Shelf()))
    monkeypatch.setattr(caching, "_GONE", [])


class Thing:
    """Compared by identity, as models and pools are."""


def twice(value: Array) -> Array:
    MADE.append(value)
    return 2 * value


def name_of(thing: object, options: object = None) -> str:
    MADE.append(options)
    return "x" * 1000


def test_equal_inputs_are_one_value_and_others_another() -> None:
    for values in ([1, 2], [1, 2], [1, 3], [[1, 2]]):
        assert (computed(twice, np.array(values)) == 2 * np.array(values)).all()
    thing, other = Thing(), Thing()
    for given in ((thing,), (thing,), (other,), (thing, {"a": 1}), (thing, {"a": 1}), (thing, {"a": 2})):
        computed(name_of, *given)
    computed(name_of, thing, at=1), computed(name_of, thing, at=1)
    assert len(MADE) == 3 + 5
    assert computed(name_of, thing, "known", known="y") == "y" == computed(name_of, thing, "known")


def test_what_is_kept_for_something_goes_with_it() -> None:
    thing = Thing()
    computed(name_of, thing)
    del thing
    computed(name_of, other := Thing())
    assert sum(map(len, caching._SHELVES)) == 1 and other


def test_the_values_used_last_are_kept_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "_MOST", 3500)
    monkeypatch.setattr(caching, "_FEWEST", 1)
    things = [Thing() for _ in range(4)]
    for i in (0, 1, 2, 0, 3, 0, 1):
        computed(name_of, things[i], i)
    assert MADE == [0, 1, 2, 3, 1]


def test_a_new_value_costs_the_same_however_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[caching.Computation] = []
    monkeypatch.setattr(caching.Computation, "is_over", property(looks.append))
    thing = Thing()
    for i in range(50):
        computed(name_of, thing, i)
    assert not looks, "nothing that they were made of is gone"


def test_a_large_value_pushes_no_small_ones_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "_MOST", 100_000)
    monkeypatch.setattr(caching, "_FEWEST", 1)
    thing = Thing()
    for _ in range(2):
        for i in range(20):
            computed(name_of, thing, i)
        assert computed(twice, np.zeros(20_000)).nbytes > caching._MOST
    assert len(MADE) == 21


def test_a_function_that_may_know_more_than_its_inputs_is_refused() -> None:
    beside = 1
    with pytest.raises(TypeError, match="no function of a module"):
        computed(lambda: beside)
