"""`python -m benchmarks crowd`: consensus against majority on simulated crowds, at equal answers.

People of 70 to 95 % accuracy, who take some classes for others, and two spammers: one answers at random,
one always the same. Three people answer each item (all of them where fewer), drawn at random. The classifier
is cross-validated on the majority's labels.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from workbench.metrics.consensus import consensus, everybody, majority, worth_asking

CROWDS = (3, 10, 50)
EACH = 3
ITEMS = 600


def crowd(n_people: int, C: int, rng: np.random.Generator) -> np.ndarray:
    """[P + 2, C, C] confusions: people of 70 to 95 %, each with two classes they mix up, and two spammers."""
    made = []
    for accuracy in rng.uniform(0.7, 0.95, n_people):
        rows = np.full((C, C), (1 - accuracy) / (C - 1))
        np.fill_diagonal(rows, accuracy)
        a, b = rng.choice(C, 2, replace=False)
        rows[a, b] += 0.5 * (rows[a, a] - 1 / C)
        rows[a, a] -= 0.5 * (rows[a, a] - 1 / C)
        made.append(rows / rows.sum(axis=1, keepdims=True))
    made.append(np.full((C, C), 1 / C))
    same = np.full((C, C), 0.02 / (C - 1))
    same[:, int(rng.integers(C))] = 0.98
    made.append(same / same.sum(axis=1, keepdims=True))
    return np.stack(made)


def answer(confusions: np.ndarray, person: int, truth: int, rng: np.random.Generator) -> int:
    return int(rng.choice(len(confusions[0]), p=confusions[person, truth]))


def decided(votes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The majority's classes; ties by lot."""
    return np.argmax(votes + 1e-6 * rng.random(votes.shape), axis=1)


def cross_validated(X: np.ndarray, codes: np.ndarray, C: int, rng: np.random.Generator) -> np.ndarray:
    """[n, C] of a classifier that did not see the item's label; five folds."""
    from workbench.classifiers import make_classifier

    out = np.zeros((len(X), C))
    fold = rng.permutation(len(X)) % 5
    for k in range(5):
        inside = fold != k
        model = make_classifier("large-margin", classes=list(range(C)), choice="fixed", random_state=0)
        model.fit(X[inside], codes[inside])
        out[~inside] = model.predict_proba(X[~inside])
    return out


def one(pool: Any, n_people: int, seed: int) -> dict[str, float]:
    """Errors of each way to decide, for one crowd."""
    rng = np.random.default_rng([seed, n_people])
    C = len(pool.classes)
    rows = rng.permutation(len(pool))[:ITEMS]
    X, truth = np.asarray(pool.features[rows]), pool.truth[rows]
    people = crowd(n_people, C, rng)
    items, who, said = [], [], []
    for i, c in enumerate(truth.tolist()):
        for p in rng.choice(len(people), min(EACH, len(people)), replace=False).tolist():
            items.append(i)
            who.append(p)
            said.append(answer(people, p, c, rng))
    plain = decided(majority(items, said, C), rng)
    P = cross_validated(X, plain, C, rng)
    ours = consensus(items, who, said, C)
    both = consensus(items, who, said, C, P)
    errors = {
        "majority": float(np.mean(plain != truth)),
        "people": float(np.mean(ours.codes != truth)),
        "people and classifier": float(np.mean(both.codes != truth)),
        "classifier": float(np.mean(P.argmax(axis=1) != truth)),
    }
    return errors | again(people, truth, items, who, said, P, rng)


def again(
    people: np.ndarray,
    truth: np.ndarray,
    items: list[int],
    who: list[int],
    said: list[int],
    P: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, float]:
    """A third more answers: by lot, or where one more is worth most; decided by people and classifier."""
    C, more, errors = P.shape[1], len(truth), {}
    for name in ("one more by lot", "one more where worth most"):
        i, j, v = list(items), list(who), list(said)
        for _ in range(10):
            found = consensus(i, j, v, C, P)
            value = worth_asking(found.probabilities, everybody(found))
            if name == "one more by lot":
                value = rng.random(len(truth))
            for item in np.argsort(-value, kind="stable")[: more // 10].tolist():
                asked = {p for it, p in zip(i, j, strict=True) if it == item}
                left = [p for p in range(len(people)) if p not in asked]
                if not left:
                    continue
                p = int(rng.choice(left))
                i.append(item)
                j.append(p)
                v.append(answer(people, p, int(truth[item]), rng))
        found = consensus(i, j, v, C, P)
        errors[name] = float(np.mean(found.codes != truth))
    return errors


def main(arguments: list[str] | None = None) -> None:
    from workbench.pools import load_pool

    parser = argparse.ArgumentParser(prog="python -m benchmarks crowd", description=__doc__)
    parser.add_argument("--pools", nargs="+", default=["digits", "wine"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    rows = []
    for name in given.pools:
        pool = load_pool(name)
        for n_people in CROWDS:
            found = [one(pool, n_people, seed) for seed in range(given.seeds)]
            mean = {side: float(np.mean([f[side] for f in found])) for side in found[0]}
            rows.append({"pool": name, "people": n_people, "spammers": 2, "seeds": given.seeds} | mean)
            ratio = mean["people and classifier"] / max(mean["majority"], 1e-9)
            print(
                f"{name}, {n_people} people and 2 spammers: "
                + ", ".join(f"{side} {value:.4f}" for side, value in mean.items())
                + f"; consensus / majority {ratio:.2f}",
                flush=True,
            )
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
