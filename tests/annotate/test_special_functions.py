"""The distributions and functions of statistical models, against SciPy's."""

import numpy as np
import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from annotate.core.special_functions import (
    beta_cdf,
    beta_quantile,
    beta_quantiles,
    binomial_cdf,
    binomial_tail,
    digamma,
    log_beta,
    log_logistic,
    logistic,
    normal_cdf,
    t_cdf,
    t_quantile,
)

COUNTS = st.one_of(st.integers(0, 30), st.integers(0, 100_000), st.floats(0, 5_000))
PROBABILITIES = st.one_of(st.sampled_from([0.0005, 0.025, 0.05, 0.5, 0.95, 0.975, 0.9995]), st.floats(0.0001, 0.9999))


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(COUNTS, COUNTS, PROBABILITIES)
def test_a_quantile_of_the_posterior_of_a_proportion_is_that_of_scipy(hits, misses, p):
    a, b = hits + 0.5, misses + 0.5
    assert beta_quantile(a, b, p) == close(scipy.special.betaincinv(a, b, p))


@given(st.floats(0.01, 50), st.floats(0.01, 50), PROBABILITIES)
def test_a_quantile_of_a_beta_distribution_with_any_shape_is_that_of_scipy(a, b, p):
    expected = scipy.special.betaincinv(a, b, p)
    assume(1e-250 < expected < 1 - 1e-12)
    assert beta_quantile(a, b, p) == close(expected)


@given(COUNTS, COUNTS, PROBABILITIES)
def test_the_probability_below_a_quantile_is_that_of_scipy(hits, misses, p):
    a, b = hits + 0.5, misses + 0.5
    x = float(scipy.special.betaincinv(a, b, p))
    assert beta_cdf(a, b, x) == close(scipy.special.betainc(a, b, x))


@given(st.floats(0.5, 1000), st.floats(0.5, 1000), st.floats(0, 1))
def test_the_probability_below_any_value_is_that_of_scipy(a, b, x):
    expected = scipy.special.betainc(a, b, x)
    assume(not 0 < expected < 1e-250)
    assert beta_cdf(a, b, x) == close(expected)


@given(st.integers(0, 5_000), st.integers(1, 5_000), st.floats(0.001, 0.999))
def test_the_binomial_distribution_is_that_of_scipy(k, n, p):
    distribution = scipy.stats.binom(n, p)
    assert binomial_cdf(k, n, p) == pytest.approx(distribution.cdf(k), rel=1e-11, abs=1e-200)
    assert binomial_tail(k, n, p) == pytest.approx(distribution.sf(k - 1), rel=1e-11, abs=1e-200)


@given(st.floats(-37, 8))
def test_the_normal_distribution_is_that_of_scipy(z):
    assert normal_cdf(z) == close(scipy.special.ndtr(z))


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 20.5), (20.5, 0.5), (3.5, 996.5), (400.5, 600.5)])
def test_a_series_of_quantiles_has_those_of_scipy(a, b):
    p = (np.arange(5_000) + 0.5) / 5_000
    expected = scipy.special.betaincinv(a, b, p)
    np.testing.assert_allclose(beta_quantiles(a, b, p), expected, rtol=1e-12)


@given(st.lists(st.tuples(st.floats(0.1, 1000), st.floats(0.1, 1000)), min_size=1))
def test_the_logarithm_of_the_beta_function_is_that_of_scipy(pairs):
    a, b = np.array(pairs).T
    # SciPy subtracts numbers of up to 12,000.
    np.testing.assert_allclose(log_beta(a, b), scipy.special.betaln(a, b), rtol=1e-12, atol=5e-12)


def test_the_logarithm_of_the_beta_function_keeps_its_digits_where_scipy_loses_them():
    """With b = 1, the beta function is 1 / a; with b = 2, it is 1 / (a (a + 1))."""
    a = np.array([1e3, 1e6, 1e9])
    np.testing.assert_allclose(log_beta(a, 1), -np.log(a), rtol=1e-13)
    np.testing.assert_allclose(log_beta(a, 2), -np.log(a) - np.log1p(a), rtol=1e-13)


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 9, 99.5, 1_000, 100_000])
def test_the_distribution_of_student_is_that_of_scipy(freedom):
    """Close to 0, the reference is symmetrical, because SciPy's own distribution has few digits there."""
    assert t_quantile(0.975, freedom) == close(scipy.special.stdtrit(freedom, 0.975))
    for t in (-30.0, -2.0, -0.5, 0.0, 0.5, 2.0, 30.0):
        within = scipy.special.betainc(0.5, freedom / 2, t**2 / (freedom + t**2))
        assert t_cdf(t, freedom) == pytest.approx((1 + np.sign(t) * within) / 2, rel=1e-12, abs=1e-15)
    assert t_cdf(-8.0, freedom) == pytest.approx(scipy.special.stdtr(freedom, -8.0), rel=1e-10)


def test_the_other_functions_are_those_of_scipy():
    x = np.concatenate([np.geomspace(1e-3, 1e6, 2_000), np.arange(1, 30) / 2])
    np.testing.assert_allclose(digamma(x), scipy.special.digamma(x), rtol=1e-12, atol=1e-14)
    x = np.linspace(-700, 700, 5_001)
    np.testing.assert_allclose(logistic(x), scipy.special.expit(x), rtol=1e-12)
    np.testing.assert_allclose(log_logistic(x), scipy.special.log_expit(x), rtol=1e-12)
