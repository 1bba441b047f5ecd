"""Tables that are filled at the first use: a thread that comes while another one fills them waits,
and sees all of them.

Each test stops one thread in the middle, by a function of a plugin or by one that is replaced,
until another thread has come.
"""

from __future__ import annotations

import pytest
from plugin_sites import SPEC, TOY, Site, site

__all__ = ["site"]

THREADS = """
import importlib._bootstrap, os, sys, threading

inside, over = threading.Event(), threading.Event()

# A thread that is about to wait for a lock, or for a module that another thread imports, says so.
class Lock:
    def __init__(self, made=threading.RLock):
        self.lock = made()
        self.release = self.lock.release
    def acquire(self, blocking=True, timeout=-1):
        if self.lock.acquire(blocking=False):
            return True
        over.set()
        return blocking and self.lock.acquire(timeout=timeout)
    __enter__ = acquire
    def __exit__(self, *error):
        self.release()
threading.RLock = Lock

class ModuleLock(importlib._bootstrap._ModuleLock):
    def acquire(self):
        if self.owner not in (None, threading.get_ident()):
            over.set()
        return super().acquire()
importlib._bootstrap._ModuleLock = ModuleLock

import numpy as np
import multigrad as mg
from multigrad.plugins import discovery

def pause():
    # Let the other thread come, and wait until it is done, or until it waits.
    inside.set()
    assert over.wait(60)

def run(first, second):
    # What both return: `second` begins when `first` has called pause().
    found = {}
    def call(name, function):
        try:
            found[name] = function()
        except BaseException as error:
            found[name] = repr(error)
    def later():
        assert inside.wait(60)
        call("second", second)
        over.set()
    threads = [threading.Thread(target=call, args=("first", first), daemon=True), threading.Thread(target=later, daemon=True)]
    for t in threads: t.start()
    for t in threads: t.join(60)
    print(*("hangs" if t.is_alive() else found[name] for t, name in zip(threads, ("first", "second"))), flush=True)
    os._exit(0)
"""

OPERATIONS = """
import multigrad as mg
from multigrad import registry
@mg.hookimpl
def multigrad_operations():
"""


def test_a_thread_waits_for_the_backend_that_another_one_loads(site: Site) -> None:
    """What is asked meanwhile in the loading thread itself is answered at once."""
    out = site.run(
        THREADS
        + """
from multigrad.backends.numpy import backend
from multigrad.core.element import is_array
x, made, asked = np.ones(3), backend.make, []
def make():
    asked.append(is_array(x))
    pause()
    return made()
backend.make = make
run(lambda: (is_array(x), asked), lambda: is_array(x))
"""
    )
    assert out == "(True, [False]) True\n"


def test_a_thread_does_not_hold_what_the_import_of_a_library_needs(site: Site) -> None:
    """One thread imports a library, which uses multigrad; the other one finds that library and
    looks for its backend.
    """
    site.module("other", TOY.replace('"toy"', '"other"'))
    site.module(
        "toy",
        "import __main__; __main__.pause()\nfrom multigrad.plugins import discovery\n"
        "found = discovery.backend_of(__main__.other.Array()).name\n" + TOY,
    )
    site.plugin("p", SPEC.format(name="toy", module="toy", load="toy:make"))
    site.plugin("q", SPEC.format(name="other", module="other", load="other:make"))
    out = site.run(
        THREADS
        + """
import other
def imported():
    import toy
    return toy.found
run(imported, lambda: discovery.backend_of(object()))
"""
    )
    assert out == "other None\n"


def test_a_library_may_ask_while_another_thread_loads_its_backend(site: Site) -> None:
    """The thread that imports the library does not wait for a thread that waits for the import."""
    site.module(
        "toy",
        "import __main__\n"
        "from multigrad.plugins import discovery\n"
        "__main__.answers = [discovery.backend_of(object())]\n" + TOY,
    )
    site.module(
        "toy_backend",
        "import __main__\ndef make():\n    __main__.pause()\n    import toy\n    return toy.make()",
    )
    site.plugin("p", SPEC.format(name="toy", module="toy", load="toy_backend:make"))
    out = site.run(
        THREADS
        + """
discovery.get("numpy")
def imported():
    import toy
    return answers
run(lambda: discovery.get("toy").name, imported)
"""
    )
    assert out == "toy [None]\n"


def test_a_plugin_that_is_imported_by_hand_may_use_multigrad(site: Site) -> None:
    """The thread that fills the table of operations holds no lock while it waits for that
    import.
    """
    site.plugin(
        "p",
        "import __main__\n"
        "__main__.pause()\n"
        "import multigrad as mg\n"
        "found = mg.sum(__main__.np.ones(3)).item()\n",
    )
    out = site.run(
        THREADS
        + """
def imported():
    import plugin_p
    return plugin_p.found
run(imported, lambda: mg.sin is mg.sin)
"""
    )
    assert out == "3.0 True\n"


def test_a_hook_may_use_multigrad_while_another_thread_fills_the_table(site: Site) -> None:
    site.plugin(
        "p",
        SPEC.format(name="toy", module="toy", load="toy:make").replace(
            "    return",
            "    import __main__; __main__.pause(); __main__.used = "
            "mg.sum(__main__.np.ones(3)).item()\n"
            "    return",
        ),
    )
    out = site.run(
        THREADS + "run(lambda: ('toy' in discovery.names(), used), lambda: mg.sin is mg.sin)"
    )
    assert out == "(True, 3.0) True\n"


def test_the_table_is_filled_after_an_interrupt(site: Site) -> None:
    """Operations of the plugins that come after the one that was interrupted are there."""
    site.plugin("evil", OPERATIONS + "    raise KeyboardInterrupt")
    site.plugin(
        "good",
        OPERATIONS
        + "    return [registry.elementwise('good.f(x, /)', x=2.0, forward=lambda xp, x: 2 * x)]",
    )
    out = site.run("""
        import numpy as np
        import multigrad as mg
        for _ in range(2):
            try:
                print(mg.good.f(np.ones(())).item(), mg.sin(np.zeros(())).item())
            except KeyboardInterrupt:
                print("interrupted")
        """)
    assert out == "interrupted\n2.0 0.0\n"


def test_a_thread_waits_for_the_operations_of_a_deferred_plugin(site: Site) -> None:
    """The first of them is in the table already; the name of another one is asked for."""
    site.module("toy", TOY)
    site.plugin(
        "toy",
        OPERATIONS
        + "    first = registry.elementwise('toy.f(x, /)', x=1.0, forward=lambda xp, x: x)\n"
        "    import __main__; __main__.pause()\n"
        "    return [first, registry.elementwise('toy.g(x, /)', x=1.0, forward=lambda xp, x: "
        "2 * x)]",
    )
    out = site.run(
        THREADS
        + """
xp, raw = mg.namespace("numpy"), mg.core.element.library_named("numpy").xp
run(lambda: mg.toy.f(np.ones(())).item(), lambda: (mg.toy.g(np.ones(())).item(), xp.toy.g(np.ones(())).item(), raw.toy.g(np.ones(()))))
"""
    )
    assert out == "1.0 (2.0, 2.0, np.float64(2.0))\n" or out == "1.0 (2.0, 2.0, 2.0)\n"


def test_a_name_is_found_that_another_thread_has_just_brought(site: Site) -> None:
    """It was not in the table when the look-up began, and its plugin is deferred no more when the
    look-up asks for it.
    """
    site.module("toy", TOY)
    site.plugin(
        "toy",
        OPERATIONS
        + "    return [registry.elementwise('toy.f(x, /)', x=1.0, forward=lambda xp, x: x)]",
    )
    out = site.run(
        THREADS
        + """
library = mg.core.element.library_named("numpy")
from multigrad.backends import raw
want = raw.want
def late(name):
    raw.want = want
    pause()
    return want(name)
raw.want = late
run(lambda: library.bound.toy.f(np.ones(())).item(), lambda: want("toy"))
"""
    )
    assert out == "1.0 True\n"


@pytest.mark.parametrize("name", ["cos", "trapezoid"])
def test_numpys_functions_do_not_wait_for_a_plugin(site: Site, name: str) -> None:
    """The plugin calls one as well, and would wait for the import of the table of functions."""
    site.plugin(
        "p",
        OPERATIONS + "    import __main__, numpy as np\n    __main__.t = mg.asarray(np.ones(3))\n"
        f"    __main__.pause()\n    __main__.s = np.{name}(__main__.t)\n    return []",
    )
    out = site.run(
        THREADS + f"\nrun(lambda: mg.zeros(1).tolist(), lambda: np.{name}(t).shape)",
    )
    assert out == f"[0.0] {'()' if name == 'trapezoid' else '(3,)'}\n"


@pytest.mark.parametrize("look_up", ["library.bound.lineage", "library.xp.lineage"])
def test_a_table_that_grows_may_be_searched(site: Site, look_up: str) -> None:
    """Another thread may declare operations while one looks for a prefix."""
    out = site.run(f"""
        import sys, threading
        import multigrad as mg
        from multigrad import registry
        sys.setswitchinterval(1e-6)
        library = mg.core.element.library_named("numpy")
        declared, enough = [], threading.Event()
        def declare():
            while not enough.is_set():
                name = f"grown{{len(declared)}}.f"
                declared.append(registry.elementwise(f"{{name}}(x, /)", x=1.0, forward=lambda xp, x: x))
        thread = threading.Thread(target=declare)
        thread.start()
        searched = 0
        try:
            while searched < 50 or len(declared) < 150:
                try:
                    {look_up}
                except AttributeError:
                    searched += 1
        finally:
            enough.set()
        thread.join()
        print(library.bound.grown149.__name__)
        """)
    assert out == "multigrad.numpy.grown149\n"


def test_a_table_that_grows_may_be_listed(site: Site) -> None:
    """Another thread may declare an operation while one lists the names of a namespace."""
    out = site.run("""
        import numpy as np
        import multigrad as mg
        from multigrad import registry
        library = mg.core.element.library_named("numpy")
        declared = []
        class Name(str):
            def startswith(self, prefix):
                if not declared:
                    declared.append("grown")
                    registry.elementwise("grown(x, /)", x=1.0, forward=lambda xp, x: x)
                return str.startswith(self, prefix)
        registry.OPS[Name("strange.f")] = registry.OPS["sin"]
        dir(library.bound)
        print(len(declared))
        """)
    assert out == "1\n"


def test_what_is_made_of_an_operation_does_not_outlive_it(site: Site) -> None:
    """One thread makes a function while another replaces the operation: the next look-up finds the
    new one.
    """
    out = site.run("""
        import numpy as np
        import multigrad as mg
        from multigrad import registry
        from multigrad.dispatch import functions
        library = mg.core.element.library_named("numpy")
        made, factor, replaced = functions.make_function, 1.0, False
        def make(op, *args, **kwargs):
            global replaced
            function = made(op, *args, **kwargs)
            if op.name == "sin" and not replaced:
                replaced = True
                registry.elementwise("sin(x, /)", x=factor, override=True, doc=f"by {factor}")
            return function
        functions.make_function = make
        def slope():
            x = mg.asarray(np.zeros(()), requires_grad=True)
            look_up()(x + 0).backward()
            return x.grad.item()
        for look_up in (
            lambda: mg.sin,
            lambda: library.bound.sin,
            lambda: mg.Tensor.sin,
            lambda: mg.Tensor.sin_,
        ):
            registry.elementwise("sin(x, /)", x=0.0, override=True)
            factor, replaced = factor + 1.0, False
            slope()
            print(replaced, slope(), slope(), look_up().__doc__.splitlines()[0])
        """)
    assert out.splitlines() == [
        "True 2.0 2.0 by 2.0",
        "True 3.0 3.0 by 3.0",
        "True 4.0 4.0 by 4.0",
        "True 5.0 5.0 In place: by 5.0",
    ]


def test_a_held_prefix_gives_the_new_function(site: Site) -> None:
    out = site.run("""
        import numpy as np
        import multigrad as mg
        from multigrad import linalg, registry
        before = linalg.trace, mg.linalg.trace
        registry.linear("linalg.trace(x, /)", x=lambda xp, g, x_shape: g, override=True, doc="new")
        print(before[0] is before[1], *[f.__doc__.splitlines()[0] for f in (linalg.trace, mg.linalg.trace)])
        """)
    assert out == "True new new\n"


def test_a_raw_function_does_not_outlive_its_operation(site: Site) -> None:
    out = site.run("""
        import numpy as np
        import multigrad as mg
        from multigrad import registry
        from multigrad.backends import raw
        xp, found, replaced = mg.core.element.library_named("numpy").xp, raw.RawNamespace._find, []
        def find(self, name):
            function = found(self, name)
            if name == "sin" and not replaced:
                replaced.append(registry.elementwise("sin(x, /)", x=1.0, forward=lambda xp, x: x + 7, override=True))
            return function
        raw.RawNamespace._find = find
        xp.sin
        print(len(replaced), float(xp.sin(np.zeros(()))), float(xp.sin(np.zeros(()))))
        """)
    assert out == "1 7.0 7.0\n"


def test_methods_are_there_while_their_operation_is_replaced(site: Site) -> None:
    out = site.run("""
        import numpy as np
        import multigrad as mg
        from multigrad import registry
        from multigrad.core import element
        from multigrad.dispatch import functions
        x, seen = mg.asarray(np.zeros(())), []
        for module in (element, functions):
            def forget(*changed, before=module.forget):
                seen.append((hasattr(x, "sin"), hasattr(x, "sin_")))
                before(*changed)
            module.forget = forget
        registry.elementwise("sin(x, /)", x=1.0, forward=lambda xp, x: x + 7, override=True)
        print(set(seen), x.sin().item())
        registry.define("sin(x, /)", x=lambda xp, g: g, forward=lambda xp, x: x + 8, override=True, chapter="other")
        print(hasattr(x, "sin_"), x.sin().item())
        """)
    assert out == "{(True, True)} 7.0\nFalse 8.0\n"


def test_an_operation_that_is_taken_back_leaves_no_method(site: Site) -> None:
    site.module("toy", TOY)
    site.plugin(
        "evil",
        OPERATIONS + "    registry.elementwise('evil(x, /)', x=1.0, forward=lambda xp, x: x)\n"
        "    raise ValueError",
    )
    out = site.run("""
        import numpy as np
        import multigrad as mg
        x = mg.asarray(np.zeros(()))
        print(x.sin().item(), hasattr(x, "evil"), hasattr(x, "evil_"))
        """)
    assert out == "0.0 False False\n"


def test_first_use_in_several_threads_at_once(site: Site) -> None:
    """Whoever comes while another thread fills the tables does not find them half full."""
    out = site.run("""
        import sys, threading
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        import multigrad as mg
        from multigrad import func
        sys.setswitchinterval(1e-6)
        x, together = np.arange(12.0).reshape(4, 3), threading.Barrier(8)
        def first(i):
            together.wait()
            return func.vmap(func.hessian(lambda s: mg.sum(mg.sin(s) * s**2)))(x).shape
        with ThreadPoolExecutor(8) as pool:
            print(set(pool.map(first, range(8))))
        """)
    assert out == "{(4, 3, 3)}\n"
