"""People who label, as the owner sees them on History, and how others join."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.app.access.test_auditing import PAGES
from workbench.app import server
from workbench.app.access import current
from workbench.sessions import Session

MAIN = server.MAIN


def test_the_owner_sees_who_labels_and_how_others_join(home: Path) -> None:
    session = Session.create("iris", annotator="ann")
    current.keep(session)
    items = session.pool.trainable[:3].tolist()
    for name, said in (("ann", "setosa"), ("bob", "setosa"), ("eve", "virginica")):
        session.as_annotator(name).items.label(items, said)
    page = AppTest.from_file(str(MAIN), default_timeout=600)
    page.query_params["project"] = session.id
    page.run()
    page.switch_page(str(PAGES / "history.py"))
    page.query_params["project"] = session.id
    page.run()
    assert not page.exception
    page.session_state["history-tabs"] = "People"
    page.run()
    (table,) = [one.value for one in page.dataframe if "A minute" in one.value.columns]
    assert dict(zip(table["Person"], table["Labels"], strict=True)) == {"ann": 3, "bob": 3, "eve": 3}
    page.session_state["history-tabs"] = "Agreement"
    page.run()
    addresses = [one.value for one in page.code if session.id in one.value]
    assert addresses and all("/label?project=" in one for one in addresses)
