"""JAX as a backend. This module imports no array library."""

import multigrad as mg


@mg.hookimpl
def multigrad_backends() -> list[mg.BackendSpec]:
    return [
        mg.BackendSpec(
            "jax",
            "jax",
            "multigrad.backends.jax.backend:make",
            "pip install 'multigrad-array[jax]'",
        )
    ]
