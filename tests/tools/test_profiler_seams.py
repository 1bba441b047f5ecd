"""Arrays that are made of something else are events; labels that overlap, of generators and of
tasks; what is refused.
"""

from __future__ import annotations

import contextvars
import threading
import time

import numpy as np
import pytest
from leaves import ones
from profiler_events import exported, names, rows

import multigrad as mg
from multigrad.autograd.profiler import profile, record_function


class TestMakingArrays:
    def test_of_lists_and_numbers(self, backend, xp):
        with profile(profile_memory=True) as prof:
            a = xp.asarray([1.0] * 1000, dtype=xp.float64)
            b = mg.tensor([1.0] * 10, dtype="float64", backend=backend)
            c = mg.asarray(2.0, backend=backend)
        assert names(prof) == ["asarray"] * 3 and [a.shape, b.shape, c.shape] == [
            (1000,),
            (10,),
            (),
        ]
        assert [e.cpu_memory_usage for e in prof.function_events[:2]] == [8000, 80]

    def test_copies_and_conversions(self):
        x = np.ones(100)
        with profile(profile_memory=True, record_shapes=True) as prof:
            found = [
                mg.tensor(x),
                mg.asarray(x, copy=True),
                mg.asarray(x, dtype="float32"),
                mg.asarray(x, backend="strict"),
            ]
        assert len(found) == 4 and names(prof) == ["asarray"] * 4
        assert [e.cpu_memory_usage for e in prof.function_events] == [800, 800, 400, 800]
        assert prof.function_events[0].input_shapes == [[100], [], [], []]

    def test_what_is_wrapped_as_it_is(self, backend, xp):
        x = xp.ones(3)
        with profile(profile_memory=True) as prof:
            xp.asarray(x.array)
            xp.asarray(x)
            mg.asarray(x.array, requires_grad=True)
        assert names(prof) == []

    def test_a_list_of_arrays_is_stacked_inside(self, xp):
        x = xp.ones(3)
        with profile() as prof:
            xp.asarray([x, x])
        assert (
            names(prof) == ["asarray", "stack"]
            and prof.function_events[1].cpu_parent is prof.function_events[0]
        )


class TestOneCallIsOneEvent:
    def test_the_rule_of_a_tangent_calls_it_once_more(self, backend):
        a, b = (
            mg.tensor(np.ones(shape).tolist(), backend=backend) for shape in ((3, 2, 4), (4, 5))
        )
        with profile() as prof:
            mg.func.jvp(lambda t: t @ b, (a,), (a,))
        outer, inner = prof.function_events
        assert names(prof) == ["matmul", "matmul"] and inner.cpu_parent is outer

    def test_its_node(self):
        """Where vmap carries an operation out by the same one, that made the node."""
        a, b = (mg.tensor(np.ones(shape), requires_grad=True) for shape in ((3, 2, 4), (4, 5)))
        with profile(with_stack=True) as prof:
            mg.sum(mg.func.vmap(lambda t: t @ b)(a)).backward()
        (product,), (node,) = (
            [e for e in prof.function_events if e.name == name]
            for name in ("matmul", "MatmulBackward")
        )
        assert product.sequence_nr == node.sequence_nr >= 0 and node.stack == product.stack != []


def stepping(name, x, steps=2):
    with record_function(name):
        for _ in range(steps):
            time.sleep(0.002)
            yield mg.exp(x)


class TestOverlaps:
    @pytest.mark.parametrize("number", [2, 3])
    def test_generators_that_take_turns(self, number, tmp_path):
        x = mg.ones(2)
        began = time.perf_counter()
        with profile() as prof:
            list(zip(*(stepping(f"g{i}", x) for i in range(number)), strict=False))
        wall = 1e6 * (time.perf_counter() - began)
        labels = [e for e in prof.function_events if e.name != "exp"]
        assert (
            labels[0].time_range.start
            < labels[1].time_range.start
            < labels[0].time_range.end
            < labels[1].time_range.end
        )
        found = rows(exported(prof, tmp_path))
        assert (
            len(found) == 2
            and {"g0"} < {e["name"] for e in found[1]}
            and {"g1"} < {e["name"] for e in found[2]}
        )
        assert 0 < prof.self_cpu_time_total <= wall
        assert all(e.self_cpu_time_total >= 0 for e in prof.function_events)
        calls = [e.cpu_parent.name for e in prof.function_events if e.name == "exp"]
        # the label that was opened last
        assert calls[0] == "g0" and set(calls[number:]) == {f"g{number - 1}"}

    def test_labels_in_the_label_of_a_generator(self, tmp_path):
        x = mg.ones(2)
        with profile() as prof:
            first, second = stepping("g0", x), stepping("g1", x)
            next(first)
            next(second)
            with record_function("inside"):
                mg.sin(x)
            first.close()
            mg.cos(x)
            second.close()
        found = rows(exported(prof, tmp_path))
        assert [[e["name"] for e in row] for row in found.values()] == [
            ["g0", "exp"],
            ["g1", "exp", "inside", "sin", "cos"],
        ]
        around = {name: parent for name, parent in parents(prof) if name != "exp"}
        assert around == {"g0": None, "g1": None, "inside": "g1", "sin": "inside", "cos": "g1"}

    def test_a_decorated_generator(self):
        x = mg.ones(2)

        @record_function("step")
        def steps():
            yield mg.exp(x)
            yield mg.sin(x)

        with profile() as prof:
            for _ in steps():
                mg.tan(x)
        inside = [(name, parent) for name, parent in parents(prof) if name != "step"]
        assert inside == [("exp", "step"), ("tan", None), ("sin", "step"), ("tan", None)]


class TestWhatIsRefused:
    @pytest.mark.parametrize("name", [3, None, b"x", len])
    def test_a_label_without_a_name(self, name):
        with pytest.raises(
            TypeError, match="record_function takes the name of a block, a str, not"
        ):
            record_function(name)

    def test_arguments_that_are_no_text(self):
        with pytest.raises(TypeError, match="record_function: args must be a str or None, not int"):
            record_function("name", 3)

    @pytest.mark.parametrize("value", [np.float32(1), float("nan"), {1, 2}])
    def test_metadata_that_is_no_json(self, value, tmp_path):
        path = tmp_path / "trace.json"
        path.write_text("before")
        with profile() as prof:
            mg.ones(1)
        with pytest.raises(
            TypeError, match="export_chrome_trace: metadata must be what JSON can hold"
        ):
            prof.export_chrome_trace(path, metadata={"a": value})
        assert path.read_text() == "before"


def parents(prof):
    return [(e.name, e.cpu_parent.name if e.cpu_parent else None) for e in prof.function_events]


def test_a_thread_that_goes_on_after_the_end_is_not_recorded():
    x = ones(2)
    begun, go = threading.Event(), threading.Event()

    def run():
        x * x
        begun.set()
        assert go.wait(60)
        with record_function("late"):
            x + x

    with profile(record_shapes=True) as prof:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
        thread.start()
        assert begun.wait(60)
    # operations are watched again, and the thread still has the frame of the first one
    with profile() as other:
        go.set()
        thread.join()
    assert [e.name for e in prof.function_events] == ["multiply"]
    assert other.function_events == []


def test_a_generator_that_ends_its_label_leaves_that_of_its_caller():
    x = ones(2)

    def generate():
        with record_function("inner"):
            yield

    with profile() as prof:
        generator = generate()
        next(generator)
        with record_function("outer"):
            generator.close()
            x + x
        x - x
    assert parents(prof)[-2:] == [("add", "outer"), ("subtract", None)]
