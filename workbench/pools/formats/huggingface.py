"""Folders of Hugging Face datasets, and zips of them: Parquet or Arrow files, or images with metadata."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from workbench.errors import InputError
from workbench.members import Members
from workbench.pools.formats import Reader, csv, json
from workbench.pools.formats.arrow import read_parquet, read_parts, read_streams
from workbench.pools.formats.files import IMAGE_ENDINGS, METADATA, File, by_split, check_cells, check_size
from workbench.pools.images.photos import MAX_PHOTO_BYTES
from workbench.pools.notebooks import counted
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.pictures import found_by_path
from workbench.pools.tables.source_table import RawTable
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import listed, parse_json, reading

_FORM = "a Hugging Face dataset"


def read(file: File, options: TableOptions) -> RawTable:
    """A dataset as a table; its images, if it has any, are the items.

    Args:
        file: a folder as `save_to_disk` writes it or as it lies on the hub, or a zip of one.
        options: split (None takes all, one after the other), max_bytes of all files that are read whole,
            max_cells, max_columns.

    Returns:
        The table, with the names of its classes in place of their codes.

    Raises:
        InputError: no such dataset, no such split, damaged, or too large.
    """
    with reading(file.name, _FORM, "Download or save it again."):
        members = file.members()
        paths = _paths(members)
        about = any(PurePosixPath(path).name in METADATA for path in paths)
        data = sorted(
            p for p in paths if p.endswith((".parquet", ".arrow")) and PurePosixPath(p).name not in METADATA
        )
        if data:
            return _table(file.name, members, data, options)
        if not about:
            raise InputError(
                f"{file.name} holds no .parquet and no .arrow file, and no {' or '.join(METADATA[:2])} "
                "beside images."
            )
        return read_folder(file.name, members, paths, options)


READER: Reader = table_reader(read)


def _paths(members: Members) -> list[str]:
    """Those of the files, without what macOS puts beside them."""
    return [path for path in members.sizes if "__MACOSX" not in path]


def _table(name: str, members: Members, data: list[str], options: TableOptions) -> RawTable:
    """The table of Parquet or Arrow files, split after split."""
    splits, notes = by_split(name, data, options.split)
    paths = [path for files in splits.values() for path in files]
    check_size(name, sum(members.sizes[path] for path in paths), options.max_bytes)
    features = _features(members)
    parquet_paths = [path for path in paths if path.endswith(".parquet")]
    if parquet_paths == paths:
        sources = {path: io.BytesIO(members.read(path, options.max_bytes)) for path in paths}
        return read_parts(name, "huggingface", sources, options, notes, features)
    if parquet_paths:
        notes = (*notes, f"Parquet beside Arrow files left out: {listed(parquet_paths, 3)}.")
    streams = (members.read(path, options.max_bytes) for path in paths if path not in parquet_paths)
    return read_streams(name, "huggingface", streams, options, notes, features)


def _features(members: Members) -> Mapping[str, Any]:
    """Columns as a file beside the dataset describes them; {} where there is none."""
    for path in _paths(members):
        if PurePosixPath(path).name == "dataset_info.json" and members.sizes[path] < 10 << 20:
            document = parse_json(members.read(path), path)
            if isinstance(document, dict) and isinstance(document.get("features"), dict):
                return document["features"]
    return {}


_NAMES = ("file_name", "image", "path")


def read_folder(name: str, members: Members, paths: Sequence[str], options: TableOptions) -> RawTable:
    """The images that tables of metadata name in a column file_name.

    Args:
        name: of the dataset.
        members: its files.
        paths: those that count.
        options: split, and those of the tables' own formats.

    Returns:
        All tables one after the other; of several, images go by their paths in the folder.

    Raises:
        InputError: a table without names of files, or too large.
    """
    import pandas as pd

    splits, notes = by_split(name, [p for p in paths if PurePosixPath(p).name in METADATA], options.split)
    abouts = [about for files in splits.values() for about in files]
    images = [path for path in paths if path.lower().endswith(IMAGE_ENDINGS)]
    check_size(f"{name} (unpacked)", sum(members.sizes[path] for path in images), MAX_PHOTO_BYTES)
    tables = [_read(members, about, images, options) for about in abouts]
    column = tables[0][1]
    pictures: dict[str, str] = {}
    frames: list[Any] = []
    places: list[tuple[int, int]] = []  # table and row
    for number, (about, (raw, path_column)) in enumerate(zip(abouts, tables, strict=True)):
        root = PurePosixPath(about).parent
        cells = raw.frame[path_column].astype("str").tolist()
        paths_of = [str(root / cell) for cell in cells]
        matches = found_by_path(paths_of, images)
        keys = [matches.get(path, path) for path in paths_of] if abouts[1:] else cells
        pictures |= {n: matches[path] for n, path in zip(keys, paths_of, strict=True) if path in matches}
        frames.append(
            raw.frame.rename(columns={path_column: column}).assign(**{column: pd.Series(keys, dtype="str")})
        )
        places += [(number, i) for i in range(len(cells))]
    stray = sorted({*images} - set(pictures.values()))
    if stray and options.split is None:
        words = f"{counted(len(stray), 'image')} that no metadata names left out: {listed(stray, 3)}."
        notes = (*notes, words)
    frame = pd.concat(frames, ignore_index=True)
    check_cells(name, len(frame), len(frame.columns), options.max_cells, options.max_columns)

    def locate(row: int) -> str:
        number, at = places[row]
        where = tables[number][0].locate(at)
        return f"{where} of {abouts[number]}" if abouts[1:] else where

    raws = [raw for raw, _ in tables]
    return replace(
        raws[0],
        name=name,
        format="huggingface",
        frame=frame,
        problems=tuple(
            {(remark.code, remark.message): remark for raw in raws for remark in raw.problems}.values()
        ),
        pictures={column: {key: partial(members.read, path) for key, path in pictures.items()}},
        uses={column: ColumnUse.of(column, "picture")},
        notes=(*(remark for raw in raws for remark in raw.notes), *notes),
        n_there=None,
        locate=locate,
    )


def _read(members: Members, about: str, images: Sequence[str], options: TableOptions) -> tuple[RawTable, str]:
    """One table of metadata, and its column of names of files."""
    inner = File(members.read(about, options.max_bytes), about)
    readers: dict[str, Any] = {".csv": csv.read, ".jsonl": json.read_lines, ".parquet": read_parquet}
    raw = readers[PurePosixPath(about).suffix](inner, options).accounted()
    column = next((str(c) for c in raw.frame.columns if str(c) in _NAMES), None)
    if column is None:  # other programs call it otherwise: isic_id, id
        root = PurePosixPath(about).parent
        counts = {
            str(c): len(found_by_path([str(root / cell) for cell in raw.frame[c].astype("str")], images))
            for c in raw.frame
        }
        best = max(counts, key=lambda name: counts[name], default="")
        column = best if best and 2 * counts[best] > len(raw.frame) else None
    if column is None:
        raise InputError(
            f"{about} has no column file_name and none that names its images; it has "
            f"{listed(raw.frame.columns)}. Rename one, or leave the file out."
        )
    return raw, column
