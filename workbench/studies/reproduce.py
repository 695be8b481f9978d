"""The papers' tables and figures by name: `workbench reproduce NAME`.

An experiment is a function (Context) -> Report, named "module:function" here and imported when it
is run. To add one: write the function and add an entry.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from workbench.errors import Cancelled, InputError
from workbench.registry import Entry, Registry
from workbench.studies.reports import Report, write_report

T = TypeVar("T")
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Experiment(Entry):
    """One table or figure of a paper.

    Attributes:
        paper: which, such as "003 table 1".
        quick: what `--quick` costs.
        full: what a full run costs.
    """

    paper: str = ""
    quick: str = "5 min"
    full: str = ""


_LARGE_MARGIN = "workbench.studies.papers_large_margin:"
_ACTIVE = "workbench.studies.papers_active:"
_BSVM = "workbench.studies.papers_bayesian_svm:"
_SOFTMAX = "workbench.studies.papers_logistic_softmax:"
_LIKELIHOODS = "workbench.studies.papers_likelihoods:"
_IMAGES = "workbench.studies.images:"

EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment",
    [
        Experiment(
            "errata",
            "workbench.studies.papers_errata:errata",
            "Formulas of the papers that need a correction",
            "Printed side, right side, and the number that shows it.",
            paper="000-004",
            quick="seconds",
            full="seconds",
        ),
        Experiment(
            "lmgp-table1",
            _LARGE_MARGIN + "table1",
            "Mean ranks of three GP classifiers on 68 data sets",
            "Large-margin GP, one-vs-rest Bayesian SVM and SVGP; SVM and others beyond the paper.",
            paper="000 table 1, 003 table 1",
            quick="30 min",
            full="about 6 h on 2 cores",
        ),
        Experiment(
            "lmgp-fig2",
            _LARGE_MARGIN + "fig2",
            "Accuracy set by set, pair by pair",
            "From the runs of lmgp-table1.",
            paper="000 figure 2, 003 figure 2",
            quick="30 min, or seconds after lmgp-table1",
            full="as lmgp-table1",
        ),
        Experiment(
            "lmgp-fig3",
            _LARGE_MARGIN + "fig3",
            "Training times relative to the large-margin GP",
            "From the runs of lmgp-table1.",
            paper="000 figure 3, 003 figure 3",
            quick="30 min, or seconds after lmgp-table1",
            full="as lmgp-table1",
        ),
        Experiment(
            "lmgp-fig5",
            _LARGE_MARGIN + "fig5",
            "Latent functions and probabilities on a line, against an SVM's",
            "Three classes in one dimension: what the model says where no data are.",
            paper="003 figure 5",
            quick="seconds",
            full="seconds",
        ),
        Experiment(
            "lmgp-active",
            _ACTIVE + "active",
            "Asking by variation ratio, entropy, margin or at random on 68 data sets",
            "One label a class, 100 questions; with 4 and with 64 inducing points.",
            paper="000 figure 5, 003 figure 6",
            quick="30 min",
            full="about 20 h on 2 cores",
        ),
        Experiment(
            "bsvm-table1",
            _BSVM + "table1",
            "Error, Brier score and time on seven Rätsch sets",
            "Stochastic Bayesian SVM, ECM, Gaussian process and SVM with Platt's scaling, 10-fold.",
            paper="001 table 1",
            full="about 3 h",
        ),
        Experiment(
            "bsvm-fig1",
            _BSVM + "fig1",
            "Error against training time on waveform",
            "Each method measured after growing amounts of work.",
            paper="001 figure 1",
            full="about 30 min",
        ),
        Experiment(
            "bsvm-fig2",
            _BSVM + "fig2",
            "The length scale found by the bound against a grid search",
            "Type-II learning, and the validation loss of every length scale.",
            paper="001 figure 2",
            full="about 30 min",
        ),
        Experiment(
            "bsvm-fig3",
            _BSVM + "fig3",
            "How many inducing points, and which",
            "k-means++ against a random subset; MNIST 3 against 5 in place of USPS.",
            paper="001 figure 3",
            full="about 30 min",
        ),
        Experiment(
            "bsvm-susy",
            _BSVM + "susy",
            "The Bayesian SVM on SUSY",
            "AUC, Brier score and time.",
            paper="001 section 5.2",
            full="minutes; needs the full file",
        ),
        Experiment(
            "lsm-fig3",
            _LIKELIHOODS + "fig3",
            "Confidence and reliability of four likelihoods",
            "The toy at noise .5, beside the exact Bayes rule.",
            paper="002 figure 3",
            quick="seconds",
            full="seconds",
        ),
        Experiment(
            "lsm-fig4",
            _LIKELIHOODS + "fig4",
            "Error, likelihood and calibration against the noise",
            "Six likelihoods and the exact Bayes line.",
            paper="002 figure 4",
            quick="1 min",
            full="5 min",
        ),
        Experiment(
            "lsm-fig5",
            _LIKELIHOODS + "fig5",
            "Variational inference against Gibbs sampling",
            "Plain, augmented and mean-field on wine.",
            paper="002 figure 5",
            quick="1 min",
            full="5 min",
        ),
        Experiment(
            "lsm-fig6",
            _LIKELIHOODS + "fig6",
            "Inducing points, shared and own hyperparameters",
            "Likelihood and training time on shuttle.",
            paper="002 figure 6",
            full="about 2 h",
        ),
        Experiment(
            "lsm-fig8",
            _LIKELIHOODS + "fig8",
            "Probabilities as red, green and blue",
            "Four likelihoods and the exact rule over the plane.",
            paper="002 figure 8",
            quick="seconds",
            full="seconds",
        ),
        Experiment(
            "gwi-classification",
            _LIKELIHOODS + "gwi",
            "Gaussian Wasserstein inference as a classifier",
            "Toy, wine and digits; as printed, and weighted and tempered.",
            paper="004",
            quick="1 min",
            full="5 min",
        ),
        Experiment(
            "lsm-fig7",
            _SOFTMAX + "fig7",
            "Error and log-likelihood against training time",
            "Logistic-softmax against robust-max and Heaviside, five large sets.",
            paper="002 figure 7",
            full="about 3 h",
        ),
        Experiment(
            "lmgp-fig4",
            _IMAGES + "fig4",
            "LMGP-DNN against a CNN: accuracy and training time",
            "The papers' networks on MNIST and on a JPEG copy of CIFAR-10.",
            paper="000 figure 4, 003 figure 4",
            quick="10 min",
            full="about 20 h on 2 cores, most of it CIFAR-10",
        ),
        Experiment(
            "lmgp-adversarial",
            _IMAGES + "adversarial",
            "Attacked images: accuracy, and detection by the variation ratio",
            "FGSM as in the papers; PGD, an adaptive attack, transfer, noise and Fashion-MNIST beyond them.",
            paper="000 figure 6, 003 figure 7",
            quick="10 min",
            full="about 5 h on 2 cores",
        ),
        Experiment(
            "gwi-images",
            _IMAGES + "gwi",
            "Gaussian Wasserstein inference with a CNN mean",
            "Accuracy and calibration beside LMGP-DNN and the CNN.",
            paper="notes 004",
            quick="10 min",
            full="about 1 h",
        ),
    ],
)


@dataclass
class Context:
    """What an experiment is given.

    Attributes:
        name: of the experiment.
        folder: of its report; files of its own may go there.
        cache: folder of finished parts, shared by experiments.
        quick: whether caps for a few minutes are wanted.
        max_rows: at most this many rows of any data set, or None.
        workers: processes for parts that are independent.
        progress: (fraction, message) for whoever watches.
        should_stop: asked between parts.
        caps: what was capped; a report takes them over.
    """

    name: str
    folder: Path
    cache: Path
    quick: bool = False
    max_rows: int | None = None
    workers: int = 1
    progress: Progress = lambda fraction, message: None
    should_stop: Callable[[], bool] = lambda: False
    caps: list[str] = field(default_factory=list)

    def cap(self, what: str, full: T, quick: T) -> T:
        """A setting that is smaller in a quick run; says so in the report.

        Args:
            what: such as "seeds".
            full: the paper's value.
            quick: the value for `--quick`.

        Returns:
            The one to use.
        """
        if not self.quick or full == quick:
            return full
        self.caps.append(f"{what}: {quick} instead of {full}")
        return quick

    def rows(self, quick: int) -> int | None:
        """The cap on rows: `--max-rows`, else `quick` in a quick run, else None; said in the report."""
        limit = self.max_rows if self.max_rows is not None else quick if self.quick else None
        note = f"at most {limit:,} rows of a data set" if limit else ""
        if note and note not in self.caps:
            self.caps.append(note)
        return limit

    def parts(
        self,
        group: str,
        keys: Sequence[Mapping[str, Any]],
        function: Callable[..., Any],
        describe: Callable[[Mapping[str, Any]], str] = str,
    ) -> list[Any]:
        """Compute `function(**key)` for every key, once ever: finished parts are kept on disk.

        Args:
            group: experiments that name the same group share parts.
            keys: JSON documents, the arguments; all that a part depends on.
            function: at module level (it may run in another process), returning a JSON document.
            describe: a key in few words, for progress.

        Returns:
            A result a key, in order.

        Raises:
            Cancelled: `should_stop` said so; what is finished stays.
        """
        kept = _Kept(self.cache / f"{group}.jsonl")
        names = [json.dumps(dict(key), sort_keys=True) for key in keys]
        open_ones = [i for i, name in enumerate(names) if name not in kept.values]
        done = len(keys) - len(open_ones)

        def told(index: int, result: Any) -> None:
            nonlocal done
            kept.add(names[index], result)
            done += 1
            self.progress(done / max(len(keys), 1), describe(keys[index]))

        if self.workers > 1 and len(open_ones) > 1:
            from workbench.studies.workers import spread

            jobs = [dict(keys[i]) for i in open_ones]
            for at, result in spread(function, jobs, self.workers, should_stop=self.should_stop):
                told(open_ones[at], result)
        else:
            for index in open_ones:
                if self.should_stop():
                    raise Cancelled(self.name)
                told(index, function(**keys[index]))
        return [kept.values[name] for name in names]


class _Kept:
    """Finished parts, a JSON line each; a line cut by a kill is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            if whole != data:
                path.write_bytes(whole)
            for line in whole.decode().splitlines():
                key, value = json.loads(line)
                self.values[key] = value

    def add(self, key: str, value: Any) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps([key, value]).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.values[key] = value


def reproduce(
    name: str,
    out: Path | str = "reproduction",
    *,
    quick: bool = False,
    max_rows: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> tuple[Report, Path]:
    """Run one of the papers' experiments and write its report.

    Args:
        name: in `EXPERIMENTS`.
        out: folder; the report goes to a folder of its name in it, finished parts to `cache` in it,
            so that the same call goes on after a kill.
        quick: caps for a few minutes.
        max_rows: at most this many rows of any data set.
        workers: processes.
        progress: called with (fraction, message).
        should_stop: True ends it between two parts.

    Returns:
        The report and the path of report.md.

    Raises:
        InputError: no such experiment, or data that are not there (with how to get them).
        Cancelled: told to stop.
    """
    entry = EXPERIMENTS[name]
    if max_rows is not None and max_rows < 50:
        raise InputError(f"--max-rows must be at least 50; got {max_rows}.")
    if workers < 1:
        raise InputError(f"The number of workers must be at least 1; got {workers}.")
    place = Path(out)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; --out takes a folder.")
    context = Context(name, place / name, place / "cache", quick, max_rows, workers)
    if progress is not None:
        context.progress = progress
    if should_stop is not None:
        context.should_stop = should_stop
    began = perf_counter()
    report: Report = entry.load()(context)
    report.caps = list(dict.fromkeys([*context.caps, *report.caps]))
    report.cost = report.cost or entry.full
    command = f"workbench reproduce {name}" + (" --quick" if quick else "")
    command += f" --max-rows {max_rows}" if max_rows is not None else ""
    path = write_report(report, place / name, name=name, command=command, seconds=perf_counter() - began)
    return report, path
