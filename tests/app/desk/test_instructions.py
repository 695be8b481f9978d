"""Instructions at the desk: drawn as text alone, new to whoever has not read them, pictures with a token."""

import io
import json

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.desks import answer_next, desk_sync, operation
from workbench.app.access import current
from workbench.app.desk import instruction_sheet, routes, tokens
from workbench.app.desk.routes import instructions
from workbench.documents.projects import check_event
from workbench.errors import InputError
from workbench.sessions import ArrayOracle, Session
from workbench.sessions.instructions import examples_of_all


def png():
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(out, "PNG")
    return out.getvalue()


def said(found):
    """All the words of nodes, one after the other."""
    if isinstance(found, list):
        return "".join(map(said, found))
    inner = [found.get("text", "")] + [
        said(found[k]) for k in ("runs", "blocks", "items", "head", "rows") if k in found
    ]
    return "".join(inner)


def test_markdown_becomes_nodes():
    text = (
        "# Pets\n\nA **bold *and soft* cat**, `x < y`,\ngoes [on](https://a.b/c_d).  \nEnd_of_it.\n\n"
        "1. one\n   - below\n2. two\n\n> said\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n```\n<b>\n```\n---"
    )
    found = instruction_sheet.nodes(text, {})
    kinds = [one["kind"] for one in found]
    assert kinds == ["heading", "paragraph", "list", "quote", "table", "code", "rule"]
    runs = found[1]["runs"]
    assert [run["kind"] for run in runs] == [
        "text",
        "strong",
        "text",
        "code",
        "text",
        "link",
        "text",
        "break",
        "text",
    ]
    assert runs[1]["runs"][1] == {"kind": "em", "runs": [{"kind": "text", "text": "and soft"}]}
    assert runs[-1]["text"] == "End_of_it." and runs[5]["to"] == "https://a.b/c_d"
    assert [one["kind"] for one in found[2]["items"][0]] == ["paragraph", "list"] and len(
        found[2]["items"]
    ) == 2
    assert said(found[4]["rows"]) == "12" and found[5]["text"] == "<b>"


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,AAAA)",
        "![x](javascript:alert(1))",
        "<iframe src='//a'>",
        "[x](vbscript:a)",
    ],
)
def test_nothing_that_could_run_is_more_than_words(evil):
    found = instruction_sheet.nodes(evil, {})
    assert [one["kind"] for one in found] == ["paragraph"]
    assert {run["kind"] for run in found[0]["runs"]} == {"text"}


@pytest.mark.parametrize("name", ["a-petal.png", "Blütenblatt.png", "leaves/one_(2).png"])
def test_a_picture_that_is_not_stored_yet_is_drawn_under_the_name_of_its_file(name):
    runs = instruction_sheet.nodes(f"![a petal]({name})", {name: "data:image/png;base64,AA"})[0]["runs"]
    assert runs == [{"kind": "picture", "src": "data:image/png;base64,AA", "alt": "a petal"}]


def test_pictures_are_the_projects_own_and_nothing_is_fetched_from_elsewhere():
    text = "![a](picture:0123456789abcdef) ![b](https://example.org/b.png) ![c](picture:ffffffffffffffff)"
    runs = instruction_sheet.nodes(text, {"picture:0123456789abcdef": "/told/1"})[0]["runs"]
    assert runs[0] == {"kind": "picture", "src": "/told/1", "alt": "a"}
    assert [run["kind"] for run in runs] == ["picture", "text", "link", "text"] and runs[-1]["text"] == " c"


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 19_990 + "b",
        "# " + "#" * 19_990 + "x",
        "a|b\n" + "|-" * 9_900 + "x",
        "*" * 9_990 + "a" + "*" * 9_990,
        "> - " * 4_900 + "x",
        "[" * 9_000 + "a" + "](https://a.b)" * 700,
    ],
    ids=["spaces", "hashes", "bars", "stars", "quotes", "links"],
)
def test_no_text_of_twenty_thousand_characters_holds_the_server(text):
    # the time is seconds at worst: a pattern that tries all ways to cut these would take hours
    json.dumps(instruction_sheet.nodes(text, {}))


def test_addresses_that_stand_alone_are_links():
    runs = instruction_sheet.nodes("See <https://a.b> or http://c.d/e_f_g.", {})[0]["runs"]
    assert [run.get("to") for run in runs] == [None, "https://a.b", None, "http://c.d/e_f_g", None]


def test_headings_leave_no_step_out():
    assert [one["level"] for one in instruction_sheet.nodes("### a\n##### b\n# c\n### d", {})] == [1, 2, 1, 2]


def test_the_desk_says_what_is_new_to_a_person(flowers):
    assert desk_sync(flowers)["numbers"]["told"] == 0
    flowers.as_annotator("root").instructions.write("# Rules\n\nPetals.\n\nSepals.")
    numbers = desk_sync(flowers)["numbers"]
    assert (numbers["told"], numbers["read"]) == (1, 0)
    reply = desk_sync(flowers, operation("read", version=1))
    assert [ack["status"] for ack in reply["acks"]] == ["saved"] and reply["numbers"]["read"] == 1
    flowers.as_annotator("root").instructions.write("# Rules\n\nPetals, from above.\n\nSepals.")
    sheet = instructions(flowers.id, "ann", {}, "token")
    assert (sheet["version"], sheet["read"], sheet["author"]) == (2, 1, "root")
    assert [one["fresh"] for one in sheet["blocks"]] == [False, True, False]
    assert not any("fresh" in one for one in instructions(flowers.id, "new", {}, "token")["blocks"])
    # what is sent again after a lost reply is recorded once
    again = operation("read", version=2)
    desk_sync(flowers, again)
    desk_sync(flowers, again)
    assert sum(event.kind == "instructions-read" for event in flowers.log.events) == 2
    desk_sync(flowers, operation("read", version=9))
    assert flowers.state.version_read("ann") == 2


def test_examples_are_kept_at_the_desk_and_never_shown_while_labels_are_checked(flowers):
    oracle = ArrayOracle(flowers.pool)
    for _ in range(8):
        answer_next(flowers, oracle)
    flowers.classes.describe("setosa", guidance="small ones")
    sheet = instructions(flowers.id, "ann", {}, "token")
    (setosa,) = [one for one in sheet["classes"] if one["name"] == "setosa"]
    assert setosa["help"] == "small ones" and setosa["examples"] and not setosa["examples"][0]["picked"]
    item = setosa["examples"][0]["item"]
    about = {"item": item, "class": "setosa"}
    assert [a["status"] for a in desk_sync(flowers, operation("example", on=True, **about))["acks"]] == [
        "saved"
    ]
    assert examples_of_all(flowers)["setosa"][0] == (item, True)
    wrong = desk_sync(flowers, operation("example", on=True, item=item, **{"class": "virginica"}))["acks"]
    assert wrong[0]["status"] == "refused" and "labelled 'setosa'" in wrong[0]["why"]
    desk_sync(flowers, operation("example", on=False, **about))
    assert not examples_of_all(flowers)["setosa"][0].picked
    blind = instructions(flowers.id, "ann", {"mode": "check"}, "token")
    assert not any(one["examples"] for one in blind["classes"])


@pytest.mark.parametrize("version", [-1, "1", True, None, 2.0])
def test_a_version_that_is_none_is_refused(flowers, version):
    (ack,) = desk_sync(flowers, operation("read", version=version))["acks"]
    assert ack["status"] == "refused" and "version" in ack["why"]


def test_a_picture_is_for_whoever_may_look_at_the_project(flowers):
    flowers.instructions.write("![a](a.png)", {"a.png": png()})
    (name,) = flowers.state.pictures
    client = TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")
    token = tokens.issue(flowers.id, "ann")
    held = tokens.bearer(token)
    key = tokens.for_pictures(held)
    where = f"/api/desk/{flowers.id}/told/{name}?k="
    found = client.get(where + key)
    assert found.status_code == 200 and found.content == flowers.instructions.picture(name).data
    assert (
        found.headers["content-type"] == "image/png" and found.headers["x-content-type-options"] == "nosniff"
    )
    other = Session.create("iris", name="other", annotator="ann")
    current.keep(other)
    for address, status in (
        (where + token, 401),
        (where, 401),
        (where.replace(name, "0" * 16) + key, 404),
        (f"/api/desk/{other.id}/told/{name}?k={key}", 401),
    ):
        assert client.get(address).status_code == status
    sheet = client.post(
        f"/api/desk/{flowers.id}/instructions",
        content=json.dumps({}),
        headers={"x-desk-token": token, "content-type": "application/json"},
    ).json()
    assert sheet["blocks"][0]["runs"][0]["src"] == f".{where}{key}"


def test_a_bundles_picture_is_what_it_says(flowers):
    flowers.instructions.write("![a](a.png)", {"a.png": png()})
    (event,) = flowers.state.pictures.values()
    check_event("picture-kept", dict(event.payload), "a bundle")
    for wrong in ({"data": "PHNjcmlwdD4="}, {"data": "%"}, {"picture": "0" * 16}, {"media": "text/html"}):
        with pytest.raises(InputError):
            check_event("picture-kept", {**event.payload, **wrong}, "a bundle")


PAGE = """
from workbench.app.access import current
from workbench.app.label import instructing
session = current.opened({project!r}).as_annotator("ann")
import streamlit as st
if "begun" not in st.session_state:
    st.session_state["begun"] = True
    instructing.begin(session)
if st.session_state.get(instructing.OPEN):
    instructing.dialog(session)
"""


def test_the_page_writes_a_version_and_says_what_is_wrong(flowers):
    page = AppTest.from_string(PAGE.format(project=flowers.id), default_timeout=600).run()
    assert not page.exception and page.text_area[0].value == ""
    page.text_area[0].set_value("![a](gone.png)").run()
    page.button(key="instructions-save").click().run()
    assert "are not there" in page.error[0].value and flowers.instructions.latest is None
    page.text_area[0].set_value("Look at the petals.").run()
    flowers.as_annotator("ben").instructions.write("Mine.")
    page.button(key="instructions-save").click().run()
    assert "ben wrote version 1 meanwhile" in page.error[0].value
    assert page.text_area[0].value == "Look at the petals.", "what was typed is not lost"
    page.button(key="instructions-anew").click().run()
    assert page.text_area[0].value == "Mine."
    page.text_area[0].set_value("Ours.").run()
    page.button(key="instructions-save").click().run()
    assert flowers.instructions.latest.text == "Ours." and flowers.instructions.latest.version == 2
