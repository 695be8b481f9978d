"""`python -m benchmarks.reports FOLDER`: reports of the papers' experiments, kept beside the documentation.

A report of `workbench reproduce` is a folder with interactive figures of several megabytes. What docs/reports
keeps of it is its text and its pictures in few colours, each report a page. The table of docs/reproduction.md
is printed from these pages, claim by claim; without a folder it alone is printed again.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "docs" / "reports"
PAGE = PLACE.parent / "reproduction.md"
HEADS = ("table or figure", "claim", "paper", "ours", "verdict")
WIDEST = 1200  # pixels
_PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\(figures/(?P<name>[\w-]+)\.png\)\n")
_INTERACTIVE = re.compile(r"\[Interactive\]\(figures/[\w-]+\.html\)\n\n?")


def keep(folder: Path, place: Path = PLACE) -> list[str]:
    """Copy the reports of a folder that `workbench reproduce --out` wrote.

    Args:
        folder: with a folder for each experiment.
        place: of the pages.

    Returns:
        Names of the experiments.
    """
    place.mkdir(parents=True, exist_ok=True)
    kept = []
    for report in sorted(folder.glob("*/report.md")):
        name = report.parent.name
        words = _INTERACTIVE.sub("", report.read_text(encoding="utf-8"))
        for old in place.glob(f"{name}-*.png"):
            old.unlink()

        def picture(match: re.Match[str], name: str = name, report: Path = report) -> str:
            file = f"{name}-{match['name']}.png"
            _few_colours(report.parent / "figures" / f"{match['name']}.png", place / file)
            return f"![{match['words']}]({file})\n"

        (place / f"{name}.md").write_text(_PICTURE.sub(picture, words).rstrip() + "\n", encoding="utf-8")
        kept.append(name)
    return kept


def table(place: Path = PLACE) -> str:
    """The claims of all kept reports as one Markdown table, with what differs from the paper.

    Args:
        place: of the pages.
    """
    from workbench.papers.reproduce import EXPERIMENTS

    rows = [HEADS, ("---",) * len(HEADS)]
    for entry in EXPERIMENTS.values():
        page = place / f"{entry.name}.md"
        if not page.is_file():
            continue
        words = page.read_text(encoding="utf-8")
        claims = words.partition("## What the paper says")[2].strip().split("\n\n")[1].splitlines()[2:]
        caps = re.search(r"^Not run in full:\n\n((?:- .*\n)+)", words, re.MULTILINE)
        first = f"{entry.paper}: [{entry.name}](reports/{entry.name}.md)"
        if caps:
            first += ". Ours: " + "; ".join(line[2:] for line in caps[1].splitlines())
        rows += [(first if i == 0 else "the same", claim.strip("| ")) for i, claim in enumerate(claims)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def with_table(text: str, made: str) -> str:
    """The page with this table in the place of its own."""
    head = re.escape("| " + " | ".join(HEADS) + " |")
    return re.sub(rf"^{head}\n(?:\|.*\n)*", lambda _: made, text, flags=re.MULTILINE)


def _few_colours(source: Path, target: Path) -> None:
    from PIL import Image

    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    if picture.width > WIDEST:
        picture = picture.resize(
            (WIDEST, round(picture.height * WIDEST / picture.width)), Image.Resampling.LANCZOS
        )
    picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        target, optimize=True
    )


def main(arguments: list[str] | None = None) -> int:
    """Copy them, name them, and print the table of the page again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reports", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="what `workbench reproduce --out` was given")
    folder = parser.parse_args(arguments).folder
    kept = [] if folder is None else keep(folder)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
    print(f"{PLACE}: {', '.join(kept) or 'no reports found'}; the table of {PAGE.name} is theirs")
    return 0 if kept or folder is None else 1


if __name__ == "__main__":
    raise SystemExit(main())
