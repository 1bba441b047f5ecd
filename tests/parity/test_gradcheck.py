"""autograd.gradcheck and gradgradcheck: what passes, what fails and how it is said, on each backend
and in PyTorch.
"""

from __future__ import annotations

import importlib
import re
import warnings

import numpy as np
import pytest
from function_programs import leaf, make

import multigrad as mg
from multigrad.autograd import gradcheck, gradgradcheck
from multigrad.autograd.gradcheck import GradcheckError

BOTH_MODES = pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])


@pytest.fixture
def x(side):
    return side.tensor([1.0, 2.0, 3.0], requires_grad=True)


@pytest.fixture
def z(side):
    return side.tensor([1 + 2j, 2 - 1j], dtype="complex128", requires_grad=True)


def half(a):
    """a**2 with half of its gradient."""
    return a * a.detach()


def raised(side):
    """The GradcheckError of a side."""
    name = "torch.autograd.gradcheck" if side.name == "torch" else "multigrad.autograd.gradcheck"
    error = importlib.import_module(name).GradcheckError
    assert issubclass(error, RuntimeError)
    return error


@BOTH_MODES
class TestPasses:
    def test_real(self, side, x, fast):
        before = side.values(x).tolist()
        assert side.autograd.gradcheck(lambda a: side.xp.sin(a) * a, x, fast_mode=fast) is True
        assert x.grad is None and side.values(x).tolist() == before

    def test_several_inputs_and_outputs(self, side, x, fast):
        y = side.tensor([[1.0], [2.0]], requires_grad=True)
        assert side.autograd.gradcheck(
            lambda a, b: (a * b, side.xp.sum(b) * 2), (x, y), fast_mode=fast
        )
        assert side.autograd.gradcheck(lambda a, b: [a * 2, b * 3], [x, y], fast_mode=fast)

    def test_complex(self, side, x, z, fast):
        check = side.autograd.gradcheck
        assert check(lambda a: a * a * (1 + 2j), z, fast_mode=fast)
        assert check(lambda a: side.xp.abs(a), z, fast_mode=fast)
        assert check(lambda a: a * (1 + 2j), x, fast_mode=fast)
        assert check(lambda a, b: (a * side.xp.sum(side.xp.conj(b)), a * 2), (x, z), fast_mode=fast)

    def test_what_needs_no_gradient_is_passed_on(self, side, x, fast):
        check = side.autograd.gradcheck
        assert check(
            lambda a, b, c, d: a * b * len(c) * d,
            (x, 3.0, "two", side.tensor([1.0, 2.0, 3.0])),
            fast_mode=fast,
        )
        assert check(lambda a: (a * 2, side.xp.argmax(a)), x, fast_mode=fast)
        assert check(
            lambda a, b: a * 2, (x, side.tensor([1.0], requires_grad=True)), fast_mode=fast
        )
        assert check(lambda a: side.tensor([1.0, 1.0]), x, fast_mode=fast)

    def test_captured_and_computed_inputs(self, side, x, fast):
        assert side.autograd.gradcheck(lambda a: x * x, x, fast_mode=fast)
        assert side.autograd.gradcheck(lambda a: a * a, x * 2, fast_mode=fast)

    def test_no_dimension_and_no_element(self, side, x, fast):
        check = side.autograd.gradcheck
        assert check(lambda a: a * a, side.tensor(2.0, requires_grad=True), fast_mode=fast)
        assert check(lambda a: a * 2, side.tensor([], requires_grad=True), fast_mode=fast)
        assert check(lambda a: a[:0] * 2, x, fast_mode=fast)

    def test_tolerances(self, side, fast):
        single = side.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
        with pytest.warns(
            UserWarning,
            match="Input #0 requires gradient and is not a double precision floating point or "
            "complex.",
        ):
            assert side.autograd.gradcheck(
                lambda a: a * a, single, eps=1e-2, atol=1e-2, fast_mode=fast
            )
        assert side.autograd.gradcheck(
            half, side.tensor([1.0, 2.0], requires_grad=True), atol=5.0, fast_mode=fast
        )
        assert side.autograd.gradcheck(
            half, side.tensor([1.0, 2.0], requires_grad=True), rtol=0.6, fast_mode=fast
        )

    def test_second_derivatives(self, side, x, z, fast):
        check = side.autograd.gradgradcheck
        assert check(lambda a: side.xp.sin(a) * a, x, fast_mode=fast)
        assert check(lambda a: a * 2, x, fast_mode=fast)
        assert check(lambda a: a * a * (1 + 2j), z, fast_mode=fast)
        assert check(lambda a: (side.xp.abs(a), a * a), z, fast_mode=fast)
        assert check(lambda a: a * a, x, side.tensor([1.0, 2.0, 3.0]), fast_mode=fast)
        assert check(
            lambda a: a * a,
            x,
            (side.tensor([1.0, 2.0, 3.0], requires_grad=True),),
            gen_non_contig_grad_outputs=True,
            fast_mode=fast,
        )
        assert check(lambda a, b: a * b, (x, 3.0), gen_non_contig_grad_outputs=True, fast_mode=fast)


@BOTH_MODES
class TestFails:
    def fails(self, side, fast, func, inputs, match, second=False, **options):
        check = side.autograd.gradgradcheck if second else side.autograd.gradcheck
        with pytest.raises(raised(side), match=match) as caught:
            check(func, inputs, fast_mode=fast, **options)
        assert check(func, inputs, fast_mode=fast, raise_exception=False, **options) is False
        return str(caught.value)

    def test_mismatch(self, side, x, fast):
        text = self.fails(
            side,
            fast,
            half,
            x,
            "^Jacobian mismatch for output 0 with respect to input 0,\n"
            "numerical:(?s:.*)\n"
            "analytical:",
        )
        if fast:
            assert "fast mode" in text and "Numerical:" in text and "Analytical:" in text
            assert re.search(r"The max per-element difference \(slow mode\) is: 3\.000", text)
        numbers = [
            float(n)
            for n in re.findall(r"\d+\.\d*", text.partition("Numerical:")[2] if fast else text)
        ]
        for expected in (2.0, 4.0, 6.0, 1.0, 3.0):
            assert any(abs(n - expected) < 1e-3 for n in numbers), text

    def test_which_output_and_input(self, side, x, fast):
        y = side.tensor([1.0, 2.0], requires_grad=True)
        constant = side.tensor([1.0])
        self.fails(
            side,
            fast,
            lambda c, a, b: (a * 2, half(b)),
            (constant, x, y),
            "^Jacobian mismatch for output 1 with respect to input 1,",
        )

    def test_complex(self, side, x, z, fast):
        self.fails(
            side,
            fast,
            half,
            z,
            "^While considering the imaginary part of complex outputs only, Jacobian mismatch "
            "for output 0",
        )
        real_part = lambda a: half(a) + 1j * side.xp.real(a)
        self.fails(
            side,
            fast,
            real_part,
            x,
            "^While considering the real part of complex outputs only, Jacobian mismatch for "
            "output 0",
        )
        self.fails(
            side, fast, lambda a: half(side.xp.real(a)), z, "^Jacobian mismatch for output 0"
        )

    def test_detached(self, side, x, fast):
        self.fails(
            side,
            fast,
            lambda a: a.detach() * 2,
            x,
            "^Numerical gradient for function expected to be zero$",
        )

    def test_recording_off(self, side, x, fast):
        with side.no_grad():
            self.fails(
                side,
                fast,
                lambda a: a * 2,
                x,
                "^Numerical gradient for function expected to be zero$",
            )

    def test_low_precision(self, side, fast):
        single = side.tensor([1.0, 2.0, 3.0], dtype="float32", requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fails(
                side,
                fast,
                lambda a: a * a * a,
                single,
                "^Jacobian mismatch for output 0 with respect to input 0",
            )

    def test_nondeterministic(self, side, x, fast):
        runs = []

        def disturb(g):
            runs.append(None)
            return g * (1 + 1e-9 * len(runs))

        def func(a):
            out = a * 2
            out.register_hook(disturb)
            return out

        self.fails(
            side,
            fast,
            func,
            x,
            "^Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches "
            "numerical gradient.The tolerance for nondeterminism was 0.0.",
        )
        assert side.autograd.gradcheck(
            func, x, nondet_tol=1e-3, check_undefined_grad=False, fast_mode=fast
        )

    def test_not_proportional_to_the_gradient(self, side, x, fast):
        def func(a):
            out = side.xp.sum(a)
            out.register_hook(lambda g: g * 0 + 1)
            return out

        self.fails(side, fast, func, x, "^backward not multiplied by grad_output$")

    def test_nan(self, side, fast):
        def func(a):
            out = a * 2
            out.register_hook(lambda g: g * float("nan"))
            return out

        self.fails(side, fast, func, side.tensor([1.0], requires_grad=True), "^Jacobian mismatch")

    def test_second_derivative(self, side, x, fast):
        self.fails(
            side,
            fast,
            lambda a: half(a) * a,
            x,
            "^Jacobian mismatch for output 0 with respect to input 0,",
            second=True,
        )


@BOTH_MODES
class TestUndefinedGradients:
    """A Function that is told not to materialize gradients receives None for an output without
    one.
    """

    def function(self, side, outputs, rule):
        class Times(side.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.set_materialize_grads(False)
                return tuple(a * (i + 2) for i in range(outputs)) if outputs > 1 else a * 2

            backward = staticmethod(lambda ctx, *grads: rule(*grads))

        return Times.apply

    def test_handled(self, side, x, fast):
        check = side.autograd.gradcheck
        assert check(
            self.function(side, 1, lambda g: None if g is None else g * 2), x, fast_mode=fast
        )
        both = lambda g, h: sum(
            (a * n for a, n in ((g, 2), (h, 3)) if a is not None),
            start=side.tensor([0.0, 0.0, 0.0]),
        )
        assert check(self.function(side, 2, both), x, fast_mode=fast)

    def test_the_functions_own_exception(self, side, x, fast):
        check = side.autograd.gradcheck
        with pytest.raises(TypeError, match="NoneType"):
            check(self.function(side, 1, lambda g: g * 2), x, fast_mode=fast)
        with pytest.raises(TypeError, match="NoneType"):
            check(
                self.function(
                    side, 2, lambda g, h: None if g is None and h is None else g * 2 + h * 3
                ),
                x,
                fast_mode=fast,
            )
        assert check(
            self.function(side, 1, lambda g: g * 2), x, check_undefined_grad=False, fast_mode=fast
        )

    @pytest.mark.filterwarnings("ignore:Backwards compatibility")
    def test_runtime_errors_and_wrong_values(self, side, x, fast):
        def refuse(g):
            if g is None:
                raise RuntimeError("a gradient is needed")
            return g * 2

        with pytest.raises(
            raised(side), match="Expected backward function to handle undefined output grads"
        ):
            side.autograd.gradcheck(self.function(side, 1, refuse), x, fast_mode=fast)
        ones = lambda g: side.tensor([1.0, 1.0, 1.0]) if g is None else g * 2
        with pytest.raises(
            raised(side),
            match="Expected all input grads to be undefined or zero when all output grads are "
            "undefined or zero.",
        ):
            side.autograd.gradcheck(self.function(side, 1, ones), x, fast_mode=fast)


class TestErrors:
    def test_nothing_to_check(self, side, x):
        message = (
            "gradcheck expects at least one input tensor to require gradient, but none "
            "of them have requires_grad=True."
        )
        for call in (
            lambda: side.autograd.gradcheck(lambda a: a, x.detach()),
            lambda: side.autograd.gradcheck(lambda a: a, 3.0),
            lambda: side.autograd.gradgradcheck(lambda a: a * a, x.detach()),
        ):
            with pytest.raises(ValueError, match=message):
                call()

    @BOTH_MODES
    def test_outputs_change_their_shape(self, side, x, fast):
        func = lambda a: a[: int((side.values(a) >= 2).sum())] * 2
        message = (
            "Expected `func` to return outputs with the same shape when inputs are "
            "perturbed .*by 1e-06, but got: shapes"
        )
        with pytest.raises(AssertionError, match=message):
            side.autograd.gradcheck(func, x, fast_mode=fast)

    def test_contradictory_arguments(self, side, x):
        batched_forward = (
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
        for options, message in (
            (
                {"check_backward_ad": False},
                "Expected at least one of check_forward_ad or check_backward_ad to be True",
            ),
            (
                {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
                "Setting check_batched_grad=True requires check_backward_ad to be True",
            ),
            ({"check_batched_forward_grad": True}, batched_forward),
        ):
            with pytest.raises(AssertionError, match=message):
                side.autograd.gradcheck(lambda a: a, x, **options)
        forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
        for options, message in (
            (
                {"check_rev_over_rev": False},
                "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
            ),
            (forward, "Setting check_undefined_grad=True requires check_rev_over_rev to be True"),
            (
                {**forward, "check_undefined_grad": False, "check_batched_grad": True},
                "Setting check_batched_grad=True requires check_rev_over_rev to be True",
            ),
        ):
            with pytest.raises(AssertionError, match=message):
                side.autograd.gradgradcheck(lambda a: a, x, **options)

    def test_the_functions_own_exception(self, side, x):
        calls = []

        def func(a):
            calls.append(a)
            if len(calls) > 2:
                raise KeyError("mine")
            return a * 2

        with pytest.raises(KeyError, match="mine"):
            side.autograd.gradcheck(func, x, raise_exception=False)
        if side.name != "torch":  # which leaves the perturbed values behind
            assert side.values(x).tolist() == [1.0, 2.0, 3.0]

    def test_memory_that_overlaps(self, torch):
        message = (
            "The 1th input has a dimension with stride 0. gradcheck only supports inputs "
            "that are non-overlapping"
        )
        first = np.ones(2)
        repeated = mg.asarray(np.broadcast_to(np.ones(1), (3,)), requires_grad=True)
        with pytest.raises(RuntimeError, match=message):
            gradcheck(lambda a, b: b * 2, (mg.asarray(first), repeated))
        single = np.broadcast_to(np.ones((1, 2)), (1, 2))  # an axis of length 1 repeats nothing
        assert gradcheck(lambda a: a * 2, mg.asarray(single, requires_grad=True))
        with pytest.raises(RuntimeError, match=message):
            repeated = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
            torch.autograd.gradcheck(lambda a, b: b * 2, (torch.tensor(first), repeated))


@BOTH_MODES
def test_the_step_and_the_tolerances_are_arguments(side, fast):  # F180, F181
    x = leaf(side, 1.0, 2.0)
    seen = []

    def func(a):
        seen.append(side.values(a).tolist())
        return a * a

    # central differences of a square are exact
    assert side.autograd.gradcheck(func, (x,), eps=0.25, atol=1e-8, rtol=1e-8, fast_mode=fast)
    steps = {round(abs(a - b), 6) for row in seen for a, b in zip(row, (1.0, 2.0), strict=True)}
    assert steps == {0.0, 0.25} or (fast and max(steps) <= 0.25)


@BOTH_MODES
def test_gradients_of_every_dtype(side, fast):  # F190
    for dtype in ("float64", "complex128"):
        x = side.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        assert side.autograd.gradcheck(
            lambda a: a * a * side.tensor([1.0, 3.0]), x, check_grad_dtypes=True, fast_mode=fast
        )
        assert side.autograd.gradgradcheck(
            lambda a: a * a * a, x, check_grad_dtypes=True, fast_mode=fast
        )


def test_sparse_arrays_are_not_there(side):
    # F187: its argument is called `masked` since, and changes nothing for dense arrays
    x = leaf(side, 1.0, 2.0)
    for masked in (True, False, None):
        assert side.autograd.gradcheck(lambda a: a * a, x, masked=masked)
    assert side.autograd.gradgradcheck(lambda a: a * a, x, masked=True)
    with pytest.raises(TypeError, match="check_sparse_nnz"):
        side.autograd.gradcheck(lambda a: a * a, x, check_sparse_nnz=True)


@pytest.mark.parametrize("side", ["numpy", "torch"], indirect=True)
@pytest.mark.parametrize("scattered", [False, True])
def test_grad_outputs_that_are_not_contiguous(side, scattered):
    # F194: where the library has strides
    seen = []

    def backward(ctx, g):
        seen.append(
            g.stride() if side.name == "torch" else tuple(s // 8 for s in g.detach().array.strides)
        )
        return g * 3

    func = make(side, lambda ctx, x: x * 3, backward).apply
    assert side.autograd.gradgradcheck(
        func, leaf(side, 1.0, 2.0, 3.0), gen_non_contig_grad_outputs=scattered
    )
    assert ((2,) in seen) is scattered


def test_grad_outputs_are_drawn_and_checked_too(side):  # F192, F193
    x, seen = leaf(side, 1.0, 2.0), []

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        if g.requires_grad:
            seen.append(side.values(g).tolist())
        return 2 * a * g

    func = make(side, lambda ctx, a: (ctx.save_for_backward(a), a * a)[1], backward).apply
    assert side.autograd.gradgradcheck(func, x)
    assert (
        seen
        and all(-1 <= value <= 1 and value != 0 for value in seen[0])
        and seen[0][0] != seen[0][1]
    )
    seen.clear()
    assert side.autograd.gradgradcheck(func, (x,), (leaf(side, 3.0, 4.0),))
    assert seen[0] == [3.0, 4.0]
    # wrong by the gradient alone: what is returned does not depend on it as it should
    wrong = make(side, lambda ctx, a: a * 2, lambda ctx, g: g * 2 + (g - g.detach()) * 5).apply
    assert side.autograd.gradcheck(wrong, x)
    with pytest.raises(
        RuntimeError, match="Jacobian mismatch for output 0 with respect to input 1"
    ):
        side.autograd.gradgradcheck(wrong, x)


@BOTH_MODES
def test_arguments_of_gradgradcheck(side, fast):  # F192
    check, x, calls = side.autograd.gradgradcheck, leaf(side, 1.0, 2.0), []

    def disturbed(a):
        b = a * a
        b.register_hook(lambda g: calls.append(1) or g * (1 + 1e-12 * len(calls)))
        return b * a

    half = lambda a: a * a * a.detach()  # the second derivative is too small by a third of it
    assert check(half, x, atol=20.0, fast_mode=fast) and check(half, x, rtol=2.0, fast_mode=fast)
    assert check(half, x, raise_exception=False, fast_mode=fast) is False
    assert check(lambda a: a * a * a, x, eps=1e-4, atol=1e-6, fast_mode=fast)
    assert check(
        disturbed, x, nondet_tol=1e-6, check_undefined_grad=False, atol=1e-3, fast_mode=fast
    )
    assert (
        check(
            disturbed,
            x,
            nondet_tol=0.0,
            check_undefined_grad=False,
            atol=1e-3,
            raise_exception=False,
            fast_mode=fast,
        )
        is False
    )


BATCHED = {"check_batched_grad": True}
BATCHED_FORWARD = {"check_batched_forward_grad": True, "check_forward_ad": True}


class TestBatched:
    def function(self, side, backward, jvp=None):
        members = {
            "forward": staticmethod(lambda a: a * a),
            "setup_context": staticmethod(self.keep),
            "backward": staticmethod(backward),
        }
        if jvp is not None:
            members["jvp"] = staticmethod(jvp)
        return type("Square", (side.autograd.Function,), members).apply

    @staticmethod
    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @BOTH_MODES
    def test_passes(self, side, x, z, fast):
        check = side.autograd.gradcheck
        y = side.tensor([[1.0], [2.0]], requires_grad=True)
        for options in (BATCHED, {**BATCHED, **BATCHED_FORWARD}):
            assert check(lambda a: side.xp.sin(a) * a, x, fast_mode=fast, **options) is True
            assert check(
                lambda a, b, n: (a * b, side.xp.sum(b) * n, side.xp.argmax(a)),
                (x, y, 2),
                fast_mode=fast,
                **options,
            )
            assert check(lambda a: a * a * (1 + 2j), z, fast_mode=fast, **options)
            assert check(
                lambda a, b: a * 2,
                (x, side.tensor([1.0], requires_grad=True)),
                fast_mode=fast,
                **options,
            )
        assert x.grad is None

    def test_second_derivatives(self, side, x):
        check = side.autograd.gradgradcheck
        assert check(lambda a: side.xp.sin(a) * a, x, check_batched_grad=True)
        assert check(
            lambda a: (a * a, side.xp.sum(a**3)),
            x,
            check_batched_grad=True,
            check_fwd_over_rev=True,
            fast_mode=True,
        )

    @BOTH_MODES
    def test_a_backward_that_asks_for_a_value(self, side, x, fast):
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * 2 * a if float(side.xp.sum(g)) != 0.12345 else g

        f = self.function(side, backward)
        assert side.autograd.gradcheck(f, x, fast_mode=fast)
        with pytest.raises(
            raised(side),
            match="^While computing batched gradients, got: (?s:.*)gradcheck or gradgradcheck "
            "failed while testing batched gradient "
            "computation.(?s:.*)`check_batched_grad=False`",
        ):
            side.autograd.gradcheck(f, x, fast_mode=fast, **BATCHED)
        assert (
            side.autograd.gradcheck(f, x, fast_mode=fast, raise_exception=False, **BATCHED) is False
        )

    def test_other_gradients_in_a_batch(self, side, x):
        runs = []

        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            runs.append(None)
            return g * 2 * a * (1 + 1e-3 * len(runs))

        with pytest.raises(
            raised(side),
            match="^For output 0 and input 0:\n"
            "\n"
            "gradcheck or gradgradcheck failed while testing batched gradient "
            "computation.(?s:.*)\n"
            "\n"
            "Got:\n"
            "(?s:.*)\n"
            "\n"
            "Expected:\n",
        ):
            side.autograd.gradcheck(
                self.function(side, backward), x, atol=1.0, nondet_tol=1.0, **BATCHED
            )

    def test_a_jvp_that_asks_for_a_value(self, side, x):
        def jvp(ctx, t):
            (a,) = ctx.saved_tensors
            return t * 2 * a if float(side.xp.sum(t)) != 0.12345 else t

        f = self.function(side, lambda ctx, g: g * 2 * ctx.saved_tensors[0], jvp)
        assert side.autograd.gradcheck(f, x, check_forward_ad=True)
        with pytest.raises(
            raised(side),
            match="^While computing batched gradients, got: (?s:.*)gradcheck failed while "
            "testing batched gradient computation with forward-mode "
            "AD(?s:.*)`check_batched_forward_grad=False`",
        ):
            side.autograd.gradcheck(f, x, **BATCHED_FORWARD)

    def test_other_tangents_in_a_batch(self, side, x):
        runs = []

        def jvp(ctx, t):
            runs.append(None)
            return t * 2 * ctx.saved_tensors[0] * (1 + 1e-3 * len(runs))

        f = self.function(side, lambda ctx, g: g * 2 * ctx.saved_tensors[0], jvp)
        with pytest.raises(
            raised(side),
            match="^For output 0 and input 0:\n"
            "+gradcheck failed while testing batched gradient computation with "
            "forward-mode AD",
        ):
            side.autograd.gradcheck(f, x, atol=1.0, **BATCHED_FORWARD)


class TestOnlyHere:
    def test_outputs_must_be_tensors(self, backend):
        x = mg.tensor([1.0], dtype="float64", backend=backend, requires_grad=True)
        with pytest.raises(
            TypeError,
            match="gradcheck: output 1 of the function is of type NoneType; it must return a "
            "Tensor or a tuple of Tensors",
        ):
            gradcheck(lambda a: (a * 2, None), x)

    def test_an_integer_output_may_come_first(self, backend):
        x = mg.tensor([1.0, 2.0], dtype="float64", backend=backend, requires_grad=True)
        assert gradcheck(lambda a: (mg.argmax(a), a * 2), x)
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
            gradcheck(lambda a: (mg.argmax(a), half(a)), x)

    @BOTH_MODES
    def test_outputs_of_another_library(self, fast):
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        assert gradcheck(lambda a: (a * a).to_backend("strict"), x, fast_mode=fast)

    def test_second_derivatives_of_what_has_no_first(self):
        assert gradgradcheck(lambda a: mg.argmax(a), mg.tensor([1.0, 2.0], requires_grad=True))

    def test_a_slow_check_that_would_pass_is_named(self):
        x, weights = mg.tensor([1.0, 1.0], requires_grad=True), mg.tensor([1000.0, -1000.0])
        # within rtol of each element, not of their difference
        func = lambda a: mg.sum(a * weights) + 0.4 * mg.sum(a - a.detach())
        assert gradcheck(func, x)
        with pytest.raises(
            GradcheckError, match="Fast gradcheck failed but element-wise differences are small."
        ):
            gradcheck(func, x, fast_mode=True)
