"""The pool's own truth in the person's place, and the random baseline beside a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.serving import fit_process, jobs
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import widgets
from workbench.app.words.text import percent, verbatim
from workbench.progress import TimeLeft

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.sessions import Session

BASELINE_SEEDS = 3


def answer_by_oracle(session: Session, n: int) -> Job:
    """Let the oracle answer the next n questions, refitting after each.

    Args:
        session: of a project whose pool has truth.
        n: how many.

    Returns:
        The job; the one already running when there is one.
    """

    def work(job: Job) -> int:
        from workbench.sessions import Event
        from workbench.sessions.drawing import ArrayOracle

        oracle = ArrayOracle(session.pool)
        n_answered = 0
        while n_answered < n:
            job.report(n_answered / n, f"{n_answered} of {n} answered")
            asks = session.ask()
            if not asks:
                break
            # the record says that nobody looked at the item
            n_answered += session.tell(asks[0].id, Event.label(oracle(asks[0].item), source="oracle"))
            timing = TimeLeft()

            def watch(
                fraction: float, _objective: float, n_answered: int = n_answered, t: TimeLeft = timing
            ) -> bool:
                words = t.words(fraction)
                job.report(
                    n_answered / n,
                    f"{n_answered} of {n} answered" + (f"; this fit: {words}" if words else ""),
                )
                return False

            fit_process.refit(session, watch, stop=job.should_stop)
        return n_answered

    return manager().submit(
        session.id, "oracle", work, title="The known classes answer", lane="oracle", limit=7 * DAY
    )


Points = list[tuple[list[int], list[float]]]


def knows_all(pool: Pool) -> bool:
    """True if every item that may be asked about has a class the pool knows."""
    return pool.truth is not None and bool((pool.truth[pool.trainable] >= 0).all())


def baseline(session: Session, reach: int) -> tuple[Points, Job | None]:
    """Errors of random questions to the same model from the same first labels: three runs.

    They are the person's own start, model, guess and test items; only the questions differ.

    Args:
        session: of a project.
        reach: labels to get to, the first ones counted.

    Returns:
        (numbers of labels, errors) of each run as far as it got, and the job unless it is done. Nothing where
        the comparison would not be fair: before the first fit, of a pool that does not know the class of
        every item, and where the first items are of one class by the pool's own account.
    """
    pool = session.pool
    start = first_items(session)
    if not start or not knows_all(pool) or pool.test is None:
        return [], None
    assert pool.truth is not None
    if len(set(pool.truth[list(start)].tolist())) < 2 or reach <= len(start):
        return [], None
    settings = session.settings
    made_with = str(settings["classifier"]), dict(sorted(settings["options"].items()))
    sources = (session.fits.fitted_with.get("guess") or {}).get("sources", ())
    run = {
        "initial": start,
        "measured": int(settings.get("measured", 0)),
        "measured_by": int(settings["seed"]),
        "budget": reach - len(start),
        "guess": tuple(source["source"] for source in sources) or None,
    }
    inputs = session.store.url, session.id, BASELINE_SEEDS, *made_with, run
    job = manager().compute(
        session.id,
        (pool.fingerprint, made_with, run),
        lambda job: jobs.compute(job, "random_runs", *inputs, where=jobs.long_work, session=session),
        title="Random questions",
        lane="baseline",
        limit=7 * DAY,
    )
    if job.status == "done":
        return job.result or [], None
    return job.partial or [], job


def baseline_line(job: Job | None) -> None:
    """Progress of random questions; the fragment around this looks again by itself."""
    if job is None:
        return
    if job.status not in ("failed", "cancelled"):
        waits_for = job.waits_for or ("" if job.started else "those of another project")
        how_far = f"they wait for: {waits_for}" if waits_for else f"{percent(job.fraction, 0)} done"
        st.caption(f"Random questions from the same start: {how_far}")
        return
    with widgets.row("rival-again"):
        why = f" could not be computed: {verbatim(job.error)}" if job.error else " were cancelled."
        st.caption(f"Random questions{why}")
        widgets.try_again(job, "rival-try-again")


def first_items(session: Session) -> tuple[int, ...]:
    """The items that a project's first fit learnt from, in their order; none before it."""
    rounds = session.rounds
    return tuple(rounds[0].queried.tolist()) if rounds else ()


def reach_for(n_labelled: int) -> int:
    """Length of the runs of random questions beside a person, in steps: they are rarely run again."""
    reach: Sequence[int] = (60, 120, 250, 500, 1000)
    return next((n for n in reach if n_labelled <= n), reach[-1])
