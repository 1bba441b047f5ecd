"""User-defined derivatives under Batched: by the user's vmap, or by generated batching.

Generated batching makes another operation, which is applied one level further in, to the values of
the batches. Its forward, backward and jvp call the user's methods with the arguments as Batched.
Its ctx keeps the inner values of whatever the user's methods keep. So the generated operation is
recorded, pushed forward and batched again like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..core.element import is_array
from ..core.level import Layer, Transformation, outside, own_switch
from ..core.tensor import Tensor, element_of, strip, wrap
from ..dispatch.conform import conform_gradient
from ..dispatch.general import same_structure
from ..errors import BatchingError, GradientError
from ..layers.batched import Batched, batch, examples, repeated
from .definition import Applied, Definition, call_forward, ctx_class, no_vmap
from .kept import Ctx, call_backward, each, lowered, rebuilt, value_in

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
    if rule.vmap is no_vmap:
        # only vmap requires a rule; a batched backward pass makes one
        if not rule.generate_vmap_rule and run.randomness is not None:
            raise BatchingError(
                f"You tried to vmap over {rule.__name__}, but it does not have vmap support. "
                "Please override and implement the vmap staticmethod or set "
                "generate_vmap_rule=True."
            )
        own = [isinstance(x, Batched) and x._elem.run is run for x in values]
        vmapped = Vmapped(application, own, run, top._array.shape[0])
        output = application.inside(lowered(values, own), rule=vmapped).output
        lifted = [batch(strip(x), run) if is_array(x) else x for x in each(output)]
        result: Applied = application.raised(Applied(output, None), lifted)
        return result._replace(ctx=vmapped.left(values, lifted)) if application.inner else result
    if rule.generate_vmap_rule:
        raise BatchingError(
            f"You tried to vmap over {rule.__name__}, but it has both generate_vmap_rule=True "
            "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
            "delete the overridden vmap staticmethod to avoid ambiguity."
        )
    return Applied(_by_method(rule, values, application.names, run, top._array.shape[0]), None)


# The user's vmap


def _by_method(
    cls: Any, values: Sequence[Any], names: tuple[str, ...], run: Transformation, size: int
) -> Any:
    n = len(values) - len(names)
    if any(_contains(x, run) for x in values[n:]):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass "
            "kwarg-only Tensors to autograd.Function. Got: "
            f"{dict(zip(names, values[n:], strict=True))}"
        )
    originals: dict[int, Any] = {}
    pairs = [_lowered(x, run, originals) for x in values[:n]]
    info = VmapInfo(size, run.randomness or "error")
    with outside():
        result = cls.vmap(
            info,
            tuple(dim for _, dim in pairs),
            *(x for x, _ in pairs),
            **dict(zip(names, values[n:], strict=True)),
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
    return _raised(output, dims, (cls.__name__, output, dims), size, run, originals)


def _contains(x: Any, run: Transformation) -> bool:
    if isinstance(x, (tuple, list, dict)):
        return any(_contains(v, run) for v in (x.values() if isinstance(x, dict) else x))
    return isinstance(x, Batched) and x._run is run


def _lowered(x: Any, run: Transformation, originals: dict[int, Any]) -> tuple[Any, Any]:
    """An argument as vmap gets it, and its batch axis: 0, None, or a structure of these."""
    if isinstance(x, dict):
        pairs = {key: _lowered(v, run, originals) for key, v in x.items()}
        return {key: v for key, (v, _) in pairs.items()}, {
            key: dim for key, (_, dim) in pairs.items()
        }
    if isinstance(x, (tuple, list)):
        parts = [_lowered(v, run, originals) for v in x]
        return same_structure(x, [v for v, _ in parts]), same_structure(
            x, [dim for _, dim in parts]
        )
    if not isinstance(x, Batched) or x._run is not run:
        return x, None
    value = value_in(x)
    originals[id(value)] = x
    return value, 0


def _raised(
    x: Any,
    dims: Any,
    all_of_it: tuple[str, Any, Any],
    size: int,
    run: Transformation,
    originals: dict[int, Any],
) -> Any:
    """The result of a user's `vmap`, with each batched array wrapped in a Batched.

    dims  the batch axis of each array, or None where it has none; a single value instead of a
          container applies to all arrays in the corresponding part of `x`
    """
    whole = dims is None or type(dims) is int
    if isinstance(x, (tuple, list)):
        if not whole and not (isinstance(dims, (tuple, list)) and len(dims) == len(x)):
            raise _incompatible(*all_of_it)
        each = [dims] * len(x) if whole else dims
        return same_structure(
            x,
            [_raised(v, d, all_of_it, size, run, originals) for v, d in zip(x, each, strict=True)],
        )
    if isinstance(x, dict):
        if not whole and not (isinstance(dims, dict) and set(dims) == set(x)):
            raise _incompatible(*all_of_it)
        return {
            key: _raised(v, dims if whole else dims[key], all_of_it, size, run, originals)
            for key, v in x.items()
        }
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
        raise BatchingError(
            f"{all_of_it[0]}: vmap returned an output of shape {tuple(x.shape)} with out_dims "
            f"{dims}, but the length of that axis is not {size}, the number of examples"
        )
    library = element_of(x).library
    if dims % ndim:
        x = (library.bound if isinstance(x, Layer) else library.xp).moveaxis(x, dims, 0)
    return batch(strip(x), run)


def _incompatible(name: str, output: Any, dims: Any) -> BatchingError:
    def shape(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: shape(v) for key, v in x.items()}
        return same_structure(x, [shape(v) for v in x]) if isinstance(x, (tuple, list)) else "*"

    return BatchingError(
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
        f"tuple. Expected out_dims={dims} to be compatible with the structure of `output`. "
        f"out_dims has structure {shape(dims)} but output has structure {shape(output)}. The "
        f"Function is {name}."
    )


# The generated one


_CTX = (
    "to_save",
    "saved_for_forward",
    "dirty_tensors",
    "non_differentiable",
    "materialize_grads",
)
"""The attributes of a ctx that are not the user's own."""


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
    flags          per attribute that forward has set on its ctx, which of it is batched (see
                   `_apart`)
    called         the arguments of the user's forward and its results, and its ctx, until the
                   application is complete
    """

    flags: dict[str, Any]
    arguments: list[tuple[int, ...] | None]
    called: tuple[Sequence[Any], Ctx]

    def __init__(
        self, application: Any, own: Sequence[bool], run: Transformation, size: int
    ) -> None:
        rule = self.rule = application.rule
        self.names, self.own, self.run, self.size = application.names, own, run, size
        self.__name__ = f"Vmapped{rule.__name__}"
        self._follows, self.asked = rule._follows, application.inner
        self.clear_saved_tensors_on_access = rule.clear_saved_tensors_on_access
        ctx = rule._backward_cls
        if ctx._vmapped is None:
            ctx._vmapped = ctx_class(self.__name__)
        self._backward_cls = ctx._vmapped

    def left(self, values: Sequence[Any], lifted: Sequence[Any]) -> Ctx:
        """Return the user's ctx for outer levels, and drop it here.

        Otherwise there would be a cycle: the values have a node, which refers to this object.
        """
        arrays, user = self.called
        del self.called
        return user._at(arrays, (*values, *lifted))

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
            self.called = (*layers, *outs), user
        known = {id(a): b for a, b in zip(layers, inner, strict=True) if is_array(a)}
        results = []
        for x in outs:
            if is_array(x) and id(x) not in known:
                known[id(x)] = examples(_value_inside(x, run), run, self.size)
            results.append(
                repeated(x, self.size) if is_array(x) and known[id(x)] is x else known.get(id(x), x)
            )
        self._keep(ctx, user, known)
        return same_structure(output, results) if isinstance(output, tuple) else results[0]

    def _keep(self, ctx: Any, user: Ctx, known: dict[int, Any]) -> None:
        """Put the inner values of what the user's methods keep on the ctx of this operation."""
        self.flags = {}
        for name, value in vars(user).items():
            if name == "non_differentiable":
                value = tuple(x for x in value if id(x) in known)
            inner, self.flags[name] = _apart(value, self.run, known)
            # the user's attribute may have the name of an attribute of ctx itself
            setattr(ctx, name if name in _CTX else f"kept_{name}", inner)

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
            given = [
                t if t is None or not mine else batch(strip(t), run)
                for t, mine in zip(tangents, self.own, strict=True)
            ]
            output = self.rule.jvp(user, *given)
            results = [
                examples(_value_inside(t, run), run, self.size) if is_array(t) else t
                for t in each(output)
            ]
            return tuple(results) if isinstance(output, tuple) else results[0]

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
            for name, flags in self.flags.items():
                if name not in _CTX:
                    setattr(user, name, _together(getattr(ctx, f"kept_{name}"), flags, run))
            user.materialize_grads = ctx.materialize_grads
            user._level = ctx._level
            user._saved = lambda: _together(
                tuple(ctx.saved_tensors), self.flags.get(saved) or [], run
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
        given = tuple(g.shape)
        if (
            given != shape
            and len(given) >= len(shape)
            and all(n in (1, m) for n, m in zip(reversed(shape), reversed(given), strict=False))
        ):
            g = conform_gradient(
                element_of(g).library.bound,
                g if isinstance(g, Layer) else wrap(g),
                shape,
                element_of(g).dtype,
            )
        if mine:
            return examples(g, run, self.size)
        return (
            element_of(g).library.bound.sum(g._array, axis=0)
            if isinstance(g, Batched) and g._run is run
            else g
        )


def _apart(x: Any, run: Transformation, known: dict[int, Any]) -> tuple[Any, Any]:
    """The next inner values of a value or a container, and flags that say which are batches.

    The flags are a bool for a value, and a list of flags for a container.
    """
    if isinstance(x, (tuple, list, dict)):
        pairs = [_apart(v, run, known) for v in (x.values() if isinstance(x, dict) else x)]
        return rebuilt(x, [v for v, _ in pairs]), [flag for _, flag in pairs]
    inner = _value_inside(x, run)
    mine = isinstance(inner, Batched) and inner._elem.run is run
    if isinstance(x, Layer) and not isinstance(inner, Layer):
        inner = wrap(inner)  # as the user's code has it
    value = known.get(id(x), inner._array if mine else inner)
    # every output becomes a batch, also one that is the same for all examples
    return value, mine or (value is not x and id(x) in known)


def _together(x: Any, flags: Any, run: Transformation) -> Any:
    """The inverse of `_apart`, for batches of a transformation that runs now."""
    if type(flags) is list:
        return rebuilt(
            x,
            [
                _together(v, flag, run)
                for v, flag in zip(x.values() if isinstance(x, dict) else x, flags, strict=True)
            ],
        )
    return batch(strip(x), run) if flags else x


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
