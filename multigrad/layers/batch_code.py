"""The text of runners for batches.

The library is called on whole batches; if a value is itself a layer, multigrad's function is called
on the next inner values.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.element import SCALARS, Library
from ..core.level import Layer, outside
from ..core.tensor import lifted, strip
from ..dispatch.general import same_structure
from ..dispatch.generated import tuple_text
from ..dispatch.signature import Operand
from ..dispatch.writer import Lines, Unwritten, Writer
from ..registry import behind_batch

# ----- Functions that runners call -----


def raised(x: Any, library: Library, ndim: int) -> Any:
    """A batch with axes of length 1 after its first, so that an example has `ndim` dimensions."""
    missing = ndim + 1 - len(x.shape)
    if not missing:
        return x
    xp = library.bound if isinstance(x, Layer) else library.xp
    return xp.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))


def leading(xp: Any, x: Any, layered: bool) -> Any:
    """An operand without a batch, for a batching rule: with a first axis of length 1."""
    if layered:
        x = lifted(x)
    return x if x is None or type(x) in SCALARS else xp.expand_dims(x, axis=0)


def strip_each(results: Any) -> Any:
    """Several outputs of a rule, constants among them as raw arrays."""
    return same_structure(results, [strip(x) for x in results])


# ----- The text -----


class BatchWriter(Writer):
    """The writer for batches, whose first axis counts the examples."""

    common: ClassVar[dict[str, Any]] = Writer.common | {
        "_behind": behind_batch,
        "_leading": leading,
        "_lifted": lifted,
        "_outside": outside,
        "_raised": raised,
        "_strip": strip,
        "_strip_each": strip_each,
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        op = self.op
        kind = op.batching
        lists = any(p.parts for p in self.operands.values())
        axes = {"axis", "axes"} & set(op.roles)
        if (
            kind is None
            or kind == "form"
            or (kind == "elementwise" and (lists or "key" in op.roles))
            or (kind in ("axis", "leading") and (lists or len(self.operands) != 1))
            or (kind == "axis" and not axes)
        ):
            raise Unwritten
        self.shift: dict[str, str] = {}
        self.axis = "axis" if "axis" in op.roles else "axes"

    def call(self) -> Lines:
        kind = self.op.batching
        if kind == "elementwise":
            yield from self.aligned()
        elif kind == "axis":
            yield from self.shifted()
        elif kind == "leading":
            yield f"    if {self.main.value}.ndim < 3:"
            yield f"        {self.again}"
        else:
            yield from self.by_rule()
            return
        yield from super().call()

    def called(self) -> dict[str, str]:
        return super().called() | self.shift

    def aligned(self) -> Lines:
        """Align the axes of examples at the end, by axes of length 1 behind the batch."""
        if len(self.arrays) == 1:
            return
        ranks = {p: f"{self._called(p)}.ndim{' - 1' * (p.status == 'own')}" for p in self.arrays}
        own = [p for p in self.arrays if p.status == "own"]
        if len(own) == len(self.arrays):
            yield f"    if not {' == '.join(f'{p.value}.ndim' for p in own)}:"
        elif len(self.arrays) == 2:
            other = next(p for p in self.arrays if p.status != "own")
            yield f"    if {own[0].value}.ndim <= {self._called(other)}.ndim:"
        else:
            yield f"    if not {' == '.join(ranks.values())}:"
        yield f"        _ndim = _max({', '.join(ranks.values())})"
        for p in own:
            yield f"        {p.value} = _raised({p.value}, _library, _ndim)"

    def shifted(self) -> Lines:
        """Count axes from the one after the batch."""
        name = self.axis
        axis = self.arguments[name]
        yield f"    _ndim = {self.main.value}.ndim - 1"
        if axis is None:
            yield "    _shifted = _tuple(_range(1, _ndim + 1))"
        else:
            yield "    if not _ndim:"
            yield f"        {self.again}"
            shifted = f"_behind({self.texts[name]}, _ndim)"
            if type(axis) is int:
                shifted = f"{name} % _ndim + 1 if -_ndim <= {name} < _ndim else {shifted}"
            yield f"    _shifted = {shifted}"
        self.shift = {name: "_shifted"}

    def by_rule(self) -> Lines:
        """Call the batching rule, on raw arrays, or, if a value is a layer, on layers only."""
        op = self.op
        takes = op.batching.takes
        first = self.operands.get(next(iter(op.roles)))
        if "axis" in op.roles and first is not None and first.status == "own":
            axis = self.arguments["axis"]
            if axis is not None:  # perhaps an axis of 0-d examples
                yield f"    if {first.value}.ndim == 1:"
                yield f"        {self.again}"
        settings = {n: x for n, x in self.called().items() if n in self.texts}
        if self.deep:
            settings = {n: f"_lifted({x})" for n, x in settings.items()}
        arguments = self.expressed(self.leading) | settings
        arguments |= {
            "xp": "_library.bound" if self.deep else "_xp",
            "size": f"{self.first(self.main)}._array.shape[0]",
            "batched": "{" + ", ".join(f"{n!r}: {self.batched(n)}" for n in op.roles) + "}",
        }
        self.scope["_rule"] = op.batching.fn
        call = f"_ans = _rule({', '.join(arguments[n] for n in takes)})"
        if not self.deep:
            yield f"    {call}"
            return
        yield "    with _outside():"
        yield f"        {call}"
        yield f"    _ans = {'_strip(_ans)' if op.outputs == () else '_strip_each(_ans)'}"

    def batched(self, name: str) -> str:
        """For a parameter of a rule: whether it is batched, or a tuple of this for its parts."""
        operand = self.operands.get(name)
        if operand is None:
            if self.keyed and name == "key":
                own = tuple(p.status == "own" for p in self.keyed)
                return repr(own if self.is_tuple else own[0])
            text = self.texts[name]
            return f"(False,) * _len({text}) if _type({text}) is _tuple else False"
        if operand.status == "many":
            return f"(True,) * _len({operand.value})"
        if operand.status == "list":
            return repr(tuple(p.status == "own" for p in operand.parts))
        return repr(operand.status == "own")

    def leading(self, p: Operand) -> str:
        """An array for a rule: with the batch as its first axis, of length 1 if it has none."""
        x = self._called(p)
        if p.status in ("own", "many"):
            return f"_lifted({x})" if self.deep else x
        if p.status == "none":
            return x
        return f"_leading({'_library.bound' if self.deep else '_xp'}, {x}, {self.deep})"

    def generally(self) -> str:
        return f"_made(_op, {tuple_text(self.op.roles)}, _ans, {self.first(self.main)})"

    def wrapped(self) -> Lines:
        """Wrap the result, as a view if it is one."""
        r, generally = self.out, f"return {self.generally()}"
        yield "    _result = _new(_Batched)"
        yield "    _result._array = _ans"
        same = r.base is self.elem.base and self.elem.layered is self.deep
        at = f"{self.name(r.base)}.at(_elem.run, _elem.level, {self.deep}, _Batched)"
        yield f"    _result._elem = {'_elem' if same else at}"
        if self.view == "layout":
            # a computed array on its own memory can always be reshaped without a copy
            first = next(iter(self.op.roles))
            yield f"    if {first}._view is not None or _hasattr({first}, '_given'):"
            yield f"        {generally}"
        elif self.view == "ask":
            yield f"    _shown = _shows(_op, {tuple_text(self.op.roles)})"
            yield "    if _shown is not True:"
            yield "        if _shown:"
            yield f"            {generally}"
            yield from _no_view("        ")
        if self.view:
            yield from self.as_view()
            yield "    return _result"
        else:
            yield from _no_view("    ")


def _no_view(pad: str) -> Lines:
    yield f"{pad}_result._cell = []"
    yield f"{pad}_result._view = None"
    yield f"{pad}return _result"
