"""Forward-mode transformations of functions: jvp, hvp, linearize.

The function receives its arguments as Duals of a level of their own. So transformations nest
without confusing each other's derivatives: over raw arrays, under `jax.jit`, and inside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import tree
from ..core.element import is_array
from ..core.level import Transformation
from ..core.tensor import element_of, strip
from ..errors import GradientError
from ..layers import transforming
from ..layers.dual import check_tangent
from ..layers.transforming import derivative, returned, zeros_like
from ..tracebacks import entry, result_of
from .reverse import Function, _call, _outside, check_function, value_and_grad, vjp
from .variables import Args, R


@entry
def jvp(
    function: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the output of `function` at `primals`, and its derivative along `tangents`.

    primals   a tuple of the positional arguments: arrays, Tensors, or pytrees of these (see
              multigrad.tree), of floating dtypes. If `tangents` is an array, the array that is the
              only argument
    tangents  of the same structure, shapes and kinds
    strict    raise GradientError if an output does not depend on the primals; without strict, its
              tangent is zero
    has_aux   `function` returns (output, aux), and aux is returned as a third value

    Returns (output, tangent), both with the structure of the output. The tangents have its shapes
    and dtypes. Corresponds to torch.func.jvp.
    """
    check_function(function, "jvp")
    if is_array(primals) and is_array(tangents):
        primals, tangents = (primals,), (tangents,)
    if not isinstance(primals, tuple):
        raise not_tuples("jvp", "tuple", primals, tangents)
    return jvp_as("jvp", function, primals, tangents, strict, has_aux)


def not_tuples(name: str, kind: str, primals: Any, tangents: Any) -> TypeError:
    """The error at primals that are neither a tuple nor, as the tangents, an array.

    kind  which tuples are allowed
    """
    if is_array(primals):
        made = "" if isinstance(tangents, tuple) else "; np.asarray(v) makes one"
        return TypeError(
            f"{name}: primals is an array, so tangents must be an array too, not "
            f"{tree.shown(tangents)}{made}. With tuples, write {name}(f, (x,), (v,))."
        )
    return TypeError(
        f"{name}: primals must be a {kind}, so that function(*primals) is a call, or the array "
        f"that is the only argument, not {tree.shown(primals)}. Write {name}(f, (x,), (v,))."
    )


def jvp_as(
    name: str,
    function: Function,
    primals: tuple[Any, ...],
    tangents: Any,
    strict: bool,
    has_aux: bool,
) -> tuple[Any, ...]:
    """`jvp` of a tuple of primals, for the function `name`, which its errors name."""
    try:
        seeds = tree.fitted(primals, tangents)
    except ValueError as error:
        raise ValueError(f"{name}: tangents must have the structure of primals: {error}") from None
    raw = not (tree.has_layer(primals) or tree.has_layer(seeds))
    output, outs, moved, aux = _push(
        function, primals, {}, range(len(primals)), seeds, has_aux, name, raw
    )
    if strict and any(t is None for t in moved):
        raise GradientError(
            f"{name}: with strict=True every output must depend on the primals, but one does not"
        )
    tangents_out = [
        zeros_like(outs[i]) if moved[i] is None else moved[i] for i in reversed(range(len(outs)))
    ]
    del moved, seeds
    tangent = tree.replaced(lambda x: derivative(tangents_out, x, raw), output)
    return (output, tangent, aux) if has_aux else (output, tangent)


def _push(
    function: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    chosen: Sequence[int],
    tangents: Sequence[Any],
    has_aux: bool,
    name: str,
    raw: bool,
) -> tuple[Any, list[Any], list[Any], Any]:
    """Call `function` on Duals with these tangents.

    There is one tangent for each leaf of the chosen arguments, with None for zero. Returns the
    output in its final form, its leaves one level below, their tangents (None for zero), and aux.
    """
    run = Transformation(name)
    output = aux = None

    def listed(duals: list[Any]) -> Iterable[Any]:
        nonlocal output, aux
        values = iter(duals)
        inputs = [tree.filled(a, values) if i in chosen else a for i, a in enumerate(args)]
        output, aux = _call(function, inputs, kwargs, has_aux, name, run)
        return tree.leaves(output)

    values = [x for i, a in enumerate(args) if i in chosen for x in tree.leaves(a)]
    outs, moved = transforming.jvp(listed, values, tangents, run)
    finish = strip if raw else returned
    return (
        tree.filled(output, map(finish, outs)),
        outs,
        moved,
        _outside(aux, run, raw) if has_aux else None,
    )


@entry
def hvp(
    function: Function, primals: Any, tangents: Any, *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the output of `function` and the product of its Hessian with `tangents`.

    The product is the derivative of the gradient along `tangents`. The output must be one real
    scalar.

    primals   a tuple of the positional arguments: arrays, Tensors or pytrees of these, of floating
              dtypes. For a function of one array also that array itself; `tangents` is then an
              array, too
    tangents  of the same structure, shapes and kinds
    has_aux   `function` returns (output, aux), and aux is returned as a third value

    Returns (output, product). The product has the structure of `primals`: a tuple as well, or an
    array. `function` is called once, in forward mode over reverse mode. The cost in time and memory
    is about that of two gradients, for any number of variables. Raw arrays give raw arrays, Tensors
    give Tensors. Corresponds to autograd.functional.hvp, which uses two passes of reverse mode.
    """
    check_function(function, "hvp")
    if is_array(primals) and is_array(tangents):
        of_tuples: Function = hvp
        value, (product,), *aux = of_tuples(function, (primals,), (tangents,), has_aux=has_aux)
        return (value, product, *aux)
    if not isinstance(primals, tuple) or not primals:
        raise not_tuples("hvp", "tuple of at least one argument", primals, tangents)
    differentiated = value_and_grad(function, tuple(range(len(primals))), has_aux)

    def gradient(*args: Any) -> tuple[Any, Any]:
        value, grads = differentiated(*args)
        return grads, value

    _, product, value = jvp_as("hvp", gradient, primals, tangents, False, True)
    return (value[0], product, value[1]) if has_aux else (value, product)


@entry
def linearize(function: Callable[[*Args], R], *primals: *Args) -> tuple[R, Callable[[*Args], R]]:
    """Run `function` once, and return its output with a function that maps tangents of `primals`.

    Returns (output, pushforward): `pushforward(*tangents)` takes the structure of `primals` and
    returns the tangents of the output, in its structure. It may be called several times, and does
    not call `function` again. The recording of `function` stays in memory meanwhile. Corresponds to
    torch.func.linearize.
    """
    check_function(function, "linearize")
    primals = tuple(tree.replaced(lambda x: x, p) for p in primals)
    output, pullback = vjp(function, *primals)
    outs = tree.leaves(output)
    smooth = [i for i, x in enumerate(outs) if element_of(x).floating]

    def transposed(cotangents: list[Any]) -> Any:
        seeds = dict(zip(smooth, cotangents, strict=True))
        return pullback(tree.filled(output, iter([seeds.get(i, x) for i, x in enumerate(outs)])))

    # The pullback is linear in the cotangents, so its own pullback at any point is the pushforward.
    _, transpose = vjp(transposed, [zeros_like(outs[i]) for i in smooth])

    @result_of("linearize")
    def pushforward(*tangents: *Args) -> R:
        try:
            matched = tree.fitted(primals, tangents)
        except ValueError as error:
            raise ValueError(
                "the pushforward of linearize takes tangents with the structure of the "
                f"primals: {error}"
            ) from None
        checked = [
            check_tangent(x, t, _ANY, "linearize")
            for x, t in zip(tree.leaves(primals), matched, strict=True)
        ]
        moved = iter(transpose(tree.filled(primals, iter(checked)))[0])
        results = [next(moved) if i in smooth else zeros_like(x) for i, x in enumerate(outs)]
        pushed: R = tree.filled(output, iter(results))
        return pushed

    return output, pushforward


_ANY = 1 << 62
"""A level above every level."""
