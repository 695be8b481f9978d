"""The house keeps its shape: floors, lazy imports, packaging, and what the texts may not say."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks import rooms

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "workbench"

# The lower floor has the smaller number; an import may go down or stay, never up.
FLOORS = {
    "arrays": 0,
    "client": 0,
    "csv_writing": 0,
    "documents": 0,
    "errors": 0,
    "numpy_predictor": 0,
    "progress": 0,
    "reading": 0,
    "registry": 0,
    "members": 0,
    "shares": 0,
    "short_names": 0,
    "versions": 0,
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
    "papers": 8.5,
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
ALLOWED_FIGURES = {
    "csv_writing",
    "figures",
    "metrics",
    "arrays",
    "errors",
    "registry",
    "shares",
    "short_names",
}


def room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


SOURCES = sorted(PACKAGE.rglob("*.py"))
SHOWN = sorted((ROOT / "pages").glob("*.py"))


class Import(NamedTuple):
    """One import of a file.

    Attributes:
        module: the module after `import` or `from`.
        name: what is taken from it; empty for a plain `import`.
        eager: whether it runs when the file is imported.
        typed: whether it is for type checkers alone.
    """

    module: str
    name: str
    eager: bool
    typed: bool

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, which several tests walk through."""
    return rooms.parsed(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """The imports of a file, each file parsed once for all tests."""
    records: list[Import] = []

    def visit(nodes: list[Any], eager: bool, typed: bool) -> None:
        for node in nodes:
            if isinstance(node, ast.Import):
                records.extend(Import(alias.name, "", eager, typed) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module, f"{path}: relative import; write it out"
                records.extend(Import(node.module, alias.name, eager, typed) for alias in node.names)
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            visit(getattr(node, "body", []), eager and not function and not for_types, typed or for_types)
            for field in ("orelse", "handlers", "finalbody", "cases"):
                visit(getattr(node, field, []), eager, typed)

    visit(tree(path).body, True, False)
    return tuple(records)


def imported_modules(path: Path, *, module_level: bool = False) -> set[str]:
    """Absolute names a file imports; with `module_level`, only those that run on import."""
    used = [record for record in imports(path) if record.eager or not module_level]
    return {record.module for record in used} | {record.full for record in used}


def test_every_import_of_a_file_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "import a.b as c\nfrom d import e, f\nif TYPE_CHECKING:\n    import g\nelse:\n    import h\n"
        "class C:\n    import i\n    async def m(self):\n        with x:\n            import j\n"
        "try:\n    pass\nexcept E:\n    import k\nelse:\n    import m\nfinally:\n    import n\n"
        "match x:\n    case 1:\n        import o\nfor x in y:\n    while z:\n        import p\n"
    )
    everything = {"a.b", "d", "d.e", "d.f", *"ghijkmnop"}
    assert imported_modules(file) == everything
    assert imported_modules(file, module_level=True) == everything - {"g", "j"}
    assert [record.module for record in imports(file) if record.typed] == ["g"]
    (tmp_path / "b.py").write_text("def f():\n    from . import a\n")
    with pytest.raises(AssertionError, match="relative import"):
        imports(tmp_path / "b.py")


def test_imports_never_point_up() -> None:
    wrong = []
    for path in SOURCES:
        here, file = room(path), path.relative_to(PACKAGE)
        if here == "__init__":
            continue
        assert here in FLOORS, f"workbench/{here} has no floor: FLOORS and docs/architecture.md name it"
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] != "workbench" or len(parts) < 2:
                continue
            there = parts[1]
            if there not in FLOORS:
                if FLOORS[here] < FLOORS["cli"]:
                    wrong.append(f"{file} imports {module} from the package's face")
                continue
            if FLOORS[there] > FLOORS[here]:
                wrong.append(f"{file} imports {module}, which lies above it")
            if (here, there) in FORBIDDEN_PAIRS:
                wrong.append(f"{file}: {here} may not know {there}")
            if here == "figures" and there not in ALLOWED_FIGURES:
                wrong.append(f"{file} imports {module}; figures are pure: arrays in, Figure out")
    assert wrong == []


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


def test_rooms_of_the_app_import_those_before_them() -> None:
    wrong = []
    for path in sorted((PACKAGE / "app").rglob("*.py")):
        here = path.relative_to(PACKAGE / "app").parts[0].removesuffix(".py")
        if here == "__init__":
            continue
        assert here in APP, (
            f"{path.name} belongs into a room of the app; docs/architecture.md has their table"
        )
        for module in imported_modules(path):
            parts = module.split(".")
            there = parts[2] if parts[:2] == ["workbench", "app"] and len(parts) > 2 else here
            if APP.index(there) > APP.index(here):
                wrong.append(f"{here}/{path.name} imports {module}, a room behind it")
    assert wrong == []


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph() -> dict[str, set[str]]:
    """The modules of ours that each of ours imports by name, at its head, inside functions and for types.

    A package's face names for type checkers what it hands on when asked, and uses none of it.
    """
    names = {module_name(path) for path in SOURCES}
    arrows = {}
    for path in SOURCES:
        used = [r for r in imports(path) if not (r.typed and path.name == "__init__.py")]
        # "from package import name" means the module package.name where there is one, else the package
        arrows[module_name(path)] = names & {r.full if r.full in names else r.module for r in used}
    return arrows


def chain(arrows: dict[str, set[str]]) -> list[str]:
    """The longest way along the arrows, the importing module first; a circle is an error."""
    longest: dict[str, list[str]] = {}
    for module in TopologicalSorter(arrows).static_order():
        longest[module] = [
            module,
            *max((longest[other] for other in arrows.get(module, ())), key=len, default=[]),
        ]
    return max(longest.values(), key=len)


# modules on the longest chain of imports: it may only become smaller
LONGEST_CHAIN = 35


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also inside a package, inside functions and for types: to read one must not take reading the other."""
    for circle in ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, {"e": {"e"}}):
        with pytest.raises(CycleError):
            chain(circle)
    chain(graph())


def test_the_longest_chain_of_imports_does_not_grow() -> None:
    """A reader of the first module may have to read each of the others."""
    assert chain({"a": {"b", "c"}, "b": {"c"}, "d": {"c"}}) == ["a", "b", "c"]
    modules = chain(graph())
    assert len(modules) <= LONGEST_CHAIN, f"{len(modules)} modules: " + " ".join(modules)


def test_the_ways_through_the_code_are_followed_by_imports_and_short() -> None:
    """The table of docs/architecture.md: from each file to the next, or to the package that hands it on."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("## Five ways through the code", 1)[1].split("\n## ", 1)[0]
    arrows = graph()

    def leads(module: str, following: str) -> bool:
        package = following.rpartition(".")[0]
        registries = (ROOT / package.replace(".", "/")).glob("*.toml")
        hands_on = following in arrows[package] or any(
            f'"{following}:' in path.read_text(encoding="utf-8") for path in registries
        )
        return following in arrows[module] or (package in arrows[module] and hands_on)

    ways = [line.split("|")[2] for line in table.splitlines() if line.startswith("| a ")]
    assert len(ways) == 5
    broken = []
    for way in ways:
        assert len(set(re.findall(r"`([^`]+)`", way))) <= 10, way
        for part in way.split("; then "):
            files = [PACKAGE / name for name in re.findall(r"`([^`]+)`", part)]
            assert all(path.is_file() for path in files), part
            modules = [module_name(path) for path in files if path.suffix == ".py"]
            broken += [f"{a} > {b}" for a, b in pairwise(modules) if not leads(a, b)]
    assert broken == []


def test_tensorflow_lives_in_the_engine_and_streamlit_in_the_app() -> None:
    wrong = []
    for path in SOURCES:
        here, file = room(path), str(path.relative_to(PACKAGE))
        roots = {module.split(".")[0] for module in imported_modules(path)}
        eager = {module.split(".")[0] for module in imported_modules(path, module_level=True)}
        heavy = eager & {"tensorflow", "gpflow", "keras", "tf_keras", "tensorflow_probability"}
        if heavy and here not in {"engine", "attacks"}:
            wrong.append(f"{file}: {heavy} at its head")
        if "streamlit" in roots and here not in {"app", "main"}:
            wrong.append(f"{file}: streamlit")
        if "sqlalchemy" in roots and here != "store":
            wrong.append(f"{file}: sqlalchemy")
    assert wrong == []


PRIVATE_STREAMLIT = {"streamlit.config", "streamlit.file_util", "streamlit.runtime", "streamlit.web"}
# what Streamlit documents beside the names at its top
PUBLIC_STREAMLIT = {"streamlit.components.v1", "streamlit.testing.v1", "streamlit.errors"}


def test_private_parts_of_streamlit_are_used_in_one_place() -> None:
    wrong = []
    for path in (*SOURCES, *SHOWN, ROOT / "streamlit_app.py"):
        if path == PACKAGE / "app" / "serving" / "streamlit_private.py":
            continue
        for record in imports(path):
            name = record.full
            inner = name.startswith("streamlit.") and name.count(".") + (not record.name) > 1
            public = any(f"{name}.".startswith(f"{part}.") for part in PUBLIC_STREAMLIT)
            if (inner or name in PRIVATE_STREAMLIT) and not public:
                wrong.append(f"{path.name}: {name}")
        source = path.read_text(encoding="utf-8")
        wrong += [f"{path.name}: {name}" for name in re.findall(r"(?<![\w.])st\._\w+", source)]
    assert wrong == []


def test_pages_only_show() -> None:
    heavy = {"tensorflow", "gpflow", "keras", "sklearn", "sqlalchemy", "dask", "distributed"}
    used = {path.name: heavy & {name.split(".")[0] for name in imported_modules(path)} for path in SHOWN}
    assert used and {page: names for page, names in used.items() if names} == {}


def test_listing_everything_needs_no_heavy_library() -> None:
    code = (
        "import sys, json\n"
        "import workbench, workbench.cli\n"
        "from workbench.pools import POOLS\n"
        "from workbench.classifiers import CLASSIFIERS\n"
        "from workbench.policies import POLICIES\n"
        "import workbench.sessions, workbench.store, workbench.studies\n"
        "import workbench.exchange.exporting, workbench.exchange.imports\n"
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


# tokens of everything but the tests, without comments and docstrings: it may only become smaller
MOST_TOKENS = 611_840


def test_the_product_fits_its_budget_and_no_function_is_longer_than_a_screen() -> None:
    """Lines of code, without docstrings and comments; pages and tests among them."""

    def may_be_long(file: Path) -> bool:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        every = rooms.statements(tree(file).body)
        return any(isinstance(one, functions) and one.end_lineno - one.lineno >= 80 for one in every)

    sizes = {
        file: rooms.size_of(file.read_text(encoding="utf-8"))
        for _, files in rooms.rooms(ROOT)
        for file in files
        if not file.is_relative_to(ROOT / "tests") or may_be_long(file)
    }
    long = {str(file.relative_to(ROOT)): size.longest for file, size in sizes.items() if size.longest > 80}
    tokens = sum(size.tokens for file, size in sizes.items() if not file.is_relative_to(ROOT / "tests"))
    assert long == {}
    assert tokens <= MOST_TOKENS, f"{tokens:,} tokens; something else has to go first"


# participles and pronouns say nothing of what a variable holds
NO_NOUNS = {
    "found",
    "one",
    "given",
    "made",
    "known",
    "chosen",
    "left",
    "held",
    "shown",
    "named",
    "wanted",
    "asked",
    "kept",
    "taken",
    "mine",
    "gone",
    "told",
    "done",
    "listed",
    "drawn",
    "begun",
    "there",
    "here",
    "so",
    "such",
    "whole",
    "some",
    "many",
    "most",
    "others",
    "own",
    "brought",
    "looked",
    "moved",
    "apart",
    "beside",
    "said",
    "seen",
    "got",
}


def test_a_variable_is_a_noun() -> None:
    """Fewer than 2 % of the names that are stored or stand in a signature."""
    names = [
        node.id if isinstance(node, ast.Name) else node.arg
        for path in (*SOURCES, *SHOWN)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    share = sum(name in NO_NOUNS for name in names) / len(names)
    assert share < 0.02, f"{share:.1%} of {len(names):,} variables and arguments"


def test_lines_and_tokens_are_those_that_say_something() -> None:
    source = (
        '"""Two\nlines."""\n\nX = 1.5e-3  # no word\n\n\ndef f(a: int) -> str:\n    "One."\n    # none\n'
        "    return rf'''{a}\n#''' if a != 0xF else '\\'#'\n"
    )
    assert rooms.size_of(source) == rooms.Size(code=4, docstrings=3, longest=3, tokens=3 + 10 + 8)


def test_what_a_person_opened_stays_open() -> None:
    # without a key another label, or another place, is another element, which is shut
    without = []
    for path in (*SOURCES, *SHOWN):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(tree(path)) if "expander" in source or "popover" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("st.expander", "st.popover"):
                named = any(keyword.arg == "key" for keyword in node.keywords)
                without += [] if named else [f"{path.name}:{node.lineno}"]
    assert without == []


def test_files_are_offered_by_our_own_button() -> None:
    # Streamlit's forgets the address a browser still shows when its page redraws
    sources = [*SOURCES, *SHOWN]
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
    named, words = re.compile("|".join(patterns)), ("py" + "pi", "host" + "ed", "deb.", "reg" + "istry")
    words += tuple(f"/{place}/" for place in ("wo" + "rk", "fa" + "rm", "ro" + "ot"))
    texts = {
        path: path.read_text(encoding="utf-8", errors="replace") for path in tracked_texts() if path.is_file()
    }
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path, text in texts.items()
        # a search for words is a hundred times faster than one for patterns
        if any(word in text for word in words) and (found := named.search(text))
    ]
    assert wrong == []


def test_a_slow_test_says_what_it_alone_protects() -> None:
    silent = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        statements = tree(path).body if "pytest.mark.slow" in source else []
        classes = [node for node in statements if isinstance(node, ast.ClassDef)]
        for node in (*statements, *(inner for each in classes for inner in each.body)):
            if not isinstance(node, ast.FunctionDef) or ast.get_docstring(node):
                continue
            slow = [mark for mark in node.decorator_list if ast.unparse(mark) == "pytest.mark.slow"]
            silent += [f"{path.name}: {node.name}" for mark in slow if "  # " not in lines[mark.lineno - 1]]
    assert silent == []


def test_a_docstring_begins_with_what_it_is_about() -> None:
    relative = re.compile(r"\s*(What|How|Which|Who|Whose|Where|Whether)\b")
    wrong = []
    for folder in (PACKAGE, ROOT / "pages", ROOT / "benchmarks", ROOT / "tests"):
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            begun = any(relative.match(text) for text in source.split('"""')[1:])
            for node in ast.walk(ast.parse(source)) if begun else ():
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    wrong += [f"{path.relative_to(ROOT)}: {first}"] if relative.match(first) else []
    assert wrong == []


# folders of tests without a room of the package, and files at the top that are of no one module
BESIDE = {"benchmarks", "browser", "exchange/written"}
OF_ALL = {
    "architecture",
    "ci",
    "docs",
    "docs_figures",
    "docs_run",
    "doors",
    "extras",
    "make",
    "trust",
    "zeros",
}


def test_the_tree_of_tests_is_that_of_the_code() -> None:
    """The tests of `workbench/x/y.py` are under `tests/x`, those of `workbench/x.py` in `tests/test_x.py`."""
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("*.py")} - BESIDE
    assert [name for name in sorted(folders) if not (PACKAGE / name).is_dir()] == []
    names = {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")}
    assert [name for name in sorted(names - OF_ALL) if not (PACKAGE / f"{name}.py").is_file()] == []


def test_session_and_store_are_held_in_a_head() -> None:
    """Further methods belong to their parts, such as `session.items` and `store.runs`."""
    from workbench import Session, Store

    names = {
        kind: {name for name in dir(kind) if not name.startswith("_")} | instance
        for kind, instance in (
            (Session, {"annotator", "fits"}),
            (Store, {"url", "rounds", "runs", "people", "audit", "keys"}),
        )
    }
    assert {kind.__name__: len(of) for kind, of in names.items() if len(of) > 35} == {}
