"""A bundle tells a whole run, and its model predicts without the program that made it."""

import csv
import io
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.databases import new_project
from tests.exchange.test_projects import zipped
from tests.oracles import step
from tests.sessions.fakes import FAKE
from workbench.csv_writing import csv_text, plain_cell, safe_cell
from workbench.errors import InputError
from workbench.exchange import bundles
from workbench.exchange.bundles import (
    BundleFolder,
    labelled_items,
    may_be_written,
    read_bundle,
    write_run_bundle,
)
from workbench.exchange.manifests import json_text, sealed
from workbench.exchange.models import load_model, save_model
from workbench.exchange.projects import write_project_bundle
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import ArrayOracle, RunSpec, labelled_at
from workbench.sessions.insight import run_model
from workbench.store import Store
from workbench.studies import RunResult, run

ROOT = Path(__file__).resolve().parents[2]
SPEC = RunSpec("iris", classifier=FAKE, policy="margin", budget=6, batch=2)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return SPEC.load_pool()


@pytest.fixture(scope="module")
def result(pool: Pool) -> RunResult:
    return run(SPEC, pool=pool)


@pytest.fixture
def folder(tmp_path: Path, pool: Pool, result: RunResult) -> Path:
    state = result.rounds[-1].state
    assert state is not None
    write_run_bundle(tmp_path / "b", SPEC, pool, result.rounds, state)
    return tmp_path / "b"


def test_a_bundle_holds_what_it_should(folder: Path, pool: Pool, result: RunResult) -> None:
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    model = {"model/spec.json", "model/params.npz", "model/features.json"}
    assert files == {"run.json", "rounds.csv", "events.csv", "timings.csv", "environment.json", *model}
    document = json.loads((folder / "run.json").read_text())
    assert document["pool"]["fingerprint"] == pool.fingerprint
    assert RunSpec.from_json(document["spec"]) == SPEC
    with (folder / "rounds.csv").open() as file:
        rows = list(csv.DictReader(file))
    # other columns are another format: what an earlier version wrote is no damaged bundle
    measures = ["error", "nll", "brier", "ece", "balanced_error", "macro_f1"]
    assert (document["format"], list(rows[0])) == (4, ["round", "n_labelled", *measures, "program"])
    # every digit is there: the text is the number
    assert [float(row["nll"]) for row in rows] == [r.nll for r in result.rounds]
    with (folder / "events.csv").open() as file:
        told = list(csv.DictReader(file))
    items, codes = labelled_at(result.rounds, 3)
    assert [int(t["item"]) for t in told] == items.tolist()
    assert [t["class"] for t in told] == [pool.classes[c] for c in codes]
    assert [t["role"] for t in told] == ["initial"] * 3 + ["policy"] * 6


def test_a_bundle_reads_back(folder: Path, pool: Pool, result: RunResult) -> None:
    back = read_bundle(folder)
    assert back.spec == SPEC and back.fingerprint == pool.fingerprint
    for one, two in zip(back.rounds, result.rounds, strict=True):
        assert (one.number, one.n_labelled, one.error, one.ece, one.n_test) == (
            two.number,
            two.n_labelled,
            two.error,
            two.ece,
            two.n_test,
        )
        assert one.queried.tolist() == two.queried.tolist() and one.initial.tolist() == two.initial.tolist()
        assert np.array_equal(one.utilities, two.utilities)
    assert back.rounds[-1].state is not None and result.rounds[-1].state is not None
    assert np.array_equal(back.rounds[-1].state["means"], result.rounds[-1].state["means"])


def test_a_zip_of_the_same_files_is_the_same_bytes(folder: Path) -> None:
    data = zipped(folder)
    assert data == zipped(folder)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.read("run.json") == (folder / "run.json").read_bytes()


def test_the_model_predicts_raw_rows_as_the_run_did(folder: Path, pool: Pool, result: RunResult) -> None:
    saved = load_model(folder)
    assert saved.classes == pool.classes and saved.n_labelled == 9 and saved.pool == "iris"
    raw = np.asarray([list(pool.items.show(i).row.values()) for i in range(150)])  # type: ignore[union-attr]
    assert pool.test is not None
    p = saved.probabilities(saved.features(raw))
    ran = run_model(result.spec, pool, result.rounds, result.rounds[-1].number).probabilities
    assert np.array_equal(p[pool.test.test].astype(np.float32), ran[pool.test.test].astype(np.float32))
    assert pool.truth is not None
    truth = pool.truth[pool.test.test]
    assert result.rounds[-1].error == np.mean(p[pool.test.test].argmax(axis=1) != truth)
    assert result.rounds[-1].nll == pytest.approx(-np.log(p[pool.test.test, truth]).mean(), rel=1e-6)
    assert saved.predict(raw[:3]) == [pool.classes[c] for c in p[:3].argmax(axis=1)]
    assert saved.latent(saved.features(raw[:2])).mean.shape == (2, 3)
    with pytest.raises(InputError, match="columns"):
        saved.features(raw[:, :2])


def test_a_model_that_is_not_there_or_not_whole(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match=r"no saved model in .*workbench run --out"):
        load_model(tmp_path)
    (tmp_path / ".partial").mkdir()
    with pytest.raises(InputError, match="not finished; start it again"):
        load_model(tmp_path)
    place = folder / "model"
    written = {name: (place / name).read_bytes() for name in ("params.npz", "spec.json")}

    def changed(name: str, data: bytes) -> None:
        for other, was in written.items():
            (place / other).write_bytes(was)
        (place / name).write_bytes(data)
        resealed(place)

    changed("params.npz", b"PK nothing")
    with pytest.raises(InputError, match="not an NPZ file"):
        load_model(folder)
    stream = io.BytesIO()
    np.savez(stream, other=np.zeros(3))
    changed("params.npz", stream.getvalue())
    with pytest.raises(InputError, match=r"do not make a .* model.*Run the command"):
        load_model(folder)
    spec = json.loads(written["spec.json"])
    for other in (2, 99):
        changed("spec.json", json.dumps(spec | {"format": other}).encode())
        with pytest.raises(InputError, match=f"another version of Workbench: it has format {other}, this"):
            load_model(folder)
    changed("spec.json", json.dumps({k: v for k, v in spec.items() if k != "classes"}).encode())
    with pytest.raises(InputError, match="damaged"):
        load_model(folder)
    (place / "spec.json").write_text("{")
    with pytest.raises(InputError, match="JSON"):
        load_model(folder)


def resealed(place: Path) -> None:
    """Make the checksums of a folder fit again, as a stranger would."""
    head = place / ("spec.json" if (place / "spec.json").is_file() else "run.json")
    document = json.loads(head.read_text())
    names = list(document.pop("files"))
    document.pop("sha256")
    head.write_text(json_text(sealed(document, place, names)))


@pytest.mark.parametrize("gone", ["files", "sha256"])
def test_what_has_no_checksums_is_refused(folder: Path, gone: str) -> None:
    for path in (folder / "run.json", folder / "model" / "spec.json"):
        document = json.loads(path.read_text())
        path.write_text(json_text({k: v for k, v in document.items() if k != gone}))
    for read in (read_bundle, load_model, labelled_items):
        with pytest.raises(InputError, match="has no checksums"):
            read(folder)


def test_one_changed_byte_is_named_and_the_rest_is_used(folder: Path, tmp_path: Path) -> None:
    n_rounds = len(read_bundle(folder).rounds)

    def changed(name: str) -> Path:
        place = tmp_path / name.replace("/", "-")
        shutil.copytree(folder, place)
        data = bytearray((place / name).read_bytes())
        data[len(data) // 2] ^= 1
        (place / name).write_bytes(data)
        return place

    for name in ("rounds.csv", "events.csv"):
        place = changed(name)
        with pytest.raises(InputError, match=rf"damaged: {name} is not what was written\. Copy the folder"):
            read_bundle(place)
        assert load_model(place).n_labelled == 9, "the model is whole"
    place = changed("model/params.npz")
    bundle = read_bundle(place)
    assert bundle.damage == ("model/params.npz",) and len(bundle.rounds) == n_rounds
    assert bundle.rounds[-1].state is None
    with pytest.raises(InputError, match=r"damaged: params\.npz is not what was written"):
        load_model(place)
    for name in ("run.json", "model/spec.json"):
        place = changed(name)
        with pytest.raises(InputError, match=r"damaged|JSON"):
            read_bundle(place) if name == "run.json" else load_model(place)


@pytest.mark.parametrize("keep", [0.5, 0.0])
def test_a_table_cut_short_is_refused_with_fitting_checksums_too(folder: Path, keep: float) -> None:
    lines = (folder / "rounds.csv").read_text().splitlines(keepends=True)
    (folder / "rounds.csv").write_text("".join(lines[: 1 + int(keep * len(lines))]))
    resealed(folder)
    with pytest.raises(InputError, match=r"The bundle in .* (is damaged: rounds\.csv ends|cannot be read)"):
        read_bundle(folder)


def test_items_labelled_by_a_damaged_run_are_not_guessed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert labelled_items(folder)[0] == "iris" and len(labelled_items(folder)[1]) == 9
    (folder / "events.csv").unlink()
    with pytest.raises(InputError, match=r"events\.csv is not what was written"):
        labelled_items(folder)


def test_a_half_written_export_never_blocks_the_next(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w.sqlite")
    session = new_project(store)
    for _ in range(4):
        step(session, ArrayOracle(session.pool))
    place = tmp_path / "export"
    assert may_be_written(place)
    write_project_bundle(place, session)
    assert not may_be_written(place)
    (place / "run.json").unlink()  # written last: this is what a kill leaves
    (place / ".rounds.csv.new").write_text("half")
    assert may_be_written(place)
    (place / "mine.txt").write_text("mine")
    assert not may_be_written(place)
    store.close()


def test_a_damaged_unfinished_run_says_so(tmp_path: Path, pool: Pool, result: RunResult) -> None:
    kept = BundleFolder(tmp_path / "b", SPEC, pool)
    kept.begin()
    for finished in result.rounds[:2]:
        kept.add(finished)
    (state,) = (tmp_path / "b" / ".partial").glob("state-*.npz")
    whole = state.read_bytes()
    state.write_bytes(whole[:100])
    with pytest.raises(InputError):
        kept.progress()
    state.unlink()
    with pytest.raises(InputError, match=r"lost its posterior.*run the command that made it again"):
        kept.progress()
    rounds = tmp_path / "b" / ".partial" / "rounds.jsonl"
    rounds.write_bytes(b'{"number": {}}\n' + rounds.read_bytes())
    with pytest.raises(InputError, match="not a saved round"):
        kept.progress()


def test_a_folder_without_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        read_bundle(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 4, "kind": "project"}')
    with pytest.raises(InputError, match="no checksums"):
        read_bundle(tmp_path)
    earlier = tmp_path / "run.json"
    earlier.write_text('{"format": 3, "kind": "project", "begun": "in another shape"}')
    with pytest.raises(InputError, match=r"of another version of Workbench: it has format 3.*left as it is"):
        read_bundle(tmp_path)
    assert earlier.read_text() == '{"format": 3, "kind": "project", "begun": "in another shape"}'
    (tmp_path / "run.json").write_text(json_text(sealed({"format": 4, "kind": "project"}, tmp_path, ())))
    with pytest.raises(InputError, match="bundle of a run"):
        read_bundle(tmp_path)


def test_a_project_is_told_in_the_same_form(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w.sqlite")
    session = new_project(store, annotator="=ann")
    for _ in range(5):
        step(session, ArrayOracle(session.pool))
    item = session.pool.trainable[-1]
    session.items.label(int(item), "setosa")
    session.undo()
    session.classes.rename("setosa", "iris setosa")
    session.classes.describe("virginica", guidance="=the large one")
    write_project_bundle(tmp_path / "b", session)
    with (tmp_path / "b" / "codebook.csv").open() as file:
        book = {row["class"]: row for row in csv.DictReader(file)}
    assert list(book) == ["iris setosa", "versicolor", "virginica"]
    assert book["iris setosa"]["began_as"] == "setosa" and book["virginica"]["guidance"] == "'=the large one"
    with (tmp_path / "b" / "events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(session.log.events)
    labels = [r for r in rows if r["kind"] == "label"]
    assert [r["stands"] for r in labels] == ["yes"] * 5 + ["undone"]
    assert labels[-1]["class"] == "iris setosa" and labels[-1]["class_key"] == "setosa"
    assert {r["annotator"] for r in labels} == {"'=ann"}
    assert json.loads(labels[0]["details"])["role"] == "cold-start"
    document = json.loads((tmp_path / "b" / "run.json").read_text())
    assert document["kind"] == "project" and document["n_labelled"] == 5
    assert load_model(tmp_path / "b").n_labelled == session.model.n_labelled  # type: ignore[union-attr]
    store.close()


def test_a_saved_large_margin_model_predicts_without_tensorflow(tmp_path: Path) -> None:
    from workbench.classifiers import make_classifier

    iris = load_pool("iris")
    model = make_classifier("large-margin", classes=np.arange(3), n_inducing=16, random_state=0)
    model.fit(iris.features, iris.truth)
    save_model(
        tmp_path / "m",
        model.get_state(),
        classifier="large-margin",
        options={"n_inducing": 16},
        classes=iris.classes,
        feature_map=iris.feature_map,
        n_labelled=150,
        pool="iris",
    )
    np.save(tmp_path / "rows.npy", iris.features)
    np.save(tmp_path / "expected.npy", model.predict_proba(iris.features))
    code = (
        "import sys, numpy as np; from workbench.exchange.models import load_model\n"
        "saved = load_model(sys.argv[1] + '/m'); X = np.load(sys.argv[1] + '/rows.npy')\n"
        "p = saved.probabilities(saved.features(X))\n"
        "same = np.allclose(p, np.load(sys.argv[1] + '/expected.npy'), rtol=1e-10, atol=0)\n"
        "print(same, saved.latent(X[:2]) is not None, 'tensorflow' in sys.modules, 'gpflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "True", "False", "False"], done.stderr


def test_cells_and_documents() -> None:
    for text in ("=1", "+1a", "-x", "@y", "\tz", "plain", "", "'", "'quoted", "'=both", "''+"):
        assert plain_cell(safe_cell(text)) == text
        assert not safe_cell(text).startswith(("=", "+", "-", "@", "\t"))
    assert csv_text(["a", "b"], [[1, float("nan")], [-0.1, None]]) == "a,b\n1,\n-0.1,\n"
    assert json_text({"b": 1, "a": "é"}) == '{\n  "a": "é",\n  "b": 1\n}\n'


def test_of_programs_that_begin_a_run_at_once_one_goes_on(
    tmp_path: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "this_process", lambda: threading.current_thread().name)
    monkeypatch.setattr(bundles, "is_alive", lambda owner, renewed: True)
    for number in range(20):
        at_once, begun = threading.Barrier(4), []

        def begin(
            folder: BundleFolder, at_once: threading.Barrier = at_once, begun: list[str] = begun
        ) -> None:
            at_once.wait()
            try:
                folder.begin()
                begun.append(threading.current_thread().name)
            except InputError as error:
                assert "Another program is at work" in str(error)

        place = tmp_path / str(number)
        threads = [threading.Thread(target=begin, args=(BundleFolder(place, SPEC, pool),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert begun == [(place / ".partial" / "owner").read_text()]


def test_what_a_kill_left_of_a_file_is_swept_when_the_run_goes_on(tmp_path: Path, pool: Pool) -> None:
    place = tmp_path / "b"
    left = [place / ".run.json.0a1b2c3d.new", place / ".partial" / ".state-0.npz.0a1b2c3d.new"]
    stays = [place / ".partial" / ".mine.new", place / ".partial" / "x.new"]
    kept = BundleFolder(place, SPEC, pool)
    kept.begin()
    for path in (*left, *stays):
        path.write_bytes(b"half")
    again = BundleFolder(place, SPEC, pool)
    again.begin()
    assert not any(path.exists() for path in left) and all(path.exists() for path in stays)
