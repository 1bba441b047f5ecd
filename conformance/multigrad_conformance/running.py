"""Run the suite with each backend in a subprocess.

A backend that crashes or hangs then leaves the results of the others intact.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import multigrad

from . import certificate
from .certificate import Results
from .journal import beside, recovered

NO_TESTS = 5  # pytest's exit status if nothing was selected
LIMIT = 600.0
"""The time limit in seconds for each test of a backend, and for its import.

A test with a compiler may take a minute.
"""


@dataclass
class Outcome:
    """The result of a run on several backends.

    `status` is 0, or 1 if something failed, or pytest's status if a backend could not be run as
    requested.
    """

    certificates: list[Results] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)

    @property
    def status(self) -> int:
        ran = [s for s in self.statuses if s != NO_TESTS]
        return max(ran, default=NO_TESTS if self.statuses else 0)


def run(
    backends: Sequence[str],
    samples: str,
    arguments: Sequence[str],
    folder: Path,
    limit: float = LIMIT,
) -> Outcome:
    """Run the suite on the named backends, or on every backend that works.

    `arguments` are passed to pytest. A backend without output for `limit` seconds is ended; 0 means
    no limit.
    """
    outcome = Outcome()
    names = list(dict.fromkeys(backends))
    if not names:
        for listed in sorted(multigrad.backends(), key=lambda b: b.name):
            if listed.state in ("available", "loaded", "deferred"):
                names.append(listed.name)
            elif listed.state != "operations":
                outcome.left_out[listed.name] = listed.error or listed.state
    for number, name in enumerate(names):
        _run_one(
            name,
            samples,
            [*([] if backends else ["--multigrad-usable"]), *arguments],
            folder / f"{number}.json",
            outcome,
            limit,
        )
    if outcome.certificates:
        outcome.certificates[0]["left out"] = outcome.left_out | outcome.certificates[0]["left out"]
    return outcome


def _run_one(
    name: str, samples: str, arguments: Sequence[str], path: Path, outcome: Outcome, limit: float
) -> None:
    plugins = "-p no:cacheprovider -p multigrad_conformance.plugin --pyargs multigrad_conformance"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *plugins.split(),
        "--multigrad-samples",
        samples,
    ]
    command += ["--multigrad-json", str(path), "--multigrad-backend", name]
    status = _ended([*command, *arguments], path, limit)
    if path.is_file():
        outcome.certificates.append(certificate.read(path))
        outcome.statuses.append(status)
    elif beside(path).is_file():
        ending = _ending(status, limit)
        print(f"{name}: died {ending}", file=sys.stderr, flush=True)
        outcome.certificates.append(
            recovered(beside(path), ending) or _stillborn(name, samples, ending)
        )
        outcome.statuses.append(1)
    else:  # pytest ended before there were results, and has printed the reason
        outcome.statuses.append(status or 1)


HUNG = -1000
"""The status of a process that was ended at the limit; no signal has this number."""


def _ended(command: Sequence[str], path: Path, limit: float) -> int:
    """Run the process that writes the certificate. Returns its status, or HUNG.

    The process is ended if its journal has not grown for `limit` seconds.
    """
    with (
        _ending_by_signals(),
        subprocess.Popen(command, start_new_session=os.name == "posix") as process,
    ):
        heard, length = time.monotonic(), -1
        try:
            while True:
                try:
                    return process.wait(0.2)
                except subprocess.TimeoutExpired:
                    pass
                now = _length(beside(path))
                if now != length:
                    heard, length = time.monotonic(), now
                elif limit and time.monotonic() - heard > limit and now >= 0:
                    _end(process)
                    return HUNG
        except KeyboardInterrupt:
            _end(process, "SIGINT")
            raise
        except BaseException:  # such as a signal
            _end(process)
            raise


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit: a process in its own session gets neither."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raised(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {
        number: signal.signal(number, raised)
        for number in numbers
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet begun, or already finished
        return -1


def _end(process: subprocess.Popen[bytes], how: str = "SIGKILL") -> None:
    """End a process and its children, which share its session."""
    if os.name == "posix":
        os.killpg(process.pid, getattr(signal, how))
    else:
        process.kill()


def _ending(status: int, limit: float) -> str:
    """Describe how a process ended that wrote no certificate."""
    if status == HUNG:
        return f"at the limit of {limit:g} s for one test"
    if status < 0:
        try:
            return f"by {signal.Signals(-status).name}"
        except ValueError:
            return f"by signal {-status}"
    return f"with exit status {status}"


def _stillborn(name: str, samples: str, ending: str) -> Results:
    """Return the certificate of a backend whose process died on import."""
    backend: Results = {"lacks": {}, "tests": {}, "not run": [], "dtypes": {}, "runs": []}
    backend["died"] = f"{ending}, before the first test"
    return {
        "format": certificate.FORMAT,
        "multigrad": multigrad.__version__,
        "samples": samples,
        **{key: {} for key in ("operations", "left out", "problems")},
        "backends": {name: backend},
    }
