"""The arrays that the code of a program computes in: a frame for each simultaneous call.

The arena of a frame is a list of slots. A value has a slot from the step that computes it to the
last step that reads its memory, or takes over the slot of an operand that is no longer needed. So
one array of the frame serves many values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .numpy_program_trial import Seen

LINE = 64
"""Slots are aligned to cache lines, and their sizes are multiples of one."""


@dataclass
class Text:
    """The code.

    source  the text of the function `program`
    scope   its globals
    store   the line from which on inputs are written; 0 if none is
    nbytes  the memory of a frame
    slots   the bytes of each slot
    first   a frame
    recipes how the arrays of a frame are made, in order: name, function, arguments; an argument
            that is a Name is an earlier array
    used    the arrays that the function gets
    """

    source: str = ""
    scope: dict[str, Any] = field(default_factory=dict)
    store: int = 0
    nbytes: int = 0
    slots: list[int] = field(default_factory=list)
    first: tuple[Any, ...] = ()
    recipes: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = field(default_factory=list)
    used: dict[str, None] = field(default_factory=dict)

    def frame(self) -> tuple[Any, ...]:
        """New arrays for one call at a time."""
        made: dict[str, Any] = {}
        slots = [aligned(n) for n in self.slots]
        for name, function, args in self.recipes:
            made[name] = function(
                *(
                    made[x] if type(x) is Name else slots[x.number] if type(x) is Slot else x
                    for x in args
                )
            )
        return tuple(made[name] for name in self.used)


class Name(str):
    """The name of an array of the frame, as an argument."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Slot:
    number: int


def aligned(n: int) -> Any:
    memory = np.empty(n + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n]


def buffer_in(memory: Any, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Any:
    return np.ndarray(shape, dtype, memory, 0, strides)


def place(dtype: Any) -> Any:
    return np.zeros((), dtype)


@dataclass(slots=True)
class Memory:
    """The place of the array of a root.

    It is "input" (`slot` is its number), "constant", "arena" (in a slot), "kept" (for a scalar),
    "call" (made at each call, here), or "theirs" (made by a function).
    """

    kind: str
    slot: int = -1
    name: str = ""


def seen_of(x: Any) -> Seen:
    return Seen("array", 0, x.shape, x.dtype, x.strides, x.nbytes)


def by_rows(seen: Seen) -> tuple[int, ...]:
    strides, step = [], seen.dtype.itemsize
    for n in reversed(seen.shape):
        strides.append(step)
        step *= n
    return tuple(strides[::-1])


def dense(seen: Seen) -> bool:
    """Whether the elements are contiguous, in some order of the axes."""
    expected = seen.dtype.itemsize
    for stride, n in sorted(
        (s, n) for s, n in zip(seen.strides, seen.shape, strict=True) if n != 1
    ):
        if stride != expected:
            return False
        expected *= n
    return all(s >= 0 for s in seen.strides)


def slot_size(nbytes: int) -> int:
    """Round large sizes up by at most an eighth, so that slots fit more often."""
    grain = max(LINE, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // grain) * grain
