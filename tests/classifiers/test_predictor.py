import pickle
import subprocess
import sys

import numpy as np
import pytest

from workbench.classifiers import Geometry
from workbench.classifiers import predictor as predictor_module
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import StationaryKernel
from workbench.engine.projection import cached_basis, make_basis, project


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    geometry = Geometry.of(X, 20, 0, n_mean=30)
    kernel = StationaryKernel("squared-exponential", 0.9, 4.0)
    basis = make_basis(geometry.inducing, kernel)
    A = rng.standard_normal((3, 20, 6))  # six directions learnt by each class
    covariance = np.linalg.inv(np.eye(20) + A @ A.transpose(0, 2, 1))
    return X, geometry, kernel, basis, rng.standard_normal((20, 3)), covariance


def stated(X, geometry, kernel, basis, mean, covariance):
    """kt + phi' S phi, as written down."""
    Phi, kt = project(geometry.transform(X), basis, kernel)
    return Phi @ mean, kt[:, None] + np.einsum("np,cpq,nq->nc", Phi, covariance, Phi)


def test_it_is_the_stated_posterior(posterior):
    X, geometry, kernel, basis, mean, covariance = posterior
    latent = Predictor.from_posterior(geometry, kernel, basis, mean, covariance)(X)
    expected = stated(*posterior)
    assert latent.mean == pytest.approx(expected[0], abs=1e-11)
    assert latent.variance == pytest.approx(expected[1], abs=1e-11)


def test_the_rank_is_what_was_learnt(posterior):
    _, geometry, kernel, basis, mean, covariance = posterior
    predictor = Predictor.from_posterior(geometry, kernel, basis, mean, covariance)
    assert list(predictor.folded.ranks) == [6, 6, 6]
    untouched = covariance.copy()
    untouched[1] = np.eye(20)  # a class no label ever touched: the prior
    predictor = Predictor.from_posterior(geometry, kernel, basis, mean, untouched)
    assert list(predictor.folded.ranks) == [6, 0, 6]
    assert predictor(np.zeros((2, 3))).variance[:, 1] == pytest.approx(4.0)


def test_a_covariance_that_rounding_made_negative_still_has_a_root():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    for least in (0.5, 1e-12, 0.0, -1e-7, -1e-6):
        S = (Q * np.r_[np.linspace(1.0, 0.1, 29), least]) @ Q.T
        R = predictor_module._root(S)
        assert np.array_equal(R, np.tril(R))
        assert pytest.approx(S, abs=4e-5) == R.T @ R


def test_covariances_above_the_prior_are_kept(posterior):
    X, geometry, kernel, basis, mean, covariance = posterior
    wide = covariance.copy()
    wide[0] += 2.0 * np.outer(np.ones(20), np.ones(20)) / 20
    latent = Predictor.from_posterior(geometry, kernel, basis, mean, wide)(X)
    assert latent.variance == pytest.approx(stated(X, geometry, kernel, basis, mean, wide)[1], abs=1e-10)


def test_a_wide_mean_leaves_the_variance_alone(posterior):
    X, geometry, kernel, basis, _, covariance = posterior
    wide = make_basis(np.concatenate([geometry.inducing, geometry.mean_inducing]), kernel)
    coefficients = np.random.default_rng(1).standard_normal((len(wide.points), 3))
    predictor = Predictor.from_posterior(geometry, kernel, basis, coefficients, covariance, mean_basis=wide)
    latent = predictor(X)
    assert latent.mean == pytest.approx(
        project(geometry.transform(X), wide, kernel)[0] @ coefficients, abs=1e-10
    )
    assert latent.variance == pytest.approx(stated(*posterior)[1], abs=1e-11)
    assert predictor.mean(X) == pytest.approx(latent.mean)
    assert predictor.project(X) == pytest.approx(project(geometry.transform(X), basis, kernel)[0], abs=1e-10)


def test_chunks_do_not_show(posterior):
    _, *rest = posterior
    predictor = Predictor.from_posterior(*rest)
    X = np.random.default_rng(2).standard_normal((5000, 3))
    whole = predictor(X)
    for rows in (slice(0, 10), slice(2040, 2060), slice(4990, 5000)):
        assert predictor(X[rows]).mean == pytest.approx(whole.mean[rows], abs=1e-12)
        assert predictor(X[rows]).variance == pytest.approx(whole.variance[rows], abs=1e-12)
    assert predictor(X[:0]).mean.shape == (0, 3)


def test_float32_is_close(posterior):
    X, *rest = posterior
    double = Predictor.from_posterior(*rest)(X)
    single = Predictor.from_posterior(*rest, dtype=np.float32)(X)
    assert single.mean.dtype == np.float32
    assert single.mean == pytest.approx(double.mean, abs=2e-2)
    assert single.variance == pytest.approx(double.variance, abs=2e-2)
    assert (single.variance >= 0).all()


def test_binary_models_answer_for_both_classes(posterior):
    X, geometry, kernel, basis, mean, covariance = posterior
    one = Predictor.from_posterior(geometry, kernel, basis, mean[:, :1], covariance[:1])(X)
    two = Predictor.from_posterior(geometry, kernel, basis, mean[:, :1], covariance[:1], binary=True)(X)
    assert two.mean == pytest.approx(np.concatenate([-one.mean / 2, one.mean / 2], axis=1))
    assert two.variance == pytest.approx(np.repeat(one.variance / 2, 2, axis=1))


@pytest.mark.parametrize("name", ["squared-exponential", "matern52", "matern32", "exponential"])
@pytest.mark.parametrize("length", [0.8, np.array([0.5, 1.0, 2.0])])
def test_kernels_are_gpflows(name, length):
    from workbench.engine.kernels import to_gpflow

    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((30, 3)), rng.standard_normal((7, 3))
    kernel = StationaryKernel(name, length, 2.5)
    assert kernel(X, Z) == pytest.approx(to_gpflow(kernel)(X, Z).numpy(), abs=1e-12)
    assert kernel.diagonal(X) == pytest.approx(to_gpflow(kernel)(X, full_cov=False).numpy())


def test_arrays_pickle_and_another_process(posterior, tmp_path):
    X, *rest = posterior
    predictor = Predictor.from_posterior(*rest)
    again = Predictor.from_arrays(predictor.to_arrays())
    np.testing.assert_array_equal(again(X).mean, predictor(X).mean)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predictor))(X).variance, predictor(X).variance)
    np.savez(tmp_path / "p.npz", X=X[:10], expected=predictor(X[:10]).mean, **predictor.to_arrays())
    code = (
        "import sys, numpy as np; from workbench.classifiers.predictor import Predictor;"
        f"a = dict(np.load({str(tmp_path / 'p.npz')!r}));"
        "ok = np.allclose(Predictor.from_arrays(a)(a['X']).mean, a['expected'], atol=1e-12);"
        "heavy = {'tensorflow', 'gpflow', 'sklearn'} & set(sys.modules);"
        "sys.exit(0 if ok and not heavy else f'{ok} {heavy}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_singular_points_get_more_jitter():
    kernel = StationaryKernel("squared-exponential", 50.0, 10.0)
    points = 1e-4 * np.random.default_rng(0).standard_normal((40, 2))
    basis = make_basis(np.concatenate([points, points]), kernel)
    assert np.isfinite(basis.whitener).all()
    Phi, kt = project(points, basis, kernel)
    assert (kt >= 0).all() and np.isfinite(Phi).all()


def test_kept_bases_are_kept_by_what_they_are_made_of():
    kernel = StationaryKernel("squared-exponential", 1.0, 2.0)
    points = np.random.default_rng(0).standard_normal((10, 2))
    first = cached_basis(points, kernel)
    assert cached_basis(points.copy(), StationaryKernel("squared-exponential", 1.0, 2.0)) is first
    assert cached_basis(points, StationaryKernel("squared-exponential", 1.1, 2.0)) is not first
    assert cached_basis(points, kernel, np.float32).jitter > first.jitter
    for seed in range(6):
        cached_basis(np.random.default_rng(seed + 1).standard_normal((10, 2)), kernel)
    assert cached_basis(points, kernel) is not first
