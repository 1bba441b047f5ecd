"""detect_breaks: each line on which a gradient is lost, exactly; parameters that did not reach the
loss; and a program that does not notice.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import gc
import inspect
import math
import pickle
import re
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leaves import ones
from report_pages import REPOSITORY, command

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function, detect_breaks
from multigrad.autograd.profiler import profile
from multigrad.observe import gate
from multigrad.tools.breaks.report import WHY

HERE = str(Path(__file__))


def leaf(xp: Any, *values: float) -> Any:
    return xp.asarray(list(values or (1.5, 2.5)), dtype=xp.float64, requires_grad=True)


def quiet(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function()


def refused(function: Any) -> None:
    with pytest.raises((RuntimeError, BufferError)):
        function()


# One line each. Of every lambda: what is to be reported, by kind and name.


def whole(xp: Any, x: Any) -> Any:
    return xp.astype(x, xp.int64)


def real(xp: Any, x: Any) -> Any:
    return xp.astype(x, xp.float64)


CASES = {
    "asarray": (lambda xp, y: refused(lambda: np.asarray(y)), "refused", "np.asarray()"),
    "numpy": (lambda xp, y: refused(lambda: y.numpy()), "refused", ".numpy()"),
    "dlpack": (lambda xp, y: refused(lambda: np.from_dlpack(y)), "refused", "from_dlpack()"),
    "float": (lambda xp, y: quiet(lambda: float(y[0])), "number", "float()"),
    "item": (lambda xp, y: y[0].item(), "number", ".item()"),
    "tolist": (lambda xp, y: y.tolist(), "number", ".tolist()"),
    "array": (lambda xp, y: y.array, "raw", ".array"),
    "data": (lambda xp, y: y.data, "detached", ".data"),
    "detach": (lambda xp, y: y.detach(), "detached", ".detach()"),
    "detach_": (lambda xp, y: (y * 1).detach_(), "detached", ".detach_()"),
    "tensor": (lambda xp, y: quiet(lambda: mg.tensor(y)), "detached", "multigrad.tensor()"),
    "listed": (lambda xp, y: quiet(lambda: mg.tensor([y[0]])), "detached", "multigrad.tensor()"),
    "astype": (lambda xp, y: xp.astype(y, xp.int64), "cast", "astype to int64"),
    "argmax": (lambda xp, y: xp.argmax(y), "index", "argmax"),
    "floor_divide": (lambda xp, y: y // 2, "index", "floor_divide"),
    "floor": (lambda xp, y: xp.floor(y), "zero", "floor"),
    "sign": (lambda xp, y: xp.sign(y), "zero", "sign"),
    "mask": (lambda xp, y: xp.astype(y > 2, xp.float64), "comparison", "greater"),
    "count": (lambda xp, y: real(xp, xp.sum(whole(xp, y > 2))), "comparison", "greater"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_break_with_its_line(xp: Any, name: str) -> None:
    lose, kind, what = CASES[name]
    y = leaf(xp) * 2
    with detect_breaks() as report:
        for _ in range(3):
            lose(xp, y)
    line = inspect.getsourcelines(lose)[1]
    assert [(b.kind, b.what, b.site.file, b.site.line, b.count) for b in report] == [
        (kind, what, HERE, line, 3)
    ]
    assert (
        report.breaks[0].source.startswith(f'"{name}": (lambda')
        and report.breaks[0].why == WHY[kind]
    )


@pytest.mark.parametrize("name", CASES)
def test_constants_lose_nothing(xp: Any, name: str) -> None:
    lose, kind, _ = CASES[name]
    y = leaf(xp).detach() * 2
    with detect_breaks() as report:
        if kind == "refused":
            np.asarray(y), y.__dlpack__()
        else:
            lose(xp, y)
    assert not report.breaks and str(report) == "No gradient was lost."


def test_no_grad(xp: Any) -> None:
    w = leaf(xp)
    with detect_breaks() as report:
        with mg.no_grad():
            line = sys._getframe().f_lineno + 1
            xp.sin(w)
            xp.sin(w.detach())
        with mg.inference_mode():
            w * 2
    assert [(b.kind, b.what, b.site.line) for b in report.of("no_grad")] == [
        ("no_grad", "sin", line),
        ("no_grad", "multiply", line + 3),
    ]


def test_updates_of_parameters_are_no_breaks(xp: Any) -> None:
    w = leaf(xp)
    with detect_breaks() as report:
        for _ in range(3):
            xp.sum(w * w).backward()
            with mg.no_grad():
                w -= 0.1 * w.grad
                w[0] = 0.5
                w.add_(1.0)
            w.grad = None
    assert not report.breaks, str(report)


def test_selecting_is_no_break(xp: Any) -> None:
    w = leaf(xp)
    with detect_breaks() as report:
        y = xp.sin(w)
        xp.sum(xp.where(y > 0.5, y, 0.0)).backward()
        if y[0] > 0:
            assert bool(xp.all(y > 0))
        xp.zeros_like(y), xp.ones_like(y), y.shape, repr(y), f"{y[0]:.2f}", len(y)
    assert not report.breaks, str(report)


def test_functions_with_rules_of_their_own_are_no_breaks() -> None:
    class Exp(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = mg.asarray(np.exp(x.detach().array)) + mg.round(x) * 0
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    @func.custom_vjp
    def f(x: Any) -> Any:
        return mg.sin(x)

    f.defvjp(lambda x: (mg.sin(x), x), lambda x, g: (g * mg.cos(x),))
    w = leaf(mg.namespace("numpy"))
    w.register_hook(lambda g: g * w)
    with detect_breaks() as report:
        mg.sum(f(w)).backward()
        mg.sum(func.checkpoint(lambda t: mg.sin(t) * t)(w)).backward()
        quiet(lambda: mg.std(w).backward(create_graph=True))
        func.hessian(lambda t: mg.sum(t**3))(np.ones(3))
        func.vmap(func.grad(lambda t: mg.sum(mg.sort(t) * mg.max(t))))(np.ones((2, 3)))
        mg.autograd.gradcheck(mg.sin, (leaf(mg.namespace("numpy")),))
        assert not report.breaks, str(report)
        mg.sum(Exp.apply(w)).backward()
    assert {b.kind for b in report} <= {"zero"}


def test_what_other_code_does_to_a_tensor() -> None:
    t = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        line = sys._getframe().f_lineno + 1
        refused(lambda: np.array([t[0], t[1]]))
        quiet(lambda: math.sin(t[0]))
        np.ones(2) + t, [*t], sum(t), max(t), [1, 2][mg.argmax(t)]
    assert [(b.what, b.site.line) for b in report] == [
        ("np.asarray()", line),
        ("float()", line + 1),
        ("argmax", line + 2),
    ]


# Values that lose their history on the way


class Constant(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y


class Mask(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x > 2


class First(Function):
    """Gives its second argument no gradient, and does in its methods what would lose one
    elsewhere.
    """

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x)
        x[int(mg.argmax(x.detach()))].item()
        return x * mg.floor(mg.where(x > 0, x, 0.0)) + y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * mg.astype(x > 0, x.dtype), None


def into(xp: Any, write: Any) -> Any:
    with mg.no_grad():
        buffer = xp.zeros(2, dtype=xp.float64)
        write(buffer)
    return buffer


LOST = {
    "written": (
        lambda xp, a: write(xp.zeros(2, dtype=xp.float64), ..., a > 2),
        "comparison",
        "greater",
    ),
    "added": (
        lambda xp, a: real(xp, add(xp.zeros(2, dtype=xp.int64), whole(xp, a > 2))),
        "comparison",
        "greater",
    ),
    "mask_read": (lambda xp, a: float(xp.sum(a) > 0), "comparison", "greater"),
    "mask_detached": (
        lambda xp, a: xp.astype((a > 2).detach(), xp.float64),
        "comparison",
        "greater",
    ),
    "mask_applied": (
        lambda xp, a: xp.astype(Mask.apply(a), xp.float64),
        "comparison",
        "Mask.apply()",
    ),
    "into": (lambda xp, a: into(xp, lambda t: write(t, ..., a)), "no_grad", "setitem"),
    "added_into": (lambda xp, a: into(xp, lambda t: add(t, a)), "no_grad", "add"),
    "number_added_into": (lambda xp, a: into(xp, lambda t: t.add_(a)), "no_grad", "add"),
    "applied": (lambda xp, a: Constant.apply(a), "detached", "Constant.apply()"),
    "applied_in_no_grad": (
        lambda xp, a: mg.no_grad()(First.apply)(a, 0.0),
        "no_grad",
        "First.apply()",
    ),
    "alias": (lambda xp, a: mg.no_grad()(xp.linalg.matmul)(a, a), "no_grad", "matmul"),
    "copied": (lambda xp, a: mg.no_grad()(copy.deepcopy)(a * 1), "no_grad", "copy.deepcopy()"),
}


def write(t: Any, key: Any, value: Any) -> Any:
    t[key] = value
    return t


def add(t: Any, other: Any) -> Any:
    t += other
    return t


@pytest.mark.parametrize("name", LOST)
def test_values_that_lose_their_history_on_the_way(xp: Any, name: str) -> None:
    lose, kind, what = LOST[name]
    line = inspect.getsourcelines(lose)[1]
    with detect_breaks() as report:
        a, b = leaf(xp), leaf(xp)
        loss = xp.sum(b * quiet(lambda: lose(xp, a)))
    lines = {line, inspect.getsourcelines(write)[1] + 1, inspect.getsourcelines(add)[1] + 1}
    assert [(p.kind, p.what) for p in report] == [(kind, what)] and report.breaks[
        0
    ].site.line in lines
    lost = report.unreached(loss, {"a": a, "b": b})
    verb = {"comparison": "compared", "no_grad": "not recorded, used", "detached": "detached"}[kind]
    assert [u.name for u in lost] == ["a"] and lost[
        0
    ].why == f"{verb} by {what} at {report.breaks[0].site}"


def choose(a: Any, b: Any) -> Any:
    if mg.sum(a) > 0:
        return b * 2
    return b


CHOICES = {
    "where": lambda xp, a, b: xp.where(a > 0.5, b, 0.0),
    "mask": lambda xp, a, b: b[a > 0],
    "if": lambda xp, a, b: choose(a, b),
    "bool": lambda xp, a, b: b * (2.0 if bool(xp.sum(a) > 0) else 1.0),
    "item": lambda xp, a, b: b * int((xp.sum(a) > 0).item()),
    "zeros": lambda xp, a, b: xp.where(mg.zeros_like(a > 0), b, 1.0),
    "written": lambda xp, a, b: write(b * 1, a > 2, 0.0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_only_decides_is_no_break_and_said(xp: Any, name: str) -> None:
    with detect_breaks() as report:
        a, b = leaf(xp), leaf(xp)
        loss = xp.sum(CHOICES[name](xp, a, b))
    assert not report.breaks, str(report)
    lost = report.unreached(loss, [a, b])
    assert [u.name for u in lost] == ["params[0]"] and lost[0].why.startswith(
        f"compared by greater at {HERE}:"
    )


def test_a_mask_of_several(xp: Any) -> None:
    with detect_breaks() as report:
        a, b, c = leaf(xp), leaf(xp), leaf(xp)
        both = (a > 1) & (b > 1)
        loss = xp.sum(c * xp.astype(both, xp.float64))
    assert [p.what for p in report] == ["greater"] and report.breaks[0].count == 2
    assert [len(u.breaks) for u in report.unreached(loss, [a, b, c])] == [1, 1]


def test_reasons_claim_nothing_that_is_not_known(xp: Any) -> None:
    def why(use: Any) -> str:
        with detect_breaks() as report:
            a, b = leaf(xp), leaf(xp)
            loss = xp.sum(b * 2) + use(a, b)
            (lost,) = report.unreached(loss, {"a": a, "b": b})
        assert lost.name == "a"
        return lost.why.removesuffix(f" at {HERE}:{use.__code__.co_firstlineno}")

    assert why(lambda a, b: 0 * xp.sum(b * copy.copy(a))) == "copied by copy.copy()"
    assert why(lambda a, b: 0 * xp.sum(b * copy.deepcopy(a))) == "copied by copy.deepcopy()"
    assert why(lambda a, b: 0 * xp.sum(b * pickle.loads(pickle.dumps(a)))) == "pickled"
    assert why(lambda a, b: 0 * xp.sum(a * 2).item()) == "read by .item()"
    assert why(lambda a, b: 0 if a[0] else 1) == "compared by bool()"
    assert why(lambda a, b: 0) == "never used since it requires grad"


def test_a_leaf_that_was_used_before_it_required_grad(xp: Any) -> None:
    w, b = xp.ones(2, dtype=xp.float64), leaf(xp)
    with detect_breaks() as report:
        y = w * 2
        w.requires_grad_()
        loss = xp.sum(y * b)
    assert [u.why for u in report.unreached(loss, [w, b])] == ["never used since it requires grad"]


def test_a_function_that_gives_no_gradient(xp: Any) -> None:
    with detect_breaks() as report:
        a, b = leaf(xp), leaf(xp)
        for _ in range(2):
            loss = xp.sum(First.apply(a, b))
            loss.item()  # asks what is behind it before it is known
            loss.backward()
    assert [p.what for p in report] == [".item()"] and a.grad is not None and b.grad is None
    assert [(u.name, u.why) for u in report.unreached(loss, {"a": a, "b": b})] == [
        ("b", f"read by .item() at {report.breaks[0].site}; given no gradient by FirstBackward")
    ]
    assert len(report.unreached_leaves) == 1
    with detect_breaks() as report:
        a, b = leaf(xp), leaf(xp)
        xp.sum(First.apply(a, b) + b).backward()
    assert not report.unreached_leaves


def test_a_function_that_gives_a_gradient_in_one_of_two_passes() -> None:
    class Sometimes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g if gives[-1] else None

    gives: list[bool] = []
    with detect_breaks() as report:
        a = leaf(mg.namespace("numpy"))
        loss = mg.sum(Sometimes.apply(a))
        for given, why in (
            (False, ["given no gradient by SometimesBackward"]),
            (True, []),
            (False, []),
        ):
            gives.append(given)
            loss.backward(retain_graph=True)
            assert [u.why for u in report.unreached(loss, [a])] == why
        assert not report.unreached_leaves


def test_parts_of_parameters(xp: Any) -> None:
    w, c = leaf(xp, 1.0, 2.0, 3.0), xp.ones(2, dtype=xp.float64)
    with detect_breaks() as report:
        with mg.no_grad():
            w[:2] -= 0.1
            w[:2] = 0.5
            w[0] *= 2
            w[xp.asarray([0, 1])] -= 0.1
            w[w.detach() > 0.3] += 1.0
            part = w[:2]
            part /= 2
            repr(part), f"{part[0]:.3f}", part.shape
        assert {b.kind for b in report} == {"detached"}, str(report)
        with mg.no_grad():
            line = sys._getframe().f_lineno + 1
            used, copied, shown = w[:2][1:], w[xp.asarray([0, 1])], w[1:]
        used * c[0], copied + 1.0, np.asarray(shown)
    assert {(b.what, b.site.line) for b in report.of("no_grad")} == {
        ("getitem", line)
    } and report.of("no_grad")[0].count == 3


def test_what_hooks_for_saved_arrays_do_is_no_break(xp: Any) -> None:
    w = leaf(xp)
    with detect_breaks() as report:
        with mg.autograd.graph.saved_tensors_hooks(
            lambda x: (x.detach(), x.tolist(), x > 0), lambda kept: kept[0]
        ):
            xp.sum(xp.sin(w) * xp.exp(w)).backward()
        First.apply(w, w)
    assert not report.breaks, str(report)


# Inside transformations


DERIVATIVES = {
    "grad": lambda q: func.grad(lambda w: mg.sum(w * w))(q),
    "vjp": lambda q: func.vjp(lambda w: w * w, q)[1](mg.ones_like(q)),
    "jvp": lambda q: func.jvp(lambda w: w * w, (q,), (mg.ones_like(q),)),
    "jacfwd": lambda q: func.jacfwd(lambda w: w * w)(q),
    "vmap": lambda q: func.vmap(func.grad(lambda w: w * w))(q),
    "jacobian": lambda q: mg.autograd.functional.jacobian(lambda w: w * w, q),
    "dual": lambda q: func.jvp(func.grad(lambda w: mg.sum(w * w)), (q,), (mg.ones_like(q),)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_leaves_that_transformations_take_the_derivative_by(xp: Any, name: str) -> None:
    with detect_breaks() as report:
        q, s = leaf(xp), leaf(xp)
        DERIVATIVES[name](q)
        passes = report.passes
        xp.sum(s * s).backward()
    assert not report.unreached_leaves and str(report) == "No gradient was lost."
    assert report.passes == passes + 1 and (passes > 0) is (name == "jacobian")


def test_leaves_that_transformations_do_not_take_the_derivative_by(xp: Any) -> None:
    with detect_breaks() as report:
        inside, before, mapped, s = (leaf(xp) for _ in range(4))
        x = leaf(xp).detach()
        func.jvp(lambda w: w * inside, (x,), (x,))
        func.grad(lambda w: xp.sum(w * w))(before * 2)
        func.vmap(lambda w: w * 2)(mapped)
        xp.sum(s * s).backward()
    assert len(report.unreached_leaves) == 4  # and the one that x is of


def test_in_grad(xp: Any) -> None:
    def f(t: Any) -> Any:
        a = quiet(lambda: float(t[0]))
        return xp.sum(t * xp.floor(t)) + a + t.detach()[0]

    first = inspect.getsourcelines(f)[1]
    x = leaf(xp).detach().array
    with detect_breaks() as report:
        func.grad(f)(x)
    assert [(b.what, b.site.line) for b in report] == [
        ("float()", first + 1),
        ("floor", first + 2),
        (".detach()", first + 2),
    ]


def test_in_jvp_and_vmap(xp: Any) -> None:
    x = leaf(xp).detach().array

    def f(t: Any) -> Any:
        return xp.sum(t * t.detach() * xp.round(t))

    first = inspect.getsourcelines(f)[1]
    with detect_breaks() as report:
        func.jvp(f, (x,), (x,))
    assert [(b.what, b.site.line) for b in report] == [
        (".detach()", first + 1),
        ("round", first + 1),
    ]
    with detect_breaks() as report:
        func.grad(
            lambda t: xp.sum(func.vmap(lambda row: xp.take(row, xp.argsort(row)))(xp.stack([t, t])))
        )(x)
    assert [b.what for b in report] == ["argsort"]


def test_nested_transformations_count_once(xp: Any) -> None:
    with detect_breaks() as report:
        func.grad(func.grad(lambda t: t**3 + xp.floor(t)))(xp.asarray(1.5, dtype=xp.float64).array)
    assert [(b.what, b.count) for b in report] == [("floor", 1)]


# Parameters that did not arrive


def test_unreached_and_why(xp: Any) -> None:
    before = leaf(xp)
    with detect_breaks() as report:
        line = sys._getframe().f_lineno
        reached, detached, cast, dropped, unused, outside, gate = (leaf(xp) for _ in range(7))
        a = detached.detach() * 2
        b = xp.astype(xp.astype(cast * 2, xp.int64), xp.float64)
        xp.sin(dropped)
        with mg.no_grad():
            c = xp.sin(outside)
        d = xp.astype(xp.sin(gate) > 0.8, xp.float64)
        loss = xp.sum(reached * a + b + c * d)
        loss.backward()
    params = {
        "reached": reached,
        "detached": detached,
        "net": {"cast": cast, "dropped": dropped},
        "unused": unused,
        "outside": outside,
        "gate": gate,
        "before": before,
        "frozen": xp.zeros(2),
    }
    found = {u.name: u.why for u in report.unreached(loss, params)}
    assert found == {
        "detached": f"detached by .detach() at {HERE}:{line + 2}",
        "net.cast": f"made constant by astype to int64 at {HERE}:{line + 3}",
        "net.dropped": f"used at {HERE}:{line + 4}, but, as far as can be seen, nothing that "
        "was computed from it went into the loss",
        "unused": "never used since it requires grad",
        "outside": f"not recorded, used by sin at {HERE}:{line + 6}",
        "gate": f"compared by greater at {HERE}:{line + 7}",
        "before": "never used meanwhile",
        "frozen": "does not require grad",
    }
    first = report.unreached(loss, params)[0]
    assert str(first) == f"detached: {found['detached']}" and [b.kind for b in first.breaks] == [
        "detached"
    ]
    text = str(report)
    assert "6 leaves that require grad reached no loss:" in text and "never used" in text
    assert [u.name for u in report.unreached([loss, xp.sum(dropped)], [dropped, unused])] == [
        "params[1]"
    ]


def test_leaves_are_listed_by_the_line_that_made_them() -> None:
    with detect_breaks() as report:
        for _ in range(3):
            line = sys._getframe().f_lineno + 1
            mg.asarray([1.0], requires_grad=True)
        w = mg.asarray([1.0]).requires_grad_()
        copy.deepcopy(w)
        mg.sum(w * w).backward()
    assert (
        f"{HERE}:{line}: leaf of shape (1,): never used since it requires grad (× 3)"
        in str(report).splitlines()
    )
    assert (
        f"{HERE}:{line + 2}: leaf of shape (1,): never used since it requires grad"
        in str(report).splitlines()
    )
    with detect_breaks() as report:
        mg.asarray([1.0], requires_grad=True)
    assert not report.unreached_leaves  # there was no loss


def test_a_long_graph_is_gone_through_once() -> None:
    y = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        for _ in range(1200):
            y = mg.sin(y)
            y[0].item()
    assert report.breaks[0].count == 1200


# The program does not notice


def program(xp: Any) -> list[Any]:
    """Results, warnings and errors of this and that."""
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        w = leaf(xp)
        y = xp.sin(w) * xp.floor(w) + w
        seen += [
            float(y[0]),
            y[1].item(),
            y.tolist(),
            np.asarray(y.detach()).tolist(),
            str(y),
            f"{y[0]:.3f}",
            bool(y[0] > 0),
            len(y),
        ]
        for wrong in (
            lambda: np.asarray(y),
            lambda: y.numpy(),
            lambda: int(y),
            lambda: y.item(),
            lambda: y.__dlpack__(),
            lambda: w.add_(1.0),
            lambda: xp.sin("x"),
            lambda: xp.sin(y, y),
            lambda: xp.zeros(),
            lambda: xp.sum(y, bogus=1),
            lambda: mg.Tensor.__mul__(y),
            lambda: mg.Tensor.__mul__(y, y, y),
            lambda: y * "a",
            lambda: y @ y @ y,
            lambda: y.backward(),
            lambda: w[5],
            lambda: xp.astype(y, "nonsense"),
        ):
            try:
                seen.append(str(wrong()))
            except Exception as error:
                seen.append((type(error), str(error)))
        xp.sum(y).backward()
        seen.append(w.grad.tolist())
        with mg.no_grad():
            w -= 0.1 * w.grad
            w[0] = 3.0
        y = w * 2
        y += 1
        y[0] = w[1]
        xp.sum(y * y).backward()
        seen += [w.grad.tolist(), w._version, y._version, w.tolist()]
        x = w.detach().array
        seen.append(
            np.asarray(func.grad(lambda t: xp.sum(t * t.detach() + xp.round(t)))(x)).tolist()
        )
        seen += [np.asarray(t).tolist() for t in func.jvp(lambda t: t * xp.exp(t), (x,), (x,))]
        seen.append(np.asarray(func.hessian(lambda t: xp.sum(t**3))(x)).tolist())
        seen.append(type(y.grad_fn).__name__)
    return [*seen, *((str(c.message), c.category, c.filename, c.lineno) for c in caught)]


@pytest.mark.parametrize(
    "watch",
    [profile, functools.partial(profile, record_shapes=True), detect_breaks],
    ids=["profile", "shapes", "breaks"],
)
def test_the_same_results_errors_and_warnings(xp: Any, watch: Any) -> None:
    plain = program(xp)
    with watch():
        watched = program(xp)
    assert watched == plain
    # the warning of float() names this file in both
    assert any(isinstance(x, tuple) and x[-2] == HERE for x in plain)


def test_nothing_is_observed_any_more() -> None:
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        w.tolist()
        assert gate.get() is not True
    with pytest.raises(ZeroDivisionError), detect_breaks():
        1 / 0
    assert gate.get() is True
    w.tolist()
    assert report.breaks[0].count == 1


def update(w: Any) -> None:
    with mg.no_grad():
        w -= 0.1 * w.grad
        w *= 0.9
        w /= 2
        w **= 1.0
        w[0] = 0.5
        w[1:] -= 0.1
        w.add_(1.0)


def test_with_a_profiler() -> None:
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as outside, profile(), detect_breaks() as inside:
        mg.sum(w * w).backward()
        update(w)
        mg.floor(w)
    assert [b.what for b in outside] == [b.what for b in inside] == ["floor"]


def test_tools_that_are_left_in_any_order() -> None:
    w = leaf(mg.namespace("numpy"))
    for first_in, first_out in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        tools: list[Any] = [profile(), detect_breaks()]
        tools[first_in].__enter__()
        tools[1 - first_in].__enter__()
        tools[first_out].__exit__(None, None, None)
        assert gate.get() is not True
        with detect_breaks() as report:
            w.grad = None
            mg.sum(w * w).backward()
            update(w)
        assert not report.breaks and report.passes == 1
        tools[1 - first_out].__exit__(None, None, None)
        assert gate.get() is True


def test_nested_reports_each_have_their_own() -> None:
    w = leaf(mg.namespace("numpy"))
    context = detect_breaks()
    with context as outer:
        w.tolist()
        with context as inner:
            w.array
        w.detach()
    assert [b.what for b in outer] == [".tolist()", ".array", ".detach()"] and [
        b.what for b in inner
    ] == [".array"]


def test_with_anomaly_mode_and_lines() -> None:
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        quiet(lambda: mg.autograd.set_detect_anomaly(True))
        with mg.autograd.graph.record_lines():
            mg.sum(mg.floor(mg.sin(w))).backward()
        mg.autograd.set_detect_anomaly(False)
        mg.floor(w)
    assert [b.what for b in report] == ["floor", "floor"]


def test_threads_in_copies_of_the_context() -> None:
    def work() -> None:
        w = leaf(mg.namespace("numpy"))
        for _ in range(50):
            y = mg.sin(w)
            y.tolist()
            mg.sum(y).backward()

    with detect_breaks() as report:
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(6)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert [(b.what, b.count) for b in report] == [(".tolist()", 300)]
    assert report.passes == 300 and not report.unreached_leaves


def test_a_report_that_was_left_notes_nothing_any_more() -> None:
    w = leaf(mg.namespace("numpy"))

    def steps() -> Any:
        with detect_breaks() as report:
            yield report
            w.tolist()

    def lose() -> None:
        mg.floor(w), w.detach(), First.apply(w, w), leaf(mg.namespace("numpy"))
        with mg.no_grad():
            mg.zeros_like(w)[...] = w
        mg.sum(w * w).backward()

    contexts, generator = [contextvars.copy_context() for _ in range(2)], steps()
    report = contexts[0].run(next, generator)
    contexts[0].run(w.tolist)
    within = contexts[0].copy()
    with pytest.raises(StopIteration):
        contexts[1].run(next, generator)
    within.run(lose)
    contexts[0].run(lose)
    assert (
        [(b.what, b.count) for b in report] == [(".tolist()", 1)]
        and not report.passes
        and not report.unreached_leaves
    )


def test_a_graph_is_not_kept_by_the_report() -> None:
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        y = mg.sin(w)
        mask = mg.astype(y > 0, mg.float64) * y
        y.tolist()
        gone = [weakref.ref(y.grad_fn), weakref.ref(mask.grad_fn)]
        del y, mask
        assert [ref() for ref in gone] == [None, None]
    assert len(report) == 2


def test_an_error_keeps_nothing() -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept.append(weakref.ref(ctx))
            raise ValueError

    kept: list[Any] = []

    def fail() -> None:
        w = leaf(mg.namespace("numpy"))
        kept.append(weakref.ref(w))
        for wrong in (Bad.apply, lambda x: mg.reshape(mg.sin(x), (3,)), lambda x: (x * 1).numpy()):
            with contextlib.suppress(Exception):
                wrong(w)

    gc.disable()
    try:
        with detect_breaks():
            fail()
            assert [ref() for ref in kept] == [None, None]
    finally:
        gc.enable()


def test_a_report_that_was_left_in_a_pass() -> None:
    w = leaf(mg.namespace("numpy"))
    watch = detect_breaks()
    report = watch.__enter__()
    y = mg.sin(First.apply(w, w))
    y.register_hook(lambda g: watch.__exit__(None, None, None))
    mg.sum(y).backward()
    assert not report.passes and w.grad is not None


def test_functions_with_rules_are_told_as_they_are_called() -> None:
    f = func.custom_vjp(lambda x: mg.sin(x))
    f.defvjp(lambda x: (mg.sin(x), x), lambda x, g: (g * mg.cos(x),))
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as report, mg.no_grad():
        f(w), First.apply(w, w)
    assert [b.what for b in report] == ["<lambda>()", "First.apply()"]


def test_reports_of_kinds() -> None:
    w = leaf(mg.namespace("numpy"))
    with detect_breaks() as report:
        w.tolist()
        mg.floor(w)
    assert [b.what for b in report.of("zero")] == ["floor"] and len(
        report.of("zero", "number")
    ) == 2
    assert repr(report) == "<BreakReport: 2 places>"
    with pytest.raises(
        ValueError, match="unknown kind of break 'nonsense'; there are refused, number"
    ):
        report.of("nonsense")


# The command

SCRIPT = """\
import sys
import multigrad as mg

w = mg.asarray([1.0, 2.0], requires_grad=True)
b = mg.asarray([0.5, 0.5], requires_grad=True)
for _ in range(3):
    loss = mg.sum(mg.sin(w) + b.detach())
    loss.backward()
print("loss", round(loss.item(), 3), sys.argv[1:], __name__)
"""


def breaks(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(text)
    return command(tmp_path, "breaks", "script.py", *arguments)


def test_the_command_shows_what_the_guide_does(tmp_path: Path) -> None:
    guide = (REPOSITORY / "docs" / "seeing.md").read_text()
    _, _, rest = guide.partition("A script, `lossy.py`:\n\n```python\n")
    script, _, rest = rest.partition("```")
    shown = re.search(r"((?:    [^\n]*\n|\n)+)", rest[rest.index("\n    ") :])
    assert shown is not None
    found = breaks(tmp_path, script).stdout.replace("script.py", "lossy.py")
    assert found.splitlines() == [line[4:] for line in shown[1].strip("\n").splitlines()]


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit('enough')", 1, "enough\n"),
        ("loss.numpy()", 1, "GradientError: Can't call numpy() on Tensor that requires grad."),
    ],
)
def test_the_command_ends_as_the_script_does(
    tmp_path: Path, end: str, status: int, message: str
) -> None:
    found = breaks(tmp_path, SCRIPT + end, "--flag", "x")
    assert found.returncode == status and message in found.stderr
    assert "loss 2.751 ['--flag', 'x'] __main__" in found.stdout
    assert "A gradient is lost in" in found.stdout
    if "Error" in message:
        assert found.stderr.startswith(
            "Traceback (most recent call last):\n"
            f'  File "{tmp_path / "script.py"}", line 10, in <module>'
        )


def test_the_command_shows_a_script_that_does_not_parse_as_python_does(tmp_path: Path) -> None:
    found = breaks(tmp_path, "x = (1\n")
    alone = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (
        found.returncode == 1
        and [*map(str.strip, found.stderr.splitlines())][1:]
        == [*map(str.strip, alone.stderr.splitlines())][1:]
    )
    assert "runpy" not in found.stderr and 'script.py", line 1' in found.stderr


def test_the_command_waits_for_the_threads_of_the_script(tmp_path: Path) -> None:
    found = breaks(
        tmp_path,
        """import threading, time
import multigrad as mg

def work():
    time.sleep(0.3)
    mg.sum(mg.tensor([1.0], requires_grad=True)).item()

threading.Thread(target=work).start()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
""",
    )
    assert found.returncode == 0 and "script.py:6: .item()" in found.stdout


def test_the_command_without_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    from multigrad import cli

    assert cli.main(["breaks", "/no/such/script.py"]) == 2
    assert "no such file: /no/such/script.py" in capsys.readouterr().err


def test_a_warning_of_mark_dirty_names_the_program_while_it_is_watched() -> None:
    class Scaled(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            out = a * 2
            ctx.mark_dirty(out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = mg.asarray(np.ones(2), requires_grad=True)
    for watch in (contextlib.nullcontext, detect_breaks, profile):
        with watch(), pytest.warns(UserWarning, match="mark_dirty") as told:
            Scaled.apply(x)
        assert told[0].filename == __file__


def test_parameters_may_be_an_iterator():
    used, other = ones(2), ones(2)
    with detect_breaks() as report:
        loss = (used * 2).sum()
        assert [u.name for u in report.unreached(loss, iter([used, other]))] == ["params[1]"]
        assert [u.name for u in report.unreached(loss, {"layer": (t for t in [used, other])})] == [
            "layer[1]"
        ]
    with pytest.raises(TypeError, match="it holds a float"):
        report.unreached(loss, [1.0])
