"""What test_function.py and test_function_ctx.py leave of autograd.Function, on each
backend and in PyTorch.
"""

from __future__ import annotations

from function_programs import leaf, make, same


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
