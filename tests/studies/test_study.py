"""Studies: kept round by round, resumed to the same bytes, the same with any number of workers."""

import contextlib
import filecmp
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import workbench
from tests.sessions.fakes import FAILING, FAKE, NearestMean
from workbench.errors import InputError
from workbench.exchange.bundles import BundleFolder
from workbench.registry import CodeName
from workbench.sessions import Round, RunSpec
from workbench.store import Store
from workbench.studies import StudySpec
from workbench.studies.runner import Failure, simulate_remotely
from workbench.studies.statistics import curves
from workbench.studies.study import (
    folder_name,
    load_study,
    made_with,
    read_study,
    run_study,
    study_from,
)

SPEC = StudySpec(
    "s",
    pools=("iris", "wine"),
    classifiers=(FAKE,),
    policies=("margin", "random"),
    seeds=2,
    budget=4,
)


class DiedError(Exception):
    pass


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def assert_same(a: Path, b: Path) -> None:
    assert files(a) == files(b)
    differ = filecmp.cmpfiles(a, b, files(a), shallow=False)[1]
    assert {Path(d).name for d in differ} <= {"timings.csv", "environment.json"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "whole"
    run_study(SPEC, out=folder)
    return folder


def test_every_run_has_its_bundle_and_its_rows(whole: Path) -> None:
    result = read_study(whole)
    assert result.spec == SPEC and result.status == "finished"
    assert [one for one, _ in result.runs] == SPEC.runs()
    rows = (whole / "comparison.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 2 * 2 * 5 and rows[0].startswith("pool,classifier,policy,seed,round")
    for first, second in zip(result.runs[::2], result.runs[1::2], strict=True):
        # paired: same first labels, same test items
        assert first[1][0].initial.tolist() == second[1][0].initial.tolist()
        assert first[1][0].error == second[1][0].error


def test_a_study_that_died_goes_on_and_computes_nothing_twice(whole: Path, tmp_path: Path) -> None:
    heard: list[tuple[RunSpec, int]] = []

    def dying(one: RunSpec, finished: Round) -> None:
        heard.append((one, finished.number))
        if len(heard) == 13:
            raise DiedError

    out = tmp_path / "b"
    with pytest.raises(DiedError):
        run_study(SPEC, dying, out=out)
    assert not (out / "comparison.csv").exists()
    kept = {p: p.stat().st_mtime_ns for p in out.rglob("run.json")}
    assert len(kept) == 2
    again: list[tuple[RunSpec, int]] = []
    result = run_study(SPEC, lambda one, r: again.append((one, r.number)), out=out)
    assert result.status == "finished" and len(again) == 40 == len(set(map(str, again)))
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert_same(whole, out)


@pytest.mark.slow
def test_workers_write_the_same_bytes_for_a_script_without_a_guard(whole: Path, tmp_path: Path) -> None:
    """Workers do not begin by importing the program that wants them."""
    script = tmp_path / "driver.py"
    script.write_text(
        "from tests.studies.test_study import SPEC, run_study\n"
        "heard = []\n"
        "hear = lambda one, r: heard.append((one.policy, one.seed, r.number))\n"
        f"result = run_study(SPEC, hear, out={str(tmp_path / 'out')!r}, workers=2)\n"
        "print(result.status, len(heard))\n"
    )
    root = Path(__file__).resolve().parents[2]
    environment = dict(os.environ, PYTHONPATH=str(root))
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "finished 40\n"
    # waiting for rounds is no error on either side, and ending no warning: what is logged would be printed
    assert done.stderr == ""
    assert_same(whole, tmp_path / "out")


@pytest.mark.slow  # alone: a killed program with workers goes on to the same bytes
def test_a_driver_killed_outright_goes_on_with_workers(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    program = (
        "from tests.studies.test_study import SPEC, Path, run_study\n"
        f"if __name__ == '__main__': run_study(SPEC, out=Path({str(out)!r}), workers=2)\n"
    )
    script = tmp_path / "driver.py"
    script.write_text(program)
    root = Path(__file__).resolve().parents[2]
    environment = dict(os.environ, PYTHONPATH=str(root))
    child = subprocess.Popen([sys.executable, str(script)], env=environment, start_new_session=True)
    try:
        while len(list(out.rglob("rounds.jsonl"))) + len(list(out.rglob("run.json"))) < 3:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.05)
            assert child.returncode is None
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    run_study(SPEC, out=out, workers=2)
    assert_same(whole, out)


class Deadly(NearestMean):
    """Kills its process in fit number DEADLY_FIT: every worker's; with DEADLY_MARK, a file to be, one's."""

    fits = 0

    def fit(self, X: object, y: object, callback: object = None) -> "Deadly":
        type(self).fits += 1
        mark = os.environ.get("DEADLY_MARK")
        is_worker = multiprocessing.parent_process() is not None
        due = is_worker and type(self).fits == int(os.environ["DEADLY_FIT"])
        if due and (mark is None or not Path(mark).exists()):
            if mark is not None:
                Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        super().fit(X, y, callback)
        return self


DEADLY = replace(SPEC, classifiers=(CodeName("tests.studies.test_study:Deadly"),), pools=("iris",), budget=6)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_no_finished_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is done again by another worker, from where it stood, and the bytes are the same."""
    run_study(DEADLY, out=tmp_path / "whole")
    monkeypatch.setenv("DEADLY_FIT", "12")
    monkeypatch.setenv("DEADLY_MARK", str(tmp_path / "mark"))
    heard: list[tuple[str, int, int]] = []
    on_disk: list[bool] = []
    out = tmp_path / "killed"

    def hear(one: RunSpec, finished: Round) -> None:
        heard.append((one.policy, one.seed, finished.number))
        kept = BundleFolder.rounds_kept(out / "runs" / folder_name(one))
        on_disk.append(finished.number in [r.number for r in kept])

    result = run_study(DEADLY, hear, out=out, workers=2)
    assert (tmp_path / "mark").exists() and result.status == "finished"
    # each round once, and on disk before it was told
    assert len(heard) == len(set(heard)) == 4 * 7 and all(on_disk)
    assert_same(tmp_path / "whole", out)


@pytest.mark.slow  # alone: workers that die each time, and the study afterwards
def test_a_run_that_keeps_killing_workers_fails_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(DEADLY, out=tmp_path / "whole")
    monkeypatch.setenv("DEADLY_FIT", "5")
    with pytest.raises(InputError, match="The workers died over iris"):
        run_study(DEADLY, out=tmp_path / "dying", workers=2)
    heard: list[int] = []
    run_study(DEADLY, lambda one, r: heard.append(r.number), out=tmp_path / "dying")
    assert len(heard) == 4 * 7
    assert_same(tmp_path / "whole", tmp_path / "dying")


def test_a_classifier_that_fails_leaves_the_rest_of_a_study_standing(tmp_path: Path, store: Store) -> None:
    spec = replace(SPEC, pools=("iris",), classifiers=(FAILING, FAKE))
    out = tmp_path / "a"
    result = run_study(spec, out=out)
    assert result.status == "failed" and {one.classifier for one, _ in result.runs} == {FAKE}
    assert [one for one, _ in result.failures] == [one for one in spec.runs() if one.classifier == FAILING]
    assert result.trouble.startswith("4 of 8 runs failed, such as iris, tests.sessions.fakes:Failing, m")
    assert result.trouble.endswith("seed 0: ArithmeticError: no root")
    [of_sound] = curves(result)
    assert of_sound.classifier == FAKE and len(of_sound.seeds) == 2
    assert (out / "comparison.csv").read_text().count("NearestMean") == 4 * 5
    # a worker tells it as it tells rounds
    *_, (number, message) = simulate_remotely(lambda *_: False, result.failures[0][0], None, 0)
    assert number == 3 and message == Failure("ArithmeticError: no root")
    assert pickle.loads(pickle.dumps(message)).error is None and message.error is not None
    # in the database the run says why; another call tries the failed ones alone
    heard: list[RunSpec] = []
    for _ in range(2):
        run_study(spec, lambda one, r: heard.append(one), store=store)
    failed = [r for r in store.runs.all(study="s") if r.status == "failed"]
    assert len(failed) == 4 and {r.message for r in failed} == {"ArithmeticError: no root"}


@pytest.mark.parametrize(
    "where", ["here", pytest.param("there", marks=pytest.mark.slow)]
)  # alone: on workers
def test_told_to_stop_a_study_stops_and_can_go_on(
    whole: Path, tmp_path: Path, scheduler: str, where: str
) -> None:
    heard: list[int] = []
    result = run_study(
        SPEC,
        lambda one, r: heard.append(r.number),
        lambda: len(heard) >= 7,
        out=tmp_path / "a",
        scheduler=scheduler if where == "there" else None,
    )
    assert result.status == "cancelled" and 7 <= len(heard) < 40
    assert sum(len(rounds) for _, rounds in result.runs) == len(heard)
    assert read_study(tmp_path / "a").status == "cancelled"
    run_study(SPEC, out=tmp_path / "a")
    assert_same(whole, tmp_path / "a")


def test_in_the_database(whole: Path, store: Store) -> None:
    heard: list[int] = []
    part = run_study(
        SPEC, lambda one, r: heard.append(r.number), lambda: len(heard) >= 8, store=store, project=None
    )
    assert part.status == "cancelled"
    assert sorted({r.status for r in store.runs.all(study="s")}) == ["cancelled", "finished"]
    result = run_study(SPEC, store=store)
    assert [r.status for r in store.runs.all(study="s")] == ["finished"] * 8
    assert [row[:7] for row in result.rows()] == [row[:7] for row in read_study(whole).rows()]
    heard.clear()
    run_study(SPEC, lambda one, r: heard.append(r.number), store=store)
    assert len(heard) == 40 and len(store.runs.all(study="s")) == 8


@pytest.mark.parametrize("kept", ["folder", "database"])
def test_a_comparison_says_which_versions_of_the_program_made_it(
    kept: str, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"out": tmp_path / "s"} if kept == "folder" else {"store": store, "study": "s"}
    one = replace(SPEC, pools=("iris",), policies=("margin",), seeds=1)
    now = workbench.__version__
    assert made_with(run_study(one, **where)) == f"Made with Workbench {now}."  # type: ignore[arg-type]
    monkeypatch.setattr(workbench, "__version__", "99.0")
    result = run_study(replace(one, policies=("margin", "random")), **where)  # type: ignore[arg-type]
    assert f"{now} and 99.0: runs of different versions are no fair pairs" in made_with(result)
    assert made_with() == ""


def test_a_study_may_grow_but_not_change(tmp_path: Path) -> None:
    small = StudySpec("s", pools=("iris",), classifiers=(FAKE,), policies=("random",), seeds=1, budget=2)
    run_study(small, out=tmp_path / "a")
    grown = StudySpec(
        "s", pools=("iris",), classifiers=(FAKE,), policies=("random", "margin"), seeds=2, budget=2
    )
    heard: list[tuple[str, int]] = []
    run_study(grown, lambda one, r: heard.append((one.policy, r.number)), out=tmp_path / "a")
    assert len(read_study(tmp_path / "a").runs) == 4
    other = StudySpec("s", pools=("iris",), classifiers=(FAKE,), policies=("random",), seeds=1, budget=3)
    with pytest.raises(InputError, match=r"another study \(budget 2, not 3\)"):
        run_study(other, out=tmp_path / "a")
    # the model that chooses its geometry brings an option with it, which only adds runs too
    both = replace(small, classifiers=(FAKE, "large-margin"))
    assert both.options.get("choice") == "auto" and len(run_study(both, out=tmp_path / "a").runs) == 2
    with pytest.raises(InputError, match="another study"):
        run_study(replace(both, options={"choice": "fixed"}), out=tmp_path / "a")
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "monday.txt").write_text("dear diary")
    with pytest.raises(InputError, match="holds other files"):
        run_study(small, out=tmp_path / "diary")


def test_a_folder_that_lacks_a_setting_is_no_folder_of_this_study(tmp_path: Path) -> None:
    small = StudySpec("s", pools=("iris",), classifiers=(FAKE,), policies=("random",), seeds=1, budget=2)
    run_study(small, out=tmp_path / "a")
    head = tmp_path / "a" / "study.json"
    document = json.loads(head.read_text())
    del document["asked_among"]
    head.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"another study \(asked_among None, not 0\)"):
        run_study(small, out=tmp_path / "a")


def test_what_cannot_be_run_is_said_before_anything_runs(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InputError, match="no policy"):
        run_study(StudySpec("s", policies=("nope",)), out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError, match="not in both"):
        run_study(SPEC, out=tmp_path / "x", store=store)
    with pytest.raises(InputError, match="workers lies between"):
        run_study(SPEC, workers=0)
    with pytest.raises(InputError, match="tcp://host"):
        run_study(SPEC, scheduler="nonsense")


def test_an_error_in_a_worker_arrives_as_it_is(scheduler: str) -> None:
    wrong = StudySpec(
        "s", pools=("iris",), classifiers=(FAKE,), policies=("random",), options={"sharpness": "no"}, seeds=2
    )
    with pytest.raises(InputError, match=r"2 of 2 runs failed.*cannot be fitted with sharpness"):
        run_study(wrong, scheduler=scheduler)


def test_every_setting_of_a_run_is_one_of_a_study() -> None:
    """Of what a run has one, a study has many; a document of either is checked by the same types."""
    many = {"pool": "pools", "classifier": "classifiers", "policy": "policies", "seed": "seeds"}
    of_runs = {many.get(f.name, f.name) for f in fields(RunSpec)}
    assert of_runs | {"name"} == {f.name for f in fields(StudySpec)}
    study = study_from({"pool": "iris", "asked_among": 50, "guess": ["names"], "seeds": 2})
    assert {(run.asked_among, run.guess) for run in study.runs()} == {(50, ("names",))}
    for document in ({"asked_among": "50"}, {"guess": "names"}, {"test_fraction": True}, {"options": []}):
        with pytest.raises(InputError, match=f"'{next(iter(document))}' is"):
            study_from(document)
        with pytest.raises(InputError, match=f"'{next(iter(document))}' is"):
            RunSpec.from_json(document)


def test_a_study_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'pool = "iris"\npolicies = ["margin", "random"]\nseeds = 3\nbudget = 5\n[options]\nn_inducing = 8\n'
    )
    spec = load_study(path)
    assert spec == StudySpec(
        "mine", pools=("iris",), policies=("margin", "random"), seeds=3, budget=5, options={"n_inducing": 8}
    )
    assert study_from(spec.to_json()) == spec
    for text, message in (
        ("polices = []", "no setting 'polices'"),
        ("seeds = 'many'", "'seeds' is 'many'"),
        ("seeds = true", "'seeds' is True"),
        ("policies = [1]", "'policies.0' is 1"),
        ('pool = "iris"\npools = ["wine"]', "not both"),
        ("budget =", "is not TOML that can be read"),
        ("budget = -1", "budget"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load_study(path)
    with pytest.raises(InputError, match="no file"):
        load_study(tmp_path / "none.toml")


NESTED = b"[" * 100_000
DAMAGES = {
    "half": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "bytes": lambda data: b"\xff\x00\xfe" * 20,
    "nested": lambda data: NESTED,
    "list": lambda data: b"[1, 2]",
    "words": lambda data: b"round,balanced_error\none,two\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_study_says_one_sentence(tmp_path: Path, damage: str) -> None:
    small = StudySpec("s", pools=("iris",), classifiers=(FAKE,), policies=("random",), seeds=1, budget=2)
    run_study(small, out=tmp_path / "a")
    refused = 0
    for path in sorted(p for p in (tmp_path / "a").rglob("*") if p.is_file()):
        whole = path.read_bytes()
        path.write_bytes(DAMAGES[damage](whole))
        for use in (lambda: read_study(tmp_path / "a"), lambda: run_study(small, out=tmp_path / "a")):
            try:
                use()
            except InputError as error:
                refused += 1
                assert 0 < len(str(error)) < 1000 and "\n" not in str(error)
        path.write_bytes(whole)
    assert refused >= 2, "study.json at least"
    assert read_study(tmp_path / "a").status == "finished"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = " + "9" * 400, "at most 100,000 runs"),
        ("policies = [" + ",".join(f'"p{i}"' for i in range(2000)) + "]\nseeds = 99", "at most 100,000 runs"),
        ("a = " + "[" * 5000, "is not TOML that can be read"),
        ("x" * 2_000_000, "a few lines"),
        ("pools = 3", "'pools' is 3: input should be a valid list"),
        ('seeds = "' + "9" * 5000 + '"', "'seeds' is"),
        ('"' + "k" * 5000 + '" = 1', "no setting"),
    ],
)
def test_odd_study_files_are_refused_in_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_study(tmp_path / "s.toml")
    assert len(str(caught.value)) < 1000
