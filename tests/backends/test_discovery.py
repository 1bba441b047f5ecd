"""Discovery of backends and plugins, through entry points of distributions made for each test, in a
process of its own.
"""

from __future__ import annotations

import pytest
from plugin_sites import SHOW, SPEC, TOY, Site, site

__all__ = ["site"]


# ----- Listing -----


def test_the_listing_imports_no_array_library(site: Site) -> None:
    site.backend()
    out = site.run(
        SHOW + "import sys; print(*[m for m in ('numpy', 'jax', 'cupy', 'array_api_strict', 'toy') "
        "if m in sys.modules])"
    )
    assert "toy | multigrad-toy 1.0 | deferred | \n" in out
    assert "numpy | multigrad-array" in out
    assert "jax | multigrad-array" in out
    assert out.endswith("\n\n")  # no module


def test_the_command_says_how_to_try_a_plugin_that_waits(site: Site) -> None:
    site.module("toy", TOY)
    site.plugin("toy", SPEC.format(name="toy", module="toy", load="toy:mak"))
    out = site.run("from multigrad.cli import main; main(['backends'])")
    assert (
        "toy: not imported before its library is; `python -m multigrad backends --probe` "
        "imports both and tells what is wrong" in out
    )
    out = site.run("from multigrad.cli import main; main(['backends', '--probe'])")
    assert "not imported before" not in out and "has no attribute 'mak'" in out


def test_a_probe_adds_devices_and_dtypes_and_survives_what_is_broken(site: Site) -> None:
    site.module("toy", TOY)
    site.module("bad", "def make(): raise ValueError('no such luck')")
    site.plugin("toy", SPEC.format(name="toy", module="toy", load="toy:make"))
    site.plugin("bad", SPEC.format(name="bad", module="bad", load="bad:make"))
    out = site.run("""
        import multigrad
        for b in multigrad.backends(probe=True):
            print(b.name, b.state, b.devices, b.dtypes, b.error)
        """)
    assert "numpy loaded ('cpu',) ('bool', 'int8'," in out
    assert "toy loaded (\"array_api_strict.Device('CPU_DEVICE')\"," in out
    assert (
        "bad broken () () backend 'bad' of the plugin 'bad' of multigrad-bad 1.0 is broken: "
        "ValueError: no such luck" in out
    )


def test_the_version_of_a_library_is_found_without_importing_it(site: Site) -> None:
    out = site.run("""
        import importlib.metadata, sys
        import multigrad
        found = {b.name: b.library_version for b in multigrad.backends()}
        assert "numpy" not in sys.modules
        assert found["numpy"] == importlib.metadata.version("numpy")
        print("ok")
        """)
    assert out == "ok\n"


def test_built_in_backends_are_known_without_an_installation(site: Site) -> None:
    """In a source tree that is not installed there are no entry points of ours."""
    out = site.run("import importlib.metadata as m; m.entry_points = lambda **_: ()" + SHOW)
    assert "numpy | multigrad-array (not installed) | available | \n" in out
    assert "jax | multigrad-array (not installed) |" in out


# ----- Broken plugins -----


def test_a_plugin_whose_import_fails(site: Site) -> None:
    site.plugin("bad", "import missing_module")
    expected = (
        "the plugin 'bad' of multigrad-bad 1.0 could not be imported: "
        "ModuleNotFoundError: No module named 'missing_module'"
    )
    assert site.line("bad") == f"bad | multigrad-bad 1.0 | broken | {expected}"
    assert site.error("get('bad')") == f"BackendError: backend 'bad' is broken: {expected}"
    assert "Traceback" in site.run(
        "import multigrad as mg\nprint([b.traceback for b in mg.backends() if b.name == 'bad'])"
    )


HOOK = "import multigrad as mg\n@mg.hookimpl\ndef multigrad_backends():\n    "
NONSENSE = {
    "a number": (
        HOOK + "return 42",
        "returned 42 from multigrad_backends: return a list of BackendSpec.",
    ),
    "a wrong item": (
        HOOK + "return [1.5]",
        "returned 1.5 from multigrad_backends: return a list of BackendSpec.",
    ),
    "nothing": (HOOK + "pass", "returned nothing from multigrad_backends."),
    "an exception": (HOOK + "raise KeyError('k')", "failed in multigrad_backends: KeyError: 'k'"),
    "an exception later": (
        HOOK + "yield 1 / 0",
        "failed in multigrad_backends: ZeroDivisionError: division by zero",
    ),
    "a bad spec": (
        HOOK + "return [mg.BackendSpec('x', 'x', 'x')]",
        "BackendSpec.load must read 'package.module:function', not 'x'.",
    ),
    "SystemExit at import": ("import sys; sys.exit(3)", "could not be imported: SystemExit: 3"),
    "an error that cannot be printed": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "could not be imported: E",
    ),
    "GeneratorExit in a hook": (
        HOOK + "raise GeneratorExit",
        "failed in multigrad_backends: GeneratorExit",
    ),
    "what cannot be printed": (
        "class R:\n    def __repr__(self): raise ValueError\n" + HOOK + "return [R()]",
        "returned a R that cannot be printed from multigrad_backends",
    ),
    "attributes that raise": (
        "class P:\n    def __dir__(self): raise ValueError('look away')\n"
        "import sys; sys.modules[__name__] = P()",
        "cannot be looked at: ValueError: look away",
    ),
    "no hooks": ("x = 1", "implements no hooks: mark its functions with @multigrad.hookimpl."),
    "a misspelt hook": (
        HOOK.replace("backends", "backend") + "return []",
        "implements unknown hooks: multigrad_backend.",
    ),
    "a wrong signature": (
        HOOK.replace("()", "(engine)") + "return []",
        "implements a hook wrongly: ",
    ),
}


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("case", NONSENSE)
def test_a_plugin_that_registers_nonsense(site: Site, case: str) -> None:
    text, expected = NONSENSE[case]
    site.plugin("odd", text)
    line = site.line("odd")
    assert (
        line.startswith("odd | multigrad-odd 1.0 | broken | the plugin 'odd' of multigrad-odd 1.0 ")
        or "BackendSpec." in line
    )
    assert expected in line
    assert expected in site.error("get('odd')")


def test_an_entry_point_that_names_none(site: Site) -> None:
    site.module("plugin_none", "thing = None")
    site.distribution("multigrad-none", none="plugin_none:thing")
    assert "must name a module or an object with hooks" in site.line("none")


def test_what_is_right_in_a_plugin_stays(site: Site) -> None:
    site.module("toy", TOY)
    site.plugin("half", HOOK + "return [mg.BackendSpec('toy', 'toy', 'toy:make'), 'nonsense']")
    assert (
        "toy | multigrad-half 1.0 | available | the plugin 'half' of multigrad-half 1.0 "
        "returned 'nonsense'" in site.run(SHOW)
    )
    assert (
        site.run("from multigrad.plugins import discovery as d; print(d.get('toy').name)")
        == "toy\n"
    )


# ----- Names -----


def test_two_backends_with_one_name(site: Site) -> None:
    site.module("toy", TOY)
    for name in ("first", "second"):
        site.plugin(name, SPEC.format(name="toy", module="toy", load="toy:make"))
    out = site.run(SHOW)
    assert "toy | multigrad-first 1.0 | available | \n" in out
    assert (
        "second | multigrad-second 1.0 | broken | the backend 'toy' of the plugin 'second' of "
        "multigrad-second 1.0 is already that of the plugin 'first' of multigrad-first 1.0. "
        "Choose another name.\n"
    ) in out


# ----- Blocking -----


def test_a_blocked_plugin_is_not_imported(site: Site) -> None:
    site.plugin("loud", "print('imported')")
    assert (
        site.line("loud", MULTIGRAD_BLOCK="other, loud") == "loud | multigrad-loud 1.0 | blocked | "
    )
    assert "imported" not in site.run(SHOW, MULTIGRAD_BLOCK="loud")
    expected = (
        "BackendError: backend 'loud' is blocked: remove it from the environment "
        "variable MULTIGRAD_BLOCK, or do not block it."
    )
    assert site.error("get('loud')", MULTIGRAD_BLOCK="loud") == expected


def test_a_backend_is_blocked_after_discovery(site: Site) -> None:
    site.backend(plugin="p")
    out = site.run("""
        from multigrad.plugins import discovery, plugin
        discovery.names()
        plugin.manager().set_blocked("p")
        try:
            discovery.get("toy")
        except RuntimeError as error:
            print(error)
        """)
    assert "backend 'toy' is blocked" in out


def test_a_built_in_backend_can_be_blocked(site: Site) -> None:
    assert site.line("jax", MULTIGRAD_BLOCK="jax").split(" | ")[2] == "blocked"
    assert "backend 'jax' is blocked" in site.error("get('jax')", MULTIGRAD_BLOCK="jax")


# ----- Loading -----


def test_an_unknown_backend(site: Site) -> None:
    """What is near and what is installed is told; never a package to install, which anybody may
    own.
    """
    site.backend()
    site.plugin("bad", "raise ValueError")
    site.plugin("off", "raise ValueError")
    error = site.error("get('nunpy')", MULTIGRAD_BLOCK="off")
    assert error.startswith(
        "BackendError: unknown backend 'nunpy'. Did you mean 'numpy'? Known backends: cupy, "
        "jax, numpy, "
    )
    assert "toy. Installed plugins: cupy of multigrad-array" in error
    assert (
        "bad of multigrad-bad (broken), off of multigrad-off (blocked), " in error
        and "toy of multigrad-toy" in error
    )
    assert error.endswith(". A backend for another library comes with a plugin.")
    assert "pip" not in error and "install " not in error and "multigrad-nunpy" not in error
    assert site.error("get('zzzzz')").startswith(
        "BackendError: unknown backend 'zzzzz'. Known backends: cupy, jax, numpy, "
    )
    wrong = "BackendError: a backend is requested by its name, a string, not 3."
    assert site.error("get(3)") == wrong


def test_a_backend_whose_library_is_not_installed(site: Site) -> None:
    """The name of a module is no package to install, unless the plugin says so: that of PyPI may be
    anybody's.
    """
    site.plugin("toy", SPEC.format(name="toy", module="missing_library", load="toy:make"))
    hint = SPEC.format(name="hint", module="missing", load="toy:make")
    site.plugin("hint", hint.replace(")]", ", install='pip install the-real-one')]"))
    advice = "install it according to its documentation"
    assert site.line("toy") == f"toy | multigrad-toy 1.0 | not installed | {advice}"
    expected = (
        "BackendError: backend 'toy' is known but its library 'missing_library' is not "
        f"installed: {advice}"
    )
    assert site.error("get('toy')") == expected
    assert site.error("get('hint')").endswith(
        "its library 'missing' is not installed: pip install the-real-one"
    )


def test_a_built_in_backend_says_which_extra_installs_it(site: Site) -> None:
    out = site.run("""
        import sys
        sys.modules["jax"] = None  # as if it were not there
        from multigrad.plugins import discovery
        try:
            discovery.get("jax")
        except RuntimeError as error:
            print(error)
        """)
    assert (
        out == "backend 'jax' is known but its library 'jax' is not installed: pip install "
        "'multigrad-array[jax]'\n"
    )


BROKEN = {
    "raises": ("def make(): raise ValueError('no such luck')", "ValueError: no such luck"),
    "raises SystemExit": ("def make(): raise SystemExit(5)", "SystemExit: 5"),
    "import fails": (
        "import a_missing_module",
        "cannot load 'toy:make': No module named 'a_missing_module'",
    ),
    "no such function": ("x = 1", "cannot load 'toy:make': module 'toy' has no attribute 'make'"),
    "no backend": ("def make(): return 3", "toy:make returned 3: return a multigrad.Backend"),
    "another name": (
        TOY.replace('"toy"', '"other"'),
        "returned a Backend named 'other': name it as the BackendSpec does, 'toy'",
    ),
    "no function": (
        TOY.replace("(Array,))", "(Array,), functions={'exp': 1})"),
        "backend 'toy': functions['exp'] must be callable, not 1.",
    ),
}


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("case", BROKEN)
def test_a_backend_that_is_broken(site: Site, case: str) -> None:
    text, expected = BROKEN[case]
    site.backend(text)
    error = site.error("get('toy')")
    assert error.startswith(
        "BackendError: backend 'toy' of the plugin 'toy' of multigrad-toy 1.0 is broken: "
    )
    assert expected in error


def test_a_backend_is_made_once_and_its_failure_kept(site: Site) -> None:
    site.backend("print('imported')\ndef make():\n    print('made')\n    raise ValueError('no')")
    out = site.run("""
        from multigrad.plugins import discovery
        for _ in range(3):
            try:
                discovery.get("toy")
            except RuntimeError:
                pass
        """)
    assert out == "imported\nmade\n"


def test_a_backend_without_a_device(site: Site) -> None:
    site.backend(
        "from multigrad.errors import NoDeviceError\n"
        "def make(): raise NoDeviceError('backend toy: no device')",
    )
    assert site.error("get('toy')") == "NoDeviceError: backend toy: no device"
    out = site.run(
        "import multigrad\nfor b in multigrad.backends(probe=True): print(b.name, b.state, b.error)"
    )
    assert "toy no device backend toy: no device\n" in out


# ----- Whose array is it -----


def test_backend_of_loads_only_what_is_imported_already(site: Site) -> None:
    site.backend()
    out = site.run("""
        import sys
        import numpy as np
        from multigrad.plugins.discovery import backend_of, loaded
        class Mine(np.ndarray): pass
        name = lambda x: getattr(backend_of(x), "name", None)
        print(*[name(x) for x in (1, 1.0, True, 1j, None, "a", [1.0], object())])
        print(*[name(x) for x in (np.ones(2), np.float64(1), np.bool_(1), np.ones(2).view(Mine), np.ones(2).view(Mine))])
        print([b.name for b in loaded()], "toy" in sys.modules, "jax" in sys.modules)
        import toy
        class Special(toy.Array): pass
        print(name(toy.Array()), name(Special()), name(object()))
        """)
    assert out.splitlines() == [
        "None None None None None None None None",
        "numpy numpy numpy numpy numpy",
        "['numpy'] False False",
        "toy toy None",
    ]


def test_threads_discover_once(site: Site) -> None:
    site.module("toy", TOY.replace("def make():", "def make():\n    print('made')"))
    site.plugin("toy", SPEC.format(name="toy", module="toy", load="toy:make") + "print('plugin')")
    out = site.run("""
        import threading
        import multigrad
        from multigrad.plugins import discovery
        start, found = threading.Barrier(8), []
        def work():
            start.wait()
            found.append((discovery.get("toy"), discovery.get("numpy"), len(multigrad.backends())))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert len(found) == 8 and len(set(found)) == 1
        """)
    assert out == "plugin\nmade\n"


# ----- Operations and samples -----


OPERATIONS = """
import multigrad as mg
@mg.hookimpl
def multigrad_operations():
    declared = [mg.registry.elementwise("{prefix}.twice(x, /)", x=2.0, forward=lambda xp, x: x * 2)]
    {after}
    return declared
"""


def test_a_broken_plugin_leaves_no_operations(site: Site) -> None:
    site.plugin("good", OPERATIONS.format(prefix="good", after=""))
    site.plugin("bad", OPERATIONS.format(prefix="bad", after="raise ValueError('half way')"))
    site.plugin(
        "worse",
        OPERATIONS.format(
            prefix="worse",
            after="mg.registry.elementwise('sin(x, /)', x=0.0, override=True); 1 / 0",
        ),
    )
    site.plugin("clash", OPERATIONS.format(prefix="good", after=""))
    site.plugin("wrong", OPERATIONS.format(prefix="wrong", after="declared.append(3)"))
    out = site.run("""
        import multigrad
        from multigrad import registry
        import multigrad.ops
        sin = registry.OPS["sin"]
        registry.fill()
        registry.fill()
        assert registry.OPS["sin"] is sin
        print(*[name for name in registry.OPS if name.endswith(".twice")])
        for b in multigrad.backends(): print(b.name, "->", b.error)
        """)
    lines = out.splitlines()
    assert lines[0] == "clash.twice" if "clash.twice" in out else "good.twice"
    assert (
        "bad -> the plugin 'bad' of multigrad-bad 1.0 failed in multigrad_operations: "
        "ValueError: half way" in lines
    )
    assert any(line.startswith("worse -> ") and "ZeroDivisionError" in line for line in lines)
    assert any(
        line.startswith("good -> ")
        and "'good.twice' is declared by plugin_good but was already declared by plugin_clash"
        in line
        for line in lines
    )
    assert any(
        line.startswith("wrong -> ")
        and "returned 3 from multigrad_operations: return a list of Op." in line
        for line in lines
    )


def test_samples(site: Site) -> None:
    hook = "import multigrad as mg\n@mg.hookimpl\ndef multigrad_samples():\n    return "
    site.plugin("a", hook + "{'a.f': 'module:name', 'a.g': list, 'a.h': 3}")
    site.plugin("b", hook + "{'a.f': list}")
    site.plugin("c", hook + "[1]")
    out = site.run("""
        import multigrad
        from multigrad import extend
        print(extend.samples())
        for b in multigrad.backends(): print(b.name, "->", b.error)
        """)
    assert "'a.f': 'module:name', 'a.g': <class 'list'>" in out
    assert "'a.h':" not in out.splitlines()[0]
    assert (
        "a -> the plugin 'a' of multigrad-a 1.0 returned {'a.h': 3} from multigrad_samples: a "
        "sample is a function or 'module:name', by the name of its operation." in out
    )
    assert (
        "b -> the plugin 'b' of multigrad-b 1.0 returned samples for 'a.f', which already has "
        "those of the plugin 'a' of" in out
    )
    assert (
        "c -> the plugin 'c' of multigrad-c 1.0 returned [1] from multigrad_samples: return "
        "{operation: generator}." in out
    )


def test_a_program_in_one_package_with_its_own_backend_keeps_its_lines(site: Site) -> None:
    (site.folder / "own").mkdir()
    site.module("own/__init__", "import multigrad as mg, multigrad.autograd.graph as graph")
    step = "with graph.record_lines():\n    t = mg.ones(2, requires_grad=True) * 3.0\n"
    site.module("own/main", f"from . import *\n{step}graph.print_graph(t)")
    site.plugin("own", SPEC.format(name="toy", module="toy", load="own.toy:make"))
    assert "main.py:3" in site.run("import own.main")


# ----- The other package of that name -----


def test_the_unrelated_package_of_our_name_is_reported(site: Site) -> None:
    code = (
        "from multigrad.plugins.installed import foreign_distribution\n"
        "print(foreign_distribution())"
    )
    assert site.run(code) == "None\n"
    site.distribution("multigrad-array", "9.9")
    (site.folder / "multigrad_array-9.9.dist-info" / "RECORD").write_text(
        "multigrad/__init__.py,sha256=c29tZXRoaW5n,9\n"
    )
    (site.folder / "multigrad").mkdir()  # newer Pythons leave out of the record what is not there
    (site.folder / "multigrad" / "__init__.py").write_text("something else")
    told = site.run(code)
    assert "is not the file that multigrad-array installed: another package has" in told
    site.distribution("multigrad", "1.0.0")
    told = site.run(code)
    assert told.startswith("the unrelated PyPI package 'multigrad' 1.0.0 is installed in ")
    assert told.endswith(
        "Run: pip uninstall multigrad multigrad-array; pip install multigrad-array\n"
    )
