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

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from ..backward.gradients import NOT_SCALAR, grad, owned
from ..core.computed import mark
from ..core.element import is_array
from ..core.grad_mode import enable_grad
from ..core.level import Layer, Transformation, innermost
from ..core.tensor import Tensor, alias, element_of, strip, wrap_at, wrap_new
from ..errors import GradientError
from ..layers.batched import batch, examples
from ..layers.dual import Dual, check_tangent, taken_apart
from ..tracebacks import entry

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

if TYPE_CHECKING:
    from ..typing import Array

Tensors = tuple[Tensor, ...]
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


def _vector(
    v: Any, like: Tensors, several: bool, name: str, create_graph: bool, missing: str
) -> Tensors | None:
    """The vector of a product, with the shapes of `like`.

    None means 1 if `like` is a single element.
    """
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise GradientError(
                f"The vector v can only be None if {missing} a single Tensor with a single element."
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


_OF_INPUTS = "the input to the user-provided function is"
_OF_OUTPUTS = "the user-provided function returns"


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


def _scalar(func: Callable[..., Any], inputs: Tensors, name: str, strict: bool) -> Tensor:
    """The output of a function that must return one Tensor with one element."""
    several, outputs = _call(func, inputs, name, strict)
    if several:
        raise GradientError(f"The function given to {name} should return a single Tensor")
    if outputs[0].size != 1:
        raise GradientError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )
    return outputs[0]


# -- results


def _unpack(x: tuple[T, ...], several: bool) -> T | tuple[T, ...]:
    return x if several else x[0]


def _finish(x: Tensors, create_graph: bool) -> Tensors:
    return x if create_graph else tuple(_alone(t) for t in x)


def _alone(t: Tensor) -> Tensor:
    """The same Tensor without a history.

    Inside the forward of a Function, the Tensor is still known as a result of forward.
    """
    return alias(t) if t._node is None else mark(alias(t))


def _zeros(
    like: Tensor, shape: tuple[int, ...] | None = None, requires_grad: bool = False
) -> Tensor:
    zeros = like._elem.library.xp.zeros(
        tuple(like.shape) if shape is None else shape, dtype=like.dtype, device=like.device
    )
    return wrap_at(like, zeros).requires_grad_(requires_grad)


# -- strict mode

INDEPENDENT = (
    "The output of the user-provided function is independent of input {}. This is "
    "not allowed in strict mode."
)

JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)

GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode."
)

CONSTANT = (
    "The {what} of the user-provided function is independent of input {i}. This is not "
    "allowed in strict mode when create_graph=True."
)


def _require(tensors: Sequence[Tensor | None], message: str) -> None:
    """Strict mode: raise if one of these is missing or does not require grad."""
    for i, t in enumerate(tensors):
        if t is None or not t.requires_grad:
            raise GradientError((INDEPENDENT if t is None else message).format(i))


def _fill(
    grads: Sequence[Tensor | None],
    like: Tensors,
    strict: bool,
    create_graph: bool,
    missing: str,
    what: str,
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
    outputs: Sequence[Tensor | None],
    inputs: Tensors,
    v: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Tensor | None, ...]:
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
    grads: tuple[Tensor | None, ...] = grad(
        [t for t, _ in pairs],
        inputs,
        [g for _, g in pairs],
        retain_graph,
        create_graph,
        allow_unused=True,
    )
    return grads


def _size(t: Tensor) -> int:
    if t.size is None:
        raise GradientError(
            f"a Tensor of unknown shape {t.shape} has no basis; compute the array first"
        )
    return t.size


def _basis(t: Tensor) -> Iterator[Any]:
    """The standard basis of the space of `t`, in the order of its elements.

    The arrays are raw and have the shape and the dtype of `t`.
    """
    xp, n = t._elem.library.xp, _size(t)
    places = xp.reshape(xp.arange(n, device=t.device), t.shape)
    for k in range(n):
        yield xp.astype(places == k, t.dtype)


def _bases(tensors: Sequence[Tensor]) -> list[Any]:
    """The standard basis of the space of all of these together.

    For each Tensor it gives the parts of the basis vectors, with the number of the vector as the
    first axis.
    """
    sizes = [_size(t) for t in tensors]
    parts = []
    for i, (t, n) in enumerate(zip(tensors, sizes, strict=True)):
        xp = t._elem.library.xp
        part = xp.eye(sum(sizes), n, k=-sum(sizes[:i]), dtype=t.dtype, device=t.device)
        parts.append(xp.reshape(part, (sum(sizes), *t.shape)))
    return parts


def _transposed(outputs: Tensors, inputs: Tensors) -> tuple[Tensors, tuple[Tensor | None, ...]]:
    """Cotangents u, and their gradients as differentiable functions of u.

    Differentiating these gradients again gives forward-mode products. The gradient is linear in u,
    so the value of u does not matter.
    """
    cotangents = tuple(_zeros(t, requires_grad=True) for t in outputs)
    return cotangents, _grad(outputs, inputs, cotangents, create_graph=True)


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
    with enable_grad():
        several_in, inputs = _tensors(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph, leaves=True)
        several_out, outputs = _call(func, inputs, "vjp", strict)
        vector = _vector(v, outputs, several_out, "vjp", create_graph, _OF_OUTPUTS)
        grads = _fill(
            _grad(outputs, inputs, vector, create_graph),
            inputs,
            strict,
            create_graph,
            INDEPENDENT,
            "jacobian",
        )
        return _unpack(_finish(outputs, create_graph), several_out), _unpack(
            _finish(grads, create_graph), several_in
        )


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
    with enable_grad():
        several_in, inputs = _tensors(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph, leaves=True)
        vector = _vector(v, inputs, several_in, "jvp", create_graph, _OF_INPUTS)
        several_out, outputs = _call(func, inputs, "jvp", strict)
        cotangents, gradients = _transposed(outputs, inputs)
        if strict:
            _require(gradients, GRADIENT)
        tangents = _fill(
            _grad(gradients, cotangents, vector, create_graph),
            outputs,
            strict,
            create_graph,
            "The gradient with respect to the input is independent of entry {} in the "
            "grad_outputs when using the double backward trick to compute forward mode "
            "gradients. This is not allowed in strict mode.",
            "jacobian",
        )
        return _unpack(_finish(outputs, create_graph), several_out), _unpack(
            _finish(tangents, create_graph), several_out
        )


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
        return _unpack(
            tuple(_unpack(_finish(row, create_graph), several_in) for row in rows), several_out
        )


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


def _by_batch(outputs: Tensors, inputs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """The Jacobians of each output with respect to each input.

    One backward pass computes the rows of all elements of all outputs.
    """
    recorded = [t for t in outputs if t.requires_grad and _size(t)]
    grads: Sequence[Tensor | None] = (None,) * len(inputs)
    if recorded:
        grads = grad(
            recorded,
            inputs,
            _bases(recorded),
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    table: list[list[Tensor]] = [[] for _ in outputs]
    for t, g in zip(inputs, grads, strict=True):
        start = 0
        for out, row in zip(outputs, table, strict=True):
            shape, n = (*out.shape, *t.shape), _size(out)
            if g is None or not out.requires_grad or not n:
                row.append(_zeros(t, shape))
                continue
            part = g if len(recorded) == 1 else g[start : start + n, ...]
            row.append(part.__array_namespace__().reshape(part, shape))
            start += n
    return tuple(map(tuple, table))


def _by_tangents(func: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobians by one forward pass, on Duals whose tangents are batches.

    The tangents are those along each element of all inputs.
    """
    several_in, inputs = _tensors(inputs, "inputs", "jacobian")
    inputs = _fresh(inputs, create_graph=False, leaves=False)
    total = sum(map(_size, inputs))
    vectors = Transformation("jacobian")
    try:
        run = Transformation("jacobian")
        duals = [
            Dual._make(
                strip(t),
                check_tangent(t, batch(e, vectors), run.own_level, "jacobian"),
                run,
                run.own_level,
            )
            for t, e in zip(inputs, _bases(inputs), strict=True)
        ]

        def called() -> tuple[bool, list[tuple[Any, Any]]]:
            several, outputs = _tensors(func(*duals), OUTPUTS, "jacobian", Layer)
            return several, [taken_apart(x, run) for x in outputs]

        several_out, pairs = run.call(called)
        table = []
        for x, tangent in pairs:
            columns = None if tangent is None else examples(tangent, vectors, total)
            table.append(_unpack(_blocks(x, columns, inputs), several_in))
        return _unpack(tuple(table), several_out)
    finally:
        vectors.finish()


def _blocks(x: Any, columns: Any, inputs: Tensors) -> Tensors:
    """The Jacobians of `x` with respect to each input.

    columns  the derivatives of `x`, with their numbers as the first axis
    """
    library = element_of(x).library
    blocks = []
    start = 0
    for t in inputs:
        shape, n = (*x.shape, *t.shape), _size(t)
        if columns is None:
            block = library.xp.zeros(
                shape, dtype=x.dtype, device=library.device(library.xp, innermost(x))
            )
        else:
            xp = library.bound
            part = columns if len(inputs) == 1 else columns[start : start + n, ...]
            block = owned([strip(xp.reshape(xp.moveaxis(part, 0, -1), shape))], None)
        blocks.append(_alone(block if isinstance(block, Tensor) else wrap_new(block)))
        start += n
    return tuple(blocks)


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
        out = _scalar(func, inner, "hessian", strict)
        return out if out.shape == () else out.__array_namespace__().reshape(out, ())

    def gradient(*outer: Tensor) -> Tensors:
        blocks: Tensors = jacobian(value, outer, create_graph=True)
        if strict:
            _require(blocks, JACOBIAN)
        return blocks

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if several_in else blocks[0][0]


def _first_derivatives(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[bool, Any, Tensors | None, Tensor, Any]:
    """The common first part of products with a Hessian.

    Returns whether there are several inputs, the inputs, `v`, the output, and its recorded
    gradients.
    """
    several, inputs = _tensors(inputs, "inputs", name)
    inputs = _fresh(inputs, create_graph, leaves=True)
    vector = _vector(v, inputs, several, name, create_graph, _OF_INPUTS)
    out = _scalar(func, inputs, name, strict)
    gradients = _grad((out,), inputs, create_graph=True)
    if strict:
        _require(gradients, JACOBIAN)
    return several, inputs, vector, out, gradients


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
    with enable_grad():
        several, inputs, vector, out, gradients = _first_derivatives(
            "vhp", func, inputs, v, create_graph, strict
        )
        product = _fill(
            _grad(gradients, inputs, vector, create_graph),
            inputs,
            strict,
            create_graph,
            "The jacobian of the user-provided function is independent of input {}. This is not "
            "allowed in strict mode.",
            "hessian",
        )
        return _finish((out,), create_graph)[0], _unpack(_finish(product, create_graph), several)


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
    with enable_grad():
        several, inputs, vector, out, gradients = _first_derivatives(
            "hvp", func, inputs, v, create_graph, strict
        )
        cotangents = tuple(_zeros(t, requires_grad=True) for t in inputs)
        transposed = _grad(gradients, inputs, cotangents, create_graph=True)
        product = _fill(
            _grad(transposed, cotangents, vector, create_graph),
            inputs,
            strict,
            create_graph,
            "The hessian of the user-provided function is independent of entry {} in the "
            "grad_jacobian. This is not allowed in strict mode as it prevents from using the "
            "double backward trick to replace forward mode AD.",
            "hessian",
        )
        return _finish((out,), create_graph)[0], _unpack(_finish(product, create_graph), several)
