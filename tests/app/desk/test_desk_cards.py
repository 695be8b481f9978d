"""Words of the desk's cards about an item."""

import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.app.desks import desk_sync, fitted, operation, table
from workbench.app.access import current
from workbench.app.desk import cards
from workbench.app.desk.cards import encoded, face, neighbour_faces, picture, thumbnail_face
from workbench.app.desk.keys import class_keys
from workbench.app.desk.routes import grid, look, sync
from workbench.app.serving import explanations
from workbench.app.words.text import plain, role_words, words_of
from workbench.errors import InputError
from workbench.exchange.rows import label_table
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.sessions.asking_items import ItemAsk


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


def test_where_no_class_stands_out_the_reason_says_so_and_not_two_equal_per_cents(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.create("iris", classifier="logistic-regression", policy="margin", annotator="ann")
    truth = session.pool.truth
    assert truth is not None
    for item in session.pool.trainable[::4]:
        session.items.label([int(item)], session.classes[truth[item]])
    session.refit()
    ask = replace(session.ask(1)[0], role="policy")
    monkeypatch.setattr(explanations, "SAYS_SOMETHING", 0.0)
    assert "its two best classes" in explanations.why(session, ask).words
    # as of many classes, where the best has a hundredth or two
    monkeypatch.setattr(explanations, "SAYS_SOMETHING", 1.1)
    words = explanations.why(session, ask).words
    assert "the likeliest of 3 gets" in words and "its two best classes" not in words
    # the sentence and the bar beside it say one number
    [[_, best], *_] = cards.card([session], ItemAsk(ask.item, {session.question_name: ask}), "/{item}")[
        "guess"
    ]
    assert f"gets {100 * best:.0f}\u00a0%" in words
    assert "gets 1\u00a0%. 3 of them have no label" in explanations.none_stands_out(0.013, 77, 74)
    assert "no label" not in explanations.none_stands_out(0.013, 77, 77)


def test_empty_cells_say_so_and_what_the_model_does_not_see_is_no_difference(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    lines = [f"n{i},{'' if i % 5 == 1 else i},{i % 7},{'' if i % 2 else 'far'},x{i % 3}" for i in range(30)]
    lines[3] = lines[3].replace(",,", ",far from here beyond the second hill,")
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
    assert [v for n, v, _ in neighbour_faces(session.pool, [2], 3, "")[0]["rows"] if n == "place"] == ["far"]
    tile = thumbnail_face(session.pool, 1, "")
    assert [name for name, _, _ in tile["rows"]][-1] == "name" and tile["more"] == 0


def test_a_face_is_made_once_and_its_picture_has_the_address_of_whoever_asks(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.create("digits", annotator="ann")
    photos = session.pool.items
    looked: list[int] = []
    plain_show = type(photos).show

    def show(self: object, item: int) -> object:
        looked.append(item)
        return plain_show(photos, item)

    monkeypatch.setattr(type(photos), "show", show)
    monkeypatch.setattr(cards, "INLINE", 0)
    first = face(session.pool, 7, "/a/{item}?k=ann")
    second = face(session.pool, 7, "/a/{item}?k=bob")
    assert (first["src"], second["src"]) == ("/a/7?k=ann", "/a/7?k=bob") and looked == [7]
    # of another pool it is another face, whatever its features are
    assert face(Session.create("digits", annotator="ann").pool, 7, "{item}")["src"] == "7"


def test_a_further_card_looks_at_its_own_item_and_at_those_beside_it(
    flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts about the whole pool are asked of it once, however many cards come."""
    fitted(flowers)
    asks = flowers.ask(8)
    show, shown = type(flowers.pool.items).show, []

    def counted(items: Any, item: int) -> Any:
        shown.append(item)
        return show(items, item)

    monkeypatch.setattr(type(flowers.pool.items), "show", counted)
    for ask in asks:
        shown.clear()
        cards.card([flowers], ItemAsk(ask.item, {flowers.question_name: ask}), "/{item}")
    assert len(shown) <= 6, "the last item, and five beside it"


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

    from workbench.pools.images.photos import Photos

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
    assert [one["name"] for one in reply["asked"][0]["classes"]] == [name, "other"]
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


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (16560.4, 4, "16560"),
        (68228.91, 6, "68228.9"),
        (1234567.8, 6, "1234568"),
        (9999.6, 4, "10000"),
        (0.12345678, 4, "0.1235"),
        (1e300, 6, "1e+300"),
        (float("nan"), 6, "nan"),
        (7, 4, "7"),
        (None, 4, ""),
    ],
)
def test_numbers_are_written_as_people_write_them(value: object, digits: int, said: str) -> None:
    assert plain(value, digits) == said


def test_what_the_model_says_is_in_the_classes_as_they_are_now(flowers: Session) -> None:
    """Its probabilities are of the classes it was fitted with, until the next fit."""
    fitted(flowers, 24)
    before = desk_sync(flowers)["queue"]
    flowers.classes.merge("versicolor", "virginica")
    flowers.classes.rename("setosa", "the small one")
    now = {"the small one", "virginica"}
    cards = desk_sync(flowers, have=[], want=4)["queue"]
    guessed = [card for card in cards if "guess" in card]
    assert guessed and {card["item"] for card in guessed} <= {card["item"] for card in before}
    for card in guessed:
        assert {name for name, _ in card["guess"]} == set(card["guess_order"]) == now
        assert sum(p for _, p in card["guess"]) == pytest.approx(1, abs=0.02)  # in whole per cents
    # so what Enter accepts is a class that there is
    accepted = operation("label", guessed[0], **{"class": guessed[0]["guess"][0][0]})
    assert desk_sync(flowers, accepted)["acks"][0]["status"] == "saved"
    assert grid(flowers.id, "ann", {}, "token")["class"] in now
    rows = label_table(flowers, "predictions")
    assert {name for row in rows for name in row["probabilities_now"] or {}} == now
    assert {row["label"] for row in rows if row["status"] == "predicted"} <= now


def test_why_an_item_was_asked_is_said_in_words_wherever_it_is_told() -> None:
    assert all(words["log"] for words in words_of("roles").values())
    assert role_words("policy", "badge") == "chosen by the policy" and role_words("new", "log") == "new"


@pytest.mark.parametrize("learn", [False, True])
def test_a_text_stands_large_and_the_other_columns_small_below_it(tmp_path: Path, learn: bool) -> None:
    path = tmp_path / "comments.csv"
    texts = [" ".join(f"word{(i * k) % 37}" for k in range(1, 10)) for i in range(40)]
    rows = [f"c{i},{('sales', 'lab')[i % 2]},{i % 3},{text}" for i, text in enumerate(texts)]
    path.write_text("\n".join(["comment_id,department,visits,comment", *rows]), encoding="utf-8")
    columns: Any = {"department": {"use": "category"}} if learn else "auto"
    pool = load_pool(str(path), columns=columns)
    assert pool.kind == ("table" if learn else "text")
    shown = cards.face(pool, 3, "")
    assert (shown["kind"], shown["text"]) == ("text", texts[3])
    assert ["department", "lab", None] in shown["rows"] and texts[3] not in [row[1] for row in shown["rows"]]
    assert cards.thumbnail_face(pool, 3, "") == {"kind": "text", "text": texts[3]}
