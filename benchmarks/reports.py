"""`python -m benchmarks.reports FOLDER`: reports of the papers' experiments, kept beside the documentation.

A report of `workbench reproduce` is a folder with interactive figures of several megabytes. What docs/reports
keeps of it is its text and its pictures in few colours, each report a page.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "docs" / "reports"
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
    """Copy them and name them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reports", description=__doc__)
    parser.add_argument("folder", type=Path, help="what `workbench reproduce --out` was given")
    kept = keep(parser.parse_args(arguments).folder)
    print(f"{PLACE}: {', '.join(kept) or 'no reports found'}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
