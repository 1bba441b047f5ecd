"""Every operation on the samples of the suite, with operands of every kind, in every transformation,
in turn: runners compute what the general path computes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy_samples import operation_on
from runner_checks import WHERE, agree_in_turn

import multigrad as mg
from multigrad.registry import OPS
from multigrad_conformance.samples import samples_of

mg.zeros(1)
APART = {
    "empty_like": "its values are what the memory held before",
    "to_backend": "it takes Tensors alone",
}
NAMES = sorted(n for n in OPS if samples_of(n) and OPS[n].kind != "composite" and n not in APART)


def stale(x: Any) -> Any:
    base = mg.asarray(np.stack([x, x]), requires_grad=x.dtype.kind in "fc")
    base = base * 1 if x.dtype.kind != "b" else base
    view = base[0, ...]
    base *= True if x.dtype.kind == "b" else 1
    return view


SINGLE = {"f": "float32", "c": "complex64"}
KINDS: dict[str, Callable[[Any], Any]] = {
    "raw": lambda x: x.copy(),
    "constant": lambda x: mg.asarray(x.copy()),
    "leaf": lambda x: mg.asarray(x.copy(), requires_grad=x.dtype.kind in "fc"),
    "view": lambda x: mg.asarray(np.stack([x, x]))[0, ...],
    "stale view": stale,
    "single": lambda x: mg.asarray(x.astype(SINGLE.get(x.dtype.kind, x.dtype))),
    "integer": lambda x: x.astype("int64") if x.dtype.kind == "f" else x.copy(),
}
OWN: dict[str, Callable[[Any], Any]] = {"own": lambda x: x, "own view": lambda x: x[...]}


def call(
    name: str, number: int, where: str
) -> tuple[Callable[..., Any], Sequence[Any], str] | None:
    """The operation on one of its samples, in a transformation of some of its arrays."""
    draw = random.Random(f"{name} {number} {where}")
    function, arrays = operation_on(name, samples_of(name)[number], draw.random() < 0.3)
    floating = [i for i, x in enumerate(arrays) if x.dtype.kind in "fc"]
    kinds = [draw.choice(3 * [*OWN] + [*KINDS]) for _ in arrays]
    mine = [i for i, kind in enumerate(kinds) if kind in OWN and i in floating]
    if not mine and floating:
        mine = [draw.choice(floating)]
        kinds[mine[0]] = "own"
    if not mine:
        return None

    def run(*owned: Any) -> Any:
        own = dict(zip(mine, owned, strict=True))
        given = [
            OWN[kind](own[i]) if i in own else KINDS.get(kind, KINDS["constant"])(x)
            for i, (kind, x) in enumerate(zip(kinds, arrays, strict=True))
        ]
        found = function(*given)
        return found, [found is x for x in given]

    run.__name__ = f"{samples_of(name)[number]!r} of {kinds}"
    return run, [arrays[i] for i in mine], where


@pytest.mark.sweep_after(30)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_of(name: str, no_runners: None) -> None:
    draw = random.Random(name)
    numbers = range(len(samples_of(name)))
    calls = [
        made
        for number in draw.sample(numbers, min(4, len(numbers)))
        for where in draw.sample([*WHERE], 6)
        if (made := call(name, number, where)) is not None
    ]
    agree_in_turn(calls)
