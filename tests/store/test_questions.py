"""Several questions over one pool, as they are stored."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.store import YES_NO, Event, NewQuestion, Store


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "w.sqlite")
    yield made
    made.close()


def begun(store, **more):
    prints = np.arange(5, dtype=np.uint64)
    return store.create_project(
        "mail", {"name": "iris"}, {"seed": 1}, prints, {}, item_ids=list("abcde"), **more
    )


def test_a_project_is_listed_once_and_its_questions_share_what_is_the_projects(store):
    made = begun(store, question="topic", others=[NewQuestion("fraud", YES_NO, {"seed": 2})])
    fraud = store.questions(made.id)[1]
    assert [p.id for p in store.projects()] == [made.id]
    assert (fraud.question, fraud.kind, fraud.family, fraud.settings) == (
        "fraud",
        YES_NO,
        made.id,
        {"seed": 2},
    )
    store.update_project(fraud.id, name="letters")
    store.share_project(fraud.id, "ann", "private")
    for one in store.questions(made.id):
        assert (one.name, one.owner, one.n_items, one.access) == ("letters", "ann", 5, "private")
        assert store.project(one.id).fingerprints.tolist() == [0, 1, 2, 3, 4]
        assert store.item_ids(one.id) == list("abcde")


def test_a_question_is_added_renamed_and_put_aside(store):
    made = begun(store)
    added = store.add_question(made.id, NewQuestion("tone", "one class", {"seed": 1}))
    with pytest.raises(InputError, match="already"):
        store.add_question(added, NewQuestion("tone", "one class", {"seed": 1}))
    with pytest.raises(InputError, match="already"):
        store.change_question(added, name="label")
    store.change_question(added, name="mood", aside=True)
    assert [(q.question, q.aside) for q in store.questions(made.id)] == [("label", False), ("mood", True)]
    with pytest.raises(InputError, match="last question"):
        store.change_question(made.id, aside=True)


def test_events_of_all_questions_are_one_log(store):
    made = begun(store, others=[NewQuestion("fraud", YES_NO, {"seed": 2}, (Event.class_added("yes"),))])
    ids = [q.id for q in store.questions(made.id)]
    with store.recording(made.id) as recorder:
        for one in ids:
            recorder.add(Event("unsure", {"item": 3, "operation": "a"}, question=one))
        recorder.add(Event("skip", {"item": 5, "operation": "b", "questions": [1]}))
        recorder.add(Event.flag(6))
    with pytest.raises(RuntimeError), store.recording(made.id) as recorder:
        recorder.add(Event.skip(4))
        raise RuntimeError
    late = store.add_question(made.id, NewQuestion("late", YES_NO, {"seed": 2}, (Event.class_added("no"),)))
    log = store.news(made.id).events
    assert [(e.id, e.question) for e in log[:3]] == [(1, ids[1]), (2, ids[0]), (3, ids[1])]
    assert [(e.id, e.question) for e in log[3:]] == [(4, None), (5, None), (6, late)]
    # what is about items counts in the questions that it names, or in all, also those that come later
    assert [[e.id for e in store.events(one)] for one in (*ids, late)] == [[2, 5], [1, 3, 4, 5], [5, 6]]
    copy = store.duplicate_project(made.id, "second")
    assert store.news(copy.id).events == log


def test_a_project_is_archived_by_any_of_its_questions(store):
    made = begun(store, others=[NewQuestion("fraud", YES_NO, {"seed": 2}, (Event.class_added("yes"),))])
    for is_archived in (True, False):
        store.archive_project(store.questions(made.id)[1].id, is_archived)
        first, second = store.questions(made.id)
        assert first.settings.get("archived", False) is is_archived and "archived" not in second.settings


def test_a_copy_has_all_questions_and_a_deletion_takes_them(store):
    made = begun(store, others=[NewQuestion("fraud", YES_NO, {"seed": 2}, (Event.class_added("yes"),))])
    copy = store.duplicate_project(store.questions(made.id)[1].id, "second")
    assert [(q.name, q.question, q.kind) for q in store.questions(copy.id)] == [
        ("second", "label", "one class"),
        ("second", "fraud", YES_NO),
    ]
    assert store.events(store.questions(copy.id)[1].id)[0].payload["class"] == "yes"
    store.delete_project(made.id)
    assert store.questions(made.id) == []
    assert [p.id for p in store.projects()] == [copy.id]


def test_answers_are_counted_over_the_questions_that_are_asked(store):
    import numpy as np

    from workbench.sessions import Session

    session = Session.create(
        np.random.default_rng(0).normal(size=(40, 2))[[*range(40), 7, 9]],
        store=store,
        annotator="ann",
        questions=[("topic", ["a", "b"]), "fraud", "late"],
        classifier="logistic-regression",
        policy="margin",
    )
    session.items.label(0, "a")
    for name in ("fraud", "late"):
        for item in (1, 2):
            session.question(name).items.label(item, "yes")
    [record] = store.projects()
    assert store.n_answers([record.id]) == {record.id: (5, 3)}
    session.questions.archive("late")
    assert store.n_answers([record.id]) == {record.id: (3, 2)}
    fraud = session.question("fraud")
    assert "twins" not in fraud.settings and fraud.items.twins.n_groups == session.items.twins.n_groups == 2
