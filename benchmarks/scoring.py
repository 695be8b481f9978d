"""Scoring big pools: moments, exact top k, memory, and diverse batches against scikit-activeml.

Times are process times of this one process with linear algebra on one thread, both sides taking
turns, unless a line says otherwise. Each function prints its table and whether the goal was met.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Sides, race

D, C, P = 10, 10, 64


def _mixture(n: int, seed: int, width: int = D) -> tuple[Any, Any]:
    """Ten classes of two overlapping blobs each."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(2 * C, width)) * 1.6
    blob = rng.integers(2 * C, size=n)
    return centres[blob] + rng.normal(size=(n, width)), blob % C


def _model(X: Any, y: Any, labels: int, dtype: str = "float64") -> Any:
    from workbench.classifiers import make_classifier

    model = make_classifier(
        "large-margin",
        choice="fixed",
        classes=list(range(C)),
        n_inducing=P,
        n_mean=0,
        dtype=dtype,
        random_state=0,
    )
    model.geometry = model.measure(X[:20_000], 0)
    return model.fit(X[:labels], y[:labels])


def _line(what: str, ratio: float, goal: float, note: str = "") -> bool:
    met = ratio >= goal
    print(f"  {what}: {ratio:.3g}x (goal {goal:g}x) {'met' if met else 'NOT MET'} {note}".rstrip())
    return met


def _gemms(predictor: Any, X: Any, dtype: Any) -> Callable[[], None]:
    """Matrix products of the flops the moments need, on blocks of the same size."""
    rng = np.random.default_rng(0)
    columns = predictor.mean_weights.shape[1] + predictor.folded.factors.shape[1]
    A, B = rng.normal(size=(D, P)).astype(dtype), rng.normal(size=(P, columns)).astype(dtype)
    block = X[:2048].astype(dtype)
    first, second = np.empty((2048, P), dtype), np.empty((2048, columns), dtype)

    def work() -> None:
        for _ in range(0, len(X), 2048):
            np.matmul(block, A, out=first)
            np.matmul(first, B, out=second)

    return work


def _gpflow_posterior(model: Any, X: Any) -> Callable[[], None]:
    """GPflow's cached posterior of the same model, compiled, in blocks of the same size."""
    import gpflow
    import tensorflow as tf

    kernel = gpflow.kernels.SquaredExponential(
        model.kernel_.variance, lengthscales=model.kernel_.length_scale
    )
    S = np.matmul(model.root_.transpose(0, 2, 1), model.root_)
    svgp = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Softmax(C),
        model.geometry_.inducing,
        num_latent_gps=C,
        q_mu=model.mean_,
        q_sqrt=np.linalg.cholesky(S),
        whiten=True,
    )
    posterior = svgp.posterior()
    predict = tf.function(posterior.predict_f, input_signature=[tf.TensorSpec([None, D], tf.float64)])
    scaled = tf.constant(model.geometry_.transform(X))

    def work() -> None:
        for start in range(0, len(X), 2048):
            predict(scaled[start : start + 2048])

    ours = model.predict_latent(X[:500])
    theirs = predict(scaled[:500])
    gap = max(float(np.abs(a - b.numpy()).max()) for a, b in zip(ours, theirs, strict=True))
    print(f"  (largest difference to GPflow's moments: {gap:.1e})")
    return work


def million(*, quick: bool = False) -> bool:
    """Moments and exact top k of a million rows, with a trained model and one of 110 labels."""
    from threadpoolctl import threadpool_limits

    n = 100_000 if quick else 1_000_000
    rounds = 1 if quick else 3
    X, _ = _mixture(n, 2)
    train, y = _mixture(21_000, 1)
    met = True
    with threadpool_limits(1):
        for labels, goal in ((1_000, 20.0), (110, 4.0)):
            met &= _one_model(X, train, y, labels, goal, rounds)
    return met


def _one_model(X: Any, train: Any, y: Any, labels: int, goal: float, rounds: int) -> bool:
    from workbench.policies import top_variation_ratio, variation_ratio

    n, met = len(X), True
    model = _model(train, y, labels)
    single = _model(train, y, labels, "float32")
    print(f"{n:,} rows x {D}, C = {C}, P = {P}, model of {labels} labels, one thread")
    predictor, predictor32 = model.predictor_, single.predictor_
    X32 = X.astype(np.float32)
    gpflow_work = _gpflow_posterior(model, X)
    seen = race(
        {
            "moments float64": lambda: predictor(X),
            "GEMMs float64": _gemms(predictor, X, np.float64),
            "moments float32": lambda: predictor32(X32),
            "GEMMs float32": _gemms(predictor32, X, np.float32),
            "GPflow posterior": gpflow_work,
        },
        rounds,
    )
    mean, variance = predictor(X)
    mean32, variance32 = predictor32(X32)
    draws = n // 10  # a tenth of the rows; the cost is the same for each
    sides: dict[str, Callable[[], Any]] = {
        f"exact top-{k}": lambda k=k: top_variation_ratio(mean, variance, k) for k in (1, 10, 100)
    }
    sides["exact top-100, float32 moments"] = lambda: top_variation_ratio(mean32, variance32, 100)
    seen |= race(sides, rounds)
    some = slice(0, draws)
    rng = np.random.default_rng(0)
    others = race(
        {
            "Monte Carlo 100": lambda: variation_ratio(mean[some], variance[some], samples=100, rng=rng),
            "full quadrature": lambda: variation_ratio(mean[some], variance[some]),
        },
        1,
    )
    seen |= {f"{name} (from a tenth)": 10 * value for name, value in others.items()}
    for name, value in seen.items():
        print(f"    {name:<34} {value:8.3f} s")
    monte_carlo = 10 * others["Monte Carlo 100"]
    met &= _line("exact top-100 against Monte Carlo 100", monte_carlo / seen["exact top-100"], goal)
    met &= _line("moments against GEMMs, float64", seen["GEMMs float64"] / seen["moments float64"], 0.5)
    met &= _line("moments against GEMMs, float32", seen["GEMMs float32"] / seen["moments float32"], 0.5)
    met &= _line(
        "moments against GPflow's cached posterior",
        seen["GPflow posterior"] / seen["moments float64"],
        1,
    )
    every = variation_ratio(mean[some], variance[some])
    _, values = top_variation_ratio(mean[some], variance[some], 100)
    same = np.allclose(values, np.sort(every)[::-1][:100], rtol=1e-9)
    print(f"  top-100 equals computing all of that tenth: {same}; best {values[0]:.4f}")
    met &= bool(same)
    return met


def threads(*, quick: bool = False) -> bool:
    """The whole scan of a million rows on one thread and on all, in wall time (busy machines differ)."""
    from workbench.policies.scan import score_pool

    n = 100_000 if quick else 1_000_000
    X, _ = _mixture(n, 2)
    train, y = _mixture(21_000, 1)
    model = _model(train, y, 1_000)
    cores = os.cpu_count() or 1
    for count in (1, cores):
        begin = time.perf_counter()
        result = score_pool(X, model.predictor_, top=100, threads=count)
        print(
            f"  {count} thread(s): {time.perf_counter() - begin:6.2f} s wall, best {result.utilities[0]:.4f}"
        )
    return True


_SCORER = """
import re, sys, time
from workbench.classifiers.predictor import Predictor
from workbench.policies.scan import score_pool
import numpy as np
predictor = Predictor.from_arrays(dict(np.load(sys.argv[2])))
begin = time.process_time()
result = score_pool(sys.argv[1], predictor, top=100, threads=1)
assert "tensorflow" not in sys.modules
# the process's own high-water mark: what getrusage says includes the parent's at the fork
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
print(result.n_rows, peak, time.process_time() - begin)
"""


def memory(*, quick: bool = False) -> bool:
    """Peak memory of a scoring process over Parquet: under 600 MB and flat in the pool's length."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = 100_000 if quick else 1_000_000
    lengths = (2, 8)
    train, y = _mixture(21_000, 1)
    model = _model(train, y, 1_000)
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "predictor.npz", **model.predictor_.to_arrays())
        for parts in lengths:
            pool = Path(folder) / str(parts)
            pool.mkdir()
            for i in range(parts):
                X, _ = _mixture(part, 10 + i)
                columns = {f"f{j}": X[:, j].astype(np.float32) for j in range(D)}
                pq.write_table(pa.table(columns), pool / f"{i}.parquet")
            done = subprocess.run(
                [sys.executable, "-c", _SCORER, str(pool), str(Path(folder) / "predictor.npz")],
                capture_output=True,
                text=True,
                check=True,
            )
            rows, peak, seconds = done.stdout.split()
            peaks.append(float(peak))
            print(f"  {int(rows):>10,} rows of Parquet: peak {float(peak):6.0f} MB, {float(seconds):6.1f} s")
    flat = peaks[1] / peaks[0]
    print(f"  peak at 4 times the length: {flat:.2f} of the short one (goal at most 1.1)")
    met = max(peaks) < 600 and flat < 1.1
    print(f"  under 600 MB and flat: {'met' if met else 'NOT MET'}")
    return met


def batches(*, quick: bool = False) -> bool:
    """A batch of ten from 20,000 items of 64 features: each diverse selector and its counterpart.

    The counterparts are told the same probabilities and draws of the latents through the belief.
    """
    from skactiveml.pool import Badge, BatchBALD, CoreSet, TypiClust
    from threadpoolctl import threadpool_limits

    from workbench.policies import Belief, query
    from workbench.policies.activeml import from_activeml

    n = 3_000 if quick else 20_000
    X, y = _mixture(n, 3, width=64)
    X /= np.sqrt(64)
    from workbench.classifiers import make_classifier

    model = make_classifier("large-margin", choice="fixed", classes=list(range(C)), n_mean=0, random_state=0)
    labelled = np.arange(100)
    model.fit(X[labelled], y[labelled])
    latent, probabilities = model.predict_latent(X), model.predict_proba(X)
    scaled = model.geometry_.transform(X)
    belief = Belief(
        features=X,
        scaled=scaled,
        labelled=labelled,
        labels=y[labelled],
        n_classes=C,
        latent=latent,
        probabilities=probabilities,
        inducing_projection=lambda rows: model.predictor_.project(X[rows]),
        temperature=model.beta_,
    )
    pairs: list[tuple[str, Any]] = [
        ("core-set", CoreSet()),
        ("core-set-latent", CoreSet()),
        ("badge", Badge()),
        ("k-means", TypiClust()),
        ("covariance", TypiClust()),
        ("determinantal", TypiClust()),
        ("batch-bald", BatchBALD()),
    ]
    print(f"Batch of 10 from {n:,} items, D = 64, C = {C}, 100 labels")
    print(f"  {'selector':<16} {'s':>8} {'MB':>6}   {'scikit-activeml':<12} {'s':>8}   ratio")
    met = True
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, strategy in pairs:

            def ours(name: str = name) -> Any:
                return query("variation-ratio", belief, 10, np.random.default_rng(0), selector=name)

            adapter, their = from_activeml(strategy), type(strategy).__name__

            def theirs(adapter: Any = adapter) -> Any:
                return adapter(belief, 10, np.random.default_rng(0))

            turns = 3 if quick or their == "BatchBALD" else 5
            ran = Sides({"ours": ours, their: theirs}).run(turns)
            tracemalloc.start()
            ours()
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            met &= their not in ran.failed and ran.ratio(their, "ours").value > 1 and peak < 300
            same = ""
            if name == "core-set":
                answers = ran.results["ours"][0].indices, np.asarray(ran.results[their][0])
                same = "   the same items" if np.array_equal(*answers) else "   NOT the same items"
            mine, other = ran.median("ours"), ran.median(their)
            print(
                f"  {name:<16} {mine:8.3f} {peak:6.0f}   {their:<12} {other:8.3f}   "
                f"{ran.told(their, 'ours')}{same}"
            )
    print(f"  every one faster and under 300 MB: {'met' if met else 'NOT MET'}")
    return met


ALL = (million, threads, memory, batches)


def main(arguments: list[str] | None = None) -> int:
    """Run all of them, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(f.__name__ for f in ALL)])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    given = parser.parse_args(arguments)
    return (
        0 if all([f(quick=given.quick) for f in ALL if not given.names or f.__name__ in given.names]) else 1
    )


if __name__ == "__main__":
    raise SystemExit(main())
