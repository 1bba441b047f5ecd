"""Dual: an array with a tangent, the layer of forward mode.

An operation on Duals is the same operation on the primals, at the next inner level, and its jvp on
the tangents. The tangent has the primal's shape and dtype. None means zero, and is the only tangent
of integers and booleans. For complex arrays the tangent is the plain directional derivative, as in
PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import observe
from ..core import showing
from ..core.array_protocols import SCALAR, ArrayProtocols
from ..core.conversions import conversion
from ..core.element import SCALARS, Library, is_array, mixed
from ..core.level import Layer, Transformation, outside
from ..core.tensor import Tensor, detached, element_of, lifted, strip
from ..dispatch import codegen
from ..dispatch.conform import conform_tangent
from ..dispatch.general import (
    candidates,
    carried_out,
    for_each,
    general,
    lowered,
    outer,
    regrouped,
)
from ..dispatch.writer import write_by
from ..errors import GradientError, program
from ..observe import passed
from ..registry import Op
from .tangents import DualWriter
from .value_layer import ValueLayer, tie


class Dual(ValueLayer):
    """A primal with a tangent.

    Made by `multigrad.func.jvp` and similar functions, and by
    `multigrad.autograd.forward_ad.make_dual`.

    Its operators and methods are those of Tensor. An in-place operation replaces primal and
    tangent, and does not write to the array that it was made from. After the end of a level of
    forward_ad, its Duals count as their primals. A Dual of a transformation raises after the end of
    that transformation.
    """

    _differentiates = True
    __slots__ = ("_tangent",)
    _parts = ("_array", "_tangent")
    _tangent: Any

    @classmethod
    def _make(cls, primal: Any, tangent: Any, run: Transformation, level: int) -> Dual:
        x: Dual = cls._around(primal, run, level)
        x._tangent = tangent
        if isinstance(tangent, Layer) and not x._elem.layered:
            x._elem = x._elem.at(run, level, True, cls)
        return x

    def _take(self, value: Any) -> None:
        super()._take(value)
        self._tangent = value._tangent

    def _constant(self, x: Any) -> Dual:
        return Dual._make(x, None, self._run, self._level)

    def _copied(self, stop: bool = False) -> Dual:
        return self._constant(detached(self._array)) if stop else self._mapped(lambda x: x)

    def _mapped(self, function: Callable[[Any], Any]) -> Dual:
        return Dual._make(
            function(self._array),
            None if self._tangent is None else function(self._tangent),
            self._run,
            self._level,
        )

    def _moves(self) -> bool:
        return self._tangent is not None and not self._run.finished

    @classmethod
    def _refusing(cls, primal: Any, message: str, run: Transformation, level: int) -> Any:
        """A Dual with an unknown tangent: reading it, or computing with it, raises."""
        return cls._make(
            primal,
            Unknown._of(primal, message) if element_of(primal).floating else None,
            run,
            level,
        )

    @property
    def _forgets(self) -> bool:
        """Whether only the primal remains of it once its run is over."""
        return self._level == self._run.dual_level

    def _outlived(self) -> None:
        if not self._forgets:
            super()._outlived()

    @staticmethod
    def _apply(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        if top._run.finished:
            top._check()
            left = lambda x: x._array if type(x) is Dual and x._level == top._level else x
            return general(op, tuple(for_each(left, values)))
        inner, own = lowered(op, values, top)
        tangent = lambda x: None if x is None else x._tangent
        tangents = [
            t if any(x is not None for x in codegen.leaves((t,))) else None
            for t in for_each(tangent, codegen.of_arrays(op, own))
        ]
        ans, inner, library = carried_out(op, values, inner, top)
        inner = list(map(outer, values, inner))
        return _finish(op, library, inner, tangents, ans, top, values)

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        return application.pushed(values, top)

    @conversion
    def detach(self) -> Any:
        return super().detach() if not self._run.finished else self._left().detach()

    def _left(self) -> Any:
        """The value that remains after the level was left."""
        self._check()
        return self._array

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        if not self._run.finished:
            super()._refuse(what, fix, advice)
        self._left()._refuse(what, fix, advice)

    def _cast(self, kind: type) -> Any:
        self._check()
        if self._tangent is not None and not self._run.finished:
            warnings.warn(
                f"Converting a Dual with a tangent to a scalar by {kind.__name__}() drops the "
                f"tangent. Consider using dual.detach() first.{SCALAR}",
                UserWarning,
                stacklevel=program(),
            )
        return kind(self._array)

    def __repr__(self) -> str:
        finished = self._run.finished
        if not finished:
            self._check()
        parts = [showing.value(self._array)]
        if finished and not self._forgets:
            parts.append("leaked")
        elif not finished and self._tangent is not None:
            parts.append(f"tangent={showing.value(self._tangent)}")
        return f"Dual({', '.join(parts)})"


class Unknown(ArrayProtocols):
    """The tangent of an array whose tangent is unknown.

    Every operation on it raises, except those that need its shape only.
    """

    __slots__ = ("_array", "_cell", "_elem", "_message")
    _level = 1 << 62  # any operation belongs to it
    _node = None
    _message: str

    __hash__ = object.__hash__

    @classmethod
    def _of(cls, like: Any, message: str) -> Unknown:
        x = object.__new__(cls)
        x._array, x._elem, x._cell, x._message = like, element_of(like), [], message
        return x

    @staticmethod
    def _apply(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        if op.name == "zeros_like":
            return general(op, (top._array, *values[1:]))
        return top._check()

    def _check(self) -> None:
        raise GradientError(self._message)

    def _mapped(self, function: Callable[[Any], Any]) -> Unknown:
        return self

    def __repr__(self) -> str:
        return "Unknown()"


def _finish(
    op: Op,
    library: Library,
    inner: Sequence[Any],
    tangents: Sequence[Any],
    ans: Any,
    top: Any,
    values: Sequence[Any],
) -> Any:
    """Wrap the result of an operation in Duals of the level of `top`, with its tangents."""
    outs: Sequence[Any] = tuple(ans) if op.outputs != () else (ans,)
    moved: Sequence[Any] = (None,) * len(outs)
    if op.kind != "nondifferentiable" and any(t is not None for t in tangents):
        if not all(map(is_array, outs)):
            raise TypeError(
                f"{op.name}: the result is none of the arrays of the backend {library.name!r}, so "
                "the tangent would be lost"
            )
        if any(element_of(x).floating for x in outs):
            moved = pushed(op, library, inner, tangents, outs)
    duals = [
        Dual._make(x, t, top._run, top._level) if is_array(x) else x
        for x, t in zip(outs, moved, strict=True)
    ]
    tie(op, values, duals, top)
    return regrouped(op, ans, duals)


def with_scalars(op: Op, library: Library, values: Sequence[Any], out: Any) -> Sequence[Any]:
    """The values of an elementwise operation for its rules.

    A Python scalar becomes a 0-d array of the dtype of the result `out`.
    """
    if op.kind != "elementwise":
        return values
    return [
        codegen.constant_like(library, x, out) if role == "array" and type(x) in SCALARS else x
        for role, x in zip(op.roles.values(), values, strict=True)
    ]


def pushed(
    op: Op, library: Library, values: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> list[Any]:
    """The tangents of the outputs, by the rule of the operation.

    The rule runs on raw arrays, or, if a value or a tangent is itself a layer, on layers only. Then
    it gets constant Tensors of the base level as they are: nodes further in take their cells.
    """
    values = with_scalars(op, library, values, outs[0])
    bare = for_each(strip, values)
    xp, raw = library.xp, None
    layered = any(
        isinstance(x, Layer) for x in (*candidates(op, bare), *outs, *codegen.leaves(tangents))
    )
    if not layered:
        values = bare
    else:
        if op.kind == "elementwise" and not any(isinstance(x, Layer) for x in (*bare, outs[0])):
            raw = library.xp, bare, outs[0]
        xp = library.bound
        values = [
            x if role == "plain" else lifted(x)
            for role, x in zip(op.roles.values(), values, strict=True)
        ]
        tangents = [lifted(t) for t in tangents]
        outs = [lifted(x) for x in outs]
    with outside():
        tangent = observe.tangent(
            codegen.jvp, op, xp, values, tangents, outs[0] if op.outputs == () else tuple(outs), raw
        )
        moved = [
            conform_tangent(xp, t, x, op)
            for t, x in zip((tangent,) if op.outputs == () else tangent, outs, strict=True)
        ]
    return [strip(t) for t in moved] if layered else moved


write_by(DualWriter, Dual, Dual=Dual, finish=_finish, pushed=pushed)


def taken_apart(x: Any, run: Transformation) -> tuple[Any, Any]:
    """The value and tangent (or None) of a function's result, from outside of its level."""
    x._check()
    while isinstance(x, Tensor) and x._run is run:
        x = x._array
    return (x._array, x._tangent) if isinstance(x, Dual) and x._run is run else (x, None)


def check_tangent(primal: Any, tangent: Any, level: int, name: str) -> Any:
    """The tangent given for `primal` at a level, converted to its dtype.

    Raises if it cannot be the tangent of that primal.
    """
    tangent = passed(tangent)
    for x in (primal, tangent):
        if isinstance(x, Layer):
            x._check()
            if x._level >= level:
                raise GradientError(
                    f"{name}: an array of a transformation that began after this level cannot "
                    "be made a Dual of it; enter a level inside of that transformation"
                )
    elem, other = element_of(primal), element_of(tangent)
    for what, e in (("primal", elem), ("tangent", other)):
        if not e.floating:
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {e.dtype}. {name}: "
                f"convert the {what}, as by xp.astype(v, xp.float64)."
            )
    if other.library is not elem.library:
        raise mixed(name, elem.library, other.library)
    if tuple(tangent.shape) != tuple(primal.shape):
        raise GradientError(
            "Trying to set a forward gradient that has a different size than that of the "
            f"original Tensor, this is not supported. Tensor is of size {list(primal.shape)} "
            f"while the given forward gradient is of size {list(tangent.shape)}. {name}: each "
            "tangent has the shape of its primal."
        )
    if other is elem:
        return tangent
    if other.complex and not elem.complex:
        raise GradientError(
            f"{name}: the tangent of a real array must be real: the primal is of {elem.dtype}, "
            f"the tangent of {other.dtype}"
        )
    return (elem.library.bound if isinstance(tangent, Layer) else elem.library.xp).astype(
        tangent, elem.dtype
    )
