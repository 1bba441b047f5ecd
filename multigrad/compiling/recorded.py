"""The layer that replaces an array while a function is recorded.

Its operations are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import getattr_static
from types import MethodType, NoneType
from typing import Any, NoReturn

from .. import extend
from ..core.conversions import conversion
from ..core.element import Library, is_array
from ..core.level import Standing, come_back, go_outside
from ..core.surface import OfArrays, Surface
from ..core.tensor import Tensor, peeled, wrap
from ..dispatch.general import named
from ..errors import GradientError
from ..layers.value_layer import tie
from ..memory.inplace import DIRECT
from ..registry import OPS, Op
from ..tree import leaves
from .arrays import sorts_in_place

CONVERTED = (
    "{what} of an array inside of a compiled function: its value is known while the function is "
    "recorded, and would be frozen. Return it, make it a static argument (static_argnums), or "
    "compute with the array itself, as with multigrad.where"
)

MADE = (
    ". An array that takes it is made by numpy.zeros_like(x), numpy.zeros(shape, like=x) or "
    "multigrad.zeros(shape), an array of several by numpy.stack([x, y])"
)
COPIED = ". multigrad.asarray(x, copy=True) makes a copy of it"
INSTEAD = {"numpy()": MADE, "multigrad.tensor()": COPIED}
"""What the message advises instead of a conversion."""


def refuse_captured(x: Any, where: str) -> NoReturn:
    if isinstance(x, Tensor) and x._elem.run is None:
        raise GradientError(
            f"compile: {where} takes a Tensor that requires grad and is not an argument of the "
            "compiled function, so its gradient would be lost. Pass it as an argument, or "
            "detach() it"
        )
    raise GradientError(
        f"compile: {where} takes a {type(x).__name__} of a transformation that is not an "
        "argument of the compiled function. Pass it as an argument"
    )


class Recorded(extend.Layer):
    """A value of the program that is being recorded, with its number there."""

    __slots__ = ("number",)
    number: int
    _run: Any  # the Recording

    @staticmethod
    def _apply(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        run: Any = top._run
        top._check()
        token = go_outside(None)
        try:
            outs = run.carried_out(op, values, top._elem.library)
        finally:
            come_back(token)
        several = op.outputs != ()
        if (
            op.view is not False
            and (several or isinstance(outs, Recorded))
            # NumPy's functions put a scalar into a new array
            and not (isinstance(values[0], Recorded) and values[0]._is_scalar())
        ):
            tie(op, values, list(outs) if several else [outs], top)
        return named(op, outs) if several else outs

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        """Run the user's function on these layers, so that its operations are recorded."""
        applied = Tensor._apply_custom(application, values, None)
        outs = applied.output if isinstance(applied.output, tuple) else (applied.output,)
        # around a layer of this level
        lifted = [peeled(x, top._level) if isinstance(x, Tensor) else x for x in outs]
        return application.raised(applied, lifted)

    def constant(self, array: Any) -> Recorded:
        constant: Recorded = self._run.replaced(array)
        return constant

    def _memory_order(self) -> str | None:
        """The memory order of the array, so that rules behave as outside of a recording.

        The program is only used for arguments with the same memory orders, and these determine the
        orders of all other values.
        """
        order: str | None = self._run.specs[self.number].order
        return order

    def known(self, other: Recorded) -> None:
        """Record that this value equals `other`.

        Later steps use `other`, so this one is not computed if no other step needs it.
        """
        if self._run.specs[self.number] == self._run.specs[other.number]:
            self.number = other.number

    def _guarded(self, kind: str, value: Any) -> Any:
        self._run.guard(self.number, kind, value)
        return value

    @conversion
    def __bool__(self) -> bool:
        self._check()
        return bool(self._guarded("bool", bool(self._array)))

    @conversion
    def __int__(self) -> int:
        self._check()
        return int(self._guarded("int", self._run.tried("int()", int, self._array)))

    def __index__(self) -> int:
        self._check()
        if self.size != 1 or self._elem.scalar is not int:
            raise TypeError("only integer arrays of one element can be used as an index")
        return int(self._guarded("int", int(self._array)))

    def _cast(self, kind: type) -> Any:
        self._convert(f"{kind.__name__}()")

    def __repr__(self) -> str:
        return super().__repr__() if self._run.finished else repr(self._shown())

    def __str__(self) -> str:
        return super().__str__() if self._run.finished else str(self._shown())

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if self._run.finished else format(self._shown(), spec)

    def _shown(self) -> Any:
        """The value of the layer, to convert it to text.

        From now on the function itself is called, so that it sees the values of each call.
        """
        self._check()
        self._run.noted(
            "it makes text of an array, as print() and str() do, and its program would have "
            "that of one call only"
        )
        return self._array if self._run.raw else wrap(self._array)

    @conversion
    def item(self) -> Any:
        self._convert("item()")

    @conversion
    def tolist(self) -> Any:
        self._convert("tolist()")

    @property
    @conversion
    def array(self) -> Any:
        """Raises TypeError, since operations on the array itself are not recorded."""
        self._convert("array")

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        self._convert(what)

    def _convert(self, what: str) -> NoReturn:
        self._check()
        refused = TypeError(CONVERTED.format(what=what) + INSTEAD.get(what, ""))
        self._run.refused = refused
        raise refused

    def copy(self, order: Any = None) -> Any:
        """Return another array of the same values, as the method of NumPy arrays."""
        return self if self._is_scalar() else self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self if self._is_scalar() else super().__deepcopy__(memo)

    def sort(self, axis: int = -1, **settings: Any) -> Any:
        """Sort in place, if the method of the library's own arrays does so."""
        if not (self._run.raw and sorts_in_place(self._elem.library)):
            return super().sort(axis, **settings)
        if settings.keys() - {"stable"}:
            raise TypeError(
                "compile: the recording of x.sort() takes the arguments axis and stable, not "
                f"{', '.join(map(repr, settings))}. Write x[...] = multigrad.sort(x), which has "
                "descending as well"
            )
        self[...] = super().sort(axis)

    def _is_scalar(self) -> bool:
        """Whether the value is a scalar of a library.

        A scalar is immutable, so that `x += y` makes another one.
        """
        return self._run.raw and isinstance(self._array, self._elem.library.scalars)

    def _whole(self) -> Any:
        library = self._elem.library
        if not self._is_scalar():
            return self
        return self._run.layer(library.xp.asarray(self._array), self.number, library)

    def _take(self, value: Any) -> None:
        super()._take(value)
        if self._is_scalar():  # only an array can be written
            self._array = self._elem.library.xp.asarray(self._array)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call one of NumPy's functions, which return NumPy arrays for NumPy arrays."""
        out = super().__array_function__(function, types, args, kwargs)  # type: ignore[misc]
        return self._run.as_returned(out, function, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        own = super().__array_namespace__(api_version=api_version)
        if not self._run.raw or not self._elem.library.scalars:
            return own
        return _Functions(self._run, own, self._array.__array_namespace__())

    def __getitem__(self, key: Any, /) -> Any:
        out: Any = super().__getitem__(key)
        if self._run.raw:  # a list in a key is a Tensor for what carries the operation out
            out = self._run.raw_again(out)
        if type(out) is not Recorded or any(
            k is Ellipsis for k in (key if type(key) is tuple else (key,))
        ):
            return out
        return self._run.element(out)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first axis; an element is read when it is asked for, as in NumPy."""
        return map(self._run.element, super().__iter__())

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if self._run.immutable:
            raise TypeError(
                f"an array of {self._elem.library.name} cannot be written to: its arrays are "
                "immutable"
            )
        super().__setitem__(
            key, value._as_operand(OPS["setitem"], [self]) if isinstance(value, Standing) else value
        )


class _Functions:
    """The namespace of recorded arrays: its results are of the classes of the library's own.

    So arrays that it makes are recorded arrays, whose elements are scalars.
    """

    def __init__(self, run: Any, own: Any, library: Any) -> None:
        self._run, self._own, self._library = run, own, library

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._own, name)
        if isinstance(member, type(self._own)):
            return _Functions(self._run, member, getattr(self._library, name, None))
        if not callable(member) or isinstance(member, type) or name.startswith("__"):
            return member
        run, library = self._run, self._library

        def function(*args: Any, **kwargs: Any) -> Any:
            out = member(*args, **kwargs)
            if not all(map(run.has, leaves((args, kwargs)))):  # what an inner transformation has
                return out
            return run.as_returned(out, _called, (library, name, *args), kwargs)

        return function


def _augmented(name: str) -> Any:
    def method(self: Recorded, other: Any, /) -> Any:
        return NotImplemented if self._is_scalar() else getattr(super(Recorded, self), name)(other)

    return method


# arrays of NumPy have divmod, Tensors do not
Recorded._define("__divmod__", lambda x, y: (x // y, x % y) if x._run.raw else NotImplemented)
Recorded._define("__rdivmod__", lambda x, y: (y // x, y % x) if x._run.raw else NotImplemented)
for _stem in DIRECT:
    Recorded._define(f"__i{_stem}__", _augmented(f"__i{_stem}__"))


# What the library returns for its own arrays


def _called(x: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """The result of a function or method of `x`."""
    return getattr(x, name)(*args, **kwargs)


class _Ufunc(property):
    """The protocol of ufuncs, as on the other layers: see `protocols/__init__.py`."""

    def __call__(self, x: Any, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
        out = _surface.__array_ufunc__(x, ufunc, method, *inputs, **kwargs)
        if type(out) is Recorded and out._is_scalar():  # as all of NumPy's results without axes
            return out
        return x._run.as_returned(out, _called, (ufunc, method, *inputs), kwargs)


_surface: Any = Surface
_ufunc: Any = _Ufunc(
    lambda x: None if _surface.__array_ufunc__.fget(x) is None else MethodType(_ufunc, x)
)
Recorded._define("__array_ufunc__", _ufunc)


@cache
def follow(library: Library) -> None:
    """Let the methods of recorded arrays return scalars where those of the library's arrays do."""
    if not library.scalars:
        return
    sample = library.xp.zeros((1, 1))
    for name in dir(sample):
        member = getattr_static(Recorded, name, None)
        if not name.startswith("_") and name not in vars(Recorded):
            if callable(getattr(sample, name)) and not isinstance(member, (OfArrays, NoneType)):
                Recorded._define(name, _method(name))
            elif isinstance(member, property) and is_array(getattr(sample, name)):
                Recorded._define(name, property(_attribute(name), member.fset))


def _attribute(name: str) -> Callable[[Recorded], Any]:
    def get(self: Recorded) -> Any:
        out = getattr(super(Recorded, self), name)
        return self._run.as_returned(out, getattr, (self, name), {})

    return get


def _method(name: str) -> Callable[..., Any]:
    def method(self: Recorded, *args: Any, **kwargs: Any) -> Any:
        out = getattr(super(Recorded, self), name)(*args, **kwargs)
        return self._run.as_returned(out, _called, (self, name, *args), kwargs)

    return method
