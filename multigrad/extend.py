"""What extensions of multigrad are written with: layers, transformations, observers and plugins of
one's own. Public, and versioned by `API`.

A **layer** is an array object that stands for another array, its value, which is a raw array or a
layer of a lower level. Every operation on it is carried out by its class, one layer further in.
Derive from `Layer`, declare in `__slots__` what it has besides the value, and write `apply`.

A **transformation** gives its layers a level of their own, so that they nest in any order with
`multigrad.func` and with each other:

    class Logged(extend.Layer):
        __slots__ = ()

        @classmethod
        def apply(cls, op, args, transform):
            print(op.name)
            return cls.wrap(extend.carry_out(op, transform.unwrap(args)), transform)

    def logged(function, x):
        transform = extend.Transform("logged")
        return transform.call(lambda: transform.unwrap(function(Logged.wrap(x, transform))))

An **observer** is told of what happens and changes nothing: derive from `Observer`, name the
`events`, write `begin`, `end` or `recorded`, and enter it by `with`. A **plugin** is a module that
an entry point of the group `multigrad` names; `MULTIGRAD_API` in it says which `API` it needs.

`docs/extending.md` is the guide. Names with an underscore, here and in classes that are handed out,
may change in any release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from .backends import discovery, hooks, kernels, plugins
from .backends.raw import RawNamespace
from .backends.spec import Backend
from .core.element import Library, common_library, is_array, library_named
from .core.level import Layer as ArrayObject
from .core.level import Run, innermost, outside, running
from .core.tensor import Tensor, element_of, lifted, peeled, stopped, strip
from .dispatch import codegen
from .dispatch.general import _candidates as candidates
from .dispatch.general import _named as named
from .dispatch.general import _same_structure as same_structure
from .dispatch.general import general, plain_scalars, run_raw, with_dtype
from .errors import GradientError, LeakError
from .layers.dual import pushed, with_scalars
from .layers.value_layer import ValueLayer, tie
from .namespace import load
from .observe import EVENTS, Call, Label, Observer, stand_in
from .registry import Op
from .tree import named_leaves
from .tree import replaced as tree_map

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
    "innermost",
    "is_array",
    "jvp",
    "level_of",
    "load_plugins",
    "named_leaves",
    "raw_namespace",
    "rebind_augmented",
    "samples",
    "tree_map",
    "vjp",
]

API = plugins.API
"""The version of what plugins and extensions are written against.

It grows when something is added that an extension may need.

A plugin says in the module of its entry point which version it needs: `MULTIGRAD_API = 1`. Without
that it is 1. Where it is newer than this one, that plugin is refused by name, and every other
works.
"""

KERNELS: Mapping[str, Callable[..., Any]] = MappingProxyType(kernels.DEFAULTS)
"""What multigrad needs of a library beyond the standard, by name, each in the form that uses the
standard only. See `Backend.kernels`.
"""


# -- what an array is


def level_of(x: Any) -> int:
    """The number that orders layers: 0 for a raw array and for what is no array, 1 for an ordinary
    Tensor, more inside of transformations.

    An operation is carried out by the class of its highest operand; the others are constants to it.
    """
    return x._level if isinstance(x, ArrayObject) else 0


def _mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """`function` of `x`, or of each element where it is a list or a tuple: a list of arrays, an
    indexing key.
    """
    return tuple([_mapped(function, y) for y in x]) if isinstance(x, (list, tuple)) else function(x)


# -- transformations


class Transform(Run):
    """One run of a transformation: a level of its own, above those of all that has begun, until it
    has finished.

    name      what messages call it
    level     the level of its layers
    finished  whether it is over: its layers raise LeakError from then on

    All layers of a Transform are of one class. Make one per call of the transformed function.
    Attributes that are not described here are the engine's.
    """

    __slots__ = ("_kind",)
    _kind: type[Layer] | None

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._kind = None

    @property
    def level(self) -> int:
        return self.own_level

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return `function(*args)`, called inside this transformation, which has finished
        afterwards, however that ends.

        Arrays that the function makes, as by `multigrad.zeros`, are constants of this
        transformation. Take the results out of their layers inside, by `unwrap` or `layer_of`.
        """
        return super().call(function, *args)

    def finish(self) -> None:
        """End a transformation that was not run by `call`, such as one of a context manager."""
        super().finish()

    def layer_of(self, x: Any) -> Any:
        """The layer of this transformation that `x` is, brought up to date, or that a Tensor made
        inside is the constant around; else None.

        Raises LeakError after the transformation has finished.
        """
        x = self._peeled(x)
        return x if self._owns(x) else None

    def unwrap(self, x: Any) -> Any:
        """`x` as it is outside of this transformation: of a layer its value, of a Tensor made
        inside the array in it, anything else itself.

        A list or a tuple gives a tuple of what its elements give. Raises LeakError after the
        transformation has finished.
        """
        return _mapped(lambda y: z._array if self._owns(z := self._peeled(y)) else z, x)

    def map(
        self, function: Callable[[Any], Any], x: Any, other: Callable[[Any], Any] | None = None
    ) -> Any:
        """`function(y)` for a layer y of this transformation, `other(y)`, or y itself, for anything
        else; a list or a tuple by its elements.

        So `transform.map(lambda y: y.tangent, args, other=lambda y: None)` is one part of each
        argument of an operation.
        """
        return _mapped(
            lambda y: (
                function(z)
                if self._owns(z := self._peeled(y))
                else y
                if other is None
                else other(y)
            ),
            x,
        )

    def _owns(self, x: Any) -> bool:
        return isinstance(x, Layer) and x._run is self

    def _peeled(self, x: Any) -> Any:
        while isinstance(x, Tensor) and x._run is self:
            x._check()
            x = x._array
        if self._owns(x):
            x._check()
        return x


def rebind_augmented() -> None:
    """Let augmented assignments bind names anew in the transformation that runs: `y += v` means `y
    = y + v`, as for Python's numbers.

    It is called in the function that is transformed, and holds for all arrays of this
    transformation: of `multigrad.func` or of one's own. Elsewhere `y += v` writes into y, and every
    name of that array and every view sees it. `y[key] = v` and methods such as `y.add_(v)` write in
    both. Raises RuntimeError where no transformation is running.
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
    """Base of layers: array objects that stand for an array, with the operators, methods and
    functions that Tensors have.

    `apply` must be written. `__slots__` must be declared: it names the parts of a layer besides its
    value. A part is an array one layer further in, None, or anything else that is to go with the
    layer. In a class attribute `derivative` stand the names of those parts that carry a derivative:
    `detach()` sets them to None, and so does `constant`.

    array      the value, one layer further in
    transform  the Transform that the layer belongs to

    A layer is never written: an in-place operation exchanges value and parts. Views follow, as
    those of Tensors do: `apply` sees the operation `copy_slices(x, value, /, part)`, which is
    linear in both arrays, and the array that the layer was made of keeps its values.
    """

    __slots__ = ()
    derivative: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__slots__")
        if own is None:
            raise TypeError(
                f"{cls.__name__} must declare __slots__, with the names of what it has besides "
                "its value: __slots__ = ()"
            )
        names: tuple[str, ...] = (own,) if isinstance(own, str) else tuple(own)
        cls.__slots__ = names  # type: ignore[assignment]
        taken = [
            name
            for name in names
            if name.startswith("__") or any(name in vars(base) for base in cls.__mro__[1:])
        ]
        if taken:
            raise TypeError(
                f"{cls.__name__}.__slots__ names {', '.join(taken)}, which layers have already: "
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

        args  the values of all parameters of `op.signature`, in order, defaults filled in: layers
              of `transform`, which are up to date; layers of lower levels, raw arrays and Python
              scalars, which are constants; lists of arrays and keys as tuples; settings

        Return layers of `transform`, made by `wrap` or `constant`: one, or as many as `op` has
        outputs. Composite operations arrive as their parts. What is made here by functions of
        multigrad belongs to no transformation, and is a constant.
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
        """Apply a derivative of the user's own, an autograd.Function or what custom_vjp and
        custom_jvp make, to `args`, as `apply` is given them.

        name    that of the user's class or function
        inside  `inside(wrap)` applies it one layer further in, and puts `wrap(x)` in the place of
                each array x that it returns

        Return what `inside` returns. A class that does not write this method refuses such functions
        by NotImplementedError.
        """
        raise NotImplementedError(
            f"multigrad cannot apply {name}, which has a derivative of its own, under "
            f"{cls.__name__} yet: let the class write the classmethod apply_function(cls, name, "
            "inside, args, transform)"
        )

    @classmethod
    def wrap(cls, array: Any, transform: Transform, **parts: Any) -> Self:
        """A layer of `transform` with the value `array`, one layer further in, and these parts;
        parts that are not given are None.

        Several outputs of an operation are wrapped one by one. Raises TypeError where `array` is no
        array of a known library, or a part is not declared in `__slots__`; GradientError where the
        array belongs to a transformation that began after `transform`; LeakError where `transform`
        has finished.
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
        if not x._elem.layered and any(
            isinstance(getattr(x, name), ArrayObject) for name in cls._names
        ):
            x._elem = x._elem.at(transform, transform.level, True, cls)
        return x

    def constant(self, array: Any) -> Self:
        """A constant of this transformation with the value `array`, one layer further in: what is
        written into this layer becomes one.
        """
        return type(self).wrap(array, self.transform)

    @property
    def transform(self) -> Transform:
        run: Any = self._run
        return run  # type: ignore[no-any-return]

    # What the engine calls

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
            return self._new(self._array, self.transform, self._values())
        kept = {
            name: None if name in self.derivative else value
            for name, value in self._values().items()
        }
        return self._new(
            stopped(self._array),
            self.transform,
            {name: stopped(value) for name, value in kept.items()},
        )

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
        tie(op, values, outs, top, several)
        return named(op, same_structure(out, outs)) if several else outs[0]

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
    """An array that a layer of `transform` is made of, so that later writes to it are not seen."""
    x = strip(peeled(stand_in(x), transform.level - 1))
    if level_of(x) >= transform.level:
        raise GradientError(
            f"{kind.__name__}.wrap: an array of the transformation {x._run.name!r} cannot "
            f"become the value of a layer of {transform.name!r}, which is not further out: "
            "unwrap it first"
        )
    return x._frozen() if isinstance(x, ArrayObject) else x


def _result(x: Any, op: Op, kind: type[Layer], transform: Transform, own: Sequence[Any]) -> Any:
    """What `apply` returned as one output: a new layer of the transformation, or no array at all.

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


def carry_out(op: Op, args: Sequence[Any]) -> Any:
    """The result of `op` on values one layer further in.

    Raw arrays give raw arrays, computed by the library; layers give layers.

    `args` are the values of all parameters of `op.signature`, in order. Several outputs come as a
    tuple or as the library returns them. In `apply` these are `transform.unwrap(args)`: the
    operation on layers of the transformation itself is carried out by `apply` again. Raises
    TypeError where none of them is an array, and MixedBackendsError for arrays of two libraries.
    """
    args = _stripped(op, args)
    if any(isinstance(x, ArrayObject) for x in candidates(op, args)):
        return general(op, tuple(args))
    library, args = _prepared(op, args)
    return run_raw(op, args, library)


def jvp(
    op: Op, args: Sequence[Any], tangents: Sequence[Any], outs: Any, *, conform: bool = True
) -> Any:
    """The tangents of the outputs of `op` at `args`, by its derivative rule, one layer further in.

    tangents  one per parameter, as in `args`: an array of the shape of the argument, of a list a
              tuple of these; None where it does not move
    outs      what `carry_out(op, args)` returned
    conform   give tangents the shapes and dtypes of the outputs; False: return what the rule does,
              on raw arrays, as a test of rules wants it

    Returns a tangent, or a tuple of them where `op` has several outputs; None for what does not
    move, and for outputs without a derivative. Raises MissingRuleError where the operation has no
    rule.
    """
    library, args = _prepared(op, _stripped(op, args))
    several = op.outputs != ()
    results = tuple(outs) if several else (outs,)
    given = [
        _none_if_still(t)
        for role, t in zip(op.roles.values(), tangents, strict=True)
        if role != "plain"
    ]
    moved: Sequence[Any] = (None,) * len(results)
    if (
        any(t is not None for t in given)
        and op.kind != "nondifferentiable"
        and any(is_array(y) and element_of(y).floating for y in results)
    ):
        if not conform:
            return codegen.jvp(
                op, library.xp, with_scalars(op, library, args, results[0]), given, outs
            )
        moved = pushed(op, library, args, given, results)
    return tuple(moved) if several else moved[0]


def vjp(
    op: Op, args: Sequence[Any], outs: Any, cotangents: Any, wanted: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """The gradients of `op` at `args`, by its derivative rule, one layer further in.

    outs        what `carry_out(op, args)` returned
    cotangents  of the shape and dtype of the output; of several outputs a tuple, None for one that
                was not used
    wanted      one bool per parameter, of a list a tuple of bools: by which arguments to
                differentiate. None: by all

    Returns one gradient per parameter, of the shape and dtype of the argument, a tuple of them for
    a list; None for what is not wanted, or is no floating array. Raises MissingRuleError where the
    operation has no rule.
    """
    library, args = _prepared(op, _stripped(op, args))
    outs, cotangents = (tuple(outs), tuple(cotangents)) if op.outputs != () else (outs, cotangents)
    wanted = (True,) * len(args) if wanted is None else wanted
    needs = tuple(
        [
            _needs(x, w)
            for role, x, w in zip(op.roles.values(), args, wanted, strict=True)
            if role != "plain"
        ]
    )
    found: Iterator[Any] = iter(_mapped(_nothing, needs))
    if op.kind != "nondifferentiable" and any(_flat(needs)):
        first = next(y for y in _flat(outs) if y is not None)
        args = with_scalars(op, library, args, first)
        layered = any(
            isinstance(x, ArrayObject) for x in _flat((*candidates(op, args), outs, cotangents))
        )
        if layered:
            args = [
                x if role == "plain" else lifted(x)
                for role, x in zip(op.roles.values(), args, strict=True)
            ]
            outs, cotangents = lifted(outs), lifted(cotangents)
        with outside():
            found = iter(
                _mapped(
                    strip,
                    codegen.vjp(
                        op, library.bound if layered else library.xp, args, outs, cotangents, needs
                    ),
                )
            )
    return tuple(
        [
            _mapped(_nothing, x) if role == "plain" else next(found)
            for role, x in zip(op.roles.values(), args, strict=True)
        ]
    )


def _nothing(_: Any) -> None:
    return None


def _needs(x: Any, wanted: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(
            map(_needs, x, wanted if isinstance(wanted, (tuple, list)) else (wanted,) * len(x))
        )
    return bool(wanted) and is_array(x) and element_of(x).floating


def _flat(x: Any) -> list[Any]:
    """The elements of nested tuples."""
    return [z for y in x for z in _flat(y)] if isinstance(x, tuple) else [x]


def _none_if_still(t: Any) -> Any:
    return None if isinstance(t, tuple) and all(x is None for x in t) else t


def _stripped(op: Op, args: Sequence[Any]) -> Sequence[Any]:
    """Constant Tensors of the base level as their raw arrays: computing with Tensors would make
    layers of all that follows.
    """
    if len(args) != len(op.roles):
        raise TypeError(
            f"{op.name}: expected the values of all {len(op.roles)} parameters of "
            f"{op.name}{op.signature}, got {len(args)}"
        )
    return [_mapped(strip, x) for x in args]


def _prepared(op: Op, args: Sequence[Any]) -> tuple[Library, Sequence[Any]]:
    """The library of the arguments, and these as its functions take them."""
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
    """Load every plugin that is installed, with its operations: those, too, that wait for their
    library. `multigrad.backends()` tells what failed.
    """
    load()
    discovery.load_plugins()


def backend(name: str) -> Backend:
    """The Backend of that name, its library imported.

    Raises BackendError that says what to do where there is none that works.
    """
    return discovery.get(name)


def raw_namespace(backend: str | Backend) -> Any:
    """What a backend's derivative rules get as `xp`: the standard and the kernel operations, on raw
    arrays.

    Of a Backend that is not in use, such as a changed copy, a namespace of its own.
    """
    return library_named(backend).xp if isinstance(backend, str) else RawNamespace(backend)


def samples() -> dict[str, Any]:
    """The conformance samples of all plugins that are loaded, by operation: generator functions, or
    "module:name".
    """
    return hooks.load_samples()
