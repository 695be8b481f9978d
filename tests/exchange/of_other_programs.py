"""The project whose answers went through other programs: what they wrote is kept in `written/`.

`written/label-studio-1.23.2.json` is what Label Studio exports after it took this project's tasks, the first
answered again there by a person; `written/datasets-5.2.0.parquet` what `load_dataset(...).to_parquet(...)`
makes of its Hugging Face folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.sessions import Session

WRITTEN = Path(__file__).parent / "written"
LABEL_STUDIO = WRITTEN / "label-studio-1.23.2.json"
DATASETS = WRITTEN / "datasets-5.2.0.parquet"
SWITCHES = ("fraud", "semi;colon", "Straße & <b>", *(f"tag {number}" for number in range(17)))
QUESTIONS = (("topic", ("refund", 'a "b" & c')), ("the tone", ("calm", "angry")), *SWITCHES)
PERSON = {"topic": 'a "b" & c', "fraud": "yes", "semi;colon": "yes"}
"""What the person answered in Label Studio about the first item; no to every other switch."""


def begun(store: Any, name: str = "letters") -> Session:
    """A project of two questions with classes and twenty switches."""
    texts = [f"letter number {i} about {'money' if i % 2 else 'parcels'}" for i in range(12)]
    return Session.create(
        texts,
        name=name,
        questions=QUESTIONS,
        store=store,
        annotator="ann",
        twins=False,
        classifier="logistic-regression",
        policy="margin",
    )


def answered(store: Any) -> Session:
    """Some of its items answered: some questions of each, and the last one by no alone."""
    session = begun(store)
    for place, one in enumerate(session.questions.sessions()):
        for item in range(4):
            if (item + place) % 5 != 4:
                one.items.label(item, one.classes[(item * 7 + place * 3) % 4 % 2])
    session.question("fraud").items.label(5, "no")
    return session


def labels_of(session: Session) -> dict[str, dict[int, str]]:
    """Answers: name of a question -> item -> class."""
    return {one.question_name: dict(one.state.labels) for one in session.questions.sessions()}
