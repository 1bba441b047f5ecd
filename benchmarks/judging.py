"""Verdicts of `run.py --check`: which aims are met, within a tolerance, and the exit status.

A measured ratio differs from run to run, so a time may exceed its aim by `TOLERANCE`. Counted
numbers (bytes) may not. An aim relative to a peer that is not installed cannot be judged: it is
named, and does not change the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from measure import OURS, TOLERANCE, Aim, Case, Result
from tables import duration

ROUNDS = 7
PROGRAMS = "real programs"
NEXT_TO_HAND = 1.15  # the aim where NumPy by hand takes over half of multigrad's time


@dataclass(frozen=True)
class Verdict:
    """One aim: the measured number, and its share of the allowed number (1 is exactly the aim)."""

    workload: str
    label: str
    measured: str
    aim: str
    share: float
    tolerance: float = TOLERANCE

    @property
    def met(self) -> bool:
        return self.share <= 1 + self.tolerance  # a nan is not met


def of_result(result: Result) -> list[Verdict]:
    """Return the verdicts on the aims of a case whose peers were measured."""
    return [
        _of_aim(result, aim)
        for aim in result.case.aims
        if aim.peer in result.rounds and OURS in result.rounds
    ]


def _of_aim(result: Result, aim: Aim) -> Verdict:
    case, times = (
        result.case,
        f"{duration(result.seconds(OURS))}, {duration(result.seconds(aim.peer))}",
    )
    measured = f"{result.ratio(OURS, aim.peer):.2f} x ({times})"
    return Verdict(case.workload, case.label, measured, str(aim), result.share(aim))


def skipped(case: Case) -> list[str]:
    """Return texts about the aims of a case whose peer is not installed."""
    return [
        f"{case.workload}, {case.label}: {aim.peer} is not installed"
        for aim in case.aims
        if aim.peer not in case.peers
    ]


def of_programs(
    results: Sequence[Result], hand: str, most: Mapping[str, float]
) -> tuple[list[Verdict], list[str]]:
    """Return the verdicts on the median ratio to each peer over programs.

    Programs whose hand-written gradient takes over half of the time are also compared with it.
    """
    verdicts, named = [], []
    for peer, largest in most.items():
        ratios = [r.ratio(OURS, peer) for r in results if peer in r.rounds]
        if ratios:
            verdicts.append(
                limit(PROGRAMS, f"median of {len(ratios)}", median(ratios), largest, f"x {peer}")
            )
        else:
            named.append(f"{PROGRAMS}, the median: {peer} is not installed")
    for result in results:
        if hand in result.rounds and result.ratio(OURS, hand) < 2:
            verdicts.append(
                limit(
                    PROGRAMS, result.case.label, result.ratio(OURS, hand), NEXT_TO_HAND, f"x {hand}"
                )
            )
    return verdicts, named


def limit(
    workload: str, label: str, value: float, most: float, unit: str, *, tolerance: float = TOLERANCE
) -> Verdict:
    """Return the verdict on one number with a limit."""
    return Verdict(
        workload,
        label,
        f"{value:.3g} {unit}".strip(),
        f"<= {most:g} {unit}".strip(),
        value / most,
        tolerance,
    )


def status(verdicts: Iterable[Verdict]) -> int:
    """Return the exit status: 0 if every aim that could be judged is met, else 1.

    A run that judged no aim has status 1.
    """
    judged = list(verdicts)
    return 0 if judged and all(v.met for v in judged) else 1


def rows(verdicts: Iterable[Verdict]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table."""
    header = ["workload", "case", "measured", "aim", "of the aim", "verdict"]
    return header, [
        [v.workload, v.label, v.measured, v.aim, f"{v.share:.2f}", "met" if v.met else "NOT met"]
        for v in verdicts
    ]


def summary(verdicts: Iterable[Verdict], left_out: Iterable[str]) -> str:
    """Return the summary of the table, and the aims that could not be judged."""
    judged, named = list(verdicts), list(left_out)
    missed = [v for v in judged if not v.met]
    lines = [
        f"{len(judged) - len(missed)} of {len(judged)} aims met, with a tolerance of "
        f"{TOLERANCE:.0%} for times."
    ]
    if named:
        lines.append(f"Not judged, {len(named)}:\n" + "\n".join(f"- {name}" for name in named))
    return "\n\n".join(lines)
