"""One 64-bit fingerprint an item, so that a pool that changed under a project is noticed."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.reading import listed

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_THREE = np.uint64(3)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
_WIDE = 1 << 19  # bytes of an item from which on a hash in C is quicker than a loop over its words


_KNOWN = 50_000


def word_of(data: bytes) -> int:
    """A 64-bit word of bytes."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def fingerprint_words(columns: Iterable[Array]) -> Array:
    """Fingerprints of items given as columns of 64-bit words.

    Args:
        columns: each [N] uint64.

    Returns:
        [N] uint64; the order of the columns matters.
    """
    state: Array | None = None
    for column in columns:
        if state is None:
            state = np.full(len(column), _GOLDEN, dtype=np.uint64)
            shifted = np.empty_like(state)
        # state * 3 + column + golden, through the finaliser of SplitMix64 (Steele, Lea & Flood 2014): every
        # input bit reaches every output bit. In place, since an image has a million columns.
        state *= _THREE
        state += column
        state += _GOLDEN
        for shift, factor in _MIXING:
            np.right_shift(state, shift, out=shifted)
            state ^= shifted
            state *= factor
        np.right_shift(state, _LAST_SHIFT, out=shifted)
        state ^= shifted
    assert state is not None
    return state


def fingerprint_rows(rows: Array) -> Array:
    """Fingerprints of numeric rows or images.

    Args:
        rows: [N, ...] numbers; the bytes of an item are what counts, so the same numbers in
            another dtype differ (0.0 and -0.0 do not).

    Returns:
        [N] uint64.
    """
    rows = np.asarray(rows)
    if rows.shape[0] == 0:
        return np.empty(0, dtype=np.uint64)
    flat = rows.reshape(rows.shape[0], -1)
    out = np.empty(flat.shape[0], dtype=np.uint64)
    step = max(1, (1 << 25) // max(1, flat.shape[1] * flat.itemsize))
    for start in range(0, flat.shape[0], step):
        block = np.ascontiguousarray(flat[start : start + step])
        if block.dtype.kind == "f":
            block = block + block.dtype.type(0)  # -0.0 + 0.0 = 0.0
        octets = block.view(np.uint8).reshape(block.shape[0], -1)
        if octets.shape[1] > _WIDE:
            out[start : start + step] = [word_of(row.tobytes()) for row in octets]
            continue
        if octets.shape[1] % 8:
            octets = np.pad(octets, ((0, 0), (0, -octets.shape[1] % 8)))
        words = np.ascontiguousarray(octets.view("<u8").T)
        out[start : start + step] = fingerprint_words(words)
    return out


def fingerprint_values(values: Sequence[Any] | Array) -> Array:
    """64-bit words of arbitrary cells (texts, numbers, blanks), for `fingerprint_words`.

    Args:
        values: [N] cells; equal texts give equal words.

    Returns:
        [N] uint64.
    """
    memory: dict[str, int] = {}
    out = np.empty(len(values), dtype=np.uint64)
    for i, value in enumerate(values):
        text = str(value)
        word = memory.get(text)
        if word is None:
            word = word_of(text.encode("utf-8", "surrogatepass"))
            if len(memory) >= _KNOWN:
                memory.clear()  # of ids each is met once: a memory of them all would be larger than they are
            memory[text] = word
        out[i] = word
    return out


def compare_fingerprints(old: Array, new: Array, *, name: str = "pool") -> int:
    """Check that a pool only grew since a project was made from it.

    Args:
        old: [N] fingerprints the project was made with.
        new: [M] fingerprints now.
        name: of the pool, for the message.

    Returns:
        How many items were appended.

    Raises:
        InputError: items were changed, removed or moved; the message numbers them.
    """
    old, new = np.asarray(old, dtype=np.uint64), np.asarray(new, dtype=np.uint64)
    shared = min(len(old), len(new))
    same = old[:shared] == new[:shared]
    if len(new) >= len(old) and bool(same.all()):
        return len(new) - len(old)

    counts = dict(zip(*np.unique(new, return_counts=True), strict=True))
    for word in old[:shared][same]:
        counts[word] -= 1
    removals, changes, moves = [], [], []
    for i in range(len(old)):
        if i < shared and same[i]:
            continue
        if counts.get(old[i], 0) > 0:
            counts[old[i]] -= 1
            moves.append(i)
        elif i < shared and len(new) >= len(old):
            changes.append(i)
        else:
            removals.append(i)
    if removals:
        moves = []  # the rows behind a removed one move with it: not worth naming
    parts = [
        f"{len(which)} {kind} ({listed([str(i) for i in which], 5, quote=False)})"
        for kind, which in (("changed", changes), ("removed", removals), ("moved", moves))
        if which
    ]
    raise InputError(
        f"The pool {name!r} is not the one this project was made from: items {'; '.join(parts)}. "
        "Rows may be appended at the end, but not changed, removed or moved. "
        "Bring the original file back; or start a new project from this one and import the labels of the "
        "old project there, which can still be exported."
    )
