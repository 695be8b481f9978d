"""Environment before TensorFlow is imported."""

import subprocess
import sys

import pytest

RUN = """
import os
from workbench import simulate
from workbench.pools import load_pool
for done in simulate(load_pool("iris"), policy="margin", budget=1, seed=0):
    pass
os.write(2, b"ours")
"""


@pytest.mark.slow  # alone: a program's own output stays its own
def test_a_run_from_python_prints_nothing_of_tensorflow() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, timeout=800, check=True)
    assert done.stderr == b"ours"
    assert done.stdout == b""


def test_other_lines_are_passed_on_while_it_loads() -> None:
    code = """
import os
from workbench.engine.runtime import _without_greetings
with _without_greetings():
    os.write(2, b"I0000 00:00 greetings\\nsomething went wrong\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=800, check=True)
    assert done.stderr == b"something went wrong\n"


@pytest.mark.slow  # alone: the whole import of the engine, in seconds; that ours ask for no Keras is below
def test_the_engine_loads_without_keras_which_comes_when_it_is_used() -> None:
    code = """
import sys
from importlib.util import find_spec
from workbench.engine.runtime import prepare
prepare()
assert find_spec("tensorflow") and find_spec("tensorflow_probability")  # asking changes nothing
import gpflow, numpy as np, tensorflow as tf
assert not {"keras", "matplotlib"} & set(sys.modules)
try:
    gpflow.conditionals.base_conditional(np.ones((2, 3)), np.eye(2), np.ones(3), np.ones((4, 1)))
except Exception as error:
    assert "shape" in str(error).lower(), error
else:
    raise AssertionError("shapes are checked as ever")
import tensorflow.compat.v2 as tf2
for keras in (tf.keras, tf2.keras):
    assert keras.layers.Dense(2, activation="relu")(tf.ones((1, 3))).shape == (1, 2)
    assert keras.__version__.startswith("3.")
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=800, check=True)


def test_no_module_asks_for_keras_before_tensorflow() -> None:
    code = """
import importlib, pkgutil, sys
import workbench
from workbench.engine.runtime import prepare

class Recorder:
    asked = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("keras", "tensorflow", "gpflow", "tensorflow_probability"):
            self.asked.append(name)
            raise ModuleNotFoundError(name)

prepare()  # the recorder is asked before its finder
sys.meta_path.insert(0, Recorder())
for folder in ("engine", "attacks", "classifiers", "pools", "pools.features"):
    package = importlib.import_module("workbench." + folder)
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            pass
assert "tensorflow" in Recorder.asked
assert not [name for name in Recorder.asked if name.startswith("keras")], Recorder.asked
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=800, check=True)
