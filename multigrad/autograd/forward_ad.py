"""Forward mode by hand: duals are made, computed with, and taken apart.

The meaning is that of torch.autograd.forward_ad.

    with dual_level():
        y = f(make_dual(x, v))
        value, derivative = unpack_dual(y)     # the derivative of f at x along v

Levels nest, unlike PyTorch's: each has tangents of its own, and an operation on duals of several
levels keeps them apart. Raw arrays of a known library are taken for Tensors without a history. A
dual is a value of its own: in place it is replaced, and the Tensor that it was made of stays as it
is; nor can a dual be written into a Tensor that is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.element import is_array
from ..core.grad_mode import _Mode
from ..core.level import Layer, Run, enter_duals, outside
from ..core.level import dual_levels as _entered
from ..core.tensor import Tensor, wrap, wrap_new
from ..errors import GradientError
from ..layers.dual import Dual, check_tangent
from ..tracebacks import entry

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the value, and the tangent, or None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level of forward mode, which make_dual and unpack_dual use from now on.

    Returns its number, from 0 for the outermost.
    """
    entered = _entered.get()
    enter_duals((*entered, Run("dual_level")))
    return len(entered)


@entry
def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level that was entered last: of its duals only the values remain."""
    entered = _entered.get()
    if level is not None and level != len(entered) - 1:
        raise GradientError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    if not entered:
        raise GradientError(
            "Trying to exit a forward AD level but none was entered. Dual level must be a "
            "positive number."
        )
    entered[-1].finish()
    enter_duals(entered[:-1])


class dual_level(_Mode):
    """Context manager and decorator: a level of forward mode, whose number it gives.

    Levels nest.
    """

    def __enter__(self) -> int:  # type: ignore[override]
        before = _entered.get()
        try:
            return enter_dual_level()
        except BaseException:  # an interrupt, after which `__exit__` is not called
            enter_duals(before)
            raise

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


@entry
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """The dual of the value of `tensor` and the tangent `tangent`, which has its shape.

    A real tangent is converted to the primal's dtype. Both may have a history, and keep it: what is
    computed of the dual can be differentiated backwards, too. Raises outside of any level, and for
    arrays that are not floating.
    """
    run = _run(level, "make_dual")
    if run is None:
        raise GradientError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    number = _entered.get().index(run)
    primal, tangent = _layer(tensor, "tensor"), _layer(tangent, "tangent")
    if _split(primal, run) is not None:
        raise GradientError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {number} is not supported."
        )
    if _split(tangent, run) is not None:
        raise GradientError(
            "Setting a forward grad that itself has a forward gradient at the same level "
            f"{number} is not supported."
        )
    primal, tangent = _value(primal, run), _value(tangent, run)
    dual: Any = Dual._make(
        primal, check_tangent(primal, tangent, run.dual_level, "make_dual"), run, run.dual_level
    )
    return dual  # type: ignore[no-any-return]  # to users every layer is a Tensor


@entry
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Take a dual apart: `(primal, tangent)`, the tangent None where there is none, as in what is
    no dual of the level.
    """
    run = _run(level, "unpack_dual")
    x = _layer(tensor, "tensor")
    found = None if run is None else _split(x, run)
    if found is None:
        return UnpackedDualTensor(_value(x, run) if isinstance(tensor, Layer) else tensor, None)
    primal, tangent = [t if isinstance(t, Layer) else wrap_new(t) for t in found]
    return UnpackedDualTensor(primal, tangent)  # type: ignore[arg-type]  # to users every layer is a Tensor


def _run(level: int | None, name: str) -> Run | None:
    """The level of that number, by default the innermost; None if no level was entered."""
    entered = _entered.get()
    if level is None:
        return entered[-1] if entered else None
    if not entered and level < 0:
        return None
    if not 0 <= level < len(entered):
        raise GradientError(
            f"Invalid level given to {name}: {level}. {len(entered)} levels are entered, and "
            "they count from 0."
        )
    return entered[level]


def _layer(x: Any, what: str) -> Any:
    """An argument that may be part of a dual; of Duals whose level was left, the value."""
    if not is_array(x):
        raise TypeError(
            f"{what}: expected a Tensor or an array of a known library, got {type(x).__name__}"
        )
    if not isinstance(x, Layer):
        return wrap(x)
    x._check()
    while isinstance(x, Dual) and x._run.finished:
        x = x._array
    return x


def _value(x: Any, run: Run | None) -> Any:
    """A dual of this level without a tangent is its primal."""
    return x._array if isinstance(x, Dual) and x._run is run else x


def _split(x: Any, run: Run) -> tuple[Any, Any] | None:
    """Primal and tangent of `x` at a level; None if it has no tangent there.

    A dual of a level further out is a dual of such parts.
    """
    if isinstance(x, Dual):
        x._check()
        if x._run is run:
            if isinstance(x._tangent, Layer):
                x._tangent._check()  # raises where it is not known
            return None if x._tangent is None else (x._array, x._tangent)
        parts = [_split(x._array, run), None if x._tangent is None else _split(x._tangent, run)]
        if parts == [None, None]:
            return None
        of_primal, of_tangent = parts
        primal, tangent = (
            of_primal or (_value(x._array, run), _zero(x._array)),
            of_tangent or (x._tangent, None),
        )
        return tuple(
            Dual._make(p, t, x._run, x._level) for p, t in zip(primal, tangent, strict=True)
        )  # type: ignore[return-value]
    if isinstance(x, Tensor) and isinstance(x._array, Layer) and _split(x._array, run) is not None:
        raise GradientError(
            "the dual is the value of a Tensor of a transformation that runs inside of its "
            "level; unpack it outside of that"
        )
    return None


def _zero(x: Any) -> Any:
    with outside():
        return x._elem.library.bound.zeros_like(x) if isinstance(x, Layer) else wrap(x) * 0
