"""The stubs that type checkers read: they say what the table of operations says, and what they say
is there. `make types` runs the checkers.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tool_modules

import multigrad as mg
from multigrad import extend

ROOT = Path(__file__).parents[2]
STUBS = sorted([*(ROOT / "multigrad").rglob("*.pyi"), *(ROOT / "plugins").rglob("*.pyi")])
PACKAGES = [
    ROOT,
    ROOT / "conformance",
    *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")),
]
FOLDERS = {ROOT: "multigrad", ROOT / "conformance": "multigrad_conformance"}
WRITTEN = ("multigrad.autograd", "multigrad.autograd.functional", "multigrad.func")
"""The packages whose stubs are written by hand: they have the overloads of their functions."""

MODULES = ("multigrad", "multigrad.autograd.graph")
"""The modules that have names at run time which their files do not show to type checkers as
text.
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return tool_modules.tool("stubs")


def test_they_are_fresh(tool: ModuleType) -> None:
    texts = tool.texts()
    by_hand = {f"{name.replace('.', '/')}/__init__.pyi" for name in WRITTEN}
    assert {str(path.relative_to(ROOT)) for path in STUBS} == {*texts, *by_hand}
    for path, text in texts.items():
        assert (ROOT / path).read_text() == text, (
            f"{path} differs from the table of operations: run `make stubs`"
        )


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {
        node.name: node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_public_operation_is_there(tool: ModuleType) -> None:
    mg.zeros(1)
    extend.load_plugins()
    stub = functions(ROOT / "multigrad" / "typing" / "functions.pyi")
    special = functions(
        ROOT / "plugins" / "multigrad-special" / "multigrad_special" / "functions.pyi"
    )
    for op in tool.own().values():
        if op.public and "." not in op.name:
            assert op.name in stub or op.name == "asarray", op.name
        if op.name.startswith("special."):
            assert op.name.removeprefix("special.") in special, op.name
    assert all(hasattr(mg, name) for name in stub)


@pytest.mark.parametrize("name", WRITTEN)
def test_stubs_written_by_hand_have_the_names_and_arguments_of_the_package(name: str) -> None:
    module = importlib.import_module(name)
    body = ast.parse((ROOT / name.replace(".", "/") / "__init__.pyi").read_text()).body
    (listed,) = [n.value for n in body if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)]
    assert ast.literal_eval(listed) == module.__all__
    helping = [
        name.id
        for node in body
        for name in ast.walk(node)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(name, ast.Name)
        and isinstance(name.ctx, ast.Store)
    ] + [node.name for node in body if isinstance(node, ast.ClassDef)]
    assert [n for n in helping if not n.startswith("_")] == []  # a program would miss them
    defined = [node for node in body if isinstance(node, ast.FunctionDef)]
    imported = {a.name for node in body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert {node.name for node in defined} == set(module.__all__) - imported
    for node in defined:
        if not node.decorator_list:  # without overloads
            continue
        parameters = inspect.signature(getattr(module, node.name)).parameters
        places, by_name = [a.arg for a in node.args.args], [a.arg for a in node.args.kwonlyargs]
        starred = [node.args.vararg.arg] if node.args.vararg else []
        assert [*places, *starred] == list(parameters)[: len(places + starred)], node.name
        needed = {n for n, p in parameters.items() if p.default is p.empty}
        assert needed <= {*places, *starred, *by_name} <= set(parameters), node.name
        defaults = [None] * (len(places) - len(node.args.defaults)) + node.args.defaults
        for n, default in zip(
            [*places, *by_name], [*defaults, *node.args.kw_defaults], strict=True
        ):
            if default is not None:
                assert ast.literal_eval(default) == parameters[n].default, (node.name, n)


@pytest.mark.parametrize("path", STUBS, ids=lambda p: p.parent.name)
def test_no_name_is_made_up(path: Path) -> None:
    assert "__getattr__" not in path.read_text()


@pytest.mark.parametrize("name", MODULES)
def test_modules_hide_their_getattr_from_type_checkers(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None and callable(module.__getattr__)
    tree = ast.parse(Path(module.__file__).read_text())
    assert "__getattr__" not in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_every_distribution_is_typed(folder: Path) -> None:
    package = folder / FOLDERS.get(folder, folder.name.replace("-", "_"))
    assert (package / "py.typed").is_file()


@pytest.mark.parametrize("name", ["downstream", "revealed"])
def test_a_user_s_program_runs(name: str) -> None:
    runpy.run_path(str(ROOT / "tests" / "typing" / "programs" / f"{name}.py"))


def test_members_are_those_of_the_table() -> None:
    stub = ast.parse((ROOT / "multigrad" / "core" / "members.pyi").read_text())
    (members,) = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    names = {node.name for node in members.body if isinstance(node, ast.FunctionDef)}
    assert all(hasattr(mg.Tensor, name) for name in names)
    x = mg.asarray(np.ones((2, 2)))
    public = {n for n in dir(x) if not n.startswith("_") and n not in vars(mg.autograd.Variable)}
    own = {
        n
        for cls in mg.Tensor.__mro__
        for n in vars(cls)
        if n in public and inspect.getmodule(cls) is not None
    }
    assert {"sum", "exp_", "reshape"} <= names <= own | {n for n in names if n.startswith("__")}


def test_names_for_annotations_exist_when_a_program_runs() -> None:
    from multigrad import typing

    assert all(getattr(typing, name) is not None for name in typing.__all__)
    assert isinstance(mg.namespace("numpy"), typing.Namespace)  # type: ignore[misc]


def test_special_functions_have_a_module() -> None:
    from multigrad_special import functions as special

    found: Any = special.erf(np.array([0.0]))
    assert found.array[0] == 0.0 and "erf" in dir(special) and "operations" not in dir(special)
    with pytest.raises(AttributeError):
        special.erff  # type: ignore[attr-defined]
