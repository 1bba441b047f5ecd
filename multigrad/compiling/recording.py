"""The recording of a function as a program.

The function runs once on its arguments, and every operation on them is recorded.

`Recorded` (recorded.py) is a layer of `multigrad.extend`. Its value is the array that the function
computes, and its part `number` is the number of the value in the program. A transformation inside
of the function computes with these layers, so its gradients and batches are recorded, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

from .. import extend, tree
from ..core.element import SCALARS, Element, Library, is_array, library_of, mixed
from ..core.level import Layer, outside
from ..core.tensor import Tensor, strip
from ..dispatch.creation import default_library
from ..dispatch.general import plain_scalars, run_raw, same_structure, with_dtype
from ..errors import OWN
from ..observe import gate
from ..program import Call, Guard, Program, Ref, Spec, Write, on_numbers, refs
from ..registry import OPS, Op
from .arrays import elements_follow, equal, unshared
from .numbers import RecordedNumber, dtype_beside, has_one_class, number_of
from .recorded import Recorded, follow, refuse_captured

T = TypeVar("T")


class Aside(Exception):
    """The function cannot be recorded on these arguments, and is to be called itself.

    The arguments are unchanged. A text gives the reason, if it holds for all calls.
    """


class Recording(extend.Transform):
    """One recording of a function.

    library    the backend of the arrays, or None without arrays
    steps      the recorded steps so far; specs and constants of the program
    raw        whether the arguments are raw arrays. Then operations on them have the meaning that
               they have on raw arrays
    arguments  layers and numbers in place of the arguments, by the number of the value
    captured   the arrays that the function has captured or created, by their ids, with the number
               of the value
    unkept     why the program cannot replace the function, if such a reason is known
    refused    the error that was raised when the function asked for values
    """

    def __init__(self, library: Library | None, raw: bool = True) -> None:
        super().__init__("compile")
        self.library: Library | None = None
        self.modes: Any = None
        self.raw = raw
        self.rebinds = self.immutable = raw and library is not None and not library.mutable
        self.pure = True
        self.guards = 0
        self.specs: dict[int, Spec] = {}
        self.steps: list[Call | Guard | Write] = []
        self.constants: dict[int, Any] = {}
        self.arguments: dict[int, Any] = {}
        self._elements: dict[Any, Element] = {}
        self._forms: dict[Any, Spec] = {}
        self.captured: dict[int, tuple[Any, int]] = {}
        self.unkept: str | None = None
        self.refused: TypeError | None = None
        if library is not None:
            self.met(library)

    def noted(self, what: str) -> None:
        self.unkept = self.unkept or what

    # Values

    def _next(self, spec: Spec) -> int:
        number = len(self.specs)
        self.specs[number] = spec
        return number

    def _spec(self, x: Any, library: Library) -> Spec:
        shape = tuple(x.shape)
        form = (
            shape,
            x.dtype,
            library.device(library.xp, x),
            "C" if len(shape) < 2 else library.order(library.xp, x),
        )
        try:
            spec = self._forms.get(form)
        except TypeError:  # a device or a dtype that cannot be hashed
            return Spec(*form)
        if spec is None:
            spec = self._forms[form] = Spec(*form)
        return spec

    def _element(self, x: Any, library: Library) -> Element:
        """The Element of a layer around `x`."""
        elem = self._elements.get(x.dtype)
        if elem is None or elem.library is not library:
            elem = self._elements[x.dtype] = library.element(x.dtype).at(
                self, self.own_level, False, Recorded
            )
        return elem

    def argument(self, x: Any) -> Any:
        """The replacement of an argument: a layer for a raw array, or a RecordedNumber."""
        if type(x) in SCALARS:
            n = self._next(Spec((), None, number=type(x)))
            self.arguments[n] = number_of(x, n, self)
        else:
            library = library_of(x)
            assert library is not None
            n = self._next(self._spec(x, library))
            self.arguments[n] = self.layer(x, n, library)
        return self.arguments[n]

    def layer(self, x: Any, number: int, library: Library) -> Recorded:
        """A layer around the raw array `x`, which is the value `number`."""
        layer: Recorded = _new(Recorded)
        layer._array = x
        layer._elem = self._element(x, library)
        layer._cell = []
        layer._view = None
        layer.number = number
        return layer

    def constant(self, x: Any, library: Library) -> int:
        """The value of a raw array that does not depend on the arguments.

        It is copied, unless it is never written.
        """
        self.met(library)
        earlier = self.captured.get(id(x))
        if earlier is not None and (not library.mutable or equal(self.constants[earlier[1]], x)):
            return earlier[1]
        value = unshared(x)
        n = self._next(self._spec(value, library))
        self.constants[n] = value
        self.captured[id(x)] = x, n
        return n

    def operand(self, x: RecordedNumber, op: Op, others: Sequence[Any]) -> Any:
        """A number as a 0-d array beside these operands of an operation."""
        library = self.library
        if others:
            y = others[0]
            library = y._elem.library if isinstance(y, Layer) else library_of(y)
        library = library or default_library()
        dtype = dtype_beside(x._value, [y.dtype for y in others], library)
        try:
            with outside():
                array = library.xp.asarray(x._value, dtype=dtype)
        except OverflowError:  # the library decides how to handle such a number
            return x._plain()
        n = self._next(self._spec(array, library))
        args = Ref(x._number), dtype, None, None
        self.steps.append(Call(OPS["asarray"], args, (n,), _line()))
        return self.layer(array, n, library)

    def arithmetic(self, name: str, args: tuple[Any, ...]) -> Any:
        """Python's arithmetic of numbers."""
        op = OPS[name]
        values = [x._value if isinstance(x, RecordedNumber) else x for x in args]
        result = self.tried(op.name, on_numbers(op), *values)
        n = self._next(Spec((), None, number=type(result)))
        numbers = [Ref(x._number) if isinstance(x, RecordedNumber) else x for x in args]
        self.steps.append(Call(op, tuple(numbers), (n,), _line()))
        if name == "pow" and not has_one_class(*args):
            self.guard(n, "type", type(result))
        return number_of(result, n, self)

    def met(self, library: Library) -> None:
        """Note that there are arrays of that library."""
        if self.library is None:
            follow(library)
            self.library, self.modes = library, library.backend.kernel("modes")(library.xp)
        elif library is not self.library:
            self.noted("it computes with arrays of two libraries")

    # Steps

    def tried(self, what: str, function: Callable[..., T], *args: Any) -> T:
        """Call a function that may raise because of values.

        If the recorded function caught the error and went on, the program would do so for all
        values.
        """
        try:
            return function(*args)
        except Exception:
            self.noted(f"it catches an error of {what}, which its program would not raise")
            raise

    def guard(self, value: int, kind: str, expected: Any) -> None:
        """Record the answer to a question about a value."""
        self.steps.append(Guard(value, kind, expected, _line(), self.guards))
        self.guards += 1

    # What the library itself returns

    def element(self, x: Recorded) -> Recorded:
        """A view without axes as an element: a scalar or a copy, which does not follow the array.

        `x` itself, if an element of the library follows.
        """
        library = x._elem.library
        if x.shape or not self.raw or elements_follow(library):
            return x
        x._check()
        return self.layer(x._array[()] if library.scalars else x._array, x.number, library)

    def as_returned(
        self, out: Any, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a function of the library, with a scalar where it returns one.

        Whether a result without axes is a scalar or an array follows from no rule: numpy.sum
        returns a scalar, numpy.tensordot an array. So the function is called on the raw arrays,
        which are read-only.
        """
        library = self.library
        if not self.raw:
            return out
        if type(out) is not Recorded:
            out = tree.mapped(self.raw_again, out)
        if library is None or not library.scalars:
            return out
        results = tree.leaves(out)
        if not any(map(_has_no_axes, results)):
            return out
        import numpy as np

        try:
            args, kwargs = tree.mapped(self._value, (args, kwargs))
            with outside(), np.errstate(all="ignore"):  # the first call has warned
                returned = tree.leaves(function(*args, **kwargs))
        except Exception:  # it takes other arguments than ours
            return out
        if len(returned) != len(results):
            return out
        formed = map(self._in_the_form_of, results, returned)
        return tree.mapped(lambda _: next(formed), out)

    def _value(self, x: Any) -> Any:
        """The number or the raw array that an argument stands for."""
        if isinstance(x, RecordedNumber):
            return x._value
        x = strip(self._without_constants(x))
        if not isinstance(x, Recorded):
            return x
        return x._array if x._is_scalar() else x._elem.library.xp.broadcast_to(x._array, x.shape)

    def _in_the_form_of(self, x: Any, returned: Any) -> Any:
        if not _has_no_axes(x) or x._is_scalar() == isinstance(returned, x._elem.library.scalars):
            return x
        return x._whole() if x._is_scalar() else self.element(x)

    def carried_out(self, op: Op, values: Sequence[Any], library: Library) -> Any:
        """Run an operation on the values of these layers, and record it.

        Returns the outputs as layers.
        """
        self.met(library)
        roles = op.roles.values()
        pairs = [self._operand(x, op, library, r) for x, r in zip(values, roles, strict=True)]
        args, raw = [arg for arg, _ in pairs], [x for _, x in pairs]
        if "dtype" in op.roles:
            args, raw = list(with_dtype(op, args, library)), list(with_dtype(op, raw, library))
        out = self.tried(op.name, run_raw, op, raw, library)
        if library.backend.kernel("modes")(library.xp) != self.modes:
            self.noted(
                f"a mode of {library.name} is entered inside of it, as numpy.errstate is one "
                "(enter it around the call)"
            )
        mode = gate.get()
        if mode is not True and mode.watch.observers:
            self.noted(
                "an observer, hooks for saved Tensors or a checkpoint are entered inside of it"
            )
        single = op.outputs == ()
        if single and not is_array(out):
            return out
        outs = (out,) if single else out
        numbers = tuple([self._next(self._spec(x, library)) if is_array(x) else -1 for x in outs])
        self.steps.append(Call(op, tuple(args), numbers, _line()))
        if op.kind != "elementwise" and self._is_value_shaped(op, args):
            for n, x in zip(numbers, outs, strict=True):
                if n >= 0:
                    self.guard(n, "shape", tuple(x.shape))
        layers = [
            self.layer(x, n, library) if n >= 0 else x for n, x in zip(numbers, outs, strict=True)
        ]
        return layers[0] if single else same_structure(out, layers)

    def _is_value_shaped(self, op: Op, args: Sequence[Any]) -> bool:
        """Whether the shape of a result may depend on values."""
        if op.about.sized_by_values or not op.builtin:  # indexing by a mask is another
            return True
        for (name, role), x in zip(op.roles.items(), args, strict=True):
            if name in ("key", "part"):
                if any(map(self._is_mask, refs((x,)))):
                    return True
            elif role == "plain" and refs((x,)):
                return True
        return False

    def _is_mask(self, number: int) -> bool:
        dtype = self.specs[number].dtype
        return self.library is None or bool(self.library.element(dtype).bool)

    def _operand(self, x: Any, op: Op, library: Library, role: str) -> tuple[Any, Any]:
        """An argument of an operation in two forms: for the program and for the library."""
        kind = type(x)
        if kind in _PLAIN:
            return x, x
        if kind is tuple or kind is list:
            pairs = [self._operand(y, op, library, role) for y in x]
            return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
        if isinstance(x, Layer):
            x = strip(self._without_constants(x))
            if isinstance(x, Layer):
                if not self._owns(x):
                    refuse_captured(x, op.name)
                return Ref(x.number), x._array  # type: ignore[attr-defined]
        other = library_of(x)
        if other is None:
            if role == "array":
                plain_scalars(x, library)  # raises
            return x, x
        if other is not library:
            if not isinstance(x, other.scalars):
                raise mixed(op.name, library, other)
            x = plain_scalars(x, library)
            return x, x
        return Ref(self.constant(x, library)), x

    def has(self, x: Any) -> bool:
        """Whether a value is a raw array or one of this recording, not of a transformation."""
        return not isinstance(x, Layer) or x._elem.run is self

    def raw_again(self, x: Any) -> Any:
        """The replacement of a NumPy array for a Tensor that one of NumPy's functions has made."""
        return self.replaced(x) if isinstance(x, Tensor) else x

    def outcome(self, x: Any) -> Any:
        """The replacement of a raw array, which a transformation of raw arrays returns."""
        return self.replaced(x) if self.raw else x

    def replaced(self, x: Any) -> Any:
        """A layer around the array that `x` holds, as a constant of the program."""
        x = strip(self._without_constants(x))
        library = None if isinstance(x, Layer) else library_of(x)
        return x if library is None else self.layer(x, self.constant(x, library), library)

    # The end

    def finished_program(self, outputs: Sequence[int], writes: Sequence[Write]) -> Program:
        steps = [*self.steps, *writes]
        used = set(outputs)
        for step in steps:
            used.update(refs(step.args) if isinstance(step, Call) else (step.value,))
        constants = {n: x for n, x in self.constants.items() if n in used}
        return Program(tuple(self.arguments), constants, self.specs, steps, tuple(outputs))

    def forget(self) -> None:
        """Release the arrays, at the end of the recording.

        Otherwise the recording and its layers, which refer to each other, would keep them alive,
        as would the frames in the traceback of an error.
        """
        self.refused = None
        self._elements.clear()
        self.captured.clear()
        self.arguments.clear()


def _line() -> str:
    """file:line of the innermost frame outside of multigrad; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _has_no_axes(x: Any) -> bool:
    return isinstance(x, Recorded) and not x._array.shape


_new: Any = object.__new__
_PLAIN = frozenset((bool, int, float, complex, str, slice, type(None), type(Ellipsis)))
