"""grad(is_grads_batched=True), and what is built on it: jacobian and hessian with vectorize, in
both modes; on each backend and in PyTorch.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from function_programs import ONCE, OnceSquare

import multigrad as mg
from multigrad.autograd import grad
from multigrad.autograd.functional import jacobian
from multigrad.registry import OPS, define

ROWS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, -1.0, 2.0], [0.0, 0.0, 0.0]]


def same(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    else:
        assert found.shape == np.shape(expected) and found.dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.fixture
def x(side):
    return side.tensor([1.0, 2.0, 3.0], requires_grad=True)


def one_by_one(side, outputs, inputs, rows):
    found = [side.autograd.grad(outputs, inputs, row, retain_graph=True) for row in rows]
    return tuple(np.stack([side.values(g) for g in column]) for column in zip(*found, strict=True))


class TestGrad:
    def test_equals_a_pass_for_each_row(self, side, x):
        w = side.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 1.0], [2.0, 0.0, 1.0]], requires_grad=True)
        y = side.xp.tanh(w @ x) * side.xp.sum(x**2)
        rows = side.tensor(ROWS)
        same(
            side.values(
                side.autograd.grad(y, (x, w), rows, retain_graph=True, is_grads_batched=True)
            ),
            one_by_one(side, y, (x, w), rows),
        )

    def test_several_outputs(self, side, x):
        y, z = x**2, side.xp.sum(x * 3)
        (found,) = side.autograd.grad(
            (y, z), x, (side.tensor(ROWS), side.tensor([1.0, 0.0, 2.0, 1.0])), is_grads_batched=True
        )
        same(
            side.values(found),
            np.asarray(ROWS) * [2.0, 4.0, 6.0] + np.asarray([[3.0], [0.0], [6.0], [3.0]]),
        )

    def test_a_graph_may_be_kept_and_freed(self, side, x):
        y = x**3
        call = lambda **options: side.autograd.grad(
            y, x, side.tensor(ROWS), is_grads_batched=True, **options
        )
        call(retain_graph=True)
        call()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            call()

    def test_create_graph(self, side, x):
        (found,) = side.autograd.grad(
            x**3, x, side.tensor(ROWS), create_graph=True, is_grads_batched=True
        )
        assert found.requires_grad
        side.xp.sum(found).backward()
        same(side.values(x.grad), np.sum(ROWS, axis=0) * 6 * [1.0, 2.0, 3.0])

    def test_unused_inputs(self, side, x):
        other = side.tensor([1.0, 2.0], requires_grad=True)
        call = lambda **options: side.autograd.grad(
            x * 2, (x, other), side.tensor(ROWS), is_grads_batched=True, **options
        )
        assert call(allow_unused=True)[1] is None
        same(side.values(call(materialize_grads=True)), (2 * np.asarray(ROWS), np.zeros(2)))
        with pytest.raises(
            RuntimeError,
            match="The differentiated Tensor at index 1 appears to not have been used in the graph",
        ):
            call()

    def test_gradients_that_do_not_depend_on_the_batch(self, side, x):
        y = x * 2
        y.register_hook(lambda g: side.tensor([1.0, 2.0, 3.0]))
        (found,) = side.autograd.grad(y, x, side.tensor(ROWS), is_grads_batched=True)
        same(side.values(found), np.tile([2.0, 4.0, 6.0], (4, 1)))

    def test_hooks_see_one_example(self, side, x):
        y, shapes = x * 2, []
        y.register_hook(lambda g: (shapes.append(tuple(g.shape)), g * 3)[1])
        (found,) = side.autograd.grad(y, x, side.tensor(ROWS), is_grads_batched=True)
        assert shapes == [(3,)]
        same(side.values(found), 6 * np.asarray(ROWS))

    def test_a_function_of_the_users_runs_on_the_batch(self, side, x):
        class Cube(side.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a**3

            @staticmethod
            def backward(ctx, g):
                assert tuple(g.shape) == (3,)
                return Scaled.apply(g) * ctx.saved_tensors[0] ** 2

        class Scaled(side.autograd.Function):  # inside of the pass a Function needs no rule
            @staticmethod
            def forward(ctx, a):
                return a * 3

            @staticmethod
            def backward(ctx, g):
                return g * 3

        (found,) = side.autograd.grad(
            Cube.apply(x), x, side.tensor(ROWS), create_graph=True, is_grads_batched=True
        )
        same(side.values(found), np.asarray(ROWS) * [3.0, 12.0, 27.0])
        (again,) = side.autograd.grad(side.xp.sum(found), x)
        same(side.values(again), np.sum(ROWS, axis=0) * [6.0, 12.0, 18.0])

    def test_complex_and_converted_gradients(self, side):
        z = side.tensor([1 + 2j, 2 - 1j], dtype="complex128", requires_grad=True)
        (found,) = side.autograd.grad(
            z * z, z, side.tensor(np.eye(2).tolist(), dtype="complex128"), is_grads_batched=True
        )
        same(side.values(found), np.diag([2 - 4j, 4 + 2j]))
        x = side.tensor([1.0, 2.0, 3.0], dtype="float32", requires_grad=True)
        (found,) = side.autograd.grad(x * 2, x, side.tensor(ROWS), is_grads_batched=True)
        same(side.values(found), np.asarray(ROWS, dtype="float32") * 2)

    def test_errors(self, side, x):
        call = lambda *rows: side.autograd.grad(
            [x * 2] * len(rows), x, list(rows), retain_graph=True, is_grads_batched=True
        )
        with pytest.raises(
            RuntimeError,
            match="If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
            r"dimension. (?s:.*)grad_output\[0\] has a shape of .* and output\[0\] has a shape of .*3",
        ):
            call(side.tensor([[1.0] * 4] * 2))
        with pytest.raises((RuntimeError, IndexError)):
            call(side.tensor(1.0))
        with pytest.raises(
            ValueError,
            match=r"vmap: Expected all tensors to have the same size in the mapped dimension, "
            r"got sizes \[4, 3\]",
        ):
            call(side.tensor(ROWS), side.tensor(ROWS[:3]))
        with pytest.raises(ValueError):
            side.autograd.grad(side.xp.sum(x), x, is_grads_batched=True)
        with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got str"):
            call("x")
        with pytest.raises(
            RuntimeError,
            match="For complex Tensors, both grad_output and output are required to have the "
            "same dtype",
        ):
            call(side.tensor([[1j] * 3], dtype="complex128"))


class TestGradOnlyHere:
    """PyTorch refuses an element of None and a batch of none, and retained gradients are layers
    that nobody can use.
    """

    def test_none_is_the_same_for_all_examples(self, backend):
        x = mg.tensor([1.0, 2.0], dtype="float64", backend=backend, requires_grad=True)
        (found,) = grad(
            [mg.sum(x * x), x * 3],
            x,
            [None, mg.tensor(np.eye(2).tolist(), dtype="float64", backend=backend)],
            is_grads_batched=True,
        )
        assert found.tolist() == [[5.0, 4.0], [2.0, 7.0]]

    def test_an_empty_batch(self, backend):
        x = mg.tensor([1.0, 2.0], backend=backend, requires_grad=True)
        assert grad(mg.sin(x), x, mg.namespace(backend).zeros((0, 2)), is_grads_batched=True)[
            0
        ].shape == (0, 2)

    def test_what_cannot_be_kept(self):
        x, other = (
            mg.tensor([1.0, 2.0], requires_grad=True),
            mg.tensor([1.0, 2.0], requires_grad=True),
        )
        y = x * 2
        y.retain_grad()
        found = grad(y * other, (x, y), np.eye(2), is_grads_batched=True)
        assert (
            found[0].tolist() == [[2.0, 0.0], [0.0, 4.0]]
            and found[1].tolist() == [[1.0, 0.0], [0.0, 2.0]]
            and y.grad is None
        )
        with (
            pytest.raises(RuntimeError, match="cannot accumulate batches of gradients"),
            pytest.warns(FutureWarning),
        ):
            grad(x * other, x, np.eye(2), is_grads_batched=True, only_inputs=False)
        assert other.grad is None

    def test_the_edge_of_a_graph(self):
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        edge = mg.autograd.graph.get_gradient_edge(x * x)
        assert grad(edge, x, np.eye(2), is_grads_batched=True)[0].tolist() == [
            [2.0, 0.0],
            [0.0, 4.0],
        ]

    def test_once_differentiable(self, backend):
        x = mg.tensor([1.0, 2.0], dtype="float64", backend=backend, requires_grad=True)
        rows = mg.tensor(np.eye(2).tolist(), dtype="float64", backend=backend, requires_grad=True)
        (found,) = grad(OnceSquare.apply(x), x, rows, create_graph=True, is_grads_batched=True)
        assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
        with pytest.raises(RuntimeError, match=ONCE):
            mg.sum(found).backward()


class TestUnderTransformations:
    def test_inside_grad_inside_vmap(self, backend):
        points = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype="float64", backend=backend)
        rows = mg.tensor(ROWS, dtype="float64", backend=backend)
        total = lambda a: mg.sum(grad(a**3, a, rows, create_graph=True, is_grads_batched=True)[0])
        found = mg.func.vmap(mg.func.grad(total))(points)
        np.testing.assert_allclose(
            np.asarray(found.array), np.sum(ROWS, axis=0) * 6 * np.asarray(points.array)
        )

    def test_inside_grad_in_forward_mode(self, backend):
        x = mg.tensor([1.0, 2.0, 3.0], dtype="float64", backend=backend)
        rows = mg.tensor(ROWS, dtype="float64", backend=backend)
        total = lambda a: mg.sum(grad(a**3, a, rows, create_graph=True, is_grads_batched=True)[0])
        _, moved = mg.func.jvp(mg.func.grad(total), (x,), (x * 2,))
        np.testing.assert_allclose(
            np.asarray(moved.array), np.sum(ROWS, axis=0) * 12 * np.asarray([1.0, 2.0, 3.0])
        )


# jacobian and hessian

MODES = pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])

FUNCTIONS = {
    "a vector": lambda xp: lambda a: xp.sin(a) * xp.sum(a),
    "a number": lambda xp: lambda a: xp.sum(a**2),
    "a matrix": lambda xp: lambda a: xp.exp(a)[:, None] * a,
    "a tuple": lambda xp: lambda a: (a * 2, xp.sum(a**2), a[1:] * a[0]),
    "a tuple of one": lambda xp: lambda a: (a * 2,),
    "a row and its sum": lambda xp: lambda a: xp.stack([a[0], xp.sum(a)]),
    "reductions": lambda xp: lambda a: xp.stack([xp.max(a), xp.prod(a), xp.mean(a * a)]),
    "linear algebra": lambda xp: (
        lambda a: xp.linalg.inv(a[:, None] * a + xp.eye(3, dtype=a.dtype)) @ a
    ),
    "the input itself": lambda xp: lambda a: a,
    "nothing": lambda xp: lambda a: a[:0],
}


class TestVectorized:
    @MODES
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_equals_the_loop(self, side, x, name, strategy):
        f = FUNCTIONS[name](side.xp)
        if side.name == "torch" and name == "nothing":
            pytest.skip("PyTorch's loop fails for an empty output")
        rows = side.values(side.autograd.functional.jacobian(f, x))
        same(
            side.values(side.autograd.functional.jacobian(f, x, vectorize=True, strategy=strategy)),
            rows,
        )

    @MODES
    def test_structures(self, side, x, strategy):
        b = side.tensor([[1.0, 2.0], [3.0, 4.0]])
        call = lambda f, at, **options: side.values(
            side.autograd.functional.jacobian(f, at, **options)
        )
        for f, at in (
            (lambda a, c: (a * side.xp.sum(c), c @ c), (x, b)),
            (lambda a, c: side.xp.sum(a) * c, (x, b)),
            (lambda a: (a, side.xp.sum(a * a)), (x,)),
            (lambda a, c: (c * 2,), (x, b)),
            (lambda a: a @ a, b),
        ):
            same(call(f, at, vectorize=True, strategy=strategy), call(f, at))

    def test_create_graph(self, side, x):
        found = side.autograd.functional.jacobian(
            lambda a: (a**3, side.xp.sum(a)), x, create_graph=True, vectorize=True
        )
        side.xp.sum(found[0]).backward()
        same(side.values(x.grad), np.array([6.0, 12.0, 18.0]))
        assert not side.autograd.functional.jacobian(
            lambda a: a**3, x, vectorize=True
        ).requires_grad

    def test_integer_outputs_and_none(self, side, x):
        call = side.autograd.functional.jacobian
        same(
            side.values(call(lambda a: (side.xp.argmax(a), a * 2), x)), (np.zeros(3), 2 * np.eye(3))
        )
        same(
            side.values(
                call(lambda a: side.tensor([1.0, 2.0]), x, vectorize=True, strategy="forward-mode")
            ),
            np.zeros((2, 3)),
        )

    @MODES
    def test_dtypes(self, side, strategy):
        """Of the input in reverse mode, of the output in forward mode."""
        a = side.tensor([1.0, 2.0], dtype="float32")
        found = side.autograd.functional.jacobian(
            lambda v: v * side.tensor([1.0, 3.0]), a, vectorize=True, strategy=strategy
        )
        same(
            side.values(found),
            np.diag([1.0, 3.0]).astype("float32" if strategy == "reverse-mode" else "float64"),
        )

    @MODES
    def test_one_call_and_one_pass(self, side, x, strategy):
        calls, passes = [], []

        def f(a):
            calls.append(None)
            y = a * 2
            if strategy == "reverse-mode":
                y.register_hook(lambda g: passes.append(None))
            return y

        side.autograd.functional.jacobian(f, x, vectorize=True, strategy=strategy)
        assert len(calls) == 1 and len(passes) == (strategy == "reverse-mode")

    @MODES
    def test_hessian(self, side, x, strategy):
        b = side.tensor([2.0, 1.0])
        f = lambda a, c: side.xp.sum(side.xp.sin(a)) * side.xp.sum(c**3) + a[0] * c[1]
        call = lambda **options: side.values(
            side.autograd.functional.hessian(f, (x.detach(), b), **options)
        )
        same(call(vectorize=True, outer_jacobian_strategy=strategy), call())
        one = lambda a: side.xp.sum(a**3)
        same(
            side.values(
                side.autograd.functional.hessian(
                    one, x.detach(), vectorize=True, outer_jacobian_strategy=strategy
                )
            ),
            np.diag([6.0, 12.0, 18.0]),
        )

    def test_hessian_create_graph(self, side, x):
        found = side.autograd.functional.hessian(
            lambda a: side.xp.sum(a**4), x, create_graph=True, vectorize=True
        )
        side.xp.sum(found).backward()
        same(side.values(x.grad), np.array([24.0, 48.0, 72.0]))


class TestVectorizedUnderTransformations:
    @MODES
    def test_inside_vmap(self, side, strategy):
        points = side.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        if side.name == "torch":
            pytest.skip("PyTorch's functional cannot run inside torch.func.vmap")
        found = mg.func.vmap(
            lambda p: jacobian(lambda a: a**2 * mg.sum(a), p, vectorize=True, strategy=strategy)
        )(points)
        expected = np.stack(
            [
                side.values(jacobian(lambda a: a**2 * mg.sum(a), p))
                for p in (points[0, :], points[1, :])
            ]
        )
        same(side.values(found), expected)

    def test_inside_grad(self, backend):
        raw = mg.tensor([1.0, 2.0], dtype="float64", backend=backend).array
        found = mg.func.grad(
            lambda a: jacobian(lambda b: b**3, a, create_graph=True, vectorize=True).sum()
        )(raw)
        assert np.asarray(found).tolist() == [6.0, 12.0]

    @MODES
    def test_outputs_of_another_library(self, strategy):
        x = mg.tensor([1.0, 2.0])
        found = jacobian(
            lambda a: ((a * a).to_backend("strict"), a * 2), x, vectorize=True, strategy=strategy
        )
        assert [b.tolist() for b in found] == [[[2.0, 0.0], [0.0, 4.0]], [[2.0, 0.0], [0.0, 2.0]]]

    @MODES
    def test_captured_tensors_that_require_grad(self, backend, strategy):
        w, x = (
            mg.tensor(v, dtype="float64", backend=backend, requires_grad=True)
            for v in ([2.0, 3.0], [1.0, 2.0])
        )
        found = jacobian(lambda a: a * w, x, vectorize=True, strategy=strategy)
        assert (
            found.tolist() == [[2.0, 0.0], [0.0, 3.0]]
            and not found.requires_grad
            and w.grad is None
            and x.grad is None
        )


class TestVectorizedWithOtherModes:
    @MODES
    def test_writes_into_views(self, side, x, strategy):
        def f(a):
            b = a * 1
            part = b[1:]
            part *= a[0]
            b[0] = b[2] * 2
            return b * a

        rows = side.values(side.autograd.functional.jacobian(f, x))
        same(
            side.values(side.autograd.functional.jacobian(f, x, vectorize=True, strategy=strategy)),
            rows,
        )

    @pytest.mark.filterwarnings(
        "ignore:Anomaly Detection", "ignore:Error detected", "ignore:invalid value"
    )
    def test_anomalies(self, backend):
        x = mg.tensor([1.0, 2.0], dtype="float64", backend=backend)
        with mg.autograd.detect_anomaly():
            assert jacobian(lambda a: a**2, x, vectorize=True).tolist() == [[2.0, 0.0], [0.0, 4.0]]
            with pytest.raises(
                RuntimeError, match="Function 'SqrtBackward' returned nan values in its 0th output"
            ):
                jacobian(lambda a: mg.sqrt(a - 1) * 0, x, vectorize=True)

    def test_hooks_on_saved_tensors(self, side, x):
        packed = []
        with side.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(None) or t, lambda t: t
        ):
            same(
                side.values(side.autograd.functional.jacobian(lambda a: a**2, x, vectorize=True)),
                np.diag([2.0, 4.0, 6.0]),
            )
        assert packed

    @MODES
    def test_under_jit(self, strategy):
        jax = pytest.importorskip("jax")
        f = lambda v: (
            jacobian(
                lambda a: mg.sin(a) * mg.sum(a), mg.asarray(v), vectorize=True, strategy=strategy
            ).array
        )
        v = jax.numpy.asarray([1.0, 2.0, 3.0])
        np.testing.assert_allclose(jax.jit(f)(v), f(v), rtol=1e-12)


def test_slow_batches_are_named(backend):  # F049: the switch is a filter of warnings
    define(
        "example.halved(x, /)",
        forward=lambda xp, x: xp.multiply(x, 0.5),
        x=lambda xp, g: g * 0.5,
        jvp=lambda xp, t: t * 0.5,
    )
    define(
        "example.clock(x, /)",
        forward=lambda xp, x: xp.multiply(x, 1.0),
        x=lambda xp, g: xp.example.halved(g),
        jvp=lambda xp, t: t,
    )
    try:
        x = mg.tensor([1.0, 2.0], backend=backend)
        with pytest.warns(
            UserWarning,
            match="the operation 'example.halved' has no batching rule, so vmap computes its 2 "
            "examples one by one",
        ):
            found = jacobian(lambda a: mg.namespace(backend).example.clock(a), x, vectorize=True)
        assert found.tolist() == [[0.5, 0.0], [0.0, 0.5]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # once is enough
            jacobian(lambda a: mg.namespace(backend).example.clock(a), x, vectorize=True)
    finally:
        for name in ("example.halved", "example.clock"):
            OPS.pop(name)
