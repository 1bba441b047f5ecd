"""A user's function on one backend in one precision, and its reference on NumPy.

function_checks.py has the checks.

The reference is NumPy in float64: its values, and finite differences of them, depend on no
derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import multigrad as mg

from .differences import STEP
from .problem import inner, is_floating, numpy_target, random_like
from .scaled_differences import Partial, size_of, slopes
from .subject import PRECISIONS, Outputs, Subject
from .target import Target
from .tolerance import Tolerance, greatest, narrowest


class Reference:
    """NumPy's results for a function, at arguments of one precision.

    Values and derivatives are in float64; dtypes are those of the precision.
    """

    def __init__(self, subject: Subject) -> None:
        self.exact = subject
        self.wide = subject.at("float64")
        self._elements: dict[tuple[int, tuple[int, ...]], Any] = {}

    @cached_property
    def dtypes(self) -> list[Any]:
        """The dtype of each output in this precision, None for an output that is not an array."""
        out = self.exact.call(numpy_target(), tensors(numpy_target(), self.exact.arrays))
        return [getattr(y, "dtype", None) for y in to_numpy(numpy_target(), out)]

    @cached_property
    def outputs(self) -> Outputs:
        """The leaves of the result."""
        out = self.wide.call(numpy_target(), tensors(numpy_target(), self.wide.arrays))
        return [(name, y) for (name, _), y in zip(out, to_numpy(numpy_target(), out), strict=True)]

    @cached_property
    def smooth(self) -> list[Any]:
        """The floating outputs, which carry gradients."""
        return [y for _, y in self.outputs if is_floating(y)]

    @cached_property
    def cotangents(self) -> list[Any]:
        return [random_like(y, 101 + i) for i, y in enumerate(self.smooth)]

    @cached_property
    def tangents(self) -> list[Any]:
        return [random_like(x, 201 + i) * size_of(x) for i, x in enumerate(self.wide.arrays)]

    def results(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the floating outputs at other arguments."""
        return [
            y
            for y in to_numpy(
                numpy_target(), self.wide.call(numpy_target(), tensors(numpy_target(), arrays))
            )
            if is_floating(y)
        ]

    def loss(self, arrays: Sequence[Any]) -> Any:
        """Return the real inner product of the floating outputs with the cotangents.

        It is differentiated element by element.
        """
        return inner(self.cotangents, self.results(arrays))

    def first(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the gradients at other arguments, by the engine."""
        return gradients(self.wide, numpy_target(), arrays, self.cotangents)

    @cached_property
    def gradients(self) -> list[Any]:
        return self.first(self.wide.arrays)

    @cached_property
    def second(self) -> list[Any]:
        return second_gradients(
            self.wide, numpy_target(), self.wide.arrays, self.cotangents, self.tangents
        )

    @cached_property
    def cancels(self) -> bool:
        """Whether results or gradients are rounding errors: in float32 they have other digits.

        They may be exactly zero at the arguments, so a point beside these is tried as well.
        """
        beside = [x * (1 + 1e-3 * random_like(x, 301 + i)) for i, x in enumerate(self.wide.arrays)]
        try:
            return any(map(self._differs_in_float32, (self.wide.arrays, beside)))
        except Exception:  # it is no function of float32, or of arguments beside these
            return False

    def _differs_in_float32(self, arrays: Sequence[Any]) -> bool:
        target, narrow = numpy_target(), self.wide.at("float32")
        rounded = [x.astype(PRECISIONS["float32"][x.dtype.kind]) for x in arrays]
        arrays = [x.astype(wide.dtype) for x, wide in zip(rounded, arrays, strict=True)]
        with np.errstate(all="ignore"):
            exact = [*self.results(arrays), *self.first(arrays)]
            out = to_numpy(target, narrow.call(target, tensors(target, rounded)))
            found = gradients(narrow, target, rounded, self.cotangents)
        pairs = zip(exact, [*filter(is_floating, out), *found], strict=True)
        return any(np.any(_without_digits(x, y)) for x, y in pairs)

    @cached_property
    def scale(self) -> float:
        """The greatest result, or argument if something is zero by cancellation.

        Rounding errors are proportional to it.
        """
        leaves = [leaf.value for leaf in self.wide.leaves] if self.cancels else []
        return greatest(filter(is_floating, [*self.smooth, *leaves]))

    @property
    def cancelled(self) -> float:
        """The scale of the rounding errors of results that are zero by cancellation, else 0."""
        return self.scale if self.cancels else 0.0

    @cached_property
    def noise(self) -> float:
        """The rounding error of the differences of the loss."""
        terms = sum(y.size for y in self.smooth)
        return float(16 * np.finfo(np.float64).eps * np.sqrt(terms) * self.scale / STEP)

    def partial(self, which: int) -> Partial:
        return Partial(self.loss, self.wide.arrays, which)

    def element(self, which: int, at: tuple[int, ...]) -> Any:
        """Return the difference of the loss with respect to one element, with the first step."""
        if (which, at) not in self._elements:
            partial = self.partial(which)
            self._elements[which, at] = partial.at(at, partial.steps(at)[0])
        return self._elements[which, at]

    @cached_property
    def slopes(self) -> list[Any]:
        """The differences of the outputs along the tangents."""
        return slopes(self.results, self.wide.arrays, self.tangents)

    @cached_property
    def bends(self) -> list[Any]:
        """The differences of the gradients along the tangents."""
        return slopes(self.first, self.wide.arrays, self.tangents)


@dataclass(eq=False)
class Trial:
    """A function on one backend in one precision.

    with_differences  whether derivatives are also compared with differences
    """

    subject: Subject
    target: Target
    precision: str
    reference: Reference
    tolerance: Tolerance
    with_differences: bool

    @cached_property
    def gradients(self) -> list[Any]:
        return gradients(self.subject, self.target, self.subject.arrays, self.reference.cotangents)

    @cached_property
    def digits(self) -> str:
        """The precision of the digits that derivatives can have."""
        return narrowest(
            [
                *self.subject.arrays,
                *(y for y in to_numpy(self.target, self.outputs) if is_floating(y)),
            ],
            self.precision,
        )

    @cached_property
    def outputs(self) -> Outputs:
        return self.subject.call(self.target, tensors(self.target, self.subject.arrays))

    @property
    def scale(self) -> float:
        """The greatest number beside a gradient."""
        return max(greatest(self.reference.gradients), self.reference.scale)

    def assert_near(
        self, actual: Any, expected: Any, what: str, beside: str = "", **how: Any
    ) -> None:
        """Compare NumPy arrays in the digits that derivatives can have."""
        self.tolerance.assert_near(actual, expected, what, self.digits, beside=beside, **how)

    def raws(self, arrays: Sequence[Any]) -> list[Any]:
        return [self.target.raw(x) for x in arrays]

    def cast(self, arrays: Sequence[Any]) -> list[Any]:
        """Return NumPy arrays in this precision, as arrays of the library."""
        return [self.target.raw(self.target.cast(x)) for x in arrays]

    @property
    def names(self) -> list[str]:
        return [leaf.name for leaf in self.subject.differentiated]

    def function(
        self, constants: Sequence[Any] | None = None, smooth: bool = True
    ) -> Callable[..., Any]:
        """Return the function of the arrays to differentiate.

        It returns as a tuple its floating outputs, or all outputs that are arrays.
        """
        kept = is_floating_of if smooth else is_array_of

        def call(*xs: Any) -> Any:
            given = [mg.asarray(x) if self.target.is_raw(x) else x for x in xs]
            return tuple(
                [
                    y
                    for _, y in self.subject.call(self.target, given, constants)
                    if kept(self.target, y)
                ]
            )

        return call

    def pullback(self) -> Callable[..., Any]:
        """Return the gradients as a function of the arrays to differentiate."""
        smooth = [y for y in self.outputs if is_floating_of(self.target, y[1])]
        cotangents = tuple(
            like(self.target, g, y)
            for g, (_, y) in zip(self.reference.cotangents, smooth, strict=True)
        )

        def pulled(*xs: Any) -> Any:
            return mg.func.vjp(self.function(), *xs)[1](cotangents)

        return pulled


# ----- running a function -----


def tensors(target: Target, arrays: Sequence[Any], requires_grad: bool = False) -> list[Any]:
    return [mg.asarray(target.raw(x), requires_grad=requires_grad) for x in arrays]


def to_numpy(target: Target, outputs: Outputs) -> list[Any]:
    return [target.numpy(y) for _, y in outputs]


def is_array_of(target: Target, y: Any) -> bool:
    return isinstance(y, mg.Tensor) or hasattr(y, "__array_namespace__") or target.is_raw(y)


def is_floating_of(target: Target, y: Any) -> bool:
    return is_array_of(target, y) and target.dtype_name(y.dtype).startswith(("float", "complex"))


def _without_digits(wide: Any, narrow: Any) -> Any:
    """Return for each element whether float64 and float32 do not share a digit.

    Numbers that float32 may round to 0 share them.
    """
    if wide.shape != narrow.shape:
        return False
    with np.errstate(all="ignore"):
        comparable = np.isfinite(wide) & ((wide == 0) | (np.abs(wide) > 1e-30))
        return comparable & ~(np.abs(wide - narrow) <= 0.1 * np.abs(wide))


def gradients(
    subject: Subject,
    target: Target,
    arrays: Sequence[Any],
    cotangents: Sequence[Any],
    check: Any = None,
) -> list[Any]:
    """Return the gradients of Re<cotangents, outputs> for each array, as NumPy arrays.

    An array without a path to the outputs has gradient 0.
    """
    leaves = tensors(target, arrays, True)
    grads = backward(subject.call(target, leaves), target, leaves, cotangents)
    if check is not None:
        check(grads, leaves)
    return [target.numpy(g) for g in grads]


def backward(
    outputs: Outputs,
    target: Target,
    leaves: Sequence[Any],
    cotangents: Sequence[Any],
    recorded: bool = False,
) -> list[Any]:
    smooth = [y for _, y in outputs if is_floating_of(target, y)]
    moved = [
        (y, g)
        for y, g in zip(smooth, cotangents, strict=True)
        if getattr(y, "requires_grad", False)
    ]
    if not moved:
        return [mg.asarray(target.raw(np.zeros(x.shape, target.numpy(x).dtype))) for x in leaves]
    seeds = [like(target, g, y) for y, g in moved]
    return list(
        mg.autograd.grad(
            [y for y, _ in moved],
            leaves,
            grad_outputs=seeds,
            create_graph=recorded,
            allow_unused=True,
            materialize_grads=True,
        )
    )


def like(target: Target, g: Any, y: Any) -> Any:
    """Return a cotangent as an array of the library, with the dtype of the output."""
    return target.raw(g.astype(target.dtype_name(y.dtype)))


def second_gradients(
    subject: Subject,
    target: Target,
    arrays: Sequence[Any],
    cotangents: Sequence[Any],
    tangents: Sequence[Any],
) -> list[Any]:
    """Return the gradients of Re<tangents, gradients>, by reverse mode twice.

    By symmetry they are the derivative of the gradients along the tangents.
    """
    leaves = tensors(target, arrays, True)
    first = backward(subject.call(target, leaves), target, leaves, cotangents, recorded=True)
    kept = [
        (f, like(target, t, f)) for f, t in zip(first, tangents, strict=True) if f.requires_grad
    ]
    if not kept:
        return [np.zeros(x.shape, x.dtype) for x in arrays]
    seconds = mg.autograd.grad(
        [f for f, _ in kept],
        leaves,
        grad_outputs=[t for _, t in kept],
        allow_unused=True,
        materialize_grads=True,
    )
    return [target.numpy(s) for s in seconds]
