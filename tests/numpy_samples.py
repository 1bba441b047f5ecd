"""The samples of the conformance suite as functions of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad_conformance.sample import OWN_DEVICE, DType, Sample

NARROW = {"f": "float32", "c": "complex64"}


class Hole:
    """Stands for an array among the arguments of a sample."""

    def __init__(self, number: int) -> None:
        self.number = number


def taken(value: Any, arrays: list[Any], narrow: bool) -> Any:
    """The arguments of a sample with holes where arrays stand, which go into `arrays`."""
    if type(value) in (tuple, list):
        return type(value)(taken(v, arrays, narrow) for v in value)
    if isinstance(value, DType):
        return getattr(np, "bool_" if value.name == "bool" else value.name)
    if value is OWN_DEVICE:
        return "cpu"
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(NARROW.get(value.dtype.kind, value.dtype)) if narrow else value)
        return Hole(len(arrays) - 1)
    return value


def filled(value: Any, arrays: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(filled(v, arrays) for v in value)
    return arrays[value.number] if isinstance(value, Hole) else value


def operation_on(name: str, sample: Sample, narrow: bool) -> tuple[Callable[..., Any], list[Any]]:
    """The operation `name` as a function of the arrays of a sample, and these arrays."""
    arrays: list[Any] = []
    args = taken(sample.args, arrays, narrow)
    kwargs = {k: taken(v, arrays, narrow) for k, v in sample.kwargs.items()}

    def forward(*xs: Any) -> Any:
        function: Any = mg.namespace("numpy")
        for part in name.split("."):
            function = getattr(function, part)
        return function(*filled(args, xs), **{k: filled(v, xs) for k, v in kwargs.items()})

    return forward, arrays


def flat(x: Any) -> list[Any]:
    """The arrays of a result, as NumPy arrays."""
    if isinstance(x, dict):
        return [z for y in x.values() for z in flat(y)]
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in flat(y)]
    x = x.detach() if isinstance(x, mg.Tensor) else x
    return [np.asarray(getattr(x, "array", x))]
