"""Elementwise functions of the standard.

Partial derivatives are holomorphic. Some functions of complex arrays are not holomorphic (abs,
real, imag, conj, sign); their rules are written out in PyTorch's convention, as the adjoint under
the real inner product Re<g, t>. A comment beside each rule states the value at kinks and singular
points. It is PyTorch's value unless the comment says otherwise.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from functools import partial
from typing import Any

from ..registry import About, define, elementwise, linear, nondifferentiable
from .kernels import LN2, LN10, Number, alike, imaginary, is_complex, is_floating, unit

INF = math.inf


# ----- forms for libraries that lack a function: those added to the standard after its first
# version -----


def _arrays(xp: Any, *values: Any) -> list[Any]:
    """Convert Python scalars to arrays of the dtype of the other arguments."""
    like = next(v for v in values if hasattr(v, "dtype"))
    return [
        v if hasattr(v, "dtype") else xp.asarray(v, dtype=like.dtype, device=xp.device_of(like))
        for v in values
    ]


def extremum(wins: Any, xp: Any, x1: Any, x2: Any) -> Any:
    """x1 where it wins against x2, or is nan, and x2 elsewhere."""
    x1, x2 = _arrays(xp, x1, x2)
    return xp.where(wins(x1, x2) | (x1 != x1), x1, x2)


def clip(xp: Any, x: Any, min: Any, max: Any) -> Any:
    """The form for libraries whose function accepts what the standard leaves open.

    It returns the dtype of x, so limits of another kind would lose digits or their gradients.
    """
    whole = xp.isdtype(x.dtype, "integral")
    if not whole and xp.isdtype(x.dtype, ("bool", "complex floating")):
        raise TypeError(
            f"clip: x has dtype {x.dtype}, and limits are for integers and real numbers. Convert "
            "x first, as by astype(), or call numpy.clip, which promotes."
        )
    min, max = (_limit(xp, x, name, b, whole) for name, b in (("min", min), ("max", max)))
    if min is None and max is None:
        return xp.asarray(x, copy=True)
    dtype = x.dtype
    x = x if min is None else xp.maximum(x, min)
    x = x if max is None else xp.minimum(x, max)
    return xp.astype(x, dtype, copy=False)


def _limit(xp: Any, x: Any, name: str, b: Any, whole: bool) -> Any:
    """A limit of the kind of x; None for an integer beyond the dtype of x, which limits nothing."""
    if b is None:
        return None
    if hasattr(b, "dtype"):
        number = "integral" if whole else "real floating"
        fits = xp.isdtype(b.dtype, number) or not xp.isdtype(b.dtype, ("bool", "numeric"))
    else:
        fits = not isinstance(b, bool) and isinstance(b, int if whole else (int, float))
    if not fits:
        bound = f"{name} has dtype {b.dtype}" if hasattr(b, "dtype") else f"{name} is {b!r}"
        cure = "x first, x.astype(float)" if whole else f"{name} first, as by astype()"
        raise TypeError(
            f"clip: the bounds must be {'integers' if whole else 'real numbers'} where x is one "
            f"({x.dtype}), but {bound}; convert {cure}, or call numpy.clip, which promotes"
        )
    if whole and type(b) is int:
        limits = xp.iinfo(x.dtype)
        if b < limits.min if name == "min" else b > limits.max:
            return None
    return b


def hypot(xp: Any, x1: Any, x2: Any) -> Any:
    """Compute larger * sqrt(1 + (smaller / larger)**2), which neither overflows nor underflows."""
    x1, x2 = (xp.abs(x) for x in _arrays(xp, x1, x2))
    larger, smaller = xp.maximum(x1, x2), xp.minimum(x1, x2)
    ratio = smaller / xp.where((larger == 0) | (xp.isinf(larger)), 1.0, larger)
    root = larger * xp.sqrt(1 + ratio * ratio)
    return xp.where(xp.isinf(x1) | xp.isinf(x2), INF, root)


def signbit(xp: Any, x: Any) -> Any:
    """Use the angle of (-1, x), which distinguishes -0.0 from 0.0.

    The sign of nan is not detected.
    """
    return xp.atan2(x, -xp.ones_like(x)) < 0


def copysign(xp: Any, x1: Any, x2: Any) -> Any:
    x1, x2 = _arrays(xp, x1, x2)
    return xp.where(xp.signbit(x1) == xp.signbit(x2), x1, -x1)


# ----- rules of powers and exponentials -----


def pow_x1_partial(xp: Any, x1: Any, x2: Any, x2_scalar: Any) -> Any:
    """x2 * x1**(x2 - 1), which is 0 for x2 = 0 even where x1 is 0, infinite or nan."""
    # for x**2 and similar powers, compute only the power in the size of x1
    if x2_scalar is not None:
        if x2_scalar == 2:
            return 2.0 * x1
        return xp.zeros_like(x1) if x2_scalar == 0 else x2_scalar * x1 ** (x2_scalar - 1)
    if not is_floating(xp, x2.dtype):  # x2 - 1 would wrap around at the least integer
        x2 = xp.astype(x2, xp.result_type(x1.dtype, x2.dtype))
    # A constant partial for x2 = 0 would lose d2/(dx1 dx2) = 1/x1 there. So it is constant only at
    # the bases where the formula fails.
    flat = (x2 == 0) & ((x1 == 0) | xp.isnan(x1))
    return xp.where(flat, 0.0, x2 * xp.where(flat, 1, x1) ** (x2 - 1))


def pow_x2_partial(xp: Any, x1: Any, x2: Any, ans: Any) -> Any:
    """x1**x2 * log(x1), which is 0 at x1 = 0 for x2 >= 0."""
    # a negative real base with a complex exponent has a complex logarithm
    if x1.dtype != ans.dtype:
        x1 = xp.astype(x1, ans.dtype)
    flat = (x1 == 0) & ((xp.real(x2) if is_complex(xp, x2.dtype) else x2) >= 0)
    return ans * xp.log(xp.where(flat, 1, x1))


def softmax_weight(xp: Any, x: Any, other: Any, scale: Number | None = None) -> Any:
    """exp(x) / (exp(x) + exp(other)), with full relative precision and without overflow.

    Both hold for derivatives of any order. If both are the same infinity, the weight is that of
    equal finite numbers, 1/2; PyTorch gives nan. `scale` multiplies the exponents.
    """
    same = xp.isinf(x) & (x == other)
    apart = xp.where(same, 0.0, other) - xp.where(same, 0.0, x)  # exact where they are close
    return xp.exp(-xp.logaddexp(0.0, apart if scale is None else xp.scaled(apart, scale)))


# ----- rules of trigonometric and hyperbolic functions -----

# The formulas use products of differences. These are exact where they are small, and their factors
# do not overflow. `1 - z` and `z + 1` lose the sign of a zero imaginary part, which decides on
# which side of the branch cut a square root lies; `-(z - 1)` and `z - -1` keep it.

MINUS_I = complex(0.0, -1.0)  # -1j has the real part -0.0, whose sign `z - -1j` would lose


def _root_of_one_minus_square(xp: Any, x: Any) -> Any:
    if is_complex(xp, x.dtype):
        return xp.sqrt(-(x - 1)) * xp.sqrt(x - -1)
    # the kernel's own rule keeps the second derivatives at 1 infinite, where those of the product
    # would be nan
    return xp.sqrt(xp.difference_of_squares(1.0, x))


def _root_of_one_plus_square(xp: Any, x: Any) -> Any:
    if not is_complex(xp, x.dtype):
        return xp.hypot(x, 1.0)
    # here the root is x or -x to the last digit, and the square may overflow
    far = xp.abs(x) > 1e10
    near = xp.where(far, 0.0, x)
    return xp.where(
        far, xp.where(xp.signbit(xp.real(x)), -x, x), xp.sqrt((near - 1j) * (near - MINUS_I))
    )


def atan_vjp(xp: Any, g: Any, x: Any) -> Any:
    return g / (x - 1j) / (x - MINUS_I) if is_complex(xp, x.dtype) else g / (1.0 + x * x)


def atanh_vjp(xp: Any, g: Any, x: Any) -> Any:
    if is_complex(xp, x.dtype):
        return g / -(x - 1) / (x - -1)
    return g / xp.difference_of_squares(1.0, x)


def atan2_partial(xp: Any, x: Any, r: Any) -> Any:
    """x / r**2 without squaring r, which may overflow or underflow; 0 at the origin."""
    return unit(xp, x, r) / xp.where(r == 0, INF, r)


# ----- rules of the absolute value, the sign, and the parts of complex numbers -----


def abs_vjp(xp: Any, g: Any, x: Any) -> Any:
    """g * x / |x|, which is 0 at 0 and at a real nan."""
    if is_complex(xp, x.dtype):
        return alike(xp, g, x) * unit(xp, x, xp.abs(x))
    return xp.where(xp.isnan(x), 0.0, g * xp.sign(x))


def abs_jvp(xp: Any, t: Any, x: Any) -> Any:
    if is_complex(xp, x.dtype):
        return xp.real(xp.conj(unit(xp, x, xp.abs(x))) * t)
    return abs_vjp(xp, t, x)


def sign_vjp(xp: Any, g: Any, x: Any, ans: Any) -> Any:
    """(g - s Re(conj(s) g)) / |x| with s = x / |x|, and 0 at 0.

    The part of g along s only changes the modulus of x, so it is removed. The map is its own
    adjoint, so the same function is also the jvp. The gradient of a real argument is zero
    everywhere.
    """
    if not is_complex(xp, x.dtype):
        return xp.zeros_like(g)
    r = xp.abs(x)
    r = alike(xp, xp.where(r == 0, INF, r), ans)
    return (g - ans * alike(xp, xp.real(xp.conj(ans) * g), ans)) / r


def _of_complex(x: Any) -> bool:
    return "complex" in str(x.dtype)


# ----- rules of selections: gradients are selected, too, since inf times a mask is nan -----


def _share(xp: Any, g: Any, tie: Any, lost: Any) -> Any:
    """Split the gradient evenly at a tie; next to a nan, both operands get the whole gradient."""
    return xp.where(tie, g / 2, xp.where(lost, 0.0, g))


def clip_x_vjp(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    """x at a bound gets the gradient; outside the bounds, or if x is nan, it gets 0."""
    if min is None and max is None:
        return g
    inside = x <= max if min is None else x >= min if max is None else (x >= min) & (x <= max)
    return xp.where(inside, g, 0.0)


def clip_min_vjp(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    """The lower bound gets the gradient where x is below it, unless the upper bound is lower."""
    return xp.where(x < min if max is None else (x < min) & (min < max), g, 0.0)


def clip_max_vjp(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    """The upper bound gets the gradient where x is above it, or where the bounds are crossed."""
    return xp.where(x > max if min is None else (x > max) | (min > max), g, 0.0)


# ----- arithmetic -----

_NUMERIC = About(dtypes="any numeric dtype")

# fmt: off
elementwise("add(x1, x2, /)", x1=1, x2=1, operator="add", about=_NUMERIC,
            doc="The sum of each pair of elements.")
elementwise("subtract(x1, x2, /)", x1=1, x2=-1, operator="sub", about=_NUMERIC,
            doc="The difference of each pair of elements.")
elementwise("multiply(x1, x2, /)", x1=lambda xp, x2: x2, x2=lambda xp, x1: x1, operator="mul",
            about=_NUMERIC, doc="The product of each pair of elements.")
elementwise("divide(x1, x2, /)", x1=lambda xp, g, x2: g / x2,
            x2=lambda xp, g, x1, x2: -g * ((x1 / x2) / x2), operator="truediv",
            doc="The quotient of each pair of elements. At x2 = 0 the gradients are inf and "
                "-inf (nan for 0/0).")
elementwise("negative(x, /)", x=-1, operator="neg", doc="The negative of each element.",
            about=About(example="mg.asarray([1.0, -2.0])", dtypes="any numeric dtype"))
elementwise("positive(x, /)", x=1, operator="pos", doc="Each element, unchanged.", about=_NUMERIC)
elementwise("reciprocal(x, /)", x=lambda xp, ans: -(ans * ans), forward={"*": lambda xp, x: 1 / x},
            doc="One divided by each element.",
            about=About(gradient={"x": "-g / x**2"}))
elementwise("square(x, /)", x=lambda xp, x: 2.0 * x, doc="The square of each element.",
            about=About(example="mg.asarray([2.0, 3.0])", dtypes="any numeric dtype"))
elementwise("sqrt(x, /)", x=lambda xp, g, ans: g / (2.0 * ans),
            doc="The principal square root of each element. The gradient at 0 is inf.",
            about=About(at="inf at 0"))
elementwise("pow(x1, x2, /)", x1=pow_x1_partial, x2=pow_x2_partial, operator="pow",
            doc="Each element of x1 raised to the power in x2. The gradient of x**0 is 0 "
                "everywhere, and that of 0**y is 0 for y >= 0.",
            about=About(gradient={"x1": "g * x2 * x1**(x2 - 1)", "x2": "g * ans * log(x1)"},
                        dtypes="any numeric dtype"))
elementwise("remainder(x1, x2, /)", x1=1, x2=lambda xp, g, x1, x2: -g * xp.floor_divide(x1, x2),
            operator="mod", doc="The remainder of floor division, with the sign of x2.",
            about=_NUMERIC)

# ----- exponentials and logarithms -----

elementwise("exp(x, /)", x=lambda xp, ans: ans, doc="The exponential of each element.")
elementwise("expm1(x, /)", x=lambda xp, ans: ans + 1.0, doc="exp(x) - 1, accurate near 0.",
            about=About(gradient={"x": "g * exp(x)"}))
elementwise("log(x, /)", x=lambda xp, g, x: g / x,
            doc="The natural logarithm of each element. The gradient at 0 is inf.")
elementwise("log1p(x, /)", x=lambda xp, g, x: g / (1.0 + x), doc="log(1 + x), accurate near 0.")
elementwise("log2(x, /)", x=lambda xp, g, x: g / xp.scaled(x, LN2),
            doc="The logarithm to base 2 of each element.")
elementwise("log10(x, /)", x=lambda xp, g, x: g / xp.scaled(x, LN10),
            doc="The logarithm to base 10 of each element.")
elementwise("logaddexp(x1, x2, /)", x1=lambda xp, x1, x2: softmax_weight(xp, x1, x2),
            x2=lambda xp, x1, x2: softmax_weight(xp, x2, x1),
            doc="log(exp(x1) + exp(x2)), without overflow. The gradients at (-inf, -inf) are 1/2.",
            about=About(gradient={"x1": "g * exp(x1 - ans)", "x2": "g * exp(x2 - ans)"}))

# ----- trigonometric and hyperbolic functions -----

elementwise("sin(x, /)", x=lambda xp, x: xp.cos(x), doc="The sine of each element.")
elementwise("cos(x, /)", x=lambda xp, x: -xp.sin(x), doc="The cosine of each element.")
elementwise("tan(x, /)", x=lambda xp, ans: 1.0 + ans * ans, doc="The tangent of each element.")
elementwise("sinh(x, /)", x=lambda xp, x: xp.cosh(x), doc="The hyperbolic sine of each element.")
elementwise("cosh(x, /)", x=lambda xp, x: xp.sinh(x), doc="The hyperbolic cosine of each element.")
elementwise("tanh(x, /)", x=lambda xp, ans: 1.0 - ans * ans,
            doc="The hyperbolic tangent of each element.")
elementwise("asin(x, /)", x=lambda xp, g, x: g / _root_of_one_minus_square(xp, x),
            doc="The inverse sine of each element. The gradient at 1 is inf.",
            about=About(gradient={"x": "g / sqrt(1 - x**2)"}, at="inf at -1 and 1"))
elementwise("acos(x, /)", x=lambda xp, g, x: -g / _root_of_one_minus_square(xp, x),
            doc="The inverse cosine of each element. The gradient at 1 is -inf.",
            about=About(gradient={"x": "-g / sqrt(1 - x**2)"}, at="-inf at -1 and 1"))
elementwise("atan(x, /)", x=atan_vjp, doc="The inverse tangent of each element.",
            about=About(gradient={"x": "g / (1 + x**2)"}))
elementwise("asinh(x, /)", x=lambda xp, g, x: g / _root_of_one_plus_square(xp, x),
            doc="The inverse hyperbolic sine of each element.",
            about=About(gradient={"x": "g / sqrt(1 + x**2)"}))
elementwise("acosh(x, /)", x=lambda xp, g, x: g / xp.sqrt(x - 1) / xp.sqrt(x - -1),
            doc="The inverse hyperbolic cosine of each element. The gradient at 1 is inf.",
            about=About(gradient={"x": "g / sqrt(x**2 - 1)"}, at="inf at 1",
                        example="mg.asarray([1.5, 2.0])"))
elementwise("atanh(x, /)", x=atanh_vjp,
            doc="The inverse hyperbolic tangent of each element. The gradient at 1 is inf.",
            about=About(gradient={"x": "g / (1 - x**2)"}))
elementwise("atan2(x1, x2, /)", x1=lambda xp, x1, x2: atan2_partial(xp, x2, xp.hypot(x1, x2)),
            x2=lambda xp, x1, x2: -atan2_partial(xp, x1, xp.hypot(x1, x2)),
            doc="The angle of the point (x2, x1), in [-pi, pi]. The gradients at the origin are 0.",
            about=About(gradient={"x1": "g * x2 / (x1**2 + x2**2)",
                                  "x2": "-g * x1 / (x1**2 + x2**2)"},
                        at="0 at (0, 0)"))
elementwise("hypot(x1, x2, /)", forward={"*": hypot}, x1=lambda xp, x1, ans: unit(xp, x1, ans),
            x2=lambda xp, x2, ans: unit(xp, x2, ans),
            doc="sqrt(x1**2 + x2**2), without overflow. The gradients at (0, 0) are 0, where "
                "PyTorch gives nan.",
            about=About(gradient={"x1": "g * x1 / ans", "x2": "g * x2 / ans"}, at="0 at (0, 0)"))

# ----- absolute value, sign, and the parts of complex numbers -----

define("abs(x, /)", x=abs_vjp, jvp=abs_jvp, operator="abs", batching="elementwise",
       doc="The absolute value (modulus) of each element. The gradient at 0 is 0.",
       about=About(gradient={"x": "g * sign(x)"}, at="0 at 0", example="mg.asarray([-2.0, 3.0])"))
define("sign(x, /)", x=sign_vjp, jvp=lambda xp, t, x, ans: sign_vjp(xp, t, x, ans),
       batching="elementwise",
       doc="The sign of each element; for complex numbers z / |z|. The gradient of a real "
           "argument is 0, and so is the gradient at 0.",
       about=About(gradient={"x": "0 * g"}, example="mg.asarray([-2.0, 3.0])"))
linear("real(x, /)", x=lambda xp, g: g, batching="elementwise",
       view=lambda x: _of_complex(x) or "same", doc="The real part of each element.",
       about=About(gradient="g as the real part", example="mg.asarray([1 + 2j, 3.0])"))
linear("imag(x, /)", x=lambda xp, g, x_dtype: imaginary(xp, g, x_dtype), batching="elementwise",
       view=_of_complex, doc="The imaginary part of each element.",
       about=About(gradient="1j * g", example="mg.asarray([1 + 2j, 3.0])"))
linear("conj(x, /)", x=lambda xp, g: xp.conj(g), batching="elementwise",
       doc="The complex conjugate of each element.",
       about=About(example="mg.asarray([1 + 2j, 3.0])"))
# By ans, not by sign(x2), since the sign of -0.0 counts. The gradient of x2 is 0, and that of x1 at
# 0.
elementwise("copysign(x1, x2, /)", x1=lambda xp, x1, ans: xp.sign(x1) * xp.sign(ans), x2=0,
            forward={"*": copysign}, doc="The magnitude of x1 with the sign of x2.",
            about=About(gradient={"x1": "g * sign(x1) * sign(x2)"}, at="0 at x1 = 0"))

# ----- selections -----

elementwise("maximum(x1, x2, /)", forward={"*": partial(extremum, operator.ge)},
            x1=lambda xp, g, x1, x2: _share(xp, g, x1 == x2, x1 < x2),
            x2=lambda xp, g, x1, x2: _share(xp, g, x1 == x2, x2 < x1),
            doc="The larger of each pair of elements. Ties share the gradient.",
            about=About(gradient={"x1": "where(x1 > x2, g, 0)", "x2": "where(x2 > x1, g, 0)"},
                        at="g / 2 to each of two equal elements", dtypes="any numeric dtype"))
elementwise("minimum(x1, x2, /)", forward={"*": partial(extremum, operator.le)},
            x1=lambda xp, g, x1, x2: _share(xp, g, x1 == x2, x1 > x2),
            x2=lambda xp, g, x1, x2: _share(xp, g, x1 == x2, x2 > x1),
            doc="The smaller of each pair of elements. Ties share the gradient.",
            about=About(gradient={"x1": "where(x1 < x2, g, 0)", "x2": "where(x2 < x1, g, 0)"},
                        at="g / 2 to each of two equal elements", dtypes="any numeric dtype"))
elementwise("clip(x, /, min: array = None, max: array = None)", forward={"*": clip}, x=clip_x_vjp,
            min=clip_min_vjp, max=clip_max_vjp,
            doc="Each element limited to the interval [min, max]. At a bound the gradient goes to "
                "x.",
            about=About(gradient={"x": "where((x >= min) & (x <= max), g, 0)"},
                        at="at min and max themselves x gets g, and the bounds get 0",
                        example="mg.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0",
                        dtypes="any numeric dtype"))

# ----- piecewise constant: recorded, with a zero gradient, as in PyTorch -----

_STEPS = replace(_NUMERIC, example="mg.asarray([0.4, 1.6])")

for _name, _doc, _about in (
    ("ceil", "The smallest integer not below each element.", _STEPS),
    ("floor", "The largest integer not above each element.", _STEPS),
    ("round", "The nearest integer, halves to even.", replace(_STEPS, numpy_keywords=True)),
    ("trunc", "The integer part of each element.",
     replace(_NUMERIC, example="mg.asarray([-1.6, 1.6])")),
):
    elementwise(f"{_name}(x, /)", x=0, doc=f"{_doc} The gradient is 0.", about=_about)

# ----- no gradient -----

_OF_BITS = About(example="mg.asarray([6, 5]), mg.asarray([3, 1])",
                 dtypes="integer or boolean dtypes")
_TRUTH = About(returns="booleans")
_OF_INF = replace(_TRUTH, example="mg.asarray([1.0, mg.inf])")
_LOGICAL = replace(_TRUTH, example="mg.asarray([True, True]), mg.asarray([True, False])",
                   dtypes="boolean dtypes")

for _signature, _operator, _about, _doc in (
    ("bitwise_and(x1, x2, /)", "and", _OF_BITS,
     "The bitwise AND of each pair of integers or booleans."),
    ("bitwise_invert(x, /)", "invert", replace(_OF_BITS, example="mg.asarray([0, 5])"),
     "Each element with every bit inverted."),
    ("bitwise_left_shift(x1, x2, /)", "lshift", _OF_BITS,
     "The bits of x1 shifted to the left by x2."),
    ("bitwise_or(x1, x2, /)", "or", _OF_BITS,
     "The bitwise OR of each pair of integers or booleans."),
    ("bitwise_right_shift(x1, x2, /)", "rshift", _OF_BITS,
     "The bits of x1 shifted to the right by x2."),
    ("bitwise_xor(x1, x2, /)", "xor", _OF_BITS,
     "The bitwise XOR of each pair of integers or booleans."),
    ("equal(x1, x2, /)", "eq", _TRUTH, "Whether the elements of each pair are equal."),
    ("floor_divide(x1, x2, /)", "floordiv", About(),
     "The largest integer not above the quotient of each pair of elements."),
    ("greater(x1, x2, /)", "gt", _TRUTH, "Whether x1 is greater than x2."),
    ("greater_equal(x1, x2, /)", "ge", _TRUTH, "Whether x1 is at least x2."),
    ("isfinite(x, /)", "", _OF_INF, "Whether each element is neither infinite nor nan."),
    ("isinf(x, /)", "", _OF_INF, "Whether each element is infinite."),
    ("isnan(x, /)", "", replace(_TRUTH, example="mg.asarray([1.0, mg.nan])"),
     "Whether each element is nan."),
    ("less(x1, x2, /)", "lt", _TRUTH, "Whether x1 is less than x2."),
    ("less_equal(x1, x2, /)", "le", _TRUTH, "Whether x1 is at most x2."),
    ("logical_and(x1, x2, /)", "", _LOGICAL, "Whether both booleans of each pair are true."),
    ("logical_not(x, /)", "", replace(_LOGICAL, example="mg.asarray([True, False])"),
     "The negation of each boolean."),
    ("logical_or(x1, x2, /)", "", _LOGICAL,
     "Whether at least one boolean of each pair is true."),
    ("logical_xor(x1, x2, /)", "", _LOGICAL,
     "Whether exactly one boolean of each pair is true."),
    ("nextafter(x1, x2, /)", "", About(example="mg.asarray([1.0]), 2.0"),
     "The next number after x1 in the direction of x2."),
    ("not_equal(x1, x2, /)", "ne", _TRUTH, "Whether the elements of each pair differ."),
    ("signbit(x, /)", "", replace(_TRUTH, example="mg.asarray([-2.0, 3.0])"),
     "Whether the sign bit of each element is set."),
):
    nondifferentiable(_signature, operator=_operator, doc=_doc, batching="elementwise",
                      forward={"*": signbit} if _signature.startswith("signbit") else None,
                      about=_about)
