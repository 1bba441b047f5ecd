"""Generated functions show their source in tracebacks, and go with the declaration that they were
written from.
"""

from __future__ import annotations

import ast
import gc
import inspect
import linecache
import re
import traceback
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.core.element import Library
from multigrad.dispatch.pullbacks import pullback
from multigrad.registry import OPS, define, elementwise


@pytest.fixture(autouse=True)
def table(operations):
    """Whatever a test declares is gone afterwards."""
    return operations


def fail(xp: Any, *args: Any) -> Any:
    raise ValueError("as it is meant to")


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Those of generated code."""
    return [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<")]


class TestTracebacks:
    @pytest.fixture(autouse=True)
    def full(self, monkeypatch):
        monkeypatch.setenv("MULTIGRAD_TRACEBACK", "full")

    def test_of_a_forward(self, xp):
        elementwise("t.fails(x, /)", forward=lambda xp, x: fail(xp), x=1)
        for x in (xp.ones(2), xp.ones(2, requires_grad=True), xp.ones(2).array):
            with pytest.raises(ValueError, match="as it is meant to") as caught:
                xp.t.fails(x)
            found = frames(caught.value)
            assert found and all(f.line for f in found), found

    def test_of_a_rule(self, xp):
        define(
            "t.rule(x, /)",
            forward=lambda xp, x: 2 * x,
            x=lambda xp, g, x: fail(xp),
            jvp=lambda xp, t: t,
        )
        for create_graph in (False, True):
            with pytest.raises(ValueError, match="as it is meant to") as caught:
                xp.sum(xp.t.rule(xp.ones(2, requires_grad=True))).backward(
                    create_graph=create_graph
                )
            (found,) = frames(caught.value)
            assert found.filename.startswith("<pullback of t.rule") and "(xp, g, x)" in found.line

    @pytest.mark.runs_once
    def test_the_hot_path(self):
        xp = mg.namespace("numpy")
        x = xp.ones((2, 3), requires_grad=True)
        for _ in range(3):
            x @ x.T
        with pytest.raises(ValueError, match="matmul") as caught:
            x @ x
        assert "_ans = _fn(" in frames(caught.value)[1].line

    def test_inspect_finds_the_source(self, xp):
        assert inspect.getsource(xp.sin).startswith("def sin(x, /):")
        x = xp.ones(2, requires_grad=True)
        assert inspect.getsource((x * x).grad_fn.rule.vjp).startswith("def vjp(xp, g")

    def test_survive_a_check_of_the_files(self, xp):
        linecache.checkcache()
        assert inspect.getsource(xp.sin).startswith("def sin(x, /):")


class TestPullbacks:
    def test_a_rule_that_returns_a_parameter_is_not_called(self, xp):
        x = xp.ones(2, requires_grad=True)
        assert " g * x2" in inspect.getsource((x * 2.0).grad_fn.rule.vjp)
        assert " g * ans" in inspect.getsource(xp.exp(x).grad_fn.rule.vjp)

    @pytest.mark.parametrize("dtype", ["float64", "complex128"])
    def test_such_a_rule_of_a_user(self, xp, dtype):
        elementwise("t.halved(x, /)", forward=lambda xp, x: x * x / 2, x=lambda xp, x: x)
        x = xp.asarray(np.asarray([1, 2 + 3 * (dtype == "complex128") * 1j]).astype(dtype))
        x.requires_grad_()
        for _ in range(3):
            (g,) = mg.autograd.grad(xp.t.halved(x), x, xp.ones_like(x), create_graph=True)
            assert np.array_equal(values(g), np.conj(values(x)))
            t = mg.func.jvp(xp.t.halved, (x.detach(),), (xp.ones_like(x).detach(),))[1]
            assert np.array_equal(values(t), values(x))

    def test_a_rule_that_takes_more_than_it_returns(self, xp):
        elementwise(
            "t.first(x1, x2, /)",
            forward=lambda xp, x1, x2: x1 * x2,
            x1=lambda xp, g, x1, x2: x2 * g,
            x2=lambda xp, x2, x1: x1,
        )
        x, y = (xp.asarray(np.asarray([v, 1.0]), requires_grad=True) for v in (2.0, 3.0))
        gx, gy = mg.autograd.grad(xp.sum(xp.t.first(x, y)), [x, y])
        assert np.array_equal(values(gx), values(y)) and np.array_equal(values(gy), values(x))

    def test_one_array_is_saved_without_a_tuple(self, xp):
        x = xp.ones(2, requires_grad=True)
        for _ in range(4):  # a runner knows that the gradient has the shape of the argument
            one, several, none = xp.sin(x), x * x, x + 1.0
        assert one.grad_fn.saved is x.array
        assert type(several.grad_fn.saved) is tuple and len(several.grad_fn.saved) == 2
        assert none.grad_fn.saved == ()

    @pytest.mark.runs_once
    def test_a_backend_gets_what_is_saved_as_arguments(self):
        seen: list[Any] = []

        def rule(xp: Any, name: str, vjp: Any) -> Any:
            def call(xp: Any, g: Any, *saved: Any) -> Any:
                seen.append(saved)
                return vjp(xp, g, *saved)

            return call

        library = Library(mg.Backend("ruled", np, (np.ndarray,), kernels={"rule": rule}))
        g, a, b = np.ones(2), np.full(2, 2.0), np.full(2, 3.0)
        one, two = (
            pullback(OPS["multiply"], needs, False, False, library)
            for needs in ((True, False), (True, True))
        )
        assert np.array_equal(one.vjp(library.xp, g, b), b)
        assert np.array_equal(two.vjp(library.xp, g, (b, a)), (b, a))
        assert [tuple(map(id, saved)) for saved in seen] == [(id(b),), (id(b), id(a))]


def use(xp: Any) -> Any:
    """Everything that is made of a declaration: functions, runners, pullbacks, recorders, batching,
    forward mode.
    """
    x = xp.asarray(np.asarray([1.0, 2.0]), requires_grad=True)
    for _ in range(3):
        y = xp.thrice(x)
        x.thrice()
        (g,) = mg.autograd.grad(xp.sum(y), x, create_graph=True)
        y = x * 1.0
        y.thrice_()
        mg.thrice(x)
    raw = x.detach().array
    mg.func.vmap(mg.func.grad(lambda x: xp.sum(xp.thrice(x))))(xp.stack([x.detach()] * 2).array)
    mg.func.jvp(lambda x: xp.thrice(x), (raw,), (raw,))
    with mg.autograd.profiler.profile() as p:
        xp.thrice(x)
    p.key_averages()
    return values(g)


def test_variables_say_what_they_hold(xp):
    """No text calls a variable of its own by a letter: tracebacks and debuggers show it to users."""
    declare(3.0)
    use(xp)
    x = xp.ones((2, 3), requires_grad=True)
    xp.sum(xp.stack([x, x * 2.0])).backward()
    xp.unstack(x)[0].sum().backward()
    mg.func.hessian(lambda x: xp.sum(xp.concat([x, x * x])))(x.detach().array[0, :])
    ours = ("<multigrad ", "<pullback of ")
    texts = ["".join(lines[2]) for n, lines in linecache.cache.items() if n.startswith(ours)]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert len(texts) > 10 and "_ans" in stored
    assert not {name for name in stored if re.fullmatch(r"_+[A-Za-z][0-9_]*", name)}


def declare(factor: float, **kwargs: Any) -> Any:
    """`factor` times the argument, and weak references to what is declared."""

    def forward(xp: Any, x: Any) -> Any:
        return factor * x

    def vjp(xp: Any, g: Any) -> Any:
        return factor * g

    def jvp(xp: Any, t: Any) -> Any:
        return factor * t

    op = define(
        "thrice(x, /)",
        forward=forward,
        x=vjp,
        jvp=jvp,
        batching="elementwise",
        chapter="elementwise",
        doc="Times a number.",
        **kwargs,
    )
    return [weakref.ref(x) for x in (op, forward, vjp, jvp)]


class TestRedeclaring:
    def test_frees_the_former_declaration(self, xp):
        former = declare(3.0)
        np.testing.assert_array_equal(use(xp), [3.0, 3.0])
        functions = [weakref.ref(f) for f in (xp.thrice, mg.thrice, type(xp.ones(1)).thrice)]
        kept = declare(4.0, override=True)
        np.testing.assert_array_equal(use(xp), [4.0, 4.0])
        gc.collect()
        assert [r() for r in former] == [None] * 4
        assert [r() for r in functions] == [None] * 3
        assert all(r() is not None for r in kept)

    def test_a_function_that_was_held_runs_the_new_one_and_still_shows_its_source(self, xp):
        declare(3.0)
        held = xp.thrice
        held(xp.ones(2))
        declare(4.0, override=True)
        assert values(held(xp.ones(2))).tolist() == [4.0, 4.0]
        assert inspect.getsource(held).startswith("def thrice(x, /):")

    @pytest.mark.parametrize(
        "signature",
        ["(x, /, *, b=7, a=5)", "(x, /, *, a=1, b=20)", "(x, /, *, a=1, b=10, c=0)", "(x, /)"],
    )
    def test_a_function_that_was_held_does_not_mistake_the_arguments_of_another_signature(
        self, xp, signature
    ):
        elementwise(
            "scaling(x, /, *, a=1, b=10)", forward=lambda xp, x, a, b: (100 * a + b) * x, x=1.0
        )
        held, of_all, method = xp.scaling, mg.scaling, mg.Tensor.scaling
        x = xp.asarray(np.ones(2))
        elementwise(
            f"scaling{signature}", forward=lambda xp, x, a=0, b=0, c=0: x, x=1.0, override=True
        )
        for function in (held, of_all, method):
            with pytest.raises(
                TypeError,
                match=r"scaling: this function is from before .* \(x, /, \*, a=1, b=10\); now "
                r"it is scaling\(x, /.* again",
            ):
                function(x, a=2)
        xp.scaling(x)

    def test_a_function_that_was_held_does_not_mind_another_name_of_an_array(self, xp):
        declare(3.0)
        held = xp.thrice
        elementwise(
            "thrice(array, /)", forward=lambda xp, array: 4 * array, array=4.0, override=True
        )
        np.testing.assert_array_equal(values(held(xp.asarray(np.ones(2)))), 4.0)

    def test_a_graph_that_was_recorded_keeps_its_rule(self, xp):
        declare(3.0)
        x = xp.ones(2, requires_grad=True)
        y = xp.sum(xp.thrice(x))
        declare(4.0, override=True)
        y.backward()
        assert values(x.grad).tolist() == [3.0, 3.0]

    def test_a_method_that_the_new_declaration_does_not_have(self, xp):
        declare(3.0)
        x = xp.ones(2)
        x.thrice_()
        define(
            "thrice(x, /)",
            forward=lambda xp, x: 4 * x,
            x=lambda xp, g: 4 * g,
            jvp=lambda xp, t: 4 * t,
            chapter="statistical",
            override=True,
        )
        with pytest.raises(AttributeError, match="thrice_"):
            x.thrice_()
        assert values(xp.ones(2).thrice()).tolist() == [4.0, 4.0]

    def test_while_it_is_watched(self, xp):
        declare(3.0)
        with mg.autograd.profiler.profile() as p:
            xp.thrice(xp.ones(2))
            declare(4.0, override=True)
            assert values(xp.thrice(xp.ones(2))).tolist() == [4.0, 4.0]
        assert values(xp.thrice(xp.ones(2))).tolist() == [4.0, 4.0]
        assert [e.count for e in p.key_averages() if e.key == "thrice"] == [2]

    def test_under_anomaly_detection(self, xp):
        declare(3.0)
        with pytest.warns(UserWarning, match="Anomaly Detection"), mg.autograd.detect_anomaly():
            np.testing.assert_array_equal(values(xp.thrice(xp.ones(2))), [3.0, 3.0])
            declare(4.0, override=True)
            np.testing.assert_array_equal(
                values(xp.thrice(xp.ones(2, requires_grad=True))), [4.0, 4.0]
            )
        np.testing.assert_array_equal(values(xp.thrice(xp.ones(2, requires_grad=True))), [4.0, 4.0])

    def test_other_operations_keep_their_result_types(self, xp):
        before = type(xp.linalg.slogdet(xp.eye(2)))
        declare(3.0)
        declare(4.0, override=True)
        assert type(xp.linalg.slogdet(xp.eye(2))) is before
