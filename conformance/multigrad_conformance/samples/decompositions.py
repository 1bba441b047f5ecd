"""Samples of the decompositions of matrices.

All matrices are well conditioned, with values far from each other, so that finite differences are
accurate.

Vectors are unique only up to a phase. So the comparison and the derivatives use projections onto
the vectors, or products of vector pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, Kink, Refused, Sample

NAN = np.nan

# ----- matrices -----


def orthonormal(x: Any) -> Any:
    return np.linalg.qr(x)[0]


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


PROJECT = {"x": hermitian}


def with_eigenvalues(x: Any, low: float, high: float) -> Any:
    """Return a Hermitian matrix with evenly spaced eigenvalues, and eigenvectors from `x`."""
    v = orthonormal(x)
    return hermitian(v * np.linspace(low, high, x.shape[-1]) @ adjoint(v))


def with_singular_values(x: Any) -> Any:
    """Return a matrix of the shape of `x` with evenly spaced singular values.

    Its vectors depend on `x`.
    """
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return u * np.linspace(2.0, 0.7, u.shape[-1]) @ vh


def with_diagonal(x: Any) -> Any:
    """Return a nearly diagonal matrix with eigenvalues far from each other."""
    return 0.2 * x + np.diag(np.linspace(-2.0, 2.0, x.shape[-1]))


# ----- phase-independent functions of vectors -----


def conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


def projections(xp: Any, values: Any, vectors: Any) -> Any:
    """Return the values, and the projection onto each vector."""
    rows = xp.matrix_transpose(vectors)
    return values, rows[..., :, :, None] * conj(xp, rows)[..., :, None, :]


def pairs(xp: Any, u: Any, s: Any, vh: Any) -> Any:
    """Return the singular values, and the product of each left vector with its right one."""
    k = s.shape[-1]
    rows = xp.matrix_transpose(u[..., :, :k])
    return s, rows[..., :, :, None] * vh[..., :k, :][..., :, None, :]


def left(xp: Any, u: Any, s: Any, vh: Any) -> Any:
    return projections(xp, s, u[..., :, : s.shape[-1]])[1]


def right(xp: Any, u: Any, s: Any, vh: Any) -> Any:
    return projections(xp, s, xp.matrix_transpose(vh[..., : s.shape[-1], :]))[1]


def added(xp: Any, u: Any, s: Any, vh: Any) -> Any:
    """Return the projection onto the columns that full_matrices=True adds to U."""
    rest = u[..., :, s.shape[-1] :]
    return rest @ conj(xp, xp.matrix_transpose(rest))


# ----- samples -----


def cholesky(draw: Draw) -> Iterator[Sample]:
    for kind, make in (("", draw.real), ("complex", draw.complex)):
        yield Sample(kind or "lower", with_eigenvalues(make(3, 3), 0.5, 2.0), project=PROJECT)
        yield Sample(
            f"upper {kind}".strip(),
            with_eigenvalues(make(3, 3), 0.5, 2.0),
            project=PROJECT,
            upper=True,
        )
    yield Sample("batch", with_eigenvalues(draw.complex(2, 1, 2, 2), 0.5, 2.0), project=PROJECT)
    yield Sample("1x1", np.asarray([[2.0]]))
    yield Sample("0x0", np.zeros((0, 0)))
    yield Sample("empty batch", np.zeros((0, 2, 2)))


def eigh(draw: Draw) -> Iterator[Sample]:
    options: dict[str, Any] = {"project": PROJECT, "finish": projections}
    yield Sample("real", with_eigenvalues(draw.real(3, 3), -2.0, 2.0), **options)
    yield Sample("complex", with_eigenvalues(draw.complex(3, 3), -2.0, 2.0), **options)
    yield Sample("batch", with_eigenvalues(draw.complex(2, 1, 2, 2), -1.0, 1.0), **options)
    yield Sample("1x1", np.asarray([[2.0]]), **options)
    yield Sample("0x0", np.zeros((0, 0)), **options)
    yield Sample("empty batch", np.zeros((0, 2, 2)), **options)
    yield Kink("repeated", np.eye(2), gradients={"x": np.full((2, 2), NAN)}, values=False)
    yield Sample(
        "little of the values",
        with_eigenvalues(draw.complex(2, 2), -2.0, 2.0),
        project=PROJECT,
        finish=lambda xp, w, v: (1e-9 * w, projections(xp, w, v)[1]),
    )
    yield Refused(
        "phases",
        with_eigenvalues(draw.complex(2, 2), -2.0, 2.0),
        finish=lambda xp, w, v: (0 * w, v),
        message="linalg_eigh_backward",
    )


def eigvalsh(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", with_eigenvalues(draw.real(3, 3), -2.0, 2.0), project=PROJECT)
    yield Sample("complex", with_eigenvalues(draw.complex(3, 3), -2.0, 2.0), project=PROJECT)
    yield Sample("batch", with_eigenvalues(draw.complex(2, 1, 2, 2), -1.0, 1.0), project=PROJECT)
    yield Sample("1x1", np.asarray([[2.0]]))
    yield Sample("0x0", np.zeros((0, 0)))
    yield Sample("empty batch", np.zeros((0, 2, 2)))
    yield Kink(
        "repeated", np.eye(3), gradients={"x": np.eye(3)}, second={"x": np.full((3, 3), NAN)}
    )
    yield Kink("zeros", np.zeros((2, 2)), gradients={"x": np.eye(2)})


def eig(draw: Draw) -> Iterator[Sample]:
    pair = np.asarray([[1.0, 1.5, 0.2], [-1.2, 0.8, 0.1], [0.3, -0.2, -1.0]])
    yield Sample("real", with_diagonal(draw.real(3, 3)), finish=projections)
    yield Sample("complex", with_diagonal(draw.complex(3, 3)), finish=projections)
    yield Sample("conjugate pair", pair, finish=projections)
    yield Sample("batch", with_diagonal(draw.complex(2, 1, 2, 2)), finish=projections)
    yield Sample("1x1", np.asarray([[2.0]]), finish=projections)
    yield Sample("0x0", np.zeros((0, 0)), finish=projections)
    yield Sample("empty batch", np.zeros((0, 2, 2)), finish=projections)
    yield Kink("repeated", np.eye(2), gradients={"x": np.full((2, 2), NAN)}, values=False)
    yield Refused(
        "phases",
        with_diagonal(draw.complex(2, 2)),
        finish=lambda xp, w, v: (0 * w, v),
        message="linalg_eig_backward",
    )


def eigvals(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", with_diagonal(draw.real(3, 3)))
    yield Sample("complex", with_diagonal(draw.complex(3, 3)))
    yield Sample(
        "conjugate pair", np.asarray([[1.0, 1.5, 0.2], [-1.2, 0.8, 0.1], [0.3, -0.2, -1.0]])
    )
    yield Sample("batch", with_diagonal(draw.complex(2, 1, 2, 2)))
    yield Sample("1x1", np.asarray([[2.0]]))
    yield Sample("0x0", np.zeros((0, 0)))
    yield Sample("empty batch", np.zeros((0, 2, 2)))
    yield Kink("repeated", np.eye(3), gradients={"x": np.eye(3)})


def qr(draw: Draw) -> Iterator[Sample]:
    for kind, make in (("", draw.real), ("complex", draw.complex)):
        yield Sample(kind or "tall", with_singular_values(make(3, 2)))
        yield Sample(f"square {kind}".strip(), with_singular_values(make(3, 3)))
        yield Sample(f"wide {kind}".strip(), with_singular_values(make(2, 3)))
        yield Sample(
            f"wide and complete {kind}".strip(), with_singular_values(make(2, 3)), mode="complete"
        )
    yield Sample(
        "tall and complete",
        with_singular_values(draw.real(3, 2)),
        mode="complete",
        checks=("forward",),
        short=True,
    )
    yield Sample("batch", with_singular_values(draw.complex(2, 1, 3, 2)))
    yield Sample("wide batch", with_singular_values(draw.real(2, 1, 2, 3)))
    yield Sample("1x1", np.asarray([[-2.0]]))
    yield Sample("0x0", np.zeros((0, 0)))
    yield Sample("no columns", np.zeros((3, 0)))
    yield Sample("no rows", np.zeros((0, 3)))
    yield Sample("empty batch", np.zeros((0, 3, 2)))
    yield Sample("square and complete", with_singular_values(draw.real(2, 2)), mode="complete")
    yield Refused(
        "complete",
        with_singular_values(draw.real(2, 3, 2)),
        mode="complete",
        message="mode='complete'",
    )


def svd(draw: Draw) -> Iterator[Sample]:
    reduced: dict[str, Any] = {"full_matrices": False}
    for kind, make in (("", draw.real), ("complex", draw.complex)):
        yield Sample(kind or "tall", with_singular_values(make(3, 2)), finish=pairs, **reduced)
        yield Sample(f"square {kind}".strip(), with_singular_values(make(3, 3)), finish=pairs)
        yield Sample(
            f"wide {kind}".strip(), with_singular_values(make(2, 3)), finish=pairs, **reduced
        )
        for m, n, shape in ((3, 2, "tall"), (2, 3, "wide")):
            x = with_singular_values(make(m, n))
            yield Sample(f"full and {shape} {kind}".strip(), x, finish=pairs)
        for m, n, shape in ((3, 2, "tall"), (2, 3, "wide")):
            for vectors, finish in (("U", left), ("Vh", right)):
                label, x = f"{vectors} of a {shape} one", with_singular_values(make(m, n))
                yield Sample(f"{label} {kind}".strip(), x, finish=finish, **reduced)
    yield Sample("batch", with_singular_values(draw.complex(2, 1, 3, 2)), finish=pairs, **reduced)
    yield Sample("1x1", np.asarray([[-2.0]]), finish=pairs)
    yield Sample("0x0", np.zeros((0, 0)), finish=pairs)
    yield Sample("no columns", np.zeros((3, 0)), finish=pairs)
    yield Sample("no rows", np.zeros((0, 3)), finish=pairs)
    yield Sample("empty batch", np.zeros((0, 3, 2)), finish=pairs)
    yield Kink("repeated", np.eye(2), gradients={"x": np.full((2, 2), NAN)}, values=False)
    yield Sample(
        "columns that are added",
        with_singular_values(draw.real(3, 2)),
        finish=added,
        checks=("dual",),
        short=True,
    )
    yield Refused(
        "phases",
        with_singular_values(draw.complex(3, 2)),
        finish=lambda xp, u, s, vh: (u, 0 * s),
        message="svd_backward",
        **reduced,
    )
    yield Refused(
        "a column that is added",
        with_singular_values(draw.real(3, 2)),
        finish=lambda xp, u, s, vh: 0.1 * u,
        message="last columns of U",
    )
    yield Refused(
        "a row that is added",
        with_singular_values(draw.real(2, 3)),
        finish=lambda xp, u, s, vh: 0.1 * vh,
        message="last rows of Vh",
    )


def svdvals(draw: Draw) -> Iterator[Sample]:
    yield Sample("tall", with_singular_values(draw.real(3, 2)))
    yield Sample("complex", with_singular_values(draw.complex(3, 3)))
    yield Sample("wide", with_singular_values(draw.real(2, 3)))
    yield Sample("batch", with_singular_values(draw.complex(2, 1, 3, 2)))
    yield Sample("1x1", np.asarray([[-2.0]]))
    yield Sample("0x0", np.zeros((0, 0)))
    yield Sample("no columns", np.zeros((3, 0)))
    yield Sample("empty batch", np.zeros((0, 3, 2)))
    yield Kink(
        "repeated", np.eye(3), gradients={"x": np.eye(3)}, second={"x": np.full((3, 3), NAN)}
    )


def samples() -> dict[str, Any]:
    """Return the generators of these operations, by name."""
    return {
        f"linalg.{f.__name__}": f
        for f in (cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals)
    }
