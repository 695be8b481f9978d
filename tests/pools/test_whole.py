"""A file is whole in its pool, or a sentence says why not; what can be read in two ways is asked."""

import dataclasses
import io
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.loading import open_source
from workbench.pools.tables.pictures import found_by_path


def table(text: str, **options):
    return load_pool(text.encode(), file_name="a.csv", **{"columns": "auto", **options})


def folder_of(place, files: dict[str, str]):
    for name, colour in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), colour).save(place / name)
    return place


# Numbers and dates -------------------------------------------------------------------------------------


def test_the_decimal_sign_is_the_columns_own():
    rows = [(f'"{i + 1},{i % 90 + 10}"', [0.5, 12.75, 3.125][i % 3], "ab"[i % 2]) for i in range(30)]
    pool = table("euro,rate,label\n" + "".join(f"{e},{r},{c}\n" for e, r, c in rows))
    assert pool.features[1].tolist() == [2.11, 12.75], "a column of points keeps them"
    assert pool.uses["euro"]["decimal"] == "," and "decimal" not in pool.uses["rate"]
    assert "Commas are read as decimal points in 'euro'." in pool.notes
    again = load_pool(
        pool_bytes := (b"euro,rate,label\n3,7.5,a\n4,2.5,b\n5,1,a\n"), file_name="b.csv", columns=pool.uses
    )
    assert again.features[0].tolist() == [3, 7.5], pool_bytes
    new = pool.feature_map.transform(read_rows(b'euro,rate,label\n"1.234,5",0.5,a\n', file_name="c.csv"))
    assert new.tolist() == [[1234.5, 0.5]], "the map reads as the pool was read"


def test_a_comma_before_three_digits_is_asked_about():
    text = "sales,rate,label\n" + "".join(f'"{i + 1},{100 + i}",{i},{"ab"[i % 2]}\n' for i in range(30))
    with pytest.raises(InputError, match="between thousands, or a decimal comma"):
        table(text)
    (asked,) = [
        p
        for p in inspect_table(text.encode(), file_name="a.csv", columns="auto").problems
        if p.severity == "choice"
    ]
    first = {fix.label: table(text, columns=fix.options["columns"]).features[0, 0] for fix in asked.fixes}
    assert first == {"1,100 is 1100": 1100, "1,100 is 1.100": 1.1}
    assert table(text, columns=None, target="label", decimal=".").features[0, 0] == 1100


@pytest.mark.parametrize(
    ("cells", "decimal", "first"),
    [
        (["1,234.50", "7"], ".", 1234.5),
        (["1,234,567", "2"], ".", 1234567),
        (["1.234.567", "2,5"], ",", 1234567),
    ],
)
def test_what_reads_in_one_way_alone_is_read_so(cells, decimal, first):
    text = "x,label\n" + "".join(f'"{cells[i % 2]}",{"ab"[i % 3 > 0]}\n' for i in range(30))
    pool = table(text)
    assert pool.uses["x"]["decimal"] == decimal and pool.features[0, 0] == first


def test_a_point_that_parts_no_thousands_is_no_number_of_a_comma_column():
    text = "x,label\n" + "".join(f'"{i},5",{"ab"[i % 2]}\n' for i in range(1200)) + "0.75,a\n"
    pool = table(text)
    assert np.median(pool.features[:-1, 0]) == pool.features[-1, 0], "filled in, not 75"
    assert any("What is no number in 'x' (1 cell, such as '0.75'" in note for note in pool.notes)


def test_dates_that_two_formats_read_are_said():
    text = "when,x,label\n" + "".join(f"{i % 12 + 1:02d}/01/2020,{i % 7},{'ab'[i % 2]}\n" for i in range(24))
    (said,) = [
        p
        for p in inspect_table(text.encode(), file_name="a.csv", columns="auto").problems
        if p.code == "date"
    ]
    assert "02/01/2020 in 'when' is read as day, month, year" in said.message
    assert said.severity == "guess"
    other = table(text, columns=said.fixes[1].options["columns"])
    assert (
        other.features[1, 0] - other.features[0, 0] == 31
        and table(text).features[1, 0] - 1 == (table(text).features[0, 0])
    )
    assert not any("month stands first" in note for note in other.notes)
    sure = text.replace("12/01/2020", "13/01/2020")
    assert not any("month stands first" in note for note in table(sure).notes), "no month has 13"


def test_a_column_that_says_the_class_again_is_no_feature():
    rows = "".join(f"good film number {i} tonight,{i % 2},{['neg', 'pos'][i % 2]}\n" for i in range(60))
    text = "text,label,label_text\n" + rows
    pool = table(text)
    assert pool.kind == "text" and pool.uses["label_text"]["use"] == "leave out"
    assert any("stands one to one with the classes" in note for note in pool.notes)
    kept = table(text, columns={"label_text": "category"})
    assert "label_text=neg" in kept.feature_map.columns, "said by somebody, it is used"
    assert any("a model that sees it is always right" in note for note in kept.notes)


# Rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [b"A1:C5", b"A1:B21", b"A1"])
def test_a_sheet_is_read_to_its_end_whatever_it_says(stated):
    book = openpyxl.Workbook()
    book.active.append(["id", "x", "label"])
    for i in range(20):
        book.active.append([i, i * 1.5, "ab"[i % 2]])
    book.save(whole := io.BytesIO())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed, zipfile.ZipFile(whole) as given:
        for name in given.namelist():
            packed.writestr(name, given.read(name).replace(b'ref="A1:C21"', b'ref="' + stated + b'"'))
    assert read_rows(out.getvalue(), file_name="a.xlsx").shape == (20, 3)


def test_a_line_ends_where_editors_end_it():
    rows = read_rows(
        "first\u2028still first\nsecond\x0citem two\r\nthird\x85\rfourth".encode(), file_name="a.txt"
    )
    assert rows["text"].tolist() == ["first\u2028still first", "second\x0citem two", "third", "fourth"]


def test_quotes_enclose_cells_or_are_part_of_texts_and_no_row_is_swallowed():
    texts = [["0", "zero"], ["1", '"hello there'], ["2", "world"]]
    for last in ("foo", '"foo'):  # one quote, and two that enclose rows
        data = f'id,text\n0,zero\n1,"hello there\n2,world\n3,{last}\n'.encode()
        assert read_rows(data, file_name="a.csv").to_numpy().tolist() == [*texts, ["3", last]]
        assert any(p.code == "quotes" for p in inspect_table(data, file_name="a.csv").problems)
    for sound, cells in {
        'id,text\n0,"a ""b"""\n1,""\n': [["0", 'a "b"'], ["1", ""]],
        'id,text\n0,a\n1,"b\nc, d"\n': [["0", "a"], ["1", "b\nc, d"]],
        'id,text\n0,a\n1,b"': [["0", "a"], ["1", 'b"']],
        'id,t\n1,"a \\"b\\", c"\n2,"d"\n': [["1", 'a "b", c'], ["2", "d"]],
    }.items():
        assert read_rows(sound.encode(), file_name="a.csv").to_numpy().tolist() == cells
    asked = b's\tl\n"a b\t1\nc d\t0\ne f"\t0\n'
    report = inspect_table(asked, file_name="a.tsv")
    first = report.problems[0]
    assert (first.code, first.severity) == ("quotes", "choice")
    rows = [len(read_rows(asked, file_name="a.tsv", **fix.options)) for fix in first.fixes]
    assert rows == [3, 1]
    broken = b'"a","b"\n"x","y"\n"x"z","y"\n'
    with pytest.raises(InputError, match="line 3 does not close it"):
        read_rows(broken, file_name="a.csv")
    assert len(read_rows(broken, file_name="a.csv", quote='"')) == 2


@pytest.mark.parametrize("encoding", ["utf8", "UTF8", "U8", "utf-16-le", "UTF-16"])
def test_a_byte_order_mark_is_no_part_of_a_name(encoding):
    data = "\ufeffid,x\n1,2\n".encode(encoding)
    assert list(read_rows(data, file_name="a.csv", encoding=encoding).columns) == ["id", "x"]


def test_values_of_json_that_are_no_labels():
    lines = "\n".join(f'{{"x": {i}, "y": {"NaN" if i == 2 else i % 2}}}' for i in range(10))
    uses = {"x": "number", "y": "class"}
    pool = load_pool(lines.encode(), file_name="a.jsonl", columns=uses)
    assert pool.classes == ("0", "1") and pool.truth[2] == -1
    values = ("1", "1.0", '"t"')
    lines = "\n".join(f'{{"x": {i}, "y": {values[i % 3]}}}' for i in range(12))
    assert load_pool(lines.encode(), file_name="a.jsonl", columns=uses).classes == ("1", "t")


def test_whole_numbers_beside_an_empty_cell_keep_their_digits(tmp_path):
    values = [2**53 + i % 4 for i in range(20)] + [None]
    ids = pa.array([2**60 + i for i in range(20)] + [7], pa.int64())
    cells = {"x": np.arange(21) * 1.0, "y": pa.array(values, pa.int64()), "n": pa.array(values, pa.uint64())}
    pq.write_table(pa.table(cells | {"id": ids}), tmp_path / "a.parquet")
    pool = load_pool(tmp_path / "a.parquet", columns={"x": "number", "y": "class", "id": "id", "n": "number"})
    assert pool.classes == tuple(str(2**53 + i) for i in range(4)) and pool.truth[-1] == -1
    assert pool.items.ids[0] == str(2**60) and pool.items.show(1).row["n"] == 2**53 + 1
    assert inspect_table(tmp_path / "a.parquet", columns=pool.uses).ready


def test_one_long_text_costs_its_own_length(monkeypatch):
    monkeypatch.setattr(np, "unique", _no_fixed_width(np.unique))
    rows = "".join(f"{i},{'word ' * (40_000 if i == 7 else 4)}x{i % 5},{'ab'[i % 2]}\n" for i in range(60))
    text = "id,text,label\n" + rows
    assert inspect_table(text.encode(), file_name="a.csv", columns="auto").ready
    uses = {"id": "id", "text": "category", "label": "class"}
    assert len(table(text, columns=uses)) == 60


def _no_fixed_width(unique):
    def checked(values, *args, **more):
        assert not (isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.itemsize > 100_000)
        return unique(values, *args, **more)

    return checked


# Rows of another file by the pool's map ----------------------------------------------------------------


@pytest.mark.parametrize("use", ["number", "category"])
@pytest.mark.parametrize("kind", ["bool", "binary", "decimal", "coded"])
def test_a_stream_reads_cells_as_the_pool_was_read(tmp_path, kind, use):
    n = 20
    cells = {
        "bool": pa.array([None if i == 5 else bool(i % 3) for i in range(n)]),
        "binary": pa.array([[b"blue", b"red"][i % 2] for i in range(n)], pa.binary()),
        "decimal": pa.array([i % 3 for i in range(n)], pa.decimal128(12, 2)),
        "coded": pa.array(["uvw"[i % 3] for i in range(n)]).dictionary_encode(),
    }[kind]
    if use == "number" and kind in ("binary", "coded"):
        pytest.skip("texts")
    path = tmp_path / "t.parquet"
    data = {"x": np.arange(n) * 1.0, "label": ["ab"[i % 2] for i in range(n)], "c": cells}
    pq.write_table(pa.table(data), path, row_group_size=7)
    pool = load_pool(path, columns={"c": use, "x": "number", "label": "class"})
    source = open_source(path, pool.feature_map)
    streamed = np.concatenate([rows for unit in source.units() for _, rows in source.chunks(unit, 4)])
    assert np.array_equal(streamed, pool.features)
    assert np.array_equal(pool.feature_map.transform(read_rows(path)), pool.features)


def test_columns_of_libsvm_are_known_by_their_index(tmp_path):
    def write(name, lines):
        (tmp_path / name).write_text("".join(f"{i % 2} {line}\n" for i, line in enumerate(lines)))
        return tmp_path / name

    pool = load_pool(write("a.svm", [f"0:{i} 1:2 2:3" for i in range(10)]))
    assert pool.items.show(3).row == {"x0": 3, "x1": 2, "x2": 3}
    rows = read_rows(write("b.svm", [f"1:{i + 5}" for i in range(10)]))
    assert pool.feature_map.transform(rows)[3].tolist() == [0, 8, 0], (
        "neither shifted nor refused for its zeros"
    )
    with pytest.raises(InputError, match="Row 1 has a value at the index 3; the model knows 0 to 2"):
        pool.feature_map.transform(read_rows(write("c.svm", [f"1:{i} 3:1" for i in range(10)])))
    assert load_pool(tmp_path / "b.svm").items.show(0).row == {"x1": 5}


# Pictures ----------------------------------------------------------------------------------------------


def test_a_missing_picture_is_missing(tmp_path):
    folder_of(tmp_path / "img", {"dog/1.png": "red", "dog/2.png": "blue", "bird/1.png": "green"})
    names = ["cat/1.png", "dog/1.png", "dog/2.png", "bird/2.png", "bird/1.png", "dog/1.png"]
    text = "file,label\n" + "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(names))
    (tmp_path / "t.csv").write_text(text)
    options = {"columns": {"file": "picture", "label": "class"}, "folder": str(tmp_path / "img")}
    with pytest.raises(InputError, match=r"cat/1\.png.*bird/2\.png"):
        load_pool(tmp_path / "t.csv", **options)
    pool = load_pool(tmp_path / "t.csv", missing_files="drop", features="pixels", **options)
    shown = [pool.items.show(i).image[0, 0].tolist() for i in range(len(pool))]
    assert shown == [[255, 0, 0], [0, 0, 255], [0, 128, 0], [255, 0, 0]]
    said = "2 rows left out whose file is not there: 'cat/1.png', 'bird/2.png'"
    assert any(said in note for note in pool.notes)


@pytest.mark.parametrize(
    ("names", "paths", "found"),
    [
        (["A.png", "a.png"], ["A.png", "a.png"], {"A.png": "A.png", "a.png": "a.png"}),
        (["A.png", "B.PNG"], ["a.png", "b.png"], {"A.png": "a.png", "B.PNG": "b.png"}),
        (["A.png", "a.png"], ["a.png"], {"a.png": "a.png"}),
        (["A.png", "a.PNG"], ["a.png"], {"A.png": "a.png", "a.PNG": "a.png"}),
        (["1.png"], ["cat/1.png", "dog/1.png"], {}),
        (["1.png"], ["cat/1.png", "dog/2.png"], {"1.png": "cat/1.png"}),
        (["/data/img/cat/1.png"], ["cat/1.png"], {"/data/img/cat/1.png": "cat/1.png"}),
        (["cat/1.png", "dog/1.png"], ["1.png"], {}),
        (["cat/1.png"], ["set/cat/1.png"], {"cat/1.png": "set/cat/1.png"}),
        (["cat/1.png"], ["a/cat/1.png", "b/cat/1.png"], {}),
        ([".\\cat\\1.png"], ["cat/1.png"], {".\\cat\\1.png": "cat/1.png"}),
        (["50%20off.png"], ["50%20off.png", "50 off.png"], {"50%20off.png": "50%20off.png"}),
        (["50%20off.png"], ["50 off.png"], {"50%20off.png": "50 off.png"}),
        (["e\u0301.png"], ["\u00e9.png"], {"e\u0301.png": "\u00e9.png"}),
    ],
)
def test_pictures_are_found_by_their_path(names, paths, found):
    assert found_by_path(names, paths) == found


def test_pictures_beside_a_table_are_found_in_either_form_of_their_letters(tmp_path):
    for forms in (("th\u00e9", "the\u0301"), ("the\u0301", "th\u00e9")):
        place = tmp_path / str(len(forms[0]))
        folder_of(place, {f"{forms[0]}-{i}.png": (20 * i, 0, 9) for i in range(6)})
        rows = "".join(f"{forms[1]}-{i}.png,{'ab'[i % 2]}\n" for i in range(6))
        (place / "t.csv").write_text("picture,label\n" + rows, encoding="utf-8")
        pool = load_pool(place / "t.csv", columns={"picture": "picture", "label": "class"}, features="pixels")
        assert len(pool) == 6 and pool.kind == "image"


def _datasets_layout(place, n=(("train", 8), ("test", 3))):
    for split, many in n:
        folder_of(place, {f"{split}/{i}.png": (20 * i, 0, 9 * len(split)) for i in range(many)})
        lines = "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(many))
        (place / split / "metadata.csv").write_text("file_name,label\n" + lines)
    return place


def test_every_split_of_an_image_folder(tmp_path):
    place = _datasets_layout(tmp_path)
    pool = load_pool(place)
    assert list(pool.items.ids) == [f"train/{i}.png" for i in range(8)] + [f"test/{i}.png" for i in range(3)]
    assert [pool.items.show(i).image[0, 0, 0] for i in range(11)] == [20 * i for i in (*range(8), *range(3))]
    assert [pool.classes[code] for code in pool.truth] == [*"abababab", *"aba"]
    assert "Splits one after the other: train, test (split= takes one)." in pool.notes
    assert len(load_pool(place, split="train")) == 8 and len(load_pool(place, split="test")) == 3
    with pytest.raises(InputError, match="has no split 'dev'; it has 'train', 'test'"):
        load_pool(place, split="dev")


def test_what_metadata_leaves_out_is_said(tmp_path):
    place = _datasets_layout(tmp_path, (("train", 6),))
    about = place / "train" / "metadata.csv"
    about.write_text(about.read_text().replace("2.png,a", "2.png,a,x").replace("5.png,b\n", ""))
    with pytest.raises(InputError, match="line 4 has 3 cells; the header has 2"):
        load_pool(place)
    pool = load_pool(place, ragged="drop")
    assert len(pool) == 4 and "1 ragged line left out." in pool.notes
    assert any("2 images that no metadata names left out" in note for note in pool.notes)


def test_rows_that_go_missing_are_a_mistake_and_said(tmp_path, monkeypatch):
    from workbench.pools.formats import arrow

    pq.write_table(pa.table({"x": np.arange(9.0)}), tmp_path / "a.parquet")
    assert len(read_rows(tmp_path / "a.parquet")) == 9
    whole = arrow.frame_of
    monkeypatch.setattr(arrow, "frame_of", lambda table: whole(table).iloc[1:].reset_index(drop=True))
    for read in (read_rows, load_pool):
        with pytest.raises(InputError, match="holds 9 rows, and 8 of them came"):
            read(tmp_path / "a.parquet")
    (problem,) = inspect_table(tmp_path / "a.parquet").problems
    assert "holds 9 rows, and 8 of them came" in problem.message


def a_sheet() -> bytes:
    """Nine rows, with an empty one, empty texts, a formula without a value, and a style far below."""
    book = openpyxl.Workbook()
    for row in (["x", "label"], *([i, "ab"[i % 2]] for i in range(4)), [None, None], ["", ""]):
        book.active.append(row)
    for row in (["=1+1", None], *([i, "b"] for i in range(4)), [9.5, None]):
        book.active.append(row)
    book.active["C30"].font = openpyxl.styles.Font(bold=True)
    book.save(out := io.BytesIO())
    return out.getvalue()


WITH_NINE = {
    "plain.csv": b"x,y\n\n" + b"".join(b"%d,a\n" % i for i in range(9)) + b"\n",
    "ends.csv": b"x,y\r\n" + b"\r\n\r\n".join(b"%d,a" % i for i in range(9)),
    "old.csv": b"x,y\r" + b"\r".join(b"%d,a" % i for i in range(9)),
    "quoted.csv": b'\nx,"y\n\nz"\n' + b"".join(b'%d,"a\n\n""b"""\n' % i for i in range(9)),
    "bar.csv": b"x|y\n" + b"".join(b'%d|5" pipe\n' % i for i in range(9)),
    "lines.jsonl": b"\n".join(b'{"x": %d, "y": "a\\n\\nb"}' % i for i in range(9)) + b"\n \t\n\n",
    "list.json": b"[" + b",\n\n".join(b'{"x": %d}' % i for i in range(9)) + b"]",
    "tasks.json": b"[" + b",".join(b'{"data": {"x": %d}}' % i for i in range(9)) + b"]",
    "sheet.xlsx": a_sheet(),
}


@pytest.mark.parametrize("name", WITH_NINE)
def test_rows_are_counted_apart_from_the_reader_of_the_cells(name, monkeypatch):
    """Another count than the reader's own; a reader that loses a row is caught, whatever the format."""
    from workbench.pools.tables import source_table

    found = []
    check = source_table.RawTable.accounted
    monkeypatch.setattr(source_table.RawTable, "accounted", lambda table: found.append(table) or check(table))
    assert len(read_rows(WITH_NINE[name], file_name=name)) == 9
    (table,) = found
    assert table.n_there == 9 + table.n_left
    with pytest.raises(InputError, match=r"[89] of them came"):
        check(dataclasses.replace(table, frame=table.frame.iloc[1:]))


def test_ragged_lines_are_left_out_and_counted():
    data = b"x,y\n1,2\n3\n\n4,5,6\n7,8\n"
    assert len(read_rows(data, file_name="a.csv", ragged="drop")) == 2
