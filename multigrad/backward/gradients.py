"""`backward` and `grad`, the functions that users call; they mean the same as in torch.autograd."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..backends.kernels import SOLE_OWNER
from ..core import level, tensor
from ..core.computed import following, mark
from ..core.element import is_array
from ..core.graph import AccumulateGrad, GradientEdge, Node, arrival
from ..core.level import Layer, highest, innermost
from ..core.passes import Pass
from ..core.tensor import Tensor, element_of, wrap_at, wrapped
from ..dispatch.settings import flag
from ..errors import GradientError, kind, program
from ..memory.accumulation import outer_leaf
from ..observe import internally, passed
from ..provided import provide, wanted
from ..tracebacks import entry
from .reach import reach
from .run import run_pass


def _sequence(x: Any) -> list[Any]:
    one = x is None or is_array(x) or isinstance(x, GradientEdge) or not isinstance(x, Iterable)
    return [x] if one else list(x)


def _cotangents(gradients: Any, outputs: list[Any]) -> list[Any]:
    """The gradients of the outputs, None for those that are not given."""
    return [None] * len(outputs) if gradients is None else _sequence(gradients)


def _roots(
    outputs: list[Any], grads: list[Any], create: bool
) -> tuple[list[tuple[Node, Any]], Tensor]:
    """The nodes where the pass starts with their gradients, and the output of the highest level."""
    if len(grads) != len(outputs):
        raise GradientError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    outputs = [
        _stand_in(t, g) if isinstance(t, GradientEdge) else t
        for t, g in zip(outputs, grads, strict=True)
    ]
    for i, t in enumerate(outputs):
        if isinstance(t, Layer) and not isinstance(t, Tensor):
            raise TypeError(
                f"element {i} of tensors is a {kind(t)}, whose derivatives are not those of one "
                "graph: take it apart first (multigrad.autograd.forward_ad.unpack_dual), or "
                "use multigrad.func.grad of a function of it"
            )
        if not isinstance(t, Tensor):
            raise TypeError(
                f"element {i} of tensors is of type {type(t).__name__}; expected a multigrad "
                "Tensor. For raw arrays, use multigrad.func.grad."
            )
        t._check()
        if t._history is None:
            raise GradientError(
                f"element {i} of tensors does not require grad and does not have a grad_fn. It "
                "depends on no Tensor that requires grad, or was computed under no_grad() or "
                "from detached values. `python -m multigrad breaks SCRIPT` names the lines "
                "where gradients are lost."
            )
    top: Tensor = highest(outputs)
    roots = []
    for i, (t, g) in enumerate(zip(outputs, grads, strict=True)):
        if t._elem.level != top._elem.level:
            raise GradientError(
                f"element {i} of tensors belongs to another transformation than the other "
                "outputs; differentiate them apart"
            )
        value = seed(t) if g is None else check_gradient(t, g, i)
        if create:
            value = wrapped(t, value)
        elif isinstance(value, Tensor) and value._elem.level == t._elem.level:
            value = value._array
        roots.append((t._node, value))
    return roots, top


def _stand_in(e: GradientEdge, g: Any) -> Tensor:
    """A Tensor with the node of an edge, of the shape that the node knows, else that of `g`."""
    node = arrival(e)
    noted = getattr(node, "extra", None)
    leaf: Tensor | None = node.variable if isinstance(node, AccumulateGrad) else None
    if leaf is not None:
        return leaf
    if noted is not None and noted.output is not None:
        info, like = noted.output
        array = like._array
        if not isinstance(array, Layer):
            array = like._elem.library.xp.broadcast_to(array, info.shape)
        t = wrap_at(like, array)
    elif g is None:
        raise GradientError(
            f"the gradient of a GradientEdge of {node.name()} must be given, because the node "
            "does not know the shape of that output; get_gradient_edge(tensor) notes it"
        )
    else:
        t = wrap_at(g, g._array) if isinstance(g, Tensor) else tensor.wrap(g)
    t._node = node
    return t


NOT_SCALAR = "grad can be implicitly created only for scalar outputs"


def not_scalar(shape: Sequence[int], name: str = "") -> GradientError:
    """The error for an output that is not a scalar; `name`: the transformation that needs one."""
    way = (
        "take all derivatives with func.jacrev."
        if name
        else "pass backward() or grad() the gradient of this output. func.jacrev has the whole "
        "Jacobian."
    )
    return GradientError(
        f"{NOT_SCALAR}. This one has shape {tuple(shape)}: reduce it to one number, as by "
        f"xp.sum(), or {way}"
    )


def seed(t: Tensor, shared: bool = False) -> Any:
    """The implicit gradient 1 of a real scalar.

    shared  whether it may be a constant with other users, as no hook and no Function gets it
    """
    shape = tuple(t._array.shape)
    if shape and t.size != 1:
        raise not_scalar(shape)
    if t._elem.complex:
        raise GradientError(
            f"grad can be implicitly created only for real scalar outputs but got {t.dtype}. "
            "Take a real number of it: xp.real(), xp.imag() or xp.abs()."
        )
    library, x = t._elem.library, innermost(t)
    if shared and not shape and type(t._node) is Node:
        return library.constant(library.xp, 1, t._elem.dtype, library.device(library.xp, x))
    if isinstance(t._array, Layer):  # the same for all examples
        return library.xp.ones(shape, dtype=t._elem.dtype, device=library.device(library.xp, x))
    return library.xp.ones_like(x)


def check_gradient(t: Tensor, g: Any, i: int) -> Any:
    """The given gradient of output `i`, with its shape; real dtypes are converted."""
    if not isinstance(g, Layer):
        try:
            elem = element_of(g)
        except TypeError:
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(g).__name__}"
            ) from None
        if elem is t._elem.base and g.shape == t._array.shape:
            return g
        g = wrap_at(t, g)
    else:
        g = passed(g)
    if isinstance(g, Tensor):
        g._check()
    if tuple(g.shape) != tuple(t.shape):
        raise GradientError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {tuple(g.shape)} and "
            f"output[{i}] has a shape of {tuple(t.shape)}."
        )
    elem = element_of(g)
    if elem.library is not t._elem.library:
        raise GradientError(
            f"Mismatch in backend: grad_output[{i}] is of {elem.library.name!r} and output[{i}] of "
            f"{t._elem.library.name!r}. Convert it with .to_backend({t._elem.library.name!r})."
        )
    if elem is t._elem.base:
        return g
    if elem.complex or t._elem.complex:
        raise GradientError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {elem.dtype} and "
            f"output[{i}] has a dtype of {t.dtype}."
        )
    return elem.library.bound.astype(g, t.dtype)


def _renamed(old: str, value: Any, new: str, other: Any) -> Any:
    """The value of a deprecated argument of `backward`; raises if the new name is given, too."""
    warnings.warn(
        f"`{old}` is deprecated. Use `{new}` instead.", FutureWarning, stacklevel=program()
    )
    if other is not None:
        raise RuntimeError(
            f"`{new}` and `{old}` (deprecated) arguments both passed to `backward()`. Please "
            f"only use `{new}`."
        )
    return value


_warned = [False]


def _flag(function: str, name: str, value: Any) -> bool:
    """A flag of a pass, for which None means False."""
    if value is True or value is False:
        return value
    return value is not None and flag(function, name, value)


def _keeps(function: str, retain_graph: Any, create_graph: bool) -> bool:
    """Whether the pass keeps saved values."""
    return create_graph if retain_graph is None else _flag(function, "retain_graph", retain_graph)


@entry
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
    *,
    retain_variables: bool | None = None,
) -> None:
    """Add the gradients of `tensors` with respect to the leaves to their `.grad`.

    The gradients of all `tensors` are summed.

    tensors       one Tensor or a sequence; an element that is not a real scalar needs its gradient
                  in `grad_tensors`
    grad_tensors  a sequence of the same length: arrays or Tensors of the shapes of `tensors`, or
                  None
    retain_graph  keep saved values for another pass; default: the value of `create_graph`
    create_graph  record the pass itself, so that it can be differentiated again
    inputs        accumulate only into these Tensors, which need not be leaves: one, a sequence, or
                  a dictionary

    `grad_variables` and `retain_variables` are old names of `grad_tensors` and `retain_graph`, and
    are deprecated.

    Same as torch.autograd.backward, and raises RuntimeError in the same cases.
    """
    if grad_variables is not None:
        grad_tensors = _renamed("grad_variables", grad_variables, "grad_tensors", grad_tensors)
    if retain_variables is not None:
        retain_graph = _renamed("retain_variables", retain_variables, "retain_graph", retain_graph)
    if (
        type(tensors) is Tensor
        and tensors._elem.run is None
        and tensors._node is not None
        and not create_graph
        and grad_tensors is None
        and inputs is None
    ):
        _accumulated(
            [(tensors._node, seed(tensors, shared=True))],
            Pass(tensors, _keeps("backward", retain_graph, False), False, None),
        )
        return
    create_graph = _flag("backward", "create_graph", create_graph)
    targets = _inputs(inputs, "backward")
    outputs = _sequence(tensors)
    if not outputs:
        return
    if create_graph and not _warned[0]:
        _warned[0] = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between "
            "the parameter and its gradient which can cause a memory leak. We recommend "
            "using autograd.grad when creating the graph to avoid this. If you have to use "
            "this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=program(),
        )
    roots, top = _roots(outputs, _cotangents(grad_tensors, outputs), create_graph)
    for _, g in roots:
        if isinstance(g, Layer) and g._level > top._level:
            raise GradientError(outer_leaf(g))
    p = Pass(top, _keeps("backward", retain_graph, create_graph), create_graph, None)
    if targets is None:
        _refuse_outer(roots, top)
        _accumulated(roots, p)
        return
    for t in targets:
        if isinstance(t, Tensor):
            t.retain_grad()
    p.targets = _nodes_of(targets)
    p.accumulate_targets = True
    _accumulated(roots, p)


def _accumulated(roots: list[tuple[Node, Any]], p: Pass) -> None:
    """Run a pass that accumulates. The forward of a Function marks the gradients of the leaves."""
    if p.like._elem.run is None and level.running() is not None:
        level.leaves_effect("backward()")
    run_pass(roots, p, "backward")
    if following.get() is not None:
        for node in reach(roots, p)[0]:
            grad = node.cell.grad if type(node) is AccumulateGrad else None
            if grad is not None and grad._node is None:
                mark(grad)


def _refuse_outer(roots: Sequence[tuple[Node, Any]], top: Tensor) -> None:
    """Refuse a pass inside a transformation that would change leaves of an outer level."""
    if level.running() is None or top._elem.run is None:
        return
    x = top._array
    while isinstance(x, Layer):
        if isinstance(x, Tensor) and x._node is not None and x._elem.run is not top._elem.run:
            raise GradientError(
                "backward() inside a transformation would not reach the outer Tensor that the "
                "result also depends on. Name the Tensors with inputs=, or use "
                "multigrad.autograd.grad."
            )
        x = x._array


def _node_of(t: Tensor | GradientEdge) -> Node | None:
    return arrival(t) if isinstance(t, GradientEdge) else t._node


def _nodes_of(targets: Iterable[Tensor | GradientEdge]) -> dict[Node, Any]:
    """The nodes of the targets of a pass, without gradients yet."""
    return {node: None for node in map(_node_of, targets) if node is not None}


def _is_dictionary(inputs: Any) -> bool:
    return not isinstance(inputs, (Tensor, list)) and isinstance(inputs, Mapping)


def _inputs(inputs: Any, name: str) -> list[Tensor | GradientEdge] | None:
    if inputs is None:
        return None
    targets = list(inputs.values()) if _is_dictionary(inputs) else _sequence(inputs)
    if not targets:
        raise GradientError(f"`inputs` argument to `{name}()` cannot be empty.")
    for t in targets:
        if not isinstance(t, (Tensor, GradientEdge)):
            raise TypeError(
                f"inputs of {name}() must be Tensors, not {type(t).__name__}. For raw arrays, "
                "use multigrad.func.grad."
            )
    return targets


@entry
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of `outputs` with respect to each of `inputs`; `.grad` is not changed.

    The gradients of all `outputs` are summed.

    outputs, grad_outputs  as `tensors` and `grad_tensors` of `backward`
    inputs                 one Tensor, a sequence, or a dictionary (then a dictionary is returned);
                           leaves or not
    allow_unused           return None instead of raising, for an input that the outputs do not
                           depend on
    is_grads_batched       the first axis of each array in `grad_outputs` counts examples; the
                           gradients of all examples are computed at once. The results have that
                           axis, too. An element None means the same implicit gradient for all
                           examples. Tensors that retain their gradient get none
    materialize_grads      return zeros for such an input, without an axis of examples

    Returns a tuple of Tensors, with the shapes, dtypes and backends of the inputs. Same as
    torch.autograd.grad.
    """
    create_graph = _flag("grad", "create_graph", create_graph)
    retain_graph = _keeps("grad", retain_graph, create_graph)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but "
            "got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated (defaults to True). Use backward() to "
            "accumulate into the other leaves; here they are accumulated into, as documented "
            "for only_inputs=False.",
            FutureWarning,
            stacklevel=program(),
        )
    targets = _inputs(inputs, "grad")
    if targets is None:
        raise TypeError(
            "grad() needs inputs: a Tensor or a sequence of Tensors to differentiate with "
            "respect to"
        )
    outputs = _sequence(outputs)
    cotangents = _cotangents(grad_outputs, outputs)
    if not outputs:
        raise GradientError("grad requires non-empty outputs")
    if materialize_grads and any(isinstance(t, GradientEdge) for t in targets):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    settings = targets, retain_graph, create_graph, not only_inputs
    if is_grads_batched:
        _check_batches(outputs, cotangents)
        if not only_inputs:
            raise GradientError(
                "grad() cannot accumulate batches of gradients into the other leaves: leave out "
                "only_inputs=False"
            )
        p = in_batches(lambda batch: _differentiate(outputs, batch, *settings), cotangents)
    else:
        p = _differentiate(outputs, cotangents, *settings)
    assert p.targets is not None
    results = [p.targets[_node_of(t)] for t in reversed(targets)]  # type: ignore[index]
    p.targets = None  # the list holds the only reference to what it has
    gradients = tuple(
        _result(t, p, i, results, bool(allow_unused), materialize_grads)
        for i, t in enumerate(targets)
    )
    return dict(zip(inputs, gradients, strict=True)) if _is_dictionary(inputs) else gradients


def _differentiate(
    outputs: list[Any],
    cotangents: list[Any],
    targets: Sequence[Tensor | GradientEdge],
    keep: bool,
    create: bool,
    others: bool,
) -> Pass:
    """Run the pass of `grad`; its targets then have the gradients."""
    roots, top = _roots(outputs, cotangents, create)
    for t in targets:
        if isinstance(t, GradientEdge):
            continue
        t._check()
        if t._history is None:
            raise GradientError(
                "One of the differentiated Tensors does not require grad. Call its "
                "requires_grad_() before the outputs are computed from it."
            )
        if t._elem.level < top._elem.level:
            raise GradientError(
                "One of the differentiated Tensors was created outside of the running "
                "transformation, whose values are constants to it. Pass it as an argument of "
                "the transformed function and name it by argnums."
            )
    p = Pass(top, keep, create, _nodes_of(targets), others)
    run_pass(roots, p, "grad")
    return p


def _check_batches(outputs: Sequence[Any], cotangents: Sequence[Any]) -> None:
    """Raise if `cotangents` are not batches of gradients of the outputs."""
    sizes = []
    for i, (t, g) in enumerate(zip(outputs, cotangents, strict=False)):
        if g is None:
            continue
        if not is_array(g):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if not g.shape or (isinstance(t, Tensor) and tuple(g.shape[1:]) != tuple(t.shape)):
            raise GradientError(
                "If `is_grads_batched=True`, we interpret the first dimension of each "
                "grad_output as the batch dimension. The sizes of the remaining dimensions are "
                "expected to match the shape of corresponding output, but a mismatch was "
                f"detected: grad_output[{i}] has a shape of {tuple(g.shape)} and output[{i}] "
                f"has a shape of {tuple(getattr(t, 'shape', ()))}. If you only want some "
                "tensors in `grad_output` to be considered batched, consider using vmap."
            )
        sizes.append(g.shape[0])
    if not sizes:
        raise ValueError(
            "is_grads_batched=True needs grad_outputs with a batch dimension, but none is given"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got "
            f"sizes {sizes} for the mapped dimension"
        )


@wanted
def in_batches(differentiate: Callable[[list[Any]], Pass], cotangents: Sequence[Any]) -> Pass:
    """Run a pass on batches of gradients; its targets get batches.

    Provided by layers/batched.py.
    """
    raise NotImplementedError


def _result(
    t: Tensor | GradientEdge,
    p: Pass,
    i: int,
    gradients: list[Any],
    allow_unused: bool,
    materialize: bool,
) -> Tensor | None:
    """The gradient of input `i`, the last of `gradients`, as a Tensor on its own memory."""
    if gradients[-1] is None:
        gradients.pop()
        if materialize and isinstance(t, Tensor):
            library = t._elem.library
            with level.outside():
                zeros: Tensor = library.bound.zeros_like(t)
            return zeros.requires_grad_() if p.create_graph else zeros
        if not allow_unused:
            raise GradientError(
                f"The differentiated Tensor at index {i} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
        return None
    if isinstance(t, GradientEdge):
        t = p.like
    g = owned(gradients, t)
    if not isinstance(g, Layer):
        library = t._elem.library
        g = library.place_like(library.xp, g, innermost(t))
    elif g._level >= t._level:
        return mark(g) if isinstance(g, Tensor) and g._node is None else g  # type: ignore[return-value]
    gradient: Tensor = mark(wrap_at(t, g))
    return gradient


# ----- Derivatives as users get them -----
# Each result has its own memory: it shares memory with no other array, and can be written if the
# library's arrays can. The result of a pass may be the gradient of two arguments at once, a
# broadcast, or the cotangent that the user gave. So it is copied before the user gets it, unless
# the reference count proves that there is no other reference. The kernel `take_ownership`, which
# makes a leaf's `.grad`, works in the same way.


def owned(values: list[Any], like: Any) -> Any:
    """Remove the last of `values`, a derivative, and return it as an array on its own memory.

    It is a derivative of `like` or with respect to it. To avoid a copy, the list must hold the only
    reference to the value. A scalar of the library stays a scalar if `like` is one. Immutable
    arrays are placed as `like` is (on its devices, in its chunks).
    """
    x = values[-1]
    if isinstance(x, Layer):
        layered = _owned_tensor if isinstance(x, Tensor) else _owned_layer
        del x
        return layered(values, like)
    library = element_of(x).library
    if isinstance(x, library.scalars) and isinstance(innermost(like), library.scalars):
        return values.pop()
    del x
    if not library.mutable:
        return library.place_like(
            library.xp, values.pop(), innermost(like) if isinstance(like, Layer) else like
        )
    return library.take_ownership(library.xp, values.pop(), None)


def _owned_tensor(values: list[Any], like: Any) -> Any:
    """`owned` for a Tensor. One with a history owns its memory, unless it is a view."""
    if values[-1]._history is not None and _is_sole(values):
        return values.pop()
    sole = _references(values) <= SOLE
    t = values.pop()
    t._check()
    if t._history is not None:
        return internally(t.clone)
    inner = [t._array]
    if sole:
        t._array = None
    # the inner value of a batch has an axis that `like` lacks
    scalar = isinstance(innermost(like), element_of(t).library.scalars)
    out = wrap_at(t, owned(inner, like if scalar else t))
    return out if t._node is None else mark(out)


def _owned_layer(values: list[Any], like: Any) -> Any:
    """Do the same as `owned` for a layer other than a Tensor.

    Such a layer is never written in place: a write gives it another value. So the result is another
    layer, unless nothing else refers to this one, and each of its parts is owned in turn.
    """
    sole = _references(values) <= SOLE
    x = values.pop()
    x._check()
    if not sole or x._view is not None:
        x = x._copied()
    scalar = isinstance(innermost(like), element_of(x).library.scalars)
    for name in x._parts:
        inner = [getattr(x, name)]
        if inner[0] is not None:
            setattr(x, name, None)
            setattr(x, name, owned(inner, like if scalar else x))
    return x


def _references(values: list[Any]) -> int:
    return sys.getrefcount(values[-1])


SOLE = -1 if SOLE_OWNER < 0 else _references([object()])
"""The result of `_references` if only the list holds the value.

It is below every count if counts prove nothing.
"""


def _is_sole(values: list[Any]) -> bool:
    """Whether only the list holds this Tensor, and its memory is not shared."""
    if _references(values) > SOLE:
        return False
    t = values[-1]
    if t._view is None:
        return type(t._node) is not AccumulateGrad
    base = [t._view[0]]  # a reshaped or transposed view shows all of it
    return (
        base[0].size == t.size
        and sys.getrefcount(base[0]) <= SOLE + 1
        and base[0]._view is None
        and type(base[0]._node) is not AccumulateGrad
    )


provide(tensor, backward=backward)
