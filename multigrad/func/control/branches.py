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
from ...core.level import Layer
from ...core.tensor import element_of
from ...custom.definition import Applied, new_ctx_class
from ...custom.function import Application
from ...layers.batched import Batched
from ...layers.constants import Constants
from ...layers.dual import Dual
from ...tracebacks import entry
from ..variables import Args, R
from .arguments import TreeArgument, finished, form, goes_to, library_of
from .bodies import (
    Body,
    Pulled,
    cut,
    filled,
    of_batch,
    pushed,
    repeated,
    spread,
    still,
    there,
    zeros,
)
from .captured import Late, Traced
from .looping import (
    Looped,
    apply,
    batched,
    batches_at,
    dual,
    inside,
    recorded_by,
    tangents_at,
    unrecorded,
)
from .scanning import doubled, halved
from .unknown import differs, known

Function = Callable[..., Any]


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
    index = observe.stand_in(index)
    if type(index) is not int and (
        not is_array(index)
        or tuple(index.shape)
        or element_of(index).floating
        or element_of(index).bool
    ):
        told = f"an array of {form(index)}" if is_array(index) else f"a {type(index).__name__}"
        raise TypeError(f"switch: index must be an int or an integer array of shape (), not {told}")
    out: R = _chosen(
        "switch", index, list(branches), [f"branch {i}" for i in range(len(branches))], operands
    )
    return out


def _predicate(pred: Any) -> Any:
    """The predicate as an index: an int, or a boolean array."""
    pred = observe.stand_in(pred)
    if type(pred) in SCALARS:
        return int(bool(pred))
    if not is_array(pred):
        raise TypeError(
            f"cond: pred must be a bool or an array of shape (), not a {type(pred).__name__}"
        )
    if tuple(pred.shape):
        raise TypeError(
            f"cond: pred must be a bool or an array of shape (), not an array of {form(pred)}"
        )
    return pred if element_of(pred).bool else pred != 0


def _chosen(
    name: str, index: Any, functions: list[Function], names: list[str], operands: tuple[Any, ...]
) -> Any:
    for what, function in zip(names, functions, strict=True):
        if not callable(function):
            raise TypeError(f"{name}: {what} must be a function, not {type(function).__name__}")
    leaves = tree.leaves(operands)
    raw = not any(isinstance(x, Layer) for x in (leaves if any(map(is_array, leaves)) else [index]))
    given = Constants(x for x in leaves if is_array(x)).of(operands)
    if type(index) is int or known(index):
        at = index if type(index) is int else bool(index) if element_of(index).bool else int(index)
        output = functions[min(max(at, 0), len(functions) - 1)](*given)
    else:
        library = library_of(name, [index], leaves)
        args = TreeArgument(operands)
        traced = [
            Traced(f"{what} of {name}", function, args.structure)
            for what, function in zip(names, functions, strict=True)
        ]
        control = library.backend.kernel("control")(library.xp, ())
        output = (
            _selected(library, index, traced, args, name)
            if differs(index) or control is None
            else _staged(library, index, traced, args, name)
        )
    return tree.replaced(finished(raw), output)


def _same(
    outputs: Sequence[Any], traced: Sequence[Traced], name: str, library: Library
) -> tuple[tree.Structure, list[list[Any]]]:
    """The structure of the results of several functions, and their leaves, which must match."""
    first = TreeArgument(outputs[0])
    rows: list[list[Any]] = []
    for output, function in zip(outputs, traced, strict=True):
        try:
            leaves = tree.fitted(first.structure, output)
        except ValueError as error:
            raise TypeError(f"{_differs(name, function, traced[0])}: {error}") from None
        for i, x in enumerate(leaves):
            if not is_array(x) and type(x) not in SCALARS:
                raise TypeError(
                    f"{name}: {function.name} must return arrays, but the leaf{first.at(i)} is "
                    f"a {type(x).__name__}"
                )
        rows.append(leaves)
    results = [
        list(row)
        for row in zip(
            *[_as_arrays(column, library) for column in zip(*rows, strict=True)], strict=True
        )
    ] or rows
    for leaves, function in zip(results, traced, strict=True):
        for i, (x, y) in enumerate(zip(results[0], leaves, strict=True)):
            if tuple(x.shape) != tuple(y.shape) or element_of(x).dtype != element_of(y).dtype:
                raise TypeError(
                    f"{_differs(name, function, traced[0])}: the leaf{first.at(i)} is of "
                    f"{form(y)}, and not of {form(x)}. Convert it with astype or reshape"
                )
    return first.structure, results


def _differs(name: str, function: Traced, first: Traced) -> str:
    return (
        f"{name}: all functions must return the same, but {function.name} differs from {first.name}"
    )


def _as_arrays(column: Sequence[Any], library: Library) -> list[Any]:
    """The results of several functions in one place, with arrays in place of numbers.

    The arrays have the dtype of the other results, if the number can have it.
    """
    numbers = [x for x in column if type(x) in SCALARS]
    like = next((x for x in column if is_array(x)), None)
    if like is None:
        like = library.xp.asarray(sum(numbers) if bool not in map(type, numbers) else numbers[0])

    def made(x: Any) -> Any:
        return (
            library.xp.asarray(x, dtype=like.dtype)
            if goes_to(x, element_of(like))
            else library.xp.asarray(x)
        )

    return [made(x) if type(x) in SCALARS else x for x in column]


def _selected(
    library: Library, index: Any, traced: list[Traced], args: TreeArgument, name: str
) -> Any:
    """The result of the chosen function for each example, from the results of all functions."""
    structure, results = _same([f.discover(args.leaves) for f in traced], traced, name, library)
    chosen = results[0] if not element_of(index).bool else None
    if chosen is None:
        return tree.built(
            structure, [library.bound.where(index, x, y) for y, x in zip(*results, strict=True)]
        )
    for i, leaves in enumerate(results[1:], 1):
        chosen = [
            library.bound.where(index >= i, x, y) for x, y in zip(leaves, chosen, strict=True)
        ]
    return tree.built(structure, chosen)


def _staged(
    library: Library, index: Any, traced: list[Traced], args: TreeArgument, name: str
) -> Any:
    """The result of the library's own choice.

    Leaves of the operands that are not arrays are the same for all functions.
    """
    structure, results = _same([f.discover(args.leaves) for f in traced], traced, name, library)
    places = [i for i, x in enumerate(args.leaves) if is_array(x)]

    def body_of(function: Traced, number: int) -> Body:
        def body(consts: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
            start = sum(len(f.consts) for f in traced[:number])
            leaves = list(args.leaves)
            for i, x in zip(places, arrays, strict=True):
                leaves[i] = x
            output = function(consts[start : start + len(function.consts)], leaves)
            outs = zip(tree.leaves(output), results[0], strict=True)
            return [
                library.xp.asarray(x, dtype=like.dtype) if type(x) in SCALARS else x
                for x, like in outs
            ]

        return body

    while True:
        consts = [x for f in traced for x in f.consts]
        rule = Selection(
            [body_of(f, i) for i, f in enumerate(traced)], len(consts), len(results[0])
        )
        try:
            return tree.built(
                structure, apply(rule, [index, *consts, *[args.leaves[i] for i in places]])
            )
        except Late as late:
            late.traced.late(late)


class Selection(Looped):
    """The choice of a body by an index whose value is unknown.

    The index is the same for all examples of any batch.
    """

    __name__ = "switch"
    _backward_cls = new_ctx_class("switch")

    def __init__(self, bodies: Sequence[Body], consts: int, outs: int) -> None:
        self.bodies, self.consts, self.outs = bodies, consts, outs

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        super().setup_context(ctx, inputs, output)
        ctx.save_for_backward(*inputs)

    def run(self, flat: list[Any]) -> list[Any]:
        # imported late, since it needs multigrad.extend
        from . import stepping

        return stepping.switch(self, flat[0], *cut(flat[1:], self.consts))

    def at_dual(self, application: Application, values: Sequence[Any], top: Dual) -> Applied:
        (index, *inner), (_, *tangents) = tangents_at(values, top)
        consts, args = cut(inner, self.consts)
        moving = cut([t is not None for t in tangents], self.consts)
        out = [False] * self.outs
        for body in self.bodies:
            moved_out = pushed(body, still(consts), still(args), still(tangents))[1]
            out = [a or t is not None for a, t in zip(out, moved_out, strict=True)]

        def moved(body: Body) -> Body:
            def both(consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
                pairs = halved(consts, moving[0]), halved(args, moving[1])
                outs, moved_out = pushed(
                    body, pairs[0][0], pairs[1][0], [*pairs[0][1], *pairs[1][1]]
                )
                return doubled(
                    outs,
                    [
                        (zeros(x) if t is None else t) if flag else None
                        for x, t, flag in zip(outs, moved_out, out, strict=True)
                    ],
                )

            return both

        rule = Selection(
            [moved(body) for body in self.bodies],
            self.consts + sum(moving[0]),
            self.outs + sum(out),
        )
        t_consts, t_args = cut(tangents, self.consts)
        outs = inside(
            application, rule, [index, *doubled(consts, t_consts), *doubled(args, t_args)]
        )
        return Applied(
            tuple([dual(x, t, top) for x, t in zip(*halved(outs, out), strict=True)]), None
        )

    def at_batch(self, application: Application, values: Sequence[Any], top: Batched) -> Applied:
        (index, *inner), (_, *own) = batches_at(values, top)
        size = top._array.shape[0]
        consts, args = cut(inner, self.consts)
        out = [False] * self.outs
        for body in self.bodies:
            out = [
                a or b
                for a, b in zip(
                    out, of_batch(body, still(consts), still(args), own)[1], strict=True
                )
            ]

        def of_all(body: Body) -> Body:
            def called(consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
                outs, mine_out = of_batch(body, consts, args, own)
                return [
                    repeated(x, mine, size) if flag else x
                    for x, mine, flag in zip(outs, mine_out, out, strict=True)
                ]

            return called

        outs = inside(
            application,
            Selection([of_all(body) for body in self.bodies], self.consts, self.outs),
            [index, *inner],
        )
        return Applied(
            tuple([batched(x, flag, top) for x, flag in zip(outs, out, strict=True)]), None
        )

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        (index, *inner), (_, *need) = map(unrecorded, ctx.saved_tensors), ctx.needs_input_grad
        given = [g is not None for g in grads]
        n, level = len(inner) - self.consts, recorded_by(ctx)

        def pulled(body: Body) -> Body:
            def back(consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
                args, g = cut(args, n)
                gradients = Pulled(body, consts, args, need, level).gradients(spread(g, given))
                values = [x for x, want in zip([*consts, *args], need, strict=True) if want]
                return filled([t for t, want in zip(gradients, need, strict=True) if want], values)

            return back

        outs = apply(
            Selection([pulled(body) for body in self.bodies], self.consts, sum(need)),
            [index, *inner, *there(grads)],
        )
        return (None, *spread(outs, need))
