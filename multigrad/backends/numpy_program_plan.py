"""The plan of a program before its code is written.

It says how long memory is needed, which values are new arrays, and which are computed directly into
an argument.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..optimizing import taken
from ..program import Call, Guard, Program, Ref, Write, is_on_numbers
from .numpy_program_forms import INFIX, VIEWS, Form, form
from .numpy_program_trial import Seen

STATIC = frozenset(("zeros_like", "ones_like", "full_like", "empty_like"))
"""Operations that only read the shape of their argument."""


class Plan:
    """The lifetimes of the values of a program.

    last    the last step that reads the memory of a root
    fresh   the roots that must be new at each call, because an output is the root itself or a view
            of all of it: {root: output}. Any other output is copied
    direct  the arguments that values are computed directly into: {value: target}
    filled  the step at which that happens: {target: step}
    barrier the last step that may raise, or miss: there are no writes before it
    dying   by step, the roots that no later step reads
    raw     the function of the raw namespace for each call
    """

    def __init__(self, xp: Any, program: Program, facts: dict[int, Seen]) -> None:
        self.program, self.facts = program, facts
        self.own = xp._backend.functions
        self.raw = [_raw(xp, step) for step in program.steps]
        steps, end = program.steps, len(program.steps)
        self.last: dict[int, int] = {}  # the last step that reads the memory of a root
        self.writes = [step for step in steps if isinstance(step, Write)]
        self.reads: dict[int, list[int]] = {}  # by the id of a call
        for i, step in enumerate(steps):
            if isinstance(step, Call):
                read = self.reads[id(step)] = taken(step.args)
                for n in read:
                    self.last[facts[n].root] = i
                for n in step.outs:
                    if n >= 0:
                        self.last.setdefault(facts[n].root, i)
            elif isinstance(step, Guard):
                self.last[facts[step.value].root] = i
        outputs = set(program.outputs)
        roots = Counter(facts[n].root for n in outputs)
        self.fresh = {
            r: n
            for n in outputs
            if roots[r := facts[n].root] == 1
            and facts[n].kind == "array"
            and facts[n].nbytes == facts[r].nbytes
            and 0 not in facts[n].strides
        }
        self.fresh |= {n: n for n in outputs if facts[n].root == n}
        for n in outputs:
            self.last[facts[n].root] = end
        self.filled: dict[int, int] = {}
        self.barrier = -1
        self.direct = self.direct_writes()
        for step in self.writes:
            self.last[facts[step.value].root] = end
        self.dying: list[list[int]] = [[] for _ in range(end + 1)]
        for r, i in self.last.items():
            self.dying[i].append(r)

    def direct_writes(self) -> dict[int, int]:
        """The targets that a value is computed into: {value: target}.

        After the first such statement no step may raise or miss, or read the old values of the
        target.
        """
        steps, facts = self.program.steps, self.facts
        targets, values = (
            Counter(w.target for w in self.writes),
            Counter(w.value for w in self.writes),
        )
        read = {facts[v].root for v in values}
        if not targets:
            return {}
        risky = (
            i
            for i, step in enumerate(steps)
            if isinstance(step, Guard) or (isinstance(step, Call) and not self.safe(i, step))
        )
        barrier = self.barrier = max(risky, default=-1)
        made = {n: i for i, step in enumerate(steps) if isinstance(step, Call) for n in step.outs}
        direct = {}
        for w in self.writes:
            i = made.get(w.value, -1)
            if (
                i <= barrier
                or targets[w.target] > 1
                or values[w.value] > 1
                or facts[w.value].root != w.value
                or facts[w.value].kind != "array"
            ):
                continue
            if (
                w.value in self.fresh
                or not facts[w.value].alike(facts[w.target])
                or self.last.get(w.target, -1) > i
            ):
                continue
            call = steps[i]
            assert isinstance(call, Call)
            way = self.dry(i, call)
            if w.target not in read and way is not None and self.may_reuse(call, way, w.target):
                direct[w.value] = w.target
                self.filled[w.target] = i
        return direct

    def may_lie_in(self, n: int, target: int, at: int) -> bool:
        """Whether a value computed at a step may be written directly into an argument.

        From then on, the old value is not read, except as an operand of this step.
        """
        until, last = self.filled.get(target, -1), self.last.get(n, at)
        if at <= self.barrier or n in self.fresh or last > until:
            return False
        if last < until:
            return True
        call = self.program.steps[until]
        assert isinstance(call, Call)
        way = self.dry(until, call)
        return way is not None and self.may_reuse(call, way, n)

    def safe(self, i: int, call: Call) -> bool:
        """Whether a call cannot raise."""
        if (
            is_on_numbers(self.program, call)
            or self.raw[i] in INFIX
            or self.dry(i, call) is not None
        ):
            return True
        return call.op.name in STATIC or (
            call.op.name in VIEWS and self.facts[call.outs[0]].root != call.outs[0]
        )

    def dry(self, i: int, call: Call) -> Form | None:
        """The form of a call, before its operands have names."""
        return (
            form(_Dry(self.facts, self.program), call, self.raw[i], self.own)
            if call.op.outputs == ()
            else None
        )

    def may_reuse(self, call: Call, made: Form, root: int) -> bool:
        """Whether the result may overwrite the memory of `root`.

        The call must not read it, or only as an operand at the same places. An array of one complex
        number is not overwritten: NumPy has a separate loop for one element in place, which rounds
        a product differently from the loop that makes a new array.
        """
        facts = self.facts
        read = {n for n in self.reads[id(call)] if facts[n].root == root}
        if not read:
            return True
        n = read.pop()
        return (
            not read
            and any(type(x) is Ref and x.number == n for x in made.reuse)
            and facts[n].kind == "array"
            and facts[n].alike(facts[call.outs[0]])
            and facts[n].nbytes == facts[root].nbytes
            and not (facts[n].dtype.kind == "c" and facts[n].nbytes == facts[n].dtype.itemsize)
        )


class _Dry:
    """A writer without output."""

    def __init__(self, facts: dict[int, Seen], program: Program) -> None:
        self.facts, self.program = facts, program

    def value(self, x: Any) -> Any:
        return self.program.constants.get(x.number) if type(x) is Ref else None

    def text(self, x: Any) -> str:
        return ""

    def const(self, x: Any, name: str = "k") -> str:
        return ""

    def array(self, x: Any, dtype: Any) -> str:
        return ""


def _raw(xp: Any, step: Any) -> Any:
    """The function of the raw namespace for a call, without wrappers that pass keywords."""
    if not isinstance(step, Call):
        return None
    function = xp
    for part in step.op.name.split("."):
        function = getattr(function, part)
    return function
