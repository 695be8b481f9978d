"""Verdict on a model: no more than what was measured bears."""

from __future__ import annotations

import math
import re

import pytest

from workbench.sessions.measure import Evaluation
from workbench.sessions.verdict import TOLD, ModelVerdict

PROMISES = re.compile(r"\b(sure|enough|at their word)\b")


def sentences(verdict: ModelVerdict) -> list[str]:
    return [
        verdict.of_no_doubt(126),
        verdict.of_no_change(5, 0.003),
        verdict.of_the_rest(500),
        verdict.against_itself,
        verdict.between,
    ]


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
    assert verdict.against_itself == (
        "It expects 20 % to be wrong, but of 160 measured between 41 and 56 % wrong: "
        "do not trust its doubts yet."
    )
    assert not PROMISES.search(verdict.of_no_doubt(126)) and "do not trust" in verdict.of_no_doubt(126)
    honest = ModelVerdict(Evaluation.of(160, 78, "evaluation set"), 0.45)
    assert honest.against_itself == "" and not PROMISES.search(honest.of_no_doubt(126))
