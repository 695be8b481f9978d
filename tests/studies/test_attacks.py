import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from workbench.errors import Cancelled, InputError
from workbench.pools import load_pool
from workbench.studies.attacks import AttackSpec, attack_experiment, chosen_rows


@pytest.fixture(scope="module")
def outcome():
    spec = AttackSpec(n_train=400, n_test=80, strengths=(0.0, 0.2), steps=5)
    return attack_experiment(spec)


def test_an_experiment_fits_attacks_and_keeps_examples(outcome):
    result = outcome.robustness
    assert outcome.image_shape == (8, 8) and outcome.n_train == 400
    assert outcome.clean_accuracy > 0.85 > result.accuracy[result.attacks.index("fgsm"), 1]
    kept = result.examples
    assert kept.clean.shape == (48, 64) and kept.attacked.shape == (3, 2, 48, 64)
    assert np.abs(kept.attacked[:, 1] - kept.clean).max() <= 0.2 + 1e-6
    assert kept.latent.mean.shape == (3, 2, 48, 10)
    np.testing.assert_allclose(kept.latent.mean[0, 0], kept.clean_latent.mean, atol=1e-4)


def test_same_spec_same_outcome(outcome):
    again = attack_experiment(outcome.spec)
    np.testing.assert_allclose(again.robustness.scores, outcome.robustness.scores, atol=1e-6)


def test_the_archive_says_how_to_repeat_it(outcome):
    with zipfile.ZipFile(io.BytesIO(outcome.archive())) as bundle:
        table = pd.read_csv(bundle.open("table.csv"))
        settings = json.loads(bundle.read("settings.json"))
        with np.load(io.BytesIO(bundle.read("scores.npz")), allow_pickle=False) as scores:
            assert (scores["scores"] == outcome.robustness.scores).all()
    assert set(table.attack) == {"fgsm", "adaptive-pgd", "noise"}
    assert settings["seed"] == 0 and settings["strengths"] == [0.0, 0.2]
    assert settings["versions"]["numpy"] == np.__version__


def test_a_project_without_images_or_truth_is_refused():
    with pytest.raises(InputError, match="is a table"):
        attack_experiment(AttackSpec(pool="wine"))
    pool = load_pool("digits").split(0)
    from dataclasses import replace

    with pytest.raises(InputError, match="not known"):
        chosen_rows(replace(pool, truth=None), 10, 10, 0)
    with pytest.raises(InputError, match="pixels"):
        chosen_rows(replace(pool, features=pool.features[:, :9]), 10, 10, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strengths": (0.0, 1.2)}, "between 0"),
        ({"attacks": ()}, "at least one attack"),
        ({"attacks": ("transfer",)}, "softmax"),
        ({"loss": "hing"}, "hinge"),
        ({"n_test": 0}, "n_test"),
    ],
)
def test_specs_that_cannot_be(options, words):
    with pytest.raises(InputError, match=words):
        AttackSpec(**options)


def test_an_experiment_can_be_cancelled():
    def report(fraction, what):
        if "FGSM" in what:
            raise Cancelled(what)

    with pytest.raises(Cancelled):
        attack_experiment(AttackSpec(n_train=100, n_test=20), report)
