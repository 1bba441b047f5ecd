"""mg.profile_page: the page about a block, for notebooks and scripts."""

from __future__ import annotations

import html
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import HOSTILE, Page

import multigrad as mg
from multigrad import observe
from multigrad.autograd.profiler import profile, record_function
from multigrad.tools.graphs import provenance
from multigrad.tools.report import block


def step() -> Any:
    w = mg.asarray(np.full((4, 5), 0.1), requires_grad=True)
    loss = mg.sum(mg.tanh(mg.asarray(np.ones((3, 4))) @ w))
    loss.backward()
    return loss


def written(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = Page(path.read_text()).data
    return data


def test_the_page_tells_of_the_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step()  # is no part of it
    line = sys._getframe().f_lineno + 1
    with mg.profile_page(tmp_path / "run.html") as page:
        kept = step()
    step()
    assert capsys.readouterr().out == f"report: {tmp_path / 'run.html'}\n" and kept.ndim == 0
    data = written(tmp_path / "run.html")
    rows = {r[0]: r[2] for r in data["averages"]}
    assert rows["matmul"] == rows["tanh"] == rows["TanhBackward"] == 1
    summary = dict(data["summary"])
    assert (
        summary["block"].endswith(f"test_profile_page.py:{line}")
        and summary["ended by"] == "its last line"
        and data["notes"] == []
    )
    assert "passes" not in summary["backward"] and summary["backward"].endswith("1 pass")
    assert (
        data["lines"]
        and data["flame"]
        and data["memory"]["peak"][1] > 0
        and data["source"]
        and "3 operations" in data["graph"]
    )
    assert (
        sum(data["totals"][p] for p in ("forward", "backward", "python", "recording"))
        == data["end"]
    )
    assert page.html == (tmp_path / "run.html").read_text() and observe.gate.get() is True


def test_the_parts_are_the_run(tmp_path: Path) -> None:
    w, x = np.full((60, 60), 0.01), np.ones((50, 60))
    compiled = mg.func.compile(
        mg.func.value_and_grad(lambda w, x: mg.sum(mg.tanh(mg.tanh(x @ w) @ w)))
    )
    around = time.perf_counter_ns()
    with mg.profile_page(tmp_path / "run.html"):
        start = time.perf_counter_ns()
        for _ in range(20):
            compiled(w, x)
        taken = time.perf_counter_ns() - start
    around = time.perf_counter_ns() - around
    data = written(tmp_path / "run.html")
    parts = [data["totals"][p] for p in ("forward", "backward", "python", "recording")]
    assert taken <= sum(parts) == data["end"] <= around and min(parts) > 0
    assert any("func.compile run their operations one by one" in note for note in data["notes"])


def test_an_exception_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = KeyError("key")
    with pytest.raises(KeyError) as caught, mg.profile_page(tmp_path / "run.html"):
        step()
        with pytest.raises(ValueError, match="reshape"):
            mg.reshape(mg.ones(2), (3,))
        raise error
    assert caught.value is error and observe.gate.get() is True and capsys.readouterr().out
    data = written(tmp_path / "run.html")
    assert (
        data["notes"] == ["The block raised KeyError; the page tells what ran until then."]
        and dict(data["summary"])["ended by"] == "KeyError"
    )
    assert "tanh" in {r[0] for r in data["averages"]}


def test_the_default_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with mg.profile_page():
        step()
        monkeypatch.chdir("/")
    assert (tmp_path / "multigrad-profile.html").stat().st_size > 10_000


def test_paths_that_cannot_be_written_are_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    cases = [
        (
            tmp_path / "no" / "run.html",
            FileNotFoundError,
            f"there is no folder {tmp_path / 'no'}; make it first",
        ),
        (tmp_path / "file" / "run.html", FileNotFoundError, "there is no folder"),
        (
            tmp_path,
            IsADirectoryError,
            f"is a folder; give the path of a file in it, such as {tmp_path / 'run.html'}",
        ),
        (
            tmp_path / ("x" * 300),
            OSError,
            "cannot be written (File name too long); write the page elsewhere",
        ),
    ]
    for path, kind, text in cases:
        with pytest.raises(kind) as caught, mg.profile_page(path):
            raise AssertionError("must not run")
        assert text in str(caught.value) and observe.gate.get() is True
    with pytest.raises(
        TypeError, match=r"a str or a pathlib.Path, not int; for example profile_page\('run.html'\)"
    ):
        mg.profile_page(3)  # type: ignore[arg-type]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_file_that_is_there_stays_until_there_is_a_page(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_text("before")
    with mg.profile_page(path):
        assert path.read_text() == "before"
    assert path.read_text().startswith("<!doctype html>")


def test_profilers_in_each_other(tmp_path: Path) -> None:
    with mg.profile_page(tmp_path / "outer.html") as outer:
        with (
            pytest.raises(
                RuntimeError,
                match="a profiler is running already.*Leave it first; a part of a block gets a "
                "name by",
            ),
            mg.profile_page(tmp_path / "inner.html"),
        ):
            raise AssertionError("must not run")
        with profile() as p, record_function("part"):
            step()
        assert "running" in repr(outer)
    assert any(e.name == "tanh" for e in p.function_events) and "part" in {
        r[0] for r in written(tmp_path / "outer.html")["averages"]
    }
    with profile(), pytest.raises(RuntimeError, match="a profiler is running already"):
        mg.profile_page(tmp_path / "inner.html").__enter__()
    with pytest.raises(
        RuntimeError,
        match="was entered before: a page tells of one block, so call profile_page again",
    ):
        outer.__enter__()
    with pytest.raises(RuntimeError, match="is not running: each is entered and left once"):
        outer.__exit__(None, None, None)
    assert not (tmp_path / "inner.html").exists() and observe.gate.get() is True


def test_a_page_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError("no space left")

    monkeypatch.setattr(block.Run, "data", refuse)
    with (
        pytest.raises(OSError, match="no space left"),
        mg.profile_page(tmp_path / "run.html") as page,
    ):
        pass
    with pytest.raises(RuntimeError, match="there is no page yet"):
        _ = page.html
    with (
        pytest.raises(ValueError, match="of the block") as caught,
        mg.profile_page(tmp_path / "run.html"),
    ):
        raise ValueError("of the block")
    assert caught.value.__notes__ == [
        f"profile_page did not write {tmp_path / 'run.html'}: OSError: no space left"
    ]
    assert observe.gate.get() is True and "not written" in repr(page)


def test_a_block_without_operations(tmp_path: Path) -> None:
    with mg.profile_page(str(tmp_path / "run.html")):
        pass
    assert written(tmp_path / "run.html")["notes"][0].startswith(
        "The block ran no operation of multigrad"
    )


def test_it_shows_itself_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = mg.profile_page(tmp_path / "<b>.html")
    assert (
        repr(page) == f"<profile_page '{tmp_path}/<b>.html', not entered yet>"
        and "<b>" not in page._repr_html_()
    )
    with page, record_function(HOSTILE):
        step()
    (inside,) = re.findall(r'^<iframe srcdoc="([^"]*)"[^>]*></iframe>$', page._repr_html_())
    assert (
        html.unescape(inside) == page.html and repr(page) == f"<profile_page '{tmp_path}/<b>.html'>"
    )
    monkeypatch.setattr(block, "LARGEST", 10)
    assert "too large to be shown in a notebook" in page._repr_html_()
    assert "<iframe" not in page._repr_html_()


def test_cells_of_notebooks_are_shown_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiler:
        @staticmethod
        def format_code_name(name: str) -> tuple[str, str] | None:
            return ("Cell", "In[3]") if name == "/tmp/ipykernel_1/2.py" else None

    ipython = type(sys)("IPython")
    ipython.get_ipython = lambda: type("Shell", (), {"compile": Compiler})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert (
        str(provenance.Site("/tmp/ipykernel_1/2.py", 7, "f"))
        == provenance.Site("/tmp/ipykernel_1/2.py", 7, "f").short
        == "Cell In[3]:7"
    )
    assert provenance.shown("/home/train.py") == "/home/train.py"
    ipython.get_ipython = lambda: None  # type: ignore[attr-defined]
    assert provenance.shown("/tmp/ipykernel_1/2.py") == "/tmp/ipykernel_1/2.py"
