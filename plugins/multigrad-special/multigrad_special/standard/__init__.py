"""The special functions in terms of the Array API standard, for every backend that has none of its
own.

They use operators, a handful of elementwise functions and a fixed number of steps, so they run on
any device, under tracing and on lazy arrays; that is why nothing here goes through NumPy. In
float64 they are within 1e-14 of the true value (of the larger of it and 1 for functions that pass
through 0), in float32 within 1e-5, which is no less exact than SciPy; the exceptions are stated
beside them. Each function is a forward of multigrad: `f(xp, *arguments)`, `xp` being a raw
namespace.
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
