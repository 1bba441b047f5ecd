"""What type checkers know of typical expressions: one line each, which both assert.

`make types` runs them, and tests/typing/test_stubs.py the program.

Any is left where the meaning depends on what the program does when it runs: `.array`, dtypes and
devices are those of any library, and what is derived by the parameter of a lambda has the type of
whatever the lambda is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import multigrad as mg
from multigrad import autograd, func
from multigrad.autograd import functional
from multigrad.autograd.function import FunctionCtx
from multigrad.typing import Namespace

T = mg.Tensor
Params = dict[str, T]
Raw = NDArray[np.float64]


def loss(w: T, x: T, scale: float = 1.0) -> T:
    return mg.sum(w * x) * scale


def energy(t: T) -> T:
    return mg.sum(t * t * t)


def square(t: T) -> T:
    return t * t


def both(t: T) -> tuple[T, T]:
    return t, t * t


def counted(t: T) -> tuple[T, int]:
    return mg.sum(t * t), 1


def fit(params: Params, x: T) -> T:
    return mg.sum(params["w"] * x)


def of_arrays(x: Raw) -> Raw:
    return x * x


class Exp(autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: T) -> T:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: FunctionCtx, g: T) -> T:
        return g * ctx.saved_tensors[0]


class Parts(autograd.Function):
    @staticmethod
    def forward(x: T, n: int) -> tuple[T, T]:
        return x[:n], x[n:]

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: FunctionCtx, g: T, h: T) -> tuple[T, None]:
        return mg.concat([g, h]), None


a = mg.asarray([1.0, 2.0], requires_grad=True)
w, x, m = a.detach(), mg.ones(2), mg.eye(2)
r = np.ones(2)
xp = mg.namespace("numpy")

# Tensors
assert_type(mg.tensor([1.0]), T)
assert_type(mg.asarray(r, dtype="float64", backend="numpy", requires_grad=True), T)
assert_type(a.grad, T | None)
assert_type(a.shape, tuple[int, ...])
assert_type(x.numpy(), NDArray[Any])
assert_type(x.clone().requires_grad_(), T)
assert_type(xp, Namespace)
assert_type(a + 1, T)
assert_type(1 - a, T)
assert_type(a * r, T)
assert_type(a[0], T)
assert_type(a > 0, T)
assert_type(abs(-a), T)
assert_type(a.sum(axis=0), T)

# operations
assert_type(mg.sum(r), T)
assert_type(mg.where(a > 0, a, 0.0), T)
assert_type(mg.linalg.svd(m, full_matrices=False).Vh, T)
assert_type(mg.linalg.eigh(m).eigenvalues, T)
assert_type(mg.fft.fft(a), T)
assert_type(mg.meshgrid(a, a), tuple[T, ...])
assert_type(mg.unique_all(x).values, T)
assert_type(xp.linalg.solve(m, a), T)
assert_type(mg.pi, float)

# autograd
e = energy(a)
assert_type(autograd.grad(e, a, create_graph=True), tuple[T, ...])
assert_type(
    autograd.grad([e], (a, x.requires_grad_()), allow_unused=True, retain_graph=True),
    tuple[T | None, ...],
)
assert_type(
    autograd.grad(e, a, allow_unused=True, materialize_grads=True, retain_graph=True), tuple[T, ...]
)
assert_type(autograd.grad(e, {"a": a}), Params)
assert_type(functional.jacobian(square, w), T)
assert_type(functional.jacobian(lambda t: t * t, w), T)
assert_type(functional.jacobian(loss, (w, x)), tuple[T, ...])
assert_type(functional.jacobian(both, w), tuple[T, T])
assert_type(functional.hessian(energy, w), T)
assert_type(functional.hessian(loss, (w, x)), tuple[tuple[T, ...], ...])
assert_type(functional.vjp(square, w, x), tuple[T, T])
assert_type(functional.vjp(loss, (w, x)), tuple[T, tuple[T, ...]])
assert_type(functional.jvp(square, w, x), tuple[T, T])
assert_type(functional.vhp(energy, w, x), tuple[T, T])
assert_type(functional.hvp(loss, (w, x), (w, x)), tuple[T, tuple[T, ...]])
assert_type(Exp.apply(a), T)
assert_type(Parts.apply(a, 1), tuple[T, T])

# func: first derivatives
assert_type(func.grad(loss)(w, x, scale=2.0), T)
assert_type(func.grad(loss, argnums=1)(w, x), T)
assert_type(func.grad(loss, (0, 1))(w, x), tuple[T, T])
assert_type(func.grad(fit)({"w": w}, x), Params)
assert_type(func.grad(func.grad(lambda t: t * t * t))(r[0]), Any)
assert_type(func.value_and_grad(loss)(w, x, 2.0), tuple[T, T])
assert_type(func.value_and_grad(counted, has_aux=True)(w), tuple[tuple[T, int], T])
assert_type(func.value_and_grad(lambda t: mg.sum(t * t))(w), tuple[T, Any])
assert_type(func.vjp(loss, w, x), tuple[T, Callable[[T], tuple[T, T]]])
assert_type(func.jvp(square, (w,), (x,)), tuple[T, T])
assert_type(func.jvp(square, w, x), tuple[T, T])
assert_type(func.jvp(of_arrays, r, r), tuple[Raw, Raw])
assert_type(func.jvp(counted, w, x, has_aux=True), tuple[T, T, int])
assert_type(func.linearize(square, w), tuple[T, Callable[[T], T]])

# func: Jacobians and second derivatives
assert_type(func.jacrev(square)(w), T)
assert_type(func.jacrev(lambda t: mg.sum(t * t))(w), T)
assert_type(func.jacfwd(loss, 1)(w, x), T)
assert_type(func.jacobian(loss, (0, 1))(w, x), tuple[T, T])
assert_type(func.jacrev(both)(w), tuple[T, T])
assert_type(func.jacrev(counted, has_aux=True)(w), tuple[T, int])
assert_type(func.jacrev(fit)({"w": w}, x), Any)
assert_type(func.hessian(energy)(w), T)
assert_type(func.hessian(loss, (0, 1))(w, x), tuple[tuple[T, T], tuple[T, T]])
assert_type(func.hvp(energy, (w,), (x,)), tuple[T, tuple[T]])
assert_type(func.hvp(energy, w, x), tuple[T, T])
assert_type(func.hvp(lambda t: mg.sum(t * t), w, x), tuple[T, T])
assert_type(func.hvp(counted, w, x, has_aux=True), tuple[T, T, int])

# func: programs
assert_type(func.vmap(func.grad(energy))(m), T)
assert_type(func.vmap(func.hessian(energy))(m), T)
assert_type(func.compile(func.grad(loss))(w, x), T)
assert_type(func.checkpoint(loss)(w, x), T)
assert_type(func.fori_loop(0, 3, lambda i, t: 2.0 * t, w), T)
assert_type(func.switch(0, [square, energy], w), T)
assert_type(func.tree.map(lambda t: 2.0 * t, {"w": w}), Params)
