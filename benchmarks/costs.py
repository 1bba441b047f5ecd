"""One-time costs of multigrad: the import, the first expression, and the memory of a node.

    python benchmarks/costs.py import|numpy|expression|node      one measurement, in this process:
                                                                 one JSON number

Each measurement has its own process, and the kinds run in turn, in rounds.

- import: `import multigrad`, beside `import numpy`, each from compiled files.
- first expression: `x * y + xp.sin(x)`, recorded, after multigrad is imported and the Tensors
  exist. Three operations are generated and looked up for it. Creating the first Tensor, which
  discovers the installed plugins, is not part of it.
- node: a chain of 100,000 additions of a constant. The derivative of a sum needs no values, so no
  array is saved, and tracemalloc counts only the nodes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

NODES = 100_000
ROUNDS = 7


def importing(module: str) -> float:
    start = time.perf_counter()
    __import__(module)
    return time.perf_counter() - start


def expression() -> float:
    import numpy as np

    import multigrad as mg

    x, y = mg.asarray(np.ones(4), requires_grad=True), mg.asarray(np.ones(4))
    xp = x.__array_namespace__()
    start = time.perf_counter()
    x * y + xp.sin(x)
    return time.perf_counter() - start


def node() -> float:
    import numpy as np

    import multigrad as mg

    x, y = mg.asarray(np.ones(4), requires_grad=True), mg.asarray(np.ones(4))

    def chain(z: Any) -> Any:
        for _ in range(NODES):
            z = z + y
        return z

    chain(x)  # warm-up: generates the operation and fills the lists that are reused
    gc.collect()
    gc.disable()
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    last = chain(x)
    grown = tracemalloc.get_traced_memory()[0] - held
    del last
    return grown / NODES


KINDS: dict[str, Callable[[], float]] = {
    "import": lambda: importing("multigrad"),
    "numpy": lambda: importing("numpy"),
    "expression": expression,
    "node": node,
}


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Return medians over rounds: seconds of the imports and of the expression, bytes per node.

    The ratio of the imports is taken within rounds.
    """
    with tempfile.TemporaryDirectory() as compiled:
        for kind in KINDS:
            _in_process(kind, compiled)  # compiles the imported files
        turns = [
            {kind: _in_process(kind, compiled) for kind in ("import", "numpy", "expression")}
            for _ in range(rounds)
        ]
        seconds = {kind: median(turn[kind] for turn in turns) for kind in turns[0]}
        return seconds | {
            "import / numpy": median(turn["import"] / turn["numpy"] for turn in turns),
            "node": _in_process("node", compiled),
        }


def _in_process(kind: str, compiled: str) -> float:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, __file__, kind],
        capture_output=True,
        text=True,
        timeout=300,
        env=kept | {"PYTHONPYCACHEPREFIX": compiled},
    )
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr.strip().splitlines()[-1]}")
    return float(json.loads(done.stdout))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS, help="what is measured, in this process")
    print(json.dumps(KINDS[parser.parse_args().kind]()))
