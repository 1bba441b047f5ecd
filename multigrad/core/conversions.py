"""The decorator of methods by which a value leaves the graph or is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType
from typing import Any, TypeVar

from ..observe import CONVERSION, NOTHING, Call, Mode, around_parts, gate
from ..tracebacks import blamed

F = TypeVar("F", bound=Callable[..., Any])


def conversion(method: F) -> F:
    """Decorate a method by which a value leaves the graph or is shown; observers see its calls."""
    name = method.__name__
    code: CodeType = method.__code__

    @wraps(method)
    def plain(self: Any) -> Any:
        try:
            mode = gate.get()
            return method(self) if mode is True or mode.watch is NOTHING else observed(mode, self)
        except Exception as error:
            error = blamed(error, method, (self,), {})
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    @wraps(method)
    def general(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            mode = gate.get()
            return (
                method(self, *args, **kwargs)
                if mode is True or mode.watch is NOTHING
                else observed(mode, self, *args, **kwargs)
            )
        except Exception as error:
            error = blamed(error, method, (self, *args), kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    def observed(mode: Mode, self: Any, *args: Any, **kwargs: Any) -> Any:
        if mode.watch.body is not None:
            return mode.watch.body.convert(name, general, self, *args, **kwargs)
        observing = mode.watch.of(CONVERSION)
        if not observing:
            return method(self, *args, **kwargs)
        call = Call(CONVERSION, None, name, (), (self,))
        return around_parts(
            mode, mode.inside, observing, call, lambda: method(self, *args, **kwargs)
        )

    alone = (
        code.co_argcount == 1
        and not code.co_kwonlyargcount
        and not code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    )
    return plain if alone else general  # type: ignore[return-value]
