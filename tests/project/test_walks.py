"""How far the reader of one program has to walk: the functions of multigrad, and their files, that
run when it is called for the third time.

A function counts that has a name of its own and stands in a file: no lambda, no comprehension, and
nothing that is generated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import autograd, func

ROOT = os.path.join(os.path.dirname(mg.__file__), "")


class Square(autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a: Any) -> Any:
        return a * a

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (a,) = ctx.saved_tensors
        return 2 * g * a


def row() -> Any:
    x = mg.asarray(np.arange(6.0).reshape(2, 3), requires_grad=True)
    return (x * 1.0)[0]


def examples() -> Any:
    return np.arange(6.0).reshape(2, 3)


def write(v: Any) -> None:
    v[0] = 5


WALKS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "v[0] = 5": (row, write),
    "vmap(grad)": (examples, func.vmap(func.grad(lambda r: mg.sum(mg.sin(r) * r)))),
    "vmap(Function)": (examples, func.vmap(Square.apply)),
}


def walk(argument: Any, program: Callable[[Any], Any]) -> set[tuple[str, str]]:
    """The functions that run in a call, (file, qualified name)."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(ROOT)
            and not code.co_name.startswith("<")
        ):
            seen.add((code.co_filename.removeprefix(ROOT), code.co_qualname))

    sys.setprofile(note)
    try:
        program(argument)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize(
    ("name", "functions", "files"),
    [
        ("v[0] = 5", 30, 8),
        ("vmap(grad)", 92, 19),
        pytest.param(
            "vmap(Function)",
            60,
            10,
            marks=pytest.mark.xfail(strict=True, reason="67 functions in 12 files"),
        ),
    ],
)
def test_a_walk_is_short(name: str, functions: int, files: int) -> None:
    """In a process of its own, where no other test has left a way that is taken less often."""
    done = subprocess.run(
        [sys.executable, __file__, name], capture_output=True, text=True, timeout=300, check=True
    )
    seen = [tuple(line.split()) for line in done.stdout.splitlines()]
    where = sorted({file for file, _ in seen})
    assert len(seen) <= functions and len(where) <= files, (
        f"{name}: {len(seen)} functions in {len(where)} files: {', '.join(where)}"
    )


def main(name: str) -> None:
    argument, program = WALKS[name]
    for _ in range(2):
        program(argument())
    for file, function in sorted(walk(argument(), program)):
        print(file, function)


if __name__ == "__main__":
    main(sys.argv[1])
