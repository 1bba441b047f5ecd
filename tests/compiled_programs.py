"""Comparing a compiled function with the function itself."""

from __future__ import annotations

import copy

import numpy as np

import multigrad as mg
from multigrad import func

X = np.arange(1.0, 4.0)


def same(function, *calls, programs=1, **options):
    """Compile a function, and compare each of the calls, with what it does to its arguments.

    A program that fails is not noticed by its results, since the function itself is called then.
    """
    called = []

    def noted(*args):
        called.append(args)
        return function(*args)

    compiled = func.compile(noted, **options)
    for args in calls:
        ours, own = copy.deepcopy(args), copy.deepcopy(args)
        expected, found = function(*own), compiled(*ours)
        equal(found, expected)
        equal(ours, own)
    assert programs is None or len(compiled.programs) == programs
    assert programs is None or len(called) <= 2 * programs  # recorded, and compared once
    return compiled


def equal(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            equal(x, y)
    elif hasattr(expected, "shape"):
        assert isinstance(found, mg.Tensor) == isinstance(expected, mg.Tensor)
        # a scalar of NumPy, or an array without axes
        assert isinstance(found, np.generic) == isinstance(expected, np.generic)
        np.testing.assert_array_equal(values(found), values(expected))
        assert values(found).dtype == values(expected).dtype
    else:
        assert (found == expected or expected != expected) and type(found) is type(expected)


def values(x):
    return np.asarray(x.detach().array if isinstance(x, mg.Tensor) else x)
