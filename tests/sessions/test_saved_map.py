"""A project's features stay those it was made with."""

import numpy as np

from tests.pools.features.test_shapes import photos
from tests.pools.images.test_images import zipped
from tests.pools.test_texts import table
from tests.sessions.fakes import FAKE
from workbench.sessions import Session
from workbench.store import Store


def test_a_pool_that_grew_keeps_the_map_of_its_project(tmp_path):
    store = Store.open(f"sqlite:///{tmp_path / 'w.sqlite'}")
    texts, pictures = tmp_path / "q.csv", tmp_path / "p.zip"
    texts.write_bytes(table(40))
    pictures.write_bytes(zipped(photos(20)))
    cases = {
        texts: {"text_column": "question", "target": "kind"},
        pictures: {"features": "shapes", "labelled": False},
    }
    for file, options in cases.items():
        made = Session.create(
            str(file), pool_options=options, classifier=FAKE, store=store, classes=("money", "weather")
        )
        before, columns = np.array(made.pool.features), made.pool.feature_map.columns
        grown = table(60) if file is texts else zipped(photos(20) | {"z/new.png": photos(40)["level/31.jpg"]})
        file.write_bytes(grown)
        opened = Session.open(made.id, store=store)
        assert len(opened.pool) > len(made.pool)
        assert opened.pool.feature_map.columns == columns
        np.testing.assert_allclose(opened.pool.features[: len(before)], before, atol=1e-6)
        again = Session.open(made.id, store=store)
        np.testing.assert_array_equal(again.pool.features, opened.pool.features)
