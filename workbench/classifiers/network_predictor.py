"""Latent marginals of a network mean with a sparse GP's variance; NumPy only for dense networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Array, Floats, slices
from workbench.classifiers.geometry import in_order, prefixed, within
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine.projection import CHUNK

FLOOR = 1e-9  # least variance before tempering
DENSE = "mlp"  # the registered network whose forward pass is written out here
_ARRAYS = ("network", "input_shape", "kernel", "bias", "temper")


@dataclass(frozen=True, eq=False)
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

    spread: Predictor
    network: str
    input_shape: tuple[int, ...]
    weights: tuple[Array, ...]
    kernel: Floats
    bias: Floats
    temper: float

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
        for rows in slices(len(X), CHUNK):
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
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        return arrays | prefixed("weights", self.weights) | prefixed("spread", self.spread.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> NetworkPredictor:
        """The predictor that `to_arrays` took apart."""
        network, input_shape, kernel, bias, temper = (np.asarray(arrays[name]) for name in _ARRAYS)
        return cls(
            Predictor.from_arrays(within("spread", arrays)),
            str(network),
            tuple(input_shape.tolist()),
            in_order("weights", arrays),
            kernel,
            bias,
            float(temper),
        )
