"""Notes on errors of array libraries: the operation, its arguments, and how to correct the call.

This code runs only after an error was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from reprlib import Repr
from traceback import walk_tb
from typing import Any

from ..core.element import SCALARS, is_array
from ..errors import MultigradError
from ..plugins.installed import plugins
from ..registry import Op
from ..tracebacks import fold, instead_of

PREFIX = "multigrad."
SQUARE = "(..., M, M)"  # in About.arrays
_short = Repr()
_short.maxother = _short.maxstring = 60


def failed(error: Exception, op: Op, values: tuple[Any, ...], name: str = "") -> Exception | None:
    """Handle `error`, raised by an operation: fold its traceback, and note operation and arguments.

    Returns the error to raise instead, or None. `name` is that of the function that the program
    called, if it is not that of the operation.

    The note names the operation that the program called, and replaces notes of the operations that
    it consists of. multigrad's own errors, and errors of functions that the program passed in, get
    no note.
    """
    theirs = fold(error)
    name = name or op.name
    if (
        (theirs and not _in_its_package(error, op))
        or isinstance(error, MultigradError)
        or str(error).startswith(f"{name}() got an unexpected keyword")
    ):
        return None
    arguments = dict(zip(op.roles, values, strict=True))
    instead = instead_of(error, name)
    if instead is not None:
        blamed = _blamed(op, arguments, name)
        if blamed is not None:
            return blamed
    try:
        text = f"{PREFIX}{name}: {', '.join(_described(op, arguments))}"
        cure = _cure(op, arguments)
    except Exception:  # arguments that are not arrays may raise anything; the first error matters
        return instead
    # the message names the operation
    if not cure and str(error).startswith((f"{name}:", f"{name}(", f"{name} ")):
        return None
    before = [note for note in getattr(error, "__notes__", ()) if not note.startswith(PREFIX)]
    (instead or error).__notes__ = [*before, f"{text}. {cure}".rstrip()]
    return instead


def _in_its_package(error: Exception, op: Op) -> bool:
    """Whether the code of the plugin that declares an operation has raised an error."""
    package = op.module.partition(".")[0]
    return any(plugin.target.startswith(package) for plugin in plugins()) and any(
        str(frame.f_globals.get("__name__", "")).startswith(f"{package}.")
        for frame, _ in walk_tb(error.__traceback__)
    )


def _blamed(op: Op, arguments: dict[str, Any], name: str) -> TypeError | None:
    """The error to raise instead of an internal one, if an argument explains it."""
    for n, x in arguments.items():
        if x is None and op.signature.parameters[n].default is None:
            continue
        what = "an array" if op.roles[n] == "array" else "a dtype" if n == "type" else ""
        if what and not is_array(x):
            return TypeError(
                f"{name}: expected {what} for {n!r}, got {type(x).__name__}. "
                + (
                    "Wrap lists and scalars with multigrad.asarray."
                    if op.roles[n] == "array"
                    else "Pass one of the namespace, such as xp.float64, or its name."
                )
            )
    return None


def failed_rule(error: Exception, op: Op, arguments: dict[str, Any]) -> None:
    """Note on `error`, raised by a rule, the operation and the arguments of the rule.

    These are the cotangent `g` and the saved values.
    """
    if isinstance(error, MultigradError):
        return
    try:
        arrays = [
            f"{name} has shape {_shape(x)} and dtype {getattr(x, 'dtype', None)}"
            for name, x in arguments.items()
            if is_array(x)
        ]
        error.add_note(
            "In the derivative rule of "
            f"{PREFIX}{op.name}{': ' if arrays else ''}{', '.join(arrays)}."
        )
    except Exception:  # an argument of the rule is not an array after all
        return


def _described(op: Op, arguments: dict[str, Any]) -> Iterator[str]:
    """Arrays by shape and dtype, other arguments by value unless they are defaults."""
    for name, value in arguments.items():
        if _known(value):
            yield f"{name} has shape {_shape(value)} and dtype {getattr(value, 'dtype', None)}"
        elif op.roles[name] == "arrays" and type(value) in (tuple, list):
            yield f"{name} have shapes {', '.join(str(_shape(x)) for x in value)}"
        elif op.roles[name] == "array":
            yield f"{name}={_short.repr(value)} is a {type(value).__name__}"
        elif value is not op.signature.parameters[name].default:
            yield f"{name}={_short.repr(value)}"


def _known(x: Any) -> bool:
    try:
        return is_array(x)
    except MultigradError:  # a library's array of another kind, such as a matrix
        return False


def _shape(x: Any) -> Any:
    shape = getattr(x, "shape", () if type(x) in SCALARS else None)
    return tuple(shape) if isinstance(shape, (tuple, list)) else None


def _cure(op: Op, arguments: dict[str, Any]) -> str:
    """How to correct the call, if shapes show the error."""
    shapes = [
        _shape(x) for name, x in arguments.items() if op.roles[name] == "array" and x is not None
    ]
    if any(s is None or not all(type(n) is int for n in s) for s in shapes) or not shapes:
        return _of_list(op, arguments)
    own = _CURES.get(op.name, _of_square if SQUARE in op.about.arrays else None)
    text = own(shapes, arguments) if own is not None else ""
    if not text and op.batching == "elementwise" and not _broadcast(shapes):
        text = (
            "Shapes broadcast where their lengths, counted from the last axis, are equal or 1: "
            "reshape one of them, or give it an axis of length 1 with expand_dims()"
        )
    text = text or _axes(shapes[0], arguments)
    return f"{text}." if text else ""


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    most = max(map(len, shapes))
    padded = [(1,) * (most - len(s)) + s for s in shapes]
    return all(len({n for n in column if n != 1}) < 2 for column in zip(*padded, strict=True))


def _axes(shape: tuple[int, ...], arguments: dict[str, Any]) -> str:
    n = len(shape)
    for name in ("axis", "axes", "source", "destination", "axis1", "axis2"):
        value = arguments.get(name)
        axes: Any = value if type(value) in (tuple, list) else (value,)
        if any(type(a) is int and not -n <= a < n for a in axes):
            there = (
                f"the axes 0 to {n - 1}, or {-n} to -1 from the end"
                if n > 1
                else "one axis, 0 or -1"
                if n
                else "no axis"
            )
            return f"An array of shape {shape} has {there}"
    return ""


def _of_matmul(shapes: list[tuple[int, ...]], arguments: dict[str, Any]) -> str:
    x1, x2 = shapes
    if not x1 or not x2:
        return "Both must have an axis: multiply by a 0-d array or a number with *"
    if x1[-1] != x2[-2 if len(x2) > 1 else -1]:
        return (
            f"The last axis of x1, of length {x1[-1]}, must be as long as the "
            f"{'last but one' if len(x2) > 1 else 'only one'} of x2, of length "
            f"{x2[-2 if len(x2) > 1 else -1]}; x.mT transposes a matrix"
        )
    return "" if _broadcast([x1[:-2], x2[:-2]]) else "The axes before the last two must broadcast"


def _of_square(shapes: list[tuple[int, ...]], arguments: dict[str, Any]) -> str:
    last = shapes[0][-2:]
    return (
        ""
        if len(last) == 2 and last[0] == last[1]
        else "The last two axes of x must be those of a square matrix"
    )


def _of_setitem(shapes: list[tuple[int, ...]], arguments: dict[str, Any]) -> str:
    return (
        "The value must broadcast to the part that the key selects"
        if len(shapes) > 1 and shapes[-1]
        else _of_getitem(shapes, arguments)
    )


def _of_getitem(shapes: list[tuple[int, ...]], arguments: dict[str, Any]) -> str:
    """The error in an indexing key: integers out of bounds, too many entries, or not an index."""
    shape, key = shapes[0], arguments["key"]
    entries = key if type(key) is tuple else (key,)
    taken = [k for k in entries if k is not None and k is not Ellipsis]
    if any(isinstance(k, (str, float)) for k in entries):
        return "A key is made of integers, slices, ..., None, masks and integer arrays"
    if len(taken) > len(shape):
        return (
            f"An array of shape {shape} takes at most {len(shape)} "
            f"index{'es' * (len(shape) != 1)}; ... stands for the axes that are left out"
        )
    if not any(k is Ellipsis for k in entries):
        for axis, (k, n) in enumerate(zip(taken, shape, strict=False)):
            if type(k) is int and not -n <= k < n:
                return (
                    f"Axis {axis} of length {n} has the indexes 0 to {n - 1}, or {-n} to -1 "
                    "from the end"
                    if n
                    else f"Axis {axis} is empty"
                )
    return ""


_CURES: dict[str, Callable[[list[tuple[int, ...]], dict[str, Any]], str]] = {
    "getitem": _of_getitem,
    "setitem": _of_setitem,
    "matmul": _of_matmul,
    "linalg.matmul": _of_matmul,
    "reshape": lambda shapes, _: (
        f"The new shape must have {prod(shapes[0])} elements too; one of its lengths may be -1, "
        "which stands for what is left"
    ),
    "broadcast_to": lambda shapes, _: (
        f"Each length of {shapes[0]}, counted from the last axis, must be that of the new shape, "
        "or 1"
    ),
    "permute_dims": lambda shapes, _: f"axes must name each of the {len(shapes[0])} axes once",
}


def _of_list(op: Op, arguments: dict[str, Any]) -> str:
    if op.name not in ("stack", "concat"):
        return ""
    arrays = next(iter(arguments.values()))
    if type(arrays) not in (tuple, list):
        return ""
    shapes = [_shape(x) for x in arrays]
    if not shapes:
        return "Give it at least one array."
    if op.name == "stack" and len(set(shapes)) > 1:
        return "All must have the same shape; concat() joins arrays along an axis that they have."
    if op.name == "concat" and len({len(s) for s in shapes}) > 1:
        return "All must have as many axes; stack() joins arrays along a new axis."
    if op.name == "concat" and len(set(shapes)) > 1:
        return "The shapes must be the same but along the axis they are joined along."
    return f"{_axes(shapes[0], arguments)}.".lstrip(".")
