"""Images: LMGP-DNN against a CNN, attacks on both (Wistuba & Rawat), a GP with a CNN mean (the GWI notes).

MNIST and Fashion-MNIST are the originals; CIFAR-10 is a JPEG copy and is named so wherever it occurs.
"""

from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.papers.reproduce import Report
from workbench.pools import load_pool
from workbench.studies.calibration import scores

TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10_jpeg": "CIFAR-10 (JPEG)"}
PAPERS_NETWORK = {"mnist": "papers-mnist", "fashion_mnist": "papers-mnist", "cifar10_jpeg": "papers-cifar10"}
KINDS = {"large-margin-net": "LMGP-DNN", "softmax-net": "CNN", "wasserstein": "GWI"}
STRENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
FITS = ("set", "model", "epochs", "images", "accuracy", "NLL", "ECE", "CPU s")
ATTACKED_BY = ("fgsm", "pgd", "adaptive-pgd", "noise", "transfer")
STEPS = 20
JPEG = "CIFAR-10 is a JPEG copy of 60,000 images: pixels differ slightly from the original's."
SHARED = (
    "Both networks share all layers and a closing LayerNorm. Half of LMGP-DNN's epochs train with a softmax "
    "layer, half the network and the GP together."
)


class Images(NamedTuple):
    """Part of a set of images.

    Attributes:
        X: [N, D] pixels in [0, 1].
        codes: [N] classes.
        X_test: [n, D].
        codes_test: [n].
        shape: (H, W) or (H, W, 3).
    """

    X: Floats
    codes: Ints
    X_test: Floats
    codes_test: Ints
    shape: tuple[int, ...]


def load_images(data: str, n_train: int, n_test: int) -> Images:
    """Random rows of the set's own training and test parts; the same ones every time.

    Args:
        data: a name of the group "images" of the catalogue.
        n_train: at most.
        n_test: at most.

    Raises:
        InputError: the set is not at hand; the message says how to get it.
    """
    pool = load_pool(f"images:{data}", features="pixels")
    if pool.test is None or pool.truth is None or pool.image_shape is None:
        raise InputError(f"Pool images:{data} has no test part, classes or pixels; get it anew.")
    rng = np.random.default_rng([0, 0x1A6])
    truth, features = np.asarray(pool.truth), pool.features
    train = np.sort(rng.permutation(pool.test.train)[:n_train])
    test = np.sort(rng.permutation(pool.test.test)[:n_test])
    return Images(
        np.asarray(features[train], np.float32),
        truth[train],
        np.asarray(features[test], np.float32),
        truth[test],
        pool.image_shape,
    )


def fitted(images: Images, kind: str, network: str, epochs: float, seed: int) -> tuple[Any, dict[str, float]]:
    """A model, with its accuracy, NLL, ECE and the processor time of its fit.

    Args:
        images: to fit and to measure on.
        kind: a classifier that takes a network.
        network: its layers.
        epochs: passes over the images.
        seed: of the fit.
    """
    from workbench.classifiers import make_classifier

    options: dict[str, Any] = {"epochs": epochs, "min_steps": 1}
    if kind == "large-margin-net":
        options = {"pretrain_epochs": epochs / 2, "joint_epochs": epochs / 2, "min_steps": 1}
    elif kind == "softmax-net":
        options["calibration"] = None  # the paper's probabilities
    model = make_classifier(kind, network=network, input_shape=images.shape, random_state=seed, **options)
    begin = process_time()
    model.fit(images.X, images.codes)
    seconds = process_time() - begin
    p = model.predict_proba(images.X_test)
    error, nll, ece = scores(np.searchsorted(model.classes_, images.codes_test), p)
    return model, {"accuracy": 1.0 - float(error), "nll": float(nll), "ece": float(ece), "seconds": seconds}


def fit_part(
    data: str, kind: str, network: str, epochs: float, n_train: int, n_test: int, seed: int
) -> dict[str, float]:
    """One fit and its measurements; arguments as `fitted`."""
    return fitted(load_images(data, n_train, n_test), kind, network, epochs, seed)[1]


def attack_part(
    data: str, network: str, epochs: float, n_train: int, n_test: int, seed: int, n_attacked: int
) -> dict[str, Any]:
    """LMGP-DNN and the CNN on one set, and LMGP-DNN under attack: accuracies and the table of attacks."""
    from workbench.attacks import measure

    images = load_images(data, n_train, n_test)
    model, lmgp = fitted(images, "large-margin-net", network, epochs, seed)
    softmax, plain = fitted(images, "softmax-net", network, epochs, seed)
    robustness = measure(
        model,
        images.X_test[:n_attacked],
        images.codes_test[:n_attacked],
        strengths=STRENGTHS,
        attacks=ATTACKED_BY,
        steps=STEPS,
        softmax=softmax,
        random_state=seed,
    )
    table = robustness.table().astype(object)
    columns = table.where(table.notna(), None).to_dict("list")
    return {
        "lmgp": lmgp,
        "cnn": plain,
        "table": {str(name): list(column) for name, column in columns.items()},
    }


def _fits(
    report: Report, kinds: tuple[str, ...], settings: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str, int], dict[str, float]]:
    """Fit every kind of model to every set for every number of epochs, and add the table of them.

    Args:
        report: of the experiment.
        kinds: of classifiers.
        settings: set -> "network", "epochs" (several) and "n_train".

    Returns:
        (set, kind, epochs) -> measures.
    """
    n_test = 2_000 if report.quick else 10_000
    keys: list[dict[str, Any]] = [
        {"data": data, "kind": kind, "n_test": n_test, "seed": 0, **setting, "epochs": epochs}
        for data, setting in settings.items()
        for epochs in setting["epochs"]
        for kind in kinds
    ]
    results = report.parts(
        "images", keys, fit_part, lambda k: f"{KINDS[k['kind']]} on {TITLES[k['data']]}, {k['epochs']} epochs"
    )
    fits = list(zip(keys, results, strict=True))
    report.table("fits", "Fits", FITS, [_fit_row(k, k["kind"], r) for k, r in fits])
    return {(k["data"], k["kind"], k["epochs"]): r for k, r in fits}


def _claim_accuracy(report: Report, claim: str, paper: str, accuracy: float, plain: float, when: str) -> None:
    gap = plain - accuracy
    report.claim(
        claim,
        paper=paper,
        ours=f"{accuracy:.4f} against {plain:.4f}{when}",
        holds={f"at most 0.03 behind ({gap:+.4f})": gap <= 0.03, "at most 0.01 behind": gap <= 0.01},
    )


def _claim_against_cnn(
    report: Report, data: str, lmgp: Mapping[str, float], plain: Mapping[str, float], epochs: float
) -> None:
    """Figure 4's two claims about one set, from the measures of both models after as many epochs."""
    beyond = "not in the papers" if data == "fashion_mnist" else ""
    _claim_accuracy(
        report,
        f"on {TITLES[data]} LMGP-DNN is as accurate as the CNN",
        beyond or "the same test accuracy (figure)",
        lmgp["accuracy"],
        plain["accuracy"],
        f" after {epochs:g} epochs",
    )
    ratio = lmgp["seconds"] / plain["seconds"]
    report.claim(
        f"on {TITLES[data]} LMGP-DNN takes longer to train",
        paper=beyond or "longer training (figure)",
        ours=f"{ratio:.2f} times as long for as many epochs",
        holds={"longer": ratio > 1.0},
    )


def _claim_likelihoods(
    report: Report, data: str, fits: Sequence[Sequence[Mapping[str, float]]], epochs: Sequence[int]
) -> None:
    """Likelihood and calibration of LMGP-DNN beside the CNN's, after each number of epochs."""
    pairs = {
        name: [(lmgp[name], plain[name]) for lmgp, plain in zip(*fits, strict=True)]
        for name in ("nll", "ece")
    }
    after = ", ".join(map(str, epochs))
    report.claim(
        f"on {TITLES[data]} LMGP-DNN has the better likelihood and calibration",
        paper="not in the papers",
        ours=f"after {after} epochs, LMGP-DNN / CNN: "
        + "; ".join(
            f"{name.upper()} " + ", ".join(f"{a:.3g} / {b:.3g}" for a, b in values)
            for name, values in pairs.items()
        ),
        holds={
            f"lower {name.upper()} after {n} epochs": a < b
            for name, values in pairs.items()
            for n, (a, b) in zip(epochs, values, strict=True)
        },
    )


def _fit_row(key: Mapping[str, Any], kind: str, fit: Mapping[str, float]) -> tuple[Any, ...]:
    measures = (fit[name] for name in ("accuracy", "nll", "ece", "seconds"))
    return (TITLES[key["data"]], KINDS[kind], key["epochs"], key["n_train"], *measures)


def fig4(report: Report) -> None:
    """LMGP-DNN against a CNN: test accuracy and training time (Wistuba & Rawat 2018 and 2019, figure 4)."""
    from workbench.figures.theme import class_colour, figure

    epochs = report.cap("epochs", (3, 6, 12), (2, 4))
    # the papers' network would take an hour on as many images, and learns nothing from fewer
    cifar = report.cap("network on CIFAR-10 (JPEG)", PAPERS_NETWORK["cifar10_jpeg"], "middle")
    networks = {"mnist": PAPERS_NETWORK["mnist"], "cifar10_jpeg": cifar}
    sizes = {"mnist": (60_000, 4_000), "cifar10_jpeg": (50_000, 10_000)}
    settings = {
        data: {"network": networks[data], "epochs": epochs, "n_train": _rows(report, data, *size)}
        for data, size in sizes.items()
    }
    by = _fits(report, ("softmax-net", "large-margin-net"), settings)
    fig = figure(x="Processor time of training, seconds", y="Test accuracy", x_options={"type": "log"})
    for rank, data in enumerate(sizes):
        lmgp, plain = (by[data, kind, epochs[-1]] for kind in ("large-margin-net", "softmax-net"))
        _claim_against_cnn(report, data, lmgp, plain, epochs[-1])
        _claim_likelihoods(
            report,
            data,
            [[by[data, kind, n] for n in epochs] for kind in ("large-margin-net", "softmax-net")],
            epochs,
        )
        for kind, dash in (("large-margin-net", "solid"), ("softmax-net", "dot")):
            fits = [by[data, kind, n] for n in epochs]
            fig.add_scatter(
                x=[r["seconds"] for r in fits],
                y=[r["accuracy"] for r in fits],
                mode="lines+markers",
                name=f"{TITLES[data]}: {KINDS[kind]}",
                line={"color": class_colour(rank), "dash": dash},
            )
    report.figure("accuracy-against-time", "Accuracy against training time", fig)
    report.notes = [
        SHARED,
        JPEG,
        "Processor time of this machine; only the ratio is compared with the papers.",
    ]


def adversarial(report: Report) -> None:
    """Accuracy and variation ratio under attack (2018, figure 6; 2019, figure 7), and what they left out."""
    sizes = {"mnist": (60_000, 20_000), "fashion_mnist": (60_000, 20_000), "cifar10_jpeg": (10_000, 10_000)}
    small = report.quick
    # CIFAR-10's network takes five times as long for a gradient
    attacked = dict.fromkeys(sizes, 500) if small else dict.fromkeys(sizes, 2_000) | {"cifar10_jpeg": 500}
    keys: list[dict[str, Any]] = [
        {
            "data": data,
            "network": "middle" if small else PAPERS_NETWORK[data],
            "epochs": 12 if data == "cifar10_jpeg" else 8,
            "n_train": _rows(report, data, *size),
            "n_test": 2_000 if small else 10_000,
            "seed": 0,
            "n_attacked": attacked[data],
        }
        for data, size in sizes.items()
    ]
    report.cap("networks", "the papers'", "middle")
    results = report.parts("images-attacks", keys, attack_part, lambda k: f"attacks on {TITLES[k['data']]}")
    if not small:
        report.caps.append("CIFAR-10: 10,000 of 50,000 images (the papers' network takes minutes an epoch)")
    counts = ", ".join(f"{n:,} of {TITLES[data]}" for data, n in attacked.items())
    report.caps.append(f"attacked images: {counts}")
    for data, result in zip(sizes, results, strict=True):
        table = result["table"]
        lines = pd.DataFrame(table)
        _claim_attacks(report, data, lines, result["lmgp"]["accuracy"])
        _draw_attacks(report, data, lines)
        rows = list(zip(*table.values(), strict=True))
        report.table(f"attacks-{data}", f"Attacks on {TITLES[data]}", tuple(table), rows, shown=36)
    fits = []
    for key, result in zip(keys, results, strict=True):
        # both models are fitted for the attacks: what figure 4 says of them comes with it
        _claim_against_cnn(report, key["data"], result["lmgp"], result["cnn"], key["epochs"])
        _claim_likelihoods(report, key["data"], [[result["lmgp"]], [result["cnn"]]], [key["epochs"]])
        fits.append(_fit_row(key, "large-margin-net", result["lmgp"]))
        fits.append(_fit_row(key, "softmax-net", result["cnn"]))
    report.table("fits", "Fits", FITS, fits)
    report.notes = [
        "Exact variation ratios; the papers used samples. Areas compare all clean with all attacked images.",
        "The adaptive attack, the noise and Fashion-MNIST are not in the papers; what is claimed of them is "
        "what a user of the detector must know.",
        SHARED,
        JPEG,
    ]


def gwi(report: Report) -> None:
    """Gaussian Wasserstein inference with a CNN mean, beside LMGP-DNN and the CNN (the GWI notes)."""
    settings = {
        data: {"network": "small", "epochs": (12,), "n_train": _rows(report, data, 20_000, 10_000)}
        for data in ("mnist", "fashion_mnist")
    }
    by = _fits(report, ("wasserstein", "large-margin-net", "softmax-net"), settings)
    for data in settings:
        gp, plain = by[data, "wasserstein", 12], by[data, "softmax-net", 12]
        _claim_accuracy(
            report,
            f"on {TITLES[data]} a GP with a CNN mean classifies as well as the CNN",
            "in words only",
            gp["accuracy"],
            plain["accuracy"],
            "",
        )
        report.claim(
            f"on {TITLES[data]} it knows better how sure it is",
            paper="in words only",
            ours=f"NLL {gp['nll']:.3f} against {plain['nll']:.3f}, ECE {gp['ece']:.3f} against "
            f"{plain['ece']:.3f}",
            holds={
                "NLL not worse": gp["nll"] <= plain["nll"],
                "ECE not worse": gp["ece"] <= plain["ece"],
            },
        )
    report.caps.append("a small network and at most 20,000 images")
    report.notes = ["The notes give no figures: the claims are theirs in words, the conditions ours."]


def _line(table: pd.DataFrame, attack: str, column: str, detector: str = "variation-ratio") -> Floats:
    """[S] a column of one attack in a table of attacks, by strength."""
    rows = table[(table["attack"] == attack) & (table["detector"].fillna("") == detector)]
    return rows.sort_values("strength")[column].to_numpy(np.float64)


def _claim_attacks(report: Report, data: str, lines: pd.DataFrame, clean: float) -> None:
    title, jpeg = TITLES[data], data == "cifar10_jpeg"
    hits, means, areas = (_line(lines, "fgsm", c) for c in ("accuracy", "mean_score", "auc"))
    best, last = float(areas[1:].max()), float(areas[-1])
    beyond = "not in the papers"
    report.claim(
        f"{title}: accuracy falls with the strength of FGSM",
        paper={"mnist": "falls (figure)", "cifar10_jpeg": "down to 1.16 %"}.get(data, beyond),
        ours=f"{clean:.3f} to {hits[-1]:.3f} at strength {lines['strength'].max():g}",
        holds={
            "falls throughout, within 0.02": (np.diff(hits) <= 0.02).all(),
            "to below half": hits[-1] < 0.5 * clean,
        },
    )
    if jpeg:
        report.claim(
            f"{title}: detection is poor and worsens with strength, yet better than guessing",
            paper="in words",
            ours=f"areas {_listed(areas[1:])}",
            holds={
                "best area below 0.8": best < 0.8,
                "last at least 0.02 below the best": last <= best - 0.02,
                "last above 0.5": last > 0.5,
            },
        )
    else:
        report.claim(
            f"{title}: the variation ratio rises rapidly and detects nearly all attacked images",
            paper="area almost 1" if data == "mnist" else beyond,
            ours=f"mean {means[0]:.3f} to {means.max():.3f}; areas {_listed(areas[1:])}",
            holds={
                "five times the clean mean": means.max() > 5 * means[0],
                f"best area at least 0.98 ({best:.3f})": best >= 0.98,
            },
        )
    adaptive, noise = _line(lines, "adaptive-pgd", "auc"), _line(lines, "noise", "auc")
    report.claim(
        f"{title}: an attack that knows the detector evades it, and harmless noise sets it off",
        paper="not tested",
        ours=f"adaptive: areas {_listed(adaptive[1:])}; random signs: {_listed(noise[1:])}",
        holds={
            "adaptive attack at full strength below 0.6": adaptive[-1] < 0.6,
            "random signs at full strength above 0.7": noise[-1] > 0.7,
        },
    )


def _draw_attacks(report: Report, data: str, lines: pd.DataFrame) -> None:
    from workbench.attacks import ATTACKS
    from workbench.attacks.robustness import DETECTORS
    from workbench.figures.adversarial import detection_curves, strength_curves

    accuracy = {ATTACKS[a].title: _line(lines, a, "accuracy") for a in ATTACKED_BY}
    accuracy["CNN, its own FGSM"] = _line(lines, "softmax", "accuracy", "")
    suspicion = {ATTACKS[a].title: _line(lines, a, "mean_score") for a in ATTACKED_BY}
    areas = {
        ATTACKS[a].title: {e.title: _line(lines, a, "auc", name) for name, e in DETECTORS.items()}
        for a in ("fgsm", "adaptive-pgd", "noise")
    }
    control = (ATTACKS["noise"].title,)
    report.figure(
        f"strength-{data}",
        f"{TITLES[data]}: accuracy and mean variation ratio",
        strength_curves(
            np.unique(lines["strength"]), accuracy, suspicion, score="Variation ratio", controls=control
        ),
    )
    report.figure(
        f"detection-{data}",
        f"{TITLES[data]}: area under the ROC curve",
        detection_curves(np.unique(lines["strength"]), areas),
    )


def _rows(report: Report, data: str, full: int, quick: int) -> int:
    n = report.cap(f"images of {TITLES[data]} to train on", full, quick)
    if report.max_rows is not None and report.max_rows < n:
        report.caps.append(f"images of {TITLES[data]} to train on: {report.max_rows:,} instead of {full:,}")
        return report.max_rows
    return n


def _listed(values: Floats) -> str:
    return " / ".join(f"{v:.2f}" for v in values)
