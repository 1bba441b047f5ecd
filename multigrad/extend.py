"""The public interface for extensions: user-defined layers, transformations, observers and plugins.

It is versioned by `API`.

A **layer** is an array object around another array, its value. The value is a raw array or a layer
of a lower level. The class of a layer carries out every operation on it, and computes with the
values, one level below. Derive from `Layer`, declare in `__slots__` what the layer has besides its
value, and write `apply`.

A **transformation** gives its layers a level of their own, so transformations nest in any order
with those of `multigrad.func` and with each other:

    class Logged(extend.Layer):
        __slots__ = ()

        @classmethod
        def apply(cls, op, args, transform):
            print(op.name)
            return cls.wrap(extend.carry_out(op, transform.unwrap(args)), transform)

    def logged(function, x):
        transform = extend.Transform("logged")
        return transform.call(lambda: transform.unwrap(function(Logged.wrap(x, transform))))

An **observer** is notified of events and changes nothing. Derive from `Observer`, name the
`events`, write `begin`, `end` or `recorded`, and enter the observer with a `with` statement. A
**plugin** is a module that an entry point of the group `multigrad` names. Its attribute
`MULTIGRAD_API` says which `API` it needs.

`docs/extending.md` is the guide. Names with an underscore may change in any release, here and in
the classes that multigrad passes to extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from . import plugins
from .backends import kernels
from .backends.raw import RawNamespace
from .backends.spec import Backend
from .core.element import Library, common_library, is_array, library_named
from .core.level import Layer as ArrayObject
from .core.level import Transformation, innermost, outside, running
from .core.tensor import Tensor, detached, element_of, lifted, peeled, strip
from .dispatch import codegen
from .dispatch.general import (
    candidates,
    general,
    plain_scalars,
    regrouped,
    run_raw,
    with_dtype,
)
from .errors import GradientError, LeakError
from .layers.dual import pushed, with_scalars
from .layers.value_layer import ValueLayer, tie
from .observe import EVENTS, Call, Label, Observer, passed
from .plugins import discovery, loading
from .plugins.discovery import register_plain_type
from .registry import Op
from .tracebacks import entry
from .tree import named_leaves, replaced

__all__ = [
    "API",
    "EVENTS",
    "KERNELS",
    "Call",
    "Label",
    "Layer",
    "Observer",
    "Op",
    "Transform",
    "backend",
    "carry_out",
    "entry",
    "innermost",
    "is_array",
    "jvp",
    "level_of",
    "load_plugins",
    "named_leaves",
    "raw_namespace",
    "rebind_augmented",
    "register_plain_type",
    "samples",
    "tree_map",
    "vjp",
]

API = plugins.API
"""The version of the interface for plugins and extensions.

It grows when the interface gains something that an extension may need.

A plugin declares the version that it needs in the module of its entry point, as
`MULTIGRAD_API = 1`. The default is 1. If a plugin needs a newer version than this one, multigrad
refuses that plugin by name, and all others work.
"""

KERNELS: Mapping[str, Callable[..., Any]] = MappingProxyType(kernels.DEFAULTS)
"""The default kernels by name: functions beyond the standard that multigrad needs of a library.

Each default uses the standard only. See `Backend.kernels`.
"""


# -- arrays


def level_of(x: Any) -> int:
    """The level of `x`: 0 for a raw array or any other object, 1 for an ordinary Tensor.

    Inside of transformations levels are higher. The class of the highest operand carries out an
    operation. The other operands are constants to it.
    """
    return x._level if isinstance(x, ArrayObject) else 0


def _mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """`function(x)`, or for a list or a tuple the tuple of its elements' results."""
    return tuple([_mapped(function, y) for y in x]) if isinstance(x, (list, tuple)) else function(x)


# -- transformations


class Transform(Transformation):
    """One run of a transformation, with a level above those of all running transformations.

    name      the name of the transformation in messages
    level     the level of its layers
    finished  whether the transformation is over; from then on its layers raise LeakError

    All layers of a Transform are of one class. Make one Transform per call of the transformed
    function. Attributes that are not described here are private.
    """

    __slots__ = ("_kind",)
    _kind: type[Layer] | None

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._kind = None

    @property
    def level(self) -> int:
        return self.own_level

    @entry
    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return `function(*args)`, called inside this transformation.

        The transformation has finished when the call ends, even if it ends with an exception.
        Arrays that the function makes, as by `multigrad.zeros`, are constants of this
        transformation. Take the results out of their layers inside the call, by `unwrap` or
        `layer_of`.
        """
        return super().call(function, *args)

    def finish(self) -> None:
        """End a transformation that was begun without `call`, such as one of a context manager."""
        super().finish()

    def layer_of(self, x: Any) -> Any:
        """The layer of this transformation in `x`, or None.

        `x` may be that layer, which is brought up to date, or a Tensor made inside of the
        transformation, which is a constant around the layer. Raises LeakError after the
        transformation has finished.
        """
        x = self._without_constants(x)
        return x if self._owns(x) else None

    def unwrap(self, x: Any) -> Any:
        """`x` outside of this transformation.

        A layer gives its value. A Tensor made inside gives the array in it. Another object gives
        itself. A list or a tuple gives a tuple of its elements' results. Raises LeakError after the
        transformation has finished.
        """
        return _mapped(lambda y: z._array if self._owns(z := self._without_constants(y)) else z, x)

    @entry
    def map(
        self, function: Callable[[Any], Any], x: Any, other: Callable[[Any], Any] | None = None
    ) -> Any:
        """`function(y)` for a layer y of this transformation, and `other(y)` for another object y.

        Without `other`, another object gives itself. A list or a tuple gives a tuple of its
        elements' results. For example, `transform.map(lambda y: y.tangent, args, other=lambda y:
        None)` gives the tangents of the arguments of an operation.
        """

        def result(y: Any) -> Any:
            layer = self.layer_of(y)
            if layer is not None:
                return function(layer)
            return y if other is None else other(y)

        return _mapped(result, x)

    def _owns(self, x: Any) -> bool:
        return isinstance(x, Layer) and x._run is self

    def _without_constants(self, x: Any) -> Any:
        """The array in a constant of this transformation; another object itself."""
        while isinstance(x, Tensor) and x._run is self:
            x._check()
            x = x._array
        if self._owns(x):
            x._check()
        return x


@entry
def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` applied to each leaf."""
    return replaced(function, tree)


def rebind_augmented() -> None:
    """Make `y += v` mean `y = y + v` in the running transformation, as for Python's numbers.

    Call it in the function that is transformed. It holds for all augmented assignments, and for all
    arrays of this transformation, whether it is one of `multigrad.func` or your own. Elsewhere
    `y += v` writes to y, and every name and every view of that array sees the write. `y[key] = v`
    and methods such as `y.add_(v)` write in both cases. Raises RuntimeError if no transformation is
    running.
    """
    run = running()
    if run is None:
        raise RuntimeError(
            "extend.rebind_augmented: no transformation is running; call it in the function "
            "that is transformed"
        )
    run.rebinds = True


# -- layers


class Layer(ValueLayer):
    """Base class of layers: array objects with the operators, methods and functions of Tensors.

    A subclass must write `apply` and declare `__slots__`, which names the parts of a layer besides
    its value. A part is an array of a lower level, None, or any other object that belongs to the
    layer. The class attribute `derivative` names the parts that carry a derivative. `detach()` and
    `constant` set these parts to None.

    array      the value, an array of a lower level
    transform  the Transform that the layer belongs to

    The memory of a layer is never written. An in-place operation replaces the value and the parts.
    Views follow, as views of Tensors do: `apply` receives the operation
    `copy_slices(x, value, /, part)`, which is linear in both arrays. The array that the layer was
    made of keeps its values.
    """

    __slots__ = ()
    derivative: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__slots__")
        if own is None:
            raise TypeError(
                f"{cls.__name__} must declare __slots__, with the names of its parts besides "
                "its value: __slots__ = ()"
            )
        names: tuple[str, ...] = (own,) if isinstance(own, str) else tuple(own)
        cls.__slots__ = names  # type: ignore[assignment]
        clashes = [
            name
            for name in names
            if name.startswith("__") or any(name in vars(base) for base in cls.__mro__[1:])
        ]
        if clashes:
            raise TypeError(
                f"{cls.__name__}.__slots__ names {', '.join(clashes)}, which layers already have: "
                "choose another name"
            )
        cls._names = (*cls._names, *names)
        unknown = [name for name in cls.derivative if name not in cls._names]
        if unknown:
            raise TypeError(
                f"{cls.__name__}.derivative names {', '.join(unknown)}, which __slots__ does not"
            )

    @classmethod
    def apply(cls, op: Op, args: tuple[Any, ...], transform: Transform) -> Any:
        """Carry out the operation `op`, whose highest operand is a layer of `transform`.

        Each class writes this method.

        args  the values of all parameters of `op.signature`, in order, with the defaults filled in.
              Layers of `transform` are up to date. Layers of lower levels, raw arrays and Python
              scalars are constants. Lists of arrays and indexing keys come as tuples, settings as
              they were given

        Return layers of `transform`, made by `wrap` or `constant`: one layer, or as many as `op`
        has outputs. A composite operation arrives as the operations that it consists of. Arrays
        that this method makes with functions of multigrad belong to no transformation and are
        constants.
        """
        raise NotImplementedError(
            f"{cls.__name__} must have a classmethod apply(cls, op, args, transform)"
        )

    @classmethod
    def apply_function(
        cls,
        name: str,
        inside: Callable[[Callable[[Any], Any]], Any],
        args: tuple[Any, ...],
        transform: Transform,
    ) -> Any:
        """Apply a user-defined derivative to `args`.

        name    the name of the user's class or function
        inside  `inside(wrap)` applies the function one level below, and replaces each array x that
                it returns by `wrap(x)`
        args    the arguments, in the form that `apply` receives

        The derivative was made by autograd.Function, custom_vjp or custom_jvp. Return the result of
        `inside`. A class without this method refuses such functions with NotImplementedError.
        """
        raise NotImplementedError(
            f"multigrad cannot apply {name}, which has a derivative of its own, under "
            f"{cls.__name__} yet: let the class write the classmethod apply_function(cls, name, "
            "inside, args, transform)"
        )

    @classmethod
    @entry
    def wrap(cls, array: Any, transform: Transform, **parts: Any) -> Self:
        """A layer of `transform` with the value `array`, of a lower level, and these parts.

        Parts that are not given are None. Wrap several outputs of an operation one by one.

        Raises TypeError if `array` is not an array of a known library or `__slots__` does not
        declare a part, GradientError if the array belongs to a transformation that began after
        `transform`, and LeakError if `transform` has finished.
        """
        if not isinstance(transform, Transform):
            raise TypeError(
                f"{cls.__name__}.wrap: expected an extend.Transform, got {type(transform).__name__}"
            )
        if transform.finished:
            raise LeakError(
                f"{cls.__name__}.wrap: the transformation {transform.name!r} has finished; "
                "begin another one"
            )
        if transform._kind is None:
            transform._kind = cls
        elif transform._kind is not cls:
            raise TypeError(
                f"the transformation {transform.name!r} has layers of class "
                f"{transform._kind.__name__}: begin another one for {cls.__name__}"
            )
        if isinstance(array, tuple):
            raise TypeError(
                f"{cls.__name__}.wrap: expected one array, got {type(array).__name__}. Where "
                "op.outputs is not (), an operation has several outputs: wrap each of them"
            )
        unknown = [name for name in parts if name not in cls._names]
        if unknown:
            raise TypeError(f"{cls.__name__}.wrap: __slots__ does not declare {', '.join(unknown)}")
        return cls._new(
            _within(array, transform, cls),
            transform,
            {n: _within(v, transform, cls) if is_array(v) else v for n, v in parts.items()},
        )

    @classmethod
    def _new(cls, array: Any, transform: Transform, parts: Mapping[str, Any]) -> Self:
        x: Self = cls._around(array, transform, transform.level)
        for name in cls._names:
            setattr(x, name, parts.get(name))
        if not x._elem.layered and any(isinstance(part, ArrayObject) for part in parts.values()):
            x._elem = x._elem.at(transform, transform.level, True, cls._family)
        return x

    def constant(self, array: Any) -> Self:
        """A constant of this transformation with the value `array`, an array of a lower level.

        A value that is written into this layer becomes such a constant.
        """
        return type(self).wrap(array, self.transform)

    @property
    def transform(self) -> Transform:
        run: Any = self._run
        return run  # type: ignore[no-any-return]

    # The methods that the engine calls

    @property
    def _parts(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in ("_array", *self._names) if is_array(getattr(self, name)))

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _take(self, value: Any) -> None:
        for name in ("_array", "_elem", *self._names):
            setattr(self, name, getattr(value, name))

    def _constant(self, x: Any) -> Self:
        return self.constant(x)

    def _copied(self, stop: bool = False) -> Self:
        if not stop:
            return self._mapped(lambda x: x)
        parts = {
            name: None if name in self.derivative else detached(value)
            for name, value in self._values().items()
        }
        return self._new(detached(self._array), self.transform, parts)

    def _mapped(self, function: Callable[[Any], Any]) -> Self:
        return self._new(
            function(self._array),
            self.transform,
            {n: function(v) if is_array(v) else v for n, v in self._values().items()},
        )

    def _moves(self) -> bool:
        return not self._run.finished and any(
            getattr(self, name) is not None for name in self.derivative
        )

    @staticmethod
    def _apply(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        kind, transform = type(top), top.transform
        own: list[Any] = []
        transform.map(own.append, values)
        with outside():
            out = kind.apply(
                op, tuple([tuple(v) if isinstance(v, list) else v for v in values]), transform
            )
        several = op.outputs != ()
        if several and (
            not isinstance(out, (tuple, list)) or (op.outputs and len(out) != len(op.outputs))
        ):
            raise TypeError(
                f"{kind.__name__}.apply returned {type(out).__name__} for {op.name}, which has "
                "several outputs: return a "
                f"tuple{f' of {len(op.outputs)}' if op.outputs else ''}"
            )
        outs = [_result(x, op, kind, transform, own) for x in (out if several else (out,))]
        tie(op, values, outs, top)
        return regrouped(op, out, outs)

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Any) -> Any:
        transform = top.transform
        own = [transform._owns(x) for x in values]
        return type(top).apply_function(
            application.name,
            lambda wrap: application.through(values, own, wrap),
            tuple(values),
            transform,
        )

    def __repr__(self) -> str:
        self._check()
        parts = "".join(
            f", {name}={value!r}" for name, value in self._values().items() if value is not None
        )
        return f"{type(self).__name__}({self._array!r}{parts})"


def _within(x: Any, transform: Transform, kind: type[Layer]) -> Any:
    """The array `x` as part of a layer of `transform`, which does not see later writes to `x`."""
    x = strip(peeled(passed(x), transform.level - 1))
    if level_of(x) >= transform.level:
        raise GradientError(
            f"{kind.__name__}.wrap: an array of the transformation {x._run.name!r} cannot "
            f"become the value of a layer of {transform.name!r}, which is not of a higher level: "
            "unwrap it first"
        )
    return x._frozen() if isinstance(x, ArrayObject) else x


def _result(x: Any, op: Op, kind: type[Layer], transform: Transform, own: Sequence[Any]) -> Any:
    """One output of `apply`, after a check: a new layer of the transformation, or no array.

    Only one of several outputs may be None.
    """
    if not is_array(x) and (x is not None or op.outputs != ()):
        return x
    if not isinstance(x, Layer) or x._run is not transform:
        raise TypeError(
            f"{kind.__name__}.apply returned {type(x).__name__} for {op.name}: return layers of "
            f"the transformation, made by {kind.__name__}.wrap(array, transform), or by "
            "constant(array) of an argument"
        )
    return x._copied() if any(x is y for y in own) else x


# -- carrying operations out


@entry
def carry_out(op: Op, args: Sequence[Any]) -> Any:
    """The result of `op` on values of a lower level.

    Raw arrays give raw arrays, which the library computes. Layers give layers.

    args  the values of all parameters of `op.signature`, in order

    Several outputs come as a tuple, or in the form that the library returns. In `apply`, pass
    `transform.unwrap(args)`: an operation on layers of the transformation itself would call `apply`
    again. Raises TypeError if none of the arguments is an array, and MixedBackendsError for arrays
    of two libraries.
    """
    library, args = _prepared(op, args)
    if any(isinstance(x, ArrayObject) for x in candidates(op, args)):
        return general(op, tuple(args))
    return run_raw(op, args, library)


@entry
def jvp(
    op: Op, args: Sequence[Any], tangents: Sequence[Any], outs: Any, *, conform: bool = True
) -> Any:
    """The tangents of the outputs of `op` at `args`, by its derivative rule, one level below.

    tangents  one per parameter, as in `args`: an array of the shape of the argument, a tuple of
              arrays for a list, None for an argument with a zero tangent
    outs      the result of `carry_out(op, args)`
    conform   whether to give the tangents the shapes and dtypes of the outputs. False returns the
              result of the rule itself, on raw arrays, which is for tests of rules

    Returns a tangent, or a tuple of them if `op` has several outputs. A zero tangent is None, and
    so is that of an output without a derivative. Raises MissingRuleError if the operation has no
    rule.
    """
    library, args = _prepared(op, args)
    several = op.outputs != ()
    results = tuple(outs) if several else (outs,)
    moving = [
        None if isinstance(t, tuple) and all(x is None for x in t) else t
        for role, t in zip(op.roles.values(), tangents, strict=True)
        if role != "plain"
    ]
    pushed_tangents: Sequence[Any] = (None,) * len(results)
    if (
        any(t is not None for t in moving)
        and op.kind != "nondifferentiable"
        and any(is_array(y) and element_of(y).floating for y in results)
    ):
        if not conform:
            args = with_scalars(op, library, args, results[0])
            return codegen.jvp(op, library.xp, args, moving, outs)
        pushed_tangents = pushed(op, library, args, moving, results)
    return tuple(pushed_tangents) if several else pushed_tangents[0]


@entry
def vjp(
    op: Op, args: Sequence[Any], outs: Any, cotangents: Any, wanted: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """The gradients of `op` at `args`, by its derivative rule, one level below.

    outs        the result of `carry_out(op, args)`
    cotangents  of the shape and dtype of the output; a tuple for several outputs, with None for one
                that was not used
    wanted      one bool per parameter, a tuple of bools for a list: the arguments to differentiate
                with respect to. None: all of them

    Returns one gradient per parameter, of the shape and dtype of the argument, and a tuple of them
    for a list. It is None for an argument that is not wanted, or not a floating array. Raises
    MissingRuleError if the operation has no rule.
    """
    library, args = _prepared(op, args)
    outs, cotangents = (tuple(outs), tuple(cotangents)) if op.outputs != () else (outs, cotangents)
    wanted = (True,) * len(args) if wanted is None else wanted
    roles = op.roles.values()
    needs = tuple(
        [_needs(x, w) for role, x, w in zip(roles, args, wanted, strict=True) if role != "plain"]
    )
    grads: Iterator[Any] = iter(_mapped(lambda _: None, needs))
    if op.kind != "nondifferentiable" and any(_flat(needs)):
        first = next(y for y in _flat(outs) if y is not None)
        args = with_scalars(op, library, args, first)
        layered = any(
            isinstance(x, ArrayObject) for x in _flat((*candidates(op, args), outs, cotangents))
        )
        if layered:
            args = [
                x if role == "plain" else lifted(x) for role, x in zip(roles, args, strict=True)
            ]
            outs, cotangents = lifted(outs), lifted(cotangents)
        xp = library.bound if layered else library.xp
        with outside():
            grads = iter(_mapped(strip, codegen.vjp(op, xp, args, outs, cotangents, needs)))
    return tuple(
        [
            _mapped(lambda _: None, x) if role == "plain" else next(grads)
            for role, x in zip(roles, args, strict=True)
        ]
    )


def _needs(x: Any, wanted: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(
            map(_needs, x, wanted if isinstance(wanted, (tuple, list)) else (wanted,) * len(x))
        )
    return bool(wanted) and is_array(x) and element_of(x).floating


def _flat(x: Any) -> list[Any]:
    """The elements of nested tuples."""
    return [z for y in x for z in _flat(y)] if isinstance(x, tuple) else [x]


def _prepared(op: Op, args: Sequence[Any]) -> tuple[Library, Sequence[Any]]:
    """The library of the arguments, and the arguments in the form that its functions take.

    Constant Tensors of the base level are replaced by their raw arrays, since computing with
    Tensors would make layers of all results.
    """
    if len(args) != len(op.roles):
        raise TypeError(
            f"{op.name}: expected the values of all {len(op.roles)} parameters of "
            f"{op.name}{op.signature}, got {len(args)}"
        )
    args = [_mapped(strip, x) for x in args]
    for x in candidates(op, args):
        if isinstance(x, ArrayObject):
            return x._elem.library, args
    library = common_library(op.name, candidates(op, args))
    if library is None:
        raise TypeError(f"{op.name}: none of the arguments is an array of a known library")
    args = [
        plain_scalars(x, library) if role == "array" else x
        for role, x in zip(op.roles.values(), args, strict=True)
    ]
    return library, with_dtype(op, args, library)


# -- for suites that test backends and plugins


def load_plugins() -> None:
    """Load every installed plugin and its operations, also plugins that wait for their library.

    `multigrad.backends()` lists the plugins that failed.
    """
    loading.load(everything=True)


@entry
def backend(name: str) -> Backend:
    """The Backend of that name, with its library imported.

    Raises BackendError, with a remedy, if no working backend has that name.
    """
    return discovery.get(name)


@entry
def raw_namespace(backend: str | Backend) -> Any:
    """The `xp` of a backend's derivative rules: the standard and the kernels, on raw arrays.

    A Backend that is not in use, such as a changed copy, gets its own namespace.
    """
    return library_named(backend).xp if isinstance(backend, str) else RawNamespace(backend)


def samples() -> dict[str, Any]:
    """The conformance samples of all loaded plugins, by operation.

    A sample is a generator function, or "module:name".
    """
    return loading.load_samples()
