"""Texts for the docstrings of the special functions: gradients, singular points, sources.

The module is imported with the first function. `g` is the cotangent of the result `ans`. A gradient
in `FORMULAS` is an expression of functions of `mg` and `mg.special` that a test evaluates.
"""

from __future__ import annotations

from .examples import EXAMPLES

__all__ = ["AT", "EXAMPLES", "FORMULAS", "GRADIENTS", "MEANINGS", "SOURCES"]

MEANINGS = {
    "approximate": "'none', or 'tanh' for the approximation by tanh",
    "d": "the dimension, an int",
    "m": "the order of the derivative, an int",
}
"""The meanings of plain parameters."""

_OF_BINOMIAL = "(n - floor(k)) * binom(n, floor(k))"
_OF_F = (
    "(dfn * {x})**(dfn / 2) * dfd**(dfd / 2) / (dfn * {x} + dfd)**((dfn + dfd) / 2) / ({x} "
    "* beta(dfn / 2, dfd / 2))"
)
_OF_T = "(1 + {x}**2 / df)**(-(df + 1) / 2) / (sqrt(df) * beta(df / 2, 0.5))"
_OF_GAMMA = "(a * x)**(b - 1) * exp(-a * x) / gamma(b)"

_FORMULAS: dict[str, dict[str, str]] = {
    # error functions and the normal distribution
    "erf": {"x": "g * 2 / sqrt(pi) * exp(-x**2)"},
    "erfc": {"x": "-g * 2 / sqrt(pi) * exp(-x**2)"},
    "erfcx": {"x": "g * (2 * x * ans - 2 / sqrt(pi))"},
    "erfinv": {"x": "g * sqrt(pi) / 2 * exp(ans**2)"},
    "ndtr": {"x": "g * exp(-x**2 / 2) / sqrt(2 * pi)"},
    "log_ndtr": {"x": "g * exp(-x**2 / 2 - ans) / sqrt(2 * pi)"},
    "ndtri": {"x": "g * sqrt(2 * pi) * exp(ans**2 / 2)"},
    "gelu": {"x": "g * (ndtr(x) + x * exp(-x**2 / 2) / sqrt(2 * pi))"},
    # gamma, beta, zeta
    "gamma": {"x": "g * ans * digamma(x)"},
    "gammaln": {"x": "g * digamma(x)"},
    "loggamma": {"x": "g * digamma(x)"},
    "rgamma": {"x": "-g * ans * digamma(x)"},
    "gammasgn": {"x": "0 * g"},
    "digamma": {"x": "g * polygamma(1, x)"},
    "psi": {"x": "g * polygamma(1, x)"},
    "polygamma": {"x": "g * polygamma(n + 1, x)"},
    "beta": {
        "a": "g * ans * (digamma(a) - digamma(a + b))",
        "b": "g * ans * (digamma(b) - digamma(a + b))",
    },
    "betaln": {"a": "g * (digamma(a) - digamma(a + b))", "b": "g * (digamma(b) - digamma(a + b))"},
    "poch": {"z": "g * ans * (digamma(z + m) - digamma(z))", "m": "g * ans * digamma(z + m)"},
    "binom": {
        "n": "g * ans * (digamma(n + 1) - digamma(n - k + 1))",
        "k": "g * ans * (digamma(n - k + 1) - digamma(k + 1))",
    },
    "zeta": {"x": "g * zeta_derivative(1, x, q)", "q": "-g * x * zeta(x + 1, q)"},
    "hurwitz_zeta": {"x": "g * zeta_derivative(1, x, q)", "q": "-g * x * zeta(x + 1, q)"},
    "riemann_zeta": {"x": "g * zeta_derivative(1, x, 1)"},
    "zetac": {"x": "g * zeta_derivative(1, x, 1)"},
    "zeta_derivative": {
        "x": "g * zeta_derivative(m + 1, x, q)",
        "q": "-g * (x * zeta_derivative(m, x + 1, q) + m * zeta_derivative(m - 1, x + 1, q))",
    },
    # incomplete functions, and the distributions based on them
    "gammainc": {"x": "g * x**(a - 1) * exp(-x) / gamma(a)"},
    "gammaincc": {"x": "-g * x**(a - 1) * exp(-x) / gamma(a)"},
    "gammaincinv": {"y": "g * gamma(a) * ans**(1 - a) * exp(ans)"},
    "gammainccinv": {"y": "-g * gamma(a) * ans**(1 - a) * exp(ans)"},
    "gdtr": {"a": f"g * x * {_OF_GAMMA}", "x": f"g * a * {_OF_GAMMA}"},
    "gdtrc": {"a": f"-g * x * {_OF_GAMMA}", "x": f"-g * a * {_OF_GAMMA}"},
    "chdtr": {"x": "g * x**(df / 2 - 1) * exp(-x / 2) / (2**(df / 2) * gamma(df / 2))"},
    "chdtrc": {"x": "-g * x**(df / 2 - 1) * exp(-x / 2) / (2**(df / 2) * gamma(df / 2))"},
    "chdtri": {"y": "-g * 2**(df / 2) * gamma(df / 2) * ans**(1 - df / 2) * exp(ans / 2)"},
    "pdtr": {"m": "-g * exp(-m) * m**floor(k) / gamma(floor(k) + 1)"},
    "pdtrc": {"m": "g * exp(-m) * m**floor(k) / gamma(floor(k) + 1)"},
    "pdtri": {"y": "-g * gamma(floor(k) + 1) * exp(ans) / ans**floor(k)"},
    "betainc": {"x": "g * x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)"},
    "betaincc": {"x": "-g * x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)"},
    "betaincinv": {"y": "g * beta(a, b) * ans**(1 - a) * (1 - ans)**(1 - b)"},
    "betainccinv": {"y": "-g * beta(a, b) * ans**(1 - a) * (1 - ans)**(1 - b)"},
    "bdtr": {"p": f"-g * {_OF_BINOMIAL} * p**floor(k) * (1 - p)**(n - floor(k) - 1)"},
    "bdtrc": {"p": f"g * {_OF_BINOMIAL} * p**floor(k) * (1 - p)**(n - floor(k) - 1)"},
    "bdtri": {"y": f"-g / ({_OF_BINOMIAL} * ans**floor(k) * (1 - ans)**(n - floor(k) - 1))"},
    "nbdtr": {"p": "g * p**(n - 1) * (1 - p)**k / beta(n, k + 1)"},
    "nbdtrc": {"p": "-g * p**(n - 1) * (1 - p)**k / beta(n, k + 1)"},
    "nbdtri": {"y": "g * beta(n, k + 1) / (ans**(n - 1) * (1 - ans)**k)"},
    "fdtr": {"x": f"g * {_OF_F.format(x='x')}"},
    "fdtrc": {"x": f"-g * {_OF_F.format(x='x')}"},
    "fdtri": {"p": f"g / ({_OF_F.format(x='ans')})"},
    "stdtr": {"x": f"g * {_OF_T.format(x='x')}"},
    "stdtrit": {"p": f"g / ({_OF_T.format(x='ans')})"},
    # Bessel and Legendre functions
    "j0": {"x": "-g * j1(x)"},
    "j1": {"x": "g * (j0(x) - jv(2, x)) / 2"},
    "jv": {"z": "g * (jv(v - 1, z) - jv(v + 1, z)) / 2"},
    "y0": {"x": "-g * y1(x)"},
    "y1": {"x": "g * (y0(x) - yv(2, x)) / 2"},
    "yn": {"x": "g * (yn(n - 1, x) - yn(n + 1, x)) / 2"},
    "yv": {"z": "g * (yv(v - 1, z) - yv(v + 1, z)) / 2"},
    "i0": {"x": "g * i1(x)"},
    "i1": {"x": "g * (i0(x) + iv(2, x)) / 2"},
    "iv": {"z": "g * (iv(v - 1, z) + iv(v + 1, z)) / 2"},
    "k0": {"x": "-g * k1(x)"},
    "k1": {"x": "-g * (k0(x) + kv(2, x)) / 2"},
    "kv": {"z": "-g * (kv(v - 1, z) + kv(v + 1, z)) / 2"},
    "i0e": {"x": "g * (i1e(x) - sign(x) * ans)"},
    "i1e": {"x": "g * ((i0e(x) + ive(2, x)) / 2 - sign(x) * ans)"},
    "ive": {"z": "g * ((ive(v - 1, z) + ive(v + 1, z)) / 2 - sign(z) * ans)"},
    "k0e": {"x": "g * (ans - k1e(x))"},
    "k1e": {"x": "g * (ans - (k0e(x) + kve(2, x)) / 2)"},
    "kve": {"z": "g * (ans - (kve(v - 1, z) + kve(v + 1, z)) / 2)"},
    "lpmv": {"x": "g * (v * x * ans - (v + m) * lpmv(m, v - 1, x)) / (x**2 - 1)"},
    # integrals
    "exp1": {"x": "-g * exp(-x) / x"},
    "expi": {"x": "g * exp(x) / x"},
    "expn": {"x": "-g * expn(n - 1, x)"},
    "spence": {"z": "g * log(z) / (1 - z)"},
    "hyp1f1": {"x": "g * a / b * hyp1f1(a + 1, b + 1, x)"},
    "ellipk": {"m": "g * (ellipe(m) / (1 - m) - ans) / (2 * m)"},
    "ellipkm1": {"p": "-g * (ellipe(1 - p) / p - ans) / (2 * (1 - p))"},
    "ellipe": {"m": "g * (ans - ellipk(m)) / (2 * m)"},
    # entropies
    "entr": {"x": "-g * (1 + log(x))"},
    "rel_entr": {"x": "g * (1 + log(x / y))", "y": "-g * x / y"},
    "kl_div": {"x": "g * log(x / y)", "y": "g * (1 - x / y)"},
    "xlogy": {"x": "g * log(y)", "y": "g * x / y"},
    "xlog1py": {"x": "g * log1p(y)", "y": "g * x / (1 + y)"},
    "expit": {"x": "g * ans * (1 - ans)"},
    "log_expit": {"x": "g * expit(-x)"},
    "logit": {"x": "g / (x * (1 - x))"},
    # elementary functions
    "cbrt": {"x": "g / (3 * ans**2)"},
    "exp2": {"x": "g * ans * log(2)"},
    "exp10": {"x": "g * ans * log(10)"},
    "sinc": {"x": "g * (cos(pi * x) - ans) / x"},
    "cosm1": {"x": "-g * sin(x)"},
    "exprel": {"x": "g * (exp(x) - ans) / x"},
    "sindg": {"x": "g * pi / 180 * cosdg(x)"},
    "cosdg": {"x": "-g * pi / 180 * sindg(x)"},
    "tandg": {"x": "g * pi / 180 * (1 + ans**2)"},
    "cotdg": {"x": "-g * pi / 180 * (1 + ans**2)"},
    "radian": {"d": "g * pi / 180", "m": "g * pi / 10800", "s": "g * pi / 648000"},
    "boxcox": {"x": "g * x**(lmbda - 1)", "lmbda": "g * (x**lmbda * log(x) - ans) / lmbda"},
    "boxcox1p": {
        "x": "g * (1 + x)**(lmbda - 1)",
        "lmbda": "g * ((1 + x)**lmbda * log1p(x) - ans) / lmbda",
    },
    "inv_boxcox": {
        "y": "g * ans**(1 - lmbda)",
        "lmbda": "g * ans * (y / (1 + lmbda * y) - log(ans)) / lmbda",
    },
    "inv_boxcox1p": {
        "y": "g * (1 + ans)**(1 - lmbda)",
        "lmbda": "g * (1 + ans) * (y / (1 + lmbda * y) - log1p(ans)) / lmbda",
    },
    "huber": {
        "delta": "where(abs(r) <= delta, 0, g * (abs(r) - delta))",
        "r": "g * clip(r, -delta, delta)",
    },
    "pseudo_huber": {
        "delta": "g * (hypot(delta, r) - delta)**2 / hypot(delta, r)",
        "r": "g * r * delta / hypot(delta, r)",
    },
}

_BY_SHAPE = "from an integral over the smaller tail"
_GRADIENTS = {
    "multigammaln": "the sum of g digamma(a - k / 2) over k < d",
    "hyp1f1": "of a and b: by the series, differentiated term by term",
    **dict.fromkeys(("gammainc", "gammaincc", "gammaincinv", "gammainccinv"), f"of a: {_BY_SHAPE}"),
    **dict.fromkeys(("gdtr", "gdtrc"), f"of b: {_BY_SHAPE}"),
    **dict.fromkeys(("chdtr", "chdtrc", "chdtri", "stdtr", "stdtrit"), f"of df: {_BY_SHAPE}"),
    **dict.fromkeys(
        ("betainc", "betaincc", "betaincinv", "betainccinv"), f"of a and b: {_BY_SHAPE}"
    ),
    **dict.fromkeys(("fdtr", "fdtrc", "fdtri"), f"of dfn and dfd: {_BY_SHAPE}"),
}

_AT = {
    "erfinv": "inf at -1 and 1",
    "ndtri": "inf at 0 and 1",
    "entr": "inf at 0",
    "cbrt": "inf at 0",
    "logit": "inf at 0 and 1",
    "tandg": "inf at the poles",
    "cotdg": "-inf at the poles",
    "gelu": "for approximate='none'",
    "sinc": "0 at 0",
    "exprel": "g / 2 at 0",
    "spence": "-g at 1",
    "ellipk": "g pi / 8 at 0",
    "ellipe": "-g pi / 8 at 0",
    "ellipkm1": "-inf at 0",
    "i0e": "0 at 0, a kink",
    "ive": "0 at the kink that even orders have at 0",
    "boxcox": "of lmbda at 0: g log(x)**2 / 2",
    "boxcox1p": "of lmbda at 0: g log1p(x)**2 / 2",
    "inv_boxcox": "of lmbda at 0: -g ans y**2 / 2",
    "inv_boxcox1p": "of lmbda at 0: -g (1 + ans) y**2 / 2",
    "huber": "the two branches agree at |r| = delta",
    "pseudo_huber": "0 at r = 0",
    "gammasgn": "0 everywhere",
    "zeta_derivative": "its derivative of order 0 is zeta",
    "riemann_zeta": "below 0 by the reflection formula",
    "zetac": "below 0 by reflection",
}

AS_PYTORCH = (
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "logit",
    "ndtr",
    "ndtri",
    "sinc",
)
"""Functions that torch.special has, with the same derivatives at kinks, poles and infinities."""

_SOURCES = {
    **{name: f"scipy.special.{name}" for name in (*_FORMULAS, "multigammaln")},
    **{
        name: f"scipy.special.{name}; the derivatives at singular points and at infinity are those "
        f"of torch.special.{name}"
        for name in AS_PYTORCH
    },
    "gelu": "torch.nn.functional.gelu",
    "hurwitz_zeta": "scipy.special.zeta",
    "riemann_zeta": "scipy.special.zeta",
    "zeta_derivative": "Hurwitz' zeta function as DLMF 25.11.1 defines it, differentiated m "
    "times by x",
}

FORMULAS = {f"special.{name}": formulas for name, formulas in _FORMULAS.items()}
GRADIENTS = {f"special.{name}": text for name, text in _GRADIENTS.items()}
AT = {f"special.{name}": text for name, text in _AT.items()}
SOURCES = {f"special.{name}": text for name, text in _SOURCES.items()}
