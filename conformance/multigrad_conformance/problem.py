"""A sample prepared for one operation, with the reference results of NumPy and of differences.

Everything here is computed in float64 or complex128.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

import array_api_compat.numpy
import numpy as np

import multigrad as mg
from multigrad import extend
from multigrad.registry import OPS, Op, Rule, on_declaration

from .differences import along, gradient, gradient_apart
from .sample import OWN_DEVICE, DType, Sample, is_array, mapped
from .target import Target, call


@cache
def bare() -> Any:
    return extend.raw_namespace(
        mg.Backend("numpy", array_api_compat.numpy, (np.ndarray, np.generic))
    )


@cache
def numpy_target() -> Target:
    return Target("numpy")


class Problem:
    """An operation with NumPy arguments for all of its parameters, in order.

    `project`, `finish` and `reference` are those of the sample.
    """

    def __init__(
        self,
        op: Op,
        values: Sequence[Any],
        names: tuple[str, ...],
        label: str,
        project: Mapping[str, Callable[[Any], Any]] | None = None,
        finish: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
    ) -> None:
        self.op = op
        self.values = list(values)
        self.label = label
        self.names = names
        self.project = project or {}
        self.finish = finish
        self.reference = reference
        self.places = tuple(self._places(names))

    @classmethod
    def of(cls, op: Op, sample: Sample, cast: Callable[[Any], Any] = lambda v: v) -> Problem:
        """Return the problem of a sample, with its arguments cast to another precision."""
        bound = op.signature.bind(*sample.args, **sample.kwargs)
        bound.apply_defaults()
        values = [mapped(cast, v) for v in bound.arguments.values()]
        names = (
            sample.differentiable
            if sample.differentiable is not None
            else differentiable(op, values)
        )
        return cls(op, values, names, sample.label, sample.project, sample.finish, sample.reference)

    def _places(self, names: tuple[str, ...]) -> Iterator[tuple[int, int | None]]:
        index = {name: i for i, name in enumerate(self.op.roles)}
        for name in names:
            value = self.values[index[name]]
            if self.op.roles[name] == "arrays":
                yield from ((index[name], j) for j, v in enumerate(value) if is_floating(v))
            elif is_floating(value):
                yield index[name], None

    def leaves(self) -> list[Any]:
        """The arrays to differentiate with respect to."""
        return [self.values[i] if j is None else self.values[i][j] for i, j in self.places]

    def replaced(self, arrays: Sequence[Any], values: Sequence[Any] | None = None) -> list[Any]:
        """Return the values of all parameters, with `arrays` in place of the leaves."""
        result = list(self.values if values is None else values)
        for (i, j), a in zip(self.places, arrays, strict=True):
            result[i] = (
                a if j is None else type(result[i])((*result[i][:j], a, *result[i][j + 1 :]))
            )
        return result

    def at(self, values: Sequence[Any]) -> Problem:
        """Return the same problem with other values."""
        return Problem(
            self.op, values, self.names, self.label, self.project, self.finish, self.reference
        )

    def projected(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the leaves after the sample's projection onto the function's domain."""
        names = list(self.op.roles)
        return [
            self.project[names[i]](a) if names[i] in self.project else a
            for (i, _), a in zip(self.places, arrays, strict=True)
        ]

    @cached_property
    def wide(self) -> Problem:
        """The same problem in float64 and complex128."""
        return self.at([mapped(widened, v) for v in self.values])

    # ----- NumPy -----

    def forward(self, arrays: Sequence[Any] | None = None) -> Any:
        """Return NumPy's outputs, as a tuple if there are several."""
        values = self.values if arrays is None else self.replaced(self.projected(arrays))
        with np.errstate(all="ignore"):
            out = self._function(mapped(_numpy_value, tuple(values)))
        return out if self.op.outputs == () else tuple(out)

    @cached_property
    def _function(self) -> Callable[[Sequence[Any]], Any]:
        """Return the function that carries the operation out in NumPy."""
        if self.reference is not None:
            return partial(_applied, self.reference)
        if self.op.beyond and hasattr(np, self.op.name):
            return partial(_numpys_own, self.op)
        return partial(call, self.op, _bare_function(self.op))

    def finished(self, xp: Any, out: Any) -> Any:
        """Return the well-defined part of the outputs, by the sample's `finish`."""
        if self.finish is None:
            return out
        return self.finish(xp, *(out if isinstance(out, (tuple, list)) else (out,)))

    def results(self, arrays: Sequence[Any] | None = None) -> list[Any]:
        """Return what is differentiated, in NumPy: the floating outputs after `finish`."""
        with np.errstate(all="ignore"):
            return floating_of(self.finished(bare(), self.forward(arrays)))

    @cached_property
    def outputs(self) -> list[Any]:
        """The floating outputs in NumPy, which carry gradients."""
        return self.results()

    @cached_property
    def cotangents(self) -> list[Any]:
        return [random_like(y, 101 + i) for i, y in enumerate(self.outputs)]

    @cached_property
    def tangents(self) -> list[Any]:
        return [random_like(x, 201 + i) for i, x in enumerate(self.leaves())]

    # ----- finite differences -----

    @cached_property
    def difference_gradients(self) -> list[Any]:
        """Return the gradient of Re<cotangents, outputs> for each leaf, element by element.

        For z = a + ib it is dL/da + i dL/db.
        """
        return self._difference_gradients(slice(None))

    def gradients_of_output(self, i: int) -> list[Any]:
        """Return what `difference_gradients` does, for one output alone."""
        return self._difference_gradients(slice(i, i + 1))

    def _difference_gradients(self, part: slice) -> list[Any]:
        leaves = self.leaves()
        apart = self._elements_apart()

        def loss(k: int, x: Any) -> Any:
            results = self.results([*leaves[:k], x, *leaves[k + 1 :]])[part]
            if apart:
                return sum(
                    (
                        np.real(np.conj(g) * y)
                        for g, y in zip(self.cotangents[part], results, strict=True)
                    ),
                    start=np.zeros(x.shape),
                )
            return inner(self.cotangents[part], results)

        return [
            (gradient_apart if apart else gradient)(partial(loss, k), leaf)
            for k, leaf in enumerate(leaves)
        ]

    def _elements_apart(self) -> bool:
        """Return whether each output element depends on only one element of each leaf.

        All elements can then be varied at once.
        """
        shapes = {np.shape(x) for x in (*self.leaves(), *self.outputs)}
        return (
            self.op.batching == "elementwise"
            and self.finish is None
            and not self.project
            and len(shapes) == 1
        )

    @cached_property
    def difference_tangents(self) -> list[Any]:
        """The derivative of the outputs along the tangents."""
        return along(self.results, self.leaves(), self.tangents)

    # ----- the engine on NumPy -----

    @cached_property
    def numpy_gradients(self) -> list[Any]:
        return gradients(numpy_target(), self, self.cotangents)

    @cached_property
    def difference_second(self) -> list[Any]:
        """Return the gradient of Re<tangents, gradients> for each leaf.

        By symmetry it is the derivative of the gradients along the tangents.
        """

        def first(arrays: Sequence[Any]) -> list[Any]:
            return gradients(
                numpy_target(), self.at(self.replaced(self.projected(arrays))), self.cotangents
            )

        return along(first, self.leaves(), self.tangents)


def _applied(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    return function(*values)


def _bare_function(op: Op) -> Any:
    function: Any = bare()
    for part in op.name.split("."):
        function = getattr(function, part)
    return function


def _numpys_own(op: Op, values: Sequence[Any]) -> Any:
    """Return the result of NumPy's function of that name, for an operation beyond the standard.

    It is called without arguments that have their default value.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p, value in zip(op.signature.parameters.values(), values, strict=True):
        if p.kind is p.VAR_POSITIONAL:
            args += value
        elif p.kind is p.POSITIONAL_ONLY or (p.default is p.empty and not kwargs):
            args.append(value)
        elif value is not p.default:
            kwargs[p.name] = value
    out = getattr(np, op.name)(*args, **kwargs)
    if op.name == "interp":  # NumPy returns float64 for any argument
        out = np.asarray(out, dtype=np.result_type(*(a.dtype for a in args if is_floating(a))))
    return out


def _numpy_value(v: Any) -> Any:
    """Return an argument for NumPy; arrays are copied, since the tested code may change them."""
    return (
        np.array(v)
        if is_array(v)
        else getattr(bare(), v.name)
        if isinstance(v, DType)
        else "cpu"
        if v is OWN_DEVICE
        else v
    )


def differentiable(op: Op, values: Sequence[Any]) -> tuple[str, ...]:
    """Return the array parameters that have a rule and a floating value."""
    if op.kind == "nondifferentiable":
        return ()
    ruled = op.arrays if op.kind == "composite" or isinstance(op.vjp, Rule) else tuple(op.vjp)
    given = dict(zip(op.roles, values, strict=True))
    return tuple(
        a
        for a in op.arrays
        if a in ruled
        and (any(map(is_floating, given[a])) if op.roles[a] == "arrays" else is_floating(given[a]))
    )


def gradients(target: Target, problem: Problem, cotangents: Sequence[Any]) -> list[Any]:
    """Return the gradients of Re<cotangents, outputs> for the leaves of a problem, as NumPy arrays.

    They are computed through Tensors of a backend.
    """
    raws = [target.raw(x) for x in problem.leaves()]
    grads = raw_gradients(target, problem, raws, [target.raw(g) for g in cotangents])
    return [target.numpy(g) for g in grads]


def raw_gradients(
    target: Target, problem: Problem, raws: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Return the same gradients as raw arrays, by a function that a variant may transform."""
    values = [target.raw(v) for v in problem.values]
    function = target.function(problem.op)

    def compute(raws: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        leaves = [mg.asarray(x, requires_grad=True) for x in raws]
        outs = tensors_of(
            problem.finished(
                target.bound, call(problem.op, function, problem.replaced(leaves, values))
            )
        )
        return [g.array for g in mg.autograd.grad(outs, leaves, grad_outputs=list(cotangents))]

    with np.errstate(all="ignore"):
        return (target.wrap(compute) if target.wrap else compute)(raws, cotangents)


def tensors_of(out: Any) -> list[Any]:
    """Return the floating outputs of a call on Tensors."""
    outs = out if isinstance(out, (tuple, list)) else [out]
    return [y for y in outs if isinstance(y, mg.Tensor) and y.requires_grad]


def inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    """Return the real inner product of lists of arrays: the sum of Re(conj(a) b)."""
    return sum(float(np.real(np.vdot(u, v))) for u, v in zip(a, b, strict=True))


def floating_of(out: Any) -> list[Any]:
    return [np.asarray(y) for y in (out if isinstance(out, tuple) else (out,)) if is_floating(y)]


def is_floating(x: Any) -> bool:
    return is_array(x) and x.dtype.kind in "fc"


def widened(value: Any) -> Any:
    if isinstance(value, DType):
        return DType({"float32": "float64", "complex64": "complex128"}.get(value.name, value.name))
    return value.astype(np.result_type(value.dtype, np.float64)) if is_floating(value) else value


def random_like(x: Any, seed: int) -> Any:
    """Return a random array like `x`; both precisions get the same values, up to rounding."""
    random = np.random.default_rng([seed, *x.shape])
    y = random.uniform(-1, 1, x.shape)
    return np.asarray(y + 1j * random.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else y).astype(
        x.dtype
    )


@cache
def problem_of(name: str, sample: Sample, single: bool, has_long: bool) -> Problem:
    """Return the cached problem of a sample: all backends and checks share NumPy's results."""
    caster = Target.__new__(Target)
    caster.single, caster.has_long = single, has_long
    return Problem.of(OPS[name], sample, caster.cast)


def _forget(op: Op) -> None:
    """Clear the caches after an operation was declared, because it may replace another one."""
    problem_of.cache_clear()
    bare.cache_clear()


on_declaration(_forget)
