"""A language model as a guess: a small server is right in 80 %, slow, wrong in form and dead by turns."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.calls import call
from workbench.errors import Cancelled, InputError
from workbench.exchange import language_model
from workbench.exchange.language_model import Server, ask, questions_about, server_of
from workbench.sessions import Event, Session

CLASSES = ["card lost", "refund"]
N = 60


class Fake:
    """An OpenAI-compatible server; `answer` makes the reply of one request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[dict[str, Any]], tuple[int, Any]] = lambda body: (200, reply(right(body)))
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.requests.append(body)
                fake.keys.append(self.headers.get("Authorization"))
                status, content = fake.answer(body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", "/v1/elsewhere")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.server = Server("tiny", f"http://127.0.0.1:{self.http.server_port}/v1")


def text_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def right(body: dict[str, Any]) -> str:
    """Of every ten items eight get their class."""
    text = text_of(body)
    is_card = "card" in text
    return CLASSES[int(is_card == (int(text.split()[-1]) % 10 < 2))]


def reply(name: str, *, sure: float | None = 0.9, n: int = 1, content: str | None = None) -> dict[str, Any]:
    text = json.dumps({"class": name}) if content is None else content
    choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
    if sure is not None:  # two tokens make the name
        words = ['{"class": "', name[:3], name[3:], '"}']
        logs = [0.0, math.log(sure) / 2, math.log(sure) / 2, 0.0]
        tokens = [{"token": w, "logprob": p} for w, p in zip(words, logs, strict=True)]
        choice["logprobs"] = {"content": tokens}
    return {"choices": [choice] * n}


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Sixty texts, three of them labelled."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    texts = [f"{'my card is gone' if i % 2 else 'I want my money back'} since day {i}" for i in range(N)]
    pd.DataFrame({"text": texts}).to_csv(tmp_path / "texts.csv", index=False)
    made = Session.create(str(tmp_path / "texts.csv"), classes=CLASSES, evaluation_share=0.0)
    for _ in range(3):
        (question,) = made.ask()
        made.tell(question.id, Event.label(CLASSES[question.item % 2 == 0]))
    return made


def nothing(fraction: float, message: str) -> None:
    pass


def test_answers_with_probabilities_are_a_guess_that_labels_weigh(fake: Fake, session: Session) -> None:
    questions = questions_about(session)
    labelled = set(session.state.codes)
    assert set(questions.items) == set(range(N)) - labelled  # what stands in the prompt does not count
    assert f"{N - 3} requests" in questions.words() and "3 labelled items" in questions.words()
    assert not fake.requests
    told: list[float] = []
    answers = ask(fake.server, questions, lambda fraction, _: told.append(fraction))
    assert len(fake.requests) == N - 3 and told[-1] == 1.0
    assert {round(sure or 0.0, 6) for _, _, sure in answers} == {0.9}
    session.guesses.add(f"llm:tiny@{fake.server.address}", answers)
    truth = {i: CLASSES[i % 2 == 0] for i in range(N)}
    share = sum(truth[item] == name for item, name, _ in answers) / len(answers)
    assert 0.75 < share < 0.85
    (report,) = session.guesses.report()
    assert report.n_known == N - 3 and report.agreement is not None and report.agreement.n == 0
    body = fake.requests[0]
    assert body["response_format"]["json_schema"]["schema"]["properties"]["class"]["enum"] == CLASSES
    assert [m["role"] for m in body["messages"]] == ["system", *["user", "assistant"] * 3, "user"]


@pytest.mark.parametrize("at_once", [True, False])
def test_without_probabilities_the_share_of_five_draws_is_the_confidence(
    fake: Fake, session: Session, at_once: bool
) -> None:
    lock, drawn = threading.Lock(), dict[str, int]()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        n, choices = body["n"] if at_once else 1, []
        with lock:
            for _ in range(n):
                place = drawn[text_of(body)] = drawn.get(text_of(body), 0) + 1
                choices += reply(CLASSES[0] if place < 5 else CLASSES[1], sure=None)["choices"]
        return 200, {"choices": choices}

    fake.answer = answer
    answers = ask(fake.server, questions_about(session), nothing)
    assert {name for _, name, _ in answers} == {CLASSES[0]}
    assert {round(sure or 0.0, 6) for _, _, sure in answers} == {round((4 + 0.5) / 6, 6)}


def test_other_forms_are_read_and_what_names_no_class_is_counted(fake: Fake, session: Session) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        for key in ("response_format", "logprobs", "n"):  # each is told of by another code
            if key in body:
                return (422, {"detail": "unknown"}) if key == "n" else (400, {"error": f"no {key} here"})
        number = int(text_of(body).split()[-1])
        forms = ["REFUND", '```json\n{"class": "refund"}\n```', "I think it is about money.", '{"class": 7}']
        return 200, reply("refund", sure=None, content=forms[number % 4])

    fake.answer = answer
    told: list[str] = []
    answers = ask(fake.server, questions_about(session), lambda _, message: told.append(message))
    asked = questions_about(session).items
    assert {item for item, _, _ in answers} == {item for item in asked if item % 4 < 2}
    assert f"{sum(item % 4 > 1 for item in asked)} unreadable" in told[-1]
    fake.answer = lambda body: (200, reply("", sure=None, n=5, content="Who knows?"))
    language_model.forget(fake.server)
    with pytest.raises(InputError, match="names none of the classes"):
        ask(fake.server, questions_about(session), nothing)


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (401, {"error": "no such key"}, "answered 401"),
        (307, {}, "answered 307"),  # another address would get the key
        (200, b"<html>", "does not answer as an OpenAI-compatible server"),
        (200, {"choices": []}, "does not answer as"),
        (200, b"[" * 100_000, "does not answer as"),
        (503, {}, "answered 503"),
    ],
)
def test_a_server_that_is_wrong_is_told_and_changes_nothing(
    fake: Fake, session: Session, status: int, content: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_model, "_TRIES", 0)
    fake.answer = lambda body: (status, content)
    with pytest.raises(InputError, match=message):
        ask(fake.server, questions_about(session), nothing)
    assert all(body["messages"] for body in fake.requests) and session.guesses.report() == []


def test_a_dead_or_slow_server_is_told_and_the_same_request_goes_on(
    fake: Fake, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_model, "_TRIES", 0)
    questions = questions_about(session)
    hung, lock = threading.Event(), threading.Lock()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        with lock:
            late = len(fake.requests) > 20
        if late:
            hung.wait(30.0)
        return 200, reply(right(body))

    fake.answer = answer
    with pytest.raises(InputError, match=r"does not answer .* the same request goes on"):
        ask(fake.server, questions, nothing, seconds=0.5)
    hung.set()
    before = len(fake.requests)
    fake.answer = lambda body: (200, reply(right(body)))
    answers = ask(fake.server, questions, nothing)
    assert len(answers) == N - 3 and len(fake.requests) - before < N - 3 - 10
    session.guesses.add(f"llm:tiny@{fake.server.address}", answers)
    fake.http.shutdown()
    fake.http.server_close()
    language_model.forget(fake.server)
    with pytest.raises(InputError, match="does not answer"):
        ask(fake.server, questions, nothing)
    assert session.guesses.report()[0].n_known == N - 3  # what is stored stays


def test_cancel_keeps_what_was_answered(fake: Fake, session: Session) -> None:
    questions, told = questions_about(session), [0]

    def report(fraction: float, message: str) -> None:
        told[0] += 1

    with pytest.raises(Cancelled):
        ask(fake.server, questions, report, stop=lambda: told[0] >= 5)
    kept = language_model._Kept(fake.server)
    answered = [text for text in questions.texts if kept.digest(questions.messages(text)) in kept.answers]
    assert len(answered) == told[0] < N - 3
    place = language_model._Kept.place_of(fake.server)
    with place.open("a") as file:
        file.write('{"asked": "cut by a ki')
    assert len(ask(fake.server, questions, nothing)) == N - 3
    asked = [text_of(body) for body in fake.requests]
    assert all(asked.count(text) == 1 for text in answered)


def test_a_key_goes_to_its_own_address_and_others_are_named_by_who_runs_the_server(
    fake: Fake, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"llm:tiny@{fake.server.address}/"
    with pytest.raises(InputError, match=r"Only who runs this server .*Named are: none"):
        server_of(source, any_address=False)
    assert server_of(source, any_address=True) == fake.server
    monkeypatch.setenv("TINY_KEY", "secret")
    monkeypatch.setenv(language_model.SETTING, f"http://localhost:1/v1 {fake.server.address}=TINY_KEY")
    server = server_of(source, any_address=False)
    assert server.key == "secret" and "secret" not in repr(server)
    ask(server, questions_about(session), nothing)
    assert set(fake.keys) == {"Bearer secret"}
    assert server_of("llm:big:3b@http://localhost:1/v1", any_address=False).key == ""
    assert server_of("llm:tiny@http://127.0.0.1:1/v1", any_address=True).key == ""
    for wrong in ("llm:tiny", "llm:@http://a/v1", "llm:tiny@file:///etc", "llm:tiny@http://me@a/v1"):
        with pytest.raises(InputError, match="is named llm:MODEL@ADDRESS"):
            server_of(wrong, any_address=True)


def test_pictures_and_projects_without_classes_are_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not about pictures"):
        questions_about(Session.create("digits", evaluation_share=0.0))
    with pytest.raises(InputError, match="Name the classes first"):
        questions_about(Session.create(str(tmp_path / "texts.csv"), evaluation_share=0.0))


def test_the_command_says_what_it_sends_and_asks(
    fake: Fake, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"llm:tiny@{fake.server.address}"
    assert call("guess", session.id, "--add", source, "--dry-run") == 0
    assert "57 requests" in capsys.readouterr().out and not fake.requests
    assert call("guess", session.id, "--add", source) == 0
    assert source in capsys.readouterr().out and len(fake.requests) == N - 3
    assert not language_model._Kept.place_of(fake.server).exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (None, None),
        ('{"class": null}', None),
        ('{"class": "Other"}', "Other"),
        ('{"class": "OTHER"}', None),  # two differ by it alone
        ('"none"', None),
        ("none", "none"),
    ],
)
def test_what_is_not_said_names_no_class(fake: Fake, content: str | None, name: str | None) -> None:
    client = language_model._Client(fake.server, ["none", "other", "Other"], 1.0)
    assert client._read({"message": {"content": content}}) == (name, None)
