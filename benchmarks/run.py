"""What multigrad costs, next to NumPy by hand, PyTorch eager and HIPS autograd, in one run on one machine.

    python benchmarks/run.py                     everything, about ten minutes
    python benchmarks/run.py --quick             the same in about two minutes, less steady
    python benchmarks/run.py --only chain        workloads whose name contains the word
    python benchmarks/run.py --markdown          the tables as they stand in benchmarks/README.md
    python benchmarks/run.py --json results.json every number

A peer that is not installed is left out. Times are medians; ratios are medians of the ratios within one round, in which
every peer runs once (see measure.py). Every peer's gradient is compared before anything is timed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: its threads make small products erratic
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import peers
import recurrence
import transformations
import workloads
from measure import HAND, OURS, Case, Result, measure

SIZES = (1, 10, 1000, 100_000, 1_000_000)
COLUMNS = (HAND, OURS, workloads.TORCH, workloads.HIPS, transformations.JIT)
BYTES_A_NODE = 300
RECURRENCE = "recurrence h = tanh(h * w + b)"


def cases(words: list[str], sizes: tuple[int, ...]) -> Iterator[Case]:
    makers = [
        ("chain, forward + backward", lambda: workloads.chain_cases(sizes)),
        ("chain, forward only", lambda: workloads.forward_cases(sizes[:4])),
        ("z = (z / x) * y", workloads.loop_cases),
        ("TinyModel", workloads.tiny_cases),
        ("lists", workloads.list_cases),
        ("transformations", transformations.transformation_cases),
    ]
    for name, make in makers:
        if wanted(name, words):
            yield from make()


def wanted(name: str, words: list[str]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Aligned Markdown, which a terminal shows well enough."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)


def timing_table(results: list[Result]) -> str:
    """Times per operation or step, our ratio to each peer, and the aims."""
    columns = [c for c in COLUMNS if any(c in r.rounds for r in results)]
    others = [c for c in columns if c != OURS]
    rows = []
    for r in results:
        times = [duration(r.seconds(c)) if c in r.rounds else "" for c in columns]
        ratios = [f"{r.ratio(OURS, c):.2f}" if c in r.rounds else "" for c in others]
        aims = "; ".join(f"<= {aim.limit:g} x {aim.peer}: {'met' if met else 'NOT met'}" for aim, _, met in r.verdicts())
        rows.append([r.case.workload, r.case.label, *times, *ratios, aims])
    return table(["workload", "case", *columns, *(f"{OURS} / {c}" for c in others), "aim"], rows)


def recurrence_table(found: dict[str, dict[str, float]], nodes: int) -> str:
    rows = []
    for peer, row in found.items():
        times = [duration(row[key]) for key in ("forward", "backward", "free")]
        rows.append([peer, *times, f"{row['tape bytes']:.0f}", f"{row.get('tape bytes, traced', float('nan')):.0f}".replace("nan", "")])
    header = [f"{RECURRENCE}, {nodes:,} nodes", "forward", "backward", "free", "bytes of tape (resident)", "(traced)"]
    ours = found[OURS]["tape bytes"]
    verdict = f"Aim: at most {BYTES_A_NODE} bytes a node, the arrays apart: {'met' if ours <= BYTES_A_NODE else 'NOT met'}."
    return f"{table(header, rows)}\n\nPer node. {verdict}"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="only workloads whose name contains it; repeatable")
    parser.add_argument("--quick", action="store_true", help="less time a case, a tenth of the recurrence's nodes, no size 1,000,000")
    parser.add_argument("--markdown", action="store_true", help="print nothing but the tables and where they come from")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every number there")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    budget, nodes, rounds = (1.0, 100_000, 1) if options.quick else (8.0, 1_000_000, 3)
    sizes = SIZES[:4] if options.quick else SIZES
    results, record = [], {"versions": peers.versions(), "quick": options.quick, "cases": []}
    for case in cases(options.only, sizes):
        if not options.markdown:
            print(f"... {case.workload}, {case.label}", file=sys.stderr, flush=True)
        results.append(measure(case, budget))
    record["cases"] = [r.to_json() for r in results]
    parts = [timing_table(results)] if results else []
    if wanted(RECURRENCE, options.only):
        found = recurrence.measure(nodes, rounds)
        record["recurrence"] = {"nodes": nodes, "per node": found}
        parts.append(recurrence_table(found, nodes))
    parts.append("Taken with " + ", ".join(f"{name} {version}" for name, version in peers.versions().items()) + "; one thread each.")
    print("\n\n".join(parts))
    if options.json:
        write(options.json, record)
    return 0


def write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
