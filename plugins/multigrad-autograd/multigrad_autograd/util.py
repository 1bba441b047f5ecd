"""Small functions that programs import from `autograd.util`."""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from multigrad.extend import entry

__all__ = ["func", "quick_grad_check", "subval", "subvals", "toposort"]


@entry
def subvals(x: Iterable[Any], pairs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return `x` as a tuple, with other values at these positions."""
    changed = list(x)
    for i, v in pairs:
        changed[i] = v
    return tuple(changed)


@entry
def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Return `x` as a tuple, with the value `v` at position `i`."""
    return subvals(x, [(i, v)])


def func(function: Any) -> Any:
    """Return the function itself."""
    return function


@entry
def toposort(
    end: Any, parents: Callable[[Any], Iterable[Any]] = operator.attrgetter("parents")
) -> Iterator[Any]:
    """Iterate over the nodes that lead to `end`, each after all nodes that it leads to."""
    return iter(list(_sorted(end, parents)))


def _sorted(end: Any, parents: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    uses: Counter[Any] = Counter()
    reached = {end}
    waiting = [end]
    while waiting:
        for parent in parents(waiting.pop()):
            uses[parent] += 1
            if parent not in reached:
                reached.add(parent)
                waiting.append(parent)
    waiting = [end]
    while waiting:
        node = waiting.pop()
        yield node
        for parent in parents(node):
            uses[parent] -= 1
            if not uses[parent]:
                waiting.append(parent)


@entry
def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    verbose: bool = True,
    eps: float = 1e-4,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    rs: Any = None,
) -> None:
    """Check the gradient with respect to the first argument.

    Deprecated, as in HIPS autograd: use `test_util.check_grads`.
    """
    from .test_util import check_grads

    warnings.warn(
        "quick_grad_check is deprecated; use check_grads of multigrad_autograd.test_util",
        DeprecationWarning,
        stacklevel=3,
    )
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
