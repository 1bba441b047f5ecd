"""SciPy's solvers on arrays of any library, with automatic derivatives and differentiable results.

    from multigrad_scipy import minimize

    # f is array-agnostic; multigrad computes its gradient
    minimize(f, x0).x
    # the gradient of a function of a solution, by the implicit function theorem
    func.grad(lambda t: g(minimize(lambda x: f(x, t), x0).x))(t)

The functions are those of scipy.optimize and scipy.integrate, and SciPy does the computation. SciPy
is imported at the first access to one of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fitting import curve_fit as curve_fit
    from .fitting import least_squares as least_squares
    from .integrating import solve_ivp as solve_ivp
    from .linear import linear_solve as linear_solve
    from .minimizing import minimize as minimize
    from .minimizing import minimize_scalar as minimize_scalar
    from .roots import root as root

__all__ = [
    "curve_fit",
    "least_squares",
    "linear_solve",
    "minimize",
    "minimize_scalar",
    "root",
    "solve_ivp",
]

_MODULES = {
    "curve_fit": "fitting",
    "least_squares": "fitting",
    "linear_solve": "linear",
    "minimize": "minimizing",
    "minimize_scalar": "minimizing",
    "root": "roots",
    "solve_ivp": "integrating",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'multigrad_scipy' has no attribute {name!r}")
    function = getattr(import_module(f"multigrad_scipy.{_MODULES[name]}"), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(__all__)
