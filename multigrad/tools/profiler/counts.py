"""Floating point operations of events.

The operations of a call follow from its shapes, for all examples of a batch. Each is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ...core.element import library_of
from ...core.level import Layer
from ...core.tensor import element_of, strip, wrap
from ...layers.batched import Batched
from ...observe import Call
from ...registry import Op, per_operation
from . import BACKWARD, FORWARD
from . import flops as formulas
from .memory import arrays

PLAIN = frozenset({bool, int, float, complex, str, type(None), slice, type(Ellipsis)})


def is_array(x: Any) -> bool:
    return isinstance(x, Layer) or (type(x) not in PLAIN and library_of(x) is not None)


@per_operation
def _defaults(op: Op) -> dict[str, Any]:
    return {
        name: p.default if p.default is not p.empty else None
        for name, p in op.signature.parameters.items()
    }


def arguments_of(call: Call) -> dict[str, Any]:
    """Return the arguments of an operation by name, defaults included."""
    assert call.op is not None
    order, args = call.order, call.args
    starred = order and args and call.op.roles[order[0]] == "arrays"  # *arrays
    if len(args) > len(order) or (starred and not isinstance(args[0], (list, tuple))):
        args = [args]
    return {**_defaults(call.op), **dict(zip(order, args, strict=False)), **call.kwargs}


def _batches(x: Any) -> dict[int, int]:
    """Return the numbers of examples in an array, by the levels of vmap.

    A tangent may have other numbers than its primal.
    """
    sizes: dict[int, int] = {}
    while isinstance(x, Layer):
        if type(x) is Batched:
            sizes[x._level] = x._array.shape[0]
        x = x._array
    return sizes


def flops(call: Call, result: Any) -> int:
    """Return the floating point operations of a call, by its shapes.

    All examples of a batch are included; those of a tangent are not.
    """
    if call.op is None or call.op.name not in formulas.RULES:
        return 0
    values = arguments_of(call)
    shapes: Mapping[str, Any] = {n: tuple(v.shape) for n, v in values.items() if is_array(v)}
    results = [
        x for x in (result if isinstance(result, (tuple, list)) else [result]) if is_array(x)
    ]
    levels: dict[int, int] = {}
    for x in results:
        levels |= _batches(x)
    examples = {}
    if levels:
        examples = {n: prod(_batches(values[n]).values()) for n in shapes}
        examples[""] = prod(levels.values())
    inner: Any = next(iter(arrays(values)), None)
    library = library_of(inner)
    complex_ = library is not None and library.xp.isdtype(inner.dtype, "complex floating")
    outs = tuple(tuple(x.shape) for x in results)
    return formulas.count(call.op.name, values, shapes, outs, complex_, examples)


def gradients_of_product(node: Any) -> int:
    """Return how many gradients a node of a product computes, 0 for any other node.

    The gradient with respect to one factor takes as many operations as the product.
    """
    rule = getattr(node, "rule", None)
    return (
        sum(1 for need in rule.needs if need)
        if rule is not None and rule.op.kind == "multilinear"
        else 0
    )


def over_layers(
    rule: Callable[..., Any],
    op: Op,
    xp: Any,
    values: Sequence[Any],
    tangents: Sequence[Any],
    ans: Any,
    raw: Any,
) -> Any:
    """Run the rule of a tangent over the differentiable namespace instead of on raw arrays.

    The profiler then sees the operations that the rule calls.
    """
    bound = element_of(ans[0] if op.outputs != () else ans).library.bound
    if xp is bound:
        return rule(op, xp, values, tangents, ans, raw)
    lifted = [
        x if role == "plain" else _lifted(x)
        for role, x in zip(op.roles.values(), values, strict=True)
    ]
    out = rule(op, bound, lifted, [_lifted(t) for t in tangents], _lifted(ans))
    return strip(out) if op.outputs == () else tuple(map(strip, out))


def _lifted(x: Any) -> Any:
    if type(x) is tuple:
        return tuple(map(_lifted, x))
    return wrap(x) if is_array(x) and not isinstance(x, Layer) else x


def count_once(events: Sequence[Any]) -> None:
    """Remove from each event the operations that an event around it already counts.

    An operation counts for all that carries it out; the operations in the rule of its tangent are
    added. If the profiler saw the rule of a product's node, the node counts what the rule calls,
    instead of the estimate.
    """
    inside: set[int] = set()
    for event in events:  # a parent precedes its children
        around = event.cpu_parent
        if (
            around is not None
            and around._rule is event._rule
            and (id(around) in inside or (around.scope == FORWARD and around.flops))
        ):
            inside.add(id(event))
            event.flops = 0
    for event in events:
        if event.scope == BACKWARD and event._detail is not None and event._detail.flops:
            parts = [
                child
                for child in event.cpu_children
                if event._detail.alone or child._rule is not event._rule
            ]
            for part in parts:  # the list grows during the loop
                parts += part.cpu_children
            total = sum(part.flops for part in parts)
            if total:
                event.flops = total
                for part in parts:
                    part.flops = 0
