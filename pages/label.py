"""Label: one item, the keys, why this one, and how well it goes."""

from typing import Any

import streamlit as st

from workbench.app import desk
from workbench.app.access import current, joining, login
from workbench.app.data import forms
from workbench.app.desk import questions
from workbench.app.label import instructing, oracle
from workbench.app.serving.jobs import manager
from workbench.app.shell import frame, labelling_speed, widgets
from workbench.app.words.text import explain, percent, plural, refused, show_error, show_kept_error, verbatim
from workbench.classifiers import CLASSIFIERS
from workbench.classifiers.protocols import choice_of
from workbench.figures.curves import learning_curve, summarise
from workbench.policies import POLICIES
from workbench.sessions.measure import ENOUGH
from workbench.sessions.rounds import SIGNS

EVERY, ONE, TOGETHER = "All questions", "One question", "questions-together"
WHO, MODEL, PROBLEM = "who", "model-popover", "model-problem"


def me(session: Any) -> Any:
    """The session of whoever sits here, with their name asked for beside the title."""
    key = f"who-name-{session.annotator}"
    popover = st.popover(
        verbatim(session.annotator, 30), icon=":material/person:", key=WHO, on_change="rerun"
    )
    with popover:
        st.caption(
            "Your name goes into every decision. Two people with two names are asked about the same item "
            "only where the project says so, and undo takes back one's own last decision."
        )
        with st.form("person", border=False):
            st.text_input("Your name", value=session.annotator, max_chars=80, key=key)
            st.form_submit_button("Use this name", on_click=take_name, args=(key,))


def take_name(key: str) -> None:
    """Go on under the name that was typed; the desk's keys count again."""
    if st.session_state[key].strip():
        current.call_me(st.session_state[key])
        st.session_state[WHO] = False


def model_popover(session: Any) -> None:

    settings = session.settings
    popover = st.popover("Model and policy", icon=":material/tune:", key=MODEL, on_change="rerun")
    with popover:
        st.caption("A change is recorded, and the model is fitted anew; nothing labelled is touched.")
        models = forms.classifiers_for(session.pool.kind, len(session.classes))
        policies = [e.name for e in POLICIES.values() if e.kind == "policy" and not e.broken]
        pair = str(settings["classifier"]), str(settings["policy"])
        models, policies = list(dict.fromkeys([pair[0], *models])), list(dict.fromkeys([pair[1], *policies]))
        keys = [f"{MODEL}-{kind}-{name}" for kind, name in zip(("model", "policy"), pair, strict=True)]
        fields = (("Model", models, CLASSIFIERS), ("Policy", policies, POLICIES))
        words = (
            "Learns from your labels, in the background.",
            "Decides which item you are asked about next.",
        )
        choices = [
            forms.choice(label, names, registry, key=key, first=first, help=help)
            for (label, names, registry), key, first, help in zip(fields, keys, pair, words, strict=True)
        ]
        st.button(
            "Change",
            key="change-model",
            type="primary",
            disabled=tuple(choices) == pair,
            on_click=change_model,
            args=(session, *choices),
        )
        model = session.model
        sees = choice_of(model.estimator) if model else None
        leans = model.smoothing if model and model.smoothing.labels else None
        if sees or leans:
            with st.expander("What the model chose for itself", key="model-chose"):
                for verb, choice, word in (
                    ("sees ", sees, "loss on labels it had not seen"),
                    ("", leans, "leans on neighbours"),
                ):
                    if choice:
                        sentence = f"It {verb}{verbatim(choice)}. Chosen at {choice.labels:,} labels."
                        st.caption(sentence, help=explain(word))
        show_kept_error(PROBLEM)


def change_model(session: Any, model: str, policy: str) -> None:
    """Go on with what was chosen, or say why not where it was chosen."""
    with refused(PROBLEM):
        session.change_model(classifier=model, policy=policy)
        st.session_state[MODEL] = False


def progress_line(session: Any) -> None:
    state, model = session.state, session.model
    learned = 0 if model is None else model.n_labelled
    n_labels = len(state.training)
    if model is None:
        parts = [labelling_speed.first_fit(session).rstrip(".")]
    elif session.stale:
        behind = f"**{learned:,}** of **{plural(n_labels, 'label')}**"
        parts = [f"The model has learnt from {behind}; a new fit is under way"]
    else:
        every = "all " if n_labels == learned > 1 else ""
        once = "; copies count once" if 0 < learned < n_labels and session.items.twins.n_groups else ""
        parts = [f"The model has learnt from **{every}{plural(learned, 'label')}**{once}"]
    if model is not None and model.mean is not None and learned < 10:
        parts.append("beginning with a guess")
    came = taken_over(session)
    whose = f"**{verbatim(session.question_name, 40)}**: " if several else ""
    st.markdown(whose + " · ".join([*parts, came] if came else parts))
    quiet = labelling_speed.line(
        session.log.events,
        session.annotator,
        session.rounds,
        labelling_speed.left(session),
        session.predictions.verdict,
    )
    if quiet:
        st.caption(verbatim(quiet))


def oracle_controls(session: Any) -> None:
    job = manager().get(session.id, "oracle")
    with st.container(border=True, key="oracle"):
        st.markdown("## Let the known classes answer")
        st.caption("This pool knows its classes, so they can answer in your place.")
        # with nothing left to ask nobody can answer
        busy = (job is not None and job.active) or not session.queue.n_left
        with widgets.row("oracle-controls", align="bottom"):
            for n, label in ((1, "Step"), (10, "Run 10")):
                if st.button(label, key=f"oracle-{n}", disabled=busy):
                    oracle.answer_by_oracle(session, n)
                    st.rerun()
        with widgets.row("oracle-budget-row", align="bottom"):
            budget = st.number_input(
                "Budget, labels",
                min_value=1,
                max_value=max(1, int(session.pool.trainable.size)),
                value=min(max(70, len(session.state.codes) + 10), int(session.pool.trainable.size)),
                step=10,
                key=f"budget-{session.id}",
                width=130,
                persist_state="session",
            )
            n_left = int(budget) - len(session.state.codes)
            if st.button("Run to budget", key="oracle-budget", disabled=busy or n_left <= 0):
                oracle.answer_by_oracle(session, n_left)
                st.rerun()
        if n_left <= 0 and session.queue.n_left:
            st.caption(f"{plural(len(session.state.codes), 'label')} are there already: the budget is spent.")
        if job is not None and (job.active or job.status == "failed"):
            widgets.job_panel(job, "oracle-job", height=60)


def rare_classes(session: Any) -> None:
    """Each class under a tenth of the labels, and the error that counts every class alike."""
    words = labelling_speed.of_rare_classes(session.predictions.verdict)
    if words:
        st.markdown(words)


def how_it_goes(session: Any) -> None:
    st.header("How well it goes" + (f": {verbatim(session.question_name, 40)}" if several else ""))
    if not session.pool.has_truth or session.pool.test is None:
        error = labelling_speed.error_so_far(session.predictions.evaluation)
        st.markdown(f"**Error: {'known after the first fit' if session.model is None else error}.**")
        rare_classes(session)
        own_curve(session)
        early_signs(session)
        return
    rounds = labelling_speed.measured_rounds(session.rounds)
    if not rounds:
        n = measured_on(session.pool)
        few = f"No error curve: the pool keeps {plural(n, 'item')} to measure on, and a figure needs 20."
        st.caption(few if n < ENOUGH else "The error curve starts with the first fit.")
        return
    if len(rounds) < 2 and not oracle.knows_all(session.pool):
        error = labelling_speed.error_so_far(session.predictions.evaluation)
        st.markdown(f"**Error: {error}.** The curve begins with the second fit.")
        return

    rare_classes(session)
    yours = labelling_speed.error_curve("you and the machine", rounds)
    runs, job = oracle.baseline(session, oracle.reach_for(rounds[-1].n_labelled))
    curves(
        [yours, summarise("random questions", runs, baseline=True)],
        "error-curve",
        f"Test error against labels; now {percent(rounds[-1].error)} at {rounds[-1].n_labelled} labels.",
    )
    oracle.baseline_line(job)


FIGURES = "label-figures"
"""State: whether this tab has had the desk before it, and draws figures."""


def curves(lines: list[Any], key: str, alt: str, height: int = 320, **more: Any) -> None:
    """Curves against labels, or at the first sight of the desk their place: Plotly comes after the item."""
    if not st.session_state.get(FIGURES):
        st.container(height=height, border=False, key=f"{key}-held")
        return

    more |= {"height": height, "marks": labelling_speed.changes(session.log.events)}
    widgets.figure(learning_curve(lines, **more), key, alt)


def own_curve(session: Any) -> None:
    """The error on what was drawn to measure on, once there are two figures of it."""
    rounds = labelling_speed.measured_rounds(session.rounds)
    if len(rounds) < 2:
        copies = f" {session.items.twins.say()}" if session.items.twins.n_groups else ""
        sentence = kept_for_measuring(session.settings)
        st.caption(f"This pool has no known classes to measure on{sentence}.{copies}")
        return
    alt = f"Error against labels; now {percent(rounds[-1].error)}"
    curves([labelling_speed.error_curve("error", rounds)], "own-curve", alt, 280, measure="Error")


def kept_for_measuring(settings: Any) -> str:
    share, early = float(settings["evaluation_share"]), float(settings["early_share"])
    if not share:
        return ""
    first = f"{percent(early, 0)} of the questions until 20 are answered, then " if early > share else ""
    whole = "them" if first else "the questions"
    return (
        f", so {first}{percent(share, 0)} of {whole} are drawn at random into an evaluation set that the "
        "model never learns from"
    )


def early_signs(session: Any) -> None:

    rounds = labelling_speed.latest_at_each([r for r in session.rounds if r.signs])
    if len(rounds) < 2:
        return
    words = (
        "Three signs that need no measured item: all should fall. The labels were asked for because they are "
        "hard, so the first is usually above the error on the pool."
    )
    st.caption(words)
    at = [r.n_labelled for r in rounds]
    signs = [
        summarise(title, [(at, [r.signs.get(name, float("nan")) for r in rounds])])
        for name, title in SIGNS.items()
    ]
    curves(signs, "early-signs", words, measure="Share")


@st.dialog("Classes", width="large", on_dismiss=instructing.close)
def classes_dialog(session: Any) -> None:
    """Everything about the classes in one table."""
    from workbench.app.label import classes

    st.caption(
        "Guidance is shown at the class's button and goes out with the labels. A place moves a class among "
        "the buttons; models and codes stay. A class that no label names can be removed: select its row. "
        "Undo takes each change back."
    )
    # rows are those shown when the dialog opened, however many times it is drawn
    if "classes-shown" not in st.session_state:
        st.session_state["classes-shown"] = classes.table(session.state)
    rows = st.session_state["classes-shown"]
    st.data_editor(
        classes.frame(rows),
        hide_index=True,
        num_rows="dynamic",
        key="classes-editor",
        disabled=[classes.ITEMS],
        column_config={
            classes.PLACE: st.column_config.NumberColumn(min_value=1, step=1, width="small"),
            classes.NAME: st.column_config.TextColumn(max_chars=300, width="medium"),
            classes.KEY: st.column_config.TextColumn(max_chars=1, width="small"),
            classes.COLOUR: st.column_config.TextColumn(help="Like #2a9d5c", max_chars=7, width="small"),
            classes.GUIDANCE: st.column_config.TextColumn(max_chars=300, width="large"),
            classes.ITEMS: st.column_config.NumberColumn(width="small"),
        },
    )
    st.text_input(
        "The question at the desk",
        value=str(session.settings.get("question") or ""),
        placeholder=questions.usual(session),
        max_chars=200,
        key="question-words",
        help="Stands above every item. Empty: the one in grey.",
    )
    for problem in st.session_state.pop("classes-problems", ()):
        show_error(problem)
    # the table tells of a change a moment after it was typed
    unsaved = classes.n_changes(st.session_state["classes-editor"])
    if unsaved:
        st.caption(f"{plural(unsaved, 'change')} not saved yet")
    if st.button("Save", type="primary", key="classes-save"):
        session.questions.reword(st.session_state["question-words"])
        problems = classes.apply(session, rows, st.session_state["classes-editor"])
        st.session_state.pop("classes-editor", None)
        st.session_state.pop("classes-shown", None)
        if problems:
            st.session_state["classes-problems"] = problems
            st.rerun(scope="fragment")
        instructing.close()
        st.rerun()
    if len(session.classes) > 2:
        with st.form("merge-class", border=True):
            columns = st.columns([3, 3, 1], vertical_alignment="bottom")
            merged_class = columns[0].selectbox(
                "Count all labels of", session.classes, index=None, key="class-to-merge", placeholder="Choose"
            )
            into = columns[1].selectbox(
                "as", session.classes, index=None, key="class-merged-into", placeholder="Choose"
            )
            if columns[2].form_submit_button("Merge") and merged_class is not None and into is not None:
                st.session_state.pop("classes-shown", None)
                changed(lambda: session.classes.merge(merged_class, into))
            st.caption("The first one disappears. Undo takes the merge back.")


@st.dialog("Guesses", width="large", on_dismiss=instructing.close)
def guesses_dialog(session: Any) -> None:
    """Start of the model: its sources, how far each is trusted, and which are used."""
    from workbench.app.label import guessing

    guessing.dialog(session)


@st.dialog("Instructions", width="large", on_dismiss=instructing.close)
def instructions_dialog(session: Any) -> None:
    """Instructions for people, written and shown as they will stand at the desk."""
    instructing.dialog(session)


DIALOGS = {"classes": classes_dialog, "guesses": guesses_dialog, instructing.NAME: instructions_dialog}


def changed(change: Any) -> None:
    """Change the classes and draw the page anew, or say why not."""
    with refused():
        change()
        instructing.close()
        st.rerun()


def tools(session: Any) -> None:
    """Settings that change the project for everybody."""
    model_popover(session)
    if st.button("Classes", icon=":material/sell:", key="classes"):
        for name in ("classes-shown", "classes-editor", "classes-problems"):
            st.session_state.pop(name, None)
        st.session_state[instructing.OPEN] = "classes", session.id
    if st.button("Write instructions", icon=":material/menu_book:", key="instructions"):
        instructing.begin(session)
    if st.button("Guesses", icon=":material/lightbulb:", key="guesses"):
        st.session_state[instructing.OPEN] = "guesses", session.id


def measured_on(pool: Any) -> int:
    """Number of items of the test split whose class is known: copies without a label are none of them."""
    return 0 if pool.test is None else int((pool.truth[pool.test.test] >= 0).sum())


def taken_over(session: Any) -> str:
    """Labels of the pool's own column, where it knows some of the classes."""
    pool = session.pool
    if pool.truth is None or not pool.has_truth or oracle.knows_all(pool):
        return ""
    learned = int((pool.truth[pool.trainable] >= 0).sum())
    measured = measured_on(pool)
    parts = [f"{learned:,} to learn from"]
    if measured:
        parts.append(f"{measured:,} to measure on")
    return f"{plural(learned + measured, 'label')} taken over: {', '.join(parts)}"


@st.fragment(run_every=5.0)
def results(session: Any) -> None:
    """Results so far; the side bar looks more often, but a chart costs 10 ms in which a key waits."""
    current.keep_fitting_all(session)
    with session.log.snapshot():
        progress_line(session)
        how_it_goes(session)
    st.session_state[FIGURES] = True


def turn_questions() -> None:
    """Ask the other way: all questions of an item, or one over all items."""
    mode = st.session_state.get(TOGETHER, EVERY)
    st.session_state[TOGETHER] = ONE if mode == EVERY else EVERY


session = current.mine(frame.needed("label items", "Label", example="error"))
current.keep_fitting_all(session)
several = len(session.questions) > 1
# on a narrow screen the tools wrap below the title
widgets.style(
    ".st-key-label-tools { max-width: 100%; }"
    "@media (max-width: 768px) { .st-key-label-tools { justify-content: flex-start; } }"
    # beside the app's own menu, which stands in the corner
    "@media (min-width: 769px) and (max-width: 1000px) { .st-key-label-head { padding-right: 2.25rem; } }"
)
with widgets.row("label-head", horizontal_alignment="distribute"):
    st.title("Label", width="content", help=explain("pool", "policy", "evaluation set"))
    with st.container(
        horizontal=True, horizontal_alignment="right", width="content", gap="small", key="label-tools"
    ):
        if not login.required():
            me(session)
        tools(session)
if several:
    st.segmented_control(
        "Ask about each item",
        [EVERY, ONE],
        default=EVERY,
        required=True,
        key=TOGETHER,
        label_visibility="collapsed",
        help="All questions while the item stands there, or one question over all items: the one chosen at "
        "the side. A key turns from one to the other: see the card of keys.",
    )
# the page is drawn anew when a fit ends; what is being typed in a dialog must not go with it
dialog, dialog_of = st.session_state.get(instructing.OPEN, ("", None))
if dialog_of == session.id:
    DIALOGS[dialog](session)
if joining.is_name_wanted(session):
    joining.ask_for_name(session)
    frame.end()
# the same for as long as the tab is open: the desk is told of no change
below = st.session_state.setdefault(f"figures-below-{session.id}", bool(session.rounds))
desk.mount(
    session,
    on_mode=turn_questions if several else None,
    every=several and st.session_state.get(TOGETHER, EVERY) == EVERY,
    figures=below,
)
results(session)
if session.pool.has_truth and oracle.knows_all(session.pool):
    oracle_controls(session)
