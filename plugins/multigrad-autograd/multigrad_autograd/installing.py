"""`install`: replace HIPS autograd by this package, so that programs run unchanged."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["install"]

HERE = __name__.rpartition(".")[0]
PLACE = "autograd"


def install() -> None:
    """Make `import autograd`, and of its submodules, import this package, in this process.

    Raises ImportError if HIPS autograd was imported before: modules with references to its
    functions would keep using them.
    """
    there = sys.modules.get(PLACE)
    if there is not None and there is not sys.modules[HERE]:
        raise ImportError(
            "multigrad_autograd.install(): autograd is imported already, from "
            f"{getattr(there, '__file__', 'elsewhere')}. Call install() before anything imports "
            "autograd."
        )
    if there is None:
        sys.modules[PLACE] = sys.modules[HERE]
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `autograd.x` as `multigrad_autograd.x`: one module under two names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.machinery.ModuleSpec(fullname, self)
            if fullname.startswith(f"{PLACE}.")
            else None
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = HERE + spec.name.removeprefix(PLACE)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            text = (
                f"No module named {spec.name!r}: multigrad_autograd, which replaces "
                "autograd, lacks it"
            )
            raise ModuleNotFoundError(text, name=spec.name) from None
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has run under its own name, and keeps its spec."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state
