"""Encodings of texts: the one that was said, UTF-8, or the likeliest."""

import codecs
import re

from workbench.errors import InputError
from workbench.pools.tables.report import Fix, Problem
from workbench.reading import cut

_BLOCK = 1 << 20
_TOLD_BY = 65_536  # bytes by which an encoding is told
_LATIN = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859_2", "mac_roman", "cp850")
_OTHERS = (
    *("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp932", "euc_jp", "gb18030", "big5", "euc_kr"),
    *("cp866", "cp874"),
)
_LETTERS = [
    set(letters)
    for letters in (
        "àâçéèêëîïôùûüÿœæ",  # French
        "äöüß",  # German
        "áéíóúñüºª",  # Spanish
        "áâãàçéêíóôõúü",  # Portuguese
        "àèéìíîòóùú",  # Italian
        "àçèéíïòóúü",  # Catalan
        "éëïöüáèêóú",  # Dutch
        "åäöéü",  # Swedish
        "åæøéèêóòâôü",  # Danish, Norwegian
        "áðéíóúýþæö",  # Icelandic
        "äöõüšž",  # Estonian
        "ąćęłńóśźż",  # Polish
        "áčďéěíňóřšťúůýž",  # Czech
        "áäčďéíľňóôšťúýž",  # Slovak
        "áéíóöőúüű",  # Hungarian
        "ăâîşţșțáé",  # Romanian
        "čćđšž",  # Croatian, Slovene
        "çğıöşüâîûi̇",  # Turkish
        "ąčęėįšųūž",  # Lithuanian
        "āčēģīķļņšūž",  # Latvian
    )
]
_SIGNS = "“”„‚‘’«»‹›–—…•·°§€£¥©®™¿¡½¼¾±×÷\u00a0"


def settle_encoding(data: bytes, name: str, encoding: str | None) -> tuple[str, tuple[Problem, ...]]:
    """The encoding of a text, and what is to be said of it where it is a guess.

    Args:
        data: of the file.
        name: of the file.
        encoding: that was said; None takes UTF-8, else the likeliest.

    Raises:
        InputError: no such encoding, or a line that it cannot read.
    """
    if encoding is not None:
        return _said_encoding(data, name, encoding), ()
    if undecodable(data, "utf-8") is None:
        return "utf-8", ()
    readings = likely_encodings(data)
    best, lines = next(iter(readings.items()))
    if len(readings) == 1:
        message = f"The text is read as {best}{f': {lines}' if lines else ''}."
        return best, (Problem("encoding", "note", message),)
    samples = "; ".join(f"{candidate}: {lines}" for candidate, lines in readings.items())
    message = f"The text is read as {best}, and others read it as well. Which is right? {samples}."
    fixes = tuple(
        Fix(f"{candidate}: {lines}", {"encoding": candidate}) for candidate, lines in readings.items()
    )
    return best, (Problem("encoding", "guess", message, fixes=fixes),)


def as_utf8(data: bytes, name: str, encoding: str | None) -> tuple[bytes, str, tuple[Problem, ...]]:
    """A text in UTF-8 without a mark before it, the encoding that it had, and what is to be said of that.

    Args:
        data: of the file.
        name: of the file.
        encoding: as of `settle_encoding`.

    Raises:
        InputError: as `settle_encoding`.
    """
    settled, problems = settle_encoding(data, name, encoding)
    if settled not in ("utf-8", "utf-8-sig"):
        data = data.decode(settled).encode()
    return data.removeprefix(codecs.BOM_UTF8), settled, problems


def _said_encoding(data: bytes, name: str, encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise InputError(f"There is no encoding called {cut(encoding)}; try 'cp1252' or 'utf-16'.") from None
    if not codec._is_text_encoding:
        raise InputError(f"{encoding!r} is no encoding of texts; try 'cp1252' or 'utf-16'.")
    at = undecodable(data, encoding)
    if at is not None:
        line = data[:at].count(b"\n") + 1
        raise InputError(f"{name} is not {encoding}: line {line} cannot be read as such.")
    return codec.name


def undecodable(data: bytes, encoding: str) -> int | None:
    """The place where bytes stop being text, looked for piece by piece: text takes four times the memory."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _BLOCK):
        n_pending = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + _BLOCK], final=start + _BLOCK >= len(data))
        except UnicodeError as error:
            return max(0, min(start - n_pending + int(getattr(error, "start", 0)), len(data) - 1))
    return None


def likely_encodings(data: bytes) -> dict[str, str]:
    """The encodings of a text that is not UTF-8: one that is plainly likelier, or those as likely.

    Any of those for Latin letters reads any file: the likelier has fewer words that no language writes.

    Args:
        data: of the file.

    Returns:
        Encoding -> two lines with letters beyond ASCII, likeliest first.
    """
    head = data[:_TOLD_BY]
    marked = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if marked and undecodable(data, "utf-16") is None:
        return {"utf-16": ""}
    zeros = [head[place::2].count(0) for place in (0, 1)]
    if (
        max(zeros) > len(head) // 4
        and undecodable(data, form := f"utf-16-{'bl'[zeros[1] > zeros[0]]}e") is None
    ):
        return {form: ""}
    # lines with nothing but ASCII tell nothing
    at = max(0, data.rfind(b"\n", 0, undecodable(data, "utf-8") or 0))
    lines = [line for line in data[at : at + _BLOCK].splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_TOLD_BY]
    words = [word for word in re.findall(rb"[A-Za-z\x80-\xff]+", sample) if not word.isascii()]
    beyond = sum(octet >= 0x80 for word in words for octet in word)
    if 2 * beyond > sum(map(len, words)):  # words of Latin letters are ASCII for the most part
        from charset_normalizer import from_bytes

        likely = [str(match.encoding) for match in from_bytes(sample, cp_isolation=[*_OTHERS, *_LATIN])]
        likely = [encoding for encoding in likely if undecodable(data, encoding) is None]
        if likely and likely[0] in _OTHERS:
            return {likely[0]: _shown(lines, likely[0])}
    readings: dict[str, str] = {}
    for encoding in _LATIN:
        if undecodable(data, encoding) is None:
            text = sample.decode(encoding)
            if text not in readings.values():
                readings[encoding] = text
    odd = {encoding: _oddity(text) for encoding, text in readings.items()}
    least = min(odd.values(), default=(0, 0))
    return {key: _shown(lines, key) for key in odd if odd[key] == least} or {
        "latin-1": _shown(lines, "latin-1")
    }


def _oddity(text: str) -> tuple[int, int]:
    """Numbers of words that no language writes so, and that the text's likeliest language does not."""
    words = [word.strip(_SIGNS) for word in re.findall(r"[^\s\x00-@\[-`{-\x7f]+", text)]
    words = [word for word in words if not word.isascii()]
    letters = [{letter for letter in word.lower() if letter > "\x7f" and letter != "’"} for word in words]
    inside = [any(c > "\x7f" and c.isupper() for c in w[1:]) and not w.isupper() for w in words]
    fits = [
        [not odd and used_letters <= alphabet for used_letters, odd in zip(letters, inside, strict=True)]
        for alphabet in _LETTERS
    ]
    nobodys = sum(not any(of_word) for of_word in zip(*fits, strict=True))
    return nobodys, len(words) - max(map(sum, fits))


def _shown(lines: list[bytes], encoding: str) -> str:
    """The first lines beyond ASCII as an encoding reads them, each from its first odd letter's word on."""
    texts = [line.decode(encoding, "replace") for line in lines[:2]]
    starts = [next((i for i, c in enumerate(text) if c > "\x7f"), 0) for text in texts]
    return " / ".join(text[max(0, at - 12) : at + 18].strip() for text, at in zip(texts, starts, strict=True))
