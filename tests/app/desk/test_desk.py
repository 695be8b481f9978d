"""The server's side of the desk: operations in, acknowledgements and cards out."""

from pathlib import Path

import pytest

from tests.app.desks import desk_sync, fitted, operation
from workbench.app.access import current
from workbench.app.desk import component, questions
from workbench.app.desk.routes import grid, look
from workbench.errors import InputError
from workbench.sessions import Session


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
    labels = [e for e in flowers.log.events if e.kind == "label"]
    assert len(labels) == 1 and labels[0].payload["seconds"] == 0.9


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
    assert [ack["status"] for ack in reply["acks"]] == ["refused"] * 3 + ["saved"] + ["refused"] * 2
    assert all(bool(ack["why"]) == (ack["status"] == "refused") for ack in reply["acks"])
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
    assert "Somebody else labels it too" in mine["why"]
    given = operation("label", mine, **{"class": "virginica"})
    assert desk_sync(session, given, person="bob", have=have)["acks"][0]["status"] == "saved"
    assert session.state.undecided == {first["item"]}
    session.items.look_again(1)
    again = desk_sync(session)["queue"][0]
    assert again["role"] == "second"
    assert not desk_sync(session, have=[again["ask"]], screen=again["ask"], want=0)["gone"]


def test_a_second_opinion_is_asked_for_without_the_models_guess(home: Path) -> None:
    session = Session.create("iris", overlap=1.0, people=2, annotator="ann")
    current.keep(session)
    fitted(session, 12)
    bobs = desk_sync(session, person="bob", want=12)["queue"]
    opinions = [card for card in bobs if card["role"] == "overlap"]
    assert opinions and not any({"guess", "guess_order", "near"} & set(card) for card in opinions)


def test_a_grid_without_a_model_says_what_it_waits_for(flowers: Session) -> None:
    with pytest.raises(InputError, match="label items of two classes first"):
        grid(flowers.id, "ann", {"n": 6}, "token")
    for item, name in zip(flowers.pool.trainable[:2].tolist(), flowers.classes, strict=False):
        flowers.items.label(item, name)
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


def test_the_gallery_has_the_keys_of_the_desk(flowers: Session) -> None:
    flowers.classes.describe("virginica", shortcut="1")
    at_the_desk, in_review = desk_sync(flowers, person="bob"), component._common(flowers.as_annotator("bob"))
    assert at_the_desk["asked"][0]["classes"] == in_review["classes"]
    assert {one["name"]: one["key"] for one in in_review["classes"]}["virginica"] == "1"
    assert in_review["commands"]["undo"] == at_the_desk["commands"]["undo"] == "z"


def test_a_second_look_is_blind_and_a_flag_comes_with_the_card(flowers: Session) -> None:
    fitted(flowers)
    flowers.items.look_again(2)
    second = [card for card in desk_sync(flowers)["queue"] if card["role"] == "second"]
    assert len(second) == 2 and not any("guess" in card or "near" in card for card in second)
    item = second[0]["item"]
    desk_sync(flowers, operation("flag", item=item, on=True))
    assert next(card for card in desk_sync(flowers)["queue"] if card["item"] == item)["flag"]
    desk_sync(flowers, operation("flag", item=item, on=False))
    assert item not in flowers.state.flagged


def test_the_question_is_in_words_and_the_projects_own(flowers: Session) -> None:
    assert questions.question(flowers) == "Which kind of iris is this?"
    event = flowers.questions.reword("  Which  flower? ")
    assert event is not None and flowers.questions.reword("Which flower?") is None
    assert questions.question(flowers) == "Which flower?" and not flowers.stale
    again = Session.open(flowers.id, annotator="bob")
    assert questions.question(again) == "Which flower?"
    with pytest.raises(InputError, match="200 can be shown"):
        flowers.questions.reword("x" * 201)
    flowers.questions.reword("")
    assert questions.question(flowers) == "Which kind of iris is this?"


def test_a_question_comes_from_the_target_of_a_table(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,income_band\n" + "\n".join(f"{i},{'low' if i % 2 else 'high'}" for i in range(20)))
    made = Session.create(str(path), pool_options={"target": "income_band"})
    assert questions.question(made) == "Which income band is this?"


def test_a_card_brings_the_notes_on_its_item(flowers: Session) -> None:
    first = desk_sync(flowers)["queue"][0]
    assert first["notes"] == [] and first["flag"] is False
    flowers.items.note(first["item"], "odd petals")
    flowers.items.flag(first["item"])
    again = next(c for c in desk_sync(flowers, want=8)["queue"] if c["item"] == first["item"])
    assert again["notes"] == [["ann", "odd petals"]] and again["flag"] is True
