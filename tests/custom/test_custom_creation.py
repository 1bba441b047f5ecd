"""Functions with a derivative of the user's own whose code makes arrays: ones, zeros, eye, asarray.

What is made inside of a transformation belongs to it. The user's code also runs where it was not
written to: in a batched backward pass, on one example of a batch, where two levels meet. Each of
these kinds is 2x² + xy elementwise, wherever its code makes which array, in each transformation.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import BACKENDS, values
from forward_programs import close, raw

import multigrad as mg
from multigrad import autograd, func
from multigrad.autograd.function import Function
from multigrad.core.level import Layer

X, Y = np.asarray([0.5, -1.0, 2.0]), np.asarray([1.5, 0.25, -3.0])
ROWS = np.stack([X, X + 1, X * 2, X - 3])
EYE = np.eye(3)


def written(xp, x):
    z = xp.zeros(3, dtype=xp.float64)
    z[...] = 1.0
    return z


MADE = {
    "ones": lambda xp, x: xp.ones(3, dtype=xp.float64),
    "eye": lambda xp, x: xp.sum(xp.eye(3, dtype=xp.float64), axis=0),
    "asarray of a raw one": lambda xp, x: xp.asarray(raw(xp, np.ones(3))),
    "written": written,
}


def function(xp, ones):
    class Own(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x, y):
            one = ones(x)
            ctx.save_for_backward(x, y, one)
            ctx.save_for_forward(x, y, one)
            ctx.two = one + ones(x)
            return ctx.two * x * x * ones(x) + x * y * one

        @staticmethod
        def backward(ctx, g):
            x, y, one = ctx.saved_tensors
            return g * (ctx.two * 2 * x + y) * ones(x), g * x * one + (ones(x) - 1.0)

        @staticmethod
        def jvp(ctx, a, b):
            x, y, one = ctx.saved_tensors
            return (ctx.two * 2 * x + y) * a * ones(x) + x * b * one + (ones(x) - 1.0)

    return Own.apply


def vjp_rule(xp, ones):
    @func.custom_vjp
    def own(x, y):
        return ones(x) * 2 * x * x + x * y * ones(x)

    own.defvjp(
        lambda x, y: (own(x, y) * ones(x), (x, y, ones(x), ones(x) * 4 * x)),
        lambda r, g: (g * (r[3] + r[1]) * ones(r[0]), g * r[0] * r[2] + (ones(r[0]) - 1.0)),
    )
    return own


def jvp_rule(xp, ones):
    @func.custom_jvp
    def own(x, y):
        return ones(x) * 2 * x * x + x * y * ones(x)

    @own.defjvp
    def rule(primals, tangents):
        (x, y), (a, b) = primals, tangents
        return own(x, y), ones(x) * (4 * x + y) * a + x * b * ones(x) + (ones(x) - 1.0) * a

    return own


KINDS = {f.__name__: f for f in (function, vjp_rule, jvp_rule)}


def one(x):
    xp = mg.namespace(x if isinstance(x, Layer) else mg.asarray(x))
    return xp.ones_like(x) if isinstance(x, Layer) else xp.ones_like(x).array


def total(f):
    def of(x):
        found = f(x)
        return mg.namespace(found if isinstance(found, Layer) else mg.asarray(found)).sum(found)

    return of


def along(f):
    return lambda x: func.jvp(f, (x,), (one(x),))[1]


def back(f):
    return lambda x: func.vjp(f, x)[1](one(x))[0]


def linear(f):
    return lambda x: func.linearize(f, x)[1](one(x))


C = Y - X
# Each with what it gives of f at X or, under vmap, at ROWS. f(x) is 2x² + x (x + c), so its
# derivative is 6x + c, and the second 6.


def slope(x):
    return 6 * x + C


def each(f):
    return np.stack([f(x) for x in ROWS])


ONE = {
    "grad": (lambda f: func.grad(total(f)), slope),
    "jvp": (along, slope),
    "vjp": (back, slope),
    "linearize": (linear, slope),
    "jacrev": (func.jacrev, lambda x: np.diag(slope(x))),
    "jacfwd": (func.jacfwd, lambda x: np.diag(slope(x))),
    "hessian": (lambda f: func.hessian(total(f)), lambda x: 6 * EYE),
    "jacrev of grad": (lambda f: func.jacrev(func.grad(total(f))), lambda x: 6 * EYE),
    "jacrev of jvp": (lambda f: func.jacrev(along(f)), lambda x: 6 * EYE),
    "jacfwd of jacfwd": (
        lambda f: func.jacfwd(func.jacfwd(f)),
        lambda x: 6 * np.einsum("ij,jk->ijk", EYE, EYE),
    ),
    "grad of grad": (
        lambda f: func.grad(lambda x: total(func.grad(total(f)))(x)),
        lambda x: 6 * np.ones(3),
    ),
}
MANY = {
    "vmap": (func.vmap, lambda: each(lambda x: 3 * x * x + C * x)),
    **{
        f"vmap of {name}": (lambda f, t=t: func.vmap(t(f)), lambda e=e: each(e))
        for name, (t, e) in ONE.items()
    },
    "grad of vmap": (lambda f: func.grad(total(func.vmap(f))), lambda: each(slope)),
    "jvp of vmap": (lambda f: along(func.vmap(f)), lambda: each(slope)),
    "grad of vmap of grad": (
        lambda f: func.grad(total(func.vmap(func.grad(total(f))))),
        lambda: np.full((4, 3), 6.0),
    ),
    "jvp of vmap of grad": (
        lambda f: along(func.vmap(func.grad(total(f)))),
        lambda: np.full((4, 3), 6.0),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.sweep_after(20)
@pytest.mark.parametrize(
    "backend, made",
    [(b, m) for b in BACKENDS for m in MADE if b != "jax" or m in ("eye", "written")],
    indirect=["backend"],
)
def test_every_transformation(xp, kind, made):
    own = kind(xp, lambda x: MADE[made](xp, x))
    c = xp.asarray(raw(xp, C))
    f = lambda x: own(x, x + c)
    wrong = []
    for name, (transformed, expected) in (
        *((n, (t, lambda e=e: e(X))) for n, (t, e) in ONE.items()),
        *MANY.items(),
    ):
        try:
            np.testing.assert_allclose(
                values(transformed(f)(raw(xp, ROWS if name in MANY else X))),
                expected(),
                rtol=1e-12,
                atol=1e-13,
            )
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error).strip()[:150]}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(ONE) + len(MANY)}", *wrong])


def test_rules_of_nodes_made_before_a_transformation_began(xp):
    """Constants that they make are none of the transformation that the pass runs in: rows of second
    derivatives of sort and rfft beside a rule of one's own."""

    class Cube(autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a):
            return a**3, a**2

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.save_for_backward(inputs[0], outputs[1])

        @staticmethod
        def backward(ctx, g, g2):
            a, square = ctx.saved_tensors
            return 3 * square * g + 2 * a * g2

    @func.custom_vjp
    def cube(a):
        return a**3

    cube.defvjp(lambda a: (a**3, (a**3, a**2)), lambda residuals, g: (3 * residuals[1] * g,))
    x = raw(xp, [0.3, 0.5, 0.7])
    for f in (lambda a: Cube.apply(a)[0], cube):
        for inner in (
            xp.sort,
            lambda a: xp.real(xp.fft.ifft(xp.fft.fft(xp.astype(a, xp.complex128)))),
        ):

            def total(a, f=f, inner=inner):
                return xp.sum(inner(a) * f(a))

            close(func.jacrev(func.grad(total))(x), np.diag([1.08, 3.0, 5.88]))  # of a^4
            close(func.jacrev(func.jacrev(total), chunk_size=1)(x), np.diag([1.08, 3.0, 5.88]))
