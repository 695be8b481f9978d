"""Changes in the table of classes are done, or refused with a reason."""

from pathlib import Path

from workbench.app.label import classes
from workbench.sessions import Session


def test_a_table_of_classes_is_done_row_by_row(home: Path) -> None:
    session = Session.create("iris", annotator="ann")
    session.classes.add("weed")
    before = classes.table(session.state)
    assert [row["Class"] for row in before] == ["setosa", "versicolor", "virginica", "weed"]
    session.classes.rename("versicolor", "blue flag")  # somebody else, meanwhile
    delta = {
        "edited_rows": {
            0: {"Guidance": "short petals", "Key": "s", "Colour": "#AA0000"},
            1: {"Class": "other"},
            2: {"Place": 1, "Colour": "reddish"},
        },
        "added_rows": [{"Class": "rose", "Guidance": "thorns"}, {}],
        "deleted_rows": [3],
    }
    problems = classes.apply(session, before, delta)
    assert len(problems) == 2 and "renamed meanwhile" in problems[0] and "#2a9d5c" in problems[1]
    after = {row["Class"]: row for row in classes.table(session.state)}
    assert list(after) == ["virginica", "setosa", "blue flag", "rose"]
    assert after["setosa"] | {"Guidance": "short petals", "Key": "s", "Colour": "#aa0000"} == after["setosa"]
    assert after["rose"]["Guidance"] == "thorns" and "weed" not in session.classes
    assert session.classes[:3] == ("setosa", "blue flag", "virginica"), "codes stay"


def test_a_table_without_classes_has_columns_to_name_them_in() -> None:
    assert list(classes.frame([]).columns) == ["Class", "Key", "Colour", "Guidance"]
    row = {"Place": 1, "Class": "a", "Key": "", "Colour": "", "Guidance": "", "Items": 0}
    assert classes.frame([row]).to_dict("records") == [row]


def test_changes_are_counted_by_cells_and_rows() -> None:
    delta = {
        "edited_rows": {0: {"Class": "a", "Key": "q"}, 2: {"Key": "w"}},
        "added_rows": [{"Class": "new"}, {}],
        "deleted_rows": [1],
    }
    assert classes.n_changes(delta) == 5 and classes.n_changes({}) == 0
