"""The rule of a node: the vjp of its operation, and what the node saves for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import Op

Needs = tuple[Any, ...]
"""Per array parameter: whether its gradient is wanted, a bool, or a tuple of bools for a list of
arrays.
"""


class Pullback:
    """The vjp of one operation for one pattern of wanted gradients.

    `vjp(xp, g, *saved)` returns the gradient if `single`, else a tuple with one per wanted
    argument; `plan` names what is saved, in order; `saves` says whether any of it is an array (then
    it is freed after use). `sources` tells for each saved value where it came from: None (no
    array), ("in", i) the i-th wanted gradient's argument, ("in", None) a constant argument, ("out",
    k) the k-th output; for a list of arrays a tuple of these. `library`: of what library the arrays
    are, where it is the rule of nodes. `make` returns the vjp, when it is first asked for: many a
    pattern is never met.
    """

    __slots__ = (
        "library",
        "make",
        "needs",
        "op",
        "plan",
        "saves",
        "single",
        "sources",
        "vjp",
        "xp",
    )
    vjp: Callable[..., Any]

    def __init__(
        self,
        op: Op,
        needs: Needs,
        make: Callable[[], Callable[..., Any]],
        plan: tuple[str, ...],
        single: bool,
        sources: tuple[Any, ...],
        library: Any = None,
    ) -> None:
        self.op = op
        self.needs = needs
        self.make = make
        self.plan = plan
        self.single = single
        self.saves = any(s is not None for s in sources)
        self.sources = sources
        self.library = library
        self.xp = None if library is None else library.xp

    def __getattr__(self, name: str) -> Any:
        if name != "vjp":
            raise AttributeError(name)
        self.vjp = self.make()
        return self.vjp
