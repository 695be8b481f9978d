"""Images as features: their pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError

MAX_IMAGE_FEATURES = 5_000_000
"""Most pixels x colours of one image whose pixels are features."""


@dataclass(frozen=True)
class ImageFeatureMap:
    """Images to pixels in [0, 1].

    Attributes:
        shape: (H, W) for grey or (H, W, 3) for colour.
        white: the value of white in raw images; 255 for 8 bits.
        resized: whether the pool's images were brought to that size; files are brought to it, too.
        mode: "grey" or "colour" that they were brought to; None keeps what each is.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
    """

    shape: tuple[int, ...]
    white: float = 255.0
    resized: bool = False
    mode: str | None = None
    brightest: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        if len(self.shape) == 2:
            return tuple(f"pixel_{i}_{j}" for i in range(self.shape[0]) for j in range(self.shape[1]))
        return tuple(
            f"pixel_{i}_{j}_{colour}"
            for i in range(self.shape[0])
            for j in range(self.shape[1])
            for colour in ("red", "green", "blue")
        )

    def transform(self, rows: Any) -> Array:
        """Images to features.

        Args:
            rows: [N, H, W(, 3)] images, or the same laid flat [N, D], in the pool's range of values; or
                images of files (`pools.images.photos.Photos`), brought to size and mode as the pool's.

        Returns:
            [N, D] float32.

        Raises:
            InputError: images of another size or mode.
        """
        if hasattr(rows, "brought"):
            height, width = self.shape[:2]
            shape = (height, width) if self.resized else None
            rows = rows.brought(shape=shape, mode=self.mode, brightest=self.brightest)
        images = np.asarray(rows)
        size = int(np.prod(self.shape))
        if images.ndim < 2 or (images.shape[1:] != self.shape and images.shape[1:] != (size,)):
            raise InputError(
                f"These images are {size_text(images.shape[1:])}; the pool's are {size_text(self.shape)}. "
                "Resize them, or turn them to grey or colour alike."
            )
        if images.dtype.kind not in "fiub":
            raise InputError(f"Images must be numbers; got {images.dtype}.")
        out = np.empty((len(images), size), dtype=np.float32)
        step = max(1, 8_000_000 // size)
        for start in range(0, len(images), step):
            part = images[start : start + step].reshape(-1, size)
            pixels = out[start : start + step]
            np.divide(part, np.float32(self.white), out=pixels, dtype=np.float32, casting="same_kind")
            if part.dtype.kind == "f" and not np.isfinite(pixels).all():
                row = start + int((~np.isfinite(pixels)).any(axis=1).argmax())
                raise InputError(f"Image {row + 1} has pixels that are not finite numbers.")
        return out

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document."""
        return {
            "kind": "image",
            "shape": list(self.shape),
            "white": self.white,
            "resized": self.resized,
            "mode": self.mode,
            "brightest": self.brightest,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ImageFeatureMap:
        """Rebuild from `to_json`."""
        shape = tuple(int(n) for n in document["shape"])
        white = float(document["white"])
        size = int(np.prod(shape, dtype=object))
        if len(shape) not in (2, 3) or not 0 < size <= MAX_IMAGE_FEATURES or not 0 < white < np.inf:
            raise ValueError(f"images of shape {list(shape)[:4]} with white at {white}")
        mode = document["mode"]
        if mode not in (None, "grey", "colour"):
            raise ValueError(f"it brings images to {str(mode)[:40]}")
        return cls(shape, white, bool(document["resized"]), mode, white_of(document))


def white_of(document: Mapping[str, Any]) -> float | None:
    """The value that is white in files of more than eight bits a pixel, of a map's document.

    Raises:
        ValueError: none that can be.
    """
    brightest = document.get("brightest")
    if brightest is not None and not 0 < float(brightest) < np.inf:
        raise ValueError(f"pixels of {str(brightest)[:40]} are white")
    return None if brightest is None else float(brightest)


def size_text(shape: Sequence[int]) -> str:
    """The shape of one image for people: "28 x 28 grey"."""
    if len(shape) < 2:
        return f"{list(shape)} numbers"
    return f"{shape[0]} x {shape[1]} {'colour' if len(shape) == 3 else 'grey'}"
