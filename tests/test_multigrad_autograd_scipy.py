"""multigrad-autograd's SciPy: values are SciPy's, derivatives those of differences, to second order; and HIPS autograd's where that is installed."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats
from consumer_checks import check, drawn

import multigrad as mg
from multigrad import func
from multigrad.errors import MissingRuleError
from multigrad_autograd.scipy import integrate, linalg, signal, special, stats

Function = Callable[..., Any]
GUIDE = Path(__file__).parent.parent / "docs" / "from-autograd.md"


def spd(n: int, seed: int = 0) -> Any:
    a = drawn(n, n, seed=seed)
    return a @ a.T + np.eye(n)


def below_one(*shape: int, seed: int = 0) -> Any:
    return drawn(*shape, low=0.1, high=0.9, seed=seed)


X, Y = drawn(4), drawn(4, seed=1)
WIDE, ROW, COLUMN = drawn(4, 3), drawn(1, 3, seed=1), drawn(4, 1, seed=2)

# name -> a function of arrays all of which it is differentiable by, and these arrays
CALLS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "special.beta": (special.beta, (X, Y)),
    "special.betainc": (lambda x: special.betainc(1.3, 2.1, x), (below_one(4),)),
    "special.betaln": (special.betaln, (X, Y)),
    "special.digamma": (special.digamma, (X,)),
    "special.erf": (special.erf, (X,)),
    "special.erfc": (special.erfc, (X,)),
    "special.erfinv": (special.erfinv, (below_one(4),)),
    "special.erfcinv": (special.erfcinv, (X,)),
    "special.expit": (special.expit, (X,)),
    "special.gamma": (special.gamma, (X,)),
    "special.gammainc": (lambda x: special.gammainc(1.3, x), (X,)),
    "special.gammaincc": (lambda x: special.gammaincc(np.asarray([1.3, 2.0, 3.0, 4.0]), x), (X,)),
    "special.gammaln": (special.gammaln, (X,)),
    "special.i0": (special.i0, (X,)),
    "special.i1": (special.i1, (X,)),
    "special.iv": (lambda x: special.iv(2.4, x), (X,)),
    "special.iv, orders": (lambda x: special.iv(np.arange(4), x), (X,)),
    "special.ive": (lambda x: special.ive(2, x), (X - 1,)),
    "special.j0": (special.j0, (X * 4,)),
    "special.j1": (special.j1, (X * 4,)),
    "special.jn": (lambda x: special.jn(2, x), (X * 4,)),
    "special.logit": (special.logit, (below_one(4),)),
    "special.logsumexp": (special.logsumexp, (WIDE,)),
    "special.logsumexp, axis": (lambda x: special.logsumexp(x, axis=1), (WIDE,)),
    "special.logsumexp, axes": (lambda x: special.logsumexp(x, axis=(0, -1), keepdims=True), (drawn(2, 3, 4),)),
    "special.logsumexp, b": (lambda x, b: special.logsumexp(x, 0, b), (WIDE, ROW)),
    "special.logsumexp, negative b": (lambda x: special.logsumexp(x, axis=1, b=np.asarray([2.0, -0.3, 1.0])), (WIDE,)),
    "special.multigammaln": (lambda a: special.multigammaln(a, 3), (X + 2,)),
    "special.polygamma": (lambda x: special.polygamma(1, x), (X,)),
    "special.psi": (special.psi, (X,)),
    "special.rgamma": (special.rgamma, (np.asarray([0.7, 2.3, -0.4, -1.0, 0.0, -3.7]),)),
    "special.y0": (special.y0, (X * 4,)),
    "special.y1": (special.y1, (X * 4,)),
    "special.yn": (lambda x: special.yn(2, x), (X * 4,)),
    "stats.norm.pdf": (stats.norm.pdf, (X, Y, X + Y)),
    "stats.norm.logpdf": (stats.norm.logpdf, (WIDE, ROW, COLUMN)),
    "stats.norm.cdf": (stats.norm.cdf, (WIDE, ROW, COLUMN)),
    "stats.norm.logcdf": (stats.norm.logcdf, (X, Y, X + Y)),
    "stats.norm.sf": (stats.norm.sf, (X, Y, X + Y)),
    "stats.norm.logsf": (stats.norm.logsf, (X, Y, X + Y)),
    "stats.norm.logpdf, names": (lambda x, s: stats.norm.logpdf(x, scale=s), (X, Y)),
    "stats.norm.cdf, names": (lambda x, m: stats.norm.cdf(x, loc=m), (X, Y)),
    "stats.t.pdf": (stats.t.pdf, (X, Y + 2, Y, X + Y)),
    "stats.t.logpdf": (stats.t.logpdf, (WIDE, ROW + 2, drawn(4, 3, seed=3), COLUMN)),
    "stats.t.cdf": (lambda x, m, s: stats.t.cdf(x, 2.4, m, s), (X, Y, X + Y)),
    "stats.t.logcdf": (lambda x, m, s: stats.t.logcdf(x, 2.4, m, s), (X, Y, X + Y)),
    "stats.gamma.pdf": (stats.gamma.pdf, (X, Y + 1)),
    "stats.gamma.logpdf": (lambda x, a, s: stats.gamma.logpdf(x, a, scale=s), (X, Y + 1, COLUMN)),
    "stats.gamma.cdf": (lambda x: stats.gamma.cdf(x, 1.7), (X,)),
    "stats.beta.pdf": (stats.beta.pdf, (below_one(4), X + 1, Y)),
    "stats.beta.logpdf": (stats.beta.logpdf, (below_one(4), X + 1, Y)),
    "stats.beta.cdf": (lambda x: stats.beta.cdf(x, 1.7, 2.2), (below_one(4),)),
    "stats.chi2.pdf": (stats.chi2.pdf, (X, Y + 1)),
    "stats.chi2.logpdf": (stats.chi2.logpdf, (X, Y + 1)),
    "stats.chi2.cdf": (lambda x: stats.chi2.cdf(x, 3), (X,)),
    "stats.poisson.pmf": (lambda mu: stats.poisson.pmf(np.arange(4), mu), (X,)),
    "stats.poisson.logpmf": (lambda mu: stats.poisson.logpmf(np.asarray([[0], [3]]), mu + 1), (X,)),
    "stats.poisson.pmf, elsewhere": (lambda mu: stats.poisson.pmf(np.asarray([[0.0], [1.5], [-1.0]]), mu + 1), (X,)),
    "stats.poisson.cdf": (lambda mu: stats.poisson.cdf(np.arange(4), mu, 1), (X,)),
    "stats.dirichlet.logpdf": (lambda x, a: stats.dirichlet.logpdf(x / sum(x), a), (X, Y + 1)),
    "stats.dirichlet.pdf": (lambda x, a: stats.dirichlet.pdf(x / (x[0] + x[1] + x[2] + x[3]), a), (drawn(4, 3), Y + 1)),
    "stats.dirichlet.logpdf, without the last": (stats.dirichlet.logpdf, (0.2 * drawn(3), Y + 1)),
    "stats.multivariate_normal.logpdf": (lambda x, m, s: stats.multivariate_normal.logpdf(x, m, s + s.T), (X, Y, spd(4))),
    "stats.multivariate_normal.logpdf, many": (lambda x, m, s: stats.multivariate_normal.logpdf(x, m, s + s.T), (drawn(2, 3, 4), Y, spd(4))),
    "stats.multivariate_normal.pdf": (lambda x, m, s: stats.multivariate_normal.pdf(x, m, s + s.T), (drawn(5, 4), Y, spd(4))),
    "stats.multivariate_normal.logpdf, diagonal": (stats.multivariate_normal.logpdf, (drawn(5, 4), Y, X + 1)),
    "stats.multivariate_normal.logpdf, a number": (lambda x, s: stats.multivariate_normal.logpdf(x, 0.3, s), (X, np.asarray(1.3))),
    "stats.multivariate_normal.entropy": (lambda s: stats.multivariate_normal.entropy(Y, s + s.T), (spd(4),)),
    "linalg.sqrtm": (linalg.sqrtm, (spd(4) + 0.1 * drawn(4, 4),)),
    "linalg.solve_sylvester": (linalg.solve_sylvester, (spd(3), spd(2, 1), drawn(3, 2))),
    "linalg.solve_triangular": (linalg.solve_triangular, (spd(4), X)),
    "linalg.solve_triangular, lower": (lambda a, b: linalg.solve_triangular(a, b, lower=True), (spd(4), WIDE)),
    "linalg.solve_triangular, transposed": (lambda a, b: linalg.solve_triangular(a, b, "T", lower=True), (spd(4), WIDE)),
    "linalg.solve_triangular, adjoint": (lambda a, b: linalg.solve_triangular(a, b, trans=2, unit_diagonal=True), (spd(4), X)),
    "linalg.solve_banded": (lambda a, b: linalg.solve_banded((1, 2), a, b), (drawn(4, 5) + 3 * (np.arange(4) == 2)[:, None], drawn(5))),
    "linalg.solve_banded, columns": (lambda a, b: linalg.solve_banded((2, 0), a, b), (drawn(3, 4) + 3 * (np.arange(3) == 0)[:, None], WIDE)),
    "signal.convolve": (signal.convolve, (drawn(5), drawn(3))),
    "signal.convolve, same": (lambda a, b: signal.convolve(a, b, mode="same"), (drawn(5, 4), drawn(3, 2))),
    "signal.convolve, valid": (lambda a, b: signal.convolve(a, b, mode="valid"), (drawn(2, 3), drawn(4, 3))),
    "signal.convolve, axes": (lambda a, b: signal.convolve(a, b, axes=([1], [0])), (drawn(2, 5), drawn(3, 2))),
    "signal.convolve, dot": (lambda a, b: signal.convolve(a, b, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid"),
                             (drawn(2, 3, 5, 4), drawn(3, 2, 2, 3))),
    "integrate.odeint": (lambda y, a: integrate.odeint(lambda y, t, a, b: -y * a["rate"] + b[0] * t, y, np.linspace(0, 1, 4), (a, (0.5,)),
                                                       rtol=1e-11, atol=1e-11), (drawn(2), {"rate": drawn(2, seed=1)})),
}
LOOSE = {"integrate.odeint": 1e-5, "special.logsumexp, negative b": 1e-6, "special.rgamma": 1e-6}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_scipy_and_derivatives_those_of_differences(name: str) -> None:
    function, args = CALLS[name]
    if name == "integrate.odeint":
        function, args = _flat_odeint(function), (args[0], args[1]["rate"])
    check("numpy", function, *args, rtol=LOOSE.get(name, 1e-7), value_rtol=1e-12)


def _flat_odeint(function: Function) -> Function:
    return lambda y, rate: function(y, {"rate": rate})


# ----- the guide -----


def test_the_guide_for_programs_of_hips_autograd_runs(tmp_path: Path) -> None:
    """In a process of its own: `install` is for good."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) >= 8
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, "-W", "error", str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
