"""Write docs/parity.md: the promises of torch.autograd, and the tests that show them of multigrad.

If a promise has no meaning here, the row gives the reason.

    python tools/parity.py --write      write the table from the files in tools/parity/
    python tools/parity.py --check      exit with 1 if the table does not match the files, a row is
                                        wrong, or the files lack names of PyTorch

features.toml has a row for each numbered feature of the documents of torch.autograd, and
names_*.toml a row for each public name and parameter of its modules: `key = [texts]`. A text is the
path of a test below tests/ (`test_backward.py::TestGrad::test_unused`), or one of these:

    open: transformations    waits for batching; tests beside it show the parts that exist
    none: <reason>           has no meaning here
    see: <module>.<name>     the same object under another name

A parameter is written as in a call: `backward(inputs=None)`, `gradcheck(*, eps=1e-06)`. A name is
public if PyTorch's modules list it in `__all__`, or define it or import it from PyTorch without an
underscore. Of a class, members inherited from another class in the table are left out. Separate
tests compare the constructors and members of the profiler's classes. Where PyTorch is installed,
--check compares the names.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import inspect
import sys
import tomllib
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tools" / "parity"
TABLE = ROOT / "docs" / "parity.md"
TESTS = ROOT / "tests"

VERSION = "2.13"  # the version of PyTorch with these names
OPEN = {"transformations": "batching, which is to come (the transformations issue)"}
PROFILER = ("autograd.profiler", "autograd.profiler_util")
MODULES = (
    "autograd",
    "autograd.functional",
    "autograd.graph",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.gradcheck",
    "autograd.grad_mode",
    "autograd.anomaly_mode",
    "autograd.variable",
    *PROFILER,
)


@dataclass
class Row:
    """A row. key: the feature or name; says: the feature in a few words; the rest as above."""

    key: str
    says: str = ""
    tests: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    none: list[str] = field(default_factory=list)
    see: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        kind, colon, rest = text.partition(": ")
        if kind in ("open", "none", "see") and colon:
            getattr(self, kind).append(rest.strip())
        else:
            self.tests.append(text)

    @property
    def here(self) -> bool:
        """Whether multigrad has it."""
        return bool(self.tests or self.see)


@dataclass
class Data:
    """The contents of the files.

    features: title and rows by the letter of the section; names: rows by module; more: multigrad's
    own parameters, with reasons; unlike: names whose signature cannot be compared, with reasons.
    """

    features: dict[str, tuple[str, list[Row]]]
    names: dict[str, list[Row]]
    more: dict[str, str]
    unlike: dict[str, str]

    def rows(self) -> Iterator[Row]:
        for _, rows in self.features.values():
            yield from rows
        for rows in self.names.values():
            yield from rows

    def named(self) -> dict[str, Row]:
        """Return the rows of names by their full path."""
        return {f"{module}.{row.key}": row for module, rows in self.names.items() for row in rows}


def row(key: str, texts: list[str], says: str = "") -> Row:
    made = Row(key, says)
    for text in texts:
        made.add(text)
    return made


def read() -> Data:
    features = {}
    for letter, section in tomllib.loads((DATA / "features.toml").read_text()).items():
        title = section.pop("title")
        features[letter] = title, [row(key, texts[1:], texts[0]) for key, texts in section.items()]
    names: dict[str, list[Row]] = {}
    more: dict[str, str] = {}
    unlike: dict[str, str] = {}
    for path in sorted(DATA.glob("names_*.toml")):
        for module, section in tomllib.loads(path.read_text()).items():
            if module == "more":
                more |= section
            elif module == "unlike":
                unlike |= section
            else:
                names[module] = [row(key, texts) for key, texts in section.items()]
    order = {module: i for i, module in enumerate((*MODULES, "Tensor"))}
    return Data(
        features, dict(sorted(names.items(), key=lambda item: order[item[0]])), more, unlike
    )


# -- errors in rows


@cache
def tests_of(path: Path) -> dict[str, str]:
    """Return the tests of a file, `test_x` or `TestY::test_x`, with their first lines' comments."""
    source = path.read_text()
    lines = source.splitlines()
    tests: dict[str, str] = {}

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                collect(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith(
                "test_"
            ):
                tests[prefix + node.name] = lines[node.lineno - 1].partition("  # ")[2]

    collect(ast.parse(source).body, "")
    return tests


def exists(test: str) -> bool:
    file, _, name = test.partition("::")
    path = TESTS / file
    return path.is_file() and name in tests_of(path)


def problems(data: Data) -> list[str]:
    """Return the errors in the rows themselves."""
    errors = []
    named = data.named()
    for r in data.rows():
        if not (r.tests or r.open or r.none or r.see):
            errors.append(f"{r.key}: an empty row")
        errors += [f"{r.key}: there is no test {test}" for test in r.tests if not exists(test)]
        errors += [
            f"{r.key}: {kind!r} is not an open issue; there are {', '.join(OPEN)}"
            for kind in r.open
            if kind not in OPEN
        ]
        errors += [
            f"{r.key}: a reason of a few words is wanted, not {reason!r}"
            for reason in r.none
            if len(reason.split()) < 3
        ]
        errors += [
            f"{r.key}: {other} has no test"
            for other in r.see
            if other not in named or not named[other].tests
        ]
        if r.none and (r.here or r.open):
            errors.append(f"{r.key}: what has no meaning here has no test and waits for nothing")
    for key in (*data.more, *data.unlike):
        if key.partition("(")[0] not in named:
            errors.append(f"{key}: a parameter of an unknown name")
    return errors


# -- the names of PyTorch


def torch_names() -> dict[str, list[str]]:
    """Return the public names and parameters of PyTorch's modules, as the keys of the data."""
    modules = {name: importlib.import_module(f"torch.{name}") for name in MODULES}
    importlib.import_module("torch.autograd.profiler_legacy")
    objects = {name: _public(module) for name, module in modules.items()}
    homes = {f"torch.{name}" for name in MODULES}
    names: dict[str, list[str]] = {}
    seen: set[int] = set()
    for name, module in modules.items():
        keys = names[name] = []
        listed: list[type] = []
        for key, obj in objects[name].items():
            home = getattr(obj, "__module__", None)
            alias = (
                home in homes
                and home != f"torch.{name}"
                and key in objects[home.removeprefix("torch.")]
            )
            if key not in getattr(module, "__all__", ()) and (alias or id(obj) in seen):
                continue
            seen.add(id(obj))
            keys.append(key)
            if alias or name in PROFILER or not str(home).startswith("torch.") or not callable(obj):
                continue
            if inspect.isclass(obj) and (home == f"torch.{name}" or home == "torch.utils.hooks"):
                keys += _parameters(key, obj)
                keys += _members(key, obj, listed)
                listed.append(obj)
            elif inspect.isfunction(obj) and home == f"torch.{name}":
                keys += _parameters(key, obj)
    return names


def _public(module: Any) -> dict[str, Any]:
    """Return the names in a module's `__all__`, in that order, and then its other PyTorch names."""
    public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    for name in sorted(dir(module)):
        obj = getattr(module, name)
        if name.startswith("_") or name in public or getattr(typing, name, None) is obj:
            continue
        if isinstance(obj, types.ModuleType):
            if obj.__name__ == f"{module.__name__}.{name}":
                public[name] = obj
        elif isinstance(obj, typing.TypeVar):
            continue
        elif (
            name.isupper()
            or str(getattr(obj, "__module__", None) or type(obj).__module__).partition(".")[0]
            == "torch"
            or _of_torch(obj)
        ):
            public[name] = obj
    return public


def _of_torch(obj: Any) -> bool:
    """Return whether this is a function of PyTorch's C++ part."""
    if not isinstance(obj, types.BuiltinFunctionType):
        return False
    return str(getattr(obj.__self__, "__name__", obj.__self__)).startswith(("torch", "PyCapsule"))


def _members(name: str, cls: type, listed: list[type]) -> list[str]:
    """Return the public members of a class, with the parameters of its methods.

    Members of Python's classes, and of a class in `listed`, are left out.
    """
    keys = []
    for member in sorted(dir(cls)):
        static = inspect.getattr_static(cls, member, None)
        plain = [base for base in cls.__mro__ if base.__module__ == "builtins"]
        if member.startswith("_") or any(hasattr(base, member) for base in plain):
            continue
        if any(inspect.getattr_static(other, member, None) is static for other in listed):
            continue
        keys.append(f"{name}.{member}")
        if callable(getattr(cls, member)):
            keys += _parameters(
                f"{name}.{member}",
                getattr(cls, member),
                bound=not isinstance(static, types.FunctionType),
            )
    return keys


def _parameters(name: str, obj: Any, bound: bool = True) -> list[str]:
    try:
        parameters = list(inspect.signature(obj).parameters.values())
    except (TypeError, ValueError):  # written in C++, or made by the metaclass
        return []
    return [f"{name}({shown(p)})" for p in parameters[0 if bound else 1 :]]


def shown(p: inspect.Parameter) -> str:
    """Return a parameter as it is written in a key."""
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**", p.KEYWORD_ONLY: "*, "}.get(p.kind, "")
    return f"{star}{p.name}" + ("" if p.default is p.empty else f"={p.default!r}")


def compare(data: Data) -> list[str]:
    """Return the differences between PyTorch's names and the data.

    The list is empty if that version of PyTorch is not installed.
    """
    try:
        if not importlib.import_module("torch").__version__.startswith(VERSION):
            return []
    except ImportError:
        return []
    theirs = torch_names()
    differences = []
    for module, keys in theirs.items():
        ours = [r.key for r in data.names.get(module, [])]
        differences += [
            f"{module}: PyTorch has {key}, which the table lacks" for key in keys if key not in ours
        ]
        differences += [
            f"{module}: the table has {key}, which PyTorch lacks" for key in ours if key not in keys
        ]
        for name in dict.fromkeys(key.partition("(")[0] for key in keys):
            mine, its = (
                [k for k in some if k.partition("(")[0] == name and "(" in k]
                for some in (ours, keys)
            )
            if sorted(mine) == sorted(its) and mine != its:
                differences.append(f"{module}: the parameters of {name} are in another order")
    return differences


# -- the table

HEAD = """\
<!-- Generated by `python tools/parity.py --write` from the files in tools/parity/. Do not edit. -->

# Parity with torch.autograd

This page lists the documented features of `torch.autograd`, and every public name and parameter of
the modules of PyTorch 2.13. Each row gives the tests that cover it in multigrad, or the reason why
it does not apply to multigrad. Test names are relative to `tests/`. The tests in `parity/` run one
program through multigrad on NumPy, JAX and array_api_strict, and through PyTorch where it is
installed. [differences.md](differences.md) lists the intentional differences from PyTorch.

"""


def render(data: Data) -> str:
    count = sum(1 for _ in data.rows())
    here = sum(bool(r.here) for r in data.rows())
    waiting = sum(bool(r.open and not r.here) for r in data.rows())
    out = [
        HEAD,
        f"{count} rows: {here} are covered by tests, {waiting} are to come, "
        f"{count - here - waiting} do not apply.\n",
        "\n## Features of the documents\n",
    ]
    for letter, (title, rows) in data.features.items():
        out += [f"\n### {letter}. {title}\n", "\n| | | covered by |\n|---|---|---|\n"]
        out += [f"| {r.key} | {_cell(r.says)} | {_why(r)} |\n" for r in rows]
    out.append("\n## Names and parameters\n")
    for module, rows in data.names.items():
        out += [f"\n### torch.{module}\n", "\n| | covered by |\n|---|---|\n"]
        out += [f"| `{_cell(r.key)}` | {_why(r)} |\n" for r in rows]
    out += ["\n## Additional parameters of multigrad\n", "\n| parameter | |\n|---|---|\n"]
    out += [f"| `{_cell(key)}` | {_cell(why)} |\n" for key, why in data.more.items()]
    out += ["\n## Signatures that are not compared\n", "\n| name | |\n|---|---|\n"]
    out += [f"| `{_cell(key)}` | {_cell(why)} |\n" for key, why in data.unlike.items()]
    return "".join(out)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _why(r: Row) -> str:
    parts = [f"`{test}`" for test in r.tests]
    parts += [f"as `torch.{other}`" for other in r.see]
    parts += [
        f"to come: {OPEN[kind]}" if not r.tests else f"the rest to come: {OPEN[kind]}"
        for kind in r.open
    ]
    parts += [f"does not apply: {_cell(reason)}" for reason in r.none]
    return "; ".join(parts) if r.open or r.none else ", ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="docs/parity.md: torch.autograd, row by row.")
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--write", action="store_true", help="write docs/parity.md")
    todo.add_argument("--check", action="store_true", help="exit with 1 if it is stale")
    options = parser.parse_args()
    data = read()
    wrong = [*problems(data), *compare(data)]
    print("\n".join(wrong), end="\n" if wrong else "")
    text = render(data)
    if options.write:
        TABLE.write_text(text)
        return int(bool(wrong))
    before = TABLE.read_text() if TABLE.exists() else ""
    names = "docs/parity.md", "as tools/parity/ has it"
    changes = list(
        difflib.unified_diff(before.splitlines(), text.splitlines(), *names, lineterm="", n=0)
    )
    if changes:
        print("\n".join(changes[:40]))
        print(
            f"docs/parity.md is stale, {len(changes)} lines differ: python tools/parity.py --write"
        )
    return int(bool(wrong or changes))


if __name__ == "__main__":
    sys.exit(main())
