"""Pools that a comparison can be made on, and the guesses that its runs can begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench.app.access import sharing
from workbench.app.serving.caching import computed, stamp
from workbench.errors import InputError
from workbench.pools.formats import endings_of
from workbench.pools.formats.files import File
from workbench.store import Store

if TYPE_CHECKING:
    from workbench.pools.pool import Pool


def title_of_pool(name: str) -> str:
    """Name of a comparison's pool, for people."""
    from workbench.pools import POOLS
    from workbench.sessions.spec import answered_title, is_answered

    if is_answered(name):
        return answered_title(name)
    return POOLS[name].title if name in POOLS else name.replace("\\", "/").rpartition("/")[2]


def is_of_images(pool: Mapping[str, Any]) -> bool:
    """True if a stored {"name", "options"} is of an uploaded file of images, as far as that tells."""
    name, options = File(b"", str(pool["name"])), pool.get("options") or {}
    uses = [u.get("use") for u in (options.get("columns") or {}).values() if isinstance(u, Mapping)]
    if "picture" in uses:
        return True
    images, tables = (name.plain_name.endswith(endings_of(kind)) for kind in ("image", "table"))
    return images and (not tables or "features" in options)


@dataclass(frozen=True)
class Source:
    """A pool that runs can be made on.

    Attributes:
        title: for people.
        pool: a name or path that `load_pool` knows.
        options: of `load_pool`.
        kind: of the pool, or None before it is opened.
        n_classes: how many classes it has.
        n_asked: items that can be asked about after the first labels, of which a run has one a class.
        guesses: what a run can begin with: "names" of texts, and columns that are guesses of the project.
    """

    title: str
    pool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    n_classes: int = 0
    n_asked: int = 0
    guesses: tuple[str, ...] = ()

    @property
    def of_images(self) -> bool:
        """True if its items are images, as far as that is told without opening it."""
        if self.kind is None:
            return is_of_images({"name": self.pool, "options": self.options})
        return self.kind == "image"

    def opened(self) -> Source:
        """With what only the pool itself knows; read once.

        Raises:
            InputError: it cannot be opened, or no class of an item is known.
        """
        if self.kind is not None:
            return self
        return computed(_opened, self, at=stamp(self.pool, self.options))


def _opened(source: Source) -> Source:
    from workbench.guesses import names_say_something, names_speak
    from workbench.sessions.spec import answered_pool, is_answered

    load = answered_pool if is_answered(source.pool) else _loaded
    pool = load(source.pool, source.options)
    if not pool.has_truth:
        raise InputError(
            f"The classes of {source.title} are not known, so nothing can answer for a person. "
            "Choose a pool with a column of classes."
        )
    assert pool.truth is not None
    n_classes, n_known = len(pool.classes), int((pool.truth >= 0).sum())
    guesses = [source for source in source.guesses if source != "names"]
    telling = sum(names_say_something(pool.classes)) >= 2
    if names_speak(pool) and (telling or pool.kind != "text"):
        guesses.insert(0, "names")
    return replace(
        source,
        kind=pool.kind,
        n_classes=n_classes,
        n_asked=asked_of(n_known, n_classes),
        guesses=tuple(guesses),
    )


def _loaded(name: str, options: Mapping[str, Any]) -> Pool:
    from workbench.pools import load_pool

    return load_pool(name, **options)


def asked_of(n_items: int, n_classes: int) -> int:
    """Number of items that can be asked about: a fifth is for testing, and one a class is given."""
    return max(1, int(0.8 * n_items) - n_classes)


def sources(project: str | None = None) -> dict[str, Source]:
    """Every pool a person has, by key; an uploaded file belongs to a project.

    That of the open project is first; then bundled ones, known sets on this machine, all projects'.

    Args:
        project: id of the open one, or of one of its further questions.
    """
    from workbench.pools import POOLS, present_sets

    store = Store.open()
    summary = None if project is None else store.summary(project)
    family = "" if summary is None else summary.family

    bundled = {
        e.name: Source(e.title, e.name, {}, e.kind, e.n_classes, asked_of(e.n_items, e.n_classes))
        for e in POOLS.values()
    }
    known = {}
    for e in present_sets():
        about, kind = (f"{e.n_items:,} images", "image") if e.group == "images" else (e.group, "table")
        title, n_asked = f"{e.name.replace('_', ' ')} ({about})", asked_of(e.n_items, e.n_classes)
        known[e.full_name] = Source(title, e.full_name, {}, kind, e.n_classes, n_asked)
    questions = {} if project is None else answered_questions(project)
    opened, own_sources = {}, dict[str, Source]()
    # the open one first: of projects on one pool the first is listed
    for record in sorted(sharing.visible(store.projects()), key=lambda record: record.id != family):
        name, options = str(record.pool["name"]), dict(record.pool.get("options", {}))
        if name in POOLS and not options:
            key, source = name, bundled[name]
        else:
            guesses = record.settings.get("guesses") or ()
            columns = [str(entry["source"]) for entry in guesses if str(entry["source"]).startswith("column")]
            key = f"project:{record.id}"
            source = Source(f"{record.name} (your project)", name, options, guesses=tuple(columns))
        if record.id == family and not (questions and record.settings.get("test") is None):
            opened = {key: source}
        elif (name, options) not in [(entry.pool, entry.options) for entry in own_sources.values()]:
            own_sources.setdefault(key, source)
    # what the open project's own file knows by itself comes before its questions
    first = opened if f"project:{project}" in opened else {}
    return first | questions | opened | bundled | known | own_sources


def answered_questions(project: str) -> dict[str, Source]:
    """The questions of a project that enough items are answered of, by key: their answers are the classes.

    The one that the pages show is the first.

    Args:
        project: id of one of its questions.
    """
    from workbench.sessions.spec import FEWEST, answered_source

    store, sources = Store.open(), {}
    for record in sorted(store.questions(project), key=lambda record: record.id != project):
        n = store.n_labelled(record)
        if n >= FEWEST and record.settings.get("test") is None:
            name, options = answered_source(record.id, store)
            words = f"{record.name}: {record.question} ({n:,} answers so far)"
            sources[name] = Source(words, name, options, guesses=("names",))
    return sources


def guess_title(source: str) -> str:
    """A guess's name for people: "names" and "column:llm_label" as one reads them."""
    if source == "names":
        return "Class names"
    return source.partition(":")[2].partition(":")[0]
