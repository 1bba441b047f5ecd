"""The start of a solver: arrays, nested or not, and the vector of numbers that SciPy sees."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.extend import innermost, is_array, level_of

from .levels import Examples, backend_of, constant, numbers, orders

__all__ = ["Point", "as_tuple", "beside", "ravelled", "several", "sides"]


class Point:
    """The arguments of a function as one vector.

    start        the vector at which the solver starts, without derivatives
    raw          its raw array, which gives library, dtype and device of all arrays
    size         its length
    derivatives  the derivatives that multigrad computes for the solver
    unravel      the function from a vector to the arguments

    Functions get raw arrays. They get Tensors if x0 is one, or if the arrays that they refer to do
    not combine with raw arrays.
    """

    def __init__(self, x0: Any, name: str) -> None:
        self.name = name
        self.derivatives: list[Any] = []
        start, self.unravel = self._ravelled(x0)
        self.start = constant(start)
        self.raw = innermost(start)
        self.size = int(start.shape[0])
        self.tensors = self._returns_tensors = level_of(start) > 0
        xp = mg.namespace(self.raw)
        if xp.isdtype(start.dtype, "complex floating"):
            raise TypeError(
                f"{name}: x0 is of dtype {start.dtype}; pass the real and the imaginary part as "
                "two arrays"
            )
        if not self.size:
            raise ValueError(f"{name}: x0 has no elements")
        numbers(self.start)  # raises TypeError for a tracer
        half = func.ravel_pytree(
            self.unravel(
                innermost(xp.full((self.size,), 0.5, dtype=start.dtype, device=self.raw.device))
            )
        )[0]
        if not bool(innermost(xp.all(half == 0.5))):
            raise TypeError(
                f"{name}: x0 has an array of integers or bools in it, which a solver cannot "
                "move; pass floating ones"
            )

    def _ravelled(self, x0: Any) -> tuple[Any, Any]:
        try:
            if not is_array(x0):
                return func.ravel_pytree(x0)
        except TypeError:  # numbers, or nested lists of numbers
            try:
                x0 = innermost(mg.asarray(x0))
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{self.name}: x0 must be an array, a nested structure of arrays, or nested "
                    f"lists of numbers: {error}"
                ) from None
            x0 = innermost(mg.reshape(x0, (-1,))) if x0.ndim == 0 else x0
        xp = mg.namespace(x0)
        if xp.isdtype(x0.dtype, ("integral", "bool")):
            x0 = xp.astype(x0, xp.__array_namespace_info__().default_dtypes()["real floating"])
            x0 = x0 if level_of(x0) > 1 else innermost(x0)
        return func.ravel_pytree(x0)

    def given(self, array: Any) -> Any:
        """Return an array of this library in the form that the user's functions receive."""
        return mg.asarray(array) if self.tensors and not level_of(array) else array

    def returned(self, array: Any) -> Any:
        """Return an array of this library in the form of results: a Tensor if x0 was one."""
        return mg.asarray(array) if self._returns_tensors and not level_of(array) else array

    def result(self, out: Any) -> Any:
        """Return what a function returned in the form of results.

        Raw arrays stay raw, unless they carry derivatives or a batch.
        """
        vector, unravel = func.ravel_pytree(out)
        plain = not self._returns_tensors and level_of(vector) == 1 and not orders(vector)
        return unravel(innermost(vector)) if plain else out

    def first(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of vectors at the start.

        Nothing is recorded. This call determines whether functions get Tensors.
        """
        with mg.no_grad():
            try:
                out = function(self.given(self.start))
            except TypeError:
                if self.tensors:
                    raise
                self.tensors = True
                out = function(self.given(self.start))
        return out

    def confirmed(self, result: Any) -> Any:
        """Return a solver's result, after checking the derivatives that were recorded for it.

        Raises GradientError if a recorded derivative is outdated.
        """
        for derivative in self.derivatives:
            derivative.confirm()
        self.derivatives.clear()
        return result

    def vector(self, z: Any) -> Any:
        """Return a raw array of this library with the numbers `z`."""
        if np.iscomplexobj(z):
            raise TypeError(
                f"{self.name}: complex steps ('cs') are not supported; leave jac out: the "
                "automatic derivative is as exact"
            )
        return innermost(
            mg.asarray(
                np.array(z, dtype=np.float64),
                backend=backend_of(self.raw),
                dtype=self.raw.dtype,
                device=self.raw.device,
            )
        )

    def array(self, z: Any) -> Any:
        """Return an array with the numbers `z`, in the form that the user's functions receive."""
        return self.given(self.vector(z))

    def told(self, callback: Any, bar: Any = None) -> Any:
        """Return the callback that SciPy calls after each iteration.

        It calls the user's callback, in its form, and updates the bar.
        """
        if callback is None:
            return (lambda *_: bar.step()) if bar is not None and bar.shown else None

        def shown(x: Any) -> Any:
            if bar is not None:
                bar.step()
            return self.unravel(self.returned(self.vector(x)))

        if set(inspect.signature(callback).parameters) == {"intermediate_result"}:

            def told(intermediate_result: Any) -> Any:
                result = type(intermediate_result)(intermediate_result)
                result.x = shown(result.x)
                return callback(intermediate_result=result)

            return told

        def called(x: Any, *state: Any) -> Any:
            return callback(shown(x), *state)

        return called

    def called(self, examples: Examples, i: int, function: Any, *numbers: Any) -> Any:
        """Return the numbers that a function of vectors returns in example `i`.

        Nothing is recorded.
        """
        with mg.no_grad():
            out = function(*map(self.array, numbers))
        return (
            tuple(examples.of(x, i) for x in out) if isinstance(out, tuple) else examples.of(out, i)
        )


def beside(v: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the further arguments of a function, to be combined with the vector `v`.

    If `v` is a layer, raw arrays become constant Tensors, as in `multigrad.func`.
    """
    return (
        tuple([mg.asarray(x) if is_array(x) and not level_of(x) else x for x in args])
        if level_of(v)
        else args
    )


def as_tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def several(name: str, what: str, given: Any, *counts: int) -> tuple[Any, ...]:
    """Return the parts of an argument that is a pair, or has one of the given counts of parts.

    Raises TypeError if it is no sequence, and ValueError if it has another count or contains None.
    """
    expected = f"{name}: {what} must be {' or '.join(map(str, counts))} numbers or arrays"
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{expected}, not {type(given).__name__}. Pass them as a tuple.")
    parts = tuple(given)
    if len(parts) not in counts or any(x is None for x in parts):
        raise ValueError(f"{expected}, not {given!r:.60}. Pass them as a tuple.")
    return parts


def sides(name: str, bounds: Any) -> tuple[Any, Any]:
    """Return the lower and the upper limits of a pair, or of a scipy.optimize.Bounds."""
    if hasattr(bounds, "lb"):
        return bounds.lb, bounds.ub
    lower, upper = several(name, "bounds", bounds, 2)
    return lower, upper


def ravelled(x: Any) -> Any:
    """Return the result of a function as one vector."""
    try:
        return func.ravel_pytree(x)[0]
    except TypeError:  # a list of numbers and 0-d arrays
        return func.ravel_pytree(mg.asarray(x))[0]
