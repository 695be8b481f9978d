"""Similarity of texts to the names of classes, in words and pieces of words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.guesses.guess import Guess

_TEXTS = 20_000  # that the weights of words are learnt from
_LONGEST = 2000  # characters of a text
_CHUNK = 2000
_EMPTY_WORDS = {"class", "label", "category", "type", "group", "kind", "cluster", "other", "none", "unknown"}
_KINDS: tuple[dict[str, Any], ...] = (
    {"analyzer": "word", "ngram_range": (1, 2), "max_features": 20_000},
    {"analyzer": "char_wb", "ngram_range": (2, 5), "max_features": 30_000},
)
_LEAST = 3  # letters of a word that says something, in scripts with letters


def cleaned(name: str) -> str:
    """A class's name as words: no underscores, no camel case, no numbers.

    Args:
        name: such as "card_lost", "cardLost" or "12_card-lost".
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.sub(r"[\W_\d]+", " ", words).split()).lower()


def names_say_something(classes: Sequence[str]) -> list[bool]:
    """[C] whether each name has a word in it; "1", "A" and "class 3" have none."""
    return [
        any(
            word not in _EMPTY_WORDS and (len(word) >= _LEAST or not word.isascii())
            for word in cleaned(name).split()
        )
        for name in classes
    ]


def of_names(
    texts: Sequence[str],
    classes: Sequence[str],
    guidance: Mapping[str, str] | None = None,
    *,
    vectors: tuple[Array, Array] | None = None,
    terms: Terms | None = None,
) -> Guess:
    """Similarity of a text to each class's "name: guidance".

    Args:
        texts: [N] of the pool.
        classes: names of the C classes, by code.
        guidance: class -> what belongs to it, where somebody wrote that.
        vectors: features of an encoder, of the texts [N, D] and of `descriptions` [C, D]; TF-IDF of words
            and pieces of words of this pool unless given.
        terms: of the pool, where the texts are others; learnt from the texts unless given.

    Raises:
        InputError: fewer than two names say anything.
    """
    described = descriptions(classes, guidance)
    telling = np.array([bool(text) for text in described])
    if telling.sum() < 2:
        raise InputError(
            f"The names of the classes say nothing about texts ({_first(classes)}). Give them names of "
            "words, or write guidance for them."
        )
    likeness = (
        _likeness(*vectors) if vectors is not None else _alike(texts, described, terms or terms_of(texts))
    )
    notes = _even(likeness, telling, classes, "Names that say nothing")
    has_likeness = likeness.std(axis=1) > 1e-12
    without = int((~has_likeness).sum())
    if without:
        notes.append(f"{without} texts share no word or piece of a word with any name.")
    return Guess.of_scores("names", likeness, has_likeness, notes)


def _even(likeness: Floats, telling: Array, classes: Sequence[str], words: str) -> list[str]:
    """Give what says nothing the mean of the others, so that it speaks neither for nor against."""
    likeness[:, ~telling] = likeness[:, telling].mean(axis=1, keepdims=True)
    silent = [name for name, tells in zip(classes, telling, strict=True) if not tells]
    return [f"{words}: {_first(silent)}."] if silent else []


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8]))


def descriptions(classes: Sequence[str], guidance: Mapping[str, str] | None = None) -> list[str]:
    """[C] what each class is compared by; empty where neither name nor guidance says anything."""
    guidance = guidance or {}
    texts = []
    for name, tells in zip(classes, names_say_something(classes), strict=True):
        parts = [cleaned(name) if tells else "", str(guidance.get(name, "")).strip()]
        texts.append(": ".join(part for part in parts if part))
    return texts


class Terms(NamedTuple):
    """Words and pieces of words of a pool with their inverse document frequencies.

    Attributes:
        words: words and pairs of words.
        word_weights: of each.
        pieces: runs of 2 to 5 characters within words.
        piece_weights: of each.
    """

    words: tuple[str, ...]
    word_weights: Floats
    pieces: tuple[str, ...]
    piece_weights: Floats

    def arrays(self) -> dict[str, Array]:
        """Plain arrays; `of_arrays` is the way back."""
        return {
            name: np.frombuffer("\n".join(part).encode(), np.uint8) if isinstance(part, tuple) else part
            for name, part in self._asdict().items()
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Terms:
        """Values that `arrays` gave."""
        return cls(
            _unpacked(arrays["words"]),
            np.asarray(arrays["word_weights"], dtype=np.float64),
            _unpacked(arrays["pieces"]),
            np.asarray(arrays["piece_weights"], dtype=np.float64),
        )


def terms_of(texts: Sequence[str]) -> Terms:
    """The words and pieces of texts that occur in two of them.

    Args:
        texts: [N] of a pool.
    """
    texts = [str(text)[:_LONGEST] for text in texts]
    step = max(1, -(-len(texts) // _TEXTS))
    parts: list[Any] = []
    for kind in _KINDS:
        try:
            vectorizer = _vectorizer(kind, min_df=2 if len(texts) > 20 else 1).fit(texts[::step])
        except ValueError:  # no word occurs in two texts; pieces may
            parts += [(), np.zeros(0)]
            continue
        parts += [
            tuple(map(str, vectorizer.get_feature_names_out())),
            np.asarray(vectorizer.idf_, dtype=np.float64),
        ]
    return Terms(*parts)


def _vectorizer(kind: Mapping[str, Any], **more: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, **kind, **more)


def _alike(texts: Sequence[str], described: Sequence[str], terms: Terms) -> Floats:
    """[N, C] cosines of TF-IDF: words and pairs of words, and pieces of words, half each."""
    texts = [str(text)[:_LONGEST] for text in texts]
    total = np.zeros((len(texts), len(described)))
    for kind, words, weights in zip(_KINDS, terms[::2], terms[1::2], strict=True):
        if not words:
            continue
        vectorizer = _vectorizer(kind, vocabulary={word: place for place, word in enumerate(words)})
        vectorizer.idf_ = np.asarray(weights)
        names = vectorizer.transform(described).T
        for start in range(0, len(texts), _CHUNK):
            part = slice(start, start + _CHUNK)
            total[part] += (vectorizer.transform(texts[part]) @ names).toarray()
    return total


def _unpacked(octets: Array) -> tuple[str, ...]:
    text = np.asarray(octets, dtype=np.uint8).tobytes().decode()
    return tuple(text.split("\n")) if text else ()


def of_class_vectors(items: Array, described: Array, known: Array, classes: Sequence[str]) -> Guess:
    """Similarity of items to classes, by vectors of both from one encoder.

    Args:
        items: [N, D] features.
        described: [C, D] of the classes.
        known: [C] which of them have a vector.
        classes: names of the C classes, by code.

    Raises:
        InputError: fewer than two classes have a vector.
    """
    if known.sum() < 2:
        raise InputError(
            f"The file of vectors has none of these classes ({_first(classes)}); class_names must name them."
        )
    likeness = _likeness(items, described)
    notes = _even(likeness, known, classes, "Classes without a vector")
    return Guess.of_scores("names", likeness, np.ones(len(likeness), dtype=bool), notes)


def _likeness(items: Array, described: Array) -> Floats:
    """[N, C] cosines of vectors."""
    X, Y = np.asarray(items, dtype=np.float64), np.asarray(described, dtype=np.float64)
    if X.ndim != 2 or Y.ndim != 2 or X.shape[1] != Y.shape[1]:
        raise InputError(
            "Vectors of items and of classes must come from one model; "
            f"got {list(X.shape)} and {list(Y.shape)}."
        )
    lengths = [np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in (X, Y)]
    cosines: Floats = (X / lengths[0]) @ (Y / lengths[1]).T
    return cosines
