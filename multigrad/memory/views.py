"""Writes to memory: which are allowed, how they are carried out and recorded, how views follow.

Array objects on one memory share a version cell. A write through a view changes that memory: the
buffer is written if arrays are mutable, otherwise the root of the memory gets a new array. If the
write is recorded, the root of the history gets the node CopySlices, whose parents are its former
node and that of the value. Every other view of the memory finds at its next use that it is older
than the last write. It then takes its array from its base, and its node as well if the base has a
history.

So there is no list of the views of a memory; a view knows its base, and how it was made from it.
core/aliasing.py describes views.
"""

from __future__ import annotations

from typing import Any

from .. import locks, observe
from ..core.aliasing import (
    Location,
    Part,
    ViewSpec,
    climb,
    laid_out,
    last_change,
    note_write,
    note_written_copy,
)
from ..core.computed import mark
from ..core.graph import (
    AccumulateGrad,
    HookedNode,
    Node,
    NodeHooks,
    backward_name,
    extra,
    note_change,
)
from ..core.level import Layer, innermost, leaves_effect, running
from ..core.tensor import Tensor, View, detached, element_of, peeled
from ..dispatch import general as dispatch
from ..dispatch.general import accepts, general, is_basic_key, recording_at, run_raw
from ..errors import GradientError
from ..observe import gate
from ..registry import OPS, Op
from .old_values import before_write

# Which writes are allowed


AMBIGUOUS = (
    "A view was created in no_grad mode and {} modified inplace with grad mode enabled. Given "
    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)
SEVERAL = (
    "{output} is a view and {{}} modified inplace. This view is the output of a function that "
    "returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one."
)
CUSTOM = (
    "{output} is a view and {{}} modified inplace. This view was created inside a custom "
    "Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning "
    "the output of the custom Function."
)
IN_PLACE = (
    " Write to it in `with multigrad.no_grad():`, as an update of parameters does, or "
    "compute a new one: y = x + v instead of x += v, y = x.clone() before y[0] = v."
)
ARGUMENT = (
    " It is an argument of a function that is being differentiated: copy it first, "
    "x = x.clone(), and write to the copy."
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."


REFERS = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
OUTSIDE = (
    "{}: a value of a running transformation cannot be written into an array from outside of "
    "it, nor into what is computed from such arrays alone. Write into one that is made inside, "
    "as by zeros(), or choose with where()."
)


def permit(t: Any, place: Location, recording: bool, others: bool, key: Any = Ellipsis) -> bool:
    """Whether to record a write to `t`, or to `t[key]`; raises if PyTorch does.

    others  whether the value has a history
    """
    if t._elem.run is None and running() is not None:
        leaves_effect("a write in place")
    if not recording:
        return False
    owner = place.owner
    if t._view is None or t._view[1] is None:
        if type(t._node) is AccumulateGrad:
            raise _of_leaf(t, _is_part(t, key))
        return others or t._node is not None
    if not (others or t._node is not None or (owner._node is not None and t._elem.floating)):
        return False
    if place.unrecordable is not None:
        raise GradientError(_refusal(place.unrecordable).format("is being"))  # type: ignore[union-attr]
    if type(owner._node) is AccumulateGrad or (t._node is not None and owner._node is None):
        raise _of_leaf(owner, True)
    return True


def _of_leaf(t: Any, part: bool) -> GradientError:
    """The error at a write to a leaf, or to a part of it."""
    return GradientError(
        ("a view of " if part else "") + LEAF + (ARGUMENT if is_argument(t) else IN_PLACE)
    )


def is_argument(t: Any) -> bool:
    """Whether the leaf `t` is an argument that a running transformation differentiates."""
    run = t._elem.run
    return run is not None and t._node in run.inputs


def _is_part(t: Any, key: Any) -> bool:
    """Whether PyTorch makes a view of `t` to write to `t[key]`."""
    if not is_basic_key(key):
        return False
    entries = key if type(key) is tuple else (key,)
    whole = (Ellipsis, slice(None))
    return any(
        k not in whole and not (type(k) is slice and k.indices(n) == (0, n, 1))
        for k, n in zip(entries, (*t.shape, *entries), strict=False)
    )


def _refusal(t: Any) -> str | None:
    """Why the history of a view cannot follow a write; a message with a placeholder."""
    _, op, _, output, recorded = t._view
    if recorded is None:
        return CUSTOM.format(output=_output(t, op, 0))
    if output is not None:
        return SEVERAL.format(output=_output(t, op, output))
    return None if recorded else AMBIGUOUS


def _output(t: Any, op: Op, number: int) -> str:
    node = t._node
    name = (
        node.name()
        if node is not None
        else "Unstack"
        if t._view[3] is not None
        else backward_name(op.name)
    )
    return f"Output {number} of {name.removesuffix('Backward')}"


def inside_function(t: Any) -> None:
    """Note that a view was made inside an autograd.Function: its history cannot follow writes."""
    if is_part(t):
        t._view = *t._view[:4], None


def is_part(t: Any) -> bool:
    """Whether `t` is a view whose history is part of the history of its base."""
    return t._view is not None and t._view[1] is not None


def fitted(t: Any, value: Any, name: str) -> Any:
    """The result of an operation as a new value of `t`: of its level, shape and dtype."""
    if getattr(value, "_elem", None) is not t._elem:
        value = peeled(value, t._level)
        if getattr(value, "_level", 0) > t._level:
            raise GradientError(OUTSIDE.format(name))
        value = t._of_level(value)
    if tuple(value.shape) != tuple(t.shape):
        raise RuntimeError(
            f"output with shape {list(t.shape)} doesn't match the broadcast shape "
            f"{list(value.shape)}. A Tensor written in place keeps its shape: write y = x + v "
            "instead of x += v."
        )
    return value if value._elem.base is t._elem.base else cast(t, value)


RANK: dict[type | None, int] = {None: 0, bool: 0, int: 1, float: 2, complex: 3}
"""The rank of a kind of dtypes, by `Element.scalar`; each can hold those of a lower rank."""


def check_value(t: Tensor, value: Any, recording: bool) -> None:
    """Raise if the value is not an array, or if `t` cannot hold its kind.

    For example, fractions cannot be written into integers, nor complex numbers into reals.
    """
    base, elem = t._elem.base, None
    rank = RANK.get(type(value))
    if rank is None:
        if value is None or not accepts(value):
            raise TypeError(
                "setitem: the value must be an array or a Python scalar, not "
                f"{type(value).__name__}"
            )
        elem = element_of(value)
        if elem is base:
            return
        has_history = isinstance(value, Tensor) and value._node is not None
        if has_history and recording and not base.floating:
            raise GradientError(
                "setitem: a value that requires grad cannot be written into a Tensor of dtype "
                f"{t.dtype}; detach() it"
            )
        rank = RANK[elem.scalar]
    if rank > RANK[base.scalar] and not base.opaque:
        what = (
            f"setitem: a Python {type(value).__name__}"
            if elem is None
            else f"result type {elem.dtype}"
        )
        raise _unfit(what, t)


def cast(t: Any, value: Any) -> Any:
    """A value in the dtype of `t`, which must be able to hold it."""
    elem, library = value._elem, t._elem.library
    if RANK[elem.scalar] > RANK[t._elem.scalar] or elem.library is not library:
        raise _unfit(f"result type {value.dtype}", t)
    return library.bound.astype(value, t.dtype)


def _unfit(what: str, t: Any) -> RuntimeError:
    return RuntimeError(
        f"{what} can't be cast to the desired output type {t.dtype}. A Tensor written in place "
        "keeps its dtype: convert the value with xp.astype(), or compute a new array."
    )


# Writing to memory


_replacing = locks.new_lock()
"""Held while the root of a memory gets a new array or node.

Several threads may write views of disjoint parts.
"""


def write(t: Any, place: Location, part: Part, array: Any, value: Any, name: str) -> Any:
    """Write `value` into the memory of `t`, at the end of the steps `part`, where `array` is shown.

    Returns the array that is shown there afterwards.
    """
    if place.repeats and place.overlaps(part):
        raise RuntimeError(f"{name}: {REFERS}")
    library = t._elem.library
    shown = place.holds(array) and not isinstance(value, Layer)
    if shown:
        try:
            return library.write(library.xp, array, value)
        except ValueError as error:
            if not part:
                raise unwritable(t, name, error) from error
    with _replacing:
        replaced = _replace(place.memory, part, value, name)
    if shown:
        return array
    return laid_out(replaced, array) if part and isinstance(replaced, Layer) else replaced


def _replace(root: Any, part: Part, value: Any, name: str) -> Any:
    """Write `value` into the root of a memory. Returns the array that the part shows."""
    library = root._elem.library
    new = value
    if part:
        inner = (root._array, value, part)
        layered = isinstance(root._array, Layer) or isinstance(value, Layer)
        op = OPS["copy_slices"]
        new = general(op, inner) if layered else run_raw(op, inner, library)
    if not isinstance(root._array, library.fixed) and not isinstance(new, Layer):
        try:  # if the target is a copy, a scalar of the library, or read-only
            root._array = library.write(library.xp, root._array, new)
        except ValueError as error:
            raise unwritable(root, name, error) from error
    else:
        if not library.mutable:
            # raises if the write is not allowed
            placed = library.write(library.xp, innermost(root), innermost(new))
            new = new if isinstance(new, Layer) else placed
            if type(root._node) is AccumulateGrad:
                keepable(root, new)
        root._put(laid_out(new, root._array) if isinstance(new, Layer) else new)
    return value if part else root._array


def keepable(holder: Tensor, value: Any) -> None:
    """Raise if `holder` or its .grad must not keep `value`.

    For example, a Tensor from outside of a trace must not keep a tracer; `take_ownership` of
    immutable libraries checks that.
    """
    library = holder._elem.library
    x = innermost(value)
    if not library.mutable and not isinstance(x, Layer):
        library.take_ownership(library.xp, x, innermost(holder))


def unwritable(t: Any, name: str, error: ValueError) -> RuntimeError:
    """The error if the library refuses a write: to repeated elements, or read-only memory."""
    strides = getattr(t._array, "strides", None) or ()
    if any(step == 0 and n > 1 for step, n in zip(strides, t.shape, strict=False)):
        return RuntimeError(f"{name}: {REFERS}")
    return RuntimeError(
        f"{name}: the memory of this Tensor is read-only ({error}), as that of np.frombuffer or "
        "of another library may be. Write into a copy: clone(), or asarray(x, copy=True)."
    )


def make_room(t: Any, place: Location, value: Any = None) -> None:
    """Prepare a write to the memory of `t`, after which nodes still have the values they saved.

    value  what is written, if it may be a view of that memory, as Python has one for `t[a:b] += v`

    Inside of a transformation the memory moves to a copy if anything else may hold its array: a
    node of any level, or the program. So no node must be found, a value is copied once, and the
    memory of the caller is not written. At the base level, nodes are found by the version cell,
    inside of `allow_mutation_on_saved_tensors` (see old_values.py).
    """
    root = place.memory
    if root._elem.run is None:
        if gate.get() is not True:
            before_write(t._cell)
        return
    library = root._elem.library
    line = [t] if t is root else climb(t)
    holders = line
    if type(value) is View and value._cell is t._cell:
        holders = [x for x in climb(value) if not any(x is y for y in line)] + line
    if library.unshared(library.xp, [x._array for x in holders]) or isinstance(
        root._array, library.fixed
    ):
        return
    # before the memory moves: an interrupt in between leaves views that are renewed in vain
    note_change(root._cell, counted=False)
    root._array = laid_out(library.xp.asarray(root._array, copy=True), root._array)
    for x in reversed(line[:-1]):
        base, op = x._view[:2]
        x._array = base._array if op is None else shown(base, x._view)
        x._seen = last_change(x._cell)


def written(t: Any, place: Location | None = None, seen: bool = True) -> None:
    """Count a write to the memory of `t`.

    seen  whether the array and history of `t` are up to date

    After a write through `x.data` views are brought up to date, but saved values remain valid.
    """
    data = None if t._view is None else (place or Location(t)).data
    if data is None:
        moves = isinstance(t, Tensor) and t._elem.run is not None  # see make_room
        (note_written_copy if moves else note_write)(t._cell)
    else:
        data._writes += 1
        note_change(t._cell, counted=False)
    if seen and t._view is not None:
        t._seen = last_change(t._cell)


# Recording


def rebase(t: Any, value: Tensor, place: Location | None = None) -> None:
    """Record that the view `t` was given `value`. Its node is made again at its next use."""
    place = place or Location(t)
    record(place, place.owner_part, value, value._array, value._node, value._cell)
    t._seen = -1
    if type(t._node) is HookedNode:  # it may retain a gradient, but not that of the old value
        t._check()


def record(
    place: Location, own: Part, value: Any, array: Any, node: Node | None, cell: list[int]
) -> None:
    """Record that a part of the owner of the history was given `value`.

    own    the steps from the owner to the part
    array  the array of the value, `node` and `cell` its node and version cell
    """
    owner = place.owner
    op = OPS["copy_slices"]
    with _replacing:
        old = owner._node
        needs = old is not None, node is not None
        inner, edges = (owner._array, array, own), (old, node)
        cells = owner._cell, cell, None
        dispatch.attach(op, needs, inner, edges, cells, owner._array, [owner])
    if type(old) is not Node:
        move_retained(old, owner._node)
    observe.node(owner._node, (owner, value, own), owner)


def move_retained(old: Node | None, new: Node) -> None:
    """Move retain_grad from the node of the old value to that of the new one."""
    hooks = getattr(old, "extra", None)
    if isinstance(hooks, NodeHooks) and hooks.retain is not None:
        extra(new).retain, hooks.retain = hooks.retain, None


# Bringing views up to date


def renew(t: Any) -> bool:
    """Bring a view up to date whose base is. Returns whether its history is, too."""
    base, op = t._view[:2]
    if base._cell is not t._cell:  # the base was given other memory
        pass
    elif op is None:
        t._put(detached(base._array))
    else:
        t._put(shown(base, t._view))
        if base._node is not None and base._node.hidden:
            mark(t)
        elif base._node is not None and t._elem.floating:
            # its bases allow it, otherwise they would not be up to date
            why = _refusal(t)
            if why is not None:
                if recording_at(t):
                    raise GradientError(why.format("its base or another view of its base has been"))
                return False
            record_view(t)
        elif type(t._node) is not AccumulateGrad:
            t._node = None
    t._seen = last_change(t._cell)
    return True


def shown(base: Any, view: ViewSpec) -> Any:
    """The part of the array of `base` that a view shows."""
    _, op, args, output, _ = view
    assert op is not None
    inner = (base._array, *args)
    if isinstance(base._array, Layer):
        out = general(op, inner)
    else:
        library = base._elem.library
        out = library.eagerly(library.xp, base._array, lambda: run_raw(op, inner, library))
    return out if output is None or op.outputs == () else out[output]


def record_view(t: Any) -> None:
    """Give a view the node that it would have if it were made now; none if its base has none."""
    base, op, args, _, _ = t._view
    if base._node is None:
        t._node = None
        return
    old = t._node
    edges = base._node, *(None,) * (len(op.arrays) - 1)
    cells = base._cell, *(None,) * len(args)
    needs = dispatch.needs_of(edges)
    dispatch.attach(op, needs, (base._array, *args), edges, cells, t._array, [t])
    move_retained(old, t._node)
    observe.node(t._node, (base, *args), t)


def same_place(value: Any, t: Tensor, key: Any) -> bool:
    """Whether `value` in `t[key] = value` is that view itself, as Python writes it after `+=`."""
    base, op, args, _, recorded = value._view
    if base is not t or op is None or op.name != "getitem" or not recorded:
        return False
    # of a namedtuple, the tuple is kept
    if args[0] is not key and not (
        isinstance(key, tuple) and is_basic_key(tuple(key)) and args[0] == key
    ):
        return False
    return _same_history(value, t)


def same_view(value: Any, part: Any) -> bool:
    """Whether `value` was made as the view `part` was, so that writing it changes nothing."""
    mine, other = getattr(value, "_view", None), part._view
    if (
        mine is None
        or other is None
        or mine[0] is not other[0]
        or mine[1] is None
        or mine[1:] != other[1:]
    ):
        return False
    return _same_history(value, part)


def _same_history(value: Any, t: Any) -> bool:
    value._check()
    t._check()
    return (value._node is None) == (t._node is None)


View._define("_renew", renew)
