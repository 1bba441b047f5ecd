"""The generated function that calls one program.

It flattens the arguments, checks that they have the key of the program, runs the program, and makes
the result. It is generated for one structure of the arguments, so that a call makes few comparisons
for each array:

    def call(args, kwargs):
        if len(args) != 2 or kwargs: return MISSED
        l0, l1 = args
        if type(l0) is not t0 or l0.shape != s0 or l0.dtype is not d0: return MISSED
        ...
        try:
            o0, o1 = run(l0, l1)
        except Exception as error:
            return after(error, entry, variant, args, kwargs)
        return o0, {"w": o1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core.aliasing import note_write
from ..core.element import is_array
from ..core.tensor import Tensor, wrap
from ..dispatch import generated
from ..program import run_at
from ..tree import Structure
from .leaves import NUMBER, STATIC, TENSOR, Arguments, Leaf, hashable, is_static, raw, static
from .taking import Entry, Variant
from .writes import apart

MISSED = object()
"""The result of such a function for arguments with another key."""


Caller = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Such a function."""


def caller(
    name: str, after: Callable[..., Any], entry: Entry, variant: Variant, arguments: Arguments
) -> Caller:
    """Generate the function, for arguments like these. It does not keep itself alive.

    name   that of the compiled function, for tracebacks
    after  continues a call whose program raised
    """
    inputs = (raw(arguments.leaves[i]) for i in entry.inputs)
    text = _Text(after, entry, variant, run_at(variant.run, inputs))
    generated.run("\n".join(text.lines()), f"multigrad call of {name}", text.scope)
    call: Caller = text.scope.pop("call")
    return call


class _Text:
    def __init__(
        self, after: Callable[..., Any], entry: Entry, variant: Variant, run: Callable[..., Any]
    ) -> None:
        self.entry = entry
        self.variant = variant
        self.scope: dict[str, Any] = {
            "MISSED": MISSED,
            "run": run,
            "after": after,
            "entry": entry,
            "variant": variant,
            "wrapped": lambda x: wrap(x) if is_array(x) else x,
            "is_static": is_static,
            "note_write": note_write,
        }
        self.temporaries = 0

    def name(self, prefix: str, x: Any) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = x
        return name

    def lines(self) -> Iterator[str]:
        yield "def call(args, kwargs):"
        positional, named = self.entry.structure.children
        yield from self.taken("args", positional, 0)
        yield from self.taken("kwargs", named, _size(positional))
        yield from self.checked_writes()
        given = ", ".join(self.raw(i) for i in self.entry.inputs)
        yield "    try:"
        yield f"        outs = run({given})"
        yield "    except Exception as error:"
        yield "        return after(error, entry, variant, args, kwargs)"
        for i, place in self.variant.writes.items():
            if place is not None:
                yield f"    l{i}[...] = outs[{place}]"
            elif self.entry.kinds[i].kind == TENSOR:
                yield f"    note_write(l{i}._cell)"
        yield (
            "    return "
            f"{self.result(self.variant.result.structure, iter(self.variant.result.places))}"
        )

    # Arguments

    def taken(self, x: str, structure: Structure, first: int) -> Iterator[str]:
        """Take apart the variable `x`, which must have that structure.

        Its leaves are numbered from `first`.
        """
        kind, aux, children = structure
        if kind is None:
            yield from self.leaf(x, first)
            return
        if kind.cls is type(None):
            yield f"    if {x} is not None: return MISSED"
            return
        names, firsts = [], []
        for child in children:
            self.temporaries += 1
            names.append(f"l{first}" if child.kind is None else f"x{self.temporaries}")
            firsts.append(first)
            first += _size(child)
        into = f"{', '.join(names)}{',' if len(names) == 1 else ''}"
        test = f"type({x}) is not {self.name('t', kind.cls)}" if x not in ("args", "kwargs") else ""
        if kind.family is tuple or kind.cls is dict:
            yield f"    if {test}{' or ' if test else ''}len({x}) != {len(names)}: return MISSED"
            if kind.cls is dict and names:
                plain = all(type(key) is str for key in aux[0])
                yield f"    if {self.other_aux(f'tuple({x})', aux[0], plain)}: return MISSED"
            if names:
                yield f"    {into} = {x}{'.values()' if kind.cls is dict else ''}"
        else:
            flat, other = f"f{self.temporaries}", f"a{self.temporaries}"
            yield f"    if {test}: return MISSED"
            yield f"    {flat}, {other} = {self.name('flatten', kind.flatten)}({x})"
            yield f"    {flat} = tuple({flat})"
            yield (
                f"    if {self.other_aux(other, aux)} or len({flat}) != {len(names)}: return MISSED"
            )
            if names:
                yield f"    {into} = {flat}"
        for name, child, number in zip(names, children, firsts, strict=True):
            yield from self.taken(name, child, number)

    def other_aux(self, x: str, aux: Any, plain: bool = False) -> str:
        """The test that a container has another aux than the recorded one."""
        if plain:
            return f"{x} != {self.name('k', aux)}"
        return (
            f"not is_static({self.name('hashable', hashable)}({x}), "
            f"{self.name('k', static(hashable(aux)))})"
        )

    def leaf(self, x: str, i: int) -> Iterator[str]:
        leaf = self.entry.kinds[i]
        test = [f"type({x}) is not {self.name('t', leaf.cls)}"]
        if leaf.kind == STATIC:
            yield f"    if {self.static_test(x, leaf)}: return MISSED"
            return
        if leaf.kind == NUMBER:
            yield f"    if {test[0]}: return MISSED"
            return
        array = x
        if leaf.kind == TENSOR:
            array = f"r{i}"
            base = self.name("e", leaf.library.element(leaf.form[1]))  # type: ignore[union-attr]
            yield (
                f"    if {test[0]} or {x}._elem is not {base} or {x}._node is not None: "
                "return MISSED"
            )
            if leaf.cls is not Tensor:
                yield f"    {x}._check()"
            yield f"    {array} = {x}._array"
            test = []
        shape, dtype, strides, device, weak = leaf.form
        test.append(f"{array}.shape != {self.name('s', shape)}")
        if leaf.kind != TENSOR:
            name = self.name("d", dtype)
            test.append(f"({array}.dtype is not {name} and {array}.dtype != {name})")
        if weak is not None:
            test.append(f"{array}.weak_type is not {weak}")
        if strides is not None:
            test.append(f"{array}.strides != {self.name('r', strides)}")
        elif device is not None and not _has_one_device(leaf.library):
            library: Any = leaf.library
            test.append(
                f"{self.name('device', library.device)}({self.name('xp', library.xp)}, {array}) != "
                f"{self.name('p', device)}"
            )
        yield f"    if {' or '.join(test)}: return MISSED"

    def static_test(self, x: str, leaf: Leaf) -> str:
        value, kind = leaf.form
        if kind in (bool, int, str, bytes):
            return f"type({x}) is not {self.name('t', kind)} or {x} != {self.name('k', value)}"
        if kind in (float, complex, tuple, frozenset, slice):
            return (
                f"type({x}) is not {self.name('t', kind)} or not is_static({x}, "
                f"{self.name('k', leaf.form)})"
            )
        known = self.name("k", value)
        return f"{x} is not {known} and (type({x}) is not {self.name('t', kind)} or {x} != {known})"

    def raw(self, i: int) -> str:
        return f"r{i}" if self.entry.kinds[i].kind == TENSOR else f"l{i}"

    def checked_writes(self) -> Iterator[str]:
        """Check that arguments that are written share no memory with others."""
        if not self.variant.writes:
            return
        library = next(leaf.library for leaf in self.entry.kinds if leaf.library is not None)
        if library.mutable:
            arrays = [self.raw(i) for i in self.entry.inputs if self.entry.kinds[i].kind != NUMBER]
            targets = [self.raw(i) for i in self.variant.writes]
            yield (
                f"    if not {self.name('apart', apart)}(({', '.join(targets)},), "
                f"({', '.join(arrays)},), {self.name('library', library)}): return MISSED"
            )
        else:
            tensors = [f"l{i}" for i in self.entry.inputs if self.entry.kinds[i].kind == TENSOR]
            yield (
                f"    if len({{{', '.join(f'id({x})' for x in tensors)}}}) != "
                f"{len(tensors)}: return MISSED"
            )

    # The result

    def result(self, structure: Structure, places: Iterator[tuple[str, Any]]) -> str:
        kind, aux, children = structure
        if kind is None:
            what, x = next(places)
            if what == "item":
                return f"outs[{x}][()]"
            if what == "whole":
                return f"{self.name('asarray', self.variant.result.library.xp.asarray)}(outs[{x}])"
            if what == "out":
                return f"wrapped(outs[{x}])" if self.variant.result.tensors else f"outs[{x}]"
            return f"l{x}" if what == "argument" else self.name("static", x)
        if kind.cls is type(None):
            return "None"
        parts = [self.result(child, places) for child in children]
        if kind.cls is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if kind.cls is list:
            return f"[{', '.join(parts)}]"
        if kind.cls is dict:
            keys = [self.name("k", key) for key in aux[0]]
            return (
                f"{{{', '.join(f'{key}: {part}' for key, part in zip(keys, parts, strict=True))}}}"
            )
        return f"{self.name('make', kind.unflatten)}({self.name('aux', aux)}, [{', '.join(parts)}])"


def _has_one_device(library: Any) -> bool:
    """Whether all arrays of a library are on the same device, so that no test is needed."""
    try:
        return len(library.backend.kernel("devices")(library.xp)) == 1
    except Exception:  # a library without inspection may raise any error
        return False


def _size(structure: Structure) -> int:
    return 1 if structure.kind is None else sum(map(_size, structure.children))
