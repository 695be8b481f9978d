"""Sparse variational GPs with softmax, robust-max and Heaviside likelihoods: the GP peers."""

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats
from workbench.classifiers.argmax import argmax_probabilities
from workbench.classifiers.gp import KernelClassifier, Problem, SparseGPClassifier, block_of
from workbench.classifiers.options import estimator, fitted, option
from workbench.engine.fitting import FitResult, Hyper
from workbench.engine.gaussian import State, q_sqrt_of, root_of
from workbench.engine.quadrature import softmax_probabilities
from workbench.errors import InputError

LIKELIHOODS = ("softmax", "robust-max", "heaviside")
OPTIMIZERS = ("natural", "adam", "papers")
HYPERPARAMETERS = ("fixed", "learned", "learned-with-inducing")

# learning rate, epochs, batch: the papers' (Wistuba & Rawat 2018 and 2019) and one that ends in seconds
_ADAM = {"adam": (0.1, 200, 2048), "papers": (5e-4, 1000, 256)}
_SWEEPS, _BRIEF_SWEEPS = 60, 20


@lru_cache(maxsize=12)
def make_likelihood(name: str, n_classes: int, n_nodes: int | None = None, epsilon: float = 1e-3) -> Any:
    """The GPflow likelihood behind a name; the same object for the same arguments.

    Args:
        name: one of `LIKELIHOODS`.
        n_classes: C >= 2.
        n_nodes: S for expectations without a closed form; None is the likelihood's default.
        epsilon: robust-max's share of wrong labels.

    Returns:
        A `workbench.engine.likelihoods.SiteLikelihood` for integer labels [N, 1].

    Raises:
        InputError: an unknown name.
    """
    from workbench.engine import likelihoods

    nodes = () if n_nodes is None else (n_nodes,)
    if name == "softmax":
        return likelihoods.Softmax(n_classes, *nodes)
    if name == "heaviside":
        return likelihoods.MultinomialProbit(n_classes, *nodes)
    if name == "robust-max":
        return likelihoods.RobustMax(n_classes, epsilon)
    raise InputError(f"There is no likelihood called {name!r}. Known: {', '.join(LIKELIHOODS)}.")


@estimator
class SVGPClassifier(SparseGPClassifier, KernelClassifier):
    """Sparse variational GP classifier (Hensman et al. 2015), whitened, on GPflow.

    Args:
        likelihood: "softmax"; "robust-max" (1 - epsilon for the largest latent: over-confident on
            overlapping classes); or "heaviside" on latents with unit noise (multinomial probit).
        classes: labels known up front, sorted in the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels, 256 from 4,000. A `geometry` decides
            instead where one is given.
        geometry: of the pool; None measures one on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel` (used as it
            is: leave `length_scale_factor` and `variance` out).
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        optimizer: "natural" (back-tracked natural gradients, about a dozen sweeps), "adam", or
            "papers" (Adam at 5e-4, 1,000 epochs, batches of 256).
        hyperparameters: "fixed"; "learned" (length scale and variance, type-II likelihood; kernels
            by name only) or "learned-with-inducing".
        learning_rate: natural: first step size in (0, 1] (None is 1); Adam: its rate (None is 0.1, or
            the papers').
        max_iter: sweeps (natural, None is 60) or epochs (Adam). None is the optimizer's.
        batch_size: rows a step, for Adam only; None is the optimizer's (2,048 for "adam").
        tol: natural gradients stop after two sweeps that gain less than this share of the bound.
        n_nodes: quasi-random nodes per item for expectations of log p(y | f); None is 64 for
            softmax, 16 for heaviside. Robust-max uses none.
        epsilon: robust-max's share of wrong labels.
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of the geometry measured on X, and of batches.

    Attributes:
        classes_: [C] labels.
        objective_: evidence lower bound.
        objective_trace_: [T] bounds while fitting; with learned hyperparameters under Adam,
            estimates from the last batch.
        n_iter_: sweeps or epochs.
        geometry_: scaling and the inducing points at the start.
        mean_: [P, C] whitened posterior means.
        root_: [C, P, P] roots of the whitened covariances, root_c' root_c.
        inducing_: [P, D] inducing points, scaled units.
        length_scale_, variance_: of the kernel.
        predictor_: NumPy-only latent marginals.
    """

    _state_names: ClassVar[tuple[str, ...]] = (*SparseGPClassifier._state_names, "inducing_")
    _most_inducing: ClassVar[int] = 256
    _takes_mean: ClassVar[bool] = True

    likelihood: str = option("softmax", choices=LIKELIHOODS)
    n_inducing: int | None = option(None, at_least=1)
    optimizer: str = option("natural", choices=OPTIMIZERS)
    hyperparameters: str = option("fixed", choices=HYPERPARAMETERS)
    learning_rate: float | None = option(None, above=0.0)
    max_iter: int | None = option(None, at_least=1)
    batch_size: int | None = option(None, at_least=1, when={"optimizer": ("adam", "papers")})
    tol: float = option(1e-4, at_least=0.0, when={"optimizer": ("natural",)})
    n_nodes: int | None = option(None, at_least=2, when={"likelihood": ("softmax", "heaviside")})
    epsilon: float = option(1e-3, above=0.0, when={"likelihood": ("robust-max",)})

    inducing_: Floats = fitted()

    # ------------------------------------------------------------------ fitting

    def _likelihood(self, n_functions: int | None = None) -> Any:
        return make_likelihood(
            self.likelihood, n_functions or len(self.classes_), self.n_nodes, float(self.epsilon)
        )

    def _check(self) -> None:
        super()._check()
        if not self.epsilon < 1:
            raise InputError(f"epsilon must lie between 0 and 1; got {self.epsilon}.")

    def _keep(self, hyper: Hyper) -> None:
        super()._keep(hyper)
        self.inducing_ = np.asarray(hyper.inducing, dtype=np.float64)

    def _hyper(self) -> Hyper:
        return Hyper(self.length_scale_, self.variance_, self.inducing_)

    def _moves_inducing(self) -> bool:
        return self.hyperparameters == "learned-with-inducing"

    def _optimise(self, problem: Problem, brief: bool = False) -> FitResult:
        if self.optimizer != "natural":
            return self._climb_adam(problem)
        from workbench.engine import natural_gradient as engine

        data, hyper, state, _, callback = problem

        rows = engine.ProjectedRows(
            data.scaled,
            data.targets,
            self._basis(hyper),
            self._kernel_of(hyper),
            offset=data.offset,
        )
        # plain steps: these likelihoods are not conjugate, and longer ones mostly fail
        return engine.ascend(
            self._likelihood(),
            rows,
            state,
            rate=self.learning_rate or 1.0,
            growth=1.5,
            longest=1.0,
            sweeps=_BRIEF_SWEEPS if brief else self.max_iter or _SWEEPS,
            tol=self.tol,
            callback=callback,
        )

    def _adam_options(self) -> dict[str, Any]:
        rate, epochs, batch = _ADAM[self.optimizer]
        return {
            "rate": self.learning_rate or rate,
            "epochs": self.max_iter or epochs,
            "batch_size": self.batch_size or batch,
        }

    def _climb_adam(self, problem: Problem) -> FitResult:
        from workbench.engine import gradient as engine

        data, hyper, state, rng, callback = problem
        start = engine.Gaussian(state.mean, q_sqrt_of(np.asarray(state.root)))
        block = block_of(self, data, hyper)
        fit = engine.ascend_adam(
            self._likelihood(), block, start, rng=rng, callback=callback, **self._adam_options()
        )
        return fit._replace(posterior=_state_of(fit.posterior))

    def _learn(self, problem: Problem) -> tuple[FitResult, Hyper]:
        if self.optimizer == "natural":
            return super()._learn(problem)
        from workbench.engine import gradient as engine
        from workbench.engine import natural_gradient

        data, hyper, state, rng, callback = problem
        start = engine.Gaussian(state.mean, q_sqrt_of(np.asarray(state.root)))
        fit, hyper = engine.learn(
            self._likelihood(),
            self.kernel,
            engine.Rows(data.scaled, data.targets),
            start,
            hyper,
            rng=rng,
            move_inducing=self._moves_inducing(),
            callback=callback,
            **self._adam_options(),
        )
        state = _state_of(fit.posterior)
        # the trace holds estimates from batches; the objective is that of all rows
        value = natural_gradient.objective(
            self._likelihood(), [block_of(self, data, hyper)], state, self._mean_prior
        )
        return fit._replace(posterior=state, objective=value), hyper

    # ------------------------------------------------------------------ predicting

    @property
    def takes_mean(self) -> bool:  # type: ignore[override]
        """With natural gradients, at a kernel that stays."""
        return super().takes_mean and self.optimizer == "natural"

    def _probabilities_of(self, mean: Floats, variance: Floats, rough: bool = False) -> Floats:
        return likelihood_probabilities(self.likelihood, mean, variance, epsilon=self.epsilon, rough=rough)


def _state_of(q: Any) -> Any:
    """The solver's state of a posterior in GPflow's parameters."""
    return State.of(q.mean, root_of(np.tril(q.q_sqrt)))


def likelihood_probabilities(
    likelihood: str, mean: Array, variance: Array, *, epsilon: float, rough: bool = False
) -> Floats:
    """Class probabilities of Gaussian latents under a likelihood; NumPy only, deterministic.

    Args:
        likelihood: "softmax", "robust-max" or "heaviside" (with unit noise).
        mean: [N, C].
        variance: [N, C], >= 0.
        epsilon: robust-max's share of wrong labels.
        rough: softmax's integrals may be off by 1e-3.

    Returns:
        [N, C], rows sum to 1.
    """
    if likelihood == "softmax":
        return softmax_probabilities(mean, variance, rough=rough)
    if likelihood == "heaviside":
        return argmax_probabilities(mean, np.asarray(variance, dtype=np.float64) + 1.0)
    p = argmax_probabilities(mean, variance)
    p = (1.0 - epsilon) * p + epsilon / (p.shape[1] - 1) * (1.0 - p)
    return p / p.sum(axis=1, keepdims=True)
