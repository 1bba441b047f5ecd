"""scipy.stats: densities, distribution functions and their logarithms.

They are differentiable with respect to all arguments that have a derivative. Outside its support a
density is 0, and so are all derivatives of it and of its logarithm. They are 0 at the edge of the
support as well.
"""

from __future__ import annotations

from . import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]
