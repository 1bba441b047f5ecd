"""The transformations around a call: those that batch its functions or differentiate them.

SciPy computes with numbers, so a solver runs on the raw values below all layers. Inside `func.vmap`
there is one problem per example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.autograd import Function
from multigrad.errors import BatchingError
from multigrad.extend import innermost, is_array, level_of

__all__ = ["Examples", "backend_of", "constant", "numbers", "one", "orders"]


def backend_of(x: Any) -> str:
    """Return the name of the backend of an array."""
    name: str = mg.namespace(x).__name__
    return name.removeprefix("multigrad.")


def numbers(x: Any) -> Any:
    """Return the values of an array outside `vmap` as NumPy float64, or as NumPy converts them.

    Raises an error for complex values.
    """
    if is_array(x):
        raw = innermost(x)
        try:
            x = raw if isinstance(raw, np.ndarray) else mg.asarray(raw).numpy()
        except TypeError as error:  # a tracer of JAX
            raise TypeError(
                "SciPy's solvers compute with numbers, and an array has none while it is "
                "traced, as by jax.jit and jax.grad. Call the solver outside of what is "
                "compiled, and differentiate it by multigrad.func"
            ) from error
    if np.iscomplexobj(x):
        raise TypeError(
            "SciPy's solver needs real numbers, but got complex ones: take the real or "
            "imaginary part, or the absolute value"
        )
    return np.asarray(x, dtype=np.float64)


def constant(x: Any) -> Any:
    """Return an array without its derivatives, at every level; anything else unchanged."""
    return x.detach() if level_of(x) else x


def one(x: Any, name: str, what: str) -> Any:
    """Return an array without its derivatives. Raises NotImplementedError if `vmap` batches it."""
    x = constant(x)
    if level_of(x) and Examples([x]).batched:
        raise NotImplementedError(
            f"{name}: {what} is batched by vmap; where the solver starts is the same for all "
            "examples. Solve them one by one"
        )
    return x


class _Number(Function):
    """The index of the example that the arrays belong to, over all transformations that batch them.

    The outermost transformation counts first.
    """

    @staticmethod
    def forward(*arrays: Any) -> Any:
        xp = mg.namespace(arrays[0])
        return xp.zeros((), dtype=xp.int32)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        return None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arrays: Any) -> tuple[Any, int]:
        outer = _Number.apply(
            *[
                x if axis is None else mg.sum(x, axis=axis)
                for x, axis in zip(arrays, in_dims, strict=True)
            ]
        )
        xp = mg.namespace(outer)
        return outer * info.batch_size + xp.arange(info.batch_size, dtype=xp.int32), 0


class _Note:
    """Facts about the layers of an array.

    tangents  the number of its tangents
    inner     the array directly below the outermost batch
    """

    def __init__(self, x: Any) -> None:
        self.tangents = 0
        self.inner: Any = None
        _Seen.apply(x, self)


class _Seen(Function):
    """The identity, which records facts about its argument in a note."""

    @staticmethod
    def forward(x: Any, note: _Note) -> Any:
        return x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.note = inputs[1]
        ctx.set_materialize_grads(False)

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        ctx.note.tangents += 1
        return t

    @staticmethod
    def backward(ctx: Any, g: Any) -> tuple[Any, None]:
        return g, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, note: _Note) -> tuple[Any, Any]:
        note.inner = x
        note.tangents += _Note(x).tangents
        return x, 0


def orders(x: Any) -> int:
    """Return the number of levels that differentiate an array: 0 for a constant."""
    count = _Note(x).tangents if level_of(x) else 0
    while level_of(x):
        count += isinstance(x, mg.Tensor) and x.requires_grad
        try:
            x = x.array
        except BatchingError:
            x = _Note(x).inner
    return count


class Examples:
    """The examples in some batched arrays.

    count    the number of examples; 1 outside `vmap`
    batched  whether a `vmap` batches one of the arrays
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        layers = [x for x in arrays if level_of(x)]
        number = _Number.apply(*layers) if layers else None
        raw = numbers(number) if number is not None else np.zeros(())
        self.batched = raw.ndim > 0
        self.count = int(raw.size)
        if not self.count:
            raise ValueError(
                "a solver inside of vmap over an axis without elements: there is no example to "
                "solve"
            )
        self._number = constant(number) if self.batched else None

    def values(self, x: Any) -> Any:
        """Return the values of an array in float64 for each example, of shape (count, *shape)."""
        if self._number is None or not is_array(x):
            x = numbers(x)
            return np.broadcast_to(x, (self.count, *x.shape))
        x = constant(x)
        whole = innermost(mg.add(x, mg.astype(mg.multiply(self._number, 0), x.dtype)))
        return numbers(whole).reshape((self.count, *x.shape))

    def of(self, x: Any, i: int) -> Any:
        """Return the values of an array in example `i`, and any other value unchanged."""
        if hasattr(x, "toarray") or hasattr(x, "matvec"):
            return x
        return np.array(self.values(x)[i] if self.batched else numbers(x))

    def array(self, values: Any, like: Any) -> Any:
        """Return an array with its own values in each example. The inverse of `values`.

        It has the library, dtype and device of the raw array `like`.
        """
        stacked = innermost(
            mg.asarray(
                values if self.batched else values[0],
                backend=backend_of(like),
                dtype=like.dtype,
                device=like.device,
            )
        )
        return stacked if self._number is None else mg.take(stacked, self._number, axis=0)
