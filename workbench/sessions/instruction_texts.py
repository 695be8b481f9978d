"""Instructions as they are stored: texts, their pictures made small, and examples of classes."""

import base64
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from workbench.errors import InputError
from workbench.pools.instructions import (
    KEPT,
    LONGEST,
    MOST_OCTETS,
    PICTURE,
    carried_instructions,
    is_file,
    pictures_named,
    without_pictures,
)
from workbench.pools.pool import Pool
from workbench.reading import cut, listed, valid_text
from workbench.sessions.taxonomy import key_of
from workbench.store import Event, ProjectState

MOST_PICTURES = 12
"""Most pictures of one version."""
MOST_KEPT = 20 << 20
"""Most bytes of the pictures of all versions together, as they are kept."""
SIDE = 1200  # pixels of the longer side of a kept picture
_LOSSLESS = 200_000  # bytes: a larger picture is kept as JPEG


class Picture(NamedTuple):
    """A picture as it is kept.

    Attributes:
        name: 16 hexadecimal digits of its content.
        media: "image/png" or "image/jpeg".
        data: the file.
    """

    name: str
    media: str
    data: bytes


def as_kept(data: bytes, label: str) -> Picture:
    """A picture as it is kept: at most 1,200 pixels a side, without whatever else its file held.

    Args:
        data: of an image file.
        label: what messages call it.

    Raises:
        InputError: no image, damaged, or too large.
    """
    from PIL import Image

    from workbench.pools.images.decoding import MAX_PHOTO_PIXELS, decode_image

    if len(data) > MOST_OCTETS:
        raise InputError(
            f"{label} has {len(data):,} bytes; a picture of the instructions has at most {MOST_OCTETS:,}."
        )
    try:
        image = Image.fromarray(
            decode_image(data, label, max_pixels=MAX_PHOTO_PIXELS, side=SIDE, upright=True)
        )
    except InputError as error:
        raise InputError(
            f"{cut(label)} cannot be a picture of the instructions: it is no image, is damaged, or has more "
            f"than {MAX_PHOTO_PIXELS:,} pixels. Use a PNG or JPEG file."
        ) from error
    out = io.BytesIO()
    image.save(out, "PNG")
    media = "image/png"
    if len(out.getvalue()) > _LOSSLESS:
        out, media = io.BytesIO(), "image/jpeg"
        image.save(out, "JPEG", quality=85)
    content = out.getvalue()
    return Picture(hashlib.sha256(content).hexdigest()[:16], media, content)


def cleaned(text: str, given: Mapping[str, Picture]) -> str:
    """The text as it is stored: line ends of one kind, its pictures by the names they are kept under.

    Raises:
        InputError: it is too long, names a file that is not given, or too many pictures.
    """
    content = valid_text(text).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").strip()
    missing = [name for name in pictures_named(content) if is_file(name) and name not in given]
    if missing:
        raise InputError(
            f"The text names pictures that are not there: {listed(missing)}. Add them, or take them out."
        )

    def kept(reference: re.Match[str]) -> str:
        picture = given.get(reference[2])
        return reference[0] if picture is None else f"![{reference[1]}]({KEPT}{picture.name})"

    content = PICTURE.sub(kept, content)
    if len(content) > LONGEST:
        raise InputError(
            f"The instructions have {len(content):,} characters; {LONGEST:,} can be shown. Shorten them."
        )
    n = sum(name.startswith(KEPT) for name in pictures_named(content))
    if n > MOST_PICTURES:
        raise InputError(f"The instructions have {n} pictures; {MOST_PICTURES} can be shown.")
    return content


def check_room(state: ProjectState, fresh: Sequence[Picture]) -> None:
    """Refuse pictures that are too much beside those of earlier versions.

    Raises:
        InputError: together they are more than `MOST_KEPT` bytes.
    """
    size = sum(len(str(event.payload["data"])) * 3 // 4 for event in state.pictures.values())
    if fresh and size + sum(len(picture.data) for picture in fresh) > MOST_KEPT:
        raise InputError(
            f"The pictures of all versions together take more than {MOST_KEPT >> 20} MB. Use smaller "
            "ones, or those that are there already."
        )


def _version(text: str, pictures: Iterable[Picture]) -> list[Event]:
    """Events of a version of the instructions: the pictures that are kept from here on, then its text."""
    kept = [
        Event.picture_kept(picture.name, picture.media, base64.b64encode(picture.data).decode())
        for picture in pictures
    ]
    return [*kept, Event.instructions_written(text)]


def written(state: ProjectState, text: str, given: Mapping[str, Picture], after: int) -> list[Event]:
    """Events of a new version of the instructions: its pictures, then its text.

    Args:
        state: of the project.
        text: as `cleaned` makes it.
        given: its pictures.
        after: number of the version that was edited; -1 for whatever is in force.

    Returns:
        The events; none where nothing changes.

    Raises:
        InputError: another version was written meanwhile, or pictures are missing or too large.
    """
    version = len(state.instructions)
    if after not in (-1, version):
        who = state.instructions[-1].annotator if version else ""
        raise InputError(
            f"{who or 'Somebody'} wrote version {version} meanwhile. Copy your text, open the "
            "instructions again and put into them what is yours."
        )
    if text == (state.instructions[-1].text if version else ""):
        return []
    references = [name.removeprefix(KEPT) for name in pictures_named(text) if name.startswith(KEPT)]
    fresh = {picture.name: picture for picture in given.values() if picture.name not in state.pictures}
    missing = [name for name in references if name not in state.pictures and name not in fresh]
    if missing:
        raise InputError(f"The text names pictures that there are not: {listed(missing)}.")
    check_room(state, list(fresh.values()))
    return _version(text, fresh.values())


def begun_with(source: str) -> list[Event]:
    """Pictures and instructions of a new project from the source of its pool, if any.

    Args:
        source: a file or a folder; a pool with a name says nothing.
    """
    instructions = carried_instructions(source)
    if instructions is None:
        return []
    pictures: dict[str, Picture] = {}
    for name, data in instructions.pictures.items():
        with suppress(InputError):  # what is no picture is its words
            pictures[name] = as_kept(data, name)
    text = without_pictures(
        instructions.text, [n for n in pictures_named(instructions.text) if is_file(n) and n not in pictures]
    )
    try:
        text = cleaned(text, pictures)
    except InputError:
        return []  # too many pictures: a person chooses, out of the file
    return _version(text, {picture.name: picture for picture in pictures.values()}.values())


MOST_EXAMPLES = 3
"""Most examples of a class."""


def has_read(state: ProjectState, annotator: str, version: int) -> list[Event]:
    """That a person has read the instructions up to a version; nothing where they had.

    Args:
        state: of the project.
        annotator: the person.
        version: never a later one than that in force; -1 for that one.
    """
    latest = len(state.instructions)
    version = latest if version < 0 else min(version, latest)
    return [Event.instructions_read(version)] if version > state.version_read(annotator) else []


def picked(state: ProjectState, pool: Pool, item: int, label: str, on: bool) -> list[Event]:
    """That an item is an example of a class, or no longer; nothing where nothing changes.

    Args:
        state: of the project.
        pool: of the item.
        item: index into the pool.
        label: name of the class.
        on: False takes it away.

    Raises:
        InputError: no such class, an item that is labelled as another one or kept to measure on, or three
            examples are picked already.
    """
    key = key_of(state, label)
    name = state.class_names[key]
    examples = picked_now(state).get(key, ())
    if (item in examples) == on:
        return []
    if on:
        split = pool.test
        if item in state.evaluation or (split is not None and item in split.test):
            raise InputError("This item is kept to measure on; it cannot be an example.")
        if state.labels.get(item, name) != name:
            raise InputError(f"This item is labelled {state.labels[item]!r}, and no example of {name!r}.")
        if len(examples) >= MOST_EXAMPLES:
            raise InputError(
                f"Class {name!r} has {MOST_EXAMPLES} examples that people picked. Take one out first."
            )
    return [Event.example_picked(item, key, on)]


def picked_now(state: ProjectState) -> dict[str, tuple[int, ...]]:
    """Key of a class that stands -> picked items, without those that were labelled otherwise since."""
    examples: dict[str, tuple[int, ...]] = {}
    for key, items in state.examples.items():
        root = state.resolve(key)
        name = state.class_names.get(root)
        if name is not None:
            fits = tuple(i for i in items if state.labels.get(i, name) == name)
            examples[root] = (*examples.get(root, ()), *fits)
    return {key: items[:MOST_EXAMPLES] for key, items in examples.items() if items}
