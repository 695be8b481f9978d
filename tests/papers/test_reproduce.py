"""Reports of reproduced experiments: verdicts by the rule, parts computed once, data that are missing."""

import gzip
import inspect
import json
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from workbench import work
from workbench.classifiers import make_classifier
from workbench.errors import Cancelled, InputError
from workbench.papers import active as active_module
from workbench.papers import errata, logistic_softmax
from workbench.papers.active import active
from workbench.papers.logistic_softmax import seconds_to_reach
from workbench.papers.reproduce import (
    EXPERIMENTS,
    Figure,
    Finding,
    Report,
    Table,
    paper_sets,
    reproduce,
    write_report,
)
from workbench.pools.datasets import known
from workbench.registry import load_target
from workbench.studies.fits import cut, measured_fit, some_rows
from workbench.writing import alone_in


def finding(*holds: bool) -> Finding:
    return Finding("claim | with a bar", "1.0", "1.1", {f"c{i}": h for i, h in enumerate(holds)})


def report(*findings: Finding, folder: Path = Path("r"), **more: Any) -> Report:
    return Report("n", folder, folder / "cache", title="A title", findings=list(findings), **more)


def test_the_verdict_follows_the_rule() -> None:
    assert finding(True, True).verdict(False) == "reproduced"
    assert finding(True, True).verdict(True) == "partly"
    assert finding(True, False).verdict(False) == "partly"
    assert finding(False, False).verdict(False) == finding(False).verdict(True) == "not reproduced"
    assert report(finding(True), finding(True)).verdict == "reproduced"
    assert report(finding(True), finding(False)).verdict == "partly"
    assert report(finding(False), finding(False)).verdict == "not reproduced"
    assert report(finding(True), caps=["fewer sets"]).verdict == "partly"
    easy = report(caps=["another rival"])
    easy.claim(
        "ten times", paper="10", ours="1.1", holds={"faster": True, "five times": False}, core="five times"
    )
    assert easy.verdict == "not reproduced", "an easy half does not carry the number that the paper prints"
    with pytest.raises(InputError, match="no finding"):
        _ = report().verdict


def test_a_report_is_a_folder_that_explains_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import plotly.graph_objects as go

    monkeypatch.setattr("workbench.figures.export.why_no_images", lambda: "no browser")
    run = report(
        finding(True, False),
        folder=tmp_path / "r",
        tables=[Table("t", "A table", ("a", "b"), [("x|y", 0.123456), ("z", None)], shown=1)],
        figures=[Figure("f", "A figure", go.Figure(go.Scatter(x=[1], y=[2])))],
        caps=["seeds: 1 instead of 5"],
        cost="9 h",
    )
    assert "there already" not in write_report(run, "workbench reproduce n", 61).read_text()
    run.part_counts.update(asked=3, there=1)
    text = write_report(run, "workbench reproduce n", 61).read_text()
    for words in (
        "# A title",
        "Verdict: **partly**",
        "`workbench reproduce n` in 61 s, with 1 of its 3 parts there already.",
        "Not run in full",
        "- seeds: 1 instead of 5",
        "A full run costs 9 h",
        "| claim \\| with a bar | 1.0 | 1.1 | partly |",
        "- holds: c0",
        "- does not hold: c1",
        "| x\\|y | 0.1235 |",
        "1 more rows in tables/t.csv",
        "[Interactive](figures/f.html)",
        "No picture as PNG of f. no browser",
    ):
        assert words in text.replace("    - ", "- ")
    assert (tmp_path / "r" / "tables" / "t.csv").read_text() == "a,b\nx|y,0.123456\nz,\n"
    assert json.loads((tmp_path / "r" / "report.json").read_text())["verdict"] == "partly"
    page = (tmp_path / "r" / "figures" / "f.html").read_text()
    assert 'src="plotly.min.js"' in page and "https://cdn" not in page
    assert (tmp_path / "r" / "figures" / "plotly.min.js").stat().st_size > 1_000_000


def test_a_figure_that_cannot_be_drawn_is_named_and_costs_its_own_picture_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import plotly.graph_objects as go

    def images(figures: list[go.Figure], kind: str) -> list[bytes]:
        if any(figure.layout.title.text == "bad" for figure in figures):
            raise InputError("The browser could not draw this figure.")
        return [kind.encode() for _ in figures]

    monkeypatch.setattr("workbench.figures.export.why_no_images", lambda: "")
    monkeypatch.setattr("workbench.figures.export.images", images)
    figures = [Figure(name, name, go.Figure(layout_title_text=name)) for name in ("good", "bad", "last")]
    path = write_report(report(finding(True), folder=tmp_path, figures=figures), "c", 1)
    assert sorted(file.stem for file in (tmp_path / "figures").glob("*.png")) == ["good", "last"]
    text = path.read_text()
    assert "No picture as PNG of bad. The browser could not draw it." in text
    assert "figures/last.png" in text and "figures/bad.png" not in text and "figures/bad.html" in text


def test_every_name_leads_to_a_function() -> None:
    assert {
        "errata",
        "lmgp-table1",
        "lmgp-fig2",
        "lmgp-fig3",
        "lmgp-fig5",
        "lmgp-active",
        "bsvm-table1",
        "bsvm-fig1",
        "bsvm-fig2",
        "bsvm-fig3",
        "bsvm-susy",
        "lsm-fig7",
    } <= set(EXPERIMENTS)
    for entry in EXPERIMENTS.values():
        assert entry.paper and entry.quick and entry.full
        assert callable(load_target(entry.target))
    with pytest.raises(InputError, match="Did you mean 'lmgp-table1'"):
        reproduce("lmgp-tabel1")


CALLS: list[int] = []


def double(x: int) -> int:
    CALLS.append(x)
    return 2 * x


def test_parts_are_computed_once_and_survive_a_kill(tmp_path: Path) -> None:
    CALLS.clear()
    stop = {"after": 2}
    run = Report("n", tmp_path, tmp_path / "cache", should_stop=lambda: len(CALLS) >= stop["after"])
    keys = [{"x": i} for i in range(4)]
    with pytest.raises(Cancelled):
        run.parts("g", keys, double)
    assert CALLS == [0, 1]
    with (tmp_path / "cache" / "g.jsonl").open("ab") as file:
        file.write(b'["{\\"x\\": 2}", ')
    stop["after"] = 99
    seen: list[float] = []
    run.progress = lambda fraction, message: seen.append(fraction)
    assert run.parts("g", keys, double) == [0, 2, 4, 6] and CALLS == [0, 1, 2, 3]
    assert seen == [0.75, 1.0]
    assert run.parts("g", [{"x": 3}, {"x": 0}], double) == [6, 0] and len(CALLS) == 4
    assert run.part_counts == {
        "asked": 4 + 4 + 2,
        "there": 0 + 2 + 2,
    }  # each time that parts were asked for


def test_a_part_is_taken_over_only_with_its_program_and_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    monkeypatch.setattr(known, "READ", {})
    CALLS.clear()
    table = tmp_path / "pmlb" / "vowel" / "vowel.tsv.gz"
    table.parent.mkdir(parents=True)

    def rows(turned: int) -> None:
        lines = (f"{i}\t{i * 7 % 11}\t{(i + turned) % 2}" for i in range(40))
        table.write_bytes(gzip.compress(("a\tb\ttarget\n" + "\n".join(lines) + "\n").encode()))

    def there() -> int:
        run = Report("n", tmp_path, tmp_path / "cache")
        assert run.parts("g", [{"x": 7}], reads) == [14]
        return run.part_counts["there"]

    rows(0)
    assert [there(), there()] == [0, 1] and CALLS == [7]
    rows(1)
    assert [there(), there()] == [0, 1] and CALLS == [7, 7], "other data"
    monkeypatch.setattr("workbench.papers.reproduce.code_hash", lambda: "another program")
    assert [there(), there()] == [0, 1] and CALLS == [7, 7, 7]
    with (tmp_path / "cache" / "g.jsonl").open("ab") as file:
        file.write(b"what is this\n")
    with pytest.raises(InputError, match=r"Line 4 of .*g\.jsonl"):
        there()


def reads(x: int) -> int:
    from workbench.pools import load_pool

    load_pool("pmlb:vowel")
    return double(x)


def test_a_limit_is_declared_where_the_experiment_has_what_it_cuts() -> None:
    for entry in EXPERIMENTS.values():
        module = entry.target.partition(":")[0]
        body = inspect.getsource(load_target(entry.target))
        called = [body] + [
            inspect.getsource(getattr(sys.modules[module], helper))
            for helper in ("_measured", "_rows", "_fits")
            if f"{helper}(report" in body
        ]
        text = "".join(called)
        assert ("seeds" in entry.limits) == ("report.seeds(" in text), entry.name
        assert ("rows" in entry.limits) == ("report.rows(" in text or "report.max_rows" in text), entry.name


def sums(x: int, y: str, z: int) -> dict[str, float | None]:
    return {"sum": float(x + len(y) + z), "odd": None if y == "bb" else 1.0}


def test_a_grid_is_an_array_over_its_axes(tmp_path: Path) -> None:
    words: list[str] = []
    run = Report("n", tmp_path, tmp_path / "cache", progress=lambda fraction, message: words.append(message))
    grid = run.grid("g", sums, {"x": (1, 2, 3), "y": ("a", "bb")}, z=10)
    assert grid["sum"].tolist() == [[12, 13], [13, 14], [14, 15]]
    assert np.isnan(grid["odd"][:, 1]).all() and grid["odd"][:, 0].tolist() == [1, 1, 1]
    assert grid.mean("sum", "x").tolist() == [13, 14]
    assert grid.rows("x", lambda r: r["y"].upper(), "sum")[1] == (1, "BB", 13)
    assert words[:2] == ["1 a", "1 bb"]
    # the same parts, in another order, are not computed again
    words.clear()
    again = run.grid("g", sums, {"y": ("bb",), "x": (3, 1)}, z=10)
    assert again["sum"].tolist() == [[15, 13]] and words == []


def test_parts_are_spread_over_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    asked: list[int] = []

    def local(n: int) -> AbstractContextManager[Any]:
        asked.append(n)
        return work.threads(n)

    monkeypatch.setattr(work, "cluster", local)
    run = Report("n", tmp_path, tmp_path / "cache", workers=2)
    assert run.parts("g", [{"x": 5}], double) == [10] and asked == []
    assert run.parts("g", [{"x": i} for i in range(8)], double) == [2 * i for i in range(8)]
    assert asked == [2] and sorted(CALLS) == list(range(8)), "the part that was there is not done again"
    with pytest.raises(InputError, match="workers"):
        reproduce("errata", tmp_path, workers=0)


def test_caps_are_said(tmp_path: Path) -> None:
    run = Report("n", tmp_path, tmp_path, quick=True)
    assert run.cap("seeds", 5, 1) == 1 and run.rows(700) == 700 and run.rows(700) == 700
    assert run.caps == ["seeds: 1 instead of 5", "at most 700 rows of a data set"]
    few = Report("n", tmp_path, tmp_path, max_seeds=2)
    assert few.seeds(5, 1) == 2 and few.seeds(2, 1) == 2 and few.caps == ["seeds: 2 instead of 5"]
    assert Report("n", tmp_path, tmp_path, quick=True).seeds(5, 1) == 1
    full = Report("n", tmp_path, tmp_path)
    assert full.seeds(5, 1) == 5
    assert full.cap("seeds", 5, 1) == 5 and full.rows(700) is None and full.caps == []
    assert Report("n", tmp_path, tmp_path, quick=True, max_rows=90).rows(700) == 90
    with pytest.raises(InputError, match="at least 50"):
        reproduce("errata", tmp_path, max_rows=3)
    with pytest.raises(InputError, match="at least 1"):
        reproduce("errata", tmp_path, max_seeds=0)
    with pytest.raises(InputError, match=r"bsvm-table1 has no seeds to cut: --max-seeds is for lmgp-table1,"):
        reproduce("bsvm-table1", tmp_path, max_seeds=3)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        reproduce("errata", tmp_path / "file")


def test_a_second_program_on_one_folder_waits_for_the_first(tmp_path: Path) -> None:
    (tmp_path / "errata").mkdir()
    with alone_in(tmp_path / "errata"), pytest.raises(Cancelled, match="before its turn"):
        reproduce("errata", tmp_path, should_stop=lambda: True)
    assert reproduce("errata", tmp_path)[0].verdict == "reproduced"


@pytest.mark.parametrize("erratum", errata.ERRATA, ids=lambda e: e.check)
def test_each_correction_is_shown_by_its_number(erratum: errata.Erratum) -> None:
    numbers, holds = erratum.shown()
    assert holds, numbers


def test_a_cut_keeps_every_class_and_is_the_same_each_time() -> None:
    truth = np.array([0] * 500 + [1] * 3 + [2] * 1 + [3] * 496)
    rows = some_rows(truth, 100, 0)
    assert len(rows) == 100 and (np.diff(rows) > 0).all()
    assert np.bincount(truth[rows])[1] >= 2 and np.bincount(truth[rows])[2] == 1
    assert (some_rows(truth, 100, 0) == rows).all() and (some_rows(truth, 100, 1) != rows).any()
    from workbench.pools import load_pool

    pool = load_pool("wine")
    small = cut(pool, 60, 0).split(0)
    assert len(small) == 60 and len(small.items) == 60 and small.test is not None
    assert cut(pool, None, 0) is pool and cut(pool, 1000, 0) is pool


def test_without_its_data_an_experiment_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.pools.datasets.catalogue.find_file", lambda file: None)
    with pytest.raises(InputError, match=r"None of the 6\d PMLB sets .*WORKBENCH_DATA"):
        paper_sets(report())


def test_a_set_that_is_missing_is_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(name: str, n_items: int, path: str | None) -> SimpleNamespace:
        more = {"group": "pmlb", "paper68": True, "n_features": 4, "how": "Install it."}
        return SimpleNamespace(name=name, full_name=f"pmlb:{name}", n_items=n_items, path=path, **more)

    entries = [entry("large", 900, "a"), entry("small", 200, "b"), entry("letter", 300, None)]
    monkeypatch.setattr("workbench.papers.reproduce.catalogue", lambda: entries)
    run = report()
    assert paper_sets(run) == ["pmlb:small", "pmlb:large", "poker"]
    assert run.caps == ["1 set(s) not on this machine: letter. Install it."]


def planted_part(
    pool: str, policy: str, points: int | str, seed: int, rows: int, budget: int
) -> dict[str, object]:
    """Curves with a known order: margin, then variation ratio, entropy, random."""
    order = ["margin", "expected-error-reduction", "variation-ratio", "variation-ratio-mc"]
    order += ["entropy-of-means", "random"]
    level = 0.2 + 0.02 * order.index(policy) + 0.1 * (len(pool) % 3)
    return {"errors": list(np.linspace(0.6, level, budget + 1)), "labels": list(range(7, 8 + budget))}


def test_lmgp_active_says_what_was_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (*(f"set{i}" for i in range(6)), "poker")

    def sets(run: Report) -> list[str]:
        run.caps.append("1 set(s) not on this machine: letter. Install it.")
        return list(names)

    monkeypatch.setattr("workbench.papers.active.paper_sets", sets)
    monkeypatch.setattr("workbench.papers.active.part", planted_part)
    asked: list[dict[str, object]] = []
    monkeypatch.setattr("workbench.papers.active.full_error", lambda **key: asked.append(key) or 0.1)
    run = Report("lmgp-active", tmp_path / "a", tmp_path / "cache", quick=True, max_rows=80)
    active(run)
    assert any("letter. Install it." in cap for cap in run.caps)
    # every condition holds on these curves, and data are missing: never more than "partly"
    assert [f.verdict(bool(run.caps)) for f in run.findings] == ["partly"] * 3
    assert [f.verdict(False) for f in run.findings] == ["reproduced"] * 3
    found = json.loads((tmp_path / "a" / "policy_ranks.json").read_text())
    assert found["n_sets"] == 7 and not found["full"] and found["model"] == "64"
    assert "at most 80 rows of a data set" in found["caps"]
    assert found["mean_ranks"] == {
        "variation-ratio": 2.0,
        "entropy-of-means": 3.0,
        "margin": 1.0,
        "random": 4.0,
    }
    assert {f.name for f in run.figures} == {
        "ranks-4",
        "difference-4",
        "ranks-64",
        "difference-64",
        "poker",
    }
    # the dashed line is of the curves' own model, and the axis has the labels that were there
    assert [key["points"] for key in asked] == [4]
    (poker,) = (f.figure for f in run.figures if f.name == "poker")
    assert {trace.x[0] for trace in poker.data if trace.x is not None and len(trace.x) > 2} == {7}
    # in full: 20,000 rows, three seeds, and the default model beside the papers' two
    again = Report("lmgp-active", tmp_path / "b", tmp_path / "cache", quick=False)
    active(again)
    assert {f.name for f in again.figures} == {
        "ranks-4",
        "difference-4",
        "ranks-64",
        "difference-64",
        "ranks-chosen",
        "difference-chosen",
        "poker",
    }
    parts = [json.loads(line) for line in (tmp_path / "cache" / "lmgp-active.jsonl").read_text().splitlines()]
    assert "20000" in str(parts[-1])
    found = json.loads((tmp_path / "b" / "policy_ranks.json").read_text())
    assert min(found["mean_ranks"], key=found["mean_ranks"].get) == "margin" and found["model"] == "chosen"
    assert found["p_against_random"]["margin"] < 0.05
    # a cut that no option asked for is a cap like any other
    assert "at most 20,000 rows of a data set" in again.caps and not found["full"]


def test_with_all_labels_it_is_the_same_model_as_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, object]] = []
    real = make_classifier

    def recorded(name: str, **options: object) -> object:
        made.append(options)
        return real(name, **options)

    monkeypatch.setattr("workbench.classifiers.make_classifier", recorded)
    assert 0.0 < active_module.full_error("wine", 4, 0, 80) < 0.6
    assert made[0].items() >= active_module.SETTINGS[4][0].items()
    part = active_module.part("wine", "margin", 4, 0, 80, 3)
    assert part["labels"] == [3, 4, 5, 6] and len(part["errors"]) == 4


class Counted:
    """Remembers on how many rows it was fitted and asked."""

    rows: ClassVar[list[int]] = []

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Counted":
        self.rows.append(len(X))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), 2), 0.5)


def test_times_are_until_a_common_likelihood_and_one_that_never_comes_is_a_bound() -> None:
    nll = np.array([[[0.9, 0.5, 0.4], [0.8, 0.405, 0.3], [2.0, 1.5, 1.0]]])
    seconds = np.array([[[1.0, 2.0, 4.0], [1.5, 3.0, 6.0], [2.0, 4.0, 8.0]]])
    found, reached = seconds_to_reach(nll, seconds, nll[:, 0].min(axis=1))
    assert found.tolist() == [[4.0, 3.0, 8.0]] and reached.tolist() == [[True, True, False]]
    run = report()
    logistic_softmax._claims_of_fig7(run, ["images:mnist"], {"nll": nll, "seconds": seconds, "error": nll})
    robust, heaviside = run.findings[:2]
    assert "mnist 0.8" in robust.ours and "mnist more than 2" in heaviside.ours
    assert robust.verdict(False) == "not reproduced", "slower at the same likelihood"


def test_a_fit_is_measured_after_another_of_its_kind() -> None:
    """Time of imports and compilation is in no figure: it is of another fit, as large as a minibatch."""
    X, y = np.zeros((900, 2)), np.arange(900) % 2
    for kind in ("a", "a", "b"):
        measured_fit(Counted, X, y, X[:4], y[:4], kind=("counted", kind))
    assert Counted.rows == [600, 900, 900, 600, 900]
    with pytest.raises(TypeError, match="kind"):
        measured_fit(Counted, X, y, X, y)  # type: ignore[call-arg]


@pytest.mark.slow
def test_two_measured_fits_in_a_fresh_process_take_about_as_long() -> None:
    """Protects against an import or a compilation in the first of the papers' times (30 times, on SUSY)."""
    code = """
import numpy as np
from workbench.classifiers import make_classifier
from workbench.studies.fits import measured_fit
X = np.random.default_rng(0).standard_normal((10_000, 10))
y = (X[:, 0] > 0).astype(int)
options = dict(classes=np.arange(2), n_inducing=64, batch_size=100, epochs=3, random_state=0)
make = lambda: make_classifier("bayesian-svm", **options)
print(*(measured_fit(make, X, y, X[:100], y[:100], kind="susy")["seconds"] for _ in range(3)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *others = map(float, done.stdout.split())  # processor time: other programs do not count
    assert first < 2 * max(others) and min(others) < 2 * first
