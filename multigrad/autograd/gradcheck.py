"""Checks of gradients against finite differences. Corresponds to torch.autograd.gradcheck.

Jacobians are transposed matrices here: a row for each element of an input, a column for each
element of an output. For a complex input they hold the gradient by the conjugate convention.
Complex outputs are checked twice, for their imaginary and their real part. As in PyTorch the
function receives the caller's own Tensors, whose values are replaced while it runs and restored
afterwards. So a function may also capture its inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..backward.gradients import grad
from ..backward.run import run_pass
from ..core.graph import CustomNode, Node, OutputNode
from ..core.level import Transformation, innermost
from ..core.passes import Pass
from ..core.tensor import Tensor, element_of, wrap_new
from ..errors import GradientError, program
from ..func.jacobian import zeros
from ..layers.batched import batch, examples
from ..layers.dual import Dual, taken_apart
from ..tracebacks import entry
from . import check_values as values
from .check_values import Function, GradcheckError, Mismatch

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
    _require(check_backward_ad, "check_backward_ad", check_batched_grad, "check_batched_grad")
    _require(
        check_forward_ad,
        "check_forward_ad",
        check_batched_forward_grad,
        "check_batched_forward_grad",
    )
    settings = eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode
    inputs = values.as_tuple(inputs)
    try:
        _check_inputs(inputs)
        outputs = values.outputs_of(func(*inputs))
        complexes = {i for i, t in enumerate(outputs) if t._elem.complex}
        for part in ("imag", "real") if complexes else ("real",):
            problem = _Problem(func, inputs, part, complexes, *settings)
            _compare(problem, check_backward_ad, check_forward_ad)
        if check_batched_forward_grad:
            _compare_batched_tangents(func, inputs)
        outputs = values.differentiable(outputs)
        if outputs and check_backward_ad:
            if check_batched_grad:
                _compare_batched_gradients(outputs, values.checked(inputs))
            _check_proportional(outputs, values.checked(inputs))
            if check_undefined_grad:
                _check_undefined(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


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
    _require(check_rev_over_rev, "check_rev_over_rev", check_undefined_grad, "check_undefined_grad")
    _require(check_rev_over_rev, "check_rev_over_rev", check_batched_grad, "check_batched_grad")
    arguments = values.as_tuple(inputs)
    if grad_outputs is None:
        source = values.random_source()
        cotangents = tuple(
            values.random_like(t, source, gen_non_contig_grad_outputs)
            for t in values.differentiable(values.outputs_of(func(*arguments)))
        )
    else:
        cotangents = values.as_tuple(grad_outputs)

    checked = [isinstance(x, Tensor) and x.requires_grad for x in arguments + cotangents]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        if any(isinstance(x, Dual) for x in args):  # differentiate by Tensors around the Duals
            args = tuple(
                wrap_new(x if isinstance(x, Dual) else x.array).requires_grad_() if c else x
                for x, c in zip(args, checked, strict=True)
            )
        args, vectors = args[: len(arguments)], args[len(arguments) :]
        outputs = values.differentiable(values.outputs_of(func(*args)))
        if not outputs:
            return ()
        grads = grad(outputs, values.checked(args), vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    try:
        return gradcheck(
            gradients,
            arguments + cotangents,
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


def _require(base: bool, base_name: str, option: bool, name: str) -> None:
    if option and not base:
        raise AssertionError(f"Setting {name}=True requires {base_name} to be True")


# -- the inputs to check


def _check_inputs(inputs: Sequence[Any]) -> None:
    checked = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for i, x in checked:
        double = getattr(x._elem.library.xp, "complex128" if x._elem.complex else "float64", None)
        if x.dtype != double:
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
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


@dataclass
class _Problem:
    """A function at a point, with the real or the imaginary part of complex outputs only.

    complexes  the numbers of outputs that are complex
    outputs    all outputs, real
    numbered   those that require grad, each with its number among all outputs
    checked    the inputs that require grad
    """

    func: Function
    inputs: tuple[Any, ...]
    part: str
    complexes: set[int]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    fast: bool

    def __post_init__(self) -> None:
        self.outputs = self.of(*self.inputs)
        self.numbered = [(k, t) for k, t in enumerate(self.outputs) if t.requires_grad]
        self.checked = values.checked(self.inputs)

    def of(self, *inputs: Any) -> list[Any]:
        """The outputs for these inputs."""
        return [
            getattr(t.__array_namespace__(), self.part)(t) if t._elem.complex else t
            for t in values.outputs_of(self.func(*inputs))
        ]

    def mismatch(
        self,
        i: int,
        j: int,
        numerical: Any,
        analytical: Any,
        forward: bool,
        projections: tuple[Any, Any] | None = None,
    ) -> Mismatch:
        """The error for two Jacobians of output i with respect to input j, or their projections."""
        number, out = self.numbered[i]
        prefix = ""
        if number in self.complexes:
            prefix = (
                f"While considering the {'imaginary' if self.part == 'imag' else 'real'} "
                "part of complex outputs only, "
            )
        head = (
            f"{prefix}Jacobian {'computed with forward mode ' * forward}mismatch for output "
            f"{i} with respect to input {j},\n"
        )
        text = "numerical:{!r}\nanalytical:{!r}\n".format(*(projections or (numerical, analytical)))
        if projections:
            text += SLOWLY.format(numerical, analytical, abs(numerical - analytical).max())
        worst = self.worst(numerical, analytical, self.checked[j], out)
        return Mismatch(head, text, worst, numerical, analytical)

    def worst(self, numerical: Any, analytical: Any, x: Tensor, out: Tensor) -> str:
        """The entry that differs most, with its place in the input and the output."""
        import numpy as np

        tolerance = self.atol + self.rtol * abs(numerical)
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


# -- derivatives by input: finite differences and tangents


_Direction = tuple[Any, Any, tuple[int, ...] | None]
"""A direction of an input: along `real`, and for a complex input along `1j * imaginary`, too.

The last entry is the index of the only element that moves, if one does.
"""


def _axes(x: Tensor) -> list[_Direction]:
    """The directions of each element of `x`."""
    import numpy as np

    places = np.ndindex(*x.shape)
    return [(e, e, place) for e, place in zip(values.basis(x), places, strict=True)]


def _jacobians(
    p: _Problem, x: Tensor, directions: Sequence[_Direction], forward: bool = False
) -> list[Any]:
    """The derivatives of every output along these directions of `x`, a row for each.

    They are differences, or tangents of forward mode. For a complex `x`, 1j times the derivative
    along `1j * imaginary` is added to that along `real`. None for an output that is not floating.
    """
    import numpy as np

    derivatives = _tangents if forward else _differences
    rows = []
    for real, imaginary, index in directions:
        row = derivatives(p, x, real, index)
        if x._elem.complex:
            across = derivatives(p, x, imaginary * 1j, index)
            row = [None if a is None else a + 1j * b for a, b in zip(row, across, strict=True)]
        rows.append(row)
    return [
        np.asarray([row[i] for row in rows]).reshape(len(rows), prod(t.shape))
        if t._elem.floating
        else None
        for i, t in enumerate(p.outputs)
    ]


def _differences(p: _Problem, x: Tensor, v: Any, index: tuple[int, ...] | None) -> list[Any]:
    """Central differences of every output, as vectors, for a step of `x` along `v`."""
    before, point, eps = x.array, values.numbers(x), p.eps
    try:
        x.data = values.like(x, point - v * eps)
        below = p.of(*p.inputs)
        low = [values.numbers(t) for t in below]
        x.data = values.like(x, point + v * eps)
        above = p.of(*p.inputs)
        high = [values.numbers(t) for t in above]
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
                    f"perturbed {'' if index is None else f'on index {index} '}by {eps}, but "
                    f"got: {what}s {of_a} and {of_b}."
                )
    return [
        ((b - a) / (2 * eps)).reshape(-1) if t._elem.floating else None
        for t, a, b in zip(above, low, high, strict=True)
    ]


def _tangents(p: _Problem, x: Tensor, v: Any, _: tuple[int, ...] | None) -> list[Any]:
    """The tangents of every output, as vectors, for the tangent `v` of `x`."""
    return [
        values.numbers(tangent).reshape(-1) if element_of(t).floating else None
        for t, tangent in _push(p.of, p.inputs, x, values.like(x, v))
    ]


# -- derivatives by output: backward passes

NONDETERMINISTIC = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient.The "
    "tolerance for nondeterminism was {}.\n"
    "\n"
    "If the function relies on operations whose result is not deterministic, pass "
    "nondet_tol=<tolerance>."
)


def _passes(p: _Problem, out: Tensor, vectors: Iterable[Any]) -> list[Any]:
    """The products of the vectors with the Jacobian of `out`: one matrix per input, as columns."""
    import numpy as np

    columns: list[list[Any]] = [[] for _ in p.checked]
    for v in vectors:
        grads = grad(out, p.checked, values.like(out, v), retain_graph=True, allow_unused=True)
        for column, g, x in zip(columns, grads, p.checked, strict=True):
            if g is not None and p.check_grad_dtypes and g.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            if g is not None and tuple(g.shape) != tuple(x.shape):
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(np.zeros(prod(x.shape)) if g is None else values.numbers(g).reshape(-1))
    return [
        np.asarray(column).reshape(len(column), prod(x.shape)).T
        for column, x in zip(columns, p.checked, strict=True)
    ]


# -- comparing whole Jacobians or, in fast mode, random projections, v @ J @ u


def _random_direction(t: Tensor, source: Random) -> Any:
    """Positive random numbers of norm 1, in the shape of `t`."""
    import numpy as np

    numbers = np.asarray([source.random() for _ in range(prod(t.shape))])
    return (numbers / np.sqrt((numbers**2).sum() or 1)).reshape(t.shape)


def _compare(p: _Problem, backward: bool, forward: bool) -> None:
    """Raise GradcheckError if gradients, or tangents, differ from finite differences."""
    import numpy as np

    directions: list[list[_Direction]]
    if p.fast:
        source = values.random_source()
        real = [_random_direction(x, source) for x in p.checked]
        imaginary = [_random_direction(x, source) if x._elem.complex else None for x in p.checked]
        directions = [[(u, w, None)] for u, w in zip(real, imaginary, strict=True)]
        vectors = [[_random_direction(t, source)] for _, t in p.numbered]
    else:
        directions = [_axes(x) for x in p.checked]
        vectors = [list(values.basis(t)) for _, t in p.numbered]
    numerical = [_jacobians(p, x, along) for x, along in zip(p.checked, directions, strict=True)]
    zero = p.nondet_tol if p.fast else 0
    if not p.numbered and any(
        n is not None and (abs(n) > zero).any() for row in numerical for n in row
    ):
        raise GradcheckError("Numerical gradient for function expected to be zero")

    def compare(i: int, j: int, analytical: Any, of_tangents: bool) -> None:
        (number, out), x, atol = p.numbered[i], p.checked[j], p.atol
        expected, got, projections = numerical[j][number], analytical, None
        if p.fast:
            (u, w, _), v = directions[j][0], vectors[i][0]
            expected = (expected @ v.reshape(-1))[0]
            if of_tangents:
                got = (analytical @ v.reshape(-1))[0]
            else:
                got = u.reshape(-1) @ analytical[:, 0].real
                if w is not None:
                    got = got + 1j * (w.reshape(-1) @ analytical[:, 0].imag)
            # Every element may differ by atol, so the projections may differ by the projection of
            # a matrix whose entries are atol.
            atol *= (u.sum() + (0 if w is None else w.sum())) * v.sum()
        if np.allclose(got, expected, rtol=p.rtol, atol=atol):
            return
        if p.fast:
            projections = expected.item(), got.item()
            axes = _axes(x)
            expected = _jacobians(p, x, axes)[number]
            if of_tangents:
                got = _jacobians(p, x, axes, True)[number]
            else:
                got = _passes(p, out, values.basis(out))[j]
        raise p.mismatch(i, j, expected, got, of_tangents, projections)

    for i, (_, out) in enumerate(p.numbered if backward else ()):
        products, again = (_passes(p, out, vectors[i]) for _ in range(2))
        for first, second in zip(products, again, strict=True):
            if (abs(first - second) > p.nondet_tol).any():
                raise GradcheckError(NONDETERMINISTIC.format(p.nondet_tol))
        for j, columns in enumerate(products):
            compare(i, j, columns, False)
    for j, x in enumerate(p.checked if forward else ()):
        tangents = _jacobians(p, x, directions[j], forward=True)
        for i, (number, _) in enumerate(p.numbered):
            compare(i, j, tangents[number], True)


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


# -- further properties of a backward pass


def _check_proportional(outputs: Sequence[Tensor], checked: Sequence[Tensor]) -> None:
    """Check that zero gradients of the outputs give zero gradients of the inputs.

    The gradients must have the dtype and the device of the inputs.
    """
    cotangents = [zeros(t, t.shape) for t in outputs]
    for g, x in zip(grad(outputs, checked, cotangents, allow_unused=True), checked, strict=True):
        if g is None:
            continue
        if not g._elem.library.xp.all(innermost(g) == 0):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, of_gradient, of_input in (
            ("type", g.dtype, x.dtype),
            ("device", g.device, x.device),
            ("size", tuple(g.shape), tuple(x.shape)),
        ):
            if of_gradient != of_input:
                raise GradcheckError(f"grad is incorrect {what}")


def _check_undefined(func: Function, inputs: Sequence[Any]) -> None:
    """Check that a missing gradient of an output has the effect of a zero gradient.

    First all gradients are missing, then each one alone.
    """

    def outputs() -> tuple[Any, ...]:
        return values.differentiable(values.outputs_of(func(*inputs)))

    targets: list[Any] = [x._node for x in values.checked(inputs)]
    count = len(outputs())
    for missing in (set(range(count)), *({i} for i in range(count if count > 1 else 0))):
        roots: dict[Node, Any] = {}
        grads: dict[Node, Any] = dict.fromkeys(targets)
        try:
            for i, t in enumerate(recorded := outputs()):
                node = t._node
                if i not in missing:
                    roots[node] = zeros(t, t.shape)
                elif isinstance(node, OutputNode) and isinstance(node.next, CustomNode):
                    # without a gradient only the rule of a Function runs
                    roots.setdefault(node)
            run_pass(list(roots.items()), Pass(recorded[0], False, False, grads))
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: a Function's "
                "backward, or a rule of several outputs, receives None for an output without a "
                "gradient. check_undefined_grad=False leaves this out."
            ) from error
        if any(
            g is not None and not element_of(g).library.xp.all(innermost(g) == 0)
            for g in grads.values()
        ):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero. check_undefined_grad=False leaves this out."
            )


# -- derivatives for several vectors at once: a batched pass must equal single ones


_BATCHED_GRADIENTS = """
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

_BATCHED_TANGENTS = """
gradcheck failed while testing batched gradient computation with forward-mode AD.

To leave this test out, call gradcheck with `check_batched_forward_grad=False`.

The function runs once, on Duals whose tangents each stand for a batch, as in
jacobian(vectorize=True, strategy="forward-mode"). Most often the jvp of a Function does what vmap
cannot: it asks for the value of a tangent, makes an array whose shape depends on one, or leaves the
library.
""".strip()


def _compare_batched_gradients(outputs: Sequence[Tensor], checked: Sequence[Tensor]) -> None:
    """Raise GradcheckError if a batched backward pass from an output differs from single ones."""
    source = values.random_source()
    for i, out in enumerate(outputs):

        def pulled(v: Any, batched: bool, out: Tensor = out) -> Any:
            return grad(
                out, checked, v, retain_graph=True, is_grads_batched=batched, materialize_grads=True
            )

        _compare_batch(out, source, pulled, _BATCHED_GRADIENTS, f"output {i} and input {{}}")


def _compare_batched_tangents(func: Function, inputs: Sequence[Any]) -> None:
    """Raise GradcheckError if a batch of tangents gives other results than single tangents."""
    source = values.random_source()
    for x in values.checked(inputs):

        def pushed(v: Any, batched: bool, x: Tensor = x) -> list[Any]:
            if not batched:
                return [t for _, t in _push(func, inputs, x, v)]
            run = Transformation("gradcheck")
            try:
                return [examples(t, run, 2) for _, t in _push(func, inputs, x, batch(v, run))]
            finally:
                run.finish()

        _compare_batch(x, source, pushed, _BATCHED_TANGENTS, "output {0} and input {0}")


def _push(func: Function, inputs: Sequence[Any], x: Tensor, tangent: Any) -> list[tuple[Any, Any]]:
    """The outputs of `func` and their tangents, if the input `x` has `tangent`."""
    run = Transformation("gradcheck")
    dual = Dual._make(x.array, tangent, run, run.own_level)
    arguments = [dual if y is x else y for y in inputs]
    pairs = run.call(
        lambda: [taken_apart(t, run) for t in values.outputs_of(func(*arguments))],
    )
    return [(y, zeros(y, y.shape) if t is None else t) for y, t in pairs]


def _compare_batch(
    like: Tensor,
    source: Random,
    derivatives: Callable[[Any, bool], Sequence[Any]],
    explanation: str,
    place: str,
) -> None:
    """Raise GradcheckError if derivatives along a batch of vectors differ from single ones.

    like         a Tensor of the shape of the vectors, which are drawn from `source`
    derivatives  takes a vector and False, or a batch of vectors and True
    place        names a derivative, by its number
    """
    import numpy as np

    vectors = [values.random_like(like, source).array for _ in range(2)]
    singles = [derivatives(v, False) for v in vectors]
    try:
        batched = derivatives(like._elem.library.xp.stack(vectors), True)
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{explanation}"
        ) from error
    for i, (derivative, *single) in enumerate(zip(batched, *singles, strict=True)):
        expected = np.stack([values.numbers(t) for t in single])
        got = np.broadcast_to(values.numbers(derivative), expected.shape)  # zeros have no batch
        if not np.allclose(got, expected):
            raise GradcheckError(
                f"For {place.format(i)}:\n"
                "\n"
                f"{explanation}\n"
                "\n"
                "Got:\n"
                f"{got!r}\n"
                "\n"
                "Expected:\n"
                f"{expected!r}"
            )
