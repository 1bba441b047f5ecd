"""scipy.special: every function that SciPy dispatches to the library of its arguments, on Tensors.

Functions of an order or of a count are differentiated by their last argument.
"""

from __future__ import annotations

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Table

special = pytest.importorskip("scipy.special", reason="scipy is a dependency of the tests only")

X, Y, P = drawn(2, 2), drawn(2, 2, seed=1), drawn(2, 2, low=0.1, high=0.9)
A, B = drawn(2, 2, low=2.0, high=3.0), drawn(2, 2, low=3.0, high=4.0)
K, N = np.asarray([[1.0, 2.0], [0.0, 3.0]]), np.asarray([[4.0, 5.0], [3.0, 6.0]])

# Of one argument.
UNARY = {
    "cbrt": X,
    "cosdg": X,
    "cosm1": X,
    "cotdg": X,
    "digamma": X,
    "ellipk": P,
    "ellipkm1": P,
    "entr": X,
    "erf": X - 1,
    "erfc": X - 1,
    "erfcx": X - 1,
    "erfinv": P,
    "exp1": X,
    "exp10": X,
    "exp2": X,
    "expi": X,
    "expit": X - 1,
    "exprel": X,
    "gamma": X,
    "gammaln": X,
    "gammasgn": X,
    "i0": X - 1,
    "i0e": X,
    "i1": X - 1,
    "i1e": X,
    "j0": X,
    "j1": X,
    "k0": X,
    "k0e": X,
    "k1": X,
    "k1e": X,
    "log_ndtr": X - 1,
    "loggamma": X,
    "logit": P,
    "ndtr": X - 1,
    "ndtri": P,
    "psi": X,
    "rgamma": X,
    "sinc": X,
    "sindg": X,
    "spence": X,
    "tandg": X,
    "y0": X,
    "y1": X,
    "zetac": A,
}
# Of several, which are all differentiated.
SEVERAL = {
    "betaln": (X, Y),
    "boxcox": (X, Y),
    "boxcox1p": (X, Y),
    "huber": (X, 2 * Y),
    "inv_boxcox": (X, Y),
    "inv_boxcox1p": (X, Y),
    "kl_div": (X, Y),
    "betainc": (X, Y, P),
    "betaincc": (X, Y, P),
    "betaincinv": (X, Y, P),
    "chdtr": (X, Y),
    "chdtrc": (X, Y),
    "chdtri": (X, P),
    "fdtr": (A, B, X),
    "fdtrc": (A, B, X),
    "fdtri": (A, B, P),
    "gammainc": (X, Y),
    "gammaincc": (X, Y),
    "gammainccinv": (A, P),
    "gammaincinv": (A, P),
    "gdtr": (A, B, X),
    "gdtrc": (A, B, X),
    "hyp1f1": (A, B, X),
    "stdtr": (A, X),
    "stdtrit": (A, P),
    "zeta": (A, B),
    "poch": (X, Y),
    "pseudo_huber": (X, Y),
    "radian": (X, Y, P),
    "rel_entr": (X, Y),
    "xlog1py": (X, Y),
    "xlogy": (X, Y),
    "binom": (B, X),
}
# By the last argument.
LAST = {
    "bdtr": (K, N, P),
    "bdtrc": (K, N, P),
    "bdtri": (K, N, P),
    "expn": (K, X),
    "lpmv": (K, N, P),
    "nbdtr": (K, N, P),
    "nbdtrc": (K, N, P),
    "nbdtri": (K, N, P),
    "pdtr": (K, X),
    "pdtrc": (K, X),
    "pdtri": (K, P),
    "yn": (K, X),
    "polygamma": (K, X),
}

CALLS = [
    *(Call(f"special.{name}", getattr(special, name), (x,)) for name, x in UNARY.items()),
    *(Call(f"special.{name}", getattr(special, name), args) for name, args in SEVERAL.items()),
    *(
        Call(
            f"special.{name}",
            getattr(special, name),
            args,
            by=[len(args) - 1],
            note="by the last argument",
        )
        for name, args in LAST.items()
    ),
    Call("special.log_softmax", lambda x: special.log_softmax(x, axis=1), (X,)),
    Call("special.logsumexp", lambda x: special.logsumexp(x, axis=1), (X,), also=["jax"]),
    Call("special.logsumexp with b", lambda x, b: special.logsumexp(x, axis=1, b=b), (X, Y)),
    Call("special.multigammaln", lambda a: special.multigammaln(a, 2), (A,)),
    Call("special.softmax", lambda x: special.softmax(x, axis=1), (X,), also=["jax"]),
]

TABLE = Table("SciPy", "scipy_special", CALLS, part="scipy.special", settings=SCIPY)
test_calls = TABLE.test()
