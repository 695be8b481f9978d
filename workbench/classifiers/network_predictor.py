"""Latent marginals of a network mean with a sparse GP's variance; NumPy only for dense networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine.projection import CHUNK

FLOOR = 1e-9  # least variance before tempering
DENSE = "mlp"  # the registered network whose forward pass is written out here


class NetworkPredictor:
    """X [N, D] raw features -> Latent [N, C]. Picklable.

    Attributes:
        spread: Predictor of scaling and variances; its means are not used.
        network: name of the network; for "mlp" no TensorFlow is needed.
        input_shape: what the network sees of a row.
        weights: the network's arrays.
        kernel: [d, C] last layer.
        bias: [C].
        temper: scalar on the variances.
    """

    def __init__(
        self,
        *,
        spread: Predictor,
        network: str,
        input_shape: tuple[int, ...],
        weights: Sequence[Array],
        kernel: Floats,
        bias: Floats,
        temper: float,
    ) -> None:
        self.spread = spread
        self.network = network
        self.input_shape = tuple(int(n) for n in input_shape)
        self.weights = tuple(np.asarray(w) for w in weights)
        self.kernel, self.bias = np.asarray(kernel, np.float64), np.asarray(bias, np.float64)
        self.temper = float(temper)

    @property
    def n_features(self) -> int:
        """D of the rows it takes."""
        return self.spread.n_features

    def __call__(self, X: Array) -> Latent:
        """Latent mean and variance [N, C] of raw features X [N, D]."""
        variance = np.maximum(self.spread(X).variance, FLOOR)
        variance *= self.temper
        return Latent(self.mean(X), variance)

    def mean(self, X: Array) -> Floats:
        """[N, C] latent means alone, of raw features X [N, D]."""
        out = np.empty((len(X), len(self.bias)))
        for start in range(0, len(X), CHUNK):
            rows = slice(start, start + CHUNK)
            out[rows] = self._features(self.spread.scaled(X[rows])) @ self.kernel + self.bias
        return out

    def scaled(self, X: Array) -> Floats:
        """[N, D] features as kernel and network see them."""
        return self.spread.scaled(X)

    def project(self, X: Array) -> Floats:
        """Whitened features phi [N, P] of raw features X [N, D]."""
        return self.spread.project(X)

    def _features(self, scaled: Floats) -> Floats:
        if self.network != DENSE:
            from workbench.engine.runtime import prepare

            prepare()
            from workbench.engine.network_training import features_of

            D = scaled.shape[1]
            unscaled = np.zeros(D, np.float32), np.ones(D, np.float32)
            return features_of(self.network, self.input_shape, self.weights, *unscaled, scaled)
        hidden = scaled
        for W, b in zip(self.weights[::2], self.weights[1::2], strict=True):
            hidden = np.maximum(hidden @ W + b, 0.0)
        # the networks' closing LayerNorm without parameters
        hidden = hidden - hidden.mean(axis=1, keepdims=True)
        return hidden / np.sqrt(np.mean(hidden * hidden, axis=1, keepdims=True) + 1e-5)

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving; `from_arrays` is the way back."""
        arrays: dict[str, Array] = {
            "network": np.asarray(self.network),
            "input_shape": np.asarray(self.input_shape),
            "kernel": self.kernel,
            "bias": self.bias,
            "temper": np.asarray(self.temper),
        }
        arrays |= {f"weights.{i}": w for i, w in enumerate(self.weights)}
        return arrays | {f"spread.{key}": value for key, value in self.spread.to_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> NetworkPredictor:
        """The predictor that `to_arrays` took apart."""
        parts: dict[str, Any] = {
            k.removeprefix("spread."): v for k, v in arrays.items() if k.startswith("spread.")
        }
        count = sum(key.startswith("weights.") for key in arrays)
        return cls(
            spread=Predictor.from_arrays(parts),
            network=str(np.asarray(arrays["network"])),
            input_shape=tuple(np.asarray(arrays["input_shape"]).tolist()),
            weights=[arrays[f"weights.{i}"] for i in range(count)],
            kernel=arrays["kernel"],
            bias=arrays["bias"],
            temper=float(arrays["temper"]),
        )
