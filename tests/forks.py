"""Code that runs in a fork of the process of pytest, so that nothing that it breaks stays."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


class Crash(Exception):
    """The child ended by a signal, after it had said `said` last."""

    def __init__(self, number: int, said: Any) -> None:
        super().__init__(f"{signal.Signals(number).name} after {said}")
        self.said = said


def in_child(function: Callable[..., Any], *args: Any, seconds: int = 60) -> Any:
    """What `function(say, *args)` returns in a fork.

    `say(x)` sends x to this process. Raises AssertionError with the traceback of an exception, and
    Crash after a crash. The child shows its stacks and ends after that many seconds.
    """
    read, write = os.pipe()
    sys.stdout.flush(), sys.stderr.flush()
    with warnings.catch_warnings():
        # of processes with threads, as those of pytest-xdist are; the child starts none
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run(write, function, args, seconds)
    os.close(write)
    said: Any = None
    with os.fdopen(read, "rb") as pipe:
        while True:
            try:
                kind, said_now = pickle.load(pipe)
            except EOFError:
                break
            if kind != "says":
                break
            said = said_now
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status != -signal.SIGALRM, f"the child did not end in {seconds} seconds, after {said}"
    if status < 0:
        raise Crash(-status, said)
    assert kind == "returns", said_now
    return said_now


def _run(write: int, function: Callable[..., Any], args: Any, seconds: int) -> None:
    faulthandler.disable()  # pytest's, which shows each crash
    # not by dump_traceback_later, whose thread may be running in the parent
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(seconds)

    def send(kind: str, what: Any) -> None:
        os.write(write, pickle.dumps((kind, what)))

    try:
        result = "returns", function(lambda what: send("says", what), *args)
    except BaseException:
        result = "raises", traceback.format_exc()
    gc.disable()
    send(*result)
    os._exit(0)
