import pytest

from workbench.app.text import percent, plural, verbatim


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain name", "plain name"),
        ("**bold**", r"\*\*bold\*\*"),
        ("<script>", r"\<script\>"),
        (":red[x]", r"\:red\[x\]"),
        ("$x^2$", r"\$x\^2\$"),
        ("1. first", r"1\. first"),
        ("a\nb", "a b"),
    ],
)
def test_markdown_is_escaped(given: str, shown: str) -> None:
    assert verbatim(given) == shown


def test_long_text_is_cut_before_it_is_escaped() -> None:
    assert verbatim("*" * 50, limit=4) == r"\*\*\*…"


def test_empty_text_stays_visible_as_a_space() -> None:
    assert verbatim("") == " "


def test_counts_and_shares() -> None:
    assert plural(1, "label") == "1 label"
    assert plural(1200, "label") == "1,200 labels"
    assert plural(2, "class", "classes") == "2 classes"
    assert percent(0.0834) == "8.3 %"
    assert percent(float("nan")) == percent(None) == "–"
