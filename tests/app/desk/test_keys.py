import pytest

from workbench.app.desk.keys import COMMANDS, MAX_BUTTONS, keys_for


def test_digits_have_their_own_keys() -> None:
    assert keys_for(list("0123456789")).classes == tuple("0123456789")


def test_named_classes_have_one_to_nine_and_zero() -> None:
    assert keys_for([f"class {i}" for i in range(10)]).classes == tuple("1234567890")


def test_more_than_ten_classes_have_letters_too() -> None:
    keys = keys_for([f"class {i}" for i in range(20)])
    assert len(set(keys.classes)) == 20
    assert not set(keys.classes) & set(keys.commands.values())


def test_the_alphabet_keeps_its_letters() -> None:
    letters = [chr(c) for c in range(ord("A"), ord("Z") + 1)]
    keys = keys_for(letters)
    own = {name.lower() for name in letters}
    assert {k for k in keys.classes if k.isalpha()} == own
    assert len(set(keys.classes)) == 26
    letters_of = {"skip": "s", "unsure": "u", "undo": "z", "redo": "y", "flag": "f", "note": "n", "grid": "g"}
    moved = {name: f"Shift+{letter}" for name, letter in letters_of.items()} | {
        "like": "Shift+m",
        "instructions": "Shift+h",
        "questions": "Shift+q",
    }
    assert keys.commands == COMMANDS | moved | {"clear": "Backspace", "choose": "Shift+x", "keep": "Shift+k"}


@pytest.mark.parametrize(
    ("names", "shortcuts", "choose"),
    [
        (["cat", "dog"], {}, "x"),
        (["cat", "ox"], {"ox": "x"}, "Shift+x"),
        ([f"c{i}" for i in range(77)], {}, "Alt+x"),
    ],
)
def test_the_gallerys_own_commands_make_room(
    names: list[str], shortcuts: dict[str, str], choose: str
) -> None:
    keys = keys_for(names, shortcuts)
    assert (keys.commands["clear"], keys.commands["choose"]) == ("Backspace", choose)
    held = [key for key in (*keys.classes, *keys.commands.values()) if key]
    assert len(set(held)) == len(held)


def test_a_projects_own_keys() -> None:
    names = ["cat", "dog", "owl"]
    keys = keys_for(names, {"owl": "s", "dog": "1"})
    assert keys.classes[1:] == ("1", "s") and len(set(keys.classes)) == 3
    assert keys.commands["skip"] == "Shift+s"
    assert keys_for([f"c{i}" for i in range(77)]).commands["skip"] == "Alt+s"


def test_too_many_classes_are_searched_instead() -> None:
    assert keys_for([str(i) * 2 for i in range(MAX_BUTTONS + 1)]).classes == ()


@pytest.mark.parametrize("classes", [["a", "A"], ["é", "ü"], ["**x**", "<script>"], ["c", "r"], ["1", "one"]])
def test_keys_are_never_shared(classes: list[str]) -> None:
    keys = keys_for(classes)
    assert len(set(keys.classes)) == len(classes)
    assert not set(keys.classes) & set(keys.commands.values())
