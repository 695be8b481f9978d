"""The order of the desk's questions: what comes first, what comes back, what is given back."""

from pathlib import Path

import pytest

from tests.app.desks import desk_sync, fitted, operation, standing, table
from workbench.app.desk import finding
from workbench.app.desk.routes import look
from workbench.app.serving import explanations
from workbench.errors import InputError
from workbench.sessions import Session


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


def test_items_like_one_of_a_large_pool_are_found_along_its_graph(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = table(tmp_path, ["low", "high"])
    own = [finding.like(session, 17, n).tolist() for n in (4, 10, 24)]
    monkeypatch.setattr(finding, "_LARGE", 50)
    monkeypatch.setattr(explanations, "space", None)  # the features of all items are not made
    along = [finding.like(session, 17, n).tolist() for n in (4, 10, 24)]
    assert [sorted(one) for one in along] == [sorted(one) for one in own]
    with pytest.raises(InputError, match="no item 60"):
        finding.like(session, 60, 4)


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
