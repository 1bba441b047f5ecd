"""Checks of derivatives for several vectors at once: a batched pass must equal single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..backward.gradients import grad
from ..core.level import Transformation
from ..core.tensor import Tensor
from ..layers.batched import batch, examples
from ..layers.dual import Dual, taken_apart
from . import check_values as values
from .check_values import Function, GradcheckError

FAILED_BATCHED_GRAD_MSG = """
gradcheck or gradgradcheck failed while testing batched gradient computation.

To leave this test out, call gradcheck or gradgradcheck with `check_batched_grad=False`.

Gradients of a batch are what jacobian(vectorize=True), hessian(vectorize=True) and
grad(is_grads_batched=True) compute: the backward pass runs once, on gradients that each stand for a
batch, under vmap. Most often the backward of a Function, or a hook, does what vmap cannot: it asks
for the value of a gradient (bool(), float(), item(), `if`), makes an array whose shape depends on
one, writes one into an array from outside, or leaves the library. Write it with functions of the
standard, such as where() for a branch. Or the results of a Function differ between examples in
other ways than its backward says.
""".strip()

FAILED_BATCHED_GRAD_MSG_FWD_AD = """
gradcheck failed while testing batched gradient computation with forward-mode AD.

To leave this test out, call gradcheck with `check_batched_forward_grad=False`.

The function runs once, on Duals whose tangents each stand for a batch, as in
jacobian(vectorize=True, strategy="forward-mode"). Most often the jvp of a Function does what vmap
cannot: it asks for the value of a tangent, makes an array whose shape depends on one, or leaves the
library.
""".strip()


def compare_batched_gradients(outputs: Sequence[Tensor], checked: Sequence[Tensor]) -> None:
    """Raise GradcheckError if a batched backward pass from an output differs from single ones."""
    source = values.random_source()
    for i, out in enumerate(outputs):

        def pulled(v: Any, batched: bool = False, out: Tensor = out) -> Sequence[Any]:
            grads: Sequence[Any] = grad(
                out, checked, v, retain_graph=True, allow_unused=True, is_grads_batched=batched
            )
            return grads

        vectors = [values.random_like(out, source) for _ in range(2)]
        singles = [pulled(v) for v in vectors]
        stacked = out._elem.library.xp.stack([v.array for v in vectors])
        with _explained(FAILED_BATCHED_GRAD_MSG):
            batched = pulled(stacked, True)
        for j, (g, *single) in enumerate(zip(batched, *singles, strict=True)):
            _compare(i, j, g, single, checked[j].shape, FAILED_BATCHED_GRAD_MSG)


def pushed(func: Function, inputs: Sequence[Any], x: Tensor, tangent: Any) -> list[tuple[Any, Any]]:
    """The outputs of `func` and their tangents, or None, if the input `x` has `tangent`."""
    run = Transformation("gradcheck")
    dual = Dual._make(x.array, tangent, run, run.own_level)
    arguments = [dual if y is x else y for y in inputs]
    return run.call(
        lambda: [taken_apart(t, run) for t in values.outputs_of(func(*arguments))],
    )


def compare_batched_tangents(func: Function, inputs: Sequence[Any]) -> None:
    """Raise GradcheckError if a batch of tangents gives other results than single tangents."""
    source = values.random_source()
    for x in values.checked(inputs):
        vectors = [values.like(x, values.numbers(values.random_like(x, source))) for _ in range(2)]
        singles = [pushed(func, inputs, x, v) for v in vectors]
        run = Transformation("gradcheck")
        try:
            with _explained(FAILED_BATCHED_GRAD_MSG_FWD_AD):
                stacked = batch(x._elem.library.xp.stack(vectors), run)
                batched = [
                    None if t is None else examples(t, run, 2)
                    for _, t in pushed(func, inputs, x, stacked)
                ]
        finally:
            run.finish()
        for i, (t, *single) in enumerate(zip(batched, *singles, strict=True)):
            shape, tangents = single[0][0].shape, [s for _, s in single]
            _compare(i, i, t, tangents, shape, FAILED_BATCHED_GRAD_MSG_FWD_AD)


@contextmanager
def _explained(explanation: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{explanation}"
        ) from error


def _compare(
    output: int, number: int, batched: Any, singles: list[Any], shape: Any, explanation: str
) -> None:
    """Raise if a batch of derivatives differs from single ones; None stands for zeros."""
    import numpy as np

    if batched is None and all(s is None for s in singles):
        return
    zeros = np.zeros(tuple(shape))
    expected = np.stack([zeros if s is None else values.numbers(s) for s in singles])
    got = np.zeros_like(expected) if batched is None else values.numbers(batched)
    if not np.allclose(got, expected):
        raise GradcheckError(
            f"For output {output} and input {number}:\n"
            "\n"
            f"{explanation}\n"
            "\n"
            "Got:\n"
            f"{got!r}\n"
            "\n"
            "Expected:\n"
            f"{expected!r}"
        )
