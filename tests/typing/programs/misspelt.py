"""What type checkers refuse.

Each line is an error by mypy and by pyright: either of them reports a comment that ignores nothing.
"""

from __future__ import annotations

import multigrad as mg
from multigrad import autograd, func
from multigrad.typing import Namespace
from multigrad_autograd import grad

a = mg.asarray([1.0, 2.0], requires_grad=True)
xp = mg.namespace("numpy")


def loss(w: mg.Tensor, x: mg.Tensor, scale: float = 1.0) -> mg.Tensor:
    return mg.sum(w * x) * scale


g = func.value_and_grad(loss)

mg.softmx(a)  # type: ignore[attr-defined]
mg.sum(a, axs=0)  # type: ignore[call-arg]
mg.sum([1.0, 2.0])  # type: ignore[arg-type]
mg.sum(a, axis="0")  # type: ignore[arg-type]
mg.linalg.slove(mg.eye(2), a)  # type: ignore[attr-defined]
mg.fft.ftt(a)  # type: ignore[attr-defined]
mg.asarray(a, requires_gard=True)  # type: ignore[call-arg]
mg.zeros(2, requires_gard=True)  # type: ignore[call-arg]
g(a, nonsense=3)  # type: ignore[call-arg]
g(a, "x")  # type: ignore[arg-type]
func.grad(loss)(a, a, 1.0, 2.0)  # type: ignore[call-arg]
func.hessian(loss)(a, a, nonsense=3)  # type: ignore[call-overload]
func.hessian(loss)("a", a)  # type: ignore[call-overload]
func.jvp(loss, a, a, starting=True)  # type: ignore[call-overload]
grad(loss)(a, a, nonsense=3)  # type: ignore[call-arg]
func.garde(loss)  # type: ignore[attr-defined]
a.backwrd()  # type: ignore[attr-defined]
a.summ()  # type: ignore[attr-defined]
a.sum(axs=0)  # type: ignore[call-arg]
a.grad.shape  # type: ignore[union-attr]
a.requires_grad = "yes"  # type: ignore[assignment]
xp.sinh1(a)  # type: ignore[attr-defined]
xp.linalg.sovle(a, a)  # type: ignore[attr-defined]
autograd.grd(a, a)  # type: ignore[attr-defined]
autograd.graph.darw(a)  # type: ignore[attr-defined]
autograd.grad(a, a, create_grph=True)  # type: ignore[call-overload]
autograd.functional.jacobian(loss, (a, a), vectorise=True)  # type: ignore[call-overload]
autograd.functional.jacobain(loss, (a, a))  # type: ignore[attr-defined]
mg.no_grads()  # type: ignore[attr-defined]


@mg.no_grad()
def evaluate(x: mg.Tensor) -> mg.Tensor:
    return x


evaluate(a, b=1)  # type: ignore[call-arg]


def annotated(xp: Namespace) -> mg.Tensor:
    return xp.summ(a)  # type: ignore[attr-defined, no-any-return]
