"""Samples of NumPy's array functions beyond the standard.

They are einsum, pad, gradient, interp, products, axes, joining and splitting, and diagonals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, DType, Sample
from .manipulation import arranged

# label -> subscripts and the shapes of the operands
PRODUCTS: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "matrices": ("ij,jk->ik", ((2, 3), (3, 2))),
    "trace": ("ii", ((3, 3),)),
    "diagonal": ("iij->ji", ((2, 2, 3),)),
    "sum": ("ij->j", ((2, 3),)),
    "outer": ("i,j->ji", ((3,), (2,))),
    "rows": ("ij,ij->i", ((2, 3), (2, 3))),
    "batch": ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
    "attention": ("bhid,bhjd->bhij", ((1, 2, 2, 3), (1, 2, 2, 3))),
    "ellipsis": ("...ij,...j->...i", ((2, 2, 3), (3,))),
    "broadcast": ("ij,jk->ik", ((2, 1), (3, 2))),
    "0-d": ("i,->i", ((3,), ())),
    "three": ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 2))),
    "three in a batch": ("bi,bij,bj->b", ((2, 3), (2, 3, 2), (2, 2))),
    "nothing to add up": ("ij,jk->ik", ((2, 0), (0, 2))),
}


def einsum(draw: Draw) -> Iterator[Sample]:
    for label, (subscripts, shapes) in PRODUCTS.items():
        yield Sample(
            label,
            subscripts,
            *(draw.real(*shape) for shape in shapes),
            short=label in ("matrices", "batch", "three"),
        )
    yield Sample("complex", "ij,jk->ik", draw.complex(2, 3), draw.complex(3, 2))
    yield Sample("real,complex", "ij,jk->ki", draw.real(2, 3), draw.complex(3, 2))
    yield Sample("integers", "ij,jk->ik", draw.integers(2, 3), draw.integers(3, 2))
    yield Sample(
        "path",
        "ij,jk,kl->il",
        draw.real(2, 3),
        draw.real(3, 2),
        draw.real(2, 2),
        optimize=["einsum_path", (1, 2), (0, 1)],
    )
    yield Sample("lists", draw.real(2, 3), [0, 1], draw.real(3, 2), [1, 2], [2, 0])


def pad(draw: Draw) -> Iterator[Sample]:
    yield Sample("zeros", draw.real(2, 3), 1)
    yield Sample("complex", draw.complex(2, 3), ((1, 0), (0, 2)))
    yield Sample("constants", draw.real(2, 3), 1, constant_values=((1.0, 2.0), (3.0, 4.0)))
    yield Sample("0-d", draw.real(), 1)
    yield Sample("empty", draw.real(0, 2), 1)
    yield Sample("integers", draw.integers(2, 3), 1, mode="linear_ramp")
    for mode in (
        "edge",
        "linear_ramp",
        "maximum",
        "mean",
        "minimum",
        "reflect",
        "symmetric",
        "wrap",
    ):
        yield Sample(
            mode, draw.apart(3, 2), ((1, 2), (4, 0)), mode, short=mode in ("reflect", "mean")
        )
    for mode in ("reflect", "symmetric"):
        yield Sample(f"{mode} odd", draw.real(3), (2, 7), mode, reflect_type="odd")
    yield Sample("ramp to", draw.real(3), 2, "linear_ramp", end_values=(-1.0, 2.0))
    yield Sample("mean of two", draw.real(2, 3), 1, "mean", stat_length=2)


def gradient(draw: Draw) -> Iterator[Sample]:
    """Yield samples of one axis, for which NumPy returns one array."""
    yield Sample("vector", draw.real(5))
    yield Sample("complex", draw.complex(2, 3, 2), axis=1)
    yield Sample("spacing", draw.real(4), 0.5)
    yield Sample("coordinates", draw.real(2, 4), np.asarray([0.0, 0.5, 1.5, 3.0]), axis=-1)
    yield Sample("second order", draw.real(4), edge_order=2)
    yield Sample(
        "coordinates, second order", draw.real(4), np.asarray([0.0, 0.5, 1.5, 3.0]), edge_order=2
    )
    yield Sample("integers", draw.integers(4))
    yield Sample("empty", draw.real(0, 3), axis=1)


def interp(draw: Draw) -> Iterator[Sample]:
    xp = np.asarray([-1.5, -0.5, 0.25, 1.0, 1.75])
    x = np.asarray([[-2.0, -1.0, 0.0], [0.5, 1.5, 2.5]])
    yield Sample("inside and outside", x, xp, draw.real(5))
    yield Sample("complex", x, xp, draw.complex(5))
    yield Sample("ends", x, xp, draw.real(5), left=-1.0, right=2.0)
    yield Sample("period", x, xp, draw.real(5), period=5.0)
    yield Sample("one point", x, xp[:1].copy(), draw.real(1), differentiable=("fp",))
    yield Sample("0-d", np.asarray(0.3), xp, draw.real(5))
    yield Sample("empty", np.zeros((0, 2)), xp, draw.real(5))


def product(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("vectors", draw.real(3), draw.real(3))
    yield Sample("complex", draw.complex(3), draw.complex(3))
    if name in ("dot", "inner"):
        second = (
            (lambda *shape: draw.real(*shape[:-2], shape[-1], shape[-2]))
            if name == "dot"
            else draw.real
        )
        yield Sample("matrices", draw.real(2, 3), second(2, 3))
        yield Sample("matrix,vector", draw.real(2, 3), draw.real(3))
        yield Sample("more axes", draw.real(2, 2, 3), second(2, 2, 3))
        yield Sample("empty", draw.real(2, 0), draw.real(0))
    else:
        yield Sample("matrices", draw.real(2, 3), draw.real(2, 2))
        yield Sample("vector,matrix", draw.real(2), draw.real(2, 3))
        yield Sample("empty", draw.real(0), draw.real(2))
    yield Sample("integers", draw.integers(3), draw.integers(3))
    yield Sample("0-d", draw.real(), draw.real(3))


def convolution(draw: Draw) -> Iterator[Sample]:
    yield Sample("full", draw.real(4), draw.real(3), "full")
    yield Sample("complex", draw.complex(4), draw.complex(3), "full")
    yield Sample("valid", draw.real(5), draw.real(2), "valid")
    yield Sample("longer", draw.real(2), draw.real(4), "full")
    yield Sample("almost all of it", draw.real(5), draw.real(4), "valid")
    yield Sample("real,complex", draw.real(4), draw.complex(2), "valid")


def convolve(draw: Draw) -> Iterator[Sample]:
    yield Sample("full", draw.real(4), draw.real(3))
    yield Sample("complex", draw.complex(3), draw.complex(4), "same")
    yield Sample("valid", draw.real(2), draw.real(4), mode="valid")
    yield Sample("integers", draw.integers(4), draw.integers(3))
    yield Sample("0-d", draw.real(), draw.real(3))


def joined(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("two", [draw.real(2, 3), draw.real(2, 3)])
    yield Sample("complex", [draw.complex(2, 3), draw.complex(2, 3)])
    yield Sample("vectors", [draw.real(3), draw.real(3)])
    yield Sample("dtype", [draw.real(3), draw.real(3)], dtype=DType("complex128"))
    yield Sample("empty", [draw.real(0, 2), draw.real(0, 2)])
    if name == "concatenate":
        yield Sample("axis", [draw.real(2, 1), draw.real(2, 3)], axis=1)
        yield Sample("flat", [draw.real(2, 2), draw.real(3)], axis=None)
    else:
        yield Sample("0-d", [draw.real(), draw.real()])


def split(draw: Draw) -> Iterator[Sample]:
    yield Sample("sections", draw.real(4, 2), 2)
    yield Sample("complex", draw.complex(4), 2)
    yield Sample("indices", draw.real(2, 5), (1, 3), axis=1)
    yield Sample("nothing between", draw.real(2, 4), [3, 1, 9], axis=-1)
    yield Sample("empty", draw.real(0, 2), 2)


IN_A_ROW: list[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = [
    ("rows", (2, 3), (), {}),
    ("columns", (2, 3), ("F",), {}),
    ("0-d", (), (), {}),
    ("empty", (0, 2), (), {}),
]
ARRANGEMENTS: dict[str, list[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]]] = {
    "transpose": [
        ("reversed", (2, 3, 2), (), {}),
        ("order", (2, 3, 4), ((-1, 0, 1),), {}),
        ("matrix", (2, 3), (), {}),
        ("vector", (3,), (), {}),
        ("0-d", (), (), {}),
        ("empty", (0, 2), (), {}),
    ],
    "swapaxes": [
        ("first two", (2, 3, 4), (0, 1), {}),
        ("last", (2, 3, 4), (-1, 0), {}),
        ("same", (2, 3), (1, 1), {}),
        ("empty", (0, 2), (0, 1), {}),
    ],
    "ravel": IN_A_ROW,
    "flatten": IN_A_ROW,
    "atleast_1d": [("matrix", (2, 3), (), {}), ("0-d", (), (), {}), ("empty", (0,), (), {})],
    "atleast_2d": [
        ("matrix", (2, 3), (), {}),
        ("vector", (3,), (), {}),
        ("0-d", (), (), {}),
        ("empty", (0,), (), {}),
    ],
    "diagonal": [
        ("matrix", (3, 3), (), {}),
        ("above", (2, 3, 4), (1, 0, 2), {}),
        ("below", (3, 2, 2), (-1,), {"axis1": -1, "axis2": 0}),
        ("empty", (0, 3), (), {}),
    ],
    "trace": [
        ("matrix", (3, 3), (), {}),
        ("above", (2, 3, 4), (1, 0, 2), {}),
        ("below", (3, 2, 2), (-1,), {"axis1": -1, "axis2": 0}),
        ("dtype", (2, 2), (), {"dtype": DType("complex128")}),
        ("empty", (0, 3), (), {}),
    ],
    "diag": [
        ("vector", (3,), (), {}),
        ("above", (2,), (1,), {}),
        ("below", (2,), (-2,), {}),
        ("matrix", (2, 3), (1,), {}),
        ("empty", (0,), (), {}),
    ],
}


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, by operation."""
    table: dict[str, Any] = {
        f.__name__: f for f in (einsum, pad, gradient, interp, convolution, convolve, split)
    }
    for name, cases in ARRANGEMENTS.items():
        table[name] = lambda draw, cases=cases: arranged(draw, *cases)
    for name in ("dot", "inner", "outer", "kron"):
        table[name] = lambda draw, name=name: product(name, draw)
    for name in ("concatenate", "hstack", "vstack"):
        table[name] = lambda draw, name=name: joined(name, draw)
    return table
