"""Python's complex numbers on the left of a 0-d float64 array, which NumPy returns as np.float64.

This scalar is a float of Python, so that complex.__mul__ accepts it and returns a complex number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

FORMS: dict[str, Callable[[Any], Any]] = {
    "multiply": lambda s: 1j * s,
    "add": lambda s: 1j + s,
    "subtract": lambda s: 1j - s,
    "divide": lambda s: 1j / s,
    "pow": lambda s: 1j**s,
    "numpy": lambda s: np.multiply(1j, s),
    "function": lambda s: mg.multiply(1j, s),
}
X = np.asarray([0.3, 1.1, 0.7])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMS)
def test_derivatives_are_those_of_an_array_of_one_element(name: str, dtype: str) -> None:
    form, x = FORMS[name], X.astype(dtype)

    def scalar(x: Any) -> Any:
        return mg.real(mg.exp(form(mg.sum(x))))

    def array(x: Any) -> Any:
        return mg.sum(mg.real(mg.exp(form(mg.sum(x, keepdims=True)))))

    for run in (
        func.grad,
        func.jacfwd,
        func.hessian,
        lambda f: lambda x: func.vmap(func.grad(f))(x[None]),
        lambda f: lambda x: func.jvp(f, x, x),
        lambda f: lambda x: f(mg.asarray(x)).numpy(),
    ):
        ours, theirs = (np.asarray(run(f)(x)) for f in (scalar, array))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "float32" else 1e-13)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("name", FORMS)
def test_the_result_is_an_array_of_numpy(name: str) -> None:
    form = FORMS[name]
    for requires_grad in (False, True):
        x = mg.asarray(np.asarray(2.0), requires_grad=requires_grad)
        for s in (x, x + 1.0, mg.sum(x)):
            assert isinstance(form(s), mg.Tensor) and form(s).dtype == np.complex128
    compiled = func.compile(lambda x: form(mg.sum(x)))
    for _ in range(4):
        out = compiled(X)
        assert type(out) is np.complex128
        np.testing.assert_allclose(out, form(X.sum()), rtol=1e-14)
    with np.errstate(all="ignore"):  # and no ZeroDivisionError
        assert isinstance(mg.divide(1j, np.float64(0.0)), mg.Tensor)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_comparisons(compare: Any) -> None:
    x = mg.asarray(np.asarray(2.0))
    assert bool(compare(2 + 0j, x)) is compare(2 + 0j, 2.0)
    assert mg.equal(1j, x).dtype == np.bool_
