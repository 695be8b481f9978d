"""Texts as features: words and pairs of words, weighted and projected (latent semantic analysis)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.pools.features.packing import pack, unpack
from workbench.reading import cut

MAX_TERMS = 5000
MAX_CHARACTERS = 50_000_000
MAX_LENGTH = 10_000_000  # of one text
LEARNT_CHARACTERS = 2_500_000
LONGEST_LEARNT = 20_000
_CHUNK = 2000


@dataclass(frozen=True, eq=False)
class TextFeatureMap:
    """Texts to unit vectors in a space of topics.

    Attributes:
        column: the texts' column in a table.
        terms: [V] words and pairs of words.
        weights: [V] inverse document frequencies.
        axes: [n, V] topics.
    """

    column: str
    terms: tuple[str, ...]
    weights: Floats
    axes: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return tuple(f"topic_{i + 1}" for i in range(len(self.axes)))

    @classmethod
    def of(cls, texts: Sequence[str], column: str = "text", n_topics: int = 100) -> TextFeatureMap:
        """Learn terms, weights and topics from a pool's texts.

        Args:
            texts: [N].
            column: the texts' column in a table.
            n_topics: D, fewer when there are fewer texts or terms.

        Returns:
            The map; the same texts always give the same one.

        Raises:
            InputError: no word occurs in two texts, or they are longer than 50 million characters together.
        """
        from sklearn.decomposition import TruncatedSVD

        vectorizer = _vectorizer(min_df=2, max_features=MAX_TERMS)
        try:
            counts = vectorizer.fit_transform(_sample(texts, column))
        except ValueError as error:
            raise InputError(
                f"No word of column {column!r} occurs in two texts; there is nothing to compare them by."
            ) from error
        n = min(n_topics, counts.shape[0] - 1, counts.shape[1] - 1)
        if n < 1:
            raise InputError(f"The texts of column {column!r} share too few words to compare them by.")
        fitted = TruncatedSVD(n, algorithm="randomized", random_state=0).fit(counts)
        signs = np.sign(fitted.components_[np.arange(n), np.abs(fitted.components_).argmax(axis=1)])
        return cls(
            column,
            tuple(str(term) for term in vectorizer.get_feature_names_out()),
            np.asarray(vectorizer.idf_, dtype=np.float32),
            np.asarray(fitted.components_ * signs[:, None], dtype=np.float32),
        )

    @cached_property
    def _fitted(self) -> Any:
        vectorizer = _vectorizer(vocabulary={term: i for i, term in enumerate(self.terms)})
        vectorizer.idf_ = self.weights.astype(np.float64)
        return vectorizer

    def transform(self, rows: Any) -> Array:
        """Texts to features.

        Args:
            rows: [N] texts, or a DataFrame with the texts' column.

        Returns:
            [N, D] float32 of length 1; zeros for a text without a known word.

        Raises:
            InputError: rows without the column, or what is no text.
        """
        texts = texts_of(rows, self.column)
        out = np.empty((len(texts), len(self.axes)), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            part = self._fitted.transform(texts[start : start + _CHUNK]) @ self.axes.T.astype(np.float64)
            length = np.linalg.norm(part, axis=1, keepdims=True)
            out[start : start + _CHUNK] = part / np.where(length > 1e-12, length, 1.0)
        return out

    def heaviest(self, text: str, n: int) -> tuple[tuple[str, float], ...]:
        """The n terms that move the features of a text most, as `PiecesFeatureMap.heaviest` gives them."""
        values = self._fitted.transform([text])
        return heaviest(values, np.linalg.norm(self.axes[:, values.indices], axis=0), self.terms, n)

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document; arrays as base64 of little-endian float32."""
        return {
            "kind": "text",
            "column": self.column,
            "terms": list(self.terms),
            "weights": pack(self.weights),
            "axes": pack(self.axes),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TextFeatureMap:
        """Rebuild from `to_json`."""
        terms = tuple(map(str, document["terms"]))
        weights, axes = unpack(document["weights"]), unpack(document["axes"])
        if len(set(terms)) != len(terms) or weights.shape != (len(terms),) or axes.shape[1:] != (len(terms),):
            raise ValueError("its terms, weights and topics do not fit each other")
        return cls(str(document["column"]), terms, weights, axes)


def heaviest(values: Any, lengths: Floats, names: Sequence[str], n: int) -> tuple[tuple[str, float], ...]:
    """The terms of one text by weight x length of their place in the axes.

    Args:
        values: [1, V] sparse weights.
        lengths: of the axes' columns at its entries.
        names: [V].
        n: how many, at most.

    Returns:
        (term, share of the heaviest one), largest first; spaces at the ends of a piece are "_".
    """
    weight = values.data * lengths
    order = np.argsort(-weight, kind="stable")[:n]
    top = float(weight[order[0]]) if len(order) else 1.0
    if not len(order) or top <= 0:
        return ()
    found = []
    for place in order:
        name = str(names[int(values.indices[place])])
        # a piece keeps the space at the word's edge, which would not be seen
        edge = name.replace(" ", "_") if name != name.strip() else name
        found.append((edge, round(float(weight[place]) / top, 3)))
    return tuple(found)


def texts_of(rows: Any, column: str) -> list[str]:
    """The texts of a list or of a column of a DataFrame.

    Raises:
        InputError: no such column, or what is no text.
    """
    if hasattr(rows, "columns"):
        if column not in rows.columns:
            raise InputError(f"The rows lack the column {column!r}.")
        rows = rows[column].tolist()
    texts = list(rows)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Row {i + 1} holds {cut(text)}, which is not a text.")
    return texts


def check_texts(texts: Sequence[str], column: str) -> int:
    """Their characters together.

    Raises:
        InputError: too many, or one text too long.
    """
    total = sum(map(len, texts))
    if total > MAX_CHARACTERS:
        raise InputError(
            f"The texts of column {column!r} have {total:,} characters together; the limit is "
            f"{MAX_CHARACTERS:,}. Take fewer or shorter ones."
        )
    longest = max(map(len, texts), default=0)
    if longest > MAX_LENGTH:
        raise InputError(
            f"Column {column!r} holds a text of {longest:,} characters; the limit is {MAX_LENGTH:,}. "
            "Shorten it, or leave it out."
        )
    return total


def _sample(texts: Sequence[str], column: str) -> Sequence[str]:
    """The texts to learn terms from: all, or as many evenly spaced ones as take a few seconds."""
    total = check_texts(texts, column)
    if total <= LEARNT_CHARACTERS:
        return texts
    step = min(-(-total // LEARNT_CHARACTERS), len(texts) // 2)
    return [text[:LONGEST_LEARNT] for text in texts[:: max(1, step)]]


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", **options)
