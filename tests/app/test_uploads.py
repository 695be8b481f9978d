from pathlib import Path

import pytest

from workbench.app import uploads
from workbench.app.forms import class_names
from workbench.errors import InputError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    return tmp_path


def test_an_upload_is_kept_by_its_content(home: Path) -> None:
    first = uploads.keep("my data.csv", b"a,b\n1,2\n")
    assert first == uploads.keep("my data.csv", b"a,b\n1,2\n")
    assert first != uploads.keep("my data.csv", b"a,b\n1,3\n")
    assert first.read_bytes() == b"a,b\n1,2\n"
    assert first.name == "my-data.csv"
    assert [p.name for p in first.parent.iterdir()] == ["my-data.csv"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.csv", "..\\..\\boot.csv", "/abs/x.csv", "...csv", "a" * 400 + ".csv"]
)
def test_a_name_cannot_leave_the_folder(home: Path, name: str) -> None:
    path = uploads.keep(name, b"x")
    assert path.resolve().is_relative_to(home.resolve() / "uploads")
    assert len(path.name) <= 101 and path.name.endswith("csv")


@pytest.mark.parametrize(("name", "data", "words"), [("x.exe", b"x", "not one of"), ("x.csv", b"", "empty")])
def test_what_cannot_be_a_pool_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        uploads.keep(name, data)


def test_size_is_checked_on_the_server_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="can be uploaded"):
        uploads.check("x.csv", b"x" * 11)


def test_decisions_add_up() -> None:
    options = uploads.merged({"missing": "drop", "exclude": ["a"]}, {"exclude": ["b"]})
    assert options == {"missing": "drop", "exclude": ["a", "b"]}
    assert uploads.merged({"missing": "drop"}, {"missing": "impute"}) == {"missing": "impute"}


@pytest.mark.parametrize("text", ["good\nbad", "good, bad", "  good \n\n bad \n"])
def test_class_names_as_typed(text: str) -> None:
    assert class_names(text) == ("good", "bad")


def test_class_names_with_commas_on_lines_of_their_own() -> None:
    assert class_names("a, b\nc") == ("a, b", "c")


@pytest.mark.parametrize(("text", "words"), [("", "two classes"), ("one", "two classes"), ("a\na", "twice")])
def test_class_names_that_do_not_do(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        class_names(text)
