"""Backends that a test makes for itself, in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import multigrad as mg
from multigrad.core import element
from multigrad.plugins import discovery, loading
from multigrad.plugins.plugin import Known, Plugin


@contextmanager
def in_use(backend: mg.Backend) -> Iterator[None]:
    """A backend in use, as if a plugin had brought it."""
    mg.registry.fill()
    spec = mg.BackendSpec(backend.name, backend.name, "tests:none")
    entry = Known(spec, Plugin(backend.name, "tests", "tests", ""))
    discovery._accept(entry, backend)
    loading.backends[backend.name] = entry
    try:
        yield
    finally:
        del loading.backends[backend.name], element._libraries[backend.name]
        for kind in backend.array_types:
            del discovery._by_type[kind]
            element.by_type.pop(kind, None)
