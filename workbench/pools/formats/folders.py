"""Meaning of the names of folders and files: classes of images, and which items are for testing."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.pools.labels import class_order
from workbench.pools.pool import TestSplit
from workbench.reading import cut, listed

_TRAINING = ("train", "training", "val", "valid", "validation", "dev")
_TESTING = ("test", "testing")
_NAMED = re.compile(r"(?:^|[/_.-])(train|test|validation|valid|dev|val)(?=[/_.-]|$)")
SPLITS = ("train", "validation", "valid", "val", "dev", "test")


class Folders(NamedTuple):
    """Meaning of the folders of images.

    Attributes:
        truth: [N] class codes, -1 where an image has none; None where folders are no classes.
        classes: their names.
        test: the split that the folders are, or None.
        notes: what people should know of how they were read.
    """

    truth: Ints | None
    classes: tuple[str, ...]
    test: TestSplit | None = None
    notes: tuple[str, ...] = ()


def classes_by_folder(label: str, paths: Sequence[str], labelled: bool | None) -> Folders:
    """Classes of images whose folder is their class; none where it is not.

    A class is the first folder in which the paths differ; below folders called train, validation and test,
    or below several folders that all hold the same ones, it is the next.

    Args:
        label: of the file, for messages.
        paths: [N] of the images.
        labelled: whether folders are classes; None says yes where there are two or more and a third of the
            images lies in them. The others have no class yet.

    Raises:
        InputError: an image outside of folders, one class, or as many classes as images.
    """
    parts = _below_common([PurePosixPath(path).parts[:-1] for path in paths])
    tops = [part[0] if part else "" for part in parts]
    below = [part[1] if len(part) > 1 else "" for part in parts]
    are_splits = _are_splits(tops)
    test, notes = _split(tops) if are_splits else (None, ())
    if are_splits or _repeats(tops, below):
        parts = [part[1:] for part in parts]
        if not are_splits:
            first = sorted(set(tops))
            notes = (f"The classes are the folders below {listed(first, 4)}, which all hold the same ones.",)
    folders = [part[0] if part else "" for part in parts]
    strays = folders.count("")
    partly = labelled is None and 3 * (len(paths) - strays) >= len(paths) > strays and len(set(folders)) > 2
    if labelled is None:
        labelled = partly or (not strays and len(set(folders)) > 1)
        if strays and len(set(folders)) > 2:
            stray = cut(paths[folders.index("")])
            lie = f"{strays:,} of {len(paths):,} images lie in none, the first {stray}."
            words = f"Folders are not taken for classes, since {lie}"
            if partly:
                words = f"Folders are classes; {lie} These have no class yet."
            notes = (*notes, words)
    if not labelled:
        return Folders(None, (), test, notes)
    if strays and not partly:
        stray = paths[folders.index("")]
        raise InputError(f"{label}: {cut(stray)} lies in no folder, so it has no class. Move it into one.")
    classes = tuple(class_order(sorted({*folders} - {""})))
    if len(classes) < 2:
        raise InputError(
            f"{label} has one folder of images only ({cut(classes[0])}): one class, nothing to tell."
        )
    if len(classes) >= len(paths):
        raise InputError(
            f"{label} has {len(classes)} folders for {len(paths)} images; a class needs several."
        )
    position = {name: code for code, name in enumerate(classes)}
    truth = np.array([position.get(folder, -1) for folder in folders], dtype=np.int64)
    return Folders(truth, classes, test, notes)


def _below_common(parts: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Folders from the first on in which the paths differ; those that lie above it have none."""
    depth = 0
    while all(len(part) > depth for part in parts) and len({part[depth] for part in parts}) == 1:
        depth += 1
    if depth and all(len(part) == depth for part in parts):
        depth -= 1  # one folder for all: it is the class, not a wrapper
    return [part[depth:] for part in parts]


def _are_splits(tops: Sequence[str]) -> bool:
    names = {top.lower() for top in tops}
    training, testing = names & set(_TRAINING), names & set(_TESTING)
    return names <= {*_TRAINING, *_TESTING} and bool(training) and len(training) + len(testing) > 1


def _split(tops: Sequence[str]) -> tuple[TestSplit | None, tuple[str, ...]]:
    for_test = np.array([top.lower() in _TESTING for top in tops])
    names = sorted(set(tops))
    if not for_test.any() or for_test.all():
        return None, (f"The folders {listed(names)} are splits, taken together.",)
    train, test = np.flatnonzero(~for_test), np.flatnonzero(for_test)
    note = f"The folders {listed(names)} are splits: the {len(test):,} images for testing are the test set."
    return TestSplit(0, len(test) / len(tops), train, test, given=True), (note,)


def _repeats(tops: Sequence[str], below: Sequence[str]) -> bool:
    """True if several folders hold the same two or more folders each, which are the classes then."""
    children: dict[str, set[str]] = {}
    for top, name in zip(tops, below, strict=True):
        children.setdefault(top, set()).add(name)
    first = next(iter(children.values()))
    return (
        len(children) > 1
        and len(first) > 1
        and "" not in first
        and all(names == first for names in children.values())
    )


def by_split(name: str, paths: Sequence[str], split: str | None) -> tuple[dict[str, list[str]], str]:
    """Files by the split that their paths name, in the usual order; those that name none are "train".

    Args:
        name: of the dataset.
        paths: of the files.
        split: the one that is wanted; None takes all.

    Returns:
        Split -> files, and a note where several are taken.

    Raises:
        InputError: no such split.
    """
    files: dict[str, list[str]] = {}
    for path in paths:
        matches = _NAMED.findall(path.lower())
        files.setdefault(matches[-1] if matches else "train", []).append(path)
    split_names = sorted(files, key=SPLITS.index)
    if split is not None:
        if split not in files:
            raise InputError(f"{name} has no split {cut(split)}; it has {listed(split_names)}.")
        split_names = [split]
    note = (
        f"Splits one after the other: {', '.join(split_names)} (split= takes one)." if split_names[1:] else ""
    )
    return {split_name: files[split_name] for split_name in split_names}, note
