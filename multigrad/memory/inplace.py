"""In-place operations: `+=` and the like, `x[key] = value`, and methods such as `sin_()`.

The ordinary operation computes and records the new value. Then the value replaces the old one: a
mutable array is written, an immutable one is exchanged. The Tensor takes over the node, and its
version increases. If nothing is recorded, a mutable array is changed directly. views.py defines how
a write through a view affects other views.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import observe
from ..core.aliasing import Location, climb, last_change, note_write
from ..core.computed import following, mark
from ..core.element import SCALARS
from ..core.graph import Node, note_change, tick
from ..core.level import Layer, innermost
from ..core.tensor import Tensor, View, element_of, peeled, wrap_at
from ..dispatch.general import accepts, apply_tensor, general, is_basic_key, recording_at
from ..observe import NOTHING, WRITE, gate
from ..registry import OPS, Op
from .old_values import Copies, before_write, keep_old, noted, without
from .views import (
    check_value,
    fitted,
    is_part,
    make_room,
    move_retained,
    permit,
    rebase,
    record,
    write,
    written,
)

Direct = Callable[..., Any] | None


def in_place(
    op: Op, function: Callable[..., Any], direct: Direct, t: Tensor, /, *others: Any, **named: Any
) -> Any:
    """Carry out `t = function(t, *others, **named)` in the memory of `t`.

    direct  `direct(array, *others)` does the same on a raw mutable array
    """
    mode = gate.get()
    if mode is True or (mode.watch.body is None and not mode.watch.of(WRITE)):
        return _in_place(op, function, direct, t, *others, **named)
    carried_out = partial(_in_place, op, function, direct)
    return observe.write(op, f"{op.name}_", (t, *others), named, carried_out)


def _in_place(
    op: Op, function: Callable[..., Any], direct: Direct, t: Tensor, /, *others: Any, **named: Any
) -> Any:
    if op.operator and not all(accepts(x) and x is not None for x in others):
        return NotImplemented
    recording = recording_at(t)
    has_history = any(map(_has_history, (*others, *named.values())))
    if t._view is not None and (t._seen != last_change(t._cell) or t._elem.layered):
        t._check()
    place = Location(t)
    recorded = permit(t, place, recording, has_history)
    if has_history and not recording:
        _mark(t)
    if direct is not None and not recorded and t._elem.run is None and place.holds(t._array):
        raw = _direct_operands(t, others)
        if raw is not None:
            if gate.get() is not True:
                before_write(t._cell)
            try:
                t._array = direct(t._array, *raw)
            except (TypeError, ValueError):
                pass  # the checked way below explains the error
            else:
                written(t, place)
                return t
    result = function(t, *others, **named)
    if result is NotImplemented:
        return result
    store(t, place, result, recording, op.name)
    return t


def directly(t: Tensor, other: Tensor, direct: Callable[..., Any]) -> Tensor | None:
    """Update a parameter, as in `w -= step`: plain Tensors of one element type, nothing recorded.

    Returns None if a general way is needed.
    """
    library = t._elem.library
    array = t._array
    if not library.mutable or isinstance(array, library.scalars):
        return None
    before_write(t._cell)
    try:
        t._array = direct(array, other._array)
    except (TypeError, ValueError):
        return None
    note_write(t._cell)
    return t


def _direct_operands(t: Tensor, others: tuple[Any, ...]) -> list[Any] | None:
    """The raw operands, if each is a Python scalar or of the same element type; else None."""
    arrays = []
    for x in others:
        if type(x) is Tensor or type(x) is View:
            if x._elem is not t._elem:
                return None
            x._check()
            arrays.append(x._array)
        elif (type(x) is float or type(x) is int) and t._elem.floating:
            arrays.append(x)
        else:
            return None
    return arrays


def _has_history(x: Any) -> bool:
    if not isinstance(x, Tensor):
        return False
    if x._view is not None:
        x._check()
    return x._node is not None


def _mark(t: Any) -> None:
    """Mark the memory of `t` as computed from the inputs, inside the forward of a Function."""
    if following.get() is not None:
        for x in climb(t):
            if x._node is None and x._elem.floating:
                mark(x)


def store(t: Tensor, place: Location, result: Any, recording: bool, name: str) -> None:
    """Replace the value of `t` by `result`."""
    if getattr(result, "_elem", None) is not t._elem:
        result = peeled(result, t._level)
    value = fitted(t, result, name)
    if recording and isinstance(result, Tensor) and t._elem.run is None:
        node = result._node
        if node is not None and node.saved is not None:
            # copies of values that its rule needs and this write destroys, as in PyTorch
            keep_old(node, t._cell, Copies())
    make_room(t, place)
    t._put(write(t, place, place.part, t._array, value._array, name))
    node = value._node if recording and value is not t else None
    if recording and is_part(t):
        written(t, place)
        if node is not None:
            _saved_there(node, value, t)
            node.seq = tick()
        if value._node is not None or place.owner._node is not None:
            rebase(t, value, place)
    elif node is not None:
        _take_over(t, place, value)
    else:
        if recording and value is not t:
            # the result of an operation without a gradient, as floor_divide, is a constant
            t._node = None
        written(t, place)


def touch(t: Tensor, value: Tensor) -> None:
    """Handle `t[key] = value` where `value` is that part itself.

    Python does this at the end of `t[key] += other`.

    The version increases, but no write is noted.
    """
    permit(t, Location(t), recording_at(t), value._node is not None)
    note_change(t._cell)


def _take_over(t: Tensor, place: Location, result: Tensor) -> None:
    """Move the node of `result` to `t`."""
    node = result._node
    assert node is not None
    _saved_there(node, result, t)
    if type(t._node) is not Node:
        move_retained(t._node, node)
    t._node = node
    written(t, place)
    node.seq = tick()  # its result is the memory after this write


def _saved_there(node: Node, result: Tensor, t: Tensor) -> None:
    """Note that an output which a node saved is the memory of `t` from now on."""
    node.cells = without(node.cells, result._cell, t._cell)
    if gate.get() is not True:
        noted(node)


DIRECT: dict[str, Callable[..., Any]] = {
    stem: getattr(operator, f"i{stem}")
    for stem in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
}


def set_item(op: Op, function: Callable[..., Any], t: Tensor, key: Any, value: Any) -> None:
    """Carry out `t[key] = value`."""
    mode = gate.get()
    if mode is True or mode.watch is NOTHING:
        _set_item(op, function, t, key, value)
    else:
        observe.write(op, op.name, (t, key, value), {}, partial(_set_item, op, function), of=t)


def _set_item(op: Op, function: Callable[..., Any], t: Tensor, key: Any, value: Any) -> None:
    """Carry out `t[key] = value` in the fastest of three ways.

    It writes to the array itself if nothing is recorded, else to the view `t[key]`, else it applies
    the operation `setitem`.
    """
    others = False
    if isinstance(value, Tensor):
        value = peeled(value, t._level)
        others = _has_history(value)
    recording = recording_at(t)
    if t._view is not None and (t._seen != last_change(t._cell) or t._elem.layered):
        t._check()
    place = Location(t)
    recorded = permit(t, place, recording, others, key)
    check_value(t, value, recording)
    if others and not recording:
        _mark(t)
    make_room(t, place, value)
    # `store` refuses such a value, and one that such a key selects
    inner = isinstance(value, Layer) and value._level > t._level
    if type(key) is not slice and type(key) is not int:
        keys = (peeled(k, t._level) for k in (key if type(key) is tuple else (key,)))
        inner = inner or any(isinstance(k, Layer) and k._level > t._level for k in keys)
    direct = not recorded and t._elem.run is None and place.holds(t._array)
    if not inner and direct and _assign_directly(t, key, value):
        written(t, place)
    elif not inner and is_basic_key(key) and _assign_part(t, place, key, value, recording):
        pass
    elif (
        inner
        or not recorded
        or type(t) is not Tensor
        or t._elem.run is not None
        or not place.holds(t._array)
        or not _assign_items(op, t, place, key, value)
    ):
        store(t, place, function(t, key, value), recording, "setitem")


def _assign_directly(t: Tensor, key: Any, value: Any) -> bool:
    """Assign to the library's array. Returns False if it refuses; a checked way then says why."""
    raw = raw_key(value)
    library = t._elem.library
    if hasattr(raw, "dtype") and element_of(raw).library is not library:
        return False
    try:
        library.assign(library.xp, t._array, raw_key(key), raw)
    except (IndexError, TypeError, ValueError):
        return False
    return True


def _assign_part(t: Tensor, place: Location, key: Any, value: Any, recording: bool) -> bool:
    """Write to the view `t[key]`. Returns False if the value does not fit; the library says why."""
    x = t._array
    try:
        shown = (
            general(OPS["getitem"], (x, key))
            if isinstance(x, Layer)
            else t._elem.library.xp.getitem(x, key)
        )
        array, node, cell = _as_part(t, value, shown)
    except (IndexError, TypeError, ValueError):
        return False
    step = "getitem", (key,), None
    write(t, place, (*place.part, step), shown, array, "setitem")
    written(t, place, seen=False)
    if recording and (node is not None or place.owner._node is not None):
        record(place, (*place.owner_part, step), value, array, node, cell)
    return True


def _assign_items(op: Op, t: Tensor, place: Location, key: Any, value: Any) -> bool:
    """Write to elements that index arrays select, and record it. Returns False if it fails."""
    try:
        before = wrap_at(t, t._array) if _is_overwritten(t, key, value) else t
        result = apply_tensor(op, (before, key, value), t, _assign)
    except (IndexError, TypeError, ValueError):
        return False
    _take_over(t, place, result)
    return True


def _is_overwritten(t: Tensor, key: Any, value: Any) -> bool:
    """Whether `t[key] = value` replaces all of `t`, by a mask, and `t` has infinities or nans.

    It is asked for a `value` with a history. The old values must then have no part in the gradient,
    where they would give nan.
    """
    mask = raw_key(key)
    if (
        not isinstance(value, Tensor)
        or value._node is None
        or value._level != t._level
        or not hasattr(mask, "dtype")
        or isinstance(mask, Layer)
        or isinstance(t._array, Layer)
        or tuple(mask.shape) != tuple(t.shape)
        or not element_of(mask).bool
    ):
        return False
    xp, truth = t._elem.library.xp, t._elem.library.backend.kernel("concrete_bool")
    # None if values are not known
    return truth(xp, xp.all(mask)) is True and truth(xp, xp.all(xp.isfinite(t._array))) is False


def _assign(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _as_part(t: Tensor, value: Any, shown: Any) -> tuple[Any, Node | None, list[int]]:
    """A value in the dtype and shape of a part of `t`, its node, its cell. Raises if it misfits."""
    elem = t._elem
    library = elem.library
    shape = tuple(shown.shape)
    if type(value) in SCALARS:
        device = library.device(library.xp, innermost(shown) if isinstance(shown, Layer) else shown)
        value = library.xp.asarray(value, dtype=elem.dtype, device=device)
        return (library.xp.broadcast_to(value, shape) if shape else value), None, []
    if element_of(value).library is not library:
        raise TypeError("an array of another library")
    if not isinstance(value, Tensor) or value._level != t._level:
        value = wrap_at(t, value)
    value._check()
    sizes = tuple(value._array.shape)
    if sizes != shape:
        extra = len(sizes) - len(shape)
        if extra > 0 and sizes[:extra] == (1,) * extra:
            value = library.bound.reshape(value, sizes[extra:])
        value = library.bound.broadcast_to(value, shape)
    if value._elem.base is not elem.base:
        value = library.bound.astype(value, elem.dtype)
    return value._array, value._node, value._cell


def raw_key(key: Any) -> Any:
    """An indexing key with the raw arrays of its Tensors."""
    if type(key) is tuple:
        return tuple(raw_key(k) for k in key)
    if isinstance(key, Tensor):
        key._check()
    return innermost(key)
