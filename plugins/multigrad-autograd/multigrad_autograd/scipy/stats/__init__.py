"""scipy.stats: densities, distribution functions and their logarithms, by all of their arguments
that have a derivative.

Outside of its support a density is 0, and all derivatives of it and of its logarithm are 0. At the
edge of the support they are 0 as well.
"""

from __future__ import annotations

from . import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]
