"""vmap: which axes count the examples, what comes out, over what it may be called, and what it
refuses.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import autograd, func, registry
from multigrad.errors import BatchingError, LeakError, MixedBackendsError

A = np.arange(24.0).reshape(2, 3, 4)


class TestAxes:
    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
    def test_in_axes_and_out_axes(self, xp, axis):
        x = raw(xp, A)
        seen = []
        f = lambda v: seen.append((v.shape, v.ndim, v.size)) or v * 2
        close(func.vmap(f, in_axes=axis, out_axes=axis)(x), A * 2)
        shape = tuple(np.delete(A.shape, axis))
        assert seen == [(shape, 2, shape[0] * shape[1])]
        close(
            func.vmap(lambda v: xp.sum(v), in_axes=axis)(x),
            A.sum(tuple(i for i in range(3) if i != axis % 3)),
        )

    def test_of_several_arguments_and_structures(self, xp):
        x, y = raw(xp, A), raw(xp, A[0])
        close(
            func.vmap(
                lambda p, s, q: p["a"] * s + xp.expand_dims(q[0], axis=1), in_axes=(1, None, (-1,))
            )({"a": x}, 2.0, (raw(xp, A[:, 0, :3]),)),
            np.moveaxis(A, 1, 0) * 2 + A[:, 0, :3].T[:, :, None],
        )
        close(func.vmap(lambda x, y: x * y, in_axes=[0, None])(x, y), A * A[0])
        close(func.vmap(lambda x, *, scale: x * scale)(x, scale=y), A * A[0])

        @dataclass
        class Pair:
            u: Any
            v: Any

        found = func.vmap(
            lambda p: Pair(p.v, p.u * 2), in_axes=(Pair(0, None),), out_axes=Pair(None, 1)
        )(Pair(x, y))
        close(found.u, A[0])
        close(found.v, np.moveaxis(A, 0, 1) * 2)

    def test_what_does_not_depend_on_the_batch_is_repeated(self, xp):
        x = raw(xp, A)
        one, two, none = func.vmap(
            lambda v: (xp.ones(2), raw(xp, [1.0, 2.0]), raw(xp, 3.0)), out_axes=(0, 1, None)
        )(x)
        assert one.shape == (2, 2) and not isinstance(one, mg.Tensor)
        close(two, [[1, 1], [2, 2]])
        close(none, 3)

    @pytest.mark.parametrize("chunk", [1, 2, 3, 5, 6, 100])
    def test_chunks_give_the_same(self, xp, chunk):
        x = raw(xp, np.arange(15.0).reshape(5, 3))
        sizes = []

        def f(v):
            sizes.append(v._array.shape[0])
            return xp.cumulative_sum(v), {"s": (xp.sum(v), xp.ones(1))}

        found = func.vmap(f, out_axes=(1, {"s": (0, None)}), chunk_size=chunk)(x)
        close(found[0], np.arange(15.0).reshape(5, 3).cumsum(1).T)
        close(found[1]["s"][0], np.arange(15.0).reshape(5, 3).sum(1))
        close(found[1]["s"][1], [1])
        assert sum(sizes) == 5 and max(sizes) == min(chunk, 5) and len(sizes) == -(-5 // chunk)

    def test_a_batch_of_none(self, xp):
        x = raw(xp, np.zeros((0, 3)))
        assert func.vmap(lambda v: xp.sum(v))(x).shape == (0,)
        assert func.vmap(func.grad(lambda v: xp.sum(v * v)))(x).shape == (0, 3)
        assert func.vmap(lambda v: xp.reshape(v, (-1, 1)))(x).shape == (0, 3, 1)


class TestValues:
    def test_raw_in_raw_out_and_tensors_in_tensors_out(self, xp):
        x = raw(xp, A)
        assert type(func.vmap(lambda v: v * 2)(x)) is type(x)
        assert isinstance(func.vmap(lambda v: v * 2)(xp.asarray(x)), mg.Tensor)
        assert type(func.vmap(lambda v: v * xp.ones(4, dtype=xp.float64))(x)) is type(x)
        w = xp.asarray(A[0], requires_grad=True)
        y = func.vmap(lambda v: v * w)(x)
        assert isinstance(y, mg.Tensor) and y.requires_grad
        xp.sum(y).backward()
        close(w.grad, A.sum(0))

    def test_layers_answer_for_one_example(self, xp):
        def f(v):
            assert (
                v.shape == (3, 4)
                and len(v) == 3
                and v.dtype == xp.float64
                and v.T.shape == (4, 3)
                and v.mT.shape == (4, 3)
            )
            assert v.__array_namespace__() is xp and v.device == xp.asarray(raw(xp, A)).device
            assert [row.shape for row in v] == [(4,)] * 3
            assert not v.requires_grad
            assert "Batched(" in repr(v) and "shape=(3, 4)" in repr(v)
            return v

        func.vmap(f)(raw(xp, A))

    def test_the_callers_array_is_not_written(self, xp):
        x = raw(xp, A)
        before = values(x).copy()

        def f(v):
            v += 1
            v[0, ...] = 7.0
            w = v[1, ...]
            w *= 2
            v.sin_()
            return v

        close(
            func.vmap(f)(x),
            np.sin(
                np.concatenate([np.full((2, 1, 4), 7.0), (A[:, 1:2] + 1) * 2, A[:, 2:] + 1], axis=1)
            ),
        )
        close(x, before)

    def test_tensors_and_backward_inside(self, xp):
        """An ordinary training step for each example: leaves, backward, grad and no_grad inside."""

        def f(v):
            w = mg.tensor(v, requires_grad=True)
            xp.sum(w**3).backward()
            with mg.no_grad():
                w -= 0.1 * w.grad
            return w.detach()

        close(func.vmap(f)(raw(xp, A)), A - 0.3 * A**2)


class TestRefusals:
    def test_arguments(self, xp):
        x = raw(xp, A)
        for options, error, match in (
            (
                {"chunk_size": 2.0},
                ValueError,
                "chunk_size must be an int above 0, or None, not 2.0",
            ),
            (
                {"randomness": "often"},
                ValueError,
                "randomness must be 'error', 'different' or 'same', not 'often'",
            ),
            (
                {"out_axes": 1.5},
                TypeError,
                "out_axes must be an int, None, or a nested structure of these, but there is 1.5",
            ),
            ({"in_axes": True}, TypeError, "in_axes must be an int"),
        ):
            with pytest.raises(error, match=f"vmap: {match}"):
                func.vmap(lambda v: v, **options)(x)

    def test_axes_that_do_not_fit(self, xp):
        x = raw(xp, A)
        for in_axes, args, match in (
            (
                3,
                (x,),
                r"vmap: in_axes has 3 for an array of shape \(2, 3, 4\), which has no such axis",
            ),
            (
                ({"b": 0},),
                ({"a": x},),
                r"have the structure of the arguments: expected a dictionary with the keys "
                r"\['a'\] at \[0\]",
            ),
            (
                None,
                (x,),
                "vmap: there is no argument to map over: in_axes is None for all arguments, or "
                "there are no arguments",
            ),
            (
                (0, 1),
                (x, x),
                "vmap: the arguments have different numbers of examples along their in_axes: 2, 3",
            ),
        ):
            with pytest.raises(ValueError, match=match):
                func.vmap(lambda *v: v[0], in_axes=in_axes)(*args)
        with pytest.raises(
            TypeError,
            match="vmap: in_axes maps over an argument of type float, which has no axes; pass "
            "in_axes=None for it",
        ):
            func.vmap(lambda a, b: a)(x, 1.0)
        for out_axes, match in (
            (3, "vmap: out_axes has 3 for a result of 3 axes, that of the examples included"),
            (
                None,
                "vmap: out_axes is None for a result that differs between examples; give an axis",
            ),
            (
                (0,),
                "vmap: out_axes must be an int, None, or have the structure of the output: "
                "expected one value for an array",
            ),
        ):
            with pytest.raises(ValueError, match=match):
                func.vmap(lambda v: v, out_axes=out_axes)(x)

    def test_results(self, xp):
        for result, name in ((1.0, "float"), ("text", "str")):
            with pytest.raises(
                TypeError, match=f"vmap: the function must return arrays, .* but it returned {name}"
            ):
                func.vmap(lambda v, result=result: result)(raw(xp, A))

    @pytest.mark.filterwarnings("ignore:Converting a tensor:UserWarning")
    @pytest.mark.parametrize(
        "what,use",
        [
            (r"bool\(\)", lambda xp, v: 1 if v[0] > 1 else 2),
            (r"float\(\)", lambda xp, v: float(v[0])),
            (r"int\(\)", lambda xp, v: int(v[0])),
            (r"complex\(\)", lambda xp, v: complex(v[0])),
            (r"item\(\)", lambda xp, v: v[0].item()),
            (r"tolist\(\)", lambda xp, v: v.tolist()),
            ("an index", lambda xp, v: [1, 2, 3][xp.argmax(v)]),
            ("an index", lambda xp, v: v[: xp.argmax(v)]),
        ],
    )
    @pytest.mark.parametrize("examples", [1, 3])
    def test_what_depends_on_values(self, xp, what, use, examples):
        """Also in a batch of one, so that nothing works by chance; and inside of other
        transformations.
        """
        x = raw(xp, np.ones((examples, 3)))
        for wrapped in (lambda f: f, func.grad):
            with pytest.raises(
                BatchingError,
                match=f"{what} of an array inside vmap: it is a batch of {examples} examples",
            ):
                func.vmap(wrapped(lambda v: use(xp, v)))(x)

    def test_shapes_that_depend_on_values(self, xp):
        x = raw(xp, A[0])
        for name, f in (
            ("nonzero", xp.nonzero),
            ("unique_all", xp.unique_all),
            ("repeat", lambda v: xp.repeat(v, xp.astype(v > 0, xp.int64))),
            ("indexing with a mask", lambda v: v[v > 1]),
        ):
            with pytest.raises(
                BatchingError,
                match=f"{name} inside vmap: the shape of its result depends on the values, so "
                "it may differ",
            ):
                func.vmap(f)(x)

    def test_leaks(self, xp):
        kept = []
        func.vmap(lambda v: kept.append(v) or v)(raw(xp, A))
        with pytest.raises(
            LeakError,
            match="a batch that was made inside the transformation 'vmap' was used after it had "
            "finished",
        ):
            kept[0] + 1
        assert "leaked" in repr(kept[0])

    def test_what_leaves(self, xp):
        for use in (
            np.asarray,
            lambda v: v.numpy(),
            lambda v: v.__dlpack__(),
            lambda v: v.backward(),
            lambda v: v.requires_grad_(),
        ):
            with pytest.raises((mg.errors.GradientError, BufferError)):
                func.vmap(lambda v, use=use: use(v))(raw(xp, A))

    def test_two_libraries(self):
        jax = pytest.importorskip("jax")
        with pytest.raises(MixedBackendsError, match="got arrays of two backends"):
            func.vmap(lambda a, b: a + b)(np.ones(3), jax.numpy.ones(3))
        with pytest.raises(MixedBackendsError, match="got arrays of two backends"):
            func.vmap(lambda a: mg.matmul(a, jax.numpy.ones(3)))(np.ones((2, 3)))


class TestWithoutARule:
    @pytest.fixture
    def op(self):
        registry.define(
            "example.halved(x, /)",
            outputs=("low", "high"),
            forward=lambda xp, x: (x[: x.shape[0] // 2], x[x.shape[0] // 2 :]),
            x=lambda xp, g_low, g_high, x_shape: xp.concat([g_low, g_high]),
            jvp=lambda xp, t: (t[: t.shape[0] // 2], t[t.shape[0] // 2 :]),
        )
        yield mg.example.halved
        registry.OPS.pop("example.halved")

    def test_one_by_one_with_one_warning(self, op, xp):
        f = lambda v: sum(map(xp.sum, op(v * v)))
        with pytest.warns(
            UserWarning,
            match=r"the operation 'example.halved' has no batching rule, so vmap computes its 2 "
            r"examples one by one",
        ):
            close(func.vmap(f)(raw(xp, A[0, :2])), (A[0, :2] ** 2).sum(1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            close(func.vmap(func.grad(f))(raw(xp, A[0])), 2 * A[0])
            low, _ = func.vmap(op)(raw(xp, A[0]))
            close(low, A[0, :, :2])
            with pytest.raises(
                BatchingError,
                match="example.halved: there is no batching rule for this operation, and the "
                "batch has no example",
            ):
                func.vmap(op)(raw(xp, A[0, :0]))

    def test_registration(self):
        with pytest.raises(
            mg.errors.RegistrationError,
            match="example.a: batching must be one of elementwise, axis, leading, form, or a "
            "Python",
        ):
            registry.linear("example.a(x, /)", batching="sideways", x=lambda xp, g: g)
        with pytest.raises(
            mg.errors.RegistrationError,
            match="example.a: the batching rule takes 'y', which is not one of xp, size, "
            "batched, x",
        ):
            registry.linear("example.a(x, /)", batching=lambda xp, y: y, x=lambda xp, g: g)
        assert "example.a" not in registry.OPS


def test_the_array_of_a_batch_is_no_value_of_an_example(xp):
    class Twice(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return xp.asarray(2 * a.array)

        @staticmethod
        def backward(ctx, g):
            return xp.asarray(2 * g.array)

    x = xp.asarray(np.arange(3.0), requires_grad=True)
    close(autograd.functional.jacobian(Twice.apply, x), 2 * np.eye(3))
    message = (
        "array of an array inside vmap: it is one example, and the stored array is a batch of 3"
    )
    for run in (
        lambda: autograd.functional.jacobian(Twice.apply, x, vectorize=True),
        lambda: func.jacrev(Twice.apply)(raw(xp, [1.0, 2.0, 3.0])),
        lambda: func.vmap(lambda a: a.array * 2)(raw(xp, [1.0, 2.0, 3.0])),
        lambda: autograd.grad(Twice.apply(x), x, raw(xp, np.eye(3)), is_grads_batched=True),
    ):
        with pytest.raises(BatchingError, match=message):
            run()
