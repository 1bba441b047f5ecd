"""vmap and derivatives of each other, and Jacobians, on every backend.

Random programs in all transformations, nested, are those of properties/.
"""

from __future__ import annotations

import numpy as np
import pytest
from forward_programs import close, raw

import multigrad as mg
from multigrad import func

X = np.linspace(0.3, 1.2, 6).reshape(2, 3)
V = np.linspace(-0.4, 0.7, 3)
W = np.linspace(-0.5, 0.9, 12).reshape(4, 3)


def test_nested_vmap_is_an_outer_product(xp):
    a, b = raw(xp, [1.0, 2.0, 3.0]), raw(xp, [4.0, 5.0])
    close(
        func.vmap(lambda x: func.vmap(lambda y: x * y + x)(b))(a),
        np.outer([1, 2, 3], [4, 5]) + [[1], [2], [3]],
    )
    close(
        func.vmap(func.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))(a, b),
        np.outer([1, 2, 3], [4, 5]),
    )
    triple = func.vmap(func.vmap(func.vmap(lambda x: x * x)))(
        raw(xp, np.arange(24.0).reshape(2, 3, 4))
    )
    close(triple, np.arange(24.0).reshape(2, 3, 4) ** 2)


def test_perturbations_are_not_confused_between_examples(xp):
    """d/dx [x * d/dy (x + y)] = 1 for every example, with vmap at every place."""
    x = raw(xp, [1.0, 2.0, 3.0])
    inner = lambda x: x * func.grad(lambda y: x + y)(x * 2)
    close(func.vmap(func.grad(inner))(x), np.ones(3))
    close(func.grad(lambda x: xp.sum(func.vmap(inner)(x)))(x), np.ones(3))
    close(func.vmap(lambda x: func.jvp(inner, (x,), (xp.ones_like(x),))[1])(x), np.ones(3))
    nested = lambda x: xp.sum(
        func.vmap(lambda y: func.grad(lambda z: x * y * z)(y))(raw(xp, [1.0, 2.0]))
    )
    close(func.vmap(func.grad(nested))(x), np.full(3, 3.0))


def test_what_a_function_captures(xp):
    """A batch captured by an inner transformation, a Tensor captured by a batch."""
    w = xp.asarray(V, requires_grad=True)
    y = func.vmap(lambda x: func.grad(lambda s: xp.sum(s * w * x))(x))(raw(xp, X))  # w * x
    close(y, V * X)
    (g,) = mg.autograd.grad(xp.sum(y), w)
    close(g, X.sum(0))


def test_blocks_of_a_hessian(xp):
    g = func.hessian(lambda p: xp.sum(p["a"] ** 2) * p["b"][0])(
        {"a": raw(xp, V), "b": [raw(xp, 2.0)]}
    )
    close(g["a"]["a"], 4 * np.eye(3))
    close(g["a"]["b"][0], 2 * V)
    close(g["b"][0]["a"], 2 * V)
    close(g["b"][0]["b"][0], 0)


class TestJacobians:
    """jacrev, jacfwd and jacobian: the same blocks, laid out the same way, all at once or in
    chunks.
    """

    F = staticmethod(
        lambda xp: (
            lambda x, p: {"u": xp.matmul(x, p["w"]), "v": (xp.sum(x * p["s"]), x[0, ...] ** 2)}
        )
    )

    @pytest.mark.parametrize("chunk", [None, 1, 2, 100])
    def test_modes_agree(self, xp, chunk):
        x, p = raw(xp, X), {"w": raw(xp, W[:3, :2]), "s": raw(xp, 2.0)}
        f = self.F(xp)
        blocks = [
            j(f, (0, 1), chunk_size=chunk)(x, p) for j in (func.jacrev, func.jacfwd, func.jacobian)
        ]
        for found in blocks:
            assert set(found) == {"u", "v"} and type(found["v"]) is tuple
            close(
                found["u"][0], np.einsum("ia,kb->ibak", np.eye(2), W[:3, :2]).transpose(0, 1, 2, 3)
            )
            close(found["u"][1]["w"], np.einsum("ia,bk->ikab", X, np.eye(2)))
            close(found["u"][1]["s"], np.zeros((2, 2)))
            close(found["v"][0][0], np.full((2, 3), 2.0))
            close(found["v"][0][1]["s"], X.sum())
            close(found["v"][1][0], np.stack([np.diag(2 * X[0]), np.zeros((3, 3))], axis=1))

    @pytest.mark.parametrize("shape,calls", [((3, 5), "forward"), ((5, 3), "reverse")])
    def test_jacobian_chooses_the_mode_by_shape(self, xp, shape, calls):
        n, m = shape
        w = raw(xp, np.arange(float(n * m)).reshape(m, n))
        seen = []

        def f(x):
            seen.append("Dual" in repr(type(x)))
            return xp.matmul(w, x)

        close(func.jacobian(f)(raw(xp, np.ones(n))), np.arange(float(n * m)).reshape(m, n))
        assert seen == ([False, True] if calls == "forward" else [False])

    def test_no_elements(self, xp):
        x, none = raw(xp, V), raw(xp, np.zeros((0, 2)))
        for j in (func.jacrev, func.jacfwd, func.jacobian):
            assert j(lambda x: x[:0])(x).shape == (0, 3)
            assert j(lambda e: xp.sum(e) + xp.asarray(V))(none).shape == (3, 0, 2)
            assert j(lambda x, e: x, (0, 1))(x, none)[1].shape == (3, 0, 2)
        assert func.hessian(lambda e: xp.sum(e * e))(none).shape == (0, 2, 0, 2)

    def test_integers_have_no_derivative(self, xp):
        """Zeros in forward mode, an error in reverse mode: as in PyTorch and JAX."""
        found = func.jacfwd(lambda x: (xp.argmax(x), x > 0.5, x))(raw(xp, V))
        close(found[0], np.zeros(3))
        assert found[1].shape == (3, 3)
        close(found[2], np.eye(3))
        for name in ("jacrev", "jacobian"):
            with pytest.raises(
                TypeError,
                match=f"{name}: every output must be of a floating dtype, but one is of dtype "
                ".*int.* as aux",
            ):
                getattr(func, name)(lambda x: (x, xp.argmax(x)))(raw(xp, V))
            g, i = getattr(func, name)(lambda x: (x, xp.argmax(x)), has_aux=True)(raw(xp, V))
            close(g, np.eye(3))
            assert int(i) == int(np.argmax(V))

    def test_aux(self, xp):
        x = raw(xp, V)
        for j in (func.jacrev, func.jacfwd, func.jacobian):
            found, aux = j(lambda x: (x * x, {"n": 3, "x": x * 2}), has_aux=True)(x)
            close(found, np.diag(2 * V))
            assert aux["n"] == 3 and type(aux["x"]) is type(x)
            close(aux["x"], 2 * V)
        found, aux = func.hessian(lambda x: (xp.sum(x**3), x * 2), has_aux=True)(x)
        close(found, np.diag(6 * V))
        close(aux, 2 * V)

    def test_tensors(self, xp):
        x = xp.asarray(V, requires_grad=True)
        for j in (func.jacrev, func.jacfwd, func.jacobian):
            found = j(lambda x: x**3)(x)
            assert isinstance(found, mg.Tensor)
            (g,) = mg.autograd.grad(xp.sum(found), x)
            close(g, 6 * V)

    def test_errors(self, xp):
        x = raw(xp, V)
        for name in ("jacrev", "jacfwd", "jacobian", "hessian"):
            j = getattr(func, name)
            shown = "jac(rev|fwd)" if name == "hessian" else name
            with pytest.raises(
                ValueError, match=f"{shown}: chunk_size must be an int above 0, or None, not 0"
            ):
                j(xp.sum, chunk_size=0)
            with pytest.raises(
                ValueError,
                match=f"{shown}: argnums names argument 1, but the function was called with 1 "
                "positional",
            ):
                j(xp.sum, 1)(x)
            with pytest.raises(
                TypeError, match=f"{shown}: the function must return arrays, .* str"
            ):
                j(lambda x: "text")(x)

    def test_complex_is_refused(self):
        z = np.ones(2, dtype=complex)
        for name in ("jacrev", "jacfwd", "jacobian"):
            with pytest.raises(
                mg.errors.GradientError,
                match=f"{name}: expected every argument to be real, but number 0 is of dtype "
                "complex128",
            ):
                getattr(func, name)(lambda z: z)(z)
            with pytest.raises(
                mg.errors.GradientError,
                match=f"{name}: expected every output to be real, but number 0 is of dtype "
                "complex128",
            ):
                getattr(func, name)(lambda x: x * 1j)(np.ones(2))
