"""Predictions of a language model for a project's items: a guess, asked of an OpenAI-compatible server.

Nothing is sent before a person asks for it. Requests and words are counted first, each answer is kept on disk
as it comes, and a model that is dead, slow or another one later changes nothing that a project has stored.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import Cancelled, InputError
from workbench.exchange.predictions import Prediction
from workbench.progress import OnProgress
from workbench.reading import cut
from workbench.writing import workbench_home

if TYPE_CHECKING:
    from workbench.sessions import Session

SETTING = "WORKBENCH_LANGUAGE_MODELS"
"""Environment variable: addresses apart by spaces, each with `=VARIABLE` where that one holds its key."""
EXAMPLES = 2
"""Labelled items of each class that stand in a prompt, and at most `MOST_EXAMPLES` in all."""
MOST_EXAMPLES = 20
DRAWS = 5
"""Answers asked about an item where the server tells no probabilities."""
MOST_LETTERS = 8_000
"""Letters of an item that are sent; the rest is left out."""
_TOGETHER = 4  # requests at once
_SECONDS = 60.0
_TRIES = 3
_MOST_OCTETS = 4 << 20
_GIVE_UP = 8  # items in a row without a readable answer, before there was any

Answer = tuple[str, float]
"""A class and how sure the model is of it."""


@dataclass(frozen=True)
class Server:
    """A model behind an address.

    Attributes:
        model: its name there.
        address: up to the version, such as "http://localhost:11434/v1".
        key: sent to this address alone.
    """

    model: str
    address: str
    key: str = field(default="", repr=False)


def server_of(source: str, *, any_address: bool) -> Server:
    """The server that a source names.

    Args:
        source: "llm:MODEL@ADDRESS".
        any_address: take an address that the setting does not name: for who may name paths of this machine.

    Raises:
        InputError: another form, or an address that nobody who runs this server has allowed.
    """
    parts = re.fullmatch(r"llm:(?P<model>\S+?)@(?P<address>https?://[^\s@?#]+)", source.strip())
    if parts is None:
        raise InputError(
            f"A language model is named llm:MODEL@ADDRESS, such as llm:llama3.2@http://localhost:11434/v1; "
            f"got {cut(source)}."
        )
    address = parts["address"].rstrip("/")
    addresses = {}
    for entry in os.environ.get(SETTING, "").split():
        url, equals, variable = entry.rpartition("=")
        addresses[(url if equals else entry).rstrip("/")] = variable if equals else ""
    if address not in addresses and not any_address:
        raise InputError(
            f"Only who runs this server names the addresses of language models ({SETTING}). "
            f"Named are: {', '.join(addresses) or 'none'}."
        )
    return Server(parts["model"], address, os.environ.get(addresses.get(address, ""), ""))


@dataclass(frozen=True)
class Questions:
    """Prompts about the items of a pool.

    Attributes:
        items: indices into the pool of what is asked about.
        texts: of these items, as they are sent.
        classes: names to choose from.
        instructions: for people, sent too; "" for none.
        examples: (text, class) of labelled items that stand in each prompt; these are not asked about.
    """

    items: tuple[int, ...]
    texts: tuple[str, ...] = field(repr=False)
    classes: tuple[str, ...]
    instructions: str = field(repr=False)
    examples: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def n_words(self) -> int:
        """Words of all prompts together, each item asked about once."""
        same = sum(len(message["content"].split()) for message in self.messages(""))
        return same * len(self.texts) + sum(len(text.split()) for text in self.texts)

    def words(self) -> str:
        """Count of requests and words, and what leaves the machine."""
        also = ", the instructions" if self.instructions else ""
        few = f" and {len(self.examples)} labelled items" if self.examples else ""
        return (
            f"{len(self.items):,} requests ({DRAWS} times as many where the server tells no probabilities), "
            f"about {self.n_words:,} words. Sent are the items' texts, the names of the classes{also}{few}."
        )

    def messages(self, text: str) -> list[dict[str, str]]:
        """The prompt about one text."""
        prompt = "Say which class the text belongs to. The classes are:\n" + "\n".join(
            f"- {name}" for name in self.classes
        )
        if self.instructions:
            prompt += f"\n\nInstructions:\n{self.instructions}"
        prompt += '\n\nAnswer with JSON alone: {"class": NAME}.'
        messages = [{"role": "system", "content": prompt}]
        for example, name in self.examples:
            answer = json.dumps({"class": name}, ensure_ascii=False)
            messages += [{"role": "user", "content": example}, {"role": "assistant", "content": answer}]
        return [*messages, {"role": "user", "content": text}]


def questions_about(session: Session) -> Questions:
    """Prompts for a language model about a project's pool.

    Args:
        session: of a project whose items are texts or rows.

    Raises:
        InputError: items that cannot be told in words, or fewer than two classes.
    """
    state, items = session.state, session.pool.items
    if session.pool.kind == "image":
        raise InputError("A language model is asked about texts and rows of tables, not about pictures.")
    if len(state.classes) < 2:
        raise InputError("Name the classes first (two at least): the language model chooses among them.")
    hidden = session.checks.hidden_columns()

    def text_of(item: int) -> str:
        content = items.show(item)
        row = {name: value for name, value in (content.row or {}).items() if str(name) not in hidden}
        text = content.text or "\n".join(f"{name}: {value}" for name, value in row.items())
        return text[:MOST_LETTERS]

    n_of: Counter[int] = Counter()
    examples: list[int] = []
    for item, code in state.codes.items():
        if code >= 0 and n_of[code] < EXAMPLES and len(examples) < MOST_EXAMPLES:
            n_of[code] += 1
            examples.append(item)
    open_items = tuple(item for item in range(len(session.pool)) if item not in set(examples))
    instructions = state.instructions[-1].text if state.instructions else ""
    return Questions(
        open_items,
        tuple(map(text_of, open_items)),
        tuple(state.classes),
        instructions,
        tuple((text_of(item), state.classes[state.codes[item]]) for item in examples),
    )


def ask(
    server: Server,
    questions: Questions,
    report: OnProgress,
    *,
    stop: Callable[[], bool] = lambda: False,
    seconds: float = _SECONDS,
) -> list[Prediction]:
    """Ask about every item; what was answered before, also before a kill, is not asked again.

    Args:
        server: whom to ask.
        questions: what to ask.
        report: told how far it is.
        stop: asked again and again; true ends the asking.
        seconds: patience with one answer.

    Returns:
        (item, class, confidence) of the items that got a readable answer.

    Raises:
        InputError: a server that does not answer, refuses, or answers in another form; what came is kept.
        Cancelled: `stop` said so; what came is kept.
    """
    cache = _Kept(server)
    digests = [cache.digest(questions.messages(text)) for text in questions.texts]
    open_places = [place for place, digest in enumerate(digests) if digest not in cache.answers]
    client = _Client(server, questions.classes, seconds)
    n_done, n_wrong = len(digests) - len(open_places), 0
    pool = ThreadPoolExecutor(_TOGETHER, thread_name_prefix="language-model")
    try:
        for place, answer in _answered(pool, client, questions, open_places, stop):
            if answer is None:
                n_wrong += 1
                if n_wrong >= _GIVE_UP and not cache.answers:
                    raise InputError(
                        f"{server.model} at {server.address} names none of the classes in its answers. Try "
                        "another model, or say in the instructions which names to use."
                    )
            else:
                cache.add(digests[place], answer)
            n_done += 1
            report(n_done / len(digests), f"{n_done:,} of {len(digests):,} answered, {n_wrong:,} unreadable")
    finally:
        client.closed = True
        pool.shutdown(wait=False, cancel_futures=True)
        cache.close()
    return [
        (item, *cache.answers[digest])
        for item, digest in zip(questions.items, digests, strict=True)
        if digest in cache.answers
    ]


def forget(server: Server) -> None:
    """Remove the answers that are kept on disk: they are in the project now."""
    _Kept.place_of(server).unlink(missing_ok=True)


def _answered(
    pool: ThreadPoolExecutor,
    client: _Client,
    questions: Questions,
    places: Sequence[int],
    stop: Callable[[], bool],
) -> Iterator[tuple[int, Answer | None]]:
    """Answers as they come, a few requests at a time."""
    running: dict[Future[Answer | None], int] = {}
    waiting = iter(places)
    while True:
        while len(running) < 2 * _TOGETHER and (place := next(waiting, None)) is not None:
            running[pool.submit(client.ask, questions.messages(questions.texts[place]))] = place
        if not running:
            return
        futures, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in futures:
            yield running.pop(future), future.result()
        if stop():
            raise Cancelled


class _Kept:
    """Answers of a server on disk, a line each; one that was cut by a kill is left out."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.answers: dict[str, Answer] = {}
        place = self.place_of(server)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    entry = json.loads(line)
                    self.answers[str(entry["asked"])] = str(entry["class"]), float(entry["confidence"])
        self._file = place.open("a", encoding="utf-8")
        self._file.write("\n")  # what was cut ends here

    @staticmethod
    def place_of(server: Server) -> Path:
        name = sha256(f"{server.model}@{server.address}".encode()).hexdigest()[:16]
        return workbench_home() / "language-models" / f"{name}.jsonl"

    def digest(self, messages: Sequence[dict[str, str]]) -> str:
        return sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()[:32]

    def add(self, digest: str, answer: Answer) -> None:
        self.answers[digest] = answer
        line = {"asked": digest, "class": answer[0], "confidence": answer[1]}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Client:
    """Requests to one server; safe for several threads.

    Args:
        server: whom to ask.
        classes: names to choose from.
        seconds: patience with one answer.
    """

    def __init__(self, server: Server, classes: Sequence[str], seconds: float) -> None:
        from urllib.request import getproxies, proxy_bypass

        import urllib3

        self._server = server
        self._classes = tuple(classes)
        parts = urllib3.util.parse_url(server.address)
        proxy = None if proxy_bypass(parts.host or "") else getproxies().get(parts.scheme or "")
        self._http = (urllib3.PoolManager if proxy is None else partial(urllib3.ProxyManager, proxy))(
            maxsize=_TOGETHER,
            timeout=urllib3.Timeout(connect=10.0, read=seconds),
            retries=urllib3.Retry(
                _TRIES,
                backoff_factor=0.5,
                status_forcelist=(429, 500, 502, 503, 504),
                allowed_methods=None,
                raise_on_status=False,
            ),
        )
        self._lock = threading.Lock()
        self._draws = 1
        self._refused: set[str] = set()
        self.closed = False

    def ask(self, messages: Sequence[dict[str, str]]) -> Answer | None:
        """Class of one text with the probability that the server tells, or the share of several draws.

        Returns:
            None where no answer names a class.
        """
        draws: list[str | None] = []
        while len(draws) < self._draws and not self.closed:
            choices = self._choices(messages, self._draws - len(draws))
            if not draws and len(choices) == 1:
                name, sure = self._read(choices[0])
                if sure is not None:
                    return None if name is None else (name, sure)
            draws += [self._read(choice)[0] for choice in choices]
            if self._draws == 1:
                with self._lock:
                    self._draws = DRAWS  # it tells no probabilities: the answers of several draws do
        names = Counter(name for name in draws if name is not None)
        if not names:
            return None
        name, count = names.most_common(1)[0]
        return name, (count + 1 / len(self._classes)) / (len(draws) + 1)

    def _choices(self, messages: Sequence[dict[str, str]], n: int) -> list[Any]:
        one_of = {"type": "string", "enum": list(self._classes)}
        schema = {"type": "object", "properties": {"class": one_of}, "required": ["class"]}
        answer = {"name": "answer", "strict": True, "schema": schema | {"additionalProperties": False}}
        body: dict[str, Any] = {
            "model": self._server.model,
            "messages": list(messages),
            "temperature": 0.0 if n == 1 and self._draws == 1 else 1.0,
        }
        options = {
            "response_format": {"type": "json_schema", "json_schema": answer},
            "n": n,
            "max_tokens": 200,
            "logprobs": True,
        }
        body |= {key: option for key, option in options.items() if key not in self._refused}
        status, text = self._posted(body)
        if status in (400, 422) and (present := [key for key in options if key in body]):
            # a server that knows no such option goes without: the one that it names, else one after the other
            self._refused.add(next((key for key in present if key in text and key != "n"), present[0]))
            return self._choices(messages, n)
        if status != 200:
            raise InputError(
                f"{self._server.address} answered {status}: {cut(text)}. Nothing changed; what was answered "
                "before is kept."
            )
        try:
            choices = json.loads(text)["choices"]
        except (ValueError, KeyError, TypeError, RecursionError):
            choices = None
        if not isinstance(choices, list) or not choices:
            raise InputError(
                f"{self._server.address} does not answer as an OpenAI-compatible server: {cut(text)}"
            )
        return choices[:n]

    def _posted(self, body: dict[str, Any]) -> tuple[int, str]:
        import urllib3

        headers = {"Authorization": f"Bearer {self._server.key}"} if self._server.key else {}
        try:
            response = self._http.request(
                "POST",
                f"{self._server.address}/chat/completions",
                json=body,
                headers=headers,
                redirect=False,  # another address would get the key and the texts
                preload_content=False,
            )
            try:
                return response.status, response.read(_MOST_OCTETS).decode("utf-8", "replace")
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            why = getattr(error, "reason", None) or error
            raise InputError(
                f"{self._server.address} does not answer ({cut(str(why))}). Nothing changed; what was "
                "answered before is kept, and the same request goes on."
            ) from error

    def _read(self, choice: Any) -> tuple[str | None, float | None]:
        """Class that an answer names, and its probability where the server tells those of the tokens."""
        try:
            name = self._named(choice["message"]["content"])
        except (KeyError, TypeError, AttributeError):  # nothing is said, or in no text
            return None, None
        tokens = ((choice.get("logprobs") or {}) if isinstance(choice, dict) else {}).get("content")
        if name is None or not isinstance(tokens, list) or not tokens:
            return name, None
        try:
            words = [str(token["token"]) for token in tokens]
            logs = [float(token["logprob"]) for token in tokens]
        except (KeyError, TypeError, ValueError):
            return name, None
        literal = json.dumps(name, ensure_ascii=False)[1:-1]
        start = "".join(words).rfind(literal)
        if start < 0 or not all(map(math.isfinite, logs)):
            return name, None
        sure, place = 0.0, 0
        for word, log in zip(words, logs, strict=True):
            if place < start + len(literal) and place + len(word) > start:
                sure += log
            place += len(word)
        return name, min(1.0, math.exp(sure))

    def _named(self, content: str) -> str | None:
        """The class in an answer: of its JSON, or the answer itself."""
        text = content.strip().removeprefix("```json").strip("`\n ")
        with suppress(ValueError, RecursionError):
            entry = json.loads(text)
            text = entry["class"] if isinstance(entry, dict) else text
        alike = [name for name in self._classes if name.casefold() == text.strip().casefold()]
        return text.strip() if text.strip() in alike else alike[0] if len(alike) == 1 else None
