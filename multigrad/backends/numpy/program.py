"""NumPy: programs as straight-line code.

The first call with inputs of given strides is a trial: it runs the operations one by one and notes
the properties of each result. Then Python code is written for those strides: ufuncs with `out=`, in
an arena planned by liveness, on views that are made once (program_code.py). The code is used
if its results are equal to those of the trial to the last bit; otherwise the operations run one by
one (straight.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ...optimizing import LARGEST, Evaluate, filled, live, optimized
from ...program import (
    Call,
    Guard,
    Missed,
    Program,
    Write,
    carried_out,
    compatible,
    got,
    refs,
)
from .. import straight
from .program_code import Code
from .program_forms import Seen

STRIDES = 8
"""For how many combinations of strides a program has code; for others it runs one by one."""


def compiled(xp: Any, program: Program, *, arena: int) -> Replay:
    """A function that runs `program` on NumPy arrays, and keeps at most `arena` bytes.

    The limit holds for inputs of given strides. See `multigrad/program.py`.
    """
    return Replay(xp, live(program), arena)


def evaluator(xp: Any, program: Program) -> Evaluate:
    """The function that carries out calls of constants while a program is optimized."""

    def evaluate(call: Call, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with np.errstate(all="raise"):  # a warning must be repeated at each call
            result = carried_out(xp, program, call, args)
        outs = (result,) if call.op.outputs == () else tuple(result)
        return outs if all(isinstance(x, (np.ndarray, np.generic)) for x in outs) else None

    return evaluate


def uniform(x: Any) -> Any:
    """The scalar that fills an array, or None.

    An array of three axes might decide the order in memory of a result that no Spec names.
    """
    x = np.asarray(x)
    ordered = (x.flags.forc and x.ndim < 3) or sum(map(bool, x.strides)) < 2
    if not (0 < x.size <= LARGEST and ordered) or x.dtype.kind not in "fiu":
        return None
    first = x[(0,) * x.ndim]
    return first.item() if same_bits(x, np.broadcast_to(first, x.shape)) else None


class Replay:
    """A program for NumPy arrays, as a function of its inputs."""

    def __init__(self, xp: Any, program: Program, arena: int) -> None:
        self._xp, self._recorded, self._arena = xp, program, arena
        self._program = optimized(program, evaluator(xp, program), uniform)
        self._codes: dict[Any, Callable[..., tuple[Any, ...]]] = {}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        key = _layout(inputs)
        run = self._codes.get(key)
        if run is None and len(self._codes) < STRIDES:
            return self._first(key, inputs)
        return (run or self._one_by_one)(*inputs)

    def at(self, *inputs: Any) -> Callable[..., tuple[Any, ...]]:
        """The code for inputs of these strides, which does not compare them."""
        return self._codes.get(_layout(inputs), self)

    @cached_property
    def _one_by_one(self) -> Callable[..., tuple[Any, ...]]:
        return straight.compiled(self._xp, self._recorded)

    def _first(self, key: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Write the code for inputs of these strides, and compare it with a trial."""
        arguments = dict(zip(self._program.inputs, inputs, strict=True))
        with np.errstate(all="ignore"):
            values, _ = trial(self._xp, self._recorded, inputs)
            _, facts = trial(self._xp, self._program, inputs)
            code = Code(self._xp, self._program, facts, inputs, self._arena)
            run = function_of_code(code, self._one_by_one)
        writes = [step for step in self._recorded.steps if isinstance(step, Write)]
        targets = [np.asarray(arguments[w.target]) for w in writes]
        before = [np.array(x) for x in targets]
        expected = [
            *(copy(values[n]) for n in self._recorded.outputs),
            *(np.array(values[w.value]) for w in writes),
        ]
        outputs = run(*inputs)
        if all(map(same_bits, [*outputs, *targets], expected)):
            self._codes[key] = run
            return outputs
        for target, x in zip(targets, before, strict=True):
            target[...] = x
        self._codes[key] = self._one_by_one
        return self._one_by_one(*inputs)

    @property
    def source(self) -> str:
        """The code for the first strides; before the first call, the operations one by one."""
        first: Any = next(iter(self._codes.values()), self._one_by_one)
        return str(first.source)

    @property
    def memory(self) -> int:
        """The bytes that frames hold between calls."""
        runs: list[Any] = [run for run in self._codes.values() if run is not self._one_by_one]
        return sum(run.nbytes * len(run.frames) for run in runs)


def _layout(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([x.strides if type(x) is np.ndarray else type(x) for x in inputs])


def function_of_code(code: Code, changed: Any) -> Callable[..., tuple[Any, ...]]:
    """The function that a Code writes.

    It calls `changed` if a value has another kind or layout than at the trial.

    frames  the arrays that callers compute in, which wait for the next call: those of one call, of
            simultaneous calls, and of calls inside of a call, as far as the arena has room
    nbytes  the size of one
    """
    lines, frames = list(code.lines()), list[Any]()  # the lines decide what a frame has
    most = max(1, code.arena // max(code.nbytes, 1))
    scope = code.scope | {"frames": frames, "most": most, "changed": changed}
    making = list(code.frame_lines())
    if making:
        scope["frame"] = straight.function_of_lines("frame", making, scope)
    run = straight.function_of_lines("run", lines, scope)
    run.source = "\n".join([*making, *lines, ""])
    run.frames, run.nbytes = frames, code.nbytes
    return run  # type: ignore[no-any-return]


def seen(number: int, x: Any, root: int | None = None) -> Seen:
    kind = type(x)
    if kind is np.ndarray:
        root = number if root is None else root
        return Seen("array", root, x.shape, x.dtype, x.strides, x.nbytes)
    if isinstance(x, np.generic):
        return Seen("scalar", number, (), x.dtype)
    return Seen("number" if kind in (int, float, complex, bool) else "other", number)


def trial(
    xp: Any, program: Program, inputs: Sequence[Any]
) -> tuple[dict[int, Any], dict[int, Seen]]:
    """Run a program operation by operation, and note the properties of all values.

    Strides and sharing of memory follow from those of the inputs, so they are the same for all
    inputs of the same strides. It returns the values that are left at the end, and the properties.
    """
    values = program.constants | dict(zip(program.inputs, inputs, strict=True))
    facts = {n: seen(n, x) for n, x in values.items()}
    last = straight.Text(xp, program).last_uses()
    for i, step in enumerate(program.steps):
        if isinstance(step, Call):
            result = carried_out(xp, program, step, filled(step.args, values))
            outs = (result,) if step.op.outputs == () else tuple(result)
            for n, x in zip(step.outs, outs, strict=True):
                if n >= 0:
                    values[n], facts[n] = x, seen(n, x, _root(step, x, values, facts))
        elif isinstance(step, Guard):
            answer = got(step.kind, values[step.value])
            if not compatible(step.kind, step.expected, answer):
                raise Missed(step, answer)
        for n in last.get(i, ()):
            del values[n]
    return values, facts


def _root(step: Call, x: Any, values: dict[int, Any], facts: dict[int, Seen]) -> int | None:
    """The value that owns the memory of a result, if an operand does."""
    if type(x) is not np.ndarray:
        return None
    for n in refs(step.args):
        v = values[n]
        if type(v) is np.ndarray and (
            v is x or ((x.base is not None or v.base is not None) and np.may_share_memory(x, v))
        ):
            return facts[n].root
    return None


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results are equal to the last bit, in dtype, shape and kind.

    The payload of a nan does not count.
    """
    if type(a) is not type(b):
        return False
    if not isinstance(a, (np.ndarray, np.generic)):
        return repr(a) == repr(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    same = ((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
    return bool(same.all())
