"""An exception, as Ctrl-C raises one, at each point at which Python looks for signals."""

from __future__ import annotations

import contextvars
import gc
from pathlib import Path
from types import FrameType
from typing import Any

import fault_programs
import pytest
from fault_points import ENTRY, Point, at_point, points
from fault_programs import PROGRAMS, check_state, plain, state, warmed_up
from forks import needs_fork
from plugin_sites import SPEC, site  # noqa: F401

pytestmark = pytest.mark.filterwarnings(
    "ignore",  # also those of anomaly mode, and of an exception in a weak reference's callback
)

FEW = 300


class Interrupt(KeyboardInterrupt):
    pass


def is_at_the_end_of_a_block(frame: FrameType | None, kind: str) -> bool:
    """Whether a context manager that the program entered has not begun to restore anything.

    An exception that comes after the block and before that leaves its state in force: at the entry
    of `__exit__`, in its own steps, or at the entry of a function that it calls.
    """
    for _ in range(2 if kind == ENTRY else 1):
        caller = frame and frame.f_back
        if (
            frame is not None
            and caller is not None
            and frame.f_code.co_name in ("__init__", "__enter__", "__exit__")
            and caller.f_code.co_filename == fault_programs.__file__
        ):
            return True
        frame = caller
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_at_every_point(name: str) -> None:
    program = PROGRAMS[name]
    with warmed_up(program):
        result, before = plain(program()), state()
        total, chosen = points(program, FEW)
        reached = 0
        for point in chosen:
            reached += contextvars.copy_context().run(interrupted, program, point, before, result)
            assert plain(program()) == result, f"after {point}"
    print(f"{name}: {reached} of {total} points")
    assert reached > 0.99 * len(chosen)  # but for finalizers, all are in every run


def interrupted(program: Any, point: Point, before: dict[str, Any], result: Any) -> bool:
    reached = at_end = False

    def interrupt(frame: FrameType) -> None:
        nonlocal reached, at_end
        reached, at_end = True, is_at_the_end_of_a_block(frame, point.kind)
        raise Interrupt

    try:
        out = plain(at_point(program, point, interrupt))
    except Interrupt:
        pass
    else:  # it came in a finalizer
        assert out == result, f"swallowed: {point}"
    if not at_end:
        gc.collect()
        check_state(before, point)
    return reached


TESTS = str(Path(__file__).parents[1])

LAZY = """
import sys
sys.path.insert(0, {tests!r})
import warnings; warnings.simplefilter("ignore")
import numpy as np
import multigrad as mg
from multigrad.plugins import discovery
from multigrad.errors import BackendError
from fault_points import at_point, points
from fault_programs import check_state, leaf, loss, plain, state
from forks import in_child

check_state(state() if loss(leaf()) is None else state())  # NumPy is in use
assert "toy" not in sys.modules
OWN = mg.__path__[0]

def first_use():
    import toy
    w = mg.asarray(toy.make_array([0.5, -1.0, 2.0]), requires_grad=True)
    loss(w).backward()
    return w.grad.array.tolist()

def listed(say):
    total, chosen = points(first_use, 0, runs=1)
    return total, [p for p in chosen if p.code[0].startswith((OWN + "/backends", OWN + "/plugins"))]

class Interrupt(KeyboardInterrupt): pass

def interrupt(frame):
    raise Interrupt

def interrupted(say, point):
    before = state()
    try:
        at_point(first_use, point, interrupt)
    except Interrupt:
        pass
    for name, now in state().items():
        assert now == before[name] or name.startswith("multigrad_toy"), name
    check_state(state())
    try:
        discovery.get("toy")  # it is tried again if it is asked for by name
    except BackendError as error:
        assert "Interrupt" in str(error), error
        return "left out"
    assert first_use() == result
    return "works"

result = in_child(lambda say: first_use())
total, chosen = in_child(listed)
ends, failed = [], []
for point in chosen:
    try:
        ends.append(in_child(interrupted, point))
    except AssertionError as error:
        failed.append(f"{{point}}: {{str(error)[-500:]}}")
assert not failed, "".join(failed)
print(ends.count("works"), ends.count("left out"), len(chosen))
"""


@needs_fork
def test_an_exception_while_a_backend_is_imported(site) -> None:  # noqa: F811
    """In a fork for each point. A backend whose import was interrupted works when it is asked for
    by name, or the error says that an interrupt has ended it; NumPy works.
    """
    site.module(
        "toy",
        "import numpy as np\nimport multigrad as mg\n"
        "class Array(np.ndarray): pass\n"
        "def make_array(x): return np.asarray(x).view(Array)\n"
        "def make(): return mg.Backend('toy', np, (Array,))\n",
    )
    site.plugin("toy", SPEC.format(name="toy", module="toy", load="toy:make"))
    works, left_out, total = map(int, site.run(LAZY.format(tests=TESTS)).split())
    print(f"lazy import: {total} points; the backend works after {works}")
    assert works + left_out == total and works > left_out
