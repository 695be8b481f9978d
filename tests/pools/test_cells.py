"""Cells as other programs write them: numbers, dates and what stands for nothing."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool
from workbench.pools.cells import date_format, read_dates
from workbench.pools.tables import second_readings

N = 60


def column(cells: list[str], delimiter: str = ",", **others: list[str]) -> bytes:
    """A file of 60 rows whose column v repeats these cells, beside a number and a class."""
    columns = {"v": cells, **others, "x": ["1", "2", "3"], "label": [*"abbaaba"]}
    rows = {name: [values[i % len(values)] for i in range(N)] for name, values in columns.items()}
    frame = pd.DataFrame(rows)
    return frame.to_csv(index=False, sep=delimiter).encode()


def read(data: bytes, **options):
    """The pool, and the features of v."""
    pool = load_pool(data, file_name="my.csv", columns="auto", **options)
    return pool, pool.features[:, list(pool.feature_map.columns).index("v")]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["$12,500.00", "$3.50"], [12_500, 3.5]),
        (["1.500,00 €", "3,50 €"], [1500, 3.5]),
        (["USD 20", "20 USD"], [20, 20]),
        (["12 %", "7%"], [0.12, 0.07]),
        (["12\u00a0500,5", "3"], [12_500.5, 3]),
        (["12\u202f500", "3"], [12_500, 3]),
        (["12 500 000", "3"], [12_500_000, 3]),
        (["12'500.25", "3.5"], [12_500.25, 3.5]),
        (["CHF 12’000.-", "CHF 5.-"], [12_000, 5]),
        (["(12.25)", "3.5"], [-12.25, 3.5]),
        (["($1,200.50)", "$3"], [-1200.5, 3]),
        (["\u22125.5", "5.5"], [-5.5, 5.5]),
        (["1,235", "950", "0.5"], [1235, 950, 0.5]),
        (["1", "-", "n.a.", "#N/A", "unknown", "#DIV/0!", "?", "5"], [1, 1, 1, 1, 1, 1, 1, 5]),
    ],
)
def test_numbers_are_read_as_people_write_them(cells, values):
    pool, found = read(column(cells))
    assert pool.uses["v"]["use"] == "number"
    np.testing.assert_array_equal(found[: len(values)], values)
    again = pool.feature_map.transform(pd.DataFrame({"v": cells, "x": ["1"] * len(cells)}))
    np.testing.assert_array_equal(again[:, 0], values)


@pytest.mark.parametrize(
    ("cells", "delimiter", "others", "values"),
    [
        (["950", "1.235", "12.502"], ";", {"m": ["1,5", "2,5"]}, [950, 1235, 12_502]),
        (["950", "1.235", "12.502"], ";", {"m": ["1.5", "2.25"]}, [950, 1.235, 12.502]),
        (["950", "1.235", "12.502"], ",", {}, [950, 1.235, 12.502]),
        (["950", "1,235"], ",", {"m": ["1.5", "2.25"]}, [950, 1235]),
        (["1,235", "3,5"], ";", {}, [1.235, 3.5]),
    ],
)
def test_the_decimal_sign_is_that_of_the_whole_table(cells, delimiter, others, values):
    _, found = read(column(cells, delimiter, **others))
    np.testing.assert_array_equal(found[: len(values)], values)
    asked = inspect_table(column(cells, delimiter), file_name="my.csv", columns="auto")
    if delimiter == ";" and "m" in others:  # alone nothing says what its points are
        (problem,) = [p for p in asked.problems if p.code == "decimal"]
        assert problem.severity == "choice" and [fix.label for fix in problem.fixes] == [
            "1.235 is 1235",
            "1.235 is 1.235",
        ]


def test_a_first_look_tries_no_dates_on_numbers_and_compares_the_head_of_a_column_with_the_classes(
    monkeypatch,
):
    rng, n_rows = np.random.default_rng(0), 3_000
    frame = pd.DataFrame(rng.random((n_rows, 8)).round(4)).add_prefix("v")
    frame = frame.assign(group=rng.choice(["u", "v"], n_rows), label=rng.choice(["a", "b"], n_rows))
    data, heads, read_texts = frame.to_csv(index=False).encode(), [], second_readings.read_texts

    def no_dates(*arguments, **options):
        raise AssertionError("a column of numbers was tried as one of dates")

    def noted(column, *arguments):
        heads.append(len(column))
        return read_texts(column, *arguments)

    monkeypatch.setattr(pd, "to_datetime", no_dates)
    monkeypatch.setattr(second_readings, "read_texts", noted)
    report = inspect_table(data, file_name="a.csv", columns="auto")
    assert [column.use.use for column in report.columns] == ["number"] * 8 + ["category", "class"]
    assert heads and max(heads) <= 50


def test_digits_after_a_zero_are_codes():
    few = read_uses(column(["00131", "20095", "80331"]))
    assert few["v"] == "category"
    many = b"sku,x,label\n" + b"".join(b"%06d,%d,%s\n" % (i, i % 7, b"ab"[i % 2 :][:1]) for i in range(300))
    assert read_uses(many)["sku"] != "number"
    # a number of a telephone is no text of three words, and 3E4 is no 30,000, but where other numbers stand
    phones = [f"030 {i % 40:03d} 456" for i in range(60)]
    assert read_uses(column(phones))["v"] == "leave out"
    assert read_uses(column([f"{i % 7}E{i % 4}" for i in range(60)]))["v"] == "category"
    assert read_uses(column([f"{i}.5" for i in range(59)] + ["1E5"]))["v"] == "number"
    changes = ["+1 250 000", *(f"+{i} 250" for i in range(1, 60))]
    assert read_uses(column(changes))["v"] == "number"
    days = ["00 00 0000", *(f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2024" for i in range(59))]
    assert read_uses(column(days))["v"] == "date"


def read_uses(data: bytes) -> dict[str, str]:
    report = inspect_table(data, file_name="my.csv", columns="auto")
    return {column.name: column.use.use for column in report.columns if column.use is not None}


MOMENT = pd.Timestamp("2021-03-04 15:06:07")
DAY, MINUTE, SECOND = 18_690.0, 18_690 + (15 * 60 + 6) / 1440, 18_690 + (15 * 3600 + 6 * 60 + 7) / 86_400


@pytest.mark.parametrize(
    ("form", "first"),
    [
        *((form, DAY) for form in ("%d-%m-%Y", "%d-%b-%y", "%d.%m.%y", "%m/%d/%y", "%m-%d-%Y", "%Y.%m.%d")),
        *((form, DAY) for form in ("%d. %B %Y", "%A, %d %B %Y", "%B %dth, %Y", "%d/%b/%Y", "%b %d %Y")),
        *((form, 18_687) for form in ("%b %Y", "%B %Y", "%b-%y", "%m/%Y")),
        *((form, SECOND) for form in ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y, %H:%M:%S")),
        *((form, SECOND) for form in ("%Y-%m-%d %H:%M:%S UTC", "%a, %d %b %Y %H:%M:%S GMT")),
        *((form, SECOND) for form in ("%a %b %d %H:%M:%S +0000 %Y", "%d/%m/%Y, %I:%M:%S\u202fp.m.")),
        ("%d %b %Y %H:%M", MINUTE),
        ("%Y/%m/%d %I:%M:%S %p GMT+1", SECOND - 1 / 24),
        ("%a %b %d %H:%M:%S PST %Y", SECOND + 8 / 24),
        ("%a %b %d %Y %H:%M:%S GMT+0100 (Central European Standard Time)", SECOND - 1 / 24),
        ("%d/%b/%Y:%H:%M:%S +0200", SECOND - 2 / 24),
        ("%H:%M:%S", SECOND - DAY),
        ("%I:%M %p", MINUTE - DAY),
    ],
)
def test_dates_are_read_as_other_programs_write_them(form, first):
    step = pd.Timedelta(minutes=3) if form.startswith(("%H", "%I")) else pd.Timedelta(days=17)
    cells = [(MOMENT + step * i).strftime(form) for i in range(N)]
    pool, found = read(column(cells))
    assert pool.uses["v"]["use"] == "date" and found[0] == pytest.approx(first, abs=1e-7)
    if "%d" in form:
        np.testing.assert_allclose(np.diff(found), 17)


def test_the_cells_that_tell_day_from_month_decide():
    cells = [f"{i % 12 + 1:02d}/{i % 9 + 1:02d}/2023" for i in range(100)]
    cells[50:54] = ["01/25/2023", "03/31/2023", "11/13/2023", "12/24/2023"]
    assert date_format(pd.Series(cells)) == "%m/%d/%Y"
    assert not read_dates(pd.Series(cells), "").unreadable.any()
    # they may stand where a sample does not look
    long = pd.Series((["01/02/2023", "03/04/2023"] * 4_001)[:8_001])
    long.iloc[4_001] = "01/25/2023"
    assert date_format(long) == "%m/%d/%Y"


@pytest.mark.parametrize("cells", [["2024", "2025"], ["1.5", "12.25"], ["192.168.1.1"], ["I have 2 of 12"]])
def test_what_is_no_date_has_no_format(cells):
    assert date_format(pd.Series(cells)) is None


@pytest.mark.parametrize(
    "first",
    ["5.1,3.5,1.4,Iris-setosa", "39, State-gov, 77516, <=50K", '3,"Wall St. Bears","Short sellers",7'],
)
def test_a_first_line_that_is_an_item_is_asked_about(first):
    rows = [
        first,
        *(first.replace("3", str(i % 7)).replace("5", str(i % 4)) for i in range(30)),
        first,
        first,
    ]
    data = ("\n".join(rows) + "\n").encode()
    (asked,) = [
        p for p in inspect_table(data, file_name="a.csv", columns="auto").problems if p.code == "header"
    ]
    assert asked.severity == "choice" and asked.fixes[0].options == {"header": False}
    assert inspect_table(data, file_name="a.csv", columns="auto", header=False).n_rows == len(rows)


@pytest.mark.parametrize("head", ["label,0,1,2", "name,2019,2020,2021", "a,b,c,d"])
def test_names_are_no_item(head):
    data = f"{head}\n" + "".join(f"{'ab'[i % 2]},0,{i % 2},{i}\n" for i in range(30))
    assert not [p for p in inspect_table(data.encode(), file_name="a.csv").problems if p.code == "header"]


def test_names_of_classes_are_trimmed_and_have_one_form():
    names = [" yes", "yes", "the\u0301", "th\u00e9"]
    data = "x,label\n" + "".join(f"{i},{names[i % 4]}\n" for i in range(40))
    pool = load_pool(data.encode(), file_name="a.csv", columns="auto")
    assert pool.classes == ("the\u0301", "yes") and pool.truth.tolist() == [1, 1, 0, 0] * 10
    assert any("20 cells of 'label'" in note for note in pool.notes)


def test_two_ids_of_the_same_letters_are_one_id_met_twice():
    rows = "".join(
        f"{name},{i},{'ab'[i % 2]}\n" for i, name in enumerate(["the\u0301", "th\u00e9", *"cdefgh"])
    )
    report = inspect_table(f"id,x,label\n{rows}".encode(), file_name="a.csv")
    assert any("met before" in problem.message for problem in report.problems)


def test_a_filled_column_that_is_left_out_is_told_with_a_cell_and_its_ways_back():
    data = b"weight,x,same,label\n" + b"".join(
        b"%d kg,%d,u,%s\n" % (i, i % 7, b"ab"[i % 3 > 0 :][:1]) for i in range(60)
    )
    report = inspect_table(data, file_name="a.csv", id_column=None)
    (told,) = [p for p in report.problems if p.code == "left out"]
    assert "'weight' is left out" in told.message and "'0 kg' on line 2" in told.message
    for fix in told.fixes[:1]:
        assert "weight" in load_pool(data, file_name="a.csv", **fix.options).uses
    assert any(p.code == "constant" and "'same'" in p.message for p in report.problems)


def test_a_refusal_names_whole_options_which_settle_it():
    classes = {name: [*"01"] for name in ("Survived", "Income class", "Churn", "Kind", "Spam")}
    numbers = {f"value {i}": ["1,5", "2,25", ""] for i in range(8)}
    data = column([*"abcde"], **classes, **numbers).replace(b"label", b"deck")
    with pytest.raises(InputError, match="strict=False takes every guess") as caught:
        load_pool(data, file_name="my.csv", columns="auto", strict=True)
    message = str(caught.value)
    assert "..." not in message and "'Churn' is the class" in message
    for option in re.findall(r"columns=(\{.*?\}\}) \(", message):
        assert inspect_table(data, file_name="my.csv", columns=json.loads(option)).ready


@pytest.mark.parametrize("name", ["x", "name"])
def test_a_table_without_features_names_a_column_to_learn_from(name):
    cells = [f"w{i}" for i in range(40)] if name == "name" else [0.5, 1.5] * 20
    data = f"{name},y\n" + "".join(f"{cell},{'ab'[i % 2]}\n" for i, cell in enumerate(cells))
    with pytest.raises(InputError, match=r"is left to learn from.* Say columns=") as caught:
        load_pool(data.encode(), file_name="my.csv", columns="auto")
    (option,) = re.findall(r"columns=(\{.*?\}\}) \(Learn from", str(caught.value))
    pool = load_pool(data.encode(), file_name="my.csv", columns=json.loads(option))
    assert pool.n_features
    with pytest.raises(InputError, match="text or pictures") as caught:  # a name that nobody types
        load_pool(data.replace(name, "Zz" * 150, 1).encode(), file_name="my.csv", columns="auto")
    assert str(caught.value).count("Zz") <= 100
