"""Wrappers that extend a form for one real floating dtype to arrays of any dtype."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .common import refuse

__all__: list[str] = []

Form = Callable[..., Any]


def elementwise(form: Form) -> Form:
    """Convert the arguments of `form(xp, *arrays)` to one real dtype, float32 or wider.

    The result has the dtype of the floating arguments. Arrays of integers and Python scalars take
    that dtype, or the default dtype if no argument is floating. Complex arrays raise TypeError,
    which names the function and the backend.
    """
    return _prepared(form, ("real floating",))


def elementwise_or_complex(form: Form) -> Form:
    """Like `elementwise`, for a form that also accepts complex arrays."""
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
    """Convert integer arrays among the arguments of a rule to the dtype of the floating ones.

    Most libraries need this.
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


def refuse_complex(xp: Any, name: str, *given: Any) -> None:
    """Raise for a complex array given to a function of others, which would name another one."""
    for x in given:
        if hasattr(x, "dtype") and xp.isdtype(x.dtype, "complex floating"):
            raise refuse(name, xp.__name__.rpartition(".")[2], x.dtype)


def order(xp: Any, v: Any, z: Any) -> Any:
    """The order `v` of a function of `z` as a floating array; an unsigned 0 minus 1 is then -1."""
    if not hasattr(v, "dtype"):
        return xp.full_like(xp.abs(z), v)
    return v if xp.isdtype(v.dtype, "real floating") else xp.astype(v, xp.result_type(xp.abs(z)))
