"""Tests of users' own functions: check_function passes what is right, and names what is wrong."""

from __future__ import annotations

import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

pytest.importorskip("multigrad_conformance")
pytest.importorskip("array_api_strict")

from multigrad_conformance import check_function

ROOT = Path(mg.__file__).parents[1]
LIBRARIES = ("numpy", "strict")
X = np.asarray([[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]])
Z = X[:, :2] + 1j * X[:, 1:]


def fails(function: Any, *args: Any, backends: Any = LIBRARIES, **kwargs: Any) -> str:
    """The message of what is wrong."""
    with pytest.raises(AssertionError) as caught:
        check_function(function, *args, backends=backends, **kwargs)
    return str(caught.value)


def passes(function: Any, *args: Any, backends: Any = LIBRARIES, **kwargs: Any) -> None:
    assert check_function(function, *args, backends=backends, **kwargs) is None


def on(x: Any, name: str) -> bool:
    return name in x.__array_namespace__().__name__


# ----- what is right -----


def softplus(x):
    return x.__array_namespace__().logaddexp(x, 0 * x)


class Layer(NamedTuple):
    weights: Any
    bias: Any


def test_nested_arguments_keyword_arguments_and_results():
    def predict(layers, x, /, *, scale, mode="tanh", options=None):
        assert mode == "tanh" and options == {"n": 2}
        xp = x.__array_namespace__()
        for layer in layers["layers"]:
            x = xp.tanh(x @ layer.weights + layer.bias) * scale
        return {
            "out": x,
            "pair": (xp.sum(x), [xp.mean(x, axis=0)]),
            "n": 3,
            "none": None,
            "text": "done",
        }

    passes(
        predict,
        {"layers": [Layer(X.T @ X, X[0]), Layer(X.T, X[0, :2])]},
        X,
        scale=np.asarray(0.5),
        mode="tanh",
        options={"n": 2},
    )


def test_integer_and_boolean_arguments_are_not_differentiated():
    pytest.importorskip("jax")

    def picked(x, i, mask, n):
        xp = x.__array_namespace__()
        assert not getattr(i, "requires_grad", False)
        return (
            xp.take(x, i, axis=1) ** n * xp.where(mask, 2.0 * xp.ones_like(x), -1.0),
            xp.argmax(x),
            mask,
        )

    passes(picked, X, np.asarray([2, 0, 0]), X > 0, 3)
    passes(lambda i: i * 2 + 1, np.arange(3))
    passes(lambda i: i * 2 + 1, np.arange(3), backends="jax")


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z * z,
        lambda z: abs(z) ** 2,
        lambda z: z.__array_namespace__().conj(z) * z.__array_namespace__().exp(z),
        lambda z: z.__array_namespace__().real(z) ** 2,
    ],
    ids=range(4),
)
def test_complex_arguments(f):
    passes(f, Z)
    passes(lambda x, z: f(z) * x, X[:, :2], Z)


def test_arguments_without_axes_and_without_elements():
    passes(lambda x: x**3, np.asarray(2.0))
    passes(lambda x: x**3, np.float64(2.0))
    passes(lambda x: (x**3, x.__array_namespace__().sum(x, axis=0)), np.zeros((0, 3)))
    passes(lambda x, y: x * y, np.ones((0,)), np.asarray(2.0))


def test_what_is_zero_by_cancellation():
    """A constant before a normalization: its gradient is rounding."""

    def normalized(x, b):
        xp = x.__array_namespace__()
        x = x + b
        return (x - xp.mean(x)) / xp.std(x)

    passes(normalized, X, np.asarray(0.3))


def test_what_is_zero_by_cancellation_everywhere():
    """The result and all gradients are rounding errors, of numbers as large as the arguments."""
    line = np.linspace(-1, 1, 4)
    passes(lambda x: x.__array_namespace__().sum(x.__array_namespace__().sin(x)), line)
    passes(
        lambda x: x.__array_namespace__().sum(x - x.__array_namespace__().mean(x)),
        np.asarray([1.0, 2.0, 3.0]),
    )
    small = lambda x: 1e-20 * x.__array_namespace__().sum(x) * (1.001 if on(x, "strict") else 1.0)
    assert "values" in fails(small, line + 0.2)


def test_the_namespace_as_xp():
    passes(lambda n, x, xp: x + xp.arange(n, dtype=x.dtype, device=x.device), 3, X)
    passes(lambda x, xp=None: xp.sin(x), X)
    passes(lambda x, *, xp: xp.sin(x), X)
    passes(lambda x, xp: x * xp, X, np.asarray(2.0))  # an argument of the user's own


def test_arrays_of_other_libraries_and_tensors():
    xp = pytest.importorskip("array_api_strict")
    passes(softplus, xp.asarray(X))
    passes(softplus, mg.asarray(X, requires_grad=True))


def test_constants_are_not_differentiated():
    def f(x, edges):
        xp = x.__array_namespace__()
        return x * xp.sum(xp.astype(xp.expand_dims(x, axis=-1) > edges, x.dtype), axis=-1)

    at_an_edge = X[0, 1:] + 0.0, np.asarray([0.0, 0.7])
    assert "f fails: numpy, float64, differences: the gradient of x[1] is " in fails(f, *at_an_edge)
    assert "the gradient of edges[1] is 0.0, but finite differences give" in fails(
        f, *at_an_edge, constants="x"
    )
    passes(f, X + 0.01, np.asarray([0.0, 0.7, 1.0]), constants="edges")
    passes(f, X + 0.01, np.asarray([0.0, 0.7, 1.0]), constants=[1])
    passes(f, X + 0.01, edges=np.asarray([0.0, 0.7, 1.0]), constants=["edges"])


def test_methods_partials_and_callable_objects():
    from functools import partial

    class Model:
        def __call__(self, x, *, power):
            return x**power

        def method(self, x):
            return x * 2

    passes(Model(), X, power=2)
    passes(Model().method, X)
    passes(partial(Model(), power=3), X)
    assert fails(partial(half, scale=0.5), X).startswith("half fails: ")


# ----- what is wrong -----


@func.custom_vjp
def _half(x):
    return x**2


_half.defvjp(lambda x: (x**2, x), lambda x, g: (g * x,))


def half(x, scale=1.0):
    return _half(x) * scale


def test_a_wrong_gradient():
    text = fails(half, X)
    assert text.startswith("half fails: numpy, float64, differences: the gradient of x[1, 0] is ")
    assert (
        "but finite differences give " in text
        and "\nalso strict, float32, differences: the gradient of x" in text
    )
    number = float(text.split(" is ")[1].split(",")[0])
    assert number == pytest.approx(
        float(text.split("give ")[1].split(".\n")[0].split("\n")[0].rstrip(".")) / 2, rel=1e-6
    )


def test_a_wrong_gradient_of_one_element_in_many():
    n = 1000

    @func.custom_vjp
    def f(x):
        return x**2

    def backward(x, g):
        xp = g.__array_namespace__()
        return (2 * g * x * xp.where(xp.arange(n) == 777, 1.01 * xp.ones_like(x), xp.ones_like(x)),)

    f.defvjp(lambda x: (x**2, x), backward)
    text = fails(f, np.linspace(1, 2, n), dtypes="float64")
    assert text.startswith("f fails: numpy, float64, jvp: ") or "differences" in text


@func.custom_vjp
def conjugated(z):
    return z * z


# JAX's, whose conjugate is PyTorch's
conjugated.defvjp(lambda z: (z * z, z), lambda z, g: (2 * g * z,))


def raising(x):
    raise KeyError("nothing")


def cast(x):
    xp = x.__array_namespace__()
    return xp.astype(x, xp.float64 if on(x, "strict") else xp.float32)


RANDOM, COUNT = np.random.default_rng(0), itertools.count()
ENDS = np.asarray([0.0, 2.0])
WRONG = {
    "a lost gradient": (
        lambda x: x * x.detach(),
        (X,),
        "(?s)differences: the gradient of x.*a gradient is lost at .*"
        r"\.detach\(\): a constant from here on, by request",
    ),
    "a number returned": (
        lambda x: math.fsum([1.0, float(x.sum())]),
        (X,),
        "numpy, float64, values: the function returns no array, but float. What has left as a "
        "Python number has no derivative",
    ),
    "a value on one backend": (
        lambda x: x**2 + (1e-6 if on(x, "strict") else 0.0),
        (X,),
        r"^<lambda> fails: strict, float64, values: the result: 6 of 6 elements differ, the worst "
        r"at \[1, 1\]: 0.040001.*, expected 0.04",
    ),
    "inf on one backend": (
        lambda x: 1 / x if on(x, "numpy") else x.__array_namespace__().clip(1 / x, max=1e6),
        (ENDS,),
        r"strict, float64, values: the result: 1 of 2 elements differ, the worst at \[0\]: "
        "1000000.0, expected inf as on numpy",
    ),
    "a dtype on one backend": (
        cast,
        (X,),
        "strict, float64, values: the result has dtype float64, on numpy float32. Where an "
        "array is made, say dtype=x.dtype",
    ),
    "a gradient on one backend": (
        lambda x: half(x) if on(x, "strict") else x**2,
        (X,),
        r"^<lambda> fails: strict, float64, gradient: the gradient of x: 6 of 6 elements differ, "
        r"the worst at \[1, 0\]: .* as on numpy in float64",
    ),
    "a complex gradient": (conjugated, (Z,), r"numpy, float64, differences: the gradient of z\["),
    "conversion to NumPy": (
        lambda x: mg.asarray(np.linalg.norm(np.asarray(x))) * x,
        (X,),
        r"(?s)gradient: GradientError: Can't call numpy\(\) on Tensor that requires grad.*"
        r"\(the function turns an array into one of NumPy, which has no derivative: call the "
        r"functions of xp = x.__array_namespace__\(\)",
    ),
    "an array of NumPy": (
        lambda x: np.asarray(x.detach()) * 2 if on(x, "strict") else x * 2,
        (X,),
        "strict, float64, values: the result is a numpy.ndarray, no array of 'strict': the "
        "function has left the library",
    ),
    "arrays of two libraries": (
        lambda x: x * X if on(x, "strict") else x,
        (X,),
        r"(?s)strict, float64, pure: MixedBackendsError: .*\(an array of another library than that "
        r"of the arguments: make constants by xp.asarray, with xp = x.__array_namespace__\(\)\)",
    ),
    "what raises": (raising, (X,), "^raising fails: numpy, float64, pure: KeyError: 'nothing'"),
    "what one library lacks": (
        lambda x: x if on(x, "numpy") else x.__array_namespace__().quux(x),
        (X,),
        "the namespace 'multigrad.strict' has no 'quux'",
    ),
    "a shape on one backend": (
        lambda x: x.reshape((6,)) if on(x, "strict") else x,
        (X,),
        r"strict, float64, values: the result has shape \(6,\), on numpy \(2, 3\)",
    ),
    "a structure on one backend": (
        lambda x: {"a" if on(x, "strict") else "b": x},
        (X,),
        r"strict, float64, values: the result has the result\['a'\], on numpy the result\['b'\]",
    ),
    "a number on one backend": (
        lambda x: (x, 2 if on(x, "strict") else 1),
        (X,),
        r"strict, float64, values: the result\[1\]: 2, expected 1 as on numpy",
    ),
    "a text on one backend": (
        lambda x: (x, "b" if on(x, "strict") else "a"),
        (X,),
        r"the result\[1\] is 'b', on numpy 'a'",
    ),
    "an array on one backend": (
        lambda x: {"a": x, "n": x[0, 0] if on(x, "strict") else 1.0},
        (X,),
        r"the result\['n'\] is an array, on numpy a float",
    ),
    "the end of the domain": (
        lambda x: x.__array_namespace__().sqrt(x),
        (ENDS,),
        "The function is not finite beside this point.",
    ),
    "a function that varies fast": (
        lambda x: half(x.__array_namespace__().sin(3e5 * x)),
        (np.asarray([1.0]),),
        r"The differences depend on their step \(.*\): the function has a kink or a jump near this "
        "point, or varies fast",
    ),
    "no differences": (
        lambda x: 1 / x,
        (ENDS,),
        r"<lambda> fails: numpy, float64, differences: the result\[0\] is inf at these arguments, "
        "where there are no differences.",
    ),
    "random numbers": (
        lambda x: x * float(RANDOM.normal()),
        (X,),
        "^<lambda> fails: numpy, float64, pure: two calls with the same arguments disagree, the "
        "result: 6 of 6 elements differ.* Draw random numbers outside, and pass them as an argument",
    ),
    "shapes that change": (
        lambda x: x[: 1 + next(COUNT) % 2],
        (X,),
        "two calls with the same arguments disagree, the result has shapes",
    ),
    "structures that change": (
        lambda x: [x] * (1 + next(COUNT) % 2),
        (X,),
        "two calls with the same arguments give different structures",
    ),
}


@pytest.mark.filterwarnings("ignore:Converting a ")
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case):
    function, arguments, told = WRONG[case]
    assert re.search(told, fails(function, *arguments))


def test_nan_and_inf_are_compared():
    x = np.asarray([1.0, math.nan, math.inf, -math.inf])

    def finite(x):
        xp = x.__array_namespace__()
        return xp.where(xp.isfinite(x), x, xp.ones_like(x)) ** 2

    passes(finite, x)
    passes(lambda x: 1 / x, ENDS, checks=("values", "gradient"))


class Square(mg.autograd.Function):
    """x**2 with all of its rules, of which a test changes one."""

    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * 2 * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        return x**2, in_dims[0]


def test_a_wrong_second_derivative():
    class Wrong(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x.detach()

    text = fails(Wrong.apply, X, leave_out="vmap")
    assert (
        "numpy, float64, second: the second derivative of args[0], reverse mode twice: 6 of 6 "
        "elements differ" in text
    )
    assert "by finite differences" in text


def test_a_wrong_tangent():
    class Wrong(Square):
        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t * x

    text = fails(lambda x: Wrong.apply(x), X, checks=("gradient", "differences", "jvp"))
    assert text.startswith(
        "<lambda> fails: numpy, float64, jvp: the tangent of the result: 6 of 6 elements "
        "differ, the worst at "
    )
    without = fails(lambda x: Wrong.apply(x), X, checks=("gradient", "jvp"))
    assert "forward mode is not the adjoint of the gradients: Re<g, jvp(t)>: " in without
    assert " = Re<vjp(g), t>" in without


def test_a_wrong_batching_rule():
    class Wrong(Square):
        @staticmethod
        def vmap(info, in_dims, x):
            return x**2 + 1, in_dims[0]

    passes(lambda x: Square.apply(x), X)
    text = fails(lambda x: Wrong.apply(x), X, checks="vmap")
    assert text.startswith(
        "<lambda> fails: numpy, float64, vmap: the result of a batch: 18 of 18 elements differ"
    )
    assert "as in a loop" in text


def test_branches_on_values():
    pytest.importorskip("jax")

    def f(x):
        return x**2 if x[0] > 0 else -x

    text = fails(f, X[1], backends=("numpy", "jax"))
    assert text.startswith(
        "f fails: numpy, float64, vmap: BatchingError: bool() of an array inside vmap"
    )
    assert "let xp.where choose between both results, or pass leave_out=('vmap', 'jit')" in text
    assert "also jax, float" in text and "jit: " in text
    compiled = fails(f, X[1], backends="jax", checks="jit")
    assert (
        "(a compiler traces the function without values: no branch, no Python number and no "
        "shape may depend on one; " in compiled
    )
    assert "or pass leave_out='jit')" in compiled
    passes(f, X[1], backends=("numpy", "jax"), leave_out=("vmap", "jit"))


@pytest.mark.parametrize("library", [*LIBRARIES, "jax"])
def test_a_changed_argument(library):
    """Also where the arrays of the library are immutable."""
    if library == "jax":
        pytest.importorskip("jax")

    def f(x, n):
        x[0, 0] = 5.0
        return x * n

    text = fails(f, X, 2, backends=library)
    assert (
        f"{library}, float64, pure: the function changes its argument x in place, from [[ 0.3, "
        "-1.2,  0.7], [ 1.5,  0.2, -0.4]] to [[ 5." in text
    )
    assert "work on a copy, xp.asarray(x, copy=True)" in text
    assert "the function writes into its argument" in fails(
        f, X, 2, backends=library, leave_out="pure"
    )

    def copying(x):
        x = x.__array_namespace__().asarray(x, copy=True)
        x[0, 0] = 5.0
        return x

    passes(copying, X, backends=library)


def test_an_assertion_of_the_function_itself_is_told_from_one_about_it():
    def f(x):
        assert x.shape == (3,)
        return x

    with pytest.raises(
        AssertionError, match=r"f fails: numpy, float64, pure: AssertionError: "
    ) as caught:
        check_function(f, X, backends="numpy")
    assert isinstance(caught.value.__cause__, AssertionError)
    with pytest.raises(AssertionError) as caught:
        check_function(half, X, backends="numpy")
    assert caught.value.__cause__ is None


def test_it_does_not_run_where_assertions_are_left_out():
    code = """
from multigrad_conformance import check_function, check_rule
for run in (lambda: check_function(abs, 1.0), lambda: check_rule("tanh")):
    try:
        run()
    except RuntimeError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-O", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "conformance")])},
    )
    assert done.stdout.splitlines() == [
        f"{name} is made of assertions, which Python leaves out with -O and PYTHONOPTIMIZE: run "
        "it without"
        for name in ("check_function", "check_rule")
    ], done.stderr


# ----- where a function is not smooth -----


def relu(x):
    xp = x.__array_namespace__()
    return xp.maximum(x, 0 * xp.ones_like(x))


def test_a_kink_at_the_point():
    """The gradient of the middle is that of central differences."""
    passes(relu, np.asarray([1.0, 0.0]), checks=("gradient", "differences", "jvp", "vmap"))


def test_a_kink_is_told_from_a_wrong_gradient():
    def f(x):
        xp = x.__array_namespace__()
        return xp.where(x > 0, x, 0 * x)

    text = fails(f, np.asarray([1.0, 0.0]), dtypes="float64")
    assert (
        "numpy, float64, differences: the gradient of x[1] is 0.0, but finite differences give"
        in text
    )
    assert (
        "The function is not smooth at this point: its slope is " in text
        and " on one side and " in text
    )
    assert (
        "Choose another point, or pass leave_out='differences', which leaves the comparison "
        "between backends and modes." in text
    )
    passes(f, np.asarray([1.0, 0.0]), leave_out="differences")
    passes(f, np.asarray([1.0, 1e-5]))  # shorter steps do not cross it


# ----- tolerances -----


def test_float32_has_a_tolerance_of_its_own():
    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(xp.exp(x) / xp.sum(xp.exp(x)) * x)

    passes(f, X)

    rough = lambda x: x + (1e-3 if x.dtype == x.__array_namespace__().float32 else 0.0)
    assert "numpy, float32, values: the result: 6 of 6 elements differ" in fails(rough, X)
    passes(rough, X, rtol={"float32": 1e-1})
    passes(rough, X, atol={"float32": 1e-1})
    passes(rough, X, dtypes="float64")


def test_one_number_is_meant_of_float64_and_loosens_float32_with_it():
    off = lambda x: x * (1 + (1e-6 if on(x, "strict") else 0.0))
    assert "strict, float64, values" in fails(off, X)
    passes(off, X, rtol=1e-5)
    passes(lambda x: x * (1 + (1e-3 if on(x, "strict") else 0.0)), X, rtol=1e-2)
    passes(lambda x: x + (1e-3 if on(x, "strict") else 0.0), X, atol=1e-2)
    assert "values" in fails(
        lambda x: x + (1e-13 if on(x, "strict") else 0.0), X, rtol=1e-15, atol=0.0
    )


def test_tiny_numbers_are_compared_too():
    assert "values" in fails(lambda x: 1e-25 * x * (1.001 if on(x, "strict") else 1.0), X)
    assert "differences" in fails(lambda x: 1e-25 * half(x), X)


# ----- choices -----


def test_checks_are_chosen_by_name():
    passes(half, X, checks="values")
    passes(half, X, leave_out=["differences", "jvp", "second"])
    with pytest.raises(
        ValueError,
        match=r"there is no check 'grad'; there are pure, values, gradient, differences, jvp, "
        r"second, vmap, jit, variants",
    ):
        check_function(half, X, checks=["grad"])
    with pytest.raises(ValueError, match="there is no check 'grad'"):
        check_function(half, X, leave_out="grad")


def test_backends_and_dtypes_are_chosen_by_name():
    from multigrad.errors import BackendError

    with pytest.raises(BackendError, match="nosuch"):
        check_function(softplus, X, backends="nosuch")
    with pytest.raises(ValueError, match="backends is empty; name at least one backend"):
        check_function(softplus, X, backends=[])
    with pytest.raises(ValueError, match="dtypes are 'float64' and 'float32' .* not 'int8'"):
        check_function(softplus, X, dtypes="int8")
    text = fails(half, X, backends="strict", dtypes=np.float32)
    assert (
        text.startswith("half fails: strict, float32, differences")
        and "numpy, " not in text
        and "strict, float64" not in text
    )


@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_tolerances_that_are_none(name):
    for value in (-1.0, math.nan, math.inf, "small", True):
        with pytest.raises(
            ValueError,
            match=f"{name} must be a number of 0 or more, or a dictionary of these by dtype, not ",
        ):
            check_function(softplus, X, **{name: value})
    with pytest.raises(
        ValueError, match=f"{name} has the keys 'float64' and 'float32', not 'float16'"
    ):
        check_function(softplus, X, **{name: {"float16": 1.0}})


def test_arguments_that_do_not_fit():
    with pytest.raises(
        TypeError,
        match=r"check_function: softplus cannot be called with these arguments: too many "
        r"positional arguments",
    ):
        check_function(softplus, X, X)
    with pytest.raises(TypeError, match="the first argument must be a function, not ndarray"):
        check_function(X)
    with pytest.raises(
        TypeError,
        match="the argument x is an array of dtype object, which the standard does not have",
    ):
        check_function(softplus, np.asarray([1, None]))
    with pytest.raises(
        ValueError, match="constants names 'y', which is not an argument of this call: there are x"
    ):
        check_function(softplus, X, constants="y")


def test_a_message_lists_all_that_fails():
    pytest.importorskip("jax")
    text = fails(half, X, backends=("numpy", "strict", "jax"))
    assert (
        len([line for line in text.splitlines() if line.startswith("also ")]) == 10
        and "more" in text.splitlines()[-1]
    )


# ----- dtypes, devices, variants -----


def test_a_float64_that_appears_from_float32():
    """NumPy makes it as well, so the comparison with NumPy does not notice it."""

    def wide(x):
        return x * x.__array_namespace__().ones(3, dtype=x.__array_namespace__().float64)

    text = fails(wide, X[0], backends="numpy")
    assert (
        "numpy, float32, values: the result has dtype float64, though every argument is in single "
        "precision. Where an array is made, say dtype=x.dtype" in text
    )
    passes(wide, X[0], backends="numpy", dtypes="float64")
    passes(lambda x: x * x.__array_namespace__().ones(3, dtype=x.dtype), X[0], backends="numpy")


def test_an_array_that_is_made_on_another_device():
    def made(x):
        return x * x.__array_namespace__().ones(3, dtype=x.dtype)

    text = fails(made, X[0])
    assert (
        "strict, float64, variants: on the variant 'device1', ValueError: " in text
        and "Where an array is made, say dtype=x.dtype, device=x.device" in text
    )
    passes(made, X[0], leave_out="variants")
    passes(lambda x: x * x.__array_namespace__().ones(3, dtype=x.dtype, device=x.device), X[0])

    def alone(x):
        return x, x.__array_namespace__().ones(3, dtype=x.dtype)

    assert "the result[1] is on " in fails(alone, X[0], checks=("values", "variants"))


def test_a_variant_may_lack_what_the_function_needs():
    """array_api_strict has flags under which it refuses masks."""
    passes(lambda x: x[x > 0], X, leave_out=("vmap", "differences"))
