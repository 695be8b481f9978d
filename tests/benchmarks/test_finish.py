"""The benchmark of certificates: its simulated projects, and what was kept of them."""

import numpy as np
import pytest

from benchmarks import finish
from benchmarks.rehearsing import rehearse
from workbench.certificates import Draws
from workbench.errors import InputError


def test_kept_shares_of_false_certificates_are_within_delta() -> None:
    lines = finish.lines_of(finish.RESULTS, "coverage")
    assert {(line["pool"], line["model"], line["start"]) for line in lines} == {
        (pool, model, start) for pool in finish.POOLS for model in finish.MODELS for start in finish.STARTS
    }
    for line in lines:
        assert line["projects"] == finish.PROJECTS
        assert line["false"] <= line["projects"] * (0.05 + 1.645 * np.sqrt(0.05 * 0.95 / line["projects"]))


def test_the_hardest_sets_begin_where_the_promise_is_just_broken() -> None:
    wrong = np.zeros(1_000, dtype=bool)
    wrong[400:600:4] = True
    sizes = finish.sets_of(wrong, np.linspace(1, 0, 1_000), "just broken")
    assert wrong[: sizes[0]].mean() > 0.05 >= wrong[: sizes[0] - 1].mean()
    assert sizes == sorted(sizes) and sizes[-1] == 1_000


@pytest.mark.slow  # alone: of 100 simulated projects; the kept ones are read above
def test_false_certificates_are_counted_and_few() -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(1_000) < 0.06
    false, certificates = finish.false_certificates(wrong, rng.random(1_000), "just broken", 100, 0)
    assert false <= certificates <= 100
    assert false <= 12
    right = np.zeros(1_000, dtype=bool)
    assert finish.false_certificates(right, rng.random(1_000), "planned", 20, 0) == (0, 20)


def test_all_at_once_costs_labels_and_checks_or_everything() -> None:
    right = finish.Stage(np.arange(30), np.zeros(500, dtype=bool), np.ones(500), None)
    assert 30 + 60 < finish._all_at_once(right, 0) < 30 + 100
    assert finish._all_at_once(right._replace(wrong=~right.wrong), 0) == 530
    assert len(Draws(500, 0).first(500)) == 500


@pytest.mark.slow  # alone: the command that docs name runs and says what they quote
def test_the_quick_run_prints_its_tables(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert finish.main(["--quick", "--only", "coverage", "--out", str(tmp_path / "finish.jsonl")]) == 0
    assert "within its binomial error: yes" in capsys.readouterr().out


def risks(n: int = 3_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(0.3, 3.0, size=n)


def test_a_rehearsal_counts_every_answer_once() -> None:
    risk = risks(1_000)
    wrong = np.random.default_rng(4).random(1_000) < risk
    done = rehearse(wrong, 1.0 - risk, 0.05, 0.95, seed=3)
    assert done.attempt >= 1
    beyond = 1_000 - len(done.machine)
    # whatever was drawn beyond the certified set had to be answered anyway
    assert beyond < done.answers <= beyond + done.drawn
    assert done.checks <= done.drawn
    again = rehearse(wrong, 1.0 - risk, 0.05, 0.95, seed=3)
    assert again.machine.tolist() == done.machine.tolist() and again.answers == done.answers


@pytest.mark.slow  # alone: promises over 20 repetitions, also where the model is wrong when surest
def test_a_rehearsal_delivers_what_it_promises_also_where_wrong_labels_are_surest() -> None:
    rng = np.random.default_rng(5)
    risk = risks(600)
    for kind in ("calibrated", "adversarial"):
        broken = 0
        for seed in range(20):
            wrong = rng.random(600) < risk
            sure = np.where(wrong, 1.0, 1.0 - risk) if kind == "adversarial" else 1.0 - risk
            done = rehearse(wrong, sure, 0.05, 0.9, seed=seed)
            broken += bool(len(done.machine)) and wrong[done.machine].mean() > 0.05
            assert done.answers <= 600
        assert broken <= 5, kind  # 2 expected at most


def test_a_rehearsal_of_other_lengths_is_refused() -> None:
    with pytest.raises(InputError, match="as many"):
        rehearse([0, 1], [0.5], 0.05, 0.95)
    with pytest.raises(InputError):
        rehearse([], [], 0.05, 0.95)
