"""A fitted classifier as a folder of plain files: nothing in it is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.classifiers import make_classifier, protocols
from workbench.classifiers.latent import Latent
from workbench.documents.checking import checked
from workbench.documents.runs import BegunWith, Model
from workbench.errors import InputError
from workbench.exchange.manifests import ADVICE, json_text, read_sealed, sealed, write_files
from workbench.guesses import SavedGuesses
from workbench.members import FolderMembers
from workbench.pools import feature_map_from_json
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.pools.neighbours.graph import COLUMN, Seen, SmoothedFeatureMap, View, saved_way
from workbench.pools.pool import FeatureMap, Pool
from workbench.reading import cut, reading
from workbench.registry import from_file
from workbench.sessions.smoothing import Smoothing, without_smoothing
from workbench.store.store import files_in_use
from workbench.writing import check_place, write_whole

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.session import Session

FORMAT = 3
_GUESS, _TERMS, _NEIGHBOURS = "guess.json", "terms.npz", "neighbours.npz"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A classifier with the names of its classes and the way from raw rows to features.

    Attributes:
        name: of the classifier, as in the registry.
        classes: names of the C classes, in the order of the columns.
        estimator: fitted on class codes.
        feature_map: from raw rows to features.
        n_labelled: labels it was fitted on.
        pool: name of the pool it was fitted on.
        note: what of the fit could not be saved and what is saved instead; "" for nothing.
        guesses: what it begins with on new rows; None for a model that began with nothing.
        view: of the neighbours that rows lean on; None for a model that leans on none.
        id_column: of the table it was fitted on; "" where rows have no ids of their own.
        reading: how the file of that table was read (`Pool.reading`).
    """

    name: str
    classes: tuple[str, ...]
    estimator: Any
    feature_map: FeatureMap
    n_labelled: int
    pool: str
    note: str = ""
    guesses: SavedGuesses | None = None
    view: View | None = None
    id_column: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)

    def features(self, rows: Any) -> Array:
        """Raw rows (a DataFrame, or an array [n, D]) to features [n, D].

        Raises:
            InputError: rows that lack a column or hold what cannot be read.
        """
        return self.as_seen(self.feature_map.transform(rows))

    def as_seen(self, features: Array) -> Array:
        """[n, D'] features [n, D] of the feature map as the classifier takes them: leaning on neighbours."""
        return features if self.view is None else self.view.transform(np.asarray(features))

    def mean(self, rows: Any, features: Array) -> tuple[Floats | None, tuple[str, ...]]:
        """Prior mean on raw rows, and what of that is missing there, for people.

        Args:
            rows: as `features` takes them.
            features: [n, D] of them.

        Returns:
            [J, n, C] for `probabilities`, or None for a model that began with nothing; sentences.
        """
        if self.guesses is None:
            return None, ()
        plain_features = features if self.view is None else self.feature_map.transform(rows)
        return self.guesses.mean(rows, self.feature_map, plain_features)

    @property
    def seen_map(self) -> FeatureMap:
        """From raw rows to what the classifier takes."""
        return self.feature_map if self.view is None else SmoothedFeatureMap(self.feature_map, self.view)

    def probabilities(self, features: Array, mean: Floats | None = None) -> Floats:
        """Class probabilities [n, C] of features [n, D]; `mean` as `SavedModel.mean` gives it."""
        more = {} if mean is None else {"mean": mean}
        return np.asarray(self.estimator.predict_proba(features, **more))

    def latent(self, features: Array) -> Latent:
        """The latents of features [n, D], without what the model began with.

        Raises:
            InputError: the model has none.
        """
        if not protocols.supports_latent(self.estimator):
            raise InputError(f"{self.name} has no latent functions; it gives class probabilities only.")
        latent: Latent = self.estimator.predict_latent(features)
        return latent

    def predict(self, rows: Any) -> list[str]:
        """Names of the most probable classes of raw rows."""
        features = self.features(rows)
        codes = self.probabilities(features, self.mean(rows, features)[0]).argmax(axis=1)
        return [self.classes[code] for code in codes]


def kept_of_pool(
    pool: Pool, chosen: Mapping[str, Any], classes: Sequence[str], seen: Seen | None
) -> dict[str, Any]:
    """Fields of a saved model about the pool it was fitted on, as `save_model` and `SavedModel` take it.

    Args:
        pool: it was fitted on.
        chosen: {"sources", "guidance"} of what it begins with, as fits record them.
        classes: by code.
        seen: the features as it sees them; None for those of the pool.
    """
    return {
        "pool": pool.name,
        "guesses": SavedGuesses.of(pool, chosen, classes) if chosen.get("sources") else None,
        "id_column": pool.id_column,
        "reading": pool.reading,
        **saved_way(pool, seen),
    }


def save_model(
    folder: Path | str,
    state: Mapping[str, Array],
    *,
    classifier: str,
    options: Mapping[str, Any],
    classes: tuple[str, ...],
    feature_map: FeatureMap,
    n_labelled: int,
    pool: str,
    guesses: SavedGuesses | None = None,
    view: View | None = None,
    id_column: str = "",
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Write params.npz, features.json and, last, spec.json with their checksums.

    The same model gives the same bytes.

    Args:
        folder: made where it is not there.
        state: `get_state()` of the fitted classifier.
        classifier: its registry name or "package.module:Class".
        options: it was made with.
        classes: names of the C classes, in the order of the codes.
        feature_map: of the pool.
        n_labelled: labels it was fitted on.
        pool: name of the pool.
        guesses: what the model begins with on new rows.
        view: of the neighbours that the model leans on; nothing is stored for one that leans on none.
        id_column: of the pool's table.
        reading: how its file was read (`Pool.reading`).
    """
    folder = Path(folder)
    spec = {
        "format": FORMAT,
        "classifier": classifier,
        "options": dict(options),
        "classes": list(classes),
        "n_labelled": n_labelled,
        "pool": pool,
    }
    if id_column:
        spec["id_column"] = id_column
    if reading:
        spec["reading"] = dict(reading)
    if "note" in state:
        spec["note"] = str(np.asarray(state["note"]))
    files: dict[str, bytes | str] = {
        "params.npz": arrays_to_bytes(state),
        "features.json": json_text(feature_map.to_json()),
    }
    if guesses is not None:
        files[_GUESS] = json_text(guesses.to_json())
        if terms := guesses.arrays():
            files[_TERMS] = arrays_to_bytes(terms)
    if view is not None:
        files[_NEIGHBOURS] = arrays_to_bytes(view.to_arrays())
    names = write_files(folder, files)
    write_whole(folder / "spec.json", json_text(sealed(spec, folder, names)))


def save_model_of(
    session: Session, folder: Path | str, model: FittedModel | None = None, *, replace: bool = False
) -> None:
    """Write the model of a project as `save_model` does.

    Args:
        session: of the project.
        folder: made where it is not there.
        model: one of its fits; the present one unless given.
        replace: write over the files of a model that are there.

    Raises:
        InputError: there is no model yet, or a file as `chosen_file` refuses it.
    """
    model = session.model if model is None else model
    if model is None:
        raise InputError("There is no model to save yet: the first fit comes with labels of two classes.")
    settings = session.fits.made_with(model.number)
    for name in ("params.npz", "features.json", "spec.json"):
        check_place(Path(folder) / name, protected=files_in_use(session.store), replace=replace)
    save_model(
        folder,
        model.state,
        classifier=settings["classifier"],
        options=settings["options"],
        classes=model.classes,
        n_labelled=model.n_labelled,
        **kept_of_pool(session.pool, settings["guess"], model.classes, model.seen),
    )


def load_model(folder: Path | str, *, trust_code: bool = False) -> SavedModel:
    """Read a saved model.

    Args:
        folder: what `save_model` wrote, or a run bundle that holds it as model/.
        trust_code: let it name code that is neither registered nor installed.

    Raises:
        InputError: no model there, one of a later format, or one that cannot be read.
    """
    path = Path(folder)
    place = path / "model" if (path / "model").is_dir() else path
    if not (place / "spec.json").is_file():
        unfinished = (path / ".partial").is_dir()
        hint = (
            "the run there is not finished; start it again to finish it"
            if unfinished
            else ("give the folder of a finished run (workbench run --out FOLDER) or its model/")
        )
        raise InputError(f"There is no saved model in {path}: {hint}.")
    title = f"The model in {place}"
    archive = read_sealed(FolderMembers(place), "spec.json", title, FORMAT)
    spec = archive.document
    fields = checked(Model, spec, f"{title}: spec.json", ADVICE)
    classes, n_labelled, pool = tuple(fields.classes), fields.n_labelled, fields.pool
    with reading(f"{title} is damaged: it", advice=ADVICE):
        classifier = {"name": fields.classifier, "options": fields.options}
        data = archive.read("params.npz")
        classifier = from_file(classifier, title, trust_code=trust_code)
        name, options = classifier["name"], classifier["options"]
        arguments = {key: value for key, value in options.items() if key != "neighbours"}
        unfitted = make_classifier(name, **arguments)
        arrays = bytes_to_arrays(data)
        leans = Smoothing.of_state(arrays).strength
    try:
        estimator = unfitted.set_state(without_smoothing(arrays))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"The arrays in {place} do not make a {name} model ({cut(error)}): they are damaged or come from "
            "another version. Run the command that made them again."
        ) from error
    with reading(f"The feature map in {place}", advice=ADVICE):
        feature_map = feature_map_from_json(archive.json("features.json"))
    guesses = None
    if _GUESS in archive:
        with reading(f"{title} is damaged: it", advice=ADVICE):
            guess = checked(BegunWith, archive.json(_GUESS), f"{title}: {_GUESS}", ADVICE)
            terms = bytes_to_arrays(archive.read(_TERMS)) if _TERMS in archive else None
            guesses = SavedGuesses.from_json(guess.model_dump(exclude_unset=True), terms)
    view = None
    if _NEIGHBOURS in archive:
        with reading(f"{title} is damaged: its list of neighbours", advice=ADVICE):
            view = View.from_arrays(bytes_to_arrays(archive.read(_NEIGHBOURS)))
    if not leans.startswith(COLUMN) and leans != ("none" if view is None else view.name):
        raise InputError(f"{title} is damaged: it lacks the neighbours that it leans on. {ADVICE}")
    about = n_labelled, pool, fields.note, guesses, view, fields.id_column, fields.reading
    saved = SavedModel(name, classes, estimator, feature_map, *about)
    _try(saved, place)
    return saved


def _try(saved: SavedModel, place: Path) -> None:
    """Ask a model about one row, so that parts that do not fit together are said here."""
    with reading(f"The model in {place} is damaged: it", advice=ADVICE):
        p = saved.probabilities(saved.as_seen(np.zeros((1, len(saved.feature_map.columns)))))
        if p.shape != (1, len(saved.classes)) or not np.isfinite(p).all():
            raise InputError(
                f"The model in {place} is damaged: it gives {p.shape[-1]} probabilities for "
                f"{len(saved.classes)} classes, or none that are numbers. {ADVICE}"
            )
