"""scipy.signal: the functions of signals and of coefficients that SciPy writes for any array
library, on Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Reason, Table

signal = pytest.importorskip("scipy.signal", reason="scipy is a dependency of the tests only")

X, V, W, U = drawn(3, 4), drawn(6), drawn(3, seed=2), drawn(12, seed=3)
B, A = np.asarray([0.5, 0.7, 0.3]), np.asarray([1.0, 0.4, 0.2])
Z, P, GAIN = (
    np.asarray([0.5 + 0.3j, 0.5 - 0.3j]),
    np.asarray([0.4 + 0.2j, 0.4 - 0.2j]),
    np.asarray(1.5),
)
AT = np.asarray([0.5, 1.0])
LOW, BAND = np.asarray(0.3), np.asarray([0.2, 0.6])


def design(name: str, *before: Any, **options: Any) -> Callable[..., Any]:
    """A filter of order 2 as a function of its critical frequency."""
    return lambda w: getattr(signal, name)(2, *before, w, **options)


def section(b: Any) -> Any:
    """One section of second order, with the numerator `b`."""
    xp = b.__array_namespace__()
    return xp.concat([b, xp.asarray([1.0, 0.4, 0.2])])[None, :]


def window(name: str, *parameters: float) -> Callable[..., Any]:
    """A window of the kind of an array, times it."""

    def windowed(x: Any) -> Any:
        xp = x.__array_namespace__()
        options = {} if isinstance(x, np.ndarray) else {"xp": xp, "device": x.device}
        return x * getattr(signal.windows, name)(x.shape[0], *parameters, **options)

    return windowed


CALLS = [
    Call(
        "signal.abcd_normalize",
        lambda a, b, c, d: signal.abcd_normalize(a, b, c, d),
        (drawn(2, 2), drawn(2, 1), drawn(1, 2), drawn(1, 1)),
    ),
    Call("signal.bessel", design("bessel"), (LOW,)),
    Call("signal.bilinear", signal.bilinear, (B, A)),
    Call("signal.bilinear_zpk", lambda z, p, k: signal.bilinear_zpk(z, p, k, 2.0), (Z, P, GAIN)),
    Call("signal.bode", lambda b, a, w: signal.bode((b, a), w=w), (B, A, AT), by=[0, 1]),
    Call("signal.butter", design("butter"), (LOW,)),
    Call("signal.cheby1", design("cheby1", 1.0), (LOW,)),
    Call("signal.cheby2", design("cheby2", 20.0), (LOW,)),
    Call("signal.convolve", signal.convolve, (V, W)),
    Call("signal.convolve2d", signal.convolve2d, (X, drawn(2, 2))),
    Call("signal.correlate", signal.correlate, (V, W)),
    Call("signal.correlate2d", signal.correlate2d, (X, drawn(2, 2))),
    Call("signal.cspline1d", signal.cspline1d, (V,)),
    Call("signal.cspline1d_eval", signal.cspline1d_eval, (V, np.asarray([1.25, 2.5])), by=[0]),
    Call(
        "signal.cspline2d",
        lambda x: signal.cspline2d(x, 0.0, 1e-2),
        (drawn(9, 9),),
        rtol=1e-4,
        value_rtol=1e-6,
    ),
    Call("signal.deconvolve", signal.deconvolve, (V, W)),
    Call("signal.detrend", signal.detrend, (V,)),
    Call("signal.ellip", design("ellip", 1.0, 20.0), (LOW,)),
    Call("signal.envelope", signal.envelope, (V,)),
    Call("signal.fftconvolve", signal.fftconvolve, (V, W)),
    Call("signal.filtfilt", lambda b, a, x: signal.filtfilt(b, a, x, padlen=2), (B, A, V)),
    Call(
        "signal.firls",
        lambda bands, d: signal.firls(5, bands, d),
        (np.asarray([0.0, 0.3, 0.5, 1.0]), drawn(4)),
        by=[1],
    ),
    Call("signal.firwin", lambda c: signal.firwin(5, c), (LOW,)),
    Call(
        "signal.firwin2",
        lambda f, g: signal.firwin2(5, f, g),
        (np.asarray([0.0, 0.5, 1.0]), np.asarray([1.0, 0.7, 0.4])),
        by=[1],
    ),
    Call("signal.freqs", lambda b, a, w: signal.freqs(b, a, worN=w), (B, A, AT), by=[0, 1]),
    Call(
        "signal.freqs_zpk",
        lambda z, p, k, w: signal.freqs_zpk(z, p, k, worN=w),
        (Z, P, GAIN, AT),
        by=[0, 1, 2],
    ),
    Call("signal.freqz", lambda b, a: signal.freqz(b, a, worN=3), (B, A)),
    Call("signal.freqz_sos", lambda b: signal.freqz_sos(section(b), worN=3), (B,)),
    Call("signal.freqz_zpk", lambda z, p, k: signal.freqz_zpk(z, p, k, worN=3), (Z, P, GAIN)),
    Call("signal.gauss_spline", lambda x: signal.gauss_spline(x, 3), (V,)),
    Call("signal.gausspulse", lambda x: signal.gausspulse(x, fc=1.0), (V,)),
    Call("signal.group_delay", lambda b, a: signal.group_delay((b, a), w=3)[1], (B, A)),
    Call("signal.hilbert", signal.hilbert, (V,), also=["jax"]),
    Call("signal.hilbert2", signal.hilbert2, (X,)),
    Call("signal.iircomb", lambda q: signal.iircomb(0.5, q), (np.asarray(9.0),)),
    Call(
        "signal.iirfilter", lambda w: signal.iirfilter(2, w, btype="band", ftype="butter"), (BAND,)
    ),
    Call("signal.iirnotch", lambda w: signal.iirnotch(w, 10.0), (LOW,)),
    Call("signal.iirpeak", lambda w: signal.iirpeak(w, 10.0), (LOW,)),
    Call("signal.lfilter", signal.lfilter, (B, A, V)),
    Call("signal.lfilter_zi", signal.lfilter_zi, (B, A)),
    Call("signal.lfiltic", signal.lfiltic, (B, 2 * A, drawn(2))),
    Call("signal.lp2bp", lambda b, a: signal.lp2bp(b, a, 1.5, 0.5), (B, A)),
    Call("signal.lp2bp_zpk", lambda z, p, k: signal.lp2bp_zpk(z, p, k, 1.5, 0.5), (Z, P, GAIN)),
    Call("signal.lp2bs", lambda b, a: signal.lp2bs(b, a, 1.5, 0.5), (B, A)),
    Call("signal.lp2bs_zpk", lambda z, p, k: signal.lp2bs_zpk(z, p, k, 1.5, 0.5), (Z, P, GAIN)),
    Call("signal.lp2hp", lambda b, a: signal.lp2hp(b, a, 1.5), (B, A)),
    Call("signal.lp2hp_zpk", lambda z, p, k: signal.lp2hp_zpk(z, p, k, 1.5), (Z, P, GAIN)),
    Call("signal.lp2lp", lambda b, a: signal.lp2lp(b, a, 1.5), (B, A)),
    Call("signal.lp2lp_zpk", lambda z, p, k: signal.lp2lp_zpk(z, p, k, 1.5), (Z, P, GAIN)),
    Call("signal.medfilt", signal.medfilt, (V,)),
    Call("signal.medfilt2d", signal.medfilt2d, (X,)),
    Call("signal.minimum_phase", signal.minimum_phase, (drawn(5),)),
    Call("signal.normalize", signal.normalize, (B, 2 * A)),
    Call("signal.oaconvolve", signal.oaconvolve, (V, W)),
    Call(
        "signal.order_filter",
        lambda x, domain: signal.order_filter(x, domain, 1),
        (V, np.ones(3)),
        by=[0],
    ),
    Call("signal.qspline1d", signal.qspline1d, (V,)),
    Call("signal.qspline1d_eval", signal.qspline1d_eval, (V, np.asarray([1.25, 2.6])), by=[0]),
    Call("signal.resample", lambda x: signal.resample(x, 4), (V,)),
    Call("signal.resample_poly", lambda x: signal.resample_poly(x, 2, 3), (V,)),
    Call("signal.savgol_filter", lambda x: signal.savgol_filter(x, 5, 2), (V,)),
    Call("signal.sos2tf", lambda b: signal.sos2tf(section(b)), (B,)),
    Call("signal.sos2zpk", lambda b: signal.sos2zpk(section(b)), (B,)),
    Call("signal.sosfilt", lambda b, x: signal.sosfilt(section(b), x), (B, V)),
    Call("signal.sosfilt_zi", lambda b: signal.sosfilt_zi(section(b)), (B,)),
    Call("signal.sosfiltfilt", lambda b, x: signal.sosfiltfilt(section(b), x, padlen=2), (B, V)),
    Call(
        "signal.spline_filter",
        lambda x: signal.spline_filter(x, 0.05),
        (drawn(12, 12),),
        rtol=1e-4,
        value_rtol=1e-6,
    ),
    Call("signal.tf2sos", signal.tf2sos, (B, A)),
    Call("signal.tf2zpk", signal.tf2zpk, (B, A)),
    Call("signal.upfirdn", signal.upfirdn, (W, V)),
    Call("signal.vectorstrength", lambda x: signal.vectorstrength(x, 2.0), (V,)),
    Call("signal.wiener", lambda x: signal.wiener(x, 3), (V,)),
    Call(
        "signal.windows.general_cosine", lambda a: signal.windows.general_cosine(6, a), (drawn(3),)
    ),
    Call("signal.windows.hann", window("hann"), (V,), note="times an array", also=["jax"]),
    Call("signal.windows.kaiser", window("kaiser", 2.0), (V,), note="times an array"),
    Call("signal.zpk2sos", signal.zpk2sos, (Z, P, GAIN)),
    Call("signal.zpk2tf", signal.zpk2tf, (Z, P, GAIN)),
]

REASONS = {
    "compiled": Reason(
        ValueError,
        "could not convert b, a, and x to a common type",
        "calls compiled code with its own error message for a failed conversion",
    )
}

TABLE = Table("SciPy", "scipy_signal", CALLS, part="scipy.signal", settings=SCIPY, reasons=REASONS)
test_calls = TABLE.test()
