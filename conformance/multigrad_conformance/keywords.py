"""The keywords of an operation: its parameters with a default, which a library may ignore.

The list comes from the table of operations. Each keyword needs a sample that gives it a value other
than the default, and the short level compares the values of that sample on every library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from multigrad.registry import Op

from .sample import Kink, Refused, Sample, is_array

UNSAMPLED = {
    ("nan_to_num", "copy"): "multigrad refuses copy=False",
    ("to_device", "stream"): "its values are those of one library and one device",
}
"""The keywords without a sample, with the reason."""


def of(op: Op) -> tuple[str, ...]:
    """Return the keywords of an operation."""
    return tuple(n for n, p in op.signature.parameters.items() if p.default is not p.empty)


def given(op: Op, sample: Sample) -> dict[str, Any]:
    """Return the keywords to which a sample gives a value other than the default."""
    arguments = op.signature.bind(*sample.args, **sample.kwargs).arguments
    return {
        name: arguments[name]
        for name in of(op)
        if name in arguments and _differs(arguments[name], op.signature.parameters[name].default)
    }


def _differs(value: Any, default: Any) -> bool:
    return is_array(value) or type(value) is not type(default) or bool(value != default)


def tested(op: Op, samples: Sequence[Sample]) -> Iterator[tuple[Sample, str]]:
    """Yield the samples that the short level needs, each with a keyword for which it is needed.

    A keyword has a sample that every library can compute, if there is one, then one that is short
    anyway, then one that all checks run on. A keyword of the standard that is a word, such as
    `norm`, has one for each word.
    """
    comparable = [
        (s, given(op, s))
        for s in samples
        if not isinstance(s, (Kink, Refused)) and (s.checks is None or "forward" in s.checks)
    ]
    for name in of(op):
        having = [(s, values[name]) for s, values in comparable if name in values]
        having.sort(
            key=lambda p: (bool(p[0].capabilities), not p[0].short, p[0].checks is not None)
        )
        if having:
            yield having[0][0], name
        words = {} if op.beyond else {v: s for s, v in reversed(having) if isinstance(v, str)}
        for sample in words.values():
            yield sample, name


def unsampled(op: Op, samples: Sequence[Sample]) -> list[str]:
    """Return the keywords without a sample."""
    seen = {name for _, name in tested(op, samples)}
    return [name for name in of(op) if name not in seen and (op.name, name) not in UNSAMPLED]


def call_of(op: Op, sample: Sample) -> str:
    """Return the call that a sample stands for, with its keywords by name, in one line."""
    bound = op.signature.bind(*sample.args, **sample.kwargs)
    names = set(of(op))
    words = [
        f"{name}={_told(value)}" if name in names else _told(value)
        for name, value in bound.arguments.items()
    ]
    return f"{op.name}({', '.join(words)})"


def _told(value: Any) -> str:
    """Return a value in few words: of an array its dtype and shape."""
    if is_array(value):
        return f"{value.dtype.name}{list(value.shape)}"
    if type(value) in (tuple, list):
        inner = ", ".join(map(_told, value))
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    return getattr(value, "name", None) or repr(value)
