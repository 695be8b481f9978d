"""Adversarial: attack an image model, and see whether its uncertainty notices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import streamlit as st

from workbench.app.access import current
from workbench.app.compare import robustness
from workbench.app.data import forms
from workbench.app.shell import downloads, widgets
from workbench.app.words.glossary import explain
from workbench.app.words.text import percent, plural, verbatim
from workbench.attacks import ATTACKS, LOSSES
from workbench.classifiers import CLASSIFIERS
from workbench.classifiers import title_of as classifier_title
from workbench.errors import InputError
from workbench.figures import adversarial as figures

SUBJECTS = {"project": "This project's model", "fresh": "A model fitted for this"}
CONTROL = "noise"
CAUTION = """
**What this does not show**

- That a model is safe. FGSM is the weakest attack there is; the adaptive attack, which knows the
  detector, is the honest line.
- That the detector sees *attacks*. It sees distance from the training data: harmless random signs of
  the same strength raise it too.
- Anything about images changed in other ways: turned, shifted, blurred, patched, photographed.
- A rate to rely on. This is one split, one seed, one model; the papers' area of almost 1 on MNIST
  was not reproduced in our runs.
"""


ALONE = (
    "A picture that was tampered with has no neighbours, so the model is fitted without them: it is wrong "
    "more often than at the desk."
)
# detectors whose number is a share of 1
SHARES = ("variation-ratio", "variation-ratio-mc", "least-confident")


def choose(token: str | None) -> None:
    if token is None:
        st.query_params.pop(robustness.PARAMETER, None)
        st.session_state.pop("attack", None)
    else:
        st.query_params[robustness.PARAMETER] = token
        st.session_state["attack"] = token


def chosen() -> str | None:
    given = st.query_params.get(robustness.PARAMETER) or st.session_state.get("attack")
    if given:
        choose(given)
    return given


def sources() -> dict[str, str]:
    """Images to fit on: of the open project, if it has pixels; bundled and known sets, other projects."""
    found = robustness.pools()
    own = robustness.own_pools(current.project_id(), found)
    opened = opened_project()
    first = f"{robustness.OWN}{opened.id}" if opened is not None and opened.pool.image_shape else ""
    return {name: title for name, title in own.items() if name == first} | found | own


def opened_project() -> Any:
    """The session of the open project, if its items are images."""
    opened = current.session()
    return opened if opened is not None and opened.pool.kind == "image" else None


def cannot(opened: Any) -> str:
    """Why this project's own model cannot be attacked now, for people; empty when it can."""
    if opened.model is None:
        return "This project has no model yet. Label some images of two classes on the Label page first."
    if opened.pool.image_shape is None:
        return (
            "This project's features are not its pixels, so moving pixels does not move them. "
            "Attack a model fitted for this instead."
        )
    return ""


def subject_of(opened: Any) -> str:
    if opened is None:
        other = current.session()
        if other is not None:
            st.markdown(
                f"**{verbatim(other.project.name, 40)}** holds no pictures, so there are no pixels to "
                "change. Try it on pictures that are here:"
            )
        return "fresh"
    picked = st.segmented_control(
        "What to attack",
        list(SUBJECTS),
        default="project" if opened.model is not None else "fresh",
        required=True,
        format_func=SUBJECTS.get,
        key="attack-subject",
    )
    return str(picked or "fresh")


def form() -> None:
    opened = opened_project()
    with st.container(border=True, key="attack-form"):
        subject = subject_of(opened)
        if subject == "project" and cannot(opened):
            st.info(cannot(opened), icon=":material/info:")
            return
        if subject == "project":
            left, right = widgets.split([1.6, 1], "attack-columns", below=900)
            pool, classifier = f"{robustness.OWN}{opened.id}", str(opened.settings["classifier"])
            with left:
                own_model(opened, classifier)
        else:
            right, beside = widgets.split([1, 1], "attack-columns", below=900)
            pools = sources()
            pool = right.selectbox("Images", list(pools), format_func=pools.get, key="attack-pool")
            models = robustness.classifiers()
            with beside:
                classifier = forms.choice(
                    "Model",
                    models,
                    CLASSIFIERS,
                    key="attack-model",
                    first=models[0],
                    help="Models without gradients cannot be attacked here.",
                )
        default = usual_attacks(classifier, opened if subject == "project" else None)
        n_test = right.number_input(
            "Images to attack",
            10,
            10_000,
            360,
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
        row = st.container(horizontal=True, vertical_alignment="center", gap="medium", key="attack-start")
        go = row.container(width="content")
        with row.popover("Attacks and more", icon=":material/tune:", key="attack-more"):
            attacks = which_attacks(default)
            n_train, loss, steps, seed = machinery(fresh=subject == "fresh")
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
                    opened if subject == "project" else None, pool, classifier, tuple(attacks), strongest,
                    n_train, n_test, loss, steps, softmax, seed,
                )  # fmt: skip
            except InputError as error:
                st.error(verbatim(error), icon=":material/error:")
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


def usual_attacks(classifier: str, project: Any) -> list[str]:
    """The attacks to begin with; where the open project's model takes fewer, why."""
    if classifier == "softmax-net":
        return ["fgsm", "pgd", "noise"]  # no variance that an attack could know of
    if project is None or robustness.gives_gradients(project):
        return ["fgsm", "adaptive-pgd", "noise"]
    st.info(
        f"{model_title(classifier)} gives no gradients, so nobody can compute FGSM or PGD on it. "
        "An attack computed on a softmax network can be shown to it (Transfer), and random signs can.",
        icon=":material/info:",
    )
    return ["transfer", "noise"]


def which_attacks(default: list[str]) -> list[str]:
    """The attacks to try."""
    chosen: list[str] = st.pills(
        "Attacks",
        list(ATTACKS),
        selection_mode="multi",
        default=default,
        format_func=lambda n: ATTACKS[n].title,
        key="attack-names" if "adaptive-pgd" in default else f"attack-names-{default[0]}",
    )
    return chosen


def what_is_tried(attacks: list[str]) -> str:
    """A line for each attack: what it does, then its name; the control last."""
    lines = ["Each image is changed in these ways, from nothing to the strongest:"]
    for name in sorted(attacks, key=lambda one: one == CONTROL):
        words = verbatim(re.sub(r" \([^)]*\)", "", ATTACKS[name].summary))
        lines.append(f"- **{verbatim(ATTACKS[name].title)}**: {words}")
    return "\n".join(lines)


def model_title(classifier: str) -> str:
    return verbatim(classifier_title(classifier), 60)


def own_model(opened: Any, classifier: str) -> None:
    items, _ = opened.held_out()
    known = (
        f"{plural(len(items), 'image')} it never learns from, with known classes"
        if len(items)
        else "images it was not trained on; their classes are unknown, so its answer on the clean image "
        "counts as right"
    )
    st.markdown(
        f"**{verbatim(opened.project.name, 40)}**: {model_title(classifier)}, trained on "
        f"{plural(opened.model.n_labelled, 'label')}"
    )
    st.caption(f"Attacked are {known}.")
    if opened.model.seen is not None:
        st.caption(ALONE, help=explain("leans on neighbours"))


def begin(
    project: Any, pool: str, classifier: str, attacks: tuple[str, ...], strongest: float, n_train: int,
    n_test: int, loss: str, steps: int, softmax: bool, seed: int,
) -> None:  # fmt: skip
    from workbench.studies.attacks import AttackSpec

    opened = current.entered(pool.removeprefix(robustness.OWN)) if pool.startswith(robustness.OWN) else None
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
    strengths = tuple(float(round(strongest * share, 4)) for share in (0, 1 / 6, 1 / 3, 1 / 2, 2 / 3, 1))
    spec = AttackSpec(
        pool=pool if opened is None else str(opened.project.pool["name"]),
        classifier=classifier,
        n_train=int(n_train),
        n_test=int(n_test),
        strengths=strengths,
        attacks=attacks,
        loss="" if loss == "cross-entropy" else loss,
        steps=int(steps),
        softmax=softmax,
        seed=int(seed),
        project="" if project is None else str(project.project.name),
    )
    choose(robustness.start(spec, project, fresh))


def title_of(attack: str) -> str:
    return ATTACKS[attack].title


def shown(outcome: Any) -> None:
    from workbench.attacks.detection import DETECTORS

    result = outcome.robustness
    names = {name: DETECTORS[name].title for name in result.detectors}
    picked = st.session_state.get("detector")
    detector = picked if picked in names else next(iter(names))
    k = result.detectors.index(detector)
    # the sentence stands above the controls that it depends on
    said, seen = st.container(), st.container()
    attack, strength = shown_attack(result)
    with said:
        sentence, meaning = verdict(result, k, attack, strength)
        st.markdown(f"**{verbatim(sentence)}**")
        st.markdown(meaning)
        mine = opened_project() if outcome.spec.project else None
        if mine is not None and mine.model is not None and mine.model.seen is not None:
            st.caption(ALONE, help=explain("leans on neighbours"))
    with seen:
        pictures(outcome, k, names, attack, strength)
    with st.expander("How it grows with the strength", key="attack-grows", on_change="rerun") as box:
        if box.open:
            curves(outcome, k, names, strength)
    with st.expander("How well it notices, and by what", key="attack-notices", on_change="rerun") as box:
        if box.open:
            choose_detector(names)
            detection(outcome, k, names, attack, strength)
    with st.expander("One image, looked at closely", key="attack-closely", on_change="rerun") as box:
        if box.open:
            closely(outcome, attack, strength)
    with st.container(border=True, key="caution"):
        st.markdown(CAUTION)
    st.caption(" · ".join(facts(outcome)))
    results(outcome)


def facts(outcome: Any) -> list[str]:
    """What was attacked, for a line below the figures."""
    result, spec = outcome.robustness, outcome.spec
    n = plural(len(result.truth), "image")
    found = [
        model_title(spec.classifier),
        f"the own model of {verbatim(spec.project, 60)}"
        if spec.project
        else verbatim(robustness.pools().get(spec.pool, spec.pool), 60),
        plural(outcome.n_train, "label")
        + (f", fitted in {outcome.fit_seconds:.1f} s" if outcome.fit_seconds else ""),
        f"{n} attacked, {percent(outcome.clean_accuracy)} right before"
        if result.truth_known
        else f"{n} attacked, classes unknown: the answer on the clean image counts as right",
    ]
    if outcome.softmax_accuracy is not None:
        found.append(f"softmax network {percent(outcome.softmax_accuracy)}")
    return found


def choose_detector(names: dict[str, str]) -> None:
    """By what number the model notices; the whole page follows."""
    st.segmented_control(
        "Detector",
        list(names),
        default=next(iter(names)),
        required=True,
        format_func=names.get,
        key="detector",
        persist_state="session",
        help=explain("detector", "variation ratio", "entropy", "BALD"),
    )


def detector_words(title: str) -> str:
    """A detector's title within a sentence."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def shown_attack(result: Any) -> tuple[str, float]:
    """The attack and the strength that every panel shows, from one pair of controls."""
    some = [float(s) for s in result.strengths if s > 0] or [float(result.strengths[-1])]
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom", key="attack-shown-tools"):
        attack = st.segmented_control(
            "Attack", list(result.attacks), default=result.attacks[0], required=True, format_func=title_of,
            key="attack-shown",
        )  # fmt: skip
        strength = some[0]
        if len(some) > 1:
            strength = st.select_slider(
                "Strength", some, value=some[len(some) // 2], format_func=lambda s: f"{s:.3g}",
                key="attack-at", width=320, help=explain("strength"),
            )  # fmt: skip
        st.toggle("Only where the attack worked", key="attack-worked")
    return attack if attack in result.attacks else result.attacks[0], float(strength)


def verdict(result: Any, k: int, attack: str, strength: float) -> tuple[str, str]:
    """What this attack does at this strength and how much of it is noticed; what that means for a user."""
    from workbench.attacks.detection import roc

    a, s = result.row(attack, strength)
    curve = roc(result.clean_scores[k], result.scores[a, s, k])
    found = float(np.max(curve.true_positive[curve.false_positive <= 0.05 + 1e-12], initial=0))
    before, after = float(np.mean(result.clean_codes == result.truth)), float(result.accuracy[a, s])
    sentence = (
        f"Tampered with by {title_of(attack)} at strength {strength:.3g}, the model is right on "
        f"{percent(after, 0)} of the images instead of {percent(before, 0)}, and notices "
        f"{percent(found, 0)} of them, if it may sound 5 false alarms in 100."
    )
    if before - after < 0.05:
        return sentence, "At this strength the answers hold. Make it stronger to see where they break."
    if found >= 0.8:
        return sentence, "Let it put aside what it is unsure of: most of these images would reach a person."
    if found >= 0.3:
        return sentence, "Putting aside what it is unsure of catches a part of them. Do not rely on it alone."
    return sentence, "Its doubt is no alarm here: whoever may change your images can change its answers."


def drawn(fig: Any, key: str, alt: str) -> None:
    widgets.figure(fig, key, alt)
    downloads.figure_downloads(fig, f"attack-{key}", f"save-{key}")


def curves(outcome: Any, k: int, names: dict[str, str], strength: float) -> None:
    result, detector = outcome.robustness, list(names.values())[k]
    accuracy = {title_of(a): result.accuracy[i] for i, a in enumerate(result.attacks)}
    suspicion = {title_of(a): result.mean_scores[i, :, k] for i, a in enumerate(result.attacks)}
    if result.softmax_accuracy is not None:
        accuracy["Softmax network, its own FGSM"] = result.softmax_accuracy
    st.header("What the attacks do", help=explain("strength"))
    drawn(
        figures.strength_curves(
            result.strengths,
            accuracy,
            suspicion,
            score=detector,
            controls=(title_of(CONTROL),),
            mark=strength,
        ),
        "strength-curves",
        f"Accuracy and mean {detector} of the attacked images against the strength of the attack",
    )


def detection(outcome: Any, k: int, names: dict[str, str], attack: str, strength: float) -> None:
    from workbench.attacks.detection import confusion_at, roc, threshold_at

    result, detector = outcome.robustness, list(names.values())[k]
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.header("Whether they are noticed", help=explain("AUC", "detector"))
        successful = st.toggle(
            "Successful attacks only",
            key="attack-successful",
            help="Count an attacked image only where a right answer became a wrong one.",
        )
    areas = result.auc(successful_only=successful)
    drawn(
        figures.detection_curves(
            result.strengths,
            {
                title_of(a): {n: areas[i, :, j] for j, n in enumerate(names.values())}
                for i, a in enumerate(result.attacks)
            },
            mark=strength,
        ),
        "detection-curves",
        "Area under the ROC curve of each detector against strength, one panel an attack",
    )
    if strength <= 0:
        return
    left, right = widgets.split([1, 1], "attack-panels", below=1000)
    a, s = result.row(attack, strength)
    clean = result.clean_scores[k]
    lines, size = {}, {}
    for i, name in enumerate(result.attacks):
        attacked = result.scores[i, s, k]
        attacked = attacked[result.successful[i, s]] if successful else attacked
        if len(attacked):
            curve = roc(clean, attacked)
            lines[title_of(name)] = (curve.false_positive, curve.true_positive)
            size[title_of(name)] = areas[i, s, k]
    with left:
        drawn(
            figures.roc_curves(lines, areas=size, controls=(title_of(CONTROL),), height=420),
            "roc",
            f"ROC curves of {detector} at strength {strength:.3g}, with the point of 5 % false alarms",
        )
        st.caption("Numbers are areas. Marks: the most that is found at no more than 5 % false alarms.")
    with right:
        attacked = result.scores[a, s, k]
        attacked = attacked[result.successful[a, s]] if successful else attacked
        both = np.concatenate([clean, attacked])
        low, high = float(both.min()), float(both.max())
        if high <= low or not len(attacked):
            st.caption("There is nothing to tell apart here.")
            return
        threshold = st.slider(
            "Flag from",
            low,
            high,
            float(np.clip(threshold_at(clean, 0.05), low, high)),
            (high - low) / 200,
            format="%.3f",
            key=f"threshold-{outcome.spec.seed}-{k}-{a}-{s}-{successful}",
            help="Begins where 5 % of the clean images are flagged.",
        )
        drawn(
            figures.score_histograms(clean, attacked, threshold, score=detector, height=270),
            "histograms",
            f"Histograms of {detector} of clean and attacked images with the threshold",
        )
        table = confusion_at(clean, attacked, threshold)
        counts(table)


def counts(table: Any) -> None:
    import pandas as pd

    clean, attacked = table.clean_flagged + table.clean_passed, table.attacked_flagged + table.attacked_passed
    st.dataframe(
        pd.DataFrame(
            {
                "Images": ["Clean", "Attacked"],
                "Flagged": [
                    f"{table.clean_flagged:,} ({percent(table.clean_flagged / clean)})",
                    f"{table.attacked_flagged:,} ({percent(table.attacked_flagged / attacked)})",
                ],
                "Let through": [
                    f"{table.clean_passed:,} ({percent(table.clean_passed / clean)})",
                    f"{table.attacked_passed:,} ({percent(table.attacked_passed / attacked)})",
                ],
            }
        ),
        hide_index=True,
        key="confusion",
        alt="Images flagged and let through at this threshold",
    )


def pictures(outcome: Any, k: int, names: dict[str, str], attack: str, strength: float) -> None:
    result, detector = outcome.robustness, list(names.values())[k]
    kept = result.examples
    if kept is None:
        return
    a, s = result.row(attack, strength)
    order = worked_on(result, a, s)
    if not order:
        st.caption("It worked on none of the images kept to look at.")
        return

    def name(code: int) -> str:
        return verbatim(result.classes[code], 14)

    widgets.style(
        ".st-key-examples { display: grid; gap: 1rem;"
        " grid-template-columns: repeat(8, minmax(0, 1fr)); }"
        "@media (max-width: 999px) { .st-key-examples { grid-template-columns: repeat(4, minmax(0, 1fr)); } }"
        ".st-key-examples > div { width: 100%; }"
    )
    grid = st.container(key="examples")
    for i in order:
        item = int(kept.items[i])
        with grid, st.container(key=f"example-{i}", gap="xsmall"):
            trio(kept.clean[i], kept.attacked[a, s, i], outcome.image_shape, strength)
            before, after = int(result.clean_codes[item]), int(result.codes[a, s, item])
            true = int(result.truth[item])
            now = f":{'green' if after == true else 'red'}[{name(after)}]"
            st.markdown(f"**{name(true)}**, said {name(before)}, now **{now}**")
            form = "{:.0%}" if result.detectors[k] in SHARES else "{:.3f}"
            doubt = (form.format(v) for v in (result.clean_scores[k, item], result.scores[a, s, k, item]))
            st.caption(" → ".join(doubt).replace("%", " %"))
    st.caption(
        "Above the clean image, what was added (grey is nothing), and the image tampered with. Below what it "
        f"is, what the model said and says now, and its {detector_words(detector)} before and after: the "
        "higher, the more it doubts.",
        help=explain("detector", "variation ratio", "entropy", "BALD"),
    )


def worked_on(result: Any, a: int, s: int) -> list[int]:
    """Places of the kept images that are shown: those alone that were misled, if somebody asked for it."""
    worked = result.successful[a, s][result.examples.items]
    only = st.session_state.get("attack-worked", False)
    return ([int(i) for i in np.flatnonzero(worked)] if only else list(range(len(worked))))[:8]


def closely(outcome: Any, attack: str, strength: float) -> None:
    """The class functions of one image before and after."""
    result, kept = outcome.robustness, outcome.robustness.examples
    a, s = result.row(attack, strength)
    order = [] if kept is None or kept.latent is None else worked_on(result, a, s)
    if not order:
        st.caption("There is no image to look at: this model has no functions to draw, or none was misled.")
        return
    picked = st.segmented_control(
        "Look closer at image",
        order,
        default=order[0],
        required=True,
        format_func=lambda i: str(order.index(i) + 1) if i in order else "–",
        key=f"closer-{len(order)}-{a}-{s}",
    )
    i = picked if picked in order else order[0]
    clean = kept.clean_latent
    drawn(
        figures.latent_bars(
            (clean.mean[i], np.sqrt(clean.variance[i])),
            (kept.latent.mean[a, s, i], np.sqrt(kept.latent.variance[a, s, i])),
            result.classes,
            truth=int(result.truth[int(kept.items[i])]),
        ),
        "latent-bars",
        "The class functions of this image before and after the attack, with two standard deviations",
    )
    st.caption("The latent function of each class with two standard deviations. ★ marks the true class.")


def trio(clean: Any, attacked: Any, shape: tuple[int, ...], strength: float) -> None:
    from workbench.figures.thumbnails import enlarged, sheet

    def eight(image: Any) -> Any:
        return np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)

    before, after = np.reshape(clean, shape), np.reshape(attacked, shape)
    parts = [eight(before), figures.perturbation_image(before, after, strength), eight(after)]
    st.image(
        sheet([enlarged(part, 96, smooth=False) for part in parts], 1, gap=3, ground=128),
        width="stretch",
        output_format="PNG",
        alt="Clean image, perturbation and attacked image",
    )


def results(outcome: Any) -> None:
    with st.container(horizontal=True, key="attack-downloads", vertical_alignment="center"):
        downloads.button(
            "Results (zip)",
            lambda out: out.write(outcome.archive()),
            f"attack-{outcome.spec.pool.replace(':', '-')}-{outcome.spec.seed}.zip",
            "download-attack",
            help="The table, every image's scores, and the settings with seed and versions.",
        )
        st.caption(
            f"Seed {outcome.spec.seed}. The settings inside name every version, so that it can be repeated."
        )


def drawn_example() -> None:
    """What the page will show, before anything was attacked."""
    from workbench.figures.examples import attack

    widgets.figure(attack(), "attack-example", "An example: accuracy and doubt against the strength")
    st.caption("What you will see: pictures before and after, how many stay right, how many are noticed.")


st.title("Adversarial", help=explain("detector", "AUC", "strength"))
st.markdown(
    "Small changes of the pixels, chosen to mislead, turn right answers into wrong ones. See how well the "
    "model notices that a picture was tampered with."
)
token = chosen()
job = robustness.job_of(token) if token is not None else None
if token is not None and job is None:
    choose(None)
    st.info(
        "That experiment is gone: results live as long as the server. Start it again.", icon=":material/info:"
    )
if job is not None and (job.active or job.status in ("failed", "cancelled")):
    widgets.job_panel(job, "attack-job")
if job is not None and job.status == "done":
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("New attack", key="new-attack", type="tertiary", icon=":material/add:"):
            choose(None)
            st.rerun()
    shown(job.result)
elif job is None or not job.active:
    form()
    drawn_example()
