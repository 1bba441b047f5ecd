"""Views: Tensors on the memory of another Tensor, under in-place operations.

Tensors on one memory share a version cell. A write through a view goes to that memory: into the buffer where arrays are mutable, else the
root of the memory gets a new array. If it is recorded, the root of the history gets the node CopySlices, of its own former node and of
the value's. Every other view of the memory finds, when it is used next, that it is older than the last write, takes its array from its
base anew and, if the base has a history, its node as well.

So there is no list of the views of a memory; a view knows its base, and how it was made of it.
"""

from __future__ import annotations

import threading
from typing import Any

from .. import observe
from ..errors import GradientError
from ..registry import OPS, Op
from . import dispatch, tensor
from .accumulation import keepable
from .computed import Computed, mark
from .dispatch import general, is_basic_key, recording_at, run_raw
from .graph import AccumulateGrad, Extra, HookedNode, Node, backward_name, extra
from .layout import history, in_memory, memory, overlaps, shortcut
from .level import Layer, innermost
from .tensor import Tensor, stopped


def refresh(t: Any) -> None:
    """Bring a view that is older than the last write to its memory up to date, its bases first."""
    chain = [t]
    _shorten(t)
    while (base := chain[-1]._base)._born is not None and base._cell is t._cell and base._born != len(t._cell):
        chain.append(base)
        _shorten(base)
    if base._cell is t._cell:
        base._check()
    for view in reversed(chain):
        if not _renew(view):
            return


def _shorten(t: Any) -> None:
    """Give the last view of a long chain another base that shows the same. One assignment, since other threads may look at it."""
    found = shortcut(t)
    if found is not None:
        base: Any = dispatch.wrap_like(found[0], t._base._array, *found)
        base._born = -1
        t._base = base


def _renew(t: Any) -> bool:
    """The same of one view, whose base is up to date. Returns whether its history is, too."""
    base, how = t._base, t._how
    if base._cell is not t._cell:  # which was given other memory
        pass
    elif how is None:
        t._put(stopped(base._array))
    else:
        t._put(shown(base, how))
        if type(base._node) is Computed:
            mark(t)
        elif base._node is not None and t._elem.floating:
            why = _refusal(t)  # of its bases nothing forbids it, or they would not have become up to date
            if why is not None:
                if recording_at(t):
                    raise GradientError(why.format("its base or another view of its base has been"))
                return False
            record_view(t)
        elif type(t._node) is not AccumulateGrad:
            t._node = None
    t._born = len(t._cell)
    return True


def shown(base: Any, how: Any) -> Any:
    """The array of a view that is made so of `base`."""
    op, args, number, _ = how
    inner = (base._array, *args)
    if isinstance(base._array, Layer):
        found = general(op, inner)
    else:
        host = base._elem.host
        found = host.at_once(host.xp, base._array, lambda: run_raw(op, inner, host))
    return found if number is None or op.outputs == () else found[number]


def record_view(t: Any) -> None:
    """Give a view the node that it would have, were it made now; none if its base has none."""
    base, (op, args, _, _) = t._base, t._how
    if base._node is None:
        t._node = None
        return
    old = t._node
    inner, rest = (base._array, *args), (None,) * len(args)
    dispatch._attach(op, dispatch.needs_of(op, (base._node, *rest)), inner, (base._node, *rest), (base._cell, *rest), t._array, [t])
    move_retained(old, t._node)
    observe.node(t._node, (base, *args), t)


def move_retained(old: Node | None, new: Node) -> None:
    """retain_grad follows the array."""
    kept = getattr(old, "extra", None)
    if isinstance(kept, Extra) and kept.retain is not None:
        extra(new).retain, kept.retain = kept.retain, None


AMBIGUOUS = ("A view was created in no_grad mode and {} modified inplace with grad mode enabled. Given that this use case is ambiguous and "
             "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the no_grad "
             "block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
SEVERAL = ("{output} is a view and {{}} modified inplace. This view is the output of a function that returns multiple views. Such functions do "
           "not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one.")
CUSTOM = ("{output} is a view and {{}} modified inplace. This view was created inside a custom Function (or because an input was returned "
          "as-is) and the autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
          "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.")
LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."


def _forbidden(t: Any) -> str | None:
    """Why the history of a view cannot follow a write, if it cannot: the message, with a place for what was written."""
    x = t
    while x._born is not None and x._how is not None:
        why = _refusal(x)
        if why is not None:
            return why
        x = x._base
    return None


def _refusal(t: Any) -> str | None:
    """The same, as far as it depends on how `t` was made of its base."""
    op, _, number, recorded = t._how
    if recorded is None:
        return CUSTOM.format(output=_output(t, op, 0))
    if number is not None:
        return SEVERAL.format(output=_output(t, op, number))
    return None if recorded else AMBIGUOUS


def _output(t: Any, op: Op, number: int) -> str:
    node = t._node
    name = node.name() if node is not None else "Unstack" if t._how[2] is not None else backward_name(op.name)
    return f"Output {number} of {name.removesuffix('Backward')}"


def refuse(t: Any, recording: bool, others: bool) -> bool:
    """Raise if a view must not be written to now. Returns whether the write is to be recorded; `others`: the value has a history."""
    if t._base._born is not None:
        _shorten(t)
    if not recording:
        return False
    root, _ = history(t)
    if not (others or t._node is not None or (root._node is not None and t._elem.floating)):
        return False
    why = _forbidden(t)
    if why is not None:
        raise GradientError(why.format("is being"))
    if type(root._node) is AccumulateGrad or (t._node is not None and root._node is None):
        raise GradientError(LEAF)
    return True


REFERS = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor "
          "before performing the operation.")


_replacing = threading.RLock()
"""Held while the root of a memory gets a new array, or a new node: views of disjoint parts may be written by several threads."""


def write(t: Any, value: Any, name: str) -> None:
    """Put `value`, of the shape and dtype of the Tensor `t`, into its memory. The array of `t` is the right one afterwards."""
    host = t._elem.host
    if overlaps(t):
        raise RuntimeError(f"{name}: {REFERS}")
    shown = in_memory(t) and not isinstance(value, Layer)
    if shown:
        try:
            t._array = host.write(host.xp, t._array, value)
        except ValueError as error:
            root, part = memory(t)
            if root is t or not part:
                raise unwritable(t, name, error) from error
        else:
            return
    with _replacing:
        found = _replace(t, value, name)
    if not shown:
        t._put(found)


def _replace(t: Any, value: Any, name: str) -> Any:
    """Put `value` into the root of the memory of `t`. Returns what `t` shows of it."""
    host = t._elem.host
    root, part = memory(t)
    new = value
    if part:
        inner = (root._array, value, part)
        layered = isinstance(root._array, Layer) or isinstance(value, Layer)
        new = general(OPS["copy_slices"], inner) if layered else run_raw(OPS["copy_slices"], inner, host)
    if in_memory(root) and not isinstance(new, Layer):  # `t` is a copy, or a scalar of the library, or marked read-only
        _write_all(root, new, name)
    else:
        if not host.mutable:
            placed = host.write(host.xp, innermost(root), innermost(new))  # raises where it must not
            new = new if isinstance(new, Layer) else placed
            if type(root._node) is AccumulateGrad:
                keepable(root, new)
        root._put(new)
    return value if part else root._array


def _write_all(root: Any, value: Any, name: str) -> None:
    host = root._elem.host
    try:
        root._array = host.write(host.xp, root._array, value)
    except ValueError as error:
        raise unwritable(root, name, error) from error


def unwritable(t: Any, name: str, error: ValueError) -> RuntimeError:
    """Why the library refuses to write to the array of `t`: one element stands at many places of it, or its memory is read-only."""
    strides = getattr(t._array, "strides", None) or ()
    if any(step == 0 and n > 1 for step, n in zip(strides, t.shape, strict=False)):
        return RuntimeError(f"{name}: {REFERS}")
    return RuntimeError(f"{name}: the memory of this Tensor is read-only ({error}), as that of np.frombuffer or of another library may be. "
                        "Write into a copy: clone(), or asarray(x, copy=True).")


def rebase(t: Any, value: Tensor) -> None:
    """Record that the view `t` was given the value of `value`. Its own node is made anew when it is used next."""
    root, part = history(t)
    op = OPS["copy_slices"]
    with _replacing:
        old = root._node
        edges = (old, value._node, None)
        inner = (root._array, value._array, part)
        dispatch._attach(op, dispatch.needs_of(op, edges), inner, edges, (root._cell, value._cell, None), root._array, [root])
    move_retained(old, root._node)
    observe.node(root._node, (root, value, part), root)
    t._born = -1
    if type(t._node) is HookedNode:  # which may retain a gradient, but not that of the old value
        t._check()


def part_of(t: Tensor, key: Any) -> Tensor:
    """The view `t[key]` by integers and slices, without a node."""
    op = OPS["getitem"]
    inner = (t._array, key)
    found = general(op, inner) if isinstance(t._array, Layer) else run_raw(op, inner, t._elem.host)
    return dispatch.wrap_like(t, found, t, (op, (key,), None, True))


def inside_function(t: Any) -> None:
    """Note of a view that it was made inside an autograd.Function: how its history follows a write is for nobody to know."""
    if t._how is not None:
        t._how = (*t._how[:3], None)


def same_place(value: Any, t: Tensor, key: Any) -> bool:
    """Whether `t[key] = value`, a view, writes what stands there: as Python does at the end of `t[key] += other`."""
    op, args, _, recorded = value._how
    if value._base is not t or op.name != "getitem" or not recorded:
        return False
    if args[0] is not key and not (isinstance(key, tuple) and is_basic_key(tuple(key)) and args[0] == key):  # of a namedtuple, the tuple is kept
        return False
    value._check()
    t._check()
    return (value._node is None) == (t._node is None)


def same_view(value: Any, part: Any) -> bool:
    """Whether `value` shows what the view `part` shows, made in the same way, so that writing it there would change nothing."""
    if getattr(value, "_how", None) is None or value._base is not part._base or value._how != part._how:
        return False
    value._check()
    return (value._node is None) == (part._node is None)


tensor._refresh = refresh
