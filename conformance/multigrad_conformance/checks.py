"""The checks. Each takes a case, and raises an exception if it fails."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np

import multigrad as mg
from multigrad import extend
from multigrad.errors import GradientError
from multigrad.registry import Op

from .compare import DIFFERENCE, EXACT, assert_close, assert_gradient, assert_same
from .differences import along
from .problem import (
    Problem,
    bare,
    floating_of,
    inner,
    is_floating,
    problem_of,
    raw_gradients,
    tensors_of,
    widened,
)
from .rule_calls import Given, assert_each_output, unwritten_gradients
from .sample import OWN_DEVICE, Kink, Refused, Sample, leaves
from .target import DTYPES, Target, call


class Case(NamedTuple):
    """An operation with a sample, on a target."""

    target: Target
    op: Op
    sample: Sample

    @property
    def problem(self) -> Problem:
        return problem_of(self.op.name, self.sample, self.target.single, self.target.has_long)

    def assert_close(
        self,
        actual: Any,
        expected: Any,
        what: str,
        tolerances: dict[str, tuple[float, float]] = EXACT,
        factor: float = 1.0,
    ) -> None:
        """Compare an array of the target with one of NumPy, in the digits that the case has."""
        assert_close(
            self.target.numpy(actual),
            expected,
            what,
            tolerances,
            factor * self.sample.tolerance,
            _narrowest(self.problem),
        )


def forward(case: Case) -> None:
    """Check values, shape and dtype against the standard.

    Results without a derivative must not require grad, and no argument may change.
    """
    target, op, problem = case.target, case.op, case.problem
    check = op.kind == "nondifferentiable"
    raws: list[tuple[Any, Any]] = []

    def wrapped(raw: Any, requires_grad: bool) -> Any:
        if not target.is_raw(raw):
            return raw
        raws.append((raw, target.numpy(raw).copy()))
        x = mg.asarray(raw)
        return x.requires_grad_() if requires_grad and x.array.dtype in _floating(target) else x

    # what a function moves to a device comes from the default one
    elsewhere = target.device is not None and any(v is OWN_DEVICE for v in leaves(problem.values))
    source = Target(target.name, single=target.single) if elsewhere else target
    values = [
        _mapped_raw(
            partial(wrapped, requires_grad=check and role != "plain"),
            (target if v is OWN_DEVICE else source).raw(v),
        )
        for role, v in zip(op.roles.values(), problem.values, strict=True)
    ]
    values = _on_device(target, op, problem, values)
    dtype = _default_dtype(target, op, problem)
    if target.wrap and raws:
        _assert_outputs(case, _transformed(target, op, problem), dtype, raw=True)
        return
    with np.errstate(all="ignore"):
        out = call(op, target.function(op), values)
        _assert_outputs(case, out, dtype)
        if raws and not elsewhere:  # the function accepts raw arrays as well
            plain = _on_device(target, op, problem, [target.raw(v) for v in problem.values])
            _assert_outputs(case, call(op, target.function(op), plain), dtype)
    if check:
        for y in out if isinstance(out, (tuple, list)) else (out,):
            assert not getattr(y, "requires_grad", False), (
                "the operation has no derivative, yet its result requires grad"
            )
    _assert_unchanged(target, raws)
    if "copy" not in op.roles:
        _assert_apart(target, op, out, raws)
    elif target.capabilities.mutable and not elsewhere:
        _assert_copied(target, out, raws, problem.values[list(op.roles).index("copy")])


def _assert_apart(target: Target, op: Op, out: Any, raws: Sequence[tuple[Any, Any]]) -> None:
    """A result that is no view must not lie in the memory of an argument.

    An in-place operation on it would change the argument, and the graph would not notice. The parts
    of a composite operation decide, and building blocks are not for users.
    """
    if op.view is not False or op.kind == "composite" or not op.public:
        return
    shared = target.backend.kernel("shares_memory")
    for y in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(y, mg.Tensor) and y.size:
            assert not any(shared(target.xp, y.array, raw) for raw, _ in raws), (
                "the result shares memory with an argument, and the declaration does not say so: "
                "declare view=True ('same' for the argument itself), or copy in forward"
            )


def _assert_copied(
    target: Target, out: Any, raws: Sequence[tuple[Any, Any]], asked: bool | None
) -> None:
    """Write into a result: an argument must not show it after copy=True, and must after False."""
    if asked is None or len(raws) != 1 or not raws[0][1].size:
        return
    raw, before = raws[0]
    (out.array if isinstance(out, mg.Tensor) else out)[...] = 7
    shown = not np.array_equal(target.numpy(raw), before, equal_nan=before.dtype.kind in "fc")
    assert shown is not asked, (
        "the result shares memory with the argument, in spite of copy=True"
        if asked
        else "the result is a copy, in spite of copy=False"
    )


def _transformed(target: Target, op: Op, problem: Problem) -> Any:
    """Return the raw outputs of an operation inside the function transformation of the variant."""
    values = [target.raw(v) for v in problem.values]
    arrays = [v for v in leaves(values) if target.is_raw(v)]

    def compute(arrays: Sequence[Any]) -> Any:
        given = iter(arrays)
        out = call(
            op,
            target.function(op),
            [
                _mapped_raw(lambda v: mg.asarray(next(given)) if target.is_raw(v) else v, v)
                for v in values
            ],
        )
        return (
            out.array if isinstance(out, mg.Tensor) else tuple(getattr(y, "array", y) for y in out)
        )

    assert target.wrap is not None
    return target.wrap(compute)(arrays)


def _floating(target: Target) -> list[Any]:
    return [
        getattr(target.xp, n)
        for n in ("float32", "float64", "complex64", "complex128")
        if hasattr(target.xp, n)
    ]


def _mapped_raw(f: Callable[[Any], Any], value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_mapped_raw(f, v) for v in value)
    return f(value)


def _on_device(target: Target, op: Op, problem: Problem, values: list[Any]) -> list[Any]:
    """Pass the variant's device to a function that has no array argument."""
    if (
        target.device is None
        or "device" not in op.roles
        or any(isinstance(v, np.ndarray) for v in leaves(problem.values))
    ):
        return values
    values[list(op.roles).index("device")] = target.device
    return values


def _default_dtype(target: Target, op: Op, problem: Problem) -> str:
    """Return the default dtype of a creation function, which the library chooses."""
    if any(isinstance(v, np.ndarray) for v in leaves(problem.values)) or not isinstance(
        problem.forward(), (np.ndarray, np.generic)
    ):
        return ""
    if "dtype" not in op.roles or problem.values[list(op.roles).index("dtype")] is not None:
        return ""
    kind = {"f": "real floating", "c": "complex floating", "i": "integral"}.get(
        np.asarray(problem.forward()).dtype.kind
    )
    if kind is None:
        return ""
    namespace = target.backend.namespace
    return target.dtype_name(
        namespace.__array_namespace_info__().default_dtypes(device=target.device)[kind]
    )


def _assert_outputs(case: Case, out: Any, dtype: str = "", raw: bool = False) -> None:
    target, sample, problem = case.target, case.sample, case.problem
    exact, wide = problem.forward(), problem.wide.forward()
    # where a setting asks for them
    several = problem.op.outputs != () or (
        problem.op.kind == "composite" and isinstance(exact, (tuple, list))
    )
    if not several and not isinstance(exact, (np.ndarray, np.generic)):
        assert_same(target, out, exact, wide, "result", raw=raw)
        return
    outs, exacts, wides = (tuple(out), exact, wide) if several else ((out,), (exact,), (wide,))
    assert len(outs) == len(exacts), f"{len(outs)} outputs, expected {len(exacts)}"
    for i, (y, e, w) in enumerate(zip(outs, exacts, wides, strict=True)):
        what = problem.op.outputs[i] if problem.op.outputs else f"output {i}"
        if problem.op.outputs:
            assert y is getattr(out, what, y), f"the field {what} is not output {i}"
        assert_same(
            target,
            y,
            e,
            w,
            what,
            values=sample.values and problem.finish is None,
            factor=sample.tolerance,
            expected_dtype=dtype,
            raw=raw,
        )
    if problem.finish is not None and sample.values:
        definite = problem.finished(target.xp if raw else target.bound, out)
        for i, (y, w) in enumerate(
            zip(*map(_tuple, (definite, problem.wide.finished(bare(), wide))), strict=True)
        ):
            case.assert_close(y, w, f"finished output {i}")


def _tuple(out: Any) -> tuple[Any, ...]:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _assert_unchanged(target: Target, raws: Sequence[tuple[Any, Any]]) -> None:
    for raw, before in raws:
        assert np.array_equal(target.numpy(raw), before, equal_nan=before.dtype.kind in "fc"), (
            "an argument was changed"
        )


def vjp(case: Case) -> None:
    """Compare the gradients with finite differences and with NumPy's in float64.

    The rule must not change its arguments.
    """
    target, problem = case.target, case.problem
    raws = [target.raw(x) for x in problem.leaves()]
    with np.errstate(all="ignore"):
        grads = unwritten_gradients(target, problem)
    wide = problem.wide
    other = target.name != "numpy" or target.single  # otherwise it would compare NumPy with itself
    for i, (g, raw) in enumerate(zip(grads, raws, strict=True)):
        what = f"gradient {_name(problem, i)}"
        assert_gradient(target, g, raw, what)
        case.assert_close(
            g, wide.difference_gradients[i], f"{what}, finite differences", DIFFERENCE
        )
        if other:
            case.assert_close(g, wide.numpy_gradients[i], f"{what}, NumPy")


def each_output(case: Case) -> None:
    """Differentiate each output alone, and compare with finite differences."""
    with np.errstate(all="ignore"):
        assert_each_output(
            case.target, case.problem, case.sample.tolerance, _narrowest(case.problem)
        )


def _name(problem: Problem, i: int) -> str:
    position, j = problem.places[i]
    name = list(problem.op.roles)[position]
    return name if j is None else f"{name}[{j}]"


def _narrowest(problem: Problem) -> str:
    """Return the precision of the expected digits: that of the narrowest array involved."""
    narrow = ("float32", "complex64")
    return (
        "float32"
        if any(
            x.dtype.name in narrow
            for x in [*leaves(problem.values), *problem.outputs]
            if is_floating(x)
        )
        else "float64"
    )


def jvp(case: Case) -> None:
    """Compare the tangents with finite differences.

    They must be the adjoint of the gradients under the real inner product. No argument may change.
    """
    target, _, sample = case
    problem = case.problem
    values = [target.raw(v) for v in problem.values]
    outs = _moved(case, values, problem.tangents)
    for i, (m, y) in enumerate(outs):
        assert m is not None, f"the tangent of output {i} is missing"
        assert m.dtype == y.dtype and tuple(m.shape) == tuple(y.shape), (
            f"tangent {m.dtype} {m.shape}, output {y.dtype} {y.shape}"
        )
    tangents_out = [target.numpy(m) for m, _ in outs]
    if problem.finish is not None:
        tangents_out = along(
            lambda ys: floating_of(problem.finished(bare(), tuple(ys))),
            [widened(target.numpy(y)) for _, y in outs],
            tangents_out,
        )
    for i, tangent in enumerate(tangents_out):
        case.assert_close(tangent, problem.wide.difference_tangents[i], f"tangent {i}", DIFFERENCE)
    gradients = [
        target.numpy(g)
        for g in raw_gradients(
            target,
            problem,
            [target.raw(x) for x in problem.leaves()],
            [target.raw(g) for g in problem.cotangents],
        )
    ]
    left, right = inner(problem.cotangents, tangents_out), inner(problem.tangents, gradients)
    scale = 1 + sum(float(np.sum(np.abs(g))) for g in gradients)
    tolerance = 1e-10 if _narrowest(problem) == "float64" else 1e-5
    assert abs(left - right) <= tolerance * scale * sample.tolerance, (
        f"Re<g, jvp(t)> = {left}, but Re<vjp(g), t> = {right}"
    )


def _moved(case: Case, values: list[Any], tangents: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the tangent of each floating output by the rule, with the output.

    The rule must not change what it is given.
    """
    target, op, _ = case
    given = Given(target)
    with np.errstate(all="ignore"):
        ans = call(op, target.raw_function(op), values)
        ans = ans if op.outputs == () else tuple(ans)
        moved = extend.jvp(
            op,
            given.note("an argument", values),
            given.note("a tangent", _tangents(target, case.problem, tangents)),
            given.note("an output", ans),
            conform=False,
        )
    given.assert_unchanged("jvp")
    pairs = zip(*((moved, ans) if op.outputs != () else ((moved,), (ans,))), strict=True)
    return [(m, y) for m, y in pairs if y.dtype in _floating(target)]


def dual(case: Case) -> None:
    """Carry tangents through the public function by Duals, and compare with finite differences.

    This applies to composites as well.
    """
    target, problem = case.target, case.problem
    raws, tangents = ([target.raw(x) for x in xs] for xs in (problem.leaves(), problem.tangents))
    with np.errstate(all="ignore"):
        outs, moved = mg.func.jvp(_function(case), tuple(raws), tuple(tangents))
    for i, (m, y, expected) in enumerate(
        zip(moved, outs, problem.wide.difference_tangents, strict=True)
    ):
        assert target.is_raw(m), f"tangent {i} is of {type(m).__name__}"
        assert m.dtype == y.dtype and tuple(m.shape) == tuple(y.shape), (
            f"tangent {m.dtype} {m.shape}, output {y.dtype} {y.shape}"
        )
        case.assert_close(m, expected, f"tangent {i}", DIFFERENCE)
    _assert_unchanged(
        target, list(zip([*raws, *tangents], [*problem.leaves(), *problem.tangents], strict=True))
    )


def nested(case: Case) -> Any:
    """Apply forward mode to the gradients, compare with differences, and return the result."""
    target, problem = case.target, case.problem
    raws, tangents = ([target.raw(x) for x in xs] for xs in (problem.leaves(), problem.tangents))
    cotangents = tuple(target.raw(g) for g in problem.cotangents)

    def gradients(*xs: Any) -> Any:
        return mg.func.vjp(_function(case), *xs)[1](cotangents)

    with np.errstate(all="ignore"):
        _, derivatives = mg.func.jvp(gradients, tuple(raws), tuple(tangents))
    for i, (s, raw, expected) in enumerate(
        zip(derivatives, raws, problem.wide.difference_second, strict=True)
    ):
        what = f"the derivative of gradient {_name(problem, i)}"
        assert_gradient(target, s, raw, what)
        case.assert_close(s, expected, what, DIFFERENCE, 10)
    return derivatives


def _function(case: Case) -> Callable[..., Any]:
    """Return the operation as a function of the arrays to differentiate, with floating outputs."""
    target, op, _ = case
    values = [target.raw(v) for v in case.problem.values]

    def function(*xs: Any) -> Any:
        out = case.problem.finished(
            target.bound, call(op, target.function(op), case.problem.replaced(xs, values))
        )
        return tuple(y for y in _tuple(out) if y.dtype in _floating(target))

    return function


def _tangents(target: Target, problem: Problem, given: Sequence[Any]) -> list[Any]:
    """Return one tangent per parameter.

    It is an array, a tuple of arrays for a list of arrays, or None for a constant parameter.
    """
    flat = {place: target.raw(t) for place, t in zip(problem.places, given, strict=True)}
    result: list[Any] = []
    for i, role in enumerate(problem.op.roles.values()):
        if role == "arrays":
            result.append(tuple(flat.get((i, j)) for j in range(len(problem.values[i]))))
        else:
            result.append(flat.get((i, None)))
    return result


def second(case: Case) -> None:
    """Differentiate the gradients with respect to the arguments and to the cotangents.

    The results are compared with differences of the gradients and of the outputs.
    """
    target, op, problem = case.target, case.op, case.problem
    values = [target.raw(v) for v in problem.values]
    xs = [mg.asarray(target.raw(x), requires_grad=True) for x in problem.leaves()]
    gs = [mg.asarray(target.raw(g), requires_grad=True) for g in problem.cotangents]
    with np.errstate(all="ignore"):
        outs = tensors_of(
            problem.finished(
                target.bound, call(op, target.function(op), problem.replaced(xs, values))
            )
        )
        first = mg.autograd.grad(outs, xs, grad_outputs=gs, create_graph=True)
        kept = [
            (f, target.raw(v))
            for f, v in zip(first, problem.tangents, strict=True)
            if f.requires_grad
        ]
        seconds: Sequence[Any] = [None] * (len(xs) + len(gs))
        if kept:
            seconds = mg.autograd.grad(
                [f for f, _ in kept],
                [*xs, *gs],
                grad_outputs=[v for _, v in kept],
                allow_unused=True,
            )
    expected = [*problem.wide.difference_second, *problem.wide.difference_tangents]
    for i, (s, leaf, e) in enumerate(zip(seconds, [*xs, *gs], expected, strict=True)):
        what = (
            f"second derivative by {_name(problem, i)}"
            if i < len(xs)
            else f"derivative by cotangent {i - len(xs)}"
        )
        if s is None:  # an unused argument has gradient 0
            assert_close(np.zeros_like(e), e, what, DIFFERENCE)
            continue
        assert_gradient(target, s.array, leaf.array, what)
        case.assert_close(s, e, what, DIFFERENCE, 10)


def kink(case: Case) -> None:
    """At a kink or a singular point, check the values and the stated gradients."""
    target, op, sample = case
    assert isinstance(sample, Kink)
    problem = case.problem
    values = [target.raw(v) for v in problem.values]
    xs = [mg.asarray(target.raw(x), requires_grad=True) for x in problem.leaves()]
    with np.errstate(all="ignore"):
        out = call(op, target.function(op), problem.replaced(xs, values))
        _assert_outputs(case, out)
        outs = tensors_of(out)
        ones = [mg.asarray(target.raw(np.ones(y.shape, target.numpy(y).dtype))) for y in outs]
        grads = mg.autograd.grad(outs, xs, grad_outputs=ones, create_graph=bool(sample.second))
    _assert_stated(case, grads, sample.gradients, "gradient")
    if op.kind != "composite":
        _assert_adjoint(case, values, [target.numpy(g) for g in grads])
    if sample.second:
        _assert_stated(case, _again(target, grads, xs), sample.second, "second derivative")


def _again(target: Target, grads: Any, xs: list[Any]) -> list[Any]:
    """Return the gradients of the sum of `grads`, zero where these depend on no argument."""
    recorded = [g for g in grads if g.requires_grad]
    if not recorded:
        return [mg.zeros_like(x) for x in xs]
    with np.errstate(all="ignore"):
        ones = [mg.asarray(target.raw(np.ones(g.shape, target.numpy(g).dtype))) for g in recorded]
        return list(
            mg.autograd.grad(
                recorded, xs, grad_outputs=ones, allow_unused=True, materialize_grads=True
            )
        )


def _assert_adjoint(case: Case, values: list[Any], gradients: list[Any]) -> None:
    """Check that the tangent along ones agrees with the gradients, where both are finite.

    Both modes must choose the same subgradient at a kink.
    """
    ones = [np.ones(np.shape(x), np.asarray(x).dtype) for x in case.problem.leaves()]
    tangents = [case.target.numpy(m) for m, _ in _moved(case, values, ones)]
    if all(np.all(np.isfinite(x)) for x in (*tangents, *gradients)):
        left, right = (
            inner([np.ones(t.shape, t.dtype) for t in tangents], tangents),
            inner(ones, gradients),
        )
        assert_close(
            np.asarray(left),
            np.asarray(right),
            "the sum of tangents, against that of the gradients",
        )


def _assert_stated(case: Case, grads: Sequence[Any], stated: Any, what: str) -> None:
    problem = case.problem
    for i, g in enumerate(grads):
        value = stated.get(_name(problem, i))
        if value is not None:
            expected = np.asarray(value, dtype=problem.wide.leaves()[i].dtype)
            assert_close(case.target.numpy(g), expected, f"{what} {_name(problem, i)}")


def refused(case: Case) -> None:
    """Check that a gradient that would be wrong raises the stated error.

    Where values are unknown, the gradient must be nan.
    """
    target, op, sample = case
    assert isinstance(sample, Refused)
    problem = case.problem
    xs = [mg.asarray(target.raw(x), requires_grad=True) for x in problem.leaves()]
    with np.errstate(all="ignore"):
        outs = problem.finished(
            target.bound,
            call(
                op,
                target.function(op),
                problem.replaced(xs, [target.raw(v) for v in problem.values]),
            ),
        )
        try:
            grads = mg.autograd.grad(
                tensors_of(outs),
                xs,
                grad_outputs=[mg.asarray(target.raw(g)) for g in problem.cotangents],
            )
        except GradientError as error:
            assert sample.message in str(error), (
                f"the gradient is refused, but not because {sample.message!r}: {error}"
            )
            return
    for i, g in enumerate(grads):
        assert np.all(np.isnan(target.numpy(g))), (
            f"gradient {_name(problem, i)} should be refused: {sample.message}"
        )


def derived(case: Case) -> None:
    """Check forward, gradients and tangents of a sample derived from another one."""
    forward(case)
    if case.problem.places:
        vjp(case)
        if case.op.kind != "composite":
            jvp(case)
        dual(case)


def empty(case: Case) -> None:
    """Run all checks, up to the second derivative, on arrays without elements or without axes."""
    derived(case)
    if case.problem.places:
        second(case)


LAYOUTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    # how to store an array, and how to read it back, so that its memory is not contiguous
    "transposed": (
        lambda x: np.ascontiguousarray(x.T) if x.ndim else x,
        lambda xp, x: xp.permute_dims(x, tuple(reversed(range(x.ndim)))),
    ),
    "reversed": (
        lambda x: np.flip(x),
        lambda xp, x: xp.getitem(x, (slice(None, None, -1),) * x.ndim),
    ),
    "sliced": (lambda x: np.repeat(x, 2, axis=-1), lambda xp, x: x[..., ::2]),
    "repeated": (lambda x: x[:1], lambda xp, x: xp.broadcast_to(x, (2, *x.shape[1:]))),
}


def layout(case: Case, name: str) -> None:
    """Arrays that are not contiguous in memory must give the gradients of contiguous ones."""
    target, problem = case.target, case.problem
    store, view = LAYOUTS[name]
    if name == "repeated":  # only equal rows can share memory
        problem = problem.at(
            problem.replaced(
                [np.repeat(x[:1], 2, axis=0) if x.ndim else x for x in problem.leaves()]
            )
        )
    raws = [
        view(target.xp, target.raw(np.array(store(x)))) if x.ndim else target.raw(x)
        for x in problem.leaves()
    ]
    for raw, x in zip(raws, problem.leaves(), strict=True):
        assert_close(target.numpy(raw), x, "the view itself")
    grads = raw_gradients(target, problem, raws, [target.raw(g) for g in problem.cotangents])
    for i, (g, raw) in enumerate(zip(grads, raws, strict=True)):
        assert_gradient(target, g, raw, _name(problem, i))
        case.assert_close(g, problem.wide.numpy_gradients[i], f"gradient {_name(problem, i)}")
    _assert_unchanged(target, list(zip(raws, problem.leaves(), strict=True)))


def raw_operand(case: Case, side: str) -> None:
    """A raw array on one side of an operator must give a Tensor.

    If the library's arrays do not defer, it must raise a TypeError.
    """
    target, op, _ = case
    problem = case.problem
    a, b = (target.raw(v) for v in problem.values[:2])
    tensor = mg.asarray(b if side == "left" else a)
    if op.kind != "nondifferentiable":
        tensor = tensor.requires_grad_()
    function = getattr(
        operator, {"divmod": "divmod", "and": "and_", "or": "or_"}.get(op.operator, op.operator)
    )
    with np.errstate(all="ignore"):
        try:
            out = function(a, tensor) if side == "left" else function(tensor, b)
        except TypeError:
            assert side == "left" and not target.capabilities.defers, (
                "the operator raises a TypeError. If the library's arrays do not defer to "
                "others, say so: Backend(capabilities=Capabilities(defers=False))"
            )
            return
    _assert_outputs(case, out)
    if op.kind != "nondifferentiable":
        assert out.requires_grad, "the result has lost its gradient"
        (g,) = mg.autograd.grad(
            out, tensor, grad_outputs=mg.asarray(target.raw(problem.cotangents[0]))
        )
        expected = problem.wide.numpy_gradients[1 if side == "left" else 0]
        assert_close(target.numpy(g), expected, "gradient")


def beside_raw(case: Case) -> None:
    """Differentiate by each argument alone, while the others are raw arrays.

    The operators of a composite then meet both, in either order.
    """
    target, op, problem = case.target, case.op, case.problem
    raws = [target.raw(x) for x in problem.leaves()]
    values = [target.raw(v) for v in problem.values]
    cotangents = [target.raw(g) for g in problem.cotangents]
    for k, raw in enumerate(raws):
        x = mg.asarray(raw, requires_grad=True)
        arguments = problem.replaced([*raws[:k], x, *raws[k + 1 :]], values)
        what = f"gradient {_name(problem, k)}, beside raw arrays"
        with np.errstate(all="ignore"):
            out = call(op, target.function(op), arguments)
            outs = tensors_of(problem.finished(target.bound, out))
            (g,) = mg.autograd.grad(outs, x, grad_outputs=cotangents[: len(outs)])
        assert_gradient(target, g.array, raw, what)
        case.assert_close(g, problem.wide.numpy_gradients[k], what)


def override(case: Case) -> None:
    """Compare the backend's own form of a kernel with the default, on the same arrays.

    The default uses only functions of the standard.
    """
    target, op, sample = case
    backend = target.backend
    values = [target.raw(v) for v in case.problem.values]
    others = {k: v for k, v in backend.functions.items() if k != op.name}
    xp = extend.raw_namespace(replace(backend, functions=others))
    default = op.forward["*"] if isinstance(op.forward, dict) else op.forward
    with np.errstate(all="ignore"):
        own = call(op, backend.functions[op.name], values)
        generic = (resolve_name(default) if isinstance(default, str) else default)(xp, *values)
    finished = case.problem.finish is not None
    pair = [
        _tuple(case.problem.finished(target.xp, out)) if finished or op.outputs != () else (out,)
        for out in (own, generic)
    ]
    for i, (y, e) in enumerate(zip(*pair, strict=True)):
        expected = target.numpy(e)
        assert_same(
            target,
            y,
            np.asarray(expected),
            expected,
            f"output {i}",
            factor=sample.tolerance,
            raw=True,
            expected_dtype=target.dtype_name(e.dtype),
        )


def conversion(case: Case) -> None:
    """Convert to NumPy and back: the values survive, and the gradient returns to this library."""
    target = case.target
    (x,) = (target.raw(v) for v in case.problem.values[:1])
    t = mg.asarray(x, requires_grad=True)
    other = t.to_backend("numpy")
    assert isinstance(other.array, np.ndarray | np.generic), (
        "to_backend('numpy') wraps no NumPy array"
    )
    assert_close(np.asarray(other.array), target.numpy(x), "values")
    name = target.dtype_name(x.dtype)
    assert other.array.dtype.name == name, (
        f"to_backend('numpy') makes {other.array.dtype.name} of {name}"
    )
    back = (other * 2.0).to_backend(target.name)
    assert target.is_raw(back.array), "after the way back, it is not an array of this library"
    _assert_dtypes_survive(target)
    (g,) = mg.autograd.grad(back.sum(), t)
    assert_gradient(target, g.array, x, "gradient")
    assert_close(target.numpy(g), np.full(x.shape, 2.0), "gradient")


def _assert_dtypes_survive(target: Target) -> None:
    """A NumPy array of each dtype that the library makes must become one of that dtype."""
    for name in DTYPES:
        value = np.ones((2,), name)
        if not target._makes(name, value.dtype):
            continue
        by_asarray = mg.asarray(value, backend=target.name).array
        by_kernel = target.kernel("from_numpy")(target.xp, value)
        for way, x in (("asarray", by_asarray), ("the kernel from_numpy", by_kernel)):
            made = target.dtype_name(x.dtype)
            assert made == name, f"{way} makes {made} of a NumPy array of {name}"
