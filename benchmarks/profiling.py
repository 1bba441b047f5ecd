"""The cost of the profiler: a chain of operations on ten elements, with and without it.

    python benchmarks/profiling.py

The times are microseconds per operation. They are medians over rounds in which every variant runs
once, so that all see the same machine. The aim is at most 4 us per operation with default
arguments, recorded and differentiated, on the CPU.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.autograd.profiler import profile

LENGTH, ROUNDS, AIM = 50, 40, 4.0
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "record_shapes": {"record_shapes": True},
    "with_flops": {"with_flops": True},
    "profile_memory": {"profile_memory": True},
    "with_stack": {"with_stack": True},
}


def programs() -> dict[str, Callable[[], Any]]:
    xp = mg.namespace("numpy")
    sin, tanh, total = xp.sin, xp.tanh, xp.sum
    x, w = (
        mg.asarray(np.linspace(0.1, 1, 10), requires_grad=True),
        mg.asarray(np.linspace(0.2, 1, 10)),
    )

    def forward(y: Any = x) -> Any:
        for _ in range(LENGTH):
            y = tanh(sin(y) * w + w) * 1.5
        return y

    def both() -> None:
        x.grad = None
        total(forward()).backward()

    return {"not recorded": lambda: forward(w), "recorded": forward, "recorded, and a pass": both}


def seconds(program: Callable[[], Any], options: dict[str, Any] | None) -> float:
    """Return the time of the program, without entering and leaving the profiler."""
    with profile(options is not None, **(options or {})):
        start = time.perf_counter()
        program()
        return time.perf_counter() - start


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    variants: dict[str, dict[str, Any] | None] = {"off": None, **OPTIONS}
    worst = 0.0
    print(f"{'us per operation':24}{'off':>8}" + "".join(f"{'+ ' + name:>18}" for name in OPTIONS))
    for name, program in programs().items():
        times: dict[str, list[float]] = {variant: [] for variant in variants}
        for number in range(ROUNDS + 3):
            for variant, options in variants.items():
                taken = seconds(program, options) / (5 * LENGTH) * 1e6
                if number >= 3:
                    times[variant].append(taken)
        off = median(times["off"])
        more = {
            variant: median(b - a for a, b in zip(times["off"], times[variant], strict=True))
            for variant in OPTIONS
        }
        worst = max(worst, more["defaults"])
        print(f"{name:24}{off:8.2f}" + "".join(f"{more[variant]:18.2f}" for variant in OPTIONS))
    print(
        f"the aim, at most {AIM} us with defaults: {'met' if worst <= AIM else 'missed'} "
        f"({worst:.2f} us)"
    )


if __name__ == "__main__":
    main()
