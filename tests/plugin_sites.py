"""Distributions made for one test: modules and entry points on the path of a new process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import multigrad

ROOT = Path(multigrad.__file__).parents[1]

SPEC = """
import multigrad as mg
@mg.hookimpl
def multigrad_backends():
    return [mg.BackendSpec({name!r}, module={module!r}, load={load!r})]
"""

# A library, and the backend of it, in one module.
TOY = """
import array_api_strict
import multigrad as mg
class Array: pass
def make():
    return mg.Backend("toy", array_api_strict, (Array,))
"""

SHOW = """
import multigrad
for line in multigrad.backends():
    print(line.name, "|", line.distribution, line.version, "|", line.state, "|", line.error)
"""


class Site:
    """A folder on the path of a new process, with modules and with distributions that have entry
    points.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(textwrap.dedent(text))

    def distribution(self, name: str, version: str = "1.0", **entry_points: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = "".join(f"{key} = {target}\n" for key, target in entry_points.items())
        (info / "entry_points.txt").write_text(f"[multigrad]\n{lines}" if lines else "")

    def plugin(self, name: str, text: str) -> None:
        """A distribution `multigrad-<name>` with one plugin of that name, the module
        `plugin_<name>`.
        """
        self.module(f"plugin_{name}", text)
        self.distribution(f"multigrad-{name}", **{name: f"plugin_{name}"})

    def backend(self, text: str = TOY, name: str = "toy", plugin: str = "") -> None:
        """A library with its backend in one module, and a plugin of that name, or of another."""
        self.module(name, text)
        self.plugin(plugin or name, SPEC.format(name=name, module=name, load=f"{name}:make"))

    def run(self, code: str, **environment: str) -> str:
        path = os.pathsep.join([str(self.folder), str(ROOT)])
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MULTIGRAD_")}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env=kept | {"PYTHONPATH": path} | environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def line(self, name: str, **environment: str) -> str:
        """What the listing says about one name."""
        lines = [
            line
            for line in self.run(SHOW, **environment).splitlines()
            if line.startswith(f"{name} |")
        ]
        assert len(lines) == 1, lines
        return lines[0]

    def error(self, call: str, **environment: str) -> str:
        """The type and the text of the error that a call of `discovery` raises, twice alike, while
        NumPy keeps working.
        """
        return self.run(
            f"""
            from multigrad.plugins import discovery
            from multigrad.errors import BackendError, RegistrationError
            told = []
            for _ in range(2):
                try:
                    discovery.{call}
                except (BackendError, RegistrationError) as error:
                    told.append(type(error).__name__ + ": " + str(error))
            assert len(told) == 2 and told[0] == told[1], told
            assert discovery.get("numpy").name == "numpy"
            print(told[0])
            """,
            **environment,
        ).strip()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)
