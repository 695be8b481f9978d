"""ONNX files written byte by byte, so that a test needs no package to make one."""

from __future__ import annotations

from collections.abc import Sequence

_FLOAT = 1


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _tensor(name: str, shape: Sequence[int | str]) -> bytes:
    """ValueInfoProto of a float tensor; a size that is a text is free."""
    sizes = b"".join(
        _bytes(1, _bytes(2, size) if isinstance(size, str) else _number(1, size)) for size in shape
    )
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, sizes)))


def colour_means(shape: Sequence[int | str], inputs: Sequence[str] = ("images",)) -> bytes:
    """A network that gives the mean over the pixels of each channel: [n, C, H, W] -> [n, C].

    Args:
        shape: of its first input.
        inputs: names of its inputs; what comes after the first is added to the result as it is.
    """

    def node(kind: str, come: Sequence[str], go: str) -> bytes:
        return _bytes(1, b"".join(_bytes(1, one) for one in come) + _bytes(2, go) + _bytes(4, kind))

    nodes = node("GlobalAveragePool", inputs[:1], "means") + node("Flatten", ["means"], "flat")
    last = "flat"
    for name in inputs[1:]:
        nodes += node("Add", [last, name], f"with {name}")
        last = f"with {name}"
    graph = nodes + _bytes(2, "colour means") + _bytes(11, _tensor(inputs[0], shape))
    graph += b"".join(_bytes(11, _tensor(name, [1, 3])) for name in inputs[1:])
    graph += _bytes(12, _tensor(last, ["n", 3]))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))
