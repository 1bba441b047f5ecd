"""Reads the samples of an operation, and says why some of them cannot be used.

They come from plugins, which may give anything. What is wrong with the samples of one operation is
a failure of that operation; all other tests run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from multigrad.registry import Op

from .problem import Problem
from .sample import Kink, Sample


def read(
    op: Op, what: str, make: Callable[[], Any], given: type | tuple[type, ...] = Sample
) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Return the usable samples that `make` returns, and what is wrong with the others.

    `what` names `make` in messages. If `given` has tuples, a tuple of arguments is a sample, too.
    """
    usable: list[Sample] = []
    wrong: list[str] = []
    labels: set[str] = set()
    for number, sample in zip(count(), _yielded(what, make, wrong), strict=False):
        if not isinstance(sample, given):
            wrong.append(_unknown(what, sample, given))
            continue
        made: Any = Sample(f"sample-{number}", *sample) if isinstance(sample, tuple) else sample
        told = _told(op, made, labels)
        labels.add(made.label)
        if told:
            wrong.append(told)
        else:
            usable.append(made)
    return tuple(usable), tuple(wrong)


def _yielded(what: str, make: Callable[[], Any], wrong: list[str]) -> Iterator[Any]:
    """Yield what can be read; append the reason if that ends early."""
    try:
        made = make()
        if not hasattr(made, "__iter__"):
            wrong.append(f"{what} returns {made!r}, where samples were expected")
            return
        yield from made
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a plugin may raise anything, also pytest's Skipped
        wrong.append(f"{what} raises {type(error).__name__}: {error}")


def _unknown(what: str, sample: Any, given: type | tuple[type, ...]) -> str:
    expected = "a Sample" if given is Sample else "a Sample or a tuple of arguments, such as (x,),"
    return f"{what} yields an object of type {type(sample).__name__}, where {expected} was expected"


def _told(op: Op, sample: Sample, labels: set[str]) -> str:
    """Return why a sample cannot be used, "" if it can."""
    label = sample.label
    if not isinstance(label, str) or not label:
        return f"the label {label!r} is not a word"
    if "/" in label or "@" in label:
        return f"the label {label!r} has a '/' or an '@', which separate the parts of a test's id"
    if label in labels:
        return f"two samples have the label {label!r}"
    try:
        op.signature.bind(*sample.args, **sample.kwargs)
    except TypeError as error:
        return f"the sample {label!r} does not fit {op.name}{op.signature}: {error}"
    further = sample.second if isinstance(sample, Kink) else ()
    for name in (*(sample.differentiable or ()), *further, *sample.project):
        if name not in op.arrays:
            known = f"{op.name}{op.signature}"
            return f"the sample {label!r} names {name!r}, which is no array argument of {known}"
    try:
        Problem.of(op, sample)
    except Exception as error:  # its attributes may be anything
        return f"the sample {label!r} cannot be used: {type(error).__name__}: {error}"
    return ""
