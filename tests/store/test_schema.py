"""The tables and the number of their version belong together."""

from hashlib import sha256

from workbench.store import schema

PINNED = ("0016", "66e7655d7627ce37")
"""The version of the tables, and the digest of what they are."""


def described() -> str:
    """Description of the tables, a line a column and an index."""
    lines = []
    for table in (*schema.metadata.sorted_tables, schema.versions):
        for column in table.columns:
            default = column.server_default
            about = (
                *("null" if column.nullable else "", "key" if column.primary_key else ""),
                *("unique" if column.unique else "", "" if default is None else f"default {default.arg}"),
                *sorted(f"of {key.target_fullname}" for key in column.foreign_keys),
            )
            lines.append(" ".join(filter(None, (table.name, column.name, str(column.type), *about))))
        for index in table.indexes:
            parts = ", ".join(str(part) for part in index.expressions)
            unique = " unique" if index.unique else ""
            where = index.dialect_options["sqlite"]["where"]
            lines.append(f"{table.name} index {index.name}{unique}: {parts} {'' if where is None else where}")
        for constraint in table.constraints:
            if isinstance(constraint.name, str):
                names = ", ".join(column.name for column in constraint.columns)
                lines.append(f"{table.name} {type(constraint).__name__} {constraint.name}: {names}")
    return "\n".join(sorted(line.rstrip() for line in lines))


def test_other_tables_are_another_version() -> None:
    digest = sha256(described().encode()).hexdigest()[:16]
    assert (schema.VERSION, digest) == PINNED, (
        "The tables of workbench/store/schema.py are others than those of their version: a database that "
        f"was made before would be opened and then fail. Give VERSION another number there (it is "
        f"{schema.VERSION!r}), and write it here as PINNED, with the digest of the tables as they are now: "
        f"{digest!r}. They are:\n{described()}"
    )
