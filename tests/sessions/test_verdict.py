"""Verdict on a model: no more than what was measured bears."""

from __future__ import annotations

import math
import re

import pytest

from workbench.sessions.measure import TOLD, ClassRecall, Evaluation, ModelVerdict, class_recalls

PROMISES = re.compile(r"\b(sure|enough|at their word)\b")


def sentences(verdict: ModelVerdict) -> list[str]:
    return [
        verdict.of_no_doubt(126),
        verdict.of_no_change(5, 0.003),
        verdict.of_the_rest(500),
        verdict.caution,
        verdict.between,
    ]


def of_churn(measured: int, found: int, asked: int = 0) -> tuple[ClassRecall, ...]:
    pairs = [("stay", "stay")] * 160 + [("churn", "churn")] * found + [("churn", "stay")] * (measured - found)
    return class_recalls(
        ["stay", "churn"], ["stay"] * 252 + ["churn"] * 8, pairs, ["churn"] * asked + ["stay"] * (50 - asked)
    )


@pytest.mark.parametrize(
    ("measured", "found", "said"),
    [(2, 0, "it found none of churn (0 of 2): go on"), (0, 0, "nothing of churn is measured yet: go on")],
)
def test_nobody_is_told_to_stop_while_a_class_is_never_found(measured: int, found: int, said: str) -> None:
    verdict = ModelVerdict(Evaluation.of(162, 2, "evaluation set"), 0.02, of_churn(measured, found))
    assert verdict.of_no_change(5, 0.003).endswith(said)
    assert not PROMISES.search(verdict.of_no_change(5, 0.003) + verdict.of_no_doubt(126))
    assert said.removesuffix(": go on") in verdict.of_no_doubt(126)
    seen = ModelVerdict(Evaluation.of(162, 1, "evaluation set"), 0.02, of_churn(2, 1))
    assert seen.of_no_change(5, 0.003).endswith("enough") and "is sure of" in seen.of_no_doubt(126)


def test_a_rare_class_has_a_line_and_every_class_counts_alike() -> None:
    verdict = ModelVerdict(Evaluation.of(162, 2, "evaluation set"), 0.02, of_churn(4, 1, 21))
    (rare,) = verdict.rare
    assert rare.line == "8 of 260 labels, 1 of 4 measured found, 21 of the last 50 questions"
    assert verdict.balanced_error == 0.75 / 2
    assert not ModelVerdict(Evaluation.of(10, 2, "evaluation set")).rare
    even = [name for name in "abcdefghij" for _ in range(6 if name > "d" else 5)]  # some are below 10 %
    assert not any(one.is_rare for one in class_recalls("abcdefghij", even, []))


@pytest.mark.parametrize(("n", "is_rare"), [(TOLD - 10, True), (TOLD, False)])
def test_a_class_that_was_hardly_asked_about_is_not_rare_where_the_measured_items_have_it(
    n: int, is_rare: bool
) -> None:
    asked = [*"abcdefghi" * 6, "j", "j"]
    recalls = class_recalls("abcdefghij", asked, [(name, name) for name in "abcdefghij" * (n // 10)])
    assert [recall.name for recall in recalls if recall.is_rare] == ["j"] * is_rare


@pytest.mark.parametrize(("measured", "is_rare"), [(0, True), (5, False)])
def test_a_class_that_is_asked_about_often_is_rare_where_hardly_any_is_measured(
    measured: int, is_rare: bool
) -> None:
    pairs = [("stay", "stay")] * (31 - measured) + [("churn", "churn")] * measured
    recalls = class_recalls(["stay", "churn"], ["stay"] * 120 + ["churn"] * 20, pairs)
    assert [recall.name for recall in recalls if recall.is_rare] == ["churn"] * is_rare


def test_what_the_map_says_of_doubts_tells_where_too_few_are_measured() -> None:
    assert ModelVerdict(Evaluation.of(22, 3, "evaluation set")).caution.startswith("Too few to tell")
    assert ModelVerdict(Evaluation.of(TOLD, 3, "evaluation set")).caution == ""


@pytest.mark.parametrize("doubt", [0.0, 0.1, math.nan])
@pytest.mark.parametrize("n", [0, 1, 19, 20, TOLD - 1])
def test_few_measured_items_promise_nothing(n: int, doubt: float) -> None:
    verdict = ModelVerdict(Evaluation.of(n, n // 10, "evaluation set"), doubt)
    assert not [words for words in sentences(verdict) if PROMISES.search(words)]


@pytest.mark.parametrize(("n", "wrong"), [(TOLD, 0), (150, 3), (300, 12), (1_000, 4)])
def test_a_promise_names_the_upper_end_of_what_was_measured_and_no_less(n: int, wrong: int) -> None:
    found = Evaluation.of(n, wrong, "evaluation set")
    verdict = ModelVerdict(found, wrong / n)
    for words in (verdict.of_no_doubt(126), verdict.of_no_change(5, 0.003)):
        assert PROMISES.search(words)
        (share,) = re.findall(r"at most ([\d.]+) % wrong", words)
        assert found.high <= float(share) / 100 < found.high + 0.01
    (count,) = re.findall(r"at most about ([\d,]+) of them", verdict.of_the_rest(500))
    assert int(count) >= 500 * found.high


def test_a_model_that_expects_less_to_be_wrong_than_was_measured_is_not_called_sure() -> None:
    verdict = ModelVerdict(Evaluation.of(160, 78, "evaluation set"), 0.2)
    assert verdict.caution == (
        "It expects 20 % to be wrong, but of 160 measured, between 41 and 56 % are wrong: "
        "do not trust its doubts yet."
    )
    assert not PROMISES.search(verdict.of_no_doubt(126)) and "do not trust" in verdict.of_no_doubt(126)
    honest = ModelVerdict(Evaluation.of(160, 78, "evaluation set"), 0.45)
    assert honest.caution == "" and not PROMISES.search(honest.of_no_doubt(126))
