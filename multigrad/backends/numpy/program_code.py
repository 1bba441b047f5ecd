"""The text of the Python function that runs a program on NumPy arrays of given strides.

    def frame():
        m0 = aligned(80)
        b0 = ndarray((10,), float64, m0, 0, (8,))
        ...
        return b0, s4

    def run(v0, v1):
        try: arrays = frames.pop()
        except IndexError: arrays = frame()
        try:
            b0, s4 = arrays
            multiply(v0, v1, b0)
            ...
            return v9,
        finally: frames.append(arrays)

Names: `b` an array in the arena, `w` a view that is made once, `s` an array for a NumPy scalar that
is combined with arrays, `v` an input or a value that is made at each call, `c` a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...program import Call, Guard, Program, Ref, Write, is_on_numbers, refs
from ..kernels import is_dense
from ..straight import Text
from .program_forms import Form, Forms, InArray, Seen

VIEWS: dict[str, str] = {
    "broadcast_to": "",
    "expand_dims": "",
    "flip": "",
    "getitem": "",
    "imag": ".imag",
    "linalg.diagonal": "",
    "matrix_transpose": ".mT",
    "moveaxis": "",
    "permute_dims": ".transpose({})",
    "real": ".real",
    "reshape": "",
    "squeeze": ".squeeze({})",
}
"""Operations whose view depends on the memory of the argument alone, with NumPy's attributes."""

LARGE = 4096
"""The size in bytes from which an array that is made at each call is dropped early."""
LINE = 64
"""Arrays in the arena begin at cache lines."""


class Code(Text):
    """The code while it is being written. If `nbytes`, the size of a frame, would exceed `arena`,
    further arrays are made at each call.

    last      the last step that reads the memory of a root
    fresh     the roots that must be new at each call, because an output is the root itself or a
              view of all of it: {root: output}. Any other output is copied
    direct    the arguments that values are computed into: {value: argument}
    slots     the places in the arena of the roots that are there
    per_call  the roots that are made at each call, and whether they may be overwritten
    """

    def __init__(
        self, xp: Any, program: Program, facts: dict[int, Seen], inputs: Sequence[Any], arena: int
    ) -> None:
        super().__init__(xp, program)
        self.facts, self.inputs, self.arena = facts, inputs, arena
        self.nbytes = 0
        functions: Sequence[Any] = aligned, np.array, np.empty, np.ndarray, np.zeros
        self.scope |= {f.__name__: f for f in functions}
        self.scope |= dict.fromkeys(("changed", "frame", "arrays", "frames", "most", "run"))
        self.body: list[str] = []
        self.add = self.body.append
        self.frame: dict[str, str] = {}  # the expressions of the arrays of a frame
        self.writing = -1  # the line of the body that is the first to write an argument
        self.slots: dict[int, int] = {}
        self.sizes: list[int] = []
        self.free: dict[int, list[int]] = {}
        self.buffers: dict[Any, str] = {}
        self.boxes: dict[int, str] = {}
        self.per_call: dict[int, bool] = {}
        self.maker = Forms(program, facts, xp._backend.functions)
        self.forms = [
            self.maker.of(step, self.function(step)) if isinstance(step, Call) else None
            for step in program.steps
        ]
        self.plan()

    # ----- how long memory is needed -----

    def root(self, number: int) -> int:
        return self.facts[number].root

    def plan(self) -> None:
        program, facts = self.program, self.facts
        end = len(program.steps)
        self.writes = [step for step in program.steps if isinstance(step, Write)]
        self.reads = [
            refs(step.args) if isinstance(step, Call) else [step.value] for step in program.steps
        ]
        self.last: dict[int, int] = {}
        for i, (step, read) in enumerate(zip(program.steps, self.reads, strict=True)):
            outs = [n for n in step.outs if n >= 0] if isinstance(step, Call) else []
            self.last |= {self.root(n): end if isinstance(step, Write) else i for n in read}
            for n in outs:
                self.last.setdefault(self.root(n), i)
        outputs = set(program.outputs)
        self.last |= {self.root(n): end for n in outputs}
        roots = Counter(map(self.root, outputs))
        self.fresh = {
            r: n
            for n in outputs
            if roots[r := self.root(n)] == 1
            and facts[n].kind == "array"
            and facts[n].nbytes == facts[r].nbytes
            and 0 not in facts[n].strides
        }
        self.direct = self.computed_in_place()
        self.dying: list[list[int]] = [[] for _ in range(end + 1)]
        for root, i in self.last.items():
            self.dying[i].append(root)

    def computed_in_place(self) -> dict[int, int]:
        """The values that can be computed directly into an argument: {value: argument}.

        No step after that may raise, miss, or read the old value of the argument.
        """
        steps, barrier, direct = self.program.steps, -1, dict[int, int]()
        for i, step in enumerate(steps if self.writes else ()):
            if isinstance(step, Guard) or (
                isinstance(step, Call)
                and self.forms[i] is None
                and not is_on_numbers(self.program, step)
                and not self.is_view(step)
            ):
                barrier = i
        at = {n: i for i, step in enumerate(steps) if isinstance(step, Call) for n in step.outs}
        targets, values = (Counter(getattr(w, x) for w in self.writes) for x in ("target", "value"))
        read = {self.root(n) for n in values}
        for w in self.writes:
            i, n, target = at.get(w.value, -1), w.value, w.target
            if (
                i > barrier
                and targets[target] == values[n] == 1
                and target not in read
                and self.forms[i] is not None
                and self.facts[n].kind == "array"
                and self.root(n) == n
                and n not in self.fresh
                and self.facts[n].alike(self.facts[target])
                and self.last.get(target, -1) <= i
                and self.may_overwrite(i, n, target)
            ):
                direct[n] = target
        return direct

    def is_view(self, call: Call) -> bool:
        """Whether the result of a call is a view that NumPy or this backend makes."""
        n = call.outs[0]
        return (
            call.op.name in VIEWS
            and self.facts[n].kind == "array"
            and self.root(n) != n
            and refs(call.args) == [getattr(call.args[0], "number", -1)]
            and self.maker.is_usual(call, self.function(call))
        )

    def may_overwrite(self, i: int, n: int, root: int) -> bool:
        """Whether the result `n` of a call may overwrite the memory of `root`.

        The call must not read it, or only as an operand at the same places. An array of one complex
        number is not overwritten: NumPy has a separate loop for one element in place, which rounds
        a product differently from the loop that makes a new array.
        """
        form, facts = self.forms[i], self.facts
        read = {m for m in self.reads[i] if facts[m].root == root}
        if not read:
            return True
        m = read.pop()
        return (
            not read
            and form is not None
            and Ref(m) in form.reuse
            and facts[m].kind == "array"
            and facts[m].alike(facts[n])
            and facts[m].nbytes == facts[root].nbytes
            and not (facts[m].dtype.kind == "c" and facts[m].nbytes == facts[m].dtype.itemsize)
        )

    # ----- statements -----

    def lines(self) -> Iterator[str]:
        last = self.last_uses()
        for n, x in self.program.constants.items():
            self.places[n] = self.name(x)
        for i, step in enumerate(self.program.steps):
            begin = len(self.body)
            if isinstance(step, Call):
                self.take(i, step)
            elif isinstance(step, Guard):
                self.add(self.guard(step))
            if len(self.body) > begin:
                self.body[begin] += self.comment(step.line)
            for root in self.dying[i]:
                self.release(root)
            dropped = [
                self.place(n)
                for n in last.get(i, ())
                if self.root(n) in self.per_call and self.facts[self.root(n)].nbytes >= LARGE
            ]
            if dropped:
                self.add(f"{' = '.join(dropped)} = None")
        self.finish()
        return self.whole()

    def names(self) -> str:
        """The arrays that a frame has, but for the memory that they lie in."""
        names = [name for name in self.frame if name[0] != "m"]
        return f"{', '.join(names)}{',' * (len(names) == 1)}"

    def frame_lines(self) -> Iterator[str]:
        """The function that makes a frame, if there is one."""
        if self.frame:
            yield "def frame():"
            for name, x in self.frame.items():
                yield f"    {name} = {x}"
            yield f"    return {self.names()}"
            yield ""

    def take(self, i: int, call: Call) -> None:
        n, form = call.outs[0] if call.outs else -1, self.forms[i]
        seen = self.facts.get(n)
        if call.op.outputs != () or seen is None or seen.kind == "other":
            self.plainly(i, call)
        elif seen.kind != "array":
            if form is None or not form.fresh or any(type(x) is InArray for x in form.args):
                self.plainly(i, call)
            else:
                self.add(f"v{n} = {self.filled(form, form.fresh)}")
        elif self.is_view(call):
            self.view(call)
        elif self.root(n) != n or form is None or not self.formed(i, n, form):
            self.plainly(i, call)

    def filled(self, form: Form, text: str, to: str = "") -> str:
        return text.format(*map(self.expression, form.args), to=to)

    def expression(self, x: Any) -> str:
        if type(x) is InArray:
            return self.box(x.number)
        if type(x) is tuple and any(type(y) is slice for y in x) and not refs(x):
            return self.name(x)
        if isinstance(x, np.ufunc):
            return self.name(x, x.__name__)
        if isinstance(getattr(x, "__self__", None), np.ufunc):
            return self.name(x, f"{x.__self__.__name__}_{x.__name__}")
        if isinstance(x, np.dtype):
            return self.name(x, x.name)
        return super().expression(x)

    def box(self, n: int) -> str:
        """An array of the frame with the value of a NumPy scalar."""
        if n not in self.boxes:
            self.boxes[n] = f"s{n}"
            self.frame[f"s{n}"] = f"zeros((), {self.expression(self.facts[n].dtype)})"
            self.add(f"s{n}[()] = {self.place(n)}")
        return self.boxes[n]

    def plainly(self, i: int, call: Call) -> None:
        self.add(self.assigned(call, self.call(call)))
        for n in call.outs:
            if n >= 0 and self.facts[n].kind == "array" and call.op.name not in VIEWS:
                seen = self.facts[n]
                if seen.root == n:
                    self.per_call[n] = False
                if self.forms[i] is None:
                    self.add(
                        f"if v{n}.strides != {seen.strides} or v{n}.shape != {seen.shape}: "
                        f"return changed({self.parameters()})"
                    )

    def view(self, call: Call) -> None:
        """A view, made once if its array stays in place between calls."""
        n, x, settings = call.outs[0], call.args[0], call.args[1:]
        base, seen, method = self.expression(x), self.facts[n], VIEWS[call.op.name]
        if call.op.name == "getitem":
            key = settings[0] if type(settings[0]) is tuple else (settings[0],)
            if not seen.shape and Ellipsis not in key:  # NumPy returns a scalar here
                key = (*key, ...)
            view = f"{base}[{self.expression(key)}]"
        elif call.op.name in ("expand_dims", "reshape"):
            view = f"{base}.reshape({seen.shape})"
        elif method:
            view = base + method.format(*map(self.expression, settings))
        else:
            view = self.call(call)
        if base in self.frame or x.number in self.program.constants:
            self.places[n] = f"w{n}"
            self.frame[f"w{n}"] = view
        else:
            self.add(f"v{n} = {view}")

    # ----- places of results -----

    def formed(self, i: int, n: int, form: Form) -> bool:
        """A call in its form, if there is a place for its result."""
        seen, root = self.facts[n], self.overwritten(i, n, form)
        if n in self.direct:
            to = self.place(self.direct[n])
            if self.writing < 0:
                self.writing = len(self.body)
        elif root is not None:
            to = next(self.place(m) for m in self.reads[i] if self.root(m) == root and m != n)
            if root in self.slots:
                self.slots[n] = self.slots.pop(root)
            else:
                del self.per_call[root]
                self.per_call[n] = True
        elif n in self.fresh or not is_dense(seen) or (slot := self.slot(seen.nbytes)) is None:
            return self.anew(n, form)
        else:
            self.slots[n] = slot
            to = self.buffer(slot, seen)
        self.places[n] = to
        self.into(form, to)
        return True

    def into(self, form: Form, to: str) -> None:
        for text in form.into:
            line = self.filled(form, text, to)
            if line != f"{to}[...] = {to}":
                self.add(line)

    def overwritten(self, i: int, n: int, form: Form) -> int | None:
        """The root whose memory a result takes over."""
        for x in form.reuse:
            root = self.root(x.number) if type(x) is Ref else -1
            if (
                (self.per_call.get(root) or (root in self.slots and n not in self.fresh))
                and self.last[root] == i
                and self.may_overwrite(i, n, root)
            ):
                return root
        return None

    def anew(self, n: int, form: Form) -> bool:
        """A new array for a result, unless it has another order in memory than the form makes."""
        seen = self.facts[n]
        if form.fresh:
            self.add(f"v{n} = {self.filled(form, form.fresh)}")
        elif seen.strides == np.ndarray(seen.shape, seen.dtype).strides:
            self.add(f"v{n} = empty({seen.shape}, {self.expression(seen.dtype)})")
            self.into(form, f"v{n}")
        else:
            return False
        self.per_call[n] = True
        return True

    def slot(self, nbytes: int) -> int | None:
        """A place in the arena, free or new, or None if there is no room."""
        # large sizes are rounded up by at most an eighth, so that a place fits more often
        grain = max(LINE, 1 << max(0, nbytes.bit_length() - 4))
        size = -(-nbytes // grain) * grain
        fitting = [s for s, slots in self.free.items() if size <= s <= 2 * size and slots]
        if fitting:
            return self.free[min(fitting)].pop()
        if not nbytes or self.nbytes + size + LINE > self.arena:
            return None
        self.nbytes += size + LINE
        self.frame[f"m{len(self.sizes)}"] = f"aligned({size})"
        self.sizes.append(size)
        return len(self.sizes) - 1

    def buffer(self, slot: int, seen: Seen) -> str:
        """The array in a place of the arena."""
        key = slot, seen.shape, seen.dtype, seen.strides
        if key not in self.buffers:
            name = self.buffers[key] = f"b{len(self.buffers)}"
            dtype = self.expression(seen.dtype)
            self.frame[name] = f"ndarray({seen.shape}, {dtype}, m{slot}, 0, {seen.strides})"
        return self.buffers[key]

    def release(self, root: int) -> None:
        """Note that no later step reads the memory of `root`."""
        if root in self.slots:
            slot = self.slots.pop(root)
            self.free.setdefault(self.sizes[slot], []).append(slot)

    # ----- the end -----

    def finish(self) -> None:
        """Write the last statements: copies of shared outputs, the writes, the return."""
        outputs = []
        for i, n in enumerate(self.program.outputs):
            x, root = self.place(n), self.root(n)
            returned = root in self.per_call and self.fresh.get(root) == n
            if self.facts[n].kind == "array" and (not returned or n in self.program.outputs[:i]):
                self.add(f"o{i} = array({x})")
                x = f"o{i}"
            outputs.append(x)
        targets, stores = {w.target for w in self.writes}, []
        for w in self.writes:
            if w.value not in self.direct:
                x = self.place(w.value)
                if self.root(w.value) in targets:
                    self.add(f"x{w.value} = array({x})")
                    x = f"x{w.value}"
                stores.append(f"{self.place(w.target)}[...] = {x}{self.comment(w.line)}")
        if stores and self.writing < 0:
            self.writing = len(self.body)
        self.body += stores
        self.add(f"return ({''.join(f'{x}, ' for x in outputs)})")

    def parameters(self) -> str:
        return ", ".join(f"v{n}" for n in self.program.inputs)

    def whole(self) -> Iterator[str]:
        """The function around the statements."""
        yield f"def run({self.parameters()}):"
        for n, x in zip(self.program.inputs, self.inputs, strict=True):
            if isinstance(x, (np.ndarray, np.generic)) and not x.ndim:  # one may come as the other
                kind = self.name(type(x), type(x).__name__)
                yield f"    if type(v{n}) is not {kind}: return changed({self.parameters()})"
        indent = "    "
        if self.frame:
            yield "    try:"
            yield "        arrays = frames.pop()"
            yield "    except IndexError:"
            yield "        arrays = frame()"
            yield "    try:"
            yield f"        {self.names()} = arrays"
            indent *= 2
        for i, line in enumerate(self.body):
            if i == self.writing:
                yield f"{indent}try:"
                indent += "    "
            yield indent + line
        if self.writing >= 0:
            indent = indent[4:]
            yield f"{indent}except BaseException as error:"
            yield f"{indent}    raise Torn(error)"
        if self.frame:
            yield "    finally:"
            yield "        if len(frames) < most:"
            yield "            frames.append(arrays)"


def aligned(n: int) -> Any:
    memory = np.empty(n + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n]
