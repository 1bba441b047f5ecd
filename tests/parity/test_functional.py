"""autograd.functional: values, the structure of results, and every error, on each backend and in
PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, make

import multigrad as mg
from multigrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def same(found, expected):
    """Nested tuples of arrays of the same structure, shapes and values."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    else:
        expected = np.asarray(expected)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.fixture
def x(side):
    return side.tensor([1.0, 2.0, 3.0])


@pytest.fixture
def y(side):
    return side.tensor([2.0, 1.0])


DOUBLED_AND_SQUARES = lambda s: lambda a, b: (a * 2, s.xp.sum(b**2))
SQUARES = lambda s: lambda a: s.xp.sum(a**2)
CUBES_TIMES_SQUARES = lambda s: lambda a, b: s.xp.sum(a**3) * s.xp.sum(b**2)


class TestJacobian:
    def test_one_input_one_output(self, side, x):  # F042
        found = side.autograd.functional.jacobian(lambda a: a**2, x)
        same(side.values(found), np.diag([2.0, 4.0, 6.0]))
        assert not found.requires_grad

    def test_tuples_are_mirrored(self, side, x, y):  # F043
        f = side.autograd.functional.jacobian
        zero = np.zeros((3, 2))
        same(
            side.values(f(DOUBLED_AND_SQUARES(side), (x, y))),
            ((2 * np.eye(3), zero), (np.zeros(3), np.array([4.0, 2.0]))),
        )
        same(side.values(f(lambda a, b: a * 2, (x, y))), (2 * np.eye(3), zero))
        same(side.values(f(lambda a: (a * 2, side.xp.sum(a)), x)), (2 * np.eye(3), np.ones(3)))
        same(side.values(f(lambda a: (a * 2,), (x,))), ((2 * np.eye(3),),))

    @pytest.mark.parametrize("shape", [(), (2, 2)])
    def test_shape_is_that_of_output_and_input(self, side, shape):  # F042
        xp = side.xp
        a = xp.reshape(side.tensor([0.5, 1.0, 1.5, 2.0][: int(np.prod(shape))]), shape)
        found = side.values(side.autograd.functional.jacobian(lambda v: xp.exp(v), a))
        same(found, np.reshape(np.diag(np.exp(np.reshape(side.values(a), (-1,)))), shape + shape))

    def test_exp_reducer(self, side):  # F050
        a = side.tensor([[0.25, 0.5], [0.75, 1.0]])
        found = side.values(
            side.autograd.functional.jacobian(lambda v: side.xp.sum(side.xp.exp(v), axis=1), a)
        )
        expected = np.zeros((2, 2, 2))
        for i in range(2):
            expected[i, i] = np.exp(side.values(a))[i]
        same(found, expected)

    @pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
    def test_vectorized_and_forward_mode_give_the_same(self, side, x, y, strategy):  # F041, F048
        found = side.values(
            side.autograd.functional.jacobian(
                DOUBLED_AND_SQUARES(side), (x, y), vectorize=True, strategy=strategy
            )
        )
        same(found, ((2 * np.eye(3), np.zeros((3, 2))), (np.zeros(3), np.array([4.0, 2.0]))))

    def test_dtype_is_the_inputs(self, side):  # F044
        a = side.tensor([1.0, 2.0], dtype="float32")
        found = side.autograd.functional.jacobian(lambda v: v * side.tensor([1.0, 3.0]), a)
        assert str(side.values(found).dtype) == "float32"
        same(side.values(found), np.diag([1.0, 3.0]))

    def test_integer_outputs_have_zero_gradient(self, side, x):
        same(
            side.values(side.autograd.functional.jacobian(lambda a: (side.xp.argmax(a), a * 2), x)),
            (np.zeros(3), 2 * np.eye(3)),
        )

    def test_empty_input(self, side, x):
        assert side.values(
            side.autograd.functional.jacobian(lambda a: side.xp.sum(a), x[:0])
        ).shape == (0,)

    def test_complex_conventions(self, side):
        f = side.autograd.functional.jacobian
        z = side.tensor([1 + 2j, 2 - 1j], dtype="complex128")
        same(
            side.values(f(lambda a: side.xp.real(a * side.xp.conj(a)), z)),
            np.diag([2 + 4j, 4 - 2j]),
        )
        same(side.values(f(lambda a: a * a, z, vectorize=True)), np.diag([2 - 4j, 4 + 2j]))
        same(
            side.values(f(lambda a: a * a, z, vectorize=True, strategy="forward-mode")),
            np.diag([2 + 4j, 4 - 2j]),
        )

    def test_create_graph(self, side, x):  # F045
        f = side.autograd.functional.jacobian
        leaf = side.tensor([1.0, 2.0, 3.0], requires_grad=True)
        found = f(lambda a: a**3, leaf, create_graph=True)
        side.xp.sum(found).backward()
        same(side.values(leaf.grad), np.array([6.0, 12.0, 18.0]))
        assert f(lambda a: a**3, x, create_graph=True).requires_grad
        assert not f(lambda a: a * 3, leaf, create_graph=True).requires_grad

    def test_the_callers_tensors_are_left_alone(self, side):
        leaf = side.tensor([1.0, 2.0], requires_grad=True)
        seen = []
        side.autograd.functional.jacobian(lambda a: seen.append(a) or a * leaf, leaf)
        assert leaf.grad is None and seen[0] is not leaf and seen[0].requires_grad
        same(
            side.values(side.autograd.functional.jacobian(lambda a: a * leaf, leaf)),
            np.diag([1.0, 2.0]),
        )

    def test_records_also_inside_no_grad(self, side, x):
        f = side.autograd.functional
        with side.no_grad():
            same(side.values(f.jacobian(lambda a: a**2, x)), np.diag([2.0, 4.0, 6.0]))
            for product in (f.vjp, f.jvp):
                out, found = product(lambda a: a**2, x, x, create_graph=True)
                assert out.requires_grad and found.requires_grad
                same(side.values(found), np.array([2.0, 8.0, 18.0]))


class TestHessian:
    def test_values(self, side, x):  # F052
        f = side.autograd.functional.hessian
        same(side.values(f(lambda a: side.xp.sum(a**3), x)), np.diag([6.0, 12.0, 18.0]))
        same(
            side.values(f(lambda a: side.xp.reshape(side.xp.sum(a**3), (1,)), x)),
            np.diag([6.0, 12.0, 18.0]),
        )

    def test_pow_reducer(self, side):  # F054
        a = np.array([[0.5, 1.0], [1.5, 2.0]])
        found = side.values(
            side.autograd.functional.hessian(lambda v: side.xp.sum(v**3), side.tensor(a.tolist()))
        )
        same(found, np.reshape(np.diag(6 * a.ravel()), (2, 2, 2, 2)))

    def test_pow_adder_reducer(self, side, y):  # F054
        found = side.autograd.functional.hessian(
            lambda a, b: side.xp.sum(2 * a**2 + 3 * b**2), (y, y)
        )
        same(
            side.values(found),
            ((4 * np.eye(2), np.zeros((2, 2))), (np.zeros((2, 2)), 6 * np.eye(2))),
        )

    @pytest.mark.parametrize(
        ("vectorize", "strategy"),
        [(False, "reverse-mode"), (True, "reverse-mode"), (True, "forward-mode")],
    )
    def test_blocks(self, side, x, y, vectorize, strategy):  # F053
        found = side.autograd.functional.hessian(
            CUBES_TIMES_SQUARES(side), (x, y), vectorize=vectorize, outer_jacobian_strategy=strategy
        )
        cross = np.outer([3.0, 12.0, 27.0], [4.0, 2.0])
        same(side.values(found), ((np.diag([30.0, 60.0, 90.0]), cross), (cross.T, 72 * np.eye(2))))

    def test_constant_function(self, side, x):
        same(
            side.values(side.autograd.functional.hessian(lambda a: side.tensor(1.0), x)),
            np.zeros((3, 3)),
        )

    def test_create_graph(self, side):
        leaf = side.tensor([1.0, 2.0], requires_grad=True)
        found = side.autograd.functional.hessian(
            lambda a: side.xp.sum(a**4), leaf, create_graph=True
        )
        side.xp.sum(found).backward()
        same(side.values(leaf.grad), np.array([24.0, 48.0]))


class TestProducts:
    def test_vjp_and_jvp(self, side):  # F055, F057, F058, F060
        f, xp = side.autograd.functional, side.xp
        a = side.tensor([[0.25, 0.5], [0.75, 1.0]])
        reducer = lambda v: xp.sum(xp.exp(v), axis=1)
        exp = np.exp(side.values(a))
        same(
            side.values(f.vjp(reducer, a, side.tensor([1.0, 2.0]))),
            (exp.sum(1), exp * np.array([[1.0], [2.0]])),
        )
        out, pushed = f.jvp(reducer, a, side.tensor([[1.0, 1.0], [1.0, 1.0]]))
        same(side.values(pushed), side.values(out))

    def test_adder(self, side, y):  # F057, F060
        f = side.autograd.functional
        ones = side.tensor([1.0, 1.0])
        adder = lambda a, b: 2 * a + 3 * b
        same(side.values(f.vjp(adder, (y, y), ones)[1]), (np.full(2, 2.0), np.full(2, 3.0)))
        same(side.values(f.jvp(adder, (y, y), (ones, ones))[1]), np.full(2, 5.0))

    def test_structure(self, side, x, y):  # F067
        f = side.autograd.functional
        both = lambda a, b: (a**2, b**2)
        v = (side.tensor([1.0, 1.0, 1.0]), side.tensor([1.0, 1.0]))
        expected = (
            (np.array([1.0, 4.0, 9.0]), np.array([4.0, 1.0])),
            (np.array([2.0, 4.0, 6.0]), np.array([4.0, 2.0])),
        )
        for product in (f.vjp, f.jvp):
            same(side.values(product(both, (x, y), v)), expected)
            same(side.values(product(lambda a: a**2, x, (v[0],))[1]), np.array([2.0, 4.0, 6.0]))

    def test_v_may_be_left_out_for_one_element(self, side):  # F056, F058
        f = side.autograd.functional
        one = side.tensor([3.0])
        same(side.values(f.vjp(lambda a: a**2, one)), (np.array([9.0]), np.array([6.0])))
        same(side.values(f.jvp(lambda a: a**2, one)), (np.array([9.0]), np.array([6.0])))
        same(
            side.values(f.vhp(lambda a: side.xp.sum(a**3), one)), (np.array(27.0), np.array([18.0]))
        )
        same(
            side.values(f.hvp(lambda a: side.xp.sum(a**3), one)), (np.array(27.0), np.array([18.0]))
        )

    def test_complex(self, side):
        f, xp = side.autograd.functional, side.xp
        z, v = (
            side.tensor([1 + 2j, 2 - 1j], dtype="complex128"),
            side.tensor([1j, 2.0], dtype="complex128"),
        )
        same(side.values(f.vjp(lambda a: a * a, z, v)[1]), np.array([4 + 2j, 8 + 4j]))
        same(side.values(f.jvp(lambda a: a * a, z, v)[1]), np.array([-4 + 2j, 8 - 4j]))
        for product in (f.vhp, f.hvp):
            same(
                side.values(product(lambda a: xp.sum(xp.real(a * a * a)), z, v)[1]),
                np.array([-12 - 6j, 24 + 12j]),
            )

    def test_hessian_products(self, side, x, y):  # F061, F062, F063, F064
        f, xp = side.autograd.functional, side.xp
        for product in (f.vhp, f.hvp):
            out, found = product(lambda a: xp.sum(a**3), x, side.tensor([1.0, 10.0, 100.0]))
            same(side.values(out), np.array(36.0))
            same(side.values(found), np.array([6.0, 120.0, 1800.0]))
            assert not out.requires_grad and not found.requires_grad
            v = (side.tensor([0.0, 0.0]), side.tensor([1.0, 1.0]))
            same(
                side.values(product(lambda a, b: xp.sum(2 * a**2 + 3 * b**2), (y, y), v)[1]),
                (np.zeros(2), np.full(2, 6.0)),
            )
            same(side.values(product(lambda a: xp.sum(a), x, x)[1]), np.zeros(3))
            same(
                side.values(product(lambda a, b: xp.sum(a**2), (x, y), (x, y))[1]),
                (np.array([2.0, 4.0, 6.0]), np.zeros(2)),
            )

    @pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
    def test_create_graph(self, side, name):  # F066
        leaf = side.tensor([1.0, 2.0], requires_grad=True)
        v = side.tensor([1.0, 1.0], requires_grad=True)
        func = (lambda a: a**3) if name in ("vjp", "jvp") else lambda a: side.xp.sum(a**3)
        out, found = getattr(side.autograd.functional, name)(func, leaf, v, create_graph=True)
        assert out.requires_grad
        side.xp.sum(found).backward()
        second, first = np.array([6.0, 12.0]), np.array([3.0, 12.0])
        same(side.values(leaf.grad), second if name in ("vjp", "jvp") else np.array([6.0, 6.0]))
        same(side.values(v.grad), first if name in ("vjp", "jvp") else second)

    def test_integer_v(self, side, x):
        v = side.tensor([1, 2, 3], dtype="int64")
        for name in ("vjp", "jvp"):
            same(
                side.values(getattr(side.autograd.functional, name)(lambda a: a**2, x, v)[1]),
                np.array([2.0, 8.0, 18.0]),
            )


def test_each_block_has_the_dtype_of_its_input(side):  # F044, F053
    a, b = side.tensor([1.0, 2.0], dtype="float32"), side.tensor([3.0, 4.0])
    rows = side.autograd.functional.jacobian(lambda a, b: a * b, (a, b))
    assert [block.dtype for block in rows] == [a.dtype, b.dtype]
    same(side.values(rows[0]), np.diag([3.0, 4.0]))
    blocks = side.autograd.functional.hessian(lambda a, b: side.xp.sum(a * a * b), (a, b))
    assert [[block.dtype for block in row] for row in blocks] == [
        [a.dtype, b.dtype]
    ] * 2 or side.name == "torch"
    same(side.values(blocks[0][0]), np.diag([6.0, 8.0]))
    same(side.values(blocks[0][1]), np.diag([2.0, 4.0]))


def test_each_block_is_on_the_device_of_its_input():  # F044
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    a = mg.asarray(strict.asarray([1.0, 2.0], device=device))
    assert mg.autograd.functional.jacobian(lambda v: v * v, a).device == device
    assert mg.autograd.functional.hessian(lambda v: mg.sum(v**3), a).device == device


def test_without_strict_a_result_may_be_disconnected(side):  # F046
    f, x = side.autograd.functional, leaf(side, 1.0, 2.0)
    linear = f.jacobian(lambda a: a * 3, x, create_graph=True)
    assert not linear.requires_grad
    same(side.values(linear), 3 * np.eye(2))
    w = leaf(side, 5.0)
    bilinear = f.jacobian(lambda a: a * w, x, create_graph=True)
    assert bilinear.requires_grad  # because of w; of x it is independent
    assert side.autograd.grad(side.xp.sum(bilinear), x, allow_unused=True) == (None,)
    for block in f.hessian(lambda a, b: side.xp.sum(a * a), (x, w), create_graph=True)[1]:
        assert not np.any(side.values(block))


def test_derivatives_of_captured_tensors_inside(side):
    f, w, x = side.autograd.functional, leaf(side, 2.0, 3.0), leaf(side, 1.0, 2.0)
    loss = lambda a: side.xp.sum(w * a * a)
    by_w = lambda a: side.autograd.grad(loss(a), w, create_graph=True)[0]
    for vectorize in (False, True):
        same(side.values(f.jacobian(by_w, x, vectorize=vectorize)), np.diag([2.0, 4.0]))
    for product in (f.vjp, f.jvp):
        same(side.values(product(by_w, x, x)), (np.array([1.0, 4.0]), np.array([2.0, 8.0])))
    inner = []

    def stepped(a):
        inner.append(loss(a))
        inner[-1].backward(retain_graph=True)
        return inner[-1]

    same(side.values(f.hessian(stepped, x)), np.diag([4.0, 6.0]))
    same(side.values(w.grad), np.array([1.0, 4.0]))
    assert x.grad is None
    same(side.values(side.autograd.grad(inner[0], w)[0]), np.array([1.0, 4.0]))


def test_strict_names_an_output_of_captured_tensors(side, x):
    w = leaf(side, 2.0, 3.0)
    with pytest.raises(RuntimeError, match="Output 0 .* is independent of input 0"):
        side.autograd.functional.jacobian(lambda a: w * 2, x, strict=True)


def test_exp_adder(side):  # F051, F043
    a, b = side.tensor([0.25, 0.5]), side.tensor([1.0, 2.0])
    exp_adder = lambda a, b: 2 * side.xp.exp(a) + 3 * b
    first, second = side.autograd.functional.jacobian(exp_adder, (a, b))
    same(side.values(first), np.diag(2 * np.exp([0.25, 0.5])))
    same(side.values(second), 3 * np.eye(2))


def test_jvp_needs_no_rule_but_backward(side):
    # F059: it differentiates the gradient by the cotangent
    passes = []

    def backward(ctx, g):
        passes.append(g.requires_grad)
        return g * side.xp.exp(ctx.saved_tensors[0])

    F = make(side, lambda ctx, x: (ctx.save_for_backward(x), side.xp.exp(x))[1], backward)
    out, pushed = side.autograd.functional.jvp(
        F.apply, side.tensor([0.5, 1.0]), side.tensor([1.0, 10.0])
    )
    same(side.values(out), np.exp([0.5, 1.0]))
    same(side.values(pushed), np.exp([0.5, 1.0]) * [1, 10])
    assert passes == [True]


# Each is a call that must raise: name, call(functional, side, x, y), exception, message.
ERRORS = [
    (
        "list",
        lambda f, s, x, y: f.jacobian(lambda a: a, [x]),
        TypeError,
        "The inputs given to jacobian must be either a Tensor or a tuple of Tensors but the "
        "given inputs has type <class 'list'>.",
    ),
    (
        "element",
        lambda f, s, x, y: f.vjp(lambda a, b: a, (x, 3.0)),
        TypeError,
        "but the value at index 1 has type <class 'float'>.",
    ),
    (
        "v list",
        lambda f, s, x, y: f.jvp(lambda a: a, x, [x]),
        TypeError,
        "The v given to jvp must be either .* the given v has type <class 'list'>.",
    ),
    (
        "output list",
        lambda f, s, x, y: f.jacobian(lambda a: [a], x),
        TypeError,
        "The outputs of the user-provided function given to jacobian must be .* given outputs "
        "of the user-provided function has type <class 'list'>.",
    ),
    (
        "output None in tuple",
        lambda f, s, x, y: f.vjp(lambda a: (a, None), x),
        TypeError,
        "but the value at index 1 has type <class 'NoneType'>.",
    ),
    (
        "integer input",
        lambda f, s, x, y: f.jacobian(lambda a: a * 2.0, s.tensor([1, 2], dtype="int64")),
        RuntimeError,
        "only Tensors of floating point .*dtype can require gradients",
    ),
    (
        "complex output",
        lambda f, s, x, y: f.jacobian(lambda a: a * (1 + 2j), s.tensor([1j], dtype="complex128")),
        RuntimeError,
        "grad can be implicitly created only for real scalar outputs but got .*complex128",
    ),
    (
        "in-place",
        lambda f, s, x, y: f.jacobian(lambda a: a.__imul__(2), x),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    (
        "strategy",
        lambda f, s, x, y: f.jacobian(lambda a: a, x, strategy="forward"),
        AssertionError,
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
        'function has more outputs than inputs, "forward-mode"',
    ),
    (
        "outer strategy",
        lambda f, s, x, y: f.hessian(lambda a: a, x, outer_jacobian_strategy="forward"),
        AssertionError,
        'Expected strategy to be either "forward-mode" or "reverse-mode".',
    ),
    (
        "forward create_graph",
        lambda f, s, x, y: f.jacobian(
            lambda a: a, x, create_graph=True, vectorize=True, strategy="forward-mode"
        ),
        NotImplementedError,
        'jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together',
    ),
    (
        "forward strict",
        lambda f, s, x, y: f.jacobian(
            lambda a: a, x, strict=True, vectorize=True, strategy="forward-mode"
        ),
        RuntimeError,
        'jacobian: `strict=True` and `strategy="forward-mode"` are not supported together',
    ),
    (
        "forward loop",
        lambda f, s, x, y: f.jacobian(lambda a: a, x, strategy="forward-mode"),
        NotImplementedError,
        "Computing Jacobian using forward-AD or forward-over-reverse Hessian is ?only "
        "implemented for `vectorize=True`.",
    ),
    (
        "vectorize strict",
        lambda f, s, x, y: f.jacobian(lambda a: a * 2, x, strict=True, vectorize=True),
        RuntimeError,
        "jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
        "either set `strict=False` or `vectorize=False`.",
    ),
    (
        "hessian of many",
        lambda f, s, x, y: f.hessian(lambda a: a**2, x),
        RuntimeError,
        "The Tensor returned by the function given to hessian should contain a single element",
    ),
    (
        "hessian of a tuple",
        lambda f, s, x, y: f.hessian(lambda a: (s.xp.sum(a),), x),
        RuntimeError,
        "The function given to hessian should return a single Tensor",
    ),
    (
        "vjp without v",
        lambda f, s, x, y: f.vjp(lambda a: a, x),
        RuntimeError,
        "The vector v can only be None if the user-provided function returns a single Tensor "
        "with a single element.",
    ),
    (
        "number of v",
        lambda f, s, x, y: f.vjp(lambda a: a * 2, x, (x, x)),
        RuntimeError,
        "The given v should contain a single Tensor.",
    ),
    (
        "length of v",
        lambda f, s, x, y: f.jvp(lambda a, b: a * 2, (x, y), x),
        RuntimeError,
        "v is a tuple of invalid length: should be 2 but got 1.",
    ),
    (
        "entry of v",
        lambda f, s, x, y: f.vhp(lambda a, b: SQUARES(s)(a), (x, y), (x, x)),
        RuntimeError,
        r"^Entry 1 in v has invalid size: should be .*2.* but got .*3",
    ),
    (
        "no inputs",
        lambda f, s, x, y: f.jacobian(lambda: x, ()),
        (IndexError, RuntimeError),
        "tuple",
    ),
    (
        "no outputs",
        lambda f, s, x, y: f.jacobian(lambda a: (), x),
        (IndexError, RuntimeError),
        "tuple",
    ),
    (
        "jvp of integers",
        lambda f, s, x, y: f.jvp(lambda a: s.xp.argmax(a), x, x),
        RuntimeError,
        "nly Tensors of floating point and complex dtype",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"), [pytest.param(*case[1:], id=case[0]) for case in ERRORS]
)
def test_errors(side, x, y, call, kind, message):  # F040, F048, F052, F056, F065, F067
    with pytest.raises(kind, match=message):
        call(side.autograd.functional, side, x, y)


def call(side, name, func, inputs, v=None, **options):
    """Call one of the six functions; jacobian and hessian take no v."""
    function = getattr(side.autograd.functional, name)
    return (
        function(func, inputs, **options)
        if name in ("jacobian", "hessian")
        else function(func, inputs, v, **options)
    )


SCALAR = ("hessian", "vhp", "hvp")
PRODUCTS = ("vjp", "jvp", "vhp", "hvp")


@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp"])
def test_v_left_out(side, x, name):  # F058
    with pytest.raises(
        RuntimeError,
        match="The vector v can only be None if the input to the user-provided function is a "
        "single Tensor with",
    ):
        call(side, name, SQUARES(side), x)


@pytest.mark.parametrize("name", PRODUCTS)
def test_size_of_v(side, x, y, name):  # F056
    with pytest.raises(
        RuntimeError,
        match=r"^v has invalid size: should be .*\(\[?3,?\]?\) but got .*\(\[?2,?\]?\)\.",
    ):
        call(side, name, SQUARES(side) if name in SCALAR else lambda a: a * 2, x, y)


class TestStrict:
    def fails(self, side, name, func, inputs, v, message, **options):
        """It raises in strict mode, and in no other."""
        with pytest.raises(RuntimeError, match=message):
            call(side, name, func, inputs, v, strict=True, **options)
        call(side, name, func, inputs, v, **options)

    @pytest.mark.parametrize("name", ["jacobian", *PRODUCTS, "hessian"])
    def test_constant_function(self, side, x, name):  # F047
        self.fails(
            side,
            name,
            lambda a: side.tensor(1.0),
            x,
            side.tensor(1.0) if name == "vjp" else x,
            "Output 0 of the user-provided function does not require gradients. The outputs "
            "must be computed in a differentiable manner from the input when running in strict "
            "mode.",
        )

    @pytest.mark.parametrize("name", ["jacobian", *PRODUCTS])
    def test_unused_input(self, side, x, y, name):  # F047
        output = "Output 0" if name == "jacobian" else "The output"
        self.fails(
            side,
            name,
            lambda a, b: SQUARES(side)(a) if name in SCALAR else a * 2,
            (x, y),
            x if name == "vjp" else (x, y),
            f"{output} of the user-provided function is independent of input 1. This is not "
            "allowed in strict mode.",
        )

    @pytest.mark.parametrize("name", SCALAR)
    def test_linear_function(self, side, x, name):
        self.fails(
            side,
            name,
            lambda a: side.xp.sum(a),
            x,
            x,
            "While computing the hessian, found that the jacobian of the user-provided function "
            "with respect to input 0 is independent of the input. This is not allowed in strict "
            "mode. You should ensure that your function is twice differentiable",
        )

    def test_block_of_zeros(self, side, x, y):
        self.fails(
            side,
            "hessian",
            lambda a, b: SQUARES(side)(a) + SQUARES(side)(b),
            (x, y),
            None,
            "Output 0 of the user-provided function is independent of input 1. This is not "
            "allowed in strict mode.",
        )

    @pytest.mark.parametrize("name", ["jacobian", "vjp", "jvp"])
    def test_constant_jacobian_that_should_be_differentiable(self, side, x, name):
        self.fails(
            side,
            name,
            lambda a: a * 2,
            x,
            x,
            create_graph=True,
            message="The jacobian of the user-provided function is independent of input "
            "0. This is not allowed in strict mode when create_graph=True.",
        )

    @pytest.mark.parametrize("name", ["vhp", "hvp"])
    def test_constant_hessian_that_should_be_differentiable(self, side, x, name):
        self.fails(
            side,
            name,
            lambda a: side.xp.sum(a * a),
            x,
            x,
            create_graph=True,
            message="The hessian of the user-provided function is "
            "independent of input 0. This is not allowed in strict mode when create_graph=True.",
        )


def test_strict_passes_where_all_depends(side, x, y):  # F047
    f = side.autograd.functional
    for create_graph in (False, True):
        same(
            side.values(f.jacobian(lambda a: a**2, x, strict=True, create_graph=create_graph)),
            np.diag([2.0, 4.0, 6.0]),
        )
        same(
            side.values(
                f.hessian(lambda a: side.xp.sum(a**4), x, strict=True, create_graph=create_graph)
            ),
            np.diag([12.0, 48.0, 108.0]),
        )
        for name in ("vjp", "jvp"):
            same(
                side.values(
                    getattr(f, name)(lambda a: a**2, x, x, strict=True, create_graph=create_graph)[
                        1
                    ]
                ),
                np.array([2.0, 8.0, 18.0]),
            )
        for name in ("vhp", "hvp"):
            func = lambda a: side.xp.sum(a**3)
            same(
                side.values(
                    getattr(f, name)(func, x, x, strict=True, create_graph=create_graph)[1]
                ),
                np.array([6.0, 24.0, 54.0]),
            )


class TestOnlyHere:
    """What PyTorch has no counterpart for, or where multigrad does better on purpose."""

    def test_raw_arrays_may_stand_for_inputs_and_v(self, backend):
        raw = mg.tensor([1.0, 2.0], dtype="float64", backend=backend).array
        assert jacobian(lambda a: a**2, raw).tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert hessian(lambda a: (a**3).sum(), raw).tolist() == [[6.0, 0.0], [0.0, 12.0]]
        for product, func in (
            (vjp, lambda a: a**2),
            (jvp, lambda a: a**2),
            (vhp, lambda a: (a**2).sum()),
            (hvp, lambda a: (a**2).sum()),
        ):
            out, found = product(func, raw, raw)
            assert isinstance(out, mg.Tensor) and isinstance(found, mg.Tensor)
        with pytest.raises(
            TypeError, match="The outputs of the user-provided function given to jacobian must be"
        ):
            jacobian(lambda a: raw, raw)

    def test_forward_mode_returns_tuples_without_history(self, backend):
        t = mg.tensor([1.0, 2.0], backend=backend)
        found = hessian(
            lambda a, b: (a**2 * b).sum(),
            (t, t),
            vectorize=True,
            outer_jacobian_strategy="forward-mode",
        )
        assert type(found) is tuple and type(found[0]) is tuple
        assert not any(block.requires_grad for row in found for block in row)
        assert jacobian(
            lambda a: mg.argmax(a), t, vectorize=True, strategy="forward-mode"
        ).tolist() == [0.0, 0.0]

    def test_the_input_that_a_strict_error_names(self, backend):
        t = mg.tensor([1.0, 2.0], backend=backend)
        with pytest.raises(
            RuntimeError,
            match="jacobian of the user-provided function is independent of input 1. .* "
            "create_graph=True",
        ):
            jacobian(lambda a, b: a**2 + b, (t, t), strict=True, create_graph=True)
