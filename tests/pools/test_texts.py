import json

import numpy as np
import pandas as pd
import pytest

from tests.pools.helpers import needs
from workbench.errors import InputError
from workbench.pools import feature_map_from_json, load_pool, read_rows, seen_as_pixels

SUBJECTS = {"money": ["bank", "card", "fee", "pay"], "weather": ["rain", "sun", "wind", "cloud"]}


def table(n=80, seed=0) -> bytes:
    rng = np.random.default_rng(seed)
    lines = ["id,question,kind"]
    for i in range(n):
        kind = "money" if i % 2 else "weather"
        words = rng.choice(SUBJECTS[kind], 4).tolist() + rng.choice(["the", "my", "was", "why"], 3).tolist()
        lines.append(f'{i},"{" ".join(rng.permutation(words))}, {i}?",{kind}')
    return "\n".join(lines).encode()


def test_texts_become_items():
    pool = load_pool(table(), file_name="q.csv", text_column="question", target="kind")
    assert pool.kind == "text" and pool.classes == ("money", "weather") and len(pool) == 80
    assert pool.items.show(3).text.endswith("3?") and pool.common_scale
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1, rtol=1e-5)
    # the nearest centre tells the subjects apart
    centres = np.stack([pool.features[:40][pool.truth[:40] == k].mean(axis=0) for k in (0, 1)])
    guess = (pool.features[40:] @ centres.T).argmax(axis=1)
    assert (guess == pool.truth[40:]).mean() > 0.9
    again = load_pool(table(), file_name="q.csv", text_column="question", target="kind")
    np.testing.assert_array_equal(again.features, pool.features)


def test_replay_on_new_rows_and_through_json():
    pool = load_pool(table(), file_name="q.csv", text_column="question", target="kind")
    again = feature_map_from_json(pool.feature_map.to_json())
    rows = read_rows(b"question\nwhy was my card fee\nqqqq\n", file_name="n.csv")
    features = again.transform(rows)
    np.testing.assert_array_equal(features, pool.feature_map.transform(["why was my card fee", "qqqq"]))
    assert (features[1] == 0).all() and np.isfinite(features).all()
    with pytest.raises(InputError, match="lack the column 'question'"):
        again.transform(rows.rename(columns={"question": "q"}))
    with pytest.raises(InputError, match="Row 1 holds 3"):
        again.transform([3])


@pytest.mark.parametrize("name", ["q.csv", "q.jsonl", "q.parquet"])
def test_cells_of_new_rows_are_read_as_those_of_the_pool(name):
    """An empty cell is a text without words there, too, and a number is its digits."""
    texts = [*(f"the card fee is {i % 4} today" for i in range(8)), None]
    frame = pd.DataFrame({"Kommentar": texts, "y": ["p", "q", "q"] * 3})
    to_bytes = {
        "q.csv": lambda rows: rows.to_csv(index=False).encode(),
        "q.jsonl": lambda rows: rows.to_json(orient="records", lines=True).encode(),
        "q.parquet": pd.DataFrame.to_parquet,
    }[name]
    pool = load_pool(to_bytes(frame), file_name=name, text_column="Kommentar", target="y")
    rows = read_rows(to_bytes(frame), file_name=name)
    np.testing.assert_array_equal(pool.feature_map.transform(rows), pool.features)
    digits = read_rows(to_bytes(pd.DataFrame({"Kommentar": [3, 2]})), file_name=name)
    np.testing.assert_array_equal(pool.feature_map.transform(digits), pool.feature_map.transform(["3", "2"]))
    with pytest.raises(InputError, match="Row 2 holds"):
        pool.feature_map.transform(pd.DataFrame({"Kommentar": ["a fee", ["a", "list"]]}))


def test_bad_texts():
    data = b"note,y\na b,p\n,q\nb c,p\nc a,q\n"
    assert len(load_pool(data, file_name="t.csv", text_column="note")) == 4
    kept = load_pool(data, file_name="t.csv", columns={"note": {"use": "text", "empty": "drop"}})
    assert list(kept.items.ids) == ["0", "2", "3"]
    with pytest.raises(InputError, match="nothing to compare"):
        load_pool(b"note\na\nb\nc\n", file_name="t.csv", text_column="note")
    with pytest.raises(InputError, match="is left to learn from"):
        load_pool(data, file_name="t.csv", text_column="y", target="y")
    with pytest.raises(InputError, match="no column 'z'"):
        load_pool(data, file_name="t.csv", text_column="z")


@pytest.mark.slow  # alone: the default features tell 77 real classes apart
def test_bank_questions_are_told_apart():
    from sklearn.neighbors import NearestCentroid

    path = needs("text/banking77/train.csv")
    pool = load_pool(path, text_column="text", target="category").split(0)
    train, test = pool.trainable, pool.test.test
    model = NearestCentroid().fit(pool.features[train], pool.truth[train])
    assert len(pool.classes) == 77
    assert model.score(pool.features[test], pool.truth[test]) > 0.55


CHINESE = ("我的银行卡费用是多少", "为什么我的卡被收取费用", "今天北京会下雨吗", "明天的天气有风和雨吗")


def pieces(**options):
    options = {"text_column": "question", "target": "kind", **options}
    return load_pool(table(), file_name="q.csv", **options)


def test_pieces_of_words_are_replayed_through_json_and_know_words_half_spelt():
    pool = pieces()
    assert pool.kind == "text" and pool.common_scale
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1, rtol=1e-5)
    document = json.loads(json.dumps(pool.feature_map.to_json()))
    assert document["kind"] == "pieces"
    again = feature_map_from_json(document)
    np.testing.assert_array_equal(again.transform(pool.items.texts), pool.features)
    rows = read_rows(b"question\nclouds winds raining\nqqqq\n", file_name="n.csv")
    features = again.transform(rows)
    assert (features[1] == 0).all()
    centres = np.stack([pool.features[pool.truth == k].mean(axis=0) for k in (0, 1)])
    assert pool.classes[int((features[0] @ centres.T).argmax())] == "weather"
    with pytest.raises(InputError, match="damaged"):
        feature_map_from_json(document | {"levels": {**document["levels"], "axes": 3}})
    with pytest.raises(InputError, match="Row 2 holds 3"):
        again.transform(["rain", 3])


def test_texts_without_spaces_have_pieces():
    lines = [
        f"{i},{CHINESE[i % 4]}{chr(0x4E00 + 37 * i)},{'天气' if i % 4 > 1 else '银行'}" for i in range(24)
    ]
    data = "\n".join(["id,t,y", *lines]).encode()
    pool = load_pool(data, file_name="t.csv", text_column="t", target="y")
    assert not pool.feature_map.words and pool.feature_map.pieces
    new = pool.feature_map.transform(["上海明天会下雨吗", "银行收取多少费用"])
    centres = np.stack([pool.features[pool.truth == k].mean(axis=0) for k in (0, 1)])
    assert [pool.classes[k] for k in (new @ centres.T).argmax(axis=1)] == ["天气", "银行"]


@pytest.mark.slow  # alone: how many axes texts get, by the number of classes
def test_many_classes_have_more_axes():
    rng = np.random.default_rng(0)
    made = [f"c{i % 77},{' '.join(f'w{w}' for w in rng.integers(0, 900, 8))} k{i % 77}" for i in range(700)]
    data = "\n".join(["y,t", *made]).encode()
    shared = {"file_name": "t.csv", "text_column": "t"}
    assert load_pool(data, **shared, target="y").n_features == 512
    assert load_pool(data, **shared, exclude=["y"]).n_features == 256
    with pytest.raises(InputError, match="nothing to compare"):
        load_pool(b"t\na\nb\nc\n", **shared)


def test_images_stay_pixels_for_a_model_that_learns_from_them(tmp_path):
    file, photos = tmp_path / "q.csv", tmp_path / "photos"
    file.write_bytes(table())
    photos.mkdir()
    (photos / "a.png").write_bytes(b"")
    for source, given, options in (
        (str(photos), {}, {"features": "pixels"}),
        (str(photos), {"resize": 8}, {"resize": 8}),
        ("images:mnist", {}, {"features": "pixels"}),
        ("images:mnist", {"features": "shapes"}, {"features": "shapes"}),
        ("digits", {}, {}),
        (str(file), {}, {}),
    ):
        assert seen_as_pixels(source, given) == options
