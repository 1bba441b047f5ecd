"""Peak memory of a chain of 12 layers on five million float64, forward and backward.

    python benchmarks/peak.py PEER [LAYERS]       one peer, in this process: one JSON object

The unit is an array of that size. Each peer has its own process. Its peak is the largest resident
memory of the process, less the memory before the input was made. The peak counts the input, the
arrays saved for the backward pass, the gradient, and every temporary array. A layer is `tanh(x *
0.9 + 0.1)`, whose derivative needs one array, its result, and the gradient is that of the sum. So
12 results, the input and the gradient are 14 arrays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peers as installed_peers
from recurrence import PEERS, resident

SIZE, LAYERS, SCALE, SHIFT = 5_000_000, 12, 0.9, 0.1


def layers(tanh: Callable[[Any], Any], x: Any, count: int) -> Any:
    for _ in range(count):
        x = tanh(x * SCALE + SHIFT)
    return x


def by_hand(x: Any, count: int) -> Any:
    saved = []
    for _ in range(count):
        x = np.tanh(x * SCALE + SHIFT)
        saved.append(x)
    del x
    g: Any = SCALE
    while saved:
        y = saved.pop()
        y = y * y
        g = g * np.subtract(1, y, out=y)
        if saved:
            g *= SCALE
    return g


def of_multigrad(x: Any, count: int) -> Any:
    import multigrad as mg

    xp, leaf = mg.namespace("numpy"), mg.asarray(x, requires_grad=True)
    xp.sum(layers(xp.tanh, leaf, count)).backward()
    return leaf.grad.array


def of_torch(x: Any, count: int) -> Any:
    torch = installed_peers.torch()
    leaf = torch.from_numpy(x).requires_grad_()
    torch.sum(layers(torch.tanh, leaf, count)).backward()
    return leaf.grad.numpy()


def of_hips(x: Any, count: int) -> Any:
    import autograd
    import autograd.numpy as anp

    return autograd.grad(lambda x: anp.sum(layers(anp.tanh, x, count)))(x)


RUNS: dict[str, Callable[[Any, int], Any]] = {
    "hand": by_hand,
    "multigrad": of_multigrad,
    "torch": of_torch,
    "HIPS autograd": of_hips,
}


def highest() -> int:
    """Return the largest resident memory of this process so far, in bytes.

    Linux's `ru_maxrss` starts from the memory of the parent process, but VmHWM does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return (
            next(
                int(line.split()[1])
                for line in status.read_text().splitlines()
                if line.startswith("VmHWM:")
            )
            * 1024
        )
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def one_run(peer: str, count: int) -> dict[str, float]:
    RUNS[peer](np.linspace(0.0, 1.0, 8), count)  # warm-up: imports and caches
    held = resident()
    gradient = RUNS[peer](np.linspace(0.0, 1.0, SIZE), count)
    return {"arrays": (highest() - held) / (8 * SIZE), "checksum": float(np.sum(gradient))}


def measure(count: int = LAYERS) -> dict[str, float]:
    """Return the peak of each installed peer, in arrays."""
    rows = {
        peer: in_process(peer, count)
        for peer, module in PEERS.items()
        if installed_peers.installed(module)
    }
    for peer, row in rows.items():
        if not np.isclose(row["checksum"], rows["hand"]["checksum"], rtol=1e-9):
            raise AssertionError(
                f"{peer} and hand disagree: {row['checksum']} and {rows['hand']['checksum']}"
            )
    return {peer: row["arrays"] for peer, row in rows.items()}


def in_process(peer: str, count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, peer, str(count)], capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{peer}: {done.stderr.strip().splitlines()[-1]}")
    row: dict[str, float] = json.loads(done.stdout)
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peer", choices=RUNS)
    parser.add_argument("layers", nargs="?", type=int, default=LAYERS)
    options = parser.parse_args()
    print(json.dumps(one_run(options.peer, options.layers)))
