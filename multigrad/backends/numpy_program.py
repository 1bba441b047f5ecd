"""NumPy: programs as straight-line code.

The first call with inputs of given strides runs the operations one by one and records the
properties of each result (numpy_program_trial.py). Then Python code is written for those strides:
ufuncs with `out=`, in an arena planned by liveness, on views that are made once
(numpy_program_code.py). The code runs beside that first call. If its results are equal to the last
bit it is used from then on; otherwise the operations always run one by one.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from .. import optimizing
from ..program import Call, Missed, Program, Torn, function_of
from .numpy_program_code import Changed, written
from .numpy_program_frame import Text
from .numpy_program_trial import Seen, Trial, copied, same_bits, seen, store

STRIDES = 8
"""The number of stride combinations of inputs for which a program has code.

For other strides the operations run one by one.
"""


def compiled(xp: Any, program: Program, *, arena: int) -> Replay:
    """A function that runs `program` on NumPy arrays, and keeps at most `arena` bytes.

    The limit holds for inputs of given strides. See `multigrad/program.py`.
    """
    return Replay(xp, optimizing.live(program), arena)


def _evaluator(
    xp: Any, program: Program
) -> Callable[[Call, tuple[Any, ...]], tuple[Any, ...] | None]:
    def evaluate(call: Call, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with np.errstate(all="raise"):  # a warning must be repeated at each call
            result = function_of(xp, program, call)(*args)
        outs = (result,) if call.op.outputs == () else tuple(result)
        return outs if all(isinstance(x, (np.ndarray, np.generic)) for x in outs) else None

    return evaluate


def uniform(x: Any) -> Any:
    """The scalar that fills an array, or None."""
    if x.size == 0 or x.size > optimizing.LARGEST:
        return None
    first = x[(0,) * x.ndim]
    if (
        x.dtype.kind not in "fiu"
        or not (x == first).all()
        or (x.dtype.kind == "f" and (np.signbit(x) != np.signbit(first)).any())
    ):
        return None
    return first.item()


def text_of(
    xp: Any, trial: Trial, facts: dict[int, Seen], arena: int, poison: bool = False
) -> Text:
    """The code of a program, from its trial."""

    def alike(n: int, m: int) -> bool:
        return facts[n].kind == facts[m].kind and facts[n].alike(facts[m])

    knowledge = optimizing.Knowledge(_evaluator(xp, trial.program), uniform, alike)
    program, names, new = optimizing.renamed(trial.program, knowledge)
    known = {
        n: Seen(s.kind, s.root, s.shape, s.dtype, s.strides, s.nbytes) for n, s in facts.items()
    }
    known |= {
        n: Seen("array", n, known[m].shape, known[m].dtype, known[m].strides, known[m].nbytes)
        for n, m in new.items()
    }
    known |= {n: seen(n, x) for n, x in program.constants.items()}
    for s in known.values():
        while s.root in names:
            s.root = known[names[s.root]].root
    functions = dict(zip(map(id, trial.program.steps), trial.functions, strict=True))
    left = [
        functions[id(step)]
        if id(step) in functions
        else function_of(xp, program, step)
        if isinstance(step, Call)
        else None
        for step in program.steps
    ]
    return written(xp, program, left, known, arena, poison)


class Replay:
    """A program for NumPy arrays, as a function of its inputs."""

    exact = True

    def __init__(self, xp: Any, program: Program, arena: int) -> None:
        self._program, self._arena = program, arena
        self._xp, self._trial = xp, Trial(xp, program)
        self._codes: dict[Any, Code | None] = {}
        self._last: tuple[Any, Code | None] = None, None  # the last strides

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        key = tuple([x.strides if type(x) is np.ndarray else type(x) for x in inputs])
        known, code = self._last
        if key != known:
            if key not in self._codes:
                return self._first(key, inputs)
            code = self._codes[key]
            self._last = key, code
        if code is not None:
            try:
                return code(inputs)
            except Changed:
                pass
        outputs, writes = self._trial.run(inputs)
        store(writes)
        return outputs

    def steady(self, *inputs: Any) -> Callable[..., tuple[Any, ...]] | None:
        """A faster runner for inputs that always have these strides, one call at a time, or None.

        It does not check strides, and has its own frame.
        """
        code = self._codes.get(
            tuple([x.strides if type(x) is np.ndarray else type(x) for x in inputs])
        )
        return None if code is None else code.steady(self)

    def _first(self, key: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run the operations one by one, and make the code for inputs of these strides."""
        facts: dict[int, Seen] | None = {} if len(self._codes) < STRIDES else None
        outputs, writes = self._trial.run(inputs, facts)
        if facts is not None:
            code = Code(text_of(self._xp, self._trial, facts, self._arena), self._arena)
            self._codes[key] = code if _holds(code, inputs, outputs, writes) else None
        store(writes)
        return outputs

    @property
    def source(self) -> str:
        """The code for the first strides; before the first call, the operations."""
        for code in self._codes.values():
            if code is not None:
                return code.text.source
        return "\n".join(map(str, self._program.steps))

    @property
    def memory(self) -> int:
        """The bytes that frames hold between calls."""
        return sum(
            code.text.nbytes * len(code.frames) for code in self._codes.values() if code is not None
        )


def _holds(
    code: Code, inputs: Sequence[Any], outputs: Sequence[Any], writes: Sequence[tuple[Any, Any]]
) -> bool:
    """Whether the code gives the same outputs and writes as the operations one by one."""
    targets = {id(target): copied(target) for target, _ in writes}
    try:
        with np.errstate(all="ignore"):
            results = code(tuple(targets.get(id(x), x) for x in inputs))
    except Exception:  # any exception: the operations one by one did not raise it
        return False
    return all(map(same_bits, results, outputs)) and all(
        same_bits(targets[id(target)], copied(np.asarray(x))) for target, x in writes
    )


class Code:
    """Code for inputs of given strides, and the frames of its callers, in which it computes.

    It keeps as many frames as the arena has room for.
    """

    __slots__ = ("frames", "function", "most", "text")

    def __init__(self, text: Text, arena: int = 0) -> None:
        self.text = text
        self.most = max(1, arena // max(text.nbytes, 1))
        file = f"<multigrad program {id(self):x}>"
        made = compile(text.source, file, "exec")
        exec(made, text.scope)
        self.function: Callable[..., tuple[Any, ...]] = text.scope.pop("program")
        linecache.cache[file] = len(text.source), None, text.source.splitlines(keepends=True), file
        first = next(constant for constant in made.co_consts if isinstance(constant, CodeType))
        weakref.finalize(first, linecache.cache.pop, file, None).atexit = False
        self.frames = [text.first]

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        try:
            frame = self.frames.pop()
        except IndexError:  # another call is running
            frame = self.text.frame()
        try:
            return self.function(frame, *inputs)
        except (Missed, Changed):
            raise
        except BaseException as error:
            self.torn(error)
            raise
        finally:
            if len(self.frames) < self.most:
                self.frames.append(frame)

    def torn(self, error: BaseException) -> None:
        """Raise Torn if an error occurred after the first write had begun."""
        if self.text.store and _line(error.__traceback__, self.function) >= self.text.store:
            raise Torn(error) from error

    def steady(self, otherwise: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        """The code with its own frame, for one caller.

        It calls `otherwise` if a result has another layout than in the trial.
        """
        function, frame, torn = self.function, self.text.frame(), self.torn

        def run(*inputs: Any) -> tuple[Any, ...]:
            try:
                return function(frame, *inputs)
            except Missed:
                raise
            except Changed:
                return otherwise(*inputs)
            except BaseException as error:
                torn(error)
                raise

        return run


def _line(traceback: TracebackType | None, function: Any) -> int:
    """The line of the code at which an error occurred."""
    while traceback is not None:
        if traceback.tb_frame.f_code is function.__code__:
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return 0
