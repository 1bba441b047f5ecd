"""Jacobians and Hessians of functions: jacrev, jacfwd, jacobian, hessian.

Rows are pullbacks of a basis of the outputs. Columns are pushforwards of a basis of the arguments.
All rows, or all columns, are computed at once, as a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from .. import tree
from ..core.element import is_array
from ..core.level import Transformation, innermost
from ..core.tensor import element_of
from ..errors import GradientError
from ..layers.transforming import (
    checked_input,
    constants_beside,
    depends_on,
    derivative,
    gradients_of,
    input_of,
    left_of,
    namespace,
    not_array,
)
from ..tracebacks import entry, result_of
from .forward import _push
from .reverse import Function, _call, _chosen, _numbers, _outside, check_function
from .vmap import check_chunk_size, check_randomness, vmap


@entry
def jacrev(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Function:
    """Return a function that computes the Jacobian of `function` in reverse mode.

    It calls `function` once, and a pullback for each element of the output.

    argnums     the positional arguments to differentiate with respect to; a sequence gives a tuple
                of Jacobians
    has_aux     `function` returns (output, aux); then (Jacobian, aux) is returned
    chunk_size  how many rows to compute at once, at least 1, or None for all. Fewer rows take less
                memory and give the same result

    The Jacobian has the structure of the output. In place of each array of shape `m` there, it has
    the structure of the argument, with arrays of shape `m + n` for arrays of shape `n`. Arguments
    and outputs must be real and floating. Corresponds to torch.func.jacrev.
    """
    return _differentiated("jacrev", function, argnums, has_aux, chunk_size, _Jacobian.by_rows)


@entry
def jacfwd(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Function:
    """Return a function that computes the Jacobian of `function` in forward mode.

    It computes a pushforward for each element of the arguments.

    randomness  "error", "different" or "same", as in torch; without effect, since the standard has
                no random numbers

    The other arguments, and the result, are those of `jacrev`. `function` is called once for each
    array to differentiate with respect to, and for each chunk of it. An output of an integer or
    boolean dtype has a zero Jacobian of that dtype. Corresponds to torch.func.jacfwd.
    """
    differentiated = _differentiated(
        "jacfwd", function, argnums, has_aux, chunk_size, _Jacobian.by_columns
    )
    check_randomness(randomness, "jacfwd")
    return differentiated


@entry
def jacobian(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Function:
    """Return a function that computes the Jacobian of `function` in the mode with fewer passes.

    That is forward mode if the arguments have fewer elements than the output, else reverse mode.
    `function` is called once to find out. Arguments and result are those of `jacrev`.
    """
    return _differentiated(
        "jacobian", function, argnums, has_aux, chunk_size, partial(_Jacobian.by_rows, always=False)
    )


@entry
def hessian(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Function:
    """Return a function that computes the Hessian of `function`.

    The Hessian is the forward-mode Jacobian of the reverse-mode Jacobian. For a function that
    returns a scalar and an argument of shape (m, n) it is an array of shape (m, n, m, n). Several
    arguments, structures and outputs give the Jacobian of the Jacobian in the layout of `jacrev`:
    `hessian(f, argnums=(0, 1))(x, y)[i][j]`. Corresponds to torch.func.hessian.
    """
    check_function(function, "hessian")
    return jacfwd(
        jacrev(function, argnums, has_aux, chunk_size=chunk_size),
        argnums,
        has_aux,
        chunk_size=chunk_size,
    )


def _differentiated(
    name: str,
    function: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    chunk_size: int | None,
    computed: Callable[[_Jacobian, int | None], Any],
) -> Function:
    """The function that `jacrev`, `jacfwd` or `jacobian` returns."""
    numbers = _numbers(argnums, name)
    check_chunk_size(chunk_size, name)
    check_function(function, name)

    @result_of(f"{name}(f)", function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        return computed(
            _Jacobian(name, function, argnums, numbers, has_aux, args, kwargs), chunk_size
        )

    return jacobian


class _Jacobian:
    """One computation of a Jacobian: the arguments, the variables, and the layout of the blocks."""

    def __init__(
        self,
        name: str,
        function: Function,
        argnums: int | Sequence[int],
        numbers: tuple[int, ...],
        has_aux: bool,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.name, self.has_aux = name, has_aux
        self.single = isinstance(argnums, int)
        self.chosen = _chosen(numbers, len(args), name)
        self.positions = sorted(set(self.chosen))
        self.raw = not tree.has_layer([list(args), kwargs])
        self.flat = [checked_input(x, name) for i in self.positions for x in tree.leaves(args[i])]
        _real(self.flat, name, "argument")
        constant = constants_beside(self.flat)
        self.args = [a if i in self.chosen else constant(a) for i, a in enumerate(args)]
        self.function = partial(function, **constant(kwargs)) if kwargs else function

    def by_rows(self, chunk_size: int | None, always: bool = True) -> Any:
        """Compute it by rows; unless `always`, by columns if there are fewer columns."""
        run = Transformation(self.name)
        args = [
            tree.replaced(lambda x: input_of(x, run), a) if i in self.chosen else a
            for i, a in enumerate(self.args)
        ]
        # before the call, since the function may change its containers
        inputs = [t for i in self.positions for t in tree.leaves(args[i])]
        output, aux = run.call(_call, self.function, args, {}, self.has_aux, run)
        outs = tree.leaves(output)
        for x in outs:
            if not is_array(x):
                raise not_array(self.name, x)
            if not element_of(x).floating:
                raise TypeError(
                    f"{self.name}: every output must be of a floating dtype, but one is of "
                    f"dtype {x.dtype}, which has no derivative; return it as aux, with "
                    "has_aux=True, if it is not to be differentiated"
                )
        if not always and sum(prod(x.shape) for x in inputs) < sum(prod(x.shape) for x in outs):
            return self.by_columns(chunk_size)
        _real(outs, self.name, "output")
        blocks = []
        for out in outs:
            if not depends_on(out, run) or not prod(out.shape):
                blocks += [zeros(left_of(out, run), (*out.shape, *x.shape)) for x in self.flat]
                continue

            def pulled(e: Any, out: Any = out) -> list[Any]:
                return gradients_of([out], [e], inputs, run, keep=True)

            rows = _along_basis(pulled, out, chunk_size)
            for x in self.flat:
                # the row is not kept elsewhere while its block is made
                blocks.append(_reshaped(rows.pop(), (*out.shape, *x.shape)))
        return self._laid_out(output, blocks, _outside(aux, run, self.raw))

    def by_columns(self, chunk_size: int | None) -> Any:
        columns: list[list[Any]] = []
        output = outs = aux = None

        def pushed(k: int, e: Any) -> list[Any]:
            nonlocal output, outs, aux
            seeds = [e if i == k else None for i in range(len(self.flat))]
            output, outs, moved, aux = _push(
                self.function, self.args, self.chosen, seeds, self.has_aux, self.name, self.raw
            )
            _real(outs, self.name, "output")
            return moved

        for k, x in enumerate(self.flat):
            if prod(x.shape):
                columns.append(_along_basis(partial(pushed, k), x, chunk_size))
            else:
                columns.append([None] * len(pushed(k, None)))
        if not self.flat:
            pushed(0, None)
        assert outs is not None
        for c in columns:
            c.reverse()  # popped from the end, so that only its block holds the memory of a column
        blocks = []
        for out in outs:
            for c, x in zip(columns, self.flat, strict=False):
                shape = (*out.shape, *x.shape)
                joined = last if prod(x.shape) > 1 else _reshaped
                blocks.append(zeros(out, shape) if c[-1] is None else joined(c[-1], shape))
                c.pop()
        return self._laid_out(output, blocks, aux)

    def _laid_out(self, output: Any, blocks: list[Any], aux: Any) -> Any:
        """The Jacobian: for each output, its blocks in the structure of the arguments.

        Empties the list of blocks.
        """
        blocks.reverse()

        def arranged(_: Any) -> Any:
            by_position = {
                i: tree.replaced(lambda x: derivative(blocks, None, self.raw), self.args[i])
                for i in self.positions
            }
            chosen = tuple(by_position[i] for i in self.chosen)
            return chosen[0] if self.single else chosen

        blocks_by_output = tree.replaced(arranged, output)
        return (blocks_by_output, aux) if self.has_aux else blocks_by_output


def _real(arrays: Sequence[Any], name: str, what: str) -> None:
    for i, x in enumerate(arrays):
        if element_of(x).complex:
            raise GradientError(
                f"{name}: expected every {what} to be real, but number {i} is of dtype {x.dtype}"
            )


def _along_basis(function: Callable[[Any], list[Any]], x: Any, chunk_size: int | None) -> list[Any]:
    """The results of `function` for each vector of the standard basis of the space of `x`.

    They are stacked along a first axis, unless there is only one vector.
    """
    if prod(x.shape) == 1:
        return function(_filled("ones", x, x.shape))
    results: list[Any] = vmap(function, chunk_size=chunk_size)(*bases([x]))
    return results


def bases(arrays: Sequence[Any]) -> list[Any]:
    """The standard basis of the space of all these arrays together, in the order of the elements.

    For each array it has the parts of the basis vectors: a raw array with the number of the vector
    as the first axis, and the dtype of the array.
    """
    sizes = [prod(x.shape) for x in arrays]
    total, before, parts = sum(sizes), 0, []
    for x, n in zip(arrays, sizes, strict=True):
        library = element_of(x).library
        xp = library.xp
        device = library.device(xp, innermost(x))
        part = xp.eye(total, n, k=-before, dtype=x.dtype, device=device)
        parts.append(xp.reshape(part, (total, *x.shape)))
        before += n
    return parts


def _filled(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """A raw array of `ones` or `zeros` of that shape, with the dtype and the device of `x`."""
    library = element_of(x).library
    device = library.device(library.xp, innermost(x))
    return getattr(library.xp, name)(tuple(shape), dtype=x.dtype, device=device)


def zeros(x: Any, shape: tuple[int, ...]) -> Any:
    return _filled("zeros", x, shape)


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return namespace(x).reshape(x, shape)


def last(columns: Any, shape: tuple[int, ...]) -> Any:
    """The columns, stacked along the last axes."""
    xp = namespace(columns)
    return xp.reshape(xp.moveaxis(columns, 0, -1), shape)
