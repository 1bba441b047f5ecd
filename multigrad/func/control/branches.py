"""cond and switch: one of several functions, chosen by a value.

If the value is known, only the chosen function is called. If the value differs between the examples
of a batch, all functions are called, and each example is taken from the result of its function. If
the value is unknown, because a compiler traces the program, the choice is one operation with a
derivative of its own, which the library carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import observe, tree
from ...core.element import SCALARS, Library, is_array
from ...core.tensor import element_of
from ...custom.definition import new_ctx_class
from ...layers.transforming import constants_beside
from ...tracebacks import entry
from ..reverse import Function, check_function
from ..variables import Args, R
from .arguments import (
    TreeArgument,
    control_of,
    described,
    differs,
    finished,
    form,
    integer,
    known,
    library_of,
    number_as_array,
    place,
)
from .bodies import Body, Pulled, cut, flagged, spread, there
from .captured import Traced, applied
from .looping import Counts, Looped, apply, recorded_by, unrecorded


@entry
def cond(
    pred: Any, true_fun: Callable[[*Args], R], false_fun: Callable[[*Args], R], *operands: *Args
) -> R:
    """Return `true_fun(*operands)` if `pred` is true, else `false_fun(*operands)`.

    pred      a bool, or an array of shape (): of booleans, or of numbers, which are true unless
              they are 0
    operands  arrays, Tensors, or nested structures of these

    Raw arrays give raw arrays, unless a captured Tensor requires grad. Tensors give Tensors. The
    functions receive Tensors.

    If `pred` is known, only one function is called. Under vmap, if `pred` differs between examples,
    both functions are called on all examples, and `where` selects the result of each example. So,
    as with `where`, a gradient may be nan if the other function is not finite. Under jax.jit, cond
    calls jax.lax.cond. In both cases the functions must return the same structure, shapes and
    dtypes (TypeError), and must not write to their arguments (GradientError).

    Corresponds to jax.lax.cond. It is differentiable in both modes, together with all arrays that
    the functions capture, at any nesting of transformations.
    """
    index = _predicate(pred)
    out: R = _chosen("cond", index, [false_fun, true_fun], ["false_fun", "true_fun"], operands)
    return out


@entry
def switch(index: Any, branches: Sequence[Callable[[*Args], R]], *operands: *Args) -> R:
    """Return `branches[index](*operands)`.

    An index out of bounds selects the first or the last function.

    index     an int, or an integer array of shape ()
    branches  functions, at least one
    operands  arrays, Tensors, or nested structures of these

    The rest is as for `func.cond`. Corresponds to jax.lax.switch.
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise ValueError(
            "switch: branches must be a list or a tuple of at least one function, not "
            f"{tree.shown(branches)}"
        )
    index = integer(index, "switch: index")
    names = [f"branch {i}" for i in range(len(branches))]
    out: R = _chosen("switch", index, list(branches), names, operands)
    return out


def _predicate(pred: Any) -> Any:
    """The predicate as an index: an int, or a boolean array."""
    pred = observe.passed(pred)
    if type(pred) in SCALARS:
        return int(bool(pred))
    if not is_array(pred) or tuple(pred.shape):
        raise TypeError(f"cond: pred must be a bool or an array of shape (), not {described(pred)}")
    return pred if element_of(pred).bool else pred != 0


def _chosen(
    name: str, index: Any, functions: list[Function], names: list[str], operands: tuple[Any, ...]
) -> Any:
    for what, function in zip(names, functions, strict=True):
        check_function(function, name, what)
    leaves = tree.leaves(operands)
    raw = not tree.has_layer(leaves if any(map(is_array, leaves)) else [index])
    if type(index) is int or known(index):
        at = index if type(index) is int else bool(index) if element_of(index).bool else int(index)
        arguments = constants_beside(x for x in leaves if is_array(x))(operands)
        output = functions[min(max(at, 0), len(functions) - 1)](*arguments)
    else:
        library = library_of(name, [index], leaves)
        args = TreeArgument(operands)
        traced = [
            Traced(f"{what} of {name}", function, args.structure)
            for what, function in zip(names, functions, strict=True)
        ]
        structure, results = _results(name, traced, args, library)
        if differs(index) or control_of(library) is None:
            outs = _selected(library, index, results)
        else:
            outs = _staged(library, index, traced, args, results[0])
        output = tree.built(structure, outs)
    return tree.replaced(finished(raw), output)


def _results(
    name: str, traced: Sequence[Traced], args: TreeArgument, library: Library
) -> tuple[tree.Structure, list[list[Any]]]:
    """The structure of the results of several functions, and their leaves, which must match."""
    outputs = [function.discover(args.leaves) for function in traced]
    first = outputs[0][1]
    rows: list[list[Any]] = []
    for (leaves, structure), function in zip(outputs, traced, strict=True):
        try:
            leaves = tree.fitted(first, tree.built(structure, leaves))
        except ValueError as error:
            raise TypeError(f"{_differs(name, function, traced[0])}: {error}") from None
        for i, x in enumerate(leaves):
            if not is_array(x) and type(x) not in SCALARS:
                raise TypeError(
                    f"{name}: {function.name} must return arrays, but the leaf{place(first, i)} "
                    f"is a {type(x).__name__}"
                )
        rows.append(leaves)
    by_leaf = [_as_arrays(column, library) for column in zip(*rows, strict=True)]
    results = list(map(list, zip(*by_leaf, strict=True))) or rows
    for leaves, function in zip(results, traced, strict=True):
        for i, (x, y) in enumerate(zip(results[0], leaves, strict=True)):
            if tuple(x.shape) != tuple(y.shape) or element_of(x).dtype != element_of(y).dtype:
                raise TypeError(
                    f"{_differs(name, function, traced[0])}: the leaf{place(first, i)} is of "
                    f"{form(y)}, and not of {form(x)}. Convert it with astype or reshape"
                )
    return first, results


def _differs(name: str, function: Traced, first: Traced) -> str:
    return (
        f"{name}: all functions must return the same, but {function.name} differs from {first.name}"
    )


def _as_arrays(column: Sequence[Any], library: Library) -> list[Any]:
    """The results of several functions in one place, with arrays in place of numbers.

    The arrays have the dtype of the other results, if the number can have it.
    """
    like = next((x for x in column if is_array(x)), None)
    if like is None:
        like = library.xp.asarray(column[0] if bool in map(type, column) else sum(column))
    return [number_as_array(x, library, like) if type(x) in SCALARS else x for x in column]


def _selected(library: Library, index: Any, results: list[list[Any]]) -> list[Any]:
    """The result of the chosen function for each example, from the results of all functions."""
    selected = results[0]
    for i, leaves in enumerate(results[1:], 1):
        later = index if element_of(index).bool else index >= i
        selected = [library.bound.where(later, x, y) for x, y in zip(leaves, selected, strict=True)]
    return selected


def _staged(
    library: Library, index: Any, traced: list[Traced], args: TreeArgument, like: list[Any]
) -> list[Any]:
    """The result of the library's own choice, whose arrays have the form of `like`.

    Leaves of the operands that are not arrays are the same for all functions.
    """
    places = [i for i, x in enumerate(args.leaves) if is_array(x)]

    def body_of(function: Traced, start: int) -> Body:
        def body(consts: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
            leaves = list(args.leaves)
            for i, x in zip(places, arrays, strict=True):
                leaves[i] = x
            outs, _ = function(consts[start : start + len(function.consts)], leaves)
            return [
                library.xp.asarray(x, dtype=y.dtype) if type(x) in SCALARS else x
                for x, y in zip(outs, like, strict=True)
            ]

        return body

    def made() -> tuple[Selection, list[Any]]:
        consts = [index]
        bodies = []
        for function in traced:
            bodies.append(body_of(function, len(consts)))
            consts += function.consts
        counts = Counts(len(consts), 0, len(places), len(like))
        return Selection(bodies, counts), [*consts, *[args.leaves[i] for i in places]]

    return applied(traced, made)


class Selection(Looped):
    """The choice of a body by an index whose value is unknown.

    The index is the first of the constants. It is the same for all examples of any batch.
    """

    __name__ = "switch"
    _backward_cls = new_ctx_class("switch")

    def __init__(self, bodies: Sequence[Body], counts: Counts) -> None:
        self.bodies, self.counts = bodies, counts

    def derived(self, step: object, bodies: list[Body], counts: Counts) -> Selection:
        return Selection(bodies, counts)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        super().setup_context(ctx, inputs, output)
        ctx.save_for_backward(*inputs)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        need, level = ctx.needs_input_grad, recorded_by(ctx)
        have = [g is not None for g in grads]

        def pulled(body: Body) -> Body:
            def back(consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
                args, g = cut(args, self.counts.xs)
                gradients = Pulled(body, consts, args, need, level).gradients(spread(g, have))
                return there(flagged(gradients, [*consts, *args], need))

            return back

        cotangents = there(grads)
        counts = Counts(self.counts.consts, 0, self.counts.xs + len(cotangents), sum(need))
        rule = Selection([pulled(body) for body in self.bodies], counts)
        return tuple(spread(apply(rule, [*map(unrecorded, ctx.saved_tensors), *cotangents]), need))
