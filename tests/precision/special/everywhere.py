"""Values and gradients of the special functions on every backend, beside SciPy's values: relative
errors, against mpmath in 60 digits.

What is right is within 1e-12 (float32: 2e-5, since the exponentials and logarithms of one CPU differ
from another's in the last place, and derivatives cancel), or within four times the largest error of
SciPy's own function at the same points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.special
from mpmath import mp

import multigrad as mg
from multigrad import registry
from multigrad.errors import BackendError

from .. import special
from ..differences import exact, slope
from ..measure import shown
from .grids import Points, Wide

BARS = {np.float64: 1e-12, np.complex128: 1e-12, np.float32: 2e-5}
VALUE = "value"


@dataclass(frozen=True)
class Worst:
    """The worst relative error of a function on a backend; None where the backend refuses it."""

    name: str
    backend: str  # or "scipy"
    dtype: Any
    what: str  # VALUE, or the name of an argument
    size: float | None
    where: str = ""

    @property
    def bar(self) -> float:
        """The largest error that is right."""
        return max(BARS[self.dtype], 4 * of_scipy(self.name, self.dtype))


@dataclass(frozen=True)
class _Reference:
    """The points of a function that a dtype holds, with the true values, and the true derivatives
    by the arguments that have a rule.
    """

    points: Points
    values: list[Any]
    slopes: dict[int, list[Any]]
    parts: dict[int | None, Any]  # what the value (None) and the slopes are computed by


def measured(
    name: str, backends: Iterable[str], dtypes: Iterable[Any] = tuple(BARS)
) -> Iterator[Worst]:
    """The worst errors of values and gradients of a function, on each of these backends, and of
    SciPy's values.
    """
    for dtype in dtypes:
        if reference(name, dtype).points:
            yield Worst(name, "scipy", dtype, VALUE, of_scipy(name, dtype))
            for backend in backends:
                yield from _on(name, backend, dtype)


@cache
def of_scipy(name: str, dtype: Any) -> float:
    """The worst error of SciPy's own function at these points; 0 of a function that SciPy lacks."""
    function = getattr(scipy.special, name.rpartition(".")[2], None)
    if function is None:
        return 0.0
    true = reference(name, dtype)
    values = np.empty(len(true.points), dtype=dtype)
    for chosen, arguments in _grouped(name, true.points, dtype):
        with np.errstate(all="ignore"):
            values[chosen] = function(*arguments)
    return _worst(values, true, None, dtype)[0]


def _on(name: str, backend: str, dtype: Any) -> Iterator[Worst]:
    """The worst errors on one backend: of the value, and of the gradient by each argument that has
    a rule.
    """
    true = reference(name, dtype)
    parts = [VALUE, *(list(registry.OPS[name].roles)[i] for i in true.slopes)]
    results = [np.empty(len(true.points), dtype=dtype) for _ in parts]
    for chosen, arguments in _grouped(name, true.points, dtype):
        try:
            rows = _evaluated(name, backend, arguments, list(true.slopes))
        except (BackendError, TypeError) as refusal:
            if not str(refusal).startswith(name):
                raise
            yield from (Worst(name, backend, dtype, part, None) for part in parts)
            return
        for result, row in zip(results, rows, strict=True):
            result[chosen] = row
    for part, result, i in zip(parts, results, [None, *true.slopes], strict=True):
        size, where = _worst(result, true, i, dtype)
        yield Worst(name, backend, dtype, part, size, where)


def _evaluated(name: str, backend: str, arguments: list[Any], wanted: list[int]) -> list[Any]:
    """The value and its derivatives by the arguments at these positions, as NumPy arrays."""
    xp = mg.namespace(backend)
    function = getattr(xp.special, name.rpartition(".")[2])
    values = [
        xp.asarray(a, requires_grad=i in wanted) if isinstance(a, np.ndarray) else a
        for i, a in enumerate(arguments)
    ]
    with np.errstate(all="ignore"):
        y = function(*values)
        g = mg.autograd.grad(y, [values[i] for i in wanted], xp.ones_like(y)) if wanted else ()
    return [np.asarray(y.detach().array), *(np.conj(np.asarray(x.array)) for x in g)]


# ----- the truth -----


@cache
def reference(name: str, dtype: Any) -> _Reference:
    """What a function is at its points, for arguments of this dtype."""
    function, where = special.ALL[name]
    op = registry.OPS[name]
    by = [
        i
        for i, (p, role) in enumerate(op.roles.items())
        if role == "array" and (op.kind == "composite" or p in op.vjp)
    ]
    parts = {None: lambda *x: function(*x), **{i: partial(_slope, function, i) for i in by}}
    points, values, slopes = [], [], dict[int, list[Any]]((i, []) for i in by)
    complex_kind = np.issubdtype(dtype, np.complexfloating)
    with mp.workdps(60):
        suited = [
            p
            for p in where
            if any(isinstance(v, complex) for v in p) == complex_kind
            and not (dtype is np.float32 and isinstance(p, Wide))
        ]
        for point in dict.fromkeys(_rounded(p, dtype) for p in suited):
            try:
                x = _exact(point)
                value, *row = (part(*x) for part in parts.values())
            except (ArithmeticError, ValueError):  # a pole or a kink, or outside of the domain
                continue
            if complex_kind or not isinstance(value, mp.mpc):
                points.append(point)
                values.append(value)
                for i, v in zip(by, row, strict=True):
                    slopes[i].append(v)
    return _Reference(points, values, slopes, parts)


def _slope(function: Any, i: int, *x: Any) -> Any:
    return slope(lambda t: function(*x[:i], x[i] + t, *x[i + 1 :]), abs(x[i]) or 1)


def _exact(point: tuple[Any, ...]) -> list[Any]:
    return [v if isinstance(v, int) else exact(v) for v in point]


def _rounded(point: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    with np.errstate(over="ignore"):
        return tuple(v if isinstance(v, int) else dtype(v).item() for v in point)


def _array(column: tuple[Any, ...], dtype: Any) -> Any:
    return (
        np.asarray(column)
        if all(isinstance(v, int) for v in column)
        else np.asarray(column, dtype=dtype)
    )


def _grouped(name: str, points: Points, dtype: Any) -> Iterator[tuple[list[int], list[Any]]]:
    """The positions of the points that have the same plain arguments, and the arguments at these
    points.
    """
    # the others have defaults
    plain = [
        i
        for i, role in enumerate(registry.OPS[name].roles.values())
        if role == "plain" and i < len(points[0])
    ]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k, point in enumerate(points):
        groups.setdefault(tuple(point[i] for i in plain), []).append(k)
    for values, chosen in groups.items():
        columns = zip(*(points[k] for k in chosen), strict=True)
        fixed = dict(zip(plain, values, strict=True))
        yield chosen, [fixed[i] if i in fixed else _array(c, dtype) for i, c in enumerate(columns)]


# ----- errors -----


def _worst(given: Any, true: _Reference, i: int | None, dtype: Any) -> tuple[float, str]:
    """The largest relative error, and where; where the true number is outside of the range of the
    dtype nothing is asked.

    In float32, what a change of an argument by two units in the last place explains counts as 2e-5.
    """
    kind = np.finfo(dtype)
    least, most = float(kind.smallest_normal), float(kind.max) / 4
    errors = [(0.0, "")]
    for g, t, point in zip(
        given, true.values if i is None else true.slopes[i], true.points, strict=True
    ):
        if t == 0 or least < abs(t) < most:
            error = _relative(g.item(), t)
            if dtype is np.float32 and BARS[dtype] < error < np.inf:
                error = min(
                    error,
                    abs(exact(g.item()) - t) / _wobble(true.parts[i], point) * BARS[dtype] / 2,
                )
            errors.append((float(error), shown(point)))
    return max(errors)


def _wobble(part: Any, point: tuple[Any, ...]) -> Any:
    """How much the true number changes when an argument does, by a unit in the last place of
    float32.
    """
    with mp.workdps(60):
        x = _exact(point)
        steps = [
            x[:i] + [v + v * mp.mpf(2) ** -23] + x[i + 1 :]
            for i, v in enumerate(x)
            if not isinstance(v, int)
        ]
        return max((abs(part(*s) - part(*x)) for s in steps), default=mp.zero) or mp.mpf(10) ** -300


def _relative(given: Any, true: Any) -> float:
    if not np.isfinite(given):
        return float("inf")
    return float(abs(mp.mpmathify(given) - true) / (abs(true) or 1))
