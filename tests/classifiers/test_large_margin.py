"""The large-margin classifier: options, warm starts, saved state, what it promises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from tests.engine.problems import overlapping
from workbench.classifiers import Geometry
from workbench.classifiers import large_margin_fits as fits
from workbench.classifiers.large_margin import LargeMarginClassifier
from workbench.engine.large_margin import trace_count
from workbench.errors import InputError
from workbench.metrics import error_rate, negative_log_likelihood


def large_margin(**options):
    """With a geometry that is not chosen; test_choice.py has the default."""
    return LargeMarginClassifier(**{"choice": "fixed"} | options)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def default(digits):
    X, _, y, _ = digits
    return large_margin(common_scale=True, random_state=0).fit(X, y)


def scores(model, digits):
    p = model.predict_proba(digits[1])
    return error_rate(digits[3], p), negative_log_likelihood(digits[3], p)


def test_the_default_is_accurate_and_calibrated_on_digits(default, digits):
    error, nll = scores(default, digits)
    assert error < 0.025
    assert nll < 0.08
    assert len(default.wide_mean_) > 300


def test_the_wide_mean_beats_the_small_basis(default, digits):
    X, _, y, _ = digits
    small = large_margin(common_scale=True, n_mean=0, n_inducing=64, random_state=0).fit(X, y)
    assert len(small.wide_mean_) == 0
    assert scores(default, digits)[1] < scores(small, digits)[1]


def test_the_wide_mean_waits_for_labels(digits, monkeypatch):
    monkeypatch.setattr(fits.cal, "clearly_less", lambda *_: False)  # then it is kept once it was tried
    X, _, y, _ = digits
    for n, wide in ((150, False), (199, False), (260, True)):
        model = large_margin(common_scale=True, random_state=0).fit(X[:n], y[:n])
        assert (len(model.wide_mean_) > 0) == wide


def test_the_number_of_points_follows_the_labels_without_a_wide_mean():
    model = large_margin(n_mean=0)
    for n, points in ((300, 64), (1200, 128), (4100, 256)):
        assert len(model.measure(np.random.default_rng(0).standard_normal((n, 2)), 0).inducing) == points
    assert (
        len(
            large_margin(n_mean=0, n_inducing=9).measure(np.random.default_rng(0).random((50, 2)), 0).inducing
        )
        == 9
    )


def test_objective_and_trace(default):
    trace = default.objective_trace_
    assert np.all(np.diff(trace) >= -1e-8 * np.abs(trace[1:]))
    assert default.objective_ == trace[-1]
    assert default.n_iter_ == len(trace) - 1 >= 3


@pytest.mark.slow  # alone: each option on digits: it changes the model and still learns
@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "cross-validated"},
        {"calibration": None},
        {"select_length_scale": True},
        {"input_scaling": "anova-f"},
        {"rivals": 1},
        {"temperature": 0.03},
        {"kernel": "matern52"},
        {"inducing": "random"},
        {"solver": "natural-gradient"},
        {"solver": "adam", "epochs": 60, "learning_rate": 1e-2, "n_inducing": 32},
        {"hyperparameters": "map"},
        {"hyperparameters": "type-II", "ard": True},
        {"wide_spread": 1.0},
    ],
    ids=lambda options: "-".join(f"{k}={v}" for k, v in options.items()),
)
def test_every_option_does_something_and_still_learns(options, digits):
    X, _, y, _ = digits
    X, y = X[:400], y[:400]
    plain = large_margin(common_scale=True, n_mean=60, random_state=0).fit(X, y)
    model = large_margin(common_scale=True, n_mean=60, random_state=0, **options).fit(X, y)
    error, nll = scores(model, digits)
    assert error < 0.12
    assert nll < 0.5
    assert not np.array_equal(model.predict_proba(digits[1]), plain.predict_proba(digits[1]))


def test_given_inducing_points_are_used():
    X, y = overlapping(60, 3, dims=4)
    points = X[:7]
    model = large_margin(inducing=points, n_mean=0).fit(X, y)
    assert len(model.geometry_.inducing) == 7
    back = model.geometry_.inducing * model.geometry_.scale + model.geometry_.shift
    wanted = model.geometry_.transform(points) * model.geometry_.scale + model.geometry_.shift
    assert np.sort(back, axis=0) == pytest.approx(np.sort(wanted, axis=0))


def test_anova_scaling_listens_to_the_telling_feature():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = np.column_stack([2.0 * y + 0.3 * rng.standard_normal(30), rng.standard_normal((30, 8))])
    model = large_margin(input_scaling="anova-f", random_state=0).fit(X, y)
    lengths = model.kernel_.length_scale
    assert lengths[0] == lengths.min()
    X_new = np.column_stack([2.0 * (np.arange(400) % 2), rng.standard_normal((400, 8))])
    plain = large_margin(random_state=0).fit(X, y)
    assert model.score(X_new, np.arange(400) % 2) >= plain.score(X_new, np.arange(400) % 2)


def test_the_length_scale_is_chosen_by_what_was_left_out():
    X, y = overlapping(300, 3, seed=4, spread=1.0)
    model = large_margin(select_length_scale=True, n_mean=0, n_inducing=40, random_state=0).fit(X, y)
    start = 0.6 * model.geometry_.length_scale
    chosen = model.kernel_.length_scale / start
    assert any(chosen == pytest.approx(factor) for factor in fits.CANDIDATES)
    tiny = large_margin(select_length_scale=True, random_state=0).fit(X[:30], y[:30])
    assert tiny.kernel_.length_scale == pytest.approx(0.6 * tiny.geometry_.length_scale)


def test_a_gpflow_kernel_is_used_as_it_is_and_not_saved():
    import gpflow

    X, y = overlapping(60, 3)
    kernel = gpflow.kernels.RationalQuadratic(variance=5.0)
    model = large_margin(kernel=kernel, n_mean=0).fit(X, y)
    assert model.score(X, y) > 0.8
    with pytest.raises(InputError, match="cannot be saved"):
        model.get_state()
    with pytest.raises(InputError, match="needs a kernel by name"):
        large_margin(kernel=kernel, hyperparameters="map").fit(X, y)


# ------------------------------------------------------------------ a labelling run


def test_warm_starts_take_fewer_sweeps_and_reach_the_same_objective(digits):
    X, _, y, _ = digits
    geometry = large_margin().measure(X, 0, common_scale=True)
    warm = large_margin(geometry=geometry, warm_start=True, classes=np.arange(10))
    warm.fit(X[:100], y[:100])
    warm.fit(X[:101], y[:101])
    cold = large_margin(geometry=geometry, classes=np.arange(10)).fit(X[:101], y[:101])
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)
    assert (warm.predict(X) != cold.predict(X)).mean() < 0.02
    assert warm.n_iter_ <= cold.n_iter_


def test_a_warm_start_with_a_wide_mean_ends_where_a_cold_one_does(digits):
    X, X_test, y, _ = digits
    model = LargeMarginClassifier(
        choice="fixed", warm_start=True, geometry=LargeMarginClassifier().measure(X, 0), random_state=0
    )
    for n in range(100, 401, 50):
        model.fit(X[:n], y[:n])
    cold = clone(model).fit(X[:400], y[:400])
    assert len(cold.wide_mean_) > 0
    assert np.abs(model.predict_proba(X_test) - cold.predict_proba(X_test)).max() < 0.035


def test_a_class_added_later_starts_from_the_others():
    X, y = overlapping(90, 3)
    geometry = Geometry.of(X, 20, 0)
    model = large_margin(geometry=geometry, warm_start=True, n_mean=0, classes=["a", "b"])
    words = np.array(["a", "b", "c"])[y]
    two = y < 2
    model.fit(X[two], words[two])
    before = model.mean_.copy()
    model.set_params(classes=["c", "a", "b"])
    start = None
    original = LargeMarginClassifier._start

    def spy(self):
        nonlocal start
        start = original(self)
        return start

    LargeMarginClassifier._start = spy
    try:
        model.fit(X, words)
    finally:
        LargeMarginClassifier._start = original
    assert list(model.classes_) == ["a", "b", "c"]
    assert start.mean[:, :2] == pytest.approx(before)
    assert start.mean[:, 2] == pytest.approx(0)
    assert model.score(X, words) > 0.75


def test_undoing_a_label_gives_back_the_model():
    X, y = overlapping(60, 3)
    geometry = Geometry.of(X, 20, 0)
    model = large_margin(geometry=geometry, warm_start=True, n_mean=0, tol=1e-8, max_sweeps=200)
    first = model.fit(X[:50], y[:50]).predict_proba(X)
    model.fit(X[:51], y[:51])
    assert model.fit(X[:50], y[:50]).predict_proba(X) == pytest.approx(first, abs=1e-3)


def test_stopping_early_keeps_a_usable_model(digits):
    X, _, y, _ = digits
    fractions = []

    def after(count):
        def callback(fraction, value):
            fractions.append(fraction)
            return len(fractions) >= count

        return callback

    full = large_margin(common_scale=True, random_state=0).fit(X[:600], y[:600])
    stopped = large_margin(common_scale=True, random_state=0).fit(X[:600], y[:600], callback=after(1))
    assert stopped.stopped_ and not full.stopped_
    assert len(stopped.wide_mean_) == 0
    assert stopped.objective_ == stopped.objective_trace_.max()
    fractions.clear()
    midway = large_margin(common_scale=True, random_state=0).fit(X[:600], y[:600], callback=after(8))
    assert midway.stopped_ and len(midway.wide_mean_) > 0
    assert scores(midway, digits)[0] < 0.1


@pytest.mark.slow  # alone: the ways that only large data take, made small
def test_large_data_use_few_rivals_and_a_part_of_the_rows(monkeypatch):
    monkeypatch.setattr("workbench.engine.large_margin.ALL_RIVALS", 100)
    monkeypatch.setattr(fits, "WIDE_BYTES", 150 * 60 * 8)
    monkeypatch.setattr(fits, "LEFT_OUT_ROWS", 120)
    monkeypatch.setattr(fits.cal, "clearly_less", lambda *_: False)
    X, y = overlapping(400, 6, seed=3, spread=0.5)
    model = large_margin(n_inducing=20, n_mean=40, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    assert len(model.wide_mean_) > 20
    assert np.isfinite(model.beta_)


def test_one_trace_for_twenty_models(digits):
    X, _, y, _ = digits
    large_margin(n_mean=0).fit(X[:50], y[:50])
    before = trace_count()
    for seed in range(20):
        large_margin(n_inducing=8 + seed, n_mean=0, random_state=seed).fit(X[: 60 + seed], y[: 60 + seed])
    assert trace_count() == before


def test_clones_of_fitted_models_fit_alike():
    X, y = load_wine(return_X_y=True)
    model = large_margin(random_state=3).fit(X, y)
    assert clone(model).fit(X, y).predict_proba(X) == pytest.approx(model.predict_proba(X), abs=0)


@pytest.mark.slow  # alone: from how many labels features of unit length get a wide mean
def test_learnt_features_of_unit_length_have_a_wide_mean_from_fewer_labels():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 12
    X = rng.normal(size=(12, 30))[y] + 0.7 * rng.normal(size=(120, 30))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cases = {"unit": (unit, True), "pixels": (5 * unit, True), "table": (unit, False)}
    wide = {}
    for name, (rows, common) in cases.items():
        model = large_margin(common_scale=common, random_state=0)
        wide[name] = [len(model.fit(rows[:n], y[:n]).wide_mean_) > 0 for n in (96, 120)]
    assert wide == {"unit": [False, True], "pixels": [False, False], "table": [False, False]}
    # and of many classes two labels each
    model = large_margin(common_scale=True, classes=range(77), random_state=0)
    assert len(model.fit(unit, y).wide_mean_) == 0


def test_beside_a_guess_learnt_features_are_leant_on_near_the_labels_alone():
    """The guess tells of whole classes; as smooth a function as without it said nothing more."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 4
    X = rng.normal(size=(4, 10))[y] + rng.normal(size=(24, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = large_margin(common_scale=True, random_state=0, n_mean=0, n_inducing=12)
    alone = model.fit(X, y).kernel_.length_scale
    beside = model.fit(X, y, mean=np.eye(4)[y] - 0.25).kernel_.length_scale
    assert beside == pytest.approx(alone * 0.6 / 1.4)


def test_the_wide_mean_is_taken_where_it_helps_and_left_where_it_follows_the_noise(monkeypatch):
    from workbench.pools import load_pool

    taken = {}
    for name in ("overlapping", "digits"):
        pool = load_pool(name)
        X, y = np.asarray(pool.features, dtype=float)[:1500], pool.truth[:1500]
        model = large_margin(random_state=0, common_scale=pool.common_scale)
        fits = []
        original = LargeMarginClassifier._judged

        def judged(self, found, codes, fits=fits, original=original):
            fits.append(original(self, found, codes))
            return fits[-1]

        with monkeypatch.context() as patched:
            patched.setattr(LargeMarginClassifier, "_judged", judged)
            model.fit(X, y)
        small, wide = fits[:2]
        assert len(small.wide) == 0 and len(wide.wide) > 0
        taken[name] = len(model.wide_mean_) > 0
        assert taken[name] or wide.left_out.brier.mean() > small.left_out.brier.mean()
    assert taken == {"overlapping": False, "digits": True}


def test_the_temperatures_prior_knows_the_learnt_variance():
    X, y = load_iris(return_X_y=True)
    model = LargeMarginClassifier(hyperparameters="type-II", calibration=None, n_mean=0).fit(X, y)
    assert abs(np.log(model.kernel_.variance / 10.0)) > 0.5
    assert model.beta_ == pytest.approx(1.5 * (model.kernel_.variance / 10.0) ** -0.4)


def test_what_was_left_out_is_there_after_a_fit_and_says_more_with_more_labels():
    from workbench.classifiers.protocols import left_out_of

    X, y = overlapping(900, 3, seed=2)
    few, many = (large_margin(n_mean=0, random_state=0).fit(X[:n], y[:n]) for n in (12, 900))
    found = left_out_of(many)
    assert found is not None and found.rows.shape == found.log_likelihood.shape == found.means[:, 0].shape
    assert len(many.left_out_.rows) == 600 and np.all(many.left_out_.log_likelihood <= 0)
    assert many.left_out_.log_likelihood.mean() > few.left_out_.log_likelihood.mean()
    assert many.left_out_.beta == many.beta_
    honest = np.log(many.predict_proba(X)[np.arange(900), y]).mean()
    assert many.left_out_.log_likelihood.mean() == pytest.approx(honest, abs=0.05)
    assert left_out_of(large_margin(calibration=None).fit(X[:12], y[:12])) is None
    many.set_params(calibration=None).fit(X, y)
    assert left_out_of(many) is None


def test_a_fit_changes_no_option():
    X, y = overlapping(60, 3)
    model = LargeMarginClassifier(
        calibration="cross-validated", hyperparameters="map", n_mean=0, random_state=0
    )
    before = model.get_params()
    seen = []
    model.fit(X, y, callback=lambda *_: seen.append(model.get_params() == before) and None)
    assert seen and all(seen) and model.get_params() == before


def test_learnt_features_begin_smoother_than_pixels_and_tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.arange(200) % 3
    for rows, common, factor in ((units, True, 1.4), (5.0 * units, True, 0.6), (units, False, 0.6)):
        model = LargeMarginClassifier(choice="fixed", random_state=0, common_scale=common)
        model.fit(rows, y)
        assert model.kernel_.length_scale == pytest.approx(factor * model.geometry_.length_scale)
        model.set_params(length_scale_factor=1.3).fit(rows, y)
        assert model.kernel_.length_scale == pytest.approx(1.3 * model.geometry_.length_scale)


def _a_rare_class_among_others(seed):
    """Unit features of three classes, y, and rows of a fourth as large that has one label."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 10))

    def drawn(y):
        X = centres[y] + 0.9 * rng.normal(size=(len(y), 10))
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    y = np.repeat([0, 1, 2, 3], [12, 12, 12, 1])
    test = np.repeat([0, 1, 2, 3], 200)
    return drawn(y), y, drawn(test), test


def test_a_class_with_few_labels_is_foretold_more_often_by_its_wider_margin():
    found = []
    for seed in range(4):
        X, y, X_test, test = _a_rare_class_among_others(seed)
        counts, errors = [], []
        for margin in (0.0, 1.0, 3.0):
            model = LargeMarginClassifier(
                choice="fixed", random_state=0, common_scale=True, rare_margin=margin
            ).fit(X, y)
            predicted = model.predict(X_test)
            counts.append(int((predicted == 3).sum()))
            errors.append(float(np.mean(predicted != test)))
        assert counts[0] < counts[1] < counts[2]
        found.append(errors)
    assert np.mean(found, axis=0)[1] < np.mean(found, axis=0)[0] - 0.01


def test_the_wider_margin_is_for_learnt_features_and_for_classes_that_differ_in_labels():
    X, y, X_test, _ = _a_rare_class_among_others(0)

    def latents(rows, labels, common=True, **options):
        model = LargeMarginClassifier(choice="fixed", random_state=0, common_scale=common, **options)
        return model.fit(rows, labels).predictor_.mean(X_test)

    assert np.array_equal(latents(X, y), latents(X, y, rare_margin=1.0))
    assert not np.allclose(latents(X, y), latents(X, y, rare_margin=0.0), atol=1e-3)
    assert np.array_equal(latents(5.0 * X, y), latents(5.0 * X, y, rare_margin=0.0))
    assert np.array_equal(latents(X, y, common=False), latents(X, y, common=False, rare_margin=0.0))
    # where all have as many labels no class is asked for more
    even = np.arange(len(y)) % 4
    rows, even = X[:36], even[:36]
    np.testing.assert_allclose(latents(rows, even), latents(rows, even, rare_margin=0.0), atol=1e-6)
