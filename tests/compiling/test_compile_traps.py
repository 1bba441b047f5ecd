"""func.compile: functions that mean something else while they are recorded, and arguments that look
alike.
"""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from compiled_programs import X, equal, same

import multigrad as mg
from multigrad import func
from multigrad.autograd import profiler
from multigrad.compiling.checks import HiddenStateError
from multigrad.program import Guard

M = np.arange(1.0, 10.0).reshape(3, 3)

# ----- Elements of arrays -----


def swapped(x):
    x[0], x[1] = x[1], x[0]


def read_before(x):
    a, (b, c, d), rest = x[0], x, list(x)
    first = x[np.argmin(x)]
    x *= 10.0
    return a, b + c, d, rest, first, a * 2.0


@pytest.mark.parametrize("f", [swapped, read_before], ids=lambda f: f.__name__)
def test_an_element_of_an_array_does_not_follow_it(f):
    same(f, (X,), (X + 1.0,), (X[::-1].copy(),))
    assert type(func.compile(lambda x: x[np.argmin(x)])(X)) is np.float64


@pytest.mark.parametrize(
    "scalar",
    [np.sum, lambda x: x[1], lambda x: np.float64(3.0), lambda x: x[1, ...]],
    ids=["sum", "element", "constant", "0-d array"],
)
@pytest.mark.parametrize(
    "enlarged",
    [np.atleast_1d, lambda s: np.reshape(s, (1,)), lambda s: s[None]],
)
def test_a_scalar_does_not_follow_an_array_that_is_made_of_it(scalar, enlarged):
    def f(x):
        s = scalar(x)
        v = enlarged(s)
        w = v[0]
        v *= 5.0
        return s, v, w, x * 1.0

    same(f, (X,), (X + 1.0,), (X + 2.0,))


@pytest.mark.parametrize(
    ("f", "numbers", "programs"),
    [
        (lambda x, t: x * (2**t), (2, 3, -1, -2, 0), 2),
        (lambda x, t: x * (t**-1) + t**2, (2, 3, -1, -2, 1), 1),
        (lambda x, t: x * (t**0.5), (4.0, 2.0, -1.0, -2.0, 0.0), 2),
        (lambda x, t: x * ((-8.0) ** t), (2.0, 0.5, math.inf, 1.5, 3.0), 2),
        (lambda x, t: x * t**2, (1j, 2 + 1j, 0j), 1),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, mg.asarray])
def test_the_class_of_a_power_depends_on_the_numbers(f, numbers, programs, kind):
    same(f, *[(kind([1, 2, 3]), t) for t in (*numbers, *numbers)], programs=programs)


@pytest.mark.parametrize(
    "put",
    [
        lambda x: np.zeros(3).__setitem__(0, x[0]),
        lambda x: np.zeros(3).__setitem__(slice(None), x),
        lambda x: np.array([x[0], x[1]]),
        lambda x: np.add(x, 1.0, out=np.zeros(3)),
    ],
    ids=["element", "all", "list", "out"],
)
def test_what_numpy_makes_of_nothing_takes_no_recorded_value(put):
    with pytest.raises(
        TypeError,
        match=r"An array that takes it is made by numpy.zeros_like\(x\), numpy.zeros\(shape, "
        r"like=x\) or multigrad.zeros",
    ):
        func.compile(put)(X)


def test_numbers_are_written():
    def put(x, t):
        x[0] = t
        x[1:] = 2 * t

    same(put, (X, 1.5), (X, 2.5), (X, 3.5))
    same(put, (X, 1), (X, 2), (X, 3))
    same(
        func.grad(lambda x, t: (lambda y: y.__setitem__(0, t) or mg.sum(y * y))(x * 1.0)),
        (X, 1.5),
        (X, 2.5),
        (X, 3.5),
    )


# ----- Containers -----


@dataclass
class State:
    w: object
    n: int = 0


def rebound(state):
    state.w = state.w * 2.0


@pytest.mark.parametrize(
    ("f", "args", "what"),
    [
        (
            lambda p: p.update(w=p["w"] * 2.0),
            ({"w": X},),
            r"args\[0\]\['w'\], which is another object now",
        ),
        (
            lambda p: p.update(v=p["w"]),
            ({"w": X},),
            "a container among its arguments, which has other parts now",
        ),
        (lambda p: p.__setitem__(0, 5), ([1, X],), r"args\[0\]\[0\], which is another object now"),
        (rebound, (State(X),), r"args\[0\]\.w, which is another object now"),
    ],
)
def test_containers_of_the_caller_are_not_changed_in_silence(f, args, what):
    with pytest.raises(
        TypeError,
        match=f"the function changes {what}.*Write into the array itself, .*or return a new container",
    ):
        func.compile(f)(*args)


def test_containers_may_be_written_with_what_they_hold():
    def augmented(p):
        for name in p:
            p[name] *= 2.0
        p["w"] = p["w"]
        return State(p["w"] * 1.0, 3).w

    same(augmented, ({"w": X, "v": M},), ({"w": X + 1.0, "v": M},), ({"w": X, "v": M},))


# ----- Arguments that are equal, and are not the same -----


def test_equal_values_of_other_classes_are_others():
    whole = np.array([1, 2, 3])
    f = func.compile(lambda x, n: x * n[0], static_argnums=1)
    for _ in range(3):
        for n in (1, 1.0, True):
            equal(f(whole, (n,)), whole * n)
    signed = ((X, (0.0,)), (X, (-0.0,)), (X, (0.0,)))
    same(lambda x, n: x * math.copysign(1.0, n[0]), *signed, programs=2, static_argnums=1)
    same(
        lambda x, n: x * next(iter(n)),
        (whole, frozenset([1])),
        (whole, frozenset([1.0])),
        (whole, frozenset([1])),
        programs=2,
    )
    g = func.compile(lambda p: {key: x * 2.0 for key, x in p.items()})
    for _ in range(3):
        for key in (1, True, 1.0):
            assert [type(k) for k in g({key: X})] == [type(key)]


def test_slices_are_static():
    given = [(X, slice(0, 2)), (X, slice(1, 2)), (X, slice(0, 2))]
    for options in ({}, {"static_argnums": 1}):
        same(lambda x, part: x[part], *given, programs=2, **options)


def test_static_arguments_by_name_and_from_the_end():
    def f(x, n=4.0):
        return x * math.sqrt(n)

    g = func.compile(f, static_argnums=-1)
    for n in (2, 3, 2):
        equal(g(X, n=n), f(X, n))
        equal(g(X, n), f(X, n))
        equal(g(X), f(X))
    assert all(
        len(p.inputs) == 1 and not any(isinstance(step, Guard) for step in p.steps)
        for p in g.programs
    )
    with pytest.raises(
        TypeError,
        match=r"static_argnums names the argument args\[1\], of type list, which cannot be "
        r"hashed. Pass a tuple",
    ):
        g(X, [1])
    with pytest.raises(
        ValueError,
        match="static_argnums names the argument 2, and the function takes 2 positional arguments",
    ):
        func.compile(f, static_argnums=2)
    same(lambda *args: args[0] * len(args[1]), (X, "a"), (X, "ab"), programs=2, static_argnums=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"static_argnums": 1.0}, "static_argnums must be an int or a tuple of ints, not 1.0"),
        ({"arena": None}, "arena must be an int of at least 0, not None"),
        ({"max_programs": -1}, "max_programs must be an int of at least 1, not -1"),
        ({"check": np.ones(2)}, "check must be 'first', True or False, not array"),
    ],
)
def test_options(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        func.compile(abs, **options)


# ----- Errors and modes inside -----


def inverse(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return x * 0.0


def reciprocal(x, n):
    try:
        return x * (1 / n)
    except ZeroDivisionError:
        return x * 0.0


def whole(x):
    try:
        return x * int(x[0])
    except ValueError:
        return x * 0.0


def left(x):
    try:
        return x * float(x[0])
    except TypeError:
        return x


@pytest.mark.parametrize(
    ("f", "why", "bad", "good"),
    [
        (
            inverse,
            "it catches an error of linalg.inv, which its program would not raise",
            (np.zeros((3, 3)),),
            (np.eye(3) * 2.0,),
        ),
        (
            reciprocal,
            "it catches an error of divide, which its program would not raise",
            (X, 0),
            (X, 2),
        ),
        (
            whole,
            r"it catches an error of int\(\), which its program would not raise",
            (X * np.nan,),
            (X,),
        ),
        (left, "it catches the error that is raised when values leave it", (X,), (X + 1.0,)),
    ],
    ids=["operation", "number", "int", "conversion"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_caught_inside_is_no_program(f, why, bad, good):
    g = func.compile(f)
    with pytest.warns(UserWarning, match=f"{f.__name__} is not compiled, because {why}"):
        equal(g(*bad), f(*bad))
    for args in (bad, good, bad, good):
        equal(g(*args), f(*args))
    assert g.programs == ()


def test_a_written_argument_that_the_function_also_finds_elsewhere():
    held = X.copy()

    def f(x):
        x += 1.0
        return x * held

    g = func.compile(f)
    for _ in range(3):
        held[...] = X
        equal(g(held), (X + 1.0) * (X + 1.0))
    equal(g(X.copy()), (X + 1.0) * (X + 1.0))


def test_hidden_state_stays_an_error():
    random = np.random.default_rng(0)

    def f(x):
        return x * 2.0 if np.sum(x) > 0.0 else x * random.normal()

    g = func.compile(f)
    g(X), g(X), g(-X)
    for x in (-X, X, X, -X):
        with pytest.raises(HiddenStateError, match="Or it asks for the class of its arguments"):
            g(x)


# ----- The function as an object -----


@func.compile
def doubled(x):
    return x * 2.0


def halved(x):
    return x / 2.0


class Model:
    def __init__(self):
        self.w = X.copy()
        self.step = func.compile(self.scaled)

    def scaled(self, x):
        return x * self.w


def test_copies_and_pickles():
    assert (
        copy.copy(doubled)
        is copy.deepcopy(doubled)
        is pickle.loads(pickle.dumps(doubled))
        is doubled
    )
    for anew in (copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))):
        g = anew(func.compile(halved, max_programs=2, check=True))
        equal(g(X), X / 2.0)
        assert len(g.programs) == 1 and g.__name__ == "halved"
    model = Model()
    model.step(X)
    other = copy.deepcopy(model)
    other.w *= 3.0
    equal(other.step(X), X * other.w)
    equal(model.step(X), X * X)


def test_methods_of_numbers():
    same(lambda x, t: x * t.is_integer(), (X, 1.0), (X, 1.5), (X, 1.0), programs=2)
    same(lambda x, n: x * n.bit_length() * copy.deepcopy(n), (X, 1), (X, 5), (X, 1), programs=2)
    with pytest.raises(AttributeError, match="'float' object has no attribute 'shape'"):
        func.compile(lambda x, t: x * t.shape)(X, 1.0)


def test_raw_arrays_give_raw_arrays_where_the_function_itself_is_called():
    g = func.compile(
        lambda x, k: {"total": mg.sum(x) * k, "x": x}, max_programs=1, static_argnums=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (1, 2, 3, 2):
            found = g(X, k)
            assert type(found["total"]) is np.float64 and type(found["x"]) is np.ndarray
    with profiler.profile():
        assert type(g(X, 1)["total"]) is np.float64
    w = mg.asarray(X, requires_grad=True)
    assert g(w, 1)["total"].requires_grad and isinstance(g(mg.asarray(X), 9)["total"], mg.Tensor)
    assert type(func.grad(lambda x: g(x, 1)["total"])(X)) is np.ndarray


def test_an_element_of_a_library_without_scalars():
    xp = pytest.importorskip("array_api_strict")

    def f(x):
        a, b, c = x[0], x[1], x[2, ...]
        x[0], x[1] = b, a
        a += 10.0
        d = b
        d += 20.0
        x[2] = 5.0
        return a, b, c, d, x * 1.0

    g = func.compile(f)
    for k in range(3):
        own, ours = xp.asarray(X + k), xp.asarray(X + k)
        for expected, found in zip((*f(own), own), (*g(ours), ours), strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_weak_dtypes_have_programs_of_their_own():
    jnp = pytest.importorskip("jax").numpy
    f = func.grad(lambda x, y: mg.sum(x * y), argnums=(0, 1))
    g, x = func.compile(f), jnp.ones(3, jnp.bfloat16)
    for y in (jnp.asarray(2.0) * 1.0, jnp.float32(2.0)) * 3:
        assert [str(d.dtype) for d in g(x, y)] == [str(d.dtype) for d in f(x, y)]
    assert len(g.programs) == 2


def test_a_result_may_differ_by_the_rounding_of_what_it_was_computed_from():
    """XLA fuses: the result is float64, and its error that of float32."""
    jnp = pytest.importorskip("jax").numpy

    def f(x):
        y = mg.sin(x) * mg.exp(x) / 3 - x * x * 0.1 + x / 7
        return mg.astype(mg.sum(y), mg.float64)

    g = func.compile(f)
    for stop in (2, 3, 4):
        x = jnp.linspace(0.1, stop, 101, dtype=jnp.float32)
        np.testing.assert_allclose(g(x), f(x).numpy(), rtol=1e-5)


def test_numbers_are_no_operands_of_matmul():
    with pytest.raises(TypeError, match="unsupported operand"):
        func.compile(lambda x, t: x @ t)(M, 2.0)


@pytest.mark.parametrize(
    ("f", "numbers", "programs"),
    [
        (lambda x, n: (~n, x * ~n), (2, -3, 0), 1),
        (lambda x, n: (n & 6, 6 & n, n | 8, n ^ 5, 5 ^ n, n << 2, 9 >> n), (2, 1, 3), 1),
        (lambda x, n: (pow(n, n, n + 5), x), (2, 4, 2), 2),
        (lambda x, n: (divmod(n, 3), divmod(7, n)), (2, 4, -5), 1),
        (lambda x, n: (divmod(n, x), divmod(x, n), divmod(x[0], n)), (True,), 1),
        (lambda x, n: (divmod(x, 2.0), divmod(2.0, x), divmod(x, x[::-1]), x * n), (1.0, 2.0), 1),
    ],
)
def test_operators_of_integers(f, numbers, programs):
    same(f, *[(X, n) for n in (*numbers, *numbers)], programs=programs)


@pytest.mark.parametrize(
    ("f", "number", "message"),
    [
        (lambda n: ~n, 2.5, "bad operand type for unary ~: 'float'"),
        (lambda n: n & 1, 2.5, "unsupported operand type\\(s\\) for &: 'float' and 'int'"),
        (
            lambda n: pow(n, 2, 5),
            2.5,
            "pow\\(\\) 3rd argument not allowed unless all arguments are",
        ),
        (lambda n: n << -1, 2, "negative shift count"),
        (lambda n: divmod(n, 0), 2, "integer (division or )?modulo by zero|division by zero"),
    ],
)
def test_operators_raise_as_those_of_the_number(f, number, message):
    for function in (f, func.compile(f)):
        with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=message):
            function(number)


def test_divmod_of_tensors_is_refused_as_outside():
    for function in (divmod, func.compile(divmod)):
        with pytest.raises(TypeError, match="unsupported operand type\\(s\\) for divmod\\(\\)"):
            function(mg.asarray(X), mg.asarray(X))
