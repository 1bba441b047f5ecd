"""What the parameters of rules stand for: a rule takes values by name.

`meanings` has the names that the rules of an operation may take. `value` finds what one stands for
among the values of a call; `Texts` writes the expression for it in generated code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.element import SCALARS, library_of
from ..core.graph import OutputInfo
from ..core.level import Layer
from ..registry import METADATA, Op, per_operation
from .residuals import compute, residuals


class Meaning(NamedTuple):
    """What a name stands for.

    kind   "argument", of the parameter `of`; "metadata" of an argument, which `what` names; for a
           list, a tuple with that of each array. "result": the output `of`, or all that the
           operation returns, `ans`; "info", its OutputInfo. "residual", computed from what it
           `takes`. "given": what whoever calls the rule knows, as `xp`, `needs`, cotangents and
           tangents
    of     the name of the argument, the output or the residual, or the name in the context
    index  the position of the argument among all parameters, or of the output; None for `ans`
    """

    kind: str
    of: str
    index: Any = None
    what: str = ""
    takes: tuple[str, ...] = ()


@per_operation
def meanings(op: Op) -> dict[str, Meaning]:
    """Every name that the rules of `op` may take."""
    outputs = {"ans": None} | {o: k for k, o in enumerate(op.outputs or ())}
    arguments = {a: i for i, a in enumerate(op.roles)}
    context = ["xp", "g", "t", "needs", "size", "batched"]
    context += [f"g_{o}" for o in op.outputs or ()] + [f"t_{a}" for a in op.arrays]
    return (
        {n: Meaning("given", n) for n in context}
        | {
            f"{a}_{what}": Meaning("metadata", a, arguments[a], what)
            for a in op.arrays
            for what in METADATA
        }
        | {f"{o}_info": Meaning("info", o, k) for o, k in outputs.items()}
        | {n: Meaning("residual", n, takes=f.takes) for n, f in residuals(op).items()}
        | {o: Meaning("result", o, k) for o, k in outputs.items()}
        | {a: Meaning("argument", a, i) for a, i in arguments.items()}
    )


def _sources(op: Op, names: Iterable[str]) -> Iterator[Meaning]:
    """What the values of `names` come from, with that of a residual in its place."""
    for name in names:
        m = meanings(op)[name]
        yield from _sources(op, m.takes) if m.kind == "residual" else (m,)


def arrays_taken(op: Op, names: Iterable[str]) -> list[str]:
    """The array parameters that `names` depend on: themselves, by metadata, or by a residual."""
    sources = (m.of for m in _sources(op, names) if m.kind in ("argument", "metadata"))
    return list(dict.fromkeys(a for a in sources if op.roles[a] != "plain"))


# ----- Values -----


def value(op: Op, name: str, context: Mapping[str, Any], values: Sequence[Any], ans: Any) -> Any:
    """The value of a name, from the context, the arguments and the result."""
    m = meanings(op)[name]
    if m.kind == "given":
        return context[name]
    if m.kind == "argument":
        return values[m.index]
    if m.kind == "result":
        return ans if m.index is None else ans[m.index]
    if m.kind == "residual":
        return compute(op, name, *(value(op, n, context, values, ans) for n in m.takes))
    if m.kind == "info":
        return info(ans if m.index is None else ans[m.index])
    x = values[m.index]
    if op.roles[m.of] == "arrays":
        return tuple(metadata(v, m.what) for v in x)
    return metadata(x, m.what)


def info(x: Any) -> Any:
    """The OutputInfo of an output, as `materialized` takes it; a tuple for several outputs."""
    if isinstance(x, (tuple, list)):
        return tuple(map(info, x))
    return OutputInfo(x.shape, x.dtype, metadata(x, "device")) if hasattr(x, "dtype") else None


def metadata(x: Any, what: str) -> Any:
    """The metadata of an array; of other objects None, but for the scalar of a Python scalar."""
    if what == "scalar":
        return x if type(x) in SCALARS else None
    if isinstance(x, Layer):
        return x._memory_order() if what == "order" else getattr(x, what, None)
    library = library_of(x) if what in ("order", "device") and x is not None else None
    return getattr(x, what, None) if library is None else getattr(library, what)(library.xp, x)


# ----- Texts -----


@dataclass(eq=False)
class Texts:
    """The expressions for names in generated code.

    A writer that knows more of an argument defines `argument` or `metadata` anew: of code for one
    signature, say, that it is None, or a list of three arrays.

    context   the expressions of the names in the context
    values    the expressions of arguments; those that are left out are variables of that name
    ans       the expression of the result
    computed  that of a residual, in which `{name}` is its name, and `{taken}` what it takes
    certain   the parameters whose values are certainly arrays, which have a shape and a dtype
    """

    op: Op
    context: Mapping[str, str]
    values: Mapping[str, str]
    ans: str
    computed: str
    certain: Collection[str] = ()

    def text(self, name: str) -> str:
        """The expression for a name."""
        m = meanings(self.op)[name]
        if m.kind == "given":
            return self.context[name]
        if m.kind == "residual":
            return self.computed.format(name=name, taken=", ".join(map(self.text, m.takes)))
        if m.kind in ("argument", "metadata"):
            return self.argument(m.of) if m.kind == "argument" else self.metadata(m.of, m.what)
        result = self.ans if m.index is None else f"{self.ans}[{m.index}]"
        return result if m.kind == "result" else f"_info({result})"

    def argument(self, name: str) -> str:
        """The expression for an argument."""
        return self.values.get(name, name)

    def metadata(self, name: str, what: str) -> str:
        """The expression for the metadata of an argument."""
        x = self.argument(name)
        if name in self.certain and what in ("shape", "dtype"):
            return f"{x}.{what}"
        if self.op.roles[name] == "arrays":
            return f"tuple(_metadata(_each, {what!r}) for _each in {x})"
        return f"_metadata({x}, {what!r})"
