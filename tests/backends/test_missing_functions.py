"""A library that lacks functions of the standard: it gets what can be written in terms of others,
and is named where it cannot.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from multigrad.namespace import load
from multigrad.registry import OPS

pytest.importorskip("array_api_strict")
pytest.importorskip("multigrad_conformance")
REPOSITORY = Path(__file__).parents[2]

load()
WITH_A_FORM = tuple(
    name
    for name, op in OPS.items()
    if isinstance(op.forward, dict) and "*" in op.forward and op.module.startswith("multigrad.ops")
)
WITHOUT = ("nextafter", "sort", "tensordot")

PLUGIN = f'''
"""array_api_strict without some of its functions: a library of another name, as far as multigrad can see."""
import types

import multigrad as mg

LACKING = {WITH_A_FORM + WITHOUT!r}


@mg.hookimpl
def multigrad_backends():
    return [mg.BackendSpec("scant", module="array_api_strict", load="plugin_scant:make")]


def make():
    import array_api_strict

    def without(module, prefix=""):
        names = [n for n in dir(module) if (n in module.__all__ or n.startswith("__array_")) and prefix + n not in LACKING]
        return types.SimpleNamespace(**{{n: getattr(module, n) for n in names if prefix or n not in ("linalg", "fft")}})

    xp = without(array_api_strict)
    xp.linalg, xp.fft = without(array_api_strict.linalg, "linalg."), without(array_api_strict.fft, "fft.")
    return mg.Backend("scant", xp, (type(array_api_strict.asarray(0)),), capabilities=mg.Capabilities(defers=False))
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "plugin_scant.py").write_text(PLUGIN)
    info = folder / "multigrad_scant-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: multigrad-scant\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[multigrad]\nscant = plugin_scant\n")
    return folder


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(
        [
            str(site),
            str(REPOSITORY),
            str(REPOSITORY / "conformance"),
            os.environ.get("PYTHONPATH", ""),
        ]
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MULTIGRAD_")}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=site,
        env=kept | {"PYTHONPATH": path, "MULTIGRAD_BLOCK": "strict"},
    )


@pytest.mark.sweep
@pytest.mark.parametrize("samples", ["short", pytest.param("full", marks=pytest.mark.slow)])
def test_conformance(site: Path, samples: str) -> None:
    """Every check that the suite has for these functions passes: values, gradients, tangents,
    second derivatives.
    """
    done = run(
        site,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "multigrad_conformance.plugin",
        "--pyargs",
        "multigrad_conformance",
        "--multigrad-backend",
        "scant",
        "--multigrad-samples",
        samples,
        "-k",
        " or ".join(f"scant:{name}/" for name in WITH_A_FORM),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " 0 failed" in done.stdout


def test_a_function_without_a_form_is_named(site: Path) -> None:
    done = run(
        site,
        "-c",
        textwrap.dedent("""
        import multigrad as mg
        xp = mg.namespace("scant")
        x = xp.asarray([1.0, 2.0], requires_grad=True)
        for call in (lambda: xp.nextafter(x, x), lambda: xp.sort(x), lambda: xp.tensordot(x, x, axes=1)):
            try:
                call()
            except AttributeError as error:
                print(error)
    """),
    )
    assert done.stdout.splitlines() == [
        f"backend 'scant' has no function for the operation '{name}': give one in "
        "Backend.functions, or declare the operation with forward=."
        for name in WITHOUT
    ], done.stdout + done.stderr


def test_what_came_late_to_the_standard_has_a_form() -> None:
    """The functions of 2023.12 to 2025.12 (but for nextafter and eig, which nothing else can give),
    and those that Dask lacks.
    """
    late = {
        "broadcast_shapes",
        "clip",
        "copysign",
        "count_nonzero",
        "cumulative_prod",
        "cumulative_sum",
        "hypot",
        "isin",
        "maximum",
        "minimum",
        "moveaxis",
        "reciprocal",
        "repeat",
        "searchsorted",
        "signbit",
        "take_along_axis",
        "tile",
        "unstack",
    }
    assert late <= set(WITH_A_FORM)
    assert OPS["diff"].kind == "composite"
