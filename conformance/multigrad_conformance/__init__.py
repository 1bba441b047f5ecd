"""The conformance suite: `pytest --pyargs multigrad_conformance --multigrad-backend NAME`.

It also tests your own functions and operations on every array library (docs/testing.md):

    from multigrad_conformance import check_function

    def test_softplus():
        check_function(softplus, np.linspace(-2.0, 2.0, 5))

The suite tests an operation of a plugin on the samples that the hook `multigrad_samples` returns:

    @mg.hookimpl
    def multigrad_samples():
        return {"special.erf": "multigrad_special.samples:erf"}

    def erf(draw):                                   # in multigrad_special/samples/error.py
        yield Sample("real", draw.real(2, 3))
        yield Kink("at 0", [0.0], gradients={"x": [2 / math.sqrt(math.pi)]})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sample import OWN_DEVICE, Draw, DType, Kink, Refused, Sample
    from .testing import check_function, check_rule

__all__ = [
    "OWN_DEVICE",
    "DType",
    "Draw",
    "Kink",
    "Refused",
    "Sample",
    "check_function",
    "check_rule",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import a public name at its first access.

    pytest imports this package in every run, for its plugin, so the import must be cheap.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(
        import_module(".testing" if name.startswith("check_") else ".sample", __name__), name
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
