"""Observers, their events, and the gate that every operation reads.

Observers are notified of operations, nodes, saved arrays, passes, conversions, writes and labels.
This module imports nothing of the engine.

The gate is a ContextVar. It holds True if every level records and there is no observer. Otherwise
it holds a Mode: what is switched off, and the observers. So observation is free when it is off.
When it is on, only the contexts that entered an observer pay for it: this thread and asyncio task,
the tasks that it begins, and threads that run in a copy of its context.

A call of an operation is one event, however many levels take part in it. Calls that rules and
composite operations make on the way are events inside of it. `multigrad.extend` has the names for
writing observers, and docs/extending.md has examples.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from time import perf_counter_ns
from typing import Any, NamedTuple, Self

# ----- Events -----

OPERATION, WRITE, FUNCTION, STEP = "operation", "write", "function", "step"
PASS, TANGENT, CONVERSION = "pass", "tangent", "conversion"
"""The events that are calls.

Each is a call of an operation, an in-place operation, a Function, a node in a pass, a backward
pass, the rule of a tangent, or a conversion. A conversion takes a value out of the graph.
"""
NODE, SAVED, LABEL = "node", "saved", "label"
"""The other events: a node is made, a node saves arrays, a labelled block begins or ends."""
EVENTS = frozenset(
    {OPERATION, WRITE, FUNCTION, STEP, PASS, TANGENT, CONVERSION, NODE, SAVED, LABEL}
)
"""All events that an observer may name."""


class Call:
    """A call that observers are notified of.

    kind    OPERATION, WRITE, FUNCTION, STEP, PASS or CONVERSION
    op      for an OPERATION or a WRITE, the declaration of the operation (`registry.Op`), else None
    name    the name of the event: `sin`, `add_`, `setitem`, the name of a Function's class,
            `SinBackward`, `backward`, `item`
    order   for an OPERATION or a WRITE, the names of its positional parameters, at least as many as
            `args`; for `array @ tensor`, ("x2", "x1")
    args    the positional arguments, as the caller gave them, and `kwargs` the others; for a STEP,
            the gradients that arrive, before it begins
    node    for a STEP, the node
    of      the object that the operation wrote to, if the result is another object
    result  NotImplemented while the call runs. Then the call's return value, or the error that it
            raised. It stays NotImplemented if the call left the work to another operand
    """

    __slots__ = (
        "__weakref__",
        "args",
        "kind",
        "kwargs",
        "name",
        "node",
        "of",
        "op",
        "order",
        "result",
    )

    def __init__(
        self,
        kind: str,
        op: Any,
        name: str,
        order: Sequence[str],
        args: Sequence[Any],
        kwargs: Any = None,
        node: Any = None,
        of: Any = None,
    ) -> None:
        self.kind, self.op, self.name = kind, op, name
        self.order, self.args = order, args
        self.kwargs = {} if kwargs is None else kwargs
        self.node, self.of = node, of
        self.result: Any = NotImplemented


class Observer:
    """Base class of observers, which are notified of events in the contexts that entered them.

    events  the events to be notified of, a set of names in EVENTS
    whole   True: inside of an operation or a conversion, the observer is notified of nodes only. A
            composite operation is not one event but the operations that it calls
    ended   True: the observer is not notified any more, even where it is still entered
    timed   for measuring times only: a function that is called instead of `begin` and `end` if no
            other observer is notified of operations, or of steps by plain nodes. Its arguments are
            the declaration or the node, the start and the end in nanoseconds, and what the
            operation returned: NotImplemented if it left the work to another operand, None if it
            raised
    exchange  None, or a function for internal use (`enter_body`), which returns the value to use
            for one that the program passes

    Operations that an observer's methods call are events, too. To look at values, use the array
    library on `multigrad.extend.innermost(x)`.
    """

    __slots__ = ()
    events: Set[str] = frozenset()
    whole: bool = False
    timed: Callable[[Any, int, int, Any], None] | None = None
    exchange: Callable[[Any], Any] | None = None
    ended: bool = False

    def convert(self, name: str, method: Callable[..., Any], x: Any, *args: Any, **kw: Any) -> Any:
        """Carry out the conversion `name` of `x`, if this observer exchanges values."""
        raise NotImplementedError

    def begin(self, call: Call) -> Any:
        """Handle the beginning of a call; the return value is passed to `end`."""

    def end(self, token: Any, call: Call) -> None:
        """Handle the end of a call whose beginning was reported, also if the call raised."""

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        """Handle a new node: an operation on `operands` made `node` and returned `result`.

        `operands` are the values of the operation's parameters. A new leaf has no operands.
        """

    def look(self, operands: Sequence[Any]) -> None:
        """Handle an operation on these operands, of which an observer of SAVED may be told."""

    def recorded_alone(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        """Handle a new node that has no notes yet, and of which no other observer is notified.

        A class that overrides it checks `ended` itself.
        """
        self.recorded(node, operands, result)

    @staticmethod
    def _recorded_by(observers: Sequence[Any]) -> Callable[..., None]:
        """As `recorded_alone`, for several observers of one class, innermost first."""
        return partial(record, observers)

    def lift(self, rule: Callable[..., Any], *args: Any) -> Any:
        """Run the rule of a tangent whose operations are to be reported (TANGENT)."""
        return rule(*args)

    def opened(self, label: Label) -> None:
        """Handle the beginning of a labelled block."""

    def closed(self, label: Label) -> None:
        """Handle the end of a labelled block."""

    def __enter__(self) -> Self:
        """Enter the observer in this context."""
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave(self)


# ----- The gate -----


class Watch:
    """The observers of a context, innermost last, and which of them are notified of which events.

    It is immutable.

    operations  the observers of operations, innermost last
    nodes       the observers of nodes or of saved arrays, innermost first
    recorded    reports a new node, given the node, the operands and the result
    tangents    the observers of the rules of tangents
    within      whether this is the state inside of an operation
    parts       whether the state inside of an operation is another one
    body        what exchanges the values that the body of a loop passes; None elsewhere, and inside
                of an operation

    Neither a Watch nor a Mode refers to itself, so reference counting frees observers and what they
    keep.
    """

    __slots__ = (
        "_of",
        "body",
        "nodes",
        "observers",
        "operations",
        "parts",
        "recorded",
        "tangents",
        "timed",
        "within",
    )
    operations: tuple[Observer, ...]
    tangents: tuple[Observer, ...]
    nodes: tuple[Observer, ...]
    recorded: Callable[..., None]
    timed: Callable[..., None] | None

    def __init__(
        self, observers: tuple[Observer, ...], within: bool = False, body: Any = None
    ) -> None:
        self.observers = observers
        self.within = within
        self.body = body
        self._of: dict[str, tuple[Observer, ...]] = {}
        if not observers:  # at each step of a loop
            self.operations = self.tangents = self.nodes = ()
            self.recorded, self.timed = _unreported, None
            self.parts = body is not None
            return
        self.parts = body is not None or (not within and any(o.whole for o in observers))
        self.operations = self.of(OPERATION)
        self.tangents = self.of(TANGENT)
        self.nodes = _once(o for o in reversed(observers) if not o.events.isdisjoint(_OF_NODES))
        kind = type(self.nodes[0]) if len(set(map(type, self.nodes))) == 1 else Observer
        if len(self.nodes) == 1 and kind.recorded_alone is not Observer.recorded_alone:
            self.recorded = self.nodes[0].recorded_alone
        else:
            self.recorded = kind._recorded_by(self.nodes)
        only = self.operations[0] if len(self.operations) == 1 else None
        # a body is left at each operation, which `timed` does not do
        self.timed = None if only is None or only.whole or body is not None else only.timed

    def of(self, kind: str) -> tuple[Observer, ...]:
        """The observers of events of this kind."""
        observers = self._of.get(kind)
        if observers is None:
            whole = kind in _OF_NODES or not self.within
            observers = self._of[kind] = _once(
                o for o in self.observers if kind in o.events and (whole or not o.whole)
            )
        return observers


def _once(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Each observer once, even if it was entered several times.

    Identity decides, because observers may define equality.
    """
    return tuple({id(o): o for o in observers}.values())


def record(notified: Sequence[Observer], node: Any, operands: tuple[Any, ...], result: Any) -> None:
    """Report a new node to observers."""
    for observer in notified:
        if observer.ended:
            leave(observer)
        else:
            observer.recorded(node, operands, result)


_OF_NODES = frozenset({NODE, SAVED})
_unreported = partial(record, ())
NOTHING = Watch(())


class Mode:
    """The state of the gate where a level does not record, or where there are observers.

    It is immutable. A state equal to the default is represented by True.

    base        the grad mode of the base level: True, False, None (see level.BaseSwitch)
    off         the grad modes (level.Switch) of transformations that are off
    watch       the observers
    operations  the observers of operations. If there are none, what exchanges the operands
    tells       whether the base level records and there are observers of nodes
    recorded    reports a new node, given the node, the operands and the result
    quiet       the same Mode with the base level off; set when it is first needed
    """

    __slots__ = ("_inside", "base", "off", "operations", "quiet", "recorded", "tells", "watch")

    def __init__(self, base: bool | None, off: frozenset[Any], watch: Watch) -> None:
        self.base = base
        self.off = off
        self.watch = watch
        self.operations: Any = watch.operations or watch.body
        self.tells = bool(base and watch.nodes)
        self.recorded = watch.recorded
        self.quiet: Mode | None = None
        self._inside: Any = None

    def at(self, run: Any, level: int) -> bool | Mode | None:
        """Whether a level of `run` (None: the base level) records: True, False or None.

        Returns this Mode instead of True if there are observers of nodes.
        """
        on = self.base if run is None else run.records_in(self, level)
        return self if on and self.watch.nodes else on

    def looked(self, operands: Sequence[Any]) -> None:
        """Report the operands of an operation that is not recorded at a level of a run."""
        for observer in self.watch.observers:
            if SAVED in observer.events:
                observer.look(operands)

    @property
    def inside(self) -> Any:
        """The state of the gate inside of an operation."""
        if not self.watch.parts:
            return self
        if self._inside is None:
            observers = self.watch.observers
            self._inside = made(self.base, self.off, _watch(observers, bool(observers), None))
        return self._inside


NONE: frozenset[Any] = frozenset()
OFF = Mode(False, NONE, NOTHING)
_NOTING = Mode(None, NONE, NOTHING)
"""The state of the gate under no_grad and inside the forward of a Function, if nothing else is set.
"""


def made(base: bool | None, off: frozenset[Any], watch: Watch) -> Any:
    """The Mode with these values, or True if they are the default."""
    if off or watch is not NOTHING:
        return Mode(base, off, watch)
    return base or (OFF if base is False else _NOTING)


gate: ContextVar[Any] = ContextVar("multigrad.mode", default=True)
"""The one gate, which every operation reads.

True if every level records and there is no observer, else a Mode.
"""


def put_back(variable: ContextVar[Any], value: Any) -> None:
    """Set a variable, in clean-up where an allocation has failed.

    The program has given up what was too large, so that a small piece of memory is likely free.
    """
    try:
        variable.set(value)
    except MemoryError:
        variable.set(value)


def watching(mode: Any = None) -> tuple[Observer, ...]:
    """The observers in the state `mode` of the gate, by default the present one, innermost last."""
    mode = gate.get() if mode is None else mode
    return () if mode is True else mode.watch.observers


def watched(mode: Any, observers: tuple[Observer, ...]) -> Any:
    """The state of the gate that has these observers instead of those in `mode`."""
    base, off, watch = (True, NONE, NOTHING) if mode is True else (mode.base, mode.off, mode.watch)
    return made(base, off, _watch(observers, watch.within, watch.body))


def _watch(observers: tuple[Observer, ...], within: bool, body: Any) -> Watch:
    nothing = not observers and not within and body is None
    return NOTHING if nothing else Watch(observers, within, body)


def put(observers: tuple[Observer, ...], at: Place | None = None) -> None:
    """Set the observers of this context and, if `at` is given, the place in the program."""
    gate.set(watched(gate.get(), observers))
    if at is not None:
        place.set(at)


def enter_body(body: Any) -> Any:
    """Let `body`, that of a loop, exchange what is passed from now on; return the one until now.

    Its `exchange` is called with each value that the program passes to an operation, a write, a
    Function or a transformation, `convert` instead of a conversion, and `begin` before a write. It
    gets no other notice, and none inside of an operation.
    """
    mode = gate.get()
    base, off, watch = (True, NONE, NOTHING) if mode is True else (mode.base, mode.off, mode.watch)
    entered = Mode(base, off, Watch(watch.observers, watch.within, body))
    if not watch.parts:
        entered._inside = mode
    gate.set(entered)
    return watch.body


def enter(observer: Observer) -> None:
    """Notify `observer` in this context from now on, until `leave`.

    Raises TypeError or ValueError if its `events` are invalid.
    """
    name, events = type(observer).__name__, observer.events
    if not isinstance(events, Set) or not events:
        raise TypeError(
            f"{name}.events must be a set of names of events, such as "
            f"frozenset({{'operation'}}), not {events!r}"
        )
    if not events <= EVENTS:
        raise ValueError(
            f"{name}.events names {', '.join(sorted(map(str, events - EVENTS)))}; the events "
            f"are {', '.join(sorted(EVENTS))}"
        )
    before = gate.get()
    try:
        gate.set(watched(before, (*watching(before), observer)))
    except BaseException:  # an interrupt, after which `leave` is not called
        put_back(gate, before)
        raise


def leave(observer: Observer) -> None:
    """Undo one `enter`, wherever the observer is among the others.

    If the observer is not entered here, its context has ended, and there is nothing to do.
    """
    mode: Any = None
    try:
        mode = gate.get()
        _leave(observer, mode)
    except BaseException as error:  # an interrupt, or the program has given up what was too large
        if mode is None or gate.get() is mode:
            _leave(observer, gate.get())
        if not isinstance(error, MemoryError):
            raise


def _leave(observer: Observer, mode: Any) -> None:
    observers = list(watching(mode))
    for i in range(len(observers) - 1, -1, -1):
        if observers[i] is observer:
            del observers[i]
            gate.set(watched(mode, tuple(observers)))
            return


def observers(kind: str) -> tuple[Observer, ...]:
    """The observers of events of this kind in this context."""
    mode = gate.get()
    return () if mode is True or not mode.watch.observers else mode.watch.of(kind)


# ----- Places: labels, and the rule that operations are part of -----


class Label:
    """A block of code that the user labelled.

    outer  the label around it
    task   a number for the asyncio task that it runs in
    """

    __slots__ = ("args", "end", "end_thread", "name", "outer", "start", "task", "thread")

    def __init__(self, name: str, args: str | None, outer: Label | None) -> None:
        self.name, self.args, self.outer = name, args, outer
        self.task = _task()
        self.thread = self.end_thread = threading.get_ident()
        self.start = perf_counter_ns()
        self.end: int | None = None


class Place(NamedTuple):
    """The place of a context in the program: the open label, and the rule that runs.

    `rule` is an object made for this run of the rule, whose operations are part of it.
    """

    label: Label | None
    rule: object = None


place: ContextVar[Place] = ContextVar("multigrad.place", default=Place(None))  # noqa: B039  it never changes
here = place.get
"""Returns the place of this context in the program."""


def open_label(name: str, args: str | None) -> tuple[Label, tuple[Observer, ...]] | None:
    """Begin a labelled block.

    Returns the argument of `close_label`, or None if there is no observer of labels.
    """
    notified = tuple(o for o in observers(LABEL) if not o.ended)
    if not notified:
        return None
    before = here()
    label = Label(name, args, before.label)
    try:
        for observer in notified:
            observer.opened(label)
        place.set(Place(label, before.rule))
    except BaseException:  # an interrupt, after which the label is not closed
        close_label((label, notified))
        raise
    return label, notified


def close_label(opened: tuple[Label, tuple[Observer, ...]], restore: bool = True) -> None:
    """End a labelled block.

    `restore` is True in the context that began the block. Other contexts, later, pass False.
    """
    label, notified = opened
    try:
        _end_label(label, restore)
    except BaseException as error:  # an interrupt, or the program has given up what was too large
        _end_label(label, restore)
        if not isinstance(error, MemoryError):
            raise
    with ExitStack() as all_:
        for observer in notified:
            all_.callback(observer.closed, label)


def _end_label(label: Label, restore: bool) -> None:
    """End it, and return to the innermost label that has not ended.

    A block that was begun inside of the ended one, and has not ended, remains. (A generator may end
    its blocks at any time.)
    """
    label.end = perf_counter_ns()
    label.end_thread = threading.get_ident()
    if not restore:
        return
    now = here()
    left = now.label
    while left is not None and left.end is not None:
        left = left.outer
    if left is not now.label:
        place.set(Place(left, now.rule))


def leave_label(opened: tuple[Label, tuple[Observer, ...]]) -> None:
    """Move this context outside of a label that ends later."""
    place.set(Place(opened[0].outer, here().rule))


def _task() -> int:
    """A number for the asyncio task that runs here, 0 outside of any."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else id(task)


# ----- Telling -----


def around(notified: Sequence[Observer], call: Call, function: Callable[[], Any]) -> Any:
    """Run `function`, which carries out `call`, and notify these observers of both ends."""
    tokens: list[tuple[Observer, Any]] = []
    try:
        for observer in notified:
            if not observer.ended:
                tokens.append((observer, observer.begin(call)))
        if call.node is not None:
            call.args = ()  # a leaf may take over an array that has no other reference
        result = call.result = function()
        return result
    except BaseException as error:
        call.result = error
        raise
    finally:
        try:
            if tokens:
                _end(tokens, call)
        finally:
            # the traceback of an error refers to `call`: that cycle would keep the result alive
            call.result = None


def _end(tokens: list[tuple[Observer, Any]], call: Call) -> None:
    """Notify all observers of the end, innermost first, also if one of them raises."""
    observer, token = tokens.pop()
    try:
        observer.end(token, call)
    finally:
        if tokens:
            _end(tokens, call)


def operation(
    mode: Mode,
    op: Any,
    order: Sequence[str],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run the function of an operation and notify the observers.

    `mode` is the state of the gate, also when the call returns.
    """
    body = mode.watch.body
    if body is not None:
        args = tuple(map(body.exchange, args))
        if kwargs:
            kwargs = {name: body.exchange(x) for name, x in kwargs.items()}
    notified = mode.watch.operations
    if not notified:
        return (
            function(*args, **kwargs)
            if op.kind == "composite"
            else _where(mode._inside or mode.inside, mode, function, *args, **kwargs)
        )
    timed = mode.watch.timed
    if timed is not None and not notified[0].ended:
        result: Any = None
        start = perf_counter_ns()
        try:
            result = function(*args, **kwargs)
        finally:
            timed(op, start, perf_counter_ns(), result)
        return result
    if any(o.ended for o in notified):
        # an observer may have ended in another context, as generators do
        rest = watched(mode, tuple(o for o in mode.watch.observers if not o.ended))
        gate.set(rest)
        if rest is True or not rest.operations:
            return function(*args, **kwargs)
        mode = rest
    inside = mode if op.kind == "composite" else mode.inside
    return around_parts(
        mode,
        inside,
        mode.watch.operations,
        Call(OPERATION, op, op.name, order, args, kwargs),
        lambda: function(*args, **kwargs),
    )


def around_parts(
    mode: Mode, inside: Any, notified: Sequence[Observer], call: Call, function: Callable[[], Any]
) -> Any:
    """Do as `around`, with the gate in the state `inside` instead of `mode` during the call.

    If the two are the same object, observers that the call enters stay entered.
    """
    return (
        around(notified, call, function)
        if inside is mode
        else _where(inside, mode, around, notified, call, function)
    )


def _where(
    state: Any, mode: Mode, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Call `function` with the gate in that state instead of `mode`, and return its result."""
    try:
        gate.set(state)
        return function(*args, **kwargs)
    finally:
        try:
            gate.set(mode)
        except MemoryError:
            put_back(gate, mode)


def passed(x: Any) -> Any:
    """A value, or a tuple or list of values, that the program passes to the engine.

    In the body of a loop, what the loop has in place of each array from outside (`enter_body`).
    """
    mode = gate.get()
    return x if mode is True or mode.watch.body is None else mode.watch.body.exchange(x)


def internally(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `function`, which works with values that the program has not passed."""
    mode = gate.get()
    if mode is True or mode.watch.body is None:
        return function(*args, **kwargs)
    watch = _watch(mode.watch.observers, mode.watch.within, None)
    return _where(made(mode.base, mode.off, watch), mode, function, *args, **kwargs)


def call(
    kind: str,
    op: Any,
    name: str,
    order: Sequence[str],
    args: Sequence[Any],
    function: Callable[[], Any],
) -> Any:
    """Return `function()` and notify the observers of calls of this kind."""
    notified = observers(kind)
    if notified:
        function = partial(around, notified, Call(kind, op, name, order, args), function)
    # an operation that is called here passes values to other operations
    return function() if kind is OPERATION else internally(function)


def write(
    op: Any,
    name: str,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    function: Callable[..., Any],
    of: Any = None,
) -> Any:
    """Write to the first of `args` by `function(*args, **named)`, and notify the observers."""
    mode = gate.get()
    call = Call(WRITE, op, name, tuple(op.roles), args, named, of=of)
    if mode.watch.body is not None:
        mode.watch.body.begin(call)
        call.args = (args[0], *passed(args[1:]))
        call.kwargs = {name: passed(x) for name, x in named.items()}
    notified = mode.watch.of(WRITE)
    carried_out = partial(function, *call.args, **call.kwargs)
    return internally(partial(around, notified, call, carried_out) if notified else carried_out)


def node(made: Any, operands: tuple[Any, ...], result: Any) -> None:
    """Report a leaf, or a node that was not made by an operation."""
    mode = gate.get()
    if mode is not True and mode.watch.nodes:
        record(mode.watch.of(NODE)[::-1], made, operands, result)  # innermost first


def tangent(rule: Callable[..., Any], *args: Any) -> Any:
    """Run the rule of a tangent; its operations belong to the rule, not to the operation."""
    notified = observers(TANGENT)
    if not notified:
        return rule(*args)
    lift = next((o.lift for o in notified if type(o).lift is not Observer.lift), None)
    return within(rule, *args) if lift is None else within(lift, rule, *args)


def within(function: Callable[..., Any], *args: Any) -> Any:
    """Run a rule, and mark the operations that it calls as part of it."""
    before = here()
    try:
        place.set(Place(before.label, object()))
        return function(*args)
    finally:
        place.set(before)
