"""Templates of plugins: `python -m multigrad new backend NAME` and `new rules NAME` fill in the
files of this folder.

`${word}` in a template is replaced by a value. `package/` becomes the folder of the plugin's
package, and file names lose the suffix `.template`.
"""

from __future__ import annotations

import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from ..plugins import API
from ..plugins.listing import listing

HERE = Path(__file__).parent
KINDS = ("backend", "rules")
OURS = (
    "array",
    "autograd",
    "conformance",
    "dask",
    "mparray",
    "scipy",
    "special",
    "strict",
    "torch",
)
"""The distributions of this project are `multigrad-<name>`, whether installed or not."""
STAND_IN = "array_api_strict"
STAND_IN_ONLY = ("tests/conftest.py",)
STAND_IN_NOTE = """
For now array_api_strict stands in for your library. Replace it by the import of your library in
`backend.py` and by its name in `__init__.py`, `pyproject.toml` and the tests. Until then, if
multigrad-strict is installed, run all commands with MULTIGRAD_BLOCK=strict, because
array_api_strict is its library and each library belongs to one plugin. (The tests block it in
`tests/conftest.py`, which you can then delete.)
"""
STAND_IN_EXEMPTIONS = {
    "clip/kink/bounds-crossed": "array_api_strict refuses a lower bound above the upper one",
    "isin/*/inverted": "array_api_strict 2.6 ignores invert=True",
}

ADMIT = '''

def admit(xp: Any, x: Any) -> None:
    """Raise if an element of `x` is masked; multigrad calls it for each array from outside.

    The library leaves masked elements out of sums, means and products. Derivative rules use the
    functions of the standard, which know no mask: they would count every element.
    """
    if bool(xp.any(xp.asarray(x.mask))):
        raise mg.errors.BackendError(
            "backend '${name}': this array has masked elements, of which derivative rules would "
            "count every one. Pass the values and the mask apart, as in "
            "multigrad.sum(multigrad.where(mask, 0.0, values))."
        )
'''
"""The kernel of a library whose arrays have a mask."""


FOUND = "multigrad has looked: "
"""The prefix of the line that `look` prints. The library may print other lines."""


class TemplateError(Exception):
    """A plugin cannot be written: its name is invalid or taken, its folder exists, or its library
    is unusable.
    """


class Written(NamedTuple):
    """The folder of a plugin, and what its author should know of the library."""

    folder: Path
    notes: tuple[str, ...]


def write(kind: str, name: str, where: Path, module: str | None = None) -> Written:
    """Write the folder `multigrad-<name>` into `where`.

    Raises TemplateError and writes nothing if that is impossible.
    """
    values = _names(kind, name)
    folder = where / values["distribution"]
    if os.path.lexists(folder):
        raise TemplateError(
            f"{folder} exists: nothing was written. Remove it, or choose another name."
        )
    notes: tuple[str, ...] = ()
    if kind == "backend":
        library = STAND_IN if module is None else module
        seen = _seen(library, module is not None)
        values |= _library(name, library, module is not None, seen)
        notes = tuple(_notes(seen))
        values["notes"] = "".join(f"- {note}\n" for note in notes) or "It lacks nothing.\n"
    files = dict(_files(kind, values, module is None))
    try:
        with tempfile.TemporaryDirectory(dir=where) as scratch:
            whole = Path(scratch, values["distribution"])
            for path, text in files.items():
                (whole / path).parent.mkdir(parents=True, exist_ok=True)
                (whole / path).write_text(text, encoding="utf-8")
            # atomic: fails if the folder was created in the meantime
            whole.rename(folder)
    except OSError as error:
        raise TemplateError(f"cannot write {folder}: {error.strerror or error}") from error
    return Written(folder, notes)


def _files(kind: str, values: dict[str, str], stand_in: bool) -> Iterator[tuple[str, str]]:
    for path in sorted((HERE / kind).rglob("*.template")):
        name = path.relative_to(HERE / kind).as_posix().removesuffix(".template")
        if stand_in or name not in STAND_IN_ONLY:
            first, slash, rest = name.partition("/")
            folder = values["package"] if first == "package" else first
            text = Template(path.read_text(encoding="utf-8")).substitute(values)
            yield f"{folder}{slash}{rest}", text


# ----- the name -----


def _names(kind: str, name: str) -> dict[str, str]:
    """The template values that depend on the name, which must not be taken."""
    import multigrad

    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise TemplateError(
            f"{name!r} is not a valid name for a plugin: write lower-case letters, digits and "
            "single underscores between them, and begin with a letter, as in my_arrays. Its "
            "distribution is then multigrad-my-arrays, its package multigrad_my_arrays."
        )
    if keyword.iskeyword(name):
        raise TemplateError(f"{name!r} is a keyword of Python: choose another name.")
    if name in sys.stdlib_module_names:
        raise TemplateError(
            f"{name!r} is a module of Python's standard library: multigrad would take the "
            "plugin for that module. Choose another name."
        )
    distribution, package = f"multigrad-{name.replace('_', '-')}", f"multigrad_{name}"
    if name in OURS or any(metadata.distributions(name=distribution)):
        raise TemplateError(
            f"the name {name!r} is taken: there is a distribution {distribution} already. "
            "Choose another name."
        )
    for line in listing():
        if line.name == name:
            raise TemplateError(
                f"the backend name {name!r} is taken by {line.distribution}: choose another name."
            )
    if kind == "rules":
        multigrad.registry.fill()
        if hasattr(multigrad, name) or multigrad.registry.is_ours(name):
            raise TemplateError(
                f"multigrad.{name} exists already, so operations cannot be under it: choose "
                "another name."
            )
    return {
        "name": name,
        "distribution": distribution,
        "package": package,
        "series": series(multigrad.__version__),
        "api": str(API),
    }


def series(version: str) -> str:
    """The range of compatible releases: those with the same major version, or with the same
    minor version while the major version is 0.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"


# ----- the library -----


def _seen(module: str, owned: bool) -> dict[str, Any]:
    """What `look` finds; `owned` says that the arrays must not belong to another backend."""
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in module.split(".")):
        raise TemplateError(
            f"{module!r} is not the name of a module, such as mylib or mylib.array_api."
        )
    try:
        seen = _looked_at(module)
    except TemplateError as error:
        if owned:
            raise
        raise TemplateError(
            f"the default of --module, {module}, cannot be used here. Name the Array API namespace "
            "of your library, as in --module mylib, or run "
            f"`pip install {module.replace('_', '-')}`: it then stands in for your library."
        ) from error
    if owned and seen["owner"]:
        raise TemplateError(
            f"the arrays of {module}, {seen['type']}, belong to the backend {seen['owner']!r}, "
            "and an array type has one backend."
        )
    return seen


def _notes(seen: dict[str, Any]) -> Iterator[str]:
    """What the author of the plugin should know: what the library lacks, then what is wrong."""
    if seen["lacks"]:
        yield f"The library lacks: {', '.join(seen['lacks'])}."
    if seen["refused"]:
        refused = ", ".join(f"{f} ({', '.join(names)})" for f, names in seen["refused"].items())
        yield (
            f"Wrong: functions refuse keywords of the standard: {refused}. Give functions that "
            "take them in Backend(functions=...)."
        )
    yield from (f"Wrong: {text}." for text in seen["wrong"])


def _library(name: str, module: str, owned: bool, seen: dict[str, Any]) -> dict[str, str]:
    """The template values that depend on the library."""
    root = seen["module"].partition(".")[0]
    library = module if module.partition(".")[0] == root else root
    distribution = next(iter(metadata.packages_distributions().get(root, [])), "")
    version = metadata.version(distribution).partition("+")[0] if distribution else ""
    capabilities = {
        c: holds for c, holds in seen["capabilities"].items() if holds != (c != "lazy")
    } | ({} if owned else {"strict": True})
    types = (
        "type(xp.asarray(0.0)), type(xp.sum(xp.asarray([0.0])))"
        if seen["scalars"]
        else "type(xp.asarray(0.0)),"
    )
    limits = {"missing": {}, "exemptions": {} if owned else STAND_IN_EXEMPTIONS}
    return {
        "module": module,
        "imports": "\n".join(sorted((f"import {module} as xp", "import multigrad as mg"))),
        "typing": "from typing import Any\n" if seen["masks"] else "",
        "kernels": '\n        kernels={"admit": admit},' if seen["masks"] else "",
        "admit": Template(ADMIT).substitute(name=name) if seen["masks"] else "",
        "root": module.partition(".")[0],
        "library": library,
        "types": f"({types})",
        "install": distribution or root,
        "requirement": f', "{distribution}>={version}"' if version else "",
        "capabilities": _arguments(
            *(f"{c}={value}" for c, value in capabilities.items()), 'missing=LIMITS["missing"]'
        ),
        "limits": json.dumps(limits, indent=2),
        "stand_in": "" if owned else STAND_IN_NOTE,
    }


def _arguments(*arguments: str) -> str:
    """The arguments of Capabilities, in the layout of the formatter."""
    line = ", ".join(arguments)
    if len(line) <= 61:
        return line
    if len(line) <= 88:
        return f"\n            {line}\n        "
    return "".join(f"\n            {a}," for a in arguments) + "\n        "


def _looked_at(module: str) -> dict[str, Any]:
    """The result of `look`, run in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "multigrad.templates.look", module],
        capture_output=True,
        text=True,
        check=False,
    )
    # the library may print lines as well
    lines = [line for line in done.stdout.splitlines() if line.startswith(FOUND)]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise TemplateError(f"a process that tried the module {module!r} has ended: {last}")
    seen: dict[str, Any] = json.loads(lines[-1].removeprefix(FOUND))
    if "error" in seen:
        raise TemplateError(seen["error"])
    return seen
