"""A user's function as a function of lists of arrays, whose captured arrays are among them.

The body of a loop may capture arrays from outside. If these are differentiated or batched at any
level, the loop needs them as arguments. So each value that the body passes to an operation goes
through an observer of this module (`observe.Observer.exchange`), which replaces an array from
outside by another one. In the first call, which finds the captured arrays, the replacement is the
same array as a constant of the body's level. In later calls it is the argument that the body is
called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ... import observe, tree
from ...core.element import SCALARS, is_array
from ...core.graph import AccumulateGrad
from ...core.level import BASE, Guest, Layer, Several, Switch, own_switch, running
from ...core.tensor import Tensor, strip, wrap_in
from ...errors import GradientError, kind
from ...observe import Call, Observer
from .arguments import with_arrays
from .bodies import Pull, level_of

Function = Callable[..., Any]
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

    name      its name in messages
    home      the grad mode that no_grad in the function switches, where the loop is called
    homes     the grad modes of the levels that the loop belongs to, outside of passes
    captured  the arrays from outside that it uses
    consts    the value of each captured array where the loop is called
    """

    def __init__(self, name: str, function: Function, given: tree.Structure) -> None:
        self.name, self.function, self.given = name, function, given
        self.captured: list[Layer] = []
        self.consts: list[Any] = []
        self.home = own_switch()
        homes = self.home if type(self.home) is Several else (self.home,)
        self.homes = set(map(level_of, homes))

    def discover(self, args: Sequence[Any]) -> Any:
        """Call the function to find the arrays that it captures.

        Returns its result, which consists of constants of a finished level. Numbers among its
        arguments are passed unchanged, so that promotion decides which dtype their arrays have. If
        the function needs arrays there, it is called again with arrays of the dtype of the others.
        """
        try:
            return self._called((), args, True)
        except (TypeError, AttributeError):
            if not any(type(x) in SCALARS for x in args):
                raise
        return self._called((), with_arrays(args), True)

    def add(self, x: Layer, value: Any) -> None:
        if len(self.captured) == MANY:
            raise GradientError(
                f"{self.name} captures more than {MANY} arrays of other transformations: it "
                "makes a new one at each call. Make it before the loop, or from the arguments"
            )
        self.captured.append(x)
        self.consts.append(value)

    def late(self, error: Late) -> None:
        """Add another captured array.

        Raises the error again if it belongs to another function.
        """
        if error.traced is not self:
            raise error
        self.add(error.x, observe.stand_in(error.x))

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> Any:
        """The result of the function, as a tree.

        consts  the values that replace the captured arrays
        args    the leaves of its arguments
        """
        return self._called(consts, args, False)

    def _called(self, consts: Sequence[Any], args: Sequence[Any], discovering: bool) -> Any:
        run = Guest(self.name, Several((Switch(), *self._modes())))
        return run.call(self._run, run, consts, args, discovering)

    def _modes(self) -> Iterator[Switch]:
        """The grad modes that no_grad in the function switches.

        In passes these are the grad modes of the level that it was called in, without those of
        lower levels.
        """
        around = running()
        if not isinstance(around, Pull):
            yield own_switch()
        homes = self.home if type(self.home) is Several else (self.home,)
        while around is not None:
            if isinstance(around, Pull) and around.level in homes:
                yield around.grad_mode
            around = around.outer

    def _run(
        self, run: Guest, consts: Sequence[Any], args: Sequence[Any], discovering: bool
    ) -> Any:
        seen = _Capturing(self, run, consts, discovering)
        given = [seen.own(x) for x in args]
        observe.put((*(o for o in observe.watching() if o.exchange is None), seen))
        output = self.function(*tree.built(self.given, given))
        return tree.replaced(seen.left, output)


class _Capturing(Observer):
    """Replaces arrays from outside by arrays of the body's level, and refuses writes to the former.

    known    by the id of an array from outside, its replacement, and the replacement as a constant
             of this level once it was used
    around   the `exchange` of an enclosing loop
    guarded  the arguments, which the body must not write to
    """

    events = frozenset({observe.OPERATION, observe.WRITE})
    whole = True

    def __init__(
        self, traced: Traced, run: Guest, consts: Sequence[Any], discovering: bool
    ) -> None:
        self.traced, self.run, self.discovering = traced, run, discovering
        self.level = run.own_level
        self.known: dict[int, tuple[Any, Any]] = {
            id(x): (value, None) for x, value in zip(traced.captured, consts, strict=False)
        }
        self.guarded: list[Any] = []
        mode = observe.gate.get()
        self.around = None if mode is True else mode.watch.exchange

    def own(self, x: Any) -> Any:
        """A value as a constant of this level."""
        if not is_array(x):
            return x
        if isinstance(x, Layer):
            x._check()
            x = x._frozen()
        t = wrap_in(self.run, self.run.own_level, x)
        self.guarded.append(t)
        return t

    def exchange(self, x: Any) -> Any:
        cls = type(x)
        if cls is tuple or cls is list:
            return cls([self.exchange(y) for y in x])
        if not isinstance(x, Layer) or x._level >= self.level:
            return x
        at = self.known.get(id(x))
        if at is None:
            if x._level == 1 and isinstance(x, Tensor) and x._node is None:
                return x  # a constant
            if not self.discovering:
                raise Late(self.traced, x)
            value = x if self.around is None else self.around(x)
            self.traced.add(x, value)
            at = value, None
        value, own = at
        if own is None:
            own = self.own(value)
            self.known[id(x)] = value, own
        return own

    def convert(self, name: str, method: Function, x: Any, *args: Any, **kw: Any) -> Any:
        """Carry out a conversion on the replacement of `x`.

        The body's level is above those that `x` is differentiated at. So a conversion that detaches
        one level takes that level out of the value.
        """
        own = self.exchange(x)
        if getattr(own, "_run", None) is not self.run:
            return observe.as_given(method, own, *args, **kw)
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
                observe.as_given(method, x)  # raises for most layers, and says why
                raise GradientError(
                    f"{self.traced.name} must not take the array of a {kind(x)} from outside: "
                    "each pass calls it with another layer. Call detach()"
                )
            return own
        if not isinstance(x, Tensor):  # the replacement is of another class
            method = getattr(type(own), name, method)
            method = method.fget if isinstance(method, property) else method  # type: ignore[assignment]
        return observe.as_given(method, own, *args, **kw)

    def _detached(self, x: Any, own: Tensor) -> Any:
        """The value of `own`, which replaces `x`, without the level that `x` belongs to."""
        run, homes = x._run, self.traced.homes
        mode = BASE if run is None else level_of(run.grad_mode)
        modes = homes if isinstance(run, Guest) or mode in homes else {mode}
        own._look()
        value = own._array
        while isinstance(value, Tensor) and _is_at(value, modes):
            value._look()
            value = value._array
        return value

    def begin(self, call: Call) -> None:
        if call.kind != observe.WRITE:
            return
        target = call.args[0]
        while target._view is not None:
            target = target._view[0]
        if target._level < self.run.own_level:
            self._refuse(call, "an array from outside")
        if any(target is x for x in self.guarded):
            self._refuse(call, "an argument or a captured array")

    def _refuse(self, call: Call, what: str) -> NoReturn:
        raise GradientError(
            f"{self.traced.name} must not write to {what}, but {call.name} does. Compute a new "
            "array, or write to a clone()"
        )

    def left(self, x: Any) -> Any:
        """A leaf of the result without this level."""
        x = self.exchange(x)
        while isinstance(x, Layer) and getattr(x, "_run", None) is self.run:
            x._check()
            x = x._array
        return strip(x)


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
