"""With the plugin multigrad-special SciPy's special functions are differentiable
(SCIPY_ARRAY_API=1): what the table of these calls does not say.

SciPy asks the namespace of its argument for `special.<name>`, and the plugin's functions have
SciPy's names. Nothing in SciPy is changed, and nothing there knows of multigrad.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special
from consumer_checks import drawn, values
from consumer_tables import Call, Outcome, Table

import multigrad as mg
from multigrad import registry
from multigrad.errors import GradientError

pytest.importorskip("multigrad_special", reason="the plugin is a distribution of its own")

X, Y = drawn(2, 3), drawn(2, 3, seed=1)


def test_scipy_finds_what_it_looks_for_by_name() -> None:
    """Every function that SciPy looks for in a namespace, by its own table."""
    mg.zeros(1)  # which declares the operations
    table = pytest.importorskip(
        "scipy.special._support_alternative_backends", reason="SciPy's table is private to it"
    )
    assert {function.name for function in table._special_funcs} <= {
        name.removeprefix("special.") for name in registry.OPS
    }


@pytest.mark.parametrize(("name", "order"), [("dawsn", ()), ("struve", (1.0,))])
def test_functions_that_the_plugin_lacks_do_not_drop_the_gradient(
    name: str, order: tuple[float, ...], backend: str
) -> None:
    function, x = getattr(special, name), mg.asarray(X, backend=backend)
    np.testing.assert_allclose(values(function(*order, x)), function(*order, X), rtol=1e-12)
    with pytest.raises(
        GradientError, match=rf"Can't call scipy.special.{name}\(\) on Tensor that requires grad"
    ):
        function(*order, x.requires_grad_())


@pytest.mark.parametrize(("name", "args"), [("log_expit", (X - 1,)), ("beta", (X, Y))])
def test_ufuncs_that_scipy_does_not_dispatch(name: str, args: tuple[object, ...]) -> None:
    """NumPy's protocol leads them to the plugin's functions."""
    call = Call(name, getattr(special, name), args)
    outcome = Table("", "", [call]).outcome(call, "numpy")
    assert outcome == Outcome("Tensor", "checked, with multigrad-special")
