"""Classifiers with honest uncertainty, by name. Listing them imports no model."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.errors import InputError
from workbench.registry import Entry, Registry, load_own, plugins, signature_of

if TYPE_CHECKING:
    from workbench.classifiers.base import BaseBayesianClassifier as BaseBayesianClassifier
    from workbench.classifiers.foreign import as_classifier as as_classifier
    from workbench.classifiers.large_margin import LargeMarginClassifier as LargeMarginClassifier
    from workbench.classifiers.predictor import Predictor as Predictor


@dataclass(frozen=True)
class ClassifierEntry(Entry):
    """One registered classifier.

    Attributes:
        source: where the model comes from.
        cost: what a fit costs, in words.
        has_latent: whether `predict_latent` works (variation ratio needs it).
        gradients: whether it is a function of pixels that an attacker can follow downhill.
        image_only: whether it needs images.
        binary_only: whether it refuses more than two classes.
        advice: of those to begin with: when to take it, in a line for people.
    """

    source: str = ""
    cost: str = ""
    has_latent: bool = True
    gradients: bool = False
    image_only: bool = False
    binary_only: bool = False
    advice: str = ""


_HERE = "workbench.classifiers"
ENTRY_POINT_GROUP = "workbench.classifiers"


def _described(name: str, target: str, thing: Any) -> ClassifierEntry:
    """The entry of another package's classifier that brings none."""
    text = (inspect.getdoc(thing) or "").partition("\n")[0] if thing is not None else ""
    return ClassifierEntry(
        name,
        target,
        name,
        text or f"A classifier of {target.partition('.')[0]}.",
        source=target,
        has_latent=hasattr(thing, "predict_latent"),
    )


CLASSIFIERS: Registry[ClassifierEntry] = Registry(
    "classifier",
    [
        ClassifierEntry(
            "large-margin",
            f"{_HERE}.large_margin:LargeMarginClassifier",
            "Large-margin GP",
            "Multi-class Bayesian SVM with closed-form sweeps; fast, warm starts, good first choice.",
            source="Wistuba & Rawat 2018, 2019",
            cost="about 10 ms a warm fit at 100 labels, a tenth of a second at 1,500; some ten times that in "
            "the rounds that choose its geometry (every ten labels; choice=fixed for none)",
            gradients=True,
            advice="The one to begin with: few labels go far, and it says how sure it is.",
        ),
        ClassifierEntry(
            "bayesian-svm",
            f"{_HERE}.bayesian_svm:BayesianSVMClassifier",
            "Bayesian SVM",
            "Binary Bayesian SVM with inducing points; one-vs-rest for more classes.",
            source="Wenzel et al. 2017",
            cost="like the large-margin GP",
            gradients=True,
        ),
        ClassifierEntry(
            "bayesian-svm-batch",
            f"{_HERE}.bayesian_svm:BatchBayesianSVMClassifier",
            "Bayesian SVM, full GP",
            "The Bayesian SVM without inducing points, for small data.",
            source="Wenzel et al. 2017, batch form",
            cost="cubic in the number of labels",
            gradients=True,
        ),
        ClassifierEntry(
            "bayesian-svm-linear",
            f"{_HERE}.bayesian_svm:LinearBayesianSVMClassifier",
            "Bayesian SVM, linear",
            "The Bayesian SVM on the features themselves.",
            source="Wenzel et al. 2017, linear form",
            cost="linear in the number of labels",
        ),
        ClassifierEntry(
            "logistic-softmax",
            f"{_HERE}.logistic_softmax:LogisticSoftmaxClassifier",
            "Logistic-softmax GP",
            "Conjugate multi-class GP with calibrated probabilities on overlapping data.",
            source="Galy-Fajou et al. 2019",
            cost="15 to 40 closed-form sweeps",
            gradients=True,
            advice="Slower, with honest chances where classes overlap.",
        ),
        ClassifierEntry(
            "logistic-softmax-gibbs",
            f"{_HERE}.logistic_softmax:LogisticSoftmaxGibbsClassifier",
            "Logistic-softmax GP, Gibbs",
            "Exact samples of the same model, for small data.",
            source="Galy-Fajou et al. 2019, Gibbs sampler",
            cost="cubic in the number of labels, for every sample",
            gradients=True,
        ),
        ClassifierEntry(
            "svgp-softmax",
            f"{_HERE}.svgp:SVGPClassifier",
            "SVGP, softmax",
            "GPflow's sparse variational GP with a softmax likelihood.",
            options={"likelihood": "softmax"},
            source="Hensman et al. 2015; GPflow",
            cost="about ten sweeps: under a second at 1,500 labels",
            gradients=True,
        ),
        ClassifierEntry(
            "svgp-robust-max",
            f"{_HERE}.svgp:SVGPClassifier",
            "SVGP, robust-max",
            "GPflow's sparse variational GP with the robust-max likelihood.",
            options={"likelihood": "robust-max"},
            source="Hernández-Lobato et al. 2011; GPflow",
            cost="15 to 40 sweeps: about a second at 1,500 labels",
            gradients=True,
        ),
        ClassifierEntry(
            "svgp-heaviside",
            f"{_HERE}.svgp:SVGPClassifier",
            "SVGP, Heaviside with noise",
            "Sparse variational GP with a multinomial probit likelihood.",
            options={"likelihood": "heaviside"},
            source="Girolami & Rogers 2006; GPflow",
            cost="about ten sweeps: a few seconds at 1,500 labels",
            gradients=True,
        ),
        ClassifierEntry(
            "wasserstein",
            f"{_HERE}.wasserstein:WassersteinClassifier",
            "Gaussian Wasserstein",
            "A network's mean with a GP's uncertainty, matched by the Wasserstein distance.",
            source="the GWI notes; Wild et al. 2022",
            cost="a few hundred network steps: seconds",
            gradients=True,
        ),
        ClassifierEntry(
            "large-margin-net",
            f"{_HERE}.networks:LargeMarginNetClassifier",
            "Large-margin GP on a network",
            "A convolutional network's features under a large-margin GP, trained together.",
            source="Wistuba & Rawat 2018, 2019: LMGP-DNN",
            cost="minutes",
            image_only=True,
            gradients=True,
        ),
        ClassifierEntry(
            "softmax-net",
            f"{_HERE}.networks:SoftmaxNetClassifier",
            "Softmax network",
            "The same network with a softmax output, for comparison.",
            source="baseline of Wistuba & Rawat 2018, 2019",
            cost="minutes",
            has_latent=False,
            image_only=True,
            gradients=True,
        ),
        ClassifierEntry(
            "svm-platt",
            f"{_HERE}.baselines:CalibratedSVMClassifier",
            "SVM, calibrated",
            "scikit-learn's RBF SVM with cross-validated sigmoid calibration.",
            source="scikit-learn",
            cost="cross-validation inside",
            has_latent=False,
        ),
        ClassifierEntry(
            "logistic-regression",
            f"{_HERE}.baselines:LogisticRegressionClassifier",
            "Logistic regression",
            "scikit-learn's logistic regression on standardised features.",
            source="scikit-learn",
            cost="milliseconds",
            has_latent=False,
            advice="The quickest and simplest; to compare with.",
        ),
        ClassifierEntry(
            "gp-laplace",
            f"{_HERE}.baselines:LaplaceGPClassifier",
            "GP, Laplace",
            "scikit-learn's GP classifier with the Laplace approximation.",
            source="Rasmussen & Williams 2006; scikit-learn",
            cost="cubic in the number of labels",
            has_latent=False,
        ),
    ],
    lambda: plugins(ENTRY_POINT_GROUP, _described),
)


def sees_pixels(name: str) -> bool:
    """True if a classifier learns its features from the pixels of images, so that it is given no others.

    Args:
        name: as for `make_classifier`.
    """
    return name in CLASSIFIERS and CLASSIFIERS[name].image_only


def title_of(name: str) -> str:
    """A classifier's title for people; one that has no entry is called as it was named."""
    entry = CLASSIFIERS.get(name)
    return name if entry is None else entry.title


def make_classifier(name: str, **options: Any) -> Any:
    """An unfitted classifier by name.

    Args:
        name: a name in `CLASSIFIERS`, or "package.module:Class" of your own.
        options: constructor options.

    Returns:
        The estimator; one of another package is wrapped by `as_classifier`.

    Raises:
        InputError: no such name, a name of code that came from a file, something that is no classifier,
            or an option the model does not have (the message lists those it has).
    """
    fixed: dict[str, Any] = {}
    if ":" in name:
        target = load_own(name, "classifier", "fit", "predict_proba")
    else:
        entry = CLASSIFIERS[name]
        fixed = dict(entry.options)
        target = entry.load()
    parameters = signature_of(target).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    option_names = [p for p in parameters if p not in fixed]
    unknown = [] if open_ended else [option for option in options if option not in option_names]
    if unknown:
        raise InputError(
            f"Classifier {name!r} has no option {unknown[0]!r}. It has: {', '.join(sorted(option_names))}."
        )
    classifier = target(**fixed, **options)
    if name in CLASSIFIERS.own:
        return classifier
    from workbench.classifiers.foreign import as_classifier

    return as_classifier(classifier)


_LAZY = {entry.target.partition(":")[2]: entry.target.partition(":")[0] for entry in CLASSIFIERS.own.values()}
_LAZY |= {
    "BaseBayesianClassifier": f"{_HERE}.base",
    "Predictor": f"{_HERE}.predictor",
    "as_classifier": f"{_HERE}.foreign",
}

# The estimators themselves are left out: a star import must not pull in scikit-learn.
__all__ = [
    "CLASSIFIERS",
    "ClassifierEntry",
    "Geometry",
    "Latent",
    "make_classifier",
    "sees_pixels",
    "title_of",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
