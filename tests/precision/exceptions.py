"""Where a rule is known to be less exact than asked for, by how much, and why.

One that is no longer needed fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from .measure import Error


@dataclass(frozen=True)
class Excused:
    """Errors of an operation are excused as long as they are absolute errors of at most so many
    epsilon.
    """

    absolute: float
    reason: str


_KEEPS = (
    "keeps its result only, as PyTorch's does, so that the argument may be modified afterwards; "
)

EXCUSED: dict[tuple[str, str], Excused] = {
    ("tanh", "real"): Excused(
        2.0, _KEEPS + "1 - ans**2 has an absolute error of epsilon where tanh is rounded to 1"
    ),
    ("tanh", "complex"): Excused(
        8.0, _KEEPS + "1 - ans**2 has an absolute error of epsilon where tanh is rounded to 1 or -1"
    ),
    ("tan", "complex"): Excused(
        8.0, _KEEPS + "1 + ans**2 has an absolute error of epsilon where tan is rounded to i or -i"
    ),
    **{
        (name, "real"): Excused(
            2.0,
            _KEEPS + "1 - ans has an absolute error of epsilon where the function is rounded to 1",
        )
        for name in ("logistic", "sigmoid")
    },
    ("silu_slope", "real"): Excused(
        200.0,
        "keeps x and the logistic function of it, whose 1 - ans has an absolute error of "
        "epsilon where it is 1",
    ),
    ("expm1", "real"): Excused(
        2.0, _KEEPS + "ans + 1 has an absolute error of epsilon where expm1 is rounded to -1"
    ),
    ("special.lpmv", "real"): Excused(
        2e5, "its second derivative divides a difference by 1 - x**2, which is 0.002 at 0.999"
    ),
    ("expm1", "complex"): Excused(
        2.0, _KEEPS + "ans + 1 has an absolute error of epsilon where expm1 is rounded to -1"
    ),
}


def excuse(e: Error) -> Excused | None:
    """What excuses an error, if anything does."""
    found = EXCUSED.get((e.operation, e.kind))
    return found if found is not None and e.absolute <= found.absolute else None
