"""Reading what strangers wrote: one guard that turns whatever a library raises into one sentence."""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unicodedata import normalize

from workbench.errors import Cancelled, InputError

ECHO = 200
"""Most characters of the input that a message repeats."""

_ODD = re.compile("[\0\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_ADDRESS = re.compile(r"\s*<[\w.]+ object at 0x[0-9a-fA-F]+>")  # in memory, where nobody can look
_QUOTED = re.compile(r"(?<!\w)b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)


@contextmanager
def reading(what: str, form: str = "", advice: str = "") -> Iterator[None]:
    """Turn every exception raised inside into an InputError that a person can act on.

    InputErrors pass as they are, only shortened where they repeat too much of the input. The exception
    behind the sentence stays its `__cause__`, so that a fault of ours can be found.

    Args:
        what: the file, or the part of it, that is read ("data.csv").
        form: what it should be ("a Parquet file"); "" says only that it cannot be read.
        advice: what to do, a sentence.

    Raises:
        InputError: whatever went wrong inside, but for a cancelled job and an interrupt.
    """
    try:
        yield
    except Cancelled:
        raise
    except InputError as error:
        text = str(error)
        short = shortened(text)
        if short == text:
            raise
        raise InputError(short) from error
    except Exception as error:
        what = shortened(what)
        head = f"{what} is not {form} that can be read" if form else f"{what} cannot be read"
        message = f"{head}: {reason(error)}"
        message = message if message.endswith((".", "!", "?")) else f"{message}."
        raise InputError(f"{message} {advice}".rstrip()) from error


def reason(error: BaseException) -> str:
    """Why a library gave up, on one line and without long pieces of the input."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    if isinstance(error, UnicodeError):
        return "it holds bytes that are no text" if isinstance(error, UnicodeDecodeError) else "odd text"
    if isinstance(error, KeyError) and error.args:
        return f"it lacks {cut(error.args[0])}"
    text = _ADDRESS.sub("", str(getattr(error, "strerror", None) or error))
    return _on_one_line(text, ECHO - 40) or type(error).__name__


def cut(value: Any, limit: int = 60) -> str:
    """A value of the input as messages quote it: `repr`, with the middle left out of a long one."""
    if isinstance(value, str) and len(value) > 4 * limit:
        value = value[: 2 * limit] + value[-2 * limit :]  # repr of a whole book takes its time
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or thousands of digits
        text = f"a {type(value).__name__}"
    return _without_middle(text, limit)


def listed(names: Iterable[Any], limit: int = 6, quote: bool = True) -> str:
    """The first few names and how many more there are: "'a', 'b' and 12 more"."""
    every = list(names)
    parts = [cut(str(name), 30) if quote else _on_one_line(str(name), 30) for name in every[:limit]]
    more = len(every) - limit
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")


def names_in(text: str) -> list[str]:
    """Names that a person typed with commas between them, without blanks around."""
    return [name.strip() for name in text.split(",") if name.strip()]


def shortened(message: str) -> str:
    """A message of ours without the long pieces of input it quotes."""
    message = _QUOTED.sub(lambda match: _without_middle(match.group(), ECHO), message)
    return message if len(message) <= 5 * ECHO else _without_middle(message, 5 * ECHO)


def parse_json(
    data: bytes | str, what: str, form: str = "JSON", advice: str = "", *, finite: bool = False
) -> Any:
    """A JSON document out of a file, its texts made valid.

    Args:
        data: the file's bytes (UTF-8) or text.
        what: for messages.
        form: what it should be, for messages.
        advice: what to do about a file that is none.
        finite: refuse NaN and infinities, which JSON has not.

    Raises:
        InputError: no JSON, nested too deeply, or numbers with thousands of digits.
    """
    with reading(what, form, advice):
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
        return checked_texts(text, json.loads(text, parse_constant=_refused if finite else None))


def json_lines(
    data: bytes, where: Callable[[int], str] = "Line {} of the file".format, *, most: int = 32 << 20
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with the number of each line, from 1; blank ones are passed over.

    Args:
        data: the file.
        where: what messages call a line, by its number.
        most: bytes of a line.

    Raises:
        InputError: as the lines are read: one that is no object, or too long.
    """
    for number, line in enumerate(io.BytesIO(data), start=1):
        if not line.strip():
            continue
        if len(line) > most:
            raise InputError(f"{where(number)} has {len(line):,} bytes; the limit is {most:,}.")
        row = parse_json(line, where(number))
        if not isinstance(row, dict):
            raise InputError(f"{where(number)} is {cut(row)}, not an object with names and values.")
        yield number, row


def valid_text(text: str) -> str:
    """A text that every file, database and browser takes.

    Half of a surrogate pair, which is no character, and NUL, which PostgreSQL does not keep, become U+FFFD.
    """
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    return _ODD.sub("\ufffd", text)


def letters(text: str) -> str:
    """A text in NFC: what names, ids and words are compared by, and never what is shown or stored."""
    return normalize("NFC", text)


def valid_texts(document: Any) -> Any:
    """A JSON document with `valid_text` in every text, also in keys."""
    if isinstance(document, str):
        return valid_text(document)
    if isinstance(document, Mapping):
        return {valid_text(str(key)): valid_texts(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [valid_texts(value) for value in document]
    return document


def with_texts(document: Any, change: Callable[[str], str]) -> Any:
    """A document with every text changed but those that are keys.

    Args:
        document: a text, or lists and mappings of texts and other values.
        change: gives a text in the place of one.
    """
    if isinstance(document, str):
        return change(document)
    if isinstance(document, Mapping):
        return {key: with_texts(part, change) for key, part in document.items()}
    if isinstance(document, list | tuple):
        return type(document)(with_texts(part, change) for part in document)
    return document


def checked_texts(text: str, document: Any) -> Any:
    """The document of a JSON text with valid texts; nothing is looked through where all of them are."""
    return valid_texts(document) if _ESCAPED.search(text) or _ODD.search(text) else document


def _refused(constant: str) -> Any:
    raise InputError(f"{constant} is no number of JSON")


def _on_one_line(text: str, limit: int) -> str:
    text = "".join(sign if sign.isprintable() else " " for sign in text[: 8 * limit])
    return _without_middle(" ".join(text.split()), limit)


def _without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = (limit - 3) // 3
    return f"{text[: limit - 3 - tail]}...{text[-tail:]}"
