import re
from pathlib import Path

import pytest

from workbench.app.words.text import (
    for_people,
    one_line,
    percent,
    plural,
    verbatim,
    with_minus,
)

ROOT = Path(__file__).resolve().parents[3]


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
    assert one_line("n\u00a0=\u00a046 \n of") == "n\u00a0=\u00a046 of", "what stands together stays together"


def test_long_text_is_cut_before_it_is_escaped() -> None:
    assert verbatim("*" * 50, limit=4) == r"\*\*\*…"


def test_empty_text_stays_visible_as_a_space() -> None:
    assert verbatim("") == " "


def test_counts_and_shares() -> None:
    assert plural(1, "label") == "1 label"
    assert plural(1200, "label") == "1,200 labels"
    assert plural(2, "class", "classes") == "2 classes"
    assert percent(0.0834) == "8.3\u00a0%"
    assert percent(0.05) == percent(0.05, 0) == "5\u00a0%" and percent(1.0) == "100\u00a0%"
    assert with_minus("-3 to 11") == "\u22123 to 11"
    assert percent(float("nan")) == percent(None) == "–"


def test_messages_lose_python_s_arguments() -> None:
    message = 'Leave such rows out (missing="drop") or fill them in (missing="impute").'
    assert for_people(message) == "Leave such rows out or fill them in."
    assert for_people('missing="drop" leaves them out.') == "“leave rows out” leaves them out."
    assert for_people("nothing to change") == "nothing to change"


def test_every_term_a_page_explains_is_in_the_glossary() -> None:
    from workbench.app.words.text import explain

    pages = [*(ROOT / "pages").glob("*.py"), *(ROOT / "workbench" / "app").rglob("*.py")]
    calls = re.findall(r"\bexplain\(([^)]*)\)", "\n".join(p.read_text(encoding="utf-8") for p in pages))
    used = {name for call in calls for name in re.findall(r'"([^"]+)"', call)}
    assert {"ECE", "NLL", "inducing point", "latent"} <= used
    assert all(explain(name) for name in used)
    with pytest.raises(KeyError):
        explain("no such term")
