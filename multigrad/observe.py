"""Observation: observers are told of operations, nodes, saved arrays, passes, conversions, writes
and labels. It imports nothing of the engine.

There is one gate, a ContextVar, which every operation reads to know whether it is recorded. It
holds True where every level records and nothing observes, else a Mode: what is switched off, and
the observers. So observation is free when it is off, and when it is on, only the contexts that
entered an observer pay for it: this thread and asyncio task, tasks that it begins, and threads that
run in a copy of its context.

An operation is one event, at the call, whatever the levels that it is carried out at. What rules
and composite operations call on the way are events inside of it. `multigrad.extend` has the names
that observers are written with, and docs/extending.md examples.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import ExitStack
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any, Self

# ----- Events -----

OPERATION, WRITE, FUNCTION, STEP, PASS, TANGENT, CONVERSION = (
    "operation",
    "write",
    "function",
    "step",
    "pass",
    "tangent",
    "conversion",
)
"""Calls: of an operation, of one in place, of a Function, of a node in a pass, of a pass, of the
rule of a tangent, of what leaves the graph.
"""
NODE, SAVED, LABEL = "node", "saved", "label"
"""What else happens: a node is made, a node keeps arrays, a labelled block begins and ends."""
EVENTS = frozenset(
    {OPERATION, WRITE, FUNCTION, STEP, PASS, TANGENT, CONVERSION, NODE, SAVED, LABEL}
)
"""All events that an observer may ask for."""


class Call:
    """What runs. Its `kind` is OPERATION, WRITE, FUNCTION, STEP, PASS or CONVERSION.

    op      of an OPERATION or a WRITE the declaration of the operation (`registry.Op`), else None
    name    of the event: `sin`, `add_`, `setitem`, the name of a Function's class, `SinBackward`,
            `backward`, `item`
    order   of an OPERATION or a WRITE the names of its positional parameters, as many as `args` or
            more; of `array @ tensor` ("x2", "x1")
    args    the positional arguments, as the caller gave them, and `kwargs` the others; of a STEP
            the gradients that arrive, before it begins
    node    of a STEP the node
    of      what the operation wrote to, where that is another object than the result
    result  at the end: what it returned, or the error that it raised; NotImplemented until then,
            and where the work was left to another operand
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
        self.kind, self.op, self.name, self.order, self.args, self.kwargs = (
            kind,
            op,
            name,
            order,
            args,
            kwargs or {},
        )
        self.node, self.of = node, of
        self.result: Any = NotImplemented


class Observer:
    """Base of observers, which are told of the events that they ask for, in the contexts that they
    were entered in.

    events  the events that it asks for, a set of names in EVENTS
    whole   True: of what happens inside of an operation or a conversion it is told of nodes only. A
            composite operation is what it consists of
    ended   True: it is told of nothing any more, wherever it is still in force
    timed   for times alone: a function that is called in the place of `begin` and `end` where no
            other observer is told of operations, or of steps by plain nodes. It is given the
            declaration, or the node, start and end in nanoseconds, and what the operation returned:
            NotImplemented if it left that to another operand, None if it raised
    exchange  where it is not None, a function that is given each value which the program hands to
              an operation, a conversion, a write or a
            transformation, and returns what is to stand for it: the engine's own, by which a loop
            sees what its body captures. The innermost observer's counts. Such an observer is
            `whole`, and is told of operations by this alone

    Operations that its own methods call are events, too. To look at values, use the array library
    on `multigrad.extend.innermost(x)`.
    """

    __slots__ = ()
    events: Set[str] = frozenset()
    whole: bool = False
    timed: Callable[[Any, int, int, Any], None] | None = None
    exchange: Callable[[Any], Any] | None = None
    ended: bool = False

    def begin(self, call: Call) -> Any:
        """Before a call; what it returns is given to `end`."""

    def end(self, token: Any, call: Call) -> None:
        """After a call that it was told the beginning of, also where it raised."""

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        """`node` was made by an operation on `operands`, the values of its parameters, that
        returned `result`. A new leaf has no operands.
        """

    def recorded_alone(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        """The same where no other observer is told of this node, which has no notes yet.

        What has this way sees to its own end.
        """
        self.recorded(node, operands, result)

    def lift(self, rule: Callable[..., Any], *args: Any) -> Any:
        """Run the rule of a tangent, of which the operations are to be told (TANGENT)."""
        return rule(*args)

    def opened(self, label: Label) -> None:
        """At the beginning of a labelled block."""

    def closed(self, label: Label) -> None:
        """At its end."""

    def __enter__(self) -> Self:
        """Put it in force in this context."""
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave(self)


# ----- The gate -----


class Watch:
    """The observers of a context, innermost last, and which of them are told of what.

    It never changes.

    operations  those that are told of operations, innermost last
    nodes       those that are told of nodes or of what these save, innermost first
    alone       where there is one of them, and it has a way of its own for that, this way
    tangents    those that are told of the rules of tangents
    within      whether this is inside of an operation
    parts       whether it is another one inside of an operation
    exchange    what stands for the values that the program hands over, None for these themselves
    looks_on    whether there is an observer besides those that exchange values

    Neither it nor a Mode refers to itself: reference counting frees observers, and what they keep.
    """

    __slots__ = (
        "_inside",
        "_of",
        "alone",
        "exchange",
        "looks_on",
        "nodes",
        "observers",
        "operations",
        "parts",
        "tangents",
        "timed",
        "within",
    )

    def __init__(self, observers: tuple[Observer, ...], within: bool = False) -> None:
        self.observers = observers
        self.within = within
        self.parts = not within and any(o.whole for o in observers)
        self._of: dict[str, tuple[Observer, ...]] = {}
        self.operations = self.of(OPERATION)
        self.tangents = self.of(TANGENT)
        self.nodes = _once(o for o in reversed(observers) if not o.events.isdisjoint(_KEPT))
        one = self.nodes[0] if len(self.nodes) == 1 else None
        self.alone = (
            None
            if one is None or type(one).recorded_alone is Observer.recorded_alone
            else one.recorded_alone
        )
        only = self.operations[0] if len(self.operations) == 1 else None
        self.timed = None if only is None or only.whole else only.timed
        self.exchange = (
            None
            if within
            else next((o.exchange for o in reversed(observers) if o.exchange is not None), None)
        )
        self.looks_on = any(o.exchange is None for o in observers)
        self._inside: Watch | None = None

    def of(self, kind: str) -> tuple[Observer, ...]:
        """Those that are told of events of this kind."""
        told = self._of.get(kind)
        if told is None:
            all_ = kind in _KEPT or not self.within
            told = self._of[kind] = _once(
                o for o in self.observers if kind in o.events and (all_ or not o.whole)
            )
        return told

    @property
    def inside(self) -> Watch:
        """The same inside of an operation."""
        if not self.parts:
            return self
        if self._inside is None:
            self._inside = Watch(self.observers, True)
        return self._inside

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        """Tell of a node that was made, those further in first."""
        _record(self.nodes, node, operands, result)


def _once(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Each of these once, where one was entered several times.

    They may define equality as they like.
    """
    return tuple({id(o): o for o in observers}.values())


_KEPT = frozenset({NODE, SAVED})
NOTHING = Watch(())


class Mode:
    """What is in force where not every level records, or where there are observers.

    It never changes; one that is like the default is True.

    base        the grad mode of the base level: True, False, None (see level.BaseSwitch)
    off         the grad modes (level.Switch) of transformations that are off
    watch       the observers
    operations  those of them that are told of operations
    timed       what takes the times of operations, where nothing else is wanted
    tells       whether the base level records, and nodes are told of
    recorded    tells of a node that was made, given the node, the operands, and the result
    quiet       the same with the base level off, once it was asked for
    """

    __slots__ = (
        "_inside",
        "base",
        "off",
        "operations",
        "quiet",
        "recorded",
        "tells",
        "timed",
        "watch",
    )

    def __init__(self, base: bool | None, off: frozenset[Any], watch: Watch) -> None:
        self.base = base
        self.off = off
        self.watch = watch
        self.operations = watch.operations
        self.timed = watch.timed
        self.tells = bool(base and watch.nodes)
        self.recorded = watch.alone or watch.recorded
        self.quiet: Mode | None = None
        self._inside: Any = None

    def at(self, run: Any, level: int) -> bool | Mode | None:
        """Whether this level of `run` records, of which None stands for the base level: True,
        False, None; itself if nodes are to be told of.
        """
        on = self.base if run is None else run.records_in(self, level)
        return self if on and self.watch.nodes else on

    @property
    def inside(self) -> Any:
        """The state of the gate inside of an operation."""
        if not self.watch.parts:
            return self
        if self._inside is None:
            self._inside = made(self.base, self.off, self.watch.inside)
        return self._inside


NONE: frozenset[Any] = frozenset()
OFF = Mode(False, NONE, NOTHING)
_NOTING = Mode(None, NONE, NOTHING)
"""The state of the gate under no_grad, and inside the forward of a Function, where nothing else is
in force.
"""


def made(base: bool | None, off: frozenset[Any], watch: Watch) -> Any:
    """The Mode of these, which is True if that is the default."""
    if off or watch.observers:
        return Mode(base, off, watch)
    return base or (OFF if base is False else _NOTING)


gate: ContextVar[Any] = ContextVar("multigrad.mode", default=True)
"""The one gate: what every operation asks.

True where every level records and nothing observes, else a Mode.
"""


def watching(mode: Any = None) -> tuple[Observer, ...]:
    """The observers in that state of the gate, else in that of now, innermost last."""
    mode = gate.get() if mode is None else mode
    return () if mode is True else mode.watch.observers


def watched(mode: Any, observers: tuple[Observer, ...]) -> Any:
    """The state of the gate with these observers in the place of those in `mode`."""
    base, off, within = (
        (True, NONE, False) if mode is True else (mode.base, mode.off, mode.watch.within)
    )
    return made(base, off, Watch(observers, within) if observers or within else NOTHING)


def put(observers: tuple[Observer, ...], at: Place | None = None) -> None:
    """Have these be the observers of this context from now on, and `at` the place in the program,
    if that is given.
    """
    gate.set(watched(gate.get(), observers))
    if at is not None:
        place.set(at)


def enter(observer: Observer) -> None:
    """Have `observer` told in this context from now on, until `leave`.

    Raises TypeError or ValueError where its `events` are wrong.
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
        gate.set(before)
        raise


def leave(observer: Observer) -> None:
    """Undo one `enter`, wherever it stands among the observers.

    Where it is in force no more, the context that it was entered in has ended.
    """
    mode = gate.get()
    observers = list(watching(mode))
    for i in range(len(observers) - 1, -1, -1):
        if observers[i] is observer:
            del observers[i]
            gate.set(watched(mode, tuple(observers)))
            return


def observers(kind: str) -> tuple[Observer, ...]:
    """Those who are told of events of this kind here."""
    mode = gate.get()
    return () if mode is True or not mode.watch.observers else mode.watch.of(kind)


# ----- Places: labels, and the rule that operations are part of -----


class Label:
    """A block of code that the user gave a name.

    `outer`: the label around it; `task`: the asyncio task it runs in.
    """

    __slots__ = ("args", "end", "end_thread", "name", "outer", "start", "task", "thread")

    def __init__(self, name: str, args: str | None, outer: Label | None) -> None:
        self.name, self.args, self.outer = name, args, outer
        self.task = _task()
        self.thread = self.end_thread = threading.get_ident()
        self.start = perf_counter_ns()
        self.end: int | None = None


class Place:
    """The label that is open, and, by an object of its own, the run of a rule that operations are
    part of.
    """

    __slots__ = ("label", "rule")

    def __init__(self, label: Label | None, rule: object = None) -> None:
        self.label = label
        self.rule = rule


place: ContextVar[Place] = ContextVar("multigrad.place", default=Place(None))  # noqa: B039  it never changes
here = place.get
"""Where in the program this context is."""


def open_label(name: str, args: str | None) -> tuple[Label, tuple[Observer, ...]] | None:
    """Begin a labelled block.

    Returns what `close_label` needs; None where no observer is told of labels.
    """
    told = tuple(o for o in observers(LABEL) if not o.ended)
    if not told:
        return None
    before = here()
    label = Label(name, args, before.label)
    for observer in told:
        observer.opened(label)
    place.set(Place(label, before.rule))
    return label, told


def close_label(opened: tuple[Label, tuple[Observer, ...]], restore: bool = True) -> None:
    """End it: in the context that it was begun in (`restore`), or later, from anywhere."""
    label, told = opened
    label.end = perf_counter_ns()
    label.end_thread = threading.get_ident()
    if restore:
        _reopen()
    with ExitStack() as all_:
        for observer in told:
            all_.callback(observer.closed, label)


def _reopen() -> None:
    """Stand in the innermost label that has not ended: one that was begun in it, and not left yet,
    remains. (Generators end theirs at any time.)
    """
    now = here()
    label = now.label
    while label is not None and label.end is not None:
        label = label.outer
    if label is not now.label:
        place.set(Place(label, now.rule))


def leave_label(opened: tuple[Label, tuple[Observer, ...]]) -> None:
    """Have what comes next stand outside of a label that ends later."""
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


def around(
    told: Sequence[Observer], call: Call, function: Callable[[], Any], undone: Any = NotImplemented
) -> Any:
    """Run `function`, which is that call.

    `undone`: what it returns where it left the work to another.
    """
    tokens: list[tuple[Observer, Any]] = []
    try:
        for observer in told:
            if not observer.ended:
                tokens.append((observer, observer.begin(call)))
        if call.node is not None:
            call.args = ()  # a leaf may keep an array that nothing else holds
        result = function()
        if result is not undone:
            call.result = result
        return result
    except BaseException as error:
        call.result = error
        raise
    finally:
        try:
            if tokens:
                _end(tokens, call)
        finally:
            # the traceback of an error leads here: a cycle, which would keep all that it knows
            call.result = None


def _end(tokens: list[tuple[Observer, Any]], call: Call) -> None:
    """Tell all of the end, innermost first, also where one of them raises."""
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
    """Run the function of an operation where observers are told of it: `mode` is the state of the
    gate, and again when it returns.
    """
    exchange = mode.watch.exchange
    if exchange is not None:
        args = exchange(args)
        if kwargs:
            kwargs = {name: exchange(x) for name, x in kwargs.items()}
        if not mode.watch.looks_on:
            return (
                function(*args, **kwargs)
                if op.kind == "composite"
                else _where(mode.inside, mode, function, *args, **kwargs)
            )
    timed = mode.timed
    if timed is not None and not mode.operations[0].ended:
        result: Any = None
        start = perf_counter_ns()
        try:
            result = function(*args, **kwargs)
        finally:
            timed(op, start, perf_counter_ns(), result)
        return result
    if any(o.ended for o in mode.operations):
        left = without_ended(mode)
        gate.set(left)
        if left is True or not left.operations:
            return function(*args, **kwargs)
        mode = left
    inside = mode if op.kind == "composite" else mode.inside
    return around_parts(
        mode,
        inside,
        mode.operations,
        Call(OPERATION, op, op.name, order, args, kwargs),
        lambda: function(*args, **kwargs),
    )


def around_parts(
    mode: Mode, inside: Any, told: Sequence[Observer], call: Call, function: Callable[[], Any]
) -> Any:
    """`around`, with the gate in the state `inside` in the place of `mode` meanwhile.

    Where they are the same, what is entered in it stays.
    """
    return (
        around(told, call, function)
        if inside is mode
        else _where(inside, mode, around, told, call, function)
    )


def _where(state: Any, mode: Mode, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the function does, called with the gate in that state instead of `mode`."""
    try:
        gate.set(state)
        return function(*args, **kwargs)
    finally:
        gate.set(mode)


def stand_in(x: Any) -> Any:
    """What stands here for a value, or for each of a tuple or list of them, that the program hands
    over: see `Observer.exchange`.
    """
    mode = gate.get()
    return x if mode is True or mode.watch.exchange is None else mode.watch.exchange(x)


def as_given(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the function does, called where every value stands for itself."""
    mode = gate.get()
    if mode is True or mode.watch.exchange is None:
        return function(*args, **kwargs)
    return _where(
        watched(mode, tuple(o for o in mode.watch.observers if o.exchange is None)),
        mode,
        function,
        *args,
        **kwargs,
    )


def without_ended(mode: Mode) -> Any:
    """That state of the gate without observers that have ended: in another context, say, as
    generators do.
    """
    return watched(mode, tuple(o for o in mode.watch.observers if not o.ended))


def call(
    kind: str,
    op: Any,
    name: str,
    order: Sequence[str],
    args: Sequence[Any],
    function: Callable[[], Any],
    of: Any = None,
    undone: Any = NotImplemented,
) -> Any:
    """Return `function()`, which is a call of this kind; whoever asks for such is told."""
    told = observers(kind)
    return (
        around(told, Call(kind, op, name, order, args, of=of), function, undone)
        if told
        else function()
    )


def node(made: Any, operands: tuple[Any, ...], result: Any) -> None:
    """Tell of a node that was made by no operation, or of a leaf."""
    mode = gate.get()
    if mode is not True:
        _record(mode.watch.of(NODE), made, operands, result)


def _record(told: Sequence[Observer], node: Any, operands: tuple[Any, ...], result: Any) -> None:
    for observer in told:
        if observer.ended:
            leave(observer)
        else:
            observer.recorded(node, operands, result)


def tangent(rule: Callable[..., Any], *args: Any) -> Any:
    """Run the rule of a tangent. What it calls is its part, and no part of the operation."""
    told = observers(TANGENT)
    if not told:
        return rule(*args)
    lift = next((o.lift for o in told if type(o).lift is not Observer.lift), None)
    return within(rule, *args) if lift is None else within(lift, rule, *args)


def within(function: Callable[..., Any], *args: Any) -> Any:
    """Run a rule so that what it calls is known as its part."""
    before = here()
    try:
        place.set(Place(before.label, object()))
        return function(*args)
    finally:
        place.set(before)
