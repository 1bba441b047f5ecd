"""What runners are checked with: a function in every transformation, several times, against the
general path.

Compared is what the function returns there, as the transformation sees it: values, dtypes, classes,
whether it is a view, whether it has a history; and what the transformation returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.core.level import Layer
from multigrad.core.tensor import Tensor, element_of, strip
from multigrad.dispatch import runners
from multigrad.layers.batched import Batched
from multigrad.layers.dual import Dual

__all__ = [
    "WHERE",
    "agree",
    "agree_in_turn",
    "described",
    "flat",
    "reaching",
    "same",
    "told",
]


def described(x: Any) -> Any:
    """All that later operations depend on."""
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, *map(described, x)]
    if isinstance(x, Layer):
        layer: Any = x
        elem, node, view = layer._elem, layer._node, layer._view
        inner = layer._array, getattr(x, "_tangent", None)
        assert elem.layered or not any(isinstance(v, Layer) for v in inner)
        assert elem.dtype == layer._array.dtype
        assert elem.base is element_of(layer._array).base
        return {
            "class": type(x).__name__,
            "dtype": str(elem.dtype),
            "level": (elem.run is None, elem.kind.cls),
            "view": view and (_step(layer, view), *view[3:]),
            "node": None if node is None else (type(node).__name__, node.name()),
            "requires_grad": getattr(x, "requires_grad", None),
            "parts": [described(strip(v)) for v in inner],  # a constant Tensor is like its array
        }
    if hasattr(x, "dtype"):
        return [type(x).__name__, str(x.dtype), np.array(np.asarray(x))]
    return x


def _step(x: Any, view: Any) -> Any:
    """How a view is made; `x[...]` is the same view as `reshape(x, x.shape)`."""
    return None if view[1] is None or x._array is view[0]._array else view[1].name


def same(x: Any, y: Any, where: str = "") -> None:
    """Fail unless two descriptions agree."""
    if isinstance(y, np.ndarray):
        assert x.shape == y.shape, where
        if y.dtype.kind in "fc":
            tolerance = 2e-5 if y.dtype.itemsize // (1 + (y.dtype.kind == "c")) < 8 else 1e-12
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=where)
        else:
            np.testing.assert_array_equal(x, y, err_msg=where)
    elif isinstance(y, (list, tuple, dict)):
        assert type(x) is type(y) and len(x) == len(y), (where, x, y)
        for name in y if isinstance(y, dict) else range(len(y)):
            same(x[name], y[name], f"{where} {name}")
    else:
        assert x == y or (x != x and y != y), (where, x, y)


def flat(x: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in flat(y)]
    return [x] if hasattr(x, "dtype") else []


def loss(found: Any) -> Any:
    """A real number that depends on all floating arrays."""
    total = mg.asarray(0.0)
    for x in flat(found):
        if hasattr(x, "_elem") and x._elem.floating:
            x = mg.real(x) if x._elem.complex else x
            total = total + mg.sum(mg.astype(mg.sin(x), "float64"))
    return total


def _leaves(xs: Sequence[Any]) -> list[Any]:
    return [mg.asarray(x, requires_grad=element_of(x).floating) for x in xs]


def _recorded(f: Callable[..., Any], xs: Sequence[Any]) -> Any:
    wanted = _leaves(xs)
    first = loss(f(*wanted))
    wanted = [x for x in wanted if x.requires_grad]
    if not first.requires_grad:
        return None
    first = mg.autograd.grad(first, wanted, create_graph=True, allow_unused=True)
    second = loss([g for g in first if g is not None])
    if not second.requires_grad:
        return first
    return first, mg.autograd.grad(second, wanted, allow_unused=True)


def _unrecorded(f: Callable[..., Any], xs: Sequence[Any]) -> Any:
    with mg.no_grad():
        return f(*_leaves(xs))


def _pushed(f: Callable[..., Any], xs: Sequence[Any], tangents: Sequence[Any] = ()) -> Any:
    along = tuple(tangents or (x * 0.5 + 1 for x in xs))
    return func.jvp(lambda *ys: flat(f(*ys)), tuple(xs), along)


def _graded(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: func.grad(lambda *ys: loss(f(*ys)), argnums=tuple(range(len(xs))))(*xs)


def _batches(xs: Sequence[Any]) -> list[Any]:
    return [mg.stack([mg.asarray(x), mg.asarray(x)]).array for x in xs]


def _mapped(f: Callable[..., Any]) -> Callable[..., Any]:
    return func.vmap(lambda *ys: flat(f(*ys)))


WHERE: dict[str, Callable[[Callable[..., Any], Sequence[Any]], Any]] = {
    "tape": _recorded,
    "no_grad": _unrecorded,
    "grad": lambda f, xs: _graded(f)(*xs),
    "jvp": _pushed,
    "jvp of one": lambda f, xs: _pushed(lambda x: f(x, *xs[1:]), xs[:1]),
    "vmap": lambda f, xs: _mapped(f)(*_batches(xs)),
    "vmap of one": lambda f, xs: _mapped(lambda x: f(x, *xs[1:]))(_batches(xs)[0]),
    "grad of grad": lambda f, xs: _graded(lambda *ys: list(_graded(f)(*ys)))(*xs),
    "jvp of jvp": lambda f, xs: _pushed(lambda *ys: _pushed(f, ys), xs),
    "jvp of grad": lambda f, xs: _pushed(_graded(f), xs),
    "grad of jvp": lambda f, xs: _graded(lambda *ys: _pushed(f, ys)[1])(*xs),
    "vmap of vmap": lambda f, xs: _mapped(_mapped(f))(*_batches(_batches(xs))),
    "vmap of grad": lambda f, xs: _mapped(_graded(f))(*_batches(xs)),
    "grad of vmap": lambda f, xs: _graded(_mapped(f))(*_batches(xs)),
    "vmap of jvp": lambda f, xs: _mapped(lambda *ys: _pushed(f, ys))(*_batches(xs)),
    "vmap of tangents": lambda f, xs: _mapped(lambda *ts: _pushed(f, xs, ts))(*_batches(xs)),
    "jvp of vmap": lambda f, xs: _pushed(_mapped(f), _batches(xs)),
}
"""Every composition of two: calls a function of raw arrays there.

In `vmap of tangents`, the tangent alone is a batch.
"""


def told(f: Callable[..., Any], xs: Sequence[Any], where: str) -> list[Any]:
    """What a function returns inside a transformation, and what that returns, or its error."""
    log: list[Any] = []

    def logged(*ys: Any) -> Any:
        found = f(*ys)
        log.append(described(found))
        return found

    try:
        log.append(described(WHERE[where](logged, [mg.asarray(x, copy=True).array for x in xs])))
    except Exception as error:
        log.append(f"{type(error).__name__}: {error}")
    return log


def agree(
    f: Callable[..., Any], xs: Sequence[Any], places: Sequence[str] = tuple(WHERE), times: int = 3
) -> None:
    """Compare repeated calls in each transformation with the general path."""
    agree_in_turn([(f, xs, where) for where in places], times)


def agree_in_turn(
    calls: Sequence[tuple[Callable[..., Any], Sequence[Any], str]], times: int = 3
) -> None:
    """The same for several functions, called in turn, so that one learns of the others.

    All expected results come first, since `interpreted` drops what was learnt.
    """
    with runners.interpreted():
        expected = [told(*call) for call in calls]
    for i in range(times):
        for (f, xs, where), before in zip(calls, expected, strict=True):
            same(told(f, xs, where), before, f"{where} {getattr(f, '__name__', '')} {i}")


@contextmanager
def reaching() -> Iterator[list[str]]:
    """The names of the operations that the general path carries out, at any level."""
    reached: list[str] = []

    def counting(cls: Any) -> Any:
        apply = cls._apply

        def counted(op: Any, values: Any, top: Any, *rest: Any) -> Any:
            reached.append(op.name)
            return apply(op, values, top, *rest)

        return patch.object(cls, "_apply", staticmethod(counted))

    with counting(Tensor), counting(Dual), counting(Batched):
        yield reached
