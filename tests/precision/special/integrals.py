"""Exponential integrals and their kin in mpmath, and the points at which they are tried, further
out than their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import MIDDLE, POSITIVE, Points, Wide, each

FUNCTIONS: dict[str, Any] = {
    "exp1": mp.e1,
    "expi": mp.ei,
    "expn": lambda n, x: mp.exp(-x) * mp.hyperu(n, n, x) * x ** (n - 1),
    "spence": lambda z: (
        mp.polylog(2, 1 - z).real if not isinstance(z, mp.mpc) else mp.polylog(2, 1 - z)
    ),
    "hyp1f1": mp.hyp1f1,
}

COMPLEX = [(complex(x, y),) for x in (-2.5, -0.3, 0.7, 4.0, 15.0) for y in (-3.0, 0.2, 20.0)]
NEAR_ZERO = [(0.3725074107813667 + d,) for d in (1e-3, -0.1)]  # SciPy loses digits nearer to it
NEAR_ONE = [(1 + s * d,) for d in (1e-3, 1e-8, 1e-14, 0.4, 0.6) for s in (1, -1)]

POINTS: dict[str, Points] = {
    "exp1": [*((x,) for x in (*POSITIVE, 1.9, 2.1, 300.0)), *COMPLEX],
    "expi": [
        *((s * x,) for x in (*POSITIVE[1:], 39.0, 41.0, 300.0) for s in (1, -1)),
        *NEAR_ZERO,
        *COMPLEX,
    ],
    "expn": each(
        (0, 1, 2, 3, 10, 17, 18, 19, 30, 200), (1e-20, 1e-3, *MIDDLE, 1.9, 2.1, 18.0, 300.0)
    ),
    "spence": [*((x,) for x in (*POSITIVE, 0.49, 0.51)), *NEAR_ONE, *COMPLEX],
    "hyp1f1": [
        *each((0.3, 1.0, 2.5, 12.0), (0.7, 2.0, 15.5), (1e-8, 0.3, 2.5, 20.0, 70.0, 150.0, 400.0)),
        *(
            (a, b, -x)
            for a, b, x in each(
                (0.3, 1.0, 2.5), (3.1, 15.5), (1e-8, 0.3, 2.5, 20.0, 70.0, 150.0, 400.0)
            )
        ),
        *each((-0.5, -2.0, -3.7), (0.7, 2.0), (0.3, 30.0, -2.5, -20.0)),
        *each((-6.0, -3.0 + 1e-3), (16.9, 5.5), (0.3, 40.0, 70.0)),
        *each((7.0, 2.2), (-5.3, 3.5), (-0.3, -30.0, -450.0)),
        # the terms cancel
        *map(Wide, each((-17.7, -6.0, -3.0 + 1e-3), (16.9, 5.5), (89.0, 200.0, 500.0))),
        *map(Wide, each((19.3, 7.0), (-5.3, 3.5), (-30.0, -150.0))),
    ],
}
