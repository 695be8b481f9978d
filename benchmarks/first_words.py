"""`python -m benchmarks first_words`: at which answer a project on own data says something.

Tables, texts and photos that were made here, without a column of classes; a person who answers rightly, with
the settings of the page; a fit after each answer, as for one who is not in a hurry.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np


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


def one(path: Path, truth: list[str], seed: int) -> dict[str, int]:
    """Answers until the first guess, the first interval and the first error."""
    from workbench.sessions import Session
    from workbench.sessions.operations import Operation
    from workbench.store import Store

    with tempfile.TemporaryDirectory() as home:
        store = Store.open(Path(home) / "a.sqlite")
        session = Session.create(path, store=store, seed=seed, annotator="ann", twins=False, guess=())
        found: dict[str, int] = {}
        for n in range(1, 121):
            [ask] = session.ask(1)
            answer = Operation(f"a{n}", "label", ask=ask.id, label=truth[ask.item], new=True)
            session.tell_many([answer])
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
            if len(found) == len(now):
                break
        store.close()
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks first_words", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        for name, (path, truth) in {"table": _table(Path(place)), "texts": _texts(Path(place))}.items():
            runs = [one(path, truth, seed) for seed in range(given.seeds)]
            for what in ("guess", "interval", "error"):
                at = sorted(run[what] for run in runs)
                print(f"{name}, first {what}: at answer {at[len(at) // 2]} ({at[0]} to {at[-1]})", flush=True)


if __name__ == "__main__":
    main()
