"""The guesses of a project or a run: which sources there are, and what they say of its pool now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Cache, Floats, items_and_codes
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
        fitted: what that was fitted with, as `Session.fits.fitted_with`.
    """
    weights = weights_of(model, fitted)
    items, codes = items_and_codes(state.codes)
    reports = []
    for entry in now:
        notes, agreement, sample_size, coverage = [entry.problem] if entry.problem else [], None, 0, 0
        confusions: tuple[tuple[str, str, int], ...] = ()
        if entry.guess is not None:
            agreement = entry.guess.agreement(items, codes)
            confusions = tuple((state.classes[a], state.classes[b], n) for a, b, n in agreement.confusions)
            sample_size = n_drawn(state, items[entry.guess.codes[items] >= 0].tolist())
            suspicion = entry.guess.suspicion(items, codes)
            notes = [*entry.guess.notes, *([suspicion] if suspicion else [])]
            coverage = int(entry.guess.known.sum())
        weight = weights.get(entry.source) if entry.on else None
        unknown = () if entry.guess is None else entry.guess.unknown
        reports.append(
            SourceReport(
                entry.source,
                entry.on,
                weight,
                agreement,
                sample_size,
                confusions,
                coverage,
                tuple(notes),
                unknown,
                entry.mapping,
            )
        )
    return reports


def weights_of(model: FittedModel | None, fitted: Mapping[str, Any]) -> dict[str, float]:
    """Source -> what it counts in a model, in margins; empty where it started from none."""
    weights = None if model is None or model.mean is None else protocols.mean_weights_of(model.estimator)
    sources = (fitted.get("guess") or {}).get("sources") or ()
    if weights is None or len(weights) != len(sources):
        return {}
    return {str(source["source"]): float(w) for source, w in zip(sources, weights, strict=True)}


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
    feature_columns = set(map(str, made_of)) if made_of is not None else set()
    columns = [str(name) for name in cells if str(name) not in feature_columns]
    names = {name.casefold() for name in classes}
    sources = []
    for source in sources_of_columns(columns):
        labels = classes_in(source, pool, among=_LOOKED_AT)
        if any(label.casefold() in names for label in labels):
            sources.append(source)
    return [*(["names"] if names_speak(pool) else []), *sources]


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
    opinions = []
    for entry in now:
        if (
            entry.guess is None
            or entry.source not in weights
            or entry.guess.values.shape[1] != len(model.classes)
        ):
            continue
        row = entry.guess.values[item]
        if row.any():
            opinions.append((entry.source, model.classes[int(row.argmax())], weights[entry.source]))
    return opinions


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
    for argument in given:
        entry = dict(argument) if isinstance(argument, Mapping) else {"source": argument}
        source, on = entry.get("source"), bool(entry.get("on", True))
        if not isinstance(source, str):
            raise InputError(
                "A project's guesses are named by texts, such as names or column:llm_label; for a guess made "
                "in Python, put it in a column of the table."
            )
        if any(previous["source"] == source for previous in out):
            raise InputError(f"The guess {source!r} is given twice.")
        record: dict[str, Any] = {"source": source, "on": on}
        predictions = entry.get("said")
        if predictions is not None:
            guess = _guess_said(source, predictions, len(pool), classes, entry.get("mapping"))
            out.append(
                record
                | {"said": predictions, "checksum": _checksum(guess)}
                | ({"mapping": dict(entry["mapping"])} if entry.get("mapping") else {})
            )
            continue
        mapping = {str(k): str(v) for k, v in dict(entry.get("mapping") or {}).items()}
        if mapping:
            record["mapping"] = mapping
        if len(classes) >= 2 and (on or "checksum" not in entry):
            guess = guess_of(source, pool, classes, mapping=mapping or None, guidance=entry.get("guidance"))
            record["checksum"] = _checksum(guess)
        elif "checksum" in entry:
            record["checksum"] = str(entry["checksum"])
        out.append(record)
    if len(out) > MOST:
        raise InputError(f"A project starts from at most {MOST} guesses; got {len(out)}.")
    return out


def as_said(predictions: Sequence[tuple[int, str, float | None]]) -> dict[str, Any]:
    """Predictions of items as a project records them.

    Args:
        predictions: (item, class, confidence or None).
    """
    record: dict[str, Any] = {
        "items": [int(item) for item, _, _ in predictions],
        "classes": [str(name) for _, name, _ in predictions],
    }
    if all(sure is not None for _, _, sure in predictions):
        record["confidence"] = [float(sure or 0.0) for _, _, sure in predictions]
    return record


def _guess_said(
    source: str, predictions: Mapping[str, Any], n: int, classes: Sequence[str], mapping: Any = None
) -> Guess:
    """The guess of a source whose predictions lie in the project."""
    names: list[Any] = [None] * n
    sure: list[Any] | None = [None] * n if "confidence" in predictions else None
    for place, (item, name) in enumerate(zip(predictions["items"], predictions["classes"], strict=True)):
        if 0 <= item < n:
            names[item] = name
            if sure is not None:
                sure[item] = predictions["confidence"][place]
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
        self._made = Cache[Guess | str](4 * MOST)
        self._takes: dict[str, bool] = {}
        self._said: dict[tuple[str, str], Mapping[str, Any]] = {}

    def remember(self, settings: Mapping[str, Any]) -> None:
        """Take up predictions that lie in the project, by their source and checksum."""
        for source in settings.get("guesses") or ():
            if "said" in source:
                self._said[str(source["source"]), str(source["checksum"])] = source["said"]

    def chosen(self, settings: Mapping[str, Any], state: ProjectState) -> dict[str, Any]:
        """Start of the next fit: {"sources", "guidance"}; empty where that is nothing."""
        self.remember(settings)
        sources = [
            {name: source[name] for name in ("source", "mapping") if name in source}
            | ({"checksum": source["checksum"]} if "said" in source else {})
            for source in settings.get("guesses") or ()
            if source["on"]
        ]
        if not sources or len(state.classes) < 2:
            return {}
        classifier = str(settings["classifier"])
        if classifier not in self._takes:
            self._takes[classifier] = takes_guess(classifier)
        if not self._takes[classifier]:
            return {}
        start: dict[str, Any] = {"sources": sources}
        if any(source["source"] == "names" for source in sources) and (guidance := _guidance(state)):
            start["guidance"] = guidance
        return start

    def now(self, settings: Mapping[str, Any], state: ProjectState) -> list[SourceNow]:
        """Every source of the project with what it says, also those that are switched off."""
        self.remember(settings)
        sources = []
        for source in settings.get("guesses") or ():
            guess = self._of(source, state.classes, _guidance(state))
            said, reason = (guess, "") if isinstance(guess, Guess) else (None, guess)
            sources.append(
                SourceNow(
                    str(source["source"]), bool(source["on"]), said, reason, source.get("mapping") or {}
                )
            )
        return sources

    def mean(self, chosen: Mapping[str, Any], classes: Sequence[str]) -> Floats | None:
        """[J, N, C] what `chosen` says; zeros for a source that is gone, None where all are."""
        sources = chosen.get("sources") or ()
        guesses = [self._of(entry, classes, chosen.get("guidance")) for entry in sources]
        valid_guesses = [entry for entry in guesses if isinstance(entry, Guess)]
        if not valid_guesses:
            return None
        nothing = np.zeros((len(self._pool), len(classes)))
        return np.stack([entry.values if isinstance(entry, Guess) else nothing for entry in guesses])

    def known_to_be_empty(self, chosen: Mapping[str, Any], classes: Sequence[str]) -> bool:
        """True if it is known that no source of `chosen` says anything; never computes one."""
        keys = [_key(source, classes, chosen.get("guidance")) for source in chosen.get("sources") or ()]
        return all(isinstance(self._made.get(key), str) for key in keys)

    def _of(
        self, entry: Mapping[str, Any], classes: Sequence[str], guidance: Mapping[str, str] | None
    ) -> Guess | str:
        source, mapping = str(entry["source"]), entry.get("mapping")

        def guess() -> Guess | str:
            try:
                predictions = self._said.get((source, str(entry.get("checksum", ""))))
                if predictions is not None:
                    return _guess_said(source, predictions, len(self._pool), classes, mapping)
                return guess_of(source, self._pool, classes, guidance=guidance, mapping=mapping)
            except InputError as error:
                return str(error)

        return self._made.ask(_key(entry, classes, guidance), guess)


def _key(entry: Mapping[str, Any], classes: Sequence[str], guidance: Mapping[str, str] | None) -> str:
    source = str(entry["source"])
    hints = sorted((guidance or {}).items()) if source == "names" else ()
    mapping = sorted((entry.get("mapping") or {}).items())
    return repr(
        (source, str(entry.get("checksum", "")) if ":" in source else "", mapping, tuple(classes), hints)
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
