"""checkpoint: less memory for more time.

The backward pass computes the values that it needs again, instead of keeping them from the forward
pass.

The hooks for saved arrays replace each array that an operation of the function saves by a number.
When a pass unpacks the first of them, the function runs a second time on its original arguments,
and each array that the second run saves is returned for its number. The nodes, and so the
histories, are those of the first run at every level. The second run only provides raw arrays. So
passes may be recorded, and transformations may be inside and outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any
from weakref import WeakKeyDictionary, ref

from .. import observe, tree
from ..core import grad_mode, level
from ..core.aliasing import climb
from ..core.element import Library, is_array
from ..core.graph import changed_after, first_change, modified, tick, written_after
from ..core.level import Layer, Transformation
from ..core.nested import put_together
from ..core.passes import current, enter_pass
from ..core.tensor import Tensor, View, element_of
from ..errors import GradientError
from ..memory import old_values, saved
from ..tracebacks import entry, result_of
from .reverse import Function
from .variables import P, R

Policy = Callable[[str], bool] | Collection[str] | None


@entry
def checkpoint(function: Callable[P, R], *, policy: Policy = None) -> Callable[P, R]:
    """Return a function that computes `function`, and recomputes its values for the backward pass.

    For the backward pass it keeps the arguments of `function` instead of the values that the
    operations save.

    function  takes arrays, Tensors or nested structures of them, and any other objects. It may
              capture arrays
    policy    a function of the name of an operation ("matmul", or the name of an autograd.Function)
              that returns whether to keep the values that the operation saves; or a collection of
              the names for which it would return True

    When a pass first needs a value that was not kept, `function` runs again, in the grad mode and
    the transformations of its first run, up to the last value that the pass needs. Each pass runs
    it at most once, and frees each array after its use.

    Each run of `function` must compute the same, and must not write to its arguments. GradientError
    is raised if an argument was modified in place after the first run, or a captured Tensor that a
    recorded operation uses, even a constant one. It is also raised if the second run differs in the
    number of operations that save a value, in their names, or in the shapes and dtypes of the
    values.

    Two conditions are not checked. `function` must draw the same random numbers again. Captured raw
    arrays must not change, nor constants from which `function` computes only constants.

    Checkpoints nest: the outer one does not keep the arguments of the inner one. If the n steps of
    a program are split into segments of sqrt(n) steps, each a checkpoint, memory grows as sqrt(n).
    The values that a recorded pass saves, and those that a Function keeps in attributes of its ctx,
    are kept. If nothing is recorded, the returned function only calls `function`.

    If the policy returns True, the node of the operation saves the values that its derivative needs
    (for matmul the operands), as without checkpoint. These values do not cause a second run, but
    they do not shorten one: it runs every operation up to the last value that the pass needs. The
    policy of an outer checkpoint decides about the values that the policy of an inner one keeps.

    On small arrays a call costs as much as about thirty recorded operations with their derivatives,
    and each operation of `function` costs about five times as much as without checkpoint.

    Corresponds to torch.utils.checkpoint.checkpoint(use_reentrant=False), and to jax.checkpoint,
    whose policies choose results instead.
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

    @result_of("checkpoint(f)", function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if level.running() is None and not grad_mode.recording():
            return function(*args, **kwargs)
        # a loop around would not know what the second run has in place of captured arrays
        args, kwargs = tree.mapped(observe.passed, (args, kwargs))
        return _Call(function, args, kwargs, keeps).first(args, kwargs)

    return checkpointed


_ARGUMENT = "the argument of a checkpoint"
"""The name of the operation that saves the arguments of a checkpoint inside of another one."""


Form = tuple[Library, Any, tuple[int, ...]]
"""The library, dtype and shape of an array."""


class _Enough(BaseException):
    """Ends the second run, once all wanted arrays are there."""


class _Argument:
    """An array among the arguments in its state at the call, without its history.

    saved  the array, which an enclosing checkpoint may keep
    """

    __slots__ = ("form", "saved")

    def __init__(self, x: Any) -> None:
        if isinstance(x, Layer):
            x._check()
        keeper = saved.in_force(_ARGUMENT, 0)
        cell = x._cell if isinstance(x, Layer) else []
        self.saved = whole = saved.packed_raw(keeper, _ARGUMENT, x, cell)
        if whole.shell is not None:
            whole.shell.forget()
        self.form = _form(x)
        if keeper is None:
            old_values.noted(whole)

    def sources(self) -> Iterator[tuple[Any, bool]]:
        """What is kept of this argument, and whether each array has a history.

        If an enclosing checkpoint has saved an array, the arguments of that checkpoint are given in
        its place.
        """
        recorded = self.saved.shell is not None and self.saved.shell.recorded
        for part in self.saved.parts:
            if part.keeper is None:
                yield part.data, recorded
            else:
                yield from part.keeper.sources(part) or ((part.data, True),)

    def again(self, start: int) -> Any:
        """The argument, with leaves in place of the Tensors that require grad.

        Raises GradientError if it was modified since `start`.
        """
        for cell in self.saved.cells:
            _check(cell, start, self.form, "is an argument of a checkpoint")
        library = self.form[0]
        fresh = library.backend.kernel("fresh")
        return put_together(
            self.saved.shell,
            iter([fresh(library.xp, part.unpack()) for part in self.saved.parts]),
            afresh=True,
        )

    def runs(self) -> list[Transformation]:
        return [] if self.saved.shell is None else self.saved.shell.runs()


class _Call(saved.Keeper):
    """One call of a checkpointed function.

    given       its arguments, with an _Argument for each array; `arrays` has these
    context     the context variables at the call: grad modes, running transformations, and those of
                libraries
    runs        these transformations
    above       the level above theirs. Nodes of transformations that begin inside the function save
                as usual, since these transformations also end inside it
    saves       by number, the operation, shape and dtype of each saved array
    handles     by number, weak references to the handles in nodes, whose `data` is the number. An
                array whose handle is gone is not computed again
    used        by identity, the version cells of Tensors that may be captured, each with the time
                of the first use; after the first run, only those that it wrote to after their first
                use
    finish      when the first run ended
    latest      by number, the arrays that the last operation saved, since an in-place operation may
                need them at once. None after the first run
    """

    def __init__(
        self,
        function: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        keeps: Callable[[str], bool],
    ) -> None:
        self.function = function
        self.keeps = keeps
        self.given = tree.replaced(
            lambda x: _Argument(x) if is_array(x) else x, [list(args), kwargs]
        )
        self.arrays = [x for x in tree.leaves(self.given) if type(x) is _Argument]
        self.runs = [*level.alive(), *(run for x in self.arrays for run in x.runs())]
        self.above = level.boundary()
        self.context = copy_context()
        self.context.run(_forget)
        self.saves: list[tuple[str, tuple[int, ...], Any]] = []
        self.handles: list[ref[saved.Saved]] = []
        self.used: dict[int, tuple[list[int], int]] = {}
        self.latest: dict[int, Any] | None = {}
        self.start = self.finish = tick()

    def first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, and number the arrays that it saves."""
        try:
            return saved.under(self, self.function, *args, **kwargs)
        finally:
            self.latest = None
            self.used = {
                at: (cell, since)
                for at, (cell, since) in self.used.items()
                if changed_after(cell, since)
            }
            self.finish = tick()

    def drops(self, name: str, at: int) -> bool:
        """Whether the values that this operation saves are dropped."""
        return at < self.above and (name is _ARGUMENT or not self.keeps(name))

    def look(self, operands: Sequence[Any]) -> None:
        used = self.used
        for x in _older(operands, self.start):
            if id(x._cell) not in used:
                used[id(x._cell)] = x._cell, tick()

    def wants(self, name: str, level: int) -> bool:
        if not self.drops(name, level):
            return False
        self.latest = {}
        return True

    def pack(self, name: str, value: Any, cell: list[int], t: Tensor | None) -> saved.Saved:
        number = len(self.handles)
        x = saved.Saved(self, name, number, cell)
        if self.latest is not None:
            self.latest[number] = value
        self.handles.append(ref(x))
        self.saves.append((name, value.shape, value.dtype))
        return x

    def sources(self, x: saved.Saved) -> list[tuple[Any, bool]]:
        return [source for argument in self.arrays for source in argument.sources()]

    def unpack(self, x: saved.Saved) -> Any:
        """The array, computed again if necessary."""
        number: int = x.data
        if self.latest is not None and number in self.latest:
            return self.latest[number]
        p = current.get()
        if p is None:  # a saved value is read outside of a pass
            return self._again({number})[number]
        if not hasattr(p, "found"):
            p.found = WeakKeyDictionary()
        arrays = p.found.setdefault(self, {})
        if number not in arrays:
            arrays.update(
                self._again({i for i, handle in enumerate(self.handles) if handle() is not None})
            )
        return arrays.pop(number)

    def _again(self, wanted: set[int]) -> dict[int, Any]:
        """Run the function again for the arrays of these numbers."""

        def again() -> dict[int, Any]:
            args, kwargs = tree.replaced(
                lambda x: x.again(self.start) if type(x) is _Argument else x, self.given
            )
            second = _Second(self, wanted)
            self.context.copy().run(second.run, args, kwargs)
            return second.arrays

        return level.revived(self.runs, again)


def _older(values: Sequence[Any], start: int) -> Iterator[Layer]:
    """The operands without a history that began after `start`.

    These are all captured layers, and constants made inside.
    """
    for x in values:
        if isinstance(x, Layer):
            node = getattr(x, "_node", None)
            # a captured view gets a new node at its use after a write, but its memory is older
            if node is not None and node.seq >= start and isinstance(x, View):
                node = climb(x)[-1]._node
            if node is None or node.seq < start:
                yield x
        elif type(x) is tuple or type(x) is list:  # a list of arrays or an indexing key
            yield from _older(x, start)


def _forget() -> None:
    """Remove the pass, the hooks and the observers of the call from its copied context."""
    enter_pass(None)
    observe.put(())


class _Second(saved.Keeper):
    """A second run of a function, which computes the arrays of the numbers in `wanted`.

    Its graph is not used. The second run is part of the pass that needs the arrays, so observers of
    that pass observe it.
    """

    def __init__(self, call: _Call, wanted: set[int]) -> None:
        self.call = call
        self.observers = tuple(o for o in observe.watching() if not isinstance(o, saved.Keeper))
        self.place = observe.here()
        self.wanted = wanted
        self.last = max(wanted)
        self.count = 0
        self.arrays: dict[int, Any] = {}
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
                "checkpoint: the function saved a different number of arrays when it ran "
                f"again: {self.count}, of {len(self.call.saves)} in its first run. {_CONSTANT}"
            )
        for cell, since, number in self.cells:
            if written_after(cell, since) and element_of(self.arrays[number]).library.mutable:
                _check(cell, since, _form(self.arrays[number]), "is saved in a checkpoint")

    def look(self, operands: Sequence[Any]) -> None:
        for x in _older(operands, self.start):
            if x._cell and self.refused is None:
                self._refuse(x)

    def wants(self, name: str, level: int) -> bool:
        return self.call.drops(name, level)

    def _refuse(self, x: Layer) -> None:
        """End the run if `x` is captured and was written after the first run had used it.

        Arrays made inside were made in this run, so a write that is older than this run shows that
        `x` is captured.
        """
        cell = x._cell
        since = self.call.used.get(id(cell), (cell, self.call.finish))[1]
        if changed_after(cell, since) and first_change(cell) < self.start:
            self.refused = modified(
                _described(_form(x), "is used in a checkpoint"), cell, since, remedy=""
            )
            raise _Enough

    def pack(self, name: str, value: Any, cell: list[int], t: Tensor | None) -> saved.Saved:
        number, self.count = self.count, self.count + 1
        if number > self.last:  # the function has caught _Enough
            raise _Enough
        got, expected = (name, value.shape, value.dtype), self.call.saves[number]
        if got != expected:
            raise GradientError(
                "checkpoint: the arrays that the function saved when it ran again differ from its "
                f"first run: array {number} was {_shown(*expected)}, and is now {_shown(*got)}. "
                f"{_CONSTANT}"
            )
        if number in self.wanted:
            self.arrays[number] = value
            self.cells.append((cell, tick(), number))
        if number == self.last:
            raise _Enough
        return saved.Saved(self, name, value, cell)


_CONSTANT = (
    "It must compute the same each time: it must not depend on a state that changes between the "
    "forward and the backward pass, nor on random numbers unless it draws the same ones again."
)


def _shown(name: str, shape: tuple[int, ...], dtype: Any) -> str:
    return f"of dtype {dtype} and shape {list(shape)}, saved by {name}"


def _form(x: Any) -> Form:
    return element_of(x).library, x.dtype, tuple(x.shape)


def _check(cell: list[int], since: int, form: Form, what: str) -> None:
    """Raise GradientError if the array of this version cell was modified in place since `since`."""
    if written_after(cell, since):
        raise modified(_described(form, what), cell, since, remedy="")


def _described(form: Form, what: str) -> str:
    return f"[{form[0].name} {form[1]} {list(form[2])}], which {what},"
