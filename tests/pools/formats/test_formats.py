"""One registry opens every file, whoever asks: a pool, a scan, a prediction, an import of labels."""

import gzip
import io
import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.features.numbers import NumberMap
from workbench.pools.formats import FORMATS, format_of
from workbench.pools.formats.files import File
from workbench.pools.loading import open_source

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.arange(30) % 3
IMAGES = RNG.integers(0, 256, size=(12, 6, 5), dtype=np.uint8)


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def streamed(path, feature_map=None) -> np.ndarray:
    source = open_source(path, feature_map)
    return np.concatenate([rows for unit in source.units() for _, rows in source.chunks(unit, 7)])


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": X, "features": -X}, X),
        ({"features": -X, "X": X, "y": Y}, X),
        ({"data": X, "features": -X}, -X),
        ({"images": -X, "data": X}, X),
        ({"x_train": X[:20], "x_test": X[20:], "y_train": Y[:20], "y_test": Y[20:]}, X),
        ({"x_test": X}, X),
        ({"anything": X}, X),
    ],
)
def test_the_same_array_of_an_npz_is_loaded_predicted_and_scored(arrays, expected, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    pool = load_pool(tmp_path / "a.npz")
    np.testing.assert_array_equal(pool.features, expected)
    np.testing.assert_array_equal(read_rows(tmp_path / "a.npz"), expected)
    np.testing.assert_array_equal(streamed(tmp_path / "a.npz"), expected)
    np.testing.assert_array_equal(streamed(tmp_path / "a.npz", pool.feature_map), expected)


def test_an_npz_of_images_alone_can_be_scored(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES)
    pool = load_pool(tmp_path / "a.npz")
    np.testing.assert_array_equal(streamed(tmp_path / "a.npz", pool.feature_map), pool.features)
    np.testing.assert_array_equal(pool.feature_map.transform(read_rows(tmp_path / "a.npz")), pool.features)


def test_files_that_are_read_whole_are_scored_through_the_feature_map(tmp_path):
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "a.csv", index=False)
    found = streamed(tmp_path / "a.csv", NumberMap(("b", "a")))
    np.testing.assert_allclose(found, X[:, [1, 0]])
    for i, image in enumerate(IMAGES):
        (tmp_path / "pictures").mkdir(exist_ok=True)
        Image.fromarray(image).save(tmp_path / "pictures" / f"{i:02d}.png")
    pool = load_pool(tmp_path / "pictures")
    np.testing.assert_array_equal(streamed(tmp_path / "pictures", pool.feature_map), pool.features)
    with pytest.raises(InputError, match="cannot be streamed"):
        open_source(tmp_path / "a.csv")


def test_every_format_has_a_reader_and_endings_of_its_own():
    endings = [ending for entry in FORMATS.values() for ending in entry.endings]
    assert len(set(endings)) == len(endings)
    for entry in FORMATS.values():
        assert callable(entry.reader.load) and callable(entry.reader.rows)
        for ending in entry.endings:
            assert format_of(File(b"", f"Some.Name{ending}".upper())).name == entry.name
            assert format_of(File(b"", f"name{ending}.gz")).name == entry.name
    assert format_of(File(b"PAR1...", "table.csv")).name == "parquet", "what it is counts, not its name"


def test_a_name_wins_over_a_folder_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()
    np.save(tmp_path / "iris" / "x.npy", X)
    assert len(load_pool("iris")) == 150
    with pytest.raises(InputError, match="holds no images"):
        load_pool("./iris")


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_not_the_present_folder(name):
    with pytest.raises(InputError, match="Name a pool or a file; there are digits"):
        load_pool(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_before_it_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for open_it in (load_pool, read_rows, inspect_table, open_source):
        with pytest.raises(InputError, match="a pipe or a device"):
            open_it(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"cannot be read|no file"):
        load_pool("x" * 5000 + ".csv")


def test_infinite_and_empty_columns_never_reach_a_fit():
    data = b"a,b,c\n1,inf,\n2,-inf,\n,inf,\n4,inf,\n"
    pool = load_pool(data, file_name="t.csv", missing="impute")
    assert pool.feature_map.columns == ("a",) and np.isfinite(pool.features).all()
    assert any("Column 'b' is left out" in note for note in pool.notes)
    assert any("nothing on every row: 'c'" in note for note in pool.notes)
    huge = load_pool(b"a,b\n1.7e308,1\n1.6e308,2\n,3\n", file_name="t.csv", missing="impute")
    assert np.isfinite(huge.features).all()
    none = np.column_stack([X, np.full(30, np.inf)])
    with pytest.raises(InputError, match=r"Column 'x5' of a\.npz holds no number at all"):
        load_pool(npz(X=none), file_name="a.npz", missing="impute")
    stream = io.BytesIO()
    pd.DataFrame({"a": [1.0, None, 3.0], "b": [np.inf] * 3, "c": [None] * 3}).to_parquet(stream)
    pool = load_pool(stream.getvalue(), file_name="t.parquet", missing="impute")
    np.testing.assert_array_equal(pool.features, [[1], [2], [3]])
    with pytest.raises(InputError, match="No column"):
        load_pool(b"a,b\ninf,\n-inf,\ninf,\n", file_name="t.csv", missing="impute")


@pytest.mark.parametrize(
    ("y", "expected", "classes"),
    [
        ([-1, 0, 1] * 10, [-1, 0, 1] * 10, ("0", "1")),
        ([-1, 1] * 15, [0, 1] * 15, ("-1", "1")),
        ([np.nan, 3.0, 4.0] * 10, [-1, 0, 1] * 10, ("3", "4")),
        (["None", "u", "v"] * 10, [-1, 0, 1] * 10, ("u", "v")),
        (["nan", "u", ""] * 9 + ["v"] * 3, [-1, 0, -1] * 9 + [1] * 3, ("u", "v")),
    ],
)
def test_marks_of_unlabelled_items(y, expected, classes):
    pool = load_pool(npz(X=X, y=np.array(y)), file_name="a.npz")
    assert pool.classes == classes
    np.testing.assert_array_equal(pool.truth, expected)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([0, 1, 2] * 10, "item 2 holds class 2, but only 2 classes have names"),
        ([0, 1, -2] * 10, "item 2 holds class -2"),
        ([0.0, 1.0, 5.0] * 10, "item 2 holds class 5"),
        ([0.5, 1.0, 0.0] * 10, "item 0 has the class '0.5', which is not among"),
        ([1j, 0, 1] * 10, "holds complex128 where class codes or names are needed"),
    ],
)
def test_labels_that_name_no_class_are_refused_by_their_item(y, match):
    with pytest.raises(InputError, match=match):
        load_pool(npz(X=X, y=np.array(y), classes=["p", "q"]), file_name="a.npz")


def long_table(megabytes: int) -> bytes:
    """A packed table of two columns; each megabyte is a part of its own, as `cat` joins packed files."""
    part = gzip.compress(b"1,2\n" * 250_000)
    return gzip.compress(b"a,b\n") + part * megabytes


def blank_zip(side: int, n: int) -> bytes:
    import zipfile

    picture, stream = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.zeros((side, side), np.uint8)).save(picture, "PNG")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(n):
            archive.writestr(f"{i}.png", picture.getvalue())
    return stream.getvalue()


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 64


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("a.zip", partial(blank_zip, 4900, 2), "limit is 5,000,000.*resize="),
        ("a.zip", partial(blank_zip, 2000, 30), "120,000,000 numbers once decoded; the limit is 100,000,000"),
        ("a.svm", b"1 2000000:1\n-1 1:1\n1 2:1\n", "2,000,000 columns; the limit is 100,000"),
        (
            "a.csv",
            b",".join([b"c"] * 9000) + b"\n" + b",".join([b"1"] * 9000),
            "more than one column called 'c'",
        ),
        (
            "a.csv",
            b",".join(b"c%d" % i for i in range(12_000)) + b"\n" + b",".join([b"1"] * 12_000),
            "12,000 columns; the limit is 10,000",
        ),
        ("a.csv", b"a,b\n" + b"1\n" * 15_000, "more than 10,000 lines with another number of cells"),
        ("a.csv.gz", partial(long_table, 440), "unpacked.*limit is 400 MB"),
        ("a.npz", npz(X=X, y=np.full(30, "a" * 5000)), "cells of 20,000 bytes; the limits are"),
        ("a.npz", npz(X=np.zeros((2, 200_000))), "200,000 columns; the limit is 100,000"),
        ("a.npy", header("(3000000000000, 4)"), "cut short: its header promises"),
        ("a.npy", header("(9223372036854775807, 0)"), "holds nothing"),
        ("a.npy", header("(" * 900), "not a NumPy array that can be read"),
        ("a-idx3-ubyte", b"\x00\x00\x08\x03" + b"\xff\xff\xff\xff" * 3, "limit is 400 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 13 else "",
)
def test_what_would_take_too_much_is_refused_before_it_is_asked_for(name, data, match):
    data = data() if callable(data) else data
    with pytest.raises(InputError, match=match):
        load_pool(data, file_name=name, **({"features": "pixels"} if name == "a.zip" else {}))


def test_a_text_that_is_short_in_the_file_and_endless_once_spelled_out():
    import pyarrow as pa
    import pyarrow.parquet as pq

    long = pa.array(["x" * 300_000])
    table = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), long)})
    stream = io.BytesIO()
    pq.write_table(table.append_column("b", pa.array(np.arange(2000))), stream, compression="zstd")
    assert len(stream.getvalue()) < 100_000
    with pytest.raises(InputError, match=r"unpacked.*limit is 400 MB"):
        load_pool(stream.getvalue(), file_name="a.parquet")


def test_texts_kept_as_bytes_are_read_and_other_bytes_left_out():
    import pyarrow as pa
    import pyarrow.parquet as pq

    def packed(cells) -> bytes:
        stream = io.BytesIO()
        pq.write_table(pa.table({"a": cells, "b": [1, 2, 3]}), stream)
        return stream.getvalue()

    pool = load_pool(packed([b"u", b"v", b"u"]), file_name="a.parquet", text="one-hot")
    assert pool.feature_map.columns == ("a=u", "a=v", "b")
    pool = load_pool(packed([b"u", b"\xff\xfe", b"u"]), file_name="a.parquet")
    assert pool.feature_map.columns == ("b",) and any(
        "no text" in note and "'a'" in note for note in pool.notes
    )


def test_messages_never_repeat_a_long_input():
    name = "Zz" * 4000
    cells = f"{name},b,y\n1,{name},p\nx,2,q\n3,4,p\n"
    for options in (
        {},
        {"target": "y"},
        {"target": name},
        {"target": "nope"},
        {"text": "one-hot", "target": "b"},
    ):
        with pytest.raises(InputError) as caught:
            load_pool(cells.encode(), file_name="t.csv", **options)
        assert str(caught.value).count("Zz") <= 100 and len(str(caught.value)) < 1100
        report = inspect_table(cells.encode(), file_name="t.csv", **options)
        assert all(problem.message.count("Zz") <= 100 for problem in report.problems)


def test_damaged_feature_maps_are_refused_when_they_are_opened():
    from workbench.pools import feature_map_from_json
    from workbench.pools.features.network import Layer, NetworkFeatureMap
    from workbench.pools.features.numbers import ImageFeatureMap

    weights, zeros = np.ones((30, 4), "f4"), np.zeros(30, "f4")
    network = NetworkFeatureMap(
        ImageFeatureMap((6, 5)), zeros, zeros + 1, (Layer("flat"), Layer("dense", weights, zeros[:4]))
    )
    sound = network.to_json()
    assert feature_map_from_json(sound).columns == network.columns
    table = {"kind": "table", "decimal": ".", "recipe": []}
    for damaged in (
        {**sound, "layers": sound["layers"][1:] + sound["layers"]},
        {**sound, "shift": sound["layers"][1]["bias"]},
        {**sound, "pixels": {**sound["pixels"], "shape": [10**6, 10**6]}},
        {**sound, "pixels": {**sound["pixels"], "white": 0}},
        {"kind": "numbers", "names": ["a"], "factor": float("nan")},
        {
            **table,
            "recipe": [{"kind": "number", "name": "a", "fill": float("inf")}],
        },
        {**table, "recipe": {"a": 1}},
    ):
        with pytest.raises(InputError, match="damaged") as refusal:
            feature_map_from_json(damaged)
        assert "validation" not in str(refusal.value) and "pydantic" not in str(refusal.value)
    numbers = NumberMap(("a",)).to_json()
    pixels = {name: value for name, value in sound["pixels"].items() if name != "white"}
    for said, other in {
        "it lacks 'factor'": {"kind": "numbers", "names": ["a"]},
        "it has the field 'shift', which this version does not know": {**numbers, "shift": 2.0},
        "it lacks 'white'": {**sound, "pixels": pixels},
        "'factor' is nan: input should be a finite number": {**numbers, "factor": float("nan")},
    }.items():
        with pytest.raises(InputError, match=f"damaged.*{said}"):
            feature_map_from_json(other)
