"""From labels as a file holds them to class codes and names."""

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.reading import cut, letters, listed

UNLABELLED = ("", "nan", "NaN", "None", "null", "<NA>", "NaT")
"""Texts that stand for "no label" in an array of labels, unless a class is called so."""


def class_order(classes: list[str]) -> list[str]:
    """Names of classes in order: numbers by size, anything else by the alphabet."""
    try:
        return sorted(classes, key=lambda key: (float(key), key))
    except ValueError:
        return sorted(classes)


def class_names(texts: Array) -> Array:
    """Names of classes as every reader takes them: without spaces around, one form of the same letters.

    Args:
        texts: [N] object array of str, as written.

    Returns:
        [N] object array of str: names of one NFC form are one name, as it was written first.
    """
    spellings: dict[str, str] = {}
    names = np.empty(len(texts), dtype=object)
    stripped = [str(text).strip() for text in texts.tolist()]
    names[:] = [spellings.setdefault(letters(text), text) for text in stripped]
    return names


def codes_of(
    y: Array, classes: tuple[str, ...] | None, label: str, *, minus_one: bool = True
) -> tuple[Ints, tuple[str, ...]]:
    """Class codes and names from an array of labels.

    Args:
        y: [N] numbers or texts. NaN and the texts of `UNLABELLED` are unknown; so is -1, unless -1 and 1
            are the only numbers, which are then the two classes.
        classes: names in the order of the codes, or None to take the labels themselves.
        label: of the file, for messages.
        minus_one: False where -1 is a class like any other.

    Returns:
        [N] codes, -1 unknown, and the names.

    Raises:
        InputError: labels that are neither numbers nor texts, a code without a name, one class, or as
            many classes as items.
    """
    if y.dtype.kind not in "iubfUS":
        raise InputError(f"{label} holds {y.dtype} where class codes or names are needed.")
    values, first, inverse = np.unique(y, return_index=True, return_inverse=True)
    if classes is not None and (numbers := _as_codes(values, classes)) is not None:
        wrong = (numbers < -1) | (numbers >= len(classes))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[first[wrong].argmin()])
            raise InputError(
                f"{label}, item {first[at]} holds class {int(numbers[at])}, but only {len(classes)} classes "
                f"have names (codes 0 to {len(classes) - 1}; -1 is no label)."
            )
        codes = numbers
    else:
        texts = [plain_text(v.decode() if isinstance(v, bytes) else v) for v in values.tolist()]
        texts = class_names(np.array(texts, dtype=object)).tolist()
        marks = set(UNLABELLED) - set(classes or ())
        means_none = set(texts) - marks != {"-1", "1"} if classes is None else "-1" not in classes
        if minus_one and y.dtype.kind in "if" and means_none:
            marks.add("-1")
        if y.dtype.kind == "f" and np.isinf(values).any():
            at = int(np.isinf(values).argmax())
            raise InputError(f"{label}, item {first[at]} has the class {values[at]}, which is no class.")
        if classes is None:
            classes = tuple(class_order([text for text in dict.fromkeys(texts) if text not in marks]))
        position = {key: i for i, key in enumerate(classes)}
        stray = [i for i, text in enumerate(texts) if text not in position and text not in marks]
        if stray:
            at = min(stray, key=lambda i: int(first[i]))
            raise InputError(
                f"{label}, item {first[at]} has the class {cut(texts[at])}, which is not among those given."
            )
        codes = np.array([position.get(text, -1) for text in texts], dtype=np.int64)
    if len(classes) < 2:
        raise InputError(f"{label} holds one class only; there is nothing to tell apart.")
    if len(classes) >= len(y):
        raise InputError(
            f"{label} holds {len(classes)} classes for {len(y)} items; a pool needs more items than classes."
        )
    return codes[inverse.reshape(-1)], classes


def _as_codes(values: Array, classes: tuple[str, ...]) -> Ints | None:
    """Distinct labels as codes, where they are whole numbers (NaN is none) that name no class themselves.

    Raises:
        InputError: they could be names and codes alike, and mean other classes then.
    """
    if values.dtype.kind not in "iubf":
        return None
    cells = values if values.dtype.kind != "f" else values[~np.isnan(values)]
    if (
        cells.dtype.kind == "f"
        and not (np.isfinite(cells) & (cells == np.rint(cells)) & (np.abs(cells) < 2**53)).all()
    ):
        return None
    # -1 is no label, so it says nothing of the others
    labels = [value for value in cells.tolist() if value != -1 or "-1" in classes]
    names = [plain_text(int(value)) for value in labels]
    if names and all(name in classes for name in names):
        other_names = [classes[int(v)] if 0 <= v < len(classes) else None for v in labels]
        if None not in other_names and other_names != names:
            raise InputError(
                f"The labels {listed(names, 4, quote=False)} are names of classes and could be codes from 0 "
                "on as well, which are other classes. Write names as texts, or leave the list of classes out."
            )
        return None
    if values.dtype == np.uint64 and len(values) and values[-1] > np.uint64(2**62):
        return np.minimum(values, np.uint64(2**62)).astype(np.int64)
    return (np.where(np.isnan(values), -1, values) if values.dtype.kind == "f" else values).astype(np.int64)
