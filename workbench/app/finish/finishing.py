"""State of the checks: what they certify, where they fail, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from workbench.app.access import auditing
from workbench.app.finish import certificate_plan
from workbench.app.finish.certificate_plan import ANEW, MODEL, ON, title_of
from workbench.app.history.exports import NAMES, format_box, stem
from workbench.app.serving.caching import computed
from workbench.app.shell import background_files, downloads, frame, widgets
from workbench.app.words.text import percent, plural, refused, show_error, verbatim
from workbench.exchange.labels import FORMATS
from workbench.sessions import Session
from workbench.sessions.finish_state import FinishState, machine_part

_GREEN = (
    ".st-key-certified { background: color-mix(in srgb, #2a9d5c 10%, transparent); border-left: 4px solid"
    " #2a9d5c; border-radius: 0 8px 8px 0; padding: 1.25rem 1.5rem; }"
    ".st-key-certified p { font-size: 1.3rem; line-height: 1.45; }"
)


def promise_line(now: FinishState) -> None:
    """Lines about the frozen labels, the promise and the second looks."""
    frozen, promise, looks = now.frozen, now.promise, now.second_looks
    attempt = f" Attempt {promise.attempt}." if promise.attempt > 1 else ""
    st.caption(
        f"{plural(frozen.size, 'label')} of {verbatim(title_of(promise.of))}, frozen "
        f"{frozen.time[:16].replace('T', ' ')} UTC by {verbatim(frozen.by, 40)}. The promise: "
        f"{verbatim(promise.words())}.{attempt}"
    )
    if looks.drawn:
        undecided = plural(looks.open, "check counts", "checks count")
        st.caption(
            f"Second looks: {looks.made:,} of {looks.drawn:,} were made by another person, "
            f"{looks.disagreed:,} disagreed."
            + (f" {undecided} as wrong until somebody decides." if looks.open else "")
        )
    if now.labelled_since:
        st.caption(
            f"{plural(now.labelled_since, 'of them was', 'of them were')} labelled by people since: the "
            "checks stand, and the finished set holds the labels of people."
        )


def failed(session: Session, now: FinishState) -> None:
    """Result of the checks, and what to do next."""
    with st.container(border=True, key="finish-failed"):
        st.markdown(
            f"**Not at {percent(now.promise.error)}: the estimate is {percent(now.estimate)}, "
            f"bound {percent(now.bound)}.** "
            + (now.why or f"{plural(now.checks, 'check')}, {now.wrong:,} called wrong.")
        )
        st.markdown(_next_step(now))
        with st.container(horizontal=True, key="finish-failed-steps"):
            if _is_worth_it(now) and st.button(
                f"Ask me about these {now.advice:,}",
                type="primary",
                icon=":material/label:",
                key="finish-label-more",
            ):
                ask_about(session, least_sure(session, now, now.advice), "where the machine is unsure")
            if now.promise.of != MODEL and st.button(
                "Show me the likeliest errors", type="primary", icon=":material/label:", key="finish-mend"
            ):
                mend(session, now.promise.of)
            st.button("Check again, with another promise", key="finish-again", on_click=anew)
            st.button("Go on checking", key="finish-go-on", on_click=go_on)
    falling(now)
    promise_line(now)


def _next_step(state: FinishState) -> str:
    if state.promise.of != MODEL:
        wrong = round(state.estimate * state.frozen.size)
        return (
            f"About {wrong:,} of the {state.frozen.size:,} labels are wrong. Mend those that are most likely "
            "wrong and check again: what people say counts, and is no part of what is checked next."
        )
    if not _is_worth_it(state):
        return (
            "The machine is wrong too often: give it more labels, or allow a larger error, and check again."
        )
    return f"Label {state.advice:,} more where it is unsure and check again."


def _is_worth_it(state: FinishState) -> bool:
    """True if labelling what is least sure leaves the machine most of its labels."""
    return 0 < state.advice <= state.frozen.size / 2


def anew() -> None:
    """For the button: show the promise again."""
    st.session_state[ANEW] = True


def go_on() -> None:
    """For the button: go on with the checks although it is decided."""
    st.session_state[ON] = True


def stop_here() -> None:
    """For the button: back to what was decided."""
    st.session_state.pop(ON, None)
    st.session_state.pop(ANEW, None)


def least_sure(session: Session, now: FinishState, n: int) -> list[int]:
    """The frozen items that the machine is least sure of and nobody has labelled, the least sure first."""
    codes = session.state.codes
    return [item for item in reversed(now.frozen.items.tolist()) if item not in codes][:n]


def ask_about(session: Session, items: list[int], how: str) -> None:
    """Have the person asked about items, at the desk."""
    with refused():
        session.items.want(items, how)
        frame.go("label")


def mend(session: Session, of: str) -> None:
    """Have the person asked about the labels of a column that are most likely wrong, the likeliest first."""
    from workbench.sessions.insight import doubtful_labels

    with refused():
        with st.spinner("Looking for labels that their neighbours contradict"):
            items = doubtful_labels(session, of).tolist()
        ask_about(session, items, f"likely wrong in {title_of(of)}")


def falling(now: FinishState) -> None:
    """The bound, check by check."""
    from workbench.figures.finish import falling_bound

    wrong = (now.evidence.within(now.size).nonzero()[0] + 1).tolist()
    widgets.figure(
        falling_bound(now.curve, now.promise.error, wrong),
        "finish-bound",
        f"The upper bound on the share of labels called wrong after each of {now.checks:,} checks; now "
        f"{percent(now.bound)}, promised {percent(now.promise.error)}.",
    )


def certified(session: Session, now: FinishState) -> None:
    """The calm page of a finish: the sentence, the finished set, the certificate."""
    certificate = session.checks.certificate()
    if certificate is None:
        return
    now = session.checks.state() or now
    widgets.style(_GREEN)
    with st.container(key="certified"):
        st.markdown(verbatim(certificate.sentence))
    labelled, machine = len(session.state.codes), len(machine_part(now, session.state))
    rest = int(session.pool.trainable.size) - labelled - machine
    st.markdown(
        f"The finished set holds {machine:,} labels of {verbatim(title_of(now.promise.of))} and "
        f"{plural(labelled, 'label')} of the project, checks included; of labels that were not frozen the "
        "certificate says nothing."
        + (f" {plural(rest, 'item')} beyond it are left to people." if rest else "")
    )
    if machine:
        learnt_since(session, now, rest)
    takeaway(session, certificate)
    checks = st.container()
    if len(now.promise.sizes) > 1:
        checks, surest = widgets.split([3, 2], "finish-evidence")
        with surest:
            st.header("Sets of the surest")
            sets(now)
    with checks:
        st.header("The checks")
        falling(now)
    if certificate.classes:
        st.header("Each class")
        classes(certificate)
    promise_line(now)
    with st.container(horizontal=True, key="finish-certified-steps"):
        if rest and st.button("Label the rest", icon=":material/label:", key="finish-rest"):
            items = [i for i in now.frozen.items[now.size :].tolist() if i not in session.state.codes]
            ask_about(session, items, "beyond what is certified")
        if now.size < max(now.promise.sizes) or now.evidence.checks < now.frozen.size:
            st.button("Go on checking", key="finish-go-on", on_click=go_on)
        st.button("Another promise", key="finish-again", on_click=anew)


def learnt_since(session: Session, now: FinishState, rest: int) -> None:
    """Labels that the model would give otherwise by now; a certificate anew, where that is less work.

    Args:
        session: of the project.
        now: what the checks say; "certified".
        rest: items beyond the certified set.
    """
    model, promise = session.model, now.promise
    if promise.of != MODEL or model is None or model.number <= now.frozen.round:
        return
    items = computed(_relabelled, session, at=(model.uid, session.state.n_events))
    job = certificate_plan.forecast_of_tab(session, MODEL, promise.error, promise.confidence)
    if job.active and job.partial is None:
        certificate_plan.watched(job, True, "finish-waiting", "Working out what another certificate costs")
    best = None if job.partial is None else job.partial.choice
    pays = best is not None and best.answers < len(items) + rest
    if not items and not pays:
        return
    with st.container(border=True, key="finish-learnt"):
        learnt = (
            f"would give {len(items):,} of these labels another class" if items else "changed none of these"
        )
        words = f"**The model has learnt since: it {learnt}.**"
        if best is not None and pays:
            by_hand = len(items) + rest
            words += (
                f" Certified anew, all takes about {best.in_answers()}; by hand it is {by_hand:,} answers."
            )
        st.markdown(words)
        with st.container(horizontal=True, key="finish-learnt-steps"):
            if best is not None and pays:
                words = f"Certify anew for about {best.answers:,.0f}"
                st.button(words, icon=":material/verified:", key="finish-certify-anew", on_click=anew)
            if items and st.button(
                f"Look at {'this' if len(items) == 1 else 'these'} {len(items):,}",
                icon=":material/label:",
                key="finish-relabelled",
            ):
                ask_about(session, items, "the model has changed its mind")


def _relabelled(session: Session) -> list[int]:
    now = session.checks.state()
    return [] if now is None else session.checks.relabelled(now)


def takeaway(session: Session, certificate: Any) -> None:
    """Downloads of the finished set and of the certificate."""
    with widgets.row("finish-downloads"):
        file_format = format_box(session, "finish-format", width=150, label_visibility="collapsed")
        downloads.button(
            "Download the finished set",
            background_files.of_project(
                "labels_written", session, "The finished set", file_format, "finished", rows=len(session.pool)
            ),
            f"{stem(session)}-finished{FORMATS[file_format]}",
            "download-finished",
            taken=auditing.exported(session, f"the finished set, {NAMES[file_format]}"),
        )

        def page(name: str, ending: str, written: Callable[[], str], icon: str) -> None:
            downloads.button(
                f"Certificate ({name})",
                lambda: written().encode(),
                f"{stem(session)}-certificate.{ending}",
                f"download-certificate-{ending}",
                icon=icon,
            )

        page("JSON", "json", certificate.to_json, "verified")
        page("page", "html", certificate.to_html, "description")
    st.caption(
        f"Certificate {certificate.id}. Whoever has its JSON and the labels recomputes it: "
        f"`workbench verify {stem(session)}-certificate.json {stem(session)}-finished.csv`"
    )


def sets(now: FinishState) -> None:
    """Bounds by the same checks for smaller and larger sets."""
    rows = now.sets()
    best = [row for row in rows if math.isfinite(row.bound)]
    table_rows = (
        best if len(best) <= 6 else [best[i] for i in np.unique(np.linspace(0, len(best) - 1, 6).astype(int))]
    )
    widgets.table(
        [
            {
                "The surest": f"{row.size:,} ({percent(row.size / now.frozen.size, 0)})",
                "Checks": f"{row.checks:,}, {row.wrong:,} called wrong",
                "At most wrong": percent(row.bound),
                f"At {percent(now.promise.error)}": "certified" if row.certified else "not yet",
            }
            for row in table_rows
        ],
        "finish-sets",
        "Sets of the surest labels, with how many of them are wrong at most",
    )
    st.caption(
        "The bounds hold together, so each is a little wider than it would be alone; of a certified "
        "set the promise holds."
    )


def classes(certificate: Any) -> None:
    """Precision and recall of each class."""

    def said(class_: Any, which: int) -> str:
        low, high = (class_.precision, class_.recall)[which]
        return "too few checks" if class_.too_few[which] else f"{percent(low)} to {percent(high)}"

    rows = [
        {
            "Class": verbatim(class_.name, 60),
            "Labels": f"{class_.size:,}",
            "Checks": f"{class_.checks:,}",
            "Precision": said(class_, 0),
            "Recall": said(class_, 1),
        }
        for class_ in certificate.classes
    ]
    height: Any = 520 if len(rows) > 14 else "content"
    widgets.table(rows, "finish-classes", "Precision and recall of each class", height=height)
    st.caption("All of these intervals hold together, beside the promise above.")


def void(session: Session, now: FinishState) -> None:
    """Message that what was frozen is not there any more."""
    show_error(now.why)
    if any(event.payload["started"] == now.frozen.started for event in session.state.certified):
        st.markdown("The certificate that was issued is void: do not hand it on.")
