"""Gradients that a Function or a hook leaves undefined, retained ones that add up, and what users
make of needs_input_grad.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest


def functions(side: Any) -> Any:
    class First(side.autograd.Function):
        """x + w, whose gradient by w is left undefined."""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return x + w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    class Seen(side.autograd.Function):
        """The same array, noting the gradients."""

        log: list[Any] = []  # noqa: RUF012

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            Seen.log.append(numbers(side, g))
            return g

    return First, Seen


def numbers(side: Any, t: Any) -> Any:
    return None if t is None else side.values(t).tolist()


@pytest.fixture
def leaf(side):
    return lambda data: side.tensor(data, requires_grad=True)


class TestUndefined:
    def test_a_function_behind_gets_zeros(self, side, leaf):
        first, seen = functions(side)
        x, w = leaf([1.0]), leaf([1.0])
        first.apply(x, seen.apply(w)).backward()
        assert (
            seen.log == [[0.0]]
            and numbers(side, x.grad) == [1.0]
            and numbers(side, w.grad) == [0.0]
        )

    def test_grad_by_what_lies_behind(self, side, leaf):
        first, seen = functions(side)
        x, w = leaf([1.0]), leaf([1.0])
        found = side.autograd.grad(first.apply(x, seen.apply(w)), [x, w])
        assert [numbers(side, g) for g in found] == [[1.0], [0.0]]

    def test_through_an_operation(self, side, leaf):
        first, seen = functions(side)
        x, w = leaf([1.0]), leaf([1.0])
        first.apply(x, seen.apply(w) * 2.0).backward()
        assert seen.log == [[0.0]] and numbers(side, w.grad) == [0.0]

    def test_where_another_use_is_defined(self, side, leaf):
        first, _ = functions(side)
        for order in (0, 1):
            x, w = leaf([1.0]), leaf([1.0])
            v = w * 3.0
            a, b = (first.apply(x, v), v * 2.0) if order else (v * 2.0, first.apply(x, v))
            (a + b).backward()
            assert numbers(side, x.grad) == [1.0] and numbers(side, w.grad) == [6.0]

    def test_a_leaf_gets_none(self, side, leaf):
        first, _ = functions(side)
        x, w = leaf([1.0]), leaf([1.0])
        log = []
        w.register_hook(lambda g: log.append(("hook", numbers(side, g))))
        w.register_post_accumulate_grad_hook(lambda t: log.append(("post", numbers(side, t.grad))))
        first.apply(x, w).backward()
        assert log == [("hook", None), ("post", None)] and w.grad is None

    def test_a_hook_of_several_hears_of_it(self, side, leaf):
        first, _ = functions(side)
        x, w = leaf([1.0]), leaf([1.0])
        log = []
        side.autograd.graph.register_multi_grad_hook(
            (x, w), lambda grads: log.append([numbers(side, g) for g in grads])
        )
        first.apply(x, w).backward()
        assert log == [[[1.0], None]]

    def test_that_a_prehook_returns(self, side, leaf):
        _, seen = functions(side)
        w = leaf([1.0])
        y = seen.apply(w) * 2.0
        y.grad_fn.register_prehook(lambda grads: (None,))
        y.backward()
        assert seen.log == [[0.0]] and numbers(side, w.grad) == [0.0]


class TestRetained:
    def test_add_up(self, side, leaf):
        x = leaf([1.0, 2.0])
        y = x * 3.0
        y.retain_grad()
        total = (y * y).sum()
        total.backward(retain_graph=True)
        kept = y.grad
        assert numbers(side, kept) == [6.0, 12.0]
        total.backward()
        assert numbers(side, y.grad) == [12.0, 24.0]

    def test_add_up_for_inputs(self, side, leaf):
        y = leaf([1.0, 2.0]) * 3.0
        y.sum().backward(inputs=[y], retain_graph=True)
        (y * 2.0).sum().backward(inputs=[y])
        assert numbers(side, y.grad) == [3.0, 3.0]

    def test_by_hand(self, side, leaf):
        y = leaf([1.0]) * 2.0
        y.grad = side.tensor([5.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert numbers(side, y.grad) == [5.0]


class TestNeedsInputGrad:
    def test_is_the_users_to_change(self, side, leaf):
        class Own(side.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.needs_input_grad = (False, True)
                return x * y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return (g * 100.0 if ctx.needs_input_grad[0] else None), g * 7.0

        x, y = leaf([1.0]), leaf([1.0])
        Own.apply(x, y).backward()
        assert x.grad is None and numbers(side, y.grad) == [7.0]

    def test_does_not_ask_for_the_mode(self, side, leaf):
        found = []

        class Asks(side.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, n: int) -> Any:
                found.append(ctx.needs_input_grad)
                return x * 1.0

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g, None

        with side.no_grad():
            assert not Asks.apply(leaf([1.0]), 3).requires_grad
        assert found == [(True, False)]
