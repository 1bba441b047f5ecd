"""Forms: operations on NumPy arrays, written into a given array.

A form replaces only the backend's own function: if a plugin has replaced the function, that is
called. A form uses the same ufuncs on the same dtypes as the function, so that the results are
equal to the last bit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..program import Call, Ref
from .numpy_program_trial import Seen

UFUNCS: dict[Any, Any] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
    operator.neg: np.negative,
    operator.abs: np.absolute,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
}
"""The ufuncs of Python's operators on arrays."""

INFIX: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
}

VIEWS = frozenset(
    (
        "broadcast_to",
        "expand_dims",
        "flip",
        "getitem",
        "linalg.diagonal",
        "matrix_transpose",
        "moveaxis",
        "permute_dims",
        "real",
        "imag",
        "reshape",
        "squeeze",
    )
)
"""Operations whose view result depends on the memory of the argument alone, not on its contents."""


@dataclass(slots=True)
class Form:
    """The code of a call.

    into   given the name of an array, the statements that write the result into it
    fresh  an expression that makes a new array with the result; if "", `start` makes the array and
           `into` writes into it
    reuse  operands whose memory the result may overwrite
    start  the function that makes the new array if `fresh` is ""
    """

    into: Callable[[str], Sequence[str]]
    fresh: str = ""
    reuse: tuple[Any, ...] = ()
    start: str = "empty"


class Writer(Protocol):
    """The services that forms need from the code's writer."""

    facts: dict[int, Seen]

    def text(self, x: Any) -> str:
        """An argument as it is written in the code."""

    def const(self, x: Any, name: str = "k") -> str:
        """The name of an object."""

    def value(self, x: Any) -> Any:
        """The object of a constant, or None for another value."""

    def array(self, x: Any, dtype: Any) -> str:
        """An operand of a ufunc in `dtype`: an array of it, or a number that becomes one."""


def plain(x: Any) -> bool:
    return type(x) in (bool, int, float, complex)


def _dtypes(w: Writer, args: Sequence[Any]) -> list[Any]:
    return [
        w.facts[x.number].dtype
        for x in args
        if type(x) is Ref and w.facts[x.number].dtype is not None
    ]


def _common(w: Writer, args: Sequence[Any]) -> Any:
    dtypes = set(_dtypes(w, args))
    return dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes) if dtypes else None


def _operands(args: Sequence[Any]) -> bool:
    return all(type(x) is Ref or plain(x) for x in args)


def ufunc(w: Writer, call: Call, function: Any, args: Sequence[Any] | None = None) -> Form | None:
    """A call of an elementwise ufunc with one output."""
    args = call.args if args is None else args
    facts, dtype, mixed = w.facts, None, False
    for x in args:
        if type(x) is Ref:
            seen = facts[x.number]
            if seen.kind == "other":
                return None
            mixed = mixed or (
                dtype is not None
                and seen.dtype is not None
                and seen.dtype is not dtype
                and seen.dtype != dtype
            )
            dtype = dtype or seen.dtype
        elif not plain(x):
            return None
    if mixed:
        dtype = _common(w, args)
    texts = ", ".join(w.array(x, dtype) for x in args)
    name = w.const(function, function.__name__)
    # a positional third argument is deprecated there
    out = "out=" if function in (np.maximum, np.minimum) else ""
    return Form(lambda to: (f"{name}({texts}, {out}{to})",), f"{name}({texts})", tuple(args))


def _narrow(w: Writer, x: Any) -> bool:
    return bool(w.facts[x.number].dtype == np.float16)


def _reduction(function: Any) -> Callable[[Writer, Call], Form | None]:
    def form(w: Writer, call: Call) -> Form | None:
        given = dict(zip(call.op.roles, call.args, strict=True))
        x = given["x"]
        if _narrow(w, x):
            return None
        name = w.const(function, f"{function.__self__.__name__}_reduce")
        head = f"{name}({w.text(x)}, {w.text(given['axis'])}, {w.text(given.get('dtype'))}"
        return Form(
            lambda to: (f"{head}, {to}, {given['keepdims']})",),
            f"{head}, None, {given['keepdims']})",
        )

    return form


def _mean(w: Writer, call: Call) -> Form | None:
    x, axis, keepdims = call.args
    seen, out = w.facts[x.number], w.facts[call.outs[0]]
    if seen.dtype.kind != "f" or _narrow(w, x):
        return None
    axes = (
        tuple(range(len(seen.shape)))
        if axis is None
        else axis
        if isinstance(axis, tuple)
        else (axis,)
    )
    size, results = math.prod(seen.shape), math.prod(out.shape)
    number = size // results if results else math.prod(seen.shape[a] for a in axes)
    add, divide = w.const(np.add.reduce, "add_reduce"), w.const(np.divide, "divide")
    head, by = f"{add}({w.text(x)}, {w.text(axis)}, None", w.array(number, seen.dtype)
    if out.kind != "array":
        return Form(lambda to: (), f"{head}, None, {keepdims}) / {number}")
    return Form(lambda to: (f"{head}, {to}, {keepdims})", f"{divide}({to}, {by}, {to})"))


def _scan(function: Any) -> Callable[[Writer, Call], Form | None]:
    def form(w: Writer, call: Call) -> Form | None:
        x, axis, dtype, initial = call.args
        if _narrow(w, x) or initial or (axis is None and len(w.facts[x.number].shape) != 1):
            return None
        name = w.const(function.accumulate, f"{function.__name__}_accumulate")
        head = f"{name}({w.text(x)}, {axis or 0}, {w.text(dtype)}"
        return Form(lambda to: (f"{head}, {to})",), f"{head})")

    return form


def _matmul(w: Writer, call: Call) -> Form | None:
    name = w.const(np.matmul, "matmul")
    texts = ", ".join(map(w.text, call.args))
    return Form(lambda to: (f"{name}({texts}, {to})",), f"{name}({texts})")


def _all_of(w: Writer, call: Call, *args: Any) -> bool:
    """Whether all operands have the dtype of the result; numbers that become it count."""
    out = w.facts[call.outs[0]].dtype
    return _operands(args) and all(
        w.facts[x.number].dtype == out if type(x) is Ref else _becomes(x, out) for x in args
    )


def _becomes(x: Any, dtype: Any) -> bool:
    """Whether the number `x` converts to `dtype` without a change of kind."""
    kind = dtype.kind
    if type(x) is int and kind in "iu":
        return bool(np.iinfo(dtype).min <= x <= np.iinfo(dtype).max)
    return (type(x) in (int, float) and kind in "fc") or (type(x) is complex and kind == "c")


def _where(w: Writer, call: Call) -> Form | None:
    condition, x1, x2 = call.args
    if type(condition) is not Ref or w.facts[condition.number].dtype != np.bool_:
        return None
    dtype = w.facts[call.outs[0]].dtype
    if not _all_of(w, call, x1, x2):
        return None
    where = w.const(np.where, "where")
    c, a, b = w.text(condition), w.array(x1, dtype), w.array(x2, dtype)
    copyto = w.const(np.copyto, "copyto")

    def into(to: str) -> Sequence[str]:
        chosen = f"{copyto}({to}, {a}, 'same_kind', {c})"
        return (chosen,) if to == b else (f"{to}[...] = {b}", chosen)

    return Form(into, f"{where}({c}, {a}, {b})", (x2,))


def _astype(w: Writer, call: Call) -> Form | None:
    x = call.args[0]
    before, after = w.facts[x.number], w.facts[call.outs[0]]
    # this warns
    if before.kind != "array" or (before.dtype.kind == "c" and after.dtype.kind != "c"):
        return None
    dtype = w.const(after.dtype, str(after.dtype))
    # nan and numbers that are too large have their own warnings
    if before.dtype.kind in "fc" and after.dtype.kind in "iu":
        return None
    return Form(lambda to: (f"{to}[...] = {w.text(x)}",), f"{w.text(x)}.astype({dtype})")


def _pow(w: Writer, call: Call) -> Form | None:
    x, by = call.args
    constant = w.value(by)
    if (
        constant is not None
        and constant.ndim == 0
        and constant.dtype == w.facts[x.number].dtype
        and constant.dtype.kind == "f"
    ):
        by = constant.item()
    if type(by) not in (int, float):
        return None
    kind = w.facts[x.number].dtype.kind
    if kind in "fc":
        known = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}.get(by)
        if known is not None:
            return ufunc(w, call, known, (x,))
        if by in (3, 4) and w.facts[x.number].dtype.itemsize > 2:
            multiply, square, text = (
                w.const(np.multiply, "multiply"),
                w.const(np.square, "square"),
                w.text(x),
            )
            if by == 3:
                return Form(
                    lambda to: (
                        f"{multiply}({text}, {text}, {to})",
                        f"{multiply}({to}, {text}, {to})",
                    )
                )
            return Form(
                lambda to: (f"{multiply}({text}, {text}, {to})", f"{square}({to}, {to})"), "", (x,)
            )
        return ufunc(w, call, np.power, (x, by)) if by not in (0, 1) else None
    return None


def _clip(w: Writer, call: Call) -> Form | None:
    x, low, high = call.args
    dtype = w.facts[x.number].dtype
    if dtype.kind != "f" or not all(
        type(b) is float or (type(b) is Ref and w.facts[b.number].dtype == dtype)
        for b in (low, high)
    ):
        return None
    # either the larger one has the shape of the result, or there are two arrays
    if w.facts[x.number].shape != w.facts[call.outs[0]].shape:
        return None
    maximum, minimum = w.const(np.maximum, "maximum"), w.const(np.minimum, "minimum")
    a, b, c = (w.array(v, dtype) for v in (x, low, high))
    reuse = () if x in (low, high) else (x,)  # the first statement overwrites it
    return Form(
        lambda to: (f"{maximum}({a}, {b}, out={to})", f"{minimum}({to}, {c}, out={to})"),
        f"{minimum}({maximum}({a}, {b}), {c})",
        reuse,
    )


def _concat(w: Writer, call: Call) -> Form | None:
    arrays, axis = call.args
    if axis is None or not all(type(x) is Ref for x in arrays) or len(set(_dtypes(w, arrays))) != 1:
        return None
    name = w.const(np.concatenate, "concatenate")
    return Form(
        lambda to: (f"{name}({w.text(arrays)}, {axis}, {to})",), f"{name}({w.text(arrays)}, {axis})"
    )


def _stack(w: Writer, call: Call) -> Form | None:
    arrays, axis = call.args
    out = w.facts[call.outs[0]]
    if (
        type(axis) is not int
        or not all(type(x) is Ref for x in arrays)
        or set(_dtypes(w, arrays)) != {out.dtype}
    ):
        return None
    before = (slice(None),) * (axis % len(out.shape))
    return Form(
        lambda to: [f"{to}[{w.text((*before, i))}] = {w.text(x)}" for i, x in enumerate(arrays)]
    )


def _asarray(w: Writer, call: Call) -> Form | None:
    """A Python number that is converted to a 0-d array, to be combined with arrays."""
    x, (dtype, _, copy) = call.args[0], call.args[1:]
    out = w.facts[call.outs[0]]
    if (
        w.facts[x.number].kind != "number"
        or out.kind != "array"
        or dtype != out.dtype
        or out.dtype.kind not in "fc"
        or copy is not None
    ):
        return None
    return Form(
        lambda to: (f"{to}[()] = {w.text(x)}",),
        f"{w.const(np.array, 'array')}({w.text(x)}, {w.const(out.dtype, out.dtype.name)})",
    )


def _basic(key: Any) -> bool:
    return all(
        type(k) in (int, slice) or k is None or k is Ellipsis
        for k in (key if type(key) is tuple else (key,))
    )


def _unindex(w: Writer, call: Call) -> Form | None:
    values, key, _ = call.args
    if not _basic(key) or type(values) is not Ref:
        return None
    if (
        w.facts[values.number].kind == "array"
        and w.facts[values.number].nbytes == w.facts[call.outs[0]].nbytes
    ):
        return Form(lambda to: (f"{to}[{w.text(key)}] = {w.text(values)}",))  # all of it is written
    return Form(
        lambda to: (
            ([] if to.startswith("t") else [f"{to}.fill(0)"])
            + [f"{to}[{w.text(key)}] = {w.text(values)}"]
        ),
        start="zeros",
    )


def _setitem(w: Writer, call: Call) -> Form | None:
    x, key, value = call.args
    if (
        w.facts[x.number].kind != "array"
        or not _basic(key)
        or not (plain(value) or type(value) is Ref)
    ):
        return None
    entries = key if type(key) is tuple else (key,)
    ndim = (
        len(w.facts[x.number].shape)
        - sum(type(k) is int for k in entries)
        + sum(k is None for k in entries)
    )
    # NumPy takes no value with more axes than the part
    if type(value) is Ref and len(w.facts[value.number].shape) > ndim:
        return None
    text = w.text(x)

    def into(to: str) -> Sequence[str]:
        put = f"{to}[{w.text(key)}] = {w.text(value)}"
        return (put,) if to == text else (f"{to}[...] = {text}", put)

    return Form(into, "", (x,))


def _copied_reshape(w: Writer, call: Call) -> Form | None:
    """A reshape that must copy: the elements in row-major order."""
    x, out = call.args[0], w.facts[call.outs[0]]
    if w.facts[x.number].kind != "array" or call.args[2] is not None:
        return None
    shape = w.facts[x.number].shape
    return Form(
        lambda to: (f"{to}.reshape({shape})[...] = {w.text(x)}",),
        f"{w.text(x)}.reshape({out.shape})",
    )


def _relu(w: Writer, call: Call) -> Form | None:
    return (
        ufunc(w, call, np.maximum, (call.args[0], 0))
        if w.facts[call.args[0].number].dtype.kind == "f"
        else None
    )


def _scaled(w: Writer, call: Call) -> Form | None:
    return ufunc(w, call, np.multiply, (call.args[0], call.args[1].value))


def _sign(w: Writer, call: Call) -> Form | None:
    return ufunc(w, call, np.sign) if w.facts[call.args[0].number].dtype.kind != "c" else None


OWN: dict[str, Callable[[Writer, Call], Form | None]] = {
    "asarray": _asarray,
    "astype": _astype,
    "clip": _clip,
    "cumulative_prod": _scan(np.multiply),
    "cumulative_sum": _scan(np.add),
    "max": _reduction(np.maximum.reduce),
    "mean": _mean,
    "min": _reduction(np.minimum.reduce),
    "pow": _pow,
    "prod": _reduction(np.multiply.reduce),
    "relu": _relu,
    "reshape": _copied_reshape,
    "scaled": _scaled,
    "setitem": _setitem,
    "sign": _sign,
    "sum": _reduction(np.add.reduce),
    "unindex": _unindex,
}
"""Forms of functions that the NumPy backend implements itself."""

THEIRS: dict[str, tuple[Any, Callable[[Writer, Call], Form | None]]] = {
    "concat": (np.concatenate, _concat),
    "matmul": (np.matmul, _matmul),
    "stack": (np.stack, _stack),
    "where": (np.where, _where),
}
"""Forms of NumPy's functions."""


def form(w: Writer, call: Call, function: Any, own: Any) -> Form | None:
    """The form of a call with the raw function `function`; `own` are those of the backend."""
    name = call.op.name
    if function in UFUNCS:
        return ufunc(w, call, UFUNCS[function])
    if name in THEIRS:
        return THEIRS[name][1](w, call) if function is THEIRS[name][0] else None
    if isinstance(function, np.ufunc):
        return (
            ufunc(w, call, function) if function.signature is None and function.nout == 1 else None
        )
    return (
        OWN[name](w, call)
        if name in OWN and own.get(name) is function and type(call.args[0]) is Ref
        else None
    )
