"""Checks of gradients against finite differences. Corresponds to torch.autograd.gradcheck.

Jacobians are transposed matrices here: a row for each element of an input, a column for each
element of an output. For a complex input they hold the gradient by the conjugate convention.
Complex outputs are checked twice, for their imaginary and their real part. As in PyTorch the
function receives the caller's own Tensors, whose values are replaced while it runs and restored
afterwards. So a function may also capture its inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backward.gradients import grad
from ..backward.run import run_pass
from ..core.graph import CustomNode, Node, OutputNode
from ..core.level import innermost
from ..core.passes import Pass
from ..core.tensor import Tensor, element_of, wrap, wrap_new
from ..errors import GradientError, program
from ..layers.dual import Dual
from ..tracebacks import entry
from .check_batches import compare_batched_gradients, compare_batched_tangents, moved
from .check_values import (
    Function,
    GradcheckError,
    Mismatch,
    _basis,
    _checked,
    _differentiable,
    _like,
    _numbers,
    _outputs,
    _random,
    _random_like,
    _tuple,
    _zeros_like,
)

if TYPE_CHECKING:
    from random import Random

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


@entry
def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with central differences.

    The comparison covers each of `inputs` that requires grad.

    func      takes the inputs, returns a Tensor or a tuple of Tensors. Outputs that do not require
              grad are ignored, but if no output requires grad, none may depend on the inputs
    inputs    one argument or a tuple of them, Tensors or not. Tensors to check should be float64 or
              complex128
    eps       the step of the differences

    atol, rtol            tolerances: abs(analytical - numerical) <= atol + rtol * abs(numerical),
                          element by element
    raise_exception       whether a failing check raises GradcheckError, with both Jacobians and the
                          worst entry; else it returns False
    nondet_tol            how much two runs of the same backward pass may differ
    check_undefined_grad  whether a missing gradient of an output must have the effect of a zero
                          gradient
    check_grad_dtypes     whether gradients must have the dtypes of their inputs
    fast_mode             compare random projections, v @ J @ u, instead of whole Jacobians; the
                          seed is fixed
    masked                without effect: in PyTorch it concerns sparse arrays, which the standard
                          does not have

    check_forward_ad      whether to compare tangents with the differences, too; the function then
                          receives Duals in place of Tensors
    check_backward_ad     whether to compare gradients

    check_batched_grad          whether a batched pass, grad(is_grads_batched=True), must equal
                                single ones
    check_batched_forward_grad  whether a batch of tangents must equal single ones

    Returns True. Raises ValueError if no input requires grad and RuntimeError for an input whose
    elements share memory.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    settings = Settings(
        eps,
        atol,
        rtol,
        nondet_tol,
        check_grad_dtypes,
        check_backward_ad,
        check_forward_ad,
        check_batched_grad,
        check_batched_forward_grad,
    )
    try:
        return _check(func, _tuple(inputs), settings, fast_mode, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False


@entry
def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives of `func` with differences of first derivatives.

    It is `gradcheck` of the gradients, with respect to `inputs` and `grad_outputs`.

    grad_outputs                 gradients of the outputs, one Tensor or a tuple. None: drawn
                                 uniformly from [-1, 1], with a fixed seed
    gen_non_contig_grad_outputs  draw them as every second element of an array, if the library has
                                 such views
    check_fwd_over_rev           whether to compare tangents of the gradients with the differences,
                                 as `check_forward_ad` of gradcheck
    check_rev_over_rev           whether to compare gradients of the gradients, as
                                 `check_backward_ad` of gradcheck

    The other arguments are those of `gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
        )
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_rev_over_rev to be True"
        )
    arguments = _tuple(inputs)
    if grad_outputs is None:
        source = _random()
        given = tuple(
            _random_like(t, source, gen_non_contig_grad_outputs)
            for t in _differentiable(_outputs(func(*arguments)))
        )
    else:
        given = _tuple(grad_outputs)

    checked = [isinstance(x, Tensor) and x.requires_grad for x in arguments + given]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        if any(isinstance(x, Dual) for x in args):  # differentiate by Tensors around the Duals
            args = tuple(
                wrap_new(x if isinstance(x, Dual) else x.array).requires_grad_() if c else x
                for x, c in zip(args, checked, strict=True)
            )
        args, cotangents = args[: len(arguments)], args[len(arguments) :]
        outputs = _differentiable(_outputs(func(*args)))
        grads = (
            grad(outputs, _checked(args), cotangents, create_graph=True, allow_unused=True)
            if outputs
            else ()
        )
        return tuple(g for g in grads if g is not None)

    try:
        return gradcheck(
            gradients,
            arguments + given,
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            nondet_tol=nondet_tol,
            check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes,
            check_batched_grad=check_batched_grad,
            check_forward_ad=check_fwd_over_rev,
            check_backward_ad=check_rev_over_rev,
            fast_mode=fast_mode,
            masked=masked,
        )
    except Mismatch as error:
        error.matrices = False  # those of second derivatives are large
        raise


class Settings(NamedTuple):
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    backward: bool
    forward: bool
    batched: bool
    batched_forward: bool


# -- the inputs to check


def _check_inputs(inputs: Sequence[Any]) -> None:
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if not _double(x):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                UserWarning,
                stacklevel=program(),
            )
        strides = getattr(x.array, "strides", None)  # NumPy and CuPy have them
        if type(strides) is tuple and any(
            step == 0 and n > 1 for step, n in zip(strides, x.shape, strict=True)
        ):
            raise GradientError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should make a copy of the input, x.clone().detach(), before "
                "passing it to gradcheck."
            )
    if not _checked(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _double(x: Tensor) -> bool:
    xp = x._elem.library.xp
    wanted = "complex128" if x._elem.complex else "float64"
    return bool(x.dtype == getattr(xp, wanted, None))


def _check(
    func: Function, inputs: tuple[Any, ...], settings: Settings, fast: bool, undefined: bool
) -> bool:
    _check_inputs(inputs)
    outputs = _outputs(func(*inputs))
    complex_ones = {i for i, t in enumerate(_differentiable(outputs)) if t._elem.complex}
    compare = _compare_projections if fast else _compare_jacobians
    if any(t._elem.complex for t in outputs):
        for part in ("imag", "real"):
            compare(_Problem(_part(func, part), inputs, settings, part, complex_ones))
    else:
        compare(_Problem(func, inputs, settings, "", complex_ones))
    outputs = _differentiable(outputs)
    if settings.batched_forward:
        compare_batched_tangents(func, inputs)
    if outputs and settings.backward:
        if settings.batched:
            compare_batched_gradients(outputs, _checked(inputs))
        _check_proportional(outputs, inputs)
        if undefined:
            _check_undefined(func, inputs)
    return True


def _part(func: Function, part: str) -> Function:
    def of_part(*inputs: Any) -> tuple[Tensor, ...]:
        return tuple(
            getattr(t.__array_namespace__(), part)(t) if t._elem.complex else t
            for t in _outputs(func(*inputs))
        )

    return of_part


class _Problem:
    """A function with real outputs at a point: its Tensors, and the words of messages."""

    def __init__(
        self,
        func: Function,
        inputs: tuple[Any, ...],
        settings: Settings,
        part: str,
        complex_ones: set[int],
    ) -> None:
        self.func, self.inputs, self.settings, self.part, self.complex_ones = (
            func,
            inputs,
            settings,
            part,
            complex_ones,
        )
        self.all_outputs = _outputs(func(*inputs))
        self.numbered = [(k, t) for k, t in enumerate(self.all_outputs) if t.requires_grad]
        self.outputs = [t for _, t in self.numbered]
        self.checked = _checked(inputs)

    def mismatch(
        self,
        output: int,
        number: int,
        numerical: Any,
        analytical: Any,
        forward: bool = False,
        projections: tuple[Any, Any] | None = None,
    ) -> Mismatch:
        """The error for two Jacobians, or their projections, that differ."""
        prefix = ""
        if output in self.complex_ones:
            prefix = (
                f"While considering the {'imaginary' if self.part == 'imag' else 'real'} "
                "part of complex outputs only, "
            )
        head = (
            f"{prefix}Jacobian {'computed with forward mode ' * forward}mismatch for output "
            f"{output} with respect to input {number},\n"
        )
        shown = "numerical:{!r}\nanalytical:{!r}\n".format(
            *(projections or (numerical, analytical))
        )
        if projections:
            shown += SLOWLY.format(numerical, analytical, abs(numerical - analytical).max())
        worst = _worst(
            numerical, analytical, self.checked[number], self.numbered[output][1], self.settings
        )
        return Mismatch(head, shown, worst, numerical, analytical)


# -- finite differences


def _difference(p: _Problem, x: Tensor, step: Any, where: Any) -> list[Any]:
    """Central differences of every output, as vectors, for a `step` of `x` in both directions."""
    before, values, eps = x.array, _numbers(x), p.settings.eps
    try:
        x.data = _like(x, values - step)
        below = _outputs(p.func(*p.inputs))
        low = [_numbers(t) for t in below]
        x.data = _like(x, values + step)
        above = _outputs(p.func(*p.inputs))
        high = [_numbers(t) for t in above]
    finally:
        x.data = before
    for a, b in zip(below, above, strict=True):
        for what, of_a, of_b in (
            ("shape", tuple(a.shape), tuple(b.shape)),
            ("dtype", a.dtype, b.dtype),
        ):
            if of_a != of_b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed {'' if where is None else f'on index {where} '}by {eps}, but "
                    f"got: {what}s {of_a} and {of_b}."
                )
    return [
        ((b - a) / (2 * eps)).reshape(-1) if t._elem.floating else None
        for t, a, b in zip(above, low, high, strict=True)
    ]


def _directional(
    p: _Problem, x: Tensor, real: Any, imaginary: Any, where: Any = None, forward: bool = False
) -> list[Any]:
    """The derivative of every output along `real`.

    For a complex `x`, 1j times the derivative along `1j * imaginary` is added.
    """

    def derivative(v: Any) -> list[Any]:
        return _tangents(p, x, v) if forward else _difference(p, x, v * p.settings.eps, where)

    along = derivative(real)
    if x._elem.complex:
        across = derivative(imaginary * 1j)
        along = [None if a is None else a + 1j * b for a, b in zip(along, across, strict=True)]
    return along


def _tangents(p: _Problem, x: Tensor, v: Any) -> list[Any]:
    """The tangents of every output along `v` at `x`, as vectors, in forward mode."""
    import numpy as np

    pairs = moved(p.func, p.inputs, x, _like(x, v))
    return [
        None
        if not element_of(t).floating
        else np.zeros(prod(t.shape))
        if tangent is None
        else _numbers(tangent).reshape(-1)
        for t, tangent in pairs
    ]


def _numerical(p: _Problem, x: Tensor, forward: bool = False) -> list[Any]:
    """The Jacobians of every output with respect to `x`.

    There is a difference for each element, or in forward mode a tangent. The Jacobian is None for
    an output that is not floating.
    """
    import numpy as np

    rows = [
        _directional(p, x, e, e, tuple(int(k) for k in np.unravel_index(i, x.shape)), forward)
        for i, e in enumerate(_basis(x))
    ]
    return [
        np.asarray([row[i] for row in rows]).reshape(len(rows), prod(t.shape))
        if t._elem.floating
        else None
        for i, t in enumerate(p.all_outputs)
    ]


# -- backward passes

NONDETERMINISTIC = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient.The "
    "tolerance for nondeterminism was {}.\n"
    "\n"
    "If the function relies on operations whose result is not deterministic, pass "
    "nondet_tol=<tolerance>."
)


def _analytical(p: _Problem, out: Tensor, vectors: Sequence[Any]) -> list[Any]:
    """The products of the vectors with the Jacobian of `out`: one matrix per input, as columns.

    They are computed twice and compared.
    """
    products, again = (_passes(p, out, vectors) for _ in range(2))
    for first, second in zip(products, again, strict=True):
        if (abs(first - second) > p.settings.nondet_tol).any():
            raise GradcheckError(NONDETERMINISTIC.format(p.settings.nondet_tol))
    return products


def _passes(p: _Problem, out: Tensor, vectors: Iterable[Any]) -> list[Any]:
    import numpy as np

    columns: list[list[Any]] = [[] for _ in p.checked]
    for v in vectors:
        grads = grad(out, p.checked, _like(out, v), retain_graph=True, allow_unused=True)
        for column, g, x in zip(columns, grads, p.checked, strict=True):
            if g is not None and p.settings.check_grad_dtypes and g.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            if g is not None and tuple(g.shape) != tuple(x.shape):
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(np.zeros(prod(x.shape)) if g is None else _numbers(g).reshape(-1))
    return [
        np.asarray(column).reshape(len(column), prod(x.shape)).T
        for column, x in zip(columns, p.checked, strict=True)
    ]


# -- comparing whole Jacobians


def _close(analytical: Any, numerical: Any, settings: Settings) -> bool:
    import numpy as np

    return bool(np.allclose(analytical, numerical, rtol=settings.rtol, atol=settings.atol))


EXPECTED_ZERO = "Numerical gradient for function expected to be zero"


def _compare_jacobians(p: _Problem) -> None:
    numerical = [_numerical(p, x) for x in p.checked]
    if not p.outputs and any(n is not None and (n != 0).any() for row in numerical for n in row):
        raise GradcheckError(EXPECTED_ZERO)
    for i, (number, out) in enumerate(p.numbered if p.settings.backward else ()):
        for j, a in enumerate(_analytical(p, out, list(_basis(out)))):
            n = numerical[j][number]
            if not _close(a, n, p.settings):
                raise p.mismatch(i, j, n, a)
    for j, x in enumerate(p.checked if p.settings.forward else ()):
        tangents = _numerical(p, x, forward=True)
        for i, (number, _) in enumerate(p.numbered):
            n, a = numerical[j][number], tangents[number]
            if not _close(a, n, p.settings):
                raise p.mismatch(i, j, n, a, forward=True)


# -- comparing random projections: v @ J @ u


def _direction(t: Tensor, source: Random) -> Any:
    """Positive random numbers of norm 1, in the shape of `t`."""
    import numpy as np

    numbers = np.asarray([source.random() for _ in range(prod(t.shape))])
    return (
        (numbers / np.sqrt((numbers**2).sum())).reshape(t.shape)
        if numbers.size
        else numbers.reshape(t.shape)
    )


def _compare_projections(p: _Problem) -> None:
    source = _random()
    real = [_direction(x, source) for x in p.checked]
    imaginary = [_direction(x, source) if x._elem.complex else None for x in p.checked]
    left = [_direction(t, source) for t in p.outputs]
    analytical = (
        [_analytical(p, out, [v]) for out, v in zip(p.outputs, left, strict=True)]
        if p.settings.backward
        else []
    )
    for j, (x, u, w) in enumerate(zip(p.checked, real, imaginary, strict=True)):
        along = _directional(p, x, u, w)
        if not p.outputs and any(
            n is not None and (abs(n) > p.settings.nondet_tol).any() for n in along
        ):
            raise GradcheckError(EXPECTED_ZERO)
        tangents = _directional(p, x, u, w, forward=True) if p.settings.forward else []
        for i, (v, (number, _)) in enumerate(zip(left, p.numbered, strict=True)):
            numerical = (v.reshape(-1) * along[number]).sum()
            total = (u.sum() + (0 if w is None else w.sum())) * v.sum()
            # Every element may differ by atol, so the projections may differ by the projection of
            # a matrix whose entries are atol.
            settings = p.settings._replace(atol=p.settings.atol * total)
            if p.settings.backward:
                column = analytical[i][j][:, 0]
                backward = (column.real * u.reshape(-1)).sum()
                if w is not None:
                    backward = backward + 1j * (column.imag * w.reshape(-1)).sum()
                if not _close(backward, numerical, settings):
                    raise _slowly(p, i, j, (numerical.item(), backward.item()))
            if tangents and not _close(
                forward := (v.reshape(-1) * tangents[number]).sum(), numerical, settings
            ):
                raise _slowly(p, i, j, (numerical.item(), forward.item()), forward=True)


SLOWLY = (
    "\n"
    "The above quantities relating the numerical and analytical jacobians are computed in fast "
    "mode: they are projections on random vectors. Below, the jacobians are computed in slow "
    "mode:\n"
    "\n"
    "Numerical:\n"
    " {!r}\n"
    "Analytical:\n"
    "{!r}\n"
    "\n"
    "The max per-element difference (slow mode) is: {}.\n"
)


def _slowly(
    p: _Problem, i: int, j: int, projections: tuple[Any, Any], forward: bool = False
) -> Mismatch:
    """The error for projections that differ, with the whole Jacobians."""
    number, out = p.numbered[i]
    n, a = (
        _numerical(p, p.checked[j])[number],
        _numerical(p, p.checked[j], True)[number] if forward else _passes(p, out, _basis(out))[j],
    )
    return p.mismatch(i, j, n, a, forward, projections)


def _worst(numerical: Any, analytical: Any, x: Tensor, out: Tensor, settings: Settings) -> str:
    """The entry that differs most, with its place in the input and the output."""
    import numpy as np

    tolerance = settings.atol + settings.rtol * abs(numerical)
    beyond = np.nan_to_num(abs(analytical - numerical) - tolerance, nan=np.inf)
    if not (beyond > 0).any():
        return (
            "Fast gradcheck failed but element-wise differences are small. With "
            "fast_mode=False the check passes.\n"
        )
    k, m = np.unravel_index(beyond.argmax(), beyond.shape)
    at, of = (
        tuple(int(i) for i in np.unravel_index(flat, shape))
        for flat, shape in ((k, x.shape), (m, out.shape))
    )
    return (
        f"The worst of the {int((beyond > 0).sum())} entries of {beyond.size} that differ is "
        f"the derivative of output element {of} by input element {at}: {numerical[k, m]} "
        f"numerically, {analytical[k, m]} analytically.\n"
    )


# -- further properties of a backward pass


def _check_proportional(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Check that zero gradients of the outputs give zero gradients of the inputs.

    The gradients must have the dtype and the device of the inputs.
    """
    checked = _checked(inputs)
    for g, x in zip(
        grad(outputs, checked, [_zeros_like(t) for t in outputs], allow_unused=True),
        checked,
        strict=True,
    ):
        if g is None:
            continue
        if not g._elem.library.xp.all(innermost(g) == 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if tuple(g.shape) != tuple(x.shape):
            raise GradcheckError("grad is incorrect size")


def _check_undefined(func: Function, inputs: Sequence[Any]) -> None:
    """Check that a missing gradient of an output has the effect of a zero gradient.

    First all gradients are missing, then each one alone.
    """
    checked = _checked(inputs)
    count = len(_differentiable(_outputs(func(*inputs))))
    for missing in (set(range(count)), *({i} for i in range(count if count > 1 else 0))):
        try:
            grads = _undefined(_differentiable(_outputs(func(*inputs))), checked, missing)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: a Function's "
                "backward, or a rule of several outputs, receives None for an output without a "
                "gradient. check_undefined_grad=False leaves this out."
            ) from error
        if any(g is not None and not g._elem.library.xp.all(innermost(g) == 0) for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero. check_undefined_grad=False leaves this out."
            )


def _undefined(
    outputs: Sequence[Tensor], checked: Sequence[Tensor], missing: set[int]
) -> list[Tensor | None]:
    """The gradients if those of the `missing` outputs are None and the others are zero.

    The rule of an output without a gradient does not run, except that of a Function.
    """
    roots: dict[Node, Any] = {}
    for i, t in enumerate(outputs):
        node = t._node
        assert node is not None
        if i not in missing:
            roots[node] = _zeros_like(t)
        elif isinstance(node, OutputNode) and isinstance(node.next, CustomNode):
            roots.setdefault(node)
    targets: dict[Node, Any] = {x._node: None for x in checked if x._node is not None}
    run_pass(list(roots.items()), Pass(outputs[0], False, False, targets))
    return [None if g is None else wrap(g) for g in targets.values()]
