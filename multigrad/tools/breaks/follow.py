"""Gradient losses of operations: each operation is judged after its call.

Results without a history are followed until numbers are made of them.

A composite operation is judged by its parts. The operations inside any other operation, inside a
write, or inside a function with a custom derivative belong to it, and are not judged separately.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...core.aliasing import Location
from ...core.graph import AccumulateGrad, Node
from ...core.level import Layer, highest
from ...core.tensor import Tensor
from ...dispatch.general import recording_at
from ...observe import Call
from ...registry import Op, per_operation
from ..graphs.provenance import Site, dtype_name
from .report import BreakReport, LeafRecord
from .sites import caller, histories, levels_of, line, nodes_of, place, program


class Facts(NamedTuple):
    """Facts about gradient losses, from the declaration of an operation.

    arrays   the array parameters
    starred  the array parameter that takes all positional arguments, if there is one
    smooth   the parameters with a derivative; None: there are none, so following continues through
             all of them
    zero     the parameters whose derivative is 0 wherever it is defined
    simple   whether the operation takes its arrays one by one, by position, and returns one
    safe     whether nothing is lost if the result has a history
    """

    arrays: frozenset[str]
    starred: str
    smooth: Collection[str] | None
    zero: frozenset[str]
    simple: bool
    safe: bool


@per_operation
def facts(op: Op) -> Facts:
    """Return the facts about an operation that are independent of its arguments."""
    rules = op.vjp if op.kind == "elementwise" and isinstance(op.vjp, Mapping) else {}
    zero = frozenset(name for name, rule in rules.items() if not callable(rule.fn) and rule.fn == 0)
    if op.name == "sign":  # it has a derivative with respect to complex numbers
        zero = frozenset(op.arrays)
    parameters = op.signature.parameters
    simple = op.outputs == () and all(
        op.roles[a] == "array" and parameters[a].kind is not parameters[a].KEYWORD_ONLY
        for a in op.arrays
    )
    starred = next((name for name, p in parameters.items() if p.kind is p.VAR_POSITIONAL), "")
    smooth = None if op.kind == "nondifferentiable" else op.differentiable
    return Facts(
        frozenset(op.arrays),
        starred,
        smooth,
        zero,
        simple,
        smooth is not None and op.kind != "composite" and not zero,
    )


class Source(NamedTuple):
    """The origin of a value without a history. Using the value's numbers is then a break.

    kind       "comparison", or "no_grad" for a part of an array that was taken without recording.
               A program may take such a part only to write to it
    parameter  whether the value is part of a leaf that requires grad
    """

    kind: str
    what: str
    where: Site
    leaves: frozenset[LeafRecord]
    parameter: bool = False


class Operands:
    """The arguments of a call by parameter, as they were at one moment.

    tracked  the history of each argument that has one, by parameter
    levels   the levels at which any argument has a history
    sources  the sources of the arguments without a history
    top      the argument of the highest level
    """

    __slots__ = ("levels", "sources", "top", "tracked")

    def __init__(
        self,
        named: Iterable[tuple[str, Any]],
        followed: Followed,
        smooth: Collection[str] | None = None,
    ) -> None:
        self.tracked: list[tuple[str, list[Node | None]]] = []
        self.levels: set[int] = set()
        self.sources: list[Source] = []
        layers = [(name, x) for name, value in named for x in _layers(value)]
        self.top: Layer | None = highest(x for _, x in layers)
        for name, x in layers:
            nodes = nodes_of(x)
            if nodes:
                self.tracked.append((name, nodes))
                self.levels |= levels_of(x)
            if followed and (smooth is None or name in smooth):
                self.sources += followed.sources(x)

    @property
    def nodes(self) -> list[Node | None]:
        """The histories of all arguments."""
        return [n for _, nodes in self.tracked for n in nodes]


class Followed:
    """Values without a history, held by weak references, and their sources."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], tuple[Source, ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def sources(self, x: Any) -> tuple[Source, ...]:
        """Return the sources of a value that have not been reported yet."""
        entry = self._entries.get(id(x))
        return entry[1] if entry is not None and entry[0]() is x else ()

    def add(self, values: Iterable[Any], sources: Sequence[Source]) -> None:
        for x in values if sources else ():
            together = tuple({id(s): s for s in (*self.sources(x), *sources)}.values())
            self._entries[id(x)] = weakref.ref(x, partial(self._forget, id(x))), together

    def _forget(self, key: int, _: Any) -> None:
        self._entries.pop(key, None)


class Losses:
    """Judges operations, writes and Functions, and records their losses in a report."""

    def __init__(self, report: BreakReport) -> None:
        self.report = report
        self.followed = Followed()
        self._used: weakref.WeakSet[AccumulateGrad] = weakref.WeakSet()
        """The leaves whose first use is known."""

    def forget(self) -> None:
        self.followed = Followed()
        self._used.clear()

    def note(self, kind: str, what: str, where: Site, nodes: Iterable[Node | None]) -> None:
        """Record a break of a value with these histories."""
        self.report.add(kind, what, where, self.report.leaves(nodes))

    def use(self, source: Source) -> None:
        """Record that numbers were made from a value with this source."""
        self.report.add(source.kind, source.what, source.where, source.leaves)

    # ----- Operations -----

    def operation(self, call: Call) -> None:
        """Record the losses of an operation."""
        result, op = call.result, call.op
        about = facts(op)
        plain = about.simple and isinstance(result, Tensor) and not result._elem.layered
        if plain and self._is_kept(call, about.safe):
            return
        if op.kind == "composite" or result is NotImplemented or isinstance(result, BaseException):
            return
        operands = Operands(_arrays(call, about), self.followed, about.smooth)
        if operands.tracked or operands.sources:
            self._look(op, operands, operands.top, result)

    def _is_kept(self, call: Call, safe: bool) -> bool:
        """Return whether nothing is lost, if there is only one level.

        Either no operand has a history, or the result has the history of its operands.
        """
        constant, followed = True, self.followed
        for x in call.args:
            if isinstance(x, Layer):
                if not isinstance(x, Tensor) or x._elem.layered or followed.sources(x):
                    return False
                if x._node is not None:
                    constant = False
                    if type(x._node) is AccumulateGrad:
                        self._mark(x._node)
        return constant or (safe and type(call.result._node) is Node)

    def _mark(self, leaf: AccumulateGrad) -> None:
        """Record where a leaf was used first."""
        if leaf not in self._used:
            self._used.add(leaf)
            record = self.report.leaf(leaf)
            record.used = record.used or line()

    def _mark_all(self, operands: Operands) -> None:
        """Record the first uses of leaves, and those that a forward-mode transformation reaches."""
        for _, nodes in operands.tracked:
            for i, n in enumerate(nodes):
                if type(n) is AccumulateGrad:
                    self._mark(n)
                    if None in nodes[:i]:
                        self.report.leaf(n).reached = True

    def _look(
        self, op: Op, operands: Operands, top: Any, result: Any, written: bool = False
    ) -> None:
        """Record the losses of an operation whose operands have gradients or sources.

        `top`: the operand of the highest level; `written`: the operation wrote to it.
        """
        self._mark_all(operands)
        outs = _layers(result)
        # operations on shapes and dtypes lose nothing
        if not outs or (op.chapter in ("creation", "data_type") and op.kind == "nondifferentiable"):
            return
        floating = any(x._elem.floating for x in outs)
        part = not written and _shows(op, outs)
        if operands.sources and place() is not None:
            for s in operands.sources:
                if part if s.kind == "no_grad" else not floating:
                    self.followed.add(outs, [s])
                else:
                    self.use(s)
        if not operands.tracked:
            return
        levels = {k for x in outs for k in levels_of(x)}
        if written:
            levels.discard(top._level)  # its own history, which a write under no_grad keeps
        what = op.name
        if op.kind == "nondifferentiable":
            kind = "index"
        elif isinstance(top, Tensor) and not recording_at(top):
            kind = "no_grad" if floating and not operands.levels <= levels else ""
        elif not floating:
            kind, dtype = "cast", dtype_name(outs[0].dtype)
            what += f" to {dtype}" if op.name in ("astype", "asarray") else f" (of {dtype})"
        else:
            zero = facts(op).zero if op.name != "sign" or not outs[0]._elem.complex else ()
            kind = "zero" if all(name in zero for name, _ in operands.tracked) else ""
        where = place() if kind else None
        if where is None:
            return
        nodes = operands.nodes
        if kind == "index" and all(x._elem.bool for x in outs):
            self._compared(what, where, nodes, outs)
        elif kind == "no_grad" and part:
            parameter = all(type(n) is AccumulateGrad for n in nodes)
            self.followed.add(
                outs, [Source(kind, what, where, self.report.leaves(nodes), parameter)]
            )
        else:
            self.note(kind, what, where, nodes)

    def _compared(
        self, what: str, where: Site, nodes: Sequence[Node | None], outs: Sequence[Any]
    ) -> None:
        leaves = self.report.leaves(nodes)
        self.report.tell(leaves, f"compared by {what} at {where}")
        self.followed.add(outs, [Source("comparison", what, where, leaves)])

    # ----- Writes -----

    def before_write(self, call: Call) -> tuple[Operands, bool]:
        """Return the operands before a write, and whether it updates a parameter in no_grad.

        Such an update is not a break.
        """
        t = call.args[0]
        about = facts(call.op)
        recording = recording_at(t)
        updates = not recording and (
            type(Location(t).memory._node) is AccumulateGrad
            or any(s.parameter for s in self.followed.sources(t))
        )
        arrays = list(_arrays(call, about))[not recording :]
        return Operands(arrays, self.followed, about.smooth), updates

    def written(self, call: Call, operands: Operands, updates: bool) -> None:
        t = call.args[0]
        if updates:
            self._mark_all(operands)
        elif operands.tracked or operands.sources:
            self._look(call.op, operands, t, t, written=True)

    # ----- Functions with custom derivatives -----

    def function(self, call: Call) -> None:
        """Record the losses of a Function, such as outputs that it marks as non-differentiable."""
        operands = Operands((("", x) for x in call.args if isinstance(x, Layer)), self.followed)
        self._mark_all(operands)
        levels = {k for x in call.args for k, node in histories(x) if node is not None}
        where = place(program(sys._getframe())) if levels or operands.sources else None
        if where is None:
            return
        for x in _layers(call.result):
            if not x._elem.floating:
                self.followed.add([x], operands.sources)
            else:
                for s in operands.sources:
                    self.use(s)
            lost = levels - levels_of(x)
            if lost and x._elem.bool:
                self._compared(_applied(call), where, operands.nodes, [x])
            elif lost:
                recorded = any(_recorded(v, lost) for v in call.args)
                kind = "index" if not x._elem.floating else "detached" if recorded else "no_grad"
                self.note(kind, _applied(call), where, operands.nodes)


def _arrays(call: Call, about: Facts) -> Iterator[tuple[str, Any]]:
    """Yield the array parameters of a call with their arguments."""
    positional = zip(call.order, call.args, strict=False)
    if about.starred:
        positional = zip([about.starred], [call.args], strict=True)
    for name, value in (*positional, *call.kwargs.items()):
        if name in about.arrays:
            yield name, value


def _layers(value: Any) -> list[Any]:
    """Return the layers in an argument or a result, which may be a tuple or a list."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [x for x in values if isinstance(x, Layer)]


def _shows(op: Op, outs: Sequence[Any]) -> bool:
    """Return whether the results are parts of an operand.

    A part may exist to be written to, as in `w[:2] -= 0.1`.
    """
    return op.name == "getitem" or all(getattr(x, "_view", None) is not None for x in outs)


def _applied(call: Call) -> str:
    """Return the call of a Function as the program writes it."""
    # the caller is what applies it: `Function.apply`, or `__call__` of a function with a rule
    frame = caller()
    applier = None if frame is None else frame.f_back
    by_apply = applier is not None and applier.f_code.co_name == "apply"
    return f"{call.name}.apply()" if by_apply else f"{call.name}()"


def _recorded(x: Any, levels: set[int]) -> bool:
    """Return whether operations on a value are recorded at one of these levels."""
    while isinstance(x, Layer):
        if isinstance(x, Tensor) and x._level in levels and recording_at(x):
            return True
        x = x._array
    return False
