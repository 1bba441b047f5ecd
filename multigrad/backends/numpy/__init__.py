"""NumPy as a backend. This module imports no array library."""

import multigrad as mg


@mg.hookimpl
def multigrad_backends() -> list[mg.BackendSpec]:
    return [
        mg.BackendSpec(
            "numpy", "numpy", "multigrad.backends.numpy.backend:make", "pip install multigrad-array"
        )
    ]
