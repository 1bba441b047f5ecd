"""numpy.random: random draws have no derivative.

Arguments that require a derivative raise an error, unless `defvjp` defines one.
"""

from typing import Any

import numpy.random as raw

from .table import drawing

globals().update(drawing(raw.__dict__))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
