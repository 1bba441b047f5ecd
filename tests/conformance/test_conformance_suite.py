"""The conformance suite notices what it is there to notice: each kind of mistake fails the check
that looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import registry
from multigrad.errors import BatchingError
from multigrad.ops.batching import refused
from multigrad.plugins import discovery
from multigrad.registry import OPS

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import (
    Draw,
    Kink,
    Refused,
    Sample,
    batches,
    cells,
    check_rule,
    checks,
    kernels,
    plugin,
    problem,
    samples,
    saves,
)
from multigrad_conformance import test_conformance as suite
from multigrad_conformance.target import Target

SAMPLE = Sample("real", Draw("suite").real(2, 3))
COMPLEX = Sample("complex", Draw("suite").complex(2, 3))


@pytest.fixture
def declared() -> Iterator[Callable[..., Any]]:
    """Declares operations for one test."""
    Target("numpy")
    before = dict(registry.OPS)
    yield lambda how, *args, **kwargs: getattr(registry, how)(*args, **kwargs)
    registry.OPS.clear()
    registry.OPS.update(before)
    problem._forget(before["sin"])


BATCHES = (
    batches.vmap,
    batches.vmap_each,
    batches.vmap_vjp,
    batches.vmap_pullback,
    batches.vmap_jvp,
    batches.nested,
)


def case(op: Any, sample: Sample = SAMPLE) -> checks.Case:
    return checks.Case(Target("numpy"), op, sample)


def cube(xp: Any, x: Any) -> Any:
    return x * x * x


def test_a_right_operation_passes_everything(declared: Any) -> None:
    right = case(
        declared("elementwise", "suite.right(x, /)", forward=cube, x=lambda xp, x: 3 * x * x)
    )
    for check in (checks.forward, checks.vjp, checks.jvp, checks.dual, checks.second, *BATCHES):
        check(right)


CUBE: dict[str, Any] = {
    "forward": cube,
    "x": lambda xp, g, x: g * 3 * x * x,
    "jvp": lambda xp, t, x: t * 3 * x * x,
}
"""The right rules of a cube, of which a test changes one."""


def test_a_wrong_batching_rule(declared: Any) -> None:
    right = declared("define", "suite.batched(x, /)", **CUBE, batching=lambda xp, x: x * x * x)
    for check in BATCHES:
        check(case(right))

    def another_example(xp: Any, x: Any) -> Any:
        return xp.flip(x * x * x, axis=0)

    def one_for_all(xp: Any, x: Any) -> Any:
        return (x * x * x)[:1, ...]

    def writing(xp: Any, x: Any) -> Any:
        result = x * x * x
        x *= 0
        return result

    for rule, message in (
        (another_example, "x batched: output 0, against a loop"),
        (one_for_all, "x batched: output 0, against a loop"),
        (writing, "an argument was changed"),
    ):
        wrong = declared("define", "suite.batched(x, /)", **CUBE, batching=rule, override=True)
        with pytest.raises(AssertionError, match=message):
            batches.vmap(case(wrong))


def test_an_operation_that_is_computed_one_by_one(declared: Any) -> None:
    """A third party's may be; one of the standard may not."""
    slow = declared("define", "suite.slow(x, /)", **CUBE)
    for check in BATCHES:
        check(case(slow))
    registry.OPS["suite.slow"] = own = replace(slow, module="multigrad.ops.slow")
    # where the operation is over before the batch begins
    for check in set(BATCHES) - {batches.vmap_pullback}:
        with pytest.raises(AssertionError, match="the operation 'suite.slow' has no batching rule"):
            check(case(own))


def test_a_shape_that_depends_on_values(declared: Any) -> None:
    sample = Sample(
        "real", np.asarray([[0.5, -1.0, 2.0], [1.5, 3.0, -2.5]]), needs="data_dependent"
    )
    refusing = declared(
        "nondifferentiable",
        "suite.positive(x, /)",
        forward=lambda xp, x: x[x > 0],
        batching=refused("suite.positive", ""),
    )
    batches.vmap(case(refusing, sample))
    lenient = declared(
        "nondifferentiable",
        "suite.positive(x, /)",
        forward=lambda xp, x: x[x > 0],
        batching=lambda xp, x: x,
        override=True,
    )
    with pytest.raises(
        AssertionError, match="the shape of the result depends on values, yet vmap has computed it"
    ):
        batches.vmap(case(lenient, sample))
    with pytest.raises(BatchingError, match="depends on the values"):  # where it does not
        batches.vmap(case(registry.OPS["nonzero"], Sample("real", np.ones(3))))


def test_a_wrong_vjp(declared: Any) -> None:
    wrong = declared("elementwise", "suite.wrong(x, /)", forward=cube, x=lambda xp, x: 3 * x)
    for check in (checks.vjp, checks.jvp, checks.dual, checks.second):
        with pytest.raises(AssertionError, match="differences|tangent|derivative"):
            check(case(wrong))


def test_a_rule_that_hides_its_argument_from_the_second_derivative(declared: Any) -> None:
    def constant(xp: Any, g: Any, x: Any) -> Any:
        return g * 3 * getattr(x, "array", x) ** 2

    wrong = declared("define", "suite.hidden(x, /)", **CUBE | {"x": constant})
    checks.vjp(case(wrong))
    with pytest.raises(AssertionError, match="second derivative"):
        checks.second(case(wrong))
    with pytest.raises(AssertionError, match="the derivative of gradient x"):
        checks.nested(case(wrong))


def test_the_other_convention_of_complex_gradients(declared: Any) -> None:
    wrong = declared("define", "suite.complex(x, /)", **CUBE)
    with pytest.raises(AssertionError, match="finite differences"):
        checks.vjp(case(wrong, COMPLEX))
    with pytest.raises(AssertionError, match="Re<g, jvp"):
        checks.jvp(case(wrong, COMPLEX))


def test_an_argument_that_is_changed(declared: Any) -> None:
    def forward(xp: Any, x: Any) -> Any:
        result = x * 2
        x[...] = 0
        return result

    wrong = declared("elementwise", "suite.changed(x, /)", forward=forward, x=2)
    with pytest.raises(AssertionError, match="an argument was changed"):
        checks.forward(case(wrong))


@pytest.mark.parametrize(
    "kernel, wrong, message",
    [
        ("to_numpy", lambda xp, x, copy=None: np.asarray(x, np.complex128), "to_numpy gave .* for"),
        ("to_numpy", lambda xp, x, copy=None: np.asarray(x) * 2, "to_numpy"),
        ("to_numpy", lambda xp, x, copy=None: np.asarray(x)[()], "to_numpy gave .*, no array of N"),
        ("from_numpy", lambda xp, x: x.astype(np.complex64), "from_numpy gave .* for"),
        ("from_numpy", lambda xp, x: x.tolist(), "from_numpy gave list, no array of the library"),
        (
            "rule",
            lambda xp, name, vjp: lambda xp, g, *saved: vjp(xp, g, *saved) * 2,
            "the gradient of a rule",
        ),
        (
            "rule",
            lambda xp, name, vjp: lambda xp, g, *saved: vjp(xp, g + 0, *saved),
            "the rule of multiply was given something else",
        ),
        (
            "rule",
            lambda xp, name, vjp: (
                lambda xp, g, *s: vjp(xp, g, *s) if len(s) > 1 else vjp(xp, g, *s)[0]
            ),
            "of .gradient, None., array",
        ),
        ("eagerly", lambda xp, x, compute: x, "eagerly"),
        ("fresh", lambda xp, x: x.tolist(), "fresh gave list"),
        ("assign", lambda xp, x, key, value: None, "after x.* was assigned to"),
        ("order", lambda xp, x: "C", "yet order 'C'"),
        ("is_c_contiguous", lambda xp, x: True, "yet C-contiguous"),
        ("shares_memory", lambda xp, x, y: True, "shared with a new array"),
        ("accelerator", lambda xp, x: 0, "accelerator gave 0"),
        ("unshared", lambda xp, arrays: True, "use 0 of the memory was not seen"),
    ],
)
def test_a_wrong_kernel(kernel: str, wrong: Any, message: str) -> None:
    target = Target("numpy")
    kernels.CHECKS[kernel](target)
    backend = target.backend
    target.backend = replace(backend, kernels={**backend.kernels, kernel: wrong})
    with pytest.raises(AssertionError, match=message):
        kernels.CHECKS[kernel](target)


def rule_that(write: Callable[[Any, Any, Any], None]) -> Any:
    """A rule of a cube that writes into a cotangent or tangent, an argument, or the output."""

    def rule(xp: Any, g: Any, x: Any, ans: Any) -> Any:
        slope = g * 3 * x * x
        write(g, x, ans)
        return slope

    return rule


def of_direction(g: Any, x: Any, ans: Any) -> None:
    g *= 0


def of_argument(g: Any, x: Any, ans: Any) -> None:
    x *= 0


def of_output(g: Any, x: Any, ans: Any) -> None:
    ans += 1


def of_recorded_output(g: Any, x: Any, ans: Any) -> None:
    if hasattr(ans, "detach"):  # a Tensor, on the memory of the user's result
        ans.detach()[...] = 0


@pytest.mark.parametrize(
    "write, mode, message",
    [
        (
            of_direction,
            "vjp",
            "the cotangent of ans was changed while the vjp ran.* A rule must not write into "
            "what it is given: write `g = g",
        ),
        (of_argument, "vjp", "the argument x was changed while the vjp ran|an argument was"),
        (of_output, "vjp", "the output ans was changed while the vjp ran"),
        (
            of_recorded_output,
            "vjp",
            "the output ans was changed while the vjp, in a pass that is recorded, ran",
        ),
        (of_direction, "jvp", "a tangent was changed while the jvp ran"),
        (of_argument, "jvp", "an argument was changed while the jvp ran"),
        (of_output, "jvp", "an output was changed while the jvp ran"),
    ],
)
def test_a_rule_that_writes_into_what_it_is_given(
    declared: Any, write: Any, mode: str, message: str
) -> None:
    rule = rule_that(write)
    rules = {"x": rule} if mode == "vjp" else {"jvp": lambda xp, t, x, ans: rule(xp, t, x, ans)}
    wrong = declared("define", "suite.writes(x, /)", **CUBE | rules)
    with pytest.raises(AssertionError, match=message):
        getattr(checks, mode)(case(wrong))


def test_a_rule_that_needs_all_of_its_outputs_to_be_used(declared: Any) -> None:
    rules: dict[str, Any] = {
        "outputs": ("double", "triple"),
        "forward": lambda xp, x: (2 * x, 3 * x),
        "jvp": lambda xp, t: (2 * t, 3 * t),
        "x": lambda xp, g_double, g_triple: 2 * g_double + 3 * g_triple,
    }
    right = declared("define", "suite.zeros(x, /)", **rules)
    assert (
        dict(cells._checks(discovery.get("numpy"), right, SAMPLE))["each_output"]
        is checks.each_output
    )
    checks.vjp(case(right))
    checks.each_output(case(right))
    wrong = declared("define", "suite.none(x, /)", materialize=False, **rules)
    checks.vjp(case(wrong))
    with pytest.raises(TypeError, match="NoneType"):
        checks.each_output(case(wrong))
    rules["x"] = lambda xp, g_double, g_triple: (
        3 * g_triple
        if g_double is None
        else 2 * g_double + (g_double if g_triple is None else 3 * g_triple)
    )
    wrong = declared("define", "suite.mixed(x, /)", materialize=False, **rules)
    checks.vjp(case(wrong))
    with pytest.raises(AssertionError, match="gradient of output 0 alone"):
        checks.each_output(case(wrong))


def softmax(x: Any, /, *, axis: int | None = None) -> Any:
    """SciPy's, whose default is another than the one that is declared below."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def test_a_default_of_the_declaration(declared: Any) -> None:
    def rule(xp: Any, t: Any, ans: Any, axis: Any) -> Any:
        return ans * (t - xp.sum(t * ans, axis=axis, keepdims=True))

    right = declared(
        "define",
        "suite.softmax(x, /, *, axis=-1)",
        forward={"numpy": softmax},
        x=lambda xp, g, ans, axis: rule(xp, g, ans, axis),
        jvp=rule,
        batching="axis",
    )
    for check in (checks.forward, checks.vjp, checks.jvp, checks.dual, checks.second, *BATCHES):
        check(case(right))


def test_a_dtype_that_is_not_the_standards() -> None:
    target, op = Target("numpy"), registry.OPS["sin"]
    with pytest.raises(AssertionError, match="dtype float32, expected float64"):
        from multigrad_conformance.compare import assert_same

        assert_same(target, np.zeros(2, np.float32), np.zeros(2), np.zeros(2), op.name, raw=True)


def test_a_gradient_that_is_stated_otherwise() -> None:
    with pytest.raises(AssertionError, match="gradient x"):
        checks.kink(case(registry.OPS["abs"], Kink("at 0", [0.0], gradients={"x": [1]})))


def test_a_gradient_that_should_be_refused() -> None:
    refused_sample = Refused(
        "complete", np.asarray([[2.0], [1.0]]), mode="complete", message="mode='complete'"
    )
    checks.refused(case(registry.OPS["linalg.qr"], refused_sample))
    with pytest.raises(AssertionError, match=r"gradient x should be refused: the phases"):
        checks.refused(
            case(registry.OPS["sin"], Refused("phases", np.ones(2), message="the phases"))
        )
    refused_sample.message = "phases"
    with pytest.raises(
        AssertionError,
        match=r"the gradient is refused, but not because 'phases': The QR decomposition is not",
    ):
        checks.refused(case(registry.OPS["linalg.qr"], refused_sample))


def test_a_gradient_that_cannot_be_refused_is_nan(declared: Any) -> None:
    """As where values are not known."""
    lost = declared(
        "elementwise", "suite.lost(x, /)", forward=cube, x=lambda xp, x: float("nan") * x
    )
    checks.refused(case(lost, Refused("never", np.ones(2), message="never")))


def test_a_forward_that_is_wrong_everywhere(declared: Any) -> None:
    """Compared with itself it is right; a reference knows better."""
    wrong = declared(
        "elementwise", "suite.wrong_everywhere(x, /)", forward=cube, x=lambda xp, x: 3 * x * x
    )
    checks.forward(case(wrong))
    checks.forward(case(wrong, Sample("real", SAMPLE.args[0], reference=lambda x: x**3)))
    with pytest.raises(AssertionError, match="output 0"):
        checks.forward(case(wrong, Sample("real", SAMPLE.args[0], reference=lambda x: x**2)))


@pytest.mark.parametrize("forward", [lambda xp, x: x, lambda xp, x: xp.permute_dims(x, (1, 0))])
def test_a_result_in_the_memory_of_an_argument(declared: Any, forward: Any) -> None:
    """Where the declaration does not say so, a write to the result changes what a node saved."""

    def rule(xp: Any, g: Any) -> Any:
        return forward(xp, g)

    hidden = declared("linear", "suite.hidden(x, /)", forward=forward, x=rule)
    with pytest.raises(
        AssertionError,
        match="the result shares memory with an argument, and the declaration does not say so: "
        r"declare view=True \('same' for the argument itself\), or copy in forward",
    ):
        checks.forward(case(hidden))
    told = declared("linear", "suite.told(x, /)", forward=forward, x=rule, view=True)
    checks.forward(case(told))


def test_an_operation_without_samples(declared: Any) -> None:
    declared("elementwise", "suite.untested(x, /)", forward=cube, x=1)
    with pytest.raises(
        AssertionError,
        match=r"'suite.untested' of .*test_conformance_suite.* has no samples: return them from "
        r"the hook",
    ):
        suite.test_samples("suite.untested")
    # other tests of this process may have declared operations as well
    assert [line for line in plugin._unsampled() if "suite." in line] == [
        "suite.untested: not tested: it has no samples; return them from the hook "
        "multigrad_samples, {operation: generator or 'module:name'}"
    ]
    op = OPS["suite.untested"]
    for kind, where in (
        ("elementwise", "say in multigrad_conformance/elementwise.py how its arguments are drawn"),
        ("linear", "add a generator to a module of multigrad_conformance/samples/"),
    ):
        assert cells.to_add(replace(op, kind=kind, builtin=True)) == where


def test_a_plan_that_keeps_too_much(declared: Any) -> None:
    wrong = declared(
        "linear", "suite.keeps(x, /)", forward=lambda xp, x: 2 * x, x=lambda xp, g, x: 2 * g
    )
    assert wrong.kept("x") == ("x",) and saves.allowed(wrong, "x") == set()
    with pytest.raises(AssertionError, match="keeps {'x'}"):
        suite.test_saves(("suite.keeps", "x"))


def cell(run: Callable[[Target], None]) -> cells.Cell:
    return cells.Cell("numpy", "sin", "vjp", "real", run, True)


def fails(target: Target) -> None:
    raise AssertionError("wrong")


@pytest.fixture
def exemptions(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    return lambda table: monkeypatch.setattr(
        suite, "extend", SimpleNamespace(backend=lambda name: SimpleNamespace(exemptions=table))
    )


def test_an_exempted_test_must_fail_unless_it_flickers(exemptions: Any) -> None:
    for test_id in ("sin/vjp/real", "sin/*"):
        exemptions({"cos/*": "another", test_id: "known"})
        with pytest.raises(pytest.xfail.Exception, match="known"):
            suite.test_operation(cell(fails))
        with pytest.raises(
            pytest.fail.Exception, match="passes, yet the backend 'numpy' exempts it"
        ):
            suite.test_operation(cell(lambda target: None))
    exemptions({"sin/vjp/real": "flickering: rounding of the library differs from run to run"})
    suite.test_operation(cell(lambda target: None))
    exemptions({"cos/*": "known"})
    with pytest.raises(AssertionError, match="wrong"):
        suite.test_operation(cell(fails))


def test_an_exemption_of_no_test(exemptions: Any) -> None:
    exemptions({"sin/vjp/nosuch": "known"})
    with pytest.raises(AssertionError, match="exempts 'sin/vjp/nosuch', but there is no such test"):
        suite.test_exemptions("numpy")


def test_ids_are_unique_and_stable() -> None:
    ids = [c.id for c in cells.everything("numpy")]
    assert len(set(ids)) == len(ids)
    assert {
        "tanh/vjp/real",
        "tanh/second/complex",
        "tanh/vjp/real@float32",
        "add/broadcasting/full,row",
        "pow/kink/exponent-0.5",
        "getitem/jvp/integer-arrays",
        "scatter_add/override/rows",
        "kernels.take_ownership/kernel/override",
    } <= set(ids)


def test_short_is_part_of_full() -> None:
    short, full = ({c.id for c in cells.selected("numpy", level)} for level in ("short", "full"))
    assert short < full and {i.partition("/")[0] for i in short} == {
        i.partition("/")[0] for i in full
    }


def test_samples_are_the_same_in_every_run() -> None:
    assert np.array_equal(Draw("sin").real(2, 3), Draw("sin").real(2, 3)) and not np.array_equal(
        Draw("sin").real(2), Draw("cos").real(2)
    )


# ----- samples that cannot be used -----


def raising(draw: Draw) -> Iterator[Sample]:
    yield SAMPLE
    raise RuntimeError("no data here")


def skipping(draw: Draw) -> Iterator[Sample]:
    pytest.importorskip("no_such_module_of_data")
    yield SAMPLE


BAD_SAMPLES: dict[str, tuple[Any, str, int]] = {
    "raises": (raising, "the generator .*raising.* raises RuntimeError: no data here", 1),
    "skips": (skipping, "the generator .* raises Skipped: could not import", 0),
    "attribute": ("math:nosuch", "the generator 'math:nosuch' raises AttributeError", 0),
    "nothing": (lambda draw: None, "the generator .* returns None, where samples were expected", 0),
    "arrays": (
        lambda draw: [SAMPLE, np.ones(2)],
        "the generator .* yields an object of type ndarray, where a Sample was expected",
        1,
    ),
    "twice": (lambda draw: [SAMPLE, SAMPLE], "two samples have the label 'real'", 1),
    "slash": (
        lambda draw: [SAMPLE, Sample("a/b", np.ones(2))],
        "the label 'a/b' has a '/' or an '@'",
        1,
    ),
    "unbound": (
        lambda draw: [SAMPLE, Sample("two", np.ones(2), np.ones(2))],
        r"the sample 'two' does not fit suite.unbound\(x, /\): too many positional arguments",
        1,
    ),
    "kink": (
        lambda draw: [SAMPLE, Kink("at 0", [0.0], gradients={"y": [1]})],
        r"the sample 'at 0' names 'y', which is no array argument of suite.kink\(x, /\)",
        1,
    ),
}


@pytest.mark.parametrize("kind", BAD_SAMPLES)
def test_bad_samples_are_a_failure_of_their_operation(
    declared: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It has a name, and the other samples and operations are tested."""
    generator, told, good = BAD_SAMPLES[kind]
    name = f"suite.{kind}"
    op = declared("elementwise", f"{name}(x, /)", forward=cube, x=lambda xp, x: 3 * x * x)
    monkeypatch.setattr(samples, "generators", lambda: {name: generator})
    samples._found.cache_clear()
    with pytest.raises(
        AssertionError,
        match=f"the samples of {name!r} of .*test_conformance_suite.* cannot all be used: {told}",
    ):
        suite.test_samples(name)
    assert len(samples.samples_of(name)) == good
    assert bool([*cells._of_operation(discovery.get("numpy"), op)]) == bool(good)
    with pytest.raises(ValueError, match=f"check_rule: the samples of {name!r} .*{told}"):
        check_rule(name, backends="numpy")
    samples._found.cache_clear()


def test_a_forward_that_raises_fails_its_own_tests(declared: Any) -> None:
    def forward(xp: Any, x: Any) -> Any:
        raise RuntimeError("no such function")

    op = declared(
        "define",
        "suite.two_outputs(x, /)",
        forward=forward,
        outputs=("low", "high"),
        x=lambda xp, g_low, g_high: g_low + g_high,
        jvp=lambda xp, t: (t, t),
    )
    found = [*cells._of_operation(discovery.get("numpy"), op, (SAMPLE,))]
    assert {"forward", "vjp"} <= {cell.check for cell in found}
    for cell in found:
        if cell.check in ("forward", "vjp"):
            with pytest.raises(RuntimeError, match="no such function"):
                cell.run(Target("numpy"))


@pytest.mark.parametrize(
    "given, error, told",
    [
        (3, TypeError, "samples must be a list of samples or a function of a Draw, not int"),
        (
            [(1.0,), 3],
            ValueError,
            "samples yields an object of type int, where a Sample or a tuple",
        ),
        (
            [(np.ones(2), np.ones(2))],
            ValueError,
            r"the sample 'sample-0' does not fit sin\(x, /\): too many positional arguments",
        ),
    ],
)
def test_samples_that_check_rule_cannot_use(given: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=f"check_rule: .*{told}"):
        check_rule("sin", given, backends="numpy")


@pytest.mark.parametrize("way", ["asarray", "the kernel from_numpy"])
def test_a_conversion_that_narrows(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Where the values of the samples are exact in float32, too."""
    target = Target("numpy")
    sample = samples.samples_of("to_backend")[0]
    checks.conversion(checks.Case(target, OPS["to_backend"], sample))
    narrow = lambda x: x.astype("float32") if x.dtype == "float64" else x
    if way == "asarray":
        real = mg.asarray

        def asarray(x: Any, *, backend: str | None = None, **kwargs: Any) -> Any:
            return real(narrow(x) if backend else x, backend=backend, **kwargs)

        monkeypatch.setattr(checks, "mg", SimpleNamespace(**{**vars(mg), "asarray": asarray}))
    else:
        known = target.backend.kernels
        own = {**known, "from_numpy": lambda xp, x: narrow(x)}
        target.backend = replace(target.backend, kernels=own)
    with pytest.raises(AssertionError, match=f"{way} makes float32 of a NumPy array of float64"):
        checks.conversion(checks.Case(target, OPS["to_backend"], sample))


def test_a_composite_whose_operators_meet_raw_arrays(declared: Any) -> None:
    """The short level has a check of it; the full level would notice it in vmap_each."""
    op = declared("composite", "suite.plus(x, y, /)", lambda xp, x, y: x + y)
    sample = Sample("real", np.ones((2, 3)), np.ones((2, 3)))
    (cell_,) = (
        c
        for c in cells._of_operation(discovery.get("numpy"), op, (sample,))
        if c.check == "raw" and not c.single
    )
    assert cell_.id == "suite.plus/raw/others" and cell_.short
    target = Target("numpy")
    cell_.run(target)

    def refusing(x: Any, y: Any) -> Any:
        if not isinstance(x, mg.Tensor):
            raise TypeError("the array on the left does not defer")
        return x + y

    target.function = lambda op: refusing  # type: ignore[method-assign]
    with pytest.raises(TypeError, match="does not defer"):
        cell_.run(target)


def energy(xp: Any, x: Any, w: Any) -> Any:
    return xp.sum(w * x * x)


def test_a_defined_operation_is_tried_without_elements_and_without_axes(declared: Any) -> None:
    """Where its forward takes such arrays; a plugin's author may have no sample of them."""
    rules: dict[str, Any] = {
        "forward": energy,
        "x": lambda xp, g, x, w: 2 * g * w * x,
        "jvp": lambda xp, t_x, t_w, x, w: xp.sum(2 * w * x * t_x + x * x * t_w),
    }
    sample = Sample("real", np.full(4, 3.0), np.full(4, 2.0))

    def found(op: Any) -> dict[str, cells.Cell]:
        of_op = cells._of_operation(discovery.get("numpy"), op, (sample,))
        return {c.id: c for c in of_op if c.check in ("empty", "layout") and not c.single}

    right = declared("define", "suite.energy(x, w, /)", **rules, w=lambda xp, g, x: g * x * x)
    tried = found(right)
    assert {"suite.energy/empty/0-d", "suite.energy/empty/no-rows"} <= tried.keys()
    assert {f"suite.energy/layout/{name}" for name in ("transposed", "sliced")} <= tried.keys()
    assert tried["suite.energy/empty/0-d"].short
    for cell_ in tried.values():
        cell_.run(Target("numpy"))
    wrong = declared(
        "define",
        "suite.rows(x, w, /)",
        **rules,
        w=lambda xp, g, x: g * x * x if x.shape else g * x,
    )
    with pytest.raises(AssertionError, match="gradient w"):
        found(wrong)["suite.rows/empty/0-d"].run(Target("numpy"))
    refusing = declared(
        "define",
        "suite.first(x, w, /)",
        forward=lambda xp, x, w: xp.sum(x[0, ...]) * w[0],
        x=lambda xp, g, x, w: g,
    )
    assert not [i for i in found(refusing) if "/empty/" in i], "it has neither"
