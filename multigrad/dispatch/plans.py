"""What generated functions know of operations on arrays of one Element: plans, which live on the
Elements.

There is one way to drop them, `forget`, after an operation or a backend was replaced: whatever was
generated from an old declaration is reached through a plan only, so a function that is held from
before computes nothing by an old rule.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..core.element import Element, all_plans
from ..core.pullback import Needs
from ..core.tensor import Tensor, View
from ..registry import OPS, Op, Rule
from .codegen import raw_function
from .pullbacks import pullback_of

if TYPE_CHECKING:
    from collections.abc import Callable

CHOICES: tuple[Needs, ...] = ((False, True, False), (False, False, True), (False, True, True))
"""Which gradients of an operation of the kind of `where` may be wanted: its first array has no
rule.
"""
PAIRS: tuple[Needs, ...] = ((True, False), (False, True), (True, True))
"""Which gradients of an operation on two arrays may be wanted."""


def conforms(op: Op) -> bool:
    """Whether gradients must be given the shape and dtype of equally shaped arguments of one dtype.

    The rules of our own elementwise operations give them by themselves, which the tests see to.
    """
    return op.kind != "elementwise" or not op.module.startswith("multigrad.")


class Plan:
    """What the straight code of one operation needs, for operands and a result of one Element.

    fn        what carries it out on the values: the library's function, or, on layers, our own
    same      whether the result is of the operands' Element; else it is of booleans
    constant  makes a 0-d array of a Python scalar. None where scalars are passed on: to layers
              always, on which an array would be saved
    r1, ...   the pullbacks by which gradients are wanted; b1, ... those that also sum over
              broadcast axes
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
        """A pullback, when it is first needed."""
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
    """Note how `op` turns out on `elem`, so that straight code can take it from now on.

    Returns `result`.

    inner  gives the function that carries out an operation on layers

    Only results of the same dtype, and comparisons: others may depend on a setting of the library
    (jax_enable_x64).
    """
    if op.view == "layout" and type(result) is Tensor:  # the next result may be a view
        return result
    out: Any = getattr(result, "_elem", None)
    plan: Any = False
    # not the argument itself, say
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
    """Whether what is kept, or the kind of the result, is found by looking at a raw array."""
    if op.view == "layout":
        return True
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    return any(
        n.endswith(("_device", "_order")) or n in rule.residuals
        for rule in rules
        for n in rule.takes
    )


def note(op: Op, elem: Element, key: Any, plan: Any) -> None:
    """Remember a plan of `op`, unless that has been replaced."""
    with _noting:
        if OPS.get(op.name) is op:
            elem.plans[key] = plan


_noting = threading.RLock()


def forget() -> None:
    """Drop all plans."""
    with _noting:
        for plans in all_plans():
            plans.clear()
