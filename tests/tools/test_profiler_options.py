"""What the profiler notes where it is asked to: shapes, memory, FLOPs, lines of the program, time
on a device. See test_profiler.py.
"""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
from profiler_events import event, leaf, names

import multigrad as mg
from multigrad.autograd.profiler import profile, record_function


class TestOptions:
    def test_lines_of_the_program(self, backend, tmp_path):  # F209
        def here(x):
            return x * 2

        x = leaf(backend, 1.0)
        with profile(with_stack=True) as prof:
            y = here(x)
            mg.sum(y).backward()
        stack = event(prof, "multiply").stack
        assert stack[0].startswith(__file__) and stack[0].endswith(": here")
        assert stack[1].endswith(": test_lines_of_the_program")
        rooms = ("core", "dispatch", "memory", "backward")
        assert not any(f"multigrad/{room}/" in line for line in stack for room in rooms)
        assert event(prof, "MultiplyBackward").stack == stack  # of the operation that made it
        table = prof.key_averages(group_by_stack_n=2).table(max_src_column_width=40)
        assert "Source Location" in table and ": here" in table and "..." in table
        prof.export_stacks(tmp_path / "stacks")
        lines = (tmp_path / "stacks").read_text().splitlines()
        assert lines and all(int(line.rpartition(" ")[2]) > 0 and ";" in line for line in lines)
        assert any(":_here " in line for line in lines)

    def test_averages_by_line(self):  # F216
        x = leaf("numpy", 1.0)
        with profile(with_stack=True) as prof:
            for _ in range(3):
                x * 2
            x * 3
        found = prof.key_averages(group_by_stack_n=1)
        assert sorted(e.count for e in found) == [1, 3] and all(len(e.stack) == 1 for e in found)
        assert [e.count for e in prof.key_averages()] == [4]

    def test_shapes_of_lists_keywords_and_reflected_operators(self, backend, xp):
        x, m = leaf(backend, 1.0, 2.0), xp.ones((3, 2))
        with profile(record_shapes=True) as prof:
            xp.concat([x, x, m[0, :]], axis=0)
            3.0 - x
            m @ x
            xp.sum(m, axis=0)
        assert event(prof, "concat").input_shapes == [[], []]
        assert event(prof, "concat").structured_input_shapes == [[[2], [2], [2]], []]
        assert event(prof, "subtract").input_shapes == [[], [2]]
        assert event(prof, "matmul").input_shapes == [[3, 2], [2]]
        assert event(prof, "sum").input_shapes == [[3, 2], [], [], []]
        assert event(prof, "matmul").input_dtypes == [str(m.dtype)] * 2

    def test_memory_current_and_peak(self, backend, xp):  # F208
        x = xp.ones(1000)
        with profile(profile_memory=True) as prof:
            y = x * 2  # 8000 bytes
            z = y + 1
            del y
            z += 1.0
        gc.collect()
        at_the_end = prof.memory_timeline()[-1][1]
        peak = max(library for _, library, _ in prof.memory_timeline())
        # an immutable library makes a new array for `z += 1`
        assert at_the_end == 8000 and peak in (16000, 24000)
        assert f"Memory: 7.81 KB at the end, {peak / 1024:.2f} KB at the peak" in prof.table()
        assert event(prof, "multiply").cpu_memory_usage == 8000
        assert sum(e.cpu_memory_usage for e in prof.function_events if e.cpu_parent is None) == 8000
        del z
        assert prof.memory_timeline()[-1][1] == at_the_end  # nothing is followed any more

    def test_memory_of_views_counts_once(self):  # F208
        x = mg.ones(1000)
        with profile(profile_memory=True) as prof:
            x.reshape((10, 100)).T[1:]
            y = x * 2
            y[5:]
        assert {e.name: e.cpu_memory_usage for e in prof.function_events} == {
            "reshape": 0,
            "matrix_transpose": 0,
            "getitem": 0,
            "multiply": 8000,
        }

    def test_memory_of_a_pass(self, backend, xp):
        x = mg.tensor([1.0] * 1000, dtype="float64", backend=backend, requires_grad=True)
        with profile(profile_memory=True) as prof:
            mg.sum(mg.exp(x)).backward()
        line = prof.memory_timeline()
        # the gradient is left
        assert line[-1][1] == 8000 and max(library for _, library, _ in line) >= 16000
        assert event(prof, "ExpBackward").cpu_memory_usage >= 8000

    def test_flops_of_nodes(self, backend, xp):  # F207
        a, b = (
            mg.tensor(np.ones(shape).tolist(), backend=backend, requires_grad=True)
            for shape in ((2, 3), (3, 5))
        )
        with profile(with_flops=True) as prof:
            mg.sum(a @ b).backward()
            mg.sum(a @ b.detach()).backward()
        assert [e.flops for e in prof.function_events if e.name == "matmul"] == [60, 60]
        assert [e.flops for e in prof.function_events if e.name == "MatmulBackward"] == [120, 60]
        assert "Total FLOPs" in prof.table() and " -- " in prof.table()

    def test_parameters_of_kineto_are_refused(self):  # F200
        for name in ("experimental_config", "activity_filters"):
            with pytest.raises(
                ValueError,
                match=f"{name} is for the collector of events Kineto, which is not there",
            ):
                profile(**{name: {}})

    def test_parameters_without_effect(self):  # F200
        x = leaf("numpy", 1.0)
        with profile(
            with_modules=True,
            acc_events=True,
            use_kineto=True,
            custom_trace_id_callback=lambda: "mine",
        ) as prof:
            x * 2
        assert names(prof) == ["multiply"] and prof.trace_id == "mine"

    def test_a_trace_id_that_cannot_be_made(self):
        x = leaf("numpy", 1.0)
        asked = iter([ValueError("no number"), None])

        def number():
            if error := next(asked):
                raise error
            return "mine"

        prof = profile(custom_trace_id_callback=number)
        with pytest.raises(ValueError, match="no number"):
            prof.__enter__()
        with pytest.raises(
            RuntimeError, match="the profiler is not running: each is entered and left once"
        ):
            prof.__exit__(None, None, None)
        with prof:
            x * 2
        assert names(prof) == ["multiply"] and prof.trace_id == "mine"
        with pytest.raises(
            RuntimeError, match="the profiler is not running: each is entered and left once"
        ):
            prof.__exit__(None, None, None)
        assert names(prof) == ["multiply"]

    def test_a_time_limit_for_the_events(self):  # F200
        x = leaf("numpy", 1.0)
        with profile(post_processing_timeout_s=0.0) as prof:
            x * 2
        assert prof.function_events == []


class TestDevices:
    @pytest.mark.parametrize("backend", ["jax"], indirect=True)
    def test_time_of_a_library_that_waits(self, backend):  # F205
        x = leaf(backend, *range(100))
        with profile(use_device="jax") as prof:
            mg.sum(mg.exp(x)).backward()
            leaf("numpy", 1.0) * 2
        found = event(prof, "exp")
        assert (
            found.device_time_total > 0
            and len(found.kernels) == 1
            and event(prof, "ExpBackward").device_time_total > 0
        )
        assert event(prof, "multiply").device_time_total == 0
        table = prof.key_averages().table(sort_by="cuda_time_total")
        assert (
            "Self JAX %" in table and "JAX time avg" in table and "Self JAX time total: " in table
        )
        assert "Device time: not measured for numpy" in table  # in the header

    @pytest.mark.parametrize("backend", ["jax"], indirect=True)
    def test_under_a_trace(self, backend):
        import jax

        def f(a):
            return (mg.asarray(a) * 2).array

        with profile(
            record_shapes=True,
            profile_memory=True,
            with_flops=True,
            with_stack=True,
            use_device="jax",
        ) as prof:
            np.testing.assert_array_equal(jax.jit(f)(jax.numpy.ones(3)), [2, 2, 2])
        assert (
            event(prof, "multiply").input_shapes == [[3], []]
            and event(prof, "multiply").device_time_total == 0
        )

    def test_kernels_of_a_device(self, monkeypatch):  # F205
        """A stand-in for a library whose device has events and memory of its own."""
        from multigrad.plugins import discovery

        mg.zeros(1)
        kernels, clock = discovery.get("numpy").kernels, iter(range(0, 10**6, 500))
        monkeypatch.setitem(kernels, "mark", lambda xp, x: next(clock))
        monkeypatch.setitem(kernels, "elapsed", lambda xp, a, b: float(b - a))
        monkeypatch.setitem(kernels, "accelerator", lambda xp, x: "cuda")
        x = mg.ones(1000)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            prof = profile(use_device="cuda", profile_memory=True)
        with prof, record_function("label"):
            y = x * 2
        found = event(prof, "multiply")
        assert (
            found.device_time_total,
            found.self_device_time_total,
            found.device_memory_usage,
            found.cpu_memory_usage,
        ) == (500, 500, 8000, 0)
        label = event(prof, "label")
        assert (
            label.device_time_total,
            label.self_device_time_total,
            label.self_device_memory_usage,
        ) == (500, 0, 0)
        table = prof.table()
        assert all(
            text in table
            for text in (
                "Self CUDA %",
                "CUDA total",
                "CUDA Mem",
                "Self CUDA Mem",
                "Self CUDA time total: 500.000us",
                "7.81 KB on devices",
            )
        )
        del y
