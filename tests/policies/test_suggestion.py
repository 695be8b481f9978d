"""The suggested policy is the measured file's best, whichever that is."""

import json
from pathlib import Path

import pytest

from workbench.policies import POLICIES
from workbench.policies.default_policy import suggested


@pytest.mark.parametrize(
    ("tested", "words"),
    [
        ({}, "best mean rank on 7 sets, not shown to need fewer labels than random questions"),
        (
            {"p_against_random": {"variation-ratio": 0.3}},
            "best mean rank on 7 sets, not shown to need fewer labels than random questions",
        ),
        (
            {"p_against_random": {"variation-ratio": 0.0123}},
            "usually the fewest labels: best mean rank on 7 sets, fewer than random questions (p = 0.012)",
        ),
        (
            {"caps": ["at most 90 rows", "seeds: 1 instead of 3"], "model": "chosen"},
            "best mean rank on 7 sets, not shown to need fewer labels than random questions; the run was "
            "capped: at most 90 rows, seeds: 1 instead of 3",
        ),
    ],
)
def test_the_best_rank_is_suggested_with_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tested: dict[str, object], words: str
) -> None:
    path = tmp_path / "ranks.json"
    ranks = {"margin": 2.5, "variation-ratio": 1.5, "random": 3.0}
    untested = {"p_against_random": {}, "caps": [], "model": "fixed", "full": False}
    path.write_text(json.dumps({"mean_ranks": ranks, "n_sets": 7} | untested | tested))
    monkeypatch.setattr("workbench.policies.default_policy.bundled_file", lambda name: path)
    suggested.cache_clear()
    found = suggested()
    suggested.cache_clear()
    assert found.policy == "variation-ratio" and found.mean_ranks == ranks and not found.full
    assert found.words == words and found.of_default == ("model" in tested)


def test_the_bundled_file_names_policies_there_are() -> None:
    found = suggested()
    assert found.policy in POLICIES and set(found.mean_ranks) <= set(POLICIES) and found.n_sets > 0
    n = len(found.mean_ranks)
    assert sum(found.mean_ranks.values()) == pytest.approx(n * (n + 1) / 2, abs=1e-3)
