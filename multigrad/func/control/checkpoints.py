"""Which carries of a scan are kept for the pass, and the way back through the steps between them.

The binomial schedule: A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on
Mathematical Software 26 (2000). With s carries kept at a time and no step taken forward more than r
times, the pass goes back through up to (s + r)! / (s! r!) steps; `split` chooses where the next
carry is kept so that the number of forward steps is the least that there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import comb
from typing import Any

from .arguments import as_index

Checkpoint = int | str | None


def checked(checkpoint: Any, name: str) -> Checkpoint:
    """The argument `checkpoint` of a loop. Raises where it is none."""
    if checkpoint is None or (isinstance(checkpoint, str) and checkpoint in ("step", "binomial")):
        return checkpoint
    steps = as_index(checkpoint, 1)
    if steps is not None:
        return steps
    raise ValueError(
        f"{name}: checkpoint must be 'step', 'binomial', None, or an int above 0, not "
        f"{checkpoint!r}"
    )


def slots(length: int) -> int:
    """How many carries the binomial schedule keeps at a time, the first one included: as many as
    steps may be repeated.
    """
    s = 1
    while _reach(s, s) < length:
        s += 1
    return s


def _reach(s: int, r: int) -> int:
    """Through how many steps one can go back with s carries at a time, where each step is taken
    forward r times at the most.
    """
    return comb(s + r, s) if r >= 0 else 0


@lru_cache(maxsize=1024)
def _repetitions(length: int, s: int) -> int:
    """The least r for which that many steps are within reach."""
    r = 0
    while _reach(s, r) < length:
        r += 1
    return r


def split(length: int, s: int) -> int:
    """How many steps to go on from a carry that is kept, before the next one is, where s carries
    may be kept, that one included.

    The steps before the next carry may then be repeated once less, with all s of them; those behind
    it as often, with one less. Every number for which both are within reach, and for fewer
    repetitions are not, takes the fewest steps in all. This is the greatest.
    """
    if s == 1:
        return length - 1
    r = _repetitions(length, s)
    return min(_reach(s, r - 1), length - _reach(s - 1, r - 1))


def least_steps(length: int, s: int) -> int:
    """How many steps forward the schedule takes, besides those that the way back goes through:
    Griewank and Walther, equation (2).
    """
    r = _repetitions(length, s)
    return r * length - comb(s + r, r - 1) if r else 0


def positions(checkpoint: Checkpoint, length: int) -> Sequence[int]:
    """The steps before which the carry is kept when the loop runs, in order: a range, or a list of
    few.
    """
    if checkpoint in ("step", None):
        return range(length)
    if isinstance(checkpoint, int):
        return range(0, length, checkpoint)
    found, s = [0] * (length > 0), slots(length)
    while s > 1 and length - found[-1] > 1:
        found.append(found[-1] + split(length - found[-1], s))
        s -= 1
    return found


def backwards(checkpoint: Checkpoint, length: int) -> Iterator[tuple[str, int, int]]:
    """The way back, with the carries of `positions` at hand: ("keep", at, until) takes the steps
    from the carry that was kept at `at` and keeps that at `until`; ("pull", start, stop) goes back
    through the steps from `start`, whose carry is kept, and then that carry is dropped.
    """
    at = positions(checkpoint, length)
    if checkpoint != "binomial":
        for start, stop in reversed(list(zip(at, [*at[1:], length], strict=True))):
            yield "pull", start, stop
        return
    stop = length
    for number in reversed(range(len(at))):
        yield from _recursed(at[number], stop, slots(length) - number)
        stop = at[number]


def _recursed(start: int, stop: int, s: int) -> Iterator[tuple[str, int, int]]:
    """Back from `stop` to `start`, where the carry is kept, with s of them at a time, that one
    included.
    """
    while stop - start > 1:
        middle = start + split(stop - start, s)
        yield "keep", start, middle
        yield from _recursed(middle, stop, max(s - 1, 1))
        stop = middle
    yield "pull", start, stop
