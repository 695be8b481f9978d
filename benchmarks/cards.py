"""Draws the pictures of the bundled pools' cards: `python -m benchmarks.cards`.

They are drawn once and shipped, because opening a pool to draw it would make the first page wait
for scikit-learn.
"""

from __future__ import annotations

import numpy as np

from workbench.app.data.cards import FOLDER
from workbench.figures.cards import image_card, scatter_card
from workbench.pools import POOLS, load_pool


def main() -> None:
    for name, entry in POOLS.items():
        if entry.n_items > 100_000:
            continue  # the picture of its kind will do
        pool = load_pool(name)
        if entry.kind == "image":
            rng = np.random.default_rng(3)
            one_each = [rng.choice(np.flatnonzero(pool.truth == c)) for c in range(len(pool.classes))]
            others = rng.permutation(len(pool))[: max(0, 14 - len(one_each))]
            images = [np.asarray(pool.items.show(int(i)).image, dtype=float) for i in [*one_each, *others]]
            # ink is what the corner is not, whichever way round the images are
            images = [np.abs(image - float(np.median([im[0, 0] for im in images]))) for image in images]
            picture = image_card(images)
        else:
            features = np.asarray(pool.features, dtype=float)
            if not pool.plane:
                scaled = np.clip((features - features.mean(0)) / (features.std(0) + 1e-12), -2, 2)
                scaled -= scaled.mean(0)
                features = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][:2].T
            picture = scatter_card(features, pool.truth)
        (FOLDER / f"card-{name}.svg").write_text(picture, encoding="utf-8")
        print(f"card-{name}.svg", len(picture))


if __name__ == "__main__":
    main()
