"""The gallery's keys: whose they are, what they store, and what waits when somebody is shut out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.scripts import GALLERY, script, walked
from workbench.app.desk.keys import keys_for


@pytest.mark.slow  # alone: the keyboard inside the gallery
def test_enter_and_space_are_those_of_what_has_the_focus_in_the_gallery(
    page: Any, server: Server, learnt: str
) -> None:
    visit(page, f"{server.url}/history?project={learnt}")
    page.wait_for_selector(".gallery .tile")
    settled(page)
    assert [one for one in walked(page) if "was taken" in one or "sent" in one] == []


def test_keys_of_classes_come_before_the_gallerys(page: Any, server: Server) -> None:
    names = ["cat", "ox"]
    found = keys_for(names, {"ox": "x"})
    classes = [{"name": name, "key": key} for name, key in zip(names, found.classes, strict=True)]
    page.goto(f"{server.url}/_stcore/health")  # an empty page of the same origin
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(GALLERY, [found.commands, classes])
    page.locator("[data-command=undo][disabled]").wait_for()
    page.wait_for_function("window.replies >= 1")
    page.keyboard.press("z")  # nothing was done yet, so nothing is taken back
    page.locator(".message", has_text="Nothing to undo.").wait_for()
    page.keyboard.press("x")  # the class's key: the first is an ox, and the next one stands
    page.wait_for_function("window.sent.length === 1")
    page.keyboard.press("Shift+X")  # chosen, not labelled
    assert page.locator("[aria-selected=true]").count() == 1
    page.keyboard.press("Backspace")
    page.wait_for_function("window.sent.length === 2")
    page.keyboard.press("z")
    page.wait_for_function("window.sent.length === 3")
    assert page.evaluate("window.sent") == [["relabel", [0]], ["clear", [1]], ["undo", None]]


# a gallery of two questions whose server is played by hand: `play(statuses)` answers what was sent since
TWO = """() => {
    const face = { kind: 'text', text: 'a text' };
    const card = (item, question, of, says, said = []) =>
        ({ item, id: `i${item}`, question, class: of, kind: 'label', says, said, verdict: 'wrong', face });
    const names = (...of) => of.map((name, place) => ({ name, key: `${place + 1}` }));
    const cards = [card(1, 'topic', 'cat', 'dog'), card(2, 'fraud', 'no', 'yes'),
        card(3, 'topic', 'dog', 'dog', ['a: dog', 'b: cat'])];
    const asks = { fraud: names('no', 'yes'), topic: names('cat', 'dog') };
    const gallery = new Gallery({ project: 'p', person: 'Ann', account: '', token: 't', base: '/b', stamp: '',
        most_buttons: 31, commands: { undo: 'z' }, classes: [], asked: asks, cards });
    gallery.pump = () => {};
    window.choose = (...places) => places.forEach(place => { gallery.go(place); gallery.pick(); });
    window.play = (status, about) => {
        const asked = gallery.sends();
        const acks = asked.map(({ op }) => ({ op, status, why: status === 'saved' ? '' : 'No.', about }));
        const last = gallery.history.flat().at(-1)?.op || null;
        gallery.take_in({ acks, numbers: { undoable: true, last } }, { ops: asked });
        return asked.map(({ kind }) => kind);
    };
    window.gallery = gallery;
    window.shown = () => gallery.tiles.map(tile => tile.querySelector('.given').textContent).join(' ');
    window.marked = () => gallery.tiles.filter(tile => tile.getAttribute('aria-selected') === 'true').length;
}"""


def test_a_tile_of_the_gallery_shows_what_is_stored_and_one_step_back_is_one_press(
    page: Any, server: Server
) -> None:
    whole = script("keyboard.js", "parts.js", "review.js")
    cases = {
        # an act of another question is taken back as the last one, wherever it was done
        """gallery.relabel('dog'); play('saved'); const { op } = gallery.history[0][0];
        gallery.numbers.last = ''; gallery.undo(); play('saved', { op, words: '', items: [{ item: 1 }] });
        return [shown(), gallery.cards[0].changed]""": ["cat no dog", False],
        # an undo that the server refuses
        """gallery.relabel('dog'); play('saved'); gallery.undo(); const before = shown(); play('conflict');
        return [before, shown(), gallery.history.length]""": ["cat no dog", "dog no dog", 1],
        # a key about what is chosen in another question, and about more than one question
        """choose(0); gallery.go(1); gallery.relabel('yes'); const kinds = play('saved');
        return [kinds, marked(), gallery.message.textContent.includes('another question')]""": [[], 1, True],
        """choose(0, 1); gallery.relabel('yes'); play('saved');
        return [shown(), marked(), gallery.message.textContent]""": [
            "cat yes dog",
            0,
            "1 item labelled yes. 1 chosen item of another question left as it is. Z takes it back.",
        ],
        # two classes in two questions are one step
        """choose(0, 1); gallery.agree(); play('saved'); const now = shown(); gallery.undo();
        return [now, play('saved'), shown(), gallery.history.length]""": [
            "dog yes dog",
            ["undo", "undo"],
            "cat no dog",
            0,
        ],
        """choose(0, 1); gallery.agree(); play('saved'); gallery.undo(); play('conflict');
        return [shown(), gallery.history.length]""": ["dog yes dog", 1],
        # labels that are right are kept, and one press takes that back, too
        """choose(0, 1); gallery.keep(); const kinds = play('saved');
        const kept = gallery.cards.map(card => card.kept);
        gallery.undo(); return [kinds, shown(), kept, play('saved'), gallery.cards[0].kept]""": [
            ["relabel", "relabel"],
            "cat no dog",
            [True, True, None],
            ["undo", "undo"],
            False,
        ],
        # the model sides with some of those who differ
        "gallery.go(2); gallery.agree(); return play('saved')": ["relabel"],
    }
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(
        whole.replace("window.component = function", "window.Gallery = Gallery; window.component = function")
    )
    for case, expected in cases.items():
        page.evaluate(TWO)
        assert page.evaluate(f"() => {{ {case} }}") == expected, case


def test_who_is_shut_out_of_the_gallery_saves_what_waits_as_a_file(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(GALLERY, [keys_for(["cat"]).commands, [{"name": "cat", "key": "1"}]])
    page.wait_for_function("window.replies >= 1")
    why = "{ why: 'Ann has closed it to you.', shut: true }"
    page.evaluate(f"window.fetch = async () => new Response(JSON.stringify({why}), {{ status: 403 }})")
    page.keyboard.press("f")
    page.locator(".status", has_text="closed to you; 1 kept in this browser").wait_for()
    with page.expect_download() as saved:
        page.locator("[data-command=kept]", has_text="Save the 1 kept answer as a file").click()
    (operation,) = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert (operation["kind"], operation["item"], operation["person"]) == ("flag", 0, "Ann")


def test_what_is_written_from_right_to_left_stands_so(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(
        GALLERY, [keys_for(["قط", "ox"]).commands, [{"name": "قط", "key": "1"}, {"name": "ox", "key": "2"}]]
    )
    shown = "one => getComputedStyle(one).direction"
    assert page.locator(".given").first.evaluate(shown) == "rtl"
    assert [one.evaluate(shown) for one in page.locator(".name bdi").all()] == ["rtl", "ltr"]
    assert page.locator(".text").first.get_attribute("dir") == "auto"
