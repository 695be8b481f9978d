"""One contract for every registered classifier."""

import contextlib
import io
import pickle
import subprocess
import sys
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from tests.classifiers.contract import (
    CHECKED,
    COMPILED,
    EACH,
    ESTIMATORS,
    NAMES,
    QUICK,
    blobs,
    check_probabilities,
    error,
    fit_of,
    make,
)
from workbench.classifiers import CLASSIFIERS, Geometry, make_classifier
from workbench.errors import InputError

# scikit-learn's checks ask for little but ask it a hundred times
BRIEF = QUICK | {
    "logistic-softmax-gibbs": {"n_samples": 20, "burn_in": 10},
    "svgp-softmax": {"n_inducing": 16, "max_iter": 5},
    "svgp-robust-max": {"n_inducing": 16, "max_iter": 5},
    "svgp-heaviside": {"n_inducing": 16, "max_iter": 5},
    "wasserstein": {"n_inducing": 8, "min_steps": 20, "epochs": 2},
    "softmax-net": {"min_steps": 5, "epochs": 1},
    "large-margin-net": {"n_inducing": 8, "min_steps": 5, "pretrain_epochs": 1, "joint_epochs": 1},
}
# with the steps that those of the checks need which look at what was learnt; each optimiser
TRAINED = {
    "logistic-softmax-gibbs": BRIEF["logistic-softmax-gibbs"],
    "softmax-net": {"learning_rate": 3e-3, "epochs": 10, "min_steps": 150},
    "large-margin-net": {
        "n_inducing": 8,
        "min_steps": 60,
        "pretrain_epochs": 5,
        "joint_epochs": 1,
        "learning_rate": 3e-3,
    },
    "svgp-softmax": {"max_iter": 60},
    "svgp-robust-max": {"optimizer": "adam", "max_iter": 60},
    "wasserstein": {"n_inducing": 16, "min_steps": 100, "epochs": 5},
}
# those whose checks take long are trained by them in .ci/run only, with the steps that needs
LONG = {"logistic-softmax-gibbs", "svgp-softmax", "wasserstein", "softmax-net", "large-margin-net"}
# those that draw while they train
DRAWN = {"wasserstein", "softmax-net", "large-margin-net", "logistic-softmax-gibbs"}
TRAINING = {"classifiers_train", "classifiers_classes", "estimators_dtypes", "dtype_object"}


@pytest.fixture(scope="module", params=EACH)
def fitted(request):
    """(name, its model of 90 rows)."""
    return request.param, fit_of(request.param)


def test_it_learns(fitted):
    _, model = fitted
    assert error(model) < 0.12
    assert list(model.classes_) == [0, 1, 2]


def test_predict_is_the_argmax_and_score_its_accuracy(fitted):
    _, model = fitted
    X, codes = blobs(100, 3)
    p = model.predict_proba(X)
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)]).all()
    assert model.score(X, codes) == pytest.approx((p.argmax(axis=1) == codes).mean())


def test_latents_are_finite_where_promised(fitted):
    name, model = fitted
    X, _ = blobs(50, 4)
    assert CLASSIFIERS[name].has_latent == type(model).has_latent
    if not model.has_latent:
        with pytest.raises(InputError, match="no latent functions"):
            model.predict_latent(X)
        return
    latent = model.predict_latent(X)
    assert latent.mean.shape == latent.variance.shape == (50, 3)
    assert np.isfinite(latent.mean).all() and (latent.variance >= 0).all()
    assert np.isfinite(model.objective_) and model.n_iter_ >= 1
    assert np.isfinite(model.objective_trace_).all()


def test_attacks_find_gradients_where_the_registry_says_so(fitted):
    from workbench.attacks.methods import target_of

    name, model = fitted
    promised = CLASSIFIERS[name].gradients
    with contextlib.nullcontext() if promised else pytest.raises(InputError, match=r"gives no|kernel"):
        target_of(model)


def test_the_state_is_plain_arrays_and_makes_an_equal_model(fitted):
    _, model = fitted
    buffer = io.BytesIO()
    np.savez(buffer, **model.get_state())
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as saved:
        state = {key: saved[key] for key in saved.files}
    again = clone(model).set_state(state)
    X, _ = blobs(60, 5)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if model.has_latent:
        for a, b in zip(again.predict_latent(X), model.predict_latent(X), strict=True):
            np.testing.assert_array_equal(a, b)
    assert set(again.get_state()) == set(state)
    with pytest.raises(InputError, match="not a saved"):
        clone(model).set_state({})
    missed = set()
    for key in state.keys() - {"feature_names_in_"}:
        try:
            clone(model).set_state({k: v for k, v in state.items() if k != key})
        except InputError as error:
            assert key.rpartition(".")[2] in str(error)
            missed.add(key)
    assert "classes_" in missed


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_saved_models_predict_without_tensorflow(compiled, tmp_path):
    keras = {"softmax-net", "large-margin-net"}
    names = [name for name in NAMES if (name in COMPILED) == compiled and name not in keras]
    X, _ = blobs(40, 5)
    for name in names:
        np.savez(tmp_path / f"{name}.npz", **fit_of(name).get_state())
        np.save(tmp_path / f"{name}.npy", fit_of(name).predict_proba(X))
    np.save(tmp_path / "rows.npy", X)
    code = f"""
import sys, numpy as np
from workbench.classifiers import make_classifier
X = np.load("rows.npy")
for name in {names!r}:
    with np.load(name + ".npz") as state:
        model = make_classifier(name).set_state(dict(state))
    np.testing.assert_allclose(model.predict_proba(X), np.load(name + ".npy"), atol=1e-12, err_msg=name)
    if model.has_latent:
        model.predict_latent(X)
heavy = {{"tensorflow", "gpflow", "keras"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_pickles(fitted):
    _, model = fitted
    again = pickle.loads(pickle.dumps(model))
    X, _ = blobs(20, 6)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_clone_is_unfitted_and_has_the_same_options(fitted):
    _, model = fitted
    copy = clone(model)
    assert not hasattr(copy, "classes_")
    for key, value in model.get_params().items():
        assert copy.get_params()[key] is value or copy.get_params()[key] == value


def test_rows_do_not_influence_each_other(fitted):
    _, model = fitted
    X, _ = blobs(40, 8)
    np.testing.assert_allclose(model.predict_proba(X)[7:9], model.predict_proba(X[7:9]), atol=1e-6)


def test_the_same_seed_gives_the_same_model(fitted):
    name, model = fitted
    X, codes = blobs(90)
    again = make(name).fit(X, codes)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if name in DRAWN:
        other = make(name, random_state=1).fit(X, codes)
        assert not np.array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", EACH)
def test_unseen_classes_keep_their_column(name):
    X, codes = blobs(60, n_classes=2)
    words = np.array(["zebra", "ant", "never"])
    model = make(name, classes=words).fit(X, words[codes])
    assert list(model.classes_) == sorted(words)
    p = model.predict_proba(X)
    check_probabilities(p, 3)
    assert (model.predict(X) == words[codes]).mean() > 0.85
    assert p[:, 1].mean() < 0.2  # "never"
    state = clone(model).set_state(model.get_state())
    assert list(state.predict(X[:5])) == list(model.predict(X[:5]))


@pytest.mark.parametrize("name", EACH)
def test_no_labels_at_all_is_uniform(name):
    model = make(name, classes=["a", "b", "c"]).fit(np.empty((0, 4)), [])
    np.testing.assert_allclose(model.predict_proba(np.ones((5, 4))), 1 / 3)
    restored = clone(model).set_state(model.get_state())
    np.testing.assert_allclose(restored.predict_proba(np.ones((5, 4))), 1 / 3)
    if model.has_latent:
        latent = model.predict_latent(np.ones((5, 4)))
        assert latent.mean.shape == (5, 3) and (latent.variance > 0).all()
    with pytest.raises(ValueError, match="0 sample"):
        make(name).fit(np.empty((0, 4)), [])


@pytest.mark.parametrize("name", EACH)
def test_one_label_a_class_and_only_one_class_seen(name):
    X, codes = blobs(3)
    model = make(name, classes=[0, 1, 2]).fit(X, codes)
    assert error(model) < 0.4
    alone = make(name, classes=[0, 1, 2]).fit(X[:1], codes[:1])
    check_probabilities(alone.predict_proba(X), 3)
    assert alone.predict(X[:1])[0] == 0
    single = make(name).fit(X, np.zeros(3, dtype=int))
    np.testing.assert_allclose(single.predict_proba(X), 1.0)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_that_do_not_fit_are_refused(name):
    X, codes = blobs(12)
    with pytest.raises(InputError, match="not among the given classes: 2"):
        make(name, classes=[0, 1]).fit(X, codes)
    with pytest.raises(InputError, match="more than once"):
        make(name, classes=[0, 1, 1]).fit(X, codes)
    with pytest.raises(InputError, match=r"(?s)has no option 'colour'. It has: .*random_state"):
        make_classifier(name, colour="red")


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("case", ["duplicates", "constant", "huge", "far", "beyond squares"])
def test_awkward_features(name, case):
    X, codes = blobs(60)
    transform = {
        "duplicates": lambda A: A,
        "constant": lambda A: np.column_stack([A[:, :2], np.full(len(A), 3.0), np.zeros(len(A))]),
        "huge": lambda A: 1e6 * A,
        "far": lambda A: A + 1e5,
        "beyond squares": lambda A: A * [1e200, 1e-200, 1.0, 1e-200],
    }[case]
    if case == "duplicates":
        X, codes = (
            np.concatenate([X, X[:20], X[:20]]),
            np.concatenate([codes, codes[:20], (codes[:20] + 1) % 3]),
        )
    if case == "beyond squares" and name in ("softmax-net", "large-margin-net"):
        with pytest.raises(InputError, match="beyond float32"):
            make(name).fit(transform(X), codes)
        return
    model = make(name).fit(transform(X), codes)
    assert error(model, transform=transform) < (0.4 if case == "duplicates" else 0.15)


def test_float32_input_and_precision(fitted):
    name, double = fitted
    X, codes = blobs(90)
    # the network of wasserstein is of float32 and its head of doubles
    options = {"dtype": "float32"} if "dtype" in double.get_params() and name != "wasserstein" else {}
    single = make(name, **options).fit(X.astype(np.float32), codes)
    new = blobs(50, 9)[0]
    check_probabilities(single.predict_proba(new), 3)
    assert error(single) < 0.12
    assert np.abs(single.predict_proba(new) - double.predict_proba(new)).max() < 0.1
    if options:
        if single.has_latent:
            assert single.predict_latent(new).mean.dtype == np.float32
        with pytest.raises(InputError, match="float64"):
            make(name, dtype="float16").fit(X, codes)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_geometry_of_the_pool_is_used_as_it_is(name):
    pool, _ = blobs(300, 11)
    X, codes = blobs(30)
    model = make(name)
    if "geometry" not in model.get_params():
        pytest.skip(f"{name} takes nothing from the pool")
    geometry = Geometry.of(pool, 16, 0)
    model.set_params(geometry=geometry).fit(X, codes)
    assert error(model) < 0.15
    with pytest.raises((InputError, ValueError), match=r"features|columns"):
        clone(model).fit(X[:, :3], codes)


@pytest.mark.parametrize("name", [each for each in EACH if CLASSIFIERS[each.values[0]].has_latent])
def test_callbacks_report_progress_and_stop_cleanly(name):
    X, codes = blobs(60)
    seen = []

    def watch(fraction, value):
        seen.append(fraction)
        assert np.isfinite(value)

    make(name).fit(X, codes, callback=watch)
    assert seen and seen == sorted(seen)
    assert seen[0] >= 0 and seen[-1] <= 1.0 + 1e-9
    stopped = make(name).fit(X, codes, callback=lambda *_: True)
    check_probabilities(stopped.predict_proba(X), 3)


def briefly(name):
    """A posterior of its own, one of scikit-learn's, one that compiles; the others' checks in .ci/run."""
    here = ("gp-laplace", "logistic-regression", "svgp-softmax")
    return name if name in here else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [briefly(name) for name in CHECKED if name not in LONG])
def test_scikit_learns_checks(name):
    check_estimator(make_classifier(name, random_state=0), on_skip=None)


def check_briefly(name, training):
    """scikit-learn's checks of a family that trains long: those that need a trained model, or all others."""
    options, done = TRAINED[name] if training else BRIEF[name], set()
    for copy, check in estimator_checks_generator(make_classifier(name, random_state=0, **options)):
        check_name = getattr(check, "func", check).__name__.removeprefix("check_")
        if (check_name in TRAINING) == training:
            with contextlib.suppress(SkipTest):
                check(copy)
            done.add(check_name)
    return done


@pytest.mark.parametrize("name", [briefly(name) for name in sorted(LONG)])
def test_scikit_learns_checks_but_those_that_train_at_length(name):
    done = check_briefly(name, training=False)
    assert {"fit2d_1sample", "estimators_pickle", "n_features_in", "fit_score_takes_y"} <= done


@pytest.mark.slow  # alone: scikit-learn's own checks of what the families that train long have learnt
@pytest.mark.parametrize("name", sorted(TRAINED))
def test_scikit_learns_checks_that_train_at_length(name):
    assert check_briefly(name, training=True) == TRAINING
