"""The guesses of a project or a run: which sources there are, and what they say of its pool now."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.classifiers import protocols
from workbench.errors import InputError
from workbench.guesses import Guess, guess_of, guesses_of, stacked
from workbench.pools.pool import Pool
from workbench.store import ProjectState

MOST = 20
"""Sources of one project."""


@dataclass(frozen=True)
class SourceNow:
    """A source as it is now.

    Attributes:
        source: "names", "column:llm_label", "columns:p_*".
        on: whether fits start from it.
        guess: what it says of the pool, or None.
        problem: why it says nothing; "" where it does.
    """

    source: str
    on: bool
    guess: Guess | None
    problem: str = ""


def checked_sources(given: Any, pool: Pool, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Sources as a project records them, each tried on the pool.

    Args:
        given: texts as `guess_of` takes them, or {"source", "on", "mapping"}.
        pool: of the project.
        classes: of the project.

    Returns:
        {"source", "on", "checksum"} and "mapping" where there is one.

    Raises:
        InputError: a source that says nothing of this pool, one given twice, or too many.
    """
    if isinstance(given, str | Mapping):
        given = [given]
    out: list[dict[str, Any]] = []
    for one in given:
        entry = dict(one) if isinstance(one, Mapping) else {"source": one}
        source, on = entry.get("source"), bool(entry.get("on", True))
        if not isinstance(source, str):
            raise InputError(
                "A project's guesses are named by texts, such as names or column:llm_label; for a guess made "
                "in Python, put it in a column of the table."
            )
        if any(other["source"] == source for other in out):
            raise InputError(f"The guess {source!r} is given twice.")
        made: dict[str, Any] = {"source": source, "on": on}
        mapping = {str(k): str(v) for k, v in dict(entry.get("mapping") or {}).items()}
        if mapping:
            made["mapping"] = mapping
        if len(classes) >= 2 and (on or "checksum" not in entry):
            guess = guess_of(source, pool, classes, mapping=mapping or None, guidance=entry.get("guidance"))
            made["checksum"] = _checksum(guess)
        elif "checksum" in entry:
            made["checksum"] = str(entry["checksum"])
        out.append(made)
    if len(out) > MOST:
        raise InputError(f"A project starts from at most {MOST} guesses; got {len(out)}.")
    return out


def takes_guess(classifier: Any) -> bool:
    """Whether a classifier can start from a guess."""
    from workbench.classifiers import make_classifier

    try:
        return protocols.supports_mean(
            make_classifier(classifier) if isinstance(classifier, str) else classifier
        )
    except (InputError, TypeError):
        return False


def run_mean(pool: Pool, sources: Sequence[str]) -> Floats | None:
    """[J, N, C] the guesses of a run at its pool, or None where it has none."""
    return stacked(guesses_of(sources, pool)) if sources else None


class Guesses:
    """The guesses at one project's pool, each made once for the same classes; safe for several threads.

    Args:
        pool: of the project.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._made: dict[str, Guess | str] = {}
        self._takes: dict[str, bool] = {}
        self._lock = threading.Lock()

    def chosen(self, settings: Mapping[str, Any], state: ProjectState) -> dict[str, Any]:
        """What the next fit starts from: {"sources", "guidance"}; empty where that is nothing."""
        sources = [
            {name: one[name] for name in ("source", "mapping") if name in one}
            for one in settings.get("guesses") or ()
            if one.get("on", True)
        ]
        if not sources or len(state.classes) < 2:
            return {}
        classifier = str(settings["classifier"])
        if classifier not in self._takes:
            self._takes[classifier] = takes_guess(classifier)
        if not self._takes[classifier]:
            return {}
        found: dict[str, Any] = {"sources": sources}
        if any(one["source"] == "names" for one in sources) and (guidance := _guidance(state)):
            found["guidance"] = guidance
        return found

    def now(self, settings: Mapping[str, Any], state: ProjectState) -> list[SourceNow]:
        """Every source of the project with what it says, also those that are switched off."""
        found = []
        for one in settings.get("guesses") or ():
            made = self._of(one, state.classes, _guidance(state))
            on = bool(one.get("on", True))
            if isinstance(made, Guess):
                found.append(SourceNow(str(one["source"]), on, made))
            else:
                found.append(SourceNow(str(one["source"]), on, None, made))
        return found

    def mean(self, chosen: Mapping[str, Any], classes: Sequence[str]) -> Floats | None:
        """[J, N, C] what `chosen` says; zeros for a source that is gone, None where all are."""
        sources = chosen.get("sources") or ()
        made = [self._of(one, classes, chosen.get("guidance")) for one in sources]
        there = [one for one in made if isinstance(one, Guess)]
        if not there:
            return None
        nothing = np.zeros((len(self._pool), len(classes)))
        return np.stack([one.values if isinstance(one, Guess) else nothing for one in made])

    def known_to_be_empty(self, chosen: Mapping[str, Any], classes: Sequence[str]) -> bool:
        """Whether it is known that no source of `chosen` says anything; never computes one."""
        keys = [_key(one, classes, chosen.get("guidance")) for one in chosen.get("sources") or ()]
        return all(isinstance(self._made.get(key), str) for key in keys)

    def _of(
        self, one: Mapping[str, Any], classes: Sequence[str], guidance: Mapping[str, str] | None
    ) -> Guess | str:
        key = _key(one, classes, guidance)
        with self._lock:
            if key in self._made:
                return self._made[key]
        made: Guess | str
        try:
            made = guess_of(
                str(one["source"]), self._pool, classes, guidance=guidance, mapping=one.get("mapping")
            )
        except InputError as error:
            made = str(error)
        with self._lock:
            while len(self._made) >= 4 * MOST:
                self._made.pop(next(iter(self._made)))
            self._made[key] = made
        return made


def _key(one: Mapping[str, Any], classes: Sequence[str], guidance: Mapping[str, str] | None) -> str:
    source = str(one["source"])
    said = sorted((guidance or {}).items()) if source == "names" else ()
    return repr((source, sorted((one.get("mapping") or {}).items()), tuple(classes), said))


def _guidance(state: ProjectState) -> dict[str, str]:
    """Class -> what somebody wrote that belongs to it."""
    return {
        name: about["guidance"]
        for name, key in zip(state.classes, state.keys, strict=True)
        if (about := state.class_about.get(key)) and about.get("guidance")
    }


def _checksum(guess: Guess) -> str:
    """Of the classes it names, which are the same on every machine."""
    return sha256(np.ascontiguousarray(guess.codes, dtype="<i8").tobytes()).hexdigest()[:16]
