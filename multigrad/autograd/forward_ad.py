"""Explicit forward mode: make duals, compute with them, and unpack them.

Corresponds to torch.autograd.forward_ad.

    with dual_level():
        y = f(make_dual(x, v))
        value, derivative = unpack_dual(y)     # the derivative of f at x along v

Unlike PyTorch's, levels nest: each has tangents of its own, and an operation on duals of several
levels keeps them apart. A raw array of a known library is treated as a Tensor without a history. An
in-place operation on a dual replaces the dual, and does not change the Tensor that it was made of.
A dual cannot be written into a Tensor that is not a dual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.element import is_array
from ..core.grad_mode import ModeContext
from ..core.level import Layer, Transformation, enter_duals
from ..core.level import dual_levels as _entered
from ..core.tensor import Tensor, wrap, wrap_new
from ..errors import GradientError
from ..layers.dual import Dual, check_tangent
from ..layers.transforming import zeros_like
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
    """The result of `unpack_dual`: the value, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level of forward mode, which make_dual and unpack_dual use from now on.

    Returns its number, which is 0 for the outermost level.
    """
    entered = _entered.get()
    enter_duals((*entered, Transformation("dual_level")))
    return len(entered)


@entry
def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level that was entered last. Its duals keep only their values."""
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
    outer = entered[:-1]
    try:
        entered[-1].finish()
    finally:
        enter_duals(outer)


class dual_level(ModeContext):
    """Context manager and decorator: a level of forward mode. `as` gives its number.

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
        outer = _entered.get()[:-1]
        try:
            exit_dual_level()
        finally:
            try:
                enter_duals(outer)
            except MemoryError:
                enter_duals(outer)


@entry
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """Return the dual of the value `tensor` and the tangent `tangent`, which has its shape.

    A real tangent is converted to the dtype of the primal. Both may have a history and keep it, so
    results of the dual can be differentiated in reverse mode, too. Raises GradientError outside of
    any level, and an error for arrays that are not floating.
    """
    run = _run(level, "make_dual")
    if run is None:
        raise GradientError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    number = _entered.get().index(run)
    primal, tangent = _layer(tensor, "tensor"), _layer(tangent, "tangent")
    for x, what in (
        (primal, "Making a dual Tensor based on a Tensor that already"),
        (tangent, "Setting a forward grad that itself"),
    ):
        if _split(x, run) is not None:
            raise GradientError(
                f"{what} has a forward gradient at the same level {number} is not supported."
            )
    primal, tangent = _value(primal, run), _value(tangent, run)
    dual: Any = Dual._make(
        primal, check_tangent(primal, tangent, run.dual_level, "make_dual"), run, run.dual_level
    )
    return dual  # type: ignore[no-any-return]  # to users every layer is a Tensor


@entry
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the `(primal, tangent)` of a dual.

    The tangent is None if there is none, for example if `tensor` is not a dual of the level.
    """
    run = _run(level, "unpack_dual")
    x = _layer(tensor, "tensor")
    parts = None if run is None else _split(x, run)
    if parts is None:
        return UnpackedDualTensor(_value(x, run) if isinstance(tensor, Layer) else tensor, None)
    primal, tangent = [t if isinstance(t, Layer) else wrap_new(t) for t in parts]
    return UnpackedDualTensor(primal, tangent)  # type: ignore[arg-type]  # to users every layer is a Tensor


def _run(level: int | None, name: str) -> Transformation | None:
    """The level of that number, by default the innermost, or None if no level was entered."""
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
    """An argument that may be part of a dual. A Dual of a finished level gives its value."""
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


def _value(x: Any, run: Transformation | None) -> Any:
    """`x`, or the primal if `x` is a dual of this level without a tangent."""
    return x._array if isinstance(x, Dual) and x._run is run else x


def _split(x: Any, run: Transformation) -> tuple[Any, Any] | None:
    """The primal and the tangent of `x` at a level, or None if it has no tangent there.

    The parts of a dual of an outer level are duals of the inner level.
    """
    if isinstance(x, Dual):
        x._check()
        if x._run is run:
            if isinstance(x._tangent, Layer):
                x._tangent._check()  # raises if it is unknown
            return None if x._tangent is None else (x._array, x._tangent)
        parts = [_split(x._array, run), None if x._tangent is None else _split(x._tangent, run)]
        if parts == [None, None]:
            return None
        of_primal, of_tangent = parts
        primal, tangent = (
            of_primal or (_value(x._array, run), zeros_like(x._array)),
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
