"""Options that several commands take."""

import re
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature, getdoc, signature
from typing import Annotated, get_type_hints

from typer import Argument, Option

from workbench.documents.runs import RunSettings

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
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, and of the results the shortest form.")]
Replace = Annotated[
    bool, Option("--replace", help="Write over a file that is there; never over an input or a pool.")
]
Project = Annotated[str, Argument(help="Id or name (see `workbench projects`).")]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the settings of a run that are a number or a word, as its last options.

    Args:
        command: takes them as `**settings`.

    Returns:
        The same, with the types and defaults of `RunSettings`, and its docstring as their help.
    """
    entries = re.split(r"\n {4}(\w+): ", getdoc(RunSettings) or "")
    texts = {name: " ".join(text.split()) for name, text in zip(entries[1::2], entries[2::2], strict=True)}
    hints = get_type_hints(command, include_extras=True)
    parameters = [own for own in signature(command).parameters.values() if own.kind != Parameter.VAR_KEYWORD]
    kinds = get_type_hints(RunSettings)
    for setting in fields(RunSettings):
        name, kind = setting.name, kinds[setting.name]
        if kind in (str, int, float):
            text = texts.get(name, "")
            hints[name] = Annotated[kind, Option(help=text[:1].upper() + text[1:])]
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=setting.default))
    command.__annotations__ = hints
    vars(command)["__signature__"] = Signature(
        [own.replace(annotation=hints[own.name]) for own in parameters]
    )
    return command
