"""What the profiler writes: traces in the trace event format, and the forms of its tables.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
Required are a name, `ph`, `pid` and `tid`; of all but metadata `ts`; of complete events `dur`; of
flows `id`, and that each begins and ends inside of a call.
"""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
from leaves import ones
from profiler_events import exported, leaf, rows

import multigrad as mg
from multigrad.autograd.profiler import profile, record_function
from multigrad.autograd.profiler_util import EventList, FunctionEvent
from multigrad.tools.profiler import table


def calls_of(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


def check(trace):
    """All that the format asks for.

    Returns the pairs of calls that arrows go between, by their names.
    """
    events = trace["traceEvents"]
    named = set()
    for e in events:
        assert (
            isinstance(e["name"], str) and isinstance(e["pid"], int) and isinstance(e["tid"], int)
        )
        assert e["ph"] in "XMsfC"
        if e["ph"] == "M":
            named |= {e["tid"]} if e["name"] == "thread_name" else set()
            assert isinstance(e["args"], dict)
            continue
        assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0
        if e["ph"] == "X":
            assert e["dur"] >= 0 and isinstance(e["cat"], str) and isinstance(e["args"], dict)
        if e["ph"] == "C":
            assert all(isinstance(v, int) for v in e["args"].values())
    row = rows(trace)
    assert set(row) <= named
    starts, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
    assert set(starts) == set(ends)
    assert len(starts) == sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events)
    pairs = []
    for number, start in starts.items():
        end = ends[number]
        assert (
            (start["cat"], start["name"]) == (end["cat"], end["name"])
            and end["bp"] == "e"
            and start["ts"] <= end["ts"]
        )
        pairs.append(
            tuple(
                next(c["name"] for c in row[e["tid"]] if c["ts"] == e["ts"]) for e in (start, end)
            )
        )
    return sorted(pairs)


def test_a_trace(backend, tmp_path):  # F214
    x = leaf(backend, 1.0, 2.0)
    with profile(record_shapes=True, with_stack=True, profile_memory=True, with_flops=True) as prof:
        with record_function("forward"):
            y = mg.sum(x * x)
        y.backward()
    trace = exported(prof, tmp_path, metadata={"run": 7})
    assert check(trace) == [("multiply", "MultiplyBackward"), ("sum", "SumBackward")]
    assert trace["run"] == 7 and trace["schemaVersion"] == 1 and trace["displayTimeUnit"] == "ms"
    assert {"deviceProperties", "trace_id", "library_name", "traceName"} <= set(trace)
    calls = {e["name"]: e for e in calls_of(trace)}
    assert calls["forward"]["cat"] == "user_annotation" and calls["multiply"]["cat"] == "cpu_op"
    arguments = calls["multiply"]["args"]
    assert (
        arguments["Input Dims"] == [[2], [2]]
        and arguments["Flops"] == 2
        and arguments["Bytes"] == 16
    )
    assert "test_a_trace" in arguments["Call stack"]
    assert arguments["Sequence number"] == calls["MultiplyBackward"]["args"]["Sequence number"]
    assert calls["MultiplyBackward"]["args"]["Fwd thread id"] == threading.get_ident()
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    assert counters and counters[0]["args"] == {"library bytes": 16, "device bytes": 0}


def test_arrows_of_a_graph_that_is_used_twice(tmp_path):
    x = leaf("numpy", 1.0)
    with profile() as prof:
        y = x * 2
        y.backward(retain_graph=True)
        y.backward()
    assert check(exported(prof, tmp_path)) == [("multiply", "MultiplyBackward")] * 2


def test_arrows_of_a_second_derivative(tmp_path):
    x = leaf("numpy", 2.0)
    with profile() as prof:
        (g,) = mg.autograd.grad(mg.exp(x * x), x, create_graph=True)
        g.backward()
    pairs = check(exported(prof, tmp_path))
    assert ("exp", "ExpBackward") in pairs and pairs.count(("multiply", "MultiplyBackward")) >= 3


def test_tasks_have_rows_of_their_own(tmp_path):
    x = leaf("numpy", 1.0)

    async def task(n):
        with record_function(f"task {n}"):
            y = x * n
            await asyncio.sleep(0.001)
            (y + n).backward()

    async def main():
        await asyncio.gather(*(task(n) for n in range(3)))

    with profile() as prof:
        asyncio.run(main())
    trace = exported(prof, tmp_path)
    assert len(check(trace)) == 6
    found = [{e["name"] for e in row} for row in rows(trace).values()]
    assert len(found) == 3
    assert all({"multiply", "add", "AddBackward"} <= names for names in found)


# Tables


def events(*rows, **options):
    """Events by name, start, end, and the index of the parent."""
    made = []
    for i, (name, start, end, parent) in enumerate(rows):
        made.append(FunctionEvent(i, name, 0, start, end))
        if parent is not None:
            made[parent].append_cpu_child(made[i])
            made[i].set_cpu_parent(made[parent])
    found = EventList(made, **options)
    found._tree_built = True
    return found


def cells(table, name):
    row = next(line for line in table.splitlines() if line.split()[:1] == [name])
    return row.split()


def test_numbers_of_the_table():  # F218, F223
    found = events(("f", 0, 3000, None), ("g", 0, 1000, 0), ("h", 5000, 2005000, None))
    table = found.table()
    assert cells(table, "f") == ["f", "0.10%", "2.000ms", "0.15%", "3.000ms", "3.000ms", "1"]
    assert cells(table, "h")[3:6] == ["99.85%", "2.000s", "2.000s"]
    assert table.splitlines()[-1] == "Self CPU time total: 2.003s"
    assert cells(found.table(time_unit="us"), "f")[2] == "2000.000us"
    assert cells(events(("f", 0, 0, None)).table(), "f")[1] == "NaN"


def test_units():
    assert [table.format_memory(n) for n in (24, 2048, -3 << 20, 5 << 30)] == [
        "24 B",
        "2.00 KB",
        "-3.00 MB",
        "5.00 GB",
    ]
    assert [table.format_time(us) for us in (12.3, 1234.0, 1234567.0)] == [
        "12.300us",
        "1.234ms",
        "1.235s",
    ]
    assert table.format_share(1, 3) == "33.33%" and table.format_share(0, 0) == "NaN"


@pytest.mark.parametrize(
    ("flops", "title", "text"),
    [
        (1, "Total FLOPs", "1.000"),
        (2500, "Total KFLOPs", "2.500"),
        (3 * 10**9, "Total GFLOPs", "3.000"),
    ],
)
def test_units_of_flops(flops, title, text):  # F207
    found = events(("f", 0, 1, None), ("g", 1, 2, None), with_flops=True)
    found[0].flops = flops
    table = found.table()
    assert title in table and cells(table, "f")[-1] == text and cells(table, "g")[-1] == "--"
    found[0].flops = 0
    assert "FLOPs" not in found.table()


def test_limits():  # F218
    found = events(*((f"f{i}", i, i + 1, None) for i in range(120)))
    lines = len(found.table(row_limit=0).splitlines())
    assert (
        len(found.table().splitlines()) - lines == 100
        and len(found.table(row_limit=-1).splitlines()) - lines == 120
    )
    found = events(("f", 0, 1, None))
    found[0].input_shapes = [[i] for i in range(60)]
    assert max(map(len, found.table().splitlines())) < max(
        map(len, found.table(max_shapes_column_width=None).splitlines())
    )


NAME = "a\"<&>'\\\n\x00\x1b\ud800é</script>"


def test_nothing_ran(tmp_path):
    with profile() as prof:
        pass
    assert rows(exported(prof, tmp_path)) == {}
    EventList([]).export_chrome_trace(tmp_path / "list.json")
    assert [e["ph"] for e in json.loads((tmp_path / "list.json").read_text())] == ["M"]


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
