"""Projects on files that were made here: what a person brings, and what is at the edge of it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

THINGS = ("lamp", "chair", "shelf", "a tall mirror with a frame of oiled walnut")
MOODS = ("complaint", "praise", "a question that somebody ought to answer today")
ENDS = ("came late", "is fine", "is broken")


def table(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Numbers, a date, a category, a sentence; gaps, and one class with a long name."""
    rng = np.random.default_rng(0)
    lines = ["age,joined,plan,comment,label"]
    for i in range(160):
        mood = int(rng.integers(3))
        age = "" if i == 3 else f"{rng.normal(30 + 9 * mood, 6):.1f}"
        plan = ("basic", "plus", "")[int(rng.integers(3))]
        verb = ("came late", "is fine", "is it still on its way")[mood]
        lines.append(f"{age},2024-03-{1 + i % 28:02},{plan},The {THINGS[i % 4]} {verb},{MOODS[mood]}")
    return _written(folder / "Orders of the spring, as exported by the shop on Monday.csv", lines), {
        "target": "label",
        "columns": "auto",
    }


def texts(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Sentences, and no truth."""
    rng = np.random.default_rng(1)
    lines = [
        f"The {THINGS[rng.integers(4)]} of order {i} {ENDS[rng.integers(3)]}"
        + (
            ", and I would like to know what you mean to do about it before the end of the week."
            * (i % 9 == 0)
        )
        for i in range(120)
    ]
    return _written(folder / "letters.txt", lines), {}


def photos(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Coloured pictures in a folder a class."""
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(2)
    path = folder / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(90):
            kind = ("discs", "squares", "stripes")[i % 3]
            picture = Image.new("RGB", (96, 64), tuple(int(v) for v in rng.integers(150, 255, 3)))
            pen = ImageDraw.Draw(picture)
            x, y, size = (int(v) for v in rng.integers((5, 5, 18), (55, 30, 34)))
            ink = tuple(int(v) for v in rng.integers(0, 110, 3))
            if kind == "discs":
                pen.ellipse((x, y, x + size, y + size), fill=ink)
            elif kind == "squares":
                pen.rectangle((x, y, x + size, y + size), fill=ink)
            else:
                for line in range(0, 96, 12):
                    pen.line((line, 0, line + x - 25, 64), fill=ink, width=4)
            held = io.BytesIO()
            picture.save(held, "PNG")
            archive.writestr(f"{kind}/{i:03}.png", held.getvalue())
    return path, {}


def three(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Three rows."""
    return _written(folder / "three.csv", ["width,height,kind", "1,2,a", "3,1,b", "2,2,a"]), {
        "target": "kind",
        "columns": "auto",
    }


def one_feature(folder: Path) -> tuple[Path, dict[str, Any]]:
    """One column of numbers."""
    x = np.random.default_rng(3).normal(size=80)
    lines = ["x,kind", *(f"{v:.4f},{'high' if v > 0 else 'low'}" for v in x)]
    return _written(folder / "one.csv", lines), {"target": "kind", "columns": "auto"}


def identical(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Rows that are all the same, under two classes."""
    lines = ["a,b,c,kind", *(f"1,2,3,{('yes', 'no')[i % 2]}" for i in range(40))]
    columns = dict.fromkeys("abc", "number")
    return _written(folder / "identical.csv", lines), {"target": "kind", "columns": columns}


def wide(folder: Path) -> tuple[Path, dict[str, Any]]:
    """5,000 features."""
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 5_000))
    X[:, :40] += 1.2 * y[:, None]
    path = folder / "wide.npz"
    np.savez(path, X=X.astype(np.float32), y=y)
    return path, {}


def many_classes(folder: Path) -> tuple[Path, dict[str, Any]]:
    """200 classes."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(200), 3)
    X = rng.normal(size=(200, 4))[y] * 3 + rng.normal(size=(600, 4)) * 0.3
    lines = ["a,b,c,d,kind"]
    lines += [",".join([*(f"{v:.3f}" for v in row), f"species {c:03}"]) for row, c in zip(X, y, strict=True)]
    return _written(folder / "species.csv", lines), {"target": "kind", "columns": "auto"}


TOPICS = {
    "card": "my new card",
    "cash": "the cash machine",
    "transfer": "a transfer to a friend",
    "top_up": "the money that I added",
    "exchange": "the rate for dollars",
    "refund": "the refund of a shop",
    "identity": "my passport",
    "fee": "the fee on the statement",
}
TROUBLES = {
    "pending": ("is still pending", "has not come after a week"),
    "declined": ("was declined", "was refused again"),
    "wrong_amount": ("is not the right amount", "differs from what I was told"),
    "not_recognised": ("is nothing I know of", "cannot be mine"),
    "how_to": ("is where, and how do I start?", "works how?"),
}


def questions(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Questions to a bank, of forty intents, a quarter of them known."""
    rng = np.random.default_rng(6)
    starts = ("", "Hello, ", "Could you look, ", "Please help: ", "I wonder why ", "Again ")
    lines = ["text,intent"]
    for i in range(900):
        topic, trouble = (sorted(part)[rng.integers(len(part))] for part in (TOPICS, TROUBLES))
        said = TROUBLES[trouble][rng.integers(2)]
        sentence = f"{starts[rng.integers(len(starts))]}{TOPICS[topic]} {said}"
        lines.append(f'"{sentence[0].upper()}{sentence[1:]}",{f"{topic}_{trouble}" if i < 240 else ""}')
    return _written(folder / "questions.csv", lines), {"columns": {"intent": "class"}}


def digits_with_slips(store: Any) -> str:
    """A project on the digits with 120 labels, every tenth of them wrong; its id."""
    from workbench.sessions import Session

    made = Session.create("digits", name="digits", store=store)
    truth = made.pool.truth
    assert truth is not None
    for n, item in enumerate(np.random.default_rng(0).permutation(made.pool.trainable)[:120]):
        code = int(truth[item])
        made.items.label([int(item)], made.classes[(code + 3) % 10 if n % 10 == 0 else code])
    made.refit()
    return str(made.id)


KINDS: Mapping[str, tuple[Callable[[Path], tuple[Path, dict[str, Any]]], int, tuple[str, ...]]] = {
    "table": (table, 40, ()),
    "texts": (texts, 30, ("late", "fine", "broken")),
    "photos": (photos, 30, ()),
    "three": (three, 2, ()),
    "one-feature": (one_feature, 12, ()),
    "identical": (identical, 12, ()),
    "wide": (wide, 24, ()),
    "many-classes": (many_classes, 250, ()),
}
"""Name -> what writes the file, how many labels are given, and the classes where the file names none."""


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def project(name: str, folder: Path, store: Any, *, fit: bool = True) -> str:
    """A project of one kind, labelled and fitted.

    Args:
        name: one of `KINDS`, or "questions".
        folder: where its file is written; it must stay.
        store: it belongs to.
        fit: whether a model is fitted.

    Returns:
        Its id.
    """
    from workbench.sessions import Session

    write, n_labels, classes = (questions, 0, ()) if name == "questions" else KINDS[name]
    folder.mkdir(parents=True, exist_ok=True)
    path, given = write(folder)
    made = Session.create(str(path), name=path.stem, pool_options=given, classes=classes or None, store=store)
    truth = made.pool.truth
    for item in np.random.default_rng(0).permutation(made.pool.trainable)[:n_labels]:
        if truth is None:
            # what the sentence says
            named = next(i for i, word in enumerate(("late", "fine", "broken")) if word in _text(made, item))
        else:
            named = int(truth[item])
        made.items.label([int(item)], made.classes[named])
    if fit:
        made.refit()
    return str(made.id)


def _text(session: Any, item: int) -> str:
    return str(session.pool.items.show(int(item)).text)
