"""CuPy as a backend. This module imports no array library."""

import multigrad as mg


@mg.hookimpl
def multigrad_backends() -> list[mg.BackendSpec]:
    return [
        mg.BackendSpec(
            "cupy",
            "cupy",
            "multigrad.backends.cupy.backend:make",
            "pip install 'multigrad-array[cupy]' (CUDA 12) or 'multigrad-array[cupy-cuda13]'",
        )
    ]
