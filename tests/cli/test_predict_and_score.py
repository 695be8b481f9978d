"""`workbench predict` and `workbench score` by the model that a run saved."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calls import FAST, call, refused, table
from tests.pools.features.test_shapes import photos
from tests.pools.images.test_images import zipped
from workbench.exchange.models import load_model
from workbench.exchange.predictions import read_predictions
from workbench.pools import load_pool
from workbench.pools.features import cache
from workbench.pools.features.shapes import ShapesFeatureMap


def test_other_rows_are_read_as_the_pool_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of cp850 with quotes that are part of the texts, a ragged line and no names of columns."""
    words = ("gr\xfcn", 'ro"t')
    lines = [f"{i * 7 % 11}.5;{words[i % 2]};{'ab'[i % 2]}" for i in range(40)]
    pool, rows, out = tmp_path / "pool.csv", tmp_path / "rows.csv", tmp_path / "run"
    pool.write_bytes("\n".join([*lines, "1;2"]).encode("cp850"))
    read = {"encoding": "cp850", "header": "false", "ragged": "drop", "quote": "none", "delimiter": ";"}
    settings = [text for key, value in read.items() for text in ("--pool-set", f"{key}={value}")]
    settings += ["--pool-set", 'columns={"x1": "number", "x2": "category", "x3": "class"}']
    assert call("run", "--pool", pool, *settings, *FAST[2:], "--budget", "3", "--out", out, "-q") == 0
    saved = load_model(out)
    assert saved.reading == read | {"header": False}
    capsys.readouterr()
    rows.write_bytes("\n".join([*lines[:5], "1"]).encode("cp850"))
    assert call("predict", rows, "--model", out) == 0
    told = table(capsys.readouterr().out)
    assert len(told) == 5
    assert call("score", "--pool", rows, "--model", out, "--policy", "margin") == 0
    assert len(table(capsys.readouterr().out)) == 5
    # of another program: UTF-8 is known by itself, the rest is said
    rows.write_text(
        "\n".join(["x1,x2", *(",".join(line.split(";")[:2]) for line in lines[:5])]), encoding="utf-8"
    )
    other = ("--read", "delimiter=,", "--read", "header=true")
    assert call("predict", rows, "--model", out, *other) == 0
    assert [t["prediction"] for t in table(capsys.readouterr().out)] == [t["prediction"] for t in told]
    assert call("score", "--pool", rows, "--model", out, "--policy", "margin", *other) == 0
    # numbers with another decimal sign, and cells that are none
    capsys.readouterr()
    rows.write_bytes("\n".join(line.replace(".", ",") for line in lines[:5]).encode("cp850"))
    for command in (("predict", rows), ("score", "--pool", rows, "--policy", "margin")):
        assert "--read decimal=," in refused(capsys, *command, "--model", out)
        assert call(*command, "--model", out, "--read", "decimal=,") == 0
        assert "count as empty" not in capsys.readouterr().err
    assert call("predict", rows, "--model", out, "--read", "decimal=,") == 0
    assert [t["prediction"] for t in table(capsys.readouterr().out)] == [t["prediction"] for t in told]
    rows.write_bytes("\n".join([f"oops;{words[0]};a", *lines[1:5]]).encode("cp850"))
    for command in (("predict", rows), ("score", "--pool", rows, "--policy", "margin")):
        assert call(*command, "--model", out) == 0
        assert "1 of 5 filled cells of 'x1' are no number, such as 'oops'" in capsys.readouterr().err


def test_predict_and_score_by_a_saved_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a"
    assert call("run", *FAST, "--budget", "20", "--out", out, "-q") == 0
    capsys.readouterr()
    iris = load_pool("iris")
    assert iris.truth is not None
    rows = tmp_path / "rows.csv"
    names = iris.feature_map.columns
    (tmp_path / "flowers.csv").write_text(
        ",".join(("flower_id", *names, "class"))
        + "\n"
        + "".join(f"f{i}," + ",".join(map(str, r)) + f",{i % 3}\n" for i, r in enumerate(iris.features))
    )
    flowers = ("run", "--pool", tmp_path / "flowers.csv", *FAST[2:], "--budget", "3", "--out", tmp_path / "b")
    assert call(*flowers, "-q") == 0
    capsys.readouterr()
    assert call("predict", tmp_path / "flowers.csv", "--model", tmp_path / "b") == 0
    written = capsys.readouterr().out.encode()
    ids = [item for item, *_ in read_predictions(written, "p.csv", load_pool(tmp_path / "flowers.csv"))]
    assert ids == list(range(len(iris))), "predictions name the items of the pool"
    rows.write_text(
        ",".join(("extra", *names))
        + "\n"
        + "".join("x," + ",".join(map(str, r)) + "\n" for r in iris.features)
    )
    assert call("predict", rows, "--model", out, "--probabilities") == 0
    told = table(capsys.readouterr().out)
    right = np.mean([t["prediction"] == iris.classes[c] for t, c in zip(told, iris.truth, strict=True)])
    assert right > 0.85
    assert all(float(t["confidence"]) == max(float(t[f"p({c})"]) for c in iris.classes) for t in told)
    rows.write_bytes(rows.read_bytes().replace(b"\nx,", b"\nM\xfcller,"))
    for command in (("predict", rows), ("score", "--pool", rows, "--policy", "margin")):
        assert call(*command, "--model", out) == 0
        assert "cp1252" in capsys.readouterr().err, "what was guessed in reading is told"
    np.save(tmp_path / "rows.npy", iris.features)
    np.savez(tmp_path / "rows.npz", X=iris.features)
    for file in ("rows.npy", "rows.npz"):
        told_in = tmp_path / f"{file}.csv"
        assert call("predict", tmp_path / file, "--model", out / "model", "--out", told_in) == 0
        same = table(told_in.read_text())
        assert [s["prediction"] for s in same] == [t["prediction"] for t in told]
    capsys.readouterr()
    rows.write_text("a,b\n1,2\n")
    assert "lack" in refused(capsys, "predict", rows, "--model", out)
    assert "no file" in refused(capsys, "predict", tmp_path / "none.csv", "--model", out)

    labelled = {int(e["item"]) for e in table((out / "events.csv").read_text())}
    assert call("score", "--pool", "iris", "--model", out, "--top", "8", "--policy", "margin") == 0
    best = table(capsys.readouterr().out)
    assert [int(b["rank"]) for b in best] == list(range(1, 9))
    assert not labelled & {int(b["row"]) for b in best}
    utilities = [float(b["utility"]) for b in best]
    assert utilities == sorted(utilities, reverse=True)
    assert (
        call("score", "--pool", tmp_path / "rows.npy", "--model", out, "--policy", "margin", "--top", "3")
        == 0
    )
    assert len(table(capsys.readouterr().out)) == 3
    assert "no policy" in refused(capsys, "score", "--pool", "iris", "--model", out, "--policy", "nope")


def test_photos_of_any_sizes_are_run_predicted_and_scored_by_their_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path / "features"))
    monkeypatch.setattr(cache, "WORTH", 10)  # learnt once, as those of a pool of 500
    Path("bars.zip").write_bytes(zipped(photos(24)))
    assert call("run", "--pool", "bars.zip", *FAST[2:], "--budget", "12", "--out", "out", "-q") == 0
    capsys.readouterr()
    assert isinstance(load_model("out").feature_map, ShapesFeatureMap)
    assert call("predict", "bars.zip", "--model", "out") == 0
    rows = table(capsys.readouterr().out)
    predicted = [row["prediction"] for row in rows]
    assert [row["id"] for row in rows] == list(load_pool("bars.zip").items.ids)
    with zipfile.ZipFile("bars.zip") as packed:
        packed.extractall("bars")
    Path("bars/t.csv").write_text("photo\n" + "".join(f"{row['id']}\n" for row in rows))
    assert call("predict", "bars/t.csv", "--model", "out") == 0
    again = table(capsys.readouterr().out)
    assert [(row["id"], row["prediction"]) for row in again] == [(r["id"], r["prediction"]) for r in rows]
    truth = [path.split("/")[0] for path in sorted(photos(24))]
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.85
    assert call("score", "--pool", "bars.zip", "--model", "out", "--top", "5") == 0
    assert len(table(capsys.readouterr().out)) == 5
    message = refused(capsys, "run", "--pool", "bars.zip", "--pool-set", "features=pixels", *FAST[2:])
    assert "mixes" in message


def test_run_predict_and_score_agree_on_what_a_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    images = np.clip(rng.normal(80 + 90 * y[:, None, None], 10, size=(60, 3, 3)), 0, 255).astype(np.uint8)
    X = rng.normal(3.0 * y[:, None], 1, size=(60, 2))
    np.savez("rows.npz", features=-X, X=X, y=y)
    np.savez("images.npz", images=images, y=y)
    for name in ("rows", "images"):
        file, run = f"{name}.npz", f"run-{name}"
        assert call("run", "--pool", file, *FAST[2:], "--budget", "10", "--out", run, "-q") == 0
        capsys.readouterr()
        assert call("predict", file, "--model", run) == 0
        predicted = table(capsys.readouterr().out)
        assert np.mean([int(row["prediction"]) == code for row, code in zip(predicted, y, strict=True)]) > 0.9
        assert (
            call("score", "--pool", file, "--model", run, "--policy", "least-confident", "--top", "40") == 0
        )
        best = table(capsys.readouterr().out)
        confidence = [float(predicted[int(row["row"])]["confidence"]) for row in best]
        np.testing.assert_allclose([1 - float(row["utility"]) for row in best], confidence, atol=1e-5)
    (tmp_path / "iris").mkdir()
    assert call("run", "--pool", "iris", *FAST[2:], "--budget", "8", "--out", "run-iris", "-q") == 0
    capsys.readouterr()
    assert call("score", "--pool", "iris", "--model", "run-iris", "--policy", "margin", "--top", "3") == 0
    out, err = capsys.readouterr()
    assert len(table(out)) == 3 and "./iris is what lies here" in err


def test_a_known_set_of_images_is_scored_as_the_model_sees_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, y = np.random.default_rng(0).integers(0, 256, (40, 16, 16), np.uint8), np.arange(40) % 10
    (tmp_path / "images").mkdir()
    parts = {"x_train": drawn[:30], "y_train": y[:30], "x_test": drawn[30:], "y_test": y[30:]}
    np.savez(tmp_path / "images" / "mnist.npz", **parts)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    out = tmp_path / "out"
    said = ("--pool-set", "features=pixels", *FAST[2:], "--budget", "3", "--out", out)
    assert call("run", "--pool", "images:mnist", *said, "-q") == 0
    capsys.readouterr()
    assert call("score", "--pool", "images:mnist", "--model", out, "--top", "5") == 0
    assert len(table(capsys.readouterr().out)) == 5


def test_probabilities_of_many_classes_stand_in_a_file_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"k{i},{i % 12 + i / 1000:.3f},c{i % 12}" for i in range(60)]
    Path("many.csv").write_text("\n".join(["id,x,label", *rows]) + "\n")
    run = (
        "run",
        "--pool",
        "many.csv",
        *FAST[2:],
        "--budget",
        "3",
        "--initial",
        "random:6",
        "--out",
        "out",
        "-q",
    )
    assert call(*run, "--out", "out", "-q") == 0
    predict = ("predict", "many.csv", "--model", "out", "--probabilities", "--out", "p.csv")
    assert call(*predict) == 0
    assert list(table(Path("p.csv").read_text())[0]) == ["row", "prediction", "confidence", "id"]
    chances = table(Path("p-probabilities.csv").read_text())
    assert list(chances[0])[:3] == ["row", "id", "p(c0)"] and chances[59]["id"] == "k59"
    assert sum(float(p) for name, p in chances[0].items() if name.startswith("p(")) == pytest.approx(
        1, abs=1e-4
    )
    capsys.readouterr()
    assert "is there already" in refused(capsys, *predict)
    assert call(*predict[:-2]) == 0 and "p(c11)" in capsys.readouterr().out, "printed, they stand together"
