"""A tqdm bar that shows the progress of a solver."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["Bar"]


class Bar:
    """A context manager that shows a bar of `unit`, or nothing if `shown` is false.

    Raises ImportError if the bar should be shown and tqdm is not installed.
    """

    def __init__(self, shown: bool, name: str, unit: str) -> None:
        self._bar: Any = None
        self.shown = shown
        if shown:
            try:
                tqdm = import_module("tqdm.auto").tqdm
            except ImportError as error:
                raise ImportError(
                    f"{name}: progress=True needs tqdm: pip install 'multigrad-scipy[progress]'"
                ) from error
            self._bar = tqdm(desc=name, unit=f" {unit}")

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same function, with each call as one step of the bar."""
        if self._bar is None:
            return function

        def counted(*args: Any) -> Any:
            self.step()
            return function(*args)

        return counted
