"""`python -m benchmarks opinions`: a new item or a second opinion, at equal answers.

Ten people label digits in one project, one after the other. Items are asked about once, or a share of them
(drawn uniformly) by three people, or any by up to five where one more answer is worth more than a new item.
All their answers count alike. Printed are the error of the model on test items and of the labels that it
learnt from, after so many answers, and the share of labelled items that several people answered.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np

PEOPLE = 10
WAYS = {
    "once": {},
    "0.2 by three": {"overlap": 0.2, "people": 3},
    "0.5 by three": {"overlap": 0.5, "people": 3},
    "where worth most": {"overlap": "worth", "people": 5},
}
ACCURACIES = (0.97, 0.9, 0.75, 0.6)
EVERY = 20  # answers between fits


def one(accuracy: float, way: str, seed: int, answers: int) -> dict[str, float]:
    """One project labelled by people of one accuracy.

    Args:
        accuracy: the chance that an answer is right; the others are spread over the other classes.
        way: a key of `WAYS`.
        seed: of people, questions and model.
        answers: of all people together.

    Returns:
        Errors of the model and of what it learnt, and the share of items that several labelled.
    """
    from workbench.sessions import Session
    from workbench.sessions.people import training_of

    rng = np.random.default_rng([seed, int(100 * accuracy)])
    first = Session.create(
        "digits",
        classifier="logistic-regression",
        policy="margin",
        seed=seed,
        annotator="person 0",
        **WAYS[way],
    )
    people = [Session.open(first.id, pool=first.pool, annotator=f"person {j}") for j in range(PEOPLE)]
    truth, names = first.pool.truth, first.pool.classes
    for place in range(answers):
        mine = people[place % PEOPLE]
        (ask,) = mine.ask(1)
        wrong = int(rng.integers(1, len(names))) * int(rng.random() > accuracy)
        mine.tell(ask, names[(int(truth[ask.item]) + wrong) % len(names)])
        if (place + 1) % EVERY == 0:
            first.refit()
    state, model, test = first.state, first.model, first.pool.test
    assert model is not None and test is not None
    learnt = training_of(state)
    codes = np.array([[item, code] for item, code in learnt.items()])
    known = [names.index(name) for name in state.classes]
    said = np.array(known)[model.probabilities[test.test].argmax(axis=1)]
    return {
        "error": float(np.mean(said != truth[test.test])),
        "labels": float(np.mean(np.array(known)[codes[:, 1]] != truth[codes[:, 0]])),
        "several": float(np.mean([len(votes) > 1 for votes in state.votes.values()])),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks opinions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=600)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["WORKBENCH_HOME"] = home
        for accuracy in ACCURACIES:
            for way in WAYS:
                runs = [one(accuracy, way, seed, given.answers) for seed in range(given.seeds)]
                mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
                rows.append({"accuracy": accuracy, "way": way, "seeds": given.seeds} | mean)
                print(
                    f"right in {accuracy:.0%} of answers, {way}: error {mean['error']:.3f}, labels learnt "
                    f"{mean['labels']:.3f} wrong, {mean['several']:.0%} of items by several",
                    flush=True,
                )
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
