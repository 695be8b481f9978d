"""Small files as other programs write them, each with its right cells, classes and uses.

A file that opens gives exactly the items it holds; a column is lost only with a finding that names it; and
where a file is refused, one of the ways out that are offered opens it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.trials import Row
from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.tables.report import Problem

N = 60


@dataclass(frozen=True)
class Wild:
    """One file and what is right about it.

    Attributes:
        name: of the file.
        text: what is in it.
        uses: column -> what it is used for; those not named are not looked at.
        n: rows.
        cells: column -> its first cells, as texts.
        values: column -> its first features.
        classes: of the pool.
        findings: codes that have to be among those of the table.
        quiet: codes that must not be.
        says: words that have to stand in the findings.
        options: that settle what the table leaves open.
        encoding: of the text.
    """

    name: str
    text: str
    uses: Mapping[str, str]
    n: int = N
    cells: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    encoding: str = "utf-8"

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return self.text.encode(self.encoding)

    def faults(self) -> list[str]:
        """Faults of how the file is read, a line each."""
        try:
            return self._faults()
        except InputError as error:
            return [f"refused: {error}"]

    def _faults(self) -> list[str]:
        found = []
        guess = {"columns": "auto", **self.options}
        report = inspect_table(self.data, file_name=self.name, **guess)
        uses = {column.name: column.use.use for column in report.columns if column.use is not None}
        found += [
            f"{name} is {uses.get(name)}, not {use}"
            for name, use in self.uses.items()
            if uses.get(name) != use
        ]
        codes = [problem.code for problem in report.problems]
        found += [f"no finding {code} among {codes}" for code in self.findings if code not in codes]
        found += [f"a finding {code}" for code in self.quiet if code in codes]
        messages = " ".join(problem.message for problem in report.problems)
        found += [f"nothing says {words}" for words in self.says if words not in messages]
        if report.n_rows != self.n:
            found.append(f"{report.n_rows} rows, not {self.n}")
        reading = {k: v for k, v in self.options.items() if k in ("encoding", "quote", "header", "delimiter")}
        frame = read_rows(self.data, file_name=self.name, **reading) if self.cells else None
        for name, cells in self.cells.items():
            assert frame is not None
            there = list(frame[name].iloc[: len(cells)]) if name in frame else []
            found += [] if there == list(cells) else [f"{name} holds {there}, not {list(cells)}"]
        for problem in [one for one in report.problems if one.severity in ("choice", "guess")]:
            if not any(_opens(self, guess, fix.options) for fix in problem.fixes):
                found.append(f"no way out of {problem.code}: {problem.message}")
            found += [
                f"{problem.code} stays open under {fix.options}"
                for fix in problem.fixes
                if not _settles(self, guess, fix.options, problem)
            ]
        if self.classes and tuple(report.classes) != self.classes:
            found.append(f"classes {tuple(report.classes)}, not {self.classes}")
        pool = load_pool(self.data, file_name=self.name, **guess) if self.values else None
        for name, values in self.values.items():
            assert pool is not None
            columns = list(pool.feature_map.columns)
            there = pool.features[: len(values), columns.index(name)].tolist() if name in columns else []
            near = len(there) == len(values) and np.allclose(there, values, rtol=0, atol=1e-6)
            found += [] if near else [f"{name} is {there}, not {list(values)}"]
        lost = {name for name, use in uses.items() if use == "leave out"}
        lost -= {name for name in lost if any(repr(name) in problem.message for problem in report.problems)}
        return found + [f"{name} is lost without a word" for name in sorted(lost)]


def _opens(file: Wild, given: Mapping[str, Any], fix: Mapping[str, Any]) -> bool:
    try:
        load_pool(file.data, file_name=file.name, **{**given, **fix})
    except InputError:
        return False
    return True


def _settles(file: Wild, given: Mapping[str, Any], fix: Mapping[str, Any], problem: Problem) -> bool:
    report = inspect_table(file.data, file_name=file.name, **{**given, **fix})
    left = [(one.code, one.column) for one in report.problems if one.severity in ("choice", "guess")]
    return (problem.code, problem.column) not in left


def table(columns: Mapping[str, Sequence[str]], delimiter: str = ",", end: str = "\n", n: int = N) -> str:
    """A table whose columns repeat these cells."""
    rows = zip(*(islice(cycle(cells), n) for cells in columns.values()), strict=True)
    return end.join([delimiter.join(columns), *(delimiter.join(row) for row in rows), ""])


X, AB = ["1.5", "2.5", "4.25"], [*"abbaaba"]
FILMS = [f"{a} {b} {c}" for a in ("a good", "a bad", "no") for b in ("old", "new") for c in ("film", "book")]
SENTENCES = [f"{words} {where}" for words in FILMS for where in ("here", "there", "again")]
Q = '"'


def quotes() -> list[Wild]:
    """Quotes that belong to a text, and those that enclose one."""
    opened = [f"{Q * (i in (10, 40))}a film number {i} that is so" for i in range(N)]
    labels = [str(i % 2) for i in range(N)]
    odd = [text.replace('"a film number 40', "a film number 40") for text in opened]
    said = [f'"he said \\"no, {i}\\" again and again"' for i in range(N)]
    letters = [f'"Dear all of you,\nthe parcel, number {i},\nhas come."' for i in range(N)]
    uses = {"sentence": "text", "label": "class"}
    texts = {"text": "text"}
    return [
        Wild("sst.tsv", table({"sentence": opened, "label": labels}, "\t"), uses, findings=("quotes",)),
        Wild("odd.tsv", table({"sentence": odd, "label": labels}, "\t"), uses, findings=("quotes",)),
        Wild("quora.csv", table({"label": labels, "sentence": opened}), uses, findings=("quotes",)),
        Wild(
            "mysql.csv",
            table({"text": said, "label": AB}),
            texts,
            cells={"text": [said[0][1:-1].replace("\\", "")]},
        ),
        Wild("letters.csv", table({"text": letters, "label": AB}), texts, cells={"text": [letters[0][1:-1]]}),
    ]


def encodings() -> list[Wild]:
    """Texts in other encodings than UTF-8."""
    german = ("Die Lieferung ist größer als erwartet", "Schöne Grüße aus Köln an alle")
    french = ("La commande n'est pas arrivée, où est-elle", "C'est très bien, merci à vous")
    swedish = ("Beställningen är för stor för mig", "Jag är på väg hem till er")
    files = []
    for encoding, pair in (
        ("cp1250", ("Zamówienie jeszcze nie dotarło, proszę o zwrot", "Hasło do konta nie działa wcale")),
        (
            "cp1250",
            ("A rendelés még nem érkezett meg, kérem", "Köszönöm a gyors segítséget, őszintén szűkös"),
        ),
        ("cp1254", ("Sipariş henüz gelmedi, paramın iadesini istiyorum", "Hesap şifresi çalışmıyor")),
        ("cp1251", ("Отличный товар, спасибо большое", "Пришло с царапиной и без коробки")),
        ("cp1253", ("Η παραγγελία δεν έχει φτάσει ακόμα", "Ο κωδικός δεν λειτουργεί από χθες")),
        *((encoding, french) for encoding in ("cp1252", "mac_roman")),
        *((encoding, german) for encoding in ("cp1252", "cp850", "utf-8-sig")),
        *((encoding, swedish) for encoding in ("cp1252", "utf-16", "utf-16-le", "utf-16-be")),
    ):
        cells = [f"{pair[i % 2]} {i}" for i in range(N)]
        text = table({"text": [f'"{cell}"' for cell in cells], "label": AB})
        uses = {"text": "text", "label": "class"}
        files.append(
            Wild(f"{pair[0][:8]}-{encoding}.csv", text, uses, cells={"text": cells[:2]}, encoding=encoding)
        )
    return files


def classes() -> list[Wild]:
    """Classes that look like nothing, that have another name, and that are none."""
    of_label, of_y, looks_empty = {"label": "class"}, {"y": "class"}, ("empty class",)
    r = {'"x"': X, '"y"': ["NA", '"a"', '"b"']}
    namibia = {'"x"': X, '"y"': ["NA", '"NA"', '"a"', '"b"']}
    na = table({"x": X, "label": ["NA", "a", "-", "b"]})
    plane = {"x": X, "y": ["0.5", "1.25"], "kind": AB}
    intents = {
        "text": [f"{text} {i}" for i in range(20) for text in SENTENCES],
        "label": [f"i{i}" for i in range(150)],
    }
    titanic = {
        "PassengerId": [str(i) for i in range(N)],
        "Survived": ["0", "1", "1"],
        "Age": X,
        "Embarked": ["S", "C", "Q"],
    }
    churn = {"Churn": ["Yes", "No", "No"], "tenure": X, "charges": ["7.25", "71.5", "8.05", "53.1"]}
    adult = {"age": ["39", "50"], " class": [" <=50K", " >50K", " >50K"]}
    return [
        Wild("r.csv", table(r), of_y, classes=("a", "b"), quiet=looks_empty),
        Wild("namibia.csv", table(namibia), of_y, classes=("NA", "a", "b"), findings=looks_empty),
        Wild("na.csv", na, of_label, classes=("-", "NA", "a", "b"), findings=looks_empty),
        Wild(
            "na2.csv",
            na,
            of_label,
            classes=("a", "b"),
            quiet=looks_empty,
            options={"unlabelled": ["NA", "-"]},
        ),
        Wild(
            "species.csv",
            table({"x": X, "species": ["setosa", "other"]}),
            {"species": "category"},
            findings=("class?",),
        ),
        Wild(
            "titanic.csv",
            table(titanic),
            {"Survived": "number", "Embarked": "category"},
            findings=("class?",),
            says=("'Survived' ('0', '1') or 'Embarked'",),
        ),
        Wild("churn.csv", table(churn), {"Churn": "category"}, findings=("class?",), says=("Is 'Churn'",)),
        *(
            Wild(
                f"{name}.csv",
                table({"x": X, name: AB, "z": X[::-1]}),
                {name: "category"},
                says=(f"Is '{name}'",),
            )
            for name in (
                "isFraud",
                "LoanStatus",
                "label_text",
                "species_name",
                "class_name",
                "Is fraud?",
                "label.responses",
            )
        ),
        Wild("plane.csv", table(plane), {"x": "number", "y": "number"}, findings=("class?",)),
        Wild("xy.csv", table({"x": X, "y": AB}), of_y, classes=("a", "b")),
        Wild("intents.csv", table(intents, n=600), {"text": "text", **of_label}, n=600),
        Wild(
            "intents120.csv",
            table({"text": intents["text"], "category": [f"intent_{i}" for i in range(77)]}, n=120),
            {"text": "text", "category": "shown"},
            n=120,
            findings=("left out",),
        ),
        Wild("plus.csv", table({"x": X, "label": ["+", "-"]}), of_label, findings=looks_empty),
        Wild("snli.csv", table({"x": X, "label": ["0", "1", "2", "-1"]}), of_label, findings=looks_empty),
        Wild("signs.csv", table({"x": X, "label": ["1", "-1"]}), of_label, quiet=looks_empty),
        Wild(
            "quality.csv",
            table({"x": X, "quality": ["3", "4", "5"]}),
            {"quality": "number"},
            findings=("class?",),
        ),
        Wild(
            "boxes.csv",
            table({"x": X, "bus": ["x", ""], "bike": ["1", ""], "label": AB}),
            {"bus": "leave out", "bike": "number"},
            findings=("boxes", "missing"),
        ),
        Wild(
            "adult.csv",
            table(adult),
            {"class": "class"},
            classes=("<=50K", ">50K"),
            findings=("class names",),
        ),
    ]


def texts() -> list[Wild]:
    """Texts without a space, and those that come several times each."""
    joined = [
        a + b for a in ("red", "blue", "old", "new", "cheap") for b in ("shoes", "phone", "lamp", "bike")
    ]
    thai = [a + b for a in ("สีแดง", "ใหม่", "เก่า", "ถูก") for b in ("รองเท้า", "โทรศัพท์", "เสื้อ", "กล้อง", "โคมไฟ")]
    chinese = [
        a + b for a in ("红色", "蓝色", "绿色", "便宜") for b in ("鞋子", "手机", "台灯", "桌子", "单车")
    ]
    emoji = [a + b + c for a in "😀😡😢" for b in "👍👎🔥" for c in "🙏😂😱"]
    files = []
    for name, words in (
        *(("word", joined), ("hashtag", [f"#{word}" for word in joined]), ("thai", thai), ("emoji", emoji)),
        *(("chinese", chinese), ("domain", [f"{word}.com" for word in joined])),
    ):
        for column, beside in (("text", {}), ("query", {"label": AB}), ("v", {}), ("v", {"label": AB})):
            text = table({column: words, **beside}, n=len(words))
            files.append(Wild(f"{name}-{column}{len(beside)}.csv", text, {column: "text"}, n=len(words)))
    thrice = [text for text in SENTENCES for _ in range(3)]
    turk = {
        "HITId": [f"H{i // 3}" for i in range(N)],
        "Input.text": thrice,
        "Answer.sentiment": ["pos", "neg"],
    }
    cells = [
        f'"[{{""task"":""T0"",""value"":""{animal}{i}""}}]"' for i in range(N) for animal in ("Cat", "Dog")
    ]
    return [
        *files,
        Wild("turk.csv", table(turk), {"Input.text": "text"}),
        Wild(
            "empty.csv",
            table({"id": [str(i) for i in range(N)], "text": ["", *SENTENCES, "   "]}),
            {"text": "text"},
        ),
        Wild("zooniverse.csv", table({"annotations": cells, "x": X}), {"x": "number"}),
    ]


def dates() -> list[Wild]:
    """Dates that two formats read, and some of which a few cells decide."""
    tie = [f"{i % 12 + 1:02d}/{i % 9 + 1:02d}/2023" for i in range(N)]
    decided = {"when": [*tie[:-1], "01/25/2023"], "x": X, "label": AB}
    births = [f"01.05.{i % 40 + 40}" for i in range(N)]
    compact = [f"2024{i % 12 + 1:02d}{i % 28 + 1:02d}" for i in range(N)]
    return [
        Wild(
            "births.csv", table({"born": births, "x": X, "label": AB}), {"born": "date"}, findings=("years",)
        ),
        Wild(
            "compact.csv",
            table({"day": compact, "x": X, "label": AB}),
            {"day": "number"},
            findings=("date?",),
        ),
        Wild("tie.csv", table({"when": tie, "x": X, "label": AB}), {"when": "date"}, findings=("date",)),
        Wild("american.csv", table(decided), {"when": "date"}, quiet=("date",), values={"when": [19_358]}),
    ]


def heads() -> list[Wild]:
    """Titles above the names, and lines that explain them below."""
    columns = {"age": ["39", "50", "28"], "score": X, "label": AB}
    uses, plain = {"age": "number", "score": "number", "label": "class"}, table(columns)
    units = plain.replace("label\n", "label\nyears,points,\n", 1)
    survey = table({"Q1": ["5", "3", "4"], "Q2": FILMS, "Q3": AB})
    questions = 'How old?,"What, in your words?",Which?\n'
    imports = questions + ",".join(f'"{{""ImportId"":""QID{i}""}}"' for i in range(3)) + "\n"
    numbered = {"": [str(i) for i in range(N)], **columns}
    rows = table(columns, ";").splitlines()
    monkey = {"Respondent ID": [str(10_000 + i) for i in range(N)], "How?": ["Very", "Not"], "": FILMS}
    monkeys = table(monkey).replace("\n", "\n,Response,Other (please specify)\n", 1)
    tweets = [str(1234567890123456789 + 3 * i) for i in range(N)]
    both = {
        "customer_id": [str(9_000 + 3 * i) for i in range(N)],
        "id": [str(i) for i in range(N)],
        **columns,
    }
    marks, commas = table(columns, ";"), "text\n" + "".join(f"yes, number {i}\n" for i in range(N))
    return [
        Wild("title.csv", "Sales of 2024\n" + plain, uses, findings=("title",), cells={"age": ["39", "50"]}),
        Wild(
            "titles.csv", "Sales,,\nof 2024,,\n\n" + plain, uses, findings=("title",), cells={"age": ["39"]}
        ),
        Wild(
            "report.csv",
            "Sales;;\nAs of: 2024;;\n;;\n" + table(columns, ";"),
            uses,
            findings=("title",),
            cells={"age": ["39"]},
        ),
        Wild("dated.csv", "Sales;;\nDate:;2024;\n" + table(columns, ";"), uses, cells={"age": ["39"]}),
        Wild("r.tsv", table(numbered, "\t").removeprefix("\t"), {"column_1": "id", **uses}),
        Wild(
            "ends.csv",
            "\n".join([rows[0], *(f"{row};" for row in rows[1:]), ""]),
            uses,
            cells={"age": ["39"]},
        ),
        Wild("blank.csv", plain.replace("\n50,", "\n,,\n,,\n50,"), uses, cells={"age": ["39", "50"]}),
        Wild("monkey.csv", monkeys, {"Respondent ID": "id"}, findings=("explaining",)),
        Wild("alone.csv", "\n".join(f"{text} is so" for text in FILMS), {}, n=11, findings=("header",)),
        Wild("tweets.csv", table({"tweet": tweets, **columns}), {"tweet": "id"}, findings=("left out",)),
        Wild("ids.csv", table(both), {"id": "id", "customer_id": "leave out"}, findings=("left out",)),
        Wild("spaced.csv", plain.replace("age,score,", " age, score ,"), uses),
        Wild("spaces.txt", table(columns, " "), {"text": "text"}, n=N + 1, findings=("lines",)),
        Wild("sep.csv", "sep=;\n" + marks, uses, quiet=("title", "ragged"), cells={"age": ["39", "50"]}),
        Wild("units.csv", units, uses, findings=("explaining",), cells={"age": ["39", "50"]}),
        Wild("kept.csv", units, {"label": "class"}, n=N + 1, options={"header": True}, quiet=("explaining",)),
        Wild(
            "qualtrics.csv",
            survey.replace("Q3\n", "Q3\n" + imports, 1),
            {"Q1": "number", "Q2": "category"},
            findings=("explaining", "class?"),
        ),
        Wild("plain.csv", plain, uses, quiet=("title", "explaining", "header")),
        Wild("commas.csv", commas, {}, n=0, findings=("ragged",)),
        Wild(
            "whole.csv",
            commas,
            {"text": "text"},
            options={"delimiter": "none"},
            cells={"text": ["yes, number 0"]},
        ),
    ]


def objects() -> list[Wild]:
    """JSON as labelling tools write it."""
    doccano = [{"id": i, "text": SENTENCES[i % 36], "label": [["pos"], ["neg"], []][i % 3]} for i in range(N)]
    answers = ("accept", "reject", "ignore", "accept")
    prodigy = [
        {"text": text, "_input_hash": i, "_task_hash": i, "label": "pn"[i % 3 > 0], "answer": answers[i % 4]}
        for i, text in enumerate(islice(cycle(SENTENCES), N))
    ]
    choices = [
        {**{key: value for key, value in row.items() if key != "label"}, "accept": ["pn"[i % 2]]}
        for i, row in enumerate(prodigy)
    ]
    amazon = [{"reviewText": SENTENCES[i % 36], "overall": 1.0 + i % 5} for i in range(N)]
    uses = {"text": "text", "label": "class"}
    return [
        Wild("doccano.jsonl", _lines(doccano), uses, classes=("neg", "pos")),
        Wild("prodigy.jsonl", _lines(prodigy), uses, classes=("n", "p")),
        Wild("choices.jsonl", _lines(choices), uses, classes=("n", "p")),
        Wild("amazon.json", _lines(amazon), {"reviewText": "text", "overall": "number"}),
    ]


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def votes() -> list[Wild]:
    """Tables with a row for each answer of a person, and one that only looks like it."""
    texts, items = [text for text in SENTENCES for _ in range(3)], [f"T{i // 3}" for i in range(N)]
    persons = [f"W{(i + i // 7) % 3 + 3 * (i % 3)}" for i in range(N)]
    turk = {
        "HITId": items,
        "HITTypeId": ["K1"],
        "AssignmentId": [f"A{i}" for i in range(N)],
        "WorkerId": persons,
        "WorkTimeInSeconds": [str(7 + i * i % 23) for i in range(N)],
        "Input.text": texts,
        "Answer.sentiment.label": [*"pnpppnn"],
    }
    toloka = {
        "INPUT:id": items,
        "INPUT:text": texts,
        "OUTPUT:result": ["cat", "dog", "cat"],
        "ASSIGNMENT:assignment_id": [f"A{i // 9}" for i in range(N)],
        "ASSIGNMENT:worker_id": persons,
    }
    crowd = {"task": items, "worker": persons, "label": AB, "length": [f"{i // 3 % 7}.5" for i in range(N)]}
    german = {
        "Aufgaben-Nr": items,
        "Bearbeiter": persons,
        "Antwort": AB,
        "Länge": [f"{i // 3 % 7}.5" for i in range(N)],
    }
    shop = {"user_id": [f"u{i // 4}" for i in range(N)], "session_id": [f"s{i // 2}" for i in range(N)]}
    asked = {"findings": ("votes",)}
    return [
        Wild("turk-votes.csv", table({k: [f'"{c}"' for c in v] for k, v in turk.items()}), {}, **asked),
        Wild("toloka.tsv", table(toloka, "\t"), {"INPUT:text": "text"}, **asked),
        Wild("crowd.csv", table(crowd), {}, **asked),
        Wild("aufgaben.csv", table(german), {}, **asked),
        Wild(
            "annotator.csv",
            table({k.replace("Bewerter", "Annotator/in"): v for k, v in german.items()}),
            {},
            **asked,
        ),
        Wild("shop.csv", table({**shop, "x": X, "category": AB}), {"category": "class"}, quiet=("votes",)),
    ]


PARTS: tuple[Callable[[], list[Wild]], ...] = (
    *(quotes, encodings, classes, texts, dates, heads, objects, votes),
)


def files() -> list[Wild]:
    """All files."""
    return [file for part in PARTS for file in part()]


def run(count: int = 1_000, seed: int = 0) -> Row:
    """Every file, `count` of them at most."""
    some = files()[:count]
    wrong = [f"{file.name}: {fault}" for file in some for fault in file.faults()]
    return Row.of("files as other programs write them", len(some), wrong)
