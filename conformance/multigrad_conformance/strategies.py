"""Hypothesis strategies of random programs over arrays, made from the table of operations.

    from hypothesis import given
    from multigrad_conformance.strategies import programs

    @given(programs(operations=["special.erf"]))
    def test_programs(program): ...

A program is the source of a Python function: its text is what runs, and what a failure prints. The
same text runs on NumPy, which is its reference, on Tensors of each backend, and on other libraries.
It is drawn statement by statement. Each statement runs at once on NumPy, at several points: what
is not finite, too large, or near a kink at one of them is not taken. Thresholds of branches lie
between the points, so that these take different branches.

Elementwise operations come from `multigrad_conformance.elementwise`, all others from the samples of
the suite, so an operation of a plugin takes part as soon as it has samples. This module needs
hypothesis: pip install 'multigrad-conformance[random]'.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import multigrad as mg
from multigrad.registry import OPS, on_declaration

from .elementwise import BINARY, UNARY
from .problem import Problem, _bare_function, is_floating
from .sample import OWN_DEVICE, DType, Kink, Refused, Sample, is_array, leaves
from .samples import samples_of

__all__ = ["FEATURES", "Plain", "Program", "programs"]

FEATURES = {
    "arguments written": "writes to arrays that are arguments",
    "branches": "branches that depend on values",
    "complex": "complex arrays",
    "conversions": "asarray and astype of values",
    "lists": "lists of numbers as keys",
    "mixed kinds": "integers and booleans as operands of floating arrays",
    "mixed precisions": "float32 beside float64",
    "NumPy keys": "keys with index arrays and masks beside slices, None and ...",
    "NumPy scalars": "scalars of NumPy as operands",
    "raw operands": "arrays of the library as operands, captured",
    "samples": "operations with arguments of their samples",
    "scalars": "scalars where NumPy makes them, by x[0] or by iteration: they are no views",
    "masks": "x[mask], whose shape depends on values",
    "views": "views, which may be written",
    "writes": "writes in place",
}
"""What a program may contain; `programs(without=...)` leaves features out."""

POINTS = 2
LARGEST, MOST_ELEMENTS, MOST_AXES = 8.0, 36, 3
MARGIN = 0.04
"""How far values are from kinks: farther than finite differences move them."""

SHAPES: tuple[tuple[int, ...], ...] = ((3,), (2, 3), (3, 3), (), (3, 1), (1, 3))
NUMBERS = (2.0, 0.5, -1.5, 3, 0.25, -0.75, 1.25, -1, 1)


class _Part:
    """A part of a namespace, such as `linalg`."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


class Plain:
    """NumPy as the namespace of a program: nothing of multigrad runs.

    wide        whether float32 means float64, and complex64 complex128, for finite differences
    references  NumPy functions of operations that NumPy lacks, by dotted name
    """

    def __init__(
        self, wide: bool = False, references: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self.wide = wide
        for name, function in (references or {}).items():
            parent, _, last = name.rpartition(".")
            if parent:
                vars(self).setdefault(parent, _Part(getattr(np, parent, None)))
            setattr(getattr(self, parent) if parent else self, last, function)

    def __getattr__(self, name: str) -> Any:
        wider = {"float32": "float64", "complex64": "complex128"} if self.wide else {}
        return getattr(np, wider.get(name, name))

    def array(self, x: Any) -> Any:
        """Return a copy of an array, for a program that may write to it."""
        if not self.wide or x.dtype.kind not in "fc":
            return np.array(x) if isinstance(x, np.ndarray) else x
        y = x.astype(np.result_type(x.dtype, np.float64))
        return y if isinstance(x, np.ndarray) else y[()]


@dataclass(frozen=True)
class Program:
    """A function of arrays, as text.

    parameters  the names of the arguments
    points      the arguments at several points, as NumPy arrays and Python numbers
    constants   captured arrays and functions by name; arrays are NumPy's
    lines       the statements
    results     the names that it returns
    features    what of FEATURES it contains
    references  NumPy functions of its operations that NumPy lacks
    """

    parameters: tuple[str, ...]
    points: tuple[tuple[Any, ...], ...]
    constants: Mapping[str, Any]
    lines: tuple[str, ...]
    results: tuple[str, ...]
    features: frozenset[str] = frozenset()
    references: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @cached_property
    def source(self) -> str:
        body = [*self.lines, f"return {', '.join(self.results)},"]
        head = f"def program({', '.join(self.parameters)}):\n"
        return head + "".join(f"    {line}\n" for text in body for line in text.split("\n"))

    @cached_property
    def _code(self) -> Any:
        return compile(self.source, "<program>", "exec")

    def bind(
        self, xp: Any, convert: Callable[[Any], Any] = np.array, scalars: Any = np
    ) -> Callable[..., Any]:
        """Return the function on a namespace; `convert` makes its captured arrays.

        scalars  a namespace of NumPy's scalar types
        """
        names = {n: convert(c) if is_array(c) else c for n, c in self.constants.items()}
        names |= {"xp": xp, "np": scalars}
        exec(self._code, names)
        function: Callable[..., Any] = names["program"]
        return function

    def run(self, *args: Any, xp: Any) -> Any:
        """Run the function on a namespace."""
        return self.bind(xp, xp.asarray)(*args)

    def plain(self, wide: bool = False, copy: bool = True) -> Callable[..., Any]:
        """Return the function on NumPy.

        wide  compute in double precision throughout
        copy  copy the arguments, which the program may write to
        """
        xp = Plain(wide, self.references)
        function = self.bind(xp, xp.array, xp)

        def run(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                return function(*(xp.array(a) if copy and is_array(a) else a for a in args))

        return run

    @property
    def differentiable(self) -> tuple[int, ...]:
        """The positions of the floating arguments."""
        return tuple(i for i, x in enumerate(self.points[0]) if is_floating(x))

    def __str__(self) -> str:
        """Return a script that runs the program on NumPy; `xp = mg` runs it on multigrad."""
        lines = ["import numpy as np", "xp = np", ""]
        for name, value in self.constants.items():
            text = _literal(value) if is_array(value) else repr(value)
            lines.append(f"{name} = {text}")
        lines += [self.source]
        for k, point in enumerate(self.points):
            texts = [_literal(x) if is_array(x) else repr(x) for x in point]
            lines.append(f"{'# ' * bool(k)}program({', '.join(texts)})")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # which hypothesis prints


def _literal(x: Any) -> str:
    if isinstance(x, np.generic):
        return f"np.{x.dtype.name}({x.item()!r})"
    return f"np.array({x.tolist()!r}, dtype=np.{x.dtype.name})"


class _Rejected(Exception):
    """A statement that NumPy refuses or whose values are not wanted."""


class Draft:
    """A program that is being drawn, with the values of its names at each point."""

    def __init__(
        self,
        draw: Callable[[Any], Any],
        without: Collection[str] = (),
        wanted: Collection[str] = (),
        avoided: Collection[str] = (),
    ) -> None:
        self.draw = draw
        self.wanted, self.avoided = frozenset(wanted), frozenset(avoided)
        self.without = frozenset(without)
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.references = references()
        self.plain = Plain(references=self.references)
        self.features: set[str] = set()
        self.count = 0
        self.parameters: tuple[str, ...] = ()
        self.points: list[tuple[Any, ...]] = []
        self.lanes: list[dict[str, Any]] = []

    # ----- drawing -----

    def one(self, options: Sequence[Any]) -> Any:
        """Draw one of the options; the first is the simplest."""
        if not options:
            raise _Rejected
        return options[self.draw(st.integers(0, len(options) - 1))]

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def may(self, feature: str, text: str = "") -> bool:
        """Return whether a feature is allowed, and note that the program has it."""
        if feature in self.without:
            return False
        self.features.add(feature)
        return True

    def options(self, feature: str, *more: Any) -> tuple[Any, ...]:
        return () if feature in self.without else more

    def number(self, how: Any = "real") -> str:
        return repr(self.one([x for x in NUMBERS if inside(np.asarray(float(x)), how)] or [1.25]))

    def values(self, shape: tuple[int, ...], how: Any = "real", point: int = 0) -> Any:
        """Draw an array: its numbers come from a seed, so that it takes one choice."""
        random = np.random.default_rng([self.draw(st.integers(0, 15)), *shape, point])
        low, high = interval(how)
        return np.asarray(np.round(random.uniform(low, high, shape), 2))

    def constant(self, value: Any) -> str:
        """Return the name of a captured array or function."""
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    # ----- names -----

    def names(self, wanted: Callable[[Any], bool]) -> list[str]:
        """Return the names whose values are wanted, the newest first."""
        return [n for n, x in reversed(self.lanes[0].items()) if is_array(x) and wanted(x)]

    def floating(self, wanted: Callable[[Any], bool] = lambda x: True) -> str:
        """Draw the name of a real floating array, mostly a new one."""
        return str(self.one(self.names(lambda x: x.dtype.kind == "f" and wanted(x))[:8]))

    def evaluate(self, text: str) -> list[Any]:
        """Return the values of an expression at all points."""
        names = {"xp": self.plain, "np": np, **self.constants}
        try:
            with np.errstate(all="ignore"):
                return [eval(text, names | lane) for lane in self.lanes]
        except Exception as error:
            raise _Rejected from error

    def shape(self, text: str) -> tuple[int, ...]:
        return np.shape(self.evaluate(text)[0])

    def within(self, text: str, how: Any) -> str:
        """Return an expression whose values lie where a table says: the text itself, or of it."""
        values = self.evaluate(text)
        return text if all(inside(x, how) for x in values) else squashed(text, how)

    def writable(self) -> list[str]:
        """Return the names of arrays that may be written: NumPy's scalars are immutable."""

        def free(x: Any) -> bool:
            own = not any(is_array(a) and np.shares_memory(x, a) for a in self.arguments())
            return (
                isinstance(x, np.ndarray)
                and writeable(x)
                and (own or "arguments written" not in self.without)
            )

        return self.names(free)

    def arguments(self) -> list[Any]:
        return [self.first[name] for name in self.parameters]

    # ----- statements -----

    def begin(self, parameters: Sequence[str], points: Sequence[tuple[Any, ...]]) -> None:
        self.parameters, self.points = tuple(parameters), list(points)
        self._again()

    def _again(self) -> None:
        self.lanes = []
        for point in self.points:
            copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in point]
            self.lanes.append(dict(zip(self.parameters, copies, strict=True)))
        self.first = dict(self.lanes[0])
        for line in self.lines:
            self._execute(line)

    def _execute(self, text: str) -> None:
        code = compile(text, "<step>", "exec")
        names = {"xp": self.plain, "np": np, **self.constants}
        for i, lane in enumerate(self.lanes):
            scope = names | lane
            with np.errstate(all="ignore"):
                exec(code, scope)
            self.lanes[i] = {n: x for n, x in scope.items() if n[0] in "abv"}

    def take(self, text: str) -> None:
        """Run a statement, and take it if all values are as they should be; else raise."""
        written = "=" in text
        try:
            self._execute(text)
            if not all(map(usable, (x for lane in self.lanes for x in lane.values()))):
                raise _Rejected
            if any(_shapes(lane) != _shapes(self.lanes[0]) for lane in self.lanes[1:]):
                raise _Rejected
        except Exception as error:
            if written:
                self._again()
            raise _Rejected from error
        self.lines.append(text)

    def fresh(self) -> str:
        """Return a new name."""
        self.count += 1
        return f"v{self.count - 1}"

    def assign(self, text: str, count: int = 1) -> None:
        self.take(f"{', '.join(self.fresh() for _ in range(count))} = {text}")


def writeable(x: Any) -> bool:
    """Return whether an array may be written, and has no element twice."""
    own = all(stride or n == 1 for stride, n in zip(x.strides, x.shape, strict=True))
    return bool(own and x.flags.writeable)


def _shapes(lane: Mapping[str, Any]) -> list[Any]:
    return [(n, np.shape(x)) for n, x in lane.items()]


def usable(x: Any) -> bool:
    """Return whether a value may stand in a program: finite, and neither large nor many."""
    if not is_array(x):
        return True
    if x.size > MOST_ELEMENTS or x.ndim > MOST_AXES or x.size == 0:
        return False
    return x.dtype.kind not in "fc" or bool(np.max(np.abs(x)) <= LARGEST)


# ----- domains -----


def interval(how: Any) -> tuple[float, float]:
    """Return the interval from which a table of `elementwise` draws an argument."""
    if isinstance(how, tuple):
        return how
    return {"positive": (0.5, 2.0), "nonzero": (0.4, 2.0), "fractions": (1.15, 1.35)}.get(
        how, (-2.0, 2.0)
    )


def inside(x: Any, how: Any) -> bool:
    """Return whether all values are where an operation is smooth, and not near its border."""
    x = np.asarray(x)
    if how == "nonzero":
        return bool(np.all(np.abs(x) > 0.3))
    if how == "fractions":
        parts = np.abs(2 * x - np.round(2 * x))  # integers and halves
        return bool(np.all(parts > 2 * MARGIN))
    low, high = interval(how)
    slack = {"positive": 0.2}.get(how if isinstance(how, str) else "", 0.0)
    return bool(np.all((x >= low - slack) & (x <= high + slack)))


def squashed(text: str, how: Any) -> str:
    """Return an expression of the text with values inside."""
    low, high = interval(how)
    middle, half = (low + high) / 2, (high - low) / 2 * 0.9
    return f"{middle:.3g} + {half:.3g} * xp.tanh({text})" if middle else f"{half} * xp.tanh({text})"


def apart(x: Any) -> bool:
    """Return whether no two elements are close to each other, so that an order is stable."""
    return bool(np.all(np.diff(np.sort(np.asarray(x), axis=None)) > MARGIN))


# ----- the operations with samples -----


@cache
def references() -> dict[str, Callable[..., Any]]:
    """Return NumPy functions of the operations that NumPy lacks.

    They are the references of their samples, or else their own forward on NumPy.
    """
    mg.namespace("numpy")  # which fills the table of operations
    found: dict[str, Callable[..., Any]] = {}
    for name, op in OPS.items():
        if op.public and not _of_numpy(name):
            given = [s.reference for s in samples_of(name) if s.reference is not None]
            found[name] = given[0] if given else _bare_function(op)
    return found


def _of_numpy(name: str) -> Any:
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part, None)
    return function


OTHERWISE = {
    "linalg.eig": "NumPy returns real arrays if all eigenvalues are real; the standard never",
    "linalg.eigvals": "as linalg.eig",
}
"""The operations whose results are not those of NumPy's function, with the reason."""


@cache
def operations() -> dict[str, tuple[tuple[Sample, tuple[str, ...]], ...]]:
    """Return the samples that NumPy's function takes, with floating results.

    Each comes with the array parameters that a program may vary.
    """
    mg.namespace("numpy")  # which fills the table of operations
    found: dict[str, tuple[tuple[Sample, tuple[str, ...]], ...]] = {}
    for name, op in sorted(OPS.items()):
        if name in OTHERWISE:
            continue
        function = _of_numpy(name) or references().get(name) or None
        if function is None or not op.public or op.kind == "nondifferentiable":
            continue
        if name in UNARY or name in BINARY:
            continue
        usable_ones = tuple(
            (s, names) for s in samples_of(name) if (names := _varied(function, name, s))
        )
        if usable_ones:
            found[name] = usable_ones
    return found


def _varied(function: Any, name: str, sample: Sample) -> tuple[str, ...]:
    """Return the parameters to vary; none if the sample cannot be part of a program."""
    if isinstance(sample, (Kink, Refused)) or sample.checks or sample.needs or sample.project:
        return ()
    values = leaves((sample.args, tuple(sample.kwargs.values())))
    if not sample.values or any(v is OWN_DEVICE for v in values):
        return ()
    if not all(usable(v) for v in values):
        return ()
    op = OPS[name]
    problem = Problem.of(op, sample)
    arguments = [getattr(np, v.name) if isinstance(v, DType) else v for v in problem.values]
    given = sample.args, sample.kwargs
    if any(isinstance(v, DType) for v in leaves(arguments)):
        return ()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            out = function(*given[0], **given[1])
            ours = problem.forward()
    except Exception:
        return ()
    outs, expected = _tupled(out), _tupled(ours)
    if len(outs) != len(expected) or not all(
        usable(np.asarray(a)) and np.shape(a) == np.shape(b) and np.allclose(a, b)
        for a, b in zip(outs, expected, strict=True)
    ):
        return ()
    return problem.names if any(is_floating(np.asarray(a)) for a in outs) else ()


def _tupled(out: Any) -> tuple[Any, ...]:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _forget(_: Any) -> None:
    references.cache_clear()
    operations.cache_clear()


on_declaration(_forget)

# ----- the steps -----

F64 = "xp.float64"
STEPS: dict[str, tuple[int, Callable[[Draft], None], tuple[str, ...]]] = {}


def step(weight: int, *features: str) -> Callable[[Callable[[Draft], None]], Callable[..., None]]:
    """Register a kind of step: how often it is drawn, and the features that it has."""

    def register(function: Callable[[Draft], None]) -> Callable[..., None]:
        STEPS[function.__name__] = weight, function, features
        return function

    return register


@step(4)
def unary(d: Draft) -> None:
    name = d.one([n for n in sorted(UNARY) if n not in d.avoided])
    x = d.floating()
    d.assign(f"xp.{name}({d.within(x, UNARY[name])})")


OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "pow": "**"}
SMOOTH = [n for n in BINARY if n not in ("nextafter", "heaviside", "floor_divide")]


@step(8)
def binary(d: Draft) -> None:
    name = d.one([*OPERATORS, *OPERATORS, *SMOOTH])
    x = d.floating()
    first, second = BINARY[name]
    if first == "apart":
        y = operand(d, d.shape(x), "real", arrays_only=True)
        gap = [np.abs(a - b) for a, b in zip(d.evaluate(x), d.evaluate(y), strict=True)]
        if not all(np.all(g > MARGIN) for g in gap):
            x, y = f"0.9 * xp.tanh({x})", d.constant(_signs(d, d.shape(x)) * 1.0)
    else:
        x, y = d.within(x, first), operand(d, d.shape(x), second)
        if name not in ("pow", "divide", "atan2", "remainder", "fmod", "copysign") and d.flag():
            x, y = y, x
    if name in OPERATORS and d.flag():
        d.assign(f"{_bracketed(x)} {OPERATORS[name]} {_bracketed(y)}")
    else:
        d.assign(f"xp.{name}({x}, {y})")


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text


def _signs(d: Draft, shape: tuple[int, ...]) -> Any:
    return np.where(d.values(shape) > 0, 1.0, -1.0) * 1.1 * np.where(d.values(shape) > 0, 1.0, 0.01)


def operand(d: Draft, shape: tuple[int, ...], how: Any = "real", arrays_only: bool = False) -> str:
    """Draw what stands beside an array of a shape: a name, a number, a scalar, a raw array."""
    kinds = ["name", "name", "name"]
    if not arrays_only:
        kinds += ["number", "number", *d.options("NumPy scalars", "scalar")]
    kinds += d.options("raw operands", "raw", "raw")
    kinds += d.options("mixed kinds", "integers")
    kind = d.one(kinds)
    if kind == "name":
        fits = d.names(lambda x: x.dtype.kind == "f" and _broadcasts(x.shape, shape))[:8]
        return d.within(d.one(fits), how) if fits else d.number(how)
    if kind == "number":
        numbers = [n for n, x in d.lanes[0].items() if type(x) in (int, float)]
        fits = [n for n in numbers if all(inside(x, how) for x in d.evaluate(n))]
        return str(d.one(fits)) if fits and d.flag() else d.number(how)
    if kind == "scalar":
        d.may("NumPy scalars")
        low = d.flag() and d.may("mixed precisions")
        return f"np.{'float32' if low else 'float64'}({d.number(how)})"
    if kind == "integers":
        d.may("mixed kinds")
        whole = np.arange(1, 1 + math.prod(shape), dtype=np.int64).reshape(shape) % 3 + 1
        if not inside(whole, how):
            return d.number(how)
        return d.constant(whole > 1 if how == "real" and d.flag() else whole)
    d.may("raw operands")
    shown = d.one([shape, shape, *([shape[1:], (*shape[:-1], 1)] if shape else [])])
    value = d.values(shown, how)
    return d.constant(value.astype(np.float32) if d.flag() and d.may("mixed precisions") else value)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        out = np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return math.prod(out) <= MOST_ELEMENTS and len(out) <= MOST_AXES


@step(2)
def product_of_matrices(d: Draft) -> None:
    x = d.floating(lambda x: x.ndim >= 1)
    shape = d.shape(x)
    forms = []
    for y in d.names(lambda y: y.dtype.kind == "f" and y.ndim >= 1)[:6]:
        other = d.shape(y)
        if shape[-1] == other[max(-2, -len(other))]:
            forms += [f"{x} @ {y}", f"xp.matmul({x}, {y})"]
        if len(other) == 2 and shape[-1] == other[-1]:
            forms += [f"{x} @ {y}.T", f"xp.tensordot({x}, {y}, axes=((-1,), (-1,)))"]
        if shape == other:
            forms.append(f"xp.vecdot({x}, {y})")
    d.assign(d.one(forms))


REDUCTIONS = ("sum", "mean", "prod", "max", "min", "var", "std", "cumulative_sum")


@step(4)
def reduction(d: Draft) -> None:
    name = d.one(REDUCTIONS)
    x = d.floating(lambda x: x.ndim >= 1)
    shape = d.shape(x)
    axes = [None, *range(-len(shape), len(shape)), *([(0, -1)] if len(shape) > 1 else [])]
    axis = d.one(axes)
    if name in ("max", "min") and not all(map(apart, d.evaluate(x))):
        count = np.arange(math.prod(shape)).reshape(shape)
        x = f"0.15 * xp.tanh({x}) + {d.constant(count % 7 * 0.4 + count * 0.031)}"
        if not all(map(apart, d.evaluate(x))):
            raise _Rejected
    if name == "std" and not all(np.std(v, axis=axis).min() > 0.2 for v in d.evaluate(x)):
        raise _Rejected
    if name == "cumulative_sum":
        axis = axis if isinstance(axis, int) else 0
        d.assign(f"xp.cumulative_sum({x}, axis={axis})")
        return
    more = "" if axis is None else f", axis={axis}"
    d.assign(f"xp.{name}({x}{more}{', keepdims=True' if d.flag() else ''})")


@step(4, "samples")
def sample(d: Draft) -> None:
    table = operations()
    names = [n for n in sorted(table) if n not in d.avoided and _of_numpy(n)]
    if "conversions" in d.without:
        names = [n for n in names if OPS[n].chapter not in ("creation", "data_type")]
    chosen = d.one([n for n in sorted(table) if n in d.wanted] or names)
    drawn, varied = d.one(table[chosen])
    if drawn.complex and not d.may("complex"):
        raise _Rejected
    op = OPS[chosen]
    bound = op.signature.bind(*drawn.args, **drawn.kwargs)
    moving = d.one([[n] for n in varied] + [list(varied)])
    for name in moving:
        bound.arguments[name] = _moved(d, bound.arguments[name])
    texts = [_text(d, v) for v in bound.args]
    texts += [f"{k}={_text(d, v)}" for k, v in bound.kwargs.items()]
    text = f"xp.{chosen}({', '.join(texts)})"
    if drawn.finish is not None:
        text = f"{d.constant(drawn.finish)}(xp, {'*' * (op.outputs != ())}{text})"
    out = d.evaluate(text)[0]
    several = isinstance(out, (tuple, list))
    d.assign(text if not several or len(out) > 1 else f"{text}[0]", len(out) if several else 1)


class _Name(str):
    """The text of an argument."""


def _moved(d: Draft, value: Any) -> Any:
    """Return an argument of a sample that depends a little on a value of the program."""
    if isinstance(value, (tuple, list)):
        k = d.one([i for i, v in enumerate(value) if is_floating(v)])
        return type(value)(_moved(d, v) if i == k else v for i, v in enumerate(value))
    fits = d.names(lambda x: x.dtype.kind == "f" and _into(x.shape, value.shape))[:6]
    other = f"{d.one(fits)}" if fits else f"xp.mean({d.floating()})"
    return _Name(f"0.05 * xp.tanh({other}) + {d.constant(np.array(value))}")


def _into(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return _broadcasts(a, b) and np.broadcast_shapes(a, b) == b


def _text(d: Draft, value: Any) -> str:
    if isinstance(value, _Name):
        return value
    if isinstance(value, (tuple, list)):
        inner = ", ".join(_text(d, v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if value else "()"
    return d.constant(np.array(value)) if is_array(value) else repr(value)


# ----- keys, views and writes -----


def key(d: Draft, text: str, basic: bool = False, twice: bool = False) -> str:
    """Draw a key of an array.

    basic  without index arrays and masks, so that the part is a view
    twice  an element may stand in the part twice
    """
    shape = d.shape(text)
    parts: list[str] = []
    advanced = basic or "NumPy keys" in d.without
    for n in shape[: d.draw(st.integers(0, len(shape)))]:
        forms = ["slice", "slice", "int"] + ([] if advanced else ["array", "mask"])
        form = d.one(forms)
        if form == "slice":
            parts.append(d.one([":", "1:", ":-1", "::2", "::-1"] if n > 1 else [":"]))
        elif form == "int":
            parts.append(str(d.one([*range(n), -1])))
        else:
            advanced = d.may("NumPy keys")
            order = [
                int(i) for i in np.random.default_rng(d.draw(st.integers(0, 5))).permutation(n)
            ]
            order = order[: d.draw(st.integers(1, n))] + order[:1] * (twice and form == "array")
            if form == "mask":
                parts.append(d.constant(np.isin(np.arange(n), order)))
            elif d.options("lists", 1) and d.flag():
                d.may("lists")
                parts.append(repr(order))
            else:
                parts.append(f"xp.asarray({order})" if d.flag() else d.constant(np.asarray(order)))
    whole_of_integers = len(parts) == len(shape) and all(p.lstrip("-").isdigit() for p in parts)
    short = len(parts) < len(shape) and "NumPy keys" in d.without
    if d.flag() or short or (whole_of_integers and "scalars" in d.without) or not parts:
        parts.insert(0 if d.flag() and not any(parts) else len(parts), "...")
    elif whole_of_integers:
        d.may("scalars")
    return ", ".join(parts)


@step(5)
def index(d: Draft) -> None:
    x = d.one(d.names(lambda x: x.dtype.kind in "fc" and x.ndim >= 1)[:8])
    if d.evaluate(x)[0].dtype.kind == "f" and d.flag() and d.options("masks", 1):
        d.may("masks")
        d.assign(f"xp.sum({x}[{threshold(d, x)}])")
        return
    new = ", None" if d.flag() else ""
    d.assign(f"{x}[{key(d, x, twice=True)}{new}]")


def threshold(d: Draft, x: str) -> str:
    """Return a condition that no element is near to, at no point."""
    values = np.sort(np.concatenate([np.real(np.ravel(v)) for v in d.evaluate(x)]))
    middles = (values[1:] + values[:-1]) / 2
    wide = [float(x) for x in middles[np.diff(values) > 2 * MARGIN]]
    return f"{x} {d.one(['>', '<'])} {round(d.one(wide), 3)}"


@step(6, "views")
def view(d: Draft) -> None:
    x = d.one(d.names(lambda x: isinstance(x, np.ndarray))[:8])
    value = d.evaluate(x)[0]
    shape = value.shape
    forms = [f"{x}[{key(d, x, basic=True)}]", x]
    if value.flags.c_contiguous:
        forms += [f"xp.reshape({x}, (-1,))", f"xp.reshape({x}, {(*shape, 1)})"]
        if value.size == 6 or value.size == 9:
            forms.append(f"xp.reshape({x}, {(-1, 3)})")
    if len(shape) == 2:
        forms += [f"{x}.T", f"xp.matrix_transpose({x})", f"xp.permute_dims({x}, (1, 0))"]
    if 1 in shape:
        forms.append(f"xp.squeeze({x}, axis={shape.index(1)})")
    forms.append(f"xp.expand_dims({x}, axis={d.one([0, -1])})")
    if len(shape) > 1:
        forms.append(f"xp.moveaxis({x}, 0, -1)")
    d.assign(d.one(forms))


@step(9, "writes")
def write(d: Draft) -> None:
    x = d.one(d.writable()[:6])
    kind = d.evaluate(x)[0].dtype.kind
    if kind not in "fc":
        d.take(f"{x}[...] = {'True' if kind == 'b' else 2}")
        return
    if d.flag() and kind == "f":
        chosen = (
            threshold(d, x) if d.flag() and d.options("branches", 1) and d.may("branches") else ""
        )
    else:
        chosen = ""
    if chosen:
        d.take(f"{x}[{chosen}] {d.one(['=', '*=', '+='])} {d.number()}")
        return
    target = x if d.flag() else f"{x}[{key(d, x)}]"
    shape = d.shape(target)
    sign = d.one(["+=", "*=", "-=", "/="]) if target == x or d.flag() else "="
    value = written_value(d, shape, "nonzero" if sign == "/=" else "real")
    d.take(f"{target} {sign} {value}")


def written_value(d: Draft, shape: tuple[int, ...], how: Any = "real") -> str:
    """Draw an expression that can be written into a part of this shape."""
    fits = d.names(lambda x: x.dtype.kind == "f" and _into(x.shape, shape))[:6]
    forms = ["name", "scaled"] if fits else []
    form = d.one([*forms, *forms, "number", *d.options("raw operands", "raw")])
    if form == "number":
        return d.number(how)
    if form == "raw":
        d.may("raw operands")
        return d.constant(d.values(shape, how))
    text = d.within(d.one(fits), how)
    return text if form == "name" else f"{d.number('nonzero')} * ({text})"


# ----- constants, dtypes, choices -----


@step(4)
def creation(d: Draft) -> None:
    shape = d.one(SHAPES)
    low = d.options("mixed precisions", 1) and d.draw(st.integers(0, 4)) == 4
    if low:
        d.may("mixed precisions")
    dtype = f"dtype=xp.{'float32' if low else 'float64'}"
    like = d.floating()
    d.assign(
        d.one(
            [
                f"xp.ones({shape}, {dtype})",
                f"xp.zeros({shape}, {dtype})",
                f"xp.full({shape}, {d.number()}, {dtype})",
                f"xp.asarray({d.values(shape).tolist()}, {dtype})",
                f"xp.zeros_like({like})",
                f"xp.ones_like({like})",
                f"xp.arange(3, {dtype})",
                f"{like} * 1.0",
                *d.options("conversions", f"xp.asarray({like}, copy=True)"),
            ]
        )
    )


@step(1, "mixed precisions", "conversions")
def cast(d: Draft) -> None:
    x = d.floating()
    d.assign(f"xp.astype({x}, xp.{d.one(['float32', 'float64'])})")


@step(1, "mixed kinds", "conversions")
def truth(d: Draft) -> None:
    x = d.floating()
    d.assign(d.one([threshold(d, x), f"xp.astype({threshold(d, x)}, xp.int64)"]))


@step(3)
def linear_algebra(d: Draft) -> None:
    """Functions of matrices that are far from singular, alone or in a stack."""
    x = d.floating()
    base = 2.0 * np.eye(3) + 0.4 * d.values((3, 3))
    fits = d.names(lambda y: y.dtype.kind == "f" and _into(y.shape, (3, 3)))[:6]
    small = f"0.2 * xp.tanh({d.one(fits) if fits else f'xp.sum({x})'})"
    if d.flag():
        small = f"xp.stack([{small}, {small}])"
    d.assign(f"{small} + {d.constant(base)}")
    m = d.names(lambda _: True)[0]
    sides = d.names(lambda y: y.dtype.kind == "f" and y.shape[:1] == (3,))[:4]
    side = d.one([*sides, d.constant(d.values((3,)))])
    forms = [f"solve({m}, {side})", f"solve({m}, {side})", f"inv({m})", f"det({m})"]
    spd = f"0.1 * ({m} + xp.matrix_transpose({m})) + {d.constant(base @ base.T)}"
    forms += [f"cholesky({spd})", f"eigvalsh({spd})", f"slogdet({m})[1]", f"matrix_norm({m})"]
    d.assign(f"xp.linalg.{d.one(forms)}")


@step(2)
def choice(d: Draft) -> None:
    x = d.floating()
    y = operand(d, d.shape(x))
    d.assign(f"xp.where({threshold(d, x)}, {x}, {y})")


@step(2)
def joined(d: Draft) -> None:
    x = d.floating(lambda x: x.ndim >= 1)
    same = d.names(lambda y: y.dtype.kind == "f" and y.shape == d.shape(x))[:4]
    axis = d.one([0, -1])
    d.assign(f"xp.{d.one(['concat', 'stack'])}([{x}, {d.one(same)}], axis={axis})")


@step(2, "complex", "conversions")
def complex_numbers(d: Draft) -> None:
    z = d.names(lambda x: x.dtype.kind == "c")[:4]
    x = d.floating()
    if not z or d.draw(st.integers(0, 3)) == 3:
        d.assign(f"xp.astype({x}, xp.complex128) * {d.one(['(0.5+1j)', '(1-0.25j)', '1j'])}")
        return
    z = d.one(z)
    w = d.one(d.names(lambda x: x.dtype.kind in "fc" and _broadcasts(x.shape, d.shape(z)))[:6])
    forms = [f"{z} * {w}", f"{z} + {w}", f"xp.conj({z})", f"xp.real({z})", f"xp.imag({z})"]
    forms += [f"xp.exp(0.3 * {z})", f"xp.sin({z})", f"xp.sum({z})", f"{z} * {z}", f"{w} - {z}"]
    if all(np.all(np.abs(v) > 0.2) for v in d.evaluate(z)):
        forms += [f"xp.abs({z})", f"{w} / {z}"]
    d.assign(d.one(forms))


# ----- several statements -----


@step(3, "writes")
def work_buffer(d: Draft) -> None:
    """An array that is filled and used in each round of a loop."""
    x = d.floating(lambda x: x.size <= 9)
    shape = d.shape(x)
    y = d.one(d.names(lambda y: y.dtype.kind == "f" and _into(y.shape, shape))[:6])
    w, total = d.fresh(), d.fresh()
    target = f"{w}[{key(d, x)}]"
    fill = d.one([f"{w}[...] = {y} * (i + 0.5)", f"{target} = i + 0.5", f"{w} += {y}"])
    use = d.one([f"{w} * {x}", f"{w} * {w} + {x}", f"xp.sin({w}) * {x}"])
    d.take(
        f"{w} = xp.{d.one(['zeros', 'ones'])}({shape}, dtype=xp.float64)\n{total} = 0.0\n"
        f"for i in range({d.one([2, 3])}):\n    {fill}\n    {total} = {total} + 0.2 * ({use})"
    )


@step(3)
def iteration(d: Draft) -> None:
    """What iterates over an array: an element is read when it is asked for."""
    scalars = "scalars" not in d.without
    x = d.floating(lambda x: x.ndim >= 1)
    shape = d.shape(x)
    total = d.fresh()
    forms = [
        f"{total} = 0.0\nfor e in {x}:\n    {total} = {total} * 0.5 + e * {d.number()}",
        f"{total} = 0.0\nfor i, e in enumerate({x}):\n    {total} = {total} + (i + 0.5) * e * e",
    ]
    same = d.names(lambda y: y.dtype.kind == "f" and y.ndim >= 1 and len(y) == shape[0])[:4]
    forms.append(
        f"{total} = 0.0\nfor e, f in zip({x}, {d.one(same)}):\n    "
        f"{total} = {total} + xp.sum(e * f)"
    )
    if len(shape) > 1 or scalars:
        more = [d.fresh() for _ in range(shape[0])]
        forms.append(f"{', '.join(more)}, = {x}")
    if len(shape) == 1 and scalars:
        d.may("scalars")
    d.take(d.one(forms))


@step(4, "writes")
def iteration_with_writes(d: Draft) -> None:
    """What writes to the array over which it iterates, before and behind the element."""
    fits = [w for w in d.writable() if d.shape(w) and d.evaluate(w)[0].dtype.kind == "f"]
    w = d.one(sorted(fits, key=lambda w: len(d.shape(w)))[:4])
    n = d.shape(w)[0]
    ahead = f"for i, e in enumerate({w}):\n    if i + 1 < {n}:\n        {w}[i + 1, ...] += 0.5 * e"
    forms = [
        ahead,
        f"for e in {w}:\n    {w} += 0.25 * e",
        f"for i, e in enumerate({w}):\n    {w}[i, ...] = e * {d.number('nonzero')}",
        f"for e, f in zip({w}, {w}[::-1, ...]):\n    {w}[0, ...] = 0.5 * e + 0.25 * f",
    ]
    d.take(d.one(forms))


@step(3, "branches")
def branch(d: Draft) -> None:
    x = d.floating()
    sums = [float(np.sum(v)) for v in d.evaluate(x)]
    gap = abs(sums[0] - sums[1])
    limit = round(sum(sums) / 2 if gap > 4 * MARGIN else max(sums) + 0.5, 2)
    y = d.floating()
    fits = [n for n in d.writable()[:4] if d.evaluate(n)[0].dtype.kind == "f"]
    if fits and "writes" not in d.without and d.flag():
        d.may("writes")
        w = d.one(fits)
        one, other = f"{w} *= {d.number()}", f"{w}[...] = {d.number()}"
    else:
        v = d.fresh()
        one, other = f"{v} = xp.sin({y})", f"{v} = {y} * {d.number()}"
    d.take(f"if xp.sum({x}) > {limit}:\n    {one}\nelse:\n    {other}")


@step(4, "scalars")
def scalar(d: Draft) -> None:
    """Scalars and arrays without axes: what is changed in place differs between them."""
    writes = "writes" not in d.without
    s = d.floating(lambda x: x.ndim == 0 and (writes or isinstance(x, np.generic)))
    other, array = d.fresh(), d.fresh()
    forms = [
        f"{other} = {s}\n{s} += {d.number()}",
        f"{other} = {s}\n{other} *= {d.number()}",
        f"{other} = {s}[()]\n{other} += 1.0",
    ]
    if writes:
        d.may("writes")
        forms += [
            *d.options("conversions", f"{other} = xp.asarray({s})\n{other} -= 1.0"),
            f"{other} = {s}[...]\n{other} *= 2.0",
            f"{array} = xp.sum({d.floating()})\n{other} = {array}\n{array} *= 0.5",
            f"{other} = xp.reshape({s}, (1,))\n{other} += 0.5",
            f"{other} = xp.zeros((), dtype={F64})\n{other} += {s}",
            f"{other} = xp.ones((1,), dtype={F64})[0, ...]\n{other} *= {s}",
        ]
    d.take(d.one(forms))


# ----- programs -----


@st.composite
def programs(
    draw: Any,
    *,
    without: Collection[str] = (),
    operations: Collection[str] = (),
    avoid: Collection[str] = (),
    often: Collection[str] = (),
    least: int = 3,
    most: int = 12,
) -> Program:
    """Draw programs of `least` to `most` steps.

    without     the names of FEATURES that they do not contain
    operations  operations with samples, of which each program calls at least one. Without them, a
                program calls those that NumPy has
    avoid       operations that no program calls
    often       names of STEPS that are drawn four times as often
    """
    if unknown := set(without) - set(FEATURES):
        raise ValueError(
            f"programs: without names {sorted(unknown)}; there are {', '.join(FEATURES)}"
        )
    if missing := set(operations) - set(_table()):
        raise ValueError(
            f"programs: {', '.join(sorted(missing))} cannot be part of a program: it has no usable "
            "sample, or NumPy has no such function and no sample gives a reference"
        )
    d = Draft(draw, without, operations, avoid)
    count = draw(st.integers(1, 3))
    shapes = [d.one(SHAPES) for _ in range(count)]
    points: list[list[Any]] = [[] for _ in range(POINTS)]
    for shape in shapes:
        low = bool(d.options("mixed precisions", 1)) and draw(st.integers(0, 5)) == 5
        for k, point in enumerate(points):
            x = d.values(shape, point=k)
            point.append(x.astype(np.float32) if low and d.may("mixed precisions") else x)
    if draw(st.integers(0, 3)) == 3:
        numbers = d.one([(0.5, 1.25), (2, 3), (1.5, -0.75)])
        scalar = d.flag() and d.may("scalars") and "scalars" not in d.without
        for x, point in zip(numbers, points, strict=True):
            point.append(np.float64(x) if scalar else x)
    d.begin(("a", "b", "a2", "a3")[: len(points[0])], [tuple(p) for p in points])
    steps = draw(st.integers(least, most))
    table = [
        (function, features)
        for weight, function, features in STEPS.values()
        if not set(features) & d.without
        for _ in range(weight * (4 if function.__name__ in often else 1))
    ]
    if draw(st.booleans()):  # kinds of steps that stand together rarely meet otherwise
        random = np.random.default_rng(draw(st.integers(0, 999)))
        few = {"binary", "unary", *random.choice([f.__name__ for f, _ in table], 5).tolist()}
        table = [(f, features) for f, features in table if f.__name__ in few]
    if operations:
        sample(d)
    for _ in range(2 * steps):
        if len(d.lines) >= steps:
            break
        function, features = d.one(table)
        try:
            before = set(d.features)
            d.features |= set(features)
            function(d)
        except _Rejected:
            d.features = before
    return finished(d)


def _table() -> dict[str, Any]:
    return operations()


def finished(d: Draft) -> Program:
    """Choose the results: all values, or a few of them, the last among them."""
    names = [n for n in d.lanes[0] if n[0] == "v"] or list(d.parameters)
    if not d.flag():
        kept = [n for n in names if d.draw(st.integers(0, 2)) == 0]
        names = [n for n in names if n in kept or n == names[-1]]
    used = "\n".join(d.lines)
    if any(
        is_array(x) and not np.array_equal(x, lane[name])
        for lane, point in zip(d.lanes, d.points, strict=True)
        for name, x in zip(d.parameters, point, strict=True)
    ):
        d.features.add("arguments written")
    return Program(
        d.parameters,
        tuple(d.points),
        {n: c for n, c in d.constants.items() if n in used},
        tuple(d.lines),
        tuple(names),
        frozenset(d.features),
        d.references,
    )
