import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from workbench.errors import Cancelled, InputError
from workbench.pools import load_pool
from workbench.sessions.learner import Learner
from workbench.studies.attacks import AttackSpec, attack_experiment, attack_model, chosen_rows


@pytest.mark.parametrize("strengths", [[0, 0.1], (0, 0.1), np.array([0.0, 0.1])])
def test_strengths_may_be_any_sequence_and_are_kept_as_one_kind(strengths):
    spec = AttackSpec(strengths=strengths, attacks=["fgsm"])
    assert spec.strengths == (0.0, 0.1) and spec.attacks == ("fgsm",)


@pytest.fixture(scope="module")
def outcome():
    return attack_experiment(AttackSpec(n_train=60, n_test=50, strengths=(0.0, 0.2), steps=5))


@pytest.mark.slow  # alone: attacks on a fitted model, whole
def test_an_experiment_fits_attacks_and_keeps_examples():
    outcome = attack_experiment(AttackSpec(n_train=400, n_test=80, strengths=(0.0, 0.2), steps=5))
    result = outcome.robustness
    assert outcome.image_shape == (8, 8) and outcome.n_train == 400
    assert outcome.clean_accuracy > 0.85 > result.accuracy[result.attacks.index("fgsm"), 1]
    kept = result.examples
    assert kept.clean.shape == (48, 64) and kept.attacked.shape == (3, 2, 48, 64)
    assert np.abs(kept.attacked[:, 1] - kept.clean).max() <= 0.2 + 1e-6
    assert kept.latent.mean.shape == (3, 2, 48, 10)
    np.testing.assert_allclose(kept.latent.mean[0, 0], kept.clean_latent.mean, atol=1e-4)


@pytest.mark.slow  # the whole experiment twice; attacks/test_detection.py measures twice
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


@pytest.fixture(scope="module")
def own_model():
    """A model as a project has it, on 60 labels."""
    pool = load_pool("digits").split(0)
    items = pool.test.train[:60]
    return Learner(pool, "large-margin").fit(items, np.asarray(pool.truth)[items], number=3)


def test_a_projects_own_model_is_attacked_as_it_stands(own_model):
    before = {name: np.array(value) for name, value in own_model.state.items()}
    spec = AttackSpec(n_test=50, strengths=(0.0, 0.2), steps=5, project="mine")
    items = own_model.pool.test.test
    found = attack_model(spec, own_model, items, np.asarray(own_model.pool.truth)[items])
    assert (found.n_train, len(found.robustness.truth), found.settings["project"]) == (60, 50, "mine")
    assert found.robustness.truth_known and found.robustness.classes == own_model.pool.classes
    hits = found.robustness.accuracy[found.robustness.attacks.index("fgsm")]
    assert hits[0] == found.clean_accuracy > hits[1]
    for name, value in own_model.state.items():
        np.testing.assert_array_equal(value, before[name])


def test_without_known_classes_the_models_word_for_clean_images_counts(own_model):
    spec = AttackSpec(n_test=20, strengths=(0.0, 0.2), attacks=("fgsm",))
    found = attack_model(spec, own_model, own_model.pool.test.test, None)
    assert not found.robustness.truth_known and found.clean_accuracy == 1.0


@pytest.mark.slow  # alone: transfer for a model that has no gradients
def test_a_model_without_gradients_can_still_be_shown_attacks():
    pool = load_pool("digits").split(0)
    items = pool.test.train[:80]
    model = Learner(pool, "logistic-regression").fit(items, np.asarray(pool.truth)[items], number=0)
    some, codes = pool.test.test[:30], np.asarray(pool.truth)[pool.test.test[:30]]
    with pytest.raises(InputError, match="gives no gradients"):
        attack_model(AttackSpec(attacks=("fgsm",)), model, some, codes)
    spec = AttackSpec(attacks=("transfer", "noise"), strengths=(0.0, 0.3), softmax=True)
    found = attack_model(spec, model, some, codes)
    transfer, noise = found.robustness.accuracy[:, 1]
    assert transfer < noise <= found.clean_accuracy + 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"attacks": ("transfer",), "softmax": True, "loss": "objective"},
        {"attacks": ("fgsm",), "classifier": "softmax-net", "loss": "objective"},
        {"attacks": ("adaptive-pgd",), "classifier": "softmax-net"},
    ],
)
def test_a_loss_and_a_model_that_cannot_go_together_are_refused_in_the_spec(options):
    with pytest.raises(InputError, match="cross-entropy or hinge"):
        AttackSpec(**options)


def test_nothing_to_attack_is_said(own_model):
    with pytest.raises(InputError, match="no images to attack"):
        attack_model(AttackSpec(), own_model, np.arange(0), None)


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
        ({"n_test": 0}, "'n_test' is 0: input should be greater than or equal to 1"),
        ({"steps": 2.5}, "'steps' is 2.5: input should be a valid integer"),
        ({"seed": -1}, "'seed' is -1: input should be greater than or equal to 0"),
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
