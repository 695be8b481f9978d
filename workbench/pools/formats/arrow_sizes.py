"""Sizes of the batches of an unpacked Arrow stream, read off before anything is unpacked.

A compressed batch holds, before each of its buffers, the length that it unpacks to, and Arrow allocates that
much whatever it is. The lengths' places stand in the message before the batch, a FlatBuffers table.
"""

import struct
from typing import Any

_HEADER_TYPE, _HEADER = 1, 2  # of a Message
_BUFFERS, _COMPRESSION = 2, 3  # of a RecordBatch
_DATA = 1  # of a DictionaryBatch
_DICTIONARY, _BATCH = 2, 3  # kinds of header


def unpacked_size(stream: Any) -> int:
    """Bytes that all batches and dictionaries of a stream take in memory.

    Args:
        stream: bytes of a stream, from its schema on.
    """
    import pyarrow as pa

    total = 0
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(stream)):
        total += _of_message(bytes(message.metadata), message.body)
    return total


def _of_message(about: bytes, body: Any) -> int:
    (root,) = struct.unpack_from("<I", about, 0)
    kind = _field(about, root, _HEADER_TYPE)
    header = _table(about, root, _HEADER)
    if kind is None or header is None or about[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _table(about, header, _DATA) if about[kind] == _DICTIONARY else header
    if batch is None:
        return 0
    size = 0 if body is None else body.size
    buffers = _table(about, batch, _BUFFERS)
    if buffers is None or _field(about, batch, _COMPRESSION) is None:
        return size
    (n,) = struct.unpack_from("<I", about, buffers)
    total = 0
    for i in range(n):
        offset, length = struct.unpack_from("<qq", about, buffers + 4 + 16 * i)
        if length >= 8 and 0 <= offset <= size - 8:
            (declared,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            total += length if declared < 0 else declared
    return total


def _field(about: bytes, table: int, number: int) -> int | None:
    """The place of a table's field; None where it is left out."""
    (back,) = struct.unpack_from("<i", about, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", about, vtable)
    at = 4 + 2 * number
    if at + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", about, vtable + at)
    return table + offset if offset else None


def _table(about: bytes, table: int, number: int) -> int | None:
    """The place of the table or vector that a field points at."""
    place = _field(about, table, number)
    if place is None:
        return None
    (ahead,) = struct.unpack_from("<I", about, place)
    return place + int(ahead)
