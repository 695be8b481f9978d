"""Instructions out of files of other programs, and out with the labels."""

import contextlib
import csv
import io
import json
import zipfile

import pytest
from PIL import Image

from tests.cli.calls import call, refused
from workbench.errors import InputError
from workbench.exchange.labels import export_labels
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.pools.instructions import carried_instructions, markdown_of, read_instructions
from workbench.sessions import Session
from workbench.sessions.instructions import examples_of_all


def png(colour="red"):
    out = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(out, "PNG")
    return out.getvalue()


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in files.items():
            packed.writestr(name.replace("__", "/"), data)
    return out.getvalue()


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    file = tmp_path / "pets.csv"
    file.write_text("id,text,size\n" + "".join(f"i{i},a text of number {i},{i}\n" for i in range(12)))
    made = Session.create(str(file), name="pets", classes=["cat", "dog"], annotator="ann")
    made.instructions.write("# Pets\n\n![a cat](cat.png)\n\nCats **purr**.", {"cat.png": png()})
    made.items.import_labels([(0, "cat"), (1, "dog")], "test")
    made.instructions.pick(0, "cat")
    return made


def test_html_becomes_markdown_and_nothing_in_it_can_run():
    page = (
        "<h2>Pets</h2><script>alert('a')</script><style>p{}</style><p onclick='x()'>A <b>cat</b> &amp; a dog"
        "<br>or <a href='javascript:x()'>none</a>, see <a href='https://example.org/x'>this</a></p>"
        "<ul><li>one</li><li>two</li></ul><ol><li>first</li><li>second</li></ol><iframe>no</iframe>"
    )
    assert markdown_of(page) == (
        "## Pets\n\nA **cat** & a dog  \nor none, see [this](https://example.org/x)\n\n- one\n- two\n\n"
        "1. first\n2. second"
    )


CONFIG = '<View><Header size="3" value="Cat &amp; dog?"/><Header value="$t"/></View>'
TASKS = [{"data": {"text": "a"}, "project": {"label_config": CONFIG}}]
CARD = "---\na: b\n---\n# Pets\n## Annotation guidelines\nLook.\n### More\nAt it.\n## Licence\nMIT"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.md", b"# Look\r\n\r\nAt it.", "# Look\n\nAt it."),
        ("a.html", b"<p>Look</p>", "Look"),
        ("p.json", json.dumps({"title": "x", "expert_instruction": "<p>Look</p>"}).encode(), "Look"),
        ("p.json", json.dumps(TASKS).encode(), "Cat & dog?"),
        ("config.xml", CONFIG.encode(), "Cat & dog?"),
        ("d.zip", zipped(**{"d__README.md": "---\na: b\n---\n# Pets\n\nBoth."}), "# Pets\n\nBoth."),
        ("d.zip", zipped(**{"README.md": CARD}), "Look.\n### More\nAt it."),
        ("d.zip", zipped(**{"README.md": "# x", "instructions.md": "Look."}), "Look."),
    ],
)
def test_what_a_file_says_of_how_to_label(name, data, text):
    assert read_instructions(data, name).text == text


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.md", b"  ", "holds no instructions"),
        ("a.csv", b"a,b", "no file of instructions"),
        ("a.json", b"[1, 2", "a.json"),
        ("a.md", b"![a](gone.png)", "not beside it: 'gone.png'"),
        ("a.zip", zipped(**{"instructions.md": "![a](../a.png)"}), "not beside it"),
    ],
)
def test_other_files_are_refused(name, data, why):
    with pytest.raises(InputError, match=why):
        read_instructions(data, name)


def test_a_project_of_a_dataset_begins_with_what_its_card_says(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    folder = tmp_path / "pets"
    folder.mkdir()
    rows = "file_name,label\n"
    for i in range(8):
        (folder / f"p{i}.png").write_bytes(png(("red", "blue")[i % 2]))
        rows += f"p{i}.png,{('cat', 'dog')[i % 2]}\n"
    (folder / "metadata.csv").write_text(rows)
    (folder / "README.md").write_text(
        "---\nlicense: mit\n---\n## Instructions\n![one](p0.png) ![x](no.png) Look."
    )
    made = Session.create(str(folder), annotator="ann")
    (name,) = made.state.pictures
    assert made.instructions.latest.text == f"![one](picture:{name}) x Look."
    assert made.instructions.latest.annotator == "source" and made.state.version_read("ann") == 0
    (folder / "README.md").write_text("## Instructions\n\n" + "Look.\n\n" * 4000)
    assert len(carried_instructions(str(folder)).text) < 20_000
    (folder / "README.md").write_text(
        "# Dataset Card for Pets\n\n- [Citation](#citation)\n\nSize: 84.13 MB\n"
    )
    assert carried_instructions(str(folder)) is None, "a card is about the data, not about how to label it"


def test_a_folder_that_is_no_dataset_says_nothing(tmp_path):
    (tmp_path / "README.md").write_text("My holiday.")
    (tmp_path / "a.png").write_bytes(png())
    assert carried_instructions(str(tmp_path)) is None


def test_a_bundle_has_them_for_people_and_for_opening(session, tmp_path):
    write_project_bundle(tmp_path / "out", session)
    (name,) = session.state.pictures
    text = (tmp_path / "out" / "instructions.md").read_text()
    assert f"![a cat](pictures/{name}.png)" in text and "**purr**" in text
    assert (tmp_path / "out" / "pictures" / f"{name}.png").read_bytes() == session.instructions.picture(
        name
    ).data
    book = list(csv.DictReader((tmp_path / "out" / "codebook.csv").open()))
    assert {row["class"]: row["examples"] for row in book} == {"cat": "i0", "dog": ""}
    assert "base64" not in (tmp_path / "out" / "events.csv").read_text()
    assert len((tmp_path / "out" / "events.csv").read_text()) < 20_000
    opened = Session.open(open_bundle(tmp_path / "out", name="again").id)
    assert opened.instructions.latest == session.instructions.latest and opened.instructions.picture(
        name
    ) == session.instructions.picture(name)
    assert examples_of_all(opened)["cat"][0] == examples_of_all(session)["cat"][0]
    told = read_instructions(str(tmp_path / "out"))
    assert list(told.pictures) == [f"pictures/{name}.png"]


@pytest.mark.parametrize("what", ["labels", "questions"])
@pytest.mark.parametrize("format", ["label-studio", "huggingface"])
def test_they_go_out_with_labels_and_come_in_again(session, format, what, tmp_path, capsys):
    if what == "questions":
        session.questions.add("urgent")
        session.question("urgent").items.label(0, "yes")
    data = export_labels(session, format, what)
    (name,) = session.state.pictures
    told = read_instructions(data, "labels.zip")
    assert told.text.startswith("# Pets") and list(told.pictures) == [f"pictures/{name}.png"]
    file = tmp_path / "labels.zip"
    file.write_bytes(data)
    other = Session.create(
        session.project.pool["name"], name="other", classes=["cat", "dog"], annotator="ben"
    )
    if what == "questions":
        other.questions.add("urgent")
    assert call("import", other.id, file, "--format", format) == 0
    assert "instructions were taken over" in capsys.readouterr().out
    assert other.instructions.latest.text == session.instructions.latest.text and other.state.n_labelled == 2


def test_the_command_prints_writes_and_picks(session, tmp_path, capsys):
    assert call("instructions", session.id) == 0
    said = capsys.readouterr().out
    assert "version 1 of 1, by ann" in said and "Cats **purr**." in said
    (tmp_path / "new.md").write_text("![dog](my%20dog.png) Dogs bark.")
    (tmp_path / "my dog.png").write_bytes(png("blue"))
    assert call("instructions", "pets", "--from", tmp_path / "new.md", "--example", "dog=i1") == 0
    assert "Dogs bark." in capsys.readouterr().out
    assert session.instructions.latest.version == 2 and examples_of_all(session)["dog"][0].picked
    assert call("instructions", "pets", "--version", "1", "--out", tmp_path / "out") == 0
    assert "purr" in (tmp_path / "out" / "instructions.md").read_text()
    assert len(list((tmp_path / "out" / "pictures").iterdir())) == 1
    capsys.readouterr()
    assert "no version 7" in refused(capsys, "instructions", "pets", "--version", "7")
    assert "no item 'i99'" in refused(capsys, "instructions", "pets", "--example", "dog=i99")
    twice = ("--example", "dog=i1", "--example", "dog=i2")
    assert "gives dog twice" in refused(capsys, "instructions", "pets", *twice)
    (tmp_path / "long.md").write_text("x" * 20_001)
    assert "20,001 characters" in refused(capsys, "instructions", "pets", "--from", tmp_path / "long.md")


def test_names_and_ids_of_examples_are_taken_as_they_are_written(tmp_path, monkeypatch):
    """A hyphen, a space, the word none and leading zeros belong to them; as settings they would mean more."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    file = tmp_path / "shop.csv"
    file.write_text("id,text\n" + "".join(f"{i:03},a text of number {i}\n" for i in range(12)))
    classes = ["t-shirt", "credit card", "none"]
    shop = Session.create(str(file), name="shop", classes=classes, annotator="ann")
    shop.items.import_labels([(7, "t-shirt"), (8, "credit card"), (9, "none")], "test")
    examples = [f"{name}={i:03}" for i, name in enumerate(classes, 7)]
    assert call("instructions", "shop", *(word for one in examples for word in ("--example", one))) == 0
    picked = examples_of_all(Session.open(shop.id))
    assert {name: [one.item for one in picked[name] if one.picked] for name in classes} == {
        "t-shirt": [7],
        "credit card": [8],
        "none": [9],
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("readme.md", "# instructions" + " " * 200_000 + "x"),
        ("readme.md", "# a\n" + "[More Information Needed" * 8_000),
        ("a.html", "<p>" + "<a " * 60_000),
        ("a.html", "<p>" + "<a b='" * 30_000),
        ("a.html", "<ul><li>" * 25_000),
        ("config.xml", "<Header " * 25_000),
        ("config.xml", "<Header value" + " " * 200_000),
    ],
)
def test_no_page_takes_more_time_than_its_length_asks_for(name, text):
    # the time is tenths of a second: what looks for an end once more at each place would take many minutes
    with contextlib.suppress(InputError):
        read_instructions(text.encode(), name)
