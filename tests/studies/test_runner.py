"""The one runner: keeps each round as it finishes, stops when told, goes on where it stood."""

import filecmp
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions.fakes import FAKE, NearestMean
from workbench.errors import InputError
from workbench.exchange.bundles import BundleFolder
from workbench.pools.pool import Pool
from workbench.sessions import Round, RunSpec
from workbench.store import Store
from workbench.studies import StudySpec, run

ROOT = Path(__file__).resolve().parents[2]
SPEC = RunSpec("iris", classifier=FAKE, policy="random", budget=8)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return SPEC.load_pool()


class DiedError(Exception):
    pass


def dying(at: int) -> object:
    def heard(r: Round) -> None:
        if r.number == at:
            raise DiedError

    return heard


def facts(rounds: list[Round]) -> list[dict[str, object]]:
    return [{k: v for k, v in r.to_json().items() if k != "seconds"} for r in rounds]


def test_a_run_kept_nowhere(pool: Pool) -> None:
    heard: list[int] = []
    result = run(SPEC, lambda r: heard.append(r.number), pool=pool)
    assert heard == list(range(9)) and result.status == "finished" and result.run_id is None
    assert [r.number for r in result.rounds] == heard


def test_rounds_are_in_the_database_before_anybody_hears_of_them(store: Store, pool: Pool) -> None:
    def heard(r: Round) -> None:
        (record,) = store.runs.all()
        assert record.status == "running" and record.n_rounds == r.number + 1

    result = run(SPEC, heard, pool=pool, store=store, study="s")
    assert result.run_id is not None
    record = store.runs.get(result.run_id)
    assert (record.status, record.n_rounds, record.study) == ("finished", 9, "s")
    assert facts([Round.from_json(r.record) for r in store.rounds.all(record.id)]) == facts(result.rounds)
    assert [n for n in range(9) if store.rounds.state(record.id, n)] == [8]


def test_a_failed_run_in_the_database_goes_on_to_the_same_rounds(store: Store, pool: Pool) -> None:
    whole = run(SPEC, pool=pool)
    with pytest.raises(DiedError):
        run(SPEC, dying(3), pool=pool, store=store)  # type: ignore[arg-type]
    (record,) = store.runs.all()
    assert record.status == "failed" and record.n_rounds == 4
    heard: list[int] = []
    result = run(SPEC, lambda r: heard.append(r.number), pool=pool, store=store, run_id=record.id)
    assert heard == [4, 5, 6, 7, 8] and facts(result.rounds) == facts(whole.rounds)
    assert store.runs.get(record.id).status == "finished"
    with pytest.raises(InputError, match="another specification"):
        run(
            RunSpec("iris", classifier=FAKE, policy="random", budget=9),
            pool=pool,
            store=store,
            run_id=record.id,
        )


def test_a_folder_goes_on_to_the_same_bytes(tmp_path: Path, pool: Pool) -> None:
    run(SPEC, pool=pool, out=tmp_path / "a")
    run(SPEC, pool=pool, out=tmp_path / "twice")
    for at in (0, 4, 8):
        with pytest.raises(DiedError):
            run(SPEC, dying(at), pool=pool, out=tmp_path / f"b{at}")  # type: ignore[arg-type]
        assert not (tmp_path / f"b{at}" / "run.json").exists()
        run(SPEC, pool=pool, out=tmp_path / f"b{at}")
    for other in ("twice", "b0", "b4", "b8"):
        assert_same(tmp_path / "a", tmp_path / other)


def assert_same(a: Path, b: Path) -> None:
    """Every file but timings.csv and environment.json has the same bytes, and none is missing."""
    files = sorted(p.relative_to(a).as_posix() for p in a.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(b).as_posix() for p in b.rglob("*") if p.is_file())
    differ = filecmp.cmpfiles(a, b, files, shallow=False)[1]
    assert set(differ) <= {"timings.csv", "environment.json"}


def test_half_a_line_left_by_a_kill_is_done_again(tmp_path: Path, pool: Pool) -> None:
    run(SPEC, pool=pool, out=tmp_path / "a")
    with pytest.raises(DiedError):
        run(SPEC, dying(5), pool=pool, out=tmp_path / "b")  # type: ignore[arg-type]
    log = tmp_path / "b" / ".partial" / "rounds.jsonl"
    with log.open("ab") as file:
        file.write(b'{"number": 6, "n_lab')
    run(SPEC, pool=pool, out=tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_kill_while_the_rest_was_dropped_costs_nothing(tmp_path: Path, pool: Pool) -> None:
    run(SPEC, pool=pool, out=tmp_path / "a")
    left = tmp_path / "a" / ".partial"
    left.mkdir()
    (left / "rounds.jsonl").write_text(json.dumps(run(SPEC, pool=pool).rounds[0].to_json()) + "\n")
    heard: list[int] = []
    result = run(SPEC, lambda r: heard.append(r.number), pool=pool, out=tmp_path / "a")
    assert heard == [] and result.status == "finished" and len(result.rounds) == 9
    assert not left.exists()


def test_a_finished_folder_is_read_not_run(tmp_path: Path, pool: Pool) -> None:
    first = run(SPEC, pool=pool, out=tmp_path / "a")
    heard: list[int] = []
    again = run(SPEC, lambda r: heard.append(r.number), pool=pool, out=tmp_path / "a")
    assert heard == [] and again.status == "finished"
    assert [(r.error, r.queried.tolist()) for r in again.rounds] == [
        (r.error, r.queried.tolist()) for r in first.rounds
    ]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, pool: Pool) -> None:
    run(SPEC, pool=pool, out=tmp_path / "a")
    other = RunSpec("iris", classifier=FAKE, policy="random", budget=8, seed=1)
    with pytest.raises(InputError, match=r"another run \(seed 0, not 1\)"):
        run(other, out=tmp_path / "a")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear diary")
    with pytest.raises(InputError, match="holds other files"):
        run(SPEC, pool=pool, out=tmp_path / "notes")
    with pytest.raises(InputError, match="is a file"):
        run(SPEC, pool=pool, out=tmp_path / "notes" / "diary.txt")
    document = json.loads((tmp_path / "a" / "run.json").read_text())
    document["pool"]["fingerprint"] = "0" * 32
    (tmp_path / "a" / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="changed since"):
        run(SPEC, pool=pool, out=tmp_path / "a")


def test_a_run_that_never_began_does_not_stand_in_the_way(tmp_path: Path, pool: Pool) -> None:
    """Neither one that was refused nor one that was killed before its first round."""
    place = tmp_path / "a"
    with pytest.raises(InputError):
        run(RunSpec("iris", classifier="nothing-like-it", budget=2), pool=pool, out=place)
    assert not place.exists()
    other = RunSpec("iris", classifier=FAKE, policy="random", budget=8, seed=1)
    killed = BundleFolder(place, other, pool)
    killed.begin()
    killed._let_go()
    (place / ".partial" / "owner").unlink()
    assert run(SPEC, pool=pool, out=place).status == "finished"


def test_a_folder_that_another_program_writes_is_left_to_it(tmp_path: Path, pool: Pool) -> None:
    with pytest.raises(DiedError):
        run(SPEC, dying(2), pool=pool, out=tmp_path / "a")  # type: ignore[arg-type]
    code = "from workbench.store.processes import this_process; print(this_process(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        (tmp_path / "a" / ".partial" / "owner").write_text(other.stdout.readline().strip())
        with pytest.raises(InputError, match="Another program is at work"):
            run(SPEC, pool=pool, out=tmp_path / "a")
        other.stdin.write("\n")
    assert run(SPEC, pool=pool, out=tmp_path / "a").status == "finished"


def test_told_to_stop_it_stops_and_can_go_on(store: Store, tmp_path: Path, pool: Pool) -> None:
    heard: list[int] = []
    result = run(SPEC, lambda r: heard.append(r.number), lambda: len(heard) >= 3, pool=pool, store=store)
    assert result.status == "cancelled" and heard == [0, 1, 2]
    assert result.run_id is not None and store.runs.get(result.run_id).status == "cancelled"
    rest = run(SPEC, pool=pool, store=store, run_id=result.run_id)
    assert facts(rest.rounds) == facts(run(SPEC, pool=pool).rounds)
    stopped = run(
        SPEC,
        None,
        lambda: (tmp_path / "f" / ".partial" / "state-0.npz").exists(),
        pool=pool,
        out=tmp_path / "f",
    )
    assert stopped.status == "cancelled" and not (tmp_path / "f" / "run.json").exists()
    assert run(SPEC, pool=pool, out=tmp_path / "f").status == "finished"


def test_a_stop_reaches_into_a_fit_and_that_fit_is_thrown_away(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bool] = []
    plain = NearestMean.fit

    def watched(self: NearestMean, X: object, y: object, callback: object = None) -> NearestMean:
        for fraction in (0.3, 0.6):
            answers.append(callback(fraction, 0.0))  # type: ignore[operator]
            if answers[-1]:
                break
        return plain(self, X, y)

    monkeypatch.setattr(NearestMean, "fit", watched)
    result = run(SPEC, None, lambda: len(answers) >= 3, pool=pool)
    assert answers == [False, False, False, True]
    assert result.status == "cancelled" and [r.number for r in result.rounds] == [0]


def test_where_a_run_is_kept_must_make_sense(store: Store, tmp_path: Path, pool: Pool) -> None:
    with pytest.raises(InputError, match="not in both"):
        run(SPEC, pool=pool, store=store, out=tmp_path / "x")
    with pytest.raises(InputError, match="go with a store"):
        run(SPEC, pool=pool, study="s")
    mine = store.runs.start(SPEC.to_json(), pool.fingerprint).id
    with pytest.raises(InputError, match="running already"):
        run(SPEC, pool=pool, store=store, run_id=mine)


def test_what_goes_wrong_is_recorded(store: Store, pool: Pool) -> None:
    spec = RunSpec("iris", classifier=FAKE, policy="nope", budget=2)
    with pytest.raises(InputError, match="no policy"):
        run(spec, pool=pool, store=store)
    (record,) = store.runs.all()
    assert record.status == "failed" and "no policy" in record.message


def test_a_study_is_a_table_of_paired_runs() -> None:
    study = StudySpec("s", policies=("margin", "random"), seeds=3, budget=5)
    runs = study.runs()
    assert len(runs) == len({(r.policy, r.seed) for r in runs}) == 6
    assert [r.seed for r in runs] == [0, 0, 1, 1, 2, 2]
    for wrong, message in (
        ({"policies": ()}, "at least one policy"),
        ({"policies": ("a", "a")}, "named twice"),
        ({"seeds": 0}, "'seeds' is 0: input should be greater than or equal to 1"),
        ({"budget": -1}, "budget"),
    ):
        with pytest.raises(InputError, match=message):
            StudySpec("s", **wrong)  # type: ignore[arg-type]
