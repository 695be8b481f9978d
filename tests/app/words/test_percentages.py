"""Sentences about a model's percentages."""

import numpy as np
import pytest

from workbench.app.words import percentages
from workbench.app.words.text import percent
from workbench.metrics import CalibrationVerdict, calibration_verdict, reliability_table


def verdict(*groups: tuple[float, float, int], code: int | None = None) -> CalibrationVerdict:
    """On items in groups of (confidence, share right, how many)."""
    said = np.concatenate([np.full(n, confidence) for confidence, _, n in groups])
    hit = np.concatenate([np.arange(n) < round(share * n) for _, share, n in groups])
    table = reliability_table((~hit).astype(int), np.stack([said, 1 - said], 1), class_code=code)
    return calibration_verdict(table)


@pytest.mark.parametrize(
    ("confidence", "accuracy", "n", "word"),
    [
        (0.9, 0.83, 359, "too sure"),
        (0.7, 0.83, 359, "too modest"),
        (0.9, 0.88, 359, "within chance"),
        (0.9, 0.85, 20, "too few to tell"),
        (1.0, 1.0, 5, "too few to tell"),
    ],
)
def test_a_verdict_says_the_direction_and_knows_chance(
    confidence: float, accuracy: float, n: int, word: str
) -> None:
    found = verdict((confidence, accuracy, n))
    said = f"Says {percent(confidence, 0)}, is right {percent(accuracy, 0)}: {word} (n\u00a0=\u00a0{n})."
    assert percentages.sentence(found) == said
    assert f"it is cat in {percent(accuracy, 0)}" in percentages.sentence(found, "cat")


def test_few_items_are_not_said_to_tell_more_than_they_can() -> None:
    few = percentages.meaning(verdict((0.95, 0.9, 40)))
    assert few.startswith("40 measured items are too few to tell") and "at their word" not in few
    assert percentages.meaning(verdict((0.9, 0.9, 359))).startswith("You can take its percentages")
    assert "too high" in percentages.meaning(verdict((0.9, 0.6, 40)))


def test_a_mean_that_is_right_does_not_vouch_for_bins_that_are_not() -> None:
    # 77.5 % on the mean, and right in 77.5 %; yet of what it gives 95 %, a third is wrong
    both = verdict((0.6, 0.9, 200), (0.95, 0.65, 200))
    assert both.confidence == pytest.approx(both.accuracy) and both.error.low > 0.2
    assert percentages.sentence(both).endswith("off both ways (n\u00a0=\u00a0400).")
    said = percentages.meaning(both)
    assert "at their word: of" not in said and "some are too high, others too low" in said
    assert "where it says 95\u00a0%, it is right in 65\u00a0%" in said.replace("Where", "where")
    # a class's mean agrees with its share for nearly any model
    of_class = percentages.meaning(verdict((1.0, 0.67, 639), (0.02, 0.177, 1361), code=0), "class 2")
    assert "at their word: of" not in of_class and "it is class 2 in 67\u00a0%" in of_class
