"""SciPy's array-agnostic functions take Tensors (SCIPY_ARRAY_API=1), and their gradients agree with
differences.

Which these are is SciPy's affair; whatever it writes in terms of the standard, Tensors follow. The
table names a function of each kind, all of BACKENDS' list among them, with the backends on which
SciPy runs it for raw arrays or for Tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq as vq
import scipy.constants
import scipy.differentiate
import scipy.fft
import scipy.integrate as integrate
import scipy.optimize as optimize
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
from consumer_checks import check, check_float32, drawn
from scipy.spatial.transform import RigidTransform, Rotation

SIMPSON_CONVERTS = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18)
X, Y, V, W = drawn(2, 5), drawn(2, 5, seed=1), drawn(6), drawn(6, seed=2)
Q, P = drawn(4), drawn(3)


def window(x: Any, name: str, *parameters: float) -> Any:
    make = getattr(signal.windows, name)
    return x * make(x.shape[0], *parameters, xp=x.__array_namespace__(), device=x.device)


# On NumPy, strict and JAX.
EVERYWHERE: dict[str, tuple[Any, ...]] = {
    "special.logsumexp": (lambda x: special.logsumexp(x, axis=1, keepdims=True), X),
    "special.softmax": (lambda x: special.softmax(x, axis=1), X),
    "special.log_softmax": (lambda x: special.log_softmax(x, axis=1), X),
    "special.xlogy": (special.xlogy, X, Y),
    "special.rel_entr": (special.rel_entr, X, Y),
    "stats.skew": (stats.skew, V),
    "stats.kurtosis": (lambda x: stats.kurtosis(x, axis=1, bias=False), X),
    "stats.zscore": (lambda x: stats.zscore(x, axis=1), X),
    "stats.moment": (lambda x: stats.moment(x, 3), V),
    "stats.gmean": (lambda x, w: stats.gmean(x, axis=1, weights=w), X, Y),
    "stats.variation": (lambda x: stats.variation(x, axis=1), X),
    "optimize.rosen": (optimize.rosen, V),
    "integrate.trapezoid": (lambda y, x: integrate.trapezoid(y, x), V, np.cumsum(W)),
    "integrate.cumulative_trapezoid": (
        lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0),
        V,
        np.cumsum(W),
    ),
    "fft.fft": (scipy.fft.fft, V),
    "fft.fft, padded": (lambda x: scipy.fft.fft(x, n=8, norm="ortho"), V),
    "fft.rfft": (scipy.fft.rfft, V),
    "fft.irfft": (scipy.fft.irfft, V + 1j * W),
    "fft.fftn": (scipy.fft.fftn, X),
    "signal.windows.hann": (lambda x: window(x, "hann"), V),
    "cluster.vq.whiten": (vq.whiten, X),
    "spatial.transform.Rotation.as_matrix": (lambda q: Rotation.from_quat(q).as_matrix(), Q),
    "constants.convert_temperature": (
        lambda x: scipy.constants.convert_temperature(x, "C", "F"),
        V,
    ),
}

# Where nothing has to be compiled.
EAGER: dict[str, tuple[Any, ...]] = {
    "special.logsumexp, complex": (lambda x: special.logsumexp(x, axis=1), X + 1j * Y),
    "stats.skew, rows": (lambda x: stats.skew(x, axis=1, bias=False), X),
    "stats.hmean": (lambda x: stats.hmean(x, axis=1), X),
    "stats.pmean": (lambda x: stats.pmean(x, 3, axis=1), X),
    "stats.sem": (lambda x: stats.sem(x, axis=1), X),
    "stats.gstd": (lambda x: stats.gstd(x, axis=1), X),
    "stats.tmean": (lambda x: stats.tmean(x, axis=1), X),
    "stats.tvar": (lambda x: stats.tvar(x, axis=1), X),
    "stats.tmin": (lambda x: stats.tmin(x, axis=1), X),
    "stats.describe": (lambda x: tuple(stats.describe(x, axis=1))[1:], X),
    "stats.kstat": (lambda x: stats.kstat(x, 3), V),
    "stats.circmean": (stats.circmean, V),
    "stats.circvar": (stats.circvar, V),
    "stats.directional_stats": (lambda x: stats.directional_stats(x).mean_direction, X),
    "stats.differential_entropy": (stats.differential_entropy, drawn(12)),
    "stats.iqr": (lambda x: stats.iqr(x, axis=1), X),
    "stats.trim_mean": (lambda x: stats.trim_mean(x, 0.2), V),
    "stats.quantile": (lambda x: stats.quantile(x, 0.3, axis=1), X),
    "stats.zmap": (stats.zmap, V, W),
    "integrate.trapezoid, rows": (lambda y: integrate.trapezoid(y, dx=0.5, axis=0), X),
    "integrate.cumulative_simpson": (integrate.cumulative_simpson, V),
    **(
        {}
        if SIMPSON_CONVERTS
        else {
            "integrate.simpson": (integrate.simpson, V),
            "integrate.simpson, rows": (lambda y: integrate.simpson(y, dx=0.5), X),
        }
    ),
    "integrate.cubature": (
        lambda a: integrate.cubature(lambda t: t[:, 0] * a[0], 0 * a[:1], a[:1]).estimate,
        V,
    ),
    "fft.ifft": (scipy.fft.ifft, V + 1j * W),
    "fft.hfft": (scipy.fft.hfft, V + 1j * W),
    "fft.ihfft": (scipy.fft.ihfft, V),
    "fft.fft2": (scipy.fft.fft2, X),
    "fft.rfftn": (scipy.fft.rfftn, X),
    "fft.fftshift": (scipy.fft.fftshift, V),
    "fft.fht": (lambda x: scipy.fft.fht(x, 0.1, 0.5), V),
    "signal.fftconvolve": (signal.fftconvolve, V, W),
    "signal.oaconvolve": (signal.oaconvolve, V, W),
    "signal.windows.kaiser": (lambda x: window(x, "kaiser", 2.0), V),
    "spatial.transform.Rotation.apply": (
        lambda q, p: Rotation.from_rotvec(q).apply(p),
        P,
        drawn(3, seed=1),
    ),
    "spatial.transform.Rotation.as_rotvec": (lambda q: Rotation.from_quat(q).as_rotvec(), Q),
    "spatial.transform.Rotation.from_matrix": (
        lambda q: Rotation.from_matrix(Rotation.from_quat(q).as_matrix()).as_quat(),
        Q,
    ),
    "spatial.transform.Rotation.from_euler": (
        lambda q: Rotation.from_euler("xyz", q).as_matrix(),
        P,
    ),
    "spatial.transform.Rotation.as_euler": (lambda q: Rotation.from_quat(q).as_euler("xyz"), Q),
    "spatial.transform.Rotation.__mul__": (
        lambda q, p: (Rotation.from_quat(q) * Rotation.from_quat(p)).as_quat(),
        Q,
        drawn(4, seed=1),
    ),
    "spatial.transform.Rotation.magnitude": (
        lambda q: Rotation.from_quat(q).magnitude(),
        drawn(2, 4),
    ),
    "spatial.transform.Rotation.mean": (
        lambda q: Rotation.from_quat(q).mean().as_quat(),
        drawn(2, 4),
    ),
    "spatial.transform.Rotation.inv": (
        lambda q: Rotation.from_quat(q).inv().as_quat(),
        drawn(2, 4),
    ),
    "signal.hilbert": (signal.hilbert, V),
    "signal.resample": (lambda x: signal.resample(x, 4), V),
    "stats.lmoment": (stats.lmoment, V),
    "spatial.transform.RigidTransform": (
        lambda t: RigidTransform.from_translation(t).as_matrix(),
        P,
    ),
    "constants.lambda2nu": (scipy.constants.lambda2nu, V),
}
# iterations and tables that are no more exact than that
LOOSE = {"fft.fht": 1e-9, "integrate.cubature": 1e-9}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_values_and_gradients(name: str, backend: str) -> None:
    function, *args = EVERYWHERE[name]
    check(backend, function, *args)


@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
@pytest.mark.parametrize("name", EAGER)
def test_values_and_gradients_on_eager_backends(name: str, backend: str) -> None:
    function, *args = EAGER[name]
    check(backend, function, *args, value_rtol=LOOSE.get(name, 1e-12))


# which NumPy's arrays leave as float64
@pytest.mark.parametrize("name", [name for name in EVERYWHERE if "Rotation" not in name])
def test_float32_stays_float32(name: str) -> None:
    function, *args = EVERYWHERE[name]
    check_float32("numpy", function, *args)


def slope(x: Any) -> Any:
    """The slope of t**3 exp(a t) at t = x, where a is x, too: through SciPy's own differences."""
    xp = x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
    return scipy.differentiate.derivative(
        lambda t, a: t**3 * xp.exp(a * t), x, args=(x,), order=4, maxiter=2
    ).df


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_differentiate_derivative(backend: str) -> None:
    check(backend, slope, drawn(1), rtol=1e-5, value_rtol=1e-9, second=False, raw=backend != "jax")


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_code_that_writes_into_arrays(backend: str) -> None:
    """JAX's own arrays cannot be written to; Tensors of them can."""
    check(backend, optimize.rosen_der, V, raw=backend != "jax")
