"""The text of runners (see runners.py): straight code for one signature.

A runner begins with its guards, **takes** the operands apart, **calls** the library's function on
raw arrays, or multigrad's own if a value is an array object, and **finishes**: it wraps the result
and records it. The writer of each class of array objects says what is taken from an operand besides
its value, and how the result is finished. That of Tensors, which makes a node, is here.

What is rare ends in the functions of the general path, with the values that were taken apart.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, ClassVar

from ..core import element
from ..core.computed import mark
from ..core.element import SCALARS, Element, Library
from ..core.graph import Node, tick
from ..core.level import Layer
from ..core.tensor import Tensor, View
from ..provided import wanted
from ..registry import Op, Rule
from ..tracebacks import shown
from . import generated
from .codegen import constant_like, is_flat, positions, raw_function
from .general import fill, general, record, shows
from .generated import call_text, tuple_text
from .names import Texts, compute_while_recording, metadata
from .pullbacks import conforms, pullback
from .settings import kinds
from .signature import LONG, Operand, fresh, key_by_kind

Lines = Iterator[str]


DECIDED = frozenset(("dtype", "copy", "device"))
"""The settings that a key decides, as far as the result may be a view."""


class Unwritten(Exception):
    """Only the general path handles such a call."""


@wanted
def inner_function(op: Op) -> Callable[..., Any]:
    """The function of an operation for the next inner values.

    Provided by dispatch/functions.py.
    """
    raise NotImplementedError


class Writer:
    """The text of a runner while it is written.

    operands  the operands, by the name of their parameter
    texts   the expressions of all parameters as the library gets them
    deep    whether some value is an array object, so that multigrad's function is called
    ours    whether the operation is one of multigrad's
    out     the Element of the result
    plain   whether the text wraps results that are like the first one
    main    the operand whose Element is `_elem` in the text
    view    whether the result is a view: True, False, "layout" if the memory decides, "ask" if the
            values of settings do
    scope   the objects that the text refers to
    part    what is taken of operands besides their values
    parted  the operands that may have it
    """

    common: ClassVar[dict[str, Any]] = generated.BUILTINS | {
        "_Tensor": Tensor,
        "_View": View,
        "_Layer": Layer,
        "_new": object.__new__,
        "_fresh": fresh,
        "_kinds": element.by_type,
        "_shows": shows,
        "_metadata": metadata,
        "_general": general,
        "__tracebackhide__": shown,
    }
    """Objects that the texts of all runners refer to by the same names."""
    part: ClassVar[str] = ""
    parted: Sequence[Operand] = ()

    def __init__(
        self, op: Op, plain_key: bool, values: Sequence[Any], top: Any, result: Any
    ) -> None:
        self.op, self.plain_key, self.result = op, plain_key, result
        self.arguments = dict(zip(op.roles, values, strict=True))
        self.top, self.ours = top, op.builtin
        self.library: Library = top._elem.library
        self.scope: dict[str, Any] = {"_library": self.library, "_xp": self.library.xp}
        self.again = f"return _general(_op, {tuple_text(op.roles)})"
        self.operands: dict[str, Operand] = {}
        self.texts: dict[str, str] = {}
        self.objects: dict[str, Any] = {}
        self.keyed: tuple[Operand, ...] = ()
        self.head: list[str] = []
        self.tests: list[str] = []
        for i, (name, x) in enumerate(self.arguments.items()):
            role = op.roles[name]
            if role == "array":
                self.operands[name] = self._operand(name, f"_value{i}", x)
            elif role == "arrays":
                self.operands[name] = self._list(name, f"_value{i}", x)
            elif name == "key" and not plain_key:
                self.texts[name] = self._key(x)
            else:
                self.texts[name] = self._setting(name, f"_value{i}", x)
        self.all = [p for q in self.operands.values() for p in (q.parts or (q,))]
        self.arrays = [p for p in self.all if p.array]
        self.own = [p for p in (*self.all, *self.keyed) if p.status == "own"]
        if not self.own:
            raise Unwritten
        self.out: Any = getattr(result, "_elem", None)
        self.main = next((p for p in self.own if p.elem is self.out), self.own[0])
        self.elem: Element = self.main.elem
        self.based = self.elem.run is None
        self.deep = any(p.layer for p in (*self.all, *self.keyed))
        self.view = self._view()
        self.plain = op.outputs == () and type(result) is type(top)

    # ----- Operands -----

    def _operand(self, x: str, value: str, argument: Any) -> Operand:
        elem: Element = self.top._elem
        kind = type(argument)
        self.objects[x] = argument
        if kind in fresh:
            own: Element = argument._elem
            ended = own.kind.cls is not None and own.run.finished  # type: ignore[union-attr]
            if own.library is self.library and not ended:
                if own.level == elem.level:
                    if own.run is elem.run and own.kind.cls is elem.kind.cls:
                        return Operand(x, value, "own", isinstance(argument._array, Layer), own)
                elif own.run is None and argument._node is None:
                    return Operand(x, value, "const", False, own)
                else:
                    return Operand(x, value, "layer", True, own)
        elif argument is None:
            return Operand(x, x, "none")
        elif kind in SCALARS:
            return Operand(x, x, "scalar")
        elif element.by_type.get(kind) is self.library:
            return Operand(x, x, "raw", False, self.library.element(argument.dtype))
        raise Unwritten

    def _list(self, name: str, value: str, xs: Any) -> Operand:
        if xs is None:
            return Operand(name, name, "none")
        if len(xs) <= LONG:
            parts = [
                self._operand(f"_item{value.removeprefix('_value')}_{j}", f"{value}_{j}", y)
                for j, y in enumerate(xs)
            ]
            self.head.append(f"{tuple_text(p.x for p in parts)} = {name}")
            text = tuple_text(p.value for p in parts)
            return Operand(name, text, "list", any(p.layer for p in parts), None, tuple(parts))
        self.long = name
        one = self._operand("_each", "_each._array", xs[0])
        alike = {getattr(y, "_elem", None) for y in xs} == {one.elem}
        if one.status != "own" or not alike or one.layer:
            raise Unwritten
        return Operand(name, value, "many", False, None, (one,))

    def _key(self, key: Any) -> str:
        """The text of the value of an indexing key, which may have arrays in it."""
        entries = key if type(key) is tuple else (key,)
        self.is_tuple = type(key) is tuple
        operands, texts = [], []
        for i, x in enumerate(entries):
            name = f"key[{i}]" if self.is_tuple else "key"
            kind = type(x)
            if x is None or x is Ellipsis or kind in (int, slice, bool):
                operands.append(Operand(name, name, "none"))
            else:
                operand = self._operand(name, f"{name}._array", x)
                if operand.status not in ("raw", "const", "own") or operand.layer:
                    raise Unwritten
                operands.append(
                    operand._replace(value=name) if operand.status == "raw" else operand
                )
            texts.append(operands[-1].value)
        self.keyed = tuple(operands)
        return self.key_text(texts)

    def key_text(self, texts: Sequence[str]) -> str:
        """The text of an indexing key of these entries."""
        if list(texts) == [p.x for p in self.keyed]:
            return "key"  # y[key] += v recognizes it by its identity
        return tuple_text(texts) if self.is_tuple else texts[0]

    def _setting(self, name: str, value: str, x: Any) -> str:
        if isinstance(x, Layer) or (
            type(x) in (tuple, list) and any(isinstance(v, Layer) for v in x)
        ):
            raise Unwritten
        # the key has the types of the elements of other tuples and lists
        if isinstance(x, (tuple, list)) and (
            type(x) not in (tuple, list) or (name in kinds(self.op) and self.top._elem.kind.cls)
        ):
            self.tests.append(f"not _any([_isinstance(_each, _Layer) for _each in {name}])")
        if name == "dtype" and type(x) is str:
            return self.name(getattr(self.library.xp, x))
        if isinstance(x, list):  # its owner may change it
            self.head.append(f"{value} = _tuple({name})")
            return value
        return name

    def name(self, value: Any) -> str:
        """A name for an object in the text."""
        found = next((n for n, x in self.scope.items() if x is value), None)
        local = found or f"_object{len(self.scope)}"
        self.scope[local] = value
        return local

    # ----- The text -----

    def written(self, after: Any) -> tuple[Callable[..., Any], int]:
        """Write the runner. `after` carries out what a guard refuses. Returns its bytes, too."""
        text = "\n".join(self.lines())
        used = set(re.findall(r"\b_\w+", text))
        names = self.common | self.scope | {"_op": self.op, "_next": after}
        scope = {n: x for n, x in names.items() if n in used or n.startswith("__")}
        generated.run(text, f"multigrad runner of {self.op.name}", scope)
        runner: Callable[..., Any] = scope.pop("_run")
        code: Any = runner.__code__
        parts = (code, code.co_consts, code.co_names, code.co_varnames, code.co_linetable, scope)
        return runner, sum(map(sys.getsizeof, parts)) + 2 * len(text)

    def lines(self) -> Lines:
        yield f"def _run(_mode, {', '.join(self.op.roles)}):"
        for line in self.head:
            yield f"    {line}"
        if self.based:
            self.scope["_elem"] = self.elem
        else:
            yield f"    _elem = {self.first(self.main)}._elem"
        guards = list(self.guards())
        if guards:
            yield f"    if not ({' and '.join(guards)}):"
            yield f"        return _next(_mode, {', '.join(self.op.roles)})"
        yield from self.begin()
        for name, p in self.operands.items():
            if p.status == "many":
                yield f"    {p.value} = _tuple([_each._array for _each in {name}])"
                if self.parted:
                    yield f"    {self.part_of(p)} = _tuple([_each.{self.part} for _each in {name}])"
                continue
            for q in p.parts or (p,):
                if q.status in ("own", "const"):
                    yield f"    {q.value} = {q.x}._array"
                elif q.status == "layer":
                    yield f"    {q.value} = {self.lower(q)}"
                elif q.status == "raw":
                    if self.library.admit is not None:  # which raises for some arrays
                        yield f"    _library.admit(_xp, {q.x})"
                    yield f"    {q.value} = {q.x}"
                if q in self.parted:
                    yield f"    {self.part_of(q)} = {q.x}.{self.part}"
        yield from self.call()
        yield from self.finish()

    def guards(self) -> Lines:
        """The tests at the beginning."""
        yield from self.tests
        for p in (*self.all, *self.keyed):
            if p.x != "_each":
                yield from self.guard(p)
            elif not self.based:
                yield f"_all([_each._elem is _elem for _each in {self.long}])"

    def guard(self, p: Operand) -> Lines:
        """The tests of what the key leaves open about an operand."""
        elem = p.elem
        if p.status == "own":
            if p is not self.main and not self.based:
                same = f"{p.x}._elem.run is _elem.run and {p.x}._elem.level == _elem.level"
                yield f"{p.x}._elem is _elem" if elem is self.elem else same
        elif p.status == "const":
            if not self.based:
                yield f"{p.x}._node is None"
        elif p.status == "layer":
            lower = f"{p.x}._elem.level < _elem.level"
            yield f"{p.x}._node is not None" if elem.run is None else lower
        elif p.status == "raw" and not isinstance(self.objects[p.x], elem.library.scalars):
            yield f"{p.x}.dtype == {self.name(elem.dtype)}"

    def begin(self) -> Lines:
        """What is done before operands are taken apart."""
        yield from ()

    def lower(self, p: Operand) -> str:
        """The value of an array object of a lower level."""
        return p.x

    def part_of(self, p: Operand) -> str:
        """The local variable of what is taken of an operand besides its value."""
        return f"{self.part}{p.value.removeprefix('_value')}"

    def part_text(self, p: Operand) -> str:
        """The same for any operand: None if nothing is taken of it."""
        if p.status == "list":
            return tuple_text(map(self.part_text, p.parts))
        return self.part_of(p) if (self.parted if p.parts else p in self.parted) else "None"

    def values(self) -> dict[str, str]:
        """The expressions of the values of all parameters."""
        return self.texts | {n: p.value for n, p in self.operands.items()}

    def called(self) -> dict[str, str]:
        """The expressions of what is passed to the function."""
        return self.expressed(self._called)

    def expressed(self, of: Callable[[Operand], str]) -> dict[str, str]:
        """The expressions of all parameters, if `of` is that of an operand."""
        key = {"key": self.key_text([of(p) for p in self.keyed])} if self.keyed else {}
        operands = {
            n: tuple_text(map(of, p.parts)) if p.status == "list" else of(p)
            for n, p in self.operands.items()
        }
        return self.texts | key | operands

    def _called(self, p: Operand) -> str:
        """Beside an array object, a Tensor of the base level is passed on.

        Nodes further in take its cell.
        """
        return p.x if self.deep and p.status == "const" else p.value

    def first(self, p: Operand) -> str:
        """The text of an operand, the first of a long list."""
        return p.x if p.x != "_each" else f"{self.long}[0]"

    def call(self) -> Lines:
        self.scope["_fn"] = (
            inner_function(self.op) if self.deep else raw_function(self.library, self.op.name)
        )
        values = self.called()
        if self.library.scalars:  # complex.__mul__ takes np.float64 for a float
            arrays = [f"_isinstance({p.value}, _float)" for p in self.arrays if not p.layer]
            for n, p in self.operands.items():
                if arrays and p.status == "scalar" and type(self.arguments[n]) is complex:
                    values[n] = f"(_xp.asarray({n}) if {' or '.join(arrays)} else {n})"
        yield f"    _ans = {call_text(self.op, '_fn', values)}"

    def finish(self) -> Lines:
        """Wrap the result `_ans` and record it."""
        generally = f"return {self.generally()}"
        if not self.plain:
            yield f"    {generally}"
            return
        tests = list(self.surprises())
        if not self.is_certain():
            tests.append(f"_ans.dtype != {self.name(self.out.dtype)}")
        if tests:
            yield f"    if {' or '.join(tests)}:"
            yield f"        {generally}"
        yield from self.wrapped()

    def generally(self) -> str:
        """The call that wraps any result."""
        raise NotImplementedError

    def surprises(self) -> Lines:
        """The tests for results that only `generally` wraps."""
        library = "_kinds.get(_type(_ans)) is not _library"
        yield "_type(_ans) not in _fresh" if self.deep else library

    def wrapped(self) -> Lines:
        """Wrap a result that is like the first one."""
        raise NotImplementedError

    def _view(self) -> Any:
        op = self.op
        first = self.operands.get(next(iter(op.roles)))
        if first is None or first.status != "own":
            return False
        if self.plain_key:
            return True
        if op.view == "layout":
            copy = self.arguments.get("copy")
            return "layout" if copy is None else False if copy is True else "ask"
        if not callable(op.view) or set(list(op.roles)[1:]) <= DECIDED:
            shown = shows(op, tuple(self.arguments.values()))
            return shown if shown in (True, False) else "ask"
        if any(p.array for p in self.keyed):  # indexing with arrays makes a copy
            return False
        return "ask"

    def as_view(self, recorded: str = "None") -> Lines:
        """Make `_result` a view of the first operand."""
        first, *further = self.op.roles
        step = tuple_text(self.values()[n] for n in further)
        yield f"    _result._cell = _cell = {first}._cell"
        yield "    _result._seen = _cell[-1] if _cell else 0"
        yield f"    _result._view = ({first}, _op, {step}, None, {recorded})"

    def is_certain(self) -> bool:
        """Whether the signature decides the dtype of the result.

        Other dtypes than that of all operands may depend on a setting of the library, and on more
        than the dtypes of operands (JAX's weak types). Without its 64 bits, JAX sums what it has of
        float64 in float32.
        """
        r = self.out
        if self.arguments.get("dtype") is not None or not self.ours:
            return False
        if self.op.kind == "nondifferentiable" and r.bool:
            return True
        others = [p.elem.base for p in self.arrays if not p.elem.bool]
        fixed = self.library.mutable or self.op.kind == "elementwise"
        return fixed and r.floating and all(base is r.base for base in others)


class OperandTexts(Texts):
    """The expressions for the names of rules in a runner.

    scalar  the text of a Python scalar `{x}` as an array, or ""
    """

    def __init__(
        self, writer: Writer, context: dict[str, str], ans: str, computed: str, scalar: str
    ) -> None:
        super().__init__(writer.op, context, writer.values(), ans, computed)
        self.operands, self.scalar = writer.operands, scalar
        self.library, self.name = writer.library, writer.name

    def argument(self, name: str) -> str:
        p = self.operands.get(name)
        if self.scalar and p is not None and p.status == "scalar" and p.value == p.x:
            return self.scalar.format(x=p.x)
        return super().argument(name)

    def metadata(self, name: str, what: str) -> str:
        operand = self.operands[name]
        if operand.status == "many":
            one = self._of(operand.parts[0]._replace(value="_each"), what)
            return f"_tuple([{one} for _each in {operand.value}])"
        if operand.status == "list":
            return tuple_text(self._of(p, what) for p in operand.parts)
        return self._of(operand, what)

    def _of(self, operand: Operand, what: str) -> str:
        if what == "scalar":
            return operand.x if operand.status == "scalar" else "None"
        if not operand.array:
            return "None"
        if what == "dtype":
            return self.name(operand.elem.dtype)
        if what == "shape":
            return f"{operand.value}.shape"
        if operand.layer:
            return f"_metadata({operand.value}, {what!r})"
        return f"{self.name(getattr(self.library, what))}(_xp, {operand.value})"


class TensorWriter(Writer):
    """The writer for Tensors, whose result has a node.

    parted  the operands that may have one
    """

    common: ClassVar[dict[str, Any]] = Writer.common | {
        "_Node": Node,
        "_tick": tick,
        "_mark": mark,
        "_fill": fill,
        "_record": record,
        "_residual": compute_while_recording,
        "_constant": constant_like,
    }
    part = "_node"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        op = self.op
        self.class_name = "_View" if self.view in (True, "layout") else "_Tensor"
        r = self.out
        records = op.kind != "nondifferentiable"
        self.plain = (
            op.outputs == ()
            and type(self.result) is (View if self.view in (True, "layout") else Tensor)
            and r is not None
            and not r.opaque
            and r.level == self.elem.level
            and r.layered is self.deep
            and r.library is self.library
            # a setting may decide that the next result of a third party's function is floating
            and (r.floating or not records or self.ours)
            and op.name not in self.library.backend.rules
            and not (self.view == "layout" and self.deep)
        )
        self.parted = (
            [p for p in self.all if p.status == "own" and p.elem.floating]
            if records and (not self.plain or r.floating)
            else []
        )
        self.many = any(p.status == "many" for p in self.operands.values())

    def call(self) -> Lines:
        op, elem = self.op, self.elem
        constant = self.library.backend.kernels.get("constant")
        compared = op.operator in ("lt", "le", "gt", "ge", "eq", "ne")
        arrays = elem.floating and not self.deep and len(op.arrays) == 2
        if constant is not None and arrays and (op.kind == "elementwise" or compared):
            for n, p in list(self.operands.items()):
                if p.status == "scalar" and type(self.arguments[n]) in (float, int):
                    dtype, value = self.name(elem.dtype), f"_value{positions(op)[n]}"
                    yield f"    {value} = {self.name(constant)}(_xp, {p.x}, {dtype}, None)"
                    self.operands[n] = p._replace(value=value)
        yield from super().call()

    def _called(self, p: Operand) -> str:
        # the function of pow looks at the scalar, as its rule does
        return p.x if p.status == "scalar" and self.op.name == "pow" else super()._called(p)

    def begin(self) -> Lines:
        if not self.based:
            yield "    if _mode is not True:"
            yield f"        _mode.looked({tuple_text(self.op.roles)})"

    def lower(self, p: Operand) -> str:
        # the node may save it
        return f"{p.x}._frozen()" if p.elem.kind.cls is None else p.x

    # ----- What the general path takes -----

    def key_cells(self) -> str:
        """The cells of the entries of a key."""
        if all(p.cell == "None" for p in self.keyed):
            return "None"
        cells = [p.cell for p in self.keyed]
        return tuple_text(cells) if self.is_tuple else cells[0]

    def apart(self) -> tuple[str, str, str]:
        """The values of all parameters, the nodes of arrays, and the cells of all parameters."""
        values, keyed = self.values(), {"key": self.key_cells()}
        cells = keyed | {n: p.cell for n, p in self.operands.items()}
        return (
            tuple_text(values[n] for n in self.op.roles),
            tuple_text(map(self.part_text, self.operands.values())),
            tuple_text(cells.get(n, "None") for n in self.op.roles),
        )

    def generally(self) -> str:
        values, nodes, cells = self.apart()
        roles, top = tuple_text(self.op.roles), self.first(self.main)
        return f"_record(_op, {values}, {nodes}, {cells}, _ans, {top}, {roles})"

    # ----- Finish -----

    def wrapped(self) -> Lines:
        op = self.op
        yield f"    _result = _new({self.class_name})"
        yield "    _result._array = _ans"
        yield f"    _result._elem = {self.result_elem()}"
        if self.class_name == "_View":
            yield from self.ask()
            yield from self.as_view("not not _mode")
        else:
            yield "    _result._cell = _cell = []"
        if not self.parted:
            yield "    _result._node = None"
            yield "    return _result"
            return
        nodes = [self.part_of(p) for p in self.parted if p.x != "_each"]
        none = [f"{n} is None" for n in nodes]
        if self.many:
            none.insert(0, f"not _any({self.part_text(self.operands[self.long])})")
        yield f"    if {' and '.join(none)}:"
        yield "        _result._node = None"
        yield "        return _result"
        if self.class_name != "_View":
            yield from self.ask()
        returned = (
            "_result"
            if is_flat(op)
            else "_result if _mode is False else _mark(_result)"
            if self.based
            else "_mark(_result)"
        )
        pad = "    " * (self.class_name != "_View")
        yield f"{pad}    if not _mode:"
        yield f"{pad}        _result._node = None"
        yield f"{pad}        return {returned}"
        yield "    _result._node = _node = _Node()"
        yield "    _node.seq = _tick()"
        if self.many:
            yield from self.any_pattern("    ")
        elif len(nodes) == 1:
            yield from self.pattern((True,), "    ")
        elif len(nodes) == 2:
            yield f"    if {nodes[1]} is None:"
            yield from self.pattern((True, False), "        ")
            yield f"    elif {nodes[0]} is None:"
            yield from self.pattern((False, True), "        ")
            yield "    else:"
            yield from self.pattern((True, True), "        ")
        else:
            # the pattern of the first call at once, others as they come
            wants = [self.objects[p.x]._node is not None for p in self.parted]
            wants = wants if any(wants) else [True] * len(nodes)
            alike = (f"{n} is {'not ' * w}None" for n, w in zip(nodes, wants, strict=True))
            yield f"    if {' and '.join(alike)}:"
            yield from self.pattern(wants, "        ")
            yield "    else:"
            yield from self.any_pattern("        ")
        yield "    if _mode is not True:"
        yield f"        _mode.recorded(_node, {tuple_text(op.roles)}, _result)"
        yield "    return _result"

    def result_elem(self) -> str:
        """The text of the Element of the result, which has the dtype that it had at first."""
        r: Element = self.out
        if r is self.elem:
            return "_elem"
        if r.run is None:
            return self.name(r)
        for p in self.own:
            if p.elem is r and p.x != "_each":
                return f"{p.x}._elem"
        return f"{self.name(r.base)}.at(_elem.run, _elem.level, {self.deep})"

    def surprises(self) -> Lines:
        op, library = self.op, self.library
        if self.view == "ask":
            yield f"_shows(_op, {tuple_text(op.roles)})"
        function = library.backend.functions.get(op.name)
        ours = self.ours and (
            type(function) is not FunctionType or function.__module__.startswith("multigrad.")
        )
        if self.deep or not ours:
            yield from super().surprises()
        if self.view == "layout":
            yield f"not {self.name(library.is_c_contiguous)}(_xp, {self.main.value})"
            if not library.mutable:
                yield f"_type({self.main.x}) is _View"
        # a function that is not the library's may return its argument, which then is a view
        if self.class_name != "_View" and (callable(op.view) or op.forward is not None or not ours):
            yield from (
                f"_ans is {p.value}"
                for n, p in self.operands.items()
                if op.roles[n] == "array" and p.array
            )

    def ask(self) -> Lines:
        """Write the test whether the level records."""
        yield "    if _mode is not True:"
        yield (
            "        _mode = _mode if _mode.tells else _mode.base"
            if self.based
            else "        _mode = _mode.at(_elem.run, _elem.level)"
        )

    def pattern(self, wants: Sequence[bool], pad: str) -> Lines:
        """Fill in the node, for these wanted gradients of `parted`."""
        op = self.op
        moved = [p for p, w in zip(self.parted, wants, strict=True) if w]
        needs = tuple(
            tuple(q in moved for q in p.parts) if p.status == "list" else p in moved
            for p in (self.operands[n] for n in op.arrays)
        )
        r = self.out
        if conforms(op) or any(p.elem.base is not r.base for p in moved):
            yield from self.node_lines(needs, True, moved, pad)
        elif len(self.arrays) == 1:
            yield from self.node_lines(needs, False, moved, pad)
        else:
            shapes = [f"{p.value}.shape" for p in moved] + ["_ans.shape"] * (
                len(moved) < len(self.arrays)
            )
            yield f"{pad}if {' == '.join(shapes)}:"
            yield from self.node_lines(needs, False, moved, pad + "    ")
            yield f"{pad}else:"
            yield from self.node_lines(needs, True, moved, pad + "    ")

    def node_lines(self, needs: Any, conform: bool, moved: Sequence[Operand], pad: str) -> Lines:
        op, library = self.op, self.library
        rule = pullback(op, needs, self.out.complex, conform, library)
        saved, cells = [], []
        for name, source in zip(rule.plan, rule.sources, strict=True):
            numeric = op.kind == "elementwise" or isinstance(op.vjp, Rule) or name in op.vjp
            texts = OperandTexts(
                self,
                {"xp": "_library"},
                "_ans",
                "_residual(_op, {name!r}, {taken})",
                "_constant(_library, {x}, _ans)" if numeric else "",
            )
            saved.append(texts.text(name))
            if source is not None:
                cells.append(self.cell(name))
        if "key" in rule.plan and (key_cells := self.key_cells()) != "None":
            cells.append(key_cells)
        yield f"{pad}_node.rule = {self.name(rule)}"
        yield f"{pad}_node.saved = {saved[0] if rule.alone else tuple_text(saved)}"
        # a list alone, not the tuple of the cells of a key or of a list of arrays
        alone = len(cells) == 1 and not cells[0].endswith(")")
        yield f"{pad}_node.cells = {cells[0] if alone else tuple_text(cells) if cells else None}"
        nexts = [self.part_of(p) for p in moved]
        yield f"{pad}_node.next = {nexts[0] if rule.single else tuple_text(nexts)}"

    def cell(self, name: str) -> str:
        operand = self.operands.get(name)
        if name == "ans" or self.class_name == "_View":
            return "_cell"
        return "None" if operand is None else operand.cell

    def needs_text(self, p: Operand) -> str:
        """The text of whether a gradient is wanted for a parameter."""
        if p.status == "many":
            return f"_tuple([_each is not None for _each in {self.part_text(p)}])"
        if p.status == "list":
            return tuple_text(map(self.needs_text, p.parts))
        return f"{self.part_of(p)} is not None" if p in self.parted else "False"

    def any_pattern(self, pad: str) -> Lines:
        """Fill in the node for the gradients that are wanted now."""
        values, _, cells = self.apart()
        needs = tuple_text(map(self.needs_text, self.operands.values()))
        nodes = tuple_text("*" * bool(p.parts) + self.part_text(p) for p in self.operands.values())
        yield f"{pad}_fill(_node, _op, {needs}, {values}, {nodes}, {cells}, _ans, (_result,))"


writers: dict[Any, type[Writer]] = {None: TensorWriter}
"""The writer of a class of layers; None stands for Tensors."""


def write_by(writer: type[Writer], cls: type, **names: Any) -> None:
    """Let `writer` write the runners whose highest operand is of a class of layers.

    names  the objects that its texts refer to besides, as `_name`
    """
    writer.common = writer.common | {f"_{name}": x for name, x in names.items()}
    key_by_kind(cls)
    writers[cls] = writer
