"""Straight Python code for a program, which calls its operations one by one: the default `compile`.

    def run(v0, v1):
        v2 = multiply(v0, v1)
        if (got := bool(v2)) is not True: raise Missed(g0, got)
        ...
        return (v7,)

A name is reused once its value is no longer needed; values whose names are not reused are dropped.
A value that may share memory with another one is copied before it is returned, and before any
write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from ..errors import PACKAGE
from ..optimizing import optimized
from ..program import (
    Call,
    Guard,
    Missed,
    Program,
    Ref,
    Torn,
    Write,
    compatible,
    function_of,
    got,
    is_on_numbers,
    refs,
    shared,
)


def compiled(xp: Any, program: Program) -> Callable[..., Any]:
    """The default kernel `compile`: see multigrad.program."""
    program = optimized(program)
    text = Text(xp, program)
    lines = list(text.lines())
    run = function_of_lines("run", lines, text.scope)
    run.source, run.memory = "\n".join([*lines, ""]), 0
    return run  # type: ignore[no-any-return]


def function_of_lines(name: str, lines: list[str], scope: dict[str, Any]) -> Any:
    """The function of this name in a scope of its own, which does not refer to it."""
    scope = dict(scope)
    exec(compile("\n".join(lines), "<multigrad program>", "exec"), scope)
    return scope.pop(name)


class Text:
    """The text of a program, and the meaning of its names."""

    def __init__(self, xp: Any, program: Program) -> None:
        self.xp = xp
        self.program = program
        backend = xp._backend
        self.mutable, scalars = backend.capabilities.mutable, backend.scalar_types
        write = backend.kernel("write")
        self.scope: dict[str, Any] = {
            "Missed": Missed,
            "Torn": Torn,
            "got_of": got,
            "compatible": compatible,
            "copy": lambda x: x if isinstance(x, scalars) else xp.asarray(x, copy=True),
            "write": lambda x, value: write(xp, x, value),
            "__name__": "multigrad.compiling",
        }
        self.named: dict[int, str] = {}
        self.places: dict[int, str] = {}

    def lines(self) -> Iterator[str]:
        program = self.program
        yield f"def run({', '.join(f'v{n}' for n in program.inputs)}):"
        for n, x in program.constants.items():
            self.scope[f"v{n}"] = x
        last = self.last_uses()
        writes = [step for step in program.steps if isinstance(step, Write)]
        for i, step in enumerate(program.steps):
            free = [self.place(n) for n in last.get(i, ()) if n in self.places]
            if isinstance(step, Call):
                expression = self.call(step)  # with the names that arguments have until here
                for n in step.outs:
                    if n >= 0:
                        self.places[n] = free.pop() if free else f"v{n}"
                yield f"    {self.assigned(step, expression)}{self.comment(step.line)}"
                free += [self.place(n) for n in last.get(i, ()) if n in step.outs]
            elif isinstance(step, Guard):
                yield f"    {self.guard(step)}{self.comment(step.line)}"
            if free:
                yield f"    {' = '.join(free)} = None"
        yield from self.end(writes)

    def place(self, number: int) -> str:
        return self.places.get(number) or f"v{number}"

    def comment(self, line: str) -> str:
        return f"  # {line.removeprefix(PACKAGE)}" if line else ""

    def last_uses(self) -> dict[int, list[int]]:
        """The values that become unused after each step.

        Inputs, constants and values for the end are excluded.
        """
        program = self.program
        lasting = {
            *program.inputs,
            *program.constants,
            *program.outputs,
            *(s.value for s in program.steps if isinstance(s, Write)),
        }
        last: dict[int, int] = {}
        for i, step in enumerate(program.steps):
            used = (
                (*refs(step.args), *(n for n in step.outs if n >= 0))
                if isinstance(step, Call)
                else (step.value,)
            )
            for n in used:
                if n not in lasting:
                    last[n] = i
        uses: dict[int, list[int]] = {}
        for n, i in last.items():
            uses.setdefault(i, []).append(n)
        return uses

    def arguments(self, call: Call) -> Iterator[str]:
        """The arguments of a call as text, in the form that its function takes."""
        if is_on_numbers(self.program, call):
            yield from map(self.expression, call.args)
            return
        for p, x in zip(call.op.signature.parameters.values(), call.args, strict=True):
            if p.kind is p.VAR_POSITIONAL:
                yield from map(self.expression, x)
            else:
                yield f"{p.name}=" * (p.kind is p.KEYWORD_ONLY) + self.expression(x)

    def function(self, call: Call) -> Any:
        """The function of the library for a call, with the signature of the operation."""
        return function_of(self.xp, self.program, call)

    def call(self, call: Call) -> str:
        name = call.op.name.replace(".", "_")
        if is_on_numbers(self.program, call):
            name = f"number_{name}"
        return f"{self.name(self.function(call), name)}({', '.join(self.arguments(call))})"

    def assigned(self, call: Call, expression: str) -> str:
        targets = ", ".join(self.place(n) if n >= 0 else "_" for n in call.outs)
        comma = "," if call.op.outputs != () and len(call.outs) == 1 else ""
        return f"{targets}{comma} = {expression}"

    def guard(self, guard: Guard) -> str:
        name, x = self.name(guard, f"g{guard.place}"), self.place(guard.value)
        if guard.kind == "bool":
            wrong = f"not {x}" if guard.expected else x
            return f"if {wrong}: raise Missed({name}, {not guard.expected})"
        expected = self.name(guard.expected)
        return (
            f"if not compatible({guard.kind!r}, {expected}, got := got_of({guard.kind!r}, "
            f"{x})): raise Missed({name}, got)"
        )

    def expression(self, x: Any) -> str:
        """The text of an argument; an argument without a text gets a name."""
        if isinstance(x, Ref):
            return self.place(x.number)
        kind = type(x)
        if x is None or kind in (bool, int, str) or (kind is float and isfinite(x)):
            return repr(x)
        if x is Ellipsis:
            return "..."
        if kind is tuple:
            return f"({', '.join(map(self.expression, x))}{',' if len(x) == 1 else ''})"
        return self.name(x)

    def name(self, x: Any, name: str = "") -> str:
        """The name of an object: the given one, unless that is the name of another object."""
        if id(x) not in self.named:
            text = name if name.isidentifier() else f"c{len(self.named)}"
            if self.scope.get(text, x) is not x:
                text = f"{text}_{len(self.named)}"
            self.named[id(x)], self.scope[text] = text, x
        return self.named[id(x)]

    def end(self, writes: list[Write]) -> Iterator[str]:
        """The return values and the writes, after the last point of failure."""
        program, memory = self.program, shared(self.program) if self.mutable else set()
        outputs: list[str] = []
        for i, n in enumerate(program.outputs):
            again = self.mutable and n in program.outputs[:i]
            if (n in memory or again) and program.specs[n].number is None:
                outputs.append(f"o{i}")
                yield f"    o{i} = copy({self.place(n)})"
            else:
                outputs.append(self.place(n))
        for write in writes:
            if write.value in memory:
                yield f"    w{write.target} = copy({self.place(write.value)})"
        if writes:
            yield "    try:"
            for write in writes:
                value = f"w{write.target}" if write.value in memory else self.place(write.value)
                yield f"        write(v{write.target}, {value}){self.comment(write.line)}"
            yield "    except Exception as error:"
            yield "        raise Torn(error)"
        yield f"    return ({''.join(f'{x}, ' for x in outputs)})"
