"""Figures as files: HTML that works offline, pictures where a browser is found."""

import re
from pathlib import Path

import plotly.graph_objects as go
import pytest

from workbench.errors import InputError
from workbench.figures import export, theme


@pytest.fixture
def fig() -> go.Figure:
    made = theme.figure(x="labels", y="error", height=300)
    return made.add_trace(go.Scatter(x=[1, 2], y=[3, 4], name="margin"))


def test_a_page_loads_nothing(fig: go.Figure) -> None:
    page = export.html(fig, "a curve")
    # the script is within: no element of the page asks for a file
    head = page.replace(export.script(), "")
    assert len(head) < 30_000 < len(page)
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=", head)
    assert 'id="a-curve"' in head and "margin" in head
    assert page == export.html(fig, "a curve")


def test_a_shared_script_lies_beside(fig: go.Figure) -> None:
    page = export.html(fig, "f", shared=True)
    assert re.findall(r"<script[^>]*src=\"([^\"]*)\"", page) == [export.SCRIPT]
    assert len(page) < 30_000


def test_without_a_browser_a_sentence_says_so(fig: go.Figure, monkeypatch: pytest.MonkeyPatch) -> None:
    from choreographer.browsers.chromium import Chromium

    monkeypatch.setattr(Chromium, "find_browser", lambda **options: None)
    assert "Chrome or Chromium" in export.why_no_images()
    with pytest.raises(InputError, match="none was found"):
        export.image(fig, "png")


def test_without_kaleido_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    assert "pip install kaleido" in export.why_no_images()


def test_a_browser_that_fails_is_said(
    fig: go.Figure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from choreographer.browsers.chromium import Chromium

    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(Chromium, "find_browser", lambda **options: str(broken))
    with pytest.raises(InputError, match="could not draw"):
        export.image(fig, "png")


def test_a_browser_that_hangs_is_given_up(
    fig: go.Figure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from choreographer.browsers.chromium import Chromium

    hanging = tmp_path / "chromium"
    hanging.write_text("#!/bin/sh\nexec sleep 20\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(Chromium, "find_browser", lambda **options: str(hanging))
    monkeypatch.setattr(export, "SECONDS", 0.5)
    with pytest.raises(InputError, match=r"could not draw|no picture in"):
        export.images([fig], "png")


@pytest.mark.slow  # alone: PNG and SVG by a real browser
def test_pictures_are_drawn_where_there_is_a_browser(fig: go.Figure) -> None:
    if export.why_no_images():
        pytest.skip(export.why_no_images())
    png, again = export.images([fig, fig], "png")
    assert png == again
    assert png.startswith(b"\x89PNG")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (2 * export.WIDTH, 2 * 300)
    svg = export.image(fig, "svg").decode()
    assert svg.startswith("<svg") and "margin" in svg


def test_the_numbers_of_a_figure_are_a_table() -> None:
    fig = go.Figure()
    fig.add_scatter(x=[1, 2], y=[0.5, 0.25], name="=a &lt;b&gt;")
    fig.add_scatter(x=[1, 1], y=[0, 1], fill="toself")
    fig.add_heatmap(x=[0, 1], y=[5], z=[[7, 8]])
    lines = export.numbers(fig).splitlines()
    assert lines[0] == "panel,name,x,y,value"
    assert lines[1:3] == ["x,'=a <b>,1,0.5,", "x,'=a <b>,2,0.25,"]
    assert lines[3:] == ["x,,0,5,7", "x,,1,5,8"], "the tint of a band is no number"
