"""`python -m multigrad new`: folders of plugins that install, whose tests pass as they are written,
and names that are refused.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from plugin_environments import ROOT, Environment
from plugin_sites import Site

import multigrad as mg
from multigrad import cli, templates
from multigrad.backends.spec import Capabilities
from multigrad.templates.look import look

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text()
RULES = tomllib.loads(PROJECT)["tool"]["ruff"]["lint"]["select"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says that refuses, having written nothing."""
    before = sorted(Path.cwd().iterdir())
    assert cli.main(["new", *arguments]) == 2
    assert sorted(Path.cwd().iterdir()) == before
    return capsys.readouterr().err.strip()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one plugin of each kind."""
    folder = tmp_path_factory.mktemp("plugins")
    templates.write("backend", "toy_arrays", folder)
    templates.write("backend", "digits", folder, "mparray") if importlib.util.find_spec(
        "mparray"
    ) else None
    templates.write("rules", "toys", folder)
    return folder


def test_the_command_lists_what_it_wrote(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "rules", "toys"]) == 0
    out = capsys.readouterr().out
    assert (
        "multigrad-toys/multigrad_toys/operations.py\n" in out and "Next: cd multigrad-toys" in out
    )


@pytest.mark.parametrize("kind", ["backend", "rules"])
def test_what_is_written(written: Path, kind: str) -> None:
    name, package = (
        ("multigrad-toy-arrays", "multigrad_toy_arrays")
        if kind == "backend"
        else ("multigrad-toys", "multigrad_toys")
    )
    project = tomllib.loads((written / name / "pyproject.toml").read_text())["project"]
    assert project["name"] == name and "license" not in project
    assert project["entry-points"]["multigrad"] == {package.removeprefix("multigrad_"): package}
    core = Requirement(project["dependencies"][0])
    assert (
        core.name == "multigrad-array"
        and mg.__version__ in core.specifier
        and "99.0" not in core.specifier
    )
    assert (written / name / package / "py.typed").is_file()
    texts = [p.read_text() for p in (written / name).rglob("*") if p.is_file()]
    assert not any("${" in text or ".template" in text for text in texts)
    assert "choose one" in (written / name / "README.md").read_text()


def test_what_a_library_can_do_is_written_into_its_backend(written: Path) -> None:
    pytest.importorskip("mparray")
    folder = written / "multigrad-digits"
    backend = (folder / "multigrad_digits" / "backend.py").read_text()
    assert (
        "import mparray as xp\nimport multigrad as mg\n" in backend
        and "mutable=False" in backend
        and 'missing=LIMITS["missing"]' in backend
    )
    limits = json.loads((folder / "multigrad_digits" / "limits.json").read_text())
    assert limits == {"missing": {}, "exemptions": {}}
    assert (
        not (folder / "tests" / "conftest.py").exists()
        and "array_api_strict" not in (folder / "README.md").read_text()
    )
    assert any(
        r.startswith("mparray>=")
        for r in tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    )


def test_what_is_written_has_the_format_of_the_project(written: Path) -> None:
    width = re.search(r"^line-length = .*$", PROJECT, re.M)[0]
    folders = ["multigrad-toy-arrays", "multigrad-toys"]
    for folder in folders:
        assert f"\n{width}\n" in (written / folder / "pyproject.toml").read_text()
    for words in (["format", "--check"], ["check", "--select", "E501"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--no-cache", *folders],
            cwd=written,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(written: Path) -> Environment:
    pytest.importorskip("hatchling")
    environment = Environment(written / "environment")
    done = environment.run(
        "pip", "install", "-e", "multigrad-toy-arrays", "-e", "multigrad-toys", cwd=written
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return environment


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "told"), [("multigrad-toy-arrays", "3 passed"), ("multigrad-toys", "4 passed")]
)
def test_its_tests_pass_as_they_are_written(
    written: Path, installed: Environment, name: str, told: str
) -> None:
    done = installed.run(
        "python", "-m", "pytest", "-q", cwd=written / name, MULTIGRAD_BLOCK="special"
    )
    assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr


@pytest.mark.sweep
def test_what_is_written_is_linted_and_typed(written: Path, installed: Environment) -> None:
    folders = ["multigrad-toy-arrays", "multigrad-toys"]
    for arguments in ((), ("--config", "lint.select=[" + ", ".join(f"'{r}'" for r in RULES) + "]")):
        done = installed.run(
            "python", "-m", "ruff", "check", "--no-cache", *arguments, *folders, cwd=written
        )
        assert done.returncode == 0, done.stdout + done.stderr
    sources = [
        str(p.relative_to(written))
        for folder in folders
        for p in sorted((written / folder).rglob("*.py"))
    ]
    done = installed.run(
        "python",
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(written / "cache"),
        *sources,
        cwd=written,
    )
    assert done.returncode == 0, done.stdout + done.stderr


MASKED = '''"""Arrays with a mask: NumPy's, and a mean leaves out what is masked."""
import numpy


class Array:
    def __init__(self, data, mask=None):
        self.data = numpy.asarray(data)
        self.mask = numpy.zeros(self.data.shape, bool) if mask is None else numpy.asarray(mask)

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)

    def __bool__(self):
        return bool(self.data)

    def __truediv__(self, other):
        return Array(self.data / _of_data(other), self.mask)


def _of_data(x):
    return x.data if isinstance(x, Array) else x


def asarray(x, *, mask=None, dtype=None, device=None, copy=None):
    mask = getattr(x, "mask", None) if mask is None else mask
    return Array(numpy.asarray(_of_data(x), dtype=dtype, copy=copy), mask)


def mean(x, *, axis=None, keepdims=False):
    return Array(numpy.mean(x.data, axis=axis, keepdims=keepdims, where=~x.mask))


def __getattr__(name):
    theirs = getattr(numpy, name)
    if name.startswith("__") or isinstance(theirs, type) or not callable(theirs):
        return theirs

    def function(*args, **kwargs):
        out = theirs(*map(_of_data, args), **{k: v for k, v in kwargs.items() if k != "device"})
        return Array(out) if isinstance(out, (numpy.ndarray, numpy.generic)) else out

    return function
'''


def test_the_backend_of_a_library_with_masks_refuses_what_is_masked(tmp_path: Path) -> None:
    """A mean of four elements, one of which is masked, would have a gradient of 1/4, not 1/3."""
    site = Site(tmp_path)
    site.module("veiled", MASKED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
        folder = templates.write("backend", "veiled_arrays", tmp_path, "veiled").folder
    (folder / "multigrad_veiled_arrays").rename(tmp_path / "multigrad_veiled_arrays")
    site.distribution("multigrad-veiled-arrays", veiled_arrays="multigrad_veiled_arrays")
    out = site.run(
        """
        import veiled
        import multigrad as mg

        mean = mg.func.grad(mg.mean)
        print(mean(veiled.asarray([1.0, 2.0, 3.0, 4.0])).data)
        t = mg.asarray(veiled.asarray([1.0, 2.0]), requires_grad=True)
        for enter in (mean, mg.asarray, mg.sin, lambda x: t * x, lambda x: mg.stack([t, x])):
            try:
                print(enter(veiled.asarray([1.0, 2.0], mask=[True, False])).data)
            except mg.errors.BackendError as error:
                print(error)
        """
    )
    first, *others = out.splitlines()
    assert first == "[0.25 0.25 0.25 0.25]"
    assert others == 5 * [
        "backend 'veiled_arrays': this array has masked elements, of which derivative rules would "
        "count every one. Pass the values and the mask apart, as in "
        "multigrad.sum(multigrad.where(mask, 0.0, values))."
    ]


def test_a_kernel_is_written_only_where_it_is_needed(written: Path) -> None:
    backend = written / "multigrad-toy-arrays" / "multigrad_toy_arrays" / "backend.py"
    assert "admit" not in backend.read_text()


# ----- what is refused -----


@pytest.mark.parametrize(
    "name", ["", "My", "1a", "a-b", "a__b", "_a", "a_", "a b", "../up", "ä", "a\n"]
)
@pytest.mark.parametrize("kind", ["backend", "rules"])
def test_a_name_that_is_none(
    kind: str, name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, kind, name) == (
        f"{name!r} is not a valid name for a plugin: write lower-case letters, digits and single "
        "underscores between them, and begin with a letter, as in my_arrays. Its distribution "
        "is then multigrad-my-arrays, its package multigrad_my_arrays."
    )


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("backend", "lambda", "'lambda' is a keyword of Python: choose another name."),
        (
            "rules",
            "json",
            "'json' is a module of Python's standard library: multigrad would take the plugin "
            "for that module. Choose another name.",
        ),
        (
            "backend",
            "numpy",
            "the backend name 'numpy' is taken by multigrad-array: choose another name.",
        ),
        (
            "backend",
            "strict",
            "the name 'strict' is taken: there is a distribution multigrad-strict already. "
            "Choose another name.",
        ),
        (
            "rules",
            "linalg",
            "multigrad.linalg exists already, so operations cannot be under it: choose another "
            "name.",
        ),
    ],
)
def test_a_name_that_is_taken(
    kind: str, name: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, kind, name) == message


@pytest.mark.parametrize(
    "make", [lambda p: p.mkdir(), lambda p: p.write_text("mine"), lambda p: p.symlink_to("nowhere")]
)
def test_what_exists_is_not_overwritten(
    make: Any, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = here / "multigrad-toys"
    make(folder)
    assert (
        refused(capsys, "rules", "toys")
        == f"{folder} exists: nothing was written. Remove it, or choose another name."
    )
    assert (
        folder.is_symlink() or folder.read_text() == "mine"
        if not folder.is_dir()
        else not list(folder.iterdir())
    )


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("no such", "'no such' is not the name of a module, such as mylib or mylib.array_api."),
        ("", "'' is not the name of a module, such as mylib or mylib.array_api."),
        (
            "nosuchmodule",
            "the module 'nosuchmodule' cannot be imported here: ModuleNotFoundError: No module "
            "named 'nosuchmodule'. Install the library first.",
        ),
        (
            "json",
            "the module 'json' is not a namespace of the Array API standard: "
            "xp.sum(xp.asarray([0.5, 1.0, 2.0])) raises AttributeError: module 'json' has no "
            "attribute 'asarray'. Name the module that has these functions.",
        ),
        (
            "numpy",
            "the arrays of numpy, numpy.ndarray, belong to the backend 'numpy', and an array "
            "type has one backend.",
        ),
    ],
)
def test_a_library_that_cannot_be_used(
    module: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, "backend", "toys", "--module", module) == message


def test_a_stand_in_that_is_not_installed(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that the user has not named."""
    monkeypatch.setattr(templates, "STAND_IN", "array_api_absent")
    assert refused(capsys, "backend", "toys") == (
        "the default of --module, array_api_absent, cannot be used here. Name the Array API "
        "namespace of your library, as in --module mylib, or run `pip install array-api-absent`: "
        "it then stands in for your library."
    )


def test_arrays_without_a_shape(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the folder stays as it was
    Path("listing.py").write_text("asarray = list\nsum = sum\n")
    assert refused(capsys, "backend", "toys", "--module", "listing") == (
        "the module 'listing' is not a namespace of the Array API standard: xp.asarray([0.5, 1.0, "
        "2.0]) has no shape (3,). Name the module of the library's arrays."
    )


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("import os\nos._exit(3)", "exit status 3"),
        ("raise SystemExit", "exit status 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_a_library_that_ends_the_process(
    text: str,
    ending: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (here / "dying.py").write_text(text)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the folder stays as it was
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(here), str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    assert (
        refused(capsys, "backend", "toys", "--module", "dying")
        == f"a process that tried the module 'dying' has ended: {ending}"
    )


def test_a_library_that_prints(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "talking.py").write_text(
        "import atexit\n"
        "print('hello', end='')\n"
        "atexit.register(print, 'bye')\n"
        "from array_api_strict import *\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(here), str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    with pytest.raises(
        templates.TemplateError,
        match="the arrays of talking, array_api_strict._array_object.Array, belong to the backend",
    ):
        templates.write("backend", "toys", here, "talking")


def test_a_folder_that_cannot_be_written(here: Path) -> None:
    (here / "file").write_text("")
    with pytest.raises(
        templates.TemplateError, match="cannot write .*multigrad-toys: Not a directory"
    ):
        templates.write("rules", "toys", here / "file")


# ----- what a library can do -----


def test_a_library_is_looked_at() -> None:
    seen = look("array_api_compat.numpy")
    assert seen["owner"] == "numpy" and seen["type"] == "numpy.ndarray" and seen["scalars"]
    able = dict.fromkeys(
        ("mutable", "defers", "complex", "data_dependent", "boolean_indexing", "negative_steps"),
        True,
    ) | {"lazy": False}
    assert seen["capabilities"] == able and able.keys() <= Capabilities.__dataclass_fields__.keys()
    strict = look("array_api_strict")
    assert strict["capabilities"] == able | {"defers": False} and not strict["scalars"]


TOY_LIBRARY = """
import array_api_strict as strict
from array_api_strict import *
from array_api_strict import __array_namespace_info__

def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return strict.std(x, axis=axis, keepdims=keepdims)

def arange(start, /, stop=None, step=1, *, dtype=None):
    return strict.arange(start, stop, step, dtype=dtype)

del argsort
"""
"""It ignores a keyword, refuses another, and lacks a function."""


def test_what_a_library_lacks_and_what_is_wrong(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("array_api_strict")
    (here / "toy_library.py").write_text(TOY_LIBRARY)
    (here / "scalar_library.py").write_text(
        "from array_api_strict import *\nimport numpy\n"
        "def sum(x, **kwargs): return numpy.float64(3.5)\n"
    )
    monkeypatch.syspath_prepend(here)
    seen = look("toy_library")
    assert (seen["lacks"], seen["refused"]) == (["argsort"], {"arange": ["device"]})
    assert list(templates._notes(seen)) == [
        "The library lacks: argsort.",
        "Wrong: functions refuse keywords of the standard: arange (device). Give functions that "
        "take them in Backend(functions=...).",
    ]
    seen = look("scalar_library")
    assert not seen["scalars"], "a scalar of NumPy is no array type of another library"
    assert (
        "xp.sum returns numpy.float64, which is no array of the library: give functions that "
        "return arrays in Backend(functions=...)"
    ) in seen["wrong"]
    assert (
        templates._library("toys", "scalar_library", True, seen)["types"]
        == "(type(xp.asarray(0.0)),)"
    )


@pytest.mark.parametrize("module", ["multigrad", "multigrad.func"])
def test_multigrad_is_no_library(
    module: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "backend", "toys", "--module", module)
    if module == "multigrad":
        assert told == (
            "the arrays of 'multigrad' are multigrad's own Tensors. Name the namespace of the "
            "library whose arrays multigrad should differentiate."
        )
    else:
        assert told.startswith("the module 'multigrad.func' is not a namespace of the Array API")


@pytest.mark.sweep
def test_the_commands_of_its_readme_pass(tmp_path: Path) -> None:
    """On a library that lacks something and does something wrong; on some of the operations."""
    pytest.importorskip("array_api_strict")
    pytest.importorskip("hatchling")
    environment = Environment(tmp_path / "environment")
    (packages,) = (tmp_path / "environment").glob("lib/python*/site-packages")
    (packages / "toy_library.py").write_text(TOY_LIBRARY)
    variables = {"MULTIGRAD_BLOCK": "strict,special"}
    new = "python -m multigrad new backend toy --module toy_library"
    done = environment.run(*new.split(), cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nThe library lacks: argsort.\n\nWrong: functions refuse" in done.stdout
    folder = tmp_path / "multigrad-toy"
    readme = (folder / "README.md").read_text()
    assert "- The library lacks: argsort.\n" in readme
    commands = re.findall(r"^    (\S.*)$", readme, re.M)
    assert len(commands) == 4 and commands[1].endswith("--limits multigrad_toy/limits.json")
    some = "-k ':sin/ or :std/ or (:argsort/ and /forward/) or (:arange/ and /forward/)'"
    for command in commands:
        more = {"PYTEST_ADDOPTS": some} if "conformance" in command else {}
        command = command.replace("pip install -e", "pip install --no-deps -e")
        done = environment.run("bash", "-c", command, cwd=folder, **variables, **more)
        assert done.returncode == 0, command + done.stdout + done.stderr
    limits = json.loads((folder / "multigrad_toy" / "limits.json").read_text())
    assert set(limits["missing"].values()) == {"the library has no argsort"}
    exempt = limits["exemptions"]
    assert "std/forward/correction" in exempt and any(i.startswith("arange/") for i in exempt)
    assert not any(i.startswith("sin/") for i in exempt)
    assert all(reason.startswith("fill in the reason: ") for reason in exempt.values())
    results = json.loads((folder / "certificate" / "conformance.json").read_text())
    states = {state for state, *_ in results["backends"]["toy"]["tests"].values()}
    assert states == {"passed", "exempt", "missing"}
