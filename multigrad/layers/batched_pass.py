"""One backward pass for many gradients of the same outputs: what `grad(is_grads_batched=True)` adds to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine import grad_mode, gradients
from ..engine.backward import Pass
from ..engine.level import Guest, Layer, Run
from ..engine.tensor import peeled
from ..provided import provide
from .batched import Batched, repeated


def in_batches(differentiate: Callable[[list[Any]], Pass], given: Sequence[Any]) -> Pass:
    """Run a pass on Batched gradients, and take those that it finds apart. None in `given` is the same for all examples.

    The level is above that of all Tensors; arrays that hooks and functions of the user make belong to it, too, so that gradients can be written
    into them. The grad mode is that of an ordinary pass.
    """
    size = next(len_of(g) for g in given if g is not None)
    run = Guest("grad", grad_mode._variable())

    def called() -> Pass:
        p = differentiate([None if g is None else batch(g, run) for g in given])
        assert p.targets is not None
        for node, g in p.targets.items():
            if g is not None:
                p.targets[node] = examples(peeled(g, run.own_level), run, size)
        return p

    return run.call(called)


def len_of(x: Any) -> int:
    found: int = x.shape[0]
    return found


def batch(x: Any, run: Run) -> Batched:
    """An array whose first axis counts examples, as one of them."""
    return Batched._make(x._frozen() if isinstance(x, Layer) else x, run, run.own_level)


def examples(x: Any, run: Run, size: int) -> Any:
    """All examples of `x`, one layer further in. What is none of the batch of `run` is the same for all."""
    if isinstance(x, Batched) and x._run is run:
        x._check()
        return x._array
    return repeated(x, size)


provide(gradients, in_batches=in_batches)
