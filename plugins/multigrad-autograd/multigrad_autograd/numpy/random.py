"""numpy.random: what it draws has no derivative. Boxes among the arguments count by their values."""

from typing import Any

import numpy.random as raw

from .table import constants_of

globals().update(constants_of(raw.__dict__))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
