"""Programs, a right result of each, and what must hold after a fault in one of them."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from io import StringIO
from typing import Any
from weakref import ref

import numpy as np

import multigrad as mg
from multigrad import extend, func, locks, registry
from multigrad.autograd import forward_ad, graph
from multigrad.core import graph as nodes
from multigrad.core import level
from multigrad.observe import Place

X, ROWS = np.array([0.5, -1.0, 2.0]), np.arange(6.0).reshape(2, 3)


def leaf(x: Any = X) -> Any:
    return mg.asarray(x, requires_grad=True)


def loss(t: Any) -> Any:
    return mg.sum(mg.sin(t) * t)


SLOPE = np.cos(X) * X + np.sin(X)


def backward() -> Any:
    w = leaf()
    y = mg.sin(mg.sin(w))
    for _ in range(3):
        mg.sum(y * w).backward(retain_graph=True)
    return w.grad


def create_graph() -> Any:
    w = leaf()
    (g,) = mg.autograd.grad(loss(w), w, create_graph=True)
    mg.sum(g * g).backward()
    return w.grad


def func_grad() -> Any:
    params = {"w": X, "b": X + 1.0}
    of_both = func.grad(lambda p: mg.sum((p["w"] * 2.0 + p["b"]) ** 2))(params)
    return of_both, func.grad(lambda t: mg.sum(func.grad(loss)(t)))(X)


def jvp() -> Any:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(mg.asarray(X), mg.asarray(X))
        parts = forward_ad.unpack_dual(mg.sin(dual))
        return func.jvp(loss, (X,), (X,)), parts.primal, parts.tangent


def vmap() -> Any:
    return func.vmap(func.grad(loss))(ROWS)


def hessian() -> Any:
    return func.hessian(loss)(X)


def checkpoint() -> Any:
    w = leaf()
    mg.sum(func.checkpoint(lambda t: mg.sin(t) * t)(w)).backward()
    return w.grad, func.grad(lambda t: mg.sum(func.checkpoint(mg.sin)(t)))(X)


def scan() -> Any:
    return func.grad(lambda t: mg.sum(func.scan(lambda c, v: (c + v, c * v), t, ROWS)[1]))(X)


def compile_first() -> Any:
    return func.compile(func.grad(lambda t: loss(t) if mg.sum(t) > 0 else mg.sum(t)))(X)


_compiled = func.compile(func.grad(lambda t: loss(t) if mg.sum(t) > 0 else mg.sum(t)))


def compile_replay() -> Any:
    return _compiled(X), _compiled(-X)


def hooks() -> Any:
    w, met = leaf(), []
    y = w * 2.0
    y.retain_grad()
    handles = [y.register_hook(lambda g: g * 3.0), w.register_hook(met.append)]
    y.grad_fn.register_hook(lambda *_: None)
    handles.append(graph.register_multi_grad_hook([y, w], met.append))
    w.register_post_accumulate_grad_hook(lambda t: met.append(t.grad))
    mg.sum(y).backward()
    for handle in handles:
        handle.remove()
    return w.grad, y.grad, met


def anomaly() -> Any:
    w = leaf()
    with mg.autograd.detect_anomaly(check_nan=True):
        loss(w).backward()
    return w.grad


def breaks() -> Any:
    w = leaf()
    with mg.autograd.detect_breaks() as report:
        y = loss(w)
        mg.sum(w.detach() * w).backward()
        y.backward()
    return w.grad, [b.kind for b in report]


class Scaled(mg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(t: Any) -> Any:
        return mg.sin(t) * 2.0

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (t,) = ctx.saved_tensors
        return g * 2.0 * mg.cos(t)


@func.custom_vjp
def tripled(t: Any) -> Any:
    return t * 3.0


tripled.defvjp(lambda t: (t * 3.0, None), lambda residuals, g: (g * 3.0,))


def custom() -> Any:
    w = leaf()
    mg.sum(Scaled.apply(w) * tripled(w)).backward()
    return w.grad, func.vmap(func.grad(lambda t: mg.sum(Scaled.apply(tripled(t)))))(ROWS)


def writes() -> Any:
    w = leaf()
    y = w * 1.0
    v = y[0:2]
    v[0] = 5.0
    v *= w[1:]
    u = mg.reshape(y, (3, 1))
    u += 1.0
    mg.sum(y * v[1]).backward()
    return w.grad, y


def writes_inside() -> Any:
    def written(t: Any) -> Any:
        y = mg.zeros(3) + t
        y[0] = t[1] * t[2]
        z = y[1:]
        z *= y[0]
        return mg.sum(y * y)

    return func.grad(written)(X), func.vmap(written)(ROWS), func.jvp(written, (X,), (X,))


def modes() -> Any:
    w, recorded = leaf(), []
    with mg.no_grad():
        recorded.append((w * 2.0).requires_grad)
        with mg.enable_grad():
            recorded.append((w * 2.0).requires_grad)
    with mg.inference_mode(), mg.set_grad_enabled(True):
        recorded.append((w * 2.0).requires_grad)
    mg.no_grad()(lambda: recorded.append((w * 2.0).requires_grad))()
    func.grad(lambda t: mg.sum(mg.no_grad()(mg.sin)(t) * t))(X)
    with mg.use_backend("numpy"):
        recorded.append(mg.zeros(2).shape)
    return recorded


def profile() -> Any:
    w = leaf()
    profiler = mg.autograd.profiler
    with profiler.profile(profile_memory=True) as p, profiler.record_function("part"):
        loss(w).backward()
    return w.grad, sorted({e.name for e in p.function_events})


def mutation() -> Any:
    w = leaf()
    with graph.allow_mutation_on_saved_tensors():
        y = w * 1.0
        z = y * y
        y += 1.0
        mg.sum(z).backward()
    return w.grad


def saved_hooks() -> Any:
    w = leaf()
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy(), mg.asarray):
        y = loss(w)
    with graph.disable_saved_tensors_hooks("not here"):
        mg.sum(w * w).backward()
    y.backward()
    return w.grad


def labels() -> Any:
    w = leaf()
    with graph.record_lines(), graph.label("part"):
        y = loss(w)
    graph.print_graph(y, file=(text := StringIO()))
    return text.getvalue()


class Noted(extend.Layer):
    """An array that notes the operations on it."""

    __slots__ = ("notes",)

    @classmethod
    def apply(cls, op: Any, args: Any, transform: Any) -> Any:
        (notes,) = {
            x for x in transform.map(lambda y: y.notes, args, lambda _: None) if x is not None
        }
        return cls.wrap(extend.carry_out(op, transform.unwrap(args)), transform, notes=notes)


class Log(list[str]):
    __hash__ = object.__hash__


class Told(extend.Observer):
    events = frozenset({"operation", "node"})

    def __init__(self) -> None:
        self.names: list[str] = []

    def begin(self, call: Any) -> None:
        self.names.append(call.name)


def extended() -> Any:
    """Declares an operation anew, so that all generated code is written again."""
    registry.elementwise(
        "faults.cube(x, /)",
        x=lambda xp, x: 3.0 * x * x,
        forward=lambda xp, x: x * x * x,
        override=True,
    )
    transform = extend.Transform("noted")

    def run() -> Any:
        x = Noted.wrap(X, transform, notes=Log())
        return transform.unwrap(mg.faults.cube(x) + mg.sin(x))

    with Told() as told:
        w = leaf()
        mg.sum(mg.faults.cube(w)).backward()
    return (
        w.grad,
        transform.call(run),
        told.names,
        func.grad(lambda t: mg.sum(mg.faults.cube(t)))(X),
    )


PROGRAMS: dict[str, Callable[[], Any]] = {
    "backward": backward,
    "create_graph": create_graph,
    "func.grad": func_grad,
    "jvp": jvp,
    "vmap": vmap,
    "hessian": hessian,
    "checkpoint": checkpoint,
    "scan": scan,
    "compile, first call": compile_first,
    "compile, replay": compile_replay,
    "hooks": hooks,
    "anomaly mode": anomaly,
    "detect_breaks": breaks,
    "custom derivatives": custom,
    "writes on views": writes,
    "writes in transformations": writes_inside,
    "modes": modes,
    "profile": profile,
    "mutation of saved": mutation,
    "hooks for saved": saved_hooks,
    "labels": labels,
    "registration": extended,
}


# What must hold


def plain(x: Any) -> Any:
    """A result as Python objects that `==` compares."""
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, mg.Tensor):
        x = x.detach().array
    return np.asarray(x).tolist() if hasattr(x, "dtype") else x


@cache
def _kept(loaded: int) -> dict[str, Callable[[], Any]]:
    """How to look at the context variables, thread-local values and flags of that many modules."""
    found: dict[str, Callable[[], Any]] = {}
    for module in list(sys.modules.values())[:loaded]:
        own = module.__name__.startswith(("multigrad.", "multigrad_"))
        for name, value in list(vars(module).items()) if own else ():
            if isinstance(value, ContextVar):
                found[value.name] = partial(_compared, value)
            elif type(value) is threading.local:
                found[f"{module.__name__}.{name}"] = lambda x=value: {
                    k: len(v) for k, v in vars(x).items()
                }
            elif type(value) is bool:
                found[f"{module.__name__}.{name}"] = partial(getattr, module, name)
    return found


def _compared(variable: ContextVar[Any]) -> Any:
    try:
        now = variable.get()  # its default is a value like any other
    except LookupError:
        now = None
    if isinstance(now, Place):
        return now.label, now.rule
    return now() if isinstance(now, ref) else now


def state() -> dict[str, Any]:
    """What multigrad keeps of the code that is running, and what it might change of Python's."""
    found = {name: look() for name, look in _kept(len(sys.modules)).items()}
    return found | {
        "revived": dict(level._revived),
        "watched": set(nodes.watched),
        "forks": dict(locks._taken),
        "locks held": [lock for lock in locks._all() if not repr(lock).startswith("<unlocked")],
        "np.errstate": np.geterr(),
        "warnings": list(warnings.filters),
        "tracing": (sys.gettrace(), sys.getprofile()),
        "collector": gc.isenabled(),
        "handlers": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)],
    }


def check_state(before: dict[str, Any], after: object = "") -> None:
    """The state is that of `before`, and gradients are right."""
    now = state()
    changed = {k: (before.get(k), v) for k, v in now.items() if v != before.get(k)}
    assert not changed, f"after {after}: {changed}"
    w = leaf()
    loss(w).backward()
    assert np.array_equal(w.grad.numpy(), SLOPE), w.grad
    assert np.array_equal(func.grad(loss)(X), SLOPE)
    assert np.array_equal(func.jvp(loss, (X,), (X,))[1], np.sum(SLOPE * X))


@contextmanager
def warmed_up(program: Callable[[], Any]) -> Iterator[None]:
    """Run it until it is generated, with a collector that passes over what exists already."""
    unraisable, sys.unraisablehook = sys.unraisablehook, lambda _: None
    for _ in range(15):
        program()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        program()
        yield
    finally:
        gc.enable()
        gc.unfreeze()
        sys.unraisablehook = unraisable
