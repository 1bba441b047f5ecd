"""The special functions in terms of the Array API standard, for every backend that has none of its own.

They use operators, a handful of elementwise functions and a fixed number of steps, so they run on any device, under
tracing and on lazy arrays; that is why nothing here goes through NumPy. In float64 they are within 1e-14 of the true
value (of the larger of it and 1 for functions that pass through 0), in float32 within 1e-5, which is no less exact than
SciPy; the exceptions are stated beside them. Each function is a forward of multigrad: `f(xp, *arguments)`, `xp` being a
raw namespace.
"""

from .bessel import i0, i0e, i1, i1e, iv, ive
from .common import order, refuse
from .entropy import entr, expit, kl_div, log_expit, logit, rel_entr, xlog1py, xlogy
from .error import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .gamma import beta, betaln, digamma, gamma, gammaln, hurwitz, polygamma
from .incomplete import betainc, gammainc, gammaincc, stdtr

__all__ = [
    "beta", "betainc", "betaln", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "expit", "gamma",
    "gammainc", "gammaincc", "gammaln", "hurwitz", "i0", "i0e", "i1", "i1e", "iv", "ive", "kl_div", "log_expit", "log_ndtr", "logit", "ndtr",
    "ndtri", "order", "polygamma", "refuse", "rel_entr", "stdtr", "xlog1py", "xlogy",
]  # fmt: skip
