"""Options that several commands take."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic.fields import FieldInfo
from typer import Argument, Option

from workbench.documents.settings import limit_of, settings_of, with_settings

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
