"""People who label, as the owner sees them on History, and how others join."""

from pathlib import Path

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.documents.checking import settings_of
from workbench.documents.projects import ProjectSettings
from workbench.sessions import Session


def test_the_owner_sees_who_labels_and_how_others_join(home: Path) -> None:
    session = Session.create("iris", annotator="ann")
    current.keep(session)
    items = session.pool.trainable[:3].tolist()
    for name, said in (("ann", "setosa"), ("bob", "setosa"), ("eve", "virginica")):
        session.as_annotator(name).items.label(items, said)
    page = open_page("history", session.id)
    page.session_state["history-tabs"] = "People"
    page.run()
    (table,) = [one.value for one in page.dataframe if "A minute" in one.value.columns]
    assert dict(zip(table["Person"], table["Labels"], strict=True)) == {"ann": 3, "bob": 3, "eve": 3}
    page.session_state["history-tabs"] = "Agreement"
    page.run()
    addresses = [one.value for one in page.code if session.id in one.value]
    assert addresses and all("/label?project=" in one for one in addresses)


def test_where_nobody_labelled_the_same_item_it_is_told_how_that_is_asked_for(home: Path) -> None:
    setting = settings_of(ProjectSettings)["overlap"].title
    for overlap, n_told in ((0.0, 1), (0.5, 0)):
        session = Session.create("iris", annotator="ann", overlap=overlap)
        current.keep(session)
        session.items.label(int(session.pool.trainable[0]), "setosa")
        page = open_page("history", session.id)
        page.session_state["history-tabs"] = "Agreement"
        page.run()
        assert "Nobody has labelled an item that somebody else" in texts(page)
        assert texts(page).count(f"*{setting}*") == n_told
