"""Two people who change one thing at the same moment: the second one goes on from what the first one left."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.sessions import Session
from workbench.sessions.project import OpenProject
from workbench.store import Store

Start = Callable[..., Session]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Act of somebody else just before the next transaction of a project begins."""

    def before(act: Callable[[], Any]) -> None:
        plain, acts = OpenProject.together, [act]

        def together(self: OpenProject) -> AbstractContextManager[Any]:
            if acts:
                acts.pop()()
            return plain(self)

        monkeypatch.setattr(OpenProject, "together", together)

    return before


def test_of_two_who_change_the_model_both_are_heard(
    start: Start, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    ann = start(classifier="logistic-regression", policy="margin")
    bob = ann.as_annotator("bob")
    meanwhile(lambda: bob.change_model(options={"C": 2.0}))
    event = ann.change_model(policy="entropy")
    settings = ann.settings
    assert event is not None and event.annotator == ann.annotator
    assert (settings["policy"], settings["options"]) == ("entropy", {"C": 2.0})
    assert [e.kind for e in ann.log.events].count("model-changed") == 2


def test_who_changes_what_somebody_else_has_just_changed_so_changes_nothing(
    start: Start, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    ann = start(classifier="logistic-regression", policy="margin")
    bob = ann.as_annotator("bob")
    meanwhile(lambda: bob.change_model(policy="entropy"))
    assert ann.change_model(policy="entropy") is None and ann.settings["policy"] == "entropy"


def test_of_two_who_bring_predictions_both_are_kept(
    store: Store, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    ann = Session.create(
        frame, name="two", classes=["cat", "dog"], classifier="large-margin", store=store, annotator="ann"
    )
    bob = ann.as_annotator("bob")
    said: list[tuple[int, str, float | None]] = [(item, ("cat", "dog")[item % 2], 0.9) for item in range(60)]
    meanwhile(lambda: bob.guesses.add("file:bobs.csv", said))
    ann.guesses.add("file:anns.csv", said)
    assert [source.source for source in ann.guesses.now()] == ["file:bobs.csv", "file:anns.csv"]
    assert all(source.guess is not None for source in ann.guesses.now())


def test_a_file_that_corrects_decides_also_where_somebody_labels_meanwhile(
    start: Start, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    ann = start()
    bob, item = ann.as_annotator("bob"), int(ann.pool.trainable[0])
    meanwhile(lambda: bob.items.label(item, "virginica"))
    ann.items.import_labels([(item, "setosa")], "f.csv", corrects=True)
    assert ann.state.labels[item] == "setosa" and item not in ann.state.undecided


def test_archiving_a_project_keeps_what_is_changed_meanwhile(
    start: Start, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_, plain = start().id, store._write
    acts = [lambda: store.update_project(id_, settings={"people": 7})]

    @contextmanager
    def write() -> Iterator[Any]:
        if acts:
            acts.pop()()
        with plain() as connection:
            yield connection

    monkeypatch.setattr(store, "_write", write)
    store.archive_project(id_)
    record = store.project(id_)
    assert record.archived and record.settings["people"] == 7 and "classifier" in record.settings
    store.archive_project(id_, False)
    assert not store.project(id_).archived
