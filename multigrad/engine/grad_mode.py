"""Grad mode: whether operations are recorded. It belongs to a level; the base level's is right per thread and per asyncio task.

The meaning is that of torch.autograd.grad_mode, with two of its accidents mended: entering one instance twice restores
the outer mode, and decorated coroutine functions and async generators run in the mode.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from . import level
from .each_call import each_call

F = TypeVar("F", bound=Callable[..., Any])

_base: ContextVar[bool | None] = ContextVar("multigrad.grad_mode", default=True)
recording = _base.get
"""Whether the base level records: what the hot path asks. None inside the forward of a Function: it does not, but notes what is computed."""

Mode = ContextVar[bool | None] | level.Switch

level.state.append(_base)


class Several(level.Switch):
    """Grad modes of several levels, which users switch as one. It is on where the first one is."""

    __slots__ = ("modes",)

    def __init__(self, *modes: Mode) -> None:
        self.modes = modes

    def get(self) -> Any:
        return Values(mode.get() for mode in self.modes)

    def set(self, on: Any) -> None:
        values = on if type(on) is Values else (on,) * len(self.modes)
        for mode, value in zip(self.modes, values, strict=True):
            switch(mode, value)


class Values(tuple[Any, ...]):
    """The values of several modes, to be restored one by one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self[0])


def joined(mode: Mode) -> Mode:
    """What users switch where arrays of the level of `mode` are theirs to compute with: that level, and the innermost one."""
    innermost = _variable()
    if innermost is mode or (type(innermost) is Several and mode in innermost.modes):
        return innermost
    return Several(mode, innermost)


def _variable() -> Mode:
    run = level.running()
    return _base if run is None else run.grad_mode


def is_grad_enabled() -> bool:
    """Whether operations are recorded now, at the innermost running transformation."""
    return bool(_variable().get())


def switch(variable: Mode, mode: bool | None) -> None:
    """Set a grad mode, of which there are two that are off: switching off what is off changes nothing."""
    if mode or variable.get():
        variable.set(mode)


class _Mode:
    """A grad mode as a context manager and as a decorator of functions, generators and coroutines."""

    mode: bool = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        if len(args) == 1 and not kwargs and cls._decorates(args[0]):  # @no_grad without parentheses
            cls.__init__(self)
            return self(args[0])
        return self

    @classmethod
    def _decorates(cls, argument: Any) -> bool:
        return callable(argument)

    def __init__(self) -> None:
        self._outer: list[tuple[Mode, bool | None]] = []

    def __enter__(self) -> None:
        self._switch(self._outer)

    def _switch(self, outer: list[tuple[Mode, bool | None]]) -> None:
        """Set the mode, and put what it was on that list."""
        variable = _variable()
        before = variable.get()
        try:
            outer.append((variable, before))
            switch(variable, self.mode)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            variable.set(before)
            outer.pop()
            raise

    def __exit__(self, *exc: object) -> None:
        variable, mode = self._outer[-1]
        variable.set(mode)  # first, since an interrupt may come after any call
        self._outer.pop()

    def clone(self) -> _Mode:
        """Another context manager like this one."""
        return type(self)()

    def __call__(self, function: F) -> F:
        """Decorate: the body of `function` runs in this mode, at each resume if it is a generator or a coroutine."""
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                          "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
                          "and nothing else.", FutureWarning, stacklevel=2)
            setattr(function, "__init__", self.clone()(function.__init__))  # noqa: B010 - mypy knows __init__ as a method
            return function
        return each_call(function, self.clone)  # type: ignore[return-value]


class no_grad(_Mode):
    """Context manager and decorator: operations are not recorded, results do not require grad. As torch.no_grad."""

    mode = False


class enable_grad(_Mode):
    """Context manager and decorator: operations are recorded, also inside no_grad. As torch.enable_grad."""

    mode = True


class inference_mode(_Mode):
    """Context manager and decorator: as no_grad when `mode` is true, as enable_grad otherwise.

    PyTorch's further restrictions on such results (they cannot be saved for a backward pass) have no use here:
    results are ordinary arrays without a history.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.enabled = mode

    def __enter__(self) -> None:
        self.mode = not self.enabled
        super().__enter__()

    def clone(self) -> _Mode:
        return type(self)(self.enabled)


class set_grad_enabled(_Mode):
    """Set the mode to `mode` at once, and restore the former one when used as a context manager. As torch.set_grad_enabled."""

    @classmethod
    def _decorates(cls, argument: Any) -> bool:
        return False

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        super().__init__()
        self.mode = mode
        self._before: list[tuple[Mode, bool | None]] = []
        self._switch(self._before)

    def __enter__(self) -> None:
        variable = _variable()
        self._outer.append(self._before.pop() if self._before else (variable, variable.get()))
        switch(variable, self.mode)

    def __call__(self, function: F) -> F:
        if self._before:  # decorating undoes what the constructor did
            variable, mode = self._before.pop()
            variable.set(mode)
        return super().__call__(function)

    def clone(self) -> _Mode:
        return type(self)(self.mode)


class switched:
    """Give these grad modes the values beside them for a while.

    No generator: one that an interrupt kept from ending would do so later, and restore what is long over.
    """

    __slots__ = ("_before", "_modes")

    def __init__(self, modes: Sequence[tuple[Mode, bool | None]]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        self._before = level.undo()
        try:
            for mode, value in self._modes:
                switch(mode, value)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            level.settle(self._before)
            raise

    def __exit__(self, *exc: object) -> None:
        level.settle(self._before)


def switched_off(*modes: Mode) -> switched:
    """Switch these grad modes off for a while."""
    return switched([(mode, False) for mode in modes])
