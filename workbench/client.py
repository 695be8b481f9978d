"""A client of the HTTP API, for programs that have Python and nothing else.

It uses the standard library alone, so this file can be copied:

    from workbench.client import Client

    project = Client("http://127.0.0.1:8501", "PROJECT", "wb_...")
    for question in project.questions(4):
        project.label(question, "card")
"""

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen


class RefusedError(Exception):
    """The server said no.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Client:
    """One person's way into one project.

    Args:
        server: address of the server, such as "http://127.0.0.1:8501".
        project: its id.
        key: from the Data page or `workbench key`.
        seconds: to wait for an answer.
        tries: how often a request is sent that the server asks to send later, or that did not arrive.
    """

    def __init__(self, server: str, project: str, key: str, *, seconds: float = 30.0, tries: int = 5) -> None:
        self._base = f"{server.rstrip('/')}/api/v1/projects/{project}"
        self._key, self._seconds, self._tries = key, seconds, tries

    def progress(self) -> dict[str, Any]:
        """Progress of the project."""
        return self._asked("GET", "")

    def questions(self, n: int = 1) -> list[dict[str, Any]]:
        """The next questions, up to n."""
        questions: list[dict[str, Any]] = self._asked("POST", "/questions", {"n": n})["questions"]
        return questions

    def items(self, n: int = 1) -> list[dict[str, Any]]:
        """The next items, up to n, each with all `questions` that are open about it."""
        items: list[dict[str, Any]] = self._asked("POST", "/items", {"n": n})["items"]
        return items

    def tell(self, item: Mapping[str, Any], answers: Mapping[str, str | bool | None]) -> str:
        """Answer several questions about an item: class, True or False, None for unsure.

        What is open is stored; of the others, where something else stands, the sentence says which they are.
        """
        labels = {
            name: ("yes" if answer else "no") if isinstance(answer, bool) else answer
            for name, answer in answers.items()
        }
        return self._row(item, labels)

    def label(self, question: Mapping[str, Any], name: str, *, new: bool = False) -> str:
        """Answer a question with a class; "saved" once it is on disk, else why not."""
        more = {"new": True} if new else {}
        return self._one(question, "label", **{"class": name}, **more)

    def skip(self, question: Mapping[str, Any]) -> str:
        """Set an item aside; of `questions` or of `items`."""
        if "questions" in question:
            return self._row(question, {}, skip=True)
        return self._one(question, "skip")

    def unsure(self, question: Mapping[str, Any]) -> str:
        """Say that one cannot tell; of an item of `items`, any of its questions."""
        if "questions" in question:
            return self._row(question, dict.fromkeys(question["questions"]))
        return self._one(question, "unsure")

    def answer(self, operations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send operations, each with an `op` of its own: sent again, it is not repeated."""
        outcomes: list[dict[str, Any]] = self._asked("POST", "/answers", {"answers": list(operations)})[
            "answers"
        ]
        return outcomes

    def labels(self, at_once: int = 500) -> Iterator[dict[str, Any]]:
        """All labels with what is known of them, an item once whatever comes meanwhile."""
        start = 0
        while page := self._asked("GET", f"/labels?start={start}&limit={at_once}")["labels"]:
            yield from page
            start = page[-1]["item"] + 1

    def predict(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """Class and probabilities of new rows."""
        predictions: list[dict[str, Any]] = self._asked("POST", "/predict", {"rows": list(rows)})[
            "predictions"
        ]
        return predictions

    def _one(self, question: Mapping[str, Any], kind: str, **more: Any) -> str:
        about = {"op": secrets.token_hex(8), "kind": kind, "ask": question["ask"], "item": question["item"]}
        return self._sent(about | more)

    def _row(self, item: Mapping[str, Any], answers: Mapping[str, str | None], **more: Any) -> str:
        about = {"op": secrets.token_hex(8), "kind": "answers", "item": item["item"], "answers": answers}
        return self._sent(about | more)

    def _sent(self, operation: Mapping[str, Any]) -> str:
        [outcome] = self.answer([operation])
        return f"{outcome['status']}: {outcome['why']}" if outcome["why"] else str(outcome["status"])

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        for tries_left in range(self._tries - 1, -1, -1):
            try:
                request = Request(self._base + path, data, headers, method=method)
                with urlopen(request, timeout=self._seconds) as reply:
                    document: dict[str, Any] = json.load(reply)
                    return document
            except HTTPError as error:
                problem = _problem(error.read())
                if error.code not in (429, 502, 503, 504) or not tries_left:
                    raise RefusedError(error.code, str(problem.get("why", error.reason))) from None
                time.sleep(min(30.0, float(problem.get("wait", 1.0))))
            except OSError:  # it may have arrived: an operation has an id, so it is sent again
                if not tries_left:
                    raise
                time.sleep(1.0)
        raise AssertionError("unreachable")


def _problem(body: bytes) -> dict[str, Any]:
    """Reason that a server gives for an error; none of a page that a proxy before it sends."""
    try:
        problem = json.loads(body or b"{}")
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
