"""Limits on what rules save for the backward pass: no more than PyTorch's.

Everything that is not saved may be modified later.
"""

from __future__ import annotations

from collections.abc import Iterator

from multigrad.registry import OPS, Op, Rule

RESULT = {"exp", "expm1", "sqrt", "tanh", "reciprocal", "tan", "cbrt", "exp2", "sigmoid", "relu"}
RESULT |= {"linalg.inv", "linalg.cholesky"}
INPUT = {
    "sin",
    "cos",
    "log",
    "log1p",
    "log2",
    "log10",
    "square",
    "atan2",
    "maximum",
    "minimum",
    "clip",
    "var",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
}
INPUT |= {"abs", "logaddexp", "max", "min", "std", "prod", "cumulative_prod", "silu", "softplus"}
INPUT |= {"linalg.det", "linalg.matrix_power", "linalg.eigvalsh", "linalg.svdvals"}
OTHER = {"multiply", "matmul", "tensordot", "vecdot", "linalg.cross", "linalg.outer"}
NOTHING = {
    "add",
    "subtract",
    "negative",
    "positive",
    "sum",
    "mean",
    "cumulative_sum",
    "reshape",
    "permute_dims",
    "broadcast_to",
    "expand_dims",
    "squeeze",
    "concat",
    "stack",
    "unstack",
    "flip",
    "roll",
    "tril",
    "triu",
    "floor",
    "ceil",
    "round",
    "trunc",
    "real",
    "imag",
    "conj",
    "tile",
    "moveaxis",
    "matrix_transpose",
    "astype",
    "meshgrid",
    "broadcast_arrays",
    "linspace",
    "full",
}
STATED = {
    **{("divide", a): allowed for a, allowed in (("x1", {"x2"}), ("x2", {"x1", "x2"}))},
    **{(name, a): {"condition"} for name in ("where",) for a in ("x1", "x2")},
    ("remainder", "x1"): set(),
    ("remainder", "x2"): {"x1", "x2"},
    **{("pow", a): allowed for a, allowed in (("x1", {"x1", "x2"}), ("x2", {"x1", "x2", "ans"}))},
    **{("hypot", a): {a, "ans"} for a in ("x1", "x2")},
    ("copysign", "x1"): {"x1", "ans"},
    **{(f"linalg.{name}", "x"): {"x", "ans"} for name in ("pinv", "vector_norm")},
    ("linalg.slogdet", "x"): {"x", "sign"},
    ("take", "x"): {"indices"},
    ("take_along_axis", "x"): {"indices"},
    ("sort", "x"): {"order"},
}


def allowed(op: Op, argument: str) -> set[str] | None:
    """Return what a rule may save, if it is specified."""
    arrays = set(op.arrays)
    stated = STATED.get((op.name, argument))
    if stated is not None:
        return stated
    if op.name in NOTHING:
        return set()
    if op.name in RESULT:
        return {"ans"}
    if op.name in INPUT:
        return arrays
    if op.name in OTHER:
        return arrays - {argument}
    ruled = arrays if isinstance(op.vjp, Rule) else set(op.vjp)
    # the derivative of a linear operation needs neither its argument nor its result
    if op.kind == "linear":
        return arrays - ruled
    return None


def plans() -> Iterator[tuple[str, str]]:
    """Yield the operations and arguments with a specified limit."""
    for op in OPS.values():
        for argument in op.arrays if isinstance(op.vjp, Rule) else op.vjp:
            if allowed(op, argument) is not None:
                yield op.name, argument
