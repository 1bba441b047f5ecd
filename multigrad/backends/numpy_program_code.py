"""The text of a Python function for a program, and the arrays that it computes in.

They are made from the program and the results of its trial.

    def program(frame, a0, a1):
        b1, b2, v3 = frame
        multiply(a0, a1, b1)
        ...
        return t9,

Names: `a` an input, `k` a constant, `b` an array in the arena, `v` a view of one, `s` a cell for a
NumPy scalar that is combined with arrays, `t` a value that is made at each call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..program import (
    Call,
    Guard,
    Missed,
    Program,
    Ref,
    compatible,
    is_on_numbers,
    on_numbers,
    refs,
)
from .numpy_program_forms import INFIX, VIEWS, Form, form, plain
from .numpy_program_frame import (
    LINE,
    Memory,
    Name,
    Slot,
    Text,
    aligned,
    buffer_in,
    by_rows,
    dense,
    place,
    seen_of,
    slot_size,
)
from .numpy_program_plan import STATIC, Plan
from .numpy_program_trial import Seen

FREED = 4096
"""The size in bytes from which an array that is made at each call is dropped early."""

SCALARS = frozenset(("matmul", "max", "mean", "min", "prod", "sum"))
"""Operations whose form also converts a scalar to an array."""


class Changed(Exception):
    """A result has another layout than in the trial."""


def written(
    xp: Any,
    program: Program,
    functions: Sequence[Any],
    facts: dict[int, Seen],
    arena: int,
    poison: bool = False,
) -> Text:
    """The code of a program.

    If an arena for all of it would take more than `arena` bytes, the largest arrays are made at
    each call.

    poison  fill memory with invalid values once it must not be read,
            so that a test can detect a read
    """
    plan, limit = Plan(xp, program, facts), arena
    while True:
        writer = Code(plan, functions, limit, poison)
        writer.write()
        if writer.out.nbytes <= arena:
            return writer.out
        limit = min(limit, max(writer.out.slots) - 1) // 2


class Code:
    """The code while it is being written."""

    def __init__(self, plan: Plan, functions: Sequence[Any], limit: int, poison: bool) -> None:
        self.life, self.program, self.facts, self.own, self.raw = (
            plan,
            plan.program,
            plan.facts,
            plan.own,
            plan.raw,
        )
        self.functions, self.limit, self.poison = functions, limit, poison
        self.out = Text(
            scope={
                "changed": Changed,
                "missed": Missed,
                "compatible": compatible,
                "array": np.array,
                "empty": np.empty,
                "zeros": np.zeros,
                "ndarray": np.ndarray,
            }
        )
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.memory: dict[int, Memory] = {}
        self.consts: dict[Any, str] = {}
        self.buffers: dict[Any, str] = {}
        self.framed: set[str] = set()
        self.boxes: dict[int, str] = {}
        self.cast: dict[Any, str] = {}
        self.free: dict[int, list[int]] = {}
        self.line, self.at = "", 0
        self.made: dict[str, Any] = {}  # the arrays of the first frame
        self.slots: list[Any] = []
        self.views: dict[int, list[str]] = {}
        for n in self.program.inputs:
            self.names[n], self.memory[n] = f"a{n}", Memory("input", n)
        for n, x in self.program.constants.items():
            self.names[n], self.memory[n] = self.const(x), Memory("constant")

    # ----- names -----

    def const(self, x: Any, name: str = "k") -> str:
        key: Any = id(x)
        if key not in self.consts:
            if name == "k" or self.out.scope.get(name, x) is not x:
                name = f"{name}{len(self.consts)}"
            self.out.scope[name] = x
            self.consts[key] = name
            self.consts[name] = x  # keeps the object alive, so that its id stays unique
        return self.consts[key]

    def text(self, x: Any) -> str:
        kind = type(x)
        if kind is Ref:
            return self.use(self.names[x.number])
        if kind is tuple:
            return f"({''.join(self.text(v) + ', ' for v in x)})"
        if x is None or kind in (bool, int, str) or (kind is float and math.isfinite(x)):
            return f"({x!r})" if kind in (int, float) and (x < 0 or x != x) else repr(x)
        if kind is slice:
            return (
                self.const(x)
                if any(isinstance(v, Ref) for v in (x.start, x.stop, x.step))
                else self.slice_(x)
            )
        return "..." if x is Ellipsis else self.const(x)

    def slice_(self, x: slice) -> str:
        key = "slice", repr(x)
        if key not in self.consts:
            self.consts[key] = self.const(x)
        return self.consts[key]

    def value(self, x: Any) -> Any:
        return self.program.constants.get(x.number) if type(x) is Ref else None

    def use(self, name: str) -> str:
        if name in self.framed:
            self.out.used[name] = None
        return name

    def array(self, x: Any, dtype: Any) -> str:
        """An operand that a ufunc need not convert.

        Numbers become 0-d arrays, where that changes neither value nor dtype of the result.
        """
        if type(x) is Ref:
            seen = self.facts[x.number]
            if seen.kind == "scalar":
                return self.use(self.box(x.number))
            if (
                seen.kind != "number"
                or dtype is None
                or dtype.kind not in "fc"
                or self.program.specs[x.number].number not in (int, float)
            ):
                return self.text(x)
            number = x.number, dtype
            if number not in self.cast:
                name = self.cast[number] = f"n{x.number}_{len(self.cast)}"
                self.add(f"{name} = array({self.text(x)}, {self.const(dtype, dtype.name)})")
            return self.cast[number]
        key = "number", repr(x), type(x), dtype
        if key not in self.consts:
            constant = _constant(x, dtype)
            self.consts[key] = self.text(x) if constant is None else self.const(constant)
        return self.consts[key]

    def box(self, n: int) -> str:
        """A cell in the frame for a scalar, filled."""
        if n in self.program.constants:
            self.boxes.setdefault(n, self.const(np.asarray(self.program.constants[n])))
        if n not in self.boxes:
            name = self.recipe(f"s{n}", place, (self.facts[n].dtype,))
            self.boxes[n] = name
            self.add(f"{self.use(name)}[()] = {self.names[n]}")
        return self.boxes[n]

    def recipe(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], made: Any = None
    ) -> str:
        self.made[name] = function(*args) if made is None else made
        self.out.recipes.append((name, function, args))
        self.framed.add(name)
        return name

    # ----- statements -----

    def add(self, line: str) -> None:
        self.lines.append(f"    {line}{self.line}")
        self.line = ""

    def write(self) -> None:
        for i, step in enumerate(self.program.steps):
            self.at = i
            self.line = f"  # {step.line}" if step.line else ""
            if isinstance(step, Call):
                self.call(step)
            elif isinstance(step, Guard):
                self.guard(step)
            for root in self.life.dying[i]:
                self.release(root)
        self.line = ""
        self.finish()

    def call(self, step: Call) -> None:
        n = step.outs[0] if step.outs else -1
        seen = self.facts.get(n)
        name = step.op.name
        if step.op.outputs != () or seen is None or seen.kind == "other":
            self.plainly(step)
        elif seen.kind != "array":
            self.scalar(step)
        elif (name in STATIC and self.static(step, seen)) or (
            name in VIEWS and self.known(name) and self.view(step, seen)
        ):
            pass
        elif (
            seen.root != n
            or (way := form(self, step, self.raw[self.at], self.own)) is None
            or not self.place(step, way, seen)
        ):
            self.plainly(step)

    def known(self, name: str) -> bool:
        """Whether a function is the backend's own or NumPy's, whose views are known."""
        function = self.raw[self.at]
        library = str(getattr(function, "__module__", "")).partition(".")[0]
        return self.own.get(name) is function or library in (
            "numpy",
            "array_api_compat",
            "_operator",
        )

    def guard(self, step: Guard) -> None:
        x, k = self.text(Ref(step.value)), self.const(step)
        if step.kind == "bool":
            self.add(
                f"if {'not ' if step.expected else ''}{x}: raise missed({k}, {not step.expected})"
            )
        elif step.kind == "int":
            self.add(f"if int({x}) != {step.expected!r}: raise missed({k}, int({x}))")
        elif step.kind == "type":
            kind = self.const(step.expected)
            self.add(f"if type({x}) is not {kind}: raise missed({k}, type({x}))")
        elif step.kind == "shape":
            self.add(f"if {x}.shape != {tuple(step.expected)!r}: raise missed({k}, {x}.shape)")
        else:
            self.add(
                f"if not compatible({step.kind!r}, {self.const(step.expected)}, {x}): raise "
                f"missed({k}, {x})"
            )

    def scalar(self, step: Call) -> None:
        """A result that is a NumPy scalar or a number, computed by operators if possible."""
        n, function = step.outs[0], self.raw[self.at]
        if is_on_numbers(self.program, step):
            function = on_numbers(step.op)
        self.names[n] = f"t{n}"
        if function in INFIX and len(step.args) == 2:
            self.add(
                f"t{n} = {self.text(step.args[0])} {INFIX[function]} {self.text(step.args[1])}"
            )
            return
        way = (
            form(self, step, function, self.own)
            if step.op.name in SCALARS and self.facts[n].kind == "scalar"
            else None
        )
        if way is not None and way.fresh:
            self.add(f"t{n} = {way.fresh}")
        else:
            self.plainly(step)

    def static(self, step: Call, seen: Seen) -> bool:
        """Make a result a constant if it depends only on the shape of an operand."""
        x, n = step.args[0], step.outs[0]
        if (
            type(x) is not Ref
            or any(True for _ in refs(step.args[1:]))
            or seen.nbytes > self.limit
            or not dense(seen)
        ):
            return False
        like = np.ones((1,) * len(self.facts[x.number].shape), self.facts[x.number].dtype)
        value = self.functions[self.at](like, *step.args[1:])
        made = buffer_in(
            np.empty(max(seen.nbytes, 1), np.uint8), seen.shape, seen.dtype, seen.strides
        )
        made[...] = value.reshape(-1)[0]
        self.names[n], self.memory[n] = self.const(made), Memory("constant")
        return True

    def view(self, step: Call, seen: Seen) -> bool:
        """Make a view once, if its array stays in place between calls."""
        x, n = step.args[0], step.outs[0]
        if type(x) is not Ref or any(True for _ in refs(step.args[1:])):
            return False
        before, function = self.facts[x.number], self.functions[self.at]
        if before.kind == "scalar" and seen.root == n:
            base = self.box(x.number)
            if base not in self.framed:
                return False
        elif before.kind != "array" or seen.root == n:
            return False
        elif step.op.name in SAME and before.alike(seen):
            self.names[n] = self.names[x.number]
            return True
        elif self.names[x.number] in self.framed:
            base = self.names[x.number]
        elif self.memory[seen.root].kind == "constant":
            view = function(self.out.scope[self.names[x.number]], *step.args[1:])
            self.names[n] = self.const(view)
            return True
        else:
            return self.each_call(step, seen)
        view = function(self.made[base], *step.args[1:])
        if (
            type(view) is not np.ndarray
            or not seen.alike(seen_of(view))
            or not np.may_share_memory(view, self.made[base])
        ):
            return False
        self.names[n] = self.recipe(f"v{n}", function, (Name(base), *step.args[1:]), view)
        if before.kind == "scalar":
            self.memory[n] = Memory("kept")
        return True

    def each_call(self, step: Call, seen: Seen) -> bool:
        """A view of an array that is new at each call, by a method of it."""
        x, n, name = self.text(step.args[0]), step.outs[0], step.op.name
        if name == "getitem":
            key = step.args[1] if type(step.args[1]) is tuple else (step.args[1],)
            if not seen.shape and Ellipsis not in key:  # NumPy returns a scalar here
                key = (*key, ...)
            made = f"{x}[{self.text(key)}]"
        elif name in ("reshape", "expand_dims"):
            made = f"{x}.reshape({seen.shape})"
        elif name in METHODS:
            made = f"{x}.{METHODS[name]}" + (
                f"({self.text(step.args[1])})" if len(step.args) > 1 else ""
            )
        else:
            return False
        self.add(f"t{n} = {made}")
        self.names[n] = f"t{n}"
        self.views.setdefault(seen.root, []).append(f"t{n}")
        return True

    def plainly(self, step: Call) -> None:
        """A call of the backend's function."""
        outs = [f"t{n}" if n >= 0 else "_" for n in step.outs]
        left = (
            outs[0] if step.op.outputs == () else ", ".join(outs) + ("," if len(outs) == 1 else "")
        )
        self.add(f"{left} = {self.called(step)}")
        for n in step.outs:
            if n < 0:
                continue
            seen = self.facts[n]
            self.names[n] = f"t{n}"
            if seen.kind == "array":
                if seen.root == n:
                    self.memory[n] = Memory(
                        "kept" if step.op.name in VIEWS else "theirs", name=f"t{n}"
                    )
                else:
                    self.views.setdefault(seen.root, []).append(f"t{n}")
                if step.op.name not in VIEWS:
                    self.add(
                        f"if t{n}.strides != {seen.strides} or t{n}.shape != {seen.shape}: "
                        "raise changed"
                    )

    def called(self, step: Call) -> str:
        args = step.args
        own = step.op.name == "getitem" and self.own.get("getitem") is self.raw[self.at]
        if own and self.facts[args[0].number].kind == "array" and self.facts[step.outs[0]].shape:
            return f"{self.text(args[0])}[{self.text(args[1])}]"
        texts: list[str] = []
        for x, parameter in zip(args, step.op.signature.parameters.values(), strict=True):
            if parameter.kind is parameter.VAR_POSITIONAL:
                texts += map(self.text, x)
            else:
                texts.append(
                    f"{parameter.name}={self.text(x)}"
                    if parameter.kind is parameter.KEYWORD_ONLY
                    else self.text(x)
                )
        function = on_numbers(step.op) if is_on_numbers(self.program, step) else self.raw[self.at]
        return f"{self.const(function, step.op.name.replace('.', '_'))}({', '.join(texts)})"

    # ----- places of results -----

    def place(self, step: Call, way: Form, seen: Seen) -> bool:
        n = step.outs[0]
        if n in self.life.direct:
            name = self.names[self.life.direct[n]]
            self.out.store = self.out.store or len(self.lines) + 3
            self.memory[n] = Memory("input")  # never freed
        elif (library := self.library(step, way)) is not None:
            root, m = library
            name = self.names[m]
            if self.memory[root].kind == "input":
                self.out.store = self.out.store or len(self.lines) + 3
            self.memory[n], self.memory[root] = self.memory[root], Memory("gone")
        elif n in self.life.fresh or seen.nbytes > self.limit or not seen.nbytes or not dense(seen):
            return self.anew(step, way, seen)
        else:
            name, self.memory[n] = self.buffer(seen)
        self.names[n] = self.use(name)
        for line in way.into(name):
            self.add(line)
        return True

    def library(self, step: Call, way: Form) -> tuple[int, int] | None:
        """The root whose memory a result takes over, and the operand in it."""
        n = step.outs[0]
        for x in way.reuse:
            if type(x) is not Ref or self.facts[x.number].kind != "array":
                continue
            root = self.facts[x.number].root
            kind = self.memory[root].kind
            fits = kind == "call" or (kind == "arena" and n not in self.life.fresh)
            if kind == "input":
                fits = self.life.may_lie_in(n, self.memory[root].slot, self.at)
            if fits and self.life.last[root] == self.at and self.life.may_reuse(step, way, root):
                return root, x.number
        return None

    def anew(self, step: Call, way: Form, seen: Seen) -> bool:
        n = step.outs[0]
        name = f"t{n}"
        if way.fresh:
            self.add(f"{name} = {way.fresh}")
        elif seen.strides == by_rows(seen):
            self.add(
                f"{name} = {way.start}({seen.shape}, {self.const(seen.dtype, seen.dtype.name)})"
            )
            for line in way.into(name):
                self.add(line)
        else:
            return False
        self.names[n], self.memory[n] = name, Memory("call", name=name)
        return True

    def buffer(self, seen: Seen) -> tuple[str, Memory]:
        """An array in a free slot, or in a new one."""
        size = slot_size(seen.nbytes)
        fitting = [s for s in self.free if size <= s <= 2 * size and self.free[s]]
        if fitting:
            slot = self.free[min(fitting)].pop()
        else:
            slot = len(self.slots)
            self.slots.append(aligned(size))
            self.out.slots.append(size)
            self.out.nbytes += size + LINE
        key = slot, seen.shape, seen.dtype, seen.strides
        if key not in self.buffers:
            made = buffer_in(self.slots[slot], seen.shape, seen.dtype, seen.strides)
            self.buffers[key] = self.recipe(
                f"b{len(self.buffers)}",
                buffer_in,
                (Slot(slot), seen.shape, seen.dtype, seen.strides),
                made,
            )
        return self.buffers[key], Memory("arena", slot)

    def release(self, root: int) -> None:
        memory = self.memory.get(root)
        if memory is None or root in self.life.fresh:
            return
        if memory.kind == "arena":
            self.free.setdefault(self.out.slots[memory.slot], []).append(memory.slot)
            if self.poison:
                name, seen = (
                    f"z{memory.slot}",
                    Seen("array", -1, (self.out.slots[memory.slot],), np.dtype(np.uint8), (1,)),
                )
                if name not in self.framed:
                    args = seen.shape, seen.dtype, seen.strides
                    self.recipe(
                        name,
                        buffer_in,
                        (Slot(memory.slot), *args),
                        buffer_in(self.slots[memory.slot], *args),
                    )
                self.add(f"{self.use(name)}.fill(255)")
        elif memory.kind in ("call", "theirs") and self.facts[root].nbytes >= FREED:
            self.add(
                " = ".join(dict.fromkeys((memory.name, *self.views.get(root, ())))) + " = None"
            )

    # ----- the end -----

    def finish(self) -> None:
        """Write the last statements: copies of shared outputs, the writes, the return."""
        results = [self.result(i, n) for i, n in enumerate(self.program.outputs)]
        targets = {w.target for w in self.life.writes}
        values = []
        for w in self.life.writes:
            if w.value in self.life.direct:
                continue
            x = self.text(Ref(w.value))
            if self.facts[w.value].root in targets:
                self.add(f"w{w.value} = array({x})")
                x = f"w{w.value}"
            values.append((w.target, x))
        if values:
            self.out.store = self.out.store or len(self.lines) + 3
        for target, x in values:
            self.add(f"{self.names[target]}[...] = {x}")
        self.add(f"return {''.join(f'{x}, ' for x in results) or '()'}")
        used = list(self.out.used)
        unpacked = (
            ", ".join(used) + ("," if len(used) == 1 else "") + " = frame" if used else "pass"
        )
        arguments = "".join(f", {self.names[n]}" for n in self.program.inputs)
        self.out.source = "\n".join(
            [f"def program(frame{arguments}):", f"    {unpacked}", *self.lines, ""]
        )
        self.out.first = tuple(self.made[name] for name in used)

    def result(self, i: int, n: int) -> str:
        """The output `i`, which is the value `n`: a copy, unless its memory is its own."""
        seen, x = self.facts[n], self.text(Ref(n))
        if seen.kind != "array" or (
            self.memory[seen.root].kind in ("call", "theirs")
            and self.life.fresh.get(seen.root) == n
            and n not in self.program.outputs[:i]
        ):
            return x
        self.add(f"r{i} = array({x}{', order=' + repr('C') if 0 in seen.strides else ''})")
        return f"r{i}"


SAME = frozenset(
    ("broadcast_to", "matrix_transpose", "moveaxis", "permute_dims", "reshape", "squeeze")
)
"""Views that are their argument itself if strides and shape are the same."""

METHODS = {
    "imag": "imag",
    "matrix_transpose": "mT",
    "permute_dims": "transpose",
    "real": "real",
    "squeeze": "squeeze",
}
"""Views by methods and attributes of arrays."""


def _constant(x: Any, dtype: Any) -> Any:
    """The 0-d array that a ufunc on arrays of `dtype` makes of the number `x`.

    It is None if the ufunc may make another one.
    """
    kind = type(x)
    if dtype is None or kind is bool or not plain(x):
        return None
    if dtype.kind in "iu":
        if kind is not int or not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
            return None
    elif dtype.kind not in "fc":
        return None
    if kind is complex and dtype.kind == "f":
        dtype = np.result_type(dtype, x)
    with np.errstate(all="ignore"):
        out = np.asarray(x, dtype)
    if dtype.kind in "fc" and bool(np.isfinite(out)) != bool(np.isfinite(x)):
        return None  # it overflows, and must warn
    out.setflags(write=False)
    return out
