"""What a recording notes of each operation besides what it does: the user's line, and the modes of
the library.
"""

from __future__ import annotations

import inspect
import time
from types import SimpleNamespace

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.autograd import grad
from multigrad.compiling import leaves
from multigrad.program import Call

X = np.arange(1.0, 4.0)


def lines_of(compiled, name):
    """The numbers of the lines that the operations of this name were recorded at, in order."""
    (program,) = compiled.programs
    return [
        int(step.line.rpartition(":")[2])
        for step in program.steps
        if isinstance(step, Call) and step.op.name == name
    ]


def test_each_operation_has_the_line_that_it_comes_from():
    """Also in passes, one after the other, nested, and where a rule of the user's is the innermost
    line.
    """

    @func.custom_vjp
    def cube(x):
        return x**3

    def forward(x):
        return cube(x), x

    def backward(x, g):
        return (mg.floor(g) + 3 * x * x * g,)

    cube.defvjp(forward, backward)

    def f(x):
        t = mg.asarray(x, requires_grad=True)
        y = mg.sin(mg.sin(mg.sin(t)))
        (a,) = grad(mg.sum(y), t)
        z = mg.sin(mg.sin(mg.sin(t)))
        (b,) = grad(mg.sum(z), t)
        c = func.grad(lambda x: mg.sum(func.grad(lambda x: mg.sum(mg.sin(mg.sin(cube(x)))))(x)))(x)
        return a, b, c, mg.sin(x)

    first = inspect.getsourcelines(f)[1]
    compiled = func.compile(f)
    compiled(X)
    sines = lines_of(compiled, "sin")
    assert set(sines) <= {first + i for i in (2, 4, 6, 7)} and sines[-1] == first + 7
    cosines = lines_of(compiled, "cos")
    assert cosines[:6] == [first + 3] * 3 + [first + 5] * 3
    assert set(lines_of(compiled, "floor")) == {inspect.getsourcelines(backward)[1] + 1}


def test_a_generator_of_lines_is_followed_from_where_it_is_resumed():
    def f(x):
        def values():
            y = x
            while True:
                y = mg.sin(y)
                yield y

        it = values()
        return next(it) + next(it), next(it)

    compiled = func.compile(f)
    compiled(X)
    first = inspect.getsourcelines(f)[1]
    assert lines_of(compiled, "sin") == [first + 4] * 3 and lines_of(compiled, "add") == [first + 8]


def test_settings_of_numpy_are_seen_whenever_they_change():
    """A setting that was in force before, and one that is entered again, too."""

    def entering(x):
        with np.errstate(divide="ignore"):
            return x / 2.0

    with pytest.warns(
        UserWarning, match="a mode of numpy is entered inside of it, as numpy.errstate is one"
    ):
        assert (func.compile(entering)(X) == X / 2.0).all()
    with np.errstate(divide="ignore"):
        plain = func.compile(lambda x: x / 2.0)
        plain(X)
    compiled = func.compile(entering)
    with pytest.warns(UserWarning, match="numpy.errstate"):
        compiled(X)
    assert len(plain.programs) == 1 and not compiled.programs


def test_the_setting_around_a_call_is_no_change():
    def f(x):
        with np.errstate():
            return x / 2.0

    compiled = func.compile(f)
    with np.errstate(divide="raise"):
        for _ in range(3):
            compiled(X)
    assert len(compiled.programs) == 1


def recording_time(n):
    def chain(x):
        for _ in range(n // 2):
            x = x * 1.01
            x = x + 0.1
        return x

    def once():
        g = func.compile(chain)
        start = time.thread_time()
        g(np.ones(10))
        return (time.thread_time() - start) / n

    return min(once() for _ in range(5))


def test_the_time_of_a_recording_is_linear_in_its_length():
    recording_time(10)
    assert recording_time(3200) < 4 * recording_time(400)  # if quadratic, 8


# What is no operation


@pytest.mark.parametrize(
    "text",
    [
        str,
        lambda x: f"{x[0]:.3f}",
        lambda x: f"{mg.sum(x):.1f}",
    ],
)
@pytest.mark.parametrize("tensors", [False, True])
def test_text_of_an_array_is_that_of_each_call(text, tensors):
    """It was frozen, and the first call had that of the layer."""

    def f(x):
        seen.append(text(x))
        return x * len(seen[-1])

    calls = [x if not tensors else mg.asarray(x) for x in (X, X + 0.5, X * 1e3)]
    seen = []
    expected = [f(x) for x in calls]
    texts, seen = seen, []
    compiled = func.compile(f)
    with pytest.warns(
        UserWarning,
        match="f is not compiled, because it makes text of an array, as print\\(\\) and "
        "str\\(\\) do",
    ):
        found = [compiled(x) for x in calls]
    assert seen == texts and not compiled.programs
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y) and np.array_equal(np.asarray(x), np.asarray(y))


def test_arrays_that_are_sorted_in_place():
    """The method of NumPy's arrays writes, that of Tensors does not, and returns a new one."""

    def f(x, y):
        left = x.sort()
        y[::2].sort(axis=0)
        return left, x[0], y

    compiled = func.compile(f)
    for k in range(4):
        x, y = np.array([3.0, 1.0, 2.0 - k]), np.array([3.0, 0.0, 1.0, 0.0, -k])
        own = x.copy(), y.copy()
        found, expected = compiled(x, y), f(*own)
        assert found[0] is None is expected[0] and found[1] == expected[1]
        assert np.array_equal(x, own[0]) and np.array_equal(y, own[1])
    assert len(compiled.programs) == 1
    assert func.compile(lambda x: x.sort())(mg.asarray(X[::-1])).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(
        TypeError,
        match=r"the recording of x.sort\(\) takes the arguments axis and stable, not 'kind'. "
        r"Write x\[...\] = ",
    ):
        func.compile(lambda x: x.sort(kind="stable"))(X.copy())


def test_a_write_that_is_not_recorded_is_seen():
    """Whatever class the function asks for: an argument that it writes and its program does not was
    returned as it happened to be.
    """

    def f(x, y):
        if isinstance(x, np.ndarray):
            x.fill(7.0)
        return x, y * 2.0

    compiled = func.compile(f)
    compiled(X.copy(), X)
    x = X.copy()
    with pytest.raises(
        RuntimeError,
        match=r"compile: f has written to args\[0\] in a way that its program has not recorded, "
        r"as by a method",
    ):
        compiled(x, X)
    assert np.array_equal(x, X)
    with pytest.raises(RuntimeError, match="has written to args"):
        compiled(x, X)


def test_programs_are_recorded_anew_when_an_operation_is_replaced():
    """A rule or a kernel that is declared later was not used by programs from before."""
    before = mg.registry.OPS["sinh"]
    compiled = func.compile(func.value_and_grad(lambda x: mg.sum(mg.sinh(x))))
    unrelated = func.compile(lambda x: x * 2.0)
    for _ in range(3):
        assert np.allclose(compiled(X)[1], np.cosh(X))
        unrelated(X)
    try:
        mg.registry.elementwise(
            "sinh(x, /)",
            x=lambda xp, x: xp.ones_like(x) * 5.0,
            forward=lambda xp, x: x + 1.0,
            override=True,
        )
        assert not compiled.programs
        for _ in range(3):
            assert np.allclose(compiled(X)[1], 5.0)
    finally:
        mg.registry.restore({"sinh": before}, [mg.registry.OPS["sinh"]])
    assert not compiled.programs
    assert np.allclose(compiled(X)[1], np.cosh(X)) and np.allclose(
        compiled(X)[0], np.sum(np.sinh(X))
    )


def test_an_operation_that_is_new_leaves_programs_alone():
    compiled = func.compile(lambda x: x * 2.0)
    compiled(X)
    try:
        mg.registry.elementwise("t.recording(x, /)", forward=lambda xp, x: x, x=1)
        assert len(compiled.programs) == 1
    finally:
        mg.registry.restore({}, [mg.registry.OPS["t.recording"]])


def test_whether_arrays_have_values_is_asked_again_where_it_could_not_be_told(monkeypatch):
    """The answer for one array was taken for all of its class, so that none was recorded any more,
    without a word.
    """
    sizes = [0, 0, 24]
    backend = SimpleNamespace(
        capabilities=SimpleNamespace(lazy=False),
        kernel=lambda name: lambda xp, x: (x, sizes.pop(0)),
    )
    monkeypatch.setattr(leaves, "_valued", set())
    assert [leaves.is_traced(X, SimpleNamespace(backend=backend, xp=np)) for _ in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]
