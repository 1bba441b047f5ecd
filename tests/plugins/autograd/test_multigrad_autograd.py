"""multigrad-autograd: HIPS autograd's operators, its NumPy, and rules by users.

HIPS autograd's own tests and examples run by `make test-clients`.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import multigrad as mg
import multigrad_autograd as ag
import multigrad_autograd.numpy as np
from multigrad_autograd import extend
from multigrad_autograd.numpy import numpy_boxes, numpy_vspaces
from multigrad_autograd.test_util import check_equivalent, check_grads, combo_check, scalar_close

ROOT = Path(__file__).resolve().parents[3]


def sizes(x: Any) -> Any:
    return onp.random.default_rng(7).standard_normal(x)


# -- operators


def test_raw_arrays_go_in_and_come_out() -> None:
    x = sizes(3)
    value, gradient = ag.value_and_grad(lambda x: np.sum(np.sin(x) ** 2))(x)
    assert type(value) is onp.float64 and type(gradient) is onp.ndarray
    onp.testing.assert_allclose(gradient, onp.sin(2 * x))
    assert type(ag.grad(np.tanh)(1.0)) is onp.float64


@pytest.mark.parametrize(
    "argnum, expected", [(0, 5.0), (1, 2.0), ((1, 0), (2.0, 5.0)), ([0], (5.0,))]
)
def test_argnum_is_a_position_or_several(argnum: Any, expected: Any) -> None:
    assert ag.grad(lambda x, y: x * y, argnum)(2.0, 5.0) == expected


def test_argnum_of_another_kind_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"grad: argnum must be an int, or a tuple or list of ints, not 'x'"
    ):
        ag.grad(lambda x: x, "x")


def test_containers_come_back_as_they_are() -> None:
    p = {"a": onp.ones(2), "b": (2.0, [onp.ones(2)])}
    found = ag.grad(lambda p: np.sum(p["a"] * p["b"][0]))(p)
    check_equivalent(found, {"a": 2 * onp.ones(2), "b": (2.0, [onp.zeros(2)])})
    assert type(found["b"]) is tuple and type(found["b"][1]) is list


def test_perturbations_are_not_confused() -> None:
    assert ag.grad(lambda x: x * ag.grad(lambda y: x + y)(5.0))(3.0) == 1.0
    assert ag.grad(lambda x: ag.deriv(lambda y: x * y * y)(2.0))(3.0) == 4.0
    assert ag.deriv(lambda x: ag.grad(lambda y: x * y * y)(2.0))(3.0) == 4.0


def test_jacobians_hessians_and_products() -> None:
    x, v = sizes(3), sizes((2, 3))[0]

    def f(x: Any) -> Any:
        return np.sum(x**3) + x[0] * x[1]

    h = onp.diag(6 * x) + onp.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]])
    onp.testing.assert_allclose(ag.hessian(f)(x), h)
    onp.testing.assert_allclose(ag.hessian_vector_product(f)(x, v), h @ v)
    onp.testing.assert_allclose(ag.make_hvp(f)(x)[0](v), h @ v)
    onp.testing.assert_allclose(ag.jacobian(np.sin)(x), onp.diag(onp.cos(x)))
    onp.testing.assert_allclose(ag.vector_jacobian_product(np.sin)(x, v), v * onp.cos(x))
    onp.testing.assert_allclose(ag.elementwise_grad(np.sin)(x), onp.cos(x))
    out, moved = ag.make_jvp(np.sin)(x)(v)
    onp.testing.assert_allclose((out, moved), (onp.sin(x), v * onp.cos(x)))
    onp.testing.assert_allclose(
        ag.differential_operators.make_jvp_reversemode(np.sin)(x)(v), v * onp.cos(x)
    )
    onp.testing.assert_allclose(ag.make_ggnvp(np.sin)(x)(v), v * onp.cos(x) ** 2)


def test_grad_and_aux_and_the_gradients_of_all_arguments() -> None:
    gradient, aux = ag.grad_and_aux(lambda x: (np.sum(x**2), x + 1))(onp.ones(2))
    onp.testing.assert_allclose((gradient, aux), (2 * onp.ones(2), 2 * onp.ones(2)))
    found = ag.multigrad_dict(lambda a, b=3.0, **more: a * b * more["c"])(2.0, c=5.0)
    assert found == {"a": 15.0, "b": 10.0, "more": {"c": 6.0}}
    assert ag.multigrad(lambda a, b: a * b, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert ag.grad_named(lambda a, b: a * b, "b")(2.0, 3.0) == 2.0


def test_what_has_no_gradient_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"Grad only applies to real scalar-output functions, but the output has the space "
        r"ArrayVSpace",
    ):
        ag.grad(lambda x: x)(onp.ones(2))
    with pytest.raises(TypeError, match="Grad only applies to real scalar-output functions"):
        ag.grad(lambda x: x * 1j)(1.0)
    with pytest.raises(TypeError, match="Elementwise_grad only applies to real-output functions"):
        ag.elementwise_grad(lambda x: x * 1j)(1.0)
    with pytest.raises(TypeError, match=r"Can't differentiate w.r.t. type <class 'int'>"):
        ag.grad(lambda x: x)(1)
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert ag.grad(lambda x: 3.0)(1.0) == 0.0


def test_integer_arrays_are_differentiated_in_floating_point() -> None:
    onp.testing.assert_array_equal(ag.grad(lambda x: np.sum(x**2))(onp.arange(3)), [0.0, 2.0, 4.0])


# -- complex gradients


def test_complex_gradients_are_the_conjugates_of_those_of_multigrad() -> None:
    z = 1.0 + 2.0j
    assert ag.grad(lambda z: np.real(z * z))(z) == 2 * z
    assert ag.holomorphic_grad(lambda z: z * z)(z) == 2 * z
    assert mg.func.grad(lambda z: mg.real(z * z))(onp.asarray(z)) == (2 * z).conjugate()
    vjp, out = ag.make_vjp(lambda z: z * z)(z)
    assert vjp(1.0 + 0.0j) == 2 * z and out == z * z
    assert ag.grad(np.abs)(z) == pytest.approx(z.conjugate() / abs(z))


def test_rules_of_users_see_complex_gradients_of_hips() -> None:
    @extend.primitive
    def square(z: Any) -> Any:
        return z * z

    extend.defvjp(square, lambda ans, z: lambda g: 2 * z * g)
    extend.defjvp(square, lambda g, ans, z: 2 * z * g)
    assert ag.grad(lambda z: np.real(square(z)))(1.0 + 2.0j) == 2.0 + 4.0j
    check_grads(square)(1.0 + 2.0j)


# -- rules of users


def test_a_primitive_is_called_on_raw_arrays_and_its_rules_on_what_they_need() -> None:
    seen: list[type] = []

    @extend.primitive
    def cube(x: Any) -> Any:
        seen.append(type(x))
        return onp.asarray(x) ** 3

    @extend.primitive
    def unruled(x: Any) -> Any:
        return x

    extend.defvjp(cube, lambda ans, x: lambda g: seen.append(type(x)) or 3 * x**2 * g)
    extend.defjvp(cube, lambda g, ans, x: 3 * x**2 * g)
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(cube(x)))(onp.ones(2)), 3 * onp.ones(2))
    assert seen == [onp.ndarray, onp.ndarray]
    assert ag.grad(ag.grad(cube))(2.0) == 12.0
    assert ag.deriv(ag.grad(cube))(2.0) == 12.0
    check_grads(cube)(sizes((2, 2)))
    with pytest.raises(NotImplementedError, match=r"VJP of unruled wrt argnums \(0,\) not defined"):
        ag.grad(unruled)(1.0)
    with pytest.raises(NotImplementedError, match=r"JVP of unruled wrt argnums \(0,\) not defined"):
        ag.deriv(unruled)(1.0)


def test_rules_by_argument_and_for_all_of_them() -> None:
    @extend.primitive
    def product(x: Any, y: Any, scale: float = 1.0) -> Any:
        return scale * x * y

    extend.defvjp_argnum(
        product, lambda i, ans, args, kwargs: lambda g: g * kwargs["scale"] * args[1 - i]
    )
    extend.def_linear(product)
    check_grads(lambda x, y: product(x, y, scale=3.0), (0, 1))(2.0, 3.0)
    extend.defvjp(product, None, lambda ans, x, y, scale: lambda g: g * scale * x, argnums=(0, 1))
    assert ag.grad(product, (0, 1))(2.0, 3.0, scale=3.0) == (0.0, 6.0)
    with pytest.raises(TypeError, match="Bad VJP 'same' for 'product'"):
        extend.defvjp(product, "same")  # type: ignore[arg-type]


def test_primitives_take_and_return_containers() -> None:
    @extend.primitive
    def both(pair: Any) -> Any:
        return {"sum": pair[0] + pair[1], "product": pair[0] * pair[1]}

    extend.defvjp(
        both,
        lambda ans, p: lambda g: (g["sum"] + g["product"] * p[1], g["sum"] + g["product"] * p[0]),
    )
    assert ag.grad(lambda p: both(p)["sum"] + 10 * both(p)["product"])((2.0, 3.0)) == (31.0, 21.0)


def test_values_without_a_derivative() -> None:
    @extend.notrace_primitive
    def chosen(x: Any) -> Any:
        assert type(x) is onp.ndarray
        return int(onp.argmax(x))

    assert ag.grad(lambda x: x[chosen(x)] ** 2)(onp.array([1.0, 3.0])).tolist() == [0.0, 6.0]
    assert ag.grad(lambda x: np.sum(x[np.argsort(x)] * onp.arange(3)))(
        onp.array([3.0, 1.0, 2.0])
    ).tolist() == [2.0, 0.0, 1.0]


# -- NumPy


def test_every_name_of_numpy_is_there() -> None:
    missing = [name for name in dir(onp) if not name.startswith("_") and not hasattr(np, name)]
    assert missing == []
    assert [
        name
        for name in dir(onp.linalg)
        if not name.startswith("_") and not hasattr(np.linalg, name)
    ] == []
    assert [
        name for name in dir(onp.fft) if not name.startswith("_") and not hasattr(np.fft, name)
    ] == []
    assert (
        np.pi == onp.pi
        and np.ndarray is onp.ndarray
        and np.random.RandomState is onp.random.RandomState
    )


CASES: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: np.array([[x[0, 0], 1.0], [2.0, x[1, 1] * x[0, 0]]]),
    "concatenate": lambda x: np.concatenate([x, onp.ones((1, 3)), x]),
    "vstack": lambda x: np.vstack([x[0], [1.0, 2.0, 3.0]]),
    "hstack": lambda x: np.hstack([x[0], 4.0, x[1]]),
    "append": lambda x: np.append(x[0], [1.0, 2.0]),
    "r_": lambda x: np.r_[x[0], 1:3, x[1]],
    "c_": lambda x: np.c_[x[0], x[1]],
    "where": lambda x: np.where(x > 0, x**2, 0.0),
    "dot": lambda x: np.dot(x, x.T),
    "dot of a list": lambda x: np.dot(x, [1.0, 2.0, 3.0]),
    "outer": lambda x: np.outer(x[0], x[1]),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: np.tensordot(x, x, 2),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: np.std(x, axis=0, keepdims=True),
    "sum of a list": lambda x: np.sum([x[0], x[1]]),
    "max": lambda x: np.max(x, 1),
    "cumsum": lambda x: np.cumsum(x),
    "reshape": lambda x: np.reshape(x, (3, 2), order="F"),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "pad": lambda x: np.pad(x, 1, "constant"),
    "tile": lambda x: np.tile(x, (2, 1)),
    "full_like": lambda x: np.full_like(onp.ones(3), x[0, 0]),
    "linspace": lambda x: np.linspace(x[0, 0], x[0, 1], 5),
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "clip of complex numbers": lambda x: np.real(np.clip(x * (1 + 1j), -0.5, 0.5)),
    "clip of integers": lambda x: x * np.clip(np.array([0, 1, 2]), 0.5, 1.5),
    "clip of booleans": lambda x: x * np.clip(x > 0, 0.25, 2),
    "sort": lambda x: np.sort(x[0]),
    "int64": lambda x: x[np.int64(x[0, 0] * 0)],
    "linalg.inv": lambda x: np.linalg.inv(np.dot(x, x.T) + onp.eye(2)),
    "linalg.norm": lambda x: np.linalg.norm(x, axis=1),
    "linalg.eigh": lambda x: np.linalg.eigh(np.dot(x, x.T), "U")[1],
    "fft": lambda x: np.real(np.fft.fft(x)),
    "make_diagonal": lambda x: np.make_diagonal(x, axis1=-1, axis2=-2),
    "numpy itself": lambda x: onp.sum(onp.exp(x) * onp.ones(3), axis=0),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_numpy_have_derivatives(name: str) -> None:
    check_grads(CASES[name])(sizes((2, 3)))


def test_conditions_and_positions_are_constants_at_any_depth() -> None:
    x, c = onp.array([1.0, -2.0, 3.0]), onp.arange(3.0)
    onp.testing.assert_allclose(
        ag.hessian(lambda x: np.sum(c[x > 0]) * np.sum(x**2))(x), 4 * onp.eye(3)
    )
    onp.testing.assert_allclose(
        ag.hessian(lambda x: np.sum(c[np.argsort(x)] * x**2))(x), onp.diag([2.0, 0.0, 4.0])
    )
    assert ag.deriv(lambda x: np.sum(c[1:][np.array([x, -x]) > 0]) * x)(2.0) == 1.0
    assert np.random.randn(np.sum(mg.asarray(x) > 0)).shape == (2,)


def test_raw_arrays_are_left_to_numpy() -> None:
    x = sizes(3)
    assert (
        type(np.sin(x)) is onp.ndarray
        and type(np.sum(x)) is onp.float64
        and type(np.array([1.0])) is onp.ndarray
    )
    assert np.where(True, 1, 2) == 1 and type(np.where(True, 1, 2)) is int
    assert np.where([True, False], [1, 2], [3, 4]) == [1, 4]
    assert isinstance(onp.int64(1), np.int64) and np.zeros(1, dtype=np.int64).dtype == onp.int64


def test_what_multigrad_lacks_raises_where_a_derivative_would_be_lost() -> None:
    with pytest.raises(
        RuntimeError, match=r"Can't call numpy.polyfit\(\) on Tensor that requires grad"
    ):
        ag.grad(lambda x: np.polyfit(x, x, 1)[0])(sizes(4))
    with pytest.raises(
        NotImplementedError,
        match="VJP of normal not defined: draw standard numbers, and shift and scale them",
    ):
        ag.grad(lambda x: np.sum(np.random.normal(x)))(sizes(4))
    with pytest.raises(RuntimeError, match="requires grad"):
        ag.grad(lambda x: np.sum(np.histogram(x)[1]))(sizes(4))
    with pytest.raises(NotImplementedError, match="r_ and c_ take no directives beside boxes"):
        ag.grad(lambda x: np.sum(np.r_["-1", x]))(sizes(4))
    with pytest.raises(NotImplementedError, match="make_diagonal only supports offset=0"):
        ag.grad(lambda x: np.sum(np.make_diagonal(x)))(sizes(4))


def test_users_define_what_is_missing() -> None:
    extend.defvjp(np.polyval, None, lambda ans, p, x: lambda g: g * np.polyval(onp.polyder(p), x))
    try:
        assert ag.grad(lambda x: np.polyval([1.0, 0.0, 0.0], x))(3.0) == 6.0
    finally:
        del ag.core.primitive_vjps[np.polyval]


def test_programs_meet_the_rest_of_multigrad() -> None:
    x = sizes((4, 3))
    onp.testing.assert_allclose(
        mg.func.vmap(mg.func.grad(lambda row: np.sum(np.sin(row) ** 2)))(x), onp.sin(2 * x)
    )
    t = mg.asarray(x, requires_grad=True)
    np.mean(np.tanh(t)).backward()
    onp.testing.assert_allclose(t.grad.array, (1 - onp.tanh(x) ** 2) / 12)


@pytest.mark.parametrize(
    "make",
    [
        lambda v: np.full((2, 3), v, dtype="float32"),
        lambda v: np.full((2, 3), v, "complex64", order="F"),
        lambda v: np.full_like(onp.ones(3), v, dtype="float32"),
        lambda v: np.full_like(onp.ones(3, "float32"), v),
        lambda v: np.full_like(onp.ones(3), v, shape=(2, 2)),
        lambda v: np.full_like(onp.ones(3), v, subok=False, order="C"),
        lambda v: np.vstack([v, onp.ones(1)], dtype="float32"),
        lambda v: np.hstack([v, onp.ones(2)], dtype="float32"),
        lambda v: np.std(np.stack([v]), axis=0, correction=0),
    ],
)
def test_options_hold_for_boxes_too(make: Any) -> None:
    want, seen = make(0.5), []
    ag.grad(lambda v: seen.append(make(v)) or np.sum(np.real(seen[0])))(0.5)
    onp.testing.assert_array_equal(seen[0].detach().array, want)
    assert seen[0].shape == want.shape and seen[0].dtype == want.dtype
    if want.ndim == 2 and want.shape[0] == want.shape[1]:
        assert ag.grad(lambda v: np.sum(make(v)))(0.5) == want.size


def test_the_deviation_of_one_number_with_a_correction_is_that_of_numpy() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, out = ag.make_vjp(lambda x: np.std(x, correction=1))(onp.ones(1))
        assert onp.isnan(out) and onp.isnan(onp.std(onp.ones(1), correction=1))


# -- arrays of other classes


def subclass() -> type:
    class Tracked(onp.ndarray):
        def __array_wrap__(self, array: Any, *_: Any) -> Any:
            return array

    return Tracked


@pytest.mark.parametrize(
    "register",
    [
        lambda kind: numpy_boxes.ArrayBox.register(kind),
        lambda kind: extend.VSpace.register(kind, lambda x: extend.vspace(onp.asarray(x))),
        lambda kind: numpy_vspaces.ArrayVSpace.register(kind),
    ],
    ids=["ArrayBox", "VSpace", "ArrayVSpace"],
)
def test_a_registered_class_of_arrays_means_plain_ones(register: Any) -> None:
    kind = subclass()
    x = sizes(3).view(kind)
    with pytest.raises(TypeError, match="arrays of type .*Tracked are refused by the backend"):
        ag.grad(lambda x: np.sum(x**2))(x)
    register(kind)
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(x**2))(x), 2 * sizes(3))
    onp.testing.assert_allclose(ag.grad(lambda y: np.sum(x * y))(sizes(3)), sizes(3))
    assert ag.grad(lambda x: np.sum(x**2))(onp.arange(3).view(kind)).tolist() == [0, 2, 4]


PLACES: dict[str, Any] = {
    "an argument": lambda q: ag.grad(lambda x: np.sum(x**2))(q),
    "a part of an argument": lambda q: ag.grad(lambda x: np.sum(x[0] ** 2))([q, 1.0]),
    "another argument": lambda q: ag.grad(lambda x, y: np.sum(x * y))(sizes(3), q),
    "a list": lambda q: ag.grad(lambda x: np.sum(np.array([x, q])))(sizes(3)),
    "concatenate": lambda q: ag.grad(lambda x: np.sum(np.concatenate([x, q])))(sizes(3)),
    "append": lambda q: ag.grad(lambda x: np.sum(np.append(x, q)))(sizes(3)),
    "dot": lambda q: ag.grad(lambda x: np.dot(x, q))(sizes(3)),
    "a cotangent": lambda q: ag.make_vjp(lambda x: 2.0 * x)(sizes(3))[0](q),
    "a tangent": lambda q: ag.make_jvp(lambda x: 2.0 * x)(sizes(3))(q),
    "the result of a primitive": lambda q: ag.grad(lambda x: np.sum(ag.primitive(lambda z: q)(x)))(
        sizes(3)
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_class_of_arrays_with_functions_of_its_own_is_refused(place: str) -> None:
    """HIPS autograd refuses every subclass; its values may have units, which gradients lose."""
    with pytest.raises(TypeError, match="arrays of type .*Tracked are refused by the backend"):
        PLACES[place](sizes(3).view(subclass()))


# -- builtins, spaces, misc


def test_isinstance_and_type_look_at_the_value() -> None:
    def f(x: Any, y: Any, p: Any) -> Any:
        assert (
            ag.isinstance(x, onp.ndarray) and ag.type(x) is onp.ndarray and ag.isinstance(y, float)
        )
        assert ag.isinstance(p, ag.dict) and isinstance(p, dict) and ag.isinstance((x,), ag.tuple)
        return np.sum(x) * y * p["a"]

    ag.grad(f, (0, 1, 2))(onp.ones(2), 2.0, {"a": 3.0})


@pytest.mark.parametrize(
    "x",
    [
        1.5,
        onp.ones((2, 3)),
        1j,
        onp.ones(2) * 1j,
        [1.0, (onp.ones(2), 2j)],
        {"a": onp.ones(2), "b": 1.0},
    ],
)
def test_vector_spaces(x: Any) -> None:
    space = extend.vspace(x)
    basis = list(space.standard_basis())
    assert len(basis) == space.size
    assert all(space.inner_prod(b, c) == (b is c) for b in basis for c in basis)
    v = space.randn()
    check_equivalent(space.add(v, space.scalar_mul(v, -1.0)), space.zeros())
    check_equivalent(space.mut_add(None, v), v)
    assert space == extend.vspace(v) and scalar_close(space.inner_prod(v, space.zeros()), 0.0)


def test_a_type_without_a_space_is_refused() -> None:
    with pytest.raises(
        TypeError, match="Can't find vector space for value x of type <class 'str'>"
    ):
        extend.vspace("x")


def test_flatten_and_back() -> None:
    from multigrad_autograd.misc import flatten
    from multigrad_autograd.misc.flatten import flatten_func

    x = {"b": [onp.ones((2, 2)), 3.0], "a": (onp.zeros(2),)}
    flat, unflatten = flatten(x)
    assert flat.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 3.0]
    check_equivalent(unflatten(flat), x)
    assert ag.grad(lambda x: np.sum(flatten(x)[0] ** 2))((1.0, onp.ones(1))) == (
        2.0,
        onp.array([2.0]),
    )
    f, back, at = flatten_func(lambda x: {"a": x["a"], "b": x["b"]}, x)
    check_equivalent(back(f(at)), x)


def test_checks_fail_without_assertions_too() -> None:
    program = """
import multigrad_autograd as ag, multigrad_autograd.numpy as np
from multigrad_autograd.extend import defvjp, primitive
from multigrad_autograd.test_util import check_equivalent, check_grads
wrong = primitive(lambda x: x * x)
defvjp(wrong, lambda ans, x: lambda g: g * x)
for check in (lambda: check_grads(wrong, modes=["rev"], order=1)(2.0), lambda: check_equivalent(1.0, np.ones(2))):
    try:
        check()
    except AssertionError as error:
        print(str(error).partition(" ")[0])
"""
    done = subprocess.run(
        [sys.executable, "-O", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["Derivative", "VSpace"], done.stderr


def test_a_check_that_fails_says_so() -> None:
    @extend.primitive
    def wrong(x: Any) -> Any:
        return x * x

    extend.defvjp(wrong, lambda ans, x: lambda g: g * x)
    extend.defjvp(wrong, lambda g, ans, x: g * x)
    with pytest.raises(
        AssertionError, match=r"Derivative \(VJP\) check of wrong failed with arg 2.0"
    ):
        check_grads(wrong, modes=["rev"])(2.0)
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_grads(wrong, modes=["fwd"])(2.0)
    with pytest.raises(
        ValueError, match=r'check_grads: modes are "fwd" and "rev", not \[\'both\'\]'
    ):
        check_grads(wrong, modes=["both"])(2.0)
    combo_check(np.sum, (0,))([onp.ones(2), onp.ones((2, 2))], axis=[None, 0])


# -- tracing


def test_trace_records_with_nodes_of_the_users() -> None:
    from multigrad_autograd.tracer import Node, trace

    class Named(Node):
        def __init__(
            self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Any, parents: Any
        ) -> None:
            self.text = f"{fun.__name__}({', '.join(p.text for p in parents)})"

        def initialize_root(self, text: str) -> None:
            self.text = text

    def f(x: Any) -> Any:
        y = x
        y += 1.0  # a new array, as `y = y + 1.0` makes one
        return np.sin(x) * np.sum(np.stack([x, y]))

    out, node = trace(Named.new_root("x"), f, 2.0)
    assert out == onp.sin(2.0) * 5.0 and node.text == "multiply(sin(x), sum(stack(x, add(x))))"
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert trace(Named.new_root("x"), lambda x: 1.0, 2.0) == (1.0, None)


def test_const_graph_calls_its_function_once() -> None:
    from multigrad_autograd.misc import const_graph

    calls: list[Any] = []

    def f(x: Any, y: Any) -> Any:
        calls.append(None)
        return ag.grad(lambda z: np.sin(z) * x)(x * y) + np.sum(np.array([x, y]))

    g = const_graph(f)
    for x, y in ((1.0, 2.0), (0.5, 3.0), (2.0, -1.0)):
        assert g(x, y) == pytest.approx(x * onp.cos(x * y) + x + y)
    assert len(calls) == 1
    with (
        pytest.raises(ValueError, match="Output is independent of input"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        const_graph(lambda x: 1.0)(2.0)


# -- in autograd's place


def run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_installed_it_is_autograd() -> None:
    done = run("""
import multigrad_autograd
multigrad_autograd.install()
multigrad_autograd.install()
import autograd, autograd.numpy as np, autograd.numpy.random as npr
from autograd import grad
from autograd.misc.flatten import flatten
from autograd.extend import primitive
from autograd.numpy.linalg import solve
assert autograd is multigrad_autograd and np is multigrad_autograd.numpy
assert primitive is multigrad_autograd.extend.primitive and np.__name__ == np.__spec__.name == 'multigrad_autograd.numpy'
print(grad(lambda x: np.sum(x ** 2))(np.ones(2)).tolist())
try:
    import autograd.nothing
except ModuleNotFoundError as error:
    print(error, error.name)
""")
    assert done.stdout.splitlines() == [
        "[2.0, 2.0]",
        "No module named 'autograd.nothing': multigrad_autograd, which replaces autograd, "
        "lacks it autograd.nothing",
    ], done.stderr


def test_install_is_refused_where_autograd_is_imported(tmp_path: Path) -> None:
    (tmp_path / "autograd.py").write_text("")
    done = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import autograd, "
        "multigrad_autograd; multigrad_autograd.install()"
    )
    assert (
        "ImportError: multigrad_autograd.install(): autograd is imported already, from"
        in done.stderr
    )
    assert "Call install() before anything imports autograd." in done.stderr


def test_the_readme_lists_the_tests_of_hips_that_fail() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "hips_tests.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_without_a_checkout_the_tests_of_hips_are_said_not_to_run() -> None:
    import os

    environment = {k: v for k, v in os.environ.items() if k != "AUTOGRAD"}
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "hips_tests.py"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0 and done.stdout.startswith(
        "NOT RUN: HIPS autograd's own tests, because AUTOGRAD names no checkout of them."
    )


def test_the_text_of_grad_begins_as_that_of_hips() -> None:
    """Their tests read it; Python 3.13 and later strip the indentation."""
    lines = (ag.grad.__doc__ or "").splitlines()
    assert not lines[0] and lines[1].lstrip().startswith("Returns a function which")
