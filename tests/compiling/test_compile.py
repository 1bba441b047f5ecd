"""func.compile: recorded once, and equal to the function itself from then on."""

from __future__ import annotations

import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compiled_programs import X, equal, same

import multigrad as mg
from multigrad import extend, func, tree
from multigrad.autograd import Function, detect_anomaly, profiler
from multigrad.autograd.graph import saved_tensors_hooks
from multigrad.compiling.checks import HiddenStateError
from multigrad.errors import GradientError, LeakError
from multigrad.program import Guard, Write

# ----- What is computed -----


def test_a_program_is_recorded_once_and_called_from_then_on():
    calls = []

    def f(x, y):
        calls.append(x)
        return x * y + 1.0, np.sin(x)

    g = func.compile(f)
    for k in range(5):
        equal(g(X + k, X), (X * (X + k) + 1.0, np.sin(X + k)))
    assert len(calls) == 2  # recorded, and compared once
    assert len(g.programs) == 1 and g.__name__ == "f" and g.__wrapped__ is f
    assert "multiply" in g.source() and "test_compile.py" in g.source()
    g.clear()
    assert g.programs == () and g.source() == ""
    g(X, X)
    assert len(calls) == 3


def test_arguments_and_results_may_be_nested():
    def f(params, *, scale, names=("a", None)):
        return {"w": [params["w"] * scale, None], "names": names, "n": 3}

    g = func.compile(f)
    for k in range(1, 4):
        found = g({"w": X * k, "b": (X, [X])}, scale=2.0 * k)
        np.testing.assert_array_equal(found["w"][0], X * k * 2.0 * k)
        assert found["w"][1] is None and found["names"] == ("a", None) and found["n"] == 3
    assert len(g.programs) == 1
    g({"b": (X, [X]), "w": X}, scale=2.0)
    assert len(g.programs) == 2


@pytest.mark.parametrize(
    "transform",
    [
        func.grad,
        func.hessian,
        func.jacfwd,
        lambda f: lambda x: func.vjp(f, x)[1](1.0 * x[0]),
        lambda f: func.vmap(func.grad(lambda x: x * x * x)),
    ],
    ids=["grad", "hessian", "jacfwd", "vjp", "vmap"],
)
def test_transformations_inside_become_part_of_the_program(transform):
    same(transform(lambda x: mg.sum(mg.sin(x) * x**2)), (X,), (X + 1.0,), (X - 2.0,))


def test_backward_on_tensors_made_inside():
    def f(x):
        w = mg.asarray(x, requires_grad=True)
        mg.sum(w**3).backward()
        return w.grad

    g = func.compile(f)
    for k in range(3):
        np.testing.assert_allclose(g(X + k), 3 * (X + k) ** 2)


def test_inside_another_transformation_it_is_the_function_itself():
    g = func.compile(lambda x: mg.sum(x**3))
    for _ in range(3):
        np.testing.assert_allclose(func.grad(g)(X), 3 * X**2)
        np.testing.assert_allclose(func.vmap(g)(np.stack([X, 2 * X])), [36.0, 288.0])
    w = mg.asarray(X, requires_grad=True)
    g(w).backward()
    np.testing.assert_allclose(w.grad.array, 3 * X**2)
    assert g.programs == ()
    assert func.compile(g)(X) == 36.0  # inlined


def test_tensors_give_tensors():
    g = func.compile(lambda x, y: (x * y, x))
    for k in range(3):
        x = mg.asarray(X + k)
        z, same_x = g(x, X)
        assert isinstance(z, mg.Tensor) and same_x is x
        np.testing.assert_array_equal(z.array, (X + k) * X)
    assert len(g.programs) == 1
    assert type(g(X, X)[0]) is np.ndarray


def test_results_are_fresh():
    g = func.compile(lambda x: (x.T, x[1:], np.zeros(2), x + 0.0, x))
    for _ in range(3):
        x = np.arange(6.0).reshape(2, 3)
        first = g(x)
        second = g(x)
        assert first[4] is x
        for a in first[:4]:
            assert not np.shares_memory(a, x)
            assert not any(np.shares_memory(a, b) for b in second[:4])
            a[...] = 7.0
    np.testing.assert_array_equal(g(x)[2], [0.0, 0.0])


def _broadcast(x):
    y = x * 2.0
    return y, np.broadcast_to(y, (3, 2))


@pytest.mark.parametrize("kind", [np.asarray, mg.asarray])
@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (func.grad(lambda p: mg.sum((p["a"] + p["b"]) ** 2)), None),
        (func.grad(lambda a, b: mg.sum((a + mg.reshape(b, (4,))) ** 2), (0, 1)), ((4,), (2, 2))),
        (lambda x: (x * 2.0, (x * 2.0).T), ((2, 3),)),
        (lambda x: (lambda y: (y, y.T))(x * 2.0), ((2, 3),)),
        (lambda x: (lambda y: (y, [y, y], y + 0.0))(x * 2.0), ((2, 3),)),
        (lambda x: np.broadcast_to((x * 2.0)[:1], (2,)), ((2,),)),
        (_broadcast, ((2,),)),
    ],
    ids=["dict", "reshaped", "computed twice", "view", "repeated", "one", "broadcast"],
)
def test_results_share_no_memory_with_each_other(f, shapes, kind):
    def given():
        if shapes is None:
            return ({"a": kind(np.ones(2)), "b": kind(np.ones(2))},)
        return tuple(kind(np.ones(shape)) for shape in shapes)

    def arrays(result):
        return [x.array if isinstance(x, mg.Tensor) else x for x in tree.leaves(result)]

    g = func.compile(f)
    expected = arrays(f(*given()))
    for _ in range(5):
        results = arrays(g(*given()))
        for x, y in zip(results, expected, strict=True):
            np.testing.assert_array_equal(x, y)
        for x in results:
            x[...] = 7.0  # raises if an element shows at several places
            assert np.unique(np.ravel(x)).tolist() == [7.0]
            assert sum(np.shares_memory(x, y) for y in results) == 1
            assert 0 not in x.strides


def test_a_function_without_arrays():
    same(lambda a, b: a * b + 1, (2, 3), (4, 5), (6, 7))
    same(lambda a: None, (X,), (X + 1,), (X,))
    same(lambda: (1, "a"), (), (), ())
    same(lambda x: mg.zeros(3).array, (X,), (X,), (X,))
    same(lambda n: (mg.arange(n) * 2.0).array, (3,), (3,), (3,))


def test_shapes_that_depend_on_values_are_guards():
    same(
        lambda x: np.sum(x[x > 2.0]) / x[x > 2.0].shape[0],
        (X,),
        (X,),
        (X + 1.0,),
        (X,),
        (X + 5.0,),
        programs=None,
    )
    same(
        lambda x: mg.nonzero(x)[0].shape[0] * x,
        (X - 1.0,),
        (X - 2.0,),
        (X,),
        (X - 1.0,),
        programs=2,
    )


def test_a_function_of_the_user_is_recorded_through_its_own_derivative():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            return 5.0 * g * ctx.saved_tensors[0] ** 2

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = mg.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    for function in (Cube, Exp):
        gradient = func.grad(lambda x, apply=function.apply: mg.sum(apply(x)))
        same(gradient, (X,), (X + 1,), (X + 2,))
    same(lambda x: Cube.apply(x), (mg.asarray(X),), (mg.asarray(X + 1),))


# ----- Numbers -----


def test_numbers_are_arguments_that_do_not_promote():
    def adam(p, m, v, g, t, lr=1e-3, b1=0.9, b2=0.999):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8), m, v

    narrow = X.astype(np.float32)
    g = same(adam, *[(narrow, narrow, narrow, narrow + np.float32(t), t) for t in range(1, 8)])
    assert len(g.programs[0].inputs) == 5


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: x * t,
        lambda x, t: t**x,
        lambda x, t: np.where(x > 2, t, x),
        lambda x, t: x + (t > 2),
        lambda x, t: [t, -t, abs(t), t % 2, divmod(7, t), t // 2, t / 2, t == 3],
        lambda x, t: np.exp(-t) * x.astype(np.float32),
        lambda x, t: np.float32(2.0) * t,
        lambda x, t: np.ones(3) * t,
        lambda x, t: x.astype(np.uint8) < 300 * t,
        lambda x, t: sum([t, t]) * x,
        lambda x, t: np.float64(t) * x,
        lambda x, t: t * x[0],
        lambda x, t: x * round(t, 1),
        lambda x, t: x * f"{t}".count("2"),
    ],
)
def test_arithmetic_of_numbers(f):
    for numbers in ((2, 3, 4), (2.0, 3.5, 0.25)):
        same(f, *[(X, t) for t in numbers], programs=None)


def test_numbers_that_python_asks_for_are_guards():
    same(
        lambda x, n: x[n] * sum(x[i] for i in range(n)), (X, 1), (X, 2), (X, 1), (X, 2), programs=2
    )
    same(lambda x, t: x if t > 2 else -x, (X, 1), (X, 3), (X, 2), (X, 4), programs=2)
    same(lambda x, t: x * math.sqrt(t), (X, 1.0), (X, 2.0), (X, 1.0), programs=2)
    same(lambda x, t: x * math.copysign(1.0, t), (X, 0.0), (X, -0.0), (X, 0.0), programs=2)
    same(lambda x, n: np.reshape(x, (n, -1)), (X, 1), (X, 3), (X, 1), programs=2)
    same(lambda x, n: np.sum(np.reshape(x, (1, 3)), axis=n), (X, 0), (X, 1), programs=2)
    same(lambda x, t: {"a1": x, "a2": -x}[f"a{t}"], (X, 1), (X, 2), (X, 1), programs=2)
    same(
        lambda x, t: x if isinstance(t, float) else -x,
        (X, 1.0),
        (X, 2.0),
        (X, 1),
        (X, 2),
        programs=2,
    )


def test_a_number_that_outlives_its_recording():
    kept = []
    func.compile(lambda t: kept.append(t) or 2 * t)(1.5)
    with pytest.raises(LeakError, match="an argument of a compiled function was used after"):
        kept[0] + 1


def test_what_is_static_is_part_of_the_key():
    def f(x, mode, flag=True):
        return x if mode == "up" and flag else -x

    same(f, (X, "up"), (X, "down"), (X, "up", False), (X, "up"), programs=3)
    same(lambda x, n: x * n, (X, True), (X, 1), (X, 2), programs=2)
    g = same(
        lambda x, n: x * math.sqrt(n), (X, 2.0), (X, 3.0), (X, 2.0), programs=2, static_argnums=1
    )
    assert len(g.programs[0].inputs) == 1
    same(
        lambda x, n: x * math.copysign(1, n),
        (X, 0.0),
        (X, -0.0),
        (X, float("nan")),
        (X, float("nan")),
        programs=3,
        static_argnums=(1,),
    )
    same(lambda x, ns: x * len(ns), (X, (1, 2)), (X, (1, 2, 3)), programs=2, static_argnums=-1)


class Unhashable:
    __hash__ = None


def test_what_cannot_be_static_is_refused_by_name():
    with pytest.raises(
        TypeError,
        match=r"the argument args\[1\]\['rate'\] of type Unhashable is neither an array, a "
        r"number nor a container",
    ):
        func.compile(lambda x, o: x)(X, {"rate": Unhashable()})
    with pytest.raises(TypeError, match=r"the argument options of type Unhashable"):
        func.compile(lambda x, options: x)(X, options=Unhashable())


# ----- Guards -----


def test_truth_values_are_guards():
    def f(x):
        if np.sum(x) > 10.0:
            return x * 2.0
        if x[0] > 2.0:
            return x - 1.0
        return x

    g = same(
        f,
        (X,),
        (X * 10,),
        (X,),
        (X + 1.5,),
        (X * 20,),
        (X,),
        (X * np.array([2.5, 0.1, 0.1]),),
        programs=3,
    )
    assert all(any(isinstance(step, Guard) for step in p.steps) for p in g.programs)
    same(
        lambda x, i: x[int(i[0])],
        (X, np.array([1])),
        (X, np.array([2])),
        (X, np.array([1])),
        programs=2,
    )


def test_more_programs_than_allowed_run_eagerly_with_one_warning():
    g = func.compile(lambda x, i: x * int(i[0]), max_programs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in (1, 2, 1, 2):
            np.testing.assert_array_equal(g(X, np.array([i])), X * i)
    with pytest.warns(
        UserWarning,
        match=r"has 2 programs .* asks for by int\(\) .*test_compile.py:\d+|test_compile.py:\d+ "
        r"asks for by int",
    ):
        np.testing.assert_array_equal(g(X, np.array([3])), X * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(g(X, np.array([4])), X * 4)
    assert len(g.programs) == 2


def test_shapes_that_change_at_each_call_are_named():
    g = func.compile(lambda x, data: x + np.sum(data), max_programs=3)
    for n in range(1, 4):
        g(X, data=np.ones(n))
    with pytest.warns(
        UserWarning,
        match=r"What differs from before is data, which had shape \(3,\).* and has shape \(4,\)",
    ):
        np.testing.assert_array_equal(g(X, data=np.ones(4)), X + 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(g(X, data=np.ones(5)), X + 5)
    assert len(g.programs) == 3


def test_values_cannot_be_taken_out():
    for what, take in (
        ("float", float),
        ("complex", complex),
        ("item", lambda x: x.item()),
        ("tolist", lambda x: x.tolist()),
        ("numpy", np.asarray),
        ("array", lambda x: x.array),
    ):
        inside = (
            ()
            if what in ("numpy", "array")
            else (func.grad(lambda x, take=take: take(mg.sum(x).detach()) * mg.sum(x)),)
        )
        for f in (lambda x, take=take: take(np.sum(x)) * x, *inside):
            with pytest.raises(
                TypeError,
                match=rf"{what}.* of an array inside of a compiled function.*Return it, make it "
                r"a static argument",
            ):
                func.compile(f)(X)


def test_results_that_are_no_arrays_are_refused():
    class Other:
        pass

    with pytest.raises(
        TypeError, match="returned .*Other, which is neither an array nor a number nor a container"
    ):
        func.compile(lambda x: (x, Other()))(X)


# ----- In place -----


def update(w, g, lr):
    w -= lr * g


def test_arguments_are_written():
    same(update, (X, X, 0.1), (X, X + 1, 0.2), (X, X, 0.3), programs=None)
    g = same(update, (X, 2 * X, 0.1), (X, X + 1, 0.2), (X + 1, X, 0.3))
    assert any(isinstance(step, Write) for step in g.programs[0].steps)
    w = X.copy()
    assert g(w, X, 0.5) is None
    np.testing.assert_array_equal(w, X - 0.5 * X)

    same(lambda a: np.add(a, 1.0, out=a), (X,), (X + 1,), (X + 2,))


def test_parts_of_one_memory_are_written_by_the_program_unless_they_overlap():
    def f(a, b):
        called.append(a)
        a += b

    compiled, called = func.compile(f), []
    for n in range(4):
        whole = np.arange(4.0)
        compiled(whole[:2], whole[2:] if n < 3 else whole[1:3])
        np.testing.assert_array_equal(whole, [2, 4, 2, 3] if n < 3 else [1, 3, 2, 3])
    assert len(called) == 3  # recorded, compared, and called where they overlap
    windows = np.lib.stride_tricks.as_strided(np.zeros(6), (2, 2, 2), (16, 8, 8))
    for _ in range(3):
        compiled(windows, np.ones((2, 2, 2)))
    assert len(called) == 9  # elements of one array overlap: no program is kept


def test_tensors_are_written():
    def f(w, g):
        w -= 0.5 * g
        w[0] = 7.0
        return w

    compiled = func.compile(f)
    for k in range(4):
        w = mg.asarray(X + k)
        before = w._version
        assert compiled(w, mg.asarray(X)) is w and w._version > before
        np.testing.assert_array_equal(w.array, [7.0, *(X + k - 0.5 * X)[1:]])


def test_a_guard_that_fails_leaves_arguments_as_they_were():
    def f(w, g):
        w -= g
        if np.sum(g) > 10.0:
            w += 100.0
        w *= 2.0
        return np.sum(w)

    same(f, *[(X, X * k) for k in (1, 1, 3, 1, 4, 1)], programs=2)


def test_an_error_leaves_arguments_as_the_function_does():
    def f(w, a):
        w += 1.0
        y = np.linalg.inv(a)
        w += y[0, 0]
        return y

    singular, regular = np.zeros((2, 2)), np.eye(2)
    for first in (regular, singular):
        g = func.compile(f)
        for k, a in enumerate((first, regular, regular, singular, regular, singular)):
            own, ours = X + k, X + k
            if a is singular:
                with pytest.raises(np.linalg.LinAlgError):
                    f(own, a)
                with pytest.raises(np.linalg.LinAlgError):
                    g(ours, a)
            else:
                np.testing.assert_array_equal(g(ours, a), f(own, a))
            np.testing.assert_array_equal(ours, own)


def test_memory_that_cannot_be_written():
    g = func.compile(update)
    for _ in range(3):
        g(X.copy(), X, 0.1)
        w = X.copy()
        w.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            g(w, X, 0.1)
        np.testing.assert_array_equal(w, X)
    fresh = func.compile(update)
    with pytest.raises(ValueError, match="read-only"):
        fresh(w, X, 0.1)


def test_arguments_that_share_memory():
    def f(a, b):
        a[1:] += b[:-1]
        return b * 1.0

    g = func.compile(f)
    for k in range(4):
        for shares in (
            lambda x: (x, x),
            lambda x: (x[1:], x[:-1]),
            lambda x: (x[:3], x[3:]),
            lambda x: (x[::-1], x),
            lambda x: (x[:3], x[1:4].T),
        ):
            own, ours = np.arange(6.0) + k, np.arange(6.0) + k
            np.testing.assert_array_equal(g(*shares(ours)), f(*shares(own)))
            np.testing.assert_array_equal(ours, own)
    flat = np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))
    func.compile(update)(flat, X, 1.0)


# ----- Hidden state -----


def test_a_random_generator_is_seen():
    random = np.random.default_rng(0)
    g = func.compile(lambda x: x * random.normal(size=3))
    g(X)
    for _ in range(2):
        with pytest.raises(
            HiddenStateError,
            match="depends on hidden state besides its arguments.*Pass it as an argument",
        ):
            g(X)
    g.clear()
    g(X)


def test_a_counter_and_the_time_are_seen():
    count = [0.0]

    def counted(x):
        count[0] += 1.0
        return x * count[0]

    for f in (counted, lambda x: (x, time.perf_counter_ns())):
        g = func.compile(f)
        g(X)
        with pytest.raises(HiddenStateError):
            g(X)


def test_how_often_it_is_compared():
    scale = [1.0]
    first, always, never = (
        func.compile(lambda x: x * scale[0], check=check) for check in ("first", True, False)
    )
    for g in (first, always, never):
        g(X)
        g(X)
    scale[0] = 2.0
    np.testing.assert_array_equal(first(X), X)
    np.testing.assert_array_equal(never(X), X)
    with pytest.raises(HiddenStateError):
        always(X)
    w = X.copy()

    def written(w):
        w *= scale[0]

    g = func.compile(written)
    g(w)
    scale[0] = 3.0
    with pytest.raises(HiddenStateError, match="argument 0 in place"):
        g(w)
    np.testing.assert_array_equal(w, 2 * X)


def test_nan_is_equal_to_itself():
    with np.errstate(invalid="ignore"):
        same(lambda x: np.log(-x), (X,), (X,), (X,))


def test_what_is_captured_is_frozen():
    data = X.copy()
    g = func.compile(lambda x: x * data)
    g(X), g(X)
    data[...] = 0.0
    np.testing.assert_array_equal(g(X), X * X)

    def f(x):
        buffer = np.zeros(3)
        y = x + buffer
        buffer[0] = 1.0
        return y, x + buffer

    same(f, (X,), (X + 1,), (X,))


def test_tensors_with_a_history_must_be_arguments():
    w = mg.asarray(X, requires_grad=True)
    for f, message in (
        (lambda x: w * x, "multiply takes a Tensor that requires grad and is not an argument"),
        (lambda x: w, "the result takes a Tensor"),
        (
            lambda x: mg.sum(w * 2.0).backward(),
            r"backward\(\) of a Tensor that is not an argument of a compiled function",
        ),
    ):
        with pytest.raises(GradientError, match=message):
            func.compile(f)(X)
    assert w.grad is None
    c = mg.asarray(X.copy())

    def write(x):
        c[0] = 1.0
        return x

    with pytest.raises(GradientError, match="a write in place of a Tensor that is not an argument"):
        func.compile(write)(X)


# ----- Where the function itself is called -----


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.filterwarnings("ignore:Error detected in")
def test_observers_are_honoured():
    g = func.compile(func.grad(lambda x: mg.sum(mg.sin(x))))
    g(X), g(X)

    class Count(extend.Observer):
        events = frozenset({"operation"})
        ran = 0

        def begin(self, call):
            self.ran += 1

    with Count() as count:
        g(X)
    assert count.ran >= 2
    with profiler.profile() as profiled:
        g(X)
    assert any("sin" in event.name for event in profiled.function_events)
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        g(X)
    assert packed
    with detect_anomaly(), pytest.raises(RuntimeError, match="nan"), np.errstate(invalid="ignore"):
        func.compile(func.grad(lambda x: mg.sum(mg.sqrt(x))))(-X)


def packing(x):
    with saved_tensors_hooks(lambda t: RAN.append(1) or t * 2.0, lambda t: t):
        return func.grad(lambda x: mg.sum(x**2 * x))(x)


def hooked(x):
    w = mg.asarray(x, requires_grad=True)
    w.register_hook(lambda g: RAN.append(1) or 3.0 * g)
    mg.sum(w**2).backward()
    return w.grad.detach()


def watched(x):
    with detect_anomaly():
        return func.grad(lambda x: RAN.append(1) or mg.sum(x**2))(x)


RAN = []


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize(
    ("f", "why"),
    [
        (packing, "an observer, hooks for saved Tensors or a checkpoint"),
        (hooked, "hooks on Tensors or nodes"),
        (watched, "an observer, hooks"),
        (func.grad(func.checkpoint(lambda x: RAN.append(1) or mg.sum(x**2))), "an observer, hooks"),
    ],
    ids=["saved Tensors", "a Tensor", "anomaly", "checkpoint"],
)
def test_hooks_inside_leave_it_uncompiled(f, why):
    g = func.compile(f)
    with pytest.warns(UserWarning, match=f"is not compiled, because {why}"):
        first = g(X)
    for _ in range(3):
        del RAN[:]
        np.testing.assert_array_equal(g(X), first)
        assert RAN
    assert g.programs == ()


def test_grad_modes_have_programs_of_their_own():
    g = func.compile(lambda x: func.grad(lambda x: mg.sum(x**2))(x))
    for _ in range(3):
        np.testing.assert_array_equal(g(X), 2 * X)
        with mg.no_grad():
            np.testing.assert_array_equal(g(X), 2 * X)
    assert len(g.programs) == 2


def test_recursion():
    def f(x, n):
        return x if n <= 0 else 2.0 * g(x, n - 1)

    g = func.compile(f)
    for n in (3, 3, 2, 3, 0, 3):
        np.testing.assert_array_equal(g(X, n), X * 2.0**n)


def test_threads_that_write_to_their_arguments():
    def f(w, x, flip):
        y = x * w + 1.0
        if flip[0] > 0.0:
            y = -y
        w += y
        return np.sum(y)

    g = func.compile(f)

    def work(k):
        for i in range(200):
            w, own = np.full(5, float(k)), np.full(5, float(k))
            x, flip = np.arange(5.0) + i, np.array([(-1.0) ** (i % 3)])
            assert g(w, x, flip) == f(own, x, flip)
            np.testing.assert_array_equal(w, own)

    work(0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(g.programs) == 2


def test_methods():
    class Model:
        scale = 2.0

        @func.compile
        def apply(self, x):
            return x * self.scale

    model, other = Model(), Model()
    other.scale = 3.0
    for _ in range(3):
        np.testing.assert_array_equal(model.apply(X), 2.0 * X)
        np.testing.assert_array_equal(other.apply(X), 3.0 * X)


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = jnp.arange(1.0, 4.0)
    g = func.compile(func.value_and_grad(lambda x, y: mg.sum(mg.sin(x) * y)))
    for k in range(4):
        value, grad = g(x + k, x)
        np.testing.assert_allclose(value, np.sum(np.sin(x + k) * np.asarray(x)), rtol=1e-6)
        np.testing.assert_allclose(grad, np.cos(x + k) * x, rtol=1e-6)
        assert isinstance(grad, jax.Array)
    assert len(g.programs) == 1
    np.testing.assert_allclose(jax.jit(g)(x, x)[1], np.cos(x) * x, rtol=1e-6)
    assert len(g.programs) == 1

    def rebound(w, lr):
        before = w
        w -= lr * before
        return w, before

    h = func.compile(rebound)
    for lr in (0.5, 0.25, 0.125):
        new, old = h(x, lr)
        np.testing.assert_allclose(new, x - lr * x)
        np.testing.assert_allclose(old, x)

    def put(w):
        w[0] = 1.0

    with pytest.raises(TypeError, match="immutable"):
        func.compile(put)(x)

    def tensors(w):
        w[0] = 7.0
        w += 1.0
        return w

    h = func.compile(tensors)
    for _ in range(3):
        w = mg.asarray(x)
        assert h(w) is w
        np.testing.assert_allclose(w.array, [8.0, 3.0, 4.0])
