"""Attacked images before and after, with what the model says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.shell import downloads, widgets
from workbench.app.words.glossary import explain
from workbench.app.words.text import percent, verbatim
from workbench.figures import adversarial as figures

if TYPE_CHECKING:
    from workbench.attacks.robustness import Robustness
    from workbench.studies.attacks import AttackOutcome

SHARES = ("variation-ratio", "variation-ratio-mc", "least-confident")


def drawn(fig: Any, key: str, alt: str) -> None:
    """A figure with the menu that saves it."""
    downloads.figure(fig, key, alt, f"attack-{key}")


def detector_words(title: str) -> str:
    """A detector's title within a sentence."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def pictures(outcome: AttackOutcome, k: int, names: dict[str, str], attack: str, strength: float) -> None:
    """Some images before and after, with what the model says of them."""
    result, detector = outcome.robustness, list(names.values())[k]
    examples = result.examples
    if examples is None:
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
        "@media (max-width: 1199px) { .st-key-examples { gap: 0.5rem; }"
        " .st-key-examples [data-testid=stCaptionContainer] { font-size: 0.8rem; } }"
        "@media (max-width: 999px) { .st-key-examples { grid-template-columns: repeat(4, minmax(0, 1fr)); } }"
        ".st-key-examples > div { width: 100%; }"
    )
    grid = st.container(key="examples")
    for i in order:
        item = int(examples.items[i])
        with grid, st.container(key=f"example-{i}", gap="xsmall"):
            trio(examples.clean[i], examples.attacked[a, s, i], outcome.image_shape, strength)
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
        f"is, what the model said and says now, and its {detector_words(detector)} before and after: the "
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


def closely(outcome: AttackOutcome, attack: str, strength: float) -> None:
    """The class functions of one image before and after."""
    result, examples = outcome.robustness, outcome.robustness.examples
    a, s = result.row(attack, strength)
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
    from workbench.figures.thumbnails import magnified, sheet

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
