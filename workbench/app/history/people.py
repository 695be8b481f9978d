"""The part People of History: how far several people agree, and how each of them does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from workbench.app.access import login
from workbench.app.shell import widgets
from workbench.app.words.text import percent, plural, verbatim
from workbench.metrics import Agreement, cohen_kappa, krippendorff_alpha
from workbench.metrics.agreement import ENOUGH
from workbench.sessions import Event, ProjectState
from workbench.sessions.people import LEARNT_FROM, PeopleReport, PersonReport, own_codes, shown_people
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
                help="95\u00a0% interval of that share, for items like the shared ones."
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


ANCHORING_FROM = 10  # labels of each kind, before which nothing is said of who is led


def second_looks(state: ProjectState, person: str) -> tuple[Agreement | None, list[int]]:
    """Agreement of a person with themselves, and the items on which they differ.

    Args:
        state: of the project.
        person: who looked at labels of theirs a second time.

    Returns:
        Cohen's kappa of the first and the second labels, None without any; items that differ.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    items, first, second = [], [], []
    for item, votes in state.votes.items():
        vote = votes.get(person)
        if vote is None or not vote.first:
            continue
        before, after = codes.get(state.resolve(vote.first)), codes.get(state.resolve(vote.key))
        if before is not None and after is not None:
            items.append(item)
            first.append(before)
            second.append(after)
    differ = [item for item, a, b in zip(items, first, second, strict=True) if a != b]
    return (cohen_kappa(first, second) if items else None), differ


class Anchoring(NamedTuple):
    """Share of a person's labels that are what the model guessed.

    Attributes:
        shown: (the same, all) of the labels given with the guess on screen.
        hidden: the same of those given without.
    """

    shown: tuple[int, int]
    hidden: tuple[int, int]


def anchoring(events: Iterable[Event], state: ProjectState, person: str) -> Anchoring:
    """Labels of a person that are what the model guessed, where the guess was shown and where it was not.

    Args:
        events: of the project.
        state: its fold.
        person: whose labels.
    """
    from workbench.app.desk.cards import BLIND

    standing = {vote.event for votes in state.votes.values() for vote in votes.values()}
    counts = {True: [0, 0], False: [0, 0]}
    for event in events:
        payload = event.payload
        if event.kind != "label" or event.annotator != person or "guess_shown" not in payload:
            continue
        ask = state.asks.get(str(payload.get("ask", "")))
        guess = payload.get("guess") or (None if ask is None else ask.guess)
        # an item for measuring shows nothing either way
        if event.id not in standing or not guess or (ask is not None and ask.role in BLIND):
            continue
        same = state.resolve(str(guess[0][0])) == state.resolve(str(payload["class"]))
        counts[bool(payload["guess_shown"])][0] += same
        counts[bool(payload["guess_shown"])][1] += 1
    return Anchoring((counts[True][0], counts[True][1]), (counts[False][0], counts[False][1]))


def anchoring_words(anchoring: Anchoring) -> str:
    """Both shares in a sentence; "" before there are ten labels of each."""
    if min(anchoring.shown[1], anchoring.hidden[1]) < ANCHORING_FROM:
        return ""
    shares = [f"{same} of {n} ({percent(same / n, 0)})" for same, n in (anchoring.shown, anchoring.hidden)]
    return (
        f"With the guess on screen your label was the guess in {shares[0]}, with it hidden in {shares[1]}. "
        "The items differ, so a small gap says nothing; a large one says that the guess leads you."
    )


def shared_labels(state: ProjectState) -> dict[int, dict[str, int]]:
    """Items that two people or more labelled: item -> person -> class code.

    What decided a disagreement and what was relabelled in review counts for nobody: it was given with a
    label in sight, and agreement is about labels that people gave by themselves. Who decides keeps the label
    that they gave before.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    labels = {}
    for item, votes in state.votes.items():
        if len(votes) > 1 and len(by_person := own_codes(votes, state, codes)) > 1:
            labels[item] = by_person
    return labels


def pairs(shared: Mapping[int, Mapping[str, int]]) -> list[tuple[str, str, Agreement]]:
    """Cohen's kappa of each two people with items in common, the pair with most items first."""
    people = list(dict.fromkeys(person for codes in shared.values() for person in codes))
    agreements = []
    for a, b in itertools.combinations(people, 2):
        ratings = [(codes[a], codes[b]) for codes in shared.values() if a in codes and b in codes]
        if ratings:
            agreements.append((a, b, cohen_kappa([x for x, _ in ratings], [y for _, y in ratings])))
    return sorted(agreements, key=lambda pair: -pair[2].n_items)


def group(shared: Mapping[int, Mapping[str, int]], n_classes: int) -> Agreement | None:
    """Krippendorff's alpha of everybody; None for fewer than three people."""
    if len({person for codes in shared.values() for person in codes}) < 3:
        return None
    counts = [np.bincount(list(codes.values()), minlength=n_classes) for codes in shared.values()]
    return krippendorff_alpha(np.stack(counts))


def in_words(who: str, figures: Agreement, *, together: bool = False, oneself: bool = False) -> str:
    """An agreement in a sentence for people.

    Args:
        who: "ann and bob", or "3 people".
        figures: of `pairs` or `group`.
        together: it is a group's.
        oneself: it is of first and second labels of one person.
    """
    same = percent(figures.observed, 0)
    if figures.n_items < ENOUGH and not together:
        same = f"{figures.observed * figures.n_items:.0f} of {figures.n_items}"
    items = plural(figures.n_items, "item")
    if together:
        words = f"{who}, {figures.n_ratings:,} labels of {items}: two labels of one item agree in {same}"
    elif oneself:
        words = f"Looked at twice, {items} got the same label in {same}"
    else:
        words = f"{who} labelled {items} both, and agree in {same}"
    measure = "Krippendorff's alpha" if together else "kappa"
    if np.isnan(figures.kappa):
        return f"{words}. All are of one class, so {measure} says nothing yet."
    if figures.n_items < ENOUGH:
        return f"{words}. {measure[0].upper()}{measure[1:]} is told from {ENOUGH} items on."
    return f"{words}; chance alone gives {percent(figures.expected, 0)}, so {measure} is {figures.kappa:.2f}."
