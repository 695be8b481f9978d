"""The pool's own truth in the person's place, and the random baseline beside a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.app.jobs import Job, manager
from workbench.work.timeleft import TimeLeft

if TYPE_CHECKING:
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
        from workbench.sessions.oracle import ArrayOracle

        oracle = ArrayOracle(session.pool)
        done = 0
        while done < n:
            job.report(done / n, f"{done} of {n} answered")
            asks = session.ask()
            if not asks:
                break
            # the record says that nobody looked at the item
            done += session.tell(asks[0].id, Event.label(oracle(asks[0].item), source="oracle"))
            timing = TimeLeft()

            def watch(fraction: float, _objective: float, done: int = done, t: TimeLeft = timing) -> bool:
                words = t.words(fraction)
                job.report(done / n, f"{done} of {n} answered" + (f"; this fit: {words}" if words else ""))
                return False

            session.refit(callback=watch)
        return done

    return manager().submit(session.id, "oracle", work, title="The known classes answer")


Points = list[tuple[list[int], list[float]]]


def baseline(session: Session, budget: int) -> tuple[Points, Job | None]:
    """What random questions would have reached on the same test items: three runs, in the background.

    Args:
        session: of a project whose pool has truth.
        budget: labels asked for in each run.

    Returns:
        (numbers of labels, errors) of each run as far as it got, and the job while it runs.
    """
    kind = f"baseline-{budget}"
    job = manager().get(session.id, kind)
    if job is None:

        def work(job: Job) -> Points:
            from workbench.sessions import simulate
            from workbench.sessions.spec import with_choice

            runs: Points = []
            classifier = session.settings["classifier"]
            options = with_choice(classifier, session.settings["options"], "fixed")
            for seed in range(BASELINE_SEEDS):
                labels: list[int] = []
                errors: list[float] = []
                runs.append((labels, errors))
                rounds = simulate(
                    session.pool,
                    classifier,
                    "random",
                    options=options,
                    measured=int(session.settings.get("measured", 0)),
                    budget=budget,
                    batch=2,
                    seed=seed,
                )
                for done in rounds:
                    labels.append(done.n_labelled)
                    errors.append(done.error)
                    fraction = (seed + (done.n_labelled - labels[0]) / budget) / BASELINE_SEEDS
                    # a copy: the page may read while the next point is added
                    job.report(fraction, "random baseline", partial=[(list(a), list(b)) for a, b in runs])
            return runs

        job = manager().submit(session.id, kind, work, title="Random baseline", lane="study")
    found = job.result if job.status == "done" else job.partial
    return found or [], job if job.active else None


def budget_for(n_labelled: int, n_classes: int) -> int:
    """How far the baseline should reach beside a person: in steps, so that it is rarely run again."""
    reach: Sequence[int] = (60, 120, 250, 500, 1000)
    return next((b for b in reach if n_labelled <= n_classes + b), reach[-1])
