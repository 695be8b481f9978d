"""Results of an attack: the verdict, images, curves, and how well it is noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.compare import attack_form
from workbench.app.compare.attack_form import ALONE, CONTROL, model_title, opened_project
from workbench.app.compare.comparison_sources import title_of_pool
from workbench.app.shell import downloads, widgets
from workbench.app.words.text import explain, percent, plural, verbatim
from workbench.attacks import ATTACKS
from workbench.attacks.robustness import DETECTORS, confusion_at, threshold_at
from workbench.figures import adversarial as figures
from workbench.figures.parts import example, magnified, sheet
from workbench.metrics import roc_curve

if TYPE_CHECKING:
    from workbench.attacks.robustness import Robustness
    from workbench.studies.attacks import AttackOutcome

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


def title_of(attack: str) -> str:
    """An attack's title."""
    return ATTACKS[attack].title


@dataclass(frozen=True)
class View:
    """One attack at one strength, as one detector sees it.

    Attributes:
        outcome: of the experiment.
        names: title of each detector, in order.
        k: number of the detector that is looked at.
        attack: its name.
        strength: of it.
    """

    outcome: AttackOutcome
    names: list[str]
    k: int
    attack: str
    strength: float

    @property
    def result(self) -> Robustness:
        """Measured robustness."""
        return self.outcome.robustness

    @property
    def detector(self) -> str:
        """Title of the detector."""
        return self.names[self.k]

    @property
    def place(self) -> tuple[int, int]:
        """Numbers of the attack and of the strength."""
        return self.result.row(self.attack, self.strength)


def shown(outcome: AttackOutcome) -> None:
    """Results of an attack: the verdict, the images, and figures that open."""
    result = outcome.robustness
    picked = st.session_state.get("detector")
    k = result.detectors.index(picked) if picked in result.detectors else 0
    # the sentence stands above the controls that it depends on
    heading, gallery = st.container(), st.container()
    view = View(outcome, [DETECTORS[name].title for name in result.detectors], k, *shown_attack(result))
    with heading:
        sentence, meaning = verdict(view)
        st.markdown(f"**{verbatim(sentence)}**")
        st.markdown(meaning)
        project = opened_project() if outcome.spec.project else None
        if project is not None and project.model is not None and project.model.seen is not None:
            st.caption(ALONE, help=explain("leans on neighbours"))
    with gallery:
        pictures(view)
    widgets.folded("How it grows with the strength", "attack-grows", curves, view)
    widgets.folded("How well it notices, and by what", "attack-notices", detection, view)
    widgets.folded("One image, looked at closely", "attack-closely", closely, view)
    with st.container(border=True, key="caution"):
        st.markdown(CAUTION)
    st.caption(" · ".join(facts(outcome)))
    results(outcome)


def facts(outcome: AttackOutcome) -> list[str]:
    """Target of the attack, for a line below the figures."""
    result, spec = outcome.robustness, outcome.spec
    n = plural(len(result.truth), "image")
    parts = [
        model_title(spec.classifier),
        f"the own model of {verbatim(spec.project, 60)}"
        if spec.project
        else verbatim(attack_form.sources().get(spec.pool) or title_of_pool(spec.pool), 60),
        plural(outcome.n_train, "label")
        + (f", fitted in {outcome.fit_seconds:.1f} s" if outcome.fit_seconds else ""),
        f"{n} attacked, {percent(outcome.clean_accuracy)} right before"
        if result.truth_known
        else f"{n} attacked, classes unknown: the answer on the clean image counts as right",
    ]
    if outcome.softmax_accuracy is not None:
        parts.append(f"softmax network {percent(outcome.softmax_accuracy)}")
    return parts


def shown_attack(result: Robustness) -> tuple[str, float]:
    """The attack and the strength that every panel shows, from one pair of controls."""
    strengths = [float(s) for s in result.strengths if s > 0] or [float(result.strengths[-1])]
    with widgets.row("attack-shown-tools", align="bottom", gap="large"):
        attack = st.segmented_control(
            "Attack",
            list(result.attacks),
            default=result.attacks[0],
            required=True,
            format_func=title_of,
            key="attack-shown",
        )
        strength = strengths[0]
        if len(strengths) > 1:
            strength = st.select_slider(
                "Strength",
                strengths,
                value=strengths[len(strengths) // 2],
                format_func=lambda s: f"{s:.3g}",
                key="attack-at",
                width=320,
                help=explain("strength"),
            )
        st.toggle(
            "Only where the attack worked",
            key="attack-worked",
            help="In pictures, curves and areas an attacked image counts only where a right answer became a "
            "wrong one.",
        )
    return attack if attack in result.attacks else result.attacks[0], float(strength)


def verdict(view: View) -> tuple[str, str]:
    """Effect of this attack at this strength, the share that is noticed, and what that means for a user."""
    result, (a, s) = view.result, view.place
    curve = roc_curve(result.clean_scores[view.k], result.scores[a, s, view.k])
    share = float(np.max(curve.true_positive[curve.false_positive <= 0.05 + 1e-12], initial=0))
    before, after = float(np.mean(result.clean_codes == result.truth)), float(result.accuracy[a, s])
    sentence = (
        f"Tampered with by {title_of(view.attack)} at strength {view.strength:.3g}, the model is right on "
        f"{percent(after, 0)} of the images instead of {percent(before, 0)}, and notices "
        f"{percent(share, 0)} of them, if it may sound 5 false alarms in 100."
    )
    if before - after < 0.05:
        return sentence, "At this strength the answers hold. Make it stronger to see where they break."
    if share >= 0.8:
        return sentence, "Let it put aside what it is unsure of: most of these images would reach a person."
    if share >= 0.3:
        return sentence, "Putting aside what it is unsure of catches a part of them. Do not rely on it alone."
    return sentence, "Its doubt is no alarm here: whoever may change your images can change its answers."


def curves(view: View) -> None:
    """Accuracy and mean doubt against the strength."""
    result = view.result
    accuracy = {title_of(a): result.accuracy[i] for i, a in enumerate(result.attacks)}
    suspicion = {title_of(a): result.mean_scores[i, :, view.k] for i, a in enumerate(result.attacks)}
    if result.softmax_accuracy is not None:
        accuracy["Softmax network, its own FGSM"] = result.softmax_accuracy
    st.header("What the attacks do", help=explain("strength"))
    drawn(
        figures.strength_curves(
            result.strengths,
            accuracy,
            suspicion,
            score=view.detector,
            controls=(title_of(CONTROL),),
            mark=view.strength,
        ),
        "strength-curves",
        f"Accuracy and mean {view.detector} of the attacked images against the strength of the attack",
    )


def results(outcome: AttackOutcome) -> None:
    """The button that saves everything."""
    with widgets.row("attack-downloads"):
        downloads.button(
            "Results (zip)",
            outcome.archive,
            f"attack-{title_of_pool(outcome.spec.pool).replace(':', '-')}-{outcome.spec.seed}.zip",
            "download-attack",
            help="The table, every image's scores, and the settings with seed and versions.",
        )
        st.caption(
            f"Seed {outcome.spec.seed}. The settings inside name every version, so that it can be repeated."
        )


def drawn_example() -> None:
    """Preview of the page, before anything was attacked."""
    widgets.figure(example("attack"), "attack-example", "An example: accuracy and doubt against the strength")
    st.caption("What you will see: pictures before and after, how many stay right, how many are noticed.")


def detection(view: View) -> None:
    """Separation of attacked images from clean ones."""
    result, detector = view.result, view.detector
    # by what number the model notices; the whole page follows
    st.segmented_control(
        "Detector",
        list(result.detectors),
        default=result.detectors[0],
        required=True,
        format_func=lambda name: DETECTORS[name].title,
        key="detector",
        persist_state="session",
        help=explain("detector", "variation ratio", "entropy", "BALD"),
    )
    st.header("Whether they are noticed", help=explain("AUC", "detector"))
    successful = st.session_state.get("attack-worked", False)
    areas = result.auc(successful_only=successful)
    drawn(
        figures.detection_curves(
            result.strengths,
            {
                title_of(a): {n: areas[i, :, j] for j, n in enumerate(view.names)}
                for i, a in enumerate(result.attacks)
            },
            mark=view.strength,
        ),
        "detection-curves",
        "Area under the ROC curve of each detector against strength, one panel an attack",
    )
    if view.strength <= 0:
        return
    left, right = widgets.split([1, 1], "attack-panels", below=1000)
    a, s = view.place
    clean = result.clean_scores[view.k]
    attacked = [
        result.scores[i, s, view.k][result.successful[i, s] if successful else slice(None)]
        for i in range(len(result.attacks))
    ]
    lines, size = {}, {}
    for i, scores in enumerate(attacked):
        if len(scores):
            curve, title = roc_curve(clean, scores), title_of(result.attacks[i])
            lines[title] = (curve.false_positive, curve.true_positive)
            size[title] = areas[i, s, view.k]
    with left:
        drawn(
            figures.roc_curves(lines, areas=size, controls=(title_of(CONTROL),), height=420),
            "roc",
            f"ROC curves of {detector} at strength {view.strength:.3g}, with the point of 5\u00a0% false "
            "alarms",
        )
        st.caption("Numbers are areas. Marks: the most that is found at no more than 5\u00a0% false alarms.")
    with right:
        scores = np.concatenate([clean, attacked[a]])
        low, high = float(scores.min()), float(scores.max())
        if high <= low or not len(attacked[a]):
            st.caption("There is nothing to tell apart here.")
            return
        threshold = st.slider(
            "Flag from",
            low,
            high,
            float(np.clip(threshold_at(clean, 0.05), low, high)),
            (high - low) / 200,
            format="%.3f",
            key=f"threshold-{view.outcome.spec.seed}-{view.k}-{a}-{s}-{successful}",
            help="Begins where 5\u00a0% of the clean images are flagged.",
        )
        drawn(
            figures.score_histograms(clean, attacked[a], threshold, score=detector, height=270),
            "histograms",
            f"Histograms of {detector} of clean and attacked images with the threshold",
        )
        counts(confusion_at(clean, attacked[a], threshold))


def counts(table: Any) -> None:
    """Images flagged and let through at a threshold."""
    rows = []
    for images, flagged, passed in (
        ("Clean", table.clean_flagged, table.clean_passed),
        ("Attacked", table.attacked_flagged, table.attacked_passed),
    ):
        numbers = (f"{n:,} ({percent(n / (flagged + passed))})" for n in (flagged, passed))
        rows.append(dict(zip(("Images", "Flagged", "Let through"), (images, *numbers), strict=True)))
    widgets.grid(rows, "confusion", "Images flagged and let through at this threshold")


SHARES = ("variation-ratio", "variation-ratio-mc", "least-confident")


def drawn(fig: Any, key: str, alt: str) -> None:
    """A figure with the menu that saves it."""
    downloads.figure(fig, key, alt, f"attack-{key}")


def pictures(view: View) -> None:
    """Some images before and after, with what the model says of them."""
    result, k, (a, s) = view.result, view.k, view.place
    examples = result.examples
    if examples is None:
        return
    detector = view.detector
    within = detector if detector[:2].isupper() else detector[:1].lower() + detector[1:]
    order = worked_on(result, a, s)
    if not order:
        st.caption("It worked on none of the images kept to look at.")
        return

    def name(code: int) -> str:
        return verbatim(result.classes[code], 14)

    widgets.style(
        ".st-key-examples { display: grid; gap: 1rem;"
        " grid-template-columns: repeat(8, minmax(0, 1fr)); }"
        "@media (max-width: 1199px) { .st-key-examples { gap: 0.5rem; }"
        " .st-key-examples [data-testid=stCaptionContainer] { font-size: 0.8rem; } }"
        "@media (max-width: 999px) { .st-key-examples { grid-template-columns: repeat(4, minmax(0, 1fr)); } }"
        ".st-key-examples > div { width: 100%; }"
    )
    grid = st.container(key="examples")
    for i in order:
        item = int(examples.items[i])
        with grid, st.container(key=f"example-{i}", gap="xsmall"):
            trio(examples.clean[i], examples.attacked[a, s, i], view.outcome.image_shape, view.strength)
            before, after = int(result.clean_codes[item]), int(result.codes[a, s, item])
            true = int(result.truth[item])
            answer = f":{'green' if after == true else 'red'}[{name(after)}]"
            st.markdown(f"**{name(true)}**, said {name(before)}, now **{answer}**")
            is_share = result.detectors[k] in SHARES
            scores = result.clean_scores[k, item], result.scores[a, s, k, item]
            doubt = (percent(score, 0) if is_share else f"{score:.3f}" for score in scores)
            # eight stand in a row at 1,024 pixels, and a pair is not torn apart
            st.caption("\u00a0→\u00a0".join(doubt))
    st.caption(
        "Above the clean image, what was added (grey is nothing), and the image tampered with. Below what it "
        f"is, what the model said and says now, and its {within} before and after: the "
        "higher, the more it doubts.",
        help=explain("detector", "variation ratio", "entropy", "BALD"),
    )


def worked_on(result: Robustness, a: int, s: int) -> list[int]:
    """Places of the kept images that are shown: those alone that were misled, if somebody asked for it."""
    if result.examples is None:
        return []
    worked = result.successful[a, s][result.examples.items]
    only = st.session_state.get("attack-worked", False)
    return ([int(i) for i in np.flatnonzero(worked)] if only else list(range(len(worked))))[:8]


def closely(view: View) -> None:
    """The class functions of one image before and after."""
    result, examples, (a, s) = view.result, view.result.examples, view.place
    order = worked_on(result, a, s)
    if not order or examples is None or examples.latent is None or examples.clean_latent is None:
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
    clean = examples.clean_latent
    drawn(
        figures.latent_bars(
            (clean.mean[i], np.sqrt(clean.variance[i])),
            (examples.latent.mean[a, s, i], np.sqrt(examples.latent.variance[a, s, i])),
            result.classes,
            truth=int(result.truth[int(examples.items[i])]),
        ),
        "latent-bars",
        "The class functions of this image before and after the attack, with two standard deviations",
    )
    st.caption("The latent function of each class with two standard deviations. ★ marks the true class.")


def trio(clean: Any, attacked: Any, shape: tuple[int, ...], strength: float) -> None:
    """The clean image, what was added, and the attacked image, below each other."""

    def eight(image: Any) -> Any:
        return np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)

    before, after = np.reshape(clean, shape), np.reshape(attacked, shape)
    parts = [eight(before), figures.perturbation_image(before, after, strength), eight(after)]
    st.image(
        sheet([magnified(part, 96) for part in parts], 1, gap=3, ground=128),
        width="stretch",
        output_format="PNG",
        alt="Clean image, perturbation and attacked image",
    )
