"""A project's bundle opens again as the same project, on another machine too."""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.databases import new_project
from tests.oracles import step
from tests.pools.test_texts import table
from workbench.certificates import Promise
from workbench.errors import InputError
from workbench.exchange.bundles import write_zip
from workbench.exchange.manifests import json_text, sealed
from workbench.exchange.projects import is_project_bundle, open_bundle, wanted_by, write_project_bundle
from workbench.sessions import ArrayOracle, Session
from workbench.sessions.checks import Candidates, plan_of
from workbench.sessions.operations import Operation
from workbench.store import Store


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Store]]:
    here, there = Store.open(tmp_path / "here.sqlite"), Store.open(tmp_path / "there.sqlite")
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    yield here, there
    here.close()
    there.close()


def zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    write_zip(buffer, folder)
    return buffer.getvalue()


def write_without_pool(folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("workbench.exchange.projects.MAX_POOL", 0)
        write_project_bundle(folder, session)


def busy(pool: str, store: Store, **more: object) -> Session:
    """A project in which everything happened."""
    session = new_project(store, pool, **more)
    for _ in range(5):
        step(session, ArrayOracle(session.pool))
    bob = session.as_annotator("bob")
    items = session.pool.trainable[-6:].tolist()
    session.items.label(items[0], session.classes[0])
    bob.items.label(items[0], session.classes[1])
    session.undo()
    session.redo()
    session.items.note(items[1], "=odd, 'quoted'\nété")
    session.items.flag(items[2])
    ask = bob.ask()[0]
    bob.apply([Operation("op-1", "skip", ask=ask.id)])
    session.classes.rename(session.classes[0], "renamed, with comma")
    session.items.import_labels([(items[3], session.classes[1])], "a file")
    session.classes.add("later")
    return session


def state_of(session: Session) -> dict[str, object]:
    """Sum of a project, without the numbers of its events."""
    state = session.state
    votes = {
        item: {who: (vote.key, vote.time, vote.role) for who, vote in given.items()}
        for item, given in state.votes.items()
    }
    return {
        "votes": votes,
        "classes": state.class_names,
        "skipped": state.skipped,
        "unsure": state.unsure,
        "flagged": state.flagged,
        "notes": state.notes,
        "evaluation": state.evaluation,
        "codes": state.codes,
        "asks": {key: (ask.item, ask.role, ask.answered) for key, ask in state.asks.items()},
        "kinds": [(event.kind, event.annotator, event.time) for event in session.log.events],
        "rounds": [r.to_json() for r in session.rounds],
        "settings": dict(session.settings),
    }


def test_a_project_comes_back_with_all_its_history(tmp_path: Path, stores: tuple[Store, Store]) -> None:
    here, there = stores
    session = busy("iris", here, name="Flowers")
    write_project_bundle(tmp_path / "b", session)
    assert is_project_bundle(tmp_path / "b") and is_project_bundle(zipped(tmp_path / "b"))
    for source in (tmp_path / "b", zipped(tmp_path / "b")):
        made = open_bundle(source, store=there)
        again = Session.open(made.id, annotator="ann", store=there)
        assert state_of(again) == state_of(session) and made.name == "Flowers"
        assert again.pool.test is not None and session.pool.test is not None
        np.testing.assert_array_equal(again.pool.test.test, session.pool.test.test)
        assert again.model is not None and session.model is not None
        np.testing.assert_array_equal(again.model.probabilities, session.model.probabilities)
    # it goes on from there, and what is taken back is one's own last decision still
    again.undo()
    step(again, ArrayOracle(again.pool))
    write_project_bundle(tmp_path / "c", again)
    assert open_bundle(tmp_path / "c", store=there, name="Third").name == "Third"


def test_the_pool_travels_with_it(
    tmp_path: Path, stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = stores
    place = tmp_path / "mine" / "rows.csv"
    place.parent.mkdir()
    place.write_text("a,b,label\n" + "".join(f"{i},{i * 7 % 13},{'xy'[i % 2]}\n" for i in range(40)))
    session = busy(str(place), here, target="label")
    write_project_bundle(tmp_path / "b", session)
    write_without_pool(tmp_path / "bare", session, monkeypatch)
    moved = tmp_path / "elsewhere.csv"
    shutil.move(place, moved)
    made = open_bundle(tmp_path / "b", store=there)
    assert Path(str(made.pool["name"])).is_relative_to(tmp_path / "home")
    assert state_of(Session.open(made.id, annotator="ann", store=there)) == state_of(session)
    with pytest.raises(InputError, match=r"not in the bundle\. Say where it lies"):
        open_bundle(tmp_path / "bare", store=there)
    made = open_bundle(tmp_path / "bare", pool=moved, store=there)
    assert made.pool["name"] == str(moved)
    moved.write_text(moved.read_text().replace("3,8,y", "3,9,y"))
    with pytest.raises(InputError, match=r"row 3|item 3|changed"):
        open_bundle(tmp_path / "bare", pool=moved, store=there)


def test_a_project_whose_texts_grew_opens_with_the_features_it_was_made_with(
    tmp_path: Path, stores: tuple[Store, Store]
) -> None:
    here, there = stores
    file = tmp_path / "q.csv"
    file.write_bytes(table(40))
    made = busy(str(file), here, pool_options={"text_column": "question"}, target="kind")
    file.write_bytes(table(90))
    grown = Session.open(made.id, store=here)
    assert len(grown.pool) == 90
    step(grown, ArrayOracle(grown.pool))
    write_project_bundle(tmp_path / "b", grown)
    opened = Session.open(open_bundle(tmp_path / "b", store=there).id, store=there)
    assert opened.pool.feature_map.to_json() == grown.pool.feature_map.to_json()
    assert opened.model is not None and grown.model is not None
    np.testing.assert_allclose(opened.model.probabilities, grown.model.probabilities, atol=1e-6)


def test_a_bundle_makes_nobody_ask_another_host(
    tmp_path: Path, stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("workbench.pools.datasets.known._from_openml", lambda *a: asked.append("openml"))
    monkeypatch.setattr("workbench.pools.datasets.known._from_sklearn", lambda *a: asked.append("sklearn"))
    write_project_bundle(tmp_path / "b", busy("iris", stores[0]))
    run, project = tmp_path / "b" / "run.json", tmp_path / "b" / "project.json"
    about = json.loads(project.read_text())
    about["pool"] = {"name": "openml:31", "options": {}}
    project.write_text(json.dumps(about))
    document = json.loads(run.read_text())
    document["pool"]["reference"] = about["pool"]
    names = list(document.pop("files"))
    document.pop("sha256")
    run.write_text(json_text(sealed(document, tmp_path / "b", names)))
    assert wanted_by(tmp_path / "b").pool == "openml:31"
    with pytest.raises(InputError, match=r"'openml:31', which is not in the bundle\. Say where"):
        open_bundle(tmp_path / "b", store=stores[1])
    assert not asked
    with pytest.raises(InputError):
        open_bundle(tmp_path / "b", pool="openml:31", store=stores[1])
    assert asked, "a person who names the set is answered"


def plan_about(items: list[int]) -> dict[str, object]:
    """Payload of an event that froze labels of these items, whatever they are."""
    none = np.zeros(len(items))
    candidates = Candidates("model", np.array(items), none.astype(int), none, ("x",), 0, (none, none))
    ids = [str(item) for item in range(len(items))]
    return plan_of(Promise(len(items), 0.05, 0.95, (len(items),)), candidates, ids, "a" * 64)


def damaged(folder: Path, kind: str) -> None:
    run = folder / "run.json"
    if kind == "cut":
        run.write_bytes(run.read_bytes()[:200])
    elif kind == "changed":
        (folder / "events.jsonl").write_text("{}\n")
    elif kind == "missing":
        (folder / "items.npz").unlink()
    else:  # a document that was written anew around it
        document = json.loads(run.read_text())
        names = list(document.pop("files"))
        document.pop("sha256")
        lines = (folder / "events.jsonl").read_text().splitlines()
        event = json.loads(lines[-1])
        event |= {"payload": [1]} if kind == "payload" else {"kind": "no such"} if kind == "kind" else {}
        if kind == "frozen":
            event = {**event, "kind": "checks-started", "payload": plan_about([0, -1])}
        if kind == "item":
            event = {**event, "kind": "note", "payload": {"item": 10_000, "text": "x"}}
        (folder / "events.jsonl").write_text("\n".join([*lines[:-1], json.dumps(event)]))
        run.write_text(json_text(sealed(document, folder, names)))


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("cut", "run.json"),
        ("changed", "damaged: events.jsonl"),
        ("missing", r"damaged: items\.npz"),
        ("payload", r"line \d+ is damaged: 'payload' is \[1\]"),
        ("kind", "no such"),
        ("item", "names an item there is not"),
        ("frozen", "names an item there is not"),
    ],
)
def test_a_damaged_bundle_is_one_sentence(
    tmp_path: Path, stores: tuple[Store, Store], kind: str, match: str
) -> None:
    here, there = stores
    write_project_bundle(tmp_path / "b", busy("iris", here))
    damaged(tmp_path / "b", kind)
    with pytest.raises(InputError, match=match):
        open_bundle(tmp_path / "b", store=there)
    assert there.projects() == []


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/b/c/d.txt"])
def test_a_zip_writes_nothing_outside_of_its_folder(
    tmp_path: Path, stores: tuple[Store, Store], name: str
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("run.json", '{"format": 4, "kind": "project"}')
        archive.writestr(name, "x")
    with pytest.raises(InputError):
        open_bundle(stream.getvalue(), store=stores[1])
    with pytest.raises(InputError, match="not a zip of a bundle"):
        open_bundle(b"nothing", store=stores[1])
    assert not is_project_bundle(b"nothing")


def test_where_the_pool_lies_is_asked_only_where_the_bundle_does_not_say(
    tmp_path: Path, stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.csv").write_text("a,class\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(40)))
    own = new_project(stores[0], str(tmp_path / "own.csv"), target="class")
    write_project_bundle(tmp_path / "with", own)
    write_without_pool(tmp_path / "without", own, monkeypatch)
    write_project_bundle(tmp_path / "named", new_project(stores[0], "iris"))
    found = {name: wanted_by(zipped(tmp_path / name)).pool for name in ("with", "without", "named")}
    assert found == {"with": "", "without": str(tmp_path / "own.csv"), "named": ""}
