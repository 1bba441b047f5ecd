"""A program that runs for days, with the garbage collector off: each iteration frees what it made."""

from __future__ import annotations

import dataclasses
import gc
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad, functional, graph

X, ROWS = np.ones(3), np.ones((2, 3))
w = mg.asarray(X, requires_grad=True)


def loss(t: Any) -> Any:
    return mg.sum(mg.sin(t) * t)


def step() -> None:
    w.grad = None
    loss(w).backward()
    with mg.no_grad():
        w[...] = w - 0.0 * w.grad


def training() -> None:
    """A step of gradient descent on parameters that are made anew."""
    params = {"w": X, "b": np.zeros(3)}
    gradients = func.grad(lambda p: mg.sum((p["w"] * 2.0 + p["b"]) ** 2))(params)
    {name: params[name] - 0.1 * gradients[name] for name in params}


def compiled() -> None:
    f = func.compile(loss)
    for _ in range(3):
        f(X)
    g = func.compile(func.grad(lambda t: loss(t) if mg.sum(t) > 0 else mg.sum(t)))
    for sign in (1.0, -1.0, 1.0):
        g(sign * X)


def compiled_error() -> None:
    f = func.compile(lambda t: mg.sum(t, axis=7))
    with pytest.raises(ValueError, match="axis"):
        f(X)


def custom_vjp() -> None:
    @func.custom_vjp
    def tripled(t: Any) -> Any:
        return t * 3.0

    tripled.defvjp(lambda t: (t * 3.0, None), lambda residuals, g: (g * 3.0,))
    func.vmap(func.grad(lambda t: mg.sum(tripled(t))))(ROWS)


def custom_jvp() -> None:
    @func.custom_jvp
    def tripled(t: Any) -> Any:
        return t * 3.0

    tripled.defjvp(lambda primals, tangents: (primals[0] * 3.0, tangents[0] * 3.0))
    func.jvp(tripled, (X,), (X,))
    func.grad(lambda t: mg.sum(tripled(t)))(X)


class Doubled(mg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(t: Any) -> Any:
        return t * 2.0

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0 + 0.0 * ctx.saved_tensors[0]


def functions() -> None:
    mg.sum(Doubled.apply(w)).backward()
    func.vmap(func.grad(lambda t: mg.sum(Doubled.apply(t))))(ROWS)


def profiled() -> None:
    for memory in (False, True):
        with mg.autograd.profiler.profile(profile_memory=memory) as p:
            loss(w).backward()
        str(p.key_averages())


def hooks() -> None:
    y = w * 2.0
    y.retain_grad()
    handles = [y.register_hook(lambda g: g * 1.0), w.register_hook(lambda g: None)]
    y.grad_fn.register_hook(lambda *_: None)
    handles.append(graph.register_multi_grad_hook([y, w], lambda g: None))
    mg.sum(y).backward()
    for handle in handles:
        handle.remove()
    v = mg.asarray(X, requires_grad=True)
    v.register_post_accumulate_grad_hook(lambda t: None)
    mg.sum(v * v).backward()


def saved() -> None:
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = loss(w)
    y.backward()
    with graph.allow_mutation_on_saved_tensors():
        y = w * 1.0
        z = y * y
        y += 1.0
    mg.sum(z).backward()


def writes() -> None:
    y = w * 1.0
    v = y[0:2]
    v[0] = 5.0
    v *= 2.0
    mg.sum(y).backward()


def threads() -> None:
    thread = threading.Thread(target=lambda: loss(w).backward())
    thread.start()
    thread.join()


def checkpoints() -> None:
    mg.sum(func.checkpoint(mg.sin)(w)).backward()
    func.grad(lambda t: mg.sum(func.checkpoint(mg.sin)(t)))(X)


def loops() -> None:
    func.grad(lambda t: mg.sum(func.scan(lambda c, v: (c + v, c * v), t, ROWS)[1]))(X)
    func.while_loop(lambda c: mg.sum(c) < 20.0, lambda c: c * 2.0, X)
    func.grad(lambda t: mg.sum(func.cond(mg.sum(t) > 0.0, lambda u: u * 2.0, lambda u: u, t)))(X)


def recorded() -> None:
    (g,) = mg.autograd.grad(mg.sum(w * w * w), w, create_graph=True)
    mg.autograd.grad(g.sum(), w)
    functional.hessian(lambda t: mg.sum(t * t), w)


def forward_mode() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(mg.asarray(X), mg.asarray(X))
        forward_ad.unpack_dual(mg.sin(dual))


def watched() -> None:
    with mg.autograd.detect_anomaly(check_nan=False):
        loss(w).backward()
    with mg.autograd.detect_breaks() as report:
        loss(w).backward()
    str(report)
    graph.memory_report(loss(w))
    str(graph.draw(loss(w)))


def errors() -> None:
    for wrong in (lambda: mg.sum(w, axis=7), lambda: func.grad(lambda t: t)(X)):
        with pytest.raises((ValueError, RuntimeError, IndexError, TypeError)):
            wrong()


@dataclasses.dataclass
class Parameters:
    value: Any


PROGRAMS: dict[str, Callable[[], Any]] = {
    "a step on the tape": step,
    "a step with func.grad": training,
    "grad of grad": lambda: func.grad(lambda s: mg.sum(func.grad(loss)(s)))(X),
    "vmap": lambda: func.vmap(func.grad(loss))(ROWS),
    "Jacobians": lambda: (func.jacrev(mg.sin)(X), func.jacfwd(mg.sin)(X), func.hessian(loss)(X)),
    "a pullback": lambda: func.vjp(mg.sin, X)[1](X),
    "compile": compiled,
    "compile of an error": compiled_error,
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "Function": functions,
    "profile": profiled,
    "hooks": hooks,
    "saved": saved,
    "writes": writes,
    "threads": threads,
    "checkpoint": checkpoints,
    "loops": loops,
    "create_graph": recorded,
    "forward_ad": forward_mode,
    "tools": watched,
    "errors": errors,
    "NumPy's functions": lambda: np.sum(np.sin(w) * w).backward(),
    "a dataclass": lambda: func.grad(lambda p: mg.sum(p.value**2))(Parameters(X)),
}


def run(program: Callable[[], Any], count: int) -> tuple[int, Counter[str], float]:
    """Objects that are left, those that the collector would have freed, and bytes, of `count`
    iterations; the bytes for each.
    """
    for _ in range(12):  # what is kept once, and generated after a few calls
        program()
    w.grad = None
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    tracemalloc.start()
    try:
        for _ in range(count // 4):
            program()
        w.grad = None
        objects, start = len(gc.get_objects()), tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            program()
        w.grad = None
        end = tracemalloc.get_traced_memory()[0]
        left = len(gc.get_objects()) - objects
        gc.collect()
        garbage = Counter(type(x).__qualname__ for x in gc.garbage)
    finally:
        tracemalloc.stop()
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.collect()
    return left, garbage, (end - start) / count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_left(name):
    left, garbage, _ = run(PROGRAMS[name], 16)
    assert left < 8 and garbage.total() < 16, (left, garbage)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_iterations(name):
    left, garbage, each = run(PROGRAMS[name], 1000)
    # Python keeps up to 2,000 freed tuples of each size, and the file name of each `compile`
    assert left < 100 and garbage.total() < 100 and each < 1000, (left, garbage, each)
