"""GPflow models and their updates; with `attacks`, the only place where TensorFlow lives.

This file imports none of it: `projection` is NumPy alone, and what scores pools needs no more.
"""

from workbench.engine.runtime import prepare

prepare()
