"""People whom a file names: each is one person, whatever the file is called, also where they label here."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchange.test_label_studio_tasks import annotation, at, by
from workbench.cli import labelling
from workbench.exchange.imports import import_labels, plan_import
from workbench.exchange.labels import export_labels
from workbench.exchange.rows import label_table
from workbench.sessions import Operation, Session
from workbench.sessions.people import training_of
from workbench.store import FileVote

ANN, BEN = "ann@example.org", "ben@example.org"


def made(person: Any, second: int) -> dict[str, Any]:
    """Origin of an annotation as Label Studio exports it with accounts."""
    return by({"id": 7, "email": person} if isinstance(person, str) else person, second)


def two_annotators(items: list[int], one: Any, other: Any) -> list[dict[str, Any]]:
    """Tasks of which both answered the first four, in two ways on the first; one has a cancelled answer."""
    choices = ("setosa", "versicolor")
    tasks = []
    for n, item in enumerate(items[:8]):
        annotations = [annotation(choices[n % 2], **made(one, n))]
        if n < 4:
            annotations.append(annotation(choices[1 if n == 0 else n % 2], **made(other, 10 + n)))
        tasks.append({"id": 40 + n, "data": {"item": item}, "annotations": annotations})
    cancelled = annotation("setosa", was_cancelled=True, **made(other, 30))
    return [*tasks, {"id": 60, "data": {"item": items[8]}, "annotations": [cancelled]}]


def take(session: Session, tasks: list[dict[str, Any]], name: str) -> Any:
    data = json.dumps(tasks).encode()
    plan = plan_import(data, session, "label-studio")
    return session.items.import_labels(plan.labels[session.question_name], name)


def figures(session: Session) -> dict[str, tuple[int, int]]:
    """Person -> labels, and of these the shared ones."""
    return {person.name: (person.n_labels, person.n_shared) for person in session.people.report().people}


def test_who_is_in_two_exports_of_one_project_is_one_person(start: Callable[..., Session]) -> None:
    session = start()
    items = session.pool.trainable.tolist()
    tasks = two_annotators(items, 1, 2)
    assert take(session, tasks, "project-1-at-2026-11-25.json") is not None
    first, second = (f"file project-1-at-2026-11-25.json / {number}" for number in (1, 2))
    truth = {first: (8, 4), second: (4, 4)}
    words = session.people.report().words
    assert figures(session) == truth and words.startswith("2 people, 4 items")
    assert session.state.undecided == {items[0]} and items[8] not in session.state.votes
    # Label Studio names each export by its moment: what is in both says nothing new
    assert take(session, tasks, "project-1-at-2026-11-29.json") is None
    assert figures(session) == truth
    # since then they agree on the first, one changed their mind about the second, and one answered one more
    tasks[0]["annotations"][0] = annotation("versicolor", **made(1, 40))
    tasks[1]["annotations"][1] = annotation("setosa", **made(2, 11))
    tasks[8]["annotations"].append(annotation("setosa", **made(2, 41)))
    assert take(session, tasks, "project-1-at-2026-11-29.json") is not None
    assert figures(session) == {first: (8, 4), second: (5, 4)}
    assert session.state.undecided == {items[1]} and session.state.labels[items[0]] == "versicolor"
    assert all(len(votes) < 3 for votes in session.state.votes.values())
    session.undo()
    assert session.people.report().words == words and figures(session) == truth


def test_numbers_of_two_servers_are_not_one_person(start: Callable[..., Session]) -> None:
    session = start()
    items = session.pool.trainable.tolist()
    take(session, two_annotators(items, 1, 2), "here.json")
    elsewhere = [{"data": {"item": items[0]}, "annotations": [annotation("setosa", **made(1, 50))]}]
    assert take(session, elsewhere, "there.json") is not None
    assert set(session.state.votes[items[0]]) == {
        "file here.json / 1",
        "file here.json / 2",
        "file there.json / 1",
    }


@pytest.mark.parametrize("first", ["file", "desk"])
def test_a_member_whom_a_file_names_is_one_person(start: Callable[..., Session], first: str) -> None:
    session = start(overlap=1.0, people=3, twins=False)
    items = session.pool.trainable.tolist()
    ann = session.as_annotator(ANN)

    def desk() -> None:
        ann.items.label(items[0], "versicolor")
        ann.items.label(items[1], "versicolor")
        ann.items.label(items[9], "virginica")

    def file() -> None:
        take(session, two_annotators(items, ANN, BEN), "ls.json")

    for step in (file, desk) if first == "file" else (desk, file):
        step()
    # of the two answers to each of the first items the newest counts, which is the desk's
    assert session.state.votes[items[0]].keys() == {ANN, f"file ls.json / {BEN}"}
    assert session.state.undecided == set() and session.state.labels[items[0]] == "versicolor"
    assert session.state.votes[items[1]].keys() == {ANN, f"file ls.json / {BEN}"}
    assert figures(session) == {ANN: (9, 4), f"file ls.json / {BEN}": (4, 4)}
    assert session.people.report().words.startswith("2 people, 4 items")
    assert set(training_of(session.state)) >= set(items[:8])
    # nobody is asked again what the file has of them
    wanted = ann._questions.wanted
    assert not any(wanted(item, ANN, session.state) for item in items[:8])
    assert all(wanted(item, "eve", session.state) for item in items[:8])
    # who cannot tell any more takes back what the file has of them
    ann.items._event("correct", item=items[1], label="")
    assert session.state.votes[items[1]].keys() == {f"file ls.json / {BEN}"}
    assert take(session, two_annotators(items, ANN, BEN), "again.json") is not None


def test_a_newer_answer_in_a_file_counts_and_an_older_truth_decides(
    start: Callable[..., Session],
) -> None:
    session = start()
    item, other = session.pool.trainable[:2].tolist()
    ann = session.as_annotator(ANN)
    ann.items.label([item, other], "setosa")
    session.as_annotator("bob").items.label(other, "setosa")
    rater = f"file ls.json / {ANN}"
    session.items.import_labels(
        [FileVote(item, "virginica", ANN, "2999-01-01T00:00:00.000+00:00")], "ls.json"
    )
    assert {key: vote.key for key, vote in session.state.votes[item].items()} == {rater: "virginica"}
    ann.items.label(item, "versicolor")  # whatever the clock of another program says
    assert {key: vote.key for key, vote in session.state.votes[item].items()} == {ANN: "versicolor"}
    session.items.import_labels([FileVote(other, "virginica", ANN, at(1), True)], "ls.json")
    assert session.state.labels[other] == "virginica" and not session.state.undecided
    assert figures(session) == {ANN: (2, 1), "bob": (1, 1)}
    # who labels it after the file has the last word, and what came before the file stays behind
    ann.items.label(other, "versicolor")
    assert session.state.labels[other] == "versicolor" and not session.state.undecided
    assert figures(session) == {ANN: (2, 1), "bob": (1, 1)}


def test_what_went_to_label_studio_comes_back_as_its_own_persons(start: Callable[..., Session]) -> None:
    session = start()
    items = session.pool.trainable[:3].tolist()
    session.as_annotator(ANN).items.label(items, "setosa")
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "label-studio"))) as archive:
        tasks = json.loads(archive.read("tasks.json"))
    for task in tasks:  # as Label Studio gives back what it took in, in the name of who imported it
        task["annotations"][0] |= {**by(1, 5), "lead_time": None, "ground_truth": True}
    tasks[0]["annotations"].append(annotation("virginica", **by(2, 6)))
    before = session.state.votes[items[1]]
    assert take(session, tasks, "ls.json") is not None
    assert session.state.votes[items[0]].keys() == {ANN, "file ls.json / 2"}
    assert session.state.undecided == {items[0]} and session.state.votes[items[1]] == before
    assert figures(session) == {ANN: (3, 1), "file ls.json / 2": (1, 1)}


def test_an_address_names_a_person_before_a_number(start: Callable[..., Session]) -> None:
    session = start()
    item = session.pool.trainable[0].item()
    task = {"data": {"item": item}, "annotations": [annotation("setosa", **made(ANN, 1))]}
    labels = import_labels(json.dumps([task]).encode(), session.pool, "label-studio", session.classes)
    assert labels == [FileVote(item, "setosa", ANN, at(1))]


def test_who_has_read_the_instructions_is_told_of_people_who_labelled_here(
    start: Callable[..., Session], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    items = session.pool.trainable.tolist()
    session.instructions.write("Look twice.")
    session.items.label(items[9], "setosa")
    take(session, two_annotators(items, 1, 2), "ls.json")
    monkeypatch.setattr(labelling, "project_named", lambda name: (session.project, session.store))
    labelling.instructions("any")
    assert "1 of 1 who labelled have read" in capsys.readouterr().out
    assert label_table(session)


def test_a_table_of_label_studio_names_the_same_people_as_its_tasks(start: Callable[..., Session]) -> None:
    session = start()
    tasks = two_annotators(session.pool.trainable.tolist(), 1, 2)
    take(session, tasks, "tasks.json")
    truth = figures(session)
    # the moment of the last change, which tasks do not go by, is another one
    lines = [
        f"{task['data']['item']},{annotation['result'][0]['value']['choices'][0]},{number},"
        f"{annotation['completed_by']},{annotation['created_at']},2026-11-25T15:15:00.9Z"
        for task in tasks[:8]
        for number, annotation in enumerate(task["annotations"])
    ]
    table = "\n".join(["item,topic,annotation_id,annotator,created_at,updated_at", *lines])
    labels = import_labels(table.encode(), session.pool, "csv", session.classes, column="topic")
    assert session.items.import_labels(labels, "table.csv") is None and figures(session) == truth


def test_a_file_without_times_does_not_take_back_what_its_person_said_here_since(
    start: Callable[..., Session],
) -> None:
    session = start()
    item, other = session.pool.trainable[:2].tolist()
    labels = [FileVote(item, "setosa", ANN), FileVote(other, "setosa", ANN)]
    assert session.items.import_labels(labels, "ls.json") is not None
    session.as_annotator(ANN).items.label(item, "virginica")
    assert session.items.import_labels(labels, "ls.json") is None
    # another's vote of the same item is news, and hers is still what she said before
    assert session.items.import_labels([*labels, FileVote(item, "setosa", BEN)], "ls.json") is not None
    assert session.state.votes[item][ANN].key == "virginica"
    assert session.state.votes[item].keys() == {ANN, f"file ls.json / {BEN}"}


def test_who_is_named_by_an_address_is_one_person_in_files_without_a_common_moment(
    start: Callable[..., Session],
) -> None:
    session = start()
    item, other = session.pool.trainable[:2].tolist()
    session.items.import_labels([FileVote(item, "setosa", ANN, "2026-11-20T10:00:00.000+00:00")], "one.json")
    again = [
        FileVote(item, "versicolor", ANN, "2026-11-22T10:00:00.000+00:00"),
        FileVote(other, "setosa", ANN, "2026-11-22T10:01:00.000+00:00"),
    ]
    session.items.import_labels(again, "two.json")
    assert len(session.state.votes[item]) == 1 and session.state.labels[item] == "versicolor"
    assert [(person.n_labels, person.n_shared) for person in session.people.report().people] == [(2, 0)]


def test_who_logs_in_with_the_address_that_a_file_names_is_one_person(start: Callable[..., Session]) -> None:
    session = start()
    item, other = session.pool.trainable[:2].tolist()
    name = session.store.people.known_as("https://id sub-1", "Ann Lee", "Ann@Example.org", "ann@example.org")
    assert name == "Ann Lee"
    votes = [FileVote(i, "setosa", "Ann@Example.org", "2026-11-20T10:00:00.000+00:00") for i in (item, other)]
    session.items.import_labels(votes, "ls.json")
    session.as_annotator(name).items.label(item, "virginica")
    assert session.state.votes[item].keys() == {"Ann Lee"}
    report = session.people.report()
    assert [(person.name, person.n_labels, person.n_shared) for person in report.people] == [
        ("Ann Lee", 2, 0)
    ]


def test_who_answered_in_a_file_may_correct_it_here_and_is_called_alike_in_exports(
    start: Callable[..., Session],
) -> None:
    session = start(overlap=1.0, people=3, twins=False)
    items = session.pool.trainable.tolist()
    take(session, two_annotators(items, ANN, BEN), "ls.json")
    ann = session.as_annotator(ANN)
    ann.items.label(items[9], "virginica")
    rows = {row["item"]: row["label_by_person"] for row in label_table(session)}
    # as in the report on people: whoever does something here by the name in the file is one person
    assert rows[items[1]] == {ANN: "versicolor", f"file ls.json / {BEN}": "versicolor"}
    assert ann.apply([Operation("a", "correct", item=items[1], label="virginica")])[0].status == "saved"
    assert session.state.votes[items[1]][ANN].key == "virginica"
    assert f"file ls.json / {ANN}" not in session.state.votes[items[1]]
