"""Events of reading the instructions and of examples of classes, as a function of the state."""

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.taxonomy import key_of
from workbench.store import Event, ProjectState

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
