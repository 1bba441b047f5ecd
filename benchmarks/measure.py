"""Timing of peers side by side: one round runs each peer once, and ratios are taken within rounds.

A machine's speed drifts by tens of percent within seconds, so times taken one after the other are
not comparable. Within a round all peers see the same machine; the median over rounds ignores the
disturbed ones. The order rotates from round to round, so that no peer always runs after the one
that empties the caches.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

HAND = "hand"
OURS = "multigrad"
SHORTEST = 2e-3  # seconds: shorter samples would measure the clock and the scheduler
TOLERANCE = 0.05  # by this part of itself a time may exceed its aim, in tables and in the check


@dataclass(frozen=True)
class Aim:
    """A limit: at most `limit` times the peer's total, plus `plus` seconds."""

    peer: str
    limit: float
    plus: float = 0.0

    def __str__(self) -> str:
        return f"<= {self.limit:g} x {self.peer}" + (
            f" + {self.plus * 1e6:g} us" if self.plus else ""
        )

    def share(self, ours: float, theirs: float) -> float:
        """Return the used share of the limit: 1 is exactly the aim."""
        return ours / (self.limit * theirs + self.plus)


@dataclass
class Case:
    """One row of the table.

    Each peer is a function that runs the whole workload once and returns its gradients.
    """

    workload: str
    label: str
    count: int  # the operations or steps in one run: times are given per operation or step
    peers: dict[str, Callable[[], Any]]
    aims: list[Aim] = field(default_factory=list)
    tolerance: float = 1e-9
    # peers that compute something different, whose values are not compared
    yardsticks: Collection[str] = ()


@dataclass
class Result:
    """Seconds per operation (or step) of each peer, by round, and derived numbers."""

    case: Case
    rounds: dict[str, list[float]]

    def seconds(self, peer: str) -> float:
        return median(self.rounds[peer])

    def ratio(self, peer: str, to: str) -> float:
        """Return the median over rounds of the ratio of two times within one round."""
        return median(a / b for a, b in zip(self.rounds[peer], self.rounds[to], strict=True))

    def share(self, aim: Aim) -> float:
        """Return the median over rounds of the used share of the aim."""
        return median(
            aim.share(a, b) for a, b in zip(self.rounds[OURS], self.rounds[aim.peer], strict=True)
        )

    def verdicts(self) -> list[tuple[Aim, float, bool]]:
        present = [aim for aim in self.case.aims if aim.peer in self.rounds and OURS in self.rounds]
        return [
            (aim, self.ratio(OURS, aim.peer), self.share(aim) <= 1 + TOLERANCE) for aim in present
        ]

    def to_json(self) -> dict[str, Any]:
        peers = list(self.rounds)
        return {
            "workload": self.case.workload,
            "case": self.case.label,
            "rounds": len(self.rounds[peers[0]]),
            "seconds": {p: self.seconds(p) for p in peers},
            "ratio_to_hand": {p: self.ratio(p, HAND) for p in peers} if HAND in peers else {},
            "aims": [
                {"peer": a.peer, "limit": a.limit, "ratio": r, "met": met}
                for a, r, met in self.verdicts()
            ],
        }


def measure(
    case: Case, budget: float, *, least: int = 7, most: int = 400, sample: float = SHORTEST
) -> Result:
    """Check that the peers of a case agree, and time them in rounds for about `budget` seconds.

    A round repeats each peer for about `sample` seconds.
    """
    times = check_agreement(case.peers, case.tolerance, case.yardsticks)
    numbers = {
        p: max(1, round(sample / (t if t > 10 * sample else min(t, _time(case.peers[p], 1)))))
        for p, t in times.items()
    }
    rounds: dict[str, list[float]] = {peer: [] for peer in case.peers}
    order = list(case.peers)
    gc.collect()
    gc.freeze()  # existing objects are not scanned again; those of the peers are, as in any program
    start = time.perf_counter()
    try:
        for turn in range(most):
            for peer in order[turn % len(order) :] + order[: turn % len(order)]:
                rounds[peer].append(_time(case.peers[peer], numbers[peer]) / case.count)
            spent = time.perf_counter() - start
            if spent > budget and (turn + 1 >= least or (turn + 1 >= 3 and spent > 5 * budget)):
                break
    finally:
        gc.unfreeze()
    return Result(case, rounds)


def _time(fn: Callable[[], Any], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        fn()
    return (time.perf_counter() - start) / number


def check_agreement(
    peers: Mapping[str, Callable[[], Any]], tolerance: float, yardsticks: Collection[str] = ()
) -> dict[str, float]:
    """Run each peer once, compare the results, and return the times: a wrong answer has no time."""
    results, times = {}, {}
    for peer, fn in peers.items():
        start = time.perf_counter()
        values = fn()
        times[peer] = time.perf_counter() - start
        if peer not in yardsticks:
            results[peer] = [as_numpy(v) for v in values]
    reference_name, reference = next(iter(results.items()))
    for peer, values in results.items():
        for expected, got in zip(reference, values, strict=True):
            if got.shape != expected.shape:
                raise AssertionError(
                    f"{peer} and {reference_name} disagree in shape: {got.shape} and "
                    f"{expected.shape}"
                )
            if not np.allclose(got, expected, rtol=tolerance, atol=tolerance):
                raise AssertionError(
                    f"{peer} and {reference_name} disagree by {np.max(np.abs(got - expected)):.3g}"
                )
    return times


def as_numpy(value: Any) -> Any:
    """Return a NumPy copy of a raw array or a Tensor of multigrad or torch, on any device."""
    for attribute in ("detach", "cpu"):  # torch, and multigrad's detach
        value = getattr(value, attribute, lambda value=value: value)()
    value = getattr(value, "array", value)
    return np.asarray(value.get() if hasattr(value, "get") else value)
