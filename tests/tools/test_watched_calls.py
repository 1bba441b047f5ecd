"""Calls under the profiler and detect_breaks: errors and signatures are those of calls without them."""

from __future__ import annotations

import inspect

import pytest
from leaves import ones

import multigrad as mg
from multigrad.autograd import detect_breaks
from multigrad.autograd.profiler import profile


def calls():
    xp = ones(1).__array_namespace__()
    x = ones(3)
    return [
        lambda: xp.sin(x, x),
        lambda: xp.sin(),
        lambda: xp.sum(),
        lambda: xp.sum(x, bogus=1),
        lambda: xp.sum(x, axis=9),
        lambda: xp.zeros(),
        lambda: x * "a",
        lambda: mg.Tensor.__mul__(x),
        lambda: mg.Tensor.__mul__(x, x, x),
        lambda: x @ ones(2, 2),
    ]


@pytest.mark.parametrize(
    "watch",
    [profile, lambda: profile(record_shapes=True), detect_breaks],
    ids=["profile", "shapes", "breaks"],
)
@pytest.mark.parametrize("number", range(10))
def test_errors_are_the_same_while_watched(watch, number):
    call = calls()[number]
    with pytest.raises(Exception) as plain:
        call()
    with watch(), pytest.raises(Exception) as watched:
        call()
    assert (type(watched.value), str(watched.value)) == (type(plain.value), str(plain.value))


def test_signatures_are_the_same_while_watched():
    xp = ones(1).__array_namespace__()
    functions = (xp.sum, xp.sin, xp.where, xp.linspace, mg.Tensor.__mul__, mg.Tensor.__getitem__)
    before = [str(inspect.signature(f)) for f in functions]
    with profile():
        assert [str(inspect.signature(f)) for f in functions] == before
