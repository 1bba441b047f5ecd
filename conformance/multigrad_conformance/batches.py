"""The checks of vmap.

The result for a batch must equal the result of a loop over the examples, and no operation may fall
back to such a loop.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import extend
from multigrad.errors import BatchingError
from multigrad.registry import OPS, Op

from . import checks
from .checks import Case
from .compare import DIFFERENCE, assert_close
from .problem import Problem
from .sample import is_array, leaves
from .target import call

SIZE = 3


def applies(problem: Problem) -> bool:
    """Return whether an argument is an array that may differ between examples."""
    return bool(_may_differ(problem))


def vmap(case: Case) -> None:
    """Batch all arrays at once, and compare with a loop."""
    with _nothing_slow(case.op), np.errstate(all="ignore"):
        _assert_looped(case, _batch(case.problem, SIZE), _may_differ(case.problem), 0, 0)


def vmap_each(case: Case) -> None:
    """Batch each array by itself, and one example alone, along other axes."""
    batch = _batch(case.problem, SIZE)
    everything = _may_differ(case.problem)
    with _nothing_slow(case.op), np.errstate(all="ignore"):
        _assert_looped(case, [x[:1] for x in batch], everything, -1, 0)
        for i in everything if len(everything) > 1 else ():
            _assert_looped(case, batch, [i], -1, -1)


def _assert_looped(
    case: Case, batch: Sequence[Any], own: Sequence[int], in_axis: int, out_axis: int
) -> None:
    """Batch the arrays `own` along `in_axis`, with the first example of the others; compare."""
    target, op, sample = case
    problem = case.problem
    told: list[Any] = []

    def function(*arrays: Any) -> Any:
        given = dict(zip(own, arrays, strict=True))
        values = _filled(
            problem, lambda i, _: given[i] if i in given else target.raw(batch[i][0]), target
        )
        out = problem.finished(target.bound, call(op, target.function(op), values))
        if all(extend.level_of(y) for y in checks._tuple(out)):
            return tuple(checks._tuple(out))
        told.append(out)  # for example a dtype, which is the same for all examples
        return ()

    size = len(batch[own[0]])
    stacked = [target.raw(np.moveaxis(batch[i], 0, in_axis)) for i in own]
    mapped = mg.func.vmap(function, in_axes=in_axis, out_axes=out_axis)
    results = _unless_refused(case, lambda: mapped(*stacked), batch, own)
    if results is None:
        return
    checks._assert_unchanged(
        target, [(x, np.moveaxis(batch[i], 0, in_axis)) for x, i in zip(stacked, own, strict=True)]
    )
    expected = [function(*(target.raw(batch[i][k]) for i in own)) for k in range(size)]
    names = ", ".join(_arrays(problem)[i][0] for i in own)
    _assert_rows(case, results, expected, f"{names} batched", sample.values, out_axis)
    assert all(x == told[0] for x in told), f"{told[0]} inside vmap, but {told[-1]} of one example"


def vmap_vjp(case: Case) -> None:
    """Compute the gradients of each example, with integer arguments batched too; compare."""
    target, problem = case.target, case.problem
    arrays, cotangents = _batch(problem, SIZE), [_examples(g, SIZE, "") for g in problem.cotangents]
    own = _may_differ(problem)
    given = [target.raw(arrays[i]) for i in own], [target.raw(g) for g in cotangents]

    def gradients(arrays: Sequence[Any], gs: Sequence[Any]) -> Any:
        function, xs = _differentiated(case, dict(zip(own, arrays, strict=True)))
        return mg.func.vjp(function, *xs)[1](tuple(gs))

    with _nothing_slow(case.op), np.errstate(all="ignore"):
        results = _unless_refused(case, lambda: mg.func.vmap(gradients)(*given), arrays, own)
        if results is not None:
            expected = [
                gradients(
                    [target.raw(arrays[i][k]) for i in own], [target.raw(g[k]) for g in cotangents]
                )
                for k in range(SIZE)
            ]
            _assert_rows(case, results, expected, "gradient of each example")


def vmap_pullback(case: Case) -> None:
    """Apply the pullback of one example to a batch of cotangents."""
    target, problem = case.target, case.problem
    cotangents = [_examples(g, SIZE, "") for g in problem.cotangents]
    with _nothing_slow(case.op), np.errstate(all="ignore"):
        pull = mg.func.vjp(checks._function(case), *(target.raw(x) for x in problem.leaves()))[1]
        results = mg.func.vmap(pull)(tuple(target.raw(g) for g in cotangents))
        expected = [pull(tuple(target.raw(g[k]) for g in cotangents)) for k in range(SIZE)]
        _assert_rows(case, results, expected, "gradient")


def vmap_jvp(case: Case) -> None:
    """Compute the tangents of each example, and those of the batch as a whole."""
    target, problem = case.target, case.problem
    arrays, tangents = _batch(problem, SIZE), [_examples(t, SIZE, "") for t in problem.tangents]
    own = _may_differ(problem)

    def moved(arrays: Sequence[Any], ts: Sequence[Any]) -> Any:
        function, xs = _differentiated(case, dict(zip(own, arrays, strict=True)))
        return mg.func.jvp(function, tuple(xs), tuple(ts))[1]

    with _nothing_slow(case.op), np.errstate(all="ignore"):
        results = _unless_refused(
            case,
            lambda: mg.func.vmap(moved)(
                [target.raw(arrays[i]) for i in own], [target.raw(t) for t in tangents]
            ),
            arrays,
            own,
        )
        if results is None:
            return
        expected = [
            moved([target.raw(arrays[i][k]) for i in own], [target.raw(t[k]) for t in tangents])
            for k in range(SIZE)
        ]
        _assert_rows(case, results, expected, "tangent of each example")
        function = checks._function(case)
        primals = [_examples(x, SIZE, "") for x in problem.leaves()]
        rows = [
            [tuple(target.raw(x[k]) for x in xs) for xs in (primals, tangents)] for k in range(SIZE)
        ]
        whole = [tuple(map(target.raw, xs)) for xs in (primals, tangents)]
        results = mg.func.jvp(mg.func.vmap(function), *whole)[1]
        expected = [mg.func.jvp(function, *row)[1] for row in rows]
        _assert_rows(case, results, expected, "tangent of the batch")


def nested(case: Case) -> None:
    """Apply forward mode to the gradients, also to a batch of them; compare with differences."""
    derivatives = checks.nested(case)
    target, problem = case.target, case.problem
    xs, ts = ([[x, x] for x in problem.leaves()], [[t, -2 * t] for t in problem.tangents])
    cotangents = tuple(target.raw(g) for g in problem.cotangents)

    def gradients(*xs: Any) -> Any:
        return mg.func.vjp(checks._function(case), *xs)[1](cotangents)

    with _nothing_slow(case.op), np.errstate(all="ignore"):
        both = _unless_refused(
            case,
            lambda: mg.func.jvp(
                mg.func.vmap(gradients),
                *(tuple(target.raw(np.stack(v)) for v in vs) for vs in (xs, ts)),
            ),
            _batch(problem, 1),
            _picked(problem, _filled(problem, lambda i, _: i, _AsIs())),
        )
    for i, (s, one) in enumerate(
        zip(both[1], map(target.numpy, derivatives), strict=True) if both else ()
    ):
        assert_close(
            target.numpy(s),
            np.stack([one, -2 * one]),
            f"the derivative of a batch of gradients {i}",
            DIFFERENCE,
            10 * case.sample.tolerance,
        )


# ----- batches -----


def _arrays(problem: Problem) -> list[tuple[str, Any]]:
    """Return the arrays among the arguments with the names of their parameters."""
    return [
        (name, x)
        for name, value in zip(problem.op.roles, problem.values, strict=True)
        for x in leaves(value)
        if is_array(x)
    ]


def _may_differ(problem: Problem) -> list[int]:
    """Return the indices of the arrays that may differ between examples.

    They are array arguments, and integers in indexing keys; masks in keys are excluded.
    """
    roles = problem.op.roles
    return [
        i
        for i, (name, x) in enumerate(_arrays(problem))
        if roles[name] != "plain" or (name == "key" and x.dtype.kind in "iu")
    ]


def _filled(problem: Problem, array: Callable[[int, Any], Any], target: Any) -> list[Any]:
    """Return the arguments, with each array replaced by `array(number, value)`."""
    count = iter(range(len(_arrays(problem))))

    def fill(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(fill(v) for v in value)
        return array(next(count), value) if is_array(value) else target.raw(value)

    return [fill(v) for v in problem.values]


def _picked(problem: Problem, values: Sequence[Any]) -> list[Any]:
    """Return the arguments to differentiate with respect to."""
    return [values[i] if j is None else values[i][j] for i, j in problem.places]


def _batch(problem: Problem, size: int) -> list[Any]:
    """Return a batch for each array; the first example is that of the sample.

    The other examples are scaled by factors near 1, which preserve domain, order and symmetry.
    """
    return [_examples(x, size, name) for name, x in _arrays(problem)]


def _examples(x: Any, size: int, name: str) -> Any:
    if x.dtype.kind in "fc":
        return np.stack([x * np.asarray(1 - 0.04 * i, x.real.dtype) for i in range(size)])
    return np.stack(
        [x if name == "sorter" else np.reshape(np.roll(x, i), x.shape) for i in range(size)]
    )


def _differentiated(case: Case, given: dict[int, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the operation as a function of the arrays to differentiate, and these arrays.

    `given` replaces some of the arguments.
    """
    target, op, _ = case
    problem = case.problem
    values = _filled(problem, lambda i, x: given[i] if i in given else target.raw(x), target)

    def function(*xs: Any) -> Any:
        out = problem.finished(
            target.bound, call(op, target.function(op), problem.replaced(xs, values))
        )
        return tuple(y for y in checks._tuple(out) if y.dtype in checks._floating(target))

    return function, _picked(problem, values)


# ----- comparison -----


def _unless_refused(
    case: Case, compute: Callable[[], Any], batch: Sequence[Any], own: Sequence[int]
) -> Any:
    """Return the result of a batch, or None if vmap refuses it.

    vmap must refuse it if the shape of the result depends on values.
    """
    must = _must_refuse(case, batch, own)
    try:
        results = compute()
    except BatchingError as error:
        if must is False:
            raise
        assert "depends on the values" in str(error), (
            f"the error does not say what is wrong: {error}"
        )
        return None
    assert not must, "the shape of the result depends on values, yet vmap has computed it"
    return results


def _must_refuse(case: Case, batch: Sequence[Any], own: Sequence[int]) -> bool | None:
    """Return whether the shape of the result depends on the values of these arrays.

    None if the arrays are too small to decide it.
    """
    if case.sample.needs not in ("data_dependent", "boolean_indexing"):
        return False
    problem = case.problem
    if all(batch[i][0].size < 2 for i in own):
        return None
    shapes = set()
    for fill in (
        lambda i, x: x,
        lambda i, x: np.ones_like(x) if i in own else x,
        lambda i, x: np.zeros_like(x) if i in own else x,
    ):
        out = problem.at(_filled(problem, fill, _AsIs())).forward()
        shapes.add(tuple(np.shape(y) for y in checks._tuple(out)))
    return len(shapes) > 1


class _AsIs:
    """A target that leaves NumPy's values unchanged."""

    raw = staticmethod(lambda value: value)


def _assert_rows(
    case: Case,
    results: Any,
    expected: Sequence[Any],
    what: str,
    values: bool = True,
    axis: int = 0,
) -> None:
    """Compare the results of a batch with those of its examples."""
    target, tolerance = case.target, case.sample.tolerance
    for j, y in enumerate(results):
        assert target.is_raw(y), f"{what}: output {j} is of {type(y).__name__}"
        rows = [target.numpy(e[j]) for e in expected]
        dtype = getattr(expected[0][j], "dtype", None)
        assert y.dtype == dtype, (
            f"{what}: output {j} has dtype {y.dtype}, that of one example {dtype}"
        )
        stacked = np.moveaxis(np.stack(rows), 0, axis)
        if values:
            assert_close(
                target.numpy(y), stacked, f"{what}: output {j}, against a loop", factor=tolerance
            )
        else:
            assert tuple(y.shape) == stacked.shape, (
                f"{what}: output {j} has shape {tuple(y.shape)}, expected {stacked.shape}"
            )


@contextmanager
def _nothing_slow(op: Op) -> Iterator[None]:
    """Context in which no operation may fall back to a loop over the examples.

    This holds for `op` and for the operations of the standard that it calls. Another package's
    operation may loop if it has no batching rule. multigrad warns only once per operation, so for
    `op` itself the declaration is checked.
    """
    assert (
        op.batching is not None
        or op.kind == "composite"
        or not op.arrays
        or op.chapter == "data_type"
        or _is_foreign(op)
    ), f"the operation {op.name!r} has no batching rule"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for w in caught:
        slow = re.match(r"the operation '([^']*)' has no batching rule", str(w.message))
        assert slow is None or _is_foreign(OPS[slow[1]]), str(w.message)


def _is_foreign(op: Op) -> bool:
    return op.module.partition(".")[0] != "multigrad"
