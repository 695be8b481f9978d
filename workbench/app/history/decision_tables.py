"""Decisions as the History page shows them: rows of a table, cards of a gallery, disagreements."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.app.history.decisions import LABELLED, SKIPPED, UNSURE, WHY, Decision, Opinion
from workbench.app.words.text import NOTHING, plain
from workbench.short_names import short_names

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.sessions import ProjectState

SIDE = 56  # pixels of a small picture
_SUMMARY = 160  # characters
_COLUMNS = 6
_NAME = 24  # characters of a column's name: what is in it is worth more
_PICTURES: OrderedDict[tuple[str, int], str] = OrderedDict()
_KEPT = 4000


def summary(pool: Pool, item: int) -> str:
    """A text or row in one line; "" for an image."""
    shown = pool.items.show(item)
    if shown.text is not None:
        line = " ".join(shown.text.split())
    elif shown.row is not None:
        # the text is what people know an item by
        from workbench.app.desk.cards import item_text

        first = item_text(pool)
        cells = sorted(shown.row.items(), key=lambda cell: cell[0] != first)
        if first:
            line = " ".join(plain(cells[0][1]).split())
            return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1].rstrip() + "…"
        names = short_names([name for name, _ in cells], _NAME)
        line = " · ".join(
            f"{name} {plain(value, 4) or NOTHING}"
            for name, (_, value) in zip(names[:_COLUMNS], cells, strict=False)
        )
        line += f" · {len(cells) - _COLUMNS} more" if len(cells) > _COLUMNS else ""
    else:
        return ""
    return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1].rstrip() + "…"


def picture(pool: Pool, item: int) -> str:
    """A small picture of an image as a data URL, made once."""
    key = (pool.fingerprint, item)
    found = _PICTURES.get(key)
    if found is None:
        from workbench.app.desk.cards import encoded
        from workbench.figures.thumbnails import enlarged

        image = pool.items.show(item).image
        if image is None:
            return ""
        # every nth pixel is good enough at this size, and quick for photos
        step = max(1, -(-max(image.shape[:2]) // (2 * SIDE)))
        data = base64.b64encode(encoded(enlarged(image[::step, ::step], SIDE))).decode()
        found = _PICTURES[key] = f"data:image/png;base64,{data}"
        while len(_PICTURES) > _KEPT:
            _PICTURES.popitem(last=False)
    return found


def table(pool: Pool, rows: Sequence[Decision], found: Mapping[int, Opinion]) -> list[dict[str, Any]]:
    """The decisions as rows for people; columns that would be empty throughout are left out."""
    image = pool.kind == "image"
    made = []
    for row in rows:
        said = found.get(row.item)
        made.append(
            {
                "Picture": picture(pool, row.item) if image else "",
                "Label": row.label or f"({row.status})",
                "Model says": "" if said is None else said.label,
                "Chance it is right": None if said is None else round(said.right, 2),
                "Verdict": _verdict(said),
                # behind what is in question: it is wide, and stands whole beside the table
                "Shows": summary(pool, row.item),
                "Flag": "" if row.flag is None else row.flag or "flagged",
                "Note": row.note,
                "Who": row.who + (f" +{len(row.people) - 1}" if len(row.people) > 1 else ""),
                "Item": str(pool.items.ids[row.item]),
                "Why asked": WHY.get(row.role, row.role),
                "Seconds": row.seconds,
                "Time (UTC)": row.time.replace("T", " ")[:16],
            }
        )
    full = {n for one in made for n, value in one.items() if value is not None and value != ""}
    return [{name: value for name, value in one.items() if name in full} for one in made]


def gallery(
    pool: Pool, rows: Sequence[Decision], found: Mapping[int, Opinion], picture: str
) -> list[dict[str, Any]]:
    """The decisions as cards of the gallery.

    Args:
        pool: they are about.
        rows: in the order in which they are shown.
        found: of `opinions`.
        picture: address of pictures, with {item} in it.
    """
    from workbench.app.desk.cards import thumbnail_face

    kinds = {LABELLED: "label", SKIPPED: "skip", UNSURE: "unsure"}
    cards = []
    for row in rows:
        said = found.get(row.item)
        verdict = (
            "" if said is None else "wrong" if said.wrong else "disagrees" if said.disagrees else "agrees"
        )
        cards.append(
            {
                "item": row.item,
                "id": str(pool.items.ids[row.item]),
                "face": thumbnail_face(pool, row.item, picture),
                "kind": kinds.get(row.status, ""),
                "class": row.label,
                "who": row.who,
                "people": list(row.people),
                "flag": row.flag is not None,
                "note": row.note,
                "says": "" if said is None else said.label,
                "verdict": verdict,
                "chance": None if said is None else round(said.right, 3),
            }
        )
    return cards


def disputes(
    pool: Pool, state: ProjectState, items: Sequence[int], found: Mapping[int, Opinion]
) -> list[dict[str, Any]]:
    """Items on which people differ as rows for people: a column a person, and what a model says."""
    names = dict(zip(state.keys, state.classes, strict=True))
    people = list(dict.fromkeys(person for item in items for person in state.votes[item]))
    made = []
    for item in items:
        row: dict[str, Any] = {"Picture": picture(pool, item)} if pool.kind == "image" else {}
        row |= {} if pool.kind == "image" else {"Shows": summary(pool, item)}
        votes = state.votes[item]
        row |= {p: names[state.resolve(votes[p].key)] if p in votes else "" for p in people}
        row |= {"Model says": found[item].label} if item in found else {}
        made.append(row | {"Item": str(pool.items.ids[item])})
    return made


def _verdict(said: Opinion | None) -> str:
    """Opinion of a model, in two words."""
    if said is None:
        return ""
    return "looks wrong" if said.wrong else "disagrees" if said.disagrees else "agrees"
