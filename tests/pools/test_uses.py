"""Uses of columns: guesses, choices that change their own column only, and their replay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool
from workbench.pools.cells import ISO, date_format, read_dates
from workbench.pools.features import feature_map_from_json
from workbench.pools.loading import settled, with_saved_map
from workbench.pools.tables.uses import USES

N = 60


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(N)],
            "age": rng.integers(18, 80, N).astype(str),
            "seen": pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y"),
            "zip": [f"0{z}" for z in rng.integers(1000, 1005, N)],
            "colour": rng.choice(["red", "green", "blue"], N),
            "comment": [f"I {rng.choice(['like', 'hate'])} this no {i} of mine" for i in range(N)],
            "label": [("good", "bad", "")[i % 3] for i in range(N)],
            "same": "x",
            "page": [f"https://example.org/{i}" for i in range(N)],
        }
    )
    made.loc[3, "age"] = made.loc[5, "colour"] = made.loc[4, "comment"] = ""
    made.loc[9, "seen"] = "soon"
    return made


def csv(made: pd.DataFrame) -> bytes:
    return made.to_csv(index=False).encode()


def load(columns, data=None, **options):
    return load_pool(data or csv(frame()), file_name="my.csv", columns=columns, **options)


GUESSED = {
    "id": {"use": "id"},
    "age": {"use": "number", "empty": "median"},
    "seen": {"use": "date", "empty": "median", "format": "%d.%m.%Y"},
    "zip": {"use": "category", "empty": "own"},
    "colour": {"use": "category", "empty": "own"},
    "comment": {"use": "text", "empty": "own"},
    "label": {"use": "class"},
    "same": {"use": "leave out"},
    "page": {"use": "leave out"},
}


def test_numbers_of_rows_are_no_quantities():
    """A file sorted by class would give itself away by pandas' nameless index."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "customer number": rng.choice(np.arange(10_000, 10_400), N, replace=False),
            "income": rng.choice(np.arange(100_000), N, replace=False),
            "number of calls": rng.choice(np.arange(1_000), N, replace=False),
            "label": ["a", "b"] * (N // 2),
        }
    )
    data = made.sample(frac=1.0, random_state=0).to_csv().encode()  # with its index
    report = inspect_table(data, file_name="my.csv", columns="auto")
    found = {column.name: column.use.use for column in report.columns if column.use is not None}
    assert found == {
        "column_1": "id",
        "customer number": "leave out",
        "income": "number",
        "number of calls": "number",
        "label": "class",
    }
    (noted,) = (note for note in report.problems if note.code == "numbers rows")
    assert noted.message == (
        "Another whole number in each row: 'column_1' is taken as the items' ids, 'customer number' left out."
    )
    _, fix = noted.fixes
    again = load_pool(data, file_name="my.csv", **{"columns": "auto", **fix.options})
    assert again.n_features == 4
    # what is called an id needs no word
    named = made.assign(row_id=np.arange(N)).drop(columns="customer number").to_csv(index=False).encode()
    report = inspect_table(named, file_name="my.csv", columns="auto")
    assert not [note for note in report.problems if note.code == "numbers rows"]
    # what is said stands, and so does the only column there is
    only = made[["customer number", "label"]].to_csv(index=False).encode()
    assert load_pool(only, file_name="my.csv", columns="auto").n_features == 1


def test_guesses_are_written_down_and_give_the_same_pool():
    report = inspect_table(csv(frame()), file_name="my.csv", columns="auto")
    flagged = {name: use | {"guessed": True} for name, use in GUESSED.items()}
    assert report.ready and report.columns_option == flagged
    # what it decided is told as long as nobody says it
    assert inspect_table(csv(frame()), file_name="my.csv", columns=flagged).problems == report.problems
    guessed, said = load(None), load(json.loads(json.dumps(GUESSED)))
    assert guessed.fingerprint == said.fingerprint
    assert settled({"target": "label", "decimal": ".", "strict": True}, guessed) == {
        "decimal": ".",
        "columns": flagged,
    }
    np.testing.assert_array_equal(guessed.features, said.features)
    assert said.classes == ("bad", "good") and (said.truth == -1).sum() == N // 3
    assert list(said.items.ids[:2]) == ["u0", "u1"]


def test_a_choice_changes_its_own_column_only():
    without = {**GUESSED, "comment": "leave out"}
    before = load(without)
    for column, said, names in (
        ("age", {"use": "number", "empty": "own"}, ["age", "age=(empty)"]),
        ("age", "category", None),
        ("colour", {"use": "category", "empty": "median"}, ["colour=blue", "colour=green", "colour=red"]),
        ("zip", "number", ["zip"]),
        ("seen", "leave out", []),
    ):
        after = load({**without, column: said})
        others = [i for i, name in enumerate(before.feature_map.columns) if name.partition("=")[0] != column]
        kept = [i for i, name in enumerate(after.feature_map.columns) if name.partition("=")[0] != column]
        np.testing.assert_array_equal(before.features[:, others], after.features[:, kept])
        if names is not None:
            assert [n for n in after.feature_map.columns if n.partition("=")[0] == column] == names
    assert len(load({**without, "age": {"use": "number", "empty": "drop"}})) == N - 1


def test_empty_cells_and_dates_are_what_was_said():
    made = frame()
    pool = load({**GUESSED, "comment": "leave out", "age": {"use": "number", "empty": "own"}})
    age = pool.features[:, pool.feature_map.columns.index("age")]
    median = np.median(np.delete(made["age"].to_numpy(), 3).astype(float))
    assert age[3] == median
    assert pool.features[:, pool.feature_map.columns.index("age=(empty)")].tolist() == [
        i == 3 for i in range(N)
    ]
    seen = pool.features[:, pool.feature_map.columns.index("seen")]
    assert seen[0] == 19_723 and seen[1] == 19_724  # 1 January 2024
    assert any("'soon'" in note and "line 11" in note for note in pool.notes)


def test_other_rows_are_read_by_the_format_of_the_pools_dates():
    made = frame().assign(seen=[f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/2024" for i in range(N)])
    pool = load({**GUESSED, "comment": "leave out", "seen": "date"}, csv(made))
    # the month stands first in some of them, and one is read by both
    days = pool.feature_map.transform(made.assign(seen=["02/01/2024", "01/25/2024"] * (N // 2)))
    assert days[0, pool.feature_map.columns.index("seen")] == 19_724


def test_texts_beside_numbers_count_alike_and_replay():
    pool = load("auto")
    assert pool.kind == "table" and pool.common_scale
    texts = np.array(["comment: " in name for name in pool.feature_map.columns])
    spread = pool.features.var(axis=0)
    assert spread[texts].sum() == pytest.approx(spread[~texts].sum(), rel=1e-4)
    again = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    np.testing.assert_allclose(again.transform(frame()), pool.features, atol=1e-6)
    assert "comment" in (pool.items.show(0).row or {})


def test_a_mixed_pool_that_grew_keeps_its_map():
    made = frame()
    whole = csv(made)
    part = load(GUESSED, csv(made.iloc[:40]))
    grown = with_saved_map(load(GUESSED, whole), part.feature_map.to_json())
    np.testing.assert_allclose(grown.features[:40], part.features, atol=1e-6)
    assert len(grown) == N


def test_one_column_of_texts_is_a_pool_of_texts():
    made = frame()[["id", "comment", "label"]]
    pool = load("auto", csv(made))
    assert pool.kind == "text" and len(pool) == N
    dropped = load({"comment": {"use": "text", "empty": "drop"}}, csv(made))
    assert len(dropped) == N - 1 and "1 row left out; 59 stay." in dropped.notes
    assert pool.classes == ("bad", "good")


@pytest.mark.parametrize(
    ("columns", "more", "match"),
    [
        ({"age": "colour"}, {}, "'age' cannot be 'colour'; it can be number, category"),
        ({"none": "number"}, {}, "no column 'none'"),
        ({"age": "id", "zip": "id"}, {}, "'age', 'zip'.* cannot all hold the ids"),
        ({"comment": "number"}, {}, "'comment' holds no number .*'I "),
        ({"page": "date"}, {}, "'page' holds no date"),
        ({"age": {"use": "number", "empty": "zero"}}, {}, "empty cells of 'age' cannot be 'zero'"),
        ({"age": {"use": "number", "blank": "zero"}}, {}, "say a use"),
        ({"seen": {"use": "date", "format": "%q"}}, {}, "dates of 'seen' are not '%q'"),
        (3, {}, 'neither "auto" nor'),
        ({"zip": "class", "label": "leave out", "id": "leave out"}, {"max_classes": 2}, "5 different values"),
        ({"page": "category"}, {"max_categories": 10}, "60 different values, too many for categories"),
        ({"zip": "id", "id": "leave out"}, {}, "stands on line"),
        ({name: "leave out" for name in GUESSED}, {}, "No column of my.csv is left"),
    ],
)
def test_what_cannot_be_is_one_sentence(columns, more, match):
    with pytest.raises(InputError, match=match):
        load({**GUESSED, **columns} if isinstance(columns, dict) else columns, **more)


def test_every_way_out_of_a_use_leads_on():
    def merged(options, fix):
        both = {**options, **fix}
        if "columns" in fix:
            both["columns"] = {**options["columns"], **fix["columns"]}
        return both

    for columns in ({"comment": "number"}, {"zip": "id"}, {"page": "category"}):
        options = {"columns": {**GUESSED, "id": "leave out", **columns}, "max_categories": 10}
        report = inspect_table(csv(frame()), file_name="my.csv", **options)
        problem = next(p for p in report.problems if p.severity == "choice")
        assert problem.fixes
        for fix in problem.fixes:
            after = inspect_table(csv(frame()), file_name="my.csv", **merged(options, fix.options))
            assert problem.message not in [p.message for p in after.problems]


def test_the_target_of_a_command_is_a_use():
    pool = load_pool(csv(frame()), file_name="my.csv", columns="auto", target="zip")
    assert len(pool.classes) == 5 and "label=bad" in pool.feature_map.columns


def test_every_use_can_be_said_of_every_column():
    for use in USES:
        for columns in (["age"], ["comment"], list(GUESSED)):
            inspect_table(csv(frame()), file_name="my.csv", columns=dict.fromkeys(columns, use))


@pytest.mark.parametrize(
    ("cells", "form", "first"),
    [
        (["2024-01-02", "2024-02-03T12:00:00", ""], ISO, 19_724.0),
        (["13/01/2024", "01/02/2024"], "%d/%m/%Y", 19_735.0),
        (["01/13/2024", "01/02/2024"], "%m/%d/%Y", 19_735.0),
        (["2024-01-02T00:00:00+02:00", "2024-01-03T00:00:00Z"], ISO, 19_724 - 2 / 24),
        (["2 Jan 2024", "3 Feb 2024"], "%d %b %Y", 19_724.0),
        (["2. März 2024", "3. Mai 2024"], "%d. %B %Y", 19_784.0),
        (["2. Dez. 2023", "3. Okt. 2024"], "%d. %b %Y", 19_693.0),
        (["3. Jan. 2024", "2. Dez. 2023"], "%d. %b %Y", 19_725.0),
        (["Sept. 3, 2024", "Jan. 12, 2024"], "%b %d, %Y", 19_969.0),
        (["MÄRZ 2024", "Mai 2024"], "%B %Y", 19_783.0),
        (["2024", "2025"], None, None),
        (["1.5", "2.5"], None, None),
        (["red", "green"], None, None),
        ([], None, None),
    ],
)
def test_dates(cells, form, first):
    column = pd.Series(cells, dtype="str")
    assert date_format(column) == form
    if form is not None:
        found = read_dates(column, form)
        assert found.values[0] == pytest.approx(first) and not found.unreadable.any()


def _comments(tmp_path: Path, words: int = 9) -> Path:
    texts = [" ".join(f"word{(i * k) % 37}" for k in range(1, words + 1)) for i in range(40)]
    lines = [f"c{i},{('sales', 'lab')[i % 2]},2026-0{1 + i % 9}-11,{text}" for i, text in enumerate(texts)]
    path = tmp_path / "comments.csv"
    path.write_text("\n".join(["comment_id,department,date,comment", *lines]), encoding="utf-8")
    return path


def test_a_long_text_is_the_item_and_the_rest_is_shown_beside_it(tmp_path: Path) -> None:
    path = _comments(tmp_path)
    pool, alone = load_pool(str(path), columns="auto"), load_pool(str(path), text_column="comment")
    assert pool.kind == "text" and pool.uses is not None and pool.uses["department"]["use"] == "shown"
    assert pool.items.show(3).row == {"department": "lab", "date": "2026-04-11"}
    assert pool.items.show(3).text == alone.items.show(3).text
    assert set(pool.feature_map.columns) and not any("department" in c for c in pool.feature_map.columns)

    # the page says so, with one switch to learn from them, too, and one back
    def note(columns: Any) -> Any:
        report = inspect_table(str(path), columns=columns)
        return next(problem for problem in report.problems if problem.code == "item")

    told = note("auto")
    assert "'comment' alone" in told.message and told.fixes[0].label == "Learn from them, too"
    mixed = load_pool(str(path), **told.fixes[0].options)
    assert mixed.kind == "table" and "date" in mixed.feature_map.columns
    back = note(told.fixes[0].options["columns"])
    assert load_pool(str(path), **back.fixes[0].options).fingerprint == pool.fingerprint


def test_a_short_text_is_one_of_the_columns(tmp_path: Path) -> None:
    pool = load_pool(str(_comments(tmp_path, words=5)), columns="auto")
    assert pool.kind == "table" and pool.uses is not None and pool.uses["department"]["use"] == "category"


@pytest.mark.parametrize(
    ("name", "cell", "use"),
    [
        ("postcode", lambda i: str(10_000 + 37 * i), "shown"),
        ("agent", lambda i: f"agent_{i % 40:02d}", "shown"),
        ("agent number", lambda i: str(500 + i % 150), "shown"),
        ("postcode", lambda i: str(10_000 + i % 4), "category"),
        ("rooms", lambda i: str(i % 150), "number"),
        ("number of rooms", lambda i: str(i % 150), "number"),
    ],
)
def test_codes_of_many_values_are_no_numbers(tmp_path: Path, name: str, cell: Any, use: str) -> None:
    path = tmp_path / "own.csv"
    rows = "\n".join(f"{i / 7:.3f},{cell(i)},{i * i % 11}.5" for i in range(300))
    path.write_text(f"size,{name},weight\n{rows}\n", encoding="utf-8")
    pool = load_pool(str(path), columns="auto")
    assert pool.uses is not None and pool.uses[name]["use"] == use
    assert any(name in column for column in pool.feature_map.columns) is (use != "shown")
