"""The guesses of a project or a run: which sources there are, and what they say of its pool now."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Floats
from workbench.classifiers import protocols
from workbench.errors import InputError
from workbench.guesses import (
    Agreement,
    Guess,
    classes_in,
    guess_of,
    guesses_of,
    names_speak,
    of_classes,
    sources_of_columns,
    stacked,
)
from workbench.pools.pool import Pool
from workbench.sessions.people import n_drawn
from workbench.store import ProjectState

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import FittedModel

MOST = 20
"""Sources of one project."""
_LOOKED_AT = 500  # rows, to see whether a column names classes
FEW = 10
"""Labels before which a guess is called one, without a percentage."""


@dataclass(frozen=True)
class SourceNow:
    """A source as it is now.

    Attributes:
        source: "names", "column:llm_label", "columns:p_*".
        on: whether fits start from it.
        guess: what it says of the pool, or None.
        problem: why it says nothing; "" where it does.
        mapping: names in it -> the classes they stand for.
    """

    source: str
    on: bool
    guess: Guess | None
    problem: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceReport:
    """Value of a source in a project.

    Attributes:
        source: "names", "column:llm_label", "columns:p_*".
        on: whether fits start from it.
        weight: what it counts in the present model, in margins; None where that was not fitted with it.
        agreement: on the labels there are; None where it says nothing.
        n_drawn: items of `agreement` that were drawn at random; the others were picked.
        confusions: (class, what it says instead, how often), most frequent first.
        n_known: items it says something of.
        notes: what was seen to, what is suspicious, what is missing.
        unknown: names in it that are no class, most frequent first.
        mapping: such names -> the classes they stand for.
    """

    source: str
    on: bool
    weight: float | None
    agreement: Agreement | None
    n_drawn: int
    confusions: tuple[tuple[str, str, int], ...]
    n_known: int
    notes: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)


def report(
    now: Sequence[SourceNow], state: ProjectState, model: FittedModel | None, fitted: Mapping[str, Any]
) -> list[SourceReport]:
    """Value of each source of a project.

    Args:
        now: the sources with what they say.
        state: of the project.
        model: the published one, or None.
        fitted: what that was fitted with, as `Session.fitted_with`.
    """
    weights = weights_of(model, fitted)
    items = np.fromiter(state.codes, dtype=np.int64, count=len(state.codes))
    codes = np.fromiter(state.codes.values(), dtype=np.int64, count=len(state.codes))
    found = []
    for one in now:
        notes, agreement, drawn, known = [one.problem] if one.problem else [], None, 0, 0
        confusions: tuple[tuple[str, str, int], ...] = ()
        if one.guess is not None:
            agreement = one.guess.agreement(items, codes)
            confusions = tuple((state.classes[a], state.classes[b], n) for a, b, n in agreement.confusions)
            drawn = n_drawn(state, items[one.guess.codes[items] >= 0].tolist())
            suspicion = one.guess.suspicion(items, codes)
            notes = [*one.guess.notes, *([suspicion] if suspicion else [])]
            known = int(one.guess.known.sum())
        weight = weights.get(one.source) if one.on else None
        unknown = () if one.guess is None else one.guess.unknown
        found.append(
            SourceReport(
                one.source,
                one.on,
                weight,
                agreement,
                drawn,
                confusions,
                known,
                tuple(notes),
                unknown,
                one.mapping,
            )
        )
    return found


def weights_of(model: FittedModel | None, fitted: Mapping[str, Any]) -> dict[str, float]:
    """Source -> what it counts in a model, in margins; empty where it started from none."""
    weights = None if model is None or model.mean is None else protocols.mean_weights_of(model.estimator)
    sources = (fitted.get("guess") or {}).get("sources") or ()
    if weights is None or len(weights) != len(sources):
        return {}
    return {str(one["source"]): float(w) for one, w in zip(sources, weights, strict=True)}


def weight_words(weight: float | None, n_labelled: int, on: bool = False) -> str:
    """Trust in a source, for people.

    Args:
        weight: in margins, as `SourceReport.weight`.
        n_labelled: labels of the model it is of.
        on: whether it is switched on; the published model may be of before.
    """
    if weight is None:
        return "from the next fit on" if on else "not used"
    if n_labelled < FEW:
        return "taken on trust: too few labels to judge it"
    if weight < 0.05:
        return "outvoted: the labels disagree, it counts nothing"
    if weight < 0.35:
        return "counts a little"
    return "counts" if weight < 0.85 else "counts a lot"


def offered(pool: Pool, classes: Sequence[str]) -> list[str]:
    """Sources that a pool's items hold: the names of the classes of texts, columns that name some class.

    Args:
        pool: of the project.
        classes: of the project.
    """
    cells = getattr(pool.items, "cells", None) or {}
    made_of = getattr(pool.feature_map, "sources", None)
    used = set(map(str, made_of)) if made_of is not None else set()
    left = [str(name) for name in cells if str(name) not in used]
    names = {name.casefold() for name in classes}
    found = []
    for source in sources_of_columns(left):
        said = classes_in(source, pool, among=_LOOKED_AT)
        if any(one.casefold() in names for one in said):
            found.append(source)
    return [*(["names"] if names_speak(pool) else []), *found]


def source_words(source: str) -> str:
    """A source as people call it: "the names", "column llm_label"."""
    kind, _, name = source.partition(":")
    if source == "names":
        return "the classes' names"
    if kind == "llm":
        return f"language model {name}"
    if kind in ("file", "model"):
        return f"{kind} {name}"
    if kind == "column":
        name = name.replace(":", " with ", 1)
    return f"columns {name}" if kind == "columns" else f"column {name}" if kind == "column" else source


def said_of(
    now: Sequence[SourceNow], item: int, model: FittedModel, fitted: Mapping[str, Any]
) -> list[tuple[str, str, float]]:
    """Opinion of the sources in use on one item: (source, class, its weight); none where they say nothing.

    Args:
        now: the sources of the project.
        item: index into the pool.
        model: the published one.
        fitted: what it was fitted with.
    """
    weights = weights_of(model, fitted)
    found = []
    for one in now:
        if one.guess is None or one.source not in weights or one.guess.values.shape[1] != len(model.classes):
            continue
        row = one.guess.values[item]
        if row.any():
            found.append((one.source, model.classes[int(row.argmax())], weights[one.source]))
    return found


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
        said = entry.get("said")
        if said is not None:
            guess = _guess_said(source, said, len(pool), classes, entry.get("mapping"))
            out.append(
                made
                | {"said": said, "checksum": _checksum(guess)}
                | ({"mapping": dict(entry["mapping"])} if entry.get("mapping") else {})
            )
            continue
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


def as_said(predictions: Sequence[tuple[int, str, float | None]]) -> dict[str, Any]:
    """Predictions of items as a project records them.

    Args:
        predictions: (item, class, confidence or None).
    """
    said: dict[str, Any] = {
        "items": [int(item) for item, _, _ in predictions],
        "classes": [str(name) for _, name, _ in predictions],
    }
    if all(sure is not None for _, _, sure in predictions):
        said["confidence"] = [float(sure or 0.0) for _, _, sure in predictions]
    return said


def _guess_said(
    source: str, said: Mapping[str, Any], n: int, classes: Sequence[str], mapping: Any = None
) -> Guess:
    """The guess of a source whose predictions lie in the project."""
    names: list[Any] = [None] * n
    sure: list[Any] | None = [None] * n if "confidence" in said else None
    for place, (item, name) in enumerate(zip(said["items"], said["classes"], strict=True)):
        if 0 <= item < n:
            names[item] = name
            if sure is not None:
                sure[item] = said["confidence"][place]
    return of_classes(names, classes, confidence=sure, mapping=mapping, source=source)


def takes_guess(classifier: Any) -> bool:
    """True if a classifier can start from a guess."""
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
        self._said: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._lock = threading.Lock()

    def remember(self, settings: Mapping[str, Any]) -> None:
        """Take up predictions that lie in the project, by their source and checksum."""
        for one in settings.get("guesses") or ():
            if "said" in one:
                self._said[str(one["source"]), str(one["checksum"])] = one["said"]

    def chosen(self, settings: Mapping[str, Any], state: ProjectState) -> dict[str, Any]:
        """Start of the next fit: {"sources", "guidance"}; empty where that is nothing."""
        self.remember(settings)
        sources = [
            {name: one[name] for name in ("source", "mapping") if name in one}
            | ({"checksum": one["checksum"]} if "said" in one else {})
            for one in settings.get("guesses") or ()
            if one["on"]
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
        self.remember(settings)
        found = []
        for one in settings.get("guesses") or ():
            made = self._of(one, state.classes, _guidance(state))
            on = bool(one["on"])
            if isinstance(made, Guess):
                found.append(SourceNow(str(one["source"]), on, made, "", one.get("mapping") or {}))
            else:
                found.append(SourceNow(str(one["source"]), on, None, made, one.get("mapping") or {}))
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
        """True if it is known that no source of `chosen` says anything; never computes one."""
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
            said = self._said.get((str(one["source"]), str(one.get("checksum", ""))))
            if said is not None:
                made = _guess_said(str(one["source"]), said, len(self._pool), classes, one.get("mapping"))
            else:
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
    mapping = sorted((one.get("mapping") or {}).items())
    return repr(
        (source, str(one.get("checksum", "")) if ":" in source else "", mapping, tuple(classes), said)
    )


def _guidance(state: ProjectState) -> dict[str, str]:
    """Class -> what somebody wrote that belongs to it."""
    return {
        name: about["guidance"]
        for name, key in zip(state.classes, state.keys, strict=True)
        if (about := state.class_about.get(key)) and about.get("guidance")
    }


def _checksum(guess: Guess) -> str:
    """Of its values to six digits, which are the same on every machine."""
    values = np.round(np.asarray(guess.values, dtype=np.float64) * 1e6)
    return sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()[:16]
