"""MULTIGRAD_API: which version of the API for plugins a plugin needs.

One that does not fit is refused by name, and harms no other.
"""

from __future__ import annotations

import pytest
from plugin_sites import SHOW, SPEC, TOY, Site, site

__all__ = ["site"]

NEWER = (
    "the plugin 'new' of multigrad-new 1.0 is refused: it needs version 2 of multigrad's API "
    "for plugins (MULTIGRAD_API in plugin_new), and this one has version 1. Upgrade multigrad: "
    "pip install --upgrade multigrad-array."
)
ODD = (
    "the plugin 'new' of multigrad-new 1.0 is refused: MULTIGRAD_API in plugin_new must be an "
    "int, the version of multigrad's API for plugins that it is written against, as 1; it is {}."
)


def plugin(name: str, version: str | None) -> str:
    said = "" if version is None else f"MULTIGRAD_API = {version}\n"
    return said + SPEC.format(name=name, module=name, load=f"{name}:make")


OPERATION = """
import multigrad as mg
@mg.hookimpl
def multigrad_operations():
    return [mg.registry.elementwise({name!r}, x=1.0, forward=lambda xp, x: x)]
"""
EARLY = (
    "import multigrad as mg\n"
    "mg.registry.elementwise('new.f(x, /)', x=1.0, forward=lambda xp, x: x)\n"
)


@pytest.mark.parametrize("version", [None, "1"])
def test_what_fits(site: Site, version: str | None) -> None:
    site.module("toy", TOY)
    site.plugin("new", plugin("toy", version))
    assert site.line("toy") == "toy | multigrad-new 1.0 | available | "


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("2", NEWER),
        ("'1'", ODD.format("'1'")),
        ("True", ODD.format("True")),
        ("0", ODD.format("0")),
    ],
)
def test_what_does_not_fit_is_refused_by_name(site: Site, version: str, told: str) -> None:
    site.module("toy", TOY)
    site.module("other", TOY.replace('"toy"', '"other"'))
    site.plugin("new", plugin("toy", version))
    site.plugin("good", plugin("other", "1") + OPERATION.format(name="good.f(x, /)"))
    lines = site.run(SHOW).splitlines()
    assert f"new | multigrad-new 1.0 | broken | {told}" in lines
    assert "other | multigrad-good 1.0 | available | " in lines
    assert not any(line.startswith("toy") for line in lines)
    assert site.error("get('new')") == f"BackendError: backend 'new' is broken: {told}"
    assert "BackendError: unknown backend 'toy'" in site.error("get('toy')")
    use = (
        "import multigrad as mg\n"
        "from multigrad import extend\n"
        "print(extend.backend('other').name, mg.good.f(mg.ones(1)).item())"
    )
    assert site.run(use) == "other 1.0\n"


def test_of_what_is_refused_no_operation_stays(site: Site) -> None:
    site.plugin("new", f"MULTIGRAD_API = 2\n{EARLY}" + OPERATION.format(name="new.g(x, /)"))
    out = site.run("""
        import multigrad as mg
        print(mg.ones(1).item(), [name for name in mg.registry.OPS if name.startswith("new.")])
        """)
    assert out == "1.0 []\n"


def test_what_a_newer_plugin_needs_may_fail_its_import(site: Site) -> None:
    """It is told what to do all the same: the version stands above what is missing here."""
    site.plugin("new", "MULTIGRAD_API = 2\nfrom multigrad.extend import Sparse\n")
    (line,) = [line for line in site.run(SHOW).splitlines() if line.startswith("new |")]
    assert line.startswith(
        f"new | multigrad-new 1.0 | broken | {NEWER} Its import failed: ImportError: cannot "
        "import name 'Sparse'"
    )


def test_an_object_of_a_module_is_of_the_version_that_the_module_says(site: Site) -> None:
    site.module("toy", TOY)
    site.module("plugin_new", "MULTIGRAD_API = 2\nclass hooks:\n    pass\n")
    site.distribution("multigrad-new", new="plugin_new:hooks")
    assert site.line("new").endswith(NEWER)


def test_a_plugin_that_waits_for_its_library_is_refused_when_that_comes(site: Site) -> None:
    site.module("new", TOY.replace('"toy"', '"new"'))
    site.plugin("new", plugin("new", "2"))
    assert site.line("new") == "new | multigrad-new 1.0 | deferred | "
    out = site.run("""
        import warnings
        import new
        from multigrad.plugins import discovery
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            print(discovery.backend_of(new.Array()), discovery.backend_of(new.Array()))
        print(*[str(w.message) for w in seen])
        """)
    assert out.splitlines() == [
        "None None",
        f"{NEWER} Arrays of 'new' count as those of an unknown library.",
    ]


def test_modules_that_cannot_be_looked_at_need_nothing(site: Site) -> None:
    """A module that puts something else in its place, and a value that cannot be printed."""
    site.module("toy", TOY)
    site.plugin("odd", "import sys\nsys.modules[__name__] = type('Odd', (), {'__slots__': ()})()\n")
    site.plugin(
        "new", "class Bad:\n    def __repr__(self): raise ValueError\nMULTIGRAD_API = Bad()\n"
    )
    lines = site.run(SHOW).splitlines()
    assert any(
        line.startswith("odd | multigrad-odd 1.0 | broken") and "no hooks" in line for line in lines
    ), lines
    assert (
        f"new | multigrad-new 1.0 | broken | {ODD.format('a Bad that cannot be printed')}" in lines
    )
