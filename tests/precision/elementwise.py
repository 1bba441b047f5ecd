"""Elementwise operations, point by point: gradient and jvp everywhere, second derivatives at
moderate points.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from mpmath import mp

import multigrad as mg
from multigrad import registry

from . import points, scalars, special
from .differences import exact, mixed, slope
from .measure import COTANGENT, Error, of_array, of_number, shown


def measured(name: str) -> Iterator[Error]:
    """Every error of an operation."""
    mp.dps = 60
    if name in special.ALL:
        for error in _special(name):
            yield replace(error, limit=special.limit(name))
        return
    f = scalars.FUNCTIONS[name]
    binary = name in scalars.PAIRS
    if name not in ("real", "imag", "conj"):
        yield from _over(
            name, "real", f, points.pairs(name) if binary else points.real_points(name)
        )
    if name in scalars.COMPLEX:
        yield from _over(
            name,
            "complex",
            f,
            points.complex_pairs(name) if binary else points.complex_points(name),
        )
    # of Python's numbers, for which the rule has another text
    for exponent in points.EXPONENTS if name == "pow" else ():
        yield from _over(
            name,
            "real",
            lambda x, e=exponent: mp.power(x, e),
            points.bases(exponent),
            after=(exponent,),
        )


def _special(name: str) -> Iterator[Error]:
    """The errors of a special function, for each value of the plain arguments that it begins with;
    those at its end have their defaults.
    """
    f, where = special.ALL[name]
    defaults = tuple(
        p.default for p in list(registry.OPS[name].signature.parameters.values())[len(where[0]) :]
    )
    plain = len(
        list(itertools.takewhile(lambda role: role == "plain", registry.OPS[name].roles.values()))
    )
    for kind in ("real", "complex"):
        chosen = [p for p in where if any(isinstance(v, complex) for v in p) == (kind == "complex")]
        for first, group in itertools.groupby(chosen, key=lambda p: p[:plain]):
            yield from _over(
                name, kind, partial(f, *first), [p[plain:] for p in group], first, defaults
            )


def _over(
    name: str,
    kind: str,
    f: Any,
    where: points.Points,
    plain: tuple[Any, ...] = (),
    after: tuple[Any, ...] = (),
) -> Iterator[Error]:
    """The errors at these points, given the arguments before and after those that are
    differentiated by.
    """
    columns = [np.asarray(c) for c in zip(*where, strict=True)]
    op = registry.OPS[name]
    arrays = list(op.arrays)
    # a distribution: by x only
    wanted = [
        i for i, a in enumerate(arrays[: len(columns)]) if op.kind == "composite" or a in op.vjp
    ]
    with np.errstate(all="ignore"):
        value = np.asarray(function(name)(*plain, *columns, *after))
        kept = np.isfinite(value)
        columns = [c[kept] for c in columns]
        g = np.full(columns[0].shape, COTANGENT if np.iscomplexobj(value) else 1.0)
        call = lambda *values: function(name)(*plain, *values, *after)
        gradients, seconds = _found(call, columns, wanted, g)
        tangents = [np.full(c.shape, _weight(c)) for c in columns]
        jvps = {
            i: mg.func.jvp(
                lambda v, i=i: call(*columns[:i], v, *columns[i + 1 :]),
                (columns[i],),
                (tangents[i],),
            )[1]
            for i in wanted
        }
    cotangent = exact(g[0].item())
    for k, point in enumerate(zip(*columns, strict=True)):
        x = [exact(v.item()) for v in point]
        at = shown(
            [*plain, *(v.item() for v in point), *(v for v in after if not isinstance(v, str))]
        )
        for n, i in enumerate(wanted):
            along = _derivatives(name, f, x, i)
            yield Error(
                name, kind, arrays[i], *of_number(gradients[n][k], _gradient(along, cotangent)), at
            )
            yield Error(name, kind, "jvp", *of_number(jvps[i][k], _along(along)), at)
        if all(_moderate(v.item()) for v in point):
            found = np.asarray([[s[k] for s in row] for row in seconds])
            yield Error(
                name,
                kind,
                "second",
                *of_array(found, _second_gradients(f, x, wanted, cotangent)),
                at,
            )


def _moderate(x: Any) -> bool:
    """Neither large nor small, nor next to a branch cut."""
    return 0.05 < abs(x) < 5 and (
        not isinstance(x, complex) or min(abs(x.real), abs(x.imag)) > 1e-9
    )


def function(name: str) -> Any:
    """An operation as users call it."""
    found: Any = mg.namespace("numpy")
    for part in name.split("."):
        found = getattr(found, part)
    return lambda *values: _raw(found(*values))


def _raw(x: Any) -> Any:
    return x.array if isinstance(x, mg.Tensor) and not x.requires_grad else x


def _found(
    call: Any, columns: list[Any], wanted: list[int], g: Any
) -> tuple[list[Any], list[list[Any]]]:
    """The gradients, and the gradients of each of them (complex ones weighted by the cotangent)."""
    values = [mg.asarray(c, requires_grad=i in wanted) for i, c in enumerate(columns)]
    tensors = [values[i] for i in wanted]
    first = mg.autograd.grad(call(*values), tensors, mg.asarray(g), create_graph=True)
    found = []
    for v in first:
        weights = mg.asarray(np.full(v.shape, _weight(v.array)))
        second = (
            mg.autograd.grad(v, tensors, weights, allow_unused=True, retain_graph=True)
            if v.requires_grad
            else [None] * len(tensors)
        )
        found.append(
            [
                np.zeros_like(t.array) if s is None else s.array
                for s, t in zip(second, tensors, strict=True)
            ]
        )
    return [v.array for v in first], found


def _weight(x: Any) -> Any:
    return COTANGENT if np.iscomplexobj(x) else 1.0


def _derivatives(name: str, f: Any, x: list[Any], i: int) -> list[Any]:
    """The derivatives of f by the real and the imaginary part of its i-th argument; one only, if
    that is real.

    By a complex number a holomorphic function is differentiated along the number itself, which
    crosses no branch cut.
    """
    v = x[i]

    def along(direction: Any) -> Any:
        return slope(lambda t: f(*x[:i], v + t * direction, *x[i + 1 :]), abs(v) or 1)

    if not isinstance(v, mp.mpc):
        return [along(1)]
    if name in scalars.NOT_HOLOMORPHIC:
        return [along(1), along(mp.j)]
    unit = v / abs(v)
    derivative = along(unit) / unit
    return [derivative, derivative * mp.j]


def _real(g: Any, y: Any) -> Any:
    """Re <g, y>."""
    return (mp.conj(g) * y).real if isinstance(g, mp.mpc) else mp.re(g * y)


def _gradient(along: list[Any], g: Any) -> Any:
    """dL/da + i dL/db of L = Re <g, f>, from the derivatives of f by a and b."""
    return mp.mpc(*(_real(g, d) for d in along)) if len(along) == 2 else _real(g, along[0])


def _along(along: list[Any]) -> Any:
    """The derivative along the tangent."""
    return along[0] * COTANGENT.real + along[1] * COTANGENT.imag if len(along) == 2 else along[0]


def _second_gradients(f: Any, x: list[Any], wanted: list[int], g: Any) -> Any:
    """The gradients of the derivatives of Re <g, f> along the weights."""
    units = [(exact(COTANGENT), (1, mp.j)) if isinstance(v, mp.mpc) else (1, (1,)) for v in x]

    def entry(j: int, i: int, direction: Any) -> Any:
        def moved(s: Any, t: Any) -> Any:
            steps = [0] * len(x)
            steps[j] += s * units[j][0]
            steps[i] += t * direction
            return _real(g, f(*(v + step for v, step in zip(x, steps, strict=True))))

        return mixed(moved, mp.mpf(1) / 16)

    return np.asarray(
        [[_complex([entry(j, i, d) for d in units[i][1]]) for i in wanted] for j in wanted],
        dtype=object,
    )


def _complex(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else mp.mpc(*parts)
