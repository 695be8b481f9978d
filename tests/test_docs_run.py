"""Commands and Python of the documentation's pages work as they stand there.

Every command is read by the program's own parser. In the full checks each page is carried out from its first
block to its last, in a folder that holds a checkout's own files alone and with a fresh home: what a newcomer
has after `make run`. A block that cannot run so says why in a comment before it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_architecture import ROOT
from tests.test_docs import PAGES

WRITTEN = [page for page in PAGES if page.parent == ROOT or page.is_relative_to(ROOT / "docs")]
# what only repeats: read by the parser as it stands, carried out less often
REPEATED = {
    "--seeds 10": "--seeds 2",
    "--seeds 3": "--seeds 2",
    "--budget 60": "--budget 6",
    "budget=60": "budget=6",
    "budget=50": "budget=5",
}
CLUSTER = "tcp://head:8786"
WAITED = 600
RUN = ("sh", "python")
# why a block may not be carried out
REASONS = {
    "a server": "it runs until it is stopped, or asks one that does",
    "a download": "from the network",
    "another program": "which this one does not bring",
    "this installation": "the tests run in it",
    "ten minutes": "and more, on two cores",
}
_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>.*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)
_COMMAND = re.compile(
    r"^(?:\w+=\S+ )?(?:workbench|python|make|pip|dask|curl|createdb|podman|uv|pipx)\b.*", re.MULTILINE
)
_PRINTED = re.compile(r"^print\(.*\)  # (-?\d[\d.]*|True|False)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page.

    Attributes:
        language: as the fence says.
        text: what it holds.
        why: what it needs that a checkout has not; "" where it is carried out.
    """

    language: str
    text: str
    why: str

    @property
    def lines(self) -> list[str]:
        """Its command lines, continued ones joined."""
        joined = (
            re.sub(r"\s+# .*", "", line.strip()) for line in self.text.replace("\\\n", " ").splitlines()
        )
        return [" ".join(line.split()) for line in joined if line and not line.startswith("#")]


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order."""
    matches = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(match["language"], match["text"], match["why"] or "") for match in matches]


def mentioned(page: Path) -> Iterator[str]:
    """Commands in running text with at least one option."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for quoted in re.findall(r"`(workbench [a-z]+ [^`]*--[^`]*)`", text):
        yield " ".join(quoted.split())


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_page_are_ones_the_program_knows(page: Path) -> None:
    from typer.main import get_command

    from workbench.cli.commands import app

    known_commands = get_command(app).commands  # type: ignore[attr-defined]
    typed = [line for block in blocks(page) if block.language == "sh" for line in block.lines]
    for line in [*typed, *mentioned(page)]:
        words = shlex.split(re.sub(r"[\[\]|]", " ", line))
        if words[0] != "workbench" or len(words) == 1:
            continue
        command = known_commands.get(words[1])
        assert command is not None, f"{page.name}: {line}"
        known = {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        options = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert options <= known, f"{page.name}: {line} has {sorted(options - known)}"


def test_each_block_with_a_command_is_carried_out_or_says_why_not() -> None:
    """A fence without a language, or an indented line, would be passed over."""
    kept_back: list[str] = []
    for page in WRITTEN:
        for block in blocks(page):
            where = f"{page.relative_to(ROOT)}: {block.text.splitlines()[0]}"
            assert block.language in RUN or block.why or not _COMMAND.search(block.text), where
            if block.why:
                assert block.why.startswith(tuple(REASONS)), where
                kept_back.append(f"{where} ({block.why})")
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        indented = re.findall(r"^ {4,}(workbench .*)$", text, re.MULTILINE)
        assert [line for line in indented if not line.startswith("workbench app")] == [], page
    print(*kept_back, sep="\n")
    assert len(kept_back) < 20


def steps(page: Path) -> list[tuple[str, str]]:
    """The steps of a person who follows the page: (language, line or block)."""
    wanted = [block for block in blocks(page) if block.language in RUN and not block.why]
    done: list[tuple[str, str]] = []
    for block in wanted:
        text = [block.text] if block.language == "python" else block.lines
        done += [(block.language, _seldom(step)) for step in text]
    return done


def _seldom(step: str) -> str:
    for often, seldom in REPEATED.items():
        step = step.replace(often, seldom)
    return step


def environment(place: Path) -> dict[str, str]:
    """That of a shell in which the installation was activated, in a fresh home."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"WORKBENCH_HOME": str(place.parent / "home"), "PYTHONPATH": str(ROOT), "PATH": path}


# The steps of a page in one process, and each page's process a copy of one that has the libraries already:
# they are loaded once, not by every command. Each line that comes in is a page; "ended" and its code go back.
_COPIES = """
import json, os, shlex, subprocess, sys
from workbench.engine import runtime
runtime.prepare()
import gpflow, pandas, sklearn.cluster, sklearn.linear_model, tensorflow

def carry_out(page):
    os.chdir(page["folder"])
    os.environ.update(page["environment"])
    output = os.open(page["output"], os.O_WRONLY | os.O_CREAT)
    for place, where in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(where, place)
    from workbench.cli import run
    names = {"__name__": "__main__"}
    for language, step in page["steps"]:
        print("$", step, flush=True)
        words = [] if language == "python" else shlex.split(step)
        if language == "python":
            exec(compile(step, "page", "exec"), names)
        elif words[0] == "cd":
            os.chdir(words[1])
        elif words[0] == "source":
            pass
        elif words[0] == "workbench":
            if code := run(words[1:]):
                return code
        else:
            subprocess.run(["bash", "-c", step], check=True)
    return 0

for line in sys.stdin:
    if not (copy := os.fork()):
        import traceback
        code = 1
        try:
            code = carry_out(json.loads(line))
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
"""


class Copies:
    """A process with the libraries, of which each page gets a copy.

    Args:
        folder: where what the pages print is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COPIES],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def carry_out(self, place: Path, page_steps: list[tuple[str, str]]) -> str:
        """Carry out the steps of a page in a folder; returns what they print."""
        output = self._folder / "output"
        output.write_text("", encoding="utf-8")
        page = {
            "folder": str(place),
            "environment": environment(place),
            "output": str(output),
            "steps": page_steps,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(page) + "\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline()
        printed = output.read_text(encoding="utf-8", errors="replace")
        assert ended == "ended 0\n", f"{ended}\n{printed[-3500:]}"
        return printed

    def end(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    """Of each process that runs tests, one."""
    process = Copies(tmp_path_factory.mktemp("printed"))
    yield process
    process.end()


def test_the_notebook_is_one_a_person_would_keep() -> None:
    """`make docs` executes it; here it is short, and carries no output of somebody's machine."""
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    assert 5 < len(notebook["cells"]) <= 15
    assert not any(cell.get("outputs") for cell in notebook["cells"])


@pytest.mark.slow  # alone: each page from its first block to its last, in a checkout's own files
@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if steps(page)], ids=lambda path: str(path.relative_to(ROOT))
)
@pytest.mark.timeout(3000)
def test_a_page_works_as_it_is_printed(page: Path, copies: Copies, tmp_path: Path) -> None:
    place = tmp_path / "checkout"
    shutil.copytree(ROOT / "data", place / "data")
    page_steps = steps(page)
    if page.name == "README.md":  # its first command as a shell finds it
        first = next(step for language, step in page_steps if step.startswith("workbench "))
        subprocess.run(["bash", "-ec", first], cwd=place, env=environment(place), check=True, timeout=WAITED)
        page_steps.remove(("sh", first))
    with cluster(place, wanted=any(CLUSTER in step for _, step in page_steps)) as address:
        printed = copies.carry_out(
            place, [(language, step.replace(CLUSTER, address)) for language, step in page_steps]
        )
    rest = iter(printed.splitlines())
    for language, step in page_steps:
        for value in _PRINTED.findall(step) if language == "python" else ():
            assert value in rest, f"{value} was not printed in its place:\n{printed[-2000:]}"


@contextmanager
def cluster(place: Path, *, wanted: bool) -> Iterator[str]:
    """A Dask scheduler and a worker, started by the commands of the page on a free port."""
    if not wanted:
        yield ""
        return
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            cwd=place,
            env=environment(place),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (
            ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
            ["worker", address, "--nthreads", "1", "--nworkers", "2", "--no-dashboard"],
        )
    ]
    try:
        # a person types the next command when these have said that they are there
        with Client(address, timeout=WAITED) as client:
            client.wait_for_workers(1, timeout=WAITED)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()
