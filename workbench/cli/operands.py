"""Options that several commands take, and their operands: projects and files, settings, tables, the audit."""

from __future__ import annotations

import getpass
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from pydantic.fields import FieldInfo
from typer import Argument, Option

from workbench.documents.checking import limit_of, settings_of, with_settings
from workbench.errors import InputError
from workbench.reading import names_in

if TYPE_CHECKING:
    from workbench.pools.formats.files import File
    from workbench.pools.pool import Pool
    from workbench.sessions import Session
    from workbench.store import ProjectSummary, Store
    from workbench.store.accounts import Deed

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}


def parse_settings(settings: Iterable[str] | None, option: str = "--set") -> dict[str, Any]:
    """Options out of key=value texts.

    Args:
        settings: such as "n_inducing=64", "dtype=float32", "warm_start=false", "widths=[8, 16]"; None for
            none.
        option: its name, for messages.

    Returns:
        key -> number, True/False, None, list, or text.

    Raises:
        InputError: not of that form, or a key given twice.
    """
    options: dict[str, Any] = {}
    for text in settings or ():
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key.isidentifier():
            raise InputError(f"{option} takes key=value, such as {option} n_inducing=64; got {text!r}.")
        value, before = value.strip(), options.get(key)
        verbatim = key in ("quote", "delimiter") and value in ("none", '"')  # of these they are values
        parsed = value if verbatim else parse_value(value)
        if isinstance(parsed, dict) and isinstance(before, dict):
            parsed = before | parsed  # each settles columns of its own
        elif key in options:
            raise InputError(f"{option} gives {key} twice.")
        options[key] = parsed
    return options


def pairs(texts: Iterable[str] | None, option: str) -> dict[str, str]:
    """NAME=NAME texts as they are, whatever stands in the names but "=" in the first.

    Raises:
        InputError: a text without two names.
    """
    names = {}
    for text in texts or ():
        name, _, to = text.partition("=")
        if not name or not to:
            raise InputError(f"{option} takes two names, such as {option} NAME=NAME; got {text!r}.")
        if name in names:
            raise InputError(f"{option} gives {name} twice.")
        names[name] = to
    return names


def parse_value(text: str) -> Any:
    """A number, true/false, none, a JSON list, a quoted text, or the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text)
    if text[:1] in ("[", "{", '"'):
        try:
            return json.loads(text)
        except ValueError as error:
            raise InputError(f"{text!r} is not valid JSON: {error}") from error
    return text


def feature_sets(pool_options: dict[str, Any]) -> list[str]:
    """The sets of features that were named for a pool, for `typed`."""
    from workbench.pools.named_features import split_sets

    features = pool_options.get("features")
    return split_sets(features) if isinstance(features, str) else []


def typed(*names: Any, trust_code: bool = False) -> None:
    """Vouch for the code that was named on the command line, also by a module in the present folder.

    Args:
        names: values of options: texts, or lists and mappings of texts.
        trust_code: `--trust-code`: let files name code too.
    """
    from workbench.registry import texts_of, trust

    code = [name for name in texts_of(names) if ":" in name]
    if not code and not trust_code:
        return
    trust(*code, *(["*"] if trust_code else []))
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)


def given(context: Any) -> list[str]:
    """Options that stood on the command line, as --help calls them."""
    return [
        option.opts[0]
        for option in context.command.params
        if getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    ]


def without_guesses(pool: str, options: Mapping[str, Any], guess: Sequence[str] | None) -> dict[str, Any]:
    """Options of a pool of which the columns that are guesses are no features.

    Args:
        pool: a name or a file.
        options: as they were given; what they say of a column stands.
        guess: sources, as in `workbench.guesses.guess_of`.
    """
    pool_options = dict(options)
    if (
        not any(source.startswith("column") for source in guess or ())
        or not Path(pool).expanduser().is_file()
    ):
        return pool_options
    from workbench.guesses import columns_of
    from workbench.pools import inspect_table

    try:
        names = [column.name for column in inspect_table(pool).columns]
    except InputError:
        return pool_options  # no table; the guess says what it lacks
    guess_columns = [name for source in guess or () for name in columns_of(source, names)]
    uses, out = pool_options.get("columns"), pool_options.get("exclude", ())
    roles = uses if isinstance(uses, Mapping) else {}
    out = (out,) if isinstance(out, str) else tuple(out)
    pool_options["exclude"] = list(
        dict.fromkeys((*out, *(name for name in guess_columns if name not in roles)))
    )
    return pool_options


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; plain text when it goes to a file or a pipe."""
    if not sys.stdout.isatty():
        # Every cell whole and one line a row, so that grep and cut work.
        print("\t".join(columns))
        for row in rows:
            print("\t".join(_text(value) for value in row))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(escape(_text(value)) for value in row))
    Console(highlight=False).print(table)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return " ".join(str(value).split("\t"))


def question_given(text: str) -> tuple[str, list[str]] | str:
    """NAME, a yes / no question, or NAME=CLASS,CLASS,..."""
    name, equals, classes = text.partition("=")
    return (name, names_in(classes)) if equals else name


def say_notes(pool: Pool) -> None:
    """Print what was guessed, left out or filled in on the way to a pool."""
    for note in pool.notes:
        print(note, file=sys.stderr)


def project_named(project: str, question: str | None = None) -> tuple[ProjectSummary, Store]:
    """The project with this id, or the only one with this name; by one of its questions where it is named."""
    from workbench.store import Store

    store = Store.open()
    return store.named(project, question), store


def session_of(project: str, question: str | None = None) -> Session:
    """Open the session of a project, or of one of its questions."""
    from workbench.sessions import Session

    record, store = project_named(project, question)
    return Session.open(record.id, store=store)


def answers_in(file: Path, read: Sequence[str] | None) -> File:
    """A file of answers; where somebody says how it is read, as a table that says the same in UTF-8.

    Args:
        file: its path.
        read: values of --read.
    """
    from workbench.pools import read_rows
    from workbench.pools.cells import plain_text
    from workbench.pools.formats.files import File

    if not read:
        return File.of(file)
    frame = read_rows(file, **parse_settings(read, "--read"))
    for note in frame.attrs["notes"]:
        print(note, file=sys.stderr)
    frame = frame.map(plain_text)
    return File(frame.to_csv(index=False).encode(), f"{file.stem}.csv")


def files_kept(*inputs: Path | str | None) -> Iterator[Path | str | None]:
    """Paths that a command never writes: what it reads, and what the projects here need."""
    from workbench.store import Store
    from workbench.store.store import files_in_use

    yield from inputs
    yield from files_in_use(Store.open())


def check_out(out: Path | None, *inputs: Path | str | None, replace: bool) -> None:
    """Refuse the place of a command's result before the work is done.

    Args:
        out: given by --out; None prints.
        inputs: files and folders that the command reads.
        replace: whether --replace was given.

    Raises:
        InputError: as `check_place`.
    """
    from workbench.writing import check_place

    if out is not None:
        check_place(out, protected=files_kept(*inputs), replace=replace)


def deliver(text: str, out: Path | None, *inputs: Path | str, replace: bool) -> None:
    """Write the result of a command to the place that --out names, or print it."""
    if out is None:
        sys.stdout.write(text)
        return
    from workbench.writing import chosen_file

    with chosen_file(out, protected=files_kept(*inputs), replace=replace) as file:
        file.write(text.encode())


def done(store: Store, what: Deed, project: ProjectSummary, detail: str) -> None:
    """Record what the command line did to a project.

    Args:
        store: where the project is.
        what: one of `store.audit.DEEDS`.
        project: the project.
        detail: which file, whom it was shared with.
    """
    from workbench.store.accounts import AuditEntry

    try:
        name = f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):
        name = "command line"
    # a home that cannot be written keeps nobody from their labels
    with suppress(InputError):
        store.audit.record(AuditEntry(what, name, project=project.id, called=project.name, detail=detail))


F = TypeVar("F", bound=Callable[..., Any])

Target = Annotated[str | None, Option(metavar="COLUMN", help="Column of a file with the classes.")]
PoolSet = Annotated[
    list[str] | None, Option(metavar="KEY=VALUE", help="Option of the pool; may be given again.")
]
Read = Annotated[
    list[str] | None,
    Option(
        metavar="KEY=VALUE",
        help="How the file is read: encoding, header, sheet and the like; of rows as the pool was.",
    ),
]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Option of the classifier; may be given again."),
]
Guess = Annotated[
    list[str] | None,
    Option(
        metavar="SOURCE",
        help="Start from a guess: names, column:NAME, column:NAME:CONFIDENCE, columns:PREFIX*; or several.",
    ),
]
OfQuestion = Annotated[
    str | None, Option("--question", metavar="NAME", help="Of a project that asks several: which one.")
]
IdColumn = Annotated[str, Option("--id", help="Column of the ids; without it rows count from 1 on.")]
OutTable = Annotated[Path | None, Option("--out", help="CSV to write; printed unless given.")]
TrustCode = Annotated[
    bool,
    Option("--trust-code", help="Let the file name code (package.module:name), which then runs."),
]
Seed = Annotated[int, Option(min=0, help="Of everything random.")]
Workers = Annotated[int, Option(help="Processes, each with one thread.")]
Model = Annotated[Path, Option(help="A run's bundle, or its model folder.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, and of the results the shortest form.")]
Replace = Annotated[
    bool, Option("--replace", help="Write over a file that is there; never over an input or a pool.")
]
Project = Annotated[str, Argument(help="Id or name (see `workbench projects`).")]


def with_options(schema: type) -> Callable[[F], F]:
    """Give a command the settings of a model that are a number or a word, as its last options.

    Args:
        schema: the model, such as `RunSettings`.

    Returns:
        A decorator of a command that takes `**settings`; an option that the command has itself for a setting
        gets the model's help where it has none.
    """

    def option(setting: FieldInfo) -> Any:
        if setting.annotation not in (str, int, float, str | None):
            return None
        limits = {"min": limit_of(setting, "ge"), "max": limit_of(setting, "le")}
        return Annotated[setting.annotation, Option(help=_sentence(setting), **limits)]

    def change(command: F) -> F:
        command.__annotations__ = get_type_hints(command, include_extras=True)
        for name, setting in settings_of(schema).items():
            for entry in getattr(command.__annotations__.get(name), "__metadata__", ()):
                entry.help = entry.help or _sentence(setting)
        return with_settings(schema, option)(command)

    return change


def _sentence(setting: FieldInfo) -> str:
    text = setting.description or ""
    return text[:1].upper() + text[1:]
