"""`workbench finish`: a forecast, the checks one by one, and the certificate."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.certificates import Certificate
from workbench.cli import run
from workbench.errors import InputError
from workbench.sessions import Session


def test_a_project_is_finished_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    names = np.array(["cat", "dog"])[np.arange(30) % 2]
    pd.DataFrame({"x": np.arange(30.0), "llm": names}).to_csv(tmp_path / "t.csv", index=False)
    session = Session.create(
        str(tmp_path / "t.csv"), pool_options={"exclude": ["llm"]}, classes=["cat", "dog"], annotator="ann"
    )

    def said(*arguments: str) -> str:
        assert run(["finish", session.id, *arguments]) == 0
        return capsys.readouterr().out

    with pytest.raises(InputError, match="No checks were started"):
        run(["finish", session.id, "--next"])
    promise = ["--of", "column:llm", "--error", "0.3", "--confidence", "0.8"]
    assert "check" in said(*promise, "--forecast") and not session.state.frozen
    with pytest.raises(InputError, match="No checks were started"):
        said(*promise)
    with pytest.raises(InputError, match="give --start or --forecast"):
        said(*promise, "--forecast", "--start")
    assert not session.state.frozen
    assert "30 labels are frozen" in said(*promise, "--start")
    assert "0 checks" in said()
    with pytest.raises(InputError, match="Nothing is certified yet"):
        run(["finish", session.id, "--certificate", str(tmp_path / "c.json")])
    while "certified" not in (shown := said("--next")):
        ask = re.match(r"(\w+) \S+ ", shown)
        assert ask is not None and "llm" not in shown, shown
        item = session.state.asks[ask[1]].item
        said("--answer", f"{ask[1]}={names[item]}")
    assert "at most 30 % of them wrong" in said("--certificate", str(tmp_path / "c.json"))
    assert Certificate.from_json((tmp_path / "c.json").read_bytes()).holds
    said("--certificate", str(tmp_path / "c.html"))
    assert "<html" in (tmp_path / "c.html").read_text()
