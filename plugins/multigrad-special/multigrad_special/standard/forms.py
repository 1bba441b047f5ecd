"""What makes a form for arrays of any dtype of one that is written for arrays of one real floating
dtype, of float32 or wider.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .common import refuse

__all__: list[str] = []

Form = Callable[..., Any]


def elementwise(form: Form) -> Form:
    """Bring the arguments of `form(xp, *arrays)` to one real dtype, float32 or wider, and its
    result to the dtype of the floating arguments.

    Arrays of integers and Python scalars count as what the floating arguments are, or as the
    default dtype where there are none. Complex arrays raise TypeError, which names the function and
    the backend.
    """
    return _prepared(form, ("real floating",))


def elementwise_or_complex(form: Form) -> Form:
    """As `elementwise`, of a form that is one for complex arrays, too."""
    return _prepared(form, ("real floating", "complex floating"))


def _prepared(form: Form, kinds: tuple[str, ...]) -> Form:
    @wraps(form)
    def prepared(xp: Any, *given: Any) -> Any:
        known = [x for x in given if hasattr(x, "dtype")]
        floating = [x for x in known if not xp.isdtype(x.dtype, ("integral", "bool"))]
        for x in floating:
            if not xp.isdtype(x.dtype, kinds):
                raise refuse(form.__name__, xp.__name__.rpartition(".")[2], x.dtype)
        dtype = xp.result_type(*floating) if floating else xp.asarray(0.0).dtype
        wide = xp.float32 if xp.finfo(dtype).bits < 32 else dtype
        like = known[0]
        values = [
            xp.astype(x, wide, copy=False)
            if hasattr(x, "dtype")
            else xp.full((), x, dtype=wide, device=xp.device_of(like))
            for x in given
        ]
        return xp.astype(form(xp, *values), dtype, copy=False)

    return prepared


def floats(xp: Any, *given: Any) -> Any:
    """The arguments of a rule, arrays of integers in the dtype of the floating ones: most libraries
    want them so beside those.
    """
    arrays = [x for x in given if hasattr(x, "dtype")]
    floating = [x.dtype for x in arrays if not xp.isdtype(x.dtype, "integral")]
    if len(floating) in (0, len(arrays)):
        return given
    dtype = xp.result_type(*floating)
    return tuple(
        xp.astype(x, dtype) if hasattr(x, "dtype") and xp.isdtype(x.dtype, "integral") else x
        for x in given
    )


def order(xp: Any, v: Any, z: Any) -> Any:
    """The order `v` of a function of `z` as a floating array, so that one less than an unsigned 0
    is -1.
    """
    if not hasattr(v, "dtype"):
        return xp.full_like(xp.abs(z), v)
    return v if xp.isdtype(v.dtype, "real floating") else xp.astype(v, xp.result_type(xp.abs(z)))
