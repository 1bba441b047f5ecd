"""Samples of these operations for the conformance suite: one generator for each operation.

The samples are arrays away from the poles. From each the suite makes float32, empty, 0-d and
non-contiguous arrays, and compares values, gradients and second derivatives with NumPy and with
finite differences.
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
