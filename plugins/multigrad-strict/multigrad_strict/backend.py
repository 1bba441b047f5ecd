"""The backend: the namespace as it is, its array type, and the devices and flags to be tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import array_api_strict as xp

import multigrad as mg

FLAGS: dict[str, dict[str, Any]] = {
    "no_data_dependent_shapes": {"data_dependent_shapes": False},
    "no_boolean_indexing": {"boolean_indexing": False},
    "no_extensions": {"enabled_extensions": ()},
}


def make() -> mg.Backend:
    """The backend of array_api_strict arrays, without functions or kernels of its own: multigrad's defaults run."""
    default, *others = xp.__array_namespace_info__().devices()
    # A device prints as array_api_strict.Device('no_x64').
    devices = {str(device).split("'")[1]: device for device in others}
    return mg.Backend(
        "strict",
        xp,
        (type(xp.asarray(0, device=default)),),
        capabilities=mg.Capabilities(defers=False),
        variants=_variants(devices),
    )


def _variants(devices: dict[str, Any]) -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    on_device: dict[str, Any] = {name: partial(_on_device, device) for name, device in devices.items()}
    return on_device | {name: partial(_with_flags, flags) for name, flags in FLAGS.items()}


@contextmanager
def _on_device(device: Any) -> Iterator[Any]:
    yield device


@contextmanager
def _with_flags(flags: dict[str, Any]) -> Iterator[None]:
    with xp.ArrayAPIStrictFlags(**flags):
        yield None
