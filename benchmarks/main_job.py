"""The main job: a whole fit against GPflow, a labelling round against a peer, many rounds in one process.

All times are process time of this process; the two sides take turns, and imports and first calls of both
lie outside.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import end
from benchmarks.default import default
from benchmarks.timing import Sides
from workbench.engine.runtime import prepare

Split = tuple[Any, Any, Any, Any]


def _split(pool_name: str, seed: int = 0) -> tuple[Split, bool]:
    from workbench.pools import load_pool

    pool = load_pool(pool_name).split(seed)
    assert pool.test is not None and pool.truth is not None
    X = np.asarray(pool.features, dtype=np.float64)
    train, test = pool.test.train, pool.test.test
    return (X[train], pool.truth[train], X[test], pool.truth[test]), pool.common_scale


def _ours(data: Split, common_scale: bool, **options: Any) -> Callable[[], Any]:
    """A fit of the large-margin model with 64 points and the fixed geometry, which the peer shares."""
    from workbench.classifiers import make_classifier

    X, y, _, _ = data
    fixed = {"n_inducing": 64, "n_mean": 0, "choice": "fixed", "random_state": 0} | options
    return lambda: make_classifier("large-margin", common_scale=common_scale, **fixed).fit(X, y)


class _Peer:
    """GPflow's SVGP on the same points, kernel and inputs, one compiled step.

    With robust-max the kernel is held, as ours is: its numbers come from the same rule. With softmax, GPflow
    at its best, Adam learns it beside the natural gradients.
    """

    def __init__(self, data: Split, common_scale: bool, likelihood: str, points: int = 64) -> None:
        import gpflow
        import tensorflow as tf

        from workbench.classifiers import Geometry

        X, y, X_test, self.y_test = data
        geometry = Geometry.of(X, points, 0, common_scale=common_scale)
        self.scaled, self.test = geometry.transform(X), geometry.transform(X_test)
        n_classes = int(y.max()) + 1
        if likelihood == "robust-max":
            lik = gpflow.likelihoods.MultiClass(n_classes, invlink=gpflow.likelihoods.RobustMax(n_classes))
        else:
            lik = gpflow.likelihoods.Softmax(n_classes)
        kernel = gpflow.kernels.SquaredExponential(1.0, lengthscales=geometry.length_scale)
        self.model = gpflow.models.SVGP(
            kernel, lik, geometry.inducing.copy(), num_latent_gps=n_classes, num_data=len(X)
        )
        gpflow.set_trainable(self.model.inducing_variable, False)
        gpflow.set_trainable(kernel, likelihood == "softmax")
        self.xs, self.ys = tf.constant(self.scaled), tf.constant(np.asarray(y)[:, None])
        self.n, self.rng = len(X), np.random.default_rng(0)
        natural = likelihood == "softmax"
        if natural:
            gpflow.set_trainable(self.model.q_mu, False)
            gpflow.set_trainable(self.model.q_sqrt, False)
        adam = tf.keras.optimizers.Adam(0.01 if natural else 5e-4)
        adam.build(self.model.trainable_variables)
        step = gpflow.optimizers.NaturalGradient(gamma=0.1) if natural else None
        pair = [(self.model.q_mu, self.model.q_sqrt)]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def train(batch: Any) -> None:
            rows = (tf.gather(self.xs, batch), tf.gather(self.ys, batch))
            if step is not None:
                step.minimize(lambda: self.model.training_loss(rows), pair)
            with tf.GradientTape() as tape:
                loss = self.model.training_loss(rows)
            grads = tape.gradient(loss, self.model.trainable_variables)
            adam.apply_gradients(zip(grads, self.model.trainable_variables, strict=True))

        self._train = train
        self._start = [v.numpy() for v in self.model.variables]
        train(tf.constant(self.rng.integers(0, self.n, 256)))
        self._adam = adam
        self.restart()

    def restart(self) -> None:
        for variable, value in zip(self.model.variables, self._start, strict=True):
            variable.assign(value)
        for variable in self._adam.variables:
            if "learning_rate" not in variable.name:
                variable.assign(np.zeros(variable.shape, variable.dtype))

    def epoch(self) -> None:
        import tensorflow as tf

        order = self.rng.permutation(self.n)
        for at in range(0, self.n, 256):
            self._train(tf.constant(order[at : at + 256]))

    def error(self) -> float:
        mean = self.model.predict_f(self.test)[0].numpy()
        return float(np.mean(mean.argmax(axis=1) != self.y_test))


def _against_robust_max(pool: str, goal: float, *, epochs: int, repeats: int, slack: float = 0.005) -> bool:
    """A whole fit against a budget of epochs, both with 64 points: errors stand beside the times."""
    ratios, mine, theirs, errors = [], [], [], []
    for seed in range(repeats):  # one item more or less wrong is a percent of a small test set: many splits
        data, common = _split(pool, seed)
        # what is traced is traced on other rows, so that the measured fit finds nothing it made
        other_rows = (data[0][::2], data[1][::2], *data[2:])
        peer = _Peer(data, common, "robust-max")
        ran = Sides(
            {"ours": _ours(data, common), "GPflow": lambda peer=peer: [peer.epoch() for _ in range(epochs)]},
            {"ours": _ours(other_rows, common), "GPflow": peer.epoch},
        ).run(1)
        ratios.append(ran.ratio("GPflow", "ours").value)
        mine.append(ran.median("ours"))
        theirs.append(ran.median("GPflow"))
        model = ran.results["ours"][0]
        errors.append((float(np.mean(model.predict(data[2]) != data[3])), peer.error()))
    mine_error, their_error = np.mean(np.asarray(errors), axis=0)
    ratio = float(np.median(ratios))
    met = ratio >= goal and mine_error <= their_error + slack
    print(
        f"{pool}, splits: {repeats}, 64 points on both sides: whole fit {np.median(mine):.3f} s, error "
        f"{mine_error:.4f} | GPflow robust-max, kernel held, Adam, {epochs} epochs "
        f"{np.median(theirs):.2f} s, error {their_error:.4f} | "
        f"{ratio:.0f}x (goal {goal:.0f}x) {'met' if met else 'not met'}",
        flush=True,
    )
    return met


def gpflow_fit(*, quick: bool = False) -> bool:
    """A whole fit of 64 points on digits against GPflow as the papers train it: goal 150x."""
    return _against_robust_max("digits", 150, epochs=100 if quick else 1000, repeats=1 if quick else 5)


def gpflow_three_classes(*, quick: bool = False) -> bool:
    """The same with three classes."""
    return _against_robust_max(
        "three-gaussians", 150, epochs=100 if quick else 1000, repeats=1 if quick else 5
    )


def gpflow_best(*, quick: bool = False) -> bool:
    """Time until GPflow's best setting reaches our accuracy on digits, on the same 64 points: goal 15x.

    Where it is never reached there is no ratio, whatever was spent.
    """
    data, common = _split("digits")
    small = _ours(data, common)
    error = float(np.mean(small().predict(data[2]) != data[3]))  # its first call, too
    peer = _Peer(data, common, "softmax")

    def to_our_error() -> float:
        peer.restart()
        best = 1.0
        for _ in range(40 if quick else 300):
            peer.epoch()
            best = min(best, peer.error())
            if best <= error:
                break
        return best

    ran = Sides(
        {"ours": small, "GPflow": to_our_error},
        {"ours": small, "GPflow": peer.epoch},
        arrived=lambda side, result: side == "ours" or result <= error,
    ).run(1 if quick else 5)
    met = "GPflow" not in ran.failed and ran.ratio("GPflow", "ours").value >= 15
    print(
        f"digits, 64 points on both sides: {ran.line('ours')} to error {error:.4f} | GPflow softmax, natural "
        f"gradients 0.1 + Adam 0.01, {ran.line('GPflow')} to as little (seen on the test items) | "
        f"{ran.told('GPflow', 'ours')} (goal 15x) {'met' if met else 'not met'}",
        flush=True,
    )
    return met


def labelling_round(*, quick: bool = False) -> bool:
    """Fit, score, ask over 10,000 items at 91 to 100 labels, as a new project does.

    Goals: five times the speed of a peer, and no round above 150 ms. Some rounds look at other geometries, so
    ten of a run are measured: their mean and the dearest; rounds that choose none stand beside them.
    """
    return all([_labelling_round(n_classes, quick) for n_classes in (4, 10)])


def _labelling_round(n_classes: int, quick: bool) -> bool:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling
    from sklearn.gaussian_process import GaussianProcessClassifier

    from workbench.policies import query
    from workbench.pools import load_pool
    from workbench.sessions.learner import Learner

    pool = load_pool("overlapping", n_items=10_000, n_classes=n_classes)
    assert pool.truth is not None
    X = np.asarray(pool.features, dtype=np.float64)
    items = np.random.default_rng(0).permutation(len(pool))[:100]
    codes = pool.truth[items]
    new = default()
    labels = np.full(len(pool), np.nan)
    labels[items] = codes
    peer_model = SklearnClassifier(GaussianProcessClassifier(random_state=0), classes=np.unique(pool.truth))
    strategy = UncertaintySampling(method="entropy", random_state=0)

    def rounds(options: Any) -> Callable[[], Any]:
        learner = Learner(pool, new.classifier, options, seed=0)
        grown: Any = None  # label by label, so that looks fall where they fall in a project
        for n in range(2 * n_classes, 91):
            grown = learner.fit(items[:n], codes[:n], number=0, previous=grown).state

        def ten() -> list[float]:
            state, spent = grown, []
            for n in range(91, 101):
                began = time.process_time()
                model = learner.fit(items[:n], codes[:n], number=n - 90, previous=state)
                query(new.policy, model.belief(), 1, np.random.default_rng(0))
                state = model.state
                spent.append(time.process_time() - began)
            return spent

        return ten

    def theirs() -> Any:
        for _ in range(10):
            strategy.query(X=X, y=labels, clf=peer_model)

    fixed = new.options | {"choice": "fixed"}
    works = {"default": rounds(new.options), "fixed": rounds(fixed), "peer": theirs}
    ran = Sides(works).run(2 if quick else 5)
    each = {side: 100 * ran.median(side) for side in ran.works}  # milliseconds a round
    most = 1e3 * float(np.median([max(ten) for ten in ran.results["default"]]))
    met = ran.ratio("peer", "default").value >= 5 and most < 150
    said = f"rounds from 91 to 100 labels, 10,000 x {X.shape[1]}, {len(pool.classes)} classes, {new.policy}"
    peer = f"scikit-activeml over scikit-learn's GP {each['peer']:.0f} ms"
    print(
        f"{said}: the default {each['default']:.0f} ms in the mean, {most:.0f} at most | {peer} | "
        f"{ran.told('peer', 'default')} (goals 5x, 150 ms) {'met' if met else 'not met'}; "
        f"no geometry chosen: {each['fixed']:.0f} ms, {ran.told('peer', 'fixed')}",
        flush=True,
    )
    return met


def many_rounds(*, quick: bool = False) -> bool:
    """200 rounds and 20 fresh models in one process: at most one trace, memory growth under 30 MB."""
    import psutil

    from workbench.classifiers import make_classifier
    from workbench.engine.large_margin import trace_count
    from workbench.pools import load_pool
    from workbench.sessions import simulate

    pool = load_pool("digits")
    memory = psutil.Process()
    at_ten = 0
    for done in simulate(pool, policy="variation-ratio", budget=50 if quick else 200, seed=0):
        if done.number == 10:
            gc.collect()
            at_ten = memory.memory_info().rss
    X, y = np.asarray(pool.features, dtype=np.float64), pool.truth
    for seed in range(20):
        make_classifier("large-margin", choice="fixed", n_inducing=64, n_mean=0, random_state=seed).fit(
            X[:300], y[:300]
        )
    gc.collect()
    growth = (memory.memory_info().rss - at_ten) / 1e6
    traces = trace_count()
    met = traces <= 1 and growth < 30
    print(
        f"{done.number} rounds and 20 fresh models: {traces} traces, memory {growth:+.1f} MB since the tenth "
        f"round (goals: at most 1, under 30) {'met' if met else 'not met'}",
        flush=True,
    )
    return met


def main(arguments: list[str] | None = None) -> int:
    """All lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks main_job", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer epochs and repeats")
    quick = parser.parse_args(arguments).quick
    prepare()
    met = [
        work(quick=quick)
        for work in (many_rounds, labelling_round, gpflow_fit, gpflow_best, gpflow_three_classes)
    ]
    return int(not all(met))


if __name__ == "__main__":
    end(main)
