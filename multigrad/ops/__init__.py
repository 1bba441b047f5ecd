"""The operations of the standard, one file per chapter. Importing this package fills the table."""

from . import (
    creation,
    data_type,
    elementwise,
    indexing,
    kernels,
    linear_algebra,
    manipulation,
    searching,
    set,
    sorting,
    statistical,
    utility,
)

__all__ = [
    "creation",
    "data_type",
    "elementwise",
    "indexing",
    "kernels",
    "linear_algebra",
    "manipulation",
    "searching",
    "set",
    "sorting",
    "statistical",
    "utility",
]
