"""The smaller rooms of SciPy: fft, integrate, interpolate, optimize, cluster, linalg, constants,
differentiate, on Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Table

from multigrad.clients import scipy_fft

scipy = pytest.importorskip("scipy", reason="scipy is a dependency of the tests only")

import scipy.cluster.hierarchy as hierarchy  # noqa: E402
import scipy.cluster.vq as vq  # noqa: E402
import scipy.constants as constants  # noqa: E402
import scipy.differentiate as differentiate  # noqa: E402
import scipy.fft as fft  # noqa: E402
import scipy.integrate as integrate  # noqa: E402
import scipy.interpolate as interpolate  # noqa: E402
import scipy.linalg as linalg  # noqa: E402
import scipy.optimize as optimize  # noqa: E402
from scipy.optimize import elementwise  # noqa: E402
from scipy.stats.qmc import Halton  # noqa: E402

X, Y, V, W = drawn(2, 3), drawn(2, 3, seed=1), drawn(6), drawn(6, seed=2)
SQUARE, POSITIVE, P = drawn(3, 3), drawn(3, 3) @ drawn(3, 3).T + np.eye(3), drawn(3, seed=3)
C, CX = V[:4] + 1j * W[:4], X + 1j * Y
POINTS, AT = np.cumsum(drawn(6, seed=4)), np.asarray([1.3, 2.2, 3.4])


def transforms() -> list[Call]:
    of = {
        "fft": C,
        "ifft": C,
        "rfft": V,
        "irfft": C,
        "hfft": C,
        "ihfft": V,
        "fftshift": V,
        "ifftshift": V,
        "fft2": CX,
        "ifft2": CX,
        "fftn": CX,
        "ifftn": CX,
        "rfft2": X,
        "rfftn": X,
        "irfft2": CX,
        "irfftn": CX,
        "hfft2": CX,
        "hfftn": CX,
        "ihfft2": X,
        "ihfftn": X,
    }
    waves = {"dct": V, "idct": V, "dst": V, "idst": V, "dctn": X, "idctn": X, "dstn": X, "idstn": X}
    return [
        *(
            Call(f"fft.{name}", getattr(fft, name), (x,), also=["jax"] * (name in ("fft", "irfft")))
            for name, x in of.items()
        ),
        *(
            Call(f"fft.{name}", in_backend(getattr(fft, name)), (x,), note="in the backend")
            for name, x in waves.items()
        ),
    ]


def in_backend(function: Callable[..., Any]) -> Callable[..., Any]:
    """A transform in the context of multigrad's backend of scipy.fft, which leaves NumPy's arrays
    to SciPy.
    """

    def transformed(x: Any) -> Any:
        with fft.set_backend(scipy_fft):
            return function(x)

    return transformed


def spline(make: Callable[..., Any], *given: Any, **options: Any) -> Callable[..., Any]:
    """The values of an interpolant between its points, of the values at them."""

    def between(x: Any, y: Any, at: Any) -> Any:
        return make(x, y, *given, **options)(at)

    return between


def interpolating(name: str, *given: Any, **options: Any) -> Call:
    return Call(
        f"interpolate.{name}",
        spline(getattr(interpolate, name), *given, **options),
        (POINTS, V, AT),
        by=[1],
        note="by the values",
    )


def exponential(x: Any, a: Any) -> Any:
    return x.__array_namespace__().exp(a * x)


def cubic(x: Any, a: Any) -> Any:
    return x**3 - a


def parabola(x: Any, a: Any) -> Any:
    return (x - a) ** 2


def sampler() -> Any:
    return Halton(1, seed=0)


def points_like(x: Any, *numbers: float) -> list[Any]:
    xp = x.__array_namespace__()
    return [xp.full(x.shape, number, dtype=x.dtype) for number in numbers]


CALLS = [
    *transforms(),
    Call("fft.fht", lambda x: fft.fht(x, 0.1, 0.5), (V,), value_rtol=1e-9),
    Call("fft.ifht", lambda x: fft.ifht(x, 0.1, 0.5), (V,), value_rtol=1e-9),
    Call(
        "integrate.cubature",
        lambda a: integrate.cubature(lambda t: t[:, 0] * a[0], 0 * a[:1], a[:1]).estimate,
        (V[:2],),
        value_rtol=1e-9,
    ),
    Call("integrate.cumulative_simpson", integrate.cumulative_simpson, (V,)),
    Call(
        "integrate.cumulative_trapezoid",
        lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0),
        (V, np.cumsum(W)),
    ),
    Call(
        "integrate.nsum",
        lambda a: (
            integrate.nsum(lambda k, a: 1 / (k**2 + a), *points_like(a, 1.0, 4.0), args=(a,)).sum
        ),
        (V[:2],),
    ),
    Call(
        "integrate.qmc_quad",
        lambda a: (
            integrate.qmc_quad(
                lambda t: a[0] * t[0, ...],
                0 * a,
                1 + 0 * a,
                n_points=8,
                n_estimates=2,
                qrng=sampler(),
            ).integral
        ),
        (V[:1],),
    ),
    Call("integrate.romb", integrate.romb, (drawn(5),)),
    Call("integrate.simpson", integrate.simpson, (V,)),
    Call(
        "integrate.tanhsinh",
        lambda a: integrate.tanhsinh(exponential, *points_like(a, 0.0, 1.0), args=(a,)).integral,
        (V[:2],),
        value_rtol=1e-8,
    ),
    Call("integrate.trapezoid", integrate.trapezoid, (V, np.cumsum(W)), also=["jax"]),
    interpolating("Akima1DInterpolator"),
    interpolating("BarycentricInterpolator"),
    interpolating("CubicSpline"),
    interpolating("KroghInterpolator"),
    interpolating("PchipInterpolator"),
    interpolating("interp1d"),
    interpolating("make_interp_spline"),
    interpolating("make_smoothing_spline", lam=1.0),
    interpolating("make_splrep", s=0.1),
    Call(
        "interpolate.BSpline",
        lambda t, c, at: interpolate.BSpline(t, c, 2)(at),
        (np.asarray([0.0, 0, 0, 1, 2, 3, 4, 4, 4]), V, AT),
        by=[1],
    ),
    Call(
        "interpolate.PPoly",
        lambda c, x, at: interpolate.PPoly(c, x)(at),
        (X, np.asarray([0.0, 2.0, 4.0, 5.0]), AT),
        by=[0],
    ),
    Call(
        "interpolate.RegularGridInterpolator",
        lambda a, b, y, at: interpolate.RegularGridInterpolator((a, b), y)(at),
        (np.arange(2.0), np.arange(3.0), X, np.asarray([[0.3, 1.2]])),
        by=[2],
    ),
    Call("optimize.rosen", optimize.rosen, (V,), also=["jax"]),
    Call("optimize.rosen_der", optimize.rosen_der, (V,), also=["jax"]),
    Call("optimize.rosen_hess", optimize.rosen_hess, (V,)),
    Call("optimize.rosen_hess_prod", optimize.rosen_hess_prod, (V, W)),
    Call(
        "optimize.elementwise.find_root",
        lambda a: elementwise.find_root(cubic, points_like(a, 0.1, 2.0), args=(a,)).x,
        (V[:2],),
        rtol=1e-4,
    ),
    Call(
        "optimize.elementwise.find_minimum",
        lambda a: elementwise.find_minimum(parabola, points_like(a, -3.0, 0.2, 4.0), args=(a,)).f_x,
        (V[:2],),
        rtol=1e-4,
        value_rtol=1e-8,
    ),
    Call("cluster.vq.whiten", vq.whiten, (drawn(4, 2),), also=["jax"]),
    Call("cluster.vq.vq", lambda x, book: vq.vq(x, book)[1], (X, Y)),
    Call("cluster.vq.kmeans", lambda x: vq.kmeans(x, x[:2, ...] * 1.0)[0], (drawn(4, 2),)),
    Call(
        "cluster.vq.kmeans2",
        lambda x: vq.kmeans2(x, x[:2, ...] * 1.0, minit="matrix")[0],
        (drawn(4, 2),),
    ),
    *(
        Call(f"cluster.hierarchy.{name}", getattr(hierarchy, name), (drawn(4, 2),))
        for name in (
            "average",
            "centroid",
            "complete",
            "linkage",
            "median",
            "single",
            "ward",
            "weighted",
        )
    ),
    Call(
        "cluster.hierarchy.cophenet",
        hierarchy.cophenet,
        (np.asarray([[0.0, 1.0, 0.3, 2.0], [2.0, 3.0, 0.7, 3.0]]),),
    ),
    Call(
        "cluster.hierarchy.maxdists",
        hierarchy.maxdists,
        (np.asarray([[0.0, 1.0, 0.3, 2.0], [2.0, 3.0, 0.7, 3.0]]),),
    ),
    Call(
        "cluster.hierarchy.inconsistent",
        hierarchy.inconsistent,
        (np.asarray([[0.0, 1.0, 0.3, 2.0], [2.0, 3.0, 0.7, 3.0]]),),
    ),
    Call("linalg.block_diag", linalg.block_diag, (X, SQUARE)),
    Call("linalg.expm", linalg.expm, (SQUARE,)),
    Call("linalg.fiedler", linalg.fiedler, (P,)),
    Call("linalg.inv", linalg.inv, (SQUARE,)),
    Call("linalg.orthogonal_procrustes", linalg.orthogonal_procrustes, (SQUARE, POSITIVE)),
    Call("linalg.solve", linalg.solve, (SQUARE, P)),
    Call(
        "constants.convert_temperature",
        lambda x: constants.convert_temperature(x, "C", "F"),
        (V,),
        also=["jax"],
    ),
    Call("constants.lambda2nu", constants.lambda2nu, (V,)),
    Call("constants.nu2lambda", constants.nu2lambda, (V,)),
    Call(
        "differentiate.derivative",
        lambda x: differentiate.derivative(exponential, x, args=(x,), order=4, maxiter=2).df,
        (V[:1],),
        rtol=1e-5,
        value_rtol=1e-8,
        also=["jax"],
    ),
    Call(
        "differentiate.jacobian",
        lambda x: differentiate.jacobian(lambda t: t**3, x, order=4, maxiter=2).df,
        (V[:2],),
        rtol=1e-5,
        value_rtol=1e-7,
    ),
    Call(
        "differentiate.hessian",
        lambda x: (
            differentiate.hessian(lambda t: t[0, ...] ** 3 * t[1, ...], x, order=4, maxiter=2).ddf
        ),
        (V[:2],),
        rtol=1e-3,
        value_rtol=1e-4,
    ),
]

TABLE = Table(
    "SciPy",
    "scipy",
    CALLS,
    part="fft, integrate, interpolate, optimize, cluster, linalg, constants, differentiate",
    settings=SCIPY,
)
test_calls = TABLE.test()
