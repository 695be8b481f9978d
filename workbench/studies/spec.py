"""Definition of a study: runs over pools, classifiers, policies and seeds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import InputError
from workbench.registry import typed
from workbench.sessions.spec import RunSpec, check_guess, with_choice

MAX_RUNS = 100_000


@dataclass(frozen=True)
class StudySpec:
    """A table of runs that differ in pool, classifier, policy and seed, and in nothing else.

    Runs with one seed are paired: same split, same initial labels, same geometry.

    Attributes:
        name: of the study.
        pools: names or files.
        classifiers: registry names or "package.module:Class".
        policies: registry names or "package.module:function".
        seeds: 0, 1, ..., seeds - 1.
        options: of every classifier; "choice" of the large-margin model alone.
        target: the column that holds the classes, for files.
        pool_options: further options of `load_pool`.
        selector: as in `RunSpec`.
        initial: as in `RunSpec`.
        budget: as in `RunSpec`.
        batch: as in `RunSpec`.
        test_fraction: as in `RunSpec`.
        measured: as in `RunSpec`.
        guess: as in `RunSpec`.
    """

    name: str
    pools: tuple[str, ...] = ("digits",)
    classifiers: tuple[str, ...] = ("large-margin",)
    policies: tuple[str, ...] = ("variation-ratio", "random")
    seeds: int = 10
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    pool_options: Mapping[str, Any] = field(default_factory=dict)
    selector: str = "auto"
    initial: str = "one-per-class"
    budget: int = 60
    batch: int = 1
    test_fraction: float = 0.2
    measured: int = 0
    guess: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for axis, values in (
            ("pool", self.pools),
            ("classifier", self.classifiers),
            ("policy", self.policies),
        ):
            if not values:
                raise InputError(f"A comparison needs at least one {axis}.")
            if len(set(values)) != len(values):
                raise InputError(f"A {axis} is named twice: {', '.join(values)}.")
        if self.seeds < 1:
            raise InputError(f"A comparison needs at least one seed; got {self.seeds}.")
        runs = self.seeds * len(self.pools) * len(self.classifiers) * len(self.policies)
        if runs > MAX_RUNS:
            raise InputError(f"A comparison has at most {MAX_RUNS:,} runs; got {min(runs, 10**18):,}.")
        if "large-margin" in self.classifiers:
            object.__setattr__(self, "options", with_choice("large-margin", self.options))
        check_guess(self.guess, self.initial)
        object.__setattr__(self, "guess", tuple(self.guess))
        for name in ("classifiers", "policies", "selector", "options"):
            object.__setattr__(self, name, typed(getattr(self, name)))
        self.runs()

    def runs(self) -> list[RunSpec]:
        """Every run, seeds outermost: after any time the policies have the same seeds done."""
        return [
            RunSpec(
                pool=pool,
                target=self.target,
                pool_options=self.pool_options,
                classifier=classifier,
                options=self._options(classifier),
                policy=policy,
                selector=self.selector,
                initial=self.initial,
                budget=self.budget,
                batch=self.batch,
                seed=seed,
                test_fraction=self.test_fraction,
                measured=self.measured,
                guess=self.guess,
            )
            for seed in range(self.seeds)
            for pool in self.pools
            for classifier in self.classifiers
            for policy in self.policies
        ]

    def _options(self, classifier: str) -> dict[str, Any]:
        """Those of one classifier."""
        chooses = classifier == "large-margin" or "large-margin" not in self.classifiers
        return {k: v for k, v in self.options.items() if chooses or k != "choice"}
