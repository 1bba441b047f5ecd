"""The debug mode that compares generated code with the general path finds what differs, and changes
nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from os import environ
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend, func, observe
from multigrad.core.tensor import View, wrap
from multigrad.dispatch import checking, functions, runners
from multigrad.dispatch.checking import CheckError
from multigrad.dispatch.general import general
from multigrad.registry import OPS

A, B = np.array([0.4, -0.0, 2.0]), np.array([1.1, 0.7, 0.2])


def leaf(x: Any = A) -> Any:
    return mg.asarray(np.array(x), requires_grad=True)


def function(name: str, wrong: Callable[[Any], Any] = lambda x: x, **form: bool) -> Any:
    """The function of an operation in the debug mode; `wrong` spoils what its code returns."""
    with patch.object(checking, "CHECKED", True):
        made = functions.make_function(OPS[name], **form)
    right = made.__globals__["_generated"]
    made.__globals__["_generated"] = lambda *values: wrong(right(*values))
    return made


def having(**parts: Any) -> Callable[[Any], Any]:
    """Exchange parts of a result; a function makes the part from the result."""

    def wrong(x: Any) -> Any:
        for name, part in parts.items():
            setattr(x, name, part(x) if callable(part) else part)
        return x

    return wrong


def of_node(**parts: Any) -> Callable[[Any], Any]:
    def wrong(x: Any) -> Any:
        having(**parts)(x._node)
        return x

    return wrong


def a_view(x: Any) -> Any:
    return View._make(x._array, leaf(), (None, None, None, None))


OTHER = leaf(B)
DEFECTS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "a value": ("multiply", having(_array=lambda x: x._array * 2), "result._array is array"),
    "the sign of a zero": ("positive", having(_array=lambda x: x._array + 0.0), "result._array is"),
    "a dtype": (
        "multiply",
        having(_array=lambda x: x._array.astype(np.float32)),
        "result._array has dtype float32, not float64",
    ),
    "a shape": (
        "multiply",
        having(_array=lambda x: x._array[None]),
        re.escape("result._array has shape (1, 3), not (3,)"),
    ),
    "a raw array": (
        "multiply",
        lambda x: x._array,
        "result is of class numpy.ndarray, not .*Tensor",
    ),
    "a view": ("sin", a_view, "result is of class .*Tensor view, not .*Tensor$"),
    "an Element": (
        "multiply",
        having(_elem=lambda x: x._elem.library.element(x._elem.library.xp.float32)),
        "its Element .*float32.* has base",
    ),
    "no node": ("multiply", having(_node=None), "result._node is of class .*NoneType, not .*Node"),
    "a parent": ("sin", of_node(next=OTHER._node), "result._node.next is .* older than the call"),
    "a missing parent": ("multiply", of_node(next=OTHER._node), "result._node.next"),
    "a rule": ("sin", of_node(rule=lambda n: mg.cos(leaf())._node.rule), "result._node.rule.op is"),
    "a saved value": ("sin", of_node(saved=(B,)), "result._node.saved, x is"),
    "the cell of a saved value": ("sin", of_node(cells=None), "result._node.cells are"),
    "the cell of an output": ("exp", of_node(cells=None), "result._node.cells are"),
}


class TestTensors:
    @pytest.mark.parametrize("name", DEFECTS)
    def test_a_defect(self, name: str) -> None:
        op, wrong, message = DEFECTS[name]
        given = (leaf(), leaf(B))[: len(OPS[op].arrays)]
        function(op)(*given)
        with pytest.raises(CheckError, match=message) as caught:
            function(op, wrong)(*given)
        assert str(caught.value).startswith(f"{op}(")
        assert "Tensor <Element numpy float64>" in str(caught.value)

    def test_the_cell_of_an_operand(self) -> None:
        x = leaf()
        with pytest.raises(CheckError, match="the version cell is not shared with the same array"):
            function("tan", having(_cell=x._cell))(x)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda x: wrap(x._array), "result is of class .*Tensor, not .*Tensor view"),
            (having(_cell=lambda x: []), "result._cell: the version cell is not shared"),
            (having(_seen=-1), "result._seen is -1, not 0"),
            (having(_view=lambda x: (OTHER, *x._view[1:])), re.escape("result._view[0] is not a")),
            (
                having(_view=lambda x: (*x._view[:2], ((2,), None), *x._view[3:])),
                "_view.2..0. has 1",
            ),
            (having(_view=lambda x: (*x._view[:4], False)), re.escape("result._view[4] is False")),
        ],
    )
    def test_of_views(self, wrong: Any, message: str) -> None:
        x = leaf()
        function("reshape")(x, (3, 1))
        with pytest.raises(CheckError, match=message):
            function("reshape", wrong)(x, (3, 1))

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda xs: xs[::-1], re.escape("result[0]._array is")),
            (lambda xs: xs[:1], "result has 1 entries, not 2"),
            (list, "result is of class builtins.list, not builtins.tuple"),
            (
                lambda xs: (having(_node=xs[1]._node)(xs[0]), xs[1]),
                re.escape("result[0]._node.number is 1, not 0"),
            ),
        ],
    )
    def test_of_several_outputs(self, wrong: Any, message: str) -> None:
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        function("unstack")(x)
        with pytest.raises(CheckError, match=message):
            function("unstack", wrong)(x)

    def test_of_a_named_tuple(self) -> None:
        x = leaf(np.eye(2))
        assert function("linalg.qr")(x)._fields == ("Q", "R")
        with pytest.raises(CheckError, match="result is of class builtins.tuple, not .*QRResult"):
            function("linalg.qr", tuple)(x)

    def test_of_a_composite(self) -> None:
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        function("trace")(x)
        with pytest.raises(CheckError, match="result._array is"):
            function("trace", having(_array=lambda y: y._array + 1.0))(x)


def fails(error: Exception) -> Callable[[Any], Any]:
    def wrong(_: Any) -> Any:
        raise error

    return wrong


class TestErrors:
    @pytest.mark.parametrize(
        ("wrong", "given", "message"),
        [
            (
                fails(ValueError("odd")),
                (A, A),
                "ValueError.'odd'. is raised, and the general path returns .*Tensor",
            ),
            (lambda x: x, (A, B[:2]), None),
        ],
    )
    def test_an_error(self, wrong: Any, given: Any, message: str | None) -> None:
        expected = CheckError if message else ValueError
        with pytest.raises(expected, match=message):
            function("multiply", wrong)(*map(leaf, given))

    def test_another_text_or_type(self) -> None:
        made = function("multiply")
        for error in (ValueError("odd"), KeyError("operands")):
            made.__globals__["_generated"] = lambda *_, error=error: fails(error)(None)
            with pytest.raises(CheckError, match=r"is raised, not ValueError\('operands could"):
                made(leaf(A), leaf(B[:2]))

    def test_no_error(self) -> None:
        made = function("multiply")
        made.__globals__["_generated"] = lambda *_: leaf()
        with pytest.raises(
            CheckError, match="Tensor is returned, and the general path raises ValueError"
        ):
            made(leaf(A), leaf(B[:2]))

    def test_an_operand_of_another_kind(self) -> None:
        made = function("multiply", operator=True)
        assert made(leaf(), "text") is NotImplemented
        with pytest.raises(CheckError, match="not .*NotImplementedType"):
            function("multiply", lambda _: leaf(), operator=True)(leaf(), "text")


class TestLayers:
    def results(self, wrong: Callable[[Any], Any], form: str) -> Any:
        f = function("multiply", wrong)
        return {
            "jvp": lambda: func.jvp(lambda x: f(x, B), (A,), (B,)),
            "jvp of jvp": lambda: func.jvp(
                lambda y: func.jvp(lambda x: f(x, y), (A,), (B,)), (A,), (B,)
            ),
            "jvp of grad": lambda: func.jvp(func.grad(lambda x: mg.sum(f(x, x))), (A,), (B,)),
            "vmap": lambda: func.vmap(lambda x: f(x, B))(np.stack([A, B])),
            "vmap of grad": lambda: func.vmap(func.grad(lambda x: mg.sum(f(x, B))))(
                np.stack([A, B])
            ),
        }[form]()

    @pytest.mark.parametrize(
        ("form", "wrong", "message"),
        [
            ("jvp", having(_tangent=None), "result._tangent is of class .*NoneType, not"),
            ("jvp", having(_tangent=A), "result._tangent is"),
            ("jvp", having(_elem=lambda x: x._elem.base.at(x._run, x._level, True, type(x))),
             "has layered True, not False"),
            ("jvp", having(_elem=lambda x: x._elem.base.at(x._run, x._level + 3, False, type(x))),
             "has level"),
            ("jvp of jvp", having(_tangent=None), "result._tangent is of class"),
            ("jvp of jvp", lambda x: (having(_tangent=None)(x._tangent), x)[1],
             "result._tangent._tangent is of class"),
            ("jvp of grad", having(_node=None), "result._node is of class"),
            ("jvp of grad", lambda x: (having(_tangent=A)(x._array), x)[1], "result._array._tangent"),
            ("vmap", having(_array=lambda x: x._array * 2), "result._array is"),
            ("vmap", lambda x: x._array, "result is of class numpy.ndarray, not .*Batched"),
            ("vmap of grad", lambda x: (having(_array=np.stack([B, A]))(x._array), x)[1],
             "result._array._array is"),
        ],
    )  # fmt: skip
    def test_a_defect(self, form: str, wrong: Any, message: str) -> None:
        for _ in range(6):  # until there is generated code
            self.results(lambda x: x, form)
        with pytest.raises(CheckError, match=message):
            self.results(wrong, form)


class TestNothingElseHappens:
    def test_the_result_is_that_of_the_generated_code(self) -> None:
        made: list[Any] = []
        f = function("multiply", lambda x: made.append(x) or x)
        result = f(leaf(), leaf(B))
        assert result is made[0]
        assert len(made) == 1

    def test_observers_are_told_once(self) -> None:
        class Seen(observe.Observer):
            events = frozenset({observe.OPERATION, observe.NODE})

            def __init__(self) -> None:
                self.seen: list[str] = []

            def begin(self, call: Any) -> None:
                self.seen.append(call.name)

            def recorded(self, node: Any, operands: Any, result: Any) -> None:
                self.seen.append(node.name())

        seen, x = Seen(), leaf()
        observe.enter(seen)
        try:
            function("sin")(x)
        finally:
            observe.leave(seen)
        assert seen.seen == ["sin", "SinBackward"]

    def test_hooks_on_saved_arrays_are_called_once(self) -> None:
        packed: list[Any] = []
        with mg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            y = function("sin")(leaf())
        assert len(packed) == 1
        assert mg.autograd.grad(mg.sum(y), y) is not None

    def test_one_warning(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function("log")(leaf([-1.0]))
        assert [w.category for w in caught] == [RuntimeWarning]

    def test_under_no_grad(self) -> None:
        with mg.no_grad():
            assert function("sin")(leaf())._node is None
            with pytest.raises(CheckError, match="result._node"):
                function("sin", having(_node=OTHER._node))(leaf())

    def test_in_the_forward_of_a_function(self) -> None:
        from multigrad.core.computed import following

        marked: list[int] = []

        class Doubled(mg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = function("multiply")(x, 2.0)
                marked.append(len(following.get().marked))
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2.0

        Doubled.apply(leaf())
        assert marked == [1]

    def test_a_view_that_was_written_to(self) -> None:
        x = leaf() * 1.0
        v = x[0:2]
        x[0] = 5.0
        y = function("multiply")(v, v)
        (g,) = mg.autograd.grad(mg.sum(y), v)
        np.testing.assert_array_equal(g.array, [10.0, 0.0])

    def test_a_strangers_layer_is_used_once(self) -> None:
        calls: list[str] = []

        class Noting(extend.Layer):
            __slots__ = ()

            @classmethod
            def apply(cls, op: Any, values: Any, transform: Any) -> Any:
                calls.append(op.name)
                return transform.layer_of(values[0])

        run = extend.Transform("noting")
        run.call(lambda: function("sin")(Noting.wrap(A, run)))
        assert calls == ["sin"]

    def test_what_an_operation_calls_is_compared_at_its_own_call(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inner = function("multiply")
        compared: list[str] = []
        interpreted = checking._interpreted
        monkeypatch.setattr(
            checking,
            "_interpreted",
            lambda general, op, values: (
                compared.append(op.name) or interpreted(general, op, values)
            ),
        )
        outer = function("sin", lambda y: (inner(leaf(), 2.0), y)[1])
        outer(leaf())
        assert compared == ["multiply", "sin"]
        with runners.interpreted():
            outer(leaf())
        assert compared == ["multiply", "sin"]

    def test_nothing_is_learnt_by_the_general_path(self) -> None:
        f, x = function("sort"), leaf()
        f(x)
        before = len(runners.budget.entries)
        checking._interpreted(general, OPS["stack"], ((x, x), 0))
        checking._interpreted(general, OPS["nan_to_num"], (x, 0.0, None, None))
        assert len(runners.budget.entries) == before

    def test_an_operation_that_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(checking.APART, "sin", "it is different each time")
        function("sin", having(_array=B))(leaf())


def test_everything_is_interpreted_inside() -> None:
    def program() -> None:
        for _ in range(6):
            y = mg.sum(mg.stack([leaf(), leaf(B)]) * mg.astype(leaf(), "float32"))
            mg.autograd.grad(y, y, create_graph=True)
            func.hessian(lambda x: mg.sum(x**3))(A)
            func.vmap(lambda x: mg.sum(x * B))(np.stack([A, B]))

    program()
    assert runners.budget.bytes
    with runners.interpreted():
        program()
        assert not runners.budget.bytes
    program()
    assert runners.budget.bytes


PROGRAM = """
import numpy as np, multigrad as mg
from multigrad import func
from multigrad.dispatch import checking, functions, writer

x = mg.asarray(np.ones(3), requires_grad=True)
def program():
    for _ in range(6):
        y = mg.sum(mg.stack([x, x * 2.0]) * mg.astype(x, "float32"))
        y.backward()
        func.hessian(lambda u: mg.sum(u ** 3))(np.ones(3))
        func.vmap(func.grad(lambda u: mg.sum(u * u)))(np.ones((2, 3)))
"""


class TestInAProcess:
    def run(self, code: str, variable: str = "1") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM + code],
            env={**environ, "MULTIGRAD_CHECK_RUNNERS": variable},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def test_a_program_without_a_defect(self) -> None:
        found = self.run(
            "program(); print(checking.CHECKED, functions.function_of(mg.registry.OPS['sin']).__code__.co_names.count('_checked'))"
        )
        assert found.stdout.split() == ["True", "1"], found.stderr

    def test_without_the_variable_nothing_is_generated_for_it(self) -> None:
        found = self.run(
            "program(); f = functions.function_of(mg.registry.OPS['sin']); print(checking.CHECKED, f.__code__.co_names.count('_checked'), '_generated' in f.__globals__)",
            "0",
        )
        assert found.stdout.split() == ["False", "0", "False"], found.stderr

    @pytest.mark.parametrize(
        ("defect", "message"),
        [
            (
                "lines = writer.TensorWriter.finish\n"
                "writer.TensorWriter.finish = lambda self: (x.replace('_node.next = (_node0_0, _node0_1, )', '_node.next = _node0_0')"
                " for x in lines(self))",
                "stack(",
            ),
            (
                "lines = writer.TensorWriter.finish\n"
                "writer.TensorWriter.common['_shared'] = [7]\n"
                "writer.TensorWriter.finish = lambda self: (x.replace('_cell = []', '_cell = _shared')"
                " for x in lines(self))",
                "result._cell: the version cell is not shared",
            ),
        ],
    )
    def test_a_defect_in_the_text(self, defect: str, message: str) -> None:
        found = self.run(f"{defect}\nprogram()")
        assert "CheckError" in found.stderr and message in found.stderr, found.stderr
