import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages import application, open_page, place, texts
from workbench.app.access import current, uploads
from workbench.app.compare import comparison, comparison_sources
from workbench.app.data import column_uses, forms, upload
from workbench.app.data.column_uses import uses_of_rows
from workbench.app.data.forms import class_names
from workbench.app.serving.jobs import manager
from workbench.app.shell import background_files
from workbench.documents.projects import ProjectSettings
from workbench.errors import InputError
from workbench.pools import inspect_table
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.formats import FORMATS, endings_of
from workbench.pools.tables.report import TableReport
from workbench.progress import tell
from workbench.sessions import ArrayOracle, Session
from workbench.store import Store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_WARM", "0")
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    # the Label page, where a start leads, fits what is labelled: here it is what was started that matters
    monkeypatch.setattr(current, "keep_fitting", lambda session: None)
    yield tmp_path
    # no job goes on while another test, or the end of the process, comes
    for job in manager().active():
        job.cancel()
        assert job.wait(600)


TABLES = {
    "mixed.csv": b"id,when,colour,size,kind,note\n"
    + b"".join(
        b"r%d,2024-01-%02d,%s,%s,%s,%s\n"
        % (
            i,
            1 + i % 28,
            (b"red", b"blue")[i % 2],
            b"" if i % 7 == 0 else b"%d.5" % i,
            b"ab"[i % 2 :][:1],
            b"a note of some words" * (i % 3),
        )
        for i in range(60)
    ),
    "wide.csv": b",".join(b"c%d" % i for i in range(50)) + b"\n" + (b",".join([b"1.5"] * 50) + b"\n") * 20,
    "odd.csv": b"a,b\ninf,1\nn/a,2\n3,x\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_looked_at_once_before_anybody_changes_a_use(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name])
    said = inspect_table(path, columns=inspect_table(path, columns="auto").columns_option)
    looks: list[Any] = []

    def counted(*args: Any, **options: Any) -> Any:
        looks.append(options)
        return inspect_table(*args, **options)

    monkeypatch.setattr("workbench.pools.inspect_table", counted)
    assert upload.looked_at(str(path), upload.first_choices(str(path))) == said
    assert len(looks) == 1


def test_an_upload_is_kept_by_its_content(home: Path) -> None:
    first = uploads.keep("my data.csv", b"a,b\n1,2\n")
    assert first == uploads.keep("my data.csv", b"a,b\n1,2\n")
    assert first != uploads.keep("my data.csv", b"a,b\n1,3\n")
    assert first.read_bytes() == b"a,b\n1,2\n"
    assert first.name == "my-data.csv"
    assert [p.name for p in first.parent.iterdir()] == ["my-data.csv"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.csv", "..\\..\\boot.csv", "/abs/x.csv", "...csv", "a" * 400 + ".csv"]
)
def test_a_name_cannot_leave_the_folder(home: Path, name: str) -> None:
    path = uploads.keep(name, b"x")
    assert path.resolve().is_relative_to(home.resolve() / "uploads")
    assert len(path.name) <= 101 and path.name.endswith("csv")


@pytest.mark.parametrize(("name", "data", "words"), [("x.exe", b"x", "not one of"), ("x.csv", b"", "empty")])
def test_what_cannot_be_a_pool_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        uploads.keep(name, data)


def test_size_is_checked_on_the_server_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "most_bytes", lambda: 10)
    with pytest.raises(InputError, match="can be uploaded"):
        uploads.check("x.csv", b"x" * 11)


def test_formats_say_themselves_where_they_are_offered() -> None:
    """A format that is registered is one that can be brought: pages keep no list of their own."""
    for entry in FORMATS.values():
        dotted = {ending for ending in entry.endings if ending.startswith(".")}
        assert dotted <= set(endings_of()) and all(dotted <= set(endings_of(kind)) for kind in entry.kinds)
        for ending in dotted:
            uploads.check(f"x{ending}", b"x")


@pytest.mark.parametrize(
    ("name", "options", "images"),
    [
        ("a.zip", {}, True),
        ("a.npz", {"features": "pixels"}, True),
        ("a.npz", {}, False),
        ("a.csv", {"text_column": "t"}, False),
        ("digits", {}, False),
    ],
)
def test_which_uploads_are_of_images(name: str, options: dict[str, str], images: bool) -> None:
    assert comparison_sources.is_of_images({"name": name, "options": options}) == images


def test_a_file_without_columns_to_decide_on_is_shown_and_started() -> None:
    lines = "".join(f"{i % 2} 1:{i % 2 + i / 50} 2:{-i / 50}\n" for i in range(40))
    test = application().run()
    test.file_uploader(key="upload").set_value(("flat.svm", lines.encode(), "")).run()
    assert not test.exception, test.exception
    said = "\n".join(str(m.value) for m in (*test.main.markdown, *test.main.caption))
    assert "2 classes: 0, 1" in said
    assert [area.key for area in test.main.text_area] == ["own-further-typed"]
    test.button(key="start-own").click().run()
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    assert str(record.pool["name"]).endswith("flat.svm") and record.name == "flat"


def test_decisions_add_up() -> None:
    options = upload.merged({"missing": "drop", "exclude": ["a"]}, {"exclude": ["b"]})
    assert options == {"missing": "drop", "exclude": ["a", "b"]}
    assert upload.merged({"missing": "drop"}, {"missing": "impute"}) == {"missing": "impute"}


@pytest.mark.parametrize("text", ["good\nbad", "good, bad", "  good \n\n bad \n"])
def test_class_names_as_typed(text: str) -> None:
    assert class_names(text) == ("good", "bad")


def test_class_names_with_commas_on_lines_of_their_own() -> None:
    assert class_names("a, b\nc") == ("a, b", "c")


@pytest.mark.parametrize(("text", "words"), [("", "two classes"), ("one", "two classes"), ("a\na", "twice")])
def test_class_names_that_do_not_do(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        class_names(text)


PEOPLE = "id,age,colour,label\n" + "".join(
    f"u{i},{'' if i == 3 else 20 + i},{('red', 'blue')[i % 2]},{('good', 'bad', '')[i % 3]}\n"
    for i in range(60)
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page shows a bar after a moment and looks again; here nobody does."""
    assert background_files.read.__kwdefaults__ is not None
    monkeypatch.setitem(background_files.read.__kwdefaults__, "patience", 600.0)


def opened() -> AppTest:
    return application().run()


def dropped(name: str, text: str) -> AppTest:
    test = opened()
    test.file_uploader(key="upload").set_value((name, text.encode(), "")).run()
    assert not test.exception, test.exception
    return test


def read(test: AppTest) -> None:
    """Wait until the pool is read whose features are learnt, and look again."""
    for job in manager().active("opening"):
        assert job.wait(600)
    test.run()


def test_learning_is_cancelled_and_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    told, go_on = threading.Event(), threading.Event()
    of = PiecesFeatureMap.of

    def slow(*given: Any) -> PiecesFeatureMap:
        tell(0.5, "Learning words")
        told.set()
        assert go_on.wait(600)
        tell(0.6, "Learning words")
        return of(*given)

    monkeypatch.setattr(PiecesFeatureMap, "of", slow)
    before = len(Store.open().projects())
    test = dropped("more.txt", "".join(f"that is the text number {i}\n" for i in range(30)))
    test.button(key="start-own").click().run()
    assert told.wait(600)
    (job,) = manager().active("opening")
    assert (job.fraction, job.message) == (0.4, "Learning words")
    test.run()
    test.button(key="opening-job-cancel").click().run()
    go_on.set()
    assert job.wait(600) and job.status == "cancelled"
    test.run()
    assert len(Store.open().projects()) == before, "nothing half"
    test.button(key="opening-go-on").click().run()
    read(test)
    assert not test.exception, test.exception
    assert len(Store.open().projects()) == before + 1


def test_a_table_is_started_on_guesses_that_the_project_keeps() -> None:
    test = dropped("people.csv", PEOPLE)
    said = "\n".join(str(m.value) for m in (*test.main.markdown, *test.main.caption))
    assert "60 rows" in said and "40 labels taken over, 20 to ask" in said and "get the median" in said
    # what starts is above what is only said, which would move it as it comes
    order = [getattr(one, "key", None) or str(getattr(one, "value", "")) for one in test.main]
    told = next(place for place, words in enumerate(order) if words.startswith(":material/info:"))
    assert order.index("start-own") < told
    test.button(key="start-own").click().run()
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    assert record.pool["options"]["columns"] == {
        "id": {"use": "id", "guessed": True},
        "age": {"use": "number", "empty": "median", "guessed": True},
        "colour": {"use": "category", "empty": "own", "guessed": True},
        "label": {"use": "class", "guessed": True},
    }
    assert record.n_items == 60
    assert "brought" not in test.session_state, "Data shows the project now, not the file once more"
    again = dropped("people.csv", PEOPLE)
    again.button(key="start-own").click().run()
    assert len(Store.open().projects()) == 1  # asked first
    again.button(key="start-a-new-one").click().run()
    assert sorted(one.name for one in Store.open().projects()) == ["people", "people 2"]


def test_a_table_of_votes_is_asked_about_and_opens_as_its_items_with_them() -> None:
    """Mechanical Turk writes a row for each answer."""
    rows = [
        f"H{i},W{w},{20 + 3 * i + w * w},the {('ad', 'book', 'film')[i % 3]} of day {i} was so,"
        f"{'bad' if i % 2 or (i, w) == (4, 1) else 'good'}\n"
        for i in range(20)
        for w in range(3)
    ]
    text = "HITId,WorkerId,Seconds,Input.text,Answer.tone\n" + "".join(rows)
    test = dropped("turk.csv", text)
    said = "\n".join(str(m.value) for m in test.main.markdown).replace("\\", "")
    assert "Is this a table of votes: 60 answers" in said
    (button,) = [button for button in test.button if button.label == "It is a table of votes"]
    button.click().run()
    assert not test.exception, test.exception
    assert not [button for button in test.button if button.label == "It is a table of votes"]
    test.button(key="start-own").click().run()
    read(test)
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    session = Session.open(record.id)
    assert len(session.pool) == 20 and set(session.classes) == {"good", "bad"}
    assert {len(votes) for votes in session.state.votes.values()} == {3}
    assert sorted(vote.by_themselves for vote in session.state.votes[4].values()) == ["bad", "good", "good"]
    assert not {"WorkerId", "Seconds", "Answer.tone"} & set(session.pool.items.show(0).row or {})
    again = dropped("turk.csv", text)
    next(button for button in again.button if button.label == "It is a table of votes").click().run()
    again.button(key="start-own").click().run()
    read(again)
    again.button(key="start-a-new-one").click().run()
    assert not again.exception, again.exception
    (other,) = [one for one in Store.open().projects() if one.id != record.id]
    assert Session.open(other.id).state.votes.keys() == session.state.votes.keys()


def test_codes_are_asked_about_and_only_columns_to_look_at_are_shown() -> None:
    rows = "".join(
        f"{i % 5},{i / 7},{i * 3 % 11},{i * i % 17 / 3},{i * 5 % 23 / 3},{i // 7 % 3},"
        f"{('yes', 'no', '')[i % 3]}\n"
        for i in range(120)
    )
    test = dropped("codes.csv", "region,a,b,c,d,plan,class\n" + rows)
    said = "\n".join(str(m.value) for m in (*test.main.markdown, *test.main.caption)).replace("\\", "")
    assert "120 rows; the class is class, 80 labels taken over, 40 to ask; 7 columns." in said
    assert "2 classes: :blue-badge[no 40] :blue-badge[yes 40]" in said
    assert "Few whole numbers, used as numbers: 'region', 'b', 'plan'." in said
    assert "3 other columns: nothing to decide" in [one.label for one in test.main.expander]
    [button] = [one for one in test.button if one.label == "They are categories"]
    button.click().run()
    assert not test.exception and not [one for one in test.button if one.label == "They are categories"]
    test.button(key="start-own").click().run()
    (record,) = Store.open().projects()
    used = record.pool["options"]["columns"]
    assert [name for name, one in used.items() if one["use"] == "category"] == ["region", "b", "plan"]


def test_where_a_table_has_no_room_a_column_is_chosen_and_changed_below_a_list() -> None:
    # the classes are among the columns to look at as long as none is said to hold them
    rows = "".join(
        f"{('yes', '<no>', '')[i % 3]},{i / 7},{i / 3},{i % 13 / 3},{i % 17 / 3},{i % 7 / 3},{i % 11 / 3}\n"
        for i in range(60)
    )
    test = dropped("narrow.csv", "leaves,a,b,c,d,e,f\n" + rows)
    assert "6 other columns: nothing to decide" in [one.label for one in test.main.expander]
    lists = "".join(one.proto.body for one in test.get("html") if "column-list" in one.proto.body)
    assert "<b>leaves</b><span>category</span>" in lists and "20 empty" in lists and "&lt;no&gt;" in lists
    by_label = {one.label: one for one in test.selectbox}
    assert by_label["Change a column"].value == "leaves" and by_label["Use as"].value == "category"
    by_label["Use as"].set_value("class").run()
    said = "\n".join(str(m.value) for m in test.main.markdown).replace("\\", "")
    assert not test.exception and "the class is leaves, 40 labels taken over, 20 to ask" in said
    assert {one.label: one.value for one in test.selectbox}["Use as"] == "class"
    lists = "".join(one.proto.body for one in test.get("html") if "column-list" in one.proto.body)
    assert "20 empty. " in lists and "—" not in lists, "a dash says nothing of what becomes of them"


@pytest.mark.parametrize(
    "text",
    [
        "text,label\nI like it,good\nI hate it,bad\nSo nice,good\nAwful thing,bad\n",
        "review;sentiment\nvery good;pos\nvery bad;neg\nquite good;pos\nquite bad;neg\n",
    ],
)
def test_a_table_of_texts_and_labels_with_four_rows_opens(text: str) -> None:
    test = dropped("four.csv", text)
    test.button(key="start-own").click().run()
    read(test)
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    session = Session.open(record.id)
    assert session.pool.kind == "text" and len(session.classes) == 2


def test_going_on_with_a_project_keeps_the_classes_that_were_typed() -> None:
    lines = "".join(f"this is the text number {i}\n" for i in range(30))
    test = dropped("lines.txt", lines)
    test.text_area(key="typed-classes").set_value("good\nbad").run()
    assert ":blue-badge[good] :blue-badge[bad]" in "\n".join(str(m.value) for m in test.main.markdown)
    test.button(key="start-own").click().run()
    read(test)
    (record,) = Store.open().projects()
    again = dropped("lines.txt", lines)
    again.text_area(key="typed-classes").set_value("good\nso so").run()
    again.button(key="start-own").click().run()
    assert "adds the classes that you typed: so so." in "\n".join(str(m.value) for m in again.markdown)
    again.button(key="go-on-with-it").click().run()
    assert not again.exception, again.exception
    assert Session.open(record.id).classes == ("good", "bad", "so so")


def test_many_projects_are_a_list_in_which_one_is_found() -> None:
    made = [Session.create("iris", name=f"Flowers {n}").id for n in range(10)]
    test = opened()
    assert all(any(b.key == f"open-{one}" for b in test.button) for one in made)
    test.text_input(key="projects-find").set_value("flowers 7").run()
    assert [b.key for b in test.button if str(b.label) in ("Start", "Go on")] == [f"open-{made[7]}"]
    test.text_input(key="projects-find").set_value("nothing").run()
    assert "No project has these words." in [c.value for c in test.main.caption]


def test_a_card_says_what_comes_next_in_its_project_and_leads_there() -> None:
    session = Session.create("iris", classifier="logistic-regression", policy="margin", annotator="ann")

    def card() -> tuple[str, str]:
        page = opened()
        words = "\n".join(str(one.value) for one in page.main.markdown)
        return words, str(page.button(key=f"open-{session.id}").label)

    n = session.pool.trainable.size
    assert n < 150 and card()[1] == "Start" and f"{n} answers to go." in card()[0]
    oracle = ArrayOracle(session.pool)
    for item in session.pool.trainable[::4].tolist():
        session.items.label(item, oracle(item))
    session.refit()
    words, button = card()
    assert button == "Go on" and f"The model: {session.predictions.verdict.between}." in words.replace(
        "\u00a0", " "
    )
    session.checks.start(0.2, 0.8)
    assert card()[1] == "Go on checking"
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        ask = session.checks.next()
        assert ask is not None and session.checks.answer(ask.id, oracle(ask.item))
    assert session.checks.certificate()
    words, button = card()
    assert button == "See the certificate" and "take its labels away" in words
    page = opened()
    page.button(key=f"open-{session.id}").click().run()
    assert page.title[0].value == "Finish"


def _uses(report: TableReport) -> dict[str, str]:
    return {column.name: column.use.use for column in report.columns if column.use is not None}


def test_a_half_filled_last_column_is_taken_for_the_classes_and_a_first_one_of_names_for_ids() -> None:
    text = "customer,age,city,churn\n" + "".join(
        f"C{i},{'' if i % 9 == 0 else 20 + i % 30},{('Oslo', 'Rome', 'Oslo', '')[i % 4]},"
        f"{('leaves', 'stays')[i % 2] if i < 20 else ''}\n"
        for i in range(60)
    )
    report = inspect_table(text.encode(), file_name="a.csv", columns="auto")
    assert _uses(report)["churn"] == "class" and _uses(report)["customer"] == "id"
    test = dropped("customers.csv", text)
    said = "\n".join(str(m.value) for m in (*test.main.markdown, *test.main.caption))
    assert "20 labels taken over, 40 to ask" in said
    # one sentence for the empty cells of all columns, as the table says the same of each
    assert said.count("empty") == 1 and "22 cells of 2 columns are empty" in said
    # as much as half of the labels may be there, however long their names are
    names = ("leaves before the end of the year", "stays")
    half = "".join(
        f"C{i},{'' if i % 30 == 0 else i % 9},{names[i % 2] if i < 30 else ''}\n" for i in range(60)
    )
    known = inspect_table(f"customer,age,churn\n{half}".encode(), file_name="a.csv", columns="auto")
    assert _uses(known)["churn"] == "class"
    # a column that is full, or hardly emptier than another, is a property as before
    full = text.replace(",\n", ",undecided\n")
    assert _uses(inspect_table(full.encode(), file_name="a.csv"))["churn"] == "category"


@pytest.mark.parametrize(
    ("name", "use"), [("topic", "class"), ("llm_label", "category"), ("Pred", "category")]
)
def test_a_column_of_predictions_is_never_taken_for_the_classes(name: str, use: str) -> None:
    text = f"id,text,{name}\n" + "".join(
        f"t{i},my card was lost on day {i},{('card', 'refund')[i % 2]}\n" for i in range(60)
    )
    report = inspect_table(text.encode(), file_name="a.csv", columns="auto")
    assert _uses(report)[name] == use
    said = "\n".join(str(c.value) for c in dropped("calls.csv", text).main.caption)
    assert ("a guess at the class" in said) == (use != "class")


@pytest.mark.parametrize(
    ("worth", "people", "expected"),
    [(False, 3, 0.2), (True, 4, "worth")],
)
def test_a_project_starts_with_items_that_several_people_label(worth, people, expected) -> None:
    test = dropped("people.csv", PEOPLE)
    assert test.number_input(key="new-own-people").disabled
    if worth:  # where another opinion is worth most: there is no share of its own
        test.toggle(key="new-own-worth").set_value(True).run()
        assert test.number_input(key="new-own-overlap").disabled
    else:
        test.number_input(key="new-own-overlap").set_value(20).run()
    test.number_input(key="new-own-people").set_value(people).run()
    test.button(key="start-own").click().run()
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    assert (record.settings["overlap"], record.settings["people"]) == (expected, people)


def test_the_rows_of_the_editable_table_are_the_option_of_the_pool() -> None:
    report = inspect_table(b"d,a\n2024-01-02,1\n2024-01-03,2\n", file_name="a.csv", columns="auto")
    rows = [
        {"Column": "d", "Use as": "date", "Empty cells": "leave row out"},
        {"Column": "a", "Use as": "category", "Empty cells": "kept as empty"},
    ]
    assert uses_of_rows(rows, report) == {
        "d": {"use": "date", "empty": "drop", "format": "ISO 8601"},
        "a": {"use": "category", "empty": "own"},
    }


def test_classes_can_be_named_while_labelling() -> None:
    test = dropped("lines.txt", "".join(f"this is the text number {i}\n" for i in range(30)))
    test.button(key="start-own").click().run()
    read(test)
    assert not test.exception, test.exception
    (record,) = Store.open().projects()
    session = Session.open(record.id)
    assert session.classes == () and session.pool.kind == "text"
    session.classes.add("a")
    session.classes.add("b")
    ask = session.ask(1)[0]
    session.tell(ask.id, "a")
    assert session.state.n_labelled == 1


def test_projects_are_renamed_duplicated_and_archived() -> None:
    session = Session.create("iris", name="Flowers")
    ask = session.ask(1)[0]
    session.tell(ask.id, session.classes[0])
    session.undo()
    test = opened()
    test.text_input(key=f"name-{session.id}").set_value("Irises").run()
    test.button(key=f"rename-{session.id}").click().run()
    test.button(key=f"duplicate-{session.id}").click().run()
    assert not test.exception, test.exception
    copy = next(p for p in Store.open().projects() if p.id != session.id)
    assert copy.name == "Irises (copy)"
    ours, theirs = Session.open(session.id), Session.open(copy.id)
    assert [(e.kind, e.time) for e in ours.log.events] == [(e.kind, e.time) for e in theirs.log.events]
    assert theirs.state.n_labelled == ours.state.n_labelled == 0
    theirs.redo()
    assert (theirs.state.n_labelled, ours.state.n_labelled) == (1, 0)
    test.button(key=f"archive-{copy.id}").click().run()
    assert [p.archived for p in sorted(Store.open().projects(), key=lambda p: p.id != copy.id)] == [
        True,
        False,
    ]
    test.button(key=f"archive-{copy.id}").click().run()
    assert not test.exception, test.exception


def test_a_project_is_open_whichever_of_its_questions_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.create(
        "iris", name="Flowers", questions=[("kind", ["setosa", "versicolor", "virginica"]), "wilted"]
    )
    wilted = session.question("wilted").id
    page = open_page("data", wilted)
    assert "**Flowers** · open" in texts(page)
    page.button(key=f"archive-{session.id}").click().run()
    assert not page.exception and "project" not in page.query_params
    monkeypatch.setattr(comparison, "_submit", lambda *_: None)
    page = open_page("compare", wilted)
    page.button(key="start-comparison").click().run()
    assert [study.project for study in Store.open().runs.studies()] == [session.id]


def test_what_was_typed_outlives_a_table_that_is_read_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mixed.csv"
    path.write_bytes(TABLES["mixed.csv"])
    test = AppTest.from_file(place("data"), default_timeout=600)
    test.session_state[upload.PLACE] = str(path)
    test.run()
    test.text_area(key="own-further-typed").set_value("urgent").run()
    # another use of a column is chosen, and the table is read again behind a bar
    monkeypatch.setitem(background_files.read.__kwdefaults__, "patience", 0.0)
    chosen = dict(test.session_state[column_uses.CHOICES])
    columns = {**chosen["columns"], "note": {"use": "leave out"}}
    test.session_state[column_uses.CHOICES] = chosen | {"columns": columns}
    test.run()
    assert not test.text_area, "the bar stands in its place"
    while not test.text_area:
        for job in manager().active():
            assert job.wait(600)
        test.run()
    # the browser has forgotten what it did not draw: it is told
    told = test.text_area(key="own-further-typed").proto
    assert told.set_value and told.value == "urgent"


@pytest.mark.parametrize(
    ("source", "name", "title"),
    [("images:small_set", None, "small set"), ("/here/more", None, "more"), ("iris", "Mine", "Mine")],
)
def test_what_waits_for_its_features_is_called_as_its_data_where_it_has_no_name(
    source: str, name: str | None, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "start_learnt", lambda: False)
    test = open_page("data")
    test.session_state[forms.WAITING] = source, ProjectSettings(name=name), {}, {}
    test.run()
    assert not test.exception, test.exception
    assert test.header[0].value == title
    assert test.button(key="leave-known")
