"""The desk that asks all questions about the item on screen."""

from pathlib import Path
from typing import Any

import pytest

from tests.app.desks import desk_sync, operation
from tests.app.pages import open_page
from workbench.app.access import current
from workbench.app.desk.keys import MAX_BUTTONS
from workbench.app.desk.routes import grid, look
from workbench.errors import InputError
from workbench.sessions import Session


@pytest.fixture
def mail(home: Path, tmp_path: Path) -> Session:
    (tmp_path / "mail.csv").write_text("a,b\n" + "".join(f"{i}.5,{i * 7 % 13}\n" for i in range(40)))
    session = Session.create(
        str(tmp_path / "mail.csv"),
        questions=[("topic", ["refund", "delivery"]), "fraud", "urgent"],
        classifier="logistic-regression",
        policy="margin",
        annotator="ann",
        evaluation_share=0.0,
    )
    current.keep(session)
    return session


def synced(session: Session, *ops: Any, **body: Any) -> dict[str, Any]:
    return desk_sync(session, *ops, mode="every", **body)


def answers(card: dict[str, Any], said: dict[str, str | None], **more: Any) -> dict[str, Any]:
    return operation("answers", card, ms=900, answers=said, **more)


def test_a_card_is_an_item_with_all_its_open_questions(mail: Session) -> None:
    reply = synced(mail)
    assert [one["name"] for one in reply["queue"][0]["questions"]] == ["topic", "fraud", "urgent"]
    about = {one["name"]: one for one in reply["asked"]}
    assert [one["key"] for one in about["topic"]["classes"]] == ["1", "2"]
    assert len({about["fraud"]["key"], about["urgent"]["key"], "1", "2"}) == 4
    have = [card["ask"] for card in reply["queue"]]
    again = synced(mail, have=have, want=0)
    assert again["queue"] == [] and again["gone"] == [] and again["first"] == have[0]


def test_a_switch_keeps_its_key_while_another_is_put_aside(mail: Session) -> None:
    """Fingers know the keys: what they press must not become the next question's."""

    def keys() -> dict[str, str]:
        return {one["name"]: one["key"] for one in synced(mail)["asked"] if "key" in one}

    before = keys()
    assert set(before) == {"fraud", "urgent"}
    mail.questions.archive("fraud")
    assert keys() == {"urgent": before["urgent"]}
    mail.questions.archive("fraud", on=False)
    assert keys() == before
    mail.questions.add(("length", ["short", "middle", "long"]))
    before = keys()
    mail.questions.archive("length")
    assert keys() == before
    # where keys are short, those that are asked have them
    mail.questions.archive("fraud")
    for number in range(MAX_BUTTONS - 3):
        mail.questions.add(f"switch {number}")
    given = keys()
    assert len(given) == MAX_BUTTONS - 2 and all(given.values()) and len(set(given.values())) == len(given)


def test_a_row_of_answers_is_stored_and_taken_back_as_one(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    given = answers(card, {"topic": "refund", "fraud": "yes", "urgent": None})
    reply = synced(mail, given, given)
    assert [ack["status"] for ack in reply["acks"]] == ["saved", "saved"]
    fraud, urgent = mail.question("fraud"), mail.question("urgent")
    assert fraud.state.labels == {card["item"]: "yes"} and card["item"] in urgent.state.unsure
    assert reply["numbers"]["last"] == given["op"]
    reply = synced(mail, operation("undo", target=given["op"]))
    assert [ack["status"] for ack in reply["acks"]] == ["saved"]
    assert not any(one.state.answered for one in mail.questions.sessions())
    reply = synced(mail, operation("redo", target=given["op"]))
    assert fraud.state.labels == {card["item"]: "yes"}


def test_a_row_of_which_one_question_was_answered_elsewhere_keeps_the_others(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    topic, fraud, _ = mail.questions.sessions()
    fraud.as_annotator("bob").items.label(card["item"], "yes")
    row = {"topic": "refund", "fraud": "no", "urgent": "no"}
    ack = synced(mail, answers(card, row))["acks"][0]
    assert (ack["status"], ack["why"][:22]) == ("saved", "Saved without 'fraud':")
    assert (topic.state.labels[card["item"]], fraud.state.labels[card["item"]]) == ("refund", "yes")


def test_the_open_ones_are_asked_and_a_page_of_another_question_undoes_them(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    mail.items.label(card["item"], "delivery")
    card = next(one for one in synced(mail)["queue"] if one["item"] == card["item"])
    assert [one["name"] for one in card["questions"]] == ["fraud", "urgent"]
    given = answers(card, {"fraud": "no", "urgent": "no"})
    assert synced(mail, given)["acks"][0]["status"] == "saved"
    assert synced(mail, operation("undo", target=given["op"]))["acks"][0]["status"] == "saved"
    assert mail.state.labels == {card["item"]: "delivery"}
    assert not mail.question("fraud").state.answered


def test_the_pages_of_one_question_tell_of_the_last_act_wherever_it_was(mail: Session) -> None:
    topic, fraud = mail.question("topic"), mail.question("fraud")
    topic.classes.rename("refund", "money back")
    fraud.items.label(1, "no")
    act = operation("relabel", items=[1], question="topic", **{"class": "money back"})
    reply = desk_sync(fraud, act)
    assert topic.state.labels == {1: "money back"}
    for numbers in (reply["numbers"], desk_sync(fraud, mode="check")["numbers"], synced(mail)["numbers"]):
        assert (numbers["undoable"], numbers["last"]) == (True, act["op"])
    reply = desk_sync(fraud, operation("undo", target=None))
    assert reply["acks"][0]["about"]["words"].endswith("labelled money back")
    numbers = reply["numbers"]
    assert (numbers["undoable"], numbers["redoable"], numbers["put"]) == (True, True, act["op"])
    assert not topic.state.labels and fraud.state.labels == {1: "no"}


def test_what_cannot_be_taken_is_refused_by_itself(mail: Session) -> None:
    first, second = synced(mail)["queue"][:2]
    reply = synced(
        mail,
        answers(first, {"tone": "calm"}),
        answers(first, {"topic": "nothing"}),
        operation("answers", first, ms=1, answers={"topic": 3}),
        answers(first, {}, skip=True),
        answers(second, {"topic": "refund", "fraud": "no", "urgent": "no"}),
        answers(second, {"topic": "refund"}),  # what stands already
        answers(second, {"topic": "delivery"}),
    )
    found = [ack["status"] for ack in reply["acks"]]
    assert found == ["refused", "refused", "refused", "saved", "saved", "saved", "conflict"]
    assert all(first["item"] in one.state.skipped for one in mail.questions.sessions())


def test_what_a_model_says_comes_with_each_question(mail: Session) -> None:
    for card in synced(mail, want=12)["queue"]:
        high = "yes" if card["item"] > 20 else "no"
        said = {"topic": "refund" if card["item"] > 20 else "delivery", "fraud": high, "urgent": "no"}
        synced(mail, answers(card, said))
    mail.questions.refit()
    reply = synced(mail)
    about = {one["name"]: one for one in reply["queue"][0]["questions"]}
    [[said, p]], [[topic, _]] = about["fraud"]["guess"], about["topic"]["guess"]
    assert said in ("yes", "no") and 0.5 <= p <= 1 and topic in mail.classes
    assert "guess" not in about["urgent"]  # no model yet: all of them were no
    # and says so, as it stands beside others that are at a guess
    assert about["urgent"]["new"] and not {"new"} & (about["fraud"].keys() | about["topic"].keys())
    assert reply["numbers"]["model"] is not None


def test_an_older_model_s_questions_are_asked_anew_but_for_the_one_on_screen(mail: Session) -> None:
    for card in synced(mail, want=8)["queue"][:6]:
        high = "yes" if card["item"] > 20 else "no"
        synced(mail, answers(card, {"topic": "refund", "fraud": high, "urgent": high}), want=0)
    have = [card["ask"] for card in synced(mail)["queue"]]
    mail.question("fraud").refit()
    reply = synced(mail, have=have, screen=have[0], want=0)
    assert reply["gone"] == [] and set(reply["released"]) == set(have[1:])
    assert len(reply["queue"]) == len(have) - 1
    # the browser had turned to another meanwhile: it stays, and nobody else is asked about it
    synced(mail, have=have[1:2], screen=have[1], want=0, model=reply["numbers"]["model"])
    item = mail.state.asks[have[1]].item
    assert item not in [ask.item for ask in mail.as_annotator("bob").queue.items(40)]


def test_a_reload_shows_the_item_that_was_on_screen_also_after_a_new_model(mail: Session) -> None:
    for card in synced(mail, want=8)["queue"][:6]:
        high = "yes" if card["item"] > 20 else "no"
        synced(mail, answers(card, {"topic": "refund", "fraud": high, "urgent": high}), want=0)
    have = [card["ask"] for card in synced(mail)["queue"]]
    synced(mail, have=have, screen=have[2], turned=True, want=0)
    mail.question("fraud").refit()
    assert synced(mail)["queue"][0]["ask"] == have[2]


def test_one_question_is_the_case_of_one(mail: Session) -> None:
    topic = mail.question("topic")
    first, second = desk_sync(topic)["queue"][:2]
    assert first["questions"] == [{"name": "topic"}]
    reply = desk_sync(topic, operation("label", first, **{"class": "refund"}), operation("unsure", second))
    assert [one["name"] for one in reply["asked"]] == ["topic"]
    earlier = look(topic.id, "ann", {"kind": "history"}, "token")["items"]
    assert [one["said"] for one in earlier] == [{"topic": None}, {"topic": "refund"}]
    for item in (30, 31, 32):
        topic.items.label(item, "delivery")
    topic.refit()
    found = grid(topic.id, "ann", {"n": 4}, "token")
    assert {one["question"] for one in found["others"]} == {"topic"} == {found["question"]}


def test_items_keep_their_names_after_the_models_disagree(mail: Session) -> None:
    for card in synced(mail, want=12)["queue"]:
        n = card["item"]
        said = {"topic": ("refund", "delivery")[n % 3 > 0], "fraud": ("no", "yes")[n > 20]}
        synced(mail, answers(card, said | {"urgent": ("no", "yes")[n % 2]}), want=0)
    mail.questions.refit()
    first = synced(mail, want=6)
    have = [card["ask"] for card in first["queue"]]
    again = synced(mail, have=have, want=0, screen=have[0], model=first["numbers"]["model"])
    assert (again["gone"], again["released"], again["queue"]) == ([], [], [])
    assert all(
        [q["name"] for q in card["questions"]] == ["topic", "fraud", "urgent"] for card in first["queue"]
    )


def test_two_sessions_of_one_project_share_its_pool(mail: Session) -> None:
    fraud = current.opened(mail.question("fraud").id)
    assert fraud._family is mail._family
    current.forget(mail.id)
    assert current.opened(fraud.id)._family is not mail._family


def looked(session: Session, n: int = 20) -> list[dict[str, Any]]:
    return look(session.id, "ann", {"kind": "history", "mode": "every", "n": n}, "token")["items"]


def said_of(session: Session, item: int) -> dict[str, str | None]:
    return next(one["said"] for one in looked(session) if one["item"] == item)


def test_earlier_rows_are_looked_at_and_amended_as_one_act(mail: Session) -> None:
    first, second, third = synced(mail)["queue"][:3]
    synced(mail, answers(first, {"topic": "refund", "fraud": "yes", "urgent": None}))
    synced(mail, answers(second, {}, skip=True))
    assert [(one["item"], one["kind"]) for one in looked(mail)] == [
        (second["item"], "skip"),
        (first["item"], "answers"),
    ]
    assert said_of(mail, first["item"]) == {"topic": "refund", "fraud": "yes", "urgent": None}
    change = operation("amend", item=first["item"], answers={"topic": "delivery", "urgent": "yes"})
    reply = synced(mail, change, change)
    assert [ack["status"] for ack in reply["acks"]] == ["saved", "saved"]
    assert said_of(mail, first["item"]) == {"topic": "delivery", "fraud": "yes", "urgent": "yes"}
    row = operation("amend", item=second["item"], answers={"topic": "refund", "fraud": "no", "urgent": "no"})
    assert synced(mail, row)["acks"][0]["status"] == "saved"
    assert said_of(mail, second["item"])["topic"] == "refund"
    never = operation("amend", item=third["item"], answers={"topic": "refund"})
    assert "no answer of yours to 'topic'" in synced(mail, never)["acks"][0]["why"]
    for target in (row, change):
        synced(mail, operation("undo", target=target["op"]))
    assert said_of(mail, first["item"]) == {"topic": "refund", "fraud": "yes", "urgent": None}
    assert said_of(mail, second["item"]) == {}


def test_one_looks_back_at_ones_own_answers_and_changes_them_beside_anothers(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    synced(mail, answers(card, {"topic": "refund"}))
    (fraud,) = (one for one in mail.questions.sessions() if one.question_name == "fraud")
    fraud.as_annotator("bob").items.label(card["item"], "yes")
    assert said_of(mail, card["item"]) == {"topic": "refund"}
    change = operation("amend", item=card["item"], answers={"topic": "delivery"})
    assert synced(mail, change)["acks"][0]["status"] == "saved"


def test_a_class_that_is_typed_comes_with_its_row_and_goes_with_it(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    row = {"topic": "praise", "fraud": "no", "urgent": "no"}
    reply = synced(
        mail, answers(card, row), answers(card, row, adds=["fraud"]), answers(card, row, adds=["topic"])
    )
    assert [ack["status"] for ack in reply["acks"]] == ["refused", "refused", "saved"]
    about = next(one for one in reply["asked"] if one["name"] == "topic")
    assert [one["name"] for one in about["classes"]] == ["refund", "delivery", "praise"]
    assert mail.classes == ("refund", "delivery", "praise") and mail.question("fraud").classes == (
        "yes",
        "no",
    )
    bad = answers(synced(mail)["queue"][0], {**row, "fraud": "maybe"}, adds=["fraud"])
    assert "gets no class" in synced(mail, bad)["acks"][0]["why"]
    synced(mail, operation("undo", target=reply["numbers"]["last"]))
    assert mail.classes == ("refund", "delivery")


def test_a_grid_is_of_one_question_and_one_undo(mail: Session) -> None:
    for card in synced(mail, want=12)["queue"]:
        high = "yes" if card["item"] > 20 else "no"
        synced(mail, answers(card, {"topic": "refund", "fraud": high, "urgent": "no"}), want=0)
    with pytest.raises(InputError, match="no model yet"):
        grid(mail.id, "ann", {"mode": "every"}, "token")
    mail.question("fraud").refit()
    found = grid(mail.id, "ann", {"mode": "every", "n": 6}, "token")
    assert (found["question"], found["class"], found["switch"]) == ("fraud", "yes", True)
    assert [(one["question"], one["class"]) for one in found["others"]] == [("fraud", "yes"), ("fraud", "no")]
    other = {"mode": "every", "question": "fraud", "class": "no"}
    assert grid(mail.id, "ann", other, "token")["class"] == "no"
    found = grid(mail.id, "ann", {"mode": "every", "n": 6}, "token")
    asks, items = ([one[part] for one in found["items"]] for part in ("ask", "item"))
    given = operation("grid", asks=asks[1:], question="fraud", **{"class": "yes", "rejected": asks[:1]})
    strange = operation("grid", asks=asks, question="tone", **{"class": "yes"})
    reply = synced(mail, strange, given)
    assert [ack["status"] for ack in reply["acks"]] == ["refused", "saved"]
    fraud = mail.question("fraud")
    assert all(fraud.state.labels.get(item) == "yes" for item in items[1:])
    assert not any(item in mail.state.labels for item in items)
    assert synced(mail, operation("undo", target=given["op"]))["acks"][0]["status"] == "saved"
    assert not any(item in fraud.state.labels for item in items)


def test_a_row_that_was_on_screen_is_taken_although_another_was_asked_meanwhile(mail: Session) -> None:
    card = synced(mail)["queue"][0]
    for one in mail.questions.sessions():
        one.queue.release([ask for ask, held in one.state.asks.items() if held.item == card["item"]])
    bob = mail.as_annotator("bob")
    assert card["item"] in [ask.item for ask in bob.queue.items(40)]
    given = answers(card, {"topic": "refund", "fraud": "yes", "urgent": "no"})
    assert synced(mail, given)["acks"][0]["status"] == "saved"
    assert said_of(mail, card["item"]) == {"topic": "refund", "fraud": "yes", "urgent": "no"}


def test_items_that_are_found_are_asked_about_with_whatever_is_open(mail: Session) -> None:
    for item in (5, 6):
        mail.items.label(item, "refund")
    for one in mail.questions.sessions():
        one.items.label(7, one.classes[0])
    first = synced(mail)["queue"]  # others wait in every question by now
    reply = look(mail.id, "ann", {"kind": "like", "item": 4, "n": 39, "mode": "every"}, "")
    items = {one["item"]: one for one in reply["items"]}
    assert items[5]["open"] and items[5]["said"] == {"topic": "refund"} and items[5]["kind"] == "answers"
    assert not items[7]["open"] and items[7]["said"] == {"topic": "refund", "fraud": "yes", "urgent": "yes"}
    assert items[8]["said"] == {} and set(reply["open"]) == set(items) - {7}
    wanted = operation("want", items=[6, 5], text="like 4", mode="every")
    reply = synced(mail, wanted, wanted, have=[card["ask"] for card in first])
    assert [ack["status"] for ack in reply["acks"]] == ["saved", "saved"]
    queue = synced(mail)["queue"]
    assert [card["item"] for card in queue[:2]] == [6, 5]
    assert [[one["name"] for one in card["questions"]] for card in queue[:2]] == [["fraud", "urgent"]] * 2
    refused = synced(mail, operation("want", items=[7], text="like 4", mode="every"))["acks"][0]
    assert refused["status"] == "refused" and "answered" in refused["why"]


def test_very_many_classes_leave_keys_to_the_switches(mail: Session) -> None:
    mail.questions.add(("place", [f"place {n}" for n in range(77)]))
    asked = {one["name"]: one for one in synced(mail)["asked"]}
    keys = [one["key"] for one in asked["place"]["classes"]]
    assert keys[0] == "1" and sum(map(bool, keys)) == 9
    assert asked["fraud"]["key"] and asked["urgent"]["key"]
    assert not {asked["fraud"]["key"], asked["urgent"]["key"]} & set(keys)


def test_where_switches_are_searched_by_typing_letters_are_no_keys_of_classes(mail: Session) -> None:
    mail.questions.add(("place", [f"place {n}" for n in range(12)]))
    for n in range(MAX_BUTTONS - 2):
        mail.questions.add(f"switch {n}")
    asked = {one["name"]: one for one in synced(mail)["asked"]}
    assert {one["key"] for one in asked["place"]["classes"]} == {*"123456789", ""}
    assert asked["fraud"]["key"] == ""


def test_the_side_bar_names_questions_as_they_are_written(mail: Session) -> None:
    mail.questions.add("well-written [draft]")
    box = open_page("history", mail.id).sidebar.selectbox(key=f"question-{mail.id}")
    assert list(box.options) == ["topic", "fraud", "urgent", "well-written [draft]"]
