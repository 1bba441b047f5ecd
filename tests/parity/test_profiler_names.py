"""The profiler: one program on each backend and in PyTorch.

See tools/test_profiler.py and its neighbours for what only we have.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re

import pytest

import multigrad as mg

TORCH = {
    "pow": "aten::pow",
    "sum": "aten::sum",
    "matmul": "aten::mm",
    "multiply": "aten::mul",
    "divide": "aten::div",
    "PowBackward": "PowBackward0",
    "SumBackward": "SumBackward0",
    "AccumulateGrad": "torch::autograd::AccumulateGrad",
}


def profiler(side):
    return side.autograd.profiler


def name_in(side, name):
    return TORCH[name] if side.name == "torch" else name


def named(side, events, name):
    """The events, or the averages, of an operation of ours."""
    return [e for e in events if e.key == name_in(side, name)]


def one(side, events, name):
    found = named(side, events, name)
    assert found, name
    return found[0]


def example(side, times=1, size=3, **options):
    x = side.tensor([float(i + 1) for i in range(size)], requires_grad=True)
    with profiler(side).profile(**options) as prof:
        for _ in range(times):
            side.xp.sum(x**2).backward()
    return prof


def test_arguments_and_defaults(torch):  # F200
    """Those of PyTorch, in its order."""
    theirs, ours = torch.autograd.profiler, mg.autograd.profiler
    for name in ("profile", "record_function", "emit_nvtx", "load_nvprof", "parse_nvprof_trace"):
        wanted, found = (
            inspect.signature(getattr(module, name)).parameters for module in (theirs, ours)
        )
        assert [(p.name, p.kind, p.default) for p in found.values()] == [
            (p.name, p.kind, p.default) for p in wanted.values()
        ], name
    methods = ("table", "export_chrome_trace", "export_stacks", "key_averages", "total_average")
    for cls in ("profile", "EventList"):
        for name in methods:
            wanted, found = (
                inspect.signature(getattr(getattr(module, cls), name)).parameters
                for module in (theirs, ours)
            )
            assert [(p.name, p.default) for p in found.values()] == [
                (p.name, p.default) for p in wanted.values()
            ], (cls, name)


def test_members_of_events(torch):
    """Every public attribute of PyTorch's events, but those of Kineto."""
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.profile() as theirs:
        (x * x).sum()
    y = mg.tensor([1.0, 1.0], requires_grad=True)
    with mg.autograd.profiler.profile() as ours:
        (y * y).sum()
    kineto = {
        "activity_type",
        "event_metadata",
        "external_id",
        "flow_id",
        "flow_start",
        "flow_type",
        "is_python_function",
        "metadata_json",
        "linked_correlation_id",
        "python_id",
        "python_module_id",
        "python_parent_id",
        "structured_input_strides",
        "self_cpu_percent",
        "total_cpu_percent",
        "total_device_percent",
    }
    for found, wanted in (
        (ours.function_events[0], theirs.function_events[0]),
        (ours.key_averages()[0], theirs.key_averages()[0]),
    ):
        missing = {n for n in dir(wanted) if not n.startswith("_")} - set(dir(found))
        assert missing <= kineto


@pytest.mark.parametrize("module", ["profiler", "profiler_util"])
def test_modules(side, module):  # F201
    found = importlib.import_module(
        f"{'torch' if side.name == 'torch' else 'multigrad'}.autograd.{module}"
    )
    assert inspect.ismodule(found) and getattr(side.autograd, module) is found
    assert {"profile", "emit_nvtx"} <= set(dir(profiler(side)))


def test_what_ran_is_recorded(side):  # F202, F234
    prof = example(side)
    assert prof.self_cpu_time_total > 0
    for name in ("pow", "sum", "SumBackward", "PowBackward", "AccumulateGrad"):
        event = one(side, prof.function_events, name)
        assert event.count == 1 and 0 <= event.time_range.start <= event.time_range.end
        assert event.cpu_time_total == event.time_range.elapsed_us() >= event.self_cpu_time_total


def test_what_records_nothing_is_an_event_as_well(side):  # F202
    x = side.tensor([1.0, 2.0], requires_grad=True)
    with profiler(side).profile() as prof:
        with side.no_grad():
            side.xp.sum(x**2)
        side.xp.sum(side.tensor([1.0]))
    assert one(side, prof.function_events, "pow").sequence_nr == -1
    found = [
        e.sequence_nr for e in named(side, prof.function_events, "sum") if e.cpu_parent is None
    ]
    # with the mode on PyTorch tells what the number would have been
    assert len(found) == 2 and (side.name == "torch" or found == [-1, -1])


def test_disabled(side):  # F204
    """PyTorch gives None where it should give the profiler."""
    with profiler(side).profile(enabled=False) as prof:
        side.xp.sum(side.tensor([1.0]))
    if side.name == "torch":
        assert prof is None
    else:
        assert (
            prof.table() == ""
            and prof.key_averages() == []
            and prof.function_events == []
            and prof.self_cpu_time_total == 0
        )
        assert prof.total_average().key == "Total"


def test_devices_that_are_not_there(side):  # F205
    with (
        pytest.warns(
            UserWarning, match="CUDA is not available, disabling CUDA profiling"
        ) as caught,
        pytest.warns(FutureWarning, match="please use ``use_device = 'cuda'`` instead"),
    ):
        prof = profiler(side).profile(use_cuda=True)
    assert prof.use_device is None and not prof.use_cuda and len(caught) == 1
    with pytest.warns(UserWarning, match="The nonesuch is not a valid device option."):
        assert profiler(side).profile(use_device="nonesuch").use_device is None


def test_shapes(side):  # F206
    prof = example(side, record_shapes=True)
    assert one(side, prof.function_events, "pow").input_shapes == [[3], []]
    assert one(side, prof.function_events, "sum").input_shapes[0] == [3]
    assert one(side, prof.function_events, "PowBackward").input_shapes == [[3]]
    assert not any(e.input_shapes for e in example(side).function_events)


def test_flops(side):  # F207
    a, b = side.tensor([[1.0] * 5] * 2, requires_grad=True), side.tensor([[1.0] * 7] * 5)
    with profiler(side).profile(with_flops=True) as prof:
        side.xp.matmul(a, b)
    assert one(side, prof.function_events, "matmul").flops == 2 * 2 * 5 * 7
    assert "Total FLOPs" in prof.key_averages().table()
    assert prof.record_shapes


def test_memory(side):  # F208
    x = side.tensor([1.0] * 100, requires_grad=True)
    with profiler(side).profile(profile_memory=True) as prof:
        y = x * 2
    event = one(side, prof.function_events, "multiply")
    assert (
        event.cpu_memory_usage
        == 800
        == event.self_cpu_memory_usage + sum(e.cpu_memory_usage for e in event.cpu_children)
    )
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage")
    assert re.search(r"CPU Mem\s+Self CPU Mem\s+# of Calls", table) and "800 B" in table
    del y
    assert "CPU Mem" not in example(side).table()


def test_cpu_and_kineto(side):  # F210
    with pytest.raises(
        AssertionError, match=r"Device-only events supported only with Kineto \(use_kineto=True\)"
    ):
        profiler(side).profile(use_cpu=False)
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        profiler(side).profile(use_cpu=False, use_kineto=True)
    assert example(side, use_kineto=True).self_cpu_time_total > 0
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        profiler(side).profile(post_processing_timeout_s=-1.0)


def test_printing(side):  # F211
    prof = example(side)
    assert str(prof) == prof.table() and name_in(side, "pow") in str(prof)
    assert "<FunctionEvent id=" in repr(prof) and "<FunctionEventAvg key=" in repr(
        prof.key_averages()
    )
    assert (
        repr(profiler(side).profile())
        == f"<unfinished {'torch' if side.name == 'torch' else 'multigrad'}.autograd.profile>"
    )


def test_a_hundred_squares(side):  # F212, F213
    prof = example(side, times=10, size=1)
    averages = prof.key_averages()
    for name in ("pow", "PowBackward", "AccumulateGrad"):
        average = one(side, averages, name)
        # PyTorch's rule for pow calls pow
        assert average.count == 10 * (2 if side.name == "torch" and name == "pow" else 1)
        assert average.cpu_time == pytest.approx(average.cpu_time_total / average.count)
    assert name_in(side, "PowBackward") in averages.table(sort_by="self_cpu_time_total")
    assert not any(e.scope == 7 for e in prof.function_events)


def test_chrome_trace(side, tmp_path):  # F214
    prof = example(side)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    calls = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {"pid", "tid", "ts", "dur", "name", "cat", "args"} <= set(calls[0])
    assert name_in(side, "PowBackward") in {e["name"] for e in calls}
    starts, ends = (
        {e["id"] for e in trace["traceEvents"] if e["ph"] == ph and e["cat"] == "fwdbwd"}
        for ph in "sf"
    )
    assert starts == ends and len(starts) == 2
    prof.function_events.export_chrome_trace(str(tmp_path / "list.json"))
    assert isinstance(json.loads((tmp_path / "list.json").read_text()), list)


def test_averages_by_name(side):  # F215
    averages = example(side, times=3).key_averages()
    assert isinstance(averages, profiler(side).EventList)
    assert sum(e.count for e in averages) >= 15
    assert len({e.key for e in averages}) == len(averages)
    assert all(e.input_shapes == "" for e in averages)


def test_averages_by_shape(side):  # F216
    x, y = (
        side.tensor([1.0, 2.0], requires_grad=True),
        side.tensor([1.0, 2.0, 3.0], requires_grad=True),
    )
    with profiler(side).profile(record_shapes=True) as prof:
        for t in (x, y, y):
            t**2
    found = named(side, prof.key_averages(group_by_input_shape=True), "pow")
    assert {str(e.input_shapes): e.count for e in found} == {"[[2], []]": 1, "[[3], []]": 2}
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
    assert one(side, prof.key_averages(), "pow").count == 3


def test_the_total_of_self_times(side):  # F217
    prof = example(side)
    assert isinstance(prof.self_cpu_time_total, float)
    assert prof.self_cpu_time_total == pytest.approx(
        sum(e.self_cpu_time_total for e in prof.function_events)
    )
    assert (
        f"Self CPU time total: {prof.self_cpu_time_total / 1000:.3f}ms"
        in prof.key_averages().table()
        or prof.self_cpu_time_total < 1000
    )


def test_the_form_of_the_table(side):  # F218, F223
    prof = example(side, times=2)
    table = prof.key_averages().table(header="What ran").splitlines()
    width = len(table[0])
    assert table[0] == "=" * width and table[1] == "What ran" and set(table[2]) == {"-", " "}
    assert re.split(r"\s{2,}", table[3].strip()) == [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ]
    # to the right
    assert table[4] == table[2] == table[-2 - (table[-1] == "")] and table[3].index(
        "Name"
    ) + 4 <= table[2].index("  ")
    assert re.fullmatch(
        r"Self CPU time total: [\d.]+(us|ms|s)", next(line for line in reversed(table) if line)
    )
    assert all(re.search(r"\d\.\d{3}(us|ms|s)\s", row) for row in table[5:-3])
    assert (
        len(prof.table(row_limit=2).splitlines()) - len(prof.table(row_limit=1).splitlines()) == 1
    )
    assert profiler(side).profile().table() == ""


def test_long_names_are_cut(side):  # F218
    with profiler(side).profile() as prof, profiler(side).record_function("n" * 80):
        pass
    assert "n" * 52 + "..." in prof.table() and "n" * 53 not in prof.table()
    assert "n" * 17 + "..." in prof.table(max_name_column_width=20)
    assert "n" * 80 in prof.table(max_name_column_width=None)


def test_sorting(side):  # F219
    prof = example(side, times=3)
    for key in (
        "self_cpu_time_total",
        "cpu_time_total",
        "cpu_time",
        "count",
        "cuda_time",
        "cuda_time_total",
        "self_cuda_time_total",
        "cpu_memory_usage",
        "cuda_memory_usage",
        "self_cpu_memory_usage",
        "self_cuda_memory_usage",
    ):
        averages = prof.key_averages()
        rows = averages.table(sort_by=key, max_name_column_width=None).splitlines()[3:-2]
        values = [
            getattr(e, key.replace("cuda", "device"))
            for row in rows
            for e in averages
            if e.key == re.split(r"\s{2,}", row.strip())[0]
        ]
        assert values == sorted(values, reverse=True) and len(values) >= 5
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        prof.table(sort_by="nonesuch")


def test_by_default_in_the_order_of_calls(side):  # F220
    prof = example(side)
    starts = [e.time_range.start for e in prof.function_events]
    assert starts == sorted(starts)
    table = prof.table()
    assert (
        table.index(name_in(side, "pow"))
        < table.index(name_in(side, "sum"))
        < table.index(name_in(side, "PowBackward"))
    )


def test_top_level_only(side):  # F221
    x = side.tensor([1.0, 2.0], requires_grad=True)
    with profiler(side).profile() as prof:
        with profiler(side).record_function("a block"):
            x * 2
        x**2
    table = prof.table(top_level_events_only=True)
    assert "This report only display top-level ops statistics" in table
    assert (
        "a block" in table
        and name_in(side, "pow") in table
        and name_in(side, "multiply") not in table
    )


def test_the_total(side):  # F222
    total = example(side, times=2).total_average()
    assert (
        total.key == "Total"
        and total.count >= 10
        and total.cpu_time_total >= total.self_cpu_time_total > 0
    )


def test_labels(side):  # F224
    x = side.tensor([1.0, 2.0], requires_grad=True)

    @profiler(side).record_function("decorated")
    def twice(t):
        """Doubled."""
        return t * 2

    with profiler(side).profile() as prof:
        y = side.xp.sum(x)
        with profiler(side).record_function("label-z"):
            z = twice(x**2)
        (side.xp.sum(z) + y).backward()
    events = prof.function_events
    (label,), (inner,) = (
        [e for e in events if e.name == name] for name in ("label-z", "decorated")
    )
    assert (
        label.scope == 7
        and label.is_user_annotation
        and label.sequence_nr == -1
        and label.cpu_parent is None
    )
    assert one(side, events, "pow").cpu_parent is label and inner.cpu_parent is label
    assert one(side, events, "multiply").cpu_parent is inner
    assert one(side, events, "sum").cpu_parent is None
    assert label.self_cpu_time_total == pytest.approx(
        label.cpu_time_total - sum(e.cpu_time_total for e in label.cpu_children)
    )
    assert twice.__name__ == "twice" and twice.__doc__ == "Doubled."
    with profiler(side).record_function("outside of any profiler"):
        assert side.values(twice(x)).tolist() == [2, 4]


def test_it_cannot_be_entered_again(side):
    prof = example(side)
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
        pass


def test_numbers_link_operations_and_nodes(side):
    x = side.tensor([1.0, 2.0], requires_grad=True)
    with profiler(side).profile() as prof:
        side.xp.sum(x**2).backward()
    events = prof.function_events
    for forward, backward in (("pow", "PowBackward"), ("sum", "SumBackward")):
        made = [e for e in named(side, events, forward) if e.sequence_nr >= 0]
        (node,) = named(side, events, backward)
        assert made[0].sequence_nr == node.sequence_nr and made[0].scope == 0 and node.scope == 1
        assert node.fwd_thread is not None and node.time_range.start >= made[0].time_range.end


def test_stacks_need_the_flag(side, tmp_path):
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        example(side).export_stacks(str(tmp_path / "stacks"))
    with pytest.raises(ValueError, match="metric should be one of: "):
        example(side, with_stack=True).export_stacks(str(tmp_path / "stacks"), "nonesuch")


def test_a_key_is_seen_once(side):
    unique = profiler(side).EnforceUnique()
    unique.see(1, 2)
    unique.see(2, 1)
    with pytest.raises(RuntimeError, match=r"duplicate key: \(1, 2\)"):
        unique.see(1, 2)


def test_an_event_by_hand(side):
    """What other programs make of events: the classes are PyTorch's."""
    util = importlib.import_module(
        f"{'torch' if side.name == 'torch' else 'multigrad'}.autograd.profiler_util"
    )
    outer, inner = (
        util.FunctionEvent(i, "f", 0, start, end)
        for i, (start, end) in enumerate(((0, 10), (2, 5)))
    )
    outer.append_cpu_child(inner)
    inner.set_cpu_parent(outer)
    assert (outer.cpu_time_total, outer.self_cpu_time_total, inner.self_cpu_time_total) == (
        10,
        7,
        3,
    )
    average = util.FunctionEventAvg()
    average += outer
    average.add(inner)
    assert (
        average.key,
        average.count,
        average.cpu_time_total,
        average.self_cpu_time_total,
        average.cpu_time,
    ) == ("f", 2, 13, 10, 6.5)
    assert (average.cpu_time_str, average.cpu_time_total_str, outer.self_cpu_time_total_str) == (
        "6.500us",
        "13.000us",
        "7.000us",
    )
    inner.append_kernel("k", 0, 4.0)
    assert tuple(inner.kernels[0]) == ("k", 0, 4.0) == util.Kernel("k", 0, 4.0)
    with pytest.raises(AssertionError, match="Expected keys to match, but got g vs f"):
        average.add(util.FunctionEvent(2, "g", 0, 0, 1))
    with pytest.raises(AssertionError):
        average.add(3)
    with pytest.raises(
        AssertionError, match="Expected tree to be built before calling key_averages"
    ):
        util.EventList([outer]).key_averages()
    assert util.Interval(3, 5).elapsed_us() == 2
    assert util.EventList([outer, inner]).self_cpu_time_total == 10
    with pytest.warns(
        FutureWarning,
        match="please use `device_time`|Use `device_time_total`|please use `device_time_total`",
    ):
        assert outer.cuda_time_total == 0
    assert util.StringTable()["_ZN5torch8autograd9GraphRootE"] == "torch::autograd::GraphRoot"
    assert issubclass(util.FunctionEvent, util.FormattedTimesMixin) and issubclass(
        util.FunctionEventAvg, util.FormattedTimesMixin
    )


def test_a_thousand_divisions_and_products(side):  # F267
    """The tutorial's long graph, whose table has a row for each."""
    x, y = side.tensor([[1.0, 2.0]]), side.tensor([[1.0, 2.0]])
    z = side.xp.ones((1, 2), dtype=side.xp.float64, requires_grad=True)
    with profiler(side).profile() as prof:
        for _ in range(1000):
            z = (z / x) * y
    averages = prof.key_averages()
    for name in ("divide", "multiply"):
        assert one(side, averages, name).count == 1000
    assert averages.table(sort_by="self_cpu_time_total").count(" 1000  ") == 2
