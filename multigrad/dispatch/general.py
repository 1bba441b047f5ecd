"""Run an operation: find the level that handles it, call the library, wrap and record the result.

`general` handles everything: the first call of each signature, from whose result a runner is
written (runners.py), what is rare, and errors. Argument values are passed as one tuple in the order
of the operation's signature, with defaults filled in.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from operator import is_
from typing import Any

from .. import observe, registry
from ..core import aliasing
from ..core.aliasing import WHOLE, Step
from ..core.computed import following, mark
from ..core.element import (
    SCALARS,
    Element,
    Library,
    by_type,
    common_library,
    is_array,
    library_of,
    mixed,
    named_dtype,
)
from ..core.graph import MultiNode, Node, tick
from ..core.level import Layer, Standing, highest
from ..core.pullback import Pullback
from ..core.tensor import (
    Tensor,
    View,
    checked,
    constant,
    lifted,
    strip,
    wrap,
    wrap_at,
    wrap_new,
)
from ..registry import Op, per_operation
from . import settings
from .codegen import call, is_flat, of_arrays, positions, raw_function, recorder
from .pullbacks import pullback


def general(op: Op, values: tuple[Any, ...]) -> Any:
    """Run `op` on any mixture of raw arrays, Python scalars and layers.

    A function that the caller got before an override runs the new declaration.
    """
    held, op = op, registry.OPS.get(op.name, op)
    if held is not op:
        _check_form(held, op)
    top = highest(values)
    if isinstance(top, Standing):
        values = standing(op, values)
        top = highest(values)
    operands, plain = _tested(op)
    for i in operands:
        if by_type.get(type(values[i])) is None and not isinstance(values[i], _OPERANDS):
            _check_operands(op, values)
            break
    for i, types in plain:
        if type(values[i]) not in types:
            settings.check(op, values)
            break
    if top is None:
        return wrap_result(op, run_raw(op, values))
    if op.kind == "composite":
        return composed(op, by_form(op, values, top))
    return type(top)._apply(op, values, top)


def by_form(op: Op, values: Sequence[Any], top: Any) -> Any:
    """The result of the standard-only form of an operation, on layers.

    The operators of the form must not be those of raw arrays, which may not defer to layers.
    """
    layers = [
        x if role == "plain" else lifted(tuple(x) if role == "arrays" else x)
        for role, x in zip(op.roles.values(), values, strict=True)
    ]
    return resolve_composite(op)(top._elem.library.bound, *layers)


_OPERANDS = (Layer, int, float, complex)


@per_operation
def _tested(op: Op) -> tuple[tuple[int, ...], tuple[tuple[int, frozenset[type]], ...]]:
    """The positions of operands, and those of settings with their usual types."""
    names = list(op.roles)
    operands = () if op.about.any_operands else op.arrays
    return (
        tuple(map(names.index, operands)),
        tuple((names.index(n), kind.types) for n, kind in settings.kinds(op).items()),
    )


def _check_operands(op: Op, values: Sequence[Any]) -> None:
    """Raise TypeError for an operand that is neither an array nor a Python scalar, beside an array.

    NumPy makes arrays of strings, None and tuples, which have neither a gradient nor a version. The
    form of a composite decides itself which objects other than None it takes.
    """
    for (name, role), value in zip(op.roles.items(), values, strict=True):
        if role == "plain" or (value is None and op.signature.parameters[name].default is None):
            continue
        for x in value if role == "arrays" else (value,):
            if x is not None and (op.kind == "composite" or accepts(x)):
                continue
            if any(map(is_array, candidates(op, values))):
                kind = f"{type(x).__module__}.{type(x).__qualname__}"
                raise TypeError(
                    f"{op.name}: expected an array, a Tensor or a Python scalar for {name!r}, got "
                    f"{kind}. Wrap lists with multigrad.asarray; `python -m multigrad backends` "
                    "lists the known libraries."
                )


def composed(op: Op, result: Any) -> Any:
    """The result of the form of a composite, as its function returns it."""
    # a raw operand, unchanged
    if op.outputs == () and not isinstance(result, Layer) and is_array(result):
        return wrap(result)
    return named(op, result)


def _check_form(held: Op, op: Op) -> None:
    """Raise if an override has other parameters than `held`, a function obtained before it.

    Such a function passes its arguments and defaults in the order of its own signature.
    """
    if registry.call_form(held) != registry.call_form(op):
        raise TypeError(
            f"{op.name}: this function is from before the operation was declared anew. It takes "
            f"{held.signature}; now it is {registry.signature_text(op)}. Get the function from "
            "its namespace again."
        )


def named(op: Op, result: Any) -> Any:
    """Several outputs as a named tuple, if the declaration names them."""
    if not op.outputs or type(result) is not tuple:
        return result
    return result_type(op.name, op.outputs)(*result)


@cache
def result_type(name: str, outputs: tuple[str, ...]) -> Any:
    """The named tuple of an operation with several outputs."""
    return namedtuple(f"{name.rpartition('.')[2]}_result", outputs)


@per_operation
def resolve_composite(op: Op) -> Callable[..., Any]:
    """The standard-only form of a composite operation."""
    from ..backends.raw import resolve

    forward = op.forward["*"] if isinstance(op.forward, dict) else op.forward
    function: Callable[..., Any] = resolve(forward)
    return function


def standing(op: Op, values: Sequence[Any]) -> tuple[Any, ...]:
    """The values with each Standing replaced by an operand or a scalar."""
    beside = [
        x
        for role, value in zip(op.roles.values(), values, strict=True)
        if role != "plain"
        for x in (value if role == "arrays" else (value,))
        if x is not None and not isinstance(x, Standing) and is_array(x)
    ]
    if op.name == "where":
        beside = [x for x in beside if x is not values[0]]

    def instead(role: str, x: Any) -> Any:
        if type(x) is tuple or type(x) is list:
            return tuple([instead(role, y) for y in x])
        return (
            x
            if not isinstance(x, Standing)
            else x._plain()
            if role == "plain"
            else x._as_operand(op, beside)
        )

    return tuple([instead(role, x) for role, x in zip(op.roles.values(), values, strict=True)])


def arrays_of(op: Op, name: str, value: Any) -> Any:
    """The list of arrays in the argument `name`.

    For a list or tuple of any class these are its elements, for an array its rows.
    """
    if isinstance(value, (list, tuple)) or is_array(value):
        return tuple(value)
    if value is None and op.signature.parameters[name].default is None:
        return None
    raise TypeError(
        f"{op.name}: expected a list or a tuple of arrays, got {type(value).__name__}. Pass "
        f"list({name})."
    )


def candidates(op: Op, values: Sequence[Any]) -> Iterator[Any]:
    """Every value that may be an array: arguments, elements of lists, entries of a key."""
    for role, value in zip(op.roles.values(), values, strict=True):
        if role == "arrays" or type(value) is tuple:
            yield from value
        else:
            yield value


def run_raw(op: Op, values: Sequence[Any], library: Library | None = None) -> Any:
    """Call the library's function on raw arrays."""
    if library is None:
        library = common_library(op.name, list(candidates(op, values)))
        if library is None:
            operands = [
                v
                for (name, role), v in zip(op.roles.items(), values, strict=True)
                if role != "plain"
                and (v is not None or op.signature.parameters[name].default is not None)
            ]
            kinds = ", ".join(sorted({type(v).__name__ for v in operands}))
            raise TypeError(
                f"{op.name}: none of the arguments is an array of a known library ({kinds}). "
                "Wrap lists and scalars with multigrad.asarray; `python -m multigrad backends` "
                "lists the known libraries."
            )
    # The operators of Python's complex numbers would take np.float64 for a float, and return a
    # number of Python.
    if complex in map(type, values) and any(
        isinstance(v, float) and isinstance(v, library.scalars) for v in values
    ):
        values = [library.xp.asarray(v) if type(v) is complex else v for v in values]
    return call(op, raw_function(library, op.name), with_dtype(op, values, library))


def with_dtype(op: Op, values: Sequence[Any], library: Library) -> Sequence[Any]:
    """The values of all parameters, with the library's dtype object for its name."""
    i = positions(op).get("dtype")
    return (
        values
        if i is None or type(values[i]) is not str
        else [*values[:i], named_dtype(library, values[i]), *values[i + 1 :]]
    )


def apply_tensor(
    op: Op, values: tuple[Any, ...], top: Tensor, function: Callable[..., Any] | None = None
) -> Any:
    """Run `op` on arguments whose highest level is that of the Tensor `top`.

    Raw arrays are passed to `function`, if that is given.
    """
    if top._elem.run is not None and (mode := observe.gate.get()) is not True:
        mode.looked(values)
    inner, own = lowered(op, values, top, constant)
    nodes = for_each(lambda x: None if x is None else x._node, of_arrays(op, own))
    # a constant of a lower level may be written, too
    cells = for_each(lambda x: x._cell if isinstance(x, Layer) else None, values)
    ans, inner, _ = carried_out(op, values, inner, top, function)
    return record(op, inner, nodes, cells, ans, top, values)


def lowered(
    op: Op, values: Sequence[Any], top: Any, constant: Callable[[Any], Any] = strip
) -> tuple[Any, list[Any]]:
    """The next inner values of all parameters, and the operands of the level of `top`.

    Both have a tuple for a list or a tuple. The place of any other operand is None among those of
    the level.

    constant  what an operand of a lower level becomes
    """
    library, level = top._elem.library, top._level

    def part(x: Any) -> tuple[Any, Any]:
        if not isinstance(x, Layer):
            return x, None
        if x._elem.library is not library:
            raise mixed(op.name, library, x._elem.library)
        if x._level != level:
            return constant(x), None
        x._check()
        return x._array, x

    inner: list[Any] = []
    own: list[Any] = []
    for role, value in zip(op.roles.values(), values, strict=True):
        if role == "arrays" or type(value) is tuple or isinstance(value, list):
            parts = [part(x) for x in value]
            x: Any = tuple([x for x, _ in parts])
            # y[key] += v recognizes the key by its identity
            inner.append(value if type(value) is tuple and all(map(is_, x, value)) else x)
            own.append(tuple([layer for _, layer in parts]))
        else:
            x, layer = part(value)
            inner.append(x)
            own.append(layer)
    return inner, own


def for_each(function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """The results of a function for all values, those of lists and tuples as tuples."""
    return [
        tuple([function(y) for y in x]) if type(x) is tuple or type(x) is list else function(x)
        for x in values
    ]


def carried_out(
    op: Op,
    values: Sequence[Any],
    inner: Sequence[Any],
    top: Any,
    function: Callable[..., Any] | None = None,
) -> tuple[Any, Sequence[Any], Library]:
    """Run `op` on the next inner values of `values`, whose highest level is that of `top`.

    Raw arrays are passed to `function`, if that is given. Returns the result, the inner values in
    the form that was used, and their library.
    """
    library: Library = top._elem.library
    if any(isinstance(x, Layer) for x in candidates(op, inner)):
        return general(op, tuple(map(outer, values, inner))), inner, library
    # a NumPy scalar in a Tensor may be beside arrays of another library
    library = common_library(op.name, candidates(op, inner)) or library
    inner = [
        plain_scalars(x, library) if role == "array" else x
        for role, x in zip(op.roles.values(), inner, strict=True)
    ]
    inner = with_dtype(op, inner, library)
    return run_raw(op, inner, library) if function is None else function(*inner), inner, library


def outer(x: Any, value: Any) -> Any:
    """`x` itself if it is a constant Tensor of the base level, else `value`, which was taken of it.

    It is passed on if another value is a layer: nodes further in then take its version cell. Tuples
    are handled element by element.
    """
    if type(value) is tuple and isinstance(x, tuple | list):
        parts = tuple(map(outer, x, value))
        return value if all(map(is_, parts, value)) else parts
    return x if isinstance(x, Tensor) and x._elem.run is None and x._node is None else value


def accepts(x: Any) -> bool:
    """Whether `x` is allowed as an array.

    Layers, raw arrays of a known library, Python scalars and their replacements, and None are.
    """
    return (
        isinstance(x, (Layer, Standing))
        or x is None
        or type(x) in SCALARS
        or library_of(x) is not None
    )


def operate(op: Op, values: tuple[Any, ...]) -> Any:
    """Run `general` for Python's operators.

    For an operand that is not an array, NotImplemented lets the operand handle the operation; `@`
    does not take numbers.
    """
    for x in values:
        if (
            not accepts(x)
            or x is None
            or (op.kind == "multilinear" and (type(x) in SCALARS or isinstance(x, Standing)))
        ):
            return NotImplemented
    return general(op, values)


def plain_scalars(x: Any, library: Library) -> Any:
    """A scalar of another library (np.float64) as a Python scalar; raises for other objects."""
    if type(x) in SCALARS or x is None:
        return x
    other = library_of(x)
    if other is None:
        raise TypeError(
            "expected an array, a Tensor or a Python scalar, got "
            f"{type(x).__module__}.{type(x).__qualname__}. Wrap lists with multigrad.asarray."
        )
    scalar: Any = x
    return scalar.item() if other is not library and isinstance(x, other.scalars) else x


def record(
    op: Op,
    inner: Sequence[Any],
    nodes: Sequence[Any],
    cells: Sequence[Any],
    ans: Any,
    top: Tensor,
    values: Sequence[Any],
) -> Any:
    """Wrap the output(s) of `op` in Tensors of `top`'s level.

    They get a node if a gradient may flow to an argument. `nodes` has one for each array parameter.
    """
    differentiable = op.kind != "nondifferentiable"
    mode: Any = differentiable and mode_at(top)
    forward = None if mode else following.get()
    needs = needs_of(nodes) if mode or (forward is not None and differentiable) else None
    outs = tuple(ans) if op.outputs != () else (ans,)
    if op.outputs == () and not is_array(ans):
        if not mode or needs is None:
            return ans
        raise TypeError(
            f"{op.name}: the backend {top._elem.library.name!r} returned {type(ans).__name__}, "
            "which is none of its arrays, so the gradient would be lost. Its function must return "
            "an array."
        )
    tensors = [
        wrap_like(top, x, base, step) if is_array(x) else x
        for x, (base, step) in zip(outs, bases(op, values, inner, outs, top), strict=True)
    ]
    result = regrouped(op, ans, tensors)
    if needs is None:
        return result
    if not mode:  # inside the forward of a Function
        for t in [] if is_flat(op) else tensors:
            if isinstance(t, Tensor) and t._elem.floating and t._node is None:
                mark(t)
    elif op.outputs == () and tensors[0]._elem.opaque:
        raise TypeError(
            f"{op.name}: the result has dtype {tensors[0].dtype}, which is none of the standard's, "
            "so the gradient would be lost. Convert the operand first, or detach() the argument "
            "that requires grad."
        )
    elif any(isinstance(t, Tensor) and t._elem.floating for t in tensors):
        node = attach(op, needs, inner, nodes, cells, ans, tensors)
        if mode is not True:
            mode.recorded(node, tuple(values), result)
    return result


def regrouped(op: Op, ans: Any, outs: list[Any]) -> Any:
    """The layers `outs` in the form of what was returned one level below, `ans`."""
    return named(op, same_structure(ans, outs)) if op.outputs != () else outs[0]


def bases(
    op: Op, values: Sequence[Any], inner: Sequence[Any], outs: Sequence[Any], top: Layer
) -> Sequence[tuple[Any, Step]]:
    """The base of each output that is a view, and how the view was made.

    The base is the first argument; for a list, broadcast, it is the element at the output's index.
    One part of unstack is made by indexing, without the others. Of Tensors, any operand may be the
    base of a result that is this operand itself, as that of astype(copy=False).
    """
    shown, first = shows(op, values), values[0]
    recorded = recording_at(top) if isinstance(top, Tensor) else None
    if op.outputs == ():
        base = first if isinstance(first, Layer) and first._level == top._level else None
        if shown and base is not None:
            if shown == "same" or outs[0] is inner[0]:
                return [(base, itself(top))]
            if shown != "layout" or aliasing.allows(base, inner[0], outs[0]):
                return [(base, (op, tuple(inner[1:]), None, recorded))]
        if (
            not isinstance(top, Tensor)
            or isinstance(outs[0], top._elem.library.scalars)
            or _makes(op, values, top)
        ):
            return [(None, WHOLE)]
        return [(next((v for v, x in zip(values, inner) if x is outs[0]), None), itself(top))]
    if not shown:
        return [(None, WHOLE)] * len(outs)
    if type(first) is tuple:
        return [
            (x, (registry.OPS["broadcast_to"], (tuple(out.shape),), None, recorded))
            for x, out in zip(first, outs, strict=True)
        ]
    if op.name == "unstack":
        before = (slice(None),) * (inner[1] % len(first.shape))
        return [
            (first, (registry.OPS["getitem"], ((*before, i, ...),), i, recorded))
            for i in range(len(outs))
        ]
    return [(first, (op, tuple(inner[1:]), i, recorded)) for i in range(len(outs))]


def itself(top: Any) -> Step:
    """The step of a result that is its argument itself: `x[...]`."""
    return registry.OPS["getitem"], (Ellipsis,), None, recording_at(top)


def shows(op: Op, values: Sequence[Any]) -> bool | str:
    """Which memory of the first argument the output of `op` shows (see Op.view)."""
    shown: bool | str = op.view(*values) if callable(op.view) else op.view
    return False if shown == "layout" and _copies(op, values) else shown


def _copies(op: Op, values: Sequence[Any]) -> bool:
    """Whether the call asks for a copy. Of an immutable array a library may return the original."""
    return op.roles.get("copy") == "plain" and bool(values[positions(op)["copy"]])


def _makes(op: Op, values: Sequence[Any], top: Tensor) -> bool:
    """Whether the result is a new array even if the library returns an operand itself.

    An immutable array may be its own copy, and the values of an elementwise function of it.
    """
    elementwise = "elementwise" in (op.kind, op.chapter)
    return (elementwise and not top._elem.library.mutable) or _copies(op, values)


BOUNDS = (int, type(None))


def is_basic_key(key: Any) -> bool:
    """Whether `key` consists of integers and slices only, which are immutable.

    Indexing with arrays makes a copy.
    """
    for k in key if type(key) is tuple else (key,):
        kind = type(k)
        if kind is slice:
            if not is_fixed(k):
                return False
        elif kind is not int and k is not None and k is not Ellipsis:
            return False
    return True


def is_fixed(k: slice) -> bool:
    """Whether the bounds of a slice are Python integers, or None."""
    return type(k.start) in BOUNDS and type(k.stop) in BOUNDS and type(k.step) in BOUNDS


def attach(
    op: Op,
    needs: Any,
    inner: Sequence[Any],
    nodes: Sequence[Any],
    cells: Sequence[Any],
    ans: Any,
    tensors: list[Any],
) -> Node:
    """Make the node of the outputs `tensors`. `nodes` has the node of each array argument."""
    multi = op.outputs != ()
    node: Node = MultiNode(len(tensors)) if multi else Node()
    node.seq = tick()
    edges = [n for x in nodes for n in (x if type(x) is tuple else (x,))]
    fill(node, op, needs, inner, edges, cells, ans, tensors)
    if not multi:
        tensors[0]._node = node
        return node
    assert isinstance(node, MultiNode)
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t._elem.floating:
            t._node = node.pick(i)
    return node


def fill(
    node: Node,
    op: Op,
    needs: Any,
    inner: Sequence[Any],
    nodes: Sequence[Any],
    cells: Sequence[Any],
    ans: Any,
    tensors: Sequence[Any],
) -> None:
    """Give a node its rule, what it saves, and its parents.

    The arguments are those of `attach`, but `nodes` has those of the elements of a list apart.
    """
    if op.outputs == ():
        first = tensors[0]
        outs: tuple[Any, ...] = (first._cell,)
    else:
        first = next(t for t in tensors if isinstance(t, Tensor) and t._elem.floating)
        outs = tuple([t._cell if isinstance(t, Tensor) else None for t in tensors])
    elem: Element = first._elem
    node.rule, save, track = _rule_of(op, needs, elem.complex, elem.library)
    node.saved = save(inner, ans, first, elem.library)
    node.cells = track(cells, outs)
    parents = [n for n in nodes if n is not None]
    node.next = parents[0] if node.rule.single else tuple(parents)


@per_operation
def _rule_of(op: Op, needs: Any, complex_: bool, library: Library) -> tuple[Pullback, Any, Any]:
    """The rule of a node, and the functions that select what it saves; in one search."""
    rule = pullback(op, needs, complex_, True, library)
    return (rule, *recorder(rule))


def needs_of(nodes: Sequence[Any]) -> Any:
    """Whether each array argument wants a gradient, that is, has a node. None if none does."""
    needs = tuple(
        [tuple([n is not None for n in x]) if type(x) is tuple else x is not None for x in nodes]
    )
    return needs if True in needs or any(type(n) is tuple and True in n for n in needs) else None


def wrap_like(top: Tensor, x: Any, base: Any = None, step: Step = WHOLE) -> Tensor:
    """Wrap `x` as a constant Tensor of `top`'s level.

    If `base` is a Tensor of this level, it is a view of that, made by `step`.
    """
    if isinstance(base, Tensor) and base._elem.level == top._elem.level:
        return checked(View._make(x, base, step))
    return checked(wrap_at(top, x))


def recording_at(top: Tensor) -> bool:
    """Whether the level of `top` records now."""
    return bool(mode_at(top))


def mode_at(top: Tensor) -> Any:
    """Whether the level of `top` records now; a Mode if so and there are observers of nodes."""
    mode = observe.gate.get()
    return mode is True or mode.at(top._elem.run, top._elem.level)


def wrap_result(op: Op, ans: Any) -> Any:
    """Wrap the result of a library in constant Tensors, for a user's own call."""
    # gradient and the like have one result, or several
    if op.outputs == () and not (op.kind == "composite" and isinstance(ans, (tuple, list))):
        return wrap_new(ans) if is_array(ans) else ans
    return named(op, same_structure(ans, [wrap_new(x) if is_array(x) else x for x in ans]))


def same_structure(ans: Any, parts: list[Any]) -> Any:
    """The parts in a list, a tuple or a named tuple, as `ans` is one."""
    kind = type(ans)
    if hasattr(kind, "_fields"):
        return kind(*parts)
    return kind(parts) if kind in (list, tuple) else tuple(parts)


Tensor._define("_apply", staticmethod(apply_tensor))
