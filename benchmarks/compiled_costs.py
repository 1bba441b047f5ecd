"""Costs of func.compile besides its replays: the first calls, the overhead of a call, memory.

    python benchmarks/compiled_costs.py

The first call of a function records it. The second call compares its result with the recorded one,
and writes the code. Both times are given per operation of the program, for a gradient of 1,000 and
of 10,000 operations. The overhead of a call is measured with a function of 200 arguments that
computes with two of them. Times are processor times. The peak is counted by tracemalloc, in arrays
of the argument's size, for a replay without an arena and for the tape.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from peak import SCALE, layers

import multigrad as mg
from multigrad import func

FEW, MANY = 1_000, 10_000  # operations
ARGUMENTS, CALLS = 200, 2_000
SIZE, LAYERS = 500_000, 12


def gradient(operations: int) -> Callable[..., Any]:
    """Return a gradient whose program has about that many operations.

    A turn of forward and backward has twelve.
    """

    def loss(x: Any, y: Any) -> Any:
        for _ in range(operations // 12):
            x = mg.tanh(mg.sin(x) * y + y) * SCALE
        return mg.sum(x)

    return func.grad(loss, (0, 1))


def first_calls(operations: int, rounds: int) -> tuple[float, float]:
    """Return microseconds per operation of the recording call, and of the next one."""
    x, y = np.linspace(0.1, 0.9, 10), np.linspace(0.5, 1.5, 10)
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        compiled = func.compile(gradient(operations))
        taken = []
        for _ in range(2):
            gc.collect()
            start = time.process_time()
            compiled(x, y)
            taken.append(time.process_time() - start)
        (program,) = compiled.programs
        times.append((taken[0] / len(program.steps) * 1e6, taken[1] / len(program.steps) * 1e6))
    return median(t[0] for t in times), median(t[1] for t in times)


def overhead(rounds: int) -> tuple[float, float]:
    """Return the microseconds that a call adds to the product of two arrays.

    The second number is the addition per further argument.
    """
    arrays = [np.linspace(0.0, 1.0, 10) for _ in range(ARGUMENTS)]
    compiled = func.compile(lambda *xs: xs[0] * xs[-1])
    few = func.compile(lambda *xs: xs[0] * xs[-1])
    runs: list[Callable[[], Any]] = [
        lambda: arrays[0] * arrays[-1],
        lambda: few(arrays[0], arrays[-1]),
        lambda: compiled(*arrays),
    ]
    for run in runs * 4:
        run()
    times: list[list[float]] = []
    for _ in range(max(rounds, 5)):
        times.append([])
        for run in runs:
            start = time.process_time()
            for _ in range(CALLS):
                run()
            times[-1].append((time.process_time() - start) / CALLS * 1e6)
    return median(t[1] - t[0] for t in times), median(
        (t[2] - t[1]) / (ARGUMENTS - 2) for t in times
    )


def peaks() -> tuple[float, float]:
    """Return the peak memory of a replay and of the tape, in arrays.

    It includes the results that the gradient needs, and all temporary arrays.
    """
    x = np.linspace(0.0, 1.0, SIZE)
    compiled = func.compile(func.grad(lambda x: mg.sum(layers(mg.tanh, x, LAYERS))), arena=0)

    def tape() -> Any:
        leaf = mg.asarray(x, requires_grad=True)
        mg.sum(layers(mg.tanh, leaf, LAYERS)).backward()
        return leaf.grad

    return tuple(_peak(run) for run in (lambda: compiled(x), tape))  # type: ignore[return-value]


def _peak(run: Callable[[], Any]) -> float:
    for _ in range(3):
        run()
    gc.collect()
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    kept = run()
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    del kept
    return peak / (8 * SIZE)


def measure(rounds: int = 3) -> dict[str, float]:
    first_calls(100, 1)  # warm-up: imports and caches
    few, many = first_calls(FEW, rounds), first_calls(MANY, rounds)
    call, argument = overhead(rounds)
    replay, tape = peaks()
    return {
        "record": few[0],
        "second": few[1],
        "record, long": many[0],
        "second, long": many[1],
        "call": call,
        "argument": argument,
        "peak": replay,
        "peak of the tape": tape,
    }


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(json.dumps(measure(), indent=1))
