"""The rooms of the project: imports point one way, rules see the standard only, files stay
readable.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import package_source as source
import pytest

import multigrad as mg
from multigrad import registry
from multigrad.backends.kernels import DEFAULTS
from multigrad.provided import provide

ROOT = Path(mg.__file__).parent

# A room may import itself and what stands in its row, late imports in functions included.
BASE = {"errors", "locks", "provided", "registry", "tracebacks"}
CORE = BASE | {"observe", "backends", "core", "dispatch", "memory", "backward"}
ALLOWED = {
    "errors": set(),
    "locks": set(),
    "provided": set(),
    "tracebacks": {"errors", "provided"},
    "observe": set(),
    "registry": {"errors", "locks", "provided", "tracebacks"},
    "program": BASE | {"registry"},
    "ops": BASE,
    "optimizing": BASE | {"program"},
    "backends": BASE | {"program", "optimizing"},
    "core": BASE | {"observe", "backends"},
    "dispatch": BASE | {"observe", "backends", "core"},
    "memory": BASE | {"observe", "backends", "core", "dispatch"},
    "backward": BASE | {"observe", "backends", "core", "dispatch", "memory"},
    "tree": CORE,
    "layers": CORE | {"tree"},
    "custom": CORE | {"tree", "layers"},
    "inspection": CORE,
    "methods": CORE,
    "namespace": CORE | {"ops", "inspection", "methods"},
    "protocols": CORE,
    "clients": CORE | {"namespace"},
    "typing": {"namespace"},
    "func": CORE | {"typing", "tree", "layers", "custom", "namespace", "compiling", "program"},
    "autograd": CORE | {"typing", "tree", "layers", "custom", "namespace", "func", "tools"},
    "tools": CORE | {"tree", "layers", "custom", "namespace", "func", "autograd"},
    "extend": CORE | {"tree", "layers", "custom", "namespace"},
    "compiling": CORE | {"program", "tree", "layers", "namespace", "extend"},
    "__init__": CORE
    | {
        "typing",
        "methods",
        "namespace",
        "protocols",
        "clients",
        "autograd",
        "func",
        "tools",
        "extend",
    },
    "script": {"observe", "tools"},
    "templates": CORE | {"namespace", ""},
    "cli": CORE | {"namespace", "autograd", "func", "script", "templates", "tools", ""},
    "__main__": {"cli"},
}
LIBRARIES = {
    "numpy",
    "jax",
    "cupy",
    "cupyx",
    "torch",
    "array_api_strict",
    "array_api_compat",
    "scipy",
}


ASKED_BY_NUMPY = {path for path in (ROOT / "protocols").glob("*.py") if path.name != "__init__.py"}
"""The modules that are imported when NumPy first calls a protocol."""


def modules():
    return sorted(p for p in ROOT.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


def imported(path: Path):
    """(room or library, at module level) of every import of a file."""
    tree = ast.parse(path.read_text())
    package = list(path.relative_to(ROOT.parent).parts[:-1])
    top = set(
        ast.walk(
            ast.Module(
                [n for n in tree.body if not isinstance(n, (ast.FunctionDef, ast.ClassDef))], []
            )
        )
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split("."), node in top
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = base + (node.module.split(".") if node.module else [])
            if name == ["multigrad"]:
                for alias in node.names:
                    yield [*name, alias.name], node in top
            else:
                yield name, node in top


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    own = room(path)
    for name, top in imported(path):
        if name[0] == "multigrad":
            target = name[1] if len(name) > 1 else ""
            assert target == own or target in ALLOWED[own], (
                f"{path} imports multigrad.{'.'.join(name[1:])}"
            )
        elif name[0] in LIBRARIES:
            assert not top or own == "backends" or path in ASKED_BY_NUMPY, (
                f"{path} imports {name[0]} when it is itself imported"
            )


def test_rules_use_no_library():
    for path in (ROOT / "ops").rglob("*.py"):
        names = {name[0] for name, _ in imported(path)}
        assert not names & LIBRARIES, path


def test_no_library_is_named_outside_its_backend():
    for path in modules():
        if room(path) == "backends":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(
                isinstance(c, ast.Constant) and c.value in ("jax", "cupy", "torch")
                for c in node.comparators
            ):
                raise AssertionError(f"{path}:{node.lineno} tests for one library")


def test_the_table_is_documented_and_lean():
    mg.zeros(1)
    assert len(registry.Op.__dataclass_fields__) < 15
    for op in registry.OPS.values():
        assert op.doc, op.name
        assert op.kind in registry.KINDS
        if op.kind in ("elementwise", "linear", "multilinear", "define"):
            assert op.vjp, f"{op.name} has no vjp"
        if op.kind == "define":
            assert op.jvp is not None, f"{op.name} has no jvp"
    assert all(f.__doc__ for f in DEFAULTS.values())


# Rooms

CIRCLES: dict[tuple[str, str], str] = {}
"""The imports without which no room could be reached from itself, each with its reason."""


def test_no_room_imports_itself_through_others():
    arrows = {
        (m, target) for m, module in source.modules().items() for target in source.imports(module)
    }
    assert set(CIRCLES) <= arrows, "these imports are gone: take them out"
    graph: dict[str, set[str]] = {}
    for m, target in arrows - set(CIRCLES):
        own, other = source.modules()[m].room, source.modules()[target].room
        if own != other and other != "__init__":
            graph.setdefault(own, set()).add(other)
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_importing_multigrad_imports_no_tool():
    """Nor does what every program does: a forward, a backward, a transformation."""
    code = (
        "import sys\n"
        "def tools(): return [m for m in sys.modules if m.startswith('multigrad.tools')]\n"
        "import multigrad as mg; assert not tools(), tools()\n"
        "import multigrad.autograd; assert not tools(), tools()\n"
        "x = mg.asarray([1.0, 2.0], requires_grad=True); y = mg.sum(mg.sin(x) * x); "
        "y.backward(); assert not tools(), tools()\n"
        "mg.func.vmap(mg.func.grad(lambda r: mg.sum(r * r)))(x.detach().reshape((2, 1))); "
        "assert not tools(), tools()\n"
        "mg.autograd.profiler.profile; assert tools()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


# What a module does to another one

PATCHES: dict[tuple[str, str, str], str] = {}
"""The names of modules and classes that another module assigns: (who, module, name)."""


def test_no_module_assigns_names_of_another():
    """What a module above defines is registered: `provide(module, name=function)` of what is
    `wanted` there, `_define` of Surface.
    """
    found = {
        (m, *target)
        for m, module in source.modules().items()
        for target in source.writes(module)
        if target[0] != m and target not in source.state()
    }
    assert found - set(PATCHES) == set()
    assert set(PATCHES) - found == set(), "gone: take them out of the list"


def _decorated(module: source.Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(d, ast.Name) and d.id == "wanted" for d in node.decorator_list
        ):
            yield node.name


def _provided(module: source.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "provide"
        ):
            assert isinstance(node.args[0], ast.Name) and all(k.arg for k in node.keywords), (
                f"{module.name}: provide(module, name=function)"
            )
            base, name = module.binds[node.args[0].id]
            yield from ((f"{base}.{name}".strip("."), str(k.arg)) for k in node.keywords)


def test_assertions_only_narrow_types():
    """python -O leaves them out: they have no effect, and users are told by errors."""
    paths = [*ROOT.rglob("*.py"), *(ROOT.parent / "plugins").glob("*/multigrad_*/**/*.py")]
    texts = {path.relative_to(ROOT.parent).as_posix(): path.read_text() for path in paths}
    assertions = [
        (path, node)
        for path, text in texts.items()
        if "assert " in text  # most have none
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assert)
    ]
    assert len(assertions) > 20
    assert [
        f"{path}:{node.lineno}: {ast.unparse(node.test)}"
        for path, node in assertions
        for part in ast.walk(node.test)
        if isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
        or (isinstance(part, ast.Call) and ast.unparse(part.func) not in ("isinstance", "callable"))
    ] == []


def test_what_a_module_wants_is_provided_once():
    wanted = [(m, name) for m, module in source.modules().items() for name in _decorated(module)]
    given = [
        target
        for m, module in source.modules().items()
        if m != "provided"
        for target in _provided(module)
    ]
    assert sorted(given) == sorted(wanted)
    for m, name in wanted:
        assert not hasattr(getattr(import_module(f"multigrad.{m}"), name), "__wanted__"), (
            f"{m}.{name} has no definition"
        )


def test_a_function_that_is_not_there_yet_says_so():
    module = ModuleType("below")
    exec(
        "from multigrad.provided import wanted\n"
        "@wanted\n"
        "def late(x):\n"
        "    'What it does.'\n"
        "    raise NotImplementedError\n",
        vars(module),
    )
    with pytest.raises(
        RuntimeError,
        match=r"below.late is provided by a module that has not been imported; import multigrad "
        r"first",
    ):
        module.late(1)
    assert module.late.__doc__ == "What it does."
    with pytest.raises(TypeError, match="below does not declare 'other' with .wanted., or"):
        provide(module, other=len)
    provide(module, late=lambda x: x + 1)
    assert module.late(1) == 2
    with pytest.raises(TypeError, match="below does not declare 'late' with .wanted., or"):
        provide(module, late=len)


# Module-level state

FOREIGN = {
    (
        "backward.run",
        "observe",
        "gate",
    ): "a pass sets the gate, and restores it by one call of C",
    ("core.grad_mode", "observe", "gate"): "a grad mode is a part of the gate",
    ("core.level", "observe", "gate"): "a grad mode is a part of the gate",
    ("memory.saved", "observe", "gate"): "hooks run with the gate quiet",
}
"""The state of a module that another one changes: (who, module, name)."""


def test_a_module_changes_its_own_state_only():
    found = {
        (m, *target)
        for m, module in source.modules().items()
        for target in source.writes(module)
        if target[0] != m and target in source.state()
    }
    assert found - set(FOREIGN) == set()
    assert set(FOREIGN) - found == set(), "gone: take them out of the list"


def test_every_piece_of_module_level_state_is_documented():
    text = (
        (ROOT.parent / "ARCHITECTURE.md")
        .read_text()
        .partition("## Module-level state")[2]
        .partition("\n## ")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    listed = [
        ("" if module == "`multigrad`" else module.strip("`"), name)
        for module, names, *_ in rows
        for name in re.findall(r"`([^`]+)`", names)
    ]
    assert all(len(row) == 4 and all(row[:3]) for row in rows)
    assert len(listed) == len(set(listed))
    assert source.state() - set(listed) == set(), "not in the table of ARCHITECTURE.md"
    assert set(listed) - source.state() == set(), "in the table of ARCHITECTURE.md, but gone"


# ARCHITECTURE.md

PAGE = (ROOT.parent / "ARCHITECTURE.md").read_text()


def test_the_tree_has_a_line_for_each_room():
    tree = PAGE.partition("## The tree")[2].partition("\n## ")[0]
    rooms = re.findall(r"^ {6}(\w+)(?:/|\.py) {2,}\S", tree.partition("    plugins/")[0], re.M)
    assert sorted(rooms) == sorted({room(path) for path in modules()} - {"__init__", "__main__"})


def test_files_and_names_of_the_page_exist():
    """Of `core/graph.py`, `check_versions` both the file and the name."""
    files = set(re.findall(r"`([\w/]+/\w+\.py)`", PAGE))
    places = {
        name: path for name in files for path in (ROOT / name, ROOT.parent / name) if path.is_file()
    }
    assert files == set(places) and len(files) > 40
    for name, word in re.findall(r"`([\w/]+/\w+\.py)`, `(\w+)`", PAGE):
        assert re.search(rf"\b(def|class) {word}\b|^{word}\b", places[name].read_text(), re.M), (
            f"{name} has no {word}"
        )


def test_the_words_of_a_newcomer_are_few():
    words = PAGE.partition("## The words")[2].partition("\n## ")[0]
    assert words.count("\n| ") - 1 <= 30
