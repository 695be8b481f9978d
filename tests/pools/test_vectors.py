import json

import numpy as np
import pandas as pd
import pytest

from tests.pools.features.test_shapes import photos
from tests.pools.images.test_images import zipped
from tests.pools.test_texts import table
from workbench.errors import InputError
from workbench.pools import feature_map_from_json, load_pool

N = 80
VECTORS = np.random.default_rng(0).normal(3.0, 1.0, (N, 5)).astype(np.float32)
TEXTS = {"file_name": "q.csv", "text_column": "question", "target": "kind"}


def expected(vectors):
    centred = vectors - vectors.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def texts(file, **options):
    return load_pool(table(N), **{**TEXTS, "features": f"embeddings:{file}", **options})


def test_vectors_by_the_order_of_rows_and_the_item_stays_the_text(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    pool = texts(tmp_path / "v.npy")
    np.testing.assert_allclose(pool.features, expected(VECTORS), atol=1e-5)
    assert pool.kind == "text" and pool.items.show(3).text.endswith("3?") and pool.common_scale
    again = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    np.testing.assert_array_equal(again.transform(VECTORS), pool.features)
    with pytest.raises(InputError, match="vectors of 5 numbers"):
        again.transform(["a text"])
    with pytest.raises(InputError, match="vectors of 5 numbers"):
        again.transform(VECTORS[:, :4])
    np.save(tmp_path / "v.npy", VECTORS + np.eye(N, 5, dtype=np.float32))
    changed = texts(tmp_path / "v.npy")
    assert (changed.fingerprints != pool.fingerprints).sum() == 5, "other vectors are another pool"


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_vectors_are_joined_by_id(tmp_path, kind):
    order = np.random.default_rng(1).permutation(N)
    file = tmp_path / f"v.{kind}"
    if kind == "npz":
        np.savez(file, embeddings=VECTORS[order], other=VECTORS, ids=[str(i) for i in order])
    else:
        frame = pd.DataFrame(
            {"id": [str(i) for i in order], "v": [v.tolist() for v in VECTORS[order]], "k": 1}
        )
        frame.to_parquet(file)
    np.testing.assert_allclose(texts(file).features, expected(VECTORS), atol=1e-5)
    column = "embeddings" if kind == "npz" else "v"
    np.testing.assert_array_equal(texts(f"{file}#{column}").features, texts(file).features)
    with pytest.raises(InputError, match="'nope'"):
        texts(f"{file}#nope")


def test_photos_and_rows_take_vectors_too(tmp_path):
    files = photos(12)
    np.savez(tmp_path / "v.npz", vectors=VECTORS[:12], ids=sorted(files))
    pool = load_pool(zipped(files), file_name="p.zip", features=f"embeddings:{tmp_path / 'v.npz'}")
    assert pool.kind == "image" and pool.image_shape is None and len(pool) == 12
    assert len({pool.items.show(i).image.shape for i in range(12)}) > 6
    np.testing.assert_allclose(pool.features, expected(VECTORS[:12]), atol=1e-5)
    np.save(tmp_path / "v.npy", VECTORS[:3])
    rows = load_pool(b"a,b\n1,2\n3,4\n5,6\n", file_name="t.csv", features=f"embeddings:{tmp_path / 'v.npy'}")
    assert rows.kind == "table" and rows.items.show(1).row == {"a": "3", "b": "4"}
    assert rows.feature_map.columns[0] == "vector_1" and not rows.plane


def test_many_columns_are_projected(tmp_path):
    wide = np.random.default_rng(2).normal(size=(400, 300)).astype(np.float32)
    np.savez(tmp_path / "x.npz", X=np.zeros((400, 2)) + np.arange(400)[:, None])
    np.save(tmp_path / "v.npy", wide)
    data = "a\n" + "\n".join(map(str, range(400)))
    pool = load_pool(data.encode(), file_name="t.csv", features=f"embeddings:{tmp_path / 'v.npy'}")
    assert pool.n_features == 256
    np.testing.assert_allclose(
        feature_map_from_json(pool.feature_map.to_json()).transform(wide), pool.features, atol=1e-6
    )


def test_bad_vectors_are_refused_by_name(tmp_path):
    ids = [str(i) for i in range(N)]
    file = tmp_path / "v.npz"

    def refused(match, **arrays):
        np.savez(file, **arrays)
        with pytest.raises(InputError, match=match):
            texts(file)

    refused("79 vectors without ids, and the pool 80 items", embeddings=VECTORS[:-1])
    refused(r"no vector of 1 of the pool's 80 items: '79'", embeddings=VECTORS[:-1], ids=ids[:-1])
    refused(r"two vectors of '5' \(rows 6 and 8\)", embeddings=VECTORS, ids=[*ids[:7], "5", *ids[8:]])
    spoilt = VECTORS.copy()
    spoilt[7, 2] = np.nan
    refused("the vector of '7' holds numbers that are not finite", embeddings=spoilt, ids=ids)
    refused("the vector in row 8 holds", embeddings=spoilt)
    refused("not vectors", embeddings=VECTORS[:, 0])
    np.savez(file, embeddings=np.r_[VECTORS, VECTORS[:1]], ids=[*ids, "new"])
    assert any("not in the pool left out: 'new'" in note for note in texts(file).notes)
    with pytest.raises(InputError, match="no file"):
        texts(tmp_path / "nothing.npy")
    with pytest.raises(InputError, match="NPY, NPZ or Parquet"):
        (tmp_path / "v.txt").write_text("1 2")
        texts(tmp_path / "v.txt")
    pd.DataFrame({"v": [[1.0, 2.0], [1.0]]}).to_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match="row 2 holds 1 numbers, the first 2"):
        texts(tmp_path / "v.parquet")
    with pytest.raises(InputError, match="is for images"):
        load_pool(table(), **TEXTS, features="shapes")
