"""Rules of users for functions that have a derivative already, and for functions of SciPy that have
none: `defvjp`, `defjvp` and their relatives replace the derivative, as in HIPS autograd.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

pytest.importorskip("scipy", reason="SciPy is not installed")

import multigrad_autograd as ag
import multigrad_autograd.numpy as np
from multigrad_autograd import core, extend, rules
from multigrad_autograd.misc.fixed_points import fixed_point
from multigrad_autograd.scipy import integrate, linalg, signal, special, stats

Function = Callable[..., Any]
X = onp.asarray([0.3, 0.5, 0.7])
SPD = onp.asarray([[2.0, 0.3], [0.3, 1.0]])
UPPER = onp.triu(SPD)


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    """Whatever rule a test defines is gone afterwards."""
    before = dict(core.primitive_vjps), dict(core.primitive_jvps)
    yield
    for known, kept in zip((core.primitive_vjps, core.primitive_jvps), before, strict=True):
        for function in [f for f in known if f not in kept]:
            del known[function]


@pytest.fixture(autouse=True)
def no_words() -> Iterator[None]:
    """Most tests do not ask which operators keep their derivative."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the rule .* is used where the function itself is called")
        yield


# By name: a function, its arguments, and the number of the one that is differentiated.
FUNCTIONS: dict[str, tuple[Function, tuple[Any, ...], int]] = {
    "unary": (np.sin, (X,), 0),
    "binary": (np.multiply, (X, X + 1), 1),
    "binary with a number": (np.power, (X, 2.0), 0),
    "reduction": (np.prod, (X,), 0),
    "of one shape": (np.reshape, (X, (3, 1)), 0),
    "of a list": (np.concatenate, ([X, X],), 0),
    "of NumPy's protocols": (np.cumsum, (X,), 0),
    "product": (np.dot, (SPD, SPD), 1),
    "einsum": (np.einsum, ("ij,jk->ik", SPD, SPD), 2),
    "where": (np.where, (X > 0.4, X, 1.0), 1),
    "full": (np.full, ((2,), 0.5), 1),
    "numpy.linalg": (np.linalg.det, (SPD,), 0),
    "numpy.linalg, own": (np.linalg.eigh, (SPD,), 0),
    "numpy.fft": (np.fft.fft, (X,), 0),
    "scipy.special": (special.erf, (X,), 0),
    "scipy.special with parameters": (special.jn, (2, X), 1),
    "scipy.special.logsumexp": (special.logsumexp, (X,), 0),
    "scipy.linalg.solve_triangular": (linalg.solve_triangular, (UPPER, X[:2]), 1),
    "scipy.linalg.sqrtm": (linalg.sqrtm, (SPD,), 0),
    "scipy.linalg.solve_banded": (linalg.solve_banded, ((0, 0), X[None, :], X), 2),
    "scipy.linalg, no rule": (linalg.expm, (SPD,), 0),
    "scipy.linalg, no rule, of two": (linalg.solve, (SPD, X[:2]), 1),
    "scipy.signal": (signal.convolve, (X, X), 1),
    "scipy.integrate": (integrate.odeint, (lambda y, t: -y, X, X), 1),
    "scipy.stats": (stats.norm.logpdf, (X, 0.0, 1.0), 0),
    "scipy.stats, of vectors": (stats.multivariate_normal.logpdf, (X[:2], X[:2], SPD), 1),
    "scipy.stats, no rule": (stats.dirichlet.rvs, (X, 1, 0), 0),
    "numpy.random": (np.random.normal, (X,), 0),
    "misc": (
        fixed_point,
        (lambda a: lambda x: 0.5 * (x + a / x), 2.0, 1.0, lambda x, y: np.abs(x - y), 1e-14),
        1,
    ),
}


NONE = (
    "scipy.linalg, no rule",
    "scipy.linalg, no rule, of two",
    "scipy.stats, no rule",
    "numpy.random",
)
"""Those that have no derivative of their own."""


def first(out: Any) -> Any:
    """Return one array of the outputs."""
    return out[0] if isinstance(out, tuple) else out


def filled(x: Any, number: float) -> Any:
    """Return an array, or a container of arrays, of the shape of `x`."""
    if isinstance(x, (list, tuple)):
        parts = [filled(y, number) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return onp.full(onp.shape(x), number)


def same(x: Any, y: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return all(map(same, x, y))
    return onp.array_equal(x, y)


def differentiated(name: str) -> tuple[Function, Any, Function]:
    """Return the function, the argument, and a real function of that argument."""
    function, args, at = FUNCTIONS[name]
    return (
        function,
        args[at],
        lambda x: np.sum(np.real(first(function(*args[:at], x, *args[at + 1 :])))),
    )


@pytest.mark.parametrize("before", [False, True], ids=["new", "used before"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_replaces_the_derivative(name: str, before: bool) -> None:
    function, x, of_x = differentiated(name)
    _, args, at = FUNCTIONS[name]
    out, seen = function(*args), []

    def maker(ans: Any, *given: Any, **kwargs: Any) -> Function:
        seen.append((len(given), kwargs, any(isinstance(a, extend.Box) for a in given)))
        return lambda g: filled(given[at], 7.0)

    if before and name in NONE:
        with pytest.raises((NotImplementedError, RuntimeError)):
            ag.grad(of_x)(x)
    elif before:
        assert not same(ag.grad(of_x)(x), filled(x, 7.0))
    extend.defvjp(function, *([None] * at), maker)
    assert same(ag.grad(of_x)(x), filled(x, 7.0))
    assert seen == [(len(args), {}, False)]
    if name != "numpy.random":
        assert same(function(*args), out)


@pytest.mark.parametrize("before", [False, True], ids=["new", "used before"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_of_forward_mode_replaces_the_derivative(name: str, before: bool) -> None:
    function, args, at = FUNCTIONS[name]
    moved = ag.make_jvp(lambda x: function(*args[:at], x, *args[at + 1 :]))(args[at])
    if before and name in NONE:
        with pytest.raises((NotImplementedError, RuntimeError)):
            moved(filled(args[at], 1.0))
    elif before and name != "scipy.integrate":  # it has reverse mode only
        out, tangent = moved(filled(args[at], 1.0))
        assert not same(tangent, filled(out, 7.0))
    extend.defjvp(function, *([None] * at), lambda g, ans, *args, **kwargs: filled(ans, 7.0))
    out, tangent = moved(filled(args[at], 1.0))
    assert same(tangent, filled(out, 7.0))


OWN = [n for n in FUNCTIONS if n not in (*NONE, "scipy.integrate", "misc")]
"""Those with a derivative in both modes that does not call the function itself."""


@pytest.mark.parametrize("name", OWN)
def test_the_other_mode_keeps_the_derivative(name: str) -> None:
    """As in HIPS autograd, where each mode has its own rules. Second derivatives mix both."""
    function, args, at = FUNCTIONS[name]
    moved = ag.make_jvp(lambda x: function(*args[:at], x, *args[at + 1 :]))(args[at])
    want = moved(filled(args[at], 1.0))[1]
    extend.defvjp(function, *([None] * at), lambda ans, *a, **k: lambda g: filled(a[at], 7.0))
    got = moved(filled(args[at], 1.0))[1]
    assert type(first(got)) is type(first(want))
    onp.testing.assert_allclose(first(got), first(want), rtol=1e-12)
    del core.primitive_vjps[function]
    _, x, of_x = differentiated(name)
    gradient = ag.grad(of_x)(x)
    extend.defjvp(function, *([None] * at), lambda g, ans, *a, **k: filled(ans, 7.0))
    again = ag.grad(of_x)(x)
    assert type(again) is type(gradient)
    onp.testing.assert_allclose(again, gradient, rtol=1e-12)


def test_a_function_keeps_the_rules_of_the_arguments_that_are_given() -> None:
    extend.defvjp(np.arctan2, lambda ans, y, x: lambda g: 7.0 * g)
    assert ag.grad(np.arctan2)(1.0, 2.0) == 7.0
    with pytest.raises(NotImplementedError, match="VJP of arctan2 wrt argnum 1 not defined"):
        ag.grad(np.arctan2, 1)(1.0, 2.0)
    extend.defvjp(np.arctan2, lambda ans, y, x: lambda g: 8.0 * g, argnums=(1,))
    assert ag.grad(np.arctan2, 1)(1.0, 2.0) == 8.0
    with pytest.raises(NotImplementedError, match="VJP of arctan2 wrt argnum 0 not defined"):
        ag.grad(np.arctan2)(1.0, 2.0)
    extend.defvjp_argnum(
        np.arctan2, lambda i, ans, args, kwargs: lambda g: g * (10.0 * i + args[0] + ans)
    )
    both = ag.grad(np.arctan2, (0, 1))(1.0, 2.0)
    onp.testing.assert_allclose(both, (1.0 + onp.arctan2(1, 2), 11.0 + onp.arctan2(1, 2)))
    extend.defvjp_argnums(
        np.arctan2,
        lambda argnums, ans, args, kwargs: lambda g: [g * 100.0 * (i + 1) for i in argnums],
    )
    assert ag.grad(np.arctan2, (0, 1))(1.0, 2.0) == (100.0, 200.0)
    assert ag.grad(np.arctan2, 1)(1.0, 2.0) == 200.0


def test_a_function_keeps_the_rules_of_forward_mode_that_are_given() -> None:
    extend.defjvp(np.arctan2, lambda g, ans, y, x: 7.0 * g)
    assert ag.deriv(np.arctan2)(1.0, 2.0) == 7.0
    with pytest.raises(NotImplementedError, match="JVP of arctan2 wrt argnum 1 not defined"):
        ag.deriv(np.arctan2, 1)(1.0, 2.0)
    extend.defjvp_argnum(np.arctan2, lambda i, g, ans, args, kwargs: g * (i + 3.0))
    assert ag.deriv(np.arctan2, 1)(1.0, 2.0) == 4.0
    extend.defjvp_argnums(
        np.arctan2, lambda argnums, gs, ans, args, kwargs: 5.0 * sum(gs) + len(argnums)
    )
    assert ag.make_jvp(lambda p: np.arctan2(p[0], p[1]))(onp.ones(2))(onp.ones(2))[1] == 12.0
    extend.def_linear(np.arctan2)
    assert ag.deriv(np.arctan2)(1.0, 2.0) == onp.arctan2(1.0, 2.0)


def test_a_rule_is_differentiated_in_its_turn() -> None:
    """The rule of the second derivative is its own; the one of another mode is the function's."""
    extend.defvjp(np.sin, lambda ans, x: lambda g: g * np.cos(x) * 2.0)
    assert ag.grad(ag.grad(np.sin))(0.3) == pytest.approx(-2.0 * onp.sin(0.3))
    assert ag.deriv(ag.grad(np.sin))(0.3) == pytest.approx(-2.0 * onp.sin(0.3))
    assert ag.grad(ag.deriv(np.sin))(0.3) == pytest.approx(-onp.sin(0.3))
    extend.defvjp(np.sin, lambda ans, x: lambda g: g * np.sin(x) / x)
    want = onp.sin(0.3) / 0.3**2 - onp.sin(0.3) / 0.3**2
    assert ag.grad(ag.grad(np.sin))(0.3) == pytest.approx(want)


def test_a_rule_belongs_to_the_calls_after_it() -> None:
    """As in HIPS autograd, where a call takes the rule that there is."""
    pullback, _ = ag.make_vjp(np.sin)(0.3)
    extend.defvjp(np.sin, lambda ans, x: lambda g: 7.0 * g)
    later, _ = ag.make_vjp(np.sin)(0.3)
    extend.defvjp(np.sin, lambda ans, x: lambda g: 8.0 * g)
    last, _ = ag.make_vjp(np.sin)(0.3)
    assert (pullback(1.0), later(1.0), last(1.0)) == (pytest.approx(onp.cos(0.3)), 7.0, 8.0)
    del core.primitive_vjps[np.sin]
    assert ag.grad(np.sin)(0.3) == pytest.approx(onp.cos(0.3))
    core.primitive_vjps[np.sin] = lambda argnums, ans, args, kwargs: lambda g: [9.0 * g]
    assert ag.grad(np.sin)(0.3) == 9.0


def test_options_and_arrays_by_name_reach_the_rule() -> None:
    seen = []

    def maker(ans: Any, a: Any, b: Any, **kwargs: Any) -> Function:
        seen.append(kwargs)
        return lambda g: 7.0 * g

    extend.defvjp(linalg.solve_triangular, None, maker)
    ag.grad(lambda b: np.sum(linalg.solve_triangular(UPPER, b, trans=1, lower=True)))(X[:2])
    assert seen == [{"trans": 1, "lower": True}]
    extend.defvjp(np.sin, lambda ans, x, **kwargs: seen.append(kwargs) or (lambda g: 7.0 * g))
    assert ag.grad(lambda x: np.sin(x, dtype="float64"))(0.3) == 7.0
    assert seen[1:] == [{"dtype": "float64"}]
    extend.defvjp(linalg.expm, lambda ans, a: lambda g: 7.0 * g)
    with pytest.raises(NotImplementedError, match="scipy.linalg.expm has no derivative here"):
        ag.grad(lambda a: np.sum(linalg.expm(A=a)))(SPD)


def test_a_keyword_has_no_derivative_and_says_so() -> None:
    """HIPS autograd returns a box here; the part of the keyword was missing from the gradient."""

    @extend.primitive
    def scaled(x: Any, scale: Any = 1.0) -> Any:
        return x * scale

    extend.defvjp(scaled, lambda ans, x, scale: lambda g: g * scale)
    for loss in (
        lambda s: scaled(s, scale=s),
        lambda x: ag.grad(lambda s: scaled(x, scale=s))(2.0),
    ):
        with pytest.raises(
            TypeError,
            match="scaled: the keyword argument 'scale' needs a derivative, which only positional "
            "arguments have; pass it by position",
        ):
            ag.grad(loss)(3.0)
    assert ag.grad(lambda s: ag.grad(lambda x: scaled(x, scale=s))(1.0))(3.0) == 1.0
    assert ag.grad(lambda s: ag.value_and_grad(lambda x: scaled(x, scale=s))(2.0)[0])(3.0) == 2.0


def test_deprecated_methods_and_the_functions_agree() -> None:
    @ag.primitive
    def cubed(x: Any) -> Any:
        return x**3

    extend.defvjp(cubed, lambda ans, x: lambda g: 7.0 * g)
    assert ag.grad(cubed)(2.0) == 7.0
    with pytest.warns(DeprecationWarning, match="The defgrad method is deprecated"):
        cubed.defgrad(lambda ans, x: lambda g: 8.0 * g)
    assert ag.grad(cubed)(2.0) == 8.0
    with pytest.warns(DeprecationWarning, match="The defvjp method is deprecated"):
        cubed.defvjp(lambda g, ans, vs, gvs, x: 9.0 * g)
    assert ag.grad(cubed)(2.0) == 9.0
    with pytest.warns(DeprecationWarning, match="The defvjp_is_zero method is deprecated"):
        cubed.defvjp_is_zero()
    assert ag.grad(cubed)(2.0) == 0.0
    extend.defvjp(cubed, lambda ans, x: lambda g: 10.0 * g)
    assert ag.grad(cubed)(2.0) == 10.0


def test_functions_that_are_registered_as_constant() -> None:
    @extend.primitive
    def squared(x: Any) -> Any:
        return x**2

    extend.register_notrace(extend.VJPNode, squared)
    assert ag.grad(lambda x: x + squared(x))(3.0) == 1.0
    try:
        extend.register_notrace(extend.VJPNode, np.sinc)
        assert ag.grad(lambda x: x + np.sinc(x))(0.3) == 1.0
        extend.register_notrace(extend.VJPNode, special.erf)
        assert ag.grad(lambda x: x + special.erf(x))(0.3) == 1.0
    finally:
        rules.notrace_primitives.clear()
    assert ag.grad(special.erf)(0.3) == pytest.approx(2 / onp.sqrt(onp.pi) * onp.exp(-0.09))


def plain(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    "define, what",
    [
        (lambda f: extend.defvjp(f, lambda ans, x: lambda g: g), "a VJP"),
        (lambda f: extend.defjvp(f, lambda g, ans, x: g), "a JVP"),
        (lambda f: extend.defvjp_argnums(f, lambda *a: None), "a VJP"),
        (lambda f: extend.def_linear(f), "a JVP"),
        (lambda f: extend.register_notrace(extend.VJPNode, f), "register_notrace"),
    ],
)
def test_a_rule_that_would_not_be_used_is_refused(define: Function, what: str) -> None:
    """NumPy's own functions, Python's, and those that are called on the values of boxes."""
    for function, name in ((onp.sin, "sin"), (plain, "plain"), (np.floor, "floor")):
        with pytest.raises(
            TypeError,
            match=f"{what} for {name} would never be used: {name} is not a primitive. Make it one, "
            rf"f = extend.primitive\({name}\), and define a rule for f and call f in its place",
        ):
            define(function)
    floor = extend.primitive(np.floor)
    extend.defvjp(floor, lambda ans, x: lambda g: g)
    assert ag.grad(floor)(1.5) == 1.0


@pytest.mark.parametrize(
    "define",
    [
        lambda f: extend.defvjp(f, lambda ans, x: lambda g: g),
        lambda f: extend.defjvp(f, lambda g, ans, x: g),
        lambda f: extend.defvjp_argnum(f, lambda *known: lambda g: g),
        lambda f: extend.defjvp_argnums(f, lambda argnums, gs, *known: gs[0]),
        lambda f: extend.def_linear(f),
        lambda f: core.primitive_vjps.__setitem__(f, lambda *known: lambda g: [g]),
    ],
    ids=["defvjp", "defjvp", "defvjp_argnum", "defjvp_argnums", "def_linear", "table"],
)
def test_the_warning_names_the_line_that_defines_the_rule(define: Callable[[Any], None]) -> None:
    with pytest.warns(UserWarning, match="the rule of sinh is used where") as caught:
        define(np.sinh)
    assert [w.filename for w in caught] == [__file__]


def test_operators_keep_their_derivative_and_a_warning_says_so() -> None:
    for function, forms in (
        (np.multiply, r"the operator \*"),
        (np.matmul, "the operator @"),
        (np.sum, "the method sum"),
        (np.dot, "the method dot"),
    ):
        with pytest.warns(
            UserWarning,
            match=f"the rule of {function.__name__} is used where the function itself is called; "
            f"{forms} of boxes, and numpy.{function.__name__}, keep multigrad's",
        ):
            extend.defvjp(function, lambda ans, x, *y: lambda g: 7.0 * g)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extend.defvjp(np.linalg.det, lambda ans, x: lambda g: 7.0 * g)
    assert ag.grad(lambda x: x * 3.0)(2.0) == 3.0
    assert ag.grad(lambda x: np.multiply(x, 3.0))(2.0) == 7.0
