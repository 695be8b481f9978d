"""Names that are cut can still be told apart."""

import pytest

from workbench.short_names import short_names

WHO = ("Premium private-banking", "Occasional savings-account", "Small-business and freelance")
WHERE = ("the northern region", "the southern region", "the metropolitan area", "foreign subsidiaries")
CLASSES = [f"{who} customers of {where}" for who in WHO for where in WHERE]


@pytest.mark.parametrize("limit", [14, 22, 28, 40])
def test_names_that_begin_alike_stay_different_and_short(limit: int) -> None:
    short = short_names(CLASSES, limit)
    assert len(set(short)) == len(CLASSES) and max(map(len, short)) <= limit
    northern = short_names(CLASSES, 28)[0]
    assert northern.startswith("Prem") and northern.endswith("northern region")


def test_a_name_that_fits_is_left_and_one_that_differs_early_is_cut_at_its_end() -> None:
    assert short_names(["zero", " one\n two "], 24) == ["zero", "one two"]
    assert short_names(["apples of the autumn", "pears"], 10) == ["apples of…", "pears"]
    assert short_names(["card_payment_fee_charged", "card_payment_fee_refused"], 18)[1].endswith("refused")


def test_names_that_are_equal_and_numbers_do_no_harm() -> None:
    assert short_names(["a" * 40, "a" * 40, 7], 12) == ["a" * 11 + "…"] * 2 + ["7"]
    assert short_names([], 12) == []
