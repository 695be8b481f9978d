"""Images: what attacks cost beside a fit, PGD against a toolbox, steps of training, accuracy.

Times are process times of this one process, both sides taking turns, linear algebra on the threads
the engine sets. Each function prints its lines and whether the goal was met. `accuracy` trains on
all of MNIST and Fashion-MNIST and takes a quarter of an hour; it runs only when named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import end
from benchmarks.timing import race, timed
from workbench.classifiers import protocols

GOAL_PAGE, GOAL_PGD = 25.0, 5.0
GOAL_STEP = {"papers-mnist": 1.1, "small": 2.5}
GOAL_ACCURACY = 0.005
SETS = ("mnist", "fashion_mnist")


def _verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


def _digits() -> tuple[Any, Any, Any, Any]:
    from workbench.pools import load_pool

    pool = load_pool("digits").split(0)
    train, test, truth = pool.test.train, pool.test.test, np.asarray(pool.truth)
    return pool.features[train], truth[train], pool.features[test][:360], truth[test][:360]


def page(quick: bool = False) -> bool:
    """The Adversarial page's default on digits: six strengths of FGSM, one adaptive PGD, against the fit."""
    from workbench.attacks import measure
    from workbench.attacks.methods import compiled_pgd, compiled_slope
    from workbench.classifiers import Geometry, make_classifier

    X, y, images, truth = _digits()
    model = make_classifier(
        "large-margin", choice="fixed", geometry=Geometry.of(X, 64, 0, n_mean=448, common_scale=True)
    )
    first = timed(lambda: model.fit(X, y))[0]

    def attacks() -> None:
        measure(model, images, truth, attacks=("fgsm",))
        measure(model, images, truth, attacks=("adaptive-pgd",), strengths=(0.3,))

    first_attacks = timed(attacks)[0]
    times = race({"fit": lambda: model.fit(X, y), "attacks": attacks}, 3 if quick else 7)
    whole = (times["fit"] + times["attacks"]) / times["fit"]
    compiled = [run.cache_info().misses for run in (compiled_slope, compiled_pgd)]
    print("Adversarial page, digits, 360 images: six strengths of FGSM, one adaptive PGD of 20 steps")
    print(f"  first time: fit {first:.2f} s, attacks and scores {first_attacks:.2f} s (with compiling)")
    print(f"  then: fit {times['fit']:.3f} s, attacks and scores {times['attacks']:.3f} s")
    met = whole <= GOAL_PAGE
    print(f"  everything / fit alone: {whole:.1f} (goal at most {GOAL_PAGE:.0f}: {_verdict(met)})")
    once = compiled == [2, 1]  # the adaptive attack is PGD, and has its own loss
    print(f"  one trace for each (model, loss): {_verdict(once)} {compiled}")
    return met and once


def toolbox_model(model: Any, kind: str) -> Any:
    """A fitted model as the toolbox's classifier; its outputs are latent means or logits.

    Args:
        model: fitted.
        kind: "Keras model" (networks only; what the toolbox's guide uses), "function", "compiled function".

    Raises:
        ImportError: the toolbox is not installed.
    """
    import keras
    import tensorflow as tf
    from art.estimators.classification import TensorFlowV2Classifier

    from workbench.attacks.methods import moments, target_of

    target = target_of(model)

    def call(x: Any, training: bool = False) -> Any:
        return moments(target.key)(target.arrays, tf.cast(x, target.dtype))[0]

    made = {"function": call, "compiled function": tf.function(call, reduce_retracing=True)}
    return TensorFlowV2Classifier(
        model=_keras_model(model) if kind == "Keras model" else made[kind],
        nb_classes=len(model.classes_),
        input_shape=(model.n_features_in_,),
        loss_object=keras.losses.CategoricalCrossentropy(from_logits=True),
        clip_values=(0.0, 1.0),
    )


def _keras_model(model: Any) -> Any:
    import keras

    from workbench.engine.networks import template

    body = keras.models.clone_model(template(model.network_, model.input_shape_))
    body.set_weights(list(model.weights_))
    last = keras.layers.Dense(len(model.classes_))
    whole = keras.Sequential(
        [
            keras.Input((model.n_features_in_,)),
            keras.layers.Rescaling(1 / model.scale_, -model.shift_ / model.scale_),
            keras.layers.Reshape(model.input_shape_),
            *body.layers,
            keras.layers.LayerNormalization(center=False, scale=False, epsilon=1e-5),
            last,
        ]
    )
    last.set_weights([model.kernel_, model.bias_])
    return whole


WITHIN = 0.01
"""Largest difference of our accuracies from those of the toolbox; PGD starts at random in both."""


def toolbox_attack(classifier: Any, X: Any, codes: Any, method: str, strength: float, steps: int) -> Any:
    """Images attacked by the toolbox, with our step sizes.

    Raises:
        ImportError: the toolbox is not installed.
    """
    from art.attacks.evasion import FastGradientMethod, ProjectedGradientDescent

    from workbench.attacks.methods import REACH

    if method == "fgsm":
        chosen = FastGradientMethod(classifier, eps=strength, batch_size=512)
    else:
        chosen = ProjectedGradientDescent(
            classifier,
            eps=strength,
            eps_step=REACH * strength / steps,
            max_iter=steps,
            num_random_init=1,
            batch_size=512,
            verbose=False,
        )
    return chosen.generate(X.astype(np.float32), np.eye(classifier.nb_classes, dtype=np.float32)[codes])


def toolbox_accuracies(model: Any, X: Any, y: Any, method: str, strength: float, steps: int) -> float:
    """Accuracy on images attacked by the toolbox.

    Raises:
        ImportError: the toolbox is not installed.
    """
    codes = np.searchsorted(model.classes_, y)
    side = toolbox_model(model, "compiled function")
    return float(model.score(toolbox_attack(side, X, codes, method, strength, steps), y))


def pgd(quick: bool = False) -> bool:
    """PGD at equal steps against the Adversarial Robustness Toolbox, on the same models."""
    from workbench.attacks.methods import attack
    from workbench.classifiers import Geometry, make_classifier

    try:
        import art
    except ImportError:
        print("PGD against the Adversarial Robustness Toolbox: not measured, it is not installed")
        return True
    X, y, images, truth = _digits()
    geometry = Geometry.of(X, 64, 0, n_mean=448, common_scale=True)
    models = {
        "large-margin GP, the page's default": make_classifier(
            "large-margin", choice="fixed", geometry=geometry
        ).fit(X, y),
        "softmax network, small": make_classifier("softmax-net", input_shape=(8, 8), random_state=0).fit(
            X, y
        ),
    }
    count, strength, met = 20, 0.15, True
    codes = np.searchsorted(np.unique(y), truth)
    print(f"PGD of {count} steps on {len(images)} digits, against the toolbox {art.__version__}")
    for title, model in models.items():
        network = protocols.supports_network(model)
        sides = {kind: toolbox_model(model, kind) for kind in ("function", "compiled function")}
        if network:
            sides = {"Keras model": toolbox_model(model, "Keras model")} | sides
        times = race(
            {"ours": lambda m=model: attack(m, images, truth, method="pgd", strength=strength, steps=count)}
            | {
                name: (lambda side=side: toolbox_attack(side, images, codes, "pgd", strength, count))
                for name, side in sides.items()
            },
            2 if quick else 5,
        )
        ours = {
            m: float(
                model.score(attack(model, images, truth, method=m, strength=strength, steps=count), truth)
            )
            for m in ("fgsm", "pgd")
        }
        theirs = {m: toolbox_accuracies(model, images, truth, m, strength, count) for m in ("fgsm", "pgd")}
        same = all(abs(ours[m] - theirs[m]) <= WITHIN for m in ours)
        print(f"  {title}: ours {times['ours']:.3f} s")
        for name in sides:
            # judged as the toolbox's guide has it: a network as a Keras model, a GP as a plain function
            judged = name == ("Keras model" if network else "function")
            ratio = times[name] / times["ours"]
            met &= not judged or ratio >= GOAL_PGD
            goal = f" (goal at least {GOAL_PGD:.0f}x: {_verdict(ratio >= GOAL_PGD)})" if judged else ""
            print(f"    toolbox, {name}: {times[name]:.3f} s, {ratio:.1f}x{goal}")
        print(f"    accuracies ours {ours}, toolbox {theirs}: {_verdict(same)}")
        met &= same
    return met


def _step_times(network: str, count: int, rounds: int) -> dict[str, float]:
    from workbench.engine import network_training
    from workbench.engine import networks as nn
    from workbench.engine.fitting import minibatches

    shape, C, P = (28, 28, 1), 10, 64
    rng = np.random.default_rng(0)
    X = rng.random((1024, 784), dtype=np.float32)
    codes = rng.integers(C, size=len(X))
    data = np.zeros(784, np.float32), np.ones(784, np.float32), X, codes
    weights = nn.initial_weights(network, shape, 0)
    d = nn.n_features(network, shape)
    layer = (0.1 * rng.normal(size=(d, C))).astype(np.float32), np.zeros(C, np.float32)
    points = np.asarray(nn.layer_norm(rng.normal(size=(P, d))))
    head = network_training.Head.of(points, rng.normal(size=(P, C)), np.tile(0.5 * np.eye(P), (C, 1, 1)))
    rows = minibatches(len(X), 128, count, rng)

    def softmax(n: int = count) -> Any:
        return network_training.train_softmax(
            network, shape, (*weights, *layer), *data, rows[:n], np.full(n, 1e-4)
        )

    def joint(n: int = count) -> Any:
        rates, kernel = np.full((n, 2), 1e-4), (10.0, d**0.5)
        return network_training.train_joint(
            network, shape, weights, head, kernel, *data, rows[:n], rates, tau=0.1
        )

    softmax(1), joint(1)
    times = race({"softmax": softmax, "joint": joint}, rounds)
    return {name: seconds / count for name, seconds in times.items()}


def steps(quick: bool = False) -> bool:
    """Time of a training step of LMGP-DNN against the softmax network's."""
    print("A training step, 28 x 28 images, batches of 128, 64 inducing points")
    met = True
    for network, goal in GOAL_STEP.items():
        times = _step_times(network, {"papers-mnist": 3, "small": 15}[network], 3 if quick else 7)
        ratio = times["joint"] / times["softmax"]
        met &= ratio <= goal
        print(
            f"  {network:<13} softmax {1e3 * times['softmax']:6.1f} ms, "
            f"LMGP-DNN {1e3 * times['joint']:6.1f} ms: {ratio:.2f}x "
            f"(goal at most {goal}: {_verdict(ratio <= goal)})"
        )
    return met


def accuracy(quick: bool = False, sets: Sequence[str] = SETS) -> bool:
    """Accuracy of LMGP-DNN and of the softmax network on MNIST and Fashion-MNIST, 8 epochs each."""
    from workbench.classifiers import make_classifier
    from workbench.errors import InputError
    from workbench.pools import load_pool

    met = True
    for name in sets:
        try:
            pool = load_pool(f"images:{name}", features="pixels")
        except InputError as error:
            print(f"{name}: not measured. {error}")
            continue
        assert pool.test is not None
        train, test, truth = pool.test.train, pool.test.test, np.asarray(pool.truth)
        if quick:
            train, test = train[:3000], test[:2000]
        X, images = np.asarray(pool.features[train]), np.asarray(pool.features[test])
        found = {}
        for kind in ("softmax-net", "large-margin-net"):
            epochs = {"epochs": 8} if kind == "softmax-net" else {"pretrain_epochs": 4, "joint_epochs": 4}
            model = make_classifier(kind, network="middle", input_shape=(28, 28), random_state=0, **epochs)
            begin = time.process_time()
            model.fit(X, truth[train])
            seconds = time.process_time() - begin
            found[kind] = float(model.score(images, truth[test]))
            print(f"  {name}: {kind} {found[kind]:.4f}, {seconds:.0f} s of {len(train):,} images", flush=True)
        gap = found["softmax-net"] - found["large-margin-net"]
        met &= gap <= GOAL_ACCURACY
        print(
            f"  {name}: behind by {gap:+.4f} (goal at most {GOAL_ACCURACY}: {_verdict(gap <= GOAL_ACCURACY)})"
        )
    return met


QUICK = (page, pgd, steps)
ALL = (*QUICK, accuracy)


def main(arguments: list[str] | None = None) -> int:
    """Run the quick ones, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(f.__name__ for f in ALL)])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, less data")
    parser.add_argument("--set", action="append", choices=SETS, help="of `accuracy`: this set alone")
    given = parser.parse_args(arguments)
    chosen = [f for f in ALL if f.__name__ in given.names] or list(QUICK)
    sets = {"sets": given.set} if given.set else {}
    return 0 if all([f(quick=given.quick, **(sets if f is accuracy else {})) for f in chosen]) else 1


if __name__ == "__main__":
    end(main)
