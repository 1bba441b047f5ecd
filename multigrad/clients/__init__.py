"""Libraries that use arrays of others, and have a place where these register.

None of them is imported here. One that the program has imported is told of Tensors when the next Tensor is made from an array, or by
`multigrad.register_clients()`. What a library finds by itself (NumPy's protocols, the namespace of an array, the names in `multigrad`) needs no
registration. `scipy_fft` is a backend that the user sets in SciPy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import RLock
from types import ModuleType

from ..engine import imported
from ..provided import provide

PLACES = {"einops._backends": "einops", "matplotlib.units": "matplotlib", "autoray.autoray": "autoray"}
"""The module that knows where arrays register, and the one here that registers them there, by `register(module)`."""

_registered: set[str] = set()
_registering = RLock()


def register_clients() -> None:
    """Tell every library that the program has imported, and that keeps a list of kinds of arrays, of Tensors: einops, matplotlib, autoray.

    The first Tensor that is made from an array after such a library was imported does so, too; this is for Tensors that were made before.
    Nothing is imported for it, and a library that was told is not told again.
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
        imported.seen[0] = -1 if late else known


def _unfinished(module: ModuleType) -> bool:
    """Whether it is being imported, by this thread or another."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


provide(imported, register_clients=register_clients)
