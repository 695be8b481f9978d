"""The app's log: one JSON object a line, four files of a megabyte at most, no ids and no secrets in it."""

import json
import logging
import re
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

_BYTES, _FILES = 1_000_000, 3
# ids of projects, runs and questions are keys to them; the log of a machine may be handed around
_HIDDEN = (
    (re.compile(r"://[^/\s:@]*:[^/\s@]*@"), "://...@"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|cookie|authorization)\b(\W{1,3})\S+"), r"\1\2..."),
    (re.compile(r"\b[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){1,7}[0-9a-fA-F]*\b"), "(id)"),
)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message and, after an error, where it was raised."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": hidden(record.getMessage())[:2000],
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)[-8:]
            line["error"] = hidden(f"{type(error).__name__}: {error}")[:500]
            line["where"] = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
        return json.dumps(line, ensure_ascii=False)


def hidden(text: str) -> str:
    """A text without ids, passwords in addresses, tokens."""
    for pattern, instead in _HIDDEN:
        text = pattern.sub(instead, text)
    return text


def start(home: Path) -> logging.Handler | None:
    """Write warnings, and what the program itself tells, to logs/workbench.log of a home.

    Args:
        home: made where it is not there; files are for their owner only.

    Returns:
        The handler, or None where nothing can be written: the app runs without a log then.
    """
    with suppress(OSError):
        folder = home / "logs"
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        handler = RotatingFileHandler(
            folder / "workbench.log", maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8"
        )
        handler.setFormatter(JsonLines())
        handler.setLevel(logging.INFO)
        handler.addFilter(lambda r: r.levelno >= logging.WARNING or r.name.startswith("workbench"))
        logging.getLogger().addHandler(handler)
        return handler
    return None
