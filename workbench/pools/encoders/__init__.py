"""Encoders: from items as people see them to vectors, by models that others have trained.

Nothing is downloaded: an encoder brings its weights in an installed package, a file of yours, or the cache of
the library that runs it. A new one is a function that returns an `Encoder` and a line in `ENCODERS`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array, first_not_finite
from workbench.errors import InputError, install_command
from workbench.reading import cut, reason
from workbench.registry import FileName, from_file, load_own, load_target, vouched, written_entries
from workbench.versions import version_of

Encode = Callable[[Sequence[Any]], Array]
"""Items (texts, or images [H, W(, 3)] uint8) to vectors [n, d]."""


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder that is known by name.

    Attributes:
        name: as `features=` takes it; one that ends with ":" takes a model's name behind it.
        kind: of items it reads, "image" or "text".
        target: "module:function"; called with what follows the name, it returns an `Encode`.
        package: what must be installed.
        sentence: for people, with its licence.
    """

    name: str
    kind: str
    target: str
    package: str
    sentence: str

    @property
    def installed(self) -> bool:
        """True if its package can be imported."""
        return find_spec(self.package.split("[")[0].replace("-", "_")) is not None


ENCODERS: Mapping[str, EncoderEntry] = {
    entry.name: entry for entry in written_entries(Path(__file__).with_name("encoders.toml"), EncoderEntry)
}
_TEXT = "What tells one encoder from another of the same name?"
_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_encoder(features: Any) -> bool:
    """True if an option of features names an encoder: by name, an ONNX file or "package.module:function"."""
    if not isinstance(features, str) or not features:
        return False
    return (
        _entry(features) is not None
        or features.lower().endswith(".onnx")
        or (_CODE.fullmatch(features) is not None and not features.startswith("embeddings:"))
    )


def open_encoder(features: str, kind: str) -> Encode:
    """The function that encodes.

    Args:
        features: a name of `ENCODERS`, the path of an ONNX file, or "package.module:function" (items ->
            [n, d]) that a person vouched for: typed on the command line, or `workbench.registry.trust`.
        kind: of the items, "image" or "text".

    Returns:
        Items to vectors; what it returns is checked.

    Raises:
        InputError: another kind of items, a package that is not installed, or code that a file named.
    """
    entry = _entry(features)
    if entry is not None:
        if entry.kind != kind:
            raise InputError(f"The encoder {features!r} reads {entry.kind}s; these items are {kind}s.")
        if not entry.installed:
            raise InputError(
                f"The encoder {features!r} needs the package {entry.package}: "
                f"{install_command(entry.package)}. {entry.sentence}"
            )
        if entry.name.endswith(":"):
            # a model's folder may name code, and what a file says may name any folder
            vouched(features, "The pool's options")
        try:
            encode: Encode = load_target(entry.target)(features.removeprefix(entry.name))
        except InputError:
            raise
        except Exception as error:  # each library has its own for a model that is not there
            raise InputError(
                f"The encoder {cut(features)} could not be opened: {reason(error).rstrip('.')}. Models are "
                "looked for on this machine alone, in the library's cache or a folder that you name."
            ) from error
    elif isinstance(features, _Path):
        raise InputError(
            f"The saved feature map names the file {cut(features)}, and a file may name no other of this "
            "machine. If you trust where it comes from: --trust-code (in Python: "
            'workbench.registry.trust("*")).'
        )
    elif features.lower().endswith(".onnx"):
        from workbench.pools.encoders.libraries import onnx

        encode = onnx(Path(features).expanduser(), kind)
    else:
        encode = load_own(vouched(features, "The pool's options"), "encoder")
    return _checked(encode, features)


def weights_of(features: str, kind: str, encode: Encode) -> str:
    """Identity of an encoder among those of the same name: its file, its package's version, what it says.

    Args:
        features: as of `open_encoder`.
        kind: of the items.
        encode: the function that encodes.

    Returns:
        A digest; the same name with another file, another version or other weights has another one.
    """
    digest = sha256()
    entry = _entry(features)
    if entry is None and Path(features).expanduser().is_file():
        digest.update(Path(features).expanduser().read_bytes())
        return digest.hexdigest()[:32]
    if entry is not None:
        digest.update((version_of(entry.package.split("[")[0]) or "").encode())
    # weights in a folder or in a library's cache have no version: two numbers of three digits tell them
    probe = (
        _TEXT
        if kind == "text"
        else np.arange(32 * 32 * 3, dtype=np.uint32).astype(np.uint8).reshape(32, 32, 3)
    )
    vector = np.asarray(encode([probe]))[0].astype(np.float64)
    numbers = (vector.size, float(np.abs(vector).sum()), float(vector @ np.cos(np.arange(vector.size))))
    digest.update(" ".join(f"{number:.3g}" for number in numbers).encode())
    return digest.hexdigest()[:32]


def of_document(name: str) -> str:
    """An encoder as a saved map names it: a file that it names is opened only where a person vouched for it.

    Args:
        name: of the encoder.

    Returns:
        The same name, marked where it is the path of a file.
    """
    if not name.lower().endswith(".onnx"):
        return name
    # nothing but a person's vouching for all that files name reaches names without a colon
    return name if not isinstance(from_file(f"onnx:{name}", "it"), FileName) else _Path(name)


class _Path(str):
    """The path of a network that stood in a file."""


def _entry(features: str) -> EncoderEntry | None:
    name = features.partition(":")[0] + (":" if ":" in features else "")
    entry = ENCODERS.get(name)
    return None if entry is None or features == "sentence-transformers:" or features == "timm:" else entry


def _checked(encode: Encode, name: str) -> Encode:
    """The same with one sentence for whatever comes back that is no vectors."""

    def checked(items: Sequence[Any]) -> Array:
        try:
            vectors = np.asarray(encode(items), dtype=np.float32)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"The encoder {cut(name)} failed: {type(error).__name__}: {cut(str(error))}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(items) or not vectors.shape[1]:
            raise InputError(
                f"The encoder {cut(name)} returned {list(vectors.shape)} for {len(items)} items; it must "
                f"return [{len(items)}, d] numbers."
            )
        if (row := first_not_finite(vectors)) is not None:
            raise InputError(
                f"The encoder {cut(name)} returned numbers that are not finite (item {row + 1})."
            )
        return vectors

    return checked
