"""Run the examples of docstrings, and write them with rounded results into the examples files.

    make stubs        python tools/examples.py [--check]

The files are multigrad/ops/examples.py and that of multigrad-special; results are rounded to four
digits. An elementwise operation is shown at two points, the others by the calls below.
tests/ops/test_docstrings.py runs them all again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from formatting import formatted
from writing import write_or_check

import multigrad as mg
from multigrad.registry import OPS, Op

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "multigrad": "multigrad/ops/examples.py",
    "multigrad_special": "plugins/multigrad-special/multigrad_special/examples.py",
}
HEADER = '''"""An example of each operation and its result, rounded.

Written by `make stubs`: the calls are in tools/examples.py.
"""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, str]] = {
'''
X, Y = "[0.25, 0.5]", "[2.0, 0.5]"
A, V, S = "[[1.0, 2.0], [3.0, 4.0]]", "[3.0, 1.0, 2.0]", "[[2.0, 1.0], [1.0, 2.0]]"
TWO = "mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])"
POINTS = {
    "acosh": "[1.5, 2.0]",
    "round": "[0.4, 1.6]",
    "ceil": "[0.4, 1.6]",
    "floor": "[0.4, 1.6]",
    "trunc": "[-1.6, 1.6]",
    "sign": "[-2.0, 3.0]",
    "abs": "[-2.0, 3.0]",
    "relu": "[-2.0, 3.0]",
    "signbit": "[-2.0, 3.0]",
    "isnan": "[1.0, mg.nan]",
    "isinf": "[1.0, mg.inf]",
    "isfinite": "[1.0, mg.inf]",
    "logical_not": "[True, False]",
    "bitwise_invert": "[0, 5]",
    "conj": "[1 + 2j, 3.0]",
    "real": "[1 + 2j, 3.0]",
    "imag": "[1 + 2j, 3.0]",
    "negative": "[1.0, -2.0]",
    "deg2rad": "[90.0, 180.0]",
    "rad2deg": "[1.0, 3.0]",
    "square": "[2.0, 3.0]",
}
INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
CALLS = {
    "sum": f"mg.sum(mg.asarray({A}), axis=0)",
    "clip": "mg.clip(mg.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)",
    "nextafter": "mg.nextafter(mg.asarray([1.0]), 2.0)",
    "where": "mg.where(mg.asarray([True, False]), mg.asarray([1.0, 2.0]), 0.0)",
    "matmul": f"mg.matmul(mg.asarray({A}), mg.asarray([1.0, 1.0]))",
    "linalg.matmul": f"mg.linalg.matmul(mg.asarray({A}), mg.asarray([1.0, 1.0]))",
    "tensordot": f"mg.tensordot(mg.asarray({A}), mg.asarray({A}), axes=2)",
    "vecdot": f"mg.vecdot({TWO})",
    "linalg.tensordot": f"mg.linalg.tensordot(mg.asarray({A}), mg.asarray({A}), axes=2)",
    "linalg.vecdot": f"mg.linalg.vecdot({TWO})",
    "matrix_transpose": f"mg.matrix_transpose(mg.asarray({A}))",
    "linalg.matrix_transpose": f"mg.linalg.matrix_transpose(mg.asarray({A}))",
    "reshape": "mg.reshape(mg.arange(4), (2, 2))",
    "expand_dims": "mg.expand_dims(mg.asarray([1.0, 2.0]), axis=0)",
    "squeeze": "mg.squeeze(mg.asarray([[1.0, 2.0]]), axis=0)",
    "permute_dims": f"mg.permute_dims(mg.asarray({A}), (1, 0))",
    "moveaxis": f"mg.moveaxis(mg.asarray({A}), 0, 1)",
    "flip": "mg.flip(mg.asarray([1.0, 2.0, 3.0]))",
    "roll": "mg.roll(mg.asarray([1.0, 2.0, 3.0]), 1)",
    "tril": f"mg.tril(mg.asarray({A}))",
    "triu": f"mg.triu(mg.asarray({A}))",
    "concat": f"mg.concat([{TWO}])",
    "stack": f"mg.stack([{TWO}])",
    "unstack": f"mg.unstack(mg.asarray({A}))",
    "repeat": "mg.repeat(mg.asarray([1.0, 2.0]), 2)",
    "tile": "mg.tile(mg.asarray([1.0, 2.0]), (2,))",
    "broadcast_to": "mg.broadcast_to(mg.asarray([1.0, 2.0]), (2, 2))",
    "broadcast_arrays": "mg.broadcast_arrays(mg.asarray([1.0, 2.0]), mg.ones((2, 1)))",
    "broadcast_shapes": "mg.broadcast_shapes((2, 1), (3,))",
    "meshgrid": f"mg.meshgrid({TWO})",
    "take": f"mg.take(mg.asarray({V}), mg.asarray([2, 0]))",
    "take_along_axis": f"mg.take_along_axis(mg.asarray({V}), mg.asarray([2, 0]))",
    "cumulative_sum": f"mg.cumulative_sum(mg.asarray({V}))",
    "cumulative_prod": f"mg.cumulative_prod(mg.asarray({V}))",
    "argmax": f"mg.argmax(mg.asarray({V}))",
    "argmin": f"mg.argmin(mg.asarray({V}))",
    "nonzero": "mg.nonzero(mg.asarray([0.0, 2.0]))",
    "searchsorted": "mg.searchsorted(mg.asarray([1.0, 2.0, 3.0]), mg.asarray([2.5]))",
    "count_nonzero": "mg.count_nonzero(mg.asarray([0.0, 2.0]))",
    "sort": f"mg.sort(mg.asarray({V}))",
    "argsort": f"mg.argsort(mg.asarray({V}))",
    "diff": f"mg.diff(mg.asarray({V}))",
    "all": "mg.all(mg.asarray([True, False]))",
    "any": "mg.any(mg.asarray([True, False]))",
    "isin": f"mg.isin(mg.asarray({V}), mg.asarray([1.0]))",
    "unique_values": "mg.unique_values(mg.asarray([2.0, 1.0, 2.0]))",
    "unique_counts": "mg.unique_counts(mg.asarray([2.0, 1.0, 2.0]))",
    "unique_inverse": "mg.unique_inverse(mg.asarray([2.0, 1.0, 2.0]))",
    "unique_all": "mg.unique_all(mg.asarray([2.0, 1.0, 2.0]))",
    "arange": "mg.arange(3)",
    "zeros": "mg.zeros(2)",
    "ones": "mg.ones((1, 2))",
    "eye": "mg.eye(2)",
    "full": "mg.full(2, 7.0)",
    "linspace": "mg.linspace(0.0, 1.0, 3)",
    "zeros_like": "mg.zeros_like(mg.asarray([1.0, 2.0]))",
    "ones_like": "mg.ones_like(mg.asarray([1.0, 2.0]))",
    "full_like": "mg.full_like(mg.asarray([1.0, 2.0]), 7.0)",
    "astype": "mg.astype(mg.asarray([1.5, 2.5]), 'int64')",
    "can_cast": "mg.can_cast(mg.int32, mg.float64)",
    "isdtype": "mg.isdtype(mg.float32, 'real floating')",
    "asarray": "mg.asarray([1.0, 2.0], requires_grad=True)",
    "einsum": f"mg.einsum('ij,ij->i', mg.asarray({A}), mg.asarray({A}))",
    "softmax": "mg.softmax(mg.asarray([0.0, 1.0]))",
    "log_softmax": "mg.log_softmax(mg.asarray([0.0, 1.0]))",
    "logsumexp": "mg.logsumexp(mg.asarray([0.0, 1.0]))",
    "softplus": "mg.softplus(mg.asarray([0.0, 1.0]))",
    "transpose": f"mg.transpose(mg.asarray({A}))",
    "swapaxes": f"mg.swapaxes(mg.asarray({A}), 0, 1)",
    "ravel": f"mg.ravel(mg.asarray({A}))",
    "flatten": f"mg.flatten(mg.asarray({A}))",
    "diagonal": f"mg.diagonal(mg.asarray({A}))",
    "trace": f"mg.trace(mg.asarray({A}))",
    "diag": "mg.diag(mg.asarray([1.0, 2.0]))",
    "gradient": "mg.gradient(mg.asarray([1.0, 4.0, 9.0]))",
    "interp": "mg.interp(mg.asarray([0.5]), mg.asarray([0.0, 1.0]), mg.asarray([10.0, 20.0]))",
    "nan_to_num": "mg.nan_to_num(mg.asarray([1.0, mg.nan]))",
    "pad": "mg.pad(mg.asarray([1.0, 2.0]), 1)",
    "dot": f"mg.dot({TWO})",
    "inner": f"mg.inner({TWO})",
    "outer": f"mg.outer({TWO})",
    "kron": f"mg.kron({TWO})",
    "convolve": f"mg.convolve({TWO})",
    "cross": "mg.cross(mg.asarray([1.0, 0.0, 0.0]), mg.asarray([0.0, 1.0, 0.0]))",
    "median": f"mg.median(mg.asarray({V}))",
    "quantile": f"mg.quantile(mg.asarray({V}), 0.5)",
    "percentile": f"mg.percentile(mg.asarray({V}), 50.0)",
    "nanquantile": "mg.nanquantile(mg.asarray([1.0, mg.nan]), 0.5)",
    "nanpercentile": "mg.nanpercentile(mg.asarray([1.0, mg.nan]), 50.0)",
    "cumsum": f"mg.cumsum(mg.asarray({V}))",
    "cumprod": f"mg.cumprod(mg.asarray({V}))",
    "ptp": f"mg.ptp(mg.asarray({V}))",
    "average": f"mg.average(mg.asarray({V}), weights=mg.asarray([1.0, 1.0, 2.0]))",
    "split": "mg.split(mg.asarray([1.0, 2.0]), 2)",
    "concatenate": f"mg.concatenate([{TWO}])",
    "hstack": f"mg.hstack([{TWO}])",
    "vstack": f"mg.vstack([{TWO}])",
    "sliding_window_view": f"mg.sliding_window_view(mg.asarray({V}), 2)",
    "cov": f"mg.cov(mg.asarray({A}))",
    "corrcoef": f"mg.corrcoef(mg.asarray({A}))",
    "atleast_1d": "mg.atleast_1d(mg.asarray(1.0))",
    "atleast_2d": "mg.atleast_2d(mg.asarray(1.0))",
    "linalg.cholesky": f"mg.linalg.cholesky(mg.asarray({S}))",
    "linalg.solve": f"mg.linalg.solve(mg.asarray({S}), mg.asarray([3.0, 3.0]))",
    "linalg.matrix_power": f"mg.linalg.matrix_power(mg.asarray({A}), 2)",
    "linalg.svd": "mg.linalg.svd(mg.asarray([[2.0, 0.0], [0.0, 1.0]])).S",
    "linalg.qr": f"mg.abs(mg.linalg.qr(mg.asarray({S})).R)",
    "linalg.eigh": f"mg.linalg.eigh(mg.asarray({S})).eigenvalues",
    "linalg.eig": "mg.linalg.eig(mg.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues",
    "linalg.eigvals": "mg.linalg.eigvals(mg.asarray([[2.0, 0.0], [0.0, 1.0]]))",
    "linalg.cross": "mg.linalg.cross(mg.asarray([1.0, 0.0, 0.0]), mg.asarray([0.0, 1.0, 0.0]))",
    "linalg.outer": f"mg.linalg.outer({TWO})",
    "fft.fftfreq": "mg.fft.fftfreq(4)",
    "fft.rfftfreq": "mg.fft.rfftfreq(4)",
    "fft.irfft": "mg.fft.irfft(mg.asarray([3.0 + 0j, -1.0]))",
    "fft.hfft": "mg.fft.hfft(mg.asarray([3.0 + 0j, -1.0]))",
    "fft.irfftn": "mg.fft.irfftn(mg.asarray([3.0 + 0j, -1.0]))",
}
"""The calls that follow no pattern."""

SPECIAL = {
    **dict.fromkeys(
        ("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"), "1, 3, mg.asarray([0.25, 0.5])"
    ),
    **dict.fromkeys(
        ("betainc", "betaincc", "betaincinv", "betainccinv"), "2.0, 3.0, mg.asarray([0.25, 0.5])"
    ),
    **dict.fromkeys(("fdtr", "fdtrc", "fdtri"), "4.0, 5.0, mg.asarray([0.25, 0.5])"),
    **dict.fromkeys(("gdtr", "gdtrc"), "2.0, 1.5, mg.asarray([0.25, 0.5])"),
    **dict.fromkeys(
        ("pdtr", "pdtrc", "pdtri", "jv", "yv", "yn", "iv", "kv", "ive", "kve", "expn", "polygamma"),
        "2, mg.asarray([0.25, 0.5])",
    ),
    **dict.fromkeys(
        (
            "gammainc",
            "gammaincc",
            "gammaincinv",
            "gammainccinv",
            "chdtr",
            "chdtrc",
            "chdtri",
            "stdtr",
            "stdtrit",
        ),
        "3.0, mg.asarray([0.25, 0.5])",
    ),
    **dict.fromkeys(("huber", "pseudo_huber"), "1.0, mg.asarray([0.5, 3.0])"),
    **dict.fromkeys(("zetac", "riemann_zeta"), "mg.asarray([2.0, 4.0])"),
    "binom": "mg.asarray([4.0, 5.0]), 2.0",
    "poch": "mg.asarray([4.0, 5.0]), 2.0",
    "zeta": "mg.asarray([2.0, 4.0])",
    "hurwitz_zeta": "mg.asarray([2.0, 4.0]), 1.5",
    "zeta_derivative": "1, mg.asarray([2.0, 4.0]), 1.5",
    "hyp1f1": "1.0, 2.0, mg.asarray([0.25, 0.5])",
    "lpmv": "1, 2, mg.asarray([0.25, 0.5])",
    "multigammaln": "mg.asarray([3.0, 4.0]), 2",
    "radian": "mg.asarray([90.0, 180.0]), 30.0, 0.0",
    "psi": f"mg.asarray({X})",
    **dict.fromkeys(("sindg", "cosdg", "tandg", "cotdg"), "mg.asarray([30.0, 45.0])"),
}
"""The arguments of special functions for which the two points of elementwise operations do not fit.
"""


def call(op: Op) -> str:
    """Return the call that shows an operation, "" if there is none."""
    if op.name in CALLS:
        return CALLS[op.name]
    if (name := op.name.removeprefix("special.")) in SPECIAL and name != op.name:
        return f"mg.{op.name}({SPECIAL[name]})"
    n = len(op.arrays)
    if op.chapter == "elementwise" or (op.kind == "elementwise" and op.public):
        if n == 2:
            given = (
                "mg.asarray([6, 5]), mg.asarray([3, 1])"
                if op.name in INTEGERS
                else "mg.asarray([True, True]), mg.asarray([True, False])"
                if op.name.startswith("logical")
                else f"mg.asarray({X}), mg.asarray({Y})"
            )
            return f"mg.{op.name}({given})"
        return f"mg.{op.name}(mg.asarray({POINTS.get(op.name, X)}))" if n == 1 else ""
    if op.name.startswith("nan"):
        return f"mg.{op.name}(mg.asarray([1.0, mg.nan, 3.0]))"
    if "axis" in op.roles and "keepdims" in op.roles and n == 1:
        return f"mg.{op.name}(mg.asarray({A}), axis=0)"
    if op.chapter == "linalg" and n in (1, 2):
        return f"mg.{op.name}(mg.asarray({S}))"
    return f"mg.{op.name}(mg.asarray([1.0, 2.0]))" if op.chapter == "fft" else ""


def shown(x: Any) -> str:
    """Return a result as docstrings show it: the rounded values."""
    if isinstance(x, mg.Tensor):
        return repr(_rounded(x.tolist()))
    if isinstance(x, (tuple, list)):
        inner = ", ".join(map(shown, x))
        return f"({inner})" if isinstance(x, tuple) else f"[{inner}]"
    return repr(x)


def _rounded(x: Any) -> Any:
    if isinstance(x, list):
        return [_rounded(y) for y in x]
    if isinstance(x, complex):
        return complex(_rounded(x.real), _rounded(x.imag))
    return round(x, 4) + 0.0 if isinstance(x, float) else x


def text(package: str) -> str:
    """Return the expected text of a package's file."""
    mg.extend.load_plugins()
    mg.zeros(1)
    lines = []
    for op in sorted(OPS.values(), key=lambda op: op.name):
        made = call(op) if op.public and op.module.partition(".")[0] == package else ""
        if made:
            result = eval(made, {"mg": mg})
            made = f"{made}.tolist()" if isinstance(result, mg.Tensor) else made
            lines.append(f'    "{op.name}": ("{made}", "{shown(result)}"),\n')
    return formatted(HEADER + "".join(lines) + "}\n", FILES[package])


def texts() -> dict[Path, str]:
    """Return the expected text of each file."""
    return {ROOT / file: text(package) for package, file in FILES.items()}


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, texts))
