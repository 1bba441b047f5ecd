"""numpy.random: what it draws has no derivative.

Arguments that require one are refused, unless `defvjp` defines it.
"""

from typing import Any

import numpy.random as raw

from .table import drawing

globals().update(drawing(raw.__dict__))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
