"""What the parameters of rules stand for: a rule takes values by name.

`meanings` has the names that the rules of an operation may take. `value` finds what one stands for
among the values of a call; `Texts` writes the expression for it in generated code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.element import SCALARS, Library, library_of
from ..core.graph import OutputInfo
from ..core.level import Layer, outside
from ..core.tensor import strip, wrap
from ..errors import GradientError
from ..registry import METADATA, Op, Rule, per_operation


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


# ----- Residuals: arrays that are neither arguments nor outputs, as the permutation of a sort -----


@per_operation
def residuals(op: Op) -> dict[str, Rule]:
    """The functions that compute the residuals that rules of `op` take, by name."""
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    return {
        name: f
        for rule in (*rules, *([] if op.jvp is None else [op.jvp]))
        for name, f in rule.residuals.items()
    }


def compute(op: Op, name: str, xp: Any, *args: Any) -> Any:
    """Compute the residual `name` from the arguments of its function, with namespace `xp`."""
    function: Any = residuals(op)[name].fn
    out = function(xp, *args)
    if not hasattr(out, "dtype") or not xp.isdtype(out.dtype, ("bool", "integral")):
        kind = getattr(out, "dtype", type(out).__name__)
        raise GradientError(
            f"the residual {name!r} of the operation {op.name!r} is of {kind}; it must be an "
            "array of integers or booleans. Let the rule compute what depends on an argument "
            "differentiably."
        )
    return out


def compute_while_recording(op: Op, name: str, library: Library, *args: Any) -> Any:
    """Compute a residual for a new node.

    Arguments are raw arrays, or, if a value is itself a layer, layers only, as for rules.
    """
    if not any(isinstance(x, Layer) for x in args):
        return compute(op, name, library.xp, *args)
    with outside():
        out = compute(
            op,
            name,
            library.bound,
            *(wrap(x) if hasattr(x, "dtype") and not isinstance(x, Layer) else x for x in args),
        )
    return strip(out)


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
