"""A program that uses every public area, as a user would write it: it passes `mypy --strict` and
pyright, and it runs. See tests/typing/test_stubs.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import multigrad as mg
from multigrad import autograd, func
from multigrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from multigrad.typing import Array, ArrayLike, Namespace

Params = dict[str, mg.Tensor]


# ----- making Tensors -----

a = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
b = mg.tensor(np.ones((2, 3)), dtype="float64", backend="numpy")
xp = mg.namespace("numpy")
assert_type(a, mg.Tensor)
assert_type(b, mg.Tensor)
assert_type(xp, Namespace)
assert_type(a.__array_namespace__(), Namespace)
assert_type(mg.zeros((2, 3), requires_grad=True), mg.Tensor)
assert_type(xp.linspace(0.0, 1.0, 5), mg.Tensor)
assert_type(mg.__version__, str)
for info in mg.backends():
    assert_type(info.name, str)


# ----- attributes, operators, methods -----

assert_type(a.ndim, int)
assert_type(a.requires_grad, bool)
assert_type(a.is_leaf, bool)
assert_type(a.T if a.ndim == 2 else a.mT if a.ndim > 2 else a, mg.Tensor)
assert_type(2.0 * a + a / 3 - a @ a, mg.Tensor)
assert_type(a[a > 1.5], mg.Tensor)
assert_type(a == 1.0, mg.Tensor)
assert_type(a.exp().sum(), mg.Tensor)
assert_type(a.sum(0, keepdims=True), mg.Tensor)
assert_type(b.mean(axis=(0, 1)), mg.Tensor)
assert_type(a.reshape(3, 1).permute_dims(1, 0), mg.Tensor)
assert_type(b.max(axis=1), mg.Tensor)
assert_type(a.detach().numpy(), NDArray[Any])
assert_type(a.real, mg.Tensor)
assert_type([2.0 * row for row in b], list[mg.Tensor])
assert_type(len(b), int)
assert_type(float(a.detach()[0]), float)
c = a.detach().clone()
c += 1.0
c.exp_()
c[0] = 5.0
assert_type(c, mg.Tensor)


# ----- functions of the module and of a namespace -----

assert_type(mg.softmax(a), mg.Tensor)
assert_type(mg.sum(a, axis=0), mg.Tensor)
assert_type(mg.std(b, axis=0, correction=1.0), mg.Tensor)
assert_type(mg.where(a > 1.0, a, 0.0), mg.Tensor)
assert_type(mg.concat([a, a], axis=0), mg.Tensor)
assert_type(mg.linalg.svd(b, full_matrices=False).S, mg.Tensor)
assert_type(mg.linalg.solve(mg.eye(3), a), mg.Tensor)
assert_type(mg.fft.rfft(a), mg.Tensor)
assert_type(mg.unstack(b), tuple[mg.Tensor, ...])
assert_type(mg.average(a), mg.Tensor)
assert_type(mg.average(a, returned=True), tuple[mg.Tensor, mg.Tensor])
assert_type(mg.einsum("ij,j->i", b, a), mg.Tensor)
assert_type(mg.finfo(mg.float64).eps, float)
assert_type(mg.broadcast_shapes((2, 1), (3,)), tuple[int, ...])
assert_type(xp.sum(xp.exp(a)), mg.Tensor)
assert_type(xp.linalg.vector_norm(a), mg.Tensor)
assert_type(xp.isdtype(a.dtype, "real floating"), bool)


def normalized(x: Array, xp: Namespace) -> mg.Tensor:
    """Array-agnostic code."""
    return xp.divide(x, xp.linalg.vector_norm(x))


def scaled(x: ArrayLike) -> mg.Tensor:
    return mg.multiply(x, a)


assert_type(normalized(np.ones(3), xp), mg.Tensor)
assert_type(scaled(2.0), mg.Tensor)


# ----- autograd -----

loss = (a * a).sum()
loss.backward(retain_graph=True)
assert_type(autograd.gradcheck(lambda x: x * x, (a,)), bool)
handle = a.register_hook(lambda g: 2.0 * g)
handle.remove()
with mg.no_grad(), mg.enable_grad():
    pass
with autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
    pass
with autograd.profiler.profile() as profile:
    mg.exp(a)
with dual_level():
    dual = make_dual(a.detach(), mg.ones_like(a.detach()))
    assert_type(dual, mg.Tensor)
    assert_type(unpack_dual(dual).tangent, mg.Tensor | None)


@mg.no_grad()
def evaluate(x: mg.Tensor, scale: float = 1.0) -> mg.Tensor:
    return scale * x


assert_type(evaluate(a, scale=2.0), mg.Tensor)


# ----- func -----


def model(w: mg.Tensor, x: mg.Tensor, scale: float) -> mg.Tensor:
    return mg.sum(w * x) * scale


def with_aux(w: mg.Tensor, x: mg.Tensor) -> tuple[mg.Tensor, dict[str, int]]:
    return mg.sum(w * x), {"n": 1}


w, x = a.detach(), mg.ones(3)
assert_type(func.value_and_grad(model)(w, x, scale=2.0), tuple[mg.Tensor, mg.Tensor])
assert_type(
    func.value_and_grad(model, argnums=(0, 1))(w, x, 2.0),
    tuple[mg.Tensor, tuple[mg.Tensor, mg.Tensor]],
)
assert_type(func.grad(with_aux, has_aux=True)(w, x), tuple[mg.Tensor, dict[str, int]])
assert_type(func.vmap(model, in_axes=(None, 0, None))(w, b, 2.0), mg.Tensor)
square = func.grad(lambda t: mg.sum(t * t))
square(w)


def energy(t: mg.Tensor) -> mg.Tensor:
    return mg.sum(t * t)


value, pullback = func.vjp(energy, w)
assert_type(value, mg.Tensor)
assert_type(pullback(mg.asarray(1.0)), tuple[mg.Tensor])
vector, unravel = func.ravel_pytree({"w": w})
assert_type(unravel(vector), Params)


def step(carry: mg.Tensor, row: mg.Tensor) -> tuple[mg.Tensor, mg.Tensor]:
    return carry + row, carry * row


assert_type(func.scan(step, w, b), tuple[mg.Tensor, mg.Tensor])
assert_type(func.while_loop(lambda t: mg.sum(t) < 100.0, lambda t: 2.0 * t, w), mg.Tensor)
assert_type(func.cond(True, lambda t: 2.0 * t, lambda t: t, w), mg.Tensor)


@func.custom_vjp
def clipped(t: mg.Tensor) -> mg.Tensor:
    return mg.clip(t, 0.0, 1.0)


clipped.defvjp(lambda t: (clipped(t), t), lambda t, g: (mg.where(t < 1.0, g, 0.0),))
assert_type(clipped(w), mg.Tensor)


# ----- extending -----


class Counter(mg.extend.Observer):
    events = frozenset({"operation"})
    n = 0

    def begin(self, call: mg.extend.Call) -> None:
        self.n += 1


with Counter():
    mg.exp(w)
assert_type(mg.registry.OPS["exp"].name, str)


# ----- plugins -----

if TYPE_CHECKING:
    from multigrad_autograd import grad, make_vjp, value_and_grad
    from multigrad_special import functions as special

    assert_type(grad(model)(w, x, 2.0), Any)
    assert_type(value_and_grad(model, argnum=1)(w, x, scale=2.0), tuple[Any, Any])
    make_vjp(model, (0, 1))(w, x, 2.0)
    assert_type(special.erf(a), mg.Tensor)
    assert_type(special.polygamma(2, a), mg.Tensor)
