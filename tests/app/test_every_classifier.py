"""A classifier of every family behind the whole loop: from the command line, and on the Label page."""

from pathlib import Path

import pandas as pd
import pytest

from tests.app.desks import answer_next, desk_sync
from tests.app.pages import open_page
from tests.classifiers.contract import CHECKED, QUICK
from workbench.app.access import current
from workbench.classifiers import CLASSIFIERS
from workbench.cli import main
from workbench.sessions import Session
from workbench.sessions.drawing import ArrayOracle

pytestmark = pytest.mark.slow


def setting(name: str) -> tuple[str, str]:
    """A pool the classifier can take and a policy it can serve."""
    pool = "digits" if CLASSIFIERS[name].image_only else "breast-cancer"
    return pool, "variation-ratio" if CLASSIFIERS[name].has_latent else "entropy"


def shown(name: str) -> tuple[bool, ...]:
    """Demands of the pages on a classifier."""
    entry = CLASSIFIERS[name]
    return entry.has_latent, entry.gradients, entry.image_only


# of those that show the same one, and what samples beside what has a bound
SHOWN = ["logistic-softmax-gibbs", *{shown(name): name for name in reversed(CHECKED)}.values()]


@pytest.mark.parametrize("name", CHECKED)
def test_a_run_from_the_command_line(name: str, home: Path, tmp_path: Path) -> None:
    pool, policy = setting(name)
    out = tmp_path / "run"
    command = ["run", "--pool", pool, "--classifier", name, "--policy", policy]
    command += ["--budget", "12", "--out", str(out)]
    for key, value in QUICK.get(name, {}).items():
        command += ["--set", f"{key}={value}"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0
    rounds = pd.read_csv(out / "rounds.csv")
    classes = 10 if pool == "digits" else 2
    assert rounds["n_labelled"].tolist() == list(range(classes, classes + 13))
    assert rounds["error"].iloc[-1] < 0.5 * (1 - 1 / classes) + 0.2
    assert rounds[["nll", "brier", "ece"]].notna().all(axis=None)


@pytest.mark.parametrize("name", SHOWN)
def test_a_project_on_the_label_page(name: str, home: Path) -> None:
    pool, policy = setting(name)
    session = Session.create(pool, classifier=name, options=QUICK.get(name, {}), policy=policy, annotator="a")
    current.keep(session)
    oracle = ArrayOracle(session.pool)
    open_page("label", session.id)
    labelled = 12 if pool == "digits" else 6
    while len(session.state.labels) < labelled:
        answer_next(session, oracle)
    job = current.keep_fitting(session)
    if job is not None:
        assert job.wait(600) and job.status == "done", job.error
    assert session.model is not None and session.model.n_labelled == labelled
    card = desk_sync(session)["queue"][0]
    assert card["guess"] and card["why"]
    open_page("label", session.id)
    for page in ("uncertainty", "calibration", "history"):
        open_page(page, session.id)
