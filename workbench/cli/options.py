"""Options that several commands take."""

from typing import Annotated

from typer import Argument, Option

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
Selector = Annotated[str, Option(help="How a batch is chosen: auto, a name or package.module:function.")]
Initial = Annotated[
    str,
    Option(help="First labels: one-per-class, diverse, diverse:N, random or random:N; none, with a guess."),
]
Guess = Annotated[
    list[str] | None,
    Option(
        metavar="SOURCE",
        help="Start from a guess: names, column:NAME, column:NAME:CONFIDENCE, columns:PREFIX*; or several.",
    ),
]
Budget = Annotated[int, Option(help="Labels to ask for, the first ones not counted.")]
Batch = Annotated[int, Option(help="Labels to ask for at a time.")]
OfQuestion = Annotated[
    str | None, Option("--question", metavar="NAME", help="Of a project that asks several: which one.")
]
TrustCode = Annotated[
    bool,
    Option("--trust-code", help="Let the file name code (package.module:name), which then runs."),
]
Seed = Annotated[int, Option(min=0, help="Of everything random.")]
Fraction = Annotated[float, Option(help="Share of items kept for measuring.")]
Measured = Annotated[int, Option(help="At most so many of these, always the same ones; 0 is all.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, and of the results the shortest form.")]
Replace = Annotated[
    bool, Option("--replace", help="Write over a file that is there; never over an input or a pool.")
]
Project = Annotated[str, Argument(help="Id or name (see `workbench projects`).")]
