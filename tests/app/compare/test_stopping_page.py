"""When to stop, for a person's own project: the same rule, its fits made again in a job."""

from pathlib import Path

import numpy as np

from tests.app.pages import open_page, texts
from tests.app.uncertainty.test_teaching import started
from workbench.app.compare import stopping


def test_a_project_is_advised_and_history_shows_its_fits(home: Path) -> None:
    # models without the engine: the rule is the same
    session = started("iris", labels=9, classifier="logistic-regression", policy="margin")
    session.change_model(policy="entropy")
    rest = [i for i in session.pool.trainable.tolist() if i not in session.state.labels]
    truth = session.pool.truth
    assert truth is not None
    session.items.label([rest[0]], session.pool.classes[int(truth[rest[0]])])
    session.refit()
    assert stopping.project_advice(session) is None, "nothing is worked out before somebody asks"
    job = stopping.project_advice(session, again=True)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    labels, rules = job.result
    assert labels == [6, 9, 10] and [r.rule for r in rules] == ["classification-change"]
    assert np.isfinite(rules[0].values[1:]).all()
    assert stopping.project_advice(session) is job and len(session.rounds) == 3, "nothing was recorded"
    page = open_page("history", session.id)
    page.session_state["history-tabs"] = "Fits"
    page.run()
    fits = next(f.value for f in page.dataframe if "Fit" in f.value.columns)
    assert fits["Model"].tolist()[0].startswith("Logistic regression · Entropy")
    assert fits["Model"].tolist()[-1].startswith("Logistic regression · Margin")
    page.session_state["stop-box"] = True
    page.run()
    assert not page.exception
    assert stopping.sentence(rules[0], labels) in texts(page).replace("\\", "")
