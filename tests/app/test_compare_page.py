"""The Compare page when comparisons are finished: verdicts, several together, one round looked at."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.app.test_pages import open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app import comparison
from workbench.store import Store
from workbench.studies import StudySpec

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
            assert job is not None and job.wait(240) and job.status == "done", job.error
        yield made
        Store.open().close()


def both(tokens: list[str]) -> list[tuple[comparison.Comparison, comparison.Results]]:
    return [(c, comparison.results(c)) for c in map(comparison.find, tokens)]


def test_verdicts_need_six_seeds(tokens: list[str]) -> None:
    (one, results), (two, few) = both(tokens)
    rows = {r["policy"]: r for r in comparison.table(results, POLICIES, "error")}
    assert rows["margin"]["verdict"] in ("better", "worse", "no difference shown")
    assert 0 < rows["margin"]["p"] <= 1 and rows["random"]["verdict"] == ""
    assert {r["policy"]: r for r in comparison.table(few, POLICIES, "error")}["margin"]["verdict"] == (
        "too few seeds to tell"
    )
    assert one.spec.pools == ("iris",) and two.spec.pools == ("wine",)


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

    def runs(gain: float) -> dict[int, dict[str, list[float]]]:
        return {s: {"error": (base[s] - gain * (1 + 0.1 * s)).tolist()} for s in range(8)}

    found = {"a": runs(0.05), "b": runs(0.02), "c": runs(0.0), "random": runs(-0.1)}
    tests = comparison.between(found, tuple(found), "error")
    assert [(t.policy, t.baseline, t.verdict) for t in tests] == [
        ("a", "b", "better"),
        ("a", "c", "better"),
        ("b", "c", "better"),
    ]
    assert comparison.between(found, ("a", "random"), "error") == []


def test_stopping_advice_looks_at_a_run_and_changes_nothing(tokens: list[str]) -> None:
    one = comparison.find(tokens[0])
    job = comparison.advice(one, "margin", 0)
    assert job.wait(60) and job.status == "done", job.error
    assert comparison.advice(one, "margin", 0) is job
    labels, rules = job.result
    assert labels == [3, 4, 5, 6, 7]
    said = {r.rule: r for r in rules}
    assert said["budget"].stop and said["budget"].values.tolist() == [4, 3, 2, 1, 0]
    errors = comparison.results(one)["margin"][0]["error"]
    assert said["held-out-error"].values.tolist() == errors
    assert comparison.find(tokens[0]).n_finished == one.n_finished
    page = open_page("compare", comparison=tokens[0])
    page.session_state["comparison-stop-box"] = True
    page.run()
    assert not page.exception
    table = next(f.value for f in page.dataframe if "Says stop" in f.value.columns)
    assert table["Says stop"][0] == "from 7 labels on"


def test_measures_where_more_is_better_are_judged_so(tokens: list[str]) -> None:
    one = comparison.find(tokens[0])
    found = comparison.results(one)
    turned = {
        p: {s: v | {"macro_f1": [1 - x for x in v["balanced_error"]]} for s, v in runs.items()}
        for p, runs in found.items()
    }
    errors = comparison.table(turned, POLICIES, "balanced_error")
    scores = comparison.table(turned, POLICIES, "macro_f1")
    assert [(r["won"], r["p"], r["verdict"]) for r in errors] == [
        (r["won"], r["p"], r["verdict"]) for r in scores
    ]
    assert [r["end"] for r in errors] == pytest.approx([1 - r["end"] for r in scores])


def test_the_page_shows_all_of_it(tokens: list[str]) -> None:
    page = open_page("compare", comparison=tokens[0])
    frame = page.dataframe[0].value
    assert "Verdict" in frame.columns and "too few" not in " ".join(frame["Verdict"])
    assert not [s for s in page.subheader if "Mean ranks" in s.value]
    page.multiselect(key=f"beside-{tokens[0]}").set_value([tokens[1]]).run()
    assert not page.exception
    assert [s for s in page.subheader if "Mean ranks over 2 comparisons" in s.value]
    both_tables = page.dataframe[0].value
    assert len(both_tables) == 4 and both_tables["Comparison"].nunique() == 2
    page.session_state["comparison-round-box"] = True
    page.run()
    assert not page.exception
    page.slider(key="round-number").set_value(1).run()
    assert not page.exception and "Seed 0, 4 labels" in texts(page)
