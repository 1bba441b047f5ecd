"""A fork while a thread holds a lock of multigrad: the child uses multigrad, and ends."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import package_source as source
import pytest
from forks import needs_fork
from plugin_sites import site  # noqa: F401

pytestmark = needs_fork

TESTS = str(Path(__file__).parents[1])

START = """
import faulthandler, os, sys, threading, warnings
faulthandler.dump_traceback_later(50, exit=True)
warnings.simplefilter("ignore")

# each lock by the line that makes it; the first of each is kept alive
made, real = {}, threading.RLock
def noted():
    lock, frame = real(), sys._getframe(1)
    if frame.f_code.co_name == "new_lock":
        made.setdefault((frame.f_back.f_code.co_filename, frame.f_back.f_lineno), lock)
    return lock
threading.RLock = noted

from fault_programs import PROGRAMS, check_state, plain, state
from forks import in_child
from multigrad import locks

results = {name: plain(program()) for name, program in PROGRAMS.items()}
before = state()

def use(say=None, holding=()):
    for name, program in PROGRAMS.items():
        assert plain(program()) == results[name], name
    check_state(before | {"locks held": list(holding)})

def held(lock, until):
    \"\"\"A thread that holds the lock until the event, or for a moment.\"\"\"
    taken = threading.Event()
    def hold():
        with lock:
            taken.set()
            until.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    return thread
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": TESTS},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines() -> list[tuple[str, int]]:
    """The lines that make locks."""
    return sorted(
        (str(m.path), node.lineno)
        for m in source.modules().values()
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "new_lock"
    )


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "does not wait any longer"])
def test_a_fork_while_any_lock_is_held(waits: bool) -> None:
    """A fork waits for a lock; where it has waited long enough, the child finds it free."""
    pytest.importorskip("array_api_strict")
    out = run(f"""
        import array_api_strict
        from multigrad.plugins import discovery
        discovery.get("strict")
        assert sorted(made) == {lines()!r}
        waits = {waits}
        if not waits:
            locks.PATIENCE = 0.02
        for where, lock in {{"adding": locks._adding, **made}}.items():
            go = threading.Event()
            if waits:
                threading.Timer(0.01, go.set).start()
            thread = held(lock, go)
            in_child(use)
            go.set()
            thread.join()
            assert not locks._taken
        use()
        print(len(made))
        """)
    assert int(out) == len(lines()) > 15


def test_a_fork_inside_of_a_lock() -> None:
    """The thread that forks holds it in both processes, and gives it back."""
    run("""
        def other(say=None):
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
        for lock in made.values():
            with lock:
                in_child(use, [lock])
                assert lock._is_owned()
        with next(iter(made.values())):
            read, write = os.pipe()
            pid = os.fork()  # the child leaves the block, too
        if pid == 0:
            other()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        other()
        """)


def test_threads_that_take_locks_in_any_order_while_others_fork() -> None:
    run("""
        two = list(made.values())[:2]
        ended, ROUNDS = threading.Event(), 12
        def hold(first, second):
            while not ended.wait(0.0005):  # locks are not fair: who takes one at once keeps others out
                with first:
                    if second.acquire(timeout=0.01):
                        second.release()
                    locks.new_lock()
        def take(say):
            return all([lock.acquire(timeout=10) for lock in two])
        forked = []
        def fork():
            forked.extend(in_child(take) for _ in range(ROUNDS))
        holding = [threading.Thread(target=hold, args=x) for x in (two, two[::-1])]
        forking = [threading.Thread(target=fork) for _ in range(2)]
        for thread in holding + forking: thread.start()
        for thread in forking: thread.join()
        ended.set()
        for thread in holding: thread.join()
        assert forked == [True] * 2 * ROUNDS, forked
        assert not locks._taken
        """)


def test_a_fork_while_a_backend_is_imported(site) -> None:  # noqa: F811
    """Python cannot import in a child what another thread of the parent is importing."""
    pytest.importorskip("array_api_strict")
    pause = "import __main__; __main__.pause()"
    site.module("toylib", f"{pause}\nclass Array: pass\n")
    site.module(
        "toybackend",
        f"{pause}\nimport array_api_strict, toylib, multigrad as mg\n{pause}\n"
        f"def make():\n    {pause}\n"
        '    return mg.Backend("toylib", array_api_strict, (toylib.Array,))\n',
    )
    site.plugin(
        "toylib",
        f"{pause}\nimport multigrad as mg\n@mg.hookimpl\ndef multigrad_backends():\n    {pause}\n"
        '    return [mg.BackendSpec("toylib", module="toylib", load="toybackend:make")]\n',
    )
    site.run(
        f"import sys; sys.path.insert(0, {TESTS!r})\n"
        + START
        + """
from multigrad.plugins import discovery
at, went_on = threading.Semaphore(0), threading.Semaphore(0)
importing = True

def pause():
    # in the thread that imports, while the main thread begins a fork
    if importing and threading.current_thread() is not threading.main_thread():
        at.release()
        went_on.acquire(timeout=0.05)

def get(say=None):
    global importing
    importing = False
    assert discovery.get("toylib").name == "toylib"
    use()

def imported():
    assert discovery.get("toylib").name == "toylib"

thread = threading.Thread(target=imported)
thread.start()
forks = 0
while thread.is_alive():
    if at.acquire(timeout=0.05):
        in_child(get)
        forks += 1
thread.join()
use()
print(forks)
"""
    )
