"""Every differentiable operation is tried on complex, empty and 0-d arrays, on memory with gaps,
and on more than one value of each parameter.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from multigrad.registry import OPS, fill

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import Kink, cells
from multigrad_conformance.problem import Problem
from multigrad_conformance.sample import is_array, leaves
from multigrad_conformance.samples import samples_of

fill()
OPERATIONS = [
    op for op in OPS.values() if op.differentiable and op.builtin and op.chapter != "conversion"
]
# fmt: off
REAL = (
    "atan2", "ceil", "clip", "copysign", "floor", "hypot", "logaddexp", "max", "maximum", "min",
    "minimum", "remainder", "round", "sort", "trunc", "fft.rfft", "fft.rfftn", "fft.ihfft",
)
NO_AXIS = (
    "concat", "take", "take_along_axis", "matmul", "matrix_transpose", "vecdot", "cumulative_sum",
    "cumulative_prod", "flip", "squeeze", "moveaxis", "roll", "tril", "triu", "unstack", "repeat",
    "meshgrid", "sort", "diff", "scatter_add", "adjugate", "adjugate_tangent", "singular_factor",
    "concatenate", "convolution", "cross", "diag", "diagonal", "gradient", "split", "swapaxes",
    "trace",
)
BEYOND_REAL = (
    "median", "nanmax", "nanmedian", "nanmin", "nanpercentile", "nanquantile", "order_statistics",
    "percentile", "ptp", "quantile", "relu", "softplus",
)
NUMPYS_REAL = (
    "cbrt", "deg2rad", "exp2", "fmax", "fmin", "fmod", "heaviside", "logaddexp2", "rad2deg", "sinc",
)
# fmt: on
EXEMPT = {
    **{(name, "complex"): "complex numbers have no order" for name in BEYOND_REAL},
    **{(name, "complex"): "NumPy has it for real arrays only" for name in NUMPYS_REAL},
    ("order_statistics", "0-d"): "it needs an axis",
    ("nan_to_num", "copy"): "False is refused",
    **{(name, "complex"): "the standard has it for real arrays only" for name in REAL},
    **{
        (name, "0-d"): "it needs an axis"
        for name in (*NO_AXIS, *(op.name for op in OPERATIONS if op.chapter in ("linalg", "fft")))
    },
    **{(name, "empty"): "it needs an element" for name in ("convolution", "convolve")},
    ("linspace", "layout"): "its arrays have no axes",
    ("linspace", "empty"): "its arrays have no axes",
    ("full", "empty"): "its array has no axes",
    ("refuse", "message"): "nothing depends on it",
}


@cache
def found() -> dict[str, set[str]]:
    """Of what kind the tests of each operation are."""
    kinds: dict[str, set[str]] = {}
    for cell in cells.everything("numpy"):
        kinds.setdefault(cell.operation, set()).add(cell.check)
    return kinds


def features(name: str) -> dict[str, bool]:
    op = OPS[name]
    samples = [s for s in samples_of(name) if not isinstance(s, Kink)]
    problems = [Problem.of(op, s) for s in samples]
    arrays = [a for p in problems for a in leaves(p.values) if is_array(a)]
    derived = "empty" in found()[name]  # made of the first sample of an elementwise operation
    has = {
        "complex": any(s.complex for s in samples),
        "empty": derived or any(a.size == 0 for a in arrays),
        "0-d": derived or any(a.ndim == 0 for a in arrays),
        "layout": "layout" in found()[name] or op.kind == "composite",
    }
    for i, (parameter, role) in enumerate(op.roles.items()):
        if role == "plain":
            has[parameter] = len({repr(p.values[i]) for p in problems}) > 1
    return has


@pytest.mark.parametrize("name", [op.name for op in OPERATIONS])
def test_covered(name: str) -> None:
    assert samples_of(name), f"no sample of {name}: {cells.to_add(OPS[name])}"
    missing = [
        what for what, has in features(name).items() if not has and (name, what) not in EXEMPT
    ]
    assert not missing, f"no sample of {name} varies, or has, {', '.join(missing)}"


def test_no_exemption_is_idle() -> None:
    for name, what in EXEMPT:
        if what != "0-d":
            assert not features(name)[what], f"{name} has a sample for {what}"


def test_arrays_are_float64() -> None:
    """The suite casts them for other precisions, so samples must not."""
    for op in OPERATIONS:
        for sample in samples_of(op.name):
            for a in leaves(Problem.of(op, sample).values):
                assert not is_array(a) or a.dtype in (
                    np.float64,
                    np.complex128,
                    np.int64,
                    np.bool_,
                ), (op.name, sample)
