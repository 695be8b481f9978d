"""The API as an OpenAPI document, and the page that shows it: one source for both, and for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

BASE = "/api/v1"


class Way(NamedTuple):
    """One thing that can be asked.

    Attributes:
        method: of HTTP.
        path: behind `BASE`.
        name: of the operation.
        title: in a line.
        words: what to send and what comes.
        body: an example of what is sent; None for nothing.
        reply: an example of what comes; None for what is no JSON.
        query: name -> words of parameters in the address.
    """

    method: str
    path: str
    name: str
    title: str
    words: str
    body: Mapping[str, Any] | None = None
    reply: Mapping[str, Any] | None = None
    query: Mapping[str, str] = {}


_ASK = {
    "ask": "a1b2c3",
    "item": 17,
    "id": "row-17",
    "role": "policy",
    "row": {"text": "Where is my card?"},
    "guess": [["card", 0.81], ["cash", 0.12]],
}
WAYS = (
    Way(
        "GET",
        "",
        "progress",
        "How far the project is",
        "Its name, classes, how many items are labelled and left, the model and its error with a 95 % "
        "interval (null before 20 items are measured).",
        reply={
            "name": "Tickets",
            "question": "topic",
            "questions": {"topic": "3f2a1b9c8d7e", "urgent": "9d1c7a2b4e5f"},
            "classes": ["card", "cash"],
            "labelled": 120,
            "items": 2000,
            "left": 1880,
            "model": {"round": 14, "labels": 118, "classifier": "large-margin"},
            "error": {"error": 0.08, "low": 0.04, "high": 0.15, "n": 60},
        },
    ),
    Way(
        "POST",
        "/questions",
        "questions",
        "The next questions",
        "Up to `n` of them (16 at most), best first. They wait for this person for ten minutes. A picture is "
        "at `image`. `guess` is missing where the answer must not be led.",
        body={"n": 1},
        reply={"questions": [_ASK]},
    ),
    Way(
        "POST",
        "/items",
        "items",
        "The next items, with all questions",
        "Up to `n` items (16 at most), each with every question that is open about it. Answer all of them "
        "with one operation of the kind `answers`, or set the item aside with `skip` in it.",
        body={"n": 1},
        reply={
            "items": [
                {
                    "item": 17,
                    "id": "row-17",
                    "row": {"text": "Where is my card?"},
                    "questions": {
                        "topic": {"classes": ["card", "cash"], "role": "policy", "guess": [["card", 0.81]]},
                        "urgent": {"classes": ["yes", "no"], "role": "together"},
                    },
                }
            ]
        },
    ),
    Way(
        "POST",
        "/answers",
        "answers",
        "Answers",
        "A list of operations, each with an `op` of your own making: sent again, it is acknowledged and not "
        "repeated. Kinds are those of the desk: `label` (`ask`, `item`, `class`, `new`), `skip` and `unsure` "
        "(`ask`, `item`), `flag` (`item`, `on`), `note` (`item`, `text`), `correct` (`item`, `class`), "
        "`twins` (`item`, `class`), `answers` and, of earlier ones, `amend` (`item`, `answers`: name of a "
        "question -> class, null for unsure), `undo` and `redo`. When the reply comes, what is `saved` "
        "is on disk; of `answers` that is what was open, and `why` names the rest.",
        body={"answers": [{"op": "x1", "kind": "label", "ask": "a1b2c3", "item": 17, "class": "card"}]},
        reply={"answers": [{"op": "x1", "status": "saved", "why": ""}]},
    ),
    Way(
        "GET",
        "/labels",
        "labels",
        "The labels",
        "The rows of an export, `limit` (1,000 at most) of them from `offset` on.",
        reply={"total": 120, "labels": [{"id": "row-17", "label": "card", "person": "ann"}]},
        query={"offset": "the first of them, from 0", "limit": "how many"},
    ),
    Way(
        "POST",
        "/predict",
        "predict",
        "Predictions of new rows",
        "Up to 1,000 rows: objects with the pool's columns, texts for a pool of texts, or lists of numbers.",
        body={"rows": ["Where is my card?"]},
        reply={"classes": ["card", "cash"], "predictions": [{"class": "card", "probabilities": [0.9, 0.1]}]},
    ),
    Way(
        "GET",
        "/items/{item}/image",
        "image",
        "A picture",
        "The picture of an item, as PNG or JPEG.",
    ),
)
ERRORS = {
    "401": "no key, or one that is none or was revoked",
    "403": "the key's person may not use the server or open the project, or it is another project's key",
    "409": "it cannot be done; `why` says what to do",
    "413": "more than 256,000 bytes",
    "415": "something else than JSON",
    "429": "too much at once; `wait` and Retry-After say for how many seconds",
    "503": "nothing can be stored at the moment; send it again",
}


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the API."""
    paths: dict[str, Any] = {}
    for way in WAYS:
        path = f"{BASE}/projects/{{project}}{way.path}"
        places = [name for name in ("project", "item") if f"{{{name}}}" in path]
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in places
        ]
        parameters += [
            {"name": name, "in": "query", "description": words, "schema": {"type": "integer"}}
            for name, words in way.query.items()
        ]
        reply: dict[str, Any] = {"description": way.title}
        if way.reply is not None:
            reply["content"] = _json(way.reply)
        else:
            reply["content"] = {"image/png": {}, "image/jpeg": {}}
        one: dict[str, Any] = {
            "operationId": way.name,
            "summary": way.title,
            "description": way.words,
            "parameters": parameters,
            "responses": {"200": reply} | {code: {"description": words} for code, words in ERRORS.items()},
        }
        if way.body is not None:
            one["requestBody"] = {"required": True, "content": _json(way.body)}
        paths.setdefault(path, {})[way.method.lower()] = one
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Workbench",
            "version": "1",
            "description": "Label with a program. A key, made on the Data page, stands for one person in "
            "one project.",
        },
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    }


def _json(example: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": _schema(example), "example": example}}


def _schema(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"type": "object", "properties": {name: _schema(one) for name, one in value.items()}}
    if isinstance(value, list):
        return {
            "type": "array",
            "items": {} if not value or isinstance(value[0], list) else _schema(value[0]),
        }
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(value)]}


def page() -> str:
    """The description as one page of HTML that asks for nothing else."""
    parts = []
    for way in WAYS:
        call = f"{way.method} {BASE}/projects/PROJECT{way.path}"
        parts.append(
            f"<h2>{escape(way.title)}</h2><pre class=call>{escape(call)}</pre><p>{_words(way.words)}</p>"
        )
        if way.query:
            said = ", ".join(
                f"<code>{escape(name)}</code> ({escape(words)})" for name, words in way.query.items()
            )
            parts.append(f"<p>In the address: {said}.</p>")
        for title, example in (("You send", way.body), ("What comes", way.reply)):
            if example is not None:
                text = json.dumps(example, indent=2, ensure_ascii=False)
                parts.append(f"<h3>{title}</h3><pre>{escape(text)}</pre>")
    errors = "".join(f"<tr><th>{code}</th><td>{_words(words)}</td></tr>" for code, words in ERRORS.items())
    return f"""<!doctype html><html lang=en><meta charset=utf-8><title>Workbench for programs</title>
<meta name=viewport content="width=device-width"><style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ margin: 2.4rem 0 .4rem; font-size: 1.2rem; }}
h3 {{ margin: .8rem 0 .2rem; font-size: .95rem; font-weight: 600; }}
pre {{ background: color-mix(in srgb, currentColor 7%, transparent); padding: .7rem .9rem;
border-radius: .5rem; overflow-x: auto; font-size: .85rem; }} .call {{ font-weight: 600; }}
th {{ text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }}
</style><h1>Workbench for programs</h1>
<p>A key stands for one person in one project. Make one on the <em>Data</em> page, in the project's
<em>More</em>, or with <code>workbench key PROJECT</code>, and send it with each request:</p>
<pre>curl -H "Authorization: Bearer $KEY" {BASE}/projects/PROJECT</pre>
<p>This description as a document: <a href="openapi.json">openapi.json</a>.</p>
{"".join(parts)}
<h2>When something is wrong</h2><p>The reply is <code>{{"why": "..."}}</code> with one of these:</p>
<table>{errors}</table></html>"""


def _words(text: str) -> str:
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))
