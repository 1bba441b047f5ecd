"""vmap: a function of one example, applied to a batch of examples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .. import tree
from ..backward.gradients import owned
from ..core.element import SCALARS, is_array
from ..core.level import Layer, Transformation
from ..core.tensor import Tensor, strip
from ..layers.batched import Batched
from ..layers.transforming import constants_beside, namespace, not_array, returned
from ..observe import passed
from ..tracebacks import blamed, entry
from .reverse import Function, check_function
from .variables import P, R


@entry
def vmap(
    function: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """Return a function that applies `function` to a batch of examples at once.

    `function` is written for one example.

    in_axes     for each positional argument, the axis of its examples: an int, None for an argument
                that is the same for all examples, or a nested structure of these that is a prefix
                of the structure of the argument. A single int holds for all arguments
    out_axes    for the results, the axis of their examples: likewise an int, None for a result that
                is the same for all examples, or a nested structure of these
    chunk_size  how many examples to compute at once, at least 1, or None for all. Fewer examples
                take less memory and give the same result
    randomness  "error", "different" or "same", as in torch; without effect, since the standard has
                no random numbers

    Arguments and results may be nested structures of arrays. Keyword arguments are the same for all
    examples. `function` receives a raw array that is the same for all examples as a constant Tensor
    on the same memory, if the array is of the same library. Raw arrays give raw arrays, unless a
    captured Tensor requires grad. Tensors give Tensors, through which gradients flow. vmap nests
    with itself and with all other transformations, in any order.

    Raises ValueError if axes do not fit, and BatchingError (a RuntimeError) if `function` asks for
    the value of an example or makes an array whose shape depends on one. Corresponds to
    torch.func.vmap, with JAX's names of the axes.
    """
    check_chunk_size(chunk_size, "vmap")
    check_randomness(randomness, "vmap")
    check_function(function, "vmap")
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    @wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            leaves = tree.leaves(args)
            axes = _spread(args, in_axes, "in_axes")
            raw = not (tree.has_layer(args) or (kwargs and tree.has_layer(kwargs)))
            inner = [x if a is None else _front(x, a) for x, a in zip(leaves, axes, strict=True)]
            size = _size(inner, axes)
            options = axes, out_axes, raw, randomness
            if chunk_size is None or size <= chunk_size:
                return _run(function, args, kwargs, inner, size, *options)
            parts = []
            for start in range(0, size, chunk_size):
                n = min(chunk_size, size - start)
                part = [
                    x if a is None else x[start : start + n, ...]
                    for x, a in zip(inner, axes, strict=True)
                ]
                parts.append(_run(function, args, kwargs, part, n, *options))
            return _joined(parts, out_axes, raw)
        except Exception as error:
            error = blamed(error, "vmap(f)", args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    return mapped


def check_chunk_size(chunk_size: Any, name: str) -> None:
    if chunk_size is not None and not (type(chunk_size) is int and chunk_size > 0):
        raise ValueError(f"{name}: chunk_size must be an int above 0, or None, not {chunk_size!r}")


def check_randomness(randomness: str, name: str) -> None:
    if randomness not in ("error", "different", "same"):
        raise ValueError(
            f"{name}: randomness must be 'error', 'different' or 'same', not {randomness!r}"
        )


def _check_axes(axes: Any, name: str) -> None:
    for a in tree.leaves(axes):
        if type(a) is not int:
            raise TypeError(
                f"vmap: {name} must be an int, None, or a nested structure of these, but there "
                f"is {a!r} in it"
            )


def _spread(values: Any, axes: Any, name: str) -> list[int | None]:
    """The axis of each leaf."""
    try:
        return tree.prefixed(values, axes)
    except ValueError as error:
        raise ValueError(
            f"vmap: {name} must be an int, None, or have the structure of the "
            f"{'arguments' if name == 'in_axes' else 'output'}: {error}"
        ) from None


def _front(x: Any, axis: int) -> Any:
    """An argument with its examples along the first axis."""
    x = passed(x)
    if type(x) in SCALARS or not is_array(x):
        raise TypeError(
            f"vmap: in_axes maps over an argument of type {type(x).__name__}, which has no "
            "axes; pass in_axes=None for it"
        )
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"vmap: in_axes has {axis} for an array of shape {tuple(x.shape)}, which has no "
            "such axis: it names the axis that counts the examples."
        )
    x = x._frozen() if isinstance(x, Layer) else x
    return x if axis == 0 else _moved(x, axis % ndim, 0)


def _moved(x: Any, source: int, destination: int) -> Any:
    return x if source == destination else namespace(x).moveaxis(x, source, destination)


def _size(inner: Sequence[Any], axes: Sequence[int | None]) -> int:
    sizes = [x.shape[0] for x, a in zip(inner, axes, strict=True) if a is not None]
    if not sizes:
        raise ValueError(
            "vmap: there is no argument to map over: in_axes is None for all arguments, or there "
            "are no arguments"
        )
    if sizes.count(sizes[0]) != len(sizes):
        raise ValueError(
            "vmap: the arguments have different numbers of examples along their in_axes: "
            f"{', '.join(map(str, sizes))}. Pass in_axes=None for an argument that is the same "
            "for all examples."
        )
    size: int = sizes[0]
    return size


def _run(
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inner: Sequence[Any],
    size: int,
    axes: Sequence[int | None],
    out_axes: Any,
    raw: bool,
    randomness: str,
) -> Any:
    run = Transformation("vmap")
    run.randomness = randomness
    level = run.own_level
    leaves = [
        x if a is None else Batched._argument(x, run, level)
        for x, a in zip(inner, axes, strict=True)
    ]
    if kwargs or None in axes:
        constant = constants_beside(x for x, a in zip(inner, axes, strict=True) if a is not None)
        leaves = [constant(x) if a is None else x for x, a in zip(leaves, axes, strict=True)]
        kwargs = constant(kwargs)

    def called() -> tuple[Any, list[tuple[Any, bool, int | None]]]:
        output = function(*tree.filled(args, iter(leaves)), **kwargs)
        where = _spread(output, out_axes, "out_axes")
        return output, [
            (*_unbatched(x, run), a) for x, a in zip(tree.leaves(output), where, strict=True)
        ]

    output, results = run.call(called)
    finish = strip if raw else returned
    return tree.filled(output, iter([finish(_placed(x, mine, a, size)) for x, mine, a in results]))


def _unbatched(x: Any, run: Transformation) -> tuple[Any, bool]:
    """A result one level below the batch, and whether it has an axis of examples."""
    if not is_array(x):
        raise not_array("vmap", x)
    while isinstance(x, Tensor) and x._elem.run is run:  # made inside
        x._check()
        x = x._array
    if isinstance(x, Batched) and x._elem.run is run:
        x._check()
        return x._array, True
    return x, False


def _placed(x: Any, mine: bool, axis: int | None, size: int) -> Any:
    """A result with its examples along `axis`."""
    if axis is None:
        if mine:
            raise ValueError(
                "vmap: out_axes is None for a result that differs between examples; give an "
                "axis for it"
            )
        return x
    if not mine:
        xp = namespace(x)
        x = owned([xp.broadcast_to(xp.expand_dims(x, axis=0), (size, *x.shape))], None)
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"vmap: out_axes has {axis} for a result of {ndim} axes, that of the examples included"
        )
    return x if axis == 0 else _moved(x, 0, axis % ndim)


def _joined(parts: Sequence[Any], out_axes: Any, raw: bool) -> Any:
    """The results of all chunks, concatenated."""
    columns = zip(*(tree.leaves(p) for p in parts), strict=True)
    joined = []
    for chunks, axis in zip(columns, _spread(parts[0], out_axes, "out_axes"), strict=True):
        joined.append(
            chunks[0] if axis is None else namespace(*chunks).concat(list(chunks), axis=axis)
        )
    return tree.filled(parts[0], map(strip if raw else returned, joined))
