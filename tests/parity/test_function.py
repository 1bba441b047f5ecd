"""autograd.Function: chapter J of docs/parity.md.

Every program runs through multigrad on each backend, and through PyTorch.

Here: apply, gradients, outputs, and the names of the module. What ctx does is in
test_function_ctx.py.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from function_programs import enabled, exp_function, leaf, make, same


def test_exp_to_the_third_derivative(side):  # F155, F169, F170
    x = leaf(side, 0.5, 1.0)
    y = exp_function(side).apply(x)
    same(side, y, np.exp([0.5, 1.0]))
    for _ in range(3):
        (y,) = side.autograd.grad(side.xp.sum(y), x, create_graph=True)
        same(side, y, np.exp([0.5, 1.0]))
    side.xp.sum(y).backward()
    same(side, x.grad, np.exp([0.5, 1.0]))


def test_the_node_is_the_ctx(side):  # F151, F156, F157, F168
    seen = []

    def forward(ctx, x, n, c):
        seen.append(ctx)
        # any name is the user's to give
        ctx.n, ctx.saved, ctx.outputs, ctx.rule, ctx.next, ctx.extra = n, 1, 2, 3, 4, 5
        return x * n + c

    def backward(ctx, g):
        assert (ctx.saved, ctx.outputs, ctx.rule, ctx.next, ctx.extra) == (1, 2, 3, 4, 5)
        return g * ctx.n, None, None

    F = make(side, forward, backward)
    x = leaf(side, 1.0, 2.0)
    y = F.apply(x, 3, side.tensor([1.0, 1.0]))
    assert (
        y.grad_fn is seen[0]
        and type(y.grad_fn).__name__ == "MyFBackward"
        and isinstance(y.grad_fn, F._backward_cls)
    )
    assert y.grad_fn.name() == "MyFBackward" and y.grad_fn.n == 3 and y.grad_fn.requires_grad
    assert y.grad_fn.needs_input_grad == (True, False, False)
    # what is no array has no entry, a constant has an empty one
    (first, number), second = y.grad_fn.next_functions
    assert (first.name().rpartition(":")[2], number, second) == ("AccumulateGrad", 0, (None, 0))
    assert y.grad_fn.next_functions[0][0].variable is x
    y.grad_fn.metadata["note"] = 1
    assert (
        y.grad_fn.metadata == {"note": 1}
        and "MyFBackward" in repr(y)
        and "MyFBackward" in repr(y.grad_fn)
    )
    assert side.values(y.grad_fn.apply(side.tensor([1.0, 1.0]))[0]).tolist() == [3.0, 3.0]
    side.xp.sum(y).backward()
    same(side, x.grad, [3, 3])
    z = F.apply(y, 2, side.tensor([0.0, 0.0]))
    assert z.grad_fn.next_functions[0][0] is y.grad_fn


def test_forward_is_not_recorded_and_gets_the_callers_objects(side):  # F158
    x = leaf(side, 1.0)
    seen = []

    def forward(ctx, a, b):
        seen.append(
            (
                enabled(side),
                a is x,
                a.requires_grad,
                (a * 2).requires_grad,
                b,
                ctx.saved_tensors,
                ctx.needs_input_grad,
            )
        )
        return a * 2

    def backward(ctx, g):
        seen.append(enabled(side))
        return g * 2, None

    F = make(side, forward, backward)
    y = F.apply(x, "word")
    assert seen == [(False, True, True, False, "word", (), (True, False))]
    assert enabled(side) and y.requires_grad
    side.autograd.grad(side.xp.sum(y), x, retain_graph=True)
    side.autograd.grad(side.xp.sum(y), x, create_graph=True)
    assert seen[1:] == [False, True] and enabled(side)
    with side.no_grad():
        assert not F.apply(x, "word").requires_grad
    assert F.apply(x.detach(), "word").grad_fn is None


def test_keywords(side):  # F153, F158
    seen = []

    def forward(ctx, a, n=1, b=None):
        seen.append((n, ctx.needs_input_grad))
        return a * n if b is None else a * b * n

    F = make(side, forward, lambda ctx, g: (g * 5, None, g * 7))
    x, w = leaf(side, 1.0), leaf(side, 2.0)
    F.apply(x, n=2, b=w).backward()
    same(side, x.grad, [5])
    same(side, w.grad, [7])
    F.apply(a=x, n=3).requires_grad
    assert seen == [(2, (True, False, True)), (3, (True, False))]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            lambda g: g,
            r"function MyFBackward returned an incorrect number of gradients \(expected 2, got 1\)",
        ),
        (
            lambda g: (g, g, g),
            r"function MyFBackward returned an incorrect number of gradients \(expected 2, got 3\)",
        ),
        (
            lambda g: (g, g),
            "function MyFBackward returned a gradient different than None at position 2, but "
            "the corresponding forward input was not a Variable",
        ),
        (lambda g: ([g], None), r"expected Variable or None \(got list\)"),
        (lambda g: (1.0, None), r"expected Variable or None \(got float\)"),
        (
            lambda g: (g[:1], None),
            r"Function MyFBackward returned an invalid gradient at index 0 - got \[1\] but "
            r"expected shape compatible with \[2\]",
        ),
        (lambda g: (1j * g, None), ""),
    ],
)
def test_wrong_gradients(side, returned, message):  # F154
    if side.name == "torch" and not message:
        message = "input_is_complex == grad_is_complex"
    elif not message:
        message = "Function MyFBackward returned a complex gradient at index 0 for a real input"
    x = leaf(side, 1.0, 2.0)
    y = make(side, lambda ctx, a, n: a * n, lambda ctx, g: returned(g)).apply(x, 2)
    with pytest.raises(RuntimeError, match=message):
        y.backward(side.tensor([1.0, 1.0]))
    assert x.grad is None


def test_the_index_of_a_wrong_gradient_counts_arrays(side):
    y = make(side, lambda ctx, n, a: a * n, lambda ctx, g: (None, g[:0])).apply(
        2, leaf(side, 1.0, 2.0)
    )
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[0\]"):
        y.backward(side.tensor([1.0, 1.0]))


def test_accepted_gradients(side):  # F154
    x, c = leaf(side, 1.0, 2.0), side.tensor([1.0, 1.0])

    def grads(returned, *more):
        y = make(side, lambda ctx, a, *_: a * 2, lambda ctx, g: returned(g)).apply(x, *more)
        return side.autograd.grad(side.xp.sum(y), x, allow_unused=True)[0]

    same(side, grads(lambda g: (g * 3, None, None)), [3, 3])  # superfluous None
    same(side, grads(lambda g: (g * 3, g), c), [3, 3])  # of a constant: ignored
    assert grads(lambda g: None) is None
    same(side, grads(lambda g: side.tensor(np.ones((4, 2)))), [4, 4])  # summed to the shape
    for dtype in ("float32", "int64"):
        found = grads(lambda g, dtype=dtype: side.tensor([1, 1], dtype=dtype))
        assert found.dtype == x.dtype
        same(side, found, [1, 1])


def test_a_real_gradient_of_a_complex_input(side):
    z = side.tensor([1 + 2j, 3.0], dtype="complex128", requires_grad=True)
    y = make(side, lambda ctx, a: a * 2, lambda ctx, g: side.xp.real(g)).apply(z)
    (g,) = side.autograd.grad(side.xp.sum(side.xp.abs(y)), z)
    assert g.dtype == z.dtype
    np.testing.assert_allclose(side.values(g), [1 / 5**0.5, 1])


def test_outputs_of_all_kinds(side):
    seen = []

    def backward(ctx, *g):
        seen.append(g)
        return g[0]

    def applied(forward):
        return make(side, forward, backward).apply(x)

    x = leaf(side, 1.0, 2.0)
    assert applied(lambda ctx, a: 3) == 3
    assert applied(lambda ctx, a: None) is None
    assert applied(lambda ctx, a: ()) == ()
    for kind in (
        applied(lambda ctx, a: [a * 2])[0],
        applied(lambda ctx, a: {"a": a * 2})["a"],
        applied(lambda ctx, a: (a * 2, [a * 3]))[1][0],
    ):
        assert not kind.requires_grad
    (single,) = applied(lambda ctx, a: (a * 2,))
    assert single.requires_grad
    y, three, none, word = applied(lambda ctx, a: (a * 2, 3, None, "s"))
    assert (three, none, word) == (3, None, "s")
    side.xp.sum(y).backward()
    assert seen[0][1:] == (None, None, None)
    y, whole = applied(lambda ctx, a: (a * 2, side.tensor([1, 2, 3], dtype="int64")))
    assert y.requires_grad and not whole.requires_grad and whole.grad_fn is None
    assert not applied(lambda ctx, a: side.tensor([1, 2, 3], dtype="int64")).requires_grad
    side.xp.sum(y).backward()
    zeros = seen[1][1]
    assert zeros.dtype == whole.dtype and side.values(zeros).tolist() == [0, 0, 0]


def test_unused_outputs_are_zeros_or_none(side):  # F164, F166
    seen = []

    def function(materialize):
        def forward(ctx, a):
            ctx.set_materialize_grads(materialize)
            marked = a * 4
            ctx.mark_non_differentiable(marked)
            return a * 2, side.xp.astype(a, side.xp.float32), marked

        def backward(ctx, *g):
            seen.append(g)
            return g[0]

        return make(side, forward, backward)

    x = leaf(side, 1.0, 2.0)
    y, single, marked = function(True).apply(x)
    assert single.requires_grad and not marked.requires_grad and marked.is_leaf
    side.xp.sum(y).backward()
    _, a, b = seen.pop()
    assert a.dtype == single.dtype and b.dtype == marked.dtype
    same(side, a, [0, 0])
    same(side, b, [0, 0])
    side.xp.sum(function(False).apply(x)[0]).backward()
    assert seen.pop()[1:] == (None, None)
    with pytest.raises(
        TypeError, match="set_materialize_grads received an invalid combination of arguments"
    ):
        function(0).apply(x)


def test_what_is_marked_must_be_arrays(side):  # F159
    x = leaf(side, 1.0)
    with pytest.raises(
        RuntimeError, match="mark_non_differentiable only accepts variable arguments, but got"
    ):
        make(side, lambda ctx, a: (ctx.mark_non_differentiable(3), a * 2)[1]).apply(x)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        make(side, lambda ctx, a: (ctx.mark_dirty(3), a * 2)[1]).apply(x)
    with pytest.raises(
        TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"
    ):
        make(side, lambda ctx, a: (ctx.save_for_backward(a, 3), a * 2)[1]).apply(x)


def test_any_number_of_arguments_of_any_type(side):  # F152, F153, F154
    def forward(ctx, x, power, *others):
        ctx.power, ctx.count = power, len(others)
        ctx.save_for_backward(x)
        return x**power, x * 0

    def backward(ctx, *grads):
        assert len(grads) == 2  # one for each output
        (x,) = ctx.saved_tensors
        # one for each argument
        return grads[0] * ctx.power * x ** (ctx.power - 1), None, *(None,) * ctx.count

    x, F = leaf(side, 2.0), make(side, forward, backward)
    for others in ((), ("a", None, {"b": 1}, [x], 2.5)):
        x.grad = None
        side.xp.sum(F.apply(x, 3, *others)[0]).backward()
        same(side, x.grad, [12])


def test_indices_of_a_maximum(side):  # F165, F164
    seen = []

    def forward(ctx, x):
        i = side.xp.argmax(x)
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(x, i)
        return side.xp.max(x), i

    def backward(ctx, g, gi):
        seen.append(side.values(gi).tolist())
        x, i = ctx.saved_tensors
        return side.xp.astype(side.xp.arange(x.shape[0]) == i, x.dtype) * g

    x = leaf(side, 1.0, 5.0, 3.0)
    value, index = make(side, forward, backward).apply(x)
    assert (
        value.requires_grad
        and not index.requires_grad
        and index.is_leaf
        and side.values(index) == 1
    )
    value.backward()
    same(side, x.grad, [0, 1, 0])
    assert seen == [0]


# setup_context, vjp, and what is not there


def test_setup_context(side):
    seen = []

    class Power(side.autograd.Function):
        @staticmethod
        def forward(x, n=2):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((enabled(side), inputs[1], output.grad_fn, ctx.needs_input_grad))
            ctx.n = inputs[1]
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, _ = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = leaf(side, 3.0)
    y = Power.apply(x)
    assert y.grad_fn.saved_tensors[1].grad_fn is y.grad_fn
    Power.apply(n=3, x=x).backward(side.tensor([1.0]))
    same(side, x.grad, [27])
    assert seen == [(False, 2, None, (True, False)), (False, 3, None, (True, False))]


def test_vjp_is_another_name_of_backward(side):
    x = leaf(side, 3.0)
    members = {
        "forward": staticmethod(lambda ctx, a: a * 2),
        "vjp": staticmethod(lambda ctx, g: g * 2),
    }
    type("V", (side.autograd.Function,), members).apply(x).backward(side.tensor([1.0]))
    same(side, x.grad, [2])
    both = make(
        side, lambda ctx, a: a * 2, lambda ctx, g: g, vjp=staticmethod(lambda ctx, g: g)
    ).apply(x)
    with pytest.raises(
        RuntimeError,
        match="Implementing both 'backward' and 'vjp' for a custom Function is not allowed",
    ):
        both.backward(side.tensor([1.0]))


def test_missing_parts(side):  # F153, F155
    Function = side.autograd.Function
    x = leaf(side, 1.0)
    with pytest.raises(
        NotImplementedError,
        match="You must implement the forward function for custom autograd.Function",
    ):
        type("N", (Function,), {}).apply(x)
    y = type("N", (Function,), {"forward": staticmethod(lambda ctx, a: a * 2)}).apply(x)
    with pytest.raises(
        NotImplementedError,
        match="You must implement either the backward or vjp method for your custom "
        "autograd.Function",
    ):
        y.backward(side.tensor([1.0]))
    with pytest.raises(
        NotImplementedError,
        match="You must implement the jvp function for custom autograd.Function",
    ):
        Function.jvp(None)
    with pytest.raises(
        NotImplementedError,
        match="you must either override the vmap staticmethod or set generate_vmap_rule=True",
    ):
        Function.vmap(None, None)
    with pytest.raises(NotImplementedError, match="setup_context is not implemented"):
        Function.setup_context(None, (), None)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = exp_function(side)()
    with pytest.raises(
        RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"
    ):
        instance(x)


def test_other_names(side):  # F167
    module = sys.modules[side.autograd.Function.__module__]
    assert module._ContextMethodMixin is module.FunctionCtx and issubclass(
        module.BackwardCFunction, module.FunctionCtx
    )
    assert type(side.autograd.Function) is module.FunctionMeta

    class Twice(module.InplaceFunction):
        @staticmethod
        def forward(ctx, a, inplace=False):
            if not inplace:
                return a * 2
            ctx.mark_dirty(a)
            a *= 2
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x = leaf(side, 1.0)
    b = x * 1
    assert Twice.apply(b, True) is b
    Twice.apply(b).backward(side.tensor([1.0]))
    same(side, x.grad, [4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert Twice(True).inplace
    with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated"):
        make(side, lambda ctx, a: (ctx.mark_shared_storage(), a * 1)[1]).apply(x)
    with pytest.raises(
        AssertionError, match="save_for_forward expects all arguments to be tensors"
    ):
        make(side, lambda ctx, a: (ctx.save_for_forward(3), a * 1)[1]).apply(x)
    make(side, lambda ctx, a: (ctx.save_for_forward(a, None), a * 1)[1]).apply(x)
