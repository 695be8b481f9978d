"""`python -m benchmarks length_scales`: where three bounds find the length scale of waveform.

Type-II maximum likelihood of the Bayesian SVM (the bound of its augmented pseudo-likelihood), of the
logistic-softmax GP (an augmented bound of a likelihood that sums to one) and of the softmax GP (no
augmentation), each with few and with many inducing points; in units of the pool's median distance, with
error and Brier score on 500 rows that were left out.
"""

from __future__ import annotations

import argparse

import numpy as np

BOUNDS = {
    "Bayesian SVM": ("bayesian-svm", {"batch_size": None}, (50, 100, 200, 400)),
    "logistic-softmax": ("logistic-softmax", {}, (100, 400)),
    "softmax": ("svgp-softmax", {}, (100, 400)),
}
LEFT_OUT = 500


def main(arguments: list[str] | None = None) -> None:
    from workbench.classifiers import make_classifier
    from workbench.pools import load_pool

    parser = argparse.ArgumentParser(prog="python -m benchmarks length_scales", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    given = parser.parse_args(arguments)
    pool = load_pool("raetsch:waveform")
    assert pool.truth is not None
    order = np.random.default_rng(0).permutation(len(pool))[: given.rows]
    X, codes = np.asarray(pool.features[np.sort(order)]), pool.truth[np.sort(order)]
    rows = np.random.default_rng(1).permutation(len(X))
    learnt, left = rows[LEFT_OUT:], rows[:LEFT_OUT]
    for name, (classifier, options, points) in BOUNDS.items():
        for n in points:
            model = make_classifier(
                classifier, classes=[0, 1], random_state=0, n_inducing=n, hyperparameters="learned", **options
            )
            model.fit(X[learnt], codes[learnt])
            p = model.predict_proba(X[left])[:, 1]
            factor = float(np.mean(np.asarray(model.length_scale_))) / float(model.geometry_.length_scale)
            print(
                f"{name}, {n} points: {factor:.2f} times the median distance, "
                f"Brier {np.mean((p - codes[left]) ** 2):.4f}, error {np.mean((p > 0.5) != codes[left]):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
