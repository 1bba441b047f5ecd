"""User-defined derivatives under Batched: by the user's vmap, or by generated batching.

Generated batching makes another operation, which is applied one level further in, to the values of
the batches. Its forward, backward and jvp call the user's methods with the arguments as Batched.
Its ctx keeps the inner values of whatever the user's methods keep. So the generated operation is
recorded, pushed forward and batched again like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from .. import tree
from ..core.element import is_array
from ..core.level import Layer, Transformation, outside, own_switch
from ..core.tensor import Tensor, element_of, strip, wrap
from ..dispatch.conform import conform_gradient, is_larger
from ..errors import BatchingError, GradientError
from ..layers.batched import Batched, batch, examples, repeated
from ..layers.transforming import namespace
from .definition import Applied, Definition, call_forward, ctx_class, no_vmap
from .kept import Ctx, FunctionCtx, arranged, call_backward, each, lowered, mapped, value_in

T = TypeVar("T")


class VmapInfo(NamedTuple):
    """The first argument of a vmap staticmethod: the number of examples, and `randomness`."""

    batch_size: int
    randomness: str


def under_batch(application: Any, values: Sequence[Any], top: Batched) -> Applied:
    """Apply a rule to arguments that include batches of the level of `top`."""
    top._check()
    rule = application.rule
    run: Transformation = top._elem.run  # type: ignore[assignment]
    size = top._array.shape[0]
    if rule.vmap is not no_vmap:
        if rule.generate_vmap_rule:
            raise BatchingError(
                f"You tried to vmap over {rule.__name__}, but it has both generate_vmap_rule=True "
                "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
                "delete the overridden vmap staticmethod to avoid ambiguity."
            )
        return Applied(_by_method(rule, values, application.names, run, size), None)
    # only vmap requires a rule; a batched backward pass makes one
    if not rule.generate_vmap_rule and run.randomness is not None:
        raise BatchingError(
            f"You tried to vmap over {rule.__name__}, but it does not have vmap support. "
            "Please override and implement the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )
    own = [isinstance(x, Batched) and x._elem.run is run for x in values]
    vmapped = Vmapped(application, own, run, size)
    output = application.inside(lowered(values, own), rule=vmapped).output
    lifted = [batch(strip(x), run) if is_array(x) else x for x in each(output)]
    ctx = None
    if application.inner:
        user, arrays = vmapped.called
        # Otherwise there would be a cycle: the values have a node, which refers to `vmapped`.
        del vmapped.called
        ctx = user._at(arrays, (*values, *lifted))
    return Applied(arranged(output, lifted), ctx)


# The user's vmap


def _by_method(
    cls: Any, values: Sequence[Any], names: tuple[str, ...], run: Transformation, size: int
) -> Any:
    def is_batch(x: Any) -> bool:
        return isinstance(x, Batched) and x._run is run

    n = len(values) - len(names)
    named = dict(zip(names, values[n:], strict=True))
    if any(map(is_batch, tree.leaves(named))):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass "
            f"kwarg-only Tensors to autograd.Function. Got: {named}"
        )
    originals: dict[int, Any] = {}

    def lower(x: Any) -> Any:
        if not is_batch(x):
            return x
        value = value_in(x)
        originals[id(value)] = x
        return value

    args = tuple(values[:n])
    in_dims = mapped(lambda x: 0 if is_batch(x) else None, args)
    with outside():
        result = cls.vmap(
            VmapInfo(size, run.randomness or "error"), in_dims, *tree.mapped(lower, args), **named
        )
    expected = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims "
        "with pytree structure compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise BatchingError(f"{expected}Got a {type(result)} instead")
    if len(result) != 2:
        raise BatchingError(f"{expected}Got {len(result)} returns instead")
    output, dims = result
    outs, structure = tree.flattened(output)
    try:
        flat_dims = tree.prefixed(output, dims)
    except ValueError:
        flat_dims = [dims]
    if not all(dim is None or type(dim) is int for dim in flat_dims):
        structures = [tree.replaced(lambda _: "*", x) for x in (dims, output)]
        raise BatchingError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {structures[0]} but output has structure {structures[1]}. The "
            f"Function is {cls.__name__}."
        )
    lifted = [
        originals[id(x)]
        if id(x) in originals
        else _raised(cls.__name__, x, dim, run, size)
        if is_array(x)
        else x
        for x, dim in zip(outs, flat_dims, strict=True)
    ]
    return tree.built(structure, lifted)


def _raised(name: str, x: Any, dim: int | None, run: Transformation, size: int) -> Any:
    """An array that a user's `vmap` returned, as a Batched if it has a batch axis `dim`."""
    if dim is None:
        return x if isinstance(x, Layer) else wrap(x)
    ndim = len(x.shape)
    if not -ndim <= dim < ndim or x.shape[dim] != size:
        raise BatchingError(
            f"{name}: vmap returned an output of shape {tuple(x.shape)} with out_dims "
            f"{dim}, but the length of that axis is not {size}, the number of examples"
        )
    if dim % ndim:
        x = namespace(x).moveaxis(x, dim, 0)
    return batch(strip(x), run)


# The generated one


class Vmapped(Definition):
    """The operation that `generate_vmap_rule` makes for one application to batches.

    It applies the user's operation to all examples at once, on the values one level further in.

    rule           the user's operation
    own            per argument whether it is batched
    run, size      the transformation of the batches, and the number of examples
    names          the names of the last arguments
    asked          whether there is an outer level, which needs what the user's forward sets on its
                   ctx
    arguments      per argument its shape; None for an argument that is not an array
    flags          per attribute of FunctionCtx that forward has set, and for "kept", which has all
                   others: of each value in it, whether it is a batch
    called         the ctx of the user's forward, its arguments and its results, until the
                   application is complete
    """

    flags: dict[str, list[bool]]
    arguments: list[tuple[int, ...] | None]
    called: tuple[Ctx, Sequence[Any]]

    def __init__(
        self, application: Any, own: Sequence[bool], run: Transformation, size: int
    ) -> None:
        rule = self.rule = application.rule
        self.names, self.own, self.run, self.size = application.names, own, run, size
        self.__name__ = f"Vmapped{rule.__name__}"
        self._follows, self.asked = rule._follows, application.inner
        self.clear_saved_tensors_on_access = rule.clear_saved_tensors_on_access
        self._backward_cls = ctx_class(self.__name__)

    def forward(self, ctx: Any, *inner: Any) -> Any:
        rule, run = self.rule, self.run
        layers = [
            batch(strip(x), run) if mine else x for x, mine in zip(inner, self.own, strict=True)
        ]
        self.arguments = [tuple(x.shape) if is_array(x) else None for x in layers]
        user = Ctx(ctx.needs_input_grad)
        output = call_forward(rule, self.names, user, layers)
        if user.dirty_tensors:
            raise GradientError(
                f"{rule.__name__}: mark_dirty is not supported inside vmap with "
                "generate_vmap_rule=True. Return a new array."
            )
        outs = each(output)
        if self.asked:
            self.called = user, (*layers, *outs)
        values = {id(a): b for a, b in zip(layers, inner, strict=True) if is_array(a)}
        results = []
        for x in outs:
            if is_array(x) and id(x) not in values:
                values[id(x)] = examples(_value_inside(x, run), run, self.size)
            value = values.get(id(x), x)
            results.append(repeated(x, self.size) if is_array(x) and value is x else value)
        if user.non_differentiable:
            user.non_differentiable = [x for x in user.non_differentiable if id(x) in values]
        # the user's attributes may have the names of attributes of ctx itself
        attributes: dict[str, Any] = {"kept": {}}
        for name, attribute in vars(user).items():
            (attributes if hasattr(FunctionCtx, name) else attributes["kept"])[name] = attribute
        self.flags = {}
        for name, attribute in attributes.items():
            lower = partial(_lowered, run, values, self.flags.setdefault(name, []))
            setattr(ctx, name, mapped(lower, attribute))
        return arranged(output, results)

    def backward(self, ctx: Any, *grads: Any) -> Any:
        def pulled(user: Ctx, run: Transformation) -> list[Any]:
            output = call_backward(
                self.rule, user, [None if g is None else batch(strip(g), run) for g in grads]
            )
            results = list(each(output))
            for i, (g, shape, mine) in enumerate(
                zip(results, self.arguments, self.own, strict=False)
            ):
                if is_array(g):
                    results[i] = self._reduced(_value_inside(g, run), shape, mine, run)
            return results

        return tuple(self._on_examples(ctx, "to_save", pulled))

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        def pushed(user: Ctx, run: Transformation) -> Any:
            output = self.rule.jvp(
                user,
                *(
                    t if t is None or not mine else batch(strip(t), run)
                    for t, mine in zip(tangents, self.own, strict=True)
                ),
            )
            results = [
                examples(_value_inside(t, run), run, self.size) if is_array(t) else t
                for t in each(output)
            ]
            return arranged(output, results)

        return self._on_examples(ctx, "saved_for_forward", pushed)

    def _on_examples(self, ctx: Any, saved: str, method: Callable[[Ctx, Transformation], T]) -> T:
        """Run a method of the user on batches of a new level.

        It gets its own ctx, and runs in the present grad mode.

        saved  the attribute by which forward has saved the arrays that it gets
        """
        mode = own_switch().get()
        run = Transformation("vmap")

        def called() -> T:
            run.grad_mode.set(mode)
            user = Ctx(ctx.needs_input_grad, ctx)
            vars(user).update(_batched(run, self.flags["kept"], ctx.kept))
            user.materialize_grads = ctx.materialize_grads
            user._level = ctx._level
            user._saved = lambda: _batched(
                run, self.flags.get(saved) or [], tuple(ctx.saved_tensors)
            )
            return method(user, run)

        return run.call(called)

    def _reduced(
        self, g: Any, shape: tuple[int, ...] | None, mine: bool, run: Transformation
    ) -> Any:
        """The gradient of an argument of this shape.

        It is a batch if the argument is; otherwise it is the sum over the examples.
        """
        if shape is None:
            return g
        library, dims = element_of(g).library, tuple(g.shape)
        if dims != shape and is_larger(dims, shape):
            g = g if isinstance(g, Layer) else wrap(g)
            g = conform_gradient(library.bound, g, shape, element_of(g).dtype)
        if mine:
            return examples(g, run, self.size)
        if isinstance(g, Batched) and g._run is run:
            return library.bound.sum(g._array, axis=0)
        return g


def _lowered(run: Transformation, values: dict[int, Any], flags: list[bool], x: Any) -> Any:
    """The next inner value of a value on the user's ctx. `flags` gets whether it is a batch."""
    inner = _value_inside(x, run)
    mine = isinstance(inner, Batched) and inner._elem.run is run
    if isinstance(x, Layer) and not isinstance(inner, Layer):
        inner = wrap(inner)  # as the user's code has it
    value = values.get(id(x), inner._array if mine else inner)
    # every output becomes a batch, also one that is the same for all examples
    flags.append(mine or (value is not x and id(x) in values))
    return value


def _batched(run: Transformation, flags: Sequence[bool], x: Any) -> Any:
    """The inverse of `_lowered` for all values in `x`, for a transformation that runs now."""
    batches = iter(flags)
    return mapped(lambda value: batch(strip(value), run) if next(batches) else value, x)


def _value_inside(x: Any, run: Transformation) -> Any:
    """The value of a Tensor that was created inside of the transformation.

    A Tensor of another transformation that runs inside of this one is a constant.
    """
    while (
        isinstance(x, Tensor)
        and x._elem.run is not None
        and (x._elem.run is run or (x._elem.level > run.own_level and x._history is None))
    ):
        x._check()
        x = x._array
    return x
