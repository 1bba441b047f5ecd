"""The rule of a node: the vjp of its operation, and what the node saves for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..registry import Op

Needs = tuple[Any, ...]
"""Per array parameter: whether its gradient is wanted.

A bool, or a tuple of bools for a list of arrays.
"""


def apart(saved: Any) -> tuple[Any, ...]:
    """What a node saved, which is not freed, as a tuple."""
    return saved if type(saved) is tuple else (saved,)


def is_alone(op: Op, sources: Sequence[Any]) -> bool:
    """Whether one array is all that is saved, not a tuple of arrays, metadata or a setting."""
    return len(sources) == 1 and op.outputs == () and (sources[0] or ((),))[0] in ("in", "out")


@dataclass(eq=False, repr=False, slots=True)
class Pullback:
    """The vjp of one operation for one pattern of wanted gradients.

    vjp      `vjp(xp, g, saved)` returns the gradient if `single`, else a tuple with one per wanted
             argument. `saved` is one argument: Python unpacks a tuple four times as fast in the
             function as in the call
    alone    whether nodes save one array, which then is in no tuple
    plan     the names of the saved values, in order
    saves    whether any saved value is an array; then saved values are freed after use
    sources  for each saved value its source: None (not an array), ("in", i) the argument of the
             i-th wanted gradient, ("in", None) a constant argument, ("out", k) the k-th output; for
             a list of arrays a tuple of these
    library  the library of the arrays, if this is the rule of nodes
    make     makes the vjp when it is first needed, since many patterns never are
    """

    op: Op
    needs: Needs
    make: Callable[[], Callable[..., Any]]
    plan: tuple[str, ...]
    single: bool
    sources: tuple[Any, ...]
    library: Any = None
    saves: bool = field(init=False)
    alone: bool = field(init=False)
    xp: Any = field(init=False)
    vjp: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        self.saves = any(source is not None for source in self.sources)
        self.alone = is_alone(self.op, self.sources)
        self.xp = None if self.library is None else self.library.xp

    def together(self, values: Sequence[Any]) -> Any:
        """Values in the form in which nodes save them."""
        return values[0] if self.alone else tuple(values)

    def __getattr__(self, name: str) -> Any:
        if name != "vjp":
            raise AttributeError(name)
        self.vjp = self.make()
        return self.vjp
