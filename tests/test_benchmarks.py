"""What the commands around the project decide."""

from pathlib import Path

import pytest
from PIL import Image

from benchmarks import packaging
from benchmarks.history import grown
from benchmarks.packaging import Tried
from benchmarks.release import version
from benchmarks.reports import keep


def test_a_cost_has_grown_when_it_is_above_the_noise_of_both_entries() -> None:
    before = {"fit": (1.0, 0.01), "noisy": (1.0, 0.2), "same": (1.0, 0.001)}
    now = {"fit": (1.3, 0.01), "noisy": (1.5, 0.2), "same": (1.05, 0.001), "new": (9.0, 0.1)}
    assert grown(now, before) == {"fit": 1.3}


def test_an_installation_that_failed_says_so_in_its_row() -> None:
    assert Tried("pip", "3.11", "locked", failed="fails: no wheel").row().endswith("fails: no wheel |")
    assert Tried("pip", "3.13", "locked", skipped="no such interpreter here").failed == ""


def test_oldest_is_asked_of_what_the_project_needs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[list[str]] = []
    monkeypatch.setattr(packaging, "called", lambda words, *_, **__: said.append([str(w) for w in words[1:]]))
    packaging.install("pip", "python3.11", tmp_path / "w.whl", "oldest", tmp_path)
    needed = ["pip", "install", "--resolution", "lowest-direct", "-r", str(packaging.ROOT / "pyproject.toml")]
    # of a wheel the wheel itself would be the direct requirement, and what it needs the newest
    assert needed in said and ["pip", "install", "--no-deps", str(tmp_path / "w.whl")] in said


def test_versions_that_differ_are_named(tmp_path: Path) -> None:
    (tmp_path / "workbench").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "workbench" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 0.2.0 (2026-12-01)\n")
    assert version(tmp_path) == "pyproject.toml says 0.2.0; CITATION.cff says 0.1.0"
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\n")
    assert version(tmp_path) == ""


def test_the_desk_asks_what_the_page_before_it_asked_where_fits_are_quick() -> None:
    """On both the card on screen was chosen before the last answer was learnt; the others are chosen anew."""
    from benchmarks.queue_pace import Pace, Run, asked

    class Named(Run):
        """Items that say after how many answers they were chosen: 2001 is the second choice after two."""

        def __init__(self) -> None:
            self.seed, self.first = 0, ()

        def after(self, items: tuple[int, ...]) -> tuple[float, list[int]]:
            return 0.0, [1000 * len(items) + place for place in range(50)]

    quick, slow = Pace(10.0, 0.01), Pace(10.0, 1e6)
    assert asked(Named(), "waits", quick, 5) == (0, 1000, 2000, 3000, 4000)
    assert asked(Named(), "page", quick, 5) == asked(Named(), "desk", quick, 5) == (0, 1, 1000, 2000, 3000)
    assert asked(Named(), "page", slow, 4) == asked(Named(), "desk", slow, 4) == (0, 1, 2, 3)


def test_a_report_becomes_a_page_with_its_pictures(tmp_path: Path) -> None:
    report, place = tmp_path / "made" / "lsm-fig9", tmp_path / "reports"
    (report / "figures").mkdir(parents=True)
    Image.new("RGB", (1600, 400), "white").save(report / "figures" / "maps.png")
    (report / "report.md").write_text(
        "# Title\n\n![Some words](figures/maps.png)\n\n[Interactive](figures/maps.html)\n\n## Notes\n"
    )
    place.mkdir()
    (place / "lsm-fig9-gone.png").write_bytes(b"of an earlier run")
    assert keep(tmp_path / "made", place) == ["lsm-fig9"]
    page = (place / "lsm-fig9.md").read_text()
    assert page == "# Title\n\n![Some words](lsm-fig9-maps.png)\n\n## Notes\n"
    assert sorted(p.name for p in place.iterdir()) == ["lsm-fig9-maps.png", "lsm-fig9.md"]
    assert Image.open(place / "lsm-fig9-maps.png").size == (1200, 300)
