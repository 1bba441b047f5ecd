"""The logistic function, x log(y) and entropies in mpmath, and the points at which they are tried,
further out than their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import HUGE, PROBABLE, REAL, SMALL, Points, each

TAILS_OF_EXP = [*REAL, *((s * v,) for v in (36.0, 40.0, 100.0, 700.0) for s in (1, -1))]
CLOSE = [(x, x * (1 + d)) for x in (0.3, 2.5, 1e8) for d in (1e-3, -1e-7, 1e-12)]
ENTROPIC = [*each((1e-20, 0.1, 1.3, 30.0, 1e150), (1e-20, 0.3, 2.5, 100.0)), *CLOSE]

FUNCTIONS: dict[str, Any] = {
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
    "log_expit": lambda x: -mp.log1p(mp.exp(-x)),
    "logit": lambda x: mp.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y),
    "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
}

POINTS: dict[str, Points] = {
    "expit": TAILS_OF_EXP,
    "log_expit": TAILS_OF_EXP,
    "logit": [(p,) for p in (*SMALL, *PROBABLE, 1 - 1e-14)],
    "xlogy": each((*SMALL, 2.5, 1e8, -1.3), (*SMALL, 0.3, 0.999, 1 + 1e-9, 2.5, 1e150)),
    "xlog1py": each((*SMALL, 2.5, 1e8, -1.3), (*SMALL, -1e-9, 0.3, -0.999, -1 + 1e-9, 2.5, 1e150)),
    "entr": [(x,) for x in (*SMALL, 0.1, 0.3, 0.367, 0.368, 1.0, 2.5, *HUGE)],
    "rel_entr": ENTROPIC,
    "kl_div": ENTROPIC,
}
