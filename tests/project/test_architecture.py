"""The rooms of the project: imports point one way, rules see the standard only, files stay
readable.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import package_source as source
import pytest

import multigrad as mg
from multigrad.provided import provide

ROOT = Path(mg.__file__).parent

# A room may import itself and what stands in its row, late imports in functions included.
BASE = {"errors", "locks", "provided", "registry", "tracebacks"}
CORE = BASE | {"observe", "backends", "plugins", "core", "dispatch", "memory", "backward"}
ALLOWED = {
    "errors": set(),
    "locks": set(),
    "provided": set(),
    "tracebacks": {"errors", "provided"},
    "observe": set(),
    "pages": set(),
    "registry": {"errors", "locks", "provided", "tracebacks"},
    "program": BASE | {"registry"},
    "ops": BASE,
    "optimizing": BASE | {"program"},
    "backends": BASE | {"program", "optimizing"},
    "plugins": BASE | {"backends"},
    "core": BASE | {"observe", "backends", "plugins"},
    "dispatch": BASE | {"observe", "backends", "plugins", "core"},
    "memory": BASE | {"observe", "backends", "plugins", "core", "dispatch"},
    "backward": BASE | {"observe", "backends", "plugins", "core", "dispatch", "memory"},
    "tree": CORE,
    "layers": CORE | {"tree"},
    "custom": CORE | {"tree", "layers"},
    "inspection": CORE,
    "methods": CORE,
    "namespace": CORE | {"ops", "inspection", "methods"},
    "protocols": CORE | {"ops"},
    "clients": CORE | {"namespace"},
    "typing": {"namespace"},
    "func": CORE | {"typing", "tree", "layers", "custom", "namespace", "compiling", "program"},
    "autograd": CORE | {"typing", "tree", "layers", "custom", "namespace", "func", "tools"},
    "tools": CORE | {"pages", "tree", "layers", "custom", "namespace", "func", "autograd"},
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
    "templates": CORE | {"namespace"},
    "cli": CORE | {"namespace", "autograd", "func", "script", "templates", "tools"},
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


def test_imports_point_one_way():
    for module in source.modules().values():
        for target in source.imports(module):
            room = source.modules()[target].room
            assert room in ALLOWED[module.room] | {module.room}, f"{module.path} imports {target}"


def test_a_library_is_imported_by_its_backend_or_when_it_is_used():
    for module in source.modules().values():
        early = set(ast.walk(module.tree)) - {
            inner
            for node in module.tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for inner in ast.walk(node)
        }
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for library in LIBRARIES & {name.partition(".")[0] for name in names}:
                assert module.room != "ops", f"{module.path}: a rule uses no library"
                assert (
                    node not in early or module.room == "backends" or module.path in ASKED_BY_NUMPY
                ), f"{module.path} imports {library} when it is itself imported"


def test_no_library_is_named_outside_its_backend():
    for module in source.modules().values():
        if module.room == "backends":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare) and any(
                isinstance(c, ast.Constant) and c.value in ("jax", "cupy", "torch")
                for c in node.comparators
            ):
                raise AssertionError(f"{module.path}:{node.lineno} tests for one library")


# Rooms


def test_no_room_imports_itself_through_others():
    graph: dict[str, set[str]] = {}
    for module in source.modules().values():
        for target in source.imports(module):
            other = source.modules()[target].room
            if other not in (module.room, "__init__"):
                graph.setdefault(module.room, set()).add(other)
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_no_file_imports_itself_through_others():
    """Neither by imports in functions nor by those for type hints: each file can be read after the
    files that it names.
    """
    graph = {
        name: {target for target in source.imports(module) if target not in ("", name)}
        for name, module in source.modules().items()
        if name
    }
    tuple(TopologicalSorter(graph).static_order())


PICKLED = ("", "_tensor_from_pickle")
"""Pickles name this function of the package."""


def test_no_room_uses_a_private_name_of_another():
    for name, module in source.modules().items():
        for room, private in source.private_names(module):
            assert room == module.room or (name, private) == PICKLED, f"{module.path}: {private}"


NAMES_OF_USERS = {"Call", "Layer", "Node"}
"""Names with two public meanings: a call that observers see, and one of a program; a layer and a node
of the engine, and what `extend` and `autograd.graph` show of them.
"""


def test_a_class_name_is_used_once():
    classes = [
        node.name
        for module in source.modules().values()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert {c for c in classes if classes.count(c) > 1} == NAMES_OF_USERS


HOW_IT_CAME = {"given", "known", "told"}


def test_a_variable_is_named_for_what_it_holds():
    """Not for how it came. These stood for some 300 different things."""
    for module in source.modules().values():
        for node in ast.walk(module.tree):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else ""
            assert name not in HOW_IT_CAME, f"{module.path}:{node.lineno}: {name}"


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


def test_what_a_module_wants_is_provided():
    for m, module in source.modules().items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and "wanted" in map(
                ast.unparse, node.decorator_list
            ):
                function = getattr(import_module(f"multigrad.{m}"), node.name)
                assert not hasattr(function, "__wanted__"), f"{m}.{node.name} has no definition"


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
    ("backward.run", "observe", "gate"): "a pass sets the gate, and restores it by one call of C",
    ("core.grad_mode", "observe", "gate"): "a grad mode is a part of the gate",
    ("core.level", "observe", "gate"): "a grad mode is a part of the gate",
    ("memory.saved", "observe", "gate"): "hooks run with the gate quiet",
}
"""The state of a module that another one changes: (who, module, name)."""


def test_no_module_assigns_names_or_changes_state_of_another():
    """What a module above defines is registered: `provide(module, name=function)` of what is
    `wanted` there, `_define` of Surface.
    """
    found = {
        (m, *target)
        for m, module in source.modules().items()
        for target in source.writes(module)
        if target[0] != m
    }
    assert found == set(FOREIGN)


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
    rooms = re.findall(r"^ {6}(\w+)(?:/|\.py) {2,}\S", tree.partition("\n    plugins/")[0], re.M)
    assert sorted(rooms) == sorted(
        {m.room for m in source.modules().values()} - {"__init__", "__main__"}
    )


def test_files_and_names_of_the_page_exist():
    """Of `memory/saved.py`, `check_versions` both the file and the name."""
    files = set(re.findall(r"`([\w/]+/\w+\.py)`", PAGE))
    places = {
        name: path for name in files for path in (ROOT / name, ROOT.parent / name) if path.is_file()
    }
    assert files == set(places) and len(files) > 40
    for name, word in re.findall(r"`([\w/]+/\w+\.py)`, `(\w+)`", PAGE):
        assert re.search(rf"\b(def|class) {word}\b|^{word}\b", places[name].read_text(), re.M), (
            f"{name} has no {word}"
        )


WORDS = 40
"""How many words of its own the code may have: a reader has to learn each."""


def test_the_words_of_the_code_are_explained():
    """A class that three other rooms use is a word, and stands in the list, whose words are single
    ones.
    """
    section = PAGE.partition("## The words")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    words = [row for row in rows if row not in ("word", "---")]
    assert 20 < len(words) <= WORDS
    assert all(re.fullmatch(r"[A-Za-z]+", word) for word in words)
    classes = {
        (name, node.name)
        for name, module in source.modules().items()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    rooms: dict[tuple[str, str], set[str]] = {}
    for module in source.modules().values():
        for target in set(module.binds.values()) & classes:
            rooms.setdefault(target, set()).add(module.room)
    shared = {
        name
        for (place, name), users in rooms.items()
        if len(users - {place.partition(".")[0]}) >= 3 and not name.endswith("Error")
    }
    assert {name for name in shared if f"`{name}`" not in section} == set()
