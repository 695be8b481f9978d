"""JSON and CSV as they are written and read: the same way every time, and no cell that a spreadsheet runs."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import IO, Any

from workbench.members import FolderMembers
from workbench.reading import parse_json

CARD = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: {path}
---
"""
"""Head of the README.md of a Hugging Face folder."""


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def packed(out: IO[bytes]) -> zipfile.ZipFile:
    """A zip to write into, an open file."""
    return zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED)


def put(archive: zipfile.ZipFile, path: str, data: bytes | str | IO[bytes], *, squeeze: bool = True) -> None:
    """Write one file into a zip, the same bytes every time.

    Args:
        archive: of `packed`.
        path: of the file in it.
        data: what it holds, an open file from its beginning on.
        squeeze: False for what is squeezed already, such as pictures.
    """
    info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    info.compress_type = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
    if isinstance(data, bytes | str):
        archive.writestr(info, data)
        return
    data.seek(0)
    with archive.open(info, "w", force_zip64=True) as member:
        shutil.copyfileobj(data, member, 1 << 20)


def put_parquet(archive: zipfile.ZipFile, parquet: Any) -> str:
    """Write the Parquet file of a Hugging Face folder into a zip.

    `datasets` keeps what it read by the folder's name and this path, whatever the file holds: another export
    in a folder of the same name would be answered with the first one.

    Returns:
        Its path, with a digest of what it holds.
    """
    parquet.seek(0)
    path = f"data/train-00000-of-00001-{hashlib.file_digest(parquet, 'sha256').hexdigest()[:16]}.parquet"
    put(archive, path, parquet, squeeze=False)
    return path


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))
