"""One plugin does not harm another, nor who uses neither: what it claims, what it raises, how long
it takes, what it replaces.
"""

from __future__ import annotations

import re

import pytest
from plugin_sites import SHOW, SPEC, TOY, Site, site

__all__ = ["site"]
pytestmark = pytest.mark.sweep  # each test starts several processes

# NumPy works as if no plugin were there, whatever was asked for before.
NUMPY_WORKS = """
import numpy as np
import multigrad as mg
class Mine(np.ndarray): pass
def numpy_works():
    for x in (np.arange(3.0), np.arange(3.0).view(Mine), np.float64(1.0)):
        t = mg.asarray(x, requires_grad=True)
        (t * 2).sum().backward()
        assert type(t.grad.array).__module__ == "numpy" and discovery.backend_of(x).name == "numpy"
    for x in (1.0, None, "text", [1.0], object()):
        assert discovery.backend_of(x) is None
"""
USE = (
    """
import warnings
from multigrad.plugins import discovery
from multigrad.errors import BackendError, RegistrationError
def told(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""
    + NUMPY_WORKS
)


def plugin(name: str, module: str, load: str = "") -> str:
    return SPEC.format(name=name, module=module, load=load or f"{name}:make")


OPERATION = """
import multigrad as mg
@mg.hookimpl
def multigrad_operations():
    return [mg.registry.{declare}]
"""


def operation(name: str) -> str:
    """A plugin with one operation, which returns its argument."""
    declare = f"elementwise('{name}(x, /)', x=1.0, forward=lambda xp, x: x)"
    return OPERATION.format(declare=declare)


# ----- A module belongs to one backend -----


@pytest.mark.parametrize("module", ["numpy.linalg", "jax"])
def test_a_module_belongs_to_the_built_in_backend(site: Site, module: str) -> None:
    site.module("evil", "raise SystemExit('imported')")
    site.plugin("aaa", plugin("evil", module))
    out = site.run(f"""{SHOW}
import sys
assert "numpy" not in sys.modules
{USE}
numpy_works()
print(told(lambda: discovery.get("evil")))
numpy_works()
""")
    owner = module.partition(".")[0]
    expected = (
        "backend 'evil' of the plugin 'aaa' of multigrad-aaa 1.0 is refused: its module "
        f"{module!r} is that of the backend {owner!r} of the plugin {owner!r} of multigrad-array"
    )
    assert f"evil | multigrad-aaa 1.0 | broken | {expected}" in out
    assert f"BackendError: {expected}" in out.splitlines()[-1]


def test_a_module_belongs_to_the_first_plugin_by_name(site: Site) -> None:
    """Not by the name of the distribution, which anybody may choose otherwise."""
    site.module("lib", TOY.replace('"toy"', '"first"'))
    site.module("plugin_bbb", plugin("second", "lib"))
    site.module("plugin_abc", plugin("first", "lib", "lib:make"))
    site.distribution("a-distribution", bbb="plugin_bbb")
    site.distribution("z-distribution", abc="plugin_abc")
    out = site.run(f"""{SHOW}{USE}
import lib
print(discovery.backend_of(lib.Array()).name)
print(told(lambda: discovery.get("second")))
""")
    assert "first | z-distribution 1.0 | available | \n" in out
    assert (
        "second | a-distribution 1.0 | broken | backend 'second' of the plugin 'bbb' of "
        "a-distribution 1.0 is refused: its module 'lib' is" in out
    )
    assert out.splitlines()[-2] == "first"
    assert (
        "is that of the backend 'first' of the plugin 'abc' of z-distribution 1.0. Keep one out by "
        "the environment variable MULTIGRAD_BLOCK=abc or MULTIGRAD_BLOCK=bbb, or name the module "
        "of a library in BackendSpec that no other backend is for." in out.splitlines()[-1]
    )
    # as the message advises
    for blocked, name in (("abc", "second"), ("bbb", "first")):
        out = site.run(SHOW, MULTIGRAD_BLOCK=blocked)
        assert re.search(rf"^{blocked} .* \| blocked \| ", out, re.MULTILINE), out
        assert re.search(rf"^{name} .* \| available \| $", out, re.MULTILINE), out


def test_one_plugin_has_two_backends_of_one_module(site: Site) -> None:
    more = "class Other: pass\ndef make_b(): return mg.Backend('b', array_api_strict, (Other,))\n"
    site.module("lib", TOY.replace('"toy"', '"a"') + more)
    specs = "[mg.BackendSpec('b', module='lib', load='lib:make_b'), mg"
    site.plugin("p", plugin("a", "lib", "lib:make").replace("[mg", specs))
    out = site.run("""
        import lib
        from multigrad.plugins import discovery
        print(discovery.backend_of(lib.Array()).name, discovery.backend_of(lib.Other()).name)
        """)
    assert out == "a b\n"


def test_a_part_of_a_library_has_a_backend(site: Site) -> None:
    """To look at it imports nothing, not even the library that it is a part of."""
    (site.folder / "lib").mkdir()
    (site.folder / "lib" / "__init__.py").write_text("print('imported')")
    (site.folder / "lib" / "arrays.py").write_text(TOY)
    site.plugin("p", plugin("toy", "lib.arrays", "lib.arrays:make"))
    assert "toy | multigrad-p 1.0 | available | " in site.run(
        SHOW + "import sys; assert 'lib' not in sys.modules"
    )
    assert (
        site.run("""
        import lib
        from multigrad.plugins import discovery
        assert discovery.backend_of(object()) is None
        import lib.arrays
        print(discovery.backend_of(lib.arrays.Array()).name)
        """)
        == "imported\ntoy\n"
    )


def test_a_blocked_backend_leaves_its_module_to_another(site: Site) -> None:
    array = "from cupy import ndarray as Array"
    site.module("other", TOY.replace('"toy"', '"other"').replace("class Array: pass", array))
    site.module("cupy", "class ndarray: pass")
    site.plugin("other", plugin("other", "cupy", "other:make"))
    code = """
        import cupy
        from multigrad.plugins import discovery
        print(discovery.get("other").name, discovery.backend_of(cupy.ndarray()).name)
        """
    assert site.run(code, MULTIGRAD_BLOCK="cupy") == "other other\n"


def test_the_built_in_plugins_are_those_of_this_project(site: Site) -> None:
    """Neither by their name nor by their module."""
    site.module("mine", "print('imported')")
    site.distribution("aaa", numpy="mine")
    site.distribution("bbb", alias="multigrad.backends.numpy")
    site.distribution("ccc", jax="multigrad.backends.jax")
    out = site.run(SHOW + USE + "numpy_works()")
    assert "imported" not in out
    assert (
        "numpy | aaa 1.0 | broken | the plugin 'numpy' of aaa 1.0 cannot be registered: its "
        "name or its module is already that of" in out
    )
    assert (
        "alias | bbb 1.0 | broken | the plugin 'alias' of bbb 1.0 cannot be registered: its "
        "name or its module is already that of" in out
    )
    assert "numpy | multigrad-array" in out and "jax | multigrad-array" in out and "ccc" not in out


def test_two_distributions_have_a_plugin_of_one_name(site: Site) -> None:
    """The first by the name of its distribution has it, also where both wait for their library."""
    site.module("toy", TOY)
    for name in ("one", "two"):
        site.module(f"plugin_{name}", plugin("toy", "toy"))
        site.distribution(name, toy=f"plugin_{name}")
    use = "import toy\nfrom multigrad.plugins import discovery\n"
    out = site.run(f"{use}print(discovery.backend_of(toy.Array()).name)\n{SHOW}")
    assert out.startswith("toy\n") and "toy | one 1.0 | loaded | \n" in out
    assert (
        "toy | two 1.0 | broken | the plugin 'toy' of two 1.0 cannot be registered: its name or "
        "its module is already that of the plugin" in out
    )


# ----- The types of arrays -----


LIB = """
import abc, typing
import array_api_strict
import numpy as np
import multigrad as mg
{array}
def make():
    return mg.Backend("evil", array_api_strict, (Array,))
"""
TYPES = {
    "NumPy's arrays": ("Array = np.ndarray", "that of the backend 'numpy'"),
    "everything": ("Array = object", "one of Python's own"),
    "Python's numbers": ("from numbers import Number as Array", "a superclass of Python's bool"),
    "an abstract class": (
        "class Array(abc.ABC): pass\nArray.register(np.ndarray)",
        "a superclass of numpy.ndarray, that of the backend 'numpy'",
    ),
    "a protocol": (
        "@typing.runtime_checkable\n"
        "class Array(typing.Protocol):\n"
        "    def __array_namespace__(self): ...",
        "a superclass of multigrad's own arrays",
    ),
    "whatever has a shape": (
        "class Meta(type):\n"
        "    def __subclasscheck__(cls, c): return hasattr(c, 'shape') and hasattr(c, "
        "'strides')\n"
        "    def __instancecheck__(cls, x): return hasattr(x, 'shape')\n"
        "class Array(metaclass=Meta): pass",
        "a superclass of numpy.ndarray, that of the backend 'numpy'",
    ),
    "what cannot be asked": (
        "class Meta(type):\n    def __subclasscheck__(cls, c): raise ValueError\n"
        "    __instancecheck__ = __subclasscheck__\nclass Array(metaclass=Meta): pass",
        "a superclass of Python's bool",
    ),
    "the class of JAX's arrays": (
        "import jax\nArray = type(jax.numpy.zeros(1))",
        "a subclass of jax.{}, that of the backend 'jax'",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_array_types_of_others_are_refused(site: Site, case: str) -> None:
    """In whatever order they are asked for."""
    array, expected = TYPES[case]
    site.module("evil", LIB.format(array=array))
    site.plugin("p", plugin("evil", "evil"))
    out = site.run(f"""{USE}
print(told(lambda: discovery.get("evil")))
numpy_works()
""") + site.run(f"""{USE}
numpy_works()
import evil
with warnings.catch_warnings():
    warnings.simplefilter("error")
    numpy_works()
print(told(lambda: discovery.get("evil")))
""")
    first, second = out.splitlines()
    assert first == second
    assert first.startswith(
        "BackendError: backend 'evil' of the plugin 'p' of multigrad-p 1.0 is broken: the array "
        "type "
    )
    # JAX's class has several names
    before, _, after = f" is {expected}: a backend may not claim it as well".partition("{}")
    assert before in first and first.endswith(after)


def test_a_late_library_keeps_its_arrays(site: Site) -> None:
    """A class that takes what has a certain attribute is found out when a library with such arrays
    is there; until then it takes none of them.
    """
    late = TOY.replace('"toy"', '"late"').replace("Array: pass", "Array: gpu = True")
    array = (
        "class Array(abc.ABC):\n"
        "    @classmethod\n"
        "    def __subclasshook__(cls, c): return hasattr(c, 'gpu')"
    )
    site.backend(late, "late")
    site.backend(LIB.format(array=array), "evil")
    out = site.run("""
        from multigrad.plugins import discovery
        print(discovery.get("evil").name)
        import late
        class Sub(late.Array): pass
        print(discovery.backend_of(Sub()).name, discovery.backend_of(late.Array()).name)
        """)
    assert out == "evil\nlate late\n"


SUBCLASS = """
import array_api_strict
import numpy as np
import multigrad as mg
class Quantity(np.ndarray): pass
def make():
    return mg.Backend("quantity", array_api_strict, (Quantity,))
"""


@pytest.mark.parametrize(
    "first",
    [
        "discovery.get('numpy')",
        "discovery.backend_of(np.ones(1))",
        "discovery.get('quantity')",
        "None",
    ],
)
def test_the_class_of_an_array_decides_by_the_order_of_its_bases(site: Site, first: str) -> None:
    """A library whose arrays inherit from NumPy's has a backend of its own, whichever is used
    first.
    """
    site.module("quantity", SUBCLASS)
    site.plugin("p", plugin("quantity", "quantity"))
    out = site.run(f"""{USE}
from quantity import Quantity
{first}
class Special(Quantity): pass
class Mixed(Mine, Quantity): pass
print(*[discovery.backend_of(np.ones(2).view(c)).name for c in (Special, Mixed, Quantity, Mine, np.ndarray)])
numpy_works()
""")
    assert out == "quantity quantity quantity numpy numpy\n"


# ----- Errors are for those who ask by name -----


def test_an_error_is_raised_only_to_who_asks_by_name(site: Site) -> None:
    """A plugin may claim any library; the users of that library need not know it.

    They get one warning.
    """
    site.module("evil", "def make(): raise ValueError('no such luck')")
    site.plugin("p", plugin("evil", "decimal"))
    out = site.run(f"""{USE}
from decimal import Decimal
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        assert discovery.backend_of(Decimal(1)) is None
        print(told(lambda: mg.asarray(np.ones(2)) * Decimal(1)))
    print([str(w.message) for w in seen])
    numpy_works()
print(told(lambda: discovery.get("evil")))
print(told(lambda: mg.use_backend("evil")))
""").splitlines()
    told = "backend 'evil' of the plugin 'p' of multigrad-p 1.0 is broken: ValueError: no such luck"
    assert all(line.startswith("TypeError: unsupported operand type") for line in out[:3])
    assert out[3] == str([f"{told}. Its arrays count as those of an unknown library."])
    assert out[4] == out[5] == f"BackendError: {told}"


def test_an_array_of_a_library_whose_plugin_failed_is_told_of_it_once(site: Site) -> None:
    """The plugin waits for its library, so no listing that imports nothing can tell what is wrong
    with it.
    """
    site.module("toy", TOY)
    site.plugin("toy", "import nothing")
    out = site.run(f"""{USE}
import toy
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        print(told(lambda: mg.asarray(toy.Array())))
    print(*[w.message for w in seen])
    numpy_works()
""").splitlines()
    assert all("(see `python -m multigrad backends --probe`)" in line for line in out[:3])
    assert out[3] == (
        "the plugin 'toy' of multigrad-toy 1.0 could not be imported: ModuleNotFoundError: "
        "No module named 'nothing'. Arrays of 'toy' count as those of an unknown library."
    )


INTERRUPTED = {
    "at import": "raise KeyboardInterrupt",
    "in a hook": "import multigrad as mg\n"
    "@mg.hookimpl\n"
    "def multigrad_operations():\n"
    "    mg.registry.elementwise('evil.f(x, /)', x=1.0, forward=abs)\n"
    "    raise KeyboardInterrupt",
}


@pytest.mark.parametrize("where", INTERRUPTED)
def test_a_keyboard_interrupt_is_the_users(site: Site, where: str) -> None:
    """It is raised, once; then everything works, without the plugin, and nothing is half done."""
    site.plugin("evil", INTERRUPTED[where])
    site.plugin("good", operation("good.f"))
    out = site.run(f"""{USE}
for _ in range(3):
    try:
        numpy_works()
        print("works")
    except KeyboardInterrupt:
        print("interrupted")
print(mg.good.f(mg.asarray(2.0)).item(), "evil.f" in mg.registry.OPS)
print(*[b.name for b in mg.backends() if "KeyboardInterrupt" in b.error and b.state == "broken"])
""")
    assert out.splitlines() == ["interrupted", "works", "works", "2.0 False", "evil"]


def test_the_command_lists_what_raises_an_interrupt(site: Site) -> None:
    site.plugin("evil", "raise KeyboardInterrupt")
    site.plugin(
        "hook",
        "import multigrad as mg\n"
        "@mg.hookimpl\n"
        "def multigrad_backends():\n"
        "    raise KeyboardInterrupt",
    )
    site.backend(TOY.replace("def make():", "def make():\n    raise KeyboardInterrupt"), plugin="p")
    for probe in ("", ", '--probe'"):
        out = site.run(f"import multigrad.cli; print(multigrad.cli.main(['backends'{probe}]))")
        for name in ("evil", "hook", *(["toy"] if probe else [])):
            assert re.search(rf"^{name} +broken", out, re.M), out
            assert re.search(rf"^{name}: .*KeyboardInterrupt", out, re.M), out
        assert re.search("^numpy +(loaded|available)", out, re.M), out


def test_the_users_interrupt_ends_the_command(site: Site) -> None:
    out = site.run("""
from multigrad import cli
from multigrad.plugins import listing
def interrupted(probe): raise KeyboardInterrupt
listing.listing = interrupted
try:
    cli.main(["backends"])
except KeyboardInterrupt:
    print("interrupted")
""")
    assert out == "interrupted\n"


def test_an_interrupt_while_a_backend_is_made(site: Site) -> None:
    """No array is asked about that library again; who asks for it by name tries again."""
    site.backend(
        TOY.replace(
            "def make():",
            "tries = []\n"
            "def make():\n"
            "    tries.append(1)\n"
            "    if len(tries) == 1: raise KeyboardInterrupt",
        ),
        plugin="p",
    )
    out = site.run(f"""{USE}
import toy
try:
    discovery.backend_of(object())
except KeyboardInterrupt:
    print("interrupted")
numpy_works()
print(discovery.backend_of(toy.Array()), discovery.get("toy").name, discovery.backend_of(toy.Array()).name)
""")
    assert out == "interrupted\nNone toy toy\n"


def test_a_backend_that_asks_for_itself_while_it_is_made(site: Site) -> None:
    site.backend(
        TOY.replace(
            "def make():",
            "def make():\n    from multigrad.plugins import discovery\n"
            "    assert discovery.backend_of(Array()) is None\n    discovery.get('toy')",
        ),
        plugin="p",
    )
    out = site.run(f"{USE}\nprint(told(lambda: discovery.get('toy')))\nnumpy_works()")
    assert (
        "backend 'toy' of the plugin 'p' of multigrad-p 1.0 was requested by the function that "
        "makes it, 'toy:make'." in out
    )


def test_metadata_that_cannot_be_read(site: Site) -> None:
    """What an interrupted installation leaves behind, and worse."""
    site.backend(plugin="p")
    for name, text in {
        "gone": "[multigrad]\nx = missing_module\n",
        "odd": "[multigrad]\nx\n= y\n[\n",
        "bytes": "[multigrad]\nz = \xff",
    }.items():
        info = site.folder / f"multigrad_{name}-1.0.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_bytes(text.encode("latin-1"))
    out = site.run(USE + "numpy_works()\nprint(discovery.get('toy').name)\nmg.backends()")
    assert out == "toy\n"


# ----- Plugins that take long -----


WAITING = "\nprint('plugin loaded')\n"


def test_a_plugin_waits_for_its_library(site: Site) -> None:
    """The entry point has the name of a library that is not imported: until it is, the plugin costs
    nothing.
    """
    site.module("toy", TOY)
    site.plugin("toy", plugin("toy", "toy") + WAITING)
    out = site.run(f"""{USE}
numpy_works()
print([(b.name, b.state, b.module, b.error) for b in mg.backends() if b.name == "toy"], "toy" in discovery.names())
import toy
numpy_works()
print("array")
print(discovery.backend_of(toy.Array()).name)
print([(b.name, b.state) for b in mg.backends() if b.name == "toy"])
""")
    assert out.splitlines() == [
        "[('toy', 'deferred', 'toy', '')] True",
        "plugin loaded",
        "array",
        "toy",
        "[('toy', 'loaded')]",
    ]


ASKED = {
    "by name": "discovery.get('toy')",
    "by the environment": "mg.zeros(1)",
    "by the listing that probes": "mg.backends(probe=True)",
    "by another name": "told(lambda: discovery.get('toys'))",
    "by its prefix": "mg.namespace('numpy').toy.f(np.ones(1))",
    "by its prefix, of the module": "mg.toy.f(np.ones(1))",
    "by its prefix, in a rule": "mg.core.element.library_named('numpy').xp.toy",
    "by the command line": "import multigrad.cli; multigrad.cli.main(['ops', 'toy'])",
}


@pytest.mark.parametrize("case", ASKED)
def test_a_plugin_is_loaded_when_it_is_asked_for(site: Site, case: str) -> None:
    site.module("toy", TOY.replace('"toy"', '"toys"' if case == "by another name" else '"toy"'))
    name = "toys" if case == "by another name" else "toy"
    site.plugin(
        "toy",
        plugin(name, "toy", "toy:make") + WAITING + "@mg.hookimpl\n"
        "def multigrad_operations():\n"
        "    return [mg.registry.elementwise('toy.f(x, /)', x=1.0, forward=lambda xp, x: x)]\n",
    )
    environment = {"MULTIGRAD_BACKEND": "toy"} if case == "by the environment" else {}
    out = site.run(
        f"{USE}\n"
        "discovery.get('numpy')\n"
        "print('asked')\n"
        "try:\n"
        f"    {ASKED[case]}\n"
        "except BackendError: pass\n"
        "assert 'toy.f' in mg.registry.OPS or mg.toy.f",
        **environment,
    )
    assert out.startswith("asked\nplugin loaded\n")


@pytest.mark.parametrize(
    "points",
    [{"toy": "plugin_toy", "more": "plugin_more"}, {"folder": "plugin_toy"}],
    ids=["another entry point", "a folder of that name"],
)
def test_other_plugins_are_loaded_at_once(site: Site, points: dict[str, str]) -> None:
    """They may have operations, which everybody sees."""
    (site.folder / "folder").mkdir()
    site.module("toy", TOY)
    site.module("plugin_toy", plugin("toy", "toy") + WAITING)
    site.module("plugin_more", operation("more.f"))
    site.distribution("mine", **points)
    assert site.run(USE + "numpy_works()") == "plugin loaded\n"


def test_a_library_that_uses_multigrad_while_it_is_imported(site: Site) -> None:
    """Its plugin waits until the library is there to its end."""
    site.module(
        "toy",
        "from multigrad.plugins import discovery\nassert discovery.backend_of(object()) is None\n"
        + TOY,
    )
    site.plugin("toy", "import toy\ntoy.Array\n" + plugin("toy", "toy"))
    assert (
        site.run(
            "import toy\n"
            "from multigrad.plugins import discovery\n"
            "print(discovery.backend_of(toy.Array()).name)"
        )
        == "toy\n"
    )


SLEEP = "import time; time.sleep(0.3)"
SLOW = """
import warnings
from multigrad.plugins import plugin
assert plugin.SLOW == 5
plugin.SLOW = 0.2
seen = []
def show(message, category, *rest):
    if "'slow'" in str(message):  # on a busy machine, the other plugins may take as long
        seen.append(f"{category.__name__} {message}")
warnings.showwarning = show
"""
TOOK = (
    "UserWarning the plugin 'slow' of multigrad-slow 1.0 (entry point slow = plugin_slow) took "
    "more than 0.2 seconds to load. The environment variable MULTIGRAD_BLOCK=slow keeps it out.\n"
)


def test_a_plugin_that_takes_long_is_named(site: Site) -> None:
    site.module("toy", TOY)
    site.plugin("slow", f"{SLEEP}\n{plugin('toy', 'toy')}")
    site.plugin("quick", operation("quick.f"))
    assert site.run(f"{SLOW}{USE}\nnumpy_works()\nmg.backends()\nprint(*seen)") == TOOK


def test_a_backend_that_takes_long_when_an_array_of_another_library_is_met_is_named(
    site: Site,
) -> None:
    site.module("toy", TOY.replace("def make():", f"def make():\n    {SLEEP}"))
    site.plugin("slow", plugin("toy", "decimal", "toy:make"))
    out = site.run(f"import decimal\n{SLOW}{USE}\ndiscovery.backend_of(object())\nprint(*seen)")
    assert out == TOOK


HANG = "import time; time.sleep(60)"


@pytest.mark.parametrize("where", ["import", "hook", "backend"])
def test_a_plugin_that_hangs_is_named_by_the_interrupt(site: Site, where: str) -> None:
    """It never gets any further, so a warning afterwards would never come."""
    text = plugin("toy", "decimal", "toy:make")
    hang = {"import": text + HANG, "hook": text.replace("    return", f"    {HANG}\n    return")}
    site.module("toy", TOY.replace("def make():", f"def make():\n    {HANG}"))
    site.plugin("slow", hang.get(where, text))
    out = site.run(f"""
import decimal, signal, sys, threading, time, traceback
{USE}
def user():  # presses Ctrl-C once the program hangs
    while "time.sleep(60)" not in str(traceback.extract_stack(sys._current_frames()[main])[-1].line):
        time.sleep(0.02)
    signal.pthread_kill(main, signal.SIGINT)
main = threading.get_ident()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
threading.Thread(target=user, daemon=True).start()
try:
    discovery.backend_of(object())
except KeyboardInterrupt as error:
    print(*error.__notes__)
numpy_works()
""")
    assert out == (
        "This interrupted the plugin 'slow' of multigrad-slow 1.0. The environment variable "
        "MULTIGRAD_BLOCK=slow keeps it out.\n"
    )


# ----- Plugins that replace operations -----


OTHER_SIN = "elementwise('sin(x, /)', x=lambda xp, x: 100 + 0 * x, override=True)"
WARNINGS = """
import warnings
seen = []
warnings.showwarning = lambda message, *rest: seen.append(str(message))
"""


@pytest.mark.parametrize("when", ["hook", "import before"])
def test_an_override_of_the_standard_is_told_once(site: Site, when: str) -> None:
    hook = OPERATION.format(declare=OTHER_SIN)
    early = (
        "import multigrad as mg\n"
        f"mg.registry.{OTHER_SIN}\n"
        "@mg.hookimpl\n"
        "def multigrad_samples(): return {}\n"
    )
    site.plugin("evil", hook if when == "hook" else early)
    out = site.run(f"""{WARNINGS}
{"import plugin_evil" if when == "import before" else ""}
import multigrad as mg
import multigrad.cli
x = mg.asarray(0.0, requires_grad=True)
for _ in range(3):
    mg.sin(x).backward()
print(x.grad.item(), seen)
print([(b.name, b.state, b.overrides) for b in mg.backends() if b.overrides])
multigrad.cli.main(["backends"])
multigrad.cli.main(["ops", "sin"])
assert len(seen) == 1
""")
    lines = out.splitlines()
    told = (
        "the plugin 'evil' of multigrad-evil 1.0 replaces operations of the standard, by "
        "override=True: sin. The environment variable MULTIGRAD_BLOCK=evil keeps it out."
    )
    assert lines[0] == f"300.0 {[told]}"
    assert lines[1] == "[('evil', 'operations', ('sin',))]"
    assert "evil: replaces operations of the standard: sin" in lines
    shown = {
        line.split()[1]: line for line in lines if line.startswith(("elementwise", "standard"))
    }
    assert shown["sin(x,"].endswith(" plugin_evil, in place of multigrad.ops.elementwise")
    assert shown["asin(x,"].endswith(" multigrad.ops.elementwise")


def test_an_override_by_another_package_belongs_to_the_plugin_that_returns_it(site: Site) -> None:
    text = f"import multigrad as mg\ndef sin(): return mg.registry.{OTHER_SIN}\n"
    hook = "import multigrad as mg, {0}\n@mg.hookimpl\ndef multigrad_operations(): return [{0}.{1}]"
    for name, more in (("rules", ""), ("wrong_rules", ", 3")):
        site.module(name, text)
        site.plugin(f"with_{name}", hook.format(name, f"sin(){more}"))
    out = site.run(f"""{WARNINGS}
import multigrad as mg
mg.sin(mg.zeros(1))
print(len(seen), seen[0], mg.registry.OPS["sin"].module)
print([(b.name, b.overrides) for b in mg.backends() if b.overrides or b.error])
""").splitlines()
    assert out[0].startswith("1 the plugin 'with_rules' of multigrad-with_rules 1.0 replaces")
    assert out[0].endswith(" rules")
    assert "('with_rules', ('sin',))" in out[1] and "('with_wrong_rules', ())" in out[1]


def test_a_plugin_may_replace_its_own_operations(site: Site) -> None:
    again = "elementwise('good.f(x, /)', x=2.0, override=True)"
    site.plugin(
        "good",
        operation("good.f").replace("return [", "first = [")
        + f"    return [mg.registry.{again}]\n",
    )
    code = "mg.zeros(1)\nprint(seen, [b.name for b in mg.backends() if b.overrides])"
    assert site.run(f"{WARNINGS}\nimport multigrad as mg\n{code}") == "[] []\n"


@pytest.mark.parametrize("first", ["discovery.get('numpy')", "discovery.names()", "mg.zeros(1)"])
def test_a_plugin_that_uses_multigrad_while_it_is_imported_and_fails(
    site: Site, first: str
) -> None:
    """What the others declared meanwhile stays."""
    site.plugin("good", operation("good.f"))
    site.plugin(
        "evil",
        "import multigrad as mg\n"
        "mg.zeros(1)\n"
        "mg.registry.elementwise('evil.f(x, /)', x=1.0, forward=abs)\n"
        "raise ValueError('late')",
    )
    out = site.run(
        f"{USE}\n"
        f"{first}\n"
        "numpy_works()\n"
        "print(mg.good.f(mg.ones(1)).item(), 'evil.f' in mg.registry.OPS, "
        "mg.ones(1).to_backend('numpy').item(), [b.name for b in mg.backends() if b.state == "
        "'broken'])"
    )
    assert out == "1.0 False 1.0 ['evil']\n"


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "deferred"])
def test_a_plugin_that_asks_while_it_is_imported(site: Site, waits: bool) -> None:
    site.module("toy", TOY)
    name = "toy" if waits else "p"
    asks = "from multigrad.plugins import discovery\ndiscovery.backend_of(object())\n"
    site.plugin(name, asks + plugin("toy", "toy"))
    out = site.run(f"""{USE}
import toy
assert discovery.backend_of(toy.Array()) is None
numpy_works()
print(*[b.error for b in mg.backends() if b.state == "broken"])
""")
    assert out == (
        f"the plugin '{name}' of multigrad-{name} 1.0 asked for a backend while it was still being "
        "imported: do that inside its functions.\n"
    )


def test_a_name_of_the_standard_is_taken_before_anything_is_used(site: Site) -> None:
    """A library that declares operations when it is imported meets the standard's, not they it."""
    out = site.run("""
        import multigrad as mg
        try:
            mg.registry.elementwise("sin(x, /)", x=0.0)
        except ValueError as error:
            print(error)
        print(mg.sin(mg.asarray(0.0)).item())
        """)
    assert out == (
        "operation 'sin' is declared by __main__ but was already declared by "
        "multigrad.ops.elementwise. Choose another name, or pass override=True to replace it.\n"
        "0.0\n"
    )


def test_an_operator_is_replaced_with_its_operation_only(site: Site) -> None:
    """`+` belongs to `add`: another operation may not serve it, by override=True or without."""
    plus = "elementwise('evil.plus(x1, x2, /)', x1=1, x2=1, operator='add', forward=min)"
    site.plugin("evil", OPERATION.format(declare=plus))
    odd = "elementwise('worse.f(x, /)', x=1, operator='array_namespace', forward=abs)"
    site.plugin("worse", OPERATION.format(declare=odd))
    out = site.run("""
        import multigrad as mg
        print((mg.asarray(1.0) + 2.0).item(), mg.zeros(1).__array_namespace__().__name__)
        print(*[b.error for b in mg.backends() if b.state == "broken"], sep="\\n")
        """).splitlines()
    assert out[0] == "3.0 multigrad.numpy"
    assert "evil.plus: the operator 'add' already belongs to the operation 'add'." in out[1]
    assert "worse.f: 'array_namespace' is not a Python operator that arrays have" in out[2]


# ----- Names of operations that a backend gives -----


def test_names_of_operations_of_other_plugins(site: Site) -> None:
    """Those of a plugin that is here must exist; what is said of one that is not waits for it."""
    functions = "functions={'sin': abs, 'good.f': abs, 'absent.f': abs}"
    given = f"(Array,), {functions}, rules={{'good.f': {{'x': 2.0}}}})"
    site.backend(TOY.replace("(Array,))", given), plugin="p")
    site.plugin("good", operation("good.f"))
    assert site.run(f"{USE}\nprint(discovery.get('toy').name)") == "toy\n"
    site.module("toy", TOY.replace("(Array,))", "(Array,), functions={'good.g': abs})"))
    assert "gives functions for unknown operations: good.g. Did you mean 'good.f'?" in site.run(
        f"{USE}\nprint(told(lambda: discovery.get('toy')))"
    )
