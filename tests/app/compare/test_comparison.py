import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from PIL import Image

from tests.app.pages import open_page
from tests.sessions.fakes import FAKE
from workbench.app.compare import comparison, comparison_sources
from workbench.errors import InputError
from workbench.policies import Belief
from workbench.registry import CodeName
from workbench.sessions import Round, Session
from workbench.store import Store
from workbench.studies import StudyResult, StudySpec
from workbench.studies.statistics import pairwise, summarise


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    yield tmp_path
    Store.open().close()


def small(**more: object) -> StudySpec:
    given: dict[str, Any] = {"classifiers": (FAKE,), **more}
    return StudySpec(name="app", pools=("wine",), seeds=2, budget=4, **given)


def test_a_comparison_is_found_again_with_the_same_curves() -> None:
    token = comparison.start(small(), "a-project", workers=1)
    job = comparison.job_of(token)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    found = comparison.find(token)
    assert found.n_finished == 4 and found.project == "a-project"
    assert found.spec == small()
    stored = comparison.results(found)
    assert stored.status == "finished" and stored.rows() == job.result.rows()
    assert [r.n_labelled for r in stored.of("random")[1]] == [3, 4, 5, 6, 7]
    curves = comparison.curves(stored, found.spec.policies, "error")
    assert [c.baseline for c in curves] == [False, True]
    paired = comparison.paired_curves(stored, "error")
    assert paired is not None
    rows = summarise(paired)
    errors = [[r.error for r in stored.of("variation-ratio")[s]] for s in (0, 1)]
    # trapezoids over the labels: half the weight for both ends
    assert rows[0].area.value == pytest.approx(np.mean(errors @ np.array([0.5, 1, 1, 1, 0.5]) / 4))
    assert rows[0].area.n == 2 and rows[1].won is None


REACHED, RELEASED = threading.Event(), threading.Event()
CALLS: list[int] = []


def held(belief: Belief, rng: Generator) -> np.ndarray:
    """Random asking that stops at its ninth question until it is let go."""
    CALLS.append(1)
    if len(CALLS) == 9:
        REACHED.set()
        assert RELEASED.wait(600)
    return rng.random(len(belief.features))


def test_cancelled_keeps_what_was_finished_and_goes_on() -> None:
    spec = StudySpec("app", ("wine",), (FAKE,), (CodeName(f"{__name__}:held"), "random"), seeds=3, budget=6)
    token = comparison.start(spec)
    job = comparison.job_of(token)
    assert job is not None and REACHED.wait(600)
    job.cancel()
    RELEASED.set()
    assert job.wait(600) and job.status == "cancelled", job.error
    stopped = comparison.find(token)
    kept = comparison.results(stopped)
    # seed 0 of both policies, and what there was of seed 1
    assert stopped.n_finished == 2 and kept.status == "cancelled"
    assert [len(rounds) for _, rounds in kept.runs] == [7, 7, 2]
    again = comparison.resume(stopped)
    assert again.wait(600) and again.status == "done", again.error
    assert comparison.find(token).n_finished == 6
    whole = comparison.results(comparison.find(token))
    for one, rounds in kept.runs:
        now = whole.of(one.policy)[one.seed]
        assert [r.to_json() for r in now[:2]] == [r.to_json() for r in rounds[:2]]
        assert [r.error for r in now[: len(rounds)]] == [r.error for r in rounds]


def drawn(values: dict[str, list[list[float]]], labels: list[int]) -> StudyResult:
    """A study of given errors: policy -> seed -> round."""
    spec = StudySpec("app", ("wine",), (FAKE,), tuple(values), seeds=max(map(len, values.values())), budget=4)
    runs = [
        (one, [Round(i, labels[i], 9, error=e) for i, e in enumerate(values[one.policy][one.seed])])
        for one in spec.runs()
        if one.seed < len(values[one.policy])
    ]
    return StudyResult(spec, runs, "cancelled")


def test_runs_cut_short_do_not_count_in_the_table() -> None:
    found = drawn({"margin": [[0.2, 0.1], [0.0]], "random": [[0.4, 0.2]] * 2}, [3, 5])
    paired = comparison.paired_curves(found, "error")
    assert paired is not None and paired.seeds.tolist() == [0]
    margin, random = summarise(paired)
    # 3 labels do what random needs 5 for
    assert margin.saved is not None and random.saved is None
    assert (margin.saved.target, margin.saved.mean, margin.saved.n_both) == (0.2, 2.0, 1)
    assert pairwise(paired, comparison.BASELINE) == []
    assert margin.last.value == 0.1 and margin.area.value == pytest.approx(0.15)
    assert (margin.won, margin.area.n, margin.outcome) == (1, 1, "too few seeds to tell")
    assert margin.test is not None and margin.test.p_holm == 1.0
    assert (
        comparison.paired_curves(drawn({"margin": [[0.2, 0.1]], "random": [[0.4]]}, [3, 5]), "error") is None
    )


def test_an_unknown_comparison_is_named() -> None:
    with pytest.raises(InputError, match="no comparison 'zzz'"):
        comparison.find("zzz")


def test_what_cannot_run_is_said_before_it_starts() -> None:
    with pytest.raises(InputError, match="needs latent"):
        comparison.start(small(classifiers=("logistic-regression",)))
    assert comparison.all_of() == []


def test_every_pool_of_a_person_can_be_compared_on(home: Path) -> None:
    (home / "with.csv").write_text(
        "x,y,class\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(60))
    )
    (home / "without.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(60)))
    made = {}
    for name, options in (("with.csv", {"target": "class"}), ("without.csv", {})):
        session = Session.create(
            str(home / name),
            classifier=FAKE,
            policy="margin",
            pool_options=options,
            name=name,
            classes=("a", "b"),
            annotator="ann",
            store=Store.open(),
        )
        made[name] = f"project:{session.id}"
    found = comparison_sources.sources()
    assert next(iter(found)) == "digits" and set(made.values()) < set(found)
    assert next(iter(comparison_sources.sources(made["with.csv"].partition(":")[2]))) == made["with.csv"]
    one = found[made["with.csv"]].opened()
    assert (one.kind, one.n_classes, one.options["columns"]["class"]) == ("table", 2, {"use": "class"})
    # what is offered to be asked about is there: all but the test items and the first of each class
    assert one.n_asked == 46
    assert found["iris"].n_asked == 117
    with pytest.raises(InputError, match=r"classes of without.csv .* are not known"):
        found[made["without.csv"]].opened()


def test_the_answers_to_each_question_of_the_open_project_are_a_pool(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 11}\n" for i in range(60)))
    session = Session.create(
        str(tmp_path / "rows.csv"),
        name="mail",
        questions=[("topic", ["a", "b"]), "fraud"],
        classifier=FAKE,
        policy="margin",
        evaluation_share=0.0,
    )
    fraud = session.question("fraud")
    assert not any(key.startswith("question:") for key in comparison_sources.sources(session.id))
    for item in range(30):
        fraud.items.label(item, "yes" if item % 3 else "no")
    key, source = next(iter(comparison_sources.sources(session.id).items()))
    assert key == f"question:{fraud.id}" and source.title == "mail: fraud (30 answers so far)"
    assert source.opened().n_classes == 2 and source.opened().n_asked == 22
    for item in range(30):
        session.items.label(item, "b" if item % 3 else "a")
    for shown in (session, fraud):  # the question at the side comes first
        assert next(iter(comparison_sources.sources(shown.id))) == f"question:{shown.id}"
    spec = StudySpec("app", (source.pool,), (FAKE,), seeds=1, budget=4, pool_options=source.options)
    token = comparison.start(spec, session.id)
    job = comparison.job_of(token)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    assert comparison.find(token).title.endswith("on mail: fraud")
    model = comparison.round_model(comparison.find(token), "random", 0, 2)
    assert set(model.items) <= set(range(30)) and model.classes == ("yes", "no")
    Store.open().delete_project(session.id)
    assert "deleted project" in comparison.find(token).title


def test_attacks_offer_the_open_project_whichever_of_its_questions_is_shown(home: Path) -> None:
    images = home / "images.zip"
    with zipfile.ZipFile(images, "w") as bundle:
        for number in range(60):
            picture = io.BytesIO()
            Image.fromarray(np.full((8, 8), 4 * number, np.uint8)).save(picture, "png")
            bundle.writestr(f"{number:02}.png", picture.getvalue())
    projects = [
        Session.create(
            str(images),
            name=name,
            questions=[("digit", ["a", "b"]), "blurred"],
            classifier=FAKE,
            policy="margin",
            pool_options={"features": "pixels"},
            evaluation_share=0.0,
        )
        for name in ("first", "second")
    ]
    for opened in projects:  # one of them is the newer one, which is listed first
        blurred = opened.question("blurred")
        for answers in (0, 30):  # as a pool of their own they are no images of known classes to attack
            for item in range(answers):
                opened.items.label(item, "b" if item % 3 else "a")
            for question in (opened, blurred):
                offered = open_page("adversarial", question.id).selectbox(key="attack-pool").options
                own = f"{opened.project.name} (your project)"
                assert offered[0] == "Handwritten digits" and offered.count(own) == 1, (own, offered)


def test_known_sets_of_images_are_offered_with_their_number(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "images").mkdir()
    (home / "images" / "mnist.npz").touch()
    monkeypatch.setenv("WORKBENCH_DATA", str(home))
    for page, box in (("adversarial", "attack-pool"), ("compare", "compare-pool")):
        assert "mnist (70,000 images)" in open_page(page).selectbox(key=box).options
