"""A policy or classifier of another package is offered wherever ours are."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.plugged import installed
from tests.policies.helpers import belief, rng
from tests.policies.test_scan import Bumps
from workbench.attacks.robustness import DETECTORS
from workbench.classifiers import CLASSIFIERS, make_classifier
from workbench.cli.machine import classifiers, policies
from workbench.errors import InputError
from workbench.policies import POLICIES, query
from workbench.policies.registry import markdown_table
from workbench.policies.scan import score_pool


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path):
        yield


@pytest.mark.usefixtures("package")
class TestAPackage:
    def test_is_in_the_registries(self) -> None:
        assert POLICIES["far-out"].summary == "How far out an item lies."
        assert POLICIES["nearness"].title == "Nearness" and POLICIES["nearness"].range_for(3) == (0, 1)
        assert POLICIES["firsts"].kind == "selector" and not POLICIES["firsts"].rowwise
        assert POLICIES["margin"].target.startswith("workbench.")  # our names cannot be taken
        assert CLASSIFIERS["mine"].summary == "A classifier of mine." and not CLASSIFIERS["mine"].has_latent
        assert make_classifier("mine", C=2.0).fit(np.eye(4), [0, 1, 0, 1]).predict_proba(np.eye(4)).shape == (
            4,
            2,
        )

    def test_is_asked(self) -> None:
        b = belief()
        farthest = np.where(np.isin(np.arange(len(b)), b.labelled), 0, np.abs(b.features).sum(axis=1))
        assert query("far-out", b, 1, rng()).indices[0] == farthest.argmax()
        assert np.array_equal(query("margin", b, 2, rng(), "firsts").indices, b.askable[:2])
        assert len(query("nearness", b, 3, rng()).indices) == 3

    def test_is_on_every_page_and_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        from types import SimpleNamespace
        from typing import Any

        from workbench.app.data import forms
        from workbench.app.lessons import lessons
        from workbench.app.uncertainty import mapping

        model: Any = SimpleNamespace(latent=belief().latent, mean=None)
        both = {"far-out", "nearness"}
        assert both <= set(forms.policies_for("large-margin"))
        assert both <= set(mapping.measures_for(model))
        assert mapping.words_of("nearness") == "shares; high: it lies in the middle"
        assert both <= set(lessons._options("policies"))
        assert both <= set(DETECTORS) and "firsts" not in DETECTORS
        assert "mine" in forms.classifiers_for("table", 2)
        # what cannot be imported is listed with its reason, and not offered
        assert "nearness" in forms.policies_for("mine") and "broken" not in forms.policies_for("mine")
        policies()
        classifiers()
        listed = capsys.readouterr().out
        assert all(name in listed for name in (*both, "firsts", "mine", "Cannot be imported"))
        assert "| `nearness` | Near the middle. | 0 to 1 shares |" in markdown_table()
        assert "`firsts`" in markdown_table("selector")
        assert POLICIES["nearness"].sentence(0.25) == "It lies 0.25 in the middle."

    def test_is_scanned_with_the_bins_of_its_range(self) -> None:
        X = np.random.default_rng(0).normal(size=(500, 5))
        found = score_pool(X, Bumps(np.random.default_rng(1).normal(size=(3, 5))), "nearness", top=3)
        assert found.indices[0] == np.abs(X).sum(axis=1).argmin()
        assert found.histogram.edges[0] >= 0 and found.histogram.edges[-1] <= 1
        assert found.histogram.counts.sum() == 500

    def test_that_cannot_be_imported_says_so_when_used(self) -> None:
        with pytest.raises(InputError, match="Cannot import 'no_such_package'"):
            query("broken", belief(), 1, rng())


def test_the_documented_tables_are_the_registry() -> None:
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    for table in (markdown_table(), markdown_table("selector")):
        assert table in text
