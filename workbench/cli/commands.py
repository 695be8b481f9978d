"""The commands: each reads its options and calls one function of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import certified, finishing, reading

app = typer.Typer(
    name="workbench",
    help="Label less and see why.",
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a file with the classes.")]
PoolSet = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Option of the pool; may be given again.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Option of the classifier; may be given again."),
]
Selector = Annotated[
    str, typer.Option(help="How a batch is chosen: auto, a name or package.module:function.")
]
Initial = Annotated[
    str,
    typer.Option(
        help="First labels: one-per-class, diverse, diverse:N, random or random:N; none, with a guess."
    ),
]
Guess = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE",
        help="Start from a guess: names, column:NAME, column:NAME:CONFIDENCE, columns:PREFIX*; or several.",
    ),
]
Budget = Annotated[int, typer.Option(help="Labels to ask for, the first ones not counted.")]
Batch = Annotated[int, typer.Option(help="Labels to ask for at a time.")]
OfQuestion = Annotated[
    str | None, typer.Option("--question", metavar="NAME", help="Of a project that asks several: which one.")
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Let the file name code (package.module:name), which then runs."),
]
Fraction = Annotated[float, typer.Option(help="Share of items kept for measuring.")]
Measured = Annotated[int, typer.Option(help="At most so many of these, always the same ones; 0 is all.")]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Label less and see why. Without a command: start the app on this machine."""
    if version:
        from workbench import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        serve_app()


@app.command("app")
def serve_app(
    address: Annotated[str, typer.Option(help="Interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    max_upload_mb: Annotated[int | None, typer.Option(help="Largest upload, in megabytes.")] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Listen on another address although there is no log-in.")
    ] = False,
    host_name: Annotated[
        list[str] | None,
        typer.Option("--host-name", help="A further name people reach it by, such as a proxy's."),
    ] = None,
    log_in: Annotated[
        Path | None,
        typer.Option("--log-in", help="How people log in: a file (workbench help teams)."),
    ] = None,
    trust_code: TrustCode = False,
) -> None:
    """Start the app and serve it until stopped."""
    from workbench.app.server import serve
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    serve(
        address,
        port,
        open_browser=browser,
        max_upload_mb=max_upload_mb,
        share=share,
        host_names=host_name or (),
        secrets=log_in,
    )


@app.command()
def run(
    pool: Annotated[str, typer.Option(help="A name (see `workbench pools`) or a file.")] = "digits",
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[str, typer.Option(help="A name or package.module:Class.")] = "large-margin",
    settings: Set = None,
    policy: Annotated[str, typer.Option(help="A name or package.module:function.")] = "margin",
    selector: Selector = "auto",
    initial: Initial = "one-per-class",
    guess: Guess = None,
    budget: Budget = 60,
    batch: Batch = 1,
    uniform_share: Annotated[
        float, typer.Option(help="Share of the questions drawn uniformly, whatever the policy.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    test_fraction: Fraction = 0.2,
    measured: Measured = 0,
    asked_among: Annotated[
        int,
        typer.Option(help="Choose questions among at most so many open items, others each round; 0 is all."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the bundle here; the same command goes on after a kill."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the run in the app's database.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the last line only.")] = False,
) -> None:
    """Label a pool with its own truth as the oracle, and print how the error falls."""
    from workbench.classifiers import sees_pixels
    from workbench.cli.runs import run_once
    from workbench.cli.values import feature_sets, parse_settings, typed, without_guesses
    from workbench.pools import with_learnt_features
    from workbench.sessions.spec import RunSpec

    options = parse_settings(settings or [])
    of_pool = without_guesses(pool, parse_settings(pool_set or [], "--pool-set"), guess)
    typed(classifier, policy, selector, options, feature_sets(of_pool))
    wanted = {} if target is None else {"target": target}
    pixels = sees_pixels(classifier)
    # a run is a measurement: what a table leaves open is refused here, not guessed
    of_pool = with_learnt_features(pool, of_pool | wanted, pixels=pixels, open_columns=False)
    of_pool = {name: value for name, value in of_pool.items() if name != "target"}
    spec = RunSpec(
        pool=pool,
        target=target,
        pool_options=of_pool,
        classifier=classifier,
        options=options,
        policy=policy,
        selector=selector,
        initial=initial,
        budget=budget,
        batch=batch,
        uniform_share=uniform_share,
        seed=seed,
        test_fraction=test_fraction,
        measured=measured,
        asked_among=asked_among,
        guess=tuple(guess or ()),
    )
    run_once(spec, out=out, keep=keep, quiet=quiet)


@app.command()
def compare(
    context: typer.Context,
    pool: Annotated[list[str] | None, typer.Option(help="A name or a file; may be given again.")] = None,
    project: Annotated[
        str | None, typer.Option(help="A project in place of a pool: its answers are the known classes.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="Of that project; the first unless given.")] = None,
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[list[str] | None, typer.Option(help="May be given again.")] = None,
    settings: Set = None,
    policy: Annotated[list[str] | None, typer.Option(help="May be given again.")] = None,
    selector: Selector = "auto",
    initial: Initial = "one-per-class",
    guess: Guess = None,
    budget: Budget = 60,
    batch: Batch = 1,
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...")] = 10,
    test_fraction: Fraction = 0.2,
    study: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with these settings instead.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run it.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="One bundle a run, comparison.csv, summary.csv; goes on after a kill."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    trust_code: TrustCode = False,
) -> None:
    """Run several policies on the same splits and first labels, seed by seed."""
    from workbench.cli.runs import answers_of, run_comparison
    from workbench.cli.values import feature_sets, given, parse_settings, typed, without_guesses
    from workbench.errors import InputError
    from workbench.studies import StudySpec, load_study

    options = parse_settings(settings or [])
    of_pool = parse_settings(pool_set or [], "--pool-set")
    if project is not None or question is not None:
        pool, of_pool = answers_of(
            project, question, [*(pool or ()), *of_pool, *([target] if target else [])]
        )
    for one in pool or () if project is None else ():
        of_pool = without_guesses(one, of_pool, guess)
    typed(classifier, policy, selector, options, feature_sets(of_pool), trust_code=trust_code)
    if study is not None:
        free = ("study", "workers", "scheduler", "out", "quiet", "trust_code")
        more = [n for n in given(context) if n not in free]
        if more:
            raise InputError(f"--study has all settings; leave out --{more[0].replace('_', '-')}.")
        run_comparison(load_study(study), out=out, quiet=quiet, workers=workers, scheduler=scheduler)
        return
    spec = StudySpec(
        name="" if out is None else out.name,
        pools=tuple(pool or ["digits"]),
        classifiers=tuple(classifier or ["large-margin"]),
        policies=tuple(policy or ["variation-ratio", "random"]),
        seeds=seeds,
        options=options,
        target=target,
        pool_options=of_pool,
        selector=selector,
        initial=initial,
        budget=budget,
        batch=batch,
        test_fraction=test_fraction,
        guess=tuple(guess or ()),
    )
    run_comparison(spec, out=out, quiet=quiet, workers=workers, scheduler=scheduler)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Of the table or figure (see --list).")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the names.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sets, rows and seeds: minutes.")] = False,
    max_rows: Annotated[int | None, typer.Option(help="At most this many rows of a data set.")] = None,
    max_seeds: Annotated[int | None, typer.Option(help="At most this many seeds.")] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Reports and finished parts; goes on after a kill.")
    ] = Path("reproduction"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
) -> None:
    """Run a table or figure of the papers again and say what came out."""
    from workbench.cli.runs import list_experiments, run_experiment
    from workbench.errors import InputError

    if list_all:
        list_experiments()
        return
    if name is None:
        raise InputError("Name an experiment; `workbench reproduce --list` shows them.")
    run_experiment(
        name,
        out=out,
        quick=quick,
        max_rows=max_rows,
        max_seeds=max_seeds,
        workers=workers,
        quiet=quiet,
    )


@app.command()
def predict(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet, NPY or NPZ with the columns of the pool.")],
    model: Annotated[Path, typer.Option(help="A run's bundle, or its model folder.")],
    out: Annotated[Path | None, typer.Option(help="CSV to write; printed unless given.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    trust_code: TrustCode = False,
) -> None:
    """Classes of new rows by a saved model."""
    from workbench.cli.labels import predict_file
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    predict_file(file, model, out, probabilities)


@app.command()
def score(
    pool: Annotated[str, typer.Option(help="A name, a file, or a folder of Parquet files.")],
    model: Annotated[Path, typer.Option(help="A run's bundle, or its model folder.")],
    policy: Annotated[str, typer.Option(help="A name or package.module:function.")] = "margin",
    top: Annotated[int, typer.Option(help="How many items to print.")] = 100,
    pool_set: PoolSet = None,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write; printed unless given.")] = None,
    trust_code: TrustCode = False,
) -> None:
    """The items of a pool most worth asking about, best first."""
    from workbench.cli.labels import score_file
    from workbench.cli.values import feature_sets, parse_settings, typed

    options = parse_settings(pool_set or [], "--pool-set")
    typed(policy, feature_sets(options), trust_code=trust_code)
    score_file(pool, model, policy, top, options=options, seed=seed, scheduler=scheduler, out=out)


@app.command("export")
def export_project(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    format: Annotated[
        str,
        typer.Option(
            help="csv, parquet, jsonl, npz, label-studio, huggingface, folders, coco, bundle, predictor."
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
    trust_code: TrustCode = False,
) -> None:
    """The labelled set of a project, its whole record (bundle), or its model for NumPy alone (predictor)."""
    from workbench.cli.labels import export_file
    from workbench.cli.values import typed

    typed(trust_code=trust_code)
    export_file(project, format, out, what, question)


@app.command("new")
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


@app.command("open")
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


@app.command("import")
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


@app.command("questions")
def questions_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=CLASS,CLASS]", help="Ask one more, by yes or no unless it has classes."),
    ] = None,
    rename: Annotated[list[str] | None, typer.Option(metavar="NAME=NAME", help="Call one otherwise.")] = None,
    archive: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Ask one no more; its answers stay.")
    ] = None,
    take_back: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Ask one again that was archived.")
    ] = None,
) -> None:
    """The questions that a project asks about each item, and changes to them."""
    from workbench.cli.labels import change_questions

    change_questions(project, add or (), rename or (), archive or (), take_back or ())


@app.command("instructions")
def instructions_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Write them: Markdown, or another tool's file."),
    ] = None,
    version: Annotated[int | None, typer.Option(help="Print an earlier version.")] = None,
    example: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=ID", help="Show this item as an example of the class."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write text and pictures to this folder.")] = None,
) -> None:
    """What people are told before they label: print it, write it, pick examples of classes."""
    from workbench.cli.instructions import show_or_write
    from workbench.cli.values import parse_settings

    picked = {name: str(value) for name, value in parse_settings(example or [], "--example").items()}
    show_or_write(project, source=source, version=version, examples=picked, out=out)


@app.command("guess")
def guess_command(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Begin with names, column:NAME, columns:p_* too."),
    ] = None,
    off: Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="Use this one no more.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Predictions of another tool: id and prediction, maybe confidence.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A bundle whose model predicts this pool.")] = None,
    named: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME=CLASS", help="What a name in --file stands for."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what --file would do, and stop.")] = False,
    question: OfQuestion = None,
) -> None:
    """What a project begins with, how far each is trusted; add or switch off a source."""
    from workbench.cli.labels import change_guesses
    from workbench.cli.values import parse_settings

    called = {name: str(value) for name, value in parse_settings(named or [], "--class").items()}
    change_guesses(
        project,
        add=add or (),
        off=off or (),
        file=file,
        model=model,
        named=called,
        dry_run=dry_run,
        question=question,
    )


@app.command("key")
def program_keys(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    person: Annotated[str | None, typer.Option(help="Make a key that stands for this person.")] = None,
    purpose: Annotated[str, typer.Option("--for", help="What the key is for, in a few words.")] = "",
    revoke: Annotated[str | None, typer.Option(metavar="ID", help="This key opens nothing any more.")] = None,
) -> None:
    """Keys with which programs label and ask over HTTP."""
    from workbench.cli.programs import change_keys

    change_keys(project, person, purpose, revoke)


@app.command()
def webhook(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    url: Annotated[str | None, typer.Argument(help="Is told of each fit and of the finish.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Tell nobody any more.")] = False,
) -> None:
    """The address that a project tells what happens."""
    from workbench.cli.programs import change_webhook

    change_webhook(project, url, off)


@app.command()
def relocate(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    file: Annotated[Path, typer.Argument(help="Where the file or folder of its pool lies now.")],
) -> None:
    """Point a project at the new place of its pool, after checking that it is the same."""
    from workbench.cli.labels import relocate_project

    relocate_project(project, file)


@app.command()
def access(
    project: Annotated[str, typer.Argument(help="Id or name of a project.")],
    access: Annotated[str | None, typer.Argument(help="private, shared or open.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is to be; somebody who has logged in.")] = None,
    people: Annotated[
        list[str] | None, typer.Option("--with", help="Somebody it is shared with; again for more.")
    ] = None,
) -> None:
    """Show or change whose a project is and who may open it."""
    from workbench.cli.people import show_or_change

    show_or_change(project, access, owner, people or ())


@app.command()
def people(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
) -> None:
    """How far the people of a project agree, and how each of them does."""
    from workbench.cli.crowd import print_people

    print_people(project)


@app.command("log")
def audit_log(
    project: Annotated[
        str | None, typer.Argument(help="Id or name, also of one that was deleted; all unless given.")
    ] = None,
    count: Annotated[int, typer.Option(help="So many of the last entries.")] = 100,
) -> None:
    """Who opened, exported, shared, deleted and uploaded what, and when; newest first."""
    from workbench.cli.people import print_audit

    print_audit(project, count)


@app.command()
def features(
    project: Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME", help="Score this one; again for more; all there are unless given."
        ),
    ] = None,
) -> None:
    """Which features a project's labels prefer: the leave-one-out error on each set there is."""
    from workbench.cli.labels import compare_features

    compare_features(project, sets)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="To write; must not be there yet.")],
) -> None:
    """A consistent copy of the database and of uploaded files, also while people label."""
    from workbench.store import Store

    n_files = Store.open().backup(file)
    print(f"All projects, runs and studies, and {n_files} uploaded file(s): {file}")


@app.command()
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


@app.command()
def projects() -> None:
    """List the projects in the database."""
    from workbench.cli.lists import list_projects

    list_projects()


@app.command()
def pools(
    name: Annotated[str | None, typer.Argument(help="Tell all about this one.")] = None,
    known: Annotated[bool, typer.Option("--known", help="Also data sets known by name.")] = False,
) -> None:
    """List the pools there are."""
    from workbench.cli.lists import describe_pool, list_pools

    list_pools(known) if name is None else describe_pool(name)


@app.command()
def classifiers(
    name: Annotated[str | None, typer.Argument(help="Tell its options.")] = None,
) -> None:
    """List the classifiers there are."""
    from workbench.cli.lists import describe_classifier, list_classifiers
    from workbench.cli.values import typed

    typed(name)
    list_classifiers() if name is None else describe_classifier(name)


@app.command()
def policies() -> None:
    """List the policies and batch selectors there are."""
    from workbench.cli.lists import list_policies

    list_policies()


@app.command()
def doctor() -> None:
    """Check this installation: versions, folders, browser, threads, one tiny fit."""
    from workbench.cli.doctor import examine

    if not examine():
        raise typer.Exit(1)


certified.add_to(app)
reading.add_to(app)
finishing.add_to(app)
