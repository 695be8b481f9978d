import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from workbench.attacks import ATTACKS, LOSSES
from workbench.attacks.methods import (
    attack,
    attacks_on,
    compiled_pgd,
    compiled_slope,
    moments,
    slopes,
    target_of,
)
from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.policies import variation_ratio

GRID = (0.0, 0.1, 0.3)


def loss_of(model, X, y, loss):
    return slopes(model, X, y, loss)[0]


@pytest.mark.parametrize("method", ATTACKS)
def test_attacks_stay_within_strength_and_pixels(method, pixels_model, softmax_net, digits):
    X, y = digits[2][:40], digits[3][:40]
    found = attacks_on(pixels_model, X, y, method=method, strengths=GRID, steps=5, surrogate=softmax_net)
    for strength, moved in zip(GRID, found, strict=True):
        assert moved.shape == X.shape
        assert np.abs(moved - X).max() <= strength + 1e-15
        assert moved.min() >= 0 and moved.max() <= 1
        assert (strength == 0) == (moved == X).all()


@pytest.mark.slow  # alone: what is attacked is the model itself, network and all
@pytest.mark.parametrize("which", ["pixels_model", "net", "softmax_net", "wasserstein"])
def test_targets_say_what_the_models_say(which, digits, request):
    model = request.getfixturevalue(which)
    target = target_of(model)
    X = digits[2].astype(target.dtype.as_numpy_dtype)
    mean, variance = moments(target.key)(target.arrays, X)
    if variance is None:
        np.testing.assert_allclose(np.asarray(mean), model.decision_function(X), atol=1e-4)
        return
    latent = model.predict_latent(X)
    tolerance = 1e-10 if which == "pixels_model" else 1e-3  # networks are float32
    np.testing.assert_allclose(np.asarray(mean), latent.mean, atol=tolerance)
    np.testing.assert_allclose(np.asarray(variance), latent.variance, atol=tolerance)


@pytest.mark.parametrize("kernel", ["squared-exponential", "matern52", "matern32", "exponential"])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_targets_know_every_kernel(kernel, n_classes, digits, geometry):
    rows = digits[1] < n_classes
    model = make_classifier("large-margin", geometry=geometry, kernel=kernel).fit(
        digits[0][rows], digits[1][rows]
    )
    target = target_of(model)
    mean, variance = moments(target.key)(target.arrays, digits[2])
    np.testing.assert_allclose(np.asarray(mean), model.predict_latent(digits[2]).mean, atol=1e-8)
    np.testing.assert_allclose(np.asarray(variance), model.predict_latent(digits[2]).variance, atol=1e-8)


def test_targets_know_kernels_that_were_chosen(digits, geometry):
    model = make_classifier("large-margin", geometry=geometry).fit(digits[0], digits[1])
    state = model.get_state()
    for more in ({"offset": 10.0}, {"slope": 0.3}, {"offset": 10.0, "slope": 0.3}):
        chosen = make_classifier("large-margin", choice="auto")
        chosen.set_state(state | {f"kernel.{name}": np.asarray(value) for name, value in more.items()})
        target = target_of(chosen)
        mean, variance = moments(target.key)(target.arrays, digits[2])
        latent = chosen.predict_latent(digits[2])
        np.testing.assert_allclose(np.asarray(mean), latent.mean, atol=1e-8)
        np.testing.assert_allclose(np.asarray(variance), latent.variance, atol=1e-8)


def test_columns_written_anew_give_no_gradients():
    X = np.random.default_rng(0).integers(0, 5, (60, 3)).astype(float)
    model = make_classifier("large-margin", choice="auto")
    geometry = model.measure(X, 0).select("one-hot")
    model = make_classifier("large-margin", geometry=geometry).fit(X, X[:, 0] > 2)
    with pytest.raises(InputError, match="choice=fixed"):
        target_of(model)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_finite_differences(loss, pixels_model, digits):
    X, y = digits[2][:12], digits[3][:12]
    value, gradient = slopes(pixels_model, X, y, loss)
    assert np.isfinite(value).all()
    rng = np.random.default_rng(0)
    for pixel in rng.choice(64, 8, replace=False):
        step = np.zeros(64)
        step[pixel] = 1e-5
        difference = (
            loss_of(pixels_model, X + step, y, loss) - loss_of(pixels_model, X - step, y, loss)
        ) / 2e-5
        np.testing.assert_allclose(gradient[:, pixel], difference, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("which", ["pixels_model", "net"])
def test_cross_entropy_is_of_the_models_own_probabilities(which, digits, request):
    model = request.getfixturevalue(which)
    X, y = digits[2:]
    own = -np.log(model.predict_proba(X)[np.arange(len(y)), y])
    np.testing.assert_allclose(loss_of(model, X, y, "cross-entropy"), own, atol=1e-3)
    before, after = (
        loss_of(model, moved, y, "cross-entropy").mean()
        for moved in (X, attack(model, X, y, strength=0.02, method="pgd", steps=3))
    )
    assert after > 1.3 * before


def test_a_networks_gradient_signs_are_finite_differences(net, digits):
    X, y = digits[2][:12], digits[3][:12]
    _, gradient = slopes(net, X, y)
    agree = []
    for pixel in range(0, 64, 3):
        step = np.zeros(64)
        step[pixel] = 3e-3  # float32, and ReLU kinks: large steps
        difference = (
            loss_of(net, X + step, y, "cross-entropy") - loss_of(net, X - step, y, "cross-entropy")
        ) / 6e-3
        steep = np.abs(gradient[:, pixel]) > 1e-2
        agree.extend((np.sign(difference) == np.sign(gradient[:, pixel]))[steep])
    assert len(agree) > 20 and np.mean(agree) > 0.97


@pytest.mark.slow  # alone: that attacks attack: noise, one step, many steps, in this order
@pytest.mark.parametrize("which", ["pixels_model", "net", "softmax_net", "wasserstein"])
def test_fgsm_hurts_more_than_noise_and_pgd_more_than_fgsm(which, digits, request):
    model = request.getfixturevalue(which)
    X, y = digits[2:]
    hits = {m: model.score(attack(model, X, y, method=m, strength=0.15), y) for m in ("noise", "fgsm", "pgd")}
    assert hits["pgd"] <= hits["fgsm"] < hits["noise"] - 0.2


@pytest.mark.parametrize("method", ["pgd", "adaptive-pgd"])
def test_pgd_never_ends_below_where_it_began(method, net, digits):
    X, y = digits[2:]
    loss = ATTACKS[method].loss
    before = loss_of(net, X, y, loss)
    for steps in (1, 7):
        after = loss_of(net, attack(net, X, y, method=method, strength=0.05, steps=steps), y, loss)
        assert (after >= before - 1e-4).all()


def test_pgd_keeps_the_best_of_its_own_path(pixels_model, digits):
    X, y = digits[2], digits[3].astype(np.int32)
    target = target_of(pixels_model)
    run = compiled_pgd(target.key, target.signature, "hinge", target.dtype)
    reach = np.full(len(X), 0.1)
    start = X + 0.1 * np.random.default_rng(1).uniform(-1, 1, X.shape)
    best, record = run(target.arrays, target.beta, X, y, start, reach, np.int32(10))
    np.testing.assert_allclose(loss_of(pixels_model, best.numpy(), y, "hinge"), record.numpy(), atol=1e-10)
    # by hand
    now, top = np.clip(start, 0, 1), loss_of(pixels_model, X, y, "hinge")
    for _ in range(11):
        value, gradient = slopes(pixels_model, now, y, "hinge")
        top = np.maximum(top, value)
        now = np.clip(now + 0.025 * np.sign(gradient), np.maximum(X - 0.1, 0), np.minimum(X + 0.1, 1))
    np.testing.assert_allclose(record.numpy(), top, atol=1e-8)


@pytest.mark.parametrize("which", ["pixels_model", "net"])
def test_the_adaptive_attack_hides_from_the_variation_ratio(which, digits, request):
    model = request.getfixturevalue(which)
    X, y = digits[2:]
    moved = {m: attack(model, X, y, method=m, strength=0.3) for m in ("fgsm", "adaptive-pgd")}
    seen = {m: variation_ratio(*model.predict_latent(x)).mean() for m, x in moved.items()}
    assert model.score(moved["adaptive-pgd"], y) < 0.1
    assert seen["adaptive-pgd"] < 0.5 * seen["fgsm"]


def test_losses_can_be_chosen_by_name(pixels_model, digits):
    X, y = digits[2:]
    plain = attack(pixels_model, X, y, strength=0.1)
    other = attack(pixels_model, X, y, strength=0.1, loss="objective")
    assert (plain != other).any()
    assert variation_ratio(*pixels_model.predict_latent(other)).mean() > 0.1
    with pytest.raises(InputError, match="hinge"):
        attack(pixels_model, X, y, loss="hing")


def test_same_seed_same_attack(pixels_model, digits):
    X, y = digits[2:]
    for method in ("noise", "pgd"):
        first, again, other = (
            attack(pixels_model, X, y, method=method, random_state=seed, steps=4) for seed in (1, 1, 2)
        )
        assert (first == again).all()
        assert (first != other).any()


def test_without_labels_the_predictions_are_led_away_from(net, digits):
    X = digits[2]
    assert (attack(net, X) == attack(net, X, net.predict(X))).all()


def test_transfer_takes_the_surrogates_gradient(net, softmax_net, digits):
    X, y = digits[2:]
    carried = attack(net, X, y, method="transfer", surrogate=softmax_net, strength=0.2)
    assert (carried == attack(softmax_net, X, y, method="fgsm", strength=0.2)).all()
    own = attack(net, X, y, strength=0.2)
    assert net.score(own, y) <= net.score(carried, y) < net.score(X, y)
    with pytest.raises(InputError, match="surrogate"):
        attack(net, X, y, method="transfer")


def test_one_trace_for_each_model_and_loss(digits, geometry):
    X, y = digits[2:]
    compiled = []
    for n, n_classes in ((300, 10), (200, 5)):
        rows = digits[1][:n] < n_classes
        model = make_classifier("large-margin", geometry=geometry).fit(
            digits[0][:n][rows], digits[1][:n][rows]
        )
        some = y < n_classes
        for strength in (0.05, 0.2):
            attack(model, X[some], y[some], strength=strength)
            attack(model, X[some][:9], y[some][:9], strength=strength, method="pgd", steps=3)
        compiled.append([run.cache_info().misses for run in (compiled_slope, compiled_pgd)])
    assert compiled[0] == compiled[1]


@pytest.mark.slow  # alone: attacks on one model after another are no retracing
def test_attacks_on_many_kinds_warn_of_nothing(pixels_model, softmax_net, net, digits, caplog):
    X, y = digits[2][:4], digits[3][:4]
    for model in (pixels_model, net, softmax_net):
        for loss in ("cross-entropy", "hinge"):
            for method in ("fgsm", "pgd"):
                attack(model, X, y, method=method, loss=loss, steps=2)
    ours = ("tensorflow", "gpflow", "workbench")  # another test's thread may still speak
    assert not [
        record for record in caplog.records if record.levelname == "WARNING" and record.name.startswith(ours)
    ]


@pytest.mark.parametrize("strength", [-0.1, 1.5, float("nan")])
def test_strengths_outside_the_range_are_refused(strength, pixels_model, digits):
    with pytest.raises(InputError, match="between 0"):
        attack(pixels_model, digits[2], strength=strength)


def test_what_cannot_be_attacked_says_why(pixels_model, softmax_net, digits):
    X, y = digits[2:]
    plain = LogisticRegression(max_iter=200, tol=0.1).fit(digits[0], digits[1])
    with pytest.raises(InputError, match="no gradients"):
        attack(plain, X, y)
    assert attack(plain, X, y, method="noise").shape == X.shape
    assert attack(plain, X, y, method="transfer", surrogate=softmax_net).shape == X.shape
    with pytest.raises(InputError, match="Fit"):
        attack(make_classifier("large-margin"), X, y)
    with pytest.raises(InputError, match="Fit"):
        attack(make_classifier("large-margin"), X)
    with pytest.raises(InputError, match="learnt nothing"):
        attack(make_classifier("large-margin", classes=[0, 1]).fit(np.empty((0, 64)), []), X, y % 2)
    with pytest.raises(InputError, match="between 0 and 1"):
        attack(pixels_model, X * 255, y)
    with pytest.raises(InputError, match="does not know"):
        attack(pixels_model, X, y + 100)
    with pytest.raises(InputError, match="variance"):
        attack(softmax_net, X, y, method="adaptive-pgd")
    with pytest.raises(InputError, match="variance"):  # when it is asked for, not when images are drawn
        attacks_on(softmax_net, X, y, loss="objective")
    with pytest.raises(InputError, match="at least one"):
        list(attacks_on(pixels_model, X, y, strengths=()))
    with pytest.raises(InputError, match="One label"):
        attack(pixels_model, X, y[:3])
    with pytest.raises(InputError, match="fgsm"):
        attack(pixels_model, X, y, method="fgms")


def test_listing_attacks_imports_no_tensorflow():
    code = (
        "import sys; from workbench.attacks import ATTACKS, DETECTORS; list(ATTACKS), list(DETECTORS);"
        "assert not {'tensorflow', 'sklearn', 'gpflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_accuracies_are_those_of_the_adversarial_robustness_toolbox(softmax_net, digits):
    art = pytest.importorskip("art", reason="adversarial-robustness-toolbox is not installed")
    del art
    from benchmarks.images import WITHIN, toolbox_accuracies

    X, y = digits[2:]
    for method in ("fgsm", "pgd"):
        ours = softmax_net.score(attack(softmax_net, X, y, method=method, strength=0.1, steps=10), y)
        assert ours == pytest.approx(toolbox_accuracies(softmax_net, X, y, method, 0.1, 10), abs=WITHIN)
