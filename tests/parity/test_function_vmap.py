"""autograd.Function under vmap: by its own vmap and by a generated rule, alone and with other
transformations, on each backend and in PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import ONCE, OnceSquare

import multigrad as mg
from multigrad.autograd import Function

# The function: x * y + sum(x) * y, of vectors. Its own second derivatives are those that are
# recorded.


def product(side, rule, separate=True):
    """It as a Function, with a vmap of its own ("method") or without ("generate")."""
    xp = side.xp

    class Product(side.autograd.Function):
        generate_vmap_rule = rule == "generate"

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert x.ndim == y.ndim == g.ndim == 1 or rule == "method"
            return (g * y + xp.sum(g * y)) * ctx.scale, g * (x + xp.sum(x)) * ctx.scale, None

        @staticmethod
        def jvp(ctx, tx, ty, _):
            x, y = ctx.saved_tensors
            return (tx * y + x * ty + xp.sum(tx) * y + xp.sum(x) * ty) * ctx.scale

    def kept(ctx, x, y, scale):
        ctx.scale = scale
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    value = lambda x, y, scale: (x * y + xp.sum(x) * y) * scale
    if separate:
        Product.forward = staticmethod(value)
        Product.setup_context = staticmethod(lambda ctx, inputs, output: kept(ctx, *inputs))
    else:
        Product.forward = staticmethod(lambda ctx, *inputs: (kept(ctx, *inputs), value(*inputs))[1])
    if rule == "method":

        def vmap(info, in_dims, x, y, scale):
            assert info.randomness == "error" and in_dims[2] is None and scale == 2.0
            x, y = (
                xp.expand_dims(v, axis=0) if dim is None else v if dim == 0 else v.T
                for v, dim in zip((x, y), in_dims, strict=False)
            )
            assert info.batch_size == max(x.shape[0], y.shape[0])
            return xp.permute_dims((x * y + xp.sum(x, axis=-1)[:, None] * y) * scale, (1, 0)), 1

        Product.vmap = staticmethod(vmap)
    return lambda x, y: Product.apply(x, y, 2.0)


def plain(side):
    return lambda x, y: (x * y + side.xp.sum(x) * y) * 2.0


X, Y = (np.random.default_rng(seed).normal(size=(3, 4)) for seed in (0, 1))
Z, y = np.random.default_rng(2).normal(size=(2, 3, 4)), Y[0]

PROGRAMS = {
    "vmap": (lambda t, f, s: t.vmap(f), X, Y),
    "vmap, first constant": (lambda t, f, s: t.vmap(f, (None, 0)), y, Y),
    "vmap along other axes": (lambda t, f, s: t.vmap(f, (1, 1), 1), X.T.copy(), Y.T.copy()),
    "vmap of vmap": (lambda t, f, s: t.vmap(t.vmap(f, (0, None)), (0, None)), Z, y),
    "grad of vmap": (lambda t, f, s: t.grad(lambda a, b: s(t.vmap(f, (0, None))(a, b))), X, y),
    "grad of vmap by the constant": (
        lambda t, f, s: t.grad(lambda a, b: s(t.vmap(f, (0, None))(a, b)), 1),
        X,
        y,
    ),
    "vmap of grad": (lambda t, f, s: t.vmap(t.grad(lambda a, b: s(f(a, b)))), X, Y),
    "jvp of vmap": (
        lambda t, f, s: lambda a, b: t.jvp(lambda b: t.vmap(f, (0, None))(a, b), (b,), (b * 2,))[1],
        X,
        y,
    ),
    "vmap of jvp": (
        lambda t, f, s: t.vmap(lambda a, b: t.jvp(lambda a: f(a, b), (a,), (a * 2,))[1]),
        X,
        Y,
    ),
    "jvp of grad of vmap": (
        lambda t, f, s: (
            lambda a, b: t.jvp(t.grad(lambda a: s(t.vmap(f, (0, None))(a, b))), (a,), (a * 2,))[1]
        ),
        X,
        y,
    ),
    "vmap of grad of vmap": (
        lambda t, f, s: t.vmap(t.grad(lambda a, b: s(t.vmap(f, (0, None))(a, b))), (0, None)),
        Z,
        y,
    ),
}


def functions(side):
    return pytest.importorskip("torch").func if side.name == "torch" else mg.func


def run(side, name, f):
    program, *arguments = PROGRAMS[name]
    squares = lambda a: side.xp.sum(a**2)
    return side.values(
        program(functions(side), f, squares)(*(side.tensor(a.tolist()) for a in arguments))
    )


RULES = pytest.mark.parametrize("rule", ["method", "generate"])


@RULES
@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_the_function_that_it_computes(side, name, rule):
    np.testing.assert_allclose(
        run(side, name, product(side, rule)), run(side, name, plain(side)), rtol=1e-10
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_may_have_a_ctx(side, name):
    if side.name == "torch":
        pytest.skip("PyTorch demands setup_context under any transformation")
    np.testing.assert_allclose(
        run(side, name, product(side, "generate", separate=False)),
        run(side, name, plain(side)),
        rtol=1e-10,
    )


def test_a_vmap_without_setup_context_cannot_be_differentiated_further_out(side):
    f = product(side, "method", separate=False)
    if side.name != "torch":
        assert np.allclose(run(side, "grad of vmap", f), run(side, "grad of vmap", plain(side)))
    with pytest.raises(
        RuntimeError,
        match="In order to use an autograd.Function with functorch transforms .* must override "
        "the setup_context",
    ):
        run(side, "vmap of grad", f)


def make(side, **members):
    return type(
        "Given",
        (side.autograd.Function,),
        {
            "setup_context": staticmethod(lambda ctx, inputs, output: None),
            **{k: staticmethod(v) if callable(v) else v for k, v in members.items()},
        },
    )


class TestErrors:
    def test_neither(self, side):
        f = make(side, forward=lambda x: x * 2)
        with pytest.raises(
            RuntimeError,
            match="You tried to vmap over Given, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True.",
        ):
            functions(side).vmap(f.apply)(side.tensor([1.0, 2.0]))
        with pytest.raises(
            NotImplementedError,
            match="you must either override the vmap staticmethod or set generate_vmap_rule=True",
        ):
            side.autograd.Function.vmap(None, None)

    def test_both(self, side):
        f = make(
            side,
            forward=lambda x: x * 2,
            vmap=lambda info, in_dims, x: (x * 2, 0),
            generate_vmap_rule=True,
        )
        with pytest.raises(
            RuntimeError,
            match="You tried to vmap over Given, but it has both generate_vmap_rule=True and an "
            "overridden vmap",
        ):
            functions(side).vmap(f.apply)(side.tensor([1.0, 2.0]))

    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (
                lambda x: x,
                "Expected the vmap staticmethod to have two returns, an output and out_dims "
                "(?s:.*)Got a ",
            ),
            (
                lambda x: (x, 0, 0),
                "Expected the vmap staticmethod to have two returns, (?s:.*)Got 3 returns instead",
            ),
            (
                lambda x: (x, (0, 0)),
                r"The autograd.Function's vmap staticmethod returned an incompatible \(output, "
                r"out_dims\) tuple. Expected out_dims",
            ),
            (
                lambda x: ((x, x), (0, 0, 0)),
                r"The autograd.Function's vmap staticmethod returned an incompatible \(output, "
                r"out_dims\) tuple.",
            ),
        ],
    )
    def test_what_vmap_returns(self, side, returned, message):
        f = make(side, forward=lambda x: x * 2, vmap=lambda info, in_dims, x: returned(x * 2))
        with pytest.raises(RuntimeError, match=message):
            functions(side).vmap(f.apply)(side.tensor([1.0, 2.0]))


class TestMethod:
    def test_structures(self, side):
        def vmap(info, in_dims, x, other, n):
            assert in_dims == (0, [None, 0], None) or list(in_dims[1]) == [None, 0]
            return (x * n, other[0] + 1, side.xp.permute_dims(other[1], (1, 0))), (0, None, 1)

        f = make(side, forward=lambda x, other, n: (x * n, other[0] + 1, other[1]), vmap=vmap)
        x, rows, one = (
            side.tensor([1.0, 2.0]),
            side.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
            side.tensor([5.0]),
        )
        found = functions(side).vmap(lambda x, row: f.apply(x, [one, row], 3))(x, rows)
        assert [side.values(v).tolist() for v in found] == [
            [3.0, 6.0],
            [[6.0], [6.0]],
            side.values(rows).tolist(),
        ]

    def test_an_argument_of_a_class_with_its_own_constructor(self):
        """A constant, which is not built again to say along which axes it is batched."""

        class Pair(dict):
            def __init__(self, a, b):
                super().__init__(a=a, b=b)

        def vmap(info, in_dims, x, pair):
            assert in_dims == (0, {"a": None, "b": None})
            return x * pair["b"], 0

        f = make(mg, forward=lambda x, pair: x * pair["b"], vmap=vmap)
        assert mg.func.vmap(lambda r: f.apply(r, Pair(1, 2)))(np.ones(2)).tolist() == [2.0, 2.0]

    def test_in_place_of_forward_where_nothing_is_batched(self, side):
        def refuse(*_):
            raise AssertionError("nothing is batched at this level")

        f = make(side, forward=lambda x: x * 2, vmap=refuse)
        one = side.tensor([5.0])
        assert side.values(
            functions(side).vmap(lambda x: x * f.apply(one))(side.tensor([1.0, 2.0]))
        ).tolist() == [[10.0], [20.0]]

    def test_randomness(self, side):
        seen = []
        f = make(
            side,
            forward=lambda x: x * 2,
            vmap=lambda info, in_dims, x: (seen.append(tuple(info)), (x * 2, 0))[1],
        )
        functions(side).vmap(f.apply, randomness="same")(side.tensor([1.0, 2.0, 3.0]))
        assert seen == [(3, "same")]

    def test_may_call_others(self, side):
        inner = make(side, forward=lambda x: x * 3, backward=lambda ctx, g: g * 3)
        outer = make(
            side,
            forward=lambda x: x * 3,
            vmap=lambda info, in_dims, x: (inner.apply(x), in_dims[0]),
            backward=lambda ctx, g: g * 3,
        )
        x = side.tensor([1.0, 2.0])
        found = functions(side).grad(
            lambda a: side.xp.sum(functions(side).vmap(outer.apply)(a) ** 2)
        )(x)
        assert side.values(found).tolist() == [18.0, 36.0]


class TestGenerated:
    def test_several_outputs_and_intermediates(self, side):
        xp = side.xp

        def setup_context(ctx, inputs, output):
            ctx.exponent, ctx.shape = inputs[1], tuple(inputs[0].shape)
            ctx.save_for_backward(inputs[0], output[0])
            ctx.mark_non_differentiable(output[2])

        def backward(ctx, g, h, _):
            x, power = ctx.saved_tensors
            assert ctx.shape == (2,) and ctx.needs_input_grad == (True, False)
            return g * ctx.exponent * power / x + h, None

        f = make(
            side,
            forward=lambda x, n: (x**n, xp.sum(x), xp.argmax(x)),
            setup_context=setup_context,
            backward=backward,
            generate_vmap_rule=True,
        )
        x = side.tensor([[1.0, 2.0], [4.0, 3.0]])
        t = functions(side)
        found = t.vmap(lambda a: f.apply(a, 3))(x)
        assert [side.values(v).tolist() for v in found] == [
            [[1.0, 8.0], [64.0, 27.0]],
            [3.0, 7.0],
            [1, 0],
        ]
        total = lambda a: sum(xp.sum(v) for v in t.vmap(lambda b: f.apply(b, 3)[:2])(a))
        assert side.values(t.grad(total)(x)).tolist() == [[4.0, 13.0], [49.0, 28.0]]

    def test_gradients_that_broadcast(self, side):
        repeated = lambda g: side.xp.expand_dims(g, axis=0) * side.tensor([[1.0], [1.0]])
        f = make(
            side,
            forward=lambda x, y: x * side.xp.sum(y),
            generate_vmap_rule=True,
            backward=lambda ctx, g: (repeated(g), g),
        )
        x, y = side.tensor([[1.0, 2.0, 3.0]] * 2), side.tensor([1.0])
        t = functions(side)
        for number, expected in ((0, [[2.0] * 3] * 2), (1, [6.0])):
            found = t.grad(lambda *a: side.xp.sum(t.vmap(f.apply, (0, None))(*a)), number)(x, y)
            assert side.values(found).tolist() == expected

    def test_none(self, side):
        f = make(
            side,
            forward=lambda x, y: x * 2,
            generate_vmap_rule=True,
            backward=lambda ctx, g: (g * 2, None),
        )
        t = functions(side)
        found = t.grad(lambda x, y: side.xp.sum(t.vmap(f.apply)(x, y)), (0, 1))(
            side.tensor([1.0]), side.tensor([2.0])
        )
        assert [side.values(v).tolist() for v in found] == [[2.0], [0.0]]


class TestOnlyHere:
    def test_over_tensors(self, backend):
        """Gradients flow to the leaves, and backward runs when vmap is over."""

        class Square(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.twice, ctx.parts = x * 2, [x, 3]  # attributes may be batches, too
                return x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                assert x.shape == (2,) and ctx.parts[0].shape == (2,) and ctx.parts[1] == 3
                return g * ctx.twice

        x = mg.tensor(
            [[1.0, 2.0], [3.0, 4.0]], dtype="float64", backend=backend, requires_grad=True
        )
        mg.sum(mg.func.vmap(Square.apply)(x)).backward()
        assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]

    def test_keyword_arguments(self):
        class Scaled(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x, *, factor):
                ctx.save_for_backward(x, factor)
                return x * factor

            @staticmethod
            def backward(ctx, g):
                x, factor = ctx.saved_tensors
                return g * factor, mg.sum(g * x)

        x, factor = mg.tensor([[1.0, 2.0], [3.0, 4.0]]), mg.tensor([2.0, 3.0])
        total = lambda x, factor: mg.sum(
            mg.func.vmap(lambda a, b: Scaled.apply(a, factor=b))(x, factor)
        )
        found = mg.func.grad(total, (0, 1))(x, factor)
        assert [v.tolist() for v in found] == [[[2.0, 2.0], [3.0, 3.0]], [3.0, 7.0]]

        class Own(Scaled):
            generate_vmap_rule = False
            vmap = staticmethod(lambda info, in_dims, x, *, factor: (x * factor, 0))

        assert mg.func.vmap(lambda a: Own.apply(a, factor=2.0))(x).tolist() == [
            [2.0, 4.0],
            [6.0, 8.0],
        ]
        with pytest.raises(
            NotImplementedError, match="Run vmap on autograd.Function with kwarg-only Tensor args"
        ):
            mg.func.vmap(lambda a, b: Own.apply(a, factor=b))(x, factor)

    def test_out_dims_that_are_no_examples(self, backend):
        class Wrong(Function):
            forward = staticmethod(lambda ctx, x: x)
            vmap = staticmethod(lambda info, in_dims, x: (x * 1, 1))

        with pytest.raises(
            RuntimeError,
            match=r"Wrong: vmap returned an output of shape \(2, 3\) with out_dims 1, but the "
            r"length of that axis is not 2, the number of examples",
        ):
            mg.func.vmap(Wrong.apply)(mg.tensor([[1.0] * 3] * 2, backend=backend))

    def test_modified_inputs(self):
        class Double(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x *= 2
                return x

        with pytest.raises(
            RuntimeError,
            match="Double: mark_dirty is not supported inside vmap with "
            "generate_vmap_rule=True. Return a new array.",
        ):
            mg.func.vmap(Double.apply)(mg.tensor([1.0, 2.0]))

    def test_once_differentiable(self):
        total = lambda x: mg.sum(mg.func.vmap(OnceSquare.apply)(x) ** 2)
        x = mg.tensor([1.0, 2.0])
        assert mg.func.grad(total)(x).tolist() == [4.0, 32.0]
        with pytest.raises(RuntimeError, match=ONCE):
            mg.func.grad(lambda x: mg.sum(mg.func.grad(total)(x)))(x)

    def test_boxed_gradients_and_the_grad_mode(self):
        seen = []

        class Doubled(Function):
            generate_vmap_rule = True
            boxed_grads_call = True

            @staticmethod
            def forward(ctx, x):
                seen.append(mg.is_grad_enabled())
                return x * 2

            @staticmethod
            def backward(ctx, grads):
                seen.append(type(grads))
                return grads.pop() * 2

        x = mg.tensor([1.0, 2.0], requires_grad=True)
        mg.sum(mg.func.vmap(Doubled.apply)(x)).backward()
        assert x.grad.tolist() == [2.0, 2.0] and seen == [False, list]
