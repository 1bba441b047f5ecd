"""A user's function as a function of lists of arrays, with what it captures among them.

The body of a loop may use arrays from outside. Where these are differentiated or batched at any
level, the loop has to know them as arguments. So each value that the body hands to an operation
passes an observer of this module (`observe.Observer.exchange`), which puts another array in the
place of one from outside: the first time, to find them, that array as a constant of the level that
the body runs at; later, what the body is to be called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ... import observe, tree
from ...core.element import SCALARS, is_array
from ...core.level import Guest, Layer, Several, Switch, own_switch, running
from ...core.tensor import Tensor, strip, wrap_in
from ...errors import GradientError
from ...observe import Call, Observer
from .arguments import with_arrays
from .bodies import Pull

Function = Callable[..., Any]
MANY = 1000
"""How many arrays a body may capture.

One that makes a new array of a finished transformation at each call captures without end.
"""


class Late(Exception):
    """A body has captured an array that it had not when it was looked at: it is another argument,
    and the loop begins anew.
    """

    def __init__(self, traced: Traced, x: Layer) -> None:
        super().__init__(traced, x)
        self.traced, self.x = traced, x


class Traced:
    """A user's function of trees, called with lists.

    name      what messages call it
    home      the grad mode that the function switches, with no_grad, where the loop is called
    captured  the arrays from outside that it uses, and `consts`, what each of them stands for where
              the loop was called
    """

    def __init__(self, name: str, function: Function, given: tree.Structure) -> None:
        self.name, self.function, self.given = name, function, given
        self.captured: list[Layer] = []
        self.consts: list[Any] = []
        self.home = own_switch()

    def discover(self, args: Sequence[Any]) -> Any:
        """Call the function to find what it captures.

        Returns its result, of constants of a level that is over.

        Numbers among its arguments are handed over as they are, so that promotion tells of what
        dtype their arrays are to be; or, if the function needs arrays there, as arrays of the dtype
        of the others.
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
                "makes a new one at each call. Make it before the loop, or of the arguments"
            )
        self.captured.append(x)
        self.consts.append(value)

    def late(self, error: Late) -> None:
        """Take another array among the captured ones.

        Raises the error again if it is not of this function.
        """
        if error.traced is not self:
            raise error
        self.add(error.x, observe.stand_in(error.x))

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> Any:
        """The result of the function, as a tree, for these values in the place of what it captures,
        and these leaves of its arguments.
        """
        return self._called(consts, args, False)

    def _called(self, consts: Sequence[Any], args: Sequence[Any], discovering: bool) -> Any:
        run = Guest(self.name, Several((Switch(), *self._modes())))
        return run.call(self._run, run, consts, args, discovering)

    def _modes(self) -> Iterator[Switch]:
        """What no_grad in the function switches: in passes, the grad modes that stand for the level
        that it was called in; not those further out.
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
    """Puts arrays of the level that a body runs at in the place of those from outside; refuses what
    would change arrays from outside.

    known    by its id, what an array from outside is to be, and that as a constant of this level
             once it was used
    around   the same function of a loop around this one
    guarded  the ids of the arguments, which the body must not write to
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
        kind = type(x)
        if kind is tuple or kind is list:
            return kind([self.exchange(y) for y in x])
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

    def begin(self, call: Call) -> None:
        if call.kind != observe.WRITE:
            return
        target = call.args[0]
        while target._view is not None:
            target = target._view[0]
        if target._level < self.run.own_level:
            self._refuse(call, "an array from outside")
        if any(target is x for x in self.guarded):
            self._refuse(call, "an argument, or what it captures")

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
