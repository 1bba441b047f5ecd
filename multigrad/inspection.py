"""Inspection of a namespace: `__array_namespace_info__`, and the limits of its dtypes.

If the library has its own inspection functions, they decide which dtypes and devices exist. The
results have the form of the standard: tuples, Python numbers, and only dtypes of the standard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .core.element import DTYPES, Library
from .core.level import alive

KINDS = (
    *("bool", "signed integer", "unsigned integer", "real floating", "complex floating"),
    *("integral", "numeric"),
)


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """The result of `finfo`: the limits of a floating dtype, or of a complex one's components."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True, slots=True)
class IntLimits:
    """What `iinfo` returns: the limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


@lru_cache(maxsize=256)
def finfo(library: Library, dtype: Any) -> FloatLimits:
    """The limits of a floating dtype of a library.

    The library's own result may hold its scalars, and may name the dtype by a string.
    """
    limits = _limits(library, "finfo", dtype)
    bits = int(limits.bits)
    real = getattr(limits, "dtype", None)
    if real is None or isinstance(real, str):
        real = (
            getattr(library.xp, f"float{bits}")
            if library.xp.isdtype(dtype, "complex floating")
            else dtype
        )
    return FloatLimits(
        bits,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        real,
    )


@lru_cache(maxsize=256)
def iinfo(library: Library, dtype: Any) -> IntLimits:
    """The limits of an integer dtype of a library."""
    limits = _limits(library, "iinfo", dtype)
    own = getattr(limits, "dtype", None)
    return IntLimits(
        int(limits.bits),
        int(limits.max),
        int(limits.min),
        dtype if own is None or isinstance(own, str) else own,
    )


def _limits(library: Library, name: str, dtype: Any) -> Any:
    try:
        return getattr(library.xp, name)(dtype)
    except Exception as error:  # libraries tell neither the function nor the argument
        raise TypeError(
            f"{name}: expected a dtype of {library.name!r}, got {dtype!r:.60}: {error}"
        ) from error


class Info:
    """The result of `__array_namespace_info__()`: dtypes, devices, capabilities of one backend."""

    def __init__(self, library: Library) -> None:
        self._library = library
        inspect: Callable[[], Any] | None = getattr(
            library.backend.namespace, "__array_namespace_info__", None
        )
        self._inspection = None if inspect is None else inspect()

    def capabilities(self) -> dict[str, bool | int | None]:
        """Whether masks and data-dependent shapes work, and the maximum number of dimensions.

        Inside vmap they do not, since the shapes may differ between examples.
        """
        lacks = self._library.backend.lacks()
        ours: dict[str, bool | int | None] = {"max dimensions": None}
        if self._inspection is not None:
            ours |= dict(self._inspection.capabilities())
        # What the backend declares holds always; JAX says what holds here, under jax.jit or not.
        for name, lack in (
            ("boolean indexing", "boolean_indexing"),
            ("data-dependent shapes", "data_dependent"),
        ):
            ours[name] = lack not in lacks and bool(ours.get(name, True))
        if any(run.name == "vmap" for run in alive()):
            ours |= {"boolean indexing": False, "data-dependent shapes": False}
        return ours

    def default_device(self) -> Any:
        """The device on which new arrays are placed; None if the library does not say."""
        return None if self._inspection is None else self._inspection.default_device()

    def devices(self) -> tuple[Any, ...]:
        """The available devices."""
        library = self._library
        if self._inspection is None and "devices" not in library.backend.kernels:
            return (library.device(library.xp, library.xp.zeros(0)),)
        return tuple(library.backend.kernel("devices")(library.backend.namespace))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtype of each kind."""
        if self._inspection is not None:
            return dict(self._inspection.default_dtypes(device=device))
        xp = self._library.xp
        real, whole = xp.zeros(0, device=device).dtype, xp.arange(0, device=device).dtype
        return {
            "real floating": real,
            "complex floating": xp.result_type(real, xp.complex64),
            "integral": whole,
            "indexing": whole,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """The dtypes of the standard by name, of one kind, of a tuple of kinds, or all."""
        kinds = () if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k not in KINDS:
                raise ValueError(
                    f"unknown kind of dtypes {k!r}; the kinds of the standard are "
                    f"{', '.join(KINDS)}"
                )
        library = self._library
        if self._inspection is not None:
            there = self._inspection.dtypes(device=device)
        else:
            there = {name: getattr(library.backend.namespace, name, None) for name in DTYPES}
        return {
            name: there[name]
            for name in DTYPES
            if there.get(name) is not None
            and (kind is None or library.xp.isdtype(there[name], kinds))
        }

    def __repr__(self) -> str:
        return f"<inspection of the namespace of {self._library.name!r}>"
