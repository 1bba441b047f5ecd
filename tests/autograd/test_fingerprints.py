"""Writes to saved arrays that multigrad does not see.

Anomaly mode and detect_breaks name the line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.autograd import detect_anomaly, detect_breaks
from multigrad.errors import GradientError


def operand(x: Any) -> tuple[Any, Any]:
    a = np.ones(3)
    return x * a, a


def beside_constants(x: Any) -> tuple[Any, Any]:
    a = np.ones(3)
    return (x + mg.zeros(3)) * a, a


def index(x: Any) -> tuple[Any, Any]:
    a = np.zeros(3, dtype=np.int64)
    return mg.take(x, a), a


def key(x: Any) -> tuple[Any, Any]:
    a = np.zeros(3, dtype=np.int64)
    return (x * 1.0)[a], a


def of_a_list(x: Any) -> tuple[Any, Any]:
    a = np.ones(3)
    return mg.matmul(mg.stack([x, x]), a), a


CASES = {f.__name__: f for f in (operand, beside_constants, index, key, of_a_list)}
MESSAGE = "that the operation saved was modified by the program, past multigrad"


def modifying(case: Callable[[Any], tuple[Any, Any]], how: str) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y, a = case(x)
        if how == "changed":
            a[...] = 2
        elif how == "same":
            a[...] = a * 1
        return mg.sum(y)

    return f


def on_the_tape(f: Callable[[Any], Any]) -> None:
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    f(x).backward()


def under_grad(f: Callable[[Any], Any]) -> None:
    func.grad(f)(np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("run", [on_the_tape, under_grad])
@pytest.mark.parametrize("case", CASES)
class TestRawArrays:
    def test_anomaly_mode_raises_and_shows_the_call(self, case, run):
        used = CASES[case].__code__.co_firstlineno + 2
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with detect_anomaly(), pytest.raises(GradientError, match=MESSAGE) as raised:
                run(modifying(CASES[case], "changed"))
        assert f"It was used at {__file__}:{used} in {case}." in str(raised.value)
        assert any(f"in {case}" in str(w.message) for w in told)

    def test_detect_breaks_names_the_line(self, case, run):
        used = CASES[case].__code__.co_firstlineno + 2
        with detect_breaks() as report:
            run(modifying(CASES[case], "changed"))
        (found,) = report.of("modified")
        assert (found.site.file, found.site.line) == (__file__, used)
        assert "saved by" in found.what and "modified by the program" in str(report)

    @pytest.mark.parametrize("how", ["not at all", "same"])
    def test_nothing_if_the_values_are_the_same(self, case, run, how):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with detect_anomaly():
                run(modifying(CASES[case], how))
        with detect_breaks() as report:
            run(modifying(CASES[case], how))
        assert not report.of("modified")


class TestOthers:
    def test_writes_to_tensors_keep_their_message(self):
        x = mg.asarray([1.0, 2.0], requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with detect_anomaly():
                y = mg.exp(x)
                y += 1.0
                with pytest.raises(GradientError, match="modified by an inplace operation"):
                    mg.sum(y).backward()

    def test_an_argument_of_a_transformation(self):
        x = np.array([1.0, 2.0])
        with detect_breaks() as report:
            _, pullback = func.vjp(lambda x: x * x, x)
            x[0] = 9.0
            pullback(np.ones(2))
        (found,) = report.of("modified")
        assert "func.vjp(lambda x: x * x, x)" in found.source

    def test_values_that_a_write_kept(self):
        """In a transformation, and where writes are allowed, nodes have copies."""

        def f(x: Any) -> Any:
            y = mg.exp(x)
            y /= mg.sum(y)
            return mg.sum(y * y)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with detect_anomaly():
                func.grad(f)(np.array([1.0, 2.0]))
            with detect_anomaly(), mg.autograd.graph.allow_mutation_on_saved_tensors():
                f(mg.asarray([1.0, 2.0], requires_grad=True)).backward()

    def test_arrays_that_are_immutable_or_packed_have_none(self):
        x = mg.asarray([1.0, 2.0], backend="jax", requires_grad=True)
        z = mg.asarray([1.0, 2.0], requires_grad=True)
        with detect_breaks() as report:
            mg.sum(mg.exp(x)).backward()
            with mg.autograd.graph.saved_tensors_hooks(lambda t: t * 2.0, lambda t: t):
                y = mg.sum(mg.exp(z))
            y.backward()
        assert not report.of("modified")
