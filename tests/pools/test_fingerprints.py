import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.pools import compare_fingerprints, load_pool
from workbench.pools.fingerprints import fingerprint_rows, fingerprint_values
from workbench.pools.tables import building

TEXT = b"id,a,b\nx,1,u\ny,2,v\nz,3,u\n"


def fingerprints(data: bytes):
    return load_pool(data, file_name="t.csv", text="one-hot").fingerprints


def test_every_cell_counts_and_its_place():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    base = fingerprint_rows(X)
    assert len(np.unique(base)) == 200 and base.dtype == np.uint64
    for column in range(7):
        changed = X.copy()
        changed[5, column] = np.nextafter(changed[5, column], 9)
        assert np.flatnonzero(fingerprint_rows(changed) != base).tolist() == [5]
    assert (fingerprint_rows(X[:, ::-1]) != base).all()
    assert (fingerprint_rows(np.zeros((1, 3))) == fingerprint_rows(-np.zeros((1, 3)))).all()


def test_images_of_bytes_hash_without_collisions():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, size=(5000, 5, 3), dtype=np.uint8)
    distinct = len(np.unique(images.reshape(5000, -1), axis=0))
    assert len(np.unique(fingerprint_rows(images))) == distinct


@given(st.lists(st.text(), min_size=1, max_size=20))
def test_texts_hash_by_content(texts):
    words = fingerprint_values(texts)
    assert len(set(words.tolist())) == len(set(texts))


def test_appended_rows_are_accepted():
    assert compare_fingerprints(fingerprints(TEXT), fingerprints(TEXT + b"w,4,w\n")) == 1


def test_a_text_appended_to_a_column_of_numbers_leaves_the_other_rows_alone():
    old = fingerprints(TEXT)
    pool = load_pool(TEXT + b"w,?,u\n", file_name="t.csv", text="one-hot", missing="impute")
    assert compare_fingerprints(old, pool.fingerprints) == 1


@pytest.mark.parametrize(
    "data, said",
    [
        (b"id,a,b\nx,1,u\ny,2.5,v\nz,3,u\n", "1 changed (1)."),
        (b"id,a,b\nx,1,u\nz,3,u\n", "1 removed (1)."),
        (b"id,a,b\ny,2,v\nx,1,u\nz,3,u\n", "2 moved (0, 1)."),
        (b"id,a,b\nx,9,u\nz,3,u\nw,1,u\n", "2 changed (0, 1); 1 moved (2)."),
    ],
)
def test_changed_removed_and_moved_rows_are_numbered(data, said):
    with pytest.raises(InputError) as caught:
        compare_fingerprints(fingerprints(TEXT), fingerprints(data), name="my pool")
    for word in [said, "'my pool'", "start a new project", "can still be exported"]:
        assert word in str(caught.value), str(caught.value)


def test_of_many_rows_the_first_are_numbered():
    X = np.arange(20.0).reshape(10, 2)
    old = fingerprint_rows(X)
    changed = X.copy()
    changed[3] = -1
    with pytest.raises(InputError, match=r"1 changed \(3\)"):
        compare_fingerprints(old, fingerprint_rows(changed))
    with pytest.raises(InputError, match=r"1 removed \(3\)"):
        compare_fingerprints(old, fingerprint_rows(np.delete(X, 3, axis=0)))
    with pytest.raises(InputError, match=r"2 moved \(0, 1\)"):
        compare_fingerprints(old, fingerprint_rows(X[[1, 0, *range(2, 10)]]))
    many = fingerprint_rows(X + 100)
    with pytest.raises(InputError, match="and 5 more"):
        compare_fingerprints(old, many)


def test_the_truth_is_part_of_the_pool_but_not_of_its_items():
    one = load_pool(b"a,y\n1,p\n2,q\n3,q\n", file_name="t.csv", target="y")
    two = load_pool(b"a,y\n1,p\n2,q\n3,p\n", file_name="t.csv", target="y")
    np.testing.assert_array_equal(one.fingerprints, two.fingerprints)
    assert one.fingerprint != two.fingerprint


def test_a_fingerprint_is_the_same_in_every_version():
    rows = np.arange(12.0).reshape(3, 4)
    assert fingerprint_rows(rows)[:2].tolist() == [18068433801665268369, 4014464305095679948]
    assert fingerprint_rows(rows.astype(np.uint8)[:, :3])[0] == 14955961845013547367


def test_large_items_differ_by_a_single_byte():
    images = np.zeros((3, 800, 700), np.uint8)
    images[1, 799, 699] = 1
    found = fingerprint_rows(images)
    assert found[0] == found[2] != found[1]


def test_fingerprints_do_not_depend_on_how_many_rows_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ["a1", "7", "", "1e3", "-0", "b", "007", "18446744073709551616"]
    table = "id,x,left out,label\n" + "".join(
        f"{key or 'none'},{i},{key},{'yn'[i % 2]}\n" for i, key in enumerate(ids)
    )
    options = {"file_name": "t.csv", "target": "label", "exclude": ("left out",)}
    whole = load_pool(table.encode(), **options)
    monkeypatch.setattr(building, "_AT_ONCE", 3)
    assert load_pool(table.encode(), **options).fingerprints.tolist() == whole.fingerprints.tolist()
