"""mparray as a backend of multigrad. This module imports no array library."""

import multigrad as mg

MULTIGRAD_API = 1  # the version of multigrad's API for plugins that this plugin needs


@mg.hookimpl
def multigrad_backends() -> list[mg.BackendSpec]:
    return [
        mg.BackendSpec(
            "mparray", "mparray", "multigrad_mparray.backend:make", install="pip install mparray"
        )
    ]
