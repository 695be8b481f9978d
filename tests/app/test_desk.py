"""The server's side of the desk: operations in, acknowledgements and cards out, and who may ask."""

import asyncio
import base64
import io
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from workbench.app import current
from workbench.app.desk import routes, tokens
from workbench.app.desk.cards import encoded, face, neighbour_faces, thumbnail_face
from workbench.app.desk.routes import class_keys, grid, keys, look, picture, sync
from workbench.app.review import summary
from workbench.errors import InputError, StorageError
from workbench.sessions import ArrayOracle, Session

_NUMBERS = count()


def desk_sync(session: Session, *ops: dict[str, Any], person: str = "ann", **body: Any) -> dict[str, Any]:
    given = {"ops": list(ops), "want": 4, "have": [], "screen": None, "model": None} | body
    return sync(session.id, person, given, "token")


def operation(kind: str, card: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    about = {} if card is None else {"ask": card["ask"], "item": card["item"]}
    return {"op": f"op-{next(_NUMBERS)}", "kind": kind, "ms": 900, **about, **more}


def answer_next(session: Session, oracle: Callable[[int], str]) -> None:
    """Answer what the desk shows first, as a person would."""
    card = desk_sync(session)["queue"][0]
    reply = desk_sync(session, operation("label", card, **{"class": oracle(card["item"])}))
    assert [ack["status"] for ack in reply["acks"]] == ["saved"], reply["acks"]


@pytest.fixture
def flowers(home: Path) -> Session:
    session = Session.create("iris", annotator="ann")
    current.keep(session)
    return session


def fitted(session: Session, n: int = 8) -> Session:
    oracle = ArrayOracle(session.pool)
    for _ in range(n):
        answer_next(session, oracle)
    session.refit()
    return session


def table(tmp_path: Path, classes: list[str], rows: int = 60) -> Session:
    path = tmp_path / "own.csv"
    path.write_text("a\n" + "".join(f"{i}.5\n" for i in range(rows)))
    session = Session.create(str(path), classes=classes, annotator="ann")
    current.keep(session)
    return session


# --- operations ---------------------------------------------------------------------------------


def test_an_answer_is_stored_once_and_the_next_cards_come(flowers: Session) -> None:
    first = desk_sync(flowers)
    assert len({card["item"] for card in first["queue"]}) == 4
    given = operation("label", first["queue"][0], **{"class": "versicolor"})
    have = [card["ask"] for card in first["queue"][1:]]
    reply = desk_sync(flowers, given, have=have, want=1)
    assert reply["acks"] == [{"op": given["op"], "status": "saved", "why": ""}]
    assert len(reply["queue"]) == 1 and reply["queue"][0]["ask"] not in have
    assert reply["numbers"]["labelled"] == 1 and reply["numbers"]["undoable"]
    again = desk_sync(flowers, given, have=have, want=0)
    assert again["acks"][0]["status"] == "saved"
    assert flowers.state.labels == {first["queue"][0]["item"]: "versicolor"}
    labels = [e for e in flowers.events if e.kind == "label"]
    assert len(labels) == 1 and labels[0].payload["seconds"] == 0.9


def test_undo_names_what_it_takes_and_the_item_comes_back_first(flowers: Session) -> None:
    card = desk_sync(flowers)["queue"][0]
    given = operation("label", card, **{"class": "setosa"})
    taken_back = operation("undo", target=given["op"])
    reply = desk_sync(flowers, given, taken_back)
    assert [ack["status"] for ack in reply["acks"]] == ["saved", "saved"]
    assert flowers.state.labels == {}
    assert reply["queue"][0]["item"] == card["item"] and reply["queue"][0]["role"] == "again"
    # sent again it takes nothing more; one that is no longer the last is refused
    assert desk_sync(flowers, taken_back)["acks"][0]["status"] == "saved"
    other = operation("label", reply["queue"][1], **{"class": "setosa"})
    desk_sync(flowers, other)
    late = desk_sync(flowers, operation("undo", target=given["op"]))["acks"][0]
    assert late["status"] == "conflict" and len(flowers.state.labels) == 1


def test_an_item_taken_back_and_answered_before_its_new_question_arrives(flowers: Session) -> None:
    card = desk_sync(flowers)["queue"][0]
    given = operation("label", card, **{"class": "setosa"})
    new = {"op": "anew", "kind": "label", "ask": None, "item": card["item"], "class": "virginica"}
    reply = desk_sync(flowers, given, operation("undo", target=given["op"]), new)
    assert [ack["status"] for ack in reply["acks"]] == ["saved"] * 3
    assert flowers.state.labels == {card["item"]: "virginica"}


def test_skip_unsure_flag_note_and_asking_again(flowers: Session) -> None:
    cards = desk_sync(flowers)["queue"]
    desk_sync(
        flowers,
        operation("skip", cards[0]),
        operation("unsure", cards[1]),
        operation("flag", item=cards[2]["item"], on=True),
        operation("note", item=cards[2]["item"], text="look at the stem"),
    )
    state = flowers.state
    assert cards[0]["item"] in state.skipped and cards[1]["item"] in state.unsure
    assert cards[2]["item"] in state.flagged and state.notes[cards[2]["item"]][0].text == "look at the stem"
    desk_sync(flowers, operation("requeue"))
    waiting = {cards[0]["item"], cards[1]["item"]}
    assert waiting <= {card["item"] for card in desk_sync(flowers, want=8)["queue"]}


def test_what_cannot_be_done_is_said_and_the_rest_is_stored(flowers: Session) -> None:
    cards = desk_sync(flowers)["queue"]
    reply = desk_sync(
        flowers,
        operation("label", cards[0], **{"class": "no such class"}),
        operation("dance", cards[0]),
        operation("note", item=10**9, text="x"),
        operation("label", cards[1], **{"class": "setosa"}),
        {"op": 5},
        "nonsense",
    )
    assert [ack["status"] for ack in reply["acks"]] == ["refused", "refused", "refused", "saved"]
    assert all(ack["why"] for ack in reply["acks"][:3])
    assert list(flowers.state.labels.values()) == ["setosa"]


def test_two_people_never_get_one_item_and_undo_their_own(flowers: Session) -> None:
    ann, bob = desk_sync(flowers)["queue"], desk_sync(flowers, person="bob")["queue"]
    assert not {card["item"] for card in ann} & {card["item"] for card in bob}
    desk_sync(flowers, operation("label", ann[0], **{"class": "setosa"}))
    desk_sync(flowers, operation("label", bob[0], **{"class": "virginica"}), person="bob")
    desk_sync(flowers, operation("undo", target=None))
    assert flowers.state.labels == {bob[0]["item"]: "virginica"}
    assert {vote.annotator for vote in flowers.state.standing.values()} == {"bob"}


def test_second_opinions_and_second_looks_stay_on_the_desk(home: Path) -> None:
    session = Session.create("iris", overlap=1.0, people=2, annotator="ann")
    current.keep(session)
    first = desk_sync(session)["queue"][0]
    desk_sync(session, operation("label", first, **{"class": "setosa"}))
    bobs = desk_sync(session, person="bob")["queue"]
    mine = next(card for card in bobs if card["item"] == first["item"])
    have = [card["ask"] for card in bobs]
    later = desk_sync(session, person="bob", have=have, screen=have[0], want=0)
    assert mine["role"] == "overlap" and not later["gone"]
    given = operation("label", mine, **{"class": "virginica"})
    assert desk_sync(session, given, person="bob", have=have)["acks"][0]["status"] == "saved"
    assert session.state.undecided == {first["item"]}
    session.look_again(1)
    again = desk_sync(session)["queue"][0]
    assert again["role"] == "second"
    assert not desk_sync(session, have=[again["ask"]], screen=again["ask"], want=0)["gone"]


def test_cards_of_an_older_model_are_given_back_but_not_the_one_on_screen(flowers: Session) -> None:
    fitted(flowers)
    before = desk_sync(flowers)
    have = [card["ask"] for card in before["queue"]]
    answer = operation("label", before["queue"][0], **{"class": "setosa"})
    desk_sync(flowers, answer, have=have[1:], screen=have[1], want=0, model=before["numbers"]["model"])
    flowers.refit()
    after = desk_sync(flowers, have=have[1:], screen=have[1], want=1, model=before["numbers"]["model"])
    assert not after["gone"] and have[1] not in after["released"]
    kept_for_measuring = {c["ask"] for c in before["queue"] if c["role"] == "evaluation"}
    assert set(have[2:]) - kept_for_measuring <= set(after["released"])
    # one that came to the screen meanwhile stays there: it is not called gone later, and its answer is taken
    old = next(c for c in before["queue"][2:] if c["ask"] in after["released"])
    later = desk_sync(flowers, have=[old["ask"]], screen=old["ask"], want=0, model=after["numbers"]["model"])
    assert old["ask"] not in later["gone"] + later["released"]
    # a reload shows it again, and nobody else is asked about it
    assert desk_sync(flowers)["queue"][0]["item"] == old["item"]
    assert old["item"] not in {card["item"] for card in desk_sync(flowers, person="bob", want=8)["queue"]}
    given = desk_sync(flowers, operation("label", old, **{"class": "setosa"}), want=0)
    assert [ack["status"] for ack in given["acks"]] == ["saved"]
    assert len(after["queue"]) >= 1 and after["numbers"]["model"] == before["numbers"]["model"] + 1


def test_a_grid_without_a_model_says_what_it_waits_for(flowers: Session) -> None:
    with pytest.raises(InputError, match="label items of two classes first"):
        grid(flowers.id, "ann", {"n": 6}, "token")
    for item, name in zip(flowers.pool.trainable[:2].tolist(), flowers.classes, strict=False):
        flowers.label_item(item, name)
    with pytest.raises(InputError, match="the first fit is under way"):
        grid(flowers.id, "ann", {"n": 6}, "token")


def test_a_grid_is_confirmed_as_one_event_without_the_wrong_ones(flowers: Session) -> None:
    fitted(flowers, 10)
    shown = grid(flowers.id, "ann", {"n": 6}, "token")
    assert 2 <= len(shown["items"]) <= 6
    asks = [card["ask"] for card in shown["items"]]
    before = dict(flowers.state.labels)
    given = operation("grid", asks=asks[1:], rejected=asks[:1], **{"class": shown["class"]})
    assert desk_sync(flowers, given)["acks"][0]["status"] == "saved"
    new = {i: name for i, name in flowers.state.labels.items() if i not in before}
    assert new == {card["item"]: shown["class"] for card in shown["items"][1:]}
    desk_sync(flowers, operation("undo", target=given["op"]))
    assert dict(flowers.state.labels) == before


# --- cards --------------------------------------------------------------------------------------


def test_a_card_says_why_what_the_model_thinks_and_what_is_near(flowers: Session) -> None:
    fitted(flowers)
    cards = [c for c in desk_sync(flowers, want=8)["queue"] if c["role"] == "policy"]
    assert cards
    for card in cards:
        assert card["why"] and card["face"]["kind"] == "row"
        assert card["guess"][0][0] == card["guess_order"][0]
        assert [p for _, p in card["guess"]] == sorted((p for _, p in card["guess"]), reverse=True)
        assert len(card["near"]) == 5 and {one["class"] for one in card["near"]} <= set(flowers.classes)
        assert all(0.0 <= place <= 1.0 for _, _, place in card["face"]["rows"])
        # beside it stand the cells that differ most, not whole rows
        assert all(len(one["face"]["rows"]) <= 3 for one in card["near"])


def test_empty_cells_say_so_and_what_the_model_does_not_see_is_no_difference(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    lines = [f"n{i},{'' if i % 5 == 1 else i},{i % 7},{'' if i % 2 else 'far'},x{i % 3}" for i in range(30)]
    path.write_text("name,age,a,place,b\n" + "\n".join(lines) + "\n", encoding="utf-8")
    uses = {"name": "leave out", "age": "number", "a": "number", "place": "category", "b": "category"}
    session = Session.create(str(path), pool_options={"columns": uses}, classes=["low", "high"])
    shown = {name: (value, place) for name, value, place in face(session.pool, 1, "")["rows"]}
    assert shown["name"] == ("n1", None) and shown["age"] == ("", None) and shown["place"] == ("", None)
    assert shown["a"][1] is not None
    beside = neighbour_faces(session.pool, [2], 1, "")[0]["rows"]
    assert "name" not in {name for name, _, _ in beside}
    assert {value for name, value, _ in beside if name == "age"} <= {"2 (here empty)"}
    assert {value for name, value, _ in beside if name == "place"} == {"far (here empty)"}
    # a long text of the item on the stage is not said again
    session.pool.items.cells["place"][1] = "far from here, beyond the second hill"
    assert [v for n, v, _ in neighbour_faces(session.pool, [2], 1, "")[0]["rows"] if n == "place"] == ["far"]
    tile = thumbnail_face(session.pool, 1, "")
    assert [name for name, _, _ in tile["rows"]][-1] == "name" and tile["more"] == 0
    assert "age empty" in summary(session.pool, 1)


def test_the_column_that_names_an_item_is_its_title_and_not_said_again(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = [f"n{i},{i % 7},{i * 3 % 30}" for i in range(30)]
    path.write_text("name,a,number\n" + "\n".join(lines) + "\n", encoding="utf-8")
    for use, shown in (("id", ["a", "number"]), ("leave out", ["name", "a", "number"])):
        uses = {"name": use, "a": "number", "number": "leave out"}
        session = Session.create(str(path), pool_options={"columns": uses}, classes=["low", "high"])
        current.keep(session)
        cards = desk_sync(session, want=8)["queue"]
        # a number that is the row's own by chance is no name of it
        assert all(sorted(name for name, _, _ in c["face"]["rows"]) == sorted(shown) for c in cards), cards


def test_of_an_item_of_5000_columns_a_part_is_shown_and_the_rest_counted(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.npz"
    np.savez(path, X=np.random.default_rng(0).normal(size=(8, 5_000)))
    session = Session.create(str(path), classes=["low", "high"])
    current.keep(session)
    shown = face(session.pool, 1, "")
    assert len(shown["rows"]) + shown["more"] == 5_000 and shown["more"] > 4_000
    tile = thumbnail_face(session.pool, 1, "")
    assert len(tile["rows"]) + tile["more"] == 5_000
    assert len(json.dumps(desk_sync(session)["queue"])) < 100_000
    # those beside it are compared in every column
    assert neighbour_faces(session.pool, [2], 1, "")[0]["same"] == 0


def test_items_drawn_for_measuring_show_no_guess(home: Path, tmp_path: Path) -> None:
    session = table(tmp_path, ["low", "high"])
    for _ in range(20):
        card = desk_sync(session)["queue"][0]
        name = "low" if float(session.pool.features[card["item"], 0]) < 30 else "high"
        desk_sync(session, operation("label", card, **{"class": name}))
        if len(session.state.labels) == 10:
            session.refit()
    measured = [c for c in desk_sync(session, want=12)["queue"] if c["role"] == "evaluation"]
    assert all("guess" not in card and "near" not in card for card in measured)
    assert session.state.evaluation


def test_a_photo_is_decoded_when_the_browser_asks_and_at_the_size_it_asks_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    from workbench.pools.formats.images import Photos

    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(4):
        small = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8))
        small.resize((2000, 1500)).save(tmp_path / "photos" / f"{i}.jpg")
    shapes = {"features": "shapes"}
    session = Session.create(
        str(tmp_path / "photos"), pool_options=shapes, classes=["a", "b"], annotator="ann"
    )
    decoded = []
    whole = Photos.__getitem__
    monkeypatch.setattr(
        Photos, "__getitem__", lambda self, at: decoded.append((at, self.side)) or whole(self, at)
    )
    reply = sync(session.id, "ann", {"want": 4}, "token")
    faces = [card["face"] for card in reply["queue"]]
    assert len(faces) == 4 and decoded == []
    assert all(face["src"].endswith("side=1400") and not face["large"].endswith("1400") for face in faces)
    octets, media = picture(session.id, 0, 1400)
    shown = Image.open(io.BytesIO(octets))
    assert (shown.size, media, decoded) == ((1400, 1050), "image/jpeg", [(0, 1400)])
    # the same picture, whichever way it was made smaller
    there = np.asarray(Image.open(tmp_path / "photos" / "0.jpg").resize(shown.size), dtype=float)
    assert np.abs(np.asarray(shown, dtype=float) - there).mean() < 3
    assert Image.open(io.BytesIO(picture(session.id, 0)[0])).size == (2000, 1500)


def test_pictures_travel_in_the_card_or_are_fetched(home: Path) -> None:
    session = Session.create("digits", annotator="ann")
    current.keep(session)
    card = desk_sync(session)["queue"][0]
    kind, _, octets = card["face"]["src"].partition(",")
    assert kind == "data:image/png;base64"
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(octets))))
    np.testing.assert_array_equal(shown, session.pool.items.show(card["item"]).image)
    octets, media = picture(session.id, card["item"])
    assert media == "image/png" and np.asarray(Image.open(io.BytesIO(octets))).shape == shown.shape
    with pytest.raises(InputError, match="no picture"):
        picture(session.id, 10**6)


def test_images_of_any_range_become_bytes() -> None:
    for image in (np.full((3, 4), 0.5), np.full((3, 4), 128, np.uint8), np.full((3, 4, 3), 200.0)):
        assert np.asarray(Image.open(io.BytesIO(encoded(image)))).shape == image.shape


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "**bold** :red[x] $y$ `z`", "<b>a/b</b> \N{HIBISCUS} " * 25]
)
def test_odd_class_names_travel_as_they_are(home: Path, tmp_path: Path, name: str) -> None:
    name = name.strip()[:300].strip()
    session = table(tmp_path, [name, "other"])
    reply = desk_sync(session)
    assert [one["name"] for one in reply["classes"]] == [name, "other"]
    given = operation("label", reply["queue"][0], **{"class": name})
    assert desk_sync(session, given)["acks"][0]["status"] == "saved"


def test_a_class_of_one_letter_is_its_own_key_and_forty_have_none(home: Path, tmp_path: Path) -> None:
    classes, commands = class_keys(table(tmp_path, ["a", "s"]))
    assert [one["key"] for one in classes] == ["a", "s"]
    assert commands["skip"] == "Shift+s"
    classes, _ = class_keys(table(tmp_path, [f"kind {i}" for i in range(40)]))
    assert {one["key"] for one in classes} == {""}


def test_a_pool_of_two_features_shows_its_plane(home: Path) -> None:
    session = Session.create("three-gaussians", annotator="ann")
    current.keep(session)
    reply = desk_sync(session)
    assert reply["plane"] is not None and len(reply["plane"]["points"]) > 100
    assert all(0.0 <= value <= 1.0 for value in reply["queue"][0]["at"])


# --- looking back, finding, keys -----------------------------------------------------------------


def test_ones_own_answers_are_looked_at_and_corrected(flowers: Session) -> None:
    cards = desk_sync(flowers)["queue"]
    desk_sync(flowers, operation("label", cards[0], **{"class": "setosa"}), operation("unsure", cards[1]))
    bob = desk_sync(flowers, person="bob")["queue"][0]
    desk_sync(flowers, operation("label", bob, **{"class": "virginica"}), person="bob")
    seen = look(flowers.id, "ann", {"kind": "history"}, "token")["items"]
    assert [(one["item"], one["kind"], one["class"]) for one in seen] == [
        (cards[1]["item"], "unsure", ""),
        (cards[0]["item"], "label", "setosa"),
    ]
    given = operation("correct", item=cards[0]["item"], **{"class": "versicolor"})
    assert desk_sync(flowers, given)["acks"][0]["status"] == "saved"
    assert flowers.state.labels[cards[0]["item"]] == "versicolor"
    late = operation("correct", item=bob["item"], **{"class": "setosa"})
    assert desk_sync(flowers, late)["acks"][0]["status"] == "refused"


def test_found_items_are_asked_about_next_and_the_waiting_cards_given_back(
    home: Path, tmp_path: Path
) -> None:
    session = table(tmp_path, ["low", "high"])
    before = desk_sync(session)
    have = [card["ask"] for card in before["queue"]]
    found = look(session.id, "ann", {"kind": "find", "words": "A:17.5"}, "token")
    assert found["total"] == 1 and found["open"] == [17] and found["items"][0]["face"]["kind"] == "row"
    near = look(session.id, "ann", {"kind": "like", "item": 17, "n": 4}, "token")
    assert {one["item"] for one in near["items"]} == {15, 16, 18, 19}
    reply = desk_sync(
        session, operation("want", items=[17, 40], text="search: 17.5"), have=have, screen=have[0], want=0
    )
    assert set(have[1:]) <= {
        *reply["released"],
        *(c["ask"] for c in before["queue"] if c["role"] == "evaluation"),
    }
    assert {17, 40} <= {card["item"] for card in reply["queue"]} | {before["queue"][0]["item"]}
    assert "your choice" in {card["badge"] for card in reply["queue"]}
    for words in ("", "a " * 20):
        with pytest.raises(InputError):
            look(session.id, "ann", {"kind": "find", "words": words}, "token")


def test_keys_are_a_persons_own_in_any_browser(flowers: Session) -> None:
    assert keys(flowers.id, "ann", {"keys": {"skip": "x"}}, "token")["commands"]["skip"] == "x"
    assert desk_sync(flowers)["commands"]["skip"] == "x"
    assert desk_sync(flowers, person="bob")["commands"]["skip"] == "s"
    for wrong in ({"skip": "u"}, {"skip": "F13"}, {"dance": "x"}, {"skip": 5}):
        with pytest.raises(InputError):
            keys(flowers.id, "ann", {"keys": wrong}, "token")
    assert desk_sync(flowers)["commands"]["skip"] == "x"
    assert keys(flowers.id, "ann", {}, "token")["commands"]["skip"] == "s"


def test_a_second_look_is_blind_and_a_flag_comes_with_the_card(flowers: Session) -> None:
    fitted(flowers)
    flowers.look_again(2)
    second = [card for card in desk_sync(flowers)["queue"] if card["role"] == "second"]
    assert len(second) == 2 and not any("guess" in card or "near" in card for card in second)
    item = second[0]["item"]
    desk_sync(flowers, operation("flag", item=item, on=True))
    assert next(card for card in desk_sync(flowers)["queue"] if card["item"] == item)["flag"]
    desk_sync(flowers, operation("flag", item=item, on=False))
    assert item not in flowers.state.flagged


# --- who may ask --------------------------------------------------------------------------------


def test_a_token_is_for_one_project_one_person_and_half_a_day(home: Path) -> None:
    token = tokens.issue("p", "ann", now=1000.0)
    held = tokens.bearer(token, now=1000.0 + 11 * 3600)
    assert held is not None and (held.project, held.person) == ("p", "ann")
    assert tokens.bearer(token, now=1000.0 + 13 * 3600) is None
    assert tokens.bearer(token[:-2] + "xx", now=1000.0) is None
    body, _, signature = token.partition(".")
    forged = base64.urlsafe_b64encode(json.dumps(["p", "bob", 10**12]).encode()).decode().rstrip("=")
    assert tokens.bearer(f"{forged}.{signature}", now=1000.0) is None
    assert all(tokens.bearer(wrong) is None for wrong in ("", ".", body, "é.é", "a.b.c"))
    assert (home / "desk.key").stat().st_mode & 0o077 == 0


@pytest.fixture
def client(flowers: Session) -> TestClient:
    return TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")


def post(client: TestClient, session: Session, **headers: str) -> Any:
    given = {"x-desk-token": tokens.issue(session.id, "ann"), "content-type": "application/json"} | headers
    body = json.dumps({"ops": [], "want": 1, "have": []})
    return client.post(f"/api/desk/{session.id}/sync", content=body, headers=given)


def test_the_page_itself_is_answered(client: TestClient, flowers: Session) -> None:
    answered = post(client, flowers, origin="http://localhost:8501", **{"sec-fetch-site": "same-origin"})
    assert answered.status_code == 200 and len(answered.json()["queue"]) == 1
    assert answered.headers["cache-control"] == "no-store"


def test_a_fit_that_an_answer_starts_is_of_whoever_answered(
    client: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(current, "keep_fitting", lambda session: started.append(session.annotator))
    assert post(client, flowers, **{"x-desk-token": tokens.issue(flowers.id, "bob")}).status_code == 200
    assert started == ["bob"]


def test_a_tab_that_closes_while_it_sends_is_no_fault_of_the_server(
    flowers: Session, caplog: pytest.LogCaptureFixture
) -> None:
    token = tokens.issue(flowers.id, "ann")
    headers = {"x-desk-token": token, "content-type": "application/json", "host": "localhost"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/api/desk/{flowers.id}/sync",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Starlette(routes=routes())(scope, receive, send))
    assert sent[0]["status"] == 400
    assert not caplog.records


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), StorageError("No space left on device.")]
)
def test_a_full_disk_is_said_and_the_answers_are_taken_once_there_is_room(
    client: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    card = desk_sync(flowers)["queue"][0]
    body = {"ops": [operation("label", card, **{"class": "setosa"})], "want": 0, "have": []}
    headers = {"x-desk-token": tokens.issue(flowers.id, "ann"), "content-type": "application/json"}

    def full(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Session, "tell_many", full)
        told = client.post(f"/api/desk/{flowers.id}/sync", json=body, headers=headers)
    assert told.status_code == 503 and "No space left on device" in told.json()["why"]
    assert not flowers.state.labels
    kept = client.post(f"/api/desk/{flowers.id}/sync", json=body, headers=headers)
    assert kept.json()["acks"][0]["status"] == "saved" and len(flowers.state.labels) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://localhost:9999"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"x-desk-token": "forged.token"}, 401),
        ({"x-desk-token": ""}, 401),
    ],
)
def test_anybody_else_is_refused(
    client: TestClient,
    flowers: Session,
    headers: dict[str, str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from streamlit import config

    monkeypatch.setattr(
        config, "get_option", lambda name: ["localhost"] if name == "server.allowedHosts" else None
    )
    refused = post(client, flowers, **headers)
    assert refused.status_code == status and refused.json()["why"]
    assert not flowers.state.asks


def test_a_token_of_another_project_and_a_flood_are_refused(client: TestClient, flowers: Session) -> None:
    assert post(client, flowers, **{"x-desk-token": tokens.issue("other", "ann")}).status_code == 401
    headers = {"x-desk-token": tokens.issue(flowers.id, "ann"), "content-type": "application/json"}
    where = f"/api/desk/{flowers.id}/sync"
    assert client.post(where, content=b"[" * 300_000, headers=headers).status_code == 413
    assert client.post(where, content=b"[" * 100_000, headers=headers).status_code == 400
    assert client.post(where, content=b"[1]", headers=headers).status_code == 400
    assert client.get(f"/api/desk/{flowers.id}/image/0").status_code == 401


def test_what_the_model_sees_is_given_on_demand(home: Path, flowers: Session) -> None:
    digits = Session.create("digits", annotator="ann")
    current.keep(digits)
    found = look(digits.id, "ann", {"kind": "seen", "item": 5}, "token")
    assert (
        found["src"].startswith("data:image/png;base64,")
        and found["words"] == "Its pixels, as they are shown."
    )
    assert look(flowers.id, "ann", {"kind": "seen", "item": 0}, "token") == {
        "words": "The values that are shown.",
        "terms": [],
    }
    with pytest.raises(InputError, match="no item 9999"):
        look(digits.id, "ann", {"kind": "seen", "item": 9999}, "token")


def standing(session: Session) -> list[str]:
    """The questions a reload would show, in their order."""
    return [card["ask"] for card in desk_sync(session, want=16)["queue"]]


def test_a_reload_shows_what_the_browser_turned_to_whatever_the_server_put_first(flowers: Session) -> None:
    fitted(flowers)
    have = standing(flowers)
    number = flowers.model.number
    # an answer that was taken back comes first, until another answer is given
    told = desk_sync(flowers, operation("undo", target=None), have=have, screen=have[0], want=0, model=number)
    again = told["queue"][0]["ask"]
    assert told["first"] == again != have[0]
    with_it = {"have": [again, *have], "want": 0, "model": number}
    given = operation(
        "label", {"ask": have[0], "item": flowers.state.asks[have[0]].item}, **{"class": "setosa"}
    )
    told = desk_sync(flowers, given, screen=again, turned=True, **with_it)
    assert told["first"] == again == standing(flowers)[0]
    # one further back that the browser looks at, such as an item that was asked about anew in the same reply
    n_events = flowers.state.n_events
    told = desk_sync(flowers, have=have[1:], screen=have[3], turned=True, want=0, model=number)
    assert told["first"] == have[3] == standing(flowers)[0]
    assert flowers.state.n_events == n_events + 1
    # a tab that has not turned leaves the order to the one that has: two tabs do not quarrel
    told = desk_sync(flowers, have=have[1:], screen=have[2], turned=False, want=0, model=number)
    assert told["first"] == have[3]
    assert flowers.state.n_events == n_events + 1


def test_a_new_page_leaves_nothing_waiting_that_an_older_model_chose(flowers: Session) -> None:
    fitted(flowers)
    first, *rest = desk_sync(flowers, want=10)["queue"]
    old = {card["ask"] for card in rest if card["role"] != "evaluation"}
    given = operation("label", first, **{"class": "setosa"})
    desk_sync(
        flowers, given, have=[rest[0]["ask"]], screen=rest[0]["ask"], want=0, model=flowers.model.number
    )
    flowers.refit()
    asks = standing(flowers)
    assert asks[0] == rest[0]["ask"]
    assert not old & set(asks[1:])
