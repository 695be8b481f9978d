"""Pages that the site makes from the source: the glossary of the pages and the figure of the imports."""

from __future__ import annotations

import ast
import html
import os
import tomllib
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
WIDTH, ROW, BOX, GAP = 860, 78, 118, 22
# what every floor stands on and nobody needs drawn
GROUND = {"arrays", "errors", "reading", "registry", "__init__", "__main__", "main"}


def on_startup(**_: Any) -> None:
    """Give the notebook, which is executed, a home of its own: its project is not one of whoever builds."""
    os.environ["WORKBENCH_HOME"] = mkdtemp(prefix="workbench-docs-")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated files to the site (MkDocs calls this)."""
    files.append(File.generated(config, "glossary.md", content=glossary()))
    files.append(File.generated(config, "images/imports.svg", content=picture(imports())))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put the figure of the imports into the page on the architecture (MkDocs calls this)."""
    if page.file.src_uri != "architecture.md":
        return markdown
    figure = "![The folders of the package and who imports whom](images/imports.svg)"
    return markdown.replace("## Floors\n", f"{figure}\n\n## Floors\n", 1)


def glossary() -> str:
    """The page of terms, from the file that the app explains them with."""
    with (ROOT / "workbench" / "app" / "words" / "glossary.toml").open("rb") as file:
        terms = tomllib.load(file)
    lines = ["# Glossary", "", "The words the pages explain on hover.", ""]
    for term in sorted(terms, key=str.lower):
        lines += [f"**{term}**", f"{terms[term]}", ""]
    return "\n".join(lines)


def imports() -> dict[tuple[str, str], int]:
    """Number of files of one folder that import another folder: (from, to) -> files."""
    found: dict[tuple[str, str], int] = {}
    package = ROOT / "workbench"
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        here = parts[0] if len(parts) > 1 else path.stem
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        for there in {name.split(".")[1] for name in names if name.startswith("workbench.")}:
            known = (package / there).is_dir() and here not in GROUND
            if known and there != here:
                found[here, there] = found.get((here, there), 0) + 1
    return found


def rows(edges: dict[tuple[str, str], int]) -> list[list[str]]:
    """Folders by height: each stands above everything it imports; the highest first."""
    below: dict[str, set[str]] = {}
    for here, there in edges:
        below.setdefault(here, set()).add(there)
        below.setdefault(there, set())

    def height(name: str) -> int:
        return 1 + max((height(other) for other in below[name]), default=-1)

    heights = {name: height(name) for name in below}
    return [
        sorted(name for name in heights if heights[name] == level)
        for level in range(max(heights.values()), -1, -1)
    ]


def picture(edges: dict[tuple[str, str], int]) -> str:
    """The folders as an SVG: boxes by floor, a line for each import, thicker for more files."""
    place: dict[str, tuple[float, float]] = {}
    floors = rows(edges)
    for level, names in enumerate(floors):
        span = len(names) * BOX + (len(names) - 1) * GAP
        # neighbouring floors are shifted so that lines pass between boxes
        start = (WIDTH - span) / 2 + (70 if level % 2 else -70)
        for column, name in enumerate(names):
            place[name] = (start + column * (BOX + GAP) + BOX / 2, 34 + level * ROW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {len(floors) * ROW}" '
        'role="img" aria-label="Folders of the package and who imports whom" '
        'font-family="system-ui, sans-serif" font-size="15">',
        f'<rect width="{WIDTH}" height="{len(floors) * ROW}" fill="#ffffff" rx="8"/>',
    ]
    for (here, there), count in sorted(edges.items()):
        (x0, y0), (x1, y1) = place[here], place[there]
        bend = (y0 + y1) / 2
        parts.append(
            f'<path d="M{x0:.0f} {y0 + 17:.0f} C{x0:.0f} {bend:.0f} '
            f'{x1:.0f} {bend:.0f} {x1:.0f} {y1 - 17:.0f}" '
            f'fill="none" stroke="#7a86a8" stroke-opacity=".55" stroke-width="{0.7 + count**0.5 * 0.45:.1f}">'
            f"<title>{html.escape(here)} imports {html.escape(there)} in {count} files</title></path>"
        )
    for name, (x, y) in place.items():
        parts.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - 17:.0f}" width="{BOX}" height="34" rx="6" '
            'fill="#eef1fb" stroke="#3949ab"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#1a2046">'
            f"{html.escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>"])
