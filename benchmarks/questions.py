"""`python -m benchmarks questions`: what twenty switches cost against one, and how wrong they are.

Texts made here, each about up to three of twenty things, with a yes / no question for each thing. Processor
time of the fits of all questions after the same labels, beside one question's; then the errors on the items
that nobody looked at, after some that were looked at with all questions at once.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from workbench.metrics import hamming_loss, macro_f1_of_labels, subset_error

THINGS = (
    *("lamp", "chair", "shelf", "mirror", "table", "carpet", "sofa", "drawer", "curtain", "cushion"),
    *("vase", "clock", "basket", "bench", "stool", "desk", "bed", "frame", "plant", "rug"),
)


def texts(n: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """N texts and [n, 20] what each is about."""
    about = np.zeros((n, len(THINGS)), dtype=int)
    rows = []
    for i in range(n):
        some = rng.choice(len(THINGS), int(rng.integers(1, 4)), replace=False)
        about[i, some] = 1
        named = " and the ".join(THINGS[j] for j in some)
        rows.append(f"Order {i}: the {named} {rng.choice(['came late', 'is fine', 'is broken'])}.")
    return rows, about


def begun(folder: Path, rows: list[str], n: int, classifier: str):  # type: ignore[no-untyped-def]
    from workbench.sessions import Session
    from workbench.store import Store

    path = folder / "texts.csv"
    path.write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    store = Store.open(folder / f"{n}.sqlite")
    made = Session.create(
        path, pool_options={"columns": {"text": "text"}}, questions=list(THINGS[:n]), store=store,
        annotator="ann", classifier=classifier, policy="margin", evaluation_share=0.0, uniform_share=0.0,
        twins=False, guess=(),
    )  # fmt: skip
    return made, store


def cost(rows: list[str], about: np.ndarray, n: int, labelled: int, classifier: str) -> float:
    """Processor seconds of the second fit of n questions, after the same labels."""
    with tempfile.TemporaryDirectory() as place:
        session, store = begun(Path(place), rows, n, classifier)
        for upto in (labelled // 2, labelled):
            for item in range(len(session.state.standing), upto):
                for q, one in enumerate(session.asked()):
                    one.label_item(item, "yes" if about[item, q] else "no")
            began = time.process_time()
            session.refit_all()
            seconds = time.process_time() - began
        store.close()
    return seconds


def errors(rows: list[str], about: np.ndarray, n: int, looks: int, classifier: str) -> dict[str, float]:
    """Errors on items nobody saw, after so many items were looked at with all questions."""
    with tempfile.TemporaryDirectory() as place:
        session, store = begun(Path(place), rows, n, classifier)
        for look in range(looks):
            [ask] = session.ask_items(1)
            session.tell(ask, {THINGS[q]: bool(about[ask.item, q]) for q in range(n)})
            if look % 10 == 9:
                session.refit_all()
        left = np.array([i for i in range(len(rows)) if i not in session.state.standing])
        said = np.zeros((len(left), n), dtype=int)
        for q, one in enumerate(session.asked()):
            assert one.model is not None
            yes = list(one.model.classes).index("yes")
            said[:, q] = one.model.predict_proba(left).argmax(axis=1) == yes
        store.close()
    truth = about[left][:, :n]
    return {
        "hamming": hamming_loss(truth, said),
        "subset": subset_error(truth, said),
        "macro F1": macro_f1_of_labels(truth, said),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks questions", description=__doc__)
    parser.add_argument("--classifier", default="large-margin")
    parser.add_argument("--items", type=int, default=800)
    parser.add_argument("--labelled", type=int, default=100)
    given = parser.parse_args(arguments)
    rows, about = texts(given.items, np.random.default_rng(0))
    cost(rows, about, 2, given.labelled, given.classifier)  # traces
    one = cost(rows, about, 1, given.labelled, given.classifier)
    twenty = cost(rows, about, len(THINGS), given.labelled, given.classifier)
    print(
        f"fits of 1 question {one:.2f} s, of {len(THINGS)} {twenty:.2f} s: {twenty / one:.1f} times",
        flush=True,
    )
    for looks in (50, 100):
        found = errors(rows, about, len(THINGS), looks, given.classifier)
        said = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"after {looks} items with {len(THINGS)} switches each: {said}", flush=True)


if __name__ == "__main__":
    main()
