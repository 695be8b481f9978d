"""Files of every kind as other programs write them: right cells, ids, classes and uses."""

import json
from typing import Any

import pytest

from workbench.pools import inspect_table, load_pool


def _tasks() -> tuple[bytes, str]:
    def task(i: int) -> dict[str, Any]:
        choices = [{"result": [{"type": "choices", "value": {"choices": ["spam"]}}]}] if i < 5 else []
        return {"id": i, "data": {"text": f"number {i} about animals"}, "annotations": choices}

    return json.dumps([task(i) for i in range(12)]).encode(), "tasks.json"


def _table() -> tuple[bytes, str]:
    rows = "".join(f"number {i} about animals,{'spam' if i < 5 else ''}\n" for i in range(12))
    return f"text,label\n{rows}".encode(), "half.csv"


@pytest.mark.parametrize("file", [_tasks(), _table()], ids=["tasks", "table"])
def test_labels_that_are_all_of_one_class_are_told_of_and_can_be_kept(file: tuple[bytes, str]) -> None:
    data, name = file
    report = inspect_table(data, file_name=name, columns="auto")
    assert report.ready
    (problem,) = [problem for problem in report.problems if problem.code == "one class"]
    assert "'label'" in problem.message and "'spam'" in problem.message
    keep, leave = (load_pool(data, file_name=name, **{"columns": "auto", **f.options}) for f in problem.fixes)
    assert (
        keep.classes == ("spam", "other")
        and keep.truth is not None
        and keep.truth.tolist() == [0] * 5 + [-1] * 7
    )
    assert leave.classes == () and leave.truth is None
    said = load_pool(data, file_name=name, columns="auto", target="label", classes=["spam", "ham"])
    assert said.truth is not None and said.truth.tolist().count(0) == 5
