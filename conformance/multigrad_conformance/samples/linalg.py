"""Samples of the linalg extension.

They cover products, diagonals, determinants, inverses, linear systems and norms. Matrices are well
conditioned, so that finite differences are accurate. Determinants are polynomials, so they have
singular samples as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..sample import Draw, DType, Kink, Sample
from . import statistical
from .decompositions import orthonormal, with_singular_values

INF = np.inf
FIRST = ("forward", "vjp", "jvp", "dual")


def regular(draw: Draw, *shape: int) -> Any:
    return with_singular_values(draw.real(*shape))


def complex_regular(draw: Draw, *shape: int) -> Any:
    return with_singular_values(draw.complex(*shape))


def with_values(x: Any, *values: float) -> Any:
    """Return a matrix of the shape of `x` with these singular values."""
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return u * np.asarray(values) @ vh


def of_rank(rank: int, x: Any) -> Any:
    """Return the nearest matrix of that rank."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return u[..., :rank] * s[..., None, :rank] @ vh[..., :rank, :]


def square(draw: Draw) -> Iterator[Sample]:
    """Yield samples for operations on nonsingular matrices."""
    yield Sample("real", regular(draw, 3, 3))
    yield Sample("complex", complex_regular(draw, 2, 2))
    yield Sample("batch", regular(draw, 2, 2, 2))
    yield Sample("complex batch", complex_regular(draw, 2, 1, 3, 3))
    yield Sample("number", np.asarray([[-1.5]]))
    yield Sample("4 by 4", regular(draw, 4, 4))
    yield Sample("complex 4 by 4", complex_regular(draw, 2, 4, 4))
    yield Sample("orthogonal", orthonormal(draw.real(3, 3)))
    yield Sample("no matrices", np.zeros((0, 2, 2)))
    yield Sample("0 by 0", np.zeros((0, 0)))


def polynomial(draw: Draw) -> Iterator[Sample]:
    """Yield samples for determinants, which singular matrices have as well."""
    yield from square(draw)
    yield Sample("rank 2 of 3", with_values(draw.real(3, 3), 2.0, 1.0, 0.0))
    yield Sample("rank 3 of 4", with_values(draw.complex(4, 4), 2.0, 1.0, 1.0, 0.0))
    yield Sample("zeros", np.zeros((2, 2)))


def adjugate(draw: Draw) -> Iterator[Sample]:
    yield from square(draw)
    yield Sample("identity", np.eye(4))
    yield Sample("singular 2 by 2", np.asarray([[1.0, 2.0], [2.0, 4.0]]))
    yield Sample("singular 3 by 3", with_values(draw.real(3, 3), 2.0, 0.0, 0.0))
    x = with_values(draw.real(4, 4), 2.0, 1.0, 0.0, 0.0)
    # the second derivative needs an inverse
    yield Sample("singular 4 by 4", x, checks=("forward", "vjp", "jvp"))
    yield Sample("batch of singular ones", np.stack([x, x.T])[:, None], checks=("forward", "vjp"))


def adjugate_tangent(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", regular(draw, 3, 3), draw.real(3, 3))
    yield Sample("complex", complex_regular(draw, 3, 3), draw.complex(3, 3))
    yield Sample("batch", regular(draw, 2, 1, 3, 3), draw.real(2, 1, 3, 3))
    yield Sample("number", np.asarray([[-1.5]]), np.asarray([[2.0]]))
    yield Sample("4 by 4", regular(draw, 4, 4), draw.real(4, 4))
    yield Sample("identity", np.eye(4), draw.real(4, 4))
    yield Sample("singular 3 by 3", with_values(draw.real(3, 3), 2.0, 0.0, 0.0), draw.real(3, 3))
    yield Sample(
        "singular 4 by 4",
        with_values(draw.real(4, 4), 2.0, 0.0, 0.0, 0.0),
        draw.real(4, 4),
        differentiable=("dx",),
    )
    yield Sample("0 by 0", np.zeros((0, 0)), np.zeros((0, 0)))


def matrix_power(draw: Draw) -> Iterator[Sample]:
    yield Sample("cube", regular(draw, 2, 2), 3)
    yield Sample("complex", complex_regular(draw, 2, 2), 2)
    for n in (0, 1, 6, -1, -3):
        yield Sample(f"to {n}", regular(draw, 2, 2), n)
    yield Sample("complex to -2", complex_regular(draw, 2, 2), -2)
    yield Sample("batch", regular(draw, 2, 2, 2), 5)
    yield Sample("batch to 0", regular(draw, 2, 2, 2), 0)
    yield Sample("singular", np.asarray([[0.0, 1.0], [0.0, 0.0]]), 3)
    yield Sample("0 by 0", np.zeros((0, 0)), 2)


def solve(draw: Draw) -> Iterator[Sample]:
    yield Sample("matrix", regular(draw, 3, 3), draw.real(3, 2))
    yield Sample("complex", complex_regular(draw, 2, 2), draw.complex(2, 3))
    yield Sample("vector", regular(draw, 3, 3), draw.real(3))
    yield Sample("batch", regular(draw, 2, 2, 2), draw.real(2, 2, 3))
    yield Sample("batch,vector", regular(draw, 3, 2, 2), draw.real(2))
    yield Sample("batch,matrix", regular(draw, 2, 2, 2), draw.real(2, 3))
    yield Sample("square,batch of squares", regular(draw, 2, 2), draw.real(2, 2, 2))
    yield Sample("broadcast batches", complex_regular(draw, 2, 1, 2, 2), draw.complex(3, 2, 1))
    yield Sample("real,complex", regular(draw, 2, 2), draw.complex(2, 2))
    yield Sample("complex,real", complex_regular(draw, 2, 2), draw.real(2))
    yield Sample("no matrices", np.zeros((0, 2, 2)), draw.real(2, 1))
    yield Sample("0 by 0", np.zeros((0, 0)), np.zeros((0, 2)))


def pinv(draw: Draw) -> Iterator[Sample]:
    yield Sample("tall", regular(draw, 3, 2))
    yield Sample("complex", complex_regular(draw, 2, 3))
    yield Sample("wide", regular(draw, 2, 3))
    yield Sample("square", regular(draw, 2, 2))
    yield Sample("batch", regular(draw, 1, 4, 2, 3))
    for label, rank, x in (
        ("rank 2 of 3", 2, with_values(draw.real(4, 3), 2.0, 1.0, 0.0)),
        ("complex, rank 1 of 2", 1, with_values(draw.complex(2, 3), 1.5, 0.0)),
    ):
        yield Sample(label, x, project={"x": partial(of_rank, rank)}, checks=FIRST)
    yield Sample("rtol", regular(draw, 3, 2), rtol=0.01)
    yield Sample("rtols", regular(draw, 2, 3, 2), rtol=np.asarray([0.01, 0.02]))
    yield Sample(
        "rtol that cuts",
        with_values(draw.real(3, 2), 2.0, 0.1),
        rtol=0.1,
        checks=("forward",),
        short=True,
    )
    yield Sample("no matrices", np.zeros((0, 3, 2)))
    yield Sample("no columns", np.zeros((3, 0)))


def matrix_rank(draw: Draw) -> Iterator[Sample]:
    yield Sample("full", regular(draw, 3, 2))
    yield Sample("complex", complex_regular(draw, 2, 2))
    yield Sample("batch", np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]))
    yield Sample("rtol", np.asarray([[1.0, 0.0], [0.0, 0.01]]), rtol=0.1)
    yield Sample("rtols", np.stack([np.diag([1.0, 0.01])] * 2), rtol=np.asarray([0.1, 0.001]))


def cross(draw: Draw) -> Iterator[Sample]:
    yield Sample("vectors", draw.real(3), draw.real(3))
    yield Sample("complex", draw.complex(2, 3), draw.complex(2, 3))
    yield Sample("axis", draw.real(3, 2), draw.real(3, 2), axis=-2)
    yield Sample("broadcast", draw.real(2, 3), draw.real(3))
    yield Sample("real,complex", draw.real(3), draw.complex(3))
    yield Sample("integers", draw.integers(3), draw.integers(3))
    yield Sample("empty", np.zeros((0, 3)), draw.real(3))


def outer(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2), draw.real(3))
    yield Sample("complex", draw.complex(2), draw.complex(3))
    yield Sample("real,complex", draw.real(2), draw.complex(2))
    yield Sample("integers", draw.integers(2), draw.integers(3))
    yield Sample("empty", np.zeros((0,)), draw.real(3))


def diagonal(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("square", draw.real(3, 3))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("tall", draw.real(4, 2))
    yield Sample("batch", draw.real(2, 1, 3, 2))
    for offset in (1, -1, 2, -2):
        yield Sample(f"wide, offset {offset}", draw.real(2, 4), offset=offset)
        yield Sample(f"tall, offset {offset}", draw.real(2, 4, 2), offset=offset)
    yield Sample("offset beyond", draw.real(2, 3), offset=3)
    yield Sample("integers", draw.integers(3, 3))
    yield Sample("no rows", np.zeros((2, 0, 3)), offset=1)
    if name == "trace":
        yield Sample("dtype", draw.real(2, 2), dtype=DType("float32"))


def vector_norm(draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.nonzero(2, 3))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("axis", draw.nonzero(2, 3), axis=0)
    yield Sample("axes", draw.nonzero(2, 3, 2), axis=(-1, 0))
    yield Sample("keepdims", draw.nonzero(2, 3), keepdims=True)
    yield Sample("no axes", draw.nonzero(2, 2), axis=())
    yield Sample("0-d", draw.nonzero())
    for ord in (1, 3, 4, 2.5, 1.5, 0.5, -1, -2, -0.5, INF, -INF):
        yield Sample(
            f"ord {ord}", np.asarray([-1.0, 0.5, 2.0]) * draw.nonzero(2, 1), axis=-1, ord=ord
        )
        yield Sample(
            f"complex, ord {ord}",
            np.asarray([1.0, 2.0, 3.0]) * np.exp(1j * draw.real(2, 3)),
            axis=1,
            ord=ord,
        )
    yield Sample("even ord with a zero", np.asarray([0.0, 1.0, -2.0]), ord=4)
    yield Sample("complex even ord with a zero", np.asarray([0.0, 1.0 + 1.0j, -2.0]), ord=4)
    yield Sample("empty", np.zeros((2, 0)), axis=1)
    yield Sample("none", np.zeros((0, 2)), axis=1, ord=INF)


def matrix_norm(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("batch", draw.real(2, 1, 3, 2), keepdims=True)
    for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        yield Sample(f"ord {ord}", regular(draw, 3, 2), ord=ord)
        yield Sample(f"wide, ord {ord}", regular(draw, 2, 2, 3), ord=ord, keepdims=True)
        yield Sample(f"complex, ord {ord}", complex_regular(draw, 2, 2), ord=ord)
    for ord in ("nuc", 2):
        yield Sample(f"complex batch, ord {ord}", complex_regular(draw, 2, 3, 2), ord=ord)
        yield Sample(f"no matrices, ord {ord}", np.zeros((0, 2, 3)), ord=ord)
    yield Sample("orthogonal, ord nuc", orthonormal(draw.real(3, 3)), ord="nuc")
    yield Sample("isometry, ord nuc", orthonormal(draw.complex(3, 2)), ord="nuc")
    yield Sample("others equal, ord 2", with_values(draw.real(3, 4), 2.0, 1.0, 1.0), ord=2)
    yield Sample("others equal, ord -2", with_values(draw.complex(3, 3), 2.0, 2.0, 1.0), ord=-2)
    yield Sample("0 by 0", np.zeros((0, 0)))


def singular_factor(draw: Draw) -> Iterator[Sample]:
    yield Sample("nuc", regular(draw, 3, 2), "nuc")
    yield Sample("complex", complex_regular(draw, 2, 3), "nuc")
    yield Sample("largest", complex_regular(draw, 3, 2), 2.0)
    yield Sample("square", complex_regular(draw, 2, 2), "nuc")
    yield Sample("one row", regular(draw, 1, 3), "nuc")
    yield Sample("smallest", regular(draw, 2, 1, 2, 3), -2.0)
    yield Sample("no matrices", np.zeros((0, 2, 2)), 2.0)


def aliases(name: str, draw: Draw) -> Iterator[Sample]:
    """Yield the samples of the name without the prefix."""
    yield from statistical.samples()[name](draw)


I2 = np.eye(2)
ZERO2, ZERO3 = np.zeros((2, 2)), np.zeros((3, 3))
CROSSED = np.asarray([[1.0, -2.0], [2.0, 1.0]])
HALVES = np.asarray([[0.5, -0.5], [0.5, 0.5]])

KINKS: dict[str, list[Kink]] = {
    "det": [
        Kink(
            "singular 2 by 2",
            np.asarray([[1.0, 2.0], [2.0, 4.0]]),
            gradients={"x": [[4, -2], [-2, 1]]},
            second={"x": [[1, -1], [-1, 1]]},
        ),
        Kink(
            "singular 3 by 3",
            np.diag([1.0, 0.0, 0.0]),
            gradients={"x": ZERO3},
            second={"x": [[0, 0, 0], [0, 1, -1], [0, -1, 1]]},
        ),
        Kink(
            "zero",
            ZERO3,
            gradients={"x": ZERO3},
            second={"x": ZERO3},
            reason="the second derivative is that of the polynomial, where PyTorch gives nan",
        ),
    ],
    "vector_norm": [
        Kink(
            "zero",
            [0.0, 0.0],
            gradients={"x": [0, 0]},
            second={"x": [0, 0]},
            reason="PyTorch's second derivative is nan",
        ),
        Kink("complex zero", np.zeros(2, np.complex128), gradients={"x": [0, 0]}),
        *(
            Kink(f"zero, ord {ord}", [0.0, 0.0], ord=ord, gradients={"x": [0, 0]})
            for ord in (1, INF, -INF, 3, 4, 0.5, -1)
        ),
        Kink("ties, ord inf", [1.0, -1.0], ord=INF, gradients={"x": [0.5, -0.5]}),
        Kink(
            "ties along an axis, ord -inf",
            np.asarray([[1.0, -1.0, 2.0]]),
            axis=1,
            ord=-INF,
            gradients={"x": [[0.5, -0.5, 0]]},
        ),
        *(
            Kink(
                f"an element of 0, ord {ord}",
                [0.0, 3.0],
                ord=ord,
                gradients={"x": [0, float(ord > 0)]},
                second={"x": [0, 0]} if ord >= 1 else {},
            )
            for ord in (1, 1.5, 0.5, -1, -0.5)
        ),
        Kink("ord 0", [0.0, 3.0], ord=0, gradients={"x": [0, 0]}),
    ],
    "matrix_norm": [
        *(
            Kink(f"zero, ord {ord}", ZERO2, ord=ord, gradients={"x": ZERO2})
            for ord in ("fro", 1, -1, INF, -INF)
        ),
        *(
            Kink(
                f"zero, ord {ord}",
                ZERO2,
                ord=ord,
                gradients={"x": ZERO2},
                reason="PyTorch takes another subgradient, which depends on the "
                "vectors that LAPACK chooses",
            )
            for ord in ("nuc", 2, -2)
        ),
        *(
            Kink(f"ties, ord {ord}", CROSSED, ord=ord, gradients={"x": HALVES})
            for ord in (1, -1, INF, -INF)
        ),
        Kink("identity, ord nuc", I2, ord="nuc", gradients={"x": I2}, second={"x": ZERO2}),
        *(Kink(f"identity, ord {ord}", I2, ord=ord, gradients={"x": I2 / 2}) for ord in (2, -2)),
    ],
}

MAKERS: dict[str, Any] = {
    **dict.fromkeys(("inv", "slogdet"), square),
    "det": polynomial,
    "matrix_power": matrix_power,
    "solve": solve,
    "pinv": pinv,
    "matrix_rank": matrix_rank,
    "cross": cross,
    "outer": outer,
    "vector_norm": vector_norm,
    "matrix_norm": matrix_norm,
    **{name: partial(diagonal, name) for name in ("diagonal", "trace")},
    **{
        name: partial(aliases, name)
        for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")
    },
}


def _with_kinks(make: Any, kinks: list[Kink], draw: Draw) -> Iterator[Sample]:
    yield from make(draw)
    yield from kinks


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, and of the kernels in its rules, by operation."""
    table = {
        f"linalg.{name}": partial(_with_kinks, make, KINKS.get(name, []))
        for name, make in MAKERS.items()
    }
    return table | {
        "adjugate": adjugate,
        "adjugate_tangent": adjugate_tangent,
        "singular_factor": singular_factor,
    }
