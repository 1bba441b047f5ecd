"""The result of `func.compile`: a function that records programs of another one, and runs them.

A call looks up the programs of its key (see leaves.py) and runs the one that ran last. If a guard
misses, it runs the program that expects the new answer, or records another one. A program that has
run gets a generated function (callers.py), which is tried before a key is made.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from .. import locks, tree
from ..core.level import dual_levels, running
from ..core.tensor import strip
from ..errors import program
from ..observe import gate
from ..program import Missed, Program, Torn
from ..registry import when_replaced
from ..tracebacks import blamed
from . import callers, checks, listing
from .callers import MISSED
from .leaves import Arguments, Statics, raw
from .recording import Aside
from .variants import Entry, Variant, record
from .writes import may_write

_mode, _running, _duals = gate.get, running, dual_levels.get
P = ParamSpec("P")
R = TypeVar("R")
HOT = 4
"""How many programs are tried before a key is made."""
ASKED = {
    "bool": "bool()",
    "int": "int() or as an index",
    "number": "float()",
    "type": "its class",
    "shape": "its shape",
}


class Compiled(Generic[P, R]):
    """A compiled function.

    `programs` are the programs that it has recorded. `source()`, `memory()` and `clear()` concern
    them.
    """

    def __init__(
        self, function: Callable[P, R], statics: tuple[int, ...], most: int, arena: int, check: Any
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._positions = statics
        self._statics = Statics(function, statics) if statics else None
        self._most = most
        self._arena = arena
        self._check = check
        self._name = getattr(function, "__name__", type(function).__name__)
        self._lock = locks.new_lock()
        self._forget()
        _alive.add(self)

    def _forget(self) -> None:
        self._entries: dict[Any, Entry] = {}
        self._warned: set[str] = set()
        self._hot: tuple[callers.Caller, ...] = ()
        self._callers: dict[Variant, callers.Caller] = {}

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle the compiled function by its name, if it is what this name refers to.

        Otherwise its original function is pickled, and the compiled function is made again from it,
        without programs.
        """
        name: str = getattr(self, "__qualname__", "")
        target: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is self:
            return name
        return Compiled, (self._function, self._positions, self._most, self._arena, self._check)

    def __repr__(self) -> str:
        return f"<compiled {self._name}>"

    # The interface for users

    @property
    def programs(self) -> tuple[Program, ...]:
        """The recorded programs, in the order of their keys."""
        return tuple([variant.program for _, variant in self._variants()])

    def source(self) -> str:
        """Return the recorded programs as text.

        For each program it has the arguments, the operations with their lines in the user's code,
        the guards and the writes.
        """
        return "\n".join(
            line for variant in self._variants() for line in listing.lines(self._name, *variant)
        )

    def memory(self) -> int:
        """Return the bytes that programs keep between calls.

        They are constants, and memory for intermediate results.
        """
        return sum(listing.memory(variant) for _, variant in self._variants())

    def _variants(self) -> list[tuple[Entry, Variant]]:
        return [(entry, v) for entry in list(self._entries.values()) for v in entry.variants]

    def clear(self) -> None:
        """Forget all programs.

        The next call records again, with the current values that the function reads besides its
        arguments.
        """
        with self._lock:
            self._forget()

    # Calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            mode = _mode()
            if _running() is not None or _duals():
                return self._function(*args, **kwargs)
            if mode is not True and (mode.watch.observers or mode.off):
                out: R = self._itself(args, kwargs)
                return out
            if mode is True:
                for hot in self._hot:
                    result = hot(args, kwargs)
                    if result is not MISSED:
                        return result  # type: ignore[no-any-return]
            return self._called(args, kwargs, True if mode is True else mode.base)  # type: ignore[no-any-return]
        except Exception as error:
            error = blamed(error, "compile(f)", args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], mode: bool | None) -> Any:
        try:
            arguments = Arguments(args, kwargs, self._statics)
        except Aside:
            return self._itself(args, kwargs)
        key = mode, arguments.key
        entry = self._entries.get(key)
        if entry is None:
            with self._lock:
                if len(self._entries) < self._most:
                    new = Entry(key, arguments.structure, arguments.kinds, arguments.inputs)
                    entry = self._entries.setdefault(key, new)
        if entry is None:
            self._warn_of_keys(arguments)
            return self._itself(args, kwargs)
        if entry.hidden:
            raise checks.HiddenStateError(entry.aside)
        if entry.aside is not None:
            return self._itself(args, kwargs)
        if entry.last is None:
            return self._recorded(entry, arguments)
        return self._run(entry, entry.last, arguments)

    def _itself(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the function itself, with raw arrays for raw arrays, as from a program."""
        result = self._function(*args, **kwargs)
        return result if tree.has_layer((args, kwargs)) else tree.mapped(strip, result)

    def _run(self, entry: Entry, variant: Variant, arguments: Arguments) -> Any:
        """Run a program, and others if guards miss."""
        args, kwargs = arguments.args, arguments.kwargs
        if variant.writes and not may_write(arguments, list(variant.writes)):
            return self._itself(args, kwargs)
        try:
            if self._check is True or not variant.checked:
                result = checks.compared(self._function, self._name, variant, arguments)
                variant.checked = True
            else:
                outs = variant.run(*[raw(arguments.leaves[i]) for i in arguments.inputs])
                result = variant.returned(outs, arguments.leaves)
        except checks.HiddenStateError as error:
            with self._lock:
                entry.aside, entry.hidden = str(error), True
                self._hot = ()
            raise
        except Exception as error:
            return self._after(error, entry, variant, args, kwargs, arguments)
        entry.last = variant
        self._keep_hot(entry, variant, arguments)
        return result

    def _keep_hot(self, entry: Entry, variant: Variant, arguments: Arguments) -> None:
        """Let this program be tried first, before a key is made."""
        if self._check is True or entry.key[0] is not True:
            return
        with self._lock:
            if self._entries.get(entry.key) is entry:
                call = self._callers.get(variant)
                if call is None:
                    # it must not keep this function alive, which keeps it
                    after = weakref.WeakMethod(self._after)
                    call = callers.caller(self._name, after, entry, variant, arguments)
                    self._callers[variant] = call
                self._hot = (call, *[other for other in self._hot if other is not call][: HOT - 1])

    def _after(
        self,
        error: Exception,
        entry: Entry,
        variant: Variant,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: Arguments | None = None,
    ) -> Any:
        """The result of a call whose program raised before it had written anything."""
        if isinstance(error, Torn):
            raise error.error from None
        if not isinstance(error, Missed):
            # the function itself raises the right error, with its own lines, and writes to its
            # arguments as it does without a program
            return self._itself(args, kwargs)
        following = entry.following(variant, error)
        if arguments is None:
            call = None if following is None else self._callers.get(following)
            if call is not None:
                result = call(args, kwargs)
                if result is not MISSED:
                    return result
            arguments = Arguments(args, kwargs, self._statics)
        if following is None:
            return self._recorded(entry, arguments, error)
        return self._run(entry, following, arguments)

    # Recording

    def _recorded(self, entry: Entry, arguments: Arguments, missed: Missed | None = None) -> Any:
        """Record a program while the function runs, and return the result of the function."""
        if missed is not None and len(entry.variants) >= self._most:
            where = missed.guard.line or "one of its lines"
            self._warn(
                where,
                f"{self._name} has {self._most} programs for arguments of this kind, and the "
                f"value that {where} asks for by {ASKED[missed.guard.kind]} is one that none of "
                f"them holds for, {missed.got!r}. For such values it runs without a program "
                "from now on. Compute with the array itself, as with multigrad.where, or pass "
                "a larger max_programs",
            )
            return self._itself(arguments.args, arguments.kwargs)
        try:
            variant, result, reason = record(self._function, arguments)
        except Aside as aside:
            self._put_aside(entry, *aside.args)
            return self._itself(arguments.args, arguments.kwargs)
        if reason is not None:
            self._put_aside(entry, reason)
            return result
        library = variant.library
        kernel = library.backend.kernel("compile")
        variant.run = kernel(library.xp, variant.program, arena=self._arena)
        variant.checked = not self._check
        with self._lock:
            # another thread may have recorded it meanwhile
            if len(entry.variants) < self._most and not any(
                len(variant.guards) == len(other.guards) and variant.begins(other.guards)
                for other in entry.variants
            ):
                entry.variants.append(variant)
                entry.last = variant
        return result

    def _put_aside(self, entry: Entry, why: str | None = None) -> None:
        """Call the function itself from now on, if the reason holds for all such arguments."""
        if why is not None:
            entry.aside = why
            self._warn(
                why, f"{self._name} is not compiled, because {why}; the function itself is called"
            )

    def _warn(self, key: str, text: str) -> None:
        with self._lock:
            if key in self._warned:
                return
            self._warned.add(key)
        warnings.warn(f"compile: {text}", UserWarning, stacklevel=program())

    def _warn_of_keys(self, arguments: Arguments) -> None:
        """Warn that there are too many keys, and name the argument that differs at each call."""
        text = "the structure of the arguments"
        alike = [e for e in list(self._entries.values()) if e.structure == arguments.structure]
        if alike:

            def different(entry: Entry) -> list[int]:
                pairs = zip(entry.kinds, arguments.kinds, strict=True)
                return [i for i, (a, b) in enumerate(pairs) if a.key != b.key]

            nearest = min(reversed(alike), key=lambda entry: len(different(entry)))
            text = "; ".join(
                f"{arguments.name(i)}, which had {nearest.kinds[i]} and has "
                f"{arguments.kinds[i]} now"
                for i in different(nearest)[:3]
            )
            text = text or "the grad mode"
        self._warn(
            "keys",
            f"{self._name} has programs for {self._most} kinds of arguments, and runs without "
            f"one for others from now on. What differs from before is {text}. Pass arrays of "
            "few shapes and few static values, or a larger max_programs",
        )


_alive: weakref.WeakSet[Compiled[Any, Any]] = weakref.WeakSet()
"""All compiled functions."""


def _stale() -> None:
    """Forget all programs, since they contain operations and rules that have been redefined."""
    for compiled in list(_alive):
        compiled.clear()


when_replaced(_stale)
