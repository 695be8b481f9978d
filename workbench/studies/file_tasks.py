"""Files that pages have made, or read, in a process of their own; see `workbench.studies.tasks`.

A file that is made is written to a path of the server's, which streams it; of one that is read the server
learns what a page shows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

from workbench.progress import tell, watched
from workbench.sessions.fit_process import opened
from workbench.studies.task_progress import Report, Say

if TYPE_CHECKING:
    from workbench.exchange.planning import ImportPlan, PredictionPlan
    from workbench.exchange.questions import Answers
    from workbench.pools.tables.report import TableReport
    from workbench.sessions import Session


# --- out ------------------------------------------------------------------------------------------------


def labels_written(say: Say, place: str, database: str, project: str, format: str, what: str) -> int:
    """Write the labelled set of a project; see `workbench.exchange.write_labels`.

    Args:
        say: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        format: of the file.
        what: it holds.

    Returns:
        How many rows.
    """
    from workbench.exchange import write_labels

    report = Report(say)
    report(0.0, "opening the project")
    session = opened(database, project)
    with watched(report):
        return _written(place, lambda out: write_labels(out, session, format, what))


def bundle_written(say: Say, place: str, database: str, project: str) -> int:
    """Write a project as one file that opens again as a project; the arguments are those of `labels_written`.

    Returns:
        How many bytes.
    """
    from workbench.exchange import write_project_bundle

    return _packed(say, place, database, project, write_project_bundle)


def predictor_written(say: Say, place: str, database: str, project: str) -> int:
    """Write a project's model for NumPy alone; the arguments are those of `labels_written`.

    Returns:
        How many bytes.
    """
    from workbench.exchange.predictor import write_predictor_of

    return _packed(say, place, database, project, lambda folder, session: write_predictor_of(session, folder))


def stored_labels_written(say: Say, place: str, database: str, project: str) -> int:
    """Write the labels of a project whose pool is not at hand; the arguments are those of `labels_written`.

    Returns:
        How many rows.
    """
    from workbench.exchange import StoredLabels, write_labels
    from workbench.store import Store

    with watched(Report(say)):
        labels = StoredLabels.of(project, Store.open(database))
        return _written(place, lambda out: write_labels(out, labels, "csv"))


def _packed(say: Say, place: str, database: str, project: str, write: Callable[[Path, Session], Any]) -> int:
    from workbench.exchange import write_zip

    report = Report(say)
    report(0.0, "opening the project")
    session = opened(database, project)
    with watched(report), TemporaryDirectory() as folder:
        write(Path(folder) / "written", session)
        tell(0.8, "packing it into one file")
        _written(place, lambda out: write_zip(out, Path(folder) / "written"))
    return Path(place).stat().st_size


def _written(place: str, write: Callable[[IO[bytes]], Any]) -> Any:
    with Path(place).open("wb") as out:
        return write(out)


# --- in -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looked:
    """Changes that a file of labels would bring.

    Attributes:
        plan: of one class an item, without the labels themselves.
        answers: to several questions.
    """

    plan: ImportPlan | None = None
    answers: Answers | None = None


def labels_looked_at(say: Say, place: str, database: str, project: str, kind: str) -> Looked:
    """Look through a file of labels without taking anything in.

    Args:
        say: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        kind: format of the file.

    Raises:
        InputError: as `plan_import` and `read_answers`.
    """
    from workbench.exchange import plan_import
    from workbench.exchange.questions import answers_several, read_answers

    data = Path(place).read_bytes()
    report = Report(say)
    report(0.0, "opening the project")
    session = opened(database, project)
    report(0.2, "reading the file")
    if answers_several(data, session, kind):
        return Looked(answers=read_answers(data, session, kind))
    # the labels stay here: the page shows how many they are, and they are read again when they are taken in
    return Looked(plan=replace(plan_import(data, session, kind), pairs=()))


def labels_taken_in(
    say: Say,
    place: str,
    database: str,
    project: str,
    annotator: str,
    kind: str,
    name: str,
    chosen: Mapping[str, Any],
) -> tuple[int, int | None]:
    """Take in the labels of a file that was looked at: all of them, or none.

    Args:
        say: told how far it is; once the labels are read it is too late to cancel.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        annotator: who takes them in.
        kind: format of the file.
        name: of the file, for the record.
        chosen: about the odd rows, as `ImportPlan.labels` takes it.

    Returns:
        How many labels, and the id of the event that an undo takes back; None where there is none.

    Raises:
        InputError: as `plan_import` and `read_answers`, or the session's.
    """
    from workbench.exchange import plan_import
    from workbench.exchange.instructions import take_instructions
    from workbench.exchange.questions import answers_several, read_answers, take_answers

    data = Path(place).read_bytes()
    report = Report(say)
    report(0.0, "opening the project")
    session = opened(database, project).as_annotator(annotator)
    report(0.2, "reading the file")
    if answers_several(data, session, kind):
        answers = read_answers(data, session, kind)
        report(0.7, "taking them in")
        counts, event = take_answers(session, answers, name)
        return sum(counts.values()), None if event is None else event.id
    pairs = plan_import(data, session, kind).labels(**chosen)
    report(0.7, "taking them in")
    take_instructions(session, data, kind)
    imported = session.import_labels(pairs, name, corrects=True)
    return (0, None) if imported is None else (len(imported.payload["labels"]), imported.id)


def predictions_looked_at(say: Say, place: str, database: str, project: str, name: str) -> PredictionPlan:
    """Look through the predictions of another tool without taking anything in; see `plan_predictions`.

    Args:
        say: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        name: of the file, as the person has it.
    """
    from workbench.exchange import plan_predictions

    report = Report(say)
    report(0.0, "opening the project")
    session = opened(database, project)
    report(0.2, "reading the file")
    return plan_predictions(Path(place).read_bytes(), name, session)


def bundle_opened(
    say: Say, place: str, database: str, pool: str | None, options: Mapping[str, Any], owner: str
) -> tuple[str, str]:
    """Make a project of the bundle of one; see `workbench.exchange.open_bundle`.

    Args:
        say: told how far it is.
        place: path of the bundle, a file or a folder.
        database: its address.
        pool: where its pool lies, where the bundle has none.
        options: of its pool.
        owner: key of the person whose project it becomes.

    Returns:
        The project's id and name.
    """
    from workbench.exchange import open_bundle
    from workbench.store import Store

    with watched(Report(say)):
        tell(0.0, "reading the bundle and its pool")
        project = open_bundle(place, pool=pool, pool_options=options, store=Store.open(database), owner=owner)
    return project.id, project.name


def table_looked_at(
    say: Say, path: str, options: Mapping[str, Any] | None
) -> tuple[TableReport, dict[str, Any] | None]:
    """Content of a table under options, and the obstacles to using it.

    Args:
        say: told nothing but the beginning.
        path: of its file.
        options: how it is read; None guesses them.

    Returns:
        The report, and the options that were guessed; None where they were given.

    Raises:
        InputError: as `inspect_table`.
    """
    from workbench.pools import inspect_table

    with watched(Report(say)):
        tell(0.0, "reading the table")
        report = inspect_table(path, **(options or {}))
        return report, None if options is not None else {"columns": report.columns_option or "auto"}
