"""Statistical functions of the standard: reductions and scans."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

from ..registry import About, define, linear
from . import batching
from .kernels import conj, is_complex, is_narrow, wide
from .keys import along

INF = math.inf


def _axes(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """The reduced axes, counted from the front.

    A 0-d array has none, though NumPy and PyTorch accept 0 and -1 for it.
    """
    ndim = len(shape)
    if axis is None or (not ndim and axis in (0, -1)):
        return tuple(range(ndim))
    # NumPy's integers are not instances of int
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of bounds for an array with {ndim} axes")
    return tuple(a % ndim for a in axes)


def _count(shape: tuple[int, ...], axis: Any) -> int:
    """The number of elements that are reduced to one element of the result.

    Raises ValueError if a size is not known yet; a lazy library gives nan for it.
    """
    count = math.prod(shape[a] for a in _axes(shape, axis))
    if count != count:
        raise ValueError(
            "the number of elements that go into a mean or a variance is unknown: the sizes of "
            f"the array are {tuple(shape)}"
        )
    return count


def _kept(xp: Any, y: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """Restore the reduced axes of a result, with length 1."""
    if keepdims or not shape:
        return y
    reduced = _axes(shape, axis)
    return xp.reshape(y, tuple(1 if i in reduced else n for i, n in enumerate(shape)))


def _spread(xp: Any, g: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The adjoint of a sum: every element gets the cotangent of its sum."""
    if axis is None and not keepdims:
        return xp.broadcast_to(g, shape)
    return xp.broadcast_to(_kept(xp, g, shape, axis, keepdims), shape)


def _as(xp: Any, x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else xp.astype(x, dtype)


# ----- sums -----


def _divided(xp: Any, x: Any, count: Any) -> Any:
    """x / count in the dtype of x, whose largest number the count may exceed."""
    return _as(xp, _as(xp, x, xp.float32) / count, x.dtype) if is_narrow(xp, x.dtype) else x / count


def mean_vjp(xp: Any, g: Any, x_shape: Any, axis: Any, keepdims: Any) -> Any:
    # divided before broadcasting; an empty array gets no cotangent
    return _spread(xp, _divided(xp, g, max(_count(x_shape, axis), 1)), x_shape, axis, keepdims)


# ----- variance and standard deviation -----


def _centred(xp: Any, x: Any, axis: Any) -> Any:
    x = wide(xp, x)
    x = x - xp.mean(x, axis=axis, keepdims=True)
    # remove the rounding error of a mean far from 0
    return x - xp.mean(x, axis=axis, keepdims=True)


def _per_freedom(xp: Any, y: Any, shape: tuple[int, ...], axis: Any, correction: Any) -> Any:
    """2 y / (n - correction), which is nan or infinite where no degrees of freedom are left.

    Half of the degrees of freedom is an exact float, but its inverse is not.
    """
    freedom = _count(shape, axis) - correction
    return y / (freedom / 2) if freedom > 0 else y * INF


def var_vjp(xp: Any, g: Any, x: Any, axis: Any, correction: Any, keepdims: Any) -> Any:
    return _kept(
        xp, _per_freedom(xp, wide(xp, g), x.shape, axis, correction), x.shape, axis, keepdims
    ) * _centred(xp, x, axis)


def _real_inner(xp: Any, x: Any, t: Any, axis: Any, keepdims: bool) -> Any:
    """The sum of Re(conj(x) t)."""
    product = conj(xp, x) * t
    if is_complex(xp, product.dtype):
        product = xp.real(product)
    return xp.sum(product, axis=axis, keepdims=keepdims)


def var_jvp(xp: Any, t: Any, x: Any, axis: Any, correction: Any, keepdims: Any) -> Any:
    total = _real_inner(xp, _centred(xp, x, axis), t, axis, keepdims)
    total = _per_freedom(xp, total, x.shape, axis, correction)
    return _as(xp, total, x.dtype) if is_narrow(xp, x.dtype) else total


def _twice_std(xp: Any, ans: Any) -> Any:
    """2 std, but inf where std is 0.

    So the gradient of the deviation of constants is 0, as in PyTorch.
    """
    return xp.where(ans == 0, INF, 2 * ans)


def std_vjp(xp: Any, g: Any, x: Any, axis: Any, correction: Any, keepdims: Any) -> Any:
    # The deviation is recomputed, not saved: callers often overwrite its zeros by 1 before a
    # division.
    x = wide(xp, x)
    ans = xp.std(x, axis=axis, correction=correction, keepdims=keepdims)
    return var_vjp(xp, g / _twice_std(xp, ans), x, axis, correction, keepdims)


def std_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, correction: Any, keepdims: Any) -> Any:
    if is_narrow(xp, x.dtype):
        dtype, x = x.dtype, wide(xp, x)
        ans = xp.std(x, axis=axis, correction=correction, keepdims=keepdims)
        return xp.astype(std_jvp(xp, wide(xp, t), x, ans, axis, correction, keepdims), dtype)
    return var_jvp(xp, t, x, axis, correction, keepdims) / _twice_std(xp, ans)


# ----- extrema -----


def _winners(xp: Any, x: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    """The mask of elements equal to the extremum; if that is nan, of the nans."""
    return (x == _kept(xp, ans, x.shape, axis, keepdims)) | xp.isnan(x)


def _how_many(xp: Any, winners: Any, dtype: Any, axis: Any, keepdims: bool) -> Any:
    """The number of winners, as a float to divide by."""
    dtype = xp.float32 if is_narrow(xp, dtype) else dtype
    return xp.sum(xp.astype(winners, dtype), axis=axis, keepdims=keepdims)


def _extremum_vjp(extremum: str) -> Any:
    """Share the gradient evenly among ties, also along an axis.

    The extremum is recomputed, not saved: callers such as softmax overwrite an infinite extremum by
    0 before they subtract it.
    """

    def extremum_vjp(xp: Any, g: Any, x: Any, axis: Any, keepdims: Any) -> Any:
        winners = _winners(xp, x, getattr(xp, extremum)(x, axis=axis, keepdims=True), axis, True)
        share = _divided(
            xp, _kept(xp, g, x.shape, axis, keepdims), _how_many(xp, winners, g.dtype, axis, True)
        )
        return xp.where(winners, share, 0.0)

    return extremum_vjp


def extremum_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    winners = _winners(xp, x, ans, axis, keepdims)
    return _divided(
        xp,
        xp.sum(xp.where(winners, t, 0.0), axis=axis, keepdims=keepdims),
        _how_many(xp, winners, t.dtype, axis, keepdims),
    )


# ----- products: polynomials, so their rules never divide and zeros need no case of their own -----


def _products_before(xp: Any, x: Any, axis: int) -> Any:
    """The product of all earlier elements along the axis; 1 for the first."""
    scan = xp.cumulative_prod(x, axis=axis, dtype=x.dtype, include_initial=True)
    return scan[along(axis, 0, x.shape[axis])]


def _products_of_others(xp: Any, x: Any, axis: int) -> Any:
    """The product of all other elements along the axis."""
    after = xp.flip(_products_before(xp, xp.flip(x, axis=axis), axis), axis=axis)
    return _products_before(xp, x, axis) * after


def prod_gradient(xp: Any, x: Any, axis: Any) -> Any:
    """The derivative of the product with respect to each element, in the shape of x.

    It is the product of the other elements.
    """
    shape, axes = x.shape, _axes(x.shape, axis)
    if not axes:
        return xp.ones_like(x)
    if len(axes) == 1:
        return _products_of_others(xp, x, axes[0])
    order = tuple(i for i in range(len(shape)) if i not in axes) + axes
    arranged = xp.permute_dims(x, order)
    before = len(shape) - len(axes)
    flat = xp.reshape(arranged, (*arranged.shape[:before], math.prod(arranged.shape[before:])))
    others = xp.reshape(_products_of_others(xp, flat, before), arranged.shape)
    return xp.permute_dims(others, tuple(order.index(i) for i in range(len(shape))))


def prod_vjp(xp: Any, g: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    g = wide(xp, g)
    gradient = prod_gradient(xp, _as(xp, x, g.dtype), axis)
    return _kept(xp, g, x.shape, axis, keepdims) * conj(xp, gradient)


def prod_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    dtype = xp.float32 if is_narrow(xp, ans.dtype) else ans.dtype
    product = prod_gradient(xp, _as(xp, x, dtype), axis) * _as(xp, t, dtype)
    return _as(xp, xp.sum(product, axis=axis, dtype=dtype, keepdims=keepdims), ans.dtype)


# ----- scans -----


def _scan_axis(axis: Any, ndim: int) -> int:
    return 0 if axis is None else int(axis) % ndim


def _after_initial(g: Any, axis: int, include_initial: Any) -> Any:
    """The cotangent without the entry of the initial 0 or 1, which is a constant."""
    return g[along(axis, 1, None)] if include_initial else g


def cumulative_sum_vjp(xp: Any, g: Any, axis: Any, include_initial: Any) -> Any:
    axis = _scan_axis(axis, len(g.shape))
    g = xp.flip(_after_initial(g, axis, include_initial), axis=axis)
    return xp.flip(xp.cumulative_sum(g, axis=axis, dtype=g.dtype), axis=axis)


def _shifted(n: int, step: int, axis: int) -> tuple[Any, Any, Any]:
    """The keys of the first `step` of n elements, of all but the last `step`, and of the others."""
    return along(axis, 0, step), along(axis, 0, n - step), along(axis, step, n)


def _recurrence(xp: Any, a: Any, b: Any, axis: int) -> Any:
    """Solve s[k] = b[k] + a[k] s[k - 1] along the axis, with s[-1] = 0, by recursive doubling.

    After each round s[k] holds the terms of the last `step` elements, and a[k] holds their product
    (Kogge and Stone, IEEE Trans. Comput. C-22, 1973).
    """
    n, step = b.shape[axis], 1
    while step < n:
        head, tail, rest = _shifted(n, step, axis)
        b = xp.concat([b[head], b[rest] + a[rest] * b[tail]], axis=axis)
        a = xp.concat([a[head], a[rest] * a[tail]], axis=axis)
        step *= 2
    return b


def cumulative_prod_vjp(xp: Any, g: Any, x: Any, axis: Any, include_initial: Any) -> Any:
    """gx[k] = (product before k) * s[k], where s[k] = g[k] + x[k + 1] s[k + 1] runs backwards."""
    axis = _scan_axis(axis, len(x.shape))
    if x.shape[axis] == 0:
        return xp.zeros_like(x)
    g = wide(xp, g)
    x = conj(xp, _as(xp, x, g.dtype))
    g = _after_initial(g, axis, include_initial)
    # s[0] has no predecessor, so a[0] is not used
    backwards = _recurrence(
        xp, xp.roll(xp.flip(x, axis=axis), 1, axis=axis), xp.flip(g, axis=axis), axis
    )
    return _products_before(xp, x, axis) * xp.flip(backwards, axis=axis)


def cumulative_prod_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, include_initial: Any) -> Any:
    """s[k] = (product before k) * t[k] + x[k] s[k - 1]."""
    axis = _scan_axis(axis, len(x.shape))
    dtype = xp.float32 if is_narrow(xp, ans.dtype) else ans.dtype
    x, t = _as(xp, x, dtype), _as(xp, t, dtype)
    s = _as(xp, _recurrence(xp, x, _products_before(xp, x, axis) * t, axis), ans.dtype)
    if not include_initial:
        return s
    return xp.concat([xp.zeros_like(ans[along(axis, 0, 1)]), s], axis=axis)


def running(xp: Any, x: Any, combine: Any, axis: int) -> Any:
    """Combine all elements up to each one along an axis, by recursive doubling, O(n log n).

    See Hillis and Steele, CACM 29, 1986.
    """
    n, step = x.shape[axis], 1
    while step < n:
        head, tail, rest = _shifted(n, step, axis)
        x = xp.concat([x[head], combine(x[rest], x[tail])], axis=axis)
        step *= 2
    return x


def scan(
    combine: Any, reduction: str, xp: Any, x: Any, axis: Any, dtype: Any, include_initial: bool
) -> Any:
    """The form of a scan for libraries without one."""
    axis = _scan_axis(axis, len(x.shape))
    nothing = x[along(axis, 0, 0)]
    initial = getattr(xp, reduction)(nothing, axis=axis, dtype=dtype, keepdims=True)
    x = running(xp, _as(xp, x, initial.dtype), combine, axis)
    return xp.concat([initial, x], axis=axis) if include_initial else x


# ----- the operations -----

# fmt: off
linear("sum(x, /, *, axis=None, dtype=None, keepdims=False)", batching="axis",
       x=lambda xp, g, x_shape, axis, keepdims: _spread(xp, g, x_shape, axis, keepdims),
       doc="The sum of the elements over one axis, several, or all.",
       about=About(gradient={"x": "broadcast_to(g, x.shape)"}, example="A, axis=0",
                   numpy_keywords=True))
linear("mean(x, /, *, axis=None, keepdims=False)", batching="axis", x=mean_vjp,
       doc="The arithmetic mean of the elements over one axis, several, or all.",
       about=About(gradient={"x": "broadcast_to(g, x.shape) / n"}, dtypes="floating dtypes",
                   numpy_keywords=True))
define("var(x, /, *, axis=None, correction=0.0, keepdims=False)", batching="axis", x=var_vjp,
       jvp=var_jvp, doc="The variance: the sum of squared deviations divided by the number of "
                        "elements minus the correction.",
       about=About(gradient={"x": "2 * g * (x - mean(x)) / n"}, dtypes="floating dtypes",
                   numpy_keywords=True))
define("std(x, /, *, axis=None, correction=0.0, keepdims=False)", batching="axis", x=std_vjp,
       jvp=std_jvp,
       doc="The standard deviation, the square root of the variance. The gradient of constants is "
           "0.",
       about=About(gradient={"x": "g * (x - mean(x)) / (n * ans)"},
                   at="0 where all elements are equal", dtypes="floating dtypes",
                   numpy_keywords=True))
for _name, _extreme in (("max", "largest"), ("min", "smallest")):
    define(f"{_name}(x, /, *, axis=None, keepdims=False)", batching="axis", x=_extremum_vjp(_name),
           jvp=extremum_jvp,
           doc=f"The {_extreme} element over one axis, several, or all. Ties share the gradient.",
           about=About(gradient={"x": "where(x == ans, g, 0)"},
                       at="elements equal to the extremum share g evenly", numpy_keywords=True))
define("prod(x, /, *, axis=None, dtype=None, keepdims=False)", batching="axis", x=prod_vjp,
       jvp=prod_jvp, doc="The product of the elements over one axis, several, or all.",
       about=About(gradient={"x": "g * ans / x"},
                   at="computed without division, so it is correct at 0", numpy_keywords=True))
linear("cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)",
       batching=batching.scan("cumulative_sum"), x=cumulative_sum_vjp,
       forward={"*": partial(scan, operator.add, "sum")},
       doc="The cumulative sums along an axis.",
       about=About(gradient="the sums of g from each element to the last", example="V"))
define("cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)",
       batching=batching.scan("cumulative_prod"), x=cumulative_prod_vjp, jvp=cumulative_prod_jvp,
       forward={"*": partial(scan, operator.mul, "prod")},
       doc="The cumulative products along an axis.",
       about=About(gradient="sums over all products that contain the element; correct at zeros",
                   example="V"))
