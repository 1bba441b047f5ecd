"""The points at which a derivative had to be chosen, and what was chosen: the table behind
docs/subgradients.md. Those of elementwise operations stand in `multigrad_conformance.elementwise`.

Each row is tried on every backend by test_hard_cases.py, and compared with PyTorch and JAX where
they are installed. The tables of the page are written from it: `python tests/hard_cases.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from multigrad_conformance.elementwise import NOT_FINITE, POINTS, At

INF, NAN = math.inf, math.nan
PAGE = Path(__file__).parent.parent / "docs" / "subgradients.md"


@dataclass(frozen=True)
class Case:
    """A point, and the gradient of the sum of `f` there (of a complex result: of its real part).

    f         f(xp, *arguments), in terms of the standard: it also runs on PyTorch (through
              array_api_compat) and on jax.numpy
    at        the arguments: nested lists of numbers, real unless one is complex
    gradient  of each argument
    second    of each argument, the gradient of the sum of these gradients, where it is stated
    refused   backends whose library refuses the values: {name: why}
    on_torch  what to run there instead, where array_api_compat makes the function of others
    """

    what: str
    where: str
    f: Callable[..., Any]
    at: tuple[Any, ...]
    gradient: tuple[Any, ...]
    second: tuple[Any, ...] | None = None
    refused: dict[str, str] = field(default_factory=dict)
    on_torch: Callable[..., Any] | None = None

    @property
    def id(self) -> str:
        return f"{self.what}: {self.where}"


_stated: set[str] = set()


def stated(
    name: str,
    what: str = "",
    refused: dict[str, str] | None = None,
    on_torch: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
) -> list[Case]:
    """The rows of an elementwise operation in the table of the conformance suite.

    TABLE has those that stand in a certain chapter of the page or need more words; others follow
    among the names beyond the standard.

    refused and on_torch, which may be one for all points, are those of `Case`.
    """
    _stated.add(name)
    return [
        Case(
            what or name,
            at.where,
            lambda xp, *args: function(xp, name)(*args),
            at.args,
            at.gradient,
            at.second,
            refused=(refused or {}) if ">" in at.where else {},
            on_torch=on_torch.get(at.where) if isinstance(on_torch, Mapping) else on_torch,
        )
        for at in POINTS[name].kinks
        if at.page and not is_power(at)
    ]


def is_power(at: At) -> bool:
    return len(at.args) == 2 and not isinstance(at.args[1], list)


def stated_powers() -> list[Case]:
    """The rows of `pow` whose exponent is a number of Python."""
    return [
        Case(
            f"x ** {at.args[1]}",
            f"x = {listed(at.args[0])}",
            lambda xp, x, exponent=at.args[1]: x**exponent,
            at.args[:1],
            at.gradient,
            at.second,
        )
        for at in POINTS["pow"].kinks
        if at.page and is_power(at)
    ]


def function(xp: Any, path: str) -> Any:
    """The function of that name; beyond the standard it is multigrad's, which takes arrays of any
    backend, or JAX's.
    """
    try:
        return attrgetter(path)(xp)
    except AttributeError:
        if xp.__name__.startswith("multigrad"):
            import multigrad

            return getattr(multigrad, path)
        import jax

        rooms = (jax.nn, jax.scipy.special)
        return next(getattr(room, path) for room in rooms if hasattr(room, path))


def applied(
    path: str,
    where: str,
    x: Any,
    gradient: Any,
    second: Any = None,
    refused: dict[str, str] | None = None,
    on_torch: Callable[..., Any] | None = None,
    **options: Any,
) -> Case:
    """A function of one array."""
    name = path.rpartition(".")[2]
    return Case(
        name + "".join(f", {k}={v!r}" for k, v in options.items()),
        where,
        lambda xp, x: function(xp, path)(x, **options),
        (x,),
        (gradient,),
        None if second is None else (second,),
        refused=refused or {},
        on_torch=on_torch,
    )


def weighted(xp: Any, x: Any, weights: list[float]) -> Any:
    """The sum of weights * x: tells elements apart that a plain sum would not."""
    return x * xp.asarray(weights, dtype=x.dtype)


def listed(x: Any) -> str:
    """Numbers as the page shows them."""
    if isinstance(x, (list, tuple)):
        return ", ".join(f"[{listed(v)}]" if isinstance(v, (list, tuple)) else listed(v) for v in x)
    if isinstance(x, complex):
        if not (math.isfinite(x.real) and math.isfinite(x.imag)):
            return "not finite"
        return (
            f"{x.real:.4g}"
            if x.imag == 0
            else f"{x.imag:.4g}i"
            if x.real == 0
            else f"{x.real:.4g}{x.imag:+.4g}i"
        )
    text = f"{x:.4g}"
    return text


def of_one(
    what: str,
    where: str,
    f: Callable[..., Any],
    x: list[Any],
    gradient: list[Any],
    second: Any = None,
    **more: Any,
) -> Case:
    return Case(what, where, f, (x,), (gradient,), None if second is None else (second,), **more)


def rebuilt(xp: Any, x: Any) -> Any:
    """The matrix from its singular vectors and values."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return xp.matmul(u * s, vh)


def named(name: str, where: str, x: list[Any], gradient: list[Any], *dim: int, **more: Any) -> Case:
    """A name beyond the standard, in PyTorch a method with the arguments `dim`, unless stated."""
    more.setdefault("on_torch", lambda xp, x: getattr(x, name)(*dim))
    return applied(name, where, x, gradient, **more)


def first(name: str, gradient: list[Any]) -> Case:
    """The first result of a softmax of two zeros and -inf."""
    return of_one(
        f"{name}(x)[0]",
        "0, 0, -inf",
        lambda xp, x: function(xp, name)(x)[0],
        [0.0, 0.0, -INF],
        gradient,
        on_torch=lambda xp, x: getattr(x, name)(0)[0],
    )


def middle(xp: Any, x: Any) -> Any:
    return x.quantile(0.5)


def diagonal(*values: float) -> list[list[float]]:
    return [[float(v) if i == j else 0.0 for j in range(len(values))] for i, v in enumerate(values)]


I2, ZERO2 = diagonal(1, 1), diagonal(0, 0)
FOUR, BINS = [1.0, 2.0, 3.0, 4.0], [1 + 0j, 2 + 1j, 3 + 0j]

COMPLEX_ONLY = {"strict": "it takes complex numbers only, as the standard says"}
TIED = [[0.5, 0.5], [-0.5, 0.5]]
vector_norm = partial(applied, "linalg.vector_norm")
matrix_norm = partial(applied, "linalg.matrix_norm")

TABLE: dict[str, list[Case]] = {
    "Absolute value, sign, rounding": [
        *stated("abs"),
        *stated(
            "sign", on_torch={"complex 0": lambda xp, x: x.sgn(), "3+4i": lambda xp, x: x.sgn()}
        ),
        *stated("floor"),
        *stated("ceil"),
        *stated("trunc"),
        *stated("round"),
        *stated("copysign"),
        *stated("remainder"),
    ],
    "Choosing one of two": [
        *stated("maximum"),
        *stated("minimum"),
        Case(
            "maximum(x, 0)",
            "x = 0",
            lambda xp, x: xp.maximum(x, xp.zeros_like(x)),
            ([0.0],),
            ([0.5],),
        ),
        Case("clip(x, 0)", "x = 0", lambda xp, x: xp.clip(x, 0.0), ([0.0],), ([1],)),
        Case(
            "clip(x, -1, 1)",
            "x = -2, -1, 0, 1, 2, nan",
            lambda xp, x: xp.clip(x, -1.0, 1.0),
            ([-2.0, -1.0, 0.0, 1.0, 2.0, NAN],),
            ([0, 1, 1, 1, 0, 0],),
            ([0, 0, 0, 0, 0, 0],),
        ),
        *stated("clip", "clip(x, min, max)", refused={"strict": "it refuses crossed bounds"}),
        Case(
            "where(x > 0, sqrt(x), 0)",
            "x = 0, -1",
            lambda xp, x: xp.where(x > 0, xp.sqrt(x), xp.zeros_like(x)),
            ([0.0, -1.0],),
            ([NAN, NAN],),
        ),
        Case(
            "where(x > 0, x, nan)",
            "x = 1, -1",
            lambda xp, x: xp.where(x > 0, x, xp.full_like(x, NAN)),
            ([1.0, -1.0],),
            ([1, 0],),
        ),
        Case(
            "where(c, x1, x2)",
            "nan, inf in the branch not taken",
            lambda xp, a, b: xp.where(xp.asarray([True, False, True]), a, b),
            ([1.0, NAN, 2.0], [NAN, 2.0, INF]),
            ([1, 0, 1], [0, 1, 0]),
        ),
    ],
    "Powers": [
        *stated_powers(),
        *stated("pow"),
        Case("0 ** y", "y = 0, 2, -1", lambda xp, y: 0.0**y, ([0.0, 2.0, -1.0],), ([0, 0, -INF],)),
        *stated("square"),
        *stated("sqrt"),
        *stated("reciprocal"),
        *stated("multiply"),
        *stated("divide"),
        Case("x / x", "0", lambda xp, x: x / x, ([0.0],), ([NAN],)),
        *stated("hypot"),
    ],
    "Exponentials, logarithms, angles": [
        *stated("exp"),
        *stated("tanh"),
        *stated("log"),
        *stated("log2"),
        *stated("log10"),
        *stated("log1p"),
        *stated("logaddexp"),
        *stated("asin"),
        *stated("acos"),
        *stated("acosh"),
        *stated("atanh"),
        *stated("atan2"),
    ],
    "Reductions and sorting": [
        applied("max", "ties", [1.0, 3.0, 3.0, 3.0], [0, 1 / 3, 1 / 3, 1 / 3]),
        applied("min", "ties", [[1.0, 1.0], [3.0, 1.0]], [[1 / 3, 1 / 3], [0, 1 / 3]]),
        applied("max", "ties", [[2.0, 2.0], [0.0, 1.0]], [[0.5, 0.5], [0, 1]], axis=1),
        applied("min", "ties", [[2.0, 2.0], [0.0, 2.0]], [[0, 0.5], [1, 0.5]], axis=0),
        applied("max", "nan", [1.0, NAN, 3.0, NAN], [0, 0.5, 0, 0.5]),
        applied("max", "all -inf", [-INF, -INF], [0.5, 0.5]),
        Case(
            "sort",
            "ties",
            lambda xp, x: weighted(xp, xp.sort(x, stable=True), [1, 10, 100, 1000]),
            ([2.0, 1.0, 2.0, 1.0],),
            ([100, 1, 1000, 10],),
        ),
        Case(
            "sort, descending",
            "ties",
            lambda xp, x: weighted(
                xp, xp.sort(x, stable=True, descending=True), [1, 10, 100, 1000]
            ),
            ([2.0, 1.0, 2.0, 1.0],),
            ([1, 100, 10, 1000],),
        ),
        Case(
            "sort",
            "nan",
            lambda xp, x: weighted(xp, xp.sort(x), [1, 10, 100]),
            ([NAN, 1.0, 0.0],),
            ([100, 10, 1],),
        ),
        applied("var", "one element", [3.0], [0], [0]),
        applied("std", "one element", [3.0], [0]),
        applied("var", "one element", [3.0], [NAN], correction=1),
        applied("std", "one element", [3.0], [NAN], correction=1),
        applied("var", "constants", [3.0, 3.0], [0, 0], [0, 0]),
        applied("std", "constants", [3.0, 3.0], [0, 0], [0, 0]),
        applied(
            "std",
            "one of two rows constant",
            [[3.0, 3.0], [1.0, 3.0]],
            [[0, 0], [-0.5, 0.5]],
            axis=1,
        ),
        applied("var", "no degrees of freedom", [1.0, 3.0], [-INF, INF], correction=2),
        applied("std", "a nan", [1.0, NAN], [NAN, NAN]),
        applied("mean", "nothing", [], []),
        applied("sum", "nothing", [], []),
        applied("prod", "nothing", [], []),
    ],
    "Names beyond the standard": [
        *stated("relu", on_torch=lambda xp, x: x.relu()),
        *stated("sigmoid", on_torch=lambda xp, x: x.sigmoid()),
        *stated("silu", on_torch=lambda xp, x: x * x.sigmoid()),
        *stated("softplus", on_torch=lambda xp, x: xp.nn.functional.softplus(x)),
        named(
            "logsumexp", "-1000, 1000, 1000", [-1e3, 1e3, 1e3], [0, 0.5, 0.5], 0, second=[0, 0, 0]
        ),
        named("logsumexp", "all -inf", [-INF, -INF], [0.5, 0.5], 0),
        named("logsumexp", "inf, inf, 1", [INF, INF, 1.0], [0.5, 0.5, 0], 0),
        first("softmax", [0.25, -0.25, 0]),
        named("softmax", "all -inf", [-INF, -INF], [NAN, NAN], 0),
        first("log_softmax", [0.5, -0.5, 0]),
        named("median", "ties", [2.0, 1.0, 2.0, 2.0, 3.0], [0, 0, 1, 0, 0]),
        named("median", "an even number", [4.0, 1.0, 2.0, 3.0], [0, 0, 0.5, 0.5], on_torch=middle),
        named("median", "a nan", [1.0, NAN, 3.0], [0, 1, 0]),
        named(
            "quantile", "a place of an element", [3.0, 1.0, 2.0], [0, 0, 1], on_torch=middle, q=0.5
        ),
        named("nanmedian", "a nan", [1.0, NAN, 3.0, 2.0], [0, 0, 0, 1]),
        named("nanmedian", "all nan", [NAN, NAN], [0, 0]),
        named("nansum", "a nan", [1.0, NAN], [1, 0]),
        named("nanmean", "all nan", [NAN, NAN], [0, 0]),
        named(
            "nanstd",
            "constants and a nan",
            [3.0, NAN, 3.0],
            [0, 0, 0],
            on_torch=lambda xp, x: x[~x.isnan()].std(correction=0),
        ),
        named(
            "nanmax",
            "ties and a nan",
            [1.0, NAN, 1.0],
            [0.5, 0, 0.5],
            on_torch=lambda xp, x: x[~x.isnan()].amax(),
        ),
        *stated("nan_to_num", on_torch=lambda xp, x: x.nan_to_num()),
        named("ptp", "constants", [2.0, 2.0], [0, 0], on_torch=lambda xp, x: x.amax() - x.amin()),
    ],
    "Products": [
        applied("prod", "one zero", [2.0, 0.0, 4.0], [0, 8, 0], [4, 6, 2]),
        applied("prod", "two zeros", [0.0, 0.0, 4.0], [0, 0, 0], [4, 4, 0]),
        applied("prod", "three zeros", [0.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0]),
        applied(
            "prod",
            "a zero in a row",
            [[2.0, 0.0], [3.0, 4.0]],
            [[0, 2], [4, 3]],
            [[1, 1], [1, 1]],
            axis=1,
        ),
        applied("prod", "nan", [NAN, 2.0], [2, NAN]),
        applied(
            "cumulative_prod", "one zero", [2.0, 0.0, 4.0, 5.0], [1, 50, 0, 0], [25, 45, 12, 8]
        ),
        applied("cumulative_prod", "two zeros", [2.0, 0.0, 0.0, 5.0], [1, 2, 0, 0], [1, 13, 12, 0]),
    ],
    "Indexing": [
        Case(
            "take",
            "a repeated index",
            lambda xp, x: weighted(xp, xp.take(x, xp.asarray([0, 2, 0])), [1, 10, 100]),
            ([1.0, 2.0, 3.0],),
            ([101, 0, 10],),
        ),
        Case(
            "x[indices]",
            "a repeated index",
            lambda xp, x: weighted(xp, x[xp.asarray([1, 1, -1])], [1, 10, 100]),
            ([1.0, 2.0],),
            ([0, 111],),
        ),
    ],
    "Norms": [
        vector_norm("0", [0.0, 0.0], [0, 0], [0, 0], ord=2),
        vector_norm("complex 0", [0j, 0j], [0j, 0j], ord=2),
        vector_norm("0 in one place", [0.0, -2.0], [0, -1], [0, 0], ord=1),
        vector_norm("0", [0.0, 0.0], [0, 0], ord=3),
        vector_norm("0 in one place", [0.0, 2.0], [0, 1], ord=3),
        vector_norm("0", [0.0, 0.0], [0, 0], ord=0.5),
        vector_norm("0", [0.0, 0.0], [0, 0], ord=INF),
        vector_norm("ties", [2.0, -2.0, 1.0], [0.5, -0.5, 0], ord=INF),
        vector_norm("ties", [2.0, -1.0, 1.0], [0, -0.5, 0.5], ord=-INF),
        vector_norm("0 in one place", [0.0, 2.0], [0, 0], ord=-INF),
        vector_norm("0 in one place", [0.0, 2.0], [0, 0], ord=-1),
        vector_norm("0 in one place", [0.0, 2.0], [0, 0], ord=-0.5),
        vector_norm("a count", [0.0, 2.0], [0, 0], ord=0),
        matrix_norm("0", ZERO2, ZERO2, ZERO2, ord="fro"),
        *(matrix_norm("ties", [[1.0, 2.0], [-3.0, 2.0]], TIED, ord=ord) for ord in (1, -1)),
        *(matrix_norm("ties", [[1.0, 3.0], [-2.0, 2.0]], TIED, ord=ord) for ord in (INF, -INF)),
        matrix_norm("the identity", I2, I2, ZERO2, ord="nuc"),
        matrix_norm("the identity", I2, [[0.5, 0], [0, 0.5]], ord=2),
        matrix_norm("the identity", I2, [[0.5, 0], [0, 0.5]], ord=-2),
        matrix_norm("0", ZERO2, ZERO2, ord="nuc"),
        matrix_norm("0", ZERO2, ZERO2, ord=2),
    ],
    "Matrices": [
        applied(
            "linalg.det",
            "rank n - 1",
            [[1.0, 2.0], [2.0, 4.0]],
            [[4, -2], [-2, 1]],
            [[1, -1], [-1, 1]],
        ),
        applied(
            "linalg.det",
            "rank n - 1, n = 4, two singular values equal",
            diagonal(0, 1, 1, 2),
            diagonal(2, 0, 0, 0),
            [[5, -2, -2, -1], [-2, 2, 0, 0], [-2, 0, 2, 0], [-1, 0, 0, 1]],
        ),
        applied(
            "linalg.det",
            "rank n - 2",
            diagonal(0, 0, 3),
            diagonal(0, 0, 0),
            [[3, -3, 0], [-3, 3, 0], [0, 0, 0]],
        ),
        applied(
            "linalg.det",
            "rank n - 2, n = 4",
            diagonal(0, 0, 3, 5),
            diagonal(0, 0, 0, 0),
            [[15, -15, 0, 0], [-15, 15, 0, 0], [0] * 4, [0] * 4],
        ),
        applied("linalg.det", "0", ZERO2, ZERO2, [[1, -1], [-1, 1]]),
        of_one(
            "eigvalsh",
            "Hermitian",
            lambda xp, x: weighted(xp, xp.linalg.eigvalsh(x), [1, 2]),
            [[2.0, 1.0], [1.0, 3.0]],
            [
                [2 - 1 / (2 * math.sqrt(5)) - 0.5, 1 / math.sqrt(5)],
                [1 / math.sqrt(5), 1.5 + 1 / (2 * math.sqrt(5))],
            ],
        ),
        of_one(
            "eigvalsh", "repeated", lambda xp, x: xp.linalg.eigvalsh(x) ** 2, I2, [[2, 0], [0, 2]]
        ),
        of_one(
            "eigh, eigenvectors",
            "repeated",
            lambda xp, x: xp.abs(xp.linalg.eigh(x)[1]),
            I2,
            [[NAN] * 2] * 2,
        ),
        of_one(
            "svdvals", "repeated", lambda xp, x: xp.linalg.svdvals(x) ** 2, I2, [[2, 0], [0, 2]]
        ),
        of_one("svdvals", "0", lambda xp, x: xp.linalg.svdvals(x) ** 2, ZERO2, ZERO2),
        of_one(
            "svd, singular vectors",
            "repeated",
            lambda xp, x: xp.abs(xp.linalg.svd(x)[0]),
            I2,
            [[NAN] * 2] * 2,
        ),
        of_one(
            "svd, u * s @ vh",
            "a singular value of 0, square",
            lambda xp, x: rebuilt(xp, x),
            [[2.0, 0.0], [0.0, 0.0]],
            [[1, 1], [1, 1]],
        ),
        of_one(
            "svd, u * s @ vh",
            "a singular value of 0, not square",
            lambda xp, x: rebuilt(xp, x),
            [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
            [[NAN] * 2] * 3,
        ),
        of_one(
            "cholesky",
            "Hermitian",
            lambda xp, x: xp.linalg.cholesky(x)[..., 0, 0],
            [[4.0, 2.0], [2.0, 3.0]],
            [[0.25, 0], [0, 0]],
        ),
        of_one(
            "cholesky",
            "both triangles",
            lambda xp, x: xp.linalg.cholesky(x)[..., 1, 0],
            [[4.0, 2.0], [2.0, 3.0]],
            [[-0.125, 0.25], [0.25, 0]],
        ),
        of_one(
            "matrix_power, n=0",
            "everywhere",
            lambda xp, x: xp.linalg.matrix_power(x, 0),
            ZERO2,
            ZERO2,
        ),
        applied(
            "linalg.pinv",
            "rank 1",
            [[1.0, 1.0], [1.0, 1.0]],
            [[-0.25, -0.25], [-0.25, -0.25]],
        ),
        applied("linalg.pinv", "0", ZERO2, ZERO2),
    ],
    "Fourier transforms": [
        applied("fft.fft", "4 real numbers", FOUR, [4, 0, 0, 0], refused=COMPLEX_ONLY),
        applied("fft.fft", "of 2: padded", [1.0, 2.0], [4, 0], refused=COMPLEX_ONLY, n=4),
        applied("fft.fft", "of 4: cut", FOUR, [2, 0, 0, 0], refused=COMPLEX_ONLY, n=2),
        applied(
            "fft.fft", "4 real numbers", FOUR, [2, 0, 0, 0], refused=COMPLEX_ONLY, norm="ortho"
        ),
        applied("fft.rfft", "4 real numbers", FOUR, [3, 0, 1, 0]),
        applied("fft.irfft", "3 bins", BINS, [1 + 0j, 0j, 0j]),
        of_one(
            "irfft(z)[0]",
            "3 bins",
            lambda xp, z: xp.fft.irfft(z)[0],
            BINS,
            [0.25 + 0j, 0.5 + 0j, 0.25 + 0j],
        ),
        of_one(
            "irfft(z)[1]",
            "3 bins",
            lambda xp, z: xp.fft.irfft(z)[1],
            BINS,
            [0.25 + 0j, -0.5j, -0.25 + 0j],
        ),
        of_one(
            "irfft(z, n=5)[0]",
            "3 bins",
            lambda xp, z: xp.fft.irfft(z, n=5)[0],
            [1 + 0j, 2 + 1j, 3 + 1j],
            [0.2 + 0j, 0.4 + 0j, 0.4 + 0j],
        ),
        applied("fft.hfft", "3 bins", BINS, [4 + 0j, 0j, 0j]),
        of_one(
            "hfft(z)[0]", "3 bins", lambda xp, z: xp.fft.hfft(z)[0], BINS, [1 + 0j, 2 + 0j, 1 + 0j]
        ),
        applied("fft.ihfft", "4 real numbers", FOUR, [0.75, 0, 0.25, 0]),
    ],
    "Complex numbers": [
        Case("|z|**2", "1+2i", lambda xp, z: xp.abs(z) ** 2, ([1 + 2j],), ([2 + 4j],)),
        Case(
            "real, imag",
            "1+2i",
            lambda xp, z: 3 * xp.real(z) + 5 * xp.imag(z),
            ([1 + 2j],),
            ([3 + 5j],),
        ),
        Case("real(z * z)", "1+2i", lambda xp, z: xp.real(z * z), ([1 + 2j],), ([2 - 4j],)),
    ],
}

TABLE["Names beyond the standard"] += [
    case for name in POINTS if name not in _stated for case in stated(name)
]

# Where the others give something else: PyTorch 2.13 and JAX 0.10.
OTHERS: dict[str, dict[str, tuple[Any, ...]]] = {
    "abs: 0, -0, nan": {"jax": ([1, 1, -1],)},
    "sign: complex 0": {"torch_second": ([NOT_FINITE],)},
    "copysign: x1 = 0, -0": {"torch_second": ([NAN, NAN], [0, 0]), "jax": ([1, 1], [0, 0])},
    "copysign: x1 = 0, x2 = -0": {"jax": ([-1], [0])},
    "maximum: nan": {"jax": ([0, 0, 0], [0, 0, 0])},
    "minimum: nan": {"jax": ([0, 0, 0], [0, 0, 0])},
    "clip(x, 0): x = 0": {"jax": ([0.5],)},
    "clip(x, -1, 1): x = -2, -1, 0, 1, 2, nan": {"jax": ([0, 0.5, 1, 0.5, 0, 0],)},
    "clip(x, min, max): x = -2, -1, 0, 1, 2; min = -1, max = 1": {
        "jax": ([0, 0.5, 1, 0.5, 0], [1, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 1])
    },
    "x ** 0.0: x = 0, 2, nan, inf": {"jax": ([NAN, 0, NAN, 0],)},
    "pow: (0, 0), (0, 1), (0, 2), (0, -1)": {"jax": ([NAN, 1, 0, -INF], [0, 0, 0, NAN])},
    "pow: (2, 0)": {"torch_second": ([0.5], [0.480453013918])},
    "pow: (nan, 0)": {"jax": ([NAN], [NAN])},
    "pow: (0, 0)": {"torch_second": ([NAN], [NAN]), "jax": ([NAN], [0])},
    "0 ** y: y = 0, 2, -1": {"jax": ([0, 0, NAN],)},
    "hypot: (0, 0), (-0, 0)": {
        "torch": ([NAN, NAN], [NAN, NAN]),
        "torch_second": ([NAN, NAN], [NAN, NAN]),
        "jax": ([0.5, 0.5], [0.5, 0.5]),
    },
    "logaddexp: (-inf, -inf), (inf, inf)": {
        "torch": ([NAN, NAN], [NAN, NAN]),
        "jax": ([NAN, 1], [NAN, 1]),
    },
    "logaddexp: (inf, 1), (-inf, 1), (0, 0)": {
        "torch_second": ([NAN, NAN, 0], [NAN, NAN, 0]),
        "jax": ([1, 0, 0.5], [2.718281828459, 1, 0.5]),
    },
    "atan2: (0, 0), (0, -0), (-0, 0), (-0, -0)": {
        "torch_second": ([NAN] * 4, [NAN] * 4),
        "jax": ([NAN] * 4, [NAN] * 4),
    },
    "max: nan": {"torch": ([NAN, NAN, NAN, NAN],), "jax": ([NAN, NAN, NAN, NAN],)},
    "sort, descending: ties": {"jax": ([10, 1000, 1, 100],)},
    "std: one element": {"jax": ([NAN],)},
    "std: constants": {"jax": ([NAN, NAN],)},
    "std, axis=1: one of two rows constant": {"jax": ([[NAN, NAN], [-0.5, 0.5]],)},
    "var, correction=2: no degrees of freedom": {"jax": ([NAN, NAN],)},
    "relu: 0, -0, nan": {"jax": ([0, 0, 0],)},
    "silu: -inf, inf": {"torch": ([NAN, NAN],), "jax": ([NAN, NAN],)},
    "logsumexp: all -inf": {"torch": ([NAN, NAN],), "jax": ([NAN, NAN],)},
    "logsumexp: inf, inf, 1": {"torch": ([NAN, NAN, 0],), "jax": ([NAN, NAN, 0],)},
    "median: ties": {"torch": ([1 / 3, 0, 1 / 3, 1 / 3, 0],)},
    "median: a nan": {"jax": ([0, 0, 0],)},
    "nanmedian: all nan": {"torch": ([0.5, 0.5],)},
    "nanmean: all nan": {"torch": ([NAN, NAN],)},
    "nanstd: constants and a nan": {"jax": ([NAN, 0, NAN],)},
    "prod: nan": {"torch": ([NAN, NAN],)},
    "vector_norm, ord=2: 0": {"torch_second": ([NAN, NAN],), "jax": ([NAN, NAN],)},
    "vector_norm, ord=2: complex 0": {"jax": ([NOT_FINITE, NOT_FINITE],)},
    "vector_norm, ord=1: 0 in one place": {"jax": ([1, -1],)},
    "vector_norm, ord=3: 0": {"jax": ([NAN, NAN],)},
    "vector_norm, ord=0.5: 0": {"jax": ([NAN, NAN],)},
    "vector_norm, ord=inf: 0": {"jax": ([0.25, 0.25],)},
    "vector_norm, ord=-inf: 0 in one place": {"jax": ([1, 0],)},
    "vector_norm, ord=-1: 0 in one place": {"jax": ([NAN, 0],)},
    "vector_norm, ord=-0.5: 0 in one place": {"jax": ([NAN, 0],)},
    "matrix_norm, ord='fro': 0": {"torch_second": ([[NAN] * 2] * 2,), "jax": ([[NAN] * 2] * 2,)},
    "matrix_norm, ord='nuc': the identity": {"torch_second": ([[NAN] * 2] * 2,)},
    "matrix_norm, ord='nuc': 0": {"torch": ([[1, 0], [0, 1]],), "jax": ([[1, 0], [0, 1]],)},
    "matrix_norm, ord=2: 0": {"torch": ([[0.5, 0], [0, 0.5]],), "jax": ([[0.25, 0], [0, 0.25]],)},
    "det: rank n - 1": {"torch": ([[0] * 2] * 2,)},
    "det: rank n - 1, n = 4, two singular values equal": {
        "torch": ([[0] * 4] * 4,),
        "torch_second": ([[NAN] * 4] * 4,),
        "jax": ([[0] * 4] * 4,),
    },
    "det: rank n - 2": {"torch_second": ([[NAN] * 3] * 3,)},
    "det: rank n - 2, n = 4": {"torch_second": ([[NAN] * 4] * 4,)},
    "det: 0": {"torch_second": ([[NAN] * 2] * 2,)},
    "sign: 3+4i": {"jax": ([0],)},
}

CASES = [case for chapter in TABLE.values() for case in chapter]


# ----- the page -----


def rows(chapter: str) -> Iterator[str]:
    yield "| function | at | gradient | second | PyTorch | JAX |"
    yield "|---|---|---|---|---|---|"
    for case in TABLE[chapter]:
        others = OTHERS.get(case.id, {})
        torch = [
            shown(others[k], label)
            for k, label in (("torch", ""), ("torch_second", "second: "))
            if k in others
        ]
        cells = (
            f"`{case.what}`",
            case.where,
            shown(case.gradient),
            shown(case.second),
            "; ".join(torch),
            shown(others.get("jax")),
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def shown(gradients: tuple[Any, ...] | None, label: str = "") -> str:
    """Gradients as the page shows them: of several arguments, one after the other."""
    return "" if gradients is None else label + " and ".join(f"[{listed(g)}]" for g in gradients)


def updated(text: str) -> str:
    """The page with its tables written anew."""
    parts = text.split("\n## ")
    for i, part in enumerate(parts):
        chapter = part.partition("\n")[0]
        if chapter in TABLE:
            lines = part.split("\n")
            table = [n for n, line in enumerate(lines) if line.startswith("|")]
            first, last = (table[0], table[-1] + 1) if table else (len(lines), len(lines))
            parts[i] = "\n".join([*lines[:first], *rows(chapter), *(lines[last:] or [""])])
    return "\n## ".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the tables of docs/subgradients.md.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if they differ"
    )
    check, text = parser.parse_args().check, PAGE.read_text()
    if (wanted := updated(text)) != text:
        print(f"docs/subgradients.md: {'differs' if check else 'written'}")
        if check:
            sys.exit(1)
        PAGE.write_text(wanted)
