"""The carries of a scan that are kept for the backward pass, and the way back between them.

The binomial schedule: A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on
Mathematical Software 26 (2000). If s carries are kept at a time and no step is taken forward more
than r times, the pass can go back through up to (s + r)! / (s! r!) steps. `split` chooses the next
carry to keep so that the number of forward steps is minimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

from .arguments import as_index

Checkpoint = int | str | None


def checked(checkpoint: Any, name: str) -> Checkpoint:
    """The argument `checkpoint` of a loop. Raises ValueError if it is invalid."""
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
    """How many carries the binomial schedule keeps at a time, the first one included.

    It keeps as many as the number of times that a step may be repeated.
    """
    s = 1
    while _reach(s, s) < length:
        s += 1
    return s


def _reach(s: int, r: int) -> int:
    """The number of steps within reach of s carries at a time and r forward runs per step."""
    return comb(s + r, s)


def _repetitions(length: int, s: int) -> int:
    """The least r for which that many steps are within reach."""
    r = 0
    while _reach(s, r) < length:
        r += 1
    return r


def split(length: int, s: int) -> int:
    """The number of steps from a kept carry to the next one to keep, if s carries may be kept.

    The carry at the start is one of the s. The steps before the next carry may then be repeated one
    time fewer, with all s carries. The steps after it may be repeated as often as before, with
    s - 1 carries. Every number for which both parts are within reach, but would not be with fewer
    repetitions, minimizes the total number of steps. This function returns the greatest of them.
    """
    if s == 1:
        return length - 1
    r = _repetitions(length, s)
    return min(_reach(s, r - 1), length - _reach(s - 1, r - 1))


def positions(checkpoint: Checkpoint, length: int) -> Sequence[int]:
    """The steps before which the loop keeps the carry, in order: a range, or a short list."""
    if checkpoint in ("step", None):
        return range(length)
    if isinstance(checkpoint, int):
        return range(0, length, checkpoint)
    kept, s = [0] * (length > 0), slots(length)
    while s > 1 and length - kept[-1] > 1:
        kept.append(kept[-1] + split(length - kept[-1], s))
        s -= 1
    return kept


def backwards(checkpoint: Checkpoint, length: int) -> Iterator[tuple[str, int, int]]:
    """The way back, given the carries of `positions`.

    - ("keep", at, until): take the steps from the carry kept at `at`, and keep the carry at
      `until`.
    - ("pull", start, stop): go back through the steps from `start`, whose carry is kept, and then
      drop that carry.
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
    """The way back from `stop` to `start`, where the carry is kept, with s carries at a time.

    The carry at `start` is one of the s.
    """
    while stop - start > 1:
        middle = start + split(stop - start, s)
        yield "keep", start, middle
        yield from _recursed(middle, stop, max(s - 1, 1))
        stop = middle
    yield "pull", start, stop
