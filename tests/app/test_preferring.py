"""The table of features that the labels prefer."""

from streamlit.testing.v1 import AppTest


def shown() -> None:
    from workbench.app.data.preferring import table
    from workbench.sessions.preference import Preference, Scored

    nan = float("nan")
    scores = (
        Scored("shapes", False, 0.19, -0.61, 2.0),
        Scored("pixels", True, 0.31, -0.9, 0.5),
        Scored("efficientnet", False, nan, nan, 0.0, "It could not be read."),
    )
    table(Preference(scores, 24, 1000))
    table(Preference(scores[1:], 24, 1000))
    table(Preference(scores[2:], 24, 1000))


def test_the_table_says_what_the_labels_prefer_and_what_could_not_be_scored() -> None:
    test = AppTest.from_function(shown, default_timeout=600).run()
    assert [e.message for e in test.exception] == []
    said = [m.value.replace("\\", "") for m in test.markdown]  # as it is read, not as it is escaped
    assert "shapes 0.19, pixels 0.31" in said[0] and "prefer **shapes**. They were asked for" in said[0]
    assert "prefer **pixels**, which is in use" in said[1]
    assert "None of the sets" in test.warning[0].value
    first = test.dataframe[0].value
    assert first["Features"].tolist() == ["shapes", "pixels (in use)", "efficientnet"]
    assert first["Leave-one-out error"].tolist()[2] == "It could not be read."
