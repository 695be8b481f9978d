from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.cards import HEIGHT, WIDTH, image_card, scatter_card
from workbench.app.data.cards import picture
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


def test_points_stay_on_the_card_and_images_draw_their_ink() -> None:
    svg = scatter_card(np.random.default_rng(0).normal(size=(500, 2)) * 1e6, np.full(500, -1))
    circles = ElementTree.fromstring(svg).findall(f"{SVG}circle")
    assert len(circles) == 220
    assert all(0 <= float(c.attrib["cx"]) <= WIDTH and 0 <= float(c.attrib["cy"]) <= HEIGHT for c in circles)
    assert scatter_card(np.zeros((3, 2)), np.zeros(3, dtype=int)).count("<circle") == 3
    assert image_card([np.eye(4), np.eye(4)]).count("<rect") == 8
