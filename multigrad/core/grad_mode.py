"""Grad mode: whether operations are recorded.

Each level has a grad mode. That of the base level is local to the thread and to the asyncio task.

Corresponds to torch.autograd.grad_mode, with two improvements: entering one instance twice
restores the outer mode, and decorated coroutine functions and async generators run in the mode.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextvars import Token
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from .. import observe
from ..observe import NONE, OFF, made
from . import level
from .each_call import each_call
from .level import BASE, Switch, own_switch, running

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_gate, _set = observe.gate.get, observe.gate.set


def recording() -> bool | None:
    """Whether the base level records; None in the forward of a Function, which marks instead."""
    gate = _gate()
    return True if gate is True else gate.base


def is_grad_enabled() -> bool:
    """Whether operations are recorded now, at the innermost running transformation."""
    return bool(own_switch().get())


def recorded(function: Callable[..., T], *args: Any) -> T:
    """Call a function with all grad modes on.

    Inside the forward of a Function the modes stay unchanged, and computed values are marked.
    """
    gate = _gate()
    token = _set(gate if gate is True or gate.base is None else made(True, NONE, gate.watch))
    try:
        return function(*args)
    finally:
        observe.gate.reset(token)


def quiet(gate: Any) -> Any:
    """The state of the gate after the user's grad mode is switched off."""
    if gate is not True and gate.base and gate.quiet is not None and running() is None:
        return gate.quiet
    return own_switch().turned(gate, False)


Before = tuple[Switch, Any, Any, Any]
"""What a context manager restores: a grad mode, its value, the gate before and after."""


class ModeContext:
    """A grad mode as a context manager and a decorator of functions, generators, coroutines."""

    mode: bool = True
    __signature__: inspect.Signature

    def __init_subclass__(cls) -> None:
        """Show the signature of `__init__`, not that of `__new__`, in `help` and in editors."""
        signature = inspect.signature(cls.__init__)
        cls.__signature__ = signature.replace(
            parameters=list(signature.parameters.values())[1:], return_annotation=signature.empty
        )

    if TYPE_CHECKING:

        @overload
        def __new__(cls) -> Self: ...
        @overload
        def __new__(cls, function: F, /) -> F: ...  # type: ignore[misc]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        # @no_grad without parentheses
        if len(args) == 1 and not kwargs and cls._decorates(args[0]):
            cls.__init__(self)
            return self(args[0])
        return self

    @classmethod
    def _decorates(cls, argument: Any) -> bool:
        return callable(argument)

    def __init__(self) -> None:
        self._outer: list[Before] = []

    def __enter__(self) -> None:
        gate = _gate()
        before = self._before(gate)
        try:
            self._outer.append(before)
            _set(before[3])
        except BaseException:  # an interrupt, after which `__exit__` is not called
            _set(gate)
            if self._outer and self._outer[-1] is before:
                self._outer.pop()
            raise

    def _before(self, gate: Any) -> Before:
        """What to restore, and the state of the gate to set."""
        if (gate is True or gate is OFF) and running() is None:
            return BASE, gate is True, gate, self.mode or OFF
        variable = own_switch()
        return variable, variable.within(gate), gate, variable.turned(gate, self.mode)

    def __exit__(self, *exc: object) -> None:
        variable, mode, gate, ours = self._outer[-1]
        try:
            token = _set(gate)  # first, since an interrupt may come after any call
        except MemoryError:
            token = _set(gate)
        if token.old_value is not ours:  # something else was set since, and is still in force
            current = token.old_value
            _set(variable.changed(True if current is Token.MISSING else current, mode))
        self._outer.pop()

    def clone(self) -> ModeContext:
        """Another context manager like this one."""
        return type(self)()

    def __call__(self, function: F) -> F:
        """Decorate a function, whose body then runs in this mode.

        The body of a generator or a coroutine runs in it at each resume.
        """
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
            try:
                setattr(function, "__init__", self.clone()(function.__init__))  # noqa: B010 - mypy knows __init__ as a method
            except TypeError as error:  # a class of C
                raise TypeError(f"a mode cannot decorate {function!r}: {error}") from error
            return function
        return each_call(function, self.clone)  # type: ignore[return-value]


class no_grad(ModeContext):
    """Context manager and decorator: operations are not recorded, results do not require grad.

    Same as torch.no_grad.
    """

    mode = False


class enable_grad(ModeContext):
    """Context manager and decorator: operations are recorded, also inside no_grad.

    Same as torch.enable_grad.
    """

    mode = True


class inference_mode(ModeContext):
    """Context manager and decorator: same as no_grad if `mode` is true, else same as enable_grad.

    PyTorch's further restriction, that such results cannot be saved for a backward pass, does not
    apply. Results are ordinary arrays without a history.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.enabled = mode

    def __enter__(self) -> None:
        self.mode = not self.enabled
        super().__enter__()

    def clone(self) -> ModeContext:
        return type(self)(self.enabled)


class set_grad_enabled(ModeContext):
    """Set the mode to `mode` at once, and restore the former one when used as a context manager.

    Same as torch.set_grad_enabled.
    """

    @classmethod
    def _decorates(cls, argument: Any) -> bool:
        return False

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        super().__init__()
        self.mode = mode
        self._entered: list[Before] = []
        super().__enter__()
        self._entered, self._outer = self._outer, self._entered

    def __enter__(self) -> None:
        if not self._entered:
            super().__enter__()
            return
        self._outer.append(self._entered.pop())
        own_switch().turn(self.mode)

    def __call__(self, function: F) -> F:
        if self._entered:  # a decorator does not change the mode: undo the constructor
            variable, mode, _, _ = self._entered.pop()
            variable.set(mode)
        return super().__call__(function)

    def clone(self) -> ModeContext:
        return type(self)(self.mode)


class switched:
    """Context manager that gives grad modes the values paired with them.

    It is a class and not a generator: after an interrupt, an abandoned generator would end later
    and restore an outdated state.
    """

    __slots__ = ("_before", "_modes")

    def __init__(self, modes: Sequence[tuple[Switch, Any]]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        self._before = level.undo()
        try:
            for mode, value in self._modes:
                mode.turn(value)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            level.settle(self._before[0])
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            level.settle(self._before[0])
        except MemoryError:
            level.settle_again(self._before)


def switched_off(*modes: Switch) -> switched:
    """Context manager that switches these grad modes off."""
    return switched([(mode, False) for mode in modes])
