"""The names that rules take: what each stands for, and that all writers of code agree on it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy_samples import filled, operation_on, taken
from rule_checks import bound

import multigrad as mg
from multigrad import registry
from multigrad.core.element import library_named
from multigrad.core.graph import OutputInfo, OutputNode
from multigrad.core.level import innermost
from multigrad.core.pullback import apart
from multigrad.dispatch import runners
from multigrad.dispatch.names import Texts, arrays_taken, meanings, value
from multigrad.dispatch.pullbacks import pullback
from multigrad.registry import OPS, Op, Rule
from multigrad_conformance.samples import samples_of

mg.zeros(1)
NAMES = sorted(
    name
    for name, op in OPS.items()
    if samples_of(name) and op.kind != "composite" and op.differentiable and name != "to_backend"
)


def rules(op: Op) -> list[Rule]:
    """All rules of an operation, with those of its residuals."""
    found = [op.vjp] if isinstance(op.vjp, Rule) else list(op.vjp.values())
    found += [rule for rule in (op.jvp, op.batching) if isinstance(rule, Rule)]
    return found + [residual for rule in found for residual in rule.residuals.values()]


@pytest.fixture
def op(operations: dict[str, Op]) -> Op:
    """An operation whose rule takes something of every kind."""
    registry.define(
        "t.named(x, ys: arrays, /, *, size=1)",
        outputs=("low", "high"),
        forward=lambda xp, x, ys, size=1: (x, ys[0]),
        vjp=lambda xp, g_low, g_high, needs, x, ys_shape, size, high, ans, places: (g_low, None),
        jvp=lambda xp, t_x, t_ys, x_scalar: (t_x, t_x),
        residuals={"places": lambda xp, ys, low, x_dtype: xp.argsort(low) + len(ys)},
    )
    return operations["t.named"]


def test_every_name_of_every_rule_has_a_meaning() -> None:
    kinds = set()
    for op in OPS.values():
        for rule in rules(op):
            kinds |= {meanings(op)[n].kind for n in rule.takes}
        if op.differentiable and op.kind != "composite":
            needs = tuple(op.roles[a] == "array" or (True, True) for a in op.arrays)
            kinds |= {meanings(op)[n].kind for n in pullback(op, needs, False, True).plan}
    assert kinds >= {"given", "argument", "metadata", "result", "residual"}


def test_what_a_name_stands_for(op: Op) -> None:
    found = {n: (m.kind, m.of, m.index, m.what) for n, m in meanings(op).items()}
    assert found["xp"] == ("given", "xp", None, "")
    assert found["g_high"] == ("given", "g_high", None, "")
    assert found["t_ys"] == ("given", "t_ys", None, "")
    assert found["ys"] == ("argument", "ys", 1, "")
    assert found["size"] == ("argument", "size", 2, "")  # not that of a batching rule
    assert found["ys_shape"] == ("metadata", "ys", 1, "shape")
    assert found["ans"] == ("result", "ans", None, "")
    assert found["high"] == ("result", "high", 1, "")
    assert found["high_info"] == ("info", "high", 1, "")
    assert found["places"] == ("residual", "places", None, "")
    assert meanings(op)["places"].takes == ("xp", "ys", "low", "x_dtype")


@pytest.mark.parametrize("name", ["y", "size_shape", "g_x", "t_size", "low_shape", "other_info"])
def test_no_other_name_has_a_meaning(op: Op, name: str) -> None:
    assert name not in meanings(op)
    with pytest.raises(registry.RegistrationError, match=f"takes {name!r}, which is not one of"):
        registry.define(
            "t.named(x, ys: arrays, /, *, size=1)",
            outputs=("low", "high"),
            vjp=eval(f"lambda xp, g_low, {name}: (g_low, None)"),
            override=True,
        )


def test_what_rules_depend_on(op: Op) -> None:
    assert arrays_taken(op, ("xp", "t_x", "size", "ans")) == []
    assert arrays_taken(op, ("ys_shape", "x", "x_scalar")) == ["ys", "x"]
    assert arrays_taken(op, ("places",)) == ["ys", "x"]


def test_values(op: Op) -> None:
    xp = library_named("numpy").xp
    x, y, z = np.array([3.0, 1.0]), np.ones((2, 3), np.float32), 2.0
    ans = x, y

    def named(name: str) -> Any:
        return value(op, name, {"xp": xp, "g_low": 7}, (x, (y, z), 5), ans)

    assert named("xp") is xp
    assert named("g_low") == 7
    assert named("x") is x
    assert named("size") == 5
    assert named("ans") is ans
    assert named("high") is y
    assert named("x_scalar") is None
    assert named("ys_scalar") == (None, 2.0)
    assert named("ys_shape") == ((2, 3), None)
    assert named("ys_dtype") == (np.float32, None)
    assert named("high_info") == OutputInfo((2, 3), y.dtype, "cpu")
    assert named("ans_info") == (named("low_info"), named("high_info"))
    np.testing.assert_array_equal(named("places"), [3, 2])


def test_a_writer_may_know_more_of_an_argument(op: Op) -> None:
    class OfOneSignature(Texts):
        def metadata(self, name: str, what: str) -> str:
            return "None" if name == "x" else f"(_y0.{what}, _y1.{what})"

    texts = OfOneSignature(
        op, {"xp": "_xp"}, {"x": "_scalar", "ys": "(_y0, _y1)"}, "_a", "_{name}({taken})"
    )
    assert texts.text("size") == "size"
    assert texts.text("high_info") == "_info(_a[1])"
    assert texts.text("ys_dtype") == "(_y0.dtype, _y1.dtype)"
    assert texts.text("places") == "_places(_xp, (_y0, _y1), _a[0], None)"


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(found, tuple):
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert_same(x, y)
    elif isinstance(found, np.ndarray):  # a Python scalar is saved as a 0-d array
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_nodes_save_what_the_names_stand_for(name: str) -> None:
    """By the recorder on the general path, by straight code otherwise."""
    op, xp = OPS[name], library_named("numpy").xp
    compared = 0
    for sample in samples_of(name):
        function, arrays = operation_on(name, sample, False)
        held: list[Any] = []
        args = filled(taken(sample.args, held, False), arrays)
        kwargs = {k: filled(taken(v, held, False), arrays) for k, v in sample.kwargs.items()}
        values = bound(name, args, kwargs)[1]
        tensors = [mg.asarray(x, requires_grad=x.dtype.kind in "fc") for x in arrays]
        for path in (runners.interpreted, nullcontext, nullcontext):
            with path():
                result = function(*tensors)
            outputs = (result,) if op.outputs == () else tuple(result)
            raw = tuple(map(innermost, outputs))
            for t in outputs:
                node = getattr(t, "_node", None)
                node = node.next if isinstance(node, OutputNode) else node
                if getattr(node, "rule", None) is None or node.rule.op is not op:
                    continue
                ans = raw[0] if op.outputs == () else raw
                for n, found in zip(node.rule.plan, apart(node.saved), strict=True):
                    assert_same(found, value(op, n, {"xp": xp}, values, ans))
                    compared += 1
    assert compared
