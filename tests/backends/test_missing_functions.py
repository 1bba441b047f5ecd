"""A library that lacks functions of the standard: it gets what can be written in terms of others,
and is named where it cannot.
"""

from __future__ import annotations

import pytest
from plugin_sites import Site, site
from pytest_runs import run_suite

from multigrad.registry import OPS, fill

pytest.importorskip("array_api_strict")
pytest.importorskip("multigrad_conformance")
__all__ = ["site"]

fill()
WITH_A_FORM = tuple(
    name
    for name, op in OPS.items()
    if isinstance(op.forward, dict) and "*" in op.forward and op.builtin
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


@pytest.mark.sweep
@pytest.mark.parametrize("samples", ["short", pytest.param("full", marks=pytest.mark.slow)])
def test_conformance(site: Site, samples: str) -> None:
    """Every check that the suite has for these functions passes: values, gradients, tangents,
    second derivatives.
    """
    site.plugin("scant", PLUGIN)
    names = " or ".join(f"scant:{name}/" for name in WITH_A_FORM)
    done = run_suite(
        site.folder,
        "scant",
        f"--multigrad-samples={samples}",
        "-k",
        names,
        MULTIGRAD_BLOCK="strict",
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " 0 failed" in done.stdout


def test_a_function_without_a_form_is_named(site: Site) -> None:
    site.plugin("scant", PLUGIN)
    out = site.run(
        """
        import multigrad as mg
        xp = mg.namespace("scant")
        x = xp.asarray([1.0, 2.0], requires_grad=True)
        for call in (lambda: xp.nextafter(x, x), lambda: xp.sort(x), lambda: xp.tensordot(x, x, axes=1)):
            try:
                call()
            except AttributeError as error:
                print(error)
        """,
        MULTIGRAD_BLOCK="strict",
    )
    assert out.splitlines() == [
        f"backend 'scant' has no function for the operation '{name}': give one in "
        "Backend.functions, or declare the operation with forward=."
        for name in WITHOUT
    ]


def test_what_came_late_to_the_standard_has_a_form() -> None:
    """The functions of 2023.12 to 2025.12 (but for nextafter and eig, which nothing else can give),
    and those that Dask lacks.
    """
    late = (
        "broadcast_shapes clip copysign count_nonzero cumulative_prod cumulative_sum hypot isin "
        "maximum minimum moveaxis reciprocal repeat searchsorted signbit take_along_axis tile "
        "unstack"
    )
    assert set(late.split()) <= set(WITH_A_FORM)
    assert OPS["diff"].kind == "composite"
