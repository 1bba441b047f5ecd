"""The body of a loop as a program, which is recorded at the first step and replayed at the others.

The rules of `func.compile` hold here. A value that the body asks for is a guard: if a step gives
another answer, the body is recorded again. The second step runs both the body and the program,
which detects a body that depends on more than its arguments. A body that cannot be recorded,
because it looks at numbers or is observed, is called at each step.

If arrays are mutable, a program writes its results to their final places: the carry to the place of
the next one, y to its place in the stacked array, and a term of a sum is added to the sum. So a
step makes no superfluous arrays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from operator import add
from typing import Any

from ... import locks, observe
from ...compiling.arrays import equal
from ...compiling.checks import HiddenStateError
from ...compiling.recorded import Recorded
from ...compiling.recording import Recording
from ...core.element import Library
from ...core.level import innermost, revived
from ...core.tensor import strip
from ...program import Call, Missed, Program, Torn, Write, memory_of, run_at
from .arguments import control_of, form, layered
from .bodies import Body

ARENA = 16 << 20
"""How many bytes a program may keep between steps."""
FEWEST = 5
"""The least number of steps for which a body is recorded. For fewer, calling it is faster."""
KEPT = 64
"""How many programs are kept for the bodies of later loops."""
HELD = 64 << 20
"""How many bytes these programs may hold between calls, except for the last one."""
LARGE = 1 << 20
"""The largest number of bytes of constants in a program that is kept."""
MOST = 8
"""The largest number of programs of a body: one for each of its branches."""


def records(library: Library, steps: int) -> bool:
    """Whether to record a body for that many steps: it is worth it, and there is no observer."""
    return steps >= FEWEST and not observe.watching() and not library.backend.capabilities.lazy


class Stepper:
    """A body as a loop calls it, on raw arrays or on layers that record the loop.

    sums      how many of its last results are terms of sums
    doubted   whether it has not been called before, so that it may depend on hidden state
    expected  the results of its first call, if the same was called before
    """

    def __init__(
        self,
        body: Body,
        library: Library,
        sums: int,
        recording: bool,
        doubted: bool = False,
        expected: Sequence[Any] | None = None,
    ) -> None:
        self.body, self.library, self.sums, self.doubted = body, library, sums, doubted
        self.recording = recording
        self.checks = True
        self.expected = expected
        self.variants: list[_Variant] = []
        self.new: _Variant | None = None
        self.last: Callable[..., Any] | None = None  # what ran the last program

    def plain(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Call the body itself."""
        return list(map(strip, self.body(consts, args)))

    def twice(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Call the body itself; the first time compare it with another call.

        A pass will call it again.
        """
        outs = list(map(strip, self.body(consts, args)))
        if self.checks and self.doubted:
            again = self.plain(consts, args) if self.expected is None else self.expected
            self._check(outs, list(map(innermost, again)))
            self.expected = None
        return outs

    def __call__(
        self, consts: Sequence[Any], args: Sequence[Any], targets: Sequence[Any] | None = None
    ) -> list[Any]:
        """Take a step, and return its results.

        If there are `targets`, write the results there instead, and add the terms of sums.
        """
        if self.last is not None and targets is not None:
            try:
                self.last(*consts, *args, *targets)
                return []
            except Torn as torn:
                raise torn.error from None
            except Exception:  # a guard missed, or an error, which the code below raises again
                self.last = None
        failed = False
        for variant in self.variants if self.recording else ():
            if self.checks:
                expected = self.plain(consts, args)
                before = self._totals(targets)
            try:
                outs = variant([*consts, *args], targets or ())
            except Missed:
                continue
            except Torn as torn:
                raise torn.error from None
            except Exception:  # the body itself raises the right error
                failed = True
                break
            if self.variants[0] is not variant:  # try it first at the next step
                self.variants.remove(variant)
                self.variants.insert(0, variant)
            if self.checks:
                n = len(expected) - len(before)
                expected[n:] = [a + b for a, b in zip(before, expected[n:], strict=True)]
                self._check(outs if targets is None else targets, expected)
            if targets is not None:
                self.last = run_at(variant.run, (*consts, *args, *targets))
            return outs
        outs = self.twice(consts, args) if failed else self.recorded(consts, args)
        if targets is not None:
            self.store(targets, outs)
        if self.new is not None:
            self.bind(targets)
        return outs

    def _totals(self, targets: Sequence[Any] | None) -> list[Any]:
        """Copies of the sums before a step."""
        if targets is None:
            return []
        totals = targets[len(targets) - self.sums :]
        return [self.library.xp.asarray(x, copy=True) for x in totals]

    def store(self, targets: Sequence[Any], outs: Sequence[Any]) -> None:
        """Write results to their final places, and add the terms of sums."""
        library, n = self.library, len(targets) - self.sums
        places = set(map(id, targets))
        outs = [library.xp.asarray(x, copy=True) if id(x) in places else x for x in outs]
        for i, (target, x) in enumerate(zip(targets, outs, strict=True)):
            if tuple(target.shape) != tuple(x.shape) or target.dtype != x.dtype:
                raise other_form(x, target)
            library.write(library.xp, target, x if i < n else target + x)

    # Programs

    def _check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        self.checks = False
        if not layered(outs, expected) and not alike(outs, expected, self.library):
            raise HiddenStateError(
                "the body of a loop has returned another result for the same arguments when it "
                "was called again. So it depends on hidden state besides its arguments, such as "
                "a random generator, a counter or the time. Pass the state as a part of the "
                "carry, or of the arrays that the loop goes over"
            )

    def recorded(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Call the body, and record it if possible.

        `bind` completes the program, once it is known where its results go.
        """
        self.recording = self.recording and len(self.variants) < MOST
        if not self.recording:
            return self.twice(consts, args)
        try:
            self.new = _Variant(self, consts, args)
            if self.new.recording.unkept is None:
                self.expected = None  # the second step compares the program with the body
                return self.new.values
        except Exception:  # the body cannot be recorded, or raises without a recording too
            self.new = None
        self.recording, self.new = False, None
        return self.twice(consts, args)

    def bind(self, targets: Sequence[Any] | None) -> None:
        if self.new is not None:
            self.new.finish(targets, self.sums)
            self.variants.insert(0, self.new)
            self.new = None


class _Variant:
    """A program of a body.

    values  the results of the body when it was recorded
    places  where each result comes from: the number of an output of the program, or None and the
            number of the argument that the body returned
    """

    run: Callable[..., Any]

    def __init__(self, stepper: Stepper, consts: Sequence[Any], args: Sequence[Any]) -> None:
        self.library = stepper.library
        self.recording = Recording(stepper.library)
        self.numbers: list[int] = []
        self.values: list[Any] = []
        try:
            self.recording.call(self._record, stepper.body, consts, args)
        except BaseException:
            self.recording.forget()
            raise
        if self.recording.unkept is not None:
            self.recording.forget()

    def _record(self, body: Body, consts: Sequence[Any], args: Sequence[Any]) -> None:
        n = len(consts)
        inputs = [self.recording.argument(x) for x in (*consts, *args)]
        self.inputs = {x.number: i for i, x in enumerate(inputs)}
        for x in body(inputs[:n], inputs[n:]):
            x = strip(self.recording._without_constants(x))
            self.numbers.append(
                x.number if isinstance(x, Recorded) else self.recording.constant(x, self.library)
            )
            self.values.append(innermost(x))

    def finish(self, targets: Sequence[Any] | None, sums: int) -> None:
        """Make the function that runs it.

        The function returns the results, or writes them to arrays like `targets`.
        """
        recording = self.recording
        writes: list[Write] = []
        outputs: list[int] = []
        self.places: list[tuple[int | None, int]] = []
        if targets is None:
            for n in self.numbers:
                if n not in self.inputs and n not in outputs:
                    outputs.append(n)
                self.places.append(
                    (None, self.inputs[n]) if n in self.inputs else (outputs.index(n), 0)
                )
        else:
            for i, (n, target) in enumerate(zip(self.numbers, targets, strict=True)):
                to = recording.argument(target)
                if i >= len(targets) - sums:
                    term = recording.layer(self.values[i], n, self.library)
                    n = revived([recording], partial(add, to, term)).number
                writes.append(Write(to.number, n))
        program = recording.finished_program(outputs, writes)
        recording.forget()
        self.run = _compiled(self.library, program)
        self.plain = [i for i, _ in self.places] == list(range(len(outputs)))
        self.values = []

    def __call__(self, arguments: Sequence[Any], targets: Sequence[Any] = ()) -> list[Any]:
        outs = self.run(*arguments, *targets)
        return (
            list(outs)
            if self.plain
            else [arguments[j] if i is None else outs[i] for i, j in self.places]
        )


_made: OrderedDict[Any, Callable[..., Any]] = OrderedDict()
_making = locks.new_lock()


def _compiled(library: Library, program: Program) -> Callable[..., Any]:
    """The function that runs a program. Equal programs share it.

    The body of a training step is recorded again at each step.
    """
    key = _key(library, program)
    if key is not None:
        with _making:
            run = _made.pop(key, None)
            if run is not None:
                _made[key] = run
                return run
    made: Callable[..., Any] = library.backend.kernel("compile")(library.xp, program, arena=ARENA)
    if key is not None:
        with _making:
            _made[key] = made
            # a program holds no memory before its first call
            while len(_made) > 1 and (
                len(_made) > KEPT or sum(map(memory_of, _made.values())) > HELD
            ):
                _made.popitem(last=False)
    return made


def _key(library: Library, program: Program) -> Any:
    """The properties that equal programs share: operations, arguments, specs and constants.

    It is None if the constants are large.
    """
    numpy = library.backend.kernel("to_numpy")
    constants = [(n, numpy(library.xp, x)) for n, x in program.constants.items()]
    if sum(x.nbytes for _, x in constants) > LARGE or any(
        x.dtype.kind == "O" for _, x in constants
    ):
        return None
    values = tuple([(n, x.shape, str(x.dtype), x.tobytes()) for n, x in constants])
    steps = tuple(
        [
            (step.op, repr(step.args), step.outs) if isinstance(step, Call) else repr(step)
            for step in program.steps
        ]
    )
    forms = {id(spec): spec for spec in program.specs.values()}  # many values share a spec
    shown = {i: repr(spec) for i, spec in forms.items()}
    specs = tuple([(n, shown[id(spec)]) for n, spec in program.specs.items()])
    return library, steps, specs, values, program.inputs, program.outputs


def alike(xs: Sequence[Any], ys: Sequence[Any], library: Library) -> bool:
    """Whether raw arrays have the same values up to rounding, as far as the values are known.

    Arrays of different shapes or dtypes are not alike.
    """
    if library.backend.capabilities.lazy or control_of(library, xs, ys) is not None:
        return True

    def unit(x: Any) -> float:
        return float(library.xp.finfo(x.dtype).eps) if library.element(x.dtype).floating else 0.0

    return all(equal(x, y, unit(x)) for x, y in zip(xs, ys, strict=True))


def other_form(x: Any, y: Any) -> TypeError:
    """The error for a result whose shape or dtype differs from that at another step."""
    return TypeError(
        f"the body of a loop has returned an array of {form(x)} where it returned one of "
        f"{form(y)} at another step. Return arrays of one form"
    )
