"""A fit is a value: whole or none, the same from the same, and compiled once."""

import contextlib
import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tests.classifiers.contract import (
    COMPILED,
    EACH,
    ESTIMATORS,
    NAMES,
    blobs,
    fit_of,
    make,
)
from workbench.classifiers import CLASSIFIERS, Geometry
from workbench.errors import InputError


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
    first = make(name, **warm(name)).fit(X[:27], codes[:27])
    for key, value in options.items():
        model = copy.deepcopy(first)
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


@pytest.mark.parametrize(
    "name",  # the others follow the one that compiles least
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "svgp-softmax")) for name in KERNELS_OF_ONES_OWN],
)
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
