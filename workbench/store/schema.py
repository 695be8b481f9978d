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

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("pool", JSON, nullable=False),
    Column("fingerprints", LargeBinary, nullable=False),
    Column("feature_map", JSON, nullable=False),
    # What an export needs when the pool is gone: the source's ids, as JSON, compressed.
    Column("item_ids", LargeBinary, nullable=False),
    # Number and time of the last event: who holds the row's lock need not look for news.
    Column("last_event", BigInteger, nullable=False),
    Column("changed", Text, nullable=False),
    # How far each question is, for lists: id -> items with a label, where whoever recorded last said so.
    Column("n_labelled", JSON, nullable=False),
    # Who may open it: keys of people; one made without a log-in has no owner.
    Column("owner", Text, nullable=True),
    Column("access", Text, nullable=False, server_default=text("'open'")),
    Column("members", JSON, nullable=True),
)

# What is asked about the items of a project; the id of the first one is the project's.
questions = Table(
    "questions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("position", Integer, nullable=False),
    # Put aside: not asked any more, and nothing of it is lost.
    Column("aside", Integer, nullable=False, server_default=text("0")),
    Column("settings", JSON, nullable=False),
    Column("created", Text, nullable=False),
    UniqueConstraint("project", "name", name="one_question_of_a_name"),
)

# Whoever logged in once: what the log-in knows them by, the name their events carry, and the address that the
# list of people is asked about, also where they send a key and no cookie.
people = Table(
    "people",
    metadata,
    Column("key", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("address", Text, nullable=False),
    Column("seen", Text, nullable=False),
)

# Who did what to which project; what is recorded stays when the project is deleted.
audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True),
    Column("time", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("project", Text, nullable=True),
    # as it was called then
    Column("called", Text, nullable=False),
    Column("detail", Text, nullable=False),
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
    Column("kind", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("time", Text, nullable=False),
    # The ask an answer belongs to: the database itself refuses a second one.
    Column("answers", Text, nullable=True),
    # The client's operation that it records: sent again, it is acknowledged and not repeated.
    Column("operation", Text, nullable=True),
    UniqueConstraint("project", "answers", name="one_answer_per_ask"),
    Index("one_event_per_operation", "project", text("coalesce(question, '')"), "operation", unique=True),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("project", Text, nullable=True),
    Column("study", Text, nullable=True),
    Column("owner", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("updated", Text, nullable=False),
    Index("runs_of_study", "study"),
)

# What a comparison of many runs is; `runs.study` is the id of one, or a name somebody gave.
studies = Table(
    "studies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("workers", Integer, nullable=False),
    Column("project", Text, nullable=True),
    Column("created", Text, nullable=False),
    # Key of the person who started it; without a log-in there is none.
    Column("owner", Text, nullable=True),
)

# Rounds of runs and of people's projects alike: `owner` is the id of either.
rounds = Table(
    "rounds",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("record", JSON, nullable=False),
    Column("state", LargeBinary, nullable=True),
    Column("time", Text, nullable=False),
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
    Column("project", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("purpose", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("used", Text, nullable=True),
    Index("program_keys_of_project", "project"),
)
