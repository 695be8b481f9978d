"""Links and names in the texts of the repository lead to something in the repository."""

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import rooms
from tests.test_architecture import ROOT, tracked_texts

PAGES = sorted(path for path in tracked_texts() if path.suffix == ".md" and path.is_file())
# pages that benchmarks/site_pages.py makes for the site
MADE = {ROOT / "docs" / "glossary.md"}
CODE = sorted(path for path in tracked_texts() if path.suffix == ".py" and path.is_file())


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as the hosting platforms make them."""
    heads = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        led = (page.parent / name).resolve() if name else page
        if led in MADE:
            continue
        assert led.exists(), f"{page.name} links to {target}"
        if anchor and led.suffix == ".md":
            assert anchor in anchors(led), f"{page.name} links to {target}, which has no such heading"


def test_what_the_reference_is_made_of_is_there() -> None:
    names = [name for page in PAGES for name in re.findall(r"^::: ([\w.]+)", page.read_text("utf-8"), re.M)]
    wrong = []
    for name in names:
        place = ROOT / name.replace(".", "/")
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            continue
        module = place.parent.with_suffix(".py")
        if not module.is_file() or not re.search(rf"^(class|def) {place.name}\b", module.read_text(), re.M):
            wrong.append(name)
    assert names and wrong == []


def test_no_text_cites_what_a_reader_cannot_open() -> None:
    wrong = []
    patterns = [r"\bMATH\.m" + "d", r"\bDESIGN\.m" + "d", r"\bpapers? 00" + r"\d", r"\.\./share" + "d"]
    for path in (*PAGES, *CODE):
        text = path.read_text(encoding="utf-8")
        wrong += [f"{path.relative_to(ROOT)}: {p}" for p in patterns if re.search(p, text)]
        for cited in re.findall(r"\bdocs/[\w/-]+\.md", text):
            if not (ROOT / cited).is_file():
                wrong.append(f"{path.relative_to(ROOT)}: {cited}")
    assert wrong == []


def test_sections_of_the_mathematics_that_code_cites_exist() -> None:
    sections = re.findall(
        r"^## (\d+)\. ", (ROOT / "docs" / "math.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    cited = {
        number
        for path in CODE
        for number in re.findall(r"docs/math\.md, (\d+)", path.read_text(encoding="utf-8"))
    }
    assert cited <= set(sections), cited - set(sections)


def test_tests_that_a_page_names_exist() -> None:
    """`tests/app/test_x.py::test_y` in a text; where it names several of a file, each."""
    wrong, found = [], 0
    for page in PAGES:
        for file, names in re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)+)`", page.read_text(encoding="utf-8")):
            there = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
            wrong += [
                f"{page.name}: {file}::{name}"
                for name in names.split("::")[1:]
                if f"def {name}(" not in there
            ]
            found += 1
    assert found > 20 and not wrong, "\n".join(wrong)


# what is not help: what was measured, what a command or the source wrote, and what one reads beside the code
NOT_HELP = (
    "reports/",
    "reference/",
    "results",
    "reproduction",
    "reliability",
    "math",
    "papers",
    "engine",
    "architecture",
)
MOST_WORDS = 14_000
READ = [
    page
    for page in PAGES
    if page.is_relative_to(ROOT / "docs")
    and not page.relative_to(ROOT / "docs").as_posix().startswith(NOT_HELP)
]


def prose(page: Path) -> str:
    """The text of a page as it is read: no blocks of code, comments or addresses of links."""
    text = re.sub(
        r"^```.*?^```|^<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"(?<=\n\n)(?: {4}.*\n)+", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def test_the_help_pages_can_be_read() -> None:
    counted = {
        page.relative_to(ROOT).as_posix(): sum(bool(re.search(r"\w", word)) for word in prose(page).split())
        for page in READ
    }
    assert len(counted) > 30
    assert sum(counted.values()) <= MOST_WORDS, dict(sorted(counted.items(), key=lambda one: -one[1]))


@pytest.mark.parametrize("page", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_help_page_begins_with_its_conclusion(page: Path) -> None:
    title, said, *_ = (line for line in page.read_text(encoding="utf-8").splitlines() if line)
    assert title.startswith("# ") and said.startswith("**"), f"{page.name}: {said}"


@pytest.mark.parametrize("page", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_help_page_tells_no_history_and_writes_its_zeros(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", prose(page))
    assert not re.findall(r"\b20\d\d-\d\d-\d\d\b|it said before|, missed|goal", text)
    assert not re.findall(r"(?<![\w.)\]])-?\.\d", text)


def test_messages_that_the_troubleshooting_page_quotes_are_said() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")][1:]
    quoted = [words for row in rows for words in re.findall(r'"([^"]+)"', row)]
    sources = [ROOT / "Makefile"]
    for room in ("workbench", "pages"):
        sources += [path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".js")]
    # strings of neighbouring lines are one sentence
    joins = re.compile(r'["\']\s*\n\s*f?["\']')
    said = "\n".join(joins.sub("", path.read_text(encoding="utf-8")) for path in sources)
    assert len(quoted) > 15 and [words for words in quoted if words not in said] == []


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def cells(heading: str) -> list[list[str]]:
    """The rows of the table of docs/architecture.md whose first line begins so."""
    lines = ARCHITECTURE.split(heading, 1)[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


_EXAMPLES = {"pages/NAME.py", "GaussianMeans", "name_"}  # what a newcomer is to make


def test_what_the_architecture_names_is_there() -> None:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in listing.stdout.splitlines()]
    code = {
        path.as_posix(): (ROOT / path).read_text(encoding="utf-8")
        for path in files
        if path.suffix in {".py", ".js", ".toml", ".css"} and (ROOT / path).is_file()
    }
    words = {word for text in code.values() for word in re.findall(r"\w+", text)} | {
        path.stem for path in files
    }
    places = {f"/{path.as_posix()}" for path in files} | {
        f"/{p.as_posix()}/" for f in files for p in f.parents
    }

    def is_there(term: str) -> bool:
        if not re.fullmatch(r"[\w.*-]+/[\w./*-]*", term):
            return set(re.findall(r"[A-Za-z_]\w+", term)) <= words | _EXAMPLES
        if any(place.endswith(f"/{term}") for place in places):
            return True
        module, _, name = term.rpartition(".")  # a function of a module, by its path
        return any(
            path.endswith(f"{module}.py") and re.search(rf"\b{name}\b", text) for path, text in code.items()
        )

    terms = sorted(set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", ARCHITECTURE, flags=re.DOTALL))))
    assert len(terms) > 300 and [term for term in terms if not is_there(term) and term not in _EXAMPLES] == []


def test_the_sizes_of_the_architecture_are_those_of_the_rooms(capsys: pytest.CaptureFixture[str]) -> None:
    """To a tenth, as they move with each commit; `python -m benchmarks.rooms` prints the table anew."""
    rooms.main([])
    heading = "| room | modules | lines of code"
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()
    ]
    printed = {row[0]: row[1:] for row in cells(heading)}
    counted = {row[0]: row[1:] for row in lines[2:]}
    assert printed.keys() == counted.keys()
    for room, row in counted.items():
        for now, then in zip(row, printed[room], strict=True):
            n, m = (int(cell.replace(",", "")) for cell in (now, then))
            assert abs(n - m) <= max(20, 0.1 * n), f"{room}: {m:,} are printed, and there are {n:,}"


def test_a_newcomer_finds_the_code_of_each_page() -> None:
    rows = cells("| room | page | what a person does there | its modules |")
    app = ROOT / "workbench" / "app"
    named = {row[0].strip("`"): sorted(re.findall(r"`([^`]+)`", row[3])) for row in rows}
    there = {
        f"{face.parent.name}/": sorted(path.stem for path in face.parent.glob("*.py") if path != face)
        for face in app.glob("*/__init__.py")
    }
    assert named == there
    assert [path.stem for path in app.glob("*.py") if path.stem != "__init__"] == ["server"]
    pages = {page for row in rows for page in re.findall(r"`([^`]+)`", row[1])}
    assert pages == {path.name for path in (ROOT / "pages").glob("*.py")}


def test_what_is_to_be_opened_is_there() -> None:
    rows = cells("| what | where |")
    assert len(rows) > 10
    for what, where in rows:
        for name in re.findall(r"`([a-z_./]+(?:\.(?:py|js|md|toml)|/))`", where):
            places = [ROOT, ROOT / "workbench", ROOT / "workbench" / "app" / "desk"]
            folder = where.split("`")[1].rpartition("/")[0]
            places.append(ROOT / "workbench" / folder)
            assert any((place / name).exists() for place in places), f"{what}: {name}"
