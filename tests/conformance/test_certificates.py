"""Certificates of conformance: one JSON, its views, comparisons, and backends that do not live to
see the end.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from copy import deepcopy
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from plugin_sites import ROOT, Site
from plugin_sites import site as site

from multigrad import cli

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import badge, certificate, page, plain, report
from multigrad_conformance.comparison import compare
from multigrad_conformance.journal import Journal, beside, recovered

RUN = {
    "date": "2030-01-02T03:04:05Z",
    "library": "one 1.0",
    "python": "CPython 3.11.0",
    "platform": "Linux",
    "device": "cpu",
    "samples": "short",
}
GOOD: dict[str, Any] = {
    "format": 2,
    "multigrad": "0.1.0",
    "samples": "short",
    "left out": {},
    "problems": {},
    "operations": {
        name: {"chapter": "elementwise", "kind": "elementwise"} for name in ("sin", "cos")
    },
    "backends": {
        "one": {
            "lacks": {"complex": "no complex (declared)"},
            "not run": [],
            "runs": [RUN],
            "dtypes": {
                "sin": {"real": "float64", "real@float32": "float32"},
                "cos": {"real": "float64"},
            },
            "tests": {
                "cos/jvp/complex": ["missing", "no complex (declared)"],
                "cos/vjp/real": ["exempt", "a bug of the library"],
                "sin/vjp/real": ["passed"],
                "sin/vjp/real@float32": ["passed"],
            },
        }
    },
}


def changed(**changes: Any) -> dict[str, Any]:
    """The certificate with other entries for its backend; None takes one away."""
    out = deepcopy(GOOD)
    for key, value in changes.items():
        key = key.replace("_", " ")
        out["backends"]["one"][key] = value
        if value is None:
            del out["backends"]["one"][key]
    return out


def with_tests(**states: Any) -> dict[str, Any]:
    """The certificate with other states of tests: sin_vjp_real="failed"."""
    return changed(
        tests=GOOD["backends"]["one"]["tests"]
        | {i.replace("_", "/"): s if isinstance(s, list) else [s] for i, s in states.items()}
    )


def written(folder: Path, results: Any, name: str = "a.json") -> str:
    (folder / name).write_text(json.dumps(results))
    return str(folder / name)


FAILED, ADDED = with_tests(sin_vjp_real="failed"), with_tests(sin_jvp_real="passed")
NOT_RUN, DEAD = changed(not_run=["sin/jvp/real"]), changed(died="by SIGSEGV, in x")
PROBLEM = {**GOOD, "problems": {"test_saves[sin]": "keeps x"}}
NONE = {**GOOD, "backends": {}, "left out": {"one": "not installed"}}
UNKNOWN = "the certificate does not say which tests were left out"
PARTIAL = "one: partial run (short): 2 passed"


# ----- the verdict, and the badge -----


@pytest.mark.parametrize(
    ("results", "word", "why", "told"),
    [
        (
            GOOD,
            "conformant",
            "2 passed, 1 exempt, 1 missing",
            "one: conformant (short): 2 passed, 1 missing, 1 exempt",
        ),
        (FAILED, "failed", "1 failed", "one: 1 failed (short)"),
        (with_tests(sin_vjp_real="odd"), "failed", "1 odd", "one: failed (short)"),
        (NOT_RUN, "partial", "1 of 5 tests were not run", PARTIAL),
        (changed(not_run=None), "partial", UNKNOWN, PARTIAL),
        (DEAD, "died", "by SIGSEGV, in x", "one: died (short)"),
        (changed(tests={}), "untested", "no test has passed", "one: untested (short)"),
        (
            PROBLEM,
            "failed",
            "the suite has problems: test_saves[sin]",
            "one: failed (short)",
        ),
    ],
)
def test_the_verdict(results: Any, word: str, why: str, told: str) -> None:
    assert certificate.verdict(results, "one") == (word, why)
    assert badge.message(results) == (word, told)
    texts = [
        "".join(e.itertext())
        for e in ElementTree.fromstring(badge.svg(results)).iter()
        if e.tag.endswith("text")
    ]
    assert texts == ["multigrad", told]
    assert ("conformant" in badge.svg(results)) == (word == "conformant")
    assert certificate.failed(results) == (word in ("failed", "died"))


def test_a_badge_of_several_backends_is_that_of_the_worst() -> None:
    two = deepcopy(GOOD)
    two["backends"]["two"] = with_tests(sin_vjp_real="failed")["backends"]["one"]
    assert badge.message(two) == ("failed", "two: 1 failed (short)")
    assert badge.message({**GOOD, "backends": {}}) == ("untested", "untested")


# ----- files -----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file: "),
        ("{", "is not a certificate: it is not JSON"),
        ("[]", "is not a certificate: it holds no JSON object"),
        (
            json.dumps(GOOD | {"format": 3}),
            r"is a certificate of format 3, and this version reads up to 2: pip install "
            r"--upgrade multigrad-conformance",
        ),
        (json.dumps(GOOD | {"backends": []}), "is not a certificate: 'backends' is not a dict"),
        ("{}", "is not a certificate: 'multigrad' is missing"),
        (json.dumps(GOOD | {"operations": {"sin": 1}}), "the operation 'sin' has no chapter"),
        (json.dumps(changed(tests=None)), "the backend 'one' has no tests"),
        (
            json.dumps(changed(tests={"sin": ["passed"]})),
            r"the test 'sin' of 'one' reads \['passed'\], where \[state, reason\] was expected",
        ),
    ],
)
def test_a_file_that_is_no_certificate(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text)
    for read in (["--from", str(path)], ["--compare", str(path), str(path)]):
        assert cli.main(["conformance", *read]) == 2
        assert re.search(message, capsys.readouterr().err)


def test_all_forms_are_views_of_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, again = tmp_path / "out", tmp_path / "again"
    path = written(tmp_path, GOOD)
    assert cli.main(["conformance", "--from", path, "--certificate", str(folder)]) == 0
    names = [f"conformance.{ending}" for ending in ("html", "json", "md", "svg")]
    assert sorted(p.name for p in folder.iterdir()) == names
    assert json.loads((folder / "conformance.json").read_text()) == GOOD
    text = capsys.readouterr().out
    assert "one: 2 operations, 2 passed, 0 failed, 1 exempt, 1 missing" in text.splitlines()
    markdown = (folder / "conformance.md").read_text()
    for told in (
        "one 1.0",
        "CPython 3.11.0",
        "2030-01-02T03:04:05Z",
        "one lacks complex: no complex (declared)",
        "one, exempt: cos/vjp/real",
    ):
        assert told in markdown
    path = str(folder / "conformance.json")
    assert cli.main(["conformance", "--from", path, "--certificate", str(again)]) == 0
    assert all((again / name).read_bytes() == (folder / name).read_bytes() for name in names)


@pytest.mark.parametrize("option", ["--json", "--html", "--badge", "--report", "--certificate"])
def test_a_place_that_cannot_be_written(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "file"
    assert cli.main(["conformance", "--from", written(tmp_path, GOOD), option, str(path)]) == 2
    assert f"cannot write there: {path}" in capsys.readouterr().err


def test_runs_of_one_backend_are_merged() -> None:
    first = changed(tests={"sin/vjp/real": ["passed"]}, not_run=["cos/vjp/real", "cos/jvp/complex"])
    second = changed(tests={"cos/vjp/real": ["passed"]}, not_run=["sin/vjp/real"]) | {
        "samples": "full",
        "problems": {"test_x": "y"},
    }
    both = certificate.merged([first, second])
    assert both["samples"] == "short, full" and both["problems"] == {"test_x": "y"}
    one = both["backends"]["one"]
    assert (
        set(one["tests"]) == {"sin/vjp/real", "cos/vjp/real"}
        and one["not run"] == ["cos/jvp/complex"]
        and len(one["runs"]) == 2
    )
    assert "not run" not in certificate.merged([first, changed(not_run=None)])["backends"]["one"]
    assert (
        certificate.merged([first, changed(died="by SIGSEGV")])["backends"]["one"]["died"]
        == "by SIGSEGV"
    )


# ----- the page -----


class Page(HTMLParser):
    """Checks that elements close in order, and keeps the tags, the attributes and the text."""

    VOID = ("meta", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute stands twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def test_the_page_stands_alone_and_is_accessible() -> None:
    results = with_tests(sin_vjp_real=["failed", "off by a sign"])
    results["left out"] = {"cupy": "no device"}
    results["backends"]["one"]["not run"] = ["sin/second/real"]
    text = page.html_of(results)
    parsed = Page(text)
    for told in (
        "one 1.0",
        "2030-01-02T03:04:05Z",
        "no complex (declared)",
        "a bug of the library",
        "off by a sign",
        "no device",
        "1 tests were not run",
        "sin/second/real",
    ):
        assert told in parsed.text
    for outside in ("http", "url(", "@import"):
        assert outside not in text.replace("http-equiv", "")
    assert not any({"src", "onclick", "onload"} & set(attrs) for _, attrs in parsed.tags)
    assert all(attrs["href"].startswith("#") for tag, attrs in parsed.tags if tag == "a")
    ids = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(attrs.get("scope") for tag, attrs in parsed.tags if tag == "th")
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("caption") == tags.count("table") and "noscript" in tags
    assert ("html", {"lang": "en"}) in parsed.tags and "color-scheme: light dark" in text
    rows = [attrs for tag, attrs in parsed.tags if tag == "tr" and "data-state" in attrs]
    assert {a["data-backend"] for a in rows} == {"one"}
    assert {a["data-dtype"] for a in rows} == {"float64", "float32", ""}
    states = " ".join(str(a["data-state"]) for a in rows)
    assert set(states.split()) == {"passed", "failed", "exempt", "missing"}


HOSTILE = (
    '</script><script>alert(1)</script><img src=x onerror="alert(2)">\' | [x](javascript:alert(3)) `code`'
    " \x1b[31mred\x00 \u202e \ud800 \n# head"
)


def hostile() -> dict[str, Any]:
    bad = HOSTILE
    return {
        "format": 2,
        "multigrad": bad,
        "samples": bad,
        "left out": {bad + "2": bad},
        "problems": {bad: bad},
        "operations": {f"sin{bad}": {"chapter": bad, "kind": "elementwise"}},
        "backends": {
            bad: {
                "lacks": {bad: bad},
                "not run": [f"a/b/{bad}"],
                "runs": [dict.fromkeys(report.RUN, bad)],
                "died": bad,
                "dtypes": {f"sin{bad.partition('/')[0]}": {bad: bad}},
                "tests": {f"sin{bad}/vjp/{bad}": ["failed", bad], f"x/{bad}/{bad}": [bad, bad]},
            }
        },
    }


def test_hostile_strings_are_only_text() -> None:
    text = page.html_of(hostile())
    parsed = Page(text)
    assert [tag for tag, _ in parsed.tags].count("script") == 1 and "img" not in {
        tag for tag, _ in parsed.tags
    }
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
    assert plain.clean(HOSTILE) in parsed.text
    text.encode()
    svg = badge.svg(hostile())
    assert {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(svg).iter()} == {
        "svg",
        "title",
        "rect",
        "g",
        "text",
    }
    markdown = report.markdown(hostile())
    assert (
        "<script" not in markdown
        and "<img" not in markdown
        and "\n# head" not in markdown
        and not re.search(r"(?<!\\)\]\(javascript", markdown)
    )
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {3, 2 + len(report.RUN)}
    for told in (report.text(hostile()), compare(GOOD, hostile()).text(), markdown, svg):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800]", told)


# ----- comparison -----


@pytest.mark.parametrize(
    ("old", "new", "title", "line"),
    [
        (GOOD, FAILED, "worse", "one sin/vjp: passed -> failed: real"),
        (FAILED, GOOD, "better", "one sin/vjp: failed -> passed: real"),
        (
            GOOD,
            with_tests(sin_vjp_real="exempt"),
            "worse",
            "one sin/vjp: passed -> exempt: real",
        ),
        (
            GOOD,
            with_tests(cos_vjp_real="missing"),
            "changed",
            "one cos/vjp: exempt -> missing: real",
        ),
        (GOOD, ADDED, "added", "one sin/jvp: passed: real"),
        (GOOD, with_tests(sin_jvp_real="failed"), "worse", "one sin/jvp: failed: real"),
        (ADDED, GOOD, "removed", "one sin/jvp: passed: real"),
        (ADDED, NOT_RUN, "worse", "one sin/jvp: passed -> not run: real"),
        (NOT_RUN, ADDED, "added", "one sin/jvp: passed: real"),
        (GOOD, DEAD, "worse", "one: died by SIGSEGV, in x"),
        (DEAD, GOOD, "better", "one: no longer dies"),
        (GOOD, PROBLEM, "worse", "test_saves[sin]: keeps x"),
        (PROBLEM, GOOD, "better", "test_saves[sin]"),
        (GOOD, NONE, "worse", "one: no longer tested: not installed"),
        (NONE, GOOD, "added", "one: the backend, 4 tests"),
        (NONE, FAILED, "worse", "one sin/vjp: failed: real"),
    ],
)
def test_what_got_better_and_what_got_worse(
    old: Any, new: Any, title: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [written(tmp_path, old, "old.json"), written(tmp_path, new, "new.json")]
    status = cli.main(["conformance", "--compare", *paths])
    out = capsys.readouterr().out
    assert f"{title}:\n" in out and f"  {line}\n" in out.partition(f"{title}:\n")[2]
    assert status == (title == "worse")
    assert out.rstrip().splitlines()[-1] == {"worse": "worse", "better": "better"}.get(
        title, "no better, no worse"
    )


def test_levels_that_differ_are_told() -> None:
    told = compare(GOOD, {**GOOD, "samples": "full"})
    assert (
        not told.worse
        and "note: the samples are short in the first and full in the second" in told.text()
    )
    many = with_tests(**{f"sin_jvp_{i}": "passed" for i in range(10)})
    assert compare(GOOD, many).added == ["one sin/jvp: passed: 0, 1, 2, 3, 4, 5, 6, 7, and 2 more"]


# ----- what becomes of a run that ends before its time -----


def test_a_journal_tells_what_was_found_and_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    journal = Journal(path)
    assert recovered(beside(path), "by SIGSEGV") is None
    journal.note("begun", changed(tests={}, not_run=["sin/vjp/real", "cos/vjp/real"]))
    begun = recovered(beside(path), "by SIGSEGV")
    assert (
        begun is not None
        and begun["backends"]["one"]["died"] == "by SIGSEGV, before the first test"
    )
    journal.note("started", "test_operation[one:sin/vjp/real]")
    journal.note("result", "one", "sin/vjp/real", "failed", "off")
    journal.note("problem", "test_saves[sin]", "keeps x")
    journal.note("started", "test_operation[one:cos/vjp/real]")
    assert journal.file is not None
    journal.file.write('["result", "one", "cos/v')
    journal.file.flush()
    out = recovered(beside(path), "by SIGSEGV")
    assert out is not None and out["problems"] == {"test_saves[sin]": "keeps x"}
    one = out["backends"]["one"]
    assert (one["tests"], one["not run"]) == ({"sin/vjp/real": ["failed", "off"]}, ["cos/vjp/real"])
    assert one["died"] == "by SIGSEGV, in test_operation[one:cos/vjp/real]"
    journal.close()
    assert not beside(path).exists()


DYING = """
    import os, sys
    import array_api_strict
    import multigrad as mg

    def tanh(x, /):
        {ending}
        return array_api_strict.tanh(x)

    def make():
        {import_ending}
        array = type(array_api_strict.asarray(0.0))
        return mg.Backend({name!r}, array_api_strict, (array,), capabilities=mg.Capabilities(defers=False, strict=True), functions={{"tanh": tanh}})
    """


def dying(site: Site, name: str, ending: str = "pass", import_ending: str = "pass") -> None:
    """A plugin whose function `tanh`, or whose making, ends the process."""
    site.module(
        f"{name}_backend", DYING.format(name=name, ending=ending, import_ending=import_ending)
    )
    site.plugin(
        name,
        f"""
        import multigrad as mg
        @mg.hookimpl
        def multigrad_backends():
            return [mg.BackendSpec({name!r}, module="array_api_strict", load="{name}_backend:make")]
        """,
    )


COMMAND = [sys.executable, "-m", "multigrad", "conformance", "--samples", "short"]


def environment_of(site: Site) -> dict[str, str]:
    path = os.pathsep.join(
        [str(site.folder), str(ROOT), str(ROOT / "conformance"), os.environ.get("PYTHONPATH", "")]
    )
    return os.environ | {"PYTHONPATH": path, "MULTIGRAD_BLOCK": "strict,special"}


def conformance(
    site: Site, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=site.folder,
        env=environment_of(site) | environment,
    )


@pytest.mark.sweep
@pytest.mark.skipif(os.name != "posix", reason="other systems have no signals to forward")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_process_of_the_backend_too(site: Site, name: str) -> None:
    begun = site.folder / "begun"
    dying(
        site,
        "dying",
        import_ending=f"open({str(begun)!r}, 'w').write(str(os.getpid())); "
        "import time; time.sleep(600)",
    )
    command = [*COMMAND, "--backend", "dying"]
    with subprocess.Popen(
        command,
        cwd=site.folder,
        env=environment_of(site),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # a shell starts what runs in the background with SIGINT ignored, and nohup with SIGHUP
        preexec_fn=lambda: signal.signal(getattr(signal, name), signal.SIG_DFL),
    ) as process:
        try:
            deadline = time.monotonic() + 200
            while not (begun.exists() and begun.read_text()) and time.monotonic() < deadline:
                time.sleep(0.05)
            child = int(begun.read_text())
            process.send_signal(getattr(signal, name))
            status = process.wait(200)
        finally:
            process.kill()  # if it is still running
    assert status == (128 + getattr(signal, name) if name != "SIGINT" else -signal.SIGINT)
    for _ in range(1200):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the process of the backend is still running")


def test_a_hook_of_samples_that_fails_is_told(site: Site) -> None:
    site.plugin(
        "bad",
        """
        import multigrad as mg
        @mg.hookimpl
        def multigrad_operations():
            return [mg.registry.elementwise("bad.f(x, /)", x=1.0, forward=lambda xp, x: x)]
        @mg.hookimpl
        def multigrad_samples():
            raise ValueError("no samples today")
        """,
    )
    done = conformance(site, "--backend", "numpy", "--", "-k", "bad.f or cos/forward/real")
    assert done.returncode == 1
    assert (
        "the operation 'bad.f' of plugin_bad has no samples: return them from the hook "
        "multigrad_samples, {operation: generator or 'module:name'}; the plugin 'bad' of "
        "multigrad-bad 1.0 failed in multigrad_samples: ValueError: no samples today" in done.stdout
    )


slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    ("ending", "import_ending", "told"),
    [
        ("os.kill(os.getpid(), 11)", "pass", "died by SIGSEGV, in test_operation[dying:tanh/"),
        slow("os._exit(0)", "pass", "died with exit status 0, in test_operation[dying:tanh/"),
        ("pass", "os._exit(3)", "died with exit status 3, before the first test"),
        slow(
            "import time; time.sleep(600)",
            "pass",
            "died at the limit of 30 s for one test, in test_operation[dying:tanh/",
        ),
    ],
)
def test_a_backend_that_dies_is_reported_and_the_others_finish(
    site: Site, ending: str, import_ending: str, told: str
) -> None:
    dying(site, "dying", ending, import_ending)
    options = "--backend dying --backend numpy --json c.json --badge c.svg --limit 30"
    chosen = "(/forward/ or /vjp/) and (:sin/ or :tanh/)"
    done = conformance(site, *options.split(), "--", "-k", chosen)
    assert done.returncode == 1, done.stdout + done.stderr
    out = json.loads((site.folder / "c.json").read_text())["backends"]
    assert (
        told in f"died {out['dying']['died']}"
        and f"dying, died: {told.removeprefix('died ')}" in done.stdout
    )
    assert "dying: died " in done.stderr
    assert out["numpy"]["tests"]["sin/vjp/real"] == ["passed"] and "died" not in out["numpy"]
    assert "dying: died" in (site.folder / "c.svg").read_text()
    if ending != "pass":
        assert out["dying"]["tests"].get("sin/vjp/real") == ["passed"], "what it had found is kept"


@pytest.mark.slow
def test_a_process_of_xdist_that_dies_is_a_failure_of_its_test(site: Site) -> None:
    """No other backend has failed by it."""
    pytest.importorskip("xdist")
    dying(site, "dying", "os._exit(3)")
    options = "--backend dying --backend numpy --json c.json -- -n 1 -k"
    done = conformance(site, *options.split(), "/forward/real and :tanh/")
    assert done.returncode == 1, done.stdout + done.stderr
    out = json.loads((site.folder / "c.json").read_text())
    state, told = out["backends"]["dying"]["tests"]["tanh/forward/real"]
    assert state == "failed" and "crashed" in told and out["problems"] == {}
    assert "dying: 1 operations, 0 passed, " in done.stdout
    *_, line = [line for line in done.stdout.splitlines() if line.startswith("numpy: ")]
    assert line.startswith("numpy: 1 operations, ") and "problems" not in line


def test_an_exit_is_a_failure_of_the_test(site: Site) -> None:
    dying(site, "dying", "sys.exit(0)")
    options = "--backend dying --json c.json -- -k"
    done = conformance(site, *options.split(), "/forward/real and (:sin/ or :tanh/)")
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((site.folder / "c.json").read_text())["backends"]["dying"]["tests"]
    assert found["tanh/forward/real"] == ["failed", "SystemExit: 0"] and found[
        "sin/forward/real"
    ] == ["passed"]


@pytest.mark.sweep
def test_a_filtered_run_says_so(site: Site) -> None:
    done = conformance(
        site, "--backend", "numpy", "--certificate", "out", "--", "-k", "numpy:tanh/vjp/real"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out = json.loads((site.folder / "out" / "conformance.json").read_text())
    assert out["format"] == 2
    one = out["backends"]["numpy"]
    assert "sin/vjp/real" in one["not run"] and "tanh/vjp/real" not in one["not run"]
    (run,) = one["runs"]
    assert run["selected by"] == "-k numpy:tanh/vjp/real" and re.fullmatch(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", run["date"]
    )
    assert (
        run["library"].startswith("numpy ")
        and run["device"] == "cpu"
        and run["python"].endswith(".".join(map(str, sys.version_info[:3])))
    )
    assert "partial run (short): " in (site.folder / "out" / "conformance.svg").read_text()
    assert re.search(r"partial: \d+ of \d+ tests were not run", done.stdout)


@pytest.mark.sweep
def test_a_run_of_nothing_is_told_by_its_status(site: Site) -> None:
    done = conformance(site, "--backend", "numpy", "--json", "c.json", "--", "-k", "nosuchtest")
    assert done.returncode == 5 and not (site.folder / "c.json").exists()


@pytest.mark.sweep
def test_without_a_name_each_backend_that_works_is_tested(site: Site) -> None:
    site.module("shady_backend", "def make():\n    raise RuntimeError('no shade')\n")
    site.plugin(
        "shady",
        """
        import multigrad as mg
        @mg.hookimpl
        def multigrad_backends():
            return [mg.BackendSpec("shady", module="array_api_strict", load="shady_backend:make")]
        """,
    )
    blocked = "strict,special,jax,torch,dask,mparray"
    options = "--json c.json -- -k numpy:tanh/vjp/real"
    done = conformance(site, *options.split(), MULTIGRAD_BLOCK=blocked)
    assert done.returncode == 0, done.stdout + done.stderr
    out = json.loads((site.folder / "c.json").read_text())
    assert "numpy" in out["backends"] and "no shade" in out["left out"]["shady"]
    assert any("shady" in line and "not tested" in line for line in done.stdout.splitlines())


# ----- the certificates of this repository -----


def known() -> tuple[set[str], set[str]]:
    """The operations that have samples, and the kernels that the suite checks."""
    import multigrad as mg
    from multigrad.registry import OPS
    from multigrad_conformance import kernels
    from multigrad_conformance.samples import samples_of

    mg.zeros(1)
    return {name for name in OPS if samples_of(name)}, set(kernels.CHECKS)


@pytest.mark.parametrize("plugin", ["torch", "dask", "mparray"])
def test_certificates_of_plugins_name_the_tests_of_today(plugin: str) -> None:
    """`make certificates` writes them."""
    operations, kernels = known()
    folder = ROOT / f"plugins/multigrad-{plugin}"
    written = json.loads((folder / "conformance.json").read_text())
    (backend,) = written["backends"].values()
    named = {name.partition("/")[0] for name in [*backend["tests"], *backend["not run"]]}
    assert set(written["operations"]) == operations
    assert {name.removeprefix("kernels.") for name in named if name.startswith("kernels.")} <= (
        kernels
    )
    rows = set(re.findall(r"^\| `([\w.]+)` \|", (folder / "conformance.md").read_text(), re.M))
    assert rows >= operations


def test_the_table_of_the_suite_names_the_operations_of_today() -> None:
    """`make conformance-table` writes it, with what the environment of `make test` has."""
    operations, kernels = known()
    text = (ROOT / "conformance/README.md").read_text()
    (table,) = (part for part in text.split("\n\n") if part.startswith("| operation | numpy"))
    rows = set(re.findall(r"^\| `([\w.]+)` \|", table, re.M))
    assert rows == operations | kernels
