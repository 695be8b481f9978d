"""The papers' image experiments by name: `lmgp-fig4`, `lmgp-adversarial`, `gwi-images`.

Each function fits what it needs, keeps every finished part in its folder (a part that is there and
was made with the same settings is not made again) and writes report.md, CSVs and figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Report = Callable[[float, str], None]
Verdict = Literal["reproduced", "partly", "not reproduced", "beyond the papers"]

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10_jpeg": "CIFAR-10 (JPEG copy, pixels differ slightly from the original)",
}
PAPERS_NETWORK = {"mnist": "papers-mnist", "fashion_mnist": "papers-mnist", "cifar10_jpeg": "papers-cifar10"}
STRENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True)
class Finding:
    """One claim of the papers beside what was measured.

    Attributes:
        claim: what the paper says.
        source: paper and figure.
        ours: what was measured.
        verdict: by `rule`.
        rule: how the verdict was decided.
    """

    claim: str
    source: str
    ours: str
    verdict: Verdict
    rule: str


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction found; also written to its folder.

    Attributes:
        name: what `workbench reproduce` calls it.
        title: for people.
        findings: claims with verdicts.
        tables: name -> table, one CSV each.
        figures: name -> figure, one HTML file each.
        notes: what a reader must know.
        settings: sizes, seeds, versions.
    """

    name: str
    title: str
    findings: tuple[Finding, ...]
    tables: Mapping[str, pd.DataFrame]
    figures: Mapping[str, go.Figure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def write(self, out: Path) -> Path:
        """Write report.md, CSVs and figures.

        Args:
            out: a folder; made if it is not there.

        Returns:
            The report's path.
        """
        out.mkdir(parents=True, exist_ok=True)
        lines = [f"# {self.title}", ""]
        lines += ["| claim | source | ours | verdict | rule |", "|---|---|---|---|---|"]
        lines += [
            f"| {f.claim} | {f.source} | {f.ours} | **{f.verdict}** | {f.rule} |" for f in self.findings
        ]
        for name, table in self.tables.items():
            table.to_csv(out / f"{name}.csv", index=False)
            lines += ["", f"## {name}", "", *_markdown(table)]
        for name, fig in self.figures.items():
            from workbench.figures.theme import for_export

            for_export(fig).write_html(out / f"{name}.html", include_plotlyjs=True)
            lines += ["", f"Figure: [{name}.html]({name}.html)"]
        lines += ["", *(f"- {note}" for note in self.notes), "", "```json"]
        lines += [json.dumps(self.settings, indent=2, sort_keys=True, default=str), "```", ""]
        path = out / "report.md"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path


# ---------------------------------------------------------------------------------- lmgp-fig4


def lmgp_fig4(quick: bool, out: Path, report: Report | None = None) -> Reproduction:
    """LMGP-DNN against a CNN with a softmax layer: test accuracy and training time.

    Args:
        quick: about ten minutes on two cores: 4,000 images of MNIST, 1,500 of CIFAR-10.
        out: folder of the report and of finished parts.
        report: told (fraction, what is being done); may raise `Cancelled`.

    Returns:
        Claims and verdicts.

    Raises:
        InputError: a data set is not at hand; the message says how to get it.
    """
    sizes: dict[str, tuple[int, int, tuple[int, ...]]] = (
        {"mnist": (4_000, 2_000, (2, 4)), "cifar10_jpeg": (1_500, 1_000, (2, 4))}
        if quick
        else {"mnist": (60_000, 10_000, (3, 6, 12)), "cifar10_jpeg": (50_000, 10_000, (6, 12, 24))}
    )
    jobs = [
        (data, kind, epochs)
        for data, (_, _, budgets) in sizes.items()
        for epochs in budgets
        for kind in ("softmax-net", "large-margin-net")
    ]
    rows = []
    pools: dict[str, _Images] = {}
    for i, (data, kind, epochs) in enumerate(jobs):
        n_train, n_test, _ = sizes[data]
        settings = _settings(kind, data, n_train, n_test, network=PAPERS_NETWORK[data], epochs=epochs)

        def make(data: str = data, settings: dict[str, Any] = settings, i: int = i) -> dict[str, Any]:
            if data not in pools:
                pools[data] = _Images.of(data, settings["n_train"], settings["n_test"])
            what = f"{settings['classifier']} on {TITLES[data]}"
            return _fitted(pools[data], settings, _within(report, i, len(jobs), what))[1]

        rows.append(settings | _part(out, f"fig4-{data}-{kind}-{epochs}", settings, make))
    table = _table(
        rows, ["data", "classifier", "network", "epochs", "n_train", "accuracy", "nll", "ece", "seconds"]
    )
    findings, wanted = [], 0.01
    for data, (n_train, _, budgets) in sizes.items():
        last = {r["classifier"]: r for r in rows if r["data"] == data and r["epochs"] == budgets[-1]}
        ours, theirs = last["large-margin-net"], last["softmax-net"]
        gap = theirs["accuracy"] - ours["accuracy"]
        findings.append(
            Finding(
                f"On {TITLES[data]} LMGP-DNN is as accurate as the CNN",
                "000 and 003, figure 4 left",
                f"LMGP-DNN {ours['accuracy']:.4f}, CNN {theirs['accuracy']:.4f} "
                f"after {budgets[-1]} epochs of {n_train:,} images",
                _graded(gap <= wanted, gap <= 3 * wanted, quick),
                f"at most {wanted} behind: reproduced; {3 * wanted}: partly; --quick: at most partly",
            )
        )
        ratio = ours["seconds"] / theirs["seconds"]
        findings.append(
            Finding(
                f"On {TITLES[data]} LMGP-DNN trains longer than the CNN",
                "000 and 003, figure 4 right",
                f"{ratio:.2f} times as long for as many epochs (processor time)",
                _graded(ratio > 1.02, ratio > 0.9, quick),
                "ratio above 1.02: reproduced; above .9: partly (no price to pay); --quick: at most partly",
            )
        )
    from workbench.figures.theme import class_colour, figure

    fig = figure(x="Processor time of training, seconds", y="Test accuracy", x_options={"type": "log"})
    for rank, (data, kind) in enumerate(dict.fromkeys((d, k) for d, k, _ in jobs)):
        some = [r for r in rows if (r["data"], r["classifier"]) == (data, kind)]
        fig.add_scatter(
            x=[r["seconds"] for r in some], y=[r["accuracy"] for r in some], mode="lines+markers",
            name=f"{TITLES[data].partition(' (')[0]}: {'LMGP-DNN' if kind == 'large-margin-net' else 'CNN'}",
            line={"color": class_colour(rank // 2), "dash": "solid" if kind == "large-margin-net" else "dot"},
        )  # fmt: skip
    return _finish(
        out,
        Reproduction(
            "lmgp-fig4",
            "LMGP-DNN against a CNN: accuracy and training time",
            tuple(findings),
            {"accuracy-and-time": table},
            {"accuracy-against-time": fig},
            (
                "Both networks share all layers and a closing LayerNorm; half of LMGP-DNN's epochs train "
                "with a softmax layer, half the network and the GP together.",
                "Times are of one run on a processor, not of the papers' machine; only ratios count.",
                *_size_notes(quick, sizes),
            ),
            {
                "quick": quick,
                "sizes": {k: v[:2] for k, v in sizes.items()},
                "seed": 0,
                "versions": _versions(),
            },
        ),
    )


# ---------------------------------------------------------------------------------- lmgp-adversarial


def lmgp_adversarial(quick: bool, out: Path, report: Report | None = None) -> Reproduction:
    """Accuracy and variation ratio under FGSM; beyond the papers noise, adaptive attack, a third data set.

    Args:
        quick: about ten minutes on two cores: small networks on a few thousand images.
        out: folder of the report and of finished parts.
        report: told (fraction, what is being done); may raise `Cancelled`.

    Returns:
        Claims and verdicts.

    Raises:
        InputError: a data set is not at hand; the message says how to get it.
    """
    import pandas as pd

    sizes: dict[str, tuple[int, int, str, float]] = (
        {
            "mnist": (6_000, 500, "small", 12),
            "fashion_mnist": (6_000, 500, "small", 12),
            "cifar10_jpeg": (3_000, 300, "small", 12),
        }
        if quick
        else {
            "mnist": (60_000, 2_000, "papers-mnist", 8),
            "fashion_mnist": (60_000, 2_000, "papers-mnist", 8),
            "cifar10_jpeg": (10_000, 1_000, "papers-cifar10", 12),
        }
    )
    tables: dict[str, pd.DataFrame] = {}
    figures: dict[str, go.Figure] = {}
    findings: list[Finding] = []
    for i, (data, (n_train, n_test, network, epochs)) in enumerate(sizes.items()):
        settings = _settings("large-margin-net", data, n_train, n_test, network=network, epochs=epochs)
        settings |= {"strengths": list(STRENGTHS), "steps": 20}

        def make(data: str = data, settings: dict[str, Any] = settings, i: int = i) -> dict[str, Any]:
            from workbench.attacks import measure

            images = _Images.of(data, settings["n_train"], settings["n_test"])
            whole = len(sizes)
            model, found = _fitted(
                images, settings, _within(report, 3 * i, 3 * whole, f"LMGP-DNN on {TITLES[data]}")
            )
            softmax, _ = _fitted(
                images, settings | {"classifier": "softmax-net"},
                _within(report, 3 * i + 1, 3 * whole, f"CNN on {TITLES[data]}"),
            )  # fmt: skip
            robustness = measure(
                model, images.X_test, images.y_test, strengths=STRENGTHS,
                attacks=("fgsm", "pgd", "adaptive-pgd", "noise", "transfer"), softmax=softmax,
                report=_within(report, 3 * i + 2, 3 * whole, f"attacks on {TITLES[data]}"),
            )  # fmt: skip
            return found | {"table": robustness.table().to_dict("list")}

        part = _part(out, f"adversarial-{data}", settings, make)
        table = pd.DataFrame(part["table"])
        tables[f"attacks-{data}"] = table
        figures |= _attack_figures(data, table)
        findings += _attack_findings(data, table, float(part["accuracy"]), quick)
    return _finish(
        out,
        Reproduction(
            "lmgp-adversarial",
            "Adversarial images: accuracy and detection by the variation ratio",
            tuple(findings),
            tables,
            figures,
            (
                "Exact variation ratios; the papers used samples. Areas compare all clean images with all "
                "attacked ones.",
                "The adaptive attack and the noise are ours: the papers did not test them.",
                *_size_notes(quick, sizes),
            ),
            {"quick": quick, "sizes": sizes, "seed": 0, "versions": _versions()},
        ),
    )


def _attack_figures(data: str, table: pd.DataFrame) -> dict[str, go.Figure]:
    from workbench.attacks import ATTACKS
    from workbench.attacks.detection import DETECTORS
    from workbench.figures.adversarial import detection_curves, strength_curves

    attacks = [name for name in dict.fromkeys(table.attack) if name in ATTACKS]
    strengths = np.array(sorted(set(table.strength)))

    def line(attack: str, detector: str, column: str) -> Any:
        rows = table[(table.attack == attack) & (table.detector == detector)].sort_values("strength")
        return rows[column].to_numpy(dtype=float)

    first = "variation-ratio"
    accuracy = {ATTACKS[a].title: line(a, first, "accuracy") for a in attacks}
    softmax = table[table.attack == "softmax"].sort_values("strength").accuracy.to_numpy(dtype=float)
    if softmax.size:
        accuracy["CNN, its own FGSM"] = softmax
    suspicion = {ATTACKS[a].title: line(a, first, "mean_score") for a in attacks}
    areas = {
        ATTACKS[a].title: {e.title: line(a, name, "auc") for name, e in DETECTORS.items()}
        for a in attacks
        if a in ("fgsm", "adaptive-pgd", "noise")
    }
    control = (ATTACKS["noise"].title,)
    return {
        f"strength-{data}": strength_curves(
            strengths, accuracy, suspicion, score="Variation ratio", controls=control
        ),
        f"detection-{data}": detection_curves(strengths, areas),
    }


def _attack_findings(data: str, table: pd.DataFrame, clean: float, quick: bool) -> list[Finding]:
    source = "000 figure 6, 003 figure 7"
    vr = table[table.detector == "variation-ratio"].sort_values("strength")
    fgsm, adaptive = vr[vr.attack == "fgsm"], vr[vr.attack == "adaptive-pgd"]
    noise = vr[vr.attack == "noise"]
    hits, means, areas = (fgsm[c].to_numpy(dtype=float) for c in ("accuracy", "mean_score", "auc"))
    found = [
        Finding(
            f"{TITLES[data]}: accuracy falls with the strength of FGSM",
            source,
            f"{clean:.3f} to {hits[-1]:.3f} at strength {STRENGTHS[-1]}",
            _graded(
                bool((np.diff(hits) <= 0.02).all()) and hits[-1] < 0.5 * clean, hits[-1] < clean - 0.1, quick
            ),
            "falls throughout (within .02) to below half: reproduced",
        )
    ]
    if data == "cifar10_jpeg":
        worsens = areas[-1] < areas[1:].max() - 0.02
        found.append(
            Finding(
                f"{TITLES[data]}: detection is poor and worsens with strength, yet above .5",
                source,
                f"areas {_listed(areas[1:])}",
                _graded(areas[1:].max() < 0.8 and worsens and areas[-1] > 0.5, areas[1:].max() < 0.9, quick),
                "best below .8, last at least .02 below the best and above .5: reproduced",
            )
        )
    else:
        found.append(
            Finding(
                f"{TITLES[data]}: the mean variation ratio rises quickly with strength",
                source if data == "mnist" else "ours, beside 003",
                f"{means[0]:.3f} to {means.max():.3f}",
                _graded(means.max() > 5 * means[0], means.max() > 2 * means[0], quick),
                "five times the clean mean: reproduced; twice: partly",
            )
        )
        found.append(
            Finding(
                f"{TITLES[data]}: area under the ROC curve almost 1",
                source if data == "mnist" else "ours, beside 003",
                f"areas {_listed(areas[1:])}",
                _graded(areas.max() >= 0.98, areas.max() >= 0.85, quick),
                "best at least .98: reproduced; .85: partly",
            )
        )
    worst, harmless = adaptive.auc.to_numpy(dtype=float), noise.auc.to_numpy(dtype=float)
    found.append(
        Finding(
            f"{TITLES[data]}: what an adaptive attack and harmless noise do to it",
            "ours",
            f"adaptive attack: areas {_listed(worst[1:])}; random signs: {_listed(harmless[1:])}",
            "beyond the papers",
            "reported as measured; there is no claim to hold it to",
        )
    )
    return found


# ---------------------------------------------------------------------------------- gwi-images


def gwi_images(quick: bool, out: Path, report: Report | None = None) -> Reproduction:
    """Gaussian Wasserstein inference with a CNN mean on images, beside LMGP-DNN and the softmax network.

    Args:
        quick: about ten minutes on two cores: 3,000 images of each set.
        out: folder of the report and of finished parts.
        report: told (fraction, what is being done); may raise `Cancelled`.

    Returns:
        Claims and verdicts.

    Raises:
        InputError: a data set is not at hand; the message says how to get it.
    """
    n_train, n_test = (3_000, 2_000) if quick else (20_000, 10_000)
    epochs = 12.0
    kinds = ("wasserstein", "large-margin-net", "softmax-net")
    jobs = [(data, kind) for data in ("mnist", "fashion_mnist") for kind in kinds]
    rows = []
    for i, (data, kind) in enumerate(jobs):
        settings = _settings(kind, data, n_train, n_test, network="small", epochs=epochs)

        def make(data: str = data, settings: dict[str, Any] = settings, i: int = i) -> dict[str, Any]:
            images = _Images.of(data, n_train, n_test)
            what = f"{settings['classifier']} on {TITLES[data]}"
            return _fitted(images, settings, _within(report, i, len(jobs), what))[1]

        rows.append(settings | _part(out, f"gwi-{data}-{kind}", settings, make))
    findings = []
    for data in ("mnist", "fashion_mnist"):
        by = {r["classifier"]: r for r in rows if r["data"] == data}
        ours, plain = by["wasserstein"], by["softmax-net"]
        gap = plain["accuracy"] - ours["accuracy"]
        findings.append(
            Finding(
                f"{TITLES[data]}: a GP with a CNN mean classifies images as well as the CNN",
                "notes 004, section 2",
                f"GWI {ours['accuracy']:.4f}, CNN {plain['accuracy']:.4f}",
                _graded(gap <= 0.01, gap <= 0.03, quick),
                "at most .01 behind: reproduced; .03: partly",
            )
        )
        findings.append(
            Finding(
                f"{TITLES[data]}: and knows better how sure it is",
                "notes 004, section 2",
                f"NLL {ours['nll']:.3f} against {plain['nll']:.3f}, "
                f"ECE {ours['ece']:.3f} against {plain['ece']:.3f}",
                _graded(
                    ours["nll"] <= plain["nll"] and ours["ece"] <= plain["ece"],
                    ours["nll"] <= plain["nll"] or ours["ece"] <= plain["ece"],
                    quick,
                ),
                "both not worse: reproduced; one: partly",
            )
        )
    columns = ["data", "classifier", "network", "epochs", "n_train", "accuracy", "nll", "ece", "seconds"]
    return _finish(
        out,
        Reproduction(
            "gwi-images",
            "Gaussian Wasserstein inference with a CNN mean on images",
            tuple(findings),
            {"images": _table(rows, columns)},
            notes=(
                "The notes give no figures; the claims are theirs in words, the rules ours.",
                *_size_notes(quick, {"mnist": (n_train,), "fashion_mnist": (n_train,)}),
            ),
            settings={
                "quick": quick,
                "n_train": n_train,
                "n_test": n_test,
                "seed": 0,
                "versions": _versions(),
            },
        ),
    )


ENTRIES: dict[str, Callable[[bool, Path, Report | None], Reproduction]] = {
    "lmgp-fig4": lmgp_fig4,
    "lmgp-adversarial": lmgp_adversarial,
    "gwi-images": gwi_images,
}
"""What `workbench reproduce` can run, by name."""

# ---------------------------------------------------------------------------------- parts


@dataclass(frozen=True)
class _Images:
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    shape: tuple[int, ...]

    @classmethod
    def of(cls, data: str, n_train: int, n_test: int) -> _Images:
        pool: Pool = load_pool(f"images:{data}")
        if pool.test is None or pool.truth is None or pool.image_shape is None:
            raise InputError(f"Pool images:{data} has no test part, classes or pixels; get it anew.")
        rng = np.random.default_rng([0, 0x1A6])
        truth = np.asarray(pool.truth)
        train, test = (
            np.sort(rng.permutation(rows)[:n])
            for rows, n in ((pool.test.train, n_train), (pool.test.test, n_test))
        )
        features = pool.features
        return cls(
            np.asarray(features[train], np.float32), truth[train],
            np.asarray(features[test], np.float32), truth[test], pool.image_shape,
        )  # fmt: skip


def _settings(classifier: str, data: str, n_train: int, n_test: int, **more: Any) -> dict[str, Any]:
    return {"classifier": classifier, "data": data, "n_train": n_train, "n_test": n_test, "seed": 0, **more}


def _fitted(images: _Images, settings: Mapping[str, Any], told: Report) -> tuple[Any, dict[str, Any]]:
    """A model and its accuracy, NLL, ECE and processor time."""
    from workbench.classifiers import make_classifier
    from workbench.metrics import error_rate, expected_calibration_error, negative_log_likelihood

    kind, epochs = settings["classifier"], settings["epochs"]
    options: dict[str, Any] = {"epochs": epochs}
    if kind == "large-margin-net":
        options = {"pretrain_epochs": epochs / 2, "joint_epochs": epochs / 2}
    if kind != "wasserstein":
        options["min_steps"] = 1  # the epochs decide, also for few images
    model = make_classifier(
        kind, network=settings["network"], input_shape=images.shape, random_state=settings["seed"], **options
    )

    def callback(fraction: float, objective: float) -> bool:
        told(fraction, "")
        return False

    begin = process_time()
    model.fit(images.X, images.y, callback=callback)
    seconds = process_time() - begin
    p, codes = model.predict_proba(images.X_test), np.searchsorted(model.classes_, images.y_test)
    return model, {
        "accuracy": 1.0 - error_rate(codes, p),
        "nll": negative_log_likelihood(codes, p),
        "ece": expected_calibration_error(codes, p),
        "seconds": seconds,
    }


def _part(
    out: Path, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """A finished part from its file, if it was made with these settings; else made and kept."""
    path = out / "parts" / f"{name}.json"
    wanted = json.loads(json.dumps(settings))
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.get("settings") == wanted:
            found: dict[str, Any] = kept["found"]
            return found
    result = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"settings": wanted, "found": result}, indent=1, default=float)
    draft = path.with_suffix(".part")
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)
    again: dict[str, Any] = json.loads(text)["found"]
    return again


def _within(report: Report | None, number: int, total: int, what: str) -> Report:
    """A report of one of `total` parts."""

    def told(fraction: float, detail: str) -> None:
        if report is not None:
            report((number + fraction) / total, f"{what}: {detail}" if detail else what)

    return told


def _graded(whole: bool, part: bool, quick: bool) -> Verdict:
    if whole:
        return "partly" if quick else "reproduced"
    return "partly" if part else "not reproduced"


def _finish(out: Path, made: Reproduction) -> Reproduction:
    made.write(out)
    return made


def _size_notes(quick: bool, sizes: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    listed = ", ".join(f"{TITLES[data].partition(' (')[0]} {size[0]:,}" for data, size in sizes.items())
    note = f"Images trained on: {listed}."
    return (
        (note + ' Run without --quick for more; verdicts are at most "partly" here.',) if quick else (note,)
    )


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([{c: row[c] for c in columns} for row in rows])


def _markdown(table: pd.DataFrame) -> list[str]:
    def told(value: Any) -> str:
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.4g}"
        return str(value)

    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    return lines + ["| " + " | ".join(told(v) for v in row) + " |" for row in table.itertuples(index=False)]


def _listed(values: Any) -> str:
    return " / ".join(f"{v:.2f}" for v in values)


def _versions() -> dict[str, str]:
    from workbench.attacks.robustness import versions

    return versions()
