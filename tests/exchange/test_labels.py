"""Exported labels can be read by other programs, and come back."""

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from workbench.errors import InputError
from workbench.exchange.answers import IMPORTS, format_of
from workbench.exchange.imports import import_labels
from workbench.exchange.labels import FORMATS, export_labels
from workbench.exchange.rows import flat, label_table
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.sessions.operations import Operation
from workbench.store import FileVote, Store


def member(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return packed.read(name)


NAMES = ["=cmd()", "+1", "-a", "@x", "tile_x0064_y0128", 'comma, "quote"\nline', "été"]


def labelled(session: Session) -> dict[str, str]:
    """id -> class of a few items, some of them with dangerous names."""
    items = session.pool.trainable[:: max(1, session.pool.trainable.size // 7)][:7].tolist()
    for item, name in zip(items, session.classes, strict=False):
        session.items.label(item, name)
    return {str(session.pool.items.ids[i]): name for i, name in session.state.labels.items()}


@pytest.mark.parametrize("format", filter(FORMATS.__contains__, IMPORTS))
def test_every_format_comes_back_as_it_left(start: Callable[..., Session], store: Store, format: str) -> None:
    pool = load_pool("digits" if format == "coco" else "iris")
    session = start(replace(pool, truth=None), classes=NAMES)
    told = labelled(session)
    assert len(told) == 7
    data = export_labels(session, format)
    back = import_labels(data, pool, format)
    assert {str(pool.items.ids[i]): name for i, name in back} == told
    other = start(replace(pool, truth=None), classes=NAMES)
    other.items.import_labels(back, "file")
    assert other.state.labels == session.state.labels


def test_a_row_of_many_columns_is_made_plain_once(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start("iris")
    plain: list[object] = []
    monkeypatch.setattr("workbench.exchange.labels.flat", lambda row: plain.append(row) or flat(row))
    data = export_labels(session, "csv", "everything")
    assert len(plain) == len(data.splitlines()) - 1 == len(session.pool)


def test_a_csv_read_by_pandas_equals_the_labels(start: Callable[..., Session]) -> None:
    session = start("iris")
    told = labelled(session)
    session.items.note(int(session.pool.trainable[0]), "=HYPERLINK(1)")
    table = pd.read_csv(io.BytesIO(export_labels(session, "csv")), dtype={"id": str})
    assert dict(zip(table["id"], table["label"], strict=True)) == told
    assert table["note"][0] == "'=HYPERLINK(1)"
    row = session.pool.items.show(int(table["item"][0])).row
    assert row is not None
    for name, value in row.items():
        assert table[name][0] == value
    # numbers are not texts: a negative one is left as it is
    assert (table["set"] == "training").all() and (table["person"] == "ann").all()


def test_cells_that_a_spreadsheet_would_run_are_quoted(start: Callable[..., Session]) -> None:
    session = start("iris", classes=NAMES)
    labelled(session)
    text = export_labels(session, "csv").decode()
    for name in ("=cmd()", "-a", "@x"):
        assert f",'{name}," in text and f",{name}," not in text
    assert ",+1," in text and ",'+1," not in text


def test_parquet_and_jsonl_hold_the_same_table(start: Callable[..., Session]) -> None:
    session = start("iris")
    labelled(session)
    rows = label_table(session)
    frame = pd.read_parquet(io.BytesIO(export_labels(session, "parquet")))
    there = frame.astype(object).where(frame.notna(), None)
    assert there.to_dict("records") == [flat(row) for row in rows]
    assert [json.loads(line) for line in export_labels(session, "jsonl").decode().splitlines()] == rows


def test_label_studio_tasks_name_no_account_and_keep_who_and_when(start: Callable[..., Session]) -> None:
    session = start("iris")
    labelled(session)
    tasks = json.loads(member(export_labels(session, "label-studio"), "tasks.json"))
    # a Label Studio that does not know the account refuses the whole file
    assert all("completed_by" not in task["annotations"][0] for task in tasks)
    assert {task["data"]["person"] for task in tasks} == {"ann"} and all(t["data"]["time"] for t in tasks)


def test_a_label_says_how_it_came_about(start: Callable[..., Session]) -> None:
    session = start("iris")
    ask = session.ask()[0]
    session.apply([Operation("op", "label", ask=ask.id, label="setosa", more={"seconds": 1.5})])
    (row,) = label_table(session)
    assert (row["source"], row["seconds"], row["model_labels"], row["round"]) == (ask.role, 1.5, 0, None)


def test_huggingface_names_its_classes_in_the_schema(start: Callable[..., Session]) -> None:
    import pyarrow.parquet as pq

    session = start("iris")
    told = labelled(session)
    data = export_labels(session, "huggingface")
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        (path,) = [name for name in packed.namelist() if name.startswith("data/train-00000-of-00001-")]
    table = pq.read_table(io.BytesIO(member(data, path)))
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["label"] == {"names": list(session.classes), "_type": "ClassLabel"}
    assert set(features) == set(table.column_names)
    codes = table.column("label").to_pylist()
    assert {i: session.classes[c] for i, c in zip(table.column("id").to_pylist(), codes, strict=True)} == told
    assert dict(import_labels(data, session.pool, "huggingface")) == dict(session.state.labels)


def test_npz_is_ready_to_train_on(start: Callable[..., Session]) -> None:
    session = start("iris")
    labelled(session)
    with np.load(io.BytesIO(export_labels(session, "npz")), allow_pickle=False) as z:
        assert np.array_equal(z["X"], session.pool.features[z["item"]])
        assert [z["classes"][c] for c in z["y"]] == [session.state.labels[i] for i in z["item"].tolist()]


def test_coco_is_for_images(start: Callable[..., Session]) -> None:
    with pytest.raises(InputError, match="COCO is for images"):
        export_labels(start("iris"), "coco")
    session = start("digits")
    labelled(session)
    document = json.loads(export_labels(session, "coco"))
    assert {(i["height"], i["width"]) for i in document["images"]} == {(8, 8)}
    assert len(document["categories"]) == 10


def test_a_column_of_the_source_called_like_ours_keeps_its_values(
    tmp_path: Path, start: Callable[..., Session]
) -> None:
    path = tmp_path / "p.csv"
    path.write_text("label,x\n" + "".join(f"{i % 3}.5,{i}\n" for i in range(40)))
    # no class that was named stands in the column, so it is no column of classes
    session = start(str(path), classes=["yes", "no"])
    session.items.label(int(session.pool.trainable[0]), "yes")
    (row,) = label_table(session)
    assert row["label"] == "yes" and "source_label" in row


def test_excel_gets_numbers_and_texts_and_no_formula(tmp_path: Path, start: Callable[..., Session]) -> None:
    path = tmp_path / "p.csv"
    lines = "".join(f"r{i},{'=1+1' if i % 2 else '-2'},{i}.5\n" for i in range(40))
    path.write_text(f"id,word,x\n{lines}")
    session = start(str(path), classes=["=A1", "ümlaut"])
    session.items.label(session.pool.trainable[:2].tolist(), "=A1")
    session.items.note(int(session.pool.trainable[0]), "bell \x07")
    from openpyxl import load_workbook

    sheet = load_workbook(io.BytesIO(export_labels(session, "xlsx"))).active
    head, *cells = sheet.iter_rows()
    names = [one.value for one in head]
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    assert [row["label"].value for row in rows] == ["=A1", "=A1"]
    assert "f" not in {one.data_type for row in rows for one in row.values()}
    assert [row["x"].value for row in rows] == [float(row["x"]) for row in label_table(session)]
    assert rows[0]["note"].value == "bell \ufffd"


def test_excel_gets_long_numbers_whole_and_refuses_what_it_cannot_hold(
    tmp_path: Path, start: Callable[..., Session]
) -> None:
    path = tmp_path / "p.jsonl"
    lines = [
        {"id": f"r{i}", "account": 1234567890123456789 + i, "x": i % 7, "text": "a b"} for i in range(40)
    ]
    lines[1]["text"] = "\U0001f600" * 20_000
    path.write_text("\n".join(json.dumps(line) for line in lines))
    session = start(str(path), classes=["a", "b"])
    session.items.label(int(session.pool.trainable[session.pool.trainable != 1][0]), "a")
    from openpyxl import load_workbook

    head, row = load_workbook(io.BytesIO(export_labels(session, "xlsx"))).active.iter_rows(values_only=True)
    cells = dict(zip(head, row, strict=True))
    assert cells["account"] == str(lines[int(cells["id"][1:])]["account"])
    with pytest.raises(InputError, match="holds 32,767 characters, and one text has 40,000"):
        export_labels(session, "xlsx", "everything")
    wide = tmp_path / "wide.npz"
    np.savez(wide, features=np.random.default_rng(0).normal(size=(12, 16_400)))
    session = start(str(wide), classes=["a", "b"])
    session.items.label(int(session.pool.trainable[0]), "a")
    with pytest.raises(InputError, match="has 16,384 columns"):
        export_labels(session, "xlsx")


def test_an_empty_project_exports_an_empty_table(start: Callable[..., Session]) -> None:
    session = start("iris")
    for format in FORMATS:
        if format not in ("coco", "folders"):
            assert export_labels(session, format) is not None
    assert pd.read_csv(io.BytesIO(export_labels(session, "csv"))).empty


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        ("csv", b"", "holds no labels"),
        ("csv", b"id,label\n", "holds no labels"),
        ("csv", b"id,label\n3,\n", "holds no labels"),
        ("csv", b"a,b\n1,2\n", r"has the columns id \(or item\) and label; this one has a, b"),
        ("csv", b"id,label\n1,a\n1,b\n", "two labels: 'a' and 'b'"),
        ("csv", b"id,label,annotator\n1,a,ann\n1,b,ann\n", "two labels: 'a' and 'b'"),
        ("csv", b"id,label,annotator\n1,a,ann\n1,b,bob\n2,None,ann\n", "Row 3 .* label 'None', and no class"),
        (
            "csv",
            b"item,label,annotator,annotation_id\n1,a,ann,1\n1,b,bob,2\n2,None,ann,3\n",
            "label 'None', and no class",
        ),
        ("csv", b"id,label\n1,a\n999,b\nx,c\n", "has no item 999, x. Nothing was imported"),
        ("csv", b"item,label\n-1,a\n", "has no item -1"),
        ("csv", b"id,label\n1\n", "line 2 has 1 cell; the header has 2"),
        ("csv", b"id,label\n1,a,b\n", "line 2 has 3 cells; the header has 2"),
        ("jsonl", b'{"id": "1"\n', "Line 1 of the file is not JSON"),
        ("jsonl", b"[1]\n", "not an object with names"),
        ("parquet", b"PAR1 nothing", "is not a Parquet file that can be read"),
        ("npz", b"nothing", "is not an NPZ file that can be read"),
        ("label-studio", b"{}", "JSON list of tasks"),
        ("label-studio", b"[1]", r"is not a file of labels \(label-studio\) that can be read"),
        ("coco", b"{}", r"is not a file of labels \(coco\) that can be read: it lacks .categories."),
        ("coco", b"[", "is not JSON that can be read"),
        ("huggingface", b"PK nothing", "not a zip"),
        ("xml", b"", "cannot be imported from 'xml'"),
    ],
)
def test_a_bad_file_says_what_is_wrong(format: str, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_labels(data, load_pool("iris"), format)


def npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def jsonl(*labels: object) -> bytes:
    return "\n".join(json.dumps({"id": str(i), "label": v}) for i, v in enumerate(labels)).encode()


def parquet(labels: object, names: tuple[str, ...] = ()) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": [str(i) for i in range(len(labels))], "label": labels})  # type: ignore[arg-type]
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    if names:
        described = json.dumps({"info": {"features": features}}).encode()
        table = table.replace_schema_metadata({b"huggingface": described})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


IDS = np.array(["0", "1", "2"])
ONE = [(1, "b")]


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("npz", npz(id=IDS, y=np.array([-1, 1, -1]), classes=np.array(["a", "b"]))),
        ("npz", npz(id=IDS, y=np.array([np.nan, 1.0, -1.0]), classes=np.array(["a", "b"]))),
        ("npz", npz(id=IDS, y=np.array(["", "b", "None"]))),
        ("npz", npz(id=IDS, y=np.array(["nan", "b", "nan"]))),
        ("jsonl", jsonl(None, "b", float("nan"))),
        ("jsonl", jsonl("", "b", -1)),
        ("jsonl", jsonl("nan", "b", "None")),
        ("parquet", parquet([-1, 1, None], ("a", "b"))),
        ("parquet", parquet([None, "b", ""])),
        ("parquet", parquet(["nan", "b", None])),
        ("csv", b"id,label\n0,\n1,b\n2,nan\n"),
        ("csv", b"id,label\n0,None\n1,b\n2,-1\n"),
    ],
)
def test_marks_of_unlabelled_rows_are_no_labels(format: str, data: bytes) -> None:
    assert import_labels(data, replace(load_pool("iris"), classes=("a", "b")), format) == ONE


def test_a_class_that_is_called_like_a_mark_is_a_class() -> None:
    iris = replace(load_pool("iris"), classes=())
    assert import_labels(b"id,label\n0,None\n1,b\n", iris, "csv", ["None", "b"]) == [(0, "None"), (1, "b")]
    assert import_labels(b"id,label\n0,-1\n1,1\n", iris, "csv") == [(0, "-1"), (1, "1")]
    assert import_labels(jsonl(-1, 1), iris, "jsonl", ["-1", "1"]) == [(0, "-1"), (1, "1")]


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        (
            "npz",
            npz(id=IDS, y=np.array([0, 1, 2]), classes=np.array(["a", "b"])),
            "Row 3 .*label 2, .*0 to 1",
        ),
        ("npz", npz(id=IDS, y=np.array([0, -2, 1]), classes=np.array(["a", "b"])), "Row 2 .*label -2"),
        ("npz", npz(id=IDS, y=np.array([True, False, True]), classes=np.array(["a", "b"])), "Row 1 .*True"),
        ("npz", npz(id=IDS, y=np.array([0.0, 0.5, 1.0]), classes=np.array(["a", "b"])), "Row 2 .*0.5"),
        ("npz", npz(id=IDS, y=np.array([0.0, np.inf, 1.0]), classes=np.array(["a", "b"])), "Row 2 .*inf"),
        ("npz", npz(id=IDS, y=np.zeros((3, 2), int), classes=np.array(["a", "b"])), r"shape \[3, 2\]"),
        ("jsonl", jsonl("a", {"a": 1}), "Line 2 of the file has the label .'a': 1., which is no name"),
        ("jsonl", jsonl("a", ["b", "c"]), "Line 2 of the file"),
        ("jsonl", jsonl("a", True), "Line 2 of the file has the label True"),
        ("jsonl", jsonl("a", float("inf")), "Line 2 of the file has the label inf"),
        ("parquet", parquet([0, 7], ("a", "b")), "Row 2 of the file has the label 7"),
        ("parquet", parquet([True, False]), "Row 1 of the file has the label True"),
        ("parquet", parquet([["a"], ["b", "c"]]), "Row 2 of the file"),
        (
            "coco",
            json.dumps(
                {
                    "images": [{"id": 1, "file_name": "0"}],
                    "categories": [],
                    "annotations": [{"image_id": 1, "category_id": 9}],
                }
            ).encode(),
            "Annotation 1 of the file has the category_id 9",
        ),
        ("jsonl", b'{"id": "0", "label": ' + b"[" * 100_000, "Line 1 .*nested too deeply"),
        ("coco", b"[" * 100_000, "nested too deeply"),
        ("jsonl", b'{"id": "0", "label": ' + b"9" * 5000 + b"}", "Line 1 of the file is not JSON"),
    ],
)
def test_odd_labels_are_refused_by_their_row(format: str, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        import_labels(data, load_pool("iris"), format)
    assert len(str(caught.value)) < 400


def test_a_large_document_of_many_values_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixty million lists in 180 MB took 4.4 GB; as many bytes of pictures are read."""
    from workbench.exchange import answers

    monkeypatch.setattr(answers, "MAX_JSON", 10_000)
    monkeypatch.setattr(answers, "MAX_PARTS", 2_000)
    iris = load_pool("iris")
    with pytest.raises(InputError, match=r"about 4,0\d\d values in 1\d,\d\d\d bytes; .* Split it"):
        import_labels(b"[" + b"[] , " * 2_010 + b"[]]", iris, "label-studio")
    chosen = {"type": "choices", "value": {"choices": ["setosa"]}}
    task = {"id": 3, "data": {"item": 3, "image": "x" * 20_000}, "annotations": [{"result": [chosen]}]}
    assert import_labels(json.dumps([task]).encode(), iris, "label-studio") == [(3, "setosa")]


def test_boxes_and_several_choices_are_refused() -> None:
    iris = load_pool("iris")
    boxes = {"images": [], "categories": [], "annotations": [{"bbox": [0, 0, 1, 1]}]}
    with pytest.raises(InputError, match="boxes or outlines"):
        import_labels(json.dumps(boxes).encode(), iris, "coco")
    result = [{"type": "choices", "value": {"choices": ["a", "b"]}}]
    task = [{"id": 1, "data": {"id": "1"}, "annotations": [{"result": result}]}]
    with pytest.raises(InputError, match="several choices"):
        import_labels(json.dumps(task).encode(), iris, "label-studio")


def test_formats_by_the_ending_of_a_file() -> None:
    assert [format_of(f"a/b.{e}") for e in ("csv", "PARQUET", "jsonl", "npz")] == [
        "csv",
        "parquet",
        "jsonl",
        "npz",
    ]
    with pytest.raises(InputError, match="--format"):
        format_of("x.json", b'{"label": "a"}')
    assert format_of("x.json", b'[{"label": "a"}]') == "jsonl"
    assert format_of("x.json", b'{"images": [], "categories": [], "annotations": []}') == "coco"
    with pytest.raises(InputError, match="no format 'xml'"):
        export_labels(None, "xml")  # type: ignore[arg-type]


def test_a_pool_whose_ids_stand_in_a_column_item_gets_its_labels_back(start: Callable[..., Session]) -> None:
    rows = "".join(f"{9 - i},{i / 7:.3f}\n" for i in range(8))
    pool = load_pool(f"item,x\n{rows}".encode(), file_name="t.csv", id_column="item")
    session = start(pool, classes=["a", "b"])
    session.items.label(2, "b")
    assert import_labels(export_labels(session, "csv"), pool, "csv") == [(2, "b")]
    assert import_labels(b"item,label\n7,b\n", pool, "csv") == [(2, "b")]


def zipped_tasks() -> bytes:
    stream = io.BytesIO()
    choice = {"type": "choices", "from_name": "label", "value": {"choices": ["b"]}}
    task = {"id": 9, "data": {"id": "a7"}, "annotations": [{"result": [choice]}]}
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("tasks.json", json.dumps([task]))
    return stream.getvalue()


def workbook() -> bytes:
    stream = io.BytesIO()
    pd.DataFrame({"key": ["a7", "b2"], "Class": ["b", None]}).to_excel(stream, index=False)
    return stream.getvalue()


WORDS = ("red", "blue", "old", "new")
TEXTS = [f"{a} lamp {b} chair {c} bed" for a, b, c in product(WORDS, repeat=3)]
OWN = "key,text,label\n" + "".join(f"{'a7' if i == 0 else f'b{i}'},{text},\n" for i, text in enumerate(TEXTS))
SCHOOL = "key\tlabel\na7\tgrün\nb2\t\n"


@pytest.mark.parametrize(
    ("name", "data", "label"),
    [
        ("labels.xlsx", workbook(), "b"),
        ("labels.tsv", b"key\tlabel\na7\tb\nb2\t\n", "b"),
        ("utf16.tsv", SCHOOL.encode("utf-16"), "grün"),
        ("cp1252.tsv", SCHOOL.encode("cp1252"), "grün"),
        ("semicolon.csv", b"key;label\na7;b\nb2;\n", "b"),
        (
            "doccano.jsonl",
            b'{"text": "red lamp red chair red bed", "label": ["b"]}\n{"label": []}\n',
            "b",
        ),
        (
            "prodigy.jsonl",
            b'{"text": "red lamp red chair red bed", "_input_hash": 1, "label": "b", "answer": "accept"}\n'
            b'{"text": "red lamp red chair blue bed", "_input_hash": 2, "label": "b", "answer": "reject"}\n',
            "b",
        ),
        ("list.json", b'[{"key": "a7", "label": "b"}, {"key": "b2", "label": null}]', "b"),
        ("tasks.zip", zipped_tasks(), "b"),
        (
            "min.json",
            b'[{"id": 3, "text": "red lamp red chair red bed", "annotation_id": 1, "label": "b"}]',
            "b",
        ),
        ("studio.csv", b"annotation_id,id,text,label\n1,3,red lamp red chair red bed,b\n", "b"),
    ],
)
def test_labels_come_back_from_what_people_and_other_programs_save(
    name: str, data: bytes, label: str
) -> None:
    pool = load_pool(
        OWN.encode(), file_name="own.csv", columns={"key": "id", "text": "text"}, exclude="label"
    )
    assert import_labels(data, pool, format_of(name, data)) == [(0, label)]


def test_the_numbers_of_another_program_are_no_ids_of_texts_that_have_none() -> None:
    pool = load_pool(("text\n" + "\n".join(TEXTS)).encode(), file_name="t.csv")
    doccano = "".join(
        f'{{"id": {i + 1}, "text": "{text}", "label": ["b"]}}\n' for i, text in enumerate(TEXTS[:5])
    )
    labels = [(i, "b") for i in range(5)]
    assert import_labels(doccano.encode(), pool, "jsonl") == labels
    table = "id,text,label\n" + "".join(f"{i + 1},{text},b\n" for i, text in enumerate(TEXTS[:5]))
    assert import_labels(table.encode(), pool, "csv") == labels
    assert import_labels(b"id,label\n3,b\n", pool, "csv") == [(3, "b")]


def test_a_spreadsheet_gets_two_columns_and_a_byte_order_mark(start: Callable[..., Session]) -> None:
    session = start("iris")
    session.items.label(int(session.pool.trainable[0]), session.classes[0])
    data = export_labels(session, "csv-bom", "id-and-label")
    assert data.startswith(b"\xef\xbb\xbfid,label\n")
    assert dict(import_labels(data, session.pool, "csv", session.classes)) == dict(session.state.labels)
    (line,) = export_labels(session, "jsonl", "id-and-label").splitlines()
    assert json.loads(line) == {
        "id": str(session.pool.items.ids[session.pool.trainable[0]]),
        "label": session.classes[0],
    }


REVIEWS = ("The parcel came late", "Very good service", "Very good service", "good", "It broke", "x y")


@pytest.mark.parametrize(
    ("ids", "format", "data", "labels"),
    [
        # doccano's own numbers, beside texts that its lists have
        (range(6), "jsonl", '{"id": 1, "text": "The parcel came late", "label": ["b"]}', [(0, "b")]),
        (range(6), "csv", "id,data,label\n1,The  parcel came late,b\n", [(0, "b")]),
        ("stuvwx", "csv", "id,data,label\n1,It broke,b\n", [(4, "b")]),
        (range(6), "csv", "id,text,label\n2,Very good service,b\n", [(2, "b")]),
        (range(6), "csv", "id,text,label\n4,Very good service,b\n", "no item 4 with the text"),
        (None, "jsonl", '{"id": 4, "text": "Very good service", "label": ["b"]}', "no item 4 with the text"),
        (None, "jsonl", '{"id": 3, "text": "It is broken", "label": ["b"]}', "no item 3 with the text"),
        # a label, or any other cell beside the text's, is no text of an item
        (None, "csv", "text,label\nnobody wrote this,good\n", "no item of the pool is the same"),
        (None, "csv", "what,label\nnobody wrote this,good\n", "no item of the pool is the same"),
        (None, "csv", "text,was,label\nIt broke,x y,good\n", [(4, "good")]),
        (None, "csv", "what,label\nIt broke,good\n", [(4, "good")]),
    ],
)
def test_a_text_says_which_item_it_is_and_no_number_or_other_cell_goes_before_it(
    ids: Sequence[object] | None, format: str, data: str, labels: object
) -> None:
    lines = [f"{key},{text}" for key, text in zip(ids or REVIEWS, REVIEWS, strict=True)]
    table = "uid,text\n" + "\n".join(lines) if ids else "text\n" + "\n".join(REVIEWS)
    options = {"columns": {"uid": "id", "text": "text"}} if ids else {}
    pool = load_pool((table + "\n").encode(), file_name="t.csv", **options)
    if isinstance(labels, str):
        with pytest.raises(InputError, match=labels):
            import_labels(data.encode(), pool, format)
    else:
        assert import_labels(data.encode(), pool, format) == labels


def test_a_picture_is_found_by_its_own_column_alone(tmp_path: Path) -> None:
    for name in "de":
        Image.new("RGB", (8, 8), (ord(name), 0, 0)).save(tmp_path / f"{name}.png")
    pool = load_pool(tmp_path)
    assert import_labels(b"image,mask,label\nd.png,masks/e.png,b\n", pool, "csv") == [(0, "b")]
    with pytest.raises(InputError, match="no item of the pool is the same"):
        import_labels(b"image,other,label\nmissing.png,e.png,b\n", pool, "csv")


@pytest.mark.parametrize(
    ("columns", "cells", "more", "label"),
    [
        ("category,sentiment", "hardware,bad", {}, "bad"),  # category is a feature of the pool
        ("Label,sentiment", "good,bad", {}, "Several columns may hold the labels: Label, sentiment"),
        ("Label,class", "good,bad", {}, "Several columns may hold the labels: Label, class"),
        ("Label,sentiment", "good,bad", {"column": "Label"}, "good"),
        ("category,urgent", "hardware,bad", {"question": "urgent"}, "bad"),
        ("category,mood", "hardware,bad", {}, "this one has id, category, mood. Say which"),
        ("category,mood", "hardware,bad", {"column": "mood"}, "bad"),
        ("category", "good", {}, "good"),  # the only one
        ("label", "bad", {"column": "mood"}, "columns id .or item. and mood"),
    ],
)
def test_labels_stand_in_the_pools_own_column_or_in_the_one_that_is_named(
    columns: str, cells: str, more: dict[str, str], label: str
) -> None:
    rows = "".join(
        f"r{i},{i / 7:.3f},{'soft' if i % 2 else 'hard'}ware,{'good' if i % 3 else 'bad'}\n"
        for i in range(12)
    )
    pool = load_pool(f"id,x,category,sentiment\n{rows}".encode(), file_name="t.csv", target="sentiment")
    data = f"id,{columns}\nr3,{cells}\n".encode()
    if label in ("good", "bad"):
        assert import_labels(data, pool, "csv", **more) == [(3, label)]
    else:
        with pytest.raises(InputError, match=label):
            import_labels(data, pool, "csv", **more)


def test_a_column_that_was_left_empty_for_the_labels_is_read_when_it_is_filled() -> None:
    rows = [f"r{i},{text} number {i}" for i, text in enumerate(TEXTS * 2)]
    pool = load_pool(("id,text,label\n" + ",\n".join(rows) + ",\n").encode(), file_name="t.csv")
    filled = "id,text,label\n" + "\n".join(f"{row},b" for row in rows[:2]) + "\n"
    assert import_labels(filled.encode(), pool, "csv") == [(0, "b"), (1, "b")]


@pytest.mark.parametrize(
    ("format", "data", "labels"),
    [
        # a first object without its label, and labels that look like lines that explain the names
        ("jsonl", b'[{"id": "0"}, {"id": "1", "label": "b"}]', [(1, "b")]),
        ("csv", b"id,label\n0,Response\n1,b\n2,b\n", [(0, "Response"), (1, "b"), (2, "b")]),
        ("csv", b"ID,Label\n1,b\n", [(1, "b")]),
        # persons of Label Studio's CSV, of its JSON-MIN and of Prodigy
        (
            "csv",
            b"item,label,annotation_id,annotator\n0,b,7,ann\n0,c,8,bob\n",
            [FileVote(0, "b", "ann"), FileVote(0, "c", "bob")],
        ),
        (
            "jsonl",
            b'[{"item": 0, "label": "b", "annotation_id": 7, "annotator": 3}]',
            [FileVote(0, "b", "3")],
        ),
        (
            "jsonl",
            b'{"item": 0, "_input_hash": 1, "_session_id": "x-ann", "answer": "accept", "label": "b"}\n'
            b'{"item": 0, "_input_hash": 1, "_session_id": "x-bob", "answer": "accept", "label": "c"}\n',
            [FileVote(0, "b", "x-ann"), FileVote(0, "c", "x-bob")],
        ),
        # of one without the numbers of its annotations, and of any table of votes
        (
            "csv",
            b"item,label,annotator,created_at\n0,b,ann,2026-01-01T10:00:00Z\n0,c,bob,2026-01-01T11:00:00Z\n",
            [
                FileVote(0, "b", "ann", "2026-01-01T10:00:00.000+00:00"),
                FileVote(0, "c", "bob", "2026-01-01T11:00:00.000+00:00"),
            ],
        ),
        (
            "jsonl",
            b'[{"item": 0, "label": "b", "WorkerId": "w1"}, {"item": 0, "label": "c", "WorkerId": "w2"}, '
            b'{"item": 1, "label": "b", "WorkerId": "w1"}, {"item": 1, "label": "c", "WorkerId": "w1"}]',
            [FileVote(0, "b", "w1"), FileVote(0, "c", "w2"), FileVote(1, "c", "w1")],
        ),
        (
            "jsonl",
            b'[{"item": 0, "label": "b", "annotator": 0}, {"item": 0, "label": "c", "annotator": 1}]',
            [FileVote(0, "b", "0"), FileVote(0, "c", "1")],
        ),
        # who labelled alone is the file
        ("csv", b"item,label,annotator\n0,b,ann\n1,c,bob\n", [(0, "b"), (1, "c")]),
        # of a person who answered twice the newest counts, over sessions that Prodigy named by itself too
        (
            "csv",
            b"item,label,annotation_id,annotator,updated_at\n"
            b"0,b,7,ann,2026-01-02T10:00:00Z\n0,c,8,ann,2026-01-01T10:00:00Z\n",
            [FileVote(0, "b", "ann", "2026-01-02T10:00:00.000+00:00")],
        ),
        (
            "jsonl",
            b'{"item": 0, "_input_hash": 1, "_session_id": "x-2026-01-31_12-00-00", "_timestamp": 86400, '
            b'"answer": "accept", "label": "c"}\n'
            b'{"item": 0, "_input_hash": 1, "_session_id": "x-2026-02-01_09-30-00", "_timestamp": 172800, '
            b'"answer": "accept", "label": "b"}\n',
            [FileVote(0, "b", "x", "1970-01-03T00:00:00.000+00:00")],
        ),
    ],
)
def test_labels_of_any_row_and_of_each_person_are_read(format: str, data: bytes, labels: object) -> None:
    pool = load_pool(("text\n" + "\n".join(TEXTS)).encode(), file_name="t.csv")
    assert import_labels(data, pool, format) == labels


def test_what_the_reader_did_is_told_before_labels_are_taken_in() -> None:
    pool = load_pool(("text\n" + "\n".join(TEXTS)).encode(), file_name="t.csv")
    notes: list[str] = []
    assert import_labels("item,label\n0,gr\xfcn\n".encode("cp1252"), pool, "csv", notes=notes) == [
        (0, "gr\xfcn")
    ]
    assert any("cp1252" in note for note in notes)
    session = {"_input_hash": 1, "_annotator_id": "x-2026-01-31_12-00-00", "answer": "accept"}
    assert import_labels(
        json.dumps({"item": 0, "label": "b", **session}).encode(), pool, "jsonl", notes=notes
    )
    assert any("sessions without a name count as one person: 'x'" in note for note in notes)


def test_a_column_called_item_may_be_the_pools_ids_and_one_called_note_its_texts() -> None:
    rows = "".join(f"{i + 1},{i / 7:.3f},{i % 5 + 0.5}\n" for i in range(30))
    numbered = load_pool(f"Item,a,b\n{rows}".encode(), file_name="t.csv")
    assert numbered.id_column == "Item"
    assert import_labels(b"Item,label\n1,x\n2,y\n", numbered, "csv") == [(0, "x"), (1, "y")]
    texts = load_pool(("note\n" + "\n".join(TEXTS)).encode(), file_name="n.csv")
    assert import_labels(f"note,label\n{TEXTS[0]},x\n".encode(), texts, "csv") == [(0, "x")]
