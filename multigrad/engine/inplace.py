"""In-place operations: `+=` and its kin, `x[key] = value`, the twins such as `sin_()`.

The new value is computed, and recorded, by the ordinary operation; then it takes the place of the old one: the buffer is
written where arrays are mutable, replaced where they are not, the Tensor takes over the node, the version goes up. Where
nothing is recorded, a mutable array is changed directly. What a write through a view means for others is in views.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .. import observe
from ..errors import GradientError
from ..observe import WRITE, Call
from ..registry import Op
from . import accumulation
from .computed import following, mark
from .dispatch import accepts, apply_tensor, is_basic_key, recording_at
from .element import SCALARS, Element
from .graph import QUIET, AccumulateGrad, Node, flat_cells, last_write, tick
from .layout import history, in_memory, overlaps
from .level import Layer, innermost
from .tensor import Data, Tensor, View, element_of, peeled, wrap_at
from .views import LEAF, move_retained, part_of, rebase, refuse, write


def in_place(op: Op, function: Callable[..., Any], t: Tensor, others: tuple[Any, ...], direct: Callable[..., Any] | None = None,
             named: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Carry out `t = function(t, *others)` in the memory of `t`. `direct(array, *others)` does so on a raw mutable array.

    `named`: operands that the function gets by keyword.
    """
    told = observe.observers(WRITE)
    if told:
        call = Call(WRITE, op, f"{op.name}_", tuple(op.roles), (t, *others), named)
        return observe.around(told, call, lambda: _in_place(op, function, t, others, direct, named))
    return _in_place(op, function, t, others, direct, named)


def _in_place(op: Op, function: Callable[..., Any], t: Tensor, others: tuple[Any, ...], direct: Callable[..., Any] | None,
              named: Mapping[str, Any]) -> Any:
    if op.operator and not all(accepts(x) and x is not None for x in others):
        return NotImplemented
    recording = recording_at(t)
    has_history = any(map(_has_history, (*others, *named.values())))
    grads = _allow(t, recording, has_history)
    if has_history and not recording:
        _mark(t)
    if direct is not None and not grads and t._elem.run is None and t._elem.host.mutable:
        raw = _direct_operands(t, others)
        if raw is not None:
            try:
                t._array = direct(t._array, *raw)
            except (TypeError, ValueError):
                pass  # the checked way below says what is wrong
            else:
                written(t)
                return t
    result = function(t, *others)
    if result is NotImplemented:
        return result
    store(t, result, recording, op.name)
    return t


def _add_to_view(t: Tensor, g: Any) -> None:
    total = t._array + g
    accumulation.keepable(t, total)
    write(t, total, "backward")
    written(t)


accumulation._add_to_view = _add_to_view


def directly(t: Tensor, other: Tensor, direct: Callable[..., Any]) -> Tensor | None:
    """The update of a parameter, `w -= step`: plain Tensors of one element type, nothing recorded. None where it is not that simple."""
    host = t._elem.host
    array = t._array
    if not host.mutable or isinstance(array, host.scalars):
        return None
    try:
        t._array = direct(array, other._array)
    except (TypeError, ValueError):
        return None
    now = tick()
    t._cell.append(now)
    last_write[0] = now
    return t


def _direct_operands(t: Tensor, others: tuple[Any, ...]) -> list[Any] | None:
    """The raw operands, if a mutable array may be changed with them directly: same element type, or Python scalars."""
    if not _directly_writable(t):
        return None
    found = []
    for x in others:
        if type(x) is Tensor or type(x) is View:
            if x._elem is not t._elem:
                return None
            x._check()
            found.append(x._array)
        elif (type(x) is float or type(x) is int) and t._elem.floating:
            found.append(x)
        else:
            return None
    return found


def _directly_writable(t: Tensor) -> bool:
    return in_memory(t) and not overlaps(t)


def _has_history(x: Any) -> bool:
    if not isinstance(x, Tensor):
        return False
    if x._born is not None:
        x._check()
    return x._node is not None


def _mark(t: Any) -> None:
    """Inside the forward of a Function, note of the memory of `t` that what is written there was computed of its inputs."""
    while following.get() is not None:
        if t._node is None and t._elem.floating:
            mark(t)
        if t._born is None:
            return
        t = t._base


def _allow(t: Tensor, recording: bool, others: bool, key: Any = Ellipsis) -> bool:
    """Refuse what PyTorch refuses. Returns whether the write is to be recorded; `others`: some operand has a history."""
    if t._born is not None:
        t._check()
        if t._how is not None:
            return refuse(t, recording, others)
    if recording and type(t._node) is AccumulateGrad:
        raise GradientError(LEAF if _is_part(t, key) else "a leaf Variable that requires grad is being used in an in-place operation.")
    return recording and (others or t._node is not None)


def _is_part(t: Tensor, key: Any) -> bool:
    """Whether PyTorch makes a view of `t` to write to `t[key]`."""
    if not is_basic_key(key):
        return False
    entries = key if type(key) is tuple else (key,)
    whole = (Ellipsis, slice(None))
    return any(k not in whole and not (type(k) is slice and k.indices(n) == (0, n, 1)) for k, n in zip(entries, (*t.shape, *entries), strict=False))


def store(t: Tensor, result: Any, recording: bool, name: str) -> None:
    """Let `result` take the place of the value of `t`."""
    if isinstance(result, Tensor):
        result = peeled(result, t._level)
    if not isinstance(result, Tensor) or result._level != t._level:
        raise GradientError(f"{name}: a value of a running transformation cannot be written into an array from outside of it, nor into what is "
                            "computed from such arrays alone. Write into one that is made inside, as by zeros(), or choose with where().")
    if tuple(result.shape) != tuple(t.shape):
        raise RuntimeError(f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if recording:
        _keep_old_value(t, result)
    if result._elem.base is not t._elem.base:
        result = _cast(t, result)
    write(t, result._array, name)
    if t._how is not None:
        _store_view(t, result, recording)
    elif recording and result._node is not None and result is not t:
        _take_over(t, result)
    else:
        if recording and result is not t:
            t._node = None  # of an operation without a gradient, as floor_divide, the result is a constant
        written(t)


def _store_view(t: Tensor, result: Tensor, recording: bool) -> None:
    written(t)
    if not recording:
        return
    node = result._node
    if node is not None and result is not t:
        node.cells = _replaced(node.cells, result._cell, t._cell)
        node.seq = tick()
    if node is not None or history(t)[0]._node is not None:
        rebase(t, result)


def touch(t: Tensor, value: Tensor) -> None:
    """`t[key] = value` where `value` is what stands there, as at the end of `t[key] += other`: one more version, but no later a write."""
    _allow(t, recording_at(t), value._node is not None)
    t._cell.append(t._cell[-1] if t._cell else 0)


def written(t: Tensor) -> None:
    """Count a write to `t`, whose own array is up to date."""
    if t._born is None:
        now = tick()
        t._cell.append(now)
        last_write[0] = now
        return
    x = t
    while x._born is not None and type(x) is not Data:
        x = x._base
    if type(x) is Data:
        x._writes += 1
        t._cell.insert(0, QUIET)  # views are to be brought up to date, but nothing that was saved is spoilt
    else:
        now = tick()
        t._cell.append(now)
        last_write[0] = now
    t._born = len(t._cell)  # type: ignore[misc]


def _rank(elem: Element) -> int:
    """The kind of a dtype: booleans, integers, real and complex numbers, in the order in which each holds those before."""
    return 3 if elem.complex else 2 if elem.floating else 0 if elem.bool or elem.opaque else 1


_SCALAR_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def _cast(t: Any, result: Any) -> Any:
    if _rank(result._elem) > _rank(t._elem) or result._elem.host is not t._elem.host:
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {t.dtype}")
    return t._elem.host.bound.astype(result, t.dtype)


def _take_over(t: Tensor, result: Tensor) -> None:
    """Move the node of `result` to `t`; where it saved its own output, that is now the memory of `t`."""
    node = result._node
    assert node is not None
    node.cells = _replaced(node.cells, result._cell, t._cell)
    if type(t._node) is not Node:
        move_retained(t._node, node)
    t._node = node
    written(t)
    node.seq = tick()  # it saw the memory as it is after this write


def _keep_old_value(t: Tensor, result: Tensor) -> None:
    """If the rule needs values that this write spoils, `t` itself or views of it, let the node keep copies, as PyTorch does."""
    node = result._node
    if node is None or node.saved is None or not any(c is t._cell for c in flat_cells(node.cells)):
        return
    tracked = [i for i, source in enumerate(node.rule.sources) if source is not None]
    cells = [node.cells] if type(node.cells) is list else node.cells
    if t._elem.host.mutable and not isinstance(t._array, Layer):
        saved = list(node.saved)
        for i, nested in zip(tracked, cells, strict=False):  # the cells of index arrays follow; t is no index array
            if any(c is t._cell for c in flat_cells(nested)):
                saved[i] = _copied(saved[i], t._elem.host.xp)
        node.saved = tuple(saved)
    node.cells = _replaced(node.cells, t._cell, [])


def _copied(value: Any, xp: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_copied(v, xp) for v in value)
    return xp.asarray(value, copy=True)


def _replaced(cells: Any, old: list[int], new: list[int]) -> Any:
    if cells is old:
        return new
    return tuple(_replaced(c, old, new) for c in cells) if type(cells) is tuple else cells


DIRECT: dict[str, Callable[..., Any]] = {
    stem: getattr(operator, f"i{stem}") for stem in
    ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
}


def set_item(op: Op, function: Callable[..., Any], t: Tensor, key: Any, value: Any) -> None:
    """`t[key] = value`."""
    observe.call(WRITE, op, op.name, tuple(op.roles), (t, key, value), lambda: _set_item(op, function, t, key, value), of=t)


def _set_item(op: Op, function: Callable[..., Any], t: Tensor, key: Any, value: Any) -> None:
    others = False
    if isinstance(value, Tensor):
        value = peeled(value, t._level)
        others = _has_history(value)
    recording = recording_at(t)
    grads = _allow(t, recording, others, key)
    _check_value(t, value, recording)
    if others and not recording:
        _mark(t)
    inner = isinstance(value, Layer) and value._level > t._level  # which store refuses, as it does what such a key selects
    if type(key) is not slice and type(key) is not int:
        inner = inner or any(_is_inner(peeled(k, t._level), t) for k in (key if type(key) is tuple else (key,)))
    if t._elem.run is None and not inner and not grads and _directly_writable(t):
        raw = raw_key(value)
        if not hasattr(raw, "dtype") or element_of(raw).host is t._elem.host:
            try:
                t._array[raw_key(key)] = raw
            except (IndexError, TypeError, ValueError):
                pass  # the checked way below says what is wrong, or can do it
            else:
                written(t)
                return
    if not inner and is_basic_key(key) and (fitting := _fitting(t, key, value)) is not None:
        part, value = fitting
        write(part, value._array, "setitem")
        written(part)
        if recording and (value._node is not None or history(part)[0]._node is not None):
            rebase(part, value)
        return
    if grads and not inner and type(t) is Tensor and t._elem.run is None and in_memory(t) and _write_items(op, t, key, value):
        return
    store(t, function(t, key, value), recording, "setitem")


def _is_inner(x: Any, t: Tensor) -> bool:
    """Whether `x` is of a transformation that runs inside of the level of `t`."""
    return isinstance(x, Layer) and x._level > t._level


def _write_items(op: Op, t: Tensor, key: Any, value: Any) -> bool:
    """Write to the places that arrays name, in memory, and record what `setitem` would. Returns whether the library can."""
    try:
        result = apply_tensor(op, (t, key, value), t, _assign)
    except (IndexError, TypeError, ValueError):
        return False
    _take_over(t, result)
    return True


def _assign(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _fitting(t: Tensor, key: Any, value: Any) -> tuple[Tensor, Tensor] | None:
    """The view `t[key]`, unrecorded, and `value` in its shape and dtype. None where that cannot be: the library says better why."""
    host = t._elem.host
    try:
        part = part_of(t, key)
        if type(value) in SCALARS:
            value = wrap_at(t, host.xp.asarray(value, dtype=t.dtype, device=t.device))
        elif element_of(value).host is not host:
            return None
        elif not isinstance(value, Tensor) or value._level != t._level:
            value = wrap_at(t, value)
        value._check()
        shape, given = tuple(part.shape), tuple(value.shape)
        if given != shape:
            extra = len(given) - len(shape)
            if extra > 0 and given[:extra] == (1,) * extra:
                value = host.bound.reshape(value, given[extra:])
            value = host.bound.broadcast_to(value, shape)
        return part, value if value._elem.base is t._elem.base else host.bound.astype(value, t.dtype)
    except (IndexError, TypeError, ValueError):
        return None


def _check_value(t: Tensor, value: Any, recording: bool) -> None:
    """Refuse what is no value, and what would lose its kind: a fraction written into integers, a complex number into reals."""
    own, elem = t._elem.base, None
    rank = _SCALAR_RANK.get(type(value))
    if rank is None:
        if value is None or not accepts(value):
            raise TypeError(f"setitem: the value must be an array or a Python scalar, not {type(value).__name__}")
        elem = element_of(value)
        if elem is own:
            return
        if isinstance(value, Tensor) and value._node is not None and recording and not own.floating:
            raise GradientError(f"setitem: a value that requires grad cannot be written into a Tensor of dtype {t.dtype}; detach() it")
        rank = _rank(elem)
    if rank > _rank(own) and not own.opaque:
        what = f"setitem: a Python {type(value).__name__}" if elem is None else f"result type {elem.dtype}"
        raise RuntimeError(f"{what} can't be cast to the desired output type {t.dtype}")


def raw_key(key: Any) -> Any:
    """An indexing key with the raw arrays of its Tensors."""
    if type(key) is tuple:
        return tuple(raw_key(k) for k in key)
    if isinstance(key, Tensor):
        key._check()
    return innermost(key)
