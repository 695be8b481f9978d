"""A project whose file has moved: the pages offer its labels and ask where the file is."""

import shutil
from pathlib import Path

import pytest

from tests.app.pages import open_page, texts
from workbench.app.access import current, login
from workbench.app.serving.streamlit_private import set_option
from workbench.sessions import Session


@pytest.fixture
def moved(home: Path, tmp_path: Path) -> tuple[Session, Path]:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(40)))
    session = Session.create(
        str(path), name="mine", classes=["x", "y"], classifier="logistic-regression", policy="margin"
    )
    session.items.label([1, 2, 3], "x")
    current.forget(session.id)
    shutil.move(path, tmp_path / "there.csv")
    return session, tmp_path / "there.csv"


@pytest.mark.parametrize("page", ["data", "label"])
def test_the_file_is_asked_for_and_found(moved: tuple[Session, Path], page: str) -> None:
    session, there = moved
    test = open_page(page, session.id if page == "label" else None)
    if page == "label":
        assert "cannot be opened" in texts(test)
    assert any("3 labels" in b.proto.body for b in test.get("html"))
    place = next(t for t in test.text_input if t.key == f"new-place-{session.id}")
    place.set_value(str(there.parent / "nope.csv")).run()
    next(b for b in test.button if b.key == f"relocate-{session.id}").click().run()
    assert "There is no file" in texts(test)
    next(t for t in test.text_input if t.key == f"new-place-{session.id}").set_value(str(there)).run()
    next(b for b in test.button if b.key == f"relocate-{session.id}").click().run()
    assert not test.exception
    assert "cannot be opened" not in texts(test)
    assert not [t for t in test.text_input if t.key == f"new-place-{session.id}"]
    assert current.opened(session.id).state.n_labelled == 3


@pytest.mark.parametrize(
    ("address", "logs_in", "may"),
    [("127.0.0.1", False, True), ("0.0.0.0", False, False), ("", False, False), ("127.0.0.1", True, False)],
)
def test_paths_are_typed_on_the_servers_own_machine_alone(
    moved: tuple[Session, Path], monkeypatch: pytest.MonkeyPatch, address: str, logs_in: bool, may: bool
) -> None:
    monkeypatch.setattr(login, "required", lambda: logs_in)
    set_option("server.address", address)
    try:
        assert login.may_name_paths() is may
        if not logs_in:
            keys = {t.key for t in open_page("data").text_input}
            assert ({"folder-path", f"new-place-{moved[0].id}"} <= keys) is may
            assert ("folder-path" in keys) is may
    finally:
        set_option("server.address", "127.0.0.1")
