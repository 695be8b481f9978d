"""Starting a project: its settings, its pool while features are learnt, and the step to the Label page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import streamlit as st
from pydantic.fields import FieldInfo

from workbench.app.access import auditing, current, login, sharing
from workbench.app.serving.caching import computed, stamp
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import frame, widgets
from workbench.app.words.text import show_error, verbatim
from workbench.classifiers import CLASSIFIERS
from workbench.documents.checking import limit_of, settings_of
from workbench.documents.projects import WORTH, ProjectSettings
from workbench.errors import InputError
from workbench.policies import POLICIES
from workbench.policies.default_policy import DEFAULT_POLICY, suggested
from workbench.pools.features.vectors import is_vectors
from workbench.pools.pool import Kind
from workbench.progress import watched
from workbench.store import Store

if TYPE_CHECKING:
    from workbench.pools import Pool


NUMBER, WIDE_NUMBER = 170, 250
"""Widths of fields, in pixels; the first one where the title has at most `_SHORT` letters."""
_SHORT = 20
MOST_NUMBER = 2**31 - 1


@cache
def _installed(target: str) -> bool:
    try:
        return find_spec(target.partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False


def classifiers_for(kind: Kind, n_classes: int) -> list[str]:
    """Names of the classifiers that can take such a pool, in the registry's order."""
    return [
        e.name
        for e in CLASSIFIERS.values()
        if _installed(e.target)
        and not e.broken
        and (not e.image_only or kind == "image")
        and (not e.binary_only or n_classes <= 2)
    ]


def policies_for(classifier: str) -> list[str]:
    """Names of the policies this classifier can serve."""
    entry = CLASSIFIERS.get(classifier)
    latent = entry is None or entry.has_latent
    return [
        e.name
        for e in POLICIES.values()
        if e.kind == "policy" and not e.broken and (latent or "latent" not in e.needs)
    ]


def suggestion(policies: Sequence[str]) -> tuple[int, str]:
    """Policy to suggest among these, and a sentence that says why.

    Args:
        policies: names, in the order shown.

    Returns:
        Position of the policy to choose at first, and the sentence. That is the one that measured best where
        that was measured in full, else the default, or 0 where it is not among them; "" where nothing was
        measured with the default model.
    """
    advice = suggested()
    has_words = advice.of_default and advice.policy in policies
    words = f"{POLICIES[advice.policy].title} – {advice.words}." if has_words else ""
    first = advice.policy if has_words and advice.full else DEFAULT_POLICY
    return policies.index(first) if first in policies else 0, words


ALL = "all"


def choice(label: str, names: Sequence[str], registry: Any, *, key: str, first: str, help: str) -> str:
    """A classifier or policy: those recommended with a line each, and the rest under "all".

    Args:
        label: of the widget.
        names: that can be chosen.
        registry: of their entries.
        key: of the widgets.
        first: chosen at first.
        help: what it decides.
    """

    def title(name: str) -> str:
        return registry[name].title if name in registry else name

    few = [name for name in names if name in registry and registry[name].advice]
    few = few if first in few else [first, *few]
    rest = [name for name in names if name not in few]
    lines = [verbatim(registry[n].advice or registry[n].summary) if n in registry else "" for n in few]
    short_choice = st.radio(
        label,
        [*few, ALL] if rest else few,
        index=few.index(first),
        format_func=lambda name: f"All {len(names)} ..." if name == ALL else title(name),
        captions=[*lines, ""] if rest else lines,
        key=f"{key}-few",
        help=help,
    )
    if short_choice != ALL:
        return str(short_choice)
    full_choice = st.selectbox(f"{label}, all", names, index=names.index(first), format_func=title, key=key)
    if full_choice in registry:
        st.caption(verbatim(registry[full_choice].summary))
    return str(full_choice)


def settings(key: str, name: str, kind: Kind, n_classes: int, measures: bool = False) -> ProjectSettings:
    """Widgets for a project's settings.

    Args:
        key: makes widget keys unique.
        name: offered as the project's.
        kind: of the pool's items.
        n_classes: C, or 0 when not known.
        measures: whether some of the questions are kept for measuring, as the pool has no known classes.

    Returns:
        What is chosen now.
    """
    title = st.text_input("Name of the project", value=name, key=f"{key}-name", max_chars=80)
    left, right = st.columns(2)
    models = classifiers_for(kind, n_classes)
    with left:
        classifier = choice(
            "Model",
            models,
            CLASSIFIERS,
            key=f"{key}-model",
            first=models[0],
            help="Learns from your labels after every answer, in the background.",
        )
    policies = policies_for(classifier)
    best, why = suggestion(policies)
    with right:
        policy = choice(
            "Policy",
            policies,
            POLICIES,
            key=f"{key}-policy-{classifier}",
            first=policies[best],
            help="Decides which item you are asked about next.",
        )
    if POLICIES[policy].warning:
        st.warning(verbatim(POLICIES[policy].warning), icon=":material/warning:")
    with st.expander("More settings", key=f"{key}-more"):
        if why:
            st.caption(f"Measured: {verbatim(why)}")
        more = _more(key, measures)
    return ProjectSettings(name=title.strip() or None, classifier=classifier, policy=policy, **more)


def _more(key: str, measures: bool) -> dict[str, Any]:
    """Widgets for the settings that have a title, which are good as they are; what is chosen now."""
    values: dict[str, Any] = {}
    place = widgets.row(f"{key}-numbers", align="bottom")
    worth = st.session_state.get(f"{key}-worth", False)
    for name, setting in settings_of(ProjectSettings).items():
        if setting.title is None or (name == "evaluation_share" and not measures):
            continue
        text = setting.description or ""
        help = text[:1].upper() + text[1:]
        if setting.annotation is bool:
            values[name] = st.toggle(setting.title, setting.default, f"{key}-{name}", help)
            continue
        off = worth if name == "overlap" else name == "people" and not (worth or values["overlap"])
        values[name] = _number(place, f"{key}-{name}", setting, help=help, disabled=off)
    if st.toggle(
        "Second opinions where they are worth most",
        key=f"{key}-worth",
        help="Any item is asked about again, of another person, when one more answer to it says more than "
        "an answer about a new one: few where people are nearly always right, many where they differ.",
    ):
        values["overlap"] = WORTH
    return values


def _number(place: Any, key: str, setting: FieldInfo, **more: Any) -> float:
    """A field for a whole number, or for a share in per cent."""
    title, size = str(setting.title), NUMBER if len(str(setting.title)) <= _SHORT else WIDE_NUMBER
    if setting.annotation is int:
        least, most = limit_of(setting, "ge"), min(limit_of(setting, "le", "lt"), MOST_NUMBER)
        value = place.number_input(title, least, most, setting.default, 1, key=key, width=size, **more)
        return int(value)
    most = 100 if limit_of(setting, "lt") is None else 99
    percent = round(100 * setting.default)
    return place.number_input(f"{title},\u00a0%", 0, most, percent, 5, key=key, width=size, **more) / 100


# --------------------------------------------------------------------------- its pool

_OWNER = "opening"


def learns(options: Mapping[str, Any]) -> bool:
    """True if a pool with these options learns its features, which takes a while."""
    uses = options.get("columns")
    of = {use if isinstance(use, str) else use.get("use") for use in uses.values()} if uses else set()
    features = options.get("features")
    return features == "shapes" or is_vectors(features) or bool(of & {"text", "picture"})


def pool_of(path: str, options: Mapping[str, Any]) -> Pool | None:
    """The pool behind a file or a name, or None while it is read; the page then shows how far it is.

    Args:
        path: what `load_pool` takes.
        options: of `load_pool`.

    Raises:
        InputError: as `load_pool`.
    """
    key = _key(path, options)
    job = manager().get(_OWNER, key)
    if job is None:
        job = _submit(path, options, key)
    if job.status == "done":
        pool, job.result = job.result, None  # kept with the others that were looked at, and let go with them
        return computed(load, path, options, at=key, known=pool)
    if job.status == "failed" and not job.details:
        manager().forget(job)  # what was wrong may be mended meanwhile
        raise InputError(job.error)
    widgets.job_panel(job, "opening-job", height=64)
    if job.active:
        st.caption(
            "What is learnt is kept: cancelled and opened again, it reads the items once more and goes on "
            "with their features where it was."
        )
    elif st.button("Go on", key="opening-go-on", icon=":material/play_arrow:"):
        _submit(path, options, key)
        st.rerun()
    return None


def _key(path: str, options: Mapping[str, Any]) -> str:
    inputs = path, stamp(path, options), sorted(options.items()), login.key_of_page()
    return sha256(repr(inputs).encode()).hexdigest()[:16]


def _submit(path: str, options: Mapping[str, Any], key: str) -> Job:
    pool_options = dict(options)

    def work(job: Job) -> Any:
        with watched(job.report):
            return load(path, pool_options)

    return manager().submit(_OWNER, key, work, title="Opening", lane="open", limit=DAY)


def load(path: str, options: Mapping[str, Any]) -> Pool:
    """The pool behind a file or a name, read now."""
    from workbench.pools import load_pool

    return load_pool(path, **options)


# --------------------------------------------------------------------------- the start

EXISTING = "existing-project"
WAITING = "start-when-learnt"
"""State: source, settings and options of a start that waits for its features, and what it takes besides."""
NAMES = "names"


def start_learnt() -> bool:
    """Start what waits for its features; False while they are learnt, and the page shows how far they are."""
    source, settings, options, more = st.session_state[WAITING]
    try:
        pool = pool_of(source, options)
        if pool is None:
            return False
        st.session_state.pop(WAITING)
        with st.status("Opening", expanded=True) as stages:
            start(source, settings, options=options, stages=stages, pool=pool, **more)
    except InputError as error:
        st.session_state.pop(WAITING, None)
        show_error(error)
    return True


def start(
    source: Any,
    chosen: ProjectSettings,
    *,
    options: Mapping[str, Any] | None = None,
    stages: Any = None,
    again: bool = False,
    pool: Pool | None = None,
    then: Callable[[], None] = lambda: None,
    page: str = "label",
) -> None:
    """Create a project, make it the current one and go to one of its pages.

    Where there is a project on the same data already, nothing is made: the page asks which is meant. Features
    that are learnt are learnt first: the run ends, and the next one shows how far they are (`start_learnt`).

    Args:
        source: a name or a path that `load_pool` knows.
        chosen: settings.
        options: of `load_pool`.
        stages: an `st.status` that is told what is done now.
        again: make a second project on the same data.
        pool: what the source and the options gave, where it is at hand.
        then: called once the project is there, before its page comes.
        page: that comes then.
    """
    from workbench.app.data.cards import draw
    from workbench.pools import load_pool
    from workbench.sessions import Session

    pool_options = dict(options or {})
    if not again and (project := existing(source, pool_options)):
        st.session_state[EXISTING] = (project, source, chosen, pool_options, then, page)
        st.rerun()
    if pool is None and learns(pool_options):
        more = {"again": again, "then": then, "page": page}
        st.session_state[WAITING] = source, chosen, pool_options, more
        st.rerun()

    def now(words: str) -> None:
        if stages is not None:
            stages.update(label=words)

    try:
        auditing.room_for_project()
        if pool is None:
            now("Reading the data and learning what the model sees of it")
            pool = load_pool(source, **pool_options)
        now(f"Starting the project: {len(pool):,} items")
        if chosen.classes == () and chosen.guess:  # nobody named classes, and a guess does
            chosen = chosen.model_copy(update={"classes": None})
        settings: dict[str, Any] = vars(chosen) | {
            "source": source,
            "owner": login.key_of_page(),
            "name": _unused(chosen.name),
            "pool_options": pool_options,
        }
        try:
            session = Session.create(pool, **settings)
        except InputError:
            if NAMES not in (chosen.guess or ()):
                raise
            # names that tell the items nothing are no reason not to start
            settings["guess"] = tuple(guess for guess in chosen.guess or () if guess != NAMES)
            session = Session.create(pool, **settings)
        if settings["guess"]:
            now("Beginning with the guess")
            session.refit()  # so that the first question is chosen already
        draw(session.id, pool)
    except InputError as error:
        if stages is not None:
            stages.update(label="Not started", state="error")
            raise
        show_error(error)
        return
    auditing.record("made", session.id, session.project.name)
    current.keep(session)
    current.choose(session.id)
    then()
    frame.go(page)


def _unused(name: str | None) -> str | None:
    """A project's name, with a number behind it where there is a project of that name."""
    if name is None:
        return None
    names = {record.name for record in sharing.visible(Store.open().projects())}
    numbered = (f"{name[:75]} {n}" for n in range(2, len(names) + 3))
    return name if name not in names else next(candidate for candidate in numbered if candidate not in names)


def existing(source: Any, options: Mapping[str, Any]) -> str | None:
    """The project on the same data that was used last, or None."""
    same = [
        record
        for record in sharing.visible(Store.open().projects())
        if record.pool["name"] == source
        and dict(record.pool.get("options") or {}) == options
        and not record.archived
    ]
    return max(same, key=lambda record: record.changed).id if same else None


def class_names(text: str) -> tuple[str, ...]:
    """Class names as a person typed them: one a line, or separated by commas on one line.

    Raises:
        InputError: fewer than two, or the same one twice.
    """
    parts: Sequence[str] = text.splitlines() if "\n" in text.strip() else text.split(",")
    names = tuple(part.strip() for part in parts if part.strip())
    if len(names) < 2:
        raise InputError("Name at least two classes, one a line.")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"The class {twice!r} is named twice.")
    return names
