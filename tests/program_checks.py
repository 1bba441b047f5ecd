"""Random programs, carried through transformations, and the same on plain NumPy.

A transformation takes a function with one number as its result to another such function. It comes
with its *reference*, which takes a function of NumPy to what the transformed one must compute: a
derivative to central differences, a batch or a loop to a loop of Python, and all that must not
change a result, such as a checkpoint, to the function itself. So they can be nested in any order,
and nothing of multigrad runs in a reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

import multigrad as mg
from multigrad import func
from multigrad_conformance.differences import slope
from multigrad_conformance.strategies import Program, programs, writeable
from multigrad_conformance.target import Target

Function = Callable[..., Any]

STEP = 2e-3
"""Of finite differences: half of it is the second try, which tells how exact they are."""


def drawn(seed: int, shape: tuple[int, ...]) -> Any:
    """Numbers of either sign between 0.5 and 1.5, which are the same for each seed and shape."""
    random = np.random.default_rng([seed, *shape])
    return np.asarray(random.uniform(0.5, 1.5, shape) * random.choice([-1.0, 1.0], shape))


class Names:
    """The namespace of a backend, and names beyond the standard where it hides them."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def __getattr__(self, name: str) -> Any:
        return getattr(self.xp, name) if hasattr(self.xp, name) else getattr(mg, name)


@dataclass
class Case:
    """A program on a backend: its floating arguments move, and the others are captured.

    point  which of the program's points is where it is checked
    """

    program: Program
    target: Target
    point: int = 0

    @cached_property
    def moving(self) -> tuple[int, ...]:
        return self.program.differentiable

    def arrays(self, point: int) -> list[Any]:
        return [np.array(self.program.points[point][i]) for i in self.moving]

    def all_arguments(self, moved: Sequence[Any], convert: Function) -> list[Any]:
        args = [convert(x) for x in self.program.points[self.point]]
        for i, x in zip(self.moving, moved, strict=True):
            args[i] = x
        return args

    @cached_property
    def single(self) -> bool:
        return "mixed precisions" in self.program.features

    @property
    def names(self) -> Names:
        return Names(self.target.bound)

    def loss(self) -> Function:
        """The sum of all floating results with weights, on the backend."""
        xp = self.target.bound
        function = self.program.bind(self.names, self.target.raw)

        def loss(*xs: Any) -> Any:
            if self.target.name == "strict":  # whose own arrays take no lists, rows and other keys
                xs = tuple(map(xp.asarray, xs))
            outs = function(*self.all_arguments(xs, self.target.raw))
            return weighted(xp, outs, self.target.raw)

        return loss

    def plain_loss(self) -> Function:
        """The same on NumPy, in double precision."""
        function = self.program.plain(wide=True)

        def loss(*xs: Any) -> float:
            total = 0.0
            moved = [np.asarray(x) for x in xs]
            for i, y in enumerate(function(*self.all_arguments(moved, lambda x: x))):
                if not hasattr(y, "dtype"):
                    total += 1.25 * y
                elif y.dtype.kind in "fc":
                    w = drawn(i, y.shape)
                    total += float(np.sum(y.real * w) + np.sum(y.imag * w) * 0.5)
            return total

        return loss


def weighted(xp: Any, outs: Sequence[Any], convert: Function) -> Any:
    """The sum of floating results with weights."""
    total = xp.asarray(0.0, dtype=xp.float64)
    for i, y in enumerate(outs):
        if not hasattr(y, "dtype"):
            total = total + 1.25 * y
            continue
        w, kind = convert(drawn(i, tuple(y.shape))), xp.asarray(y).dtype
        if xp.isdtype(kind, "real floating"):
            total = total + xp.sum(y * w)
        elif xp.isdtype(kind, "complex floating"):
            total = total + xp.sum(xp.real(y) * w) + xp.sum(xp.imag(y) * w) * 0.5
    return total


# ----- transformations -----


@dataclass
class Setting:
    """What a transformation needs beside the function: directions, the points, the library."""

    case: Case
    seed: int
    step: float

    def directions(self, xs: Sequence[Any]) -> list[Any]:
        return [drawn(self.seed + i, tuple(x.shape)) for i, x in enumerate(xs)]

    def raw_directions(self, xs: Sequence[Any]) -> list[Any]:
        return [
            self.case.target.raw(t.astype(self.case.program.points[0][i].dtype))
            for i, t in zip(self.case.moving, self.directions(xs), strict=True)
        ]

    def other(self, xs: Sequence[Any], convert: Function) -> list[Any]:
        """The other point of the program, as a function of one of them."""
        sums = [a + b for a, b in zip(self.case.arrays(0), self.case.arrays(1), strict=True)]
        return [-1.0 * x + convert(s) for s, x in zip(sums, xs, strict=True)]


def inner(gradients: Any, directions: Sequence[Any], xs: Sequence[Any]) -> Any:
    total: Any = 0.0
    for g, t, x in zip(gradients, directions, xs, strict=True):
        assert tuple(g.shape) == tuple(x.shape), "a derivative has the shape of its argument"
        assert g.dtype == x.dtype, f"a derivative of dtype {g.dtype}, of an argument of {x.dtype}"
        total = total + mg.sum(g * t)
    return total


def differences(f: Function, s: Setting) -> Function:
    """The derivative along the directions."""

    def g(*xs: Any) -> float:
        ts = s.directions(xs)
        return slope(lambda h: f(*[x + h * t for x, t in zip(xs, ts, strict=True)]), s.step)

    return g


def grad(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> Any:
        return inner(func.grad(f, argnums=tuple(range(len(xs))))(*xs), s.raw_directions(xs), xs)

    return g


def vjp(f: Function, s: Setting) -> Function:
    """A pullback is called twice, after its output was written."""

    def g(*xs: Any) -> Any:
        out, pullback = func.vjp(f, *xs)
        one = mg.ones_like(mg.asarray(out))
        if isinstance(out, mg.Tensor):
            out *= 3.0
        first, second = pullback(one), pullback(one)
        ts = s.raw_directions(xs)
        return 0.5 * inner(first, ts, xs) + 0.5 * inner(second, ts, xs)

    return g


def jvp(f: Function, s: Setting) -> Function:
    return lambda *xs: func.jvp(f, xs, tuple(s.raw_directions(xs)))[1]


def linearize(f: Function, s: Setting) -> Function:
    return lambda *xs: func.linearize(f, *xs)[1](*s.raw_directions(xs))


def jacobian(transform: Function) -> Callable[[Function, Setting], Function]:
    def apply(f: Function, s: Setting) -> Function:
        def g(*xs: Any) -> Any:
            rows = transform(
                lambda *xs: mg.stack([f(*xs), 2.0 * f(*xs)]), argnums=tuple(range(len(xs)))
            )(*xs)
            return 0.2 * sum(
                mg.sum(j[0, ...] * t) + 2.0 * mg.sum(j[1, ...] * t)
                for j, t in zip(rows, s.raw_directions(xs), strict=True)
            )

        return g

    return apply


def hvp(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> Any:
        ts, more = s.raw_directions(xs), Setting(s.case, s.seed + 50, s.step).raw_directions(xs)
        return inner(func.hvp(f, tuple(xs), tuple(ts))[1], more, xs)

    return g


def hessian(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> Any:
        ts, more = s.raw_directions(xs), Setting(s.case, s.seed + 50, s.step).raw_directions(xs)
        blocks = func.hessian(f, argnums=tuple(range(len(xs))))(*xs)
        total: Any = 0.0
        for i, row in enumerate(blocks):
            for j, block in enumerate(row):
                n, m = xs[i].ndim, xs[j].ndim
                assert tuple(block.shape) == (*xs[i].shape, *xs[j].shape)
                product = mg.tensordot(block, ts[j], axes=m) if m else block * ts[j]
                total = total + mg.sum(product * more[i]) + 0 * n
        return total

    return g


def differences_twice(f: Function, s: Setting) -> Function:
    return differences(differences(f, s), Setting(s.case, s.seed + 50, s.step))


def batch_axes(xs: Sequence[Any], seed: int) -> list[int]:
    """The axis of the batch in each argument, -1 where it has none; one has."""
    draw = np.random.default_rng(seed)
    axes = [int(draw.integers(-1, x.ndim + 1)) for x in xs]
    if all(a < 0 for a in axes):
        axes[0] = 0
    return axes


def vmap(f: Function, s: Setting) -> Function:
    """A batch of both points, along any axis; arguments that are not batched are captured."""

    def g(*xs: Any) -> Any:
        axes = batch_axes(xs, s.seed)
        others = s.other(xs, s.case.target.raw)
        batched = [
            mg.stack([x, y], axis=a) for x, y, a in zip(xs, others, axes, strict=True) if a >= 0
        ]

        def one(*ys: Any) -> Any:
            rest = iter(ys)
            return f(*(next(rest) if a >= 0 else x for x, a in zip(xs, axes, strict=True)))

        values = func.vmap(one, in_axes=tuple(a for a in axes if a >= 0))(*batched)
        return values[0, ...] + 0.5 * values[1, ...]

    return g


def loop_over_points(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> float:
        axes = batch_axes(xs, s.seed)
        others = s.other(xs, np.asarray)
        second = [y if a >= 0 else x for x, y, a in zip(xs, others, axes, strict=True)]
        return float(f(*xs) + 0.5 * f(*second))

    return g


SCALES = (0.5, -1.0, 0.75)


def scan(f: Function, s: Setting) -> Function:
    """A loop that goes from one point to the other and back."""

    def g(*xs: Any) -> Any:
        xp = s.case.target.bound

        def body(carry: Any, scale: Any) -> Any:
            total, ys = carry
            value = f(*ys)
            new = [
                mg.astype(y, x.dtype)
                for y, x in zip(s.other(ys, s.case.target.raw), ys, strict=True)
            ]
            return (total + scale * value, tuple(new)), value

        start = xp.zeros((), dtype=xp.float64), tuple(xp.asarray(x) for x in xs)
        (total, _), values = func.scan(body, start, xp.asarray(SCALES, dtype=xp.float64))
        return total + 0.5 * values[2, ...]

    return g


def fori_loop(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> Any:
        xp = s.case.target.bound

        def body(i: Any, carry: Any) -> Any:
            total, ys = carry
            new = [
                mg.astype(y, x.dtype)
                for y, x in zip(s.other(ys, s.case.target.raw), ys, strict=True)
            ]
            return total * 0.5 + f(*ys), tuple(new)

        start = xp.zeros((), dtype=xp.float64), tuple(xp.asarray(x) for x in xs)
        return func.fori_loop(0, 2, body, start)[0]

    return g


def plain_scan(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> float:
        other = s.other(xs, np.asarray)
        values = [f(*xs), f(*other), f(*xs)]
        return sum(a * b for a, b in zip(SCALES, values, strict=True)) + 0.5 * values[2]

    return g


def plain_loop(f: Function, s: Setting) -> Function:
    return lambda *xs: 0.5 * f(*xs) + f(*s.other(xs, np.asarray))


def cond(f: Function, s: Setting) -> Function:
    return lambda *xs: func.cond(True, f, lambda *xs: 0.0 * f(*xs), *xs)


def hooks(f: Function, s: Setting) -> Function:
    """Hooks of saved values, of Tensors and of nodes: one doubles a gradient, another halves it."""

    def scaled(gradient: Any, factor: float) -> Any:
        return None if gradient is None else factor * gradient  # None is a gradient of zero

    def g(*xs: Any) -> Any:
        xs = tuple(mg.asarray(x) * 1.0 for x in xs)
        for x in xs:
            if isinstance(x, mg.Tensor) and x.requires_grad:
                x.register_hook(lambda g: scaled(g, 2.0))
                x.register_hook(lambda g: None)
                x.grad_fn.register_prehook(lambda grads: tuple(scaled(g, 0.5) for g in grads))
        with mg.autograd.graph.saved_tensors_hooks(lambda t: (t,), lambda t: t[0]):
            return f(*xs)

    return g


def anomaly(f: Function, s: Setting) -> Function:
    def g(*xs: Any) -> Any:
        with mg.autograd.set_detect_anomaly(True):
            return f(*xs)

    return g


def custom(f: Function, s: Setting) -> Function:
    """A function with a derivative of its own, which is that of the function."""

    @func.custom_vjp
    def g(*xs: Any) -> Any:
        return f(*xs)

    g.defvjp(
        lambda *xs: (f(*xs), xs),
        lambda xs, c: tuple(c * t for t in func.grad(f, argnums=tuple(range(len(xs))))(*xs)),
    )
    return g


def same(f: Function, s: Setting) -> Function:
    return f


@dataclass(frozen=True)
class Transformation:
    """order: how often it differentiates; without: features of programs that it cannot take."""

    apply: Callable[[Function, Setting], Function]
    reference: Callable[[Function, Setting], Function]
    order: int = 0
    without: frozenset[str] = frozenset()


STATIC = frozenset({"branches", "masks"})
TRANSFORMATIONS: dict[str, Transformation] = {
    "grad": Transformation(grad, differences, 1),
    "jvp": Transformation(jvp, differences, 1),
    "vmap": Transformation(vmap, loop_over_points, 0, STATIC),
    "vjp": Transformation(vjp, differences, 1),
    "hvp": Transformation(hvp, differences_twice, 2),
    "hessian": Transformation(hessian, differences_twice, 2),
    "checkpoint": Transformation(lambda f, s: func.checkpoint(f), same),
    "compile": Transformation(lambda f, s: func.compile(f), same),
    "scan": Transformation(scan, plain_scan, 0),
    "hooks": Transformation(hooks, same),
    "anomaly": Transformation(anomaly, same),
    "linearize": Transformation(linearize, differences, 1),
    "jacrev": Transformation(jacobian(func.jacrev), differences, 1),
    "jacfwd": Transformation(jacobian(func.jacfwd), differences, 1),
    "fori_loop": Transformation(fori_loop, plain_loop, 0),
    "cond": Transformation(cond, same),
    "custom_vjp": Transformation(custom, same),
}


def composed(names: Sequence[str], case: Case, step: float) -> tuple[Function, Function]:
    """The transformed loss, the first name innermost, and its reference on NumPy."""
    f, plain = case.loss(), case.plain_loss()
    for k, name in enumerate(names):
        setting = Setting(case, 100 * (k + 1), step)
        transformation = TRANSFORMATIONS[name]
        f = transformation.apply(f, setting)
        plain = transformation.reference(plain, setting)
    return f, plain


def order(names: Sequence[str]) -> int:
    return sum(TRANSFORMATIONS[n].order for n in names)


class NotSmooth(Exception):
    """The differences of a program depend on their step: a kink is near."""


class Refused(Exception):
    """multigrad refuses a program, as its documentation says."""


OF_MANY_VIEWS = "the output of a function that returns multiple views"
REFUSED = {
    "vmap": (
        "cannot be written into an array from outside of it",
        "Can't call numpy() on a batch",
    ),
    "backward": ("modified by an inplace operation",),
}
"""By transformation: the errors that a program with writes may raise, beside OF_MANY_VIEWS.

Arrays that vmap captures, and what is computed of them alone, have no batch, so they cannot hold
one. A pass over what was recorded outside of transformations finds saved values written, as in
PyTorch, which also refuses writes to what unstack returns.
"""


def refused(error: mg.errors.GradientError, names: Collection[str], program: Program) -> bool:
    texts = [OF_MANY_VIEWS, *(text for name in names for text in REFUSED.get(name, ()))]
    return "writes" in program.features and any(text in str(error) for text in texts)


def expected(names: Sequence[str], case: Case, point: int) -> tuple[float, float]:
    """What the reference computes at a point, and how much a result may differ from it."""
    xs = [x.astype(np.float64) for x in case.arrays(point)]
    high = order(names)
    steps = (STEP, STEP / 2) if high < 2 else (8 * STEP, 4 * STEP)
    first, second = (composed(names, case, step)[1](*xs) for step in steps)
    error = abs(first - second)
    if not math.isfinite(error) or error > 1e-3 * (1.0 + abs(second)):
        raise NotSmooth
    size = 1.0 + abs(second) + abs(case.plain_loss()(*xs))
    return second, error + (2e-3 if case.single else 1e-7 if high < 2 else 1e-6) * size


def check(names: Sequence[str], case: Case, points: Sequence[int] = (0,)) -> None:
    """Compare a transformed program with its reference, at one point after another."""
    f, _ = composed(names, case, STEP)
    for point in points:
        wanted, tolerance = expected(names, case, point)
        xs = [case.target.raw(x) for x in case.arrays(point)]
        context = mg.autograd.set_detect_anomaly(True) if "anomaly" in names else nullcontext()
        try:
            with context, np.errstate(all="ignore"):
                found = case.target.numpy(f(*xs))
        except mg.errors.GradientError as error:
            if refused(error, names, case.program):
                raise Refused from error
            raise
        assert np.shape(found) == (), "the result is one number"
        close(found, wanted, tolerance, " of ".join(reversed(names)))


def close(found: Any, wanted: float, tolerance: float, what: str) -> None:
    assert abs(float(found) - wanted) <= tolerance, (  # which nan is not
        f"{what} gives {float(found)!r}, its reference {wanted!r}"
    )


BEYOND_THE_STANDARD = ("dtypes are allowed in", "is only allowed on arrays with 0 dimensions")
"""What array_api_strict says of dtypes, and of arrays as ends of linspace, that NumPy takes."""


@contextmanager
def skipped() -> Iterator[None]:
    """Leave out a program that is refused, or that differences cannot judge."""
    try:
        yield
    except (NotSmooth, Refused) as error:
        hypothesis.event(type(error).__name__)
    except TypeError as error:
        if not any(text in str(error) for text in BEYOND_THE_STANDARD):
            raise


def eager(backend: str) -> set[str]:
    """The features that programs on Tensors of a backend cannot have.

    An element of a Tensor is a view, as in PyTorch. Libraries promote integers beside floating
    numbers, and scalars of NumPy, each in its own way.
    """
    others = {
        "numpy": (),
        "strict": ("mixed kinds", "NumPy scalars", "lists", "raw operands", "NumPy keys"),
        "jax": ("mixed kinds", "NumPy scalars", "lists", "samples"),
    }
    return {"arguments written", "scalars", *others[backend]}


@st.composite
def nested(
    draw: Any, backend: str, *fixed: str, most: int = 2, often: Sequence[str] = ()
) -> tuple[list[str], Program]:
    """Draw transformations, of second order together at most, and a program for them."""
    names = list(fixed)
    for _ in range(draw(st.integers(0 if fixed else 1, most - len(names)))):
        fits = [n for n in TRANSFORMATIONS if order([*names, n]) <= 2]
        names.insert(draw(st.integers(0, len(names))), draw(st.sampled_from(fits)))
    if order(names) == 0:  # otherwise hooks and checkpoints would do nothing
        names.insert(draw(st.sampled_from([len(names), 0])), draw(st.sampled_from(["grad", "jvp"])))
    without = eager(backend).union(*(TRANSFORMATIONS[n].without for n in names))
    return names, draw(programs(without=without, often=often, most=most_steps(backend)))


def most_steps(backend: str) -> int:
    """JAX compiles each operation for each shape: there, programs are short."""
    return 5 if backend == "jax" else 12


# ----- outside of transformations -----


def backward(case: Case, how: str) -> None:
    """`backward` on leaves, twice on one graph, and a second derivative by `create_graph`."""
    first, tolerance = expected(["grad"], case, 0)
    loss = case.loss()
    leaves = [mg.asarray(case.target.raw(x), requires_grad=True) for x in case.arrays(0)]
    setting = Setting(case, 100, STEP)
    ts = setting.raw_directions(leaves)
    seen: list[Any] = []
    try:
        with np.errstate(all="ignore"):
            out = loss(*leaves)
            if not out.requires_grad:
                assert abs(first) <= tolerance, "the result does not depend on the leaves"
                return
            if how == "twice":
                leaves[0].register_hook(seen.append)
                out.backward(retain_graph=True)
                out.backward()
            grads = (
                [x.grad for x in leaves]
                if how == "twice"
                else mg.autograd.grad(
                    out, leaves, create_graph=how == "second", materialize_grads=True
                )
            )
    except mg.errors.GradientError as error:
        if refused(error, ["backward"], case.program):
            raise Refused from error
        raise
    used = [(g, t, x) for g, t, x in zip(grads, ts, leaves, strict=True) if g is not None]
    found = inner(*zip(*used, strict=True))
    assert len(seen) == (2 if how == "twice" and leaves[0].grad is not None else 0), (
        "hooks run once a pass"
    )
    close(
        case.target.numpy(found),
        (2 if how == "twice" else 1) * first,
        2 * tolerance,
        "the gradient",
    )
    if how == "second" and found.requires_grad:
        more = Setting(case, 150, STEP).raw_directions(leaves)
        seconds = mg.autograd.grad(found, leaves, materialize_grads=True)
        wanted, tolerance = expected(["hvp"], Case(case.program, case.target), 0)
        found = case.target.numpy(inner(seconds, more, leaves))
        close(found, wanted, tolerance, "the second derivative")


def recorded(case: Case, numpy_functions: bool) -> None:
    """A compiled function does what the function does on arrays of NumPy, call after call.

    Branches take their ways at the points in turn. Results are compared with their class: NumPy's
    scalars are no arrays without axes.
    """
    program = case.program

    def function(*args: Any) -> Any:
        xp = np if numpy_functions else args[0].__array_namespace__()
        return program.bind(xp, lambda c: c)(*args)

    compiled = func.compile(function, check=False)
    for point, form in ((0, {}), (1, {}), (0, {"order": "F"}), (1, {"dtype": np.float32}), (1, {})):
        own, ours = (
            [np.array(x, **form) if isinstance(x, np.ndarray) else x for x in program.points[point]]
            for _ in range(2)
        )
        try:
            with np.errstate(all="ignore"):
                wanted, found = function(*own), compiled(*ours)
        except TypeError as error:
            if numpy_functions and "is not supported for Tensors" in str(error):
                raise Refused from error
            raise
        for x, y in zip([*found, *ours], [*wanted, *own], strict=True):
            assert type(x) is type(y), (
                f"{x!r} is of class {type(x).__name__}, not {type(y).__name__}"
            )
        single = "dtype" in form  # also where a float64 array has been filled
        same_values(case, found, wanted, "result", single)
        same_values(case, ours, own, "argument", single)


def same_values(
    case: Case, found: Sequence[Any], wanted: Sequence[Any], what: str, single: bool = False
) -> None:
    """Compare values, to 9 digits; to 4 with `single`, and where the program has float32."""
    target = case.target
    assert len(found) == len(wanted)
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if not hasattr(y, "dtype"):
            assert type(x) is type(y) and x == y, f"{what} {i}"
            continue
        value = target.numpy(x)
        name = target.dtype_name(x.dtype) if hasattr(x, "dtype") else type(x).__name__
        assert name == y.dtype.name, f"{what} {i} has dtype {name}, in NumPy {y.dtype.name}"
        assert np.shape(value) == y.shape, (
            f"{what} {i} has shape {np.shape(value)}, in NumPy {y.shape}"
        )
        small = hasattr(x, "dtype") and value.dtype.itemsize < 8
        digits = 2e-4 if single or case.single or small else 1e-9
        if y.dtype.kind not in "fc":
            digits = 0.0
        np.testing.assert_allclose(value, y, rtol=digits, atol=digits, err_msg=f"{what} {i}")


def values(case: Case) -> None:
    """The results on Tensors are NumPy's, and so is what a write to one of them changes."""
    program, target = case.program, case.target
    point = program.points[case.point]
    own = [np.array(x) if isinstance(x, np.ndarray) else x for x in point]
    expected_ones = program.plain(copy=False)(*own)
    with np.errstate(all="ignore"):
        ours = [mg.asarray(target.raw(x)) if isinstance(x, np.ndarray) else x for x in point]
        found = program.bind(case.names, target.raw)(*ours)
    same_values(case, found, expected_ones, "result")
    same_values(case, ours, own, "argument")
    shared(case, [*found, *ours], [*expected_ones, *own])


def shared(case: Case, found: list[Any], wanted: list[Any]) -> None:
    """Write to each array of NumPy in turn, and to that of multigrad."""
    pairs = [(x, y) for x, y in zip(found, wanted, strict=True) if isinstance(y, np.ndarray)]
    for k, (x, y) in enumerate(pairs):
        if writeable(y) and y.dtype.kind in "fc":
            x[...] = 0.5 + k
            y[...] = 0.5 + k
            after = f"after a write to array {k}, array"
            same_values(case, [a for a, _ in pairs], [b for _, b in pairs], after)
