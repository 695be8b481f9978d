"""The menu under a figure draws nothing before a file is asked for."""

import pytest
from streamlit.testing.v1 import AppTest

from workbench.figures import export


def page() -> None:
    import plotly.graph_objects as go

    from workbench.app.downloads import figure_downloads

    figure_downloads(go.Figure(go.Scatter(x=[1], y=[2])), "curve", "save")


@pytest.fixture
def never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("drawn although nobody asked")

    monkeypatch.setattr(export, "html", refuse)
    monkeypatch.setattr(export, "image", refuse)


@pytest.mark.usefixtures("never_drawn")
def test_four_files_where_a_browser_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "why_no_images", lambda: "")
    shown = AppTest.from_function(page).run()
    assert not shown.exception
    assert [b.label.partition("(")[2] for b in shown.get("download_button")] == [
        "HTML)",
        "CSV)",
        "PNG)",
        "SVG)",
    ]


@pytest.mark.usefixtures("never_drawn")
def test_html_and_a_reason_where_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "why_no_images", lambda: "No browser here.")
    shown = AppTest.from_function(page).run()
    assert [b.label for b in shown.get("download_button")] == [
        "Interactive page (HTML)",
        "Numbers (CSV)",
    ]
    assert "No browser here." in [c.value for c in shown.caption]
