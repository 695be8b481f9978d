"""The loop with an oracle at the end of it: rounds, one at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import workbench
from workbench.arrays import Array, Floats, Ints
from workbench.documents.checking import Seed, checked_settings, with_settings
from workbench.documents.runs import RunSettings
from workbench.guesses import Guess, guesses_of, stacked
from workbench.policies import query
from workbench.policies.belief import Belief, PolicyFn, Query, Selector
from workbench.policies.default_policy import DEFAULT_POLICY, mix_uniform
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.sessions.drawing import (
    QUERY,
    UNIFORM,
    answerable,
    drawn,
    generator,
    given_items,
    initial_items,
    query_among,
    without,
)
from workbench.sessions.fitted_model import LARGE_BYTES, FittedModel, check_policy
from workbench.sessions.fitting import fit_measure_query
from workbench.sessions.learner import Learner
from workbench.sessions.measure import measured_items
from workbench.sessions.rounds import Round, labelled_at
from workbench.sessions.spec import RunSpec, with_choice

STATE_EVERY = 1.0
"""Seconds of fitting after which another posterior is stored."""


@dataclass(frozen=True)
class Checkpoint:
    """The progress of an interrupted run.

    Attributes:
        rounds: the finished ones, in order from 0.
        state: the posterior of one of them.
        at: the number of that one; None means the last. Later ones are fitted again on the labels
            they had, which gives the same posterior.
    """

    rounds: Sequence[Round]
    state: Mapping[str, Array]
    at: int | None = None


@dataclass(frozen=True)
class _Measuring:
    """The seed that draws what the error is measured on, within its limits."""

    measured_by: Seed


@with_settings(RunSettings)
def simulate(
    pool: Pool | Any,
    classifier: str | Any = "large-margin",
    policy: str | PolicyFn = DEFAULT_POLICY,
    *,
    options: Mapping[str, Any] | None = None,
    selector: str | Selector = "auto",
    initial: str | Sequence[int] = "one-per-class",
    guess: Sequence[str | Guess] | None = None,
    seed: int = 0,
    measured_by: int | None = None,
    progress: Checkpoint | None = None,
    callback: FitCallback | None = None,
    **settings: Any,
) -> Iterator[Round]:
    """Label a pool with its own truth as the oracle.

    The test split, the initial labels and what the classifier takes from the pool depend on the
    pool and the seed only, so that runs of several policies with one seed are paired.

    Args:
        pool: with truth, or what `load_pool` takes. Its test split is made from the seed unless it has one.
        classifier: a registry name, "package.module:Class", or an unfitted estimator.
        policy: a registry name, "package.module:function", or a function.
        options: of the classifier; the large-margin model chooses its geometry unless they say
            `choice="fixed"`.
        selector: how a batch is chosen; "auto" is the best item for one, diverse for more.
        initial: as in `RunSpec`; or the items themselves, of which the pool must know the classes; or "none",
            with a guess: then the first questions are asked by what that says.
        guess: what is known of the items before any label: "names", "column:llm_label", "columns:p_*" (as in
            `workbench.guesses.guess_of`), or guesses made already. The classifier must be able to take one.
        seed: of everything random.
        measured_by: the seed that draws the items that the error is measured on, where they are not all; the
            run's own unless given.
        progress: of an interrupted run with the same arguments, to go on from; its rounds are not
            given again, and the ones that follow are what they would have been.
        callback: (fraction, objective) -> True, called during each fit, to stop that fit early.
        settings: as `workbench.documents.runs.RunSettings` has them.

    Yields:
        Rounds, each with its posterior (`state`) and test probabilities. The last one asks nothing. The
        utilities of questions that are drawn uniformly are NaN.

    Raises:
        InputError: a pool without truth, or what cannot be used.
    """
    guesses = [guess] if isinstance(guess, str | Guess) else list(guess or ())
    named = {"classifier": classifier, "policy": policy, "selector": selector, "initial": initial}
    settings |= {name: value for name, value in named.items() if isinstance(value, str) and value}
    settings["guess"] = [g if isinstance(g, str) else f"guess {place}" for place, g in enumerate(guesses)]
    checked_settings(RunSpec, settings, "The run", "cannot be made")
    run = RunSpec(**settings, seed=seed)
    drawn_by = seed if measured_by is None else measured_by
    checked_settings(_Measuring, {"measured_by": drawn_by}, "The run", "cannot be made")
    pool = pool if isinstance(pool, Pool) else load_pool(pool, **run.reading)
    check_policy(policy, classifier)
    answerable(pool)  # or says why not
    if pool.test is None:
        pool = pool.split(seed, run.test_fraction)
    assert pool.truth is not None and pool.test is not None
    mean = stacked(guesses_of(guesses, pool)) if guesses else None
    truth = np.asarray(pool.truth)
    options = with_choice(classifier, options or {})
    # kept projections round otherwise: a run that is measured on all its test items does without
    cached = LARGE_BYTES if run.measured else None
    learner = Learner(pool, classifier, options, seed=seed, cached=cached, mean=mean)
    test = measured_items(pool.test.test[truth[pool.test.test] >= 0], drawn_by, run.measured)
    if progress is not None and progress.rounds:
        if progress.rounds[-1].number and not progress.rounds[-1].queried.size:
            return
        at = _resumed(learner, progress, callback)
    else:
        start = initial_items(pool, initial, seed) if isinstance(initial, str) else given_items(initial, pool)
        at = _Labelled(0, start, truth[start], start, truth[start], None)
    candidates = answerable(pool, at.start)
    unanswerable = np.setdiff1d(pool.trainable, candidates)
    asking = _Asking(pool, policy, selector, candidates, unanswerable, run)
    yield from _rounds(learner, asking, at, truth, test, callback)


class _Labelled(NamedTuple):
    """Start of a round: its number, the labels, the first of them, and the posterior before it."""

    number: int
    items: Ints
    codes: Ints
    start: Ints
    start_codes: Ints
    state: Mapping[str, Array] | None


def _resumed(learner: Learner, progress: Checkpoint, callback: FitCallback | None) -> _Labelled:
    """The point from which a run goes on: rounds after the last posterior kept are fitted again."""
    rounds = list(progress.rounds)
    number = rounds[-1].number + 1
    state: Mapping[str, Array] | None = progress.state
    for again in range(number if progress.at is None else progress.at + 1, number):
        fit = learner.fit(*labelled_at(rounds, again), number=again, previous=state, callback=callback)
        state = fit.state
    return _Labelled(number, *labelled_at(rounds, number), rounds[0].initial, rounds[0].initial_labels, state)


class _Asking(NamedTuple):
    """Source of the questions of a run: its policy, the items that can be answered, and its settings."""

    pool: Pool
    policy: str | PolicyFn
    selector: str | Selector
    known: Ints
    unanswerable: Ints
    run: RunSpec

    def query(self, model: FittedModel, at: _Labelled) -> Query | None:
        """The next questions; None when the budget or the pool is used up."""
        items, candidates, run = at.items, self.known, self.run
        count = min(run.budget - (items.size - at.start.size), candidates.size - items.size, run.batch)
        if count <= 0:
            return None

        def answered(belief: Belief) -> Query:
            rng = generator(run.seed, model.number, QUERY)
            answer = query(self.policy, belief, count, rng, self.selector)
            return mix_uniform(answer, belief, run.uniform_share, generator(run.seed, model.number, UNIFORM))

        open_ = without(candidates, items, len(self.pool)) if run.asked_among else candidates
        among = drawn(open_, run.seed, model.number, run.asked_among)
        return query_among(model, among, self.unanswerable, answered)


def _rounds(
    learner: Learner, asking: _Asking, at: _Labelled, truth: Ints, test: Ints, callback: FitCallback | None
) -> Iterator[Round]:
    """Fit, measure, ask and answer, until nothing is asked."""
    while True:
        turn = fit_measure_query(
            learner,
            at.items,
            at.codes,
            number=at.number,
            previous=at.state,
            held_out=(test, truth[test]),
            probabilities=lambda model, rows: model.predict_proba(rows),
            ask=lambda model, at=at: asking.query(model, at),  # type: ignore[misc]
            callback=callback,
        )
        indices: Ints = np.empty(0, dtype=np.int64)
        uniform = indices
        utilities: Floats = np.empty(0)
        if turn.answer is not None:
            indices, utilities = turn.answer.indices, turn.answer.utilities[turn.answer.indices]
            uniform = indices[:0] if turn.answer.uniform is None else indices[turn.answer.uniform]
        first = at.number == 0
        yield Round(
            number=at.number,
            n_labelled=int(at.items.size),
            queried=indices,
            labels=truth[indices],
            utilities=utilities,
            uniform=uniform,
            initial=at.start if first else np.empty(0, dtype=np.int64),
            initial_labels=at.start_codes if first else np.empty(0, dtype=np.int64),
            seconds=turn.seconds,
            neighbours=turn.model.smoothing.strength,
            state=turn.model.state,
            program=workbench.__version__,
            **turn.figures,
        )
        if not indices.size:
            return
        at = at._replace(
            number=at.number + 1,
            items=np.concatenate([at.items, indices]),
            codes=np.concatenate([at.codes, truth[indices]]),
            state=turn.model.state,
        )


def simulate_spec(
    spec: RunSpec, pool: Pool, progress: Checkpoint | None = None, callback: FitCallback | None = None
) -> Iterator[Round]:
    """`simulate` with the arguments a spec holds.

    Args:
        spec: of the run.
        pool: the spec's, loaded and split.
        progress: of an interrupted run.
        callback: as in `simulate`.
    """
    return simulate(
        pool,
        spec.classifier,
        spec.policy,
        seed=spec.seed,
        progress=progress,
        callback=callback,
        **spec.shared,
    )


def drop_states(rounds: Iterator[Round], every: float = STATE_EVERY) -> Iterator[Round]:
    """Rounds without the posteriors that going on can do without.

    A posterior can be a thousand times the size of the rest of a round, and writing it may take as
    long as the fit. So that of the first round is kept, that of the last, and between them one as
    often as an interruption would otherwise cost more than `every` seconds of fitting again.

    Args:
        rounds: with their posteriors.
        every: seconds of fitting.

    Yields:
        The rounds; `state` is None where it need not be kept.
    """
    spent = 0.0
    for fit_round in rounds:
        spent += fit_round.seconds.get("fit", 0.0)
        if fit_round.number and fit_round.queried.size and spent < every:
            yield replace(fit_round, state=None)
        else:
            spent = 0.0
            yield fit_round
