"""A fluid on a periodic square: a flow carries smoke, differentiated with respect to its start.

A step makes the flow divergence-free, by Jacobi iterations for the pressure, and moves flow and
smoke back along it, with bilinear weights. The loss is the squared distance of the final smoke from
a picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIDE, STEPS, JACOBI, DT = 32, 10, 10, 1.0

Index = Callable[[Any], Any]  # from whole numbers of floating dtype to indices of an axis


def inputs() -> tuple[list[Any], list[Any]]:
    """Return the flow in both directions; and rows and columns, the smoke, and the picture."""
    rng = np.random.default_rng(9)
    rows, columns = (
        x.astype(np.float64) for x in np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    )
    smoke = (np.hypot(rows - 16, columns - 12) < 6).astype(np.float64)
    picture = (np.hypot(rows - 16, columns - 20) < 6).astype(np.float64)
    return [rng.normal(size=(SIDE, SIDE)) * 0.7 for _ in range(2)], [rows, columns, smoke, picture]


def index_of_ours(x: Any) -> Any:
    import multigrad as mg

    return mg.astype(mg.remainder(x, SIDE), np.int64)


def index_of_numpy(x: Any) -> Any:
    return (x % SIDE).astype(np.int64)


def index_of_torch(torch: Any) -> Index:
    return lambda x: torch.remainder(x, SIDE).to(torch.int64)


def index_of_jax(x: Any) -> Any:
    return (x % SIDE).astype("int64")


def project(xp: Any, u: Any, v: Any) -> tuple[Any, Any]:
    divergence = -0.5 * (
        xp.roll(u, -1, 1) - xp.roll(u, 1, 1) + xp.roll(v, -1, 0) - xp.roll(v, 1, 0)
    )
    p = divergence * 0.25
    for _ in range(JACOBI - 1):
        p = (
            divergence + xp.roll(p, 1, 1) + xp.roll(p, -1, 1) + xp.roll(p, 1, 0) + xp.roll(p, -1, 0)
        ) * 0.25
    return u - 0.5 * (xp.roll(p, -1, 1) - xp.roll(p, 1, 1)), v - 0.5 * (
        xp.roll(p, -1, 0) - xp.roll(p, 1, 0)
    )


class _Ours:
    """multigrad's namespace: `roll` takes axis by keyword, as in the standard."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)

    def roll(self, x: Any, shift: int, axis: int) -> Any:
        return self._xp.roll(x, shift, axis=axis)


def places(xp: Any, u: Any, v: Any, rows: Any, columns: Any, index: Index) -> tuple[Any, ...]:
    y, x = rows - DT * v, columns - DT * u
    y0, x0 = xp.floor(y), xp.floor(x)
    return index(y0), index(y0 + 1), index(x0), index(x0 + 1), y - y0, x - x0


def carried(f: Any, at: tuple[Any, ...]) -> Any:
    j0, j1, i0, i1, y, x = at
    return (1 - x) * ((1 - y) * f[j0, i0] + y * f[j1, i0]) + x * (
        (1 - y) * f[j0, i1] + y * f[j1, i1]
    )


def loss(
    xp: Any, params: Any, rows: Any, columns: Any, smoke: Any, picture: Any, index: Index
) -> Any:
    u, v = params
    xp = xp if xp.__name__.startswith("torch") else _Ours(xp)
    s = xp.asarray(smoke)
    for _ in range(STEPS):
        u, v = project(xp, u, v)
        at = places(xp, u, v, rows, columns, index)
        u, v, s = carried(u, at), carried(v, at), carried(s, at)
    return xp.sum((s - picture) ** 2)


# -- the gradient by hand


def by_hand(rows: Any, columns: Any, smoke: Any, picture: Any) -> Callable[..., Any]:
    def gradient(u: Any, v: Any) -> Any:
        s, saved = smoke, []
        for _ in range(STEPS):
            u, v = project(np, u, v)
            at = places(np, u, v, rows, columns, index_of_numpy)
            saved.append((u, v, s, at))
            u, v, s = carried(u, at), carried(v, at), carried(s, at)
        value, gs = np.sum((s - picture) ** 2), 2 * (s - picture)
        gu, gv = np.zeros_like(u), np.zeros_like(v)
        while saved:
            u, v, s, at = saved.pop()
            gx, gy = np.zeros_like(u), np.zeros_like(u)
            moved = [back_carried(f, g, at, gy, gx) for f, g in ((u, gu), (v, gv), (s, gs))]
            gu, gv, gs = moved[0] - DT * gx, moved[1] - DT * gy, moved[2]
            gu, gv = back_projected(gu, gv)
        return value, [gu, gv]

    return gradient


def back_carried(f: Any, g: Any, at: tuple[Any, ...], gy: Any, gx: Any) -> Any:
    """Return the gradient of `carried` with respect to the field, and add those of the place."""
    j0, j1, i0, i1, y, x = at
    total = np.zeros(SIDE * SIDE)
    parts = (
        (j0, i0, (1 - x) * (1 - y)),
        (j1, i0, (1 - x) * y),
        (j0, i1, x * (1 - y)),
        (j1, i1, x * y),
    )
    for j, i, weight in parts:
        total += np.bincount((j * SIDE + i).reshape(-1), (g * weight).reshape(-1), SIDE * SIDE)
    f00, f10, f01, f11 = (f[j, i] for j, i, _ in parts)
    gx += g * ((1 - y) * (f01 - f00) + y * (f11 - f10))
    gy += g * ((1 - x) * (f10 - f00) + x * (f11 - f01))
    return total.reshape(SIDE, SIDE)


def back_projected(gu: Any, gv: Any) -> tuple[Any, Any]:
    gp = -0.5 * (np.roll(gu, 1, 1) - np.roll(gu, -1, 1) + np.roll(gv, 1, 0) - np.roll(gv, -1, 0))
    divergence = np.zeros_like(gu)
    for _ in range(JACOBI - 1):
        q = gp * 0.25
        divergence += q
        gp = np.roll(q, -1, 1) + np.roll(q, 1, 1) + np.roll(q, -1, 0) + np.roll(q, 1, 0)
    divergence += gp * 0.25
    return (
        gu - 0.5 * (np.roll(divergence, 1, 1) - np.roll(divergence, -1, 1)),
        gv - 0.5 * (np.roll(divergence, 1, 0) - np.roll(divergence, -1, 0)),
    )
