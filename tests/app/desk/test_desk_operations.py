"""Operations of a browser have one shape; anything else is refused by its field and never saved as item 0."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.app.desks import desk_sync, operation
from tests.databases import KINDS, database, new_project
from workbench.app.access import current
from workbench.app.desk import operations, routes, tokens
from workbench.errors import InputError
from workbench.sessions import Session

HUGE = "1" + "0" * 400


@pytest.fixture(params=KINDS)
def session(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Iterator[Session]:
    with database(request.param, tmp_path) as store:
        made = new_project(store)
        current.keep(made)
        yield made
        current.forget(made.id)


def sent(session: Session, *written: str) -> list[dict[str, Any]]:
    """Answers to operations, written as JSON, that are posted together: one each."""
    client = TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")
    whose = f'"person": "ann", "project": "{session.id}"'
    body = ", ".join(one.replace("WHOSE", whose) for one in written)
    answer = client.post(
        f"/api/desk/{session.id}/sync",
        content=f'{{"ops": [{body}], "want": 0, "have": []}}'.encode(),
        headers={"x-desk-token": tokens.issue(session.id, "ann"), "content-type": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    acks = answer.json()["acks"]
    assert len(acks) == len(written)
    return list(acks)


@pytest.mark.parametrize(
    "value", ["-5", '"7"', "NaN", "7.0", "true", "null", "[1]", HUGE, "1e400", '"\\ud800"']
)
def test_what_is_no_item_is_refused_and_never_saved_as_item_0(session: Session, value: str) -> None:
    acks = sent(
        session,
        f'{{"op": "a", "kind": "note", "item": {value}, "text": "x", WHOSE}}',
        f'{{"op": "b", "kind": "flag", "item": {value}, "on": true, WHOSE}}',
        f'{{"op": "c", "kind": "relabel", "items": [1, {value}], "class": "setosa", WHOSE}}',
        f'{{"op": "d", "kind": "clear", "items": [{value}], WHOSE}}',
        '{"op": "e", "kind": "note", "item": 3, "text": "kept", WHOSE}',
    )
    assert [ack["status"] for ack in acks] == ["refused"] * 4 + ["saved"]
    assert all("The field item" in ack["why"] for ack in acks[:4])
    state = session.state
    assert list(state.notes) == [3] and not state.flagged and not state.labels


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ('"op": "\\ud800"', "op"),
        ('"op": "a\\u0000b"', "op"),
        ('"op": ""', "op"),
        (f'"op": {HUGE}', "op"),
        ('"op": "x", "ms": NaN', "ms"),
        (f'"op": "x", "ms": {HUGE}', "ms"),
        ('"op": "x", "ms": "900"', "ms"),
        ('"op": "x", "class": null', "class"),
        ('"op": "x", "class": "\\ud800"', "class"),
        ('"op": "x", "ask": "a\\u0000"', "ask"),
        ('"op": "x", "ask": 5', "ask"),
        ('"op": "x", "dance": 1', "dance"),
        ('"op": "x", "\\ud800": 1', "ud800"),
        ('"op": "x", "kind": "dance"', "kind"),
        ('"op": "x", "kind": ["label"]', "kind"),
        ('"op": "x", "person": "bob"', "bob"),
        ('"op": "x", "project": "another"', "project"),
    ],
)
def test_a_field_of_another_shape_is_named(session: Session, fields: str, named: str) -> None:
    (card,) = desk_sync(session, want=1)["queue"]
    right = (
        f'"kind": "label", "ask": "{card["ask"]}", "item": {card["item"]}, "class": "setosa", "ms": 1, WHOSE'
    )
    # of two fields of one name JSON takes the last
    wrong, saved = sent(session, f"{{{right}, {fields}}}", f'{{"op": "y", {right}}}')
    assert wrong["status"] == "refused" and named in wrong["why"]
    assert saved == {"op": "y", "status": "saved", "why": ""}
    assert session.state.labels == {card["item"]: "setosa"}


def test_a_note_is_kept_without_what_no_database_takes(session: Session) -> None:
    (ack,) = sent(
        session,
        '{"op": "x", "kind": "note", "item": 3, "text": "half \\ud83d, nil \\u0000, \\ud83d\\ude00", WHOSE}',
    )
    assert ack["status"] == "saved"
    assert session.state.notes[3][0].text == "half \ufffd, nil \ufffd, \N{GRINNING FACE}"


def test_an_answer_about_another_item_than_its_question_is_refused(session: Session) -> None:
    card, other = desk_sync(session, want=2)["queue"]
    given = operation("label", card, **{"class": "setosa"}) | {"item": other["item"]}
    (ack,) = desk_sync(session, given)["acks"]
    assert ack["status"] == "refused" and str(card["item"]) in ack["why"] and not session.state.labels


def test_what_breaks_a_transaction_is_refused_alone(
    flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Session.apply

    def breaks(self: Session, given: Any) -> Any:
        if any(one.text == "odd" for one in given):
            raise OverflowError("no door is perfect")
        return plain(self, given)

    monkeypatch.setattr(Session, "apply", breaks)
    notes = [operation("note", item=4, text=text) for text in ("one", "odd", "two")]
    acks = desk_sync(flowers, *notes)["acks"]
    assert [ack["status"] for ack in acks] == ["saved", "refused", "saved"]
    assert [note.text for note in flowers.state.notes[4]] == ["one", "two"]


def test_a_request_of_another_shape_is_refused_by_its_field(flowers: Session) -> None:
    for wrong in ({"want": "7"}, {"have": "abc"}, {"have": [None]}, {"ops": {}}, {"want": -1}):
        with pytest.raises(InputError, match=f"The field {next(iter(wrong))} must be"):
            desk_sync(flowers, **wrong)
    for item in ("abc", -1, None, 1.5):
        with pytest.raises(InputError, match="The field item must be"):
            routes_look(flowers, item)


def routes_look(session: Session, item: Any) -> Any:
    from workbench.app.desk.routes import look

    return look(session.id, "ann", {"kind": "like", "item": item}, "token")


def test_every_kind_the_browser_sends_is_known() -> None:
    """The kinds in the scripts are those of the schema, and the other way round."""
    folder = Path(operations.__file__).parent
    scripts = "".join((folder / f"{name}.js").read_text() for name in ("parts", "desk", "review"))
    # only what goes to send() or change(), or is given back to be sent
    said = set(re.findall(r'(?:send\(|change\(|return )\{ kind: "(\w+)"', scripts))
    assert said == set(operations._KINDS), said ^ set(operations._KINDS)
