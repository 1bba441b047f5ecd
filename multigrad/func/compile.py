"""compile: a function that is recorded as a program once, and runs as that from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .reverse import check_function
from .variables import P, R

if TYPE_CHECKING:
    from ..compiling.compiled import Compiled


def compile(
    function: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = (),
    max_programs: int = 8,
    arena: int = 64 << 20,
    check: bool | str = "first",
) -> Compiled[P, R]:
    """Return a function that runs `function` once for each kind of arguments, records what it
    computes, and then runs the recorded program.

    static_argnums  arguments whose values are part of the program, by their places; they must be
                    hashable. They stay so where they are passed by name. Static are strings, bools,
                    None, slices, and whatever else is no array and no number, too
    max_programs    how many kinds of arguments there are programs for, and for each of them, how
                    many programs for the ways that the function goes
    arena           how many bytes a program may keep for intermediate results between calls
    check           "first": each program is compared once, when it first runs, with the function;
                    True: at every call; False: never

    Arguments and results may be nested structures of arrays, constant Tensors and Python numbers,
    as those of `multigrad.func` are. Raw arrays give raw arrays, Tensors give Tensors, always fresh
    ones, unless `function` returns an argument itself. Arguments that it writes in place are
    written. Programs hold for arrays of the same structure, shapes, dtypes, devices, and memory
    order. Python numbers are arguments that do not promote.

    What `function` reads besides its arguments is frozen. Where that is seen to change,
    HiddenStateError (a RuntimeError) is raised. Where the function asks for a truth value or an
    index, the program holds for that answer, and another one is recorded for others; where it asks
    for other values, TypeError says what to do, as where it puts another object into a container of
    the caller. Transformations inside of `function` become part of the program. With Tensors that
    require grad as arguments, inside of another transformation, under `jax.jit`, and while an
    observer is active (a profiler, anomaly mode, hooks for saved Tensors, a checkpoint), `function`
    itself is called.

    `g.programs`, `g.source()`, `g.memory()` and `g.clear()` are about what was recorded. As
    jax.jit; docs/compile.md has the rules.
    """
    from ..compiling import Compiled  # which needs extend, and that loads every plugin's hooks

    check_function(function, "compile")
    statics = (static_argnums,) if type(static_argnums) is int else static_argnums
    if not isinstance(statics, Sequence) or not all(type(i) is int for i in statics):
        raise TypeError(
            f"compile: static_argnums must be an int or a tuple of ints, not {static_argnums!r}"
        )
    for name, value, least in (("max_programs", max_programs, 1), ("arena", arena, 0)):
        if type(value) is not int or value < least:
            raise ValueError(f"compile: {name} must be an int of at least {least}, not {value!r}")
    if (
        check is not True
        and check is not False
        and not (isinstance(check, str) and check == "first")
    ):
        raise ValueError(f"compile: check must be 'first', True or False, not {check!r}")
    return Compiled(function, tuple(statics), max_programs, arena, check)
