"""`python -m benchmarks twins`: what copies on both sides of a split do to the error that is told.

Digits, of which 200 items are in the pool twice, the copies with noise of one per cent. The copies are
found without a label. One model learns from the training part of a split that lets copies fall where they
may, and one from that of a split that keeps them together; both are also measured on the test items of
which no copy was learnt.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

COPIES = 200


def one(seed: int) -> dict[str, float]:
    """Errors told and true of both splits, and how many copies were found."""
    from workbench.classifiers import make_classifier
    from workbench.pools import load_pool
    from workbench.pools.neighbours.twins import twins_of

    digits = load_pool("digits")
    rng = np.random.default_rng(seed)
    again = rng.choice(len(digits), COPIES, replace=False)
    pictures = np.stack([digits.items.show(i).image for i in range(len(digits))])
    noise = rng.normal(0, 2.5, (COPIES, *pictures.shape[1:]))
    copies = np.clip(pictures[again] + noise, 0, 255).astype(np.uint8)
    pool = load_pool(np.concatenate([pictures, copies]))
    truth = np.concatenate([digits.truth, digits.truth[again]])
    pool = replace(pool, truth=truth, classes=digits.classes, test=None)
    twins = twins_of(pool)
    right = {tuple(pair) for pair in zip(again.tolist(), range(len(digits), len(pool)), strict=True)}
    found: dict[str, float] = {
        "groups": twins.n_groups,
        "right": len(right & set(twins.groups)),
    }
    for name, first in (("apart", None), ("together", twins.first)):
        split = pool.split(seed, 0.2, first)
        assert split.test is not None
        model = make_classifier("large-margin", classes=list(range(10)), choice="fixed", random_state=seed)
        model.fit(pool.features[split.test.train], truth[split.test.train])
        wrong = model.predict(pool.features[split.test.test]) != truth[split.test.test]
        learnt = set(twins.spread(split.test.train.tolist()))
        leaked = np.array([item in learnt for item in split.test.test.tolist()])
        found[f"{name}: leaked"] = int(leaked.sum())
        found[f"{name}: told"] = float(wrong.mean())
        found[f"{name}: without a copy"] = float(wrong[~leaked].mean())
        found[f"{name}: on copies of learnt items"] = (
            float(wrong[leaked].mean()) if leaked.any() else float("nan")
        )
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks twins", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    runs = [one(seed) for seed in range(given.seeds)]
    for name in runs[0]:
        values = np.array([run[name] for run in runs], dtype=float)
        shown = values[np.isfinite(values)]
        print(f"{name}: {shown.mean():.4f}" if shown.size else f"{name}: none", flush=True)
    if given.out:
        given.out.write_text(json.dumps(runs, indent=1))


if __name__ == "__main__":
    main()
