"""Attacks on images: accuracy and suspicion against strength, and how well attacked images are told apart."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme
from workbench.shares import in_percent
from workbench.short_names import short_names

STRENGTH = "Strength, 0 to 1"
CLEAN = theme.CATEGORICAL[0]
ATTACKED = theme.CATEGORICAL[1]
FALSE_ALARMS = 0.05
"""Share of them at which a point is drawn on a ROC curve."""


def strength_curves(
    strengths: Array,
    accuracy: Mapping[str, Array],
    suspicion: Mapping[str, Array],
    *,
    score: str,
    controls: Sequence[str] = (),
    mark: float | None = None,
    height: int = 400,
) -> go.Figure:
    """Accuracy and mean score against strength, one colour an attack: the papers' figure.

    Args:
        strengths: [S] ascending.
        accuracy: name -> [S] share still classified rightly.
        suspicion: name -> [S] mean score of the attacked images; names may be missing.
        score: what the score is called.
        controls: names drawn as what the others are compared with.
        mark: the strength that is looked at.
        height: in pixels.

    Returns:
        Two panels side by side that share the strengths.
    """
    if not accuracy:
        return theme.empty("Nothing was measured yet", height)
    fig = _panels(["Accuracy", f"Mean {_lower(score)}"], height)
    look = parts.looks(accuracy, controls)
    for name in sorted(accuracy, key=lambda n: n not in controls):
        for column, values, form in ((1, accuracy[name], ".1%"), (2, suspicion.get(name), ".3f")):
            if values is not None:
                hover = f"strength %{{x:.3g}}: %{{y:{form}}}"
                line = parts.line(strengths, values, name, look[name], hover=hover, legend=column == 1)
                fig.add_trace(line, row=1, col=column)
    fig.update_yaxes(range=[-0.02, 1.02], tickformat=".0%", col=1)
    fig.update_yaxes(rangemode="tozero", col=2)
    parts.mark_at(fig, mark)
    return fig


def detection_curves(
    strengths: Array,
    areas: Mapping[str, Mapping[str, Array]],
    *,
    mark: float | None = None,
) -> go.Figure:
    """Area under the ROC curve against strength, one panel an attack and one line a detector.

    Args:
        strengths: [S] ascending.
        areas: attack -> detector -> [S], NaN where there is none.
        mark: the strength that is looked at.

    Returns:
        The panels, each with the line of a detector that guesses.
    """
    height = 360
    names = [
        name for name, lines in areas.items() if any(np.isfinite(values).any() for values in lines.values())
    ]
    if not names:
        return theme.empty("No attack changed a right answer into a wrong one", height)
    fig = _panels(names, height)
    for column, name in enumerate(names, start=1):
        look = parts.looks(areas[name])
        for detector, values in areas[name].items():
            hover = "strength %{x:.3g}: %{y:.3f}"
            line = parts.line(strengths, values, detector, look[detector], hover=hover, legend=column == 1)
            fig.add_trace(line, row=1, col=column)
        ends = [float(np.min(strengths)), float(np.max(strengths))]
        fig.add_trace(parts.diagonal(ends, [0.5, 0.5]), row=1, col=column)
    fig.update_yaxes(range=[-0.02, 1.02])
    fig.update_yaxes(title="Area under the ROC curve", col=1)
    parts.mark_at(fig, mark)
    # where no line passes: all begin at guessing, and few end below it
    fig.add_annotation(
        text="dotted: guessing",
        showarrow=False,
        x=0.03,
        y=0.02,
        xref="x domain",
        yref="y domain",
        xanchor="left",
        yanchor="bottom",
        font={"size": 11, "color": theme.NEUTRAL},
    )
    parts.clear_of_tools(fig)
    return fig


def roc_curves(
    curves: Mapping[str, tuple[Array, Array]],
    *,
    areas: Mapping[str, float],
    controls: Sequence[str] = (),
    height: int = 400,
) -> go.Figure:
    """ROC curves, with what each finds at a chosen rate of false alarms.

    Args:
        curves: name -> (share of clean images flagged [T], share of attacked images flagged [T]).
        areas: name -> area under the curve.
        controls: names drawn as what the others are compared with.
        height: in pixels.

    Returns:
        The figure.
    """
    if not curves:
        return theme.empty("No attacked image to find", height)
    fig = theme.figure(
        x="Clean images flagged",
        y="Attacked images flagged",
        height=height,
        x_options={"range": [-0.01, 1.01], "tickformat": ".0%"},
        y_options={"range": [-0.01, 1.01], "tickformat": ".0%"},
    )
    fig.add_trace(parts.diagonal())
    look = parts.looks(curves, controls)
    for name in sorted(curves, key=lambda n: n not in controls):
        false_rates, hit_rates = (np.asarray(part) for part in curves[name])
        hover = "of the clean %{x:.1%}, of the attacked %{y:.1%}"
        curve = parts.line(false_rates, hit_rates, name, look[name], hover=hover, marks=False)
        fig.add_trace(curve.update(name=f"{theme.text(name)} · {areas[name]:.3f}"))
        # what a threshold that keeps to the rate finds: no interpolation between thresholds
        within = np.flatnonzero(false_rates <= FALSE_ALARMS + 1e-12)[-1]
        hover = f"at most {in_percent(FALSE_ALARMS)} false alarms: %{{y:.1%}} found"
        mark = parts.line(
            false_rates[[within]], hit_rates[[within]], name, look[name], hover=hover, legend=False
        )
        fig.add_trace(
            mark.update(mode="markers", marker={"size": 11, "line": {"width": 1.5, "color": "white"}})
        )
    fig.add_vline(x=FALSE_ALARMS, line={"color": theme.NEUTRAL, "dash": "dot", "width": 1})
    return fig


def score_histograms(
    clean: Array,
    attacked: Array,
    threshold: float,
    *,
    score: str,
    height: int = 340,
) -> go.Figure:
    """Distributions of a detector's scores over clean and attacked images, with the threshold.

    Args:
        clean: [n] scores; those that are no finite number are left out.
        attacked: [m] scores, likewise.
        threshold: images at or above it are flagged.
        score: title of the x axis.
        height: in pixels.

    Returns:
        The figure, with shares of each kind.
    """
    clean, attacked = (np.asarray(s, dtype=float) for s in (clean, attacked))
    clean, attacked = clean[np.isfinite(clean)], attacked[np.isfinite(attacked)]
    scores = np.concatenate([clean, attacked])
    if scores.size == 0:
        return theme.empty("No image to score", height)
    low, high = float(scores.min()), float(scores.max())
    edges = np.linspace(low, high if high > low else low + 1.0, 41)
    fig = theme.figure(
        x=score, y="Share of images", height=height, y_options={"tickformat": theme.SHARE_TICKS}
    )
    for values, name, colour in ((clean, "clean", CLEAN), (attacked, "attacked", ATTACKED)):
        if len(values) == 0:
            continue
        share = np.histogram(values, edges)[0] / len(values)
        fig.add_bar(
            x=0.5 * (edges[1:] + edges[:-1]),
            y=share,
            width=np.diff(edges),
            name=f"{theme.text(name)} · n = {len(values):,}",
            marker={"color": theme.translucent(colour, 0.55), "line": {"width": 1, "color": colour}},
            hovertemplate=f"<b>{theme.text(name)}</b><br>{theme.text(score)} about %{{x:.3f}}: %{{y:.1%}}"
            "<extra></extra>",
        )
    fig.add_vline(
        x=float(np.clip(threshold, edges[0], edges[-1])),
        line={"color": theme.NEUTRAL, "width": 2},
        # said in the legend: beside the line the words stand on the bars
        name="flagged from here",
        showlegend=True,
    )
    fig.update_layout(barmode="overlay", bargap=0)
    return fig


def latent_bars(
    before: tuple[Array, Array],
    after: tuple[Array, Array],
    classes: Sequence[object],
    *,
    truth: int | None = None,
) -> go.Figure:
    """The class GPs of one image before and after: means with two standard deviations.

    Args:
        before: mean [C] and standard deviation [C] of the clean image's latent functions.
        after: the same of the attacked image.
        classes: [C] names.
        truth: code of the true class, marked with a star.

    Returns:
        The figure.
    """
    short = short_names(classes, 14)
    names = [theme.text(name) + (" ★" if code == truth else "") for code, name in enumerate(short)]
    fig = theme.figure(y="Latent function, mean ± 2 sd", height=300)
    places = np.arange(len(names))
    for (mean, deviation), title, colour, shift in (
        (before, "clean", CLEAN, -0.19),
        (after, "attacked", ATTACKED, 0.19),
    ):
        fig.add_bar(
            x=places + shift,
            y=mean,
            width=0.36,
            name=title,
            marker={"color": theme.translucent(colour, 0.75)},
            error_y={"type": "data", "array": 2 * np.asarray(deviation), "color": theme.NEUTRAL},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {title}: %{{y:.2f}} ± %{{error_y.array:.2f}}<extra></extra>",
        )
    fig.update_xaxes(tickvals=places.tolist(), ticktext=names)
    return fig


def perturbation_image(before: Array, after: Array, strength: float) -> Array:
    """Difference that an attack added, as an image: grey is no change, white and black are the full strength.

    Args:
        before: [H, W] or [H, W, 3] in [0, 1].
        after: the same shape.
        strength: the largest change.

    Returns:
        uint8, the same shape.
    """
    change = (np.asarray(after) - np.asarray(before)) / (2.0 * strength if strength > 0 else 1.0)
    return np.rint(255 * np.clip(0.5 + change, 0, 1)).astype(np.uint8)


def _panels(titles: Sequence[str], height: int) -> go.Figure:
    """Panels over the strength."""
    spacing = 0.24 / (len(titles) + 1)
    fig = parts.panels(titles, height=height, x=STRENGTH, horizontal_spacing=spacing)
    if len(titles) > 2:
        fig.update_xaxes(title="Strength")
    return fig


def _lower(title: str) -> str:
    # "BALD" stays as it is
    return title if title[:2].isupper() else title[:1].lower() + title[1:]
