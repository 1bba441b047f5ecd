"""pad: an array with additional elements at the ends of its axes.

The new elements are parts of the array, repeated or reversed, or constants. They are joined axis by
axis. As in NumPy, each axis includes the elements that earlier axes added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

from ...registry import About, composite
from ..keys import along, float_dtype
from .shapes import among_zeros

Widths = list[tuple[Any, Any]]

OPTIONS = {
    "constant": "constant_values",
    "edge": "",
    "empty": "",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": "",
}
"""The option that each mode takes."""


def pad(
    xp: Any,
    array: Any,
    pad_width: Any,
    mode: Any,
    constant_values: Any,
    end_values: Any,
    stat_length: Any,
    reflect_type: Any,
) -> Any:
    if mode not in OPTIONS:
        why = (
            "needs the middle of sorted values"
            if mode == "median"
            else "writes into arrays"
            if callable(mode)
            else "is not known"
        )
        raise ValueError(
            f"pad: the mode {mode!r} {why}. Modes are {', '.join(map(repr, OPTIONS))}."
        )
    for name, value, default in (
        ("constant_values", constant_values, 0),
        ("end_values", end_values, 0),
        ("stat_length", stat_length, None),
        ("reflect_type", reflect_type, "even"),
    ):
        # arrays are not compared with a default
        usual = value is default or (type(value) is type(default) and bool(value == default))
        if name != OPTIONS[mode] and not usual:
            raise ValueError(f"pad: the mode {mode!r} takes no {name}.")
    widths = _widths(pad_width, len(array.shape))
    if mode == "constant":
        return _constant(xp, array, widths, constant_values)
    if mode == "empty":
        return _zeros(xp, array, widths)
    for axis, (n, (before, after)) in enumerate(zip(array.shape, widths, strict=True)):
        if not n and (before or after):
            raise ValueError(
                f"pad: axis {axis} has no elements, so only the modes 'constant' and 'empty' "
                "can pad it."
            )
    options: Widths = [(None, None)] * len(widths)
    ends: Callable[..., list[Any]] = _wrapped
    if mode == "linear_ramp":
        options, ends = _pairs(end_values, len(widths), "end_values"), _ramps
    elif mode in STATISTICS:
        lengths = 1 if mode == "edge" else stat_length
        options, ends = _lengths(lengths, len(widths)), partial(_statistics, mode)
    elif mode in ("reflect", "symmetric"):
        if reflect_type not in ("even", "odd"):
            raise ValueError(f"pad: reflect_type is {reflect_type!r}; it must be 'even' or 'odd'.")
        options, ends = [(mode == "reflect", reflect_type == "odd")] * len(widths), _mirrored
    return _each(xp, array, widths, options, ends)


# ----- the options for each end of each axis -----


def _pairs(option: Any, ndim: int, name: str) -> Widths:
    """Expand an option to one pair (before, after) for each axis.

    It may be one number for all ends, one pair for all axes, or a sequence of pairs.
    """
    if getattr(option, "shape", None):
        option = [option[i] for i in range(option.shape[0])]
        option = [[row[i] for i in range(row.shape[0])] if row.shape else row for row in option]
    if not isinstance(option, (tuple, list)):
        return [(option, option)] * ndim
    rows = [tuple(row) if isinstance(row, (tuple, list)) else row for row in option]
    if not any(isinstance(row, tuple) for row in rows):
        if len(rows) in (1, 2):
            return [(rows[0], rows[-1])] * ndim
    elif all(isinstance(row, tuple) and len(row) in (1, 2) for row in rows):
        pairs = [(row[0], row[-1]) for row in rows]
        if len(rows) in (1, ndim):
            return pairs if len(rows) == ndim else pairs * ndim
    raise ValueError(
        f"pad: {name} is {option!r}; for an array with {ndim} axes it must be one number, a pair "
        f"(before, after), or {ndim} such pairs."
    )


def _widths(widths: Any, ndim: int) -> Widths:
    if isinstance(widths, dict):
        rows: list[Any] = [(0, 0)] * ndim
        for axis, width in widths.items():
            if not -ndim <= index(axis) < ndim:
                raise IndexError(
                    f"pad: pad_width names axis {axis}, which does not exist in an array with "
                    f"{ndim} axes."
                )
            rows[index(axis)] = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        widths = rows or 0
    return _counts(_pairs(widths, ndim, "pad_width"), "pad_width", 0)


def _lengths(lengths: Any, ndim: int) -> Widths:
    def length(n: Any) -> Any:
        return None if n is None else _counts([(n, n)], "stat_length", 1)[0][0]

    pairs = _pairs(lengths, ndim, "stat_length")
    return [(length(before), length(after)) for before, after in pairs]


def _counts(pairs: Widths, name: str, least: int) -> Widths:
    try:
        counts = [(index(before), index(after)) for before, after in pairs]
    except TypeError:
        raise TypeError(f"pad: {name} must consist of integers, not {pairs!r}.") from None
    if any(n < least for pair in counts for n in pair):
        raise ValueError(f"pad: {name} must be {least} or more, not {pairs!r}.")
    return counts


# ----- constants -----


def _zeros(xp: Any, x: Any, widths: Widths) -> Any:
    if not any(n for pair in widths for n in pair):
        return xp.astype(x, x.dtype)
    sides = list(zip(x.shape, widths, strict=True))
    key = tuple(slice(before, before + n) for n, (before, _) in sides)
    return among_zeros(xp, x, key, tuple(before + n + after for n, (before, after) in sides))


def _constant(xp: Any, x: Any, widths: Widths, values: Any) -> Any:
    if type(values) is int and values == 0:
        return _zeros(xp, x, widths)
    return _each(xp, x, widths, _pairs(values, len(widths), "constant_values"), _constants)


def _constants(
    xp: Any, x: Any, axis: int, before: int, after: int, values: tuple[Any, Any]
) -> list[Any]:
    return [
        _repeated(xp, _cast(xp, value, x), x, axis, n)
        for n, value in zip((before, after), values, strict=True)
    ]


def _cast(xp: Any, value: Any, x: Any) -> Any:
    if hasattr(value, "dtype"):
        return value if value.dtype == x.dtype else xp.astype(value, x.dtype)
    if xp.isdtype(x.dtype, "integral"):
        value = int(value)
    return xp.asarray(value, dtype=x.dtype, device=xp.device_of(x))


def _repeated(xp: Any, value: Any, x: Any, axis: int, n: int) -> Any:
    return xp.broadcast_to(value, (*x.shape[:axis], n, *x.shape[axis + 1 :]))


# ----- parts of the array -----


def _each(xp: Any, x: Any, widths: Widths, options: Widths, ends: Callable[..., list[Any]]) -> Any:
    """Join the elements that `ends` returns for both ends of each axis."""
    if not any(n for pair in widths for n in pair):
        return xp.astype(x, x.dtype)
    for axis, ((before, after), option) in enumerate(zip(widths, options, strict=True)):
        if before or after:
            first, last = ends(xp, x, axis, before, after, option)
            x = xp.concat(
                [part for part, n in ((first, before), (x, 1), (last, after)) if n], axis=axis
            )
    return x


def _wrapped(xp: Any, x: Any, axis: int, before: int, after: int, _: Any) -> list[Any]:
    n = x.shape[axis]

    def run(start: int, length: int) -> Any:
        parts = []
        while length > 0:
            taken = min(length, n - start)
            parts.append(x[along(axis, start, start + taken)])
            start, length = 0, length - taken
        return _concat(xp, parts, axis)

    return [run(-before % n, before), run(0, after)]


def _concat(xp: Any, parts: list[Any], axis: int) -> Any:
    return None if not parts else parts[0] if len(parts) == 1 else xp.concat(parts, axis=axis)


def _mirrored(
    xp: Any, x: Any, axis: int, before: int, after: int, option: tuple[bool, bool]
) -> list[Any]:
    """Reflect at both ends until the widths are reached; 'odd' also reflects the values."""
    inner, odd = option  # the element at the end is not repeated
    n = x.shape[axis]
    if inner and n == 1:
        return _statistics("edge", xp, x, axis, before, after, (1, 1))
    period = n - 1 if inner else n
    y, left, right = x, before, after
    while left > 0 or right > 0:
        m = y.shape[axis]
        span = (m - 1) // period * period if inner else m // period * period
        first, last = min(left, span), min(right, span)
        parts = [y]
        if first:
            part = y[along(axis, int(inner), int(inner) + first)]
            parts.insert(0, _reflected(xp, part, y[along(axis, 0, 1)], axis, odd))
        if last:
            part = y[along(axis, m - last - int(inner), m - int(inner))]
            parts.append(_reflected(xp, part, y[along(axis, m - 1, m)], axis, odd))
        y, left, right = _concat(xp, parts, axis), left - first, right - last
    total = before + n + after
    return [y[along(axis, 0, before)], y[along(axis, total - after, total)]]


def _reflected(xp: Any, part: Any, edge: Any, axis: int, odd: bool) -> Any:
    part = xp.flip(part, axis=axis)
    return 2 * edge - part if odd else part


# ----- ramps and statistics -----


def _ramps(
    xp: Any, x: Any, axis: int, before: int, after: int, values: tuple[Any, Any]
) -> list[Any]:
    n = x.shape[axis]
    return [
        _ramp(xp, x[along(axis, 0, 1)], values[0], axis, before, False),
        _ramp(xp, x[along(axis, n - 1, n)], values[1], axis, after, True),
    ]


def _ramp(xp: Any, edge: Any, value: Any, axis: int, count: int, falling: bool) -> Any:
    """Equal steps from `value` at the outer end to the edge of the array, which is excluded."""
    if not count:
        return None
    whole = xp.isdtype(edge.dtype, "integral")
    dtype = edge.dtype
    if whole:
        edge = xp.astype(edge, float_dtype(xp, xp.device_of(edge)))
    steps = xp.astype(xp.arange(count, device=xp.device_of(edge)), edge.dtype)
    steps = xp.flip(steps) if falling else steps
    steps = xp.reshape(steps, (count,) + (1,) * (len(edge.shape) - 1 - axis))
    ramp = steps * ((edge - value) / count) + value
    return xp.astype(xp.floor(ramp), dtype) if whole else ramp


def _mean(xp: Any, x: Any, axis: int) -> Any:
    if not xp.isdtype(x.dtype, ("integral", "bool")):
        return xp.mean(x, axis=axis, keepdims=True)
    floating = xp.astype(x, float_dtype(xp, xp.device_of(x)))
    return xp.astype(xp.round(xp.mean(floating, axis=axis, keepdims=True)), x.dtype)


STATISTICS: dict[str, Callable[..., Any]] = {
    "edge": lambda xp, x, axis: x,
    "maximum": lambda xp, x, axis: xp.max(x, axis=axis, keepdims=True),
    "mean": _mean,
    "minimum": lambda xp, x, axis: xp.min(x, axis=axis, keepdims=True),
}


def _statistics(
    mode: str, xp: Any, x: Any, axis: int, before: int, after: int, lengths: tuple[Any, Any]
) -> list[Any]:
    n, compute = x.shape[axis], STATISTICS[mode]
    first, last = (n if length is None else min(length, n) for length in lengths)
    left = compute(xp, x[along(axis, 0, first)], axis)
    right = left if first == last == n else compute(xp, x[along(axis, n - last, n)], axis)
    return [_repeated(xp, left, x, axis, before), _repeated(xp, right, x, axis, after)]


composite(
    "pad(array: array, pad_width, mode='constant', *, constant_values=0, end_values=0, "
    "stat_length=None, reflect_type='even')",
    pad,
    doc="The array with additional elements at the ends of its axes; pad_width gives their "
    "numbers. Same as numpy.pad; the mode 'empty' gives zeros.",
    about=About(example="P, 1"),
)
