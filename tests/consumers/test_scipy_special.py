"""With the plugin multigrad-special SciPy's special functions, and what is made of them, are
differentiable (SCIPY_ARRAY_API=1).

SciPy asks the namespace of its argument for `special.<name>`, and the plugin's functions have
SciPy's names. Nothing in SciPy is changed, and nothing there knows of multigrad.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as special
import scipy.stats as stats
from consumer_checks import check, check_float32, drawn, values

import multigrad as mg
from multigrad import registry
from multigrad.errors import GradientError, MissingRuleError

pytest.importorskip("multigrad_special", reason="the plugin is a distribution of its own")

X, Y, P = drawn(2, 3), drawn(2, 3, seed=1), drawn(2, 3, low=0.1, high=0.9)
V, W = drawn(6), drawn(6, seed=2)

UNARY = {
    "erf": X - 1,
    "erfc": X - 1,
    "erfcx": X - 1,
    "erfinv": P,
    "gamma": X,
    "gammaln": X,
    "psi": X,
    "digamma": X,
    "expit": X - 1,
    "logit": P,
    "ndtr": X - 1,
    "log_ndtr": X - 1,
    "ndtri": P,
    "entr": X,
    "i0": X - 1,
    "i0e": X,
    "i1": X - 1,
    "i1e": X,
}
BINARY = {
    "betaln": (X, Y),
    "kl_div": (X, Y),
    "rel_entr": (X, Y),
    "xlogy": (X, Y),
    "xlog1py": (X, Y),
}
# Differentiable by the last argument; the others are parameters.
TAILS = {
    "gammainc": (X,),
    "gammaincc": (X,),
    "chdtr": (X,),
    "chdtrc": (X,),
    "stdtr": (X,),
    "betainc": (X, Y),
    "betaincc": (X, Y),
}


def constant(x: Any, like: Any) -> Any:
    """A NumPy array as one of the kind of `like`."""
    return like.__array_namespace__().asarray(x) if hasattr(like, "__array_namespace__") else x


def tail(name: str) -> Any:
    parameters = TAILS[name]
    return lambda x: getattr(special, name)(*(constant(p, x) for p in parameters), x)


@pytest.mark.parametrize("name", UNARY)
def test_of_one_argument(name: str, backend: str) -> None:
    check(backend, getattr(special, name), UNARY[name], value_rtol=1e-11)


@pytest.mark.parametrize("name", BINARY)
def test_of_two_arguments(name: str, backend: str) -> None:
    check(backend, getattr(special, name), *BINARY[name], value_rtol=1e-11)


@pytest.mark.parametrize("name", TAILS)
def test_of_parameters_and_an_argument(name: str, backend: str) -> None:
    check(backend, tail(name), P, value_rtol=1e-11)


def test_polygamma(backend: str) -> None:
    check(backend, lambda x: special.polygamma(1, x), X, value_rtol=1e-11)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_float32_stays_float32(name: str) -> None:
    check_float32(
        "numpy", getattr(special, name), *((UNARY[name],) if name in UNARY else BINARY[name])
    )


def test_scipy_finds_what_it_looks_for_by_name() -> None:
    """Every function that SciPy looks for in a namespace, by its own table."""
    table = pytest.importorskip(
        "scipy.special._support_alternative_backends", reason="SciPy's table is private to it"
    )
    assert {function.name for function in table._special_funcs} <= {
        name.removeprefix("special.") for name in registry.OPS
    }


def test_a_derivative_by_a_parameter_is_missed_not_dropped() -> None:
    k, m = mg.asarray(X, requires_grad=True), mg.asarray(Y, requires_grad=True)
    y = special.pdtr(k, m).sum()
    with pytest.raises(
        MissingRuleError, match="'special.pdtr' has no derivative rule for its argument 'k'"
    ):
        y.backward()


@pytest.mark.parametrize("name", ["dawsn", "struve"])
def test_functions_that_the_plugin_lacks_do_not_drop_the_gradient(name: str, backend: str) -> None:
    x = mg.asarray(V + 1, backend=backend)
    order = (1.0,) if name == "struve" else ()
    np.testing.assert_allclose(
        values(getattr(special, name)(*order, x)), getattr(special, name)(*order, V + 1), rtol=1e-12
    )
    x.requires_grad_()
    with pytest.raises(
        GradientError, match=rf"Can't call scipy.special.{name}\(\) on Tensor that requires grad"
    ):
        getattr(special, name)(*order, x)


@pytest.mark.parametrize("name", ["log_expit", "beta"])
def test_ufuncs_that_scipy_does_not_dispatch(name: str, backend: str) -> None:
    """NumPy's protocol leads them to the plugin's functions."""
    check(
        backend,
        getattr(special, name),
        *((X - 1,) if name == "log_expit" else (X, Y)),
        value_rtol=1e-11,
        raw=backend == "numpy",
    )


# ----- what is made of them -----

STATISTICS: dict[str, tuple[Any, ...]] = {
    "entropy": (lambda x: stats.entropy(x, axis=1), X),
    "entropy, relative": (lambda x, y: stats.entropy(x, y, axis=1), X, Y),
    "ttest_1samp": (lambda x: tuple(stats.ttest_1samp(x, 0.5)), V),
    "ttest_ind": (lambda x, y: tuple(stats.ttest_ind(x, y)), V, W),
    "ttest_rel": (lambda x, y: tuple(stats.ttest_rel(x, y)), V, W),
    "pearsonr": (lambda x, y: tuple(stats.pearsonr(x, y)), V, W),
    "jarque_bera": (lambda x: tuple(stats.jarque_bera(x)), V),
    "skewtest": (lambda x: tuple(stats.skewtest(x)), drawn(10)),
    "kurtosistest": (lambda x: tuple(stats.kurtosistest(x)), drawn(22)),
    "normaltest": (lambda x: tuple(stats.normaltest(x)), drawn(22)),
    "chisquare": (lambda x: tuple(stats.chisquare(x, sum_check=False)), V),
    "power_divergence": (lambda x: tuple(stats.power_divergence(x, lambda_=0.5)), V),
    "bartlett": (lambda x, y: tuple(stats.bartlett(x, y)), V, W),
    "f_oneway": (lambda x, y: tuple(stats.f_oneway(x, y)), V, W),
    "levene": (lambda x, y: tuple(stats.levene(x, y)), V, W),
    "alexandergovern": (
        lambda x, y: (r := stats.alexandergovern(x, y)) and (r.statistic, r.pvalue),
        V,
        W,
    ),
}


@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str, backend: str) -> None:
    function, *args = STATISTICS[name]
    check(backend, function, *args, value_rtol=1e-10)


@pytest.mark.parametrize("name", ["entropy", "ttest_1samp", "pearsonr"])
def test_statistics_on_jax(name: str) -> None:
    pytest.importorskip("jax", reason="jax is an optional backend")
    function, *args = STATISTICS[name]
    check("jax", function, *args, value_rtol=1e-10)
