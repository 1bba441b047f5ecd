"""One-time costs of multigrad: the import, the first expression, and the memory of a node.

    python benchmarks/costs.py import|numpy|expression|node      one measurement, in this process:
                                                                 one JSON number
    python benchmarks/costs.py written SCRIPT ...                the text that a script generates,
    python benchmarks/costs.py held                              and the functions that the rows of
                                                                 paths.py leave behind: JSON objects

Each measurement has its own process, and the kinds run in turn, in rounds.

- import: `import multigrad`, beside `import numpy`, each from compiled files.
- first expression: `x * y + xp.sin(x)`, recorded, after multigrad is imported and the Tensors
  exist. Three operations are generated and looked up for it. Creating the first Tensor, which
  discovers the installed plugins, is not part of it.
- node: a chain of 100,000 additions of a constant. The derivative of a sum needs no values, so no
  array is saved, and tracemalloc counts only the nodes.
- written: the functions of operations, their ways and endings, and pullbacks are written as text
  and compiled when they are first needed. The pieces, their lines, and the seconds that this takes.
- held: the number of generated functions, and the bytes of their code and of their text.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import linecache
import os
import runpy
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import Any

from tables import table

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


def written(script: str, arguments: list[str]) -> dict[str, float]:
    """Run a script; return how much text was generated, and how long that took."""
    from multigrad.dispatch import generated

    run, found = generated.run, {"pieces": 0.0, "lines": 0.0, "seconds": 0.0}

    def timed(text: str, name: str, scope: dict[str, Any]) -> None:
        start = time.process_time()
        run(text, name, scope)
        found["seconds"] += time.process_time() - start
        found["pieces"] += 1
        found["lines"] += text.count("\n") + 1

    generated.run = timed
    sys.argv = [script, *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    return found


def held() -> dict[str, float]:
    """Return the number and the bytes of the generated functions after each row of paths.py."""
    import paths

    for case in paths.path_cases(paths.Peers()):
        case.peers[paths.OURS]()
    gc.collect()
    codes = {
        f.__code__
        for f in gc.get_objects()
        if isinstance(f, FunctionType) and f.__code__.co_filename.startswith(GENERATED)
    }
    texts = [text[0] for name, text in linecache.cache.items() if name.startswith(GENERATED)]
    return {"functions": len(codes), "bytes": sum(map(sys.getsizeof, codes)) + sum(texts)}


GENERATED = ("<multigrad", "<pullback")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = {
    "digits.py": ["--backend", "numpy"],
    "optimizers.py": [],
    "tutorial.py": [],
}
"""The examples that run on NumPy, with their arguments."""


def texts(checkout: Path | None = None) -> dict[str, dict[str, float]]:
    """Return what is generated and held, by script, with the multigrad of a checkout."""
    return {
        name: _json(["written", str(EXAMPLES / name), *arguments], checkout)
        for name, arguments in SCRIPTS.items()
    } | {"held": _json(["held"], checkout)}


def shown(sides: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the table of what `texts` measured, with a column for each side by its name."""
    rows = [
        [
            f"{row}, {what}",
            *(f"{side[row][what]:,.{0 if what != 'seconds' else 3}f}" for side in sides.values()),
        ]
        for row, measured in next(iter(sides.values())).items()
        for what in measured
    ]
    return table(["generated code", *sides], rows)


def _json(arguments: list[str], checkout: Path | None) -> dict[str, float]:
    search = [*([str(checkout)] if checkout else []), os.environ.get("PYTHONPATH", "")]
    with tempfile.TemporaryDirectory() as folder:  # the tutorial writes pictures
        done = subprocess.run(
            [sys.executable, Path(__file__).resolve(), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search))},
        )
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


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


def main(arguments: list[str]) -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*KINDS, "written", "held"], help="what is measured here")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="a script and its arguments")
    options = parser.parse_args(arguments)
    if options.kind == "written":
        return written(options.script[0], options.script[1:])
    return held() if options.kind == "held" else KINDS[options.kind]()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
