"""Programs that run for days: one iteration of each, which takes its number and varies with it."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import copy
import dataclasses
import functools
import gc
import itertools
import pickle
import string
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend, func, registry
from multigrad.autograd import forward_ad, functional, graph

X, ROWS = np.ones(3), np.ones((2, 3))
w = mg.asarray(X, requires_grad=True)
LEAVES = [mg.asarray(X, requires_grad=True) for _ in range(6)]
CONSTANTS = [mg.asarray(X) for _ in range(6)]


class Program(NamedTuple):
    """One iteration, `run(i)`, and what it may leave.

    warm     iterations after which all caches that it fills are full
    cycles   how many objects of an iteration only the collector frees
    writes   whether each iteration writes code, and compiles it
    numbers  the numbers of iterations that were not run yet in this process
    """

    run: Callable[[int], Any]
    warm: int
    cycles: int
    writes: bool
    numbers: Iterator[int]


PROGRAMS: dict[str, Program] = {}


def program(
    name: str, warm: int = 20, cycles: int = 0, writes: bool = False
) -> Callable[[Callable[[int], Any]], None]:
    def note(run: Callable[[int], Any]) -> None:
        PROGRAMS[name] = Program(run, warm, cycles, writes, itertools.count())

    return note


@functools.cache
def optional(name: str) -> Any:
    """A module that may be missing. The collector need not look at what it has made."""
    module = pytest.importorskip(name)
    gc.collect()
    gc.freeze()
    return module


def loss(t: Any) -> Any:
    return mg.sum(mg.sin(t) * t)


# Lengths, shapes, dtypes, libraries


def lengths(i: int) -> Any:
    """NumPy keeps the memory of arrays of less than 1,024 bytes, of each size."""
    return np.ones(1100 + i)


@program("lengths")
def _(i: int) -> None:
    t = mg.asarray(lengths(i), requires_grad=True)
    loss(t[1:] * 2.0).backward()
    func.grad(loss)(lengths(i))
    func.jvp(loss, (lengths(i),), (lengths(i),))


@program("lengths of dimensions")
def _(i: int) -> None:
    """Shapes, permutations and axes."""
    shape = tuple(1 + (i >> k) % 2 for k in range(i % 6))
    t = mg.asarray(np.ones(shape), requires_grad=True)
    y = mg.broadcast_to(t, (2, *shape)).reshape(-1) * 2.0
    y = mg.reshape(y, (2, *shape))
    y = mg.permute_dims(y, tuple(reversed(range(y.ndim))))
    mg.sum(mg.sum(y, axis=tuple(range(i % (y.ndim + 1))))).backward()


@program("dtypes")
def _(i: int) -> None:
    dtype = (np.float32, np.float64, np.complex64, np.complex128)[i % 4]
    t = mg.asarray(X.astype(dtype), requires_grad=True)
    y = t * X.astype((np.float32, np.float64, np.int8, np.int64)[i // 4 % 4])
    mg.real(mg.sum(mg.astype(y, mg.complex128))).backward()


@program("libraries")
def _(i: int) -> None:
    xp = mg.namespace(("numpy", "strict")[i % 2])
    t = xp.asarray([1.0 * i, 2.0], dtype=xp.float64, requires_grad=True)
    xp.sum(t * t).backward()
    t.detach().to_backend(("strict", "numpy")[i % 2])


@program("Python's numbers", warm=3)
def _(i: int) -> None:
    """As many as the table of numbers that are arrays has, before it is emptied."""
    for k in range(1024):
        w * (0.5 + 1024 * i + k)


@program("keys")
def _(i: int) -> None:
    t = mg.asarray(lengths(i), requires_grad=True)
    key = (i, slice(i, None), slice(None, None, 1 + i % 3), [0, i], t.detach() > 0, (None, i))[
        i % 6
    ]
    mg.sum(t[key] * 2.0).backward()


@program("subscripts of einsum", warm=1100)
def _(i: int) -> None:
    letters = string.ascii_letters
    a, b = letters[i % 52], letters[(i + 1 + i // 52 % 51) % 52]
    mg.sum(mg.einsum(f"{a}{b},{b}->{a}", ROWS, w)).backward()


# Which operands require grad


def chosen(i: int, n: int) -> list[Any]:
    return [LEAVES[k] if i >> k & 1 else CONSTANTS[k] for k in range(n)]


@program("patterns of operands and lists")
def _(i: int) -> None:
    a, b, _ = some = chosen(i, 3)
    for y in (
        a * b + mg.atan2(a, b) - mg.where(a > 0.0, a, b),
        mg.stack(some),
        mg.concat(some),
        mg.broadcast_arrays(*some)[0],
    ):
        if y.requires_grad:
            mg.sum(y).backward()


@program("patterns of argnums")
def _(i: int) -> None:
    argnums = tuple(k for k in range(3) if (1 + i) >> k & 1) or 0
    func.grad(lambda a, b, c: mg.sum(a * b * c), argnums=argnums)(X, X, X)


# Writes


@program("updates")
def _(i: int) -> None:
    """As many as a version cell drops at once."""
    for k in range(64):
        w.grad = None
        loss(w).backward()
        with mg.no_grad():
            w.__isub__(0.0 * w.grad)
            w[k % 3] = w[k % 3]
            w[...] = 1.0


MEMORY = mg.asarray(np.zeros((2, 3)))
ROW = MEMORY[0]
LEAF = mg.asarray(X, requires_grad=True)
LOSS = mg.sum(LEAF * 2.0)


@program("writes to one memory")
def _(i: int) -> None:
    """As many writes as a version cell drops at once."""
    global ROW
    for k in range(64):
        MEMORY[k % 2] = float(i % 7)
        ROW += 1.0
        MEMORY.data[0] = 0.0
        LOSS.backward(retain_graph=True)
    mg.sum(MEMORY * w).backward()


@program("writes")
def _(i: int) -> None:
    y = w * 1.0
    v = y[0:2]
    v[0] = 5.0
    v *= 2.0
    y[[0, 2]] += 1.0
    y[y.detach() > 3.0] = w[0]
    mg.sum(y).backward()


@program("writes in transformations")
def _(i: int) -> None:
    def f(t: Any) -> Any:
        c = mg.zeros(3)
        for k in range(3):
            c[k] = t[k] * (i % 7)
            t = t * c
        t /= mg.sum(t)
        y = t * 1.0
        y += 1.0
        return mg.sum(y)

    func.grad(f)(X)
    func.jvp(f, (X,), (X,))
    func.vmap(func.grad(f))(ROWS)


@program("views of views")
def _(i: int) -> None:
    y = LEAVES[i % 6] * 2.0
    views = [y]
    for k in range(i % 7):
        views.append(views[-1][:] if k % 2 else views[-1][None, :][0])
    views[-1][0] = i % 7
    mg.sum(y).backward()
    copy.deepcopy(mg.asarray(X)[1:])
    pickle.loads(pickle.dumps(w))


# Functions made anew


@program("fresh lambdas")
def _(i: int) -> None:
    f = lambda t: mg.sum(t * t * (i % 7))
    func.grad(f)(X)
    func.value_and_grad(f)(X)
    func.vmap(lambda t: t * (i % 7))(ROWS)
    func.jvp(f, (X,), (X,))
    func.hvp(f, (X,), (X,))
    func.vjp(f, X)[1](np.ones(()))
    func.linearize(f, X)[1](X)


@program("nested transformations")
def _(i: int) -> None:
    def f(t: Any) -> Any:
        equal = (t == t) == (t > 0)
        return mg.sum(mg.where(equal, t, 0.0) * func.jvp(mg.sin, (t,), (t,))[1])

    for _ in range(i % 3):
        f = (lambda g: lambda t: mg.sum(func.grad(g)(t)))(f)
    func.vmap(func.grad(f))(ROWS)
    func.jvp(func.grad(f), (X,), (X,))
    func.jacrev(func.jacfwd(mg.sin))(X)
    func.hessian(loss)(X)
    func.vmap(func.grad(loss))(np.ones((1 + i % 60, 3)))
    func.vmap(lambda a, b: a * b, (i % 2, None))(np.ones((3, 3)), X)
    func.vmap(func.vmap(mg.sin), chunk_size=1 + i % 3)(np.ones((4, 2, 3)))
    functional.hessian(lambda t: mg.sum(t * t), w)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(mg.asarray(X), mg.asarray(X))
        forward_ad.unpack_dual(mg.sin(dual) * (i % 7))


@program("pullbacks that are not called")
def _(i: int) -> None:
    func.vjp(mg.sin, X)
    func.linearize(mg.sin, X)
    loss(w)
    (g,) = mg.autograd.grad(loss(w), w, create_graph=True)
    mg.autograd.grad(g.sum(), w)


@program("fresh compiled functions", writes=True)
def _(i: int) -> None:
    f = func.compile(lambda t: mg.sum(t * (i % 7)))
    for _ in range(2):
        f(X)
    g = func.compile(func.grad(lambda t: loss(t) if mg.sum(t) > 0 else mg.sum(t)))
    for sign in (1.0, -1.0, 1.0):
        g(sign * X)


of_lengths = func.compile(func.grad(loss))
of_numbers = func.compile(lambda t, n, s: mg.sum(t * n) if s else t, static_argnums=2)


@program("arguments of a compiled function")
def _(i: int) -> None:
    of_lengths(lengths(i))
    of_numbers(X, 1.0 + i, i)
    of_numbers(X, i, str(i))


@program("fresh custom_vjp and custom_jvp")
def _(i: int) -> None:
    @func.custom_vjp
    def tripled(t: Any) -> Any:
        return t * 3.0

    tripled.defvjp(lambda t: (t * 3.0, t), lambda residuals, g: (g * 3.0,))
    func.vmap(func.grad(lambda t: mg.sum(tripled(t))))(ROWS)
    mg.sum(tripled(w)).backward()

    @func.custom_jvp
    def doubled(t: Any) -> Any:
        return t * 2.0

    doubled.defjvp(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 2.0))
    func.jvp(doubled, (X,), (X,))
    func.grad(lambda t: mg.sum(doubled(t)))(X)


@program("names of custom_vjp", warm=1100, cycles=4)
def _(i: int) -> None:
    f = lambda t: t * 3.0
    f.__name__ = f.__qualname__ = f"function_{i}"
    custom = func.custom_vjp(f)
    custom.defvjp(lambda t: (t * 3.0, None), lambda residuals, g: (g * 3.0,))
    mg.sum(custom(w)).backward()


def doubled_class(name: str = "Doubled") -> Any:
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

    Doubled.__name__ = name
    return Doubled


DOUBLED = doubled_class()


@program("a Function")
def _(i: int) -> None:
    mg.sum(DOUBLED.apply(w)).backward()
    func.vmap(func.grad(lambda t: mg.sum(DOUBLED.apply(t))))(ROWS)


@program("fresh Functions", warm=1100, cycles=40)  # the classes of ctx of 1,000 names are kept
def _(i: int) -> None:
    fresh = doubled_class(f"Doubled{i}")
    mg.sum(fresh.apply(w)).backward()
    func.vmap(func.grad(lambda t: mg.sum(fresh.apply(t))))(ROWS)


# Classes


@program("registered classes", cycles=30)
def _(i: int) -> None:
    cls = type(f"Pair{i}", (), {"__init__": lambda self, a, b: self.__dict__.update(a=a, b=b)})
    func.register_pytree(cls, lambda p: ((p.a, p.b), None), lambda aux, parts: cls(*parts))
    func.grad(lambda p: mg.sum(p.a * p.b))(cls(X, X))
    func.vmap(lambda p: p)(cls(ROWS, ROWS))


@program("dataclasses and named tuples", cycles=100)
def _(i: int) -> None:
    """Of the same names: Python 3.12 keeps each name of a named tuple."""
    data = dataclasses.make_dataclass("Data", ["a", "b"])
    named = collections.namedtuple("Named", ["a"])
    func.grad(lambda p, n: mg.sum(p.a * p.b * n.a))(data(X, X), named(X))


@program("classes of arrays", warm=300, cycles=20)
def _(i: int) -> None:
    cls = type(f"Array{i}", (np.ndarray,), {})
    mg.sum(w * X.view(cls)).backward()
    with pytest.raises(TypeError):
        w * type(f"Odd{i}", (), {})()


# Errors


@program("errors")
def _(i: int) -> None:
    def refuse(*_: Any) -> Any:
        raise ZeroDivisionError(i)

    custom = func.custom_vjp(lambda t: t * 2.0)
    custom.defvjp(lambda t: (t, None), refuse)
    hooked = w * 1.0
    hooked.register_hook(refuse)
    spoilt = w * 1.0
    saved = mg.sum(spoilt * spoilt)
    spoilt += i % 7
    freed = loss(w)
    freed.backward()
    for wrong in (
        lambda: freed.backward(),
        lambda: mg.sum(w, axis=7 + i),
        lambda: w[i + 7],
        lambda: w @ np.ones(4 + i),
        lambda: mg.sin(w, **{f"a{i}": 1}),
        lambda: getattr(mg, f"name{i}"),
        lambda: getattr(w, f"name{i}"),
        lambda: func.grad(lambda t: t)(X),
        lambda: func.grad(refuse)(X),
        lambda: func.vmap(refuse)(ROWS),
        lambda: func.jvp(refuse, (X,), (X,)),
        lambda: func.scan(refuse, X, ROWS),
        lambda: func.cond(True, refuse, refuse, X),
        lambda: func.compile(refuse)(X),
        lambda: func.compile(lambda t: mg.sum(t, axis=7 + i))(X),
        lambda: func.compile(lambda t: float(t[0]))(X),
        lambda: func.checkpoint(refuse)(w),
        lambda: mg.sum(custom(w)).backward(),
        lambda: mg.sum(hooked).backward(),
        lambda: saved.backward(),
        lambda: w.__iadd__(i % 7),
        lambda: func.vmap(lambda a, b: a + b)(ROWS, np.ones((3 + i, 3))),
        lambda: mg.namespace(f"library{i}"),
    ):
        with pytest.raises(Exception, match=r"\w"):
            wrong()


# Extensions


@program("overrides", cycles=80, writes=True)
def _(i: int) -> None:
    def declare(factor: float, **kwargs: Any) -> None:
        registry.elementwise(
            "growth(x, /)",
            forward=lambda xp, x: x * factor,
            x=lambda xp, g: g * factor,
            chapter="elementwise",
            doc="A number of times.",
            **kwargs,
        )
        mg.sum(mg.growth(w)).backward()
        func.vmap(func.grad(lambda t: mg.sum(mg.growth(t))))(ROWS)

    before = dict(registry.OPS)
    declare(2.0)
    declare(3.0, override=True)
    registry.restore(before)


class Seen(extend.Observer):
    events = frozenset({"operation"})

    def begin(self, call: Any) -> None:
        pass


def logged_class() -> Any:
    class Logged(extend.Layer):
        __slots__ = ()

        @classmethod
        def apply(cls, op: Any, args: Any, transform: Any) -> Any:
            return cls.wrap(extend.carry_out(op, transform.unwrap(args)), transform)

    return Logged


LOGGED = logged_class()


@program("layers and observers", cycles=15)
def _(i: int) -> None:
    for cls in (LOGGED, logged_class()):
        transform = extend.Transform(f"logged{i}")
        transform.call(lambda: transform.unwrap(loss(cls.wrap(X, transform))))  # noqa: B023
    with Seen():
        loss(w).backward()


@program("NumPy's functions")
def _(i: int) -> None:
    np.sum(np.sin(w) * w).backward()
    np.add.reduce(np.concatenate([w, w])).backward()
    np.sum(np.multiply.outer(w, X) + np.add(w, X, dtype=np.float64)).backward()
    np.sum(np.multiply.accumulate(w)).backward()
    np.linalg.norm(w).backward()
    np.percentile(w, i % 10).backward()


@program("HIPS autograd's names", cycles=30)
def _(i: int) -> None:
    hips = optional("multigrad_autograd")
    extend = optional("multigrad_autograd.extend")
    anp = optional("multigrad_autograd.numpy")
    doubled = extend.primitive(lambda x: np.asarray(x) * 2.0)
    extend.defvjp(doubled, lambda ans, x: lambda g: g * 2.0)
    hips.grad(lambda x: anp.sum(doubled(x) ** 2) + x[i % 3])(X)
    hips.hessian(lambda x: anp.sum(anp.sin(x)))(X)
    extend.vspace({"a": X, "b": [1.0, X]})


@program("SciPy's solvers", warm=5, cycles=100)
def _(i: int) -> None:
    optional("scipy")
    solvers = optional("multigrad_scipy")
    solvers.minimize(lambda x: mg.sum((x - i % 7) ** 2), X)
    f = lambda p: mg.sum(solvers.root(lambda x: x * x * x - p, X).x)
    func.grad(f)(X * (1.0 + i % 7))


@program("JAX", warm=10)
def _(i: int) -> None:
    jnp = optional("jax.numpy")
    x = jnp.ones(3)
    func.grad(lambda t: mg.sum(t * t * (i % 7)))(x)
    func.vmap(func.grad(loss))(jnp.ones((2, 3)))
    t = mg.asarray(x, requires_grad=True)
    y = t * 1.0
    y[0] = i % 7
    loss(y).backward()


# Hooks, savers, contexts


@program("hooks")
def _(i: int) -> None:
    y = w * 2.0
    y.retain_grad()
    handles = [y.register_hook(lambda g: g * (i % 7)), w.register_hook(lambda g: None)]
    handles.append(y.grad_fn.register_hook(lambda *_: None))
    handles.append(y.grad_fn.register_prehook(lambda *_: None))
    handles.append(graph.register_multi_grad_hook([y, w], lambda g: None))
    handles.append(w.register_post_accumulate_grad_hook(lambda t: None))
    mg.sum(y).backward()
    for handle in handles:
        handle.remove()
    v = mg.asarray(X, requires_grad=True)
    v.register_post_accumulate_grad_hook(lambda t: None)
    mg.sum(v * v).backward()


@program("savers")
def _(i: int) -> None:
    with graph.saved_tensors_hooks(lambda t: (t, i), lambda p: p[0]):
        y = loss(w)
    y.backward()
    with graph.save_on_cpu():
        loss(w).backward()
    with graph.allow_mutation_on_saved_tensors():
        y = w * 1.0
        z = y * y
        y += 1.0
    mg.sum(z).backward()


@program("threads, contexts, tasks")
def _(i: int) -> None:
    thread = threading.Thread(target=lambda: loss(w).backward())
    thread.start()
    thread.join()
    contextvars.copy_context().run(lambda: func.grad(loss)(X))

    def halted() -> Any:
        with mg.no_grad():
            yield

    next(halted())

    async def task() -> None:
        with mg.no_grad():
            await asyncio.sleep(0)
        loss(w).backward()

    async def tasks() -> None:
        await asyncio.gather(task(), task())

    asyncio.run(tasks())


@program("modes and conversions")
def _(i: int) -> None:
    with mg.use_backend(("numpy", "strict")[i % 2]), mg.inference_mode():
        mg.ones(3) * 2.0
    with mg.set_grad_enabled(i % 2 == 0), mg.enable_grad():
        sum((e * 2.0 for e in w), 0.0).backward()
    x = w.detach()
    float(x[0]), x.tolist(), x.numpy(), np.from_dlpack(x), repr(x), hash(w), x.to_backend("strict")
    mg.finfo(mg.float64), mg.namespace("numpy").__array_namespace_info__().dtypes()


@program("depths of graphs")
def _(i: int) -> None:
    y = w
    for _ in range(1 + i % 23):
        y = y * 0.5 + w
    mg.sum(y).backward(retain_graph=True)
    mg.sum(y).backward()


# Control


def step(carry: Any, row: Any) -> Any:
    return carry + row, carry * row


@program("checkpoints")
def _(i: int) -> None:
    mg.sum(func.checkpoint(mg.sin)(w)).backward()
    func.grad(lambda t: mg.sum(func.checkpoint(lambda u: u * (i % 7))(t)))(X)
    func.grad(lambda t: mg.sum(func.checkpoint(func.checkpoint(lambda u: mg.sin(u * t)))(t)))(X)
    for checkpoint in ("step", 1 + i % 3):
        func.scan(step, w, np.ones((4, 3)), checkpoint=checkpoint)[0].sum().backward()


@program("lengths of loops, and branches")
def _(i: int) -> None:
    rows = np.ones((1 + i % 17, 3))
    func.scan(lambda c, v: (c + v, c * v), w, rows)[0].sum().backward()
    func.grad(lambda t: mg.sum(func.scan(lambda c, v: (c + v, c * v), t, rows)[1]))(X)
    func.while_loop(lambda c: mg.sum(c) < 20.0 + i % 17, lambda c: c + 10.0, X)
    func.fori_loop(0, i % 5, lambda k, c: c * 2.0, X)
    func.grad(
        lambda t: mg.sum(func.cond(mg.sum(t) > i % 5, lambda u: u * (i % 7), lambda u: u, t))
    )(X)
    func.switch(i % 3, [lambda t: t * (i % 7), lambda t: t, mg.sin], X)


@program("lengths of one loop")
def _(i: int) -> None:
    func.grad(lambda t: mg.sum(func.scan(step, t, np.ones((8 + i % 1000, 3)))[1]))(X)


@program("constants of bodies", warm=40)
def _(i: int) -> None:
    """Of loops that are long enough to be compiled."""
    constant = np.full(3, i)
    func.scan(lambda c, v: (c + v * constant, c * v), w, np.ones((8, 3)))[0].sum().backward()


# Tools


@program("profiles", cycles=150)
def _(i: int) -> None:
    for memory in (False, True):
        profiler = mg.autograd.profiler
        with profiler.profile(profile_memory=memory) as p, profiler.record_function(f"step {i}"):
            loss(w).backward()
        str(p.key_averages())


@program("anomalies and breaks")
def _(i: int) -> None:
    with mg.autograd.detect_anomaly(check_nan=False):
        loss(w).backward()
    with mg.autograd.detect_breaks() as report:
        loss(w).backward()
        w.detach() * 2.0
    str(report)


@program("pictures of graphs", cycles=8)
def _(i: int) -> None:
    with graph.label(f"step {i}"), graph.record_lines():
        y = loss(w)
    graph.memory_report(y)
    str(graph.draw(y))
    mg.autograd.gradcheck(lambda t: t * 2.0, (w,))


# Many at once: programs of n steps whose results are alive together

MANY: dict[str, Callable[[int], Any]] = {}


def many(name: str) -> Callable[[Callable[[int], Any]], None]:
    def note(run: Callable[[int], Any]) -> None:
        MANY[name] = run

    return note


def chain(t: Any, n: int) -> Any:
    for _ in range(n):
        t = t * 0.5 + 1.0
    return mg.sum(t)


def each(n: int, function: Callable[[Any], Any]) -> list[Any]:
    """The intermediate results of a chain, and what a function has made of them."""
    found, y = [], w
    for _ in range(n):
        y = y * 0.5
        found.append(function(y))
    return found


MANY |= {
    "steps of a graph": lambda n: chain(w, n).backward(),
    "steps in func.grad": lambda n: func.grad(lambda t: chain(t, n))(X),
    "steps in jvp": lambda n: func.jvp(lambda t: chain(t, n), (X,), (X,)),
    "steps in vmap": lambda n: func.vmap(lambda t: chain(t, n))(ROWS),
    "steps in compile": lambda n: func.compile(lambda t: chain(t, n))(X),
    "steps in a checkpoint": lambda n: func.checkpoint(lambda t: chain(t, n))(w).backward(),
    "checkpoints": lambda n: mg.sum(each(n, func.checkpoint(mg.sin))[-1]).backward(),
    "leaves": lambda n: sum(mg.sum(mg.asarray(X, requires_grad=True)) for _ in range(n)).backward(),
    "arguments": lambda n: func.grad(lambda d: mg.sum(sum(d.values())))(dict.fromkeys(range(n), X)),
    "elements": lambda n: sum(mg.asarray(np.ones(n), requires_grad=True)).backward(),
    "outputs": lambda n: mg.autograd.backward(each(n, mg.sum)),
    "Functions": lambda n: mg.sum(each(n, DOUBLED.apply)[-1]).backward(),
    "retained gradients": lambda n: mg.sum(each(n, lambda y: y.retain_grad() or y)[-1]).backward(),
    "pullbacks": lambda n: [pull(X) for pull in [func.vjp(mg.sin, X)[1] for _ in range(n)]],
    "compiled functions": lambda n: [f(X) for f in [func.compile(mg.sin) for _ in range(n)]],
}


@many("hooks")
def _(n: int) -> None:
    y = w * 1.0
    handles = [y.register_hook(lambda g: g) for _ in range(n)]
    mg.sum(y).backward()
    for handle in handles:
        handle.remove()


@many("views of one memory")
def _(n: int) -> None:
    y = w * 1.0
    views = [y[k % 3 :] for k in range(n)]
    y[0] = 2.0
    mg.sum(sum(mg.sum(view) for view in views)).backward()


@many("views of views")
def _(n: int) -> None:
    y = w * 1.0
    for _ in range(n):
        y = y[:]
    y[0] = 2.0
    mg.sum(y).backward()


@many("writes")
def _(n: int) -> None:
    y = mg.zeros(3) * 1.0
    v = y[:2]
    for k in range(n):
        y[k % 3] = w[0]
        v *= w[:2]
    mg.sum(y).backward()


@many("writes in func.grad")
def _(n: int) -> None:
    def f(t: Any) -> Any:
        c = mg.zeros(3)
        for k in range(n):
            c[k % 3] = t[k % 3]
            t = t + c * 0.1
        return mg.sum(t)

    func.grad(f)(X)


@many("events of a profile")
def _(n: int) -> None:
    with mg.autograd.profiler.profile(profile_memory=True) as p:
        chain(w, n).backward()
    str(p.key_averages())


@many("steps that are watched")
def _(n: int) -> None:
    with mg.autograd.detect_breaks() as report, mg.autograd.detect_anomaly():
        chain(w, n).backward()
    str(report)
    str(graph.draw(chain(w, n)))
