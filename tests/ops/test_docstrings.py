"""The docstrings of operations: what they say is computed here once more, the examples and the
gradients.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tool_modules
from standard_names import functions as standard

import multigrad as mg
from multigrad.dispatch import codegen
from multigrad.ops.words import example, formulas, text
from multigrad.registry import OPS, About, composite, define, elementwise
from multigrad_conformance.problem import Problem
from multigrad_conformance.samples import samples_of
from multigrad_special import functions

mg.extend.load_plugins()
mg.zeros(1)
PUBLIC = sorted(
    op.name
    for op in OPS.values()
    if op.public and op.module.startswith(("multigrad.", "multigrad_special."))
)
EXAMPLES = {name: example(OPS[name]) for name in PUBLIC if example(OPS[name])[0]}
FORMULAS = {name: stated for name in PUBLIC if (stated := formulas(OPS[name]))}
SAMPLES = {"conj": "complex", "linalg.solve": "vector", "special.zeta": "of Hurwitz"}
"""The samples of the suite at which gradients are compared, where it is not the first."""


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
        assert "Gradient" in doc, (
            f"the docstring of {name} says nothing about its gradient: run `make stubs`, which "
            "reads its rules; if they are no formulas, declare about=About(gradient=...)"
        )
        assert doc.startswith(op.doc.split(" ")[0]) and "Meaning: " in doc and ("Raises" in doc)


def test_where_the_meaning_of_each_stands() -> None:
    for op in OPS.values():
        if not op.builtin:
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


def test_the_examples_are_fresh() -> None:
    tool = tool_modules.tool("examples")
    made = {
        op.name: call
        for room in ("multigrad", "multigrad_special")
        for op, call, _ in tool.results(room)
    }
    assert {name: call.removesuffix(".tolist()") for name, (call, _) in EXAMPLES.items()} == {
        name: call.removesuffix(".tolist()") for name, call in made.items()
    }


@pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_the_gradient(name: str) -> None:
    """The mathematics of a docstring, evaluated, beside what autograd.grad returns."""
    op, samples = OPS[name], {s.label: s for s in samples_of(name)}
    problem = Problem.of(op, samples[SAMPLES.get(name, next(iter(samples)))])
    arrays = [mg.asarray(x, requires_grad=True) for x in problem.leaves()]
    values = problem.replaced(arrays)
    ans = codegen.call(op, function(name), values)
    g = mg.asarray(np.arange(1.0, ans.size + 1.0).reshape(ans.shape)) * (
        1.0 + 1.0j if name == "conj" else 1.0
    )
    grads = dict(zip(problem.names, mg.autograd.grad(ans, arrays, g), strict=True))
    scope = {
        n: getattr(mg, n)
        for formula in FORMULAS[name].values()
        for node in ast.walk(ast.parse(formula))
        if isinstance(node, ast.Name) and hasattr(mg, n := node.id)
    }
    if name.startswith("special."):
        scope |= {n: getattr(mg.special, n) for n in dir(functions)}
    scope |= {"g": g, "ans": ans.detach(), "pi": np.pi, "log": log, "sqrt": root}
    scope["n"] = arrays[0].shape[0] if name.startswith("linalg.") else arrays[0].size
    scope |= {n: constant(v) for n, v in zip(op.roles, values, strict=True)}
    for argument, formula in FORMULAS[name].items():
        expected, found = mg.asarray(eval(formula, scope)).array, grads[argument].array
        assert expected.shape == found.shape
        stated = np.isfinite(expected)  # that of expn has no value for the order 0
        assert np.sum(stated) >= np.size(expected) / 2
        np.testing.assert_allclose(found[stated], expected[stated], rtol=1e-9, err_msg=formula)


def constant(x: Any) -> Any:
    """A value of a parameter as formulas take it."""
    return mg.asarray(x).detach() if isinstance(x, (mg.Tensor, np.ndarray)) else x


def log(x: Any) -> Any:
    return mg.log(x) if isinstance(x, mg.Tensor) else np.log(x)


def root(x: Any) -> Any:
    return mg.sqrt(x) if isinstance(x, mg.Tensor) else np.sqrt(x)


def test_gradients_are_read_from_the_rules(operations: Any) -> None:
    """A number, a partial derivative, a product with the cotangent; nothing of what is no formula,
    and nothing of an operation that has one such rule.
    """
    read = tool_modules.tool("formulas").readable
    rule = lambda xp, g, x1: g * x1
    two = elementwise("t.two(x1, x2, /)", x1=-1, x2=lambda xp, g, x2: -g * (x2 / 2.0) / x2 / x2)
    one = elementwise("t.one(x, /)", x=lambda xp, ans: 1.0 - ans * xp.sin(ans) * ans)
    assert read(two) == {"x1": "-g", "x2": "-g * x2 / (2 * x2**2)"}
    assert read(one) == {"x": "g * (1 - t.one(x)**2 * sin(t.one(x)))"}
    for unread in (
        lambda xp, g, x: g * _shift(x),
        lambda xp, g, x: g * xp.unindex(x, 0, (1,)),
        lambda xp, g, x: g * x.dtype,
    ):
        op = elementwise("t.unread(x1, x, /)", x1=rule, x=unread, override=True)
        assert read(op) == {}


def _shift(x: Any) -> Any:
    return x + 1


def test_a_declaration_s_words(operations: Any) -> None:
    op = elementwise(
        "t.twice(x1, x2, /)",
        x1=2,
        x2=lambda xp, g, x1: g * x1,
        about=About(
            gradient={"x2": "g * x1", "x1": "2 * g"},
            at="everywhere",
            example="mg.t.twice(1.0, x)",
            arrays="x1, x2: whatever",
            returns="integers",
        ),
        doc="Twice.",
    )
    said = text(op)
    assert "x1, x2: whatever" in said and "Returns an array of integers of" in said
    assert "for x1: 2 * g; for x2: g * x1 (everywhere)." in said
    assert "Example:\n\n    >>> mg.t.twice(1.0, x)\n\nMeaning" in said
    words = elementwise("t.once(x, /)", x=1, about=About(gradient="g, as it is", example="P"))
    assert "Gradient, for the cotangent g: g, as it is." in text(words)
    again = elementwise("t.once(x, /)", x=2, override=True)
    assert again.about.example == words.about.example  # an override keeps what it does not give,
    assert "as it is" not in text(again)  # but what was said of the gradient, of the former rule
    again = elementwise("t.once(x, /)", x=2, about=About(at="0"), override=True)
    assert (again.about.example, again.about.at) == (words.about.example, "0")
    assert "Gradient: 0.\n" in text(again)  # without an expression, too
    sum_of = composite("t.both(x, y)", lambda xp, x, y: x + y, about=About(at="0 at 0"))
    assert "operations that this function consists of (0 at 0).\n" in text(sum_of)


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
