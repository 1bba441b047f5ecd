"""Programs as text, and their memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.element import library_of
from ..errors import PACKAGE
from ..program import Call, Guard, Ref, Write, is_on_numbers, memory_of
from .variants import Entry, Variant


def lines(name: str, entry: Entry, variant: Variant) -> Iterator[str]:
    """A program as lines of text, with an empty one at the end.

    They have the arguments, the operations with their lines in the user's code, the guards, the
    writes, and the kind of code that runs it.
    """
    program = variant.program
    yield f"program of {name}:"
    for number, place in zip(program.inputs, entry.inputs, strict=True):
        yield f"    v{number}: argument, {entry.kinds[place]}"
    for number in program.constants:
        spec = program.specs[number]
        yield f"    v{number}: constant, shape {spec.shape}, dtype {spec.dtype}"
    for step in program.steps:
        yield f"    {_step(program, step)}".ljust(78) + (
            f"  # {step.line.removeprefix(PACKAGE)}" if step.line else ""
        )
    yield f"    return {', '.join(f'v{n}' for n in program.outputs) or 'nothing'}"
    source = getattr(variant.run, "source", "")
    if source:
        yield "which runs as:"
        yield from (f"    {line}" for line in source.splitlines())
    yield ""


def _step(program: Any, step: Call | Guard | Write) -> str:
    if isinstance(step, Call):
        outs = ", ".join(f"v{n}" if n >= 0 else "_" for n in step.outs)
        arguments = ", ".join(
            f"{name}={_shown(x)}" if step.op.roles[name] == "plain" else _shown(x)
            for name, x in zip(step.op.roles, step.args, strict=True)
            if x is not None
        )
        of = "number " if is_on_numbers(program, step) else ""
        return f"{outs} = {of}{step.op.name}({arguments})"
    if isinstance(step, Guard):
        expected = step.expected.__name__ if step.kind == "type" else repr(step.expected)
        return f"guard {step.kind} of v{step.value} is {expected}"
    return f"write v{step.value} into v{step.target}"


def _shown(x: Any) -> str:
    if isinstance(x, tuple):
        return f"({', '.join(map(_shown, x))}{',' if len(x) == 1 else ''})"
    return f"v{x.number}" if isinstance(x, Ref) else repr(x)


def memory(variant: Variant) -> int:
    """The bytes that a program keeps between calls."""
    total = memory_of(variant.run)
    for x in variant.program.constants.values():
        library = library_of(x)
        if library is not None:
            total += library.backend.kernel("storage")(library.xp, x)[1]
    return total
