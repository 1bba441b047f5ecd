"""scipy.linalg: sqrtm, solve_triangular, solve_banded and solve_sylvester have derivatives.

All other functions take raw arrays only.

The rules follow from differentiating the equation that each function solves: M. Giles, "Collected
matrix derivative results for forward and reverse mode algorithmic differentiation", 2008; ^H is the
conjugate transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import multigrad as mg

from .choosing import differentiable, operand, operations, refusing

Function = Callable[..., Any]

# ----- common functions of rules -----


def _adjoint(xp: Any, x: Any) -> Any:
    return _conj(xp, xp.matrix_transpose(x))


def _conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


def _columns(x: Any) -> Any:
    """Return a right-hand side as a matrix."""
    return x[..., None] if x.ndim == 1 else x


# ----- the Sylvester equation: a x + x b = q -----


def _sylvester_vjp(xp: Any, g: Any, a: Any, b: Any, ans: Any, needs: Any) -> Any:
    gq = xp.hips.solve_sylvester(_adjoint(xp, a), _adjoint(xp, b), g)
    xh = _adjoint(xp, ans) if needs[0] or needs[1] else None
    return -(gq @ xh) if needs[0] else None, -(xh @ gq) if needs[1] else None, gq


def _sylvester_jvp(xp: Any, t_a: Any, t_b: Any, t_q: Any, a: Any, b: Any, ans: Any) -> Any:
    return xp.hips.solve_sylvester(a, b, t_q - t_a @ ans - ans @ t_b)


def _sylvester_forward(a: Any, b: Any, q: Any, /) -> Any:
    # SciPy's result is wrong if only some of the arguments are complex (its real Schur forms have
    # blocks on the diagonal, which the complex solver ignores)
    dtype = np.result_type(a, b, q)
    return scipy.linalg.solve_sylvester(*[x.astype(dtype, copy=False) for x in (a, b, q)])


mg.registry.define(
    "hips.solve_sylvester(a, b, q, /)",
    vjp=_sylvester_vjp,
    jvp=_sylvester_jvp,
    chapter="hips",
    forward={"numpy": _sylvester_forward},
    doc="The solution x of a x + x b = q.",
)

# ----- the square root: x x = a, so that dx x + x dx = da -----

mg.registry.define(
    "hips.sqrtm(a, /)",
    chapter="hips",
    forward={"numpy": scipy.linalg.sqrtm},
    doc="The principal square root of a matrix.",
    a=lambda xp, g, ans: xp.hips.solve_sylvester(_adjoint(xp, ans), _adjoint(xp, ans), g),
    jvp=lambda xp, t, ans: xp.hips.solve_sylvester(ans, ans, xp.astype(t, ans.dtype)),
)


def _sqrtm(a: Any, disp: bool | None = None, blocksize: Any = None) -> Any:
    if disp is False:
        raise NotImplementedError(
            "sqrtm of a box takes no disp=False: the error estimate has no derivative"
        )
    return operations.hips.sqrtm(a)


# ----- triangular systems: op(a) x = b; op is the identity, transpose or conjugate transpose -----

TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _solve_op(xp: Any, a: Any, b: Any, trans: int, lower: bool, unit: bool) -> Any:
    """Return op(a)^-H b."""
    if trans == 1:
        return _conj(xp, xp.hips.solve_triangular(a, _conj(xp, b), 0, lower, unit))
    return xp.hips.solve_triangular(a, b, 2 if trans == 0 else 0, lower, unit)


def _triangular_vjp(
    xp: Any, g: Any, a: Any, ans: Any, trans: int, lower: bool, unit: bool, needs: Any
) -> Any:
    gb = _solve_op(xp, a, g, trans, lower, unit)
    ga = None
    if needs[0]:
        left, right = _columns(gb), _columns(ans)
        product = {
            0: lambda: left @ _adjoint(xp, right),
            1: lambda: _conj(xp, right) @ xp.matrix_transpose(left),
            2: lambda: right @ _adjoint(xp, left),
        }[trans]()
        ga = -(
            xp.tril(product, k=-1 if unit else 0) if lower else xp.triu(product, k=1 if unit else 0)
        )
    return ga, gb


def _triangular_jvp(
    xp: Any, t_a: Any, t_b: Any, a: Any, ans: Any, trans: int, lower: bool, unit: bool
) -> Any:
    part = xp.tril(t_a, k=-1 if unit else 0) if lower else xp.triu(t_a, k=1 if unit else 0)
    part = {0: lambda: part, 1: lambda: xp.matrix_transpose(part), 2: lambda: _adjoint(xp, part)}[
        trans
    ]()
    return xp.hips.solve_triangular(a, t_b - part @ ans, trans, lower, unit)


def _triangular_forward(a: Any, b: Any, /, trans: int, lower: bool, unit: bool) -> Any:
    return scipy.linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit)


mg.registry.define(
    "hips.solve_triangular(a, b, /, trans, lower, unit)",
    vjp=_triangular_vjp,
    jvp=_triangular_jvp,
    chapter="hips",
    forward={"numpy": _triangular_forward},
    keep={"b": ("a", "trans", "lower", "unit")},
    doc="The solution x of op(a) x = b for a triangular matrix a.",
)


def _solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    if trans not in TRANS:
        raise ValueError(
            f"solve_triangular: trans must be one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}"
        )
    return operations.hips.solve_triangular(a, b, TRANS[trans], bool(lower), bool(unit_diagonal))


# ----- banded systems: the element (i, j) of the matrix is ab[upper + i - j, j] -----


def _banded_adjoint(xp: Any, bands: tuple[int, int], ab: Any) -> Any:
    """Return the bands of the conjugate transpose.

    Its diagonal k below the main one is the conjugate of the matrix's diagonal k above.
    """
    lower, upper = bands
    return xp.stack([_conj(xp, xp.roll(ab[upper - k, :], -k)) for k in range(-lower, upper + 1)])


def _banded_product(xp: Any, bands: tuple[int, int], left: Any, right: Any) -> Any:
    """Return the bands of left @ right^H."""
    lower, upper = bands
    n = left.shape[0]
    rows = []
    for k in range(-upper, lower + 1):
        size = max(n - abs(k), 0)
        line = xp.sum(
            left[max(k, 0) : max(k, 0) + size, :]
            * _conj(xp, right[max(-k, 0) : max(-k, 0) + size, :]),
            axis=1,
        )
        gap = xp.zeros((n - size,), dtype=line.dtype)
        rows.append(xp.concat([line, gap] if k >= 0 else [gap, line]))
    return xp.stack(rows)


def _banded_vjp(xp: Any, g: Any, ab: Any, ans: Any, bands: tuple[int, int], needs: Any) -> Any:
    gb = xp.hips.solve_banded(_banded_adjoint(xp, bands, ab), g, bands[::-1])
    return -_banded_product(xp, bands, _columns(gb), _columns(ans)) if needs[0] else None, gb


def _banded_jvp(xp: Any, t_ab: Any, t_b: Any, ab: Any, ans: Any, bands: tuple[int, int]) -> Any:
    """Return the product of the bands of t_ab with ans, diagonal by diagonal."""
    lower, upper = bands
    x = _columns(ans)
    n = x.shape[0]
    moved = 0.0
    for k in range(-upper, lower + 1):  # i = j + k
        size = max(n - abs(k), 0)
        j, i = max(-k, 0), max(k, 0)
        part = t_ab[upper + k, j : j + size][:, None] * x[j : j + size, :]
        moved = moved + xp.concat(
            [
                xp.zeros((i, x.shape[1]), dtype=part.dtype),
                part,
                xp.zeros((n - size - i, x.shape[1]), dtype=part.dtype),
            ]
        )
    return xp.hips.solve_banded(ab, t_b - xp.reshape(moved, ans.shape), bands)


def _banded_forward(ab: Any, b: Any, /, bands: tuple[int, int]) -> Any:
    return scipy.linalg.solve_banded(bands, ab, b)


mg.registry.define(
    "hips.solve_banded(ab, b, /, bands)",
    vjp=_banded_vjp,
    jvp=_banded_jvp,
    chapter="hips",
    forward={"numpy": _banded_forward},
    doc="The solution x of a x = b for a banded matrix a, given by its diagonals.",
)


def _solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    lower, upper = l_and_u
    return operations.hips.solve_banded(operand(ab), operand(b), (int(lower), int(upper)))


# ----- public functions -----


def _named(name: str, boxes: Function, arrays: int) -> Function:
    boxes.__name__ = name
    return differentiable(getattr(scipy.linalg, name), boxes, arrays)


def _solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    return operations.hips.solve_sylvester(a, b, q)


solve_banded = _named("solve_banded", _solve_banded, 0)
solve_sylvester = _named("solve_sylvester", _solve_sylvester, 3)
solve_triangular = _named("solve_triangular", _solve_triangular, 2)
sqrtm = _named("sqrtm", _sqrtm, 1)

__all__ = sorted(
    name for name in scipy.linalg.__all__ if not isinstance(getattr(scipy.linalg, name), type(np))
)


def _counterpart(name: str) -> str:
    return f"; multigrad_autograd.numpy.linalg.{name} has one" if hasattr(mg.linalg, name) else ""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    known = getattr(scipy.linalg, name)
    value = (
        known
        if isinstance(known, type) or not callable(known)
        else refusing(f"scipy.linalg.{name}", known, _counterpart(name))
    )
    globals()[name] = value
    return value
