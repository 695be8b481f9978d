"""`python -m benchmarks first_words`: at which answer a project on own data says something.

Tables, texts and photos that were made here, without a column of classes; a person who answers rightly, with
the settings of the page; a fit after each answer, as for one who is not in a hurry.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.sessions.spec import EARLY_SHARE

if TYPE_CHECKING:
    from workbench.sessions import Session


def _table(folder: Path) -> tuple[Path, list[str]]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 4)) + 1.6 * np.eye(3, 4)[codes]
    path = folder / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d", comments="", fmt="%.4f")
    return path, [("low", "middle", "high")[c] for c in codes]


def _texts(folder: Path) -> tuple[Path, list[str]]:
    rng = np.random.default_rng(1)
    things = ("lamp", "chair", "shelf", "mirror", "table", "carpet")
    said = {
        "complaint": ("came late", "is broken", "has a scratch"),
        "praise": ("is lovely", "suits the room", "was worth it"),
    }
    rows = [
        (f"The {rng.choice(things)} of order {i} {rng.choice(said[mood])}", mood)
        for i, mood in enumerate(rng.choice(list(said), 400))
    ]
    path = folder / "texts.csv"
    path.write_text("text\n" + "\n".join(text for text, _ in rows) + "\n", encoding="utf-8")
    return path, [str(mood) for _, mood in rows]


AFTER = (40, 80, 120)
"""Answers after which the model is held against the truth of what is not labelled."""


def _error(session: Session, truth: list[str]) -> float:
    """Share of the items without a label that the model is wrong about; NaN before there is one."""
    if session.model is None:
        return float("nan")
    left = [i for i in range(len(truth)) if i not in session.state.labels]
    p = session.model.probabilities[left]
    named = [session.model.classes[c] for c in p.argmax(axis=1)]
    return float(np.mean([name != truth[i] for name, i in zip(named, left, strict=True)]))


def one(path: Path, truth: list[str], seed: int, early: float) -> tuple[dict[str, int], dict[int, float]]:
    """Answers until the first guess, the first interval and the first error; the error after `AFTER`."""
    from workbench.sessions import Session
    from workbench.sessions.operations import Operation
    from workbench.store import Store

    with tempfile.TemporaryDirectory() as home:
        store = Store.open(Path(home) / "a.sqlite")
        session = Session.create(
            path, store=store, seed=seed, annotator="ann", twins=False, guess=(), early_share=early
        )
        found: dict[str, int] = {}
        errors: dict[int, float] = {}
        for n in range(1, AFTER[-1] + 1):
            [ask] = session.ask(1)
            answer = Operation(f"a{n}", "label", ask=ask.id, label=truth[ask.item], new=True)
            session.apply([answer])
            if session.stale:
                session.refit()
            now = {
                "guess": session.model is not None,
                "interval": session.evaluation.hinted,
                "error": session.evaluation.enough,
            }
            for what, there in now.items():
                if there:
                    found.setdefault(what, n)
            if n in AFTER:
                errors[n] = _error(session, truth)
        store.close()
    return found, errors


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks first_words", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--early",
        type=float,
        default=EARLY_SHARE,
        help="share kept for measuring until 20 of them are answered",
    )
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        for name, (path, truth) in {"table": _table(Path(place)), "texts": _texts(Path(place))}.items():
            made = [one(path, truth, seed, given.early) for seed in range(given.seeds)]
            runs, errors = [run for run, _ in made], [error for _, error in made]
            for what in ("guess", "interval", "error"):
                at = sorted(run.get(what, AFTER[-1] + 1) for run in runs)
                print(f"{name}, first {what}: at answer {at[len(at) // 2]} ({at[0]} to {at[-1]})", flush=True)
            said = ", ".join(f"{np.mean([one[n] for one in errors]):.3f}" for n in AFTER)
            print(f"{name}, true error after {', '.join(map(str, AFTER))} answers: {said}", flush=True)


if __name__ == "__main__":
    main()
