"""The conformance suite of multigrad: `pytest --pyargs multigrad_conformance --multigrad-backend NAME`.

An operation that a plugin registers is enrolled by its samples, which the hook `multigrad_samples` names:

    @mg.hookimpl
    def multigrad_samples():
        return {"special.erf": "multigrad_special.samples:erf"}

    def erf(draw):                                   # in multigrad_special/samples/error.py
        yield Sample("real", draw.real(2, 3))
        yield Kink("at 0", [0.0], gradients={"x": [2 / math.sqrt(math.pi)]})
"""

from __future__ import annotations

from .sample import OWN_DEVICE, Draw, DType, Kink, Sample

__all__ = ["OWN_DEVICE", "DType", "Draw", "Kink", "Sample"]
__version__ = "0.1.0"
