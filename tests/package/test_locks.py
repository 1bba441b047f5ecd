"""What a signal handler, a finalizer and the child of a fork find: no lock that nobody gives back,
and no half of a sum.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import threading

import package_source as source
import pytest
from plugin_sites import site  # noqa: F401

from multigrad import locks

START = """
import contextvars, faulthandler, gc, os, signal, sys, threading, time
faulthandler.dump_traceback_later(240, exit=True)
import numpy as np
import multigrad as mg
from multigrad import func, locks

OWN = os.path.dirname(mg.__file__)

def backward(x):
    # a handler runs with the grad mode and in the transformation of what it interrupts
    contextvars.Context().run(lambda: mg.sum(x * 1.0).backward())

def at_each_call(program, other, limit=10_000):
    \"\"\"Run `program` again and again, and `other` at its 1st, 2nd, ... call or return inside of
    multigrad: where a signal handler may run.\"\"\"
    for k in range(limit):
        seen, ran = 0, False
        def profile(frame, event, arg):
            nonlocal seen, ran
            # Python looks for signals when a function begins and when a call has returned
            if not ran and event != "c_call" and frame.f_code.co_filename.startswith(OWN):
                if seen == k:
                    ran = True
                    other()
                seen += 1
        sys.setprofile(profile)
        try:
            program()
        finally:
            sys.setprofile(None)
        yield k, ran
        if not ran:
            return
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# A pass inside of a pass

PROGRAMS = {
    "the first gradient of a leaf": """
        def start():
            global w
            w = leaf()
        def program(): backward(w)
        def other(): backward(w)
        def check(ran): assert values(w.grad) == [1.0 + ran] * 3, w.grad
    """,
    "a later gradient of a leaf": """
        def start():
            global w
            w = leaf()
            backward(w)
        def program(): backward(w)
        def other(): backward(w)
        def check(ran): assert values(w.grad) == [2.0 + ran] * 3, w.grad
    """,
    "a recorded gradient of a leaf": """
        def start():
            global w
            w = leaf()
            backward(w)
        def program(): mg.sum(w * w).backward(create_graph=True)
        def other(): backward(w)
        def check(ran): assert values(w.grad.detach()) == [3.0 + ran] * 3, w.grad
    """,
    "a retained gradient": """
        def start():
            global w, y
            w = leaf()
            y = w * 2.0
            y.retain_grad()
        def program(): mg.sum(y).backward(retain_graph=True)
        def other(): contextvars.Context().run(lambda: mg.sum(y).backward(retain_graph=True))
        def check(ran): assert values(y.grad) == [1.0 + ran] * 3, y.grad
    """,
    "the first hooks of a node": """
        def start():
            global w, y, calls
            w, calls = leaf(), []
            y = w * 2.0
        def program(): y.grad_fn.register_hook(lambda *_: calls.append("program"))
        def other(): y.grad_fn.register_hook(lambda *_: calls.append("other"))
        def check(ran):
            mg.sum(y).backward()
            assert sorted(calls) == ["other"] * ran + ["program"], calls
    """,
    "the first hooks of a leaf": """
        def start():
            global w, calls
            w, calls = leaf(), []
        def program(): w.register_hook(lambda g: calls.append("program"))
        def other(): w.register_hook(lambda g: calls.append("other"))
        def check(ran):
            backward(w)
            assert sorted(calls) == ["other"] * ran + ["program"], calls
    """,
    "the second forward of a checkpoint": """
        def start():
            global w, y
            w = leaf()
            y = mg.sum(func.checkpoint(mg.sin)(w))
        def program(): func.grad(lambda t: mg.sum(func.checkpoint(mg.sin)(t)))(np.ones(3))
        def other(): contextvars.Context().run(program)
        def check(ran):
            y.backward()
            assert np.allclose(w.grad.numpy(), np.cos(1.0))
    """,
    "the program of a loop": """
        def start():
            replaying._made.clear()
        def program():
            _, ys = func.scan(lambda c, x: (c + x, c * x), np.zeros(2), np.ones((3, 2)))
            assert np.asarray(ys).tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
        def other(): contextvars.Context().run(program)
        def check(ran): pass
        from multigrad.func.control import replaying
    """,
    "a compiled function": """
        def start():
            global f
            f = func.compile(lambda x: mg.sum(x * x))
        def program():
            assert f(np.ones(3)) == 3.0
        def other(): contextvars.Context().run(program)
        def check(ran): assert 1 <= len(f.programs) <= 1 + ran and f(np.ones(3)) == 3.0
    """,
    "what a write spares": """
        def start():
            global w, a, y, keeping
            w = leaf()
            a = mg.asarray(np.ones(3))
            keeping = mg.autograd.graph.allow_mutation_on_saved_tensors()
            keeping.__enter__()
            y = w * a
        def program(): a[...] = 5.0
        def other(): a[...] = 7.0
        def check(ran):
            keeping.__exit__(None, None, None)
            mg.sum(y).backward()
            assert values(w.grad) == [1.0] * 3, w.grad
    """,
}


@pytest.mark.sweep_after(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_signal_handler_at_any_moment(name):
    code = textwrap.dedent(PROGRAMS[name])
    out = run(f"""
def leaf(): return mg.asarray(np.ones(3), requires_grad=True)
def values(t): return t.numpy().tolist()
{code}
start(); program(); check(False)
start()
for k, ran in at_each_call(program, other):
    check(ran)
    start()
print(k)
""")
    assert int(out) > 3  # the moments at which the handler has run


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_signals_of_a_timer_lose_no_gradient(backend):
    if backend == "jax":
        pytest.importorskip("jax")
    run(f"""
        w = mg.asarray(np.zeros(3)).to_backend({backend!r}).requires_grad_()
        inside, calls = False, 0
        def other(*_):
            global inside, calls
            if not inside:
                inside = True
                backward(w)
                calls += 1
                inside = False
        backward(w)
        signal.signal(signal.SIGALRM, other)
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        passes = 1
        while calls < 100:
            backward(w)
            passes += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert np.asarray(w.grad.array).tolist() == [passes + calls] * 3
    """)


def test_a_finalizer_that_runs_a_pass():
    run("""
        w = mg.asarray(np.zeros(3), requires_grad=True)
        calls = 0
        class Last:
            def __init__(self): self.me = self
            def __del__(self):
                global calls
                gc.disable()
                backward(w)
                calls += 1
                gc.enable()
        gc.set_threshold(1)
        for _ in range(300):
            Last()
            w.register_hook(lambda g: None).remove()
            backward(w)
        gc.set_threshold(0)
        gc.disable()
        assert calls > 100
        assert w.grad.numpy().tolist() == [300.0 + calls] * 3
    """)


# Forks

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

CHILD = """
def watch_child():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(60)

def begun(program):
    \"\"\"A fork of this process that runs `program`.\"\"\"
    pid = os.fork()
    if pid == 0:
        watch_child()
        try:
            program()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def child(program):
    return status(begun(program))

def use():
    w = mg.asarray(np.ones(3), requires_grad=True)
    y = w * 2.0
    y.retain_grad()
    y.register_hook(lambda g: None)
    mg.sum(func.checkpoint(mg.sin)(y)).backward()
    func.scan(lambda c, x: (c + x, c), np.zeros(2), np.ones((3, 2)))
    mg.asarray(np.zeros(2, dtype=np.float16))[0] = 1.0
    func.compile(lambda x: x * 2.0)(np.ones(3))
"""


@needs_fork
def test_a_fork_waits_for_locks():
    run(
        CHILD
        + """
use()
held, clock = list(locks._all()), locks.monotonic
assert len(held) > 10
def now():
    forking.set()
    return clock()
locks.monotonic = now  # the first that a fork asks for
for lock in held:
    taken, forking = threading.Event(), threading.Event()
    def hold():
        with lock:
            taken.set()
            forking.wait()
            time.sleep(0.02)
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    assert child(use) == 0, lock
    thread.join()
assert not locks._taken
use()
"""
    )


@needs_fork
@pytest.mark.sweep
def test_threads_that_take_locks_in_any_order_while_others_fork():
    run(
        CHILD
        + """
use()
two, over = list(locks._all())[1:3], threading.Event()
def hold(first, second):
    while not over.is_set():
        with first:
            if second.acquire(timeout=0.01):
                second.release()
            locks.new_lock()
        time.sleep(0.0005)  # locks are not fair: who takes one at once again keeps others out
def fork():
    for _ in range(10):
        statuses.append(child(lambda: [lock.acquire() for lock in two]))
statuses = []
holding = [threading.Thread(target=hold, args=order) for order in (two, two[::-1])]
forking = [threading.Thread(target=fork) for _ in range(2)]
for thread in holding + forking: thread.start()
for thread in forking: thread.join()
over.set()
for thread in holding: thread.join()
assert statuses == [0] * 20, statuses
assert not locks._taken
"""
    )


@needs_fork
def test_a_fork_inside_of_a_lock():
    run(
        CHILD
        + """
from multigrad.memory.accumulation import _accumulating
with _accumulating:
    assert child(use) == 0
    pid = os.fork()  # the child leaves the block, too
if pid == 0:
    watch_child()
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
thread = threading.Thread(target=use)
thread.start()
thread.join()
"""
    )


@needs_fork
def test_a_fork_does_not_wait_for_ever():
    run(
        CHILD
        + """
use()
locks.PATIENCE = 0.05
go, taken = threading.Event(), threading.Event()
def hold():
    with locks._adding:
        for lock in locks._locks: lock.acquire()
        taken.set()
        go.wait()
        for lock in locks._locks: lock.release()
thread = threading.Thread(target=hold)
thread.start()
taken.wait()
assert child(use) == 0
go.set()
thread.join()
use()
"""
    )


@needs_fork
@pytest.mark.sweep
def test_a_fork_while_a_backend_is_imported(site):  # noqa: F811
    pytest.importorskip("array_api_strict")
    site.module(
        "toylib",
        """
        import time
        time.sleep(0.3)
        class Array: pass
        """,
    )
    site.module(
        "toybackend",
        """
        import time
        time.sleep(0.3)
        import array_api_strict, toylib, multigrad as mg
        time.sleep(0.3)
        def make():
            time.sleep(0.3)
            return mg.Backend("toylib", array_api_strict, (toylib.Array,))
        """,
    )
    site.plugin(
        "toylib",
        """
        import time
        time.sleep(0.3)
        import multigrad as mg
        @mg.hookimpl
        def multigrad_backends():
            time.sleep(0.3)
            return [mg.BackendSpec("toylib", module="toylib", load="toybackend:make")]
        """,
    )
    site.run(
        START
        + CHILD
        + """
from multigrad.backends import discovery
def get():
    assert discovery.get("toylib").name == "toylib"
    mg.sum(mg.asarray(np.ones(3), requires_grad=True)).backward()
use()  # Python itself cannot import in a child what another thread is importing
thread = threading.Thread(target=get)
thread.start()
begun_ones = []
while thread.is_alive():
    begun_ones.append(begun(get))
    time.sleep(0.1)
statuses = [status(pid) for pid in begun_ones]
assert set(statuses) == {0}, statuses
"""
    )


def test_only_this_module_makes_locks():
    made = [
        f"{m.name}:{node.lineno}"
        for m in source.modules().values()
        if m.name != "locks"
        for node in ast.walk(m.tree)
        if (isinstance(node, ast.Attribute) and node.attr in {"Lock", "RLock", "Condition"})
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "threading"
            and {alias.name for alias in node.names} & {"Lock", "RLock", "Condition"}
        )
    ]
    assert made == []


def test_a_lock_that_is_gone_is_forgotten():
    before = len(locks._locks)
    lock = locks.new_lock()
    assert len(locks._locks) == before + 1 and isinstance(lock, type(threading.RLock()))
    del lock
    assert len(locks._locks) == before
