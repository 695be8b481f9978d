"""Values that pages keep are found again by all that they depend on, and by nothing less."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.app.pages import open_page, texts
from tests.app.uncertainty.test_teaching import started
from tests.sessions.fakes import FAKE
from workbench.app.access import current, uploads
from workbench.app.data import forms
from workbench.app.history import tables
from workbench.app.label import oracle
from workbench.app.lessons import together
from workbench.app.server import serve
from workbench.app.serving import evaluation, jobs
from workbench.app.serving.caching import stamp
from workbench.app.serving.jobs import Job, JobManager, manager
from workbench.app.words.text import role_words
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.sessions.reopening import is_gone
from workbench.sessions.rounds import Round
from workbench.sessions.simulate import simulate
from workbench.store import Store


def pictures(folder: Path, n: int) -> None:
    for number, name in enumerate(("cat", "dog")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            path = folder / name / f"{i}.png"
            if not path.exists():
                Image.fromarray(np.full((4, 4), 100 * number + i, dtype=np.uint8)).save(path)


def test_a_folder_that_grew_below_is_another_one(home: Path, tmp_path: Path) -> None:
    pictures(tmp_path / "pets", 6)
    page = open_page("data")
    page.session_state["brought"] = str(tmp_path / "pets")
    page.run()
    page.selectbox(key="images-features").set_value("pixels").run()
    assert "12" in texts(page)
    pictures(tmp_path / "pets", 12)
    page.run()
    assert not page.exception and "24" in texts(page)
    page.button(key="start-own").click().run()
    assert not page.exception
    made = page.query_params["project"]
    current.forget(made[0] if isinstance(made, list) else made)
    again = Session.open(made[0] if isinstance(made, list) else made)
    assert len(again.pool) == 24


def test_the_stamp_is_of_every_file_that_is_read(tmp_path: Path) -> None:
    pictures(tmp_path / "pets", 2)
    before = stamp(str(tmp_path / "pets"))
    assert stamp(str(tmp_path / "pets")) == before != stamp("iris")
    (tmp_path / "pets" / "cat" / "0.png").write_bytes(b"other")
    replaced = stamp(str(tmp_path / "pets"))
    vectors = tmp_path / "v.npz"
    vectors.write_bytes(b"1")
    options = {"features": f"embeddings:{vectors}"}
    with_vectors = stamp(str(tmp_path / "pets"), options)
    vectors.write_bytes(b"22")
    assert len({before, replaced, with_vectors, stamp(str(tmp_path / "pets"), options)}) == 4
    assert forms._key(str(tmp_path / "pets"), {}) != forms._key(str(tmp_path / "pets"), options)


def test_random_questions_are_put_to_the_model_and_the_start_that_the_person_has(home: Path) -> None:
    session = started("iris", labels=9, classifier="logistic-regression", policy="margin")
    runs, job = oracle.baseline(session, 20)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    runs, ended = oracle.baseline(session, 20)
    assert ended is None and len(runs) == oracle.BASELINE_SEEDS
    first = session.rounds[0]
    for labels, errors in runs:
        # the same items known: the same first fit, the same first error
        assert labels[0] == first.n_labelled and errors[0] == pytest.approx(first.error)
        assert labels == [6, 10, 14, 18, 20], "they do not depend on fits, so few are made"
    session.change_model(classifier="svm-platt", policy="margin")
    session.refit()
    _, other = oracle.baseline(session, 20)
    assert other is not None and other is not job and other.wait(600)


def test_no_rival_is_drawn_where_the_comparison_would_not_be_fair(home: Path, tmp_path: Path) -> None:
    unfitted = Session.create("iris", annotator="ann")
    assert oracle.baseline(unfitted, 60) == ([], None)
    rng = np.random.default_rng(0)
    path = tmp_path / "half.csv"
    rows = [
        f"{x:.4f},{y:.4f},{'ab'[int(x > 0)] if i % 2 else ''}"
        for i, (x, y) in enumerate(rng.normal(size=(80, 2)))
    ]
    path.write_text("x,y,class\n" + "\n".join(rows))
    half = Session.create(str(path), target="class", annotator="ann", classifier=FAKE, policy="entropy")
    half.refit()
    assert half.rounds and oracle.baseline(half, 60) == ([], None)


def test_a_run_starts_from_the_items_it_is_given() -> None:
    pool = load_pool("iris").split(0)
    assert pool.test is not None
    start = pool.trainable[[0, 30, 60]].tolist()
    first = next(simulate(pool, "logistic-regression", "random", initial=start, budget=2))
    assert first.initial.tolist() == start and first.n_labelled == 3
    with pytest.raises(InputError, match="starts from items"):
        next(simulate(pool, "logistic-regression", "random", initial=pool.test.test[:2].tolist()))


def test_labels_are_judged_by_the_model_they_are_shown_for(home: Path, tmp_path: Path) -> None:
    session = started("wine", labels=15, classifier="logistic-regression", policy="margin")
    model = session.model
    assert model is not None
    session.change_model(classifier="svm-platt", policy="margin")
    job = evaluation.cross_validation(session, model)
    assert job.wait(600) and job.status == "done", job.error
    items, codes, _ = job.result
    told = "crossed", session.store.url, session.id, model.number, "logistic-regression", {}
    assert job.result[2] == pytest.approx(jobs.compute(job, *told, session=session)[2])
    assert set(items) == set(model.items) and len(codes) == len(items)
    session.refit()
    assert session.model is not None and evaluation.cross_validation(session, session.model) is not job


def test_calibration_is_of_the_items_and_not_of_how_many_they_are(home: Path) -> None:
    session = started("wine", labels=15, classifier="logistic-regression", policy="margin")
    model = session.model
    truth = session.pool.truth
    assert model is not None and truth is not None
    right = np.flatnonzero(model.probabilities.argmax(axis=1) == truth)
    wrong = np.flatnonzero(model.probabilities.argmax(axis=1) != truth)
    assert wrong.size
    code = truth[wrong[0]]
    of_code = right[truth[right] == code][:1]
    codes = np.array([code])
    one = evaluation.calibration(model, of_code, codes, "own", 5, None, None)
    two = evaluation.calibration(model, wrong[:1], codes, "own", 5, None, None)
    assert one.nll < two.nll


def test_the_gallery_of_an_earlier_visit_is_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = started("iris", labels=30, classifier="logistic-regression", policy="margin")
    assert session.model is not None and evaluation.cross_validation(session, session.model).wait(600)
    monkeypatch.setattr(current, "person", lambda *default: "ann")
    shown: list[int] = []
    monkeypatch.setattr(
        "workbench.app.desk.mount_gallery", lambda who, cards, stamp, **more: shown.append(len(cards))
    )
    page = open_page("history", session.id)
    item = next(i for i in session.pool.trainable.tolist() if i not in session.state.labels)
    session.items.label([item], session.classes[0])
    page.run()
    assert shown[-2:] == [30, 30], "while one looks they stay where they are"
    root = Path(__file__).resolve().parents[3]
    page.switch_page(str(root / "pages" / "label.py")).run()
    page.switch_page(str(root / "pages" / "history.py")).run()
    assert not page.exception and shown[-1] == 31


def test_the_log_says_in_words_why_an_item_was_asked_about_before_what_may_be_cut(home: Path) -> None:
    session = Session.create("iris", annotator="ann")
    ask = session.ask()[0]
    session.tell(ask.id, session.classes[0])
    row = tables.event_rows(session, session.state, 9)[0]
    assert row["Why asked"] == role_words(ask.role, "log") and row["What"] == "labelled"
    assert list(row)[:5] == ["What", "Class or change", "Item", "Who", "Why asked"]


@pytest.mark.parametrize(
    ("n_test", "told"), [(2, "error between 0.34 and 1.00 on 2 items"), (20, "error 1.000 on 20 items")]
)
def test_the_log_tells_the_error_of_few_items_as_a_range(home: Path, n_test: int, told: str) -> None:
    session = Session.create("iris", annotator="ann")
    fit = Round(number=0, n_labelled=4, n_test=n_test, error=1.0)
    event = SimpleNamespace(kind="round", payload=fit.to_json(), annotator="ann", item=None, time="2026")
    shown = SimpleNamespace(log=SimpleNamespace(events=[event]), pool=session.pool)
    assert tables.event_rows(shown, session.state, 9)[0]["Class or change"] == f"number 0, 4 labels, {told}"
    assert repr(fit) == f"<Round 0: 4 labels, {told}>"


def test_fits_of_one_number_of_labels_are_one_point_with_its_own_interval(home: Path) -> None:
    session = started("wine", labels=12, classifier="logistic-regression", policy="margin")
    for policy in ("entropy", "margin", "entropy"):
        session.change_model(policy=policy)
        session.refit()
    fig = together.drawn([r for r in session.rounds if r.n_test], [])
    (line,) = [trace for trace in fig.data if trace.name == "this class" and trace.customdata is not None]
    assert list(line.x) == sorted(set(line.x))
    assert str(fig.layout.xaxis.title.text).endswith("95 % interval of the error)"), "not of a mean over runs"


def test_a_job_that_failed_is_a_state_and_is_tried_again_when_asked(home: Path) -> None:
    manager = JobManager()

    def failing(job: Job) -> None:
        raise OSError(28, "no space left")

    def asked(n: int) -> Job:
        return manager.compute("owner", n, failing, title="Failing", lane="short", limit=600)

    one = asked(1)
    assert one.wait(600) and one.status == "failed"
    assert asked(1) is one
    other = asked(2)
    assert other is not one and other.wait(600)
    manager.forget(one)
    again = asked(1)
    assert again is not one and again.wait(600)


def test_a_job_that_ends_the_program_ends_as_failed() -> None:
    jobs = JobManager()

    def work(job: Job) -> None:
        sys.exit(3)

    job = jobs.submit("owner", "refit", work, lane="refit", limit=600)
    assert job.wait(600) and job.status == "failed" and "SystemExit" in job.error


def test_a_failed_model_offers_try_again_on_the_page(home: Path) -> None:
    session = started("wine", labels=15, classifier="logistic-regression", policy="margin")
    model = session.model
    assert model is not None
    own = Session.create(session.pool, annotator="ann")
    assert own.id != session.id
    made = session.fits.made_with(model.number)
    assert made["classifier"] == "logistic-regression"
    blocked = threading.Event()
    blocked.set()
    job = manager().submit(session.id, "tried", lambda job: 1 / 0, lane="short", limit=600)
    assert job.wait(600)
    from streamlit.testing.v1 import AppTest

    def script(owner: str) -> None:
        from workbench.app.serving.jobs import manager
        from workbench.app.shell import widgets

        found = manager().get(owner, "tried")
        if found is None:
            import streamlit as st

            st.markdown("asked for anew")
        else:
            widgets.job_panel(found, "tried", again=True)

    page = AppTest.from_function(script, args=(session.id,)).run()
    assert "division" in page.error[0].value
    page.button(key="tried-again").click().run()
    assert page.markdown[0].value == "asked for anew"


def test_the_question_about_an_existing_project_is_asked_once(home: Path) -> None:
    session = Session.create("overlapping", annotator="ann")
    page = open_page("data")
    page.button(key="start-overlapping").click().run()
    assert any(b.key == "go-on-with-it" for b in page.button)
    # closed by Esc, and another dialog opened
    page.button(key="options-wine").click().run()
    assert not page.exception and not any(b.key == "go-on-with-it" for b in page.button)
    assert Store.open().project(session.id).id == session.id


def test_a_file_where_the_server_may_not_look_is_gone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "locked" / "a.csv"
    path.parent.mkdir()
    path.write_text("a,class\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n")
    session = Session.create(str(path), target="class", annotator="ann")
    record = next(p for p in Store.open().projects() if p.id == session.id)
    assert not is_gone(record)

    def refuse(self: Path, **more: object) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", refuse)
    assert is_gone(record)


def test_the_largest_upload_is_what_the_server_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit import config

    before = config.get_option("server.maxUploadSize")
    try:
        config.set_option("server.maxUploadSize", 1)
        with pytest.raises(InputError, match="at most 1 MB"):
            uploads.check("x.csv", bytes(1 << 20) + b"x")
        config.set_option("server.maxUploadSize", 2)
        uploads.check("x.csv", bytes(1 << 20) + b"x")
    finally:
        config.set_option("server.maxUploadSize", before)
    with pytest.raises(InputError, match="at least 1 megabyte"):
        serve(max_upload_mb=-5)


def test_black_and_white_as_whole_numbers_is_black_and_white(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = (rng.random((20, 8, 8)) > 0.5).astype(int)
    np.savez(tmp_path / "bw.npz", images=images)
    pool = load_pool(str(tmp_path / "bw.npz"))
    shown = pool.items.show(0).image
    assert shown is not None and np.asarray(shown).max() == 255
    assert pool.features.max() == pytest.approx(1.0)
