"""Long computations in processes beside the server: that die, are cancelled, and leave no engine in it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sessions.fakes import DYING, ENDLESS, FAKE
from workbench.app.compare import comparison
from workbench.app.desk import cards
from workbench.app.serving import explanations, jobs
from workbench.app.serving.jobs import Job
from workbench.app.uncertainty import mapping
from workbench.classifiers import protocols
from workbench.errors import Cancelled, InputError
from workbench.pools import load_pool
from workbench.sessions import Session, insight
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.fit_process import refit_in_process
from workbench.store import Store
from workbench.studies import StudySpec, run_study
from workbench.work.companion import Companion


@pytest.fixture(autouse=True)
def processes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_FIT")


@pytest.fixture(scope="module")
def companion(home: Path) -> Iterator[Companion]:
    made = Companion("test-beside", {"WORKBENCH_TEST_DEATHS": str(home / "left")})
    yield made
    made.end()


def labelled(session: Session) -> Session:
    pool = session.pool
    assert pool.truth is not None
    for item in pool.trainable[::9].tolist():
        session.items.label(item, pool.classes[int(pool.truth[item])])
    return session


def crossed(job: Job, session: Session, companion: Companion) -> Any:
    model = session.model
    assert model is not None
    given = session.store.url, session.id, model.number, str(session.settings["classifier"]), {}
    return jobs.compute(job, "crossed", *given, where=lambda: companion, session=session)


def spec(classifier: str, **more: Any) -> StudySpec:
    given: dict[str, Any] = {"policies": ("margin", "random"), "seeds": 1, "budget": 6} | more
    return StudySpec("beside", ("iris",), (classifier,), **given)


def compared(job: Job, study: str, given: StudySpec, companion: Companion, hear: Any) -> Any:
    where = Store.open().url, study, None, 1
    return jobs.compute(job, "compared", given, *where, where=lambda: companion, hear=hear)


def test_cross_validation_beside_is_that_made_here(
    home: Path, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = labelled(Session.create("iris", classifier=FAKE, policy="margin", annotator="ann"))
    session.refit()
    found = crossed(Job("a", "b", ""), session, companion)
    monkeypatch.setenv("WORKBENCH_FIT", "inline")
    for one, other in zip(found, crossed(Job("a", "b", ""), session, companion), strict=True):
        np.testing.assert_allclose(one, other)


def test_a_process_that_dies_is_told_and_the_work_begun_again(
    home: Path, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_TEST_DEATHS", str(home / "left"))
    given = spec(DYING, options={"spared": 5})
    told: list[str] = []
    job = Job("a", "b", "Comparison")
    rounds: list[tuple[str, int]] = []

    def hear(news: list[Any]) -> None:
        if not news:
            rounds.clear()
        rounds.extend((one.policy, finished.n_labelled) for one, finished in news)
        told.append(job.message)

    (home / "left").write_text("1", encoding="utf-8")
    found = compared(job, "dies", given, companion, hear)
    assert "ended with 9; it begins again" in told[-1]
    plain = run_study(given, load=lambda one: load_pool("iris").split(one.seed))
    assert found.status == "finished" and found.rows() == plain.rows()
    # rounds that the first attempt told are told once
    assert len(rounds) == len(set(rounds))


@pytest.mark.slow  # twice; sessions/test_fit_process.py ends a process at each call
def test_a_process_that_dies_again_and_again_is_an_error(
    home: Path, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_TEST_DEATHS", str(home / "left"))
    given = spec(DYING, options={"spared": 5})
    (home / "left").write_text("9", encoding="utf-8")
    with pytest.raises(InputError, match="ended with 9, 2 times"):
        compared(Job("a", "b", "Comparison"), "dies again", given, companion, lambda news: None)


def test_a_comparison_that_is_cancelled_in_a_fit_ends_and_goes_on_later(
    home: Path, companion: Companion
) -> None:
    job, first = Job("a", "b", "Comparison"), companion.call("tests.sessions.fakes:pid")

    def hear(news: list[Any]) -> None:
        if news:
            job.cancel()

    with pytest.raises(Cancelled):
        compared(job, "stops", spec(ENDLESS), companion, hear)
    (run,) = Store.open().runs.all(study="stops")
    assert run.status == "cancelled" and run.n_rounds >= 1
    assert companion.call("tests.sessions.fakes:pid") == first


def test_a_job_that_waits_for_the_process_says_for_whom(companion: Companion) -> None:
    companion.call("tests.sessions.fakes:pid", begin=lambda: "Random questions")
    job, told = Job("a", "b", "Comparison"), []

    class Busy:
        busy, task = True, companion.task

        def call(self, *_: Any, begin: Any, **__: Any) -> None:
            told.extend([job.waits_for, begin(), job.waits_for])

    jobs.compute(job, "compared", where=Busy)  # type: ignore[arg-type]
    assert told == ["Random questions", "Comparison", ""]


def test_a_job_of_the_server_is_computed_beside_it(home: Path) -> None:
    given = spec(FAKE)
    job = comparison.job_of(comparison.start(given))
    assert job is not None and job.wait(600) and job.status == "done", job.error or job.details
    assert jobs.long_work().pid is not None
    plain = run_study(given, load=lambda one: load_pool("iris").split(one.seed))
    assert job.result.rows() == plain.rows()
    assert job.partial is not None
    jobs.long_work().end()


@pytest.mark.slow  # alone: a model that another process fitted is that of this one
def test_the_model_of_a_round_is_fitted_beside_and_read_here(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = labelled(Session.create("iris", classifier=FAKE, policy="margin", annotator="ann"))
    session.refit()
    session.items.label(int(session.pool.trainable[1]), session.classes[0])
    session.refit()
    _, job = mapping.at_round(session, 0)
    assert job is not None and job.wait(600) and job.status == "done", job.error or job.details
    view, _ = mapping.at_round(session, 0)
    assert view is not None
    here = session.fits.model_at(0)
    assert view.model.items.tolist() == here.items.tolist()
    np.testing.assert_allclose(view.model.probabilities, here.probabilities)
    _, job = mapping.other_kind(session, view, "logistic-regression")
    assert job is not None and job.wait(600) and job.status == "done", job.error or job.details
    other, _ = mapping.other_kind(session, view, "logistic-regression")
    assert other is not None and other.model.n_labelled == here.n_labelled
    assert other.model.probabilities.shape == here.probabilities.shape
    run = comparison.job_of(token := comparison.start(spec(FAKE)))
    assert run is not None and run.wait(600) and run.status == "done", run.error or run.details
    found = comparison.find(token)
    beside_it = comparison.round_model(found, "random", 0, 2)
    monkeypatch.setenv("WORKBENCH_FIT", "inline")
    again = comparison._round_model(comparison._record(found, "random", 0), 2)
    np.testing.assert_allclose(beside_it.probabilities, again.probabilities)
    for one in (jobs.short_work, jobs.long_work):
        one().end()


@pytest.mark.parametrize(
    "kind",
    ["logistic-regression", pytest.param("large-margin", marks=pytest.mark.slow)],  # alone: with the engine
)
def test_cards_need_no_classifier_of_a_fit_that_was_made_beside(
    home: Path, companion: Companion, kind: str
) -> None:
    """Cards come with the fit; the classifier is made where somebody looks at more."""
    session = labelled(Session.create("iris", classifier=kind, policy="margin", annotator="ann"))
    assert refit_in_process(session, companion, ready=partial(explanations.prepare, session))
    model = session.model
    assert model is not None
    for ask in session.ask(3):
        reason = explanations.why(session, ask)
        assert ask.role != "policy" or (reason.rank >= 1 and np.isfinite(reason.utility))
        assert explanations.nearest_labelled(session, ask.item)
        cards.card([session], ItemAsk(ask.item, {session.question_name: ask}), "{item}")
    assert "estimator" not in model.__dict__, kind
    values, looked = explanations.utilities_now(session, model, "margin")
    made = model.estimator
    assert model.estimator is made
    np.testing.assert_allclose(model.probabilities, made.predict_proba(model.features), atol=1e-6)
    assert model.has_latent == protocols.supports_latent(made)
    own = protocols.geometry_of(made)
    assert model.geometry is not None and own is not None
    for name, array in own.to_arrays().items():
        np.testing.assert_array_equal(model.geometry.to_arrays()[name], array)
    assert looked is None
    np.testing.assert_allclose(values, insight.utilities_or_none(model, "margin"), atol=1e-6)


@pytest.mark.slow  # TensorFlow is imported three times
def test_nothing_that_pages_compute_leaves_the_engine_in_the_server(home: Path) -> None:
    """In a process of its own: this one has loaded the engine for other tests."""
    session = labelled(Session.create("iris", policy="margin", annotator="ann"))
    code = (
        "import sys\n"
        "from workbench.app.access import current; from workbench.app.label import oracle\n"
        "from workbench.app.compare import attack_form, comparison, stopping\n"
        "from workbench.app.lessons import lessons; from workbench.app.serving import evaluation\n"
        "from workbench.app.uncertainty import mapping\n"
        "from workbench.studies import StudySpec\n"
        f"one = current.opened({session.id!r}); current.keep_fitting(one).wait()\n"
        "jobs = [evaluation.cross_validation(one, one.model), stopping.project_advice(one, again=True)]\n"
        "jobs.append(oracle.baseline(one, 20)[1])\n"
        "one.items.label(int(one.pool.trainable[1]), one.classes[0]); current.keep_fitting(one).wait()\n"
        "jobs.append(mapping.at_round(one, 0)[1])\n"
        "runs = StudySpec('x', ('iris',), ('large-margin',), ('margin',), seeds=1, budget=2)\n"
        "jobs.append(comparison.job_of(comparison.start(runs)))\n"
        "shown = {}; current.show = shown.__setitem__\n"
        "attack_form.begin(None, 'digits', n_train=60, n_test=20, strengths=(0.0, 0.1), attacks=('fgsm',))\n"
        "jobs.append(attack_form.job_of(shown[attack_form.PARAMETER]))\n"
        "lesson = lessons.find('two-doubts'); jobs.append(lessons.start(lesson, lesson.preset))\n"
        "for job in jobs: job.wait(); assert job.status == 'done', (job.kind, job.error, job.details)\n"
        "print([name for name in ('tensorflow', 'gpflow') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.stdout == "[]\n", done.stderr
