"""Every operation on Dask arrays: no forward and no rule computes anything, and with sizes that are
unknown each is right or raises before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend
from multigrad.errors import GradientError
from multigrad.registry import OPS

dask = pytest.importorskip("dask", reason="Dask is not installed")
pytest.importorskip("multigrad_conformance", reason="multigrad-conformance is not installed")
import dask.array as da  # noqa: E402

from multigrad_conformance.problem import Problem, is_floating  # noqa: E402
from multigrad_conformance.sample import Kink, mapped  # noqa: E402
from multigrad_conformance.samples import samples_of  # noqa: E402
from multigrad_conformance.target import Target, call  # noqa: E402

if "dask" not in {b.name for b in mg.backends()}:
    pytest.skip("multigrad-dask is not installed", allow_module_level=True)

extend.load_plugins()
ELSEWHERE = (
    "finfo",
    "from_dlpack",
    "iinfo",
    "linalg.eig",
    "linalg.eigh",
    "linalg.qr",
    "linalg.svd",
)
"""No functions of arrays, or those whose results a library chooses: the conformance suite compares
them.
"""

NAMES = [
    name
    for name in OPS
    if name not in ELSEWHERE and ("." not in name or name.partition(".")[0] in ("fft", "linalg"))
]


class Computed(Exception):
    """Something was computed."""


@contextmanager
def lazily() -> Iterator[None]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Computed

    with dask.config.set(scheduler=refuse):
        yield


def known(x: Any) -> Any:
    return da.from_array(x, chunks=tuple(max(1, (n + 1) // 2) for n in x.shape))


def unknown(x: Any) -> Any:
    """The same, of a first axis that Dask does not know the size of: what a mask selects that is
    true everywhere.
    """
    x = known(x)
    if not x.ndim:
        return x
    return x[da.ones(x.shape[0], chunks=x.chunks[0], dtype=bool)]


def total(outs: Any, xp: Any) -> Any:
    """A number that every element of every output has a part in."""
    found: Any = 0
    for out in outs if isinstance(outs, tuple) else (outs,):
        if hasattr(out, "dtype") and xp.isdtype(out.dtype, ("real floating", "complex floating")):
            found = found + xp.sum(
                xp.sin(1.3 * (xp.real(out) if xp.isdtype(out.dtype, "complex floating") else out))
            )
    return found


def differentiated(
    op: Any, function: Callable[..., Any], values: Any, places: Any
) -> tuple[Any, list[Any]]:
    """The outputs, and the gradient of each floating argument, None where there is none."""
    args = list(values)
    for i in places:
        args[i] = mg.asarray(args[i], requires_grad=True)
    outs = call(op, function, args)
    loss = total(outs, mg)
    if getattr(loss, "requires_grad", False):
        loss.backward()
    outs = tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)
    return tuple(x.detach() if isinstance(x, mg.Tensor) else x for x in outs), [
        args[i].grad for i in places
    ]


def problems(name: str) -> Iterator[tuple[Any, list[int]]]:
    """The samples of an operation: the values for NumPy, and where its floating arrays are."""
    op = OPS[name]
    for sample in samples_of(name):
        if isinstance(sample, Kink) or sample.checks:
            continue
        values = Problem.of(op, sample).values
        yield (
            values,
            [i for i, v in enumerate(values) if isinstance(v, np.ndarray) and is_floating(v)],
        )


def compare(
    name: str, make: Callable[[Any], Any], refused: type[Exception] | tuple[type[Exception], ...]
) -> None:
    op, of_dask, of_numpy = OPS[name], Target("dask"), Target("numpy")
    for values, places in problems(name):
        if make is unknown and not all(v.size for v in values if isinstance(v, np.ndarray)):
            continue  # an extremum of an array without elements is an error when it is computed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = mapped(of_numpy._raw, values)
            try:
                expected = differentiated(op, of_numpy.function(op), plain, places)
            except GradientError:
                continue
            chunked = mapped(
                lambda v: make(np.array(v)) if isinstance(v, np.ndarray) else of_dask._raw(v),
                values,
            )
            with lazily():
                try:
                    outs, gradients = differentiated(op, of_dask.function(op), chunked, places)
                except refused:
                    continue
            outs, gradients = dask.compute(outs, gradients, scheduler="synchronous")
        for out, other in zip(outs, expected[0], strict=True):
            if isinstance(other, mg.Tensor) and not name.startswith("empty"):
                single = str(other.dtype) in ("float32", "complex64")
                np.testing.assert_allclose(
                    out, other.array, rtol=1e-5 if single else 1e-7, atol=1e-9
                )
        for g, other in zip(gradients, expected[1], strict=True):
            assert (g is None) == (other is None)
            if g is not None:
                np.testing.assert_allclose(g, other.array, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_computed(name: str) -> None:
    compare(name, known, GradientError if name == "unindex" else ())


@pytest.mark.parametrize("name", NAMES)
def test_unknown_sizes_are_exact_or_refused(name: str) -> None:
    """Dask itself refuses many forwards, with errors of its own, when they are called."""
    compare(
        name,
        unknown,
        (
            ArithmeticError,
            AttributeError,
            LookupError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
        ),
    )
