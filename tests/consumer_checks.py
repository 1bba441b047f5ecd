"""What the tests of other libraries' functions share: the checks that every such function must pass
on Tensors.

A consumer is written for any array library that follows the standard and knows nothing of
multigrad. It must give for Tensors what it gives for the arrays in them; and the gradient of a
random weighted sum of its floating results must be that of central differences of fourth order,
taken of the consumer itself on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import multigrad as mg

__all__ = ["check", "check_float32", "differences", "drawn"]

STEP = 1e-3
SIDES = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))


def drawn(*shape: int, low: float = 0.3, high: float = 1.7, seed: int = 0) -> Any:
    """Uniform float64 values, distinct, with neither kinks nor poles of most functions among
    them.
    """
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(low, high, shape))


def check(
    backend: str,
    function: Callable[..., Any],
    *args: Any,
    rtol: float = 1e-7,
    value_rtol: float = 1e-12,
    second: bool = True,
    raw: bool = True,
) -> None:
    """Check values, dtypes and gradients of `function(*args)`; NumPy arrays among the arguments
    become arrays of the backend.

    second  whether the second derivative exists; it is checked where that is not slow, on NumPy
    raw     whether the function takes raw arrays of the backend at all; if not, its values are
            those for NumPy's
    """
    expected = flat(function(*(converted(backend, args) if raw else args)))
    constants = flat(function(*tensors(backend, args, requires_grad=False)))
    given = tensors(backend, args)
    results = flat(function(*given))
    for kept in (constants, results):
        assert len(kept) == len(expected) > 0
        for y, known in zip(kept, expected, strict=True):
            assert_same(y, known, value_rtol)
    assert not any(y.requires_grad for y in constants if isinstance(y, mg.Tensor))
    places = [i for i, a in enumerate(args) if floating(a)]
    wanted = [y for y in results if isinstance(y, mg.Tensor) and floating(y)]
    if not wanted or not places:
        return
    assert all(y.requires_grad for y in wanted), "a floating result lost its gradient"
    weights = [cotangent(y, i) for i, y in enumerate(wanted)]
    leaves = [given[i] for i in places]
    found = mg.autograd.grad(
        wanted, leaves, [mg.asarray(w, backend=backend) for w in weights], allow_unused=True
    )
    loss = weighted(function, weights)
    for i, leaf, gradient in zip(places, leaves, found, strict=True):
        exact = differences(loss, args, i)
        # an argument that the result does not depend on, as differences must confirm
        if gradient is None:
            assert not np.any(exact), f"argument {i} got no gradient"
            continue
        assert gradient.shape == leaf.shape and gradient.dtype == leaf.dtype
        np.testing.assert_allclose(
            values(gradient), exact, rtol=rtol, atol=rtol * (1 + np.max(np.abs(exact), initial=0))
        )
    if second and backend == "numpy":
        check_second(function, args, weights, places, rtol)


def check_second(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    weights: list[Any],
    places: list[int],
    rtol: float,
) -> None:
    """The gradient of <v, gradient> against differences of the gradient along v, over all arguments
    at once.
    """
    directions = [cotangent(args[i], 50 + i) for i in places]

    def gradients(moved: tuple[Any, ...], create_graph: bool) -> tuple[list[Any], list[Any]]:
        given = tensors("numpy", moved)
        wanted = [y for y in flat(function(*given)) if isinstance(y, mg.Tensor) and floating(y)]
        leaves = [given[i] for i in places]
        return leaves, list(
            mg.autograd.grad(
                wanted,
                leaves,
                [mg.asarray(w) for w in weights],
                create_graph=create_graph,
                allow_unused=True,
            )
        )

    leaves, first = gradients(args, create_graph=True)
    curved = [
        (g, v) for g, v in zip(first, directions, strict=True) if g is not None and g.requires_grad
    ]
    found: Any = [None] * len(leaves)
    if curved:
        found = mg.autograd.grad(
            [g for g, _ in curved], leaves, [mg.asarray(v) for _, v in curved], allow_unused=True
        )
    exact = [np.zeros_like(values(leaf)) for leaf in leaves]
    for sign, weight in SIDES:
        moved = list(args)
        for i, v in zip(places, directions, strict=True):
            moved[i] = np.asarray(args[i] + sign * STEP * v)
        for total, g in zip(exact, gradients(tuple(moved), create_graph=False)[1], strict=True):
            total += 0 if g is None else weight * values(g) / STEP
    for h, e in zip(found, exact, strict=True):
        actual = np.zeros_like(e) if h is None else values(h)
        np.testing.assert_allclose(
            actual,
            e,
            rtol=10 * rtol,
            atol=10 * rtol * (1 + np.max(np.abs(e), initial=0)),
            err_msg="second derivative",
        )


def check_float32(
    backend: str, function: Callable[..., Any], *args: Any, rtol: float = 2e-3
) -> None:
    """In float32: the dtypes of the raw arrays' results; gradients of float32, near those of
    float64.
    """
    args = tuple(a.astype("float32") if floating(a) and a.dtype.kind == "f" else a for a in args)
    expected = flat(function(*converted(backend, args)))
    given = tensors(backend, args)
    results = flat(function(*given))
    for y, known in zip(results, expected, strict=True):
        assert_same(y, known, 1e-4)
    wanted = [y for y in results if isinstance(y, mg.Tensor) and floating(y)]
    leaves = [given[i] for i, a in enumerate(args) if floating(a)]
    if not wanted or not leaves:
        return
    weights = [cotangent(y, i) for i, y in enumerate(wanted)]
    found = mg.autograd.grad(
        wanted, leaves, [mg.asarray(w, backend=backend) for w in weights], allow_unused=True
    )
    wide = tensors(
        "numpy",
        tuple(a.astype("float64") if floating(a) and a.dtype.kind == "f" else a for a in args),
    )
    wide_results = [y for y in flat(function(*wide)) if isinstance(y, mg.Tensor) and floating(y)]
    wide_leaves = [t for t in wide if isinstance(t, mg.Tensor) and t.requires_grad]
    wide_weights = [
        mg.asarray(w.astype(numpy_dtype(y))) for w, y in zip(weights, wide_results, strict=True)
    ]
    exact = mg.autograd.grad(wide_results, wide_leaves, wide_weights, allow_unused=True)
    for leaf, g, e in zip(leaves, found, exact, strict=True):
        assert (g is None) == (e is None)
        if g is not None:
            assert g.dtype == leaf.dtype and g.shape == leaf.shape
            np.testing.assert_allclose(
                values(g),
                values(e),
                rtol=rtol,
                atol=rtol * (1 + np.max(np.abs(values(e)), initial=0)),
            )


def differences(loss: Callable[..., float], args: tuple[Any, ...], place: int) -> Any:
    """The gradient of `loss(*args)` by the argument at `place`: dL/da, and for complex a + ib,
    dL/da + i dL/db.
    """
    x = args[place]
    gradient = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            slope = 0.0
            for sign, weight in SIDES:
                moved = x.copy()
                moved[at] += sign * STEP * unit
                slope += weight * loss(*args[:place], moved, *args[place + 1 :]) / STEP
            gradient[at] += slope * unit
    return gradient


def weighted(function: Callable[..., Any], weights: list[Any]) -> Callable[..., float]:
    def loss(*args: Any) -> float:
        results = [np.asarray(y) for y in flat(function(*args)) if floating(y)]
        return sum(
            float(np.sum(np.real(np.conj(w) * y))) for w, y in zip(weights, results, strict=True)
        )

    return loss


# ----- arguments and results -----


def floating(x: Any) -> bool:
    """Whether `x` is an array or a Tensor of floating dtype, real or complex."""
    return hasattr(x, "dtype") and not isinstance(x, type) and numpy_dtype(x).kind in "fc"


def numpy_dtype(x: Any) -> Any:
    """NumPy's dtype of the name that the dtype of an array or a Tensor has in the standard."""
    return np.dtype(str(x.dtype).rpartition(".")[2])


def converted(backend: str, args: tuple[Any, ...]) -> list[Any]:
    """The arguments, NumPy arrays as raw arrays of the backend."""
    return [mg.asarray(a, backend=backend).array if isinstance(a, np.ndarray) else a for a in args]


def tensors(backend: str, args: tuple[Any, ...], requires_grad: bool = True) -> list[Any]:
    """The arguments, NumPy arrays as Tensors on memory of their own."""
    return [
        mg.tensor(a, backend=backend, requires_grad=requires_grad and floating(a))
        if isinstance(a, np.ndarray)
        else a
        for a in args
    ]


def values(t: Any) -> Any:
    return np.asarray(t.detach().array if isinstance(t, mg.Tensor) else t)


def cotangent(like: Any, seed: int) -> Any:
    """A random NumPy array of the shape and dtype of an array or Tensor."""
    dtype = numpy_dtype(like)
    random = np.random.default_rng([seed, *like.shape])
    x = random.uniform(0.5, 1.5, like.shape) * random.choice([-1.0, 1.0], like.shape)
    return np.asarray(
        x + 1j * random.uniform(-1, 1, like.shape) if dtype.kind == "c" else x
    ).astype(dtype)


def flat(result: Any) -> list[Any]:
    """What a consumer returned, in one list: one array or scalar, or nested tuples, lists and named
    tuples of these.
    """
    return list(_leaves(result))


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for r in result:
            yield from _leaves(r)
    else:
        yield result


def assert_same(y: Any, known: Any, rtol: float) -> None:
    """A Tensor of the dtype and values of a raw array, or an equal Python value."""
    if not hasattr(known, "dtype"):
        assert y == known
        return
    assert isinstance(y, mg.Tensor), (
        f"got {type(y).__name__} where raw arrays give {type(known).__name__}"
    )
    assert tuple(y.shape) == tuple(known.shape)
    assert numpy_dtype(y) == numpy_dtype(known)
    np.testing.assert_allclose(values(y), np.asarray(known), rtol=rtol, atol=rtol)
