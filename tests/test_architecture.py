"""The house keeps its shape: floors, lazy imports, packaging, and what the texts may not say."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "workbench"

# The lower floor has the smaller number; an import may go down or stay, never up.
FLOORS = {
    "arrays": 0,
    "client": 0,
    "csv_writing": 0,
    "documents": 0,
    "errors": 0,
    "progress": 0,
    "reading": 0,
    "registry": 0,
    "members": 0,
    "short_names": 0,
    "writing": 0,
    "certificates": 1,
    "metrics": 1,
    "pools": 1,
    "figures": 1.5,
    "engine": 2,
    "work": 2.5,
    "classifiers": 3,
    "guesses": 3.5,
    "policies": 4,
    "attacks": 4,
    "store": 5,
    "sessions": 6,
    "exchange": 7,
    "studies": 8,
    "experiments": 8.5,
    "app": 9,
    "main": 10,
    "cli": 10,
    "__main__": 11,
}
# floors that may know each other only one way although they share a storey
FORBIDDEN_PAIRS = {
    ("metrics", "pools"),
    ("pools", "figures"),
    ("metrics", "figures"),
    ("pools", "metrics"),
} | {
    (one, other)
    for one, other in (
        ("certificates", "pools"),
        ("certificates", "metrics"),
        ("pools", "certificates"),
        ("metrics", "certificates"),
    )
}
ALLOWED_FIGURES = {"csv_writing", "figures", "metrics", "arrays", "errors", "registry", "short_names"}


def room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_modules(path: Path, *, module_level: bool = False) -> set[str]:
    """Absolute names a file imports; with `module_level`, only those that run on import."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if module_level and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            if module_level and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    visit(other)
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.module and child.level == 0:
                found.add(child.module)
                found.update(f"{child.module}.{alias.name}" for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.level:
                raise AssertionError(f"{path}: relative import; write it out")
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_never_point_up(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    assert here in FLOORS, f"workbench/{here} has no floor; give it one in DESIGN's order"
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] != "workbench" or len(parts) < 2:
            continue
        if parts[1] not in FLOORS:
            assert FLOORS[here] >= FLOORS["cli"], f"{here} imports {module} from the package's face"
            continue
        there = parts[1]
        assert FLOORS[there] <= FLOORS[here], f"{here} imports {module}, which lies above it"
        assert (here, there) not in FORBIDDEN_PAIRS, f"{here} may not know {there}"
        if here == "figures":
            assert there in ALLOWED_FIGURES, "figures are pure: arrays in, Figure out"


# a room of the app imports rooms that stand before it; the server, beside them, puts all together
APP = (
    "words",
    "serving",
    "access",
    "shell",
    "desk",
    "programs",
    "label",
    "data",
    "uncertainty",
    "history",
    "finish",
    "compare",
    "lessons",
    "server",
)


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "app").rglob("*.py")), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_rooms_of_the_app_import_those_before_them(path: Path) -> None:
    here = path.relative_to(PACKAGE / "app").parts[0].removesuffix(".py")
    if here == "__init__":
        return
    assert here in APP, f"{path.name} belongs into a room of the app; docs/architecture.md has their table"
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[:2] == ["workbench", "app"] and len(parts) > 2:
            there = parts[2]
            assert APP.index(there) <= APP.index(here), f"{here} imports {module}, a room behind it"


def imported_files(path: Path) -> set[str]:
    """Modules of ours that a file imports by name, at its head or inside functions."""
    names = {module_name(source) for source in SOURCES}
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py":
        # a package's face names for type checkers what it hands on when asked, and uses none of it
        tree.body = [node for node in tree.body if not _is_for_types(node)]
    for node in _imports(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            # "from package import name" means the module package.name where there is one, else the package
            found.update(
                full if (full := f"{node.module}.{alias.name}") in names else str(node.module)
                for alias in node.names
            )
    return found & names


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from _imports(child)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach each other."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        met, todo = set(), list(graph[module])
        while todo:
            other = todo.pop()
            if other not in met:
                met.add(other)
                todo.extend(graph.get(other, ()))
        reached[module] = met
    groups = {frozenset(o for o in reached[m] if m in reached[o]) for m in graph if m in reached[m]}
    return sorted((set(group) for group in groups), key=sorted)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also inside a package, inside functions and for types: to read one must not take reading the other."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e"}}) == [{"a", "b", "c"}, {"e"}]
    graph = {module_name(path): imported_files(path) for path in SOURCES}
    assert circles(graph) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_tensorflow_lives_in_the_engine_and_streamlit_in_the_app(path: Path) -> None:
    here = room(path)
    roots = {module.split(".")[0] for module in imported_modules(path)}
    if here not in {"engine", "attacks"}:
        eager = {module.split(".")[0] for module in imported_modules(path, module_level=True)}
        assert not eager & {"tensorflow", "gpflow", "keras", "tf_keras", "tensorflow_probability"}
    if here not in {"app", "main"}:
        assert "streamlit" not in roots
    assert here == "store" or "sqlalchemy" not in roots


PRIVATE_STREAMLIT = {"streamlit.config", "streamlit.file_util", "streamlit.runtime", "streamlit.web"}
# what Streamlit documents beside the names at its top
PUBLIC_STREAMLIT = {"streamlit.components.v1", "streamlit.testing.v1", "streamlit.errors"}


def test_private_parts_of_streamlit_are_used_in_one_place() -> None:
    wrong = []
    for path in (*SOURCES, *(ROOT / "pages").glob("*.py"), ROOT / "streamlit_app.py"):
        if path == PACKAGE / "app" / "serving" / "streamlit_private.py":
            continue
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for node in _imports(tree):
            names = [alias.name for alias in node.names]
            full = names if isinstance(node, ast.Import) else [f"{node.module}.{name}" for name in names]
            for name in full:
                inner = name.startswith("streamlit.") and name.count(".") + isinstance(node, ast.Import) > 1
                public = any(f"{name}.".startswith(f"{part}.") for part in PUBLIC_STREAMLIT)
                if (inner or name in PRIVATE_STREAMLIT) and not public:
                    wrong.append(f"{path.name}: {name}")
        wrong += [f"{path.name}: {name}" for name in re.findall(r"(?<![\w.])st\._\w+", source)]
    assert wrong == []


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.name)
def test_pages_only_show(path: Path) -> None:
    roots = {module.split(".")[0] for module in imported_modules(path)}
    assert not roots & {"tensorflow", "gpflow", "keras", "sklearn", "sqlalchemy", "dask", "distributed"}


def test_listing_everything_needs_no_heavy_library() -> None:
    code = (
        "import sys, json\n"
        "import workbench, workbench.cli\n"
        "from workbench.pools import POOLS\n"
        "from workbench.classifiers import CLASSIFIERS\n"
        "from workbench.policies import POLICIES\n"
        "import workbench.sessions, workbench.store, workbench.studies, workbench.exchange\n"
        "list(POOLS), list(CLASSIFIERS), list(POLICIES)\n"
        "heavy = {'tensorflow', 'gpflow', 'sklearn', 'sqlalchemy', 'dask', 'distributed', 'streamlit'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == []


def test_every_package_is_shipped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(("workbench", *path.parent.relative_to(PACKAGE).parts))
        for path in PACKAGE.rglob("__init__.py")
    }
    assert found <= shipped, f"add to pyproject packages: {sorted(found - shipped)}"


def test_no_function_is_longer_than_a_screen() -> None:
    """Lines of code, without docstrings and comments; pages and tests among them."""
    from benchmarks.rooms import lines_of, rooms

    longest = {
        str(file.relative_to(ROOT)): lines_of(file.read_text(encoding="utf-8")).longest
        for _, files in rooms(ROOT)
        for file in files
    }
    assert {file: n for file, n in longest.items() if n > 80} == {}


def test_what_a_person_opened_stays_open() -> None:
    # without a key another label, or another place, is another element, which is shut
    without = []
    for path in (*SOURCES, *(ROOT / "pages").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "expander" in source or "popover" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("st.expander", "st.popover"):
                named = any(keyword.arg == "key" for keyword in node.keywords)
                without += [] if named else [f"{path.name}:{node.lineno}"]
    assert without == []


def test_files_are_offered_by_our_own_button() -> None:
    # Streamlit's forgets the address a browser still shows when its page redraws
    sources = [*SOURCES, *(ROOT / "pages").glob("*.py")]
    assert [p.name for p in sources if "st.download_button(" in p.read_text(encoding="utf-8")] == []


def test_locks_pin_versions_and_name_no_place() -> None:
    pins = {}
    for name in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        pins[name] = {line.partition(" ;")[0] for line in lines}
        assert lines
        for line in lines:
            assert re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.+!_-]+( ; [^/@]+)?", line), line
    assert pins["requirements.lock"] <= pins["requirements-dev.lock"]


def test_lock_holds_what_the_program_asks_for_on_every_platform() -> None:
    packaging = pytest.importorskip("packaging.requirements")
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = document["project"]["optional-dependencies"]
    for name, wanted in (
        ("requirements.lock", [*document["project"]["dependencies"], *extras["maps"], *extras["qr"]]),
        ("requirements-dev.lock", [*document["project"]["dependencies"], *extras["dev"], *extras["docs"]]),
    ):
        pinned: dict[str, list[Any]] = {}
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            requirement = packaging.Requirement(line)
            pinned.setdefault(canonical(requirement.name), []).append(requirement)
        for platform, machine in (
            ("linux", "x86_64"),
            ("linux", "aarch64"),
            ("darwin", "arm64"),
            ("win32", "AMD64"),
        ):
            there = {
                "sys_platform": platform,
                "platform_machine": machine,
                "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[platform],
                "python_version": "3.12",
                "python_full_version": "3.12.5",
            }
            for text in wanted:
                asked = packaging.Requirement(text)
                if asked.marker and not asked.marker.evaluate(there):
                    continue
                fits = [
                    p
                    for p in pinned.get(canonical(asked.name), [])
                    if not p.marker or p.marker.evaluate(there)
                ]
                assert len(fits) == 1, f"{name}, {platform} {machine}: {text}"
                version = str(fits[0].specifier).removeprefix("==")
                assert asked.specifier.contains(version, prereleases=True), f"{name}: {text}, not {version}"


def canonical(name: str) -> str:
    """The name by which package indexes know it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def tracked_texts() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    kinds = {".py", ".md", ".toml", ".lock", ".csv", ".json", ".yaml", ".yml", ".txt", ""}
    return [ROOT / name for name in listing.stdout.splitlines() if Path(name).suffix in kinds]


def test_tracked_texts_name_no_machine_and_no_registry_host() -> None:
    patterns = [r"py" + r"pi\.org", "python" + "hosted", r"deb\." + r"debian\.org", r"registry\.npm" + "js"]
    patterns += [r"(?<![\w.])/(wo" + r"rk|fa" + r"rm|ro" + r"ot)/"]
    named = re.compile("|".join(patterns))
    texts = {
        path: path.read_text(encoding="utf-8", errors="replace") for path in tracked_texts() if path.is_file()
    }
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}" for path in texts if (found := named.search(texts[path]))
    ]
    assert wrong == []


def test_a_slow_test_says_what_it_alone_protects() -> None:
    silent = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef) or ast.get_docstring(node):
                continue
            slow = [mark for mark in node.decorator_list if ast.unparse(mark) == "pytest.mark.slow"]
            silent += [f"{path.name}: {node.name}" for mark in slow if "  # " not in lines[mark.lineno - 1]]
    assert silent == []
