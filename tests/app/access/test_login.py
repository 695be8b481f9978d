"""People who are let in: the file of a log-in, a cookie's person, the desk's routes, private projects."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import event
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.pages import application, place
from workbench.app import server
from workbench.app.access import current, login, sharing
from workbench.app.compare import attack_form, comparison
from workbench.app.desk import routes, tokens
from workbench.app.lessons import together
from workbench.app.shell import downloads
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.store import Store
from workbench.studies import StudySpec

AUTH = """[auth]
redirect_uri = "https://label.example.org/oauth2callback"
cookie_secret = "0123456789abcdef0123456789abcdef"
client_id = "a"
client_secret = "b"
server_metadata_url = "https://id.example.org/.well-known/openid-configuration"
"""
ANN = {
    "iss": "https://id.example.org",
    "sub": "1",
    "is_logged_in": True,
    "name": "Ann",
    "email": "Ann@Example.org",
}
BOB = ANN | {"sub": "2", "name": "Bob", "email": "bob@other.org"}


def written(folder: Path, text: str = AUTH, mode: int = 0o600) -> Path:
    file = folder / "secrets.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


# --- the file ---------------------------------------------------------------------------------------


def test_a_whole_file_is_taken_and_names_its_host(tmp_path: Path) -> None:
    pytest.importorskip("authlib")
    file = written(tmp_path, AUTH + '[workbench]\npeople = ["*@example.org"]\n')
    assert login.file_of(file) == file and login.names_in(file) == ["label.example.org"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[other]\n", r"has no table \[auth\]"),
        ("[auth\n", "cannot be read"),
        (AUTH.replace("oauth2callback", "callback"), "needs redirect_uri"),
        (AUTH.replace("0123456789abcdef", "", 1), "at least 32 random"),
        (AUTH.replace('client_id = "a"\n', ""), "lacks client_id for the provider default"),
        (AUTH.partition("client_id")[0] + '[auth.okta]\nclient_id = "a"\n', "lacks client_secret, .* okta"),
        (AUTH + '[workbench]\npeople = "ann"\n', "is a list of addresses"),
    ],
)
def test_what_a_file_lacks_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        login.file_of(written(tmp_path, text))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="chmod 600"):
        login.file_of(written(tmp_path, mode=0o644))
    with pytest.raises(InputError, match="cannot be read"):
        login.file_of(tmp_path / "none.toml")


def test_a_log_in_where_streamlit_looks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert login.file_of(None) is None
    (tmp_path / ".streamlit").mkdir()
    file = written(tmp_path / ".streamlit", "[database]\nkey = 1\n")
    assert login.file_of(None) is None
    assert login.file_of(written(tmp_path / ".streamlit")) == file


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of a log-in that this process was started with."""
    from streamlit import config
    from streamlit.runtime.secrets import Secrets

    monkeypatch.setattr("streamlit.runtime.secrets.secrets_singleton", Secrets())
    monkeypatch.setattr(login, "_SETTINGS", login._Settings())
    monkeypatch.setattr(login, "_LOCKED", False)
    before = config.get_option("secrets.files")
    file = written(tmp_path, AUTH + '[workbench]\npeople = ["ann@example.org"]\n')
    login.lock(file)
    yield file
    config.set_option("secrets.files", before)


def _listed() -> list[bool]:
    """Access of Ann, who is on the list, and of Mallory, who is not."""
    return [login._listed(address) for address in ("ann@example.org", "mallory@evil.org")]


@pytest.mark.parametrize("people", ["people = [[", 'people = "ann@example.org"', "", None])
def test_a_slip_in_the_file_lets_in_nobody_new(watched: Path, people: str | None) -> None:
    from streamlit.runtime.secrets import secrets_singleton

    assert login.required() and _listed() == [True, False]
    watched.unlink()
    if people is not None:
        written(watched.parent, AUTH + f"[workbench]\n{people}\n")
    assert login.required() and _listed() == [True, False]
    assert login._origin() == "https://label.example.org"
    # Streamlit looks at the file by itself, and has to know the cookies of who is in
    secrets_singleton._reset()
    assert login.required() and secrets_singleton.get("auth")["cookie_secret"] == "0123456789abcdef" * 2
    # another whole file counts, in Streamlit too
    written(watched.parent, AUTH.replace("0123", "9876") + '[workbench]\npeople = ["*@evil.org"]\n')
    assert _listed() == [False, True]
    if people != "":
        assert secrets_singleton.get("auth")["cookie_secret"].startswith("9876")


def test_half_a_save_without_its_tables_lets_in_nobody_new(watched: Path) -> None:
    written(watched.parent, "[auth]\n")
    assert login.required() and _listed() == [True, False]
    written(watched.parent, "")
    assert login.required() and _listed() == [True, False]


def test_a_file_that_could_never_be_read_lets_in_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit as st

    monkeypatch.setattr(login, "_SETTINGS", login._Settings())
    monkeypatch.setattr(
        st,
        "get_option",
        lambda name, real=st.get_option: (
            [str(tmp_path / "secrets.toml")] if name == "secrets.files" else real(name)
        ),
    )
    assert not login.required()
    written(tmp_path, AUTH + "people = [[")
    assert login.required() and _listed() == [False, False]


# --- names of the server --------------------------------------------------------------------------------


class ServedError(Exception):
    """The server would have begun."""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options that Streamlit would be started with."""
    import streamlit as st

    told: dict[str, Any] = {}

    class App:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def run(self, config: dict[str, Any]) -> None:
            told.update(config)

    monkeypatch.setattr(st, "App", App)
    monkeypatch.setattr(login, "file_of", lambda given: given)
    monkeypatch.setattr(login, "lock", lambda file: None)
    monkeypatch.setattr(server, "_check_free", lambda address, port: None)
    return told


def test_shared_with_the_network_it_goes_by_its_own_names_only(served: dict[str, Any]) -> None:
    server.serve("0.0.0.0", share=True, host_names=["label.example.org"])
    hosts = served["server.allowedHosts"]
    assert "*" not in hosts and {"localhost", "127.0.0.1", "label.example.org"} <= set(hosts)
    assert set(server.own_names()) <= set(hosts)

    def refused(host: str) -> str:
        scope = {"type": "http", "method": "GET", "headers": [(b"host", host.encode())]}
        return server.why_refused(scope, hosts, [])

    assert refused("evil.example:8501") and not refused("label.example.org:8501")
    assert not any(refused(f"{name}:8501") for name in server.own_names())


def test_one_address_of_the_network_is_its_name(served: dict[str, Any]) -> None:
    server.serve("192.168.1.5", share=True)
    assert "192.168.1.5" in served["server.allowedHosts"] and "*" not in served["server.allowedHosts"]


def test_with_a_log_in_it_may_listen_to_the_network(served: dict[str, Any], tmp_path: Path) -> None:
    server.serve("0.0.0.0", secrets=written(tmp_path))
    assert "label.example.org" in served["server.allowedHosts"]
    assert served["secrets.files"] == [str(tmp_path / "secrets.toml")]


@pytest.mark.parametrize("name", ["", "http://label.example.org", "label.example.org:80", "*", "a b"])
def test_what_is_no_name_of_a_host_is_refused(name: str, served: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="no name of a host"):
        server.serve(host_names=[name])


# --- who it is -------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A log-in is required; the dictionary holds the secrets."""
    held: dict[str, Any] = {
        "auth": {"redirect_uri": "http://testserver/oauth2callback", "cookie_secret": "s" * 32}
    }
    monkeypatch.setattr(login, "_secrets", lambda: held)
    monkeypatch.setattr(login, "_KNOWN", {})
    monkeypatch.setattr(
        "streamlit.web.server.starlette.starlette_websocket.get_cookie_secret", lambda: "s" * 32
    )
    yield held


def test_who_is_known_by_the_providers_own_number(guarded: dict[str, Any]) -> None:
    ann = login.person_of(ANN)
    assert ann is not None and ann.name == "Ann" and ann.key == "https://id.example.org 1"
    # the same person under another name; another person under the same one
    assert login.person_of(ANN | {"name": "Anna", "email": "x@y"}) == ann
    other = login.person_of(ANN | {"sub": "9"})
    assert other is not None and other.name == "Ann (Ann@Example.org)" and other.key != ann.key
    elsewhere = login.person_of(ANN | {"iss": "https://other"})
    assert elsewhere is not None and elsewhere.key != ann.key
    assert login.person_of({}) is None and login.person_of(ANN | {"is_logged_in": False}) is None
    assert login.person_of(ANN | {"sub": ""}) is None


def test_a_list_of_people_lets_in_those_on_it(guarded: dict[str, Any]) -> None:
    guarded["workbench"] = {"people": ["*@example.org"]}
    assert login.person_of(ANN) is not None and login.person_of(BOB) is None
    assert login.person_of(ANN | {"email": "ann@example.org.evil"}) is None
    assert login.person_of(ANN | {"email": ""}) is None
    # an address the provider does not vouch for is anybody's
    for said, known in ((False, False), ("false", False), (True, True), ("true", True)):
        assert (login.person_of(ANN | {"email_verified": said}) is not None) is known


def cookie(claims: dict[str, Any], secret: str = "s" * 32) -> str:
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

    document = json.dumps(claims | {"origin": "http://testserver"})
    return create_signed_value(secret, "_streamlit_user", document).decode()


def test_a_cookie_is_read_and_a_forged_one_is_not(guarded: dict[str, Any]) -> None:
    def of(value: str) -> login.Person | None:
        return login.of_cookies({"_streamlit_user": value})

    assert of(cookie(ANN)) == login.person_of(ANN)
    assert of(cookie(ANN, "t" * 32)) is None and of("nonsense") is None and login.of_cookies({}) is None
    guarded["auth"]["redirect_uri"] = "http://elsewhere/oauth2callback"
    assert of(cookie(ANN)) is None


# --- the desk's routes -------------------------------------------------------------------------------------


@pytest.fixture
def client(guarded: dict[str, Any]) -> Iterator[TestClient]:
    from streamlit import config

    before = config.get_option("server.allowedHosts")
    config.set_option("server.allowedHosts", ["testserver"])
    yield TestClient(login.Entrance(Starlette(routes=routes())))
    config.set_option("server.allowedHosts", before)


def answer(client: TestClient, project: str, token: str, claims: dict[str, Any] | None) -> tuple[int, str]:
    headers = {"x-desk-token": token}
    if claims is not None:
        headers["cookie"] = f"_streamlit_user={cookie(claims)}"
    given = client.post(f"/api/desk/{project}/sync", json={"ops": [], "want": 1, "have": []}, headers=headers)
    return given.status_code, given.text


def test_the_desk_answers_the_person_of_its_token_only(client: TestClient) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    session = Session.create("iris", annotator="Ann", owner=ann.key)
    current.keep(session)
    token = tokens.issue(session.id, "Ann")
    assert answer(client, session.id, token, ANN)[0] == 200
    status, words = answer(client, session.id, token, None)
    assert status == 403 and "not logged in" in words
    status, words = answer(client, session.id, token, BOB)
    assert status == 403 and "Ann's, and you are Bob" in words
    # his own token is of no use for her project, until she shares it
    his = tokens.issue(session.id, "Bob")
    status, words = answer(client, session.id, his, BOB)
    assert status == 403 and "Ann does not share this project with you" in words
    store = Store.open()
    store.share_project(session.id, ann.key, "shared", [bob.key])
    assert answer(client, session.id, his, BOB)[0] == 200
    store.share_project(session.id, ann.key, "private")
    assert answer(client, session.id, his, BOB)[0] == 403
    store.share_project(session.id, ann.key, "open")
    assert answer(client, session.id, his, BOB)[0] == 200
    held = tokens.bearer(his)
    assert held is not None
    where = f"/api/desk/{session.id}/image/1?k={tokens.for_pictures(held)}"
    assert client.get(where).status_code == 403
    cookies = {"cookie": f"_streamlit_user={cookie(BOB)}"}
    assert client.get(where, headers=cookies).status_code == 404  # iris has no pictures
    store.share_project(session.id, ann.key, "private")
    assert client.get(where, headers=cookies).status_code == 403


def _offer(project: str) -> None:
    import streamlit as st

    from workbench.app.shell.downloads import button

    st.query_params["project"] = project
    button("Save", lambda: b"labels", "labels.csv", "save")


def test_a_download_is_the_persons_it_was_offered_to_while_they_may_open_the_project(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    session = Session.create("iris", owner=ann.key)
    store = Store.open()
    store.share_project(session.id, ann.key, "shared", [bob.key])
    monkeypatch.setattr(login, "of_page", lambda: bob)
    shown = AppTest.from_function(_offer, args=(session.id,)).run()
    assert not shown.exception
    (address,) = re.findall(r'href="([^"]*)"', "".join(e.proto.body for e in shown.get("html")))
    # what another person, or nobody, or one who may not any more is told: nothing of the file
    client = TestClient(Starlette(routes=downloads.routes()), base_url="http://testserver")

    def taken(claims: dict[str, Any] | None) -> str:
        headers = {} if claims is None else {"cookie": f"_streamlit_user={cookie(claims)}"}
        answer = client.get(address, headers=headers)
        named = answer.headers["content-disposition"]
        return answer.text if named.endswith("labels.csv") else f"{named} {answer.text}"

    assert taken(BOB) == "labels"
    refused = [taken(ANN), taken(None)]
    store.share_project(session.id, ann.key, "private")
    refused.append(taken(BOB))
    store.share_project(session.id, ann.key, "open")
    assert taken(BOB) == "labels"
    monkeypatch.setattr(downloads, "MINUTES", -1)
    refused.append(taken(BOB))
    assert len(set(refused)) == 1 and "offered no more" in refused[0] and "labels" not in refused[0]


def test_a_room_that_is_not_yours_is_answered_as_if_there_were_none(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    private = Session.create("digits", owner=ann.key).id
    monkeypatch.setattr(login, "of_page", lambda: bob)
    given: dict[str, str] = {}
    monkeypatch.setattr("workbench.app.lessons.together.st.query_params", given)
    said = []
    for room in (private, "0123456789ab"):
        given["room"] = room
        with pytest.raises(InputError) as told:
            together.shared_project()
        said.append((type(told.value), str(told.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/media/ab.png", True),
        ("/_stcore/metrics", True),
        ("//media/ab.png", True),
        ("/_stcore/upload_file/a/b", True),
        ("/api/desk/x/sync", True),
        ("/", False),
        ("/label", False),
        ("/_stcore/health", False),
        ("/oauth2callback", False),
        ("/auth/login", False),
        ("/static/js/index.js", False),
    ],
)
def test_what_is_not_a_page_is_for_who_is_logged_in(path: str, inside: bool, guarded: dict[str, Any]) -> None:
    reached, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    async def send(message: Any) -> None:
        sent.append(message)

    def ask(*headers: tuple[bytes, bytes]) -> None:
        scope = {"type": "http", "method": "GET", "path": path, "headers": list(headers)}
        asyncio.run(login.Entrance(app)(scope, None, send))

    ask()
    assert (len(reached), [m.get("status") for m in sent[:1]]) == ((0, [403]) if inside else (1, []))
    ask((b"cookie", f"a=b; _streamlit_user={cookie(ANN)}".encode()))
    assert reached[-1:] == [path]


# --- projects ---------------------------------------------------------------------------------------------


def test_the_page_that_was_asked_for_comes_after_the_log_in(guarded: dict[str, Any]) -> None:
    def page(request: Request) -> Response:
        return RedirectResponse("/") if request.url.path == login.CALLBACK else HTMLResponse("a page")

    app = login.WayBack(Starlette(routes=[Route("/{path:path}", page)]))
    client = TestClient(app, base_url="https://label.example.org", follow_redirects=False)

    def after(query: str) -> str:
        return str(client.get(f"{login.CALLBACK}?{query}").headers["location"])

    def ask(address: str) -> None:
        client.get(address, headers={"accept": "text/html"})

    assert after("state=a&code=b") == "/"
    ask("/label?project=abc")
    assert after("") == "/"  # after a log-out
    assert after("state=a&error=access_denied") == "/label?project=abc&log-in=denied"
    ask("/label?project=abc&log-in=denied")
    assert after("state=a&code=b") == "/label?project=abc"
    assert after("state=a&code=b") == "/", "it leads there once"
    # a picture is no page, and a first page without anything behind it needs no cookie
    ask("/label?project=abc")
    ask("/media/a.png")
    assert after("state=a&error=x") == "/label?project=abc&log-in=denied"
    ask("/")
    assert after("state=a&error=x") == "/?log-in=denied"
    for elsewhere in ("//evil.example", "https://evil.example", "/label\r\nx: y", "/\\evil.example"):
        client.cookies.set(login.COOKIE, quote(elsewhere, safe=""))
        assert after("state=a&code=b") == "/"


def test_lists_hold_what_a_person_may_open(guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    store = Store.open()
    made = {
        who: Session.create("iris", name=who, owner=who and owner.key).id
        for who, owner in (("ann", ann), ("bob", bob))
    }
    made[""] = Session.create("iris", name="old").id
    sitting: list[login.Person | None] = [None]
    monkeypatch.setattr(login, "of_page", lambda: sitting[0])

    def seen() -> set[str]:
        return {r.id for r in sharing.visible(store.projects())} & set(made.values())

    def opens(project: str) -> bool:
        try:
            current.entered(project)
        except login.NotYoursError:
            return False
        return True

    assert seen() == set() and not opens(made[""])
    sitting[0] = ann
    assert seen() == {made["ann"], made[""]}
    assert opens(made["ann"]) and opens(made[""]) and not opens(made["bob"]) and not opens("nope")
    records = {r.id: r for r in store.projects()}
    assert login.may_change(records[made["ann"]]) and login.may_change(records[made[""]])
    assert not login.may_change(records[made["bob"]])
    store.share_project(made["bob"], bob.key, "open")
    assert opens(made["bob"]) and not login.may_change({r.id: r for r in store.projects()}[made["bob"]])


@pytest.mark.parametrize("page", ["data", "label"])
def test_a_page_asks_the_database_no_more_often_with_more_projects(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    monkeypatch.setattr(login, "of_page", lambda: ann)
    store = Store.open()
    first = Session.create("iris", name="of Ann", owner=ann.key)
    current.keep(first)

    def n_statements() -> int:
        sent: list[str] = []

        def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
            sent.append(statement)

        test = application()
        test.query_params["project"] = first.id
        test.run()
        test.switch_page(place(page))
        test.query_params["project"] = first.id
        test.run()
        event.listen(store._engine, "before_cursor_execute", note)
        test.run()
        event.remove(store._engine, "before_cursor_execute", note)
        assert not test.exception and sent
        return len(sent)

    for copy in range(9):  # so many are a list
        store.duplicate_project(first.id, f"copy {copy}", ann.key)
    n = n_statements()
    for copy in range(9):
        shared = store.duplicate_project(first.id, f"shared {copy}", (ann, bob)[copy % 2].key)
        store.share_project(shared.id, (ann, bob)[copy % 2].key, "shared", [(bob, ann)[copy % 2].key])
    # what is read once in a while makes one or two more; a question a project would make nine more
    assert n_statements() < n + 9


def test_a_comparison_is_of_its_project_or_of_whoever_started_it(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    store = Store.open()
    private = Session.create("iris", owner=ann.key).id
    study = StudySpec("s", ("iris",), ("logistic-regression",), ("margin",), seeds=1, budget=12)
    spec = study.to_json()
    for name, project, owner in (
        ("of-project", private, ann.key),
        ("of-ann", None, ann.key),
        ("of-nobody", None, None),
        ("of-deleted", "gone", ann.key),
        ("of-deleted-before", "gone", None),
    ):
        store.runs.save_study(name, spec, project=project, owner=owner)
    sitting: list[login.Person | None] = [None]
    monkeypatch.setattr(login, "of_page", lambda: sitting[0])

    def seen() -> set[str]:
        return {one.id for one in comparison.all_of()}

    assert seen() == set()
    sitting[0] = bob
    assert seen() == {"of-nobody"}
    store.share_project(private, ann.key, "open")
    assert seen() == {"of-nobody", "of-project"}
    sitting[0] = ann
    assert seen() == {"of-nobody", "of-project", "of-ann", "of-deleted"}
    monkeypatch.setattr(comparison, "_submit", lambda *_: None)
    started = comparison.start(StudySpec("t", ("iris",), ("logistic-regression",), ("margin",), budget=12))
    assert store.runs.study(started).owner == ann.key


def test_an_attack_is_of_its_project_or_of_whoever_started_it(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    private = Session.create("digits", owner=ann.key).id
    job = object()
    monkeypatch.setattr(attack_form, "_OF", {"of-project": (private, bob.key), "of-ann": (None, ann.key)})
    monkeypatch.setattr(attack_form, "manager", lambda: SimpleNamespace(get=lambda token, kind: job))
    sitting: list[login.Person | None] = [None]
    monkeypatch.setattr(login, "of_page", lambda: sitting[0])

    def seen() -> list[str]:
        return [token for token in ("of-project", "of-ann", "of-nobody") if attack_form.job_of(token) is job]

    assert seen() == []
    sitting[0] = bob
    assert seen() == []
    sitting[0] = ann
    assert seen() == ["of-project", "of-ann"]
    Store.open().share_project(private, ann.key, "open")
    sitting[0] = bob
    assert seen() == ["of-project"]


def test_without_a_log_in_everything_is_the_local_persons(home: Path) -> None:
    session = Session.create("iris", owner="somebody")
    record = Store.open().summary(session.id)
    assert record is not None and record.access == "private"
    assert not login.required() and login.who_may(None, record, "open") and login.may_change(record)
    assert record in sharing.visible(Store.open().projects()) and current.entered(session.id).id == session.id


def test_pages_are_drawn_for_who_is_logged_in(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = login.person_of(ANN), login.person_of(BOB)
    assert ann is not None and bob is not None
    session = Session.create("iris", name="Petals", classifier="logistic-regression", owner=ann.key)
    for item, name in ((0, "setosa"), (60, "versicolor"), (110, "virginica")):
        session.items.label(int(session.pool.trainable[item]), name)
    session.refit()
    current.keep(session)
    sitting: list[login.Person | None] = [None]
    monkeypatch.setattr(login, "of_page", lambda: sitting[0])
    test = application()
    test.query_params["project"] = session.id
    test.run()
    assert not test.exception
    assert [b.key for b in test.button] == ["log-in-default"] and "Petals" not in str(test.main)
    # somebody else's project is as if it were not there
    sitting[0] = bob
    test.run()
    assert "not shared with you" in test.error[0].value and "Petals" not in str(test.main)
    # a point of the map is labelled in the gallery beside it by who sits here
    sitting[0] = ann
    shown: list[Any] = []
    monkeypatch.setattr(
        "workbench.app.desk.mount_gallery", lambda *given, **more: shown.append((given, more))
    )
    test = application()
    test.run()
    test.switch_page(place("uncertainty"))
    test.query_params["project"] = session.id
    item = int(session.pool.trainable[30])
    test.session_state["selected"], test.session_state["selected-in"] = [item], session.id
    test.run()
    assert not test.exception
    (who, tiles, _), more = shown[-1]
    assert (
        who.annotator == "Ann"
        and [tile["item"] for tile in tiles] == [item]
        and more == {"beside": True, "offered": False}
    )


def test_the_way_back_is_kept_below_the_servers_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers under one name do not read each other's."""
    monkeypatch.setattr(login, "is_encrypted", lambda: False)
    for base, path in (("", "/"), ("wb", "/wb/")):
        monkeypatch.setattr("streamlit.get_option", lambda name, base=base: base)
        assert f"; Path={path}; HttpOnly" in login._cookie("/label")
