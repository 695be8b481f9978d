"""Checks of frozen labels: an order that nobody chooses, answers that stay, and what they certify."""

import base64
import os
import signal
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.databases import database
from tests.oracles import step
from tests.sessions.fakes import FAKE
from workbench.certificates import Certificate, Labelled, Promise, has_second_look, verify
from workbench.errors import InputError
from workbench.exchange.auditing import read_finished
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.sessions import ArrayOracle, Session
from workbench.sessions.checks import frozen_of
from workbench.sessions.finish_state import last_frozen, machine_part
from workbench.sessions.finishing import Checks
from workbench.sessions.operations import Operation
from workbench.store import Event, Store

PETS = ["cat", "dog", "owl"]
ROOT = Path(__file__).resolve().parents[2]


def made(folder, n=300, wrong=0.0, seed=0, store=None):
    """A project on a table of which somebody else labelled a column, so many of it wrong; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    said = np.where(rng.random(n) < wrong, (truth + 1) % 3, truth)
    names = np.array(PETS)
    frame = pd.DataFrame({"x": rng.standard_normal(n), "z": rng.standard_normal(n), "llm": names[said]})
    frame.to_csv(folder / "pets.csv", index=False)
    session = Session.create(
        str(folder / "pets.csv"),
        pool_options={"exclude": ["llm"]},
        classes=PETS,
        evaluation_share=0.0,
        uniform_share=0.0,
        annotator="ann",
        store=store or Store.open(folder / "projects.sqlite"),
    )
    return session, names[truth].tolist()


def is_drawn_again(session, item):
    """Second looks at checks that were answered right."""
    frozen = session.checks.frozen()
    return has_second_look(frozen.seed, frozen.ids[frozen.place_of[item]])


def checked(session, truth, most=1000):
    """Answer checks until something is decided; what they say then."""
    now = session.checks.state()
    while now.phase == "checking" and most:
        ask = session.checks.next()
        assert session.checks.answer(ask.id, truth[ask.item])
        now, most = session.checks.state(), most - 1
    return now


def test_a_column_without_errors_is_certified_and_the_certificate_can_be_recomputed(tmp_path):
    session, truth = made(tmp_path)
    session.items.label(5, truth[5])
    started = session.checks.start(0.05, 0.95, of="column:llm")
    assert started.phase == "checking" and started.frozen.size == 299 and started.checks == 0
    now = checked(session, truth)
    assert now.phase == "certified" and now.wrong == 0 and now.bound <= 0.05
    assert 59 < now.checks < 110 and now.to_go == (0, 0)
    assert all(a >= b for a, b in zip(now.curve, now.curve[1:], strict=False))
    certificate = session.checks.certificate()
    assert session.checks.certificate().id == certificate.id and len(session.state.certified) == 1
    ids, state = session.pool.items.ids, session.state
    machine = machine_part(session.checks.state(), state)
    assert len(machine) == 299 - now.checks and not machine.keys() & state.codes.keys()
    rows = [Labelled(str(ids[i]), name, "person") for i, name in state.labels.items()]
    rows += [Labelled(str(ids[i]), name, "machine") for i, (name, _) in machine.items()]
    read = Certificate.from_json(certificate.to_json())
    assert verify(read, rows).holds
    other = next(name for name in PETS if name != rows[-1].label)
    assert not verify(read, [*rows[:-1], Labelled(rows[-1].item, other, "machine")]).holds
    # a label that a person gives afterwards makes another set, and another certificate
    session.items.label(next(iter(machine)), "owl")
    assert session.checks.certificate().id != certificate.id and len(session.state.certified) == 2


def test_freezing_and_certifying_are_operations_that_only_the_session_does(tmp_path):
    session, truth = made(tmp_path)
    session.checks.start(0.05, 0.95, of="column:llm")
    waiting = session.checks.next()
    session.checks.start(0.04, 0.95, of="column:llm")  # gives back what is open, in the same act
    assert checked(session, truth).phase == "certified"
    session.checks.certificate()
    assert session.state.asks[waiting.id].released
    acts = [
        event for event in session.log.events if event.kind in ("checks-started", "certified", "released")
    ]
    assert [event.kind for event in acts] == ["checks-started", "released", "checks-started", "certified"]
    assert acts[1].act == acts[2].act and len({event.act for event in acts}) == 3
    before = len(session.log.events)
    for kind in ("freeze", "certify"):
        assert session.apply([Operation(kind, kind)])[0].status == "refused"
    assert len(session.log.events) == before


def test_two_who_have_one_certificate_recorded_at_once_both_get_it(tmp_path, monkeypatch):
    session, truth = made(tmp_path)
    session.checks.start(0.05, 0.95, of="column:llm")
    checked(session, truth)
    bob, state = session.as_annotator("bob"), Checks.state

    def before_bob(checks):
        now = state(checks)
        monkeypatch.setattr(Checks, "state", state)
        bob.checks.certificate()
        return now

    monkeypatch.setattr(Checks, "state", before_bob)
    certificate = session.checks.certificate()
    assert certificate is not None and len(session.state.certified) == 1


def test_a_set_with_ties_is_exported_as_its_certificate_has_it(tmp_path):
    session, truth = made(tmp_path, n=100)
    bob = session.as_annotator("bob")

    def tie(item):
        session.items.label(item, truth[item])
        bob.items.label(item, next(name for name in PETS if name != truth[item]))

    tie(5)
    session.checks.start(0.2, 0.8, of="column:llm")
    now = checked(session, truth)
    assert now.phase == "certified"
    tie(next(iter(machine_part(now, session.state))))
    certificate = session.checks.certificate()
    session.export("csv", tmp_path / "finished.csv", "finished")
    rows = read_finished(tmp_path / "finished.csv")
    assert len(rows) == 98 and len(session.state.undecided) == 2
    assert verify(certificate, rows).holds


def test_a_column_of_many_errors_fails_and_the_next_attempt_spends_what_is_left(tmp_path):
    session, truth = made(tmp_path, wrong=0.4)
    session.checks.start(0.05, 0.95, of="column:llm")
    now = checked(session, truth)
    assert now.phase == "failed" and now.estimate > 0.2 and now.bound > 0.05
    assert session.checks.certificate() is None
    again = session.checks.start(0.3, 0.95, of="column:llm")
    assert again.promise.attempt == 2 and again.promise.delta == pytest.approx(0.0025)
    # answers of the first attempt are labels now, and no evidence for the second
    assert again.checks == 0 and again.frozen.size == 300 - now.evidence.checks
    assert len(session.state.training) == now.evidence.checks


def test_starting_again_with_the_same_promise_draws_nothing_anew(tmp_path):
    session, _ = made(tmp_path, n=100)
    first = session.checks.start(0.1, 0.9, of="column:llm")
    again = session.checks.start(0.1, 0.9, of="column:llm")
    assert again.frozen.started == first.frozen.started and len(session.state.frozen) == 1
    other = session.checks.start(0.2, 0.9, of="column:llm")
    assert other.promise.attempt == 2
    # the same labels have the same seed, whoever begins wherever; another attempt has another order
    assert other.frozen.seed == first.frozen.seed
    assert other.frozen.order(100).tolist() != first.frozen.order(100).tolist()


def test_a_second_attempt_promises_no_more_than_the_first_has_left(tmp_path):
    session, _ = made(tmp_path, n=100)
    session.checks.start(0.1, 0.8, of="column:llm")
    with pytest.raises(InputError, match="keep no 99 %"):
        session.checks.start(0.1, 0.99, of="column:llm")
    assert len(session.state.frozen) == 1
    assert session.checks.start(0.2, 0.8, of="column:llm").promise.attempt == 2


def test_people_share_the_checks_without_doubles(tmp_path):
    session, truth = made(tmp_path)
    session.checks.start(of="column:llm")
    ben = session.as_annotator("ben")
    mine, theirs = session.checks.ask(4), ben.checks.ask(4)
    assert not {a.item for a in mine} & {a.item for a in theirs}
    assert [a.id for a in session.checks.ask(4)] == [a.id for a in mine]
    assert all(a.guess == () and a.role == "check" for a in mine)
    # what comes after one that somebody still has before them counts once that one is answered
    assert ben.checks.answer(theirs[0].id, truth[theirs[0].item])
    now = session.checks.state()
    assert now.evidence.checks == 0 and now.evidence.later == 1
    for ask in mine:
        assert session.checks.answer(ask.id, truth[ask.item])
    assert session.checks.state().evidence.checks == 5
    # somebody goes away with checks on screen: the others take them once eight later ones are answered
    held = ben.checks.ask(2)
    for _ in range(12):
        ask = session.checks.next()
        assert session.checks.answer(ask.id, truth[ask.item])
    now = session.checks.state()
    assert not now.evidence.later and now.evidence.checks == 17
    late = next(ask for ask in held if not is_drawn_again(session, ask.item))
    assert not ben.checks.answer(late.id, truth[late.item])
    # a question of the policy's is nobody's check, and the other way round
    assert not {a.role for a in session.ask(3)} & {"check"}


def test_an_answer_is_taken_once_whatever_the_client_sends(tmp_path):
    session, _ = made(tmp_path, n=50)
    session.checks.start(of="column:llm")
    ask = session.checks.next()
    assert session.checks.answer(ask.id, "cat", operation="one")
    assert session.checks.answer(ask.id, "cat", operation="one")
    assert not session.checks.answer(ask.id, "dog", operation="two")
    assert session.checks.state().evidence.checks == 1
    with pytest.raises(InputError, match="cannot be skipped"):
        session.tell(session.checks.next().id, Event.skip())


def test_a_check_that_is_taken_back_comes_up_again_and_nowhere_else(tmp_path):
    session, truth = made(tmp_path, n=50)
    session.checks.start(of="column:llm")
    first = session.checks.next()
    session.checks.answer(first.id, None)  # nobody can tell: it counts as wrong
    assert session.checks.state().wrong == 1 and not session.state.codes
    session.undo()
    assert session.checks.state().evidence.checks == 0
    assert session.checks.next().item == first.item and session.checks.next().id != first.id
    assert first.item not in [a.item for a in session.ask(2)]
    session.redo()
    assert session.checks.state().wrong == 1
    session.items._event("correct", item=first.item, label=truth[first.item])
    assert session.checks.state().wrong == 0


def test_two_people_on_one_check_the_first_answer_counts(tmp_path):
    session, truth = made(tmp_path, n=51)
    session.checks.start(of="column:llm")
    ask = session.checks.ask(1, lease=-1.0)[0]  # ran out under her eyes
    assert not is_drawn_again(session, ask.item)  # else it would be a second look
    other = session.as_annotator("ben").checks.next()
    assert other.item == ask.item
    assert session.as_annotator("ben").checks.answer(other.id, truth[other.item])
    wrong = next(name for name in PETS if name != truth[ask.item])
    assert not session.checks.answer(ask.id, wrong)
    session.items.label(ask.item, wrong)  # elsewhere she may say so: the check stands
    assert session.checks.state().wrong == 0


def test_labels_of_items_that_were_not_frozen_are_none_of_frozen_labels(tmp_path):
    """Neither of one among the frozen items nor of one behind all of them."""
    session, truth = made(tmp_path, n=60)
    for item in (7, 59):
        session.items.label(item, truth[item])
    session.checks.start(of="column:llm")
    for item in (7, 59):
        session.items.label(item, next(name for name in PETS if name != truth[item]))
    assert session.checks.state().labelled_since == 0
    session.items.label(58, truth[58])
    assert session.checks.state().labelled_since == 1


def test_a_label_given_since_leaves_the_check_as_it_is(tmp_path):
    session, truth = made(tmp_path, n=60)
    started = session.checks.start(of="column:llm")
    item = int(started.frozen.items[started.frozen.order(1)[0]])
    session.items.label(item, truth[item])
    now = session.checks.state()
    assert now.labelled_since == 1 and now.evidence.checks == 0
    assert now.frozen.place_of[now.frozen.items].tolist() == list(range(60))
    assert session.checks.next().item == item  # drawn is drawn: asked again, blind
    session.checks.answer(session.checks.next().id, truth[item])
    session.items.clear([item])
    assert session.checks.state().evidence.checks == 1


def test_a_merge_of_classes_voids_what_was_certified(tmp_path):
    session, truth = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm")
    assert checked(session, truth).phase == "certified" and session.checks.certificate().holds
    session.classes.merge("owl", "dog")
    now = session.checks.state()
    assert now.phase == "void" and "merged into dog" in now.why
    with pytest.raises(InputError, match="merged"):
        session.checks.next()
    with pytest.raises(InputError, match="merged"):
        session.checks.certificate()
    session.undo()
    assert session.checks.state().phase == "certified"


def test_a_class_that_came_with_a_check_and_is_merged_voids_them_too(tmp_path):
    session, _ = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm")
    session.classes.add("kitten")
    ask = session.checks.next()
    assert session.checks.answer(ask.id, "kitten")  # a wrong label by its own word, until it is a cat
    session.classes.merge("kitten", "cat")
    now = session.checks.state()
    assert now.phase == "void" and "kitten was merged into cat" in now.why
    session.undo()
    assert session.checks.state().phase == "checking"


def test_a_class_that_is_taken_away_voids_frozen_labels_that_name_it(tmp_path):
    session, truth = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm")
    session.classes.remove("owl")
    now = session.checks.state()
    assert now.phase == "void" and "owl was taken away" in now.why
    with pytest.raises(InputError, match="taken away"):
        session.checks.next()
    session.undo()
    assert checked(session, truth).phase == "certified"


def test_a_pool_of_ten_is_looked_at_whole(tmp_path):
    session, truth = made(tmp_path, n=10)
    session.checks.start(0.05, 0.95, of="column:llm")
    now = checked(session, truth)
    assert now.phase == "certified" and now.checks == 10 and session.checks.next() is None
    assert session.checks.certificate().holds


@pytest.mark.parametrize(
    ("name", "kind", "value"), [("items", "<i8", -1), ("items", "<i8", 20), ("codes", "<i4", -1)]
)
def test_a_record_that_names_what_there_is_not_is_damaged(tmp_path, name, kind, value):
    session, _ = made(tmp_path, n=20)
    session.checks.start(0.2, 0.95, of="column:llm")
    event = session.state.frozen[-1]
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(event.payload["frozen"][name])), kind).copy()
    numbers[3] = value
    packed = base64.b64encode(zlib.compress(numbers.tobytes())).decode()
    payload = {
        **event.payload,
        "frozen": {**event.payload["frozen"], name: packed},
        "checksum": f"{name}{value}",
    }
    with pytest.raises(InputError, match="damaged: start the checks anew"):
        frozen_of(replace(event, payload=payload), session.pool.items.ids)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"error": 0.0}, "allowed error"),
        ({"error": 1.0}, "allowed error"),
        ({"confidence": 1.0}, "confidence"),
        ({"of": "column:none"}, "none"),
        ({"of": "model"}, "no model"),
    ],
)
def test_what_cannot_be_promised_is_said_before_anything_is_frozen(tmp_path, given, says):
    session, _ = made(tmp_path, n=50)
    with pytest.raises(InputError, match=says):
        session.checks.start(**{"of": "column:llm", **given})
    assert not session.state.frozen
    with pytest.raises(InputError, match="start them first"):
        session.checks.next()


def test_the_machines_labels_in_sets_of_the_surest(tmp_path):
    store = Store.open(tmp_path / "p.sqlite")
    session = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann", store=store)
    oracle = ArrayOracle(session.pool)
    step(session, oracle, 12)
    forecast = session.checks.forecast(0.2, 0.8)
    started = session.checks.start(0.2, 0.8)
    assert started.promise.sizes == tuple(forecast.sizes()) and forecast.size == started.frozen.size
    assert np.all(np.diff(started.frozen.confidences) <= 0)
    while session.checks.state().phase == "checking":
        ask = session.checks.next()
        session.checks.answer(ask.id, oracle(ask.item))
    now = session.checks.state()
    assert now.phase == "certified" and now.size in started.promise.sizes
    assert [one.size for one in now.sets()] == list(started.promise.sizes)
    # the model may learn from the checks; what was frozen stays
    before = now.frozen.codes.tolist()
    session.refit()
    assert session.checks.state().frozen.codes.tolist() == before
    assert session.checks.certificate().holds


def test_what_is_left_for_the_machine_is_counted_without_predictions(tmp_path, monkeypatch):
    session, truth = made(tmp_path)
    with pytest.raises(InputError, match="There is no model"):
        session.checks.n_candidates()
    session.change_model(classifier=FAKE)
    for item in (1, 2, 3, 4, 5, 6):
        session.items.label(item, truth[item])
    session.refit()
    of_model, of_column = (len(session.checks.candidates(of).items) for of in ("model", "column:llm"))
    monkeypatch.setattr("workbench.sessions.fitted_model.FittedModel.predict_proba", None)
    assert session.checks.n_candidates() == of_model == 294
    assert session.checks.n_candidates("column:llm") == of_column == 294


def test_checks_go_with_a_bundle_and_come_back(tmp_path):
    session, truth = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm", per_class=True)
    checked(session, truth, most=5)
    write_project_bundle(tmp_path / "bundle", session)
    other = Store.open(tmp_path / "other.sqlite")
    again = Session.open(open_bundle(tmp_path / "bundle", store=other).id, annotator="ann", store=other)
    assert again.checks.state().evidence.checks == 5
    assert again.checks.next().item == session.checks.next().item
    assert checked(again, truth).phase == "certified"


_CHECKER = """
import sys
import pandas as pd
from workbench.sessions import Session
from workbench.store import Store
session = Session.open(sys.argv[2], annotator=sys.argv[3], store=Store.open(sys.argv[1]))
while True:
    ask = session.checks.next()
    if session.checks.answer(ask.id, "cat"):
        print(ask.item, flush=True)
"""


def test_a_kill_at_any_check_loses_none_and_repeats_none(tmp_path):
    session, _ = made(tmp_path, n=300)
    session.checks.start(of="column:llm")
    process = subprocess.Popen(
        [sys.executable, "-c", _CHECKER, session.store.url, session.id, "ben"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    said = [int(process.stdout.readline()) for _ in range(3)]
    os.kill(process.pid, signal.SIGKILL)
    said += [int(line) for line in process.communicate()[0].splitlines() if line.strip()]
    # whoever goes on
    ben = Session.open(session.id, annotator="ben", store=session.store)
    for _ in range(3):
        ask = ben.checks.next()
        assert ben.checks.answer(ask.id, "cat")
        said.append(ask.item)
    state = session.state
    answered = [e.item for e in session.log.events if e.kind == "label"]
    assert len(set(answered)) == len(answered) and set(said) <= set(answered)
    frozen = last_frozen(state, session.pool.items.ids)
    order = frozen.items[frozen.order(len(answered))].tolist()
    assert answered == order
    assert session.checks.state().evidence.checks == len(answered)


def finished_rows(session):
    """The finished set as `verify` takes it."""
    ids, state = session.pool.items.ids, session.state
    rows = [Labelled(str(ids[i]), name, "person") for i, name in state.labels.items()]
    machine = machine_part(session.checks.state(), state)
    return rows + [Labelled(str(ids[i]), name, "machine") for i, (name, _) in machine.items()]


def test_what_is_said_of_each_class_is_certified_and_recomputed(tmp_path):
    session, truth = made(tmp_path)
    for item in range(40):
        session.items.label(item, truth[item])
    session.checks.start(0.1, 0.9, of="column:llm", per_class=True)
    now = checked(session, truth)
    certificate = session.checks.certificate()
    assert now.phase == "certified" and certificate.holds
    verdict = verify(Certificate.from_json(certificate.to_json()), finished_rows(session))
    assert verdict.holds, verdict.text()
    assert [one.name for one in certificate.classes] == sorted(PETS)
    assert sum(one.checks for one in certificate.classes) == now.checks
    assert all(low <= 1.0 <= high for one in certificate.classes for low, high in [one.precision])
    assert "Each class" in certificate.to_html()


def test_page_certificate_and_log_have_one_promise(tmp_path):
    session, truth = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm")
    now = checked(session, truth)
    promise = Promise(120, 0.2, 0.9, (120,), 1, "column:llm")
    assert now.promise == session.checks.certificate().promise == promise
    assert Promise.from_document(session.state.frozen[-1].payload["promise"]) == promise


def test_a_certificate_counts_labels_of_the_file_and_says_nothing_of_them(tmp_path):
    n, rng = 200, np.random.default_rng(0)
    names = np.array(PETS)
    truth = rng.integers(3, size=n)
    vendor = np.where(rng.random(n) < 0.3, (truth + 1) % 3, truth)
    kind = np.where(np.arange(n) < 100, names[vendor], "")
    frame = pd.DataFrame({"x": rng.standard_normal(n), "kind": kind, "llm": names[truth]})
    frame.to_csv(tmp_path / "half.csv", index=False)
    session = Session.create(
        str(tmp_path / "half.csv"),
        pool_options={"target": "kind", "exclude": ["llm"]},
        evaluation_share=0.0,
        annotator="ann",
        store=Store.open(tmp_path / "projects.sqlite"),
    )
    session.checks.start(0.2, 0.9, of="column:llm")
    checked(session, names[truth].tolist())
    certificate = session.checks.certificate()
    assert certificate.beside == len(session.state.labels) - len(certificate.checks) > 70
    assert certificate.sentence.startswith(f"{certificate.promise.size} labels; ")
    rows = finished_rows(session)
    assert verify(certificate, rows).holds
    for changed in (rows[1:], [*rows, Labelled("one more", "cat", "person")]):
        assert not verify(certificate, changed).holds


def looked_at_twice(session):
    """Answer until a check that has a second look is answered; its item."""
    frozen = session.checks.frozen()
    while True:
        ask = session.checks.next()
        session.checks.answer(ask.id, frozen.key(frozen.place_of[ask.item]))
        if is_drawn_again(session, ask.item):
            return ask.item


def test_one_right_check_in_ten_is_asked_again_of_another_person(tmp_path):
    session, truth = made(tmp_path, n=80)
    session.checks.start(0.2, 0.8, of="column:llm")
    ben = session.as_annotator("ben")
    item = looked_at_twice(session)
    before = session.checks.state()
    assert before.second_looks == (1, 0, 0, 0) and before.wrong == 0
    assert session.checks.next().item != item, "nobody looks twice at one's own"
    theirs = ben.checks.next()
    assert theirs.item == item and theirs.role == "check" and theirs.guess == ()
    wrong = next(name for name in PETS if name != truth[item])
    assert ben.checks.answer(theirs.id, wrong)
    now = session.checks.state()
    assert now.second_looks == (1, 1, 1, 1) and now.wrong == 1 and now.checks == before.checks
    assert ben.checks.next().item != item
    # somebody decides, with both answers in sight
    session.items.resolve(item, truth[item])
    now = session.checks.state()
    assert now.second_looks == (1, 1, 1, 0) and now.wrong == 0
    assert checked(session, truth).phase == "certified"
    certificate = session.checks.certificate()
    check = next(check for check in certificate.checks if check.answers)
    assert dict(check.answers) == {"ann": truth[item], "ben": wrong} and check.decided == truth[item]
    verdict = verify(Certificate.from_json(certificate.to_json()), finished_rows(session))
    assert verdict.holds and "1 disagreed" in verdict.text() and "1 disagreed" in certificate.to_html()


def test_a_second_look_after_the_certificate_takes_it_back_until_somebody_decides(tmp_path):
    session, truth = made(tmp_path, n=30)
    session.checks.start(0.02, 0.8, of="column:llm")  # a census: one wrong label is too many
    assert checked(session, truth).phase == "certified" and session.checks.certificate().holds
    looks = session.checks.state().second_looks
    assert looks.drawn and not looks.made
    ben = session.as_annotator("ben")
    ask = ben.checks.next()
    assert ben.checks.answer(ask.id, None)
    now = session.checks.state()
    assert now.second_looks.disagreed == 1 and now.wrong == 1 and now.phase == "failed"
    assert now.why == f"1 wrong label was found: of {now.size} at most 0 may be wrong."
    assert session.checks.certificate() is None
    session.items.resolve(ask.item, truth[ask.item])
    assert session.checks.certificate().holds


def test_two_certificates_of_one_project_each_hold_for_their_set(tmp_path):
    session, truth = made(tmp_path, n=200)
    session.checks.start(0.2, 0.8, of="column:llm")
    checked(session, truth)
    first, rows = session.checks.certificate(), finished_rows(session)
    assert verify(first, rows).holds
    session.checks.start(0.1, 0.8, of="column:llm")
    assert session.checks.state().phase == "checking" and session.checks.certificate() is None
    checked(session, truth)
    second = session.checks.certificate()
    assert second.promise.attempt == 2 and second.id != first.id and second.beside == len(first.checks)
    assert verify(second, finished_rows(session)).holds
    assert not verify(second, rows).holds and not verify(first, finished_rows(session)).holds


def test_an_item_that_is_relabelled_or_renamed_after_the_draw(tmp_path):
    session, truth = made(tmp_path, n=120)
    session.checks.start(0.2, 0.9, of="column:llm")
    checked(session, truth)
    item = session.state.standing and next(iter(session.state.standing))
    session.items.relabel([item], next(name for name in PETS if name != truth[item]))
    now = session.checks.state()
    assert now.phase == "certified" and now.wrong == 0  # the check stands as it was answered
    session.classes.rename("owl", "owls")
    certificate = session.checks.certificate()
    rows = finished_rows(session)
    mended = [Labelled(r.item, truth[int(r.item)].replace("owl", "owls"), r.source) for r in rows]
    assert certificate.drawn_from != certificate.labels_sha256
    assert "renamed since" in verify(certificate, mended).text()


@pytest.mark.slow  # alone: two people on PostgreSQL check one column
def test_checks_on_a_server_are_shared_and_certified(tmp_path):
    with database("postgresql", tmp_path) as store:
        session, truth = made(tmp_path, n=120, store=store)
        session.checks.start(0.2, 0.9, of="column:llm", per_class=True)
        people = [session, Session.open(session.id, annotator="ben", store=store)]
        said = []
        while session.checks.state().phase == "checking":
            for person in people:
                if ask := person.checks.next():
                    assert person.checks.answer(ask.id, truth[ask.item])
                    said.append((person.annotator, ask.item))
        # of another person some are asked again, of one nothing
        assert len(set(said)) == len(said)
        assert verify(session.checks.certificate(), finished_rows(session)).holds
        again = Session.open(session.id, annotator="eve", store=store)
        assert again.checks.state().certificate["id"] == session.checks.certificate().id


@pytest.mark.slow  # alone: 200,000 labels from the table to the certificate
def test_many_labels_are_frozen_drawn_and_checked(tmp_path):
    n = 200_000
    rng = np.random.default_rng(0)
    said = np.array(PETS)[rng.integers(3, size=n)]
    pd.DataFrame({"x": rng.standard_normal(n).round(3), "llm": said}).to_csv(
        tmp_path / "big.csv", index=False
    )
    session = Session.create(
        str(tmp_path / "big.csv"),
        pool_options={"exclude": ["llm"]},
        classes=PETS,
        evaluation_share=0.0,
        annotator="ann",
        store=Store.open(tmp_path / "projects.sqlite"),
    )
    session.checks.start(0.1, 0.9, of="column:llm")
    now = checked(session, said.tolist())
    assert now.phase == "certified" and now.frozen.size == n and now.checks < 60
    assert session.checks.certificate().holds


def test_a_census_is_offered_where_few_are_left():
    from workbench.sessions.finish_state import census_words, is_census

    assert is_census(10, 0.05, 0.955) and is_census(90, 0.05, 0.955) and not is_census(1_000, 0.05, 0.955)
    assert "Label all 10: a census" in census_words(10, 0.05, 0.955)
