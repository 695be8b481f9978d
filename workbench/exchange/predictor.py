"""A fitted model as a folder that predicts with NumPy alone: `model.npz`, `predict.py` and a README.

`predict.py` is `workbench.numpy_predictor` as it stands there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import numpy_predictor
from workbench.arrays import Array, Floats
from workbench.classifiers import protocols
from workbench.classifiers.baselines import LogisticRegressionClassifier
from workbench.classifiers.large_margin import LargeMarginClassifier
from workbench.classifiers.logistic_softmax import LogisticSoftmaxClassifier
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.representation import Representation
from workbench.classifiers.svgp import SVGPClassifier
from workbench.engine.kernels import GPflowKernel
from workbench.errors import InputError
from workbench.exchange.bundles import may_be_written
from workbench.exchange.models import SavedModel, kept_of_pool
from workbench.guesses.names import Terms, descriptions
from workbench.pools.features.numbers import ImageFeatureMap, NumberMap
from workbench.pools.features.pieces import LONGEST, PiecesFeatureMap
from workbench.pools.features.shapes import ShapesFeatureMap
from workbench.pools.features.table import NumberColumn, TableFeatureMap, TextColumn
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.formats.npy_files import arrays_to_bytes
from workbench.pools.neighbours.graph import STRENGTHS
from workbench.pools.pool import FeatureMap
from workbench.writing import write_whole

if TYPE_CHECKING:
    from workbench.sessions.session import Session

CAN = "large-margin, logistic-softmax, svgp-softmax and logistic-regression"
_WORDS, _NAMES_WORDS = r"\b\w+\b", r"\b\w\w+\b"  # of features; scikit-learn's own, of guesses


class _Made:
    """Content of the folder, as it comes together.

    Attributes:
        document: plain values.
        arrays: of the NPZ.
        reads: the kind of rows, for the README.
    """

    def __init__(self, saved: SavedModel) -> None:
        self.document: dict[str, Any] = {"classes": list(saved.classes)}
        self.arrays: dict[str, Array] = {}
        self.reads = "an array [n, D]"

    def terms(
        self, key: str, terms: tuple[str, ...], weights: Floats, pattern: str, dtype: str = "float64"
    ) -> dict[str, Any]:
        """The description of a block of terms."""
        self.document.setdefault("place", {})[key] = {term: i for i, term in enumerate(terms)}
        self.arrays[f"{key}.weights"] = np.asarray(weights, dtype=np.float64)
        return {
            "terms": key,
            "weights": f"{key}.weights",
            "axes": f"{key}.axes",
            "scales": f"{key}.scales",
            "pattern": pattern,
            "longest": LONGEST,
            "dtype": dtype,
        }


def write_predictor(folder: Path | str, saved: SavedModel) -> Path:
    """Write a model as a folder that needs NumPy alone: model.npz, predict.py, README.md.

    Args:
        folder: new or empty.
        saved: the model (`load_model`, or `predictor_of` a session).

    Returns:
        The folder.

    Raises:
        InputError: a classifier, features or a guess that NumPy alone cannot replay, or a folder that holds
            something.
    """
    place = Path(folder)
    export = _made(saved)
    if not may_be_written(place):
        raise InputError(f"{place} is there already; choose another folder.")
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(export.document, ensure_ascii=False).encode()
    arrays = export.arrays | {"document": np.frombuffer(text, dtype=np.uint8)}
    write_whole(place / "model.npz", arrays_to_bytes(arrays))
    write_whole(place / "predict.py", inspect.getsource(numpy_predictor).encode())
    write_whole(place / "README.md", _readme(export, saved).encode())
    return place


def predictor_of(session: Session) -> SavedModel:
    """The present model of a project as `write_predictor` takes it.

    Raises:
        InputError: there is no model yet.
    """
    model = session.model
    if model is None:
        raise InputError(
            "There is no model to take away yet: the first fit comes with labels of two classes."
        )
    settings = session.fits.made_with(model.number)
    return SavedModel(
        str(settings["classifier"]),
        model.classes,
        model.estimator,
        n_labelled=model.n_labelled,
        **kept_of_pool(session.pool, settings["guess"], model.classes, model.seen),
    )


def _made(saved: SavedModel) -> _Made:
    export = _Made(saved)
    if saved.n_labelled == 0 or len(saved.classes) < 2:
        raise InputError(
            "A model without labels, or of one class, predicts nothing: label items of two classes."
        )
    export.document["reader"] = _features(export, saved.feature_map)
    _guess(export, saved)
    if saved.view is not None:
        view = saved.view
        strength = STRENGTHS[view.name]
        export.document |= {"stay": strength.stay, "beside": strength.beside}
        export.arrays |= {
            "layers": view.layers,
            "degrees": view.degrees,
            "lean_shift": view.shift,
            "lean_scale": view.scale,
            "lean_clip": np.asarray(view.clip),
            "lean_size": view.size,
        }
    _classifier(export, saved)
    export.document["encoding"] = saved.reading.get("encoding", "cp1252")
    return export


# ---------------------------------------------------------------------- features


def _features(export: _Made, feature_map: FeatureMap) -> str:
    """Take the way from rows to features along; the name of its function."""
    if isinstance(feature_map, TableFeatureMap):
        export.document["recipe"] = [
            _column(export, i, e, feature_map.decimal) for i, e in enumerate(feature_map.recipe)
        ]
        export.reads = "a CSV file with the columns " + ", ".join(map(repr, feature_map.sources[:12]))
        if feature_map.sources[12:]:
            export.reads += f" and {len(feature_map.sources) - 12} more"
        return "table"
    if isinstance(feature_map, NumberMap):
        export.document |= {"names": list(feature_map.names), "factor": feature_map.factor}
        export.reads = (
            f"numbers in {len(feature_map.names)} columns: a CSV file with their names, or an NPY file [n, D]"
        )
        return "plain"
    if isinstance(feature_map, PiecesFeatureMap):
        export.document |= {"blocks": _text_blocks(export, "text", feature_map), "column": feature_map.column}
        export.reads = f"a CSV file with the column {feature_map.column!r}"
        return "texts"
    if isinstance(feature_map, ShapesFeatureMap):
        export.document |= {
            "canvas": list(feature_map.canvas),
            "colour": feature_map.colour,
            "white": feature_map.white,
            "stride": feature_map.stride,
            "copies": feature_map.n_copies,
        }
        for name in ("patch_mean", "whitening", "centres", "mean", "axes"):
            export.arrays[name] = np.asarray(getattr(feature_map, name))
        for i, block in enumerate(feature_map.blocks):
            export.arrays |= {f"block{i}.{j}": np.asarray(values) for j, values in enumerate(block)}
        export.reads = f"an NPY file of images [n, H, W] or [n, H, W, 3], white at {feature_map.white:g}"
        return "shapes"
    if isinstance(feature_map, ImageFeatureMap):
        export.document |= {"shape": list(feature_map.shape), "white": feature_map.white}
        size = " x ".join(map(str, feature_map.shape))
        export.reads = f"an NPY file of images [n, {size}], white at {feature_map.white:g}"
        return "pixels"
    if isinstance(feature_map, VectorFeatureMap) and len(feature_map.mean):
        none = np.zeros((0, 0))
        export.arrays |= {
            "vector_mean": feature_map.mean,
            "vector_axes": none if feature_map.axes is None else feature_map.axes,
        }
        export.reads = (
            f"an NPY file of vectors [n, {len(feature_map.mean)}] of the encoder behind {feature_map.source}"
        )
        return "vectors"
    raise InputError(
        "Its features come from an encoder or a network, which NumPy alone cannot run. Save the model "
        'instead (session.export("model", FOLDER), or --format bundle): workbench predict reads that.'
    )


def _column(export: _Made, number: int, column: Any, decimal: str) -> dict[str, Any]:
    """One column's entry of the recipe."""
    entry: dict[str, Any] = column.to_json()
    if isinstance(column, TextColumn):
        blocks = _text_blocks(export, f"column{number}", column.map)
        return {"by": "text_column", "name": column.name, "scale": column.scale, "blocks": blocks}
    if isinstance(column, NumberColumn):
        entry["sign"] = column.decimal or decimal
    entry["by"] = "numbers" if isinstance(column, NumberColumn) else "categories"
    return entry


def _text_blocks(export: _Made, key: str, feature_map: PiecesFeatureMap) -> list[dict[str, Any]]:
    """The blocks of terms of a map of texts, with their axes."""
    blocks, at = [], len(feature_map.words)
    for name, terms, part, pattern in (
        ("words", feature_map.words, slice(0, at), _WORDS),
        ("pieces", feature_map.pieces, slice(at, None), ""),
    ):
        if terms:
            blocks.append(
                export.terms(f"{key}.{name}", terms, feature_map.weights[part], pattern, dtype="float32")
            )
            export.arrays[f"{key}.{name}.axes"] = np.ascontiguousarray(feature_map.levels[:, part].T)
            export.arrays[f"{key}.{name}.scales"] = feature_map.scales[part]
    return blocks


def _guess(export: _Made, saved: SavedModel) -> None:
    """Take along what the model begins with, if anything."""
    guesses = saved.guesses
    weights = protocols.mean_weights_of(saved.estimator)
    if guesses is None or weights is None:
        return
    sources = [
        (source, float(w))
        for source, w in zip(guesses.sources, weights, strict=True)
        if w and source["deviation"] > 0
    ]
    if not sources:
        return
    for source, _ in sources:
        if source["source"] != "names" or guesses.terms is None:
            raise InputError(
                f"The model begins with the guess {source['source']!r}, which a predictor cannot make on new "
                "rows. Take it off (workbench guess PROJECT --off SOURCE), let the model fit again, "
                'and export then; or save the model (session.export("model", FOLDER)), which keeps it.'
            )
    terms: Terms = guesses.terms  # type: ignore[assignment]
    described = descriptions(saved.classes, guesses.guidance)
    blocks = []
    for name, words, weighed, pattern in (
        ("words", terms.words, terms.word_weights, _NAMES_WORDS),
        ("pieces", terms.pieces, terms.piece_weights, ""),
    ):
        if not words:
            continue
        block = export.terms(f"guess.{name}", words, weighed, pattern)
        of_classes = np.zeros((len(words), len(described)))
        m = {"place": {block["terms"]: {t: i for i, t in enumerate(words)}}, block["weights"]: weighed}
        for c, text in enumerate(described):
            at, w = numpy_predictor.weighted(m, block | {"longest": None}, text)
            of_classes[at, c] = w
        export.arrays[block["axes"]] = of_classes
        blocks.append(block)
    export.document |= {
        "guess": blocks,
        "guess_weight": sum(w / float(source["deviation"]) for source, w in sources),
    }
    export.arrays["guess_telling"] = np.array([bool(text) for text in described])
    if "column" not in export.document:
        raise InputError("The guess of names is of texts; these rows are none. Save the model instead.")


# ---------------------------------------------------------------------- the classifier


def _classifier(export: _Made, saved: SavedModel) -> None:
    """Take the model along: from features to chances."""
    estimator = saved.estimator
    if isinstance(estimator, LogisticRegressionClassifier):
        linear = estimator.linear_
        _scaling(export, linear.shift, linear.scale, linear.clip, linear.representation)
        export.document |= {"share": linear.share, "least": linear.least}
        export.arrays |= {
            "coefficients": linear.coefficients,
            "intercept": linear.intercept,
            "present": linear.present,
        }
        return
    likelihood = getattr(estimator, "likelihood", "")
    softmax = isinstance(estimator, SVGPClassifier) and likelihood == "softmax"
    logistic = isinstance(estimator, LogisticSoftmaxClassifier)
    if not (isinstance(estimator, LargeMarginClassifier) or softmax or logistic):
        raise InputError(
            f"{saved.name} cannot be taken away for NumPy alone; {CAN} can. Save the model "
            'instead (session.export("model", FOLDER), or --format bundle): workbench predict reads that.'
        )
    _latents(export, estimator.predictor_)
    if softmax or logistic:
        folded = estimator.predictor_.folded
        of_class = [
            np.repeat(np.arange(len(folded.ranks)), ranks) for ranks in (folded.ranks, folded.raise_ranks)
        ]
        identity = np.eye(len(folded.ranks))
        export.arrays |= {
            "directions": np.hstack([folded.factors, folded.raises]),
            "of_class": np.vstack([identity[of_class[0]], -identity[of_class[1]]]),
        }
        export.document |= {"power": float(estimator.power_), "logistic": logistic}
    else:
        export.document["beta"] = float(estimator.beta_)


def _latents(export: _Made, predictor: Predictor) -> None:
    if isinstance(predictor.kernel, GPflowKernel) or predictor.binary:
        raise InputError(
            "Its kernel is a GPflow object, which NumPy alone cannot run. Use a kernel by its name, or save "
            'the model (session.export("model", FOLDER)).'
        )
    _scaling(export, predictor.shift, predictor.scale, predictor.clip, predictor.representation)
    kernel = predictor.kernel.to_arrays()
    offset = float(kernel.get("offset", 0.0))
    variance = float(kernel["variance"])
    values: dict[str, Any] = {"kernel": str(kernel["name"]), "variance": variance, "offset": offset}
    if values["kernel"] == "linear":  # a slope and a constant
        values |= {"kernel": "exponential", "variance": 0.0, "slope": variance, "offset": offset + variance}
    export.document |= {"slope": float(kernel.get("slope", 0.0))} | values
    export.arrays |= {
        "length": np.asarray(kernel.get("length_scale", 1.0)),
        "points": predictor.points,
        "weights": predictor.mean_weights,
        "mean_offset": predictor.mean_offset,
    }


def _scaling(
    export: _Made, shift: Floats, scale: Floats, clip: float, representation: Representation | None
) -> None:
    export.arrays |= {"shift": shift, "scale": scale, "clip": np.asarray(clip)}
    if representation is None:
        return
    if representation.name == "one-hot":
        export.arrays |= {"columns": representation.columns, "values": representation.values}
    else:
        export.arrays |= {"knots": representation.knots, "scores": representation.scores}


# ---------------------------------------------------------------------- the files


def _readme(export: _Made, saved: SavedModel) -> str:
    """Inputs and outputs."""
    classes: Mapping[int, str] = dict(enumerate(saved.classes))
    names = ", ".join(str(name) for name in list(classes.values())[:30])
    more = f" and {len(classes) - 30} more" if len(classes) > 30 else ""
    return f"""# A model to take away

{saved.name}, fitted on {saved.n_labelled:,} labels of {saved.pool}. Python 3.11 and NumPy 2 are all it needs.

    python predict.py ROWS > PREDICTIONS.csv

**In:** {export.reads}. Other columns are left alone. Cells that are no number count as empty, and
are counted; where all of several are none, or have another decimal sign, and at a category that the pool
never held it ends with a sentence. What is no UTF-8 is read as {export.document["encoding"]}.

**Out:** a CSV with `row` (from 0), `prediction`, `confidence` and `p(CLASS)` of each of the {len(classes)}
classes: {names}{more}.

From Python, in this folder:

    import predict
    P = predict.predict_proba(rows)   # [n, C], columns as in predict.load()["classes"]

`rows` are what the file holds: a list of {{column: cell}} for a CSV, an array for an NPY.
The numbers are those of Workbench to 0.00001. `model.npz` holds plain arrays; nothing in it is executed.
"""
