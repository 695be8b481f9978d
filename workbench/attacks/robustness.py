"""One model under several attacks at several strengths: accuracy, suspicion, ROC areas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.attacks import ATTACKS, LOSSES, check_images, check_strengths, loss_of
from workbench.classifiers.latent import Latent
from workbench.classifiers.protocols import supports_latent
from workbench.errors import InputError
from workbench.metrics import area_under_roc
from workbench.policies.belief import belief_of
from workbench.policies.registry import POLICIES, PolicyEntry
from workbench.progress import OnProgress, quiet
from workbench.registry import Registry
from workbench.versions import version_of

if TYPE_CHECKING:
    import pandas as pd


DETECTORS: Registry[PolicyEntry] = Registry(
    "detector", [], lambda: [entry for entry in POLICIES.values() if entry.detects]
)
"""The policies whose utility judges every image by itself; higher = more suspicious."""


def detectors_for(model: Any) -> tuple[str, ...]:
    """Names of the detectors a model can feed.

    Args:
        model: a classifier.
    """
    latent = supports_latent(model)
    return tuple(name for name, entry in DETECTORS.items() if latent or "latent" not in entry.needs)


class Scores(NamedTuple):
    """Scores of a model for images.

    Attributes:
        codes: [N] predicted classes.
        confidence: [N] their probabilities.
        suspicion: [K, N] one row a detector, higher = more suspicious.
    """

    codes: Array
    confidence: Floats
    suspicion: Floats


def score(model: Any, X: Array, detectors: Sequence[str], seed: int = 0) -> Scores:
    """Predictions and suspicion of images; the same images always get the same numbers.

    Args:
        model: a fitted classifier.
        X: [N, D].
        detectors: K names in `DETECTORS`.
        seed: of detectors that draw samples; the same draws serve clean and attacked images.

    Returns:
        The scores.

    Raises:
        InputError: a detector the model cannot feed.
    """
    has_latent = supports_latent(model)
    for name in detectors:
        if "latent" in DETECTORS[name].needs and not has_latent:
            raise InputError(
                f"Detector {name!r} needs latent functions with uncertainty and {type(model).__name__} has "
                f"none. Use one of: {', '.join(detectors_for(model))}."
            )
    probabilities = model.predict_proba(X)
    belief = belief_of(model, X, probabilities=probabilities)
    rows = [DETECTORS[name].load()(belief, np.random.default_rng([seed, 0xDE7])) for name in detectors]
    suspicion = np.stack(rows) if rows else np.empty((0, len(X)))
    return Scores(probabilities.argmax(axis=1), probabilities.max(axis=1), suspicion)


def threshold_at(clean: Floats, rate: float) -> float:
    """The lowest threshold that flags at most `rate` of the clean images (flagged: score >= threshold).

    Args:
        clean: [n] scores.
        rate: in [0, 1].
    """
    ordered = np.sort(clean)[::-1]
    allowed = int(np.floor(rate * len(ordered) + 1e-9))
    if allowed >= len(ordered):
        return float(ordered[-1])
    # just above the first score that may not be flagged, so that its ties are spared as well
    return float(np.nextafter(ordered[allowed], np.inf))


class Confusion(NamedTuple):
    """Counts at a threshold.

    Attributes:
        clean_flagged: false alarms.
        clean_passed: rightly let through.
        attacked_flagged: rightly found.
        attacked_passed: missed.
    """

    clean_flagged: int
    clean_passed: int
    attacked_flagged: int
    attacked_passed: int


def confusion_at(clean: Floats, attacked: Floats, threshold: float) -> Confusion:
    """Shares of both kinds of images that a threshold flags.

    Args:
        clean: [n] scores.
        attacked: [m] scores.
        threshold: flagged where the score is at least this.
    """
    false, hits = int((clean >= threshold).sum()), int((attacked >= threshold).sum())
    return Confusion(false, len(clean) - false, hits, len(attacked) - hits)


STRENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
ATTACKED_BY = ("fgsm", "adaptive-pgd", "noise")
SOFTMAX = "softmax"
"""Name of the comparison line: the softmax network under FGSM of its own."""
_PACKAGES = ("workbench-labels", "tensorflow", "keras", "gpflow", "numpy", "scipy", "scikit-learn")


class Examples(NamedTuple):
    """Some of the images, kept to be looked at. k images, A attacks, S strengths.

    Attributes:
        items: [k] their places among the N.
        clean: [k, D] pixels.
        attacked: [A, S, k, D] float32 pixels.
        clean_latent: mean and variance [k, C], or None for models without latent functions.
        latent: mean and variance [A, S, k, C], or None.
    """

    items: Ints
    clean: Floats
    attacked: Floats
    clean_latent: Latent | None
    latent: Latent | None


@dataclass(frozen=True, eq=False)
class Robustness:
    """Measurements of attacks. A attacks, S strengths, K detectors, N images.

    Attributes:
        attacks: [A] names.
        strengths: [S].
        detectors: [K] names.
        classes: [C] labels.
        truth: [N] codes of the true classes, or of the clean predictions where truth was unknown.
        truth_known: whether `truth` is the truth.
        clean_codes: [N] predictions of the clean images.
        clean_scores: [K, N] suspicion of the clean images.
        codes: [A, S, N] predictions of the attacked images.
        confidence: [A, S, N].
        scores: [A, S, K, N].
        softmax_accuracy: [S] of the comparison network under FGSM of its own, or None.
        settings: seed, losses, steps, versions.
        examples: some images to look at.
    """

    attacks: tuple[str, ...]
    strengths: Floats
    detectors: tuple[str, ...]
    classes: tuple[Any, ...]
    truth: Ints
    truth_known: bool
    clean_codes: Ints
    clean_scores: Floats
    codes: Ints
    confidence: Floats
    scores: Floats
    softmax_accuracy: Floats | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    examples: Examples | None = None

    @property
    def accuracy(self) -> Floats:
        """[A, S] share of attacked images still classified rightly."""
        result: Floats = (self.codes == self.truth).mean(axis=2)
        return result

    @property
    def successful(self) -> Array:
        """[A, S, N] the model was right about the clean image and is wrong about the attacked one."""
        return (self.clean_codes == self.truth) & (self.codes != self.truth)

    @property
    def mean_scores(self) -> Floats:
        """[A, S, K]."""
        result: Floats = self.scores.mean(axis=3)
        return result

    def auc(self, *, successful_only: bool = False) -> Floats:
        """Area under the ROC curve of every detector.

        Args:
            successful_only: count an attacked image only where the attack changed a right answer
                into a wrong one; the clean images are all of them either way.

        Returns:
            [A, S, K]; NaN where there is no such image, or a score is no finite number.
        """
        areas = np.full(self.scores.shape[:3], np.nan)
        successes = self.successful
        for a, s, k in np.ndindex(areas.shape):
            attacked = self.scores[a, s, k]
            if successful_only:
                attacked = attacked[successes[a, s]]
            clean = self.clean_scores[k]
            if len(attacked) and np.isfinite(clean).all() and np.isfinite(attacked).all():
                areas[a, s, k] = area_under_roc(clean, attacked)
        return areas

    def row(self, attack: str, strength: float) -> tuple[int, int]:
        """The place of an attack and of the nearest strength.

        Raises:
            InputError: the attack was not measured.
        """
        if attack not in self.attacks:
            raise InputError(f"{attack!r} was not measured; measured: {', '.join(self.attacks)}.")
        return self.attacks.index(attack), int(np.abs(self.strengths - strength).argmin())

    def table(self) -> pd.DataFrame:
        """One row an attack, strength and detector, for people and for files."""
        import pandas as pd

        areas, success_areas = self.auc(), self.auc(successful_only=True)
        hits, means, n_successful = self.accuracy, self.mean_scores, self.successful.sum(axis=2)
        rows = [
            {
                "attack": attack,
                "strength": float(strength),
                "images": len(self.truth),
                "accuracy": hits[a, s],
                "successful": int(n_successful[a, s]),
                "detector": detector,
                "mean_score_clean": float(self.clean_scores[k].mean()),
                "mean_score": means[a, s, k],
                "auc": areas[a, s, k],
                "auc_successful": success_areas[a, s, k],
            }
            for a, attack in enumerate(self.attacks)
            for s, strength in enumerate(self.strengths)
            for k, detector in enumerate(self.detectors)
        ]
        if self.softmax_accuracy is not None:
            rows += [
                {"attack": SOFTMAX, "strength": float(e), "images": len(self.truth), "accuracy": float(hit)}
                for e, hit in zip(self.strengths, self.softmax_accuracy, strict=True)
            ]
        return pd.DataFrame(rows)


def measure(
    model: Any,
    X: Array,
    y: Array | None = None,
    *,
    strengths: Sequence[float] = STRENGTHS,
    attacks: Sequence[str] = ATTACKED_BY,
    loss: str | None = None,
    steps: int = 20,
    softmax: Any = None,
    random_state: int = 0,
    keep: int = 0,
    report: OnProgress = quiet,
) -> Robustness:
    """Attack a model and score what comes out.

    Args:
        model: a fitted classifier with gradients.
        X: [N, D] images in [0, 1].
        y: [N] true labels; None takes the model's clean predictions for the truth.
        strengths: [S].
        attacks: names in `ATTACKS`.
        loss: of FGSM, PGD and transfer; None for cross-entropy. The adaptive attack keeps its own.
        steps: of iterative attacks.
        softmax: a fitted softmax network for comparison; "transfer" computes its gradient on it.
        random_state: of noise, of where PGD starts, and of detectors that draw.
        keep: the first so many images are kept as examples.
        report: told (fraction, what is being done); may raise `Cancelled`.

    Returns:
        The measurements.

    Raises:
        InputError: as `attacks_on` and `score`.
    """
    from workbench.attacks.methods import attacks_on, codes_of

    names = tuple(dict.fromkeys(attacks))
    if not names:
        raise InputError("Choose at least one attack.")
    for name in names:
        loss_of(name, loss, supports_latent(softmax if ATTACKS[name].needs_surrogate else model))
    images, grid, kinds = check_images(X), check_strengths(strengths), detectors_for(model)
    total = len(names) * len(grid) + 1 + (softmax is not None) * len(grid)
    done = 0

    def tell(stage: str) -> None:
        nonlocal done
        report(done / total, stage)
        done += 1

    tell("clean images")
    clean = score(model, images, kinds, random_state)
    truth = clean.codes if y is None else codes_of(model, np.asarray(y), len(images))
    labels = np.asarray(model.classes_)[truth]
    shape = len(names), len(grid), len(images)
    codes, confidence = np.empty(shape, np.int64), np.empty(shape)
    scores = np.empty((*shape[:2], len(kinds), shape[2]))
    example_rows = np.arange(min(max(keep, 0), len(images)))
    pictures = np.empty((*shape[:2], len(example_rows), images.shape[1]), np.float32)
    for a, name in enumerate(names):
        adversarials = attacks_on(
            model,
            images,
            labels,
            method=name,
            strengths=grid,
            loss=loss,
            steps=steps,
            surrogate=softmax,
            random_state=random_state,
        )
        for s, strength in enumerate(grid):
            tell(f"{ATTACKS[name].title}, strength {strength:g}")
            adversarial = next(adversarials)
            codes[a, s], confidence[a, s], scores[a, s] = score(model, adversarial, kinds, random_state)
            pictures[a, s] = adversarial[example_rows]
    compared = None if softmax is None else _accuracy_of(softmax, images, labels, grid, loss, tell)
    return Robustness(
        attacks=names,
        strengths=grid,
        detectors=kinds,
        classes=tuple(np.asarray(model.classes_).tolist()),
        truth=truth,
        truth_known=y is not None,
        clean_codes=clean.codes,
        clean_scores=clean.suspicion,
        codes=codes,
        confidence=confidence,
        scores=scores,
        softmax_accuracy=compared,
        settings={
            "model": type(model).__name__,
            "seed": int(random_state),
            "loss": loss or "cross-entropy",
            "steps": int(steps),
            "images": len(images),
            "versions": versions(),
        },
        examples=_examples(model, images, example_rows, pictures) if example_rows.size else None,
    )


def _accuracy_of(
    softmax: Any, images: Floats, labels: Array, grid: Any, loss: str | None, tell: Callable[[str], None]
) -> Floats:
    """[S] accuracy of the network that is compared, under FGSM against itself."""
    from workbench.attacks.methods import attacks_on

    hits = []
    if loss is not None and LOSSES[loss].needs_variance:
        loss = None  # it has no variance: its own loss, as it was trained
    adversarials = attacks_on(softmax, images, labels, method="fgsm", strengths=grid, loss=loss)
    for strength in grid:
        tell(f"softmax network, strength {strength:g}")
        hits.append(float((softmax.predict(next(adversarials)) == labels).mean()))
    return np.array(hits)


def _examples(model: Any, images: Floats, rows: Ints, pictures: Floats) -> Examples:
    clean = images[rows]
    if not supports_latent(model):
        return Examples(rows, clean, pictures, None, None)
    flat = model.predict_latent(pictures.reshape(-1, pictures.shape[-1]).astype(np.float64))
    latent = Latent(*(np.asarray(part).reshape(*pictures.shape[:3], -1) for part in flat))
    return Examples(rows, clean, pictures, model.predict_latent(clean), latent)


def versions() -> dict[str, str]:
    """Versions of what the numbers come from."""
    return {name: version for name in _PACKAGES if (version := version_of(name))}
