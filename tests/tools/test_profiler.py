"""The profiler: what is an event, what is inside of what, threads and tasks, and that nothing is
left behind. See parity/test_profiler_names.py.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from function_programs import Square
from profiler_events import event, leaf, names

import multigrad as mg
from multigrad import observe
from multigrad.autograd import profiler
from multigrad.autograd.profiler import profile, record_function


class TestWhatIsAnEvent:
    def test_names_are_those_of_the_table(self, backend):  # F213
        x = leaf(backend, 1.0, 2.0)
        with profile() as prof:
            mg.sum(x * x).backward()
        assert names(prof) == [
            "multiply",
            "sum",
            "SumBackward",
            "MultiplyBackward",
            "AccumulateGrad",
        ]

    def test_operators_methods_functions_and_raw_arrays(self, backend, xp):
        x = leaf(backend, 1.0, 2.0)
        with profile() as prof:
            2 - x
            x.exp()
            xp.exp(x)
            mg.exp(x.array)
            x @ x
            x.__lt__(1)
        assert names(prof) == ["subtract", "exp", "exp", "exp", "matmul", "less"]

    def test_making_arrays(self, backend, xp):
        with profile(record_shapes=True) as prof:
            xp.zeros((2, 3))
            xp.linspace(0.0, 1.0, 3)
            xp.ones_like(xp.arange(3))
        assert names(prof) == ["zeros", "linspace", "arange", "ones_like"]

    def test_moving_and_indexing(self, backend, xp):
        x = leaf(backend, 1.0, 2.0, 3.0)
        with profile() as prof:
            x[0]
            x[xp.asarray([0, 2])]
            xp.asarray(x, dtype=xp.float32)
        assert names(prof) == ["getitem", "asarray", "getitem", "asarray"]
        with profile() as prof:
            x.to_backend("numpy" if backend != "numpy" else "strict")
        assert names(prof) == ["to_backend"]

    def test_in_place(self, backend):
        x = leaf(backend, 1.0, 2.0, 3.0) * 1
        with profile(record_shapes=True) as prof:
            x += 1
            x[0] = 2.0
            x.exp_()
        assert [name for level, name in names(prof, depth=True) if level == 0] == [
            "add_",
            "setitem",
            "exp_",
        ]
        assert event(prof, "add_").sequence_nr >= 0 and event(prof, "add_").input_shapes == [
            [3],
            [],
        ]
        w, step = mg.tensor([1.0, 2.0], backend=backend), mg.tensor([1.0, 1.0], backend=backend)
        with profile() as prof, mg.no_grad():
            w -= step
            w[1:] = 0.0
        assert [name for level, name in names(prof, depth=True) if level == 0] == [
            "subtract_",
            "setitem",
        ]
        assert np.asarray(w.array).tolist() == [0, 0]

    def test_a_function(self, backend):
        x = leaf(backend, 3.0)
        with profile() as prof:
            Square.apply(x).backward()
        assert names(prof, depth=True) == [
            (0, "Square"),
            (1, "multiply"),
            (0, "SquareBackward"),
            (1, "multiply"),
            (1, "multiply"),
            (0, "AccumulateGrad"),
        ]
        assert event(prof, "Square").sequence_nr == event(prof, "SquareBackward").sequence_nr >= 0

    def test_what_raises_is_an_event_too(self, backend, xp):
        x, y = leaf(backend, 1.0, 2.0), leaf(backend, 1.0, 2.0, 3.0)
        for options in ({}, {"record_shapes": True}):
            with profile(**options) as prof, pytest.raises((ValueError, TypeError)):
                xp.matmul(x, y)
            assert event(prof, "matmul").sequence_nr == -1

    def test_a_number_belongs_to_what_made_the_node(self, backend):
        x = leaf(backend, 1.0)
        before = x * 2
        with profile() as prof:
            y = x * 3
            assert mg.astype(y, y.dtype, copy=False) is not None
            mg.astype(before, before.dtype, copy=False)
        found = [e.sequence_nr for e in prof.function_events]
        assert found[0] == y.grad_fn._sequence_nr() and all(
            n != found[0] and n != before.grad_fn._sequence_nr() for n in found[1:]
        )


class TestInside:
    def test_the_parts_of_a_composite_operation(self):
        mg.registry.composite(
            "test_profiler_double(x, /)", lambda xp, x: xp.exp(x) + x, chapter="test"
        )
        try:
            x = leaf("numpy", 1.0)
            with profile() as prof:
                mg.test_profiler_double(x).backward()
        finally:
            del mg.registry.OPS["test_profiler_double"]
        assert names(prof, depth=True)[:3] == [(0, "test_profiler_double"), (1, "exp"), (1, "add")]
        outer, inner = event(prof, "test_profiler_double"), event(prof, "add")
        assert outer.sequence_nr == inner.sequence_nr == event(prof, "AddBackward").sequence_nr
        assert outer.self_cpu_time_total < outer.cpu_time_total

    def test_an_ordinary_pass_runs_rules_on_raw_arrays(self, backend):
        x = leaf(backend, 1.0, 2.0)
        with profile() as prof:
            mg.sum(x**3).backward()
        assert all(e.cpu_parent is None for e in prof.function_events)

    def test_a_recorded_pass_shows_what_rules_call(self, backend):  # F230, F231
        x = leaf(backend, 1.0, 2.0)
        with profile() as prof:
            (g,) = mg.autograd.grad(mg.sum(x**3), x, create_graph=True)
            mg.sum(g).backward()
        (first, second) = [e for e in prof.function_events if e.name == "PowBackward"]
        parts = [(e.name, e.sequence_nr) for e in first.cpu_children]
        assert [name for name, _ in parts] == ["pow", "multiply", "multiply"] and all(
            n > 0 for _, n in parts
        )
        assert second.sequence_nr == parts[0][1]

    def test_transformations(self, backend):
        """Once, where it is called, whatever the levels; parts that rules call by the bound
        namespace are inside.
        """
        f = lambda t: mg.sum(t * t)
        x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], backend=backend)
        with profile(record_shapes=True) as prof:
            mg.func.vmap(mg.func.grad(f))(x)
        top = [e for e in prof.function_events if e.cpu_parent is None]
        assert [e.name for e in top].count("multiply") == 1 and "MultiplyBackward" in names(prof)
        # one example, as the function sees it
        assert next(e for e in top if e.name == "multiply").input_shapes == [[2], [2]]
        with profile() as prof:
            mg.func.jvp(f, (x,), (x,))
        assert [name for level, name in names(prof, depth=True) if level == 0] == [
            "multiply",
            "sum",
        ]

    def test_labels_and_operations_in_each_other(self):
        @mg.func.custom_jvp
        @record_function("inside")
        def function(x):
            return x + 1

        function.defjvp(lambda primals, tangents: (primals[0] + 1, tangents[0]))
        x = leaf("numpy", 1.0)
        with profile() as prof, record_function("outside"):
            function(x)
        assert names(prof, depth=True) == [
            (0, "outside"),
            (1, "function"),
            (2, "inside"),
            (3, "add"),
        ]

    def test_an_event_with_nothing_but_its_twin(self, backend):
        x = leaf(backend, 1.0, 2.0) * 1
        with profile() as prof:
            x[mg.asarray([0], backend=backend)] = x[1:]
        assert names(prof).count("setitem") == 1

    def test_profilers_in_each_other(self, backend):
        x = leaf(backend, 1.0)
        with profile() as outer:
            x + 1
            with record_function("label"), profile(record_shapes=True) as inner:
                x * 2
            x - 1
        assert names(outer, depth=True) == [
            (0, "add"),
            (0, "label"),
            (1, "multiply"),
            (0, "subtract"),
        ]
        assert names(inner, depth=True) == [(0, "multiply")] and inner.function_events[
            0
        ].input_shapes == [[1], []]


class TestThreadsAndTasks:
    def test_it_belongs_to_a_thread(self, backend):  # F203
        x = leaf(backend, 1.0)
        with profile() as prof:
            thread = threading.Thread(target=lambda: x * 2)
            thread.start()
            thread.join()
            x + 1
        assert names(prof) == ["add"]

    def test_two_threads_with_profilers_of_their_own(self):  # F203
        found = {}

        def work(name, times):
            x = leaf("numpy", 1.0)
            with profile() as prof:
                for _ in range(times):
                    getattr(mg, name)(x)
            found[name] = names(prof)

        threads = [
            threading.Thread(target=work, args=args) for args in (("exp", 200), ("sin", 300))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {"exp": ["exp"] * 200, "sin": ["sin"] * 300}

    def test_backward_on_another_thread(self, backend):  # F203
        """A thread in a copy of the context is recorded; its nodes know the thread of their
        operations.
        """
        x = leaf(backend, 1.0)
        with profile() as prof:
            y = x * 2
            context = contextvars.copy_context()
            thread = threading.Thread(target=lambda: context.run(y.backward))
            thread.start()
            thread.join()
        forward, node = event(prof, "multiply"), event(prof, "MultiplyBackward")
        assert node.thread != forward.thread == threading.get_ident() == node.fwd_thread
        assert event(prof, "AccumulateGrad").cpu_parent is None

    def test_tasks(self, backend):  # F203
        x = leaf(backend, 1.0)

        async def task(n):
            with record_function(f"task {n}"):
                y = x * n
                await asyncio.sleep(0.002)
                return y + n

        @record_function("main")
        async def main():
            await asyncio.gather(*(task(n) for n in (1, 2, 3)))

        with profile() as prof:
            asyncio.run(main())
        main_ = event(prof, "main")
        labels = [event(prof, f"task {n}") for n in (1, 2, 3)]
        for label in labels:
            assert label.cpu_parent is main_ and [e.name for e in label.cpu_children] == [
                "multiply",
                "add",
            ]
        assert labels[1].time_range.start < labels[0].time_range.end  # they overlap
        assert len({e.lane for e in (main_, *labels)}) == 4
        assert 0 <= main_.self_cpu_time_total <= main_.cpu_time_total

    def test_a_task_that_outlives_its_label(self):
        x = leaf("numpy", 1.0)

        async def late():
            await asyncio.sleep(0.005)
            return x * 2

        async def main():
            with record_function("short"):
                task = asyncio.create_task(late())
            await task

        with profile() as prof:
            asyncio.run(main())
        assert event(prof, "multiply").cpu_parent is None

    def test_a_label_until_a_future_is_done(self):
        future = concurrent.futures.Future()
        with profile() as prof:
            with record_function("call") as label:
                assert label._call_end_callbacks_on_future(future) is future
                with pytest.raises(RuntimeError, match="can only be called once"):
                    label._call_end_callbacks_on_future(future)
            leaf("numpy", 1.0) * 2
            future.set_result(None)
        assert event(prof, "call").time_range.end >= event(prof, "multiply").time_range.end
        assert event(prof, "multiply").cpu_parent is None

    def test_one_label_for_several_threads_and_recursion(self):
        x = leaf("numpy", 1.0)

        @record_function("f")
        def f(n):
            return f(n - 1) if n else x + 1

        with profile() as prof:
            f(2)
        assert names(prof, depth=True) == [(0, "f"), (1, "f"), (2, "f"), (3, "add")]


class TestNothingIsLeftBehind:
    def test_all_is_as_before(self):
        x = leaf("numpy", 1.0)
        with profile():
            mg.sum(x * x).backward()
            assert observe.gate.get() is not True
        assert observe.gate.get() is True
        with pytest.raises(ZeroDivisionError), profile(), record_function("label"):
            raise ZeroDivisionError
        assert observe.gate.get() is True and observe.here().label is None

    def test_signatures_are_the_same(self):
        functions = (mg.sum, mg.where, mg.linspace, mg.Tensor.__mul__, mg.Tensor.__getitem__)
        before = [str(inspect.signature(f)) for f in functions]
        with profile():
            assert [str(inspect.signature(f)) for f in functions] == before

    def test_results_are_not_kept_alive(self):
        import weakref

        x = leaf("numpy", 1.0)
        for options in (
            {},
            {"record_shapes": True, "with_flops": True, "profile_memory": True, "with_stack": True},
        ):
            with profile(**options):
                node = weakref.ref((x * 2).grad_fn)
                assert node() is None

    def test_gradients_are_the_same(self, backend):
        def gradients():
            x, y = leaf(backend, 1.0, 2.0), leaf(backend, 3.0, 4.0)
            y.register_hook(lambda g: g * 2)
            a, b = mg.unstack(x * y + x)
            mg.sum(a * b * y).backward()
            return [np.asarray(t.grad.array) for t in (x, y)]

        plain = gradients()
        for options in ({}, {"profile_memory": True, "with_flops": True}):
            with profile(**options):
                for a, b in zip(plain, gradients(), strict=True):
                    np.testing.assert_array_equal(a, b)

    def test_with_anomaly_mode(self):
        mode, prof = mg.autograd.set_detect_anomaly, profile()
        x = leaf("numpy", 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with (
                prof,
                mode(True),
                pytest.raises(RuntimeError, match="Function 'DivideBackward' returned nan values"),
            ):
                ((x * 0) / (x * 0)).backward()
        assert names(prof) == ["multiply", "multiply", "divide", "DivideBackward"]
        assert observe.gate.get() is True

    @pytest.mark.parametrize("hooked", [False, True], ids=["", "a leaf with hooks elsewhere"])
    def test_the_arrays_of_gradients_are_not_copied(self, hooked):
        """A leaf keeps the array that nobody else holds; who looks on must not hold it."""
        other = mg.asarray(np.ones(1), requires_grad=True)
        if hooked:  # which has all passes take the order of PyTorch
            other.register_post_accumulate_grad_hook(lambda t: None)
        x = mg.asarray(np.ones(1000), requires_grad=True)
        with profile(profile_memory=True, record_shapes=True) as prof:
            mg.sum(mg.exp(x)).backward()
        assert event(prof, "AccumulateGrad").cpu_memory_usage == 0


def test_the_module_is_exported():
    assert mg.autograd.profiler is profiler and profiler.MEMORY_EVENT_NAME == "[memory]"


def test_custom_rules_have_the_name_of_their_function(backend):
    @mg.func.custom_vjp
    def cube(x):
        return x * x * x

    cube.defvjp(lambda x: (x * x * x, x), lambda x, g: (3 * x * x * g,))
    x = leaf(backend, 2.0)
    with profile() as prof:
        mg.sum(cube(x)).backward()
    top = [e for e in prof.function_events if e.cpu_parent is None]
    assert [e.name for e in top] == ["cube", "sum", "SumBackward", "cubeBackward", "AccumulateGrad"]
    assert top[0].sequence_nr == top[3].sequence_nr and np.asarray(x.grad.array).tolist() == [12]


def test_every_function_can_be_watched():
    """But those that ask about dtypes, and from_dlpack; asarray is watched where it makes an array,
    see test_profiler_seams.py.
    """
    xp = mg.namespace("numpy")
    unseen = set()
    for op in mg.registry.OPS.values():
        function = xp
        for part in op.name.split("."):
            function = getattr(function, part)
        creates = not {"raw", "without_arrays"}.isdisjoint(function.__code__.co_freevars)
        if "_observed" not in function.__code__.co_names and not creates:
            unseen.add(op.name)
    assert unseen == {
        "asarray",
        "from_dlpack",
        "can_cast",
        "finfo",
        "iinfo",
        "isdtype",
        "result_type",
    }


def lines_of(f: Callable[[], Any]) -> int:
    """How many lines of Python a call goes through."""
    found, before = [0], sys.gettrace()

    def seen(frame: Any, event: str, arg: Any) -> Any:
        found[0] += event == "line"
        return seen

    sys.settrace(seen)
    try:
        f()
    finally:
        sys.settrace(before)
    return found[0]


def test_many_events_take_no_longer_than_their_number():
    """A label around all of them, and memory, are no reason to look at every pair."""
    x = mg.ones(4)
    lines = []
    for n in (250, 1000):
        with profile(profile_memory=True) as prof, record_function("all"):
            for _ in range(n):
                x + 1
        lines.append(lines_of(prof.key_averages))
        assert (
            prof.key_averages()[0].cpu_children is not None and len(prof.function_events) >= n + 1
        )
    assert lines[1] < 5 * lines[0]


def test_every_node_is_one_event_whatever_its_kind(backend, xp):
    """Plain, with hooks, of several outputs; also where passes are watched because a leaf has
    hooks.
    """
    for watched in (False, True):
        x = leaf(backend, 1.0, 2.0)
        if watched:
            x.register_hook(lambda g: None)
        with profile() as prof:
            y = x * 2
            y.retain_grad()
            z = y * 3
            z.grad_fn.register_hook(lambda inputs, outputs: None)
            a, b = xp.unstack(z)
            (a + b).backward()
        nodes = [e.name for e in prof.function_events if e.scope == 1]
        assert nodes == [
            "AddBackward",
            "UnstackBackward",
            "MultiplyBackward",
            "MultiplyBackward",
            "AccumulateGrad",
        ]
