from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.cards import HEIGHT, WIDTH, image_card, scatter_card
from tests.app.pages import open_page
from workbench.app.data.cards import face, picture
from workbench.pools import POOLS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", POOLS)
def test_every_pool_has_a_picture_that_is_small(name: str) -> None:
    path = picture(name, POOLS[name].kind)
    assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"
    assert path.stat().st_size < 50_000


@pytest.mark.parametrize("kind", ["table", "image", "text"])
def test_a_pool_without_a_picture_has_its_kinds(kind: str) -> None:
    assert picture("never heard of", kind).name == f"kind-{kind}.svg"


def test_a_card_says_what_a_pool_is_and_how_much_of_it_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    page = open_page("data")
    cards = [element.proto.body for element in page.get("html")]
    for entry in POOLS.values():
        [card] = [card for card in cards if f'alt="Items of {entry.title}"' in card]
        assert f">{entry.title}</p>" in card and entry.summary in card
    [iris] = [card for card in cards if 'alt="Items of Iris"' in card]
    assert "150\u00a0rows · 4\u00a0features · 3\u00a0classes" in iris, "a number stands with its noun"
    assert [page.button(key=f"{act}-iris").label for act in ("start", "options")] == [
        "Start labelling",
        "Options",
    ]


def test_the_words_of_a_card_are_shown_as_they_are() -> None:
    card = face("<b>", picture("iris", "table"), ("a & b", "c"))
    assert "Items of &lt;b&gt;" in card and "a &amp; b<br>c" in card and "<b>" not in card


def test_points_stay_on_the_card_and_images_draw_their_ink() -> None:
    svg = scatter_card(np.random.default_rng(0).normal(size=(500, 2)) * 1e6, np.full(500, -1))
    circles = ElementTree.fromstring(svg).findall(f"{SVG}circle")
    assert len(circles) == 220
    assert all(0 <= float(c.attrib["cx"]) <= WIDTH and 0 <= float(c.attrib["cy"]) <= HEIGHT for c in circles)
    assert scatter_card(np.zeros((3, 2)), np.zeros(3, dtype=int)).count("<circle") == 3
    assert image_card([np.eye(4), np.eye(4)]).count("<rect") == 8
