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
            return after()(error, entry, variant, args, kwargs)
        return o0, {"w": o1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakMethod

from ..core.aliasing import note_write
from ..core.element import is_array
from ..core.tensor import Tensor, wrap
from ..dispatch import generated
from ..program import run_at
from ..tree import Structure, size
from .leaves import NUMBER, STATIC, TENSOR, Arguments, Leaf, hashable, is_static, raw, static
from .variants import Entry, Variant
from .writes import apart

MISSED = object()
"""The result of such a function for arguments with another key."""


Caller = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Such a function."""


def caller(
    name: str, after: WeakMethod[Any], entry: Entry, variant: Variant, arguments: Arguments
) -> Caller:
    """Generate the function, for arguments like these. It does not keep itself alive.

    name   that of the compiled function, for tracebacks
    after  a weak reference to what continues a call whose program raised
    """
    run = run_at(variant.run, (raw(arguments.leaves[i]) for i in entry.inputs))
    text = _Text(entry, variant)
    text.scope |= {"run": run, "after": after}
    generated.run("\n".join(text.lines()), f"multigrad call of {name}", text.scope)
    call: Caller = text.scope.pop("call")
    return call


class _Text:
    def __init__(self, entry: Entry, variant: Variant) -> None:
        self.entry = entry
        self.variant = variant
        self.library: Any = variant.library
        self.scope: dict[str, Any] = {
            "MISSED": MISSED,
            "entry": entry,
            "variant": variant,
            "wrapped": lambda x: wrap(x) if is_array(x) else x,
            "is_static": is_static,
            "note_write": note_write,
        }

    def name(self, prefix: str, x: Any) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = x
        return name

    def lines(self) -> Iterator[str]:
        yield "def call(args, kwargs):"
        positional, named = self.entry.structure.children
        yield from self.split("args", positional, 0)
        yield from self.split("kwargs", named, size(positional))
        if self.variant.writes:
            yield _missed(self.shared_writes())
        inputs = ", ".join(self.raw(i) for i in self.entry.inputs)
        yield "    try:"
        yield f"        outs = run({inputs})"
        yield "    except Exception as error:"
        yield "        return after()(error, entry, variant, args, kwargs)"
        for i, place in self.variant.writes.items():
            if place is not None:
                yield f"    l{i}[...] = outs[{place}]"
            elif self.entry.kinds[i].kind == TENSOR:
                yield f"    note_write(l{i}._cell)"
        yield f"    return {self.result(self.variant.structure, iter(self.variant.places))}"

    # Arguments

    def split(self, x: str, structure: Structure, first: int) -> Iterator[str]:
        """Split the variable `x`, which must have that structure, into its leaves.

        These are numbered from `first`.
        """
        kind, aux, children = structure
        if kind is None:
            yield from self.leaf(x, first)
            return
        if kind.cls is type(None):
            yield _missed(f"{x} is not None")
            return
        names: list[str] = []
        firsts: list[int] = []
        for child in children:
            names.append(f"l{first}" if child.kind is None else f"{x}_{len(names)}")
            firsts.append(first)
            first += size(child)
        if x not in ("args", "kwargs"):
            yield _missed(f"type({x}) is not {self.name('t', kind.cls)}")
        parts = x
        if kind.family is tuple or kind.cls is dict:
            yield _missed(f"len({x}) != {len(names)}")
            if kind.cls is dict and names:
                parts, keys = f"{x}.values()", aux[0]
                plain = all(type(key) is str for key in keys)
                other = f"tuple({x}) != {self.name('k', keys)}"
                yield _missed(other if plain else self.other_aux(f"tuple({x})", keys))
        else:
            parts = f"f{x}"
            yield f"    {parts}, a{x} = {self.name('flatten', kind.flatten)}({x})"
            yield f"    {parts} = tuple({parts})"
            yield _missed(f"{self.other_aux(f'a{x}', aux)} or len({parts}) != {len(names)}")
        if names:
            yield f"    {generated.tuple_text(names)} = {parts}"
        for name, child, number in zip(names, children, firsts, strict=True):
            yield from self.split(name, child, number)

    def other_aux(self, x: str, aux: Any) -> str:
        """The test that a container has another aux than the recorded one."""
        key = self.name("k", static(hashable(aux)))
        return f"not is_static({self.name('hashable', hashable)}({x}), {key})"

    def leaf(self, x: str, i: int) -> Iterator[str]:
        leaf = self.entry.kinds[i]
        if leaf.kind == STATIC:
            yield _missed(self.other_static(x, leaf))
            return
        tests = [f"type({x}) is not {self.name('t', leaf.cls)}"]
        if leaf.kind == NUMBER:
            yield _missed(*tests)
            return
        shape, dtype, strides, device, weak = leaf.form
        array = x
        if leaf.kind == TENSOR:
            array = f"r{i}"
            base = self.name("e", self.library.element(dtype))
            yield _missed(*tests, f"{x}._elem is not {base}", f"{x}._node is not None")
            if leaf.cls is not Tensor:
                yield f"    {x}._check()"
            yield f"    {array} = {x}._array"
            tests = []
        tests.append(f"{array}.shape != {self.name('s', shape)}")
        if leaf.kind != TENSOR:
            name = self.name("d", dtype)
            tests.append(f"({array}.dtype is not {name} and {array}.dtype != {name})")
        if weak is not None:
            tests.append(f"{array}.weak_type is not {weak}")
        if strides is not None:
            tests.append(f"{array}.strides != {self.name('r', strides)}")
        elif device is not None and not _has_one_device(self.library):
            of = f"{self.name('device', self.library.device)}({self.name('xp', self.library.xp)}"
            tests.append(f"{of}, {array}) != {self.name('p', device)}")
        yield _missed(*tests)

    def other_static(self, x: str, leaf: Leaf) -> str:
        """The test that a static value is another one than the recorded one."""
        value, kind = leaf.form
        expected = self.name("k", value)
        if kind in (bool, int, str, bytes):
            return f"type({x}) is not {self.name('t', kind)} or {x} != {expected}"
        return f"{x} is not {expected} and not is_static({x}, {self.name('k', leaf.form)})"

    def raw(self, i: int) -> str:
        return f"r{i}" if self.entry.kinds[i].kind == TENSOR else f"l{i}"

    def shared_writes(self) -> str:
        """The test that arguments that are written share memory with others."""
        kinds = {i: self.entry.kinds[i].kind for i in self.entry.inputs}
        if self.library.mutable:
            arrays = generated.tuple_text(
                self.raw(i) for i, kind in kinds.items() if kind != NUMBER
            )
            targets = generated.tuple_text(map(self.raw, self.variant.writes))
            function, library = self.name("apart", apart), self.name("library", self.library)
            return f"not {function}({targets}, {arrays}, {library})"
        ids = [f"id(l{i})" for i, kind in kinds.items() if kind == TENSOR]
        return f"len({{{', '.join(ids)}}}) != {len(ids)}"

    # The result

    def result(self, structure: Structure, places: Iterator[tuple[str, Any]]) -> str:
        kind, aux, children = structure
        if kind is None:
            what, x = next(places)
            if what == "item":
                return f"outs[{x}][()]"
            if what == "whole":
                return f"{self.name('asarray', self.library.xp.asarray)}(outs[{x}])"
            if what == "out":
                return f"wrapped(outs[{x}])" if self.variant.tensors else f"outs[{x}]"
            return f"l{x}" if what == "argument" else self.name("static", x)
        if kind.cls is type(None):
            return "None"
        parts = [self.result(child, places) for child in children]
        if kind.cls is tuple:
            return generated.tuple_text(parts)
        if kind.cls is dict:
            keys = (self.name("k", key) for key in aux[0])
            items = (f"{key}: {part}" for key, part in zip(keys, parts, strict=True))
            return f"{{{', '.join(items)}}}"
        elements = f"[{', '.join(parts)}]"
        if kind.cls is list:
            return elements
        return f"{self.name('make', kind.unflatten)}({self.name('aux', aux)}, {elements})"


def _missed(*tests: str) -> str:
    return f"    if {' or '.join(tests)}: return MISSED"


def _has_one_device(library: Any) -> bool:
    """Whether all arrays of a library are on the same device, so that no test is needed."""
    try:
        return len(library.backend.kernel("devices")(library.xp)) == 1
    except Exception:  # a library without inspection may raise any error
        return False
