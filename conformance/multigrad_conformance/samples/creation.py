"""Samples of creation functions, of functions of dtypes, and of conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import OWN_DEVICE, Draw, DType, Kink, Sample

FLOAT32, FLOAT64, INT32 = DType("float32"), DType("float64"), DType("int32")
COMPLEX128 = DType("complex128")


def arange(draw: Draw) -> Iterator[Sample]:
    yield Sample("stop", 5)
    yield Sample("step", 1.0, 3.0, 0.5)
    yield Sample("backwards", 5, 0, -2, dtype=INT32)
    yield Sample("device", 3, device=OWN_DEVICE)


def filled(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("matrix", (2, 3), values=name != "empty")
    yield Sample("dtype", (2,), dtype=INT32, values=name != "empty")
    yield Sample("number", 3, dtype=FLOAT32, values=name != "empty")
    yield Sample("0-d", (), dtype=COMPLEX128, values=name != "empty")
    yield Sample("device", (2,), device=OWN_DEVICE, values=name != "empty")


def like(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3), values=name != "empty_like")
    yield Sample("complex", draw.complex(2), values=name != "empty_like")
    yield Sample("dtype", draw.real(2, 3), dtype=INT32, values=name != "empty_like")
    yield Sample("device", draw.real(2, 3), device=OWN_DEVICE, values=name != "empty_like")


def eye(draw: Draw) -> Iterator[Sample]:
    yield Sample("square", 3)
    yield Sample("diagonal", 2, 3, k=1, dtype=FLOAT32)
    yield Sample("device", 2, device=OWN_DEVICE)


def from_dlpack(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3))
    yield Sample("integers", draw.integers(3))
    yield Sample("copy", draw.real(2, 3), copy=True)
    yield Sample("device", draw.real(2, 3), device=OWN_DEVICE)


def asarray(draw: Draw) -> Iterator[Sample]:
    yield Sample("array", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("list", [[1.0, 2.0], [3.0, 4.0]])
    yield Sample("number", 1.5)
    yield Sample("booleans", [True, False])
    yield Sample("dtype", draw.real(2, 3), dtype=FLOAT32)
    yield Sample("to complex", draw.real(2, 3), dtype=COMPLEX128)
    yield Sample("copy", draw.real(2, 3), copy=True)
    yield Sample("device", draw.real(2), device=OWN_DEVICE)
    yield Sample("0-d", draw.real(), dtype=COMPLEX128)
    yield Sample("empty", draw.real(0, 2))


def full(draw: Draw) -> Iterator[Sample]:
    yield Sample("array", (2, 3), draw.real())
    yield Sample("number", (2, 3), 1.5)
    yield Sample("integer", (2,), 3)
    yield Sample("dtype", (2,), 2.5, dtype=FLOAT32)
    yield Sample("complex", 3, draw.complex())
    yield Sample("device", (2,), draw.real(), device=OWN_DEVICE)
    yield Sample("number on a device", (2,), 1.5, device=OWN_DEVICE, short=True)
    yield Sample("empty", (0, 2), draw.real())


def full_like(draw: Draw) -> Iterator[Sample]:
    yield Sample("number", draw.real(2, 3), 1.5, differentiable=())
    yield Sample("array", draw.real(2, 3), draw.real(), differentiable=("fill_value",))
    yield Sample("dtype", draw.real(2, 3), 2, dtype=INT32, differentiable=())
    yield Sample("complex", draw.complex(2), draw.complex(), differentiable=("fill_value",))
    yield Sample(
        "device", draw.real(2), draw.real(), differentiable=("fill_value",), device=OWN_DEVICE
    )
    yield Sample(
        "number on a device",
        draw.real(2),
        1.5,
        differentiable=(),
        device=OWN_DEVICE,
        short=True,
        checks=("forward",),
    )
    yield Sample("empty", draw.real(0, 2), draw.real(), differentiable=("fill_value",))


def linspace(draw: Draw) -> Iterator[Sample]:
    yield Sample("numbers", 0.0, 1.0, 5)
    yield Sample("arrays", draw.real(), draw.real(), 4, short=True)
    yield Sample("open", draw.real(), draw.real(), 4, endpoint=False)
    yield Sample("one", draw.real(), draw.real(), 1)
    yield Sample("stop only", 0.5, draw.real(), 3)
    yield Sample("complex", draw.complex(), draw.complex(), 3)
    yield Sample("dtype", draw.real(), draw.real(), 3, dtype=FLOAT32)
    yield Sample("device", draw.real(), draw.real(), 3, device=OWN_DEVICE)
    yield Sample("numbers on a device", 0.0, 1.0, 3, device=OWN_DEVICE, short=True)
    yield Sample("of matrices", draw.real(2, 1), draw.real(3), 4)
    yield Sample("empty", draw.real(), draw.real(), 0)


def astype(draw: Draw) -> Iterator[Sample]:
    yield Sample("narrower", draw.real(2, 3), FLOAT32)
    yield Sample("to complex", draw.real(2, 3), COMPLEX128)
    yield Sample("to integers", draw.nonzero(2, 3), INT32, differentiable=())
    yield Sample("from integers", draw.integers(2, 3), FLOAT64)
    yield Sample("same", draw.real(2, 3), FLOAT64, copy=False)
    yield Sample("device", draw.real(2), FLOAT32, device=OWN_DEVICE)
    yield Sample("0-d", draw.real(), FLOAT32)
    yield Sample("empty", draw.real(0, 2), COMPLEX128)
    yield Kink("cotangent of a real argument", [1.0, 2.0], COMPLEX128, gradients={"x": [1, 1]})


def can_cast(draw: Draw) -> Iterator[Sample]:
    yield Sample("wider", FLOAT32, FLOAT64)
    yield Sample("narrower", FLOAT64, INT32, short=True)
    yield Sample("array", draw.real(2), COMPLEX128)


def isdtype(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", FLOAT32, "real floating")
    yield Sample("integral", FLOAT32, "integral")
    yield Sample("several", INT32, ("complex floating", "integral"))


def result_type(draw: Draw) -> Iterator[Sample]:
    yield Sample("dtypes", FLOAT32, FLOAT64)
    yield Sample("arrays", draw.real(2), draw.complex(2))
    yield Sample("array and number", draw.real(2), 1.0)


def samples() -> dict[str, Any]:
    """Return the generators of these chapters, by operation."""
    table: dict[str, Any] = {
        f.__name__: f
        for f in (
            arange,
            eye,
            from_dlpack,
            asarray,
            full,
            full_like,
            linspace,
            astype,
            can_cast,
            isdtype,
            result_type,
        )
    }
    for name in ("empty", "ones", "zeros"):
        table[name] = lambda draw, name=name: filled(name, draw)
    for name in ("empty_like", "ones_like", "zeros_like"):
        table[name] = lambda draw, name=name: like(name, draw)
    table["finfo"] = lambda draw: [
        Sample("float64", FLOAT64),
        Sample("float32", FLOAT32),
        Sample("array", np.zeros(2)),
    ]
    table["iinfo"] = lambda draw: [Sample("int32", INT32), Sample("uint8", DType("uint8"))]
    table["to_backend"] = lambda draw: [
        Sample("numpy and back", draw.real(2, 3), "numpy", "", checks=("conversion",), short=True)
    ]
    table["to_device"] = lambda draw: [Sample("its own", draw.real(2, 3), OWN_DEVICE)]
    return table
