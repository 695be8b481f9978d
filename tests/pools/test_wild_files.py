"""Files of every kind as other programs write them: right cells, ids, classes and uses."""

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from benchmarks.trials import _sound
from benchmarks.trials.wild_files import WildFile, files
from workbench.errors import InputError
from workbench.exchange.answers import format_of
from workbench.exchange.imports import import_labels
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.formats import json as json_files


@pytest.mark.parametrize("file", files(), ids=lambda file: file.name)
def test_a_file_as_other_programs_write_it_gives_its_items(file: WildFile) -> None:
    assert file.faults() == []


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


def test_a_title_above_two_columns_with_known_names_is_no_line_of_names() -> None:
    rows = [f"number {i} about animals,{'spam' if i % 3 else 'ham'}" for i in range(12)]
    for lines in (
        ["Answers of May,", ",", "Text,Label"],
        ["text,", "text,label"],
        [",", "Answers,", "body,class"],
    ):
        report = inspect_table("\n".join([*lines, *rows]).encode(), file_name="t.csv", columns="auto")
        names = [column.name for column in report.columns]
        assert names == (["text", "column_2"] if lines[0] == "text," else lines[-1].split(","))


def test_a_null_of_a_database_is_asked_about_as_a_class() -> None:
    rows = [f"number {i} about animals\t{('ham', 'spam', chr(92) + 'N')[i % 3]}" for i in range(12)]
    report = inspect_table("\n".join(["text\tlabel", *rows]).encode(), file_name="t.tsv", columns="auto")
    (problem,) = [problem for problem in report.problems if problem.code == "empty class"]
    assert load_pool(
        "\n".join(["text\tlabel", *rows]).encode(), file_name="t.tsv", **problem.fixes[1].options
    ).classes == ("ham", "spam")


def test_no_way_out_leaves_a_single_class() -> None:
    rows = [f"{i}.5,{'+-'[i % 2]}" for i in range(40)]
    report = inspect_table("\n".join(["x,label", *rows]).encode(), file_name="t.csv")
    (problem,) = [problem for problem in report.problems if problem.code == "empty class"]
    assert [fix.label for fix in problem.fixes] == ["It is a class"]


def test_a_refusal_names_options_that_settle_each_finding_alone() -> None:
    rows = [f"{i % 7}.5,{i % 5 if i else ''},{'yes' if i % 2 else 'NA'}" for i in range(40)]
    data = "\n".join(["x,n,label", *rows]).encode()
    with pytest.raises(InputError) as refused:
        load_pool(data, file_name="t.csv", strict=True)
    for option in ('columns={"n": {"use": "number", "empty": "median"}}', "unlabelled=[]", "strict=False"):
        assert option in str(refused.value)
    one = {"columns": {"n": {"use": "number", "empty": "median"}}, "strict": True}
    with pytest.raises(InputError, match=r"^'NA' in 'label'"):
        load_pool(data, file_name="t.csv", **one)
    assert load_pool(data, file_name="t.csv", **one, unlabelled=[]).classes == ("NA", "yes")


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


def _parquet(columns: dict[str, Any], names: tuple[str, ...] = ()) -> bytes:
    """A Parquet file, as `datasets` writes it where the column "label" has names."""
    table, stream = pa.table(columns), io.BytesIO()
    if names:
        about = {"info": {"features": {"label": {"_type": "ClassLabel", "names": names}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    pq.write_table(table, stream)
    return stream.getvalue()


def _png(grey: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((40, 40), grey, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def test_a_parquet_file_is_read_alike_wherever_it_lies(tmp_path: Path) -> None:
    texts = [f"the text number {i} about things" for i in range(20)]
    lists = {"tags": [["a", "b"]] * 20, "embedding": [[1.0, 2.0]] * 20}
    data = _parquet({"text": texts, "label": [0, 1] * 10, **lists}, ("neg", "pos"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "set" / "plain_text").mkdir(parents=True)
    for place in (tmp_path / "folder" / "0.parquet", tmp_path / "set" / "plain_text" / "train-0.parquet"):
        place.write_bytes(data)
    sources: list[tuple[Any, str | None]] = [(data, "a.parquet")]
    sources += [(tmp_path / name, None) for name in ("folder", "set")]
    for source, name in sources:
        pool = load_pool(source, file_name=name)
        assert (pool.kind, pool.classes) == ("text", ("neg", "pos"))
        assert pool.truth is not None and pool.truth.tolist() == [0, 1] * 10
        assert any("'tags', 'embedding'" in note for note in pool.notes)


@pytest.mark.parametrize("bare", [False, True])
def test_pictures_in_a_parquet_file_are_the_items(bare: bool) -> None:
    images = [_png(9 * i) for i in range(12)]
    held = images if bare else [{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(images)]
    data = _parquet({"label": ["a", "b"] * 6, "image": held})
    pool = load_pool(data, file_name="a.parquet")
    assert (pool.kind, pool.classes) == ("image", ("a", "b"))
    assert [int(pool.items.show(i).image[0, 0]) for i in (0, 5, 11)] == [0, 45, 99]
    noise = np.random.default_rng(0).bytes(60_000)
    same = [noise] * 200 if bare else [{"bytes": noise, "path": "a.png"}] * 200
    with pytest.raises(InputError, match=r"unpacked.*limit is 1 MB"):
        load_pool(_parquet({"image": same}), file_name="a.parquet", max_bytes=1 << 20)


def test_parts_of_a_folder_come_split_after_split_and_folders_may_be_columns(tmp_path: Path) -> None:
    parts, hive = tmp_path / "parts", tmp_path / "hive"
    for name, first in (("test", 10.0), ("train", 0.0)):
        (hive / f"label={name[:2]}").mkdir(parents=True)
        parts.mkdir(exist_ok=True)
        for path in (parts / f"{name}.parquet", hive / f"label={name[:2]}" / "0.parquet"):
            path.write_bytes(_parquet({"x": np.arange(5.0) + first}))
    pool = load_pool(hive, columns="auto")
    assert pool.classes == ("te", "tr") and pool.features[:, 0].tolist() == [
        10,
        11,
        12,
        13,
        14,
        0,
        1,
        2,
        3,
        4,
    ]
    pool = load_pool(parts, columns="auto")
    assert pool.features[:, 0].tolist() == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert any("Splits one after the other: train, test" in note for note in pool.notes)
    assert load_pool(parts, columns="auto", split="test").features[0, 0] == 10


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "json", "jsonl", "xlsx"])
def test_booleans_are_the_same_classes_and_numbers_in_every_format(tmp_path: Path, ending: str) -> None:
    wet = [True, None, False, *[True, False] * 6]
    frame = pd.DataFrame(
        {"wet": pd.array(wet, dtype="boolean"), "x": np.arange(15.0), "label": [True, *wet[:1:-1], True]}
    )
    path = tmp_path / f"t.{ending}"
    if ending in ("json", "jsonl"):
        path.write_text(frame.to_json(orient="records", lines=ending == "jsonl"))
    elif ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "xlsx":
        frame.to_excel(path, index=False)
    else:
        (frame.to_parquet if ending == "parquet" else frame.to_feather)(path)
    pool = load_pool(path, columns={"label": "class", "x": "number", "wet": "category"})
    assert (
        pool.classes == ("False", "True") and pool.truth is not None and pool.truth[:3].tolist() == [1, 0, 1]
    )
    assert pool.feature_map.columns[:2] == ("wet=False", "wet=True")
    if ending != "csv":
        pool = load_pool(path, columns={"label": "class"})
        assert pool.feature_map.columns[0] == "wet" and pool.features[[0, 2], 0].tolist() == [1, 0]


@pytest.mark.parametrize("odd", [["pos", "neg"], {"choices": ["pos"]}])
def test_a_list_among_plain_values_costs_its_own_cell_and_is_told(odd: Any) -> None:
    labels = [odd if i == 7 else ["pos"] if i % 2 else ["neg"] for i in range(40)]
    rows = [{"text": f"the message number {i} and more", "label": label} for i, label in enumerate(labels)]
    data = "\n".join(map(json.dumps, rows)).encode()
    pool = load_pool(data, file_name="t.jsonl", columns="auto")
    assert pool.classes == ("neg", "pos") and pool.truth is not None
    assert np.flatnonzero(pool.truth < 0).tolist() == [7]
    assert any("'label' holds a list or an object" in note and "line 8" in note for note in pool.notes)
    with pytest.raises(InputError, match="'label' holds a list or an object"):
        load_pool(data, file_name="t.jsonl", columns="auto", strict=True)
    settled = {"columns": {"label": "class", "text": "text"}}
    assert load_pool(data, file_name="t.jsonl", strict=True, **settled).classes == ("neg", "pos")
    # where most are lists the column is left out, and that is told as well
    mixed = [{"x": i, "y": i % 5, "tags": ["a", "b"] if i % 2 else "c"} for i in range(20)]
    report = inspect_table(json.dumps(mixed).encode(), file_name="t.json", columns="auto")
    (problem,) = [problem for problem in report.problems if problem.code == "lists"]
    assert problem.severity == "guess" and "left out" in problem.message


@pytest.mark.parametrize("way", ["frame", "parquet"])
def test_names_of_rows_of_pandas_are_ids_and_other_numbers_are_told_of(way: str) -> None:
    def opened(index: list[Any]) -> Any:
        frame = pd.DataFrame({"x": np.arange(12.0), "label": ["a", "b"] * 6}, index=index)
        stream = io.BytesIO()
        frame.to_parquet(stream)
        return load_pool(frame) if way == "frame" else load_pool(stream.getvalue(), file_name="t.parquet")

    assert list(opened([f"r{i}" for i in range(12)]).items.ids[:2]) == ["r0", "r1"]
    pool = opened(list(range(12, 0, -1)))
    assert list(pool.items.ids[:2]) == ["0", "1"] and pool.feature_map.columns == ("x",)
    assert way == "frame" or any("index of the rows is left out" in note for note in pool.notes)


@pytest.mark.parametrize("kind", [str, Path])
def test_pictures_are_found_without_their_endings(kind: type, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    for i in range(6):
        (tmp_path / "train" / f"p{i}.png").write_bytes(_png(20 * i))
    (tmp_path / "t.csv").write_text("id,label\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in range(6)))
    uses = {"id": "picture", "label": "class"}
    pool = load_pool(tmp_path / "t.csv", columns=uses, folder=kind(tmp_path / "train"))
    assert [int(pool.items.show(i).image[0, 0]) for i in range(6)] == [0, 20, 40, 60, 80, 100]


FRAME = pd.DataFrame({"x": [1.5, 2.0, None] * 4, "y": ["a", "b"] * 6, "t": ["hello", "wörld", ""] * 4})
NAMED = FRAME.set_index(pd.Index([f"i{i}" for i in range(12)]))
LISTS = json.dumps({name: [None if cell != cell else cell for cell in FRAME[name]] for name in FRAME})


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        *((FRAME.to_json(orient=form), ["x", "y", "t"]) for form in ("columns", "index", "split")),
        *((NAMED.to_json(orient=form), ["id", "x", "y", "t"]) for form in ("columns", "index", "split")),
        (FRAME.to_json(orient="table"), ["index", "x", "y", "t"]),
        (FRAME.to_json(orient="values"), ["x1", "x2", "x3"]),
        (LISTS, ["x", "y", "t"]),
    ],
)
def test_json_of_a_whole_table_is_read_in_all_forms_of_pandas(text: str, columns: list[str]) -> None:
    rows = read_rows(text.encode(), file_name="a.json")
    assert list(rows.columns) == columns and len(rows) == 12
    assert rows.iloc[1].tolist()[-3:] == [2.0, "b", "wörld"] and np.isnan(rows.iloc[2, -3])
    assert "id" not in columns or rows["id"].tolist() == list(NAMED.index)


def test_a_list_of_texts_in_json_is_texts() -> None:
    texts = [f"the message number {i} about things" for i in range(12)]
    pool = load_pool(json.dumps(texts).encode(), file_name="a.json", columns="auto")
    assert pool.kind == "text" and pool.items.show(3).text == texts[3]


def test_a_table_in_json_that_would_grow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "MAX_CELLS", 2_000)
    diagonal = {f"c{i}": {str(i): 1} for i in range(100)}
    for document in (diagonal, [[1]] * 2_100):
        with pytest.raises(InputError, match="the limit of this form of JSON is 2,000"):
            read_rows(json.dumps(document).encode(), file_name="a.json")


@pytest.mark.parametrize("folder", ["", "images/", "photos/images/", "./images/"])
def test_coco_finds_its_pictures_with_and_without_their_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "images").mkdir()
    for i in range(6):
        (tmp_path / "images" / f"{i:03d}.png").write_bytes(_png(20 * i))
    (tmp_path / "cover.png").write_bytes(_png(255))
    coco = {
        "images": [{"id": i + 1, "file_name": f"{folder}{i:03d}.png"} for i in range(6)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [{"id": i, "image_id": i + 1, "category_id": i % 2 + 1} for i in range(6)],
    }
    pool = load_pool(tmp_path, features="shapes")
    labels = import_labels(json.dumps(coco).encode(), pool, "coco")
    assert [(pool.items.ids[vote[0]], vote[1]) for vote in labels] == [
        (f"images/{i:03d}.png", ("cat", "dog")[i % 2]) for i in range(6)
    ]


def test_labels_come_back_from_every_format_of_tables() -> None:
    frame = pd.DataFrame({"id": [f"i{i}" for i in range(12)], "label": ["cat", "dog", None] * 4})
    pool = load_pool(pd.DataFrame({"id": frame["id"], "x": np.arange(12.0)}))
    feather, stata = io.BytesIO(), io.BytesIO()
    frame.to_feather(feather)
    frame.fillna("").to_stata(stata, write_index=False)
    rows = frame.fillna("?").to_csv(index=False, header=False)
    weka = f"@relation r\n@attribute id string\n@attribute label {{cat,dog}}\n@data\n{rows}".encode()
    transport = _sound.transport(frame.fillna(""))
    for name, data in {
        "l.feather.gz": gzip.compress(feather.getvalue()),
        "l.dta": stata.getvalue(),
        "l.arff.gz": gzip.compress(weka),
        "l.xpt": transport,
    }.items():
        labels = import_labels(data, pool, format_of(name, data), ("cat", "dog"))
        assert labels == [(i, ("cat", "dog")[i % 3]) for i in range(12) if i % 3 < 2], name


def test_cells_of_weka_are_read_as_they_were_meant() -> None:
    """Weka writes line ends as signs; other programs double a quote, or use both in one line."""
    head = "@attribute petal'len numeric\n@attribute text string\n@attribute more string\n@data\n"
    lines = [
        r'''1,'one\nline \'and\' a\ttab',"so, so"''',
        """2,"say ""hi"", now",'tis""",
        """3,'He said, "hi", once',\'\'""",
    ]
    rows = read_rows((head + "\n".join(lines) + "\n").encode(), file_name="t.arff")
    assert list(rows.columns) == ["petal'len", "text", "more"]
    assert rows["text"].tolist() == ["one\nline 'and' a\ttab", 'say "hi", now', 'He said, "hi", once']
    assert rows["more"].tolist() == ["so, so", "'tis", ""]
    sparse = "@attribute n numeric\n@attribute k {'a, b',c}\n@data\n{0 3, 1 c}\n{}\n{1 'a, b'}\n"
    assert read_rows(sparse.encode(), file_name="s.arff")["k"].tolist() == ["c", "a, b", "a, b"]


def test_a_long_quoted_cell_of_weka_takes_no_more_than_a_few_copies_of_itself() -> None:
    """A file of 60 MB took 4 GB: the matcher kept a mark for each sign between the quotes."""
    head = b"@attribute text string\n@attribute more string\n@data\n"
    rows = read_rows(head + b"'a',b\n", file_name="t.arff")  # what is imported first counts for nothing
    tracemalloc.start()
    rows = read_rows(head + b"'" + b"x" * 300_000 + b"',b\n", file_name="t.arff")
    with pytest.raises(InputError, match=r"Line 4 of t\.arff has 1 cells for 2 attributes"):
        read_rows(head + b"'" * 300_000, file_name="t.arff")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows["text"][0]) == 300_000
    assert peak < 20 * 300_000


def test_of_a_transport_file_of_several_data_sets_the_first_is_read() -> None:
    frame = pd.DataFrame({"id": [f"i{i}" for i in range(12)], "x": np.arange(12.0)})
    data = _sound.transport(frame)
    both = data + data[data.index(b"HEADER RECORD*******MEMBER") :]
    pool = load_pool(both, file_name="t.xpt", columns="auto")
    assert len(pool) == 12 and any("first of its 2 data sets" in note for note in pool.notes)


def test_a_transport_file_says_how_its_texts_were_read_and_where_it_is_cut() -> None:
    data = _sound.transport(pd.DataFrame({"town": ["Köln", "Łódź", "Bonn"] * 4, "x": np.arange(12.0)}))
    rows = read_rows(data, file_name="t.xpt")
    assert rows["town"].tolist()[:3] == ["Köln", "Łódź", "Bonn"] and rows.attrs["notes"] == ()
    latin = data.replace("Köln".encode(), "Köln ".encode("cp1252")).replace("Łódź".encode(), b"Ulm    ")
    report = inspect_table(latin, file_name="t.xpt")
    assert [p.severity for p in report.problems if p.code == "encoding"] == ["note"]
    assert read_rows(latin, file_name="t.xpt")["town"][0] == "Köln"
    assert read_rows(latin, file_name="t.xpt", encoding="cp850")["town"][0] != "Köln"
    for lost in (1, 240):
        rows = read_rows(data[:-lost], file_name="t.xpt")
        assert any("it may be cut" in note for note in rows.attrs["notes"]), lost


def test_reviews_are_no_table_of_votes() -> None:
    """Each row has a text of its own: nothing of the items would be left."""
    rows = "".join(f"P{i % 9},U{i % 11},a text of {i},{i % 5}\n" for i in range(90))
    report = inspect_table(f"product_id,user_id,review_text,rating\n{rows}".encode(), file_name="r.csv")
    assert not [problem for problem in report.problems if problem.code == "votes"]


def test_a_file_of_a_statistics_program_that_is_broken_says_where() -> None:
    head = "@attribute a numeric\n@attribute b {x,y}\n@data\n"
    for text, words in (
        (f"{head}1,x\n2\n", "Line 5 of t.arff has 1 cells for 2 attributes"),
        (f"{head}1,x\n{{7 3}}\n", "Line 5 of t.arff has 0 cells"),
        (f"{head}1,x\nword,y\n", "The attribute 'a' of t.arff is not all numbers"),
        ("a,b\n1,x\n", "no lines of @attribute and of @data"),
    ):
        with pytest.raises(InputError, match=words):
            load_pool(text.encode(), file_name="t.arff", columns="auto")
    twice = io.BytesIO()
    asked = pd.DataFrame({"x": np.arange(12.0), "q": [1, 2, 3] * 4})
    asked.to_stata(twice, write_index=False, value_labels={"q": {1: "no", 2: "no", 3: "yes"}})
    pool = load_pool(twice.getvalue(), file_name="t.dta", columns="auto")
    assert any("Several values have the same label" in note for note in pool.notes)
    assert pool.features[:3, 1].tolist() == [1, 2, 3]
