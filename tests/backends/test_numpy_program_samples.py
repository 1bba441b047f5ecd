"""Programs on NumPy, over the samples of the conformance suite: the code gives what eager calls
give, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy_samples import flat, operation_on
from recorded_programs import assert_same, poisoned, recorded

import multigrad as mg
from multigrad import func
from multigrad.registry import OPS
from multigrad_conformance.sample import Sample
from multigrad_conformance.samples import samples_of

mg.zeros(1)


def functions(name: str, sample: Sample) -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """The operation on the arrays of a sample, and its gradient."""
    forward, arrays = operation_on(name, sample, narrow=False)
    floating = tuple(i for i, x in enumerate(arrays) if x.dtype.kind in "fc")
    if not arrays:
        return

    def loss(*xs: Any) -> Any:
        out = forward(*xs)
        parts = [
            mg.astype(x, x.dtype) * 0.75
            for x in (out if type(out) in (tuple, list) or hasattr(out, "_fields") else (out,))
            if hasattr(x, "dtype") and np.dtype(x.dtype).kind in "fc"
        ]
        return sum(
            (mg.sum(mg.real(x * x) if np.dtype(x.dtype).kind == "c" else x * x) for x in parts),
            mg.zeros(()),
        )

    yield "forward", forward, arrays
    if floating and OPS[name].kind != "nondifferentiable":
        yield "gradient", func.grad(loss, argnums=floating), arrays


def compare(name: str, sample: Sample) -> None:
    for what, f, arrays in functions(name, sample):
        if not sample.values:
            continue
        try:
            expected = flat(f(*arrays))
        except Exception:  # no derivative, or not of this dtype
            continue
        try:
            program = recorded(f, *arrays)
        except (TypeError, ValueError):
            # more than a program: it looks at values, or returns no arrays
            continue
        with np.errstate(all="ignore"):
            p = poisoned(program, arrays)
            got = p.poisoned(*arrays)
            assert_same(got, p.one_by_one(*arrays))
            assert_same(p.code(*arrays), got)
        if len(got) == len(expected):
            assert_same([np.asarray(x) for x in got], expected), what


NAMES = sorted(n for n in OPS if samples_of(n) and not n.startswith("special."))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_short_samples(name: str) -> None:
    for sample in samples_of(name):
        if sample.short:
            compare(name, sample)
