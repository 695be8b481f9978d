"""Definition of a study: runs over pools, classifiers, policies and seeds."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import Field

from workbench.documents.checking import checked_settings, plain
from workbench.documents.fields import Names, Word
from workbench.documents.runs import RunSettings
from workbench.errors import InputError
from workbench.registry import typed
from workbench.sessions.spec import RunSpec, check_guess, with_choice

MAX_RUNS = 100_000


@dataclass(frozen=True)
class StudySpec(RunSettings):
    """A table of runs that differ in pool, classifier, policy and seed, and in nothing else.

    Runs with one seed are paired: same split, same initial labels, same geometry.

    Attributes:
        name: of the study.
        pools: names or files.
        classifiers: registry names or "package.module:Class".
        policies: registry names or "package.module:function".
        seeds: 0, 1, ..., seeds - 1.
        options: of every classifier; "choice" of the large-margin model alone.
    """

    name: Word
    pools: Names = ("digits",)
    classifiers: Names = ("large-margin",)
    policies: Names = ("variation-ratio", "random")
    seeds: Annotated[int, Field(ge=1)] = 10

    def __post_init__(self) -> None:
        vars(self).update(plain(vars(self)))
        checked_settings(StudySpec, vars(self), "The comparison", "cannot be made")
        for axis, values in (
            ("pool", self.pools),
            ("classifier", self.classifiers),
            ("policy", self.policies),
        ):
            if not values:
                raise InputError(f"A comparison needs at least one {axis}.")
            if len(set(values)) != len(values):
                raise InputError(f"A {axis} is named twice: {', '.join(values)}.")
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
        shared = {f.name: getattr(self, f.name) for f in fields(RunSettings)}
        return [
            RunSpec(
                pool=pool,
                classifier=classifier,
                policy=policy,
                seed=seed,
                **shared | {"options": self._options(classifier)},
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
