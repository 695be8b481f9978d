"""The guesses of a fitted model on rows it never saw: what must be kept of the pool, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.guesses.columns import columns_like, is_empty, of_cells, of_probabilities
from workbench.guesses.guess import Guess
from workbench.guesses.names import Terms, descriptions, of_class_vectors, of_names, terms_of
from workbench.guesses.sources import columns_of, guess_of, texts_in, uses_encoder
from workbench.pools.cells import texts_of
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.pool import FeatureMap, Pool


@dataclass(frozen=True, eq=False)
class SavedGuesses:
    """The sources a model was fitted with, ready for new rows.

    Attributes:
        classes: names of the C classes, by code.
        sources: {"source", "deviation", "scale"} each, and "mapping" where there is one. Deviation and scale
            are those of the pool, so that a new row means the same whatever rows come with it.
        guidance: class -> what belongs to it.
        terms: the pool's words and pieces, by which names are compared; None where they are not.
    """

    classes: tuple[str, ...]
    sources: tuple[Mapping[str, Any], ...]
    guidance: Mapping[str, str]
    terms: Terms | None = None

    @classmethod
    def of(cls, pool: Pool, chosen: Mapping[str, Any], classes: Sequence[str]) -> SavedGuesses:
        """Values that `chosen` needs of a pool.

        Args:
            pool: the model was fitted on.
            chosen: {"sources": [{"source", "mapping"}], "guidance"}, as fits record them.
            classes: by code.
        """
        guidance = dict(chosen.get("guidance") or {})
        entries, terms = [], None
        for source in chosen["sources"]:
            entry = dict(source)
            try:
                guess = guess_of(
                    source["source"], pool, classes, guidance=guidance, mapping=source.get("mapping")
                )
                entry |= {"deviation": guess.deviation, "scale": guess.scale}
            except InputError:  # gone since: it counted nothing in the fit, and counts nothing here
                entry["deviation"] = 0.0
            entries.append(entry)
            if source["source"] == "names" and pool.kind == "text" and not uses_encoder(pool):
                terms = terms_of(texts_in(pool))
        return cls(tuple(classes), tuple(entries), guidance, terms)

    def mean(self, rows: Any, feature_map: FeatureMap, features: Array) -> tuple[Floats, tuple[str, ...]]:
        """The guesses at new rows.

        Args:
            rows: a DataFrame or an array [n, ...], as the feature map takes them.
            feature_map: of the model.
            features: [n, D] of these rows.

        Returns:
            [J, n, C] and a sentence for each source that says nothing of some of them.
        """
        out, notes = np.zeros((len(self.sources), len(features), len(self.classes))), []
        for place, entry in enumerate(self.sources):
            source = str(entry["source"])
            try:
                guess = self._of(entry, rows, feature_map, features)
            except InputError as error:
                notes.append(f"The guess {source} counts nothing for these rows: {error}")
                continue
            scale = float(entry["deviation"])
            out[place] = guess.values * (guess.deviation / scale) if scale > 0 else 0.0
            missing = int((~guess.known).sum())
            if missing:
                notes.append(f"The guess {source} says nothing of {missing} rows.")
        return out, tuple(notes)

    def _of(self, entry: Mapping[str, Any], rows: Any, feature_map: FeatureMap, features: Array) -> Guess:
        source, classes, scale = str(entry["source"]), self.classes, str(entry.get("scale", ""))
        if source == "names":
            if isinstance(feature_map, VectorFeatureMap):
                class_vectors = feature_map.of_classes(classes)
                if class_vectors is None:
                    raise InputError("its classes have no vectors.")
                return of_class_vectors(features, *class_vectors, classes)
            vectors = None
            if self.terms is None:
                described: Any = descriptions(classes, self.guidance)
                vectors = features, np.asarray(feature_map.transform(described))
            texts = texts_of(rows, str(getattr(feature_map, "column", "text")))
            return of_names(texts, classes, self.guidance, vectors=vectors, terms=self.terms)
        names = [str(name) for name in getattr(rows, "columns", ())]
        columns = columns_of(source, names)
        tail = source.partition(":")[2]
        if not columns or (
            source.startswith("column:") and ":" in tail and tail not in names and len(columns) < 2
        ):
            raise InputError("the rows lack its column.")
        cells = {name: rows[name].tolist() for name in columns}
        if all(is_empty(cell) for cell in cells[columns[0]]):
            raise InputError("its column is empty.")
        if source.startswith("columns:"):
            class_columns = columns_like(tail, names)
            table = list(zip(*(cells[name] for name in class_columns), strict=True))
            return of_probabilities(
                table, classes, given=list(class_columns.values()), source=source, scale=scale
            )
        confidence = cells[columns[1]] if len(columns) > 1 else None
        mapping = entry.get("mapping")
        return of_cells(
            cells[columns[0]], classes, confidence=confidence, mapping=mapping, source=source, scale=scale
        )

    def to_json(self) -> dict[str, Any]:
        """Without the terms; `from_json` is the way back."""
        return {
            "classes": list(self.classes),
            "sources": [dict(source) for source in self.sources],
            "guidance": dict(self.guidance),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], arrays: Mapping[str, Array] | None) -> SavedGuesses:
        """Values that `to_json` and `arrays` gave."""
        guesses = cls(tuple(document["classes"]), tuple(document["sources"]), dict(document["guidance"]))
        return guesses if not arrays else replace(guesses, terms=Terms.of_arrays(arrays))

    def arrays(self) -> dict[str, Array]:
        """The terms as plain arrays; none where there are none."""
        return {} if self.terms is None else self.terms.arrays()
