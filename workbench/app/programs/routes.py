"""The HTTP API: what the desk does, for programs that show a key."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Match, Route

from workbench.app.access import login
from workbench.app.desk import cards, requests
from workbench.app.desk.operations import MOST_OPERATIONS, keep_fitting, perform, session_of
from workbench.app.desk.requests import RefusedError, guarded, json_body, json_reply
from workbench.app.programs import BASE
from workbench.app.serving.frontend import from_root
from workbench.errors import InputError
from workbench.reading import cut
from workbench.sessions import Ask, Session
from workbench.store import Store
from workbench.store.accounts import ApiKey

MOST_QUESTIONS = 16
MOST_LABELS = 1_000
MOST_ROWS = 1_000


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    project = f"{BASE}/projects/{{project}}"
    api_routes = [
        Route(project, _answering(progress), methods=["GET"]),
        Route(f"{project}/questions", _answering(questions), methods=["POST"]),
        Route(f"{project}/items", _answering(items), methods=["POST"]),
        Route(f"{project}/answers", _answering(answers), methods=["POST"]),
        Route(f"{project}/labels", _answering(labels), methods=["GET"]),
        Route(f"{project}/predict", _answering(predict), methods=["POST"]),
        Route(f"{project}/items/{{item:int}}/image", _image, methods=["GET"]),
        Route(f"{BASE}/openapi.json", _described, methods=["GET"]),
    ]
    every = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    missing = _refusing(tuple(api_routes))
    # the last ones: what stands behind them is the app's page for every path
    return [*api_routes, *(Route(path, missing, methods=every) for path in (BASE, f"{BASE}/{{path:path}}"))]


def _refusing(ways: Sequence[Any]) -> Callable[[Request], Any]:
    """The answer to what is no way of the API: 405 where another method is one, otherwise 404."""

    async def handler(request: Request) -> Response:
        methods = {
            method for way in ways if way.matches(request.scope)[0] is Match.PARTIAL for method in way.methods
        }
        if not methods:
            why = f"There is no such path; {BASE}/openapi.json lists those there are."
            return json_reply({"why": why}, 404)
        allowed = ", ".join(sorted(methods))
        reply: Response = json_reply({"why": f"This path takes {allowed}, not {request.method}."}, 405)
        reply.headers["allow"] = allowed
        return reply

    return handler


async def _described(request: Request) -> Response:
    return FileResponse(Path(__file__).with_name("openapi.json"))


def _answering(work: Callable[..., Any]) -> Callable[[Request], Any]:
    async def handler(request: Request) -> Response:
        return await _guarded(request, work)

    return handler


async def _image(request: Request) -> Response:
    def work(key: ApiKey, body: Mapping[str, Any]) -> Response:
        octets, kind = cards.picture(key.project, int(request.path_params["item"]))
        return Response(octets, media_type=kind)

    return await _guarded(request, work)


async def _guarded(request: Request, work: Callable[[ApiKey, Mapping[str, Any]], Any]) -> Response:
    """Let in who shows a key, within the limits of their person; whatever goes wrong is a sentence."""

    async def attempt() -> Response:
        key = await run_in_threadpool(_holder, request)
        requests.LIMITS.requests(key.name)
        body = await _body(request)
        operations = body.get("answers")
        requests.LIMITS.operations(key.name, len(operations) if isinstance(operations, list) else 0)
        async with requests.LIMITS.turn(key.project, key.name):
            reply = await run_in_threadpool(work, key, body)
            return reply if isinstance(reply, Response) else json_reply(reply)

    return await guarded(attempt)


async def _body(request: Request) -> Mapping[str, Any]:
    if request.method == "GET":
        return dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "Send JSON, with the header Content-Type: application/json.")
    return await json_body(request)


def _holder(request: Request) -> ApiKey:
    """Whom the key stands for, who may use the server and open the project now.

    Raises:
        RefusedError: no such key, or another project's, or a person who may not.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise RefusedError(401, "Send the key: Authorization: Bearer wb_...")
    key = Store.open().keys.holder(secret.strip())
    if key is None:
        raise RefusedError(401, "There is no such key; it may have been revoked.")
    project_id = str(request.path_params["project"])
    if key.project != project_id:
        # a key opens all questions of its project
        summary = Store.open().summary(project_id)
        if summary is None or summary.family != key.project:
            raise RefusedError(403, "This key is of another project.")
        key = replace(key, project=project_id)
    try:
        login.admit(key.project, _person(key))
    except InputError as error:
        raise RefusedError(403, str(error)) from error
    return key


def _person(key: ApiKey) -> login.Person | None:
    return login.of_key(key.person, key.name)


def _session(key: ApiKey) -> Session:
    return session_of(key.project, key.name)


def _number(body: Mapping[str, Any], name: str, default: int, limit: int) -> int:
    value = body.get(name, default)
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or len(text) > 12:
        raise InputError(f"{name} must be a whole number, 0 or more; got {cut(value)}.")
    return min(int(text), limit)


# --------------------------------------------------------------------------- the work


def progress(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """Progress of the project."""
    session = _session(key)
    with session.log.snapshot():
        state, model = session.state, session.model
        measured = session.predictions.evaluation
        return {
            "name": session.project.name,
            "question": session.question_name,
            "questions": {
                question.question: question.id for question in session.questions.every if not question.aside
            },
            "classes": list(session.classes),
            "labelled": len(state.codes),
            "items": int(session.pool.trainable.size),
            "left": session.queue.n_left,
            "model": None
            if model is None
            else {
                "round": model.number,
                "labels": model.n_labelled,
                "classifier": str(session.fits.fitted_with["classifier"]),
            },
            "error": {"error": measured.error, "low": measured.low, "high": measured.high, "n": measured.n}
            if measured.enough
            else None,
        }


def questions(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """The next questions of this person, recorded as asked."""
    session = _session(key)
    n = max(1, _number(body, "n", 1, MOST_QUESTIONS))
    return {"questions": [_question(session, ask) for ask in session.ask(n)]}


def items(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """The next items of this person with all that is open about each, recorded as asked."""
    session = _session(key)
    n = max(1, _number(body, "n", 1, MOST_QUESTIONS))
    cards = session.queue.items(n)
    # also a question that was added, or put aside, meanwhile
    sessions = {name: session.question(name) for card in cards for name in card.asks}
    rows = []
    for card in cards:
        about = {name: _about(sessions[name], ask) for name, ask in card.asks.items()}
        rows.append(_shown_item(session, card.item) | {"questions": about})
    return {"items": rows}


def _about(session: Session, ask: Ask) -> dict[str, Any]:
    """A question about an item: its classes, why it is asked, and what its model says."""
    return {"classes": list(session.classes), "role": ask.role, **_guessed(session, ask)}


def _question(session: Session, ask: Ask) -> dict[str, Any]:
    fields = {"ask": ask.id, **_shown_item(session, ask.item), "role": ask.role}
    return fields | _guessed(session, ask)


def _shown_item(session: Session, item: int) -> dict[str, Any]:
    """An item as a program sees it."""
    content = session.pool.items.show(item)
    fields: dict[str, Any] = {"item": item, "id": str(session.pool.items.ids[item])}
    if content.image is not None:
        fields["image"] = from_root(f"{BASE}/projects/{session.id}/items/{item}/image")
    if content.text is not None:
        fields["text"] = content.text
    if content.row is not None:
        fields["row"] = {str(name): _plain(value) for name, value in content.row.items()}
    return fields


def _guessed(session: Session, ask: Ask) -> dict[str, Any]:
    """Predictions for an item, surest first, where that may be said."""
    predictions = cards.predicted(session, ask)[:5]
    return {"guess": [[name, round(p, 4)] for name, p in predictions]} if predictions else {}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def answers(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """Operations of the desk's, done by this person; the model is fitted afterwards."""
    operations = body.get("answers")
    if not isinstance(operations, list) or len(operations) > MOST_OPERATIONS:
        raise InputError(f"answers must be a list of up to {MOST_OPERATIONS} operations.")
    session = _session(key)
    whose = {"person": key.name, "project": session.id}
    outcomes = perform(
        session,
        [{**operation, **whose} if isinstance(operation, dict) else operation for operation in operations],
    )
    keep_fitting(key.project, key.name)
    return {"answers": outcomes}


def labels(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of an export of the labels."""
    from workbench.app.access import auditing
    from workbench.exchange.rows import LabelRows

    session = _session(key)
    start, limit = _number(body, "start", 0, 1 << 40), _number(body, "limit", 100, MOST_LABELS)
    with session.log.snapshot():
        rows = LabelRows(session, "labels", start=start, limit=limit)
    records = [{name: _plain_deep(value) for name, value in row.items()} for row in rows]
    auditing.exported(session, f"{len(records)} labels by key {key.id}")(_person(key))
    return {"total": rows.n_all, "labels": records}


def _plain_deep(value: Any) -> Any:
    return (
        json.loads(json.dumps(value, default=str))
        if isinstance(value, dict | list | tuple)
        else _plain(value)
    )


def predict(key: ApiKey, body: Mapping[str, Any]) -> dict[str, Any]:
    """Classes of new rows by the present model."""
    from workbench.exchange.predictor import predictor_of

    raw_rows = body.get("rows")
    if not isinstance(raw_rows, list) or not 0 < len(raw_rows) <= MOST_ROWS:
        raise InputError(f"rows must be a list of 1 to {MOST_ROWS:,} rows.")
    session = _session(key)
    if session.pool.kind == "image":
        raise InputError("New pictures go to `workbench predict`; this takes rows of tables and texts.")
    rows = _rows(raw_rows)
    saved = predictor_of(session)
    features = saved.features(rows)
    mean, notes = saved.mean(rows, features)
    P = saved.probabilities(features, mean)
    return {
        "classes": list(saved.classes),
        "predictions": [
            {"class": saved.classes[int(p.argmax())], "probabilities": [round(float(x), 6) for x in p]}
            for p in P
        ],
        "notes": list(notes),
    }


def _rows(rows: list[Any]) -> Any:
    import pandas as pd

    if all(isinstance(row, dict) for row in rows):
        return pd.DataFrame(rows)
    if all(isinstance(row, str) for row in rows):
        return rows
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "rows must be alike: objects with the pool's columns, texts, or lists of as many numbers."
        ) from None
