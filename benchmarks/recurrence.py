"""The million-node recurrence h = tanh(h * w + b) on 8 float64: time and tape bytes per node.

Each peer runs in its own process. `python benchmarks/recurrence.py PEER NODES` prints one JSON
object.

Bytes per node: the growth of the process's resident memory over the forward pass, less the growth
of the `hand` run, which keeps the arrays that a gradient written by hand needs (each tanh's result)
in a list. "Excluding the arrays" is therefore exact: an array that a tape keeps in addition counts
against the tape. For multigrad the count is checked with tracemalloc, in a second process, since
tracing slows the forward pass several times.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import peers as installed_peers

PER_STEP = 3  # multiply, add, tanh
SIZE = 8
PEERS = {"hand": "numpy", "multigrad": "multigrad", "torch": "torch", "HIPS autograd": "autograd"}

# forward, and backward from the result of forward
Run = tuple[Callable[[], Any], Callable[[Any], Any]]


def inputs() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    return rng.normal(size=SIZE), rng.uniform(0.5, 1.0, size=SIZE), rng.normal(size=SIZE)


def recurrence(tanh: Callable[[Any], Any], steps: int, h: Any, w: Any, b: Any) -> Any:
    for _ in range(steps):
        h = tanh(h * w + b)
    return h


def by_hand(steps: int) -> Run:
    h0, w, b = inputs()

    def forward() -> Any:
        h, saved = h0, [h0]
        for _ in range(steps):
            h = np.tanh(h * w + b)
            saved.append(h)
        return saved

    def backward(saved: Any) -> Any:
        g, gw, gb = np.ones(SIZE), np.zeros(SIZE), np.zeros(SIZE)
        for i in range(steps, 0, -1):
            h = saved[i]
            g = g * (1 - h * h)
            gb += g
            gw += g * saved[i - 1]
            g = g * w
        return gw, gb

    return forward, backward


def of_multigrad(steps: int) -> Run:
    import multigrad as mg

    h0, *rest = inputs()
    h, ones = mg.asarray(h0), mg.asarray(np.ones(SIZE))
    w, b = (mg.asarray(v, requires_grad=True) for v in rest)
    tanh = h.__array_namespace__().tanh
    return lambda: recurrence(tanh, steps, h, w, b), lambda last: mg.autograd.grad(
        last, (w, b), ones, retain_graph=True
    )


def of_torch(steps: int) -> Run:
    torch = installed_peers.torch()
    h0, *rest = inputs()
    h, ones = torch.asarray(h0), torch.ones(SIZE, dtype=torch.float64)
    w, b = (torch.asarray(v).requires_grad_() for v in rest)
    return lambda: recurrence(torch.tanh, steps, h, w, b), lambda last: torch.autograd.grad(
        last, (w, b), ones, retain_graph=True
    )


def of_hips(steps: int) -> Run:
    import autograd
    import autograd.numpy as anp

    h, *rest = inputs()

    def forward() -> Any:
        return autograd.make_vjp(lambda leaves: recurrence(anp.tanh, steps, h, *leaves))(
            tuple(rest)
        )

    return forward, lambda made: made[0](np.ones(SIZE))


MAKERS = {"hand": by_hand, "multigrad": of_multigrad, "torch": of_torch, "HIPS autograd": of_hips}


def resident() -> int:
    """Return the bytes of memory that the process holds now (Linux), or its maximum (elsewhere)."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def one_run(peer: str, nodes: int, traced: bool = False) -> dict[str, Any]:
    """Build, differentiate and free the recurrence once.

    The graph is kept until the end, so that freeing it is timed separately.
    """
    steps = nodes // PER_STEP
    forward, backward = MAKERS[peer](steps)
    warm_forward, warm_backward = MAKERS[peer](10)
    warm_backward(warm_forward())
    gc.collect()
    gc.disable()  # the times must not depend on the cyclic collector
    if traced:
        tracemalloc.start()
    held = resident()
    result, forward_time = timed(forward)
    grown = tracemalloc.get_traced_memory()[0] if traced else resident() - held
    gradients, backward_time = timed(backward, result)
    start = time.perf_counter()
    del result
    total = {
        "forward": forward_time,
        "backward": backward_time,
        "free": time.perf_counter() - start,
        "bytes": grown,
    }
    checksum = float(
        sum(float(np.sum(np.asarray(getattr(g, "array", g)))) for g in flatten(gradients))
    )
    return {key: value / (steps * PER_STEP) for key, value in total.items()} | {
        "checksum": checksum
    }


def timed(fn: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    value = fn(*arguments)
    return value, time.perf_counter() - start


def flatten(values: Iterable[Any]) -> list[Any]:
    return [leaf for v in values for leaf in (flatten(v) if isinstance(v, (tuple, list)) else [v])]


def in_process(peer: str, nodes: int, *flags: str) -> dict[str, Any]:
    """Call `one_run` in a new process."""
    command = [sys.executable, __file__, peer, str(nodes), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"{peer}: {done.stderr.strip().splitlines()[-1]}")
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def measure(nodes: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians over rounds, each of which runs every installed peer once.

    Bytes are those beyond `hand`.
    """
    runs_of: dict[str, list[dict[str, Any]]] = {
        p: [] for p, module in PEERS.items() if installed_peers.installed(module)
    }
    for _ in range(rounds):
        for peer, runs in runs_of.items():
            runs.append(in_process(peer, nodes))
    checksum = runs_of["hand"][0]["checksum"]
    table: dict[str, dict[str, float]] = {}
    for peer, runs in runs_of.items():
        if not np.isclose(runs[0]["checksum"], checksum, rtol=1e-9):
            raise AssertionError(f"{peer} and hand disagree: {runs[0]['checksum']} and {checksum}")
        table[peer] = {
            key: median(run[key] for run in runs)
            for key in ("forward", "backward", "free", "bytes")
        }
    arrays = table["hand"]["bytes"]
    for peer, row in table.items():
        row["tape bytes"] = 0.0 if peer == "hand" else row["bytes"] - arrays
    traced = {
        p: in_process(p, min(nodes, 100_000), "--traced")["bytes"] for p in ("hand", "multigrad")
    }
    table["multigrad"]["tape bytes, traced"] = traced["multigrad"] - traced["hand"]
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peer", choices=MAKERS)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--traced", action="store_true", help="count the bytes by tracemalloc")
    options = parser.parse_args()
    print(json.dumps(one_run(options.peer, options.nodes, options.traced)))
