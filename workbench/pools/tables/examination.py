"""One examination of a table under given options: what is in it, what is wrong, and which rows stay."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import AMBIGUOUS, MARKS, read_numbers, read_texts
from workbench.pools.features.vectors import IMAGE_FEATURES
from workbench.pools.labels import class_names, class_order
from workbench.pools.notebooks import counted
from workbench.pools.pool import plain
from workbench.pools.tables.columns import Column
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import ColumnReport, Findings, Fix, TableReport, worst_first
from workbench.pools.tables.second_readings import (
    VoteColumns,
    ask_for_the_class,
    ask_for_votes,
    decimal_signs,
    leave_copies_out,
    say_what_is_lost,
    settle_decimals,
)
from workbench.pools.tables.source_table import RawTable
from workbench.pools.tables.suggestions import resolved
from workbench.pools.tables.uses import (
    CLASS_NAMES,
    LABEL_STUDIO,
    ColumnUse,
    answers_in,
    beside_item,
    check_uses,
    is_exported,
    is_named_id,
    numbers_rows,
    without_provenance,
)
from workbench.reading import cut, letters, listed

_WORDS = frozenset(("unknown", "missing"))  # that stand for nothing among numbers, and may well be classes


class Examination:
    """Everything known about a raw table under given options."""

    def __init__(self, raw: RawTable, options: TableOptions) -> None:
        self.raw = raw
        self.options = options
        self.frame = raw.frame
        self.names = [str(name) for name in self.frame.columns]
        self.frame.columns = self.names
        self.found = Findings()
        self.known: dict[str, ColumnUse] = {}  # of an export of ours
        if is_exported(self.names) or answers_in(self.names):
            self._leave_provenance_out()
        elif LABEL_STUDIO[0] in self.names:
            self.known = {name: ColumnUse("leave out") for name in LABEL_STUDIO if name in self.names}
            self.found.note(
                "export", f"Left out is what Label Studio says of its annotations: {listed(self.known)}."
            )
        self.columns: dict[str, Column] = {}
        self.counts: dict[str, int] = {}
        self.truth: Ints | None = None
        self.classes: tuple[str, ...] = options.classes or ()
        self.ids: Array | None = None
        self.keep = np.ones(len(self.frame), dtype=bool)
        self.target = self.id_column = self.text_column = ""
        self.uses: dict[str, ColumnUse] = {}
        self.votes: VoteColumns | None = None  # that the table was said to hold
        self.pictures: Any = None  # of a pool of pictures, see `tables.pictures`
        self._examine()

    def _leave_provenance_out(self) -> None:
        n_before, answers = len(self.names), answers_in(self.names)
        what = (
            f"the answers in {listed(answers)} can be taken over as questions"
            if answers
            else "its labels are taken over"
        )
        self.frame, self.known = without_provenance(self.frame, set(self.options.columns))
        self.names = list(self.frame.columns)
        self.found.note(
            "export",
            f"This is an export of Workbench's: {what}, and {n_before - len(self.names)} columns about who "
            "gave them, when and why are left out.",
        )

    # What is wrong, in the order a person would mend it ----------------------------------------------

    def _examine(self) -> None:
        raw, options = self.raw, self.options
        self.found.problems += raw.problems
        for note in raw.notes:
            self.found.note("read", note)
        too_few = {
            0: f"{raw.name} has a header but no rows. Add a row for each item.",
            1: f"{raw.name} has a single row; a pool needs at least 2 items.",
        }
        n_rows = len(self.frame)
        if n_rows in too_few:
            self.found.error("no rows", " ".join((too_few[n_rows], *raw.notes)))
        if not n_rows:
            return
        uses = {name: use for name, use in raw.uses.items() if name in self.names}
        uses |= {**self.known, **options.columns}
        try:
            check_uses(uses, self.names, raw.name)
        except InputError as error:
            self.found.error("columns", str(error))
            uses = {name: use for name, use in uses.items() if name in self.names}
        # what was guessed before stays, and is told as a guess; what stands beside an item is found anew
        fixed = {name: use for name, use in uses.items() if not (use.guessed and use.use == "shown")}
        uses = {name: use for name, use in uses.items() if not use.guessed}
        signs = decimal_signs(self, uses)
        readable = {name: "," if sign == AMBIGUOUS else sign for name, sign in signs.items()}
        self.uses = resolved(self.frame, fixed, readable, options)
        self._say_what_numbers_rows(uses)
        settle_decimals(self, self.uses, signs)
        by_use = {use.use: name for name, use in self.uses.items()}
        self.target, self.id_column = by_use.get("class", ""), by_use.get("id", "")
        if self.target:
            self._read_target(self.target)
        elif options.classes is not None:
            self._check_classes_given()
        if self.id_column:
            self._read_ids(self.id_column)
        self.votes = ask_for_votes(self, self.uses)
        copies = leave_copies_out(self, self.target, self.uses, uses) if self.target else []
        say_what_is_lost(self, self.uses, {*uses, *copies})
        self._say_what_is_shown(uses)
        if not self.target and options.classes is None:
            ask_for_the_class(self, self.uses)
        if options.features in IMAGE_FEATURES and "picture" not in by_use:
            self.found.error(
                "features", f"features={options.features!r} is for images, and no column holds pictures."
            )
        features = self.feature_names
        if "picture" in by_use:
            from workbench.pools.tables.pictures import find_pictures

            self.pictures = find_pictures(self, by_use["picture"])
        elif not features:
            self.found.choice(
                "no features",
                f"No column of {raw.name} is left to learn from. Use one as a number, a category, a date, "
                "text or pictures.",
                fixes=tuple(
                    Fix(f"Learn from {problem.column!r}", problem.fixes[-1].options)
                    for problem in self.found.problems
                    if problem.code in ("copy", "left out")
                ),
            )
        else:
            self._read_features(features)
        self._after_uses()

    def _read_features(self, features: list[str]) -> None:
        for name in features:
            column = Column.read(name, self.frame[name], self.uses[name], self.options.decimal or "")
            column.examine(self.options, self.raw.locate, self.found)
            self.columns[name] = column
            if self.uses[name].empty == "drop":
                self.keep &= ~column.gone
        if len(features) == 1 and self.uses[features[0]].use == "text":
            self.text_column = features[0]

    def _after_uses(self) -> None:
        lost, n_rows = int((~self.keep).sum()), int(self.keep.sum())
        codes = [name for name, column in self.columns.items() if column.may_be_codes]
        if codes:
            self.found.note(
                "codes?",
                f"Few whole numbers, used as numbers: {listed(codes)}. A code says which, not how much.",
                codes[0],
                (
                    Fix.to_use("They are categories", "category", *codes),
                    Fix("They are quantities", {"columns": {n: self.uses[n].to_json() for n in codes}}),
                ),
            )
        if lost:
            self.found.note("missing", f"{counted(lost, 'row')} left out; {n_rows:,} stay.")
        if lost and n_rows < 2:
            self.found.error(
                "no rows", f"Leaving rows out leaves {counted(n_rows, 'item')} of {len(self.frame)}."
            )
        elif (
            lost and self.truth is not None and np.unique(self.truth[self.keep & (self.truth >= 0)]).size < 2
        ):
            self.found.error("one class", "The rows left have fewer than two classes among them.")

    @property
    def feature_names(self) -> list[str]:
        """Columns that are neither target nor ids nor left out."""
        out = ("class", "id", "shown", "leave out")
        return [name for name, use in self.uses.items() if use.use not in out]

    @property
    def item_columns(self) -> list[str]:
        """Columns of the items: without the target, and where an id has several rows what is left out."""
        several = self.options.duplicate_ids == "first"
        out = {n for n, use in self.uses.items() if several and use.use == "leave out" and not use.guessed}
        return [name for name in self.names if name not in (*out, self.target)]

    def _read_target(self, name: str) -> None:
        originals, _ = read_texts(self.frame[name], blanks=("",))
        texts = class_names(originals)
        blank = texts == ""
        if trimmed := int((texts != originals).sum()):
            self.found.note(
                "class names",
                f"{counted(trimmed, 'cell')} of {name!r} lose spaces around the class, or are another form "
                "of the same letters.",
                name,
            )
        if self.options.unlabelled:
            blank |= np.isin(texts.astype(str), list(self.options.unlabelled))
        counts = Counter(str(text) for text in texts[~blank])
        if self.options.unlabelled is None:
            self._ask_what_is_empty(name, counts)
        if not counts:
            words = [f"The target column {name!r} is empty on every row."]
            words += [problem.message for problem in self.raw.problems if problem.column == name]
            self.found.error("target", " ".join(words), name)
            return
        classes = class_order(sorted(counts))
        self.counts = {key: counts[key] for key in classes}
        if self.options.classes is not None:
            extra = [key for key in classes if key not in self.options.classes]
            if extra:
                row = int(np.flatnonzero((texts == extra[0]) & ~blank)[0])
                self.found.error(
                    "classes",
                    f"Column {name!r}, {self.raw.locate(row)} holds {cut(extra[0])}, which is not among the "
                    f"classes given ({listed(self.options.classes)}).",
                    name,
                )
                return
            classes = list(self.options.classes)
        if len(classes) > self.options.max_classes:
            self.found.error(
                "many classes",
                f"The target column {name!r} holds {len(classes):,} different values in {len(texts):,} rows: "
                "more like an id or a measurement than classes. Name another column as target"
                f" (or raise max_classes, now {self.options.max_classes:,}).",
                name,
            )
            return
        if len(classes) < 2:
            self.found.error(
                "one class",
                f"The target column {name!r} holds one class only ({cut(classes[0])}); there is nothing to "
                "tell apart. Name another column, or give the names of all classes with classes=.",
                name,
            )
            return
        if len(classes) >= len(texts):
            self.found.error(
                "more classes than items",
                f"The target column {name!r} has {len(classes)} classes for {len(texts)} items; a pool needs "
                "more items than classes. Name another column, or add items.",
                name,
            )
            return
        folded: dict[str, str] = {}
        for key in classes:
            twin = folded.setdefault(key.strip().casefold(), key)
            if twin != key:
                self.found.note(
                    "similar classes",
                    f"The classes {cut(twin)} and {cut(key)} differ only in spaces or capitals; "
                    "both are kept.",
                    name,
                )
        position = {key: i for i, key in enumerate(classes)}
        truth = np.full(len(texts), -1, dtype=np.int64)
        truth[~blank] = [position[str(text)] for text in texts[~blank]]
        self.truth, self.classes = truth, tuple(classes)
        if blank.any():
            self.found.note(
                "unlabelled", f"{counted(int(blank.sum()), 'item')} without a class in {name!r}.", name
            )
        if self.uses[name].empty == "drop":
            self.keep &= ~blank

    def _ask_what_is_empty(self, name: str, counts: Mapping[str, int]) -> None:
        marks = [key for key in counts if key.lower() in MARKS - _WORDS]
        other_keys = [key for key in counts if key != "-1"]
        if all(map(str.isdigit, other_keys)) and other_keys != ["1"] and len(other_keys) < len(counts):
            marks = ["-1"]  # beside 0, 1, ... often no label
        if marks:
            ways = {"It is a class": list[str](), "It is no class": marks}
            if len(counts) - len(marks) < 2:
                del ways["It is no class"]  # nothing would be left to tell apart
            n = sum(counts[key] for key in marks)
            self.found.guess(
                "empty class",
                f"{listed(marks)} in {name!r} ({counted(n, 'cell')}): a class, or no class? As it stands it "
                "is a class.",
                name,
                tuple(Fix(words, {"unlabelled": way}) for words, way in ways.items()),
            )

    def _say_what_numbers_rows(self, stated_uses: Mapping[str, ColumnUse]) -> None:
        # what is called an id surprises nobody
        guesses = {n: use.use for n, use in self.uses.items() if n not in stated_uses and not is_named_id(n)}
        uses = {name: use for name, use in guesses.items() if use in ("id", "leave out")}
        names = [name for name in uses if numbers_rows(self.frame, name)]
        if not names:
            return
        ids = next((name for name in names if uses[name] == "id"), None)
        listing = listed([name for name in names if name != ids])
        parts = [f"{ids!r} is taken as the items' ids"] if ids is not None else []
        parts += [f"{listing} left out"] if listing else []
        quantities = {name: {"use": "number"} for name in names}
        as_now = {name: self.uses[name].to_json() for name in names}
        self.found.guess(
            "numbers rows",
            f"Another whole number in each row: {', '.join(parts)}.",
            names[0],
            (
                Fix("Right so", {"columns": as_now}),
                Fix(
                    "It is a quantity" if len(names) == 1 else "They are quantities", {"columns": quantities}
                ),
            ),
        )

    def _say_what_is_shown(self, stated_uses: Mapping[str, ColumnUse]) -> None:
        """Columns beside a text or a picture, and codes of many values, are shown and not learnt from."""
        codes = [name for name, use in self.uses.items() if use.use == "shown" and name not in stated_uses]
        codes = [name for name in codes if self.target or name.strip().lower() not in CLASS_NAMES]
        if codes:
            self.found.note(
                "codes",
                f"Codes of many values are shown and not learnt from: {listed(codes)}.",
                codes[0],
                (Fix.to_use("They are quantities", "number", *codes),)
                if all(np.isfinite(read_numbers(self.frame[name]).values).any() for name in codes)
                else (),
            )
        item, extras = beside_item(self.frame, self.uses, stated_uses)
        if not extras:
            learnt = [
                n for n, use in self.uses.items() if n != item and use.use in ("number", "category", "date")
            ]
            if item and learnt and self.uses[item].use == "text":
                self.found.note(
                    "item",
                    f"The model learns from the text in {item!r} and from {listed(learnt)}.",
                    item,
                    (Fix.to_use("Learn from the text alone", "shown", *learnt),),
                )
            return
        self.uses |= {name: ColumnUse("shown", guessed=True) for name in extras}
        message, fixes = f"The model learns from the pictures in {item!r} alone", tuple[Fix, ...]()
        if self.uses[item].use == "text":
            message = f"The model learns from the text in {item!r} alone, unless a column clearly helps"
            learn = {name: use.to_json() for name, use in extras.items()}
            fixes = (Fix("Learn from them, too", {"columns": learn}),)
        self.found.note("item", f"{message}; shown beside it: {listed(list(extras))}.", item, fixes)

    def _check_classes_given(self) -> None:
        classes = self.options.classes or ()
        if len(classes) < 2 or len(set(classes)) < len(classes):
            self.found.error("classes", "Give at least two different names of classes.")
        elif len(classes) >= len(self.frame):
            self.found.error(
                "more classes than items",
                f"{len(classes)} classes for {len(self.frame)} items; a pool needs more items than classes.",
            )

    def _read_ids(self, name: str) -> None:
        texts, blank = read_texts(self.frame[name], blanks=("",))
        numbered = Fix.to_use("Number the rows instead", "leave out", name)
        if blank.any() and self.uses[name].empty == "drop":
            self.keep &= ~blank
        elif blank.any():
            drop = Fix("Leave those rows out", {"columns": {name: {"use": "id", "empty": "drop"}}})
            at = self.raw.locate(int(blank.argmax()))
            message = f"Column {name!r} has no id on {at}. Complete it."
            self.found.choice("id", message, name, (numbered, drop))
            return
        again = np.flatnonzero(_met_before([*map(letters, texts)]) & self.keep)
        if len(again):
            row = int(again[0])
            if self.options.duplicate_ids == "error":
                self.found.choice(
                    "duplicate ids",
                    f"The id {cut(str(texts[row]))} in column {name!r} stands on {self.raw.locate(row)} "
                    f"and before ({counted(len(again), 'row')} with an id met before). Correct them.",
                    name,
                    (Fix("Keep the first of each", {"duplicate_ids": "first"}), numbered),
                )
            else:
                self.keep[again] = False
                self.found.note(
                    "duplicate ids", f"{counted(len(again), 'row')} with an id met before left out."
                )
        self.ids = texts

    def report(self, preview: int) -> TableReport:
        """The examination as a report."""
        columns = []
        for name in self.names:
            series = self.frame[name]
            column = self.columns.get(name)
            # examples come from the top: a report must not read a large table twice
            for n_rows in (8, 200):
                texts, blank = read_texts(series.iloc[:n_rows])
                examples = tuple(dict.fromkeys(str(text)[:60] for text in texts[~blank]))[:4]
                if len(examples) == 4:
                    break
            missing = (
                column.blank
                if column
                else series.isna().to_numpy(dtype=bool) | (series == "").to_numpy(dtype=bool, na_value=False)
            )
            columns.append(
                ColumnReport(
                    name,
                    int(missing.sum()),
                    column.n_unique if column else int(series[~missing].nunique()),
                    examples,
                    self.uses.get(name),
                )
            )
        head = self.frame.head(preview)
        cells = {name: list(map(plain, head[name].array)) for name in self.names}
        return TableReport(
            self.raw.name,
            self.raw.format,
            len(self.frame),
            self.raw.encoding,
            self.raw.delimiter,
            tuple(columns),
            self.counts,
            tuple(worst_first(self.found.problems)),
            tuple({name: cells[name][i] for name in self.names} for i in range(len(head))),
            self.votes,
        )


def _met_before(texts: list[str]) -> Array:
    """[N] bool, whether a text stands further up; where none does, no set of them is made."""
    is_repeat = np.zeros(len(texts), dtype=bool)
    words = np.fromiter((hash(text) for text in texts), dtype=np.int64, count=len(texts))
    words.sort()
    if not (words[1:] == words[:-1]).any():
        return is_repeat
    met: set[str] = set()
    for i, text in enumerate(texts):
        n = len(met)
        met.add(text)
        is_repeat[i] = len(met) == n
    return is_repeat
