"""An autograd.Function under Batched: by its own vmap, or, where that is to be generated, by running all its methods on batches.

What is generated is another Function, of arrays one layer further in: its forward, backward and jvp call the user's with their arguments as
Batched, and keep on their ctx what the user's methods keep, taken apart. So it is recorded, pushed forward and batched once more as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..engine import grad_mode
from ..engine.custom import FunctionCtx
from ..engine.dispatch import _same_structure as same_structure
from ..engine.dispatch import is_array
from ..engine.kept import rebuilt, replaced
from ..engine.level import Layer, Run, outside
from ..engine.pullback import conform_gradient
from ..engine.tensor import Tensor, element_of, strip, wrap
from ..errors import BatchingError, GradientError
from .batched import Batched, repeated
from .batched_pass import batch, examples
from .custom import Applied
from .immutable import Immutable

T = TypeVar("T")
Apply = Callable[[Any, Sequence[Any], tuple[str, ...]], Applied]


class VmapInfo(NamedTuple):
    """What a vmap staticmethod is told: the number of examples, and the argument `randomness` of vmap."""

    batch_size: int
    randomness: str


def apply_batched(cls: Any, flat: Sequence[Any], names: tuple[str, ...], top: Batched, apply: Apply) -> Applied:
    """Apply the Function `cls` to arguments among which there are batches of the level of `top`; `apply` does so one layer further in."""
    top._check()
    own = cls.vmap is not cls._base().vmap
    if own and cls.generate_vmap_rule:
        raise BatchingError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
                            "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity.")
    if own:
        return _by_method(cls, flat, names, top)
    if not cls.generate_vmap_rule and top._run.randomness is not None:  # a batched backward pass asks nobody
        raise BatchingError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap "
                            "staticmethod or set generate_vmap_rule=True.")
    return _by_generated(cls, flat, names, top, apply)


# The user's vmap


def _by_method(cls: Any, flat: Sequence[Any], names: tuple[str, ...], top: Batched) -> Applied:
    n = len(flat) - len(names)
    if any(_contains(x, top._run) for x in flat[n:]):
        raise NotImplementedError("Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
                                  f"autograd.Function. Got: {dict(zip(names, flat[n:], strict=True))}")
    size = top._array.shape[0]
    originals: dict[int, Any] = {}
    pairs = [_lowered(x, top._run, originals) for x in flat[:n]]
    info = VmapInfo(size, top._run.randomness or "error")
    with outside():
        result = cls.vmap(info, tuple(dim for _, dim in pairs), *(x for x, _ in pairs), **dict(zip(names, flat[n:], strict=True)))
    expected = "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. "
    if not isinstance(result, tuple):
        raise BatchingError(f"{expected}Got a {type(result)} instead")
    if len(result) != 2:
        raise BatchingError(f"{expected}Got {len(result)} returns instead")
    output, dims = result
    return _raised(output, dims, (cls.__name__, output, dims), size, top, originals), (), None


def _contains(x: Any, run: Run) -> bool:
    if isinstance(x, (tuple, list, dict)):
        return any(_contains(v, run) for v in (x.values() if isinstance(x, dict) else x))
    return isinstance(x, Batched) and x._run is run


def _lowered(x: Any, run: Run, originals: dict[int, Any]) -> tuple[Any, Any]:
    """An argument as vmap gets it, one layer further in, and where its batch is: 0, None, or a structure of these."""
    if isinstance(x, dict):
        pairs = {key: _lowered(v, run, originals) for key, v in x.items()}
        return {key: v for key, (v, _) in pairs.items()}, {key: dim for key, (_, dim) in pairs.items()}
    if isinstance(x, (tuple, list)):
        parts = [_lowered(v, run, originals) for v in x]
        return same_structure(x, [v for v, _ in parts]), same_structure(x, [dim for _, dim in parts])
    if not isinstance(x, Batched) or x._run is not run:
        return x, None
    value = _value(x)
    originals[id(value)] = x
    return value, 0


def _value(x: Batched) -> Any:
    """The value one layer further in, as the user's functions get it: an object of its own, so that it is known again."""
    x._check()
    value = x._array
    if isinstance(value, Immutable):
        return value._copied()
    return value if isinstance(value, Layer) else wrap(value)


def _raised(x: Any, dims: Any, all_of_it: tuple[str, Any, Any], size: int, top: Batched, originals: dict[int, Any]) -> Any:
    """What vmap returned, with its batches as Batched. `dims`: where they are, an int or None for whole branches."""
    whole = dims is None or type(dims) is int
    if isinstance(x, (tuple, list)):
        if not whole and not (isinstance(dims, (tuple, list)) and len(dims) == len(x)):
            raise _incompatible(*all_of_it)
        each = [dims] * len(x) if whole else dims
        return same_structure(x, [_raised(v, d, all_of_it, size, top, originals) for v, d in zip(x, each, strict=True)])
    if isinstance(x, dict):
        if not whole and not (isinstance(dims, dict) and set(dims) == set(x)):
            raise _incompatible(*all_of_it)
        return {key: _raised(v, dims if whole else dims[key], all_of_it, size, top, originals) for key, v in x.items()}
    if not whole:
        raise _incompatible(*all_of_it)
    if not is_array(x):
        return x
    if id(x) in originals:
        return originals[id(x)]
    if dims is None:
        return x if isinstance(x, Layer) else wrap(x)
    ndim = len(x.shape)
    if not -ndim <= dims < ndim or x.shape[dims] != size:
        raise BatchingError(f"{all_of_it[0]}: vmap returned an output of shape {tuple(x.shape)} with out_dims {dims}, but that is no axis of "
                            f"{size} examples")
    host = element_of(x).host
    if dims % ndim:
        x = (host.bound if isinstance(x, Layer) else host.xp).moveaxis(x, dims, 0)
    return batch(strip(x), top._run)


def _incompatible(name: str, output: Any, dims: Any) -> BatchingError:
    def shape(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: shape(v) for key, v in x.items()}
        return same_structure(x, [shape(v) for v in x]) if isinstance(x, (tuple, list)) else "*"

    return BatchingError(f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected out_dims={dims} to "
                         f"be compatible with the structure of `output`. out_dims has structure {shape(dims)} but output has structure "
                         f"{shape(output)}. The Function is {name}.")


# The generated one


class Call:
    """One application of a Function to batches.

    own        per argument whether it is batched
    run        the transformation whose batches they are
    names      of the last arguments
    layers, returned, state   the arguments of the user's forward, what it returned, and what it left on its ctx
    """

    def __init__(self, own: Sequence[bool], run: Run, names: tuple[str, ...], size: int) -> None:
        self.own, self.run, self.names, self.size = own, run, names, size
        self.layers: list[Any] = []
        self.returned: tuple[Any, ...] = ()
        self.state: dict[str, Any] = {}


class Kept(NamedTuple):
    """What the ctx of a generated Function keeps besides what the user's methods do: what of that is batched (see `_apart`)."""

    call: Call
    saved: Any
    saved_for_forward: Any
    attributes: dict[str, Any]


class BatchCtx(FunctionCtx):
    """The ctx that the user's methods get."""

    needs_input_grad: tuple[bool, ...]
    _level: Any = None
    _source: Any = None
    _flags: Any = None
    _run: Any = None

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = _together(tuple(self._source.saved_tensors), self._flags, self._run)
        return found


def _by_generated(cls: Any, flat: Sequence[Any], names: tuple[str, ...], top: Batched, apply: Apply) -> Applied:
    own = [isinstance(x, Batched) and x._run is top._run for x in flat]
    call = Call(own, top._run, names, top._array.shape[0])
    found, _, _ = apply(_generated(cls), [call, *(_value(x) if mine else x for x, mine in zip(flat, own, strict=True))], ())
    results = found if isinstance(found, tuple) else (found,)
    lifted = [batch(strip(x), top._run) if is_array(x) else x for x in results]
    known = {id(a): b for a, b in zip((*call.layers, *call.returned), (*flat, *lifted), strict=True) if is_array(a)}
    state = {name: replaced(value, known) for name, value in call.state.items()}
    call.returned, call.state = (), {}  # the node keeps the call, and what was returned has that node
    return (same_structure(found, lifted) if isinstance(found, tuple) else lifted[0]), tuple(lifted), state


def _generated(cls: Any) -> Any:
    found = cls._vmapped
    if found is None:
        methods = {"forward": _forward, "backward": _backward, "jvp": _jvp}
        found = type(f"Vmapped{cls.__name__}", (cls._base(),),
                     {**{name: staticmethod(partial(method, cls)) for name, method in methods.items()}, "generate_vmap_rule": True,
                      "clear_saved_tensors_on_access": cls.clear_saved_tensors_on_access})
        cls._vmapped = found
    return found


def _on_examples(ctx: Any, flags: Any, method: Callable[[BatchCtx, Run], T]) -> T:
    """Run a method of the user's on batches, with the ctx that it gets, in the grad mode of now."""
    mode = grad_mode._variable().get()
    run = Run("vmap")

    def called() -> T:
        run.grad_mode.set(mode)
        return method(_restored(ctx, flags, run), run)

    return run.call(called)


def _forward(cls: Any, ctx: Any, call: Call, *inner: Any) -> Any:
    run = call.run
    layers = [batch(strip(x), run) if mine else x for x, mine in zip(inner, call.own, strict=True)]
    own = BatchCtx()
    own.needs_input_grad = ctx.needs_input_grad[1:]
    n = len(layers) - len(call.names)
    args, kwargs = layers[:n], dict(zip(call.names, layers[n:], strict=True))
    if cls._separate():
        output = cls.forward(*args, **kwargs)
        cls.setup_context(own, tuple(layers), output)
    else:
        output = cls.forward(own, *args, **kwargs)
    if own.dirty_tensors:
        raise GradientError(f"{cls.__name__}: mark_dirty is not supported inside vmap with generate_vmap_rule=True. Return a new array.")
    outs = output if isinstance(output, tuple) else (output,)
    call.layers, call.returned, call.state = layers, outs, {k: v for k, v in own.__dict__.items() if k != "needs_input_grad"}
    known = {id(a): b for a, b in zip(layers, inner, strict=True) if is_array(a)}
    found = []
    for x in outs:
        if is_array(x) and id(x) not in known:
            known[id(x)] = examples(_peeled(x, run), run, call.size)
        found.append(repeated(x, call.size) if is_array(x) and known[id(x)] is x else known.get(id(x), x))
    _keep(ctx, own, call, known)
    return same_structure(output, found) if isinstance(output, tuple) else found[0]


def _keep(ctx: Any, own: BatchCtx, call: Call, known: dict[int, Any]) -> None:
    """Put what the user's methods keep on the ctx of the generated Function, taken apart."""
    saved, of_saved = _apart(tuple(own.to_save or ()), call.run, known)
    pushed, of_pushed = _apart(tuple(own.saved_for_forward or ()), call.run, known)
    attributes = {}
    for name, value in own.__dict__.items():
        if name not in ("needs_input_grad", "to_save", "saved_for_forward", "dirty_tensors", "non_differentiable", "materialize_grads"):
            inner, attributes[name] = _apart(value, call.run, known)
            setattr(ctx, f"kept_{name}", inner)  # the user's attribute may have the name of one of the ctx itself
    ctx.save_for_backward(*saved)
    ctx.save_for_forward(*pushed)
    ctx.mark_non_differentiable(*(known[id(x)] for x in own.non_differentiable or () if id(x) in known))
    ctx.materialize_grads = own.materialize_grads
    ctx._kept = Kept(call, of_saved, of_pushed, attributes)


def _apart(x: Any, run: Run, known: dict[int, Any]) -> tuple[Any, Any]:
    """A value, or a tuple, list or dictionary of them, one layer further in, and what of it is a batch: a bool, or a list of these."""
    if isinstance(x, (tuple, list, dict)):
        pairs = [_apart(v, run, known) for v in (x.values() if isinstance(x, dict) else x)]
        return rebuilt(x, [v for v, _ in pairs]), [flag for _, flag in pairs]
    inner = _peeled(x, run)
    mine = isinstance(inner, Batched) and inner._run is run
    if isinstance(x, Layer) and not isinstance(inner, Layer):
        inner = wrap(inner)  # as the user's code has it
    found = known.get(id(x), inner._array if mine else inner)
    return found, mine or (found is not x and id(x) in known)  # an output that was the same for all examples is a batch as any


def _together(x: Any, flags: Any, run: Run) -> Any:
    """The inverse of `_apart`, for batches of a transformation that runs now."""
    if type(flags) is list:
        return rebuilt(x, [_together(v, flag, run) for v, flag in zip(x.values() if isinstance(x, dict) else x, flags, strict=True)])
    return batch(strip(x), run) if flags else x


def _peeled(x: Any, run: Run) -> Any:
    """The value of a Tensor that was created inside of the transformation, or, as a constant, inside of one that runs in it."""
    while isinstance(x, Tensor) and x._elem.run is not None and (x._run is run or (x._level > run.own_level and x._history is None)):
        x._check()
        x = x._array
    return x


def _restored(ctx: Any, flags: Any, run: Run) -> BatchCtx:
    """The ctx of the user's method that runs after forward."""
    kept: Kept = ctx._kept
    own = BatchCtx()
    for name, of_value in kept.attributes.items():
        setattr(own, name, _together(getattr(ctx, f"kept_{name}"), of_value, run))
    own.materialize_grads = ctx.materialize_grads
    own.needs_input_grad = ctx.needs_input_grad[1:]
    own._source, own._flags, own._run, own._level = ctx, flags, run, getattr(ctx, "_level", None)
    return own


def _backward(cls: Any, ctx: Any, *grads: Any) -> Any:
    kept: Kept = ctx._kept
    call = kept.call

    def pulled(own: BatchCtx, run: Run) -> list[Any]:
        given = [None if g is None else batch(strip(g), run) for g in grads]
        found = cls._backward()(own, given) if cls.boxed_grads_call else cls._backward()(own, *given)
        results = list(found) if isinstance(found, tuple) else [found]
        for i, (g, x, mine) in enumerate(zip(results, call.layers, call.own, strict=False)):
            if is_array(g):
                results[i] = _reduced(_peeled(g, run), x, mine, run, call.size)
        return results

    return (None, *_on_examples(ctx, kept.saved, pulled))


def _reduced(g: Any, argument: Any, mine: bool, run: Run, size: int) -> Any:
    """The gradient of an argument of the generated Function: of a batch a batch, otherwise the sum over the examples."""
    if not is_array(argument):
        return g
    shape = tuple(argument._array.shape[1:]) if mine else tuple(argument.shape)
    given = tuple(g.shape)
    if given != shape and len(given) >= len(shape) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(given), strict=False)):
        g = conform_gradient(element_of(g).host.bound, g if isinstance(g, Layer) else wrap(g), shape, element_of(g).dtype)
    if mine:
        return examples(g, run, size)
    return element_of(g).host.bound.sum(g._array, axis=0) if isinstance(g, Batched) and g._run is run else g


def _jvp(cls: Any, ctx: Any, _: Any, *tangents: Any) -> Any:
    kept: Kept = ctx._kept
    call = kept.call

    def pushed(own: BatchCtx, run: Run) -> Any:
        given = [t if t is None or not mine else batch(strip(t), run) for t, mine in zip(tangents, call.own, strict=True)]
        found = cls.jvp(own, *given)
        results = [examples(_peeled(t, run), run, call.size) if is_array(t) else t for t in (found if isinstance(found, tuple) else (found,))]
        return tuple(results) if isinstance(found, tuple) else results[0]

    return _on_examples(ctx, kept.saved_for_forward, pushed)
