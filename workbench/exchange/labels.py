"""The labelled set in the formats other programs read."""

from __future__ import annotations

import io
import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from workbench.csv_writing import FORMULA, csv_lines
from workbench.errors import InputError
from workbench.exchange.answers import TAGS
from workbench.exchange.archives import (
    CARD,
    SHOWN_BY,
    FileNames,
    data_url,
    not_taken,
    octets_of,
    packed,
    picture_of,
    plain_name,
    put,
    put_parquet,
)
from workbench.exchange.instructions import instruction_files
from workbench.exchange.manifests import json_text
from workbench.exchange.questions import PREDICTED, QUESTIONS, AnswerRows
from workbench.exchange.rows import (
    CARRIED_BY,
    CHUNK,
    HISTORY,
    HISTORY_COLUMNS,
    NUMBERS,
    SCOPES,
    WHOLE,
    LabelRows,
    StoredLabels,
    flat,
    history_rows,
    label_table,
)
from workbench.pools.formats.npy_files import arrays_to_bytes
from workbench.pools.images.photos import PhotoItems
from workbench.pools.instructions import FILE as INSTRUCTIONS
from workbench.pools.tables.uses import COLUMNS
from workbench.reading import valid_text

if TYPE_CHECKING:
    import pyarrow

    from workbench.sessions.session import Session

# Format -> the ending of its file.
FORMATS = {
    "csv": ".csv",
    "csv-bom": ".csv",
    "xlsx": ".xlsx",
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "npz": ".npz",
    "label-studio": ".zip",
    "huggingface": ".zip",
    "folders": ".zip",
    "coco": ".json",
}
NEED_POOL = ("npz", "coco", "folders")
TYPED = ("xlsx", "parquet", "jsonl", "huggingface")
"""Formats that know numbers from texts."""
OF_IMAGES = ("coco", "folders")
"""Formats that only pools of images have."""
OF_FINISHED = ("status", "source", "confidence", "certificate")
"""Columns that say whose a label of a finished set is."""
EMBEDDED = 100 << 20
"""Most bytes of pictures that go into Label Studio's tasks themselves; others lie beside them."""
TASKS = "tasks.json"
_SHEET_ROWS, _SHEET_COLUMNS, _CELL = 1_048_576, 16_384, 32_767  # of Excel
_WHOLE = 10**15  # whole numbers from here on lose digits in Excel
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_READ_AS_SIGN = re.compile("_(?=x[0-9A-Fa-f]{4}_)")  # in a workbook: "tile_x0064_y0128"
_UNLABELLED = "unlabelled"

__all__ = ["COLUMNS", "FORMATS", "SCOPES", "StoredLabels", "export_labels", "label_table", "write_labels"]


def export_labels(session: Session | StoredLabels, format: str = "csv", what: str = "labels") -> bytes:
    """The labelled set as a file.

    Args:
        session: of the project; or `StoredLabels` where its pool is not at hand.
        format: a key of `FORMATS`. CSV quotes cells that a spreadsheet would run; Excel reads its
            umlauts with a byte-order mark (csv-bom). npz holds features [n, D], codes, classes and ids;
            label-studio is a zip of tasks with their labelling configuration and pictures;
            huggingface a zip of a folder that `datasets` loads; folders a zip of class folders.
        what: a key of `SCOPES`.

    Returns:
        The file's bytes.

    Raises:
        InputError: an unknown format, or one that cannot hold this pool.
    """
    out = io.BytesIO()
    write_labels(out, session, format, what)
    return out.getvalue()


def write_labels(
    out: IO[bytes], session: Session | StoredLabels, format: str = "csv", what: str = "labels"
) -> int:
    """Write the labelled set, a few thousand rows at a time; the arguments are those of `export_labels`.

    Args:
        out: an open file.
        session: of the project.
        format: a key of `FORMATS`.
        what: a key of `SCOPES`.

    Returns:
        How many rows.

    Raises:
        InputError: as `export_labels`.
    """
    if format not in FORMATS:
        raise InputError(f"There is no format {format!r}. Known: {', '.join(FORMATS)}.")
    if session.pool is None and format in NEED_POOL:
        without = ", ".join(name for name in FORMATS if name not in NEED_POOL)
        raise InputError(f"{format} holds the items themselves, and the pool is not at hand. Use {without}.")
    if session.pool is not None and format in OF_IMAGES and session.pool.kind != "image":
        title = "COCO is" if format == "coco" else "Class folders are"
        raise InputError(
            f"{title} for images, and pool {session.pool.name!r} is a {session.pool.kind}. Use csv or jsonl."
        )
    writers: dict[str, Callable[[IO[bytes], Any], None]] = {
        "csv": _write_csv,
        "xlsx": _write_xlsx,
        "parquet": _write_parquet,
        "jsonl": _write_jsonl,
        "npz": _write_npz,
        "label-studio": _write_label_studio,
        "huggingface": _write_huggingface,
        "folders": _write_folders,
        "coco": _write_coco,
    }
    rows: Any
    with session.log.snapshot():  # all of it is of one moment
        if what in (QUESTIONS, PREDICTED):
            if isinstance(session, StoredLabels):
                raise InputError("All questions are exported with the pool, and the pool is not at hand.")
            rows = AnswerRows(session, format, what == PREDICTED)
        elif what == HISTORY:
            rows = _History(session, format)
        else:
            rows = LabelRows(session, what, typed=format in TYPED)
        if format == "csv-bom":
            out.write(BOM_UTF8)
        writers[format.removesuffix("-bom")](out, rows)
    return len(rows.items)


class _History:
    """The rows of a history, which the writers of tables take as they take labels."""

    columns, numbers = HISTORY_COLUMNS, frozenset[int]()

    def __init__(self, session: Session | StoredLabels, format: str) -> None:
        if format not in CARRIED_BY:
            raise InputError(
                f"{format} holds labels and no history; use {', '.join(CARRIED_BY)}, or the bundle."
            )
        ids = session.ids if isinstance(session, StoredLabels) else session.pool.items.ids
        self._rows = history_rows(session.log.events, ids, session.state.class_names)
        self.items = range(0)  # as many as were written

    def chunks(self) -> Iterator[list[dict[str, Any]]]:
        while chunk := list(islice(self._rows, CHUNK)):
            self.items = range(len(self.items) + len(chunk))
            yield chunk


# --- tables ---------------------------------------------------------------------------------------


def _write_csv(out: IO[bytes], rows: Any) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    text.writelines(csv_lines([rows.columns]))
    for chunk in rows.chunks():
        cells = ([row.get(name) for name in rows.columns] for row in map(flat, chunk))
        text.writelines(csv_lines(cells, rows.numbers))
    text.detach()


def _write_xlsx(out: IO[bytes], rows: LabelRows | AnswerRows) -> None:
    """One sheet of Excel: numbers are numbers, and every text is one, however it begins."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    if len(rows.items) >= _SHEET_ROWS:
        raise InputError(
            f"A sheet of Excel has {_SHEET_ROWS:,} rows, and {len(rows.items):,} are too many. Use csv."
        )
    if len(rows.columns) > _SHEET_COLUMNS:
        raise InputError(
            f"A sheet of Excel has {_SHEET_COLUMNS:,} columns, not {len(rows.columns):,}. Use csv."
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        if isinstance(value, int) and abs(value) >= _WHOLE:
            value = str(value)
        if isinstance(value, int | float) and math.isfinite(value):
            return value
        if value is None or isinstance(value, float):
            return None if value is None or math.isnan(value) else str(value)
        text = _NOT_IN_XML.sub("\ufffd", _READ_AS_SIGN.sub("_x005F_", str(value)))
        text = text.replace("\r", "_x000D_")  # as Excel writes it
        units = len(text.encode("utf-16-le")) // 2  # by which Excel counts
        if units > _CELL:
            raise InputError(
                f"A cell of Excel holds {_CELL:,} characters, and one text has {units:,}. Use csv."
            )
        excel_cell = WriteOnlyCell(sheet, text)
        excel_cell.data_type = "s"  # not a formula
        excel_cell.quotePrefix = text.startswith(FORMULA)  # nor one when somebody edits it
        return excel_cell

    try:
        sheet.append([cell(name) for name in rows.columns])
        for chunk in rows.chunks():
            for row in chunk:
                plain = flat(row)
                sheet.append([cell(plain.get(name)) for name in rows.columns])
    except InputError:
        sheet.close()
        raise
    book.save(out)


def _write_jsonl(out: IO[bytes], rows: Any) -> None:
    for chunk in rows.chunks():
        records = ({name: row[name] for name in rows.columns} for row in chunk)
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in records)
        out.write("".join(f"{line}\n" for line in lines).encode("utf-8"))


def _schema(rows: LabelRows | AnswerRows, more: Mapping[str, Any] | None = None) -> pyarrow.Schema:
    """Types of the columns: of the items' own as their first rows are, texts where these are mixed."""
    import pyarrow as pa

    step = max(1, len(rows.items) // 2_000)
    sample = [rows.row(item) for item in rows.items[::step]]
    kinds: dict[str, Any] = {}
    for name in rows.columns:
        if name in WHOLE:
            kinds[name] = pa.int64()
        elif name in NUMBERS:
            kinds[name] = pa.float64()
        elif name in COLUMNS or name == "id":
            kinds[name] = pa.string()
        else:
            met = {type(row[name]) for row in sample if row[name] is not None}
            only = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
            kinds[name] = only.get(next(iter(met)), pa.string()) if len(met) == 1 else pa.string()
            if met == {int, float}:
                kinds[name] = pa.float64()
    return pa.schema([(name, kind) for name, kind in {**kinds, **(more or {})}.items()])


def _arrow(chunk: Sequence[Mapping[str, Any]], schema: pyarrow.Schema) -> pyarrow.Table:
    import pyarrow as pa

    columns = []
    for entry in schema:
        values = [row.get(entry.name) for row in chunk]
        if pa.types.is_string(entry.type):
            values = [None if value is None else str(value) for value in values]
        columns.append(pa.array(values, type=entry.type))
    return pa.table(columns, schema=schema)


def _write_parquet(out: IO[bytes], rows: LabelRows | AnswerRows | _History) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [(name, pa.int64() if name == "event" else pa.string()) for name in HISTORY_COLUMNS]
    schema = pa.schema(kinds) if isinstance(rows, _History) else _schema(rows)
    with pq.ParquetWriter(out, schema) as writer:
        for chunk in chain(rows.chunks(), [[]]):
            writer.write_table(_arrow([flat(row) for row in chunk], schema))


def _write_npz(out: IO[bytes], rows: LabelRows) -> None:
    state, pool = rows.state, rows.pool
    items = np.asarray(rows.items, dtype=np.int64)
    code_of = {name: code for code, name in enumerate(state.classes)}
    records = [rows.row(item) for item in rows.items] if rows.finished else []
    labels = [row["label"] for row in records] or [state.decided.get(item) for item in rows.items]
    whose = {
        name: np.asarray([row[name] for row in records], dtype=float if name in NUMBERS else np.str_)
        for name in (OF_FINISHED if records else ())
    }
    out.write(
        arrays_to_bytes(
            whose
            | {
                "X": np.asarray(pool.features[items]),
                "y": np.asarray([-1 if name is None else code_of[name] for name in labels], dtype=np.int64),
                "classes": np.asarray(state.classes, dtype=np.str_),
                "item": items,
                "id": np.asarray([valid_text(str(pool.items.ids[i])) for i in rows.items], dtype=np.str_),
                "evaluation": np.asarray([i in state.evaluation for i in rows.items], dtype=bool),
            }
        )
    )


def class_folders(names: Sequence[str]) -> dict[str, str]:
    """Class -> the name of its folder, which any file system takes and no other class has."""
    folders = {_UNLABELLED}
    return {name: not_taken(plain_name(name), "", n, folders) for n, name in enumerate(names)}


def _write_folders(out: IO[bytes], rows: LabelRows) -> None:
    pool = rows.pool
    folders = class_folders(rows.state.classes)
    with packed(out) as archive:
        names = FileNames(pool)
        whose = []
        for item in rows.items:
            row = rows.row(item)
            label = row["label"]
            folder = _UNLABELLED if label is None else folders[label]
            data, ending = picture_of(pool, item)
            path = f"{folder}/{names.of(item, ending)}"
            put(archive, path, data, squeeze=False)
            about = {name: row[name] for name in ("id", "label", *OF_FINISHED[1:])}
            whose.append(json.dumps({"file": path, **about}, ensure_ascii=False))
        if rows.finished:
            put(archive, "sources.jsonl", "".join(f"{line}\n" for line in whose))
        if any(name != folder for name, folder in folders.items()):
            table = "".join(
                f"{json.dumps([folder, name], ensure_ascii=False)}\n" for name, folder in folders.items()
            )
            put(archive, "classes.jsonl", table)


# --- Label Studio ---------------------------------------------------------------------------------


def labelling_config(kind: str, classes: Mapping[str, Sequence[str]], switches: Sequence[str] = ()) -> str:
    """Labelling interface of Label Studio.

    Args:
        kind: of the pool.
        classes: names of the classes of each question; an only question wants an answer.
        switches: names of the yes / no questions, which are one choice of several.
    """
    single = 'choice="single"' + (' required="true"' if len(classes) == 1 and not switches else "")
    parts = [(name, names, single) for name, names in classes.items()]
    lines = [f"  {SHOWN_BY[kind]}"]
    for name, names, how in [*parts, *([(TAGS, switches, 'choice="multiple"')] if switches else [])]:
        plain = [_NOT_IN_XML.sub("\ufffd", choice) for choice in names]
        lines.append(f'  <Choices name={quoteattr(name)} toName="item" {how}>')
        lines += [*(f"    <Choice value={quoteattr(choice)}/>" for choice in plain), "  </Choices>"]
    return "\n".join(["<View>", *lines, "</View>\n"])


_HOW = """\
Label Studio: make a project, paste config.xml under Settings > Labeling interface > Code, then import
tasks.json under Import.{more}
What comes back (Export > JSON) is read by `workbench import PROJECT FILE --format label-studio`.
"""
_BESIDE = """ The pictures lie in the folder images: start Label Studio with
LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=(this folder), and
add a source storage of local files on the folder images."""

_TOLD = " instructions.md says what people are told: it belongs under Settings > Instructions."


def _write_label_studio(out: IO[bytes], rows: LabelRows | AnswerRows) -> None:
    pool = rows.pool
    kind = "table" if pool is None else pool.kind
    pictures = kind == "image"
    with packed(out) as archive:
        names = FileNames(pool)
        embedded = not pictures or sum(octets_of(pool, item) for item in rows.items) <= EMBEDDED
        classes = {name: names for name, names in rows.classes.items() if name not in rows.switches}
        put(archive, "config.xml", labelling_config(kind, classes, rows.switches))
        instructions = instruction_files(rows.state)
        more = ("" if embedded else _BESIDE) + (_TOLD if instructions else "")
        put(archive, "README.txt", _HOW.format(more=more))
        for path, content in instructions.items():
            put(archive, path, content)
        with TemporaryFile() as tasks:
            tasks.write(b"[")
            for number, row in enumerate(rows):
                picture = ""
                if pictures:
                    data, ending = picture_of(pool, row["item"])
                    name = names.of(row["item"], ending)
                    picture = f"/data/local-files/?d=images/{name}"
                    if embedded:
                        picture = data_url(data, ending)
                    else:
                        put(archive, f"images/{name}", data, squeeze=False)
                tasks.write(b",\n" if number else b"\n")
                tasks.write(json.dumps(_task(row, rows, picture, kind), ensure_ascii=False).encode())
            tasks.write(b"\n]\n")
            put(archive, TASKS, tasks)


def _task(row: Mapping[str, Any], rows: LabelRows | AnswerRows, picture: str, kind: str) -> dict[str, Any]:
    """A task; who and when travel in its data, for Label Studio refuses annotators it does not know."""
    about = {name: value for name, value in row.items() if name not in rows.of_labels}
    if kind == "table":
        about["row"] = {name: row[name] for name in rows.own} or {"id": row["id"]}
    if picture:
        about["image"] = picture
    if rows.switches:
        # a choice that is not made may be a no or nothing at all: which, only this says
        about["answered"] = [name for name in rows.switches if row[name] is not None]
    task: dict[str, Any] = {"id": row["item"] + 1, "data": about}
    result = [
        {"from_name": name, "to_name": "item", "type": "choices", "value": {"choices": picked}}
        for name, picked in rows.choices(row).items()
    ]
    if isinstance(rows, AnswerRows):
        return task | ({"annotations": [{"result": result}]} if result or about.get("answered") else {})
    if not result:
        return task
    if row["status"] in ("predicted", "certified"):
        version = f"certificate {row['certificate']}" if row["certificate"] else row["model"]
        prediction = {"model_version": version, "score": row["confidence"], "result": result}
        return task | {"predictions": [prediction]}
    return task | {"annotations": [{"created_at": row["time"], "result": result}]}


# --- Hugging Face ---------------------------------------------------------------------------------

_ABOUT = """\
# {name}

{n:,} items of {title}, labelled with Workbench: `datasets.load_dataset("path of this folder")`.
"""


def _write_huggingface(out: IO[bytes], rows: LabelRows | AnswerRows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pool = rows.pool
    pictures = pool is not None and pool.kind == "image"
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    kinds = dict.fromkeys(rows.classes, pa.int64()) | ({TAGS: pa.list_(pa.int64())} if rows.switches else {})
    schema = _schema(rows, {**kinds, **({"image": image} if pictures else {})})
    values = {"int64": "int64", "double": "float64", "string": "string", "bool": "bool"}
    features: dict[str, Any] = {
        entry.name: {"dtype": values.get(str(entry.type), "string"), "_type": "Value"} for entry in schema
    }
    features |= {name: {"names": list(names), "_type": "ClassLabel"} for name, names in rows.classes.items()}
    if rows.switches:
        feature = {"names": list(rows.switches), "_type": "ClassLabel"}
        features[TAGS] = {"feature": feature, "_type": "Sequence"}
    if pictures:
        features["image"] = {"_type": "Image"}
    # `datasets` reads the features of a Parquet file from this key of its schema
    described = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    schema = schema.with_metadata(described)
    codes = {
        column: {None: None} | {name: code for code, name in enumerate(names)}
        for column, names in rows.classes.items()
    }
    names = FileNames(pool)

    def complete(row: dict[str, Any]) -> dict[str, Any]:
        coded = {**flat(row), **{column: code_of[row[column]] for column, code_of in codes.items()}}
        if coded.get(TAGS) is not None and rows.switches:
            coded[TAGS] = [rows.switches.index(name) for name in coded[TAGS]]
        if pictures:
            data, ending = picture_of(pool, row["item"])
            coded["image"] = {"bytes": data, "path": names.of(row["item"], ending)}
        return coded

    with packed(out) as archive, TemporaryFile() as parquet:
        with pq.ParquetWriter(parquet, schema) as writer:
            for chunk in rows.chunks(200 if pictures else 5_000):
                writer.write_table(_arrow([complete(row) for row in chunk], schema))
            if not rows.items:
                writer.write_table(_arrow([], schema))
        path = put_parquet(archive, parquet)
        name = "labels" if pool is None else pool.name
        title = name if pool is None else (pool.title or name)
        instructions = instruction_files(rows.state)
        card = CARD.format(path=path) + _ABOUT.format(name=name, n=len(rows.items), title=title)
        if instructions:
            card += f"\n## Instructions\n\n{instructions[INSTRUCTIONS].decode()}"
        put(archive, "README.md", card)
        for path_of, content in instructions.items():
            put(archive, path_of, content)


# --- COCO -----------------------------------------------------------------------------------------


def _picture_size(pool: Any, item: int) -> tuple[int, int]:
    """Width and height of an image, of a photo from the head of its file."""
    if isinstance(pool.items, PhotoItems):
        return pool.items.photos.size(item)
    image = pool.items.show(item).image
    assert image is not None
    return image.shape[1], image.shape[0]


def _write_coco(out: IO[bytes], rows: LabelRows) -> None:
    pool, state = rows.pool, rows.state
    images, annotations = [], []
    for number, row in enumerate(rows, start=1):
        width, height = _picture_size(pool, row["item"])
        images.append({"id": row["item"], "file_name": row["id"], "height": height, "width": width})
        if row["label"] is not None and row["status"] != "predicted":
            # of the whole image; COCO's own tool looks for area and crowd in every annotation
            about = {"image_id": row["item"], "category_id": state.classes.index(row["label"]) + 1}
            whose = {"attributes": {name: row[name] for name in OF_FINISHED}} if rows.finished else {}
            annotations.append({"id": number, **about, "area": width * height, "iscrowd": 0, **whose})
    categories = [{"id": code + 1, "name": name} for code, name in enumerate(state.classes)]
    about = {"description": f"{pool.title or pool.name}: classes of whole images"}
    document = {"info": about, "images": images, "annotations": annotations, "categories": categories}
    out.write(json_text(document).encode("utf-8"))
