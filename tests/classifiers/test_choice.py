"""The geometry chosen from the labels: what wins where, and that it is kept, replayed and left alone."""

import json
from dataclasses import replace

import numpy as np
import pytest

from workbench.classifiers import choice as choosing
from workbench.classifiers import make_classifier
from workbench.classifiers.calibration import judge
from workbench.classifiers.choice import Candidate, due, look, steps, turn
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.large_margin import LargeMarginClassifier
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import OffsetKernel, StationaryKernel, to_gpflow
from workbench.errors import InputError
from workbench.policies.scan import score_pool
from workbench.sessions.spec import with_choice


def codes_table(n=400, seed=0):
    """The class hangs on an integer code whose order means nothing, beside three columns of noise."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(0, 6, n), rng.normal(size=(n, 3))].astype(float)
    return X, np.array([0, 1, 0, 2, 1, 0])[X[:, 0].astype(int)]


def ring(n=300, seed=0):
    """The class is the distance from the middle."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (np.hypot(*X.T) > 1.2).astype(int)


def grown(choice, X, y, upto, step=5, **options):
    """A classifier that was refitted as labels came."""
    model = LargeMarginClassifier(choice=choice, random_state=0, warm_start=True, **options)
    model.set_params(geometry=model.measure(X, 0), classes=np.unique(y))
    for n in range(step, upto + 1, step):
        model.fit(X[:n], y[:n])
    return model


@pytest.fixture(scope="module")
def chosen():
    X, y = codes_table()
    return grown("auto", X, y, 30)


def test_columns_of_codes_become_categories(chosen):
    X, y = codes_table()
    fixed = grown("fixed", X, y, 30)
    error = [np.mean(model.predict(X[200:]) != y[200:]) for model in (fixed, chosen)]
    assert chosen.choice_.candidate.representation == "one-hot"
    assert error[1] < 0.5 * error[0]
    assert chosen.choice_.loss < -fixed.left_out_.log_likelihood.mean()
    assert str(chosen.choice_).startswith("columns as categories")
    said = str(replace(chosen.choice_, plain_loss=0.9))
    assert f"loss on labels it had not seen {chosen.choice_.loss:.2f}, with features as they are 0.90" in said


def test_columns_of_noise_that_a_few_labels_stretch_are_not_said_to_tell_anything():
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 200)), rng.integers(0, 2, 20)
        losses.append(LargeMarginClassifier(choice="auto", random_state=seed).fit(X, y).choice_.loss)
    assert np.mean(losses) > np.log(2) - 0.1


def test_a_loss_of_folds_is_not_told_beside_one_of_leave_one_out():
    X = np.random.default_rng(0).normal(size=(40, 12))
    choice = LargeMarginClassifier(choice="auto", random_state=0).fit(X, X[:, 0] > 0).choice_
    assert choice.candidate.stretch and "with features as they are" not in str(choice)
    assert choosing.from_text(choosing.to_text([choice])) == (choice,)


def test_it_looks_every_ten_labels_from_two_a_class_on(chosen):
    assert [one.labels for one in chosen.choices_] == [10, 20, 30]
    assert not due(5, 2, 0)
    assert not due(19, 10, 0)
    assert due(20, 10, 0)
    assert not due(29, 10, 20)
    assert not due(1090, 2, 1000)
    assert due(1100, 2, 1000)
    # where factors take turns a look is a part of one, and comes sooner
    assert not due(48, 2, 39, 2 / 3) and due(49, 2, 39, 2 / 3)
    assert not due(55, 2, 50, 2 / 3) and due(56, 2, 50, 2 / 3)
    assert not due(1065, 2, 1000, 2 / 3) and due(1066, 2, 1000, 2 / 3)


def test_from_fifty_labels_on_a_look_tries_one_factor_and_misses_none(chosen):
    factors = steps(chosen.geometry_)
    assert len(factors) > 2 and turn(factors, 49, 3) == factors
    assert turn(factors, 800, 0) == factors, "a cold fit has one look"
    count = len(factors)
    tried = [turn(factors, 50, number) for number in range(count, 2 * count)]
    assert all(len(one) == 1 for one in tried) and [one[0] for one in tried] == factors


@pytest.mark.slow  # alone: why an intercept is among what is chosen from
def test_an_intercept_helps_on_a_ring():
    errors = np.zeros(2)
    for seed in range(3):
        X, y = ring(seed=seed)
        geometry = LargeMarginClassifier(choice="auto").measure(X, 0)
        scaled, length = geometry.transform(X[:20]), 0.6 * geometry.length_scale
        for on in (False, True):
            candidate = Candidate(intercept=on)
            kernel = candidate.kernel("squared-exponential", length, 10.0, geometry, scaled, y[:20])
            model = LargeMarginClassifier(geometry=geometry, kernel=to_gpflow(kernel)).fit(X[:20], y[:20])
            errors[int(on)] += np.mean(model.predict(X) != y) / 3
    assert errors[1] < 0.9 * errors[0]
    auto = grown("auto", *ring(), 40)
    assert auto.choice_.candidate.intercept


def test_state_and_predictor_keep_the_choice(chosen):
    X, _ = codes_table()
    state = chosen.get_state()
    assert all(value.dtype != object for value in state.values())
    again = LargeMarginClassifier(choice="auto", random_state=0, warm_start=True).set_state(state)
    assert again.choices_ == chosen.choices_
    np.testing.assert_array_equal(again.predict_proba(X), chosen.predict_proba(X))
    stored = Predictor.from_arrays(chosen.predictor_.to_arrays())
    np.testing.assert_allclose(stored.mean(X), chosen.predictor_.mean(X))
    assert stored.projects_like(chosen.predictor_)
    view = stored.projected(X)
    assert view is not None
    stored.mean_at(view)
    assert "whitened" not in view.__dict__  # only a variance asks for it
    compact = stored.projected(X, compact=True)
    assert compact is not None and compact.whitened[0].dtype == np.float32
    np.testing.assert_allclose(stored.mean_at(compact), stored.mean(X), atol=1e-2)
    np.testing.assert_allclose(stored.latent_at(view).variance, chosen.predict_latent(X).variance, atol=1e-3)
    assert stored.mean_at(view).tobytes() == stored.latent_at(view).mean.tobytes()


def test_a_restored_fit_goes_on_to_the_same_bytes(chosen):
    X, y = codes_table()
    runs = []
    for _ in range(2):
        model = LargeMarginClassifier(choice="auto", random_state=0, warm_start=True, classes=[0, 1, 2])
        model.set_state(chosen.get_state())
        for n in (35, 40):
            model = (
                LargeMarginClassifier(choice="auto", random_state=0, warm_start=True, classes=[0, 1, 2])
                .set_state(model.get_state())
                .fit(X[:n], y[:n])
            )
        runs.append(model.get_state())
    through = grown("auto", X, y, 40).get_state()
    for state in runs:
        assert state.keys() == through.keys()
        assert all(state[k].tobytes() == through[k].tobytes() for k in state)


def test_between_choices_kernel_and_points_stand(chosen):
    X, y = codes_table()
    model = LargeMarginClassifier(choice="auto", random_state=0, warm_start=True, classes=[0, 1, 2])
    model.set_state(chosen.get_state()).fit(X[:33], y[:33])
    assert model.choices_ == chosen.choices_
    assert model.predictor_.projects_like(chosen.predictor_)


def test_labelled_items_join_where_the_centres_leave_most_open_and_not_too_many():
    X, y = ring(400)
    model = LargeMarginClassifier(choice="auto", random_state=0)
    geometry = model.measure(X, 0)
    model.geometry_ = geometry
    scaled = geometry.transform(X[:200])
    kernel = Candidate().kernel("squared-exponential", 0.2, 10.0, geometry, scaled, y[:200])
    joined = model._uncovered(kernel, geometry, scaled)
    gaps = np.sqrt(((scaled[:, None] - geometry.inducing) ** 2).sum(axis=2)).min(axis=1)
    gaps_of_joined = np.sqrt(((joined[:, None] - geometry.inducing) ** 2).sum(axis=2)).min(axis=1)
    assert len(joined) == choosing.LABELLED
    assert len(geometry.inducing) + len(joined) < 128
    assert gaps_of_joined.mean() > gaps.mean()


def test_all_candidates_equal_keeps_the_present_one():
    rng = np.random.default_rng(0)
    geometry = LargeMarginClassifier(choice="auto").measure(codes_table()[0], 0)
    left_out = judge(rng.normal(size=(20, 2)), rng.integers(0, 2, 20), np.arange(20), 0.0)
    for present in (Candidate(), Candidate(intercept=True)):
        found = look(present, steps(geometry), lambda _: left_out, 20)
        assert found.candidate == present


def test_where_nothing_moves_it_is_the_fixed_model(monkeypatch):
    X, y = codes_table()
    monkeypatch.setattr(choosing, "clearly_less", lambda *_: False)
    fixed, auto = (grown(choice, X, y, 40) for choice in ("fixed", "auto"))
    assert [str(one.candidate) for one in auto.choices_] == ["features as they are"] * 4
    np.testing.assert_array_equal(auto.predict_proba(X), fixed.predict_proba(X))


def test_a_candidate_that_fails_is_left_out_and_named():
    rng = np.random.default_rng(0)
    geometry = LargeMarginClassifier(choice="auto").measure(codes_table()[0], 0)
    left_out = judge(rng.normal(size=(20, 2)), rng.integers(0, 2, 20), np.arange(20), 0.0)

    def judged(candidate):
        if candidate.linear:
            raise InputError("no such slope")
        return left_out

    found = look(Candidate(), steps(geometry), judged, 20)
    assert "not possible: features as they are, half linear (no such slope)" in str(found)
    with pytest.raises(InputError, match="cannot be fitted to these labels"):
        look(Candidate(linear=True), steps(geometry), lambda _: judged(Candidate(linear=True)), 20)


def test_pixels_have_neither_categories_nor_stretching():
    X = np.random.default_rng(0).integers(0, 5, (60, 8)).astype(float)
    model = LargeMarginClassifier(choice="auto", common_scale=True, random_state=0)
    geometry = model.measure(X, 0, common_scale=True)
    assert geometry.names == ("numbers",)
    tried = [other for step in steps(geometry) for other in step(Candidate())]
    assert tried
    assert all(replace(one, linear=False, intercept=False, labelled=False) == Candidate() for one in tried)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((20, 3)), np.arange(20) % 2),  # constant columns
        (np.arange(10.0).reshape(5, 2), [0, 1, 0, 1, 1]),  # five items
        (np.random.default_rng(0).normal(size=(20, 2)), [0] * 19 + [1]),  # one label in a class
        (np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, axis=0), np.arange(20) % 2),  # contradictions
        (np.c_[np.arange(10_000.0)[:300], np.ones(300)], np.arange(300) % 2),  # all values differ
        (np.random.default_rng(0).normal(size=(30, 2)), np.r_[0:10, 0:10, 0:10]),  # ten classes
    ],
)
def test_awkward_labels_and_columns(X, y):
    model = LargeMarginClassifier(choice="auto", random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    json.dumps(str(model.choice_))


def test_nothing_is_chosen_while_one_class_has_labels_or_five_items():
    X, y = codes_table(30)
    one_class = LargeMarginClassifier(choice="auto", classes=[0, 1, 2], random_state=0).fit(
        X, np.zeros(30, int)
    )
    few = LargeMarginClassifier(choice="auto", random_state=0).fit(X[:5], y[:5])
    assert one_class.choice_ is None
    assert few.choice_ is None


def test_missing_values_are_refused():
    X, y = codes_table(30)
    X[3, 1] = np.nan
    with pytest.raises(InputError, match=r"row 3, column 1"):
        LargeMarginClassifier(choice="auto").fit(X, y)


def test_options_that_leave_nothing_to_choose_are_refused():
    X, y = codes_table(30)
    for options in ({"solver": "adam"}, {"input_scaling": "anova-f"}, {"select_length_scale": True}):
        with pytest.raises(InputError, match="choice='auto' does nothing with"):
            LargeMarginClassifier(choice="auto", **options).fit(X, y)
    with pytest.raises(InputError, match="choice must be one of"):
        LargeMarginClassifier(choice="always").fit(X, y)
    with pytest.raises(InputError, match="has no option 'choice'"):
        make_classifier("logistic-regression", choice="auto")


@pytest.mark.parametrize(
    "candidate", [Candidate(linear=True), Candidate(linear=True, intercept=True, stretch=0.5)]
)
def test_kernels_of_candidates_are_gpflows(candidate):
    X, y = codes_table(40)
    geometry = LargeMarginClassifier(choice="auto").measure(X, 0)
    scaled = geometry.transform(X)
    kernel = candidate.kernel("matern52", 1.3, 10.0, geometry, scaled, y)
    assert isinstance(kernel, OffsetKernel if candidate.intercept else StationaryKernel)
    theirs = to_gpflow(kernel)
    np.testing.assert_allclose(kernel(scaled, scaled[:7]), theirs(scaled, scaled[:7]), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(kernel.diagonal(scaled), theirs(scaled, full_cov=False), rtol=1e-6)


def test_a_model_of_categories_scores_the_rows_it_was_fitted_on(chosen):
    X, _ = codes_table()
    assert len(chosen.predictor_.shift) > X.shape[1] == chosen.predictor_.n_features
    models = (chosen, chosen.predictor_)
    by_model, by_predictor = (score_pool(X, model, "variation-ratio", top=5).indices for model in models)
    assert list(by_model) == list(by_predictor)
    with pytest.raises(InputError, match="fitted on 4 features and the rows have 3"):
        score_pool(X[:, :3], chosen.predictor_, "variation-ratio", top=5)


def test_geometries_with_representations_travel_as_arrays():
    X, _ = codes_table()
    geometry = LargeMarginClassifier(choice="auto").measure(X, 3).select("one-hot")
    again = Geometry.from_arrays(geometry.to_arrays())
    assert again.names == geometry.names == ("one-hot", "numbers", "normal-scores")
    assert geometry.n_features == X.shape[1]
    for name in geometry.names:
        one, other = geometry.select(name), again.select(name)
        np.testing.assert_array_equal(one.transform(X), other.transform(X))
        np.testing.assert_array_equal(one.inducing, other.inducing)
    with pytest.raises(InputError, match="These features have 2 columns; the geometry was made from 4"):
        geometry.transform(X[:, :2])


def test_a_code_the_pool_never_held_is_no_category():
    X, _ = codes_table()
    geometry = LargeMarginClassifier(choice="auto").measure(X, 0).select("one-hot")
    assert geometry.representation is not None
    row = X[:1].copy()
    row[0, 0] = 99.0
    assert not geometry.representation.transform(row)[0, :6].any()


def test_skewed_columns_by_rank_are_near_normal():
    X = np.exp(3.0 * np.random.default_rng(0).normal(size=(1000, 2)))
    geometry = LargeMarginClassifier(choice="auto").measure(X, 0).select("normal-scores")
    assert geometry.representation is not None
    written = geometry.representation.transform(X)
    assert np.all(np.abs(written.mean(axis=0)) < 0.05)
    assert np.all(np.abs(written.std(axis=0) - 1.0) < 0.05)
    assert np.array_equal(np.argsort(X[:, 0])[[0, -1]], [written[:, 0].argmin(), written[:, 0].argmax()])


def test_a_fixed_model_is_what_it_was():
    X, y = codes_table(60)
    model = LargeMarginClassifier(choice="fixed", random_state=0).fit(X, y)
    assert model.choice_ is None
    assert "choices_" not in model.get_state()
    assert model.geometry_.names == ("numbers",)
    assert isinstance(model.kernel_, StationaryKernel)


def test_there_is_one_default_and_it_chooses():
    """By the class, by name and in a run: the same choice, and the same predictions."""
    X, y = codes_table(60)
    made = [LargeMarginClassifier(random_state=0), make_classifier("large-margin", random_state=0)]
    made += [LargeMarginClassifier(choice="auto", random_state=0)]
    made += [make_classifier("large-margin", random_state=0, **with_choice("large-margin", {}))]
    chosen = [model.fit(X, y) for model in made]
    assert chosen[0].choice_ is not None and chosen[0].choice_.candidate != Candidate()
    for other in chosen[1:]:
        assert other.choices_ == chosen[0].choices_
        np.testing.assert_array_equal(other.predict_proba(X), chosen[0].predict_proba(X))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "matern52"},
        {"calibration": None},
        {"input_scaling": "anova-f"},
        pytest.param({"solver": "adam"}, marks=pytest.mark.slow),
    ],
)
def test_options_that_say_it_leave_nothing_to_choose(options):
    X, y = codes_table(40)
    model = LargeMarginClassifier(random_state=0, **options, **({"epochs": 2} if "solver" in options else {}))
    assert model.fit(X, y).choice_ is None
    assert with_choice("large-margin", options)["choice"] == "fixed"
