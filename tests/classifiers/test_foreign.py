"""Classifiers of other packages in our loop: they learn, are saved, loaded and gone on with."""

import io
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from tests.sessions.fakes import NearestMean
from workbench import simulate
from workbench.classifiers import LargeMarginClassifier, as_classifier, make_classifier, protocols
from workbench.classifiers.foreign import ForeignClassifier
from workbench.errors import InputError
from workbench.exchange.models import load_model
from workbench.pools import load_pool
from workbench.registry import CodeName
from workbench.sessions import RunSpec
from workbench.studies import run

ESTIMATORS = [
    GaussianNB(),
    RandomForestClassifier(5),
    KNeighborsClassifier(3),
    make_pipeline(StandardScaler(), GaussianNB()),
]


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    return np.eye(3)[codes] * 4 + rng.standard_normal((n, 3)), codes


def saved(state):
    buffer = io.BytesIO()
    np.savez(buffer, **state)
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as found:
        return {key: found[key] for key in found.files}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_its_state_is_plain_arrays_and_makes_an_equal_model(estimator):
    X, codes = blobs(60)
    words = np.array(["ant", "bee", "cat", "never"])
    model = as_classifier(estimator).set_params(classes=words, random_state=3).fit(X, words[codes])
    p = model.predict_proba(X)
    assert p.shape == (60, 4) and (model.predict(X) == words[codes]).mean() > 0.9
    np.testing.assert_allclose(p[:, 3], 1 / 64)
    again = clone(model).set_state(saved(model.get_state()))
    np.testing.assert_array_equal(again.predict_proba(X), p)
    np.testing.assert_array_equal(again.fit(X, words[codes]).predict_proba(X), p)
    assert not protocols.supports_latent(model)


def test_what_is_no_array_is_named():
    X, codes = blobs(30)
    assert as_classifier(GaussianNB()).fit(X, codes).unsaved_ == ""
    forest = as_classifier(RandomForestClassifier(5, random_state=0)).fit(X, codes)
    assert "estimators_ (list)" in forest.unsaved_ and "rows are saved instead" in forest.unsaved_
    state = forest.get_state()
    state["checked"] = 1.0 - state["checked"]
    with pytest.raises(InputError, match="predicts otherwise than when it was saved"):
        clone(forest).set_state(state)
    with pytest.raises(InputError, match="lacks codes_"):
        clone(forest).set_state({k: v for k, v in state.items() if k not in ("X_", "codes_")})


def test_what_needs_no_wrapping_stays_and_what_cannot_be_used_is_refused():
    ours, theirs = LargeMarginClassifier(), NearestMean()
    assert as_classifier(ours) is ours and as_classifier(theirs) is theirs
    assert isinstance(make_classifier(CodeName("sklearn.naive_bayes:GaussianNB")), ForeignClassifier)
    with pytest.raises(InputError, match="no class probabilities"):
        as_classifier(LinearSVC())
    with pytest.raises(InputError, match=r"give an object: GaussianNB\(\)"):
        as_classifier(GaussianNB)
    with pytest.raises(InputError, match=r"has no option 'smooth'. It has: priors, var_smoothing"):
        make_classifier(CodeName("sklearn.naive_bayes:GaussianNB"), smooth=1)


class Sigmoids(GaussianNB):
    def predict_proba(self, X):
        return super().predict_proba(X) * 0.4 + 0.5


def test_scores_that_do_not_sum_to_one_are_refused_before_anything_is_measured():
    X, codes = blobs(30)
    with pytest.raises(InputError, match=r"row 0 sum to 1\.9, not to 1: these are scores"):
        as_classifier(Sigmoids()).fit(X, codes).predict_proba(X)


def test_scikit_learns_checks():
    check_estimator(as_classifier(GaussianNB()), on_skip=None)


@pytest.mark.parametrize(
    ("classifier", "options"),
    [
        (CodeName("sklearn.naive_bayes:GaussianNB"), {"var_smoothing": 1e-8}),
        (CodeName("sklearn.ensemble:RandomForestClassifier"), {"n_estimators": 5}),
    ],
)
def test_a_run_of_one_resumes_and_its_bundle_predicts(tmp_path, classifier, options):
    spec = RunSpec("iris", classifier=classifier, options=options, policy="margin", budget=6, seed=1)
    whole = run(spec, out=tmp_path / "whole")
    asked = 0

    def stop():
        nonlocal asked
        asked += 1
        return asked > 3

    cut = run(spec, out=tmp_path / "cut", should_stop=stop)
    assert cut.status != "finished" and len(cut.rounds) < 7
    run(spec, out=tmp_path / "cut")
    for name in ("rounds.csv", "events.csv", "model/params.npz"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    model, pool = load_model(tmp_path / "whole", trust_code=True), spec.load_pool()
    p = model.probabilities(pool.features[pool.test.test])
    assert (p.argmax(axis=1) != pool.truth[pool.test.test]).mean() == whole.rounds[-1].error
    note = json.loads((tmp_path / "whole" / "model" / "spec.json").read_text()).get("note", "")
    assert note == model.note
    assert ("estimators_" in note) == ("Forest" in classifier)
    assert whole.rounds[-1].n_labelled == 9


def test_an_unfitted_object_runs_in_python():
    rounds = list(simulate(load_pool("iris"), KNeighborsClassifier(1), "least-confident", budget=4, seed=0))
    assert len(rounds) == 5 and rounds[-1].error < 0.3
