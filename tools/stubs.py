"""Write the stubs of everything generated from the table of operations.

    make stubs        python tools/stubs.py [--check]

These are the module's functions, Tensor's members, and the namespaces. Names, parameters, defaults
and outputs come from the table. This file adds the types of plain parameters: by name, and by
operation if a name has several meanings. A plain parameter without a type is an error.
tests/typing/test_stubs.py compares the files.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from formatting import formatted
from writing import write_or_check

import multigrad as mg
from multigrad import extend, methods
from multigrad.core import element
from multigrad.dispatch.functions import parameters_text
from multigrad.memory import inplace
from multigrad.namespace import CONSTANTS
from multigrad.registry import OPS, Op

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Written by `make stubs` from the table of operations.\n"

PARAMETERS = {
    "approximate": "Literal['none', 'tanh']",
    "axes": "Sequence[int] | None",
    "axis": "Axes",
    "axis1": "int",
    "axis2": "int",
    "constant_values": "Any",
    "copy": "_bool | None",
    "correction": "float",
    "d": "float",
    "ddof": "int",
    "device": "Device | None",
    "dtype": "DType | None",
    "end_values": "Any",
    "from_": "Any",
    "indexing": "Literal['xy', 'ij']",
    "indices_or_sections": "int | Sequence[int]",
    "key": "Key",
    "kind": "str | DType | tuple[Any, ...]",
    "left": "float | None",
    "method": "str",
    "mode": "str",
    "n": "int | None",
    "n_cols": "int | None",
    "n_rows": "int",
    "nan": "float",
    "neginf": "float | None",
    "norm": "Literal['backward', 'ortho', 'forward']",
    "num": "int",
    "ord": "float | str",
    "order": "Literal['C', 'F']",
    "optimize": "Any",
    "pad_width": "Any",
    "period": "float | None",
    "posinf": "float | None",
    "repetitions": "Shape",
    "reflect_type": "Literal['even', 'odd']",
    "right": "float | None",
    "s": "Sequence[int] | None",
    "shape": "Shape",
    "shapes": "tuple[int, ...]",
    "shift": "Shape",
    "side": "Literal['left', 'right']",
    "start": "float",
    "stat_length": "Any",
    "stop": "float | None",
    "step": "float",
    "to": "Any",
    "type": "Any",
    "window_shape": "Shape",
    "source": "Shape",
    "destination": "Shape",
}
"""The types of plain parameters.

A parameter that is missing here has the type of its default: a bool, an int, a float.
"""

OF_OPERATION = {
    **{
        f"{name}.axis": "int"
        for name in (
            "cross",
            "fft.fft",
            "fft.ifft",
            "fft.rfft",
            "fft.irfft",
            "fft.hfft",
            "fft.ihfft",
            "linalg.cross",
            "linalg.vecdot",
            "vecdot",
            "stack",
            "unstack",
            "take_along_axis",
            "argsort",
            "sort",
            "diff",
            "split",
        )
    },
    **{
        f"{name}.axis": "int | None"
        for name in (
            "take",
            "argmax",
            "argmin",
            "nanargmax",
            "nanargmin",
            "concat",
            "concatenate",
            "repeat",
            "cumsum",
            "cumprod",
            "nancumsum",
            "nancumprod",
            "cumulative_sum",
            "cumulative_prod",
        )
    },
    "cross.axis": "int | None",
    "expand_dims.axis": "int | tuple[int, ...]",
    "squeeze.axis": "int | tuple[int, ...]",
    "permute_dims.axes": "Sequence[int]",
    "tensordot.axes": "int | tuple[Sequence[int], Sequence[int]]",
    "linalg.tensordot.axes": "int | tuple[Sequence[int], Sequence[int]]",
    "diff.n": "int",
    "linalg.matrix_power.n": "int",
    "fft.fftfreq.n": "int",
    "fft.rfftfreq.n": "int",
    "astype.copy": "_bool",
    "nan_to_num.copy": "_bool",
    "astype.dtype": "DType",
    "isdtype.dtype": "DType",
    "from_dlpack.x": "Any",
    "linalg.qr.mode": "Literal['reduced', 'complete']",
    "convolve.mode": "Literal['full', 'same', 'valid']",
    "linalg.vector_norm.ord": "float",
    "linalg.matrix_norm.ord": "float | Literal['fro', 'nuc']",
    "cov.ddof": "int | None",
    "nanvar.correction": "float | None",
    "nanstd.correction": "float | None",
    "quantile.method": "Literal['linear']",
    "asarray.obj": "Any",
    "einsum.operands": "Any",
    "result_type.arrays_and_dtypes": "Any",
    "special.multigammaln.d": "int",
    "special.zeta_derivative.m": "int",
    "gradient.varargs": "ArrayLike | Sequence[float]",
    "take.indices": "Array | int | Sequence[Any]",
    "result_type.dtype": "Any",
    "linspace.num": "int",
    "repeat.repeats": "Array | int",
    "interp.xp": "ArrayLike",
}
"""The types of parameters of single operations."""

RESULTS = {
    "broadcast_shapes": "tuple[int, ...]",
    "can_cast": "_bool",
    "isdtype": "_bool",
    "finfo": "FloatLimits",
    "iinfo": "IntLimits",
    "result_type": "DType",
    "split": "list[Tensor]",
    "atleast_1d": "Any",
    "atleast_2d": "Any",
    "gradient": "Any",
}
"""The results of operations that return something other than one Tensor.

If there are several cases, this is the last one; `SEVERAL` has the others.
"""

SEVERAL = {
    "atleast_1d": (
        ("x: ArrayLike, /", "Tensor"),
        ("x1: ArrayLike, x2: ArrayLike, /, *arrays: ArrayLike", "tuple[Tensor, ...]"),
    ),
    "atleast_2d": (
        ("x: ArrayLike, /", "Tensor"),
        ("x1: ArrayLike, x2: ArrayLike, /, *arrays: ArrayLike", "tuple[Tensor, ...]"),
    ),
}
"""Operations whose result type depends on the arguments: parameters and result of each case."""

FLAGS = {"average": "returned", "logsumexp": "return_sign"}
"""Operations that return a pair of Tensors if a flag is true."""

NUMPY = {"std": {"ddof": "float"}, "var": {"ddof": "float"}, "round": {"decimals": "int"}}
"""Additional keywords of NumPy that functions of that name take."""


def own() -> dict[str, Op]:
    """Return the operations of multigrad and multigrad-special, without those of other plugins."""
    return {
        name: op
        for name, op in OPS.items()
        if op.module.startswith(("multigrad.", "multigrad_special"))
    }


def listed(prefix: str = "") -> list[Op]:
    """Return the operations of a prefix that users call."""
    return sorted(
        (op for op in own().values() if op.name.rpartition(".")[0] == prefix and op.public),
        key=lambda op: op.name,
    )


# ----- parameters -----


def type_of(op: Op, name: str, default: Any) -> str:
    """Return the type of a parameter."""
    role = op.roles.get(name, "plain")
    known = OF_OPERATION.get(f"{op.name}.{name}")
    if known is None and role != "plain":
        known = (
            "Sequence[ArrayLike]"
            if role == "arrays"
            and op.signature.parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
            else "ArrayLike"
            if role == "arrays" or _takes_scalars(op, name)
            else "Array"
        )
        known += " | None" if default is None else ""
    if known is None:
        known = PARAMETERS.get(name)
    if known is None and type(default) in (bool, int, float, str):
        known = {"bool": "_bool"}.get(type(default).__name__, type(default).__name__)
    if known is None:
        sys.exit(
            f"tools/stubs.py does not know the type of the parameter {name!r} of "
            f"{op.name}{op.signature}: add it to PARAMETERS or OF_OPERATION"
        )
    return known


def _takes_scalars(op: Op, name: str) -> bool:
    """Return whether a Python scalar may replace an array, if another operand is an array."""
    return len(op.arrays) > 1 or op.chapter == "creation"


def parameters(op: Op, text: str, types: dict[str, str] | None = None) -> list[str]:
    """Return the parameters of a function that takes `text`, with types and defaults."""
    tree = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    args = tree.args
    parts: list[str] = []

    def add(node: ast.arg, has_default: bool, star: str = "") -> None:
        p = op.signature.parameters.get(node.arg)
        default = p.default if p is not None else inspect.Parameter.empty
        kind = (types or {}).get(node.arg) or type_of(
            op, node.arg, None if has_default and default is inspect.Parameter.empty else default
        )
        shown = "..." if default is inspect.Parameter.empty else repr(default)
        parts.append(f"{star}{node.arg}: {kind}" + (f" = {shown}" if has_default else ""))

    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    for i, node in enumerate(positional):
        add(node, i >= first)
        if i + 1 == len(args.posonlyargs):
            parts.append("/")
    if args.vararg is not None:
        add(args.vararg, False, "*")
    elif args.kwonlyargs or (args.kwarg is not None and op.name in NUMPY):
        parts.append("*")
    for node, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        add(node, value is not None)
    if args.kwarg is not None:
        parts += [f"{name}: {kind} = ..." for name, kind in NUMPY.get(op.name, {}).items()]
    return parts


def function_text(op: Op, name: str, first: str = "", method: bool = False) -> Iterator[str]:
    """Yield the declaration of the function of an operation, or of its method."""
    makes = op.chapter == "creation" and {"dtype", "device"} <= set(op.signature.parameters)
    text = parameters_text(op, False, method)
    if op.name == "asarray":
        text = "obj, /, *, dtype=None, device=None, copy=None"
    more = ["requires_grad: _bool = False"] if makes or op.name == "from_dlpack" else []
    for overload, given, result in cases(op, parameters(op, text)):
        if method:
            given = given[1:]
            given = given[1:] if given[:1] == ["/"] else given
        star = [] if not more or "*" in given or any(g.startswith("*") for g in given) else ["*"]
        yield from declaration(
            name, [*([first] if first else []), *given, *star, *more], result, overload, op.doc
        )


def cases(op: Op, given: list[str]) -> Iterator[tuple[bool, list[str], str]]:
    """Yield the parameters and the result of each case, and whether there are several cases."""
    if op.name in SEVERAL:
        for taken, result in SEVERAL[op.name]:
            yield True, taken.split(", "), result
    elif op.name == "where":
        yield True, [given[0], "x1: ArrayLike", "x2: ArrayLike", "/"], "Tensor"
        yield True, [given[0], "/"], "tuple[Tensor, ...]"
    elif op.name in FLAGS:
        yield from _with_flag(given, FLAGS[op.name])
    else:
        yield False, given, RESULTS.get(op.name) or result_of(op)


def _with_flag(given: list[str], flag: str) -> Iterator[tuple[bool, list[str], str]]:
    """Yield two cases: a pair of Tensors if the flag is true, given by its name, else a Tensor."""
    i = next(i for i, text in enumerate(given) if text.startswith(f"{flag}:"))
    yield True, [*given[:i], f"{flag}: Literal[False] = False", *given[i + 1 :]], "Tensor"
    star = [] if "*" in given[:i] else ["*"]
    yield (
        True,
        [*given[:i], *star, f"{flag}: Literal[True]", *(x for x in given[i + 1 :] if x != "*")],
        "tuple[Tensor, Tensor]",
    )


def result_of(op: Op) -> str:
    return (
        "Tensor"
        if op.outputs == ()
        else "tuple[Tensor, ...]"
        if op.outputs is None
        else result_name(op)
    )


def result_name(op: Op) -> str:
    return (
        "".join(
            part.capitalize()
            for part in op.name.replace(".", "_").removeprefix("linalg_").split("_")
        )
        + "Result"
    )


def declaration(
    name: str,
    given: Iterable[str],
    result: str,
    overload: bool = False,
    doc: str = "",
    ignore: str = "",
) -> Iterator[str]:
    """Yield the lines of a function's declaration."""
    if overload:
        yield "@overload"
    given = list(given)
    yield f"def {name}({', '.join(given)}) -> {result}: ...{ignore}"


def indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"    {line}"


# ----- files -----

IMPORTS = """
from builtins import bool as _bool
from collections.abc import Sequence
from typing import Any, {typing}
"""


def namespaces() -> Iterator[str]:
    """Yield the Protocols of a backend's namespace, and the classes of multiple results."""
    yield from IMPORTS.format(typing="Literal, NamedTuple, Protocol, overload").splitlines()
    yield ""
    yield "from ..core.tensor import Tensor"
    yield "from ..inspection import FloatLimits, Info, IntLimits"
    yield "from . import Array, ArrayLike, Axes, Device, DType, Shape"
    for op in sorted((op for op in own().values() if op.outputs and op.public), key=result_name):
        yield from ("", f"class {result_name(op)}(NamedTuple):")
        yield from indented(f"{name}: Tensor" for name in op.outputs or ())
    for prefix, name in NAMESPACES.items():
        doc = f'    """The operations of `xp.{prefix}`."""' if prefix else DOC
        yield from ("", f"class {name}(Protocol):", doc, "")
        yield from indented(members_of_namespace(prefix))


NAMESPACES = {"linalg": "Linalg", "fft": "FFT", "": "Namespace"}
DOC = '    """The Array API standard on one backend, differentiable: `multigrad.namespace(...)`."""'


def members_of_namespace(prefix: str) -> Iterator[str]:
    if not prefix:
        yield "__name__: str"
        yield "__array_api_version__: str"
        yield "def __array_namespace_info__(self) -> Info: ..."
        yield from constants()
    for op in listed(prefix):
        yield from function_text(op, op.name.rpartition(".")[2], "self")


def constants() -> Iterator[str]:
    for name, value in CONSTANTS.items():
        yield f"{name}: {'None' if value is None else 'float'}"
    for name in DTYPES:
        yield f"{name}: DType"
    yield "linalg: Linalg"
    yield "fft: FFT"


DTYPES = (*element.DTYPES, *element.MORE_DTYPES)


def functions() -> Iterator[str]:
    """Yield the functions of the module."""
    yield from IMPORTS.format(typing="Literal, overload").splitlines()
    yield ""
    yield "from ..core.tensor import Tensor"
    yield "from ..inspection import FloatLimits, IntLimits"
    yield "from . import Array, ArrayLike, Axes, Device, DType, Shape"
    results = sorted(result_name(op) for op in listed() if op.outputs)
    yield f"from .namespaces import FFT, {', '.join(sorted(['Linalg', *results]))}"
    own = [op for op in listed() if op.name not in OWN]
    yield ""
    yield f"__all__: list[str] = {[*CONSTANTS, *DTYPES, 'linalg', 'fft', *(op.name for op in own)]}"
    yield ""
    yield from constants()
    for op in own:
        yield from function_text(op, op.name)


OWN = ("asarray",)
"""The operations for which the module has a handwritten function."""


def of_plugin(prefix: str) -> Iterator[str]:
    """Yield the functions of a plugin's prefix."""
    yield from (
        "",
        "from typing import Literal",
        "",
        "from multigrad import Tensor",
        "from multigrad.typing import Array, ArrayLike",
        "",
    )
    ops = listed(prefix)
    for op in ops:
        yield from function_text(op, op.name.rpartition(".")[2])


def members() -> Iterator[str]:
    """Yield the operators, methods and attributes that methods.py gives to all layers."""
    yield from IMPORTS.format(typing="Literal, overload").splitlines()
    yield from ("", "from numpy.typing import NDArray", "")
    yield "from ..typing import Array, ArrayLike, Axes, Device, DType, Key, Shape"
    results = sorted(result_name(op) for op in listed() if op.outputs)
    yield f"from ..typing.namespaces import {', '.join(['Namespace', *results])}"
    yield "from .level import Layer"
    yield "from .tensor import Tensor"
    yield ""
    yield '__all__ = ["Members", "NDArray", "Namespace"]'
    yield from (
        "",
        "class Members(Layer):",
        '    """The members that the table gives to Tensor and the other layers."""',
        "    __slots__ = ()",
    )
    yield from indented(operators())
    yield from indented(written())
    ours = own()
    for name in sorted(n for n in methods._installed if n in ours and n not in METHODS):
        yield from indented(function_text(ours[name], name, "self", method=True))
    for twin in sorted(n for n in methods._installed if n not in ours and n[:-1] in ours):
        op = ours[twin[:-1]]
        given = parameters(op, parameters_text(op, False, True))
        yield from indented(
            declaration(
                twin, ["self", *[g for g in given[1:] if g != "/" or len(op.arrays) > 1]], "Tensor"
            )
        )


def operators() -> Iterator[str]:
    for op in sorted((op for op in own().values() if op.operator), key=lambda op: op.operator):
        stem, other = op.operator, ["self", "other: ArrayLike", "/"]
        if len(op.arrays) == 1:
            yield from declaration(f"__{stem}__", ["self"], "Tensor")
            continue
        equality = stem in ("eq", "ne")
        yield from declaration(
            f"__{stem}__",
            ["self", "other: Any", "/"] if equality else other,
            "Tensor",
            ignore="  # type: ignore[override]" if equality else "",
        )
        if stem in inplace.DIRECT:
            yield from declaration(f"__r{stem}__", other, "Tensor")
            yield from declaration(f"__i{stem}__", other, "Tensor")


METHODS = methods._METHODS | methods._ENTRIES
WRITTEN = {
    "__getitem__.key": "Key",
    "__setitem__.key": "Key",
    "__setitem__.value": "ArrayLike",
    "reshape.shape": "Shape",
    "permute_dims.axes": "Shape",
    "transpose.axes": "Shape | None",
    "squeeze.axis": "Axes",
    "cumsum.axis": "int | None",
    "cumsum.dtype": "DType | None",
    "cumprod.axis": "int | None",
    "cumprod.dtype": "DType | None",
    "copy_.other": "ArrayLike",
    "to_device.device": "Device",
}
"""The types of parameters of members that methods.py writes, which pass their values on."""


def written() -> Iterator[str]:
    """Yield the members that methods.py writes itself."""
    for name, member in METHODS.items():
        if isinstance(member, property):
            yield from ("@property", f"def {name}(self) -> Tensor: ...")
            if member.fset is not None:
                yield from (f"@{name}.setter", f"def {name}(self, value: ArrayLike) -> None: ...")
        else:
            tree = ast.parse(textwrap.dedent(inspect.getsource(member))).body[0]
            assert isinstance(tree, ast.FunctionDef) and tree.returns is not None
            tree.args.posonlyargs[:1] = [ast.arg("self")] if tree.args.posonlyargs else []
            tree.args.args[:1] = [] if tree.args.posonlyargs else [ast.arg("self")]
            for node in ast.walk(tree.args):
                if isinstance(node, ast.arg) and (known := WRITTEN.get(f"{name}.{node.arg}")):
                    node.annotation = ast.Name(known)
            yield from declaration(name, [ast.unparse(tree.args)], ast.unparse(tree.returns))


TEXTS = {
    "multigrad/typing/namespaces.pyi": namespaces,
    "multigrad/typing/functions.pyi": functions,
    "multigrad/core/members.pyi": members,
    "plugins/multigrad-special/multigrad_special/functions.pyi": lambda: of_plugin("special"),
}


def texts() -> dict[str, str]:
    """Return the expected text of each file."""
    extend.load_plugins()
    mg.zeros(1)
    return {
        path: formatted(HEADER + "\n".join(text()) + "\n", path) for path, text in TEXTS.items()
    }


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, lambda: {ROOT / path: text for path, text in texts().items()}))
