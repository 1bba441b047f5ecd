"""Observers: who is told of what, in which contexts, and that nothing is left behind.

See test_gate.py for the gate.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import tracemalloc
import warnings
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from function_programs import Double

import multigrad as mg
from multigrad import func, observe
from multigrad.autograd import profiler
from multigrad.autograd.graph import saved_tensors_hooks
from multigrad.core.graph import Node
from multigrad.observe import (
    CONVERSION,
    FUNCTION,
    LABEL,
    NODE,
    OPERATION,
    PASS,
    STEP,
    WRITE,
    Observer,
)
from multigrad.tools.graphs.provenance import note_of

ALL = frozenset({OPERATION, WRITE, FUNCTION, STEP, PASS, CONVERSION, NODE, LABEL})


class Log(Observer):
    """Writes down what it is told: `+kind name` where something begins, `-kind name` where it ends,
    `node name`.
    """

    def __init__(self, *events: str, whole: bool = False) -> None:
        self.events = frozenset(events) or ALL
        self.whole = whole
        self.told: list[str] = []
        self.results: list[Any] = []

    def begin(self, call: observe.Call) -> str:
        self.told.append(f"+{call.kind} {call.name}".strip())
        return call.name

    def end(self, token: str, call: observe.Call) -> None:
        assert token == call.name
        self.told.append(f"-{call.kind} {call.name}".strip())
        self.results.append(call.result)

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        self.told.append(f"node {node.name()}")

    def opened(self, label: observe.Label) -> None:
        self.told.append(f"+label {label.name}")

    def closed(self, label: observe.Label) -> None:
        self.told.append(f"-label {label.name}")

    @property
    def begun(self) -> list[str]:
        return [text[1:].partition(" ")[2] for text in self.told if text[0] == "+"]


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert observe.gate.get() is True and observe.here().label is None


@pytest.fixture
def x():
    return mg.asarray([1.0, 2.0, 3.0], requires_grad=True)


def refusing(when: str, event: str) -> Observer:
    """An observer that raises."""

    def refuse(*_: Any) -> Any:
        raise RuntimeError("not here")

    return type("Refusing", (Observer,), {"events": frozenset({event}), when: refuse})()


def in_another_thread(function: Any, *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


class TestEvents:
    def test_a_recorded_operation_and_a_pass(self, x):
        with Log() as log:
            mg.sum(x * x).backward()
        assert log.told == [
            "+operation multiply",
            "node MultiplyBackward",
            "-operation multiply",
            "+operation sum",
            "node SumBackward",
            "-operation sum",
            "+pass backward",
            "+step SumBackward",
            "-step SumBackward",
            "+step MultiplyBackward",
            "-step MultiplyBackward",
            "+step AccumulateGrad",
            "-step AccumulateGrad",
            "-pass backward",
        ]

    @pytest.mark.parametrize(
        "write",
        [
            lambda t: t.__imul__(2.0),
            lambda t: t.__setitem__(0, 5.0),
            lambda t: t.exp_(),
            lambda t: t[1:].__iadd__(1.0),
        ],
        ids=["imul", "setitem", "twin", "view"],
    )
    def test_writes(self, x, write):
        y = x * 1.0
        with Log(WRITE) as log:
            write(y)
        assert [text[0] for text in log.told] == ["+", "-"]
        with Log(WRITE) as log, mg.no_grad():
            write(mg.asarray([1.0, 2.0, 3.0]))
        assert [text[0] for text in log.told] == ["+", "-"]

    def test_a_function(self, x):
        cube = func.custom_jvp(lambda t: t * t * t)
        cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))
        with Log(FUNCTION, NODE, STEP) as log:
            mg.sum(Double.apply(x)).backward()
        assert log.told == [
            "+function Double",
            "node DoubleBackward",
            "-function Double",
            "node SumBackward",
            "+step SumBackward",
            "-step SumBackward",
            "+step DoubleBackward",
            "-step DoubleBackward",
            "+step AccumulateGrad",
            "-step AccumulateGrad",
        ]
        with Log(FUNCTION) as log:
            func.vmap(func.grad(lambda t: mg.sum(cube(t))))(np.ones((2, 3)))
            func.jvp(cube, (np.ones(3),), (np.ones(3),))
        assert len(log.begun) == 2

    def test_conversions(self):
        t = mg.asarray(1.5)
        with Log(CONVERSION) as log:
            t.item(), t.tolist(), float(t), bool(t), t.array, t.detach(), t.data, t.numpy()
        assert log.begun == [
            "item",
            "tolist",
            "__float__",
            "__bool__",
            "array",
            "detach",
            "data",
            "numpy",
        ]
        with Log(CONVERSION, whole=True) as log:
            t.numpy()
        assert log.begun == ["numpy"]

    def test_what_transformations_do_is_none(self):
        ones = np.ones(2)
        with Log(CONVERSION) as log:
            func.jvp(mg.sin, (ones,), (ones,))
            func.hessian(lambda a: mg.sum(a * a))(ones)
            func.linearize(mg.sin, ones)[1](ones)
            func.vmap(func.grad(lambda a: a * a))(ones)
        assert log.told == []

    def test_a_leaf_is_a_node_without_operands(self):
        class Leaves(Observer):
            events = frozenset({NODE})

            def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
                seen.append((node.name(), operands, result))

        seen: list[Any] = []
        with Leaves():
            t = mg.asarray([1.0], requires_grad=True)
        assert seen == [("AccumulateGrad", (), t)]

    def test_labels(self):
        with (
            profiler.record_function("unseen"),
            Log(LABEL) as log,
            profiler.record_function("outer"),
            profiler.record_function("inner"),
        ):
            assert observe.here().label.outer.name == "outer"
        assert log.told == ["+label outer", "+label inner", "-label inner", "-label outer"]

    def test_arguments_and_results(self, x):
        calls = []

        class Calls(Observer):
            events = frozenset({OPERATION})

            def end(self, token: Any, call: observe.Call) -> None:
                calls.append((call.op.name, call.order, call.args, call.kwargs, call.result))

        with Calls():
            y = 2.0 / x
            z = mg.sum(y, axis=0, keepdims=True)
        (name, order, args, _, first), (other, _, given, options, second) = calls
        assert (name, order, args[0], args[1]) == ("divide", ("x2", "x1"), x, 2.0) and first is y
        assert (
            other == "sum"
            and given[0] is y
            and options == {"axis": 0, "dtype": None, "keepdims": True}
            and second is z
        )

    def test_operands_and_results_of_nodes(self, x):
        told = []

        class Nodes(Observer):
            events = frozenset({NODE})

            def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
                told.append((node.name(), operands, result))

        with Nodes():
            y = 3.0 + x
            parts = mg.unstack(x)
        assert told == [("AddBackward", (3.0, x), y), ("UnstackBackward", (x, 0), parts)]


class TestOnce:
    @pytest.mark.parametrize(
        "wrap",
        [
            lambda f: f,
            func.grad,
            lambda f: func.vmap(func.grad(f)),
            lambda f: func.grad(lambda t: mg.sum(func.vmap(f)(t))),
            lambda f: lambda t: func.jvp(func.grad(lambda u: mg.sum(f(u))), (t,), (t,)),
        ],
        ids=["plain", "grad", "vmap of grad", "grad of vmap", "jvp of grad"],
    )
    def test_an_operation_is_told_where_it_is_called(self, wrap):
        def f(t: Any) -> Any:
            return mg.sum(mg.sin(t) * t)

        with Log(OPERATION, whole=True) as log:
            wrap(f)(np.ones((2, 3)))
        assert [name for name in log.begun if name in ("sin", "multiply")][:2] == [
            "sin",
            "multiply",
        ]
        assert log.begun.count("sin") == 1

    def test_whole_operations_hide_their_parts(self):
        a = mg.asarray(np.ones((3, 2, 4)), requires_grad=True)
        b = mg.asarray(np.ones((4, 5)), requires_grad=True)
        with Log(OPERATION) as parts, Log(OPERATION, NODE, whole=True) as whole:
            func.vmap(lambda t: t @ b)(a)
        assert parts.begun[0] == "matmul" and len(parts.begun) > 1
        assert whole.begun == ["matmul"] and "node MatmulBackward" in whole.told

    def test_composite_operations_are_what_they_consist_of(self):
        mg.registry.composite("test_observe_double(x, /)", lambda xp, x: x + x, chapter="test")
        x = mg.asarray([1.0])
        try:
            with Log(OPERATION, whole=True) as log:
                mg.test_observe_double(x)
        finally:
            del mg.registry.OPS["test_observe_double"]
        assert log.begun == ["test_observe_double", "add"]


class TestErrors:
    def test_what_raises_ends(self, x):
        shorter = x[:2]
        with (
            Log() as log,
            pytest.raises((ValueError, TypeError), match="shape|broadcast|operands|incompatible"),
        ):
            x * shorter
        assert log.told == ["+operation multiply", "-operation multiply"] and isinstance(
            log.results[0], (ValueError, TypeError)
        )

    @pytest.mark.parametrize("when", ["begin", "end"])
    def test_an_observer_that_raises(self, x, when):
        """Those who were told of a beginning are told of the end."""
        with (
            Log(OPERATION) as outer,
            refusing(when, OPERATION),
            Log(OPERATION) as inner,
            pytest.raises(RuntimeError, match="not here"),
        ):
            mg.sin(x)
        both = ["+operation sin", "-operation sin"]
        assert outer.told == both and inner.told == (both if when == "end" else [])

    def test_an_observer_that_raises_at_the_end_of_a_label(self):
        with (
            Log(LABEL) as outer,
            refusing("closed", LABEL),
            pytest.raises(RuntimeError, match="not here"),
            profiler.record_function("block"),
        ):
            pass
        assert outer.told == ["+label block", "-label block"]

    def test_a_step_that_another_observer_refuses_induces_nothing_later(self, x):
        with (
            pytest.warns(UserWarning, match=r"Anomaly|Error detected"),
            mg.autograd.detect_anomaly(),
        ):
            with refusing("begin", STEP), pytest.raises(RuntimeError, match="not here"):
                mg.sum(x).backward()
            assert "parent_" not in mg.sum(x).grad_fn.metadata

    def test_a_left_operand(self, x):
        """What leaves the work to another operand has no result."""

        class Other:
            def __rmul__(self, other: Any) -> str:
                return "theirs"

        with Log(OPERATION) as log:
            assert x * Other() == "theirs"
        assert log.results == [NotImplemented]


class TestContexts:
    def test_other_threads_and_contexts(self, x):
        with Log(OPERATION) as log:
            in_another_thread(mg.sin, x)
            in_another_thread(contextvars.Context().run, mg.sin, x)
            assert log.told == []
            in_another_thread(contextvars.copy_context().run, mg.sin, x)
        assert log.begun == ["sin"]

    def test_tasks(self, x):
        async def main() -> Log:
            started = asyncio.Event()

            async def before() -> None:
                await started.wait()
                mg.sin(x)

            async def inside() -> None:
                mg.cos(x)

            task = asyncio.ensure_future(before())
            await asyncio.sleep(0)
            with Log(OPERATION) as log:
                started.set()
                await task
                await asyncio.ensure_future(inside())
            return log

        assert asyncio.run(main()).begun == ["cos"]

    def test_the_same_observer_twice(self, x):
        with Log(OPERATION, NODE) as log, log:
            mg.sin(x)
        assert log.told == ["+operation sin", "node SinBackward", "-operation sin"]

    def test_observers_may_define_equality(self, x):
        @dataclass
        class Equal(Observer):
            told: list[str]
            events = frozenset({OPERATION, NODE})

            def begin(self, call: observe.Call) -> None:
                self.told.append(call.name)

        first, second = Equal([]), Equal([])
        with first, second:
            mg.sin(x)
        assert first.told == second.told == ["sin"]

    def test_what_a_callback_enters_or_leaves_stays_so(self, x):
        """An observer that leaves in its own callback is told no more, as is a profiler that one
        begins there told from then on.
        """
        inner = Log(OPERATION)

        class Once(Log):
            def end(self, token: str, call: observe.Call) -> None:
                super().end(token, call)
                observe.leave(self)
                observe.enter(inner)

        once = Once(OPERATION)
        with once:
            for _ in range(3):
                mg.sin(x)
        observe.leave(inner)
        assert once.begun == ["sin"] and inner.begun == ["sin", "sin"]

    def test_hooks_for_saved_arrays_are_left_in_any_order(self, x):
        packed: list[str] = []
        first, second = (
            saved_tensors_hooks(lambda t, name=name: packed.append(name) or t, lambda t: t)
            for name in ("first", "second")
        )
        first.__enter__()
        second.__enter__()
        first.__exit__()
        mg.sin(x)
        second.__exit__()
        mg.sin(x)
        assert packed == ["second"]

    def test_what_a_checkpoint_computes_again_is_told_to_who_observes_the_pass(self, x):
        """And not to who observed the call, if that has ended."""
        with Log(OPERATION) as call:
            y = func.checkpoint(lambda t: mg.sin(mg.exp(t)))(x)
        with (
            Log(OPERATION, STEP) as log,
            saved_tensors_hooks(
                lambda t: pytest.fail("the graph of the second run is of no use"), lambda t: t
            ),
        ):
            y.backward(mg.ones_like(y.detach()))
        assert call.begun == ["exp", "sin"]
        assert [name for name in log.begun if name in ("exp", "sin", "SinBackward")] == [
            "SinBackward",
            "exp",
            "sin",
        ]

    def test_a_generator_that_is_closed_elsewhere(self, x):
        class Once(Log):
            def __exit__(self, *exc: object) -> None:
                self.ended = True
                super().__exit__(*exc)

        log = Once(OPERATION)

        def generator() -> Any:
            with log:
                yield

        g = generator()
        next(g)
        in_another_thread(g.close)
        mg.sin(x)
        assert log.told == [] and observe.gate.get() is True

    @pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
    def test_one_that_has_ended_is_told_of_nothing(self, x, beside):
        """Whatever it asks for: the gate sees to it, and takes it out where it can."""
        times: list[Any] = []

        class Ending(Log):
            pass

        class Timing(Ending):
            def timed(self, *told: Any) -> None:  # type: ignore[override]
                times.append(told)

        for log in (Ending(), Timing(OPERATION, STEP), Ending(NODE)):
            y = mg.sum(x * 2.0)
            with log, Log() if beside else nullcontext():
                log.ended = True
                with profiler.record_function("part"):
                    x[1:] * 3.0
                    x.detach().requires_grad_()
                    y.backward()
            assert log.told == [] and times == []

    def test_inside_a_transformation(self):
        """What a function enters and does not leave ends with the transformation."""
        log = Log(OPERATION)
        func.grad(lambda t: mg.sum(log.__enter__() and t * t))(np.ones(2))
        assert "multiply" in log.begun and observe.gate.get() is True

    def test_hooks_see_what_a_pass_calls(self, x):
        with Log(OPERATION) as log:
            y = x * 2.0
            y.register_hook(lambda g: mg.sin(g))
            mg.sum(y).backward()
        assert log.begun == ["multiply", "sum", "sin"]


@pytest.mark.parametrize(
    "made",
    [mg.autograd.graph.record_lines, lambda: mg.autograd.graph.label("step")],
    ids=["lines", "label"],
)
def test_blocks_leave_nothing_behind(x, made):
    """Neither a cycle nor, in a block around them, a record of each."""

    def steps(n: int) -> int:
        tracemalloc.start()
        try:
            for _ in range(n):
                with made():
                    mg.sin(x)
            return tracemalloc.get_traced_memory()[0] // n
        finally:
            tracemalloc.stop()

    gc.collect()
    gc.disable()
    try:
        with mg.autograd.graph.label("around"):
            steps(500)
            assert steps(1000) < 100
        assert gc.collect() < 100
    finally:
        gc.enable()


def test_a_block_that_ends_elsewhere_is_noted_no_more(x):
    """Of two that are open, by nodes of any kind, also where another observer is told of them."""

    def generator() -> Any:
        with mg.autograd.graph.label("elsewhere"):
            yield

    for other in (Log(OPERATION), Log(NODE)):
        with other, mg.autograd.graph.label("around"):
            g = generator()
            next(g)
            in_another_thread(g.close)
            made = mg.sin(x), x[:2], mg.sin(x)
            assert [[name for name, _ in note_of(y.grad_fn).labels] for y in made] == [
                ["around"]
            ] * 3


@pytest.mark.filterwarnings("ignore:Anomaly")
def test_anomaly_mode_that_ends_elsewhere(x):
    def generator() -> Any:
        with mg.autograd.detect_anomaly():
            yield

    g = generator()
    next(g)
    assert mg.autograd.anomaly_mode.is_anomaly_enabled()
    in_another_thread(g.close)
    assert not mg.autograd.anomaly_mode.is_anomaly_enabled()
    assert "traceback_" not in mg.sin(x).grad_fn.metadata and observe.gate.get() is True


@pytest.mark.filterwarnings("ignore:Anomaly")
def test_a_step_whose_end_was_not_told_induces_nothing(x):
    """As when an interrupt comes first. The error that is at hand keeps what ran."""

    class Interrupted(Observer):
        events = frozenset({STEP})

        def end(self, token: Any, call: observe.Call) -> None:
            raise KeyboardInterrupt

    anomaly = mg.autograd.anomaly_mode
    with mg.autograd.detect_anomaly():
        told = observe.watching(observe.gate.get())
        try:
            with pytest.MonkeyPatch.context() as patch, Interrupted():
                patch.setattr(type(told[0]), "end", Interrupted.end)
                mg.sum(x).backward()
        except KeyboardInterrupt:
            y = mg.sum(x)
        assert "traceback_" in y.grad_fn.metadata and "parent_" not in y.grad_fn.metadata
    anomaly._running.set(None)


def test_warnings_name_the_line_of_the_program(x, monkeypatch):
    from multigrad.backward import gradients

    for observers in ((), (Log(),), (Log(whole=True), mg.autograd.graph.record_lines())):
        monkeypatch.setattr(gradients, "_warned", [False])
        with ExitStack() as stack, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for observer in observers:
                stack.enter_context(observer)
            mg.sum(x).backward(create_graph=True)
            float(mg.sum(x))
            with mg.autograd.detect_anomaly(), pytest.raises(RuntimeError):
                (0.0 * mg.sum(x) * mg.nan).backward()
        x.grad = None
        assert len(told) >= 4 and {w.filename for w in told} == {__file__}


def test_times_alone(x):
    taken: list[Any] = []

    class Times(Observer):
        events = frozenset({OPERATION})

        def timed(self, op: Any, start: int, end: int, result: Any) -> None:  # type: ignore[override]
            taken.append((op.name, end >= start, result is not None))

    shorter = x[:2]
    with Times():
        mg.sin(x)
        with pytest.raises(Exception, match=r"\S"):
            x @ shorter
    assert taken == [("sin", True, True), ("matmul", True, False)]


def test_an_operation_with_a_parameter_mode_in_a_loop():
    """Its body observes; `mode` is a parameter of linalg.qr, not of what calls it."""
    x = np.asarray([[1.5, 0.5], [0.25, -1.0], [0.5, 2.0]])
    values, _ = mg.func.scan(lambda c, _: (mg.linalg.qr(c)[0], None), x, None, length=2)
    np.testing.assert_allclose(values.T @ values, np.eye(2), atol=1e-12)


@pytest.mark.parametrize(
    "made",
    [
        Log,
        profiler.profile,
        mg.autograd.detect_breaks,
        mg.autograd.graph.record_lines,
        lambda: mg.autograd.graph.label("part"),
        lambda: mg.autograd.set_detect_anomaly(True),
    ],
    ids=["observer", "profile", "breaks", "lines", "label", "anomaly"],
)
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_what_is_recorded_stays_the_same(x, made):
    """The plain node of an operation; off again, it carries nothing."""
    with made():
        watched = (x * x).grad_fn
    plain = (x * x).grad_fn
    assert type(watched) is type(plain) is Node and plain.metadata == {}
