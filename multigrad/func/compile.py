"""compile: a function that is recorded as a program once and replayed from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..tracebacks import entry
from .reverse import check_function
from .variables import P, R

if TYPE_CHECKING:
    from ..compiling.compiled import Compiled


@entry
def compile(
    function: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = (),
    max_programs: int = 8,
    arena: int = 16 << 20,
    check: bool | str = "first",
) -> Compiled[P, R]:
    """Return a function that records `function` as a program, and then runs the program.

    There is one program for each kind of arguments: it holds for arrays of the same structure,
    shapes, dtypes, devices and memory order.

    static_argnums  the positions of arguments whose values are part of the program, and which must
                    be hashable. They are static when passed by name, too. Strings, bools, None,
                    slices and other objects that are neither arrays nor numbers are always static
    max_programs    the maximal number of kinds of arguments with programs, and for each kind the
                    maximal number of programs for the branches that the function takes
    arena           how many bytes a program may keep for intermediate results between calls
    check           "first": compare each program with the function once, when it first runs; True:
                    at every call; False: never

    Arguments and results may be nested structures of arrays, constant Tensors and Python numbers,
    as for other functions of `multigrad.func`. Raw arrays give raw arrays, Tensors give Tensors.
    Results are always fresh, unless `function` returns an argument itself. In-place writes of
    `function` to its arguments are carried out. Python numbers are arguments that do not promote.

    Values that `function` reads besides its arguments are frozen. HiddenStateError (a RuntimeError)
    is raised if such a value is seen to change. If `function` asks for a truth value or an index,
    the program holds for that answer, and another program is recorded for another answer. If it
    asks for other values, or puts an object into a container of the caller, TypeError is raised
    with a remedy. Transformations inside of `function` become part of the program.

    `function` itself is called for Tensors that require grad, inside of another transformation,
    under `jax.jit`, and while an observer is active (a profiler, anomaly mode, hooks for saved
    Tensors, a checkpoint).

    The result g has `g.programs`, `g.source()`, `g.memory()` and `g.clear()` for its programs.

    Corresponds to jax.jit; docs/compile.md has the rules.
    """
    from ..compiling import Compiled  # late: it imports extend, which loads every plugin's hooks

    check_function(function, "compile")
    statics = (static_argnums,) if type(static_argnums) is int else static_argnums
    if not isinstance(statics, Sequence) or not all(type(i) is int for i in statics):
        raise TypeError(
            f"compile: static_argnums must be an int or a tuple of ints, not {static_argnums!r}"
        )
    for name, value, least in (("max_programs", max_programs, 1), ("arena", arena, 0)):
        if type(value) is not int or value < least:
            raise ValueError(f"compile: {name} must be an int of at least {least}, not {value!r}")
    if type(check) is not bool and not (isinstance(check, str) and check == "first"):
        raise ValueError(f"compile: check must be 'first', True or False, not {check!r}")
    return Compiled(function, tuple(statics), max_programs, arena, check)
