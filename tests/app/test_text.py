import re
from pathlib import Path

import pytest

from workbench.app.words.text import (
    calibration_meaning,
    calibration_verdict,
    for_people,
    one_line,
    percent,
    plural,
    verbatim,
)

ROOT = Path(__file__).resolve().parents[2]


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


def test_a_choice_of_a_select_box_is_cut_and_not_escaped() -> None:
    assert one_line("letters (your\nproject)") == "letters (your project)"
    assert one_line("*" * 50, limit=4) == "***…" and one_line("") == " "


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


def test_messages_lose_python_s_arguments() -> None:
    message = 'Leave such rows out (missing="drop") or fill them in (missing="impute").'
    assert for_people(message) == "Leave such rows out or fill them in."
    assert (
        for_people('It is no image. Leave it out, or say corrupt="drop".') == "It is no image. Leave it out."
    )
    assert for_people('missing="drop" leaves them out.') == "“leave rows out” leaves them out."
    assert for_people("nothing to change") == "nothing to change"


@pytest.mark.parametrize(
    ("confidence", "accuracy", "n", "word"),
    [(0.9, 0.83, 359, "too sure"), (0.7, 0.83, 359, "too modest"), (0.9, 0.83, 20, "within chance")],
)
def test_a_verdict_says_the_direction_and_knows_chance(
    confidence: float, accuracy: float, n: int, word: str
) -> None:
    said = f"Says {100 * confidence:.0f} %, is right 83 %: {word} (n = {n})."
    assert calibration_verdict(confidence, accuracy, n) == said
    assert "it is cat in 83 %" in calibration_verdict(confidence, accuracy, n, "cat")
    assert "within chance" in calibration_verdict(1.0, 1.0, 5)


def test_few_items_are_not_said_to_tell_more_than_they_can() -> None:
    assert calibration_meaning(0.95, 0.88, 40).startswith("As far as 40 items can tell, you can take")
    assert calibration_meaning(0.9, 0.9, 359).startswith("You can take its percentages")
    assert "too high" in calibration_meaning(0.9, 0.6, 40)


def test_every_term_a_page_explains_is_in_the_glossary() -> None:
    from workbench.app.words import glossary

    pages = [*(ROOT / "pages").glob("*.py"), *(ROOT / "workbench" / "app").rglob("*.py")]
    calls = re.findall(r"\bexplain\(([^)]*)\)", "\n".join(p.read_text(encoding="utf-8") for p in pages))
    used = {name for call in calls for name in re.findall(r'"([^"]+)"', call)}
    assert {"ECE", "NLL", "inducing point", "latent"} <= used
    assert all(glossary.explain(name) for name in used)
    with pytest.raises(KeyError):
        glossary.explain("no such term")
