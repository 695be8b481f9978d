"""The log of opened, exported, deleted and shared projects, for their owner; one person may have so much."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.pages import open_page
from tests.cli.calls import call
from workbench.app.access import auditing, current, login, uploads
from workbench.app.lessons import together
from workbench.app.shell import downloads
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.store import Store

ANN = login.Person("https://id.example.org 1", "Ann")
BOB = login.Person("https://id.example.org 2", "Bob")


@pytest.fixture
def guarded(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A log-in is required and Ann is logged in; the dictionary holds the secrets."""
    held: dict[str, Any] = {"auth": {"redirect_uri": "http://testserver/oauth2callback"}, "workbench": {}}
    monkeypatch.setattr(login, "_secrets", lambda: held)
    monkeypatch.setattr(login, "of_page", lambda: ANN)
    monkeypatch.setattr(login, "of_cookies", lambda cookies: ANN)
    yield held


def done(project: str) -> list[tuple[str, str, str]]:
    """Acts on a project, oldest first."""
    return [(one.what, one.name, one.detail) for one in reversed(Store.open().audit.entries(project=project))]


def test_opening_and_exporting_stand_in_the_audit(home: Path) -> None:
    session = Session.create("iris", name="Petals")
    session.items.label(int(session.pool.trainable[0]), "setosa")
    current.keep(session)
    page = open_page("history", session.id)
    (opened,) = done(session.id)
    assert opened[0] == "opened"
    html = "".join(element.proto.body for element in page.get("html"))
    address = next(found for found in re.findall(r'href="([^"]*)"', html) if "/download/" in found)
    client = TestClient(Starlette(routes=downloads.routes()))
    assert "setosa" in client.get(address).text
    assert done(session.id)[1] == ("exported", opened[1], "id and label, CSV")
    # its owner sees it where the decisions are
    page.run()
    shown = [frame.value for frame in page.dataframe if "About" in frame.value.columns]
    assert any(list(one["What"]) == ["exported", "opened"] for one in shown)


def test_the_command_line_records_and_prints_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: object) -> list[str]:
        capsys.readouterr()
        assert call(*arguments) == 0
        return capsys.readouterr().out.splitlines()

    session = Session.create("iris", name="Sepals")
    printed("export", session.id)
    printed("access", session.id, "open")
    lines = printed("log", "Sepals")
    assert (
        len(lines) == 3 and "shared" in lines[1] and "exported" in lines[2] and "(command line)" in lines[1]
    )
    # by its name also when it is gone
    Store.open().delete_project(session.id)
    auditing.record("deleted", project=session.id, called="Sepals", name="root")
    assert "deleted" in printed("log", "Sepals")[1] and "deleted" in printed("log", "--count", "1")[1]
    assert call("log", "nothing of that name") == 2 and call("log", "--count", "0") == 2


def test_a_log_of_the_server_has_it_without_ids(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        auditing.record("exported", project="0123456789ab", called="Petals", detail="labels", name="Ann")
    assert caplog.messages == ["Ann exported 'Petals' (labels)"]


def test_whom_a_project_is_shared_with_stands_there(guarded: dict[str, Any]) -> None:
    store = Store.open()
    store.people.known_as(BOB.key, BOB.name)
    made = Session.create("iris", owner=ANN.key).id

    def shown(project: str) -> None:
        from workbench.app.access import sharing
        from workbench.store import Store

        sharing.control(Store.open().summary(project), sharing.names())  # type: ignore[arg-type]

    page = AppTest.from_function(shown, args=(made,)).run()
    page.radio[0].set_value("shared").run()
    page.multiselect[0].select(BOB.key).run()
    page.button(key=f"access-save-{made}").click().run()
    assert not page.exception and not page.error
    assert done(made) == [("shared", "Ann", "shared with Bob")]


def test_one_person_may_have_so_many_projects(guarded: dict[str, Any]) -> None:
    n = sum(found.owner == ANN.key for found in Store.open().projects())
    guarded["workbench"]["projects"] = n + 1
    auditing.room_for_project()
    Session.create("iris", owner=ANN.key)
    Session.create("iris", owner=BOB.key)
    with pytest.raises(InputError, match=rf"You have {n + 1} projects, and one person may have {n + 1}"):
        auditing.room_for_project()

    def start() -> None:
        from workbench.app.data import forms
        from workbench.documents.projects import ProjectSettings

        forms.start("iris", ProjectSettings(name="One more"), again=True)

    before = len(Store.open().projects())
    page = AppTest.from_function(start).run()
    assert not page.exception and "one person may have" in page.error[0].value
    assert len(Store.open().projects()) == before


def test_a_room_is_of_whoever_began_it_and_open_to_all(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, str] = {}
    monkeypatch.setattr("workbench.app.lessons.together.st.query_params", given)
    together.begin()
    found = Store.open().summary(given["room"])
    assert found is not None and (found.owner, found.access) == (ANN.key, "open") and found.lets_in(BOB.key)
    assert done(found.id) == [("made", "Ann", "a room of a class")]
    guarded["workbench"]["projects"] = 1
    with pytest.raises(InputError, match="one person may have 1"):
        together.begin()


def test_one_person_may_upload_so_much(guarded: dict[str, Any]) -> None:
    guarded["workbench"]["uploads_mb"] = 1
    first = uploads.keep("a.csv", b"a\n" + b"1\n" * 300_000)
    assert uploads.keep("a.csv", b"a\n" + b"1\n" * 300_000) == first  # the same again takes no more room
    with pytest.raises(InputError, match=r"You have uploaded 0.6 MB, and with this file it would be 1.1"):
        uploads.keep("b.csv", b"a\n" + b"2\n" * 300_000)
    (entry,) = Store.open().audit.entries(person=ANN.key, what="uploaded")
    assert (entry.detail, entry.octets) == (str(first), 600_002)
    first.unlink()  # what is gone does not count
    assert uploads.keep("b.csv", b"a\n" + b"2\n" * 300_000).is_file()


@pytest.mark.parametrize("given", [0, -1, "5", True, 2.5])
def test_a_limit_is_a_whole_number(given: object) -> None:
    auth = {"redirect_uri": "https://x.org/oauth2callback", "cookie_secret": "s" * 32} | dict.fromkeys(
        login._NEEDED, "x"
    )
    for name in login.LIMITS:
        with pytest.raises(InputError, match=rf"\[workbench\] {name} is how many"):
            login._check_document({"auth": auth, "workbench": {name: given}}, "The log-in")
    login._check_document(json.loads(json.dumps({"auth": auth, "workbench": {"projects": 3}})), "The log-in")
