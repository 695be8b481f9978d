"""Encoders of other libraries, with models that are on this machine already."""

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError, install_command
from workbench.reading import reading

_CHUNK = 32


def _stay_offline() -> None:
    """Have models looked for on this machine alone, unless the person set these variables."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ.setdefault(variable, "1")


def sentence_transformers(name: str) -> Any:
    """A model of sentence-transformers: texts to vectors.

    Args:
        name: of the model, or its folder. It is looked for on this machine alone, unless the person set
            HF_HUB_OFFLINE=0.

    Returns:
        A function of texts.
    """
    _stay_offline()
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(name)
    return lambda texts: np.asarray(model.encode([str(text) for text in texts], show_progress_bar=False))


def timm(name: str) -> Any:
    """A pretrained model of timm without its last layer: images to vectors.

    Args:
        name: of the model; looked for as by `sentence_transformers`.

    Returns:
        A function of images.
    """
    _stay_offline()
    import timm as library
    import torch
    from PIL import Image

    model = library.create_model(name, pretrained=True, num_classes=0).eval()
    prepare = library.data.create_transform(**library.data.resolve_model_data_config(model))

    def encode(images: Sequence[Array]) -> Array:
        out = []
        with torch.inference_mode():
            for start in range(0, len(images), _CHUNK):
                batch = [
                    Image.fromarray(np.asarray(i)).convert("RGB") for i in images[start : start + _CHUNK]
                ]
                out.append(model(torch.stack([prepare(picture) for picture in batch])).numpy())
        return np.concatenate(out)

    return encode


def onnx(path: Path, kind: str) -> Any:
    """A network in an ONNX file: images to vectors.

    Args:
        path: of the file. Its one input is [n, 3, H, W] or [n, H, W, 3] numbers (images are brought to that
            size, values 0 to 1), its first output [n, d].
        kind: of the items; texts need a tokenizer, which such a file has not.

    Returns:
        A function of images.

    Raises:
        InputError: no such file, texts, the package onnxruntime missing, or other inputs.
    """
    if kind != "image":
        raise InputError(
            f"{path.name} reads numbers; for texts use a function of yours (package.module:function)."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path.name}. Check the path.")
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise InputError(
            f"Encoders in ONNX files need the package onnxruntime: {install_command('onnxruntime')}"
        ) from error
    from PIL import Image

    try:
        network = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"{path.name} is no ONNX file that onnxruntime can open.") from error
    inputs = network.get_inputs()
    shape = inputs[0].shape if len(inputs) == 1 else []
    first = len(shape) == 4 and shape[1] == 3
    if len(shape) != 4 or not (first or shape[3] == 3):
        signature = "; ".join(f"{node.name} {node.shape}" for node in inputs)
        raise InputError(f"{path.name} takes {signature}; an encoder of images takes one input [n, 3, H, W].")
    height, width = (size if isinstance(size, int) else 224 for size in (shape[2:] if first else shape[1:3]))
    fixed = shape[0] if isinstance(shape[0], int) else 0

    def encode(images: Sequence[Array]) -> Array:
        out = []
        for start in range(0, len(images), fixed or _CHUNK):
            pictures = [
                np.asarray(Image.fromarray(np.asarray(i)).convert("RGB").resize((width, height)), np.float32)
                / 255
                for i in images[start : start + (fixed or _CHUNK)]
            ]
            batch = np.stack(pictures + [pictures[-1]] * (fixed - len(pictures)))
            batch = batch.transpose(0, 3, 1, 2) if first else batch
            vectors = np.asarray(network.run(None, {inputs[0].name: batch})[0])[: len(pictures)]
            out.append(vectors.reshape(len(pictures), -1))
        return np.concatenate(out)

    return encode


_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
_TEXTS_AT_ONCE = 1000


def encoder(_: str = "") -> Any:
    """Texts to the mean of their tokens' vectors.

    The package's own loader looks for files on the network; these two are read as they are.

    Returns:
        A function of texts that gives [n, 256] float32.
    """
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent
    vectors = _safetensor(folder / _WEIGHTS)
    tokenizer = Tokenizer.from_str(_tokenizer((folder / _TOKENS).read_text(encoding="utf-8")))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: Sequence[str]) -> Array:
        out = np.zeros((len(texts), vectors.shape[1]), np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = [str(text) for text in texts[start : start + _TEXTS_AT_ONCE]]
            for row, encoding in enumerate(tokenizer.encode_batch(batch, add_special_tokens=False), start):
                if encoding.ids:
                    out[row] = vectors[encoding.ids].mean(axis=0)
        return out

    return encode


def _tokenizer(text: str) -> str:
    """The tokenizer's own document, whichever way it is wrapped."""
    document = json.loads(text)
    return json.dumps(document.get("tokenizer", document))


def _safetensor(path: Path) -> Array:
    """The one matrix of a safetensors file, as float32."""
    from safetensors.numpy import load_file  # comes with wordllama

    with reading(path.name, "a safetensors file"):
        (values,) = load_file(path).values()
    return values.astype(np.float32)
