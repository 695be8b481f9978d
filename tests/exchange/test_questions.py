"""Several questions out and in: bundles, a column for each, several labels in a cell."""

import csv
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.exchange import of_other_programs as others
from tests.pools.features.test_shapes import photos
from tests.pools.images.test_images import zipped
from workbench.app.words import acts
from workbench.errors import InputError
from workbench.exchange.answers import format_of
from workbench.exchange.imports import plan_import, plan_of, take_import
from workbench.exchange.labels import FORMATS, export_labels
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.exchange.questions import CARRIED_BY, answers_several, read_answers
from workbench.exchange.rows import label_table
from workbench.pools import load_pool
from workbench.sessions import Operation, Session
from workbench.sessions.operations import SKIPPED
from workbench.store import FileVote, Store
from workbench.studies.tasks import Report, labels_taken_in

TOPIC = ("topic", ["refund", "delivery"])


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "w.sqlite")
    yield made
    made.close()


def begun(store, questions=(TOPIC, "fraud", "urgent"), name="mail"):
    texts = [f"letter number {i} about {'money' if i % 2 else 'parcels'}" for i in range(30)]
    plain = {"classifier": "logistic-regression", "policy": "margin"}
    return Session.create(texts, name=name, questions=questions, store=store, annotator="ann", **plain)


def answered(store, **more):
    session = begun(store, **more)
    for item in range(6):
        said = {"topic": "refund" if item % 2 else "delivery", "fraud": item % 3 == 0}
        session.tell(_ask(session, item), said)
    session.question("urgent").items.label(2, "yes")
    return session


def _ask(session, item):
    session.items.want([item])
    return session.ask()[0]


def test_a_bundle_brings_all_questions_with_their_answers_and_fits(store, tmp_path):
    session = answered(store)
    session.questions.refit()
    session.questions.archive("urgent")
    write_project_bundle(tmp_path / "b", session.question("fraud"))
    made = open_bundle(tmp_path / "b", store=store, name="again")
    again = Session.open(made.id, store=store)
    assert [(q.question, q.kind, q.aside) for q in again.questions.every] == [
        ("topic", "one class", False),
        ("fraud", "yes / no", False),
        ("urgent", "yes / no", True),
    ]
    for name in ("topic", "fraud", "urgent"):
        old, new = session.question(name), again.question(name)
        assert new.state.labels == old.state.labels and len(new.rounds) == len(old.rounds)
    p, q = (one.question("fraud").model.probabilities for one in (session, again))
    np.testing.assert_allclose(p, q)


def test_a_bundle_keeps_what_is_about_items_where_it_counts(store, tmp_path):
    session = begun(store)
    session.items.label(5, "refund")  # so that the skip counts in the others alone
    skip, flag = Operation("a", "answers", item=5, text=SKIPPED), Operation("b", "flag", item=6)
    session.apply([skip, flag, Operation("c", "want", items=[7], every=True)])
    session.undo()
    write_project_bundle(tmp_path / "b", session)
    made = open_bundle(tmp_path / "b", store=store, name="again")
    again = Session.open(made.id, store=store, annotator="ann")
    assert [5 in one.state.skipped for one in again.questions.sessions()] == [False, True, True]
    for name in session.questions:
        assert again.question(name).state == session.question(name).state
    assert (again.undo().kind, again.undo().kind) == ("flag", "skip")
    assert not any(5 in one.state.skipped for one in again.questions.sessions())


def test_a_bundle_with_two_questions_of_one_name_is_refused(store, tmp_path):
    from workbench.exchange.manifests import sealed

    write_project_bundle(tmp_path / "b", answered(store))
    place = tmp_path / "b"
    about = json.loads((place / "project.json").read_text())
    about["questions"][1]["question"] = "fraud"
    (place / "project.json").write_text(json.dumps(about))
    run = json.loads((place / "run.json").read_text())
    files = list(run.pop("files"))
    run.pop("sha256")
    (place / "run.json").write_text(json.dumps(sealed(run, place, files)))
    with pytest.raises(InputError, match="one name"):
        open_bundle(place, store=store)


def read_table(path):
    """A file of a table, as pandas reads it."""
    if path.suffix == ".csv":
        # a quote keeps a spreadsheet from running what begins with a sign
        return pd.read_csv(path, encoding="utf-8-sig").replace("'=", "=", regex=True)
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)
    return pd.read_excel(path) if path.suffix == ".xlsx" else pd.read_parquet(path)


def labels_of(session):
    return {one.question_name: one.state.labels for one in session.questions.sessions()}


@pytest.mark.parametrize("what", ["questions", "questions-predictions"])
@pytest.mark.parametrize("format", CARRIED_BY)
def test_all_questions_come_back_from_an_export(store, format, what):
    session = answered(store)
    session.questions.refit()
    data = export_labels(session, format, what)
    format = format.removesuffix("-bom")
    other = begun(store, name="other")
    assert answers_several(data, other, format)
    take_import(other, read_answers(data, other, format), "file")
    assert labels_of(other) == labels_of(session)
    assert read_answers(data, other, format).strange == ()


OF_TABLES = ("csv", "csv-bom", "xlsx", "parquet", "jsonl")


def written_by_two(store):
    """Answers of two people to the questions of some items, with notes and flags."""
    session = answered(store)
    bob = session.as_annotator("bob")
    bob.question("urgent").items.label(3, "no")
    bob.items.note(3, "odd")
    bob.items.note(3, "=really")
    session.items.flag(4, True, "look")
    session.question("fraud").items.flag(5)
    return session


@pytest.mark.parametrize("what", ["questions", "questions-predictions"])
@pytest.mark.parametrize("format", OF_TABLES)
def test_an_export_of_all_questions_says_who_answered_what_with_notes_and_flags(
    store, tmp_path, format, what
):
    session = written_by_two(store)
    session.questions.refit()
    path = tmp_path / f"all{FORMATS[format]}"
    path.write_bytes(export_labels(session, format, what))
    frame = read_table(path)
    about = [
        "topic",
        "fraud",
        "urgent",
        "tags",
        "topic_person",
        "fraud_person",
        "urgent_person",
        "note",
        "flag",
    ]
    assert [name for name in frame if name in about] == about
    cells = frame[about].astype(object).where(frame[about].notna() & (frame[about] != ""), None)
    people = cells.loc[:5, ["topic_person", "fraud_person", "urgent_person"]].values.tolist()
    assert people == [["ann", "ann", {2: "ann", 3: "bob"}.get(item)] for item in range(6)]
    assert cells["note"].dropna().to_dict() == {3: "odd | =really"}
    assert cells["flag"].dropna().to_dict() == {4: "look", 5: "flagged"}
    # as in an export of one question
    rows = {row["item"]: row for row in label_table(session)}
    for item in range(6):
        assert [rows[item][name] or None for name in ("person", "note", "flag")] == [
            cells.loc[item, name] for name in ("topic_person", "note", "flag")
        ]


@pytest.mark.parametrize("what", ["questions", "questions-predictions"])
@pytest.mark.parametrize("format", OF_TABLES)
def test_an_export_of_all_questions_opens_as_a_pool_of_its_items(store, tmp_path, format, what):
    session = written_by_two(store)
    session.questions.refit()
    path = tmp_path / f"all{FORMATS[format]}"
    path.write_bytes(export_labels(session, format, what))
    pool = load_pool(str(path))
    left_out = dict.fromkeys(("topic", "fraud", "urgent"), "leave out")
    assert {name: use["use"] for name, use in pool.uses.items()} == {"id": "id", "text": "text"} | left_out
    assert pool.classes == () and any("can be taken over as questions" in note for note in pool.notes)
    again = Session.create(
        str(path),
        questions=["column:topic", "column:fraud"],
        store=store,
        annotator="ann",
        classifier="logistic-regression",
        policy="margin",
    )
    expected = labels_of(session)
    assert labels_of(again) == {name: expected[name] for name in ("topic", "fraud")}


def test_a_table_of_numbers_with_answers_does_not_learn_from_them(tmp_path):
    head = "id,x,topic,fraud,topic_person,fraud_person,note,flag,item"
    rows = [
        f"r{i},{i / 7:.3f},{TOPIC[1][i % 2]},{('yes', 'no')[i % 3 == 0]},ann,bob,,,{i}" for i in range(40)
    ]
    (tmp_path / "t.csv").write_text("\n".join([head, *rows]))
    pool = load_pool(str(tmp_path / "t.csv"))
    uses = {name: use["use"] for name, use in pool.uses.items()}
    assert uses == {"id": "id", "x": "number", "topic": "leave out", "fraud": "leave out"}
    named = load_pool(str(tmp_path / "t.csv"), columns={"topic": "class", "flag": "leave out"})
    assert named.classes == ("delivery", "refund") and "flag" in named.uses


def test_predictions_of_all_questions_that_have_a_model_are_one_file(store):
    session = answered(store)
    with pytest.raises(InputError, match="no model"):
        export_labels(session, "csv", "questions-predictions")
    session.questions.refit()
    rows = list(csv.DictReader(io.StringIO(export_labels(session, "csv", "questions-predictions").decode())))
    assert len(rows) == len(session.pool) and "urgent_prediction" not in rows[0]  # its labels are one class
    for name in ("topic", "fraud"):
        shares = session.question(name).predictions.of(20)
        assert rows[20][f"{name}_prediction"] == max(shares, key=shares.get) and not rows[20][name]
        assert float(rows[20][f"{name}_confidence"]) == pytest.approx(max(shares.values()), abs=1e-6)
    with zipfile.ZipFile(
        io.BytesIO(export_labels(session, "label-studio", "questions-predictions"))
    ) as packed:
        tasks = json.loads(packed.read("tasks.json"))
    assert ["annotations" in task for task in tasks] == [item < 6 for item in range(len(rows))]
    assert tasks[20]["data"]["topic_prediction"] == rows[20]["topic_prediction"]
    session.questions.add("topic_prediction")
    with pytest.raises(InputError, match="called 'topic_prediction'"):
        export_labels(session, "csv", "questions-predictions")
    session.questions.add("flag")
    with pytest.raises(InputError, match="called 'flag', as another column of the file: rename it"):
        export_labels(session, "csv", "questions")


def test_huggingface_reads_a_class_a_question_and_a_sequence_of_tags(store, tmp_path):
    datasets = pytest.importorskip("datasets")
    (tmp_path / "set.zip").write_bytes(export_labels(answered(store), "huggingface", "questions"))
    zipfile.ZipFile(tmp_path / "set.zip").extractall(tmp_path / "set")
    made = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["train"]
    assert made.features["topic"].names == ["refund", "delivery"]
    assert made.features["tags"].feature.names == ["fraud", "urgent"]
    assert made[2]["tags"] == [1] and made[3]["tags"] == [0]


@pytest.mark.parametrize("wrote", ["Label Studio", "datasets"])
def test_what_other_programs_wrote_of_two_questions_and_twenty_switches_comes_back(store, wrote):
    expected = others.labels_of(others.answered(store))
    session = others.begun(store, "again")
    if wrote == "Label Studio":
        data, format = others.LABEL_STUDIO.read_bytes(), "label-studio"
        # somebody answered the first item there, and saw all switches
        said = {name: others.PERSON.get(name, "no") for name in (*others.SWITCHES, "topic")}
        for name, label in said.items():
            expected[name][0] = label
        expected["the tone"].pop(0)
    else:
        data, format = others.DATASETS.read_bytes(), "parquet"
    assert answers_several(data, session, format)
    take_import(session, read_answers(data, session, format), wrote)
    assert others.labels_of(session) == expected
    assert min(map(len, expected.values())) >= 2


def test_files_of_other_programs_that_lack_names_are_refused_with_the_way_out(store):
    session = begun(store)
    flat = json.dumps([{"id": 1, "item": 0, "topic": "refund", "annotation_id": 3, "lead_time": 1.5}])
    with pytest.raises(InputError, match="JSON-MIN"):
        read_answers(flat.encode(), session, "label-studio")
    with pytest.raises(InputError, match="to_parquet"):
        read_answers(b'{"item": 0, "tags": [1, 0]}\n', session, "jsonl")


def test_yes_is_one_where_the_names_of_codes_are_lost(store, tmp_path):
    import pyarrow.parquet as pq

    with zipfile.ZipFile(io.BytesIO(export_labels(answered(store), "huggingface", "questions"))) as packed:
        [path] = [name for name in packed.namelist() if name.endswith(".parquet")]
        table = pq.read_table(io.BytesIO(packed.read(path))).select(["item", "fraud"]).to_pandas()
    session = begun(store, name="other")
    data = table.to_csv(index=False).encode()
    take_import(session, read_answers(data, session, "csv"), "codes")
    assert labels_of(session)["fraud"] == {item: "no" if item % 3 else "yes" for item in range(6)}


def test_a_name_with_the_sign_between_names_comes_back_from_a_cell(store):
    names = ("semi;colon", "semi", "a;b;c", "urgent")
    session = begun(store, names)
    for place, one in enumerate(session.questions.sessions()):
        one.items.label([0, 1], "yes" if place != 1 else "no")
    other = begun(store, names, name="other")
    take_import(other, read_answers(export_labels(session, "csv", "questions"), other, "csv"), "file")
    assert labels_of(other) == labels_of(session)
    cells = read_answers(b"item,tags\n3,semi;semi;colon\n4,a;b;c;urgent\n", other, "csv")
    assert dict(cells.labels["semi"]) == {3: "yes", 4: "no"} and not cells.strange
    assert dict(cells.labels["a;b;c"]) == {3: "no", 4: "yes"}


def test_pictures_go_to_huggingface_with_all_questions(store, tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "photos.zip").write_bytes(zipped(photos(8)))
    session = Session.create(
        tmp_path / "photos.zip",
        questions=[("kind", []), "sharp"],
        store=store,
        annotator="ann",
        classifier="logistic-regression",
        policy="margin",
    )
    items = session.pool.trainable[:3].tolist()
    session.question("sharp").items.label(items, "yes")
    data = export_labels(session, "huggingface", "questions")
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        [path] = [name for name in packed.namelist() if name.endswith(".parquet")]
        table = pq.read_table(io.BytesIO(packed.read(path)))
    described = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert described["image"] == {"_type": "Image"}
    assert all(cell["bytes"].startswith((b"\x89PNG", b"\xff\xd8")) for cell in table["image"].to_pylist())
    assert dict(read_answers(data, session, "huggingface").labels["sharp"]) == dict.fromkeys(items, "yes")


def test_label_studio_is_told_of_one_choice_and_of_several(store):
    with zipfile.ZipFile(io.BytesIO(export_labels(answered(store), "label-studio", "questions"))) as packed:
        config = packed.read("config.xml").decode()
    assert '<Choices name="topic" toName="item" choice="single">' in config
    assert '<Choices name="tags" toName="item" choice="multiple">' in config


def tasks(*chosen, ids=None):
    """Tasks as Label Studio exports them: name of a choice -> what was chosen; None where nobody answered."""
    made = []
    for n, choices in enumerate(chosen):
        result = [
            {"from_name": name, "type": "choices", "value": {"choices": picked}}
            for name, picked in (choices or {}).items()
        ]
        about = {"text": f"letter number {n} about {'money' if n % 2 else 'parcels'}"}
        annotations = [] if choices is None else [{"result": result, "lead_time": 4.2}]
        made.append({"id": 7 + n, "data": {**about, **({"id": ids[n]} if ids else {})}})
        made[-1]["annotations"] = annotations
    return json.dumps(made).encode()


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize(
    ("chosen", "switches"),
    [
        ([{"topic": ["refund"]}, {}, None], {}),
        ([{"topic": ["refund"], "tags": ["fraud"]}, {}, None], {"fraud": {0: "yes", 1: "no"}}),
        (
            [{"topic": ["refund"], "tags": ["fraud"]}, None, {"labels": ["urgent", "fraud"]}],
            {"fraud": {0: "yes", 2: "yes"}, "urgent": {0: "no", 2: "yes"}},
        ),
    ],
)
def test_what_label_studio_sends_back_answers_no_switch_that_it_never_offered(
    store, chosen, switches, with_ids
):
    session = begun(store)
    data = tasks(*chosen, ids=session.pool.items.ids if with_ids else None)
    assert answers_several(data, session, "label-studio")
    take_import(session, read_answers(data, session, "label-studio"), "file")
    assert labels_of(session) == {"topic": {0: "refund"}, "fraud": {}, "urgent": {}} | switches


def test_people_who_differ_on_a_switch_are_not_taken_for_one_answer(store):
    session = begun(store)
    [ann, bob] = json.loads(tasks({"tags": ["fraud"]}, {}, ids=["0", "0"]))
    both = {**ann, "annotations": [*ann["annotations"], *bob["annotations"]]}
    with pytest.raises(
        InputError, match="Task 7 of the file, question 'fraud', has annotations that differ: 'yes', 'no'"
    ):
        read_answers(json.dumps([both]).encode(), session, "label-studio")


def test_a_label_studio_file_is_of_several_questions_whichever_task_was_answered_first(store):
    assert answers_several(tasks(None, None, {"topic": ["refund"]}), begun(store), "label-studio")


@pytest.mark.parametrize("name", ["label", "sentiment", "labels", "tags"])
def test_one_choice_of_any_name_is_the_answer_to_a_projects_one_question(store, name):
    session = begun(store, [TOPIC], name="one")
    data = tasks({name: ["refund"]}, {}, {name: ["delivery"]}, None)
    assert format_of("export.json", data) == "label-studio"
    assert not answers_several(data, session, "label-studio")
    assert plan_import(data, session, "label-studio").labels == {"topic": [(0, "refund"), (2, "delivery")]}
    assert answers_several(tasks({name: ["fraud", "urgent"]}), session, "label-studio") == (
        name in ("labels", "tags")
    )


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("csv", b"item,topic,labels\n0,refund,fraud;urgent\n1,,urgent\n2,delivery,\n"),
        (
            "jsonl",
            b'{"item": 0, "topic": "refund", "fraud": true, "urgent": 1}\n'
            b'{"item": 1, "labels": ["urgent"], "fraud": false}\n'
            b'{"item": 2, "topic": "delivery", "fraud": null}\n',
        ),
    ],
)
def test_cells_and_lists_of_several_labels_are_read(store, format, data):
    session = begun(store)
    take_import(session, read_answers(data, session, format), "file")
    assert labels_of(session) == {
        "topic": {0: "refund", 2: "delivery"},
        "fraud": {0: "yes", 1: "no"},
        "urgent": {0: "yes", 1: "yes"},
    }
    session.undo()
    assert not any(labels_of(session).values())


def test_a_cell_names_a_class_as_in_a_file_of_one_question(store):
    session = begun(store, [("topic", ["caf\u00e9", "delivery"]), "fraud"])
    cells = "item,topic,fraud\n0,cafe\u0301,yes\n1,None,no\n2,nan,nan\n3,delivery,\n"
    answers = read_answers(cells.encode(), session, "csv")
    assert answers.labels == {"topic": [(0, "caf\u00e9"), (3, "delivery")], "fraud": [(0, "yes"), (1, "no")]}
    with pytest.raises(InputError, match="has the label 'None', and no class is called so"):
        read_answers(b"item,topic,fraud\n0,lost,yes\n1,None,no\n", session, "csv")
    # a class that is called as an answer to a switch is a new one all the same, and is asked about
    assert read_answers(b"item,topic\n0,yes\n", session, "csv").changed == 1
    # what we wrote ourselves has empty cells in their place
    named = begun(store, [("topic", ["nan", "None"]), "fraud"], name="named")
    for item, label in enumerate(("nan", "None", "nan")):
        named.items.label(item, label)
    for format in ("csv", "jsonl", "parquet", "xlsx"):
        data = export_labels(named, format, "questions")
        other = begun(store, [("topic", ["yes", "no"]), "fraud"], name=f"other {format}")
        assert dict(read_answers(data, other, format).labels["topic"]) == dict(named.state.labels)


def test_a_list_answers_no_switch_that_the_file_never_lists(store):
    for format, data in (
        ("csv", b"item,tags\n0,fraud\n1,fraud\n"),
        ("jsonl", b'{"item": 0, "tags": ["fraud"]}\n{"item": 1, "tags": []}\n'),
    ):
        answers = read_answers(data, begun(store, name=format), format)
        assert answers.labels["urgent"] == []
        assert [item for item, _ in answers.labels["fraud"]] == [0, 1]
    named = b'{"item": 0, "tags": [], "answered": ["urgent"]}\n'
    answers = read_answers(named, begun(store, name="named"), "jsonl")
    assert answers.labels == {"topic": [], "fraud": [], "urgent": [(0, "no")]}


def test_a_table_that_names_persons_answers_questions_by_their_votes(store):
    session = begun(store)
    data = b"item,topic,fraud,annotator\n0,refund,yes,ann\n0,delivery,yes,bob\n1,refund,no,ann\n"
    assert read_answers(data, session, "csv").labels == {
        "topic": [FileVote(0, "refund", "ann"), FileVote(0, "delivery", "bob"), FileVote(1, "refund", "ann")],
        "fraud": [FileVote(0, "yes", "ann"), FileVote(0, "yes", "bob"), FileVote(1, "no", "ann")],
        "urgent": [],
    }
    # a question may be called as persons are
    named = begun(store, [("coder", ["a", "b"]), "fraud"], name="named")
    with pytest.raises(InputError, match="Item 0 has two labels of 'coder'"):
        read_answers(b"item,coder\n0,a\n0,b\n", named, "csv")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"item,tags\n0,fraud;spam\n", "No yes / no question is called 'spam'"),
        (b"item,fraud\n0,perhaps\n", "answered by yes or no"),
        (b"item,fraud\n0,yes\n0,no\n", "Item 0 has two labels of 'fraud': 'yes' and 'no'"),
        (b"topic,fraud\nrefund,yes\n", "neither id nor item"),
        (b"item,fraud\n0,\n", "answers none"),
    ],
)
def test_files_that_cannot_be_taken_are_refused_whole(store, data, says):
    session = begun(store)
    with pytest.raises(InputError, match=says):
        take_import(session, read_answers(data, session, "csv"), "file")
    assert not any(labels_of(session).values())


def test_a_file_of_one_label_an_item_is_none_of_several_questions(store):
    assert not answers_several(b"item,label\n0,yes\n", begun(store), "csv")
    assert not answers_several(b"item,label,tags\n0,yes,x\n", begun(store, [TOPIC], name="one"), "csv")
    with pytest.raises(InputError, match="several questions go into"):
        export_labels(begun(store, name="two"), "npz", "questions")


def test_the_undo_beside_an_import_takes_back_that_import_or_nothing(store, tmp_path):
    session, path = begun(store).as_annotator("ann"), tmp_path / "f.csv"
    path.write_text("item,fraud,urgent\n1,yes,\n2,no,yes\n", encoding="utf-8")
    session.items.label(3, "delivery")

    def taken_in():
        return labels_taken_in(
            Report(lambda _: False), str(path), store.url, session.id, "ann", "csv", "f.csv", {}
        )

    (n, act), again = taken_in(), taken_in()
    assert n == 3 and again == (0, None), "the file said nothing new"
    event, _ = acts.take_back(session, act)
    assert event is not None and event.kind == "imported"
    assert labels_of(session) == {"topic": {3: "delivery"}, "fraud": {}, "urgent": {}}


def test_of_a_file_with_a_class_that_is_refused_no_question_gets_a_label(store):
    session = begun(store, [TOPIC, ("tone", ["good", "bad"])])
    with pytest.raises(InputError):
        take_import(
            session, plan_of(session, {"topic": [(1, "refund")], "tone": [(2, "x" * 500)]}, ()), "f.csv"
        )
    assert labels_of(session) == {"topic": {}, "tone": {}} and session.undo() is None
