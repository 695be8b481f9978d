"""The form that starts an attack, which models and images it may have, and its job."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import current, login
from workbench.app.compare import comparison_sources
from workbench.app.data import forms
from workbench.app.data.forms import classifiers_for
from workbench.app.serving import jobs
from workbench.app.serving.jobs import DAY, Countdown, Job, manager
from workbench.app.shell import widgets
from workbench.app.words.text import explain, one_line, plural, show_error, verbatim
from workbench.attacks import ATTACKS, LOSSES
from workbench.classifiers import CLASSIFIERS, protocols
from workbench.classifiers import title_of as classifier_title
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Session

SUBJECTS = {"project": "This project's model", "fresh": "A model fitted for this"}
CONTROL = "noise"
_STEPS = (0, 1 / 6, 1 / 3, 1 / 2, 2 / 3, 1)  # of the strongest attack
ALONE = (
    "A picture that was tampered with has no neighbours, so the model is fitted without them: it is wrong "
    "more often than at the desk."
)


def sources() -> dict[str, str]:
    """Images to fit on, by key: of the open project, where they can be; bundled and known sets, projects."""
    opened = opened_project()
    own = "" if opened is None else f"{OWN}{opened.project.family}"
    titles = {
        key: one_line(source.title, 60)
        for key, source in comparison_sources.sources(current.project_id()).items()
        if not key.startswith("question:") and (source.of_images or key == own)
    }
    if own in titles and opened is not None and not (opened.pool.image_shape and opened.pool.has_truth):
        titles[own] = titles.pop(own)  # last: no model of its pixels can be fitted
    return titles


def opened_project() -> Session | None:
    """The session of the open project, if its items are images."""
    opened = current.session()
    return opened if opened is not None and opened.pool.kind == "image" else None


def cannot(opened: Session) -> str:
    """Why this project's own model cannot be attacked now, for people; empty when it can."""
    if opened.model is None:
        return "This project has no model yet. Label some images of two classes on the Label page first."
    if opened.pool.image_shape is None:
        return (
            "This project's features are not its pixels, so moving pixels does not move them. "
            "Attack a model fitted for this instead."
        )
    return ""


def subject_of(opened: Session | None) -> str:
    """Choice of the model to attack: the open project's own ("project"), or one fitted for this ("fresh")."""
    if opened is None:
        session = current.session()
        if session is not None:
            st.markdown(
                f"**{verbatim(session.project.name, 40)}** holds no pictures, so there are no pixels to "
                "change. Try it on pictures that are here:"
            )
        return "fresh"
    picked = st.segmented_control(
        "What to attack",
        list(SUBJECTS),
        default="fresh" if cannot(opened) else "project",
        required=True,
        format_func=SUBJECTS.__getitem__,
        key="attack-subject",
    )
    return str(picked or "fresh")


def form() -> None:
    """The form that starts an attack."""
    opened = opened_project()
    with st.container(border=True, key="attack-form"):
        subject = subject_of(opened)
        project = opened if subject == "project" else None
        if project is not None and cannot(project):
            st.info(cannot(project), icon=":material/info:")
            return
        if project is not None:
            left, right = widgets.split([1.6, 1], "attack-columns", below=900)
            pool, classifier = f"{OWN}{project.id}", str(project.settings["classifier"])
            with left:
                own_model(project, classifier)
        else:
            right, model_column = widgets.split([1, 1], "attack-columns", below=900)
            pools = sources()
            pool = right.selectbox("Images", list(pools), format_func=pools.get, key="attack-pool")
            models = classifiers()
            with model_column:
                classifier = forms.choice(
                    "Model",
                    models,
                    CLASSIFIERS,
                    key="attack-model",
                    first=models[0],
                    help="Models without gradients cannot be attacked here.",
                )
        default = usual_attacks(classifier, project)
        measured = 0 if project is None else len(project.fits.held_out()[0])
        n_test = right.number_input(
            "Images to attack",
            10,
            10_000,
            max(10, min(360, measured)) if measured else 360,
            step=50,
            key="attack-images",
            help="All where there are fewer",
        )
        strongest = right.slider(
            "Strongest attack",
            0.05,
            1.0,
            0.3,
            0.05,
            key="attack-strength",
            help="Largest change of a pixel: 1 turns black into white. Six strengths from 0 to here.",
        )
        tried = st.empty()
        # the button that starts stands first, whatever is decided before it is pressed
        row = widgets.row("attack-start", gap="medium")
        go = row.container(width="content")
        with row.popover("Attacks and more", icon=":material/tune:", key="attack-more"):
            attacks = which_attacks(default)
            n_train, loss, steps, seed = machinery(fresh=project is None)
        if attacks:
            tried.markdown(what_is_tried(attacks))
        softmax = row.toggle(
            "Compare with a softmax network",
            key="attack-softmax" if "transfer" not in default else "attack-softmax-transfer",
            value="transfer" in default,
            help="Trains one on the same labels: some seconds more. The transfer attack needs it.",
        )
        if go.button("Attack", type="primary", key="start-attack", icon=":material/bolt:", width=140):
            try:
                begin(
                    project,
                    pool,
                    classifier=classifier,
                    n_train=n_train,
                    n_test=int(n_test),
                    strengths=tuple(float(round(strongest * share, 4)) for share in _STEPS),
                    attacks=tuple(attacks),
                    loss="" if loss == "cross-entropy" else loss,
                    steps=steps,
                    softmax=softmax,
                    seed=seed,
                )
            except InputError as error:
                show_error(error)
                return
            st.rerun()


def machinery(fresh: bool) -> tuple[int, str, int, int]:
    """Labels of a fresh model, the loss, the steps and the seed: good as they are."""
    n_train = 1
    if fresh:
        n_train = st.number_input(
            "Labels to fit on, at most", 20, 100_000, 5000, step=500, key="attack-labels"
        )
    loss = st.selectbox(
        "Loss of FGSM, PGD and transfer",
        [n for n in LOSSES if n != "adaptive"],
        format_func=lambda n: LOSSES[n].title,
        key="attack-loss",
    )
    steps = st.number_input("Steps of PGD", 1, 200, 20, key="attack-steps")
    return n_train, loss, steps, st.number_input("Seed", 0, 2**31 - 1, 0, key="attack-seed")


def usual_attacks(classifier: str, project: Session | None) -> list[str]:
    """The attacks to begin with; where the open project's model takes fewer, why."""
    if classifier == "softmax-net":
        return ["fgsm", "pgd", "noise"]  # no variance that an attack could know of
    if project is None or gives_gradients(project):
        return ["fgsm", "adaptive-pgd", "noise"]
    st.info(
        f"{model_title(classifier)} gives no gradients, so nobody can compute FGSM or PGD on it. "
        "An attack computed on a softmax network can be shown to it (Transfer), and random signs can.",
        icon=":material/info:",
    )
    return ["transfer", "noise"]


def which_attacks(default: list[str]) -> list[str]:
    """The attacks to try."""
    attacks: list[str] = st.pills(
        "Attacks",
        list(ATTACKS),
        selection_mode="multi",
        default=default,
        format_func=lambda n: ATTACKS[n].title,
        key="attack-names" if "adaptive-pgd" in default else f"attack-names-{default[0]}",
    )
    return attacks


def what_is_tried(attacks: list[str]) -> str:
    """A line for each attack: what it does, then its name; the control last."""
    lines = ["Each image is changed in these ways, from nothing to the strongest:"]
    for name in sorted(attacks, key=lambda attack: attack == CONTROL):
        words = verbatim(re.sub(r" \([^)]*\)", "", ATTACKS[name].summary))
        lines.append(f"- **{verbatim(ATTACKS[name].title)}**: {words}")
    return "\n".join(lines)


def model_title(classifier: str) -> str:
    """A classifier's title, made safe for Markdown."""
    return verbatim(classifier_title(classifier), 60)


def own_model(opened: Session, classifier: str) -> None:
    """Model of the open project that is attacked, and the images."""
    items, _ = opened.fits.held_out()
    images = (
        f"{plural(len(items), 'image')} it never learns from, with known classes"
        if len(items)
        else "images it was not trained on; their classes are unknown, so its answer on the clean image "
        "counts as right"
    )
    if opened.model is None:
        return
    st.markdown(
        f"**{verbatim(opened.project.name, 40)}**: {model_title(classifier)}, trained on "
        f"{plural(opened.model.n_labelled, 'label')}"
    )
    st.caption(f"Attacked are {images}.")
    if opened.model.seen is not None:
        st.caption(ALONE, help=explain("leans on neighbours"))


def begin(project: Session | None, pool: str, **named: Any) -> None:
    """Start an experiment and show it; further arguments are of `AttackSpec`.

    Raises:
        InputError: a pool whose pixels cannot be moved.
    """
    from workbench.studies.attacks import AttackSpec

    opened = current.entered(pool.removeprefix(OWN)) if pool.startswith(OWN) else None
    fresh = opened if project is None else None
    if fresh is not None and (not fresh.pool.has_truth or fresh.pool.kind != "image"):
        raise InputError(
            f"{fresh.project.name!r} has no known classes of images to fit a model on. Open it and attack "
            "its own model, or choose images with known classes."
        )
    if fresh is not None and fresh.pool.image_shape is None:
        raise InputError(
            f"The models of {fresh.project.name!r} see features made of its images, not their pixels, so an "
            "attack has no pixel to move. Bring the images again on Data with pixels as features, or choose "
            "other images."
        )
    spec = AttackSpec(
        pool=pool if opened is None else str(opened.project.pool["name"]),
        project="" if project is None else str(project.project.name),
        **named,
    )
    token = secrets.token_hex(8)
    _OF[token] = (None if project is None else project.id, login.key_of_page())
    arguments = (spec, "", None) if opened is None else (spec, opened.store.url, opened.id)

    def work(job: Job) -> Any:
        countdown = Countdown(job)
        return jobs.compute(
            job,
            "attacked",
            *arguments,
            project is None,
            where=jobs.long_work,
            hear=lambda report: countdown(*report[:2]),
            session=opened,
        )

    job = manager().submit(token, KIND, work, title="Attack", lane="study", limit=7 * DAY)
    job.about = spec
    current.show(PARAMETER, token)


PARAMETER = "attack"
KIND = "attack"
_OF: dict[str, tuple[str | None, str]] = {}  # id -> the project that is attacked, and who started it


def job_of(token: str) -> Job | None:
    """The experiment's job in this process, if any.

    With a log-in it is for those who may open the project that is attacked, else for whoever started it.
    """
    if not login.required():
        return manager().get(token, KIND)
    project, owner = _OF.get(token, (None, ""))
    person = login.of_page()
    if project is None:
        may_see = person is not None and person.key == owner
    else:
        may_see = login.who_may(person, project, "open")
    return manager().get(token, KIND) if may_see else None


OWN = "project:"
"""Begins the name of a pool that is a project's own."""


def classifiers() -> list[str]:
    """Names of the classifiers that are offered for attacks."""
    return [name for name in classifiers_for("image", 10) if CLASSIFIERS[name].gradients]


def gives_gradients(session: Session) -> bool:
    """True if a project's published model is a function that an attacker can follow downhill."""
    model = session.model
    if model is None:
        return False
    estimator = model.estimator
    return protocols.predictor_of(estimator) is not None or protocols.supports_network(estimator)
