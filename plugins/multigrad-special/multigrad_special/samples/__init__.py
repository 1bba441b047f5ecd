"""What the conformance suite tries these operations on: a generator of samples for each, a family
of functions a module.

Arrays away from the poles. The suite does the rest: from each it makes arrays of float32, without
elements, without axes and not contiguous, and compares values, gradients and second derivatives
with NumPy and with finite differences.
"""

from .bessel import *  # noqa: F403
from .elementary import *  # noqa: F403
from .elliptic import *  # noqa: F403
from .entropy import *  # noqa: F403
from .error import *  # noqa: F403
from .gamma import *  # noqa: F403
from .incomplete_beta import *  # noqa: F403
from .incomplete_gamma import *  # noqa: F403
from .integrals import *  # noqa: F403
from .zeta import *  # noqa: F403
