"""Where the time of a run went, as the report tells it: parts that add up, lines, the flame
graph.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_pages import Page, run

from multigrad.tools.profiler import BACKWARD, FORWARD, USER
from multigrad.tools.profiler.event import FunctionEvent
from multigrad.tools.profiler.events import EventList
from multigrad.tools.report.run import Run
from multigrad.tools.report.times import annotated, by_line, flame, totals

SCRIPT = """import time
import numpy as np, multigrad as mg
from multigrad.autograd.profiler import record_function
def slow(x):
    return mg.tanh(x)
w = mg.asarray(np.ones((300, 400)), requires_grad=True)
w.register_hook(lambda g: time.sleep(0.05))
for step in range(2):
    with record_function("step"):
        loss = mg.sum(slow(w) * slow(w))
        time.sleep(0.1)
    loss.backward()
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Page]:
    return run(tmp_path_factory.mktemp("times"), SCRIPT)


def test_the_parts_add_up_to_the_run(trained: tuple[Run, Page]) -> None:
    _, page = trained
    parts = page.data["totals"]
    assert sum(parts[p] for p in ("forward", "backward", "python", "recording")) == page.data["end"]
    assert parts["elsewhere"] == 0 and all(
        parts[p] > 0 for p in ("forward", "backward", "python", "recording")
    )
    assert parts["python"] >= 200_000_000, "sleeping within a label is the script's own"
    assert parts["backward"] >= 100_000_000, "so is a hook the pass's"
    summary = dict(page.data["summary"])
    assert {"run", "without recording, about", "forward", "backward"} <= summary.keys()


def event(
    name: str,
    start: float,
    end: float,
    scope: int = FORWARD,
    cost: tuple[float, float] = (0.0, 0.0),
    thread: int = 1,
    number: int = -1,
    stack: tuple[str, ...] = (),
) -> FunctionEvent:
    e = FunctionEvent(
        0, name, thread, start, end, scope=scope, sequence_nr=number, stack=list(stack)
    )
    e._cost = cost
    return e


def built(*events: FunctionEvent) -> EventList:
    found = EventList(events)
    found._build_tree()
    return found


def observer(passes: Any = (), looks: Any = ()) -> Any:
    return SimpleNamespace(pass_times=passes, looks=looks, start=0, thread=1)


def test_each_moment_counts_for_the_innermost_call() -> None:
    """A label from 0 to 90 µs; an operation, 10 to 30, noted from 5 to 35, with another one inside,
    15 to 20, noted from 14 to 22; a pass from 40 to 80 with a look at its graph, 40 to 50, and a
    node, 60 to 70, noted from 58 to 71, in which an operation runs, 62 to 64.
    """
    events = built(
        event("label", 0, 90, USER),
        event("outer", 10, 30, cost=(5, 5)),
        event("inner", 15, 20, cost=(1, 2)),
        event("node", 60, 70, BACKWARD, cost=(2, 1)),
        event("inside", 62, 64),
        event("other", 1, 4, thread=2),
    )
    found = totals(events, observer([(40_000, 80_000, 1)], [(40_000, 50_000, 1)]), 100_000)
    assert found == {
        "forward": 17_000,
        "backward": 27_000,
        "recording": 26_000,
        "python": 30_000,
        "elsewhere": 3_000,
    }
    own = {e.name: e.self_cpu_time_total for e in events}
    assert own["outer"] == 20 - 8 and own["inner"] == 5 and own["node"] == 8, (
        "noting what is inside is not of what is around it"
    )


def test_a_pass_within_an_operation_is_backward() -> None:
    events = built(event("function", 0, 50))
    found = totals(events, observer([(10_000, 30_000, 1)]), 60_000)
    assert found == {
        "forward": 30_000,
        "backward": 20_000,
        "recording": 0,
        "python": 10_000,
        "elsewhere": 0,
    }


def test_calls_on_other_threads_stand_beside_the_run(tmp_path: Path) -> None:
    text = (
        "import contextvars, threading, numpy as np, multigrad as mg\n"
        "t = threading.Thread(target=contextvars.copy_context().run, args=(lambda: "
        "mg.sum(mg.asarray(np.ones(9))),))\n"
        "t.start()\n"
        "t.join()\n"
    )
    _, page = run(tmp_path, text)
    parts = page.data["totals"]
    assert parts["elsewhere"] > 0 == parts["forward"]
    assert parts["python"] + parts["recording"] == page.data["end"]
    assert threading.active_count() >= 1


def test_time_by_line_with_its_source(trained: tuple[Run, Page]) -> None:
    it, page = trained
    lines = {r[0].rpartition("script.py:")[2]: r[1:] for r in page.data["lines"]}
    assert lines.keys() == {"5", "10"}
    assert lines["5"][2] == 4 and lines["10"][2] == 4, (
        "four calls of tanh; a product and a sum a step"
    )
    assert all(forward > 0 and backward > 0 for forward, backward, _ in lines.values())
    (source,) = page.data["source"]
    assert (
        source["file"].endswith("script.py")
        and [r[1] for r in source["rows"]] == SCRIPT.splitlines()
    )
    timed = {str(r[0]): r[2:] for r in source["rows"] if any(r[2:])}
    assert timed == lines
    own = sum(
        round(1000 * e.self_cpu_time_total)
        for e in it.profile.function_events
        if e.scope != USER and e.stack
    )
    assert sum(r[0] + r[1] for r in lines.values()) == own


def test_of_a_long_file_what_lies_around_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("\n".join(f"line {i}" for i in range(1, 1001)))
    (shown,) = annotated([(str(path), 500, [3, 4, 1]), (str(path), 504, [1, 0, 1])])
    rows = shown["rows"]
    assert (
        rows[0] == [] == rows[-1]
        and rows[1][:2] == [494, "line 494"]
        and rows[-2][0] == 510
        and len(rows) == 19
    )
    assert [500, "line 500", 3, 4, 1] in rows
    (gone,) = annotated([("<gone>", 7, [1, 2, 3])])
    assert gone["rows"] == [[], [7, "", 1, 2, 3]]


def test_the_flame_graph_gathers_calls_by_their_lines() -> None:
    a, b, end = "f.py(1): main", "f.py(5): f", "g.py(9): g"
    events = built(
        event("sin", 0, 4, number=1, stack=(b, a)),
        event("sin", 5, 7, number=2, stack=(b, a)),
        event("outer", 10, 20, stack=(end, a)),
        event("inner", 12, 15, stack=(end, a)),
        event("SinBackward", 30, 33, BACKWARD, number=1, stack=(a,)),
    )
    boxes = [tuple(row) for row in flame(events)]
    assert boxes == [
        (0, 0, 19_000, 0, USER, "all calls"),
        (1, 0, 10_000, 0, USER, "g (g.py:9)"),
        (2, 0, 10_000, 7_000, FORWARD, "outer"),
        (3, 0, 3_000, 3_000, FORWARD, "inner"),
        (1, 10_000, 9_000, 0, USER, "f (f.py:5)"),
        (2, 10_000, 6_000, 6_000, FORWARD, "sin"),
        (2, 16_000, 3_000, 3_000, BACKWARD, "SinBackward"),
    ]
    assert by_line(events) == [("g.py", 9, [10_000, 0, 2]), ("f.py", 5, [6_000, 3_000, 2])]


def test_the_flame_graph_of_a_run(trained: tuple[Run, Page]) -> None:
    _, page = trained
    boxes = page.data["flame"]
    assert {"tanh", "TanhBackward", "slow (" in " ".join(b[5] for b in boxes) and "tanh"} <= {
        b[5] for b in boxes
    }
    for depth, start, total, own, _, _ in boxes:
        inside = [
            b for b in boxes if b[0] == depth + 1 and start <= b[1] and b[1] + b[2] <= start + total
        ]
        assert sum(b[2] for b in inside) + own <= total
    assert boxes[0][5] == "all calls" and boxes[0][2] <= page.data["end"]


def test_deep_programs(tmp_path: Path) -> None:
    text = (
        "import numpy as np, multigrad as mg\n"
        "x = mg.asarray(np.ones(3), requires_grad=True)\n"
        "def down(n):\n"
        "    return mg.sum(x) if n == 0 else down(n - 1)\n"
        "down(700).backward()\n"
        "mg.sum(x)\n"
    )
    _, page = run(tmp_path, text)
    assert max(b[0] for b in page.data["flame"]) >= 700


def test_every_colour_of_the_page_is_defined(trained: tuple[Run, Page]) -> None:
    html = trained[0].html
    used = set(re.findall(r"(?:var\(--|inked\(\")([a-z-]+)[\")]", html))
    assert used <= set(re.findall(r"--([a-z-]+):", html)) and {"text", "peak", "fill"} <= used
