"""One contract for every registered classifier."""

import contextlib
import functools
import gc
import io
import pickle
import subprocess
import sys
import weakref
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from workbench.classifiers import CLASSIFIERS, Geometry, make_classifier
from workbench.errors import InputError

NAMES = list(CLASSIFIERS)
# those that compile longest are held to the contract in .ci/run; their own files try them in make test, too
COMPILED = {
    "logistic-softmax-gibbs",
    "svgp-robust-max",
    "svgp-heaviside",
    "wasserstein",
    "softmax-net",
    "large-margin-net",
}
EACH = [pytest.param(name, marks=[pytest.mark.slow] if name in COMPILED else []) for name in NAMES]

# few iterations where a family is slow; everything else is as a user gets it
QUICK = {
    "logistic-softmax-gibbs": {"n_samples": 60, "burn_in": 30},
    "svgp-softmax": {"n_inducing": 16, "max_iter": 40},
    "svgp-robust-max": {"n_inducing": 16, "max_iter": 150},
    "svgp-heaviside": {"n_inducing": 16, "max_iter": 40},
    "wasserstein": {"n_inducing": 16, "min_steps": 80, "epochs": 5},
    "large-margin-net": {
        "n_inducing": 16,
        "min_steps": 40,
        "pretrain_epochs": 5,
        "joint_epochs": 2,
        "learning_rate": 3e-3,
    },
    "softmax-net": {"min_steps": 60, "epochs": 5, "learning_rate": 3e-3},
}
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
# one name of each family: the checks look at the estimator, which likelihoods share
CHECKED = [
    name
    for name, entry in CLASSIFIERS.items()
    if name == next(n for n, e in CLASSIFIERS.items() if e.target == entry.target)
]
# what the estimator alone answers for is asked of one that compiles long, not of each of its likelihoods
ESTIMATORS = [each for each in EACH if each.values[0] in CHECKED or each.values[0] not in COMPILED]
# those whose checks take long are trained by them in .ci/run only, with the steps that needs
LONG = {"logistic-softmax-gibbs", "svgp-softmax", "wasserstein", "softmax-net", "large-margin-net"}
# those that draw while they train
DRAWN = {"wasserstein", "softmax-net", "large-margin-net", "logistic-softmax-gibbs"}
TRAINING = {"classifiers_train", "classifiers_classes", "estimators_dtypes", "dtype_object"}


def make(name, **options):
    return make_classifier(name, **{"random_state": 0} | QUICK.get(name, {}) | options)


def blobs(n, seed=0, n_classes=3, dims=4, spread=0.7):
    rng = np.random.default_rng(seed)
    centres = 2.0 * np.random.default_rng(99).standard_normal((n_classes, dims))
    codes = np.arange(n) % n_classes
    return centres[codes] + spread * rng.standard_normal((n, dims)), codes


def check_probabilities(p, n_classes):
    assert p.shape[1] == n_classes
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)


def error(model, n=200, seed=7, transform=lambda X: X):
    X, codes = blobs(n, seed)
    p = model.predict_proba(transform(X))
    check_probabilities(p, len(model.classes_))
    return float((model.predict(transform(X)) != model.classes_[codes]).mean())


@functools.cache
def fit_of(name):
    """A model fitted on 90 rows; one fit shared by the tests that only look."""
    return make(name).fit(*blobs(90))


@pytest.fixture(scope="module", params=EACH)
def fitted(request):
    """(name, its model of 90 rows)."""
    return request.param, fit_of(request.param)


# ------------------------------------------------------------------ what a fit leaves behind


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


# ------------------------------------------------------------------ labels


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


# ------------------------------------------------------------------ a fit is a value


class Stop(Exception):
    """Exception that a page raises to end a script."""


def equal_models(one, other, X):
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert list(one.classes_) == list(other.classes_)
    assert one.get_state().keys() == other.get_state().keys()


@pytest.mark.parametrize("classes", [None, ["a", "b"]])
@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "a", float("nan"), "a"],
        np.array(["a", None, "b", "a", np.nan, "a"], dtype=object),
        pd.Series(["a", pd.NA, "b", "a", pd.NA, "a"], dtype="string"),
        pd.Series(["a", None, "b", "a", None, "a"], dtype="category"),
        np.array([0, np.nan, 1, 0, np.nan, 0]),
        pd.array([0, None, 1, 0, None, 0], dtype="Int64"),
    ],
)
def test_rows_without_a_label_are_named(y, classes):
    with pytest.raises(InputError, match=r"2 of 6 rows have no label \(row 1, 4, from 0\)"):
        make("large-margin", classes=classes).fit(np.ones((6, 2)), y)


def test_no_labels_at_all_and_a_seed_below_zero_are_refused():
    with pytest.raises(ValueError, match="target y is None"):
        make("large-margin", classes=["a", "b"]).fit(np.ones((6, 2)), None)
    with pytest.raises(InputError, match="random_state"):
        make("large-margin", random_state=-1).fit(*blobs(9))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_does_not_end_leaves_the_old_model_whole(name):
    X, codes = blobs(30)
    model = make(name, **warm(name)).fit(X, codes)
    old = pickle.loads(pickle.dumps(model))
    words = np.array(["z", "y", "x"])[codes]
    calls = []

    def count(*_):
        calls.append(1)

    pickle.loads(pickle.dumps(model)).fit(X, words, callback=count)
    for at in {0, len(calls) // 2, len(calls) - 1}:
        left = iter(range(at + 1))

        def interrupt(*_, left=left, at=at):
            if next(left) == at:
                raise Stop

        with pytest.raises(Stop):
            model.fit(X, words, callback=interrupt)
        equal_models(model, old, X)
    with pytest.raises(InputError):
        model.fit(np.full_like(X, np.nan), codes)
    equal_models(model, old, X)


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "get_state"])
def test_a_fit_that_ends_while_another_thread_asks_changes_nothing_of_the_answer(verb, monkeypatch):
    X, codes = blobs(30)
    model = make("logistic-regression").fit(X, np.array(["a", "b", "c"])[codes])
    before = getattr(model, verb)(*[X] * (verb != "get_state"))
    part = {"get_state": "_state"}.get(verb, "_probabilities")
    plain = getattr(type(model), part)

    def late(self, *rows):  # as if the other thread's fit had ended here
        monkeypatch.setattr(type(model), part, plain)
        model.fit(X[:, :2], np.array(["z", "y", "x", "w"])[np.arange(30) % 4])
        return plain(self, *rows)

    monkeypatch.setattr(type(model), part, late)
    after = getattr(model, verb)(*[X] * (verb != "get_state"))
    assert list(model.classes_) == ["w", "x", "y", "z"]
    if verb == "get_state":
        assert before.keys() == after.keys()
        before, after = list(before["classes_"]), list(after["classes_"])
    np.testing.assert_array_equal(before, after)
    assert set(vars(model)) == {*model.get_params(), "_fit"}, "a fit is published by one assignment"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_warm_start_measures_anew_when_the_labels_have_doubled(name):
    if not warm(name):
        pytest.skip(f"{name} always starts cold")
    X, codes = blobs(48)
    model = make(name, **warm(name)).fit(X[:9], codes[:9])
    again = make(name, **warm(name)).set_state(model.get_state())
    cold = make(name, **warm(name)).fit(X, codes).predict_proba(X)
    for warmed in (model, again):
        np.testing.assert_array_equal(warmed.fit(X, codes).predict_proba(X), cold)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_on_nothing_leaves_no_former_model(name):
    from workbench.classifiers import protocols

    X, codes = blobs(30)
    model = make(name, classes=[0, 1, 2]).fit(X, codes).fit(X[:0], [])
    fresh = make(name, classes=[0, 1, 2]).fit(X[:0], [])
    equal_models(model, fresh, X)
    asked = (protocols.predictor_of, protocols.geometry_of, protocols.left_out_of, protocols.projection_of)
    assert [ask(model) for ask in asked] == [None] * len(asked)
    assert set(vars(model._value())) == set(vars(fresh._value()))
    if model.has_latent:
        latent = protocols.latent_function_of(model)(X[:2])
        np.testing.assert_array_equal(latent.mean, 0.0)


def warm(name):
    return {"warm_start": True} if "warm_start" in make(name).get_params() else {}


# another value of every option that says what the model is
OTHER = {
    "kernel": "matern32",
    "variance": 3.0,
    "length_scale_factor": 1.3,
    "n_inducing": 9,
    "temperature": 0.3,
    "prior_mean": -2.0,
    "epsilon": 0.02,
    "n_mean": 0,
    "input_scaling": "anova-f",
    "wide_spread": 0.1,
    "geometry": Geometry.of(blobs(60)[0], 12, 3),
    "rivals": 1,
    "calibration": None,
    "weight": 2.0,
    "likelihood": "robust-max",
    "choice": "fixed",
    "clip": 1.0,
    "common_scale": True,
    "C": 0.1,
}


@pytest.mark.parametrize("name", [each for each in ESTIMATORS if warm(each.values[0])])
def test_options_set_between_warm_fits_count(name):
    """As in a fit that starts cold, to the bit: a warm start goes on only from the same model."""
    X, codes = blobs(30)
    options = {key: value for key, value in OTHER.items() if key in make(name).get_params()}
    for key, value in options.items():
        model = make(name, **warm(name)).fit(X[:27], codes[:27])
        if key in ("epsilon", "likelihood") and name.startswith("svgp"):
            continue  # the name says them
        cold = make(name, **{key: value}).fit(X, codes)
        model.set_params(**{key: value}).fit(X, codes)
        np.testing.assert_array_equal(model.predict_proba(X), cold.predict_proba(X), err_msg=key)
        if name in COMPILED:
            break  # one of them shows it; each costs seconds


@pytest.mark.parametrize("name", [each for each in ESTIMATORS if warm(each.values[0])])
def test_a_warm_model_that_is_given_other_columns_begins_anew(name):
    X, codes = blobs(30)
    model = make(name, **warm(name)).fit(X, codes).fit(X[:, :3], codes)
    cold = make(name).fit(X[:, :3], codes)
    np.testing.assert_array_equal(model.predict_proba(X[:, :3]), cold.predict_proba(X[:, :3]))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_options_set_after_a_fit_change_nothing_that_it_says(name):
    X, codes = blobs(30)
    model = make(name).fit(X, codes)
    p, state = model.predict_proba(X), model.get_state()
    options = model.get_params()
    model.set_params(**{key: value for key, value in OTHER.items() if key in options})
    np.testing.assert_array_equal(model.predict_proba(X), p)
    for key, value in model.get_state().items():
        np.testing.assert_array_equal(value, state[key], err_msg=key)
    given = np.array([0, 1, 2])
    model = make(name, classes=given).fit(X, codes)
    given[:] = 9
    assert list(model.classes_) == [0, 1, 2]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_classes_in_any_order_score_right_in_scikit_learn(name):
    from sklearn.model_selection import cross_val_score

    X, codes = blobs(30, spread=1.5)
    for scoring, y, orders in (
        ("roc_auc", (codes == 1) * 1, ([0, 1], [1, 0])),
        ("neg_log_loss", codes, ([0, 1, 2], [2, 0, 1])),
    ):
        scores = [
            cross_val_score(
                make(name, classes=order), X, y, scoring=scoring, cv=2, error_score="raise"
            ).mean()
            for order in (orders if name not in COMPILED else orders[1:])
        ]
        assert scores[0] == scores[-1] and scores[-1] > {"roc_auc": 0.6, "neg_log_loss": -1.1}[scoring]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_text_of_a_state_names_code(name, tmp_path, monkeypatch):
    (tmp_path / "evilmod.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    model = fit_of(name)
    state = model.get_state()
    texts = [key for key, value in state.items() if np.asarray(value).dtype.kind in "US"]
    for key in texts:
        changed = np.full(np.shape(state[key]), "evilmod:net")
        with contextlib.suppress(InputError, ValueError, KeyError):
            clone(model).set_state(state | {key: changed}).predict_proba(blobs(5)[0])
    assert "evilmod" not in sys.modules


KERNELS_OF_ONES_OWN = [name for name in NAMES if name not in COMPILED and "kernel" in make(name).get_params()]


@pytest.mark.parametrize("name", KERNELS_OF_ONES_OWN)
def test_a_kernel_of_ones_own_is_copied_at_the_border(name, traces):
    import gpflow

    X, codes = blobs(40)
    for kernel in (
        gpflow.kernels.SquaredExponential(lengthscales=1.5, active_dims=[0, 1]),
        gpflow.kernels.RationalQuadratic(lengthscales=1.5),
    ):
        model = make(name, kernel=kernel, geometry=Geometry.of(X, 16, 0)).fit(X, codes)
        p = model.predict_proba(X)
        before = traces()
        for _ in range(3):
            made = make(name, kernel=kernel, geometry=Geometry.of(X, 16, 0)).fit(X, codes)
            made.predict_proba(X)
        assert traces() <= before
        if name == "large-margin":
            model.gpflow_model_.kernel.kernel.lengthscales.assign(9.0)
        assert float(kernel.lengthscales.numpy()) == 1.5
        kernel.lengthscales.assign(0.2)
        np.testing.assert_array_equal(model.predict_proba(X), p)
        assert np.abs(model.fit(X, codes).predict_proba(X) - p).max() > 0.01  # the next fit takes it as it is


# ------------------------------------------------------------------ awkward features


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


# ------------------------------------------------------------------ growing data


@pytest.mark.parametrize("name", EACH)
def test_warm_start_is_no_worse_than_cold(name):
    X, codes = blobs(61)
    warm = make(name, warm_start=True) if "warm_start" in make(name).get_params() else None
    if warm is None:
        pytest.skip(f"{name} always starts cold")
    geometry = {"geometry": Geometry.of(X, 16, 0)} if "geometry" in warm.get_params() else {}
    warm.set_params(**geometry).fit(X[:60], codes[:60])
    restored = clone(warm).set_state(warm.get_state())
    warm.fit(X, codes)
    cold = make(name, **geometry).fit(X, codes)
    restored.fit(X, codes)
    np.testing.assert_array_equal(restored.predict_proba(X), warm.predict_proba(X))
    p, q = (m.predict_proba(blobs(200, 7)[0])[np.arange(200), blobs(200, 7)[1]] for m in (warm, cold))
    assert -np.log(p).mean() < -np.log(q).mean() + 0.1


@pytest.mark.parametrize("name", EACH)
def test_nothing_is_traced_again_while_data_grow_or_for_a_second_model(name, traces):
    X, codes = blobs(90)
    geometry = Geometry.of(X, 16, 0)

    def model():
        made = make(name)
        wanted = {"warm_start": True, "geometry": geometry}
        return made.set_params(**{k: v for k, v in wanted.items() if k in made.get_params()})

    first = model().fit(X[:40], codes[:40])
    first.predict_proba(X)
    first.fit(X[:55], codes[:55]).predict_proba(X[:10])
    before = traces()
    first.fit(X[:70], codes[:70]).predict_proba(X[:33])
    second = model().fit(X, codes)
    second.predict_proba(X[:7])
    assert traces() == before


@pytest.mark.slow  # alone: a class more is no compilation more, up to 120
@pytest.mark.parametrize("name", ["large-margin", "logistic-softmax", "bayesian-svm", "svgp-softmax"])
def test_classes_that_come_one_by_one_trace_nothing(name, traces):
    most = 120
    X, codes = blobs(2 * most, n_classes=most)
    model = make(name, warm_start=True, geometry=Geometry.of(X, 16, 0))
    order = np.argsort(codes, kind="stable")
    X, codes = X[order], codes[order]
    for count in (2, most):  # both ways of listing rivals
        clone(model).fit(X[: 2 * count], codes[: 2 * count]).predict_proba(X)
    before = traces()
    for count in (*range(2, 22), 31, 32, 33, 63, 64, 65, most - 1, most):
        model.fit(X[: 2 * count], codes[: 2 * count])
        assert model.predict_proba(X[:5]).shape == (5, count)
    assert traces() == before


@pytest.mark.slow  # alone: no fit leaves a graph behind: memory of a long day
@pytest.mark.parametrize("name", [name for name, entry in CLASSIFIERS.items() if entry.has_latent])
def test_a_dozen_fits_trace_nothing_and_leave_nothing_behind(name, traces):
    from tensorflow.python.framework.func_graph import FuncGraph

    X, codes = blobs(90)
    geometry = Geometry.of(X, 16, 0)
    found = []
    for number in range(12):
        model = make(name)
        if "geometry" in model.get_params():
            model.set_params(geometry=geometry)
        rows = 60 + 2 * number
        model.fit(X[:rows], codes[:rows]).predict_proba(X[:10])
        if number in (4, 11):
            del model
            gc.collect()
            found.append((traces(), sum(type(thing) is FuncGraph for thing in gc.get_objects())))
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def traces():
    """() -> how often anything alive was traced, over the whole process."""
    known: list[weakref.ref] = []
    kinds: dict[type, bool] = {}

    def look():
        """Find the functions; what was there when the module began is looked through once."""
        from tensorflow.types.experimental import PolymorphicFunction

        for thing in gc.get_objects():
            kind = type(thing)
            if kind not in kinds:
                kinds[kind] = issubclass(kind, PolymorphicFunction)
            if kinds[kind]:
                yield thing

    def count():
        gc.collect()  # what is garbage now must not count before and be gone after
        alive = {id(thing): thing for thing in (*look(), *(ref() for ref in known)) if thing is not None}
        return sum(thing.experimental_get_tracing_count() for thing in alive.values())

    known += [weakref.ref(thing) for thing in look()]
    gc.freeze()
    yield count
    gc.unfreeze()


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


# ------------------------------------------------------------------ scikit-learn


def briefly(name):
    """One of each kind here; the others' checks in .ci/run."""
    here = ("large-margin", "bayesian-svm", "svgp-softmax", "logistic-regression", "gp-laplace")
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
