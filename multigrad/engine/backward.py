"""The backward pass, and `backward` and `grad` on top of it. Their meaning is that of torch.autograd's."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from ..errors import GradientError
from . import grad_mode, level
from . import tensor as _tensor
from .dispatch import innermost, is_array
from .graph import FREED, AccumulateGrad, MultiNode, Node, Pick, check_versions, last_write, tick
from .hooks import run_hooks, run_post_accumulate
from .level import Layer
from .tensor import LayeredTensor, Tensor, _new, element_of, wrap, wrap_at

_accumulating = threading.Lock()


class Pass:
    """One backward pass: what it keeps, where it stops, what it returns.

    keep     whether saved values stay for another pass
    create   whether the pass itself is recorded
    level    the level whose graph is differentiated
    targets  nodes whose gradient is asked for, with it once it is known; None: accumulate into the leaves
    needed   the nodes on the way to a target; None: all
    """

    __slots__ = ("create", "keep", "like", "needed", "raw", "targets", "through")

    def __init__(self, like: Tensor, keep: bool, create: bool, targets: dict[Node, Any] | None, others: bool = False) -> None:
        self.like = like
        self.keep = keep
        self.create = create
        self.targets = targets
        self.needed: set[Node] | None = None
        self.through = others
        self.raw = not create and type(like) is not LayeredTensor  # every value of this pass is a raw array


def run(roots: Sequence[tuple[Node, Any]], p: Pass) -> None:
    """Run the pass: highest number first, each node once, its gradient summed over all its uses.

    Most nodes are the next to run as soon as their child has: they are followed without touching the heap.
    """
    keep, targets, needed = p.keep, p.targets, p.needed
    raw = p.raw
    heap: list[tuple[int, Node]] = []
    buffers: dict[Node, Any] = {}
    owned: set[Node] = set()

    def deliver(node: Node, g: Any) -> None:
        """Add `g` to what the node has received. The second contribution makes a new array, later ones are added in place."""
        if node not in buffers:
            buffers[node] = g
            heappush(heap, (-node.seq, node))
        elif raw and node in owned:
            total = buffers[node]
            total += g
            buffers[node] = total
        else:
            buffers[node] = buffers[node] + g
            owned.add(node)

    node: Any = None  # a Node, or None while it is being chosen
    if len(roots) == 1:
        node, g = roots[0]
    else:
        for root, gradient in roots:
            deliver(root, gradient)
    found: Any = None
    while True:
        if node is None:
            if not heap:
                return
            node = heappop(heap)[1]
            g = buffers.pop(node)
        kind = type(node)
        if kind is not Node:
            box = [g]  # the only reference: a leaf may keep what nobody else holds
            g = found = gradient = None
            if kind is AccumulateGrad and targets is None and not node.extra.hooks:
                accumulate(node, box, p)
                node = None
                continue
            g, go_on = _special(node, kind, box, p, heap, buffers)
            if not go_on:
                node = None
                continue
        elif targets is not None and node in targets:
            targets[node] = g
            if not p.through and (needed is None or not _leads_on(node, needed)):
                node = None
                continue
        saved = node.saved
        rule = node.rule
        if saved is None:
            raise GradientError(FREED)
        if node.seq < last_write[0] and node.cells is not None:
            check_versions(node)
        found = rule.vjp(node.host.xp, g, *saved) if raw else _lifted(node, g, p)
        if not keep and rule.saves:
            node.saved = node.cells = None
        parents = node.next
        if rule.single:
            if found is None or (needed is not None and parents not in needed):
                node = None
                continue
            node, g = parents, found
        else:
            node = None  # the youngest parent, which may be the next to run
            for parent, gradient in zip(parents, found):  # noqa: B905 - one each, by construction
                if gradient is None or (needed is not None and parent not in needed):
                    continue
                if node is None:
                    node, g = parent, gradient
                elif parent.seq > node.seq:
                    deliver(node, g)
                    node, g = parent, gradient
                elif parent is node:
                    deliver(node, g)
                    deliver(node, gradient)
                    node = None
                else:
                    deliver(parent, gradient)
            if node is None:
                continue
        if heap and node.seq <= -heap[0][0]:
            deliver(node, g)
            node = None


def _special(node: Node, kind: type, box: list[Any], p: Pass, heap: list[Any], buffers: dict[Node, Any]) -> tuple[Any, bool]:
    """What comes before a node that is no plain Node; says whether its rule runs now."""
    if kind is not MultiNode and (node.extra.hooks or node.extra.retain):
        box[0] = run_hooks(node, box[0], p)
    if p.targets is not None and node in p.targets:
        p.targets[node] = box[0]
        if not p.through and (p.needed is None or not _leads_on(node, p.needed)):
            return None, False
    if kind is AccumulateGrad:
        if p.targets is None or (p.through and node not in p.targets):
            accumulate(node, box, p)  # type: ignore[arg-type]
        return None, False
    g = box[0]
    if kind is Pick:
        _collect(node, g, heap, buffers, p)  # type: ignore[arg-type]
        return None, False
    return (tuple(g) if kind is MultiNode else g), True


def _leads_on(node: Node, needed: set[Node]) -> bool:
    """Whether another target lies behind this one."""
    parents = node.next if isinstance(node.next, tuple) else (node.next,)
    return any(parent in needed for parent in parents)


def _collect(pick: Pick, g: Any, heap: list[Any], buffers: dict[Node, Any], p: Pass) -> None:
    node = pick.next
    if p.needed is not None and node not in p.needed:
        return
    if node not in buffers:
        buffers[node] = [None] * len(node.picks)
        heappush(heap, (-node.seq, node))
    before = buffers[node][pick.number]
    buffers[node][pick.number] = g if before is None else before + g


def _lifted(node: Node, g: Any, p: Pass) -> Any:
    """Run the rule of a node on layers: under create_graph, or where the value of a Tensor is itself a layer."""
    rule = node.rule
    saved = node.saved
    assert saved is not None
    if not p.create and not _any_layer(g) and not _any_layer(saved):
        return rule.vjp(node.host.xp, g, *saved)
    lifted = [_lift(node, value, source, p) for value, source in zip(saved, rule.sources, strict=True)]
    xp = node.host.bound
    if isinstance(node, MultiNode):
        g = tuple(None if x is None else _constant(x) for x in g)
    else:
        g = _constant(g)
    found = rule.vjp(xp, g, *lifted)
    if p.create:
        return found
    return _strip(found) if rule.single else tuple(_strip(x) for x in found)


def _any_layer(values: Any) -> bool:
    if isinstance(values, (tuple, list)):
        return any(_any_layer(v) for v in values)
    return isinstance(values, Layer)


def _constant(x: Any) -> Any:
    return x if isinstance(x, Layer) else wrap(x)


def _strip(x: Any) -> Any:
    """A base-level Tensor without a history is its raw array."""
    return x._array if isinstance(x, Tensor) and x._level == 1 and x._node is None else x


def _lift(node: Node, value: Any, source: Any, p: Pass) -> Any:
    """A saved value as a layer; under create_graph an argument comes back on the edge it came from, an output on its node."""
    if source is None:
        return value
    if isinstance(value, tuple) and source and isinstance(source[0], tuple):
        return tuple(_lift(node, v, s, p) for v, s in zip(value, source, strict=True))
    if isinstance(value, tuple):  # all outputs of a node with several
        return tuple(_lift(node, v, ("out", i), p) for i, v in enumerate(value))
    if not hasattr(value, "dtype"):
        return value
    if not p.create:
        return _constant(value)
    t = wrap_at(p.like, value)
    kind, number = source
    if kind == "out":
        if t._elem.floating:  # indices among the outputs are constants
            t._node = node.pick(number) if isinstance(node, MultiNode) else node
    elif number is not None:
        t._node = node.next[number] if isinstance(node.next, tuple) else node.next
    return t


def accumulate(node: AccumulateGrad, box: list[Any], p: Pass) -> None:
    """Add the gradient in `box` to a leaf's: in place in an ordinary pass, by a new Tensor in one that is recorded."""
    leaf = node.tensor()
    if leaf is None or not node.enabled:
        return
    cell = node.cell
    with _accumulating:
        before = cell.grad
        if p.raw:
            if before is None:
                host = leaf._elem.host
                cell.grad = _plain(host.own(host.xp, box.pop(), leaf._array), leaf)
            else:
                _add_in_place(before, box.pop())
        else:
            g = box[0]
            given: Any = g if isinstance(g, Tensor) and g._level >= leaf._level else wrap_at(leaf, g)
            if before is None:
                cell.grad = given
            elif p.create:
                cell.grad = before + given
            else:
                with grad_mode.no_grad():
                    cell.grad = before + given
    if node.extra.post_accumulate:
        run_post_accumulate(node, leaf)


def _plain(array: Any, leaf: Tensor) -> Tensor:
    t = _new(Tensor)
    t._array = array
    t._elem = leaf._elem if array.dtype == leaf._elem.dtype else element_of(array)
    t._cell = []
    t._node = None
    return t


def _add_in_place(before: Tensor, g: Any) -> None:
    before._check()
    total = before._array
    total += g
    before._array = total
    before._cell.append(tick())
    last_write[0] = before._cell[-1]


# The functions users call


def _sequence(x: Any) -> list[Any]:
    return [x] if x is None or is_array(x) or not isinstance(x, Iterable) else list(x)


def _roots(outputs: list[Any], grads: list[Any], create: bool) -> tuple[list[tuple[Node, Any]], Tensor]:
    """The nodes where the pass starts with their gradients, and the output of the highest level."""
    if len(grads) != len(outputs):
        raise GradientError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for i, t in enumerate(outputs):
        if not isinstance(t, Tensor):
            raise TypeError(f"element {i} of tensors is of type {type(t).__name__}; expected a multigrad Tensor. "
                            "For raw arrays, use multigrad.func.grad.")
        t._check()
        if t._node is None:
            raise GradientError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    top: Tensor = max(outputs, key=lambda t: t._level)
    roots = []
    for i, (t, g) in enumerate(zip(outputs, grads, strict=True)):
        if t._level != top._level:
            raise GradientError(f"element {i} of tensors belongs to another transformation than the other outputs; differentiate them apart")
        value = seed(t) if g is None else check_gradient(t, g, i)
        if create:
            value = value if isinstance(value, Layer) and value._level >= t._level else wrap_at(t, value)
        elif isinstance(value, Tensor) and value._level == t._level:
            value = value._array
        roots.append((t._node, value))
    return roots, top


NOT_SCALAR = "grad can be implicitly created only for scalar outputs"


def seed(t: Tensor) -> Any:
    """The implicit gradient 1 of a real scalar."""
    if t.size != 1:
        raise GradientError(NOT_SCALAR)
    if t._elem.complex:
        raise GradientError(f"grad can be implicitly created only for real scalar outputs but got {t.dtype}")
    host = t._elem.host
    if isinstance(t._array, Layer):
        return _strip(host.bound.ones_like(t._array))
    if not t.shape:
        return host.constant(host.xp, 1, t._elem.dtype, host.device(host.xp, t._array))
    return host.xp.ones_like(t._array)


def check_gradient(t: Tensor, g: Any, i: int) -> Any:
    """The given gradient of output `i`, of its shape and dtype; real dtypes are converted."""
    if not isinstance(g, Layer):
        try:
            element_of(g)
        except TypeError:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}") from None
        g = wrap_at(t, g)
    if tuple(g.shape) != tuple(t.shape):
        raise GradientError(f"Mismatch in shape: grad_output[{i}] has a shape of {tuple(g.shape)} and output[{i}] has a shape of {tuple(t.shape)}.")
    elem = element_of(g)
    if elem.host is not t._elem.host:
        raise GradientError(f"Mismatch in backend: grad_output[{i}] is of {elem.host.name!r} and output[{i}] of {t._elem.host.name!r}. "
                            f"Convert it with .to_backend({t._elem.host.name!r}).")
    if elem is t._elem:
        return g
    if elem.complex or t._elem.complex:
        raise GradientError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                            f"grad_output[{i}] has a dtype of {elem.dtype} and output[{i}] has a dtype of {t.dtype}.")
    return elem.host.bound.astype(g, t.dtype)


_warned = [False]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Compute the sum of the gradients of `tensors` with respect to the leaves and add it to their `.grad`.

    tensors       one Tensor or a sequence; an element that is not a real scalar needs its gradient in `grad_tensors`
    grad_tensors  a sequence of the same length: arrays or Tensors of the shapes of `tensors`, or None
    retain_graph  keep what was saved, for another pass; default: the value of `create_graph`
    create_graph  record the pass itself, so that it can be differentiated again
    inputs        accumulate only into these Tensors (which need not be leaves)

    As torch.autograd.backward. Raises RuntimeError where that does.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if type(tensors) is Tensor and grad_tensors is None and inputs is None and not create_graph and tensors._node is not None:
        run_pass([(tensors._node, seed(tensors))], Pass(tensors, bool(retain_graph), False, None))
        return
    wanted = _inputs(inputs, "backward")
    outputs = _sequence(tensors)
    if not outputs:
        return
    if create_graph and not _warned[0]:
        _warned[0] = True
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
                      "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
                      "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the "
                      "leak.", UserWarning, stacklevel=2)
    given = _sequence(grad_tensors) if grad_tensors is not None else [None] * len(outputs)
    roots, top = _roots(outputs, given, create_graph)
    p = Pass(top, create_graph if retain_graph is None else retain_graph, create_graph, None)
    if wanted is None:
        _refuse_outer(roots, top)
        run_pass(roots, p)
        return
    for t in wanted:
        t.retain_grad()
    p.targets = {t._node: None for t in wanted if t._node is not None}
    run_pass(roots, p)
    for node, g in p.targets.items():
        if g is not None and type(node) is AccumulateGrad:
            accumulate(node, [g], p)


def run_pass(roots: list[tuple[Node, Any]], p: Pass) -> None:
    """Run a pass with its own level's grad mode as hooks and custom functions expect it: on where the pass is recorded."""
    if p.targets is not None and p.needed is None and not p.through:
        p.needed = survey(roots, p.targets)
    variable = p.like._run.inner if type(p.like) is LayeredTensor else grad_mode._base
    before = variable.get()
    variable.set(p.create)
    try:
        run(roots, p)
    finally:
        variable.set(before)


def _refuse_outer(roots: Sequence[tuple[Node, Any]], top: Tensor) -> None:
    """Inside a transformation, gradients must not land in the leaves of an outer level as a side effect."""
    if level.running() is None or type(top) is not LayeredTensor:
        return
    x = top._array
    while isinstance(x, Layer):
        if isinstance(x, Tensor) and x._node is not None and getattr(x, "_run", None) is not top._run:
            raise GradientError("backward() inside a transformation would not reach the outer Tensor that the result also depends on. Name the "
                                "Tensors with inputs=, or use multigrad.autograd.grad.")
        x = x._array


def _inputs(inputs: Any, name: str) -> list[Tensor] | None:
    if inputs is None:
        return None
    found = _sequence(inputs)
    if not found:
        raise GradientError(f"`inputs` argument to `{name}()` cannot be empty.")
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"inputs of {name}() must be Tensors, not {type(t).__name__}. For raw arrays, use multigrad.func.grad.")
    return found


def survey(roots: Sequence[tuple[Node, Any]], targets: Mapping[Node, Any]) -> set[Node]:
    """The nodes from which a target can be reached, targets included."""
    lowest = min(node.seq for node in targets)
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if node in seen or node.seq < lowest:
            continue
        seen.add(node)
        order.append(node)
        parents = node.next
        stack += parents if isinstance(parents, tuple) else (parents,)
    needed = set(targets)
    for node in sorted(order, key=lambda n: n.seq):
        parents = node.next
        if node not in needed and any(q in needed for q in (parents if isinstance(parents, tuple) else (parents,))):
            needed.add(node)
    return needed


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> Any:
    """Return the sum of the gradients of `outputs` with respect to each of `inputs`, without touching `.grad`.

    outputs, grad_outputs  as `tensors` and `grad_tensors` of `backward`
    inputs                 one Tensor, a sequence, or a dictionary (then a dictionary is returned); leaves or not
    allow_unused           return None for an input that the outputs do not depend on, instead of raising
    materialize_grads      return zeros for such an input

    Returns a tuple of Tensors, of the shapes, dtypes and backends of the inputs. As torch.autograd.grad.
    """
    if is_grads_batched:
        raise NotImplementedError("is_grads_batched=True needs batching, which multigrad does not have yet; call grad() once per row of grad_outputs")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated (defaults to True). Use backward() to accumulate into the other leaves; "
                      "here they are accumulated into, as documented for only_inputs=False.", FutureWarning, stacklevel=2)
    if isinstance(inputs, Mapping):
        values = grad(outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, False, materialize_grads)
        return dict(zip(inputs, values, strict=True))
    wanted = _inputs(inputs, "grad")
    if wanted is None:
        raise TypeError("grad() needs inputs: a Tensor or a sequence of Tensors to differentiate with respect to")
    given_outputs = _sequence(outputs)
    given = _sequence(grad_outputs) if grad_outputs is not None else [None] * len(given_outputs)
    if not given_outputs:
        raise GradientError("grad requires non-empty outputs")
    roots, top = _roots(given_outputs, given, create_graph)
    for t in wanted:
        if t._node is None:
            raise GradientError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    p = Pass(top, keep, create_graph, {t._node: None for t in wanted if t._node is not None}, others=not only_inputs)
    run_pass(roots, p)
    return tuple(_result(t, p, i, bool(allow_unused), materialize_grads) for i, t in enumerate(wanted))


def _result(t: Tensor, p: Pass, i: int, allow_unused: bool, materialize: bool) -> Tensor | None:
    assert p.targets is not None and t._node is not None
    g = p.targets[t._node]
    if g is None:
        if materialize:
            host = t._elem.host
            zeros: Tensor = host.bound.zeros_like(t)
            return zeros.requires_grad_() if p.create else zeros
        if not allow_unused:
            raise GradientError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this "
                                "is the desired behavior.")
        return None
    if isinstance(g, Tensor) and g._level >= t._level:
        return g
    if not isinstance(g, Layer):
        host = t._elem.host
        g = host.place(host.xp, g, innermost(t))
    return wrap_at(t, g)


_tensor._backward = backward
