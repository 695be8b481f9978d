"""Finish: the promise, the desk in check mode, and what comes of the checks."""

import io
import json
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.app.desks import desk_sync, operation
from tests.app.pages import open_page, texts
from tests.app.uncertainty.test_teaching import started
from workbench.app.access import current
from workbench.app.desk.cards import check_figures
from workbench.app.finish import certificate_plan
from workbench.app.finish.certificate_plan import forecast_job
from workbench.app.serving.jobs import manager
from workbench.certificates import verify
from workbench.exchange.auditing import read_finished
from workbench.exchange.labels import FORMATS, OF_IMAGES, export_labels
from workbench.exchange.rows import label_table
from workbench.figures.finish import Cost, answers_needed, falling_bound
from workbench.sessions import Session
from workbench.sessions.finishing import Checks
from workbench.sessions.measure import Evaluation, ModelVerdict

PETS = ["cat", "dog", "owl"]


@pytest.fixture
def tickets(home: Path, tmp_path: Path) -> tuple[Session, list[str]]:
    """A project on a table with somebody's labels, all right, and what is true."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=150)
    X = np.array([[0, 0], [3, 0], [0, 3]])[truth] + rng.standard_normal((150, 2))
    names = np.array(PETS)
    pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "llm_label": names[truth]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    session = Session.create(
        str(tmp_path / "t.csv"),
        pool_options={"exclude": ["llm_label"]},
        classes=PETS,
        annotator="ann",
        classifier="logistic-regression",
        policy="margin",
    )
    current.keep(session)
    return session, names[truth].tolist()


def checked(session: Session, truth: list[str], n: int, person: str = "ann") -> dict[str, Any]:
    """Answer checks at the desk as a browser does: the last reply."""
    reply = desk_sync(session, mode="check", person=person)
    for _ in range(n):
        card = reply["queue"][0]
        done = operation("label", card, **{"class": truth[card["item"]]})
        reply = desk_sync(session, done, mode="check", person=person)
        assert [ack["status"] for ack in reply["acks"]] == ["saved"], reply["acks"]
    return reply


def test_the_desk_checks_blind_and_says_how_it_stands(tickets: tuple[Session, list[str]]) -> None:
    session, truth = tickets
    session.checks.start(0.1, 0.9, of="column:llm_label")
    reply = desk_sync(session, mode="check")
    assert len(reply["queue"]) == 4
    for card in reply["queue"]:
        assert card["role"] == "check" and not {"guess", "guess_order", "near"} & card.keys()
        assert "llm_label" not in [row[0] for row in card["face"]["rows"]]
    told = reply["numbers"]["check"]
    assert told["phase"] == "checking" and told["checks"] == 0 and told["curve"] == [[0, 1.0]]
    now = session.checks.state()
    assert now is not None and told["words"].endswith(f"of the {now.size} labels wrong")
    fewer = check_figures(replace(now, size=now.size - 5))
    assert fewer["words"].endswith(f"of the surest {now.size - 5} of {now.size} labels wrong")
    reply = checked(session, truth, 9)
    told = reply["numbers"]["check"]
    assert (
        told["checks"] == 9
        and told["wrong"] == 0
        and told["ahead"] > 0
        and told["to_go"].endswith("to go")
        and told["curve"][-1][1] < 1.0
    )
    # an undo brings the card back under a new question; its next answer counts
    last = next(e.item for e in reversed(session.log.events) if e.kind == "label")
    undone = desk_sync(session, operation("undo", target=None), mode="check")
    assert undone["numbers"]["check"]["checks"] == 8 and undone["queue"][0]["item"] == last
    again = {"op": "again", "kind": "label", "ask": None, "item": last, "ms": 5, "class": truth[last]}
    assert desk_sync(session, again, mode="check")["acks"][0]["status"] == "saved"
    assert session.checks.state().evidence.checks == 9  # type: ignore[union-attr]
    refused = desk_sync(session, operation("skip", undone["queue"][1]), mode="check")
    assert refused["acks"][0]["status"] == "refused"
    # elsewhere the desk asks as ever
    assert "check" not in {card["role"] for card in desk_sync(session)["queue"]}


def test_where_a_class_is_rare_a_person_says_first_what_is_promised(
    tickets: tuple[Session, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, truth = tickets
    for item in session.pool.trainable[:12].tolist():
        session.items.label(item, truth[item])
    session.refit()
    assert not open_page("finish", session.id).button(key="finish-start").disabled
    monkeypatch.setattr(
        certificate_plan.labelling_speed, "of_rare_classes", lambda verdict: "**owl** is rare."
    )
    page = open_page("finish", session.id)
    assert page.button(key="finish-start").disabled
    assert "Choose above what is promised" in " ".join(one.value for one in page.caption)
    page.button_group(key="finish-about").set_value(certificate_plan.EACH).run()
    page.button(key="finish-start").click().run()
    assert session.checks.state().promise.per_class  # type: ignore[union-attr]


def test_two_browsers_share_the_checks(tickets: tuple[Session, list[str]]) -> None:
    session, _ = tickets
    session.checks.start(0.1, 0.9, of="column:llm_label")
    ann, ben = (desk_sync(session, mode="check", person=who)["queue"] for who in ("ann", "ben"))
    assert not {card["item"] for card in ann} & {card["item"] for card in ben}


def test_a_project_goes_from_the_promise_to_the_certificate(
    tickets: tuple[Session, list[str]], tmp_path: Path
) -> None:
    session, truth = tickets
    page = open_page("finish", session.id)
    assert not page.exception and page.metric[1].label == "Labels of column llm\\_label"
    page.slider(key="finish-error").set_value(10.0)
    page.slider(key="finish-confidence").set_value(90.0).run()
    for job in manager().active(session.id):
        assert job.wait(600)
    page.run()
    assert "checks" in texts(page)
    page.button(key="finish-start").click().run()
    assert not page.exception and session.checks.state().phase == "checking"  # type: ignore[union-attr]
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        checked(session, truth, 1)
    assert not desk_sync(session, mode="check")["queue"], "nothing more is asked once it is decided"
    assert desk_sync(session, mode="check", on=True)["queue"]
    page = open_page("finish", session.id)
    assert not page.exception
    certificate = session.checks.certificate()
    assert certificate is not None and certificate.id in texts(page)
    assert "at most 10 % of them wrong" in texts(page)
    file = tmp_path / "finished.csv"
    file.write_bytes(export_labels(session, "csv", "finished"))
    assert verify(certificate, read_finished(file)).holds
    file.write_bytes(file.read_bytes().replace(b",dog,certified", b",cat,certified", 1))
    assert not verify(certificate, read_finished(file)).holds
    # what people said goes on: another certificate, and the classes of it void that
    session.classes.merge("owl", "dog")
    page = open_page("finish", session.id)
    assert not page.exception and "merged into dog" in texts(page) and "void" in texts(page)


def test_every_format_says_whose_a_label_is(tickets: tuple[Session, list[str]]) -> None:
    session, truth = tickets
    session.checks.start(0.2, 0.8, of="column:llm_label")
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        checked(session, truth, 1)
    certificate = session.checks.certificate()
    assert certificate is not None
    for format in FORMATS:
        if format in OF_IMAGES:
            continue
        data = export_labels(session, format, "finished")
        if data[:2] == b"PK" and format != "npz":
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                data = b"".join(packed.read(name) for name in packed.namelist())
        assert certificate.id.encode() in data or format in ("npz", "parquet", "huggingface"), format
    table = pd.read_csv(io.BytesIO(export_labels(session, "csv", "finished")))
    assert set(table["source"]) == {"person", "machine"} and len(table) == 150
    assert set(table["certificate"].dropna()) == {certificate.id}
    lines = export_labels(session, "jsonl", "finished").splitlines()
    assert {json.loads(line)["source"] for line in lines} == {"person", "machine"}
    arrays = np.load(io.BytesIO(export_labels(session, "npz", "finished")))
    assert (arrays["source"] == "machine").sum() == (table["source"] == "machine").sum()
    assert (arrays["y"] >= 0).all() and set(arrays["certificate"]) == {"", certificate.id}
    # what is not a person's comes back as nobody's label
    from workbench.exchange.imports import import_labels

    back = import_labels(export_labels(session, "csv", "finished"), session.pool, "csv", session.classes)
    assert dict(back) == dict(session.state.labels)


@pytest.fixture
def learnt_since(tickets: tuple[Session, list[str]]) -> Session:
    """A project that was certified on wrong labels, and has a model of right ones since."""
    session, truth = tickets
    session.items.label([i for i in range(12) if truth[i] != "owl"], "dog")
    session.items.label([i for i in range(12) if truth[i] == "owl"], "cat")
    session.refit()
    session.checks.start(0.2, 0.8)
    frozen = session.checks.state().frozen  # type: ignore[union-attr]
    said = dict(zip(frozen.items.tolist(), (PETS[int(c)] for c in frozen.codes), strict=True))
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        ask = session.checks.next()
        assert ask is not None and session.checks.answer(ask.id, said[ask.item])
    for item in list(session.state.labels)[:12]:
        session.items.label(item, truth[item])
    session.refit()
    return session


def test_a_certified_label_is_told_with_the_fit_that_gave_it_and_nothing_of_a_later_one(
    learnt_since: Session,
) -> None:
    session = learnt_since
    frozen = session.checks.state().frozen  # type: ignore[union-attr]
    assert session.model is not None and session.model.number > frozen.round and session.checks.certificate()
    rows = [row for row in label_table(session, "finished") if row["source"] == "machine"]
    changed = [
        row["item"] for row in rows if row["label"] != PETS[session.model.probabilities[row["item"]].argmax()]
    ]
    assert changed and {row["model"] for row in rows} == {f"fit {frozen.round}"}
    assert all(row["probabilities_now"] is None and row["confidence"] is not None for row in rows)
    assert sorted(session.checks.relabelled(session.checks.state())) == changed  # type: ignore[arg-type]


@pytest.mark.parametrize("answers", [3.0, 1_000.0])
def test_where_the_model_has_learnt_a_certificate_anew_is_offered_if_it_is_less_work(
    learnt_since: Session, monkeypatch: pytest.MonkeyPatch, answers: float
) -> None:
    session = learnt_since
    n = len(session.checks.relabelled(session.checks.state()))  # type: ignore[arg-type]
    best = SimpleNamespace(answers=answers, in_answers=lambda: f"{answers:,.0f} checks")
    job = SimpleNamespace(active=False, partial=SimpleNamespace(choice=best))
    monkeypatch.setattr(certificate_plan, "forecast_of_tab", lambda *asked: job)
    page = open_page("finish", session.id)
    (promise,) = [one.value for one in page.caption if "The promise:" in one.value]
    assert "at most 20\u00a0% of them" in promise, "no line ends before the sign"
    assert not page.exception and f"it would give {n:,} of these labels another class" in texts(page)
    anew = [button for button in page.button if button.key == "finish-certify-anew"]
    assert [button.label for button in anew] == (["Certify anew for about 3"] if answers == 3 else [])
    assert page.button(key="finish-relabelled").label == f"Look at these {n:,}"
    if anew:
        anew[0].click()
        monkeypatch.undo()
        assert "Decide how wrong they may be" in texts(page.run())


def test_where_one_set_was_promised_its_checks_have_the_whole_width(
    tickets: tuple[Session, list[str]],
) -> None:
    session, truth = tickets
    session.checks.start(0.2, 0.8, of="column:llm_label")
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        ask = session.checks.next()
        assert ask is not None and session.checks.answer(ask.id, truth[ask.item])
    page = open_page("finish", session.id)
    assert "The checks" in [header.value for header in page.header] and not page.get("column")


def test_where_it_fails_the_page_says_what_to_do(tickets: tuple[Session, list[str]]) -> None:
    session, truth = tickets
    wrong = [PETS[(PETS.index(name) + 1) % 3] for name in truth]
    session.checks.start(0.05, 0.95, of="column:llm_label")
    while session.checks.state().phase == "checking":  # type: ignore[union-attr]
        checked(session, wrong, 1)
    page = open_page("finish", session.id)
    assert not page.exception and "Not at 5 %: the estimate is 100 %" in texts(page)
    page.button(key="finish-again").click().run()
    assert "This is attempt 2" in texts(page)


def test_likely_errors_of_a_column_come_first(home: Path, tmp_path: Path) -> None:
    from workbench.sessions.insight import doubtful_labels

    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=200)
    X = np.array([[0, 0], [6, 0], [0, 6]])[truth] + rng.standard_normal((200, 2))
    said = truth.copy()
    said[:20] = (said[:20] + 1) % 3
    names = np.array(PETS)
    pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "llm": names[said]}).to_csv(tmp_path / "t.csv", index=False)
    session = Session.create(
        str(tmp_path / "t.csv"), pool_options={"exclude": ["llm"]}, classes=PETS, annotator="ann"
    )
    found = doubtful_labels(session, "column:llm").tolist()
    assert sum(item < 20 for item in found[:20]) >= 18
    session.items.label(found[0], PETS[0])
    assert found[0] not in doubtful_labels(session, "column:llm").tolist()


def test_without_labels_the_page_says_what_is_missing(home: Path) -> None:
    session = started("iris", labels=1, classifier="logistic-regression", policy="margin")
    page = open_page("finish", session.id)
    assert not page.exception and "nothing to check yet" in texts(page)
    assert certificate_plan.sources(session) == []


def test_two_tabs_with_two_errors_both_get_their_forecast(tickets: tuple[Session, list[str]]) -> None:
    session, _ = tickets
    column = "column:llm_label"
    first = forecast_job(session, column, 0.05, 0.95, "ann")
    second = forecast_job(session, column, 0.07, 0.95, "bob")
    # each page looks again while the other's is worked out
    assert forecast_job(session, column, 0.05, 0.95, "ann") is first
    assert forecast_job(session, column, 0.07, 0.95, "bob") is second
    assert first.wait(600) and second.wait(600)
    assert (first.status, second.status) == ("done", "done")


def test_a_slider_that_is_moved_reads_no_column_again(
    tickets: tuple[Session, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = tickets
    counted = []
    whole = Checks.n_candidates

    def count(checks: Checks, of: str) -> int:
        counted.append(of)
        return whole(checks, of)

    monkeypatch.setattr(Checks, "n_candidates", count)
    test = open_page("finish", session.id)
    n_first = len(counted)
    test.slider(key="finish-error").set_value(7.0).run()
    assert not test.exception
    assert n_first and len(counted) == n_first


def test_a_slider_that_is_moved_on_ends_what_its_tab_no_longer_waits_for(
    tickets: tuple[Session, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = tickets
    gate = threading.Event()
    monkeypatch.setattr(certificate_plan, "_forecast", lambda job, *given: gate.wait(600))
    jobs = [forecast_job(session, "column:llm_label", error, 0.95, "ann") for error in (0.05, 0.07)]
    assert [one.cancelling for one in jobs] == [True, False]
    gate.set()
    assert all(one.wait(600) for one in jobs)


def test_the_pictures_hold_the_forecast_and_the_bound() -> None:
    costs = [Cost(0.05, 200.0, 100.0, 400.0, 900), Cost(0.1, 80.0, 60.0, 150.0, 1000)]
    figure = answers_needed(costs, costs[0], 1000)
    assert figure.data[-1].x == (0.05,) and list(figure.data[1].y) == [200.0, 80.0]
    assert answers_needed([], costs[0], 0).layout.annotations
    falling = falling_bound([1.0, 0.6, 0.7], 0.05, [2])
    assert list(falling.data[0].y) == [1.0, 0.6, 0.7] and list(falling.data[1].x) == [2]
    assert falling.layout.xaxis.dtick == 1, "no half a check"
    assert falling_bound([0.5] * 80, 0.05).layout.xaxis.dtick is None


@pytest.mark.parametrize(
    ("n", "wrong", "expected", "words"),
    [
        (0, 0, "unknown", "nobody has measured how many of them are wrong"),
        (30, 3, "3 % to 26 %", "between 3 and 23 of them wrong (30 measured: too few to tell)"),
        (150, 3, "2 % (0.7 % to 5.7 %)", "at most about 5 of them wrong, as 150 measured items tell"),
    ],
)
def test_what_finish_says_of_the_rest_is_no_more_than_what_was_measured(
    n: int, wrong: int, expected: str, words: str
) -> None:
    found = Evaluation.of(n, wrong, "evaluation set")
    predictions = SimpleNamespace(evaluation=found, verdict=ModelVerdict(found, 0.0))
    session: Any = SimpleNamespace(predictions=predictions)
    error = certificate_plan._expected(session, certificate_plan.MODEL)[0]
    assert error.replace("\u00a0", " ") == expected
    assert words in certificate_plan.lead(session, certificate_plan.MODEL, 87)
