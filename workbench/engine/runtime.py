"""Process-wide settings that must stand before TensorFlow is imported."""

import importlib.machinery
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from threading import get_ident
from types import ModuleType

# TensorFlow's native part greets on file descriptor 2 before any of its settings hold
_GREETINGS = (b"WARNING: All log messages before absl", b"I0000 ", b"W0000 ")


def thread_count() -> int:
    """Threads for linear algebra: WORKBENCH_THREADS, by default 1.

    One, because fits run beside a page that must stay quick, and because two OpenBLAS threads
    spin against each other on a busy machine.
    """
    text = os.environ.get("WORKBENCH_THREADS", "").strip()
    return max(1, int(text)) if text.isdigit() else 1


@cache
def prepare() -> None:
    """Set thread counts and quieten libraries, once a process. Imports no TensorFlow.

    Variables a user has set are left alone.
    """
    threads = thread_count()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # convolutions in a third to two thirds of the time; as repeatable at one thread count
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    # libraries that are not loaded yet read these; those that are get limited below
    for name in ("TF_NUM_INTRAOP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    # several sessions may fit at once, each on a thread of its own
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(threads, os.cpu_count() or 1)))
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
    if "gpflow" not in sys.modules:
        sys.meta_path.insert(0, _EngineFinder())
    limit_blas_threads(threads)


class _EngineFinder(MetaPathFinder):
    """Finds TensorFlow, TensorFlow Probability and GPflow as usual, and loads them with less.

    TensorFlow's libraries greet while they load. TensorFlow loads all of Keras 3, Matplotlib with it, to
    register its optimizers for saved models. TensorFlow Probability asks it for its version, and then takes
    `tf_keras`, as it does without it. `tf.keras` loads when it is first used. GPflow writes shapes into its
    docstrings. Together that is two fifths of the processor time of `import tensorflow, gpflow`.
    """

    def __init__(self) -> None:
        self._loads = {
            "tensorflow": _quiet,
            "tensorflow_probability": _keras_to_come,
            "gpflow": _plain_docstrings,
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        around = self._loads.get(fullname)
        if around is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _loaded_in(around, spec.loader)  # type: ignore[method-assign, assignment, unused-ignore]
        return spec


def _loaded_in(
    around: Callable[[], AbstractContextManager[None]], loader: Loader
) -> Callable[[ModuleType], None]:
    """The loader's `exec_module` within a context."""
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        with around():
            load(module)

    return exec_module


@contextmanager
def _quiet() -> Iterator[None]:
    with _without_greetings(), _without_keras():
        yield


@contextmanager
def _plain_docstrings() -> Iterator[None]:
    import check_shapes

    usual = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings(None)
    try:
        yield
    finally:
        check_shapes.set_rewrite_docstrings(usual)


class _KerasRefused(MetaPathFinder):
    """Refuses Keras to the thread that loads TensorFlow, which can do without."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "keras.src" and get_ident() == self._thread:
            raise ModuleNotFoundError("Keras loads when it is first used", name=fullname)


@contextmanager
def _without_keras() -> Iterator[None]:
    refused = _KerasRefused()
    sys.meta_path.insert(0, refused)
    try:
        yield
    finally:
        sys.meta_path.remove(refused)


@contextmanager
def _keras_to_come() -> Iterator[None]:
    with _without_keras():
        yield
    # TensorFlow's lazy `compat.v2.keras` never asks again once it was refused
    asked = vars(sys.modules["tensorflow"].compat.v2.keras)
    asked["_tfll_initialized"] = "_tfll_keras_version" in asked


@contextmanager
def _without_greetings() -> Iterator[None]:
    """Hold back what is written to descriptor 2; afterwards pass on all but the greetings."""
    try:
        stderr = os.dup(2)
    except OSError:  # no stderr at all
        yield
        return
    with tempfile.TemporaryFile() as buffer:
        os.dup2(buffer.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            buffer.seek(0)
            for line in buffer:
                if not line.startswith(_GREETINGS):
                    os.write(stderr, line)
            os.close(stderr)


def limit_blas_threads(threads: int) -> None:
    """Limit BLAS and OpenMP threads of libraries loaded so far, for the rest of the process.

    Args:
        threads: at least 1.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=threads)
