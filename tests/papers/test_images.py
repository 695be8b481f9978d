import numpy as np
import pytest
from sklearn.datasets import load_digits

from workbench.errors import Cancelled
from workbench.papers import images
from workbench.papers.reproduce import EXPERIMENTS, reproduce


@pytest.fixture
def tiny(monkeypatch):
    """Digits in the place of the big data sets, and a small network in the place of the papers'."""
    bunch = load_digits()
    X, y = (bunch.images.reshape(-1, 64) / 16).astype(np.float32), bunch.target
    made = images.Images(X[:300], y[:300], X[300:400], y[300:400], (8, 8))
    monkeypatch.setattr(images, "load_images", lambda data, n_train, n_test: made)
    monkeypatch.setattr(images, "PAPERS_NETWORK", dict.fromkeys(images.TITLES, "small"))
    fits = []
    fitted = images.fitted

    def counted(some, kind, *rest):
        fits.append(kind)
        return fitted(some, kind, *rest)

    monkeypatch.setattr(images, "fitted", counted)
    return fits


@pytest.mark.slow  # alone: the experiment as it runs, cancelled and resumed
def test_figure_4_compares_accuracy_and_time_and_is_resumed(tiny, tmp_path):
    with pytest.raises(Cancelled):
        reproduce("lmgp-fig4", tmp_path, quick=True, should_stop=lambda: len(tiny) == 3)
    report, path = reproduce("lmgp-fig4", tmp_path, quick=True)
    assert len(tiny) == 8  # three were kept
    table = report.tables[0]
    assert len(table.rows) == 8
    assert all(0 <= row[4] <= 1 and row[7] > 0 for row in table.rows)
    assert len(report.findings) == 6
    told = next(
        f for f in report.findings if f.claim == "on MNIST LMGP-DNN has the better likelihood and calibration"
    )
    assert told.ours.count(" / ") == 5 and len(told.holds) == 4, "of all runs, not of the best"
    assert all(f.verdict(True) in ("partly", "not reproduced") for f in report.findings)
    text = path.read_text(encoding="utf-8")
    assert "JPEG" in text and "4000 instead of 60000" in text and "Not run in full" in text


@pytest.mark.slow  # alone: the experiment as it runs, and that a second run fits nothing
def test_adversarial_measures_the_papers_claims_and_more(tiny, tmp_path):
    report, path = reproduce("lmgp-adversarial", tmp_path, quick=True)
    claims = [f.claim for f in report.findings]
    assert sum("rises rapidly" in c for c in claims) == 2
    assert sum("harmless noise" in c for c in claims) == 3
    assert sum("as accurate as the CNN" in c or "longer to train" in c for c in claims) == 6
    assert [row[1] for table in report.tables if table.name == "fits" for row in table.rows] == [
        "LMGP-DNN",
        "CNN",
    ] * 3
    assert [f.name for f in report.figures][:2] == ["strength-mnist", "detection-mnist"]
    assert "(JPEG)" in path.read_text(encoding="utf-8")
    fits = len(tiny)
    again, _ = reproduce("lmgp-adversarial", tmp_path, quick=True)
    assert len(tiny) == fits
    assert [f.ours for f in again.findings] == [f.ours for f in report.findings]


@pytest.mark.slow  # alone: the experiment as it runs
def test_gwi_stands_beside_the_networks(tiny, tmp_path):
    report, _ = reproduce("gwi-images", tmp_path, quick=True)
    assert {row[1] for row in report.tables[0].rows} == {"GWI", "LMGP-DNN", "CNN"}
    assert len(report.findings) == 4


def test_the_image_experiments_have_names():
    assert {"lmgp-fig4", "lmgp-adversarial", "gwi-images"} <= set(EXPERIMENTS)
