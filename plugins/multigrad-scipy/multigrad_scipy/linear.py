"""linear_solve: the solution of a linear system whose matrix is given by its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function
from multigrad.extend import entry, innermost, level_of

from .arguments import Point, ravelled
from .implicit import jacobian
from .levels import Examples, constant, numbers, one, orders
from .program import Opaque, Program
from .progress import Bar

__all__ = ["linear_solve"]

METHODS = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
TRANSPOSED = ("bicg", "qmr")
"""The methods that also use products with the transposed matrix."""


class _System(NamedTuple):
    """The settings for systems with one matrix.

    point      the right-hand side
    symmetric  whether the matrix is symmetric
    method     the name of SciPy's method
    settings   its keyword arguments
    bar        the bar that counts products
    """

    point: Point
    symmetric: bool
    method: str
    settings: dict[str, Any]
    bar: Bar

    def solve(
        self,
        product: Callable[[Any], Any],
        transposed: Callable[[Any], Any] | None,
        b: Any,
        start: Any = None,
    ) -> Any:
        """Return the solution as numbers.

        The products take and return raw arrays or constant Tensors.
        """

        def on_numbers(f: Callable[[Any], Any] | None) -> Any:
            return (
                None
                if f is None
                else self.bar.counting(lambda z: np.array(numbers(f(self.point.array(z)))))
            )

        n = self.point.size
        operator = scipy.sparse.linalg.LinearOperator(
            (n, n), matvec=on_numbers(product), rmatvec=on_numbers(transposed), dtype=np.float64
        )
        x, failed = getattr(scipy.sparse.linalg, self.method)(
            operator, b, x0=start, **self.settings
        )
        if failed or not np.isfinite(x).all():
            left = np.linalg.norm(operator.matvec(x) - b)
            raise RuntimeError(
                f"linear_solve: {self.method} did not converge: the residual is {left:.1e} for "
                f"a right-hand side of norm {np.linalg.norm(b):.1e}. The matrix may be "
                "singular; else pass a larger maxiter or rtol, or another method"
            )
        return x


class _Solve(Function):
    """The solution x of A x = b, with the product A x, or that of the transpose, as a Program.

    arrays  the arrays that the Program refers to
    """

    @staticmethod
    def forward(b: Any, system: _System, program: Program, flipped: bool, *arrays: Any) -> Any:
        raw = [innermost(x) for x in arrays]
        x = system.solve(
            lambda v: (
                _product(program, False, v, raw)
                if not flipped
                else _product(program, not system.symmetric, v, raw)
            ),
            lambda v: _product(program, not flipped and not system.symmetric, v, raw),
            numbers(b),
        )
        return system.point.vector(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.system, ctx.program, ctx.flipped, *arrays = inputs
        ctx.save_for_backward(output, *arrays)
        ctx.save_for_forward(output, *arrays)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, *arrays = ctx.saved_tensors
        g = _Solve.apply(g, ctx.system, ctx.program, not ctx.flipped, *arrays)
        if not arrays:
            return g, None, None, None
        _, pullback = func.vjp(lambda given: _product(ctx.program, ctx.flipped, x, given), arrays)
        return g, None, None, None, *pullback(mg.negative(g))[0]

    @staticmethod
    def jvp(ctx: Any, t: Any, system: Any, program: Any, flipped: Any, *tangents: Any) -> Any:
        x, *arrays = ctx.saved_tensors
        if arrays:
            _, moved = func.jvp(
                lambda given: _product(ctx.program, ctx.flipped, x, given),
                (arrays,),
                (list(tangents),),
            )
            t = mg.subtract(t, moved)
        return _Solve.apply(t, ctx.system, ctx.program, ctx.flipped, *arrays)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        b: Any,
        system: _System,
        program: Program,
        flipped: bool,
        *arrays: Any,
    ) -> tuple[Any, int]:
        def example(x: Any, axis: Any, i: int) -> Any:
            return x if axis is None else mg.moveaxis(x, axis, 0)[i, ...]

        def solved(i: int) -> Any:
            inner = [example(x, axis, i) for x, axis in zip(arrays, in_dims[4:], strict=True)]
            return _Solve.apply(example(b, in_dims[0], i), system, program, flipped, *inner)

        return mg.stack([solved(i) for i in range(info.batch_size)]), 0


def _product(program: Program, flipped: bool, v: Any, arrays: Any) -> Any:
    """Return the product of the matrix, or of its transpose, with a vector."""
    if not flipped:
        return program(v, arrays)
    zero = mg.zeros_like(v)
    _, pullback = func.vjp(lambda u: program(u, arrays), zero if level_of(v) else innermost(zero))
    return pullback(v)[0]


@entry
def linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    *,
    method: str | None = None,
    symmetric: bool = False,
    x0: Any = None,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    progress: bool = False,
) -> Any:
    """Solve A x = b, given the product `matvec(x)` = A x, by an iterative method of SciPy.

    The methods are those of scipy.sparse.linalg.

    matvec     array-agnostic and linear: from an array or a nested structure of arrays like `b` to
               one with as many elements
    b          an array of any library, a Tensor, or a nested structure of these; real
    method     'bicg', 'bicgstab', 'cg', 'cgs', 'gcrotmk', 'gmres', 'lgmres', 'minres', 'qmr' or
               'tfqmr'. None: 'cg' if `symmetric`, else 'gmres'
    symmetric  whether A equals its transpose, so that one method serves for derivatives; 'cg' also
               requires that A is positive definite
    x0         the start, like `b`; zeros if None
    rtol       the tolerance of the residual as a fraction of the norm of b; None: the 2/3rd power
               of the dtype's eps, 4e-11 for float64
    atol       the absolute tolerance of the residual
    maxiter    SciPy's
    progress   show the products with A as a tqdm bar

    Returns x in the structure of `b`. It is differentiable with respect to `b` and to anything that
    `matvec` refers to, to any order. Each derivative solves one more system, with A or its
    transpose, whose products come from `matvec`. Inside `vmap`, or if matvec applies a user-defined
    derivative, the matrix is built and the system is solved directly.

    Raises RuntimeError if the method does not converge; TypeError and ValueError for a `b` or a
    result of `matvec` that does not fit, and for a matvec that is not linear; ImportError if
    progress needs tqdm.
    """
    point = Point(b, "linear_solve")
    method = method or ("cg" if symmetric else "gmres")
    if method not in METHODS:
        raise ValueError(
            f"linear_solve: method must be one of {', '.join(map(repr, METHODS))}, not {method!r}"
        )
    right = ravelled(b)

    def product(v: Any) -> Any:
        out = ravelled(matvec(point.unravel(v)))
        if tuple(out.shape) != (point.size,):
            raise ValueError(
                f"linear_solve: matvec returns {out.shape[0]} elements for the {point.size} of b"
            )
        return out

    zeros = point.array(np.zeros(point.size))
    with mg.no_grad():
        first = product(zeros)
    examples = Examples([first, right])
    if np.any(examples.values(first)):
        raise ValueError(
            "linear_solve: matvec is not linear: it does not return zeros for zeros. Subtract "
            "its constant part from b"
        )
    settings = {
        "rtol": float(mg.namespace(point.raw).finfo(point.raw.dtype).eps) ** (2 / 3)
        if rtol is None
        else rtol,
        "atol": atol,
    }
    settings |= {} if maxiter is None else {"maxiter": maxiter}
    if method == "gmres":
        settings |= {"restart": min(point.size, 100)}
    if method == "minres":
        settings.pop("atol")
    with Bar(progress, "linear_solve", "products") as bar:
        system = _System(point, symmetric, method, settings, bar)
        x = _solved(
            system,
            product,
            right,
            zeros,
            None if x0 is None else numbers(one(ravelled(x0), "linear_solve", "x0")),
            examples,
        )
    return point.unravel(x)


def _solved(
    system: _System,
    product: Callable[[Any], Any],
    right: Any,
    zeros: Any,
    start: Any,
    examples: Examples,
) -> Any:
    if examples.batched:
        return mg.linalg.solve(jacobian(product, zeros), right)
    if not orders(product(zeros)) and not orders(right):
        transposed = (
            func.vjp(product, zeros)[1]
            if system.method in TRANSPOSED and not system.symmetric
            else None
        )
        with mg.no_grad():
            back = (
                product
                if system.symmetric
                else None
                if transposed is None
                else lambda v: transposed(v)[0]
            )
            x = system.solve(lambda v: constant(product(v)), back, numbers(right), start)
        return system.point.array(x)
    try:
        program = Program(product, innermost(zeros))
    except Opaque:
        return mg.linalg.solve(jacobian(product, zeros), right)
    return _Solve.apply(right, system, program, False, *program.arrays)
