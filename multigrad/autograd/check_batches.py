"""Checks of derivatives for several vectors at once: a batched pass must equal single ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backward.gradients import grad
from ..core.level import Transformation
from ..core.tensor import Tensor, element_of
from ..layers.batched import batch, examples
from ..layers.dual import Dual, taken_apart
from .check_values import Function, GradcheckError, _like, _numbers, _outputs, _random, _random_like

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


def _message(output: int, number: int, got: Any, expected: Any, forward: bool = False) -> str:
    return (
        f"For output {output} and input {number}:\n"
        "\n"
        f"{FAILED_BATCHED_GRAD_MSG_FWD_AD if forward else FAILED_BATCHED_GRAD_MSG}\n"
        "\n"
        "Got:\n"
        f"{got!r}\n"
        "\n"
        "Expected:\n"
        f"{expected!r}"
    )


def _stacked(like: Tensor, parts: Sequence[Any]) -> Any:
    return like._elem.library.xp.stack([p.array for p in parts])


def compare_batched_gradients(outputs: Sequence[Tensor], checked: Sequence[Tensor]) -> None:
    """Raise GradcheckError if a batched backward pass from an output differs from single ones."""
    import numpy as np

    source = _random()
    for i, out in enumerate(outputs):
        vectors = [_random_like(out, source) for _ in range(2)]
        expected = [grad(out, checked, v, retain_graph=True, allow_unused=True) for v in vectors]
        try:
            batched = grad(
                out,
                checked,
                _stacked(out, vectors),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{FAILED_BATCHED_GRAD_MSG}"
            ) from error
        for j, (g, *single) in enumerate(zip(batched, *expected, strict=True)):
            if g is None and all(s is None for s in single):
                continue
            zeros = np.zeros(tuple(checked[j].shape))
            one_by_one = np.stack([zeros if s is None else _numbers(s) for s in single])
            at_once = np.zeros_like(one_by_one) if g is None else _numbers(g)
            if not np.allclose(at_once, one_by_one):
                raise GradcheckError(_message(i, j, at_once, one_by_one))


def moved(func: Function, inputs: Sequence[Any], x: Tensor, tangent: Any) -> list[tuple[Any, Any]]:
    """The outputs of `func` and their tangents, or None, if the input `x` has `tangent`."""
    run = Transformation("gradcheck")
    dual = Dual._make(x.array, tangent, run, run.own_level)
    return run.call(
        lambda: [
            taken_apart(t, run) for t in _outputs(func(*(dual if y is x else y for y in inputs)))
        ]
    )


def compare_batched_tangents(func: Function, inputs: Sequence[Any]) -> None:
    """Raise GradcheckError if a batch of tangents gives other results than single tangents."""
    import numpy as np

    source = _random()
    for x in inputs:
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        vectors = [_like(x, _numbers(_random_like(x, source))) for _ in range(2)]
        expected = [moved(func, inputs, x, v) for v in vectors]
        run = Transformation("gradcheck")
        try:
            pairs = moved(func, inputs, x, batch(x._elem.library.xp.stack(vectors), run))
            batched = [None if t is None else examples(t, run, 2) for _, t in pairs]
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n"
                "\n"
                f"{FAILED_BATCHED_GRAD_MSG_FWD_AD}"
            ) from error
        finally:
            run.finish()
        for i, (t, *single) in enumerate(zip(batched, *expected, strict=True)):
            if not element_of(single[0][0]).floating:
                continue
            zeros = np.zeros(tuple(single[0][0].shape))
            one_by_one = np.stack([zeros if s is None else _numbers(s) for _, s in single])
            at_once = np.zeros_like(one_by_one) if t is None else _numbers(t)
            if not np.allclose(at_once, one_by_one):
                raise GradcheckError(_message(i, i, at_once, one_by_one, forward=True))
