"""Commands on the pages of the documentation work as they stand there.

Every command is read by the program's own parser; in the full checks every block is carried out, page by
page, in a folder that holds the files the pages speak of: the README's in one that has a checkout's files
alone.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pools.test_images import zipped
from tests.pools.test_shapes import photos
from tests.test_architecture import ROOT
from tests.test_docs import PAGES
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.store import Store

WRITTEN = [page for page in PAGES if page.parent == ROOT or page.is_relative_to(ROOT / "docs")]
# what runs from a fresh checkout as it is printed: nothing is prepared for it but the checkout's own files
FRESH = ("README.md",)
# servers that run until they are stopped
ENDLESS = ("workbench app",)
# more than ten minutes on two cores: read by the parser, not carried out
LONG = ("images:fashion_mnist",)
# what only repeats: read by the parser as it stands, carried out less often
REPEATED = {"--seeds 10": "--seeds 2", "--budget 60": "--budget 20"}
CLUSTER = "tcp://head:8786"
WAITED = 600


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's fenced blocks in one of the languages ("" where none is named)."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for language, block in found if language in languages]


def commands(page: Path) -> list[str]:
    """Command lines in the page's blocks, continued lines joined."""
    found = []
    for block in blocks(page, "", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*", "", line.strip())
            if line.startswith(("workbench ", "python -m ")):
                found.append(" ".join(line.split()))
    return found


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
    for line in [*commands(page), *mentioned(page)]:
        words = shlex.split(re.sub(r"[\[\]|]", " ", line))
        if words[0] != "workbench":
            continue
        command = known_commands.get(words[1])
        assert command is not None, f"{page.name}: {line}"
        known = {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        given = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert given <= known, f"{page.name}: {line} has {sorted(given - known)}"


def briefly(line: str) -> str:
    """The command with fewer repetitions."""
    for often, seldom in REPEATED.items():
        line = line.replace(often, seldom)
    return line


@pytest.fixture
def place(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the folder: what one page's commands leave is not there for the next page's."""
    return shutil.copytree(prepared, tmp_path / "place")


def place_of(page: Path, request: pytest.FixtureRequest, folder: Path) -> Path:
    """Where a page is tried: in a checkout's own files alone, or in the folder with what it speaks of."""
    if page.name not in FRESH:
        return request.getfixturevalue("place")
    shutil.copytree(ROOT / "data", folder / "checkout" / "data")
    return folder / "checkout"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages speak of, and projects called flowers and questions."""
    folder = tmp_path_factory.mktemp("docs")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)).round(3), columns=["a", "b", "c"])
    table["label"] = np.where(table["a"] + table["b"] > 0, "yes", "no")
    table.to_csv(folder / "my.csv", index=False)
    table.drop(columns="label").to_csv(folder / "rows.csv", index=False)
    people = pd.DataFrame({"age": rng.integers(18, 80, 60), "zip": rng.choice([1010, 1020, 1030], 60)})
    words = ["refund", "card", "lost", "late", "parcel", "login", "password", "invoice"]
    people["income"] = rng.integers(10, 90, 60) * 1000
    people["seen"] = pd.date_range("2026-01-01", periods=60).strftime("%d.%m.%Y")
    people["comment"] = [" ".join(rng.choice(words, 4)) for _ in range(60)]
    people["verdict"] = np.where(people["age"] > 40, "good", "bad")
    people["remark"] = "none"
    people.to_csv(folder / "people.csv", index=False)
    pd.DataFrame({"question": [" ".join(rng.choice(words, 5)) for _ in range(60)]}).to_csv(
        folder / "questions.csv", index=False
    )
    tickets = pd.DataFrame({"text": [" ".join(rng.choice(words, 5)) for _ in range(80)]})
    lost = tickets["text"].str.contains("card")
    tickets["class"] = np.where(lost, "card_lost", "refund_request")
    tickets["llm_label"] = np.where(lost ^ (rng.random(80) < 0.2), "card_lost", "refund_request")
    tickets.to_csv(folder / "tickets.csv", index=False)
    tickets["llm_label"].rename("prediction").rename_axis("id").reset_index().to_csv(
        folder / "predictions.csv", index=False
    )
    (folder / "photos.zip").write_bytes(zipped(photos(30)))
    np.save(folder / "clip.npy", rng.normal(size=(30, 8)))
    np.savez(folder / "clip.npz", embeddings=rng.normal(size=(30, 8)))
    digits = load_pool("digits")
    frame = pd.DataFrame(digits.features * 16, columns=list(digits.feature_map.columns))
    frame.head(20).to_csv(folder / "new-rows.csv", index=False)
    frame.to_parquet(folder / "big.parquet")
    session = Session.create("iris", name="flowers", store=Store.open(folder / "home" / "workbench.sqlite"))
    assert session.pool.truth is not None
    for ask in session.ask(12):
        session.tell(ask.id, session.pool.classes[session.pool.truth[ask.item]])
    session.refit()
    asked = Session.create(
        str(folder / "questions.csv"),
        name="questions",
        classes=["money", "other"],
        pool_options={"text_column": "question"},
        store=Store.open(folder / "home" / "workbench.sqlite"),
    )
    for item in range(24):
        words_of_item = asked.pool.items.show(item).text
        asked.label_item(
            item, "money" if "refund" in words_of_item or "invoice" in words_of_item else "other"
        )
    labels = pd.DataFrame({"item": [3, 4], "label": ["setosa", "setosa"]})
    labels.to_csv(folder / "more-labels.csv", index=False)
    return folder


def environment(place: Path) -> dict[str, str]:
    return os.environ | {"WORKBENCH_HOME": str(place / "home"), "PYTHONPATH": str(ROOT)}


# The commands of a page in one process, and each page's process a copy of one that has the libraries already:
# they are loaded once, not by every page. Each line that comes in is a page; "ended" and its code go back.
_COPIES = """
import json, os, sys
from workbench.engine import runtime
runtime.prepare()
import gpflow, pandas, sklearn.cluster, sklearn.linear_model, tensorflow

def carry_out(page):
    os.chdir(page["folder"])
    os.environ.update(page["environment"])
    said = os.open(page["said"], os.O_WRONLY | os.O_CREAT)
    for place, where in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(where, place)
    if page["code"]:
        exec(compile(page["code"], "page", "exec"), {"__name__": "__main__"})
    from workbench.cli import run
    for words in page["commands"]:
        print("$", *words, flush=True)
        if code := run(words):
            return code
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
        folder: where what the pages say is kept.
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

    def carry_out(self, place: Path, code: str = "", lines: Sequence[str] = ()) -> None:
        """Carry out Python or command lines in a folder."""
        said = self._folder / "said"
        said.write_text("", encoding="utf-8")
        page = {
            "folder": str(place),
            "environment": environment(place),
            "said": str(said),
            "code": code,
            "commands": [shlex.split(line)[1:] for line in lines],
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(page) + "\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline()
        assert ended == "ended 0\n", f"{ended}\n{said.read_text(encoding='utf-8')[-3500:]}"

    def end(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    """Of each process that runs tests, one."""
    made = Copies(tmp_path_factory.mktemp("said"))
    yield made
    made.end()


def new_process(place: Path, *arguments: str) -> None:
    """A Python of its own, as somebody starts it who types the line."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment(place), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-1500:]}\n{done.stderr[-2000:]}"


@pytest.mark.slow  # alone: each page's Python, as it stands
@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if blocks(page, "python")], ids=lambda path: str(path.relative_to(ROOT))
)
@pytest.mark.timeout(1200)
def test_python_of_a_page_runs_block_by_block(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    code = "\n".join(blocks(page, "python"))
    place = place_of(page, request, tmp_path)
    request.getfixturevalue("copies").carry_out(place, code)


def test_the_notebook_is_one_a_person_would_keep() -> None:
    """`make docs` executes it; here it is short, and carries no output of somebody's machine."""
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    assert 5 < len(notebook["cells"]) <= 15
    assert not any(cell.get("outputs") for cell in notebook["cells"])


@pytest.mark.slow  # alone: each page's commands, as they stand
@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if commands(page)], ids=lambda path: str(path.relative_to(ROOT))
)
@pytest.mark.timeout(3000)
def test_commands_of_a_page_run_one_after_the_other(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lines = commands(page)
    place = place_of(page, request, tmp_path)
    with cluster(place, wanted=any(CLUSTER in line for line in lines)) as address:
        tried = [
            briefly(line.replace(CLUSTER, address))
            for line in lines
            if not line.startswith(ENDLESS) and not any(long in line for long in LONG)
        ]
        # the first line of a fresh checkout, and Python's own, as whoever types them starts them
        first = tried[:1] if page.name in FRESH else []
        alone = [*first, *(line for line in tried if line.startswith("python ") and line not in first)]
        for line in alone:
            new_process(place, "-m", *shlex.split(line.removeprefix("python -m ")))
        request.getfixturevalue("copies").carry_out(
            place, lines=[line for line in tried if line not in alone]
        )


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
