"""The tables. Imported by `Store` when a database is opened, never before.

Texts have no length: SQLite looks at none, so that only PostgreSQL would refuse what is too long.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()
VERSION = "0016"
"""Of the tables: before the first release another schema is another number, and starts anew."""
versions = Table("alembic_version", MetaData(), Column("version_num", Text, primary_key=True))
"""The version that a database is at; apart from what is copied and restored."""


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    _text("name"),
    Column("pool", JSON, nullable=False),
    Column("fingerprints", LargeBinary, nullable=False),
    Column("feature_map", JSON, nullable=False),
    # What an export needs when the pool is gone: the source's ids, as JSON, compressed.
    Column("item_ids", LargeBinary, nullable=False),
    # Number and time of the last event: who holds the row's lock need not look for news.
    Column("last_event", BigInteger, nullable=False),
    _text("changed"),
    # How far each question is, for lists: id -> items with a label, where whoever recorded last said so.
    Column("n_labelled", JSON, nullable=False),
    # Who may open it: keys of people; one made without a log-in has no owner.
    _text("owner", nullable=True),
    Column("access", Text, nullable=False, server_default=text("'open'")),
    Column("members", JSON, nullable=True),
)

# What is asked about the items of a project; the id of the first one is the project's.
questions = Table(
    "questions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, ForeignKey("projects.id"), nullable=False),
    _text("name"),
    _text("kind"),
    Column("position", Integer, nullable=False),
    # Put aside: not asked any more, and nothing of it is lost.
    Column("aside", Integer, nullable=False, server_default=text("0")),
    Column("settings", JSON, nullable=False),
    _text("created"),
    UniqueConstraint("project", "name", name="one_question_of_a_name"),
)

# Whoever logged in once: what the log-in knows them by, the name their events carry, and the address that the
# list of people is asked about, also where they send a key and no cookie.
people = Table(
    "people",
    metadata,
    Column("key", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _text("address"),
    _text("seen"),
)

# Who did what to which project; what is recorded stays when the project is deleted.
audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True),
    _text("time"),
    _text("person"),
    _text("name"),
    _text("what"),
    _text("project", nullable=True),
    # as it was called then
    _text("called"),
    _text("detail"),
    Column("octets", BigInteger, nullable=True),
    Index("audit_of_project", "project", "time"),
    Index("audit_of_person", "person", "what"),
)

events = Table(
    "events",
    metadata,
    # Its number within the project, from 1: whatever refers to an event says this one, so that a project
    # is copied, bundled and restored as it is.
    Column("project", Text, primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    # The question that it answers; none for what is about items.
    Column("question", Text, ForeignKey("questions.id"), nullable=True),
    _text("kind"),
    Column("payload", JSON, nullable=False),
    _text("annotator"),
    _text("time"),
    # The ask an answer belongs to: the database itself refuses a second one.
    _text("answers", nullable=True),
    # The client's operation that it records: sent again, it is acknowledged and not repeated.
    _text("operation", nullable=True),
    UniqueConstraint("project", "answers", name="one_answer_per_ask"),
    Index("one_event_per_operation", "project", text("coalesce(question, '')"), "operation", unique=True),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("spec", JSON, nullable=False),
    _text("fingerprint"),
    _text("status"),
    _text("message"),
    _text("project", nullable=True),
    _text("study", nullable=True),
    _text("owner"),
    _text("created"),
    _text("updated"),
    Index("runs_of_study", "study"),
)

# What a comparison of many runs is; `runs.study` is the id of one, or a name somebody gave.
studies = Table(
    "studies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("workers", Integer, nullable=False),
    _text("project", nullable=True),
    _text("created"),
    # Key of the person who started it; without a log-in there is none.
    _text("owner", nullable=True),
)

# Rounds of runs and of people's projects alike: `owner` is the id of either.
rounds = Table(
    "rounds",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("record", JSON, nullable=False),
    Column("state", LargeBinary, nullable=True),
    _text("time"),
    # Few rounds have one; a new round must not look through all the others for it.
    Index(
        "rounds_with_state",
        "owner",
        "number",
        sqlite_where=text("state IS NOT NULL"),
        postgresql_where=text("state IS NOT NULL"),
    ),
)

# Keys that programs show in the place of a person; the key itself is told once and nowhere kept.
program_keys = Table(
    "program_keys",
    metadata,
    Column("id", Text, primary_key=True),
    _text("project"),
    _text("person"),
    _text("name"),
    Column("digest", Text, nullable=False, unique=True),
    _text("purpose"),
    _text("created"),
    _text("used", nullable=True),
    Index("program_keys_of_project", "project"),
)
