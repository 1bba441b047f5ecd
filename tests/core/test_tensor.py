"""Attributes and methods of Tensor: making one, its place in the graph, leaving."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.errors import BackendError


class TestMaking:
    def test_asarray_wraps_without_copying(self):
        a = np.ones(3)
        t = mg.asarray(a)
        assert t.array is a and mg.asarray(t) is t
        assert not t.requires_grad and t.is_leaf and t.grad is None and t.grad_fn is None

    def test_tensor_copies(self, xp):
        a = np.ones(3)
        t = mg.tensor(a, requires_grad=True)
        assert not np.shares_memory(t.array, a) and t.requires_grad
        u = mg.tensor(t.detach())
        assert not np.shares_memory(u.array, t.array) and not u.requires_grad
        w = xp.asarray(np.ones(2), requires_grad=True) * 2
        assert mg.tensor(w.detach()).is_leaf

    def test_dtype_cast_is_differentiable(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        y = xp.asarray(x, dtype=xp.float32)
        assert y.dtype == xp.float32 and y.requires_grad
        xp.sum(y * y).backward()
        assert x.grad.dtype == xp.float64
        z = xp.asarray(x, copy=True)
        assert z is not x and z.requires_grad

    def test_factories_take_requires_grad(self, xp):
        for t in (
            xp.zeros(3, requires_grad=True),
            xp.ones((2, 3), requires_grad=True),
            xp.linspace(0.0, 1.0, 5, requires_grad=True),
            xp.full((2,), 1.5, requires_grad=True),
            xp.eye(3, requires_grad=True),
            xp.empty(2, requires_grad=True),
            xp.arange(0.0, 3.0, 1.0, requires_grad=True),
            xp.asarray(np.ones(2), requires_grad=True),
            xp.zeros_like(xp.ones(2), requires_grad=True),
        ):
            assert t.requires_grad and t.is_leaf

    def test_what_is_no_array(self):
        for bad in (object(), {"a": 1}, "text", None):
            with pytest.raises((TypeError, ValueError)):
                mg.asarray(bad)
        with pytest.raises(TypeError, match="cannot make an array of builtins.object"):
            mg.asarray(object())

    def test_the_default_backend(self):
        with mg.use_backend("strict"):
            assert mg.asarray(1.0)._elem.library.name == "strict"
            assert mg.zeros(3)._elem.library.name == "strict"
        assert mg.zeros(3)._elem.library.name == "numpy"

    def test_unknown_backend(self):
        with pytest.raises(
            BackendError, match="unknown backend 'nonesuch'. Known backends: .*numpy"
        ):
            mg.asarray([1.0], backend="nonesuch")


class TestPlace:
    def test_graph_names(self, xp):
        a = xp.linspace(0.0, 6.0, 5, requires_grad=True)
        d = 2 * xp.sin(a) + 1
        out = xp.sum(d)
        assert [n.name() for n in (out.grad_fn, d.grad_fn)] == ["SumBackward", "AddBackward"]
        (mul, i), other = d.grad_fn.next_functions
        assert (mul.name(), i, other) == ("MultiplyBackward", 0, (None, 0))
        assert mul.next_functions[0] == (None, 0)
        sin = mul.next_functions[1][0]
        assert sin.name() == "SinBackward"
        assert sin.next_functions[0][0].name() == "AccumulateGrad"
        assert sin.next_functions[0][0].next_functions == ()
        assert sin.next_functions[0][0].variable is a
        assert a.grad_fn is None and d.grad_fn is d.grad_fn

    def test_outputs_of_one_node(self, xp):
        x = xp.ones((3, 2), requires_grad=True)
        parts = xp.unstack(x)
        assert parts[0].grad_fn is parts[2].grad_fn
        assert [p.output_nr for p in parts] == [0, 1, 2]
        assert (parts[2] * 2).grad_fn.next_functions[0] == (parts[0].grad_fn, 2)

    def test_detach(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        y = (x * 2).detach()
        assert not y.requires_grad and y.is_leaf
        np.testing.assert_allclose(values(y), [2, 4])
        assert not x.data.requires_grad


class TestLeaving:
    def test_repr(self):
        x = mg.asarray(np.array([1.0, 2.0]), requires_grad=True)
        assert repr(x) == "Tensor(array([1., 2.]), requires_grad=True)"
        assert repr(x.sin()).endswith("grad_fn=<SinBackward>)")
        assert repr(x.detach()) == "Tensor(array([1., 2.]))"
        assert "backend='strict'" in repr(mg.namespace("strict").ones(2))

    @pytest.mark.parametrize(
        ("made", "shown"),
        [
            (
                lambda xp: xp.sum(xp.asarray([1.0, 2.0, 3.0], requires_grad=True)),
                "6.0, grad_fn=<SumBackward>",
            ),
            (lambda xp: xp.asarray(6.0, requires_grad=True), "6.0, requires_grad=True"),
            (lambda xp: xp.asarray(3), "3"),
            (lambda xp: xp.asarray(True), "True"),
            (lambda xp: xp.asarray(1 - 2j), "(1-2j)"),
            (lambda xp: xp.asarray(float("nan")), "nan"),
            (lambda xp: -xp.asarray(float("inf")), "-inf"),
            (lambda xp: xp.asarray(0.5, dtype=xp.float32), "0.5, dtype=float32"),
            (lambda xp: xp.asarray(3, dtype=xp.int8), "3, dtype=int8"),
        ],
    )
    def test_repr_of_one_number(self, made, shown, xp):
        number, _, rest = shown.partition(", ")
        dtype, rest = (rest, "") if rest.startswith("dtype") else ("", rest)
        backend = (
            "" if xp.__name__.endswith("numpy") else f"backend='{xp.__name__.rpartition('.')[2]}'"
        )
        assert (
            repr(made(xp)) == f"Tensor({', '.join(filter(None, (number, dtype, backend, rest)))})"
        )

    def test_repr_inside_transformations(self, xp):
        seen: list[str] = []

        def f(x):
            y = xp.sum(x * x)
            seen.append(repr(y))
            return y

        x, backend = (
            xp.asarray(3.0).array,
            ""
            if xp.__name__.endswith("numpy")
            else f"backend='{xp.__name__.rpartition('.')[2]}', ",
        )
        mg.func.grad(f)(x)
        mg.func.grad(mg.func.grad(f))(x)
        assert seen == [f"Tensor(9.0, {backend}grad_fn=<SumBackward>)"] * 2
        mg.func.jvp(f, (x,), (x,))
        assert seen[-1] == "Dual(9.0, tangent=18.0)"
        mg.func.vmap(mg.func.grad(f))(xp.ones(2).array)
        assert seen[-1].startswith("Tensor(Batched(") and seen[-1].endswith(
            "shape=()), " + backend + "grad_fn=<SumBackward>)"
        )

    def test_html_for_notebooks(self, xp):
        name = xp.__name__.rpartition(".")[2]
        page = xp.ones((2, 3), requires_grad=True).sin()._repr_html_()
        assert (
            f"shape (2, 3) &middot; float64 &middot; {name} &middot; grad_fn=&lt;SinBackward&gt;"
            in page
            and "0.84147" in page
        )
        assert page.startswith('<div class="multigrad-tensor">') and page.endswith("</pre></div>")
        assert '<pre style="margin:2px 0 0">2.0</pre>' in xp.sum(xp.ones(2))._repr_html_()
        view = xp.ones(3)
        part = view[:2]
        view *= 2.0
        assert "[2., 2.]" in part._repr_html_()

    def test_format(self, xp):
        loss = xp.sum(xp.ones(2, dtype=xp.float64, requires_grad=True)) / 3
        assert f"{loss:.4f}" == "0.6667" and "Tensor(" in f"{loss}"


class TestOperators:
    def test_a_scalar_of_numpy_that_is_a_tensor_belongs_to_numpy(self):
        """A raw one goes with every library."""
        scalar, b = mg.ones(2).sum(), mg.namespace("strict").ones(2)
        for f in (
            operator.add,
            operator.mul,
            lambda s, t: mg.where(t > 0, t, s),
            lambda s, t: mg.stack([t[0], s]),
        ):
            with pytest.raises(TypeError, match="got arrays of two backends, .* Convert one first"):
                f(scalar, b)

    def test_a_condition_of_another_library(self):
        x = mg.asarray(np.ones(2), requires_grad=True)
        for _ in range(3):
            mg.where(x > 0, x, 0.0)
            with pytest.raises(TypeError, match="got arrays of two backends"):
                mg.where(mg.namespace("strict").asarray([True, False]), x, 0.0)

    def test_an_index_of_another_library(self):
        x, other = mg.asarray(np.ones(3)), mg.namespace("strict").asarray([0])
        for key in (other, other.array, (other.array,)):
            with pytest.raises(
                TypeError, match="indexing: got arrays of two backends, 'numpy' and 'strict'"
            ):
                x[key]
            with pytest.raises(TypeError, match="indexing: got arrays of two backends"):
                x[key] = 1.0

    def test_shapes_in_pieces(self, xp):
        x = xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]))
        assert x.reshape(4).shape == x.reshape((4,)).shape == (4,)
        assert x.reshape(-1, 1).shape == (4, 1) and x.permute_dims(1, 0).shape == (2, 2)
        with pytest.raises(TypeError, match="positional argument"):
            x.sum(0, True)


class TestConversion:
    @pytest.mark.parametrize("target", ["numpy", "strict", "jax"])
    def test_to_backend_is_differentiable(self, backend, target):
        xp = mg.namespace(backend)
        x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        y = x.to_backend(target)
        assert y._elem.library.name == target and y.requires_grad
        other = mg.namespace(target)
        other.sum(y * y * y).backward()
        assert x.grad._elem.library.name == backend
        np.testing.assert_allclose(values(x.grad), [3, 12])
        y = mg.asarray(x, backend=target)
        (g,) = mg.autograd.grad(other.sum(y * y * y), x, create_graph=True)
        (h,) = mg.autograd.grad(xp.sum(g), x)
        np.testing.assert_allclose(values(h), [6, 12])

    def test_other_library_shares_no_memory(self, backend):
        a = np.arange(64.0)
        t = mg.asarray(a, backend=backend)
        if backend != "numpy":
            a[:] = 7
            np.testing.assert_array_equal(values(t), np.arange(64.0))


def test_a_dtype_asked_for_after_the_hot_path_was_learnt():
    """linspace has two arrays and a dtype: what was learnt without the dtype must not be used with
    it.
    """
    xp = mg.namespace("numpy")
    start, stop = xp.asarray(0.0), xp.asarray(1.0)
    assert xp.linspace(start, stop, 3).dtype == np.float64
    t = xp.linspace(start, stop, 3, dtype=np.float32)
    assert t.dtype == t.array.dtype == np.float32


def test_methods_take_their_arguments_by_name(xp):
    """As NumPy's arrays do; the functions of the standard take them by position only."""
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    y = x.astype(dtype=xp.float32)
    assert y.dtype == xp.float32 and y.requires_grad
    with pytest.raises(TypeError, match="positional-only"):
        xp.astype(x, dtype=xp.float32)
