"""The arguments of the protocols: find array objects, convert to arrays, and take values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..core.element import Library, by_type, library_named, library_of, mixed
from ..core.level import Layer
from ..dispatch.functions import function_of
from ..errors import GradientError
from ..registry import OPS, Op, is_prefix, keeping, on_declaration


class Functions:
    """The functions of operations as attributes: `of.sum`, `of.linalg.solve`.

    They do not depend on the namespace of a backend.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        op = OPS.get(full)
        if op is None:
            if not is_prefix(full):
                raise AttributeError(f"no operation {full!r} is declared")
            return Functions(f"{full}.")
        function = function_of(op)
        with keeping:
            if op.name in OPS and OPS[op.name] is op:
                setattr(self, name, function)  # so that __getattr__ is not called again
        return function

    def forget(self, op: Op) -> None:
        """Drop the function of an earlier declaration."""
        with keeping:
            vars(self).pop(op.name.removeprefix(self._prefix), None)


NOTHING: Any = np._NoValue
of: Any = Functions()
on_declaration(of.forget)


def layers(value: Any) -> Iterator[Layer]:
    """The array objects of multigrad in nested arguments."""
    if isinstance(value, Layer):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from layers(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from layers(part)


def is_only(x: Layer, value: Any) -> bool:
    """Whether `x` is the only array object of multigrad in nested arguments."""
    first = list(islice(layers(value), 2))
    return len(first) == 1 and first[0] is x


def library_of_all(name: str, *values: Any) -> Library:
    """The library of the array objects among nested arguments.

    Raises MixedBackendsError for two libraries, and TypeError if there is no array object.
    """
    library: Library | None = None
    for x in layers(values):
        if library is not None and x._elem.library is not library:
            raise mixed(name, library, x._elem.library)
        library = x._elem.library
    if library is None:  # the protocol was called because of another argument
        raise TypeError(
            f"{name}: a Tensor is given for an option only, beside NumPy arrays. "
            "Wrap the arrays with multigrad.asarray, or give tensor.array."
        )
    return library


def arrayed(x: Any, library: Library) -> Any:
    """A list or a number as an array of the library. An array is returned unchanged."""
    if isinstance(x, Layer) or (
        by_type.get(type(x)) is not None and not isinstance(x, library.scalars)
    ):
        return x
    return library.bound.asarray(x)


def operands(name: str, *values: Any) -> list[Any]:
    """Lists and numbers as arrays of the library of the array objects among them."""
    library = library_of_all(name, *values)
    return [arrayed(x, library) for x in values]


def listed(x: Any, library: Library) -> Any:
    """A list or a tuple as an array of the library.

    Other objects, such as numbers, are returned unchanged.
    """
    return library.bound.asarray(x) if isinstance(x, (list, tuple)) else x


def native(library: Library, dtype: Any) -> Any:
    """The dtype of the library for a dtype in any of NumPy's forms. None is None."""
    if dtype is None:
        return None
    try:
        return getattr(library.bound, np.dtype(dtype).name)
    except (TypeError, AttributeError):  # a dtype of the library itself, or float16 if it has none
        return dtype


def numpys(dtype: Any) -> Any:
    """NumPy's dtype of the same name."""
    return np.dtype(str(dtype).rpartition(".")[2])


def sizes(shape: Any) -> tuple[Any, ...]:
    """A shape or a number in NumPy's forms as a tuple."""
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def converted(value: Any, refusal: str) -> Any:
    """Nested arguments with NumPy arrays in place of array objects.

    Raises GradientError with the text `refusal` if one requires grad.
    """
    if isinstance(value, Layer):
        value._check()
        if value._history is not None:  # type: ignore[attr-defined]
            raise GradientError(refusal)
        return np.asarray(value)  # raises for an array of a transformation
    if type(value) in (tuple, list):
        return type(value)(converted(part, refusal) for part in value)
    if type(value) is dict:
        return {key: converted(part, refusal) for key, part in value.items()}
    return value


def written(name: str, out: Any, result: Any, advice: str = "") -> Any:
    """Write `result` into `out`, and return `out`.

    A Tensor is written in place, as by `out[...] = result`. A NumPy array receives the values, and
    raises if `result` requires grad.
    """
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if isinstance(out, Layer):
        out[...] = result  # type: ignore[index]
        return out
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name}: out must be a Tensor or a NumPy array, not {type(out).__name__}.")
    library_of(out)  # it refuses an array with units, into which plain numbers would be written
    values = converted(
        result,
        f"{name}: the result requires grad, and a NumPy array cannot keep its history. "
        f"{advice or 'Leave out out='}, or detach() what requires grad.",
    )
    np.copyto(out, values, casting="same_kind")
    return out


def finish(name: str, result: Any, out: Any) -> Any:
    """The result, or `out` after the result was written into it."""
    return result if out is None else written(f"numpy.{name}", out, result)


def filled(
    name: str, function: Callable[..., Any], out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Write the result of NumPy, on NumPy arrays, into `out` in place, and return `out`."""
    if np.ndarray not in out._elem.library.backend.array_types:
        raise mixed(name, library_named("numpy"), out._elem.library)
    values = np.empty(tuple(out.shape), out._elem.dtype)

    def replaced(x: Any) -> Any:
        return values if x is out else tuple(map(replaced, x)) if type(x) is tuple else x

    function(*map(replaced, args), **{key: replaced(x) for key, x in kwargs.items()})
    out[...] = values
    return out


def is_given(option: Any) -> bool:
    """Whether an option is neither None nor NumPy's "no value"."""
    return option is not None and option is not NOTHING


def refuse(name: str, **options: Any) -> None:
    """Raise TypeError for the first of these options that is given."""
    for keyword, value in options.items():
        if is_given(value):
            raise TypeError(f"{name}: {keyword}={value!r} is not supported for Tensors.")


def by_operation(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run the operation that has NumPy's name and signature."""
    op = OPS[name]
    out = kwargs.pop("out", None)
    if kwargs.get("casting") == "same_kind":  # NumPy's default
        del kwargs["casting"]
    library = library_of_all(f"numpy.{name}", args, kwargs, out)
    roles = tuple(op.roles.values())
    operands = [_argument(roles[min(i, len(roles) - 1)], x, library) for i, x in enumerate(args)]
    refuse(
        f"numpy.{name}",
        **{key: x for key, x in kwargs.items() if key not in op.roles and x is not False},
    )
    options = {
        key: _argument(op.roles[key], x, library) for key, x in kwargs.items() if key in op.roles
    }
    if "dtype" in options:
        options["dtype"] = native(library, options["dtype"])
    return finish(name, function_of(op)(*operands, **options), out)


def _argument(role: str, x: Any, library: Library) -> Any:
    """An argument, with lists as arrays if the parameter is an array."""
    if role == "arrays" and isinstance(x, (list, tuple)):
        return [arrayed(part, library) for part in x]
    return listed(x, library) if role != "plain" else x
