"""The table of the plugin's README: whose function each library runs, by what it is differentiated,
and how exact it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np

from multigrad import registry
from multigrad_special.on_jax import OF_COMPLEX

from .everywhere import VALUE, Worst

HEAD = (
    "function",
    "differentiable by",
    "JAX",
    "CuPy",
    "others",
    "SciPy's value",
    "derivative, NumPy",
    "value, others",
    "derivative, others",
    "value, JAX",
    "derivative, JAX",
    "float32",
)
WHOSE = {
    "scipy.special:": "SciPy's",
    "multigrad_special.of_jax:": "JAX's",
    "cupyx.": "CuPy's",
    "multigrad_special.on_jax_by_scipy:": "SciPy's, on the CPU",
    "multigrad_special.": "the standard's",
}


def lines(worst: Iterable[Worst]) -> list[str]:
    """The table in Markdown; errors are the largest over the points of a function, relative."""
    by_name: dict[str, list[Worst]] = {}
    for w in worst:
        by_name.setdefault(w.name, []).append(w)
    rows = [
        list(HEAD),
        ["---", "---", "---", "---", "---", *["---:"] * 7],
        *(row(registry.OPS[n], found) for n, found in sorted(by_name.items())),
    ]
    taken = ", ".join(
        f"{package} {version(package)}"
        for package in ("numpy", "scipy", "jax", "array-api-strict", "mpmath")
    )
    return [*(f"| {' | '.join(r)} |" for r in rows), "", f"Taken with {taken}."]


def row(op: registry.Op, worst: list[Worst]) -> list[str]:
    """The row of a function; complex arguments count with the real ones."""
    short = (
        registry.signature_text(op)
        .removeprefix("special.")
        .replace(", /", "")
        .replace(": plain", "")
    )
    wide = [w for w in worst if w.dtype is not np.float32]

    def error(backend: str, value: bool) -> str:
        return largest(w for w in wide if w.backend == backend and (w.what == VALUE) == value)

    by = [
        a
        for a, role in op.roles.items()
        if role == "array" and (op.kind == "composite" or a in op.vjp)
    ]
    return [
        f"`{short}`",
        " ".join(f"`{a}`" for a in by),
        whose(op, "jax"),
        whose(op, "cupy"),
        whose(op, "*"),
        error("scipy", True),
        error("numpy", False),
        error("strict", True),
        error("strict", False),
        error("jax", True),
        error("jax", False),
        largest(w for w in worst if w.dtype is np.float32 and w.backend != "scipy"),
    ]


def whose(op: registry.Op, backend: str) -> str:
    """Whose function a library runs: its own, the form in the standard, SciPy's, or none."""
    if op.kind == "composite":
        return "made of others"
    if callable(op.forward):  # one for every library
        return "the standard's"
    target: Any = op.forward.get(backend, op.forward.get("*"))
    word = (
        "none"
        if target is None
        else next(word for start, word in WHOSE.items() if target.startswith(start))
    )
    of_complex = {"jax": "; complex: SciPy's, on the CPU", "*": "; complex: refused"}.get(
        backend, ""
    )
    return word + (of_complex if op.name.removeprefix("special.") in OF_COMPLEX else "")


def largest(worst: Iterable[Worst]) -> str:
    """The largest of these errors."""
    sizes = [w.size for w in worst if w.size is not None]
    return f"{max(sizes):.0e}" if sizes else ""
