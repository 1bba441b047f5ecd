"""Plans: the data that generated functions use for operations on arrays of one Element.

Each Element holds its plans, by operation.

`forget` drops them after an operation or a backend was replaced. Code generated from an old
declaration is reached through a plan only, so a function obtained before never uses an old rule.

`interpreted` switches generated code off: without plans every operation takes the general path.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .. import locks
from ..core.element import Element, all_plans
from ..core.level import restored, settle, undo
from ..core.pullback import Needs
from ..core.tensor import Tensor, View
from ..registry import OPS, Op, Rule
from .codegen import raw_function
from .names import meanings
from .pullbacks import pullback_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHOICES: tuple[Needs, ...] = ((False, True, False), (False, False, True), (False, True, True))
"""The patterns of wanted gradients of operations like `where`, whose first array has no rule."""
PAIRS: tuple[Needs, ...] = ((True, False), (False, True), (True, True))
"""The patterns of wanted gradients of operations on two arrays."""


def conforms(op: Op) -> bool:
    """Whether gradients must be converted to the shape and dtype of equally shaped arguments.

    The rules of multigrad's own elementwise operations need no conversion; tests check that.
    """
    return op.kind != "elementwise" or not op.module.startswith("multigrad.")


class Plan:
    """The data for the straight code of one operation, for operands and a result of one Element.

    fn        carries it out on the values: the library's function, or, on layers, multigrad's own
    same      whether the result has the operands' Element; otherwise it is boolean
    constant  makes a 0-d array of a Python scalar. None if scalars are passed on: always for
              layers, where an array would be saved
    r1, ...   the pullbacks by wanted gradients; b1, ... those that also sum over broadcast axes
    """

    __slots__ = (
        "b1",
        "b2",
        "b12",
        "complex",
        "constant",
        "fn",
        "library",
        "op",
        "r1",
        "r2",
        "r12",
        "same",
        "xp",
    )

    def __init__(self, op: Op, elem: Element, fn: Callable[..., Any], same: bool) -> None:
        self.library = elem.library
        self.xp = elem.library.xp
        self.fn = fn
        self.same = same
        self.constant = (
            elem.library.backend.kernels.get("constant")
            if elem.floating and not elem.layered
            else None
        )
        self.op = op
        self.complex = same and elem.complex

    def __getattr__(self, name: str) -> Any:
        """Make a pullback when it is first needed."""
        if name not in ("r1", "r2", "r12", "b1", "b2", "b12"):
            raise AttributeError(name)
        n = len(self.op.arrays)
        needs = (
            (True,) if n == 1 else (CHOICES if n == 3 else PAIRS)[("1", "2", "12").index(name[1:])]
        )
        rule = pullback_of(
            self.op, needs, self.complex, name[0] == "b" or conforms(self.op), self.library
        )
        setattr(self, name, rule)
        return rule


def learn(inner: Callable[[Op], Callable[..., Any]], op: Op, elem: Element, result: Any) -> Any:
    """Note the result of `op` on `elem`, so that straight code handles it from now on.

    Returns `result`.

    inner  returns the function that carries out an operation on layers

    Only results of the same dtype, and comparisons, are noted. Others may depend on a setting of
    the library (jax_enable_x64).
    """
    if op.view == "layout" and type(result) is Tensor:  # the next result may be a view
        return result
    out: Any = getattr(result, "_elem", None)
    plan: Any = False
    # not, for instance, the argument itself
    if type(result) is (View if op.view else Tensor) and op.name not in elem.library.backend.rules:
        if out.level != elem.level or out.layered is not elem.layered:
            return result
        same = out.base is elem.base
        if (same or (op.kind == "nondifferentiable" and out.bool)) and not (
            elem.layered and asks_the_library(op)
        ):
            plan = Plan(
                op, elem, inner(op) if elem.layered else raw_function(elem.library, op.name), same
            )
    note(op, elem, op, plan)
    return result


def asks_the_library(op: Op) -> bool:
    """Whether the saved values, or the kind of the result, depend on a test of a raw array."""
    if op.view == "layout":
        return True
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    taken = [meanings(op)[n] for rule in rules for n in rule.takes]
    return any(m.kind == "residual" or m.what in ("device", "order") for m in taken)


def note(op: Op, elem: Element, key: Any, plan: Any) -> None:
    """Keep a plan of `op`, unless the operation has been replaced, or nothing is to be learnt."""
    with _noting:
        if OPS.get(op.name) is op and not interpreting():
            elem.plans[key] = plan


_noting = locks.new_lock()


def forget() -> None:
    """Drop all plans."""
    with _noting:
        for plans in all_plans():
            plans.clear()


_interpreting: ContextVar[bool] = restored(ContextVar("multigrad.interpreting", default=False))
interpreting = _interpreting.get
"""Whether operations take the general path in this context, and nothing is learnt.

What writes generated code asks this, and the functions of the debug mode; generated code does not.
"""


@contextmanager
def interpreted(drop: bool = True) -> Iterator[None]:
    """Let every operation take the general path inside, as its first call does.

    drop  whether to drop what was learnt before, for all threads. The functions of the debug mode
          do not use it inside in any case
    """
    before = undo()
    try:
        _interpreting.set(True)
        if drop:
            forget()
        yield
    finally:
        settle(before[0])
