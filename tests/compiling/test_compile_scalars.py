"""Which results are scalars and which are arrays without axes, and what iteration reads.

A scalar of NumPy is immutable, so `m -= 1` binds a name anew; an array without axes is written. A
recording must make the same difference as NumPy makes on the same arrays.
"""

from __future__ import annotations

import copy
import operator
import warnings
from functools import partial

import numpy as np
import pytest
from compiled_programs import X as ONE_TO_THREE
from compiled_programs import same

import multigrad as mg
from multigrad import func, tree
from multigrad.core.array_protocols import CHUNK
from multigrad.protocols import functions, ufuncs
from multigrad_conformance.differences import jacobian

X = np.asarray([0.25, 0.75, 0.5])
COMPLEX = X * (0.5 + 0.25j)
WHOLE = np.asarray([2, 1, 3])
TRUTHS = np.asarray([True, False, True])

KINDS = {
    "float": X,
    "float32": X.astype(np.float32),
    "complex": COMPLEX,
    "int": WHOLE,
    "bool": TRUTHS,
}


def operands(x):
    """A vector, a scalar, an array without axes, a view without axes and a matrix."""
    return (
        x,
        x[1],
        x[1, ...].copy(),
        x[1, ...],
        np.stack([x, x[::-1], x * x]) if x.dtype.kind != "b" else np.stack([x, x, ~x]),
    )


FORMS = {
    "x": lambda f: lambda x, s, z, v, m: f(x),
    "scalar": lambda f: lambda x, s, z, v, m: f(s),
    "0-d": lambda f: lambda x, s, z, v, m: f(z),
    "matrix": lambda f: lambda x, s, z, v, m: f(m),
    "x, x": lambda f: lambda x, s, z, v, m: f(x, x[::-1]),
    "matrix, x": lambda f: lambda x, s, z, v, m: f(m, x),
    "scalar, scalar": lambda f: lambda x, s, z, v, m: f(s, s),
    "number, 0-d": lambda f: lambda x, s, z, v, m: f(1, z),
    "scalar, 0-d": lambda f: lambda x, s, z, v, m: f(s, z),
    "x, 50": lambda f: lambda x, s, z, v, m: f(x, 50),
    "x, x, 1": lambda f: lambda x, s, z, v, m: f(x, x, 1),
    "0-d, x, x": lambda f: lambda x, s, z, v, m: f(z, x, x),
    "truth, 0-d, 0-d": lambda f: lambda x, s, z, v, m: f(z > 0, z, z),
    "0-d, ()": lambda f: lambda x, s, z, v, m: f(z, ()),
    "x[:1]": lambda f: lambda x, s, z, v, m: f(x[:1]),
    "list": lambda f: lambda x, s, z, v, m: f([x, x]),
    "einsum": lambda f: lambda x, s, z, v, m: f("i,i->", x, x),
    "einsum of 0-d": lambda f: lambda x, s, z, v, m: f(",->", z, s),
}
"""How a function is called, of the operands."""


def shifted(f):
    """The results of `f`, and what each name of one holds after it was changed in place."""

    def function(*args):
        found = []
        for m in tree.leaves(f(*args)):
            found.append(m)
            if hasattr(m, "shape") and m.shape == ():
                lo = m
                if m.dtype == np.bool_:
                    lo ^= True
                else:
                    lo -= 1
                hi = m
                if m.dtype == np.bool_:
                    hi |= True
                else:
                    hi += 1
                found += [lo, hi]
        return found

    return function


def agree(found, expected, values):
    found, expected = tree.leaves(found), tree.leaves(expected)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        if hasattr(y, "shape") and hasattr(y, "dtype"):
            assert isinstance(x, np.generic) == isinstance(y, np.generic), (x, y)
            assert x.shape == y.shape
            # some dtypes are others on purpose
            if values and x.dtype == y.dtype and x.dtype.kind in "fciub":
                np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-12)


def called(f, args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*args), None
        except Exception as error:
            return None, error


def arguments(x):
    return [np.array(y) if type(y) is np.ndarray else y for y in operands(x)]


def compared(f, x, values=True):
    """Compare a function with its program: "same", or why there is nothing to compare."""
    expected, error = called(f, own := arguments(x))
    if error is not None:
        return "no call of NumPy"
    if not any(hasattr(y, "shape") and y.shape == () for y in tree.leaves(expected)):
        return "axes"
    g = func.compile(f, check=False)
    for k in range(3):
        found, error = called(g, ours := arguments(x))
        if error is not None and k == 0:
            return "refused"
        if error is not None:
            raise error
        agree(found, expected, values)
        agree(ours, own, values)
    return "same"


VALUES = {
    "numpy.empty_like": "its values are those that the memory had",
    "numpy.fft.fftn": "NumPy returns an array without axes as it is",
    "numpy.fft.ifftn": "NumPy returns an array without axes as it is",
    "modf": "both of its results may go into one array",
}
"""The functions that have other values in multigrad, with the reason."""


def functions_of_numpy():
    return {f"{f.__module__}.{f.__name__}": f for f in functions.TABLE}


def ufuncs_of_numpy():
    names = [*ufuncs.NAMES, *ufuncs.LOGICAL, "divmod", "modf", "frexp", "float_power"]
    found = {name: getattr(np, name) for name in names if hasattr(np, name)}
    return found | {f"{name}.reduce": getattr(np, name).reduce for name in ufuncs.REDUCTIONS}


def methods_of_arrays():
    found = {}
    for name in dir(np.ndarray):
        if callable(getattr(np.ndarray, name)) and not name.startswith("_"):
            found[f"{name}()"] = lambda x, *args, name=name: getattr(x, name)(*args)
        elif name in ("T", "mT", "real", "imag"):
            found[name] = lambda x, name=name: getattr(x, name)
    return found


def operators():
    found = {name: getattr(operator, name) for name in OPERATORS} | {"divmod": divmod}
    found["x[()]"] = lambda x: x[()]
    found["x[...]"] = lambda x: x[...]
    found["x[1]"] = lambda x: x[1]
    found["x[key]"] = lambda x: x[np.asarray(1)]
    found["x[1, ...]"] = lambda x: x[1, ...]
    found["x[1][1]"] = lambda x: x[1][1]
    found["list"] = list
    found["deepcopy"] = copy.deepcopy
    return found


OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
)


def with_keywords():
    return {
        f"{name} {keywords}": partial(getattr(np, name), **keywords)
        for keywords in ({"axis": 0}, {"keepdims": True}, {"axis": -1, "keepdims": False})
        for name in ("sum", "mean", "median", "max", "std", "var", "nanmean", "nanstd", "ptp")
    }


@pytest.mark.sweep_after(5)
@pytest.mark.parametrize(
    ("calls", "fewest"),
    [
        (functions_of_numpy, 60),
        (ufuncs_of_numpy, 45),
        (methods_of_arrays, 20),
        (operators, 18),
        (with_keywords, 9),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("kind", KINDS)
def test_results_have_the_class_that_numpy_gives_them(kind, calls, fewest):
    if kind in ("complex", "bool"):  # of which NumPy itself takes fewer
        fewest //= 2
    seen = set()
    for name, f in calls().items():
        for how, form in FORMS.items():
            try:
                outcome = compared(shifted(form(f)), KINDS[kind], name not in VALUES)
                if outcome == "no call of NumPy":  # the result is read-only, or text
                    outcome = compared(form(f), KINDS[kind], name not in VALUES)
            except Exception as error:
                error.add_note(f"{name}, called as {how}")
                raise
            if outcome == "same":
                seen.add(name)
    assert len(seen) >= fewest


# ----- What transformations return -----


def square(x):
    return mg.sum(x * x)


TRANSFORMED = {
    "grad": lambda x: func.grad(square)(x),
    "aux": lambda x: func.grad(lambda x: (square(x), {"most": mg.max(x)}), has_aux=True)(x),
    "jvp": lambda x: func.jvp(square, x, x),
    "jvp of the identity": lambda x: func.jvp(lambda x: x, x, x),
    "grad of grad": lambda x: func.grad(lambda x: mg.sum(func.grad(square)(x)))(x),
    "hvp": lambda x: func.hvp(square, x, x),
    "pullback": lambda x: func.vjp(square, x)[1](np.float64(2.0)),
    "linearize": lambda x: (func.linearize(square, x)[0], func.linearize(square, x)[1](x)),
    "jacfwd": lambda x: func.jacfwd(square)(x),
    "hessian": lambda x: func.hessian(square)(x),
    "vmap": lambda x: func.vmap(func.grad(lambda y: square(x) * y))(np.ones(2)),
    "scan": lambda x: func.scan(lambda c, y: (c * 0.5, c), x, np.ones(6)),
    "fori_loop": lambda x: func.fori_loop(0, 7, lambda i, c: c * 0.5, x),
}


@pytest.mark.parametrize("f", TRANSFORMED.values(), ids=TRANSFORMED)
def test_transformations_inside_return_what_they_return_outside(f):
    for x in (np.float64(1.5), np.asarray(1.5), np.asarray([1.5])):
        g, h = func.compile(f), func.compile(shifted(f))
        for _ in range(3):
            agree(g(x), f(x), True)
            agree(h(x), shifted(f)(x), True)


def test_a_derivative_is_a_scalar_where_the_function_takes_one():
    def nested(transform):
        return lambda x: func.jvp(transform, x, x)[1]

    def product(x):
        return func.hvp(square, x, x)[1]

    def pulled(x):
        return func.vjp(square, x)[1](np.float64(2.0))[0]

    for transform in (func.grad(square), nested(func.grad(square)), product, pulled):
        assert type(transform(np.float64(1.5))) is np.float64
        assert type(transform(np.asarray(1.5))) is np.ndarray
    assert type(nested(square)(np.asarray(1.5))) is np.float64
    assert type(func.jacrev(square)(np.float64(1.5))) is np.ndarray


# ----- Iteration -----


def running_of_the_same(x):
    for i, e in enumerate(x):
        if i + 1 < len(x):
            x[i + 1] += e
    return x * 1.0


def doubled_at_each_element(x):
    for e in x:
        x += e
    return x


def by_a_generator(x):
    return sum((x.__iadd__(1.0), e)[1] for e in x)


def unpacked_before(x):
    a, *rest = x
    x *= 2.0
    return a, rest, x


def of_rows(x):
    y = np.stack([x, x])
    for row in y:
        for e in row:
            y += e
    return y


def two_at_once(x):
    first, second = iter(x), iter(x)
    a = next(first)
    x += 10.0
    b, c = next(first), next(second)
    return a, b, c


ITERATIONS = (
    *(running_of_the_same, doubled_at_each_element, by_a_generator, unpacked_before),
    *(of_rows, two_at_once),
)


@pytest.mark.parametrize("f", ITERATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_an_element_is_read_when_it_is_asked_for(f, many):
    x = np.linspace(0.5, 1.0, 2 * CHUNK + 3) / CHUNK if many else ONE_TO_THREE
    same(f, (x,), (x / 2,), (x[::-1].copy(),))


@pytest.mark.parametrize("f", [running_of_the_same, doubled_at_each_element])
def test_tensors_and_transformations_read_it_then_too(f):
    """PyTorch's iteration makes views, so it also sees what was written before."""
    x = ONE_TO_THREE

    def loss(x):
        return mg.sum(f(x * 1.0) ** 2)

    expected = f(x.copy())
    np.testing.assert_array_equal(mg.asarray(f(mg.asarray(x.copy()))).array, expected)
    slope = func.jacfwd(lambda x: f(x * 1.0))(x).T @ (2 * expected)
    np.testing.assert_allclose(func.grad(loss)(x), slope, rtol=1e-12)
    w = mg.asarray(x, requires_grad=True)
    loss(w).backward()
    np.testing.assert_allclose(w.grad.array, slope, rtol=1e-12)
    numeric = jacobian(lambda x: loss(x).item(), x)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)
    rows = func.vmap(lambda x: f(x * 1.0))(np.stack([x, 2 * x]))
    np.testing.assert_array_equal(rows, np.stack([expected, f(2 * x)]))
    carried = func.scan(lambda c, _: (f(c * 1.0), None), x, np.zeros(3))[0]
    for _ in range(3):
        x = f(x * 1.0)
    assert np.all(np.isfinite(x))
    np.testing.assert_allclose(carried, x, rtol=1e-12)


def test_a_loop_without_writes_is_one_operation():
    g = func.compile(lambda x: sum(e * e for e in x))
    for k in range(3):
        assert g(ONE_TO_THREE + k) == np.sum((ONE_TO_THREE + k) ** 2)
    (program,) = g.programs
    names = [step.op.name for step in program.steps]
    assert names.count("unstack") == 1 and "getitem" not in names


@pytest.mark.parametrize("made", [mg.asarray, lambda s: s.__array_namespace__().asarray(s)])
def test_asarray_makes_an_array_of_a_scalar(made):
    def f(x):
        s = x[0]
        whole = made(s)
        same = whole
        same += 1.0
        return s, mg.asarray(whole), mg.asarray(x) * 1.0

    g = func.compile(f)
    for _ in range(3):
        s, whole, _ = g(ONE_TO_THREE)
        assert type(s) is np.float64 and s == 1.0
        assert type(whole) is np.ndarray and whole == 2.0


BY_NAMESPACE = {
    "einsum": lambda xp, x: xp.einsum("ij,ij->", x[:, None], x[:, None]),
    "interp": lambda xp, x: xp.interp(x[0, ...], x[1:], x[:2]),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x[0, ...]),
    "percentile": lambda xp, x: xp.percentile(x, 30.0),
    "quantile": lambda xp, x: xp.quantile(x, 0.3),
    "sinc": lambda xp, x: xp.sinc(x[0, ...]),
    "trace": lambda xp, x: xp.linalg.trace(x[:, None] * x),
    **{
        name: lambda xp, x, name=name: getattr(xp, name)(x)
        for name in ("median", "nanmax", "nanmedian", "nanstd", "nanvar")
    },
}


@pytest.mark.parametrize("name", BY_NAMESPACE)
def test_the_namespace_of_an_argument_returns_scalars_as_numpy_does(name):
    def f(x):
        return BY_NAMESPACE[name](x.__array_namespace__(), x)

    g = func.compile(f)
    for _ in range(3):
        assert type(g(X)) is type(f(X)) is np.float64
        assert g(X) == f(X)


def test_the_namespace_of_an_argument_in_an_inner_transformation():
    def f(x):
        xp = x.__array_namespace__()
        return func.grad(lambda y: xp.sum(xp.sin(y) * x + xp.zeros(3)))(x)

    g = func.compile(f)
    for _ in range(3):
        np.testing.assert_allclose(g(X), np.cos(X) * X, rtol=1e-14)


def test_arrays_of_the_namespace_are_arrays_of_the_library():
    """Their elements are no views, and what is computed of them are scalars."""

    def f(x):
        xp = x.__array_namespace__()
        made, filled = xp.zeros(3), xp.ones(())
        element = made[0]
        same = element
        element += 2.0
        filled[...] = x[1]
        product = filled * x[0]
        before = product
        product *= 3.0
        return made, element, same, filled, product, before

    g = func.compile(f)
    for _ in range(3):
        agree(g(X), f(X), True)


def test_what_a_list_selects_is_an_array_of_the_library():
    def f(x):
        part = x[[2, 0, 2]]
        element, total = part[0], part[part > 0.6].sum()
        same = total
        same += 2.0
        return part, element, total, same, list(part), x[[True, False, True]][1]

    g = func.compile(f)
    for _ in range(3):
        agree(g(X), f(X), True)


def test_an_array_without_axes_stays_one_when_a_scalar_is_written_into_it():
    def f(x):
        xp = x.__array_namespace__()
        whole, view, kept = xp.zeros(()), xp.zeros((1,))[0, ...], xp.ones(())
        same, scalar = whole, abs(x)
        whole += scalar
        whole += scalar
        view += scalar
        kept[...] = scalar
        return whole, same, view, kept

    x, g = np.asarray(0.5), func.compile(f)
    for _ in range(3):
        agree(g(x), f(x), True)
