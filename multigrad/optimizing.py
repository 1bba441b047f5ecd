"""Programs with the same results, bit for bit, and fewer calls.

One pass goes from the first step to the last. A second pass goes back and drops the calls whose
results are not needed. A call is dropped or replaced only if the result keeps its values, its dtype
and its order in memory. Zeros of different signs are different values; the payload of a nan may
change. The order in memory matters because it decides the order in which a sum is taken. It is the
recorded one for the result of an elementwise operation (a *dense* value), whose strides have no
gaps.

- Calls of constants are carried out, if the backend can (`evaluate`).
- A call that repeats the operation and the arguments of an earlier call is replaced by that call.
- x * 1, x / 1, x - 0, x + 0 (an integer, or -0.0), x**1, +x and -(-x) become x. So do changes of
  dtype, shape or order without effect.
- x + -y becomes x - y, x - -y becomes x + y, and x + (-y) * z becomes x - y * z.

Two outputs stay two values, since the caller may write to one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from math import copysign, prod
from typing import Any

from .program import Call, Guard, Program, Ref, Write, identity, is_on_numbers, refs
from .registry import OPS

LARGEST = 1 << 16
"""The largest number of elements of a result of constants that is kept."""

COPIES = frozenset(("copy_slices", "setitem"))
"""Operations that copy an array without gaps, and change the copy."""


Evaluate = Callable[[Call, tuple[Any, ...]], tuple[Any, ...] | None]


def optimized(
    program: Program,
    evaluate: Evaluate | None = None,
    uniform: Callable[[Any], Any] | None = None,
) -> Program:
    """Return a program with the inputs, outputs, guards and writes of `program`, in fewer calls.

    evaluate  given a Call and the values of its arguments, the tuple of its outputs. None, or an
              error, if the call has to stay in the program
    uniform   the Python scalar that every element of a constant equals. None if they differ, or if
              the constant might decide the order in memory of a result that no Spec names
    """
    pass_ = _Pass(program, evaluate, uniform)
    for step in program.steps:
        pass_.step(step)
    outputs = tuple(map(pass_.named, program.outputs))
    return live(Program(program.inputs, pass_.constants, pass_.specs, pass_.steps, outputs))


def live(program: Program) -> Program:
    """The program without the steps that outputs, guards and writes do not need."""
    needed = set(program.outputs)
    steps: list[Call | Guard | Write] = []
    for step in reversed(program.steps):
        if isinstance(step, Call):
            if needed.isdisjoint(step.outs) and not step.op.about.checks:
                continue
            needed.update(refs(step.args))
        else:
            needed.add(step.value)
        steps.append(step)
    constants = {n: x for n, x in program.constants.items() if n in needed}
    return replace(program, constants=constants, steps=steps[::-1])


class _Pass:
    """The state of the pass before a step: the steps so far, and the origin of each value.

    names  the value that replaces a replaced value
    calls  the call that a value is the output of, if a rule may ask for it
    """

    def __init__(
        self, program: Program, evaluate: Evaluate | None, uniform: Callable[[Any], Any] | None
    ) -> None:
        self.program, self.evaluate, self.uniform = program, evaluate, uniform
        self.specs, self.constants = dict(program.specs), dict(program.constants)
        self.outputs = set(program.outputs)
        self.steps: list[Call | Guard | Write] = []
        self.names: dict[int, Ref] = {}
        self.earlier: dict[Any, Call] = {}
        self.guards: set[Any] = set()
        self.calls: dict[int, Call] = {}
        self.dense: set[int] = set()
        self.fresh = count(max(program.specs, default=-1) + 1)
        self.used = Counter(
            n
            for step in program.steps
            for n in (refs(step.args) if isinstance(step, Call) else (step.value,))
        )
        self.used.update(program.outputs)
        self.scalars: dict[int, Any] = {}

    def named(self, number: int) -> int:
        return self.names[number].number if number in self.names else number

    def step(self, step: Call | Guard | Write) -> None:
        if isinstance(step, Call):
            self.call(step)
        elif isinstance(step, Write):
            self.steps.append(replace(step, value=self.named(step.value)))
        else:
            value = self.named(step.value)
            key = value, step.kind, repr(step.expected)
            if value not in self.constants and key not in self.guards:
                self.guards.add(key)
                self.steps.append(replace(step, value=value))

    def call(self, call: Call) -> None:
        if any(n in self.names for n in refs(call.args)):
            call = replace(call, args=filled(call.args, self.names))
        if is_on_numbers(self.program, call):
            self.steps.append(call)
            return
        if self.folded(call):
            return
        rule = RULES.get(call.op.name)
        if rule is not None:
            replacement = rule(self, call, *call.args)
            if isinstance(replacement, Ref):
                if self.rename(call.outs, (replacement.number,)):
                    return
            elif replacement is not None:
                call = replacement
        try:
            earlier = self.earlier.setdefault((call.op, identity(call.args)), call)
        except TypeError:  # an argument that cannot be hashed
            earlier = call
        if earlier is not call and self.rename(call.outs, earlier.outs):
            return
        self.steps.append(call)
        op = call.op
        if op.outputs == ():
            self.calls[call.outs[0]] = call
            if op.name in COPIES or (op.chapter == "elementwise" and not op.view):
                self.dense.add(call.outs[0])

    def rename(self, outs: Sequence[int], others: Sequence[int]) -> bool:
        """Replace the values `outs` by `others` from now on, unless two of them have to stay."""
        pairs = list(zip(outs, others, strict=True))
        if any(out in self.outputs and other in self.outputs for out, other in pairs):
            return False
        for out, other in pairs:
            self.names[out] = Ref(other)
            if out in self.outputs:
                self.outputs.add(other)
        return True

    def folded(self, call: Call) -> bool:
        """Carry out a call of constants, and return whether that was possible."""
        constants = self.constants
        if self.evaluate is None or call.op.about.checks:
            return False
        if not all(n in constants for n in refs(call.args)):
            return False
        if sum(prod(self.specs[out].shape) for out in call.outs if out >= 0) > LARGEST:
            return False
        try:
            outs = self.evaluate(call, filled(call.args, constants))
        except Exception:  # the program raises it when it runs
            return False
        if outs is None:
            return False
        constants.update((out, x) for out, x in zip(call.outs, outs, strict=True) if out >= 0)
        return True

    # The properties of values that rules use

    def scalar(self, x: Any) -> Any:
        """The Python scalar that every element of an operand equals, or None if unknown."""
        if type(x) is not Ref:
            return x if type(x) in (bool, int, float, complex) else None
        if x.number not in self.constants or self.uniform is None:
            return None
        if x.number not in self.scalars:
            self.scalars[x.number] = self.uniform(self.constants[x.number])
        return self.scalars[x.number]

    def same(self, x: Any, out: int) -> bool:
        """Whether the value `x` has the shape and the dtype of the result `out`."""
        a, b = self.specs[x.number], self.specs[out]
        return a.shape == b.shape and a.dtype == b.dtype and a.number is b.number is None

    def stays(self, x: Any, call: Call) -> Any:
        """`x` if the result of the call would be a copy of it, in the same order in memory."""
        return x if type(x) is Ref and self.alike(x, call.outs[0]) else None

    def alike(self, x: Any, out: int) -> bool:
        """Whether `x` and an elementwise result of it have equal shape, dtype and memory order."""
        orders = self.specs[x.number].order, self.specs[out].order
        return x.number in self.dense and self.same(x, out) and orders[0] == orders[1]

    def negated(self, x: Any) -> Any:
        """The operand y of an `x` that is -y, if it has the order in memory of `x`."""
        call = self.calls.get(x.number) if type(x) is Ref else None
        if call is None or call.op.name != "negative":
            return None
        y = call.args[0]
        return y if self.alike(y, x.number) else None

    def without_sign(self, x: Any) -> Any:
        """y, or the product y * z, of an `x` that is -y or (-y) * z.

        The product y * z is a new call. It replaces a product that is used only once.
        """
        y = self.negated(x)
        call = self.calls.get(x.number) if type(x) is Ref else None
        if (
            y is not None
            or call is None
            or call.op.name not in ("multiply", "divide")
            or self.used[x.number] > 1
            or self.kind(x.number) != "f"
        ):
            return y
        for i, factor in enumerate(call.args):
            y = self.negated(factor)
            if y is not None and self.same(y, x.number):
                n = next(self.fresh)
                self.specs[n] = self.specs[x.number]
                args = (y, call.args[1]) if i == 0 else (call.args[0], y)
                self.steps.append(replace(call, args=args, outs=(n,)))
                if x.number in self.dense:
                    self.dense.add(n)
                return Ref(n)
        return None

    def kind(self, out: int) -> str:
        """The first letter of the dtype's name.

        It is "f" for a float, "i" or "u" for an integer, "c" for a complex number, "b" for a
        boolean.
        """
        dtype = self.specs[out].dtype
        return str(getattr(dtype, "name", dtype)).rpartition(".")[2][:1]


def filled(args: tuple[Any, ...], values: dict[int, Any]) -> tuple[Any, ...]:
    """The arguments of a call, with these values in the place of Refs."""
    return tuple(
        values.get(x.number, x) if type(x) is Ref else filled(x, values) if type(x) is tuple else x
        for x in args
    )


# ----- Rules: the Ref or the Call that replaces a call, or None -----


def _is(x: Any, value: int) -> bool:
    return x is not None and type(x) is not bool and x == value


def _by_one(*kinds: str, commutes: bool = False) -> Callable[..., Any]:
    """The rule of an operation that 1 leaves unchanged, for results of these kinds.

    Complex numbers are excluded: (inf + 0j) * 1 has a nan.
    """

    def rule(p: _Pass, call: Call, x1: Any, x2: Any) -> Any:
        if p.kind(call.outs[0]) not in kinds:
            return None
        if _is(p.scalar(x2), 1):
            return p.stays(x1, call)
        return p.stays(x2, call) if commutes and _is(p.scalar(x1), 1) else None

    return rule


def _adds_nothing(p: _Pass, out: int, zero: Any) -> bool:
    """Whether x + zero is x.

    -0.0 + 0.0 is 0.0, so for floats only -0.0 adds nothing.
    """
    if not _is(zero, 0) or type(zero) is complex:
        return False
    return p.kind(out) in ("i", "u") or (
        type(zero) is float and copysign(1.0, zero) < 0 and p.kind(out) == "f"
    )


def _sum(p: _Pass, call: Call, x1: Any, x2: Any) -> Any:
    out = call.outs[0]
    if _adds_nothing(p, out, p.scalar(x2)):
        return p.stays(x1, call)
    if _adds_nothing(p, out, p.scalar(x1)):
        return p.stays(x2, call)
    return _signless(p, call, "subtract", x1, x2) or _signless(p, call, "subtract", x2, x1)


def _signless(p: _Pass, call: Call, op: str, x: Any, negative: Any) -> Call | None:
    """The call of `op` on x and y, for a `negative` that is -y, or None."""
    if type(x) is not Ref or type(negative) is not Ref or not p.same(negative, call.outs[0]):
        return None
    y = p.without_sign(negative)
    return None if y is None else replace(call, op=OPS[op], args=(x, y))


def _difference(p: _Pass, call: Call, x1: Any, x2: Any) -> Any:
    zero = p.scalar(x2)
    if type(zero) in (int, float) and zero == 0 and _adds_nothing(p, call.outs[0], -float(zero)):
        return p.stays(x1, call)  # -0.0 - 0.0 is -0.0
    return _signless(p, call, "add", x1, x2)


def _copies(call: Call) -> Any:
    """The setting `copy`, or None for an operation without it."""
    return dict(zip(call.op.roles, call.args, strict=True)).get("copy")


def _cast(p: _Pass, call: Call, x: Any, *settings: Any) -> Any:
    if not p.same(x, call.outs[0]):
        return None
    return x if _copies(call) is False else p.stays(x, call)


def _has_axes(p: _Pass, call: Call) -> bool:
    """Whether a view is what it views: one of a NumPy scalar, without axes, is an array."""
    return p.specs[call.outs[0]].shape != ()


def _unchanged(p: _Pass, call: Call, x: Any, *settings: Any) -> Any:
    """A view of all of `x` in its shape."""
    unchanged = not _copies(call) and p.same(x, call.outs[0]) and _has_axes(p, call)
    return x if unchanged else None


def _permuted(p: _Pass, call: Call, x: Any, axes: Any) -> Any:
    trivial = type(axes) is tuple and axes == tuple(range(len(axes)))
    return x if trivial and _has_axes(p, call) else None


RULES: dict[str, Callable[..., Any]] = {
    "add": _sum,
    "astype": _cast,
    "broadcast_to": _unchanged,
    "divide": _by_one("f"),
    "multiply": _by_one("f", "i", "u", commutes=True),
    "negative": lambda p, call, x: p.negated(x),
    "permute_dims": _permuted,
    "positive": lambda p, call, x: p.stays(x, call),
    "pow": _by_one("f", "i", "u"),
    "reshape": _unchanged,
    "subtract": _difference,
}
