"""The short level of the suite notices a library that ignores a keyword, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import registry
from multigrad.registry import OPS, Op, fill

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import Draw, Sample, cells, keywords
from multigrad_conformance import test_conformance as suite
from multigrad_conformance.sample import is_array
from multigrad_conformance.samples import samples_of
from multigrad_conformance.target import Target

fill()
OURS = [op for op in OPS.values() if op.builtin]

UNSEEN = {
    ("argsort", "stable"): "without it, equal elements may have any order, also the stable one",
    ("sort", "stable"): "equal elements look the same in any order",
    ("einsum", "optimize"): "the order of the products changes no result",
    **{
        (op.name, "device"): "NumPy has one device; see test_a_device_that_is_ignored"
        for op in OURS
        if "device" in keywords.of(op)
    },
}
"""The keywords that have no effect on a result of NumPy, with the reason."""


class Broken(Target):
    """NumPy with one function that does something else with one of its arguments."""

    def __init__(
        self,
        op: Op,
        name: str,
        change: Callable[[Any], Any],
        base: str = "numpy",
        defaults: bool = False,
    ) -> None:
        super().__init__(base)
        self.defaults = defaults  # whether the change is made to the default as well
        self.broken, self.parameter, self.change = op, name, change

    def function(self, op: Op) -> Callable[..., Any]:
        right = super().function(op)
        if op is not self.broken:
            return right

        def wrong(*args: Any, **kwargs: Any) -> Any:
            bound = op.signature.bind(*args, **kwargs)
            if self.defaults:
                bound.apply_defaults()
            if self.parameter in bound.arguments:
                bound.arguments[self.parameter] = self.change(bound.arguments[self.parameter])
            return right(*bound.args, **bound.kwargs)

        return wrong


def values_of(op: Op) -> Iterator[cells.Cell]:
    """The cells of the short level that compare values of an operation, in one precision."""
    for cell in cells.selected("numpy", "short", [op.name]):
        if cell.check == "forward" and not cell.single and not cell.variant:
            yield cell


def caught(op: Op, target: Target) -> list[str]:
    """What the failures of the short level say."""
    told = []
    for cell in values_of(op):
        try:
            cell.run(target)
        except Exception as error:
            told.append("\n".join((str(error), *error.__notes__)))
    return told


def mangled(value: Any) -> Any:
    """Another value of the same kind."""
    if is_array(value) or hasattr(value, "array"):
        return value[::-1] if value.ndim else value + 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, (tuple, list)):
        return type(value)(value[::-1]) if value[::-1] != value else type(value)((*value, 1))
    if isinstance(value, (np.dtype, type)):
        return np.dtype("int16")
    return "bool" if isinstance(value, str) else value


KEYWORDS = [
    (op.name, name)
    for op in OURS
    for name in keywords.of(op)
    if (op.name, name) not in UNSEEN | keywords.UNSAMPLED
]


@pytest.mark.parametrize("operation, name", KEYWORDS)
def test_a_keyword_that_is_ignored(operation: str, name: str) -> None:
    op = OPS[operation]
    default = op.signature.parameters[name].default
    told = caught(op, Broken(op, name, lambda value: default))
    assert told, f"the short level does not notice a {operation} that ignores {name}"
    assert any(f"{name}=" in text.rpartition("in ")[2] for text in told), told


@pytest.mark.parametrize(
    "operation, name, change",
    [
        ("searchsorted", "side", lambda side: "right"),
        ("flip", "axis", lambda axis: -1 if isinstance(axis, int) else axis),
        ("roll", "axis", lambda axis: -1 if isinstance(axis, int) else axis),
        ("roll", "shift", lambda shift: shift[0] if isinstance(shift, tuple) else shift),
        ("gradient", "axis", lambda axis: -1 if isinstance(axis, int) else axis),
        ("split", "axis", lambda axis: 0 if axis < 0 else axis),
    ],
)
def test_a_keyword_that_is_wrong_for_some_values(
    operation: str, name: str, change: Callable[[Any], Any]
) -> None:
    """The default is wrong; an axis is taken for the last one; one shift serves for all axes."""
    op = OPS[operation]
    target = Broken(op, name, change, defaults=True)
    failed = []
    for cell in cells.selected("numpy", "full", [operation]):
        if cell.check == "forward" and not cell.single and not cell.variant:
            try:
                cell.run(target)
            except Exception:
                failed.append(cell.label)
    assert failed


REQUIRED = [
    (op.name, name)
    for op in OURS
    for name, p in op.signature.parameters.items()
    if op.public
    and op.roles[name] == "plain"
    and p.default is p.empty
    and p.kind is not p.VAR_POSITIONAL
]


@pytest.mark.parametrize("operation, name", REQUIRED)
def test_an_argument_that_is_mangled(operation: str, name: str) -> None:
    op = OPS[operation]
    assert caught(op, Broken(op, name, mangled)), (
        f"the short level does not notice a {operation} that changes {name}"
    )


@pytest.mark.parametrize(
    "operation", [op.name for op in OURS if "device" in keywords.of(op) and op.public]
)
def test_a_device_that_is_ignored(operation: str) -> None:
    """The variants of a library with several devices notice it."""
    pytest.importorskip("array_api_strict")
    op = OPS[operation]
    labels = {s.label for s, name in keywords.tested(op, samples_of(operation)) if name == "device"}
    (cell,) = (
        cell
        for cell in cells.selected("strict", "short", [operation])
        if cell.variant == "device1" and cell.check == "forward" and cell.label in labels
    )
    with Target("strict").backend.variants["device1"]() as place:
        cell.run(Target("strict", place))
        broken = Broken(op, "device", lambda value: None, "strict")
        broken.device = place
        with pytest.raises(AssertionError, match="it is on .*, not on") as raised:
            cell.run(broken)
    assert "device=OWN_DEVICE" in raised.value.__notes__[0]


@pytest.mark.parametrize(
    "operation, wrong",
    [
        ("round", lambda x: mg.floor(x + 0.5)),
        ("maximum", lambda a, b: mg.where(a > b, a, b)),  # which loses a nan
    ],
)
def test_values_at_kinks(operation: str, wrong: Any) -> None:
    """A function that is wrong only where it is not smooth."""
    target = Target("numpy")
    target.function = lambda op: wrong  # type: ignore[method-assign]
    failures = []
    for cell in cells.selected("numpy", "short", [operation]):
        if cell.check == "kink" and not cell.single:
            try:
                cell.run(target)
            except AssertionError as error:
                failures.append(str(error))
    assert any("output 0" in text for text in failures)


def test_an_operation_with_a_keyword_that_no_sample_sets(
    operations: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = registry.elementwise(
        "suite.scaled(x, /, *, factor=1.0)",
        forward=lambda xp, x, factor: factor * x,
        x=lambda xp, factor: factor,
    )
    plain = Sample("real", Draw("suite").real(2, 3))
    assert keywords.unsampled(op, [plain]) == ["factor"]
    assert keywords.unsampled(op, [plain, Sample("scaled", np.ones(2), factor=2.0)]) == []
    assert keywords.unsampled(op, [plain, Sample("one", np.ones(2), factor=1.0)]) == ["factor"]
    monkeypatch.setattr(suite, "samples_of", lambda name: (plain,))
    with pytest.raises(
        AssertionError,
        match="no sample of the operation 'suite.scaled' of .* gives factor another value than "
        "the default, so a library may ignore it: add one",
    ):
        suite.test_samples("suite.scaled")


def test_the_sample_of_a_keyword_can_run_everywhere() -> None:
    """Not a complex one where there is a real one; and each word of the standard has its own."""
    real, complex_, both = (
        Sample("real", np.ones((2, 3)), axis=0),
        Sample("complex", np.ones((2, 3)) + 1j, axis=1),
        Sample("both", np.ones((2, 3)), axis=1, keepdims=True),
    )
    found = [(s.label, name) for s, name in keywords.tested(OPS["mean"], [complex_, real, both])]
    assert found == [("real", "axis"), ("both", "keepdims")]
    norms = {
        s.label for s, n in keywords.tested(OPS["fft.fft"], samples_of("fft.fft")) if n == "norm"
    }
    assert {"axis", "middle axis"} <= norms


def test_what_a_failure_says() -> None:
    """The call: its keywords by name, its arrays by dtype and shape."""
    sample = Sample("s", np.ones((2, 3)), axis=(0, 1), correction=1.0)
    assert keywords.call_of(OPS["std"], sample) == "std(float64[2, 3], axis=(0, 1), correction=1.0)"
    sample = Sample("s", [np.ones(2), np.ones(2)], axis=None)
    assert keywords.call_of(OPS["concat"], sample) == "concat([float64[2], float64[2]], axis=None)"
