"""`workbench people`: how the people of a project agree, and how each of them does."""

from __future__ import annotations

import math


def print_people(project: str) -> None:
    """Print agreement, what counts where people differ, and a row for each person.

    Args:
        project: id or name.

    Raises:
        InputError: no such project.
    """
    from workbench.cli.labels import project_named
    from workbench.cli.values import print_table
    from workbench.sessions.people import people_report, shown_people
    from workbench.store import fold

    record, store = project_named(project)
    events = list(store.events(record.id))
    state = fold(events)
    report = people_report(state, events)
    print(report.words)
    if report.n_consensus:
        print(
            f"Consensus of {report.n_consensus:,} items: {report.n_other:,} not the majority's, "
            f"{report.n_open:,} too unsure to learn from; first guesses of the model count "
            f"{report.weight:.2f}."
        )
    if not report.people:
        return
    print_table(
        ("person", "labels", "shared", "agrees", "between", "takes for another", "seconds", "over time"),
        [
            (
                name,
                f"{one.n_labels:,}",
                f"{one.n_shared:,}",
                f"{one.agreement:.0%}" if one.n_shared else "-",
                f"{one.low:.0%} and {one.high:.0%}" if one.n_shared else "-",
                "; ".join(f"{a} for {b} ({n})" for a, b, n in one.confusions) or "-",
                "-" if math.isnan(one.seconds) else f"{one.seconds:.1f}",
                "-" if one.drift is None else f"{one.drift[0]:.0%}, then {one.drift[1]:.0%}",
            )
            for name, one in shown_people(report, bool(state.model.get("names_hidden")), record.id)
        ],
    )
