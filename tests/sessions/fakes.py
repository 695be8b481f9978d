"""A classifier with every method of the contract and nothing to wait for."""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.classifiers.latent import Latent
from workbench.policies.belief import Belief
from workbench.registry import CodeName


class NearestMean:
    """Class means; probabilities fall with the squared distance, latents are minus that distance.

    A class without labels lies far away. With `warm_start`, means move half of the way from where
    they were, so that a fit depends on the one before it, as it does for the real models.
    """

    has_latent = True
    means_: Any

    def __init__(
        self, classes: Any = None, random_state: Any = None, warm_start: bool = False, sharpness: float = 1.0
    ) -> None:
        self.classes, self.random_state, self.warm_start = classes, random_state, warm_start
        self.sharpness = sharpness

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        names = ("classes", "random_state", "warm_start", "sharpness")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> "NearestMean":
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any, callback: Any = None) -> "NearestMean":
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        self.sharpness + 0.0  # a text is refused here, as options are by the real ones
        far = X.mean(axis=0) + 3.0
        means = np.stack([X[y == c].mean(axis=0) if (y == c).any() else far for c in self.classes])
        if self.warm_start and hasattr(self, "means_"):
            means = 0.5 * (means + self.means_)
        self.means_, self.n_, self.classes_ = means, len(y), np.asarray(self.classes)
        if callback is not None:
            callback(1.0, 0.0)
        return self

    def predict_latent(self, X: Any) -> Latent:
        X = np.asarray(X, dtype=float)
        squares = ((X[:, None, :] - self.means_[None]) ** 2).sum(axis=2)
        return Latent(-self.sharpness * squares, np.full(squares.shape, 1.0 / (1.0 + self.n_)))

    def predict_proba(self, X: Any) -> Any:
        scores = self.predict_latent(X).mean
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def get_state(self) -> dict[str, Any]:
        return {"means": self.means_, "n": np.asarray(self.n_), "classes": np.asarray(self.classes_)}

    def set_state(self, state: Mapping[str, Any]) -> "NearestMean":
        self.means_, self.n_ = np.asarray(state["means"]), int(state["n"])
        self.classes_ = np.asarray(state["classes"])
        return self


def held_fits(monkeypatch: Any) -> tuple[threading.Event, threading.Event]:
    """Events of fits from now on: set where one has begun; to be set for it to go on."""
    fitting, go_on = threading.Event(), threading.Event()
    plain = NearestMean.fit

    def held(self: NearestMean, X: Any, y: Any, callback: Any = None) -> NearestMean:
        fitting.set()
        assert go_on.wait(600)
        return plain(self, X, y, callback)

    monkeypatch.setattr(NearestMean, "fit", held)
    return fitting, go_on


FAKE = CodeName("tests.sessions.fakes:NearestMean")
PAUSING = CodeName("tests.sessions.fakes:random_pausing")


def random_pausing(belief: Belief, rng: np.random.Generator) -> Floats:
    """Random utilities; at PAUSE_AT labels it says so on stdout and waits for a line, or to be killed."""
    if os.environ.get("PAUSE_AT") == str(np.count_nonzero(belief.labels >= 0)):
        print("paused", flush=True)
        sys.stdin.readline()
    return rng.random(len(belief))


class Hanging(NearestMean):
    """Its fit tells nothing and never ends."""

    def fit(self, X: Any, y: Any, callback: Any = None) -> "Hanging":
        threading.Event().wait()
        return self


class Dying(NearestMean):
    """Ends its process in a fit, as many times as the file of WORKBENCH_TEST_DEATHS says.

    Only of more labels than `spared`.
    """

    def __init__(
        self, classes: Any = None, random_state: Any = None, warm_start: bool = False, spared: int = 0
    ) -> None:
        super().__init__(classes, random_state, warm_start)
        self.spared = spared

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("classes", "random_state", "warm_start", "spared")}

    def fit(self, X: Any, y: Any, callback: Any = None) -> "Dying":
        from pathlib import Path

        place = Path(os.environ["WORKBENCH_TEST_DEATHS"])
        left = int(place.read_text(encoding="utf-8"))
        if left and len(y) > self.spared:
            place.write_text(str(left - 1), encoding="utf-8")
            os._exit(9)
        super().fit(X, y, callback)
        return self


class Failing(NearestMean):
    """Fits of more than five labels fail."""

    def fit(self, X: Any, y: Any, callback: Any = None) -> "Failing":
        if len(y) > 5:
            raise ArithmeticError("no root")
        super().fit(X, y, callback)
        return self


class Endless(NearestMean):
    """Fits of more than five labels end when they are told to."""

    def fit(self, X: Any, y: Any, callback: Any = None) -> "Endless":
        while len(y) > 5 and not callback(0.5, 0.0):
            pass
        super().fit(X, y, callback)
        return self


DYING = CodeName("tests.sessions.fakes:Dying")
FAILING = CodeName("tests.sessions.fakes:Failing")
HANGING = CodeName("tests.sessions.fakes:Hanging")
ENDLESS = CodeName("tests.sessions.fakes:Endless")


# what a companion of a test is asked for: the first argument is `say`
def added(say: Any, one: int, two: int) -> int:
    return one + two


def counting(say: Any, until: int) -> int:
    """Says 0, 1, 2 ... and stops where it is told to."""
    for n in range(until):
        if say(n):
            return n
    return until


def deaf(say: Any) -> None:
    """Says one thing, and never hears that it should stop."""
    say("here")
    threading.Event().wait()


def refusing(say: Any, words: str) -> None:
    from workbench.errors import InputError

    raise InputError(words)


def dying(say: Any) -> None:
    os._exit(7)


def stopped(say: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def pid(say: Any) -> int:
    return os.getpid()
