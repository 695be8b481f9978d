"""Everything a run depends on, as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.documents.checking import checked_settings, plain
from workbench.documents.fields import Name, Seed, Word
from workbench.documents.runs import RunSettings
from workbench.errors import InputError
from workbench.policies.default_policy import DEFAULT_POLICY
from workbench.registry import from_file, typed
from workbench.sessions.start import parse_initial

MEASURED = 20_000
"""Test items that a new project is measured on at most: then 95 % of an error lies within 0.007."""
_CHOOSER = "large-margin"
# options that say what a choice of the geometry would choose, or how it would be judged
_CHOSEN = (
    "kernel",
    "solver",
    "input_scaling",
    "select_length_scale",
    "hyperparameters",
    "calibration",
    "geometry",
)


def with_choice(classifier: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that say whether the model chooses its geometry: it does unless they leave nothing to choose.

    Args:
        classifier: a registry name, or anything else.
        options: of the classifier.
    """
    settings = dict(options)
    if classifier == _CHOOSER and "choice" not in settings:
        settings["choice"] = "fixed" if any(name in settings for name in _CHOSEN) else "auto"
    return settings


@dataclass(frozen=True)
class RunSpec(RunSettings):
    """Specification of a simulated run: the same spec gives the same rounds.

    Attributes:
        pool: a name or a file that `load_pool` knows.
        classifier: a registry name or "package.module:Class".
        policy: a registry name or "package.module:function".
        seed: of everything random.
    """

    pool: Word = "digits"
    classifier: Name = "large-margin"
    policy: Name = DEFAULT_POLICY
    seed: Seed = 0

    def __post_init__(self) -> None:
        vars(self).update(plain(vars(self)))
        checked_settings(RunSpec, vars(self), "The run", "cannot be made")
        parse_initial(self.initial)
        check_guess(self.guess, self.initial)
        object.__setattr__(self, "guess", tuple(self.guess))
        object.__setattr__(self, "options", with_choice(self.classifier, self.options))
        for name in ("classifier", "policy", "selector", "options"):  # what was vouched for is so in workers
            object.__setattr__(self, name, typed(getattr(self, name)))

    @property
    def n_rounds(self) -> int:
        """Number of rounds of the run if nothing runs out: one before any question, one a batch."""
        return 1 + -(-self.budget // self.batch)

    def read_with(self) -> dict[str, Any]:
        """Options of `load_pool` that this run reads its pool with: models of images see pixels."""
        from workbench.classifiers import sees_pixels
        from workbench.pools import seen_as_pixels
        from workbench.sessions.answered import is_answered

        options = dict(self.pool_options)
        if self.target is not None:
            options["target"] = self.target
        pixels = sees_pixels(self.classifier) and not is_answered(self.pool)
        return seen_as_pixels(self.pool, options) if pixels else options

    def load_pool(self) -> Any:
        """The pool with its own test split, or with this seed's.

        Raises:
            InputError: no such pool, or one without truth for an oracle to answer from.
        """
        from workbench.pools import load_pool
        from workbench.sessions.answered import answered_pool, is_answered

        options = self.read_with()
        if is_answered(self.pool):
            return answered_pool(self.pool, options).split(self.seed, self.test_fraction)
        try:
            pool = load_pool(self.pool, **options)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise InputError(
                f"Pool {self.pool!r} cannot be made with {arguments or 'no options'}: {error}."
            ) from error
        return pool if pool.test is not None else pool.split(self.seed, self.test_fraction)

    @classmethod
    def from_json(
        cls, document: Mapping[str, Any], *, where: str = "The run", trust_code: bool = False
    ) -> RunSpec:
        """The spec that `to_json` wrote; code it names is refused on use (`workbench.registry.from_file`).

        Args:
            document: what `to_json` gave.
            where: what held it, for messages.
            trust_code: let it name code that is neither registered nor installed.

        Raises:
            InputError: fields there are not, or values of the wrong kind.
        """
        settings = checked_settings(cls, document, where, "has another specification")
        return cls(**from_file(settings, where, trust_code=trust_code))


def check_guess(guess: Sequence[str], initial: str) -> None:
    """Refuse a guess that is named twice, and a run without first labels that has none.

    Raises:
        InputError: says so.
    """
    if len(set(guess)) != len(guess):
        raise InputError(f"A guess is named twice: {', '.join(guess)}.")
    if initial == "none" and not guess:
        raise InputError("A run without first labels (initial none) needs a guess to ask its questions by.")
