"""The tools for seeing, used as nobody should: what they tell stays right, and the program does
what it does without them.
"""

from __future__ import annotations

import contextvars
import inspect
import json
import sqlite3
import threading
import xml.dom.minidom

import array_api_strict
import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd import detect_breaks
from multigrad.autograd.graph import draw, memory_report, print_graph
from multigrad.autograd.profiler import load_nvprof, profile, record_function

NAME = "a\"<&>'\\\n\x00\x1b\ud800é</script>"


@pytest.fixture(params=["numpy", "array_api_strict", "jax"])
def make(request):
    """Arrays of ones that require grad."""
    xp = {"numpy": np, "array_api_strict": array_api_strict}.get(
        request.param
    ) or pytest.importorskip("jax.numpy")
    return lambda *shape: mg.tensor(xp.ones(shape), requires_grad=True)


def ones(*shape):
    return mg.tensor(np.ones(shape), requires_grad=True)


def parents(prof):
    return [(e.name, e.cpu_parent.name if e.cpu_parent else None) for e in prof.function_events]


# The profiler


def test_a_thread_that_goes_on_after_the_end_is_not_recorded():
    x = ones(2)
    begun, go = threading.Event(), threading.Event()

    def run():
        x * x
        begun.set()
        go.wait(10)
        with record_function("late"):
            x + x

    with profile(record_shapes=True) as prof:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
        thread.start()
        begun.wait(10)
    # operations are watched again, and the thread still has the frame of the first one
    with profile() as other:
        go.set()
        thread.join()
    assert [e.name for e in prof.function_events] == ["multiply"]
    assert other.function_events == []


def test_labels_left_in_the_wrong_order():
    x = ones(2)
    with profile() as prof:
        a, b = record_function("a"), record_function("b")
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        x + x
        b.__exit__(None, None, None)
        x - x
    assert parents(prof) == [("a", None), ("b", None), ("add", "b"), ("subtract", None)]


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


def calls():
    xp = ones(1).__array_namespace__()
    x = ones(3)
    return [
        lambda: xp.sin(x, x),
        lambda: xp.sin(),
        lambda: xp.sum(),
        lambda: xp.sum(x, bogus=1),
        lambda: xp.sum(x, axis=9),
        lambda: xp.zeros(),
        lambda: x * "a",
        lambda: mg.Tensor.__mul__(x),
        lambda: mg.Tensor.__mul__(x, x, x),
        lambda: x @ ones(2, 2),
    ]


@pytest.mark.parametrize(
    "watch",
    [profile, lambda: profile(record_shapes=True), detect_breaks],
    ids=["profile", "shapes", "breaks"],
)
@pytest.mark.parametrize("number", range(10))
def test_errors_are_the_same_while_watched(watch, number):
    call = calls()[number]
    with pytest.raises(Exception) as plain:
        call()
    with watch(), pytest.raises(Exception) as watched:
        call()
    assert (type(watched.value), str(watched.value)) == (type(plain.value), str(plain.value))


def test_signatures_are_the_same_while_watched():
    xp = ones(1).__array_namespace__()
    functions = (xp.sum, xp.sin, xp.where, xp.linspace, mg.Tensor.__mul__, mg.Tensor.__getitem__)
    before = [str(inspect.signature(f)) for f in functions]
    with profile():
        assert [str(inspect.signature(f)) for f in functions] == before


def test_flops_are_counted_once(make):
    def total(function):
        with profile(with_flops=True) as prof:
            function()
        return prof.total_average().flops

    a, b = make(2, 3), make(3, 4)
    xp = a.__array_namespace__()
    assert total(lambda: xp.linalg.matmul(a, b)) == total(lambda: a @ b) == 48
    assert total(lambda: xp.sum(a @ b).backward()) == 48 * 3
    loss = lambda: mg.autograd.grad(xp.sum(a @ b), [a, b], create_graph=True)
    assert total(loss) == 48 * 3


def test_lengths_that_are_not_known_count_nothing():
    from multigrad.tools.profiler.flops import count

    for n in (None, float("nan")):
        assert count("add", {}, {}, ((n,),), False) == 0
        assert count("matmul", {}, {"x1": (2, n)}, ((2, 2),), False) == 0


def test_trace_with_strange_names_and_lengths_is_json(tmp_path):
    x = ones(2)
    with profile(record_shapes=True) as prof, record_function(NAME):
        (x * x).sum().backward()
    event = next(e for e in prof.function_events if e.name == "multiply")
    event.input_shapes = [[float("nan"), np.int64(3)], []]
    event.structured_input_shapes = None
    prof.export_chrome_trace(tmp_path / "trace.json")
    refuse = {"parse_constant": lambda text: pytest.fail(f"{text} is no JSON")}
    trace = json.loads((tmp_path / "trace.json").read_text(), **refuse)
    assert trace["baseTimeNanoseconds"] > 1.6e18
    assert NAME in [e["name"] for e in trace["traceEvents"]]
    assert [e["args"]["Input Dims"] for e in trace["traceEvents"] if e["name"] == "multiply"] == [
        [[None, 3], []]
    ]


@pytest.mark.parametrize(
    ("times", "fault"), [((float("inf"), 2), "infinity"), ((1, "z"), "no times")]
)
def test_nvprof_with_times_that_are_none(tmp_path, times, fault):
    path = tmp_path / "trace.prof"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringTable(_id_ INTEGER, value)")
        db.execute("INSERT INTO StringTable VALUES (1, 'a')")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(id, name, timestamp)")
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, ?, ?)",
            [(1, times[0]), (0, times[1])],
        )
    db.close()
    with pytest.raises(ValueError, match=f"damaged trace.*{fault}"):
        load_nvprof(path)


def test_nvprof_with_other_tables_of_any_name(tmp_path):
    path = tmp_path / "trace.prof"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringTable(_id_ INTEGER, value)")
        db.execute("INSERT INTO StringTable VALUES (1, 'a')")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(id, name, timestamp)")
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, ?, ?)", [(1, 1), (0, 2)])
        db.execute('CREATE TABLE "it""s" (x)')
    db.close()
    assert [e.name for e in load_nvprof(path)] == ["a"]


# Graphs


def test_pictures_with_names_of_any_characters(tmp_path, capsys, monkeypatch):
    from multigrad.tools.graphs import drawing

    monkeypatch.setattr(drawing, "rendered", lambda dot, kind: None)
    x = ones(2)
    y = (x * x).sum()
    picture = draw(y, {NAME: x})
    for suffix in ("dot", "svg", "html"):
        assert "\ufffd" in picture.save(tmp_path / f"graph.{suffix}").read_text(encoding="utf-8")
    xml.dom.minidom.parse(str(tmp_path / "graph.svg"))
    print_graph(y, {NAME: x})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    lines[-1].encode()


def test_an_operand_that_is_kept_twice_takes_its_bytes_once(make):
    x = make(100)
    y = x * x
    picture = draw(y.__array_namespace__().sum(y * y))
    assert picture.summary.endswith("1.6 KiB in saved arrays")
    assert [v.nbytes for v in picture.graph.operations] == [800, 800, 0]


def test_what_a_function_puts_on_its_ctx_is_reported(make):
    class Keeps(mg.autograd.Function):
        @staticmethod
        def forward(ctx, a, table):
            ctx.save_for_backward(a)
            ctx.table, ctx.both, ctx.number, ctx.shape = table, [a, table], 3, a.shape
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x, table = make(10), make(1000).detach()
    y = Keeps.apply(x, table)
    report = memory_report(y)
    assert (report.leaves, report.constants, report.intermediates) == (80, 8000, 0)
    y.__array_namespace__().sum(y).backward()
    assert memory_report(y).constants == 8000  # no pass frees it


# Breaks


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
