"""Arrays inside JSON documents."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from workbench.arrays import Floats


def pack(values: Floats) -> dict[str, Any]:
    """An array as JSON: its shape, and base64 of little-endian float32."""
    packed = np.ascontiguousarray(values, dtype="<f4")
    return {"shape": list(packed.shape), "base64": b64encode(packed.tobytes()).decode()}


def unpack(document: dict[str, Any]) -> Floats:
    """The array behind `pack`, float32."""
    flat = np.frombuffer(b64decode(document["base64"]), dtype="<f4")
    if not np.isfinite(flat).all():
        raise ValueError("it holds numbers that are not finite")
    return flat.reshape(document["shape"]).astype(np.float32)
