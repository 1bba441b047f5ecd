"""The special functions in terms of the Array API standard, for backends without their own.

They use operators, a handful of elementwise functions and a fixed number of steps, so they run on
any device, under tracing and on lazy arrays. For this reason they do not go through NumPy. In
float64 the error is within 1e-14 of the true value (for functions that pass through 0, of the
larger of it and 1), in float32 within 1e-5, which is at least as exact as SciPy. Exceptions are
stated beside the functions. Each function is a forward of multigrad: `f(xp, *arguments)`, where
`xp` is a raw namespace.
"""

from .bessel import *  # noqa: F403
from .beta_quantiles import *  # noqa: F403
from .common import *  # noqa: F403
from .confluent import *  # noqa: F403
from .elementary import *  # noqa: F403
from .elliptic import *  # noqa: F403
from .entropy import *  # noqa: F403
from .error import *  # noqa: F403
from .gamma import *  # noqa: F403
from .gamma_series import *  # noqa: F403
from .incomplete_beta import *  # noqa: F403
from .incomplete_gamma import *  # noqa: F403
from .integrals import *  # noqa: F403
from .legendre import *  # noqa: F403
from .zeta import *  # noqa: F403
