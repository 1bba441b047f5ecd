"""Backends in use, and their element types.

A `Library` is a Backend together with its namespaces and kernels. An `Element` is one dtype of one
library at one level. Two arrays with the same Element have the same library, dtype, realness and
level, so the hot path tests all of these with one `is`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import locks, registry
from ..backends.raw import RawNamespace
from ..backends.spec import Backend
from ..errors import MixedBackendsError
from ..provided import wanted
from .level import Layer, Transformation
from .surface import mention


@wanted
def make_bound(library: Library) -> Any:
    """Make the differentiable namespace of a library.

    Provided by namespace.py.
    """


_making = locks.new_lock()


class Library:
    """A backend in use: its raw rule namespace, its kernels, its element types."""

    def __init__(self, backend: Backend) -> None:
        registry.fill()
        self.backend = backend
        self._bound: Any = None
        self.name = backend.name
        self.xp: Any = RawNamespace(backend)
        self.scalars = backend.scalar_types
        self.mutable = backend.capabilities.mutable
        # values of these types are replaced, all others are written
        self.fixed = (Layer, *self.scalars) if self.mutable else (object,)
        self.elements: dict[Any, Element] = {}
        self.admit: Callable[..., Any] | None = backend.kernels.get("admit")
        self.assign: Callable[..., Any] = backend.kernel("assign")
        self.eagerly: Callable[..., Any] = backend.kernel("eagerly")
        self.is_c_contiguous: Callable[..., Any] = (
            backend.kernel("is_c_contiguous") if self.mutable else lambda *_: True
        )
        self.order: Callable[..., Any] = backend.kernel("order")
        self.take_ownership: Callable[..., Any] = backend.kernel("take_ownership")
        self.unshared: Callable[..., Any] = backend.kernel("unshared")
        self.shares_memory: Callable[..., Any] = backend.kernel("shares_memory")
        self.place_like: Callable[..., Any] = backend.kernel("place_like")
        self.constant: Callable[..., Any] = backend.kernel("constant")
        self.device: Callable[..., Any] = backend.kernel("device")
        self.write: Callable[..., Any] = backend.kernel("write")
        mention(backend.array_types, backend.attributes)

    @property
    def bound(self) -> Any:
        """The differentiable namespace of this backend."""
        if self._bound is None:
            with _making:
                bound = make_bound(self)
                if self._bound is None:
                    self._bound = bound
        return self._bound

    def element(self, dtype: Any) -> Element:
        """The Element of a dtype of this library."""
        elem = self.elements.get(dtype)
        if elem is None:
            elem = self.elements.setdefault(dtype, Element(self, dtype))
        return elem

    def has(self, x: Any) -> bool:
        """Whether `x` is of exactly a registered array type, and its dtype is in the standard.

        Scalars and instances of subclasses do not count.
        """
        kind = type(x)
        # some types, such as jax.Array, define `isinstance` and have no direct instances
        return (
            kind not in self.scalars
            and any(
                kind is t
                or (type(t).__instancecheck__ is not type.__instancecheck__ and isinstance(x, t))
                for t in self.backend.array_types
            )
            and not self.element(x.dtype).opaque
        )

    def __repr__(self) -> str:
        return f"<Library {self.name}>"


@dataclass(eq=False, repr=False, slots=True)
class Kind:
    """What the Elements of one dtype have in common at all levels, as one object.

    It is what the signature of a call knows of an operand (see dispatch/signature.py). A dtype has
    one for the base level, and one for each class of layers whose values are layers, or are not.

    cls  the class of the layers of the level, None for Tensors
    """

    cls: Any


class Element:
    """One dtype of one library at one level, as one object, so that `is` compares all three.

    base     the Element of raw arrays of this dtype, which is itself at the base level
    run      the transformation that the level belongs to, None for the base level
    level    the number of the level
    layered  whether values may be layers of lower levels
    scalar   the type of Python's scalars of this kind; None for a dtype outside of the standard
    kind     what it has in common with the Elements of other levels
    wide     the dtype for sums of many elements, None for the dtype itself
    refusal  the reason why a Tensor cannot hold such an array, or None. Arguments that are only
             passed on may be such arrays

    A transformation forgets its Elements when it ends, so a Tensor that outlives it may meet
    another Element with the same meaning.
    """

    __slots__ = (
        "_kinds",
        "base",
        "bool",
        "complex",
        "dtype",
        "floating",
        "kind",
        "layered",
        "level",
        "library",
        "opaque",
        "refusal",
        "run",
        "scalar",
        "wide",
    )

    def __init__(self, library: Library, dtype: Any) -> None:
        self.library = library
        self.dtype = dtype
        self.base = self
        self.run: Transformation | None = None
        self.level = 1
        self.layered = False
        self._kinds: dict[tuple[Any, bool], Kind] = {}
        self.kind = Kind(None)
        self.bool = _is(library, dtype, "bool")
        self.complex = _is(library, dtype, "complex floating")
        self.floating = self.complex or _is(library, dtype, "real floating")
        # a dtype from outside the standard
        self.opaque = not (self.floating or self.bool or _is(library, dtype, "integral"))
        self.scalar: type[Any] | None = None
        if not self.opaque:
            kinds = (self.bool, bool), (self.complex, complex), (self.floating, float)
            self.scalar = next((scalar for is_kind, scalar in kinds if is_kind), int)
        self.refusal = _refusal(library, dtype) if self.opaque else None
        self.wide = _wide(self) if self.floating else None
        if self.wide is not None:
            narrow_seen[0] = True

    def at(
        self, run: Transformation | None, level: int, layered: bool, kind: Any = None
    ) -> Element:
        """The Element of this dtype at a level of a transformation.

        kind  the class of the layers of that level, None for Tensors
        """
        if run is None:
            return self.base
        elem: Element | None = run.elements.get((self.base, level, layered))
        if elem is None:
            elem = self.base._made_at(run, level, layered, kind)
            if not run.finished:
                elem = run.elements.setdefault((self.base, level, layered), elem)
        return elem

    def beside(self, x: Any) -> Element:
        """The Element of the value `x` at this level."""
        layered = isinstance(x, Layer)
        if layered is self.layered and x.dtype == self.dtype:
            return self
        base: Element = x._elem.base if layered else self.library.element(x.dtype)
        return base.at(self.run, self.level, layered)

    def _made_at(self, run: Transformation, level: int, layered: bool, kind: Any) -> Element:
        elem = _new(Element)
        elem.library, elem.dtype, elem.base = self.library, self.dtype, self
        elem.run, elem.level, elem.layered = run, level, layered
        elem.bool, elem.complex = self.bool, self.complex
        elem.floating, elem.opaque = self.floating, self.opaque
        elem.refusal, elem.wide, elem.scalar = self.refusal, self.wide, self.scalar
        elem.kind = self._kinds.get((kind, layered)) or self._kinds.setdefault(
            (kind, layered), Kind(kind)
        )
        if layered:
            run.deep.add(level)
        return elem

    def __repr__(self) -> str:
        return (
            f"<Element {self.library.name} "
            f"{self.dtype}{'' if self.run is None else f' of {self.run.name} at {self.level}'}>"
        )


_new = object.__new__


def _refusal(library: Library, dtype: Any) -> str | None:
    """Why a Tensor cannot hold records or Python objects, on which no function is defined."""
    fields = getattr(dtype, "names", None)
    if not fields and getattr(dtype, "kind", None) != "O":
        return None
    elements, fix = (
        ("records", f"take a field, x[{fields[0]!r}]")
        if fields
        else ("Python objects", "convert it, x.astype('float64')")
    )
    return (
        f"a Tensor cannot hold an array of dtype {dtype} (backend {library.name!r}). Its "
        f"elements are {elements}: {fix}."
    )


def _is(library: Library, dtype: Any, kind: str) -> bool:
    try:
        return bool(library.xp.isdtype(dtype, kind))
    except (TypeError, ValueError):  # a dtype from outside the standard: opaque
        return False


narrow_seen = [False]
"""Whether there is an Element with a wider dtype for sums; programs without one skip that test."""


def _wide(elem: Element) -> Any:
    """float32 for float16, bfloat16 and narrower dtypes outside the standard; else None."""
    xp = elem.library.xp
    try:
        bits = xp.finfo(elem.dtype).bits
    except (TypeError, ValueError, AttributeError):
        return None
    return None if bits >= 32 else xp.complex64 if elem.complex else xp.float32


_libraries: dict[str, Library] = {}
# Types that can never be arrays, whatever is imported later. They are common in keys and shapes,
# and need no look-up.
by_type: dict[type, Library | None] = dict.fromkeys(
    (bool, int, float, complex, str, slice, type(Ellipsis), type(None), tuple, list, dict)
)
_never = frozenset(by_type)


def library_named(name: str) -> Library:
    """The library of the backend of that name, which is loaded if necessary."""
    library = _libraries.get(name)
    if library is None:
        from ..plugins import discovery

        library = _libraries.setdefault(name, Library(discovery.get(name)))
    return library


def libraries() -> list[Library]:
    """The libraries in use."""
    return list(_libraries.values())


def library_of(x: Any) -> Library | None:
    """The library that `x` is an array of, or None if `x` is not an array of a known library.

    Raises what the kernel `admit` of its backend raises.
    """
    try:
        library = by_type[type(x)]
    except KeyError:
        library = _new_library(x)
    if library is not None and library.admit is not None:
        library.admit(library.xp, x)
    return library


def _new_library(x: Any) -> Library | None:
    """Find the library of an array whose type was not seen before; see `library_of`."""
    from ..plugins import discovery

    backend = discovery.backend_of(x)
    if backend is None:
        return None
    library = by_type[type(x)] = _libraries.setdefault(backend.name, Library(backend))
    discovery.drop_oldest(by_type, _never)
    return library


def is_array(x: Any) -> bool:
    """Whether `x` is a layer or a raw array of a known library."""
    return isinstance(x, Layer) or (type(x) not in SCALARS and library_of(x) is not None)


def forget() -> None:
    """Drop what is cached for operations. Namespaces that users hold stay the same objects."""
    for library in list(_libraries.values()):
        library.xp._forget()
        if library._bound is not None:
            library._bound._forget()


SCALARS = (bool, int, float, complex)


def named_dtype(library: Library, dtype: Any) -> Any:
    """The dtype object for a name of the standard; other objects are returned unchanged."""
    if type(dtype) is not str:
        return dtype
    named = getattr(library.xp, dtype, None) if dtype in DTYPES or dtype in MORE_DTYPES else None
    if named is None:
        raise TypeError(
            f"unknown dtype {dtype!r} (backend {library.name!r}); the names of the standard are "
            f"{', '.join(DTYPES)}"
        )
    return named


DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)

MORE_DTYPES = ("float16",)
"""Names of dtypes beyond the standard, offered where the library has them."""


def common_library(op_name: str, arrays: Iterable[Any]) -> Library | None:
    """The one library of all raw arrays but scalars. Raises MixedBackendsError if there are two."""
    common: Library | None = None
    scalar: Library | None = None
    for x in arrays:
        library = None if x is None or type(x) in SCALARS else library_of(x)
        if library is None or library is common:
            continue
        if library.scalars and isinstance(x, library.scalars):
            scalar = library
        elif common is None:
            common = library
        else:
            raise mixed(op_name, common, library)
    return common or scalar


def mixed(op_name: str, first: Library, second: Library) -> MixedBackendsError:
    """The error for arrays of two libraries in one operation."""
    return MixedBackendsError(
        f"{op_name}: got arrays of two backends, {first.name!r} and {second.name!r}. Convert "
        f"one first: multigrad.asarray(x, backend={first.name!r}) or "
        f"x.to_backend({first.name!r})."
    )
