"""Random programs with writes, beside the same programs without them, on multigrad, JAX and PyTorch."""

from __future__ import annotations

import functional_arrays
import numpy as np
import program_checks as checks
import pytest

import multigrad as mg
from multigrad import func
from multigrad_conformance.strategies import programs
from multigrad_conformance.target import Target

NUMPYS_OWN = {"branches", "masks", "mixed kinds", "NumPy scalars", "arguments written", "scalars"}

LACKING = (TypeError, ValueError)
"""What PyTorch raises for a negative step, and for a function that it lacks."""


def written(flat, places, value):
    """A choice for each element, the old one or the new one."""
    shape = places.shape
    new = mg.reshape(mg.broadcast_to(mg.astype(mg.asarray(value), flat.dtype), shape), (-1,))
    source = np.arange(flat.shape[0])
    source[places.ravel()] = flat.shape[0] + np.arange(places.size)
    return mg.take(mg.concat([flat, new]), mg.asarray(source), axis=0)


def read(flat, places):
    return mg.reshape(mg.take(flat, mg.asarray(places.ravel()), axis=0), places.shape)


OF_MULTIGRAD = functional_arrays.Library(mg, read, written)


def losses(case, library):
    """The loss of a program over arrays whose writes make new arrays, and its arguments."""
    function = case.program.bind(library, lambda c: library.wrapped(library.xp.asarray(c)))

    def loss(*xs):
        wrapped = [library.wrapped(library.xp.asarray(x)) for x in xs]
        outs = functional_arrays.plain(function(*case.all_arguments(wrapped, library.wrapped)))
        return checks.weighted(library.xp, outs, library.xp.asarray)

    return loss


@pytest.mark.share(2)
@pytest.mark.parametrize("transform", ["grad", "jvp of grad", "vmap of grad"])
def test_a_write_is_a_functional_update(tried, transform):
    def check(program):
        case = checks.Case(program, Target("numpy"))
        xs = case.arrays(0)
        every = tuple(range(len(xs)))

        def apply(f):
            g = func.grad(f, argnums=every)
            if transform == "grad":
                return g(*xs)
            if transform == "vmap of grad":
                return func.vmap(g)(*map(np.stack, zip(xs, case.arrays(1), strict=True)))
            return func.jvp(g, tuple(xs), tuple(np.ones_like(x) for x in xs))[1]

        with np.errstate(all="ignore"), checks.skipped():
            found, wanted = apply(case.loss()), apply(losses(case, OF_MULTIGRAD))
        checks.same_values(case, found, [np.asarray(w) for w in wanted], "gradient")

    tried(check, programs(without=NUMPYS_OWN | {"samples"}))


def test_gradients_are_those_of_jax(tried):
    jax = pytest.importorskip("jax")
    library = functional_arrays.Library(
        jax.numpy,
        lambda flat, at: flat[at],
        lambda flat, at, value: flat.at[at].set(jax.numpy.astype(value, flat.dtype)),
    )

    def check(program):
        case = checks.Case(program, Target("numpy"))
        xs = case.arrays(0)
        every = tuple(range(len(xs)))
        wanted = jax.grad(losses(case, library), argnums=every)(*xs)
        with np.errstate(all="ignore"):
            found = func.grad(case.loss(), argnums=every)(*xs)
        checks.same_values(case, found, [np.asarray(w) for w in wanted], "gradient")

    tried(check, programs(without=NUMPYS_OWN | {"samples", "complex"}, most=6))


@pytest.mark.share(2)
def test_gradients_are_those_of_pytorch(tried):
    """PyTorch has views and writes as multigrad has.

    Which programs it refuses depends on what its operations save: those that both compute agree.
    """
    torch = pytest.importorskip("torch")
    xp = pytest.importorskip("array_api_compat.torch")

    def passed(function, leaves, error):
        try:
            return function(*leaves)
        except error:
            return None

    def check(program):
        case = checks.Case(program, Target("numpy"))
        function = program.bind(checks.Names(xp), torch.asarray)

        def loss(*xs):
            return checks.weighted(
                xp, function(*case.all_arguments(xs, torch.asarray)), torch.asarray
            )

        leaves = [torch.tensor(x, requires_grad=True) for x in case.arrays(0)]
        ours = [mg.asarray(x, requires_grad=True) for x in case.arrays(0)]
        wanted = passed(
            lambda *xs: torch.autograd.grad(loss(*xs), xs, materialize_grads=True),
            leaves,
            (RuntimeError, *LACKING),
        )
        own = case.loss()
        found = passed(
            lambda *xs: mg.autograd.grad(own(*xs), xs, materialize_grads=True),
            ours,
            mg.errors.GradientError,
        )
        if found is not None and wanted is not None:
            checks.same_values(case, found, [w.numpy() for w in wanted], "gradient")

    # PyTorch returns the array itself
    without = (NUMPYS_OWN - {"branches", "masks"}) | {"samples"}
    tried(check, programs(without=without, avoid=["conj", "positive"]))
