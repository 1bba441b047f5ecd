"""Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Any

from ...backward.gradients import NOT_SCALAR, grad, owned
from ...core.grad_mode import enable_grad
from ...core.level import Layer, Transformation
from ...core.tensor import Tensor, alias, strip, wrap_new
from ...errors import GradientError
from ...func.jacobian import bases, last, zeros
from ...layers import transforming
from ...layers.batched import batch, examples
from ...layers.dual import check_tangent
from ...tracebacks import entry
from . import calls
from .calls import Grads, Tensors


@entry
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func` at `inputs`.

    vectorize  compute all of it in one batched pass; allows complex outputs and "forward-mode", but
               not `strict`
    strategy   "reverse-mode": a backward pass for each element of the output; "forward-mode": a
               forward pass for each element of the inputs, in which `func` receives Duals in place
               of Tensors

    Returns one Tensor of shape `output.shape + input.shape`. If the inputs or the outputs are a
    tuple, it returns a tuple over them. If both are, it returns a tuple of tuples with `[i][j]` for
    output i and input j. Dtypes and devices are those of the inputs in reverse mode, and those of
    the outputs in forward mode. Complex outputs follow the convention of gradients, the conjugate
    of the derivative, in reverse mode only.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward(create_graph, strict, vectorize)
        return _by_tangents(func, inputs)
    with enable_grad():
        several_in, inputs = calls.as_tensors(inputs, "inputs", "jacobian")
        inputs = calls.fresh(inputs, create_graph, leaves=True)
        several_out, outputs = calls.call(func, inputs, "jacobian", strict)
        if vectorize and strict:
            raise GradientError(
                "multigrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` "
                "are not supported together. Please either set `strict=False` or "
                "`vectorize=False`."
            )
        batched = _by_batch(outputs, inputs, create_graph) if vectorize else None
        rows = []
        for i, out in enumerate(outputs):
            shapes = [(*out.shape, *t.shape) for t in inputs]
            if not _differentiated(out):
                grads: Grads = (None,) * len(inputs)
            elif batched is None:
                grads = _by_rows(i, out, inputs, create_graph, strict)
            else:
                grads = next(batched)
            row = tuple(
                calls.zero_tensor(t, shape)
                if g is None
                else g.__array_namespace__().reshape(g, shape)
                for t, g, shape in zip(inputs, grads, shapes, strict=True)
            )
            rows.append(calls.finish(row, several_in, create_graph))
        return calls.unpack(tuple(rows), several_out)


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    for option, value, error in (
        ("create_graph", create_graph, NotImplementedError),
        ("strict", strict, GradientError),
    ):
        if value:
            raise error(
                f"multigrad.autograd.functional.jacobian: `{option}=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                f'`{option}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )


def _basis(t: Tensor) -> Iterator[Any]:
    """The standard basis of the space of `t`, in the order of its elements.

    The arrays are raw and have the shape and the dtype of `t`. They are made one by one.
    """
    xp, n = t._elem.library.xp, _size(t)
    places = xp.reshape(xp.arange(n, device=t.device), t.shape)
    for k in range(n):
        yield xp.astype(places == k, t.dtype)


def _differentiated(out: Tensor) -> bool:
    return out.requires_grad and _size(out) > 0


def _by_rows(i: int, out: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Grads:
    """The gradients of each element of output number i with respect to each input, stacked.

    There is a backward pass for each element.
    """
    if out._elem.complex:
        raise GradientError(f"{NOT_SCALAR.replace('scalar', 'real scalar')} but got {out.dtype}")
    rows = [
        calls.fill(
            calls.gradients((out,), inputs, (vector,), create_graph, retain_graph=True),
            inputs,
            strict,
            create_graph,
            f"Output {i} of the user-provided function is independent of input {{}}. This is "
            "not allowed in strict mode.",
            "jacobian",
        )
        for vector in _basis(out)
    ]
    return [out.__array_namespace__().stack(grads) for grads in zip(*rows, strict=True)]


def _by_batch(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Iterator[Grads]:
    """For each differentiated output the gradients of its elements, stacked.

    One backward pass computes the rows of all elements of all outputs.
    """
    recorded = [t for t in outputs if _differentiated(t)]
    if not recorded:
        return iter(())
    stacked = grad(
        recorded,
        inputs,
        bases(recorded),
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    parts = [[None] * len(recorded) if g is None else _parts(g, recorded) for g in stacked]
    return zip(*parts, strict=True)


def _parts(stacked: Any, tensors: Sequence[Tensor]) -> list[Any]:
    """The parts of `stacked` along its first axis, one for the elements of each of these."""
    if len(tensors) == 1:
        return [stacked]
    ends = accumulate(map(_size, tensors))
    return [stacked[end - _size(t) : end, ...] for t, end in zip(tensors, ends, strict=True)]


def _size(t: Tensor) -> int:
    if t.size is None:
        raise GradientError(
            f"a Tensor of unknown shape {t.shape} has no basis; compute the array first"
        )
    return t.size


def _by_tangents(func: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobians by one forward pass, on Duals whose tangents are batches.

    The tangents are those along each element of all inputs.
    """
    several_in, inputs = calls.as_tensors(inputs, "inputs", "jacobian")
    points = [strip(alias(t)) for t in inputs]
    total, several_out = sum(map(_size, inputs)), False
    vectors, run = Transformation("jacobian"), Transformation("jacobian")

    def outputs_of(duals: list[Any]) -> list[Any]:
        nonlocal several_out
        several_out, outputs = calls.as_tensors(func(*duals), calls.OUTPUTS, "jacobian", Layer)
        return transforming.within(outputs, run)

    try:
        tangents = [batch(e, vectors) for e in bases(points)]
        for t, x, tangent in zip(inputs, points, tangents, strict=True):
            if not t._elem.floating:
                check_tangent(x, tangent, run.own_level, "jacobian")  # raises PyTorch's error
        outs, tangents = transforming.jvp(outputs_of, points, tangents, run)
        blocks = [
            _blocks(x, None if t is None else examples(t, vectors, total), inputs)
            for x, t in zip(outs, tangents, strict=True)
        ]
    finally:
        vectors.finish()
    return calls.unpack(tuple(calls.unpack(tuple(row), several_in) for row in blocks), several_out)


def _blocks(x: Any, columns: Any, inputs: Tensors) -> list[Tensor]:
    """The Jacobians of `x` with respect to each input.

    columns  the derivatives of `x`, with their numbers as the first axis
    """
    blocks = []
    parts = repeat(None) if columns is None else _parts(columns, inputs)
    for part, t in zip(parts, inputs, strict=False):
        shape = (*x.shape, *t.shape)
        block = zeros(x, shape) if part is None else owned([strip(last(part, shape))], None)
        blocks.append(calls.alone(block if isinstance(block, Tensor) else wrap_new(block)))
    return blocks


@entry
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of `func`, which must return one Tensor with one element.

    vectorize, outer_jacobian_strategy  as `vectorize` and `strategy` of `jacobian`, for the
                                        Jacobian of the gradient

    Returns one Tensor of shape `input.shape + input.shape`. For a tuple of inputs it returns a
    tuple of tuples with `[i][j]` of shape `inputs[i].shape + inputs[j].shape`.
    """
    several_in, inputs = calls.as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def value(*inner: Tensor) -> Tensor:
        several, outputs = calls.call(func, inner, "hessian", strict)
        calls.check_scalar(several, outputs, "hessian")
        out = outputs[0]
        return out if out.shape == () else out.__array_namespace__().reshape(out, ())

    def gradient(*outer: Tensor) -> Tensors:
        blocks: Tensors = jacobian(value, outer, create_graph=True)
        if strict:
            calls.require(blocks, calls.OF_JACOBIAN)
        return blocks

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if several_in else blocks[0][0]
