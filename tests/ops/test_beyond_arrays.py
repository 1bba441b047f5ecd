"""NumPy's names for arrays beyond the standard: values at the edges against NumPy, and what is raised.

Ordinary arguments, with their gradients, dtypes and batches, are for the conformance suite.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad_conformance.differences import slope

RANDOM = np.random.default_rng(3)
BACKENDS = ["numpy", "strict", pytest.param("jax", marks=pytest.mark.slow)]


def real(*shape: int) -> Any:
    return np.asarray(RANDOM.uniform(-2, 2, shape))


def whole(*shape: int) -> Any:
    return np.asarray(RANDOM.integers(-5, 6, shape))


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(f, v) for v in value)
    return f(value) if isinstance(value, np.ndarray) else value


def flat(value: Any) -> list[Any]:
    return (
        [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]
    )


def agree(on: str, name: str, *args: Any, **kwargs: Any) -> None:
    """The function gives what NumPy's gives, of Tensors and of raw arrays, in NumPy's dtype."""
    expected = getattr(np, name)(*args, **kwargs)
    for given in (
        mapped(lambda x: mg.asarray(x, backend=on), args),
        mapped(lambda x: mg.asarray(x, backend=on).array, args),
    ):
        found = getattr(mg, name)(*given, **kwargs)
        assert isinstance(found, (list, tuple)) == isinstance(expected, (list, tuple))
        for ours, theirs in zip(flat(found), flat(expected), strict=True):
            assert isinstance(ours, mg.Tensor)
            theirs = np.asarray(theirs)
            assert ours.shape == theirs.shape and (
                on == "jax" or str(ours.dtype).rpartition(".")[2] == theirs.dtype.name
            ), (name, args, kwargs)
            np.testing.assert_allclose(
                values(ours),
                theirs,
                rtol=1e-5 if on == "jax" else 1e-12,
                atol=1e-5 if on == "jax" else 1e-12,
            )


def slopes_agree(function: Callable[..., Any], *args: Any) -> None:
    """The gradients of a weighted sum of the result are those of differences."""
    assert mg.autograd.gradcheck(function, [mg.asarray(a, requires_grad=True) for a in args])
    assert mg.autograd.gradgradcheck(function, [mg.asarray(a, requires_grad=True) for a in args])


# ----- einsum -----

SUBSCRIPTS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ba", [(2, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("iii->i", [(2, 2, 2)]),
    ("iijj->ji", [(2, 2, 3, 3)]),
    ("...ij,...jk", [(2, 1, 3, 4), (5, 4, 2)]),
    ("i...,j...->ij...", [(2, 3), (4, 3)]),
    ("...,...", [(2, 3), (3,)]),
    ("...", [()]),
    ("a,b,c,d->dbca", [(2,), (3,), (2,), (4,)]),
    ("bij,bjk->ik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,ij->ij", [(2, 1), (1, 3)]),
    ("iij,jk->ik", [(2, 2, 3), (3, 4)]),
    ("bijk,bljk->bil", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("ba,b->a", [(0, 3), (0,)]),
    (" i j , j -> i ", [(2, 3), (3,)]),
    ("abc,cd,def->abef", [(2, 3, 4), (4, 2), (2, 3, 2)]),
    ("Za,aZ", [(2, 3), (3, 2)]),
    (",", [(), ()]),
]


class TestEinsum:
    @pytest.mark.parametrize("on", BACKENDS)
    @pytest.mark.parametrize("subscripts, shapes", SUBSCRIPTS, ids=[s for s, _ in SUBSCRIPTS])
    def test_values(self, subscripts: str, shapes: list[tuple[int, ...]], on: str) -> None:
        agree(on, "einsum", subscripts, *(real(*s) for s in shapes))
        agree(on, "einsum", subscripts, *(whole(*s) for s in shapes))
        agree(on, "einsum", subscripts, *(np.asarray(whole(*s) > 0) for s in shapes))

    @pytest.mark.parametrize("on", ["numpy", "strict"])
    def test_lists_of_subscripts(self, on: str) -> None:
        agree(on, "einsum", real(2, 3), [0, 1], real(3, 4), [1, 2])
        agree(on, "einsum", real(2, 3), [30, 3], real(3, 4), (3, 0), [0, 30])
        agree(on, "einsum", real(2, 3), [..., 0], [0, ...])

    def test_narrow_integers_stay_what_they_are(self) -> None:
        for subscripts in ("ij,jk->ik", "ij,ij", "ij->i"):
            agree(
                "numpy",
                "einsum",
                subscripts,
                *[whole(3, 3).astype(np.int8) for _ in range(subscripts.count(",") + 1)],
            )

    @pytest.mark.parametrize(
        "optimize",
        [False, "optimal", ("greedy", 10), ["einsum_path", (0, 3), (0, 2), (0, 1)]],
    )
    def test_orders(self, optimize: Any) -> None:
        operands = [real(*shape) for shape in ((2, 3), (3, 4), (4, 2), (2, 2))]
        agree("numpy", "einsum", "ij,jk,kl,il->l", *operands, optimize=optimize)

    def test_the_order_without_opt_einsum(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The cheapest pair first: not the two vectors, whose product would be a matrix."""
        from multigrad.ops.beyond import einsum, subscripts

        monkeypatch.setitem(sys.modules, "opt_einsum", None)
        inputs = (("i",), ("k",), ("i", "j"), ("j", "k"))
        path = subscripts.order(inputs, (), {"i": 30, "j": 30, "k": 30}, True)
        assert path == ((0, 2), (0, 1), (0, 1)) or set(path[0]) in ({0, 2}, {1, 3})
        einsum._plan.cache_clear()
        agree("numpy", "einsum", "i,k,ij,jk", real(3), real(5), real(3, 4), real(4, 5))
        einsum._plan.cache_clear()

    def test_numbers_beside_arrays(self) -> None:
        x = real(2, 3)
        np.testing.assert_allclose(values(mg.einsum(",ij,->ji", 2.0, mg.asarray(x), 3)), 6 * x.T)

    def test_two_operands_are_one_product(self) -> None:
        a, b = (mg.asarray(real(*s), requires_grad=True) for s in ((2, 3), (3, 4)))
        for subscripts in ("ij,jk->ik", "ij,jk->ki"):
            assert mg.einsum(subscripts, a, b).grad_fn.name() == "MatmulBackward"


# ----- pad -----

MODES = (
    "constant",
    "edge",
    "linear_ramp",
    "maximum",
    "mean",
    "minimum",
    "reflect",
    "symmetric",
    "wrap",
)


class TestPad:
    @pytest.mark.parametrize("mode", MODES)
    def test_values(self, mode: str) -> None:
        for x, width in itertools.product(
            (real(5), real(1, 2), real(2, 3, 2), whole(3, 4)), (1, 7, (1, 3), 0, (0, 9))
        ):
            agree("numpy", "pad", x, width, mode)

    @pytest.mark.parametrize(
        "args, kwargs",
        [
            ((real(2, 3), ((1,), (3,)), "edge"), {}),
            ((real(2, 3), {1: (1, 2)}), {}),
            ((real(2, 3), {-1: 2}), {}),
            ((real(2, 3), 2), {"constant_values": (1, 2)}),
            ((real(3), (2,)), {"constant_values": 5}),
            ((real(3), 7, "reflect"), {"reflect_type": "odd"}),
            ((real(3), (7, 2), "symmetric"), {"reflect_type": "odd"}),
            ((real(1), 3, "reflect"), {"reflect_type": "odd"}),
            ((real(2, 5), 2, "maximum"), {"stat_length": ((1, 2), (3, 9))}),
            ((whole(2, 2) > 0, 1), {}),
            ((real(3) + 1j, 2, "linear_ramp"), {}),
            ((whole(3), 2), {"constant_values": 2.7}),
        ],
    )
    def test_settings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        agree("numpy", "pad", *args, **kwargs)

    def test_empty_gives_zeros(self) -> None:
        np.testing.assert_array_equal(values(mg.pad(mg.ones(2), 1, mode="empty")), [0, 1, 1, 0])

    def test_by_the_values_at_the_ends(self) -> None:
        x = real(3)
        slopes_agree(lambda x, c: mg.pad(x, 2, constant_values=c), x, real())
        slopes_agree(lambda x, c: mg.pad(x, (2, 3), "linear_ramp", end_values=(c, 1.0)), x, real())

    def test_a_new_array(self) -> None:
        x = mg.ones(3)
        y = mg.pad(x, 0, mode="edge")
        y[0] = 5.0
        assert float(x[0]) == 1.0


# ----- gradient and interp -----


class TestGradient:
    @pytest.mark.parametrize(
        "args, kwargs",
        [
            ((real(4, 5),), {}),
            ((real(4, 5), 2.0), {}),
            ((real(4, 5), 2.0, np.asarray([0.0, 1.0, 1.5, 3.0, 7.0])), {}),
            ((real(4, 5),), {"axis": (1, 0)}),
            ((real(4, 5),), {"edge_order": 2}),
            ((real(2),), {}),
            ((whole(6),), {}),
            ((real(4, 5),), {"axis": ()}),
            ((real(3, 4), np.arange(3), np.arange(4) * 2), {}),
            ((real(5), [0.0, 1.0, 3.0, 4.0, 7.0]), {}),
        ],
    )
    def test_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        agree("numpy", "gradient", *args, **kwargs)

    @pytest.mark.parametrize("order", [1, 2])
    def test_by_the_spacing(self, order: int) -> None:
        slopes_agree(lambda f, h: mg.gradient(f, h, edge_order=order), real(4), np.asarray(0.5))


POINTS = np.asarray([-1.5, -0.5, 0.25, 1.0, 1.75])
SPECIAL = np.asarray([np.nan, -np.inf, np.inf, POINTS[0], POINTS[-1], POINTS[2]])


class TestInterp:
    @pytest.mark.parametrize("on", ["numpy", "strict"])
    def test_values(self, on: str) -> None:
        for x in (real(7), 2 * real(2, 3), np.asarray(0.3), SPECIAL, np.asarray([1, 2]), real(0)):
            for fp in (real(5), real(5) + 1j * real(5)):
                agree(on, "interp", x, POINTS, fp)
            agree(on, "interp", x, POINTS, real(5), left=-5.0, right=7.5)
            agree(on, "interp", x, POINTS[:1], real(1))
            agree(on, "interp", x, np.arange(5), 2 * np.arange(5))
            if x is not SPECIAL:
                agree(on, "interp", x, POINTS, real(5), period=1.5)

    def test_steps_and_infinite_values(self) -> None:
        x, xp = np.asarray([1.0, 2.0, 3.0, 1.5]), np.asarray([1.0, 2.0, 2.0, 3.0, 3.0])
        agree("numpy", "interp", x, xp, np.arange(5.0))
        with np.errstate(invalid="ignore"):
            fp = np.asarray([np.inf, np.inf, 1.0])
            agree("numpy", "interp", np.asarray([0.5, 1.5, 0.0]), np.arange(3.0), fp)

    def test_lists_and_numbers(self) -> None:
        y = mg.interp(0.5, mg.asarray([0.0, 1.0]), [1.0, 3.0])
        assert isinstance(y, mg.Tensor) and y.shape == () and float(y) == 2.0

    @pytest.mark.parametrize("option", ["left", "right", "period"])
    def test_an_array_among_the_options_only(self, option: str) -> None:
        at, to = {"left": (-1.0, 2.0), "right": (4.0, 2.0), "period": (4.5, 5.0)}[option]
        t = mg.asarray(to, requires_grad=True)
        f = lambda x, value: mg.interp(x, [0.0, 1.0, 3.0], [1.0, 3.0, 4.0], **{option: value})
        y = f(at, t)
        assert isinstance(y, mg.Tensor) and y.shape == ()
        wanted = np.interp(at, [0.0, 1.0, 3.0], [1.0, 3.0, 4.0], **{option: to})
        assert y.item() == wanted
        (g,) = mg.autograd.grad(y, t)
        expected = slope(lambda t: f(mg.asarray(at), to + t).item())
        np.testing.assert_allclose(g.item(), expected, atol=1e-8)

    def test_keywords_of_numpy(self) -> None:
        y = mg.interp(x=mg.asarray(0.5), xp=mg.asarray([0.0, 1.0]), fp=mg.asarray([1.0, 3.0]))
        assert float(y) == 2.0


# ----- products -----


class TestProducts:
    @pytest.mark.parametrize("on", ["numpy", "strict"])
    @pytest.mark.parametrize(
        "names, shapes",
        [
            (("dot", "inner"), ((3,), (3, 3))),
            (("dot", "inner"), ((2, 3), ())),
            (("dot", "inner"), ((2, 3, 3), (4, 3, 3))),
            (("dot", "inner"), ((0, 3), (3,))),
            (("outer", "kron"), ((3,), ())),
            (("outer", "kron"), ((), ())),
            (("outer", "kron"), ((2, 1, 3), (2, 2))),
        ],
    )
    def test_values(self, names: Any, shapes: tuple[tuple[int, ...], ...], on: str) -> None:
        for name in names:
            agree(on, name, *(real(*s) for s in shapes))
            agree(on, name, *(whole(*s) for s in shapes))

    def test_with_numbers(self) -> None:
        for name in ("dot", "inner", "outer", "kron"):
            agree("numpy", name, real(3), 2.0)
            agree("numpy", name, 2.0, real(3))

    @pytest.mark.parametrize("n, m", [(5, 3), (3, 5), (1, 1), (4, 4), (1, 6)])
    def test_convolve(self, n: int, m: int) -> None:
        for mode in ("full", "same", "valid"):
            agree("numpy", "convolve", real(n), real(m), mode)
            agree("numpy", "convolve", whole(n), whole(m), mode)


# ----- axes, joining and splitting, diagonals -----


class TestShapes:
    def test_several_arrays_and_orders_of_axes(self) -> None:
        agree("numpy", "atleast_2d", real(2, 3, 4), real(3), 2.0)
        agree("numpy", "transpose", real(2, 3, 4), [2, 1, 0])
        agree("numpy", "transpose", real(3), 0)

    def test_views_and_copies(self) -> None:
        x = mg.asarray(np.zeros((2, 3)))
        for view in (x.transpose(), x.swapaxes(0, 1), x.ravel(), x.diagonal(), x.T.ravel("F")):
            view[...] = view + 1.0
        np.testing.assert_array_equal(values(x), [[5, 4, 4], [4, 5, 4]])
        x.flatten()[0] = 9.0
        assert float(x[0, 0]) == 5.0

    @pytest.mark.parametrize("k", [0, 1, 5, -5])
    def test_diagonals(self, k: int) -> None:
        agree("numpy", "diag", real(3, 4), k)
        agree("numpy", "diagonal", real(2, 3, 4), k, -1, 0)
        agree("numpy", "trace", real(2, 3, 4), k, 2, 1)
        agree("numpy", "diag", whole(3) > 0, k)

    def test_narrow_integers_are_added_up_as_integers(self) -> None:
        agree("numpy", "trace", np.ones((2, 2), np.int8))

    def test_split_at_an_array_of_indices(self) -> None:
        parts = mg.split(mg.asarray(real(6)), np.asarray([1, 3]))
        assert [p.shape for p in parts] == [(1,), (2,), (3,)] and type(parts) is list
        agree("numpy", "split", real(6), [4, 2])
        agree("numpy", "split", real(3, 4), [], -1)

    @pytest.mark.parametrize("on", ["numpy", "strict"])
    def test_joined(self, on: str) -> None:
        agree(on, "hstack", [np.asarray(2.0), real(2)])
        agree(on, "vstack", [real(3), real(2, 3)])
        if on == "numpy":  # of arrays that can be iterated over, the rows
            for name in ("concatenate", "hstack", "vstack"):
                agree(on, name, real(2, 3))
        joined = mg.concatenate(
            [mg.asarray(real(2), backend=on), mg.asarray(whole(2), backend=on)], dtype="float32"
        )
        assert str(joined.dtype).endswith("float32")


# ----- errors -----

ROW, THREE, MATRIX, NONE = mg.ones(2), mg.ones(3), mg.ones((2, 3)), mg.ones(0)
SQUARE = mg.ones((2, 2))


def contracted(optimize: Any) -> Any:
    return mg.einsum("i,i,i", ROW, ROW, ROW, optimize=optimize)


ERRORS: dict[type[Exception], dict[str, Callable[[], Any]]] = {
    ValueError: {
        "are for 2 operands, but there are 1": lambda: mg.einsum("ij,jk", MATRIX),
        "are for 1 operands, but there are 2": lambda: mg.einsum("ij", MATRIX, ROW),
        "operand 0 has 2 axes, fewer than its subscripts in 'ijk'": lambda: mg.einsum(
            "ijk", MATRIX
        ),
        r"operand 0 has 2 axes, more than its subscripts in 'i'; write '\.\.\.'": lambda: mg.einsum(
            "i", MATRIX
        ),
        r"'\$' in the subscripts 'i\$' is none: they are letters": lambda: mg.einsum("i$", MATRIX),
        "',' in the subscripts": lambda: mg.einsum("ij->i,j", MATRIX),
        r"a '\.' in the subscripts 'i\.\.j' does not belong to the one '\.\.\.' of operand 0": lambda: (
            mg.einsum("i..j", MATRIX)
        ),
        "the axes that 'i' takes the diagonal of have lengths 2 and 3": lambda: mg.einsum(
            "ii", MATRIX
        ),
        r"'j' has the lengths 2 and 3 in different operands; the shapes are \(2, 2\), \(3, 4\)": lambda: (
            mg.einsum("ij,jk", SQUARE, mg.ones((3, 4)))
        ),
        "no operand has the subscript 'j' of the result in 'i->j'": lambda: mg.einsum("i->j", ROW),
        "the result has the subscript 'i' more than once": lambda: mg.einsum("i->ii", ROW),
        r"'\.\.\.' covers axes of the operands, but the result has no": lambda: mg.einsum(
            "...i->i", MATRIX
        ),
        "the subscript 60 in a list is out of range": lambda: mg.einsum(ROW, [60]),
        "the subscripts come first, as a string; or each operand is followed by a list": lambda: (
            mg.einsum(ROW, ROW)
        ),
        "the path leaves 2 operands to contract": lambda: contracted(["einsum_path", (0, 1)]),
        r"the step \(0, 5\) of the path is invalid: 3 operands are left": lambda: contracted(
            ["einsum_path", (0, 5), (0, 1)]
        ),
        "the mode 'median' needs the middle of sorted values. Modes are 'constant', 'edge'": lambda: (
            mg.pad(ROW, 1, "median")
        ),
        "the mode 'nope' is not known": lambda: mg.pad(ROW, 1, "nope"),
        "the mode .* writes into arrays": lambda: mg.pad(ROW, 1, print),
        "the mode 'edge' takes no constant_values": lambda: mg.pad(
            ROW, 1, "edge", constant_values=1
        ),
        "pad_width must be 0 or more": lambda: mg.pad(ROW, -1),
        "for an array with 2 axes it must be one number": lambda: mg.pad(MATRIX, ((1, 2),) * 3),
        "axis 0 has no elements, so only the modes 'constant' and 'empty' can pad it": lambda: (
            mg.pad(mg.ones((0, 3)), 1, "edge")
        ),
        "stat_length must be 1 or more": lambda: mg.pad(THREE, 1, "mean", stat_length=0),
        "reflect_type is 'both'; it must be 'even' or 'odd'": lambda: mg.pad(
            THREE, 1, "reflect", reflect_type="both"
        ),
        "axis 0 has length 1; edge_order=1 needs 2 elements at least": lambda: mg.gradient(
            mg.ones((1, 3))
        ),
        "edge_order is 3; it must be 1 or 2": lambda: mg.gradient(THREE, edge_order=3),
        r"the spacing of axis 0 must be a number, or the 3 coordinates along it; its shape is "
        r"\(2,\)": lambda: mg.gradient(THREE, ROW),
        "an axis is given twice": lambda: mg.gradient(MATRIX, axis=(0, -2)),
        "xp and fp have no elements": lambda: mg.interp(ROW, NONE, NONE),
        "must have one length; they have 2 and 1": lambda: mg.interp(ROW, ROW, mg.ones(1)),
        r"must have one axis; their shapes are \(2, 2\) and \(2,\)": lambda: mg.interp(
            ROW, SQUARE, ROW
        ),
        "the period is 0": lambda: mg.interp(ROW, ROW, ROW, period=0),
        r"the shapes \(2, 3\) and \(2, 3\) do not fit: the axes to sum over have lengths 3 and 2": lambda: (
            mg.dot(MATRIX, MATRIX)
        ),
        r"inner: the shapes \(2, 3\) and \(2, 2\) do not fit: the axes to sum over": lambda: (
            mg.inner(MATRIX, SQUARE)
        ),
        r"both operands must have one axis; their shapes are \(2, 2\) and \(2,\)": lambda: (
            mg.convolve(SQUARE, ROW)
        ),
        "an operand has no elements": lambda: mg.convolve(NONE, ROW),
        "the mode is 'middle'; it must be 'full', 'same' or 'valid'": lambda: mg.convolve(
            ROW, ROW, "middle"
        ),
        r"the axes \(0, 0\) are not a permutation of the 2 axes .* To exchange two axes, call "
        r"swapaxes": lambda: mg.transpose(MATRIX, (0, 0)),
        "ravel: order is 'K': it depends on the memory layout, which array API arrays do not report": lambda: (
            mg.ravel(ROW, "K")
        ),
        "this order does not exist. It may be 'C', row by row, or 'F'": lambda: mg.ravel(ROW, "X"),
        "flatten: order is 1: to flatten some axes only, call reshape": lambda: mg.flatten(
            MATRIX, 1
        ),
        r"the array must have one axis or two; its shape is \(2, 2, 2\)": lambda: mg.diag(
            mg.ones((2, 2, 2))
        ),
        r"diagonal: a diagonal needs two axes; the shape is \(2,\)": lambda: mg.diagonal(ROW),
        "trace: axis1 and axis2 are the same, 1": lambda: mg.trace(MATRIX, 0, 1, -1),
        "an axis of length 5 cannot be split into 2 equal sections": lambda: mg.split(
            mg.ones(5), 2
        ),
        "the number of sections is 0; it must be larger than 0": lambda: mg.split(ROW, 0),
    },
    TypeError: {
        "a subscript in a list is an integer or an ellipsis, not 'i'": lambda: mg.einsum(
            ROW, ["i"]
        ),
        "no operand is an array|none of the arguments is an array": lambda: mg.einsum("", 2.0),
        "optimize is 'best'; it may be True, False, 'greedy', 'optimal'": lambda: contracted(
            "best"
        ),
        "optimize is {}; it may be": lambda: contracted({}),
        "a path that begins with 'einsum_path'": lambda: contracted([(0, 1), (0, 1)]),
        "pad_width must consist of integers": lambda: mg.pad(ROW, 1.5),
        "3 spacings are given for 2 axes": lambda: mg.gradient(MATRIX, 1, 2, 3),
        "hstack: none of the arguments is an array": lambda: mg.hstack([]),
    },
    IndexError: {
        "pad_width names axis 5, which does not exist in an array with 2 axes": lambda: mg.pad(
            MATRIX, {5: 1}
        ),
        "axis 1 is out of bounds for an array with 1 axes": lambda: mg.gradient(THREE, axis=1),
        "transpose: axis 2 is out of bounds for an array with 2 axes": lambda: mg.transpose(
            MATRIX, (0, 2)
        ),
        "swapaxes: axis2 2 is out of bounds for an array with 2 axes": lambda: mg.swapaxes(
            MATRIX, 0, 2
        ),
        "split: axis 0 is out of bounds for an array with 0 axes": lambda: mg.split(
            mg.asarray(1.0), 1
        ),
    },
}


@pytest.mark.parametrize(
    "error, message", [(error, message) for error, rows in ERRORS.items() for message in rows]
)
def test_errors(error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ERRORS[error][message]()


def test_namespaces() -> None:
    """Those of the standard alone have none of the names; multigrad's own functions take the arrays
    of every backend.
    """
    assert mg.namespace("numpy").einsum is mg.einsum
    assert not hasattr(mg.namespace("strict"), "einsum") and "pad" not in dir(
        mg.namespace("strict")
    )
    with pytest.raises(
        AttributeError,
        match="has the names of the standard only, and 'interp' is beyond it: call "
        "multigrad.interp",
    ):
        mg.namespace("strict").interp


ROWS_AND_COLUMNS = [
    (np.s_[::2], False),
    (np.s_[::-1], False),
    (np.s_[2:5], True),
    (np.s_[1:2], True),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("key", "shares"), ROWS_AND_COLUMNS, ids=str)
@pytest.mark.parametrize("batched", [False, True])
def test_ravel_of_one_axis_is_a_view_only_of_contiguous_memory(
    backend: str, key: Any, shares: bool, batched: bool
) -> None:
    """As numpy.ravel and torch.ravel; a reshape is a view of any evenly spaced elements."""

    def total(x: Any) -> Any:
        y = x * 1.0
        v = mg.ravel(y[key])
        v *= 2
        return mg.sum(y)

    x = np.ones(6)
    expected = np.ones(6)
    if shares:
        expected[key] = 2
    slope = func.grad(total)
    given = mg.asarray(x[None] if batched else x, backend=backend)
    got = mg.asarray((func.vmap(slope) if batched else slope)(given))
    np.testing.assert_array_equal(values(got), expected[None] if batched else expected)


def test_ravel_of_a_strided_argument_is_a_copy() -> None:
    def doubled(x: Any) -> Any:
        v = np.ravel(x)
        v *= 2
        return x.sum()

    for run in (
        doubled,
        func.compile(doubled),
        lambda x: func.jvp(doubled, x, x)[0],
        lambda x: doubled(mg.asarray(x)),
    ):
        x = np.arange(6.0)[::2]
        assert float(run(x)) == 6.0
        np.testing.assert_array_equal(x, [0.0, 2.0, 4.0])
    raw = np.arange(6.0)[::2]
    assert not np.shares_memory(mg.ravel(raw), raw)


@pytest.mark.parametrize("copy", [mg.flatten, lambda x: mg.reshape(x, (3,), copy=True)])
def test_a_copy_of_an_immutable_array_is_another_object(copy: Any) -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = mg.asarray(jnp.ones(3))
    y = copy(x)
    y *= 2
    np.testing.assert_array_equal(np.asarray(x.tolist()), np.ones(3))
