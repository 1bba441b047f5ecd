"""The pages of a run and of a graph in a browser: they need nothing from outside, show what they
have, and answer the pointer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from browser import Browser, OpenPage
from report_pages import HOSTILE, run

import multigrad as mg
from multigrad.autograd import graph

TRAIN = """
import numpy as np, multigrad as mg
from multigrad.autograd.profiler import record_function
w = mg.asarray(np.ones((20, 20)), requires_grad=True)
for _ in range(30):
    with record_function("step"):
        mg.sum(mg.tanh(w @ w)).backward()
"""

in_browser = pytest.mark.skipif(browser.PROGRAM is None, reason=browser.REASON)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    run(folder, TRAIN)[0].write(folder / "run.html")
    return folder / "run.html"


@pytest.fixture
def report(chromium: Browser, trained: Path) -> OpenPage:
    return OpenPage(chromium, trained)


@pytest.fixture
def picture(chromium: Browser, tmp_path: Path) -> OpenPage:
    w: Any = mg.asarray(np.ones((3, 3)), requires_grad=True)
    y: Any = w
    for name in ("first", "second"):
        with graph.label(name):
            y = mg.tanh(mg.sin(y @ w))
    graph.draw(mg.sum(y), {HOSTILE: w}, path=tmp_path / "graph.html")
    return OpenPage(chromium, tmp_path / "graph.html")


def ink(page: OpenPage, canvas: str) -> int:
    """How many colours a canvas has."""
    found: int = page.value(
        f"(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height)"
        f".data.buffer)).size)(document.querySelector('{canvas}'))"
    )
    return found


@in_browser
def test_a_report_shows_what_it_has(report: OpenPage) -> None:
    shown = {"tanh", "matmul", "sum", "TanhBackward", "MatmulBackward", "SumBackward", "step"}
    names = report.value(
        "[...document.querySelectorAll('#averages td:first-child')].map(e => e.innerText)"
    )
    assert shown <= set(names)
    for part in ("#summary", "#parts", "#lines", "#source", "#stacks", "#holders", "#kept"):
        assert report.text(part).strip(), part
    assert ink(report, "#flame") > 4 and ink(report, "#memory") > 3
    assert report.count("#graph .box") == 5  # one of w, three operations, the output
    report.check()


@in_browser
def test_the_tables_of_a_report_are_sorted_and_filtered(report: OpenPage) -> None:
    first = "document.querySelector('#averages td').innerText"
    report.click("#averages th:first-child")
    assert report.value(first) == min(
        report.value(
            "[...document.querySelectorAll('#averages td:first-child')].map(e => e.innerText)"
        )
    )
    report.click("#averages th:first-child")
    assert report.value(first) == "tanh"
    report.write("#filter", "MATMUL")
    assert report.count("#averages tbody tr") == 2
    report.check()


@in_browser
def test_the_charts_of_a_report_answer_the_pointer(report: OpenPage) -> None:
    span = "to - from"
    whole = report.value(span)
    # a label of the first thread: the middle of its first event
    share = "(T.start[i] + T.duration[i] / 2 - from) / (to - from)"
    across = report.value(f"(i => {share})(T.scope.indexOf(7))")
    down = "(tops[0] + HEAD + ROW / 2) / flame.clientHeight"
    report.point("#flame", across, report.value(down))
    assert report.text("#tooltip").startswith("step   (label)")
    report.click("#flame", across, report.value(down))
    assert report.value(span) == pytest.approx(
        report.value("T.duration[T.scope.indexOf(7)] * 1.1"), rel=1e-6
    )
    report.click("#fit")
    assert report.value(span) == whole
    report.click("#in")
    assert report.value(span) == pytest.approx(0.6 * whole)
    report.point("#memory", 0.9)
    assert re.fullmatch(r"[\d.]+ (µs|ms|s)   [\d.]+ (B|KiB)", report.text("#tooltip"))
    report.click("#stacks div:last-child")
    assert report.count("#stacks div") > 0
    report.check()


@in_browser
def test_a_report_is_light_or_dark(report: OpenPage) -> None:
    seen = []
    for prefers in (False, True):
        report.dark(prefers)
        for _ in range(3):
            seen.append(
                report.value("[getComputedStyle(document.body).backgroundColor, inked('text')]")
            )
            report.click("#dark")
        report.value("document.documentElement.style.colorScheme = ''")
    light, dark = (
        ["rgb(255, 255, 255)", "rgb(17, 24, 39)"],
        ["rgb(17, 19, 24)", "rgb(229, 231, 235)"],
    )
    assert seen == [light, dark, light, dark, light, dark]
    report.check()


@in_browser
def test_the_trace_of_a_report_can_be_saved(report: OpenPage, tmp_path: Path) -> None:
    events = json.loads(report.download("#save", tmp_path))["traceEvents"]
    assert {"tanh", "TanhBackward", "fwdbwd", "memory", "thread_name"} <= {
        e["name"] for e in events
    }


@in_browser
def test_groups_of_a_picture_open_and_close(picture: OpenPage) -> None:
    assert picture.count(".box") == 9 and picture.count(".frame") == 2
    picture.click(".frame text")
    assert picture.count(".box") == 6 and picture.text(".frame.closed text") == "▸ first"
    assert (
        picture.value("document.querySelector('.frame').getAttribute('aria-expanded')") == "false"
    )
    picture.click(".frame.closed")
    assert picture.count(".box") == 9 and picture.count(".frame.closed") == 0
    for button, boxes in (("last-of-type", 3), ("nth-last-of-type(2)", 9)):
        picture.click(f".tools button:{button}")
        assert picture.count(".box") == boxes
    picture.check()


@in_browser
def test_a_picture_tells_and_finds(picture: OpenPage) -> None:
    picture.point(".box")
    assert picture.text("#tooltip").startswith(HOSTILE)
    assert picture.count("path.on") == 2
    picture.write(".tools input", "tanh")
    assert picture.count(".box.hit") == 2 and picture.count(".box.dim") == 7
    kinds = picture.text(".graph-legend")
    picture.choose(".tools select", "bytes")
    assert "leaf" in kinds and "keeps nothing" in picture.text(".graph-legend")
    picture.check()


def test_pages_are_made_by_a_zipped_package(tmp_path: Path) -> None:
    folder = Path(mg.__file__).parent
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(folder.parent))
    code = (
        "import multigrad as mg\n"
        "x = mg.asarray([1.0], requires_grad=True)\n"
        "html = mg.autograd.graph.draw(mg.sin(x)).html\n"
        "assert '.zip' in mg.__file__ and 'function showGraph' in html and '--fill-leaf' in html\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        check=True,
        timeout=300,
        env={"PYTHONPATH": str(tmp_path / "packages.zip")},
    )
