"""Libraries that use arrays of others, and have a place where these register.

None of them is imported here. One that the program has imported is told of Tensors when the next
Tensor is made from an array, or by `multigrad.register_clients()`. What a library finds by itself
(NumPy's protocols, the namespace of an array, the names in `multigrad`) needs no registration.
`scipy_fft` is a backend that the user sets in SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from importlib import import_module
from threading import RLock
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from ..core import imported
from ..errors import program
from ..memory import copying
from ..provided import provide

if TYPE_CHECKING:
    from . import scipy_fft

__all__ = ["register_clients", "scipy_fft"]

PLACES = {
    "einops._backends": "einops",
    "matplotlib.units": "matplotlib",
    "autoray.autoray": "autoray",
}
"""The module that knows where arrays register, and the one here that registers them there, by
`register(module)`.
"""

_registered: set[str] = set()
_registering = RLock()


def register_clients() -> None:
    """Tell every library that the program has imported, and that keeps a list of kinds of arrays,
    of Tensors: einops, matplotlib, autoray.

    The first Tensor that is made from an array after such a library was imported does so, too; this
    is for Tensors that were made before. Nothing is imported for it, and a library that was told is
    not told again.
    """
    with _registering:
        known = len(sys.modules)  # what is imported from here on is seen by the next Tensor
        late = False
        for place, name in PLACES.items():
            module = sys.modules.get(place)
            if module is None or place in _registered:
                continue
            if _unfinished(module):
                late = True
                continue
            _registered.add(place)  # first, since a registration may make Tensors
            import_module(f".{name}", __name__).register(module)
            known = len(sys.modules)
        imported.looked(-1 if late else known)


def __getattr__(name: str) -> ModuleType:
    """`scipy_fft`, imported when it is first asked for."""
    if name != "scipy_fft":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def _unfinished(module: ModuleType) -> bool:
    """Whether it is being imported, by this thread or another."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


COMPUTING = frozenset({"xarray"})
"""Libraries that deep-copy arrays as a step: xarray does in `DataArray(t, coords=...)`, `sortby`,
`align` and whatever else calls its `copy`.
"""


def is_step() -> bool:
    """Whether a library computes with a deep copy: it called copy.deepcopy, and the program called
    the library rather than copy.deepcopy.
    """
    if COMPUTING.isdisjoint(sys.modules):
        return False
    frame = _beyond(sys._getframe(program() - 1), frozenset({"copy"}))
    beyond = _beyond(frame, COMPUTING)
    return beyond is not frame and (beyond is None or beyond.f_globals.get("__name__") != "copy")


def _beyond(frame: FrameType | None, packages: Set[str]) -> FrameType | None:
    """The first frame, of this one and its callers, whose code is in another package."""
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in packages:
        frame = frame.f_back
    return frame


provide(imported, register_clients=register_clients)
provide(copying, is_step=is_step)
