"""People log in at a provider of their own, label under their name, and see what they may see."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.test_labelling import DESK, at_the_desk, press_and_wait
from workbench.sessions import Session
from workbench.store import Store

SERVE = (
    "-c",
    "import sys; from pathlib import Path; from workbench.app.server import serve; "
    "serve(port=int(sys.argv[1]), open_browser=False, secrets=Path(sys.argv[2]))",
    "{port}",
)
pytestmark = pytest.mark.slow
PEOPLE = {"ann": "Ann Lee", "bob": "Bob Ray", "eve": "Eve Fox"}


@dataclass
class Team:
    """A server with a log-in, and the browser people come with."""

    server: Server
    browser: Any

    def come(self, who: str) -> Any:
        """A page of a browser of their own, logged in."""
        context = self.browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
        context.set_default_timeout(PATIENCE)
        # the provider's page asks another host for its looks
        context.route("**/*.css", lambda r: r.abort() if "jsdelivr" in r.request.url else r.continue_())
        page = context.new_page()
        page.goto(self.server.url)
        page.click(".st-key-log-in-default button")
        page.fill("input[name=sub]", who)
        page.click("text=Authorize >> nth=-1")
        page.wait_for_selector(".st-key-log-out")
        settled(page)
        return page

    def store(self) -> Store:
        """The server's database."""
        return Store.open(self.server.home / "workbench.sqlite")


def secrets(path: Path, port: int, provider: int, more: str = "") -> Path:
    path.write_text(
        f"""[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "{"s3cr3t" * 8}"
client_id = "workbench"
client_secret = "of-the-client"
server_metadata_url = "http://localhost:{provider}/.well-known/openid-configuration"
{more}
"""
    )
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def team(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    mock = pytest.importorskip("oidc_provider_mock")
    folder = tmp_path_factory.mktemp("team")
    people = [
        mock.User(sub=key, claims={"name": name, "email": f"{key}@example.org"})
        for key, name in PEOPLE.items()
    ]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with mock.run_server_in_thread(user_claims=people) as provider:
        file = secrets(
            folder / "secrets.toml",
            port,
            provider.server_port,
            '[workbench]\npeople = ["ann@*", "bob@example.org"]',
        )
        os.environ.pop("WORKBENCH_DATABASE_URL", None)
        server = Server(folder / "home", command=(*SERVE, str(file)), port=port).start()
        yield Team(server, browser)
        server.stop()


def ask_desk(page: Any, project: str, token: str | None = None) -> tuple[int, str]:
    """The desk's own route, asked from the page."""
    return tuple(
        page.evaluate(
            """async ([project, token]) => {
                const answer = await fetch(`/api/desk/${project}/sync`, {method: "POST",
                    headers: {"content-type": "application/json", "x-desk-token": token || ""},
                    body: JSON.stringify({ops: [], want: 1, have: []})});
                return [answer.status, await answer.text()];
            }""",
            [project, token],
        )
    )


def token_of(project: str, person: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A token as the page of that person has it."""
    from workbench.app.desk import tokens

    monkeypatch.setenv("WORKBENCH_HOME", str(home))
    return tokens.issue(project, person)


def test_a_person_logs_in_labels_under_their_name_and_leaves(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = team.come("ann")
    assert "Ann Lee" in page.inner_text("[data-testid=stSidebar]")
    page.click(".st-key-start-digits button")
    at_the_desk(page)
    project = page.url.partition("project=")[2]
    assert not page.locator("text=Your name").count()
    press_and_wait(page, "3")
    press_and_wait(page, "5")
    store = team.store()
    labels = [e for e in store.events(project) if e.kind == "label"]
    assert [e.annotator for e in labels] == ["Ann Lee", "Ann Lee"]
    assert store.summary(project).access == "private"  # type: ignore[union-attr]
    # another page of hers may speak with the desk; without the cookie, and with another's token, nobody may
    token = token_of(project, "Ann Lee", team.server.home, monkeypatch)
    assert ask_desk(page, project, token)[0] == 200
    forged = token_of(project, "Bob Ray", team.server.home, monkeypatch)
    status, words = ask_desk(page, project, forged)
    assert status == 403 and "Bob Ray" in words
    stranger = team.browser.new_context().new_page()
    stranger.goto(f"{team.server.url}/label?project={project}")
    stranger.wait_for_selector(".st-key-log-in-default")
    assert "Ann" not in stranger.inner_text("body") and not stranger.locator(".desk").count()
    status, words = ask_desk(stranger, project, token)
    assert status == 403 and "not logged in" in words
    assert stranger.request.get(f"{team.server.url}/media/nothing.png").status == 403
    stranger.context.close()
    # the log holds no ids and no secrets
    log = (team.server.home / "logs" / "workbench.log").read_text()
    assert project not in log and token not in log and "of-the-client" not in log and "s3cr3t" not in log
    # she leaves; what she had open is of no use any more
    page.click(".st-key-log-out button")
    page.wait_for_function("!location.href.includes('project=')")
    page.goto(f"{team.server.url}/label?project={project}")
    page.wait_for_selector(".st-key-log-in-default")
    assert ask_desk(page, project, token)[0] == 403
    # the log-in stands at the address of the project; broken off it says so, and done it leads there
    page.click(".st-key-log-in-default button")
    page.click("text=Deny")
    page.get_by_text("the log-in was broken off, or refused").wait_for()
    page.click(".st-key-log-in-default button")
    page.fill("input[name=sub]", "ann")
    page.click("text=Authorize >> nth=-1")
    at_the_desk(page)
    assert page.url == f"{team.server.url}/label?project={project}"
    page.context.close()


def test_projects_are_private_shared_or_open(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = team.come("ann"), team.come("bob")
    store = team.store()
    keys = {name: key for key, name in store.people.names().items()}
    own = Session.create("iris", name="Petals", owner=keys["Ann Lee"], annotator="Ann Lee", store=store)
    old = Session.create("wine", name="Old cellar", annotator="me", store=store)
    row, access = f".st-key-project-{own.id}", f".st-key-access-{own.id}"
    visit(bob, team.server.url)
    bob.wait_for_selector(f".st-key-project-{old.id}")  # one that belongs to nobody is open
    assert not bob.locator(row).count()
    bob.goto(f"{team.server.url}/label?project={own.id}")
    bob.wait_for_selector("text=not shared with you")
    assert not bob.locator(".desk").count() and "Petals" not in bob.inner_text("body")
    bobs = token_of(own.id, "Bob Ray", team.server.home, monkeypatch)
    status, words = ask_desk(bob, own.id, bobs)
    assert status == 403 and "Ann Lee does not share this project with you" in words

    visit(ann, team.server.url)
    ann.click(f"{access} button")
    ann.click("[data-testid=stPopoverBody] >> text=Shared")
    ann.click("[data-testid=stPopoverBody] input[role=combobox]")
    ann.click("[role=option] >> text=Bob Ray")
    ann.keyboard.press("Escape")
    ann.click(f".st-key-access-save-{own.id} button")
    ann.wait_for_selector(f"{row} >> text=shared with Bob Ray")
    ann.locator("[data-testid=stPopoverBody]").wait_for(state="hidden")
    found = store.summary(own.id)
    assert found is not None and (found.access, found.members) == ("shared", (keys["Bob Ray"],))

    bob.goto(f"{team.server.url}/label?project={own.id}")
    at_the_desk(bob)
    bob.keyboard.press("1")
    bob.wait_for_function(f"() => {DESK}?.querySelector('.status')?.innerText.startsWith('all saved')")
    assert ask_desk(bob, own.id, bobs)[0] == 200
    visit(bob, team.server.url)
    bob.wait_for_selector(f"{row} >> text=of Ann Lee")
    assert not bob.locator(f".st-key-delete-{own.id}").count()
    bob.click(f"{access} button")
    bob.wait_for_selector("text=Its owner says who may open it")
    assert not bob.locator(f".st-key-access-save-{own.id}").count()

    # taken back, it is shut at once also for the page that is open
    bob.goto(f"{team.server.url}/label?project={own.id}")
    at_the_desk(bob)
    store.share_project(own.id, keys["Ann Lee"], "private")
    assert ask_desk(bob, own.id, bobs)[0] == 403
    bob.keyboard.press("2")
    bob.locator(".desk .empty", has_text="Ann Lee does not share this project with you any more").wait_for()
    bob.locator(".desk .status", has_text="closed to you; 1 kept in this browser").wait_for()
    with bob.expect_download() as download:
        bob.click(".desk [data-command=kept]")
    assert [one["class"] for one in json.loads(Path(download.value.path()).read_text())] == [own.classes[1]]
    bob.reload()
    bob.wait_for_selector("text=not shared with you")
    bob.get_by_text("1 answer of yours waits in this browser").wait_for()
    # shared again, it is stored
    store.share_project(own.id, keys["Ann Lee"], "shared", [keys["Bob Ray"]])
    bob.goto(f"{team.server.url}/label?project={own.id}")
    at_the_desk(bob)
    assert [e.payload["class"] for e in store.events(own.id) if e.kind == "label"] == list(own.classes[:2])
    ann.context.close()
    bob.context.close()


def test_somebody_who_is_not_on_the_list_is_told_so(team: Team) -> None:
    page = team.come("eve")
    assert "eve@example.org may not use this server" in page.inner_text("body")
    assert not page.locator(".st-key-pools").count() and "Eve Fox" not in team.store().people.names().values()
    page.context.close()
