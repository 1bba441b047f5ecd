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
from typing import Any
from weakref import WeakSet

from ..backward import gradients
from ..core.conversions import conversion
from ..core.element import SCALARS, Library, common_library, is_array, mixed
from ..core.level import Guest, Layer, Transformation, outside, own_switch
from ..core.passes import Pass
from ..core.tensor import detached, element_of, lifted, peeled, strip
from ..dispatch.codegen import array_index, positions
from ..dispatch.general import (
    candidates,
    carried_out,
    named,
    outer,
    plain_scalars,
    resolve_composite,
    run_raw,
    same_structure,
)
from ..dispatch.signature import renew_by
from ..errors import BatchingError, GradientError, program
from ..provided import provide
from ..registry import Op, behind_batch, per_operation
from .batch_code import leading, namespace, raised, register
from .value_layer import ValueLayer, kind_of_layer, tie


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
        made = cls._around(x, run, level)
        made._given = True
        return made

    def _take(self, value: Any) -> None:
        self._array, self._elem = value._array, value._elem

    def _constant(self, x: Any) -> Batched:
        return Batched._around(repeated(x, self._array.shape[0]), self._run, self._level)

    def _copied(self, stop: bool = False) -> Batched:
        made = Batched._argument if hasattr(self, "_given") else Batched._around
        return made(detached(self._array) if stop else self._array, self._run, self._level)

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
        top._check()
        batching = op.batching
        if batching is not None:
            _same_for_all(op, values, top)
        if batching == "elementwise":
            ans = _elementwise(op, values, top)
        elif batching is None or _axis_of_a_scalar(op, values, top):
            ans = _one_by_one(op, values, top)
        elif batching == "axis" or batching == "leading":
            ans, _, _ = carried_out(op, _along(op, values, top), top)
        elif batching == "form":
            return _by_form(op, values, top)
        else:
            ans = _by_rule(op, values, top)
        return Batched._made(op, values, ans, top)

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        return application.batched(values, top)

    @staticmethod
    def _made(op: Op, values: Sequence[Any], ans: Any, top: Any) -> Any:
        """Wrap the result of an operation, `ans` for all examples."""
        if op.outputs == ():
            if not is_array(ans):
                return ans
            x = Batched._around(ans, top._run, top._level)
            if op.view is not False:
                tie(op, values, (x,), top, False)
            return x
        wrapped = [Batched._around(x, top._run, top._level) if is_array(x) else x for x in ans]
        if op.view is not False:
            tie(op, values, wrapped, top, True)
        return named(op, same_structure(ans, wrapped))

    # Operations that need the values of single examples

    def _cast(self, kind: type) -> Any:
        self._single(f"{kind.__name__}()")

    @conversion
    def __bool__(self) -> bool:
        self._single("bool()")
        raise AssertionError

    def __index__(self) -> int:
        self._single("an index")
        raise AssertionError

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

    def _single(self, what: str) -> None:
        self._check()
        raise BatchingError(
            f"{what} of an array inside vmap: it is a batch of {self._array.shape[0]} "
            "examples, whose values may differ. Instead of a branch on a value, choose between "
            "both results with where()."
        )

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        self._check()
        hint = (
            " To index a library's own array with it, make that a Tensor: multigrad.asarray(x)[i]."
            if what == "numpy()"
            else ""
        )
        raise GradientError(
            f"Can't call {what} on a batch: its value belongs to the transformation "
            f"{self._run.name!r}.{hint}{advice}"
        )

    def __repr__(self) -> str:
        if self._run.finished:
            return f"Batched(shape={self.shape}, leaked)"
        self._check()
        return f"Batched({self._array!r}, shape={self.shape})"


register(Batched)
renew_by(kind_of_layer, Batched)


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
    xp = namespace(x, element_of(x).library)
    return xp.broadcast_to(xp.expand_dims(x, axis=0), (size, *x.shape))


def _is_own(x: Any, top: Batched) -> bool:
    """Whether `x` is a batch of the level of `top`.

    Raises if it is of another backend, or its transformation has finished.
    """
    if not isinstance(x, Layer):
        return False
    if x._elem.library is not top._elem.library:
        raise mixed("vmap", top._elem.library, x._elem.library)
    if type(x) is not Batched or x._level != top._level:
        return False
    x._check()
    return True


@per_operation
def _plain(op: Op) -> tuple[tuple[int, str], ...]:
    """The parameters whose values are the same for all examples; only a key may be batched."""
    return tuple(
        (i, name)
        for i, (name, role) in enumerate(op.roles.items())
        if role == "plain" and name != "key"
    )


def _same_for_all(op: Op, values: Sequence[Any], top: Batched) -> None:
    """Raise if a batch is passed where no array is expected, as a shape or an axis."""
    for i, name in _plain(op):
        value = values[i]
        if any(_is_own(v, top) for v in (value if type(value) in (tuple, list) else (value,))):
            raise BatchingError(
                f"{op.name} inside vmap: the argument {name!r} must be the same for all "
                "examples, but it is a batch"
            )


# Kinds of operations


def _elementwise(op: Op, values: Sequence[Any], top: Batched) -> Any:
    """Run an elementwise operation: the batch comes first, examples are aligned at the end."""
    library: Library = top._elem.library
    inner = list(values)
    own = []
    ndim = 0
    simple = True  # all are raw arrays of this library, or scalars
    for i in array_index(op).values():
        x = values[i]
        if not isinstance(x, Layer):
            if type(x) in SCALARS or x is None:
                continue
            simple = False
            n = len(x.shape) if hasattr(x, "shape") else 0
        elif _is_own(x, top):
            x = inner[i] = x._array
            own.append(i)
            simple = simple and not isinstance(x, Layer)
            n = len(x.shape) - 1
        else:
            x = inner[i] = strip(x)
            simple = simple and not isinstance(x, Layer)
            n = len(x.shape)
        if n > ndim:
            ndim = n
    for i in own:
        inner[i] = raised(inner[i], library, ndim)
    if any(isinstance(x, Layer) for x in inner):
        inner = list(map(outer, values, inner))
    return run_raw(op, inner, library) if simple else carried_out(op, inner, top)[0]


def _along(op: Op, values: Sequence[Any], top: Batched) -> list[Any]:
    """The arguments of an operation on one array along axes, or of a matrix function."""
    inner = [v._array if _is_own(v, top) else v for v in values]
    if op.batching == "axis":
        place = positions(op)
        i = place["axis"] if "axis" in place else place["axes"]
        inner[i] = behind_batch(inner[i], top.ndim)
    elif top.ndim < 2:
        raise ValueError(
            f"{op.name}: expected matrices, but inside vmap got an array of shape {top.shape}"
        )
    return inner


def _by_form(op: Op, values: Sequence[Any], top: Batched) -> Any:
    """Run the standard-only form of an operation on the batches themselves."""
    layers = [
        v if role == "plain" else lifted(tuple(v) if role == "arrays" else v)
        for role, v in zip(op.roles.values(), values, strict=True)
    ]
    with outside():
        return named(op, resolve_composite(op)(top._elem.library.bound, *layers))


def _by_rule(op: Op, values: Sequence[Any], top: Batched) -> Any:
    """Run the batching rule of an operation.

    It runs on raw arrays, or, if a value is itself a layer, on layers only.
    """
    library: Library = top._elem.library
    batched: dict[str, Any] = {}
    inner: list[Any] = []
    layered = foreign = False  # whether there is a layer, an array from outside
    for (name, role), value in zip(op.roles.items(), values, strict=True):
        if role == "arrays" or type(value) is tuple:
            batched[name] = tuple(_is_own(v, top) for v in value)
            value = tuple(
                v._array if own else strip(v) for v, own in zip(value, batched[name], strict=True)
            )
            layered = layered or any(isinstance(v, Layer) for v in value)
            foreign = True
        elif isinstance(value, Layer):
            own = batched[name] = _is_own(value, top)
            value = value._array if own else strip(value)
            layered = layered or isinstance(value, Layer)
        else:
            batched[name] = False
            foreign = foreign or (role == "array" and type(value) not in SCALARS)
        inner.append(value)
    if layered:
        inner = list(map(outer, values, inner))
    if foreign and not layered:
        common_library(op.name, candidates(op, inner))  # raises if there are two
    xp = library.bound if layered else library.xp

    def given_as(x: Any, own: bool) -> Any:
        return leading(
            xp, x if own or layered or x is None else plain_scalars(x, library), own, layered
        )

    given: dict[str, Any] = {"xp": xp, "size": top._array.shape[0], "batched": batched}
    for (name, role), value in zip(op.roles.items(), inner, strict=True):
        if role == "array":
            given[name] = given_as(value, batched[name])
        elif role == "arrays":
            given[name] = tuple(map(given_as, value, batched[name]))
        elif layered:
            given[name] = lifted(value)
        else:
            given[name] = value
    rule = op.batching
    if not layered:
        return rule.fn(*[given[n] for n in rule.takes])
    with outside():
        results = rule.fn(*[given[n] for n in rule.takes])
    return (
        same_structure(results, [strip(x) for x in results]) if op.outputs != () else strip(results)
    )


_slow: WeakSet[Op] = WeakSet()  # those that have been warned of


def _axis_of_a_scalar(op: Op, values: Sequence[Any], top: Batched) -> bool:
    """Whether the axis 0 or -1 of 0-d examples is meant.

    Some functions of NumPy and PyTorch accept it. There is none behind the axis of the batch.
    """
    if "axis" not in op.roles or op.view is not False or not top._array.shape[0]:
        return False
    x, axis = values[0], values[positions(op)["axis"]]
    return _is_own(x, top) and not x.ndim and hasattr(axis, "__index__") and -1 <= axis <= 0


def _one_by_one(op: Op, values: Sequence[Any], top: Batched) -> Any:
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

    def example(x: Any, i: int) -> Any:
        if type(x) is tuple or type(x) is list:
            return tuple(example(v, i) for v in x)
        return x._array[i, ...] if _is_own(x, top) else x

    parts = [carried_out(op, [example(v, i) for v in values], top)[0] for i in range(n)]
    xp = namespace(parts[0][0] if op.outputs != () else parts[0], top._elem.library)
    if op.outputs == ():
        return xp.stack(parts)
    return same_structure(parts[0], [xp.stack(list(outs)) for outs in zip(*parts, strict=True)])


# Passes


def in_batches(differentiate: Callable[[list[Any]], Pass], given: Sequence[Any]) -> Pass:
    """Run one pass for many gradients of the same outputs, as a batch, and unwrap the results.

    None in `given` is the same for all examples. The level is above that of all Tensors. Arrays
    made by the user's hooks and functions belong to it, too, so that gradients can be written into
    them. The grad mode is that of an ordinary pass.
    """
    size: int = next(g.shape[0] for g in given if g is not None)
    run = Guest("grad", own_switch())

    def called() -> Pass:
        p = differentiate([None if g is None else batch(g, run) for g in given])
        assert p.targets is not None
        for node, g in p.targets.items():
            if g is not None:
                p.targets[node] = examples(peeled(g, run.own_level), run, size)
        return p

    return run.call(called)


provide(gradients, in_batches=in_batches)
