"""Instructions that people read before they label, in versions, and examples of classes."""

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, column_moments
from workbench.errors import InputError
from workbench.reading import cut
from workbench.sessions.instruction_texts import MOST_EXAMPLES, Picture, as_kept, cleaned, picked_now
from workbench.sessions.open_session import OpenSession
from workbench.sessions.part import Part
from workbench.store import Event, Instructions

_AT_MOST = 2_000  # labelled items of a class that its centre is made of


class Example(NamedTuple):
    """An item that shows what a class is.

    Attributes:
        item: index into the pool.
        picked: by a person; else it is the nearest to the middle of the class.
    """

    item: int
    picked: bool


class InstructionSheet(Part):
    """Writing and reading instructions, and examples of classes: `Session.instructions`."""

    @property
    def latest(self) -> Instructions | None:
        """The version in force; None where there are none."""
        versions = self._session.state.instructions
        return versions[-1] if versions and versions[-1].text else None

    def picture(self, name: str) -> Picture:
        """A picture of the instructions.

        Raises:
            InputError: there is none of this name.
        """
        event = self._session.state.pictures.get(name)
        if event is None:
            raise InputError(f"There is no picture {cut(name)}.")
        return Picture(name, str(event.payload["media"]), base64.b64decode(event.payload["data"]))

    def write(
        self, text: str, pictures: Mapping[str, bytes] | None = None, *, after: int | None = None
    ) -> Event | None:
        """Tell people what to look for; a new version of the instructions.

        Args:
            text: Markdown of at most 20,000 characters; "" takes the instructions away. A picture is
                `![words](NAME)`, NAME a key of `pictures`, or `picture:NAME` for one that is kept.
            pictures: files by the names that the text has for them; those it does not name are left out.
            after: the version that was edited; None takes whatever is in force.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: a text that is too long, a picture that is missing, none or too large, or another
                version was written meanwhile.
        """
        kept_pictures = {name: as_kept(data, name) for name, data in (pictures or {}).items() if name in text}
        content = cleaned(text, kept_pictures)
        return self._do(
            "write", text=content, value=kept_pictures, version=-1 if after is None else after
        ).event

    def read(self, version: int | None = None) -> Event | None:
        """Say that the annotator has read the instructions.

        Args:
            version: that they saw; the one in force unless given.

        Returns:
            The recorded event, or None where they had read them.
        """
        return self._do("read", version=-1 if version is None else version).event

    def pick(self, item: int, label: str, on: bool = True) -> Event | None:
        """Show an item as an example of a class, or no longer.

        Args:
            item: index into the pool.
            label: name of the class.
            on: False takes it away.

        Returns:
            The recorded event, or None where nothing changes.

        Raises:
            InputError: no such item or class, an item that is labelled as another class or kept to measure
                on, or three examples are picked already.
        """
        return self._do("example", item=item, label=label, on=on).event


def examples_of_all(session: OpenSession) -> dict[str, list[Example]]:
    """Two or three items that show what a class is, of every class that has any, in their shown order.

    They are picked ones, else those nearest to the middle of the class. What the
    session's annotator is still to be asked about without seeing what others said is left out.

    Args:
        session: of the project.
    """
    state = session.state
    picks = picked_now(state)
    blind = session._questions.unseen(state, session.annotator)
    by_class: dict[int, list[int]] = {}
    for item, code in state.codes.items():
        if item not in state.undecided and item not in state.flagged and item not in blind:
            by_class.setdefault(code, []).append(item)
    labelled = [i for items in by_class.values() for i in items]
    scale = _scale(session.pool.features, [] if session.pool.common_scale else labelled)
    code_of = {name: code for code, name in enumerate(state.classes)}
    catalogue: dict[str, list[Example]] = {}
    for name in state.shown_classes:
        code = code_of[name]
        examples = [Example(item, True) for item in picks.get(state.keys[code], ()) if item not in blind]
        if len(examples) < 2:
            near = _central(session.pool.features, by_class.get(code, []), scale)
            picked_items = {example.item for example in examples}
            examples += [Example(i, False) for i in near if i not in picked_items][
                : MOST_EXAMPLES - len(examples)
            ]
        if examples:
            catalogue[name] = examples
    return catalogue


def _rows(features: Array, items: Sequence[int]) -> Array:
    return np.asarray(features[np.asarray(items, dtype=np.int64)], dtype=np.float64)


def _spread(items: Sequence[int]) -> Sequence[int]:
    """At most so many of the items, spread over all of them."""
    return items[:: max(1, -(-len(items) // _AT_MOST))]


def _scale(features: Array, items: Sequence[int]) -> Array:
    """[D] what each feature is divided by, so that one in large units does not decide alone."""
    if not items:
        return np.ones(int(features.shape[1]))
    _, deviation = column_moments(_rows(features, _spread(items)))
    return np.where(deviation > 0, deviation, 1.0)


def _central(features: Array, items: Sequence[int], scale: Array) -> list[int]:
    """A few items nearest to the mean of all, nearest first; equally near ones in the order of the pool."""
    if not items:
        return []
    sample = sorted(_spread(items))
    X = _rows(features, sample) / scale
    distance = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    return [sample[i] for i in np.argsort(distance, kind="stable")[:MOST_EXAMPLES]]
