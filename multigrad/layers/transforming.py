"""Shared by the transformations: values enter a level and leave it; vjp and jvp of functions.

A value enters as an input (`input_of`, for forward mode a Dual). The results of the function are
checked when the level is over. `vjp` and `jvp` take lists of arrays only; `multigrad.func` has the
same for pytrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import tree
from ..backward.gradients import check_gradient, owned
from ..backward.run import run_pass
from ..core.element import SCALARS, is_array
from ..core.graph import AccumulateGrad
from ..core.level import Layer, Transformation, outside, running
from ..core.passes import Pass
from ..core.tensor import Tensor, element_of, strip, wrap, wrap_in, wrap_new
from ..observe import passed
from .dual import Dual, check_tangent

Listed = Callable[[list[Any]], Iterable[Any]]
"""A function of a list of arrays that returns arrays."""


def vjp(
    function: Listed, values: Sequence[Any], run: Transformation
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Call `function` on inputs at the level of `run`, which is new.

    Returns its results, and a function that takes their cotangents and returns the gradients of
    `values`, the last one first. Only outputs that depend on `values` need a cotangent.
    """
    inputs = [input_of(x, run) for x in values]
    outs = list(run.call(function, inputs))

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        seeds = [
            check_gradient(t, g, i) if depends_on(t, run) else None
            for i, (t, g) in enumerate(zip(outs, cotangents, strict=True))
        ]
        return gradients_of(outs, seeds, inputs, run, keep=True)

    return outs, pullback


def jvp(
    function: Listed, values: Sequence[Any], tangents: Sequence[Any], run: Transformation
) -> tuple[list[Any], list[Any]]:
    """Call `function` on Duals at the level of `run`, which is new; a tangent of None is zero.

    Returns the inner values of its results, and their tangents, None for zero.
    """
    level, name = run.own_level, run.name

    def called() -> tuple[list[Any], list[Any]]:
        duals = []
        for x, t in zip(values, tangents, strict=True):
            x = checked_input(x, name)
            duals.append(
                Dual._make(x, None if t is None else check_tangent(x, t, level, name), run, level)
            )
        outs: list[Any] = []
        moved: list[Any] = []
        for x in function(duals):
            if not is_array(x):
                raise not_array(name, x)
            own = isinstance(x, Dual) and x._elem.run is run
            if own:
                x._check()
            outs.append(x._array if own else x)
            moved.append(x._tangent if own else None)
            if isinstance(moved[-1], Layer):
                moved[-1]._check()  # raises if it is not known
        return outs, moved

    return run.call(called)


def not_array(name: str, x: Any) -> TypeError:
    """The error for a result `x` that is not an array, of a function that `name` transforms."""
    return TypeError(
        f"{name}: the function must return arrays, or nested dictionaries, lists and tuples of "
        f"arrays, but it returned {type(x).__name__}"
    )


def within(outs: Iterable[Any], run: Transformation) -> list[Any]:
    """The results of a function in the form that the transformation differentiates.

    `vjp` and `jvp` return them in this form.
    """
    values = []
    for x in outs:
        if isinstance(x, Layer):
            x._check()
        values.append(value_at(x, run))
    return values


def checked_input(x: Any, name: str) -> Any:
    """An argument to differentiate with respect to; raises if that is not possible."""
    x = passed(x)
    if type(x) in SCALARS:
        raise TypeError(
            f"{name}: cannot differentiate with respect to a Python {type(x).__name__}; pass an "
            f"array, as np.asarray({x if isinstance(x, complex) else float(x)!r})"
        )
    if not is_array(x):
        cure = tree.as_values(x) or (
            "multigrad.func.register_pytree makes a class one; a field of a dataclass that is "
            "not an array can be marked by metadata={'static': True}."
        )
        raise TypeError(
            f"{name}: cannot differentiate with respect to a {type(x).__qualname__}: it is "
            f"neither an array nor a container that is known. {cure}"
        )
    elem = element_of(x)
    if not elem.floating:
        raise TypeError(
            f"{name}: cannot differentiate with respect to an array of dtype {elem.dtype}; only "
            "floating dtypes have gradients. Convert it: xp.astype(x, xp.float64)."
        )
    return x._frozen() if isinstance(x, Layer) else x


def input_of(x: Any, run: Transformation) -> Tensor:
    t = wrap_in(run, run.own_level, checked_input(x, run.name))
    run.inputs.append(t._become_leaf())
    return t


def value_at(t: Any, run: Transformation) -> Any:
    """The inner value of a Tensor created inside the transformation.

    The transformation itself differentiates that value.
    """
    if not isinstance(t, Tensor) or t._elem.run is not run or t._elem.level != run.tensor_level:
        return t
    t._check()
    return t._array


def depends_on(t: Any, run: Transformation) -> bool:
    """Whether `t` depends on the inputs of this transformation."""
    if not isinstance(t, Tensor) or t._elem.run is not run:
        return False
    t._check()
    return t._node is not None


def constants_beside(transformed: Iterable[Any]) -> Callable[[Any], Any]:
    """What prepares the arguments that are not transformed, of a function of several arrays.

    The function needs one namespace for all of its arrays, so an array becomes a Tensor on its
    memory, which has the namespace of the layers beside it: one Tensor, even if it is several
    arguments. A container of arrays is copied, unless its class does not allow that. Scalars,
    subclasses of the library's arrays, arrays of other libraries and arrays of dtypes outside of
    the standard are passed unchanged, and so are all arguments if no array is transformed.
    """
    libraries = {element_of(x).library for x in transformed}
    made: dict[int, Tensor] = {}

    def constant(x: Any) -> Any:
        if id(x) not in made:
            if isinstance(x, Layer) or not any(library.has(x) for library in libraries):
                return x
            made[id(x)] = wrap(x)
        return made[id(x)]

    return lambda argument: tree.mapped(constant, argument) if libraries else argument


def left_of(t: Any, run: Transformation) -> Any:
    """The value that remains when the transformation is over."""
    while isinstance(t, Layer) and getattr(t, "_run", None) is run:
        t = t._array
    return t


def released(t: Any, run: Transformation) -> Any:
    """An output as `left_of` returns it, on memory that the graph of `run` does not use.

    This graph remains when the transformation is over, and the program may write to the output.
    """
    holder = None
    while isinstance(t, Layer) and getattr(t, "_run", None) is run:
        holder, t = t, t._array
    if holder is None or type(getattr(holder, "_node", None)) is AccumulateGrad:
        return t  # an argument, or what the function has from outside
    if not isinstance(t, Layer):
        del t
        library = element_of(holder).library
        alone = library.unshared(library.xp, [holder._array])
        return holder._array if alone else _copied(holder._array)
    if type(getattr(t, "_node", None)) is AccumulateGrad:
        return t
    if t._elem.run is not None:
        return t._frozen()
    own = wrap(_copied(t._array))
    own._node = t._node  # type: ignore[attr-defined]
    return own


def _copied(x: Any) -> Any:
    """A copy of a raw array, or `x` itself if it is immutable."""
    library = element_of(x).library
    if isinstance(x, library.fixed):
        return x
    return library.xp.asarray(x, copy=True)


def gradients_of(
    outputs: list[Any], seeds: list[Any], inputs: list[Tensor], run: Transformation, keep: bool
) -> list[Any]:
    """The gradients of the inputs, the last one first."""
    grads = reached(outputs, seeds, inputs, run, keep)
    return [zeros_like(t._array) if g is None else g for t, g in zip(inputs, grads, strict=True)][
        ::-1
    ]


def reached(
    outputs: list[Any], seeds: list[Any], inputs: list[Tensor], run: Transformation, keep: bool
) -> list[Any]:
    """The gradients of the inputs, None for those that the pass did not reach."""
    roots = [
        (t._node, left_of(g, run)) for t, g in zip(outputs, seeds, strict=True) if g is not None
    ]
    targets: dict[Any, Any] = {t._leaf: None for t in inputs}  # whatever happened to their flag
    if roots:
        run_pass(roots, Pass(inputs[0], keep, False, targets, every=run.leaves == len(targets)))
    return [targets[t._leaf] for t in inputs]


def namespace(*arrays: Any) -> Any:
    """The namespace for computations with arrays of one library, raw or layers."""
    library = element_of(arrays[0]).library
    for x in arrays:
        if isinstance(x, Layer):
            return library.bound
    return library.xp


def zeros_like(x: Any) -> Any:
    """A zero derivative like `x`."""
    with outside():
        return namespace(x).zeros_like(x)


def returned(x: Any) -> Any:
    """A result of a transformed function that was called with layers.

    If it was called with raw arrays, `strip` is applied to this result, which makes it raw, unless
    a captured Tensor requires grad.
    """
    run = running()
    if run is not None and run.outcome is not None:
        x = run.outcome(x)
    return x if isinstance(x, Layer) or not is_array(x) else wrap_new(x)


def derivative(values: list[Any], like: Any, raw: bool) -> Any:
    """Remove the last of `values`, and return it on memory that nothing else shares.

    The value is a derivative of `like`, or with respect to `like`.
    """
    if not raw:
        return returned(owned(values, like))
    values[-1] = strip(values[-1])
    return strip(owned(values, like))
