"""Levels keep nested transformations apart.

A transformation that runs takes a number k that only grows. Its own layer has level 3k, Tensors
created inside it 3k + 1, forward-mode duals 3k + 2; at top level k = 0, so an ordinary Tensor has
level 1. An operation on arrays of several levels is handled by the highest; the others are
constants to it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeVar

from ..errors import GradientError
from ..observe import NONE, NOTHING, Mode, gate, made

T = TypeVar("T")


class Layer:
    """Base of the array objects that stand for another array: Tensor, and the layers of the
    transformations.

    `_level` orders them; `_array` is the value one layer further in: a raw array or another layer.
    Operations on a layer are carried out by its class's `_apply(op, values, top)`. `_cell` has the
    times of in-place writes to it.
    """

    __slots__ = ()
    _quiet = False  # whether writes through it spoil nothing that was saved: of `x.data`
    _view: Any = None  # of a view, what it is a view of and how it was made (layout.ViewSpec)
    # whether it stands for several arrays at once, so that its values are nobody's
    _several = False
    _level: int
    _array: Any
    _cell: list[int]
    _elem: Any

    @classmethod
    def _apply(cls, op: Any, values: tuple[Any, ...], top: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        """Apply an operation with a derivative of the user's own (an autograd.Function, a
        custom_vjp or custom_jvp) to `values`.

        application  what is applied. `application.name` is the name of the user's class or
                     function; `application.through(values, own, wrap)` applies it one layer further
                     in, where `own` tells which of `values` are layers of this level, and makes a
                     value of this level of each array that comes out, by `wrap`. Return what it
                     returns.
        top          one of the highest level among `values`, a layer of this class
        """
        kind = type(top).__name__
        raise NotImplementedError(
            f"multigrad cannot apply an autograd.Function under {kind} yet: let the class "
            f"{kind} define the static method _apply_custom(application, values, top), as "
            "multigrad.core.level.Layer describes it"
        )

    def _check(self) -> None:
        """Bring it up to date, if it is a view of what was written since.

        Raises where it must not be used any more.
        """
        raise NotImplementedError

    def _memory_order(self) -> str | None:
        """How the last two axes lie in memory, as the kernel `order` says it; None if unknown."""
        return None

    def _moves(self) -> bool:
        """Whether this very layer is being differentiated."""
        return False

    def _frozen(self) -> Any:
        """What can be the value of another layer: itself, or, if writing to it exchanges its value,
        a layer of this value.
        """
        return self


class Standing:
    """Base of what stands for a Python scalar among the arguments of an operation, and is none: the
    numbers of `func.compile`.
    """

    __slots__ = ()

    def _plain(self) -> Any:
        """As a setting, an axis for instance: the scalar itself."""
        raise NotImplementedError

    def _as_operand(self, op: Any, others: list[Any]) -> Any:
        """As an operand beside these: a layer."""
        raise NotImplementedError


def innermost(x: Any) -> Any:
    """The raw array at the bottom of a tower of layers."""
    while isinstance(x, Layer):
        x = x._array
    return x


class Switch:
    """A grad mode of one transformation: on, unless it was switched off.

    Right per thread and per asyncio task, as the gate is, which holds it.
    """

    __slots__ = ()

    def get(self) -> Any:
        return self.within(gate.get())

    def set(self, on: Any) -> None:
        gate.set(self.changed(gate.get(), on))

    def turn(self, on: Any) -> None:
        """Switch it on or off."""
        gate.set(self.turned(gate.get(), on))

    def within(self, mode: Any) -> Any:
        """What it is in that state of the gate."""
        return mode is True or self not in mode.off

    def changed(self, mode: Any, on: Any) -> Any:
        """The state of the gate where it is `on`, and else as in `mode`."""
        off = NONE if mode is True else mode.off
        if bool(on) is not (self in off):
            return mode
        off = off - {self} if on else off | {self}
        return made(True, off, NOTHING) if mode is True else made(mode.base, off, mode.watch)

    def turned(self, mode: Any, on: Any) -> Any:
        """The same where it is switched.

        Two values are off: switching off what is off changes nothing.
        """
        return self.changed(mode, on) if on or self.within(mode) else mode


class BaseSwitch(Switch):
    """The grad mode of the base level.

    None inside the forward of a Function: nothing is recorded, but it is noted what is computed.
    """

    __slots__ = ()

    def within(self, mode: Any) -> bool | None:
        return True if mode is True else mode.base

    def changed(self, mode: Any, on: bool | None) -> Any:
        if mode is True:
            return made(on, NONE, NOTHING)
        if on is not False:
            return made(on, mode.off, mode.watch)
        if mode.quiet is None:
            mode.quiet = made(False, mode.off, mode.watch)
        return mode.quiet


BASE = BaseSwitch()
"""The grad mode of the base level."""


class Several(tuple[Switch, ...], Switch):
    """Grad modes of several levels, which users switch as one. It is on where the first one is."""

    __slots__ = ()

    def within(self, mode: Any) -> Any:
        return Values(switch.within(mode) for switch in self)

    def changed(self, mode: Any, on: Any) -> Any:
        for switch, value in zip(
            self, on if type(on) is Values else (on,) * len(self), strict=True
        ):
            mode = switch.turned(mode, value)
        return mode


class Values(tuple[Any, ...]):
    """The values of several modes, to be restored one by one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self[0])


class Run:
    """One transformation that is running, or has run.

    grad_mode  whether its two levels record, its own and that of Tensors created inside it
    inner      whether the latter does: off during an ordinary backward pass over such Tensors,
               which must not keep the transformation itself from seeing what the pass computes
    outer      the transformation in which it was begun
    inputs     the nodes of the Tensors that it differentiates by, which are leaves, but none of the
               user's
    randomness what vmap was told about random numbers; None: it is no vmap
    elements   the Elements of its levels, by dtype, level, and whether values are layers; empty
               once it has finished
    deep       those of its levels at which a value has been a layer itself
    leaves     how many leaves have been made at its levels
    pure       whether it may leave nothing in Tensors from outside: their backward() raises
    rebinds    whether `y += v` makes a new array of those of its levels, and binds y to it; else it
               writes into y
    own_level, tensor_level, dual_level   the number of its own level, of that of Tensors created
    inside it, and of that of forward-mode duals
    """

    __slots__ = (
        "deep",
        "dual_level",
        "elements",
        "finished",
        "grad_mode",
        "inner",
        "inputs",
        "leaves",
        "name",
        "outer",
        "own_level",
        "pure",
        "randomness",
        "rebinds",
        "tensor_level",
    )

    def __init__(self, name: str, mode: Switch | None = None) -> None:
        self.name = name
        self.outer = _running.get()
        self.own_level = 3 * next(_numbers)
        self.tensor_level, self.dual_level = self.own_level + 1, self.own_level + 2
        self.grad_mode = Switch() if mode is None else mode
        self.inner = Switch()
        self.finished = False
        self.inputs: list[Any] = []
        self.randomness: str | None = None
        self.elements: dict[Any, Any] = {}
        self.deep: set[int] = set()
        self.leaves = 0
        self.rebinds = self.pure = False

    def finish(self) -> None:
        """Note that it is over.

        Its Elements, which refer to it, are forgotten, so that nothing is left for the garbage
        collector.
        """
        self.finished = True
        self.elements.clear()

    def noted(self, what: str) -> None:
        """Something happens inside that runs besides operations."""

    def records(self, level: int) -> bool:
        """Whether a level of this transformation records now."""
        mode = gate.get()
        return mode is True or self.records_in(mode, level)

    def records_in(self, mode: Mode, level: int) -> bool:
        """Whether a level of this transformation records in that mode."""
        off = mode.off
        return not off or (
            self.grad_mode not in off and (level == self.own_level or self.inner not in off)
        )

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Return `function(*args)`, called inside this transformation, which has finished then,
        however that ends.
        """
        before = undo()
        try:
            _running.set(self)
            return function(*args)
        finally:
            # here and not by `finish`: an interrupt may come where a function of Python begins
            self.finished = True
            settle(before)
            self.elements.clear()


_numbers = count(1)
_running: ContextVar[Run | None] = ContextVar("multigrad.transformation", default=None)
running = _running.get
"""The innermost running transformation, or None."""


def own_switch() -> Switch:
    """What users switch: the grad mode of the innermost running transformation, or of the base
    level.
    """
    run = _running.get()
    return BASE if run is None else run.grad_mode


state: list[ContextVar[Any]] = [_running, gate]
"""What the engine sets around code that it calls, in each thread and asyncio task: the
transformation, the gate, the pass.
"""


def restored(variable: ContextVar[T]) -> ContextVar[T]:
    """Have `settle` restore a context variable as well. Returns it."""
    state.append(variable)
    return variable


def undo() -> Iterator[object]:
    """What `settle` needs to give all of `state` the values of now.

    Taken before a `try` that sets some of it, and settled in its `finally`.

    An interrupt (Ctrl-C) is raised between two steps of Python, such as the first step of a
    function written in Python, but inside no call of C. So nothing is set before the `try`, and all
    is restored by one call. That also restores what an interrupt kept a context manager further in
    from restoring.
    """
    return map(ContextVar.set, state, list(map(ContextVar.get, state)))


settle: Callable[[Iterator[object]], None] = deque[object](maxlen=0).extend
"""Restore what `undo` noted: a call of C."""

dual_levels: ContextVar[tuple[Run, ...]] = ContextVar("multigrad.dual_levels", default=())
"""The levels of forward_ad that were entered and not left, in this thread or asyncio task."""


def enter_duals(runs: tuple[Run, ...]) -> None:
    """Have these be the levels of forward_ad that are entered."""
    dual_levels.set(runs)


def boundary() -> int:
    """A level above those of all that has begun, and below those of all that will."""
    return 3 * next(_numbers)


_revived: dict[Run, int] = {}
_reviving = threading.Lock()


def alive() -> list[Run]:
    """The transformations that are running here, and the levels of forward_ad."""
    found = list(dual_levels.get())
    run = _running.get()
    while run is not None:
        found.append(run)
        run = run.outer
    return found


def leaves_effect(what: str) -> None:
    """Something is about to be left in a Tensor of the base level.

    Raises where a function runs that may do no such thing, as it is run once only.
    """
    if any(run.pure for run in alive()):
        raise GradientError(
            f"{what} of a Tensor that is no argument of a compiled function: it would happen "
            "while the function is recorded, and not when its program runs. Pass the Tensor as "
            "an argument, and return what is computed"
        )


def revived(runs: Iterable[Run], function: Callable[[], T]) -> T:
    """Call `function` while what belongs to these transformations means what it did when they ran,
    though they have finished.
    """
    again: list[Run] = []
    try:
        with _reviving:
            for run in dict.fromkeys(runs):
                if run.finished or run in _revived:
                    again.append(run)
                    _revived[run] = _revived.get(run, 0) + 1
                    run.finished = False
        return function()
    finally:
        with _reviving:
            for run in again:
                _revived[run] -= 1
                if not _revived[run]:
                    del _revived[run]
                    run.finished = True
                    run.elements.clear()


class Guest(Run):
    """The user's part of a pass: a level of its own, above all others, so that an array that it
    makes can take any value.

    Its grad mode is that of something else.
    """

    __slots__ = ()

    def records_in(self, mode: Mode, level: int) -> bool:
        return bool(self.grad_mode.within(mode))


def as_guest(name: str, mode: Switch, function: Callable[..., T], *args: Any) -> T:
    """Call code of the user's that gets arrays of the level of `mode`.

    What it switches is that level and the innermost one, or enable_grad in it would do nothing for
    these arrays.
    """
    innermost = own_switch()
    if innermost is mode or (type(innermost) is Several and mode in innermost):
        return function(*args)
    return Guest(name, Several((mode, innermost))).call(function, *args)


class outside:
    """Run a rule: constants that it makes belong to no transformation, and so below whatever it
    computes with.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _running.set(None)

    def __exit__(self, *_: object) -> None:
        _running.reset(self._token)


go_outside, come_back = _running.set, _running.reset
"""The same in straight code: `token = go_outside(None)`, and in a `finally` `come_back(token)`."""
