"""memory_report: what a graph keeps, each memory once, by operation and line, and what
checkpointing would save.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd.graph import draw, label, memory_report, record_lines, saved_tensors_hooks

HERE = Path(__file__).name


def shares(found: Any) -> dict[str, int]:
    return {s.where: s.nbytes for s in found}


def test_each_memory_is_counted_once_and_by_who_kept_it_first(xp: Any) -> None:
    w = xp.ones((3, 4), dtype=xp.float64, requires_grad=True)
    x = xp.ones((5, 3), dtype=xp.float64)
    h = xp.tanh(x @ w)  # keeps x, 120 bytes, and h, 160
    loss = xp.sum(h * h)  # keeps h twice more
    report = memory_report(loss, {"w": w})
    assert (report.total, report.intermediates, report.constants, report.leaves) == (
        280,
        160,
        120,
        0,
    )
    assert shares(report.by_operation) == {"TanhBackward": 160, "MatmulBackward": 120}
    assert [(k.nbytes, k.kind, k.shape, k.operations) for k in report.memories] == [
        (160, "intermediate", (5, 4), ("TanhBackward", "MultiplyBackward", "MultiplyBackward")),
        (120, "constant", (5, 3), ("MatmulBackward",)),
    ]
    assert report.leaf_bytes == 96
    loss.backward()  # looking has changed nothing
    assert w.grad is not None


def test_leaves_are_told_apart_and_named(xp: Any) -> None:
    w = xp.ones((4, 4), dtype=xp.float64, requires_grad=True)
    report = memory_report(xp.sum(xp.sin(w) * w), {"net": {"w": w}})
    assert (report.leaves, report.intermediates, report.leaf_bytes) == (128, 128, 128)
    assert next(k for k in report.memories if k.kind == "leaf").param == "net.w"


def test_views_of_one_memory(backend: str) -> None:
    xp = mg.namespace(backend)
    w = xp.ones((6, 6), dtype=xp.float64, requires_grad=True)
    h = xp.exp(w)  # 288 bytes
    loss = xp.sum(h[:3, :] * h[3:, :]) + xp.sum(xp.matrix_transpose(h) * h)
    report = memory_report(loss)
    # whose arrays are all memories of their own: two halves and the transpose besides
    if backend == "jax":
        assert report.intermediates == 288 + 144 + 144 + 288
    else:
        assert report.intermediates == 288 and len(report.memories) == 1


def test_a_part_keeps_all_of_its_memory() -> None:
    h = np.ones(1000)
    w = mg.asarray([2.0], requires_grad=True)
    report = memory_report(w * mg.asarray(h[:1]))
    assert report.constants == 8000 and report.memories[0].shape == (1,)


def test_by_line(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    with record_lines():
        line = sys._getframe().f_lineno + 1
        h = xp.exp(w)
        y = xp.tanh(h)
    report = memory_report(xp.sum(y))
    assert shares(report.by_line) == {f"{__file__}:{line}": 80, f"{__file__}:{line + 1}": 80}
    assert {k.site.line for k in report.memories if k.site} == {line, line + 1}
    unknown = memory_report(xp.sum(xp.exp(w)))
    assert next(iter(shares(unknown.by_line))).startswith(
        "not recorded (run the forward pass within autograd.graph.record_lines())"
    )


def test_index_arrays_and_masks_are_constants(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    mask = w.detach() > 2.0
    report = memory_report(xp.sum(xp.where(mask, w, 0.0)))
    assert (report.constants, report.intermediates) == (10, 0)
    index = xp.asarray([0, 1, 2], dtype=xp.int64)
    assert memory_report(xp.sum(xp.take(w, index))).constants == 24
    assert memory_report(xp.sum(w[index])).constants == 24


def test_what_a_checkpoint_keeps(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    hidden = xp.exp(w)  # keeps its result
    mask = xp.asarray([True] * 10)

    def segment(t: Any, m: Any) -> Any:
        return xp.sum(xp.where(m, xp.sin(xp.cos(t * t)), 0.0))

    report = memory_report(mg.func.checkpoint(segment)(hidden, mask))
    assert (report.intermediates, report.constants, report.leaves, report.packed) == (80, 10, 0, 0)
    assert {k.name for k in report.memories} == {"ans", "argument of a checkpoint"}
    alone = memory_report(mg.func.checkpoint(segment)(w + 1.0, mask))
    assert (alone.intermediates, alone.constants) == (80, 10), (
        "what it was given is kept for it alone"
    )
    (argument,) = [k for k in alone.memories if k.kind == "intermediate"]
    assert (argument.name, argument.shape, argument.dtype) == (
        "argument of a checkpoint",
        (10,),
        "float64",
    )


def test_what_nested_checkpoints_keep(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    inner = mg.func.checkpoint(lambda t: xp.sum(xp.sin(t)))
    y = mg.func.checkpoint(lambda t: inner(xp.exp(t * t)))(w + 1.0)
    report = memory_report(y)
    assert (report.intermediates, report.packed) == (80, 0), "the argument of the outer one alone"
    outside = mg.func.checkpoint(lambda: xp.sum(xp.exp(w)))()
    assert memory_report(outside).packed == 1, "without arguments it is not told what it keeps"


def test_what_hooks_and_checkpoint_keep(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    opened = []
    with saved_tensors_hooks(lambda t: "elsewhere", opened.append):
        y = xp.sin(xp.exp(w))
    report = memory_report(y)
    assert report.packed == 2 and report.total == 0 and not opened
    assert "2 arrays held by saved-tensor hooks or by checkpoint, not counted" in str(report)
    z = mg.func.checkpoint(lambda t: xp.sum(xp.sin(xp.exp(t))))(w)
    report = memory_report(z)
    assert (report.intermediates, report.leaves, report.packed) == (0, 80, 0)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = xp.exp(w)
    assert memory_report(y).intermediates == 80


def test_a_function_of_the_users_own(xp: Any) -> None:
    class Cube(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            square = x * x
            ctx.save_for_backward(x, square)
            return square * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[1]

    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    report = memory_report(Cube.apply(w), {"w": w})
    assert shares(report.by_operation) == {"CubeBackward": 160}
    assert report.leaves == 80


def test_a_freed_graph_keeps_nothing(xp: Any) -> None:
    w = xp.ones(10, dtype=xp.float64, requires_grad=True)
    y = xp.sum(xp.exp(w))
    y.backward()
    report = memory_report(y)
    assert (
        report.total == 0
        and report.freed == 1
        and "1 operation freed by a backward pass" in str(report)
    )


def test_tangents_are_counted() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = mg.sum(mg.exp(x))
        seen.append(memory_report(y))
        return y

    mg.func.jvp(mg.func.grad(f), (np.ones(10),), (np.ones(10),))
    assert seen[0].intermediates == 160  # the result of exp, a Dual: its primal and its tangent


def test_under_a_compiler() -> None:
    jax = pytest.importorskip("jax")
    seen: list[Any] = []

    def f(x: Any) -> Any:
        t = mg.asarray(x, requires_grad=True)
        y = mg.sum(mg.sin(t) * t)
        seen.extend((memory_report(y), draw(y)))
        y.backward()
        return t.grad.array

    jax.jit(f)(jax.numpy.ones(3))
    # of what is being compiled, by shape and dtype
    assert (seen[0].leaves, seen[0].intermediates) == (24, 24) and len(seen[1].boxes) == 5


# Checkpointing


def test_the_estimate_for_a_chain() -> None:
    w = mg.asarray(np.full(100, 0.5), requires_grad=True)
    y = w
    for _ in range(100):
        y = mg.exp(-y)  # 200 operations, of which every second one keeps its result, 800 bytes
    c = memory_report(y).checkpointing
    assert c.segments == 15 and c.now == 100 * 800
    # 15 segments of 6 or 7 results; 14 results of 800 bytes pass from one to the next
    assert c.between == 14 * 800 and c.largest == 7 * 800
    assert c.kept == c.between + c.largest and c.saved == c.now - c.kept


def test_nothing_to_save() -> None:
    c = memory_report(mg.asarray([1.0], requires_grad=True)).checkpointing
    assert (c.segments, c.now, c.kept, c.saved) == (1, 0, 0, 0)


# The whole


def test_the_table() -> None:
    w = mg.asarray(np.ones((64, 64)), requires_grad=True)
    x = mg.asarray(np.ones((100, 64)))
    with record_lines(), label("layer"):
        line = sys._getframe().f_lineno + 1
        loss = mg.sum(mg.tanh(x @ w) ** 2.0)
    text = str(memory_report(loss, {"w": w})).splitlines()
    assert text[0] == "Kept for the backward pass: 100 KiB in 3 arrays, by 4 operations"
    assert any(part.split() == ["TanhBackward", "50", "KiB", "1", "1"] for part in text)
    assert any(
        part.startswith("(100, 64) float64") and f"MatmulBackward at {HERE}:{line}" in part
        for part in text
    )
    assert (
        text[-1] == "  segments = ceil(sqrt(operations)); the forward pass runs twice. An estimate."
    )
    assert repr(memory_report(loss)).startswith("<MemoryReport: 100")


def test_errors() -> None:
    with pytest.raises(
        TypeError, match="memory_report takes a Tensor or a sequence of Tensors, not float"
    ):
        memory_report(1.0)
    with pytest.raises(TypeError, match="it holds a str"):
        memory_report(mg.asarray([1.0]), {"w": "x"})


def test_what_a_function_puts_on_its_ctx_is_reported(xp):
    class Keeps(mg.autograd.Function):
        @staticmethod
        def forward(ctx, a, table):
            ctx.save_for_backward(a)
            ctx.table, ctx.both, ctx.number, ctx.shape = table, [a, table], 3, a.shape
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x, table = xp.ones(10, dtype=xp.float64, requires_grad=True), xp.ones(1000, dtype=xp.float64)
    y = Keeps.apply(x, table)
    report = memory_report(y)
    assert (report.leaves, report.constants, report.intermediates) == (80, 8000, 0)
    xp.sum(y).backward()
    assert memory_report(y).constants == 8000  # no pass frees it
