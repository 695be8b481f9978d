"""Uses of a table's columns: a sentence about it, the columns that need a look, the rest folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.shell import widgets
from workbench.app.words.text import one_line, plural, verbatim

if TYPE_CHECKING:
    from workbench.pools.tables.report import Problem, TableReport

CHOICES, VERSION = "brought-options", "brought-version"
GUESSES = "brought-guesses"
A_GUESS = "a guess"
"""A use of a column: what somebody or something else takes the class for."""
EMPTY = {"median": "median / commonest", "own": "kept as empty", "drop": "leave row out"}
KEPT = "—"
MOST_ROWS = 13
"""Columns that are shown without a scroll bar."""
FEW = 6
"""Columns up to which a table is shown whole."""
MOST_CHIPS = 12
NARROW = 600
"""Pixels under which a table that is edited would be cut: its columns stand in a list then."""


def is_told(problem: Problem) -> bool:
    """Tell whether a finding is only told: it has no ways out, or the table of columns has them itself."""
    return problem.code in ("missing", "numeric text") or (problem.severity == "note" and not problem.fixes)


def needs_look(report: TableReport) -> list[str]:
    """Columns to look at: the classes or what may hold them, guesses, and what stands in the way."""
    problems = {
        name
        for problem in report.problems
        if not is_told(problem)
        for name in (problem.column, *(n for fix in problem.fixes for n in fix.options.get("columns", ())))
    }
    uses = {column.name: "" if column.use is None else column.use.use for column in report.columns}
    names = {*likely_guesses(report), *problems}
    if "class" not in uses.values():
        # one with gaps may hold the classes of those rows that are labelled already
        names |= {c.name for c in report.columns if uses[c.name] == "category" and c.n_missing}
    return [column.name for column in report.columns if column.name in names or uses[column.name] == "class"]


def editor(report: TableReport, path: str) -> dict[str, Any]:
    """The editable tables of columns; gives the uses as they are chosen now.

    Args:
        report: of the table.
        path: of its file.
    """
    # what somebody marked stays marked when a decision draws the table anew
    likely = likely_guesses(report)
    if st.session_state[VERSION] and GUESSES in st.session_state:
        likely = set(st.session_state[GUESSES])
    rows = [
        {
            "Column": column.name,
            "Use as": A_GUESS if column.name in likely else "" if column.use is None else column.use.use,
            "Empty cells": EMPTY.get("" if column.use is None else column.use.empty, KEPT),
            "Empty": column.n_missing,
            "Different": column.n_unique,
            "For example": ", ".join(column.examples),
        }
        for column in report.columns
    ]
    # the table that is edited stays as it was first shown: what is chosen lies in the widget
    digest = sha256(repr((path, [row["Column"] for row in rows])).encode()).hexdigest()[:8]
    key = f"uses-{digest}-{st.session_state[VERSION]}"
    # and a column stays in the part where it was
    first_rows, first = st.session_state.setdefault(f"{key}-rows", (rows, needs_look(report)))
    look = [row for row in first_rows if row["Column"] in first or len(first_rows) <= FEW]
    rest = [row for row in first_rows if row not in look]
    widgets.style(
        "[data-testid=stLayoutWrapper]:has(> .st-key-columns) { container-type: inline-size; }"
        f"@container (max-width: {NARROW}px) {{ [class*=st-key-table-uses-] {{ display: none; }} }}"
        f"@container (min-width: {NARROW + 1}px) {{ .st-key-columns .column-list, .st-key-columns-one"
        " { display: none; } }" + _LIST
    )
    with st.container(key="columns"):
        edited_rows = _edited(look, key) if look else []
        place = st.container(key="columns-one")
        if rest:
            words = plural(len(rest), "other column") if look else plural(len(rest), "column")
            with st.expander(f"{words}: nothing to decide", key="columns-rest"):
                edited_rows += _edited(rest, f"{key}-rest")
    st.session_state[GUESSES] = [str(row["Column"]) for row in edited_rows if row["Use as"] == A_GUESS]
    places = {row["Column"]: place for place, row in enumerate(first_rows)}
    edited_rows.sort(key=lambda row: places[row["Column"]])
    with place:
        _one(edited_rows, report)
    return uses_of_rows(edited_rows, report)


_LIST = (
    "ul.column-list { list-style: none !important; margin: 0 !important; padding: 0 !important; }"
    ".column-list li { padding: .45rem 0; margin: 0; overflow-wrap: anywhere; display: grid;"
    " grid-template-columns: minmax(0, 1fr) auto; gap: 0 .75rem; align-items: baseline;"
    " border-bottom: 1px solid color-mix(in srgb, currentColor 16%, transparent); }"
    ".column-list span { border-radius: 999px; padding: 0 .6rem; font-size: .9rem; white-space: nowrap;"
    " background: color-mix(in srgb, currentColor 10%, transparent); }"
    ".column-list small { grid-column: 1 / -1; font-size: .85rem; opacity: .8; }"
)


def _listed(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Use of each column, as a list that a narrow screen has room for."""
    lines = []
    for row in rows:
        n = int(row["Empty"])
        becomes = "" if row["Empty cells"] == KEPT else f": {row['Empty cells']}"
        empty = f"{n:,} empty{becomes}. " if n else ""
        about = f"{empty}{one_line(row['For example'], 90)}"
        lines.append(
            f"<li><b>{escape(one_line(row['Column'], 60))}</b><span>{escape(row['Use as'] or KEPT)}</span>"
            f"<small>{escape(about)}</small></li>"
        )
    return f'<ul class="column-list" aria-label="What each column is used for">{"".join(lines)}</ul>'


def _one(rows: Sequence[Mapping[Any, Any]], report: TableReport) -> None:
    """The uses of columns where a table has no room: a column is chosen, its use is changed below."""
    from workbench.pools.tables.uses import USES

    names = [str(row["Column"]) for row in rows]
    name = st.selectbox(
        "Change a column",
        names,
        format_func=lambda name: one_line(name, 60),
        key="columns-one-name",
        placeholder="",
    )
    if name is None:
        return
    row = rows[names.index(name)]
    key = f"columns-one-{st.session_state[VERSION]}-{sha256(name.encode()).hexdigest()[:8]}"
    arguments = (rows, report, name, key)
    with widgets.row(align="bottom"):
        _choice("Use as", [*USES, A_GUESS], row, f"{key}-use", arguments)
        _choice("Empty cells", [*EMPTY.values(), KEPT], row, f"{key}-empty", arguments)


def _choice(
    which: str, options: list[str], row: Mapping[Any, Any], key: str, arguments: tuple[Any, ...]
) -> None:
    value = row[which]
    st.selectbox(
        which,
        options,
        index=options.index(value) if value in options else None,
        key=key,
        width=160,
        on_change=_changed,
        args=arguments,
        placeholder="",
    )


def _changed(rows: Sequence[Mapping[Any, Any]], report: TableReport, name: str, key: str) -> None:
    """Read the table with what was chosen for one column."""
    use, empty = st.session_state[f"{key}-use"], st.session_state[f"{key}-empty"]
    new_rows = [
        {**row, "Use as": use, "Empty cells": empty} if row["Column"] == name else row for row in rows
    ]
    st.session_state[GUESSES] = [str(row["Column"]) for row in new_rows if row["Use as"] == A_GUESS]
    st.session_state[CHOICES] = st.session_state[CHOICES] | {"columns": uses_of_rows(new_rows, report)}
    st.session_state[VERSION] += 1


def _edited(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[Any, Any]]:
    """One editable table; its rows as they are now."""
    import pandas as pd

    from workbench.pools.tables.uses import USES

    fixed = {name: st.column_config.Column(disabled=True) for name in ("Column", "For example")}
    numbers = {
        name: st.column_config.NumberColumn(disabled=True, width="small") for name in ("Empty", "Different")
    }
    few = len(rows) <= MOST_ROWS
    place = f"table-{key}"
    widgets.held(**{place: f"calc({len(rows) + 1} * 2.2rem + 3px)" if few else "460px"})
    with st.container(key=place):
        edited = st.data_editor(
            pd.DataFrame(rows),
            hide_index=True,
            num_rows="fixed",
            key=key,
            height="content" if few else 460,
            column_config={
                **fixed,
                **numbers,
                "Use as": st.column_config.SelectboxColumn(
                    options=[*USES, A_GUESS],
                    required=True,
                    width="small",
                    help="“a guess” is what somebody or something else takes the class for: the model begins "
                    "with it and trusts it as far as your labels bear it out.",
                ),
                "Empty cells": st.column_config.SelectboxColumn(
                    options=[*EMPTY.values(), KEPT],
                    required=True,
                    width="medium",
                    help="What they become. Of ids and classes only “leave row out” changes anything: "
                    "an empty class is an item to be labelled.",
                ),
            },
        )
    new_rows = list(edited.to_dict("records"))
    st.html(_listed(new_rows))
    return new_rows


def uses_of_rows(rows: Sequence[Mapping[Any, Any]], report: TableReport) -> dict[str, Any]:
    """The option `columns` that the rows of the editable table say.

    Args:
        rows: with "Column", "Use as" and "Empty cells".
        report: of the table as it was shown; a column that stays a date or a number keeps how it is written.
    """
    empty_names = {words: name for name, words in EMPTY.items()}
    before = {column.name: column.use for column in report.columns}
    uses: dict[str, Any] = {}
    for row in rows:
        name, use = str(row["Column"]), row["Use as"]
        use = "leave out" if use == A_GUESS else use
        column_use = {"use": use, "empty": empty_names.get(row["Empty cells"], "")}
        was = before.get(name)
        if was is not None and was.use == use:
            column_use |= {"format": was.format, "decimal": was.decimal}
        # what nobody changed stays a guess, and what it decides is told
        as_before = was is not None and was.guessed and was.use == use and was.empty == column_use["empty"]
        uses[name] = {key: value for key, value in (column_use | {"guessed": as_before}).items() if value}
    return uses


def likely_guesses(report: TableReport) -> set[str]:
    """Columns whose names say that they hold predictions; the table shows them as guesses, to be changed."""
    from workbench.guesses import likely_columns

    names = [column.name for column in report.columns if column.use is None or column.use.use != "class"]
    return set(likely_columns(names, list(report.classes)))


def guessed_columns(report: TableReport) -> list[str]:
    """The sources that the columns marked as guesses make, with a line that says so."""
    from workbench.guesses import sources_of_columns

    marked = st.session_state.get(GUESSES, [])
    if marked:
        likely = likely_guesses(report)
        likely_names = [name for name in marked if name in likely]
        words = ", ".join(f"**{verbatim(name, 40)}**" for name in marked)
        st.caption(
            f":material/lightbulb: {words}: a guess at the class, neither the class nor a feature. The model "
            "begins with it, and your labels decide how far it is trusted."
            + (" Taken for one by its name; if it is none, change it under *Use as*." if likely_names else "")
        )
    return sources_of_columns(marked)


def summary(report: TableReport) -> None:
    """The table in a sentence, and its classes."""
    n_labels = sum(report.classes.values())
    to_ask = report.n_rows - n_labels
    parts = [plural(report.n_rows, "row")]
    names = [c.name for c in report.columns if c.use is not None and c.use.use == "class"]
    if names and report.classes:
        suffix = f", {to_ask:,} to ask" if to_ask > 0 else ""
        parts.append(f"the class is {verbatim(names[0], 30)}, {plural(n_labels, 'label')} taken over{suffix}")
    parts.append(plural(len(report.columns), "column"))
    st.markdown(f"**{'; '.join(parts)}.**")
    if report.classes:
        chips(report.classes)
    elif report.ready:
        st.caption("No column holds the classes. If one does, say so under *Use as*.")
    if report.classes and not to_ask:
        st.caption(
            "Are these labels good? Set their column to *a guess* under *Use as*, and press "
            "*Check these labels*."
        )


def chips(classes: Mapping[str, int | None], one: str = "class", several: str = "classes") -> None:
    """Classes as chips, the most frequent first, with how many items each has; or what `one` says."""
    order = sorted(classes.items(), key=lambda pair: -(pair[1] or 0))
    badges = [f"{_chip(name)}{'' if n is None else f' {n:,}'}" for name, n in order[:MOST_CHIPS]]
    more = f" and {len(order) - MOST_CHIPS} more" if len(order) > MOST_CHIPS else ""
    words = plural(len(order), one, several)
    st.markdown(f"{words}: " + " ".join(f":blue-badge[{name}]" for name in badges) + more)


def _chip(name: str) -> str:
    # a bracket would end the chip
    return verbatim(one_line(name.replace("[", "(").replace("]", ")"), 30))
