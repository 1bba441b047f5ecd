"""A user's function as a function of lists of arrays, whose captured arrays are among them.

The body of a loop may capture arrays from outside. If these are differentiated or batched at any
level, the loop needs them as arguments. So each value that the body passes to an operation goes
through `_Body.exchange`, which replaces an array from outside by another one (see
`observe.enter_body`). In the first call, which finds the captured arrays, the replacement is the
same array as a constant of the body's level. In later calls it is the argument that the body is
called with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import observe, tree
from ...core.element import SCALARS, by_type, is_array
from ...core.graph import AccumulateGrad
from ...core.level import BASE, Guest, Layer, Several, Switch, own_switch, running
from ...core.tensor import Tensor, strip, wrap_in
from ...errors import GradientError, kind
from ...observe import Call
from ..reverse import Function
from .arguments import Results, with_arrays
from .bodies import PassMode, level_of
from .looping import Looped, apply

MANY = 1000
"""The largest number of arrays that a body may capture.

A body that makes a new array of a finished transformation at each call captures without end.
"""


class Late(GradientError):
    """A body has captured an array that its first call had not found.

    The array becomes another argument, and the loop begins again. In a pass, it is an error.
    """

    def __init__(self, traced: Traced, x: Layer) -> None:
        super().__init__(
            f"{traced.name}, called again for a derivative, uses an array from outside that it did "
            "not use before. So does a body with a derivative of a Function whose backward uses "
            "what its forward computed: let it save inputs and outputs only. Or write the loop as "
            "a Python loop"
        )
        self.traced, self.x = traced, x


class Traced:
    """A user's function of trees, called with lists.

    name       its name in messages
    structure  that of its arguments, and `flat`: whether each of them is a leaf
    homes      the grad modes that no_grad in the function switches: those of the level where the
               loop is called
    levels     the grad modes of the levels that the loop belongs to, outside of passes
    captured   the arrays from outside that it uses
    consts     the value of each captured array where the loop is called
    """

    def __init__(self, name: str, function: Function, structure: tree.Structure) -> None:
        self.name, self.function, self.structure = name, function, structure
        self.flat = not any(child.kind for child in structure.children)
        self.captured: list[Layer] = []
        self.consts: list[Any] = []
        home = own_switch()
        self.homes: tuple[Switch, ...] = home if isinstance(home, Several) else (home,)
        self.levels = set(map(level_of, self.homes))

    def discover(self, args: Sequence[Any]) -> Results:
        """Call the function to find the arrays that it captures.

        Returns its result, which consists of constants of a finished level. Numbers among its
        arguments are passed unchanged, so that promotion decides which dtype their arrays have. If
        the function needs arrays there, it is called again with arrays of the dtype of the others.
        """
        try:
            return self((), args, True)
        except (TypeError, AttributeError):
            if not any(type(x) in SCALARS for x in args):
                raise
        return self((), with_arrays(args), True)

    def add(self, x: Layer, value: Any) -> None:
        if len(self.captured) == MANY:
            raise GradientError(
                f"{self.name} captures more than {MANY} arrays of other transformations: it "
                "makes a new one at each call. Make it before the loop, or from the arguments"
            )
        self.captured.append(x)
        self.consts.append(value)

    def __call__(
        self, consts: Sequence[Any], args: Sequence[Any], discovering: bool = False
    ) -> Results:
        """The result of the function.

        consts  the values that replace the captured arrays
        args    the leaves of its arguments
        """
        run = Guest(self.name, Several(self._modes()))
        return run.call(self._run, _Body(self, run, consts, discovering), args)

    def _modes(self) -> list[Switch]:
        """The grad modes that no_grad in the function switches, after one of its own.

        In passes these are the grad modes of the level that it was called in, without those of
        lower levels.
        """
        run = running()
        modes = [Switch()]
        mode = BASE if run is None else run.grad_mode
        if not isinstance(mode, PassMode):
            modes.append(mode)
        while run is not None:
            mode = run.grad_mode
            if isinstance(mode, PassMode) and mode.level in self.homes:
                modes.append(mode)
            run = run.outer
        return modes

    def _run(self, body: _Body, args: Sequence[Any]) -> Results:
        body.around = observe.enter_body(body)
        arguments = map(body.own, args)
        output = self.function(*(arguments if self.flat else tree.built(self.structure, arguments)))
        leaves, structure = tree.flattened(output)
        return list(map(body.outside, leaves)), structure


def applied(functions: Sequence[Traced], make: Callable[[], tuple[Looped, list[Any]]]) -> list[Any]:
    """Apply a loop or a branch to its arguments, both made once it is known what is captured."""
    while True:
        rule, arguments = make()
        try:
            return apply(rule, arguments)
        except Late as late:
            if late.traced not in functions:
                raise
            late.traced.add(late.x, observe.passed(late.x))


class _Body:
    """Replaces arrays from outside by arrays of the body's level, and refuses writes to the former.

    values     by the id of an array from outside, its replacement
    constants  likewise the replacement as a constant of this level, once it was used
    around     the `_Body` of an enclosing loop
    guarded    the arguments, which the body must not write to
    """

    def __init__(
        self, traced: Traced, run: Guest, consts: Sequence[Any], discovering: bool
    ) -> None:
        self.traced, self.run, self.discovering = traced, run, discovering
        self.level = run.own_level
        self.values = dict(zip(map(id, traced.captured), consts, strict=False))
        self.constants: dict[int, Any] = {}
        self.guarded: list[Any] = []
        self.around: Any = None

    def own(self, x: Any) -> Any:
        """A value as a constant of this level."""
        if isinstance(x, Layer):
            x._check()
            x = x._frozen()
        elif by_type.get(type(x)) is None and not is_array(x):
            return x
        t = wrap_in(self.run, self.level, x)
        self.guarded.append(t)
        return t

    def exchange(self, x: Any) -> Any:
        if isinstance(x, Layer):
            return x if x._elem.level >= self.level else self._replacement(x)
        cls = type(x)
        if cls is tuple or cls is list:
            return cls(map(self.exchange, x))
        return x

    def _replacement(self, x: Layer) -> Any:
        constant = self.constants.get(id(x))
        if constant is not None:
            return constant
        if id(x) not in self.values:
            if x._level == 1 and isinstance(x, Tensor) and x._node is None:
                return x  # a constant
            if not self.discovering:
                raise Late(self.traced, x)
            self.values[id(x)] = value = x if self.around is None else self.around.exchange(x)
            self.traced.add(x, value)
        constant = self.constants[id(x)] = self.own(self.values[id(x)])
        return constant

    def convert(self, name: str, method: Function, x: Any, *args: Any, **kw: Any) -> Any:
        """Carry out a conversion on the replacement of `x`.

        The body's level is above those that `x` is differentiated at. So a conversion that detaches
        one level takes that level out of the value.
        """
        own = self.exchange(x)
        if getattr(own, "_run", None) is not self.run:
            return observe.internally(method, own, *args, **kw)
        if name == "detach_" and isinstance(own._array, Layer):
            raise GradientError(
                f"{self.traced.name} must not detach an array in place, since each pass calls it "
                "with other arrays. Call detach()"
            )
        if name in ("__copy__", "__reduce_ex__") and isinstance(x, Tensor):
            x._movable()
        if name in ("data", "array") or (name == "deepcopy" and _leaf(x)):
            own = self.own(self._detached(x, own))
        if name == "data":
            return own
        if name == "array" and isinstance(own._array, Layer):
            if not isinstance(x, Tensor):
                observe.internally(method, x)  # raises for most layers, and says why
                raise GradientError(
                    f"{self.traced.name} must not take the array of a {kind(x)} from outside: "
                    "each pass calls it with another layer. Call detach()"
                )
            return own
        if not isinstance(x, Tensor):  # the replacement is of another class
            method = getattr(type(own), name, method)
            method = method.fget if isinstance(method, property) else method  # type: ignore[assignment]
        return observe.internally(method, own, *args, **kw)

    def _detached(self, x: Any, own: Tensor) -> Any:
        """The value of `own`, which replaces `x`, without the level that `x` belongs to."""
        run, levels = x._run, self.traced.levels
        mode = BASE if run is None else level_of(run.grad_mode)
        modes = levels if isinstance(run, Guest) or mode in levels else {mode}
        own._look()
        value = own._array
        while isinstance(value, Tensor) and _is_at(value, modes):
            value._look()
            value = value._array
        return value

    def begin(self, call: Call) -> None:
        target = call.args[0]
        while target._view is not None:
            target = target._view[0]
        what = None
        if target._level < self.level:
            what = "an array from outside"
        elif any(target is x for x in self.guarded):
            what = "an argument or a captured array"
        if what is not None:
            raise GradientError(
                f"{self.traced.name} must not write to {what}, but {call.name} does. Compute a new "
                "array, or write to a clone()"
            )

    def outside(self, x: Any) -> Any:
        """A leaf of the result without this level."""
        x = self.exchange(x)
        while isinstance(x, Layer) and x._elem.run is self.run:
            x._check()
            x = x._array
        return strip(x) if isinstance(x, Layer) else x


def _is_at(x: Tensor, modes: set[Switch]) -> bool:
    """Whether a Tensor belongs to a level with one of these grad modes, or to a pass for it."""
    run = x._run
    if run is None:
        return BASE in modes
    if isinstance(run, Guest):
        return x._node is None
    return level_of(run.grad_mode) in modes


def _leaf(x: Any) -> bool:
    """Whether a deep copy of `x` is a leaf, to which the derivative with respect to `x` is zero."""
    return (
        isinstance(x, Tensor)
        and type(x._node) is AccumulateGrad
        and not (x._run is not None and any(x._node is node for node in x._run.inputs))
    )
