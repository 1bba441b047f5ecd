"""Run an operation: find the level that handles it, call the library, wrap and record the result.

`general` handles everything: the first call of each signature, from whose result a runner is
written (runners.py), what is rare, and errors. Argument values are passed as one tuple in the order
of the operation's signature, with defaults filled in.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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
    wrap,
    wrap_at,
    wrap_new,
)
from ..registry import Op, per_operation
from . import settings
from .codegen import array_index, call, is_flat, positions, raw_function, recorder
from .pullbacks import pullback_of


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
        # the operators of the form must not be those of raw arrays, which may not defer to layers
        values = tuple(
            x if role == "plain" else lifted(tuple(x) if role == "arrays" else x)
            for role, x in zip(op.roles.values(), values, strict=True)
        )
        return composed(op, resolve_composite(op)(_library_of_layer(top).bound, *values))
    return type(top)._apply(op, values, top)


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
                raise TypeError(no_array(op, name, x))


def no_array(op: Op, name: str, x: Any) -> str:
    """The error for an operand that is no array."""
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    return (
        f"{op.name}: expected an array, a Tensor or a Python scalar for {name!r}, got {kind}. Wrap "
        "lists with multigrad.asarray; `python -m multigrad backends` lists the known libraries."
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
    return result_type(op)(*result) if op.outputs and type(result) is tuple else result


def result_type(op: Op) -> Any:
    """The named tuple of an operation with several outputs."""
    return _result_type(op.name, op.outputs)


@cache
def _result_type(name: str, outputs: tuple[str, ...] | None) -> Any:
    return namedtuple(f"{name.rpartition('.')[2]}_result", outputs or ())


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
        for x in candidates(
            op,
            [
                v if role != "plain" else None
                for role, v in zip(op.roles.values(), values, strict=True)
            ],
        )
        if x is not None and not isinstance(x, Standing) and is_array(x)
    ]
    if op.name == "where":
        beside = [x for x in beside if x is not values[0]]

    def given(role: str, x: Any) -> Any:
        if type(x) is tuple or type(x) is list:
            return tuple([given(role, y) for y in x])
        return (
            x
            if not isinstance(x, Standing)
            else x._plain()
            if role == "plain"
            else x._as_operand(op, beside)
        )

    return tuple([given(role, x) for role, x in zip(op.roles.values(), values, strict=True)])


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


def _library_of_layer(x: Any) -> Library:
    library: Library = x._elem.library
    return library


def run_raw(op: Op, values: Sequence[Any], library: Library | None = None) -> Any:
    """Call the library's function on raw arrays."""
    if library is None:
        library = common_library(op.name, list(candidates(op, values)))
        if library is None:
            given = [
                v
                for (name, role), v in zip(op.roles.items(), values, strict=True)
                if role != "plain"
                and (v is not None or op.signature.parameters[name].default is not None)
            ]
            kinds = ", ".join(sorted({type(v).__name__ for v in given}))
            raise TypeError(
                f"{op.name}: none of the arguments is an array of a known library ({kinds}). "
                "Wrap lists and scalars with multigrad.asarray; `python -m multigrad backends` "
                "lists the known libraries."
            )
    if library.scalars and complex in map(type, values):
        values = _without_complex(values, library)
    return call(op, raw_function(library, op.name), with_dtype(op, values, library))


def _without_complex(values: Sequence[Any], library: Library) -> Sequence[Any]:
    """The values with 0-d arrays for Python's complex numbers beside scalars that are floats, too.

    The operators of such a number would take np.float64 for a float, and return a complex number
    of Python.
    """
    if not any(isinstance(v, float) and isinstance(v, library.scalars) for v in values):
        return values
    return [library.xp.asarray(v) if type(v) is complex else v for v in values]


def with_dtype(op: Op, values: Sequence[Any], library: Library) -> Sequence[Any]:
    """The values of all parameters, with the library's dtype object for its name."""
    i = positions(op).get("dtype")
    return (
        values
        if i is None or type(values[i]) is not str
        else [*values[:i], named_dtype(library, values[i]), *values[i + 1 :]]
    )


def apply_tensor(
    op: Op, values: tuple[Any, ...], top: Tensor, carry_out: Callable[..., Any] | None = None
) -> Any:
    """Run `op` on arguments whose highest level is that of the Tensor `top`.

    Raw arrays are passed to `carry_out`, if that is given.
    """
    reach = top._elem.level
    library: Library = top._elem.library
    if top._elem.run is not None and (mode := observe.gate.get()) is not True:
        mode.looked(values)
    inner: list[Any] = []
    edges: list[Any] = []  # per parameter: the node of its Tensor, None, or a tuple of these
    cells: list[Any] = []
    pure = True  # whether all raw arrays are of one library
    deep = False  # whether some value is a layer of a lower level
    for role, value in zip(op.roles.values(), values, strict=True):
        if isinstance(value, Tensor) and value._elem.level == reach:
            if value._view is not None:
                value._check()
            x = value._array
            edges.append(value._node)
            cells.append(value._cell)
            if value._elem.library is not library:  # also a NumPy scalar that has become a Tensor
                raise mixed(op.name, library, value._elem.library)
            deep = deep or isinstance(x, Layer)
        elif role == "arrays" or type(value) is tuple:
            parts = [_unwrap(v, reach) for v in value]
            for v in value if role == "arrays" else ():
                if isinstance(v, Layer) and v._elem.library is not library:
                    raise mixed(op.name, library, v._elem.library)
            x = tuple(p[0] for p in parts)
            if type(value) is tuple and all(map(is_, x, value)):
                x = value  # y[key] += v recognizes the key by its identity
            edges.append(tuple(p[1] for p in parts))
            cells.append(tuple(p[2] for p in parts))
            pure = pure and role != "arrays"
            deep = deep or any(isinstance(v, Layer) for v in x)
        else:
            # a list may be changed by its owner
            x = tuple(value) if isinstance(value, list) else constant(value)
            edges.append(None)
            # a constant of a lower level may be written, too
            cells.append(value._cell if isinstance(value, Layer) else None)
            if isinstance(value, Layer):  # also in an indexing key
                deep = deep or isinstance(x, Layer)
                if value._elem.library is not library:
                    raise mixed(op.name, library, value._elem.library)
            elif role == "array" and type(x) not in SCALARS and x is not None:
                pure = False
        inner.append(x)
    if deep:
        ans = general(op, tuple(map(outer, values, inner)))
    else:
        if not pure:
            library = common_library(op.name, candidates(op, inner)) or library
            inner = [
                plain_scalars(x, library) if role == "array" else x
                for role, x in zip(op.roles.values(), inner, strict=True)
            ]
        ans = run_raw(op, inner, library) if carry_out is None else carry_out(*inner)
    return record(op, inner, edges, cells, ans, top, values)


def carried_out(op: Op, inner: Sequence[Any], top: Layer) -> tuple[Any, Sequence[Any], Library]:
    """Run `op` on the next inner values of the level of `top`.

    Returns the result, the values that were used, and their library.
    """
    library = _library_of_layer(top)
    for x in candidates(op, inner):
        if isinstance(x, Layer):
            return general(op, tuple(inner)), inner, library
    library = common_library(op.name, candidates(op, inner)) or library
    inner = [
        plain_scalars(x, library) if role == "array" else x
        for role, x in zip(op.roles.values(), inner, strict=True)
    ]
    inner = with_dtype(op, inner, library)
    return run_raw(op, inner, library), inner, library


def outer(x: Any, value: Any) -> Any:
    """`x` itself if it is a constant Tensor of the base level, else `value`, which was taken of it.

    It is passed on if another value is a layer: nodes further in then take its version cell. Tuples
    are handled element by element.
    """
    if type(value) is tuple and isinstance(x, tuple | list):
        parts = tuple(map(outer, x, value))
        return value if all(map(is_, parts, value)) else parts
    return x if isinstance(x, Tensor) and x._elem.run is None and x._node is None else value


def _unwrap(x: Any, reach: int) -> tuple[Any, Any, Any]:
    """The inner value of a Tensor of this level, its node and its version cell.

    Any other value is a constant.
    """
    if isinstance(x, Tensor) and x._elem.level == reach:
        if x._view is not None:
            x._check()
        return x._array, x._node, x._cell
    return constant(x), None, x._cell if isinstance(x, Layer) else None


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
    edges: Sequence[Any],
    cells: Sequence[Any],
    ans: Any,
    top: Tensor,
    values: Sequence[Any],
) -> Any:
    """Wrap the output(s) of `op` in Tensors of `top`'s level.

    They get a node if a gradient may flow to an argument.
    """
    mode: Any = op.kind != "nondifferentiable" and mode_at(top)
    recorded = bool(mode)
    if op.outputs == ():
        if not is_array(ans):
            if recorded and needs_of(op, edges) is not None:
                raise TypeError(
                    f"{op.name}: the backend {top._elem.library.name!r} returned "
                    f"{type(ans).__name__}, which is none of its arrays, so the gradient would "
                    "be lost. Its function must return an array."
                )
            return ans
        base, step = None, WHOLE
        kind = shows(op, values)
        if kind and (kind != "layout" or aliasing.allows(values[0], inner[0], ans)):
            base = values[0]
            step = (
                itself(top)
                if kind == "same" or ans is inner[0]
                else (op, tuple(inner[1:]), None, recording_at(top))
            )
        elif not isinstance(ans, top._elem.library.scalars) and not _makes(op, values, top):
            # astype(copy=False) and the like may return their argument itself
            base = next((v for v, x in zip(values, inner, strict=True) if x is ans), None)
            step = itself(top)
        t = wrap_like(top, ans, base, step)
        if (
            recorded
            and (t._elem.floating or t._elem.opaque)
            and (needs := needs_of(op, edges)) is not None
        ):
            if t._elem.opaque:
                raise TypeError(
                    f"{op.name}: the result has dtype {t.dtype}, which is none of the "
                    "standard's, so the gradient would be lost. Convert the operand first, or "
                    "detach() the argument that requires grad."
                )
            node = attach(op, needs, inner, edges, cells, ans, [t])
            if mode is not True:
                mode.recorded(node, tuple(values), t)
        elif not recorded:
            _mark(op, edges, (t,))
        return t
    outs = tuple(ans)
    tensors = [
        wrap_like(top, x, base, step) if is_array(x) else x
        for x, (base, step) in zip(outs, bases(op, values, inner, outs, top), strict=True)
    ]
    made: Node | None = None
    if (
        recorded
        and any(isinstance(t, Tensor) and t._elem.floating for t in tensors)
        and (needs := needs_of(op, edges)) is not None
    ):
        made = attach(op, needs, inner, edges, cells, ans, tensors)
    elif not recorded:
        _mark(op, edges, tensors)
    result = named(op, same_structure(ans, tensors))
    if made is not None and mode is not True:
        mode.recorded(made, tuple(values), result)
    return result


def _mark(op: Op, edges: Sequence[Any], outs: Sequence[Any]) -> None:
    """Mark the outputs as computed from the inputs, inside the forward of a Function."""
    forward = following.get()
    if (
        forward is not None
        and op.kind != "nondifferentiable"
        and needs_of(op, edges) is not None
        and not is_flat(op)
    ):
        for t in outs:
            if isinstance(t, Tensor) and t._elem.floating and t._node is None:
                mark(t)


def bases(
    op: Op, values: Sequence[Any], inner: Sequence[Any], outs: Sequence[Any], top: Tensor
) -> Sequence[tuple[Any, Step]]:
    """The base of each output that is a view, and how the view was made.

    The base is the first argument; for a list, broadcast, it is the element at the output's index.
    One part of unstack is made by indexing, without the others.
    """
    if not shows(op, values):
        return ((None, WHOLE),) * len(outs)
    recorded = recording_at(top)
    first = values[0]
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


def itself(top: Tensor) -> Step:
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
    edges: Sequence[Any],
    cells: Sequence[Any],
    ans: Any,
    tensors: list[Any],
) -> Node:
    first = next(t for t in tensors if isinstance(t, Tensor) and t._elem.floating)
    elem: Element = first._elem
    rule, save, track = rule_of(op, needs, elem)
    multi = op.outputs != ()
    node: Node = MultiNode(len(tensors)) if multi else Node()
    node.seq = tick()
    node.rule = rule
    node.saved = save(inner, ans, first, elem.library)
    node.cells = track(cells, [t._cell if isinstance(t, Tensor) else None for t in tensors])
    flat = _flat(needs, [edges[i] for i in array_index(op).values()])
    node.next = flat[0] if rule.single else tuple(flat)
    if not multi:
        tensors[0]._node = node
        return node
    assert isinstance(node, MultiNode)
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t._elem.floating:
            t._node = node.pick(i)
    return node


def rule_of(
    op: Op, needs: Any, elem: Element
) -> tuple[Pullback, Callable[..., Any], Callable[..., Any]]:
    """The pullback for these wanted gradients and a result of `elem`.

    It comes with the functions that select the saved values and their version cells.
    """
    library = elem.library
    overrides = library.backend.rules.get(op.name)
    rule = pullback_of(
        op,
        needs,
        elem.complex,
        True,
        library,
        None if overrides is None else backend_rules(op, library),
    )
    return (rule, *recorder(rule))


@per_operation
def backend_rules(op: Op, library: Library) -> Any:
    """The rules of `op`, including those that the backend overrides."""
    known = {"": op.vjp} if isinstance(op.vjp, registry.Rule) else dict(op.vjp)
    materialize = all(rule.materialize for rule in known.values())
    own = {
        a: replace(
            registry.checked_rule(
                op.name, a, fn, op.roles, op.outputs, partial=op.kind == "elementwise"
            ),
            materialize=materialize,
        )
        for a, fn in library.backend.rules[op.name].items()
    }
    return _Frozen(known | own)


class _Frozen(dict[str, Any]):
    """A dictionary that is hashed by identity, so that it can be a key of a cache."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


def needs_of(op: Op, edges: Sequence[Any]) -> Any:
    """Whether each array argument wants a gradient, that is, has a node. None if none does."""
    wanted_by: list[Any] = []
    wanted = False
    for i in array_index(op).values():
        e = edges[i]
        if type(e) is tuple:
            needs = tuple(n is not None for n in e)
            wanted = wanted or any(needs)
            wanted_by.append(needs)
        else:
            wanted = wanted or e is not None
            wanted_by.append(e is not None)
    return tuple(wanted_by) if wanted else None


def _flat(needs: Any, edges: Sequence[Any]) -> list[Node]:
    flat: list[Node] = []
    for need, e in zip(needs, edges, strict=True):
        if isinstance(need, tuple):
            flat += [n for n, wanted in zip(e, need, strict=True) if wanted]
        elif need:
            flat.append(e)
    return flat


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
