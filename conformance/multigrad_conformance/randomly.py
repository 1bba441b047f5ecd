"""The random level: hypothesis draws shapes and values, on which forward, vjp and jvp are checked.

The given sample has valid arguments, and the drawn ones stay near to them. Operands of elementwise
operations take elements of the sample, in any shape of up to three axes, broadcast in any way.
Other operations keep the shapes of the sample; if the leading axes are a batch, the number of
examples is drawn. Floating values are scaled a little, except for whole numbers, which may be
orders or degrees. Values next to a kink are left out; there, differences with two step sizes
disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad.registry import OPS, Op

from . import checks
from .differences import STEP, along
from .problem import Problem, is_floating
from .sample import Kink, Sample, mapped
from .samples import samples_of
from .target import Target

EXAMPLES = 10
NEEDED = (
    "--multigrad-samples random draws with hypothesis, which is not installed: pip "
    "install 'multigrad-conformance[random]'"
)


def sampled(op: Op) -> list[Sample]:
    """Return the samples from which others are drawn: the first real and the first complex one."""
    usable = [
        s
        for s in samples_of(op.name)
        if not isinstance(s, Kink) and not s.checks and s.values and not s.needs and not s.backwards
    ]
    firsts = {s.complex: s for s in reversed(usable)}
    return [s for s in usable if s in firsts.values()]


def check(sample: Sample, name: str, seed: int) -> Callable[[Target], None]:
    """Return a test of an operation on drawn samples; the same seed draws the same samples."""

    def run(target: Target) -> None:
        import hypothesis
        from hypothesis import strategies

        op = OPS[name]
        settings = hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            # no shrinking: finding a simpler example may take minutes
            phases=(hypothesis.Phase.generate,),
        )

        @hypothesis.seed(seed)
        @settings
        @hypothesis.given(strategies.data())
        def on_examples(data: Any) -> None:
            drawn = _drawn(op, sample, lambda strategy: data.draw(strategy), strategies)
            case = checks.Case(target, op, drawn)
            hypothesis.assume(_smooth(Problem.of(op, drawn)))
            checks.forward(case)
            if case.problem.places:
                checks.vjp(case)
                if op.kind != "composite":
                    checks.jvp(case)

        on_examples()

    return run


def _drawn(op: Op, sample: Sample, draw: Callable[[Any], Any], strategies: Any) -> Sample:
    """Draw a sample like the given one, with other shapes and values."""
    problem = Problem.of(op, sample)
    arrays = [
        name
        for name in op.roles
        if isinstance(dict(zip(op.roles, problem.values, strict=True))[name], np.ndarray)
    ]
    factor = 1.0 + draw(strategies.integers(-8, 8)) / 128
    scaled = [
        mapped(
            lambda x: (
                x * np.asarray(factor, x.real.dtype) if is_floating(x) and not _whole(x) else x
            ),
            v,
        )
        for v in problem.values
    ]
    values = dict(zip(op.roles, scaled, strict=True))
    if op.batching == "elementwise" and set(arrays) == set(op.arrays) and not sample.project:
        shape = tuple(draw(strategies.lists(strategies.integers(0, 3), max_size=3)))
        for name in arrays:
            values[name] = _elements(
                values[name],
                _operand(shape, draw, strategies) if len(arrays) > 1 else shape,
                draw,
                strategies,
            )
    elif (
        op.batching == "leading"
        and len(arrays) == 1
        and sample.finish is None
        and not sample.project
    ):
        values[arrays[0]] = np.stack(
            [values[arrays[0]] * (1 - 0.03 * i) for i in range(draw(strategies.integers(1, 3)))]
        )
    positional = [
        values.pop(n)
        for n, p in op.signature.parameters.items()
        if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_POSITIONAL
    ]
    rest = next((n for n, p in op.signature.parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    return Sample(
        "drawn",
        *positional,
        *(values.pop(rest) if rest else ()),
        differentiable=sample.differentiable,
        tolerance=10 * sample.tolerance,
        project=sample.project,
        finish=sample.finish,
        reference=sample.reference,
        **values,
    )


def _whole(x: Any) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.all(x == np.round(x)))


def _operand(
    shape: tuple[int, ...], draw: Callable[[Any], Any], strategies: Any
) -> tuple[int, ...]:
    """Draw a shape that broadcasts to the given one."""
    shown = shape[draw(strategies.integers(0, len(shape))) :]
    return tuple(1 if draw(strategies.booleans()) else n for n in shown)


def _elements(x: Any, shape: tuple[int, ...], draw: Callable[[Any], Any], strategies: Any) -> Any:
    """Draw an array of that shape with elements of `x`."""
    random = np.random.default_rng(draw(strategies.integers(0, 2**16)))
    return np.asarray(random.choice(x.reshape(-1), shape))


def _smooth(problem: Problem) -> bool:
    """Return whether differences with two step sizes agree, so that no kink is near."""
    if not problem.places:
        return True
    tangents = problem.wide.tangents
    pairs = (
        along(problem.wide.results, problem.wide.leaves(), tangents, step)
        for step in (STEP, 3 * STEP)
    )
    return all(bool(np.allclose(a, b, rtol=1e-6, atol=1e-7)) for a, b in zip(*pairs, strict=True))
