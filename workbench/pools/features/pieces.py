"""Texts as features: words beside pieces of words, weighted and projected; also for texts without spaces."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from workbench.arrays import Array, Floats, unmirrored
from workbench.errors import InputError
from workbench.pools.cells import check_texts, texts_of
from workbench.pools.features.saved_map import Packed, SavedMap
from workbench.progress import tell

MAX_WORDS = 20_000
MAX_PIECES = 30_000
LONGEST = 2000
"""Characters of a text that are looked at: what it is about is said by then."""
_AXES = 256
_AXES_OF_MANY = 512  # classes need more directions to be told apart
_MANY_CLASSES = 50
_FIT_TEXTS = 20_000
TEXTS_AT_ONCE = 2000
_LEVELS = 127
_WORDS = {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
_PIECES = {"analyzer": "char_wb", "ngram_range": (2, 5)}


def _packed(levels: Array) -> dict[str, Any]:
    """Axes as JSON: how many, and base64 of compressed bytes."""
    octets = zlib.compress(np.ascontiguousarray(levels).tobytes())
    return {"axes": len(levels), "zlib": b64encode(octets).decode()}


def _unpacked(document: dict[str, Any], info: ValidationInfo) -> Array:
    """The axes behind `_packed`; never unpacks more than the terms before them say."""
    n, n_terms = int(document["axes"]), len(info.data["weights"])
    if not 0 < n <= n_terms:
        raise ValueError("its weights and axes do not fit each other")
    octets = zlib.decompressobj().decompress(b64decode(document["zlib"]), n * n_terms + 1)
    return np.frombuffer(octets, np.int8).reshape(n, n_terms)


@dataclass(frozen=True, eq=False)
class PiecesFeatureMap(SavedMap):
    """Texts to unit vectors: TF-IDF of words and pairs of words beside pieces of words (docs/math.md, 12).

    Attributes:
        column: the texts' column in a table.
        words: words and pairs of words; none where no word occurs twice.
        pieces: runs of 2 to 5 characters within words.
        weights: [V] inverse document frequencies, of the words and then the pieces.
        levels: [n, V] axes in whole numbers from -127 to 127, so that they are small to keep.
        scales: [V] what a level is worth.
    """

    column: str
    words: tuple[str, ...]
    pieces: tuple[str, ...]
    weights: Packed
    levels: Annotated[Array, PlainValidator(_unpacked), PlainSerializer(_packed)]
    scales: Packed
    kind: ClassVar[str] = "pieces"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return tuple(f"axis_{i + 1}" for i in range(len(self.levels)))

    @classmethod
    def of(cls, texts: Sequence[str], column: str = "text", n_classes: int = 0) -> PiecesFeatureMap:
        """Learn terms, weights and axes from a pool's texts.

        Args:
            texts: [N].
            column: the texts' column in a table.
            n_classes: C, or 0 when not known; from 50 on there are 512 axes instead of 256.

        Returns:
            The map; the same texts always give the same one.

        Raises:
            InputError: nothing occurs in two texts, or they are longer than 50 million characters together.
        """
        from scipy import sparse
        from sklearn.decomposition import TruncatedSVD

        check_texts(texts, column)
        step = -(-len(texts) // _FIT_TEXTS)
        part = [text[:LONGEST] for text in texts[::step]]
        fitted = []
        for number, (kind, limit) in enumerate(((_WORDS, MAX_WORDS), (_PIECES, MAX_PIECES))):
            tell(0.2 * number, "Learning " + ("words" if number == 0 else "pieces of words"))
            vectorizer = _vectorizer(kind, min_df=2, max_features=limit)
            try:
                fitted.append((vectorizer.fit_transform(part), vectorizer))
            except ValueError:  # nothing is in two texts: Chinese or Japanese has no words
                fitted.append((sparse.csr_matrix((len(part), 0), dtype=np.float32), None))
        values = sparse.hstack([block for block, _ in fitted], format="csr")
        n = min(
            _AXES_OF_MANY if n_classes >= _MANY_CLASSES else _AXES, values.shape[0] - 1, values.shape[1] - 1
        )
        if n < 1:
            raise InputError(
                f"Nothing in the texts of column {column!r} occurs in two of them; there is nothing to "
                f'compare them by. Use it as a category: columns={{"{column}": "category"}}.'
            )
        tell(0.5, f"Learning {n} directions")
        with np.errstate(invalid="ignore"):  # of texts that are all alike no share of their variance is known
            axes = unmirrored(TruncatedSVD(n, algorithm="randomized", random_state=0).fit(values).components_)
        scales = np.maximum(np.abs(axes).max(axis=0), 1e-12) / _LEVELS
        words, pieces = (
            () if transformer is None else tuple(map(str, transformer.get_feature_names_out()))
            for _, transformer in fitted
        )
        weights = [np.zeros(0) if transformer is None else transformer.idf_ for _, transformer in fitted]
        return cls(
            column,
            words,
            pieces,
            np.concatenate(weights).astype(np.float32),
            np.rint(axes / scales).astype(np.int8),
            scales.astype(np.float32),
        )

    @cached_property
    def _fitted(self) -> list[Any]:
        at = len(self.words)
        blocks = ((_WORDS, self.words, self.weights[:at]), (_PIECES, self.pieces, self.weights[at:]))
        out = []
        for kind, terms, weights in blocks:
            if terms:
                out.append(_vectorizer(kind, vocabulary={term: i for i, term in enumerate(terms)}))
                out[-1].idf_ = weights.astype(np.float64)
        return out

    @cached_property
    def _axes(self) -> Floats:
        """[V, n]."""
        return np.ascontiguousarray((self.levels * self.scales).T.astype(np.float32))

    def transform(self, rows: Any) -> Array:
        """Texts to features.

        Args:
            rows: [N] texts, or a DataFrame with the texts' column.

        Returns:
            [N, D] float32 of length 1; zeros for a text without anything known.

        Raises:
            InputError: rows without the column, or what is no text.
        """
        from scipy import sparse

        texts = texts_of(rows, self.column)
        out = np.empty((len(texts), len(self.levels)), np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            batch = [text[:LONGEST] for text in texts[start : start + TEXTS_AT_ONCE]]
            values = sparse.hstack([vectorizer.transform(batch) for vectorizer in self._fitted], format="csr")
            part = values @ self._axes
            length = np.linalg.norm(part, axis=1, keepdims=True)
            out[start : start + TEXTS_AT_ONCE] = part / np.where(length > 1e-9, length, 1.0)
        return out

    def heaviest(self, text: str, n: int) -> tuple[tuple[str, float], ...]:
        """The terms that move the features of a text most: weight x length of the term's place in the axes.

        Args:
            text: any.
            n: how many, at most.

        Returns:
            (term, share of the heaviest one), largest first; a space at the end of a piece is "_".
        """
        from scipy import sparse

        values = sparse.hstack(
            [vectorizer.transform([text[:LONGEST]]) for vectorizer in self._fitted], format="csr"
        )
        names = (*self.words, *self.pieces)
        weight = values.data * np.linalg.norm(self._axes[values.indices], axis=1)
        terms = []
        for place in np.argsort(-weight, kind="stable")[:n]:
            if weight[place] > 0:
                name = names[int(values.indices[place])]
                # a piece keeps the space at the word's edge, which would not be seen
                edge = name.replace(" ", "_") if name != name.strip() else name
                terms.append((edge, round(float(weight[place] / weight.max()), 3)))
        return tuple(terms)

    def check(self) -> None:
        """Refuse terms, weights and scales that do not fit each other."""
        n_terms = len(set(self.words)) + len(set(self.pieces))
        if n_terms != len(self.words) + len(self.pieces) or self.weights.shape != (n_terms,):
            raise ValueError("its terms and weights do not fit each other")
        if self.scales.shape != (n_terms,):
            raise ValueError("its terms and scales do not fit each other")


def _vectorizer(kind: Mapping[str, Any], **options: Any) -> Any:
    """A vectorizer of a kind of terms, `_WORDS` or `_PIECES`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **kind, **options)
