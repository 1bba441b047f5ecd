"""The meaning of an indexing key, by NumPy's rules."""

from __future__ import annotations

from itertools import takewhile
from operator import index
from typing import Any


def split_key(xp: Any, key: Any, ndim: int) -> tuple[Any, ...]:
    """Split `key` into a tuple with one entry per axis, and None for each new axis.

    The Ellipsis and omitted axes are filled in. A boolean mask covers as many axes as it has. Any
    unknown entry (a list, say) covers one axis.
    """
    entries = key if isinstance(key, tuple) else (key,)
    used = sum(_axes_of(xp, k) for k in entries)
    at = next((i for i, k in enumerate(entries) if k is Ellipsis), len(entries))
    return entries[:at] + (slice(None),) * (ndim - used) + entries[at + 1 :]


def _axes_of(xp: Any, entry: Any) -> int:
    if entry is None or entry is Ellipsis or isinstance(entry, bool):
        return 0
    return len(entry.shape) if is_mask(xp, entry) else 1


def is_mask(xp: Any, entry: Any) -> bool:
    """Whether an entry of a key is a boolean array."""
    return hasattr(entry, "dtype") and bool(xp.isdtype(entry.dtype, "bool"))


def is_int(entry: Any) -> bool:
    """Whether an entry of a key is a Python integer; True and False count as 0-d masks."""
    return isinstance(entry, int) and not isinstance(entry, bool)


def is_basic(key: Any) -> bool:
    """Whether `key` consists of integers, slices, Ellipsis and None, so that no element repeats."""
    return all(
        k is None or k is Ellipsis or isinstance(k, slice) or is_int(k)
        for k in (key if isinstance(key, tuple) else (key,))
    )


def sole_mask(xp: Any, key: Any) -> Any:
    """The boolean mask that `key` consists of, or None for any other key."""
    entry = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    return entry if is_mask(xp, entry) else None


def leading_arrays(xp: Any, key: Any, ndim: int) -> tuple[Any, ...]:
    """The integers and integer arrays at the front of `key`, or () if it restricts other axes."""
    entries = split_key(xp, key, ndim)
    lead = tuple(
        takewhile(lambda k: is_int(k) or (hasattr(k, "dtype") and not is_mask(xp, k)), entries)
    )
    rest = entries[len(lead) :]
    return lead if all(isinstance(k, slice) and k == slice(None) for k in rest) else ()


def along(axis: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    """The key that selects the elements from `start` to `stop` along an axis."""
    return (slice(None),) * axis + (slice(start, stop), ...)


def place(name: str, what: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front. Raises IndexError if it is out of bounds."""
    a = index(axis)
    if not -ndim <= a < ndim:
        raise IndexError(f"{name}: {what} {a} is out of bounds for an array with {ndim} axes.")
    return a % ndim


def trimmed(xp: Any, value: Any, ndim: int, name: str = "setitem", first: int = 0) -> Any:
    """A value to fill `ndim` axes with, without leading axes of length 1 beyond these.

    first  the number of axes in front that stay, as that of a batch
    """
    shape = value.shape
    extra = max(len(shape) - first - ndim, 0)
    if any(n != 1 for n in shape[first : first + extra]):
        raise ValueError(
            f"{name}: an array of shape {tuple(shape[first:])} cannot be written to a part of "
            f"{ndim} dimensions. Only leading axes of length 1 are dropped."
        )
    return xp.reshape(value, (*shape[:first], *shape[first + extra :])) if extra else value


def index_dtype(xp: Any, device: Any) -> Any:
    """The integer dtype of indices on a device: its default, since some devices lack int64."""
    return xp.arange(0, device=device).dtype


def float_dtype(xp: Any, device: Any) -> Any:
    """The floating dtype of numbers on a device: its default, since some devices lack float64."""
    return xp.zeros(0, device=device).dtype
