import io
import zipfile

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.pools import feature_map_from_json, load_pool

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.arange(30) % 3


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("names", [("X", "y"), ("features", "labels"), ("data", "target")])
def test_npz_under_its_usual_names(names):
    pool = load_pool(npz(**{names[0]: X, names[1]: Y}), file_name="a.npz")
    np.testing.assert_array_equal(pool.features, X)
    np.testing.assert_array_equal(pool.truth, Y)
    assert pool.classes == ("0", "1", "2") and pool.name == "a"


def test_npz_with_names_ids_and_unknown_labels(tmp_path):
    y = Y.copy()
    y[3] = -1
    path = tmp_path / "named.npz"
    np.savez_compressed(
        path,
        X=X,
        y=y,
        classes=["p", "q", "r"],
        ids=[f"i{n}" for n in range(30)],
        feature_names=list("abcd"),
    )
    pool = load_pool(path)
    assert pool.classes == ("p", "q", "r") and pool.truth[3] == -1
    assert list(pool.items.ids)[:2] == ["i0", "i1"] and list(pool.items.show(0).row) == list("abcd")
    texts = load_pool(npz(X=X, y=np.array(["u", "v", ""] * 10)), file_name="a.npz")
    assert texts.classes == ("u", "v") and (texts.truth == [0, 1, -1] * 10).all()
    signs = load_pool(npz(X=X, y=np.where(Y, 1, -1)), file_name="a.npz")
    assert signs.classes == ("-1", "1") and (signs.truth >= 0).all(), "-1 is a class where no names are given"


@pytest.mark.parametrize("named", [None, ["no", "yes"]])
def test_boolean_labels_are_two_classes_not_a_mask(named):
    y = Y > 0
    arrays = {"X": X, "y": y} if named is None else {"X": X, "y": y, "classes": named}
    pool = load_pool(npz(**arrays), file_name="a.npz")
    # every item is there and has its class: a mask would leave some out
    assert len(pool) == len(pool.truth) == 30
    assert pool.classes == (("False", "True") if named is None else ("no", "yes"))
    np.testing.assert_array_equal(pool.truth, y.astype(int))


def test_uncompressed_arrays_on_disk_are_mapped_not_read(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", X=X, y=Y)
    for name in ("a.npy", "b.npz"):
        pool = load_pool(tmp_path / name)
        assert isinstance(pool.features, np.memmap)
        np.testing.assert_array_equal(pool.features, X)
        assert pool.fingerprint == load_pool((tmp_path / name).read_bytes(), file_name=name).fingerprint
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(load_pool(tmp_path / "f.npy").features, X)


def test_a_source_with_its_own_split_keeps_it():
    pool = load_pool(npz(x_train=X[:20], y_train=Y[:20], x_test=X[20:], y_test=Y[20:]), file_name="s.npz")
    np.testing.assert_array_equal(pool.test.test, np.arange(20, 30))
    np.testing.assert_array_equal(pool.split(5).trainable, np.arange(20))


def test_missing_numbers():
    bad = X.copy()
    bad[2, 1] = np.nan
    bad[5, 0] = np.inf
    data = npz(X=bad, y=Y)
    with pytest.raises(InputError, match=r"Row 3, column 'x2' holds nan"):
        load_pool(data, file_name="a.npz")
    dropped = load_pool(data, file_name="a.npz", missing="drop")
    assert len(dropped) == 28 and "2" not in list(dropped.items.ids) and dropped.notes
    filled = load_pool(data, file_name="a.npz", missing="impute")
    assert filled.features[2, 1] == np.median(np.delete(X[:, 1], 2)) and filled.notes
    again = feature_map_from_json(filled.feature_map.to_json())
    np.testing.assert_array_equal(again.transform(bad), filled.features)


def test_pickles_are_never_opened():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    trap = np.array([Trap(), Trap()], dtype=object)
    stream = io.BytesIO()
    np.savez(stream, X=trap)
    with pytest.raises(InputError, match="pickled Python objects"):
        load_pool(stream.getvalue(), file_name="a.npz")
    stream = io.BytesIO()
    np.save(stream, trap)
    with pytest.raises(InputError, match="pickled Python objects"):
        load_pool(stream.getvalue(), file_name="a.npy")


def test_bombs_and_lying_headers():
    stream = io.BytesIO()
    np.savez_compressed(stream, X=np.zeros((4000, 1000)))
    with pytest.raises(InputError, match=r"unpacked.*limit is 10 MB"):
        load_pool(stream.getvalue(), file_name="a.npz", max_bytes=10 << 20)
    honest = npy(np.zeros((30, 4)))
    lying = honest.replace(b"(30, 4), ", b"(3000000000000, 4), ").replace(b"          \n", b"\n", 1)
    with pytest.raises(InputError, match=r"cut short|cannot? be read|can be read"):
        load_pool(lying, file_name="a.npy")
    with pytest.raises(InputError, match="cut short"):
        load_pool(honest[:-8], file_name="a.npy")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("X.npy", honest[:-8])
    with pytest.raises(InputError, match="cut short"):
        load_pool(packed.getvalue(), file_name="a.npz")


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"Z": X, "W": X}, "no array of items.*it has Z, W.*x="),
        ({"X": X, "y": Y[:5]}, "30 items, but classes of shape"),
        ({"X": X, "y": np.zeros(30, int)}, "one class only"),
        ({"X": X, "y": np.arange(30)}, "30 classes for 30 items"),
        ({"X": X[:1]}, "single item"),
        ({"X": X[:0]}, "no items"),
        ({"X": X[:, :0]}, "must hold a table"),
        ({"X": X[:, 0]}, "must hold a table"),
        ({"X": X.astype(str)}, "where numbers are needed"),
        ({"X": X, "ids": ["a"] * 30}, "id 'a' more than once"),
        ({"X": X, "y": Y, "classes": ["p", "q"]}, "only 2 classes have names"),
        ({"X": X, "feature_names": ["a"]}, "names 1 columns but has 4"),
        ({"x_train": X, "x_test": X[:, :3]}, "differ in shape"),
    ],
)
def test_bad_arrays(arrays, match):
    with pytest.raises(InputError, match=match):
        load_pool(npz(**arrays), file_name="a.npz")


def test_not_an_archive():
    for name in ("a.npz", "a.npy"):
        with pytest.raises(InputError, match="can be read"):
            load_pool(b"no such thing", file_name=name)
        with pytest.raises(InputError, match="no file"):
            load_pool(name)
    with pytest.raises(InputError, match=r"no option 'treshold'.*missing"):
        load_pool(npz(X=X), file_name="a.npz", treshold=1)
    with pytest.raises(InputError, match="for images"):
        load_pool(npz(X=X), file_name="a.npz", features="embeddings:v.npz")
