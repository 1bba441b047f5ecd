"""What the properties leave out because multigrad has it wrong: each with its reason, and expected
to fail until it is mended. Then its name leaves the list, and the properties try it.
"""

from __future__ import annotations

import numpy as np
import program_checks as checks
import pytest

from multigrad import func
from multigrad_conformance.samples import samples_of

NUMBERS = np.asarray([0.5, 1.5, 1.0])
CALLS = {
    "einsum": lambda xp, x: xp.einsum("ij,ij->", x[:, None], x[:, None]),
    "interp": lambda xp, x: xp.interp(x[0, ...], x[1:], x[:2]),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x[0, ...]),
    "nanpercentile": lambda xp, x: xp.nanpercentile(x, 30.0),
    "nanquantile": lambda xp, x: xp.nanquantile(x, 0.3),
    "percentile": lambda xp, x: xp.percentile(x, 30.0),
    "quantile": lambda xp, x: xp.quantile(x, 0.3),
    "sinc": lambda xp, x: xp.sinc(x[0, ...]),
    "trace": lambda xp, x: xp.trace(x[:, None] * x),
}


def test_each_has_samples():
    assert all(samples_of(name) for name in checks.WITHOUT_AXES)


@pytest.mark.xfail(
    strict=True,
    reason="a recording asks NumPy for the class of results of its functions and methods, but not "
    "of those that the namespace of an argument has",
)
@pytest.mark.parametrize("name", checks.WITHOUT_AXES)
def test_the_namespace_in_a_compiled_function_returns_scalars_as_numpy_does(name):
    call = CALLS.get(name, lambda xp, x: getattr(xp, name)(x))
    compiled = func.compile(lambda x: call(x.__array_namespace__(), x))
    compiled(NUMBERS)
    assert type(compiled(NUMBERS)) is type(call(np, NUMBERS)) is np.float64
