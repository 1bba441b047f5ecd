"""Forms: operations on NumPy arrays as statements that write the result into a given array.

A form replaces only the backend's own function: if a plugin has replaced the function, that is
called. A form uses the same ufuncs on the same dtypes as the function, so that the results are
equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...program import Call, Program, Ref, is_on_numbers, on_numbers


@dataclass(slots=True)
class Seen:
    """A value at the trial: an "array", a NumPy "scalar", a Python "number", or "other".

    root  the value that owns the memory of an array: itself, an input, a constant, a result
    """

    kind: str
    root: int
    shape: tuple[int, ...] = ()
    dtype: Any = None
    strides: tuple[int, ...] = ()
    nbytes: int = 0

    def alike(self, other: Seen) -> bool:
        """Whether two arrays have the same elements at the same places of their memory."""
        a, b = ((x.shape, x.strides, x.dtype) for x in (self, other))
        return a == b


@dataclass(frozen=True, slots=True)
class InArray:
    """An operand that is a NumPy scalar, and is put into an array for a ufunc."""

    number: int


@dataclass(frozen=True, slots=True)
class Form:
    """The code of a call. Its text has `{0}`, `{1}`, ... for `args`.

    into   the statements that write the result into the array `{to}`
    args   functions, operands and settings
    fresh  an expression for a new array with the result, if there is one
    reuse  the operands whose memory the result may overwrite
    """

    into: tuple[str, ...]
    args: tuple[Any, ...]
    fresh: str = ""
    reuse: tuple[Any, ...] = ()


class Forms:
    """The forms of the calls of a program, from the properties of its values."""

    def __init__(self, program: Program, facts: dict[int, Seen], backend: Any) -> None:
        self.program, self.facts = program, facts
        self.backend = backend  # the functions that the backend implements itself

    def of(self, call: Call, function: Any) -> Form | None:
        """The form of a call with the raw function `function`, or None if it has none."""
        name = call.op.name
        if call.op.outputs != () or is_on_numbers(self.program, call):
            return None
        operator = call.op.operator and on_numbers(call.op)
        if function is operator and name != "pow":  # which calls a ufunc
            return self.ufunc(getattr(np, name), *call.args)
        if function is np.matmul:
            return _calling(function, *call.args)
        if function is np.where:
            return _where(self, call)
        if isinstance(function, np.ufunc):
            fits = function.signature is None and function.nout == 1
            return self.ufunc(function, *call.args) if fits else None
        if name in ("zeros_like", "ones_like") and self.is_usual(call, function):
            return Form((f"{{to}}.fill({int(name == 'ones_like')})",), ())
        x = call.args[0]
        mine = name in FORMS and self.backend.get(name) is function
        return FORMS[name](self, call) if mine and type(x) is Ref and self.dtype(x) else None

    def is_usual(self, call: Call, function: Any) -> bool:
        """Whether a function is that of NumPy or of this backend, and none that replaces it."""
        library = str(getattr(function, "__module__", "")).partition(".")[0]
        usual = "numpy", "array_api_compat", "_operator"
        return library in usual or self.backend.get(call.op.name) is function

    def dtype(self, x: Ref | InArray) -> Any:
        return self.facts[x.number].dtype

    def has(self, x: Any, dtype: Any) -> bool:
        """Whether an operand of a form is an array or a scalar of this dtype."""
        found = self.dtype(x) if type(x) in (Ref, InArray) else getattr(x, "dtype", None)
        return found is not None and bool(found == dtype)  # NumPy takes None for float64

    def common(self, args: Sequence[Any]) -> Any:
        """The dtype of arrays that are combined, or None if there is none."""
        dtypes = {self.dtype(x) for x in args if type(x) is Ref} - {None}
        return dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes) if dtypes else None

    def operand(self, x: Any, dtype: Any) -> Any:
        """An operand that a ufunc in `dtype` need not convert, if that does not change it."""
        if type(x) is Ref:
            if self.facts[x.number].kind != "scalar":
                return x
            constant = self.program.constants.get(x.number)
            return InArray(x.number) if constant is None else np.asarray(constant)
        constant = _constant(x, dtype)
        return x if constant is None else constant

    def ufunc(self, function: Any, *args: Any) -> Form | None:
        """A call of an elementwise ufunc with one output."""
        for x in args:
            if not (_plain(x) if type(x) is not Ref else self.facts[x.number].kind != "other"):
                return None
        dtype = self.common(args)
        return _calling(function, *[self.operand(x, dtype) for x in args], reuse=tuple(args))


def _calling(function: Any, *args: Any, reuse: tuple[Any, ...] = ()) -> Form:
    """A form that is a call, whose last argument is the array for the result."""
    texts = ", ".join(f"{{{i}}}" for i in range(1, len(args) + 1))
    # a positional third argument is deprecated there
    out = "out=" if function in (np.maximum, np.minimum) else ""
    return Form((f"{{0}}({texts}, {out}{{to}})",), (function, *args), f"{{0}}({texts})", reuse)


def _plain(x: Any) -> bool:
    return type(x) in (bool, int, float, complex)


def _constant(x: Any, dtype: Any) -> Any:
    """The 0-d array that a ufunc on arrays of `dtype` makes of the number `x`.

    It is None if the ufunc may make another one.
    """
    kind = type(x)
    if dtype is None or dtype.kind not in "iufc" or kind not in (int, float, complex):
        return None
    if dtype.kind in "iu" and not (kind is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max):
        return None
    if kind is complex and dtype.kind == "f":
        dtype = np.result_type(dtype, x)
    with np.errstate(all="ignore"):
        out = np.asarray(x, dtype)
    if dtype.kind in "fc" and bool(np.isfinite(out)) != bool(np.isfinite(x)):
        return None  # it overflows, and must warn
    out.setflags(write=False)
    return out


# ----- Forms of functions -----

Maker = Callable[[Forms, Call], Form | None]
_ADD = np.add.reduce


def _reduction(reduce: Any) -> Maker:
    def form(f: Forms, call: Call) -> Form | None:
        settings = dict(zip(call.op.roles, call.args, strict=True))
        x = settings["x"]
        if f.dtype(x) == np.float16:  # the backend has its own way
            return None
        args = reduce, x, settings["axis"], settings.get("dtype"), settings["keepdims"]
        return Form(("{0}({1}, {2}, {3}, {to}, {4})",), args, "{0}({1}, {2}, {3}, None, {4})")

    return form


def _mean(f: Forms, call: Call) -> Form | None:
    x, axis, keepdims = call.args
    seen, out = f.facts[x.number], f.facts[call.outs[0]]
    if seen.dtype.kind != "f" or seen.dtype == np.float16 or not prod(out.shape):
        return None
    number = prod(seen.shape) // prod(out.shape)
    if out.kind != "array":
        return Form((), (_ADD, x, axis, keepdims, number), "{0}({1}, {2}, None, None, {3}) / {4}")
    into = "{0}({1}, {2}, None, {to}, {3})", "{4}({to}, {5}, {to})"
    return Form(into, (_ADD, x, axis, keepdims, np.divide, f.operand(number, seen.dtype)))


def _where(f: Forms, call: Call) -> Form | None:
    condition, *choices = call.args
    dtype = f.facts[call.outs[0]].dtype
    x1, x2 = (f.operand(x, dtype) for x in choices)
    if not (f.has(condition, np.bool_) and f.has(x1, dtype) and f.has(x2, dtype)):
        return None
    into = "{to}[...] = {3}", "{4}({to}, {2}, 'same_kind', {1})"
    args = np.where, condition, x1, x2, np.copyto
    return Form(into, args, "{0}({1}, {2}, {3})", (choices[1],))


def _clip(f: Forms, call: Call) -> Form | None:
    x, *limits = call.args
    dtype = f.dtype(x)
    if dtype.kind != "f" or f.facts[x.number].shape != f.facts[call.outs[0]].shape:
        return None
    if not all(type(b) is float or f.has(b, dtype) for b in limits):
        return None
    args = np.maximum, np.minimum, *(f.operand(b, dtype) for b in call.args)
    into = "{0}({2}, {3}, out={to})", "{1}({to}, {4}, out={to})"
    reuse = () if x in limits else (x,)  # the first statement overwrites it
    return Form(into, args, "{1}({0}({2}, {3}), {4})", reuse)


def _astype(f: Forms, call: Call) -> Form | None:
    x = call.args[0]
    before, after = f.facts[x.number], f.facts[call.outs[0]]
    kinds = before.dtype.kind, after.dtype.kind
    warns = kinds[0] == "c" != kinds[1] or (kinds[0] in "fc" and kinds[1] in "iu")
    if before.kind != "array" or warns:
        return None
    return Form(("{to}[...] = {0}",), (x, after.dtype), "{0}.astype({1})")


def _pow(f: Forms, call: Call) -> Form | None:
    x, by = call.args
    dtype = f.dtype(x)
    if type(by) is Ref and by.number in f.program.constants:
        constant = f.program.constants[by.number]
        if constant.ndim == 0 and constant.dtype == dtype and dtype.kind == "f":
            by = constant.item()
    if type(by) not in (int, float) or dtype.kind not in "fc" or by in (0, 1):
        return None
    function = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}.get(by)
    if function is not None:
        return f.ufunc(function, x)
    if by in (3, 4) and dtype.itemsize > 2:
        args = np.multiply, f.operand(x, dtype), np.square
        if dtype.kind == "c":  # the second statement would write over its operand
            return None
        if by == 3:
            return Form(("{0}({1}, {1}, {to})", "{0}({to}, {1}, {to})"), args)
        return Form(("{0}({1}, {1}, {to})", "{2}({to}, {to})"), args, "", (x,))
    return f.ufunc(np.power, x, by)


def _basic(key: Any) -> bool:
    return all(
        type(k) in (int, slice) or k is None or k is Ellipsis
        for k in (key if type(key) is tuple else (key,))
    )


def _unindex(f: Forms, call: Call) -> Form | None:
    values, key, _ = call.args
    if not _basic(key) or type(values) is not Ref:
        return None
    seen = f.facts[values.number]
    if seen.kind == "array" and seen.nbytes == f.facts[call.outs[0]].nbytes:
        return Form(("{to}[{1}] = {0}",), (values, key))  # all of it is written
    return Form(("{to}.fill(0)", "{to}[{1}] = {0}"), (values, key))


def _setitem(f: Forms, call: Call) -> Form | None:
    x, key, value = call.args
    seen = f.facts[x.number]
    if seen.kind != "array" or not _basic(key) or not (_plain(value) or type(value) is Ref):
        return None
    entries = key if type(key) is tuple else (key,)
    ndim = len(seen.shape) - sum(type(k) is int for k in entries) + sum(k is None for k in entries)
    # NumPy takes no value with more axes than the part
    if type(value) is Ref and len(f.facts[value.number].shape) > ndim:
        return None
    return Form(("{to}[...] = {0}", "{to}[{1}] = {2}"), (x, key, value), "", (x,))


def _scaled(f: Forms, call: Call) -> Form | None:
    return f.ufunc(np.multiply, call.args[0], call.args[1].value)


FORMS: dict[str, Maker] = {
    "astype": _astype,
    "clip": _clip,
    "mean": _mean,
    "max": _reduction(np.maximum.reduce),
    "min": _reduction(np.minimum.reduce),
    "pow": _pow,
    "prod": _reduction(np.multiply.reduce),
    "scaled": _scaled,
    "setitem": _setitem,
    "sum": _reduction(np.add.reduce),
    "unindex": _unindex,
}
"""Forms of functions that the NumPy backend implements itself."""
