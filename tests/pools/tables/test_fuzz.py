"""Whatever the bytes, a reader answers with a pool or with a sentence for people."""

import io
import traceback
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool

CELLS = st.sampled_from(
    ["", "1", "2.5", "-3", "x", "NaN", "inf", "1,5", '"', "'", " ", "\u00fc", "0x1", "?", "a b"]
)
TABLES = st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=7)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "ragged": st.sampled_from(["error", "drop"]),
        "missing": st.sampled_from([None, "drop", "impute"]),
        "text": st.sampled_from([None, "one-hot", "drop"]),
        "strict": st.booleans(),
        "duplicate_ids": st.sampled_from(["error", "first"]),
        "header": st.sampled_from([None, True, False]),
        "decimal": st.sampled_from([None, ".", ","]),
        "target": st.sampled_from([None, "x", "1", "x1"]),
        "id_column": st.sampled_from([None, "auto", "x", "x2"]),
    },
)
QUICK = settings(max_examples=3 * settings().max_examples // 2, suppress_health_check=list(HealthCheck))


OURS = (TypeError, AttributeError, IndexError, KeyError, NameError, AssertionError, UnboundLocalError)
"""What a reader that is right never raises by itself; a library may, over bytes that are damaged."""


def explained(error: InputError) -> None:
    """Fail where a sentence for people hides a mistake of ours."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        if isinstance(cause, OURS):
            last = traceback.extract_tb(cause.__traceback__)[-1]
            assert "workbench" not in Path(last.filename).parts, f"{cause!r} at {last.filename}:{last.lineno}"
        cause = cause.__cause__ or cause.__context__


def test_a_mistake_of_ours_is_no_sentence_for_people(monkeypatch):
    code = compile("def raised(*_, **__): raise TypeError('a mistake')", "/x/workbench/pools/y.py", "exec")
    exec(code, space := {})  # as if it stood in the package
    monkeypatch.setattr("workbench.pools.tables.examination.read_texts", space["raised"])
    with pytest.raises(AssertionError, match="a mistake"):
        opens_or_explains(b"id,x,y\n1,2,a\n2,3,b\n3,4,a\n", "t.csv", target="y")


def opens_or_explains(data: bytes, name: str, **options) -> None:
    try:
        pool = load_pool(data, file_name=name, **options)
    except InputError as error:
        assert len(str(error)) > 20
        explained(error)
        return
    assert len(pool) >= 2 and np.isfinite(np.asarray(pool.features)).all()
    assert len(pool.items.ids) == len(pool.fingerprints) == len(pool)
    pool.items.show(len(pool) - 1)


@QUICK
@given(TABLES, OPTIONS, st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_tables(rows, options, delimiter, newline):
    data = newline.join(delimiter.join(row) for row in rows).encode()
    opens_or_explains(data, "t.csv", **options)
    report = inspect_table(data, file_name="t.csv", **options)
    try:
        load_pool(data, file_name="t.csv", **options)
        assert report.ready
    except InputError as error:
        learnt = "nothing to compare" in str(error)  # by their features, which no report learns
        strict = options.get("strict") and any(p.severity == "guess" for p in report.problems)
        assert learnt or strict or not report.ready, "the report and the reader agree"


@QUICK
@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.parquet", "t.npz", "t.npy", "t.svm", "t.zip"]))
def test_any_bytes(data, name):
    opens_or_explains(data, name)


def _files() -> dict[str, bytes]:
    out = {}
    stream = io.BytesIO()
    np.savez_compressed(stream, X=np.arange(40.0).reshape(10, 4), y=np.arange(10) % 2)
    out["t.npz"] = stream.getvalue()
    stream = io.BytesIO()
    np.save(stream, np.arange(40.0).reshape(10, 4))
    out["t.npy"] = stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for i, ending in enumerate(["png", "jpg", "gif", "bmp"] * 2):
            image = io.BytesIO()
            Image.fromarray(np.full((5, 5), i * 9, np.uint8)).save(
                image, {"jpg": "JPEG"}.get(ending, ending.upper())
            )
            archive.writestr(f"{i % 2}/{i}.{ending}", image.getvalue())
    out["t.zip"] = stream.getvalue()
    import pandas as pd

    out["t.parquet"] = pd.DataFrame({"a": [1.0, 2, 3], "b": [3, 4, 5]}).to_parquet()
    return out


FILES = _files()


@QUICK
@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_sound_files_with_a_few_bytes_changed(name, changes):
    data = bytearray(FILES[name])
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    opens_or_explains(bytes(data), name)


@QUICK
@given(st.sampled_from(sorted(FILES)), st.floats(0, 1))
def test_sound_files_cut_short(name, share):
    data = FILES[name]
    opens_or_explains(data[: int(share * len(data))], name)
