"""The docstrings of operations: what their declarations say, and an executed example.

A gradient is a line of mathematics, where `g` is the cotangent of the result `ans`. The declaration
states it (`About.gradient`), or `make stubs` reads it from the text of the rules and writes it into
examples.py, with the results of the examples. A plugin may have tables of the same names in a
module `words` of its package. These modules are imported when the first function is made.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib import import_module
from typing import Any

from ..registry import Op, signature_text

__all__ = ["call", "example", "formulas", "text"]


def text(op: Op) -> str:
    """The docstring of an operation."""
    example_call, result = example(op)
    parts = [
        op.doc,
        "\n".join(_arguments(op)),
        _returned(op),
        _raised(op),
        _gradient(op),
        f"Example:\n\n    >>> {example_call}\n    {result}".rstrip() if example_call else "",
        _meaning(op),
    ]
    return "\n\n".join(_wrapped(part) for part in parts if part)


def _wrapped(part: str) -> str:
    """Fill a paragraph to lines of 110; keep examples and lists of arguments unchanged."""
    if "\n" in part:
        return part
    return textwrap.fill(part, 110, break_long_words=False, break_on_hyphens=False)


def _arguments(op: Op) -> list[str]:
    """A line for each kind of argument."""
    arrays = [name for name, role in op.roles.items() if role == "array"]
    lists = [name for name, role in op.roles.items() if role == "arrays"]
    lines = []
    if op.about.arrays:
        text = f"{', '.join(arrays)}: {op.about.arrays} of a floating dtype"
        lines.append(op.about.arrays if ":" in op.about.arrays else text)
    elif len(arrays) == 1:
        lines.append(f"{arrays[0]}: {_kinds(op, 'an array')}")
    elif arrays:
        broadcast = (
            " whose shapes broadcast" if _elementwise(op) or op.batching == "elementwise" else ""
        )
        lines.append(
            f"{', '.join(arrays)}: {_kinds(op, 'arrays')}{broadcast}; if one of them is an array, "
            "others may be Python scalars"
        )
    lines += [
        f"{name}: arrays of one library; some of them may be Python scalars" for name in lists
    ]
    plain = [p for p in op.signature.parameters.values() if op.roles[p.name] == "plain"]
    meanings = {**MEANINGS, **getattr(_words(op.module.partition(".")[0]), "MEANINGS", {})}
    return lines + [f"{p.name}: {meanings[p.name]}" for p in plain if p.name in meanings]


MEANINGS = {
    "axis": "the axis, or a tuple of axes if the function accepts several; negative axes count "
    "from the last",
    "axes": "the axes, in order",
    "keepdims": "whether the result keeps the reduced axes, with length 1",
    "dtype": "the dtype of the result: a dtype of the library, or its name",
    "device": "its device",
    "correction": "the number that is subtracted from the number of elements",
    "shape": "the new shape, a tuple of ints",
    "k": "the diagonal; 0 is the main one",
    "offset": "the diagonal; 0 is the main one",
    "norm": "the direction that is divided by n: 'backward', 'forward', or 'ortho' (both are "
    "divided by its root)",
    "copy": "whether to copy; None copies only if necessary",
    "descending": "whether to sort from the largest to the smallest",
    "stable": "whether equal elements keep their order",
    "ord": "which norm",
    "full_matrices": "whether U and Vh are square",
    "upper": "whether to return the upper triangle",
    "include_initial": "whether the result begins with the empty sum or product",
    "method": "how to interpolate",
    "side": "'left' or 'right' of equal elements",
    "indexing": "'xy' (the first two axes exchanged) or 'ij'",
    "num": "how many",
    "endpoint": "whether the last number is `stop`",
    "shift": "the number of places to shift by",
    "mode": "the form of the result",
}
"""The meanings of plain parameters."""


def _dtypes(op: Op) -> str:
    if op.about.dtypes:
        return op.about.dtypes
    if op.kind == "elementwise" or op.chapter in ("fft", "linalg", "special"):
        return "floating dtypes"
    return "any numeric dtype" if op.chapter in ("elementwise", "statistical") else "any dtype"


def _kinds(op: Op, what: str) -> str:
    """`what`, "an array" or "arrays", with the dtypes that the operation takes."""
    dtypes = _dtypes(op)
    if dtypes == "floating dtypes":
        return "a floating-point array" if what == "an array" else "floating-point arrays"
    return f"{what} of {dtypes}"


def _elementwise(op: Op) -> bool:
    """Whether each element of the result depends on one element of each array.

    The chapter `special` has composite operations of this kind, too.
    """
    return op.kind == "elementwise" or op.chapter in ("elementwise", "special")


def _returned(op: Op) -> str:
    if op.outputs:
        return f"Returns a named tuple: {', '.join(op.outputs)}."
    if op.outputs is None:
        return "Returns a tuple of arrays."
    if op.chapter == "data_type" and op.kind == "nondifferentiable":
        return ""
    what = f"Returns an array{f' of {op.about.returns}' if op.about.returns else ''}"
    if _elementwise(op):
        # bounds broadcast to x
        arrays = [a for a in op.arrays if a not in ("min", "max")] or list(op.arrays)
        dtype = (
            _dtypes(op) == "floating dtypes"
            and op.kind != "nondifferentiable"
            and op.name not in ("abs", "real", "imag")  # a complex array has a real result
        )
        if len(arrays) == 1:
            return f"{what} of the shape {'and dtype ' if dtype else ''}of {arrays[0]}."
        names = f"{', '.join(arrays[:-1])} and {arrays[-1]}"
        return f"{what} of the broadcast shape of {names}{', in their common dtype' * dtype}."
    if "keepdims" in op.roles and "axis" in op.roles:
        return (
            f"{what} with the shape of {op.arrays[0]} without the reduced axes; axis=None reduces "
            "over all axes, and the result has shape ()."
        )
    return f"{what}."


def _raised(op: Op) -> str:
    if not op.arrays or op.chapter == "creation":
        return (
            "Raises TypeError for an unknown dtype; for other invalid arguments the library's own "
            "exception is raised."
        )
    return (
        "Raises TypeError if no argument is an array of a known library, and MixedBackendsError "
        "if the arrays belong to two libraries. For shapes and dtypes that do not fit, the "
        "library's own exception is raised."
    )


def _gradient(op: Op) -> str:
    if op.kind == "nondifferentiable":
        return "Gradient: none; every transformation treats the result as a constant."
    text = "; ".join(
        f"for {name}: {formula}" if len(op.differentiable) > 1 else formula
        for name, formula in formulas(op).items()
    )
    stated = op.about.gradient
    if words := stated if isinstance(stated, str) and stated else _of(op, "GRADIENTS", ""):
        text += f"; {words}" if text else words
    note = op.about.at or _of(op, "AT", "")
    if text:
        text = f", for the cotangent g: {text}"
    elif op.kind == "composite":
        text = ": it follows from the operations that this function consists of"
    elif op.kind in ("linear", "multilinear"):
        text = ": the transpose of this linear map, applied to the cotangent"
    elif note:
        text, note = f": {note}", ""
    return f"Gradient{text}{f' ({note})' if note else ''}." if text else ""


def formulas(op: Op) -> dict[str, str]:
    """The gradients that are expressions, by argument."""
    stated = op.about.gradient
    gradients = _of(op, "FORMULAS", {}) | ({} if isinstance(stated, str) else stated)
    return {name: gradients[name] for name in op.arrays if name in gradients}


def example(op: Op) -> tuple[str, str]:
    """The call that a docstring shows, and its result; "" for what is not known."""
    pair: tuple[str, str] = _of(op, "EXAMPLES", (call(op), ""))
    return pair


ARRAYS = {
    "A": "[[1.0, 2.0], [3.0, 4.0]]",
    "P": "[1.0, 2.0]",
    "Q": "[3.0, 4.0]",
    "S": "[[2.0, 1.0], [1.0, 2.0]]",
    "V": "[3.0, 1.0, 2.0]",
    "X": "[0.25, 0.5]",
    "Y": "[2.0, 0.5]",
}
"""The arrays that the examples of declarations name by a letter."""


def call(op: Op) -> str:
    """The call that the declaration of an operation shows, "" if there is none."""
    arguments = op.about.example
    spelled = re.sub(r"(?<![.\w])[A-Z]\b", lambda m: f"mg.asarray({ARRAYS[m[0]]})", arguments)
    return spelled if not spelled or f"mg.{op.name}(" in spelled else f"mg.{op.name}({spelled})"


def _of(op: Op, table: str, default: Any) -> Any:
    """The entry of an operation in a table of examples.py or of its plugin's module `words`."""
    return getattr(_words(op.module.partition(".")[0]), table, {}).get(op.name, default)


@cache
def _words(package: str) -> Any:
    """The module with the tables of a package, or None."""
    own = package == __name__.partition(".")[0]
    name = f"{__package__}.examples" if own else f"{package}.words"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, package):
            raise
        return None


def _meaning(op: Op) -> str:
    """Where the function is defined; nothing if a name beyond the standard has no other source."""
    source = _of(op, "SOURCES", "")
    if not source and op.chapter == "beyond":
        named = re.search(r"\b(?:numpy|scipy|torch)(?:\.\w+)+", op.doc)
        source = named[0] if named else ""
    elif not source and not op.builtin:
        source = f"the plugin {op.module.partition('.')[0]}, {signature_text(op)}"
    elif not source and not op.public:
        source = f"multigrad's own, {op.name}"
    elif not source:
        kinks = (
            "; docs/subgradients.md gives the reasons for the gradients at these points"
            if op.about.at
            else ""
        )
        source = f"the Python Array API standard 2025.12, {op.name}{kinks}"
    return f"Meaning: {source}." if source else ""
