"""Cards: all that is needed to show one question or check, as JSON."""

from __future__ import annotations

import base64
import heapq
import io
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.access import current
from workbench.app.serving import explanations
from workbench.app.serving.caching import kept
from workbench.app.words.text import NOTHING, plain, plural, role_words
from workbench.arrays import Array
from workbench.errors import InputError
from workbench.figures.theme import CATEGORICAL
from workbench.guesses import columns_of
from workbench.pools.cells import BLANKS
from workbench.pools.images.photos import PhotoItems
from workbench.pools.model_input import model_input_of
from workbench.pools.tables.uses import LONG_TEXT
from workbench.sessions import Ask, Session
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.finish_state import FinishState
from workbench.sessions.guessing import FEW, said_of, source_words, weight_words

if TYPE_CHECKING:
    from workbench.pools import Pool

BLIND = frozenset({"evaluation", "second", "overlap", "check"})
"""Roles of questions that show nothing of the model: to measure on, or labels that are to agree unled."""
INLINE = 6_000  # bytes of a picture that travel in the card
SMALL = 96  # pixels a side: enlarged without blur
SHOWN = 1400  # pixels a side of a photo on the stage; the whole of it is fetched when it is enlarged
SURE = 0.8  # probability below which the class of one question among several is marked
_GUESSES = 5
_LISTED = 9
_NEAR = 5
_DIFFERING = 3  # columns
_BESIDE = 24  # characters of a value that are said again beside another one; a text stands on the stage
_TILE_ROWS = 6  # columns of a row among many
_PLANE = 800  # points
_MOST_ROWS = 400  # columns of an item that are shown
_HERE = "\0"  # in the place of a picture's address


def card(sessions: Sequence[Session], of: ItemAsk, picture: str) -> dict[str, Any]:
    """An item with its open questions, its reason and what the models think.

    Args:
        sessions: of the questions that are asked, of the person it is for.
        of: the item with what is asked about it.
        picture: address of pictures, with {item} in it.

    Returns:
        A JSON document; the component draws it without asking further.
    """
    by_name = {session.question_name: session for session in sessions}
    name = next((n for n, ask in of.asks.items() if ask.role != "together"), next(iter(of.asks)))
    session, ask = by_name[name], of.asks[name]
    why = _why(explanations.why(session, ask))
    document: dict[str, Any] = {
        "ask": next(iter(of.asks.values())).id,
        "item": ask.item,
        "id": str(session.pool.items.ids[ask.item]),
        "role": ask.role,
        "badge": role_words(ask.role, "badge"),
        "why": why if len(sessions) == 1 else f"{name}: {why}",
        "face": face(session.pool, ask.item, picture),
        "flag": ask.item in session.state.flagged,
        "notes": [[note.annotator, note.text] for note in session.state.notes.get(ask.item, ())],
    }
    if "rows" in document["face"]:
        # the column that names the item is its title already
        hidden_columns = _naming(session.pool) | _guessed(session)
        hidden_columns |= session.checks.hidden_columns() if ask.check else frozenset()
        document["face"]["rows"] = [row for row in document["face"]["rows"] if row[0] not in hidden_columns]
    if session.pool.n_features == 2:
        document["at"] = _on_plane(session.pool)[ask.item].tolist()
    if len(sessions) == 1:
        document["twins"] = len(session.queue.twins(ask.item))
        return document | _opinion(session, ask, picture) | {"questions": [{"name": name}]}
    document["questions"] = [
        {"name": n} | _guess(by_name[n], question_ask) for n, question_ask in of.asks.items()
    ]
    if any("guess" in about for about in document["questions"]):
        for about in document["questions"]:
            if by_name[about["name"]].model is None:
                about["new"] = True  # beside others that stand at a guess it stands at none
    return document


def _guess(session: Session, ask: Ask) -> dict[str, Any]:
    """The likeliest class of one question among several; nothing where the model is not to be seen."""
    predictions = predicted(session, ask)
    if not predictions:
        return {}
    name, p = predictions[0]
    return {"guess": [[name, round(p, 3)]], "unsure": p < SURE}


def predicted(session: Session, ask: Ask) -> list[tuple[str, float]]:
    """Classes of an item with their probabilities, the likeliest first; none where that is not to be seen."""
    if session.model is None or ask.role in BLIND:
        return []
    return sorted(session.predictions.of(ask.item).items(), key=lambda pair: -pair[1])


def _opinion(session: Session, ask: Ask, picture: str) -> dict[str, Any]:
    """All that the model of a question says of an item, and the labelled items it is near to."""
    model, foretold = session.model, predicted(session, ask)
    if model is None or not foretold:
        return {}
    # whole per cents, rounded as the sentence above them is: the two say one number
    document: dict[str, Any] = {"guess": [[name, round(100 * p) / 100] for name, p in foretold[:_GUESSES]]}
    document["guess_order"] = [name for name, _ in foretold[:_LISTED]]
    if model.mean is not None:
        said_now = said_of(session.guesses.now(), ask.item, model, session.fits.fitted_with)
        document["early"] = model.n_labelled < FEW
        document["sources"] = [
            [source_words(source), name, weight_words(weight, model.n_labelled)]
            for source, name, weight in said_now
        ]
        document["differs"] = _disagreement(said_now, foretold[0][0], model.n_labelled)
    classes = session.classes
    near = explanations.nearest_labelled(session, ask.item, _NEAR)
    faces = neighbour_faces(session.pool, [item for item, _, _ in near], ask.item, picture)
    document["near"] = [
        {"face": neighbour, "class": classes[code]}
        for neighbour, (_, code, _) in zip(faces, near, strict=True)
    ]
    return document


def _disagreement(statements: Sequence[tuple[str, str, float]], predicted: str, n_labelled: int) -> str:
    """A sentence where a source that counts says another class than the model does.

    While labels are too few to judge the sources each of them counts.
    """
    few = n_labelled < FEW
    objections = [
        (source, name) for source, name, weight in statements if name != predicted and (few or weight > 0)
    ]
    if not objections:
        return ""
    source, name = objections[0]
    words = source_words(source)
    words = f"{words[0].upper()}{words[1:]} {'say' if source == 'names' else 'says'} {name}"
    if not few:
        return f"{words}; {n_labelled:,} labels say {predicted}."
    if n_labelled:
        return f"{words}; together with {plural(n_labelled, 'label')} so far {predicted} is likelier."
    return f"{words}; all that it began with, taken together, makes {predicted} likelier."


def _guessed(session: Session) -> frozenset[str]:
    """Columns that a guess of the project reads: what they say is beside the item, where it can be hidden."""
    sources = [str(guess["source"]) for guess in session.settings.get("guesses") or ()]
    if not sources:
        return frozenset()
    names = list(map(str, session.pool.items.show(0).row or {}))
    return frozenset(name for source in sources for name in columns_of(source, names))


def _why(reason: explanations.Reason) -> str:
    if not reason.rank:
        return reason.words
    place = "The most wanted" if reason.rank == 1 else f"Number {reason.rank:,}"
    if reason.n_drawn:
        return f"{reason.words} {place} of {reason.n_drawn:,} drawn from {reason.n_open:,} open items."
    return f"{reason.words} {place} of {reason.n_open:,} open items."


def face(pool: Pool, item: int, picture: str) -> dict[str, Any]:
    """Look of an item: a picture, a text, or its row with each value's place in the pool.

    It is made once for all who look at it; the address of its picture is of whoever asks.

    Args:
        pool: it belongs to.
        item: its index.
        picture: address of pictures, with {item} in it.
    """
    document = _face(pool, item)
    src = picture.format(item=item)
    return document | {
        name: document[name].replace(_HERE, src) for name in ("src", "large") if name in document
    }


@kept
def _face(pool: Pool, item: int) -> dict[str, Any]:
    src = _HERE
    # where its folder is a class, the path would give the answer away
    document: dict[str, Any] = {
        "kind": "image",
        "alt": f"Item {str(pool.items.ids[item]).rpartition('/')[2]}",
    }
    if isinstance(pool.items, PhotoItems) and (longest := pool.items.photos.longest(item)) > SMALL:
        # a photo of many pixels is decoded when the browser asks for it, at the size it asks for
        document |= {"small": False, "src": src}
        return document if longest <= SHOWN else document | {"src": f"{src}&side={SHOWN}", "large": src}
    view = pool.items.show(item)
    if view.kind == "image" and view.image is not None:
        height, width = view.image.shape[:2]
        document["small"] = max(height, width) <= SMALL
        if document["small"]:
            octets = encoded(view.image, "PNG")
            if len(octets) <= INLINE:
                return document | {"src": "data:image/png;base64," + base64.b64encode(octets).decode()}
        if max(height, width) <= SHOWN:
            return document | {"src": src}
        return document | {"src": f"{src}&side={SHOWN}", "large": src}
    if view.text is not None:
        return {"kind": "text", "text": view.text} | _beside(_cells(pool, item))
    if column := item_text(pool):
        cells = _cells(pool, item)
        return {"kind": "text", "text": cells[column]} | _beside(
            {name: cell for name, cell in cells.items() if name != column}
        )
    row, places = _cells(pool, item), _places(pool, item)
    # an empty cell has no place among the others: what the model takes in its stead is not the item's
    rows = [[name, v, None if v in BLANKS else places.get(name)] for name, v in row.items()]
    return {"kind": "row"} | _shortened(rows)


def _beside(cells: Mapping[str, str]) -> dict[str, Any]:
    """The columns that stand small below a text; {} for none."""
    return _shortened([[name, cell, None] for name, cell in cells.items()]) if cells else {}


def _shortened(rows: list[list[Any]]) -> dict[str, Any]:
    """The first rows and how many more there are: nobody reads 5,000, which take seconds on their way."""
    more = {"more": len(rows) - _MOST_ROWS} if len(rows) > _MOST_ROWS else {}
    return {"rows": rows[:_MOST_ROWS], **more}


def _alone(face: dict[str, Any]) -> dict[str, Any]:
    """A text without the columns beside it, to stand among many."""
    if face["kind"] != "text":
        return face
    return {name: value for name, value in face.items() if name not in ("rows", "more")}


@kept
def item_text(pool: Pool) -> str:
    """The column of a table whose text is what people read first: it has the most words; "" for none."""
    columns = [name for name, use in (pool.uses or {}).items() if use["use"] == "text"]
    if pool.kind != "table" or not columns:
        return ""
    rows = [pool.items.show(i).row or {} for i in range(0, len(pool), max(1, len(pool) // 200))]
    words = {
        name: float(np.median([len(plain(row.get(name, "")).split()) for row in rows])) for name in columns
    }
    text_column = max(words, key=words.__getitem__)
    return text_column if words[text_column] >= LONG_TEXT else ""


def model_input(pool: Pool, item: int) -> dict[str, Any]:
    """Item as the model sees it: words, the copy of a picture (src), the terms of a text.

    Raises:
        InputError: there is no such item.
    """
    if not 0 <= item < len(pool):
        raise InputError(f"There is no item {item}.")
    model_view = model_input_of(pool, item)
    if model_view is None:
        return {"words": "The values that are shown.", "terms": []}
    document: dict[str, Any] = {"words": model_view.words, "terms": [list(term) for term in model_view.terms]}
    if model_view.image is not None and max(model_view.image.shape[:2]) <= SMALL:
        document["src"] = "data:image/png;base64," + base64.b64encode(encoded(model_view.image)).decode()
    return document


def thumbnail_face(pool: Pool, item: int, picture: str) -> dict[str, Any]:
    """Look of an item among many: a small picture and the whole one where it is enlarged, a short row."""
    document = face(pool, item, picture)
    if document["kind"] == "row":
        used_columns = _used(pool)
        rows = sorted(document["rows"], key=lambda row: row[0] not in used_columns)
        # one column too many takes no more room than the words that say so
        few = rows if len(rows) <= _TILE_ROWS + 1 else rows[:_TILE_ROWS]
        return document | {"rows": few, "more": len(rows) - len(few) + document.get("more", 0)}
    if document["kind"] == "text":
        return _alone(document)
    if document["kind"] == "image" and not str(document["src"]).startswith("data:"):
        return document | {
            "src": f"{picture.format(item=item)}&side={2 * SMALL}",
            "large": picture.format(item=item),
        }
    return document


def neighbour_faces(pool: Pool, items: Sequence[int], shown: int, picture: str) -> list[dict[str, Any]]:
    """Look of items next to the one that is shown: of rows the cells that differ most.

    Args:
        pool: of all.
        items: those beside it.
        shown: the one that is asked about.
        picture: address of pictures.
    """
    if pool.kind != "table":
        faces = [(item, _alone(face(pool, item, picture))) for item in items]
        return [
            document | ({"src": f"{picture.format(item=item)}&side={SMALL}"} if "large" in document else {})
            for item, document in faces
        ]
    # once for all of them: there may be thousands of columns
    shown_cells, at, used_columns = _cells(pool, shown), _places(pool, shown), _used(pool)

    def beside(item: int) -> dict[str, Any]:
        cells, places = _cells(pool, item), _places(pool, item)
        # what the model does not look at, such as a number of the customer, differs without a meaning
        names = [
            name
            for name, value in cells.items()
            if name in used_columns and value != shown_cells.get(name, "")
        ]

        def apart(name: str) -> float:
            if cells[name] in BLANKS or shown_cells.get(name, "") in BLANKS or name not in places:
                return 1.0
            return abs(places[name] - at[name])

        def here(name: str) -> str:
            cell = shown_cells.get(name, "")
            return f" (here {cell or NOTHING})" if len(cell) <= _BESIDE else ""

        # of columns that are equally far apart the first
        columns = heapq.nsmallest(_DIFFERING, names, key=lambda name: -apart(name))
        rows = [[n, (cells[n] or NOTHING) + here(n), None] for n in columns]
        return {"kind": "row", "rows": rows, "same": len(cells) - len(names)}

    return [beside(item) for item in items]


def plane(session: Session) -> dict[str, Any] | None:
    """The points of a pool of two features: a sample of all, and the labelled ones with their codes."""
    pool = session.pool
    if pool.n_features != 2:
        return None
    points = _on_plane(pool)
    codes = session.state.codes
    return {
        "points": points[:: max(1, len(points) // _PLANE)].tolist(),
        "labelled": [[*points[item].tolist(), code] for item, code in codes.items()],
        "colours": list(CATEGORICAL),
    }


@kept
def _on_plane(pool: Pool) -> Array:
    """[N, 2] features between 0 and 1."""
    X = np.asarray(pool.features, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.round((X - low) / np.where(high > low, high - low, 1.0), 4)


def encoded(image: Array, form: str = "PNG", side: int = 0) -> bytes:
    """A picture [H, W(, 3)] as the bytes of a file.

    Args:
        image: in 0..255 or 0..1.
        form: "PNG" or "JPEG".
        side: pixels of its longer side, at most; 0 for all.
    """
    from PIL import Image

    values = np.asarray(image)
    if values.dtype.kind == "f":
        top = 255.0 if values.max(initial=0.0) <= 1.0 else 255.0 / float(values.max())
        values = np.clip(values * top, 0, 255)
    out = io.BytesIO()
    picture = Image.fromarray(values.astype(np.uint8))
    if side and max(picture.size) > side:
        picture.thumbnail((side, side), reducing_gap=2.0)
    picture.save(out, form, **({"quality": 92} if form == "JPEG" else {}))
    return out.getvalue()


@kept
def _cells(pool: Pool, item: int) -> dict[str, str]:
    """Column -> cell of a row, as people write it."""
    row = pool.items.show(item).row or {}
    return {str(name): plain(value) for name, value in row.items()}


@kept
def _used(pool: Pool) -> frozenset[str]:
    """Columns the model looks at; all of them where the pool does not say."""
    sources = getattr(pool.feature_map, "sources", None) or dict(pool.items.show(0).row or {})
    return frozenset(map(str, sources))


@kept
def _naming(pool: Pool) -> frozenset[str]:
    """Columns that hold the items' ids and nothing else, and that the model does not look at."""
    sample = range(0, len(pool), max(1, len(pool) // 20))
    ids = [str(pool.items.ids[i]) for i in sample]
    rows = [pool.items.show(i).row or {} for i in sample]
    names = set(map(str, rows[0])) - _used(pool)
    return frozenset(
        n for n in names if all(plain(row.get(n)) == id_ for id_, row in zip(ids, rows, strict=True))
    )


@kept
def _places(pool: Pool, item: int) -> dict[str, float]:
    """Column -> share of the pool with a smaller value; ties count half."""
    names = pool.feature_map.columns
    if len(names) > 400:
        return {}
    ranked = _sorted(pool)
    values = np.asarray(pool.features[item], dtype=np.float64)
    # NumPy's own search lets other threads in, which is waited for in each column
    low = list(map(bisect_left, ranked, values))
    high = list(map(bisect_right, ranked, values))
    n = len(ranked[0]) if len(ranked) else 1
    return {name: round((a + b) / (2 * n), 3) for name, a, b in zip(names, low, high, strict=True)}


@kept
def _sorted(pool: Pool) -> list[Array]:
    """Each column's values of at most 20,000 rows, sorted."""
    step = max(1, len(pool) // 20_000)
    return list(np.sort(np.asarray(pool.features[::step], dtype=np.float64), axis=0).T)


def picture(project: str, item: int, side: int = 0) -> tuple[bytes, str]:
    """A picture's bytes and media type.

    Args:
        project: id of the project.
        item: index into the pool.
        side: pixels of its longer side, at most; 0 for all.

    Raises:
        InputError: there is no such picture.
    """
    pool = current.opened(project).pool
    inside = 0 <= item < len(pool)
    if inside and side and isinstance(pool.items, PhotoItems) and pool.items.photos.longest(item) > side:
        return encoded(pool.items.photos.brought(side=side)[item], "JPEG"), "image/jpeg"
    view = pool.items.show(item) if inside else None
    if view is None or view.image is None:
        raise InputError(f"There is no picture of item {item}.")
    form = "PNG" if view.image.size <= 200_000 else "JPEG"
    return encoded(view.image, form, side), f"image/{form.lower()}"


def picture_told(project: str, name: str) -> tuple[bytes, str]:
    """A picture of the instructions: its bytes and media type.

    Args:
        project: id of the project.
        name: that it is kept under.

    Raises:
        InputError: there is no such picture.
    """
    picture = current.opened(project).instructions.picture(name)
    return picture.data, picture.media


CHECK_MODE = "check"
_POINTS = 160  # of the curve that are sent


def check_cards(session: Session, now: FinishState | None, n: int, on: bool) -> list[Ask]:
    """The checks a browser holds: none where nothing is left to find out.

    Args:
        session: of the person.
        now: what the checks say.
        n: how many.
        on: whether the person goes on although it is decided.
    """
    if not n or now is None or now.phase == "void" or (now.phase != "checking" and not on):
        return []
    try:
        return session.checks.ask(n)
    except InputError:  # merged, or started anew, in between
        return []


def check_figures(now: FinishState | None) -> dict[str, Any]:
    """Content of the panel, as JSON."""
    if now is None:
        return {"phase": "none"}
    curve = list(enumerate(now.curve))
    step = max(1, len(curve) // _POINTS)
    wrong = now.evidence.within(now.size).nonzero()[0] + 1
    surest = "" if now.size == now.frozen.size else f"surest {now.size:,} of "
    return {
        "phase": now.phase,
        "checks": now.checks,
        "wrong": now.wrong,
        "to_go": "" if now.to_go is None else now.to_go_words,
        "ahead": None if now.to_go is None else now.to_go[0],
        "size": now.size,
        "error": now.promise.error,
        "words": now.promise.words(
            f"the {surest}{now.frozen.size:,} labels", now.bound if now.checks else None
        ),
        "second_looks": now.second_looks.made,
        "disagreed": now.second_looks.disagreed,
        "curve": [[t, round(p, 5)] for t, p in (*curve[:-1:step], curve[-1])],
        "wrongs": wrong.tolist(),
        "later": now.evidence.later,
        "unchecked": now.frozen.size - now.evidence.checks - now.evidence.later,
    }
