"""Summary of a comparison, on the Compare page: tables, verdicts, mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare import comparison, comparison_sources
from workbench.app.shell import downloads, widgets
from workbench.app.words.text import percent, plural, verbatim, with_minus
from workbench.classifiers import title_of as model_title
from workbench.metrics import MIN_SEEDS, LabelsSaved, PairedTest
from workbench.policies.registry import title_of

if TYPE_CHECKING:
    from workbench.studies import StudyResult
    from workbench.studies.statistics import Curves


def named(record: comparison.Comparison) -> str:
    """A comparison in a few words: pool, model and what it begins with."""
    title = comparison_sources.title_of_pool(record.spec.pools[0])
    model = record.spec.classifiers[0]
    words = [title, model_title(model)]
    if record.spec.guess:
        words.append("with " + ", ".join(map(comparison_sources.guess_title, record.spec.guess)).lower())
    return " · ".join(words)


def ranks(several: list[StudyResult], measure: str) -> None:
    """Mean ranks of the policies over several pools."""
    pair = comparison.ranking(several, measure)
    if pair is None:
        return
    from workbench.figures.ranks import critical_difference_diagram
    from workbench.studies.statistics import FEWEST_POOLS

    ranking, n = pair
    st.subheader(f"Mean ranks over {plural(n, 'pool')}")
    titles = [title_of(p) for p in ranking.names]
    tested = n >= FEWEST_POOLS
    difference = ranking.critical_difference if tested else float("nan")
    fig = critical_difference_diagram(titles, ranking.mean_ranks, difference)
    downloads.figure(
        fig,
        "comparison-ranks",
        "Mean rank of each policy; bars join those that are not told apart",
        "mean-ranks",
    )
    if not tested:
        st.caption(f"A test wants {FEWEST_POOLS} pools or more.")
        return
    words = [f"Friedman's test: p = {ranking.p:.2g}."] if ranking.p == ranking.p else []
    if ranking.groups:
        groups = "; ".join(", ".join(map(title_of, group)) for group in ranking.groups)
        words.append(f"Not told apart by Nemenyi's test: {groups}.")
    elif ranking.critical_difference == ranking.critical_difference:
        words.append("Nemenyi's test tells all of them apart.")
    if words:
        st.caption(" ".join(words))


def summary(several: list[tuple[comparison.Comparison, StudyResult]], measure: str) -> None:
    """A row a policy: at the end, over the curve, against random."""
    from workbench.studies.statistics import summarise

    titled_curves = [(named(entry), comparison.paired_curves(results, measure)) for entry, results in several]
    rows = [(of, r) for of, paired in titled_curves if paired is not None for r in summarise(paired)]
    if not rows:
        return
    title, share = comparison.MEASURES[measure]

    def shown(value: float) -> str:
        return percent(value) if share else f"{value:.3f}"

    # a column that says one number on every row is a sentence below
    runs = {r.area.n for _, r in rows}
    more = int(len(several) > 1)
    widgets.style(
        "@media (max-width: 500px) { .st-key-comparison-table :is(th, td) { padding-inline: 0.2rem;"
        " font-size: 0.85rem; }"
        # a number and its unit stay on one line
        f" .st-key-comparison-table td:is(:nth-child({2 + more}), :nth-child({3 + more})) *"
        " { white-space: nowrap; } }"
    )
    widgets.table(
        [
            ({"Comparison": verbatim(of, 60)} if len(several) > 1 else {})
            | {
                "Policy": verbatim(title_of(r.policy), 40),
                "At the end": shown(r.last.value),
                "Mean over the curve": shown(r.area.value),
                "Better than random": "–" if r.won is None else f"{r.won} of {plural(r.area.n, 'seed')}",
                "Verdict": _verdict(r.outcome, r.test),
            }
            | ({"Labels saved": _saved(r.saved, r.area.n)} if measure == "error" else {})
            | ({"Whole runs": r.area.n} if len(runs) > 1 else {})
            for of, r in rows
        ],
        "comparison-table",
        f"{title} of each policy",
    )
    better = "lower" if next(paired for _, paired in titled_curves if paired).lower_is_better else "higher"
    run_note = f" ({plural(runs.pop(), 'whole run')} each)" if len(runs) == 1 else ""
    with st.expander("How these numbers are reckoned", key="comparison-reckoned"):
        st.caption(
            f"Means over the seeds that every policy has finished{run_note}; over the curve: its height over "
            f"the labels spent. Better: a {better} mean over the curve than random's with the same seed. "
            "Verdict: Wilcoxon's test of these means on paired seeds, corrected for the "
            "policies of one comparison (Holm)."
            + (
                " Labels saved: to reach random's mean error at the end, counted on each seed and averaged, "
                "as in the sentence on top; at least so many where random itself did not get there on each "
                "of these seeds."
                if measure == "error"
                else ""
            )
        )
    _policy_pairs([(of, paired) for of, paired in titled_curves if paired is not None], len(several) > 1)


def _verdict(words: str, test: PairedTest | None) -> str:
    """An outcome with the p of its test."""
    if test is None:
        return "–"
    return words + (f" (p = {test.p_holm:.2g})" if test.n >= MIN_SEEDS else "")


def _saved(saving: LabelsSaved | None, n: int) -> str:
    """Labels saved, with how far that is known."""
    if saving is None:
        return "–"
    if not saving.n_arrived:
        return "not on one seed"
    span = f" ({saving.low:.0f} to {saving.high:.0f})" if saving.n_arrived >= 3 else ""
    on = f", on {saving.n_arrived} of {plural(n, 'seed')}" if saving.n_arrived < n else ""
    return with_minus(f"{saving.bound} {saving.mean:.0f}{span}{on}".lstrip())


def _policy_pairs(titled_curves: list[tuple[str, Curves]], several: bool) -> None:
    """The policies against each other."""
    from workbench.studies.statistics import pairwise

    rows = [(of, test) for of, paired in titled_curves for test in pairwise(paired, comparison.BASELINE)]
    if not rows:
        return
    with st.expander("Policies against each other", key="comparison-pairs"):
        widgets.grid(
            [
                ({"Comparison": of} if several else {})
                | {
                    "Policy": title_of(t.policy),
                    "Against": title_of(t.baseline),
                    "Difference of the means": with_minus(
                        f"{t.difference:+.4f}" + (f" ({t.low:+.4f} to {t.high:+.4f})" if t.n >= 3 else "")
                    ),
                    "Lower on": f"{t.wins} of {plural(t.n, 'seed')}",
                    "Verdict": _verdict(t.verdict, t),
                }
                for of, t in rows
            ],
            "comparison-pairs-table",
            "Each pair of policies",
        )
