"""People without an account: who is let in by a project's link, to what, and for how long."""

import re
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from itsdangerous import TimestampSigner
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.test_login import ANN, MAIN, answer, client, cookie, guarded  # noqa: F401
from workbench.app.access import current, guests, login, passes, tokens
from workbench.app.desk import operations, routes
from workbench.app.programs.routes import routes as of_programs
from workbench.app.shell import downloads, palette
from workbench.sessions import Session
from workbench.store import Store


@pytest.fixture
def owned(client: TestClient) -> Session:  # noqa: F811
    ann = login.person_of(ANN)
    assert ann is not None
    session = Session.create("iris", annotator="Ann", owner=ann.key, name="Petals <i>")
    current.keep(session)
    return session


@pytest.fixture
def browser(client: TestClient) -> Iterator[TestClient]:  # noqa: F811
    """Of somebody who has not logged in."""
    upload = Route("/_stcore/upload_file/{name}", lambda _: PlainTextResponse("taken"), methods=["PUT"])
    app = Starlette(routes=[*routes(), *guests.routes(), *downloads.routes(), *of_programs(), upload])
    yield TestClient(login.Entrance(app), follow_redirects=False)


def joined(browser: TestClient, session: Session, name: str) -> str:
    """Join as a guest; the name they go by."""
    browser.cookies.clear()
    asked = browser.get("/join", params=guests.link(session.project))
    assert asked.status_code == 200 and "Petals &lt;i&gt;" in asked.text and "<i>" not in asked.text
    assert asked.headers["referrer-policy"] == "same-origin"  # else the form's origin would be nobody's
    (code,) = re.findall(r'name="k" value="([^"]+)"', asked.text)
    given = browser.post("/join", data={"k": code, "name": name})
    assert (given.status_code, given.headers["location"]) == (303, f"/label?project={session.id}")
    assert "HttpOnly" in given.headers["set-cookie"] and "SameSite=lax" in given.headers["set-cookie"]
    person = login.of_cookies(dict(browser.cookies))
    assert person is not None and person.guest is not None
    return person.name


def asks(browser: TestClient, project: str, name: str) -> int:
    body = {"ops": [], "want": 1, "have": []}
    headers = {"x-desk-token": tokens.issue(project, name)}
    return browser.post(f"/api/desk/{project}/sync", json=body, headers=headers).status_code


def test_a_guest_labels_in_one_project_until_its_owner_ends_it(browser: TestClient, owned: Session) -> None:
    record, store = owned.project, Store.open()
    assert not guests.allowed(record) and browser.get("/join", params={"k": "x"}).status_code == 403
    guests.allow(record, True)
    name = joined(browser, owned, " Ada  L ")
    assert name == "Ada L (guest)" and asks(browser, owned.id, name) == 200
    # nobody else's token, no other project however open, no uploads
    assert asks(browser, owned.id, "Ann") == 403
    other = Session.create("wine", annotator="Ann", owner=record.owner)
    store.share_project(other.id, record.owner, "open")
    assert asks(browser, other.id, name) == 403
    assert browser.put("/_stcore/upload_file/x").status_code == 403
    # a second one of the same name is somebody else, and neither is in the list of people to share with
    second = joined(browser, owned, "Ada L")
    assert second != name and asks(browser, owned.id, second) == 200
    before = dict(browser.cookies)
    link = guests.link(record)
    guests.allow(record, False)
    assert asks(browser, owned.id, second) == 403 and browser.get("/join", params=link).status_code == 403
    # let in anew it is by another link, and not for those who came by the old one
    guests.allow(record, True)
    assert browser.get("/join", params=link).status_code == 403 and asks(browser, owned.id, second) == 403
    forged = before[passes.COOKIE][:-2] + "xx"
    assert login.of_cookies({passes.COOKIE: forged}) is None
    # what is signed as the desk's is no guest's
    assert login.of_cookies({passes.COOKIE: tokens.issue(owned.id, "Ann")}) is None
    # a copy lets in nobody
    assert not guests.allowed(store.duplicate_project(owned.id, "Copy", record.owner))


def test_a_guests_cookie_is_of_no_use_for_ever(
    browser: TestClient, owned: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser is asked to forget it; a copy of it is not."""
    guests.allow(owned.project, True)
    name = joined(browser, owned, "Ada")
    later = time.time() + 86_400 * (passes.DAYS - 1)
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda self: int(later))
    assert asks(browser, owned.id, name) == 200
    later += 2 * 86_400
    assert asks(browser, owned.id, name) != 200
    assert login.of_cookies(dict(browser.cookies)) is None


def test_no_guest_moves_their_link_or_cookie_to_another_project(browser: TestClient, owned: Session) -> None:
    """Both name their project, and both ends must have let guests in."""
    other = Session.create("wine", annotator="Ann", owner=owned.project.owner, name="Other")
    current.keep(other)
    for one in (owned, other):
        guests.allow(one.project, True)
    name = joined(browser, owned, "Ada")
    assert asks(browser, owned.id, name) == 200 and asks(browser, other.id, name) == 403
    # neither is of use as the other, nor is what another's settings say of guests
    link, held = guests.link(owned.project)["k"], browser.cookies[passes.COOKIE]
    assert browser.get("/join", params={"k": held}).status_code == 403
    assert login.of_cookies({passes.COOKIE: link}) is None
    how = Store.open().guests_of(owned.id)
    for given in ([other.id, how], [other.id, ""], [owned.id]):
        assert browser.get("/join", params={"k": passes.signed(given)}).status_code == 403
    forged = passes.cookie([other.id, how, f"guest {other.id} x", name])
    person = login.of_cookies({passes.COOKIE: forged})
    with pytest.raises(login.NotYoursError):
        login.admit(other.id, person)


def test_a_guest_neither_exports_nor_checks_nor_uses_a_key_of_programs(
    browser: TestClient, owned: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests.allow(owned.project, True)
    name = joined(browser, owned, "Ada")
    offer = downloads._Offer(file=(lambda file: file.write(b"labels"), "labels.csv"))
    offer.person, offer.project, offer.drawn = owned.project.owner, owned.id, downloads.time.monotonic()
    monkeypatch.setitem(downloads._offers, offer.token, offer)
    taken = browser.get(f"{downloads.BASE}/{offer.token}")
    assert b"labels.csv" not in taken.content and taken.content != b"labels"
    assert browser.get(f"/api/v1/projects/{owned.id}").status_code in (401, 404)
    headers = {"x-desk-token": tokens.issue(owned.id, name)}
    checks = {"ops": [], "want": 1, "have": [], "mode": "check"}
    assert browser.post(f"/api/desk/{owned.id}/sync", json=checks, headers=headers).status_code == 403
    # nor do the words of Ctrl+K lead anywhere
    ada = login.of_cookies(dict(browser.cookies))
    monkeypatch.setattr(login, "of_page", lambda: ada)
    Session.create("wine", annotator="Ann", owner=owned.project.owner, name="Other")
    offered = palette.entries(owned, {"label": SimpleNamespace(title="Label")})
    assert [one["id"] for one in offered] == ["page:label", f"project:{owned.id}"]


def test_a_guest_answers_and_changes_neither_classes_nor_what_others_said(
    browser: TestClient, owned: Session
) -> None:
    guests.allow(owned.project, True)
    name = joined(browser, owned, "Ada")
    item = int(owned.pool.trainable[0])
    owned.label_item(item, "setosa")
    whose = {"person": name, "project": owned.id}

    def done(**operation: Any) -> tuple[str, str]:
        body = {"ops": [whose | operation], "want": 1, "have": [], "guest": False}
        headers = {"x-desk-token": tokens.issue(owned.id, name)}
        reply = browser.post(f"/api/desk/{owned.id}/sync", json=body, headers=headers).json()
        return reply["acks"][0]["status"], reply["acks"][0]["why"]

    assert done(op="a", kind="clear", items=[item])[1] == operations.NOT_FOR_GUESTS
    assert done(op="b", kind="relabel", items=[item], **{"class": "virginica"})[0] == "refused"
    ask = owned.as_annotator(name).ask()[0]
    label = {"kind": "label", "ask": ask.id, "item": ask.item}
    assert done(op="c", **label, new=True, **{"class": "weed"})[1] == operations.NOT_FOR_GUESTS
    owned.flag([item], True)
    assert done(op="e", kind="flag", item=item, on=False)[1] == operations.NOT_FOR_GUESTS
    for kind, more in (("answers", {"ask": ask.id}), ("amend", {})):
        row = {"kind": kind, "item": ask.item, "answers": {owned.question_name: "weed"}, **more}
        assert done(op=kind, **row, adds=[owned.question_name])[1] == operations.NOT_FOR_GUESTS
    assert item in owned.state.flagged and done(op="f", kind="flag", item=ask.item, on=True)[0] == "saved"
    assert done(op="d", **label, **{"class": "setosa"})[0] == "saved"
    assert owned.state.labels == {item: "setosa", ask.item: "setosa"} and "weed" not in owned.classes


def test_a_guest_needs_a_name_and_a_log_in_to_be_a_guest_of(
    browser: TestClient,
    owned: Session,
    guarded: dict[str, Any],  # noqa: F811
) -> None:
    guests.allow(owned.project, True)
    link = guests.link(owned.project)
    assert "<form" in browser.post("/join", data=link | {"name": "  "}).text
    assert browser.post("/join", data=link | {"name": "a" * 5000}).status_code == 413
    guarded.pop("auth")
    assert browser.get("/join", params=link).status_code == 403


def test_a_guest_sees_the_desk_and_no_other_page(
    browser: TestClient, owned: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests.allow(owned.project, True)
    joined(browser, owned, "Ada")
    ada = login.of_cookies(dict(browser.cookies))
    assert ada is not None
    monkeypatch.setattr(login, "of_page", lambda: ada)
    assert login.who_may(login.of_page(), owned.project, "open") and not login.may_change(owned.project)
    for name, sees in (("history", False), ("data", False), ("label", True)):
        test = AppTest.from_file(str(MAIN), default_timeout=600)
        test.run()
        test.switch_page(str(MAIN.parent.parent / "pages" / f"{name}.py"))
        test.query_params["project"] = owned.id
        test.run()
        assert not test.exception
        led = any("guest of one project" in one.value for one in test.main.markdown)
        assert led is not sees
        # nothing to change the project with, or to log out of
        assert not {b.key for b in test.button} & {
            "log-out",
            "classes",
            "instructions",
            "guesses",
            "oracle-1",
        }


def _on_history(project: str) -> None:
    from workbench.app.access import current, presence

    presence.invite(current.opened(project))


def _on_data(project: str) -> None:
    from workbench.app.access import sharing
    from workbench.store import Store

    sharing.control(Store.open().project(project))


@pytest.mark.parametrize("page", [_on_history, _on_data])
def test_the_owner_switches_it_on_and_sees_the_link(
    owned: Session, monkeypatch: pytest.MonkeyPatch, page: Callable[[str], None]
) -> None:
    ann = login.person_of(ANN)
    monkeypatch.setattr(login, "of_page", lambda: ann)
    test = AppTest.from_function(page, args=(owned.id,), default_timeout=600).run()
    assert not test.exception and "/join" not in "".join(one.value for one in test.code)
    test.toggle[0].set_value(True).run()
    assert not test.exception and guests.allowed(owned.project)
    assert "/join?k=" in test.code[0].value and test.toggle[0].value
    test.toggle[0].set_value(False).run()
    assert not guests.allowed(owned.project) and "/join" not in "".join(one.value for one in test.code)
