"""Results of a comparison's runs: curves, labels saved, ranks, a sentence, a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.app.compare.comparison import Comparison, rounds_of
from workbench.app.serving.caching import computed
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.figures.curves import Curve, Saving
    from workbench.metrics import Ranking
    from workbench.studies import StudyResult
    from workbench.studies.statistics import Curves, Outcome

BASELINE = "random"
MEASURES = {
    "error": ("Test error", True),
    "nll": ("Negative log-likelihood, nats", False),
    "brier": ("Brier score, 0 to 2", False),
    "ece": ("Expected calibration error", True),
    "balanced_error": ("Balanced test error", True),
    "macro_f1": ("Macro F1, 0 to 1", False),
}


def results(comparison: Comparison) -> StudyResult:
    """Results so far, from the database; runs that are finished are read once."""
    from workbench.studies import StudyResult

    records = {(r.spec["policy"], r.spec["seed"]): r for r in comparison.records}
    runs = []
    for run in comparison.spec.runs():
        record = records.get((run.policy, run.seed))
        if record is None:
            continue
        rounds = computed(rounds_of, record) if record.status == "finished" else rounds_of(record)
        if rounds:
            runs.append((run, rounds))
    is_complete = comparison.n_finished == len(comparison.spec.runs())
    return StudyResult(comparison.spec, runs, "finished" if is_complete else "cancelled")


def curves(found: StudyResult | None, policies: Sequence[str], measure: str) -> list[Curve]:
    """Curves for `figures.curves.learning_curve`, the baseline marked; runs count as far as they are."""
    from workbench.figures.curves import summarise
    from workbench.policies.registry import title_of

    lines = []
    for policy in policies:
        runs = [] if found is None else list(found.of(policy).values())
        pairs = [([r.n_labelled for r in rounds], [getattr(r, measure) for r in rounds]) for rounds in runs]
        lines.append(summarise(title_of(policy), pairs, baseline=policy == BASELINE))
    return lines


def paired_curves(found: StudyResult, measure: str) -> Curves | None:
    """The whole runs of a comparison, paired by seed; None before one seed is whole."""
    from workbench.studies.statistics import curves

    return next(iter(curves(found, measure)), None)


def saving(found: StudyResult) -> Saving | None:
    """Labels that the best policy saves, to be drawn: the numbers of the sentence and the table.

    Nothing is drawn where no labels were shown to be saved (`PolicySummary.outcome`).
    """
    from workbench.figures.curves import Saving
    from workbench.studies.statistics import leader

    paired = paired_curves(found, "error")
    best = None if paired is None else leader(paired)
    saved = None if best is None else best.saved
    if best is None or saved is None or best.outcome != "saves labels":
        return None
    words = f"{saved.bound} {saved.mean:.0f} labels saved".lstrip()
    return Saving(saved.target, saved.labels, saved.labels + saved.mean, words)


def meaning(found: StudyResult) -> str:
    """Meaning of a comparison for somebody who is to label: a sentence, "" before a seed is whole."""
    from workbench.policies.registry import title_of
    from workbench.studies.statistics import leader

    paired = paired_curves(found, "error")
    best = None if paired is None else leader(paired)
    if best is None or paired is None:
        return ""
    name = title_of(best.policy)
    words: dict[Outcome, str] = {
        "": "",
        "better": f"{name} is better over the curve.",
        "saves labels": f"On items like these let {name} choose what you are asked: "
        "the same error costs fewer labels.",
        "ahead on the way": f"{name} is ahead while there are few labels. "
        "That it saves labels in the end was not shown.",
        "worse": "On items like these ask at random: choosing was worse.",
        "no difference shown": "No gain was shown here. "
        "Asking at random will do, and it keeps the labels a fair sample.",
        "too few seeds to tell": "Run it with more seeds before you decide: "
        "so few cannot tell the policies apart.",
    }
    return words[best.outcome]


def ranking(several: Sequence[StudyResult], measure: str) -> tuple[Ranking, int] | None:
    """Mean ranks of the policies that several comparisons share, a pool a row.

    Args:
        several: results; those of one pool with several models are averaged.
        measure: of `MEASURES`.

    Returns:
        The ranking and the number of pools behind it; None with fewer than two pools that have whole runs,
        or fewer than two policies in all of them.
    """
    from workbench.studies.statistics import rank_policies

    all_curves = [c for c in (paired_curves(study, measure) for study in several) if c is not None]
    n_pools = len({c.pool for c in all_curves})
    try:
        return (rank_policies(all_curves), n_pools) if n_pools > 1 else None
    except InputError:
        return None  # policies that are not shared, or a measure without a value


def rows_csv(several: Sequence[StudyResult]) -> str:
    """Every round of every run as CSV: pool, classifier, policy, seed, round, labels, measures."""
    from workbench.csv_writing import csv_text
    from workbench.studies.study import COLUMNS

    return csv_text((*COLUMNS, *MEASURES), [row for study in several for row in study.rows()])
