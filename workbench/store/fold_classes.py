"""State of the classes: names, merges, removals, descriptions, their order."""

from __future__ import annotations

from workbench.store.events import ABOUT, Event


class ClassFold:
    """The classes that events name and change; keys are what labels are stored under."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.merged: dict[str, str] = {}
        self.removed: set[str] = set()
        self.about: dict[str, dict[str, str]] = {}
        self.order: tuple[str, ...] = ()

    def apply(self, event: Event) -> None:
        """One more event that changes classes."""
        if event.kind == "classes-ordered":
            self.order = tuple(map(str, event.payload["classes"]))
            return
        key = str(event.payload["class"])
        if event.kind == "class-added":
            if key in self.removed:  # as if it had never been there
                self.removed.discard(key)
                self.names[key] = str(event.payload["name"])
                self.about = {k: details for k, details in self.about.items() if k != key}
            self.names.setdefault(key, str(event.payload["name"]))
        elif event.kind == "class-removed":
            self.removed.add(key)
        elif event.kind == "class-described":
            description = {k: str(event.payload[k]) for k in ABOUT if k in event.payload}
            about = {**self.about.get(key, {}), **description}
            self.about = {**self.about, key: {k: v for k, v in about.items() if v}}
        elif event.kind == "class-renamed":
            self.names[key] = str(event.payload["name"])
        else:
            into = str(event.payload["into"])
            self.names.setdefault(key, key)
            self.names.setdefault(into, into)
            while into in self.merged:
                into = self.merged[into]
            if into != key:
                self.merged.setdefault(key, into)

    def root(self, key: str) -> str:
        """The class that a class was merged into in the end, or itself."""
        while key in self.merged:
            key = self.merged[key]
        return key

    def standing(self, gone: frozenset[str]) -> dict[str, str]:
        """Key -> name of the classes that are neither merged into another nor gone."""
        return {k: n for k, n in self.names.items() if k not in self.merged and k not in gone}

    def code_of(self, gone: frozenset[str]) -> dict[str, int]:
        """Key -> code of every class that stands, merged ones among them; `gone` are removed for good."""
        position = {key: code for code, key in enumerate(self.standing(gone))}
        roots = {key: self.root(key) for key in self.names}
        return {key: position[root] for key, root in roots.items() if root in position}


def distinct_names(names: dict[str, str]) -> dict[str, str]:
    """The names of classes, each once: an undone renaming may give one back that another took meanwhile."""
    if len(set(names.values())) == len(names):
        return names
    titles: set[str] = set()
    unique_names = {}
    for key, name in names.items():
        title, number = name, 2
        while title in titles:
            title, number = f"{name} ({number})", number + 1
        unique_names[key] = title
        titles.add(title)
    return unique_names
