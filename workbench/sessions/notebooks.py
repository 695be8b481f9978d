"""Look of sessions and rounds in a notebook."""

from html import escape
from math import isfinite
from typing import Any

from workbench.figures.curves import sparkline
from workbench.metrics import share_interval
from workbench.metrics.checks import ENOUGH
from workbench.pools.notebooks import class_words, counted, pool_words, table_html

_MEASURES = {
    "error": "error",
    "nll": "log loss, nats",
    "brier": "Brier score",
    "ece": "calibration error",
    "balanced_error": "balanced error",
    "macro_f1": "macro F1",
}


def session_words(session: Any) -> str:
    """A session in a line: its project, how far it is, what the model is worth."""
    return f"Session {session.project.name!r} of {_standing(session)}"


def _standing(session: Any) -> str:
    state = session.state
    parts = [
        f"{state.n_labelled:,} of {counted(len(session.pool), 'item')} labelled",
        class_words(session.classes),
    ]
    measured = session.predictions.evaluation
    if measured.enough:
        parts.append(f"error {measured.error:.3f} ({measured.low:.3f} to {measured.high:.3f})")
    elif session.model is None:
        parts.append("no model yet")
    return f"{session.annotator}: {'; '.join(parts)}"


def session_html(session: Any) -> str:
    """A session with its labels by class and the curve of its error."""
    rows = sorted(session.state.counts.items(), key=lambda pair: -pair[1])[:20]
    parts = [
        f"<p><b>{escape(session.project.name)}</b><br>{escape(_standing(session))}<br>"
        f"{escape(pool_words(session.pool))}</p>"
    ]
    if rows:
        parts.append(table_html(("class", "labels"), rows))
    points = [(r.n_labelled, r.error) for r in session.rounds if r.n_test >= ENOUGH]
    line = sparkline([error for _, error in points])
    if line is not None:
        (first, worst), (last, error) = points[0], points[-1]
        caption = f"Error from {worst:.3f} at {counted(first, 'label')} to {error:.3f} at {last:,}"
        parts.append(f'<p role="img" aria-label="{caption}">{line}<br>{caption}</p>')
    return f"<div>{''.join(parts)}</div>"


def error_words(error: float, n: int, digits: int = 3, item: str = "item") -> str:
    """Measured error in words: of fewer than 20 items its 95 % interval alone.

    Args:
        error: share of the items.
        n: how many items there are.
        digits: of the share.
        item: what they are called.
    """
    of = f"on {n} {item}{'' if n == 1 else 's'}"
    if n >= ENOUGH:
        return f"error {error:.{digits}f} {of}"
    interval = share_interval(round(error * n), n)
    return f"error between {interval.low:.2f} and {interval.high:.2f} {of}"


def round_words(one: Any) -> str:
    """A round in a line."""
    measured = f", {error_words(one.error, one.n_test)}" if one.n_test else ""
    query_words = f", then asked about {counted(int(one.queried.size), 'item')}" if one.queried.size else ""
    return f"Round {one.number}: {counted(one.n_labelled, 'label')}{measured}{query_words}"


def round_html(one: Any) -> str:
    """A round with what was measured after its fit."""
    measures = _MEASURES.items() if one.n_test >= ENOUGH else ()
    rows = [(words, getattr(one, name)) for name, words in measures if isfinite(getattr(one, name))]
    rows += [(f"seconds of {name}", value) for name, value in one.seconds.items()]
    return f"<div><p>{escape(round_words(one))}</p>{table_html(('', ''), rows, heads=False)}</div>"
