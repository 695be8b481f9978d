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


@pytest.mark.parametrize("empty", ["None", "NA", "null", "-"])
def test_a_class_called_like_nothing_hides_no_labels(empty: str) -> None:
    rows = [f"the text of item {i} has these words,{'toxic' if i % 2 else empty}" for i in range(40)]
    report = inspect_table("\n".join(["text,label", *rows]).encode(), file_name="t.csv", columns="auto")
    assert {column.name: column.use and column.use.use for column in report.columns}["label"] == "class"
    assert not [problem for problem in report.problems if problem.code in ("one class", "constant")]


@pytest.mark.parametrize(
    ("labels", "code", "way"),
    [
        (["1"] * 9, "one class", "Keep them, beside a class 'other'"),
        (["spam", "ham", "other"], "left out", "Use it as the classes"),
    ],
)
def test_few_labels_are_told_of_and_one_press_keeps_them(labels: list[str], code: str, way: str) -> None:
    cells = [*labels, *[""] * (30 - len(labels))]
    lines = [f"{i * 7 % 11}.{i % 9}1,{i * 5 % 13}.{i % 7}3,{cell}" for i, cell in enumerate(cells)]
    data = "\n".join(["a,b,label", *lines]).encode()
    report = inspect_table(data, file_name="t.csv", columns="auto")
    (problem,) = [problem for problem in report.problems if problem.code == code]
    fix = next(fix for fix in problem.fixes if fix.label == way)
    pool = load_pool(data, file_name="t.csv", **{"columns": "auto", **fix.options})
    assert pool.truth is not None and (pool.truth >= 0).sum() == len(labels)
