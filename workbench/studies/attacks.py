"""One attack experiment from its spec: a pool, a model fitted on part of it, attacks on the rest."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from workbench.arrays import Array, Ints
from workbench.attacks import ATTACKS, check_strengths, loss_of
from workbench.classifiers import CLASSIFIERS
from workbench.csv_writing import csv_text
from workbench.documents.checking import Name, Names, Options, Seed, Word, checked_settings
from workbench.errors import InputError
from workbench.pools import load_pool, seen_as_pixels
from workbench.pools.pool import Pool
from workbench.progress import FitCallback, OnProgress, quiet

if TYPE_CHECKING:
    from workbench.attacks.robustness import Robustness
    from workbench.sessions.fitted_model import FittedModel

EXAMPLES = 48
MAX_LABELS = 5000
AtLeastOne = Annotated[int, Field(ge=1)]
Strengths = Annotated[tuple[float, ...], Field(strict=False)]


@dataclass(frozen=True)
class AttackSpec:
    """Attacks of a study, and their targets.

    Attributes:
        pool: a name or path that `load_pool` knows, of images.
        classifier: a registry name.
        options: of the classifier.
        pool_options: of `load_pool`.
        n_train: labels to fit on at most.
        n_test: images to attack at most.
        strengths: largest changes of a pixel, ascending from 0.
        attacks: names.
        loss: of the attacks that do not bring their own; "" for cross-entropy.
        steps: of iterative attacks.
        softmax: fit a softmax network on the same labels for comparison and for transfer.
        seed: of split, fit, noise.
        project: name of the project whose own model was attacked; "" for a model fitted for the purpose.
    """

    pool: Word = "digits"
    classifier: Name = "large-margin"
    options: Options = field(default_factory=dict)
    pool_options: Options = field(default_factory=dict)
    n_train: AtLeastOne = MAX_LABELS
    n_test: AtLeastOne = 360
    strengths: Strengths = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
    attacks: Names = ("fgsm", "adaptive-pgd", "noise")
    loss: Word = ""
    steps: AtLeastOne = 20
    softmax: bool = False
    seed: Seed = 0
    project: Word = ""

    def __post_init__(self) -> None:
        if isinstance(self.strengths, np.ndarray):
            vars(self).update(strengths=tuple(self.strengths.ravel().tolist()))
        vars(self).update(checked_settings(AttackSpec, vars(self), "The attack", "cannot be made"))
        check_strengths(self.strengths)
        if not self.attacks:
            raise InputError("Choose at least one attack.")
        for name in self.attacks:
            if ATTACKS[name].needs_surrogate and not self.softmax:
                raise InputError("The transfer attack needs the softmax network: compare with it too.")
            source = "softmax-net" if ATTACKS[name].needs_surrogate else self.classifier
            # a classifier of the user's own is asked when it is there
            has_latent = source not in CLASSIFIERS or CLASSIFIERS[source].has_latent
            loss_of(name, self.loss or None, has_latent)


@dataclass(frozen=True, eq=False)
class AttackOutcome:
    """Results of the attacks.

    Attributes:
        spec: what was asked for.
        robustness: the measurements.
        image_shape: (H, W) or (H, W, 3).
        n_train: labels the model was fitted on.
        fit_seconds: wall time of its fit.
        clean_accuracy: on the clean images.
        softmax_accuracy: of the comparison network on them, or None.
    """

    spec: AttackSpec
    robustness: Robustness
    image_shape: tuple[int, ...]
    n_train: int
    fit_seconds: float
    clean_accuracy: float
    softmax_accuracy: float | None

    @property
    def settings(self) -> dict[str, Any]:
        """Everything needed to do it again: the spec, the seed, versions."""
        document = asdict(self.spec)
        document["options"], document["pool_options"] = dict(self.spec.options), dict(self.spec.pool_options)
        return document | {
            "labels": self.n_train,
            "images": len(self.robustness.truth),
            "versions": dict(self.robustness.settings["versions"]),
        }

    def archive(self) -> bytes:
        """A zip of table.csv, settings.json and scores.npz."""
        r = self.robustness
        scores = io.BytesIO()
        np.savez_compressed(
            scores,
            strengths=r.strengths,
            attacks=np.array(r.attacks),
            detectors=np.array(r.detectors),
            truth=r.truth,
            clean_predictions=r.clean_codes,
            clean_scores=r.clean_scores,
            predictions=r.codes,
            scores=r.scores,
        )
        table = r.table()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr("table.csv", csv_text(list(table.columns), table.itertuples(index=False)))
            bundle.writestr("settings.json", json.dumps(self.settings, indent=2, sort_keys=True) + "\n")
            bundle.writestr("scores.npz", scores.getvalue())
        return buffer.getvalue()


def attack_experiment(
    spec: AttackSpec, report: OnProgress = quiet, *, pool: Pool | None = None
) -> AttackOutcome:
    """Fit, attack, score.

    Args:
        spec: what to do.
        report: called with (fraction, what is being done); may raise `Cancelled`.
        pool: instead of loading the spec's.

    Returns:
        The outcome.

    Raises:
        InputError: a pool without images or truth, or a model that cannot be attacked.
        Cancelled: from `report`.
    """
    # loads the engine, so that the time of the fit is the fit's
    import workbench.attacks.methods  # noqa: F401
    from workbench.sessions.learner import Learner

    report(0.0, "opening the pool")
    pool = pool or load_pool(spec.pool, **seen_as_pixels(spec.pool, spec.pool_options))
    if pool.test is None:
        pool = pool.split(spec.seed)
    train, test = chosen_rows(pool, spec.n_train, spec.n_test, spec.seed)
    truth = np.asarray(pool.truth)
    learner = Learner(pool, spec.classifier, _alone(spec), seed=spec.seed)
    callback = _stages(report, 0.02, 0.55 if spec.softmax else 0.6, "fitting the model")
    model = learner.fit(train, truth[train], number=0, callback=callback)
    return _attacked(spec, model, test, truth[test], report)


def attack_model(
    spec: AttackSpec, model: FittedModel, items: Ints, codes: Ints | None, report: OnProgress = quiet
) -> AttackOutcome:
    """Attack a model as it stands.

    Args:
        spec: what to do; its pool, classifier and options only say what the model is.
        model: a project's, say. One that leans on its items' neighbours is fitted again without: an attacker
            changes the pixels of one image, and those of its neighbours stay.
        items: images to attack that it was not trained on; a random part of `spec.n_test`.
        codes: their classes among the model's, or None: then what the model now predicts counts as right.
        report: as in `attack_experiment`.

    Returns:
        The outcome.

    Raises:
        InputError: no images, features that are not their pixels, or a model that cannot be attacked.
        Cancelled: from `report`.
    """
    _shape_of(model.pool)
    if len(items) == 0:
        raise InputError("There are no images to attack that the model was not trained on.")
    sample = np.random.default_rng([spec.seed, 0xA7C]).permutation(len(items))[: spec.n_test]
    if model.seen is not None:
        from workbench.sessions.learner import Learner

        learner = Learner(model.pool, spec.classifier, _alone(spec), seed=spec.seed, classes=model.classes)
        model = learner.fit(model.items, model.codes, number=model.number)
    return _attacked(spec, model, items[sample], None if codes is None else codes[sample], report)


def _alone(spec: AttackSpec) -> dict[str, Any]:
    """Options of a model that sees the pixels of one image."""
    return {**spec.options, "neighbours": "none"}


def _attacked(
    spec: AttackSpec, model: FittedModel, items: Ints, codes: Ints | None, report: OnProgress
) -> AttackOutcome:
    """Fit the softmax network where one is asked for, then attack and score."""
    from workbench.attacks import measure
    from workbench.sessions.learner import Learner

    begin, softmax = 0.6, None
    if spec.softmax:
        begin = 0.75
        softmax = (
            Learner(model.pool, "softmax-net", seed=spec.seed, classes=model.classes)
            .fit(
                model.items,
                model.codes,
                number=0,
                callback=_stages(report, 0.55, begin, "fitting the softmax network"),
            )
            .estimator
        )
    images = np.asarray(model.pool.features[items])
    robustness = measure(
        model.estimator,
        images,
        codes,
        strengths=spec.strengths,
        attacks=spec.attacks,
        loss=spec.loss or None,
        steps=spec.steps,
        softmax=softmax,
        random_state=spec.seed,
        keep=EXAMPLES,
        report=lambda fraction, message: report(begin + (1 - begin) * fraction, message),
    )
    return AttackOutcome(
        spec,
        # estimators know codes alone
        replace(robustness, classes=tuple(model.classes[code] for code in robustness.classes)),
        _shape_of(model.pool),
        model.n_labelled,
        model.seconds,
        float((robustness.clean_codes == robustness.truth).mean()),
        None if softmax is None else float((softmax.predict(images) == robustness.truth).mean()),
    )


def chosen_rows(pool: Pool, n_train: int, n_test: int, seed: int) -> tuple[Ints, Ints]:
    """A random part of the training and of the test rows whose class is known.

    Args:
        pool: with a test split.
        n_train: at most.
        n_test: at most.
        seed: of the choice.

    Raises:
        InputError: no images, features that are not their pixels, or no truth.
    """
    _shape_of(pool)
    if not pool.has_truth or pool.test is None:
        raise InputError(
            f"The classes of pool {pool.name!r} are not known, so there is nothing to fit or to measure. "
            "Choose a pool with classes."
        )
    truth, rng = np.asarray(pool.truth), np.random.default_rng([seed, 0xA7C])

    def some(rows: Array, n: int) -> Ints:
        candidates = rows[truth[rows] >= 0]
        return np.sort(rng.permutation(candidates)[:n])

    train, test = some(pool.test.train, n_train), some(pool.test.test, n_test)
    # in random order, so that the first ones are a fair sample to look at
    return train, rng.permutation(test)


def _shape_of(pool: Pool) -> tuple[int, ...]:
    if pool.kind != "image":
        raise InputError(
            f"Attacks change pixels, and pool {pool.name!r} is a {pool.kind}. Choose a pool of images."
        )
    shape = pool.image_shape
    if shape is None:
        raise InputError(
            f"The features of pool {pool.name!r} are not its pixels; open it with pixels as features."
        )
    return shape


def _stages(report: OnProgress, start: float, end: float, message: str) -> FitCallback:
    def callback(fraction: float, objective: float) -> bool:
        report(start + (end - start) * fraction, message)
        return False

    return callback
