"""What is watched beside functions of the table and nodes: the rules of tangents, and what becomes an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...engine import convert, profiling, rules
from ...engine.element import SCALARS, host_of
from ...engine.level import Layer
from ...registry import OPS, Op


def _tangents(rule: Callable[..., Any]) -> Callable[..., Any]:
    """What a rule of a tangent calls is its part, and no part of the operation. A watcher's `lift` may run the rule in another way."""

    def watched(op: Op, xp: Any, values: Sequence[Any], tangents: Sequence[Any], ans: Any, raw: Any = None) -> Any:
        frame = profiling.here.get()
        if frame is None:
            return rule(op, xp, values, tangents, ans, raw)
        lift = next((w.lift for w in frame.watchers if w.lift is not None), None)
        return profiling.within(frame, rule if lift is None else partial(lift, rule), op, xp, values, tangents, ans, raw)

    return watched


def _wrapping(wrap: Callable[..., Any]) -> Callable[..., Any]:
    """`asarray`, `tensor` and their kin, where they make an array, or ask the library for one. (What they do to layers are operations.)"""

    def watched(obj: Any, dtype: Any, device: Any, copy: bool | None, host: Any) -> Any:
        frame = None if isinstance(obj, Layer) else profiling.here.get()
        if frame is None:
            return wrap(obj, dtype, device, copy, host)
        own = None if type(obj) in SCALARS else host_of(obj)
        if own is not None and host in (None, own) and dtype is None and device is None and not copy:
            return wrap(obj, dtype, device, copy, host)
        op = OPS["asarray"]
        shown = () if isinstance(obj, (tuple, list)) else obj  # a long list is not gone through
        call = profiling.Call(op, op.name, tuple(op.roles), (shown, dtype, device, copy))
        return profiling.around(frame, call, lambda: wrap(obj, dtype, device, copy, host))

    return watched


profiling.seam(vars(rules), "jvp", _tangents)
profiling.seam(vars(convert), "_as_tensor", _wrapping)
