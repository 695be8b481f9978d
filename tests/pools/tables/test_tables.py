import gzip
import io

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.pools import feature_map_from_json, inspect_table, load_pool, read_rows
from workbench.pools.cells import read_numbers

CLEAN = b"id,size,colour,kind\na7,1.5,red,cat\nb2,2.5,blue,dog\nc1,3.5,red,dog\nd9,4.5,blue,cat\n"


def load(data: bytes, **options):
    return load_pool(data, file_name="my.csv", **options)


def refused(data: bytes, **options) -> str:
    """The message of the strict refusal, which the report must hold too."""
    with pytest.raises(InputError) as caught:
        load(data, strict=True, **options)
    report = inspect_table(data, file_name="my.csv", **options)
    messages = [problem.message for problem in report.problems]
    assert any(str(caught.value).startswith(message) for message in messages)
    return str(caught.value)


def test_a_table_with_a_target():
    pool = load(CLEAN, target="kind", text="one-hot")
    assert pool.name == "my" and pool.classes == ("cat", "dog")
    np.testing.assert_array_equal(pool.truth, [0, 1, 1, 0])
    assert list(pool.items.ids) == ["a7", "b2", "c1", "d9"]
    assert pool.feature_map.columns == ("size", "colour=blue", "colour=red")
    np.testing.assert_array_equal(pool.features, [[1.5, 0, 1], [2.5, 1, 0], [3.5, 0, 1], [4.5, 1, 0]])
    assert "kind" not in pool.items.show(0).row, "the answer is not shown to who is asked"
    assert pool.items.show(1).row == {"id": "b2", "size": "2.5", "colour": "blue"}


def test_a_table_without_a_target_is_for_people():
    pool = load(CLEAN, text="drop", exclude="kind", classes=["yes", "no"])
    assert pool.truth is None and pool.classes == ("yes", "no") and not pool.has_truth
    assert pool.n_features == 1 and "kind" in pool.items.show(0).row


def test_report_tells_columns_uses_and_ways_out():
    report = inspect_table(CLEAN, file_name="my.csv")
    assert [(c.name, c.use.use) for c in report.columns] == [
        ("id", "id"),
        ("size", "number"),
        ("colour", "category"),
        ("kind", "category"),
    ]
    assert report.n_rows == 4 and report.preview[0]["colour"] == "red"
    (problem,) = [p for p in report.problems if p.severity == "guess"]
    assert problem.column == "kind" and problem.code == "class?"
    for fix in problem.fixes:
        assert load(CLEAN, strict=True, **fix.options).classes in ((), ("cat", "dog"))


CASES = {
    "ragged": (b"a,b\n1,2\n1,2,3\n4\n5,6\n7,8\n", {}, ["line 3 has 3 cells", "header has 2", "line 4"]),
    "ragged after a quoted newline": (b'a,b\n"1",2\n"\n3",4\n5\n7,8\n', {}, ["line 5 has 1 cell"]),
    "empty": (b"", {}, ["empty"]),
    "blank lines only": (b"\n\n \n", {}, ["empty"]),
    "header only": (b"a,b\n", {}, ["header but no rows"]),
    "one row": (b"a,b\n1,2\n", {}, ["single row", "at least 2"]),
    "binary": (b"a,b\n\x00\x01,2\n1,2\n", {}, ["not a text file"]),
    "two columns of one name": (b"a,a\n1,2\n3,4\n", {}, ["more than one column called 'a'"]),
    "one class": (b"a,y\n1,k\n2,k\n3,k\n", {"target": "y"}, ["one class only ('k')"]),
    "empty target": (b"a,y\n1,\n2,\n3,\n", {"target": "y"}, ["empty on every row"]),
    "no such target": (b"a,y\n1,1\n2,2\n3,1\n", {"target": "z"}, ["no column 'z'", "'a', 'y'"]),
    "as many classes as items": (b"a,y\n1,p\n2,q\n3,r\n", {"target": "y"}, ["3 classes for 3 items"]),
    "more classes given than items": (
        b"a\n1\n2\n3\n",
        {"classes": list("pqrs")},
        ["4 classes for 3 items"],
    ),
    "an unknown class": (
        b"a,y\n1,p\n2,q\n3,r\n4,p\n",
        {"target": "y", "classes": ["p", "q"]},
        ["line 4", "'r'"],
    ),
    "empty cell": (b"a,b\n1,2\n,3\n4,5\n", {}, ["Empty cells of 'a' (1, first on line 3)", "median"]),
    "nan": (b"a,b\n1,2\nNaN,3\n4,5\n", {}, ["'a'", "line 3"]),
    "infinite": (b"a,b\n1,2\n-inf,3\n" + b"4,5\n" * 9, {}, ["'a'", "1 of them infinite", "line 3"]),
    "text among numbers": (b"a,b\n" + b"1,2\n" * 9 + b"soon,3\n4,5\n", {}, ["'soon' on line 11", "as empty"]),
    "text": (b"a,b\n" + b"".join(b"%d kg,%d\n" % (i, i % 3) for i in range(9)), {}, ["'0 kg' on line 2"]),
    "too many texts for one-hot": (
        b"b,a\n" + b"".join(b"%d,t%d\n" % (i % 7, i) for i in range(150)),
        {"text": "one-hot"},
        ["150 different values"],
    ),
    "duplicate ids": (
        b"id,a\n" + b"".join(b"%c,%d\n" % (i, i) for i in b"abcdefghija"),
        {},
        ["'a' in column 'id'", "line 12", 'duplicate_ids="first"'],
    ),
    "an item without an id": (b"id,a\nx,1\n,2\nz,3\n", {"id_column": "id"}, ["no id on line 3"]),
    "numbers as header": (b"1,2\n3,4\n5,6\n", {}, ["header=False"]),
    "decimal comma": (b"a;b\n1,500;2\n2,500;3\n", {}, ["'1,500' on line 2", "decimal comma"]),
    "nothing to learn from": (b"a,y\nu,p\nv,q\nw,p\n", {"target": "y", "text": "drop"}, ["No column"]),
    "nothing left": (b"a,b\n1,\n,2\n", {"missing": "drop", "header": True}, ["leaves 0 items of 2"]),
    "exclude": (b"a,b\n1,2\n3,4\n", {"exclude": "c"}, ["no column 'c'"]),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_says_where_and_what_to_do(case):
    data, options, words = CASES[case]
    message = refused(data, **options)
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    "case", [case for case, (data, options, _) in CASES.items() if case not in ("nothing left",)]
)
def test_every_offered_way_out_leads_somewhere(case):
    """Following a fix never brings the same problem back."""
    data, options, _ = CASES[case]
    for problem in inspect_table(data, file_name="my.csv", **options).problems:
        for fix in problem.fixes:
            after = inspect_table(data, file_name="my.csv", **{**options, **fix.options})
            assert all(
                (other.code, other.column) != (problem.code, problem.column) or other.severity == "note"
                for other in after.problems
            )


def test_ten_thousand_classes():
    data = b"a,y\n" + b"".join(b"%d,k%d\n" % (i, i % 10_000) for i in range(20_000))
    message = refused(data, target="y")
    assert "10,000 different values" in message and "Name another column" in message


def test_drop_impute_and_missing_texts_do_what_they_say():
    data = b"a,b,c\n1,soon,u\n2,3,v\n,4,w\ninf,5,\n"
    options = {"columns": {"b": "number"}, "text": "one-hot"}
    filled = load(data, missing="impute", **options)
    np.testing.assert_array_equal(filled.features[:, 0], [1, 2, 1.5, 1.5])
    np.testing.assert_array_equal(filled.features[:, 1], [4, 3, 4, 5])
    assert filled.feature_map.columns[2:] == ("c=u", "c=v", "c=w", "c=(empty)")
    np.testing.assert_array_equal(filled.features[3, 2:], [0, 0, 0, 1])
    options = {"columns": {"b": {"use": "number", "empty": "drop"}}, "text": "one-hot"}
    dropped = load(data + b"6,7,u\n", missing="drop", **options)
    assert list(dropped.items.ids) == ["1", "4"], "row numbers are those of the file"
    np.testing.assert_array_equal(dropped.features, [[2, 3, 0, 1], [6, 7, 1, 0]])
    assert any("3 rows left out" in note for note in dropped.notes)


def test_ragged_duplicate_and_constant_options():
    assert len(load(b"a,b\n1,2\n1,2,3\n4\n5,6\n", ragged="drop")) == 2
    once = load(b"id,a\nx,1\ny,2\nx,3\n", duplicate_ids="first", id_column="id")
    assert list(once.items.ids) == ["x", "y"]
    data = b"a,b\n1,7\n2,7\n3,7\n"
    kept = load(data, columns={"b": "number"})
    assert kept.n_features == 2 and any("tells nothing" in note for note in kept.notes)
    assert load(data).feature_map.columns == ("a",)


def test_names_of_classes_are_kept_to_the_letter():
    data = b'a,y\n1,<script>alert(1)</script>\n2,007\n3,"**bold**, =1+1"\n4,NA\n5,007\n'
    pool = load(data, target="y")
    assert set(pool.classes) == {"<script>alert(1)</script>", "007", "**bold**, =1+1", "NA"}
    assert pool.classes[pool.truth[1]] == "007"
    numbers = load(b"a,y\n1,10\n2,9\n3,10\n4,9\n", target="y")
    assert numbers.classes == ("9", "10")


def test_unlabelled_rows_and_similar_classes_are_noted():
    pool = load(b"a,y\n1,cat\n2,\n3,Cat \n4,cat\n", target="y")
    np.testing.assert_array_equal(
        pool.truth, [pool.classes.index("cat"), -1, pool.classes.index("Cat"), 0 + 1]
    )
    assert any("1 item without a class" in note for note in pool.notes)
    assert any("differ only in spaces" in note for note in pool.notes)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_bom_and_line_ends(delimiter):
    text = "a,b,y\r\n1,2,p\r\n3,4,q\r\n5,6,q\r\n".replace(",", delimiter)
    pool = load(text.encode("utf-8-sig"), target="y")
    np.testing.assert_array_equal(pool.features, [[1, 2], [3, 4], [5, 6]])


def test_encodings_and_decimal_commas():
    pool = load(
        "größe;y\n1.234,5;ä\n2,5;ö\n3;ö\n".encode("cp1252"), encoding="cp1252", decimal=",", target="y"
    )
    np.testing.assert_array_equal(pool.features[:, 0], [1234.5, 2.5, 3])
    assert pool.classes == ("ä", "ö") and pool.feature_map.columns == ("größe",)
    wide = load("a,y\n1,p\n2,q\n3,q\n".encode("utf-16"), encoding="utf-16", target="y")
    assert len(wide) == 3
    assert "no encoding called 'klingon'" in refused(CLEAN, encoding="klingon")


def test_a_text_is_the_nearest_number() -> None:
    exact = np.random.default_rng(0).normal(size=500)
    for sign in ("", "+"):  # one that Arrow does not take keeps the others exact
        texts = pd.Series([*map(repr, exact.tolist()), f"{sign}1", "soon", "1e5"])
        found = read_numbers(texts)
        np.testing.assert_array_equal(found.values[:500], exact)
        assert found.values[500] == 1 and found.unreadable.tolist()[501] and found.values[502] == 1e5


def test_parquet_gives_the_very_same_pool(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    frame["t"] = rng.choice(["u", "v"], 50)
    frame["y"] = rng.integers(0, 3, 50)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    one = load_pool(str(tmp_path / "t.parquet"), target="y", text="one-hot")
    two = load_pool(tmp_path / "t.csv", target="y", text="one-hot")
    np.testing.assert_array_equal(one.features, two.features)
    assert one.fingerprint == two.fingerprint and one.classes == two.classes
    assert one.items.show(0).row["a"] == frame["a"][0]
    half = tmp_path / "parts"
    half.mkdir()
    frame.iloc[:20].to_parquet(half / "0.parquet")
    frame.iloc[20:].to_parquet(half / "1.parquet")
    assert load_pool(half, target="y", text="one-hot").fingerprint == one.fingerprint
    frame.drop(columns="a").to_parquet(half / "2.parquet")
    with pytest.raises(InputError, match="same columns"):
        load_pool(half, target="y")


def test_parquet_types_that_are_no_plain_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(
        {
            "flag": [True, None, False],
            "when": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]),
            "kind": pd.Categorical(["u", "v", "u"]),
            "whole": pd.array([1, 2, None], dtype="Int64"),
        }
    ).to_parquet(path)
    pool = load_pool(path)
    assert [c.use.use for c in inspect_table(path).columns] == ["number", "date", "category", "number"]
    np.testing.assert_array_equal(pool.features[:, 0], [1, 0.5, 0])
    assert pool.feature_map.columns[-3:] == ("kind=u", "kind=v", "whole")
    assert pool.features[2, -1] == 1.5
    assert pool.items.show(1).row["flag"] is None and pool.items.show(2).row["whole"] is None


def test_an_index_saved_with_a_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"id": ["p", "q", "r"], "a": [1.0, 2.0, 3.0]})
    frame.set_index("id").to_parquet(path)
    assert list(load_pool(path).items.ids) == ["p", "q", "r"]
    frame.drop(columns="id").iloc[[2, 0, 1]].to_parquet(path)
    assert load_pool(path).feature_map.columns == ("a",)


def test_parquet_bad_input(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="not a Parquet file"):
        load_pool(path)
    pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}).to_parquet(path)
    assert any("lists" in note and "'a'" in note for note in load_pool(path).notes)
    pd.DataFrame({"a": [1.0, None, 3.0], "b": [1, 2, 3]}).to_parquet(path)
    with pytest.raises(InputError, match=r"Empty cells of 'a' \(1, first on row 2\)"):
        load_pool(path, strict=True)


def test_sizes_are_checked_before_reading(tmp_path):
    path = tmp_path / "big.csv"
    with path.open("wb") as file:
        file.truncate(5_000_000_000)  # sparse: it would not fit if it were read
    with pytest.raises(InputError, match="limit is 400 MB"):
        load_pool(path)
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000)
    with pytest.raises(InputError, match=r"unpacked.*limit is 1 MB"):
        load_pool(bomb, file_name="bomb.csv.gz", max_bytes=1 << 20)
    with pytest.raises(InputError, match="12 cells; the limit is 11"):
        load(b"a,b\n" + b"1,2\n" * 6, max_cells=11)
    assert len(load_pool(gzip.compress(CLEAN), file_name="c.csv.gz", target="kind", text="drop")) == 4


def test_options_are_checked():
    with pytest.raises(InputError, match="no option 'tarjet'"):
        load(CLEAN, tarjet="kind")
    with pytest.raises(InputError, match="missing='dorp' is not one of"):
        load(CLEAN, missing="dorp")


def test_feature_map_replays_on_new_rows_and_through_json():
    pool = load(b"a,b,c\n1,?,u\n2,3,v\n,4,w\n9,5,\n", text="one-hot")
    again = feature_map_from_json(pool.feature_map.to_json())
    rows = read_rows(b"c,b,a,extra\nw,4,2,!\n,?,9,!\n", file_name="new.csv")
    expected = pool.feature_map.transform(rows)
    np.testing.assert_array_equal(again.transform(rows), expected)
    np.testing.assert_array_equal(expected[0], pool.features[2])
    np.testing.assert_array_equal(again.transform([{"a": 2, "b": 3, "c": "v"}]), pool.features[1:2])
    with pytest.raises(InputError, match="lack the column 'a'"):
        again.transform(rows.drop(columns="a"))
    with pytest.raises(InputError, match=r"Row 1, column 'c' holds 'x', which the pool never held"):
        again.transform([{"a": 2, "b": 3, "c": "x"}])
    with pytest.raises(InputError, match="reads 3 columns"):
        pool.feature_map.transform(np.zeros((2, 4)))
    with pytest.raises(InputError, match="damaged"):
        feature_map_from_json({"kind": "table", "decimal": "."})
    with pytest.raises(InputError, match="not a feature map"):
        feature_map_from_json({"kind": "pickle"})


def test_the_pool_features_are_what_the_map_gives():
    pool = load(b"a,b,c\n1,?,u\n2,3,v\n,4,w\n9,5,\n", text="one-hot")
    frame = pd.DataFrame([pool.items.show(i).row for i in range(4)])
    np.testing.assert_array_equal(pool.feature_map.transform(frame), pool.features)


def test_a_large_table_keeps_line_numbers(tmp_path):
    n = 70_000
    body = io.BytesIO()
    body.write(b"a,b\n")
    for i in range(n):
        body.write(b"%d,%d\n" % (i, i % 7) if i != 65_432 else b"\n%d,x\n" % i)
    assert "on line 65435" in refused(body.getvalue())


def test_commas_that_a_spreadsheet_leaves_are_no_columns():
    """Each took a millisecond to look at: five thousand of them seven seconds."""
    rows = "".join(f"{i},{i % 3},{'xy'[i % 2]}{',' * 5000}\n" for i in range(12))
    report = inspect_table(f"a,b,y{',' * 5000}\n{rows}".encode(), file_name="t.csv", target="y")
    assert [column.name for column in report.columns] == ["a", "b", "y"] and report.ready
    assert "5,000 columns without a name or a cell left out." in [p.message for p in report.problems]
    pool = load_pool(b"a,,y\n1,,x\n2,7,y\n3,8,x\n4,9,y\n", file_name="t.csv", target="y", missing="impute")
    assert pool.n_features == 2, "one with a cell stays"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "名前,感想,点\n田中,とても良い商品でした,5\n鈴木,少し小さいです,2\n佐藤,色が違います,1\n"),
        ("gb18030", "姓名,评论,分\n张伟,质量很好,5\n李娜,物流太慢了,2\n王芳,颜色不一样,1\n"),
        (
            "cp1251",
            "имя,отзыв\nИван,Отличный товар\nОльга,Пришло с царапиной\nАнна,Не тот цвет\n",
        ),
        (
            "koi8-r",
            "имя,отзыв\nИван,Отличный товар\nОльга,Пришло с царапиной\nАнна,Не тот цвет\n",
        ),
        ("cp1252", "name,city,note\nJosé,Málaga,très bien\nJürgen,Köln,größer als erwartet\nAnn,Rome,x\n"),
        ("cp1252", "name,city,note\n" + "ann,rome,fine\n" * 5000 + "José,Rome,café\n"),
        (
            "cp1250",
            "jméno,město\nŽofie,Plzeň\nJiří,příliš žluťoučký kůň\nEva,Zlín\n",
        ),
        ("euc-kr", "이름,의견,점\n김철수,배송이 빨라요,5\n이영희,색이 달라요,2\n박민수,조금 작아요,1\n"),
        ("utf-16", "name,note\nJosé,très bien\nJürgen,größer\n"),
    ],
)
def test_a_file_in_another_encoding_is_read_as_it_was_written(encoding: str, text: str) -> None:
    rows = read_rows(text.encode(encoding), file_name="t.csv")
    header, *lines = [line.split(",") for line in text.splitlines()]
    assert list(rows.columns) == header and rows.to_numpy().tolist() == lines
