"""backward and grad: arguments, accumulation, freed graphs, errors. The meaning is PyTorch's."""

from __future__ import annotations

import gc
import warnings
import weakref

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf, vector

import multigrad as mg
from multigrad import autograd
from multigrad.backward import gradients


class TestBackward:
    def test_accumulates_in_place(self, xp):
        x = leaf(xp, [1.0, 2.0])
        xp.sum(x * 3).backward()
        g = x.grad
        xp.sum(x * x).backward()
        assert x.grad is g
        check(g, [5, 7])

    def test_create_graph_replaces_the_gradient(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            xp.sum(x**3).backward(create_graph=True)
            g = x.grad
            assert g.requires_grad
            check(g, [3, 12])
            xp.sum(x.grad).backward()
        assert x.grad is not None
        check(x.grad, [3 + 6, 12 + 12])

    def test_create_graph_warns_once(self):
        x = mg.asarray(np.ones(1), requires_grad=True)
        gradients._warned[0] = False
        with pytest.warns(
            UserWarning, match="reference cycle between the parameter and its gradient"
        ):
            (x * x).backward(create_graph=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (x * x).backward(create_graph=True)
        x.grad = None

    def test_gradient_argument(self, xp):
        x = leaf(xp, [1.0, 2.0])
        (x * 2).backward(xp.asarray(np.array([1.0, 10.0])))
        check(x.grad, [2, 20])
        (x * 2).backward(
            np.array([1.0, 10.0]) if "numpy" in xp.__name__ else values_like(xp, [1.0, 10.0])
        )
        check(x.grad, [4, 40])

    def test_gradient_of_other_real_dtype_is_cast(self, xp):
        x = leaf(xp, [1.0, 2.0])
        (x * 2).backward(xp.asarray(np.array([1, 3], dtype=np.int64)))
        check(x.grad, [2, 6])
        (x * 2).backward(xp.asarray(np.array([True, False])))
        check(x.grad, [4, 6])
        assert x.grad.dtype == x.dtype

    def test_several_tensors(self, xp):
        x = leaf(xp, [1.0, 2.0])
        autograd.backward([xp.sum(x * x), x * 3], [None, xp.asarray(np.array([1.0, 2.0]))])
        check(x.grad, [5, 10])
        autograd.backward([])

    def test_inputs(self, xp):
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [3.0, 4.0])
        y = x * w
        autograd.backward(xp.sum(y * y), inputs=[w, y])
        assert x.grad is None
        check(w.grad, [2 * 3 * 1, 2 * 4 * 4])
        check(y.grad, [6, 16])
        xp.sum(x * x).backward(inputs=x)
        check(x.grad, [2, 4])

    def test_unused_inputs_are_skipped(self, xp):
        x, w = leaf(xp, [1.0]), leaf(xp, [1.0])
        autograd.backward(xp.sum(x * 2), inputs=[x, w, x])
        check(x.grad, [2])
        assert w.grad is None

    def test_sum_is_in_reverse_creation_order(self):
        x = mg.asarray(np.asarray(1.0), requires_grad=True)
        (x * 1 + x * 1e16 + x * (-1e16)).backward()
        assert float(x.grad.array) == 1.0
        x.grad = None
        (x * 1e16 + x * 1 + x * (-1e16)).backward()
        assert float(x.grad.array) == 0.0

    def test_expanded_gradient_is_dense(self):
        x = mg.asarray(np.ones((2, 3)), requires_grad=True)
        x.sum().backward()
        assert 0 not in x.grad.array.strides
        assert x.grad.array.flags.writeable
        x.sum().backward()
        check(x.grad, np.full((2, 3), 2.0))

    def test_requires_grad_switched_off_later(self, xp):
        x = leaf(xp, [1.0])
        y = xp.sum(x * 2)
        x.requires_grad_(False)
        y.backward()
        assert x.grad is None

    def test_non_leaf_gradient_warns(self, xp):
        y = leaf(xp, [1.0]) * 2
        with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
            assert y.grad is None


def values_like(xp, data):
    return xp.asarray(np.asarray(data)).array


class TestErrors:
    def test_freed_graph(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = xp.sum(x * x)
        y.backward()
        with pytest.raises(
            RuntimeError,
            match=r"Trying to backward through the graph a second time .* Specify "
            r"retain_graph=True",
        ):
            y.backward()
        check(x.grad, [2, 4])

    def test_graph_that_saves_nothing_is_not_freed(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = xp.sum(x + x)
        y.backward()
        y.backward()
        check(x.grad, [4, 4])

    def test_scalar_only(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with pytest.raises(
            RuntimeError, match="grad can be implicitly created only for scalar outputs"
        ):
            (x * 2).backward()
        with pytest.raises(RuntimeError, match="only for scalar outputs"):
            leaf(xp, np.zeros((0,))).backward()
        leaf(xp, [[1.0]]).backward()

    def test_complex_scalar(self, xp):
        z = leaf(xp, 1 + 1j, dtype=np.complex128)
        with pytest.raises(
            RuntimeError, match=r"only for real scalar outputs but got .*complex128"
        ):
            (z * z).backward()

    def test_no_graph(self, xp):
        x = leaf(xp, [1.0])
        with pytest.raises(
            RuntimeError,
            match="element 0 of tensors does not require grad and does not have a grad_fn",
        ):
            xp.asarray(np.ones(1)).backward()
        with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
            autograd.backward([x * 2, xp.asarray(np.ones(1))])
        with pytest.raises(
            RuntimeError, match="One of the differentiated Tensors does not require grad"
        ):
            autograd.grad(x * 2, xp.asarray(np.ones(1)))

    @pytest.mark.parametrize("shape", [(1,), (), (3,), (2, 1)])
    def test_gradient_shape(self, xp, shape):
        y = leaf(xp, [1.0, 2.0]) * 2
        with pytest.raises(
            RuntimeError,
            match=r"Mismatch in shape: grad_output\[0\] has a shape of .* and output\[0\] has a "
            r"shape of \(2,\)",
        ):
            y.backward(xp.ones(shape, dtype=xp.float64))

    def test_gradient_dtype(self, xp):
        y = leaf(xp, [1.0, 2.0]) * 2
        with pytest.raises(
            RuntimeError,
            match=r"For complex Tensors, both grad_output and output are required to have the "
            r"same dtype",
        ):
            y.backward(xp.ones((2,), dtype=xp.complex128))

    def test_gradient_type_and_count(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
            autograd.backward([x * 2, x * 3], [xp.ones((2,), dtype=xp.float64)])
        with pytest.raises(
            TypeError, match="gradients can be either Tensors or None, but got float"
        ):
            autograd.backward([x * 2], [1.0])
        with pytest.raises(
            TypeError, match="element 0 of tensors is of type ndarray.*multigrad.func.grad"
        ):
            autograd.backward(np.ones(2))
        with pytest.raises(TypeError, match="inputs of grad"):
            autograd.grad(xp.sum(x), [np.ones(2)])

    def test_gradient_of_another_backend(self):
        strict = mg.namespace("strict")
        y = mg.asarray(np.ones(2), requires_grad=True) * 2
        with pytest.raises(
            RuntimeError, match="grad_output.0. is of 'strict' and output.0. of 'numpy'"
        ):
            y.backward(strict.ones((2,)))

    def test_empty_inputs(self, xp):
        x = leaf(xp, [1.0])
        with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
            autograd.grad(x * 2, [])
        with pytest.raises(
            RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"
        ):
            (x * 2).backward(inputs=[])

    def test_deprecated_names(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with pytest.warns(
            FutureWarning, match="`grad_variables` is deprecated. Use `grad_tensors` instead."
        ):
            autograd.backward(x * 2, grad_variables=[xp.ones((2,), dtype=xp.float64)])
        check(x.grad, [2, 2])
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
            autograd.backward(xp.sum(x), xp.ones((), dtype=xp.float64), grad_variables=[None])


class TestGrad:
    def test_tuple_and_no_side_effect(self, xp):
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [3.0, 4.0])
        found = autograd.grad(xp.sum(x * w), (x, w))
        assert isinstance(found, tuple)
        check(found[0], [3, 4])
        check(found[1], [1, 2])
        assert x.grad is None and w.grad is None

    def test_single_dict_generator_duplicates(self, xp):
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [3.0, 4.0])
        y = xp.sum(x * w)
        (g,) = autograd.grad(y, x, retain_graph=True)
        check(g, [3, 4])
        found = autograd.grad(y, {"w": w, "x": x}, retain_graph=True)
        assert list(found) == ["w", "x"]
        check(found["w"], [1, 2])
        a, b = autograd.grad(y, (t for t in (x, x)))
        check(a, [3, 4])
        check(b, [3, 4])

    def test_intermediate_results(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = x * 3
        z = xp.sum(y * y)
        gy, gx = autograd.grad(z, (y, x), retain_graph=True)
        check(gy, [6, 12])
        check(gx, [18, 36])
        (gy,) = autograd.grad(z, y)
        check(gy, [6, 12])
        (same,) = autograd.grad(y, y, xp.ones((2,), dtype=xp.float64))
        check(same, [1, 1])

    def test_stops_at_the_input(self, xp):
        x = leaf(xp, [1.0])
        seen = []
        x.register_hook(seen.append)
        y = x * 2
        autograd.grad(xp.sum(y * 3), y)
        assert seen == []

    def test_output_twice_and_output_that_feeds_another(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = x * x
        one, ten = (xp.asarray(np.array([v, v])) for v in (1.0, 10.0))
        (g,) = autograd.grad([y, y], x, [one, ten])
        check(g, [22, 44])
        y = x * x
        (g,) = autograd.grad([y, xp.sum(y * 3)], x, [one, None])
        check(g, [8, 16])

    def test_unused(self, xp):
        x, w = leaf(xp, [1.0]), leaf(xp, [1.0])
        with pytest.raises(
            RuntimeError,
            match="Tensor at index 1 appears to not have been used in the graph. Set "
            "allow_unused=True",
        ):
            autograd.grad(xp.sum(x * 2), (x, w))
        assert autograd.grad(xp.sum(x * 2), (x, w), allow_unused=True)[1] is None
        _, zero = autograd.grad(xp.sum(x * 2), (x, w), materialize_grads=True)
        check(zero, [0.0])
        assert not zero.requires_grad
        _, zero = autograd.grad(xp.sum(x * 2), (x, w), materialize_grads=True, create_graph=True)
        assert zero.requires_grad
        with pytest.raises(
            ValueError,
            match="Expected allow_unused to be True or not passed when materialize_grads=True",
        ):
            autograd.grad(xp.sum(x), x, materialize_grads=True, allow_unused=False)

    def test_fresh_view_is_unused(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with pytest.raises(RuntimeError, match="appears to not have been used"):
            autograd.grad(xp.sum(x), x[0])

    def test_linear_function_has_a_constant_gradient(self, xp):
        x = leaf(xp, [1.0, 2.0])
        (g,) = autograd.grad(xp.sum(3 * x), x, create_graph=True)
        assert not g.requires_grad
        with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
            autograd.grad(xp.sum(g), x)

    def test_higher_orders(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = xp.sum(x**5)
        for expected in ([5, 80], [20, 160], [60, 240], [120, 240], [120, 120]):
            (g,) = autograd.grad(y, x, create_graph=True)
            check(g, expected)
            y = xp.sum(g)

    def test_retained_gradient_of_an_intermediate(self, xp):
        x = leaf(xp, [1.0])
        y = x * 2
        y.retain_grad()
        autograd.grad(xp.sum(y * y), x)
        check(y.grad, [4.0])

    def test_only_inputs_false_accumulates_into_the_others(self, xp):
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [3.0, 4.0])
        with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
            (g,) = autograd.grad(xp.sum(x * w), x, only_inputs=False)
        check(g, [3, 4])
        check(w.grad, [1, 2])
        assert x.grad is None

    def test_create_graph_under_no_grad_builds_a_graph(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = xp.sum(x**3)
        with mg.no_grad():
            (g,) = autograd.grad(y, x, create_graph=True)
        assert g.requires_grad


class TestShapesAndDtypes:
    def test_complex_convention(self, xp):
        z = leaf(xp, [1 + 2j, -0.5j], dtype=np.complex128)
        (g,) = autograd.grad(xp.sum(xp.real(z * xp.conj(z))), z)
        check(g, 2 * values(z))
        (g,) = autograd.grad(z * z, z, xp.asarray(np.array([1 + 0j, 2 + 1j])))
        check(g, np.array([1, 2 + 1j]) * np.conj(2 * values(z)))


class TestMemory:
    def test_leaf_is_not_kept_alive(self):
        x = mg.asarray(np.ones(3), requires_grad=True)
        ref = weakref.ref(x)
        y = (x * 2).sum()
        del x
        assert ref() is None
        y.backward()

    def test_saved_values_are_dropped_as_the_pass_goes(self):
        x = mg.asarray(np.ones(3), requires_grad=True)
        y = x.exp()
        node = y.grad_fn
        y.sum().backward()
        assert node.saved is None

    @pytest.mark.sweep
    def test_a_million_nodes(self):
        gc.disable()
        try:
            x = mg.asarray(np.ones(1), requires_grad=True)
            y = x
            for _ in range(1_000_000):
                y = y + 1.0
            y.backward()
            check(x.grad, [1.0])
            del y
        finally:
            gc.enable()


def test_an_output_that_does_not_lead_to_the_inputs_is_left_alone() -> None:
    """Its hooks do not run, and what it saved is still there."""
    x, w = vector([1.0, 2.0]), vector([3.0, 4.0])
    seen: list[mg.Tensor] = []
    w.register_hook(seen.append)
    other = (w * 2.0).sin().sum()
    (g,) = mg.autograd.grad([(x * x).sum(), other], x)
    np.testing.assert_array_equal(g.array, [2.0, 4.0])
    assert not seen and w.grad is None
    other.backward()
    assert len(seen) == 1 and w.grad is not None
    np.testing.assert_allclose(w.grad.array, 2 * np.cos([6.0, 8.0]))


def test_unfreezing_a_leaf(xp):
    x = leaf(xp, [1.0, 2.0])
    seen = []
    x.register_hook(seen.append)
    loss = xp.sum(x * 2)
    x.requires_grad_(False)
    x.requires_grad_()
    check(autograd.grad(loss, x, retain_graph=True)[0], [2, 2])
    loss.backward()
    check(x.grad, [2, 2])
    assert len(seen) == 2
