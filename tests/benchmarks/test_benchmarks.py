"""Decisions of the commands around the project."""

import argparse
import importlib
import inspect
import itertools
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks import __main__ as benchmark
from benchmarks import kept, packaging
from benchmarks.default import default
from benchmarks.label_efficiency import RESULTS as LABEL_EFFICIENCY
from benchmarks.label_efficiency import compared, largest_fall
from benchmarks.packaging import Tried
from benchmarks.release import figures as release_figures
from benchmarks.release import version
from benchmarks.reports import keep
from benchmarks.timing import NoRatioError, Sides
from tests.test_architecture import ROOT
from workbench.errors import InputError


def test_an_installation_that_failed_says_so_in_its_row() -> None:
    assert Tried("pip", "3.11", "locked", failed="fails: no wheel").row().endswith("fails: no wheel |")
    assert Tried("pip", "3.13", "locked", skipped="no such interpreter here").failed == ""


def test_oldest_is_asked_of_what_the_project_needs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[list[str]] = []
    monkeypatch.setattr(packaging, "called", lambda words, *_, **__: said.append([str(w) for w in words[1:]]))
    packaging.install("pip", "python3.11", tmp_path / "w.whl", "oldest", tmp_path)
    needed = ["pip", "install", "--resolution", "lowest-direct", "-r", str(packaging.ROOT / "pyproject.toml")]
    # of a wheel the wheel itself would be the direct requirement, and what it needs the newest
    assert needed in said and ["pip", "install", "--no-deps", str(tmp_path / "w.whl")] in said


def test_versions_that_differ_are_named(tmp_path: Path) -> None:
    (tmp_path / "workbench").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "workbench" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 0.2.0 (2026-12-01)\n")
    assert version(tmp_path) == "pyproject.toml says 0.2.0; CITATION.cff says 0.1.0"
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\n")
    assert version(tmp_path) == ""


def test_a_release_check_says_which_data_set_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def needs_data() -> list[str]:
        raise InputError("The set pmlb:monk2 is not on this machine.")

    monkeypatch.setattr("benchmarks.pages.outdated", needs_data)
    assert release_figures(tmp_path) == "The set pmlb:monk2 is not on this machine."


def test_a_report_becomes_a_page_with_its_pictures(tmp_path: Path) -> None:
    report, place = tmp_path / "made" / "lsm-fig9", tmp_path / "reports"
    (report / "figures").mkdir(parents=True)
    Image.new("RGB", (1600, 400), "white").save(report / "figures" / "maps.png")
    (report / "report.md").write_text(
        "# Title\n\n![Some words](figures/maps.png)\n\n[Interactive](figures/maps.html)\n\n## Notes\n"
    )
    place.mkdir()
    (place / "lsm-fig9-gone.png").write_bytes(b"of an earlier run")
    assert keep(tmp_path / "made", place) == ["lsm-fig9"]
    page = (place / "lsm-fig9.md").read_text()
    assert page == "# Title\n\n![Some words](lsm-fig9-maps.png)\n\n## Notes\n"
    assert sorted(p.name for p in place.iterdir()) == ["lsm-fig9-maps.png", "lsm-fig9.md"]
    assert Image.open(place / "lsm-fig9-maps.png").size == (1200, 300)


# the meter and the estimators: both sides the same gives 1, exchanged sides give the inverse


class Clock:
    """Seconds that pass only where a side says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def takes(self, *seconds: float) -> Callable[[], float]:
        left = itertools.cycle(seconds)

        def work() -> float:
            spent = next(left)
            self.now += spent
            return spent

        return work


def test_a_ratio_is_the_inverse_of_the_exchanged_one_and_first_calls_are_nobodys() -> None:
    clock = Clock()
    # the first call of "slow" takes a hundred times as long: it is the warm-up
    ran = Sides({"quick": clock.takes(1.0), "slow": clock.takes(300.0, 3.0, 4.0, 2.0, 3.0)}, clock=clock).run(
        4
    )
    there, back = ran.ratio("slow", "quick"), ran.ratio("quick", "slow")
    assert there.value == pytest.approx(3.0) and there.turns == 4
    assert there.value * back.value == pytest.approx(1.0) and there.low * back.high == pytest.approx(1.0)
    same = Sides({"a": clock.takes(2.0), "b": clock.takes(2.0)}, clock=clock).run(3)
    assert same.ratio("a", "b") == pytest.approx((1.0, 1.0, 1.0, 3))


def test_there_is_no_ratio_of_a_side_that_failed_or_never_arrived() -> None:
    clock = Clock()

    def broken() -> None:
        raise ValueError("no such option")

    ran = Sides({"ours": clock.takes(1.0), "peer": broken}, clock=clock).run(2)
    with pytest.raises(NoRatioError, match="peer failed: ValueError: no such option"):
        ran.ratio("peer", "ours")
    assert ran.told("peer", "ours").startswith("no ratio: ") and ran.median("ours") == 1.0
    never = Sides(
        {"ours": clock.takes(1.0), "peer": clock.takes(60.0)},
        arrived=lambda side, result: side == "ours",
        clock=clock,
    ).run(2)
    with pytest.raises(NoRatioError, match="did not get there"):
        never.ratio("peer", "ours")


def test_a_cliff_is_the_largest_share_of_the_mean_error_that_goes_in_one_step() -> None:
    assert largest_fall([[0.4, 0.4, 0.1, 0.0], [0.4, 0.2, 0.1]]) == pytest.approx(1.0 - 0.11 / 0.31)
    assert largest_fall([[0.1, 0.2]]) == 0.0


def test_a_pool_of_so_many_rows_is_the_same_for_each_side() -> None:
    from benchmarks.label_efficiency import capped
    from workbench.pools import load_pool

    pool = load_pool("iris")
    assert capped(pool, 0, 3) is pool and capped(pool, 150, 3) is pool
    part, again, other = (capped(pool, 60, seed) for seed in (3, 3, 4))
    assert len(part) == 60 and part.classes == pool.classes
    np.testing.assert_array_equal(part.features, again.features)
    assert not np.array_equal(part.features, other.features)
    rows, drawn = (set(zip(map(tuple, p.features.tolist()), p.truth, strict=True)) for p in (pool, part))  # type: ignore[arg-type]
    assert drawn <= rows


def test_the_early_side_looks_ahead_up_to_forty_labels() -> None:
    from benchmarks.label_efficiency import early
    from tests.policies.helpers import belief, rng
    from workbench.policies import utilities

    for n_labelled, name in ((39, "expected-error-reduction"), (40, "margin")):
        b = belief(n_labelled=n_labelled)
        np.testing.assert_array_equal(early(b, rng()), utilities(name, b, rng()))


def test_sides_of_label_efficiency_are_the_inverse_when_exchanged() -> None:
    rng = np.random.default_rng(0)
    one, other = ({k: rng.integers(0, 40, 12) / 97 for k in ("area", "final")} for _ in range(2))
    there, back, same = compared(one, other), compared(other, one), compared(one, one)
    assert there.ratio * back.ratio == pytest.approx(1.0) and there.mean == pytest.approx(-back.mean)
    assert there.below == back.above and there.p == back.p
    assert same[:3] == (1.0, 0.0, 0.0) and same.below == same.above == (0, 0) and same.p == (1.0, 1.0)


def test_a_set_that_is_missing_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import end, label_efficiency

    def missing(name: str) -> Any:
        raise InputError(f"The set {name} is not on this machine.")

    monkeypatch.setattr(label_efficiency, "load_pool", missing)
    monkeypatch.setattr(sys, "argv", ["label_efficiency", "--report", "--sets", "others", "--sides", "auto"])
    with pytest.raises(SystemExit) as ended:
        end(label_efficiency.main)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "The set pmlb:monk2 is not on this machine.\n"


def test_compared_sides_differ_in_one_thing() -> None:
    from benchmarks.label_efficiency import OURS, PAIRS

    for one, other, _ in PAIRS:
        assert sum(a != b for a, b in zip(OURS[one], OURS[other], strict=True)) == 1, (one, other)


def test_default_is_what_a_new_project_has() -> None:
    from benchmarks.label_efficiency import OURS
    from workbench.sessions import simulate

    new = default()
    said = inspect.signature(simulate).parameters
    assert (said["classifier"].default, said["policy"].default) == (new.classifier, new.policy)
    assert OURS["auto"] == (new.policy, new.options["choice"], None)


def test_both_sides_of_a_fit_have_the_same_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import main_job
    from workbench import classifiers

    asked: dict[str, Any] = {}

    class Model:
        def fit(self, X: Any, y: Any) -> Any:
            return self

    monkeypatch.setattr(classifiers, "make_classifier", lambda name, **o: asked.update(o) or Model())
    X = np.zeros((5, 2))
    main_job._ours((X, np.zeros(5), X, np.zeros(5)), False)()
    peer = inspect.signature(main_job._Peer.__init__).parameters["points"].default
    assert (asked["n_inducing"], asked["n_mean"], asked["choice"]) == (peer, 0, "fixed")


def test_kept_lines_say_what_code_they_are_of() -> None:
    assert set(kept.stamp()) == {"commit", "code", "processor"} and len(kept.code_hash()) == 12
    lines = [json.loads(line) for line in LABEL_EFFICIENCY.read_text().splitlines()]
    assert all(line["commit"] and line["code"] for line in lines)
    assert kept.origins([{"commit": "a", "code": "1"}] * 2) == "Lines: 2 of a (code 1)."
    assert "several versions" in kept.origins([{"commit": "a", "code": "1"}, {"commit": "b", "code": "2"}])


def test_the_code_has_another_hash_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    before = kept.code_hash(tmp_path)
    kept.code_hash.cache_clear()
    (tmp_path / "a.py").write_text("x = 2\n")
    assert kept.code_hash(tmp_path) != before


@pytest.mark.parametrize("name", benchmark.names())
def test_a_benchmark_takes_its_options_by_its_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main([name, "--help"])
    assert ended.value.code == 0 and "usage" in capsys.readouterr().out


def test_an_option_with_a_value_reaches_its_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import desk, guess

    heard: list[Sequence[str]] = []
    for module in (guess, desk):
        monkeypatch.setattr(module, "main", heard.append)
    assert benchmark.main(["guess", "--seeds", "1"]) == benchmark.main(["desk", "--kind", "photos"]) == 0
    assert heard == [["--seeds", "1"], ["--kind", "photos"]]
    assert benchmark.main(["timing"]) == benchmark.main(["own_projects"]) == 2
    assert benchmark.main(["label_efficiency.rounds", "--seeds", "1"]) == 2


def mentioned() -> list[tuple[str, str]]:
    """(page, command) of every `python -m benchmarks...` with its options that a page prints."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = " ".join(page.read_text(encoding="utf-8").split())
        commands = re.findall(r"python -m (benchmarks[^`|]*?)(?=`|  |$)", text)
        found += [(page.name, command.strip().rstrip(".,;:)")) for command in commands]
    return sorted(set(found))


@pytest.mark.parametrize(("page", "command"), mentioned())
def test_a_printed_benchmark_command_is_one_that_its_parser_takes(
    page: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *words = shlex.split(command.replace("...", "digits").split(" | ")[0])
    _, _, name = module.partition(".")
    if name in ("", "trials"):
        if not words:
            return
        if name == "trials":
            pytest.skip("trials have names, which tests/benchmarks/test_trials.py reads")
        name, words = words[0], words[1:]
    file, _, function = name.partition(".")
    path = ROOT / "benchmarks" / f"{file}.py"
    assert path.is_file(), f"{page}: {command}"
    if function:
        work = getattr(importlib.import_module(f"benchmarks.{file}"), function, None)
        assert callable(work) and set(words) <= {"--quick"}, f"{page}: {command}"
        return
    with pytest.raises(SystemExit):
        importlib.import_module(f"benchmarks.{file}").main(["--help"])
    known = capsys.readouterr().out
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert all(option in known for option in options), f"{page}: {command}"


def test_figures_of_the_front_page_are_those_of_the_kept_lines() -> None:
    """README, index and policies say what the command beside them prints."""
    from benchmarks.label_efficiency import OTHERS, figures

    given = argparse.Namespace(
        out=LABEL_EFFICIENCY, sets=OTHERS, sides=("random", "auto"), first_seed=0, seeds=3, questions=100
    )
    found = figures(given)
    assert list(found) == list(OTHERS)
    sides = {
        side: {what: np.array([found[name][side][what] for name in found]) for what in ("area", "final")}
        for side in given.sides
    }
    c = compared(sides["auto"], sides["random"])
    ends = {side: f"{100 * values['final'].mean():.1f} %" for side, values in sides.items()}
    readme, index, policies, model = (
        " ".join((ROOT / place).read_text(encoding="utf-8").split())
        for place in ("README.md", "docs/index.md", "docs/policies.md", "docs/models/large-margin.md")
    )
    for page in (readme, index):
        assert ends["auto"] in page and ends["random"] in page
    for page in (readme, policies, model):
        assert f"{c.ratio:.3f}" in page
    assert f"lower on {c.below[0]} of the {len(found)}" in readme
    assert f"{-100 * c.difference:.1f} points lower in the median" in policies


def test_a_run_for_the_stopping_rules_has_an_error_for_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import stopping
    from workbench.pools import load_pool

    monkeypatch.setattr(stopping, "load_pool", lambda name: load_pool("iris"))
    line = stopping.one_run("iris", 0, 3)
    assert (
        line["labels"] == 3 and len(line["errors"]) == 4 and line["stops"] == {"classification-change": None}
    )


def test_a_stopping_rule_is_judged_by_the_end_of_its_run() -> None:
    from benchmarks.stopping import HINDSIGHT, judged

    errors = [0.5, 0.4, 0.3, 0.104, *[0.1] * 20]
    line = {"errors": errors, "stops": {"kappa": 2, "held-out-error": None}}
    assert judged(line, HINDSIGHT)[0] == 3
    asked, lost, said = judged(line, "kappa")
    assert (asked, round(lost, 6), said) == (2, 0.2, True)
    # what never says stop spends everything and gives nothing up
    assert judged(line, "held-out-error") == (len(errors) - 1, 0.0, False)
    assert round(judged(line, "1")[1], 6) == 0.3


def test_what_studies_say_of_stopping_is_what_was_kept() -> None:
    from benchmarks.stopping import HINDSIGHT, RESULTS, judged

    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    short = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    for rule in (HINDSIGHT, *lines[0]["stops"]):
        asked, lost, _ = (np.array(column) for column in zip(*(judged(x, rule) for x in lines), strict=True))
        row = next(x for x in page.splitlines() if x.strip("| `").startswith(rule) and x.endswith("of 24 |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2].split()[0] == f"{np.median(asked):.0f}"
        assert cells[4].split()[0] == f"{100 * np.median(lost):+.1f}"
        assert cells[5] == f"{(100 * lost > 2).sum()} of 24"
        if rule == HINDSIGHT:
            assert f"where {cells[2].split()[0]} were best" in short
        if rule == "classification-change":
            assert f"it spent {cells[2].split()[0]} questions" in short
            assert f"gave up {cells[4].split()[0].lstrip('+')} points" in short
