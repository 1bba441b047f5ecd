"""Samples of reading and writing the part of an array at some view steps.

Writes through views record these operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, Sample

# label: the shape of the array, that of the part, the steps
STEPS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any]] = {
    "index": ((2, 3), (2,), (("getitem", ((slice(None), 1),), None),)),
    "index twice": (
        (3, 2),
        (2,),
        (("getitem", ((slice(None, None, 2), ...),), None), ("getitem", ((0, ...),), None)),
    ),
    "transposed": (
        (2, 3),
        (2, 2),
        (("matrix_transpose", (), None), ("getitem", ((slice(1, 3), ...),), None)),
    ),
    "reshaped": (
        (2, 3),
        (1, 3),
        (
            ("reshape", ((3, 2), None), None),
            ("getitem", ((..., 0),), None),
            ("expand_dims", (0,), None),
        ),
    ),
    "one of several": ((2, 3), (2,), (("unstack", (1,), 2),)),
    "everything": ((2,), (2,), ()),
    "empty": ((0, 3), (3, 0), (("permute_dims", ((1, 0),), None),)),
    "non-contiguous": (
        (3, 2),
        (2, 2),
        (("flip", (0,), None), ("getitem", ((slice(0, 3, 2), ...),), None)),
    ),
    "0-d": ((), (), (("getitem", (...,), None),)),
}
PARTS: dict[str, Any] = {
    "real": ((3,), (("real", (), None), ("getitem", ((0, ...),), None))),
    "imag": ((3, 2), (("permute_dims", ((1, 0),), None), ("imag", (), None))),
}


def _array(draw: Draw, label: str, shape: tuple[int, ...]) -> Any:
    x = draw.real(*shape)
    return np.asfortranarray(x) if label == "non-contiguous" else x


def read_slices(draw: Draw) -> Iterator[Sample]:
    for label, (shape, _, part) in STEPS.items():
        yield Sample(label, _array(draw, label, shape), part, short=label == "index")
    for label, (_, part) in PARTS.items():
        yield Sample(f"complex {label}", draw.complex(2, 3), part, short=label == "real")


def copy_slices(draw: Draw) -> Iterator[Sample]:
    for label, (shape, shown, part) in STEPS.items():
        yield Sample(
            label, _array(draw, label, shape), draw.real(*shown), part, short=label == "index"
        )
    for label, (shown, part) in PARTS.items():
        yield Sample(
            f"complex {label}", draw.complex(2, 3), draw.real(*shown), part, short=label == "real"
        )
    yield Sample("complex", draw.complex(2, 3), draw.complex(2), STEPS["index"][2])
    special = np.asarray([complex(re, 1.0) for re in (-0.0, 0.0, -0.0, 2.0, -0.0, -0.0)])
    yield Sample(
        "complex imag, infinite",
        special,
        np.asarray([1.5, -0.0, np.inf, -np.inf, 0.0, np.nan]),
        (("imag", (), None),),
        checks=("forward",),
        finish=_parts,
        reference=_with_imaginary_part,
        short=True,
    )


def _with_imaginary_part(x: Any, value: Any, part: Any) -> Any:
    y = np.array(x)
    y.imag = value
    return y


def _parts(xp: Any, y: Any) -> Any:
    """Return all parts of complex numbers, with the signs of zeros."""
    return xp.real(y), xp.imag(y), xp.signbit(xp.real(y)), 1 / xp.imag(y)


def samples() -> dict[str, Any]:
    """Return the generators, by operation."""
    return {"read_slices": read_slices, "copy_slices": copy_slices}
