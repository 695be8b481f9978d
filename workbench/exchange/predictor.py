"""A fitted model as a folder that predicts with NumPy alone: `model.npz`, `predict.py` and a README.

`predict.py` holds the functions of `predictor_parts` that the model needs, so that it can be read in one go.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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
from workbench.exchange import predictor_parts as parts
from workbench.exchange.bundles import may_be_written
from workbench.exchange.models import SavedModel, saved_guesses
from workbench.guesses.names import Terms, descriptions
from workbench.pools.features.numbers import NumberMap
from workbench.pools.features.pieces import LONGEST, PiecesFeatureMap
from workbench.pools.features.pixels import ImageFeatureMap
from workbench.pools.features.shapes import ShapesFeatureMap
from workbench.pools.features.table import DateColumn, NumberColumn, TableFeatureMap, TextColumn
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.neighbours.graph import STRENGTHS
from workbench.pools.pool import FeatureMap
from workbench.store.state import arrays_to_bytes
from workbench.writing import write_whole

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.session import Session

CAN = "large-margin, logistic-softmax, svgp-softmax and logistic-regression"
_WORDS, _NAMES_WORDS = r"\b\w+\b", r"\b\w\w+\b"  # of features; scikit-learn's own, of guesses
_ONE_LINE = 110


class _Made:
    """Content of the folder, as it comes together.

    Attributes:
        document: plain values.
        arrays: of the NPZ.
        parts: names of the functions, in order.
        steps: lines of `chances`, which turn features X into chances.
    """

    def __init__(self, saved: SavedModel) -> None:
        self.document: dict[str, Any] = {"classes": list(saved.classes)}
        self.arrays: dict[str, Array] = {}
        self.parts: list[str] = []
        self.steps: list[str] = []
        self.reads = "an array [n, D]"
        self.example: Any = None

    def use(self, *names: str) -> None:
        """Take functions along."""
        self.parts += [name for name in names if name not in self.parts]

    def terms(
        self, key: str, terms: tuple[str, ...], weights: Floats, pattern: str, dtype: str = "float64"
    ) -> dict[str, Any]:
        """The description of a block of terms."""
        self.use("weighted")
        self.document.setdefault("terms", {})[key] = list(terms)
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
    made = _made(saved)
    if not may_be_written(place):
        raise InputError(f"{place} is there already; choose another folder.")
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(made.document, ensure_ascii=False).encode()
    arrays = made.arrays | {"document": np.frombuffer(text, dtype=np.uint8)}
    write_whole(place / "model.npz", arrays_to_bytes(arrays))
    write_whole(place / "predict.py", _code(made, saved).encode())
    write_whole(place / "README.md", _readme(made, saved).encode())
    return place


def predictor_of(session: Session, model: FittedModel | None = None) -> SavedModel:
    """The model of a project as `write_predictor` takes it.

    Args:
        session: of the project.
        model: one of its fits; the present one unless given.

    Raises:
        InputError: there is no model yet.
    """
    model = session.model if model is None else model
    if model is None:
        raise InputError(
            "There is no model to take away yet: the first fit comes with labels of two classes."
        )
    chosen = session.made_with(model.number)
    return SavedModel(
        str(chosen["classifier"]),
        model.classes,
        model.estimator,
        session.pool.feature_map,
        model.n_labelled,
        session.pool.name,
        guesses=saved_guesses(session.pool, chosen["guess"], model.classes),
        view=None if model.seen is None else model.seen.view,
    )


def write_predictor_of(session: Session, folder: Path | str, model: FittedModel | None = None) -> Path:
    """`write_predictor` of the model of a project."""
    return write_predictor(folder, predictor_of(session, model))


def _made(saved: SavedModel) -> _Made:
    made = _Made(saved)
    if saved.n_labelled == 0 or len(saved.classes) < 2:
        raise InputError(
            "A model without labels, or of one class, predicts nothing: label items of two classes."
        )
    made.use("load")
    reader = _features(made, saved.feature_map)
    guided = _guess(made, saved)
    if saved.view is not None:
        made.use("smoothed")
        view = saved.view
        strength = STRENGTHS[view.name]
        made.document |= {"stay": strength.stay, "beside": strength.beside}
        made.arrays |= {
            "layers": view.layers,
            "degrees": view.degrees,
            "lean_shift": view.shift,
            "lean_scale": view.scale,
            "lean_clip": np.asarray(view.clip),
            "lean_size": view.size,
        }
        made.steps.append("X = smoothed(m, X)")
    _classifier(made, saved, " + guess" if guided else "")
    made.document["guided"] = guided
    made.document["reader"] = reader
    return made


# ---------------------------------------------------------------------- features


def _features(made: _Made, given: FeatureMap) -> str:
    """Take the way from rows to features along; the name of its function."""
    if isinstance(given, TableFeatureMap):
        made.document["recipe"] = [_column(made, i, e, given.decimal) for i, e in enumerate(given.recipe)]
        made.use("table")
        made.reads = "a CSV file with the columns " + ", ".join(map(repr, given.sources[:12]))
        if given.sources[12:]:
            made.reads += f" and {len(given.sources) - 12} more"
        return "table(m, rows)"
    if isinstance(given, NumberMap):
        made.document |= {"names": list(given.names), "factor": given.factor}
        made.use("plain")
        made.reads = (
            f"numbers in {len(given.names)} columns: a CSV file with their names, or an NPY file [n, D]"
        )
        return "plain(m, rows)"
    if isinstance(given, PiecesFeatureMap):
        made.document |= {"blocks": _text_blocks(made, "text", given), "column": given.column}
        made.use("texts", "cells_of")
        made.reads = f"a CSV file with the column {given.column!r}"
        return 'texts(m, m["blocks"], cells_of(m, rows))'
    if isinstance(given, ShapesFeatureMap):
        made.document |= {
            "canvas": list(given.canvas),
            "colour": given.colour,
            "white": given.white,
            "stride": given.stride,
            "copies": given.n_copies,
        }
        for name in ("patch_mean", "whitening", "centres", "mean", "axes"):
            made.arrays[name] = np.asarray(getattr(given, name))
        for i, block in enumerate(given.blocks):
            made.arrays |= {f"block{i}.{j}": np.asarray(values) for j, values in enumerate(block)}
        made.use(
            "resized", "copies_of", "standing_out", "on_canvas", "gradients", "patches", "unit", "shapes"
        )
        made.reads = f"an NPY file of images [n, H, W] or [n, H, W, 3], white at {given.white:g}"
        return "shapes(m, rows)"
    if isinstance(given, ImageFeatureMap):
        made.document |= {"shape": list(given.shape), "white": given.white}
        made.use("pixels")
        size = " x ".join(map(str, given.shape))
        made.reads = f"an NPY file of images [n, {size}], white at {given.white:g}"
        return "pixels(m, rows)"
    if isinstance(given, VectorFeatureMap) and len(given.mean):
        none = np.zeros((0, 0))
        made.arrays |= {"vector_mean": given.mean, "vector_axes": none if given.axes is None else given.axes}
        made.use("unit", "vectors")
        made.reads = f"an NPY file of vectors [n, {len(given.mean)}] of the encoder behind {given.source}"
        return "vectors(m, rows)"
    raise InputError(
        "Its features come from an encoder or a network, which NumPy alone cannot run. Save the model "
        "instead (session.save_model, or --format bundle): workbench predict reads that."
    )


def _column(made: _Made, number: int, given: Any, decimal: str) -> dict[str, Any]:
    """One column's entry of the recipe."""
    entry: dict[str, Any] = given.to_json()
    if isinstance(given, TextColumn):
        made.use("texts", "text_column")
        blocks = _text_blocks(made, f"column{number}", given.map)
        return {"type": "text", "name": given.name, "scale": given.scale, "blocks": blocks}
    if isinstance(given, NumberColumn):
        made.use(*(("zoneless", "day") if isinstance(given, DateColumn) else ("bare", "number")), "numbers")
        sign = given.decimal or decimal
        between = {",": ".", ".": ","}.get(sign, "")
        entry["between"] = between
        entry["grouped"] = (
            rf"[-+]?\d{{1,3}}(\{between}\d{{3}})+(\{sign}\d*)?([eE][-+]?\d+)?" if between else ""
        )
    else:
        made.use("categories")
    return entry


def _text_blocks(made: _Made, key: str, given: PiecesFeatureMap) -> list[dict[str, Any]]:
    """The blocks of terms of a map of texts, with their axes."""
    blocks, at = [], len(given.words)
    for name, terms, part, pattern in (
        ("words", given.words, slice(0, at), _WORDS),
        ("pieces", given.pieces, slice(at, None), ""),
    ):
        if terms:
            blocks.append(made.terms(f"{key}.{name}", terms, given.weights[part], pattern, dtype="float32"))
            made.arrays[f"{key}.{name}.axes"] = np.ascontiguousarray(given.levels[:, part].T)
            made.arrays[f"{key}.{name}.scales"] = given.scales[part]
    return blocks


def _guess(made: _Made, saved: SavedModel) -> bool:
    """Take what the model begins with along; whether it begins with anything."""
    guesses = saved.guesses
    weights = protocols.mean_weights_of(saved.estimator)
    if guesses is None or weights is None:
        return False
    used = [
        (one, float(w)) for one, w in zip(guesses.sources, weights, strict=True) if w and one["deviation"] > 0
    ]
    if not used:
        return False
    for one, _ in used:
        if one["source"] != "names" or guesses.terms is None:
            raise InputError(
                f"The model begins with the guess {one['source']!r}, which a predictor cannot make on new "
                "rows. Take it off (workbench guess PROJECT --off SOURCE), let the model fit again, "
                "and export then; or save the model (session.save_model), which keeps it."
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
        block = made.terms(f"guess.{name}", words, weighed, pattern)
        of_classes = np.zeros((len(words), len(described)))
        m = {"place": {block["terms"]: {t: i for i, t in enumerate(words)}}, block["weights"]: weighed}
        for c, text in enumerate(described):
            at, w = parts.weighted(m, block | {"longest": None}, text)
            of_classes[at, c] = w
        made.arrays[block["axes"]] = of_classes
        blocks.append(block)
    made.document |= {"guess": blocks, "guess_weight": sum(w / float(one["deviation"]) for one, w in used)}
    made.arrays["guess_telling"] = np.array([bool(text) for text in described])
    made.use("of_names", "cells_of")
    if "column" not in made.document:
        raise InputError("The guess of names is of texts; these rows are none. Save the model instead.")
    return True


# ---------------------------------------------------------------------- the classifier


def _classifier(made: _Made, saved: SavedModel, guess: str) -> None:
    """Take the model along: from features to chances."""
    estimator = saved.estimator
    if isinstance(estimator, LogisticRegressionClassifier):
        found = estimator.linear_
        _scaling(made, found.shift, found.scale, found.clip, found.representation)
        made.document |= {"share": found.share, "least": found.least}
        made.arrays |= {
            "coefficients": found.coefficients,
            "intercept": found.intercept,
            "present": found.present,
        }
        made.use("softmax", "regression")
        made.steps.append(f"return regression(m, scaled(m, X), {guess.removeprefix(' + ') or '0.0'})")
        return
    likelihood = getattr(estimator, "likelihood", "")
    softmax = isinstance(estimator, SVGPClassifier) and likelihood == "softmax"
    logistic = isinstance(estimator, LogisticSoftmaxClassifier)
    if not (isinstance(estimator, LargeMarginClassifier) or softmax or logistic):
        raise InputError(
            f"{saved.name} cannot be taken away for NumPy alone; {CAN} can. Save the model instead "
            "instead (session.save_model, or --format bundle): workbench predict reads that."
        )
    made.use("covariance")
    _latents(made, estimator.predictor_)
    mean = f'K @ m["weights"] + m["mean_offset"]{guess}'
    if softmax or logistic:
        folded = estimator.predictor_.folded
        of_class = [
            np.repeat(np.arange(len(folded.ranks)), ranks) for ranks in (folded.ranks, folded.raise_ranks)
        ]
        known = np.eye(len(folded.ranks))
        made.arrays |= {
            "directions": np.hstack([folded.factors, folded.raises]),
            "of_class": np.vstack([known[of_class[0]], -known[of_class[1]]]),
        }
        made.use("spread", "nodes")
        made.use(*(("expected_softmax",) if softmax else ("sigma", "expected_logistic")))
        made.steps.append(f"{'return ' + made.parts[-1]}({mean}, spread(m, Z, K))")
    else:
        made.document["beta"] = float(estimator.beta_)
        made.use("softmax")
        made.steps.append(f'return softmax(m["beta"] * ({mean}))')


def _latents(made: _Made, given: Predictor) -> None:
    if isinstance(given.kernel, GPflowKernel) or given.binary:
        raise InputError(
            "Its kernel is a GPflow object, which NumPy alone cannot run. Use a kernel by its name, or save "
            "the model (session.save_model)."
        )
    _scaling(made, given.shift, given.scale, given.clip, given.representation)
    kernel = given.kernel.to_arrays()
    offset = float(kernel.get("offset", 0.0))
    variance = float(kernel["variance"])
    values: dict[str, Any] = {"kernel": str(kernel["name"]), "variance": variance, "offset": offset}
    if values["kernel"] == "linear":  # a slope and a constant
        values |= {"kernel": "exponential", "variance": 0.0, "slope": variance, "offset": offset + variance}
    made.document |= {"slope": float(kernel.get("slope", 0.0))} | values
    made.arrays |= {
        "length": np.asarray(kernel.get("length_scale", 1.0)),
        "points": given.points,
        "weights": given.mean_weights,
        "mean_offset": given.mean_offset,
    }
    made.steps += ["Z = scaled(m, X)", 'K = covariance(m, Z, m["points"])']


def _scaling(made: _Made, shift: Floats, scale: Floats, clip: float, written: Representation | None) -> None:
    made.arrays |= {"shift": shift, "scale": scale, "clip": np.asarray(clip)}
    made.use("scaled")
    if written is None:
        return
    if written.name == "one-hot":
        made.use("indicators")
        made.arrays |= {"columns": written.columns, "values": written.values}
        made.steps.append("X = indicators(m, np.asarray(X, float))")
    else:
        made.use("scores")
        made.arrays |= {"knots": written.knots, "scores": written.scores}
        made.steps.append("X = scores(m, np.asarray(X, float))")


# ---------------------------------------------------------------------- the files


def _code(made: _Made, saved: SavedModel) -> str:
    """The text of predict.py."""
    functions = [_source(name) for name in dict.fromkeys(["read", *made.parts])]
    used = {e["type"] for e in made.document.get("recipe", ())}
    if used:
        text = inspect.getsource(parts).partition("\nCOLUMNS = {\n")[2]
        kept = [line for line in text.splitlines() if line.partition('"')[2].partition('"')[0] in used]
        functions.append("\n".join(["COLUMNS = {", *kept, "}"]) + "\n")
    guess = ", of_names(M, cells_of(M, rows))" if made.document["guided"] else ""
    reader = made.document["reader"].replace("(m, ", "(M, ").replace('m["', 'M["')
    steps = "\n".join(f"    {line}" for line in made.steps)
    chances = (
        f'def chances(m, X{", guess" if guess else ""}):\n    """Features [n, D] to chances."""\n{steps}\n'
    )
    call = "chances(M, *(A[i : i + 1000] for A in given))"
    main = (
        'def predict_proba(rows):  # chances [n, C] of rows, columns as in M["classes"]\n'
        f"    given = [{reader}{guess}]\n"
        f"    return np.concatenate([{call} for i in range(0, max(len(rows), 1), 1000)])\n\n"
        "M = load()\n"
        'if __name__ == "__main__":\n'
        "    P, out = predict_proba(read(sys.argv[1])), csv.writer(sys.stdout, lineterminator='\\n')\n"
        '    out.writerow(["row", "prediction", "confidence", *(f"p({name})" for name in M["classes"])])\n'
        "    for i, p in enumerate(P.tolist()):\n"
        '        out.writerow([i, M["classes"][p.index(max(p))], max(p), *p])\n'
    )
    body = "\n".join([*functions, chances, main])
    named = [name for name in ("BLANKS", "MARKS", "AMOUNT", "ZONES") if re.search(rf"\b{name}\b", body)]
    constants = "".join(f"{name} = {getattr(parts, name)!r}\n" for name in named) + "\n" * bool(named)
    names = [name for name in ("datetime", "re") if re.search(rf"\b{name}\.", body)]
    plain = "".join(f"import {name}\n" for name in sorted(["csv", "json", "sys", *names]))
    taken = "".join(
        f"from {module} import {name}\n"
        for module, name in (("functools", "cache"), ("itertools", "pairwise"), ("pathlib", "Path"))
        if re.search(rf"\b{name}\b", body)
    )
    head = (
        f'"""Classes of new rows by {saved.name} of {saved.n_labelled:,} labels; needs NumPy alone.\n\n'
        '    python predict.py ROWS > PREDICTIONS.csv\n"""\n\n'
    )
    return f"{head}{plain}{taken}\nimport numpy as np\n\n{constants}{body}"


def _source(name: str) -> str:
    """A function's text without the types of its arguments, and what it does beside its name."""
    text = inspect.getsource(getattr(parts, name))
    head, does, rest = re.fullmatch(r'(.*?\)) -> [^:]+:\n    """(.+?)\.?"""\n(.*)', text, re.S).groups()  # type: ignore[union-attr]
    plain = re.sub(r": (Any|str|int|float|list\[Any\])(?=[,)])", "", head)
    return f"{plain}:  # {does}\n" + rest.replace(": dict[Any, int] =", " =").replace(
        ": list[Any] =", " ="
    ).replace(": Any =", " =")


def _readme(made: _Made, saved: SavedModel) -> str:
    """Inputs and outputs."""
    classes: Mapping[int, str] = dict(enumerate(saved.classes))
    shown = ", ".join(str(name) for name in list(classes.values())[:30])
    more = f" and {len(classes) - 30} more" if len(classes) > 30 else ""
    return f"""# A model to take away

{saved.name}, fitted on {saved.n_labelled:,} labels of {saved.pool}. Python 3.11 and NumPy 2 are all it needs.

    python predict.py ROWS > PREDICTIONS.csv

**In:** {made.reads}. Other columns are left alone. A cell that cannot be read ends it with a sentence.

**Out:** a CSV with `row` (from 0), `prediction`, `confidence` and `p(CLASS)` of each of the {len(classes)}
classes: {shown}{more}.

From Python, in this folder:

    import predict
    P = predict.predict_proba(rows)   # [n, C], columns as in predict.M["classes"]

`rows` are what the file holds: a list of {{column: cell}} for a CSV, an array for an NPY.
The numbers are those of Workbench to 0.000001. `model.npz` holds plain arrays; nothing in it is executed.
"""
