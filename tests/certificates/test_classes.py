"""Bounds of classes keep their promise, by simulation."""

import numpy as np
import pytest

from workbench.certificates.certificate import by_class
from workbench.errors import InputError


def test_intervals_of_classes_hold_together() -> None:
    rng = np.random.default_rng(1)
    names = ["a", "b", "c"]
    size, confidence, missed = 240, 0.8, 0
    for _ in range(40):
        said = rng.choice(3, size=size, p=[0.6, 0.3, 0.1])
        truth = np.where(rng.random(size) < 0.1, rng.choice(3, size=size), said)
        order = rng.permutation(size)[:100]
        found = by_class(
            [names[c] for c in said[order]],
            [names[c] for c in truth[order]],
            {name: int((said == c).sum()) for c, name in enumerate(names)},
            confidence,
        )
        inside = True
        for c, one in enumerate(found):
            precision = (truth[said == c] == c).mean()
            recall = (said[truth == c] == c).mean()
            inside &= one.precision[0] - 1e-9 <= precision <= one.precision[1] + 1e-9
            inside &= one.recall[0] - 1e-9 <= recall <= one.recall[1] + 1e-9
        missed += not inside
    assert missed <= 8 + 6  # 8 expected at most
    assert found[0].too_few == (False, False)


def test_classes_without_checks_say_too_few_and_a_census_is_exact() -> None:
    found = by_class(["a"], ["a"], {"a": 50, "b": 5, "new": 0}, 0.9)
    assert found[1].precision == (0.0, 1.0)
    assert found[1].too_few == (True, True)
    labels, answers = ["a", "a", "b", "b"], ["a", "b", "b", ""]
    a, b = by_class(labels, answers, {"a": 2, "b": 2}, 0.9)
    assert a.precision == (0.5, 0.5)
    assert b.precision == (0.5, 0.5)
    assert b.recall == (0.5, 0.5)
    assert a.recall == (0.5, 1.0)  # what nobody could tell may be an "a"
    with pytest.raises(InputError, match="no frozen labels of 'c'"):
        by_class(["c"], ["c"], {"a": 2}, 0.9)
    with pytest.raises(InputError, match="as many"):
        by_class(["a"], [], {"a": 2}, 0.9)
