"""`workbench new`, `open`, `projects` and what moves a whole project or its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.commands.options import Guess, OfQuestion, PoolSet, Replace, Set, Target, TrustCode


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("new")(new_project)
    app.command("open")(open_project)
    app.command("projects")(projects)
    app.command("import")(import_project)
    app.command("export")(export_project)
    app.command("relocate")(relocate)
    app.command("backup")(backup)
    app.command("restore")(restore)


def new_project(
    pool: Annotated[str, typer.Argument(help="A name (see `workbench pools`), a file or a folder.")],
    name: Annotated[str | None, typer.Option(help="Of the project; the pool's unless given.")] = None,
    target: Target = None,
    pool_set: PoolSet = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="A class to start with; again for more."),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=CLASS,CLASS]",
            help="A question, by yes or no unless it has classes; column:NAME for one that a column answers; "
            "again for more.",
        ),
    ] = None,
    classifier: Annotated[str, typer.Option(help="A name or package.module:Class.")] = "large-margin",
    settings: Set = None,
    policy: Annotated[str | None, typer.Option(help="A name or package.module:function.")] = None,
    overlap: Annotated[
        str,
        typer.Option(
            metavar="SHARE|worth",
            help="Share of the items that several people label; or 'worth': any, where one more answer is "
            "worth more than a new item.",
        ),
    ] = "0",
    people: Annotated[int, typer.Option(help="How many people label each of these, at most.")] = 2,
    guess: Guess = None,
    copies: Annotated[
        bool, typer.Option("--copies/--all", help="Ask about copies once, or about every item.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
) -> None:
    """Start a project that people label in the app."""
    from workbench.cli.labels import question_given, start_project
    from workbench.cli.values import feature_sets, parse_settings, share_or_worth, typed, without_guesses
    from workbench.policies.effective import DEFAULT_POLICY

    options = parse_settings(settings or [])
    of_pool = parse_settings(pool_set or [], "--pool-set") | ({"target": target} if target else {})
    of_pool = without_guesses(pool, of_pool, guess)
    typed(classifier, policy, options, feature_sets(of_pool))
    start_project(
        pool,
        of_pool,
        name=name,
        classes=classes,
        questions=[question_given(one) for one in question] if question else None,
        classifier=classifier,
        options=options,
        policy=policy or DEFAULT_POLICY,
        overlap=share_or_worth(overlap),
        people=people,
        guess=None if guess is None else tuple(guess),
        twins=copies,
        seed=seed,
    )


def open_project(
    bundle: Annotated[Path, typer.Argument(help="A project's bundle: a folder or a zip.")],
    pool: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where its pool lies here, unless the bundle has it.")
    ] = None,
    pool_set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="What the bundle lacks: folder=PLACE (of pictures), features=embeddings:FILE, fetch=true.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the project; the bundle's unless given.")] = None,
) -> None:
    """Make a project of the bundle of one, with all its history."""
    from workbench.cli.labels import open_file
    from workbench.cli.values import parse_settings

    open_file(bundle, pool, name, parse_settings(pool_set or [], "--pool-set"))


def projects() -> None:
    """List the projects in the database."""
    from workbench.cli.lists import list_projects

    list_projects()


def import_project(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    file: Annotated[Path, typer.Argument(help="Labels: columns id (or item) and label.")],
    format: Annotated[
        str | None, typer.Option(help="csv, parquet, jsonl, npz, label-studio, huggingface, coco.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do; change nothing.")] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Go on without rows whose item the pool does not have.")
    ] = False,
    question: OfQuestion = None,
    add_questions: Annotated[
        bool,
        typer.Option(
            "--add-questions", help="Names listed as tags that are no yes / no question become one."
        ),
    ] = False,
) -> None:
    """Take labels made elsewhere into a project."""
    from workbench.cli.labels import import_file

    import_file(
        project,
        file,
        format,
        dry_run=dry_run,
        leave_out=leave_out,
        question=question,
        add_questions=add_questions,
    )


def export_project(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    format: Annotated[
        str,
        typer.Option(
            help="csv, xlsx, parquet, jsonl, npz, label-studio, huggingface, folders, coco, bundle or "
            "predictor."
        ),
    ] = "csv",
    what: Annotated[
        str,
        typer.Option(
            help="labels, everything, predictions for the rest too, finished, or questions: all in one file."
        ),
    ] = "labels",
    out: Annotated[Path | None, typer.Option(help="File to write; texts are printed unless given.")] = None,
    question: OfQuestion = None,
    replace: Replace = False,
    trust_code: TrustCode = False,
) -> None:
    """The labelled set of a project, its whole record (bundle), or its model for NumPy alone (predictor)."""
    from workbench.cli.labels import export_file
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    export_file(project, format, out, what, question, replace=replace)


def relocate(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    file: Annotated[Path, typer.Argument(help="Where the file or folder of its pool lies now.")],
) -> None:
    """Point a project at the new place of its pool, after checking that it is the same."""
    from workbench.cli.labels import relocate_project

    relocate_project(project, file)


def backup(
    file: Annotated[Path, typer.Argument(help="To write; must not be there yet.")],
) -> None:
    """A consistent copy of the database and of uploaded files, also while people label."""
    from workbench.store import Store

    n_files = Store.open().backup(file)
    print(f"All projects, runs and studies, and {n_files} uploaded file(s): {file}")


def restore(
    file: Annotated[Path, typer.Argument(help="A copy that `workbench backup` wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Also where there are projects; they are put aside first.")
    ] = False,
) -> None:
    """Put a copy in the place of the database."""
    from workbench.store import Store

    aside = Store.open().restore(file, replace=replace)
    print(f"Restored {file}." + (f" What was there before: {aside}" if aside is not None else ""))
