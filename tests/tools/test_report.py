"""The report of a run: one page that stands alone, tells what the profiler saw, and does not get in
the way of the script.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from report_pages import HOSTILE, Page, alone, command, run

from multigrad import cli, observe
from multigrad.autograd import detect_breaks
from multigrad.tools.profiler.recorder import MEMORY_EVENT_NAME
from multigrad.tools.report.run import POINTS, Run, _thinned
from multigrad.tools.report.watch import RunObserver

TRAIN = """import sys
import numpy as np
import multigrad as mg
from multigrad.autograd.profiler import record_function

w = mg.asarray(np.full((20, 30), 0.1), requires_grad=True)
x = mg.asarray(np.ones((1000, 20)))
for step in range(3):
    with record_function(f"step {step}"):
        hidden = mg.tanh(x @ w)
        loss = mg.mean(hidden * hidden)
    loss.backward()
print("done", sys.argv[1:])
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Page]:
    return run(tmp_path_factory.mktemp("report"), TRAIN, "--fast")


def test_the_page_tells_every_event(trained: tuple[Run, Page]) -> None:
    it, page = trained
    events = [e for e in it.profile.function_events if e.name != MEMORY_EVENT_NAME]
    trace = page.data["trace"]
    assert [trace["names"][i] for i in trace["name"]] == [e.name for e in events]
    assert {e.name for e in events} >= {
        "matmul",
        "tanh",
        "mean",
        "MatmulBackward",
        "AccumulateGrad",
        "step 2",
    }
    for i, e in enumerate(events):
        assert trace["start"][i] == round(1000 * e.time_range.start) and trace["duration"][
            i
        ] == round(1000 * e.cpu_time_total)
        assert (trace["scope"][i], trace["sequence"][i]) == (e.scope, e.sequence_nr)
        assert trace["start"][i] + trace["duration"][i] <= page.data["end"]
    tanh = next(i for i, e in enumerate(events) if e.name == "tanh")
    assert trace["texts"][trace["shapes"][tanh]] == "[[1000, 30]]"
    assert (
        "script.py:10" in trace["lines"][trace["line"][tanh]]
        and "hidden = mg.tanh(x @ w)" in trace["lines"][trace["line"][tanh]]
    )
    assert trace["depth"][tanh] == 1 and trace["row"][tanh] == 0  # in its label
    for lane in {(r, d) for r, d in zip(trace["row"], trace["depth"], strict=True)}:
        inside = [i for i in range(len(events)) if (trace["row"][i], trace["depth"][i]) == lane]
        for a, b in pairwise(inside):
            assert trace["start"][a] + trace["duration"][a] <= trace["start"][b] + 1, (
                "nothing is drawn over another"
            )


def test_the_table_is_that_of_the_averages(trained: tuple[Run, Page]) -> None:
    it, page = trained
    averages = {a.key: a for a in it.profile.key_averages()}
    rows = {r[0]: r for r in page.data["averages"]}
    assert rows.keys() == averages.keys() - {MEMORY_EVENT_NAME}
    for name, (_, scope, count, own, total, _) in rows.items():
        a = averages[name]
        assert (scope, count, own, total) == (
            a.scope,
            a.count,
            round(1000 * a.self_cpu_time_total),
            round(1000 * a.cpu_time_total),
        )
    assert rows["matmul"][2] == 3 and rows["matmul"][5] == 3 * 1000 * 30 * 8


def test_memory_and_who_holds_it(trained: tuple[Run, Page]) -> None:
    it, page = trained
    memory = page.data["memory"]
    points = memory["points"]
    assert memory["peak"] == max(([t, n] for t, n, _ in points), key=lambda p: p[1])
    assert memory["peak"][1] == sum(r[0] for r in memory["at_peak"]) and memory["last"] == sum(
        r[0] for r in memory["at_end"]
    )
    assert memory["peak"][1] == max(n for _, n, _ in it.profile.memory_timeline()), (
        "as the profiler counts"
    )
    at_end = {(what, array): (n, line) for n, _, what, array, line in memory["at_end"]}
    # `hidden` is still there when the script has ended
    n, line = at_end["tanh", "(1000, 30) float64"]
    assert n == 1000 * 30 * 8 and line.endswith("script.py:10")
    assert any(
        array == "(20, 30) float64" and what == "MatmulBackward" for what, array in at_end
    ), "the gradient"
    assert all(a[0] <= b[0] for a, b in pairwise(points))


def test_what_the_graph_keeps(trained: tuple[Run, Page]) -> None:
    _, page = trained
    saved = page.data["saved"]
    assert saved["which"].startswith("before pass ") and saved["operations"] == 4
    assert saved["intermediates"] == 1000 * 30 * 8 and saved["constants"] == 1000 * 20 * 8
    assert saved["largest"][0][:4] == [240000, 1, "ans", "(1000, 30) float64"] and saved["largest"][
        0
    ][-1].endswith("script.py:10")
    assert (
        sum(r[0] for r in saved["by_line"])
        == sum(r[0] for r in saved["by_operation"])
        == saved["total"]
    )


def test_the_graph_is_drawn(trained: tuple[Run, Page]) -> None:
    _, page = trained
    assert (
        page.data["graph"].startswith("before pass 3 of 3, ")
        and "script.py:12: 4 operations" in page.data["graph"]
    )
    boxes = [value for tag, name, value in page.attributes if tag == "g" and name == "data-box"]
    told = page.data["picture"]["boxes"]
    assert [str(i) for i in range(len(told))] == boxes and len(boxes) == 6
    # leaves by the names they have in the script
    assert "TanhBackward" in page.text and told[0]["tip"][0] == "w"
    (group,) = page.data["picture"]["groups"]
    assert group["name"] == "step 2" and {told[i]["tip"][0] for i in group["boxes"]} == {
        "w",
        "MatmulBackward",
        "TanhBackward",
        "MultiplyBackward",
        "MeanBackward",
    }


def test_nothing_comes_from_outside(trained: tuple[Run, Page]) -> None:
    alone(trained[0].html)


def test_without_javascript(trained: tuple[Run, Page]) -> None:
    assert '<noscript><p class="note">Tables and charts are drawn by JavaScript' in trained[0].html


def test_the_summary(trained: tuple[Run, Page]) -> None:
    _, page = trained
    summary = dict(page.data["summary"])
    assert summary["command"].endswith("script.py --fast") and summary["exit status"] == "0"
    assert summary["backward"].endswith("3 passes") and page.data["notes"] == []


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "<b>&amp;@DATA@ ]]>.py"
    text = (
        "import numpy as np, multigrad as mg\n"
        "from multigrad.autograd.profiler import record_function\n"
        "from multigrad.autograd import graph\n"
        f"name = {HOSTILE!r}\n"
        "globals()[name] = w = mg.asarray(np.ones(3), requires_grad=True)\n"
        "del w\n"
        "with record_function(name), graph.label(name):\n"
        "    loss = mg.sum(globals()[name] * 2)\n"
        "loss.backward()\n"
    )
    it, page = run(tmp_path, text, HOSTILE, name=name)
    assert HOSTILE in page.data["trace"]["names"] and any(
        HOSTILE in " ".join(b["tip"]) for b in page.data["picture"]["boxes"]
    )
    assert page.scripts == 2 and not any(tag in ("img", "b") for tag, *_ in page.attributes)
    assert (
        name in page.text
        and "<img" not in it.html
        and "</script><script>" not in it.html.replace("</script>\n<script>", "")
    )


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("raise ValueError('broken')", 1),
        ("sys.exit()", 0),
    ],
)
def test_the_exit_status_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: str, status: int
) -> None:
    (tmp_path / "script.py").write_text(f"{TRAIN}{last}\n")
    out = tmp_path / "page.html"
    assert cli.main(["profile", "--output", str(out), str(tmp_path / "script.py")]) == status
    told = capsys.readouterr().err
    assert f"report: {out}" in told and ("broken" in told) == ("broken" in last)
    data = Page(out.read_text()).data
    assert dict(data["summary"])["exit status"] == str(status) and bool(data["notes"]) == bool(
        status
    )
    assert [r for r in data["memory"]["at_end"] if r[2] == "tanh"], (
        "what a script held when it ended is told, however it ended"
    )


def test_a_script_without_multigrad(tmp_path: Path) -> None:
    it, page = run(tmp_path, "print(1 + 1)\n")
    assert not it.stopped and "no operation of multigrad" in page.data["notes"][0]
    assert (
        page.data["trace"]["start"] == [] == page.data["averages"]
        and page.data["saved"] is None
        and page.data["graph"] == ""
    )


def test_a_loss_without_a_pass(tmp_path: Path) -> None:
    text = (
        "import numpy as np, multigrad as mg\n"
        "x = mg.asarray(np.ones(9), requires_grad=True)\n"
        "loss = mg.sum(mg.exp(x))\n"
        "count = mg.asarray(np.ones(2)) + 1\n"
    )
    _, page = run(tmp_path, text)
    assert (
        page.data["graph"].startswith("the last result with a history")
        and "2 operations" in page.data["graph"]
    )
    assert page.data["saved"]["largest"][0][0] == 72


def test_derivatives_of_derivatives_know_their_lines(tmp_path: Path) -> None:
    text = (
        "import numpy as np, multigrad as mg\nx = mg.asarray(np.ones(9), requires_grad=True)\n"
        "(g,) = mg.autograd.grad(mg.sum(x**3), x, create_graph=True)\nmg.sum(g * g).backward()\n"
    )
    _, page = run(tmp_path, text)
    assert page.data["graph"].startswith("before pass 2 of 2")
    lines = {r[2].rpartition(":")[2] for r in page.data["saved"]["by_line"]}
    assert lines <= {"3", "4"}, lines


def test_looking_keeps_no_array(tmp_path: Path) -> None:
    """Not until the collector of cycles comes, either: what a graph held is freed as in the script
    alone.
    """
    text = (
        "import gc, weakref\n"
        "gc.disable()\n"
        f"{TRAIN}x = weakref.ref(hidden.array)\n"
        "del hidden, loss\n"
        "print(x() is None)\n"
        "gc.enable()\n"
    )
    it, page = run(tmp_path, text)
    assert not it.stopped and not [r for r in page.data["memory"]["at_end"] if r[2] == "tanh"]
    assert page.data["memory"]["peak"][1] < 5 * 1000 * 30 * 8


def test_func_grad_is_seen(tmp_path: Path) -> None:
    text = (
        "import numpy as np, multigrad as mg\n"
        "from multigrad import func\n"
        "print(func.grad(lambda x: mg.sum(mg.sin(x)))(np.ones(4)))\n"
    )
    _, page = run(tmp_path, text)
    assert (
        page.data["graph"].startswith("before pass 1 of 1") and "2 operations" in page.data["graph"]
    )


def test_jax(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    text = (
        "import jax.numpy as jnp, multigrad as mg\n"
        "w = mg.asarray(jnp.ones((4, 5)), requires_grad=True)\n"
        "mg.sum(mg.asarray(jnp.ones((3, 4))) @ w).backward()\n"
    )
    _, page = run(tmp_path, text)
    assert {"matmul", "MatmulBackward"} <= set(page.data["trace"]["names"]) and page.data["memory"][
        "peak"
    ][1] > 0
    assert (
        "may compute after the call has returned" in page.data["notes"][-1]
        and "2 operations" in page.data["graph"]
    )


def test_nothing_stays_behind(tmp_path: Path) -> None:
    run(tmp_path, f"{TRAIN}raise KeyboardInterrupt\n")
    assert observe.gate.get() is True


@pytest.mark.parametrize("first", [True, False])
def test_a_tool_that_the_script_does_not_leave_leaves_nothing_behind(first: bool) -> None:
    observer, breaks = RunObserver(), detect_breaks()
    for enter in [observer.__enter__, breaks.__enter__][:: 1 if first else -1]:
        enter()
    for leave in [observer.close, lambda: breaks.__exit__(None, None, None)][:: 1 if first else -1]:
        leave()
    assert observe.gate.get() is True


def test_a_graph_that_cannot_be_looked_at_does_not_stop_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("not today")

    monkeypatch.setattr("multigrad.tools.report.watch.collect", refuse)
    it, page = run(tmp_path, TRAIN)
    assert not it.stopped and "RuntimeError: not today" in page.data["graph"]


def test_graphs_are_not_looked_at_where_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multigrad.tools.report.watch.GRACE", -(10**15))
    _, page = run(tmp_path, TRAIN)
    assert page.data["saved"] is None and page.data["graph"] == ""
    assert dict(page.data["summary"])["backward"].endswith("3 passes")


def test_many_events(tmp_path: Path) -> None:
    text = (
        "import numpy as np, multigrad as mg\n"
        "x = mg.asarray(np.ones(3), requires_grad=True)\n"
        "for _ in range(10):\n"
        "    y = x\n"
        "    for _ in range(100):\n"
        "        y = y * 1.5\n"
        "    mg.sum(y).backward()\n"
    )
    it, page = run(tmp_path, text)
    assert len(page.data["trace"]["start"]) >= 2000
    assert len(it.html) < 300_000


def test_long_lines_of_memory_are_thinned_around_their_extremes() -> None:
    line = [(t, t % 7 + (1000 if t == 31_234 else 0), 0) for t in range(100_000)]
    thin = _thinned(line)
    assert (
        len(thin) <= POINTS + 3
        and (31_234, 31_234 % 7 + 1000, 0) in thin
        and thin[-1] == line[-1]
        and thin == sorted(thin)
    )


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import os\nos.chdir('/')\n{TRAIN}sys.exit(3)\n")
    found = command(tmp_path, "profile", "train.py", "--output", "of the script")
    assert found.returncode == 3 and found.stdout == "done ['--output', 'of the script']\n", (
        found.stderr
    )
    page = Page((tmp_path / "multigrad-profile.html").read_text())
    assert page.data["notes"] == [
        "The script ended with exit status 3; the page tells what ran until then."
    ]
    assert dict(page.data["summary"])["command"] == "train.py --output 'of the script'"


def test_wrong_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", "/no/such/script.py"]) == 2
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('must not run')\n")
    assert cli.main(["profile", "--output", str(tmp_path / "no" / "page.html"), str(script)]) == 2
    assert cli.main(["profile", "--output", str(tmp_path), str(script)]) == 2
    told = capsys.readouterr().err
    assert "no such file: /no/such/script.py" in told and "must not run" not in told
