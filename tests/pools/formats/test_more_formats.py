"""Workbooks, JSON, lines, Hugging Face folders, and pictures that a column names."""

import base64
import contextlib
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook
from PIL import Image

from benchmarks.trials._sound import ods, xls, xlsb
from workbench.errors import InputError
from workbench.exchange import answers
from workbench.exchange.imports import import_labels
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.formats import format_of, huggingface
from workbench.pools.formats import json as json_files
from workbench.pools.formats.arrow import unpacked_size
from workbench.pools.formats.files import File
from workbench.pools.tables.options import TableOptions


def picture(seed: int, side: int = 16) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def workbook(sheets: dict[str, list[list[object]]]) -> bytes:
    book, stream = Workbook(), io.BytesIO()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


ROWS = [["id", "age", "seen", "colour", "label"]] + [
    [f"u{i}", 20 + i, date(2024, 1, 1 + i), ("red", "blue")[i % 2], ("good", "bad")[i % 2]] for i in range(8)
]


def test_a_workbook_is_a_table():
    data = workbook({"empty": [], "people": [*ROWS[:4], [], *ROWS[4:]], "more": [["x"], [1]]})
    report = inspect_table(data, file_name="a.xlsx", columns="auto")
    assert {c.name: c.use.use for c in report.columns} == {
        "id": "id",
        "age": "number",
        "seen": "date",
        "colour": "category",
        "label": "class",
    }
    pool = load_pool(data, file_name="a.xlsx", columns="auto")
    assert len(pool) == 8 and pool.classes == ("bad", "good")
    assert any("'people'" in note and "'more'" in note for note in pool.notes)
    blank = [["id", " age ", None, None, "label "], *ROWS[1:]]  # two without a name, beside names with blanks
    names = [c.name for c in inspect_table(workbook({"a": blank}), file_name="a.xlsx").columns]
    assert names == ["id", "age", "column_3", "column_4", "label"]
    with pytest.raises(InputError, match=r"no sheet 'none'; it has 'empty', 'people', 'more'"):
        load_pool(data, file_name="a.xlsx", sheet="none")
    with pytest.raises(InputError, match=r"a.xlsx is empty"):
        load_pool(workbook({"a": []}), file_name="a.xlsx")
    with pytest.raises(InputError, match=r"limit is 20"):
        load_pool(data, file_name="a.xlsx", max_cells=20)
    with pytest.raises(InputError, match=r"not a spreadsheet that can be read"):
        load_pool(b"PK\x03\x04 nothing", file_name="a.xlsx")


def test_a_workbook_that_unpacks_to_more_is_refused_before_it_is_read():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 3_000_000)
    with pytest.raises(InputError, match=r"unpacked"):
        load_pool(stream.getvalue(), file_name="a.xlsx", max_bytes=1 << 20)


def edited(data: bytes, edit: Callable[[str], str], part: str = "xl/worksheets/sheet1.xml") -> bytes:
    """A workbook with another first sheet."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            text = old.read(info)
            new.writestr(info.filename, edit(text.decode()).encode() if info.filename == part else text)
    return stream.getvalue()


LAST = '<row r="9"'


@pytest.mark.parametrize(
    ("there", "match"),
    [
        ('<row r="1000000000"', r"'1000000000'; Excel has 1,048,576 rows"),
        ('<row r="1e300"', "'1e300'"),
        ('<row r="0"', "place '0'"),
        ('<row r="12"><c r="XFE12"><v>1</v></c></row><row r="13"', "place 'XFE12'"),
        ('<row r="12"><c r="A9999999"><v>1</v></c></row><row r="13"', "place 'A9999999'"),
        ('<row><c r="XFD"/></row>' + LAST, "not a spreadsheet that can be read"),
        ('<row><c r="XFD1048576"><v>1</v></c></row><row r="5000"', "1,048,576 rows x 16,384 columns"),
        (
            '<row><c r="XFD1048576" t="inlineStr"><is><t/></is></c></row><row r="5000"',
            "1,048,576 rows x 16,384 columns",
        ),
    ],
)
def test_a_row_or_a_cell_beyond_excels_last_is_refused_before_the_reader_goes_there(
    there, match, monkeypatch
):
    def read(*arguments, **options):
        raise RuntimeError("the reader was asked")

    data = edited(workbook({"a": ROWS}), lambda text: text.replace(LAST, there))
    monkeypatch.setattr(subprocess, "run", read)
    with pytest.raises(InputError, match=match):
        load_pool(data, file_name="a.xlsx")


def test_a_workbook_may_leave_out_rows_and_references():
    far = edited(
        workbook({"a": ROWS}), lambda text: text.replace(LAST, '<row r="1048576"').replace('9"', '1048576"')
    )
    bare = edited(workbook({"a": ROWS}), lambda text: re.sub(r'(<(?:row|c)) r="\w+"', r"\1", text))
    whole = load_pool(workbook({"a": ROWS}), file_name="a.xlsx", columns="auto").fingerprints
    for data in (far, bare):
        np.testing.assert_array_equal(load_pool(data, file_name="a.xlsx", columns="auto").fingerprints, whole)


def spreadsheet(ending: str) -> bytes:
    """Cells of every kind, a row without any, and what is more than ASCII."""
    rows = [
        ["id", "x", "day", "wet", "label"],
        *([f"00{i}", i * 1.5, DAY, i % 2 > 0, "äb"[i % 2]] for i in range(8)),
    ]
    rows += [[None] * 5, ["Ł", None, None, None, "b"]]
    if ending == "ods":
        return ods(("One", rows), ("Two", rows[:3]))
    return (
        xls(rows)
        if ending == "xls"
        else xlsb([[45_352.0 if cell is DAY else cell for cell in row] for row in rows])
    )


DAY = date(2024, 3, 1)


@pytest.mark.parametrize("ending", ["xls", "xlsb", "ods"])
def test_other_spreadsheets_are_read_by_a_process_of_limited_memory(ending: str) -> None:
    data = spreadsheet(ending)
    frame = read_rows(data, file_name=f"a.{ending}")
    assert frame["id"].tolist() == [*(f"00{i}" for i in range(8)), "Ł"]
    assert frame["x"].tolist()[:8] == [i * 1.5 for i in range(8)] and frame["x"].isna().tolist()[8]
    assert frame["wet"].tolist()[:2] == [False, True] and frame["label"].tolist()[:2] == ["ä", "b"]
    assert frame["day"][0] == (45_352.0 if ending == "xlsb" else pd.Timestamp(DAY))
    pool = load_pool(data, file_name=f"a.{ending}", columns="auto")
    assert pool.classes == ("b", "ä") and list(pool.items.ids[:2]) == ["000", "001"]
    assert import_labels(data, pool, answers.format_of(f"a.{ending}")) == [
        *enumerate(["ä", "b"] * 4),
        (8, "b"),
    ]
    with pytest.raises(InputError, match=r"has no sheet 'none'; it has '(One|Sheet)'"):
        load_pool(data, file_name=f"a.{ending}", sheet="none")
    with pytest.raises(InputError, match="limit is 20"):
        load_pool(data, file_name=f"a.{ending}", max_cells=20)
    if ending == "ods":
        assert any("'One'; there are also 'Two'" in note for note in pool.notes)
        assert len(read_rows(data, file_name="a.ods", sheet="Two")) == 2


def test_a_spreadsheet_that_asks_for_more_memory_than_it_may_is_refused(monkeypatch):
    data = spreadsheet("xls")
    at = data.rindex(b"\x04\x02")
    with pytest.raises(InputError, match="asks for too much memory or time"):
        load_pool(data[: at + 4] + b"\xff\xff\xff\xff" + data[at + 8 :], file_name="a.xls")
    repeated = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell><text:p>x</text:p>'
    repeated += '</table:table-cell><table:table-cell table:number-columns-repeated="900"><text:p>x</text:p>'
    far = ods(("a", [["a", "b"], [1, 2]]), trailing=f"{repeated}</table:table-cell></table:table-row>")
    with pytest.raises(InputError, match=r"holds something\) has 1,048,572 rows x 901 columns"):
        load_pool(far, file_name="a.ods")
    run = subprocess.run
    for module, words in (
        ("resource", "where the memory of a process can be limited, not here"),
        ("python_calamine", "by the package python-calamine, which is not installed"),
    ):
        without = f"import sys; sys.modules[{module!r}] = None; from workbench.pools.formats import "
        call = [sys.executable, "-c", f"{without}sheet_process; sheet_process.main(None, 9, 9, True)"]
        answer = run(call, capture_output=True, check=True)
        monkeypatch.setattr(subprocess, "run", lambda *_, answer=answer, **options: answer)
        with pytest.raises(InputError, match=rf"is read {words}\. Save it"):
            load_pool(data, file_name="a.xls")


def test_a_workbook_of_other_scripts_may_be_as_large_as_one_in_english():
    rows = [["text", "label"], *([f"{'шум ' * 30}{i}", "да"] for i in range(400))]
    data = workbook({"отзывы": rows})
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        size = sum(member.file_size for member in packed.infolist())
    table = read_rows(data, file_name="a.xlsx", max_bytes=2 * size)
    assert table.to_numpy().tolist() == rows[1:]


def test_a_process_that_may_take_less_than_a_reader_reads_a_spreadsheet(monkeypatch):
    run, own = subprocess.run, "import resource, runpy, sys; sys.argv = sys.argv[1:]; "
    own += "resource.setrlimit(resource.RLIMIT_AS, (10**9,) * 2); "
    own += "resource.setrlimit(resource.RLIMIT_CPU, (60, 60)); "
    own += "runpy.run_path(sys.argv[0], run_name='__main__')"
    monkeypatch.setattr(
        subprocess, "run", lambda call, **options: run([call[0], "-c", own, *call[2:]], **options)
    )
    assert len(load_pool(spreadsheet("xls"), file_name="a.xls")) == 9


@pytest.mark.parametrize("write", [xls, lambda rows: ods(("a", rows))])
def test_rows_of_a_spreadsheet_have_the_numbers_that_people_see(write):
    rows = [[None] * 3] * 4 + [
        [None, "a", "b"],
        *([None, "bad" if i == 3 else f"{i / 2}", i % 3] for i in range(20)),
    ]
    report = inspect_table(write(rows), file_name=f"a.{'xls' if write is xls else 'ods'}", columns="auto")
    assert any("'bad' on row 9)" in problem.message for problem in report.problems)


def test_a_sheet_without_cells_is_there_and_empty():
    data = ods(("a", [["a", "b"], [1, 2]]), ("b", []))
    with pytest.raises(InputError, match=r"a\.ods is empty"):
        load_pool(data, file_name="a.ods", sheet="b")
    for lines, words in (([["My report"]], "no rows"), ([["My report"], ["of 2024"]], "a single row")):
        cover = ods(("Cover", lines), ("Data", [["a", "b"], [1, 2]]))
        with pytest.raises(
            InputError, match=rf"{words}.* the sheet 'Cover'; there are also 'Data'. Say sheet=.Data. to read"
        ):
            load_pool(cover, file_name="a.ods")
    with pytest.raises(InputError, match=r"is empty\..* the sheet 'Cover'; there are also 'Data'"):
        load_pool(workbook({"Cover": [["#N/A"]], "Data": ROWS}), file_name="a.xlsx")


@pytest.mark.parametrize("ending", ["xlsx", "xls", "ods"])
def test_an_error_in_a_cell_is_empty_and_told_in_every_format(ending):
    rows = [["x", "label"], *([i / 2, "ab"[i % 2]] for i in range(20)), ["#N/A", "a"], [1.5, "#N/A"]]
    rows.append(["#N/A", "#N/A"])
    data = {"xlsx": lambda rows: workbook({"a": rows}), "xls": xls, "ods": lambda rows: ods(("a", rows))}
    frame = read_rows(data[ending](rows), file_name=f"a.{ending}")
    assert frame["x"].isna().tolist() == [False] * 20 + [True, False]
    assert frame["label"].tolist()[19:] == ["b", "a", ""]
    (note,) = frame.attrs["notes"]
    assert "An error (#N/A, #DIV/0!) counts as empty: 4 cells" in note


def test_formulas_without_a_value_are_told():
    rows = [["x", "y", "label"], *([i / 2, "=A2" if i % 2 else 1, "=A2"] for i in range(20))]
    data = workbook({"a": rows})
    with pytest.raises(InputError, match=r"'label' is empty on every row\. 20 formulas of 'label' without"):
        load_pool(data, file_name="a.xlsx", target="label")
    notes = " ".join(load_pool(data, file_name="a.xlsx").notes)
    assert "10 formulas of 'y' without a value count as empty" in notes
    assert "20 formulas of 'label' without a value count as empty" in notes
    text = '<table:table-cell office:value-type="string"><text:p>=A2</text:p></table:table-cell>'
    bare = '<table:table-cell table:formula="of:"/>'
    data = edited(ods(("a", rows)), lambda content: content.replace(text, bare), "content.xml")
    assert any("20 formulas of 'label'" in note for note in load_pool(data, file_name="a.ods").notes)


def test_numbers_that_lose_digits_in_a_sheet_are_told():
    rows = [["tweet_id", "n", "label"], *([10**18 + 10**6 * i, 10**14 + i, "ab"[i % 2]] for i in range(20))]
    notes = " ".join(load_pool(workbook({"a": rows}), file_name="a.xltx", columns="auto").notes)
    assert "'tweet_id' has numbers of which a sheet keeps 15 digits" in notes and "'n' has" not in notes


def test_a_spreadsheet_is_what_its_bytes_say():
    rows = [["id", "x", "label"], *([f"u{i}", i / 2, "ab"[i % 2]] for i in range(20))]
    lines = "\n".join("\t".join(map(str, row)) for row in rows)
    files = {
        "a.xlsx": [xls(rows), ods(("a", rows)), xlsb(rows)],
        "a.ods": [workbook({"a": rows})],
        "a.xls": [workbook({"a": rows}), lines.encode(), lines.encode("utf-16"), gzip.compress(xls(rows))],
    }
    for name, contents in files.items():
        for data in contents:
            frame = read_rows(data, file_name=name)
            assert frame["id"].tolist() == [f"u{i}" for i in range(20)]
            assert frame["x"].astype(float).tolist() == [i / 2 for i in range(20)]
    for page in (b"<html><table><tr><td>x\t1", b'\xef\xbb\xbf\n<?xml version="1.0"?><Workbook>'):
        with pytest.raises(InputError, match="is a web page or XML under a spreadsheet's name"):
            load_pool(page, file_name="a.xls")


def test_an_excel_workbook_is_read_where_no_process_can_be_limited(monkeypatch):
    run, own = subprocess.run, "import sys, runpy; sys.modules['resource'] = None; sys.argv = sys.argv[1:]; "
    own += "runpy.run_path(sys.argv[0], run_name='__main__')"
    monkeypatch.setattr(
        subprocess, "run", lambda call, **options: run([call[0], "-c", own, *call[2:]], **options)
    )
    assert len(load_pool(workbook({"a": ROWS}), file_name="a.xlsx", columns="auto")) == 8
    with pytest.raises(InputError, match="where the memory of a process can be limited, not here"):
        load_pool(spreadsheet("ods"), file_name="a.ods")


def test_cells_of_a_workbook_are_read_as_excel_shows_them():
    values = [datetime(2024, 1, 2, 3, 4, 5), date(2024, 1, 2), time(10, 30), timedelta(days=1, seconds=7384)]
    values += [True, 1, 0.1, 12_345_678_901, " a ", "x_x000D_\ny", "", None, "b"]
    frame = read_rows(workbook({"a": [["n", "cell"], *enumerate(values)]}), file_name="a.xlsx")
    texts = ["2024-01-02T03:04:05", "2024-01-02T00:00:00", "10:30:00", "1 day, 2:03:04", "True", "1", "0.1"]
    assert frame["cell"].tolist() == [*texts, "12345678901", " a ", "x\r\ny", "", "", "b"]


def test_rows_of_a_workbook_that_the_reader_loses_are_missed():
    moved = edited(workbook({"a": ROWS}), lambda text: text.replace(LAST, '<row r="2"').replace('9"', '2"'))
    with pytest.raises(InputError, match="of them came"):
        load_pool(moved, file_name="a.xlsx")


def test_a_json_document_of_too_many_lists_is_refused_before_it_is_read(monkeypatch):
    """Twelve million lists in 46 MB took 1.3 GB."""
    monkeypatch.setattr(json_files, "MAX_PARTS", 100)
    document = b"[" + b'{"a": 1}, ' * 98 + b'{"a": 2}]'
    assert len(read_rows(document, file_name="t.json")) == 99
    monkeypatch.setattr(json_files, "parse_json", None)
    with pytest.raises(InputError, match=r"about 101 lists and objects; .* 100\. Use JSON lines"):
        read_rows(b"[" + document[1:-1] + b", [1]]", file_name="t.json")


def test_json_lines_and_lists_of_objects_are_tables():
    rows = [
        {"id": i, "size": i / 2, "kind": "ab"[i % 2], "tags": ["x"], "label": "cd"[i % 2] if i < 6 else None}
        for i in range(12)
    ]
    lines = "\n".join(map(json.dumps, rows)).encode()
    pools = [load_pool(lines, file_name="a.jsonl", columns="auto")]
    pools += [load_pool(json.dumps(rows).encode(), file_name="a.json", columns="auto")]
    for pool in pools:
        assert pool.feature_map.columns == ("size", "kind=a", "kind=b")
        assert pool.classes == ("c", "d") and (pool.truth >= 0).sum() == 6
        assert any("'tags'" in note for note in pool.notes)
    np.testing.assert_array_equal(pools[0].fingerprints, pools[1].fingerprints)


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "line 2"),
        ("a.jsonl", b"[1]\n", r"line 1 is \[1\], not an object"),
        ("a.jsonl", b'{"a": [1]}\n', "lists and objects only"),
        ("a.jsonl", b"", "empty"),
        ("a.json", b"[1, 2]", "no list of objects"),
        ("a.json", b'{"a": 1}', "one JSON object"),
        ("a.json", b'{"categories": [], "annotations": []}', "COCO annotations, not items"),
        ("a.json", b"[" * 100_000, "nested too deeply|not JSON"),
        ("a.xls", b"x", "a.xls is not a spreadsheet that can be read. Save it as .xlsx"),
        ("a.txt", b"\n \n", "empty"),
        ("a.txt", b"\xff\xfe\x00", "not UTF-8|UTF-16|zero bytes"),
    ],
)
def test_bad_files_are_one_sentence(name, data, match):
    with pytest.raises(InputError, match=match):
        load_pool(data, file_name=name)


def test_label_studio_tasks_bring_their_choices():
    def task(i):
        choice = {"type": "choices", "value": {"choices": ["cat" if i % 2 else "dog"]}}
        made = [{"result": [choice]}] if i < 6 else [{"result": [choice], "was_cancelled": True}]
        return {"id": i + 10, "data": {"text": f"number {i} about animals"}, "annotations": made}

    data = json.dumps([task(i) for i in range(12)]).encode()
    pool = load_pool(data, file_name="tasks.json")
    assert pool.kind == "text" and pool.classes == ("cat", "dog")
    assert (pool.truth >= 0).sum() == 6 and list(pool.items.ids[:2]) == ["10", "11"]


def test_a_text_file_is_lines_unless_it_is_a_table():
    lines = b"Hello, how are you today\nI am fine, thanks\n\nWhat, a, long day\n" * 3
    pool = load_pool(lines, file_name="a.txt")
    assert pool.kind == "text" and len(pool) == 9
    assert load_pool(b"a,b\n1,2\n3,4\n", file_name="a.txt").feature_map.columns == ("a", "b")
    assert (
        load_pool(b"text\tn\none two\t2\nthree two\t4\n", file_name="a.txt", columns="auto").kind == "table"
    )
    assert len(load_pool(lines, file_name="a.txt", lines=True)) == 9
    named = load_pool(
        b"question\nwho is it\nwhat is it\nwho\nwhat was\n", file_name="a.txt", text_column="question"
    )
    assert len(named) == 4


# --- pictures -------------------------------------------------------------------------------------


def photos(tmp_path, n=6):
    folder = tmp_path / "photos"
    (folder / "in").mkdir(parents=True)
    for i in range(n):
        (folder / "in" / f"p{i}.png").write_bytes(picture(i))
    return folder


def test_a_column_of_files_makes_a_pool_of_pictures(tmp_path):
    folder = photos(tmp_path)
    table = pd.DataFrame({"file": [f"p{i}.png" for i in range(7)], "age": range(7), "label": list("abababa")})
    data = table.to_csv(index=False).encode()
    report = inspect_table(data, file_name="t.csv", columns="auto", folder=str(folder))
    problem = next(p for p in report.problems if p.severity == "choice")
    assert problem.code == "files" and "'p6.png'" in problem.message and "line 8" in problem.message
    options = {"columns": report.columns_option, "folder": str(folder), **problem.fixes[0].options}
    pool = load_pool(data, file_name="t.csv", **options)
    assert pool.kind == "image" and len(pool) == 6 and pool.classes == ("a", "b")
    assert list(pool.items.ids) == [f"p{i}.png" for i in range(6)]
    shown = pool.items.show(2)
    assert shown.image.shape == (16, 16, 3) and shown.row == {"age": "2"}
    assert any("p6.png" in note for note in pool.notes)
    # beside the table itself, by their paths, and never outside its folder
    place = folder / "t.csv"
    table = pd.DataFrame({"file": ["in/p0.png", "in/p1.png", "../../secret.png"], "label": list("abb")})
    table.to_csv(place, index=False)
    (tmp_path.parent / "secret.png").write_bytes(picture(0))
    with pytest.raises(InputError, match=r"secret.png' is not there|is not there: '../../secret.png'"):
        load_pool(str(place), columns="auto")
    assert len(load_pool(str(place), columns="auto", missing_files="drop")) == 2
    with pytest.raises(InputError, match=r"names files .* not here. Give their folder"):
        load_pool(data, file_name="t.csv", columns="auto")
    (folder / "in" / "p1.png").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"p1.png"):
        load_pool(data, file_name="t.csv", corrupt="error", **options)
    pool = load_pool(data, file_name="t.csv", **options)
    assert len(pool) == 5 and any("read is left out: 'p1.png'" in note for note in pool.notes)


def test_pictures_in_the_table_itself():
    cells = [f"data:image/png;base64,{base64.b64encode(picture(i)).decode()}" for i in range(4)]
    data = json.dumps([{"image": cell, "label": "xy"[i % 2]} for i, cell in enumerate(cells)]).encode()
    pool = load_pool(data, file_name="a.json", columns="auto")
    assert pool.kind == "image" and list(pool.items.ids) == ["0", "1", "2", "3"]


class Handler(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        known = {f"/{i}.png": picture(i) for i in range(3)}
        if self.path == "/moved.png":
            self.send_response(302)
            self.send_header("Location", "/2.png")
            self.end_headers()
            return
        body = known.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def web(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_MEDIA", str(tmp_path / "media"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.asked = []
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_web_addresses_are_fetched_only_with_a_yes(web, monkeypatch):
    names = [f"{web}/{name}.png" for name in ("0", "1", "moved", "none")]
    data = pd.DataFrame({"photo": names, "label": list("abab")}).to_csv(index=False).encode()
    report = inspect_table(data, file_name="t.csv", columns="auto")
    problem = next(p for p in report.problems if p.severity == "choice")
    assert problem.code == "fetch" and Handler.asked == []
    with pytest.raises(InputError, match=r"is no public address"):
        load_pool(data, file_name="t.csv", columns="auto", fetch=True)
    assert Handler.asked == []
    monkeypatch.setenv("WORKBENCH_FETCH_LOCAL", "1")
    with pytest.raises(InputError, match=r"none.png'.*404"):
        load_pool(data, file_name="t.csv", columns="auto", fetch=True)
    pool = load_pool(data, file_name="t.csv", columns="auto", fetch=True, missing_files="drop")
    assert len(pool) == 3
    Handler.asked.clear()
    load_pool(data, file_name="t.csv", columns="auto", fetch=True, missing_files="drop")
    assert Handler.asked == ["/none.png"]  # the others lie on disk


# --- Hugging Face ---------------------------------------------------------------------------------


def described(table: pa.Table, features: dict) -> pa.Table:
    return table.replace_schema_metadata(
        {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    )


FEATURES = {
    "image": {"_type": "Image"},
    "label": {"names": ["cat", "dog"], "_type": "ClassLabel"},
    "n": {"dtype": "int64", "_type": "Value"},
}


def images_table(n=6, first=0):
    cells = [{"bytes": picture(first + i), "path": f"p{first + i}.png"} for i in range(n)]
    return described(
        pa.table({"image": cells, "label": [i % 2 for i in range(n - 1)] + [-1], "n": list(range(n))}),
        FEATURES,
    )


def save_to_disk(folder, table):
    folder.mkdir(parents=True)
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    (folder / "state.json").write_text("{}")
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))


def test_hugging_face_folders_of_pictures(tmp_path):
    arrow = tmp_path / "arrow"
    save_to_disk(arrow / "train", images_table())
    save_to_disk(arrow / "test", images_table(4, 10))
    (arrow / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    hub = tmp_path / "hub"
    (hub / "data").mkdir(parents=True)
    pq.write_table(images_table(), hub / "data" / "train-00000-of-00002.parquet")
    pq.write_table(images_table(4, 10), hub / "data" / "test-00000-of-00002.parquet")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in hub.rglob("*.parquet"):
            archive.write(path, f"set/{path.relative_to(hub).as_posix()}")
    (tmp_path / "set.zip").write_bytes(stream.getvalue())
    found = []
    for place in (arrow, hub, tmp_path / "set.zip"):
        assert format_of(File.of(place)).name == "huggingface"
        pool = load_pool(str(place))
        assert pool.kind == "image" and len(pool) == 10 and pool.classes == ("cat", "dog")
        assert (pool.truth == -1).sum() == 2
        assert pool.items.show(0).row == {"n": 0}
        np.testing.assert_array_equal(
            pool.items.show(6).image, np.asarray(Image.open(io.BytesIO(picture(10))))
        )
        found.append(pool.fingerprints)
        assert len(load_pool(str(place), split="test")) == 4
    assert all((other == found[0]).all() for other in found)
    with pytest.raises(InputError, match=r"no split 'dev'; it has 'train', 'test'"):
        load_pool(str(hub), split="dev")


def test_hugging_face_texts_and_metadata_beside_images(tmp_path):
    folder = tmp_path / "texts"
    (folder / "data").mkdir(parents=True)
    names = {"text": {"dtype": "string"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
    texts = [f"the text number {i} about it" for i in range(8)]
    table = described(pa.table({"text": texts, "label": [0, 1] * 4}), names)
    pq.write_table(table, folder / "data" / "train-00000-of-00001.parquet")
    pool = load_pool(str(folder))
    assert pool.kind == "text" and pool.classes == ("no", "yes")
    images = photos(tmp_path)
    (images / "in" / "metadata.csv").write_text("file_name,label\np0.png,a\np1.png,b\np2.png,a\ngone.png,a\n")
    with pytest.raises(InputError, match=r"is not there: 'gone.png'; the first on line 5"):
        load_pool(str(images))
    pool = load_pool(str(images), missing_files="drop")
    assert pool.kind == "image" and len(pool) == 3 and pool.classes == ("a", "b")
    (images / "in" / "metadata.csv").write_text("file_name,label\np0.png,a\n,\np1.png,b\np2.png,a\n")
    pool = load_pool(str(images))
    assert len(pool) == 3 and any("1 row without a cell" in note for note in pool.notes)


def test_bad_hugging_face_folders(tmp_path):
    (tmp_path / "dataset_info.json").write_text("{}")
    with pytest.raises(InputError, match=r"no .parquet and no .arrow"):
        load_pool(str(tmp_path))
    (tmp_path / "data-0.arrow").write_bytes(b"ARROW1 nothing of the sort")
    with pytest.raises(InputError, match=r"not a Hugging Face dataset that can be read"):
        load_pool(str(tmp_path))
    save_to_disk(tmp_path / "big", images_table())
    with pytest.raises(InputError, match=r"limit is"):
        load_pool(str(tmp_path / "big"), max_bytes=1000)


def arrow(table, form, codec):
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    made = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with made(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("form", ["stream", "file"])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_an_arrow_file_says_how_large_it_is_before_it_is_unpacked(form, codec, tmp_path, monkeypatch):
    n = 50_000
    whole = pa.table(
        {
            "a": np.zeros(n),
            "b": pa.array(["x" * 50] * n),
            "c": pa.array(["y"] * n).dictionary_encode(),
            "label": [i % 2 for i in range(n)],
        }
    )
    data = arrow(whole, form, codec)
    stream = data[8:] if form == "file" else data
    assert whole.nbytes <= unpacked_size(stream) < 1.1 * whole.nbytes
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "data-0.arrow").write_bytes(data)
    file, options = File.of(folder), TableOptions(max_bytes=len(data) + 1000)
    if codec is not None:
        opened = []
        monkeypatch.setattr(pa.ipc, "open_stream", lambda *given: opened.append(given))
        with pytest.raises(InputError, match=r"unpacked.*limit is"):
            huggingface.read(file, options)
        assert not opened, "it was unpacked before it was measured"
        monkeypatch.undo()
    frame = huggingface.read(file, TableOptions()).frame
    assert len(frame) == n and list(frame.columns) == ["a", "b", "c", "label"] and set(frame["c"]) == {"y"}


def test_a_damaged_arrow_file_is_one_sentence(tmp_path):
    data = arrow(pa.table({"a": np.arange(500.0), "b": ["t"] * 500}), "stream", "zstd")
    (tmp_path / "set").mkdir()
    rng = np.random.default_rng(0)
    for _ in range(60):
        cut = bytearray(data)
        for at in rng.integers(0, len(cut), size=4):
            cut[at] = int(rng.integers(256))
        (tmp_path / "set" / "data-0.arrow").write_bytes(bytes(cut))
        with contextlib.suppress(InputError):
            huggingface.read(File.of(tmp_path / "set"), TableOptions())
