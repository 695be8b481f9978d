"""An item as the features see it, for people."""

from dataclasses import dataclass
from typing import Any

from workbench.arrays import Array
from workbench.pools.encoders import ENCODERS
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.shapes import ShapesFeatureMap
from workbench.pools.features.vectors import EncoderFeatureMap, JoinedFeatureMap, VectorFeatureMap
from workbench.pools.pool import FeatureMap, Pool

N_TERMS = 16


@dataclass(frozen=True)
class ModelInput:
    """An item as the features see it.

    Attributes:
        words: a sentence for people.
        image: the copy that the features are made of, [h, w(, 3)] uint8; None where there is none to show.
        terms: words and pieces of words with their weights, the largest first; a space in a piece is "_".
    """

    words: str
    image: Array | None = None
    terms: tuple[tuple[str, float], ...] = ()


def model_input_of(pool: Pool, item: int) -> ModelInput | None:
    """Input of the model for an item.

    Args:
        pool: it belongs to.
        item: its index.

    Returns:
        None for the rows of a table: what is shown of them is what the model has.
    """
    if pool.kind == "table":
        return None
    view = pool.items.show(item)
    content: Any = view.text if view.image is None else view.image
    if pool.image_shape is not None:
        return ModelInput("Its pixels, as they are shown.", view.image)
    return _input(pool.feature_map, content, item)


def _input(made_by: FeatureMap, content: Any, item: int) -> ModelInput:
    if isinstance(made_by, JoinedFeatureMap):
        parts = [_input(part, content, item) for part in made_by.parts]
        image = next((part.image for part in parts if part.image is not None), None)
        terms = next((part.terms for part in parts if part.terms), ())
        return ModelInput(" Beside that: ".join(part.words for part in parts), image, terms)
    if isinstance(made_by, ShapesFeatureMap):
        copy = made_by.copy_of(content)
        colour = "in colour" if copy.ndim == 3 else "in grey"
        height, width = made_by.canvas
        what_of = "A copy" if made_by.n_copies == 1 else "The whole and what stands out in it, in copies"
        words = f"{what_of} of {width} x {height} pixels {colour}: gradients and patches."
        return ModelInput(words, copy)
    if isinstance(made_by, PiecesFeatureMap):
        terms = made_by.heaviest(str(content), N_TERMS)
        if not terms:
            return ModelInput("Nothing: no word of this text occurs in another text of the pool.")
        return ModelInput("The terms that count most, out of all it knows.", terms=terms)
    if isinstance(made_by, EncoderFeatureMap):
        entry = ENCODERS.get(made_by.encoder)
        sentence = f" {entry.sentence}" if entry is not None else ""
        kind = "text" if made_by.items == "text" else "picture"
        return ModelInput(
            f"{len(made_by.columns)} numbers that the encoder {made_by.encoder} makes of it.{sentence}"
            f" The encoder itself reads the whole {kind}."
        )
    if isinstance(made_by, VectorFeatureMap):
        return ModelInput(f"Vector number {item + 1} of your file, {len(made_by.columns)} numbers of it.")
    return ModelInput(f"{len(made_by.columns)} numbers that were made of it.")
