"""linear_solve: the solution of a linear system whose matrix is known by its products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function
from multigrad.errors import GradientError
from multigrad.extend import innermost, level_of

from .arguments import Point, ravelled
from .implicit import MORE, jacobian, limited
from .levels import Examples, backend_of, numbers, orders
from .progress import Bar

__all__ = ["linear_solve"]

METHODS = ("cg", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "gcrotmk", "tfqmr", "cgs")
SYMMETRIC = ("cg", "minres")
NEAR = 1e-3
