"""WordLlama's vectors (means of token vectors distilled from Llama 2), from the files inside its package."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.reading import reading

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
_CHUNK = 1000


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
        for start in range(0, len(texts), _CHUNK):
            batch = [str(text) for text in texts[start : start + _CHUNK]]
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
