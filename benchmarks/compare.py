"""Compare this checkout with another one of multigrad, on every row of paths.py.

Without --only, also what it generates as text, and holds (costs.py).

    git worktree add ../before HEAD~1
    python benchmarks/compare.py ../before                      every row; --only WORD selects rows
    python benchmarks/compare.py ../before --check              exit status 1 if Tensor * Tensor
                                                                takes more than 1.05 times as long

The result shows the cost or the gain of a change of the engine. Both sides run the benchmarks of
this checkout, each with its own multigrad in a subprocess. The two processes take turns, sample by
sample, on the same core, so both see the same machine (cores that share their units with other work
differ by a factor of two). Several pairs are started one after the other, since the placement of a
process in memory changes times by a few percent. The ratio is the median over pairs of the median
over turns. A row that one side cannot run is left out and named.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import costs
import judging
from measure import OURS, Case
from tables import duration, table

HERE = Path(__file__).resolve()
CHECKED, LIMIT = "Tensor * Tensor", 1.05
PAIRS, TURNS, SAMPLE = 5, 7, 10e-3


class Worker:
    """A subprocess that runs rows of paths.py on request, with the multigrad of one checkout."""

    def __init__(self, checkout: Path, pair: int) -> None:
        search = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--worker", str(pair)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": search},
        )
        hello = self.read()
        self.rows: list[str] = hello["rows"]
        if not Path(hello["multigrad"]).resolve().is_relative_to(checkout):
            self.close()
            raise RuntimeError(
                f"{checkout} has no multigrad; the process imported {hello['multigrad']}"
            )

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        return json.loads(line)

    def seconds(self, row: str, number: int) -> float:
        """Run a row `number` times; return the seconds per operation."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([row, number]) + "\n")
        self.process.stdin.flush()
        return float(self.read())

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def work(pair: int) -> None:
    """Run the worker: report its checkout, then answer requests until the input ends."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[pair % len(cores)]})
    import paths
    import workloads

    import multigrad

    cases = {
        case.label: case
        for case in [*paths.path_cases(paths.Peers()), *workloads.tiny_cases()]
        if runs(case)
    }
    print(json.dumps({"rows": list(cases), "multigrad": multigrad.__file__}), flush=True)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        row, number = json.loads(line)
        run = cases[row].peers[OURS]
        start = time.perf_counter()
        for _ in range(number):
            run()
        print((time.perf_counter() - start) / number / cases[row].count, flush=True)


def runs(case: Case) -> bool:
    """Run a row once, and return whether it works: an older multigrad may lack a feature."""
    try:
        case.peers[OURS]()
    except Exception as error:
        print(f"{case.label}: left out, {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def compare(
    other: Path, words: list[str], pairs: int = PAIRS
) -> dict[str, list[tuple[float, float, float]]]:
    """Return the times of each row in each pair of processes.

    They are the seconds per operation here and there, and the median of the ratios of the turns.
    """
    times: dict[str, list[tuple[float, float, float]]] = {}
    for pair in range(pairs):
        workers: list[Worker] = []
        try:
            workers.append(Worker(other.resolve(), pair))
            workers.insert(0, Worker(HERE.parent.parent, pair))
            for row in (row for row in workers[0].rows if row in workers[1].rows):
                if not words or any(word.lower() in row.lower() for word in words):
                    times.setdefault(row, []).append(_turns(row, workers, pair))
        finally:
            for worker in workers:
                worker.close()
    return times


def _turns(row: str, workers: list[Worker], pair: int) -> tuple[float, float, float]:
    start = time.perf_counter()
    for worker in workers:
        worker.seconds(row, 1)
    number = max(1, round(2 * SAMPLE / (time.perf_counter() - start)))
    here, there = [], []
    for turn in range(TURNS):
        for side in (0, 1) if (turn + pair) % 2 else (1, 0):
            (there if side else here).append(workers[side].seconds(row, number))
    return median(here), median(there), median(a / b for a, b in zip(here, there, strict=True))


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "other",
        type=Path,
        help="a checkout of multigrad, such as a git worktree of the commit before",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD",
        help="only rows whose name contains it; repeatable",
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help=f"pairs of processes, {PAIRS} unless given"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"judge {CHECKED}: at most {LIMIT} times the other's time",
    )
    return parser.parse_args(arguments)


def shown(times: dict[str, list[tuple[float, float, float]]], other: Path) -> str:
    rows = []
    for row, turns in times.items():
        ratios = [ratio for _, _, ratio in turns]
        here, there = (duration(median(turn[side] for turn in turns)) for side in (0, 1))
        rows.append(
            [row, here, there, f"{median(ratios):.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        )
    return table(["path", "this checkout", str(other), "ratio", "of single pairs"], rows)


def verdicts(times: dict[str, list[tuple[float, float, float]]]) -> list[judging.Verdict]:
    ratio = [
        median(ratio for _, _, ratio in turns) for row, turns in times.items() if row == CHECKED
    ]
    return [
        judging.limit("compare", CHECKED, value, LIMIT, "x the other checkout") for value in ratio
    ]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    times = compare(options.other, options.only, options.pairs)
    print(shown(times, options.other))
    if not options.only:
        here, there = costs.texts(HERE.parent.parent), costs.texts(options.other.resolve())
        print("\n" + costs.shown({"this checkout": here, str(options.other): there}))
    if not options.check:
        return 0
    judged = verdicts(times)
    print("\n" + table(*judging.rows(judged)))
    return judging.status(judged)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1:]))
