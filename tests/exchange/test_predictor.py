"""A model taken away gives Workbench's own numbers in an interpreter that has NumPy alone."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench import numpy_predictor
from workbench.classifiers import make_classifier
from workbench.cli.projects import export_project
from workbench.errors import InputError
from workbench.exchange.models import SavedModel
from workbench.exchange.predictor import write_predictor
from workbench.guesses import SavedGuesses, guesses_of, stacked
from workbench.pools import load_pool, read_rows
from workbench.pools.features.shapes import _copies
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.pool import Pool
from workbench.sessions import Session

SAID = {
    "card_lost": ("I lost my card", "my card was stolen"),
    "refund_request": ("a refund please", "when will the refund arrive"),
    "password_reset": ("I forgot my password", "reset it, cannot log in"),
}


def rows_of_a_table(n: int, seed: int, texts: bool = False) -> pd.DataFrame:
    """Numbers with gaps, whole numbers, a category, dates, amounts with thousands and a decimal comma."""
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.choice(["red", "green", "blue"], n)
    amounts = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in rng.uniform(1, 9000, n)]
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.05, "", size.round(4).astype(str)),
            "doors": rng.integers(0, 5, n),
            "colour": np.where(rng.random(n) < 0.05, "", colour),
            "day": days.strftime("%d.%m.%Y"),
            "amount": amounts,
        }
    )
    if texts:
        frame["remark"] = rows_of_texts(n, seed)["text"]
    frame["y"] = np.where(size + (colour == "red") > 0.7, "yes", np.where(size < -1, "no", "maybe"))
    return frame


def rows_of_texts(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        name = list(SAID)[int(rng.integers(3))]
        month = rng.choice(["May", "June", "July"])
        more = " ".join(rng.choice(list("abcdefgh"), 3))
        rows.append({"text": f"{SAID[name][int(rng.integers(2))]} on day {i} of {month} {more}", "y": name})
    return pd.DataFrame(rows)


def model_of(
    pool: Pool, classifier: str, strength: str = "none", names: bool = False, n: int = 60, **options: Any
) -> SavedModel:
    """A model of the first n items, as a project would hand it over."""
    rows, mean = np.arange(n), None
    assert pool.truth is not None and pool.classes is not None
    seen = None if strength == "none" else Neighbourhood(pool).seen(strength)
    X = pool.features if seen is None else seen.features
    fitting: dict[str, Any] = {}
    saved = None
    if names:
        mean = stacked(guesses_of(["names"], pool))
        fitting["mean"] = mean[:, rows]
        saved = SavedGuesses.of(pool, {"sources": [{"source": "names"}], "guidance": {}}, pool.classes)
    made = make_classifier(classifier, classes=list(range(len(pool.classes))), random_state=0, **options)
    made.fit(X[rows], pool.truth[rows], **fitting)
    view = None if seen is None else seen.view
    return SavedModel(classifier, pool.classes, made, pool.feature_map, n, pool.name, "", saved, view)


def expected(saved: SavedModel, rows: Any) -> np.ndarray:
    features = saved.features(rows)
    return saved.probabilities(features, saved.mean(rows, features)[0])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that holds NumPy and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    home = Path(np.__file__).parent
    for part in (home, home.parent / "numpy.libs"):
        if part.exists():
            (folder / part.name).symlink_to(part)
    return folder


def alone(bare: Path, folder: Path, rows: Path) -> np.ndarray:
    """Output of predict.py where NumPy is all there is."""
    run = (
        f"import runpy, sys; sys.path.append({str(bare)!r}); sys.argv = ['predict.py', {str(rows)!r}]\n"
        f"runpy.run_path({str(folder / 'predict.py')!r}, run_name='__main__')\n"
        "assert not [n for n in ('scipy', 'pandas', 'sklearn', 'workbench', 'PIL') if n in sys.modules]"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", run], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    head, *lines = list(csv.reader(said.stdout.splitlines()))
    assert head[:3] == ["row", "prediction", "confidence"] and [int(line[0]) for line in lines] == list(
        range(len(lines))
    )
    return np.array([[float(cell) for cell in line[3:]] for line in lines])


def compare(bare: Path, tmp_path: Path, saved: SavedModel, rows: Path, theirs: Any = None) -> None:
    folder = write_predictor(tmp_path / "taken", saved)
    assert {p.name for p in folder.iterdir()} == {"model.npz", "predict.py", "README.md"}
    assert (folder / "predict.py").read_bytes() == Path(numpy_predictor.__file__).read_bytes()
    found = alone(bare, folder, rows)
    np.testing.assert_allclose(
        found, expected(saved, read_rows(rows) if theirs is None else theirs), atol=1e-6
    )


def table(tmp_path: Path, n: int, texts: bool = False) -> tuple[Pool, Path]:
    rows_of_a_table(300, 1, texts).to_csv(tmp_path / "pool.csv", index=False)
    rows_of_a_table(n, 2, texts).to_csv(tmp_path / "new.csv", index=False)
    return load_pool(tmp_path / "pool.csv", columns="auto", target="y"), tmp_path / "new.csv"


def test_a_table_with_its_columns_treatment(bare: Path, tmp_path: Path) -> None:
    pool, new = table(tmp_path, 300)
    compare(bare, tmp_path, model_of(pool, "large-margin"), new)


def test_texts_that_begin_with_their_classes_names_and_lean_on_neighbours(bare: Path, tmp_path: Path) -> None:
    rows_of_texts(200, 1).to_csv(tmp_path / "pool.csv", index=False)
    rows_of_texts(100, 2).to_csv(tmp_path / "new.csv", index=False)
    pool = load_pool(tmp_path / "pool.csv", target="y", text_column="text")
    compare(bare, tmp_path, model_of(pool, "logistic-regression", "both", names=True), tmp_path / "new.csv")


@pytest.mark.slow  # alone: 10,000 rows of every kind of column, without Workbench
@pytest.mark.parametrize(
    ("classifier", "n"), [("large-margin", 10_000), ("logistic-softmax", 1_000), ("svgp-softmax", 1_000)]
)
def test_ten_thousand_rows_of_numbers_dates_categories_and_texts(
    bare: Path, tmp_path: Path, classifier: str, n: int
) -> None:
    pool, new = table(tmp_path, n, texts=True)
    compare(bare, tmp_path, model_of(pool, classifier, "medium"), new)


@pytest.mark.slow  # alone: kernels that are not the default, without Workbench
@pytest.mark.parametrize("kernel", ["matern32", "matern52", "exponential"])
def test_other_kernels_and_written_columns(bare: Path, tmp_path: Path, kernel: str) -> None:
    pool, new = table(tmp_path, 200)
    compare(bare, tmp_path, model_of(pool, "large-margin", kernel=kernel), new)


def photo(rng: np.random.Generator, k: int) -> np.ndarray:
    height, width = rng.integers(20, 60, 2)
    image = rng.integers(0, 60, (height, width, 3)).astype(np.uint8)
    (image[height // 4 : height // 2] if k else image[:, width // 4 : width // 2])[...] += 120
    return image


def test_photos_by_their_shapes(bare: Path, tmp_path: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(3)
    for i in range(40):
        (tmp_path / "pool" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(rng, i % 2)).save(tmp_path / "pool" / "ab"[i % 2] / f"{i}.png")
    pool = load_pool(tmp_path / "pool", features="shapes")
    images = np.stack([np.resize(photo(rng, i % 2), (45, 37, 3)) for i in range(20)])
    np.save(tmp_path / "new.npy", images)
    compare(bare, tmp_path, model_of(pool, "logistic-regression", n=20), tmp_path / "new.npy", images)


@pytest.mark.parametrize("side", [48, 64, 100])
def test_photos_of_every_size_are_shrunk_as_those_of_the_pool(side: int) -> None:
    rng = np.random.default_rng(0)
    for height in range(5, 300):
        form = {"canvas": (side, side), "colour": True, "white": 1.0, "copies": 1}
        image = rng.random((height, 9, 3)).astype(np.float32)
        (ours,) = numpy_predictor.copies_of(form, image)
        (of_pool,) = _copies(image, (side, side), True, 1.0, 1)
        np.testing.assert_allclose(ours, of_pool, atol=1e-5, err_msg=f"{height} pixels high")


def test_what_numpy_alone_cannot_run_is_refused_with_a_sentence(tmp_path: Path) -> None:
    pool = load_pool("digits")
    assert pool.truth is not None
    with pytest.raises(InputError, match="large-margin, logistic-softmax, svgp-softmax"):
        write_predictor(tmp_path / "a", model_of(pool, "svm-platt"))
    taken = write_predictor(tmp_path / "b", model_of(pool, "logistic-regression"))
    with pytest.raises(InputError, match="is there already"):
        write_predictor(taken, model_of(pool, "logistic-regression"))


def test_a_cell_that_cannot_be_read_is_named(bare: Path, tmp_path: Path) -> None:
    pool, _ = table(tmp_path, 10)
    folder = write_predictor(tmp_path / "taken", model_of(pool, "logistic-regression"))
    bad = rows_of_a_table(3, 5)
    bad.loc[1, "colour"] = "purple"
    bad.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(AssertionError, match="Row 2, column 'colour': 'purple' is none of"):
        alone(bare, folder, tmp_path / "bad.csv")


def test_numbers_of_another_decimal_sign_are_refused_and_other_encodings_read(
    bare: Path, tmp_path: Path
) -> None:
    pool, _ = table(tmp_path, 10)
    saved = replace(model_of(pool, "logistic-regression"), reading={"encoding": "cp850"})
    folder, rows = write_predictor(tmp_path / "taken", saved), tmp_path / "rows.csv"
    frame = rows_of_a_table(4, 5).assign(remark="gr\xfcn", size=["0.5", "1.25", "none at all", ""])
    right = expected(saved, frame)
    for encoding in ("cp850", "utf-16", "utf-8"):
        frame.to_csv(rows, index=False, encoding=encoding)
        np.testing.assert_allclose(alone(bare, folder, rows), right, atol=1e-6)
    # one cell that is none is counted, also alone
    one = frame.iloc[:1].assign(size="none at all")
    one.to_csv(rows, index=False)
    np.testing.assert_allclose(alone(bare, folder, rows), expected(saved, one), atol=1e-6)
    odd = {"size": ["0,5", "1,25", "x", ""], "amount": ["0.766", "12.345", "7.5", "1"], "day": "soon"}
    for name, cells in odd.items():
        frame.assign(**{name: cells}).to_csv(rows, index=False)
        words = "4 of 4 filled cells of 'day' are no date" if name == "day" else "decimal sign"
        with pytest.raises(AssertionError, match=words):
            alone(bare, folder, rows)
        with pytest.raises(InputError, match=words):
            expected(saved, read_rows(rows))


def test_a_project_gives_its_model_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    session = Session.create("iris", classifier="logistic-regression")
    with pytest.raises(InputError, match="no model to take away yet"):
        session.export("predictor", tmp_path / "none")
    truth = session.pool.truth
    assert truth is not None
    for item in session.pool.trainable[::8][:15].tolist():
        session.items.label(item, session.pool.classes[truth[item]])
    session.refit()
    assert session.export("predictor", tmp_path / "taken") == 15
    assert (tmp_path / "taken" / "predict.py").is_file()
    export_project(session.id, "predictor", out=tmp_path / "again")
    assert "15 labels, predictor in" in capsys.readouterr().out
    assert (tmp_path / "again" / "predict.py").read_text() == (tmp_path / "taken" / "predict.py").read_text()
    with pytest.raises(InputError, match="A predictor is a folder: say where"):
        export_project(session.id, "predictor")
