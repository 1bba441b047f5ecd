"""The decorator of methods by which a value leaves the graph or is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..observe import CONVERSION, Call, Mode, around_parts, gate
from ..tracebacks import blamed, fold

F = TypeVar("F", bound=Callable[..., Any])


def conversion(method: F) -> F:
    """Decorate a method by which a value leaves the graph or is shown.

    Observers are notified of its calls, under its name.
    """
    name = method.__name__

    @wraps(method)
    def converted(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            mode = gate.get()
            if mode is True or not mode.watch.observers:
                return method(self, *args, **kwargs)
            return observed(mode, self, *args, **kwargs)
        except Exception as error:
            theirs = fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            instead = blamed(error, theirs, method, (self, *args), kwargs)
            if instead is not None:
                raise instead from error
            raise

    def observed(mode: Mode, self: Any, *args: Any, **kwargs: Any) -> Any:
        if mode.watch.exchange is not None:
            observer = next(o for o in reversed(mode.watch.observers) if o.exchange is not None)
            return observer.convert(name, converted, self, *args, **kwargs)
        observing = mode.watch.of(CONVERSION)
        if not observing:
            return method(self, *args, **kwargs)
        return around_parts(
            mode,
            mode.inside,
            observing,
            Call(CONVERSION, None, name, (), (self,)),
            lambda: method(self, *args, **kwargs),
        )

    return converted  # type: ignore[return-value]
