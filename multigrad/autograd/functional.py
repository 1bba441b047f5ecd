"""Jacobians, Hessians and their products with vectors, for functions of Tensors.

Corresponds to torch.autograd.functional.

The arguments of a function are the Tensors to differentiate with respect to. Capture everything
else: `jacobian(lambda x: f(x, constant, flag=flag), inputs)`. The function receives new Tensors on
the memory of `inputs`, so the `.grad` of the caller's Tensors never changes. `inputs`, `v` and the
result of the function are each one Tensor or a *tuple* of Tensors, and the results have the same
structure. `inputs` and `v` may also be raw arrays of a known library, which are constants. Results
are always Tensors.

create_graph=True makes all results differentiable. strict=True raises RuntimeError if a result is
zero because an output does not depend on an input. Otherwise such results are zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from ..backward.gradients import NOT_SCALAR, grad, owned
from ..core.computed import mark
from ..core.element import is_array
from ..core.grad_mode import enable_grad
from ..core.level import Layer, Transformation
from ..core.tensor import Tensor, alias, strip, wrap_at, wrap_new
from ..errors import GradientError
from ..func.jacobian import bases, last, zeros
from ..layers import transforming
from ..layers.batched import batch, examples
from ..layers.dual import check_tangent
from ..tracebacks import entry

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

if TYPE_CHECKING:
    from ..typing import Array

Tensors = tuple[Tensor, ...]
Grads = Sequence[Tensor | None]
T = TypeVar("T")
R = TypeVar("R")

OUTPUTS = "outputs of the user-provided function"


# -- arguments


def _tensors(x: Any, what: str, name: str, kind: type[Layer] = Tensor) -> tuple[bool, Tensors]:
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


def _fresh(tensors: Tensors, create_graph: bool, leaves: bool) -> Tensors:
    """New Tensors on the same memory, different from those that the function may capture.

    With `leaves` they require grad.
    """
    return tuple(
        t.__array_namespace__().reshape(t, t.shape)
        if create_graph and t.requires_grad
        else alias(t).requires_grad_(leaves)
        for t in tensors
    )


def _vector(v: Any, like: Tensors, several: bool, name: str, create_graph: bool) -> Tensors | None:
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
    _, vectors = _tensors(v, "v", name)
    if len(vectors) != len(like):
        raise GradientError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for i, (given, t) in enumerate(zip(vectors, like, strict=True)):
        if tuple(given.shape) != tuple(t.shape):
            raise GradientError(
                f"{f'Entry {i} in ' if several else ''}v has invalid size: should be "
                f"{tuple(t.shape)} but got {tuple(given.shape)}."
            )
    return _fresh(vectors, create_graph, leaves=False)


def _call(
    func: Callable[..., Any], inputs: Tensors, name: str, strict: bool
) -> tuple[bool, Tensors]:
    several, outputs = _tensors(func(*inputs), OUTPUTS, name)
    if strict:
        _require(
            outputs,
            "Output {} of the user-provided function does not require gradients. The outputs "
            "must be computed in a differentiable manner from the input when running in strict "
            "mode.",
        )
    return several, outputs


def _check_scalar(several: bool, outputs: Tensors, name: str) -> None:
    """Raise unless a function returned one Tensor with one element."""
    if several:
        raise GradientError(f"The function given to {name} should return a single Tensor")
    if outputs[0].size != 1:
        raise GradientError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )


# -- results


def _unpack(x: tuple[T, ...], several: bool) -> T | tuple[T, ...]:
    return x if several else x[0]


def _finish(x: Tensors, several: bool, create_graph: bool) -> Tensor | Tensors:
    return _unpack(x if create_graph else tuple(_alone(t) for t in x), several)


def _alone(t: Tensor) -> Tensor:
    """The same Tensor without a history.

    Inside the forward of a Function, the Tensor is still known as a result of forward.
    """
    return alias(t) if t._node is None else mark(alias(t))


def _zeros(like: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
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
    "The {what} of the user-provided function is independent of input {i}. This is not "
    "allowed in strict mode when create_graph=True."
)


def _require(tensors: Grads, message: str) -> None:
    """Strict mode: raise if one of these is missing or does not require grad."""
    for i, t in enumerate(tensors):
        if t is None or not t.requires_grad:
            raise GradientError((INDEPENDENT if t is None else message).format(i))


def _fill(
    grads: Grads, like: Tensors, strict: bool, create_graph: bool, missing: str, what: str
) -> Tensors:
    """The values with zeros in place of None.

    In strict mode None raises the error `missing`, and so does a constant `what` that should be
    differentiable.
    """
    filled = []
    for i, (g, t) in enumerate(zip(grads, like, strict=True)):
        if strict and g is None:
            raise GradientError(missing.format(i))
        if strict and create_graph and g is not None and not g.requires_grad:
            raise GradientError(CONSTANT.format(what=what, i=i))
        filled.append(_zeros(t) if g is None else g)
    return tuple(filled)


# -- differentiation


def _grad(
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


MISSING = {
    "vjp": INDEPENDENT,
    "jvp": "The gradient with respect to the input is independent of entry {} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not allowed "
    "in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {} in the "
    "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}
"""Strict mode: the errors for an entry of a product that is independent of the inputs."""


def _product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """The output of `func`, and the product `name`.

    That is the product of `v` with the Jacobian of `func` or, for "vhp" and "hvp", with that of its
    gradient. For "jvp" and "hvp" the Jacobian is transposed, by one more backward pass.
    """
    of_gradient, transposed = name in ("vhp", "hvp"), name in ("jvp", "hvp")
    with enable_grad():
        several_in, inputs = _tensors(inputs, "inputs", name)
        inputs = _fresh(inputs, create_graph, leaves=True)
        if name != "vjp":
            vector = _vector(v, inputs, several_in, name, create_graph)
        several_out, outputs = _call(func, inputs, name, strict)
        if name == "vjp":
            vector = _vector(v, outputs, several_out, name, create_graph)
        differentiated: Grads = outputs
        if of_gradient:
            _check_scalar(several_out, outputs, name)
            differentiated = _grad(outputs, inputs, create_graph=True)
            if strict:
                _require(differentiated, OF_JACOBIAN)
        variables = inputs
        if transposed:
            # The gradient is linear in the cotangents, whatever their values, so its own gradient
            # with respect to them is the forward-mode product.
            variables = tuple(
                _zeros(t).requires_grad_() for t in (inputs if of_gradient else outputs)
            )
            differentiated = _grad(differentiated, inputs, variables, create_graph=True)
            if strict and not of_gradient:
                _require(differentiated, OF_GRADIENT)
        product = _fill(
            _grad(differentiated, variables, vector, create_graph),
            variables,
            strict,
            create_graph,
            MISSING[name],
            "hessian" if of_gradient else "jacobian",
        )
        return (
            _finish(outputs, several_out, create_graph),
            _finish(product, several_out if name == "jvp" else several_in, create_graph),
        )


@overload
def vjp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def vjp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
@entry
def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of `v` with its Jacobian.

    v  shaped as the output; optional for one element, where it is 1

    The product has the structure and the shapes of `inputs`.
    """
    return _product("vjp", func, inputs, v, create_graph, strict)


@overload
def jvp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, R]: ...
@entry
def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of its Jacobian with `v`.

    v  of the same structure and shapes as `inputs`; if the input has a single element, `v` may be
       left out and is 1

    The product has the structure and the shapes of the output. Two backward passes compute it, as
    in PyTorch.
    """
    return _product("jvp", func, inputs, v, create_graph, strict)


@overload
def jacobian(
    func: Callable[[Tensor], R],
    inputs: Array,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> R: ...
@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors: ...
@overload
def jacobian(
    func: Callable[..., Tensors],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[Tensors, ...]: ...
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
        several_in, inputs = _tensors(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph, leaves=True)
        several_out, outputs = _call(func, inputs, "jacobian", strict)
        if vectorize and strict:
            raise GradientError(
                "multigrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` "
                "are not supported together. Please either set `strict=False` or "
                "`vectorize=False`."
            )
        if vectorize:
            rows = _by_batch(outputs, inputs, create_graph)
        else:
            rows = tuple(
                _by_rows(i, out, inputs, create_graph, strict) for i, out in enumerate(outputs)
            )
        return _unpack(tuple(_finish(row, several_in, create_graph) for row in rows), several_out)


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    def refuse(option: str, kind: type[Exception]) -> NoReturn:
        raise kind(
            f"multigrad.autograd.functional.jacobian: `{option}=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either set '
            f'`{option}=False` or `strategy="reverse-mode"`.'
        )

    if create_graph:
        refuse("create_graph", NotImplementedError)
    if strict:
        refuse("strict", GradientError)
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


def _by_rows(i: int, out: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobians of output number i with respect to each input.

    There is a backward pass for each element of the output.
    """
    shapes = [tuple(out.shape) + tuple(t.shape) for t in inputs]
    if not out.requires_grad or out.size == 0:
        return tuple(_zeros(t, shape) for t, shape in zip(inputs, shapes, strict=True))
    if out._elem.complex:
        raise GradientError(f"{NOT_SCALAR.replace('scalar', 'real scalar')} but got {out.dtype}")
    rows: list[list[Tensor]] = [[] for _ in inputs]
    for vector in _basis(out):
        grads = _fill(
            _grad((out,), inputs, (vector,), create_graph, retain_graph=True),
            inputs,
            strict,
            create_graph,
            f"Output {i} of the user-provided function is independent of input {{}}. This is "
            "not allowed in strict mode.",
            "jacobian",
        )
        for row, g in zip(rows, grads, strict=True):
            row.append(g)
    xp = out.__array_namespace__()
    return tuple(xp.reshape(xp.stack(row), shape) for row, shape in zip(rows, shapes, strict=True))


def _by_batch(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Iterable[Tensors]:
    """The Jacobians of each output with respect to each input.

    One backward pass computes the rows of all elements of all outputs.
    """
    recorded = [t for t in outputs if t.requires_grad and _size(t)]
    rows: Grads = (None,) * len(inputs)
    if recorded:
        rows = grad(
            recorded,
            inputs,
            bases(recorded),
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )

    def of_input(t: Tensor, g: Tensor | None) -> Iterator[Tensor]:
        parts = iter(() if g is None else _parts(g, recorded))
        for out in outputs:
            part = next(parts, None) if out.requires_grad and _size(out) else None
            shape = (*out.shape, *t.shape)
            yield (
                _zeros(t, shape)
                if part is None
                else part.__array_namespace__().reshape(part, shape)
            )

    return zip(*map(of_input, inputs, rows), strict=True)


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
    several_in, inputs = _tensors(inputs, "inputs", "jacobian")
    points = [strip(alias(t)) for t in inputs]
    total, several_out = sum(map(_size, inputs)), False
    vectors, run = Transformation("jacobian"), Transformation("jacobian")

    def outputs_of(duals: list[Any]) -> list[Any]:
        nonlocal several_out
        several_out, outputs = _tensors(func(*duals), OUTPUTS, "jacobian", Layer)
        return transforming.within(outputs, run)

    try:
        tangents = [batch(e, vectors) for e in bases(points)]
        for t, x, tangent in zip(inputs, points, tangents, strict=True):
            if not t._elem.floating:
                check_tangent(x, tangent, run.own_level, "jacobian")  # raises PyTorch's error
        outs, moved = transforming.jvp(outputs_of, points, tangents, run)
        blocks = [
            _blocks(x, None if t is None else examples(t, vectors, total), inputs)
            for x, t in zip(outs, moved, strict=True)
        ]
    finally:
        vectors.finish()
    return _unpack(tuple(_unpack(tuple(row), several_in) for row in blocks), several_out)


def _blocks(x: Any, columns: Any, inputs: Tensors) -> list[Tensor]:
    """The Jacobians of `x` with respect to each input.

    columns  the derivatives of `x`, with their numbers as the first axis
    """
    blocks = []
    parts = repeat(None) if columns is None else _parts(columns, inputs)
    for part, t in zip(parts, inputs, strict=False):
        shape = (*x.shape, *t.shape)
        block = zeros(x, shape) if part is None else owned([strip(last(part, shape))], None)
        blocks.append(_alone(block if isinstance(block, Tensor) else wrap_new(block)))
    return blocks


@overload
def hessian(
    func: Callable[[Tensor], Any],
    inputs: Array,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Any],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> tuple[Tensors, ...]: ...
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
    several_in, inputs = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def value(*inner: Tensor) -> Tensor:
        several, outputs = _call(func, inner, "hessian", strict)
        _check_scalar(several, outputs, "hessian")
        out = outputs[0]
        return out if out.shape == () else out.__array_namespace__().reshape(out, ())

    def gradient(*outer: Tensor) -> Tensors:
        blocks: Tensors = jacobian(value, outer, create_graph=True)
        if strict:
            _require(blocks, OF_JACOBIAN)
        return blocks

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if several_in else blocks[0][0]


@overload
def vhp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def vhp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
@entry
def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of `v` with its Hessian, shaped as `inputs`.

    v  shaped as `inputs`; optional for one element, where it is 1

    `func` must return one Tensor with one element.
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


@overload
def hvp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def hvp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
@entry
def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of its Hessian with `v`, shaped as `inputs`.

    v  shaped as `inputs`; optional for one element, where it is 1

    `func` must return one Tensor with one element. hvp takes one backward pass more than `vhp`. The
    results are equal for twice continuously differentiable functions, whose Hessian is symmetric.
    """
    return _product("hvp", func, inputs, v, create_graph, strict)
