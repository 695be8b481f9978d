"""The part People of History: what several people mean together, and how each of them does."""

import math
from typing import Any

import streamlit as st

from workbench.app.access import login
from workbench.app.shell import widgets
from workbench.app.words.text import percent, plural, verbatim
from workbench.sessions.people import LEARNT_FROM, PeopleReport, PersonReport, shown_people
from workbench.store.events import SOURCE

HIDDEN = "people-hidden"
_HEIGHT = 460


def part(session: Any, state: Any) -> None:
    """Agreement of people, the rule where they differ, and a row for each of them.

    Args:
        session: of whoever looks.
        state: of its project.
    """
    import pandas as pd

    report: PeopleReport = session.people.report()
    st.markdown(f"**{verbatim(report.words, 400)}**")
    if report.n_consensus:
        st.markdown(learnt_words(report))
    if not report.people:
        return
    hidden = bool(state.model.get("names_hidden"))
    if len(report.people) > 1 and login.may_change(session.project):
        widgets.switch(
            "Hide names",
            f"{HIDDEN}-{session.id}",
            lambda: bool(session.state.model.get("names_hidden")),
            session.people.hide_names,
            help="For everybody who sees this part: people are numbered in an order of their own.",
        )
    elif hidden:
        st.caption("The owner hides names here.")
    people = [
        ("its file" if n == SOURCE else n, person) for n, person in shown_people(report, hidden, session.id)
    ]
    rows = [_row(name, person) for name, person in people]
    table = pd.DataFrame(rows)
    for column in ("Seconds a label", "Agrees with the others", "Between", "Takes for another", "Over time"):
        if (table[column].isna() | (table[column] == "")).all():
            table = table.drop(columns=column)
    widgets.grid(
        table,
        "people-table",
        "The people of the project, one a row",
        height="content" if len(rows) <= 10 else _HEIGHT,
        column_config={
            "Agrees with the others": st.column_config.NumberColumn(
                format="%.0f %%",
                help="Share of shared items on which they say what the others mean together.",
            ),
            "Between": st.column_config.TextColumn(
                help="95 % interval of that share, for items like the shared ones."
            ),
            "Seconds a label": st.column_config.NumberColumn(format="%.1f"),
        },
    )
    talked(session, people)
    taken_for_another(report)


def learnt_words(report: PeopleReport) -> str:
    """Consensus that the model learns of items that several labelled, in words."""
    words = (
        "Where several answered, the model learns what they mean together: whoever is often right counts "
        f"more, beside what the model said before anybody answered. Of {plural(report.n_consensus, 'item')} "
        f"{report.n_other:,} {'is' if report.n_other == 1 else 'are'} not what the majority says"
    )
    if report.n_open:
        words += (
            f"; {report.n_open:,} {'is' if report.n_open == 1 else 'are'} too unsure to learn from "
            f"(below {percent(LEARNT_FROM, 0)})"
        )
    return words + "."


def taken_for_another(report: PeopleReport) -> None:
    """Classes that people take for another, beside the model."""
    if not report.confusions:
        return
    people, model = (
        f"People, of {report.n_answers:,} answers",
        f"Model, of {report.n_guesses:,} first guesses",
    )
    rows = [
        {"Is": confusion.true, "Taken for": confusion.said, people: confusion.people, model: confusion.model}
        for confusion in report.confusions
    ]
    st.markdown(
        "**Classes taken for another**",
        help="What people mean together counts as right. The model's guesses are those of before anybody "
        "answered.",
    )
    alt = "Classes that people and the model take for another"
    shown = rows if report.n_guesses else [{k: v for k, v in row.items() if k != model} for row in rows]
    widgets.grid(shown, "people-mixed", alt, height="content")


def _row(name: str, person: PersonReport) -> dict[str, Any]:
    shared = person.n_shared > 0
    return {
        "Person": name,
        "Labels": person.n_labels,
        "Shared": person.n_shared,
        "Agrees with the others": 100 * person.agreement if shared else None,
        "Between": f"{percent(person.low, 0)} and {percent(person.high, 0)}" if shared else "",
        "Takes for another": "; ".join(f"{a} for {b} ({n})" for a, b, n in person.confusions),
        "Seconds a label": None if math.isnan(person.seconds) else person.seconds,
        "Over time": ", then ".join(percent(share, 0) for share in person.drift or ()),
    }


def talked(session: Any, people: list[tuple[str, PersonReport]]) -> None:
    """Items on which somebody differs from others who are sure."""
    ids = session.pool.items.ids
    rows = [
        {
            "Item": str(ids[disagreement.item]),
            "Person": name,
            "Said": disagreement.said,
            "The others mean": disagreement.others,
            "Sure": 100 * disagreement.certainty,
        }
        for name, person in people
        for disagreement in person.disagreements
    ]
    if not rows:
        return
    st.markdown("**Items to talk about**", help="The others are sure of another class.")
    widgets.grid(
        rows,
        "people-talk",
        "Items on which somebody differs from others who are sure",
        height="content" if len(rows) <= 10 else _HEIGHT,
        column_config={"Sure": st.column_config.NumberColumn(format="%.0f %%")},
    )
