import numpy as np
import pytest
from sklearn.datasets import load_digits

from workbench.errors import Cancelled
from workbench.studies import images


@pytest.fixture
def tiny(monkeypatch):
    """Digits in the place of the big data sets, and a small network in the place of the papers'."""
    bunch = load_digits()
    X, y = (bunch.images.reshape(-1, 64) / 16).astype(np.float32), bunch.target
    made = images._Images(X[:300], y[:300], X[300:400], y[300:400], (8, 8))
    monkeypatch.setattr(images._Images, "of", classmethod(lambda cls, data, n_train, n_test: made))
    monkeypatch.setattr(images, "PAPERS_NETWORK", dict.fromkeys(images.TITLES, "small"))
    fits = []
    fitted = images._fitted

    def counted(some, settings, told):
        fits.append(settings["classifier"])
        return fitted(some, settings, told)

    monkeypatch.setattr(images, "_fitted", counted)
    return fits


def test_figure_4_compares_accuracy_and_time_and_is_resumed(tiny, tmp_path):
    told = []

    def report(fraction, what):
        told.append(fraction)
        if len(tiny) == 3:
            raise Cancelled(what)

    with pytest.raises(Cancelled):
        images.lmgp_fig4(True, tmp_path, report)
    assert len(list((tmp_path / "parts").glob("*.json"))) == 2
    found = images.lmgp_fig4(True, tmp_path)
    assert len(tiny) == 3 + 6  # two were kept, the third was begun anew
    table = found.tables["accuracy-and-time"]
    assert len(table) == 8 and table.accuracy.between(0, 1).all() and (table.seconds > 0).all()
    assert len(found.findings) == 4
    assert all(f.verdict in ("partly", "not reproduced") for f in found.findings)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "JPEG" in text and "--quick" in text
    assert (tmp_path / "accuracy-against-time.html").is_file()
    assert told == sorted(told)


@pytest.mark.slow
def test_adversarial_measures_the_papers_claims_and_more(tiny, tmp_path):
    found = images.lmgp_adversarial(True, tmp_path)
    claims = [f.claim for f in found.findings]
    assert sum("almost 1" in c for c in claims) == 2
    assert sum("adaptive attack and harmless noise" in c for c in claims) == 3
    assert {f.verdict for f in found.findings} <= {"partly", "not reproduced", "beyond the papers"}
    assert (tmp_path / "strength-mnist.html").is_file() and (tmp_path / "attacks-cifar10_jpeg.csv").is_file()
    fits = len(tiny)
    again = images.lmgp_adversarial(True, tmp_path)
    assert len(tiny) == fits
    assert [f.ours for f in again.findings] == [f.ours for f in found.findings]


@pytest.mark.slow
def test_gwi_stands_beside_the_networks(tiny, tmp_path):
    found = images.gwi_images(True, tmp_path)
    assert set(found.tables["images"].classifier) == {"wasserstein", "large-margin-net", "softmax-net"}
    assert len(found.findings) == 4


@pytest.mark.parametrize(
    ("whole", "part", "quick", "verdict"),
    [
        (True, True, False, "reproduced"),
        (True, True, True, "partly"),
        (False, True, False, "partly"),
        (False, False, True, "not reproduced"),
    ],
)
def test_quick_runs_are_at_most_partly(whole, part, quick, verdict):
    assert images._graded(whole, part, quick) == verdict
