"""Levels keep nested transformations apart.

Each running transformation has a number k from an increasing counter. Its layer has level 3k,
Tensors created inside it have level 3k + 1, and forward-mode duals 3k + 2. Outside of
transformations k = 0, so an ordinary Tensor has level 1. An operation on arrays of several levels
is handled by the highest level; operands of lower levels are constants to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeVar

from .. import locks
from ..errors import GradientError
from ..observe import NONE, NOTHING, Mode, gate, made, put_back

T = TypeVar("T")


class Layer:
    """Base of the array objects that wrap another array: Tensor, and the layers of transformations.

    `_level` orders them. `_array` is the next inner value: a raw array or another layer. The method
    `_apply(op, values, top)` of a class carries out operations on its layers. `_cell` is the
    version cell, with the times of in-place writes.
    """

    __slots__ = ()
    _quiet = False  # whether writes through it do not count as versions, as with `x.data`
    _view: Any = None  # of a view, its base and how it was made (aliasing.ViewSpec)
    # whether it holds several arrays at once, as a batch does, so that it has no single value
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
        """Apply a user-defined derivative (autograd.Function, custom_vjp, custom_jvp) to `values`.

        application  the object to apply. `application.name` is the name of the user's class or
                     function. `application.through(values, own, wrap)` applies it to the next inner
                     values, where `own` tells which of `values` are layers of this level; `wrap`
                     makes a layer of this level from each array that it returns. Return its result.
        top          one of the highest level among `values`, a layer of this class
        """
        kind = type(top).__name__
        raise NotImplementedError(
            f"multigrad cannot apply an autograd.Function under {kind} yet: let the class "
            f"{kind} define the static method _apply_custom(application, values, top), as "
            "multigrad.core.level.Layer describes it"
        )

    def _whole(self) -> Any:
        """What `asarray` makes of it: itself, unless it stands for a scalar of a library."""
        return self

    def _check(self) -> None:
        """Bring a view up to date if its memory was written since.

        Raises if the array can no longer be used.
        """
        raise NotImplementedError

    def _memory_order(self) -> str | None:
        """How the last two axes lie in memory, as the kernel `order` says it; None if unknown."""
        return None

    def _moves(self) -> bool:
        """Whether this layer itself is being differentiated."""
        return False

    def _frozen(self) -> Any:
        """The value to wrap in another layer: itself, or a new layer of the same value.

        A new layer is needed if writing to this one exchanges its value.
        """
        return self


class Standing:
    """Base of objects that take the place of Python scalars among the arguments of an operation.

    The numbers of `func.compile` are such objects.
    """

    __slots__ = ()

    def _plain(self) -> Any:
        """The scalar itself, for use as a setting such as an axis."""
        raise NotImplementedError

    def _as_operand(self, op: Any, others: list[Any]) -> Any:
        """A layer, for use as an operand beside `others`."""
        raise NotImplementedError


def innermost(x: Any) -> Any:
    """The raw array inside all layers of a nested value."""
    while isinstance(x, Layer):
        x = x._array
    return x


def highest(values: Iterable[Any]) -> Any:
    """The layer of the highest level among values, lists of arrays and indexing keys, or None.

    An object that replaces a scalar (`Standing`) is returned at once, to be made an operand first.
    """
    top: Layer | None = None
    most = -1
    for x in values:
        if isinstance(x, Layer):
            level = x._level
            if level > most:
                top, most = x, level
        elif type(x) is tuple or type(x) is list:
            for y in x:
                if isinstance(y, Layer):
                    if y._level > most:
                        top, most = y, y._level
                elif isinstance(y, Standing):
                    return y
        elif isinstance(x, Standing):
            return x
    return top


class Switch:
    """A grad mode of one transformation: on, unless it was switched off.

    The gate holds its state, so it is local to the thread and to the asyncio task.
    """

    __slots__ = ()

    def get(self) -> Any:
        return self.within(gate.get())

    def set(self, on: Any) -> None:
        gate.set(self.changed(gate.get(), on))

    def turn(self, on: Any) -> None:
        """Switch the mode on or off."""
        gate.set(self.turned(gate.get(), on))

    def within(self, mode: Any) -> Any:
        """The value of the mode in that state of the gate."""
        return mode is True or self not in mode.off

    def changed(self, mode: Any, on: Any) -> Any:
        """The state of the gate in which the mode is `on`, and all else as in `mode`."""
        off = NONE if mode is True else mode.off
        if bool(on) is not (self in off):
            return mode
        off = off - {self} if on else off | {self}
        return made(True, off, NOTHING) if mode is True else made(mode.base, off, mode.watch)

    def turned(self, mode: Any, on: Any) -> Any:
        """The state of the gate after the mode is switched.

        Both False and None are off: switching off a mode that is off changes nothing.
        """
        return self.changed(mode, on) if on or self.within(mode) else mode


class BaseSwitch(Switch):
    """The grad mode of the base level.

    None inside the forward of a Function: operations are not recorded, but computed values are
    marked.
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


def mark_at_the_base() -> None:
    """Let operations of the base level mark what they compute, if a forward has switched it off."""
    if BASE.get() is False:
        BASE.set(None)


class Several(tuple[Switch, ...], Switch):
    """Grad modes of several levels that users switch as one, which is on if the first one is."""

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
    """The values of several modes, for restoring each of them."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self[0])


class Transformation:
    """One transformation that is running, or has run.

    grad_mode  whether its two levels record: its own, and that of Tensors created inside it
    inner      whether the latter records. It is off during an ordinary backward pass over such
               Tensors, while the transformation itself still sees the operations of the pass
    outer      the transformation in which this one was begun
    inputs     the nodes of the Tensors that it differentiates with respect to. They are leaves, but
               not the user's
    randomness the `randomness` argument of vmap; None for other transformations
    elements   the Elements of its levels, by dtype, level, and whether values are layers; empty
               once it has finished
    deep       the levels of this run at which a value has been a layer
    leaves     the number of leaves made at its levels
    outcome    handles a result of another transformation, called inside of it on layers; or None
    pure       whether it must not change Tensors from outside: their backward() raises
    rebinds    whether `y += v` binds y to a new array, at its levels; otherwise it writes into y
    own_level, tensor_level, dual_level   the numbers of its own level, of the level of Tensors
    created inside it, and of the level of forward-mode duals
    """

    outcome: Callable[[Any], Any] | None = None

    def __init__(self, name: str, mode: Switch | None = None) -> None:
        self.name = name
        self.outer = _running.get()
        self.own_level = 3 * next(_numbers)
        self.tensor_level, self.dual_level = self.own_level + 1, self.own_level + 2
        self.grad_mode = Switch() if mode is None else mode
        self.inner = Switch()
        self.finished = self.pure = self.rebinds = False
        self.inputs: list[Any] = []
        self.randomness: str | None = None
        self.elements: dict[Any, Any] = {}
        self.deep: set[int] = set()
        self.leaves = 0

    def finish(self) -> None:
        """Mark it as finished.

        Its Elements, which refer to it, are dropped, so that no reference cycle remains.
        """
        self.finished = True
        self.elements.clear()

    def noted(self, what: str) -> None:
        """Handle a call inside of it that is not an operation."""

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
        """Return `function(*args)`, called inside this transformation, which then finishes.

        It also finishes if the function raises.
        """
        before = undo()
        try:
            _running.set(self)
            return function(*args)
        finally:
            # not by `finish`: an interrupt may come where a Python function begins
            self.finished = True
            try:
                settle(before[0])
            except MemoryError:
                settle_again(before)
            self.elements.clear()


_numbers = count(1)
_running: ContextVar[Transformation | None] = ContextVar("multigrad.transformation", default=None)
running = _running.get
"""The innermost running transformation, or None."""


def own_switch() -> Switch:
    """The grad mode that users switch: of the innermost transformation, or the base level."""
    run = _running.get()
    return BASE if run is None else run.grad_mode


state: list[ContextVar[Any]] = [_running, gate]
"""The context variables that the engine sets around code that it calls.

They hold the transformation, the gate and the pass of each thread and asyncio task.
"""


def restored(variable: ContextVar[T]) -> ContextVar[T]:
    """Add a context variable to those that `settle` restores. Returns it."""
    state.append(variable)
    return variable


Undo = tuple[Iterator[object], list[Any]]


def undo() -> Undo:
    """The present values of all of `state`, for `settle`, and as a list for `settle_again`.

    Call it before a `try` that sets some of them, and call `settle` in the `finally`.

    An interrupt (Ctrl-C) is raised between two steps of Python, such as the first step of a Python
    function, but never inside a call of C. So all sets are inside the `try`, and one call of C
    restores everything. That call also restores variables whose inner context managers were
    interrupted.
    """
    values = list(map(ContextVar.get, state))
    return map(ContextVar.set, state, values), values


settle: Callable[[Iterator[object]], None] = deque[object](maxlen=0).extend
"""Restore the values that `undo` returned, by one call of C."""


def settle_again(before: Undo) -> None:
    """Restore them where that call has failed, for lack of memory."""
    for variable, value in zip(state, before[1], strict=True):
        put_back(variable, value)


dual_levels: ContextVar[tuple[Transformation, ...]] = ContextVar(
    "multigrad.dual_levels", default=()
)
"""The levels of forward_ad that are entered in this thread or asyncio task."""


enter_duals: Callable[[tuple[Transformation, ...]], object] = dual_levels.set
"""Set the levels of forward_ad that are entered, by one call of C: see `undo`."""


def boundary() -> int:
    """A level above those of everything begun so far, and below those of everything begun later."""
    return 3 * next(_numbers)


_revived: dict[Transformation, int] = {}
_reviving = locks.new_lock()


def alive() -> list[Transformation]:
    """The transformations that are running here, and the entered levels of forward_ad."""
    runs = list(dual_levels.get())
    run = _running.get()
    while run is not None:
        runs.append(run)
        run = run.outer
    return runs


def leaves_effect(what: str) -> None:
    """Check that a change to a Tensor of the base level is allowed here.

    Raises inside a function that must be pure because it is run only once.
    """
    if any(run.pure for run in alive()):
        raise GradientError(
            f"{what} of a Tensor that is not an argument of a compiled function: it would happen "
            "while the function is recorded, and not when its program runs. Pass the Tensor as "
            "an argument, and return what is computed"
        )


def revived(runs: Iterable[Transformation], function: Callable[[], T]) -> T:
    """Call `function` as if these finished transformations were still running.

    Values that belong to them are valid meanwhile.
    """
    again: list[Transformation | None] = []
    try:
        with _reviving:
            chosen = [run for run in dict.fromkeys(runs) if run.finished or run in _revived]
            again += [None] * len(chosen)
            for i, run in enumerate(chosen):
                times = _revived.get(run, 0) + 1
                # neither an interrupt nor a lack of memory comes between these steps
                _revived[run] = times
                run.finished = False
                again[i] = run
        return function()
    finally:
        try:
            _finish_again(again)
        except BaseException:  # an interrupt, or no memory
            _finish_again(again)
            raise


def _finish_again(revived: list[Transformation | None]) -> None:
    """Finish these transformations, and replace each by None."""
    with _reviving:
        for i, run in enumerate(revived):
            if run is not None:
                remaining = _revived[run] - 1
                if remaining:
                    _revived[run] = remaining
                else:
                    run.elements.clear()
                    del _revived[run]
                    run.finished = True
                revived[i] = None


class Guest(Transformation):
    """The level of user code that a pass calls, above all others.

    So values of any other level can be written into an array that this code makes. Its grad mode is
    the `mode` of another level.
    """

    def records_in(self, mode: Mode, level: int) -> bool:
        return bool(self.grad_mode.within(mode))


def as_guest(name: str, mode: Switch, function: Callable[..., T], *args: Any) -> T:
    """Call user code with arrays of the level of `mode`.

    The code switches the grad modes of that level and of the innermost one together. Otherwise
    enable_grad in it would not affect these arrays.
    """
    innermost = own_switch()
    if innermost is mode or (type(innermost) is Several and mode in innermost):
        return function(*args)
    return Guest(name, Several((mode, innermost))).call(function, *args)


class outside:
    """Run a rule outside of all transformations.

    Constants that the rule makes then have a lower level than the values that it computes with.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _running.set(None)

    def __exit__(self, *_: object) -> None:
        _running.reset(self._token)


go_outside, come_back = _running.set, _running.reset
"""`outside` for generated code: `token = go_outside(None)`, `come_back(token)` in a `finally`."""
