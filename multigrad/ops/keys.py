"""What an indexing key means, by NumPy's rules."""

from __future__ import annotations

from itertools import takewhile
from typing import Any


def split_key(xp: Any, key: Any, ndim: int) -> tuple[Any, ...]:
    """Return `key` as a tuple with one entry per axis, and None where an axis is added; no
    Ellipsis, nothing left out.

    A boolean mask stands for as many axes as it has. What is not understood (a list, say) stands
    for one axis.
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
    """Whether an entry of a key is a Python integer (True and False are not: they mean masks
    without axes).
    """
    return isinstance(entry, int) and not isinstance(entry, bool)


def is_basic(key: Any) -> bool:
    """Whether `key` consists of integers, slices, Ellipsis and None, so that no element is selected
    twice.
    """
    return all(
        k is None or k is Ellipsis or isinstance(k, slice) or is_int(k)
        for k in (key if isinstance(key, tuple) else (key,))
    )


def sole_mask(xp: Any, key: Any) -> Any:
    """Return the boolean mask that `key` consists of, or None if it is anything else."""
    entry = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    return entry if is_mask(xp, entry) else None


def leading_arrays(xp: Any, key: Any, ndim: int) -> tuple[Any, ...]:
    """The integers and integer arrays that `key` begins with, if it restricts nothing else;
    otherwise nothing.
    """
    entries = split_key(xp, key, ndim)
    lead = tuple(
        takewhile(lambda k: is_int(k) or (hasattr(k, "dtype") and not is_mask(xp, k)), entries)
    )
    return (
        lead if all(isinstance(k, slice) and k == slice(None) for k in entries[len(lead) :]) else ()
    )


def index_dtype(xp: Any, device: Any) -> Any:
    """The integer dtype that indices have on a device: its default, since not every device has
    int64.
    """
    return xp.arange(0, device=device).dtype


def float_dtype(xp: Any, device: Any) -> Any:
    """The floating dtype that numbers have on a device: its default, since not every device has
    float64.
    """
    return xp.zeros(0, device=device).dtype
