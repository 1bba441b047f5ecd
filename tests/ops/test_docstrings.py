"""The docstrings of operations: what they say is computed here once more, the examples and the
gradients.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import re
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from standard_names import functions as standard

import multigrad as mg
import multigrad_special.words as special
from multigrad.ops import words
from multigrad.ops.words import text
from multigrad.registry import OPS, define
from multigrad_special import functions

ROOT = Path(__file__).parents[2]
mg.extend.load_plugins()
mg.zeros(1)
PUBLIC = sorted(
    op.name
    for op in OPS.values()
    if op.public and op.module.startswith(("multigrad.", "multigrad_special."))
)
EXAMPLES = {**words.EXAMPLES, **special.EXAMPLES}
FORMULAS = {**words.FORMULAS, **special.FORMULAS}
M = [[2.0, 0.5], [0.25, 1.0]]
ARGUMENTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "acosh": ([[1.5, 2.0]], {}),
    "clip": ([[-1.0, 0.5, 2.0]], {"min": 0.0, "max": 1.0}),
    "softmax": ([[0.25, 0.5]], {"axis": -1}),
    "log_softmax": ([[0.25, 0.5]], {"axis": -1}),
    "reshape": ([M], {"shape": (4,)}),
    "expand_dims": ([M], {"axis": 0}),
    "squeeze": ([[[1.0, 2.0]]], {"axis": 0}),
    "flip": ([M], {"axis": 0}),
    "roll": ([M], {"shift": 1, "axis": 0}),
    "tril": ([M], {"k": 0}),
    "triu": ([M], {"k": 0}),
    "matmul": ([M, M], {}),
    "linalg.solve": ([M, [1.0, 3.0]], {}),
    "conj": ([[1.0 + 2.0j, 3.0]], {}),
    **{
        name: ([M], {})
        for name in (
            "sum",
            "mean",
            "var",
            "std",
            "max",
            "min",
            "prod",
            "matrix_transpose",
            "linalg.inv",
            "linalg.det",
            "linalg.trace",
            "linalg.vector_norm",
            "linalg.matrix_norm",
        )
    },
    **{
        f"special.{name}": ([[0.3, 1.6], [2.0, 0.5]], {})
        for name in ("huber", "pseudo_huber", "boxcox", "boxcox1p")
    },
    **{
        f"special.{name}": ([[2.0, 3.0], [0.25, 0.6]], {})
        for name in (
            "gammainc",
            "gammaincc",
            "gammaincinv",
            "gammainccinv",
            "chdtr",
            "chdtrc",
            "chdtri",
            "pdtr",
            "pdtrc",
            "pdtri",
            "jv",
            "yv",
            "yn",
            "iv",
            "kv",
            "ive",
            "kve",
            "expn",
            "polygamma",
            "stdtr",
            "stdtrit",
            "binom",
            "zeta",
            "hurwitz_zeta",
        )
    },
    **{
        f"special.{name}": ([[2.0, 1.0], [4.0, 5.0], [0.25, 0.6]], {})
        for name in (
            "betainc",
            "betaincc",
            "betaincinv",
            "betainccinv",
            "bdtr",
            "bdtrc",
            "bdtri",
            "nbdtr",
            "nbdtrc",
            "nbdtri",
            "fdtr",
            "fdtrc",
            "fdtri",
            "gdtr",
            "gdtrc",
            "hyp1f1",
        )
    },
    **{f"special.{name}": ([[2.0, 3.5]], {}) for name in ("riemann_zeta", "zetac")},
    "special.lpmv": ([[1.0, 2.0], [2.0, 3.0], [0.25, 0.6]], {}),
    "special.radian": ([[90.0, 10.0], [1.0, 2.0], [0.25, 0.6]], {}),
}
"""The arguments at which gradients are compared: elementwise operations have points of their
own.
"""


def function(name: str) -> Any:
    found: Any = mg
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_what_each_says(name: str) -> None:
    op, doc = OPS[name], inspect.getdoc(function(name))
    assert doc is not None and max(map(len, doc.splitlines())) <= 220
    if name not in ("asarray", "from_dlpack"):  # functions of their own
        table = "multigrad/ops" if op.module.startswith("multigrad.") else "multigrad_special"
        assert "Gradient" in doc, (
            f"the docstring of {name} says nothing about its gradient: add a formula to FORMULAS, "
            f"or words to GRADIENTS, in {table}/words.py"
        )
        assert doc.startswith(op.doc.split(" ")[0]) and "Meaning: " in doc and ("Raises" in doc)


def test_where_the_meaning_of_each_stands() -> None:
    for op in OPS.values():
        if not op.module.startswith("multigrad."):
            continue
        (source,) = re.findall(
            r"Meaning: (.*?)[;.]?$", " ".join(text(op).split()).split("; docs")[0]
        )
        if op.chapter == "beyond":
            package, *names = source.split(".")
            assert package in ("numpy", "scipy", "torch"), (
                f"the text of {op.name} names no function"
            )
            if package != "torch":  # which need not be installed
                assert callable(attrgetter(".".join(names))(import_module(package))), source
        else:
            own = source == f"multigrad's own, {op.name}"
            assert own != (op.name in standard), source


def test_they_are_not_short() -> None:
    for package in ("multigrad.", "multigrad_special."):
        assert (
            median(len(text(OPS[name])) for name in PUBLIC if OPS[name].module.startswith(package))
            >= 550
        )
    assert (
        len(words.EXAMPLES) >= 230
        and len(special.EXAMPLES) == 106
        and not set(EXAMPLES) - set(PUBLIC)
    )
    missing = set(PUBLIC) - set(EXAMPLES)
    assert missing <= {
        "sinc",
        "empty",
        "empty_like",
        "from_dlpack",
        "finfo",
        "iinfo",
        "result_type",
    }


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example(name: str) -> None:
    call, shown = EXAMPLES[name]
    found = eval(call, {"mg": mg})
    expected = eval(shown, {"nan": float("nan"), "inf": float("inf")})
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)
    assert f"    >>> {call}\n    {shown}" in text(OPS[name])


def leaves(x: Any) -> list[Any]:
    if isinstance(x, mg.Tensor):
        return leaves(x.tolist())
    return [z for y in x for z in leaves(y)] if isinstance(x, (list, tuple)) else [x]


def test_the_examples_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("examples_tool", ROOT / "tools" / "examples.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert {name for name in PUBLIC if tool.call(OPS[name])} == set(EXAMPLES)
    for name, (call, _) in EXAMPLES.items():
        assert call.removesuffix(".tolist()") == tool.call(OPS[name]).removesuffix(".tolist()")


def test_each_special_function_has_a_gradient_in_mathematics() -> None:
    names = {name for name in PUBLIC if name.startswith("special.")}
    assert names == set(special.FORMULAS) | {"special.multigammaln"}
    assert all(
        set(special.FORMULAS[name]) <= set(OPS[name].differentiable) for name in special.FORMULAS
    )
    for name in names:  # by each argument, as an expression or in words
        op, known = OPS[name], special.FORMULAS.get(name, {})
        assert set(known) == set(op.differentiable) or name in special.GRADIENTS, name
    assert set(special.AT) | set(special.GRADIENTS) | set(special.SOURCES) <= names


@pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_the_gradient(name: str) -> None:
    """The mathematics of a docstring, evaluated, beside what autograd.grad returns."""
    op = OPS[name]
    values, options = ARGUMENTS.get(name, ([[0.25, 0.6], [2.0, 0.5]][: len(op.arrays)], {}))
    arrays = [
        mg.asarray(np.array(value), requires_grad=not differs(op, i))
        for i, value in enumerate(values)
    ]
    before = (2,) if name == "special.zeta_derivative" else ()
    ans = function(name)(*before, *arrays, **options)
    g = mg.asarray(np.arange(1.0, ans.size + 1.0).reshape(ans.shape)) * (
        1.0 + 1.0j if name == "conj" else 1.0
    )
    smooth = [i for i in range(len(arrays)) if not differs(op, i)]
    grads = dict(zip(smooth, mg.autograd.grad(ans, [arrays[i] for i in smooth], g), strict=True))
    size = arrays[0].shape[0] if name.startswith("linalg.") else arrays[0].size
    scope = {
        n: getattr(mg, n)
        for node in ast.walk(ast.Module([ast.parse(f) for f in FORMULAS[name].values()], []))
        if isinstance(node, ast.Name) and hasattr(mg, n := node.id)
    }
    scope |= (
        {n: getattr(mg.special, n) for n in dir(functions)} if name.startswith("special.") else {}
    )
    scope |= {
        "g": g.detach(),
        "ans": ans.detach(),
        "n": size,
        "axis": None,
        "pi": np.pi,
        **dict.fromkeys("m"[: len(before)], 2),
        **options,
    }
    scope |= {"log": log, "sqrt": root} | {
        n: x.detach() for n, x in zip(op.arrays, arrays, strict=False)
    }
    for argument, formula in FORMULAS[name].items():
        expected = mg.asarray(eval(formula, scope))
        np.testing.assert_allclose(
            grads[op.arrays.index(argument)].array, expected.array, rtol=1e-9, err_msg=formula
        )


def differs(op: Any, i: int) -> bool:
    """Whether an argument is one that an operation is not differentiated by."""
    return op.name.startswith("special.") and op.arrays[i] not in op.differentiable


def log(x: Any) -> Any:
    return mg.log(x) if isinstance(x, mg.Tensor) else np.log(x)


def root(x: Any) -> Any:
    return mg.sqrt(x) if isinstance(x, mg.Tensor) else np.sqrt(x)


def test_a_plugin_s_words(operations: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of words says what a declaration does not; a plugin without one has a docstring all
    the same.
    """
    op = define(
        "t.shifted(x, /, by=1)", forward=lambda xp, x, by: x + by, x=lambda xp, g: g, doc="x + by."
    )
    assert "Gradient" not in text(op) and "Example" not in text(op) and "by:" not in text(op)
    theirs = ModuleType("t_plugin.words")
    theirs.__dict__.update(
        FORMULAS={"t.shifted": {"x": "g"}},
        AT={"t.shifted": "everywhere"},
        SOURCES={"t.shifted": "sums"},
        EXAMPLES={"t.shifted": ("mg.t.shifted(mg.asarray([1.0])).tolist()", "[2.0]")},
        MEANINGS={"by": "by how much"},
    )
    monkeypatch.setitem(sys.modules, "t_plugin", ModuleType("t_plugin"))
    monkeypatch.setitem(sys.modules, "t_plugin.words", theirs)
    said = text(dataclasses.replace(op, module="t_plugin.operations"))
    assert said.endswith("""
by: by how much

Returns an array.

Raises TypeError if no argument is an array of a known library, and MixedBackendsError if the arrays belong to
two libraries. For shapes and dtypes that do not fit, the library's own exception is raised.

Gradient, for the cotangent g: g (everywhere).

Example:

    >>> mg.t.shifted(mg.asarray([1.0])).tolist()
    [2.0]

Meaning: sums.""")


def test_methods_and_their_twins_say_it_too() -> None:
    assert "g * cos(x)" in (mg.Tensor.sin.__doc__ or "") and "Gradient" in (
        mg.namespace("numpy").sin.__doc__ or ""
    )
    assert (mg.Tensor.sin_.__doc__ or "").startswith("In place: The sine")
