"""scikit-activeml both ways: our policies as its query strategies, its strategies in our loop.

An optional extra. In our loop, name one of its strategies as a policy:
`--policy workbench.policies.activeml:TypiClust`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError, install_command
from workbench.policies.belief import Belief, belief_of

try:
    import skactiveml.pool
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
    from skactiveml.utils import is_labeled
    from sklearn.exceptions import NotFittedError
except ImportError as error:  # pragma: no cover - the development environment has it
    raise InputError(
        f"This needs the package scikit-activeml: {install_command('scikit-activeml')}"
    ) from error

if TYPE_CHECKING:
    from numpy.random import Generator

    from workbench.arrays import Array, Floats, Ints
    from workbench.policies.belief import Selector

_DRAWS = 100


class WorkbenchStrategy(SingleAnnotatorPoolQueryStrategy):
    """A policy of this package as a scikit-activeml query strategy.

    Args:
        policy: as for `workbench.policies.query`.
        selector: how batches are spread, as there.
        missing_label: what unlabelled entries of y hold.
        random_state: seed.
    """

    def __init__(
        self,
        policy: Any = "variation-ratio",
        selector: Any = "auto",
        missing_label: Any = np.nan,
        random_state: Any = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.policy = policy
        self.selector = selector

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """The items to label next.

        Args:
            X: [N, D] the pool.
            y: [N] labels, `missing_label` where unknown.
            clf: a classifier of this package, of scikit-activeml or of scikit-learn.
            fit_clf: fit a clone of it on what is labelled; else it is fitted already.
            candidates: [M] row numbers that may be asked, or None for all unlabelled.
            batch_size: how many.
            return_utilities: whether to return utilities too.

        Returns:
            indices [batch_size]; with `return_utilities` also utilities [batch_size, N], NaN where an
            item was no candidate (or was ruled out by bounds without being computed).
        """
        from workbench.policies.selection import query

        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        _, rows = self._transform_candidates(candidates, X, y, enforce_mapping=True)
        has_label = is_labeled(y, self.missing_label_)
        model = _fitted(clf, X, y, has_label) if fit_clf else clf
        belief = _belief_of(model, X, y, has_label, rows)
        rng = np.random.default_rng(int(self.random_state_.randint(2**31)))
        answer = query(self.policy, belief, int(batch_size), rng, self.selector)
        if not return_utilities:
            return answer.indices
        utilities = np.tile(answer.utilities, (len(answer.indices), 1))
        for step, index in enumerate(answer.indices[:-1]):
            utilities[step + 1 :, index] = np.nan
        return answer.indices, utilities


def _belief_of(model: Any, X: Array, y: Array, has_label: Array, rows: Ints) -> Belief:
    """Belief of a fitted classifier about a pool.

    Args:
        model: with predict_proba, perhaps predict_latent.
        X: [N, D].
        y: [N] labels; those of `has_label` count.
        has_label: [N] which are labelled.
        rows: [M] that may be asked.

    Returns:
        The belief.
    """
    classes = list(np.asarray(model.classes_))
    codes = np.full(len(X), -1, dtype=np.int64)
    codes[has_label] = [classes.index(label) for label in np.asarray(y)[has_label]]
    closed = np.ones(len(X), dtype=bool)
    closed[rows] = False
    labelled = np.flatnonzero(closed)
    return belief_of(model, X, labelled=labelled, labels=codes[labelled])


def from_activeml(strategy: Any, classifier: Any = None, **options: Any) -> Selector:
    """A scikit-activeml strategy as a selector for our loop.

    Strategies that want a fitted classifier get one that says what the belief says; those that
    want an ensemble get draws of the belief's latents.

    Args:
        strategy: an instance of a pool query strategy.
        classifier: a scikit-activeml classifier for strategies that refit theirs many times.
        options: further arguments of its `query`.

    Returns:
        A function (belief, k, rng) -> indices.

    Raises:
        InputError: a strategy for regression, or one that needs a classifier of its own.
    """
    wants = inspect.signature(strategy.query).parameters
    name = type(strategy).__name__
    if "reg" in wants:
        raise InputError(f"{name} is for regression; labels here are classes.")

    def select(belief: Belief, k: int, rng: Generator) -> Ints:
        from sklearn.base import clone

        askable = belief.askable
        has_label = belief.labels >= 0
        rows = np.concatenate([belief.labelled[has_label], askable])
        X = np.asarray(belief.scaled[rows], dtype=np.float64)
        y = np.full(len(rows), np.nan)
        y[: int(has_label.sum())] = belief.labels[has_label]
        seed = int(rng.integers(2**31))
        query_strategy = clone(strategy).set_params(random_state=seed)
        arguments: dict[str, Any] = {**options}
        model = classifier or BeliefClassifier(belief, rows, X, seed)
        for keyword, refit in (
            ("clf", "fit_clf"),
            ("ensemble", "fit_ensemble"),
            ("estimator", "fit_estimator"),
            ("discriminator", ""),
        ):
            if keyword in wants:
                if keyword == "discriminator" and classifier is None:
                    raise InputError(f"{name} trains a model of its own: give `classifier`.")
                arguments.setdefault(keyword, model)
                if refit in wants:
                    arguments.setdefault(refit, classifier is not None)
        if "ensemble" in wants and classifier is None:
            query_strategy.set_params(sample_predictions_method_name="sample_proba")
        candidates = np.arange(int(has_label.sum()), len(rows))
        try:
            answer = query_strategy.query(X=X, y=y, candidates=candidates, batch_size=k, **arguments)
        except (TypeError, AttributeError, NotFittedError) as error:
            raise InputError(
                f"scikit-activeml's {name} cannot work with what our model believes: {error} "
                "Give it a model of its own: from_activeml(strategy, classifier=...)."
            ) from error
        return rows[np.asarray(answer, dtype=np.int64)]

    select.__name__ = name
    return select


class BeliefClassifier(SkactivemlClassifier):
    """A belief in the clothes of a fitted scikit-activeml classifier: it predicts what was believed.

    Args:
        belief: what to say.
        rows: [n] the belief's items.
        X: [n, D] their features, by which they are recognised.
        random_state: seed of `sample_proba`.
    """

    def __init__(self, belief: Belief, rows: Ints, X: Array, random_state: Any = None) -> None:
        super().__init__(classes=list(range(belief.n_classes)), random_state=random_state)
        self.belief = belief
        self.rows = rows
        self.X = X
        self.classes_ = np.arange(belief.n_classes, dtype=np.float64)
        self.n_features_in_ = X.shape[1]
        self._where = {row.tobytes(): int(item) for row, item in zip(X, rows, strict=True)}

    def __deepcopy__(self, memo: dict[int, Any]) -> BeliefClassifier:
        return self  # nothing in it changes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BeliefClassifier:
        """Refuse: a belief cannot learn.

        Raises:
            InputError: always.
        """
        raise InputError(
            "This scikit-activeml strategy refits its model; give from_activeml(strategy, classifier=...)."
        )

    def _items(self, X: Any) -> Ints:
        rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64))
        try:
            return np.array([self._where[row.tobytes()] for row in rows], dtype=np.int64)
        except KeyError:
            raise InputError(
                "This scikit-activeml strategy asks about points that are not in the pool; "
                "give from_activeml(strategy, classifier=...)."
            ) from None

    def predict_proba(self, X: Any) -> Floats:
        """[n, C] what the belief says about items with these features."""
        return np.asarray(self.belief.probabilities, dtype=np.float64)[self._items(X)]

    def predict_freq(self, X: Any) -> Floats:
        """Refuse: a belief counts nothing.

        Raises:
            InputError: always.
        """
        raise InputError(
            "This scikit-activeml strategy needs class frequencies; "
            "give from_activeml(strategy, classifier=...)."
        )

    def sample_proba(self, X: Any, n_samples: int = _DRAWS, random_state: Any = None) -> Floats:
        """[S, n, C] probabilities under draws of the latents."""
        from workbench.classifiers.calibration import softmax

        latent = self.belief.latent
        if latent is None:
            raise InputError("This scikit-activeml strategy needs an ensemble and the model has no latents.")
        items = self._items(X)
        rng = np.random.default_rng(self.random_state)
        mean = np.asarray(latent.mean, dtype=np.float64)[items]
        deviation = np.sqrt(np.asarray(latent.variance, dtype=np.float64)[items])
        draws = rng.standard_normal((n_samples, *mean.shape))
        return softmax(mean + deviation * draws, self.belief.temperature)


def __getattr__(name: str) -> Callable[..., Any]:
    """Any of scikit-activeml's pool strategies, by its name, with its defaults."""
    kind = getattr(skactiveml.pool, name, None)
    if not (inspect.isclass(kind) and issubclass(kind, SingleAnnotatorPoolQueryStrategy)):
        raise AttributeError(f"scikit-activeml has no pool strategy called {name!r}.")
    try:
        return from_activeml(kind())
    except TypeError as error:
        raise InputError(
            f"scikit-activeml's {name} needs options ({error}). Make it yourself and wrap it: "
            "from_activeml(strategy)."
        ) from error


def _fitted(clf: Any, X: Array, y: Array, known: Array) -> Any:
    from sklearn.base import clone

    if isinstance(clf, SkactivemlClassifier):
        return clone(clf).fit(X, y)
    return clone(clf).fit(X[known], np.asarray(y)[known])
