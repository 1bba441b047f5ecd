"""Every way of writing an operation is straight code, which agrees with the general path, and
follows a declaration that is replaced.
"""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest

import multigrad as mg
from multigrad import func, registry
from multigrad.core.level import Layer
from multigrad.dispatch import fast, plans

A, B = np.array([0.4, 1.3, 2.0]), np.array([1.1, 0.7, 0.2])
M = np.arange(1.0, 10.0).reshape(3, 3) / 7


def leaf(x):
    return mg.asarray(np.array(x), requires_grad=True)


def value(x):
    while isinstance(x, Layer):
        x = x._array
    return np.asarray(x)


FORMS = {
    "raw on the right": lambda x: x * B,
    "raw on the left": lambda x: B * x,
    "np.float64": lambda x: x * np.float64(1.5) + np.float64(2.0),
    "np.float64 on the left": lambda x: np.float64(1.5) * x,
    "Python scalars": lambda x: 2 - x * 3.0,
    "other dtype": lambda x: x * mg.asarray(B.astype(np.float32)),
    "raw of another dtype": lambda x: x * B.astype(np.float32),
    "integers": lambda x: x * mg.asarray(np.array([1, 2, 3])),
    "astype": lambda x: mg.astype(x, np.float32),
    "index array": lambda x: x[np.array([0, 2])],
    "index Tensor": lambda x: x[mg.asarray(np.array([0, 2]))],
    "mask": lambda x: x[x > 1.0],
    "index arrays in a tuple": lambda x: mg.reshape(x, (3, 1))[np.array([0, 2]), :],
    "stack": lambda x: mg.stack([x, B, x]),
    "concat": lambda x: mg.concat([x, mg.asarray(B)]),
    "keyword arrays": lambda x: mg.clip(x, min=mg.asarray(0.5), max=x),
    "keyword scalars": lambda x: mg.clip(x, 0.5, 1.5),
    "where with a raw condition": lambda x: mg.where(np.array([True, False, True]), x, 0.0),
    "where with a comparison": lambda x: mg.where(x > 1, x, B),
    "matmul with raw": lambda x: M @ x,
    "take": lambda x: mg.take(x, mg.asarray(np.array([1, 1])), axis=0),
    "sum with a dtype": lambda x: mg.sum(x, dtype="float32"),
    "argmax": lambda x: x * mg.astype(mg.argmax(x), x.dtype),
    "of a module": lambda x: mg.sum(mg.exp(x)),
}


class NoGeneral:
    """Counts how often the functions of operations take the general path."""

    def __init__(self):
        self.calls = []

    def __enter__(self):
        self.changed = []
        gc.unfreeze()  # what conftest.py has frozen is to be found, too
        for function in [
            f
            for f in gc.get_objects()
            if type(f) is type(leaf) and f.__module__ == "multigrad" and "_general" in f.__globals__
        ]:
            scope = function.__globals__
            if not isinstance(scope["_general"], Counted):
                self.changed.append((scope, scope["_general"]))
                scope["_general"] = Counted(scope["_general"], self.calls)
        gc.freeze()
        return self

    def __exit__(self, *_):
        for scope, general in self.changed:
            scope["_general"] = general


class Counted:
    def __init__(self, general, calls):
        self.general, self.calls = general, calls

    def __call__(self, op, values):
        self.calls.append(op.name)
        return self.general(op, values)


@pytest.mark.runs_once
class TestNothingIsGeneral:
    """Once an operation has been met, `dispatch.general` is not called for what users write."""

    @pytest.mark.parametrize(
        "where", ["tape", "func.grad", "jvp", "vmap", "vmap of grad", "jvp of grad"]
    )
    def test_of(self, where):
        runs = {}
        for name, f in FORMS.items():
            if name == "mask" and "vmap" in where:
                continue  # a mask has another number of elements in each example

            def loss(x, f=f):
                return mg.sum(f(x))

            runs[name] = {
                "tape": lambda f=f: f(leaf(A)),
                "func.grad": lambda loss=loss: func.grad(loss)(A),
                "jvp": lambda f=f: func.jvp(f, (A,), (B,)),
                "vmap": lambda f=f: func.vmap(f)(np.stack([A, B])),
                "vmap of grad": lambda loss=loss: func.vmap(func.grad(loss))(np.stack([A, B])),
                "jvp of grad": lambda loss=loss: func.jvp(func.grad(loss), (A,), (B,)),
            }[where]
            for _ in range(12):
                runs[name]()
        # Duals of several outputs are rare
        allowed = {"unstack"} if where == "jvp of grad" else set()
        with NoGeneral() as counted:
            assert counted.changed
            for name, run in runs.items():
                counted.calls.clear()
                run()
                assert set(counted.calls) <= allowed, name


class TestAgreement:
    """With the general path: values, dtypes, gradients, and gradients of these."""

    @staticmethod
    def results(f, x):
        def loss(t):
            return mg.sum(f(t) * 1.5)

        t = leaf(x)
        out = f(t)
        (g,) = mg.autograd.grad(mg.sum(out * out), t)
        found = [
            out,
            g,
            func.grad(loss)(x),
            func.jvp(f, (x,), (B,))[1],
            func.jvp(func.grad(loss), (x,), (B,))[1],
            func.grad(lambda u: mg.sum(func.grad(loss)(u) * B))(x),
            func.grad(func.checkpoint(loss))(x),
        ]
        return [(value(y).dtype, value(y)) for y in found]

    @pytest.mark.parametrize("name", FORMS)
    def test_of(self, name):
        for _ in range(3):
            quick = self.results(FORMS[name], A)
        with plans.interpreted():
            slow = self.results(FORMS[name], A)
        for (kind, a), (other, b) in zip(quick, slow, strict=True):
            assert kind == other
            np.testing.assert_allclose(a, b, rtol=1e-6 if kind == np.float32 else 1e-12, atol=1e-12)

    @pytest.mark.parametrize("seed", range(40))
    def test_of_random_programs(self, seed):
        of_another_shape = {
            "mask",
            "index array",
            "index Tensor",
            "take",
            "stack",
            "concat",
            "index arrays in a tuple",
            "of a module",
            "sum with a dtype",
            "astype",
        }
        names = [n for n in FORMS if n not in of_another_shape]

        def f(x):
            draw = random.Random(seed)
            terms = [x]
            for _ in range(6):
                terms.append(
                    FORMS[draw.choice(names)](draw.choice(terms))
                    * draw.choice([0.5, x, B, terms[-1]])
                )
            return sum(terms[1:], terms[0])

        quick = self.results(f, A)
        quick = self.results(f, A)
        with plans.interpreted():
            slow = self.results(f, A)
        for (kind, a), (other, b) in zip(quick, slow, strict=True):
            assert kind == other
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


PART = (("getitem", (slice(0, 2),), None),)


class TestViews:
    """The first call, on the general path, and later ones make the same views."""

    @pytest.mark.parametrize(
        ("name", "usual", "same"),
        [
            ("read_slices", lambda x: (x, PART), lambda x: (x, ())),
            ("copy_slices", lambda x: (x, x[:2], PART), lambda x: (x, x, ())),
            ("softmax", lambda x: (x,), lambda x: (x[:0],)),
        ],
    )
    def test_of_functions_that_may_return_their_argument(self, name, usual, same):
        x, function = leaf(A), fast.function_of(registry.OPS[name])
        for _ in range(3):
            assert function(*usual(x))._view is None
        assert function(*same(x))._cell is x._cell

    def test_in_the_forward_of_a_function(self):
        class Reshaped(mg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                plans.forget()
                views = [x.reshape((3, 1)) for _ in range(3)]
                assert [v._view[4] for v in views] == [False] * 3
                return views[0] * 1.0

            @staticmethod
            def backward(ctx, g):
                return g.reshape((3,))

        Reshaped.apply(leaf(A))


class TestSettings:
    """Parameters that are no arrays, in the forms that users give them."""

    @pytest.mark.parametrize("kind", [list, type("Axes", (list,), {})])
    @pytest.mark.parametrize("name", ["sum", "max", "flip"])
    def test_a_list_of_axes_at_every_level(self, xp, name, kind):
        x = xp.reshape(xp.arange(6.0), (2, 3)).array

        def gradient(axes):
            return func.grad(lambda x: mg.sum(getattr(xp, name)(x, axis=axes) * 2.0))(x)

        def tangent(axes):
            return func.jvp(lambda x: getattr(xp, name)(x, axis=axes), (x,), (x,))[1]

        def product(axes):
            return func.jvp(
                func.grad(lambda x: mg.sum(getattr(xp, name)(x, axis=axes) ** 2)), (x,), (x,)
            )[1]

        for _ in range(6):
            for run in (gradient, tangent, product):
                np.testing.assert_array_equal(run(kind([0, 1])), run((0, 1)))

    @pytest.mark.parametrize(
        "function",
        [lambda x: mg.sum(x, dtype="float32"), lambda x: mg.astype(x, "float32")],
        ids=["sum", "astype"],
    )
    def test_the_name_of_a_dtype_at_every_level(self, xp, function):
        x = xp.asarray([1.0, 2.0]).array
        for _ in range(12):
            out, tangent = func.jvp(function, (x,), (x,))
            assert out.dtype == tangent.dtype == xp.float32
            assert func.grad(lambda x: mg.sum(function(x)))(x).dtype == x.dtype
            assert (
                func.jvp(func.grad(lambda x: mg.sum(function(x * x))), (x,), (x,))[1].dtype
                == x.dtype
            )


@pytest.fixture
def cube():
    """An operation that a test may declare anew; it is gone afterwards."""
    registry.elementwise(
        "test_cube(x, /)",
        x=lambda xp, x: 3 * x * x,
        forward=lambda xp, x: x * x * x,
        override="test_cube" in registry.OPS,
    )
    yield lambda partial: registry.elementwise(
        "test_cube(x, /)", x=partial, forward=lambda xp, x: x * x * x, override=True
    )
    del registry.OPS["test_cube"]
    registry.forget_remembered()
    plans.forget()


@pytest.mark.filterwarnings("ignore")
def test_a_function_held_from_before_computes_no_old_rule(cube):
    held = mg.test_cube
    ways = {
        "tape": lambda: mg.autograd.grad(mg.sum(held(x := leaf(A))), x)[0],
        "func.grad": lambda: func.grad(lambda x: mg.sum(held(x)))(A),
        "jvp": lambda: func.jvp(held, (A,), (np.ones(3),))[1],
        "vmap of grad": lambda: func.vmap(func.grad(lambda x: mg.sum(held(x))))(A[None, :])[0],
        "jvp of vmap": lambda: func.jvp(func.vmap(held), (A[None, :],), (np.ones((1, 3)),))[1][0],
        "hvp": lambda: func.jvp(func.grad(lambda x: mg.sum(x * held(x))), (A,), (np.ones(3),))[1],
    }
    for _ in range(12):
        for way, run in ways.items():
            np.testing.assert_allclose(value(run()), 12 * A**2 if way == "hvp" else 3 * A**2)
    cube(lambda xp, x: 5 * x * x)
    for _ in range(12):
        for way, run in ways.items():
            np.testing.assert_allclose(
                value(run()),
                5 * A**2 + 5 * A**2 + 10 * A**2 if way == "hvp" else 5 * A**2,
                err_msg=way,
            )
    assert mg.test_cube is not held


class TestElements:
    def test_what_outlives_its_transformation_computes_on(self):
        kept = []
        func.grad(lambda x: kept.append((x * 2).detach()) or mg.sum(x * x))(A)
        np.testing.assert_allclose(value(kept[0] * kept[0] + A), 4 * A * A + A)

    def test_nodes_do_not_keep_transformations(self):
        class Big:
            pass

        token = Big()
        seen = weakref.ref(token)
        x = leaf(A)
        y = x * B

        def f(u, token):
            return mg.sum(u * y)

        func.grad(lambda u, t=token: f(u, t))(A)
        del token
        gc.collect()
        assert seen() is None


def test_a_name_of_the_module_is_looked_up_once_and_follows_an_override(cube):
    first = mg.test_cube
    assert vars(mg)["test_cube"] is first is fast.function_of(registry.OPS["test_cube"])
    cube(lambda xp, x: 7 * x * x)
    assert "test_cube" not in vars(mg) and mg.test_cube is not first
    np.testing.assert_allclose(func.grad(lambda x: mg.sum(mg.test_cube(x)))(A), 7 * A * A)
