"""A finish with an oracle: delivered, certified, and worth what it says."""

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from tests.sessions.test_finishing import PETS, made
from workbench.certificates import Certificate, verify
from workbench.errors import InputError
from workbench.sessions import ArrayOracle, Session, finish
from workbench.store import Store


def test_a_project_is_finished_and_its_certificate_recomputed(tmp_path):
    session = Session.create(
        "iris",
        classifier=FAKE,
        evaluation_share=0.0,
        annotator="ann",
        store=Store.open(tmp_path / "projects.sqlite"),
    )
    oracle = ArrayOracle(session.pool)
    size = len(session.pool.trainable)
    for item in session.pool.trainable[::4].tolist():
        session.label_item(item, oracle(item))
    before = len(session.state.codes)
    done = finish(session, error=0.1, confidence=0.9)
    assert len(done.labels) == size and done.certificate is not None
    assert done.certificate.people == before
    machine = [row for row in done.labels if row.source == "machine"]
    ids = {str(key): item for item, key in enumerate(session.pool.items.ids)}
    wrong = sum(row.label != oracle(ids[row.item]) for row in machine)
    assert wrong <= 0.1 * done.certificate.delivered
    assert before + done.answers + len(machine) == size
    assert verify(Certificate.from_json(done.certificate.to_json()), done.labels).holds


def test_a_column_that_cannot_be_certified_is_labelled_by_hand(tmp_path):
    session, truth = made(tmp_path, n=80, wrong=0.5)
    done = finish(session, oracle=truth.__getitem__, of="column:llm", attempts=2)
    assert done.certificate is None and done.attempts == 2
    assert done.answers == 80
    assert {row.source for row in done.labels} == {"person"}
    assert len(done.labels) == 80


def test_an_oracle_that_cannot_tell_counts_against_the_labels(tmp_path):
    session, truth = made(tmp_path, n=200)
    unsure = set(np.random.default_rng(0).permutation(200)[:100].tolist())
    done = finish(
        session, oracle=lambda item: None if item in unsure else truth[item], of="column:llm", attempts=1
    )
    assert done.certificate is None
    assert len(done.labels) == 100
    assert {row.label for row in done.labels} <= set(PETS)


def test_without_truth_or_oracle_it_says_what_to_do(tmp_path):
    session, truth = made(tmp_path, n=30)
    with pytest.raises(InputError, match="oracle"):
        finish(session)
    with pytest.raises(InputError, match="attempt"):
        finish(session, oracle=truth.__getitem__, attempts=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        finish(session, 1.0, oracle=truth.__getitem__, of="column:llm")
