"""What the functions share: the call of the user's function, with PyTorch's errors, and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...backward.gradients import grad
from ...core.computed import mark
from ...core.element import is_array
from ...core.level import Layer
from ...core.tensor import Tensor, alias, wrap_at, wrap_new
from ...errors import GradientError
from ...func.jacobian import zeros

Tensors = tuple[Tensor, ...]
Grads = Sequence[Tensor | None]
T = TypeVar("T")

OUTPUTS = "outputs of the user-provided function"


# -- arguments


def as_tensors(x: Any, what: str, name: str, kind: type[Layer] = Tensor) -> tuple[bool, Tensors]:
    """Whether `x` is a tuple, and `x` as a tuple of Tensors.

    Raw arrays are wrapped, except outputs, since a raw output has lost its gradient.
    """
    several = isinstance(x, tuple)
    tensors = []
    for i, element in enumerate(x if several else (x,)):
        if not isinstance(element, kind):
            if what == OUTPUTS or not is_array(element):
                place = f"value at index {i}" if several else f"given {what}"
                raise TypeError(
                    f"The {what} given to {name} must be either a Tensor or a tuple of Tensors "
                    f"but the {place} has type {type(element)}."
                )
            element = wrap_new(element)
        tensors.append(element)
    if not tensors:
        raise GradientError(f"The {what} given to {name} must not be an empty tuple.")
    return several, tuple(tensors)


def fresh(tensors: Tensors, create_graph: bool, leaves: bool) -> Tensors:
    """New Tensors on the same memory, different from those that the function may capture.

    With `leaves` they require grad.
    """
    return tuple(
        t.__array_namespace__().reshape(t, t.shape)
        if create_graph and t.requires_grad
        else alias(t).requires_grad_(leaves)
        for t in tensors
    )


def checked_vector(
    v: Any, like: Tensors, several: bool, name: str, create_graph: bool
) -> Tensors | None:
    """The vector of a product, with the shapes of `like`.

    None means 1 if `like` is a single element.
    """
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            which = (
                "the user-provided function returns"
                if name == "vjp"
                else "the input to the user-provided function is"
            )
            raise GradientError(
                f"The vector v can only be None if {which} a single Tensor with a single element."
            )
        return None
    _, vectors = as_tensors(v, "v", name)
    if len(vectors) != len(like):
        raise GradientError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for i, (vector, t) in enumerate(zip(vectors, like, strict=True)):
        if tuple(vector.shape) != tuple(t.shape):
            raise GradientError(
                f"{f'Entry {i} in ' if several else ''}v has invalid size: should be "
                f"{tuple(t.shape)} but got {tuple(vector.shape)}."
            )
    return fresh(vectors, create_graph, leaves=False)


def call(
    func: Callable[..., Any], inputs: Tensors, name: str, strict: bool
) -> tuple[bool, Tensors]:
    several, outputs = as_tensors(func(*inputs), OUTPUTS, name)
    if strict:
        require(
            outputs,
            "Output {} of the user-provided function does not require gradients. The outputs "
            "must be computed in a differentiable manner from the input when running in strict "
            "mode.",
        )
    return several, outputs


def check_scalar(several: bool, outputs: Tensors, name: str) -> None:
    """Raise unless a function returned one Tensor with one element."""
    if several:
        raise GradientError(f"The function given to {name} should return a single Tensor")
    if outputs[0].size != 1:
        raise GradientError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )


# -- results


def unpack(x: tuple[T, ...], several: bool) -> T | tuple[T, ...]:
    return x if several else x[0]


def finish(x: Tensors, several: bool, create_graph: bool) -> Tensor | Tensors:
    return unpack(x if create_graph else tuple(alone(t) for t in x), several)


def alone(t: Tensor) -> Tensor:
    """The same Tensor without a history.

    Inside the forward of a Function, the Tensor is still known as a result of forward.
    """
    return alias(t) if t._node is None else mark(alias(t))


def zero_tensor(like: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    return wrap_at(like, zeros(like, tuple(like.shape) if shape is None else shape))


# -- strict mode

INDEPENDENT = (
    "The output of the user-provided function is independent of input {}. This is "
    "not allowed in strict mode."
)

OF_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)

OF_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode."
)

CONSTANT = (
    "The {} of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True."
)


def require(tensors: Grads, constant: str, missing: str = INDEPENDENT) -> None:
    """Strict mode: raise if one of these is missing or, unless `constant` is "", is a constant."""
    for i, t in enumerate(tensors):
        if t is None or (constant and not t.requires_grad):
            raise GradientError((missing if t is None else constant).format(i))


def fill(
    grads: Grads, like: Tensors, strict: bool, create_graph: bool, missing: str, what: str
) -> Tensors:
    """The values with zeros in place of None.

    In strict mode None raises the error `missing`, and so does a constant `what` that should be
    differentiable.
    """
    if strict:
        require(grads, CONSTANT.format(what, "{}") if create_graph else "", missing)
    return tuple(zero_tensor(t) if g is None else g for g, t in zip(grads, like, strict=True))


# -- differentiation


def gradients(
    outputs: Grads,
    inputs: Tensors,
    v: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Grads:
    """`grad`, also for outputs without a gradient and inputs without an effect.

    It skips outputs without a gradient, and gives None for inputs that no output depends on.
    """
    pairs = [
        (t, g)
        for t, g in zip(outputs, v or (None,) * len(outputs), strict=True)
        if t is not None and t.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    grads: Grads = grad(
        [t for t, _ in pairs],
        inputs,
        [g for _, g in pairs],
        retain_graph,
        create_graph,
        allow_unused=True,
    )
    return grads
