"""The source of multigrad as syntax trees: what its modules import, what state they hold, and what
they write of each other's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import multigrad as mg

ROOT = Path(mg.__file__).parent


@dataclass
class Module:
    """One file. `name` is that below multigrad (core.tensor; "" for the package itself), `binds`
    what its imports bind: (module, name).
    """

    name: str
    path: Path
    tree: ast.Module
    binds: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def room(self) -> str:
        return self.name.partition(".")[0] or "__init__"


@cache
def modules() -> dict[str, Module]:
    """Every module of multigrad by its name."""
    parsed = {
        name_of(path): Module(name_of(path), path, ast.parse(path.read_text()))
        for path in sorted(ROOT.rglob("*.py"))
    }
    for module in parsed.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (base := _base(module, node)) is not None:
                for alias in node.names:
                    module.binds[alias.asname or alias.name] = (base, alias.name)
    return parsed


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _base(module: Module, node: ast.ImportFrom) -> str | None:
    """The module below multigrad that an import takes names from, None for another package."""
    if not node.level:
        first, _, rest = (node.module or "").partition(".")
        return rest if first == "multigrad" else None
    package = module.path.relative_to(ROOT).parent.parts
    return ".".join(
        [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
    ).strip(".")


def imports(module: Module) -> Iterator[str]:
    """The modules of multigrad that one imports, anywhere in its file: in functions and for type
    checkers, too.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (base := _base(module, node)) is not None:
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                # of a stub, its folder
                yield (
                    inner
                    if inner in modules()
                    else base
                    if base in modules()
                    else base.rpartition(".")[0]
                )


def private_names(module: Module) -> Iterator[tuple[str, str]]:
    """The private names of modules that a file uses, by import or as an attribute: (room, name)."""
    for base, name in module.binds.values():
        if name.startswith("_") and not name.startswith("__"):
            yield base.partition(".")[0], name
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        target = ".".join(filter(None, module.binds.get(node.value.id, ())))
        if (
            target
            and target in modules()
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ):
            yield target.partition(".")[0], node.attr


# State

KEEPERS = {
    "ContextVar",
    "Containers",
    "Lock",
    "RLock",
    "local",
    "new_lock",
    "WeakKeyDictionary",
    "WeakValueDictionary",
    "WeakSet",
    "count",
    "PluginManager",
}
"""What is state wherever it stands."""
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque", "fromkeys"}
CHANGES = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "move_to_end",
    "pop",
    "popitem",
    "popleft",
    "remove",
    "reset",
    "reverse",
    "set",
    "setdefault",
    "sort",
    "update",
}
"""The methods that change a container, or a context variable."""


@cache
def state() -> set[tuple[str, str]]:
    """Each piece of mutable module-level state, (module, name): locks, context variables and the
    like, variables that a function assigns (`global`), and the dictionaries, lists and sets that
    begin empty, or that something writes to. Tables that stay as they are written are none."""
    kept = {
        (m.name, name) for m in modules().values() for name, value in _assigned(m) if _keeps(value)
    }
    kept |= {
        (m.name, name)
        for m in modules().values()
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    containers = {
        (m.name, name)
        for m in modules().values()
        for name, value in _assigned(m)
        if _contains(value)
    }
    return kept | {
        target for writer in modules().values() for target in writes(writer) if target in containers
    }


def _assigned(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that a module gives values when it is imported."""
    for node in ast.walk(
        ast.Module(
            [
                n
                for n in module.tree.body
                if isinstance(n, (ast.Assign, ast.AnnAssign, ast.If, ast.Try))
            ],
            [],
        )
    ):
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        for target in targets:
            if (
                isinstance(target, ast.Name)
                and isinstance(node, (ast.Assign, ast.AnnAssign))
                and node.value is not None
                and not (
                    isinstance(node, ast.AnnAssign)
                    and ast.unparse(node.annotation).startswith("Mapping[")
                )
            ):
                yield target.id, node.value


def _called(value: ast.AST) -> str:
    function = value.func if isinstance(value, ast.Call) else None
    return (
        function.id
        if isinstance(function, ast.Name)
        else function.attr
        if isinstance(function, ast.Attribute)
        else ""
    )


def _keeps(value: ast.expr) -> bool:
    empty = (isinstance(value, ast.Dict) and not value.keys) or (
        isinstance(value, ast.List) and not value.elts
    )
    return (
        empty
        or (_called(value) == "set" and not value.args)
        or any(_called(n) in KEEPERS for n in ast.walk(value))
    )  # type: ignore[attr-defined]


def _contains(value: ast.expr) -> bool:
    return (
        isinstance(value, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp))
        or _called(value) in CONTAINERS
    )


def writes(module: Module) -> Iterator[tuple[str, str]]:
    """What a module changes of a module's names, its own and others': `name[...] = `,
    `name.append()`, `module.name = `, `Class.name = `.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Assign, ast.Delete)):
            targets = [
                t
                for target in node.targets
                for t in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in CHANGES
            and isinstance(node.ctx, ast.Load)
        ):
            targets = [ast.Subscript(node.value, ast.Constant(0))]
        elif (
            isinstance(node, ast.Call)
            and _called(node) in ("setattr", "delattr")
            and isinstance(node.func, ast.Name)
        ):
            targets = [
                ast.Attribute(
                    node.args[0],
                    str(node.args[1].value) if isinstance(node.args[1], ast.Constant) else "...",
                )
            ]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Subscript):
                yield from _meant(module, target.value)
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                yield from _attribute(module, target)


def _meant(module: Module, value: ast.expr) -> Iterator[tuple[str, str]]:
    """The name of a module that an expression stands for, if it does."""
    if isinstance(value, ast.Name):
        base, name = module.binds.get(value.id, (module.name, value.id))
        if f"{base}.{name}" not in modules():
            yield base, name
    elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        yield from _attribute(module, value)


def _attribute(module: Module, value: ast.Attribute) -> Iterator[tuple[str, str]]:
    """`module.name`, or `Class.name` of an imported class.

    An assignment to an attribute of an imported instance is the instance's affair.
    """
    assert isinstance(value.value, ast.Name)
    if value.value.id in module.binds:
        base, name = module.binds[value.value.id]
        inner = f"{base}.{name}".strip(".")
        if inner in modules():
            yield inner, value.attr
        elif name[:1].isupper():
            yield base, f"{name}.{value.attr}"
