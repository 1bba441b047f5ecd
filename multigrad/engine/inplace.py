"""In-place operations: `+=` and its kin, `x[key] = value`, the twins such as `sin_()`.

The new value is computed, and recorded, by the ordinary operation; then it takes the place of the old one: the buffer is
written where arrays are mutable, replaced where they are not, the Tensor takes over the node, the version goes up. Where
nothing is recorded, a mutable array is changed directly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import GradientError
from ..registry import Op
from .backward import keepable
from .dispatch import accepts, innermost, recording_at
from .element import Element
from .graph import AccumulateGrad, Extra, extra, flat_cells, last_write, tick
from .level import Layer
from .tensor import LayeredTensor, Tensor, View, element_of


def in_place(op: Op, function: Callable[..., Any], t: Tensor, others: tuple[Any, ...], direct: Callable[..., Any] | None = None) -> Any:
    """Carry out `t = function(t, *others)` in the memory of `t`. `direct(array, *others)` does so on a raw mutable array."""
    if op.operator and not all(accepts(x) and x is not None for x in others):
        return NotImplemented
    recording = recording_at(t)
    grads = recording and (t._node is not None or any(isinstance(x, Tensor) and x._node is not None for x in others))
    _allow(t, recording, grads, op.name)
    if direct is not None and not grads and type(t) is not LayeredTensor and t._elem.host.mutable:
        raw = _direct_operands(t, others)
        if raw is not None:
            try:
                t._array = direct(t._array, *raw)
            except (TypeError, ValueError):
                pass  # the checked way below says what is wrong
            else:
                _written(t)
                return t
    result = function(t, *others)
    if result is NotImplemented:
        return result
    store(t, result, recording, op.name)
    return t


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
    return None if isinstance(t._array, t._elem.host.scalars) else found


def _allow(t: Tensor, recording: bool, grads: bool, name: str) -> None:
    """Refuse what PyTorch refuses, and writes through views that would have to be recorded."""
    t._check()
    if recording and type(t._node) is AccumulateGrad:
        what = "a view of a leaf Variable" if name == "setitem" else "a leaf Variable"
        raise GradientError(f"{what} that requires grad is being used in an in-place operation.")
    if type(t) is View and not t._detached:
        root: Tensor = t
        while isinstance(root, View):
            root = root._base
        if recording and type(root._node) is AccumulateGrad:
            raise GradientError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        recorded = grads or (recording and root._node is not None)
        if not recorded and t._elem.host.mutable and not isinstance(t._array, t._elem.host.scalars):
            return  # the memory shows it, and no history has to
        raise GradientError(f"{name}: writing through a view is not supported yet, because its base (shape {tuple(root.shape)}) and their "
                            "histories would have to follow. Write base[key] = base[key] + value instead of base[key] += value, "
                            "or work on a clone() of the view.")
    if type(t) is LayeredTensor and t._born is not None:
        raise GradientError(f"{name}: writing through a view is not supported inside a transformation. Write base[key] = base[key] + value instead "
                            "of base[key] += value, or work on a clone() of the view.")


def store(t: Tensor, result: Any, recording: bool, name: str) -> None:
    """Let `result` take the place of the value of `t`."""
    if not isinstance(result, Tensor) or result._level > t._level:
        raise GradientError(f"{name}: a value of a running transformation cannot be written into an array from outside of it")
    if tuple(result.shape) != tuple(t.shape):
        raise RuntimeError(f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if recording:
        _keep_old_value(t, result)
    if result._elem is not t._elem:
        result = _cast(t, result)
    array = result._array
    host = t._elem.host
    if host.mutable and not isinstance(array, Layer) and not isinstance(t._array, Layer):
        array = _write(t, array, name)
    elif not host.mutable:
        keepable(t, array)
    t._array = array
    if type(t) is View and t._detached:
        _refuse_view_base(t._base, name)
        t._base._array = array
    if recording and result._node is not None and result is not t:
        _take_over(t, result)
    else:
        if recording and result is not t:
            t._node = None  # of an operation without a gradient, as floor_divide, the result is a constant
        _written(t)


def _write(t: Tensor, value: Any, name: str) -> Any:
    host = t._elem.host
    try:
        return host.write(host.xp, t._array, value)
    except ValueError as error:
        raise RuntimeError(f"{name}: unsupported operation: {error}. The memory is read-only, or more than one element of the written-to tensor "
                           "refers to a single memory location. Please clone() the tensor before performing the operation.") from error


def _refuse_view_base(base: Tensor, name: str) -> None:
    if base._born is not None and not base._elem.host.mutable:
        raise GradientError(f"{name}: writing through a detached view of a view is not supported on the backend {base._elem.host.name!r}, "
                            "whose arrays are immutable. Work on a clone() of it.")


def _written(t: Tensor) -> None:
    now = tick()
    t._cell.append(now)
    last_write[0] = now
    if t._born is not None:
        t._born = len(t._cell)  # type: ignore[misc]


def _rank(elem: Element) -> int:
    """The kind of a dtype: booleans, integers, real and complex numbers, in the order in which each holds those before."""
    return 3 if elem.complex else 2 if elem.floating else 0 if elem.bool or elem.opaque else 1


_SCALAR_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def _cast(t: Tensor, result: Tensor) -> Tensor:
    if _rank(result._elem) > _rank(t._elem) or result._elem.host is not t._elem.host:
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {t.dtype}")
    cast: Tensor = t._elem.host.bound.astype(result, t.dtype)
    return cast


def _take_over(t: Tensor, result: Tensor) -> None:
    """Move the node of `result` to `t`; where it saved its own output, that is now the memory of `t`."""
    node = result._node
    assert node is not None
    node.cells = _replaced(node.cells, result._cell, t._cell)
    old = t._node
    if old is not None and isinstance(getattr(old, "extra", None), Extra) and old.extra.retain is not None:
        extra(node).retain, old.extra.retain = old.extra.retain, None  # retain_grad follows the array
    t._node = node
    _written(t)
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
    recording = recording_at(t)
    grads = recording and (t._node is not None or (isinstance(value, Tensor) and value._node is not None))
    _allow(t, recording, grads, "setitem")
    _check_value(t, value, recording)
    plain = type(t) is not LayeredTensor and not (isinstance(value, Layer) and value._level > t._level)
    if plain and not grads and t._elem.host.mutable and not isinstance(t._array, t._elem.host.scalars):
        raw = raw_key(value)
        if not hasattr(raw, "dtype") or element_of(raw).host is t._elem.host:
            try:
                t._array[raw_key(key)] = raw
            except (IndexError, TypeError, ValueError):
                pass  # the checked way below says what is wrong, or can do it
            else:
                _written(t)
                return
    store(t, function(t, key, value), recording, "setitem")


def _check_value(t: Tensor, value: Any, recording: bool) -> None:
    """Refuse what is no value, and what would lose its kind: a fraction written into integers, a complex number into reals."""
    own, elem = t._elem, None
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
