"""What a script sees and shows under `python -m multigrad profile` and `breaks`: what it does under
python.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import multigrad as mg
from multigrad import cli, script
from multigrad.autograd import detect_breaks
from multigrad.observe import gate

REPOSITORY = Path(__file__).parents[2]
HEAD = (
    "import sys, threading, time\n"
    "import multigrad as mg\n"
    "w = mg.tensor([1.0], requires_grad=True)\n"
    "mg.exp(w).detach()\n"
)
POOL = "from concurrent.futures import ThreadPoolExecutor\n"
ENDS = {
    "a pool that is left open": POOL
    + "pool = ThreadPoolExecutor(2)\nprint(list(pool.map(abs, range(3))))\n",
    "a pool and a status": POOL + "ThreadPoolExecutor(2).submit(abs, 1)\nsys.exit(3)\n",
    "an error before a thread ends": (
        "told, whole = '', threading.Event()\n"
        "def write(text, write=sys.stderr.write):\n"
        "    global told\n"
        "    told += text\n"
        "    done = write(text)\n"
        "    if told.endswith('by zero\\n'):\n"
        "        whole.set()\n"
        "    return done\n"
        "sys.stderr.write = write\n"
        "threading.Thread(target=lambda: (whole.wait(), print('done', file=sys.stderr))).start()\n"
        "1 / 0\n"
    ),
    "a daemon": "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n",
    "another folder": (
        "import os, pathlib\nos.chdir('/')\nprint(pathlib.Path(__file__).read_text() != '')\n"
        "print(__file__, sys.argv, sys.path[0], __name__, __spec__)\n"
    ),
    "an error in another folder": "import os\n"
    "os.chdir('/')\n"
    "def f():\n"
    "    raise ValueError('there')\n"
    "f()\n",
    "a hook for errors": "sys.excepthook = lambda kind, error, trace: print('mine', kind, "
    "error, trace.tb_lineno)\n"
    "{}['key']\n",
    "pickles at exit": "import atexit, pickle\n"
    "class K: pass\n"
    "atexit.register(lambda: print(type(pickle.loads(pickle.dumps(K())))))\n",
    "an error at exit": "import atexit\natexit.register(lambda: 1 / 0)\n",
    "a message": "sys.exit('enough')\n",
    "a fork": "import os\n"
    "if (child := os.fork()) == 0:\n"
    "    sys.exit(5)\n"
    "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
    "processes": (
        "import multiprocessing\n"
        "def square(x):\n"
        "    return x * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(square, [1, 2]))\n"
    ),
    "no syntax": "x = (1\n",
    "interrupted": "raise KeyboardInterrupt\n",
}


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=300,
    )
    done.stderr = re.sub("0x[0-9a-f]+", "0x", done.stderr)
    return done


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("end", ENDS)
def test_it_runs_as_under_python(tmp_path: Path, end: str) -> None:
    (tmp_path / "script.py").write_text(HEAD + ENDS[end])
    alone = python(tmp_path, "script.py", "--n", "3")
    broken = python(tmp_path, "-m", "multigrad", "breaks", "script.py", "--n", "3")
    assert broken.stdout.startswith(alone.stdout) and broken.stderr == alone.stderr
    assert broken.returncode == (130 if end == "interrupted" else alone.returncode)
    report = broken.stdout[len(alone.stdout) :]
    assert report.startswith(
        "No gradient was lost."
        if end == "no syntax"
        else "A gradient is lost in 1 place:\nscript.py:4: .detach()"
    ), report
    profiled = python(tmp_path, "-m", "multigrad", "profile", "script.py", "--n", "3")
    assert profiled.stdout == alone.stdout and profiled.returncode == broken.returncode
    assert profiled.stderr == alone.stderr + f"report: {tmp_path / 'multigrad-profile.html'}\n"
    page = (tmp_path / "multigrad-profile.html").read_text()
    assert end == "no syntax" or ("script.py:4" in page and str(tmp_path) not in page)


def test_every_word_behind_the_script_is_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "script.py")
    Path(path).write_text("import sys; print(sys.argv[1:])")
    for words in (["--", "--n"], ["--help"], [path, "--"], [], ["--", "--"]):
        assert cli.main(["breaks", path, *words]) == 0
        assert capsys.readouterr().out.splitlines()[0] == repr(words)
    assert cli.main(["breaks", "--", path, "--"]) == 0
    assert capsys.readouterr().out.startswith("['--']")


def test_a_zip_of_a_program(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as made:
        made.writestr("__main__.py", "import sys, other; print(other.N, __name__, sys.argv)")
        made.writestr("other.py", "N = 5")
    found = python(tmp_path, "-m", "multigrad", "breaks", "program.pyz", "x")
    assert found.stdout.startswith(f"5 __main__ ['{tmp_path / 'program.pyz'}', 'x']\nNo gradient")


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(HEAD + "import pathlib\npathlib.Path('out').rmdir()\n")
    (tmp_path / "out").mkdir()
    found = python(tmp_path, "-m", "multigrad", "profile", "--output", "out/page.html", "script.py")
    assert found.returncode == 2 and found.stderr.startswith(
        "the report could not be written: [Errno 2] No such file or directory"
    )


def test_within_another_program_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.py").write_text(
        "import sys\n"
        "sys.path.append('nowhere')\n"
        "print(sys.modules['__main__'].__dict__ is globals(), sys.argv)\n"
    )
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    assert cli.main(["breaks", str(tmp_path / "script.py"), "x"]) == 0
    assert capsys.readouterr().out.startswith(
        f"True ['{tmp_path / 'script.py'}', 'x']\nNo gradient was lost."
    )
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_threads_of_a_script_are_looked_at_and_keep_their_own_hooks(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        HEAD
        + """
import threading
from concurrent.futures import ThreadPoolExecutor

def work():
    w = mg.asarray([1.0], requires_grad=True)
    mg.floor(w)
    return sys.getprofile()

with ThreadPoolExecutor(1) as pool:
    print(pool.submit(work).result())
threading.setprofile(lambda *event: None)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    )
    found = python(tmp_path, "-m", "multigrad", "breaks", "script.py")
    assert (
        found.stdout.startswith("None\nA gradient is lost in 2 places:")
        and found.stdout.count("floor") == 2
    ), found
    assert "(×" not in found.stdout


def test_looking_at_threads_ends_as_it_began() -> None:
    seen: list[Any] = []
    threading.setprofile(hook := lambda *event: None)
    try:
        before = gate.get()
        with detect_breaks() as report:
            leave = script.watch_threads()
            for _ in range(2):
                thread = threading.Thread(
                    target=lambda: (
                        mg.floor(mg.asarray([1.0], requires_grad=True)),
                        seen.append(sys.getprofile()),
                    )
                )
                thread.start()
                thread.join()
                leave()
        assert seen == [hook, hook] and threading.getprofile() is hook
    finally:
        threading.setprofile(None)
    assert len(report) == 1 and report.breaks[0].count == 1 and gate.get() is before
