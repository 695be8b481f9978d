"""Scoring a pool in chunks is scoring the pool."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.classifiers.latent import Latent
from workbench.errors import Cancelled, InputError
from workbench.policies import POLICIES, Belief, batches, utilities, variation_ratio
from workbench.policies.scan import ScanResult, score_pool
from workbench.pools.formats.arrow import ParquetSource
from workbench.pools.loading import open_source

D, C = 6, 5
COLUMNS = [f"f{j}" for j in range(D)]


class Bumps:
    """A stand-in for a Predictor: the same call, saved and loaded the same way."""

    temperature = 1.3

    def __init__(self, centres: np.ndarray) -> None:
        self.centres = centres
        self.n_features = centres.shape[1]

    def __call__(self, X: np.ndarray) -> Latent:
        near = np.exp(-0.1 * ((np.asarray(X)[:, None, :] - self.centres) ** 2).sum(axis=2))
        return Latent(3.0 * near, 2.0 - near)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"centres": self.centres}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Bumps":
        return cls(arrays["centres"])


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(5_000, D)) * 2


@pytest.fixture(scope="module")
def bumps() -> Bumps:
    return Bumps(np.random.default_rng(1).normal(size=(C, D)))


def by_hand(X: np.ndarray, bumps: Bumps, policy: str = "variation-ratio") -> np.ndarray:
    mean, variance = bumps(X)
    p = np.exp(bumps.temperature * mean)
    b = Belief(
        features=X,
        labelled=np.empty(0, int),
        labels=np.empty(0, int),
        n_classes=C,
        latent=Latent(mean, variance),
        probabilities=p / p.sum(axis=1, keepdims=True),
        temperature=bumps.temperature,
    )
    return utilities(policy, b, np.random.default_rng([0]))


def same(a: ScanResult, b: ScanResult) -> None:
    assert np.array_equal(a.indices, b.indices)
    assert np.array_equal(a.utilities, b.utilities)
    assert np.array_equal(a.histogram.counts, b.histogram.counts)
    assert (a.n_rows, a.n_scored) == (b.n_rows, b.n_scored)


def parquet(folder: Path, X: np.ndarray, cuts: tuple[int, ...] = (1_700, 3_100), **options: object) -> Path:
    folder.mkdir()
    for i, part in enumerate(np.split(X, cuts)):
        pd.DataFrame(part, columns=COLUMNS).to_parquet(folder / f"part-{i}.parquet", **options)  # type: ignore[call-overload]
    return folder


STREAMING = [
    e.name for e in POLICIES.values() if e.rowwise and e.name not in ("random", "variation-ratio-mc")
]


@pytest.mark.parametrize("policy", STREAMING)
def test_equals_scoring_all_at_once(X: np.ndarray, bumps: Bumps, policy: str) -> None:
    every = by_hand(X, bumps, policy)
    result = score_pool(X, bumps, policy, top=40, chunk_rows=700, threads=1)
    np.testing.assert_allclose(result.utilities, np.sort(every)[::-1][:40], rtol=1e-10)
    np.testing.assert_allclose(every[result.indices], result.utilities, rtol=1e-10)
    assert result.histogram.counts.sum() == len(X) == result.n_rows == result.n_scored
    if result.histogram.of == "utility":
        # the utilities of all items, from the first bin that holds one to the last
        assert result.histogram.counts[0] and result.histogram.counts[-1]
        assert np.array_equal(result.histogram.counts, np.histogram(every, result.histogram.edges)[0])


@pytest.mark.parametrize("policy", ["random", "variation-ratio-mc"])
def test_policies_that_draw_repeat_with_the_seed(X: np.ndarray, bumps: Bumps, policy: str) -> None:
    first, again, other = (score_pool(X, bumps, policy, top=20, seed=s, threads=2) for s in (3, 3, 4))
    same(first, again)
    assert not np.array_equal(first.indices, other.indices)
    assert len(set(first.indices.tolist())) == 20


@pytest.mark.parametrize("policy", ["variation-ratio", "margin"])
def test_chunks_and_threads_change_nothing(X: np.ndarray, bumps: Bumps, policy: str) -> None:
    whole = score_pool(X, bumps, policy, top=25, threads=1)
    for chunk_rows, threads in ((64, 1), (999, 2), (5_000, 3)):
        same(score_pool(X, bumps, policy, top=25, chunk_rows=chunk_rows, threads=threads), whole)


def test_memory_maps_archives_and_parquet_are_the_same_pool(
    X: np.ndarray, bumps: Bumps, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X, y=np.zeros(len(X)))
    np.savez_compressed(tmp_path / "packed.npz", X)
    pd.DataFrame(X, columns=COLUMNS).to_parquet(tmp_path / "one.parquet", row_group_size=1_300)
    folder = parquet(tmp_path / "parts", X)
    whole = score_pool(X, bumps, top=25)
    for name in ("x.npy", "x.npz", "packed.npz", "one.parquet"):
        same(score_pool(tmp_path / name, bumps, top=25), whole)
    parts = score_pool(str(folder), bumps, top=25)
    same(parts, whole)
    row = int(parts.indices[0])
    part = int(np.searchsorted([1_700, 3_100], row, side="right"))
    assert parts.where[0] == f"row {row} (part-{part}.parquet, row {row - [0, 1_700, 3_100][part]})"


def test_a_pool_is_a_source_and_names_its_items(bumps: Bumps) -> None:
    from workbench.pools import load_pool

    pool = load_pool("iris")
    model = Bumps(np.random.default_rng(0).normal(size=(3, 4)))
    result = score_pool(pool, model, top=5, exclude=pool.trainable[:50])
    assert result.n_scored == len(pool) - 50
    assert result.where[0].startswith(f"row {result.indices[0]} (id")


def test_excluded_rows_are_never_given(X: np.ndarray, bumps: Bumps) -> None:
    best = score_pool(X, bumps, top=30).indices
    for policy in ("variation-ratio", "margin", "random"):
        result = score_pool(X, bumps, policy, top=30, exclude=best, chunk_rows=333)
        assert not np.isin(result.indices, best).any()
        assert result.n_scored == len(X) - 30 == result.histogram.counts.sum()
    # chunks without a single row left
    result = score_pool(X, bumps, top=30, exclude=np.arange(4_000), chunk_rows=500)
    assert result.indices.min() >= 4_000


def test_nan_in_an_excluded_rows_utility_is_nobodys_concern(X: np.ndarray, bumps: Bumps) -> None:
    def holes(b: Belief, g: np.random.Generator) -> np.ndarray:
        values = np.array(b.features[:, 0])
        values[values > 5] = np.nan
        return values

    gone = np.flatnonzero(X[:, 0] > 5)
    assert score_pool(X, bumps, holes, top=3, exclude=gone).utilities.max() <= 5
    with pytest.raises(InputError, match=f"row {gone[0]}: its utility is not a number"):
        score_pool(X, bumps, holes, top=3, threads=1)


def test_ties_are_broken_by_the_seed_alone(bumps: Bumps) -> None:
    flat = np.zeros((3_000, D))
    for policy in ("variation-ratio", "margin"):
        whole = score_pool(flat, bumps, policy, top=10, seed=1)
        same(score_pool(flat, bumps, policy, top=10, seed=1, chunk_rows=77, threads=2), whole)
        assert not np.array_equal(score_pool(flat, bumps, policy, top=10, seed=2).indices, whole.indices)
        assert np.ptp(whole.indices) > 500  # not the first of the pool


def test_one_item_of_chunks_of_one_row_is_the_best(X: np.ndarray, bumps: Bumps) -> None:
    every = by_hand(X[:60], bumps)
    assert score_pool(X[:60], bumps, top=1, chunk_rows=1, threads=1).indices.tolist() == [every.argmax()]


def test_more_than_there_are_gives_all_and_says_so(X: np.ndarray, bumps: Bumps) -> None:
    result = score_pool(X[:40], bumps, top=100, exclude=[3, 5])
    assert sorted(result.indices.tolist()) == [i for i in range(40) if i not in (3, 5)]
    assert "only 38 are left" in result.warnings[0]


def test_histogram_of_the_variation_ratio_is_of_its_lower_bound(X: np.ndarray, bumps: Bumps) -> None:
    from workbench.policies.variation import bounds

    low, _ = bounds(*(lambda m, v: (m, np.sqrt(v)))(*bumps(X)))
    histogram = score_pool(X, bumps, chunk_rows=512).histogram
    assert np.array_equal(histogram.counts, np.histogram(np.minimum(low, 0.8), histogram.edges)[0])
    assert "lower bound" in histogram.of


def test_float32_moments_rank_by_float64_factors(X: np.ndarray, bumps: Bumps) -> None:
    def single(rows: np.ndarray) -> Latent:
        return Latent(*(a.astype(np.float32) for a in bumps(rows)))

    result = score_pool(X, single, top=30)
    every = variation_ratio(*single(X))
    assert result.utilities.dtype == np.float64
    np.testing.assert_array_equal(result.utilities, every[result.indices])
    np.testing.assert_allclose(result.utilities, np.sort(every)[::-1][:30])


def test_a_feature_map_reads_raw_rows(X: np.ndarray, bumps: Bumps, tmp_path: Path) -> None:
    class Halve:
        columns = tuple(COLUMNS)
        sources = ("b", *COLUMNS[1:])

        def transform(self, rows: object) -> np.ndarray:
            if isinstance(rows, pd.DataFrame):
                assert list(rows.columns) == list(self.sources)
                rows = rows.to_numpy()
            return np.asarray(rows) / 2

        def to_json(self) -> dict[str, object]:
            return {}

    frame = pd.DataFrame(2 * X, columns=["b", *COLUMNS[1:]])
    frame["note"] = "text"
    frame.to_parquet(tmp_path / "raw.parquet")
    whole = score_pool(X, bumps, top=10)
    same(score_pool(tmp_path / "raw.parquet", bumps, top=10, feature_map=Halve()), whole)
    np.save(tmp_path / "raw.npy", 2 * X)
    same(score_pool(tmp_path / "raw.npy", bumps, top=10, feature_map=Halve()), whole)


class TestModels:
    def test_a_fitted_classifier_gives_its_own_probabilities(self, X: np.ndarray) -> None:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression().fit(X[:200], (X[:200, 0] > 0).astype(int))
        result = score_pool(X, model, "least-confident", top=10)
        expected = np.sort(1 - model.predict_proba(X).max(axis=1))[::-1][:10]
        np.testing.assert_allclose(result.utilities, expected)
        with pytest.raises(InputError, match="needs latent functions"):
            score_pool(X, model, "variation-ratio")
        with pytest.raises(InputError, match="not fitted"):
            score_pool(X, LogisticRegression(), "entropy")

    def test_the_large_margin_classifier_and_its_predictor_agree(self, X: np.ndarray) -> None:
        from workbench.classifiers import make_classifier

        y = np.digitize(X[:120, 0], [-1, 1])
        model = make_classifier("large-margin", n_inducing=16, random_state=0).fit(X[:120], y)
        whole = score_pool(X, model, top=20)
        same(score_pool(X, model.predictor_, top=20), whole)
        np.testing.assert_allclose(
            whole.utilities, np.sort(variation_ratio(*model.predict_latent(X)))[::-1][:20]
        )

    def test_probabilities_need_a_temperature_or_a_classifier(self, X: np.ndarray, bumps: Bumps) -> None:
        plain = bumps.__call__
        with pytest.raises(InputError, match="temperature"):
            score_pool(X, plain, "entropy")
        same(score_pool(X, plain, "entropy", temperature=1.3), score_pool(X, bumps, "entropy"))

    def test_features_of_another_width_are_refused(self, X: np.ndarray, bumps: Bumps) -> None:
        with pytest.raises(InputError, match="fitted on 6 features and the rows have 4"):
            score_pool(X[:, :4], bumps)


class TestBadInput:
    def test_nan_names_the_row_and_the_cause(self, X: np.ndarray, bumps: Bumps, tmp_path: Path) -> None:
        holed = X.copy()
        holed[3_333, 2] = np.nan
        for policy in ("variation-ratio", "margin"):
            with pytest.raises(InputError, match=r"row 3333: .*features hold empty"):
                score_pool(holed, bumps, policy, chunk_rows=500)
        folder = parquet(tmp_path / "parts", holed)
        with pytest.raises(InputError, match=r"row 3333 \(part-2.parquet, row 233\)"):
            score_pool(folder, bumps)

        def broken(rows: np.ndarray) -> Latent:
            mean, variance = bumps(rows)
            variance[rows[:, 0] == X[77, 0]] = np.inf
            return Latent(mean, variance)

        with pytest.raises(InputError, match=r"row 77: .*not finite. Fit the model again"):
            score_pool(X, broken)

    def test_parts_with_other_columns_are_named(self, X: np.ndarray, bumps: Bumps, tmp_path: Path) -> None:
        folder = parquet(tmp_path / "parts", X)
        frame = pd.DataFrame(X[:10], columns=COLUMNS)
        frame.rename(columns={"f3": "g3"}).to_parquet(folder / "part-9.parquet")
        with pytest.raises(InputError, match=r"part-9.parquet has no column 'f3', which part-0.parquet has"):
            score_pool(folder, bumps)
        frame.astype({"f3": str}).to_parquet(folder / "part-9.parquet")
        with pytest.raises(InputError, match=r"Column 'f3' is .*string in part-9.parquet and double"):
            score_pool(folder, bumps)
        (folder / "part-9.parquet").write_bytes(b"PAR1 not really")
        with pytest.raises(InputError, match=r"part-9.parquet is not a Parquet file"):
            score_pool(folder, bumps)

    def test_columns_in_another_order_are_read_by_name(
        self, X: np.ndarray, bumps: Bumps, tmp_path: Path
    ) -> None:
        folder = parquet(tmp_path / "parts", X)
        pd.DataFrame(X[3_100:], columns=COLUMNS)[COLUMNS[::-1]].to_parquet(folder / "part-2.parquet")
        same(score_pool(folder, bumps), score_pool(X, bumps))

    def test_texts_without_a_feature_map(self, X: np.ndarray, bumps: Bumps, tmp_path: Path) -> None:
        frame = pd.DataFrame(X, columns=COLUMNS)
        frame["note"] = "text"
        frame.to_parquet(tmp_path / "raw.parquet")
        with pytest.raises(InputError, match=r"Column 'note' of raw.parquet"):
            score_pool(tmp_path / "raw.parquet", bumps)
        same(score_pool(tmp_path / "raw.parquet", bumps, columns=COLUMNS), score_pool(X, bumps))
        with pytest.raises(InputError, match="no column 'f9'"):
            score_pool(tmp_path / "raw.parquet", bumps, columns=["f9"])

    @pytest.mark.parametrize(
        ("source", "options", "message"),
        [
            ("nothing.npy", {}, "There is no file"),
            ("nothing.parquet", {}, "There is no file"),
            ("nothing.csv", {}, "There is no file"),
            (np.zeros((0, D)), {}, "no rows"),
            (np.zeros(5), {}, "rows, columns"),
            (3, {}, "Cannot score rows of a int"),
            (np.zeros((5, D)), {"top": 0}, "top=0"),
            (np.zeros((5, D)), {"chunk_rows": 0}, "chunk_rows=0"),
            (np.zeros((5, D)), {"exclude": range(5)}, "All 5 items"),
            (np.zeros((5, D)), {"exclude": [5]}, "Excluded rows"),
            (np.zeros((5, D)), {"policy": "margins"}, "Did you mean 'margin'"),
            (np.zeros((5, D)), {"policy": "k-means"}, "cannot stream"),
            (np.zeros((5, D)), {"policy": "epig"}, "cannot stream"),
            (np.zeros((5, D)), {"policy": batches.core_set}, "cannot stream"),
            (np.zeros((5, D)), {"policy": 3}, "A policy is"),
            (np.zeros((5, D)), {"scheduler": "somewhere"}, "tcp://host:8786"),
        ],
    )
    def test_in_words(self, bumps: Bumps, source: object, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            score_pool(source, bumps, **options)  # type: ignore[arg-type]

    def test_other_files(self, bumps: Bumps, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="cannot be streamed"):
            score_pool(tmp_path / "x.csv", bumps)
        np.savez(tmp_path / "x.npz", p=np.zeros(3), q=np.zeros(3))
        with pytest.raises(InputError, match=r"no array of items under a usual name.*it has p, q"):
            score_pool(tmp_path / "x.npz", bumps)
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match=r"no \.parquet file"):
            score_pool(tmp_path / "empty", bumps)


def test_can_be_stopped_and_says_how_far_it_is(X: np.ndarray, bumps: Bumps) -> None:
    seen: list[float] = []
    score_pool(X, bumps, chunk_rows=1_000, threads=1, progress=lambda share: seen.append(share))
    assert seen == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    for threads in (1, 2):
        with pytest.raises(Cancelled):
            score_pool(X, bumps, chunk_rows=500, threads=threads, progress=lambda share: share > 0.3)


def test_blas_runs_on_one_thread_only_while_scanning(X: np.ndarray, bumps: Bumps) -> None:
    from threadpoolctl import threadpool_info

    def threads_of(b: Belief, g: np.random.Generator) -> np.ndarray:
        seen.append({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})
        return np.zeros(len(b))

    seen: list[set[int]] = []
    before = {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}
    score_pool(X, bumps, threads_of, threads=2)
    assert all(s <= {1} for s in seen)
    assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} == before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_is_bounded_and_flat_in_the_length_of_the_pool(tmp_path: Path) -> None:
    """A process of its own, over Parquet: 0.5 and 2 million rows, no TensorFlow, under 600 MB."""
    generator = np.random.default_rng(0)
    for name, parts in (("short", 2), ("long", 8)):
        (tmp_path / name).mkdir()
        for i in range(parts):
            frame = pd.DataFrame(generator.normal(size=(250_000, D)), columns=COLUMNS)
            frame.to_parquet(tmp_path / name / f"{i}.parquet")
    code = (
        "import re, sys\n"
        "import numpy as np\n"
        "from tests.policies.test_scan import Bumps, C, D\n"
        "from workbench.policies.scan import score_pool\n"
        "score_pool(sys.argv[1], Bumps(np.random.default_rng(1).normal(size=(C, D))), threads=2)\n"
        "assert 'tensorflow' not in sys.modules\n"
        # getrusage would include what the parent held at the fork
        "status = open('/proc/self/status').read()\n"
        "print(int(re.search('VmHWM:[^0-9]*([0-9]+)', status)[1]) / 1e3)\n"
    )
    peaks = []
    for name in ("short", "long"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True, check=True
        )
        peaks.append(float(done.stdout))
    assert peaks[1] < 600
    assert peaks[1] < peaks[0] + 60


def test_scanning_needs_no_tensorflow(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(500, 4)))
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from workbench.classifiers.predictor import Predictor\n"
        "from workbench.classifiers.latent import Latent\n"
        "from workbench.policies.scan import score_pool\n"
        "score_pool(sys.argv[1], lambda X: Latent(X[:, :3], np.ones((len(X), 3))), threads=1)\n"
        "print(sorted({'tensorflow', 'gpflow', 'sklearn', 'dask'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.npy")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_sources_name_rows(X: np.ndarray, tmp_path: Path) -> None:
    source = open_source(parquet(tmp_path / "parts", X))
    assert isinstance(source, ParquetSource) and source.n_rows == len(X)
    read = np.concatenate([rows for unit in source.units() for _, rows in source.chunks(unit, 300)])
    assert np.array_equal(read, X)
    assert open_source(source) is source
