"""Checks of what a backend claims: a module, array types.

A plugin must not take those of another plugin.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from contextlib import suppress
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from .. import registry
from ..backends import own

if TYPE_CHECKING:
    from ..backends.spec import Backend

PYTHONS = (bool, int, float, complex, str, bytes, list, tuple, dict, slice, type(None))


# ----- Modules -----


def module_of(t: type) -> str:
    """The module that a type declares; third-party classes may declare anything."""
    module = t.__module__
    return module if type(module) is str else ""


def is_from(t: type, module: str) -> bool:
    """Whether a type is from the same top-level module."""
    return module_of(t).partition(".")[0] == module.partition(".")[0]


# ----- Array types -----


def full_name(t: type) -> str:
    return f"{module_of(t)}.{t.__qualname__}"


def whose(t: type, module: str, others: Iterable[Backend]) -> str | None:
    """The owner of an array type, or None if a backend of that module may claim it.

    A class of the backend's own library may inherit from another library's arrays, and vice versa:
    the method resolution order of an array's class then decides. A type that covers other
    libraries' arrays in any other way belongs to them: `object`, a class of their library, an
    abstract class or a protocol that they are registered with.
    """
    if t in PYTHONS or getattr(builtins, t.__name__, None) is t:
        return "one of Python's own"
    theirs: dict[type, str] = {p: f"Python's {p.__name__}" for p in PYTHONS}
    theirs |= dict.fromkeys(own.array_classes(), "multigrad's own arrays")
    for b in others:
        theirs |= {a: f"{full_name(a)}, that of the backend {b.name!r}" for a in b.array_types}
    for a, name in theirs.items():
        inherits = is_from(t, module) and t in a.__mro__
        if not inherits and _is_subclass(a, t):
            return f"a superclass of {name}"
        if not is_from(t, module) and _is_subclass(t, a):
            return f"a subclass of {name}"
    return None


def _is_subclass(a: type, b: type) -> bool:
    """issubclass(a, b).

    If the class raises, the answer is True: it might cover others' arrays later.
    """
    with suppress(Exception):
        return issubclass(a, b)
    return True


def is_instance(x: Any, types: tuple[type, ...]) -> bool:
    """isinstance(x, types), for third-party classes that may raise."""
    try:
        return isinstance(x, types)
    except Exception:
        return False


PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_wrap__")
OPERATORS = (
    "__getitem__",
    "__setitem__",
    *(f"__{how}{name}__" for name in registry.OPERATORS for how in ("", "r", "i")),
)


def overridden(cls: type, plain: type, backend: Backend) -> str | None:
    """The first function that a subclass of an array type has in a version of its own.

    cls    the subclass
    plain  what it inherits from: an array type of the backend, or a class that means plain arrays

    That may be one of NumPy's protocols, or from outside of the library an operator or a method
    that is an operation. It means something else than that of the array type: it converts units,
    masks elements, or multiplies matrices. A class that may be abstract, such as jax.Array, is
    compared by the protocols alone: its subclasses define the operators.
    """
    for name in PROTOCOLS:
        if getattr_static(cls, name, None) is not getattr_static(plain, name, None):
            return name
    own_type = next((t for t in backend.array_types if t in plain.__mro__), None)
    if type(plain) is not type or own_type is None:
        return None
    registry.fill()
    between = cls.__mro__[: cls.__mro__.index(plain)]
    foreign = [c for c in between if not is_from(c, module_of(own_type))]
    names = (*OPERATORS, *(n for n in dir(plain) if n in registry.OPS))
    return next((n for n in names if any(n in vars(c) for c in foreign)), None)
