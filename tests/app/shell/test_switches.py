"""A switch of something that is stored: what a press writes, and that nothing else writes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import streamlit as st

from workbench.app.shell import widgets

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("shown", "drawn", "stored", "written"),
    [
        (False, True, True, [False]),  # a press
        (True, True, True, []),  # a call that nobody pressed for: the dialog came back
        (True, True, False, []),  # and another tab had changed it meanwhile
        (False, True, False, []),  # both changed it to the same
    ],
)
def test_a_switch_writes_what_somebody_pressed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, shown: bool, drawn: bool, stored: bool, written: list[bool]
) -> None:
    monkeypatch.setattr(st, "session_state", {"key": shown})
    now: list[bool] = []
    widgets._switched("key", drawn, lambda: stored, now.append)
    assert now == written


def test_no_callback_carries_a_negated_value() -> None:
    wrong = []
    for path in [*(ROOT / "workbench" / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            named = {word.arg: word.value for word in call.keywords}
            if not named.keys() & {"on_change", "on_click"}:
                continue
            parts = [
                part for name in ("args", "kwargs", "on_change", "on_click") if (part := named.get(name))
            ]
            nots = (
                node
                for part in parts
                for node in ast.walk(part)
                if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
            )
            wrong += [f"{path.relative_to(ROOT)}:{node.lineno}" for node in nots]
    assert wrong == []


def test_every_switch_with_a_callback_is_the_helper() -> None:
    found = []
    for path in [*(ROOT / "workbench" / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            switch = isinstance(call.func, ast.Attribute) and call.func.attr in ("toggle", "checkbox")
            if switch and any(word.arg == "on_change" for word in call.keywords):
                found.append(path.name)
    assert found == ["widgets.py"]
