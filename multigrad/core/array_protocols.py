"""The array attributes of every layer, and its conversions: to NumPy, DLPack and Python scalars.

A conversion that would lose a derivative raises or warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Self

from ..errors import GradientError, program
from ..registry import OPS
from .conversions import conversion
from .level import Layer, innermost
from .surface import OfArrays, Surface

if TYPE_CHECKING:
    from .element import Element
    from .graph import Node
    from .members import Namespace, NDArray


ASKED = (
    " NumPy asked for the values; its arrays carry neither a derivative nor a batch. Instead of a "
    "list of Tensors, pass multigrad.stack([...]) or multigrad.asarray([...]). Instead of a NumPy "
    "array, write into np.zeros_like(x). Instead of compiled code, call a function of multigrad, "
    "or define one with multigrad.func.custom_vjp."
)
"""What NumPy's conversions add to the message of `numpy()`, which the user has not called."""
SCALAR = (
    " Instead of math.exp(x), call multigrad.exp(x). Instead of a NumPy array, write into "
    "np.zeros_like(x). `python -m multigrad breaks SCRIPT` lists the lines on which a gradient is "
    "lost."
)
"""What the warnings about Python scalars advise."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class ArrayProtocols(Surface):
    """The part of Tensor and of the other layers that describes the array and converts it."""

    __slots__ = ()
    __array_priority__ = 1000.0
    _differentiates = True  # whether a derivative is all that this class adds to its value

    if TYPE_CHECKING:
        _elem: Element
        _node: Node | None

        def _check(self) -> None: ...
        def _look(self) -> None: ...

    @property
    def _history(self) -> Node | None:
        """The node as users see it: values computed in a forward that is running are constants."""
        node = self._node
        return None if node is None or node.hidden else node

    # Attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis; () of a scalar."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._array.shape)

    @property
    def size(self) -> int | None:
        """The number of elements, None where a dimension is unknown (None or nan)."""
        product = 1
        for n in self._array.shape:
            if n is None or n != n:
                return None
            product *= n
        return product

    @property
    def dtype(self) -> Any:
        """The dtype object of the array's library."""
        return self._elem.dtype

    @property
    def device(self) -> Any:
        """The device of the array; None where the library does not know it (a JAX tracer)."""
        library = self._elem.library
        return library.device(library.xp, innermost(self))

    def clone(self) -> Self:
        """A differentiable copy."""
        copy: Self = self._elem.library.bound.asarray(self, copy=True)
        return copy

    def __dir__(self) -> list[str]:
        """The attributes, without those that only raw arrays or Tensors of other backends have."""
        attributes = self._elem.library.backend.attributes
        return [
            name
            for name in object.__dir__(self)
            if name in attributes or type(getattr_static(type(self), name, None)) is not OfArrays
        ]

    # Conversions

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Namespace:
        """The differentiable Array API namespace of this array's backend."""
        if api_version is not None and not (
            isinstance(api_version, str) and api_version in VERSIONS
        ):
            raise ValueError(
                f"unsupported version of the Array API standard: {api_version!r}; supported are "
                f"{', '.join(VERSIONS)}"
            )
        bound: Namespace = self._elem.library.bound
        return bound

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        """Raise if a conversion would lose a derivative; `advice` ends the message."""
        self._check()
        if self._history is not None:
            raise GradientError(
                f"Can't call {what} on Tensor that requires grad. Use {fix} instead.{advice}"
            )
        if isinstance(self._array, Layer):
            raise GradientError(
                f"Can't call {what} on a Tensor inside a transformation: its value belongs to "
                f"the transformation.{advice}"
            )

    @conversion
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._as_numpy(dtype, copy, ASKED)

    def _as_numpy(self, dtype: Any = None, copy: bool | None = None, advice: str = "") -> Any:
        import numpy as np

        if not self._elem.floating and self._is_constant():
            self._check()
            x = innermost(self)
        else:
            self._refuse("numpy()", "tensor.detach().numpy()", advice)
            x = self._array
        if not isinstance(x, Layer):
            library = self._elem.library
            x = library.backend.kernel("to_numpy")(library.xp, x, False if copy is False else None)
        return np.asarray(x, dtype=dtype, copy=copy)

    def _is_constant(self) -> bool:
        """Whether the values are constant, as integers and booleans are at every level.

        Then every layer down to the raw array adds a derivative and nothing else.
        """
        x: Any = self
        while isinstance(x, ArrayProtocols) and x._differentiates:
            x = x._array
        return not isinstance(x, Layer)

    @conversion
    def numpy(self) -> NDArray[Any]:
        """The values as a NumPy array. Raises if the Tensor requires grad."""
        values: NDArray[Any] = self._as_numpy()
        return values

    @conversion
    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the memory, for the `from_dlpack` of any library.

        Raises BufferError if the Tensor requires grad.

        Memory with negative strides is copied, since some libraries cannot import it. With
        copy=False it raises BufferError.
        """
        self._check()
        if self._history is not None:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        self._refuse("__dlpack__()", "tensor.detach()")
        if max_version is not None and max_version[0] < 1:
            # the capsule without a version, which every library returns if no version is requested
            max_version = None
        x = self._exporter()
        if not copy and not self._elem.library.backend.kernel("exportable")(
            self._elem.library.xp, x
        ):
            if copy is False:
                raise BufferError(
                    "__dlpack__(copy=False): the memory has negative strides, which not every "
                    "library can take. Leave out copy=False, or export tensor.array itself"
                )
            copy = True
        named = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return x.__dlpack__(**{name: value for name, value in named.items() if value is not None})

    def __dlpack_device__(self) -> Any:
        """The type of device that holds the memory, and the number of the device."""
        return self._exporter().__dlpack_device__()

    def _exporter(self) -> Any:
        """The raw array to export; an array for a scalar of the library, which has no memory."""
        self._check()
        x = innermost(self)
        return self._elem.library.xp.asarray(x) if isinstance(x, self._elem.library.scalars) else x

    @conversion
    def item(self) -> bool | int | float | complex:
        """The only element as a Python scalar; gradients do not flow through it."""
        self._look()
        if isinstance(self._array, ArrayProtocols):
            number: bool | int | float | complex = self._array.item()
            return number
        x = self._array
        if self.size != 1:
            raise RuntimeError(
                f"a Tensor with {self.size} elements cannot be converted to Scalar. Select one, "
                "as by x[0], or call tolist()."
            )
        value: bool | int | float | complex = self._python(
            self._elem.library.xp.reshape(x, ()) if len(x.shape) else x
        )
        return value

    def _python(self, x: Any) -> Any:
        """A 0-d array as a Python scalar; the library converts a dtype outside of the standard."""
        scalar = self._elem.scalar
        return x.item() if scalar is None else scalar(x)

    @conversion
    def tolist(self) -> Any:
        """The values as nested lists of Python scalars."""
        self._look()
        if isinstance(self._array, ArrayProtocols):
            return self._array.tolist()
        library = self._elem.library
        try:
            values = library.backend.kernel("to_numpy")(library.xp, self._array)
        except Exception:
            # more elements than the default converts, or a tracer: the library's own error about an
            # element is the best
            return _nested(library.xp, self._array, self._python)
        return values.astype(_PYTHONS.get(values.dtype.char, values.dtype), copy=False).tolist()

    def __format__(self, spec: str) -> str:
        """Format a 0-d array as Python formats numbers, as in f"{loss:.4f}".

        Other arrays are formatted as their repr.
        """
        return (
            format(self.item(), spec) if spec and not self.shape else object.__format__(self, spec)
        )

    def _cast(self, kind: type) -> Any:
        self._check()
        if self._history is not None:
            warnings.warn(
                f"Converting a tensor with requires_grad=True to a scalar by {kind.__name__}() "
                f"drops its gradient. Consider using tensor.detach() first.{SCALAR}",
                UserWarning,
                stacklevel=program(),
            )
        return kind(self._array)

    @conversion
    def __float__(self) -> float:
        return float(self._cast(float))

    @conversion
    def __int__(self) -> int:
        return int(self._cast(int))

    @conversion
    def __complex__(self) -> complex:
        return complex(self._cast(complex))

    @conversion
    def __bool__(self) -> bool:
        self._check()
        return bool(self._array)

    def __index__(self) -> int:
        self._check()
        if self.size != 1 or self._elem.scalar is not int:
            raise TypeError(
                "only integer Tensors of one element can be used as an index, not one of shape "
                f"{tuple(self.shape)} and dtype {self.dtype}. int(x) makes an integer of a number."
            )
        index: int = self._array.__index__()
        return index

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d Tensor, which has no axis. x.item() is its value.")
        n = self.shape[0]
        if n is None or n != n:
            raise TypeError(
                "len() and iteration need to know the first dimension, which the library leaves "
                "open; compute the array first"
            )
        return n

    def __iter__(self) -> Iterator[Self]:
        """Iterate over `self[0]`, `self[1]`, ...: views that are made when they are needed.

        The length is read when iteration begins.
        """
        if not self.shape:
            raise TypeError(
                "iteration over a 0-d Tensor, which has no axis. x.item() is its value, "
                "xp.reshape(x, (1,)) has one."
            )
        return _rows(self, len(self))


CHUNK = 256
"""How many elements an iteration makes at once.

Each chunk costs the backward pass one gradient of the size of the whole.
"""


def _rows(t: Any, n: int) -> Iterator[Any]:
    """Iterate along the first axis: `unstack` has one node for all, but these can be written."""
    xp = t.__array_namespace__()
    for start in range(0, n, CHUNK):
        for i, row in enumerate(
            xp.unstack(t if n <= CHUNK else t[start : min(start + CHUNK, n), ...]), start
        ):
            if row._view is not None:
                row._view = t, OPS["getitem"], ((i, ...),), None, row._view[4]
            yield row


_PYTHONS = {"g": "d", "G": "D"}  # NumPy returns long doubles as its own scalars


def _nested(xp: Any, x: Any, item: Callable[[Any], Any]) -> Any:
    if not x.shape:
        return item(x)
    return [_nested(xp, part, item) for part in xp.unstack(x)]
