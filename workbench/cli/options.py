"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a file with the classes.")]
PoolSet = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Option of the pool; may be given again.")
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="How the file is read: encoding, header, sheet and the like; of rows as the pool was.",
    ),
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
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress, and of the results the shortest form.")
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Write over a file that is there; never over an input or a pool.")
]
Project = Annotated[str, typer.Argument(help="Id or name (see `workbench projects`).")]
