"""checkpoint: less memory for more time.

What the backward pass needs is computed again instead of being kept.

The hooks for saved arrays put a number in the place of each array that the function's operations
save. When a pass asks for the first of them, the function runs once more, on its arguments as they
were, and the arrays that come by are handed out by their numbers. The nodes, and so the histories,
are those of the first run at every level; of the second only raw arrays are taken. So passes may be
recorded, and transformations may be inside and outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary, ref

from .. import observe, tree
from ..backward import run as backward
from ..core import grad_mode, level
from ..core.element import is_array
from ..core.graph import QUIET, Node, modified, tick
from ..core.level import Layer, Run
from ..core.nested import NestedLayer, put_together, taken_apart
from ..core.tensor import Tensor, element_of, wrap
from ..errors import GradientError
from ..memory import old_values, saved
from ..tracebacks import entry, fold
from .reverse import Function
from .variables import P, R

Policy = Callable[[str], bool] | Collection[str] | None


@entry
def checkpoint(function: Callable[P, R], *, policy: Policy = None) -> Callable[P, R]:
    """Return a function that computes `function`, and keeps its arguments for the backward pass
    instead of what its operations save.

    function  takes arrays, Tensors or nested structures of them, and anything else, and may use
              others from outside
    policy    says for the name of an operation ("matmul", or that of an autograd.Function) whether
              to keep what it saves; or the names of those that do

    When a pass first needs what was not kept, `function` runs again, as far as that takes, in the
    grad mode and the transformations that it ran in. Each pass does so once, and gives up each
    array when it was used. What it computes must not change, nor must it write to its arguments:
    GradientError is raised where an argument, or a Tensor from outside that a recorded operation
    uses, constant or not, was modified in place since, and where the operations that save
    something, their number, or the shapes and dtypes of what they save differ from those of the
    first run. Random numbers are for `function` to draw as it did before; raw arrays, and constants
    of which it computes nothing but other constants, for the user to leave alone.

    Checkpoints nest: the outer one does not keep the arguments of the inner one. With the n steps
    of a program in segments of sqrt(n), each a checkpoint, memory grows as sqrt(n). What a recorded
    pass saves itself, and what a Function keeps in attributes of its ctx, is kept. Where nothing is
    recorded, `function` is called and nothing else happens.

    A policy says True: the operation's node saves what its derivative takes (that of matmul the
    operands), as it does without checkpoint. That no longer asks for a second run, but does not
    shorten one: it runs every operation up to the last that saves what is asked for. What the
    policy of a checkpoint inside of another one keeps is for the other one to decide on.

    On small arrays a call costs as much as about thirty recorded operations with their derivatives,
    and each operation of `function` about five times what it costs without.

    As torch.utils.checkpoint.checkpoint(use_reentrant=False) and jax.checkpoint, whose policies
    choose results instead.
    """
    if not callable(function):
        raise TypeError(
            f"checkpoint: expected a function, not {type(function).__name__}; call it as "
            "checkpoint(function)(*args)"
        )
    if isinstance(policy, str):
        raise TypeError(
            "checkpoint: policy must be a function of a name or a collection of names, not the "
            f"str {policy!r}; pass ({policy!r},)"
        )
    if policy is not None and not callable(policy) and not isinstance(policy, Collection):
        raise TypeError(
            "checkpoint: policy must be a function of a name or a collection of names, not "
            f"{type(policy).__name__}"
        )
    keeps: Callable[[str], bool] = (
        policy if callable(policy) else frozenset(policy or ()).__contains__
    )

    @wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            if level.running() is None and not grad_mode.recording():
                return function(*args, **kwargs)
            return _Call(function, args, kwargs, keeps).first(args, kwargs)
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    return checkpointed


_new: Any = object.__new__

_ARGUMENT = "the argument of a checkpoint"
"""The name of what saves the arguments of a checkpoint inside of another one."""


Form = tuple[str, Any, tuple[int, ...]]
"""What an array is like, for a message: its library, dtype and shape."""


class _Enough(BaseException):
    """Ends the second run: all that was asked for is there."""


class _Place(saved.Packed):
    """What a node keeps in the place of an array: which of those that the call saved it was."""

    __slots__ = ("__weakref__", "call", "number")
    call: _Call
    number: int

    def sources(self) -> Iterator[tuple[Any, bool]]:
        for x in tree.leaves(self.call.given):
            yield from x.sources()

    def unpack(self) -> Any:
        return self.call.fetch(self.number)

    def again(self, value: Any) -> saved.Packed:
        return saved.packed(self.call.take(self.call.saves[self.number][0]), wrap(value))


class _Taken(saved.Packed):
    """What a node of a second run keeps in the place of an array: that array, since the function
    may want it.
    """

    __slots__ = ("name", "second", "value")

    def __init__(self, second: _Second, name: str, value: Any) -> None:
        self.second = second
        self.name = name
        self.value = value

    def unpack(self) -> Any:
        return self.value

    def again(self, value: Any) -> saved.Packed:
        return saved.packed(self.second.take(self.name), wrap(value))


class _Argument:
    """An argument as it was, without its history; or what is no array, as it is."""

    __slots__ = ("__weakref__", "arrays", "cells", "form", "library", "shell", "value")

    def __init__(self, x: Any) -> None:
        self.value = None
        self.arrays: list[Any] | None = None
        if not is_array(x):
            self.value = x
            return
        if isinstance(x, Layer):
            x._check()
        arrays: list[Any] = []
        cells: list[list[int]] = []
        self.shell: NestedLayer | None = taken_apart(x, arrays, cells)
        if self.shell is not None:
            self.shell.forget()
            cells.append(x._cell)
        self.cells = tuple(cells)
        self.form = _form(x)
        self.library = element_of(x).library
        take = saved.in_force(_ARGUMENT, 0)
        self.arrays = arrays if take is None else [take(wrap(a)) for a in arrays]
        if take is None:
            old_values.noted(self)

    def keep_old(self, cell: list[int], copied: old_values.Copy) -> None:
        """Keep copies of the arrays, whose memory is about to be written."""
        if self.arrays is not None and any(c is cell for c in self.cells):
            self.arrays = [copied(a) for a in self.arrays]
            self.cells = tuple(c for c in self.cells if c is not cell)

    def sources(self) -> Iterator[tuple[Any, bool]]:
        """Its raw arrays, and whether each has a history; those of the checkpoint around, which
        keeps its own arguments in their place.
        """
        for a in self.arrays or ():
            if not isinstance(a, saved.Packed):
                yield a, self.shell is not None and self.shell.recorded
                continue
            for x in a.data:
                yield from x.sources() if isinstance(x, _Place) else ((x, True),)

    def again(self, start: int) -> Any:
        """The argument, with leaves for the Tensors that require grad.

        Raises if it was modified since `start`.
        """
        if self.arrays is None:
            return self.value
        for cell in self.cells:
            _check(cell, start, self.form, "is an argument of a checkpoint")
        arrays = [a.unpack() if isinstance(a, saved.Packed) else a for a in self.arrays]
        afresh = self.library.backend.kernel("fresh")
        return put_together(
            self.shell, iter([afresh(self.library.xp, a) for a in arrays]), afresh=True
        )

    def runs(self) -> Iterator[Run]:
        if self.arrays is not None and self.shell is not None:
            yield from self.shell.runs()


class _Call(saved.Keeper):
    """One call of a checkpointed function.

    given    its arguments
    context  what was in force: grad modes, running transformations, and whatever else a library
             keeps in context variables
    runs     these transformations
    exchanging  the observers by which a loop around the call exchanges what its body captures
    above    the level above theirs: nodes of those that begin inside the function save as ever,
             since they end inside it
    saves    by number, what was saved: the operation, shape and dtype
    places   by number, what nodes have in the place of it, known weakly: what no node asks for any
             more is not computed again
    used     by identity, the version cells of Tensors that may be from outside, each with the time
             of the first use; after the first run, of those that it wrote to after it had used them
    finish      when the first run ended
    latest   by number, what the last operation saved: one in place may ask for it at once. None
             after the first run
    """

    __slots__ = (
        "__weakref__",
        "above",
        "context",
        "exchanging",
        "finish",
        "function",
        "given",
        "keeps",
        "latest",
        "places",
        "runs",
        "saves",
        "start",
        "used",
    )

    def __init__(
        self,
        function: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        keeps: Callable[[str], bool],
    ) -> None:
        self.function = function
        self.keeps = keeps
        self.given = tree.replaced(_Argument, [list(args), kwargs])
        self.runs = [*level.alive(), *(run for x in tree.leaves(self.given) for run in x.runs())]
        self.above = level.boundary()
        self.exchanging = tuple(o for o in observe.watching() if o.exchange is not None)
        self.context = copy_context()
        self.context.run(_forget)
        self.saves: list[tuple[str, tuple[int, ...], Any]] = []
        self.places: list[ref[_Place]] = []
        self.used: dict[int, tuple[list[int], int]] = {}
        self.latest: dict[int, Any] | None = {}
        self.start = self.finish = tick()

    def first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, and keep count of what is saved."""
        try:
            return saved.under(self, self.function, *args, **kwargs)
        finally:
            self.latest = None
            self.used = {
                at: (cell, since)
                for at, (cell, since) in self.used.items()
                if cell and cell[-1] > since
            }
            self.finish = tick()

    def drops(self, name: str, at: int) -> bool:
        """Whether what this operation saves is not kept."""
        return at < self.above and (name is _ARGUMENT or not self.keeps(name))

    def look(self, operands: Sequence[Any]) -> None:
        used, start = self.used, self.start
        for x in operands:
            if type(x) is not Tensor or (node := x._node) is None or node.seq < start:
                for y in _older((x,), start):
                    if id(y._cell) not in used:
                        used[id(y._cell)] = y._cell, tick()

    def wants(self, name: str, level: int) -> bool:
        if not self.drops(name, level):
            return False
        self.latest = {}
        return True

    def take(self, name: str) -> saved.Take:
        return lambda t: self._put_away(name, t._array)

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> saved.Packed:
        if isinstance(value, Layer):
            return super().keep(node, value, source, of, result)
        return self._put_away(node.rule.op.name, value)

    def _put_away(self, name: str, value: Any) -> _Place:
        place: _Place = _new(_Place)
        place.call = self
        place.number = number = len(self.places)
        if self.latest is not None:
            self.latest[number] = value
        self.places.append(ref(place))
        self.saves.append((name, value.shape, value.dtype))
        return place

    def fetch(self, number: int) -> Any:
        """The array of this number, computed again if it is not there."""
        if self.latest is not None and number in self.latest:
            return self.latest[number]
        p = backward.current.get()
        if p is None:  # somebody looks at what a node saved
            return self._again({number})[number]
        if not hasattr(p, "found"):
            p.found = WeakKeyDictionary()
        found = p.found.setdefault(self, {})
        if number not in found:
            found.update(
                self._again({i for i, place in enumerate(self.places) if place() is not None})
            )
        return found.pop(number)

    def _again(self, wanted: set[int]) -> dict[int, Any]:
        """Run the function again for the arrays of these numbers."""

        def again() -> dict[int, Any]:
            args, kwargs = tree.replaced(lambda x: x.again(self.start), self.given)
            second = _Second(self, wanted)
            self.context.copy().run(second.run, args, kwargs)
            return second.found

        return level.revived(self.runs, again)


def _older(values: Sequence[Any], start: int) -> Iterator[Layer]:
    """Those operands whose histories, if they have any, are older than `start`: all that are from
    outside, and constants made inside.
    """
    for x in values:
        if isinstance(x, Layer):
            node = getattr(x, "_node", None)
            if node is None or node.seq < start:
                yield x
        elif type(x) is tuple or type(x) is list:  # a list of arrays, or an indexing key
            yield from _older(x, start)


def _forget() -> None:
    """Within the context of a call: the pass in which it was made, the hooks and who observed it,
    are not for its second run.
    """
    backward.forget_pass()
    observe.put(())


class _Second(saved.Keeper):
    """A second run of a function, for the sake of the arrays of the numbers in `wanted`.

    Its own graph is of no use.

    It is part of what asks for these arrays: who observes that, observes the run.
    """

    def __init__(self, call: _Call, wanted: set[int]) -> None:
        self.call = call
        asking = (
            o for o in observe.watching() if not isinstance(o, saved.Keeper) and o.exchange is None
        )
        self.observers = (*call.exchanging, *asking)
        self.place = observe.here()
        self.wanted = wanted
        self.last = max(wanted)
        self.count = 0
        self.found: dict[int, Any] = {}
        self.cells: list[tuple[list[int], int, int]] = []
        self.refused: GradientError | None = None
        self.start = tick()

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        observe.put(self.observers, self.place)
        with suppress(_Enough):
            saved.under(self, self.call.function, *args, **kwargs)
        if self.refused is not None:
            raise self.refused
        if self.count <= self.last:
            raise GradientError(
                "checkpoint: a different number of arrays was saved when the function ran "
                f"again: {self.count}, of {len(self.call.saves)} in its first run. {_CONSTANT}"
            )
        for cell, since, number in self.cells:
            if cell and cell[-1] > since and element_of(self.found[number]).library.mutable:
                _check(cell, since, _form(self.found[number]), "is saved in a checkpoint")

    def look(self, operands: Sequence[Any]) -> None:
        for x in operands:
            if type(x) is not Tensor or x._cell:
                for y in _older((x,), self.start):
                    if y._cell and self.refused is None:
                        self._refuse(y)

    def wants(self, name: str, level: int) -> bool:
        return self.call.drops(name, level)

    def take(self, name: str) -> saved.Take:
        return lambda t: self._take(name, t._array, t._cell)

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> saved.Packed:
        if isinstance(value, Layer):
            return super().keep(node, value, source, of, result)
        return self._take(
            node.rule.op.name,
            value,
            of._cell if isinstance(of, Layer) and of._array is value else None,
        )

    def _refuse(self, x: Layer) -> None:
        """End the run if `x`, which was written, is from outside, and that was since the first run
        used it. What is made inside was made in this run, so what was written before it is from
        outside.
        """
        cell = x._cell
        since = self.call.used.get(id(cell), (cell, self.call.finish))[1]
        if cell[-1] > since and next(time for time in cell if time != QUIET) < self.start:
            self.refused = modified(
                _described(_form(x), "is used in a checkpoint"), cell, since, remedy=""
            )
            raise _Enough

    def _take(self, name: str, value: Any, cell: list[int] | None) -> _Taken:
        number, self.count = self.count, self.count + 1
        if number > self.last:  # somebody has caught what was to end this
            raise _Enough
        found, expected = (name, value.shape, value.dtype), self.call.saves[number]
        if found != expected:
            raise GradientError(
                "checkpoint: what the function saved when it ran again differs from its first "
                f"run: array {number} was {_shown(*expected)}, and is now {_shown(*found)}. "
                f"{_CONSTANT}"
            )
        if number in self.wanted:
            self.found[number] = value
            if cell is not None:
                self.cells.append((cell, tick(), number))
        if number == self.last:
            raise _Enough
        return _Taken(self, name, value)


_CONSTANT = (
    "It must do the same each time: it must not depend on anything that changes between the "
    "forward and the backward pass, nor on random numbers that it does not draw in the same way "
    "again."
)


def _shown(name: str, shape: tuple[int, ...], dtype: Any) -> str:
    return f"of dtype {dtype} and shape {list(shape)}, saved by {name}"


def _form(x: Any) -> Form:
    return element_of(x).library.name, x.dtype, tuple(x.shape)


def _check(cell: list[int], since: int, form: Form, what: str) -> None:
    """Raise if the array of this version cell was modified in place."""
    if cell and cell[-1] > since:
        raise modified(_described(form, what), cell, since, remedy="")


def _described(form: Form, what: str) -> str:
    return f"[{form[0]} {form[1]} {list(form[2])}], which {what},"
