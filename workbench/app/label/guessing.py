"""Start of a project: its guesses, how far each is trusted, and which are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import login
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import background_files, widgets
from workbench.app.words.text import one_line, percent, plural, refused, show_error, show_kept_error, verbatim
from workbench.errors import InputError
from workbench.reading import listed
from workbench.sessions import Session
from workbench.sessions.guessing import SourceReport, source_words, takes_guess, weight_words
from workbench.sessions.people import picked_words

if TYPE_CHECKING:
    from workbench.exchange.imports import PredictionPlan
    from workbench.exchange.language_model import Questions, Server
    from workbench.exchange.predictions import Prediction

_PROBLEM = "guesses-problem"
_FILES, _READ = "guesses-files", "guesses-read"
_ASKED = "language-model"
_PATIENCE = 600.0  # seconds
_CONFUSIONS = 3
_MAPPED = 8  # names that are asked about


def dialog(session: Session) -> None:
    """The sources of a project, each with a switch; and one more to begin with.

    Args:
        session: of the person who looks.
    """
    st.caption(
        "What is known before any label: where the model begins. How far each is trusted comes from the "
        "labels: one that they contradict counts nothing."
    )
    if not takes_guess(session.settings["classifier"]):
        st.info(
            "This model cannot start from a guess. Large-margin, logistic-softmax, the sparse "
            "variational GPs and logistic regression can.",
            icon=":material/info:",
        )
    reports = session.guesses.report()
    n = getattr(session.model, "n_labelled", 0)
    for place, report in enumerate(reports):
        with st.container(border=True, key=f"guess-source-{place}", gap="xsmall"):
            _source(session, report, n, place, [r.source for r in reports if r.on])
    if not reports:
        st.markdown(
            "There is none: the model begins with nothing, and the first questions are spread over the pool."
        )
    _another(session, [report.source for report in reports])
    _file(session)
    _language_model(session)
    show_kept_error(_PROBLEM)


def _source(session: Session, report: SourceReport, n_labelled: int, place: int, on: list[str]) -> None:
    words = source_words(report.source)
    title = f"{words[0].upper()}{words[1:]}"
    widgets.switch(
        f"**{verbatim(title, 80)}**",
        f"guess-{session.id}-{place}",
        lambda: _is_on(session, report.source),
        lambda on: _edit(session, report.source, on=on),
    )
    takes = takes_guess(session.settings["classifier"])
    parts = [f"Weight now: **{weight_words(report.weight, n_labelled, report.on and takes)}**"]
    if report.weight is not None and n_labelled:
        parts[0] += f" ({report.weight:.2f} of a margin)"
    agreement = report.agreement
    if agreement is not None and agreement.n:
        share = percent(agreement.right / agreement.n, 0)
        picked = picked_words(report.n_drawn, agreement.n)
        parts.append(
            f"right on {agreement.right} of {plural(agreement.n, 'label')}{picked}: {share} "
            f"(95\u00a0% interval {percent(agreement.low, 0)} to {percent(agreement.high, 0)})"
        )
    elif agreement is not None:
        parts.append("no label to judge it by yet")
    if agreement is not None:
        parts.append(f"says something of {plural(report.n_known, 'item')}")
    st.markdown(" · ".join(parts))
    if report.confusions:
        errors = "; ".join(
            f"{verbatim(b, 40)} for {verbatim(a, 40)} ({k})" for a, b, k in report.confusions[:_CONFUSIONS]
        )
        st.caption(f"It says {errors}")
    if report.unknown or report.mapping:
        _mapping(session, report, place)
    for note in report.notes:
        st.caption(f":material/info: {verbatim(note)}")


def _mapping(session: Session, report: SourceReport, place: int) -> None:
    """Class of each name that is none."""
    names = list(dict.fromkeys((*report.mapping, *report.unknown)))[:_MAPPED]
    with st.container(horizontal=True, key=f"guess-mapping-{place}", gap="small"):
        for name in names:
            key = f"guess-map-{session.id}-{report.source}-{name}"
            st.selectbox(
                f"{verbatim(name, 30)} stands for",
                ["", *session.classes],
                index=([*session.classes].index(class_name) + 1)
                if (class_name := report.mapping.get(name, "")) in session.classes
                else 0,
                format_func=lambda c: c or "no class",
                key=key,
                width=220,
                on_change=_map,
                args=(session, report, name, key),
            )


def _map(session: Session, report: SourceReport, name: str, key: str) -> None:
    mapping = {**report.mapping, name: st.session_state[key]}
    if not mapping[name]:
        del mapping[name]
    _edit(session, report.source, mapping=mapping)


def _another(session: Session, present_sources: list[str]) -> None:
    """One more source: the names of the classes, or a column of the table."""
    offered = [source for source in session.guesses.offered() if source not in present_sources]
    if not offered:
        return
    with widgets.row("guess-another", align="bottom"):
        choice = st.selectbox(
            "One more", offered, format_func=source_words, key="guess-chosen", width="stretch"
        )
        st.button("Add", key="guess-add", icon=":material/add:", on_click=_add, args=(session, choice))


def _file(session: Session) -> None:
    """Predictions that another tool wrote to a file: what they would say, and then whether to take them."""
    file = st.file_uploader(
        "Predictions of another tool",
        type=["csv", "tsv", "parquet", "jsonl", "json"],
        key=f"guess-file-{st.session_state.get(_FILES, 0)}",
        help="A table with the columns id and prediction, and maybe confidence; or Label Studio's tasks with "
        "predictions. They are a guess, never labels.",
    )
    if file is None:
        st.session_state.pop(_READ, None)
        return
    try:
        plan = _plan(session, file)
    except InputError as error:
        show_error(error)
        return
    if plan is None:
        return  # how far it is stands in its place
    with st.container(border=True, key="guess-plan"):
        st.markdown(f"**It would say: {verbatim(plan.words(), 300)}.**")
        if plan.unknown:
            examples = listed(plan.unknown, 3, quote=False)
            st.caption(f"Rows left out, as no item here is called so: {verbatim(examples, 120)}")
        mapping = _named(session, plan)
        with st.container(horizontal=True, key="guess-plan-buttons"):
            st.button(
                "Begin with them",
                key="guess-take",
                type="primary",
                on_click=_take,
                args=(session, f"file:{file.name}", plan.said, mapping),
            )
            st.button("Leave them", key="guess-leave", type="tertiary", on_click=_empty_box)


def _language_model(session: Session) -> None:
    """A language model that is asked about every item; nothing is sent before the button is pressed."""
    from workbench.exchange import language_model

    with st.expander("Ask a language model", key="guess-llm"):
        source = st.text_input(
            "Model and address",
            key="guess-llm-source",
            placeholder="llm:llama3.2@http://localhost:11434/v1",
            help="A server that speaks as OpenAI's does: Ollama, vLLM, LM Studio, or a provider.",
        )
        job = manager().get(session.id, _ASKED)
        if job is not None and job.status != "done":
            widgets.job_panel(job, "guess-llm-job", height=72)
            if job.active:
                return
        if not source:
            return
        with refused():
            server = language_model.server_of(source, any_address=login.may_name_paths())
            questions = language_model.questions_about(session)
            st.caption(f"{questions.words()} They go to {verbatim(server.address)}.")
            arguments = session, source, server, questions
            st.button("Send and ask", key="guess-llm-ask", on_click=_ask, args=arguments)


def _ask(session: Session, source: str, server: Server, questions: Questions) -> None:
    def work(job: Job) -> None:
        from workbench.exchange import language_model

        answers = language_model.ask(server, questions, job.report, stop=job.should_stop)
        session.guesses.add(source, answers)
        language_model.forget(server)

    manager().submit(session.id, _ASKED, work, title="A language model is asked", lane="guess", limit=7 * DAY)


def _plan(session: Session, file: Any) -> PredictionPlan | None:
    """Content of a file of guesses; None while it is read, once for the same classes."""
    key = f"guess-{session.id}-{file.file_id}-{session.classes!r}"
    cache_entry = st.session_state.get(_READ)
    if cache_entry is not None and cache_entry[0] == key:
        plan: PredictionPlan = cache_entry[1]
        return plan
    with st.spinner("Reading the predictions"):
        new_plan: PredictionPlan | None = background_files.read(
            session.id,
            key,
            "predictions_looked_at",
            session.store.url,
            session.id,
            file.name,
            title="Reading the predictions",
            data=file.getvalue(),
            session=session,
            patience=_PATIENCE,
        )
    if new_plan is not None:
        st.session_state[_READ] = key, new_plan
    return new_plan


def _take(session: Session, source: str, predictions: Sequence[Prediction], mapping: dict[str, str]) -> None:
    with refused(_PROBLEM):
        session.guesses.add(source, predictions, mapping)
    _empty_box()


def _named(session: Session, plan: PredictionPlan) -> dict[str, str]:
    """Class of each name of a file that is none here, as somebody says."""
    mapping = {}
    for number, (name, n) in enumerate(list(plan.classes.items())[:_MAPPED]):
        to = st.selectbox(
            f"{verbatim(name, 30)} ({plural(n, 'row')}) stands for",
            ["", *session.classes],
            index=["", *session.classes].index(plan.alike.get(name, "")),
            format_func=lambda c: one_line(c, 40) or "no class: left out",
            key=f"guess-class-{number}-{name}",
        )
        if to:
            mapping[name] = str(to)
    if len(plan.classes) > _MAPPED:
        st.caption(f"{plural(len(plan.classes) - _MAPPED, 'more name')} can be given a class afterwards.")
    return mapping


def _empty_box() -> None:
    """Forget the file that was looked at."""
    st.session_state[_FILES] = st.session_state.get(_FILES, 0) + 1


def _is_on(session: Session, source: str) -> bool:
    sources = session.settings.get("guesses") or ()
    return any(entry["source"] == source and entry.get("on", True) for entry in sources)


def _edit(session: Session, source: str, **changes: Any) -> None:
    sources = list(session.settings.get("guesses") or ())
    _change(session, [entry | changes if entry["source"] == source else entry for entry in sources])


def _add(session: Session, source: str) -> None:
    _change(session, [*(session.settings.get("guesses") or ()), {"source": source}])


def _change(session: Session, sources: list[dict[str, Any]]) -> None:
    with refused(_PROBLEM):
        session.guesses.change(sources)
