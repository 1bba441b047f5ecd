"""numpy.fft for boxes and raw arrays."""

from typing import Any

import numpy.fft as raw

from .table import wrap_namespace

globals().update(wrap_namespace(raw.__dict__, {}))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
