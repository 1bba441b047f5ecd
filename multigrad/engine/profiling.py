"""Profiling: what watches every operation, recorded or not, every node of a pass, and the user's labels.

Nothing of this costs anything while nobody watches. When the first watcher comes, the generated functions get other code, which runs the
former one as `_plain`; functions that are looked up by name in their module ("seams") are exchanged, as others may exchange them, too;
what runs the nodes of passes is surrounded. The last watcher that leaves takes all of it back.

What is watched belongs to a context: `here` has the frame of this thread and task, None where nobody watches. Tasks, and threads that run in
a copy of the context, inherit it. An operation is seen once, where it is called, at the outermost of the levels that it is carried out at;
what rules and composite operations call by the bound namespace on the way is seen inside of it.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from time import perf_counter_ns
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from ..registry import Op
from . import generated, steps
from .graph import AccumulateGrad, Node, Pick
from .level import Layer
from .tensor import Tensor

FORWARD, BACKWARD, LABEL = 0, 1, 7  # as PyTorch numbers the scopes of events


class Call:
    """One operation or node that is run.

    op      its declaration, None for the user's own Function
    name    of the event
    order   the names of the positional arguments
    node    the node, of which `args` are the gradients that arrive
    result  what it returned; NotImplemented as long as it has not, or where it was left to somebody else
    """

    __slots__ = ("args", "kwargs", "name", "node", "of", "op", "order", "result")

    def __init__(self, op: Op | None, name: str, order: Sequence[str], args: Sequence[Any], kwargs: Any = None, node: Node | None = None,
                 of: Any = None) -> None:
        self.op, self.name, self.order, self.args, self.kwargs, self.node, self.of = op, name, order, args, kwargs or {}, node, of
        self.result: Any = NotImplemented

    @property
    def seq(self) -> int:
        """The number that links a node and the operation that made it, -1 where there is none."""
        return node_sequence(self.node) if self.node is not None else sequence(self.result if self.of is None else self.of)


class Label:
    """A block of code that the user gave a name. `outer`: the label around it; `task`: the asyncio task it runs in."""

    __slots__ = ("args", "end", "end_thread", "name", "outer", "start", "task", "thread")

    def __init__(self, name: str, args: str | None, outer: Label | None) -> None:
        self.name, self.args, self.outer = name, args, outer
        self.task = _task()
        self.thread = self.end_thread = threading.get_ident()
        self.start = perf_counter_ns()
        self.end: int | None = None


class Watcher:
    """What is told of every call. `add`: where it wants no more than times, the function that takes them, as tuples

        (declaration or name, start, end, frame, thread, sequence number, scope, detail)

    `lift`: where it wants to see what the rules of tangents do on raw arrays, the function that runs such a rule, given it and its arguments.
    """

    add: Callable[[tuple[Any, ...]], None] | None = None
    lift: Callable[..., Any] | None = None

    def begin(self, call: Call, frame: Frame) -> Any:
        """Before the call; what it returns is given to `end`."""

    def end(self, token: Any, call: Call, frame: Frame) -> None:
        """After the call, also where it raised."""

    def enter(self, label: Label) -> None:
        """At the beginning of a labelled block."""

    def leave(self, label: Label) -> None:
        """At its end."""


class Frame:
    """Who watches in a context, the label that is open there, and, by an object of its own, the run of a rule that operations are part of."""

    __slots__ = ("add", "label", "rule", "watchers")

    def __init__(self, watchers: tuple[Watcher, ...], label: Label | None, rule: object = None) -> None:
        self.watchers = watchers
        self.label = label
        self.rule = rule
        self.add = watchers[0].add if len(watchers) == 1 else None


here: ContextVar[Frame | None] = ContextVar("multigrad.profiling", default=None)


def watch(watcher: Watcher) -> None:
    """Have `watcher` told of everything in this context from now on."""
    frame = here.get()
    here.set(Frame((watcher,), None) if frame is None else Frame((*frame.watchers, watcher), frame.label, frame.rule))
    with _lock:
        _watchers.append(watcher)
        if len(_watchers) == 1:
            _install()


def unwatch(watcher: Watcher) -> None:
    """Undo `watch`."""
    frame = here.get()
    if frame is not None:
        left = tuple(w for w in frame.watchers if w is not watcher)
        here.set(Frame(left, frame.label, frame.rule) if left else None)
    with _lock:
        _watchers.remove(watcher)
        if not _watchers:
            _uninstall()


# ----- Labels -----


def open_label(name: str, args: str | None) -> tuple[Label, Frame] | None:
    """Begin a labelled block. Returns what `close_label` needs; None where nobody watches."""
    frame = here.get()
    if frame is None:
        return None
    label = Label(name, args, frame.label)
    for watcher in frame.watchers:
        watcher.enter(label)
    here.set(Frame(frame.watchers, label, frame.rule))
    return label, frame


def close_label(opened: tuple[Label, Frame], restore: bool = True) -> None:
    """End it: in the context that it was begun in (`restore`), or later, from anywhere."""
    label, outer = opened
    label.end = perf_counter_ns()
    label.end_thread = threading.get_ident()
    if restore:
        _reopen()
    for watcher in reversed(outer.watchers):
        watcher.leave(label)


def _reopen() -> None:
    """Stand in the innermost label that has not ended: one that was begun in it, and not left yet, remains. (Generators end theirs at any time.)"""
    frame = here.get()
    if frame is None:
        return
    label = frame.label
    while label is not None and label.end is not None:
        label = label.outer
    if label is not frame.label:
        here.set(Frame(frame.watchers, label, frame.rule))  # whoever began to watch in the meantime, or ceased to


def leave_label(opened: tuple[Label, Frame]) -> None:
    """Have what comes next stand outside of a label that ends later."""
    frame = here.get()
    if frame is not None:
        here.set(Frame(frame.watchers, opened[1].label, frame.rule))


def _task() -> int:
    """A number for the asyncio task that runs here, 0 outside of any."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else id(task)


# ----- Calls -----


def sequence(result: Any) -> int:
    """The number of the node that recorded a result, -1 if none did."""
    if isinstance(result, (tuple, list)):
        return next((n for n in map(sequence, result) if n >= 0), -1)
    while isinstance(result, Layer) and not isinstance(result, Tensor):  # of the primal, or of all examples
        result = result._array
    node = getattr(result, "_node", None)
    return -1 if node is None else node_sequence(node)


def node_sequence(node: Node) -> int:
    """The number of a node, -1 for the end of the graph at a leaf."""
    if type(node) is Pick:
        node = node.next
    return -1 if type(node) is AccumulateGrad else node.seq


def around(frame: Frame, call: Call, function: Callable[[], Any], undone: Any = NotImplemented) -> Any:
    """Run `function`, which is that call. `undone`: what it returns where it left the work to somebody else."""
    tokens = [(watcher, watcher.begin(call, frame)) for watcher in frame.watchers]
    if call.node is not None:
        call.args = ()
    try:
        result = function()
        if result is not undone:
            call.result = result
        return result
    except BaseException as error:
        call.result = error
        raise
    finally:
        for watcher, token in reversed(tokens):
            watcher.end(token, call, frame)


def _run(frame: Frame, op: Op, order: Sequence[str], plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return around(frame, Call(op, op.name, order, args, kwargs), lambda: plain(*args, **kwargs))


# The code of a watched function. It finds what begins with an underscore in the scope of that function, see `note`.
_WATCHED = """
def function({parameters}):
    _frame = _here()
    if _frame is None:
        return _plain({arguments})
    _add = _frame.add
    if _add is None:
        return _run(_frame, _op, _order, _plain, {packed})
    _start = _clock()
    try:
        _result = _plain({arguments})
    except BaseException:
        _add((_op, _start, _clock(), _frame, _thread(), -1, 0, None))
        raise
    _end = _clock()
    if type(_result) is _Tensor:
        _node = _result._node
        _add((_op, _start, _end, _frame, _thread(), -1 if _node is None else _node.seq if type(_node) is _Node else _sequence(_result), 0, None))
    elif _result is not NotImplemented:
        _add((_op, _start, _end, _frame, _thread(), _sequence(_result), 0, None))
    return _result
"""
_here, _clock, _thread = here.get, perf_counter_ns, threading.get_ident


@cache
def _watched(names: tuple[str, ...] | None) -> CodeType:
    """The code for functions that take arguments of these names by position alone; None for any other."""
    if names is None:
        texts = {"parameters": "*args, **kwargs", "arguments": "*args, **kwargs", "packed": "args, kwargs"}
    else:
        given = ", ".join(names)
        texts = {"parameters": f"{given}, /", "arguments": given, "packed": f"({given},), {{}}"}
    scope: dict[str, Any] = {}
    generated.run(_WATCHED.format_map(texts), "multigrad watched", scope)
    code: CodeType = scope["function"].__code__
    return code


def _watched_form(function: FunctionType) -> CodeType:
    code = function.__code__
    further = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or function.__defaults__
    return _watched(code.co_varnames[:code.co_argcount] if 0 < code.co_argcount == code.co_posonlyargcount and not further else None)


_made: WeakKeyDictionary[FunctionType, tuple[CodeType, CodeType]] = WeakKeyDictionary()
"""The generated functions that there are, each with its code and the watched form of that."""
_creating: list[tuple[Any, Any, Op]] = []
_seams: list[tuple[dict[str, Any], str, Any, Any]] = []
_exchanged: dict[tuple[int, str], tuple[Any, list[Callable[[Any], Any]]]] = {}
"""What stood in each place where something else does, and what that is made by, innermost first."""
_watchers: list[Watcher] = []
_lock = threading.RLock()


def note(function: Any, op: Op, order: Sequence[str]) -> None:
    """Let a generated function be watched. `order`: its positional parameters."""
    plain = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__qualname__ = function.__qualname__  # which errors tell
    function.__globals__.update(_plain=plain, _order=tuple(order), _here=_here, _clock=_clock, _thread=_thread, _sequence=sequence, _run=_run,
                                _Tensor=Tensor, _Node=Node)
    with _lock:
        _made[function] = function.__code__, _watched_form(function)
        if _watchers:
            function.__code__ = _made[function][1]


def code_of(function: Any) -> CodeType:
    """The code of a generated function while nobody watches it."""
    with _lock:
        return _made[function][0]


def note_creation(function: Any, op: Op) -> None:
    """Let a function that makes an array be watched, which calls the library's as `raw`."""
    cell = function.__closure__[function.__code__.co_freevars.index("raw")]
    with _lock:
        _creating.append((cell, cell.cell_contents, op))
        if _watchers:
            cell.cell_contents = _creation(op, cell.cell_contents)


def seam(namespace: dict[str, Any], name: str, make: Callable[[Any], Any]) -> None:
    """Let the function of that name in a module be exchanged for `make(function)` while somebody watches."""
    with _lock:
        _seams.append((namespace, name, namespace[name], make))
        if _watchers:
            exchange(namespace, name, make)


def exchange(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Have `make(what stands there)` stand in the place of an attribute of a class, or of a name in the namespace of a module, until `restore`.

    Others may do so meanwhile, and leave in any order: what stands there then is made anew, of what stood there first.
    """
    with _lock:
        place = (id(owner), name)
        if place not in _exchanged:
            _exchanged[place] = (owner if type(owner) is dict else owner.__dict__)[name], []
        original, makes = _exchanged[place]
        makes.append(make)
        _compose(owner, name, original, makes)


def restore(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Undo `exchange`."""
    with _lock:
        original, makes = _exchanged[id(owner), name]
        makes.remove(make)
        if not makes:
            del _exchanged[id(owner), name]
        _compose(owner, name, original, makes)


def _compose(owner: Any, name: str, found: Any, makes: Sequence[Callable[[Any], Any]]) -> None:
    for make in makes:
        found = make(found)
    if type(owner) is dict:
        owner[name] = found
    else:
        setattr(owner, name, found)


def _creation(op: Op, raw: Callable[..., Any]) -> Callable[..., Any]:
    order = tuple(op.roles)

    def created(*args: Any, **kwargs: Any) -> Any:
        frame = here.get()
        return raw(*args, **kwargs) if frame is None else _run(frame, op, order, raw, args, kwargs)

    return created


def general_seam(general: Callable[..., Any]) -> Callable[..., Any]:
    """For a module that calls `dispatch.general` for its users."""

    def watched(op: Op, values: tuple[Any, ...]) -> Any:
        frame = here.get()
        if frame is None:
            return general(op, values)
        return around(frame, Call(op, op.name, tuple(op.roles), values), lambda: general(op, values))

    return watched


def function_seam(apply: Callable[..., Any]) -> Callable[..., Any]:
    """For a module that applies classes with derivatives of the user's own."""

    def watched(cls: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
        frame = here.get()
        if frame is None:
            return apply(cls, flat, names)
        return around(frame, Call(None, cls.__name__, (), flat), lambda: apply(cls, flat, names))

    return watched


def within(frame: Frame, function: Callable[..., Any], *args: Any) -> Any:
    """Run a rule so that what it calls is known as its part."""
    before = here.get()
    try:
        here.set(Frame(frame.watchers, frame.label, object()))
        return function(*args)
    finally:
        here.set(before)


def _rule(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Plain nodes: the rule alone."""

    def lifted(node: Node, saved: Any, g: Any, p: Any) -> Any:
        frame = _here()
        if frame is None:
            return inner(node, saved, g, p)
        if type(node) is not Node:
            return within(frame, inner, node, saved, g, p)
        add = frame.add
        if add is None:
            return _surrounded(frame, node, [g], inner, node, saved, g, p)
        start = _clock()
        try:
            return node.rule.vjp(node.host.xp, g, *saved) if p.raw else inner(node, saved, g, p)
        finally:
            add((node.rule.op, start, _clock(), frame, _thread(), node.seq, BACKWARD, None))

    return lifted


def _step(inner: Callable[..., Any]) -> Callable[..., Any]:
    """All others, with their hooks."""

    def step(node: Node, kind: type, box: list[Any], *rest: Any) -> Any:
        frame = None if kind is Pick or kind is Node else _here()
        if frame is None:
            return inner(node, kind, box, *rest)
        add = frame.add
        if add is None:
            return _surrounded(frame, node, box, inner, node, kind, box, *rest)
        start = _clock()
        try:
            return inner(node, kind, box, *rest)
        finally:
            end = _clock()
            add((node.name(), start, end, frame, _thread(), node_sequence(node), BACKWARD, None))

    return step


def _surrounded(frame: Frame, node: Node, box: list[Any], function: Callable[..., Any], *args: Any) -> Any:
    g = box[0]
    call = Call(None, node.name(), (), g if type(g) in (tuple, list) else (g,), node=node)
    g = None  # a leaf may keep what nobody else holds
    return around(frame, call, lambda: function(*args))


def _install() -> None:
    for made, (_, watched) in _made.items():
        made.__code__ = watched
    for cell, raw, op in _creating:
        cell.cell_contents = _creation(op, raw)
    for namespace, name, _, make in _seams:
        exchange(namespace, name, make)
    steps.surround(_step, _rule)


def _uninstall() -> None:
    steps.expose(_step, _rule)
    for namespace, name, _, make in _seams:
        restore(namespace, name, make)
    for cell, raw, _ in _creating:
        cell.cell_contents = raw
    for made, (code, _) in _made.items():
        made.__code__ = code
