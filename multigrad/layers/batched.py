"""Batched: many examples of an array at once, the layer of vmap.

The value of a Batched at the next inner level has the batch as its first axis. To the user's code a
Batched looks like one example: this holds for its shape, its indices and its axes. An operation on
Batched arrays is the same operation on the inner values, for all examples, with arguments that are
changed as its declaration says (`Op.batching`). Elementwise operations align their operands after
the batch axis, reductions count their axes from the one after it, and matrix functions support
batches already. A value that is not a Batched of this level is the same for all examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn
from weakref import WeakSet

from ..backends import own as own_arrays
from ..backward import gradients
from ..core.conversions import conversion
from ..core.element import Library, common_library, is_array
from ..core.level import Guest, Layer, Transformation, outside, own_switch
from ..core.passes import Pass
from ..core.tensor import detached, lifted, peeled, strip
from ..dispatch.codegen import array_index, leaves, positions
from ..dispatch.general import (
    by_form,
    candidates,
    carried_out,
    for_each,
    lowered,
    named,
    outer,
    plain_scalars,
    regrouped,
    same_structure,
)
from ..dispatch.writer import write_by
from ..errors import BatchingError, program
from ..provided import provide
from ..registry import Op, Rule, behind_batch
from .batch_code import BatchWriter, leading, raised, strip_each
from .dual import Dual, Unknown
from .transforming import namespace
from .value_layer import ValueLayer, tie


class Batched(ValueLayer):
    """The examples of a batch, seen as one example. Made by `multigrad.func.vmap`.

    Its operators and methods are those of Tensor. An in-place operation replaces the value, and
    does not write to the array that it was made from. Operations that depend on the values of
    single examples, such as `bool(x)` or indexing with a mask, raise BatchingError.
    """

    __slots__ = ("_given",)
    _noun = "batch"
    _several = True
    _given: bool
    """For an argument of vmap, True: the layout of its examples is that of the caller's array."""

    @classmethod
    def _argument(cls, x: Any, run: Transformation, level: int) -> Batched:
        layer = cls._around(x, run, level)
        layer._given = True
        return layer

    def _constant(self, x: Any) -> Batched:
        return Batched._around(repeated(x, self._array.shape[0]), self._run, self._level)

    def _copied(self, stop: bool = False) -> Batched:
        around = Batched._argument if hasattr(self, "_given") else Batched._around
        return around(detached(self._array) if stop else self._array, self._run, self._level)

    def _mapped(self, function: Callable[[Any], Any]) -> Batched:
        return Batched._around(function(self._array), self._run, self._level)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self._array.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self._array.shape) - 1

    @property
    def size(self) -> int | None:
        product: int = prod(self._array.shape[1:])
        return product

    @staticmethod
    def _apply(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        inner, own = lowered(op, values, top)
        batching, arguments = op.batching, values
        if batching is not None:
            _same_for_all(op, own)
        if batching == "form":
            with outside():
                return named(op, by_form(op, values, top))
        if batching is None or _axis_of_a_scalar(op, values, own, top):
            ans = _one_by_one(op, values, inner, own, top)
        elif isinstance(batching, Rule):
            ans = _by_rule(op, values, inner, own, top)
        else:
            if batching == "elementwise":
                _align(op, inner, own, top)
            elif batching == "axis":
                place = positions(op)
                i = place["axis"] if "axis" in place else place["axes"]
                inner[i] = behind_batch(inner[i], top.ndim)
                arguments = (*values[:i], inner[i], *values[i + 1 :])  # it may be a Tensor, too
            elif top.ndim < 2:
                raise ValueError(
                    f"{op.name}: expected matrices, but inside vmap got an array of shape "
                    f"{top.shape}"
                )
            ans, _, _ = carried_out(op, arguments, inner, top)
        return Batched._made(op, values, ans, top)

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        return application.batched(values, top)

    @staticmethod
    def _made(op: Op, values: Sequence[Any], ans: Any, top: Any) -> Any:
        """Wrap the result of an operation, `ans` for all examples."""
        outs = ans if op.outputs != () else (ans,)
        wrapped = [Batched._around(x, top._run, top._level) if is_array(x) else x for x in outs]
        tie(op, values, wrapped, top)
        return regrouped(op, ans, wrapped)

    # Operations that need the values of single examples

    def _cast(self, kind: type) -> Any:
        self._single(f"{kind.__name__}()")

    @conversion
    def __bool__(self) -> bool:
        self._single("bool()")

    def __index__(self) -> int:
        self._single("an index")

    @conversion
    def item(self) -> Any:
        self._single("item()")

    @conversion
    def tolist(self) -> Any:
        self._single("tolist()")

    @property
    @conversion
    def array(self) -> Any:
        """Raises BatchingError: the stored array is a whole batch, not the value of one example."""
        self._check()
        raise BatchingError(
            "array of an array inside vmap: it is one example, and the stored array is a "
            f"batch of {self._array.shape[0]}. Compute with the array itself, which has the "
            "operators and, by its __array_namespace__(), the functions of the standard; a "
            "Function that computes outside of multigrad can define vmap()."
        )

    def _single(self, what: str) -> NoReturn:
        self._check()
        raise BatchingError(
            f"{what} of an array inside vmap: it is a batch of {self._array.shape[0]} "
            "examples, whose values may differ. Instead of a branch on a value, choose between "
            "both results with where()."
        )

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        hint = (
            " To index a library's own array with it, make that a Tensor: multigrad.asarray(x)[i]."
            if what == "numpy()"
            else ""
        )
        super()._refuse(what, fix, hint + advice)

    def __repr__(self) -> str:
        if self._run.finished:
            return f"Batched(shape={self.shape}, leaked)"
        self._check()
        return f"Batched({self._array!r}, shape={self.shape})"


write_by(BatchWriter, Batched, Batched=Batched, made=Batched._made)


def batch(x: Any, run: Transformation) -> Batched:
    """Wrap an array, whose first axis counts examples, in a Batched."""
    return Batched._around(x._frozen() if isinstance(x, Layer) else x, run, run.own_level)


def examples(x: Any, run: Transformation, size: int) -> Any:
    """All examples of `x` as one array at the next inner level, the examples along the first axis.

    A value that is not a batch of `run` is repeated for each example.
    """
    if isinstance(x, Batched) and x._elem.run is run:
        x._check()
        return x._array
    return repeated(x, size)


def repeated(x: Any, size: int) -> Any:
    """A batch of `size` examples that are all `x`."""
    xp = namespace(x)
    return xp.broadcast_to(xp.expand_dims(x, axis=0), (size, *x.shape))


def _same_for_all(op: Op, own: Sequence[Any]) -> None:
    """Raise if a batch is passed where no array is expected, as a shape or an axis.

    Only a key may be batched.
    """
    for (name, role), x in zip(op.roles.items(), own, strict=True):
        if role == "plain" and name != "key" and any(y is not None for y in leaves((x,))):
            raise BatchingError(
                f"{op.name} inside vmap: the argument {name!r} must be the same for all "
                "examples, but it is a batch"
            )


# Kinds of operations


def _align(op: Op, inner: list[Any], own: Sequence[Any], top: Batched) -> None:
    """Align the axes of examples at the end, by axes of length 1 behind the batch."""
    indexes = array_index(op).values()
    ndim = max(len(getattr(inner[i], "shape", ())) - (own[i] is not None) for i in indexes)
    for i in indexes:
        if own[i] is not None:
            inner[i] = raised(inner[i], top._elem.library, ndim)


def _by_rule(
    op: Op, values: Sequence[Any], inner: Sequence[Any], own: Sequence[Any], top: Batched
) -> Any:
    """Run the batching rule of an operation.

    It runs on raw arrays, or, if a value is itself a layer, on layers only.
    """
    library: Library = top._elem.library
    layered = any(isinstance(x, Layer) for x in candidates(op, inner))
    if layered:
        inner = list(map(outer, values, inner))
    else:
        common_library(op.name, candidates(op, inner))  # raises if there are two
    xp = library.bound if layered else library.xp
    batched = for_each(lambda x: x is not None, own)

    def given_as(x: Any, is_own: bool) -> Any:
        if is_own:
            return lifted(x) if layered else x
        return leading(xp, x if layered else plain_scalars(x, library), layered)

    arguments = {"xp": xp, "size": top._array.shape[0], "batched": dict(zip(op.roles, batched))}
    for (name, role), x, is_own in zip(op.roles.items(), inner, batched, strict=True):
        arguments[name] = (
            given_as(x, is_own)
            if role == "array"
            else tuple(map(given_as, x, is_own))
            if role == "arrays"
            else lifted(x)
            if layered
            else x
        )
    rule = op.batching
    if not layered:
        return rule.fn(*[arguments[n] for n in rule.takes])
    with outside():
        ans = rule.fn(*[arguments[n] for n in rule.takes])
    return strip_each(ans) if op.outputs != () else strip(ans)


_slow: WeakSet[Op] = WeakSet()  # those that have been warned of


def _axis_of_a_scalar(op: Op, values: Sequence[Any], own: Sequence[Any], top: Batched) -> bool:
    """Whether the axis 0 or -1 of 0-d examples is meant.

    Some functions of NumPy and PyTorch accept it. There is none behind the axis of the batch.
    """
    if "axis" not in op.roles or op.view is not False or not top._array.shape[0]:
        return False
    axis = values[positions(op)["axis"]]
    return (
        isinstance(own[0], Batched)
        and not own[0].ndim
        and hasattr(axis, "__index__")
        and -1 <= axis <= 0
    )


def _one_by_one(
    op: Op, values: Sequence[Any], inner: Sequence[Any], own: Sequence[Any], top: Batched
) -> Any:
    """Compute the examples one after the other.

    The operation has no rule, or its rule does not apply to these arguments.
    """
    n = top._array.shape[0]
    if op.batching is None and not n:
        raise BatchingError(
            f"{op.name}: there is no batching rule for this operation, and the batch has no "
            "example to compute it for"
        )
    if op.batching is None and op not in _slow:
        _slow.add(op)
        warnings.warn(
            f"the operation {op.name!r} has no batching rule, so vmap computes its {n} examples "
            "one by one, which is slow. Declare it with batching=, see multigrad.registry.",
            UserWarning,
            stacklevel=program(),
        )

    def example(x: Any, layer: Any, i: int) -> Any:
        if type(layer) is tuple:
            return tuple([example(*pair, i) for pair in zip(x, layer, strict=True)])
        return x if layer is None else x[i, ...]

    parts = []
    for i in range(n):
        part = [example(*pair, i) for pair in zip(inner, own, strict=True)]
        parts.append(carried_out(op, values, part, top)[0])
    xp = namespace(parts[0][0] if op.outputs != () else parts[0])
    if op.outputs == ():
        return xp.stack(parts)
    return same_structure(parts[0], [xp.stack(list(outs)) for outs in zip(*parts, strict=True)])


# Passes


def in_batches(differentiate: Callable[[list[Any]], Pass], cotangents: Sequence[Any]) -> Pass:
    """Run one pass for many gradients of the same outputs, as a batch, and unwrap the results.

    None in `cotangents` is the same for all examples. The level is above that of all Tensors.
    Arrays made by the user's hooks and functions belong to it, too, so that gradients can be
    written into them. The grad mode is that of an ordinary pass.
    """
    size: int = next(g.shape[0] for g in cotangents if g is not None)
    run = Guest("grad", own_switch())

    def called() -> Pass:
        p = differentiate([None if g is None else batch(g, run) for g in cotangents])
        assert p.targets is not None
        for node, g in p.targets.items():
            if g is not None:
                p.targets[node] = examples(peeled(g, run.own_level), run, size)
        return p

    return run.call(called)


provide(gradients, in_batches=in_batches)
provide(own_arrays, stand_ins=lambda: (Dual, Unknown, Batched))
