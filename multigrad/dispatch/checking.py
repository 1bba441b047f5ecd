"""The debug mode that carries out every call of an operation twice, and compares.

With the environment variable MULTIGRAD_CHECK_RUNNERS=1, which is read when multigrad is imported,
the functions of operations call `checked`. It runs the generated code, and then the general path on
the same arguments, and raises CheckError if they differ. Without the variable no function has a
trace of it. Writes in place are other code, which is not checked.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import observe
from ..core.computed import following
from ..core.element import by_type, library_of
from ..core.graph import Node, OutputNode, tick
from ..core.level import Layer, Standing
from ..core.pullback import Pullback, apart
from ..errors import MultigradError
from ..registry import Op
from .explaining import failed
from .runners import interpreted, interpreting
from .signature import fresh

CHECKED = os.environ.get("MULTIGRAD_CHECK_RUNNERS") == "1"

APART = {"empty_like": "its values are what the memory held before"}
"""The operations that are not checked, and why."""


class CheckError(MultigradError, AssertionError):
    """The generated code of an operation and the general path differ."""


def checked(
    op: Op, generated: Callable[..., Any], general: Callable[..., Any], values: tuple[Any, ...]
) -> Any:
    """Return `generated(*values)`, or raise what it raises, after a look at the general path.

    The generated code runs first: it brings views up to date, gives warnings, and learns. The
    general path then finds the same arguments. Below it everything is interpreted, too, and the
    operations that the generated code calls are compared at their own calls, so each call is
    compared once.
    """
    if interpreting():
        return general(op, values)
    if op.name in APART or not all(map(_is_ours, values)):
        return generated(*values)
    began = tick()
    try:
        result = generated(*values)
    except (Warning, CheckError, MemoryError, RecursionError):
        raise
    except Exception as error:
        expected, other = _interpreted(general, op, values)
        if other is None and not observe.watching():  # an observer may raise
            text = f"{error!r} is raised, and the general path returns {_class(expected)}"
            raise CheckError(_message(op, values, text)) from error
        if other is not None and not _alike(op, values, error, other):
            text = f"{error!r} is raised, not {other!r}"
            raise CheckError(_message(op, values, text)) from error
        raise
    expected, other = _interpreted(general, op, values)
    difference = (
        Comparison(values, began).of_results(result, expected)
        if other is None
        else f"{_class(result)} is returned, and the general path raises {other!r}"
    )
    if difference is not None:
        raise CheckError(_message(op, values, difference))
    return result


def _is_ours(x: Any) -> bool:
    """Whether generated code may handle `x`: neither it nor a value in it is a stranger's layer.

    Such a layer may note what is done with it, so that the general path must not run again.
    """
    if type(x) is tuple or type(x) is list:
        return all(map(_is_ours, x))
    if not isinstance(x, Layer):
        return not isinstance(x, Standing)
    return type(x) in fresh and _is_ours(x._array) and _is_ours(getattr(x, "_tangent", None))


def _interpreted(
    general: Callable[..., Any], op: Op, values: tuple[Any, ...]
) -> tuple[Any, Exception | None]:
    """The result of the general path, or its error. Nobody is notified, and nothing is marked."""
    forward = following.get()
    marked = 0 if forward is None else len(forward.marked)
    try:
        with interpreted(drop=False), warnings.catch_warnings():
            observe.put(())
            warnings.simplefilter("ignore")
            return general(op, values), None
    except Exception as error:
        return None, error.with_traceback(None)
    finally:
        if forward is not None:
            del forward.marked[marked:]


def _alike(op: Op, values: tuple[Any, ...], error: Exception, other: Exception) -> bool:
    """Whether the program sees the same error, once the function of the operation is left."""
    if type(error) is not type(other):
        error, other = (failed(x, op, values) or x for x in (error, other))
    # of floating point errors a library names the loop, which is another one for a 0-d array
    return type(error) is type(other) and (
        isinstance(error, FloatingPointError) or str(error) == str(other)
    )


def _message(op: Op, values: Sequence[Any], difference: str) -> str:
    arguments = ", ".join(f"{n}={_described(x)}" for n, x in zip(op.roles, values, strict=True))
    return f"{op.name}({arguments}): the generated code differs from the general path: {difference}"


def _described(x: Any) -> str:
    if type(x) is tuple or type(x) is list:
        return f"[{', '.join(map(_described, x))}]"
    if isinstance(x, Layer):
        return f"{type(x).__qualname__} {x._elem!r}{' view' * (x._view is not None)}"
    return f"{type(x).__name__} {x.dtype}" if hasattr(x, "dtype") else repr(x)


# ----- Comparison -----


class Comparison:
    """Compares what the generated code returns with what the general path returns.

    Arrays, layers and version cells of the operands, and nodes from before the call, must be the
    same objects. What the call has made must be alike, part by part.

    began     the clock before the call
    operands  what the operands consist of, by identity
    met       the pairs that were compared
    cells     the version cell that corresponds to one of a result, in both directions. A node may
              have others, which no array object has: they stand for none
    """

    def __init__(self, operands: Sequence[Any], began: int) -> None:
        self.began = began
        self.operands: dict[int, Any] = {}
        self.met: set[tuple[int, int]] = set()
        self.cells: dict[int, Any] = {}
        parts = list(operands)
        for x in parts:  # which grows
            if isinstance(x, tuple | list):
                parts += x
            elif isinstance(x, Layer):
                parts += _within(x)
                self.operands[id(x)] = x
                self.operands[id(x._cell)] = x._cell
            elif by_type.get(type(x)) is not None:
                self.operands[id(x)] = x

    def of_results(self, a: Any, b: Any) -> str | None:
        """The first difference between two results, or None."""
        pairs = [(a, b)]
        for x, y in pairs:  # which grows
            if isinstance(x, tuple | list) and isinstance(y, tuple | list):
                pairs += zip(x, y, strict=False)
            elif isinstance(x, Layer) and isinstance(y, Layer):
                self.cells.setdefault(id(x._cell), y._cell)
                self.cells.setdefault(id(y._cell), x._cell)
                pairs += zip(_within(x), _within(y), strict=True)
        return next(self.differences("result", a, b), None)

    def differences(self, at: str, a: Any, b: Any) -> Iterator[str]:
        """What differs between `a` and `b`, the parts of the two results at `at`."""
        if a is b or (id(a), id(b)) in self.met:
            return
        if id(a) in self.operands or id(b) in self.operands:
            which = "" if id(a) in self.operands else "not "
            yield f"{at} is {which}a part of the operands themselves"
        elif type(a) is not type(b) and not _packed(a):
            yield f"{at} is of class {_class(a)}, not {_class(b)}"
        elif isinstance(a, tuple | list):
            if len(a) != len(b):
                yield f"{at} has {len(a)} entries, not {len(b)}"
            for i, (x, y) in enumerate(zip(a, b, strict=False)):
                yield from self.differences(f"{at}[{i}]", x, y)
        elif isinstance(a, Layer | Node):
            self.met.add((id(a), id(b)))
            yield from (self._layers if isinstance(a, Layer) else self._nodes)(at, a, b)
        elif isinstance(a, Pullback):
            yield from self._parts(at, a, b, "op", "needs", "single", "library")
        elif (library := library_of(a)) is not None:
            yield from _arrays(at, library, a, b)
        elif not (a == b or (a != a and b != b)):
            yield f"{at} is {a!r}, not {b!r}"

    def _parts(self, at: str, a: Any, b: Any, *names: str) -> Iterator[str]:
        for name in names:
            x, y = getattr(a, name, None), getattr(b, name, None)
            yield from self.differences(f"{at}.{name}", x, y)

    def _layers(self, at: str, a: Any, b: Any) -> Iterator[str]:
        for part in ("base", "run", "level", "layered"):
            x, y = getattr(a._elem, part), getattr(b._elem, part)
            if x is not y and x != y:
                yield f"{at}: its Element {a._elem!r} has {part} {x!r}, not {y!r} ({b._elem!r})"
        yield from self._parts(at, a, b, "_array")
        pairs = ((a._cell, b._cell), (b._cell, a._cell))
        if any(self._shared(x, self.cells) != self._shared(y, {}) for x, y in pairs):
            yield f"{at}._cell: the version cell is not shared with the same array object"
        ours, theirs = a._view, b._view
        if ours and theirs and a._array is ours[0]._array:
            # all of its base: x[...] is the same view as what the operation makes of it
            ours, theirs = (ours[0], *ours[3:]), (theirs[0], *theirs[3:])
        yield from self.differences(f"{at}._view", ours, theirs)
        yield from self._parts(at, a, b, "_seen", "_node", "_tangent", "_given")

    def _nodes(self, at: str, a: Any, b: Any) -> Iterator[str]:
        if a.seq < self.began or b.seq < self.began:
            yield f"{at} is {a!r}, not {b!r}, and one of them is older than the call"
            return
        yield from self._parts(at, a, b, "next")
        if isinstance(a, OutputNode):
            yield from self._parts(at, a, b, "number")
            return
        yield from self._parts(at, a, b, "rule")
        if not hasattr(a, "rule") or _packed(a):
            return
        if self._shared(a.cells, self.cells) != self._shared(b.cells, {}):
            yield f"{at}.cells are the version cells of other arrays"
        ours, theirs = (dict(zip(n.rule.plan, apart(n.saved), strict=True)) for n in (a, b))
        for name in ours.keys() | theirs.keys():
            if name in ours and name in theirs:
                yield from self.differences(f"{at}.saved, {name}", ours[name], theirs[name])
            elif not name.endswith(("_shape", "_dtype")):
                # a runner needs neither for a gradient of the same shape and dtype
                yield f"{at}.saved has {name} in one of both only"

    def _shared(self, cells: Any, others: dict[int, Any]) -> list[int]:
        """Which version cells of array objects are among those of a node, by identity.

        Those of results are replaced by `others`.
        """
        if type(cells) is tuple:
            return [c for x in cells for c in self._shared(x, others)]
        shared = id(cells) in self.operands or id(cells) in self.cells
        return [id(cells if id(cells) in self.operands else others.get(id(cells), cells))] * shared


def _within(x: Any) -> tuple[Any, Any, Any]:
    """What a layer consists of: its value, its tangent, the base of a view."""
    return x._array, getattr(x, "_tangent", None), x._view and x._view[0]


def _packed(x: Any) -> bool:
    """Whether keepers have what a node saves, for which it got another class."""
    return getattr(type(x), "exchanged", False) is True


def _class(x: Any) -> str:
    view = " view" * (getattr(x, "_view", None) is not None)
    return f"{type(x).__module__}.{type(x).__qualname__}{view}"


def _arrays(at: str, library: Any, a: Any, b: Any) -> Iterator[str]:
    """Compare raw arrays bit for bit; nan are equal. Lazy and traced arrays have no values."""
    kind: Any = type(a)
    if a.dtype != b.dtype:
        yield f"{at} has dtype {a.dtype}, not {b.dtype}"
    elif tuple(a.shape) != tuple(b.shape):
        yield f"{at} has shape {tuple(a.shape)}, not {tuple(b.shape)}"
    elif kind.__eq__ is not object.__eq__:
        same = library.xp.all(_same(library, a, b))
        if library.backend.kernel("concrete_bool")(library.xp, same) is False:
            yield f"{at} is {a!r}, not {b!r}"


def _same(library: Any, a: Any, b: Any) -> Any:
    xp, elem = library.xp, library.element(a.dtype)
    if elem.complex:
        return _same(library, xp.real(a), xp.real(b)) & _same(library, xp.imag(a), xp.imag(b))
    same = (a == b) | ((a != a) & (b != b))
    return same & ((a != 0) | (xp.signbit(a) == xp.signbit(b))) if elem.floating else same
