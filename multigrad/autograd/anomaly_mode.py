"""Anomaly mode, as torch.autograd.anomaly_mode: which forward call made the node that fails, and which node makes nan.

The mode belongs to the process. It costs nothing while it is off: see engine/anomaly.py.
"""

from __future__ import annotations

import warnings

from ..engine import anomaly
from ..engine.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


class detect_anomaly:
    """Context manager: a backward pass that fails tells which forward call made the failing node, and nan in a gradient is an error.

    check_nan  whether nan raises

    The forward pass must run within it, too, to be known. It is slow: for finding errors only.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
                      stacklevel=2)

    def __enter__(self) -> None:
        anomaly.set_enabled(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        anomaly.set_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switch anomaly mode on or off at once; as a context manager, restore the former state at the end. See `detect_anomaly`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        anomaly.set_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        anomaly.set_enabled(self.prev, self.prev_check_nan)
