"""Libraries that use the arrays of other libraries, and have a registry for them.

multigrad imports none of them. When a program has imported one, the next Tensor that is made from
an array registers Tensors there, and so does `multigrad.register_clients()`. No registration is
needed for interfaces that a library finds by itself: NumPy's protocols, the namespace of an array,
and the names in `multigrad`. `scipy_fft` is a backend that the user sets in SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from importlib import import_module
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from .. import locks
from ..core import tensor
from ..errors import program
from ..memory import copying
from ..plugins.installed import is_partial
from ..provided import provide

if TYPE_CHECKING:
    from . import scipy_fft

__all__ = ["register_clients", "scipy_fft"]

PLACES = {
    "einops._backends": "einops",
    "matplotlib.units": "matplotlib",
    "autoray.autoray": "autoray",
}
"""For each module with a registry, the module here whose `register(module)` registers Tensors."""

_registered: set[str] = set()
_registering = locks.new_lock()


def register_clients() -> None:
    """Register Tensors with each imported library that has a registry of array types.

    These libraries are einops, matplotlib and autoray. The first Tensor that is made from an array
    after the import of such a library has the same effect, so this function is only needed for
    Tensors that were made before. It imports no library, and registers with each library once.
    """
    with _registering:
        count = len(sys.modules)  # the next Tensor notices later imports
        late = False
        for place, name in PLACES.items():
            module = sys.modules.get(place)
            if module is None or place in _registered:
                continue
            if is_partial(module):
                late = True
                continue
            _registered.add(place)  # first, since a registration may make Tensors
            import_module(f".{name}", __name__).register(module)
            count = len(sys.modules)
        tensor.looked(-1 if late else count)


def __getattr__(name: str) -> ModuleType:
    """`scipy_fft`, imported on first use."""
    if name != "scipy_fft":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


COMPUTING = frozenset({"xarray"})
"""Libraries that compute with deep copies of arrays.

xarray makes them in `DataArray(t, coords=...)`, `sortby`, `align` and all else that calls its
`copy`.
"""


def is_step() -> bool:
    """Whether a library computes with a deep copy.

    That is the case if the library called copy.deepcopy, and the program called the library.
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


provide(tensor, register_clients=register_clients)
provide(copying, is_step=is_step)
