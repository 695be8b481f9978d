"""State of the instructions: versions, who read which, pictures, examples of classes."""

from __future__ import annotations

from workbench.store.events import Event
from workbench.store.project_state import Instructions


class InstructionFold:
    """Versions of the instructions, their readers, pictures, examples; what a state holds never changes."""

    def __init__(self) -> None:
        self.versions: tuple[Instructions, ...] = ()
        self.pictures: dict[str, Event] = {}
        # person -> (event, version) of each version they read
        self.read: dict[str, tuple[tuple[int, int], ...]] = {}
        self.examples: dict[str, tuple[int, ...]] = {}

    def apply(self, event: Event) -> None:
        """One more event; those about something else change nothing."""
        payload = event.payload
        if event.kind == "instructions-written":
            version = len(self.versions) + 1
            instructions = Instructions(version, str(payload["text"]), event.annotator, event.time, event.id)
            self.versions = (*self.versions, instructions)
            # whoever writes a version knows it
            self._reads(event, version)
        elif event.kind == "instructions-read":
            self._reads(event, min(int(payload["version"]), len(self.versions)))
        elif event.kind == "picture-kept":
            self.pictures = {**self.pictures, str(payload["picture"]): event}
        elif event.kind == "example-picked":
            item, key = int(payload["item"]), str(payload["class"])
            # an item is an example of one class at most
            self.examples = {k: tuple(i for i in items if i != item) for k, items in self.examples.items()}
            if payload["on"]:
                self.examples[key] = (*self.examples.get(key, ()), item)

    def _reads(self, event: Event, version: int) -> None:
        readings = (*self.read.get(event.annotator, ()), (event.id, version))
        self.read = {**self.read, event.annotator: readings}
