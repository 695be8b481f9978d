"""Papers 000 (figure 5) and 003 (figure 6): which policy needs the fewest labels, on 68 data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.exchange.files import json_text, write_whole
from workbench.metrics import average_ranks, rank_methods, wilcoxon_p
from workbench.studies.papers_data import POKER, opened, paper_sets, short, split_arrays
from workbench.studies.reports import Condition, Figure, Finding, Report, Table
from workbench.studies.reproduce import Context

POLICIES = ("variation-ratio", "entropy-of-means", "margin", "random")
TITLES = {
    "variation-ratio-mc": "Variation ratio, 100 draws",
    "variation-ratio": "Variation ratio",
    "entropy-of-means": "Entropy of the means",
    "margin": "Margin",
    "random": "Random",
}
# the papers estimate the variation ratio from samples
PAPERS = ("variation-ratio-mc", "entropy-of-means", "variation-ratio", "margin", "random")
SETTINGS: dict[int, dict[str, Any]] = {4: {"n_inducing": 4, "n_mean": 0}, 64: {}}


def part(pool: str, policy: str, points: int, seed: int, rows: int | None, budget: int) -> dict[str, Any]:
    """One run: the errors after each question.

    Args:
        pool: name.
        policy: name.
        points: inducing points, a key of `SETTINGS`.
        seed: of cut, split, first labels and everything else.
        rows: at most.
        budget: questions.
    """
    from workbench.sessions import simulate

    run = simulate(
        opened(pool, rows, seed), "large-margin", policy, options=SETTINGS[points], budget=budget, seed=seed
    )
    return {"errors": [float(r.error) for r in run]}


def full_error(pool: str, seed: int, rows: int | None) -> float:
    """The error of a model that has all labels."""
    from workbench.classifiers import make_classifier

    opened_pool = opened(pool, rows, seed)
    X, y, X_test, y_test = split_arrays(opened_pool)
    if len(y) > 50_000:
        X, y = X[:50_000], y[:50_000]
    model = make_classifier("large-margin", classes=np.arange(len(opened_pool.classes)), random_state=seed)
    return float(np.mean(model.fit(X, y).predict(X_test) != y_test))


def _policies(points: int) -> tuple[str, ...]:
    return PAPERS if points == 4 else POLICIES


def active(context: Context) -> Report:
    """Mean ranks of query policies over the sets, with 4 and with 64 inducing points."""
    sets = paper_sets()
    rows = context.rows(400)
    seeds = context.cap("seeds (splits and first labels)", 5, 1)
    budget = context.cap("questions", 100, 40)
    if sets.missing:
        context.caps.append(
            f"{len(sets.missing)} set(s) not on this machine: {', '.join(map(short, sets.missing))}. "
            + next(iter(sets.missing.values()))
        )
    names = list(sets.names)
    keys = [
        {"pool": p, "policy": q, "points": points, "seed": s, "rows": rows, "budget": budget}
        for s in range(seeds)
        for p in names
        for points in (64, 4)
        for q in _policies(points)
    ]
    results = context.parts(
        "lmgp-active", keys, part, lambda k: f"{short(k['pool'])}, {k['points']} points, {k['policy']}"
    )
    by_key = {
        (k["pool"], k["policy"], k["points"], k["seed"]): np.asarray(r["errors"])
        for k, r in zip(keys, results, strict=True)
    }
    report = Report("Active learning on the papers' data sets (000 figure 5, 003 figure 6)")
    summary_rows: list[tuple[Any, ...]] = []
    for points in (4, 64):
        policies = _policies(points)
        areas, ranks = _measured(by_key, names, policies, points, seeds)
        ranking = rank_methods(areas, policies)
        mean = dict(zip(policies, ranking.mean_ranks, strict=True))
        summary_rows += [
            (points, TITLES[q], float(mean[q]), float(areas[:, i].mean()), len(names))
            for i, q in enumerate(policies)
        ]
        vr = "variation-ratio-mc" if points == 4 else "variation-ratio"
        report.findings.append(_finding(points, vr, policies, areas, mean))
        from workbench.figures.ranks import critical_difference_diagram, rank_curves

        report.figures += [
            Figure(
                f"ranks-{points}",
                f"Mean rank against questions, {points} inducing points",
                rank_curves(
                    np.arange(ranks.shape[0]),
                    {TITLES[q]: ranks[:, i] for i, q in enumerate(policies)},
                    baseline=TITLES["random"],
                ),
            ),
            Figure(
                f"difference-{points}",
                f"Mean ranks of the areas under the error curves, {points} inducing points",
                critical_difference_diagram(
                    [TITLES[q] for q in policies], ranking.mean_ranks, ranking.critical_difference
                ),
            ),
        ]
        report.tables.append(
            Table(
                f"areas-{points}",
                f"Mean error over the curve, set by set, {points} inducing points",
                ("set", *policies),
                [(short(p), *map(float, areas[i])) for i, p in enumerate(names)],
                shown=0,
            )
        )
        if points == 64:
            _suggest(context.folder, policies, ranking.mean_ranks, len(names), seeds, bool(context.caps))
    report.tables.insert(
        0,
        Table(
            "ranks",
            "Mean ranks over the sets",
            ("inducing points", "policy", "mean rank", "mean error over the curve", "sets"),
            summary_rows,
        ),
    )
    _poker(context, report, by_key, rows, seeds)
    report.notes += [
        "Ranks of the paper are those of two policies; here every policy run is ranked, and the claims "
        "are tested on the pairs.",
        "z-scores are clipped at 2, which the papers do not do: it helps policies that ask about outliers.",
        "Area: mean of the test error over all rounds, so a set counts once however hard it is.",
    ]
    return report


def _measured(
    by_key: dict[Any, Floats], names: list[str], policies: tuple[str, ...], points: int, seeds: int
) -> tuple[Floats, Floats]:
    """Areas [sets, policies], and mean ranks after each question [R, policies]."""
    areas, totals = [], []
    for p in names:
        curves = [np.mean([by_key[(p, q, points, s)] for s in range(seeds)], axis=0) for q in policies]
        areas.append([float(c.mean()) for c in curves])
        totals.append(np.stack(curves, axis=1))
    # a pool can run out of items before the budget; its last error stands
    length = max(len(c) for c in totals)
    padded = [np.concatenate([c, np.repeat(c[-1:], length - len(c), axis=0)]) for c in totals]
    return np.asarray(areas), np.mean([average_ranks(c) for c in padded], axis=0)


def _finding(
    points: int, vr: str, policies: tuple[str, ...], areas: Floats, mean: dict[str, float]
) -> Finding:
    column = {q: areas[:, i] for i, q in enumerate(policies)}
    p_entropy = wilcoxon_p(column[vr], column["entropy-of-means"])
    p_random = wilcoxon_p(column[vr], column["random"])

    def wins(a: str, b: str) -> str:
        return f"{int((column[a] < column[b]).sum())} of {len(areas)}"

    best = min(mean, key=lambda q: mean[q])
    return Finding(
        f"with {points} inducing points, asking by variation ratio beats asking by the entropy of the means",
        "variation ratio clearly ahead after few questions (mean rank, figure; 4 inducing points)"
        if points == 4
        else "(the papers ran 4 inducing points)",
        f"variation ratio better than entropy on {wins(vr, 'entropy-of-means')} sets (p = {p_entropy:.2g}), "
        f"than random on {wins(vr, 'random')} (p = {p_random:.2g}); best mean rank: {TITLES[best]} "
        f"({mean[best]:.2f})",
        (
            Condition("its mean rank is lower than entropy's", mean[vr] < mean["entropy-of-means"]),
            Condition(
                "the difference is shown (Wilcoxon, p < .05)",
                bool(p_entropy < 0.05 and mean[vr] < mean["entropy-of-means"]),
            ),
            Condition(
                "it is better than random (p < .05), which the papers did not ask",
                bool(p_random < 0.05 and mean[vr] < mean["random"]),
            ),
        ),
    )


def _suggest(
    folder: Path, policies: tuple[str, ...], mean_ranks: Floats, n_sets: int, seeds: int, capped: bool
) -> None:
    """Write what the app may suggest; it goes into data/ by hand, reviewed."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "experiment": "lmgp-active",
        "n_sets": n_sets,
        "seeds": seeds,
        "full": not capped,
        "mean_ranks": {q: round(float(r), 4) for q, r in zip(policies, mean_ranks, strict=True)},
    }
    write_whole(folder / "policy_ranks.json", json_text(document))


def _poker(context: Context, report: Report, by_key: dict[Any, Floats], rows: int | None, seeds: int) -> None:
    """The papers' large example, with the error of a model that has all labels."""
    from workbench.figures.curves import learning_curve, summarise

    keys = [{"pool": POKER, "seed": s, "rows": rows} for s in range(seeds)]
    dashed = float(
        np.mean(context.parts("lmgp-active-full", keys, full_error, lambda k: "poker, all labels"))
    )
    made = []
    start = 10
    for q in ("variation-ratio-mc", "entropy-of-means", "random"):
        runs = [by_key[(POKER, q, 4, s)] for s in range(seeds)]
        made.append(
            summarise(
                TITLES[q],
                [(list(range(start, start + len(r))), list(r)) for r in runs],
                baseline=q == "random",
            )
        )
    fig = learning_curve(made)
    fig.add_hline(y=dashed, line={"dash": "dash", "color": "#8A94A0"}, annotation_text="all labels")
    report.figures.append(Figure("poker", "Poker, 4 inducing points; dashed: a model with all labels", fig))
    vr = np.mean([by_key[(POKER, "variation-ratio-mc", 4, s)] for s in range(seeds)], axis=0)
    report.findings.append(
        Finding(
            "on poker the error falls at once and stays above that of all labels",
            "large decrease within the first queries; the dashed line is not reached (figure)",
            f"error {vr[0]:.2f} at the start, {vr[-1]:.2f} after {len(vr) - 1} questions; all labels "
            f"({'those of the cut' if rows else 'at most 50,000'}): {dashed:.2f}",
            (
                Condition("the error falls", bool(vr[-1] < vr[0])),
                Condition("it stays above the error with all labels", bool(vr[-1] > dashed)),
            ),
        )
    )
