"""The common parts of the checks of gradients.

These are their exception, the Tensors among arguments and results, conversions to NumPy arrays, and
random values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..core.level import Layer, innermost
from ..core.tensor import Tensor, element_of, wrap
from ..dispatch.creation import to_numpy
from ..errors import MultigradError

if TYPE_CHECKING:
    from random import Random

Function = Callable[..., Any]


class GradcheckError(MultigradError, RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` if a gradient is wrong."""


class Mismatch(GradcheckError):
    """Two Jacobians differ.

    numerical, analytical  both, as NumPy arrays: a row for each element of the input, a column for
                           each element of the output
    matrices               whether the message shows them completely
    """

    def __init__(self, head: str, values: str, worst: str, numerical: Any, analytical: Any) -> None:
        super().__init__(head, values, worst)
        self.numerical, self.analytical, self.matrices = numerical, analytical, True

    def __str__(self) -> str:
        head, values, worst = self.args
        return (
            f"{head}{values}{worst}"
            if self.matrices
            else f"{head}{worst}The whole Jacobians are error.numerical and error.analytical.\n"
        )


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def checked(inputs: Sequence[Any]) -> list[Tensor]:
    return [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]


def outputs_of(x: Any) -> tuple[Any, ...]:
    outputs = as_tuple(x)
    for i, t in enumerate(outputs):
        if not isinstance(t, Layer):
            raise TypeError(
                f"gradcheck: output {i} of the function is of type {type(t).__name__}; it must "
                "return a Tensor or a tuple of Tensors"
            )
    return outputs


def differentiable(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(t for t in outputs if t.requires_grad)


# -- values are passed as NumPy arrays: with other libraries, the bookkeeping of Jacobians would
# compile small programs, or wait for a device


def numbers(t: Any) -> Any:
    """A copy of the values of `t`, a layer or a raw array, as a NumPy array."""
    import numpy as np

    return np.array(to_numpy(innermost(t), element_of(t).library))


def like(t: Tensor, numbers: Any) -> Any:
    """NumPy values, or a list, as a raw array of the shape, dtype, library and device of `t`."""
    xp = t._elem.library.xp
    return xp.reshape(xp.asarray(numbers, dtype=t.dtype, device=t.device), t.shape)


def basis(t: Tensor) -> Iterator[Any]:
    """The standard basis of the space of `t`, as NumPy arrays."""
    import numpy as np

    for k in range(prod(t.shape)):
        e = np.zeros(t.shape)
        e.flat[k] = 1
        yield e


def random_source() -> Random:
    """A source of the same numbers at every call, which does not affect the user's generators."""
    from random import Random  # an import that few programs need

    return Random(0)


def random_like(t: Tensor, source: Random, strided: bool = False) -> Tensor:
    """A leaf of the shape, dtype and device of `t` with elements drawn from [-1, 1]."""
    draw: Callable[[], Any] = lambda: source.uniform(-1, 1)
    x = like(
        t, [complex(draw(), draw()) if t._elem.complex else draw() for _ in range(prod(t.shape))]
    )
    if strided and x.shape and prod(t.shape) > 1:
        x = t._elem.library.xp.repeat(x, 2, axis=-1)[..., ::2]
    return wrap(x).requires_grad_()
