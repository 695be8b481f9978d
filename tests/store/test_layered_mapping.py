"""A dictionary in layers is a dictionary, and its versions stay as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.test_fold import histories, in_order, numbered
from workbench.store import Event, EventFold, fold, layered_mapping
from workbench.store.layered_mapping import LayeredMapping, another, changed_keys

keys = st.integers(0, 8)
steps = st.lists(st.tuples(st.sampled_from(["set", "set", "delete", "copy"]), keys, st.integers(0, 3)))


def same(one: LayeredMapping[int, int], plain: dict[int, int]) -> None:
    assert list(one) == list(plain) == list(one.keys()) and one.keys() == plain.keys()
    assert list(one.items()) == list(plain.items())
    assert list(one.values()) == list(plain.values()) and list(reversed(one)) == list(reversed(plain))
    assert len(one) == len(plain) and one == plain and plain == one and repr(one) == repr(plain)
    assert {**one} == plain and one != {**plain, 99: 1} and one != 3
    for key in range(10):
        assert (key in one) == (key in plain) and one.get(key) == plain.get(key)


@given(st.dictionaries(keys, st.integers(0, 3)), steps)
def test_it_is_a_dictionary_in_content_and_order(
    begin: dict[int, int], done: list[tuple[str, int, int]]
) -> None:
    one, plain = LayeredMapping(dict(begin)), dict(begin)
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layered_mapping, "MOST", 3)
        for what, key, value in done:
            if what == "copy":
                kept.append((one, dict(plain)))
                one = one.copy()
            elif what == "set":
                one[key] = plain[key] = value
            elif key in plain:
                del one[key], plain[key]
            else:
                with pytest.raises(KeyError):
                    del one[key]
        for version, was in [*kept, (one, plain)]:
            same(version, was)


@given(histories, st.lists(st.booleans(), min_size=25, max_size=25))
def test_states_of_a_large_project_are_those_of_a_small_one(events: list[Event], looks: list[bool]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layered_mapping, "FEW", 0)
        patch.setattr(layered_mapping, "MOST", 2)
        pieces, seen = EventFold(numbered([])), []
        for event, look in zip(numbered(events)[3:], looks, strict=False):
            pieces.extend([event])
            if look:
                seen.append((pieces.state(), in_order(pieces.state())))
        last = in_order(pieces.state())
    assert last == in_order(fold(numbered(events)))
    assert all(in_order(state) == was for state, was in seen)


def test_a_copy_of_a_large_dictionary_shares_what_did_not_change() -> None:
    large = dict.fromkeys(range(layered_mapping.FEW + 1), 0)
    first = another(large)
    second = another(first)
    second[3] = 1
    assert isinstance(second, LayeredMapping) and second._base is first._base is large and first[3] == 0
    assert type(another({1: 2})) is dict


def test_the_keys_at_which_two_versions_differ_are_told_by_what_was_changed() -> None:
    first = another(dict.fromkeys(range(layered_mapping.FEW + 1), 0))
    second = another(first)
    second[3] = second[9999] = 1
    del second[4]
    assert set(changed_keys(first, second) or ()) == {3, 4, 9999} and changed_keys(second, second) == []
    assert changed_keys(None, second) is None and changed_keys({1: 2}, {1: 2}) is None
