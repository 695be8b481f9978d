"""The Compare page when comparisons are finished: verdicts, several together, one round looked at."""

import csv
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.app.pages import open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app.compare import comparison, comparison_sources
from workbench.app.serving.jobs import Job, manager
from workbench.app.words.text import percent
from workbench.cli.runs import run_comparison
from workbench.store import Store
from workbench.studies import StudyResult, StudySpec
from workbench.studies.statistics import Curves, PolicySummary, pairwise, summarise

POLICIES = ("margin", "random")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("WORKBENCH_WARM", "0")
        patch.delenv("WORKBENCH_DATABASE_URL", raising=False)
        made = []
        for pool, seeds in (("iris", 6), ("wine", 2)):
            spec = StudySpec("app", (pool,), (FAKE,), POLICIES, seeds=seeds, budget=4)
            made.append(comparison.start(spec))
            job = comparison.job_of(made[-1])
            assert job is not None and job.wait(600) and job.status == "done", job.error
        yield made
        Store.open().close()


def both(tokens: list[str]) -> list[StudyResult]:
    return [comparison.results(c) for c in map(comparison.find, tokens)]


def rows_of(result: StudyResult, measure: str = "error") -> dict[str, PolicySummary]:
    found = comparison.paired_curves(result, measure)
    assert found is not None
    return {row.policy: row for row in summarise(found)}


def test_verdicts_need_six_seeds(tokens: list[str]) -> None:
    results, few = both(tokens)
    rows = rows_of(results)
    assert rows["margin"].outcome in ("better", "worse", "no difference shown")
    test = rows["margin"].test
    assert test is not None and 0 < test.p_holm <= 1 and rows["random"].outcome == ""
    assert rows_of(few)["margin"].outcome == "too few seeds to tell"
    assert results.spec.pools == ("iris",) and few.spec.pools == ("wine",)


def test_ranks_need_two_comparisons_with_the_same_policies(tokens: list[str]) -> None:
    several = both(tokens)
    assert comparison.ranking(several[:1], "error") is None
    found = comparison.ranking(several, "error")
    assert found is not None and found[1] == 2 and set(found[0].names) == set(POLICIES)
    assert found[0].mean_ranks.sum() == pytest.approx(3)


def test_rows_of_every_round_and_seed(tokens: list[str]) -> None:
    lines = comparison.rows_csv(both(tokens)).splitlines()
    assert (
        lines[0] == "pool,classifier,policy,seed,round,n_labelled,error,nll,brier,ece,balanced_error,macro_f1"
    )
    assert len(lines) == 1 + (6 + 2) * 2 * 5


def test_the_model_of_a_round_saw_that_rounds_labels(tokens: list[str]) -> None:
    one = comparison.find(tokens[0])
    model = comparison.round_model(one, "margin", 0, 2)
    assert model.n_labelled == 5 and model.number == 2
    assert model.pool.test is not None and not np.isin(model.items, model.pool.test.test).any()


def test_policies_are_tested_against_each_other() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.3, size=(8, 5))

    gains = {"a": 0.05, "b": 0.02, "c": 0.0, "random": -0.1}
    values = {p: np.array([base[s] - gain * (1 + 0.1 * s) for s in range(8)]) for p, gain in gains.items()}
    found = Curves("p", "c", "error", np.arange(8), np.arange(5), values)
    tests = pairwise(found, comparison.BASELINE)
    assert [(t.policy, t.baseline, t.verdict) for t in tests] == [
        ("a", "b", "better"),
        ("a", "c", "better"),
        ("b", "c", "better"),
    ]
    two = found._replace(values={p: values[p] for p in ("a", "random")})
    assert pairwise(two, comparison.BASELINE) == []


def test_stopping_advice_looks_at_a_run_and_changes_nothing(tokens: list[str]) -> None:
    one = comparison.find(tokens[0])
    job = comparison.advice(one, "margin", 0)
    assert job.wait(600) and job.status == "done", job.error
    assert comparison.advice(one, "margin", 0) is job
    labels, rules = job.result
    assert labels == [3, 4, 5, 6, 7]
    [rule] = rules
    assert np.isfinite(rule.values[1:]).all() and not rule.stop and "Fewer than 5 rounds" in rule.reason
    assert comparison.find(tokens[0]).n_finished == one.n_finished
    page = open_page("compare", comparison=tokens[0])
    page.session_state["comparison-stop-box"] = True
    page.run()
    assert not page.exception
    assert "Go on: fewer than 5 rounds" in texts(page).replace("\\", "")


def test_advice_that_was_cancelled_is_worked_out_when_somebody_tries_again(
    tokens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def compute(job: Job, *given: object, **named: object) -> None:
        gate.wait(600)
        job.report(0.5)

    monkeypatch.setattr(comparison.jobs, "compute", compute)
    one = comparison.find(tokens[0])
    job = comparison.advice(one, "random", 1)
    job.cancel()
    gate.set()
    assert job.wait(600) and job.status == "cancelled"
    assert comparison.advice(one, "random", 1) is job, "the page that comes with its end begins no other"
    manager().forget(job)
    again = comparison.advice(one, "random", 1)
    assert again is not job and again.wait(600)


def test_measures_where_more_is_better_are_judged_so(tokens: list[str]) -> None:
    found = both(tokens)[0]
    runs = [(one, [replace(r, macro_f1=1 - r.balanced_error) for r in rounds]) for one, rounds in found.runs]
    turned = replace(found, runs=runs)
    errors, scores = rows_of(turned, "balanced_error"), rows_of(turned, "macro_f1")
    for policy in POLICIES:
        assert errors[policy].won == scores[policy].won and errors[policy].outcome == scores[policy].outcome
        assert errors[policy].last.value == pytest.approx(1 - scores[policy].last.value)


def test_the_page_and_the_command_line_say_the_same_of_unequal_steps(
    tokens: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # three at a time of a budget of seven: 3, 6, 9 and 10 labels
    spec = StudySpec("app", ("iris",), (FAKE,), POLICIES, seeds=7, budget=7, batch=3)
    token = comparison.start(spec)
    job = comparison.job_of(token)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    page = open_page("compare", comparison=token)
    shown = page.table[0].value.set_index("Policy")
    run_comparison(spec, out=tmp_path / "s", quiet=True)
    with (tmp_path / "s" / "summary.csv").open(newline="") as file:
        printed = {row["policy"]: row for row in csv.DictReader(file)}
    rounds = job.result.of("margin")[0]
    assert [r.n_labelled for r in rounds] == [3, 6, 9, 10]
    for title, name in (("Margin", "margin"), ("Random", "random")):
        mean = float(printed[name]["mean over the curve"])
        assert shown["Mean over the curve"][title] == percent(mean)
    margin = printed["margin"]
    assert shown["Verdict"]["Margin"] == f"{margin['verdict']} (p = {margin['p (Holm)']})"
    assert shown["Better than random"]["Margin"] == f"{margin['beats random']} seeds"
    # the same sentence, with the page's name of the policy
    sentence = next(m.value for m in page.markdown if "better on" in m.value)
    assert sentence.strip("*").replace("\\", "").lower() in capsys.readouterr().err.lower()


def test_the_page_shows_all_of_it(tokens: list[str]) -> None:
    page = open_page("compare", comparison=tokens[0])
    frame = page.table[0].value
    assert "Verdict" in frame.columns and "too few" not in " ".join(frame["Verdict"])
    assert not [s for s in page.subheader if "Mean ranks" in s.value]
    page.multiselect(key=f"beside-{tokens[0]}").set_value([tokens[1]]).run()
    assert not page.exception
    assert [s for s in page.subheader if "Mean ranks over 2 pools" in s.value]
    assert any("A test wants 5 pools or more" in caption.value for caption in page.caption)
    both_tables = page.table[0].value
    assert len(both_tables) == 4 and both_tables["Comparison"].nunique() == 2
    page.session_state["comparison-round-box"] = True
    page.run()
    assert not page.exception
    page.slider(key="round-number").set_value(1).run()
    assert not page.exception and "Seed 0, 4 labels" in texts(page)


def test_with_a_guess_and_without_stand_side_by_side(tokens: list[str], tmp_path: Path) -> None:
    words = {"refund_request": "please refund my money", "card_lost": "i lost my card"}
    lines = [f"{text} {i},{name}" for i in range(20) for name, text in words.items()]
    path = tmp_path / "tickets.csv"
    path.write_text("\n".join(["text,class", *lines]) + "\n")
    options = {"target": "class", "text_column": "text"}
    source = comparison_sources.Source("tickets", str(path), options, guesses=("column:llm",)).opened()
    assert source.guesses == ("names", "column:llm")
    assert [comparison_sources.guess_title(one) for one in source.guesses] == ["Class names", "llm"]
    spec = StudySpec(
        "app", (str(path),), ("logistic-regression",), POLICIES, seeds=1, budget=2, pool_options=options
    )
    token = comparison.start(spec, guesses=["names"])
    for one in comparison.all_of()[:2]:
        job = comparison.job_of(one.id)
        assert job is None or (job.wait(600) and job.status == "done"), job.error
    found = comparison.find(token)
    pair = [c for c in comparison.all_of() if comparison.is_without(found, c)]
    assert found.spec.guess == ("names",) and len(pair) == 1 and pair[0].spec.guess == ()
    page = open_page("compare", comparison=token)
    assert not page.exception and "begins with class names" in texts(page)
    table = page.table[0].value
    assert len(table) == 4 and any("with class names" in name for name in table["Comparison"])
    assert pair[0].id not in page.multiselect(key=f"beside-{token}").options
