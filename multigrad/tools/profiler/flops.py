"""Floating point operations of operations, computed from shapes.

A multiplication or an addition of real numbers counts as one operation.

Sources: for factorisations "Matrix Computations" (Golub and Van Loan, 4th edition; section numbers
below) and appendix C of LAPACK Working Note 41, leading terms; for transforms 5 N log2 N, the
convention of FFTW's benchmarks, and half of it for real transforms
(http://www.fftw.org/speed/method.html). A multiplication plus an addition of complex numbers counts
as 8 operations instead of 2. Operations that are missing in the tables below count as 0: there is
no guessing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class Sizes(NamedTuple):
    """What the formulas take: the arguments of a call, and the shapes of its arrays and results."""

    values: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    outs: tuple[Shape, ...]


_Rule = Callable[[Sizes], float]


def _matmul(call: Sizes) -> float:
    return 2.0 * math.prod(call.outs[0]) * call.shapes["x1"][-1]  # 2 m n k, GvL 1.1


def _vecdot(call: Sizes) -> float:
    axis = call.values.get("axis")
    return 2.0 * math.prod(call.outs[0]) * call.shapes["x1"][-1 if axis is None else axis]


def _tensordot(call: Sizes) -> float:
    axes = call.values.get("axes")
    x1 = call.shapes["x1"]
    summed = (
        [x1[a] for a in axes[0]]
        if isinstance(axes, (tuple, list))
        else x1[len(x1) - (2 if axes is None else axes) :]
    )
    return 2.0 * math.prod(call.outs[0]) * math.prod(summed)


def _elementwise(call: Sizes) -> float:
    return float(math.prod(call.outs[0]))


def _of_matrix(count: Callable[[float, float], float]) -> _Rule:
    """Return a rule that sums `count(m, n)` over a stack of matrices, with m >= n."""

    def rule(call: Sizes) -> float:
        *batch, m, n = call.shapes["x"]
        return math.prod(batch) * count(max(m, n), min(m, n))

    return rule


def _solve(call: Sizes) -> float:
    *batch, _, n = call.shapes["x1"]
    # LU, GvL 3.2, and two triangular systems for each column, 3.1
    return math.prod(batch) * 2 * n**3 / 3 + 2.0 * n * math.prod(call.outs[0])


def _power(call: Sizes) -> float:
    *batch, n, _ = call.shapes["x"]
    p = abs(int(call.values.get("n", 1)))
    products = max(p.bit_length() - 1 + p.bit_count() - 1, 0) if p else 0  # repeated squaring
    return math.prod(batch) * 2.0 * n**3 * products


TRANSFORMS = ["fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft"]


def _transform(name: str) -> _Rule:
    several, real = name.endswith("n"), name not in TRANSFORMS[:4]
    half = name in ("rfft", "rfftn", "ihfft")  # the result has half of the elements

    def rule(call: Sizes) -> float:
        values = call.values
        lengths = list(call.shapes["x"] if half else call.outs[0])
        axes: Any = values.get("axes") if several else (values.get("axis", -1),)
        sizes = values.get("s") if several else None if values.get("n") is None else (values["n"],)
        if axes is None:
            axes = range(-len(lengths if sizes is None else sizes), 0)
        for axis, n in zip(axes, sizes or (), strict=False):
            if half and n != -1:
                lengths[axis] = n
        n = math.prod(lengths[a] for a in axes)
        return (2.5 if real else 5.0) * math.prod(lengths) * math.log2(n) if n > 1 else 0.0

    return rule


RULES: dict[str, _Rule] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "linalg.outer"), _elementwise),
    "matmul": _matmul,
    "linalg.matmul": _matmul,
    "vecdot": _vecdot,
    "linalg.vecdot": _vecdot,
    "tensordot": _tensordot,
    "linalg.tensordot": _tensordot,
    "linalg.cholesky": _of_matrix(lambda m, n: n**3 / 3),  # GvL 4.2
    "linalg.det": _of_matrix(lambda m, n: 2 * n**3 / 3),  # LU, GvL 3.2
    "linalg.slogdet": _of_matrix(lambda m, n: 2 * n**3 / 3),
    "linalg.inv": _of_matrix(lambda m, n: 2 * n**3),  # LAPACK: getrf and getri
    "linalg.solve": _solve,
    # Householder, GvL 5.2, and the same number for Q
    "linalg.qr": _of_matrix(lambda m, n: 2 * (2 * m * n**2 - 2 * n**3 / 3)),
    "linalg.eigh": _of_matrix(lambda m, n: 9 * n**3),  # GvL 8.3: symmetric QR with vectors
    "linalg.eigvalsh": _of_matrix(lambda m, n: 4 * n**3 / 3),
    "linalg.svd": _of_matrix(lambda m, n: 6 * m * n**2 + 20 * n**3),  # GvL 8.6: R-SVD, thin
    "linalg.svdvals": _of_matrix(lambda m, n: 2 * m * n**2 + 2 * n**3),
    "linalg.pinv": _of_matrix(lambda m, n: 6 * m * n**2 + 20 * n**3 + 2 * m * n**2),
    "linalg.matrix_power": _power,
    **{f"fft.{name}": _transform(name) for name in TRANSFORMS},
}
OF_COMPLEX = {"add": 2, "subtract": 2, "multiply": 6, "divide": 6}
"""How many times the operations of real numbers complex ones take; 4 times where it is not said."""
OF_COMPLEX |= {f"fft.{name}": 1 for name in TRANSFORMS}


def count(
    name: str,
    values: Mapping[str, Any],
    shapes: Mapping[str, Shape],
    outs: tuple[Shape, ...],
    complex_: bool,
    examples: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Return the floating point operations of one call, or 0 if they are unknown.

    The arguments are the name of the operation, its arguments, and the shapes of its arrays and
    results. `examples`: under vmap, the number of examples in each array by its name, and in the
    result under "".
    """
    times = examples.get("", 1)
    factor = OF_COMPLEX.get(name, 4) if complex_ else 1
    try:
        if name == "linalg.solve":  # one factorisation serves the right-hand sides of all examples
            shapes = {**shapes, "x1": (examples.get("x1", 1), *shapes["x1"])}
            outs, times = ((times, *outs[0]),), 1
        return round(times * RULES[name](Sizes(values, shapes, outs)) * factor)
    except (IndexError, KeyError, TypeError, ValueError):
        # the operation has no formula or refused its arguments, or a lazy library does not know the
        # lengths yet
        return 0
