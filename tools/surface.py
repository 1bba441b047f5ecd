"""Write the public surface of every distribution into tools/surface.txt: one line a name.

    python tools/surface.py            write it, when a public name has changed on purpose
    python tools/surface.py --check    write nothing; status 1 if it differs

The lines say what a name is, and its signature: modules, functions, classes and their members as
their files and stubs have them, operations as the table has them, and what else a user may write:
NumPy's functions of Tensors, commands, options, hooks, fixtures, entry points, extras, variables,
targets of make. Modules are read, not imported, so their libraries need not be installed. An object
of several names is described under the shortest, and the other lines say `same as`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from writing import write_or_check

import multigrad as mg
from multigrad import cli, extend
from multigrad.protocols import functions, ufuncs
from multigrad.protocols.table import COUNTERPARTS
from multigrad.registry import OPS
from multigrad_autograd.numpy import table

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "tools" / "surface.txt"
CHANGED = (
    "the public surface changed: run `python tools/surface.py`, and name the change in CHANGELOG.md"
)
HEADER = "# Written by `python tools/surface.py`: each public name, what it is, its signature.\n"
PROJECTS = [ROOT, ROOT / "conformance", *sorted((ROOT / "plugins").glob("multigrad-*"))]
HIPS = (
    "builtins core differential_operators extend misc misc.fixed_points misc.flatten "
    "misc.optimizers misc.tracers numpy numpy.fft numpy.linalg numpy.numpy_boxes numpy.numpy_vjps "
    "numpy.numpy_vspaces numpy.numpy_wrapper numpy.random scipy test_util tracer util wrap_util"
)
MORE = {
    "multigrad": ["autograd.gradcheck", "autograd.variable", "clients", "errors"],
    "multigrad_autograd": HIPS.split(),
    "multigrad_special": ["functions"],
}
"""The public modules that no `__all__` of a public module lists."""

Line = tuple[str, str, str]
"""A name, what it is, and its signature."""


# -- the files


@dataclass
class Module:
    """What each name of a file is bound to: statements, or a name in another module."""

    name: str
    is_package: bool
    bound: dict[str, list[ast.stmt] | tuple[str, str]] = field(default_factory=dict)
    listed: list[str] | None = None
    starred: list[str] = field(default_factory=list)
    overloads: dict[str, list[ast.stmt]] = field(default_factory=dict)
    """Those in the stub of a package, of functions that its modules define."""

    def public(self) -> list[str]:
        """The names of `__all__`, else those that the file defines without an underscore."""
        own = [name for name, what in self.bound.items() if isinstance(what, list)]
        return [n for n in own if not n.startswith("_")] if self.listed is None else self.listed

    def read(self, body: list[ast.stmt]) -> None:
        """Bind the names of these statements; what type checkers see replaces what runs."""
        for node in body:
            match node:
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    self.read(node.orelse)
                    self.read(node.body)
                case ast.ImportFrom():
                    self.read_import(node)
                case ast.FunctionDef() | ast.ClassDef():
                    add(self.bound, node)
                case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                    self.read_assignment(node)

    def read_import(self, node: ast.ImportFrom) -> None:
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + self.is_package] if node.level else []
        source = ".".join([*kept, *filter(None, [node.module])])
        for alias in node.names:
            if alias.name != "*":
                self.bound[alias.asname or alias.name] = source, alias.name
            elif (starred := module(source)) is not None:
                self.starred += starred.public()
                self.bound |= {name: (source, name) for name in starred.public()}

    def read_assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        for name in assigned(node):
            if name != "__all__":
                self.bound[name] = [node]
            elif isinstance(node.value, ast.List):
                self.listed = [ast.literal_eval(e) for e in node.value.elts]
            else:  # `+=` with the `__all__` of a module that was imported with a star
                self.listed = [*(self.listed or []), *self.starred]


def assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [n for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [n.id for n in names if isinstance(n, ast.Name)]


def decorators(node: ast.stmt) -> list[str]:
    return [ast.unparse(d) for d in getattr(node, "decorator_list", ())]


def add(bound: dict[str, Any], node: ast.FunctionDef | ast.ClassDef) -> None:
    """Bind a definition beside its overloads, or the parts of its property, if it has some."""
    earlier = bound.get(node.name)
    kept = [n for n in earlier if "overload" in decorators(n)] if isinstance(earlier, list) else []
    if any(d.startswith(f"{node.name}.") for d in decorators(node)):
        kept = earlier
    bound[node.name] = [*kept, node]


@cache
def module(name: str) -> Module | None:
    """A module of one of the distributions, read from its stub if it has one."""
    path = Path(*name.split("."))
    files = path.with_suffix(".pyi"), path / "__init__.py", path.with_suffix(".py")
    for file in (project / file for project in PROJECTS for file in files):
        if file.is_file():
            found = Module(name, file.name == "__init__.py")
            found.read(ast.parse(file.read_text()).body)
            stub = file.with_suffix(".pyi")
            if found.is_package and stub.is_file():
                nodes = ast.parse(stub.read_text()).body
                found.read([n for n in nodes if "overload" not in decorators(n)])
                for node in nodes:
                    if "overload" in decorators(node):
                        found.overloads.setdefault(node.name, []).append(node)
            return found
    return None


@dataclass(frozen=True)
class Definition:
    """Where a name is defined, and by which statements: none for a module."""

    module: str
    name: str
    nodes: tuple[ast.stmt, ...]


def definition(source: str, name: str) -> Definition | None:
    """The definition of a name of a module; None if it is a library's."""
    place = module(source)
    what = place.bound.get(name) if place else None
    if isinstance(what, list):
        return Definition(source, name, tuple(what))
    if place is not None and what is not None and what != (source, name):
        found = definition(*what)
        overloads = place.overloads.get(name, ())
        return found and replace(found, nodes=(*overloads, *found.nodes))
    return None if module(f"{source}.{name}") is None else Definition(f"{source}.{name}", "", ())


# -- names of modules


def public_modules() -> list[str]:
    """The modules of all distributions from which users import names."""
    roots = [path.parent.name for p in PROJECTS for path in p.glob("multigrad*/__init__.py")]
    waiting = [*roots, *(f"{root}.{name}" for root, names in MORE.items() for name in names)]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        place = module(name)
        assert place is not None, f"{name} is no module"
        found[name] = None
        members = [definition(name, member) for member in place.public()]
        waiting += [d.module for d in members if d and not d.nodes and d.module not in found]
    return sorted(found)


def names() -> list[tuple[str, Definition | None]]:
    """The public names of all modules, and their definitions.

    A function may have the name of a module, which it hides.
    """
    found: list[tuple[str, Definition | None]] = []
    for name in public_modules():
        place = module(name)
        assert place is not None
        found.append((name, Definition(name, "", ())))
        for member in place.public():
            d = definition(name, member)
            if d is None or d.nodes or d.module != f"{name}.{member}":  # its own submodule follows
                found.append((f"{name}.{member}", d))
    return found


def of_modules() -> Iterator[Line]:
    public = names()
    shortest: dict[tuple[str, str], str] = {}
    for name, d in sorted(public, key=lambda item: (item[0].count("."), item[0])):
        if d is not None:
            shortest.setdefault((d.module, d.name), name)
    for name, d in public:
        if d is None:
            yield name, "a library's", ""
        elif shortest[d.module, d.name] != name:
            yield name, "same as", shortest[d.module, d.name]
        elif not d.nodes:
            place = module(name)
            yield name, "module", "" if place and place.listed is not None else "without __all__"
        else:
            yield from described(name, d, shortest)


def described(name: str, d: Definition, shortest: dict[tuple[str, str], str]) -> Iterator[Line]:
    for node in d.nodes:
        if isinstance(node, ast.ClassDef):
            members: dict[str, list[ast.stmt]] = {}
            bases = taken(d.module, node, members, shortest)
            marks = [
                *(f"@{x}" for x in decorators(node)),
                *([f"({', '.join(bases)})"] if bases else []),
            ]
            yield name, "class", " ".join(marks)
            for member, parts in members.items():
                for part in parts:
                    yield one(f"{name}.{member}", part, inside=True)
        else:
            yield one(name, node)


def taken(
    source: str,
    node: ast.ClassDef,
    members: dict[str, list[ast.stmt]],
    shortest: dict[tuple[str, str], str],
) -> list[str]:
    """Add the members of a class and of its private bases; return the names of other bases."""
    for member, parts in members_of(node).items():
        members.setdefault(member, parts)
    shown = []
    for base in node.bases:
        at = base.value if isinstance(base, ast.Subscript) else base
        d = definition(source, at.id) if isinstance(at, ast.Name) else None
        if d is None:
            shown.append(ast.unparse(base))
        elif (d.module, d.name) in shortest:
            shown.append(shortest[d.module, d.name])
        else:
            for parent in d.nodes:
                if isinstance(parent, ast.ClassDef):
                    shown += taken(d.module, parent, members, shortest)
    return list(dict.fromkeys([*shown, *(ast.unparse(k) for k in node.keywords)]))


def members_of(node: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    """The public members of a class: methods, attributes, slots, what `__init__` assigns."""
    bound: dict[str, list[ast.stmt]] = {}
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            add(bound, part)
        for name in assigned(part):
            if name == "__slots__":
                value = part.value  # type: ignore[attr-defined]
                slots = ast.literal_eval(value) if isinstance(value, ast.Tuple) else ()
                for slot in slots:
                    bound.setdefault(slot, [part])
            else:
                bound[name] = [part]
    for part in ast.walk(next((f for f in bound.get("__init__", ())), ast.Pass())):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                bound.setdefault(name, [ast.Pass()])
    return {n: parts for n, parts in bound.items() if not n.startswith("_") or is_special(n, parts)}


def is_special(name: str, parts: list[ast.stmt]) -> bool:
    """Whether it is a method that Python calls for a user."""
    inner = ("__init_subclass__", "__post_init__", "__repr__")
    return name.endswith("__") and name not in inner and isinstance(parts[0], ast.FunctionDef)


def one(name: str, node: ast.stmt, inside: bool = False) -> Line:
    match node:
        case ast.FunctionDef():
            return function(name, node, inside)
        case ast.ClassDef():
            return name, "class", ""
        case ast.AnnAssign():
            default = f" = {short(node.value)}" if node.value else ""
            return (
                name,
                "attribute" if inside else "value",
                f": {ast.unparse(node.annotation)}{default}",
            )
        case ast.Assign() if not inside or name.rpartition(".")[2] in assigned(node):
            return name, "attribute" if inside else "value", f"= {short(node.value)}"
    return name, "attribute", ""


def short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."


KINDS = ("overload", "classmethod", "staticmethod", "property", "setter", "deleter")
SILENT = ("entry", "_entry", "conversion", "abstractmethod")
"""Decorators that leave the signature of a function as it is."""


def function(name: str, node: ast.FunctionDef, inside: bool) -> Line:
    marks = [d.rpartition(".")[2].removeprefix("cached_") for d in decorators(node)]
    kind = [k for k in KINDS if k in marks] or ["method" if inside else "function"]
    kind += [f"@{mark}" for mark in marks if mark not in (*KINDS, *SILENT)]
    arguments = without_self(node.args) if inside and "staticmethod" not in marks else node.args
    returns = f"-> {ast.unparse(node.returns)}" if node.returns else ""
    call = "" if "property" in marks else f"({ast.unparse(arguments)})"
    return name, " ".join(kind), " ".join(filter(None, [call, returns]))


def without_self(args: ast.arguments) -> ast.arguments:
    fields = dict(ast.iter_fields(args))
    first = "posonlyargs" if args.posonlyargs else "args"
    return ast.arguments(**{**fields, first: fields[first][1:]})


# -- operations, functions of boxes, distributions, commands and options


def of_operations() -> Iterator[Line]:
    mg.zeros(1)  # which loads the table
    extend.load_plugins()
    for op in OPS.values():
        # multigrad_autograd declares its own when it is imported; users call them by SciPy's names
        if op.public and op.module.startswith(("multigrad.", "multigrad_special.")):
            outputs = f" -> ({', '.join(op.outputs)})" if op.outputs else ""
            yield f"operation {op.name}", op.kind, f"{op.signature}{outputs}"


def of_boxes() -> Iterator[Line]:
    """The functions of multigrad_autograd.numpy that take boxes; all others are NumPy's."""
    derived = {*table.ARRAYS, *table.UNARY, *table.BINARY, *table.SEQUENCES, *table._OWN}
    for name in derived | table.NONDIFFERENTIABLE:
        yield f"multigrad_autograd.numpy.{name}", "" if name in derived else "constant", ""


def of_protocols() -> Iterator[Line]:
    """The ufuncs and functions of NumPy that run an operation on Tensors."""
    for name in {*ufuncs.NAMES, *ufuncs.COMPOSED, *functions.SAME, *COUNTERPARTS}:
        yield f"numpy {name}", "", ""


def of_distributions() -> Iterator[Line]:
    for path in PROJECTS:
        project = tomllib.loads((path / "pyproject.toml").read_text())["project"]
        name = project["name"]
        yield (
            f"distribution {name}",
            f"Python {project['requires-python']}",
            ", ".join(re.split(r"[<>=]", x)[0] for x in project["dependencies"]),
        )
        for extra in project.get("optional-dependencies", {}):
            yield f"distribution {name}[{extra}]", "extra", ""
        for script, place in project.get("scripts", {}).items():
            yield f"distribution {name}", "script", f"{script} = {place}"
        for group, points in project.get("entry-points", {}).items():
            for point, place in points.items():
                yield f"distribution {name}", f"entry point of {group}", f"{point} = {place}"


def of_commands() -> Iterator[Line]:
    waiting = [("multigrad", cli._parser())]
    for name, parser in waiting:
        yield f"command {name}", "", ""
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{name} {word}", command) for word, command in action.choices.items()]
            elif "--help" not in action.option_strings:
                what = vars(action)
                word = " ".join(action.option_strings) or action.metavar or action.dest
                yield (
                    f"command {name} {word}",
                    "option" if action.option_strings else "argument",
                    told((key, what[key]) for key in ("nargs", "type", "choices", "default")),
                )


def told(settings: Iterable[tuple[str, Any]]) -> str:
    """The settings that say something."""
    texts = ((key, getattr(x, "__name__", repr(x))) for key, x in settings if x or x == 0)
    return ", ".join(f"{key}={text}" for key, text in texts)


def of_pytest() -> Iterator[Line]:
    """The options and the fixtures of multigrad-conformance."""
    for name in ("plugin", "fixtures"):
        place = module(f"multigrad_conformance.{name}")
        assert place is not None
        for member, nodes in place.bound.items():
            for node in nodes if isinstance(nodes, list) else []:
                if any(d.startswith("pytest.fixture") for d in decorators(node)):
                    yield one(f"pytest {member}", node)[0], "fixture", ""
                for call in ast.walk(node):
                    match call:
                        case ast.Call(func=ast.Attribute(attr="addoption" | "addini" as kind)):
                            yield option(call, kind)


def option(call: ast.Call, kind: str) -> Line:
    settings = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg != "help"}
    return (
        f"pytest {ast.literal_eval(call.args[0])}",
        kind.removeprefix("add"),
        ", ".join(f"{key}={text}" for key, text in settings.items()),
    )


def of_hooks() -> Iterator[Line]:
    place = module("multigrad.plugins.hooks")
    assert place is not None
    for name, nodes in place.bound.items():
        for node in nodes if isinstance(nodes, list) else []:
            if "hookspec" in decorators(node):
                yield f"hook {name}", "", one(name, node)[2]


def of_variables() -> Iterator[Line]:
    """The variables of the environment or of a plugin that some file reads."""
    found = set()
    for project in PROJECTS:
        for path in project.glob("multigrad*/**/*.py"):
            found |= set(re.findall(r"\"(MULTIGRAD_[A-Z]+)\"", path.read_text()))
    for name in found:
        yield f"variable {name}", "", ""


def of_make() -> Iterator[Line]:
    for target in re.findall(r"(?m)^#   (make [\w-]+) ", (ROOT / "Makefile").read_text()):
        yield target, "", ""


SOURCES = (
    of_modules,
    of_operations,
    of_boxes,
    of_protocols,
    of_distributions,
    of_commands,
    of_pytest,
    of_hooks,
    of_variables,
    of_make,
)


def texts() -> dict[Path, str]:
    """The text of the file: the lines of each source, sorted."""
    parts = [HEADER]
    for source in SOURCES:
        # in the order of the file where names are equal, as those of overloads
        lines = sorted(source(), key=lambda line: line[0])
        parts.append("".join(f"{'  '.join(filter(None, line))}\n" for line in lines))
    return {PLACE: "\n".join(parts)}


if __name__ == "__main__":
    status = write_or_check(__doc__, texts)
    if status:
        print(CHANGED)
    sys.exit(status)
