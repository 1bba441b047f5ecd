"""Every public callable is called with bad arguments.

It succeeds, or raises an error of a documented class that says what is wrong: one that multigrad
raises on purpose, or one of Python or of a library that names the function, the argument or the
value. Afterwards the modes, levels and tables are as before, and gradients are right.

The callables are those of tools/surface.txt, so a new one is called too, and what they return is
called, entered or iterated over. The calls are drawn with a fixed seed. A failure prints them as
Python source, which runs after `from misuse import *` in the folder of the tests. For others:

    MISUSE_SEED=7 MISUSE_ROUNDS=100 pytest tests/package/test_misuse.py
"""

from __future__ import annotations

import contextvars
import dis
import inspect
import os
import re
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from random import Random
from types import CodeType, FunctionType, GeneratorType
from typing import Any, NamedTuple

import function_programs
import misuse
import numpy as np
import pytest
from misuse import ARRAYS, BAD, INSTANCES, Planned, fitting, parameters
from public_surface import LINES, Line, found, of_python

import multigrad as mg
from multigrad import func, registry
from multigrad.errors import MultigradError
from multigrad.extend import innermost

PARTS = 16
LEVELS = [("0", 20), pytest.param("1", 40, marks=pytest.mark.slow)]
"""Seeds, and how often each callable is called: 20 times in the short level, which takes 20 seconds
of a core, and 40 more in the middle level.
"""
if "MISUSE_SEED" in os.environ:
    LEVELS = [(os.environ["MISUSE_SEED"], int(os.environ.get("MISUSE_ROUNDS", "25")))]
DOCUMENTED = (
    IndexError,
    MemoryError,
    MultigradError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
ON_PURPOSE = (AssertionError, AttributeError, BufferError, ImportError)
"""Classes that multigrad raises with a text of its own, as PyTorch or the standard do."""

LEFT_OUT = {
    "multigrad.extend.Observer.lift": "multigrad calls it, with a rule",
    "multigrad.extend.Transform.records_in": "of its base class, which is private",
    "multigrad.autograd.variable.VariableMeta.__call__": "the call of Variable",
    "multigrad_autograd.install": "it replaces modules of this process",
}
UNCALLED = re.compile(r"cum(sum|prod)\(.*out=|multigammaln\(.*(2\*\*62|10\*\*30)")
"""NumPy 2.4 ends the process for `np.cumsum(1.0, out=np.array(1.0))`, whoever calls it. And a sum of
so many terms is no mistake, but has no end.
"""
PYTHONS = (
    "__call__",
    "__enter__",
    "__exit__",
    "__format__",
    "__instancecheck__",
    "__missing__",
)
"""Methods that Python calls; `follow` has calls and `with` statements."""

SETTERS = re.compile(
    "set_grad_enabled|inference_mode|use_backend|set_detect_anomaly|(enter|exit)_dual_level"
)
"""What changes a mode of the context if it succeeds."""


# -- what is called


class Target(NamedTuple):
    """A callable: its name in the surface, what it is, how a program names it, its parameters."""

    name: str
    kind: str
    source: str
    parameters: list[inspect.Parameter]


@cache
def targets() -> list[Target]:
    found: dict[str, Target] = {}
    for line in of_python():
        for target in named_in(line):
            found.setdefault(target.name, target)
    for line in LINES:
        what, _, name = line.name.partition(" ")
        if what == "operation" and "." in name:
            found[line.name] = Target(line.name, "function", f"mg.{name}", parameters(line.says))
        elif what == "numpy" and of_numpy(name) is not None:
            found[line.name] = Target(line.name, "function", f"np.{name}", of_numpy(name) or [])
    return [target for target in found.values() if target.name not in LEFT_OUT]


def named_in(line: Line) -> Iterator[Target]:
    kind = line.kind.partition(" ")[0]
    owner, _, member = line.name.rpartition(".")
    of_boxes = "multigrad_autograd.numpy."
    if kind == "function" and not line.name.startswith("multigrad_special.functions"):
        yield Target(line.name, "function", source(line.name), of_line(line))
    elif member in ("__init__", "__new__"):
        yield Target(owner, "function", source(owner), of_line(line))
    elif kind in ("method", "classmethod", "staticmethod") and member not in PYTHONS:
        yield Target(line.name, kind, member, of_line(line))
    elif kind in ("property", "setter", "deleter"):
        yield Target(f"{line.name} {kind}", kind, member, [])
    elif line.name.startswith(of_boxes) and kind in ("", "constant"):
        parameters = of_numpy(line.name.removeprefix(of_boxes))
        if parameters is not None:
            yield Target(line.name, "function", line.name, parameters)


def source(name: str) -> str:
    return re.sub(r"^multigrad\.", "mg.", name)


def of_line(line: Line) -> list[inspect.Parameter]:
    # a decorator has changed the signature that the source has
    return of_function(found(line.name)) if "@" in line.kind else parameters(line.says)


def of_numpy(name: str) -> list[inspect.Parameter] | None:
    """The parameters of a function of NumPy; None if this release does not have it."""
    try:
        return of_function(attrgetter(name)(np))
    except AttributeError:
        return None


def of_function(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        count = getattr(function, "nin", 1)
        return [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)]


@cache
def names() -> dict[str, Any]:
    """What the source of a call may name."""
    roots = {line.name.partition(".")[0] for line in of_python()} - {"multigrad"}
    for line in of_python():
        if line.kind == "module":
            found(line.name)  # which imports it
    return {**vars(misuse), **{root: found(root) for root in roots}}


# -- drawing a call


def draw(random: Random, target: Target) -> str:
    """The source of a call."""
    if target.kind == "function":
        return f"{target.source}({arguments(random, target.parameters)})"
    owner = re.sub(r"\.\w+( \w+)?$", "", target.name)
    instance = random.choice(INSTANCES.get(owner) or [f"{source(owner)}()"])
    match target.kind:
        case "property":
            return f"({instance}).{target.source}"
        case "setter":
            return f"setattr({instance}, {target.source!r}, {random.choice(BAD)})"
        case "deleter":
            return f"delattr({instance}, {target.source!r})"
        case "classmethod" | "staticmethod":
            instance = source(owner)
    return f"({instance}).{target.source}({arguments(random, target.parameters)})"


def arguments(random: Random, parameters: list[inspect.Parameter]) -> str:
    """Arguments, of which one or two are bad; now and then there is one too few or too many."""
    kinds = inspect.Parameter
    single = [p for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    # two bad functions make an endless loop
    most = 1 if any(p.name == "cond_fun" for p in single) else random.choice((0, 1, 1, 1, 1, 2))
    wrong = {p.name for p in random.sample(single, min(len(single), most))}
    positional: list[str] = []
    keywords: list[str] = []
    for p in parameters:
        fit = fitting(p.name, str(p.annotation))
        if p.kind is kinds.VAR_POSITIONAL:
            for _ in range(random.choice((0, 1, 1, 2))):
                positional.append(random.choice(BAD if random.random() < 0.4 else fit))
        elif p.kind is not kinds.VAR_KEYWORD:
            optional = p.default is not kinds.empty and p.name not in wrong
            if random.random() < (0.8 if optional else 0.03):
                continue
            value = random.choice(BAD if p.name in wrong else fit)
            if p.kind is kinds.POSITIONAL_ONLY or (
                p.kind is kinds.POSITIONAL_OR_KEYWORD and p.default is kinds.empty and not keywords
            ):
                positional.append(value)
            else:
                keywords.append(f"{p.name}={value}")
    if random.random() < 0.04:
        positional.append(random.choice(BAD))
    if random.random() < 0.04:
        name = random.choice(["no_such", "axes", "keepdim", "out", "has_aux"])
        if not any(k.startswith(f"{name}=") for k in keywords):
            keywords.append(f"{name}={random.choice(BAD)}")
    return ", ".join([*positional, *keywords])


def follow(random: Random, call: str, result: Any) -> str:
    """A use of what a call has returned, or an empty text."""
    kind = type(result)
    if isinstance(result, GeneratorType):
        return f"list({call})"
    if isinstance(result, FunctionType):
        ours = is_ours(result.__code__)
    else:
        ours = kind.__module__.startswith("multigrad") and not isinstance(result, (type, mg.Tensor))
    if ours and callable(result):
        given = [
            random.choice(BAD if random.random() < 0.5 else ARRAYS)
            for _ in range(random.choice((0, 1, 1, 1, 2)))
        ]
        return f"({call})({', '.join(given)})"
    return f"entered({call})" if ours and hasattr(kind, "__enter__") else ""


# -- judging an error


@cache
def folders() -> tuple[str, ...]:
    """The beginnings of the file names of all distributions."""
    packages = {line.name for line in of_python() if "." not in line.name}
    places = [f"{Path(found(name).__file__).parent}{os.sep}" for name in packages]
    return (*places, "<multigrad", "<pullback")


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(folders())


def complaint(error: BaseException, target: Target, call: str) -> str:
    """What is wrong with an error, or an empty text."""
    frames = [(f.f_code, at) for f, at in _frames(error) if f.f_code.co_filename != __file__]
    if is_the_callers(error) or not any(is_ours(code) for code, _ in frames):
        return ""
    callers = (misuse.__file__, function_programs.__file__, "<call>")
    known = [code for code, _ in frames if is_ours(code) or code.co_filename in callers]
    if known[-1].co_filename in callers:
        return ""  # the caller's function, or what it has called
    code, at = frames[-1]
    purpose = is_ours(code) and dis.opname[code.co_code[at]] == "RAISE_VARARGS"
    if isinstance(error, DOCUMENTED) and not isinstance(error, RecursionError):
        told = purpose or says(error, target, call) or as_numpy(error, call)
        return "" if told else "it names neither the function nor the argument"
    if purpose and isinstance(error, ON_PURPOSE) and str(error):
        missing = getattr(error, "name", None)  # of an attribute that the call asks for
        if not isinstance(error, AttributeError) or missing in (None, target.source):
            return ""
    if isinstance(error, OSError) and any(p.name == "path" for p in target.parameters):
        return ""
    return "" if as_numpy(error, call) else f"{type(error).__name__} is no documented class"


def _frames(error: BaseException) -> Iterator[tuple[Any, int]]:
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame, at.tb_lasti
        at = at.tb_next


def is_the_callers(error: BaseException | None) -> bool:
    """Whether an object of the caller has raised, here or in what led to this error."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, Planned):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def says(error: BaseException, target: Target, call: str) -> bool:
    """Whether an error names the function, a parameter, or a function that was passed in."""
    notes = getattr(error, "__notes__", ())
    if any(note.startswith(("multigrad.", "Called as ")) for note in notes):
        return True  # which name the function and the arguments
    text = "\n".join([str(error), *notes])
    for word in {*re.findall(r"\w+", call), "<lambda>", "Square", "Point"}:
        if re.search(rf"(?<!\w){re.escape(word)}(_?\(\)|[.:])", text):
            return True
        if f"'{word}'" in text and f"{word}=" in call:
            return True
    if re.match(r"\w+ expected at (most|least) ", text):
        return True  # a class of Python's that was passed in
    last = re.split(r"[. ]", target.name.removesuffix(f" {target.kind}"))[-1]
    words = {last, last.strip("_"), *(p.name for p in target.parameters if len(p.name) > 2)}
    return any(re.search(rf"(?<!\w){re.escape(w)}(?!\w)", text) for w in words) or any(
        re.search(rf"'{p.name}'|(?<!\w){p.name}(=| has | is | must )", text)
        for p in target.parameters
    )


def as_numpy(error: BaseException, call: str) -> bool:
    """Whether NumPy's own function raises for these arguments, of the same class or a documented
    one.
    """
    match = re.match(r"(?:np|multigrad_autograd\.numpy)\.([\w.]+)\(", call)
    if match is None:
        return False
    given = {**names(), "given": lambda *args, **kwargs: (args, kwargs)}
    try:
        args, kwargs = eval(f"given({call[match.end() :]}", given)
        attrgetter(match[1])(np)(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
    except Exception as theirs:
        return type(theirs) is type(error) or (
            isinstance(theirs, DOCUMENTED) and isinstance(error, DOCUMENTED)
        )
    return False


def plain(x: Any) -> Any:
    """The raw array in an array object, also in those of a list."""
    if type(x) is list and not any(y is x for y in x):
        return [plain(y) for y in x]
    return innermost(x)


# -- the state


def context() -> dict[Any, Any]:
    """The values of multigrad's context variables."""
    return {v: x for v, x in contextvars.copy_context().items() if v.name.startswith("multigrad")}


def changed(before: dict[Any, Any]) -> str:
    """Which context variable has another value, or an empty text."""
    after = context()
    for var in before.keys() | after.keys():
        old, new = (c[var] if var in c else _default(var) for c in (before, after))
        if old is not new and old != new:
            return f"{var.name} is {new!r}, and was {old!r}"
    return ""


def _default(var: contextvars.ContextVar[Any]) -> Any:
    try:
        return contextvars.Context().run(var.get)
    except LookupError:
        return None


def gradients_are_right() -> bool:
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = mg.sum(x * mg.sin(x))
    y.backward()
    expected = np.sin([1.0, 2.0]) + [1.0, 2.0] * np.cos([1.0, 2.0])
    batched = func.vmap(func.grad(lambda x: mg.sum(x * x)))(np.ones((2, 2)))
    return np.allclose(x.grad.array, expected) and np.array_equal(batched, 2 * np.ones((2, 2)))


@contextmanager
def tables() -> Iterator[None]:
    """What a call that succeeds may register is removed at the end."""
    mg.zeros(1)
    operations, listeners = dict(registry.OPS), list(registry.listeners)
    spaces = found("multigrad_autograd.core.VSpace").mappings
    known = dict(spaces)
    try:
        yield
    finally:
        registry.listeners[:] = listeners
        registry.restore(operations)
        spaces.clear()
        spaces.update(known)


class TooLong(BaseException):
    pass


@contextmanager
def limited_time() -> Iterator[None]:
    """A call that takes 10 seconds of this process ends with TooLong."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, late)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(target: Target, call: str) -> tuple[str, Any]:
    """What is wrong with a call, or an empty text; and its result."""
    before, operations = context(), dict(registry.OPS)
    error: BaseException | None = None
    result: Any = None
    try:
        signal.setitimer(signal.ITIMER_PROF, 10)
        result = eval(compile(call, "<call>", "eval"), names())
    except (Exception, TooLong) as caught:
        error = caught
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    wrong = "" if error is None else complaint(error, target, call)
    if wrong:
        wrong += "\n" + "".join(traceback.format_exception(error)[-5:])
    if error is not None or not SETTERS.search(target.name):
        wrong = wrong or changed(before)
    if error is not None and registry.OPS != operations:
        wrong = wrong or "it has changed the table of operations"
    return wrong, result


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("seed", "rounds"), LEVELS)
def test_bad_arguments(
    part: int, seed: str, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTIGRAD_TRACEBACK", "full")
    monkeypatch.chdir(tmp_path)  # into which some calls write
    mistakes = []
    targets(), names()  # which import modules that declare operations
    with tables(), limited_time(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in targets()[part::PARTS]:
            random = Random(f"{seed} {target.name}")
            for _ in range(rounds):
                call = draw(random, target)
                if UNCALLED.search(call):
                    continue
                wrong, result = contextvars.copy_context().run(run, target, call)
                more = "" if wrong else follow(random, call, result)
                if more:
                    call = more
                    wrong, result = contextvars.copy_context().run(run, target, call)
                if wrong:
                    mistakes.append(f"{call}\n    {wrong}")
            assert gradients_are_right(), f"after calls of {target.name}: {call}"
    assert not mistakes, f"{len(mistakes)} calls:\n" + "\n".join(mistakes[:20])


def test_what_is_left_out_is_there() -> None:
    assert {line.name for line in of_python()}.issuperset(LEFT_OUT)
    assert len(targets()) > 1800


# -- the judge itself


def judged(function: Any, call: str = "f(1)") -> str:
    """The complaint about an error that a function of multigrad's raises."""
    target = Target("f", "function", "f", parameters("(axis)"))
    try:
        function()
    except Exception as error:
        return complaint(error, target, call)
    return "nothing was raised"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("None.shape", "no documented class"),
        ("{}[0]", "no documented class"),
        ("assert False", "no documented class"),
        ("next(iter(()))", "no documented class"),
        ("int(None)", "names neither"),
        ("[][1]", "names neither"),
        ("float('x' * 3)", "names neither"),
        ("raise KeyError('x')", "no documented class"),
        ("raise TypeError('on purpose')", ""),
        ("raise AssertionError('on purpose')", ""),
        ("int(axis=1)", ""),
        ("raise Planned", ""),
    ],
)
def test_what_is_noticed(body: str, wrong: str) -> None:
    names: dict[str, Any] = {"Planned": Planned}
    exec(compile(f"def f():\n    {body}", "<multigrad example>", "exec"), names)
    complaint = judged(names["f"])
    assert wrong in complaint and bool(wrong) == bool(complaint), complaint


def test_a_mode_that_stays_is_noticed() -> None:
    target = Target("f", "function", "f", [])
    names()["left_off"] = lambda: mg.no_grad().__enter__()
    try:
        wrong, _ = contextvars.copy_context().run(run, target, "left_off()")
    finally:
        del names()["left_off"]
    assert "multigrad.mode is" in wrong
