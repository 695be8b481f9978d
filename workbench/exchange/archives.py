"""Archives of exports: packed files that are the same bytes every time, and pictures of items as files."""

import base64
import io
import re
import shutil
import zipfile
from hashlib import file_digest
from pathlib import PurePosixPath
from typing import IO, Any

import numpy as np

from workbench.pools.images.decoding import opened
from workbench.pools.images.photos import PhotoItems
from workbench.reading import letters
from workbench.writing import short_name

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
    path = f"data/train-00000-of-00001-{file_digest(parquet, 'sha256').hexdigest()[:16]}.parquet"
    put(archive, path, parquet, squeeze=False)
    return path


SHOWN_BY = {
    "image": '<Image name="item" value="$image" zoom="true"/>',
    "text": '<Text name="item" value="$text"/>',
    "table": '<Table name="item" value="$row"/>',
}
"""Kind of a pool -> what shows an item of it in Label Studio."""


def picture_of(pool: Any, item: int) -> tuple[bytes, str]:
    """The file of an image and its ending: as the source has it, else a PNG of what is shown."""
    from PIL import Image

    if isinstance(pool.items, PhotoItems):
        photos = pool.items.photos
        data = photos.folder.read(photos.paths[item])
        with opened(data, str(pool.items.ids[item])) as picture:
            # a phone's JPEG with a second picture inside is MPO
            endings = {"JPEG": "jpg", "MPO": "jpg", "TIFF": "tif"}
            ending = endings.get(str(picture.format), str(picture.format).lower())
        return data, f".{ending}"
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pool.items.show(item).image)).save(stream, "PNG")
    return stream.getvalue(), ".png"


def data_url(data: bytes, ending: str) -> str:
    """A picture's file as an address that holds it."""
    mime = {".jpg": "jpeg", ".tif": "tiff"}.get(ending, ending.removeprefix("."))
    return f"data:image/{mime};base64,{base64.b64encode(data).decode()}"


class FileNames:
    """Names for the files of items: the last part of an item's id, each once.

    Args:
        pool: of the items.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._taken: set[str] = set()

    def of(self, item: int, ending: str) -> str:
        """A name that no other item has; asked for once an item."""
        stem = PurePosixPath(str(self._pool.items.ids[item]).replace("\\", "/")).name
        stem = plain_name(re.sub(r"\.(png|jpe?g|bmp|gif|webp|tiff?|p[gp]m)$", "", stem, flags=re.I))
        return not_taken(stem, ending, item, self._taken)


def not_taken(stem: str, ending: str, number: int, taken: set[str]) -> str:
    """A name that differs from the others also where capitals do not count; it is taken then."""
    name = f"{stem}{ending}"
    while letters(name).casefold() in taken:
        name, number = f"{stem}-{number}{ending}", number + 1
    taken.add(letters(name).casefold())
    return name


def plain_name(text: str) -> str:
    """A name that every file system takes, of at most 80 bytes."""
    plain = short_name(re.sub(r"[^\w.-]+", "-", text).strip(".-"), 80).rstrip(".-")
    # names of devices on Windows, whatever their ending
    device = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain, flags=re.I)
    return f"{plain}-" if device else plain or "item"


def octets_of(pool: Any, item: int) -> int:
    """Bytes of an image's file, without reading it; at most so many where it is made of numbers."""
    if isinstance(pool.items, PhotoItems):
        return pool.items.photos.folder.size(pool.items.photos.paths[item])
    image = pool.items.show(item).image
    assert image is not None
    return image.size
