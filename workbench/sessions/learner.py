"""Fits one classifier, round after round, on the growing labels of one pool."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from time import perf_counter
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import CLASSIFIERS, Geometry, make_classifier, protocols, title_of
from workbench.errors import InputError
from workbench.pools.neighbours.graph import Neighbourhood, Seen, checked_strength
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.sessions.drawing import FIT, generator
from workbench.sessions.fitted_model import Explained, FittedModel, Known, PoolLatents
from workbench.sessions.sharing import Beside, Common
from workbench.sessions.smoothing import (
    NeighbourhoodBuild,
    Smoothing,
    at_first,
    choose,
    in_turn,
    is_due,
    leans_by_itself,
    without_smoothing,
)


class Learner:
    """Fits one classifier on growing label sets of one pool.

    What a sparse model takes from the pool (its geometry) is measured once, from the trainable rows
    and the seed alone.

    Args:
        pool: with its test split, if any.
        classifier: a registry name, "package.module:Class", or an unfitted estimator.
        options: constructor options, for names; and `neighbours`, of every classifier: "auto", or one of
            `pools.neighbours.graph.STRENGTHS`. It is "auto" for a model that chooses its geometry, else
            "none".
        seed: of the run or project.
        classes: names of the classes; the pool's unless given.
        cached: bytes that may be kept of what the pool looks like to the model; little unless given.
        mean: [J, N, C] guesses at every item of the pool (`workbench.guesses.stacked`), or None.
        making: of the pool's graph of neighbours: until it is there the choice is among what exists. None
            makes the graph when it is first needed, and waits for it.
        common: what the learners of several questions over the pool measure once; None for one by itself.
        checked: whether another process has made this classifier of these options: here it is made, and its
            libraries are imported, when it is first needed.

    Raises:
        InputError: no such classifier or option, or a classifier that cannot take this pool or a guess.
    """

    def __init__(
        self,
        pool: Pool,
        classifier: str | Any = "large-margin",
        options: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        classes: tuple[str, ...] | None = None,
        cached: int | None = None,
        mean: Floats | None = None,
        making: NeighbourhoodBuild | None = None,
        common: Common | None = None,
        checked: bool = False,
    ) -> None:
        self.pool = pool
        self._common = common
        self.mean = mean
        self.classifier = classifier
        self.options = dict(options or {})
        wish = self.options.pop("neighbours", None)
        self.neighbours = (
            leans_by_itself(classifier, self.options) if wish is None else checked_strength(wish)
        )
        self._making = making
        self.seed = seed
        self.classes = pool.classes if classes is None else classes
        self.latents = PoolLatents(pool.features, cached)
        self._geometries: dict[tuple[type, str], Geometry] = {}
        entry = CLASSIFIERS.get(classifier) if isinstance(classifier, str) else None
        if entry is not None and entry.binary_only and len(self.classes) > 2:
            raise InputError(
                f"{entry.title} is for two classes and pool {pool.name!r} has {len(self.classes)}."
            )
        if entry is not None and entry.image_only and pool.kind != "image":
            raise InputError(f"{entry.title} is for images and pool {pool.name!r} is a {pool.kind}.")
        if entry is not None and entry.image_only and self.neighbours != "none":
            raise InputError(f"{entry.title} looks at the pixels of one image. Set neighbours to none.")
        if not checked:
            self._check()

    def _check(self) -> None:
        """Make the classifier once, so that what it cannot take is said before anything is fitted."""
        estimator = self.estimator(0)
        if self.mean is not None and not protocols.supports_mean(estimator):
            name = title_of(self.classifier) if isinstance(self.classifier, str) else type(estimator).__name__
            raise InputError(protocols.NO_GUESS.format(name))

    def estimator(self, number: int) -> Any:
        """An unfitted classifier for a round."""
        if isinstance(self.classifier, str):
            classifier = make_classifier(self.classifier, **self.options)
        else:
            from sklearn.base import clone

            from workbench.classifiers.foreign import as_classifier

            classifier = as_classifier(clone(self.classifier).set_params(**self.options))
        defaults: dict[str, Any] = {
            "classes": np.arange(len(self.classes)),
            "random_state": int(generator(self.seed, number, FIT).integers(2**31 - 1)),
            "warm_start": True,
            "input_shape": self.pool.image_shape,
        }
        accepted = protocols.options_of(classifier)
        missing = {k: v for k, v in defaults.items() if k in accepted and k not in self.options}
        return classifier.set_params(**missing)

    def _measured(self, estimator: Any, strength: str) -> Geometry:
        key = type(estimator), strength
        if key not in self._geometries:
            with self._explaining():
                self._geometries[key] = self._measured_once(estimator, strength)
        return self._geometries[key]

    def _measured_once(self, estimator: Any, strength: str) -> Geometry:
        def measure() -> Geometry:
            rows = self._features(strength)[self.pool.trainable]
            return measure_geometry(estimator, rows, self.seed, self.pool.common_scale)

        if self._common is None or not isinstance(self.classifier, str):
            return measure()
        key = type(estimator), strength, self.seed, self.classifier, repr(sorted(self.options.items()))
        return self._common.geometry(key, measure)

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The pool's graph of neighbours."""
        return Neighbourhood(self.pool) if self._making is None else self._making.neighbourhood

    def _seen(self, strength: str) -> Seen | None:
        return None if strength == "none" else self.neighbourhood.seen(strength)

    def _features(self, strength: str) -> Array:
        seen = self._seen(strength)
        return self.pool.features if seen is None else seen.features

    def _smoothing(
        self, items: Ints, codes: Ints, number: int, previous: Mapping[str, Array] | None
    ) -> tuple[Smoothing, Mapping[str, Array] | None]:
        """Strength of neighbours in this round's fit, and the state that it goes on from."""
        before = Smoothing.of_state(previous)
        smoothing, state = before, None
        if self.neighbours != "auto":
            is_available = self.neighbours != "none" and len(self.neighbourhood.strengths) > 1
            smoothing = Smoothing(self.neighbours) if is_available else Smoothing()
        elif len(np.unique(codes)) > 1:
            due = is_due(len(codes), len(self.classes), before)
            first = not before.looks and self.pool.common_scale
            if due and self._has_graph():
                smoothing, state = self._chosen(before, items, codes, number, previous)
            elif not due and first and self._has_graph() and self.neighbourhood.learnt:
                smoothing = Smoothing(at_first(len(codes), self.neighbourhood.strengths))
        # a posterior of other features says nothing
        return smoothing, previous if smoothing.strength == before.strength else state

    def _has_graph(self) -> bool:
        """True if there are strengths to choose among by now."""
        ready = self._making is None or self._making.ready()
        return ready and len(self.neighbourhood.strengths) > 1

    def _chosen(
        self, before: Smoothing, items: Ints, codes: Ints, number: int, previous: Mapping[str, Array] | None
    ) -> tuple[Smoothing, Mapping[str, Array] | None]:
        """A look at the strengths, and the state that the look left of the one it chose."""
        probe = self._prepared(number) if previous is None else self.restored(previous, number)
        last = protocols.choice_of(probe)
        if last is not None and not is_due(len(codes), len(self.classes), before, last.labels):
            return before, None
        is_native = protocols.supports_leave_one_out(probe)
        if not is_native:  # what predicts best for one model does so for others
            shared = {"classes": np.arange(len(self.classes)), "choice": "fixed", "random_state": self.seed}
            probe = make_classifier("large-margin", **shared)
        mean = None if self.mean is None else self.mean[:, items]
        scores: dict[str, protocols.LeaveOneOutScores] = {}

        def judge(strength: str) -> Floats:
            rows = np.asarray(self._features(strength)[items])
            new = None if strength == "none" else self.neighbourhood.as_new(strength, items)
            neighbour = next(reversed(scores.values()), None)  # neighbouring strengths differ little
            geometry = self._measured(probe, strength)
            scores[strength] = probe.leave_one_out(rows, codes, geometry, mean, new, neighbour)
            return scores[strength].log_likelihood

        tried = in_turn(before, (*self.neighbourhood.strengths, *self.neighbourhood.columns), len(codes))
        with self._explaining():
            smoothing = choose(before, tried, judge, len(codes))
        continuation = (
            scores[smoothing.strength].begun if is_native and smoothing.strength in scores else None
        )
        return smoothing, None if continuation is None else continuation() | smoothing.to_state()

    def fit(
        self,
        items: Ints,
        codes: Ints,
        *,
        number: int,
        previous: Mapping[str, Array] | None = None,
        callback: FitCallback | None = None,
        beside: Beside | None = None,
    ) -> FittedModel:
        """Fit a round.

        Args:
            items: [n] labelled items.
            codes: [n] their class codes.
            number: of the round.
            previous: the last round's state to start from, of a fit with the same classes.
            callback: (fraction, objective) -> True to stop the fit early.
            beside: that it is one of several questions' models, which share what one of them chose.

        Returns:
            The fitted model.
        """
        leader = None if beside is None else beside.leader
        if leader is None:
            smoothing, previous = self._smoothing(items, codes, number, previous)
        else:
            smoothing = leader.smoothing
            previous = previous if smoothing.strength == Smoothing.of_state(previous).strength else None
        estimator = (
            self.restored(previous, number)
            if previous is not None
            else self._prepared(number, smoothing.strength)
        )
        began = perf_counter()
        with self._explaining():
            mean = None if self.mean is None else self.mean[:, items]
            rows = np.asarray(self._features(smoothing.strength)[items])
            if beside is not None and protocols.supports_sharing(estimator):
                estimator.fit_beside(
                    rows, codes, None if leader is None else leader.estimator, callback, mean
                )
            else:
                protocols.fit(estimator, rows, codes, callback, mean)
        seconds = perf_counter() - began
        return self._fitted(estimator, number, items, codes, smoothing, seconds, beside is not None)

    def _fitted(
        self,
        estimator: Any,
        number: int,
        items: Ints,
        codes: Ints,
        smoothing: Smoothing,
        seconds: float = 0.0,
        beside: bool = False,
        known: Known | None = None,
    ) -> FittedModel:
        seen = self._seen(smoothing.strength)
        latents = self.latents
        if beside and self._common is not None:
            latents = self._common.latents(self._features(smoothing.strength), self.latents.most)
        elif latents.features is not self._features(smoothing.strength):  # of one strength at a time
            latents = self.latents = PoolLatents(self._features(smoothing.strength), self.latents.most)
        return FittedModel(
            self.pool,
            self.classes,
            estimator if known is not None else lambda: estimator,
            number,
            np.asarray(items, dtype=np.int64),
            np.asarray(codes, dtype=np.int64),
            seconds,
            latents=latents,
            mean=self.mean,
            smoothing=smoothing,
            seen=seen,
            beside=beside,
            known=known,
        )

    def restored(self, state: Mapping[str, Array], number: int) -> Any:
        """The classifier whose state this is, fitted.

        Raises:
            InputError: the pool's items have other features now.
        """
        strength = Smoothing.of_state(state).strength
        classifier = self._prepared(number, strength, "geometry.inducing" in state)
        classifier = classifier.set_state(without_smoothing(state))
        if "column:" in strength and classifier.n_features_in_ != self._features(strength).shape[1]:
            raise InputError("The columns beside the text hold other values than when it was fitted.")
        options = protocols.options_of(classifier)
        if "warm_start" not in options and options.get("geometry", classifier) is None:
            # its next fit begins anew: without this it would be scaled by the labelled rows alone
            classifier.set_params(geometry=protocols.geometry_of(classifier))
        return classifier

    def model(
        self,
        state: Mapping[str, Array],
        number: int,
        items: Ints,
        codes: Ints,
        beside: bool = False,
        probabilities: Floats | None = None,
        explained: Explained | None = None,
    ) -> FittedModel:
        """A published model again, from its saved state.

        Args:
            state: its arrays.
            number: of its round.
            items: [n] it was fitted on.
            codes: [n] their class codes.
            beside: that it is of one of several questions that share.
            probabilities: [N, C] of every item, where they are known: its classifier, if it is one of ours,
                is then made when somebody looks at more than them.
            explained: the utilities that cards give for a reason, where they are known.
        """
        smoothing = Smoothing.of_state(state)
        entry = CLASSIFIERS.get(self.classifier) if isinstance(self.classifier, str) else None
        if entry is None or probabilities is None:
            return self._fitted(self.restored(state, number), number, items, codes, smoothing, beside=beside)
        predictions = Known(probabilities, Geometry.of_state(state), entry.has_latent, explained)
        later = cache(lambda: self.restored(state, number))
        return self._fitted(later, number, items, codes, smoothing, beside=beside, known=predictions)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Options a person gave and the classifier cannot take are the person's to mend."""
        try:
            yield
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            if not self.options:
                raise
            arguments = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
            name = title_of(str(self.classifier))
            raise InputError(f"{name} cannot be fitted with {arguments}: {error}") from error

    def _prepared(self, number: int, strength: str = "none", measured: bool = False) -> Any:
        estimator = self.estimator(number)
        # A state brings its own geometry: the one of the pool as it was when the project began.
        takes_geometry = "geometry" in protocols.options_of(estimator)
        if takes_geometry and "geometry" not in self.options and not measured:
            estimator.set_params(geometry=self._measured(estimator, strength))
        return estimator


def measure_geometry(estimator: Any, features: Array, seed: int, common_scale: bool) -> Geometry:
    """Arguments of an estimator that takes `geometry=` from a pool.

    Args:
        estimator: unfitted; its own `measure(features, seed, common_scale)` decides where it has
            one, else its `n_inducing` (64 where it leaves that open) and `n_mean`.
        features: [N, D] the pool's trainable rows.
        seed: of the run or project.
        common_scale: whether the features share one unit.
    """
    if protocols.supports_measuring(estimator):
        return estimator.measure(features, seed=seed, common_scale=common_scale)
    options = protocols.options_of(estimator)
    n_inducing, n_mean = options.get("n_inducing") or 64, options.get("n_mean") or 0
    return Geometry.of(features, int(n_inducing), seed, n_mean=int(n_mean), common_scale=common_scale)
