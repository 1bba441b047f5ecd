"""Conversion of operators on unary functions to operators on functions of many arguments.

The arguments are given by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from multigrad.extend import entry

__all__ = ["get_doc", "get_name", "unary_to_nary", "wraps"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result", covariant=True)


class Operator(Protocol[Result]):
    """An operator from a function to a function of the same arguments, such as a derivative."""

    __name__: str

    def __call__(
        self, fun: Callable[P, Any], argnum: int | Sequence[int] = 0, *more: Any, **options: Any
    ) -> Callable[P, Result]: ...


def get_name(function: Any) -> str:
    return str(getattr(function, "__name__", "[unknown name]"))


def get_doc(function: Any) -> str:
    return str(getattr(function, "__doc__", ""))


@entry
def wraps(
    function: Any, namestr: str = "{fun}", docstr: str = "{doc}", **names: Any
) -> Callable[[Function], Function]:
    """Copy a function's name and docstring, with additions, to another function."""

    @entry
    def named(wrapper: Function) -> Function:
        wrapper.__name__ = namestr.format(fun=get_name(function), **names)
        wrapper.__doc__ = docstr.format(fun=get_name(function), doc=get_doc(function), **names)
        return wrapper

    return named


def unary_to_nary(operator: Callable[..., R]) -> Operator[R]:
    """Convert `operator(unary function, x)` to `operator(function, argnum)(*args, **kwargs)`.

    argnum  the position of the argument x, or a tuple or list of positions: x is then the tuple of
            these arguments
    """
    name = get_name(operator)

    @wraps(operator)
    def of_many(fun: Function, argnum: Any = 0, *more: Any, **options: Any) -> Function:
        if not callable(fun):
            raise TypeError(f"{name}: expected a function, not {type(fun).__name__}")
        one = type(argnum) is int
        if not one and not (type(argnum) in (tuple, list) and all(type(i) is int for i in argnum)):
            raise TypeError(
                f"{name}: argnum must be an int, or a tuple or list of ints, not {argnum!r}"
            )

        def derived(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                given = list(args)
                if one:
                    given[argnum] = x
                else:
                    for i, y in zip(argnum, x, strict=True):
                        given[i] = y
                return fun(*given, **kwargs)

            of_one.__name__ = get_name(fun)
            try:
                x = args[argnum] if one else tuple([args[i] for i in argnum])
            except IndexError:
                raise TypeError(
                    f"{name}: argnum is {argnum!r}, and the call has {len(args)} positional "
                    "arguments"
                ) from None
            return operator(of_one, x, *more, **options)

        derived.__name__ = f"{name}_of_{get_name(fun)}_wrt_argnum_{argnum}"
        derived.__doc__ = (
            f"    {name} of function {get_name(fun)} with respect to argument "
            f"number {argnum}: takes the arguments of that function.\n"
        )
        return derived

    typed: Operator[R] = of_many
    return typed
