"""What generated functions know of operations on arrays of one Element: plans, which live on the Elements.

There is one way to drop them, `forget`, after an operation or a backend was replaced: whatever was generated from an old declaration is
reached through a plan only, so a function that is held from before computes nothing by an old rule.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..registry import OPS, Op, Rule
from .element import Element, all_plans
from .rules import Needs, Pullback, pullback_of, raw_function
from .tensor import Tensor, View

if TYPE_CHECKING:
    from collections.abc import Callable

Plans = dict[Any, Any]

CHOICES: tuple[Needs, ...] = ((False, True, False), (False, False, True), (False, True, True))
"""Which gradients of an operation of the kind of `where` may be wanted: its first array has no rule."""


def conforms(op: Op) -> bool:
    """Whether gradients must be given the shape and dtype of equally shaped arguments of one dtype.

    The rules of our own elementwise operations give them by themselves, which the tests see to.
    """
    return op.kind != "elementwise" or not op.module.startswith("multigrad.")


class Plan:
    """What the straight code of one operation needs, for operands and a result of one Element.

    fn        what carries it out on the values: the library's function, or, on layers, our own
    same      whether the result is of the operands' Element; else it is of booleans
    constant  makes a 0-d array of a Python scalar. None where scalars are passed on: to layers always, on which an array would be saved
    r1, ...   the pullbacks by which gradients are wanted; b1, ... those that also sum over broadcast axes
    """

    __slots__ = ("b1", "b2", "b12", "constant", "fn", "host", "r1", "r2", "r12", "same", "xp")

    def __init__(self, op: Op, elem: Element, fn: Callable[..., Any], same: bool) -> None:
        self.host = elem.host
        self.xp = elem.host.xp
        self.fn = fn
        self.same = same
        self.constant = elem.host.backend.kernels.get("constant") if elem.floating and not elem.layered else None
        if elem.floating and op.kind != "nondifferentiable":
            complex_ = same and elem.complex

            def rule(needs: Needs, conform: bool) -> Pullback:
                return pullback_of(op, needs, complex_, conform, elem.host)

            if len(op.arrays) == 3:
                self.b1, self.b2, self.b12 = (rule(needs, True) for needs in CHOICES)
            elif len(op.arrays) == 1:
                self.r1 = rule((True,), conforms(op))
            else:
                if not conforms(op):
                    self.r1, self.r2, self.r12 = rule((True, False), False), rule((False, True), False), rule((True, True), False)
                self.b1, self.b2, self.b12 = rule((True, False), True), rule((False, True), True), rule((True, True), True)


def learn(op: Op, elem: Element, result: Any, inner: Callable[..., Any]) -> Any:
    """Note how `op` turns out on `elem`, so that straight code can take it from now on. Returns `result`.

    inner  carries out the operation on layers

    Only results of the same dtype, and comparisons: others may depend on a setting of the library (jax_enable_x64).
    """
    if op.view == "layout" and type(result) is Tensor:  # the next result may be a view
        return result
    out: Any = getattr(result, "_elem", None)
    plan: Any = False
    if type(result) is (View if op.view else Tensor) and op.name not in elem.host.backend.rules:  # not the argument itself, say
        if out.level != elem.level or out.layered is not elem.layered:
            return result
        same = out.base is elem.base
        if (same or (op.kind == "nondifferentiable" and out.bool)) and not (elem.layered and asks_the_library(op)):
            plan = Plan(op, elem, inner if elem.layered else raw_function(elem.host, op.name), same)
    note(op, elem, op, plan)
    return result


def asks_the_library(op: Op) -> bool:
    """Whether what is kept, or the kind of the result, is found by looking at a raw array."""
    if op.view == "layout":
        return True
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    return any(n.endswith(("_device", "_order")) or n in rule.residuals for rule in rules for n in rule.takes)


def note(op: Op, elem: Element, key: Any, plan: Any) -> None:
    """Remember a plan of `op`, unless plans are set aside, or `op` has been replaced."""
    with _noting:
        if _aside is None and OPS.get(op.name) is op:
            elem.plans[key] = plan


_noting = threading.RLock()
_aside: list[tuple[Plans, Plans]] | None = None
"""The plans, each with what it held, while they are set aside and nothing is noted."""


def forget() -> None:
    """Drop all plans."""
    global _aside
    with _noting:
        for plans in all_plans():
            plans.clear()
        _aside = None if _aside is None else []


def set_aside() -> None:
    """Close the straight code: until `bring_back`, every operation takes the general path."""
    global _aside
    with _noting:
        _aside = [(plans, plans.copy()) for plans in all_plans()]
        for plans, _ in _aside:
            plans.clear()


def bring_back() -> None:
    """Open the straight code again."""
    global _aside
    with _noting:
        for plans, before in _aside or ():
            plans.update(before)
        _aside = None


def open_() -> bool:
    """Whether the straight code is open."""
    return _aside is None
