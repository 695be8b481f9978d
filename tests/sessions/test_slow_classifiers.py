"""Classifiers of somebody else that are slow, limited to a few classes, and fail by turns."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from tests.sessions.conftest import answer
from workbench.classifiers import as_classifier
from workbench.errors import InputError
from workbench.registry import CodeName
from workbench.sessions import Session, drawing

SLOW = CodeName(f"{__name__}:InContextClassifier")


class InContextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A stand-in for a tabular foundation model: predictions are made from the rows of the fit."""

    seconds = 0.0
    """That all predictions so far took, by `seconds_a_row`; the test's clock."""
    seconds_a_row, seconds_a_call = 0.05, 0.0
    failures: Iterator[bool] = iter(())

    def __init__(self, device: str = "auto", n_estimators: int = 8, random_state: Any = None) -> None:
        self.device, self.n_estimators, self.random_state = device, n_estimators, random_state

    def fit(self, X: Any, y: Any) -> "InContextClassifier":
        if next(type(self).failures, False):
            raise RuntimeError("CUDA is not available")
        self.classes_ = np.unique(y)
        if len(self.classes_) > 10:
            raise ValueError("Number of classes exceeds the maximal number of 10.")
        self.rows_, self.codes_ = np.asarray(X), np.asarray(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        type(self).seconds += self.seconds_a_call + self.seconds_a_row * len(X)
        distances = ((np.asarray(X)[:, None] - self.rows_[None]) ** 2).sum(axis=2)
        weights = np.exp(-distances / distances.mean(axis=1, keepdims=True))
        p = np.stack([weights[:, self.codes_ == c].sum(axis=1) for c in self.classes_], axis=1)
        return p / p.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InContextClassifier, "seconds", 0.0)
    monkeypatch.setattr(drawing, "perf_counter", lambda: InContextClassifier.seconds)


def test_a_slow_classifier_scores_as_many_items_as_there_is_time_for(start: Callable[..., Session]) -> None:
    session = start("three-gaussians", pool_options={"n_items": 3000}, classifier=SLOW)
    answer(session, session.pool, 12)
    before = InContextClassifier.seconds
    assert session.refit() is not None
    model = session.model
    assert model is not None and model.scored is not None and "probabilities" not in model.__dict__
    assert model.scored.items.size in (99, 100)  # 5 s
    np.testing.assert_allclose(model.scored.probabilities, model.predict_proba(model.scored.items))
    (ask,) = [ask for ask in session.ask(6) if ask.role == "policy"][:1]
    assert model.among is not None and ask.item in model.among
    assert session.predictions.evaluation.n == np.isin(model.scored.items, session.pool.test.test).sum() > 0
    session.predictions.of(ask.item)
    assert InContextClassifier.seconds - before < 0.05 * 400
    again = Session.open(session.id, store=session.store)
    assert again.model is not None and again.model.scored is not None
    np.testing.assert_array_equal(again.model.scored.items, model.scored.items)


def test_many_labels_and_none_open_among_the_scored_cost_nothing(start: Callable[..., Session]) -> None:
    session = start("three-gaussians", pool_options={"n_items": 3000}, classifier=SLOW)
    trainable = session.pool.trainable.tolist()
    names = session.pool.classes
    session.items.import_labels([(i, names[i % 3]) for i in trainable[:600]], "a file")
    session.refit()
    assert InContextClassifier.seconds == pytest.approx(5.0, abs=0.06)  # no labelled item beyond these
    model = session.model
    assert model is not None and model.scored is not None
    rest = np.intersect1d(model.scored.items, session.pool.trainable).tolist()
    session.items.import_labels([(i, names[i % 3]) for i in rest], "another file")
    with pytest.raises(InputError, match="wait for the next fit"):
        session.predictions.classes()
    session.items.import_labels([(i, names[i % 3]) for i in trainable], "the rest")
    with pytest.raises(InputError, match="Nothing is left to ask"):
        session.predictions.classes()
    assert model.predict_proba(np.empty(0, dtype=np.int64)).shape == (0, 3)


def test_who_asks_waits_for_no_prediction_and_labels_are_scored_at_once(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start("three-gaussians", pool_options={"n_items": 600}, classifier=SLOW)
    answer(session, session.pool, 12)
    session.refit()
    session.questions.add("urgent")
    model, before = session.model, InContextClassifier.seconds
    assert model is not None and model.scored is not None
    asks = session.ask(100)
    scored = [ask for ask in asks if ask.item in model.scored.items]
    assert 0 < len(scored) < 100 and all(bool(ask.guess) == (ask in scored) for ask in asks)
    assert len(session.queue.items(110)) == 110
    rest = [ask.item for ask in asks if ask not in scored]
    session.items.label(rest[0], session.classes[0])
    assert InContextClassifier.seconds == before
    monkeypatch.setattr(InContextClassifier, "seconds_a_call", 1.0)
    session.items.label(rest, session.classes[0])
    n_scored = np.isin(list(session.state.labels), model.scored.items).sum()
    table = session.labels
    cost = 1.0 + 0.05 * (len(table) - n_scored)
    assert InContextClassifier.seconds - before == pytest.approx(cost)
    assert session.items.to_pandas().loc[rest[0], "confidence"] == pytest.approx(
        max(session.predictions.of(rest[0]).values()), abs=1e-6
    )


@pytest.mark.parametrize(("a_row", "a_call"), [(1e-4, 0.0), (1e-5, 1.0)])
def test_a_quick_one_scores_all_of_them(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch, a_row: float, a_call: float
) -> None:
    monkeypatch.setattr(InContextClassifier, "seconds_a_row", a_row)
    monkeypatch.setattr(InContextClassifier, "seconds_a_call", a_call)
    session = start("three-gaussians", pool_options={"n_items": 3000}, classifier=SLOW)
    answer(session, session.pool, 12)
    session.refit()
    assert session.model is not None and session.model.scored is None and session.model.among is None


def test_a_fit_that_fails_leaves_the_last_model_and_its_reason(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InContextClassifier, "failures", iter([False, True, False]))
    session = start(classifier=SLOW)
    answer(session, session.pool, 12)
    session.refit()
    model = session.model
    answer(session, session.pool, 3)
    with pytest.raises(InputError, match="CUDA is not available"):
        session.refit()
    assert session.model is model and session.stale and session.ask(1)
    assert session.refit() is not None and not session.stale


def test_more_classes_than_it_takes_are_its_own_refusal() -> None:
    X, y = np.arange(22.0)[:, None], np.arange(22) % 11
    with pytest.raises(InputError, match=r"could not fit: .*maximal number of 10\. Change"):
        as_classifier(InContextClassifier()).fit(X, y)
