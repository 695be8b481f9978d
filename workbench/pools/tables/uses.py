"""Uses of the columns of a table: said by a person, told by our own exports, or guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.errors import InputError
from workbench.pools.cells import (
    BLANKS,
    EXACT,
    FORMATS,
    MOST,
    date_format,
    is_date,
    is_text,
    read_numbers,
    read_texts,
)
from workbench.pools.formats.files import IMAGE_ENDINGS
from workbench.reading import cut, listed

USES = ("number", "category", "text", "date", "shown", "id", "class", "picture", "leave out")
"""Uses of a column; "shown" is seen beside the item, and not learnt from."""
EMPTY = ("median", "own", "drop")
"""What empty cells become: the median (of categories the commonest), a category of their own, or the row
is left out."""
USUAL = {"number": "median", "date": "median", "category": "own", "text": "own", "picture": "drop"}
"""What they become where nobody says; columns of ids and classes have their own ways."""
AUTO = "auto"
ID_NAMES = ("id", "_id", "uuid", "item_id", "row_id")
CLASS_NAMES = ("target", "label", "class", "y", "category", "annotation")
CLASS_WORDS = re.compile(
    r"(.* )?(target|label|class|category|sentiment|survived|survival|outcome|churn|churned|exited|attrition"
    r"|species|kind|variety|diagnosis|spam|fraud|toxic|offensive|hate|emotion|intent|topic|stance|verdict|choice"
    r"|decision|relevant|included|approved|subscribed|default|deposit|income|quality|loan status|klasse"
    r"|kategorie|ziel)s?( text| name| responses)?"
)
"""Words of the names of columns that may hold the classes (`name_words`): asked about."""
TEXT_NAMES = frozenset(
    (
        *("text", "comment", "comments", "title", "query", "review", "sentence", "tweet"),
        *("content", "body", "message", "question", "answer", "utterance", "description"),
        *("headline", "abstract", "document", "post", "remark", "feedback", "note", "notes"),
        *("summary", "prompt", "response"),
    )
)
"""Last words of the names of columns that hold texts, however short these are."""
MAX_CLASSES = 1_000
_CODES = frozenset(
    (
        *("code", "zip", "plz", "postcode", "postal", "phone", "agent", "type"),
        *("kind", "group", "cluster", "sector", "month", "weekday"),
    )
)
# of whole numbers that are all different, these are no quantities: "customer number", pandas' "Unnamed: 0"
_NUMBERED = frozenset({"number", "no", "nr", "num", "key", "unnamed", "index", "row", "serial", "#"})
_FEWEST = 20
_FEW_TEXTS = 12  # different texts up to which they are categories, whatever their column is called
_MOST_CODES = 20  # different codes up to which they are categories
_PHONE = re.compile(r"\+\d{7,}")
_OF_E = re.compile(r"\d+E\d+")  # "3E4" is a flat or a part: programs write 3E+04 for 30,000
_CODED = re.compile(r"[^\W\d]*[\s_#-]?\d+")  # "agent_07", "AG-113"
LONG_TEXT = 8  # words in the median from which on a text is the item, and the other columns are about it
_SAMPLE = 20_000


@dataclass(frozen=True)
class ColumnUse:
    """Use of one column.

    Attributes:
        use: one of `USES`.
        empty: one of `EMPTY`; "" for ids and classes (where an empty cell is an item without a class) and
            for columns left out.
        format: of dates, one of `workbench.pools.cells.FORMATS`; "" finds it.
        decimal: of numbers written as text, "." or ","; "" is the table's, or found.
        guessed: whether nobody said so: what the guess decides is told as long as it stands.
    """

    use: str
    empty: str = ""
    format: str = ""
    decimal: str = ""
    guessed: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, name: str, said: Any) -> ColumnUse:
        """A use as a person, a specification or a page says it.

        Args:
            name: of the column, for messages.
            said: a use, or {"use", "empty", "format", "decimal", "guessed"}.

        Raises:
            InputError: no such use; says what there is.
        """
        if isinstance(said, ColumnUse):
            return said
        document = {"use": said} if isinstance(said, str) else said
        keys = {"use", "empty", "format", "decimal", "guessed"}
        if not isinstance(document, Mapping) or not set(document) <= keys:
            raise InputError(
                f"columns: {cut(name)} is {cut(said)}; say a use, or use, empty, format and decimal."
            )
        use, empty = document.get("use"), document.get("empty") or ""
        form, decimal = document.get("format") or "", document.get("decimal") or ""
        if use not in USES:
            complaint = "has no use yet" if use is None else f"cannot be {cut(use)}"
            raise InputError(f"columns: {cut(name)} {complaint}; it can be {', '.join(USES)}.")
        if empty and empty not in EMPTY:
            raise InputError(
                f"columns: empty cells of {cut(name)} cannot be {cut(empty)}; they can be {', '.join(EMPTY)}."
            )
        if form and form not in FORMATS:
            raise InputError(
                f"columns: dates of {cut(name)} are not {cut(form)}; there is {', '.join(FORMATS)}."
            )
        if decimal not in ("", ".", ","):
            raise InputError(f"columns: the decimal sign of {cut(name)} is '.' or ','; got {cut(decimal)}.")
        guessed = document.get("guessed") is True
        if use in USUAL:
            of_numbers = decimal if use == "number" else ""
            return cls(use, empty or USUAL[use], form if use == "date" else "", of_numbers, guessed)
        return cls(use, "drop" if empty == "drop" and use != "leave out" else "", guessed=guessed)

    def to_json(self) -> dict[str, str]:
        """As `of` takes it."""
        more = {"empty": self.empty, "format": self.format, "decimal": self.decimal}
        return {"use": self.use} | {name: value for name, value in more.items() if value}

    def as_option(self) -> dict[str, Any]:
        """The same, with the word that nobody said it."""
        return self.to_json() | ({"guessed": True} if self.guessed else {})


def uses_of(said: Any) -> dict[str, ColumnUse]:
    """Content of the option `columns`.

    Args:
        said: "auto", or a mapping of names of columns to uses.

    Raises:
        InputError: another form, or a use there is not.
    """
    if said in (None, AUTO):
        return {}
    if not isinstance(said, Mapping):
        raise InputError(f'columns={cut(said)} is neither "auto" nor a use for each column.')
    return {str(name): ColumnUse.of(str(name), value) for name, value in said.items()}


def name_words(name: str) -> str:
    """Words of a column's name: "isFraud", "is_fraud" and "Is fraud?" are "is fraud"."""
    spaced = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", str(name))
    return " ".join(re.findall(r"[^\W\d_]+|#", spaced)).lower()


def is_named_id(name: str) -> bool:
    """True if a column says by its name that it holds ids."""
    return f" {name_words(name)}".endswith((" id", "uuid"))


def numbers_rows(frame: Any, name: str) -> bool:
    """True if a column only tells rows apart: a model would learn the order of the file from it.

    Args:
        frame: pandas DataFrame.
        name: of the column.

    Returns:
        True for whole numbers that are all different, by a name like "customer number", one apart each, or
        in the only column without a name, as pandas writes its index.
    """
    column = frame[name]
    if len(column) < _FEWEST:
        return False
    with suppress(TypeError, ValueError):
        if float(column.array[0]) % 1:  # as most columns of decimals are seen through
            return False
    for part in (column.iloc[:1_000], column):
        values: Floats = read_numbers(part).values
        is_whole = np.isfinite(values).all() and (values % 1 == 0).all()
        if not is_whole or len(np.unique(values)) < len(values):
            return False
    # by the last word: a "number of rooms" is a quantity
    numbered = not _NUMBERED.isdisjoint(name_words(name).split()[-1:])
    nameless = str(name) == "column_1" and "column_2" not in frame.columns
    return nameless or numbered or bool((np.abs(np.diff(values)) == 1).all())


def guessed(name: str, column: Any, decimal: str, most: int, taken: set[str]) -> ColumnUse:
    """Most likely use of a column, by its name and what it holds.

    Args:
        name: of the column.
        column: pandas Series.
        decimal: the decimal sign.
        most: most categories of a column.
        taken: uses that other columns have; ids, classes and pictures are one column each.
    """
    low, name_parts = name.strip().lower(), name_words(name).split()
    step = max(1, len(column) // _SAMPLE)
    # a class may be called None or NA: that stays a class, and is told of
    texts, blank = read_texts(column.iloc[::step], ("",) if low in CLASS_NAMES else BLANKS)
    filled = [str(text) for text in texts[~blank]]  # one long text must not cost all of them its length
    different = set(filled)
    if len(different) == 0:
        # the sample may have missed the few cells that are filled
        return (
            ColumnUse("leave out") if step == 1 or not column.notna().any() else ColumnUse.of(name, "number")
        )
    unique = len(different) == len(filled) == len(texts) and (step == 1 or column.is_unique)
    named_id = is_named_id(name)
    # one that is called so and has a few gaps or doubles is to be mended, not forgotten
    nearly = low in ID_NAMES and len(different) >= MOST * len(texts)
    if "id" not in taken and ((unique and named_id) or nearly):
        return ColumnUse("id")
    few = 2 <= len(different) <= max(2, min(most, len(filled) // 2)) and (
        step == 1 or column.nunique() <= most
    )
    classes = few or (step == 1 and 2 <= len(different) <= min(MAX_CLASSES, len(filled) // 2))
    if "class" not in taken and low in CLASS_NAMES and classes:
        return ColumnUse("class")
    pictures = "picture" not in taken and any(_is_picture(text) for text in filled[:100])
    if pictures and np.mean([_is_picture(text) for text in filled]) >= MOST:
        return ColumnUse.of(name, "picture")
    if len(different) == 1 and (len(filled) == len(texts) or low in CLASS_NAMES):
        return ColumnUse("leave out")
    if is_date(column):
        return ColumnUse.of(name, "date")
    cells = read_numbers(column.iloc[::step], decimal)
    readable, numeric = np.isfinite(cells.values), ~np.isnan(cells.values)
    codes = is_text(column) and any(map(_is_code, filled))
    # one "+1 250 000" is a quantity, and one "00 00 0000" no telephone
    spaced = [_is_code(text.replace(" ", "")) for text in filled]
    odd = (code or _OF_E.fullmatch(text) is not None for code, text in zip(spaced, filled, strict=True))
    codes = codes or sum(odd) >= MOST * len(filled)
    if numeric.any() and not readable.any() and numeric.sum() >= MOST * (~cells.blank).sum():
        return ColumnUse("leave out")  # infinite throughout
    if readable.any() and numeric.sum() >= MOST * (~cells.blank).sum() and not (codes and not few):
        is_whole = bool((cells.values[readable] % 1 == 0).all())
        coded = is_whole and (not _CODES.isdisjoint(name_parts) or name_parts[-1:] == ["number"])
        if is_whole and np.abs(cells.values[readable]).max() >= EXACT:
            return ColumnUse("shown")  # numbers would lose their last digits
        if codes or (coded and few):
            return ColumnUse.of(name, "category")
        if coded and step == 1 and len(different) > most:
            return ColumnUse("shown")
        if is_whole and named_id:  # that of a customer says which, not how much
            return ColumnUse.of(name, "category") if few and not unique else ColumnUse("leave out")
        return ColumnUse.of(name, "number")
    form = None if codes else date_format(column)
    if form is not None:
        return ColumnUse.of(name, {"use": "date", "format": form})
    if len(different) > _MOST_CODES and np.mean([bool(_CODED.fullmatch(t)) for t in different]) >= MOST:
        return ColumnUse("shown")  # one of many agents, branches, machines
    words = np.mean([1 if code else len(text.split()) for code, text in zip(spaced, filled, strict=True)])
    # texts may come several times each, since several people answered
    has_many = len(different) > max(_FEW_TEXTS, len(filled) // 8 if words >= 3 else 0)
    if has_many and (TEXT_NAMES & {*name_parts[-1:]} or (words >= 3 and len(different) >= 2 * _FEWEST)):
        return ColumnUse.of(name, "text")
    if few and np.mean([len(text) for text in filled]) <= 40:
        return ColumnUse.of(name, "category")
    unspaced = np.mean([len(text) >= 10 and not text.isascii() for text in filled]) >= 0.5
    if words >= 3 or unspaced:  # Chinese and Japanese have no spaces; codes and addresses are no texts
        return ColumnUse.of(name, "text")
    return ColumnUse("leave out")


def beside_item(
    frame: Any, uses: Mapping[str, ColumnUse], said: Mapping[str, ColumnUse]
) -> tuple[str, dict[str, ColumnUse]]:
    """The column that is the item, and those that are then shown beside it and not learnt from.

    A picture is the item, and else a text of eight words or more in the median. What somebody said of a
    column stays.

    Args:
        frame: pandas DataFrame.
        uses: of all columns.
        said: those that somebody said.

    Returns:
        The column, "" for none, and the uses of the others as they would be learnt from.
    """
    item = next((name for name, use in uses.items() if use.use == "picture"), "")
    if not item:
        texts = {name: _median_words(frame[name]) for name, use in uses.items() if use.use == "text"}
        item = max(texts, key=texts.__getitem__, default="")
        if not item or texts[item] < LONG_TEXT:
            return "", {}
    learnt = ("number", "category", "date", "text")
    side_uses = {name: use for name, use in uses.items() if use.use in learnt and name not in {*said, item}}
    # two long texts, a title and a body say, are one item
    return item, {
        n: u for n, u in side_uses.items() if u.use != "text" or _median_words(frame[n]) < LONG_TEXT
    }


def _median_words(column: Any) -> float:
    step = max(1, len(column) // 1_000)
    texts, blank = read_texts(column.iloc[::step], blanks=("",))
    words = [len(str(text).split()) for text in texts[~blank]]
    return float(np.median(words)) if words else 0.0


def check_uses(uses: Mapping[str, ColumnUse], names: list[str], table: str) -> None:
    """Refuse columns that are not there, and two of a use that there can be one of.

    Raises:
        InputError: names them.
    """
    for name in uses:
        if name not in names:
            raise InputError(f"columns: {table} has no column {cut(name)}; it has {listed(names)}.")
    for single, noun in (("id", "ids"), ("class", "classes"), ("picture", "pictures")):
        columns = [name for name, use in uses.items() if use.use == single]
        if len(columns) > 1:
            raise InputError(
                f"The columns {listed(columns)} cannot all hold the {noun}: leave all but one of them out, "
                "or use them as something else."
            )


def _is_code(text: str) -> bool:
    """True if a text is digits that begin with a 0, or a number of a telephone: never a quantity."""
    return (len(text) > 1 and text[0] == "0" and text.isdigit()) or bool(_PHONE.fullmatch(text))


def _is_picture(text: str) -> bool:
    if text.startswith("data:image/"):
        return True
    plain = text.split("?")[0].lower() if text.startswith(("http://", "https://")) else text.lower()
    return plain.endswith(IMAGE_ENDINGS)


COLUMNS = (
    *("label", "status", "person", "source", "round", "policy", "utility"),
    *("probabilities_when_asked", "probabilities_now", "confidence", "model", "seconds"),
    *("time", "changed_from", "note", "flag", "label_by_person", "consensus"),
    *("consensus_certainty", "model_labels", "guess", "guess_source", "guess_shown"),
    *("certificate", "instructions", "instructions_read", "copy_of", "set", "item"),
)
"""Columns of an export about each item, after its id and its own columns."""
TAKEN = "source_"
"""Before the names of an item's own columns that are called like one of ours."""
LABEL_STUDIO = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time")
"""Columns of Label Studio's CSV and JSON-MIN about each annotation; the first is nobody else's."""
_NOBODYS = ("predicted", "certified", "undecided")
_SIGN = frozenset(("id", "label", "status", "person", "source", "set", "item", "model_labels"))


def is_exported(names: list[str]) -> bool:
    """True if a table with these columns is an export of ours."""
    return set(names) >= _SIGN


def is_label(status: Any) -> bool:
    """True if the label of a row of this status is people's: no model's, and none of several that tie."""
    return str(status) not in _NOBODYS


def is_of_ours(names: list[str]) -> bool:
    """True if a CSV with these columns, in this order, is one that we wrote and that is read again.

    An export of labels or of the answers to all questions, predictions, or the labels beside a certificate:
    in these a quote before a text that a spreadsheet would run is no part of the text.
    """
    return (
        is_exported(names)
        or (len(names) > 2 and (names[0], names[-1]) == ("id", "item"))
        or names[:3] == ["row", "prediction", "confidence"]
        or names == ["id", "label", "source"]
    )


def answers_in(names: list[str]) -> list[str]:
    """Names of the questions whose answers a table of ours holds, a column each; none of other tables."""
    if names[:1] != ["id"] or names[-1:] != ["item"] or not {"note", "flag"} <= set(names):
        return []
    return [name for name in names if f"{name}_person" in names]


def without_provenance(frame: Any, keep: set[str]) -> tuple[Any, dict[str, ColumnUse]]:
    """An export as the table of its items: ids, their own columns, and the labels that people gave.

    Args:
        frame: pandas DataFrame of an export.
        keep: columns that somebody named, which stay.

    Returns:
        The table, and the uses of its columns that are known. Of several questions the answers are no
        features: they are taken over as questions.
    """
    answers = answers_in(list(frame.columns))
    about = [f"{name}_{part}" for name in answers for part in ("person", "prediction", "confidence")]
    kept = {*keep, *(answers or ["label"])}
    lost_columns = {*COLUMNS, f"{TAKEN}id", *(("tags", *about) if answers else ())} - kept
    table = frame.drop(columns=[name for name in frame if name in lost_columns])
    uses = {"id": ColumnUse("id")}
    if answers:
        uses |= dict.fromkeys(answers if len(answers) > 1 else (), ColumnUse("leave out"))
    else:
        texts, _ = read_texts(frame["status"])
        peoples = np.array([is_label(status) for status in texts.tolist()], dtype=bool)
        table = table.assign(label=table["label"].astype("object").where(peoples, ""))
        labels, blank = read_texts(table["label"], blanks=("",))
        # too few do not say what the classes are
        has_classes = len(set(labels[~blank].tolist())) > 1
        uses["label"] = ColumnUse("class" if has_classes else "leave out")
    own_columns = [name for name in table.columns if name not in uses]
    if own_columns == ["text"]:
        uses["text"] = ColumnUse.of("text", "text")
    return table, uses
