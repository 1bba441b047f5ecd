"""The cost of multigrad, compared with NumPy by hand, PyTorch eager, HIPS autograd and JAX.

    python benchmarks/run.py                     everything, about fifteen minutes
    python benchmarks/run.py --quick             the same in about a minute, less steady, without
                                                 the large sizes
    python benchmarks/run.py --only chain        workloads whose name contains the word, or else
                                                 cases whose name does
    python benchmarks/run.py --check             judge the aims, in three to four minutes; the exit
                                                 status is 1 if one is missed
    python benchmarks/run.py --check --before DIR    also compare with another checkout, such as
                                                     the previous commit
    python benchmarks/run.py --markdown          the tables of benchmarks/README.md
    python benchmarks/run.py --json results.json every number

All peers run in one run on one machine; a peer that is not installed is left out. Times are
medians, and ratios are medians of the ratios within one round, in which every peer runs once (see
measure.py). Every peer's gradient is compared before anything is timed. `--check` takes seven
rounds of every case that has an aim, and allows five percent (see judging.py).
"""

from __future__ import annotations

import os

# set before NumPy is imported: its threads make the times of small products erratic
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import beyond
import compare
import compiled
import compiled_costs
import costs
import eager_jax
import judging
import paths
import peak
import peers
import programs
import recurrence
import scanned
import special
import transformations
import workloads
from measure import HAND, OURS, Case, Result, measure
from tables import duration, table

SIZES = (1, 10, 1000, 100_000, 1_000_000)
COLUMNS = (HAND, OURS, workloads.TORCH, workloads.HIPS, transformations.JIT)
BYTES_A_NODE = 300
RECURRENCE = "recurrence h = tanh(h * w + b)"


@dataclass(frozen=True)
class Effort:
    """The settings for the duration of a run."""

    budget: float  # seconds per case
    sample: float  # minimum seconds per peer in one round
    least: int  # minimum number of rounds
    most: int
    sizes: tuple[int, ...]
    nodes: int  # nodes of the recurrence
    processes: int  # rounds of the workloads with subprocesses
    steps: int  # steps of the longest program


FULL = Effort(6.0, 10e-3, 7, 400, SIZES, 1_000_000, 3, 1000)
QUICK = Effort(0.1, 2e-3, 3, 400, SIZES[:3], 30_000, 1, 100)
CHECK = Effort(math.inf, 30e-3, judging.ROUNDS, judging.ROUNDS, (1, 100_000), 100_000, 3, 1000)
QUICK_CHECK = Effort(math.inf, 4e-3, judging.ROUNDS, judging.ROUNDS, SIZES[:1], 30_000, 1, 100)


@dataclass
class Part:
    """The results of one group of workloads: tables, verdicts, skipped aims, and every number."""

    text: list[str] = field(default_factory=list)
    verdicts: list[judging.Verdict] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)


# -- timed cases


def makers(effort: Effort) -> list[tuple[str, str, Callable[[], Iterator[Case]]]]:
    """Return the workloads: name, required peer, and the function that makes the cases."""
    return [
        ("chain, forward + backward", "", lambda: workloads.chain_cases(effort.sizes)),
        ("chain, forward only", "", lambda: workloads.forward_cases(effort.sizes[:4])),
        ("z = (z / x) * y", "", workloads.loop_cases),
        ("TinyModel", "", workloads.tiny_cases),
        ("lists", "", workloads.list_cases),
        ("transformations", "", transformations.transformation_cases),
        ("paths", "", lambda: paths.path_cases(paths.Peers.found())),
        (beyond.WORKLOAD, "", lambda: beyond.beyond_cases(paths.Peers.found())),
        (special.SPECIAL, "multigrad_special", special.special_cases),
        (special.SOLVERS, "multigrad_scipy", special.solver_cases),
        (judging.PROGRAMS, "", lambda: programs.program_cases(paths.Peers.found(), effort.steps)),
        (eager_jax.WORKLOAD, "jax", eager_jax.eager_cases),
        (compiled.WORKLOAD, "", lambda: compiled.compiled_cases(paths.Peers.found(), effort.steps)),
        (scanned.WORKLOAD, "", lambda: scanned.scanned_cases(paths.Peers.found(), effort.steps)),
    ]


def cases(words: list[str], effort: Effort, skipped: list[str]) -> Iterator[Case]:
    """Yield the cases of the workloads that match a word, or else the cases that match one."""
    offered = makers(effort)
    named = [maker for maker in offered if wanted(maker[0], words)]
    for name, needs, make in named or offered:
        if needs and not peers.installed(needs):
            skipped.append(f"{name}: {needs} is not installed")
            continue
        yield from (case for case in make() if named or wanted(case.label, words))


def wanted(name: str, words: list[str]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


def timed(options: argparse.Namespace, effort: Effort) -> Part:
    part, results = Part(), []
    for case in cases(options.only, effort, part.skipped):
        part.skipped += judging.skipped(case)
        if (
            options.check
            and case.workload != judging.PROGRAMS
            and not any(aim.peer in case.peers for aim in case.aims)
        ):
            continue
        announce(options, f"{case.workload}, {case.label}")
        results.append(
            measure(case, effort.budget, least=effort.least, most=effort.most, sample=effort.sample)
        )
        part.verdicts += judging.of_result(results[-1])
    beside = (
        "paths",
        compiled.WORKLOAD,
        scanned.WORKLOAD,
        beyond.WORKLOAD,
        special.SPECIAL,
        special.SOLVERS,
    )
    wide = [
        r
        for r in results
        if set(r.rounds) <= set(COLUMNS) and not r.case.workload.startswith(beside)
    ]
    narrow = [r for r in results if r not in wide]
    part.text = [
        make(chosen) for make, chosen in ((timing_table, wide), (beside_table, narrow)) if chosen
    ]
    together = [r for r in results if r.case.workload == judging.PROGRAMS]
    if together:
        verdicts, named = judging.of_programs(together, HAND, programs.MOST)
        part.verdicts += verdicts
        part.skipped += named
        part.text.append(table(*judging.rows(verdicts)))
    part.record = {"cases": [r.to_json() for r in results]} if results else {}
    return part


def announce(options: argparse.Namespace, what: str) -> None:
    if not options.markdown:
        print(f"... {what}", file=sys.stderr, flush=True)


# -- tables


def timing_table(results: list[Result]) -> str:
    """Return a table of times per operation or step, ratios to each peer, and aims."""
    columns = [c for c in COLUMNS if any(c in r.rounds for r in results)]
    others = [c for c in columns if c != OURS]
    rows = []
    for r in results:
        times = [duration(r.seconds(c)) if c in r.rounds else "" for c in columns]
        ratios = [f"{r.ratio(OURS, c):.2f}" if c in r.rounds else "" for c in others]
        aims = "; ".join(f"{aim}: {'met' if met else 'NOT met'}" for aim, _, met in r.verdicts())
        rows.append([r.case.workload, r.case.label, *times, *ratios, aims])
    return table(["workload", "case", *columns, *(f"{OURS} / {c}" for c in others), "aim"], rows)


def beside_table(results: list[Result]) -> str:
    """Return the same table with a line per peer, for cases with different peers."""
    rows = []
    for r in results:
        aims = {aim.peer: f"{aim}: {'met' if met else 'NOT met'}" for aim, _, met in r.verdicts()}
        first = [r.case.label, duration(r.seconds(OURS))]
        for peer in r.rounds:
            if peer != OURS:
                rows.append(
                    [
                        *first,
                        peer,
                        duration(r.seconds(peer)),
                        f"{r.ratio(OURS, peer):.2f}",
                        aims.get(peer, ""),
                    ]
                )
                first = ["", ""]
    return table(["path", OURS, "beside", "its time", "ratio", "aim"], rows)


# -- workloads in subprocesses


def recurrence_part(options: argparse.Namespace, effort: Effort) -> Part:
    announce(options, RECURRENCE)
    per_node = recurrence.measure(effort.nodes, effort.processes)
    verdict = judging.limit(
        RECURRENCE,
        "bytes per node, excluding the arrays",
        per_node[OURS]["tape bytes"],
        BYTES_A_NODE,
        "bytes",
        tolerance=0,
    )
    record = {"recurrence": {"nodes": effort.nodes, "per node": per_node}}
    return Part([recurrence_table(per_node, effort.nodes, verdict)], [verdict], [], record)


def recurrence_table(
    per_node: dict[str, dict[str, float]], nodes: int, verdict: judging.Verdict
) -> str:
    rows = []
    for peer, row in per_node.items():
        times = [duration(row[key]) for key in ("forward", "backward", "free")]
        rows.append(
            [
                peer,
                *times,
                f"{row['tape bytes']:.0f}",
                f"{row.get('tape bytes, traced', float('nan')):.0f}".replace("nan", ""),
            ]
        )
    header = [
        f"{RECURRENCE}, {nodes:,} nodes",
        "forward",
        "backward",
        "free",
        "bytes of tape (resident)",
        "(traced)",
    ]
    judged = (
        f"Aim: at most {BYTES_A_NODE} bytes per node, excluding the arrays: "
        f"{'met' if verdict.met else 'NOT met'}."
    )
    return f"{table(header, rows)}\n\nPer node. {judged}"


def costs_part(options: argparse.Namespace, effort: Effort) -> Part:
    announce(options, COSTS)
    measured = costs.measure(judging.ROUNDS if effort.processes > 1 else 3)
    aims = [
        judging.limit("costs", "bytes per node", measured["node"], 130, "bytes", tolerance=0),
        judging.limit("costs", "first expression", measured["expression"] * 1e3, 7, "ms"),
        judging.limit("costs", "import", measured["import / numpy"], 1.1, "x numpy's import"),
    ]
    rows = [[v.label, v.measured, v.aim, "met" if v.met else "NOT met"] for v in aims]
    texts = costs.texts()
    tables = [table([COSTS, "measured", "aim", ""], rows), costs.shown({"": texts})]
    return Part(tables, aims, [], {"costs": measured, "generated code": texts})


def compiling_part(options: argparse.Namespace, effort: Effort) -> Part:
    announce(options, COMPILING)
    measured = compiled_costs.measure(3 if effort.processes > 1 else 1)
    longer = f"the same for {compiled_costs.MANY:,} operations, relative to {compiled_costs.FEW:,}"
    aims = [
        judging.limit(COMPILING, "the recording call, per operation", measured["record"], 60, "us"),
        judging.limit(COMPILING, longer, measured["record, long"] / measured["record"], 1.3, "x"),
        judging.limit(COMPILING, "a call, per argument", measured["argument"], 1, "us"),
        judging.limit(
            COMPILING,
            "peak memory of a replay without an arena",
            measured["peak"] / measured["peak of the tape"],
            1.1,
            "x the tape's",
        ),
    ]
    rows = [[v.label, v.measured, v.aim, "met" if v.met else "NOT met"] for v in aims]
    rows += [
        [label, f"{measured[key]:.3g} {unit}", "", ""]
        for label, key, unit in (
            ("the second call, which compares and generates code, per operation", "second", "us"),
            (f"the same for {compiled_costs.MANY:,} operations", "second, long", "us"),
            ("overhead of a call around one product", "call", "us"),
        )
    ]
    return Part(
        [table([COMPILING, "measured", "aim", ""], rows)], aims, [], {"compiling": measured}
    )


def scanning_part(options: argparse.Namespace, effort: Effort) -> Part:
    announce(options, SCANNING)
    measured = scanned.measure(3 if effort.processes > 1 else 1)
    beside = f"of {scanned.MANY:,} steps, relative to {scanned.FEW} steps"
    aims = [
        judging.limit(
            SCANNING,
            f"calls of the body in the gradient {beside}",
            measured["calls, long"] / measured["calls"],
            1,
            "x",
            tolerance=0,
        ),
        judging.limit(
            SCANNING,
            "memory per additional step",
            measured["memory, scan"],
            1.05,
            "x a carry",
            tolerance=0,
        ),
    ]
    rows = [[v.label, v.measured, v.aim, "met" if v.met else "NOT met"] for v in aims]
    rows += [
        [label, f"{measured[key]:.3g} {unit}", "", ""]
        for label, key, unit in (
            ("the same with the binomial schedule", "memory, binomial", "x a carry"),
            ("the same on the tape", "memory, tape", "x a carry"),
            ("a step, including its part of the gradient", "step", "us"),
            ("recording, which the gradient adds to its steps", "besides", "ms"),
        )
    ]
    return Part([table([SCANNING, "measured", "aim", ""], rows)], aims, [], {"scanning": measured})


def peak_part(options: argparse.Namespace, effort: Effort) -> Part:
    """Return the peak memory. It has no aim, so a check leaves it out."""
    if options.check:
        return Part()
    announce(options, PEAK)
    arrays_of = peak.measure()
    header = [f"{PEAK}, {peak.LAYERS} layers on {peak.SIZE:,} float64", *arrays_of]
    return Part(
        [
            table(
                header,
                [
                    [
                        "arrays of that size at the peak",
                        *(f"{arrays:.1f}" for arrays in arrays_of.values()),
                    ]
                ],
            )
        ],
        [],
        [],
        {"peak": arrays_of},
    )


def before_part(options: argparse.Namespace, effort: Effort) -> Part:
    """Return the comparison with another checkout, if one is given."""
    if options.before is None:
        return Part([], [], ["compare, Tensor * Tensor: no --before CHECKOUT to compare with"])
    announce(options, f"{BEFORE}, {options.before}")
    times = compare.compare(
        options.before,
        [compare.CHECKED] if options.check else [],
        judging.ROUNDS if options.check else effort.processes,
    )
    return Part(
        [compare.shown(times, options.before)], compare.verdicts(times), [], {"compare": times}
    )


COSTS, PEAK, BEFORE = (
    "import, first expression, bytes of a node",
    "peak memory",
    "compare with the checkout before",
)
COMPILING, SCANNING = "costs of func.compile", "costs of func.scan"
PARTS: list[tuple[str, Callable[[argparse.Namespace, Effort], Part]]] = [
    (RECURRENCE, recurrence_part),
    (COSTS, costs_part),
    (COMPILING, compiling_part),
    (SCANNING, scanning_part),
    (PEAK, peak_part),
    (BEFORE, before_part),
]


# -- the command


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD",
        help="only workloads (or cases) whose name contains it; repeatable",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="less time a case, fewer nodes and rounds, no sizes above 1,000",
    )
    parser.add_argument(
        "--check", action="store_true", help="judge the aims; the exit status is 1 if one is missed"
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="compare with another checkout as well; see compare.py",
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print nothing but the tables and where they come from",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every number there")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    effort = (
        (QUICK_CHECK if options.quick else CHECK)
        if options.check
        else QUICK
        if options.quick
        else FULL
    )
    named = [make for name, make in PARTS if wanted(name, options.only)]
    parts = (
        [timed(options, effort)]
        if not named or not options.only or any(wanted(m[0], options.only) for m in makers(effort))
        else []
    )
    parts += [make(options, effort) for make in named]
    verdicts = [v for part in parts for v in part.verdicts]
    text = [t for part in parts for t in part.text]
    if options.check:
        text = [
            table(*judging.rows(verdicts)),
            judging.summary(verdicts, (s for part in parts for s in part.skipped)),
        ]
    text.append(
        "Taken with "
        + ", ".join(f"{name} {version}" for name, version in peers.versions().items())
        + "; one thread each."
    )
    print("\n\n".join(text))
    if options.json:
        record = {"versions": peers.versions(), "quick": options.quick, "cases": []}
        write(
            options.json,
            record | {key: value for part in parts for key, value in part.record.items()},
        )
    return judging.status(verdicts) if options.check else 0


def write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
