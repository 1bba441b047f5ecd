"""Grad modes, on each backend and in PyTorch.

What is particular to multigrad is in test_grad_mode.py.
"""

from __future__ import annotations

import inspect
import sys
import weakref

import numpy as np
import pytest
from function_programs import enabled, leaf, same

import multigrad as mg


@pytest.fixture
def x(side):
    return leaf(side, 1.0, 2.0)


@pytest.fixture(autouse=True)
def _restored():
    """A test that leaves another mode behind fails, and spoils no other."""
    yield
    libraries = [mg, sys.modules["torch"]] if "torch" in sys.modules else [mg]
    left = [library.is_grad_enabled() for library in libraries]
    for library in libraries:
        library.set_grad_enabled(True)
    assert all(left)


def test_no_grad(side, x):  # F070
    with side.autograd.no_grad():
        y = x * 2
        made = side.tensor([1.0], requires_grad=True)
    assert x.requires_grad and not y.requires_grad and y.is_leaf and y.grad_fn is None
    assert made.requires_grad  # of a leaf, the flag is what was asked for
    assert (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), side.autograd.no_grad():
        1 / 0
    assert enabled(side)


def test_no_grad_keeps_nothing():  # F070: it saves memory
    x = mg.asarray(np.ones(3), requires_grad=True)

    def kept():
        y = x * 2
        memory = weakref.ref(y.array)
        z = mg.sin(y)  # whose rule needs y
        del y
        return memory() is not None, z

    assert kept()[0]
    with mg.no_grad():
        assert not kept()[0]


def test_a_graph_may_be_differentiated_inside_no_grad(side, x):  # F070
    y = side.xp.sum(x**3)
    with side.autograd.no_grad():
        (g,) = side.autograd.grad(y, x, create_graph=True)
        y.backward()
    assert g.requires_grad
    same(side, x.grad, [3, 12])


def test_enable_grad(side, x):  # F071, F077
    for off in (side.autograd.no_grad(), side.autograd.set_grad_enabled(False)):
        with off:
            with side.autograd.enable_grad():
                y = side.xp.sum(x * 2)
            assert not (x * 2).requires_grad
        assert y.requires_grad
        y.backward()
    same(side, x.grad, [4, 4])


def test_enable_grad_where_it_is_enabled(side, x):  # F072
    with side.autograd.enable_grad():
        assert (x * 2).requires_grad
    assert enabled(side)
    # it adds no history where there is none
    assert not side.autograd.enable_grad()(lambda t: t * 2)(side.tensor([1.0])).requires_grad


def test_set_grad_enabled(side, x):  # F073, F078
    with side.autograd.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with side.autograd.set_grad_enabled(mode=True):
        assert (x * 2).requires_grad
    side.autograd.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    side.autograd.set_grad_enabled(True)
    assert (x * 2).requires_grad
    with side.autograd.no_grad():
        side.autograd.set_grad_enabled(True)
        assert enabled(side)
    assert enabled(side)  # what a call does inside a context ends with it
    with side.autograd.set_grad_enabled(False):
        side.autograd.set_grad_enabled(True)
    assert enabled(side)
    with pytest.raises(
        TypeError,
        match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int",
    ):
        side.autograd.set_grad_enabled(1)


def test_decorators_of_functions_and_methods(side, x):  # F074, F076, F077
    @side.autograd.no_grad()
    def doubler(t):
        """Twice."""
        return t * 2

    @side.autograd.no_grad
    def bare(t):
        return t * 2

    @side.autograd.enable_grad()
    def recorded(t):
        return t * 2

    @side.autograd.set_grad_enabled(False)
    def off(t):
        return t * 2

    class Model:
        @side.autograd.no_grad()
        def __call__(self, t):
            return t * 2

    assert enabled(side)  # decorating with set_grad_enabled leaves the mode alone
    assert doubler.__doc__ == "Twice." and doubler.__name__ == "doubler"
    for function in (doubler, bare, off, Model()):
        assert not function(x).requires_grad and enabled(side)
    with side.autograd.no_grad():
        assert recorded(x).requires_grad and not enabled(side)


def test_decorated_recursion_and_exceptions(side):  # F074
    @side.autograd.no_grad()
    def down(n):
        assert not enabled(side)
        return down(n - 1) if n else 1 / n

    with pytest.raises(ZeroDivisionError):
        down(3)
    assert enabled(side)


def test_decorated_class(side, x):  # F074
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @side.autograd.no_grad()
        class Model:
            def __init__(self, t):
                self.y = t * 2

    assert not Model(x).y.requires_grad


def test_decorated_generators(side):  # F074: at every resume, and the consumer keeps its own mode
    seen = []

    @side.autograd.no_grad()
    def numbers():
        seen.append(enabled(side))
        got = yield 1
        seen.append((got, enabled(side)))
        try:
            yield 2
        except KeyError:
            seen.append(enabled(side))
            yield 3
        return 4

    assert inspect.isgeneratorfunction(numbers)
    g = numbers()
    assert next(g) == 1 and enabled(side)
    assert g.send("a") == 2 and enabled(side)
    assert g.throw(KeyError()) == 3 and enabled(side)
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == 4 and seen == [False, ("a", False), False]


def test_inference_mode(side, x):
    with side.autograd.inference_mode():
        assert not (x * 2).requires_grad and not enabled(side)
    with side.autograd.inference_mode(False):
        assert (x * 2).requires_grad
    with side.autograd.inference_mode(mode=True):
        assert not enabled(side)
    assert not side.autograd.inference_mode()(lambda t: t * 2)(x).requires_grad
    assert not side.autograd.inference_mode(lambda t: t * 2)(x).requires_grad


@pytest.mark.parametrize("name", ["no_grad", "set_grad_enabled", "inference_mode"])
def test_a_mode_makes_another_like_itself(side, name):
    with getattr(side.autograd, name)(*([False] if name == "set_grad_enabled" else [])) as entered:
        assert entered is None and not enabled(side)
    first = getattr(side.autograd, name)(*([False] if name == "set_grad_enabled" else []))
    side.autograd.set_grad_enabled(True)
    second = first.clone()
    assert type(second) is type(first) and second is not first
    with second:
        assert not enabled(side)
    assert enabled(side)


def test_a_grad_mode_takes_a_floating_leaf(side):  # F079: the documents' example with an integer
    with pytest.raises(
        RuntimeError, match="nly Tensors of floating point .*dtype can require gradients"
    ):
        side.tensor([1], dtype="int64", requires_grad=True)
    x = side.tensor([1.0], requires_grad=True)
    with side.autograd.no_grad():
        assert not (x * 2).requires_grad
