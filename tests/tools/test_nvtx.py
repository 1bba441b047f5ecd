"""emit_nvtx: what ranges there are, and what they are called.

A stand-in takes the place of the package nvtx, which would need no GPU either.
"""

from __future__ import annotations

import asyncio
import builtins
import re
import sys
import types
from importlib.util import find_spec

import pytest
from profiler_events import leaf

import multigrad as mg
from multigrad import observe
from multigrad.autograd.profiler import emit_nvtx, profile, record_function


class Nvtx(types.ModuleType):
    """Notes (depth, name) of each range, in the order in which they begin."""

    def __init__(self):
        super().__init__("nvtx")
        self.ranges = []
        self.depth = 0
        self.started = {}

    def push_range(self, message):
        self.ranges.append((self.depth, message))
        self.depth += 1

    def pop_range(self):
        self.depth -= 1

    def start_range(self, message):
        self.ranges.append((self.depth, message))
        self.started[len(self.ranges)] = message
        return len(self.ranges)

    def end_range(self, number):
        del self.started[number]

    @property
    def names(self):
        return [name for _, name in self.ranges]


@pytest.fixture
def nvtx(monkeypatch):
    found = Nvtx()
    monkeypatch.setitem(sys.modules, "nvtx", found)
    yield found
    assert found.depth == 0 and not found.started and observe.gate.get() is True


def number(text):
    return int(re.search(r"seq=(\d+)", text)[1])


def test_every_operation_is_a_range(backend, nvtx):  # F225, F201
    x = leaf(backend, 1.0, 2.0)
    with emit_nvtx() as emitting:
        assert emitting.entered
        y = mg.sum(x * x)
        with mg.no_grad():
            mg.exp(x)
        y.backward()
    x * 3
    assert [re.sub(r"\d+", "N", name) for name in nvtx.names] == [
        "multiply, seq=N",
        "sum, seq=N",
        "exp, seq=N",
        "SumBackward, stashed seq=N",
        "MultiplyBackward, stashed seq=N",
        "AccumulateGrad, stashed seq=N",
    ]


def test_numbers(backend, nvtx):  # F228, F229
    x = leaf(backend, 1.0, 2.0)
    with emit_nvtx():
        product = x * x
        total = mg.sum(product)
        stashed = [product.grad_fn._sequence_nr(), total.grad_fn._sequence_nr()]
        total.backward()
    assert [number(name) for name in nvtx.names[:2]] == stashed  # the numbers that the nodes got
    assert [number(name) for name in nvtx.names[2:4]] == stashed[::-1]
    assert nvtx.names[4] == f"AccumulateGrad, stashed seq={2**64 - 1}"  # PyTorch's: no partner
    assert all("stashed" in name for name in nvtx.names[2:]) and not any(
        "stashed" in name for name in nvtx.names[:2]
    )


def test_the_counter_runs_on_nodes_only(nvtx):  # F228
    x = leaf("numpy", 1.0)
    with emit_nvtx(), mg.no_grad():
        for _ in range(3):
            mg.exp(x)
    assert len(set(nvtx.names)) == 1


def test_double_backward(backend, nvtx):  # F230, F231
    x = leaf(backend, 2.0)
    with emit_nvtx():
        (g,) = mg.autograd.grad(mg.sum(x**3), x, create_graph=True)
        first = list(nvtx.ranges)
        mg.sum(g).backward()
    inside = [name for depth, name in first if depth == 1]
    # inside of nodes, with numbers of their own
    assert inside and all(number(name) > 0 and "stashed" not in name for name in inside)
    second = [number(name) for name in nvtx.names[len(first) :] if "stashed" in name]
    made = [number(name) for name in inside if name.startswith(("pow", "multiply"))]
    assert set(made) <= set(second)


def test_shapes(backend, nvtx):  # F226
    x = leaf(backend, 1.0, 2.0)
    with emit_nvtx(record_shapes=True):
        mg.sum(2.0 * mg.concat([x, x]), axis=0).backward()
    named = {name.partition(",")[0]: name.partition("sizes=")[2] for name in nvtx.names}
    assert (
        named["multiply"] == "[[], [4]]"
        and named["sum"] == "[[4], [], [], []]"
        and named["concat"] == "[[], []]"
    )
    assert named["MultiplyBackward"] == "[[4]]" and named["SumBackward"] == "[[]]"


def test_labels(nvtx):  # F224, F225
    x = leaf("numpy", 1.0)

    async def task(n):
        with record_function(f"task {n}"):
            await asyncio.sleep(0)
            x * n

    async def main():
        await asyncio.gather(task(1), task(2))

    with emit_nvtx():
        asyncio.run(main())
    assert [name.partition(",")[0] for name in nvtx.names] == [
        "task 1",
        "task 2",
        "multiply",
        "multiply",
    ]


def test_disabled(nvtx):  # F225
    with emit_nvtx(enabled=False) as emitting:
        leaf("numpy", 1.0) * 2
    assert nvtx.names == [] and emitting is not None


def test_not_twice(nvtx):  # F225
    emitting = emit_nvtx()
    with (
        emitting,
        pytest.raises(RuntimeError, match="NVTX annotation context manager is not reentrant"),
    ):
        emitting.__enter__()


def test_an_error_ends_its_ranges(backend, nvtx):
    x, y = leaf(backend, 1.0, 2.0), leaf(backend, 1.0, 2.0, 3.0)
    with emit_nvtx(), record_function("label"), pytest.raises((ValueError, TypeError)):
        mg.matmul(x, y)
    assert nvtx.names[0] == "label"


def test_beside_the_profiler(nvtx):
    x = leaf("numpy", 1.0)
    with profile() as prof, emit_nvtx():
        x * 2
    assert [e.name for e in prof.function_events] == ["multiply"] and len(nvtx.names) == 1


def test_what_to_install(monkeypatch):  # F225
    monkeypatch.delitem(sys.modules, "nvtx", raising=False)
    real = builtins.__import__
    monkeypatch.setattr("importlib.import_module", lambda name: real("no_such_module_as_nvtx"))
    with (
        pytest.raises(
            ImportError,
            match=r"emit_nvtx needs the package nvtx: pip install 'multigrad-array\[nvtx\]'",
        ),
        emit_nvtx(),
    ):
        pass
    assert observe.gate.get() is True


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_the_profiler_of_jax(backend, nvtx, monkeypatch):  # F233
    """The ranges are its annotations as well."""
    import jax

    seen = []

    class Annotation:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *exc):
            seen.append("end")

    monkeypatch.setattr(jax.profiler, "TraceAnnotation", Annotation)
    x = leaf(backend, 1.0, 2.0)
    with emit_nvtx():
        mg.sum(x).backward()
        leaf("numpy", 1.0) * 2
    assert [name.partition(",")[0] for name in seen] == [
        "sum",
        "end",
        "SumBackward",
        "end",
        "AccumulateGrad",
        "end",
    ]
    assert set(nvtx.names) >= {name for name in seen if name != "end"}


def test_the_example_with_a_warm_up(nvtx):  # F233
    """Outside of the block nothing is marked."""
    x = leaf("numpy", 1.0, 2.0)

    def model():
        mg.sum(x * x).backward()

    model()
    assert nvtx.names == []
    with emit_nvtx():
        model()
    assert len(nvtx.names) == 5


@pytest.mark.skipif(find_spec("nvtx") is None, reason="the package nvtx is not installed")
def test_the_package_itself():  # F225
    """It takes the calls, where there is no profiler and no GPU."""
    x = leaf("numpy", 1.0)
    with emit_nvtx(record_shapes=True), record_function("label"):
        (x * 2).backward()
    assert x.grad.array.tolist() == [2]
