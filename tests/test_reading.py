"""The guard around every reader: one sentence, whatever a library raises."""

import json
import struct
import zlib

import pytest

from workbench.errors import Cancelled, InputError
from workbench.reading import cut, listed, parse_json, reading


@pytest.mark.parametrize(
    "error",
    [
        RecursionError("maximum recursion depth"),
        zlib.error("Error -3"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        OverflowError("int too large"),
        struct.error("unpack requires"),
        ValueError("x" * 100_000),
        KeyError("k" * 100_000),
        MemoryError(),
        AssertionError(),
        ZeroDivisionError("line one\nline two"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_is_raised_becomes_one_short_sentence(error: Exception) -> None:
    with pytest.raises(InputError) as caught, reading("a.bin", "a model", "Get it again."):
        raise error
    message = str(caught.value)
    assert message.startswith("a.bin is not a model that can be read: ") and message.endswith("Get it again.")
    assert len(message) < 260 and "\n" not in message
    assert caught.value.__cause__ is error


def test_our_own_sentences_pass_but_never_repeat_a_long_input() -> None:
    own = InputError("Column 'a' is empty. Fill it in.")
    with pytest.raises(InputError) as caught, reading("a.csv"):
        raise own
    assert caught.value is own
    with pytest.raises(InputError) as caught, reading("a.csv"):
        raise InputError(f"Column {'z' * 5000!r} is empty. Fill it in.")
    assert str(caught.value).count("z") <= 200
    assert str(caught.value).startswith("Column 'zz") and str(caught.value).endswith("is empty. Fill it in.")
    options = '"name": "use", ' * 20
    known = f"Is 'Kind?' or the items' 'x' so? Say columns={{{options}}} ('x' is). 'y' is empty."
    with pytest.raises(InputError) as caught, reading("a.csv"):  # between two quoted words nothing is quoted
        raise InputError(known)
    assert str(caught.value) == known
    assert cut("z" * 5000).count("z") < 60 and listed(["z" * 5000] * 50).count("z") < 200


def test_a_cancelled_job_and_an_interrupt_are_no_fault_of_the_file() -> None:
    for error in (Cancelled(), KeyboardInterrupt()):
        with pytest.raises(type(error)), reading("a.csv"):
            raise error


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "1" * 5000, "{", b"\xff\xfe", '{"a": 1} trailing'],
    ids=lambda text: repr(text[:6]),
)
def test_no_json_says_so(text: str | bytes) -> None:
    with pytest.raises(InputError, match="spec is not JSON that can be read"):
        parse_json(text, "spec")
    assert parse_json(json.dumps({"a": [1]}).encode(), "spec") == {"a": [1]}
