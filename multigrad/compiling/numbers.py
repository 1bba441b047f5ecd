"""Python numbers as arguments of compiled functions.

Python computes with them. They do not promote, and their operations are recorded. If Python itself
needs a number, by `int()`, as an index or by `float()`, the recording returns it and adds a guard.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor
from numbers import Integral
from typing import Any

from ..core.element import Library, is_array
from ..core.level import Layer, Standing
from ..errors import LeakError
from ..memory.inplace import DIRECT
from ..program import on_numbers
from ..registry import OPS, Op, import_standard

KINDS = {bool: "bool", int: "integral", float: "real floating", complex: "complex floating"}
"""The classes of numbers with their dtypes. Each later one can hold the earlier ones."""


class RecordedNumber(Standing):
    """The replacement of a Python number while a function is recorded.

    `isinstance(x, float)` and the like give the same answer as for the number.
    """

    __slots__ = ("_number", "_recording", "_value")

    def __init__(self, value: Any, number: int, recording: Any) -> None:
        self._value = value
        self._number = number
        self._recording = recording

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._value)

    def _check(self) -> None:
        if self._recording.finished:
            raise LeakError(
                "a number that was an argument of a compiled function was used after the function "
                "had returned; return it from the function"
            )

    def _guarded(self, kind: str = "number") -> Any:
        """The number itself, or its int or bool. The program holds only for this answer."""
        self._check()
        value = self._value
        if kind != "number":
            value = self._recording.tried(f"{kind}()", bool if kind == "bool" else int, value)
        self._recording.guard(self._number, kind, value)
        return value

    def __bool__(self) -> bool:
        return bool(self._guarded("bool"))

    def __index__(self) -> int:
        if not isinstance(self._value, int):
            raise TypeError(
                f"{type(self._value).__name__!r} object cannot be interpreted as an integer"
            )
        return int(self._guarded("int"))

    def __int__(self) -> int:
        return int(self._guarded("int"))

    __trunc__ = __int__

    def __getattr__(self, name: str) -> Any:
        """The other attributes of the number: `t.is_integer()`, `n.bit_length()`."""
        if name.startswith("__") or not hasattr(self._value, name):
            raise AttributeError(
                f"{type(self._value).__name__!r} object has no attribute {name!r}",
                name=name,
                obj=self,
            )
        return getattr(self._guarded(), name)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self._guarded(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let NumPy compute with a 0-d array in place of the number."""
        others = [
            x
            for x in inputs
            if not isinstance(x, Standing) and (isinstance(x, Layer) or is_array(x))
        ]
        operands = [
            x._as_operand(OPS["asarray"], others) if isinstance(x, Standing) else x for x in inputs
        ]
        return getattr(ufunc, method)(*operands, **kwargs)

    @property
    def real(self) -> Any:
        return self if not isinstance(self._value, complex) else self._guarded().real

    def conjugate(self) -> Any:
        return self if not isinstance(self._value, complex) else self._guarded().conjugate()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return self._computed("pow", self, other)
        return pow(*map(_setting, (self, other, modulus)))

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return self._computed("pow", other, self)
        return pow(*map(_setting, (other, self, modulus)))  # Python 3.14 calls it so

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    # Its conversions as an argument of an operation

    def _plain(self) -> Any:
        """The number as a setting: an int, or the number itself. Both are guards."""
        return self._guarded("int" if type(self._value) is int else "number")

    def _as_operand(self, op: Op, others: list[Any]) -> Any:
        """The number as a 0-d array, with the dtype of a Python scalar beside these operands."""
        self._check()
        return self._recording.operand(self, op, others)

    def _computed(self, name: str, left: Any, right: Any) -> Any:
        """Compute with this number: Python's arithmetic for numbers, or that of arrays."""
        other = right if left is self else left
        if isinstance(other, Standing) or type(other) in KINDS:
            self._check()
            return self._recording.arithmetic(name, (left, right))
        if isinstance(other, Layer) or is_array(other):
            operand = self._as_operand(OPS[name], [other])
            function = on_numbers(OPS[name])
            return function(operand, other) if left is self else function(other, operand)
        return NotImplemented


def _setting(x: Any) -> Any:
    return x._plain() if isinstance(x, RecordedNumber) else x


def _convert(name: str, function: Callable[..., Any]) -> None:
    """Let a function of Python get the number itself."""

    def method(self: RecordedNumber, *args: Any) -> Any:
        return function(self._guarded(), *args)

    setattr(RecordedNumber, name, method)


def _install(op: Op) -> None:
    """Give numbers the operator of an operation."""
    name = op.name

    def unary(self: RecordedNumber) -> Any:
        self._check()
        return self._recording.arithmetic(name, (self,))

    def binary(self: RecordedNumber, other: Any) -> Any:
        return self._computed(name, self, other)

    def reflected(self: RecordedNumber, other: Any) -> Any:
        return self._computed(name, other, self)

    setattr(RecordedNumber, f"__{op.operator}__", unary if len(op.roles) == 1 else binary)
    if op.operator in DIRECT:
        setattr(RecordedNumber, f"__r{op.operator}__", reflected)


for _function in (ceil, complex, float, floor, format, hash, repr, round):
    _convert(f"__{_function.__name__}__", _function)
import_standard()
for _op in list(OPS.values()):
    if _op.operator and _op.name not in ("matmul", "pow"):
        _install(_op)


@Integral.register
class Whole(RecordedNumber):
    """A RecordedNumber that is an int.

    An operation that needs an integer, such as indexing, gets it from `__index__`.
    """

    __slots__ = ()


def number_of(value: Any, number: int, recording: Any) -> RecordedNumber:
    """The replacement of a number, which is the value `number` of the program."""
    return (Whole if type(value) is int else RecordedNumber)(value, number, recording)


def has_one_class(base: Any, exponent: Any) -> bool:
    """Whether the class of a power follows from the classes of these numbers.

    `2 ** -1` is a float, and `(-8.0) ** 0.5` is complex. Python's other arithmetic depends on the
    classes only. A number that is not an argument is the same at each call.
    """
    varies = isinstance(base, RecordedNumber), isinstance(exponent, RecordedNumber)
    if isinstance(base, complex) or isinstance(exponent, complex):
        return True
    if isinstance(base, int) and isinstance(exponent, int):
        return not varies[1]
    return (not varies[0] and base >= 0) or (not varies[1] and exponent % 1 == 0)


def dtype_beside(value: Any, dtypes: list[Any], library: Library) -> Any:
    """The dtype of a Python scalar beside arrays of these dtypes, or None without arrays."""
    if not dtypes:
        return None
    dtype = dtypes[0] if len(dtypes) == 1 else library.xp.result_type(*dtypes)
    lower = list(KINDS.values())[: list(KINDS).index(type(value))]
    if not any(library.xp.isdtype(dtype, kind) for kind in lower):
        return dtype
    return (library.xp.zeros((), dtype=dtype) + value).dtype
