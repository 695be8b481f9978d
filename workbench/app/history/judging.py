"""One decision beside the table of all: the whole item, what was said of it, a key that ends the doubt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.history import decisions
from workbench.app.uncertainty import items
from workbench.app.words.text import percent, plural, verbatim
from workbench.store.events import SOURCE

if TYPE_CHECKING:
    from workbench.pools import Pool

MODEL_IS_RIGHT, LABEL_IS_RIGHT = "m", "k"
"""Keys, where nothing is typed in."""
SIDE = 220
_KEPT = "review-kept"


def looked_at_last(rows: Sequence[decisions.Decision], project: str, visit: Any) -> list[decisions.Decision]:
    """The decisions with those behind that somebody found right in this visit of the page.

    Args:
        rows: in their order.
        project: its id.
        visit: of the page; in another one all are looked at anew.
    """
    kept = _kept(project, visit)
    return sorted(rows, key=lambda row: kept.get(row.item) == (row.status, row.label))


def _kept(project: str, visit: Any) -> dict[int, tuple[str, str]]:
    """Item -> what stood about it when somebody found that right."""
    where, kept = st.session_state.get(_KEPT, (None, {}))
    if where != (project, visit):
        where, kept = st.session_state[_KEPT] = ((project, visit), {})
    return dict(kept)


def keep(project: str, visit: Any, rows: Sequence[decisions.Decision]) -> None:
    """Confirm these: others come first from now on."""
    kept = _kept(project, visit) | {row.item: (row.status, row.label) for row in rows}
    st.session_state[_KEPT] = ((project, visit), kept)


def panel(
    pool: Pool,
    rows: Sequence[decisions.Decision],
    found: Mapping[int, decisions.Opinion],
    model_is_right: Callable[[dict[int, str]], None],
    label_is_right: Callable[[list[decisions.Decision]], None],
) -> None:
    """The item that is selected, or the most doubtful one, whole; and the two answers.

    Args:
        pool: of the project.
        rows: those that are selected, or the first of the table.
        found: what models say that did not see the labels.
        model_is_right: takes item -> class.
        label_is_right: takes the decisions.
    """
    row = rows[0]
    said = {one.item: found[one.item].label for one in rows if one.item in found}
    said = {item: name for item, name in said.items() if name != _label(rows, item)}
    with st.container(border=True, key="judged"):
        _words(pool, row, found.get(row.item), len(rows))
        _item(pool, row.item)
        many = len(said) > 1
        first = next(iter(said.values()), "")
        st.button(
            "The labels are right" if len(rows) > 1 else "The label is right",
            key=f"label-is-right-{row.item}-{len(rows)}",
            type="primary",  # most of what is listed is right
            shortcut=LABEL_IS_RIGHT,
            width="stretch",
            on_click=label_is_right,
            args=(list(rows),),
            help="It goes to the end of the table while you are on this page, and the next one comes.",
        )
        st.button(
            f"The model is right about {len(said):,}" if many else "The model is right",
            # of the item: a press that comes when another one is shown is for nothing
            key=f"model-is-right-{row.item}-{len(rows)}",
            disabled=not said,
            shortcut=MODEL_IS_RIGHT,
            width="stretch",
            on_click=model_is_right,
            args=(said,),
            help="Each gets the class that the model says; Undo takes it back."
            if many
            else f"It becomes {verbatim(first, 40)}; Undo takes it back."
            if said
            else "The model says nothing else.",
        )


def _label(rows: Sequence[decisions.Decision], item: int) -> str:
    return next(row.label for row in rows if row.item == item)


def _words(pool: Pool, row: decisions.Decision, said: decisions.Opinion | None, n: int) -> None:
    """Opinions of people and the model on it."""
    stands = f"**{verbatim(row.label, 120)}**" if row.label else f"({row.status})"
    who = "its file" if row.who == SOURCE else row.who
    by = f", says {verbatim(who, 30)}" if who and row.label else ""
    st.markdown(f"{stands}{by}")
    if said is not None and said.disagrees:
        st.markdown(f"**{verbatim(said.label, 120)}**, says the model ({percent(said.confidence, 0)})")
    elif said is not None:
        st.markdown(f"The model says the same ({percent(said.confidence, 0)}).")
    marks = [f"item {verbatim(pool.items.ids[row.item], 40)}"]
    marks += [f"asked: {decisions.WHY.get(row.role, row.role)}"] if row.role else []
    marks += [f"flagged{f': {verbatim(row.flag, 80)}' if row.flag else ''}"] if row.flag is not None else []
    marks += [f"note: {verbatim(row.note, 160)}"] if row.note else []
    marks += [f"the first of {plural(n, 'selected row')}"] if n > 1 else []
    st.caption(" · ".join(marks))


def _item(pool: Pool, item: int) -> None:
    image = pool.items.show(item).image if pool.kind == "image" else None
    if image is None:
        items.show(pool, item, key=f"judged-{item}")
        return
    from workbench.figures.thumbnails import enlarged

    st.image(enlarged(image, SIDE), width=SIDE, output_format="PNG", alt=f"Item {pool.items.ids[item]}")
