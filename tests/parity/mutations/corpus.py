"""The corpus: its programs, the arrays they are given, and what running one yields."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import (
    assignments,
    deviations,
    history,
    hooks,
    kinds,
    loops,
    modes,
    operands,
    refused,
    shapes,
    stale,
    views,
)
from .sides import Library, Traced

EXPECTED = Path(__file__).with_name("expected.json")

# Few shapes, because JAX compiles for each; few digits, so that the file of outcomes stays short.
ARRAYS: dict[str, Any] = {
    "x": np.array([0.5, 1.25, 0.75, 2.0, 1.5, 0.25]),
    "y": np.array([1.5, -0.5, 2.0, 0.25, -1.25, 0.75]),
    "c": np.array([-1.0, 0.5, 2.0, -0.25, 1.5, 3.0]),
    "a": np.array([[0.5, 1.5, 0.25], [2.0, 0.75, 1.25]]),
    "b": np.array([[1.0, -0.5, 0.5], [0.25, 1.5, -2.0]]),
    "d": np.array([[2.0, 1.0, -0.5], [0.5, -1.0, 1.5]]),
    "s": np.array(1.5),
    "t": np.array([2.0, -0.5, 1.25]),
    "k": np.array([0.5, 3.0, -1.0]),
    "u": np.array([3.0, 0.5]),
    "z": np.array([1 + 0.5j, 0.5 - 1j, -0.25 + 2j, 1.5j, 2.0, -1 + 1j]),
    "w": np.array([0.5 - 1j, 2.0, 1j, 1 + 1j, -0.5, 0.25 - 0.5j]),
    "f": np.array([0.5, 1.25, 0.75, 2.0, 1.5, 0.25], dtype=np.float32),
    "i": np.array([3, 1, 4, 1, 5, 9]),
    "j": np.array([2, 7, 1, 8, 2, 8]),
}
LEAVES = frozenset("xyabstuzf")

# What was saved is written to unnoticed, which spoils the gradient. Where arrays cannot be written,
# it stays the right one.
UNSPOILT = frozenset(
    {
        "modes.write_through_data_is_not_noticed",
        "modes.write_through_view_of_data_is_not_noticed",
    }
)

# What an error is called here, and the part of its text that must be there on every side.
REFUSALS = {
    "a view of a leaf": "a view of a leaf Variable that requires grad is being used in an "
    "in-place operation",
    "a leaf": "a leaf Variable that requires grad is being used in an in-place operation",
    "one of several views": "This view is the output of a function that returns multiple views",
    "a view made under no_grad": "created in no_grad mode and is being modified inplace with "
    "grad mode enabled",
    "the base of a view made under no_grad": "A view was created in no_grad mode and its base "
    "or another view of its base has been modified "
    "inplace",
    "memory shown twice": "more than one element of the written-to tensor refers to a single "
    "memory location",
    "dtype": "can't be cast to the desired output type",
    "shape": "doesn't match the broadcast shape",
    "changed": "one of the variables needed for gradient computation has been modified by an "
    "inplace operation",
    "used up": "Trying to backward through the graph a second time",
    "detached in place": "Can't detach views in-place. Use detach() instead",
    "flag": "you can only change requires_grad flags of leaf variables",
    "no gradient for integers": "only Tensors of floating point",
    "no fit": "",  # indices and shapes: each library has its own words
}
# how array-api-strict refuses to mix dtypes
STRICT = r"cannot be type promoted together|can only be promoted with|dtypes are allowed"
NO_FIT = (
    r"expanded size|shape mismatch|out of bounds|too many indices|must match the "
    r"size|size of tensor"
)

MODULES = {
    m.__name__.rpartition(".")[2]: m
    for m in (
        views,
        shapes,
        stale,
        assignments,
        history,
        hooks,
        modes,
        loops,
        kinds,
        operands,
        refused,
        deviations,
    )
}


def _programs(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {
        name: f
        for name, f in vars(module).items()
        if inspect.isfunction(f) and not name.startswith("_")
    }


PROGRAMS = {
    f"{m}.{name}": f for m, module in MODULES.items() for name, f in _programs(module).items()
}


def differs(name: str) -> bool:
    """Whether multigrad's outcome is expected, which must not be PyTorch's."""
    return name.startswith("deviations.")


def run(xp: Library, program: Callable[..., Any]) -> dict[str, Any]:
    """The outcome: `raises`, `facts`, and the arrays under names such as "result 0", "grad x",
    "second x".
    """
    names = list(inspect.signature(program).parameters)[1:]
    with quiet():
        return (
            _traced(xp, program, names)
            if isinstance(xp, Traced)
            else _run(xp, program, {n: ARRAYS[n] for n in names})
        )


def _traced(xp: Library, program: Callable[..., Any], names: list[str]) -> dict[str, Any]:
    import jax

    outcome: dict[str, Any] = {}

    def function(data: dict[str, Any]) -> dict[str, Any]:
        outcome.update(_run(xp, program, {n: data[n] for n in names}))  # JAX sorts dictionaries
        return {k: v for k, v in outcome.items() if k not in ("raises", "facts")}

    arrays = jax.jit(function)({n: ARRAYS[n] for n in names})
    return outcome | {k: np.asarray(v) for k, v in arrays.items()}


def _run(xp: Library, program: Callable[..., Any], data: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"raises": None, "facts": []}
    phase = "forward"
    try:
        given = {n: xp.array(v, requires_grad=n in LEAVES) for n, v in data.items()}
        returned = program(xp, **given)
        returned = returned if isinstance(returned, tuple) else (returned,)
        results = [t for t in returned if isinstance(t, xp.Tensor)]
        for i, t in enumerate(results):
            outcome["facts"].append(f"{xp.dtype_name(t)} {xp.node(t)} {t._version}")
            outcome[f"result {i}"] = xp.raw(t)
        leaves = {n: t for n, t in given.items() if t.requires_grad and t.is_leaf}
        total = weighted(xp, results)
        phase = "backward"
        if total is not None:
            total.backward(retain_graph=True)
        for n, t in leaves.items():
            if t.grad is not None:
                outcome[f"grad {n}"] = xp.raw(t.grad)
        for i, t in enumerate(results):
            if t.retains_grad:
                outcome[f"retained {i}"] = xp.raw(t.grad)
        logs = [x for found in returned if isinstance(found, list) for x in found]
        for i, t in enumerate(logs):
            if isinstance(t, xp.Tensor):
                outcome[f"seen {i}"] = xp.raw(t)
            else:
                outcome["facts"].append(t)
        phase = "second backward"
        if total is not None and leaves:
            for n, t in zip(leaves, second(xp, total, list(leaves.values())), strict=True):
                outcome[f"second {n}"] = xp.raw(t)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        outcome["raises"] = [phase, *described(error)]
    return outcome


def weighted(xp: Library, results: list[Any]) -> Any:
    """A real number made of all elements that have gradients, each with a weight of its own; None
    without any.
    """
    total = None
    for i, t in enumerate(results):
        if t is None or not t.requires_grad:
            continue
        size = int(np.prod(t.shape))
        weights = xp.array((0.25 * np.arange(size) + 1 + i).reshape(tuple(t.shape)))
        parts = [xp.real(t), -xp.imag(t)] if "complex" in xp.dtype_name(t) else [t]
        for p in parts:
            total = xp.sum(p * weights) if total is None else total + xp.sum(p * weights)
    return total


def second(xp: Library, total: Any, leaves: list[Any]) -> list[Any]:
    """The gradients of a weighted sum of the squared gradients; zeros where there is none."""
    gradients = xp.grad(total, leaves, create_graph=True, allow_unused=True)
    products = weighted(xp, [None if g is None else g * g for g in gradients])
    found = (
        [None] * len(leaves) if products is None else xp.grad(products, leaves, allow_unused=True)
    )
    return [
        xp.zeros_like(leaf.detach()) if g is None else g
        for leaf, g in zip(leaves, found, strict=True)
    ]


def described(error: Exception) -> list[str]:
    """The name of a refusal; for a changed array also its versions and shape."""
    text = str(error)
    name = next((n for n, fragment in REFUSALS.items() if fragment and fragment in text), None)
    if name is None:
        return (
            ["dtype"]
            if re.search(STRICT, text)
            else ["no fit"]
            if re.search(NO_FIT, text)
            else [f"{type(error).__name__}: {text}"]
        )
    if name != "changed":
        return [name]
    found = re.search(
        r"(\[[\d, ]*\]\]|index array).*is at version (\d+); expected version (\d+) instead\. "
        r"Hint: enable anomaly",
        text,
    )
    return (
        [name, f"version {found[2]}, expected {found[3]}", found[1].removesuffix("]")]
        if found
        else [name, text]
    )


def same(outcome: dict[str, Any], expected: dict[str, Any]) -> str:
    """What differs, in words; empty if nothing does."""
    if outcome["raises"] != expected["raises"] and not _both_refuse(
        outcome["raises"], expected["raises"]
    ):
        return f"raises {outcome['raises']} instead of {expected['raises']}"
    if outcome["facts"] != expected["facts"]:
        return f"facts {outcome['facts']} instead of {expected['facts']}"
    if outcome.keys() != expected.keys():
        return f"only one side has {sorted(outcome.keys() ^ expected.keys())}"
    for name in [n for n in expected if n not in ("raises", "facts")]:
        got, want = np.asarray(outcome[name]), np.asarray(expected[name])
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{name} is {got.dtype} {got.shape} instead of {want.dtype} {want.shape}"
        tolerance = 1e-5 if got.dtype == np.float32 or "f" in outcome else 1e-9
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance):
            return f"{name} is {got} instead of {want}"
    return ""


def complaint(xp: Library, name: str, expected: dict[str, Any]) -> str:
    """What is wrong with the outcome of a program on one side, in words; empty if nothing is."""
    difference = same(run(xp, PROGRAMS[name]), expected)
    if xp.name == "jax" and name in UNSPOILT:
        return "" if "grad x" in difference else "the gradient is spoilt: strike it from UNSPOILT"
    if xp.name == "torch" and differs(name):
        return "" if difference else "PyTorch does the same: no deviation any more"
    return difference


def _both_refuse(got: Any, want: Any) -> bool:
    """Indices and shapes: no words are compared.

    Of an index array that was changed, multigrad does not say the shape.
    """
    if not got or not want or got[0] != want[0]:
        return False
    return want[1] == "no fit" or (got[:3] == want[:3] and got[-1] == "index array")


def load() -> dict[str, Any]:
    """The expected outcomes, with NumPy arrays."""
    return {
        name: {k: v if k in ("raises", "facts") else _decoded(v) for k, v in outcome.items()}
        for name, outcome in json.loads(EXPECTED.read_text()).items()
    }


def save(outcomes: dict[str, Any]) -> None:
    lines = (
        f"{json.dumps(name)}: "
        + json.dumps(
            {k: v if k in ("raises", "facts") else _encoded(v) for k, v in outcome.items()}
        )
        for name, outcome in outcomes.items()
    )
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _encoded(x: Any) -> list[Any]:
    """dtype and numbers, of 12 digits; a complex number as a pair."""
    if x.dtype.kind == "c":
        return [
            str(x.dtype),
            np.stack(
                [np.vectorize(_short)(x.real), np.vectorize(_short)(x.imag)], axis=-1
            ).tolist(),
        ]
    return [
        str(x.dtype),
        (np.vectorize(_short, otypes=[float])(x) if x.dtype.kind == "f" else x).tolist(),
    ]


def _short(x: Any) -> float:
    return float(f"{x:.12g}")


def _decoded(found: list[Any]) -> Any:
    dtype, numbers = found
    if dtype.startswith("complex"):
        pairs = np.asarray(numbers)
        return (pairs[..., 0] + 1j * pairs[..., 1]).astype(dtype)
    return np.asarray(numbers, dtype=dtype)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings about numbers out of range, which are values here like others."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
