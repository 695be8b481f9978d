"""`python -m benchmarks questions`: what twenty switches cost against one, and how wrong they are.

Texts made here, each about up to three of twenty things, with a yes / no question for each thing. Processor
time of the fits of all questions after the same labels, beside one question's; then the errors on the items
that nobody looked at, after some that were looked at with all questions at once; then how many answers, and
how many looks at an item, it takes until every question is wrong about few of the items it has no answer of,
asked together or one question after the other. `--chains` tells what a question gains that sees the answers
to those before it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, hamming_loss, zero_one_loss

THINGS = (
    *("lamp", "chair", "shelf", "mirror", "table", "carpet", "sofa", "drawer", "curtain", "cushion"),
    *("vase", "clock", "basket", "bench", "stool", "desk", "bed", "frame", "plant", "rug"),
)


FEW, MOST_WRONG = 5, 0.02


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
        path,
        pool_options={"columns": {"text": "text"}},
        questions=list(THINGS[:n]),
        store=store,
        annotator="ann",
        classifier=classifier,
        policy="margin",
        evaluation_share=0.0,
        uniform_share=0.0,
        twins=False,
        guess=(),
    )
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
            if one.model is not None:  # without one all its answers were no so far
                yes = list(one.model.classes).index("yes")
                said[:, q] = one.model.predict_proba(left).argmax(axis=1) == yes
        store.close()
    truth = about[left][:, :n]
    return {
        "hamming": hamming_loss(truth, said),
        "subset": zero_one_loss(truth, said),
        "macro F1": f1_score(truth, said, average="macro", zero_division=np.nan),
    }


REFIT, MOST_LOOKS = 10, 300


def wrong(session: Any, truth: np.ndarray) -> float:
    """Of the items that a question has no answer of, how many its model is wrong about."""
    if session.model is None:
        return 1.0
    left = np.array([i for i in range(len(truth)) if i not in session.state.standing])
    yes = list(session.model.classes).index("yes")
    return float(((session.model.predict_proba(left).argmax(axis=1) == yes) != truth[left]).mean())


def until_right(
    rows: list[str], about: np.ndarray, n: int, most_wrong: float, classifier: str, *, joint: bool
) -> tuple[int, int]:
    """Answers, and looks at an item, until each of n questions is wrong about few items at most."""
    truth = about.astype(bool)
    with tempfile.TemporaryDirectory() as place:
        session, store = begun(Path(place), rows, n, classifier)
        looks = 0
        if joint:
            while looks < MOST_LOOKS:
                [ask] = session.ask_items(1)
                session.tell(ask, {name: bool(truth[ask.item, THINGS.index(name)]) for name in ask.asks})
                looks += 1
                if looks % REFIT == 0:
                    session.refit_all()
                    errors = [wrong(one, truth[:, q]) for q, one in enumerate(session.asked())]
                    if max(errors) <= most_wrong:
                        break
        else:
            for q, one in enumerate(session.asked()):
                for step in range(1, MOST_LOOKS + 1):
                    [single] = one.ask(1)
                    one.tell(single, "yes" if truth[single.item, q] else "no")
                    looks += 1
                    if step % REFIT == 0:
                        one.refit()
                        if wrong(one, truth[:, q]) <= most_wrong:
                            break
        answers = sum(one.state.n_labelled for one in session.asked())
        store.close()
    return answers, looks


ATTRIBUTES = {"has a loop": "0689", "even": "02468", "over 4": "56789", "prime": "2357", "straight": "147"}
"""Yes / no questions about a handwritten digit -> the digits that are one."""


def answers_known(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """[N, D] features of unit scale, and [N, Q] answers to yes / no questions that belong together or not."""
    from workbench.pools import load_pool

    if name == "digits":
        pool = load_pool("digits")
        assert pool.truth is not None
        digit = np.array(pool.classes)[pool.truth]
        about = np.stack([np.isin(digit, list(digits)) for digits in ATTRIBUTES.values()], axis=1)
    else:
        rows, all_about = texts(800, np.random.default_rng(seed))
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "texts.csv"
            path.write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
            pool = load_pool(str(path), text_column="text")
        about = all_about[:, :8]
    X = np.asarray(pool.features, dtype=float)
    return X / X.std(), about.astype(int)


def chained(name: str, n: int, seed: int, classifier: str, *, chain: bool) -> float:
    """Hamming loss after n random labels; with a chain each question sees the answers to those before it.

    Of labelled items these are what was answered, of others what the models before say.
    """
    from workbench.classifiers import make_classifier

    X, about = answers_known(name, seed)
    order = np.random.default_rng([seed, n]).permutation(len(X))
    labelled, rest = order[:n], order[n : n + 600]
    earlier, wrong_ones = np.zeros((len(X), 0)), []
    for q in range(about.shape[1]):
        seen = np.hstack([X, earlier]) if chain else X
        y = about[labelled, q]
        p = np.full(len(rest), float(y[0]))
        if len(set(y.tolist())) > 1:
            model = make_classifier(classifier).fit(seen[labelled], y)
            p = model.predict_proba(seen[rest])[:, list(model.classes_).index(1)]
        wrong_ones.append(((p > 0.5) != about[rest, q]).mean())
        said = np.zeros(len(X))
        said[labelled], said[rest] = 2 * y - 1, 2 * p - 1
        earlier = np.hstack([earlier, said[:, None]])
    return float(np.mean(wrong_ones))


def chains(seeds: int, classifier: str) -> None:
    """Print Hamming losses without and with a chain."""
    for name, words in (("digits", f"{len(ATTRIBUTES)} attributes of digits"), ("texts", "8 tags of texts")):
        for n in (50, 100, 200):
            without, with_one = (
                [chained(name, n, seed, classifier, chain=chain) for seed in range(seeds)]
                for chain in (False, True)
            )
            better = sum(a < b for a, b in zip(with_one, without, strict=True))
            print(
                f"{words}, {n} labels: without a chain {np.mean(without):.4f}, with one "
                f"{np.mean(with_one):.4f} (better in {better} of {seeds})",
                flush=True,
            )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks questions", description=__doc__)
    parser.add_argument("--classifier", default="large-margin")
    parser.add_argument("--items", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--labelled", type=int, default=100)
    parser.add_argument("--chains", action="store_true", help="only what earlier answers are worth")
    given = parser.parse_args(arguments)
    if given.chains:
        chains(given.seeds, given.classifier)
        return
    rows, about = texts(given.items, np.random.default_rng(0))
    cost(rows, about, 2, given.labelled, given.classifier)  # traces
    one = cost(rows, about, 1, given.labelled, given.classifier)
    twenty = cost(rows, about, len(THINGS), given.labelled, given.classifier)
    print(
        f"fits of 1 question {one:.2f} s, of {len(THINGS)} {twenty:.2f} s: {twenty / one:.1f} times",
        flush=True,
    )
    pools = [texts(given.items, np.random.default_rng(seed)) for seed in range(given.seeds)]
    for looks in (50, 100):
        each = [errors(*pool, len(THINGS), looks, given.classifier) for pool in pools]
        said = ", ".join(
            f"{name} {np.mean(some):.3f} ({min(some):.3f} to {max(some):.3f})"
            for name in each[0]
            for some in [[one[name] for one in each]]
        )
        print(f"after {looks} items with {len(THINGS)} switches each: {said}", flush=True)
    for way, joint in (("asked together", True), ("one question after the other", False)):
        counts = [until_right(*pool, FEW, MOST_WRONG, given.classifier, joint=joint) for pool in pools]
        answers, looked = (", ".join(str(one[part]) for one in counts) for part in (0, 1))
        print(
            f"{FEW} switches, each wrong about {MOST_WRONG:.0%} at most, {way}: {answers} answers, "
            f"{looked} looks at an item",
            flush=True,
        )


if __name__ == "__main__":
    main()
