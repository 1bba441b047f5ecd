"""Where a solver starts: one array or a nested structure of arrays, and the vector of numbers that
SciPy sees of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.extend import innermost, is_array, level_of

from .levels import Examples, backend_of, constant, numbers, orders

__all__ = ["Point", "as_tuple", "beside", "ravelled"]


class Point:
    """The arguments of a function as one vector.

    start    the vector at which the solver starts, without derivatives
    raw      the raw array in it, whose library, dtype and device those of all arrays are
    size     its length
    derivatives  those that are filled in for the solver
    unravel  from a vector to the arguments

    Functions get raw arrays, or Tensors where x0 is one and where raw arrays do not go with what
    they refer to.
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
        numbers(self.start)  # raises where it has none
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
        except TypeError:  # numbers, or nested lists of them
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
        """An array of this library as the user's functions get it."""
        return mg.asarray(array) if self.tensors and not level_of(array) else array

    def returned(self, array: Any) -> Any:
        """An array of this library as results have it: a Tensor if x0 was one."""
        return mg.asarray(array) if self._returns_tensors and not level_of(array) else array

    def result(self, out: Any) -> Any:
        """What a function returned, as results have it: raw arrays for raw arrays, unless it has
        derivatives or is a batch.
        """
        vector, unravel = func.ravel_pytree(out)
        plain = not self._returns_tensors and level_of(vector) == 1 and not orders(vector)
        return unravel(innermost(vector)) if plain else out

    def first(self, function: Callable[[Any], Any]) -> Any:
        """What a function of vectors returns at the start.

        Nothing is recorded. From here on it is known whether functions get Tensors.
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

    def confirmed(self, found: Any) -> Any:
        """What a solver has found, once the derivatives that were filled in for it are as they were
        recorded. Raises GradientError where not.
        """
        for derivative in self.derivatives:
            derivative.confirm()
        self.derivatives.clear()
        return found

    def vector(self, z: Any) -> Any:
        """A raw array of this library with the numbers `z`."""
        if np.iscomplexobj(z):
            raise TypeError(
                f"{self.name}: complex steps ('cs') are not supported; leave jac out: what is "
                "filled in is as exact"
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
        """An array with the numbers `z` as the user's functions get it."""
        return self.given(self.vector(z))

    def told(self, callback: Any, bar: Any = None) -> Any:
        """What SciPy calls after each iteration: the user's callback, in the form that it has, and
        the bar.
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
        """The numbers of what a function of vectors returns for vectors of numbers, in example `i`.

        Nothing is recorded.
        """
        with mg.no_grad():
            out = function(*map(self.array, numbers))
        return (
            tuple(examples.of(x, i) for x in out) if isinstance(out, tuple) else examples.of(out, i)
        )


def beside(v: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Further arguments of a function as they go with the vector `v`: beside a layer raw arrays are
    constant Tensors, as in `multigrad.func`.
    """
    return (
        tuple([mg.asarray(x) if is_array(x) and not level_of(x) else x for x in args])
        if level_of(v)
        else args
    )


def as_tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def ravelled(x: Any) -> Any:
    """What a function returned, as one vector."""
    try:
        return func.ravel_pytree(x)[0]
    except TypeError:  # a list of numbers and 0-d arrays
        return func.ravel_pytree(mg.asarray(x))[0]
