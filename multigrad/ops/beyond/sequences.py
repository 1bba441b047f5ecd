"""Joining and splitting under NumPy's names: split, concatenate, hstack, vstack."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from ...registry import About, composite
from ..keys import along, place
from .shapes import atleast


def split(xp: Any, ary: Any, indices_or_sections: Any, axis: Any) -> list[Any]:
    """Split into slices along the axis, which are views."""
    axis = place("split", "axis", axis, len(ary.shape))
    n = ary.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)) or (
        hasattr(indices_or_sections, "shape") and indices_or_sections.shape
    ):
        bounds = [index(i) for i in indices_or_sections]
    else:
        count = index(indices_or_sections)
        if count <= 0:
            raise ValueError(f"split: the number of sections is {count}; it must be larger than 0.")
        if n % count:
            raise ValueError(
                f"split: an axis of length {n} cannot be split into {count} equal sections."
            )
        bounds = [n // count * i for i in range(1, count)]
    ends = [slice(a, b).indices(n)[:2] for a, b in zip([0, *bounds], [*bounds, n], strict=True)]
    return [ary[along(axis, start, max(start, end))] for start, end in ends]


def _joined(xp: Any, name: str, arrays: Sequence[Any], axis: Any, dtype: Any) -> Any:
    if not arrays:
        raise ValueError(f"{name}: pass at least one array.")
    return xp.concat(arrays if dtype is None else [xp.astype(x, dtype) for x in arrays], axis=axis)


def concatenate(xp: Any, arrays: Sequence[Any], axis: Any, dtype: Any) -> Any:
    return _joined(xp, "concatenate", arrays, axis, dtype)


def hstack(xp: Any, tup: Sequence[Any], dtype: Any) -> Any:
    arrays = [atleast(xp, x, 1) for x in tup]
    return _joined(xp, "hstack", arrays, 0 if arrays and len(arrays[0].shape) == 1 else 1, dtype)


def vstack(xp: Any, tup: Sequence[Any], dtype: Any) -> Any:
    return _joined(xp, "vstack", [atleast(xp, x, 2) for x in tup], 0, dtype)


# `split` is no method: in PyTorch, the argument of that gives the lengths of the parts.
# fmt: off
composite("split(ary: array, indices_or_sections, axis=0)", split, outputs=None,
          doc="The parts of an array along an axis: a number of equal parts, or the parts between "
              "indices. Same as numpy.split.",
          about=About(gradient="the cotangents of the parts, joined", example="P, 2"))
composite("concatenate(arrays: arrays, /, axis=0, *, dtype=None)", concatenate,
          doc="Join arrays along an axis; with axis=None, arrays are flattened first. As "
              "numpy.concatenate.",
          about=About(gradient="for each array: its part of g", example="[P, Q]"))
composite("hstack(tup: arrays, *, dtype=None)", hstack,
          doc="Join arrays along their second axis, or vectors along their first. As "
              "numpy.hstack.",
          about=About(gradient="for each array: its part of g", example="[P, Q]"))
composite("vstack(tup: arrays, *, dtype=None)", vstack,
          doc="Join arrays along their first axis, with vectors as rows. Same as numpy.vstack.",
          about=About(gradient="for each array: its part of g", example="[P, Q]"))
