"""What is made of elementary functions in mpmath, and the points at which they are tried, further
out than their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import HUGE, MIDDLE, REAL, SMALL, Points, each


def _cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def _exprel(x: Any) -> Any:
    return mp.expm1(x) / x if x else mp.one


def _boxcox(x: Any, lmbda: Any) -> Any:
    return mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x)


def _boxcox1p(x: Any, lmbda: Any) -> Any:
    return mp.expm1(lmbda * mp.log1p(x)) / lmbda if lmbda else mp.log1p(x)


def _restored(y: Any, lmbda: Any) -> Any:
    return mp.log1p(lmbda * y) / lmbda if lmbda else y


def _huber(delta: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


FUNCTIONS: dict[str, Any] = {
    "cbrt": _cbrt,
    "exp2": lambda x: mp.mpf(2) ** x,
    "exp10": lambda x: mp.mpf(10) ** x,
    "sinc": lambda x: mp.sincpi(x),
    "cosm1": lambda x: -2 * mp.sin(x / 2) ** 2,
    "exprel": _exprel,
    "sindg": lambda x: mp.sinpi(x / 180),
    "cosdg": lambda x: mp.cospi(x / 180),
    "tandg": lambda x: mp.sinpi(x / 180) / mp.cospi(x / 180),
    "cotdg": lambda x: mp.cospi(x / 180) / mp.sinpi(x / 180),
    "radian": lambda d, m, s: mp.pi * (d + (m + s / 60) / 60) / 180,
    "boxcox": _boxcox,
    "boxcox1p": _boxcox1p,
    "inv_boxcox": lambda y, lmbda: mp.exp(_restored(y, lmbda)),
    "inv_boxcox1p": lambda y, lmbda: mp.expm1(_restored(y, lmbda)),
    "huber": _huber,
    "pseudo_huber": lambda delta, r: delta * (mp.sqrt(delta * delta + r * r) - delta),
}

EXPONENTS = [*REAL, (100.0,), (-100.0,), (300.0,), (-300.0,), (1.9,), (2.1,), (-1.9,), (-2.1,)]
ANGLES = [
    (s * v,)
    for v in (
        1e-20,
        1e-8,
        1e-3,
        30.0,
        44.9,
        45.1,
        89.0,
        91.0,
        135.5,
        179.0,
        225.0,
        300.5,
        1e3,
        1e6 + 0.5,
    )
    for s in (1, -1)
]
NEAR_POLES = [
    (89.999,),
    (90.0 + 2**-20,),
    (-270.0 + 2**-20,),
    (2.0**-20,),
    (-(2.0**-30),),
    (180 + 2.0**-20,),
]
LAMBDAS = (0.0, 1e-300, -1e-17, 1e-9, -1e-4, 0.1, -0.5, 0.999, 1.0, 2.5, -3.0)
STEPS = (1e-300, -1e-17, 1e-9, -1e-4, 0.1, -0.3)
RESIDUALS = (1e-12, -1e-4, 0.3, -0.999, 1.3, -30.0, 1e4, -1e8)

POINTS: dict[str, Points] = {
    "cbrt": [(s * v,) for v in (*SMALL, *MIDDLE, *HUGE) for s in (1, -1)],
    "exp2": EXPONENTS,
    "exp10": EXPONENTS,
    "sinc": [
        (s * v,)
        for v in (
            1e-20,
            1e-8,
            1e-3,
            0.1,
            0.3,
            0.49,
            0.51,
            0.9,
            1.001,
            1.3,
            2.6,
            10.3,
            100.6,
            1e4 + 0.25,
        )
        for s in (1, -1)
    ],
    "cosm1": [*REAL, (6.3,), (100.0,)],
    "exprel": EXPONENTS,
    "sindg": ANGLES,
    "cosdg": ANGLES,
    "tandg": [*ANGLES, *NEAR_POLES],
    "cotdg": [*((x,) for (x,) in ANGLES if abs(x) > 1e-4), *NEAR_POLES],
    "radian": each((0.0, 12.0, 359.0), (0.0, 59.0), (0.0, 30.5)),
    "boxcox": each((1e-20, 1e-3, 0.3, 0.999, 1 + 1e-9, 1.3, 30.0, 1e8), LAMBDAS),
    "boxcox1p": [*each((*STEPS, 2.5, 30.0, 1e8), LAMBDAS), (-0.999, 2.5), (-0.999, 1e-9)],
    "inv_boxcox": [(y, m) for y, m in each((*STEPS, 2.5, -1.3, 30.0), LAMBDAS) if 1 + y * m > 1e-3],
    "inv_boxcox1p": [
        (y, m) for y, m in each((*STEPS, 2.5, -1.3, 30.0), LAMBDAS) if 1 + y * m > 1e-3
    ],
    "huber": each((1e-3, 1.0, 2.5), RESIDUALS),
    "pseudo_huber": each((1e-8, 1e-3, 1.0, 2.5, 100.0), RESIDUALS),
}
