"""What the tests of forward mode share."""

from __future__ import annotations

import numpy as np
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.layers.dual import Dual


def raw(xp, data, dtype="float64"):
    return xp.asarray(np.asarray(data, dtype=dtype)).array


def along(f, xp):
    """The derivative of a function of one array along ones."""
    return lambda x: func.jvp(
        f, (x,), (xp.ones_like(x) if isinstance(x, (mg.Tensor, Dual)) else xp.ones_like(x).array,)
    )[1]


def close(found, expected):
    np.testing.assert_allclose(values(found), expected, rtol=1e-12, atol=1e-14)


def at(xp, f, *data):
    """What `f` does to Duals of these primals along ones: its values and their tangents."""
    return func.jvp(
        f, tuple(raw(xp, x) for x in data), tuple(raw(xp, np.ones_like(x)) for x in data)
    )
